//! A system that has no memory for pages: each call does its work without them or says so, and nothing
//! that was there or was put before is lost.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use zonda_storage::{Create, Spec, Storage, StorageError, StorageOptions, open};
use zonda_testkit::{Rng, TempFolder};

/// Shorter memory than this is always there: lists that every call needs.
const LEAST: usize = 32 << 10;

thread_local! {
    /// After how many more requests there is no memory; none where there always is.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    static REFUSED: Cell<u32> = const { Cell::new(0) };
}

struct Scarce;

fn is_refused(size: usize) -> bool {
    if size < LEAST {
        return false;
    }
    match LEFT.get() {
        None => false,
        Some(0) => {
            REFUSED.set(REFUSED.get() + 1);
            true
        }
        Some(left) => {
            LEFT.set(Some(left - 1));
            false
        }
    }
}

// SAFETY: all memory is the system's; what is refused is null, as it may be.
unsafe impl GlobalAlloc for Scarce {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_refused(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static MEMORY: Scarce = Scarce;

/// Runs a call for which there is memory `left` times only.
fn scarce<T>(left: u32, call: impl FnOnce() -> T) -> T {
    LEFT.set(Some(left));
    let done = call();
    LEFT.set(None);
    done
}

/// What is to be in the file; `None` where a put failed halfway.
#[derive(Default)]
struct Known {
    bytes: Vec<Option<u8>>,
    /// What was put for certain ends here: a put that failed may have made the file longer, or not.
    end: usize,
}

impl Known {
    fn put(&mut self, at: usize, bytes: impl ExactSizeIterator<Item = u8>) {
        let end = at + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, Some(0));
        }
        self.bytes[at..end].iter_mut().zip(bytes).for_each(|(known, byte)| *known = Some(byte));
        self.end = self.end.max(end);
    }

    /// A put failed there: a part of it may have been made.
    fn forget(&mut self, at: usize, len: usize) {
        let end = (at + len).min(self.bytes.len());
        (at..end).for_each(|at| self.bytes[at] = None);
    }
}

fn no_memory(error: &StorageError) {
    assert!(matches!(error, StorageError::NoMemory { .. }), "{error}");
}

/// Random calls, each with memory for none, one or two pages, beside a plain model.
fn calls(storage: &dyn Storage, rng: &mut Rng, known: &mut Known, label: &str) {
    for _ in 0..150 {
        let at = rng.below(600_000) as usize;
        let len = [1, 8, 300, 5000, 70_000, 300_000][rng.below(6) as usize];
        let left = rng.below(3) as u32;
        match rng.below(6) {
            0 | 1 => {
                let data = rng.bytes(len);
                let done = scarce(left, || storage.write_at(at as u64, &data));
                match &done {
                    Ok(()) => known.put(at, data.iter().copied()),
                    Err(error) => {
                        no_memory(error);
                        known.forget(at, len);
                    }
                }
            }
            2 => {
                let element = [11, 22, 33, 44];
                let len = len.next_multiple_of(4);
                match scarce(left, || storage.fill_at(at as u64, len as u64, &element)) {
                    Ok(()) => known.put(at, (0..len).map(|n| element[n % 4])),
                    Err(error) => {
                        no_memory(&error);
                        known.forget(at, len);
                    }
                }
            }
            3 => {
                let done = scarce(left, || storage.barrier());
                if let Err(error) = &done {
                    no_memory(error);
                }
            }
            4 if rng.below(20) == 0 => {
                let done = scarce(left, || storage.invalidate());
                if let Err(error) = &done {
                    no_memory(error);
                }
            }
            _ => {
                let mut got = vec![0; len];
                match scarce(left, || storage.read_at(at as u64, &mut got)) {
                    Ok(n) => same(&got[..n], known.bytes.get(at..).unwrap_or_default(), label),
                    Err(error) => no_memory(&error),
                }
            }
        }
        let len = storage.len().unwrap() as usize;
        assert!(len >= known.end, "{label}: {len} bytes, {} were put", known.end);
        known.bytes.resize(len, None);
    }
}

fn same(got: &[u8], known: &[Option<u8>], label: &str) {
    for (n, (got, known)) in got.iter().zip(known).enumerate() {
        assert!(known.is_none_or(|known| known == *got), "{label}: byte {n}: {got} {known:?}");
    }
}

#[test]
fn without_memory_for_pages_nothing_is_lost() {
    let folder = TempFolder::new("no-memory");
    for spec in [
        "cache",
        "cache:8:300",
        "cache:16:16",
        "cachea:16:8:2",
        "bufa:16:2",
        "cache:700:3",
        "direct",
    ] {
        for seed in 0..6 {
            let (path, label) = (folder.path().join("file"), format!("{spec}, seed {seed}"));
            let options = StorageOptions {
                create: Create::Truncate,
                spec: Some(Spec::parse(spec).unwrap()),
                ..StorageOptions::default()
            };
            let file = open(&path, &options).unwrap();
            let mut known = Known::default();
            calls(&*file, &mut Rng::new(seed), &mut known, &label);
            file.sync().unwrap();
            drop(file);
            let bytes = std::fs::read(&path).unwrap();
            assert!(bytes.len() >= known.end, "{label}");
            same(&bytes, &known.bytes, &label);
        }
    }
    assert!(REFUSED.get() > 100, "{} requests were refused", REFUSED.get());
}

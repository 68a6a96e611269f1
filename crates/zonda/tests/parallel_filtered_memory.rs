//! What a put through filters takes of memory while it lasts: as much for many chunks as for some, since ranks go through them in rounds.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zonda::team::{Team, threads};
use zonda::{
    CreateOptions, Dataset, Format, Hyperslab, MemType, Reserve, StorageRequest, VarId,
    WriteBehind, WriteBehindOptions,
};

/// Bytes that all threads of the process have, and the most that they had.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counting;

fn more(size: usize) {
    let live = LIVE.fetch_add(size, Ordering::Relaxed) + size;
    MOST.fetch_max(live, Ordering::Relaxed);
}

fn less(size: usize) {
    LIVE.fetch_sub(size, Ordering::Relaxed);
}

// SAFETY: all memory is the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        less(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        more(size);
        less(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static MEMORY: Counting = Counting;

const RANKS: usize = 8;
/// Elements of a chunk: each of these has a part of two ranks.
const CHUNK: usize = 8;

/// Bytes for each rank that a put of so many chunks took while it lasted, beyond what it left.
fn taken(path: &Path, n_chunks: usize, how: WriteBehind) -> usize {
    let half = CHUNK / 2;
    let found = threads::all(RANKS, |team| {
        let of_team: Arc<dyn Team> = Arc::new(team.clone());
        let (format, write_behind) = (Format::NetCdf4, Some(how));
        let options = CreateOptions { format, write_behind, ..CreateOptions::default() };
        let file = Dataset::create_parallel(of_team, path, &options).unwrap();
        let y = file.def_dim(b"y", n_chunks / RANKS * 2).unwrap();
        let x = file.def_dim(b"x", RANKS * half).unwrap();
        let var = file.def_var(b"v", 4, &[y.0, x.0]).unwrap();
        file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(&[1, CHUNK])).unwrap();
        file.def_var_deflate(var.into(), true, Some(1)).unwrap();
        file.enddef(Reserve::Default).unwrap();
        let (start, count) = ([0, half * team.rank()], [n_chunks / RANKS * 2, half]);
        let slab = Hyperslab { start: &start, count: &count, stride: None };
        let bytes = vec![7; count[0] * count[1] * 4];
        let step = zonda::team::Step { call: "test", file: "test" };
        team.meet(step).unwrap();
        if team.rank() == 0 {
            MOST.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        team.meet(step).unwrap();
        let done = file.put(VarId(0), &slab, Some(MemType::I32), &bytes).unwrap();
        assert_eq!(done.out_of_range, 0);
        team.meet(step).unwrap();
        let taken = MOST.load(Ordering::Relaxed) - LIVE.load(Ordering::Relaxed);
        team.meet(step).unwrap();
        file.close().unwrap();
        taken / RANKS
    });
    found.into_iter().max().unwrap_or(0)
}

#[test]
fn as_much_for_many_chunks_as_for_some() {
    let folder = tempfile::tempdir().unwrap();
    let [some, many] = [20_000, 100_000].map(|n| {
        let path = folder.path().join(format!("{n}.nc"));
        taken(&path, n, WriteBehind::Off)
    });
    eprintln!("{some} bytes of a rank for 20,000 chunks, {many} for 100,000");
    // Elements, parts that are sent, and the list of a round.
    assert!(many < some + some / 2 + (8 << 20), "{many} bytes and not {some}");
    assert!(many < 24 << 20, "{many} bytes");
    // With write-behind ranks have lists of chunks that are not entered, which have an end, too.
    let on = WriteBehind::On(WriteBehindOptions::default());
    let path = folder.path().join("queued.nc");
    let queued = taken(&path, 100_000, on);
    eprintln!("{queued} bytes of a rank for 100,000 chunks with write-behind");
    assert!(queued < 48 << 20, "{queued} bytes");
    let of = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(of("queued.nc") == of("100000.nc"));
}

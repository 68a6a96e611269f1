//! What the cache promises beyond being a storage: how few calls it makes.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use zonda_storage::backend::Memory;
use zonda_storage::layer::{Cache, CacheShape, Count, CountHandle};
use zonda_storage::{
    Advice, Handles, Op, ReadRange, Rows, Spec, Storage, StorageError, WriteRange,
};
use zonda_testkit::Rng;

type Counted = Cache<Count<Arc<Memory>>>;

fn cache(blocks: u64, pages: u64, len: usize) -> (Arc<Memory>, CountHandle, Counted) {
    let base = Arc::new(Memory::from_slice(&Rng::new(5).bytes(len)));
    let count = Count::new(Arc::clone(&base));
    let handle = count.handle();
    let cache = Cache::new(count, CacheShape::new(blocks, pages).unwrap()).unwrap();
    handle.reset();
    (base, handle, cache)
}

#[test]
fn sequential_small_writes_never_read() -> Result<(), StorageError> {
    let (base, count, cache) = cache(1, 8, 0);
    for i in 0..40_000_u32 {
        cache.write_at(u64::from(i) * 4, &i.to_le_bytes())?;
    }
    cache.sync()?;
    let counts = count.counts();
    assert_eq!(counts.read.calls, 0);
    assert_eq!(counts.write.bytes, 160_000);
    // 40 pages, written four at a time.
    assert!(counts.write.calls <= 10, "{counts:?}");
    let bytes = base.to_vec()?;
    assert!(bytes.chunks(4).zip(0_u32..).all(|(b, i)| b == i.to_le_bytes()));
    Ok(())
}

/// Every fourth value, four times: what is in thousands of pieces on the way is neither read nor written
/// before it is complete.
#[test]
fn strided_writes_of_a_new_file_never_read_and_write_once() -> Result<(), StorageError> {
    let base = Arc::new(Memory::new());
    let mut handles = Handles::default();
    let s = Spec::parse("cache,count").unwrap().build_with(base.clone(), &mut handles).unwrap();
    let data = Rng::new(9).bytes(1 << 20);
    for (stretch, bytes) in data.chunks(128 << 10).enumerate() {
        for phase in 0..4 {
            for (i, piece) in bytes.chunks(8).enumerate().skip(phase).step_by(4) {
                s.write_at((stretch * (128 << 10) + i * 8) as u64, piece)?;
            }
        }
    }
    s.sync()?;
    let counts = handles.counts[0].counts();
    assert_eq!((counts.read.calls, counts.write.bytes), (0, 1 << 20), "{counts:?}");
    // Pieces that are never put leave zeros, and the file no longer than it is.
    for i in 0..2000_u64 {
        s.write_at((2 << 20) + i * 16, &[7; 8])?;
    }
    s.sync()?;
    let bytes = base.to_vec()?;
    assert!(bytes[..1 << 20] == data);
    assert_eq!(bytes.len(), (2 << 20) + 1999 * 16 + 8);
    assert!(
        bytes[2 << 20..]
            .chunks(16)
            .all(|two| two[..8] == [7; 8] && two[8..] == [0; 8][..two.len() - 8])
    );
    Ok(())
}

#[test]
fn adjacent_dirty_pages_go_out_in_one_call_in_address_order() -> Result<(), StorageError> {
    let (_, count, cache) = cache(1, 16, 0);
    for page in [7_u64, 3, 5, 4, 6] {
        cache.write_at(page * 4096, &[page as u8; 4096 - 1])?;
        cache.write_at(page * 4096 + 4095, &[0])?;
    }
    cache.barrier()?;
    let counts = count.counts();
    assert_eq!((counts.write.calls, counts.write.ranges, counts.write.bytes), (1, 5, 5 * 4096));
    cache.barrier()?;
    assert_eq!(count.counts().write.calls, 1, "nothing is written twice");
    Ok(())
}

#[test]
fn what_lies_between_strided_writes_is_neither_read_nor_written() -> Result<(), StorageError> {
    let (base, count, cache) = cache(16, 4, 65_536);
    let mut model = base.to_vec()?;
    for i in (0..65_536).step_by(128) {
        cache.write_at(i, &[1; 4])?;
        model[i as usize..i as usize + 4].fill(1);
    }
    cache.sync()?;
    let counts = count.counts();
    assert_eq!(counts.read.calls, 0, "{counts:?}");
    assert_eq!((counts.write.calls, counts.write.ranges), (1, 512), "{counts:?}");
    assert_eq!(counts.write.bytes, 512 * 4, "{counts:?}");
    assert!(base.to_vec()? == model);
    Ok(())
}

#[test]
fn sequential_reads_are_read_ahead() -> Result<(), StorageError> {
    let (base, count, cache) = cache(4, 64, 1 << 20);
    let bytes = base.to_vec()?;
    let mut buf = [0; 1000];
    for at in (0..1 << 20).step_by(1000) {
        let got = cache.read_at(at as u64, &mut buf)?;
        assert_eq!(&buf[..got], &bytes[at..(at + 1000).min(bytes.len())]);
    }
    let counts = count.counts();
    assert_eq!(counts.read.bytes, 1 << 20, "every byte once");
    assert!(counts.read.calls <= 6, "{counts:?}");
    Ok(())
}

#[test]
fn a_scattered_read_does_not_fetch_a_page() -> Result<(), StorageError> {
    let (_, count, cache) = cache(64, 64, 4 << 20);
    cache.read_at(3 << 20, &mut [0; 4])?;
    let counts = count.counts();
    assert_eq!((counts.read.calls, counts.read.bytes), (1, 16 << 10));
    Ok(())
}

/// The rows that a cache shows, one after the other.
fn rows_shown(cache: &dyn Storage, rows: Rows) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    let n = cache.show_rows(rows, &mut |bytes| seen.push(bytes.to_vec()));
    assert_eq!(seen.len(), n);
    seen
}

#[test]
fn rows_are_shown_as_far_as_they_are_in_pages() -> Result<(), StorageError> {
    let (base, count, cache) = cache(1, 64, 40_000);
    let mut model = base.to_vec()?;
    let expect = |model: &[u8], rows: Rows, n: usize| {
        let at = |i: usize| rows.at as usize + i * rows.step as usize;
        let rows = (0..n).map(|i| model[at(i)..at(i) + rows.len].to_vec());
        rows.collect::<Vec<_>>()
    };
    let rows = Rows { at: 100, len: 50, step: 1000, count: 20 };
    assert_eq!(rows_shown(&cache, rows), expect(&model, rows, 0), "nothing was read yet");
    // The first three pages, and the fifth: from behind, so that nothing is read ahead.
    for at in [16_384, 8192, 4096, 0] {
        cache.read_ranges(&mut [ReadRange::new(at, &mut [0; 4095])])?;
    }
    assert_eq!(rows_shown(&cache, rows), expect(&model, rows, 13), "up to the fourth page");
    let behind = Rows { at: 16_400, ..rows };
    assert_eq!(rows_shown(&cache, behind), expect(&model, behind, 5), "up to the sixth");
    let across = Rows { at: 4000, len: 200, step: 5000, count: 2 };
    assert_eq!(rows_shown(&cache, across), expect(&model, across, 0), "in two pages");
    // What was written and what was read, side by side.
    cache.write_at(3100, &[7; 60])?;
    model[3100..3160].fill(7);
    assert_eq!(rows_shown(&cache, rows), expect(&model, rows, 13));
    // What was only written.
    cache.write_at(20_480, &[8; 100])?;
    model[20_480..20_580].fill(8);
    let written = Rows { at: 20_480, len: 40, step: 50, count: 3 };
    assert_eq!(rows_shown(&cache, written), expect(&model, written, 2), "the third is not known");
    // Rows that overlap, rows of one place, rows without bytes, places that no storage has.
    for (step, len, count) in [(3, 50, 9), (0, 50, 4), (7, 0, 5)] {
        let rows = Rows { at: 8200, len, step, count };
        assert_eq!(rows_shown(&cache, rows), expect(&model, rows, count), "{rows:?}");
    }
    let far = Rows { at: 8200, len: 10, step: u64::MAX - 5, count: 3 };
    assert_eq!(rows_shown(&cache, far), expect(&model, far, 1));
    assert!(rows_shown(&cache, Rows { at: u64::MAX - 5, ..far }).is_empty());
    assert!(rows_shown(&cache, Rows { at: 8200, len: usize::MAX, ..far }).is_empty());
    // Behind a cut nothing is shown.
    cache.set_len(8250)?;
    let cut = Rows { at: 8200, len: 10, step: 20, count: 9 };
    assert_eq!(rows_shown(&cache, cut), expect(&model, cut, 3));
    let reads = count.counts().read.calls;
    assert!(reads <= 4, "only read_ranges reads: {reads}");
    Ok(())
}

/// A page of which a part is here is completed without reading that part again.
#[test]
fn gaps_of_a_page_are_read_one_by_one_where_much_lies_between() -> Result<(), StorageError> {
    let (base, count, cache) = cache(64, 4, 1 << 20);
    let bytes = base.to_vec()?;
    let read = |at: usize, len: usize| -> Result<(), StorageError> {
        let mut buf = vec![0; len];
        assert_eq!(cache.read_at(at as u64, &mut buf)?, len);
        assert!(buf == bytes[at..at + len], "{at}");
        Ok(())
    };
    // Each comes back to the page, so that twice as much is read each time.
    for at in [130_000, 2000, 200_000, 70_000, 250_000, 100_000, 30_000, 170_000] {
        read(at, 100)?;
    }
    assert_eq!(count.counts().read.bytes, 256 << 10, "each byte once");
    read(1000, 15_000)?;
    Ok(())
}

#[test]
fn large_requests_go_straight_through() -> Result<(), StorageError> {
    let (base, count, cache) = cache(1, 8, 100_000);
    cache.write_at(10_000, &[3; 50])?;
    let data = vec![4; 50_000];
    cache.write_at(20_001, &data)?;
    assert_eq!(count.counts().write.bytes, 50_000);
    let mut buf = vec![0; 80_000];
    assert_eq!(cache.read_at(5000, &mut buf)?, 80_000);
    let mut model = base.to_vec()?;
    model[10_000..10_050].fill(3);
    assert!(buf == model[5000..85_000]);
    Ok(())
}

#[test]
fn the_least_recently_used_page_leaves() -> Result<(), StorageError> {
    let (_, count, cache) = cache(1, 2, 40_960);
    let touch = |page: u64| cache.read_at(page * 4096 + 9, &mut [0; 1]);
    touch(0)?;
    touch(5)?;
    touch(0)?;
    touch(9)?;
    let before = count.counts().read.calls;
    touch(0)?;
    assert_eq!(count.counts().read.calls, before, "0 was used later than 5");
    touch(5)?;
    assert_eq!(count.counts().read.calls, before + 1);
    Ok(())
}

#[test]
fn invalidate_shows_what_others_wrote() -> Result<(), StorageError> {
    let (base, _, cache) = cache(1, 8, 5000);
    let mut buf = [0; 4];
    cache.read_at(100, &mut buf)?;
    cache.write_at(200, b"mine")?;
    base.write_at(100, b"them")?;
    base.write_at(6000, b"more")?;
    cache.invalidate()?;
    cache.read_at(100, &mut buf)?;
    assert_eq!(&buf, b"them");
    cache.read_at(200, &mut buf)?;
    assert_eq!(&buf, b"mine");
    assert_eq!(cache.len()?, 6004);
    base.set_len(3000)?;
    cache.invalidate()?;
    assert_eq!(cache.len()?, 3000);
    Ok(())
}

#[test]
fn rest_writes_what_is_complete_and_nothing_else() -> Result<(), StorageError> {
    let (base, count, cache) = cache(1, 64, 0);
    // Three complete pages are too few for a write of their own, and the next may become complete.
    let data = Rng::new(6).bytes(3 * 4096 + 100);
    for (number, part) in data.chunks(100).enumerate() {
        cache.write_at(number as u64 * 100, part)?;
    }
    // Neither is this one, far behind.
    cache.write_at(20 * 4096 + 7, b"rest")?;
    assert_eq!(count.counts().write.calls, 0, "the pages are gathered");
    cache.rest();
    let write = count.counts().write;
    assert_eq!((write.calls, write.bytes), (1, 3 * 4096));
    assert!(base.to_vec()? == data[..3 * 4096]);
    cache.rest();
    assert_eq!(count.counts().write.calls, 1, "there is nothing new");
    cache.sync()?;
    assert_eq!(count.counts().write.bytes, 3 * 4096 + 100 + 4, "nothing is written twice");
    Ok(())
}

#[test]
fn what_rest_cannot_write_is_kept_and_told_by_a_barrier() -> Result<(), StorageError> {
    let base = Arc::new(Memory::new());
    let s = Spec::parse("cache:1:64,fault:write:1:enospc").unwrap().build_on(base.clone())?;
    let refused = Spec::parse("cache:1:64,fault:write:1+:enospc").unwrap();
    let refused = refused.build_on(Arc::new(Memory::new()))?;
    let data = Rng::new(7).bytes(3 * 4096);
    for s in [&s, &refused] {
        for (number, part) in data.chunks(100).enumerate() {
            s.write_at(number as u64 * 100, part)?;
        }
        s.rest();
    }
    assert_eq!(base.len()?, 0, "refused");
    s.rest();
    assert!(base.to_vec()? == data, "there is room again");
    assert!(refused.barrier().is_err());
    Ok(())
}

type Meanwhile = fn(&Cache<Interrupted>) -> Result<(), StorageError>;

/// At the first long write: runs `meanwhile` on the cache above, then writes, or fails; with `is_late` it has written before.
struct Interrupted {
    below: Arc<Memory>,
    above: OnceLock<Weak<Cache<Interrupted>>>,
    is_armed: Arc<AtomicBool>,
    fails: bool,
    is_late: bool,
    meanwhile: Meanwhile,
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupted")
    }
}

impl Storage for Interrupted {
    zonda_storage::forward! { this => this.below; read_at, read_ranges, fill_at, len, set_len, stamp }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.write_ranges(&[WriteRange { at, data }])
    }
    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        let is_long = ranges.iter().any(|range| range.data.len() >= 16 << 10);
        if is_long && self.is_armed.swap(false, Ordering::Relaxed) {
            let above = self.above.get().and_then(Weak::upgrade).expect("the cache");
            if self.is_late {
                self.below.write_ranges(ranges)?;
                return (self.meanwhile)(&above);
            }
            (self.meanwhile)(&above)?;
            if !self.fails {
                return self.below.write_ranges(ranges);
            }
            let (path, errno) = (Path::new("device").into(), 5);
            return Err(StorageError::Io { path, op: Op::Write, at: 0, len: 0, errno });
        }
        self.below.write_ranges(ranges)
    }
    fn advise(&self, _: Advice) {}
    fn rest(&self) {}
    fn barrier(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn sync(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn invalidate(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

/// Bytes of the element that is laid, 64 KiB of it from byte 3 on.
const ELEMENT: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// A cache above an empty memory, and what arms it.
fn interruptible(
    (fails, is_late): (bool, bool),
    meanwhile: Meanwhile,
) -> (Arc<Cache<Interrupted>>, Arc<Memory>, Arc<AtomicBool>) {
    let below = Arc::new(Memory::new());
    let is_armed = Arc::new(AtomicBool::new(false));
    let inner = Interrupted {
        below: Arc::clone(&below),
        above: OnceLock::new(),
        is_armed: Arc::clone(&is_armed),
        fails,
        is_late,
        meanwhile,
    };
    let cache = Arc::new_cyclic(|this| {
        inner.above.set(Weak::clone(this)).expect("the only cache");
        Cache::new(inner, CacheShape::new(1, 32).unwrap()).unwrap()
    });
    (cache, below, is_armed)
}

/// A file of fill values, into which a long write failed while `meanwhile` was done; what is below after a sync.
fn interrupted(meanwhile: Meanwhile) -> Vec<u8> {
    let (cache, below, is_armed) = interruptible((true, false), meanwhile);
    cache.fill_at(3, 32 << 10, &ELEMENT).unwrap();
    cache.fill_at(3 + (32 << 10), 32 << 10, &ELEMENT).unwrap();
    is_armed.store(true, Ordering::Relaxed);
    assert!(cache.write_at(100, &[9; 32 << 10]).is_err());
    cache.sync().unwrap();
    below.to_vec().unwrap()
}

fn filled(len: usize) -> Vec<u8> {
    (0..len).map(|at| if at < 3 { 0 } else { ELEMENT[(at - 3) % 8] }).collect()
}

#[test]
fn a_write_that_failed_leaves_fill_values_as_they_were() {
    assert!(interrupted(|_| Ok(())) == filled(3 + (64 << 10)));
}

/// A cut between a write's beginning and its failure: what it took of fill values does not come back behind the cut.
#[test]
fn a_write_that_failed_makes_no_file_longer_that_was_cut_meanwhile() {
    assert!(interrupted(|cache| cache.set_len(8292)) == filled(8292));
    assert!(interrupted(|cache| cache.set_len(50)) == filled(50));
    // In the middle of a page, and longer again: what lies behind the cut is zeros.
    let expected = |cut: usize| [filled(cut), vec![0; 40_000 - cut]].concat();
    let longer = interrupted(|cache| cache.set_len(9000).and_then(|()| cache.set_len(40_000)));
    assert!(longer == expected(9000));
}

/// What was put there meanwhile stays, and the fill values around it are there.
#[test]
fn a_write_that_failed_lays_fill_values_around_what_was_put_meanwhile() {
    let put = |bytes: &[u8]| {
        let mut expected = filled(3 + (64 << 10));
        expected[5000..5000 + bytes.len()].copy_from_slice(bytes);
        expected
    };
    assert!(interrupted(|cache| cache.write_at(5000, &[7; 10])) == put(&[7; 10]));
    // It is below, and its page forgotten, when the first write fails.
    let below = interrupted(|cache| {
        cache.write_at(5000, &[7; 10])?;
        cache.sync()?;
        for page in 20..60 {
            cache.read_at(page * 4096, &mut [0; 1])?;
            cache.write_at(100_000 + page * 4096, &[0])?;
        }
        cache.set_len(3 + (64 << 10))
    });
    assert!(below == put(&[7; 10]));
    assert!(interrupted(|cache| cache.write_at(5000, &[7; 20 << 10])) == put(&[7; 20 << 10]));
    // Read meanwhile, when nothing was there.
    let below = interrupted(|cache| cache.read_at(4096, &mut [0; 4096]).map(drop));
    assert!(below == filled(3 + (64 << 10)));
}

/// Pages that came in while a long write was on its way past them, when its data were not there yet, show those data after it.
#[test]
fn what_was_read_during_a_long_write_is_not_shown_after_it() {
    const LEN: usize = 32 << 10;
    let meanwhile: [Meanwhile; 3] = [
        |cache| cache.read_at(4096, &mut [0; 4096]).map(drop),
        |cache| cache.read_at(5000, &mut [0; 10]).map(drop),
        |cache| {
            (0..LEN as u64 / 512).try_for_each(|n| cache.read_at(n * 512, &mut [0; 512]).map(drop))
        },
    ];
    for meanwhile in meanwhile {
        let (cache, below, is_armed) = interruptible((false, false), meanwhile);
        below.write_at(0, &[1; LEN + 4096]).unwrap();
        cache.invalidate().unwrap();
        let mut expected = vec![1; LEN + 4096];
        is_armed.store(true, Ordering::Relaxed);
        cache.write_at(1000, &[9; LEN]).unwrap();
        assert!(!is_armed.load(Ordering::Relaxed), "the write went past the cache");
        expected[1000..1000 + LEN].fill(9);
        for (number, part) in expected.chunks(512).enumerate() {
            let mut got = [0; 512];
            cache.read_at(number as u64 * 512, &mut got).unwrap();
            assert!(got == part, "byte {}", number * 512);
        }
        cache.sync().unwrap();
        assert!(below.to_vec().unwrap() == expected);
    }
}

/// What was put, and is below, when a long write over it is there but has not returned: that is the newer one, and not to be
/// hidden by the older.
#[test]
fn what_was_put_over_a_long_write_that_is_below_is_shown_after_it() {
    let meanwhile: [Meanwhile; 2] = [
        |cache| cache.write_at(5000, &[7; 10]).and_then(|()| cache.sync()),
        |cache| {
            cache
                .write_at(4096, &[7; 20 << 10])
                .and_then(|()| cache.read_at(5000, &mut [0; 10]).map(drop))
        },
    ];
    for meanwhile in meanwhile {
        let (cache, below, is_armed) = interruptible((false, true), meanwhile);
        below.write_at(0, &[1; 40 << 10]).unwrap();
        cache.invalidate().unwrap();
        is_armed.store(true, Ordering::Relaxed);
        cache.write_at(1000, &[9; 32 << 10]).unwrap();
        let mut got = [0; 10];
        cache.read_at(5000, &mut got).unwrap();
        let mut there = [0; 10];
        below.read_at(5000, &mut there).unwrap();
        assert_eq!((got, there), ([7; 10], [7; 10]));
    }
}

//! What the cache promises beyond being a storage: how few calls it makes.

use std::sync::Arc;
use zonda_storage::backend::Memory;
use zonda_storage::layer::{Cache, CacheShape, Count, CountHandle};
use zonda_storage::{Handles, Spec, Storage, StorageError};
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

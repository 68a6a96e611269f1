//! Writes, tables, space and filters that fail: what was put is not lost, what is stored stays.

mod arrays;
mod written;

use std::path::Path;
use std::sync::atomic::Ordering;

use arrays::Random;
use written::{File, Recipe, Turn};
use zonda_chunk::{ChunkError, ElementEncoding, Engine, FilterError};
use zonda_convert::Converted;
use zonda_model::Hyperslab;
use zonda_storage::Storage;

fn recipe(filters: &[u32], most: &[u64], chunk: &[u64]) -> Recipe {
    Recipe {
        chunk: chunk.to_vec(),
        elem: 4,
        filters: filters.to_vec(),
        optional: false,
        fill: vec![9, 8, 7, 6],
        most: most.to_vec(),
        fixed: most.iter().enumerate().map(|(d, _)| d > 0).collect(),
        unfiltered_edges: false,
    }
}

fn copy(src: &[u8], dst: &mut [u8]) -> Converted {
    dst.copy_from_slice(src);
    Converted::default()
}

/// What fails.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Write,
    Insert,
    Allocate,
}

/// Puts of all kinds, of which the n-th write (or whatever) fails and is then tried again. How
/// often something failed.
fn with_fault(fault: Fault, n: i64, threads: usize, filters: &[u32], limit: u64) -> usize {
    let mut file = File::new(&Engine::new(threads, 64 << 20), limit);
    file.add(&recipe(filters, &[40, 33], &[5, 8]), Turn::default());
    file.add(&recipe(filters, &[700], &[64]), Turn::default());
    match fault {
        Fault::Write => file.storage.fails_in.store(n, Ordering::SeqCst),
        Fault::Insert => {
            file.arrays.iter().for_each(|array| array.table.fails_in.store(n, Ordering::SeqCst));
        }
        Fault::Allocate => file.space.fails_in.store(n, Ordering::SeqCst),
    }
    let mut random = Random(5);
    let mut failed = 0;
    for step in 0..24 {
        let (index, start, count) = match step % 6 {
            0 => (0, vec![0, 0], vec![10, 33]),
            1 => (0, vec![random.below(20) as usize, 0], vec![7, 20]),
            2 => (1, vec![random.below(300) as usize], vec![200]),
            3 => (0, vec![20 + step / 2, 3], vec![1, 1]),
            4 => (0, vec![random.below(30) as usize, 3], vec![10, 30]),
            _ => (1, vec![0], vec![640]),
        };
        let src: Vec<u8> =
            (0..count.iter().product::<usize>() * 4).map(|_| random.next() as u8).collect();
        let slab = Hyperslab { start: &start, count: &count, stride: None };
        for attempt in 0.. {
            let raw = ElementEncoding::Raw { elem_size: 4 };
            let result = file.put(index, &slab, raw, &copy, &src);
            // All that is stored can be read, whatever was under way.
            (0..2).for_each(|index| drop(file.reopened(index).expect("stored chunks are whole")));
            match result {
                Ok(()) => break,
                Err(error) => {
                    assert!(attempt < 3 && is_told(&error), "{error}");
                    failed += 1;
                }
            }
        }
        (0..2).for_each(|index| file.check_all(index));
        if step % 9 == 8 {
            failed += flush(&mut file);
        }
    }
    failed += flush(&mut file);
    file.check_stored();
    failed
}

fn is_told(error: &ChunkError) -> bool {
    matches!(error, ChunkError::Storage(error) if error.raw_os_error() == 28)
        || matches!(error, ChunkError::Table(error) if error.to_string() == "told to fail")
}

/// Flushes until nothing fails; nothing is lost meanwhile. How often it failed.
fn flush(file: &mut File) -> usize {
    let mut failed = 0;
    while let Err(error) = file.flush() {
        assert!(failed < 3 && is_told(&error), "{error}");
        assert!(file.writer.is_dirty());
        (0..2).for_each(|index| file.check_all(index));
        failed += 1;
    }
    failed
}

#[test]
fn whatever_fails_can_be_tried_again() {
    for filters in [&[][..], &[2, 1]] {
        for fault in [Fault::Write, Fault::Insert, Fault::Allocate] {
            // With more memory, chunks of the second array wait when they are complete.
            for (threads, limit, least) in [(1, 6000, 20), (3, 6000, 20), (12, 8 << 20, 2)] {
                let mut n = 1;
                while with_fault(fault, n, threads, filters, limit) > 0 {
                    n += 1;
                }
                assert!(n > least, "{fault:?} {filters:?} {limit}: {n} were tried");
            }
        }
    }
}

/// A put whose write fails leaves the chunks that other puts left in memory.
#[test]
fn a_full_disk_keeps_what_waits() {
    let mut file = File::new(&Engine::new(2, 64 << 20), 1 << 20);
    let index = file.add(&recipe(&[1], &[100, 50], &[10, 50]), Turn::default());
    file.put_raw(index, &[3, 0], &[4, 50], &[1; 800]);
    file.storage.fails_in.store(1, Ordering::SeqCst);
    assert!(file.flush().is_err());
    assert!(file.writer.is_dirty() && file.space.used.is_empty());
    file.check_all(index);
    assert!(file.flush().is_ok());
    assert!(!file.writer.is_dirty());
    file.check_stored();
    // Still there for more, and stored once more when it is complete.
    assert!(file.writer.pending_bytes() >= 2000);
    file.put_raw(index, &[0, 0], &[3, 50], &[2; 600]);
    file.put_raw(index, &[7, 0], &[3, 50], &[3; 600]);
    assert_eq!(file.writer.pending_bytes(), 0);
    assert_eq!(file.arrays[index].turn.undone.load(Ordering::SeqCst), 0);
    file.check_stored();
}

/// Rows of chunks for which there is no memory.
fn many(file: &mut File, index: usize) {
    for i in 0..10 {
        for x in 0..20 {
            file.put_raw(index, &[i, 50 * x], &[1, 50], &[i as u8 * 20 + x as u8; 200]);
        }
    }
}

/// Where the file without a name takes nothing, or no more, chunks stay in memory, and are all stored.
#[test]
fn a_full_disk_keeps_what_has_no_memory() {
    for n in [1, 5, 60] {
        let engine = Engine::new(2, 8000);
        let mut file = File::new(&engine, 1 << 20);
        let index = file.add(&recipe(&[1], &[20, 1000], &[20, 50]), Turn::default());
        file.spill.fails_in.store(n, Ordering::SeqCst);
        many(&mut file, index);
        assert!(file.spill.fails_in.load(Ordering::SeqCst) == 0, "no more is tried");
        file.check_all(index);
        file.flush().expect("flushes");
        file.check_stored();
        // Now it is tried again.
        many(&mut file, index);
        assert!(file.writer.spilled_bytes() > 0);
        file.check_all(index);
        let held = engine.bytes_in_use();
        assert!(held <= 8000 + 4200, "{held}");
        drop(file);
        assert_eq!(engine.bytes_in_use(), 0);
    }
}

/// What is sent away leaves the device room for all chunks that wait, and so do the chunks sent after it.
#[test]
fn a_small_disk_is_not_filled_by_what_waits() {
    // All chunks are 80,000 bytes; the memory has room for two.
    for device in [60_000, 90_000, 130_000, 1 << 20] {
        let engine = Engine::new(2, 8000);
        let mut file = File::new(&engine, 1 << 20);
        let index = file.add(&recipe(&[1], &[20, 1000], &[20, 50]), Turn::default());
        file.spill.device.store(device, Ordering::SeqCst);
        let mut taken = 0;
        for x in 0..20 {
            file.put_raw(index, &[0, 50 * x], &[1, 50], &[x as u8; 200]);
            let (now, waiting) = (file.spill.len().expect("a length"), file.writer.pending_bytes());
            let left = device - now;
            assert!(now == taken || left >= waiting + device / 100, "{device}: {left} {waiting}");
            taken = now;
        }
        let is_all = file.spill.len().expect("a length") >= 70_000;
        assert!(taken > 0 && is_all == (device == 1 << 20), "{device}: {taken}");
        many(&mut file, index);
        file.check_all(index);
        file.flush().expect("flushes");
        file.check_stored();
    }
}

/// The device of the data is full: what is away comes back to memory, which leaves its room to the data, and the call is made
/// again. Nothing goes away any more.
#[test]
fn what_is_away_leaves_its_room_to_the_data() {
    let engine = Engine::new(2, 8000);
    let mut file = File::new(&engine, 1 << 20);
    let index = file.add(&recipe(&[1], &[20, 1000], &[20, 50]), Turn::default());
    many(&mut file, index);
    assert!(file.writer.spilled_bytes() > 0);
    file.storage.fails_in.store(1, Ordering::SeqCst);
    file.flush().expect("there is room now");
    assert!(file.storage.fails_in.load(Ordering::SeqCst) <= 0, "a write failed");
    assert_eq!(file.writer.spilled_bytes(), 0);
    file.check_all(index);
    file.check_stored();
    many(&mut file, index);
    assert_eq!(file.writer.spilled_bytes(), 0);
    // Two failures are told: the file can be flushed when there is room.
    file.storage.fails_in.store(1, Ordering::SeqCst);
    assert!(file.flush().is_err());
    file.flush().expect("flushes");
    file.check_all(index);
    drop(file);
    assert_eq!(engine.bytes_in_use(), 0);
}

/// A chunk that does not come back is an error of the call that needs it, and no other.
#[test]
fn a_spilled_chunk_that_is_lost_is_told() {
    let mut file = File::new(&Engine::new(2, 8000), 1 << 20);
    let index = file.add(&recipe(&[1], &[20, 1000], &[20, 50]), Turn::default());
    many(&mut file, index);
    assert!(file.writer.spilled_bytes() > 0);
    file.spill.memory.set_len(0).expect("cut");
    let id = file.arrays[index].id;
    let slab = Hyperslab { start: &[10, 0], count: &[1, 50], stride: None };
    let encode = ElementEncoding::Raw { elem_size: 4 };
    let error = file.writer.put(id, &[20, 1000], &slab, encode, &[1; 200], &mut file.space);
    let error = error.expect_err("its other rows are lost");
    assert!(matches!(&error, ChunkError::Spill { chunk, .. } if chunk[..] == [0, 0]), "{error}");
    assert!(error.to_string().contains("temporary file"), "{error}");
    assert!(file.flush().is_err());
    // The last one is in memory.
    let slab = Hyperslab { start: &[10, 950], count: &[1, 50], stride: None };
    let encode = ElementEncoding::Raw { elem_size: 4 };
    let put = file.writer.put(id, &[20, 1000], &slab, encode, &[1; 200], &mut file.space);
    assert!(put.is_ok());
}

/// Complete chunks that wait for others, and that the storage refuses then, stay; and no more are
/// taken until it takes them.
#[test]
fn a_full_disk_keeps_complete_chunks() {
    let mut file = File::new(&Engine::new(4, 64 << 20), 8 << 20);
    let index = file.add(&recipe(&[1], &[100, 65536], &[1, 65536]), Turn::default());
    let mut failed = 0;
    for i in 0..100 {
        let (start, count) = ([i, 0], [1, 65536]);
        let slab = Hyperslab { start: &start, count: &count, stride: None };
        let src = vec![i as u8; 65536 * 4];
        if i == 20 {
            file.storage.fails_in.store(1, Ordering::SeqCst);
        }
        let before = failed;
        while let Err(error) =
            file.put(index, &slab, ElementEncoding::Raw { elem_size: 4 }, &copy, &src)
        {
            assert!(is_told(&error), "{error}");
            failed += 1;
            if failed == 1 {
                // Still no room: no chunk more is taken.
                let waiting = file.writer.pending_bytes();
                file.storage.fails_in.store(1, Ordering::SeqCst);
                let more = [i + 1, 0];
                let slab = Hyperslab { start: &more, count: &count, stride: None };
                let raw = ElementEncoding::Raw { elem_size: 4 };
                assert!(file.put(index, &slab, raw, &copy, &src).is_err());
                assert_eq!(file.writer.pending_bytes(), waiting);
                file.storage.fails_in.store(0, Ordering::SeqCst);
            }
        }
        assert!(before == failed || file.writer.pending_bytes() < 2 << 20);
    }
    assert_eq!(failed, 1);
    file.check_all(index);
    file.flush().expect("flushes");
    file.check_stored();
}

#[test]
fn a_filter_that_refuses_is_skipped_or_an_error() {
    for optional in [true, false] {
        let mut file = File::new(&Engine::new(2, 64 << 20), 1 << 20);
        let recipe = Recipe { optional, ..recipe(&[2, 9999], &[30, 50], &[10, 50]) };
        let index = file.add(&recipe, Turn { refuses: Some(77), ..Turn::default() });
        let mut src = vec![5; 30 * 50 * 4];
        src[2000..4000].fill(77);
        let slab = Hyperslab { start: &[0, 0], count: &[30, 50], stride: None };
        let result = file.put(index, &slab, ElementEncoding::Raw { elem_size: 4 }, &copy, &src);
        if optional {
            result.expect("puts");
            let masks: Vec<u32> = {
                let chunks = file.arrays[index].table.chunks.lock().unwrap();
                chunks.values().map(|at| at.mask).collect()
            };
            assert_eq!(masks, [0, 2, 0]);
            file.check_stored();
        } else {
            let error = result.expect_err("a filter that must be applied");
            let refused = FilterError::Plugin { id: 9999 };
            assert!(
                matches!(&error, ChunkError::Encode { chunk, error } if *chunk == [1, 0] && *error == refused),
                "{error}"
            );
            // The chunk before is stored, those behind are not.
            assert_eq!(file.arrays[index].table.chunks.lock().unwrap().len(), 1);
        }
    }
}

/// A chunk that waited, and that a filter refuses then, is given up; those behind it are stored.
#[test]
fn a_chunk_that_waited_and_is_refused_stops_no_others() {
    let mut file = File::new(&Engine::new(8, 64 << 20), 8 << 20);
    let recipe = recipe(&[9999], &[12, 50], &[1, 50]);
    let index = file.add(&recipe, Turn { refuses: Some(77), ..Turn::default() });
    for i in 0..12 {
        let byte = if i == 3 || i == 7 { 77 } else { i as u8 };
        file.put_raw(index, &[i, 0], &[1, 50], &[byte; 200]);
    }
    assert_eq!(file.writer.pending_bytes(), 12 * 200);
    let error = file.flush().expect_err("a filter that must be applied");
    assert!(matches!(&error, ChunkError::Encode { chunk, .. } if *chunk == [3, 0]), "{error}");
    file.flush().expect("the rest");
    let keys: Vec<u64> = {
        let chunks = file.arrays[index].table.chunks.lock().unwrap();
        chunks.keys().map(|key| key[0]).collect()
    };
    assert_eq!(keys, [0, 1, 2, 4, 5, 6, 8, 9, 10, 11]);
    // They can be put again.
    for i in [3, 7] {
        file.put_raw(index, &[i, 0], &[1, 50], &[i as u8; 200]);
    }
    file.flush().expect("flushes");
    file.check_stored();
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let mut file = File::new(&Engine::new(1, 64 << 20), 1 << 20);
    let index = file.add(&recipe(&[1], &[100, 50], &[10, 20]), Turn::default());
    let id = file.arrays[index].id;
    let space = &mut file.space;
    let mut put = |extent: &[u64], start: &[usize], count: &[usize], elem_size, n: usize| {
        let slab = Hyperslab { start, count, stride: None };
        let raw = ElementEncoding::Raw { elem_size };
        file.writer.put(id, extent, &slab, raw, &vec![0; n], space)
    };
    let refused = |result: Result<Converted, ChunkError>| {
        assert!(matches!(result, Err(ChunkError::Request { .. })), "{result:?}");
    };
    refused(put(&[10, 50], &[0, 0], &[1, 51], 4, 204));
    refused(put(&[10, 50], &[10, 0], &[1, 1], 4, 4));
    refused(put(&[10, 60], &[0, 55], &[1, 1], 4, 4));
    refused(put(&[10, 50], &[0, 0], &[2, 2], 4, 15));
    refused(put(&[10, 50], &[0, 0], &[2, 2], 2, 8));
    refused(put(&[10], &[0], &[2], 4, 8));
    refused(put(&[10, 50], &[usize::MAX, 0], &[2, 2], 4, 16));
    assert!(put(&[10, 50], &[0, 0], &[0, 2], 4, 0).is_ok());
    assert!(put(&[10, 50], &[9, 49], &[1, 1], 4, 4).is_ok());
    refused(put(&[10, 50], &[9, 50], &[1, 1], 4, 4));
    refused(put(&[9, 50], &[9, 49], &[1, 1], 4, 4));
    file.writer.remove(id);
    let slab = Hyperslab { start: &[0, 0], count: &[1, 1], stride: None };
    let raw = ElementEncoding::Raw { elem_size: 4 };
    refused(file.writer.put(id, &[10, 50], &slab, raw, &[0; 4], space));
    assert_eq!(file.writer.pending_bytes(), 0);
}

/// A panic in the caller's conversion takes nothing with it.
#[test]
fn a_panic_leaves_what_waits() {
    for threads in [1, 3] {
        let mut file = File::new(&Engine::new(threads, 64 << 20), 1 << 20);
        let index = file.add(&recipe(&[1], &[1000, 50], &[200, 50]), Turn::default());
        let src = vec![3; 900 * 50 * 4];
        file.put_raw(index, &[5, 0], &[190, 50], &src[..190 * 200]);
        let (id, extent) = (file.arrays[index].id, [1000, 50]);
        let panics = |src: &[u8], dst: &mut [u8]| {
            assert!(src[0] != 3, "told to panic");
            dst.fill(0);
            Converted::default()
        };
        let custom = ElementEncoding::Custom { mem_size: 4, file_size: 4, run: &panics };
        for (start, n) in [(150, 850), (0, 1000), (0, 2)] {
            let slab = Hyperslab { start: &[start, 0], count: &[n, 50], stride: None };
            let src = vec![3; n * 200];
            let (writer, space) = (&mut file.writer, &mut file.space);
            let put = || writer.put(id, &extent, &slab, custom, &src, space).map(drop);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(put));
            assert!(result.is_err());
            file.arrays[index].extent = vec![1000, 50];
            file.check_all(index);
        }
        assert!(file.flush().is_ok());
        file.check_stored();
    }
}

/// The device of the data is full, and chunks of another file of the process wait on it: they come to memory, whoever has that file.
#[test]
fn what_others_have_away_leaves_its_room_to_the_data() {
    let here = std::env::temp_dir();
    for (path, is_same) in [(here.as_path(), true), (Path::new("/proc"), false)] {
        let engine = Engine::new(2, 8000);
        let mut other = File::at(&engine, 1 << 20, path);
        let away = other.add(&recipe(&[1], &[20, 1000], &[20, 50]), Turn::default());
        many(&mut other, away);
        let bytes = other.spill.memory.len().expect("a length");
        assert!(other.writer.spilled_bytes() > 0 && bytes > 0);
        let roomy = Engine::new(2, 1 << 20);
        let mut file = File::at(&roomy, 1 << 20, &here);
        let index = file.add(&recipe(&[1], &[20, 1000], &[20, 50]), Turn::default());
        many(&mut file, index);
        assert_eq!(file.writer.spilled_bytes(), 0);
        file.storage.fails_in.store(1, Ordering::SeqCst);
        assert_eq!(file.flush().is_ok(), is_same);
        if is_same {
            // The file that it was in is of no use to anybody.
            let garbage = vec![0xee; usize::try_from(bytes).expect("a length")];
            other.spill.memory.write_at(0, &garbage).expect("writes");
            file.check_stored();
        }
        other.check_all(away);
        other.flush().expect("flushes");
        other.check_stored();
        other.check_all(away);
        drop((file, other));
        assert_eq!((engine.bytes_in_use(), roomy.bytes_in_use()), (0, 0));
    }
}

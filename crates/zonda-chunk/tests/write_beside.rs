//! Runs of chunks that several threads write beside each other: the bytes are those of one thread, and errors, full devices and
//! panics leave what one thread would leave.

mod arrays;
mod written;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use written::{File, Recipe, Turn};
use zonda_chunk::{ChunkError, ElementEncoding, Engine};
use zonda_convert::Converted;
use zonda_model::Hyperslab;

/// Bytes of an element: a page, so that few of them are many bytes.
const ELEM: usize = 4096;
/// Elements of a chunk, and of the array.
const CHUNK: usize = 64;
const ALL: usize = 48 * CHUNK;

/// A file with one array whose chunks keep their length in the storage, on a device that takes a while for each write.
fn file(threads: usize, slow_ms: u64) -> File {
    file_of(threads, slow_ms, CHUNK)
}

/// The same, with so many elements in a chunk.
fn file_of(threads: usize, slow_ms: u64, chunk: usize) -> File {
    let mut file = File::new(&Engine::new(threads, 256 << 20), 1 << 20);
    let recipe = Recipe {
        chunk: vec![chunk as u64],
        elem: ELEM,
        filters: vec![9999],
        optional: false,
        fill: Vec::new(),
        most: vec![ALL as u64],
        fixed: vec![true],
        unfiltered_edges: false,
    };
    assert_eq!(file.add(&recipe, Turn::default()), 0);
    file.storage.slow_ms.store(slow_ms, Ordering::SeqCst);
    file
}

/// Values of all elements; `round` makes them others.
fn values(round: u8) -> Vec<u8> {
    (0..ALL * ELEM).map(|i| (i / ELEM) as u8 ^ (i % 251) as u8 ^ round).collect()
}

fn put(file: &mut File, src: &[u8]) -> Result<(), ChunkError> {
    let slab = Hyperslab { start: &[0], count: &[ALL], stride: None };
    let copy = |src: &[u8], dst: &mut [u8]| {
        dst.copy_from_slice(src);
        Converted::default()
    };
    file.put(0, &slab, ElementEncoding::Raw { elem_size: ELEM }, &copy, src)
}

fn is_full(error: &ChunkError) -> bool {
    matches!(error, ChunkError::Storage(error) if error.raw_os_error() == 28)
}

/// How many chunks are in the table, which are the first ones.
fn n_stored(file: &File) -> usize {
    let chunks = file.arrays[0].table.chunks.lock().unwrap();
    for (i, key) in chunks.keys().enumerate() {
        assert_eq!(key[..], [i as u64], "a chunk is stored and one before it is not");
    }
    chunks.len()
}

#[test]
fn many_threads_write_what_one_writes() {
    let mut alone = file(1, 0);
    put(&mut alone, &values(0)).unwrap();
    put(&mut alone, &values(1)).unwrap();
    assert_eq!(alone.storage.most_writers.load(Ordering::SeqCst), 1);
    let mut was_beside = false;
    for slow_ms in [0, 3, 10, 30] {
        let mut many = file(6, slow_ms);
        put(&mut many, &values(0)).unwrap();
        put(&mut many, &values(1)).unwrap();
        many.check_stored();
        assert!(many.image() == alone.image(), "the same bytes at the same places");
        let most = many.storage.most_writers.load(Ordering::SeqCst);
        assert!(most <= 4, "{most} threads wrote");
        was_beside |= most > 1;
    }
    assert!(was_beside, "one thread wrote at a time, however long it took");
}

/// Threads of which there are so many that each claims more at a time: puts and reads of many small chunks.
#[test]
fn more_threads_claim_more_at_a_time() {
    let mut alone = file_of(1, 0, 1);
    put(&mut alone, &values(0)).unwrap();
    for threads in [16, 24, 130] {
        let mut many = file_of(threads, 1, 1);
        put(&mut many, &values(0)).unwrap();
        many.check_stored();
        assert!(many.image() == alone.image(), "the same bytes at the same places");
        // By as many threads.
        many.check_all(0);
        // One that cannot be written has nothing behind it, however much was claimed.
        let mut full = file_of(threads, 1, 1);
        full.storage.full_at.store(1000 * ELEM as u64, Ordering::SeqCst);
        assert!(is_full(&put(&mut full, &values(0)).unwrap_err()));
        assert_eq!(full.space.used.len(), n_stored(&full));
    }
}

/// Whichever write fails: what is before it is stored, nothing else takes space, and the same put again makes up for it.
#[test]
fn a_write_that_fails_beside_others_loses_nothing() {
    for n in 1.. {
        let mut file = file(6, 2);
        file.storage.fails_in.store(n, Ordering::SeqCst);
        let Err(error) = put(&mut file, &values(0)) else {
            assert!(n > 3, "{n} were tried");
            break;
        };
        assert!(is_full(&error), "{error}");
        let stored = n_stored(&file);
        assert!(stored < ALL / CHUNK);
        assert_eq!(file.space.used.len(), stored, "space in use is that of chunks");
        put(&mut file, &values(0)).unwrap();
        file.check_stored();
    }
}

/// The same where it is no chance which writes fail: all that the device has no room for.
#[test]
fn a_full_device_has_the_chunks_that_fit() {
    let bytes = (CHUNK * ELEM) as u64;
    for fit in [0, 1, 7, 20, 47] {
        let mut file = file(6, 2);
        file.storage.full_at.store(fit * bytes + 1, Ordering::SeqCst);
        let error = put(&mut file, &values(0)).unwrap_err();
        assert!(is_full(&error), "{error}");
        let stored = n_stored(&file);
        // A run is not cut where the device ends.
        assert!(stored as u64 <= fit, "{stored} of {fit}");
        assert_eq!(file.space.used.len(), stored);
        // More room, and the same again.
        file.storage.full_at.store(0, Ordering::SeqCst);
        put(&mut file, &values(0)).unwrap();
        file.check_stored();
    }
}

/// A table that refuses a chunk while later ones are being written.
#[test]
fn a_chunk_that_cannot_be_entered_stops_those_behind_it() {
    for n in [1, 5, 17, 48] {
        let mut file = file(6, 2);
        file.arrays[0].table.fails_in.store(n, Ordering::SeqCst);
        let error = put(&mut file, &values(0)).unwrap_err();
        assert!(matches!(&error, ChunkError::Table(error) if error.to_string() == "told to fail"));
        assert_eq!(n_stored(&file), n as usize - 1);
        assert_eq!(file.space.used.len(), n as usize - 1);
        put(&mut file, &values(0)).unwrap();
        file.check_stored();
    }
}

/// One that has no place: those before it, which are being written then, are stored.
#[test]
fn a_chunk_without_a_place_leaves_those_before_it() {
    for n in [1, 5, 17, 48] {
        let mut file = file(6, 2);
        file.space.fails_in.store(n, Ordering::SeqCst);
        let error = put(&mut file, &values(0)).unwrap_err();
        assert!(matches!(&error, ChunkError::Table(error) if error.to_string() == "told to fail"));
        assert_eq!(n_stored(&file), n as usize - 1);
        put(&mut file, &values(0)).unwrap();
        file.check_stored();
    }
}

/// A panic in a write, on whichever thread, is the caller's, and nobody waits for that thread.
#[test]
fn a_write_that_panics_ends_the_put() {
    for n in 1..6 {
        let mut file = file(6, 5);
        file.storage.panics_in.store(n, Ordering::SeqCst);
        let put = catch_unwind(AssertUnwindSafe(|| put(&mut file, &values(0))));
        assert!(put.is_err(), "write {n} panicked");
    }
}

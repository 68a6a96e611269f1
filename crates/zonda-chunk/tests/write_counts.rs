//! How often chunks are filtered, loaded and written, and what puts and reads make of each other.

mod arrays;
mod written;

use std::sync::atomic::Ordering;

use written::{File, Recipe, Turn};
use zonda_chunk::filter::{ChunkShape, Pipeline};
use zonda_chunk::{ArrayShape, ChunkError, ElementEncoding, Engine, NewArray, StoredChunks};
use zonda_model::Hyperslab;

fn recipe(filters: &[u32], most: &[u64], chunk: &[u64], fixed: &[bool]) -> Recipe {
    Recipe {
        chunk: chunk.to_vec(),
        elem: 4,
        filters: filters.to_vec(),
        optional: false,
        fill: vec![],
        most: most.to_vec(),
        fixed: fixed.to_vec(),
        unfiltered_edges: false,
    }
}

fn file(threads: usize, limit: u64) -> File {
    File::new(&Engine::new(threads, 64 << 20), limit)
}

fn counts(file: &File, index: usize) -> (usize, usize) {
    let turn = &file.arrays[index].turn;
    (turn.done.load(Ordering::SeqCst), turn.undone.load(Ordering::SeqCst))
}

fn record(i: usize, n: usize) -> Vec<u8> {
    (0..n).map(|k| (i * 7 + k / 3) as u8).collect()
}

/// Records one by one into chunks of ten: each chunk is filtered when its last record is there.
#[test]
fn appended_records_filter_each_chunk_once() {
    for threads in [1, 3] {
        let mut file = file(threads, 1 << 20);
        let recipe = recipe(&[9999, 1], &[40, 30, 20], &[10, 12, 20], &[false, true, true]);
        let index = file.add(&recipe, Turn::default());
        for i in 0..40 {
            file.put_raw(index, &[i, 0, 0], &[1, 30, 20], &record(i, 2400));
            assert_eq!(counts(&file, index), ((i + 1) / 10 * 3, 0));
        }
        // The last rows of chunks reach beyond a dimension that cannot grow: they are complete too.
        assert_eq!(file.writer.pending_bytes(), 0);
        assert!(!file.writer.is_dirty());
        file.check_stored();
    }
}

/// Chunks that puts have all of, fewer than there are threads, wait until there are enough for all;
/// one that is put again is stored before.
#[test]
fn complete_chunks_wait_for_others() {
    let chunk = 64 * 1024 * 4;
    let mut file = file(4, 16 << 20);
    let index = file.add(
        &recipe(&[9999], &[40, 64, 1024], &[1, 64, 1024], &[false, true, true]),
        Turn::default(),
    );
    let put = |file: &mut File, i: usize, seed: usize| {
        file.put_raw(index, &[i, 0, 0], &[1, 64, 1024], &record(seed, chunk));
    };
    // 2 MiB are stored together.
    for i in 0..20 {
        put(&mut file, i, i);
        assert_eq!(counts(&file, index), ((i + 1) / 8 * 8, 0), "{i}");
        assert_eq!(file.writer.pending_bytes(), ((i + 1) % 8 * chunk) as u64);
        if i % 8 != 7 {
            // Read from memory.
            file.check(index, &Hyperslab { start: &[i, 3, 5], count: &[1, 2, 7], stride: None });
        }
    }
    // One that waits, then one that the file has: neither waits, so that places are as if none had.
    put(&mut file, 17, 50);
    assert_eq!(counts(&file, index), (21, 0));
    put(&mut file, 3, 51);
    assert_eq!((counts(&file, index), file.writer.is_dirty()), ((22, 0), false));
    // A part of one that waits: it is stored, and loaded.
    put(&mut file, 20, 52);
    file.put_raw(index, &[20, 5, 0], &[1, 1, 1024], &record(53, 4096));
    assert_eq!(counts(&file, index), (23, 1));
    // As many as there are threads do not wait.
    file.put_raw(index, &[21, 0, 0], &[4, 64, 1024], &record(54, 4 * chunk));
    assert_eq!(counts(&file, index), (27, 1));
    // Slices that make a chunk complete.
    for row in 0..64 {
        file.put_raw(index, &[30, row, 0], &[1, 1, 1024], &record(row, 4096));
    }
    assert_eq!(counts(&file, index), (27, 1));
    file.check_all(index);
    file.writer.store_complete(&mut file.space).expect("stores");
    assert_eq!((counts(&file, index).0, file.writer.is_dirty()), (28, true));
    // The one that was loaded.
    file.flush().expect("flushes");
    assert_eq!((counts(&file, index).0, file.writer.is_dirty()), (29, false));
    file.check_stored();
    file.check_all(index);
}

/// A flush stores what is there, and costs a chunk one filtering more; nothing is loaded again.
#[test]
fn flushes_between_records_load_nothing() {
    let mut file = file(2, 1 << 20);
    let recipe = recipe(&[9999], &[40, 30], &[10, 30], &[false, true]);
    let index = file.add(&recipe, Turn::default());
    for i in 0..40 {
        file.put_raw(index, &[i, 0], &[1, 30], &record(i, 120));
        if i % 10 == 4 {
            file.flush().expect("flushes");
            file.flush().expect("flushes");
        }
    }
    assert_eq!(counts(&file, index), (8, 0));
    file.check_stored();
}

/// With less room than a row of chunks has, chunks go, come back, and lose nothing.
#[test]
fn too_many_incomplete_chunks_go_and_come_back() {
    let mut file = file(2, 3 * 420);
    let recipe = recipe(&[9999], &[4, 50], &[10, 10], &[false, true]);
    let index = file.add(&recipe, Turn::default());
    for i in 0..4 {
        for x in 0..5 {
            file.put_raw(index, &[i, 10 * x], &[1, 10], &record(i, 40));
            assert!(file.writer.pending_bytes() <= 3 * 420);
        }
    }
    let (done, undone) = counts(&file, index);
    assert!(done >= 8 && undone >= 6, "{done} {undone}");
    file.flush().expect("flushes");
    file.check_stored();
}

#[test]
fn cells_one_by_one_filter_each_chunk_once() {
    let mut file = file(2, 1 << 20);
    let index = file.add(&recipe(&[9999, 2, 1], &[20, 21], &[10, 7], &[true; 2]), Turn::default());
    for y in 0..20 {
        for x in 0..21 {
            file.put_raw(index, &[y, x], &[1, 1], &record(y * 21 + x, 4));
        }
    }
    assert_eq!((counts(&file, index), file.writer.pending_bytes()), ((6, 0), 0));
    file.check_stored();
}

/// Unfiltered chunks keep their places, filtered ones never do.
#[test]
fn filtered_chunks_are_not_written_over() {
    for filters in [&[][..], &[9999]] {
        let mut file = file(2, 1 << 20);
        let index = file.add(&recipe(filters, &[30, 10], &[10, 10], &[true; 2]), Turn::default());
        file.put_raw(index, &[0, 0], &[30, 10], &record(0, 1200));
        let places = |file: &File| -> Vec<u64> {
            let chunks = file.arrays[index].table.chunks.lock().unwrap();
            chunks.values().map(|at| at.at).collect()
        };
        let before = places(&file);
        file.put_raw(index, &[0, 0], &[20, 10], &record(1, 800));
        file.put_raw(index, &[20, 3], &[1, 1], &record(2, 4));
        file.flush().expect("flushes");
        let after = places(&file);
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before == after, filters.is_empty());
        }
        file.check_stored();
    }
}

/// One write for many chunks side by side.
#[test]
fn chunks_are_written_together() {
    for filters in [&[][..], &[9999]] {
        let mut file = file(1, 1 << 20);
        let index =
            file.add(&recipe(filters, &[100, 100], &[10, 100], &[true; 2]), Turn::default());
        file.put_raw(index, &[0, 0], &[100, 100], &record(0, 40_000));
        assert_eq!(file.storage.writes.load(Ordering::SeqCst), 1);
        file.check_stored();
    }
}

/// Chunks go from one file into another as they are stored.
#[test]
fn stored_chunks_are_copied_as_they_are() {
    let recipe = recipe(&[9999, 2, 1], &[30, 10], &[10, 10], &[true; 2]);
    let mut from = file(2, 1 << 20);
    let source = from.add(&recipe, Turn::default());
    from.put_raw(source, &[0, 0], &[20, 10], &record(0, 800));
    let mut to = file(2, 1 << 20);
    let target = to.add(&recipe, Turn::default());
    to.put_raw(target, &[3, 0], &[2, 10], &record(3, 80));
    let array = from.writer.array(from.arrays[source].id).expect("there");
    let mut chunks = StoredChunks::default();
    array.stored_chunks(&[30, 10], &[[0, 0], [1, 0], [2, 0]], &mut chunks).expect("reads");
    assert_eq!(chunks.iter().map(|(key, ..)| key[0]).collect::<Vec<_>>(), [0, 1]);
    let written = to.storage.writes.load(Ordering::SeqCst);
    to.writer.put_stored(to.arrays[target].id, &chunks, &mut to.space).expect("puts");
    assert_eq!(to.storage.writes.load(Ordering::SeqCst), written + 1);
    to.arrays[target].model = from.arrays[source].model.clone();
    assert_eq!(to.writer.pending_bytes(), 0);
    assert_eq!((counts(&from, source), counts(&to, target)), ((2, 0), (0, 0)));
    to.check_all(target);
    to.check_stored();
}

/// Of chunks that cannot be written none is entered, and their places serve again.
#[test]
fn stored_chunks_that_cannot_be_written_leave_no_trace() {
    for filters in [&[][..], &[9999]] {
        let mut file = file(2, 1 << 20);
        let index = file.add(&recipe(filters, &[40, 10], &[10, 10], &[true; 2]), Turn::default());
        file.put_raw(index, &[0, 0], &[10, 10], &record(0, 400));
        let id = file.arrays[index].id;
        let mut chunks = StoredChunks::default();
        (0..4).for_each(|k| chunks.push(&[k, 0], 0, &[9; 400]));
        let before = counts(&file, index);
        file.storage.fails_in.store(1, Ordering::SeqCst);
        assert!(file.writer.put_stored(id, &chunks, &mut file.space).is_err());
        assert_eq!(counts(&file, index), before);
        let array = file.writer.array(id).expect("there");
        let mut there = StoredChunks::default();
        array.stored_chunks(&[40, 10], &[[0, 0], [1, 0]], &mut there).expect("reads");
        assert_eq!(there.iter().map(|(key, ..)| key[0]).collect::<Vec<_>>(), [0]);
        // One of another length is refused before any is written.
        chunks.push(&[4, 0], 1, &[9; 399]);
        let refused = file.writer.put_stored(id, &chunks, &mut file.space);
        assert!(matches!(refused, Err(ChunkError::Length { .. })), "{refused:?}");
    }
}

/// Chunks whose places lie in another order than their coordinates, with others between.
#[test]
fn stored_chunks_are_fetched_wherever_they_are() {
    let mut file = file(2, 1 << 20);
    let index = file.add(&recipe(&[9999], &[50, 10], &[10, 10], &[true; 2]), Turn::default());
    for k in [3, 1, 4, 0] {
        file.put_raw(index, &[k * 10, 0], &[10, 10], &record(k, 400));
    }
    let array = file.writer.array(file.arrays[index].id).expect("there");
    let mut chunks = StoredChunks::default();
    for keys in [&[0, 1, 2, 3, 4][..], &[1, 4], &[4, 1, 1], &[2], &[]] {
        let keys: Vec<[u64; 2]> = keys.iter().map(|&k| [k, 0]).collect();
        array.stored_chunks(&[50, 10], &keys, &mut chunks).expect("reads");
        let there = keys.iter().filter(|key| key[0] != 2);
        let expected: Vec<_> = there
            .map(|key| (key[0], record(key[0] as usize, 400).iter().map(|b| !b).collect()))
            .collect::<Vec<(u64, Vec<u8>)>>();
        let got: Vec<_> = chunks.iter().map(|(key, _, bytes)| (key[0], bytes.to_vec())).collect();
        assert_eq!(got, expected, "{keys:?}");
    }
    assert!(array.stored_chunks(&[50, 10], &[[0, 0, 0]], &mut chunks).is_err());
    assert_eq!(chunks.iter().count(), 0);
}

/// Puts into chunks that reads ahead are decoding at that moment.
#[test]
fn reads_ahead_do_not_bring_back_old_chunks() {
    let mut file = file(4, 1 << 20);
    let recipe = recipe(&[9999], &[64, 10, 10], &[4, 10, 10], &[true; 3]);
    let index = file.add(&recipe, Turn { slow_ms: 1, ..Turn::default() });
    file.put_raw(index, &[0, 0, 0], &[64, 10, 10], &record(0, 25_600));
    for round in 0..6 {
        for z in 0..60 {
            let layer = Hyperslab { start: &[z, 0, 0], count: &[1, 10, 10], stride: None };
            file.check(index, &layer);
            if z % 3 == 0 {
                // Whole chunks that come next, and one that only changes.
                let next = (z / 4 + 1) * 4;
                file.put_raw(index, &[next, 0, 0], &[4, 10, 10], &record(round + z, 1600));
                if z % 2 == 0 && next + 4 < 64 {
                    file.put_raw(index, &[next + 4, 3, 0], &[1, 2, 5], &record(round, 40));
                    file.flush().expect("flushes");
                }
            }
        }
    }
    file.check_all(index);
}

/// Chunks change between the look of a read ahead and its reads: what it then finds at their old places is not kept.
#[test]
fn reads_ahead_drop_what_changed_after_they_looked() {
    let mut file = file(2, 1 << 20);
    let recipe = recipe(&[9999], &[64, 10, 10], &[4, 10, 10], &[true; 3]);
    let index = file.add(&recipe, Turn::default());
    file.put_raw(index, &[0, 0, 0], &[64, 10, 10], &record(0, 25_600));
    file.flush().expect("flushes");
    let check = |file: &File, z| {
        file.check(index, &Hyperslab { start: &[z, 0, 0], count: &[1, 10, 10], stride: None });
    };
    let mut n_stopped = 0;
    for round in 1..=3 {
        let stopper = file.arrays[index].table.stop_next();
        (0..4).for_each(|chunk| check(&file, chunk * 4));
        if !stopper.has_one() {
            continue;
        }
        n_stopped += 1;
        for chunk in 4..16 {
            file.put_raw(
                index,
                &[chunk * 4, 0, 0],
                &[4, 10, 10],
                &record(round * 100 + chunk, 1600),
            );
        }
        file.flush().expect("flushes");
        stopper.let_go();
        // Time to read what it found, had it not been told.
        std::thread::sleep(std::time::Duration::from_millis(50));
        (0..64).for_each(|z| check(&file, z));
    }
    assert!(n_stopped > 0, "nothing was read ahead");
}

/// What is read of a chunk that waits comes from memory, in whatever way it is asked for.
#[test]
fn reads_see_what_waits() {
    let mut file = file(2, 1 << 20);
    let index = file.add(&recipe(&[9999], &[20, 20], &[10, 10], &[true; 2]), Turn::default());
    file.put_raw(index, &[0, 0], &[20, 20], &record(0, 1600));
    // Into the cache of reads, as the chunk that is asked for again and again.
    let cell = Hyperslab { start: &[5, 5], count: &[1, 1], stride: None };
    (0..4).for_each(|_| file.check(index, &cell));
    file.put_raw(index, &[5, 5], &[1, 1], &[1, 2, 3, 4]);
    (0..4).for_each(|_| file.check(index, &cell));
    file.check_all(index);
    file.put_raw(index, &[5, 5], &[1, 1], &[5, 6, 7, 8]);
    file.flush().expect("flushes");
    file.check(index, &cell);
    file.put_raw(index, &[0, 0], &[10, 10], &record(9, 400));
    assert_eq!(file.writer.pending_bytes(), 0);
    (0..4).for_each(|_| file.check(index, &cell));
    file.check_all(index);
}

/// An array that was there before the file was opened for writing.
#[test]
fn chunks_of_another_writer_are_changed() {
    let mut file = file(2, 1 << 20);
    let recipe = recipe(&[2, 1], &[25, 20], &[10, 10], &[false, true]);
    let index = file.add(&recipe, Turn::default());
    file.put_raw(index, &[0, 0], &[15, 20], &record(0, 1200));
    file.flush().expect("flushes");
    let array = &file.arrays[index];
    let shape = ChunkShape { dims: recipe.chunk.clone(), elem_size: 4 };
    assert_eq!(array.pipeline.shape(), &shape);
    let mut second =
        zonda_chunk::ChunkWriter::new(&Engine::new(2, 64 << 20), file.storage.clone(), 1 << 20);
    let id = second.add(NewArray {
        table: array.table.clone(),
        filters: array.pipeline.clone(),
        shape: ArrayShape { chunk_dims: recipe.chunk.clone(), elem_size: 4 },
        fill: Box::default(),
        fixed: vec![None, Some(20)],
        unfiltered_edges: None,
        always_fresh: false,
    });
    file.writer = second;
    file.arrays[index].id = id.expect("a shape");
    file.put_raw(index, &[14, 5], &[11, 9], &record(4, 396));
    file.check_all(index);
    file.flush().expect("flushes");
    file.check_stored();
}

/// Shapes that no array can have.
#[test]
fn impossible_shapes_are_refused() {
    let mut file = file(1, 100);
    for (chunk, elem) in [(vec![0, 3], 4), (vec![u64::MAX, 8], 1), (vec![2], 0)] {
        let shape = ChunkShape { dims: chunk.clone(), elem_size: elem };
        let fixed = vec![None; chunk.len()];
        let new = NewArray {
            table: std::sync::Arc::new(written::Table::default()),
            filters: std::sync::Arc::new(Pipeline::new(&[], shape, &|_| None)),
            shape: ArrayShape { chunk_dims: chunk, elem_size: elem },
            fill: Box::default(),
            fixed,
            unfiltered_edges: None,
            always_fresh: false,
        };
        assert!(file.writer.add(new).is_err());
    }
}

/// Chunks that reach beyond the extent are stored as they are, and copied as such.
#[test]
fn unfiltered_edges_stay_unfiltered() {
    let recipe =
        Recipe { unfiltered_edges: true, ..recipe(&[9999], &[25, 10], &[10, 10], &[true; 2]) };
    let mut file = file(2, 1 << 20);
    let index = file.add(&recipe, Turn::default());
    file.put_raw(index, &[0, 0], &[25, 10], &record(0, 1000));
    file.put_raw(index, &[22, 3], &[1, 1], &record(5, 4));
    file.flush().expect("flushes");
    file.check_stored();
    assert_eq!(counts(&file, index).0, 2);
    let id = file.arrays[index].id;
    let array = file.writer.array(id).expect("there");
    let masks = [0, 1, 2].map(|k| {
        let mut stored = StoredChunks::default();
        array.stored_chunks(&[25, 10], &[[k, 0]], &mut stored).expect("reads");
        stored.iter().next().expect("was written").1
    });
    assert_eq!(masks, [0, 0, 1]);
    let space = &mut file.space;
    let refused = |result: Result<(), ChunkError>| {
        assert!(matches!(result, Err(ChunkError::Request { .. })), "{result:?}");
    };
    let mut filtered = StoredChunks::default();
    filtered.push(&[2, 0], 0, &[0; 400]);
    refused(file.writer.put_stored(id, &filtered, space));
    let slab = Hyperslab { start: &[22, 0], count: &[1, 1], stride: None };
    let raw = ElementEncoding::Raw { elem_size: 4 };
    refused(file.writer.put(id, &[30, 10], &slab, raw, &[0; 4], space).map(drop));
}

/// Unfiltered chunks that are larger than all that may wait take no memory, whatever is put.
#[test]
fn chunks_too_large_to_wait_are_written_as_they_are_put() {
    let fills = [vec![], vec![7, 8, 9, 1]];
    for (fill, filters) in
        fills.into_iter().flat_map(|fill| [(fill.clone(), &[][..]), (fill, &[9999])])
    {
        let mut file = file(2, 10_000);
        let is_plain = filters.is_empty();
        let recipe = Recipe { fill, ..recipe(filters, &[200, 90], &[100, 60], &[false, true]) };
        let index = file.add(&recipe, Turn::default());
        let puts: [([usize; 2], [usize; 2]); 6] = [
            ([3, 5], [1, 50]),
            ([0, 0], [9, 90]),
            ([90, 58], [20, 3]),
            ([199, 89], [1, 1]),
            ([0, 0], [100, 60]),
            ([4, 0], [150, 1]),
        ];
        for (i, (start, count)) in puts.iter().enumerate() {
            file.put_raw(index, start, count, &record(i, count[0] * count[1] * 4));
            assert_eq!(file.writer.pending_bytes() == 0, is_plain, "{i}");
            assert_eq!(file.writer.is_dirty(), !is_plain, "{i}");
            file.check_all(index);
        }
        file.flush().expect("flushes");
        file.check_stored();
    }
}

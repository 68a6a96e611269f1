//! Chunks of which two writers have parts: one sends them, the other holds, filters and writes.

use std::sync::Arc;

use zonda_chunk::filter::{ChunkShape, Pipeline};
use zonda_chunk::{
    ArrayId, ArrayShape, ChunkAt, ChunkError, ChunkWriter, Decode, Engine, FilterSpec, HeldPart,
    NewArray, SlabElements, ToFilter, WriteTable as _,
};
use zonda_convert::Converted;
use zonda_model::Hyperslab;
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

mod arrays;
mod written;

const EXTENT: [u64; 2] = [7, 10];
const CHUNK: [u64; 2] = [3, 4];
const N_CHUNKS: [u64; 2] = [3, 3];

fn writer(storage: &Arc<Memory>, table: &Arc<written::Table>) -> (ChunkWriter, ArrayId) {
    let storage: Arc<dyn Storage> = storage.clone();
    let mut writer = ChunkWriter::new(&Engine::new(2, 1 << 24), storage, 1 << 20);
    let spec = FilterSpec { id: 1, name: String::new(), optional: false, params: vec![1] };
    let shape = ChunkShape { dims: CHUNK.to_vec(), elem_size: 2 };
    let new = NewArray {
        table: table.clone(),
        filters: Arc::new(Pipeline::new(&[spec], shape, &|_| None)),
        shape: ArrayShape { chunk_dims: CHUNK.to_vec(), elem_size: 2 },
        fill: Box::from([9, 9]),
        fixed: EXTENT.map(Some).to_vec(),
        unfiltered_edges: None,
        always_fresh: false,
    };
    let id = writer.add(new).unwrap();
    (writer, id)
}

fn value(row: usize, column: usize) -> [u8; 2] {
    [row as u8, 100 + column as u8]
}

/// The elements of a hyperslab.
fn elements(start: [usize; 2], count: [usize; 2], stride: [isize; 2]) -> Vec<u8> {
    let at = |axis: usize, n: usize| start[axis] + n * stride[axis] as usize;
    let row = |i: usize| (0..count[1]).flat_map(move |j| value(at(0, i), at(1, j)));
    (0..count[0]).flat_map(row).collect()
}

/// The chunks that have columns from `first` on, in steps.
fn keys(first: usize, step: usize) -> Vec<[u64; 2]> {
    let columns: Vec<u64> =
        (first..EXTENT[1] as usize).step_by(step).map(|column| column as u64 / CHUNK[1]).collect();
    let all = (0..N_CHUNKS[0]).flat_map(|i| (0..N_CHUNKS[1]).map(move |j| [i, j]));
    all.filter(|key| columns.contains(&key[1])).collect()
}

#[test]
fn parts_of_two_writers_make_chunks_that_one_stores() {
    let (storage, table) = (Arc::new(Memory::new()), Arc::new(written::Table::default()));
    let (mut owner, id) = writer(&storage, &table);
    let (other, other_id) = writer(&storage, &table);
    assert_eq!(owner.filtered_grid(id).unwrap().limits, EXTENT);
    // Even columns are the owner's.
    let slab = |first: usize| Hyperslab {
        start: if first == 0 { &[0, 0] } else { &[0, 1] },
        count: &[7, 5],
        stride: Some(&[1, 2]),
    };
    let [even, odd] = [0, 1].map(|first| elements([0, first], [7, 5], [1, 2]));
    let of = |first, bytes| SlabElements { extent: &EXTENT, slab: slab(first), bytes };
    let wanted = keys(1, 2);
    let mut packed = Vec::new();
    let keys_of_odd = wanted.iter().map(|key| &key[..]);
    other.parts_of(other_id, &of(1, &odd), keys_of_odd, &mut packed).unwrap();
    assert_eq!(packed.len(), odd.len());
    let held = |keys: &[[u64; 2]]| -> Vec<([u64; 2], bool)> {
        keys.iter().map(|key| (*key, key[0] == 1)).collect()
    };
    for (first, bytes, is_packed) in [(0, &even, false), (1, &packed, true)] {
        let list = held(&keys(first, 2));
        let parts: Vec<HeldPart<'_>> = list
            .iter()
            .map(|(key, is_covered)| HeldPart { key, is_covered: *is_covered })
            .collect();
        assert!(!owner.is_complete(id, &[0, 0]));
        owner.hold(id, &of(first, bytes), &parts, is_packed).unwrap();
    }
    let all = keys(0, 1);
    assert!(all.iter().all(|key| owner.is_complete(id, key)));
    let chunks: Vec<ToFilter<'_>> = all.iter().map(|key| ToFilter::Held(id, key)).collect();
    let filtered = owner.filter(&chunks).unwrap();
    let mut at = 100;
    let mut placed: Vec<_> = filtered
        .into_iter()
        .map(|chunk| {
            let chunk = chunk.unwrap();
            let place = ChunkAt { at, len: chunk.bytes.len() as u64, mask: chunk.mask };
            at += place.len + 5;
            (chunk, place)
        })
        .collect();
    let behind: Vec<u64> = placed.iter().map(|(_, place)| place.at + place.len + 2).collect();
    owner.write_filtered(&mut placed, &behind).unwrap();
    for (key, (_, place)) in all.iter().zip(&placed) {
        assert_eq!(table.insert(key, *place).unwrap(), None);
        owner.is_stored(id, key, true);
    }
    assert_eq!(owner.pending_bytes(), 0);
    // The other one reads what is stored.
    let whole = Hyperslab { start: &[0, 0], count: &[7, 10], stride: None };
    let mut out = vec![0; 140];
    let decode = Decode::Raw { elem_size: 2 };
    let done = other.read(other_id, &EXTENT, &whole, decode, &mut out).unwrap();
    assert_eq!(done, Converted::default());
    assert_eq!(out, elements([0, 0], [7, 10], [1, 1]));
}

#[test]
fn what_does_not_fit_is_refused() {
    let (storage, table) = (Arc::new(Memory::new()), Arc::new(written::Table::default()));
    let (mut writer, id) = writer(&storage, &table);
    let slab = Hyperslab { start: &[0, 0], count: &[2, 2], stride: None };
    let bytes = [7; 8];
    let of = SlabElements { extent: &EXTENT, slab, bytes: &bytes };
    let refused = |done: Result<(), ChunkError>| {
        assert!(matches!(done, Err(ChunkError::Request { .. })), "{done:?}");
    };
    let part = |key| [HeldPart { key, is_covered: false }];
    refused(writer.hold(id, &of, &part(&[0, 1]), false));
    refused(writer.hold(id, &of, &part(&[0]), false));
    refused(writer.hold(id, &SlabElements { bytes: &bytes[1..], ..of }, &part(&[0, 0]), true));
    refused(writer.parts_of(id, &of, [&[2, 2][..]].into_iter(), &mut Vec::new()));
    // Nothing waits, and what does not wait cannot be filtered.
    assert!(writer.filter(&[ToFilter::Held(id, &[0, 0])]).unwrap()[0].is_none());
    writer.hold(id, &of, &part(&[0, 0]), true).unwrap();
    assert!(writer.pending_bytes() > 0);
    writer.is_stored(id, &[0, 0], true);
    assert_eq!(writer.pending_bytes(), 0);
}

/// Chunks that were taken out go through their filters to what those become that stay, and can come back.
#[test]
fn detached_chunks_are_filtered_as_others_and_come_back() {
    let (storage, table) = (Arc::new(Memory::new()), Arc::new(written::Table::default()));
    let (mut writer, id) = writer(&storage, &table);
    let all = elements([0, 0], [7, 10], [1, 1]);
    let slab = Hyperslab { start: &[0, 0], count: &[7, 10], stride: None };
    let of = SlabElements { extent: &EXTENT, slab, bytes: &all };
    let keys = keys(0, 1);
    let whole: Vec<ToFilter<'_>> = keys.iter().map(|key| ToFilter::Whole(id, key, &of)).collect();
    let expected = writer.filter(&whole).unwrap().into_iter().map(Option::unwrap);
    let expected: Vec<(u32, Vec<u8>)> = expected.map(|chunk| (chunk.mask, chunk.bytes)).collect();
    let bytes = |writer: &mut ChunkWriter, chunks: &[ToFilter<'_>]| -> Vec<(u32, Vec<u8>)> {
        let detached = writer.detach(chunks).unwrap();
        assert_eq!(detached.n_bytes(), 24 * chunks.len() as u64);
        let filtered = detached.filter().into_iter();
        filtered.map(|chunk| chunk.map(|chunk| (chunk.mask, chunk.bytes)).unwrap()).collect()
    };
    assert_eq!(bytes(&mut writer, &whole), expected);
    assert_eq!(writer.pending_bytes(), 0);
    let parts: Vec<HeldPart<'_>> =
        keys.iter().map(|key| HeldPart { key, is_covered: true }).collect();
    let held: Vec<ToFilter<'_>> = keys.iter().map(|key| ToFilter::Held(id, key)).collect();
    // What is not here is refused, and all others stay.
    writer.hold(id, &of, &parts[1..], false).unwrap();
    let waiting = writer.pending_bytes();
    assert!(matches!(writer.detach(&held), Err(ChunkError::Request { .. })));
    assert_eq!(writer.pending_bytes(), waiting);
    writer.hold(id, &of, &parts[..1], false).unwrap();
    let waiting = writer.pending_bytes();
    assert_eq!(bytes(&mut writer, &held), expected);
    assert!(writer.pending_bytes() == 0 && keys.iter().all(|key| !writer.holds(id, key)));
    // One that comes back is complete, also at the edge, and gets elements as before.
    let edge = [2, 2];
    let mut chunk = vec![9; 24];
    for (row, to) in chunk.chunks_mut(8).enumerate().take(1) {
        to[..4].copy_from_slice(&elements([6 + row, 8], [1, 2], [1, 1]));
    }
    writer.hold_again(id, &edge, chunk);
    assert!(writer.is_complete(id, &edge) && writer.pending_bytes() == waiting / 9);
    let kept = writer.filter(&[ToFilter::Held(id, &edge)]).unwrap().remove(0).unwrap();
    assert_eq!((kept.mask, kept.bytes), expected[8]);
    writer.hold(id, &of, &parts[8..], false).unwrap();
    assert!(writer.is_complete(id, &edge));
    // Another length is none of its chunks.
    writer.hold_again(id, &[0, 0], vec![0; 23]);
    assert!(!writer.holds(id, &[0, 0]));
}

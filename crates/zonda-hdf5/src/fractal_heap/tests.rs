//! Heaps built byte by byte: 2 blocks in a row, blocks of 64 and 128 bytes.

use super::*;
use crate::built_file::{BuiltFile, at, le};
use crate::file::Unfilter;

const UNDEFINED: u64 = u64::MAX;
const START: u64 = 64;
const WIDTH: u64 = 2;
const MAX_DIRECT: u64 = 128;
/// Signature, version, heap, offset of 2 bytes, checksum.
const BLOCK_HEAD: u64 = 19;

/// What of a heap varies between the tests.
struct Recipe {
    id_len: u64,
    huge: u64,
    root: u64,
    rows: u64,
    filtered: Option<(u64, Vec<u8>)>,
}

/// A header for heap offsets of 16 bits, which is why it comes first: blocks name its address.
fn header(recipe: &Recipe) -> Vec<u8> {
    let filter_len = recipe.filtered.as_ref().map_or(0, |(_, message)| message.len() as u64);
    let mut bytes = b"FRHP".to_vec();
    bytes.extend(le(&[(0, 1), (recipe.id_len, 2), (filter_len, 2), (2, 1), (100, 4)]));
    bytes.extend(le(&[(0, 8), (recipe.huge, 8), (0, 8), (UNDEFINED, 8)]));
    bytes.extend([0; 64]);
    bytes.extend(le(&[(WIDTH, 2), (START, 8), (MAX_DIRECT, 8), (16, 2), (1, 2)]));
    bytes.extend(le(&[(recipe.root, 8), (recipe.rows, 2)]));
    if let Some((len, message)) = &recipe.filtered {
        bytes.extend(le(&[(*len, 8), (0, 4)]));
        bytes.extend(message);
    }
    bytes
}

/// A direct block, each of whose bytes follows from its heap offset.
fn direct(offset: u64, len: u64) -> Vec<u8> {
    let mut bytes = b"FHDB".to_vec();
    bytes.extend(le(&[(0, 1), (0, 8), (offset, 2), (0, 4)]));
    bytes.extend((offset + BLOCK_HEAD..offset + len).map(content));
    let sum = lookup3(&bytes, 0).to_le_bytes();
    bytes[15..19].copy_from_slice(&sum);
    bytes
}

fn content(offset: u64) -> u8 {
    (offset * 7 / 3) as u8
}

/// An indirect block with everything under it; row 1 has no second block. The offsets and
/// lengths of its direct blocks go to `blocks`.
fn indirect(built: &mut BuiltFile, offset: u64, rows: u64, blocks: &mut Vec<(u64, u64)>) -> u64 {
    let mut bytes = b"FHIB".to_vec();
    bytes.extend(le(&[(0, 1), (0, 8), (offset, 2)]));
    let mut next = offset;
    for row in 0..rows {
        let len = if row == 0 { START } else { START << (row - 1) };
        for column in 0..WIDTH {
            let child = if (row, column) == (1, 1) {
                UNDEFINED
            } else if len <= MAX_DIRECT {
                blocks.push((next, len));
                built.put(&direct(next, len))
            } else {
                let below = u64::from((len / (START * WIDTH)).ilog2()) + 1;
                indirect(built, next, below, blocks)
            };
            bytes.extend(child.to_le_bytes());
            next += len;
        }
    }
    built.put_checked(&bytes)
}

fn managed_id(offset: u64, len: u64) -> Vec<u8> {
    le(&[(0, 1), (offset, 2), (len, 1), (0, 3)])
}

/// A heap in a file: the header at 0 is written again once the root is known.
fn finish(mut built: BuiltFile, recipe: &Recipe) -> File {
    let mut again = BuiltFile::default();
    again.put_checked(&header(recipe));
    built.bytes[..again.bytes.len()].copy_from_slice(&again.bytes);
    built.file()
}

fn begin(recipe: &Recipe) -> BuiltFile {
    let mut built = BuiltFile::default();
    built.put_checked(&header(recipe));
    built
}

#[test]
fn managed_objects_in_nested_indirect_blocks() {
    let mut recipe = Recipe { id_len: 7, huge: UNDEFINED, root: 0, rows: 8, filtered: None };
    let mut built = begin(&recipe);
    let mut blocks = Vec::new();
    recipe.root = indirect(&mut built, 0, recipe.rows, &mut blocks);
    let file = finish(built, &recipe);
    let heap = FractalHeap::open(&file, at(0)).unwrap();
    // The table of 8 rows holds 64 x 2 x 2^7 bytes. The second place of
    // row 1 is empty, here and in the nested blocks that have one.
    let all = START * WIDTH * 128;
    assert!(blocks.len() > 100);
    for offset in 0..all {
        let got = heap.get(&file, &managed_id(offset, 1));
        match blocks.iter().find(|&&(at, len)| (at..at + len).contains(&offset)) {
            // Headers of blocks belong to the offsets, too.
            Some(&(at, _)) if offset < at + BLOCK_HEAD => assert!(got.is_ok(), "{offset}"),
            Some(_) => assert_eq!(got.unwrap(), [content(offset)], "{offset}"),
            None => assert!(matches!(got, Err(HdfError::BadValue { .. })), "{offset}"),
        }
    }
    assert!(heap.get(&file, &managed_id(all, 1)).is_err(), "behind the last row");
    assert!(heap.get(&file, &managed_id(START - 4, 5)).is_err(), "across the end of a block");
    assert!(heap.get(&file, &managed_id(START - 4, 4)).is_ok());
}

#[test]
fn a_root_that_is_a_direct_block() {
    let mut recipe = Recipe { id_len: 7, huge: UNDEFINED, root: 0, rows: 0, filtered: None };
    let mut built = begin(&recipe);
    recipe.root = built.put(&direct(0, START));
    let damaged = recipe.root + 40;
    let file = finish(BuiltFile { bytes: built.bytes.clone() }, &recipe);
    let heap = FractalHeap::open(&file, at(0)).unwrap();
    let want: Vec<u8> = (20..30).map(content).collect();
    assert_eq!(heap.get(&file, &managed_id(20, 10)).unwrap(), want);
    assert!(heap.get(&file, &managed_id(60, 10)).is_err());
    built.bytes[damaged as usize] ^= 1;
    let file = finish(built, &recipe);
    let heap = FractalHeap::open(&file, at(0)).unwrap();
    let error = heap.get(&file, &managed_id(20, 10)).unwrap_err();
    assert!(matches!(error, HdfError::BadChecksum { .. }), "{error}");
}

#[test]
fn a_block_in_the_wrong_place_is_an_error() {
    let mut recipe = Recipe { id_len: 7, huge: UNDEFINED, root: 0, rows: 0, filtered: None };
    let mut built = begin(&recipe);
    recipe.root = built.put(&direct(START, START));
    let file = finish(built, &recipe);
    let heap = FractalHeap::open(&file, at(0)).unwrap();
    let error = heap.get(&file, &managed_id(20, 10)).unwrap_err();
    assert!(matches!(error, HdfError::BadValue { value: START, .. }), "{error}");
}

#[test]
fn tiny_objects_are_in_their_ids() {
    for (id_len, id, want) in [
        (7, &[0x22, b'a', b'b', b'c', 0, 0, 0][..], &b"abc"[..]),
        (20, &[0x20, 2, b'a', b'b', b'c', 0], b"abc"),
    ] {
        let recipe = Recipe { id_len, huge: UNDEFINED, root: UNDEFINED, rows: 0, filtered: None };
        let file = begin(&recipe).file();
        let heap = FractalHeap::open(&file, at(0)).unwrap();
        assert_eq!(heap.get(&file, id).unwrap(), want);
        assert!(heap.get(&file, &[0x2f]).is_err());
        assert!(heap.get(&file, &[0x30, 1, 2]).is_err(), "no such type of id");
        assert!(heap.get(&file, &[0x60, 1, 2]).is_err(), "no such version of ids");
    }
}

#[test]
fn huge_objects_by_place_and_by_number() {
    let recipe = Recipe { id_len: 17, huge: UNDEFINED, root: UNDEFINED, rows: 0, filtered: None };
    let mut built = begin(&recipe);
    let object = built.put(&[9; 300]);
    let file = finish(built, &recipe);
    let heap = FractalHeap::open(&file, at(0)).unwrap();
    let id = le(&[(0x10, 1), (object, 8), (300, 8)]);
    assert_eq!(heap.get(&file, &id).unwrap(), [9; 300]);
    let beyond = le(&[(0x10, 1), (object, 8), (1 << 40, 8)]);
    assert!(matches!(heap.get(&file, &beyond), Err(HdfError::OutOfFile { .. })));

    let mut recipe = Recipe { id_len: 8, ..recipe };
    let mut built = begin(&recipe);
    let mut leaf = b"BTLF".to_vec();
    leaf.extend([0, 1]);
    for number in 1..=2 {
        let object = built.put(&[number; 200]);
        leaf.extend(le(&[(object, 8), (200, 8), (u64::from(number), 8)]));
    }
    let leaf = built.put_checked(&leaf);
    let mut tree = b"BTHD".to_vec();
    tree.extend(le(&[(0, 1), (1, 1), (512, 4), (24, 2), (0, 2), (100, 1), (40, 1)]));
    tree.extend(le(&[(leaf, 8), (2, 2), (2, 8)]));
    recipe.huge = built.put_checked(&tree);
    let file = finish(built, &recipe);
    let heap = FractalHeap::open(&file, at(0)).unwrap();
    let get = |number| heap.get(&file, &le(&[(0x10, 1), (number, 7)]));
    assert_eq!(get(2).unwrap(), [2; 200]);
    assert!(matches!(get(3), Err(HdfError::Missing { .. })));
}

/// A filter that turns all bits over.
#[derive(Debug)]
struct Invert;

impl Unfilter for Invert {
    fn unfilter(
        &self,
        filters: &[FilterDescription],
        mask: u32,
        stored: Vec<u8>,
        _most: usize,
    ) -> Option<Vec<u8>> {
        assert_eq!((filters.len(), filters.first()?.id), (1, 300));
        Some(if mask == 0 { stored.iter().map(|byte| !byte).collect() } else { stored })
    }
}

#[test]
fn filtered_blocks_need_a_filter() {
    let message = le(&[(2, 1), (1, 1), (300, 2), (0, 2), (0, 2), (0, 2)]);
    let mut recipe =
        Recipe { id_len: 7, huge: UNDEFINED, root: 0, rows: 0, filtered: Some((START, message)) };
    let mut built = begin(&recipe);
    let block: Vec<u8> = direct(0, START).iter().map(|byte| !byte).collect();
    recipe.root = built.put(&block);
    let file = finish(built, &recipe);
    let heap = FractalHeap::open(&file, at(0)).unwrap();
    let error = heap.get(&file, &managed_id(20, 10)).unwrap_err();
    assert!(matches!(error, HdfError::Unsupported { .. }), "{error}");
    let file = file.with_unfilter(Arc::new(Invert));
    let want: Vec<u8> = (20..30).map(content).collect();
    assert_eq!(heap.get(&file, &managed_id(20, 10)).unwrap(), want);
}

#[test]
fn impossible_tables_are_errors() {
    let recipe = Recipe { id_len: 7, huge: UNDEFINED, root: 0, rows: 0, filtered: None };
    let good = header(&recipe);
    // Width, first block, largest direct block, bits of offsets.
    for (field, width, value) in [
        (110, 2, 3),
        (110, 2, 0),
        (112, 8, 65),
        (120, 8, 0),
        (120, 8, 32),
        (128, 2, 65),
        (128, 2, 6),
    ] {
        let mut bytes = good.clone();
        bytes[field..field + width].copy_from_slice(&u64::to_le_bytes(value)[..width]);
        let mut built = BuiltFile::default();
        built.put_checked(&bytes);
        let error = FractalHeap::open(&built.file(), at(0)).unwrap_err();
        assert!(matches!(error, HdfError::BadValue { .. }), "{field}: {error}");
    }
}

use super::*;
use crate::HdfError;
use crate::testing::{StructureBytes, file};

fn object(index: u16, data: &[u8]) -> StructureBytes {
    let object =
        StructureBytes::default().u16(index).u16(0).u32(0).u64(data.len() as u64).bytes(data);
    let end = object.bytes.len().next_multiple_of(8);
    object.pad_to(end)
}

/// A collection of `len` bytes, what is left being free.
fn collection(len: usize, objects: &[StructureBytes]) -> StructureBytes {
    let start = StructureBytes::default().bytes(b"GCOL\x01\0\0\0").u64(len as u64);
    let bytes = objects.iter().cloned().fold(start, StructureBytes::then);
    let free = len - bytes.bytes.len();
    let bytes = if free < 16 { bytes } else { bytes.u64(0).u64(free as u64) };
    bytes.pad_to(len)
}

fn decode(bytes: StructureBytes) -> Result<Collection> {
    Collection::decode(bytes.bytes.into(), 0, Sizes::EIGHT)
}

#[test]
fn objects_in_any_order() {
    let objects = [object(3, b"three"), object(1, b"one"), object(7, b"")];
    let heap = decode(collection(4096, &objects)).unwrap();
    assert_eq!(heap.get(1), Some(b"one".as_slice()));
    assert_eq!(heap.get(3), Some(b"three".as_slice()));
    assert_eq!(heap.get(7), Some(b"".as_slice()));
    for index in [0, 2, 4, 8, 65536, u32::MAX] {
        assert_eq!(heap.get(index), None, "{index}");
    }
    assert_eq!(heap.indexes().collect::<Vec<_>>(), [1, 3, 7]);
}

#[test]
fn a_full_collection_and_short_lengths() {
    let heap = decode(collection(16 + 24 + 8, &[object(1, b"12345678")])).unwrap();
    assert_eq!(heap.get(1), Some(b"12345678".as_slice()));
    let bytes = StructureBytes::default().bytes(b"GCOL\x01\0\0\0").u32(64).u32(0);
    let bytes = bytes.u16(5).u16(1).u32(0).u32(3).u32(0xffff_ffff).bytes(b"abc").pad_to(64);
    let sizes = Sizes { offset: 4, length: 4 };
    let heap = Collection::decode(bytes.bytes.into(), 0, sizes).unwrap();
    assert_eq!(heap.get(5), Some(b"abc".as_slice()));
}

#[test]
fn hostile_collections() {
    let mut long = object(1, b"12345678");
    long.bytes[8] = 0xff;
    assert!(matches!(decode(collection(64, &[long])), Err(HdfError::Truncated { .. })));
    let mut endless = object(1, b"");
    endless.bytes[8..16].fill(0xff);
    assert!(decode(collection(64, &[endless])).is_err());
    // Free space of size 0 ends the search, of a size under that of its header, too.
    for size in [0, 15] {
        let zero = StructureBytes::default().u64(0).u64(size);
        let heap = decode(collection(64, &[object(1, b"x"), zero])).unwrap();
        assert_eq!(heap.get(1), Some(b"x".as_slice()));
    }
    let shifted = StructureBytes::default().u64(0).u64(17).bytes(&[0]);
    let shifted = collection(64, &[shifted, object(1, b"x")]);
    assert!(decode(shifted).is_err(), "an object at an odd byte");
    let mut short = collection(64, &[]);
    short.bytes[8] = 15;
    assert!(matches!(decode(short), Err(HdfError::BadValue { .. })));
    let mut cut = collection(64, &[]);
    cut.bytes[8] = 65;
    assert!(matches!(decode(cut), Err(HdfError::Truncated { .. })));
}

#[test]
fn a_file_reads_each_collection_once() {
    let big = vec![b'b'; 10_000];
    let first = collection(4096, &[object(1, b"one"), object(2, b"two")]);
    let second = collection(10_040, &[object(1, &big)]);
    let bytes = StructureBytes::new(64).then(first).then(second).bytes;
    let file = file(&bytes);
    let one = file.global_heap_collection(FileAddr(64)).unwrap();
    file.storage().write_at(64, &[0; 64]).unwrap();
    let again = file.global_heap_collection(FileAddr(64)).unwrap();
    assert!(Arc::ptr_eq(&one, &again));
    let mut cursor = HeapCursor::default();
    assert_eq!(cursor.get(&file, FileAddr(64), 2).unwrap(), Some(b"two".as_slice()));
    assert_eq!(cursor.get(&file, FileAddr(64 + 4096), 1).unwrap(), Some(big.as_slice()));
    assert_eq!(cursor.get(&file, FileAddr(64), 3).unwrap(), None);
    assert!(cursor.get(&file, FileAddr(65), 1).is_err());
    assert!(cursor.get(&file, FileAddr(1 << 40), 1).is_err());
}

#[test]
fn the_cache_is_bounded_and_keeps_what_is_used() {
    let heap = Arc::new(decode(collection(4096, &[])).unwrap());
    let limits = ReadLimits { heap_cache_bytes: 20 * 4096, ..ReadLimits::default() };
    let cache = HeapCache::new(&limits);
    for addr in 0..1000 {
        cache.put(FileAddr(addr), &heap);
        assert!(cache.get(FileAddr(0)).is_some(), "used all the time, lost after {addr}");
        assert!(Arc::strong_count(&heap) <= 2 + 21, "{}", Arc::strong_count(&heap));
    }
    assert!(cache.get(FileAddr(500)).is_none());
    let huge = Arc::new(decode(collection(11 * 4096, &[])).unwrap());
    cache.put(FileAddr(5000), &huge);
    assert!(cache.get(FileAddr(5000)).is_none(), "would push out everything else");
}

/// A file of so many collections of 4 KiB, each with one object, its number.
fn collections(n: u16) -> File {
    let each = |i: u16| collection(4096, &[object(1, &i.to_le_bytes())]);
    file(&(0..n).map(each).fold(StructureBytes::new(64), StructureBytes::then).bytes)
}

fn nth(i: u16) -> FileAddr {
    FileAddr(64 + 4096 * u64::from(i))
}

#[test]
fn what_is_passed_once_takes_no_memory_and_what_comes_again_is_kept() {
    let file = collections(200);
    let mut cursor = HeapCursor::default();
    for i in 0..200 {
        let found = cursor.get(&file, nth(i), 1).unwrap();
        assert_eq!(found, Some(i.to_le_bytes().as_slice()));
    }
    let held = |file: &File| {
        let collections = file.heap_cache().collections.read();
        (collections.once.len(), collections.young.len() + collections.old.len())
    };
    assert_eq!(held(&file), (COLLECTIONS_ONCE, 0));
    // Again: now all are kept, and the file need not be asked.
    for _ in 0..2 {
        for i in 0..200 {
            assert!(cursor.get(&file, nth(i), 1).unwrap().is_some());
        }
        file.storage().set_len(0).unwrap();
    }
    assert_eq!(held(&file), (0, 200));
}

#[test]
fn memory_of_what_is_forgotten_is_used_again_unless_somebody_holds_it() {
    let file = collections(100);
    let held = file.global_heap_collection(nth(0)).unwrap();
    for i in 1..100 {
        let collection = file.global_heap_collection(nth(i)).unwrap();
        assert_eq!(collection.get(1), Some(i.to_le_bytes().as_slice()));
        assert_eq!(collection.indexes().collect::<Vec<_>>(), [1], "nothing is left of another");
    }
    assert!(file.heap_cache().collections.read().spare.is_some());
    assert_eq!(held.get(1), Some([0, 0].as_slice()));
}

#[test]
fn elements_that_alternate_between_collections_ask_the_cache_once() {
    let file = collections(4);
    let mut cursor = HeapCursor::default();
    for i in 0..40 {
        assert!(cursor.get(&file, nth(i % 4), 1).unwrap().is_some());
        let collections = file.heap_cache().collections.read();
        assert!(collections.young.is_empty(), "asked for again at {i}");
    }
}

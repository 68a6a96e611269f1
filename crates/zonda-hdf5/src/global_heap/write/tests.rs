use std::collections::BTreeSet;
use std::sync::Arc;

use zonda_storage::Storage;
use zonda_storage::backend::Memory;
use zonda_storage::layer::{FaultLayer, FaultPlan, InjectedFault, Watched};

use super::*;
use crate::{HeapCursor, ReadLimits};

struct HeapTest {
    file: File,
    space: Space,
    heap: HeapWriter,
    put: Vec<(HeapId, Vec<u8>)>,
    /// Collections that a commit refers to.
    committed: Vec<(FileAddr, Vec<u8>)>,
}

impl HeapTest {
    fn new(sizes: Sizes) -> HeapTest {
        HeapTest::over(Arc::new(Memory::from_slice(&[0xa5; 100])), sizes)
    }

    fn over(storage: Arc<dyn Storage>, sizes: Sizes) -> HeapTest {
        let file = File::bare(storage, sizes, ReadLimits::default());
        let (heap, put) = (HeapWriter::new(sizes), Vec::new());
        HeapTest { file, space: Space::new(100), heap, put, committed: Vec::new() }
    }

    /// An object of so many bytes.
    fn put(&mut self, len: usize) {
        let n = self.put.len();
        let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + n) as u8).collect();
        let id = self.heap.put(&bytes, &mut self.space).unwrap();
        self.put.push((id, bytes));
    }

    /// A whole collection.
    fn bytes_of(&self, collection: FileAddr) -> Vec<u8> {
        let head = self.file.read("collection", collection, 16).unwrap();
        let len = u64::from_le_bytes(head[8..].try_into().unwrap());
        self.file.read("collection", collection, len).unwrap()
    }

    fn commit(&mut self) {
        self.heap.commit(&self.file, &mut self.space).unwrap();
        // What is added is not shown yet.
        self.check_committed();
        self.heap.show(&self.file).unwrap();
        assert!(!self.heap.is_dirty());
        self.check();
        assert!(self.file.storage().len().unwrap() >= self.space.end());
        let collections: BTreeSet<_> = self.put.iter().map(|(id, _)| id.collection).collect();
        self.committed = collections.into_iter().map(|at| (at, self.bytes_of(at))).collect();
    }

    /// Objects that a commit refers to are as they were.
    fn check_committed(&self) {
        for (at, bytes) in &self.committed {
            let mut objects = HEADER;
            while bytes.len() >= objects + HEADER && bytes[objects..objects + 2] != [0, 0] {
                let size = u64::from_le_bytes(bytes[objects + 8..objects + 16].try_into().unwrap());
                objects += HEADER + (size as usize).next_multiple_of(8);
            }
            let now = self.bytes_of(*at);
            assert!(now[..objects] == bytes[..objects], "what was committed has changed");
            assert_eq!(now.len(), bytes.len());
        }
    }

    /// Reads all objects, from the file as it is and as somebody else finds it.
    fn check(&self) {
        assert_eq!(self.heap.pending(), 0);
        let storage = Arc::clone(self.file.storage());
        let other = File::bare(storage, self.file.sizes(), ReadLimits::default());
        for file in [&self.file, &other] {
            let mut cursor = HeapCursor::default();
            for (id, bytes) in &self.put {
                let got = cursor.get(file, id.collection, id.index).unwrap();
                assert_eq!(got, Some(&bytes[..]), "{id:?}");
            }
        }
        self.check_committed();
        // Each object has an id of its own, and none leads to another.
        let ids: BTreeSet<_> = self.put.iter().map(|(id, _)| (id.collection, id.index)).collect();
        assert_eq!(ids.len(), self.put.len());
        let collections: BTreeSet<FileAddr> =
            ids.iter().map(|(collection, _)| *collection).collect();
        if self.file.sizes() == Sizes::EIGHT {
            collections.iter().for_each(|at| check_whole(&self.bytes_of(*at)));
        }
        let found = collections.iter().map(|collection| {
            let collection = other.global_heap_collection(*collection).unwrap();
            collection.indexes().count()
        });
        assert_eq!(found.sum::<usize>(), self.put.len());
    }
}

/// Libraries go from object to object up to the last byte.
fn check_whole(bytes: &[u8]) {
    assert!(bytes.len() >= LEAST);
    let mut rest = &bytes[HEADER..];
    let mut is_last = false;
    while rest.len() >= HEADER {
        assert!(!is_last, "something behind the free space");
        let size =
            usize::try_from(u64::from_le_bytes(rest[8..HEADER].try_into().unwrap())).unwrap();
        is_last = rest[..2] == [0, 0];
        let whole = if is_last { size } else { HEADER + size.next_multiple_of(8) };
        assert!(whole >= HEADER && whole <= rest.len(), "{whole} of {}", rest.len());
        rest = &rest[whole..];
    }
    assert!(rest.iter().all(|&byte| byte == 0));
}

#[test]
fn objects_of_all_lengths() {
    let lens = [0, 1, 7, 8, 9, 100, 2000, 4048, 4056, 4057, 4064, 4065, 4072, 4080, 5000, 65_520];
    for flush_every in [1, 3, 1000] {
        for commit_every in [1, 5, 1000] {
            let mut test = HeapTest::new(Sizes::EIGHT);
            for (i, &len) in lens.iter().chain(lens.iter().rev()).chain(&lens).enumerate() {
                test.put(len);
                if i % flush_every == 0 {
                    test.heap.flush(&test.file).unwrap();
                    test.check();
                    assert!(test.heap.is_dirty());
                }
                if i % commit_every == 0 {
                    test.commit();
                }
            }
            test.commit();
        }
    }
}

#[test]
fn large_objects_take_what_they_need() {
    let mut test = HeapTest::new(Sizes::EIGHT);
    test.put(3);
    test.put(5_000_000);
    test.put(4);
    test.commit();
    assert_eq!(test.put[0].0.collection, test.put[2].0.collection);
    assert!(test.space.end() <= 104 + 4096 + 5_000_032);
}

#[test]
fn little_space_is_left() {
    for len in [0, 8, 30, 300, 1000, 1100, 2030, 4040] {
        let mut test = HeapTest::new(Sizes::EIGHT);
        (0..2000).for_each(|_| test.put(len));
        test.commit();
        let need = 2000 * (len as u64).next_multiple_of(8) + 2000 * 16;
        let spent = test.space.end();
        assert!(spent <= need + need / 5 + 8192, "{len}: {spent} for {need}");
    }
    // What each commit puts is little: no more than the least collection each.
    let mut test = HeapTest::new(Sizes::EIGHT);
    for i in 0..100 {
        test.put(if i % 10 == 9 { 3000 } else { 10 });
        test.commit();
    }
    assert!(test.space.end() <= 104 + 100 * 4096);
}

#[test]
fn many_objects_without_bytes() {
    // More than a collection has numbers for, had it the room.
    let mut test = HeapTest::new(Sizes::EIGHT);
    (0..200_000).for_each(|_| test.put(0));
    test.commit();
}

#[test]
fn narrow_files() {
    for width in [2, 4] {
        let sizes = Sizes { offset: width, length: width };
        let mut test = HeapTest::new(sizes);
        (0..150).for_each(|i| test.put(i * 3));
        test.commit();
        assert!(matches!(
            (width, test.heap.put(&vec![0; 65_536], &mut test.space)),
            (2, Err(HdfError::TooLarge { .. })) | (4, Ok(_))
        ));
        let mut element = Vec::new();
        HeapId::encode(
            Some(HeapId { collection: FileAddr(300), index: 5 }),
            7,
            sizes,
            &mut element,
        )
        .unwrap();
        let mut want = vec![7, 0, 0, 0, 44, 1];
        want.resize(4 + usize::from(width), 0);
        want.extend([5, 0, 0, 0]);
        assert_eq!(element, want);
        let far = HeapId { collection: FileAddr(1 << 32), index: 5 };
        assert!(HeapId::encode(Some(far), 7, sizes, &mut element).is_err());
    }
    let mut element = Vec::new();
    HeapId::encode(None, 0, Sizes::EIGHT, &mut element).unwrap();
    assert_eq!(element, [0; 16]);
}

#[test]
fn what_could_not_be_written_is_written_later() {
    for nth in 1..6 {
        let plan =
            FaultPlan { watched: Watched::Write, nth, onwards: false, kind: InjectedFault::Short };
        let memory: Arc<dyn Storage> = Arc::new(Memory::from_slice(&[0xa5; 100]));
        let mut test = HeapTest::over(Arc::new(FaultLayer::new(memory, plan)), Sizes::EIGHT);
        let mut failed = 0;
        for i in 0..40 {
            test.put(i * 13 % 999);
            let result = if i % 4 == 3 {
                test.heap
                    .commit(&test.file, &mut test.space)
                    .and_then(|()| test.heap.show(&test.file))
            } else {
                test.heap.flush(&test.file)
            };
            if result.is_err() {
                assert!(test.heap.pending() > 0);
                failed += 1;
            } else {
                test.check();
            }
        }
        assert_eq!(failed, 1);
        test.commit();
    }
}

#[test]
#[ignore = "a measurement: run in release, with --nocapture"]
fn costs() {
    let mut heap = HeapWriter::new(Sizes::EIGHT);
    let test = HeapTest::new(Sizes::EIGHT);
    let mut space = test.space;
    let start = std::time::Instant::now();
    let mut elements = Vec::new();
    let text = [b'x'; 64];
    for i in 0..1_000_000usize {
        let id = heap.put(&text[..i % 40], &mut space).unwrap();
        HeapId::encode(Some(id), (i % 40) as u32, Sizes::EIGHT, &mut elements).unwrap();
        if heap.pending() > 1 << 20 {
            heap.flush(&test.file).unwrap();
        }
    }
    heap.commit(&test.file, &mut space).unwrap();
    eprintln!("{} ns a string", start.elapsed().as_nanos() / 1_000_000);
}

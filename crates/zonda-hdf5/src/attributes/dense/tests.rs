use proptest::prelude::*;
use zonda_storage::Storage;

use super::*;
use crate::built_file::{le, object};
use crate::fractal_heap::FractalHeap;
use crate::space::SECTOR;
use crate::{ReadLimits, Space};

/// The message of an attribute that is an array of unsigned bytes.
fn message(name: &[u8], data: &[u8]) -> Vec<u8> {
    let datatype = le(&[(0x10, 1), (0, 3), (1, 4), (0, 2), (8, 2)]);
    let dataspace = le(&[(2, 1), (1, 1), (0, 1), (1, 1), (data.len() as u64, 8)]);
    let mut bytes = le(&[(3, 1), (0, 1), (name.len() as u64 + 1, 2)]);
    bytes.extend(le(&[(datatype.len() as u64, 2), (dataspace.len() as u64, 2), (0, 1)]));
    bytes.extend(name);
    bytes.push(0);
    bytes.extend(datatype);
    bytes.extend(dataspace);
    bytes.extend(data);
    bytes
}

/// Names and values in the order in which they were made.
type Model = Vec<(Vec<u8>, Vec<u8>)>;

fn info(tracked: bool, indexed: bool) -> AttributeInfo {
    AttributeInfo {
        tracked,
        indexed,
        max_creation_index: tracked.then_some(0),
        heap: None,
        name_index: None,
        order_index: None,
    }
}

/// A list that is committed again and again, beside what it should have.
struct ListTest {
    storage: Arc<dyn Storage>,
    space: Space,
    list: DenseAttributes,
    model: Model,
    /// The object of the last commit, and what it had.
    committed: Option<(FileAddr, Model)>,
    /// Bytes that commits wrote, and lists that were made anew.
    written: u64,
    n_whole: usize,
}

impl ListTest {
    fn new(info: &AttributeInfo, model: Model) -> ListTest {
        let storage = crate::testing::storage(&[]);
        let mut space = Space::new(SECTOR);
        let list = ListTest::whole(info, &model, &mut space, &storage).0;
        let (committed, written, n_whole) = (None, 0, 0);
        let mut test = ListTest { storage, space, list, model, committed, written, n_whole };
        test.commit();
        test
    }

    fn whole(
        info: &AttributeInfo,
        model: &Model,
        space: &mut Space,
        storage: &Arc<dyn Storage>,
    ) -> (DenseAttributes, u64) {
        let messages: Vec<_> = model.iter().map(|(name, data)| message(name, data)).collect();
        let new = model.iter().zip(&messages).zip(0..);
        let new = new.map(|(((name, _), message), order)| NewAttribute {
            name,
            message,
            order: info.tracked.then_some(order),
        });
        let new: Vec<_> = new.collect();
        let mut fresh = NewBlocks::new(space);
        let list = DenseAttributes::new(&new, info, Sizes::EIGHT, &mut fresh).unwrap();
        (list, write(&**storage, &fresh.into_blocks()))
    }

    fn set(&mut self, name: &[u8], data: Vec<u8>, stays: bool, fresh: &mut NewBlocks<'_>) {
        self.list.set(name, &message(name, &data), stays, fresh).unwrap();
        let at = self.model.iter().position(|(known, _)| known == name);
        match at {
            Some(at) if stays => self.model[at].1 = data,
            at => {
                at.map(|at| self.model.remove(at));
                self.model.push((name.to_vec(), data));
            }
        }
    }

    fn remove(&mut self, name: &[u8]) {
        self.list.remove(name);
        self.model.retain(|(known, _)| known != name);
    }

    /// Changes the list and commits that.
    fn step(&mut self, change: impl FnOnce(&mut ListTest, &mut NewBlocks<'_>)) {
        let mut space = std::mem::replace(&mut self.space, Space::new(0));
        let mut fresh = NewBlocks::new(&mut space);
        change(self, &mut fresh);
        let DenseChange { mut heap_header, mut freed } = self.list.write(&mut fresh).unwrap();
        self.written += write(&*self.storage, &fresh.into_blocks());
        self.space = space;
        if !self.list.can_take(1) {
            // What was laid out last is in use nowhere else, and the list before is given back whole.
            freed.extend(self.list.extents());
            let bare = AttributeInfo { max_creation_index: None, ..*self.list.info() };
            let (list, n) = ListTest::whole(&bare, &self.model, &mut self.space, &self.storage);
            self.list = list;
            self.written += n;
            self.n_whole += 1;
            heap_header = None;
        }
        // Before and after the heap's header is written the object of the last commit has what it had.
        self.check_committed();
        if let Some((addr, bytes)) = heap_header {
            assert_eq!(addr.0 / SECTOR, (addr.0 + bytes.len() as u64 - 1) / SECTOR);
            self.storage.write_at(addr.0, &bytes).unwrap();
            self.written += bytes.len() as u64;
            self.check_committed();
        }
        freed.iter().for_each(|(addr, len)| self.space.free(*addr, *len));
        self.commit();
    }

    /// Puts an object into the file that has the list, and looks at all of it.
    fn commit(&mut self) {
        let mut body = Writer::new("info", Sizes::EIGHT);
        self.list.info().encode(&mut body).unwrap();
        let mut bytes = object(&[(0x15, body.finish())]);
        bytes.extend(lookup3(&bytes, 0).to_le_bytes());
        let len = bytes.len() as u64;
        let addr = self.space.alloc(len).unwrap();
        self.storage.write_at(addr.0, &bytes).unwrap();
        if let Some((before, _)) = self.committed.replace((addr, self.model.clone())) {
            self.space.free(before, len);
        }
        self.space.committed();
        self.check_committed();
        // The list knows what it takes of the file.
        let file = self.file();
        let mut known = self.list.extents();
        let mut found = dense_extents(&file, self.list.info()).unwrap();
        known.sort_unstable();
        found.sort_unstable();
        assert_eq!(known, found);
        assert!(known.windows(2).all(|two| two[0].0.0 + two[0].1 <= two[1].0.0));
        assert_eq!(self.list.len(), self.model.len() as u64);
    }

    fn file(&self) -> File {
        File::bare(Arc::clone(&self.storage), Sizes::EIGHT, ReadLimits::default())
    }

    fn check_committed(&self) {
        let Some((addr, model)) = &self.committed else { return };
        let file = self.file();
        let object = file.object(*addr).unwrap();
        let attributes = object.attributes(&file).unwrap();
        let found = (0..attributes.len()).map(|i| attributes.decode(i, &file).unwrap());
        let mut found: Model = found.map(|found| (found.name.to_vec(), found.data)).collect();
        let mut model = model.clone();
        if !self.list.info().tracked {
            found.sort();
            model.sort();
        }
        assert!(found == model, "{} attributes, not {}", found.len(), model.len());
        if let Some((name, data)) = model.get(model.len() / 2) {
            assert_eq!(&object.attribute(&file, name).unwrap().unwrap().data, data);
        }
    }

    /// What the header of the heap says of managed objects: free bytes, bytes of the table, those of
    /// blocks, the next block's offset, objects, and rows of the root.
    fn heap_statistics(&self) -> [u64; 6] {
        let file = self.file();
        let bytes = file.read("header", self.list.info().heap.unwrap(), 146).unwrap();
        let mut reader = crate::Reader::new("header", &bytes, 0, Sizes::EIGHT);
        reader.skip(30).unwrap();
        let free = reader.u64().unwrap();
        assert_eq!(reader.addr().unwrap(), None);
        let [span, allocated, next, count] = [(); 4].map(|()| reader.u64().unwrap());
        reader.skip(62).unwrap();
        [free, span, allocated, next, count, reader.u16().unwrap().into()]
    }
}

fn write(storage: &dyn Storage, blocks: &[(FileAddr, Vec<u8>)]) -> u64 {
    blocks.iter().for_each(|(addr, bytes)| storage.write_at(addr.0, bytes).unwrap());
    blocks.iter().map(|(_, bytes)| bytes.len() as u64).sum()
}

fn name(i: usize) -> Vec<u8> {
    format!("attribute{i}").into_bytes()
}

fn some(n: usize) -> Model {
    (0..n).map(|i| (name(i), vec![i as u8; 4])).collect()
}

#[test]
fn a_heap_that_grew_says_what_one_made_whole_says() {
    for n in [10, 30, 500, 3000] {
        let mut grown = ListTest::new(&info(true, true), some(9));
        for (i, last) in (9..n).step_by(25).map(|i| (i, n.min(i + 25))) {
            grown.step(|test, fresh| {
                (i..last).for_each(|i| test.set(&name(i), vec![i as u8; 4], false, fresh));
            });
        }
        let whole = ListTest::new(&info(true, true), some(n));
        assert_eq!(grown.heap_statistics(), whole.heap_statistics(), "{n}");
    }
}

#[test]
fn a_commit_writes_what_changed() {
    // Blocks of 32 KiB are the longest there; five levels of nodes are more than both trees have.
    let most = (32 << 10) + 2 * 5 * 512 + 1024;
    for n in [1000, 3000] {
        let mut test = ListTest::new(&info(true, true), some(n));
        for i in n..n + 40 {
            let before = test.written;
            test.step(|test, fresh| test.set(&name(i), vec![1; 4], false, fresh));
            assert!(test.written - before <= most, "{} bytes", test.written - before);
        }
        assert_eq!(test.n_whole, 0);
    }
}

#[test]
fn lists_are_made_anew_as_often_as_what_changed_allows() {
    for stays in [true, false] {
        let mut test = ListTest::new(&info(true, true), some(300));
        (test.written, test.n_whole) = (0, 0);
        for i in 0..zonda_testkit::by(700, 2000) {
            test.step(|test, fresh| test.set(&name(i % 300), vec![i as u8; 4], stays, fresh));
        }
        // Each time after 8 KB of messages at least.
        assert!((1..=18).contains(&test.n_whole), "{}", test.n_whole);
        // Twice what there is, what waits and what is on its way, of blocks of up to 8 KiB.
        assert!(test.space.end() < 240_000, "{}", test.space.end());
    }
    let n = zonda_testkit::by(400, 1000);
    let mut test = ListTest::new(&info(true, true), some(n));
    for i in 0..n - 10 {
        test.step(|test, _| test.remove(&name(i * 7 % n)));
    }
    assert!(test.n_whole <= 8, "{}", test.n_whole);
}

#[test]
fn there_are_no_creation_indexes_left() {
    let mut test = ListTest::new(&info(true, true), some(100));
    test.list.next = u32::from(u16::MAX) - 2;
    assert!(test.list.can_take(2));
    assert!(!test.list.can_take(3));
    test.step(|test, fresh| test.set(b"new", vec![], false, fresh));
    assert_eq!((test.n_whole, test.list.next), (0, u32::from(u16::MAX) - 1));
    test.step(|test, fresh| test.set(b"newer", vec![], false, fresh));
    test.step(|test, fresh| test.set(b"newest", vec![], true, fresh));
    assert_eq!((test.n_whole, test.list.next), (1, 103));
}

#[test]
fn long_attributes_come_beside_short_ones() {
    let mut test = ListTest::new(&info(true, true), some(70));
    for i in 70..200 {
        test.step(|test, fresh| test.set(&name(i), vec![1; i * 40], false, fresh));
    }
    let file = test.file();
    let heap = FractalHeap::open(&file, test.list.info().heap.unwrap()).unwrap();
    assert!(heap.extents(&file).unwrap().len() > 100, "there are huge objects");
}

/// A change, and whether a commit follows.
#[derive(Clone, Debug)]
enum Step {
    Set(usize, usize, bool),
    Remove(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![20 => 0usize..100, 4 => 100usize..4000, 1 => 4000usize..9000];
    prop_oneof![
        3 => (0usize..300, len, any::<bool>()).prop_map(|(i, len, stays)| Step::Set(i, len, stays)),
        1 => (0usize..300).prop_map(Step::Remove),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_changes_with_commits(
        first in 0usize..200,
        (tracked, indexed) in prop_oneof![
            Just((true, true)), Just((true, false)), Just((false, false)),
        ],
        steps in prop::collection::vec(prop::collection::vec(step(), 1..5), 1..60),
    ) {
        let mut test = ListTest::new(&info(tracked, indexed), some(first));
        for (n, changes) in steps.into_iter().enumerate() {
            test.step(|test, fresh| {
                for change in changes {
                    match change {
                        Step::Set(i, len, stays) => {
                            let data = (0..len).map(|j| (n * 31 + j) as u8).collect();
                            test.set(&name(i), data, stays, fresh);
                        }
                        Step::Remove(i) => test.remove(&name(i)),
                    }
                }
            });
        }
    }
}

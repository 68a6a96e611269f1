use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use zonda_storage::Storage;

use super::super::BtreeV2;
use super::*;
use crate::space::SECTOR;
use crate::{File, ReadLimits, Space};

const KIND: u8 = 8;
const LEN: u16 = 17;

/// A number with what it was set to last.
#[derive(Clone, Debug)]
struct Number(u64, u8);

impl TreeRecord for Number {
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u64(self.0.to_be()).u8(self.1).zeros(8);
        Ok(())
    }
}

/// A tree that is committed again and again, beside what it should have.
struct RecordTreeTest {
    storage: Arc<dyn Storage>,
    space: Space,
    tree: RecordTree<Number>,
    model: BTreeMap<u64, u8>,
    n_blocks: usize,
}

impl RecordTreeTest {
    fn new(records: impl Iterator<Item = u64>) -> RecordTreeTest {
        let model: BTreeMap<u64, u8> = records.map(|number| (number, 0)).collect();
        let records = model.keys().map(|&number| Number(number, 0)).collect();
        let tree = RecordTree::of(KIND, LEN, Sizes::EIGHT, records).unwrap();
        let (storage, space) = (crate::testing::storage(&[]), Space::new(SECTOR));
        RecordTreeTest { storage, space, tree, model, n_blocks: 0 }
    }

    fn set(&mut self, number: u64, value: u8) {
        let before = self.tree.insert(Number(number, value), &|other| other.0.cmp(&number));
        let before = before.unwrap().map(|number| number.1);
        assert_eq!(before, self.model.insert(number, value));
        assert_eq!(self.tree.len(), self.model.len() as u64);
    }

    fn remove(&mut self, number: u64) {
        let removed = self.tree.remove(&|other| other.0.cmp(&number)).map(|number| number.1);
        assert_eq!(removed, self.model.remove(&number), "{number}");
        assert_eq!(self.tree.len(), self.model.len() as u64);
    }

    fn file(&self) -> File {
        File::bare(Arc::clone(&self.storage), Sizes::EIGHT, ReadLimits::default())
    }

    /// Writes the tree and looks at all of it.
    fn commit(&mut self) -> FileAddr {
        let (mut fresh, mut freed) = (NewBlocks::new(&mut self.space), Vec::new());
        let addr = self.tree.write(&mut fresh, &mut freed).unwrap();
        let blocks = fresh.into_blocks();
        self.n_blocks = blocks.len();
        for (addr, bytes) in blocks {
            self.storage.write_at(addr.0, &bytes).unwrap();
        }
        freed.iter().for_each(|(addr, len)| self.space.free(*addr, *len));
        self.check(addr, &self.model);
        let mut known = Vec::new();
        self.tree.extents(&mut known);
        let file = self.file();
        let mut found = BtreeV2::open(&file, addr, KIND).unwrap().extents(&file).unwrap();
        known.sort_unstable();
        found.sort_unstable();
        assert_eq!(known, found);
        self.space.committed();
        addr
    }

    /// The tree whose header is here has these, in nodes that are as full as others want them.
    fn check(&self, addr: FileAddr, model: &BTreeMap<u64, u8>) {
        let file = self.file();
        let tree = BtreeV2::open(&file, addr, KIND).unwrap();
        let mut found = BTreeMap::new();
        tree.walk(&file, &mut |record| {
            let number = u64::from_be_bytes(record[..8].try_into().unwrap());
            assert!(found.last_key_value().is_none_or(|(last, _)| *last < number));
            found.insert(number, record[8]);
            Ok(true)
        })
        .unwrap();
        assert_eq!(&found, model);
        assert_eq!(tree.len(), model.len() as u64);
        let mut nodes: Vec<_> = tree.root().into_iter().map(|root| (root, tree.depth())).collect();
        while let Some((node, level)) = nodes.pop() {
            let max = tree.layout.levels[level].max_records;
            let least =
                if level == tree.depth() { 1 } else { max * u64::from(MERGE_PERCENT) / 100 };
            assert!((least..=max).contains(&node.records), "{} of {max}", node.records);
            let len = tree.node_len(node, level).unwrap();
            let bytes = file.read("node", node.addr, len).unwrap();
            let children = tree.decode_node(&file, node, level, bytes).unwrap().children;
            nodes.extend(children.into_iter().map(|child| (child, level - 1)));
        }
    }

    /// Nodes and header.
    fn len_in_file(&self) -> u64 {
        let mut extents = Vec::new();
        self.tree.extents(&mut extents);
        extents.iter().map(|(_, len)| len).sum()
    }
}

#[test]
fn a_change_costs_one_node_for_each_level() {
    let mut test = RecordTreeTest::new((0..20_000).map(|i| 2 * i));
    test.commit();
    let n_levels = test.tree.depth() + 1;
    assert_eq!(n_levels, 4);
    for i in [1, 9001, 39_999, 20_001] {
        test.set(i, 1);
        test.commit();
        // A node that was full is two now, and one level may go to its neighbour, too.
        assert!(test.n_blocks <= 2 * n_levels, "{} blocks", test.n_blocks);
        test.set(i, 2);
        test.commit();
        assert_eq!(test.n_blocks, n_levels + 1);
    }
    test.commit();
    assert_eq!(test.n_blocks, 0);
}

#[test]
fn records_at_the_end_fill_nodes() {
    let mut test = RecordTreeTest::new(0..0);
    test.commit();
    for i in 0..3000 {
        test.set(i, 0);
        if i % 50 == 0 {
            test.commit();
        }
    }
    test.commit();
    let whole = RecordTreeTest::new(0..3000);
    let mut whole = RecordTreeTest { space: Space::new(SECTOR), ..whole };
    whole.commit();
    let (grown, made) = (test.len_in_file(), whole.len_in_file());
    assert!(grown <= made + made / 10, "{grown} bytes, and {made} of a tree made whole");
}

#[test]
fn a_copy_stays_what_it_was() {
    let mut test = RecordTreeTest::new(0..1000);
    let before = test.commit();
    let (copy, model) = (test.tree.clone(), test.model.clone());
    (0..500).for_each(|i| test.remove(2 * i));
    test.commit();
    test.check(before, &model);
    assert_eq!((test.tree.len(), copy.len()), (500, 1000));
    (test.tree, test.model) = (copy, model);
    test.set(1001, 3);
    test.commit();
}

#[test]
fn all_records_come_and_go() {
    for n in [1, 29, 30, 600, 3000] {
        let mut test = RecordTreeTest::new(0..0);
        for i in 0..n {
            test.set(i * 7919 % n, 0);
        }
        test.commit();
        for i in 0..n {
            test.remove(i * 4801 % n);
            if i % 97 == 0 {
                test.commit();
            }
        }
        test.commit();
        assert!(test.model.is_empty() || n % 4801 == 0);
        test.set(5, 5);
        test.commit();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_changes(
        first in 0u64..2000,
        steps in prop::collection::vec((0u64..2500, 0u8..10, any::<bool>()), 0..800),
    ) {
        let mut test = RecordTreeTest::new(0..first);
        let mut before = None;
        for (number, value, commits) in steps {
            if value < 5 {
                test.remove(number);
            } else {
                test.set(number, value);
            }
            if commits && number % 8 == 0 {
                let model = test.model.clone();
                let addr = test.commit();
                // What the commit before has is still there.
                if let Some((addr, model)) = before.replace((addr, model)) {
                    test.check(addr, &model);
                }
            }
        }
        test.commit();
    }
}

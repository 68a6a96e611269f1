use std::collections::BTreeMap;
use std::collections::BTreeSet;

use proptest::prelude::*;
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

use super::*;
use crate::btree_v1::{self, NodeType};
use crate::space::SECTOR;
use crate::testing::Builder;
use crate::{Fresh, Sizes, Space};

type Found = BTreeMap<Vec<u64>, ChunkLocation>;

/// A dataset whose chunks come and go, and what a tree of them has to say.
struct Lab {
    storage: Arc<Memory>,
    space: Space,
    chunk: Vec<u64>,
    /// Chunks along each dimension.
    counts: Vec<u64>,
    /// Steps from one chunk to the next along the last dimension.
    far: u64,
    tree: ChunkTree,
    root: Option<FileAddr>,
    model: Found,
}

/// The superblock of a file whose chunk trees have nodes of 2 `k` children.
fn superblock(k: u16, sizes: Sizes, base: u64) -> Vec<u8> {
    let start = usize::try_from(base).unwrap();
    let word = |builder: Builder, value: u64| {
        builder.bytes(&value.to_le_bytes()[..usize::from(sizes.offset)])
    };
    let mut head = Builder::new(start).bytes(b"\x89HDF\r\n\x1a\n\x01\0\0\0\0");
    head = head.bytes(&[sizes.offset, sizes.length, 0]).u16(4).u16(16).u32(0).u16(k).u16(0);
    for value in [base, u64::MAX, base + 128, u64::MAX, 0, 96] {
        head = word(head, value);
    }
    head.pad_to(start + 128).bytes
}

const ELEM: u32 = 4;

impl Lab {
    fn new(k: u16, chunk: &[u64], counts: &[u64]) -> Lab {
        Lab::with(k, chunk, counts, Sizes::EIGHT, 0)
    }

    fn with(k: u16, chunk: &[u64], counts: &[u64], sizes: Sizes, base: u64) -> Lab {
        let storage = Arc::new(Memory::from_slice(&superblock(k, sizes, base)));
        let file = open(&storage);
        let tree = ChunkTree::new(&file, chunk, ELEM).unwrap();
        let (chunk, counts) = (chunk.to_vec(), counts.to_vec());
        let space = Space::new(128);
        Lab { storage, space, chunk, counts, far: 1, tree, root: None, model: Found::new() }
    }

    /// A key by number, row by row.
    fn key(&self, number: u64) -> Vec<u64> {
        let mut rest = number;
        let mut key: Vec<u64> = self
            .counts
            .iter()
            .rev()
            .map(|&count| {
                let coord = rest % count;
                rest /= count;
                coord
            })
            .collect();
        key.reverse();
        *key.last_mut().unwrap() *= self.far;
        key
    }

    fn total(&self) -> u64 {
        self.counts.iter().product()
    }

    /// Chunks along each dimension, where there are any or not.
    fn grid(&self) -> Vec<u64> {
        let mut grid = self.counts.clone();
        *grid.last_mut().unwrap() *= self.far;
        grid
    }

    fn layout(&self) -> ChunkedLayout {
        ChunkedLayout {
            chunk_dims: self.chunk.clone(),
            elem_size: ELEM,
            index: ChunkIndexKind::BtreeV1,
            addr: self.root,
            partial_edge_unfiltered: false,
            wide_filtered_sizes: false,
        }
    }

    fn insert(&mut self, key: &[u64], n: u64) {
        let base = open(&self.storage).position(FileAddr(0));
        let at = ChunkLocation { at: base + 8 * n, len: 100 + n % 7, mask: (n % 3) as u32 };
        let before = self.tree.insert(key, at).unwrap();
        assert_eq!(before, self.model.insert(key.to_vec(), at), "{key:?}");
    }

    fn remove(&mut self, key: &[u64]) {
        assert_eq!(self.tree.remove(key).unwrap(), self.model.remove(key), "{key:?}");
    }

    /// Commits, and tries what a dying writer may leave.
    fn commit(&mut self) -> TreeCommit {
        let file = open(&self.storage);
        let before = (self.storage.to_vec().unwrap(), self.root, self.all_of(&self.storage));
        let mut fresh = Fresh::new(&mut self.space);
        let commit = self.tree.commit(&mut fresh).unwrap();
        fresh.write(&file).unwrap();
        self.check_old(&before, &[]);
        for (i, (at, word)) in commit.patches.iter().enumerate() {
            assert_eq!(word.len(), usize::from(file.sizes().offset));
            assert_eq!(at.0 / SECTOR, (at.0 + word.len() as u64 - 1) / SECTOR, "one sector");
            if i < 1 {
                self.check_old(&before, &commit.patches[..=i]);
            }
        }
        // Before the words of neighbours are right, too.
        self.root = commit.root;
        same(&self.all(), &self.model, "the new tree, with old words");
        for (at, word) in &commit.patches {
            self.storage.write_at(file.position(*at), word).unwrap();
        }
        self.space.committed();
        assert!(!self.tree.is_dirty());
        commit
    }

    /// Whether the tree of the last commit can be read whatever of the new one has arrived.
    fn check_old(
        &self,
        before: &(Vec<u8>, Option<FileAddr>, Found),
        patches: &[(FileAddr, Vec<u8>)],
    ) {
        let (old, root, chunks) = before;
        let now = self.storage.to_vec().unwrap();
        let sector = SECTOR as usize;
        let n = now.len().div_ceil(sector);
        let arrived: [&dyn Fn(usize) -> bool; 5] =
            [&|_| true, &|i| i < n / 3, &|i| i < n - 1, &|i| i % 2 == 0, &|i| i % 3 == 1];
        for arrived in arrived {
            let mut bytes = now.clone();
            for (i, sector_bytes) in bytes.chunks_mut(sector).enumerate() {
                if !arrived(i) {
                    let was = old.get(i * sector..).unwrap_or_default();
                    let n = was.len().min(sector_bytes.len());
                    sector_bytes[..n].copy_from_slice(&was[..n]);
                    sector_bytes[n..].fill(0);
                }
            }
            let storage = Memory::from_slice(&bytes);
            let file = open(&Arc::new(Memory::from_slice(&bytes)));
            for (at, word) in patches {
                storage.write_at(file.position(*at), word).unwrap();
            }
            let layout = ChunkedLayout { addr: *root, ..self.layout() };
            same(&chunks_of(&Arc::new(storage), &layout, &self.grid()), chunks, "the old tree");
        }
    }

    fn all_of(&self, storage: &Arc<Memory>) -> Found {
        chunks_of(storage, &self.layout(), &self.grid())
    }

    /// What the reader finds.
    fn all(&self) -> Found {
        self.all_of(&self.storage)
    }

    /// Commits, and looks at all that was written.
    fn check(&mut self) -> TreeCommit {
        let commit = self.commit();
        same(&self.all(), &self.model, "the new tree");
        if let Some(root) = self.root {
            check_nodes(&open(&self.storage), root, self.chunk.len());
        }
        commit
    }

    /// Goes on with the tree as it is in the file.
    fn reload(&mut self) {
        self.tree = ChunkTree::load(&open(&self.storage), &self.layout(), true).unwrap();
    }

    fn nodes(&self) -> Vec<usize> {
        let Some(root) = self.root else { return Vec::new() };
        levels(&open(&self.storage), root, self.chunk.len()).iter().map(Vec::len).collect()
    }
}

/// Too many to be shown.
fn same(got: &Found, want: &Found, what: &str) {
    let differs = |(a, b): &(_, _)| a != b;
    assert_eq!(got.iter().zip(want).find(differs), None, "{what}");
    assert_eq!(got.len(), want.len(), "{what}");
}

fn open(storage: &Arc<Memory>) -> Arc<File> {
    Arc::new(File::open(Arc::clone(storage) as Arc<dyn Storage>).unwrap())
}

fn chunks_of(storage: &Arc<Memory>, layout: &ChunkedLayout, counts: &[u64]) -> Found {
    let dims: Vec<u64> = counts.iter().zip(&layout.chunk_dims).map(|(n, dim)| n * dim).collect();
    let index = ChunkIndex::new(open(storage), layout, &dims, &[], true).unwrap();
    let mut found = Found::new();
    index
        .for_each(&mut |key, at| {
            assert_eq!(found.insert(key.to_vec(), at), None);
        })
        .unwrap();
    found
}

/// A node and where it is.
type Placed = (FileAddr, btree_v1::Node);

/// The nodes of each level, the root's first.
fn levels(file: &File, root: FileAddr, rank: usize) -> Vec<Vec<Placed>> {
    let read = |addr| {
        (addr, btree_v1::Node::read(file, addr, NodeType::Chunk, None, 16 + 8 * rank).unwrap())
    };
    let mut out = vec![vec![read(root)]];
    while out.last().unwrap()[0].1.level() > 0 {
        let children = out.last().unwrap().iter().flat_map(|(_, node)| {
            (0..node.len()).map(|i| read(node.child(i).unwrap())).collect::<Vec<_>>()
        });
        let next = children.collect();
        out.push(next);
    }
    out
}

/// Looks at what readers of whole nodes and of neighbours need.
fn check_nodes(file: &File, root: FileAddr, rank: usize) {
    let shape = Source::new(&Arc::new(open_again(file)), &vec![1; rank], ELEM).unwrap().shape;
    let key = |node: &btree_v1::Node, i: usize| {
        let mut key = node.key(i).unwrap();
        key.skip(8).unwrap();
        (0..=rank).map(|_| key.u64().unwrap()).collect::<Vec<u64>>()
    };
    let mut seen = BTreeSet::new();
    let mut bounds: Option<BTreeMap<FileAddr, Vec<u64>>> = None;
    for level in levels(file, root, rank) {
        let mut next_bounds = BTreeMap::new();
        for (i, (addr, node)) in level.iter().enumerate() {
            assert!(seen.insert(*addr), "a node with two parents");
            assert_eq!(addr.0 % 8, 0);
            assert!(!node.is_empty() && node.len() <= shape.most);
            // All bytes of the node are there, and nothing else is.
            let bytes = file.read("node", *addr, shape.node_len()).unwrap();
            let used = usize::try_from(node.bytes()).unwrap();
            assert!(bytes[used..].iter().all(|&byte| byte == 0));
            let side = |at: Option<usize>| at.and_then(|at| level.get(at)).map(|(addr, _)| *addr);
            let mut words = file.reader("node", *addr, &bytes[8..]);
            assert_eq!(words.addr().unwrap(), side(i.checked_sub(1)), "left of {i}");
            assert_eq!(words.addr().unwrap(), side(Some(i + 1)), "right of {i}");
            let last = key(node, node.len());
            let is_end = i + 1 == level.len();
            assert_eq!(last[rank], if is_end { u64::from(ELEM) } else { 0 });
            for i in 0..node.len() {
                assert!(key(node, i) < key(node, i + 1));
                if node.level() > 0 {
                    next_bounds.insert(node.child(i).unwrap(), key(node, i + 1));
                }
            }
            if let Some(bounds) = &bounds {
                assert_eq!(bounds[addr], last, "the bound that is known above");
            }
        }
        bounds = Some(next_bounds);
    }
}

fn open_again(file: &File) -> File {
    File::open(Arc::clone(file.storage())).unwrap()
}

/// Orders in which `n` chunks may come.
fn orders(n: u64) -> Vec<(&'static str, Vec<u64>)> {
    let stride = 37.min(n.max(1));
    let mut random: Vec<u64> = (0..n).collect();
    random.sort_by_key(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    vec![
        ("ascending", (0..n).collect()),
        ("descending", (0..n).rev().collect()),
        ("strided", (0..stride).flat_map(|from| (from..n).step_by(stride as usize)).collect()),
        ("random", random),
    ]
}

#[test]
fn chunks_come_in_any_order() {
    let grids: [(&[u64], &[u64]); 5] = [
        (&[5], &[40_000]),
        (&[2, 3], &[100, 60]),
        (&[1, 1, 7], &[9, 8, 50]),
        (&[1, 2, 3, 4], &[5, 6, 7, 8]),
        (&[2, 1, 2, 1, 2], &[3, 4, 5, 6, 7]),
    ];
    for (chunk, counts) in grids {
        let total: u64 = counts.iter().product();
        for n in [0, 1, 2, 63, 64, 65, 128, 129, total.min(4_161)] {
            for (name, order) in orders(n.min(total)) {
                let mut lab = Lab::new(32, chunk, counts);
                for (i, &number) in order.iter().enumerate() {
                    lab.insert(&lab.key(number), i as u64);
                    if i == order.len() / 3 || i == order.len() / 2 {
                        lab.check();
                    }
                }
                lab.check();
                assert_eq!(lab.tree.len().unwrap(), n.min(total), "{name}");
                assert_eq!(lab.tree.is_empty(), n == 0);
                assert!(
                    lab.tree.commit(&mut Fresh::new(&mut lab.space)).unwrap().patches.is_empty()
                );
                // The same from the file, and then all of it written over.
                lab.reload();
                for &number in order.iter().rev() {
                    lab.insert(&lab.key(number), number + 5);
                }
                lab.check();
            }
        }
    }
}

#[test]
fn chunks_one_after_the_other_leave_full_nodes() {
    for descending in [false, true] {
        let mut lab = Lab::new(32, &[1, 4], &[400, 250]);
        for i in 0..100_000 {
            let number = if descending { 99_999 - i } else { i };
            lab.insert(&lab.key(number), i);
        }
        lab.check();
        assert_eq!(lab.nodes(), [1, 25, 1563], "{descending}");
    }
    // Also between others, as where rows grow side by side.
    let mut lab = Lab::new(32, &[1, 4], &[10, 1000]);
    for column in 0..1000 {
        for row in 0..10 {
            lab.insert(&[row, column], column);
        }
    }
    lab.check();
    assert!(lab.nodes()[1] <= 10 * 17, "{:?}", lab.nodes());
}

#[test]
fn an_order_that_only_looks_like_one_makes_no_more_nodes() {
    // A full leaf, and then always the chunk before the last one that came, all behind it.
    let mut lab = Lab::new(32, &[1], &[1_000_000]);
    (0..64).for_each(|i| lab.insert(&[i], i));
    lab.insert(&[900_000], 0);
    for i in (64..20_000).rev() {
        lab.insert(&[i], i);
    }
    lab.check();
    assert!(lab.nodes().last().unwrap() <= &(20_000 / 32 + 2), "{:?}", lab.nodes());
}

#[test]
fn an_append_writes_the_right_edge_only() {
    let mut lab = Lab::new(8, &[1, 8, 8], &[41, 10, 10]);
    (0..3_990).for_each(|i| lab.insert(&lab.key(i), i));
    lab.check();
    for reloaded in [false, true] {
        if reloaded {
            lab.reload();
        }
        let end = lab.space.end();
        let n = lab.model.len() as u64;
        lab.insert(&lab.key(n), n);
        assert!(lab.tree.is_dirty());
        let commit = lab.check();
        // Three nodes; the last of each level but the root has one neighbour.
        assert!(commit.patches.len() <= 2, "{}", commit.patches.len());
        let node = lab.tree.source.shape.node_len();
        assert!(lab.space.end() - end <= 3 * node.next_multiple_of(8));
    }
    assert_eq!(lab.nodes().len(), 3);
}

#[test]
fn places_serve_again() {
    let mut lab = Lab::new(2, &[1], &[100_000]);
    for i in 0..100 {
        lab.insert(&[i], i);
        lab.check();
    }
    let end = lab.space.end();
    for i in 0..300 {
        lab.insert(&[i % 100], i);
        lab.check();
    }
    // Two commits' worth of changed nodes and no more.
    let node = lab.tree.source.shape.node_len();
    assert!(lab.space.end() <= end + 20 * node, "{} {end}", lab.space.end());
    while let Some(key) = lab.model.keys().next().cloned() {
        lab.remove(&key);
    }
    assert!(lab.tree.is_dirty() && lab.tree.is_empty());
    assert_eq!(lab.commit(), TreeCommit::default());
    assert!(!lab.tree.is_dirty());
    (0..3).for_each(|_| lab.space.committed());
    // Everything is free again, as one run from behind the superblock.
    let all = lab.space.end() - 128;
    assert_eq!(lab.space.alloc(all).unwrap(), FileAddr(128));
}

#[test]
fn narrow_files_with_a_user_block() {
    let sizes = Sizes { offset: 4, length: 4 };
    let mut lab = Lab::with(3, &[2, 2], &[40, 40], sizes, 1024);
    for (i, number) in orders(1600).pop().unwrap().1.into_iter().enumerate() {
        lab.insert(&lab.key(number), i as u64);
        if i % 400 == 399 {
            lab.check();
            lab.reload();
        }
    }
    let file = open(&lab.storage);
    let far =
        ChunkLocation { at: file.position(FileAddr(u64::from(u32::MAX) + 1)), len: 1, mask: 0 };
    lab.tree.insert(&[0, 0], far).unwrap();
    let error = lab.tree.commit(&mut Fresh::new(&mut lab.space)).unwrap_err();
    assert!(matches!(error, HdfError::TooLarge { .. }), "{error}");
    let before = ChunkLocation { at: 1000, len: 1, mask: 0 };
    assert!(lab.tree.insert(&[0, 0], before).is_err());
}

#[test]
fn what_cannot_be_is_refused() {
    let storage = Arc::new(Memory::from_slice(&superblock(32, Sizes::EIGHT, 0)));
    let file = open(&storage);
    assert!(ChunkTree::new(&file, &[], 4).is_err());
    assert!(ChunkTree::new(&file, &[3, 0], 4).is_err());
    assert!(ChunkTree::new(&file, &[1 << 20, 1 << 10], 4).is_err());
    assert!(ChunkTree::new(&file, &[u64::MAX, 3], 4).is_err());
    let mut tree = ChunkTree::new(&file, &[3, 4], 4).unwrap();
    let at = ChunkLocation { at: 5, len: 10, mask: 0 };
    assert!(tree.insert(&[1], at).is_err() && tree.get(&[1, 2, 3]).is_err());
    assert!(tree.insert(&[1, 2], ChunkLocation { len: 1 << 32, ..at }).is_err());
    assert!(!tree.is_dirty());
    assert!(tree.insert(&[u64::MAX, 0], at).is_err());
    assert!(!tree.is_dirty());
    // No element has such a number.
    tree.insert(&[u64::MAX - 1, 0], at).unwrap();
    let mut space = Space::new(128);
    assert!(tree.commit(&mut Fresh::new(&mut space)).is_err());
}

#[test]
fn bounds_that_others_wrote_may_be_none() {
    let mut lab = Lab::new(2, &[3], &[100]);
    (0..30).for_each(|i| lab.insert(&[2 * i], i));
    lab.check();
    // The last keys of all nodes at the right edge.
    for level in levels(&open(&lab.storage), lab.root.unwrap(), 1) {
        let (addr, node) = level.last().unwrap();
        let at = addr.0 + 24 + 32 * node.len() as u64;
        lab.storage.write_at(at, &[0; 24]).unwrap();
    }
    lab.reload();
    for i in [30, 57, 59, 58, 60, 99] {
        lab.insert(&[i], i);
    }
    lab.check();
}

#[test]
fn damaged_nodes_are_errors() {
    let mut lab = Lab::new(2, &[1, 3], &[40, 5]);
    (0..200).for_each(|i| lab.insert(&lab.key(i), i));
    lab.check();
    let bytes = lab.storage.to_vec().unwrap();
    let mut failed = 0;
    for at in (128..bytes.len()).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x41;
        let storage = Arc::new(Memory::from_slice(&damaged));
        let Ok(mut tree) = ChunkTree::load(&open(&storage), &lab.layout(), true) else {
            failed += 1;
            continue;
        };
        failed += u32::from(tree.len().is_err());
        let ends = ChunkLocation { at: 8, len: 8, mask: 0 };
        for number in [0, 57, 199, 300] {
            let key = lab.key(number);
            let before = tree.get(&key);
            let inserted = tree.insert(&key, ends);
            assert_eq!(before.is_err(), inserted.is_err());
            if inserted.is_ok() {
                assert_eq!(tree.get(&key).unwrap(), Some(ends));
                let _ = tree.remove(&key);
            }
        }
        let mut space = Space::new(bytes.len() as u64);
        let _ = tree.commit(&mut Fresh::new(&mut space));
    }
    assert!(failed > 300, "{failed}");
}

#[test]
fn chunks_of_other_indexes() {
    let mut lab = Lab::new(32, &[2, 3], &[50, 40]);
    for (i, number) in orders(2000).pop().unwrap().1.into_iter().take(900).enumerate() {
        lab.insert(&lab.key(number), i as u64);
    }
    lab.check();
    let index = ChunkIndex::new(open(&lab.storage), &lab.layout(), &[100, 120], &[], true).unwrap();
    lab.tree = ChunkTree::from_other(&open(&lab.storage), &[2, 3], ELEM, &index).unwrap();
    assert!(lab.tree.is_dirty());
    lab.check();
    // They came in order.
    assert_eq!(lab.nodes(), [1, 15]);
}

/// Nanoseconds that this thread was running, whatever else the machine does.
fn cpu_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

/// The least time of several runs, for each of so many things.
fn least<T>(runs: u64, n: u64, mut run: impl FnMut() -> T) -> (u64, T) {
    let mut best = None::<(u64, T)>;
    for _ in 0..runs {
        let start = cpu_time();
        let result = run();
        let time = (cpu_time() - start) / n;
        if best.as_ref().is_none_or(|(best, _)| time < *best) {
            best = Some((time, result));
        }
    }
    best.unwrap()
}

#[test]
#[ignore = "a measurement: run in release, with --nocapture"]
fn costs() {
    let n = 1_000_000;
    let runs = 5;
    let at = ChunkLocation { at: 8, len: 8, mask: 0 };
    for counts in [&[n][..], &[100, 100, 100], &[10, 10, 100, 100]] {
        let rank = counts.len();
        for (name, order) in orders(n) {
            let lab = Lab::new(32, &vec![1; rank], counts);
            let keys: Vec<u64> = order.iter().flat_map(|&number| lab.key(number)).collect();
            let keys: Vec<&[u64]> = keys.chunks(rank).collect();
            let file = open(&lab.storage);
            let (insert, mut tree) = least(runs, n, || {
                let mut tree = ChunkTree::new(&file, &vec![1; rank], ELEM).unwrap();
                assert!(keys.iter().all(|key| tree.insert(key, at).unwrap().is_none()));
                tree
            });
            let (get, ()) = least(runs, n, || {
                assert!(keys.iter().all(|key| tree.get(key).unwrap().is_some()));
            });
            let wide = |key: &[u64]| {
                let mut wide = [0; 4];
                wide[..rank].copy_from_slice(key);
                wide
            };
            let (map_insert, map) = least(runs, n, || {
                let mut map = BTreeMap::new();
                assert!(keys.iter().all(|key| map.insert(wide(key), (8u64, 8u32, 0u32)).is_none()));
                map
            });
            let (map_get, ()) = least(runs, n, || {
                assert!(keys.iter().all(|key| map.contains_key(&wide(key))));
            });
            let mut space = Space::new(128);
            let (encode, _) = least(1, n, || tree.commit(&mut Fresh::new(&mut space)).unwrap());
            let last: Vec<u64> = counts.iter().map(|count| count - 1).collect();
            let (commit, _) = least(1, 10_000, || {
                for i in 0..10_000 {
                    tree.insert(&last, ChunkLocation { at: i, ..at }).unwrap();
                    tree.commit(&mut Fresh::new(&mut space)).unwrap();
                }
            });
            eprintln!(
                "rank {rank} {name}: insert {insert} ns, get {get}, encode {encode} (a BTreeMap: \
                 insert {map_insert}, get {map_get}); a commit of one chunk {commit} ns"
            );
        }
    }
}

/// One thing that is done to a tree.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    Run(u64, u64, bool),
    Remove(u64),
    RemoveRun(u64, u64),
    Commit,
    Reload,
    Look(u64, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => any::<u64>().prop_map(Step::Insert),
        2 => (any::<u64>(), 1..60u64, any::<bool>()).prop_map(|(at, n, up)| Step::Run(at, n, up)),
        3 => any::<u64>().prop_map(Step::Remove),
        1 => (any::<u64>(), 1..60u64).prop_map(|(at, n)| Step::RemoveRun(at, n)),
        1 => Just(Step::Commit),
        1 => Just(Step::Reload),
        2 => (any::<u64>(), any::<u64>()).prop_map(|(a, b)| Step::Look(a, b)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn trees_are_maps(
        k in 1..4u16,
        counts in prop::collection::vec(1..12u64, 1..5),
        far in prop::sample::select(vec![1u64, 3, 1 << 40]),
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let chunk: Vec<u64> = (1..=counts.len() as u64).collect();
        let mut lab = Lab::new(k, &chunk, &counts);
        lab.far = far;
        let total = lab.total();
        for (i, step) in steps.into_iter().enumerate() {
            let i = i as u64;
            match step {
                Step::Insert(at) => lab.insert(&lab.key(at % total), i),
                Step::Run(at, n, up) => {
                    for j in 0..n {
                        let step = if up { j } else { n - j };
                        lab.insert(&lab.key((at % total + step) % total), i + j);
                    }
                }
                Step::Remove(at) => lab.remove(&lab.key(at % total)),
                Step::RemoveRun(at, n) => {
                    (0..n).for_each(|j| lab.remove(&lab.key((at % total + j) % total)));
                }
                Step::Commit => drop(lab.check()),
                Step::Reload => {
                    lab.check();
                    lab.reload();
                }
                Step::Look(a, b) => {
                    let (first, last) = (lab.key(a % total), lab.key(b % total));
                    let is_in = |key: &[u64]| {
                        (0..key.len()).all(|d| first[d] <= key[d] && key[d] <= last[d])
                    };
                    let want: Vec<_> = lab.model.iter().filter(|(key, _)| is_in(key))
                        .map(|(key, at)| (key.clone(), *at)).collect();
                    let mut got = Vec::new();
                    let tell = &mut |key: &[u64], at| got.push((key.to_vec(), at));
                    lab.tree.for_each_in(&first, &last, tell).unwrap();
                    prop_assert_eq!(got, want);
                    prop_assert_eq!(lab.tree.get(&first).unwrap(), lab.model.get(&first).copied());
                }
            }
        }
        lab.check();
        prop_assert_eq!(lab.tree.len().unwrap(), lab.model.len() as u64);
    }
}

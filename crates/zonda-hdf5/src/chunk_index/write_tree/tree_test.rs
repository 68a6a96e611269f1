//! A dataset whose chunks are inserted and removed, for the tests of chunk trees.

use std::collections::{BTreeMap, BTreeSet};

use zonda_storage::Storage;
use zonda_storage::backend::Memory;

use super::*;
use crate::btree_v1::{self, NodeType};
use crate::space::SECTOR;
use crate::testing::StructureBytes;
use crate::{NewBlocks, Sizes, Space};

pub(super) type ChunkMap = BTreeMap<Vec<u64>, ChunkLocation>;

/// A dataset, its tree in memory and in the file, and a model of what both must have.
pub(super) struct ChunkTreeTest {
    pub(super) storage: Arc<Memory>,
    pub(super) space: Space,
    pub(super) chunk: Vec<u64>,
    /// Chunks along each dimension.
    pub(super) counts: Vec<u64>,
    /// Steps from one chunk to the next along the last dimension.
    pub(super) far: u64,
    pub(super) tree: ChunkTree,
    /// The writer commits again and again.
    pub(super) often: bool,
    pub(super) root: Option<FileAddr>,
    pub(super) model: ChunkMap,
}

/// The superblock of a file whose chunk trees have nodes of 2 `k` children.
pub(super) fn superblock(k: u16, sizes: Sizes, base: u64) -> Vec<u8> {
    let start = usize::try_from(base).unwrap();
    let word = |builder: StructureBytes, value: u64| {
        builder.bytes(&value.to_le_bytes()[..usize::from(sizes.offset)])
    };
    let mut head = StructureBytes::new(start).bytes(b"\x89HDF\r\n\x1a\n\x01\0\0\0\0");
    head = head.bytes(&[sizes.offset, sizes.length, 0]).u16(4).u16(16).u32(0).u16(k).u16(0);
    for value in [base, u64::MAX, base + 128, u64::MAX, 0, 96] {
        head = word(head, value);
    }
    head.pad_to(start + 128).bytes
}

pub(super) const ELEM: u32 = 4;

impl ChunkTreeTest {
    pub(super) fn new(k: u16, chunk: &[u64], counts: &[u64]) -> ChunkTreeTest {
        ChunkTreeTest::with(k, chunk, counts, Sizes::EIGHT, 0)
    }

    pub(super) fn with(
        k: u16,
        chunk: &[u64],
        counts: &[u64],
        sizes: Sizes,
        base: u64,
    ) -> ChunkTreeTest {
        let storage = Arc::new(Memory::from_slice(&superblock(k, sizes, base)));
        let file = open(&storage);
        let tree = ChunkTree::new(&file, chunk, ELEM).unwrap();
        let (chunk, counts) = (chunk.to_vec(), counts.to_vec());
        let space = Space::new(128);
        let (root, model) = (None, ChunkMap::new());
        ChunkTreeTest { storage, space, chunk, counts, far: 1, tree, often: false, root, model }
    }

    /// A key by number, row by row.
    pub(super) fn key(&self, number: u64) -> Vec<u64> {
        let mut remainder = number;
        let mut key: Vec<u64> = self
            .counts
            .iter()
            .rev()
            .map(|&count| {
                let coord = remainder % count;
                remainder /= count;
                coord
            })
            .collect();
        key.reverse();
        *key.last_mut().unwrap() *= self.far;
        key
    }

    pub(super) fn total(&self) -> u64 {
        self.counts.iter().product()
    }

    /// Chunks along each dimension, where there are any or not.
    pub(super) fn grid(&self) -> Vec<u64> {
        let mut grid = self.counts.clone();
        *grid.last_mut().unwrap() *= self.far;
        grid
    }

    pub(super) fn layout(&self) -> ChunkedLayout {
        ChunkedLayout {
            chunk_dims: self.chunk.clone(),
            elem_size: ELEM,
            index: ChunkIndexKind::BtreeV1,
            addr: self.root,
            partial_edge_unfiltered: false,
            wide_filtered_sizes: false,
        }
    }

    pub(super) fn insert(&mut self, key: &[u64], n: u64) {
        let base = open(&self.storage).position(FileAddr(0));
        let at = ChunkLocation { at: base + 8 * n, len: 100 + n % 7, mask: (n % 3) as u32 };
        let before = self.tree.insert(key, at).unwrap();
        assert_eq!(before, self.model.insert(key.to_vec(), at), "{key:?}");
    }

    pub(super) fn remove(&mut self, key: &[u64]) {
        assert_eq!(self.tree.remove(key).unwrap(), self.model.remove(key), "{key:?}");
    }

    /// Commits, and checks every state that a dying writer may leave.
    pub(super) fn commit(&mut self) -> TreeCommit {
        let file = open(&self.storage);
        let before = (self.storage.to_vec().unwrap(), self.root, self.all_of(&self.storage));
        let mut fresh = NewBlocks::new(&mut self.space);
        let commit = self.tree.commit(&mut fresh, self.often).unwrap();
        fresh.write(&file).unwrap();
        let put = |pieces: &[(FileAddr, Vec<u8>)]| {
            for (at, bytes) in pieces {
                self.storage.write_at(file.position(*at), bytes).unwrap();
            }
        };
        // Word by word what is written over bounds.
        for (at, bytes) in &commit.appended {
            for (i, word) in bytes.chunks(8).enumerate().collect::<Vec<_>>().into_iter().rev() {
                self.storage.write_at(file.position(*at) + 8 * i as u64, word).unwrap();
                if i < 6 && self.model.len() < 100 {
                    let layout = ChunkedLayout { addr: before.1, ..self.layout() };
                    let found = chunks_of(&self.storage, &layout, &self.grid());
                    same(&found, &before.2, "words of a bound");
                }
            }
        }
        put(&commit.appended);
        self.check_old(&before, &[]);
        let mut n_swapped = 0;
        for (at, word) in &commit.switches {
            assert_eq!(at.0 / SECTOR, (at.0 + word.len() as u64 - 1) / SECTOR, "one sector");
            n_swapped += usize::from(word.len() > 2);
        }
        assert!(n_swapped <= 1, "all that was there changes at once");
        for (i, (at, word)) in commit.patches.iter().enumerate() {
            assert_eq!(word.len(), usize::from(file.sizes().offset));
            assert_eq!(at.0 / SECTOR, (at.0 + word.len() as u64 - 1) / SECTOR, "one sector");
            if i < 1 {
                self.check_old(&before, &commit.patches[..=i]);
            }
        }
        // All that was there is as it was, or as it is now, and what is counted in addition is behind it.
        let now: ChunkMap =
            before.2.keys().filter_map(|key| Some((key.clone(), *self.model.get(key)?))).collect();
        for i in 0..commit.switches.len() {
            put(&commit.switches[i..=i]);
            if i % 8 > 0 && i + 1 < commit.switches.len() {
                continue;
            }
            let layout = ChunkedLayout { addr: before.1, ..self.layout() };
            let mut found = chunks_of(&self.storage, &layout, &self.grid());
            found.retain(|key, _| before.2.contains_key(key));
            same(&found, if found == now { &now } else { &before.2 }, "the old tree, switched");
        }
        // The new tree is right before the addresses of neighbours are, too.
        self.root = commit.root;
        same(&self.all(), &self.model, "the new tree, with old words");
        put(&commit.patches);
        self.space.committed();
        assert!(!self.tree.is_dirty());
        commit
    }

    /// Whether the tree of the last commit can be read whatever of the new one has arrived.
    fn check_old(
        &self,
        before: &(Vec<u8>, Option<FileAddr>, ChunkMap),
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

    fn all_of(&self, storage: &Arc<Memory>) -> ChunkMap {
        chunks_of(storage, &self.layout(), &self.grid())
    }

    /// All chunks that a reader finds.
    pub(super) fn all(&self) -> ChunkMap {
        self.all_of(&self.storage)
    }

    /// Commits, and checks all that was written.
    pub(super) fn check(&mut self) -> TreeCommit {
        let commit = self.commit();
        same(&self.all(), &self.model, "the new tree");
        if let Some(root) = self.root {
            check_nodes(&open(&self.storage), root, self.chunk.len());
        }
        commit
    }

    /// Goes on with the tree as it is in the file.
    pub(super) fn reload(&mut self) {
        self.tree = ChunkTree::load(&open(&self.storage), &self.layout(), true).unwrap();
    }

    pub(super) fn nodes(&self) -> Vec<usize> {
        let Some(root) = self.root else { return Vec::new() };
        levels(&open(&self.storage), root, self.chunk.len()).iter().map(Vec::len).collect()
    }
}

/// Too many to be shown.
fn same(got: &ChunkMap, want: &ChunkMap, what: &str) {
    let differs = |(a, b): &(_, _)| a != b;
    assert_eq!(got.iter().zip(want).find(differs), None, "{what}");
    assert_eq!(got.len(), want.len(), "{what}");
}

pub(super) fn open(storage: &Arc<Memory>) -> Arc<File> {
    Arc::new(File::open(Arc::clone(storage) as Arc<dyn Storage>).unwrap())
}

fn chunks_of(storage: &Arc<Memory>, layout: &ChunkedLayout, counts: &[u64]) -> ChunkMap {
    let dims: Vec<u64> = counts.iter().zip(&layout.chunk_dims).map(|(n, dim)| n * dim).collect();
    let index = ChunkIndex::new(open(storage), layout, &dims, &[], true).unwrap();
    let mut found = ChunkMap::new();
    index
        .for_each(&mut |key, at| {
            assert_eq!(found.insert(key.to_vec(), at), None);
        })
        .unwrap();
    found
}

/// First and last key of nodes, as those above say them.
type Bounds = BTreeMap<FileAddr, (Vec<u64>, Vec<u64>)>;

/// A node and where it is.
pub(super) type NodeAt = (FileAddr, btree_v1::BtreeV1Node);

/// The nodes of each level, the root's first.
pub(super) fn levels(file: &File, root: FileAddr, rank: usize) -> Vec<Vec<NodeAt>> {
    let read = |addr| {
        (
            addr,
            btree_v1::BtreeV1Node::read(file, addr, NodeType::Chunk, None, 16 + 8 * rank).unwrap(),
        )
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
    let shape = NodeLoader::new(&Arc::new(open_again(file)), &vec![1; rank], ELEM).unwrap().shape;
    let key = |node: &btree_v1::BtreeV1Node, i: usize| {
        let mut key = node.key(i).unwrap();
        key.skip(8).unwrap();
        (0..=rank).map(|_| key.u64().unwrap()).collect::<Vec<u64>>()
    };
    let mut seen = BTreeSet::new();
    let mut bounds: Option<Bounds> = None;
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
                    let both = (key(node, i), key(node, i + 1));
                    next_bounds.insert(node.child(i).unwrap(), both);
                }
            }
            if let Some(bounds) = &bounds {
                // Libraries that change the tree need both.
                assert_eq!(bounds[addr], (key(node, 0), last), "what is known above");
            }
        }
        bounds = Some(next_bounds);
    }
}

fn open_again(file: &File) -> File {
    File::open(Arc::clone(file.storage())).unwrap()
}

use std::collections::BTreeMap;

use proptest::prelude::*;
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

use super::tree_test::*;
use super::*;
use crate::{NewBlocks, Sizes, Space};

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
                let mut test = ChunkTreeTest::new(32, chunk, counts);
                for (i, &number) in order.iter().enumerate() {
                    test.insert(&test.key(number), i as u64);
                    if i == order.len() / 3 || i == order.len() / 2 {
                        test.check();
                    }
                }
                test.check();
                assert_eq!(test.tree.len().unwrap(), n.min(total), "{name}");
                assert_eq!(test.tree.is_empty(), n == 0);
                assert!(
                    test.tree
                        .commit(&mut NewBlocks::new(&mut test.space), false)
                        .unwrap()
                        .patches
                        .is_empty()
                );
                // The same from the file, and then all of it written over.
                test.reload();
                for &number in order.iter().rev() {
                    test.insert(&test.key(number), number + 5);
                }
                test.check();
            }
        }
    }
}

#[test]
fn chunks_one_after_the_other_leave_full_nodes() {
    for descending in [false, true] {
        let mut test = ChunkTreeTest::new(32, &[1, 4], &[400, 250]);
        for i in 0..100_000 {
            let number = if descending { 99_999 - i } else { i };
            test.insert(&test.key(number), i);
        }
        test.check();
        assert_eq!(test.nodes(), [1, 25, 1563], "{descending}");
    }
    // Also between others, as where rows grow side by side.
    let mut test = ChunkTreeTest::new(32, &[1, 4], &[10, 1000]);
    for column in 0..1000 {
        for row in 0..10 {
            test.insert(&[row, column], column);
        }
    }
    test.check();
    assert!(test.nodes()[1] <= 10 * 17, "{:?}", test.nodes());
}

#[test]
fn an_order_that_only_looks_like_one_makes_no_more_nodes() {
    // A full leaf, and then always the chunk before the last one that came, all behind it.
    let mut test = ChunkTreeTest::new(32, &[1], &[1_000_000]);
    (0..64).for_each(|i| test.insert(&[i], i));
    test.insert(&[900_000], 0);
    for i in (64..20_000).rev() {
        test.insert(&[i], i);
    }
    test.check();
    assert!(test.nodes().last().unwrap() <= &(20_000 / 32 + 2), "{:?}", test.nodes());
}

#[test]
fn an_append_writes_the_right_edge_only() {
    let mut test = ChunkTreeTest::new(8, &[1, 8, 8], &[41, 10, 10]);
    (0..3_990).for_each(|i| test.insert(&test.key(i), i));
    test.check();
    for reloaded in [false, true] {
        if reloaded {
            test.reload();
        }
        let end = test.space.end();
        let n = test.model.len() as u64;
        test.insert(&test.key(n), n);
        assert!(test.tree.is_dirty());
        let commit = test.check();
        // Three nodes; the last of each level but the root has one neighbour.
        assert!(commit.patches.len() <= 2, "{}", commit.patches.len());
        let node = test.tree.loader.shape.node_len();
        assert!(test.space.end() - end <= 3 * node.next_multiple_of(8));
    }
    assert_eq!(test.nodes().len(), 3);
}

#[test]
fn who_appends_often_gives_nothing_back() {
    for (chunk, counts, k) in [(&[1u64, 8, 8][..], &[400u64, 3, 4][..], 2), (&[5], &[3000], 4)] {
        let mut test = ChunkTreeTest::new(k, chunk, counts);
        (0..70).for_each(|i| test.insert(&test.key(i), i));
        test.often = true;
        test.check();
        let node = test.tree.loader.shape.node_len().next_multiple_of(8);
        for n in 70..300 {
            let nodes: usize = test.nodes().iter().sum();
            let end = test.space.end();
            test.insert(&test.key(n), n);
            let commit = test.check();
            let new = test.nodes().iter().sum::<usize>() - nodes;
            assert_eq!(test.space.end() - end, new as u64 * node, "only new nodes take space");
            // Each node that is full has one new node beside it; the one above counts that.
            assert!(commit.switches.len() <= 1 && commit.switches.len() + new >= 1);
        }
        let before = test.storage.to_vec().unwrap();
        // A chunk that is written anew goes by new nodes again, and nodes fit together after that.
        test.insert(&test.key(200), 1);
        test.check();
        test.insert(&test.key(400), 2);
        test.check();
        test.reload();
        test.often = false;
        test.insert(&test.key(500), 3);
        test.check();
        assert_ne!(before, test.storage.to_vec().unwrap());
    }
}

#[test]
fn one_chunk_that_moves_moves_one_node() {
    let mut test = ChunkTreeTest::new(2, &[1, 4], &[300, 4]);
    (0..1000).for_each(|i| test.insert(&test.key(i), i));
    test.check();
    let node = test.tree.loader.shape.node_len().next_multiple_of(8);
    for often in [false, true] {
        test.often = often;
        for n in [0, 500, 777] {
            let root = test.root;
            let end = test.space.end();
            test.insert(&test.key(n), n + 7);
            let commit = test.check();
            assert_eq!((test.root, commit.switches.len()), (root, 1));
            assert!(test.space.end() <= end + node);
        }
        // Two that are far from each other change at once, by a new root.
        let root = test.root;
        test.insert(&test.key(3), 1);
        test.insert(&test.key(700), 2);
        assert_eq!(test.check().switches, []);
        assert_ne!(test.root, root);
        test.reload();
    }
}

#[test]
fn several_nodes_at_once_are_appended_to() {
    let mut test = ChunkTreeTest::new(2, &[2, 3], &[500, 7]);
    test.often = true;
    let mut n = 0;
    for step in (1..20).chain([1, 100, 3, 40]) {
        for _ in 0..step {
            test.insert(&test.key(n), n);
            n += 1;
        }
        test.check();
        if step % 7 == 0 {
            test.remove(&test.key(n - 1));
            test.check();
        }
        if step % 11 == 0 {
            test.reload();
        }
    }
}

#[test]
fn places_serve_again() {
    let mut test = ChunkTreeTest::new(2, &[1], &[100_000]);
    for i in 0..100 {
        test.insert(&[i], i);
        test.check();
    }
    let end = test.space.end();
    for i in 0..300 {
        test.insert(&[i % 100], i);
        test.check();
    }
    // Two commits' worth of changed nodes and no more.
    let node = test.tree.loader.shape.node_len();
    assert!(test.space.end() <= end + 20 * node, "{} {end}", test.space.end());
    while let Some(key) = test.model.keys().next().cloned() {
        test.remove(&key);
    }
    assert!(test.tree.is_dirty() && test.tree.is_empty());
    assert_eq!(test.commit(), TreeCommit::default());
    assert!(!test.tree.is_dirty());
    (0..3).for_each(|_| test.space.committed());
    // Everything is free again, as one run from behind the superblock.
    let all = test.space.end() - 128;
    assert_eq!(test.space.alloc(all).unwrap(), FileAddr(128));
}

#[test]
fn narrow_files_with_a_user_block() {
    let sizes = Sizes { offset: 4, length: 4 };
    let mut test = ChunkTreeTest::with(3, &[2, 2], &[40, 40], sizes, 1024);
    for (i, number) in orders(1600).pop().unwrap().1.into_iter().enumerate() {
        test.insert(&test.key(number), i as u64);
        if i % 400 == 399 {
            test.check();
            test.reload();
        }
    }
    let file = open(&test.storage);
    let far =
        ChunkLocation { at: file.position(FileAddr(u64::from(u32::MAX) + 1)), len: 1, mask: 0 };
    test.tree.insert(&[0, 0], far).unwrap();
    let error = test.tree.commit(&mut NewBlocks::new(&mut test.space), false).unwrap_err();
    assert!(matches!(error, HdfError::TooLarge { .. }), "{error}");
    let before = ChunkLocation { at: 1000, len: 1, mask: 0 };
    assert!(test.tree.insert(&[0, 0], before).is_err());
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
    assert!(tree.commit(&mut NewBlocks::new(&mut space), false).is_err());
}

#[test]
fn bounds_that_others_wrote_may_be_none() {
    let mut test = ChunkTreeTest::new(2, &[3], &[100]);
    (0..30).for_each(|i| test.insert(&[2 * i], i));
    test.check();
    // The last keys of all nodes at the right edge.
    for level in levels(&open(&test.storage), test.root.unwrap(), 1) {
        let (addr, node) = level.last().unwrap();
        let at = addr.0 + 24 + 32 * node.len() as u64;
        test.storage.write_at(at, &[0; 24]).unwrap();
    }
    test.reload();
    for i in [30, 57, 59, 58, 60, 99] {
        test.insert(&[i], i);
    }
    test.check();
}

#[test]
fn damaged_nodes_are_errors() {
    let mut test = ChunkTreeTest::new(2, &[1, 3], &[40, 5]);
    (0..200).for_each(|i| test.insert(&test.key(i), i));
    test.check();
    let bytes = test.storage.to_vec().unwrap();
    let mut failed = 0;
    for at in (128..bytes.len()).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x41;
        let storage = Arc::new(Memory::from_slice(&damaged));
        let Ok(mut tree) = ChunkTree::load(&open(&storage), &test.layout(), true) else {
            failed += 1;
            continue;
        };
        failed += u32::from(tree.len().is_err());
        let ends = ChunkLocation { at: 8, len: 8, mask: 0 };
        for number in [0, 57, 199, 300] {
            let key = test.key(number);
            let before = tree.get(&key);
            let inserted = tree.insert(&key, ends);
            assert_eq!(before.is_err(), inserted.is_err());
            if inserted.is_ok() {
                assert_eq!(tree.get(&key).unwrap(), Some(ends));
                let _ = tree.remove(&key);
            }
        }
        let mut space = Space::new(bytes.len() as u64);
        let _ = tree.commit(&mut NewBlocks::new(&mut space), false);
    }
    assert!(failed > 300, "{failed}");
}

#[test]
fn chunks_of_other_indexes() {
    let mut test = ChunkTreeTest::new(32, &[2, 3], &[50, 40]);
    for (i, number) in orders(2000).pop().unwrap().1.into_iter().take(900).enumerate() {
        test.insert(&test.key(number), i as u64);
    }
    test.check();
    let index =
        ChunkIndex::new(open(&test.storage), &test.layout(), &[100, 120], &[], true).unwrap();
    test.tree = ChunkTree::from_other(&open(&test.storage), &[2, 3], ELEM, &index).unwrap();
    assert!(test.tree.is_dirty());
    test.check();
    // They came in order.
    assert_eq!(test.nodes(), [1, 15]);
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
            let test = ChunkTreeTest::new(32, &vec![1; rank], counts);
            let keys: Vec<u64> = order.iter().flat_map(|&number| test.key(number)).collect();
            let keys: Vec<&[u64]> = keys.chunks(rank).collect();
            let file = open(&test.storage);
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
            let (encode, _) =
                least(1, n, || tree.commit(&mut NewBlocks::new(&mut space), false).unwrap());
            let last: Vec<u64> = counts.iter().map(|count| count - 1).collect();
            let (commit, _) = least(1, 10_000, || {
                for i in 0..10_000 {
                    tree.insert(&last, ChunkLocation { at: i, ..at }).unwrap();
                    tree.commit(&mut NewBlocks::new(&mut space), false).unwrap();
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
    /// Chunks behind all others, with commits.
    Append(u64, bool),
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
        2 => (1..12u64, any::<bool>()).prop_map(|(n, often)| Step::Append(n, often)),
        1 => Just(Step::Reload),
        2 => (any::<u64>(), any::<u64>()).prop_map(|(a, b)| Step::Look(a, b)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(zonda_testkit::by(50, 500)))]
    #[test]
    fn trees_are_maps(
        k in 1..4u16,
        counts in prop::collection::vec(1..12u64, 1..5),
        far in prop::sample::select(vec![1u64, 3, 1 << 40]),
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let chunk: Vec<u64> = (1..=counts.len() as u64).collect();
        let mut test = ChunkTreeTest::new(k, &chunk, &counts);
        test.far = far;
        let total = test.total();
        for (i, step) in steps.into_iter().enumerate() {
            let i = i as u64;
            match step {
                Step::Insert(at) => test.insert(&test.key(at % total), i),
                Step::Run(at, n, up) => {
                    for j in 0..n {
                        let step = if up { j } else { n - j };
                        test.insert(&test.key((at % total + step) % total), i + j);
                    }
                }
                Step::Remove(at) => test.remove(&test.key(at % total)),
                Step::RemoveRun(at, n) => {
                    (0..n).for_each(|j| test.remove(&test.key((at % total + j) % total)));
                }
                Step::Commit => drop(test.check()),
                Step::Append(n, often) => {
                    test.often |= often;
                    for j in 0..n {
                        let last = test.model.keys().next_back().cloned();
                        let next = (0..total).find(|&at| last.as_ref() < Some(&test.key(at)));
                        let Some(next) = next else { break };
                        test.insert(&test.key(next), i + j);
                        test.check();
                    }
                }
                Step::Reload => {
                    test.check();
                    test.reload();
                }
                Step::Look(a, b) => {
                    let (first, last) = (test.key(a % total), test.key(b % total));
                    let is_in = |key: &[u64]| {
                        (0..key.len()).all(|d| first[d] <= key[d] && key[d] <= last[d])
                    };
                    let want: Vec<_> = test.model.iter().filter(|(key, _)| is_in(key))
                        .map(|(key, at)| (key.clone(), *at)).collect();
                    let mut got = Vec::new();
                    let collect = &mut |key: &[u64], at| got.push((key.to_vec(), at));
                    test.tree.for_each_in(&first, &last, collect).unwrap();
                    prop_assert_eq!(got, want);
                    prop_assert_eq!(test.tree.get(&first).unwrap(), test.model.get(&first).copied());
                }
            }
        }
        test.check();
        prop_assert_eq!(test.tree.len().unwrap(), test.model.len() as u64);
    }
}

#[test]
fn halves_of_a_node_are_seen_together() {
    // The first half of a leaf would be switched below the old root, the second is below a new one.
    let mut test = ChunkTreeTest::new(1, &[1, 2, 3], &[7, 7, 3]);
    test.often = true;
    for n in 0..10 {
        test.insert(&test.key(n), n);
        test.check();
    }
    for (n, number) in [61, 62, 63, 11, 10, 9].into_iter().enumerate() {
        test.insert(&test.key(number), 50 + n as u64);
    }
    test.check();
}

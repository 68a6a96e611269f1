use std::collections::BTreeMap;

use proptest::prelude::*;
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

use super::lab::*;
use super::*;
use crate::{Fresh, Sizes, Space};

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
                    lab.tree
                        .commit(&mut Fresh::new(&mut lab.space), false)
                        .unwrap()
                        .patches
                        .is_empty()
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
fn who_appends_often_gives_nothing_back() {
    for (chunk, counts, k) in [(&[1u64, 8, 8][..], &[400u64, 3, 4][..], 2), (&[5], &[3000], 4)] {
        let mut lab = Lab::new(k, chunk, counts);
        (0..70).for_each(|i| lab.insert(&lab.key(i), i));
        lab.often = true;
        lab.check();
        let node = lab.tree.source.shape.node_len().next_multiple_of(8);
        for n in 70..300 {
            let nodes: usize = lab.nodes().iter().sum();
            let end = lab.space.end();
            lab.insert(&lab.key(n), n);
            let commit = lab.check();
            let new = lab.nodes().iter().sum::<usize>() - nodes;
            assert_eq!(lab.space.end() - end, new as u64 * node, "only new nodes take space");
            // Each node that is full has one new node beside it; the one above counts that.
            assert!(commit.switches.len() <= 1 && commit.switches.len() + new >= 1);
        }
        let before = lab.storage.to_vec().unwrap();
        // A chunk that is written anew goes by new nodes again, and nodes fit together after that.
        lab.insert(&lab.key(200), 1);
        lab.check();
        lab.insert(&lab.key(400), 2);
        lab.check();
        lab.reload();
        lab.often = false;
        lab.insert(&lab.key(500), 3);
        lab.check();
        assert_ne!(before, lab.storage.to_vec().unwrap());
    }
}

#[test]
fn one_chunk_that_moves_moves_one_node() {
    let mut lab = Lab::new(2, &[1, 4], &[300, 4]);
    (0..1000).for_each(|i| lab.insert(&lab.key(i), i));
    lab.check();
    let node = lab.tree.source.shape.node_len().next_multiple_of(8);
    for often in [false, true] {
        lab.often = often;
        for n in [0, 500, 777] {
            let root = lab.root;
            let end = lab.space.end();
            lab.insert(&lab.key(n), n + 7);
            let commit = lab.check();
            assert_eq!((lab.root, commit.switches.len()), (root, 1));
            assert!(lab.space.end() <= end + node);
        }
        // Two that are far from each other change at once, by a new root.
        let root = lab.root;
        lab.insert(&lab.key(3), 1);
        lab.insert(&lab.key(700), 2);
        assert_eq!(lab.check().switches, []);
        assert_ne!(lab.root, root);
        lab.reload();
    }
}

#[test]
fn several_nodes_at_once_are_appended_to() {
    let mut lab = Lab::new(2, &[2, 3], &[500, 7]);
    lab.often = true;
    let mut n = 0;
    for step in (1..20).chain([1, 100, 3, 40]) {
        for _ in 0..step {
            lab.insert(&lab.key(n), n);
            n += 1;
        }
        lab.check();
        if step % 7 == 0 {
            lab.remove(&lab.key(n - 1));
            lab.check();
        }
        if step % 11 == 0 {
            lab.reload();
        }
    }
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
    let error = lab.tree.commit(&mut Fresh::new(&mut lab.space), false).unwrap_err();
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
    assert!(tree.commit(&mut Fresh::new(&mut space), false).is_err());
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
        let _ = tree.commit(&mut Fresh::new(&mut space), false);
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
            let (encode, _) =
                least(1, n, || tree.commit(&mut Fresh::new(&mut space), false).unwrap());
            let last: Vec<u64> = counts.iter().map(|count| count - 1).collect();
            let (commit, _) = least(1, 10_000, || {
                for i in 0..10_000 {
                    tree.insert(&last, ChunkLocation { at: i, ..at }).unwrap();
                    tree.commit(&mut Fresh::new(&mut space), false).unwrap();
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
                Step::Append(n, often) => {
                    lab.often |= often;
                    for j in 0..n {
                        let last = lab.model.keys().next_back().cloned();
                        let next = (0..total).find(|&at| last.as_ref() < Some(&lab.key(at)));
                        let Some(next) = next else { break };
                        lab.insert(&lab.key(next), i + j);
                        lab.check();
                    }
                }
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

#[test]
fn halves_of_a_node_are_seen_together() {
    // The first half of a leaf would be switched below the old root, the second is below a new one.
    let mut lab = Lab::new(1, &[1, 2, 3], &[7, 7, 3]);
    lab.often = true;
    for n in 0..10 {
        lab.insert(&lab.key(n), n);
        lab.check();
    }
    for (n, number) in [61, 62, 63, 11, 10, 9].into_iter().enumerate() {
        lab.insert(&lab.key(number), 50 + n as u64);
    }
    lab.check();
}

//! Attributes beyond what headers hold, of which commits write what changed.

use std::path::Path;
use std::sync::Arc;
use zonda_format::{Definitions as _, DispatchWrite as _};

use zonda_model::VarId;
use zonda_storage::Storage;
use zonda_storage::backend::Memory;
use zonda_storage::layer::{
    FaultLayer, FaultPlan, InjectedFault, Log, LogEntry, Watched, WriteLog,
};

use super::{Random, contents, create, def_var, open, seen_atts};
use crate::model::GroupId;
use crate::write::testing::put_ints;
use crate::{Nc4File, Nc4OpenOptions, VarRef};

const ROOT: GroupId = GroupId::ROOT;

fn owner(var: VarId) -> VarRef {
    VarRef { group: ROOT, var }
}

fn put(file: &mut Nc4File, owner: VarRef, name: &str, values: &[i32]) {
    assert_eq!(put_ints(file, owner, name, 4, values).unwrap(), 0);
}

/// A variable with attributes a0, a1 and so on, and as many of the file.
fn many(storage: Arc<dyn Storage>, n: usize) -> (Nc4File, VarId) {
    let mut file = create(storage);
    let var = def_var(&mut file, ROOT, "v", &[]);
    for i in 0..n {
        put(&mut file, owner(var), &format!("a{i}"), &[i as i32]);
        put(&mut file, owner(VarId::GLOBAL), &format!("a{i}"), &[i as i32]);
    }
    file.sync().unwrap();
    (file, var)
}

/// All attributes in their order.
fn all(file: &Nc4File, var: VarId) -> [Vec<String>; 2] {
    [seen_atts(file, owner(VarId::GLOBAL), "/"), seen_atts(file, owner(var), "v")]
}

fn names(file: &Nc4File, owner: VarRef) -> Vec<String> {
    let n = file.n_atts(owner).unwrap();
    let name = |i| String::from_utf8(file.att(owner, i).unwrap().name.to_vec()).unwrap();
    (0..n).map(name).collect()
}

/// Changes an attribute, and the names in the order in which the file has them then.
fn change(file: &mut Nc4File, owner: VarRef, names: &mut Vec<String>, random: &mut Random) {
    let name = |random: &mut Random| format!("a{}", random.below(200));
    let (i, what) = (random.below(names.len()), random.below(10));
    if names.len() < 70 || what < 4 {
        let new = name(random);
        let at = names.iter().position(|name| *name == new);
        let len = at.map(|_| file.att(owner, find(file, owner, &new)).unwrap().len);
        let n = random.below(4);
        put(file, owner, &new, &vec![random.below(1000) as i32; n]);
        if len != Some(n as u64) {
            at.map(|at| names.remove(at));
            names.push(new);
        }
    } else if what < 7 {
        let known = names[i].clone();
        let len = file.att(owner, find(file, owner, &known)).unwrap().len;
        put(file, owner, &known, &vec![random.below(1000) as i32; len as usize]);
    } else if what < 9 {
        file.del_att(owner, names.remove(i).as_bytes()).unwrap();
    } else {
        let new = name(random);
        if !names.contains(&new) {
            file.rename_att(owner, names.remove(i).as_bytes(), new.as_bytes()).unwrap();
            names.push(new);
        }
    }
}

fn find(file: &Nc4File, owner: VarRef, name: &str) -> usize {
    names(file, owner).iter().position(|known| known == name).unwrap()
}

#[test]
fn changes_of_few_are_read_back_in_their_order() {
    for seed in 0..3 {
        let random = &mut Random(seed);
        let memory: Arc<dyn Storage> = Arc::new(Memory::new());
        let (mut file, var) = many(Arc::clone(&memory), 100);
        let mut lists = [VarId::GLOBAL, var].map(|var| (owner(var), names(&file, owner(var))));
        for round in 0..150 {
            for (owner, names) in &mut lists {
                if random.below(3) > 0 {
                    change(&mut file, *owner, names, random);
                }
            }
            file.sync().unwrap();
            let again = open(Arc::clone(&memory));
            for (owner, expected) in &lists {
                assert_eq!(&names(&again, *owner), expected, "seed {seed}, round {round}");
            }
            let sorted = |file: &Nc4File| {
                all(file, var).map(|mut list| {
                    list.sort();
                    list
                })
            };
            assert_eq!(sorted(&again), sorted(&file), "seed {seed}, round {round}");
            if random.below(40) == 0 {
                file.close().unwrap();
                let usage = open(Arc::clone(&memory)).usage();
                assert!(usage.faults.is_empty() && usage.overlaps.is_empty(), "{usage:?}");
                let name = Path::new("test.nc");
                let memory = Arc::clone(&memory);
                file = Nc4File::open_for_writing(memory, name, Nc4OpenOptions::default()).unwrap();
            }
        }
    }
}

/// Bytes that were written since the log had so many entries.
fn written(log: &WriteLog, since: usize) -> usize {
    let len = |entry: &LogEntry| match entry {
        LogEntry::Write { data, .. } => data.len(),
        _ => 0,
    };
    log.entries()[since..].iter().map(len).sum()
}

#[test]
fn a_commit_writes_what_changed() {
    for n in [1000, 4000] {
        let log = Log::new(Memory::new()).unwrap();
        let handle = log.handle();
        let (mut file, var) = many(Arc::new(log), n);
        for i in 0..30 {
            for of in [owner(var), owner(VarId::GLOBAL)] {
                let since = handle.len();
                put(&mut file, of, &format!("a{}", n + i), &[1]);
                file.sync().unwrap();
                // A block of the heap, of 32 KiB at most, a node for each level, a header.
                let bytes = written(&handle, since);
                assert!(bytes < 45_000, "{bytes} bytes of {n}");
            }
            // Of a variable of which something else changes attributes are not written.
            let since = handle.len();
            put(&mut file, owner(var), &format!("a{}", n + i), &[1]);
            file.sync().unwrap();
            let since_again = handle.len();
            file.sync().unwrap();
            assert!(written(&handle, since) < 45_000);
            assert_eq!(written(&handle, since_again), 0);
        }
    }
}

#[test]
fn every_prefix_of_the_writes_has_one_commit_or_the_other() {
    for seed in 0..zonda_testkit::by(1, 3) {
        let random = &mut Random(seed);
        let log = Log::new(Memory::new()).unwrap();
        let handle = log.handle();
        let (mut file, var) = many(Arc::new(log), 90);
        let mut lists = [VarId::GLOBAL, var].map(|var| (owner(var), names(&file, owner(var))));
        for _ in 0..30 {
            let (since, before) = (handle.len(), all(&reopened(&handle, handle.len()), var));
            let (of, names) = &mut lists[random.below(2)];
            for _ in 0..=random.below(3) {
                change(&mut file, *of, names, random);
            }
            file.sync().unwrap();
            let after = all(&reopened(&handle, handle.len()), var);
            for prefix in since..handle.len() {
                let found = all(&reopened(&handle, prefix), var);
                assert!(found == before || found == after, "seed {seed}, {prefix}");
            }
        }
    }
}

/// The file as it is after so many entries of the log.
fn reopened(log: &WriteLog, prefix: usize) -> Nc4File {
    open(Arc::new(Memory::from_slice(&log.replay(prefix, 0))))
}

#[test]
fn what_failed_is_written_by_the_next_commit() {
    for nth in 1.. {
        let memory: Arc<dyn Storage> = Arc::new(Memory::new());
        let (watched, kind) = (Watched::Any, InjectedFault::Enospc);
        let plan = FaultPlan { watched, nth, onwards: false, kind };
        let fault = FaultLayer::new(Arc::clone(&memory), plan);
        let handle = fault.handle();
        let mut file = create(Arc::new(fault));
        let var = def_var(&mut file, ROOT, "v", &[]);
        let mut committed = None;
        for i in 0..6 {
            for k in 0..if i == 0 { 90 } else { 2 } {
                put(&mut file, owner(var), &format!("a{i} {k}"), &[i]);
            }
            put(&mut file, owner(var), "again", &vec![i; 1 + i as usize / 2]);
            let sorted = |file: &Nc4File| {
                all(file, var).map(|mut list| {
                    list.sort();
                    list
                })
            };
            if let Err(error) = file.sync() {
                if let Some(committed) = &committed {
                    let found = sorted(&open(Arc::new(Memory::from_slice(&contents(&*memory)))));
                    assert!(found == *committed || found == sorted(&file), "{nth}: {error}");
                }
                if error.is_lost_sync() {
                    break;
                }
                file.sync().unwrap();
            }
            assert_eq!(sorted(&open(Arc::clone(&memory))), sorted(&file), "{nth}");
            committed = Some(sorted(&file));
        }
        if handle.injected() == 0 {
            assert!(nth > 30, "only {nth} operations");
            break;
        }
    }
}

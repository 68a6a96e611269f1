//! Files whose writer was stopped anywhere, and writes that fail.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use zonda_format::{Dispatch as _, DispatchWrite as _, TypeDefinitions as _};

use zonda_format::{Destination, Transfer, Values};
use zonda_model::{DimId, MemType, VarId};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;
use zonda_storage::layer::{
    FaultLayer, FaultPlan, InjectedFault, Log, LogEntry, Watched, WriteLog,
};

use super::{
    Random, check_lists, contents, create, def_dim, def_group, def_var, open, random_step, seen,
};
use crate::model::{GroupId, Var};
use crate::write::StorageRequest;
use crate::write::testing::{List, access, put_data};
use crate::{Nc4File, Nc4OpenOptions};

const ROOT: GroupId = GroupId::ROOT;

/// What is in a group: names of dimensions and of variables.
type Names = (BTreeSet<Vec<u8>>, BTreeSet<Vec<u8>>);

/// Names by the paths of groups.
fn names(file: &Nc4File) -> BTreeMap<String, Names> {
    let model = file.model().unwrap();
    let mut out = BTreeMap::new();
    for (id, group) in (0..).map(GroupId).zip(&model.groups) {
        let dims = group.dims.iter().map(|dim| model.dim(*dim).unwrap().name.to_vec()).collect();
        let vars = group.vars.iter().map(|var| var.name.to_vec()).collect();
        out.insert(model.group_path(id), (dims, vars));
    }
    out
}

/// A state of a file between two commits, or at one.
struct State {
    seen: Vec<String>,
    names: BTreeMap<String, Names>,
}

impl State {
    fn of(file: &Nc4File) -> State {
        State { seen: seen(file), names: names(file) }
    }
}

/// Checks that every object is as before or after a commit. Of a commit that writes over headers
/// some may be there and others not.
fn check_between(bytes: &[u8], old: &State, new: &State, what: &str) {
    let memory: Arc<dyn Storage> = Arc::new(Memory::from_slice(bytes));
    let file = open(memory);
    for (path, found) in names(&file) {
        let is_one = [old, new].iter().any(|state| state.names.get(&path) == Some(&found));
        assert!(is_one, "{what}: {path}: {found:?}");
    }
    let model = file.model().unwrap();
    for (id, group) in (0..).map(GroupId).zip(&model.groups) {
        for var in &group.vars {
            assert!(var.nc_type == 4 && var.dims.iter().all(|dim| dim.0 >= 0), "{what}: {var:?}");
            // It can be read, as a whole.
            assert_ne!(super::seen_data(&file, id, var), 1, "{what}: {var:?}");
        }
    }
}

/// Makes a file step by step on a storage, with what it was after each commit and how many entries
/// the log had.
fn scenario(storage: Arc<dyn Storage>, log: &WriteLog, seed: u64) -> Vec<(usize, State)> {
    let random = &mut Random(seed);
    let mut file = create(storage);
    let mut states = Vec::new();
    for _ in 0..5 {
        for _ in 0..12 {
            let n = log.len();
            random_step(&mut file, random);
            // Data may go to fresh space at any time.
            if log.entries()[n..].contains(&LogEntry::Barrier) {
                states.push((log.len(), State::of(&file)));
            }
        }
        file.sync().unwrap();
        states.push((log.len(), State::of(&file)));
    }
    file.close().unwrap();
    states
}

#[test]
fn every_prefix_of_the_writes_is_a_file() {
    for seed in 100..zonda_testkit::by(103, 106) {
        let log = Log::new(Memory::new()).unwrap();
        let handle = log.handle();
        let states = scenario(Arc::new(log), &handle, seed);
        check_prefixes(&handle, &states, &format!("seed {seed}"));
    }
}

/// Each session ends with lists moved to what those before it left free.
#[test]
fn every_prefix_of_short_sessions_is_a_file() {
    for seed in 300..zonda_testkit::by(301, 303) {
        let random = &mut Random(seed);
        let log = Log::new(Memory::new()).unwrap();
        let handle = log.handle();
        let storage: Arc<dyn Storage> = Arc::new(log);
        let mut file = create(Arc::clone(&storage));
        let mut states = Vec::new();
        for session in 0..20 {
            for _ in 0..if session == 0 { 30 } else { 4 } {
                let n = handle.len();
                random_step(&mut file, random);
                if handle.entries()[n..].contains(&LogEntry::Barrier) {
                    states.push((handle.len(), State::of(&file)));
                }
            }
            file.sync().unwrap();
            states.push((handle.len(), State::of(&file)));
            let state = State::of(&file);
            file.close().unwrap();
            states.push((handle.len(), state));
            let (storage, name) = (Arc::clone(&storage), std::path::Path::new("test.nc"));
            file = Nc4File::open_for_writing(storage, name, Nc4OpenOptions::default()).unwrap();
        }
        check_prefixes(&handle, &states, &format!("sessions of seed {seed}"));
        // What nobody refers to is no more than a part of the file.
        let usage = file.usage();
        assert!(usage.faults.is_empty() && usage.overlaps.is_empty(), "seed {seed}: {usage:?}");
        assert!(usage.unaccounted_bytes() < usage.file_bytes / 2, "seed {seed}: {usage:?}");
    }
}

/// Checks the file after each write of a log, given what it was after each commit.
fn check_prefixes(log: &WriteLog, states: &[(usize, State)], what: &str) {
    let entries = log.entries();
    let first = states[0].0;
    for prefix in 0..=entries.len() {
        let bytes = log.replay(prefix, 0);
        let at = states.partition_point(|(len, _)| *len <= prefix);
        let what = format!("{what}, {prefix} of {}", entries.len());
        if prefix < first {
            // There is no superblock before all the rest is there.
            let is_file = bytes.starts_with(b"\x89HDF");
            let rest = &entries[prefix..first];
            let is_quiet = |entry: &LogEntry| matches!(entry, LogEntry::Barrier | LogEntry::Sync);
            assert!(!is_file || rest.iter().all(is_quiet), "{what}");
            continue;
        }
        let (len, old) = &states[at - 1];
        let new = states.get(at).map_or(old, |(_, state)| state);
        check_between(&bytes, old, new, &what);
        let barrier = entries[*len..].iter().position(|entry| *entry == LogEntry::Barrier);
        if barrier.is_none_or(|barrier| prefix <= len + barrier) {
            let file = open(Arc::new(Memory::from_slice(&bytes)));
            assert_eq!(seen(&file), old.seen, "{what}");
            check_lists(&file);
        }
    }
}

#[test]
fn variables_become_scales_and_cease_to_be() {
    let log = Log::new(Memory::new()).unwrap();
    let handle = log.handle();
    let mut file = create(Arc::new(log));
    let x = def_dim(&mut file, ROOT, "x", 3);
    let t = def_dim(&mut file, ROOT, "t", 0);
    let v = def_var(&mut file, ROOT, "v", &[x]);
    let w = def_var(&mut file, ROOT, "w", &[t, x]);
    let group = def_group(&mut file, ROOT, "inner");
    def_var(&mut file, group, "user", &[t, x]);
    file.sync().unwrap();
    let mut states = vec![(handle.len(), State::of(&file))];
    let names = [(v, "x"), (w, "t"), (v, "a"), (w, "x"), (w, "t"), (v, "x"), (w, "b")];
    for (var, name) in names {
        file.rename_var(var.into(), name.as_bytes()).unwrap();
        file.sync().unwrap();
        states.push((handle.len(), State::of(&file)));
    }
    for (dim, name) in [(x, "y"), (t, "b"), (x, "x"), (t, "t")] {
        file.rename_dim(ROOT, dim, name.as_bytes()).unwrap();
        file.sync().unwrap();
        states.push((handle.len(), State::of(&file)));
    }
    check_prefixes(&handle, &states, "roles");
}

#[test]
fn filtered_chunks_are_never_written_over() {
    let log = Log::new(Memory::new()).unwrap();
    let handle = log.handle();
    let mut file = create(Arc::new(log));
    let t = def_dim(&mut file, ROOT, "t", 0);
    let vars = ["v", "w"].map(|name| def_var(&mut file, ROOT, name, &[t]));
    for var in vars {
        file.def_var_deflate(var.into(), true, Some(1)).unwrap();
        file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(&[100])).unwrap();
    }
    file.sync().unwrap();
    let mut states = vec![(handle.len(), State::of(&file))];
    let random = &mut Random(3);
    for round in 0..12 {
        for _ in 0..4 {
            let var = vars[random.below(2)];
            let (start, count) = ([random.below(50 * (round + 1))], [1 + random.below(150)]);
            let values: Vec<u8> = (0..count[0] * 4).map(|_| random.below(256) as u8).collect();
            put_data(&mut file, var, (&start, &count), MemType::I32, &values);
        }
        file.sync().unwrap();
        states.push((handle.len(), State::of(&file)));
    }
    check_prefixes(&handle, &states, "chunks");
}

/// All strings of the variables of the root group, or none where they cannot be read.
fn strings(file: &Nc4File) -> Option<Vec<Vec<Vec<u8>>>> {
    let of = |(id, var): (VarId, &Var)| {
        let n = usize::try_from(var.extent[0]).unwrap();
        let (mut list, mut out) = (List::default(), vec![0; 8 * n]);
        let room = Destination { bytes: &mut out, place: Some(&mut list) };
        let _all_fit = file.get_now(&mut Transfer::new(access(id, &[0], &[n], None)), room).ok()?;
        let address = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
        let texts = out.as_chunks().0.iter().map(address);
        Some(texts.map(|at| list.at(at).unwrap().to_vec()).collect())
    };
    let vars = &file.model().unwrap().groups[0].vars;
    (0..).map(VarId).zip(vars).map(of).collect()
}

#[test]
fn strings_are_never_written_over() {
    let log = Log::new(Memory::new()).unwrap();
    let handle = log.handle();
    let mut file = create(Arc::new(log));
    let (x, t) = (def_dim(&mut file, ROOT, "x", 6), def_dim(&mut file, ROOT, "t", 0));
    let mut def =
        |name: &str, dim: DimId| file.def_var(ROOT, name.as_bytes(), 12, &[dim.0]).unwrap();
    let vars = [def("run", x), def("chunks", t), def("header", x)];
    file.def_var_chunking(vars[1].into(), StorageRequest::Chunked, Some(&[4])).unwrap();
    file.def_var_chunking(vars[2].into(), StorageRequest::Compact, None).unwrap();
    file.sync().unwrap();
    let mut states = vec![(handle.len(), strings(&file).unwrap())];
    let random = &mut Random(5);
    for round in 0..12 {
        for _ in 0..3 {
            let (var, start) = (vars[random.below(3)], [random.below(6)]);
            let mut list = List::default();
            // Long ones, which soon need another collection of the heap.
            let text = format!("{round} {}", "text ".repeat(random.below(400)));
            let value = list.add(text.as_bytes()).to_ne_bytes();
            let values = Values { bytes: &value, fetch: Some(&mut list) };
            let put = file.put_now(&mut Transfer::new(access(var, &start, &[1], None)), values);
            assert_eq!(put.unwrap().out_of_range, 0);
        }
        file.sync().unwrap();
        states.push((handle.len(), strings(&file).unwrap()));
    }
    let check = |bytes: &[u8], n_entries: usize, what: &str| {
        let at = states.partition_point(|(len, _)| *len <= n_entries);
        let Some((_, old)) = at.checked_sub(1).map(|at| &states[at]) else { return };
        let new = states.get(at).map_or(old, |(_, state)| state);
        let file = open(Arc::new(Memory::from_slice(bytes)));
        let found = strings(&file).unwrap_or_else(|| panic!("{what}: strings cannot be read"));
        for (i, found) in found.iter().enumerate() {
            assert!([&old[i], &new[i]].contains(&found), "{what}: variable {i}");
        }
    };
    for prefix in states[0].0..=handle.len() {
        check(&handle.replay(prefix, 0), prefix, &format!("{prefix} entries"));
    }
    in_any_order(&handle, random, |bytes, span| {
        check(bytes, span.start, &format!("some of entries {span:?}"));
    });
}

/// Makes files of what is before a barrier and some of what is before the next one, whose places in the log are told.
fn in_any_order(log: &WriteLog, random: &mut Random, mut check: impl FnMut(&[u8], Range<usize>)) {
    let entries = log.entries();
    let mut start = 0;
    while start < entries.len() {
        let is_end = |entry: &LogEntry| matches!(entry, LogEntry::Barrier | LogEntry::Sync);
        let end = entries[start..].iter().position(is_end).map_or(entries.len(), |n| start + n);
        for _ in 0..4 {
            let mut bytes = log.replay(start, 0);
            for entry in &entries[start..end] {
                if random.below(2) == 0 {
                    continue;
                }
                match entry {
                    LogEntry::Write { at, data } => {
                        let at = usize::try_from(*at).unwrap();
                        bytes.resize(bytes.len().max(at + data.len()), 0);
                        bytes[at..at + data.len()].copy_from_slice(data);
                    }
                    LogEntry::SetLen(len) => bytes.resize(usize::try_from(*len).unwrap(), 0),
                    LogEntry::Barrier | LogEntry::Sync => {}
                }
            }
            check(&bytes, start..end);
        }
        start = end + 1;
    }
}

#[test]
fn writes_between_barriers_may_land_in_any_order() {
    let random = &mut Random(7);
    for seed in 200..204 {
        let log = Log::new(Memory::new()).unwrap();
        let handle = log.handle();
        let states = scenario(Arc::new(log), &handle, seed);
        in_any_order(&handle, random, |bytes, span| {
            let at = states.partition_point(|(len, _)| *len <= span.start);
            if at > 0 {
                let old = &states[at - 1].1;
                let new = states.get(at).map_or(old, |(_, state)| state);
                check_between(bytes, old, new, &format!("seed {seed}, some of entries {span:?}"));
            }
        });
    }
}

#[test]
fn what_fails_is_completed_later() {
    for kind in [InjectedFault::Eio, InjectedFault::Enospc, InjectedFault::Short] {
        'faults: for nth in 1.. {
            let memory: Arc<dyn Storage> = Arc::new(Memory::new());
            let plan = FaultPlan { watched: Watched::Any, nth, onwards: false, kind };
            let fault = FaultLayer::new(Arc::clone(&memory), plan);
            let handle = fault.handle();
            let mut file = create(Arc::new(fault));
            let random = &mut Random(5);
            let mut committed = None;
            let mut n_failed = 0;
            for _ in 0..6 {
                for _ in 0..8 {
                    random_step_failing(&mut file, random);
                }
                let before = State::of(&file);
                if let Err(error) = file.sync() {
                    n_failed += 1;
                    let what = format!("{kind:?} of operation {nth}");
                    if let Some(old) = &committed {
                        let bytes = contents(&*memory);
                        check_between(&bytes, old, &before, &what);
                    }
                    if error.is_lost_sync() {
                        // Nothing is confirmed from then on.
                        let again =
                            [file.sync(), file.close().map(drop).map_err(|(error, _)| error)];
                        for error in again.map(Result::unwrap_err) {
                            assert!(error.is_lost_sync(), "{what}: {error}");
                        }
                        continue 'faults;
                    }
                    file.sync().unwrap();
                }
                let again = open(Arc::clone(&memory));
                assert_eq!(seen(&again), before.seen);
                check_lists(&again);
                committed = Some(before);
            }
            n_failed += u32::from(file.close().is_err());
            assert!(n_failed <= 1);
            if handle.injected() == 0 {
                assert!(nth > 20, "only {nth} operations");
                break;
            }
        }
    }
}

/// A step that commits nothing.
fn random_step_failing(file: &mut Nc4File, random: &mut Random) {
    if !file.in_define_mode() {
        file.writing_mut().unwrap().mode.is_defining = true;
    }
    super::random_definition(file, random);
}

#[test]
fn a_file_goes_on_after_a_crash() {
    let log = Log::new(Memory::new()).unwrap();
    let handle = log.handle();
    let states = scenario(Arc::new(log), &handle, 300);
    let random = &mut Random(300);
    for prefix in (states[0].0..=handle.len()).step_by(5) {
        let memory: Arc<dyn Storage> = Arc::new(Memory::from_slice(&handle.replay(prefix, 0)));
        let name = std::path::Path::new("test.nc");
        let mut file =
            Nc4File::open_for_writing(Arc::clone(&memory), name, Nc4OpenOptions::default())
                .unwrap();
        for _ in 0..30 {
            random_step(&mut file, random);
        }
        let expected = seen(&file);
        file.close().unwrap();
        assert_eq!(seen(&open(memory)), expected, "{prefix}");
    }
}

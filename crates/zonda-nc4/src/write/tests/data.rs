//! Data that crashes and commits have to do with.

use std::sync::Arc;
use zonda_format::{Dispatch as _, DispatchWrite as _, TypeDefinitions as _};

use zonda_format::{Destination, Transfer, Values};
use zonda_model::{MemType, VarId};
use zonda_storage::backend::Memory;
use zonda_storage::layer::{Log, LogEntry, WriteLog};

use super::{create, def_dim, def_group, def_var, open};
use crate::model::GroupId;
use crate::write::StorageRequest;
use crate::write::testing::{List, access, get_data, listed, put_data, put_natural};
use crate::{Nc4File, VarRef};

const ROOT: GroupId = GroupId::ROOT;
const STRING: i32 = 12;
const N: usize = 40;

fn put_strings(file: &mut Nc4File, var: VarId, start: &[usize], count: &[usize], round: usize) {
    let mut list = List::default();
    let n = count.iter().product();
    let text = |i| format!("{round}").repeat(1 + (i + round) % 9);
    let bytes: Vec<u8> = (0..n).flat_map(|i| list.add(text(i).as_bytes()).to_ne_bytes()).collect();
    let values = Values { bytes: &bytes, fetch: Some(&mut list) };
    let put = file.put_now(&mut Transfer::new(access(var, start, count, None)), values);
    assert_eq!(put.unwrap().out_of_range, 0);
}

/// All strings of a variable.
fn strings(file: &Nc4File, name: &str) -> Vec<String> {
    let var = file.model().unwrap().group(ROOT).unwrap().find_var(name.as_bytes()).unwrap();
    let (_, of) = file.var(ROOT, var).unwrap();
    let count: Vec<_> = of.extent.iter().map(|len| *len as usize).collect();
    let start = vec![0; count.len()];
    let mut out = vec![0; 8 * count.iter().product::<usize>()];
    let mut list = List::default();
    let room = Destination { bytes: &mut out, place: Some(&mut list) };
    let read = file.get_now(&mut Transfer::new(access(var, &start, &count, None)), room);
    assert_eq!(read.unwrap().out_of_range, 0, "{name}");
    let text = |at: &[u8; 8]| list.at(u64::from_ne_bytes(*at)).unwrap_or_default();
    out.as_chunks().0.iter().map(|at| String::from_utf8(text(at).to_vec()).unwrap()).collect()
}

/// A file in which strings are put over others, in rounds of which each ends with a commit; with the
/// log and its length after each of them.
fn strings_over_strings() -> (WriteLog, Vec<usize>) {
    let log = Log::new(Memory::new()).unwrap();
    let handle = log.handle();
    let mut file = create(Arc::new(log));
    let [t, x] = [("t", 0), ("x", N)].map(|(name, len)| def_dim(&mut file, ROOT, name, len));
    let run = file.def_var(ROOT, b"run", STRING, &[x.0]).unwrap();
    let rows = file.def_var(ROOT, b"rows", STRING, &[t.0, x.0]).unwrap();
    let wide = file.def_var(ROOT, b"wide", STRING, &[t.0, x.0]).unwrap();
    for (var, chunk) in [(rows, [1, N]), (wide, [3, 7])] {
        file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(&chunk)).unwrap();
    }
    let mut commits = Vec::new();
    for round in 0..6 {
        put_strings(&mut file, run, &[round], &[N - 2 * round], round);
        for var in [rows, wide] {
            put_strings(&mut file, var, &[0, 0], &[1 + round / 2, N], round);
        }
        file.sync().unwrap();
        commits.push(handle.len());
    }
    (handle, commits)
}

/// Checks that each string is one that some round put there, none older than the last commit.
fn check_strings(bytes: &[u8], round: usize, what: &str) {
    let file = open(Arc::new(Memory::from_slice(bytes)));
    let row_of = |round: usize, i: usize| format!("{round}").repeat(1 + (i + round) % 9);
    let run = strings(&file, "run");
    for (i, text) in run.iter().enumerate() {
        let may =
            |round: usize| (round..N - round).contains(&i) && *text == row_of(round, i - round);
        assert!(may(round) || may(round + 1) || (0..round).any(may), "{what}: run {i}: {text:?}");
        assert!(!(round..N - round).contains(&i) || may(round) || may(round + 1), "{what}: {i}");
    }
    for name in ["rows", "wide"] {
        for (i, text) in strings(&file, name).iter().enumerate() {
            let new = text.is_empty() && i >= (1 + round / 2) * N;
            let may = |round: usize| *text == row_of(round, i);
            assert!(new || may(round) || may(round + 1), "{what}: {name} {i}: {text:?}");
        }
    }
}

#[test]
fn strings_are_never_in_the_file_before_their_text() {
    let (log, commits) = strings_over_strings();
    for prefix in commits[0]..=log.len() {
        let round = commits.partition_point(|len| *len <= prefix) - 1;
        check_strings(&log.replay(prefix, 0), round, &format!("{prefix} of {}", log.len()));
    }
}

#[test]
fn strings_put_over_others_may_land_in_any_order() {
    let (log, commits) = strings_over_strings();
    let entries = log.entries();
    for first in commits[0]..entries.len() {
        // This write and nothing else of those between the barriers around it.
        let LogEntry::Write { at, data } = &entries[first] else { continue };
        let is_end = |entry: &LogEntry| matches!(entry, LogEntry::Barrier | LogEntry::Sync);
        let start = entries[..first].iter().rposition(is_end).map_or(0, |end| end + 1);
        let mut bytes = log.replay(start, 0);
        let at = usize::try_from(*at).unwrap();
        bytes.resize(bytes.len().max(at + data.len()), 0);
        bytes[at..at + data.len()].copy_from_slice(data);
        let round = commits.partition_point(|len| *len <= start) - 1;
        check_strings(&bytes, round, &format!("write {first} alone"));
    }
}

#[test]
fn much_that_was_put_is_committed_when_a_record_begins() {
    let log = Log::new(Memory::new()).unwrap();
    let handle = log.handle();
    let mut file = create(Arc::new(log));
    let n = 1 << 20;
    let [t, x] = [("t", 0), ("x", n)].map(|(name, len)| def_dim(&mut file, ROOT, name, len));
    let var = def_var(&mut file, ROOT, "v", &[t, x]);
    file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(&[3, n])).unwrap();
    let data = vec![7; 4 * n];
    let put = |file: &mut Nc4File, record: usize| {
        put_data(file, var, (&[record, 0], &[1, n]), MemType::I32, &data);
    };
    // The chunk stays incomplete: nothing but a commit writes it.
    for _ in 0..16 {
        put(&mut file, 0);
    }
    file.sync().unwrap();
    let before = handle.len();
    for _ in 0..16 {
        put(&mut file, 0);
    }
    assert_eq!(handle.len(), before, "no record begins");
    put(&mut file, 1);
    // It is down: a writer that is killed now loses none of it.
    let is_down = |entry: &LogEntry| matches!(entry, LogEntry::Barrier | LogEntry::Sync);
    let entries = handle.entries();
    let last = entries[before..].iter().rposition(is_down).expect("a commit");
    let switches =
        entries[before..].iter().rposition(|entry| matches!(entry, LogEntry::Write { .. }));
    assert!(switches.is_some_and(|at| at < last), "{switches:?} {last}");
}

#[test]
fn nothing_refers_to_what_an_outer_group_does_not_show_yet() {
    let log = Log::new(Memory::new()).unwrap();
    let handle = log.handle();
    let mut file = create(Arc::new(log));
    let inner = def_group(&mut file, ROOT, "inner");
    let innermost = def_group(&mut file, inner, "innermost");
    let x = def_dim(&mut file, ROOT, "x", 3);
    let old = def_var(&mut file, innermost, "old", &[x]);
    file.sync().unwrap();
    let before = handle.len();
    // Dimensions of each group, which variables in those below it have, and a type.
    let y = def_dim(&mut file, ROOT, "y", 3);
    def_var(&mut file, inner, "v", &[y]);
    let z = def_dim(&mut file, inner, "z", 3);
    def_var(&mut file, innermost, "w", &[x, y, z]);
    let opaque = file.def_opaque(ROOT, 2, b"opaque").unwrap();
    let owner = VarRef { group: innermost, var: old };
    put_natural(&mut file, owner, "bytes", opaque, &mut List::default(), b"ab", 1).unwrap();
    file.sync().unwrap();
    let entries = handle.entries();
    let is_end = |entry: &LogEntry| matches!(entry, LogEntry::Barrier | LogEntry::Sync);
    let mut n_alone = 0;
    for (at, entry) in entries.iter().enumerate().skip(before) {
        let LogEntry::Write { at: to, data } = entry else { continue };
        let start = entries[..at].iter().rposition(is_end).unwrap() + 1;
        let mut bytes = handle.replay(start, 0);
        let to = usize::try_from(*to).unwrap();
        bytes.resize(bytes.len().max(to + data.len()), 0);
        bytes[to..to + data.len()].copy_from_slice(data);
        let file = open(Arc::new(Memory::from_slice(&bytes)));
        let model = file.model().unwrap();
        for var in model.groups.iter().flat_map(|group| &group.vars) {
            assert!(var.dims.iter().all(|dim| model.dim(*dim).is_some()), "write {at}: {var:?}");
        }
        let atts = listed(&file, owner);
        assert!(atts.iter().all(|(_, nc_type, _)| *nc_type == opaque), "write {at}: {atts:?}");
        assert!(model.types.len() <= 1, "write {at}: {:?}", model.types);
        n_alone += 1;
    }
    assert!(n_alone > 4, "{n_alone} writes");
}

#[test]
fn a_variable_that_is_placed_unfilled_is_written_once() {
    const LEN: usize = 100_000;
    let halves: [Vec<u8>; 2] =
        [1i32, 2].map(|value| value.to_ne_bytes().into_iter().cycle().take(2 * LEN).collect());
    for unfilled in [false, true] {
        let log = Log::new(Memory::new()).unwrap();
        let handle = log.handle();
        let mut file = create(Arc::new(log));
        let x = def_dim(&mut file, ROOT, "x", LEN);
        let var = def_var(&mut file, ROOT, "v", &[x]);
        if unfilled {
            file.place_unfilled(ROOT, var).unwrap();
        }
        // The last half first: what comes before it is not there yet.
        for (i, half) in halves.iter().enumerate().rev() {
            put_data(&mut file, var, (&[i * LEN / 2], &[LEN / 2]), MemType::I32, half);
        }
        // It is where it is: to place it again changes nothing.
        file.place_unfilled(ROOT, var).unwrap();
        file.close().unwrap();
        let written = |entry: &LogEntry| {
            if let LogEntry::Write { data, .. } = entry { data.len() } else { 0 }
        };
        let all: usize = handle.entries().iter().map(written).sum();
        assert_eq!(all < 4 * LEN + 10_000, unfilled, "{all} bytes");
        let file = open(Arc::new(Memory::from_slice(&handle.replay(handle.len(), 0))));
        assert!(get_data(&file, var, (&[0], &[LEN]), MemType::I32) == halves.concat());
    }
}

const COLUMNS: usize = 5;

/// Record `r` of the variable that is appended to, or several.
fn put_records(file: &mut Nc4File, var: VarId, r: usize, n: usize) {
    let values = (r * COLUMNS..(r + n) * COLUMNS).flat_map(|value| (value as i32).to_ne_bytes());
    let bytes: Vec<u8> = values.collect();
    put_data(file, var, (&[r, 0], &[n, COLUMNS]), MemType::I32, &bytes);
}

fn records(file: &Nc4File, var: VarId) -> Vec<i32> {
    let n = file.var(ROOT, var).unwrap().1.extent[0] as usize;
    let out = get_data(file, var, (&[0, 0], &[n, COLUMNS]), MemType::I32);
    out.as_chunks().0.iter().map(|value| i32::from_ne_bytes(*value)).collect()
}

#[test]
fn records_that_are_committed_often_leave_the_index_where_it_is() {
    let log = Log::new(Memory::new()).unwrap();
    let handle = log.handle();
    let mut file = create(Arc::new(log));
    let [t, x] = [("t", 0), ("x", COLUMNS)].map(|(name, len)| def_dim(&mut file, ROOT, name, len));
    let var = def_var(&mut file, ROOT, "v", &[t, x]);
    file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(&[1, 3])).unwrap();
    file.sync().unwrap();
    let mut commits = Vec::new();
    let mut n_records = 0;
    for n in [1, 1, 1, 1, 1, 1, 40, 1, 2, 90, 1, 1] {
        put_records(&mut file, var, n_records, n);
        n_records += n;
        file.sync().unwrap();
        commits.push((handle.len(), n_records));
    }
    file.close().unwrap();
    // Every prefix has the records of the last commit before it, or of the next one.
    let entries = handle.entries();
    let mut n_behind = 0;
    for prefix in commits[0].0..=entries.len() {
        let bytes = handle.replay(prefix, 0);
        let at = commits.partition_point(|(len, _)| *len <= prefix);
        let (_, before) = commits[at - 1];
        let after = commits.get(at).map_or(before, |(_, n)| *n);
        let memory = Arc::new(Memory::from_slice(&bytes));
        let found = records(&open(memory.clone()), var);
        let n = found.len() / COLUMNS;
        assert!(n == before || n == after, "{prefix}: {n}");
        assert!(found.iter().zip(0..).all(|(value, i)| *value == i), "{prefix}: {found:?}");
        // Who goes on writing skips a record: it has the fill value, whatever was left behind.
        let mut again = Nc4File::open_for_writing(
            memory.clone(),
            std::path::Path::new("test.nc"),
            crate::Nc4OpenOptions::default(),
        )
        .unwrap();
        put_records(&mut again, var, n + 1, 1);
        again.close().unwrap();
        let found = records(&open(memory), var);
        assert!(found[n * COLUMNS..(n + 1) * COLUMNS].iter().all(|value| *value == -2147483647));
        n_behind += usize::from(prefix < entries.len() && n == before && after > before);
    }
    assert!(n_behind > 20, "{n_behind}");
    // Since the file is committed often, nothing of the index was given back.
    let last = commits.len() - 1;
    let writes = |from: usize, to: usize| {
        let lens = entries[from..to].iter().map(|entry| match entry {
            LogEntry::Write { data, .. } => data.len(),
            _ => 0,
        });
        lens.max().unwrap_or(0)
    };
    assert!(writes(commits[last - 1].0, commits[last].0) < 1000, "a node would be longer");
}

/// Behind the last header is space of a variable of which only a part is put, and nothing filled: the file is said to have it,
/// and the storage does not. The header is read with the bytes behind it.
#[test]
fn a_header_before_space_that_nobody_wrote_can_be_read() {
    let memory: Arc<Memory> = Arc::new(Memory::new());
    let mut file = create(Arc::clone(&memory) as _);
    let x = def_dim(&mut file, ROOT, "x", 12);
    let part = def_var(&mut file, ROOT, "part", &[x]);
    file.def_var_fill(part.into(), true, None).unwrap();
    file.close().unwrap();
    let (storage, name) = (Arc::clone(&memory) as _, std::path::Path::new("test.nc"));
    let mut file = Nc4File::open_for_writing(storage, name, Default::default()).unwrap();
    let part = file.model().unwrap().group(ROOT).unwrap().find_var(b"part").unwrap();
    put_data(&mut file, part, (&[0], &[1]), MemType::I32, &7i32.to_ne_bytes());
    let model = file.model().unwrap();
    let at = model.group(ROOT).unwrap().vars.first().unwrap().at.addr;
    file.hdf5().object(at).unwrap();
    file.close().unwrap();
    let file = open(memory);
    let got = get_data(&file, part, (&[0], &[1]), MemType::I32);
    assert_eq!(got, 7i32.to_ne_bytes());
}

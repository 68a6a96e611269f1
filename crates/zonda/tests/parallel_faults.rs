//! What goes wrong on one rank of a file that several write together: storage that fails, ranks that do something else, panic or
//! die, and requests that no memory is large enough for.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use zonda::team::threads::{End, Fault, Moment, Options, Trouble};
use zonda::team::{Step, Team, threads};
use zonda::{
    CreateOptions, Dataset, FillMode, Format, GroupId, Hyperslab, MemType, NcError, OpenOptions,
    Reserve, Result, StorageRequest, VarId, VarRef,
};
use zonda_testkit::by;

const FORMATS: [Format; 3] = [Format::Cdf5, Format::NetCdf4, Format::NetCdf4Classic];
const RANKS: usize = 3;
const FILL: i32 = -2147483647;

/// Memory, where there is a folder of it: what is synced a thousand times is not to wait for a disk.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn created(
    team: &threads::Threads,
    path: &Path,
    format: Format,
    io: Option<String>,
) -> Result<Dataset> {
    let team: Arc<dyn Team> = Arc::new(team.clone());
    let options = CreateOptions { format, io, ..CreateOptions::default() };
    Dataset::create_parallel(team, path, &options)
}

fn opened(team: &threads::Threads, path: &Path, write: bool) -> Result<Dataset> {
    let team: Arc<dyn Team> = Arc::new(team.clone());
    Dataset::open_parallel(team, path, &OpenOptions { write, ..OpenOptions::default() })
}

fn put(file: &Dataset, var: VarId, start: &[usize], count: &[usize], values: &[i32]) -> Result<()> {
    let slab = Hyperslab { start, count, stride: None };
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    file.put(var, &slab, Some(MemType::I32), &bytes).map(drop)
}

fn get(file: &Dataset, var: VarId, count: &[usize]) -> Vec<i32> {
    let start = vec![0; count.len()];
    let mut out = vec![0; count.iter().product::<usize>() * 4];
    let slab = Hyperslab { start: &start, count, stride: None };
    let done = file.get(var, &slab, Some(MemType::I32), &mut out).unwrap();
    assert_eq!(done.out_of_range, 0);
    out.as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect()
}

fn att(file: &Dataset, text: &[u8]) -> Result<()> {
    let root = VarRef::group(GroupId::ROOT);
    file.put_att(root, b"history", 2, text.len(), Some(MemType::Text), text).map(drop)
}

/// What the calls of one rank gave: the code of each try of each call.
#[derive(Debug, Default, PartialEq)]
struct Told {
    calls: Vec<(&'static str, Vec<i32>)>,
    /// The file is closed.
    is_closed: bool,
}

impl Told {
    /// Makes a call until it is done, at most so often.
    fn call(&mut self, name: &'static str, n_tries: usize, call: &dyn Fn() -> Result<()>) {
        let mut codes = Vec::new();
        for _ in 0..n_tries {
            codes.push(call().map_or_else(|error| error.code().code(), |()| 0));
            if codes.last() == Some(&0) {
                break;
            }
        }
        self.calls.push((name, codes));
    }

    fn has_failed(&self) -> bool {
        self.calls.iter().any(|(_, codes)| codes.iter().any(|code| *code != 0))
    }
}

fn define(file: &Dataset) -> [VarId; 4] {
    file.set_fill(FillMode::Fill).unwrap();
    let time = file.def_dim(b"time", 0).unwrap();
    let x = file.def_dim(b"x", 12).unwrap();
    let var = |name: &[u8], dims: &[i32]| file.def_var(name, 4, dims).unwrap();
    let vars = [
        var(b"fixed", &[x.0]),
        var(b"growing", &[time.0, x.0]),
        var(b"small", &[x.0]),
        var(b"packed", &[time.0, x.0]),
    ];
    if file.is_hdf5() {
        let chunked = StorageRequest::Chunked;
        file.def_var_chunking(vars[1].into(), chunked, Some(&[1, 5])).unwrap();
        file.def_var_chunking(vars[2].into(), StorageRequest::Compact, None).unwrap();
        file.def_var_chunking(vars[3].into(), chunked, Some(&[2, 5])).unwrap();
        file.def_var_deflate(vars[3].into(), true, Some(1)).unwrap();
    }
    att(file, b"a first text that is long").unwrap();
    vars
}

/// Ends definitions, as often as that has to be tried.
fn end(file: &Dataset) -> Result<()> {
    if file.in_define_mode() { file.enddef(Reserve::Default) } else { file.sync() }
}

/// Calls that all ranks make together. `n_tries` of each.
fn live(
    team: &threads::Threads,
    path: &Path,
    format: Format,
    io: Option<String>,
    n_tries: usize,
) -> Told {
    let mut told = Told::default();
    let rank = team.rank();
    let mut file = None;
    for _ in 0..n_tries {
        let made = created(team, path, format, io.clone());
        let code = made.as_ref().map_or_else(|error| error.code().code(), |_| 0);
        told.calls.push(("nc_create_par", vec![code]));
        if let Ok(made) = made {
            file = Some(made);
            break;
        }
    }
    let Some(file) = file else { return told };
    let vars = define(&file);
    told.call("nc_enddef", n_tries, &|| end(&file));
    for var in vars {
        file.set_collective(var, true).unwrap();
    }
    let part = [4 * rank + 1];
    let values = [rank as i32 + 1; 3];
    told.call("put fixed", n_tries, &|| put(&file, vars[0], &part, &[3], &values));
    told.call("put small", n_tries, &|| put(&file, vars[2], &part, &[3], &values));
    let record = |n| [n, part[0]];
    told.call("put growing", n_tries, &|| put(&file, vars[1], &record(1), &[1, 3], &values));
    // Chunks of two records: the first one waits.
    told.call("put packed", n_tries, &|| put(&file, vars[3], &record(0), &[1, 3], &values));
    told.call("put packed", n_tries, &|| put(&file, vars[3], &record(1), &[1, 3], &values));
    told.call("nc_sync", n_tries, &|| file.sync());
    // Another text on each rank, which may be shorter.
    let _ = att(&file, &b"another text, of rank 0"[..23 - rank]);
    told.call("put growing", n_tries, &|| put(&file, vars[1], &record(3), &[1, 3], &values));
    let three = [values, values, values].concat();
    told.call("put packed more", n_tries, &|| put(&file, vars[3], &record(1), &[3, 3], &three));
    told.call("nc_redef", n_tries, &|| match file.in_define_mode() {
        true => Ok(()),
        false => file.redef(),
    });
    if file.in_define_mode() {
        let added = file.def_var(b"added", 4, &[1]);
        told.call("nc_enddef", n_tries, &|| end(&file));
        if let Ok(added) = added {
            file.set_collective(added, true).unwrap();
            told.call("put added", n_tries, &|| put(&file, added, &part, &[3], &values));
        }
    }
    told.call("nc_close", n_tries, &|| if file.is_open() { file.close() } else { Ok(()) });
    told.is_closed = !file.is_open();
    told
}

fn row(is_put: bool, fill: i32) -> Vec<i32> {
    let value = |x: usize| if is_put && !x.is_multiple_of(4) { x as i32 / 4 + 1 } else { fill };
    (0..12).map(value).collect()
}

/// What the file has to have when all calls were done in the end.
fn check_whole(path: &Path, what: &str) {
    let file = Dataset::open(path, &OpenOptions::default()).unwrap();
    assert_eq!(get(&file, VarId(0), &[12]), row(true, FILL), "fixed, {what}");
    assert_eq!(get(&file, VarId(2), &[12]), row(true, FILL), "small, {what}");
    assert_eq!(get(&file, VarId(4), &[12]), row(true, FILL), "added, {what}");
    let packed = row(true, FILL).repeat(4);
    assert_eq!(get(&file, VarId(3), &[4, 12]), packed, "packed, {what}");
    let records: Vec<i32> =
        [false, true, false, true].iter().flat_map(|is_put| row(*is_put, FILL)).collect();
    assert_eq!(get(&file, VarId(1), &[4, 12]), records, "growing, {what}");
}

/// Every operation of one rank's storage fails in turn, once or from then on.
fn each_operation_fails(who: usize, watched: &str, onwards: bool) {
    let folder = folder();
    let path = folder.path().join("x.nc");
    for format in FORMATS {
        let (mut nth, mut n_failed, mut quiet) = (0, 0, 0);
        while quiet < 3 {
            nth += by(if nth > 12 { 3 } else { 1 }, 1);
            let before = n_failed;
            for kind in ["enospc", "short"] {
                let plus = if onwards { "+" } else { "" };
                let spec = format!("fault:{watched}:{nth}{plus}:{kind}");
                let what = format!("{format:?}, {spec} on rank {who}");
                let n_tries = if onwards { 1 } else { 4 };
                let ends = threads::all(RANKS, |team| {
                    let io = (team.rank() == who).then(|| spec.clone());
                    live(team, &path, format, io, n_tries)
                });
                for end in &ends {
                    assert_eq!(*end, ends[0], "{what}");
                    let lost = NcError::Mpi.code();
                    assert!(
                        end.calls.iter().all(|call| !call.1.contains(&lost)),
                        "{what}: {end:?}"
                    );
                }
                n_failed += usize::from(ends[0].has_failed());
                let code = |name| {
                    let calls = ends[0].calls.iter().filter(move |(call, _)| *call == name);
                    calls.map(|(_, codes)| *codes.last().unwrap()).next()
                };
                let is_done = ends[0].calls.iter().all(|call| call.1.last() == Some(&0));
                if is_done {
                    assert!(ends[0].is_closed);
                    check_whole(&path, &what);
                } else if !onwards && ends[0].calls.len() > 1 {
                    // A sync that failed stays an error.
                    let is_sync = kind == "short" || kind == "enospc";
                    assert!(is_sync && watched != "write", "{what}: {ends:?}");
                }
                if code("nc_sync") == Some(0) {
                    // What was committed stays, whatever happens to later calls.
                    let open = || Dataset::open(&path, &OpenOptions::default());
                    let file = open().or_else(|_| {
                        // Data were being moved.
                        zonda::recover(&path)?;
                        open()
                    });
                    let file = file.unwrap_or_else(|error| panic!("{what}: {error}, {ends:?}"));
                    assert_eq!(get(&file, VarId(0), &[12])[1..4], [1; 3], "{what}");
                    assert_eq!(get(&file, VarId(1), &[2, 12])[13..16], [1; 3], "{what}");
                    let packed = get(&file, VarId(3), &[2, 12]);
                    assert_eq!([&packed[1..4], &packed[13..16]], [&[1; 3]; 2], "{what}");
                }
            }
            quiet = if n_failed == before { quiet + 1 } else { 0 };
        }
        assert!(n_failed > 4, "{format:?}: only {n_failed}");
    }
}

#[test]
fn a_fault_of_rank_0_is_that_of_all_and_the_next_try_goes_on() {
    each_operation_fails(0, "any", false);
}

#[test]
fn a_write_that_fails_on_another_rank_is_an_error_of_all() {
    each_operation_fails(2, "write", false);
}

#[test]
fn what_was_committed_stays_when_the_storage_of_rank_0_is_gone() {
    each_operation_fails(0, "any", true);
}

#[test]
fn a_put_alone_has_its_error_alone() {
    let folder = folder();
    let path = folder.path().join("x.nc");
    for format in FORMATS {
        let codes = threads::all(RANKS, |team| {
            let io = (team.rank() == 1).then(|| String::from("fault:write:2:enospc"));
            let file = created(team, &path, format, io).unwrap();
            file.set_fill(FillMode::NoFill).unwrap();
            let x = file.def_dim(b"x", 12).unwrap();
            let var = file.def_var(b"v", 4, &[x.0]).unwrap();
            file.enddef(Reserve::Default).unwrap();
            let one = |n: usize| {
                let done = put(&file, var, &[4 * team.rank() + n], &[1], &[7]);
                done.map_or_else(|error| error.code().code(), |()| 0)
            };
            let codes = [one(0), one(1), one(1), one(2)];
            file.close().unwrap();
            codes
        });
        let enospc = NcError::System(28).code();
        assert_eq!(codes, [[0; 4], [0, enospc, 0, 0], [0; 4]], "{format:?}");
        let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(get(&file, VarId(0), &[12]).iter().filter(|value| **value == 7).count(), 9);
    }
}

/// A file that all ranks have made and closed.
fn good_file(path: &Path, format: Format) {
    let ends = threads::all(RANKS, |team| live(team, path, format, None, 1));
    assert!(!ends[0].has_failed(), "{ends:?}");
    check_whole(path, "made");
}

#[test]
fn ranks_that_open_differently_are_told_so_and_nothing_is_damaged() {
    let folder = folder();
    let (path, other) = (folder.path().join("x.nc"), folder.path().join("other.nc"));
    for format in FORMATS {
        good_file(&path, format);
        good_file(&other, format);
        let texts = threads::all(RANKS, |team| {
            let path = if team.rank() == 1 { &other } else { &path };
            opened(team, path, true).unwrap_err().to_string()
        });
        assert!(texts.iter().all(|text| text.contains("different files")), "{texts:?}");
        let texts = threads::all(RANKS, |team| {
            opened(team, &path, team.rank() != 2).unwrap_err().to_string()
        });
        let both = "NC_WRITE given on rank 0 and not given on rank 2";
        assert!(texts.iter().all(|text| text.contains(both)), "{texts:?}");
        let texts = threads::all(RANKS, |team| {
            let format = if team.rank() == 1 { Format::Cdf1 } else { format };
            created(team, &path, format, None).unwrap_err().to_string()
        });
        assert!(texts.iter().all(|text| text.contains("and classic on rank 1")), "{texts:?}");
        check_whole(&path, "after all");
        check_whole(&other, "after all");
    }
}

#[test]
fn another_mode_for_a_variable_is_found_by_the_next_call_of_all() {
    let folder = folder();
    let path = folder.path().join("x.nc");
    for format in FORMATS {
        good_file(&path, format);
        threads::all(RANKS, |team| {
            let file = opened(team, &path, true).unwrap();
            file.set_collective(VarId(0), team.rank() != 1).unwrap();
            let values = [team.rank() as i32 + 1; 3];
            let done = put(&file, VarId(0), &[4 * team.rank() + 1], &[3], &values);
            // Rank 1 put alone, so that its next call meets the put of the others.
            let done = if team.rank() == 1 { file.sync() } else { done };
            let text = done.unwrap_err().to_string();
            assert!(text.contains("nc_sync") && text.contains("nc_put_var"), "{text}");
            file.close().unwrap();
        });
        check_whole(&path, "after all");
    }
}

#[test]
fn a_rank_that_leaves_is_named_and_the_file_keeps_what_was_committed() {
    let folder = folder();
    let path = folder.path().join("x.nc");
    for format in FORMATS {
        for who in [0, 2] {
            good_file(&path, format);
            let ends = threads::run(RANKS, &Options::default(), |team| {
                let file = opened(team, &path, true).unwrap();
                file.set_collective(VarId(1), true).unwrap();
                put(&file, VarId(1), &[4, team.rank()], &[1, 1], &[5]).unwrap();
                assert_ne!(team.rank(), who, "this rank is to panic");
                let text = put(&file, VarId(1), &[5, team.rank()], &[1, 1], &[5]).unwrap_err();
                // Who hears of it from another rank hears that that one left for an error.
                let is_named = |rank| text.to_string().contains(&format!("rank {rank} "));
                assert!(is_named(who) || (0..RANKS).any(is_named), "{text}");
                let again = put(&file, VarId(1), &[5, team.rank()], &[1, 1], &[5]).unwrap_err();
                assert_eq!(again.code(), NcError::Mpi, "{again}");
                assert!(file.close().is_err());
                assert!(!file.is_open());
            });
            for (rank, end) in ends.into_iter().enumerate() {
                let is_right = match end.end {
                    End::Panicked(ref text) => rank == who && text.contains("is to panic"),
                    End::Returned(()) => rank != who,
                    End::Died => false,
                };
                assert!(is_right, "{format:?}, rank {rank} where {who} leaves: {:?}", end.end);
            }
            check_whole(&path, "after a panic");
        }
    }
}

#[test]
fn a_rank_that_dies_at_any_step_leaves_nobody_waiting() {
    let folder = folder();
    let path = folder.path().join("x.nc");
    let options = |who, step| Options {
        timeout: Some(Duration::from_millis(150)),
        faults: vec![Fault { rank: who, before: Moment::Step(step), what: Trouble::Death }],
        ..Options::default()
    };
    for format in [Format::Cdf5, Format::NetCdf4] {
        for (who, step) in (0..by(6, 60)).map(|n| (n as usize % RANKS, 5 * n + 4)) {
            let ends = threads::run(RANKS, &options(who, step), |team| {
                let told = live(team, &path, format, None, 2);
                let made = told.calls[0].1 == [0];
                assert!(!made || told.is_closed, "{told:?}");
                told.has_failed()
            });
            for (rank, end) in ends.into_iter().enumerate() {
                let is_right = match end.end {
                    End::Died => rank == who,
                    End::Returned(_) => true,
                    End::Panicked(_) => false,
                };
                let what = format!("{format:?}: rank {rank}, where {who} dies before step {step}");
                assert!(is_right, "{what}: {:?}", end.end);
            }
        }
    }
}

#[test]
fn a_rank_with_an_early_error_comes_to_the_end_of_definitions_too() {
    let folder = folder();
    let path = folder.path().join("x.nc");
    for is_collective in [false, true] {
        threads::all(RANKS, |team| {
            let file = created(team, &path, Format::NetCdf4, None).unwrap();
            let vars = define(&file);
            file.set_collective(vars[0], is_collective).unwrap();
            // No nc_enddef: the first put is the end of definitions, as in serial programs.
            let done = file.put_with_ranks(VarRef::from(vars[0]), || match team.rank() {
                1 => Err(zonda::Error::from(NcError::InvalidCoords)),
                rank => put(&file, vars[0], &[rank], &[1], &[7]),
            });
            let code = done.map_or_else(|error| error.code().code(), |()| 0);
            assert_eq!(code, if team.rank() == 1 { NcError::InvalidCoords.code() } else { 0 });
            file.sync().unwrap();
            assert_eq!(get(&file, vars[0], &[3]), [7, FILL, 7]);
            file.close().unwrap();
        });
    }
}

#[test]
fn values_of_another_length_are_those_of_rank_0_in_data_mode_too() {
    let folder = folder();
    let path = folder.path().join("x.nc");
    for format in FORMATS {
        threads::all(RANKS, |team| {
            let file = created(team, &path, format, None).unwrap();
            let vars = define(&file);
            file.enddef(Reserve::Default).unwrap();
            let text = &b"text of 20 characters"[..20 - 7 * team.rank()];
            att(&file, text).unwrap();
            let root = VarRef::group(GroupId::ROOT);
            file.rename_att(root, b"history", b"HISTORY").unwrap();
            file.sync().unwrap();
            let mut got = [0; 20];
            let done = file.get_att(root, b"HISTORY", Some(MemType::Text), &mut got).unwrap();
            assert_eq!(done.out_of_range, 0);
            assert_eq!(&got, b"text of 20 character");
            put(&file, vars[0], &[team.rank()], &[1], &[7]).unwrap();
            file.close().unwrap();
        });
    }
}

#[test]
fn more_chunks_than_ranks_can_keep_are_refused_at_once() {
    let folder = folder();
    let path = folder.path().join("x.nc");
    let begin = std::time::Instant::now();
    for format in [Format::NetCdf4, Format::NetCdf4Classic] {
        threads::all(RANKS, |team| {
            let file = created(team, &path, format, None).unwrap();
            let time = file.def_dim(b"time", 0).unwrap();
            let var = file.def_var(b"v", 4, &[time.0]).unwrap();
            file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(&[4])).unwrap();
            file.enddef(Reserve::Default).unwrap();
            file.set_collective(var, true).unwrap();
            put(&file, var, &[team.rank()], &[1], &[1]).unwrap();
            for far in [1 << 25, 1 << 40] {
                let far = if team.rank() == 1 { far } else { team.rank() };
                let error = put(&file, var, &[far], &[1], &[9]).unwrap_err();
                assert_eq!(error.code(), NcError::BadChunk, "{error}");
                assert!(error.to_string().contains("/v"), "{error}");
            }
            // It is as long as it was, and can be put to.
            assert_eq!(file.meta(|meta| meta.n_records()), 3);
            put(&file, var, &[3 + team.rank()], &[1], &[2]).unwrap();
            file.close().unwrap();
        });
        let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(get(&file, VarId(0), &[6]), [1, 1, 1, 2, 2, 2]);
    }
    // So are chunks of new variables, and those that no program has written in a file that is there.
    threads::all(RANKS, |team| {
        let file = created(team, &path, Format::NetCdf4, None).unwrap();
        let x = file.def_dim(b"x", 20_000_000).unwrap();
        let var = file.def_var(b"v", 1, &[x.0]).unwrap();
        file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(&[2])).unwrap();
        assert_eq!(file.enddef(Reserve::Default).unwrap_err().code(), NcError::BadChunk);
        file.abort().unwrap();
    });
    let options = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
    let file = Dataset::create(&path, &options).unwrap();
    let x = file.def_dim(b"x", 20_000_000).unwrap();
    let sparse = file.def_var(b"sparse", 1, &[x.0]).unwrap();
    file.def_var_chunking(sparse.into(), StorageRequest::Chunked, Some(&[2])).unwrap();
    let y = file.def_dim(b"y", 8).unwrap();
    let plain = file.def_var(b"plain", 4, &[y.0]).unwrap();
    file.close().unwrap();
    threads::all(RANKS, |team| {
        let file = opened(team, &path, true).unwrap();
        let error = put(&file, sparse, &[0], &[1], &[9]).unwrap_err();
        assert_eq!(error.code(), NcError::BadChunk, "{error}");
        put(&file, plain, &[team.rank()], &[1], &[9]).unwrap();
        file.close().unwrap();
    });
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn a_checked_put_that_is_never_made_is_none() {
    let folder = folder();
    let path = folder.path().join("x.nc");
    threads::all(RANKS, |team| {
        let file = created(team, &path, Format::NetCdf4, None).unwrap();
        let vars = define(&file);
        file.enddef(Reserve::Default).unwrap();
        file.set_collective(vars[0], true).unwrap();
        if team.rank() == 1 {
            let slab = Hyperslab { start: &[0], count: &[1], stride: None };
            let access = zonda::Access { var: vars[0].into(), slab, mem: Some(MemType::I32) };
            let mut checked = zonda::Transfer::new(access);
            assert_eq!(file.put_to(vars[0]).unwrap().check(&mut checked).unwrap().n_bytes(), 4);
            // Alone: the others know nothing of it.
            put(&file, vars[2], &[1], &[1], &[7]).unwrap();
        }
        team.meet(Step { call: "test", file: "test" }).unwrap();
        put(&file, vars[0], &[team.rank()], &[1], &[4]).unwrap();
        file.close().unwrap();
    });
}

#[test]
fn a_close_beside_another_call_leaves_nobody_waiting() {
    let folder = folder();
    let path = folder.path().join("x.nc");
    for format in FORMATS {
        good_file(&path, format);
        threads::all(RANKS, |team| {
            let file = opened(team, &path, true).unwrap();
            file.set_collective(VarId(0), true).unwrap();
            let first = match team.rank() {
                0 => put(&file, VarId(0), &[0], &[3], &[9; 3]),
                1 => file.close(),
                _ => file.sync(),
            };
            let text = first.unwrap_err().to_string();
            assert!(text.contains("ranks make different calls"), "{text}");
            if team.rank() == 1 {
                assert!(!file.is_open());
                return;
            }
            // Rank 1 does not come again.
            let lost = NcError::Mpi;
            assert_eq!(put(&file, VarId(0), &[0], &[3], &[9; 3]).unwrap_err().code(), lost);
            assert_eq!(file.close().unwrap_err().code(), lost);
            assert!(!file.is_open());
        });
        check_whole(&path, "after all");
    }
}

#[test]
fn new_elements_are_fill_values_where_the_put_that_covers_them_fails() {
    let folder = folder();
    let path = folder.path().join("x.nc");
    for format in [Format::NetCdf4, Format::NetCdf4Classic] {
        let codes = threads::all(RANKS, |team| {
            let io = (team.rank() == 1).then(|| String::from("fault:write:1:enospc"));
            let file = created(team, &path, format, io).unwrap();
            let time = file.def_dim(b"time", 0).unwrap();
            let x = file.def_dim(b"x", 12).unwrap();
            let var = file.def_var(b"v", 4, &[time.0, x.0]).unwrap();
            file.enddef(Reserve::Default).unwrap();
            file.set_collective(var, true).unwrap();
            let done = put(&file, var, &[0, 4 * team.rank()], &[1, 4], &[7; 4]);
            file.close().unwrap();
            done.map_or_else(|error| error.code().code(), |()| 0)
        });
        assert_eq!(codes, [NcError::System(28).code(); RANKS], "{format:?}");
        let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
        let values = get(&file, VarId(0), &[1, 12]);
        assert!(values.iter().all(|value| [7, FILL].contains(value)), "{values:?}");
    }
}

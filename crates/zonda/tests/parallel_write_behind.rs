//! Write-behind in files of several ranks: puts return before they are in the file, and what ranks see, say and send to each other is as if
//! they were. That files have the same bytes is in `parallel_lives.rs`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use zonda::team::threads::Options;
use zonda::team::{Kind, Team, Traffic, threads};
use zonda::{
    CreateOptions, Dataset, FillMode, Format, Hyperslab, MemType, NcError, OpenOptions, Reserve,
    Result, StorageRequest, VarId, WriteBehind, WriteBehindOptions,
};
use zonda_testkit::by;

const FORMATS: [Format; 3] = [Format::Cdf5, Format::NetCdf4, Format::NetCdf4Classic];
/// That of files whose chunks go through filters.
const FILTERED: Format = Format::NetCdf4;
const ON: WriteBehind =
    WriteBehind::On(WriteBehindOptions { helper: false, memory_bytes: None, threads: None });

fn created(
    team: &threads::Threads,
    path: &Path,
    format: Format,
    (how, io): (WriteBehind, Option<&str>),
) -> Result<Dataset> {
    let team: Arc<dyn Team> = Arc::new(team.clone());
    let write_behind = Some(how);
    let io = io.map(str::to_owned);
    let options = CreateOptions { format, write_behind, io, ..CreateOptions::default() };
    Dataset::create_parallel(team, path, &options)
}

/// A variable along records, and one that cannot grow, with `x` elements in a row. All ranks put together.
fn defined(file: &Dataset, x: usize) -> [VarId; 2] {
    let time = file.def_dim(b"time", 0).unwrap();
    let x = file.def_dim(b"x", x).unwrap();
    let vars = [(&b"growing"[..], [time.0, x.0]), (b"fixed", [x.0, x.0])];
    let vars = vars.map(|(name, dims)| {
        let dims = if name == b"fixed" { &dims[1..] } else { &dims[..] };
        file.def_var(name, 4, dims).unwrap()
    });
    file.enddef(Reserve::Default).unwrap();
    vars.map(|var| {
        file.set_collective(var, true).unwrap();
        var
    })
}

fn put(file: &Dataset, var: VarId, (start, count): (&[usize], &[usize]), value: i32) -> Result<()> {
    let n = count.iter().product();
    let bytes: Vec<u8> = std::iter::repeat_n(value.to_ne_bytes(), n).flatten().collect();
    let slab = Hyperslab { start, count, stride: None };
    file.put(var, &slab, Some(MemType::I32), &bytes).map(drop)
}

fn get(file: &Dataset, var: VarId, (start, count): (&[usize], &[usize])) -> Result<Vec<i32>> {
    let mut out = vec![0; count.iter().product::<usize>() * 4];
    let slab = Hyperslab { start, count, stride: None };
    let _ = file.get(var, &slab, Some(MemType::I32), &mut out)?;
    Ok(out.as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect())
}

/// Elements of a rank.
const EACH: usize = 5000;
/// A device that writes 100 KB a second.
const SLOW: Option<&str> = Some("throttle:100k,file");

#[test]
fn puts_return_before_they_are_in_the_file_and_all_see_them() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.nc");
        let n = 4;
        let _ = threads::all(n, |team| {
            let file = created(team, &path, format, (ON, SLOW)).unwrap();
            let [growing, fixed] = defined(&file, n * EACH);
            let me = team.rank();
            // 0.4 s for the device.
            put(&file, growing, (&[0, me * EACH], &[2, EACH]), me as i32).unwrap();
            assert!(file.write_behind_status().0 > 0, "{format:?}");
            // Where all get, each sees what the others put.
            let row = get(&file, growing, (&[1, 0], &[1, n * EACH])).unwrap();
            assert_eq!(file.write_behind_status().0, 0);
            assert!(row.iter().enumerate().all(|(at, value)| *value == (at / EACH) as i32));
            // A rank that puts alone sees that at once, and the others when all have synced.
            file.set_collective(fixed, false).unwrap();
            put(&file, fixed, (&[me * EACH], &[EACH]), 7 + me as i32).unwrap();
            assert!(file.write_behind_status().0 > 0, "{format:?}");
            let own = get(&file, fixed, (&[me * EACH + 1], &[EACH - 1])).unwrap();
            assert_eq!(own, [7 + me as i32; EACH - 1]);
            put(&file, fixed, (&[me * EACH], &[EACH]), 8 + me as i32).unwrap();
            file.sync().unwrap();
            assert_eq!(file.write_behind_status().0, 0);
            let all = get(&file, fixed, (&[0], &[n * EACH])).unwrap();
            assert!(all.iter().enumerate().all(|(at, value)| *value == 8 + (at / EACH) as i32));
            file.close().unwrap();
        });
    }
}

#[test]
fn puts_that_meet_stay_in_order_whichever_ranks_make_them() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.nc");
        let n = 3;
        let _ = threads::all(n, |team| {
            // One rank is late with all it writes.
            let me = team.rank();
            let io = (me == 1).then_some("throttle:200k,file");
            let file = created(team, &path, format, (ON, io)).unwrap();
            let [growing, fixed] = defined(&file, n * EACH);
            for turn in 0..3 {
                let part = (me + turn) % n * EACH;
                put(&file, fixed, (&[part], &[EACH]), turn as i32).unwrap();
                put(&file, growing, (&[0, part], &[1, EACH]), turn as i32).unwrap();
            }
            // What a rank puts alone comes before what all put after that.
            file.set_collective(fixed, false).unwrap();
            put(&file, fixed, (&[me * EACH], &[EACH]), 3).unwrap();
            file.set_collective(fixed, true).unwrap();
            let part = (me + 1) % n * EACH;
            put(&file, fixed, (&[part], &[EACH / 2]), 4).unwrap();
            file.close().unwrap();
        });
        let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
        let found = |name: &[u8]| file.meta(|meta| meta.find_var(name)).unwrap();
        let growing = get(&file, found(b"growing"), (&[0, 0], &[1, n * EACH])).unwrap();
        assert_eq!(growing, vec![2; n * EACH], "{format:?}");
        let fixed = get(&file, found(b"fixed"), (&[0], &[n * EACH])).unwrap();
        let expected = |at: usize| if at % EACH < EACH / 2 { 4 } else { 3 };
        assert!(fixed.iter().enumerate().all(|(at, value)| *value == expected(at)), "{format:?}");
    }
}

/// What a rank sends in calls of one life, call after call.
fn sent(team: &threads::Threads, path: &Path, format: Format, how: WriteBehind) -> Vec<Traffic> {
    let (n, me) = (team.size(), team.rank());
    let file = created(team, path, format, (how, None)).unwrap();
    let [growing, fixed] = defined(&file, 4 * n);
    let mut all = Vec::new();
    let mut counted = |work: &dyn Fn()| {
        let before = team.traffic();
        work();
        all.push(team.traffic().since(&before));
    };
    let part = [4 * me];
    counted(&|| put(&file, fixed, (&part, &[4]), 1).unwrap());
    counted(&|| put(&file, fixed, (&part, &[4]), 2).unwrap());
    counted(&|| put(&file, growing, (&[0, 4 * me], &[1, 4]), 2).unwrap());
    counted(&|| put(&file, growing, (&[1, 4 * me], &[1, 4]), 2).unwrap());
    counted(&|| drop(get(&file, growing, (&[1, 0], &[1, 1])).unwrap()));
    counted(&|| put(&file, growing, (&[1, 4 * me], &[1, 4]), 2).unwrap());
    counted(&|| file.sync().unwrap());
    counted(&|| put(&file, fixed, (&part, &[4]), 1).unwrap());
    counted(&|| file.redef().unwrap());
    counted(&|| file.enddef(Reserve::Default).unwrap());
    counted(&|| file.close().unwrap());
    all
}

#[test]
fn ranks_say_no_more_to_each_other_than_without_queues() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.nc");
        let of = |how| threads::all(16, |team| sent(team, &path, format, how));
        let (direct, queued) = (of(WriteBehind::Off), of(ON));
        let reductions = |calls: &[Traffic]| -> Vec<u64> {
            calls.iter().map(|sent| sent.of(Kind::Reduce).steps).collect()
        };
        let [direct_counts, queued_counts] = [reductions(&direct[0]), reductions(&queued[0])];
        assert_eq!((direct_counts[0], direct_counts[4]), (2, 0), "{format:?}");
        // A put to the same elements waits for the one before, if that still waits on some rank.
        assert!(queued_counts[1] <= direct_counts[1] && queued_counts[4] <= 1, "{format:?}");
        for put in [0, 2, 3, 5] {
            assert_eq!(queued_counts[put] + 1, direct_counts[put], "{format:?}, {put}");
        }
        for (direct, queued) in direct.iter().zip(&queued) {
            let sum = |calls: &[Traffic]| calls.iter().map(|sent| sent.total().messages).sum();
            let [direct, queued]: [u64; 2] = [sum(direct), sum(queued)];
            assert!(queued <= direct, "{format:?}: {queued} and {direct}");
        }
        // A commit and the end are what they were.
        for call in [6, 8, 9, 10] {
            assert_eq!(queued_counts[call], direct_counts[call], "{format:?}, {call}");
        }
    }
}

/// Waits until a rank has written what it can.
fn rest(file: &Dataset) {
    while let (1.., None) = file.write_behind_status() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A life in which one rank's writes fail: what each call gave. After an error in a put all sync until that is done, and put again. `None` where
/// there is no file.
fn life_with_faults(
    team: &threads::Threads,
    path: &Path,
    (format, is_filtered): (Format, bool),
    (how, bad, spec): (WriteBehind, usize, &str),
) -> Option<(Vec<i32>, String)> {
    let me = team.rank();
    let io = (me == bad).then_some(spec);
    let file = created(team, path, format, (how, io)).ok()?;
    file.set_fill(FillMode::Fill).unwrap();
    let time = file.def_dim(b"time", 0).unwrap();
    let x = file.def_dim(b"x", 12).unwrap();
    let vars = [&[x.0][..], &[time.0, x.0]].map(|dims| {
        let name = format!("v{}", dims.len());
        file.def_var(name.as_bytes(), 4, dims).unwrap()
    });
    if file.is_hdf5() {
        // Each record gets its place when it is put.
        let chunk = Some(&[1, 12][..]);
        file.def_var_chunking(vars[1].into(), StorageRequest::Chunked, chunk).unwrap();
    }
    if is_filtered {
        // Each rank has a chunk of the first, and a part of one of the second.
        let chunk = Some(&[4][..]);
        file.def_var_chunking(vars[0].into(), StorageRequest::Chunked, chunk).unwrap();
        vars.iter().for_each(|var| file.def_var_deflate((*var).into(), true, Some(1)).unwrap());
    }
    // What has no place yet waits for the next call of all.
    let rest = |file: &Dataset| if is_filtered { () } else { rest(file) };
    let (mut codes, mut text) = (Vec::new(), String::new());
    let mut code = |done: Result<()>| {
        let code = done.as_ref().map_or_else(|error| error.code().code(), |()| 0);
        codes.push(code);
        if let Err(error) = done
            && error.to_string().contains("of all ranks, to")
        {
            text = error.to_string();
        }
        code == 0
    };
    for _ in 0..4 {
        let ended = if file.in_define_mode() { file.enddef(Reserve::Default) } else { file.sync() };
        if code(ended) {
            break;
        }
    }
    vars.iter().for_each(|var| file.set_collective(*var, true).unwrap());
    for step in 0..4 {
        for tries in 0..4 {
            let (fixed, record) = ([4 * me], [step, 4 * me]);
            let value = (10 * me + step) as i32;
            let first = put(&file, vars[0], (&fixed, &[4]), value);
            rest(&file);
            let second = put(&file, vars[1], (&record, &[1, 4]), value);
            rest(&file);
            let is_done = [code(first), code(second)] == [true; 2];
            if is_done || tries == 3 {
                break;
            }
            let _ = code(file.sync());
        }
        if step == 2 {
            let _ = code(file.sync());
        }
    }
    for _ in 0..4 {
        if code(file.close()) || !file.is_open() {
            break;
        }
    }
    assert!(!file.is_open(), "{codes:?}");
    Some((codes, text))
}

#[test]
fn a_write_that_fails_is_told_to_all_ranks_at_the_next_call_and_loses_nothing() {
    let ranks = 3;
    let kinds = FORMATS.map(|format| (format, false)).into_iter().chain([(FILTERED, true)]);
    for (format, is_filtered) in kinds {
        let mut n_told = 0;
        for bad in 0..ranks {
            let (mut nth, mut quiet) = (0, 0);
            while quiet < 3 {
                nth += by(if nth > 10 { 4 } else { 1 }, 1);
                let spec = format!("fault:write:{nth}:enospc,file");
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("file.nc");
                let what = format!("{format:?}, filters {is_filtered}, {spec} on rank {bad}");
                let ends = threads::all(ranks, |team| {
                    life_with_faults(team, &path, (format, is_filtered), (ON, bad, &spec))
                });
                let Some((codes, text)) = &ends[0] else {
                    assert!(ends.iter().all(Option::is_none), "{what}: {ends:?}");
                    continue;
                };
                let full = NcError::System(28).code();
                assert!(codes.iter().all(|code| [0, full].contains(code)), "{what}: {ends:?}");
                // All ranks have the same codes and the same text, whichever rank it was.
                assert!(ends.iter().all(|end| *end == ends[0]), "{what}: {ends:?}");
                quiet = if codes.iter().all(|code| *code == 0) { quiet + 1 } else { 0 };
                if !text.is_empty() {
                    n_told += 1;
                    assert!(text.contains(&format!("on MPI rank {bad}: put ")), "{what}: {text}");
                    assert!(text.contains("of all ranks, to"), "{what}: {text}");
                }
                let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
                let found = |name: &[u8]| file.meta(|meta| meta.find_var(name)).unwrap();
                let fixed = get(&file, found(b"v1"), (&[0], &[12])).unwrap();
                let value = |at: usize, step: usize| (10 * (at / 4) + step) as i32;
                assert!((0..12).all(|at| fixed[at] == value(at, 3)), "{what}: {fixed:?}");
                let records = get(&file, found(b"v2"), (&[0, 0], &[4, 12])).unwrap();
                assert!((0..48).all(|at| records[at] == value(at % 12, at / 12)), "{what}");
            }
        }
        assert!(n_told > 4, "{format:?}: {n_told}");
    }
}

/// What the library has in elements of type int that nobody put.
const FILL: i32 = -2147483647;

#[test]
fn what_fails_on_a_rank_without_a_queue_is_told_to_all_ranks_and_leaves_fill_values() {
    let kinds = FORMATS.map(|format| (format, false)).into_iter().chain([(FILTERED, true)]);
    for (format, is_filtered) in kinds {
        let mut n_told = 0;
        for (bad, nth) in (0..3).flat_map(|bad| (1..10).map(move |nth| (bad, nth))) {
            let spec = format!("fault:write:{nth}:enospc,file");
            let what = format!("{format:?}, {spec} on rank {bad}");
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file.nc");
            let ends = threads::all(3, |team| {
                let how = if team.rank() == bad { WriteBehind::Off } else { ON };
                life_with_faults(team, &path, (format, is_filtered), (how, bad, &spec))
            });
            assert!(ends.iter().all(|end| *end == ends[0]), "{what}: {ends:?}");
            let Some((_, text)) = &ends[0] else { continue };
            if text.contains("of all ranks, to") {
                n_told += 1;
                assert!(text.contains(&format!("on MPI rank {bad}: put ")), "{what}: {text}");
            }
            let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
            let records = file.meta(|meta| meta.find_var(b"v2")).unwrap();
            let records = get(&file, records, (&[0, 0], &[4, 12])).unwrap();
            let value = |at: usize| (10 * (at % 12 / 4) + at / 12) as i32;
            let is_fine = |at: usize| [FILL, value(at)].contains(&records[at]);
            assert!((0..48).all(is_fine), "{what}: {records:?}, {ends:?}");
        }
        assert!(n_told > 4, "{format:?}: {n_told}");
    }
}

#[test]
fn a_device_that_stays_full_leaves_the_last_commit() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.nc");
        let codes = threads::all(3, |team| {
            let me = team.rank();
            // The first writes are those of fill values and of the first records.
            let io = (me == 1).then_some("fault:write:5+:enospc,file");
            let file = created(team, &path, format, (ON, io)).unwrap();
            let [growing, _] = defined(&file, 12);
            let at = |step| ([step, 4 * me], [1, 4]);
            let put = |step: usize, value| {
                let (start, count) = at(step);
                put(&file, growing, (&start, &count), value)
            };
            put(0, 5).unwrap();
            file.sync().unwrap();
            let mut codes = Vec::new();
            for step in 1..6 {
                codes.push(put(step, 6).map_err(|error| error.code()));
            }
            codes.push(file.sync().map_err(|error| error.code()));
            codes.push(file.close().map_err(|error| error.code()));
            assert!(file.is_open());
            // What cannot be stored is given up.
            codes.push(file.abort().map_err(|error| error.code()));
            codes
        });
        assert!(codes.iter().all(|code| *code == codes[0]), "{format:?}: {codes:?}");
        let full = Err(NcError::System(28));
        assert_eq!(codes[0][5..7], [full, full], "{format:?}: {codes:?}");
        let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
        let growing = file.meta(|meta| meta.find_var(b"growing")).unwrap();
        let first = get(&file, growing, (&[0, 0], &[1, 12])).unwrap();
        assert_eq!(first, [5; 12], "{format:?}");
    }
}

#[test]
fn what_waits_keeps_within_its_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.nc");
    let options = Options { n_on_node: 4, ..Options::default() };
    let ends = threads::run(4, &options, |team| {
        let how = "mem=64k".parse().unwrap();
        let io = Some("throttle:2M,file");
        let file = created(team, &path, Format::Cdf5, (how, io)).unwrap();
        let [growing, fixed] = defined(&file, 4 * EACH);
        let mut most = 0;
        for step in 0..20 {
            let start = [step, EACH * team.rank()];
            put(&file, growing, (&start, &[1, EACH]), step as i32).unwrap();
            most = most.max(file.write_behind_status().0);
        }
        // Off and on again, on one rank.
        if team.rank() == 2 {
            file.set_write_behind(WriteBehind::Off).unwrap();
            assert_eq!(file.write_behind_status().0, 0);
        }
        put(&file, fixed, (&[EACH * team.rank()], &[EACH]), 3).unwrap();
        if team.rank() == 2 {
            assert_eq!(file.write_behind_status().0, 0);
            file.set_write_behind(ON).unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
        file.close().unwrap();
        most
    });
    for end in ends {
        let most = end.returned().unwrap();
        assert!(most > 0 && most <= 64 << 10, "{most}");
    }
    let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
    let growing = file.meta(|meta| meta.find_var(b"growing")).unwrap();
    for step in 0..20 {
        let row = get(&file, growing, (&[step, 0], &[1, 4 * EACH])).unwrap();
        assert!(row.iter().all(|value| *value == step as i32));
    }
}

/// A variable along records and one that cannot grow, of `n` chunks of so many elements in a row, each with a checksum.
fn defined_with_filters(file: &Dataset, n: usize, chunk: usize) -> [VarId; 2] {
    let time = file.def_dim(b"time", 0).unwrap();
    let x = file.def_dim(b"x", n * chunk).unwrap();
    let vars = [(&b"growing"[..], &[time.0, x.0][..]), (b"fixed", &[x.0])].map(|(name, dims)| {
        let var = file.def_var(name, 4, dims).unwrap();
        let chunks = if dims.len() == 2 { &[1, chunk][..] } else { &[chunk] };
        file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(chunks)).unwrap();
        file.def_var_fletcher32(var.into(), true).unwrap();
        var
    });
    file.enddef(Reserve::Default).unwrap();
    vars
}

#[test]
fn puts_through_filters_return_before_their_chunks_have_places_and_all_see_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.nc");
    let n = 4;
    // Chunks of one rank, and of two.
    for chunk in [EACH, 2 * EACH] {
        let _ = threads::all(n, |team| {
            let file = created(team, &path, FILTERED, (ON, SLOW)).unwrap();
            let [growing, fixed] = defined_with_filters(&file, n * EACH / chunk, chunk);
            let me = team.rank();
            let first = me * EACH;
            // Who owns no chunk has nothing that waits.
            let owns = |waits: usize| waits > 0 || chunk > EACH;
            put(&file, growing, (&[0, first], &[2, EACH]), me as i32).unwrap();
            assert!(owns(file.write_behind_status().0), "{chunk}");
            let row = get(&file, growing, (&[1, 0], &[1, n * EACH])).unwrap();
            assert_eq!(file.write_behind_status().0, 0);
            assert!(row.iter().enumerate().all(|(at, value)| *value == (at / EACH) as i32));
            // Puts to the same chunks, of which ranks have other parts each time, stay in order.
            for turn in 0..3 {
                let part = (me + turn) % n * EACH;
                put(&file, fixed, (&[part], &[EACH]), turn as i32).unwrap();
                put(&file, growing, (&[2, part], &[1, EACH / 2]), turn as i32).unwrap();
            }
            put(&file, growing, (&[2, first + EACH / 2], &[1, EACH - EACH / 2]), 7).unwrap();
            assert!(owns(file.write_behind_status().0), "{chunk}");
            file.sync().unwrap();
            assert_eq!(file.write_behind_status().0, 0);
            let all = get(&file, fixed, (&[0], &[n * EACH])).unwrap();
            assert!(all.iter().all(|value| *value == 2));
            // A file that is closed has what nobody waited for.
            put(&file, growing, (&[3, first], &[1, EACH]), 9).unwrap();
            file.close().unwrap();
        });
        let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
        let growing = file.meta(|meta| meta.find_var(b"growing")).unwrap();
        let rows = get(&file, growing, (&[2, 0], &[2, n * EACH])).unwrap();
        let expected = |at: usize| match at {
            _ if at >= n * EACH => 9,
            _ if at % EACH < EACH / 2 => 2,
            _ => 7,
        };
        assert!(rows.iter().enumerate().all(|(at, value)| *value == expected(at)), "{chunk}");
    }
}

/// What a rank sends in calls of one life with filters, call after call.
fn sent_with_filters(team: &threads::Threads, path: &Path, how: WriteBehind) -> Vec<Traffic> {
    let (n, me) = (team.size(), team.rank());
    let file = created(team, path, FILTERED, (how, None)).unwrap();
    let [growing, fixed] = defined_with_filters(&file, n / 2, 8);
    let mut all = Vec::new();
    let mut counted = |work: &dyn Fn()| {
        let before = team.traffic();
        work();
        all.push(team.traffic().since(&before));
    };
    let part = [4 * me];
    let record = |at: usize| put(&file, growing, (&[at, 4 * me], &[1, 4]), 2).unwrap();
    counted(&|| put(&file, fixed, (&part, &[4]), 1).unwrap());
    counted(&|| put(&file, fixed, (&part, &[4]), 2).unwrap());
    counted(&|| record(0));
    counted(&|| record(1));
    counted(&|| record(2));
    counted(&|| file.sync().unwrap());
    counted(&|| record(3));
    counted(&|| drop(get(&file, growing, (&[1, 0], &[1, 1])).unwrap()));
    counted(&|| file.close().unwrap());
    all
}

#[test]
fn ranks_say_no_more_to_each_other_of_chunks_than_without_queues() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.nc");
    let of = |how| threads::all(16, |team| sent_with_filters(team, &path, how));
    let (direct, queued) = (of(WriteBehind::Off), of(ON));
    let reductions = |calls: &[Traffic]| -> Vec<u64> {
        calls.iter().map(|sent| sent.of(Kind::Reduce).steps).collect()
    };
    let [direct_counts, queued_counts] = [reductions(&direct[0]), reductions(&queued[0])];
    // How long chunks have become, and that they are written, is not told in the first put.
    assert_eq!((direct_counts[0], queued_counts[0]), (4, 2));
    // The same chunks again: both are told now.
    assert_eq!((direct_counts[1], queued_counts[1]), (4, 4));
    for put in [2, 3, 4, 6] {
        assert!(queued_counts[put] <= direct_counts[put] - 1, "{put}: {queued_counts:?}");
    }
    for (direct, queued) in direct.iter().zip(&queued) {
        let sum = |calls: &[Traffic]| calls.iter().map(|sent| sent.total().messages).sum();
        let [direct, queued]: [u64; 2] = [sum(direct), sum(queued)];
        // The get is one of all ranks.
        let of_get = direct / direct_counts.iter().sum::<u64>() + 1;
        assert!(queued <= direct + of_get, "{queued} and {direct}");
    }
}

#[test]
fn a_device_that_stays_full_leaves_no_chunks_of_later_puts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.nc");
    let codes = threads::all(3, |team| {
        let me = team.rank();
        // Nobody but the owner of a chunk writes.
        let io = (me == 1).then_some("fault:write:2+:enospc,file");
        let file = created(team, &path, FILTERED, (ON, io)).unwrap();
        let [growing, fixed] = defined_with_filters(&file, 3, 4);
        let put =
            |var, start: &[usize], count: &[usize], value| put(&file, var, (start, count), value);
        put(growing, &[0, 4 * me], &[1, 4], 5).unwrap();
        file.sync().unwrap();
        let mut codes = Vec::new();
        // Chunks that are put to again keep what they had.
        codes.push(put(growing, &[0, 4 * me], &[1, 4], 6).map_err(|error| error.code()));
        for step in 1..6 {
            codes.push(put(growing, &[step, 4 * me], &[1, 4], 6).map_err(|error| error.code()));
        }
        codes.push(put(fixed, &[4 * me], &[2], 6).map_err(|error| error.code()));
        codes.push(file.sync().map_err(|error| error.code()));
        codes.push(file.close().map_err(|error| error.code()));
        assert!(file.is_open());
        codes.push(file.abort().map_err(|error| error.code()));
        codes
    });
    assert!(codes.iter().all(|code| *code == codes[0]), "{codes:?}");
    let full = Err(NcError::System(28));
    assert_eq!(codes[0][7..], [full; 3], "{codes:?}");
    let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
    let growing = file.meta(|meta| meta.find_var(b"growing")).unwrap();
    let first = get(&file, growing, (&[0, 0], &[1, 12])).unwrap();
    assert_eq!(first, [5; 12]);
    // Of what nothing refers to nothing is read.
    let all = get(&file, growing, (&[1, 0], &[5, 12]));
    assert!(all.is_err() || all.is_ok_and(|all| all.iter().all(|value| [FILL, 6].contains(value))));
}

//! Copies and checks that the ranks of simulated teams divide: the bytes and findings of one process, for any number of ranks, and an end
//! whatever goes wrong.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zonda::check::{Checked, check, check_with, follow_check};
use zonda::copy::{
    ChunkRule, CopyOptions, FilterRule, QuantizeRule, copy, copy_dataset, follow_copy,
};
use zonda::ranks::Lead;
use zonda::team::{Step, Team, threads};
use zonda::{
    Answer, CreateOptions, Dataset, Error, ExtType, FilterSpec, Format, Hyperslab, MemType,
    NC_STRING, NcError, OpenOptions, Quantize, QuantizeMode, Reserve, StorageRequest, VarRef,
};
use zonda_testkit::TempFolder;

const SIZES: [usize; 4] = [2, 3, 9, 16];
const STEP: Step<'static> = Step { call: "zonda copy", file: "b.nc" };

fn go_on(_: &zonda::copy::Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Values that differ from their neighbours and compress.
fn field(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| ((i % 1009) as f32 + (i / 5003) as f32 * 0.25).to_ne_bytes()).collect()
}

fn def(file: &Dataset, name: &str, dims: &[zonda::DimId], chunk: Option<&[usize]>) -> VarRef {
    let ids: Vec<i32> = dims.iter().map(|dim| dim.0).collect();
    let var: VarRef = file.def_var(name.as_bytes(), ExtType::Float.nc_type(), &ids).unwrap().into();
    if let Some(chunk) = chunk {
        file.def_var_chunking(var, StorageRequest::Chunked, Some(chunk)).unwrap();
        file.def_var_deflate(var, true, Some(1)).unwrap();
    }
    var
}

fn put(file: &Dataset, var: VarRef, count: &[usize]) {
    let start = vec![0; count.len()];
    let slab = Hyperslab { start: &start, count, stride: None };
    let values = field(count.iter().product());
    let _ = file.put(var, &slab, Some(MemType::F32), &values).unwrap();
}

/// A file with variables of about 2 MB each: two of records, one without filters, one of fixed length, and a short one; in netCDF-4 also
/// strings, and a variable of which most was never written.
fn source(folder: &TempFolder, format: Format) -> PathBuf {
    let path = folder.file("a.nc");
    let file =
        Dataset::create(&path, &CreateOptions { format, ..CreateOptions::default() }).unwrap();
    let is_new = format.is_hdf5();
    let dim = |name: &str, len| file.def_dim(name.as_bytes(), len).unwrap();
    let (time, y, x) = (dim("time", 0), dim("y", 90), dim("x", 120));
    let chunk = |chunk: &'static [usize]| is_new.then_some(chunk);
    let first = def(&file, "first", &[time, y, x], chunk(&[7, 45, 60]));
    let second = def(&file, "second", &[time, y, x], chunk(&[1, 90, 120]));
    let long = dim("long", 50);
    let plain = def(&file, "plain", &[long, y, x], None);
    let fixed = def(&file, "fixed", &[y, long, x], chunk(&[10, 50, 50]));
    let short = def(&file, "short", &[y], chunk(&[8]));
    let strings = is_new.then(|| file.def_var(b"names", NC_STRING, &[y.0]).unwrap());
    let sparse = is_new.then(|| def(&file, "sparse", &[long, y, x], Some(&[5, 30, 40])));
    file.enddef(Reserve::Default).unwrap();
    put(&file, first, &[50, 90, 120]);
    put(&file, second, &[50, 90, 120]);
    put(&file, plain, &[50, 90, 120]);
    put(&file, fixed, &[90, 50, 120]);
    put(&file, short, &[90]);
    assert!(strings.is_none_or(|names| names.0 > 0));
    if let Some(sparse) = sparse {
        put(&file, sparse, &[11, 40, 120]);
    }
    file.close().unwrap();
    path
}

/// A copy by ranks; gives what rank 0 got. The others find no error.
fn by_ranks(n: usize, source: &Path, target: &Path, options: &CopyOptions) -> zonda::Result<()> {
    let mut ends = threads::all(n, |team| {
        let file = Dataset::open(source, &OpenOptions::default());
        if team.rank() > 0 {
            return follow_copy(team, STEP, file.as_ref(), target, options, None);
        }
        let lead = Some(Arc::new(Lead::new(Arc::new(team.clone()), "zonda copy", "b.nc")));
        let options = CopyOptions { lead, ..options.clone() };
        copy_dataset(&file?, target, &options, &mut go_on).map(drop)
    });
    let first = ends.remove(0);
    ends.into_iter().for_each(|end| end.unwrap());
    first
}

fn deflated(level: u32) -> Vec<FilterRule> {
    let part = |id, params| FilterSpec { id, optional: true, name: String::new(), params };
    vec![FilterRule { vars: Vec::new(), filters: vec![part(2, Vec::new()), part(1, vec![level])] }]
}

fn rechunked(sizes: &[(&str, u64)]) -> Vec<ChunkRule> {
    let sizes = sizes.iter().map(|(name, n)| (name.as_bytes().to_vec(), *n)).collect();
    vec![ChunkRule { vars: None, sizes }]
}

fn quantized(mode: QuantizeMode) -> Vec<QuantizeRule> {
    vec![QuantizeRule { vars: Vec::new(), quantize: Some(Quantize { mode, kept: 3 }) }]
}

/// Copies of all kinds, by what they are asked to be.
fn wishes() -> Vec<(&'static str, CopyOptions)> {
    let with = |change: fn(&mut CopyOptions)| {
        let mut options = CopyOptions { memory_bytes: 4 << 20, ..CopyOptions::default() };
        change(&mut options);
        options
    };
    vec![
        ("as it is", with(|_| ())),
        ("deflated", with(|o| (o.format, o.filters) = (Some(Format::NetCdf4), deflated(2)))),
        (
            "in other chunks",
            with(|o| {
                (o.format, o.filters) = (Some(Format::NetCdf4), deflated(1));
                o.chunks = rechunked(&[("time", 50), ("y", 10), ("x", 11)]);
            }),
        ),
        (
            "in chunks of several records",
            with(|o| {
                (o.format, o.filters) = (Some(Format::NetCdf4Classic), deflated(1));
                o.chunks = rechunked(&[("time", 8), ("y", 30)]);
            }),
        ),
        (
            "without filters",
            with(|o| {
                o.format = Some(Format::NetCdf4);
                o.filters = vec![FilterRule { vars: Vec::new(), filters: Vec::new() }];
                o.chunks = rechunked(&[("time", 3), ("y", 7)]);
            }),
        ),
        ("classic", with(|o| o.format = Some(Format::Cdf5))),
        (
            "with less precision",
            with(|o| {
                (o.format, o.filters) = (Some(Format::NetCdf4), deflated(1));
                o.quantize = quantized(QuantizeMode::GranularBitRound);
            }),
        ),
        (
            "with less precision by place",
            with(|o| {
                (o.format, o.filters) = (Some(Format::NetCdf4), deflated(1));
                o.quantize = quantized(QuantizeMode::BitGroom);
            }),
        ),
        (
            "with fixed lengths",
            with(|o| {
                (o.format, o.filters) = (Some(Format::NetCdf4), deflated(3));
                o.fix_unlimited = true;
                o.chunks = rechunked(&[("time", 8), ("x", 60)]);
            }),
        ),
    ]
}

fn same_bytes(format: Format) {
    let folder = TempFolder::new("copy-ranks");
    let source = source(&folder, format);
    for (name, mut options) in wishes() {
        let is_full = options.format.is_none_or(|format| format == Format::NetCdf4);
        if format.is_hdf5() && !is_full {
            options.exclude = vec![zonda::copy::Pattern::new("names")];
        }
        let serial = folder.file("serial.nc");
        copy(&source, &serial, &options, &mut go_on).unwrap();
        let expected = std::fs::read(&serial).unwrap();
        for n in SIZES {
            let target = folder.file("ranks.nc");
            by_ranks(n, &source, &target, &options).unwrap();
            let found = std::fs::read(&target).unwrap();
            assert!(found == expected, "{name}: {n} ranks write other bytes than one process");
            std::fs::remove_file(&target).unwrap();
        }
        std::fs::remove_file(&serial).unwrap();
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn ranks_write_the_bytes_of_one_process() {
    same_bytes(Format::NetCdf4);
}

#[test]
fn ranks_copy_classic_files_to_the_bytes_of_one_process() {
    same_bytes(Format::Cdf2);
}

#[test]
fn ranks_do_take_part() {
    let folder = TempFolder::new("copy-ranks-part");
    let source = source(&folder, Format::NetCdf4);
    let options = CopyOptions { filters: deflated(2), ..CopyOptions::default() };
    let target = folder.file("b.nc");
    let ends = threads::run(3, &threads::Options::default(), |team| {
        let file = Dataset::open(&source, &OpenOptions::default()).unwrap();
        if team.rank() > 0 {
            return follow_copy(team, STEP, Ok(&file), &target, &options, None).unwrap();
        }
        let lead = Some(Arc::new(Lead::new(Arc::new(team.clone()), "zonda copy", "b.nc")));
        let options = CopyOptions { lead, ..options.clone() };
        let _ = copy_dataset(&file, &target, &options, &mut go_on).unwrap();
    });
    for end in &ends[1..] {
        // At least a box of each of three variables.
        assert!(end.traffic.total().bytes > 100_000, "{:?}", end.traffic);
    }
}

#[test]
fn an_error_of_a_rank_is_told_once_and_ends_all() {
    let folder = TempFolder::new("copy-ranks-errors");
    let source = source(&folder, Format::NetCdf4);
    let target = folder.file("b.nc");
    let options = CopyOptions { filters: deflated(2), ..CopyOptions::default() };
    let ends = threads::all(4, |team| {
        let file = Dataset::open(&source, &OpenOptions::default()).unwrap();
        if team.rank() == 2 {
            let lacks = Error::answered(NcError::System(2), Answer::Missing, "no such file");
            return follow_copy(team, STEP, Err(&lacks), &target, &options, None);
        }
        if team.rank() > 0 {
            return follow_copy(team, STEP, Ok(&file), &target, &options, None);
        }
        let lead = Some(Arc::new(Lead::new(Arc::new(team.clone()), "zonda copy", "b.nc")));
        let options = CopyOptions { lead, ..options.clone() };
        copy_dataset(&file, &target, &options, &mut go_on).map(drop)
    });
    let error = ends[0].as_ref().unwrap_err();
    assert!(error.to_string().contains("rank 2: no such file"), "{error}");
    assert!(ends[1..].iter().all(Result::is_ok));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the source is left");
}

#[test]
fn a_copy_that_is_refused_or_interrupted_ends_all_ranks() {
    let folder = TempFolder::new("copy-ranks-ends");
    let source = source(&folder, Format::NetCdf4);
    let options = CopyOptions { filters: deflated(2), ..CopyOptions::default() };
    let target = folder.file("b.nc");
    std::fs::write(&target, "here").unwrap();
    assert_eq!(by_ranks(3, &source, &target, &options).unwrap_err().code(), NcError::Exist);
    assert_eq!(std::fs::read(&target).unwrap(), b"here");
    assert_eq!(by_ranks(3, &source, &source, &options).unwrap_err().code(), NcError::Inval);
    let nowhere = folder.path().join("no/such/b.nc");
    assert_eq!(by_ranks(3, &source, &nowhere, &options).unwrap_err().code(), NcError::System(2));
    let nothing = folder.file("nothing.nc");
    assert_eq!(by_ranks(3, &nothing, &target, &options).unwrap_err().code(), NcError::System(2));
    let ends = threads::all(3, |team| {
        let file = Dataset::open(&source, &OpenOptions::default()).unwrap();
        let target = folder.file("c.nc");
        if team.rank() > 0 {
            return follow_copy(team, STEP, Ok(&file), &target, &options, None);
        }
        let lead = Some(Arc::new(Lead::new(Arc::new(team.clone()), "zonda copy", "b.nc")));
        let options = CopyOptions { lead, memory_bytes: 4 << 20, ..options.clone() };
        let mut left = 2;
        let stop = &mut |_: &zonda::copy::Progress<'_>| {
            left -= 1;
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        copy_dataset(&file, &target, &options, stop).map(drop)
    });
    assert_eq!(ends[0].as_ref().unwrap_err().code(), NcError::System(4));
    assert!(ends[1..].iter().all(Result::is_ok));
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        2,
        "the source and the first target"
    );
}

/// Overwrites some bytes of chunks of a variable.
fn damage(path: &Path, name: &[u8], every: usize) -> usize {
    let file = Dataset::open(path, &OpenOptions::default()).unwrap();
    let var: VarRef = file.meta(|meta| meta.find_var(name)).unwrap().into();
    let mut places = Vec::new();
    file.for_each_chunk(var, |_, chunk| places.push(chunk)).unwrap();
    file.close().unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    let damaged = places.iter().step_by(every);
    for place in damaged.clone() {
        let at = usize::try_from(place.at + place.len / 2).unwrap();
        bytes[at..at + 4].iter_mut().for_each(|byte| *byte ^= 0x55);
    }
    std::fs::write(path, bytes).unwrap();
    damaged.count()
}

fn checked_by_ranks(n: usize, path: &Path) -> zonda::Result<Checked> {
    let mut ends = threads::all(n, |team| {
        if team.rank() > 0 {
            return follow_check(team, STEP).map(|()| None);
        }
        let lead = Lead::new(Arc::new(team.clone()), "zonda check", "a.nc");
        check_with(Some(&lead), path, &mut go_on).map(Some)
    });
    let first = ends.remove(0);
    ends.into_iter().for_each(|end| assert!(end.unwrap().is_none()));
    first.map(Option::unwrap)
}

fn shown(checked: &Checked) -> String {
    format!("{checked:#?}")
}

#[test]
fn ranks_find_what_one_process_finds() {
    for format in [Format::NetCdf4, Format::Cdf5] {
        let folder = TempFolder::new("check-ranks");
        let path = source(&folder, format);
        let sound = check(&path, &mut go_on).unwrap();
        assert_eq!(sound.worst(), None);
        for n in SIZES {
            assert_eq!(shown(&checked_by_ranks(n, &path).unwrap()), shown(&sound), "{n} ranks");
        }
        if format.is_hdf5() {
            let n_damaged = damage(&path, b"first", 3) + damage(&path, b"fixed", 4);
            let damaged = check(&path, &mut go_on).unwrap();
            assert!(damaged.findings.len() >= n_damaged / 2, "{damaged:?}");
            for n in SIZES {
                assert_eq!(
                    shown(&checked_by_ranks(n, &path).unwrap()),
                    shown(&damaged),
                    "{n} ranks"
                );
            }
        }
        let cut = std::fs::read(&path).unwrap();
        std::fs::write(&path, &cut[..cut.len() / 2]).unwrap();
        let cut = check(&path, &mut go_on).unwrap();
        assert_eq!(shown(&checked_by_ranks(3, &path).unwrap()), shown(&cut));
    }
}

#[test]
fn damage_has_the_same_words_whichever_rank_meets_it() {
    let folder = TempFolder::new("copy-ranks-damage");
    let path = source(&folder, Format::NetCdf4);
    assert!(damage(&path, b"fixed", 5) > 1);
    let target = folder.file("b.nc");
    let options =
        CopyOptions { memory_bytes: 4 << 20, filters: deflated(2), ..CopyOptions::default() };
    let alone = copy(&path, &target, &options, &mut go_on).unwrap_err();
    for n in SIZES {
        let error = by_ranks(n, &path, &target, &options).unwrap_err();
        assert_eq!(error.line(), alone.line(), "{n} ranks");
        assert_eq!(error.code(), alone.code());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the source is left");
}

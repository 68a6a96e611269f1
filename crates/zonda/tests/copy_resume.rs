//! Copies that broke off and are completed: from every point at which they can break off, to the same dataset as a copy that did not.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use zonda::copy::{
    ChunkRule, Copied, CopyMethod, CopyOptions, FilterRule, Progress, Unfinished, copy, kept_part,
};
use zonda::diff::{DiffOptions, diff};
use zonda::{
    CreateOptions, Dataset, ExtType, FilterSpec, Format, Hyperslab, MemType, NcError, OpenOptions,
    Reserve, StorageRequest, VarRef,
};
use zonda_testkit::TempFolder;

const RECORDS: usize = 12;

/// Variables with and without records, in chunks and in one run.
fn source(path: &Path, format: Format, units: &[u8]) {
    let options = CreateOptions { format, ..CreateOptions::default() };
    let file = Dataset::create(path, &options).unwrap();
    let t = file.def_dim(b"t", 0).unwrap().0;
    let (y, x) = (file.def_dim(b"y", 40).unwrap().0, file.def_dim(b"x", 50).unwrap().0);
    let mut vars: Vec<(VarRef, Vec<usize>)> = Vec::new();
    for (name, ty, dims) in [
        ("rec one", ExtType::Float, vec![t, y, x]),
        ("scalar", ExtType::Int, vec![]),
        ("plain", ExtType::Double, vec![y, x]),
        ("rec two", ExtType::Short, vec![t, x]),
        ("chunked", ExtType::Int, vec![y, x]),
        ("last", ExtType::Float, vec![x]),
    ] {
        let var: VarRef = file.def_var(name.as_bytes(), ty.nc_type(), &dims).unwrap().into();
        let (ty, len) = (ExtType::Char.nc_type(), units.len());
        assert_eq!(file.put_att(var, b"units", ty, len, None, units).unwrap().out_of_range, 0);
        if format == Format::NetCdf4 && name != "plain" && dims.len() > 1 {
            let chunk: Vec<usize> = dims.iter().map(|dim| if *dim == t { 1 } else { 10 }).collect();
            file.def_var_chunking(var, StorageRequest::Chunked, Some(&chunk)).unwrap();
            file.def_var_deflate(var, true, Some(1)).unwrap();
        }
        let len =
            |dim: &i32| [(t, RECORDS), (y, 40), (x, 50)].iter().find(|d| d.0 == *dim).unwrap().1;
        vars.push((var, dims.iter().map(len).collect()));
    }
    file.enddef(Reserve::Default).unwrap();
    for (n, (var, shape)) in vars.iter().enumerate() {
        let values: Vec<u8> = (0..shape.iter().product::<usize>())
            .flat_map(|i| ((i % 1000 + n) as f64).to_ne_bytes())
            .collect();
        let start = vec![0; shape.len()];
        let slab = Hyperslab { start: &start, count: shape, stride: None };
        assert_eq!(file.put(*var, &slab, Some(MemType::F64), &values).unwrap().out_of_range, 0);
    }
    file.close().unwrap();
}

/// Copies until progress was told `most` times.
fn copied(
    source: &Path,
    target: &Path,
    options: &CopyOptions,
    most: usize,
) -> zonda::Result<Copied> {
    let mut n = 0;
    copy(source, target, options, &mut |_: &Progress<'_>| {
        n += 1;
        if n > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

fn n_differences(one: &Path, other: &Path) -> u64 {
    let open = |path: &Path| Dataset::open(path, &OpenOptions::default()).unwrap();
    let (one, other) = (open(one), open(other));
    let go_on = &mut |_: &Progress<'_>| ControlFlow::Continue(());
    let mut told = Vec::new();
    let found = &mut |difference| told.push(format!("{difference:?}"));
    let n = diff(&one, &other, &DiffOptions::default(), found, go_on).unwrap();
    assert!(told.is_empty(), "{told:?}");
    n
}

fn n_copied_before(done: &Copied) -> usize {
    done.vars.iter().filter(|var| var.way == CopyMethod::Before).count()
}

fn left(folder: &TempFolder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn kept(options: &CopyOptions) -> CopyOptions {
    CopyOptions { unfinished: Unfinished::Kept, ..options.clone() }
}

fn completed(options: &CopyOptions) -> CopyOptions {
    CopyOptions { unfinished: Unfinished::Completed, ..options.clone() }
}

/// Breaks a copy off after each report of progress, and completes it, breaking off again on the way.
fn from_everywhere(format: Format, options: &CopyOptions) {
    let folder = TempFolder::new("copy-resume");
    let (from, to) = (folder.file("from.nc"), folder.file("to.nc"));
    source(&from, format, b"m");
    let whole_folder = TempFolder::new("copy-resume-whole");
    let whole = whole_folder.file("whole.nc");
    assert!(copied(&from, &whole, options, usize::MAX).is_ok());
    let (mut n_kept, mut n_before) = (0, 0);
    for most in 0.. {
        let first = copied(&from, &to, &kept(options), most);
        let Err(error) = first else {
            assert_eq!(left(&folder), ["from.nc", "to.nc"]);
            break;
        };
        assert_eq!(error.code(), NcError::System(4), "{error}");
        assert!(!to.exists());
        if let Some(part) = kept_part(&to) {
            n_kept += 1;
            assert_eq!(left(&folder).len(), 3, "{:?}", left(&folder));
            // A part is a dataset, too.
            assert!(Dataset::open(&part, &OpenOptions::default()).is_ok());
            // It may break off a second time.
            let again = copied(&from, &to, &completed(options), most.div_ceil(2));
            assert_eq!(again.is_err(), !to.exists());
            match &again {
                Ok(done) => n_before += n_copied_before(done),
                Err(error) => {
                    assert_eq!(error.code(), NcError::System(4), "{error}");
                    assert!(kept_part(&to).is_some(), "what was complete stays so");
                }
            }
        } else {
            assert_eq!(left(&folder), ["from.nc"], "nothing was complete");
        }
        if !to.exists() {
            let done = copied(&from, &to, &completed(options), usize::MAX).unwrap();
            n_before += n_copied_before(&done);
            assert_eq!(done.vars.len(), 6);
        }
        assert_eq!(n_differences(&whole, &to), 0, "after {most}");
        assert_eq!(left(&folder), ["from.nc", "to.nc"]);
        std::fs::remove_file(&to).unwrap();
    }
    assert!(n_kept >= 2 && n_before >= n_kept, "{options:?}: {n_kept} parts, {n_before} variables");
}

fn small() -> CopyOptions {
    CopyOptions { memory_bytes: 20_000, ..CopyOptions::default() }
}

#[test]
fn classic_copies_are_completed_from_everywhere() {
    from_everywhere(Format::Cdf5, &small());
    from_everywhere(Format::Cdf1, &CopyOptions { fix_unlimited: true, ..small() });
}

#[test]
fn netcdf4_copies_are_completed_from_everywhere() {
    from_everywhere(Format::NetCdf4, &small());
    // Decoded, and in other chunks.
    let sizes = vec![(b"x".to_vec(), 25), (b"t".to_vec(), 3)];
    let chunks = vec![ChunkRule { vars: None, sizes }];
    from_everywhere(Format::NetCdf4, &CopyOptions { chunks, ..small() });
    let filters = vec![FilterSpec { id: 1, optional: true, name: String::new(), params: vec![5] }];
    let filters = vec![FilterRule { vars: Vec::new(), filters }];
    from_everywhere(Format::NetCdf4, &CopyOptions { filters, ..small() });
}

#[test]
fn copies_into_another_format_are_completed() {
    let to = |format| CopyOptions { format: Some(format), ..small() };
    from_everywhere(Format::Cdf5, &to(Format::NetCdf4));
    from_everywhere(Format::NetCdf4, &to(Format::Cdf5));
}

fn broken_off(folder: &TempFolder) -> (PathBuf, PathBuf, usize) {
    let (from, to) = (folder.file("from.nc"), folder.file("to.nc"));
    source(&from, Format::NetCdf4, b"m");
    let most = (0..)
        .find(|most| {
            copied(&from, &to, &kept(&small()), *most).map(drop).unwrap_err();
            kept_part(&to).is_some()
        })
        .unwrap();
    (from, to, most)
}

#[test]
fn what_another_copy_left_is_not_gone_on_with() {
    for change in ["definitions", "options", "list", "nothing"] {
        let folder = TempFolder::new("copy-resume-other");
        let (from, to, _) = broken_off(&folder);
        let mut options = completed(&small());
        match change {
            "definitions" => {
                std::fs::remove_file(&from).unwrap();
                source(&from, Format::NetCdf4, b"km");
            }
            "options" => options.contiguous = vec![zonda::copy::Pattern::new("chunked")],
            "list" => {
                std::fs::write(folder.file("to.nc.zonda-part-done"), "zonda copy\n/last\n").unwrap()
            }
            _ => {}
        }
        let done = copied(&from, &to, &options, usize::MAX).unwrap();
        let n = n_copied_before(&done);
        assert_eq!(n > 0, change == "nothing", "{change}: {n}");
        assert_eq!(left(&folder), ["from.nc", "to.nc"]);
        if change != "options" {
            assert_eq!(n_differences(&from, &to), 0, "{change}");
        }
    }
}

/// A list that a power cut left: its last line is none unless it is ended.
#[test]
fn a_line_that_was_not_written_to_its_end_counts_as_none() {
    let folder = TempFolder::new("copy-resume-cut");
    let (from, to, _) = broken_off(&folder);
    let list = folder.file("to.nc.zonda-part-done");
    let text = std::fs::read(&list).unwrap();
    std::fs::write(&list, &text[..text.len() - 1]).unwrap();
    let done = copied(&from, &to, &completed(&small()), usize::MAX).unwrap();
    let before = String::from_utf8(text).unwrap().lines().count() - 2;
    assert_eq!(n_copied_before(&done), before);
    assert_eq!(n_differences(&from, &to), 0);
}

/// The names are known beforehand: what somebody has put there is neither followed nor believed.
#[test]
fn links_in_the_place_of_part_and_list_are_not_followed() {
    let folder = TempFolder::new("copy-resume-links");
    let (from, to, most) = broken_off(&folder);
    let (part, list) = (folder.file("to.nc.zonda-part"), folder.file("to.nc.zonda-part-done"));
    let other = TempFolder::new("copy-resume-other");
    std::fs::rename(&part, other.file("part")).unwrap();
    std::os::unix::fs::symlink(other.file("part"), &part).unwrap();
    let before = std::fs::read(other.file("part")).unwrap();
    // A part that is a link counts as none, and the link goes.
    let again = copied(&from, &to, &completed(&small()), most.saturating_sub(1)).unwrap_err();
    assert_eq!(again.code(), NcError::System(4), "{again}");
    assert_eq!(left(&folder), ["from.nc"]);
    assert!(std::fs::read(other.file("part")).unwrap() == before);
    std::os::unix::fs::symlink(other.file("list"), &list).unwrap();
    let refused = copied(&from, &to, &completed(&small()), usize::MAX).unwrap_err();
    assert!(refused.to_string().contains("zonda-part-done"), "{refused}");
    assert!(!other.file("list").exists());
}

#[test]
fn two_do_not_copy_to_one_target() {
    let folder = TempFolder::new("copy-resume-two");
    let (from, to, most) = broken_off(&folder);
    let mut n = 0;
    let outer = copy(&from, &to, &completed(&small()), &mut |_| {
        n += 1;
        if n == 1 {
            let inner = copied(&from, &to, &completed(&small()), most).unwrap_err();
            assert_eq!(inner.code(), NcError::Access, "{inner}");
            assert!(inner.to_string().contains("another process copies to this target"));
        }
        ControlFlow::Continue(())
    });
    assert!(outer.is_ok());
    assert_eq!(n_differences(&from, &to), 0);
}

#[test]
fn what_cannot_be_completed_is_refused_or_copied_as_ever() {
    let folder = TempFolder::new("copy-resume-refused");
    let from = folder.file("from.nc");
    source(&from, Format::Cdf5, b"m");
    let salvage = CopyOptions { salvage: true, ..CopyOptions::default() };
    let long = folder.file(&"n".repeat(245));
    for (target, options) in [(folder.file("a.nc"), salvage), (long, CopyOptions::default())] {
        let refused = copied(&from, &target, &completed(&options), usize::MAX).unwrap_err();
        assert_eq!(refused.code(), NcError::Inval);
        assert!(refused.to_string().contains("cannot be resumed"), "{refused}");
        assert!(copied(&from, &target, &kept(&options), usize::MAX).is_ok());
    }
    assert_eq!(copied(&from, &from, &kept(&small()), 9).unwrap_err().code(), NcError::Inval);
    let there = folder.file("a.nc");
    assert_eq!(copied(&from, &there, &kept(&small()), 9).unwrap_err().code(), NcError::Exist);
    assert_eq!(left(&folder).len(), 3);
}

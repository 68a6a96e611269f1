//! Files that are damaged on purpose: what a check finds, and what a salvaged copy keeps.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use zonda::check::{Checked, Grade, check};
use zonda::copy::{Copied, CopyOptions, copy};
use zonda::diff::{DiffOptions, diff};
use zonda::{
    CreateOptions, Dataset, ExtType, FillMode, Format, Hyperslab, MemType, NcError, OpenOptions,
    Reserve, StorageRequest, VarRef, set_records,
};
use zonda_testkit::TempFolder;

const SHAPE: [usize; 2] = [8, 100];

fn values() -> Vec<f32> {
    (0..SHAPE[0] * SHAPE[1]).map(|i| (i % 13) as f32).collect()
}

/// A netCDF-4 file with `T`, deflated in chunks of one row each, and `S` in one run.
fn netcdf4(folder: &TempFolder) -> PathBuf {
    let path = folder.file("file.nc");
    let options = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
    let file = Dataset::create(&path, &options).unwrap();
    let dims = [file.def_dim(b"y", SHAPE[0]).unwrap().0, file.def_dim(b"x", SHAPE[1]).unwrap().0];
    let t: VarRef = file.def_var(b"T", ExtType::Float.nc_type(), &dims).unwrap().into();
    file.def_var_chunking(t, StorageRequest::Chunked, Some(&[1, SHAPE[1]])).unwrap();
    file.def_var_deflate(t, true, Some(4)).unwrap();
    file.def_var_fletcher32(t, true).unwrap();
    let s: VarRef = file.def_var(b"S", ExtType::Float.nc_type(), &dims).unwrap().into();
    put_att(&file, t, b"units", b"kelvin");
    file.enddef(Reserve::Default).unwrap();
    put(&file, t);
    put(&file, s);
    file.close().unwrap();
    path
}

/// A classic file with `a` of fixed size and `r` with records.
fn classic(folder: &TempFolder) -> PathBuf {
    let path = folder.file("classic.nc");
    let file = Dataset::create(&path, &CreateOptions::default()).unwrap();
    let (t, x) = (file.def_dim(b"t", 0).unwrap().0, file.def_dim(b"x", SHAPE[1]).unwrap().0);
    let y = file.def_dim(b"y", SHAPE[0]).unwrap().0;
    let a: VarRef = file.def_var(b"a", ExtType::Float.nc_type(), &[y, x]).unwrap().into();
    let r: VarRef = file.def_var(b"r", ExtType::Float.nc_type(), &[t, x]).unwrap().into();
    file.enddef(Reserve::Default).unwrap();
    put(&file, a);
    put(&file, r);
    file.close().unwrap();
    path
}

fn put(file: &Dataset, var: VarRef) {
    let bytes: Vec<u8> = values().iter().flat_map(|value| value.to_ne_bytes()).collect();
    let slab = Hyperslab { start: &[0, 0], count: &SHAPE, stride: None };
    file.put(var, &slab, Some(MemType::F32), &bytes).map(drop).unwrap();
}

fn put_att(file: &Dataset, owner: VarRef, name: &[u8], text: &[u8]) {
    let put = file.put_att(owner, name, ExtType::Char.nc_type(), text.len(), None, text);
    put.map(drop).unwrap();
}

fn open(path: &Path) -> Dataset {
    Dataset::open(path, &OpenOptions::default()).unwrap()
}

fn get(file: &Dataset, name: &[u8]) -> Vec<f32> {
    let var = file.meta(|meta| meta.find_var(name)).unwrap();
    let slab = Hyperslab { start: &[0, 0], count: &SHAPE, stride: None };
    let mut bytes = Vec::new();
    let got = file.get_list(var, &slab, Some(MemType::F32), (&mut bytes, None));
    got.map(drop).unwrap();
    bytes.as_chunks::<4>().0.iter().map(|four| f32::from_ne_bytes(*four)).collect()
}

fn checked(path: &Path) -> Checked {
    check(path, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn saved(source: &Path, target: &Path) -> Copied {
    let options = CopyOptions { salvage: true, replace: true, ..CopyOptions::default() };
    copy(source, target, &options, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Changes a byte of a file.
fn flip(path: &Path, at: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[usize::try_from(at).unwrap()] ^= 0x55;
    std::fs::write(path, bytes).unwrap();
}

/// A byte in the middle of the stored bytes of a row of `T`: all rows have about as many.
fn byte_of_row(path: &Path, row: u64) -> u64 {
    let usage = open(path).usage().unwrap();
    let chunks = usage.extents.iter().filter(|extent| extent.kind.name() == "chunks");
    let bytes: Vec<u64> = chunks.flat_map(|extent| extent.at..extent.end()).collect();
    bytes[usize::try_from((2 * row + 1) * bytes.len() as u64 / (2 * SHAPE[0] as u64)).unwrap()]
}

#[test]
fn sound_files_have_no_findings() {
    let folder = TempFolder::new("check-sound");
    for path in [netcdf4(&folder), classic(&folder)] {
        let checked = checked(&path);
        assert_eq!(checked.findings, [], "{}", path.display());
        assert_eq!((checked.worst(), checked.n_vars), (None, 2));
        assert_eq!(checked.data_bytes, 2 * 4 * (SHAPE[0] * SHAPE[1]) as u64);
        assert_eq!(checked.file_bytes, std::fs::metadata(&path).unwrap().len());
    }
    assert_eq!(checked(&netcdf4(&folder)).n_chunks, SHAPE[0] as u64);
}

#[test]
fn a_damaged_chunk_is_told_of_with_its_place() {
    let folder = TempFolder::new("check-chunk");
    let path = netcdf4(&folder);
    let (first, second) = (byte_of_row(&path, 2), byte_of_row(&path, 6));
    flip(&path, first);
    flip(&path, second);
    let checked = checked(&path);
    assert_eq!(checked.worst(), Some(Grade::Damage));
    assert_eq!(checked.findings.len(), 2, "{:?}", checked.findings);
    for (finding, (row, damaged)) in checked.findings.iter().zip([(2, first), (6, second)]) {
        assert_eq!(finding.object.as_deref(), Some("/T"));
        assert!(finding.what.contains(&format!("chunk [{row}, 0]")), "{finding:?}");
        // The chunk's first byte, not far before the damaged one.
        let at = finding.at.unwrap();
        assert!(at <= damaged && damaged - at < 400, "{finding:?} {damaged}");
    }

    let target = folder.file("saved.nc");
    let copied = saved(&path, &target);
    assert_eq!((copied.n_lost, copied.lost.len()), (2, 2));
    assert_eq!(copied.lost[0].path, "/T");
    assert_eq!(copied.lost[0].part, Some((vec![2, 0], vec![1, SHAPE[1] as u64])));
    let mut want = values();
    let fill = f32::from_bits(0x7CF0_0000);
    for row in [2, 6] {
        want[row * SHAPE[1]..(row + 1) * SHAPE[1]].fill(fill);
    }
    let file = open(&target);
    assert!(get(&file, b"T") == want);
    assert!(get(&file, b"S") == values());
    // What is saved is sound.
    assert_eq!(self::checked(&target).findings, []);
}

#[test]
fn every_flipped_byte_of_the_metadata_is_found_or_harmless() {
    let folder = TempFolder::new("check-metadata");
    let sound = netcdf4(&folder);
    let bytes = std::fs::read(&sound).unwrap();
    let usage = open(&sound).usage().unwrap();
    let is_metadata = |at: u64| {
        let inside = |extent: &&zonda::UsedExtent| (extent.at..extent.end()).contains(&at);
        usage.extents.iter().find(inside).is_some_and(|extent| !extent.kind.is_raw_data())
    };
    let path = folder.file("flipped.nc");
    let (mut found, mut tried, mut unnoticed) = (0, 0, Vec::new());
    for at in (0..bytes.len()).step_by(11).filter(|&at| is_metadata(at as u64)) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        std::fs::write(&path, &flipped).unwrap();
        tried += 1;
        let checked = checked(&path);
        // Damage of one of the first bytes makes it a file of no known format, which is reported and cannot be
        // checked.
        if checked.worst() >= Some(Grade::Unchecked) {
            found += 1;
        } else {
            let mut differences = 0;
            let go_on = &mut |_: &zonda::copy::Progress<'_>| ControlFlow::Continue(());
            let (a, b) = (open(&sound), open(&path));
            let told = &mut |_| differences += 1;
            let _ = diff(&a, &b, &DiffOptions::default(), told, go_on).unwrap();
            if differences > 0 {
                unnoticed.push(at);
            }
        }
        // Whatever is damaged, a copy succeeds with what it could save, or gives a reason.
        let options = CopyOptions { salvage: true, replace: true, ..CopyOptions::default() };
        let _ = copy(&path, &folder.file("saved.nc"), &options, &mut |_| ControlFlow::Continue(()));
    }
    // Bytes without a checksum: unused space in the B-tree of chunks, and numbers in it.
    assert!(tried > 100 && found > tried / 3, "{found} of {tried}");
    assert!(unnoticed.len() * 50 <= tried, "{unnoticed:?} of {tried}");
}

#[test]
fn short_files() {
    let folder = TempFolder::new("check-short");
    let path = netcdf4(&folder);
    let len = std::fs::metadata(&path).unwrap().len();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(len - 500).unwrap();
    assert_eq!(checked(&path).worst(), Some(Grade::Damage));
    // A file that is cut off at the end keeps what is at its beginning.
    let target = folder.file("saved.nc");
    let copied = saved(&path, &target);
    assert!(copied.n_lost > 0 && !copied.vars.is_empty(), "{copied:?}");
    for var in copied.vars.iter().filter(|var| var.n_lost == 0) {
        assert!(get(&open(&target), &var.path.as_bytes()[1..]) == values(), "{}", var.path);
    }

    // Three records of eight, and half a record more.
    let path = classic(&folder);
    let record = 4 * SHAPE[1] as u64;
    let len = std::fs::metadata(&path).unwrap().len() - 5 * record + record / 2;
    std::fs::File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
    let checked = checked(&path);
    let [finding] = &checked.findings[..] else { panic!("{:?}", checked.findings) };
    assert_eq!((finding.object.as_deref(), finding.at), (Some("/r"), Some(len)));
    assert!(finding.what.ends_with("complete up to record 3"), "{finding:?}");
    let target = folder.file("saved.nc");
    let copied = saved(&path, &target);
    // Half of the fourth record is there.
    let half = SHAPE[1] / 2;
    let r = copied.vars.iter().find(|var| var.path == "/r").unwrap();
    assert_eq!((r.n_elems, r.n_lost), (8 * SHAPE[1] as u64, (4 * SHAPE[1] + half) as u64));
    assert!(copied.lost.iter().any(|lost| lost.part == Some((vec![3, 50], vec![1, 50]))));
    let mut want = values();
    want[3 * SHAPE[1] + half..].fill(f32::from_bits(0x7CF0_0000));
    assert!(get(&open(&target), b"r") == want);
    assert!(get(&open(&target), b"a") == values());
    assert_eq!(set_records(&path).unwrap(), Some((8, 3)));
    assert_eq!(self::checked(&path).findings, []);
}

#[test]
fn records_that_the_header_does_not_know() {
    let folder = TempFolder::new("check-records");
    let path = classic(&folder);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4..8].copy_from_slice(&2u32.to_be_bytes());
    std::fs::write(&path, bytes).unwrap();
    let checked = checked(&path);
    assert_eq!(checked.worst(), Some(Grade::Remark));
    assert!(checked.findings[0].what.contains("6 more records"), "{:?}", checked.findings);
    assert_eq!(set_records(&path).unwrap(), Some((2, 8)));
    assert_eq!(get(&open(&path), b"r"), values());
    let refused = set_records(&netcdf4(&folder)).unwrap_err();
    assert_eq!(refused.code(), NcError::NotNc3);
}

#[test]
fn what_is_no_netcdf_cannot_be_judged_and_what_is_not_there_is_an_error() {
    let folder = TempFolder::new("check-other");
    let path = folder.file("text");
    std::fs::write(&path, "no netCDF").unwrap();
    let checked = checked(&path);
    assert_eq!((checked.format, checked.worst()), (None, Some(Grade::Unchecked)));
    let go_on = &mut |_: &zonda::copy::Progress<'_>| ControlFlow::Continue(());
    assert_eq!(check(&folder.file("missing"), go_on).unwrap_err().code(), NcError::System(2));
    let stop = &mut |_: &zonda::copy::Progress<'_>| ControlFlow::Break(());
    assert_eq!(check(&classic(&folder), stop).unwrap_err().code(), NcError::System(4));
}

/// Files of other programs: what is found in them, its grade, and that no check takes long.
#[test]
fn sound_files_of_others() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/files");
    for name in ["fsm_aggr_persist.h5", "paged_nopersist.h5", "tlayouto.h5"] {
        let checked = checked(&corpus.join(name));
        assert_eq!(checked.findings, [], "{name}");
    }
    let plain = Path::new(env!("CARGO_MANIFEST_DIR")).join("../zonda-nc4/tests/data/plain.h5");
    let checked = checked(&plain);
    let of = |grade| checked.findings.iter().filter(move |finding| finding.grade == grade);
    let line =
        of(Grade::Unrepresentable).find(|finding| finding.object.as_deref() == Some("/line"));
    assert!(line.is_some_and(|finding| finding.what.contains("matrix")), "{:?}", checked.findings);
    assert_eq!(of(Grade::Damage).count(), 0, "{:?}", checked.findings);
}

/// An array of 10^18 elements of which one chunk was written: the time depends on that chunk only.
#[test]
fn work_is_bounded_by_what_is_there() {
    let folder = TempFolder::new("check-sparse");
    let path = folder.file("sparse.nc");
    let options = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
    let file = Dataset::create(&path, &options).unwrap();
    let dims = [
        file.def_dim(b"y", 1_000_000_000).unwrap().0,
        file.def_dim(b"x", 1_000_000_000).unwrap().0,
    ];
    let t: VarRef = file.def_var(b"T", ExtType::Float.nc_type(), &dims).unwrap().into();
    file.def_var_chunking(t, StorageRequest::Chunked, Some(&[10, 10])).unwrap();
    file.def_var_deflate(t, true, Some(4)).unwrap();
    file.enddef(Reserve::Default).unwrap();
    let slab = Hyperslab { start: &[500_000_005, 77], count: &[1, 1], stride: None };
    let put = file.put(t, &slab, Some(MemType::F32), &[0, 0, 0x80, 0x3f]);
    put.map(drop).unwrap();
    file.close().unwrap();
    let begun = std::time::Instant::now();
    let checked = checked(&path);
    assert_eq!((checked.findings.len(), checked.n_chunks), (0, 1), "{:?}", checked.findings);
    let go_on = &mut |_: &zonda::copy::Progress<'_>| ControlFlow::Continue(());
    let targets = ["plain.nc", "other.nc", "saved.nc"].map(|name| folder.file(name));
    copy(&path, &targets[0], &CopyOptions::default(), go_on).unwrap();
    // Other filters, so that values are copied and not stored chunks.
    let filters = vec![zonda::copy::FilterRule { vars: Vec::new(), filters: Vec::new() }];
    let other = CopyOptions { filters, ..CopyOptions::default() };
    copy(&path, &targets[1], &other, go_on).unwrap();
    assert_eq!(saved(&path, &targets[2]).n_lost, 0);
    for target in &targets {
        let mut differences = 0;
        let (a, b) = (open(&path), open(target));
        diff(&a, &b, &DiffOptions::default(), &mut |_| differences += 1, go_on).unwrap();
        assert_eq!(differences, 0, "{}", target.display());
        // A box of elements around the chunk that exists.
        assert!(std::fs::metadata(target).unwrap().len() < 32 << 20, "{}", target.display());
    }
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

/// A classic file of 64 GiB in which a few bytes were written: a check reads the blocks that have them. Holes have nothing to be
/// read, and through the system's cache they take as much memory, and on a busy machine minutes.
#[test]
fn holes_of_classic_files_are_not_read() {
    let folder = TempFolder::new("check-holes");
    let path = folder.file("holes.nc");
    let options = CreateOptions { format: Format::Cdf5, ..CreateOptions::default() };
    let file = Dataset::create(&path, &options).unwrap();
    file.set_fill(FillMode::NoFill).unwrap();
    let x = file.def_dim(b"x", 1 << 33).unwrap().0;
    let var: VarRef = file.def_var(b"v", ExtType::Double.nc_type(), &[x]).unwrap().into();
    file.enddef(Reserve::Default).unwrap();
    for start in [1 << 20, 1 << 32, (1 << 33) - 1] {
        let slab = Hyperslab { start: &[start], count: &[1], stride: None };
        file.put(var, &slab, Some(MemType::F64), &1f64.to_ne_bytes()).map(drop).unwrap();
    }
    file.close().unwrap();
    let mut n_blocks = 0;
    // Each block is reported; one that reads holes has some eight thousand.
    let checked = check(&path, &mut |_| {
        n_blocks += 1;
        if n_blocks > 100 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert_eq!((&checked.findings, checked.worst()), (&Vec::new(), None));
    assert!((3..10).contains(&n_blocks), "{n_blocks} blocks");
}

//! Data that move because a classic header grew, on a file system in memory: in place where nobody can see it, copied else.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use common::{get, put};
use tempfile::TempDir;
use zonda::{CreateOptions, Dataset, ExtType, FillMode, MemType, OpenOptions, Reserve, VarId};

const LEN: usize = 300_000;

/// A folder in memory.
fn folder() -> Option<TempDir> {
    let made = tempfile::tempdir_in("/dev/shm");
    if let Err(why) = &made {
        eprintln!("skipped: /dev/shm: {why}");
    }
    made.ok()
}

fn values() -> Vec<f64> {
    (0..LEN).map(|i| i as f64 + 0.25).collect()
}

/// A file with two variables, of which one stays a hole unless it is `full`.
fn make(path: &Path, full: bool) {
    let file = Dataset::create(path, &CreateOptions::default()).expect("create");
    file.set_fill(FillMode::NoFill).expect("set_fill");
    let x = file.def_dim(b"x", LEN).expect("def_dim");
    for name in [b"a", b"b"] {
        file.def_var(name, ExtType::Double.nc_type(), &[x.0]).expect("def_var");
    }
    file.enddef(Reserve::Default).expect("enddef");
    put(&file, VarId(1), &[0], &[LEN], &values()).expect("put");
    if full {
        put(&file, VarId(0), &[0], &[LEN], &values()).expect("put");
    }
    file.close().expect("close");
}

/// Has the data of the file move. Whether it is another file then.
fn grow(path: &Path) -> bool {
    let before = fs::metadata(path).unwrap().ino();
    let file = Dataset::open(path, &OpenOptions { write: true, ..OpenOptions::default() });
    let file = file.expect("open");
    file.redef().expect("redef");
    let text = vec![b'x'; 20_000];
    let kind = ExtType::Char.nc_type();
    let put = file.put_att(VarId::GLOBAL, b"history", kind, text.len(), Some(MemType::Text), &text);
    assert_eq!(put.expect("put_att").out_of_range, 0);
    file.enddef(Reserve::Default).expect("enddef");
    file.close().expect("close");
    fs::metadata(path).unwrap().ino() != before
}

fn check(file: &Dataset) {
    assert_eq!(get(file, VarId(1), &[0], &[LEN]).expect("get"), values());
}

fn open(path: &Path) -> Dataset {
    Dataset::open(path, &OpenOptions::default()).expect("open")
}

#[test]
fn a_file_that_nobody_else_has_open_stays_the_same_file() {
    let Some(folder) = folder() else { return };
    let path = folder.path().join("x.nc");
    make(&path, true);
    assert!(!grow(&path), "it was copied");
    check(&open(&path));
}

#[test]
fn a_reader_keeps_what_he_has_open() {
    let Some(folder) = folder() else { return };
    let path = folder.path().join("x.nc");
    make(&path, true);
    let reader = open(&path);
    assert!(grow(&path), "it moved under the reader");
    check(&reader);
    check(&open(&path));
}

#[test]
fn holes_stay_holes() {
    let Some(folder) = folder() else { return };
    let path = folder.path().join("x.nc");
    make(&path, false);
    assert!(grow(&path), "it was moved");
    let taken = fs::metadata(&path).unwrap().blocks() * 512;
    assert!(taken < 12 * LEN as u64, "{taken} bytes for one variable of two");
    check(&open(&path));
}

#[test]
fn where_no_journal_can_be_it_is_copied() {
    let Some(folder) = folder() else { return };
    // With the name of the copy it has 255 bytes, with that of the journal 258.
    let path = folder.path().join("n".repeat(244));
    make(&path, true);
    assert!(grow(&path), "it moved without a journal");
    check(&open(&path));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Also on a disk, where only a tenth of the file moves.
#[test]
fn a_reader_keeps_records_that_move() {
    const N: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.nc");
    let file = Dataset::create(&path, &CreateOptions::default()).expect("create");
    let x = file.def_dim(b"x", LEN).expect("def_dim");
    let time = file.def_dim(b"time", 0).expect("def_dim");
    let double = ExtType::Double.nc_type();
    file.def_var(b"fixed", double, &[x.0]).expect("def_var");
    let records = file.def_var(b"records", double, &[time.0]).expect("def_var");
    file.enddef(Reserve::Default).expect("enddef");
    put(&file, VarId(0), &[0], &[LEN], &values()).expect("put");
    let own: Vec<f64> = (0..N).map(|i| i as f64).collect();
    put(&file, records, &[0], &[N], &own).expect("put");
    file.close().expect("close");
    drop(file);
    let grow = |name: &[u8]| {
        let before = fs::metadata(&path).unwrap().ino();
        let options = OpenOptions { write: true, ..OpenOptions::default() };
        let file = Dataset::open(&path, &options).expect("open");
        file.redef().expect("redef");
        file.def_var(name, double, &[time.0]).expect("def_var");
        file.enddef(Reserve::Default).expect("enddef");
        file.close().expect("close");
        fs::metadata(&path).unwrap().ino() != before
    };
    assert!(!grow(b"first"), "nobody reads it: little of it moves in place");
    let reader = open(&path);
    assert!(grow(b"second"), "records moved under the reader");
    for file in [&reader, &open(&path)] {
        assert_eq!(get(file, records, &[0], &[N]).expect("get"), own);
    }
}

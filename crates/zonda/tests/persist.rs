//! Datasets in memory that are written to their path when they are closed.

use std::fs;

use zonda::{CreateOptions, Dataset, NcError, OpenOptions, Persist, Reserve};
use zonda_testkit::TempFolder;

fn options(exclusive: bool) -> CreateOptions {
    CreateOptions { exclusive, in_memory: Some(Persist::Yes), ..CreateOptions::default() }
}

#[test]
fn a_file_keeps_its_content_until_close() {
    let folder = TempFolder::new("persist");
    let path = folder.path().join("there.nc");
    fs::write(&path, b"what was there").expect("write");
    let file = Dataset::create(&path, &options(false)).expect("create");
    file.def_dim(b"x", 3).expect("def_dim");
    file.enddef(Reserve::Default).expect("enddef");
    assert_eq!(fs::read(&path).expect("read"), b"what was there");
    file.close().expect("close");
    let file = Dataset::open(&path, &OpenOptions::default()).expect("open");
    assert_eq!(file.meta(|meta| meta.n_dims()), 1);
    file.close().expect("close");
}

#[test]
fn an_aborted_creation_leaves_things_as_they_were() {
    let folder = TempFolder::new("persist");
    let there = folder.path().join("there.nc");
    fs::write(&there, b"what was there").expect("write");
    Dataset::create(&there, &options(false)).expect("create").abort().expect("abort");
    assert_eq!(fs::read(&there).expect("read"), b"what was there");
    for exclusive in [false, true] {
        let absent = folder.path().join("absent.nc");
        let file = Dataset::create(&absent, &options(exclusive)).expect("create");
        file.abort().expect("abort");
        assert!(!absent.exists());
    }
}

#[test]
fn what_cannot_be_written_is_refused_at_once() {
    let folder = TempFolder::new("persist");
    let there = folder.path().join("there.nc");
    fs::write(&there, b"what was there").expect("write");
    let code = |path: &std::path::Path, exclusive| {
        Dataset::create(path, &options(exclusive)).expect_err("refused").code()
    };
    assert_eq!(code(&there, true), NcError::Exist);
    assert_eq!(code(&folder.path().join("no/folder.nc"), false), NcError::System(2));
    assert_eq!(code(folder.path(), false), NcError::System(21));
    assert_eq!(fs::read(&there).expect("read"), b"what was there");
}

#[test]
fn what_its_path_does_not_take_can_be_closed_again() {
    let folder = TempFolder::new("persist");
    let path = folder.path().join("away/there.nc");
    fs::create_dir(folder.path().join("away")).expect("folder");
    let file = Dataset::create(&path, &options(false)).expect("create");
    file.def_dim(b"x", 3).expect("def_dim");
    file.enddef(Reserve::Default).expect("enddef");
    fs::remove_dir_all(folder.path().join("away")).expect("remove");
    for _ in 0..2 {
        assert_eq!(file.close().expect_err("refused").code(), NcError::System(2));
        assert!(file.is_open(), "it can be closed again");
    }
    fs::create_dir(folder.path().join("away")).expect("folder");
    file.close().expect("close");
    assert!(!file.is_open());
    assert_eq!(file.close().expect_err("ended").code(), NcError::BadId);
    let file = Dataset::open(&path, &OpenOptions::default()).expect("open");
    assert_eq!(file.meta(|meta| meta.n_dims()), 1);
    file.close().expect("close");
}

//! The DDS and DAS files of the source package `libdap`: `ZONDA_LIBDAP` is its folder. Each is read, and written back, or refused with a reason.

use std::fs;
use std::path::{Path, PathBuf};

use zonda_dap::DapError;
use zonda_dap::dap2::das::Set;
use zonda_dap::dap2::dds::Dds;

/// All files whose names end so, in all folders.
fn files(folder: &Path, ending: &str, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, ending, out);
        } else if path.extension().is_some_and(|found| found == ending) {
            out.push(path);
        }
    }
}

/// Reads all files with `read`, which gives what they say once more; counts and refusals.
fn check(ending: &str, read: impl Fn(&[u8]) -> Result<bool, DapError>) {
    let Some(folder) = std::env::var_os("ZONDA_LIBDAP") else {
        eprintln!("skip: ZONDA_LIBDAP is not set");
        return;
    };
    let mut paths = Vec::new();
    files(Path::new(&folder), ending, &mut paths);
    let mut n_read = 0;
    for path in &paths {
        match read(&fs::read(path).unwrap()) {
            Ok(is_same) => {
                assert!(is_same, "{}", path.display());
                n_read += 1;
            }
            Err(error) => {
                // A reason says where, and what; or it is the server's own.
                let shown = error.to_string();
                assert!(
                    shown.contains(", byte ") || shown.contains("the server says"),
                    "{}: {shown}",
                    path.display()
                );
                eprintln!("refused: {}: {shown}", path.file_name().unwrap().display());
            }
        }
    }
    eprintln!("{ending}: {n_read} of {} files are read", paths.len());
    assert!(n_read * 2 > paths.len());
}

#[test]
fn each_dds_is_read_or_refused() {
    check("dds", |bytes| {
        let dds = Dds::decode(bytes)?;
        Ok(Dds::decode(dds.encode().as_bytes())? == dds)
    });
}

#[test]
fn each_das_is_read_or_refused() {
    check("das", |bytes| {
        let das = Set::decode(bytes)?;
        Ok(Set::decode(&das.encode())? == das)
    });
}

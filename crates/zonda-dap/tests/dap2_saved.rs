//! All DAP2 responses of the reference's source package: `ZONDA_DAP_DATA` is the folder of that source. Without it, those in `tests/data`.

use std::fs;
use std::path::{Path, PathBuf};

use zonda_dap::DapError;
use zonda_dap::dap2::body::Body;
use zonda_dap::dap2::das::Set;
use zonda_dap::dap2::dds::Dds;
use zonda_dap::dap2::encode::Encoder;

/// Files with this ending; a line says where they are.
fn files(ending: &str) -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dap2");
    let folder = match std::env::var_os("ZONDA_DAP_DATA") {
        Some(folder) => Path::new(&folder).join("ncdap_test/testdata3"),
        None => own,
    };
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == ending));
    files.sort();
    eprintln!("{} files of {} in {}", files.len(), ending, folder.display());
    assert!(!files.is_empty());
    files
}

fn again(bytes: &[u8]) -> Result<Vec<u8>, DapError> {
    let mut rest = bytes;
    let body = Body::open(&mut rest)?;
    let dds = body.dds().clone();
    let mut out = Vec::new();
    body.values(&mut Encoder::new(&dds, &mut out)?)?;
    Ok(out)
}

/// Where the values begin.
fn values(bytes: &[u8]) -> usize {
    let line = bytes.windows(6).position(|line| line == b"Data:\n");
    line.map_or_else(
        || bytes.windows(7).position(|line| line == b"Data:\r\n").unwrap() + 7,
        |at| at + 6,
    )
}

#[test]
fn each_dds_is_read_and_written() {
    for path in files("dds") {
        let text = fs::read(&path).unwrap();
        let dds = Dds::decode(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(Dds::decode(dds.encode().as_bytes()).unwrap(), dds, "{}", path.display());
    }
}

#[test]
fn each_das_is_read_and_written() {
    for path in files("das") {
        let text = fs::read(&path).unwrap();
        let das = Set::decode(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(Set::decode(&das.encode()).unwrap(), das, "{}", path.display());
    }
}

/// A response without values, which the reference refuses, too.
const WITHOUT_VALUES: &str = "synth9.dods";

fn bodies() -> Vec<(PathBuf, Vec<u8>)> {
    let all = files("dods").into_iter().filter(|path| !path.ends_with(WITHOUT_VALUES));
    all.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

#[test]
fn each_body_is_read_and_written_byte_by_byte() {
    let (mut n_bodies, mut n_same) = (0, 0);
    for (path, bytes) in bodies() {
        let written = again(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (old, new) = (&bytes[values(&bytes)..], &written[values(&written)..]);
        n_bodies += 1;
        n_same += usize::from(old.strip_suffix(b"\n").unwrap_or(old) == new || old == new);
        // Some servers fill words with other bytes, or give numbers without a sign one: the values are the same then.
        assert_eq!(old.len() / 4, new.len() / 4, "{}", path.display());
        assert_eq!(again(&written).unwrap(), written, "{}", path.display());
        let (mut one, mut other) = (&bytes[..], &written[..]);
        let (one, other) = (Body::open(&mut one).unwrap(), Body::open(&mut other).unwrap());
        assert_eq!(one.dds(), other.dds(), "{}", path.display());
    }
    eprintln!("{n_same} of {n_bodies} bodies are written with the same bytes");
    assert!(n_same * 10 >= n_bodies * 9 || std::env::var_os("ZONDA_DAP_DATA").is_none());
}

#[test]
fn each_body_with_more_bytes_is_an_error() {
    for (_, bytes) in bodies() {
        for more in [&b"\0"[..], b"\0\0\0\0", b"\n\n", b"Dataset"] {
            again(&[&bytes, more].concat()).unwrap_err();
        }
    }
}

#[test]
fn each_body_cut_anywhere_is_an_error() {
    // Each byte of small ones; of large ones the first and the last, and a sample of what is between them.
    const WHOLE: usize = 800;
    let mut n_cuts = 0;
    for (path, mut bytes) in bodies() {
        if bytes.len() % 4 != values(&bytes) % 4 {
            // The end of a line behind the values.
            bytes.pop();
        }
        let near =
            |at: usize| at < WHOLE / 8 || at + WHOLE / 8 > bytes.len() || at.is_multiple_of(2003);
        for len in (0..bytes.len()).filter(|at| bytes.len() < WHOLE || near(*at)) {
            let Err(error) = again(&bytes[..len]) else {
                panic!("{} cut to {len}", path.display())
            };
            assert!(matches!(error, DapError::Malformed { .. }), "{}: {error}", path.display());
            n_cuts += 1;
        }
    }
    eprintln!("{n_cuts} cuts");
}

//! Saved responses of DAP4: those in `tests/data`, and where `ZONDA_DAP_DATA` names the tests of netCDF-C, all in its folder `dap4_test`.

use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zonda_dap::dap4::dmr::Dmr;
use zonda_dap::dap4::{Dap4, open};
use zonda_dap::{Asked, DapError, Part, Protocol, Request, Server, Sink};
use zonda_format::OwnedValues;
use zonda_storage::{RemoteFailure, StorageError};

/// Saved responses by the begin of their name.
#[derive(Debug)]
struct Saved(PathBuf);

impl Server for Saved {
    fn ask(&self, request: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        let name = format!("{}{}", self.0.display(), request.extension);
        let bytes = fs::read(&name).map_err(|error| StorageError::Remote {
            url: name.into(),
            range: None,
            kind: RemoteFailure::NotFound,
            what: error.to_string().into(),
        })?;
        Ok(Box::new(Cursor::new(bytes)))
    }

    fn heeds_constraints(&self) -> bool {
        false
    }

    fn parallel(&self) -> usize {
        1
    }
}

/// What came, by part.
#[derive(Debug, Default, PartialEq)]
struct Came(Vec<(usize, OwnedValues)>);

impl Sink for Came {
    fn plain(&mut self, part: usize, elements: &[u8]) -> Result<(), DapError> {
        self.owned(part, OwnedValues::plain(elements))
    }

    fn owned(&mut self, part: usize, elements: OwnedValues) -> Result<(), DapError> {
        self.0.push((part, elements));
        Ok(())
    }
}

fn files(ending: &str) -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dap4")];
    if let Some(data) = std::env::var_os("ZONDA_DAP_DATA") {
        for folder in ["daptestfiles", "dmrtestfiles", "misctestfiles"] {
            folders.push(Path::new(&data).join("dap4_test").join(folder));
        }
    }
    let mut files = Vec::new();
    for folder in folders {
        let Ok(inside) = fs::read_dir(&folder) else { continue };
        files.extend(inside.map(|entry| entry.unwrap().path()));
    }
    files.retain(|path| path.to_string_lossy().ends_with(ending));
    files.sort();
    assert!(!files.is_empty(), "no {ending}");
    files
}

fn opened(path: &Path, server: &Arc<dyn Server>) -> Dap4 {
    open(server, &Asked::default()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All values of all variables out of a body.
fn read(dataset: &Dap4, body: &[u8]) -> Result<Came, DapError> {
    let model = dataset.model();
    let shapes: Vec<Vec<u64>> = model
        .vars
        .iter()
        .map(|var| var.dims.iter().map(|dim| model.dims[*dim].len).collect())
        .collect();
    let (zeros, ones) = (vec![0; 32], vec![1; 32]);
    let parts = shapes.iter().enumerate().map(|(var, count)| Part {
        var,
        start: &zeros[..count.len()],
        count,
        stride: &ones[..count.len()],
    });
    let parts: Vec<_> = parts.filter(|part| !part.count.contains(&0)).collect();
    let mut came = Came::default();
    dataset.read(&parts, &mut Cursor::new(body), &mut came)?;
    Ok(came)
}

#[test]
fn metadata_come_back() {
    for path in files(".dmr") {
        let dmr = Dmr::parse(&fs::read(&path).unwrap()).unwrap();
        let written = dmr.write();
        assert_eq!(Dmr::parse(written.as_bytes()).unwrap(), dmr, "{}", path.display());
        opened(&path, &server(&path));
    }
}

fn server(path: &Path) -> Arc<dyn Server> {
    Arc::new(Saved(path.with_extension("")))
}

#[test]
fn bodies_are_read() {
    for path in files(".dap") {
        let dataset = opened(&path, &server(&path));
        let came = read(&dataset, &fs::read(&path).unwrap());
        let came = came.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!came.0.is_empty(), "{}", path.display());
    }
}

#[test]
fn a_body_cut_anywhere_is_an_error() {
    for path in files(".dap") {
        let dataset = opened(&path, &server(&path));
        let mut body = fs::read(&path).unwrap();
        if path.ends_with("test_fillmismatch.nc.dap") {
            // An editor ended it with the end of a line.
            body.pop();
        }
        let step = if body.len() > 4096 { 97 } else { 1 };
        for len in (0..body.len()).step_by(step) {
            assert!(read(&dataset, &body[..len]).is_err(), "{} cut at {len}", path.display());
        }
        let longer = [&body[..], b"x"].concat();
        assert!(read(&dataset, &longer).is_err(), "{}", path.display());
    }
}

#[test]
fn a_flipped_bit_is_found() {
    for path in files(".dap") {
        let dataset = opened(&path, &server(&path));
        let body = fs::read(&path).unwrap();
        let begin =
            4 + (usize::from(body[1]) << 16 | usize::from(body[2]) << 8 | usize::from(body[3]));
        let right = read(&dataset, &body).unwrap();
        let step = if body.len() > 4096 { 97 } else { 1 };
        for at in (begin..body.len()).step_by(step) {
            let mut wrong = body.clone();
            wrong[at] ^= 1 << (at % 8);
            let came = read(&dataset, &wrong);
            // In the flags of a chunk a bit may be without a meaning.
            assert!(came.is_err() || came.unwrap() == right, "{} at {at}", path.display());
        }
    }
}

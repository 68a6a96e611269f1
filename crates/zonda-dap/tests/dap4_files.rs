//! Saved responses of DAP4: those in `tests/data`, and where `ZONDA_DAP_DATA` names the tests of netCDF-C, all in its folder `dap4_test`.

use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zonda_dap::dap4::dmr::{Dmr, Group};
use zonda_dap::dap4::{BodyWriter, Dap4, Form, open};
use zonda_dap::{Asked, DapError, Model, Part, Protocol, Request, Server, Sink, Var};
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
            status: None,
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

/// Flags of the first chunk, and the bytes of all others.
fn payload(body: &[u8]) -> (u8, Vec<u8>) {
    let (mut rest, mut bytes, mut n) = (body, Vec::new(), 0);
    while let [_, a, b, c, after @ ..] = rest {
        let len = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        if n > 0 {
            bytes.extend(&after[..len]);
        }
        rest = &after[len..];
        n += 1;
    }
    (body[0], bytes)
}

/// Variables in the order of their values, by their places in the model.
fn in_order(dmr: &Group, path: &str, model: &Model, to: &mut Vec<usize>) {
    let path_of = |group: usize| {
        let mut path = String::new();
        let mut group = &model.groups[group];
        while let Some(parent) = group.parent {
            path = format!("/{}{path}", group.name);
            group = &model.groups[parent];
        }
        path
    };
    for var in &dmr.vars {
        let is_it = |of: &Var| of.name == var.name && path_of(of.group) == path;
        to.push(model.vars.iter().position(is_it).unwrap());
    }
    for group in &dmr.groups {
        in_order(group, &format!("{path}/{}", group.name), model, to);
    }
}

#[test]
fn bodies_are_written_as_they_were() {
    let mut compared = 0;
    for path in files(".dap") {
        let body = fs::read(&path).unwrap();
        let (flags, bytes) = payload(body.strip_suffix(b"\n").unwrap_or(&body));
        let dataset = opened(&path, &server(&path));
        let len = usize::from(body[2]) << 8 | usize::from(body[3]);
        let dmr = Dmr::parse(&body[4..4 + len]).unwrap();
        let came = read(&dataset, &body).unwrap();
        let mut order = Vec::new();
        in_order(&dmr.root, "", dataset.model(), &mut order);
        let form = Form { little_endian: flags & 4 != 0, checksums: flags & 8 == 0, chunk: 1000 };
        let mut writer = BodyWriter::begin(Vec::new(), &dmr, form).unwrap();
        for var in order {
            let (_, values) = came.0.iter().find(|(part, _)| *part == var).unwrap();
            writer.variable(values).unwrap();
        }
        let written = writer.end().unwrap();
        assert_eq!(read(&dataset, &written).unwrap(), came, "{}", path.display());
        // Opaques became as long as their type.
        if !dmr.write().contains("<Opaque") {
            assert_eq!(payload(&written).1, bytes, "{}", path.display());
            compared += 1;
        }
    }
    assert!(compared >= 4, "{compared}");
}

fn below(folder: &Path, to: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, to);
        } else {
            to.push(path);
        }
    }
}

/// A DMR and nothing else.
#[derive(Debug)]
struct Alone(Vec<u8>);

impl Server for Alone {
    fn ask(&self, _: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        Ok(Box::new(Cursor::new(self.0.clone())))
    }

    fn heeds_constraints(&self) -> bool {
        true
    }

    fn parallel(&self) -> usize {
        1
    }
}

/// Where `ZONDA_LIBDAP` names the sources of libdap: each DMR of its tests is read and written back, or refused with a reason. Says which with `--nocapture`.
#[test]
fn metadata_of_libdap() {
    let Some(folder) = std::env::var_os("ZONDA_LIBDAP") else { return };
    let mut all = Vec::new();
    below(Path::new(&folder), &mut all);
    all.sort();
    let (mut parsed, mut opened, mut refused) = (0, 0, 0);
    for path in all {
        let bytes = fs::read(&path).unwrap();
        let is_dmr = bytes.windows(8).any(|window| window == b"<Dataset")
            && [b"DAP/4.0", b"dmrVers"]
                .iter()
                .any(|word| bytes.windows(7).any(|window| window == *word));
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !is_dmr || ![".xml", ".dmr", ".dmrpp"].iter().any(|end| name.ends_with(end)) {
            continue;
        }
        match Dmr::parse(&bytes) {
            Ok(dmr) => {
                parsed += 1;
                assert_eq!(Dmr::parse(dmr.write().as_bytes()).unwrap(), dmr, "{name}");
                let server: Arc<dyn Server> = Arc::new(Alone(bytes));
                match open(&server, &Asked::default()) {
                    Ok(_) => opened += 1,
                    Err(error) => eprintln!("{name} parses, but: {error}"),
                }
            }
            Err(error) => {
                refused += 1;
                eprintln!("{name}: {error}");
            }
        }
    }
    eprintln!("{parsed} parse, of which {opened} open; {refused} are refused");
    assert!(parsed > 0);
}

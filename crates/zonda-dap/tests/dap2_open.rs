//! Saved DAP2 responses, opened: their definitions are those that the reference's own dumps show, and their values are read whole.
//! `ZONDA_DAP_DATA` is the folder of the reference's source; without it, the files in `tests/data` are opened.

use std::fmt::Write;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zonda_dap::dap2::{Dap2, open};
use zonda_dap::{Asked, DapError, Part, Protocol, Request, Server, Sink};
use zonda_format::OwnedValues;
use zonda_storage::StorageError;

#[derive(Debug)]
struct Saved(PathBuf);

impl Server for Saved {
    fn ask(&self, request: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        assert_eq!(request.query, "");
        let mut path = self.0.clone().into_os_string();
        path.push(request.extension);
        match File::open(&path) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(StorageError::Open {
                path: Path::new(&path).into(),
                errno: error.raw_os_error().unwrap(),
            }),
        }
    }

    fn heeds_constraints(&self) -> bool {
        false
    }

    fn parallel(&self) -> usize {
        1
    }
}

fn opened(path: &Path, settings: &[(&str, &str)]) -> Result<Dap2, DapError> {
    let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let server: Arc<dyn Server> = Arc::new(Saved(path.to_owned()));
    open(&server, &Asked { constraint: String::new(), settings })
}

/// Definitions as a dump shows them, but for values of attributes.
fn shown(dataset: &Dap2) -> String {
    const TYPES: [&str; 7] = ["", "byte", "char", "short", "int", "float", "double"];
    let model = dataset.model();
    let mut out = String::new();
    for dim in &model.dims {
        match dim.is_unlimited {
            true => writeln!(out, "{} = UNLIMITED ; // ({} currently)", dim.name, dim.len).unwrap(),
            false => writeln!(out, "{} = {} ;", dim.name, dim.len).unwrap(),
        }
    }
    for var in &model.vars {
        let dims: Vec<&str> = var.dims.iter().map(|dim| model.dims[*dim].name.as_str()).collect();
        let dims = if dims.is_empty() { String::new() } else { format!("({})", dims.join(", ")) };
        writeln!(out, "{} {}{dims} ;", TYPES[usize::try_from(var.nc_type).unwrap()], var.name)
            .unwrap();
        for att in &var.atts {
            writeln!(out, "{}:{} =", var.name, att.name).unwrap();
        }
    }
    for att in &model.groups[0].atts {
        writeln!(out, ":{} =", att.name).unwrap();
    }
    out
}

/// The same lines of a dump.
fn expected(dump: &str) -> String {
    let mut out = String::new();
    let header = dump.split("\ndata:").next().unwrap();
    // Backslashes are for the shell of CDL.
    for line in header.lines().map(|line| line.trim().replace('\\', "")) {
        let attribute =
            line.split(" = ").next().filter(|name| name.contains(':') && !name.contains('"'));
        let is_type = ["byte ", "char ", "short ", "int ", "float ", "double "]
            .iter()
            .any(|word| line.starts_with(word));
        let is_dim = line.contains(" = ") && (line.ends_with(" ;") || line.ends_with("currently)"));
        if line.starts_with('"') {
            // The next line of a text.
        } else if is_type {
            writeln!(out, "{line}").unwrap();
        } else if let Some(name) = attribute.filter(|_| line.contains(" = ")) {
            writeln!(out, "{name} =").unwrap();
        } else if is_dim && attribute.is_none() && !line.contains('"') && !line.contains(',') {
            writeln!(out, "{line}").unwrap();
        }
    }
    out
}

#[derive(Default)]
struct Taken(Vec<Vec<u8>>);

impl Sink for Taken {
    fn plain(&mut self, part: usize, elements: &[u8]) -> Result<(), DapError> {
        if self.0.len() <= part {
            self.0.resize(part + 1, Vec::new());
        }
        self.0[part].extend_from_slice(elements);
        Ok(())
    }

    fn owned(&mut self, _part: usize, _elements: OwnedValues) -> Result<(), DapError> {
        panic!("DAP2 has no elements with pointers");
    }
}

/// All values of all variables.
fn values(path: &Path, dataset: &Dap2) -> Result<Vec<Vec<u8>>, DapError> {
    let model = dataset.model();
    let counts: Vec<Vec<u64>> = model
        .vars
        .iter()
        .map(|var| var.dims.iter().map(|dim| model.dims[*dim].len).collect())
        .collect();
    let zeros = vec![0; 1024];
    let ones = vec![1; 1024];
    let parts: Vec<Part<'_>> = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| !count.contains(&0))
        .map(|(var, count)| Part {
            var,
            start: &zeros[..count.len()],
            count,
            stride: &ones[..count.len()],
        })
        .collect();
    let request = dataset.request(&parts)?;
    let mut body = Saved(path.to_owned()).ask(&request).unwrap();
    let mut taken = Taken::default();
    taken.0.resize(parts.len(), Vec::new());
    dataset.read(&parts, &mut body, &mut taken)?;
    for (part, values) in parts.iter().zip(&taken.0) {
        const SIZES: [usize; 7] = [0, 1, 1, 2, 4, 4, 8];
        let n: u64 = part.count.iter().product();
        let size = SIZES[usize::try_from(model.vars[part.var].nc_type).unwrap()];
        assert_eq!(
            values.len(),
            usize::try_from(n).unwrap() * size,
            "{}",
            model.vars[part.var].name
        );
    }
    Ok(taken.0)
}

/// Datasets of the folder `ncdap_test/testdata3`, or of our own.
fn datasets() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dap2");
    let folder = match std::env::var_os("ZONDA_DAP_DATA") {
        Some(folder) => Path::new(&folder).join("ncdap_test/testdata3"),
        None => own,
    };
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "dds"));
    paths.iter_mut().for_each(|path| _ = path.set_extension(""));
    paths.sort();
    eprintln!("{} datasets in {}", paths.len(), folder.display());
    paths
}

/// Has no values; the reference refuses them, too.
const WITHOUT_VALUES: &str = "synth9";
/// Whose dumps the reference itself does not get.
const NOT_OF_THE_REFERENCE: [&str; 2] = ["synth8", "synth9"];

#[test]
fn definitions_are_those_of_the_reference() {
    let (mut n_same, mut wrong) = (0, String::new());
    for path in datasets() {
        let name = path.file_name().unwrap().to_str().unwrap();
        if NOT_OF_THE_REFERENCE.contains(&name) {
            continue;
        }
        let dump = path.parent().unwrap().with_file_name("expected3").join(format!("{name}.dmp"));
        let Ok(dump) = fs::read(&dump) else { continue };
        let dump = String::from_utf8_lossy(&dump).into_owned();
        let shown = match opened(&path, &[]) {
            Ok(dataset) => shown(&dataset),
            Err(error) => error.to_string(),
        };
        let expected = expected(&dump);
        if shown == expected {
            n_same += 1;
            continue;
        }
        writeln!(wrong, "== {name}").unwrap();
        let (ours, theirs): (Vec<&str>, Vec<&str>) =
            (shown.lines().collect(), expected.lines().collect());
        for line in ours.iter().filter(|line| !theirs.contains(line)) {
            writeln!(wrong, "+ {line}").unwrap();
        }
        for line in theirs.iter().filter(|line| !ours.contains(line)) {
            writeln!(wrong, "- {line}").unwrap();
        }
    }
    eprintln!("{n_same} datasets have the expected definitions");
    assert!(n_same > 0);
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn all_values_are_read() {
    let mut n_vars = 0;
    for path in datasets() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let dataset = opened(&path, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        match values(&path, &dataset) {
            Ok(values) => n_vars += values.len(),
            Err(error) => assert_eq!(name, WITHOUT_VALUES, "{error}"),
        }
    }
    eprintln!("{n_vars} variables");
    assert!(n_vars > 0);
}

/// What a dump says of the values of a variable.
fn dumped<'a>(dump: &'a str, name: &str) -> Option<&'a str> {
    let (_, data) = dump.split_once("\ndata:")?;
    // A name that begins with a digit has a backslash in front.
    let find = |name: &str| data.find(&format!("\n {name} ="));
    let begin = find(name).or_else(|| find(&format!("\\{name}")))?;
    let (_, values) = data[begin..].split_once('=')?;
    // A semicolon inside of a text does not end it.
    let (mut in_text, mut is_escaped) = (false, false);
    let end = values.char_indices().find(|(_, ch)| {
        in_text ^= *ch == '"' && !is_escaped;
        is_escaped = *ch == '\\' && !is_escaped;
        *ch == ';' && !in_text
    });
    Some(&values[..end?.0])
}

fn numbers(nc_type: i32, bytes: &[u8]) -> Vec<f64> {
    match nc_type {
        1 => bytes.iter().map(|byte| f64::from(byte.cast_signed())).collect(),
        3 => {
            bytes.chunks(2).map(|b| f64::from(i16::from_ne_bytes(b.try_into().unwrap()))).collect()
        }
        4 => {
            bytes.chunks(4).map(|b| f64::from(i32::from_ne_bytes(b.try_into().unwrap()))).collect()
        }
        5 => {
            bytes.chunks(4).map(|b| f64::from(f32::from_ne_bytes(b.try_into().unwrap()))).collect()
        }
        _ => bytes.chunks(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap())).collect(),
    }
}

#[test]
fn values_are_those_of_the_reference() {
    let (mut n_values, mut n_texts) = (0, 0);
    for path in datasets() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let dump = path.parent().unwrap().with_file_name("expected3").join(format!("{name}.dmp"));
        let Ok(dump) = fs::read(&dump) else { continue };
        if NOT_OF_THE_REFERENCE.contains(&name) {
            continue;
        }
        let dump = String::from_utf8_lossy(&dump).into_owned();
        let dataset = opened(&path, &[]).unwrap();
        let mut values = values(&path, &dataset).unwrap().into_iter();
        let model = dataset.model();
        for var in
            model.vars.iter().filter(|var| var.dims.iter().all(|dim| model.dims[*dim].len > 0))
        {
            let bytes = values.next().unwrap();
            let Some(expected) = dumped(&dump, &var.name) else {
                panic!("{name}: no values of {}", var.name)
            };
            if var.nc_type == 2 {
                // Texts with their escapes, without what fills them up.
                let width =
                    var.dims.last().map_or(1, |dim| usize::try_from(model.dims[*dim].len).unwrap());
                let ours: Vec<String> = bytes
                    .chunks(width)
                    .map(|text| String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
                    .collect();
                let theirs = expected.replace("\\\"", "\u{1}").replace("\\'", "'");
                let theirs: Vec<&str> = theirs.split('"').skip(1).step_by(2).collect();
                if ours.iter().any(|text| {
                    text.contains(|ch: char| ch == '\\' || !(' '..='~').contains(&ch) && ch != '\r')
                }) {
                    continue;
                }
                let theirs: Vec<String> = theirs
                    .iter()
                    .map(|text| text.replace('\u{1}', "\"").replace("\\r", "\r"))
                    .collect();
                assert_eq!(ours, theirs, "{name}: {}", var.name);
                n_texts += ours.len();
                continue;
            }
            let ours = numbers(var.nc_type, &bytes);
            let theirs: Vec<&str> = expected.split(',').map(str::trim).collect();
            assert_eq!(ours.len(), theirs.len(), "{name}: {}", var.name);
            for (ours, theirs) in ours.iter().zip(theirs).filter(|(_, theirs)| *theirs != "_") {
                // `C_format` may leave few digits.
                let decimals = theirs.split_once('.').map_or(0, |(_, behind)| behind.len());
                let last = if theirs.contains('e') {
                    0.0
                } else {
                    0.6 * 10f64.powi(-i32::try_from(decimals).unwrap())
                };
                let theirs: f64 = theirs.replace("Infinity", "inf").parse().unwrap();
                let near = if var.nc_type == 5 { 1e-6 } else { 1e-14 };
                let is_same = ours.is_nan() && theirs.is_nan()
                    || *ours == theirs
                    || theirs.is_infinite() && ours.abs() > 1e308;
                assert!(
                    is_same || (ours - theirs).abs() <= last.min(1e-3).max(near * ours.abs()),
                    "{name}: {}: {ours} {theirs}",
                    var.name
                );
                n_values += 1;
            }
        }
    }
    eprintln!("{n_values} numbers and {n_texts} texts are those of the reference's dumps");
    assert!(n_values > 20 && n_texts > 20);
}

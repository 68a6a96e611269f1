//! Links and attributes of real files, against what the HDF5 library says of them.
//!
//! `ZONDA_CORPUS` names a folder with `MANIFEST.tsv` (path, category, ...), `files/` and
//! `expected/`, one JSON file for each data file. Without it the test is skipped.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use zonda_hdf5::message::{ByteOrder, Class, Datatype, FixedPoint, LinkTarget, SpaceKind};
use zonda_hdf5::{File, FileAddr, Object, ResolvedLink};

use common::Inflate;

mod common;

/// One file of the corpus.
struct Sample {
    path: String,
    category: String,
    verdict: String,
}

fn corpus() -> Option<PathBuf> {
    let corpus = std::env::var_os("ZONDA_CORPUS").map(PathBuf::from);
    if corpus.is_none() {
        eprintln!("skipped: ZONDA_CORPUS is not set");
    }
    corpus
}

/// The HDF5 files of the corpus.
fn samples(corpus: &Path) -> Vec<Sample> {
    let manifest = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).unwrap();
    let lines = manifest.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    let sample = |fields: Vec<&str>| {
        (fields[2] == "hdf5").then(|| Sample {
            path: fields[0].into(),
            category: fields[1].into(),
            verdict: fields[3].into(),
        })
    };
    lines.filter_map(sample).collect()
}

fn expected(corpus: &Path, sample: &Sample) -> Value {
    let path = sample.path.strip_prefix("files/").unwrap();
    let packed = std::fs::read(corpus.join("expected").join(format!("{path}.json.gz"))).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn open(path: &Path) -> zonda_hdf5::Result<File> {
    let file = common::open(&std::fs::read(path).unwrap())?;
    Ok(file.with_unfilter(Arc::new(Inflate)))
}

/// Names as the JSON files have them: bytes that are no UTF-8 as `\xNN`.
fn text(name: &[u8]) -> String {
    let mut out = String::new();
    for chunk in name.utf8_chunks() {
        out.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out
}

/// One comparison of a file with its expected tree.
struct Check<'a> {
    file: &'a File,
    /// Paths of the objects met so far.
    seen: HashMap<FileAddr, String>,
    objects: usize,
    attributes: usize,
    faults: Vec<String>,
}

impl Check<'_> {
    fn fault(&mut self, path: &str, what: impl std::fmt::Display) {
        self.faults.push(format!("{path}: {what}"));
    }

    fn object(&mut self, addr: FileAddr, path: &str, want: &Value) {
        self.objects += 1;
        self.seen.insert(addr, path.to_owned());
        let object = match self.file.object(addr) {
            Ok(object) => object,
            Err(error) if want["class"].is_null() => return drop(error),
            Err(error) => return self.fault(path, error),
        };
        if let Some(want) = want["atts"].as_object() {
            self.attributes(&object, path, want);
        }
        if want["class"] == "group" && want["truncated"].is_null() && want["error"].is_null() {
            self.links(&object, addr, path, &want["links"]);
        }
    }

    fn links(&mut self, object: &Object, addr: FileAddr, path: &str, want: &Value) {
        let links = match object.links(self.file) {
            Ok(links) => links,
            Err(error) => return self.fault(path, format!("links: {error}")),
        };
        if object.tracks_creation_order(self.file).unwrap() {
            let order: Vec<_> = links.iter().map(|link| link.creation_order).collect();
            if !order.is_sorted() || order.contains(&None) {
                self.fault(path, format!("creation order {order:?}"));
            }
        } else if !links.is_sorted_by_key(|link| &link.name) {
            self.fault(path, "links not in the order of their names");
        }
        let empty = serde_json::Map::new();
        let want = want.as_object().unwrap_or(&empty);
        let names: BTreeSet<String> = links.iter().map(|link| text(&link.name)).collect();
        let wanted: BTreeSet<String> = want.keys().cloned().collect();
        if names != wanted {
            self.fault(path, format!("links {names:?}, expected {wanted:?}"));
        }
        // The order in which the paths of objects with several links were found.
        let sorted: BTreeMap<_, _> = links.iter().map(|link| (&link.name, link)).collect();
        for link in sorted.into_values() {
            match object.link(self.file, &link.name) {
                Ok(Some(found)) if found == *link => {}
                other => self.fault(path, format!("looking up {link:?} gives {other:?}")),
            }
            let name = text(&link.name);
            let below = format!("{}/{name}", path.trim_end_matches('/'));
            let Some(want) = want.get(&name).filter(|want| want["error"].is_null()) else {
                continue;
            };
            self.link(&link.target, &below, want);
            if let LinkTarget::Hard(target) = &link.target {
                let found = ResolvedLink::Object(*target);
                match self.file.resolve(addr, &link.name) {
                    Ok(resolved) if resolved == found || link.name.contains(&b'/') => {}
                    other => self.fault(&below, format!("resolves to {other:?}")),
                }
            }
        }
        if object.link(self.file, b"no link has this name").ok().flatten().is_some() {
            self.fault(path, "a link that is not there");
        }
    }

    fn link(&mut self, target: &LinkTarget, path: &str, want: &Value) {
        let class = want["class"].as_str().unwrap_or_default();
        let same = |bytes: &[u8], want: &Value| Some(text(bytes).as_str()) == want.as_str();
        match target {
            LinkTarget::Hard(addr) => match self.seen.get(addr) {
                Some(first) if class == "hard" => {
                    if want["same_as"].as_str() != Some(first) {
                        self.fault(path, format!("is {first}, expected {}", want["same_as"]));
                    }
                }
                None if matches!(class, "group" | "dataset" | "type" | "other") => {
                    self.object(*addr, path, want);
                }
                _ => self.fault(path, format!("a hard link, expected {class}")),
            },
            LinkTarget::Soft(to) => {
                if class != "soft" || !same(to, &want["target"]) {
                    self.fault(path, format!("soft link to {}, expected {want}", text(to)));
                }
            }
            LinkTarget::External { file, path: to } => {
                let same = same(file, &want["file"]) && same(to, &want["target"]);
                if class != "external" || !same {
                    self.fault(path, format!("external link to {}, expected {want}", text(to)));
                }
            }
            LinkTarget::UserDefined { kind, .. } => {
                if class != "user" || want["type"] != u64::from(*kind) {
                    self.fault(path, format!("a link of type {kind}, expected {want}"));
                }
            }
        }
    }

    fn attributes(&mut self, object: &Object, path: &str, want: &serde_json::Map<String, Value>) {
        // An attribute under a number could not be read.
        let complete = want.keys().all(|name| !name.starts_with('#'));
        let attributes = match object.attributes(self.file) {
            Ok(attributes) => attributes,
            Err(error) if complete => return self.fault(path, format!("attributes: {error}")),
            Err(_) => return,
        };
        let names: BTreeSet<String> =
            (0..attributes.len()).map(|i| text(attributes.name(i))).collect();
        let wanted: BTreeSet<String> = want.keys().cloned().collect();
        if names != wanted && complete {
            self.fault(path, format!("attributes {names:?}, expected {wanted:?}"));
        }
        for i in 0..attributes.len() {
            self.attributes += 1;
            let name = attributes.name(i);
            let place = format!("{path}@{}", text(name));
            let Some(want) = want.get(&text(name)).filter(|want| want["error"].is_null()) else {
                continue;
            };
            let attribute = match attributes.decode(i, self.file) {
                Ok(attribute) => attribute,
                Err(error) => {
                    self.fault(&place, error);
                    continue;
                }
            };
            if attributes.find(name).is_none_or(|at| attributes.name(at) != name) {
                self.fault(&place, "not found by its name");
            }
            match object.attribute(self.file, name) {
                Ok(Some(found)) if found == attribute => {}
                other => self.fault(&place, format!("looking it up gives {other:?}")),
            }
            let space = &attribute.dataspace;
            let shape = match space.kind {
                SpaceKind::Null => Value::Null,
                _ => space.dims.iter().copied().collect(),
            };
            if want["unsupported"].is_null() && shape != want["shape"] {
                self.fault(&place, format!("shape {shape}, expected {}", want["shape"]));
            }
            let size = u64::from(attribute.datatype.size);
            if let Some(wanted) = want["type"]["size"].as_u64()
                && size != wanted
                && is_as_in_memory(&attribute.datatype)
            {
                self.fault(&place, format!("elements of {size} bytes, expected {wanted}"));
            }
            let count: u64 = match space.kind {
                SpaceKind::Null => 0,
                _ => space.dims.iter().product(),
            };
            if attribute.data.len() as u64 != count * size {
                self.fault(&place, format!("{} bytes of data", attribute.data.len()));
            }
            if let (Class::FixedPoint(bits), Some(values)) =
                (&attribute.datatype.class, want["value"].as_array())
                && bits.bit_offset == 0
                && u32::from(bits.precision) == 8 * attribute.datatype.size
            {
                let elements = attribute.data.chunks_exact(attribute.datatype.size as usize);
                let found: Vec<Value> = elements.map(|bytes| integer(bytes, bits)).collect();
                if found != *values {
                    self.fault(&place, format!("{found:?}, expected {values:?}"));
                }
            }
        }
    }
}

/// Whether the size of a type is the same in the file and in the HDF5 library's memory.
fn is_as_in_memory(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::VarLenSequence { .. } | Class::VarLenString { .. } | Class::Reference(_) => false,
        Class::Array { base, .. } => is_as_in_memory(base),
        Class::Compound(compound) => {
            compound.members.iter().all(|member| is_as_in_memory(&member.datatype))
        }
        _ => true,
    }
}

/// The integer that up to eight bytes stand for.
fn integer(bytes: &[u8], bits: &FixedPoint) -> Value {
    let mut bytes = bytes.to_vec();
    if bits.order == ByteOrder::Big {
        bytes.reverse();
    }
    let negative = bits.signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    bytes.resize(8, if negative { 0xff } else { 0 });
    let number = u64::from_le_bytes(bytes.try_into().unwrap());
    if negative { Value::from(number.cast_signed()) } else { Value::from(number) }
}

#[test]
fn links_and_attributes_are_what_the_hdf5_library_says() {
    let Some(corpus) = corpus() else { return };
    let mut faults = Vec::new();
    let (mut files, mut objects, mut attributes) = (0, 0, 0);
    for sample in samples(&corpus) {
        if sample.category == "malformed" || sample.verdict != "valid" {
            continue;
        }
        let expected = expected(&corpus, &sample);
        let root = &expected["hdf5"]["root"];
        if root.is_null() {
            continue;
        }
        let file = match open(&corpus.join(&sample.path)) {
            Ok(file) => file,
            Err(error) => {
                faults.push(format!("{}: {error}", sample.path));
                continue;
            }
        };
        let mut check = Check {
            file: &file,
            seen: HashMap::new(),
            objects: 0,
            attributes: 0,
            faults: Vec::new(),
        };
        check.object(file.root(), "/", root);
        files += 1;
        objects += check.objects;
        attributes += check.attributes;
        faults.extend(check.faults.iter().map(|fault| format!("{}: {fault}", sample.path)));
    }
    eprintln!("{files} files, {objects} objects, {attributes} attributes");
    assert!(files > 500, "only {files} files");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Distance of the bytes that are changed, prime so that all fields of structures are met.
const EVERY: usize = 29;

/// Reads whatever can be reached, and gives the number of objects.
fn walk(file: &File) -> usize {
    let mut seen = HashSet::from([file.root()]);
    let mut pending = vec![file.root()];
    while let Some(addr) = pending.pop() {
        let Ok(object) = file.object(addr) else { continue };
        if let Ok(attributes) = object.attributes(file) {
            for i in 0..attributes.len() {
                drop(attributes.decode(i, file));
                drop(object.attribute(file, attributes.name(i)));
            }
        }
        drop(object.attribute(file, b"none"));
        for link in object.links(file).unwrap_or_default() {
            drop(object.link(file, &link.name));
            drop(file.resolve(addr, &link.name));
            if let LinkTarget::Hard(target) = link.target
                && seen.insert(target)
            {
                pending.push(target);
            }
        }
        drop(object.link(file, b"none"));
    }
    seen.len()
}

/// The most memory that this process has had, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn damaged_files_cost_little_time_and_memory() {
    let Some(corpus) = corpus() else { return };
    let mut files = 0;
    for sample in samples(&corpus) {
        if sample.category == "malformed" || sample.verdict != "valid" {
            let begin = Instant::now();
            let objects = open(&corpus.join(&sample.path)).map_or(0, |file| walk(&file));
            let took = begin.elapsed();
            assert!(took < Duration::from_secs(10), "{}: {took:?}, {objects}", sample.path);
            assert!(peak_memory() < 1 << 30, "{}: {} bytes", sample.path, peak_memory());
            files += 1;
        }
    }
    assert!(files > 150, "only {files} files");
}

/// Damage that nobody thought of: each file of the folder beside this test, every few bytes one of
/// them changed, and cut off there. No oracle: what this proves is that an answer comes.
#[test]
fn changed_bytes_and_cut_files_give_answers() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in ["symbol_table.h5", "links.h5", "attributes.h5", "shared.h5"] {
        let bytes = std::fs::read(data.join(name)).unwrap();
        assert!(walk(&common::open(&bytes).unwrap()) > 0);
        for i in (0..bytes.len()).step_by(EVERY) {
            let mut damaged = bytes.clone();
            damaged[i] ^= [0xff, 0x01, 0x80][i % 3];
            for bytes in [&damaged, &bytes[..i]] {
                if let Ok(file) = common::open(bytes) {
                    walk(&file);
                }
            }
        }
    }
}

//! What the object headers of real files say of datasets and types, against what the HDF5 library
//! says of them; and that damaged headers give errors.
//!
//! `ZONDA_CORPUS` names a folder with `MANIFEST.tsv` (path, category, ...), `files/` and
//! `expected/`, one JSON file for each data file. Without it nothing runs.

use std::collections::{BTreeSet, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use zonda_hdf5::message::{
    AttributeMessage, ByteOrder, Charset, Class, DataLayout, Datatype, DecodedMessage, Padding,
    ReferenceKind, SpaceKind, decode,
};
use zonda_hdf5::{File, FileAddr, Object, ObjectKind, Result};

use common::Inflate;

mod common;

struct Sample {
    path: PathBuf,
    expected: PathBuf,
    /// Whether it is as it was made, and reference readers read all of it.
    whole: bool,
}

fn samples() -> Option<Vec<Sample>> {
    let Some(corpus) = std::env::var_os("ZONDA_CORPUS").map(PathBuf::from) else {
        eprintln!("skipped: ZONDA_CORPUS is not set");
        return None;
    };
    let manifest = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).unwrap();
    let lines = manifest.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    let samples = lines.filter(|fields| fields[2] == "hdf5").map(|fields| {
        let name = fields[0].strip_prefix("files/").unwrap();
        Sample {
            path: corpus.join(fields[0]),
            expected: corpus.join("expected").join(format!("{name}.json.gz")),
            whole: fields[1] != "malformed" && fields[3] == "valid",
        }
    });
    Some(samples.collect())
}

fn bytes_of(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn open(bytes: &[u8]) -> Result<File> {
    Ok(common::open(bytes)?.with_unfilter(Arc::new(Inflate)))
}

fn expected(sample: &Sample) -> Value {
    let mut text = String::new();
    let packed = bytes_of(&sample.expected);
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["hdf5"].take()
}

/// Decodes all that `object` says of itself, gives the objects that its messages name.
fn decode_all(file: &File, object: &Object) -> Result<Vec<FileAddr>> {
    let mut named = Vec::new();
    for message in &object.header().messages {
        let body = object.body(file, message)?;
        named.extend(body.committed);
        if let DecodedMessage::Attribute(parts) =
            decode(message.kind, body.reader(file), file.limits())?
        {
            let attribute = parts.resolve(file)?;
            named.extend(attribute.committed);
            let again = AttributeMessage::decode(file, body.reader(file))?;
            assert_eq!(again.data, attribute.data);
        }
    }
    object.fill_value(file)?;
    object.filters(file)?;
    object.external_files(file)?;
    object.modification_time(file)?;
    object.comment(file)?;
    object.reference_count(file)?;
    named.extend(object.committed_type(file)?);
    if object.kind() == ObjectKind::Dataset {
        object.datatype(file)?;
        object.dataspace(file)?;
        object.layout(file)?;
    }
    Ok(named)
}

/// One comparison of a file with its expected tree.
struct Check<'a> {
    file: &'a File,
    n_datasets: usize,
    faults: Vec<String>,
}

impl Check<'_> {
    fn object(&mut self, addr: FileAddr, path: &str, want: &Value) {
        let checked = self.checked(addr, path, want);
        if let Err(error) = checked {
            self.faults.push(format!("{path}: {error}"));
        }
    }

    fn checked(&mut self, addr: FileAddr, path: &str, want: &Value) -> Result<()> {
        let file = self.file;
        let object = file.object(addr)?;
        for named in decode_all(file, &object)? {
            decode_all(file, &file.object(named)?)?;
        }
        let class = match object.kind() {
            ObjectKind::Group => "group",
            ObjectKind::Dataset => "dataset",
            ObjectKind::Datatype => "type",
            ObjectKind::Unknown => "other",
        };
        self.same(path, "class", json!(class), &want["class"]);
        if want["type"].is_object() {
            let fault = type_fault(&object.datatype(file)?, &want["type"]);
            self.faults.extend(fault.map(|fault| format!("{path}: type: {fault}")));
            let committed =
                object.kind() == ObjectKind::Datatype || object.committed_type(file)?.is_some();
            let wanted = want["type"].get("committed").cloned().unwrap_or(json!(false));
            self.same(path, "committed", json!(committed), &wanted);
        }
        if object.kind() == ObjectKind::Dataset {
            self.n_datasets += 1;
            self.dataset(&object, path, want)?;
        }
        if object.kind() == ObjectKind::Group && want["links"].is_object() {
            for link in object.links(file)? {
                let zonda_hdf5::message::LinkTarget::Hard(target) = link.target else { continue };
                let Ok(name) = std::str::from_utf8(&link.name) else { continue };
                let want = &want["links"][name];
                if ["group", "dataset", "type"].iter().any(|class| want["class"] == *class) {
                    self.object(target, &format!("{path}{name}/"), want);
                }
            }
        }
        Ok(())
    }

    fn same(&mut self, path: &str, what: &str, found: Value, want: &Value) {
        if found != *want {
            self.faults.push(format!("{path}: {what} {found}, expected {want}"));
        }
    }

    fn dataset(&mut self, object: &Object, path: &str, want: &Value) -> Result<()> {
        let file = self.file;
        let space = object.dataspace(file)?;
        let layout = object.layout(file)?;
        let is_virtual = matches!(layout, DataLayout::Virtual { .. });
        let shape = match space.kind {
            SpaceKind::Null => Value::Null,
            _ => json!(space.dims),
        };
        // The library computes the shape of a virtual dataset from those of its sources.
        if !is_virtual {
            self.same(path, "shape", shape, &want["shape"]);
        }
        if !want["maxshape"].is_null() {
            let unlimited = |&max: &u64| if max == u64::MAX { json!(-1) } else { json!(max) };
            let max_dims = space.max_dims.iter().map(unlimited).collect();
            self.same(path, "most", max_dims, &want["maxshape"]);
        } else if !is_virtual && space.kind == SpaceKind::Simple {
            self.same(path, "most", json!(space.max_dims.len()), &json!(0));
        }
        let name = match &layout {
            DataLayout::Compact { .. } => "compact",
            DataLayout::Contiguous { .. } => "contiguous",
            DataLayout::Chunked(chunked) => {
                self.same(path, "chunks", json!(chunked.chunk_dims), &want["chunks"]);
                let size = object.datatype(file)?.size;
                self.same(path, "bytes of an element", json!(chunked.elem_size), &json!(size));
                "chunked"
            }
            DataLayout::Virtual { .. } => "virtual",
        };
        self.same(path, "layout", json!(name), &want["layout"]);
        let filters = object.filters(file)?;
        let filters: Vec<Value> =
            filters.iter().map(|filter| json!([filter.id, filter.flags, filter.params])).collect();
        let wanted = want.get("filters").cloned().unwrap_or(json!([]));
        self.same(path, "filters", json!(filters), &wanted);
        if let Some(list) = object.external_files(file)? {
            let slot = |slot: &zonda_hdf5::ExternalSlot| {
                json!([String::from_utf8_lossy(&slot.name), slot.offset, slot.len])
            };
            let slots: Vec<Value> = list.slots.iter().map(slot).collect();
            self.same(path, "external files", json!(slots), &want["external"]);
        } else {
            self.same(path, "external files", Value::Null, &want["external"]);
        }
        Ok(())
    }
}

/// Whether the size of a type is the same in the file and in the HDF5 library's memory.
fn is_as_in_memory(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::VarLenSequence { .. } | Class::VarLenString { .. } => false,
        Class::Reference(kind) => {
            matches!(kind, ReferenceKind::Object | ReferenceKind::DatasetRegion)
        }
        Class::Array { base, .. } => is_as_in_memory(base),
        Class::Compound(compound) => {
            compound.members.iter().all(|member| is_as_in_memory(&member.datatype))
        }
        _ => true,
    }
}

fn padding(padding: Padding) -> u8 {
    match padding {
        Padding::NullTerminated => 0,
        Padding::NullPadded => 1,
        Padding::SpacePadded => 2,
    }
}

fn charset(charset: Charset) -> u8 {
    match charset {
        Charset::Ascii => 0,
        Charset::Utf8 => 1,
    }
}

/// Where a type is not the expected one.
fn type_fault(datatype: &Datatype, want: &Value) -> Option<String> {
    let order = |order| match order {
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
        ByteOrder::Vax => "vax",
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let in_memory = is_as_in_memory(datatype);
    let mut faults = Vec::new();
    let mut say = |what: &str, found: Value| {
        let fault = found != want[what];
        faults.extend(fault.then(|| format!("{what} {found}, expected {}", want[what])));
    };
    if in_memory {
        say("size", json!(datatype.size));
    }
    let mut below = None;
    match &datatype.class {
        Class::FixedPoint(bits) => {
            say("class", json!("integer"));
            say("signed", json!(bits.signed));
            say("precision", json!(bits.precision));
            if datatype.size > 1 {
                say("order", json!(order(bits.order)));
            }
        }
        Class::Bitfield(bits) => {
            say("class", json!("bitfield"));
            if datatype.size > 1 {
                say("order", json!(order(bits.order)));
            }
        }
        Class::FloatingPoint(bits) => {
            say("class", json!("float"));
            say("precision", json!(bits.precision));
            say("ebias", json!(bits.bias));
            let (exponent, mantissa) = (bits.exponent_bits, bits.mantissa_bits);
            let fields = [bits.sign, bits.exponent_at, exponent, bits.mantissa_at, mantissa];
            say("fields", json!(fields));
            say("order", json!(order(bits.order)));
        }
        Class::Time { .. } => say("class", json!("time")),
        Class::String { padding: pad, charset: set } => {
            say("class", json!("string"));
            say("pad", json!(padding(*pad)));
            say("cset", json!(charset(*set)));
            say("vlen", Value::Null);
        }
        Class::VarLenString { padding: pad, charset: set } => {
            say("class", json!("string"));
            say("pad", json!(padding(*pad)));
            say("cset", json!(charset(*set)));
            say("vlen", json!(true));
        }
        Class::Opaque { tag } => {
            say("class", json!("opaque"));
            say("tag", json!(text(tag)));
        }
        Class::Compound(compound) => {
            say("class", json!("compound"));
            let wanted = want["members"].as_array().cloned().unwrap_or_default();
            if wanted.len() != compound.members.len() {
                return Some(format!("{} members", compound.members.len()));
            }
            below = compound.members.iter().zip(&wanted).find_map(|(member, want)| {
                let same = want[0] == text(&member.name)
                    && (!in_memory || want[1] == u64::from(member.offset));
                if same { type_fault(&member.datatype, &want[2]) } else { Some(want.to_string()) }
            });
        }
        Class::Reference(kind) => {
            say("class", json!("reference"));
            match kind {
                ReferenceKind::Object => say("kind", json!("object")),
                ReferenceKind::DatasetRegion => say("kind", json!("region")),
                _ => {}
            }
        }
        Class::Enum { base, members } => {
            say("class", json!("enum"));
            let Class::FixedPoint(bits) = base.class else { return Some("base".into()) };
            let value = |bytes: &[u8]| {
                let mut bytes = bytes.to_vec();
                if bits.order == ByteOrder::Big {
                    bytes.reverse();
                }
                let negative = bits.signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
                bytes.resize(8, if negative { 0xff } else { 0 });
                i64::from_le_bytes(bytes.try_into().unwrap())
            };
            let found: Vec<Value> =
                members.iter().map(|m| json!([text(&m.name), value(&m.value)])).collect();
            say("members", json!(found));
            below = type_fault(base, &want["base"]);
        }
        Class::VarLenSequence { base } => {
            say("class", json!("vlen"));
            below = type_fault(base, &want["base"]);
        }
        Class::Array { base, dims } => {
            say("class", json!("array"));
            say("dims", json!(dims));
            below = type_fault(base, &want["base"]);
        }
        Class::Complex { .. } => say("class", json!(11)),
    }
    faults.extend(below);
    (!faults.is_empty()).then(|| faults.join(", "))
}

#[test]
fn datasets_and_types_are_what_the_hdf5_library_says() {
    let Some(samples) = samples() else { return };
    let mut faults = Vec::new();
    let (mut n_files, mut n_datasets) = (0, 0);
    for sample in samples.iter().filter(|sample| sample.whole) {
        let expected = expected(sample);
        if expected["root"].is_null() {
            continue;
        }
        let path = sample.path.display();
        let file = match open(&bytes_of(&sample.path)) {
            Ok(file) => file,
            Err(error) => {
                faults.push(format!("{path}: {error}"));
                continue;
            }
        };
        let mut check = Check { file: &file, n_datasets: 0, faults: Vec::new() };
        let superblock = file.superblock();
        let sizes = json!([superblock.sizes.offset, superblock.sizes.length]);
        check.same("", "sizes", sizes, &expected["sizes"]);
        check.same("", "superblock", json!(superblock.version), &expected["superblock"]);
        check.same("", "user block", json!(superblock.base), &expected["userblock"]);
        check.object(file.root(), "/", &expected["root"]);
        n_files += 1;
        n_datasets += check.n_datasets;
        faults.extend(check.faults.iter().map(|fault| format!("{path}: {fault}")));
    }
    eprintln!("{n_files} files, {n_datasets} datasets");
    assert!(n_files > 500 && n_datasets > 3000);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Where `letters` are in `bytes`.
fn occurrences<'a>(bytes: &'a [u8], letters: &'a [u8; 4]) -> impl Iterator<Item = usize> + 'a {
    let windows = bytes.windows(4).enumerate();
    windows.filter(move |(_, four)| *four == letters).map(|(at, _)| at)
}

/// The objects that can be reached, and what looks like an object header or is named by what looks
/// like a symbol table node. Some of it is left over from objects that were deleted.
fn guesses(file: &File, bytes: &[u8]) -> BTreeSet<FileAddr> {
    let base = file.superblock().base;
    let mut found = BTreeSet::from([file.root()]);
    for at in occurrences(bytes, b"OHDR") {
        found.extend((at as u64).checked_sub(base).map(FileAddr));
    }
    for at in occurrences(bytes, b"SNOD") {
        let Some(addr) = (at as u64).checked_sub(base).map(FileAddr) else { continue };
        let mut reader = file.reader("symbol table node", addr, &bytes[at..]);
        let mut entries = || -> Result<()> {
            reader.skip(6)?;
            for _ in 0..reader.u16()? {
                reader.length()?;
                found.extend(reader.addr()?);
                reader.skip(24)?;
            }
            Ok(())
        };
        // What is cut short has said enough.
        let _ = entries();
    }
    found
}

/// Decodes whatever there is; gives how many objects answered without an error.
fn decode_whatever(bytes: &[u8]) -> usize {
    let Ok(file) = open(bytes) else { return 0 };
    let mut seen = HashSet::new();
    let mut pending: Vec<FileAddr> = guesses(&file, bytes).into_iter().collect();
    let mut n_good = 0;
    while let Some(addr) = pending.pop() {
        if !seen.insert(addr) {
            continue;
        }
        if let Ok(named) = file.object(addr).and_then(|object| decode_all(&file, &object)) {
            n_good += 1;
            pending.extend(named);
        }
    }
    // Any address may be asked for as a heap.
    for addr in seen {
        let _ = file.global_heap_collection(addr);
        let _ = zonda_hdf5::local_heap::LocalHeap::read(&file, addr);
    }
    n_good
}

#[test]
fn headers_of_damaged_files_give_errors() {
    let Some(samples) = samples() else { return };
    let (mut n_files, mut n_objects) = (0, 0);
    for sample in &samples {
        n_objects += decode_whatever(&bytes_of(&sample.path));
        n_files += 1;
    }
    eprintln!("{n_files} files, {n_objects} objects");
    assert!(n_objects > 5000);
}

/// Distance of the bytes that are changed: prime, so that all fields are met.
const EVERY: usize = 101;

#[test]
fn changed_bytes_give_answers_or_errors() {
    let Some(samples) = samples() else { return };
    let mut n_changes = 0;
    for sample in samples.iter().filter(|sample| sample.whole) {
        let mut bytes = bytes_of(&sample.path);
        if bytes.len() > 4096 {
            continue;
        }
        for at in (0..bytes.len()).step_by(EVERY) {
            let before = bytes[at];
            for value in [0, 1, 0x7f, 0xff, before.wrapping_add(1), before.wrapping_sub(1)] {
                bytes[at] = value;
                decode_whatever(&bytes);
                n_changes += 1;
            }
            bytes[at] = before;
        }
    }
    eprintln!("{n_changes} changes");
    assert!(n_changes > 10_000);
}

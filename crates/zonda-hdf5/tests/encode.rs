//! Messages and headers of files that the reference libraries made, encoded again: what Zonda can
//! write it writes byte for byte as they do.
//!
//! The files are those of `tests/data`, and of the corpus that `ZONDA_CORPUS` names (see
//! `tests/corpus.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zonda_hdf5::message::{DecodedMessage, LinkTarget, decode, encode_filter_pipeline, kind};
use zonda_hdf5::object_header::encode_header;
use zonda_hdf5::{Attribute, File, FileAddr, HdfError, Message, ObjectHeader, Writer};

use common::Inflate;

mod common;

/// How many bodies and headers were the same.
type Counts = BTreeMap<&'static str, usize>;

/// Whether a body says the same in another way than libraries of the versions do whose forms Zonda
/// writes.
fn other_form(number: u16, body: &[u8]) -> bool {
    match (number, body) {
        // Other versions.
        (kind::DATASPACE, [version, ..]) => *version != 2 || (body[1] > 0 && body[2] & 1 == 0),
        (kind::FILL_VALUE | kind::DATA_LAYOUT, [version, ..]) => *version != 3,
        (kind::FILTER_PIPELINE, [version, ..]) => *version != 2,
        // Compounds and arrays of HDF5 1.12 and 2.0, and revised references before version 4.
        (kind::DATATYPE, [0x40..=0xff, ..]) => true,
        (kind::DATATYPE, [0x17, form, ..]) => form & 15 > 1,
        // Lengths of names that are wider than need be.
        (kind::LINK, [_, flags, ..]) => flags & 3 > 1,
        _ => false,
    }
}

/// The body of a message as Zonda writes it; `None` for what it does not write.
fn again(file: &File, header: &ObjectHeader, message: &Message) -> Option<Vec<u8>> {
    let sizes = file.sizes();
    let decoded = decode(message.kind, header.reader(sizes, message), file.limits()).ok()?;
    let mut writer = Writer::new("test", sizes);
    let encoded = match decoded {
        DecodedMessage::Dataspace(space) => space.encode(&mut writer),
        DecodedMessage::LinkInfo(info) => info.encode(&mut writer),
        DecodedMessage::Datatype(datatype) => datatype.encode(&mut writer),
        DecodedMessage::FillValue(fill) if message.kind == kind::FILL_VALUE => {
            fill.encode(&mut writer)
        }
        DecodedMessage::Link(link) => link.encode(&mut writer),
        DecodedMessage::DataLayout(layout) => layout.encode(&mut writer),
        DecodedMessage::GroupInfo(info) => info.encode(&mut writer),
        DecodedMessage::FilterPipeline(filters) => encode_filter_pipeline(&filters, &mut writer),
        DecodedMessage::AttributeInfo(info) => info.encode(&mut writer),
        DecodedMessage::Attribute(parts) if parts.version == 3 && !parts.dataspace_shared => {
            let whole = parts.resolve(file).ok()?;
            let attribute = Attribute {
                name: whole.name.into(),
                charset: whole.charset,
                creation_order: None,
                datatype: whole.datatype,
                committed: whole.committed,
                dataspace: whole.dataspace,
                data: whole.data.into(),
            };
            let parts = [(kind::DATATYPE, parts.datatype), (kind::DATASPACE, parts.dataspace)];
            if parts.iter().any(|(kind, part)| other_form(*kind, part.rest())) {
                return None;
            }
            attribute.encode(&mut writer)
        }
        _ => return None,
    };
    match encoded {
        Ok(()) => Some(writer.finish()),
        Err(HdfError::Unsupported { .. }) => None,
        Err(error) => panic!("{:?}: {error}", header.body(message)),
    }
}

/// A header of one block with nothing unused, or that at its end.
fn header_again(file: &File, header: &ObjectHeader) -> Option<Vec<u8>> {
    let nil = header.all(kind::NIL).count();
    // Where a message was before, libraries leave its bytes.
    let empty = |last: &&Message| {
        let zeros = header.body(last).iter().all(|&byte| byte == 0);
        zeros && last.flags == 0 && last.creation_order.is_none_or(|order| order == 0)
    };
    let last = header.messages.last().filter(|last| last.kind == kind::NIL);
    let at_end = last.filter(empty).is_some();
    let moved = header.continuations(file.sizes()).next().is_some();
    if header.version < 2 || moved || nil > usize::from(at_end) {
        return None;
    }
    let known = header.messages.iter().filter(|message| message.kind != kind::NIL);
    let messages: Vec<_> = known.map(|message| header.carry(message)).collect();
    let mut none = |_| panic!("all fits into the first block");
    let encoded =
        encode_header(&header.style(), &messages, &header.space(), file.sizes(), &mut none);
    Some(encoded.unwrap().first)
}

fn check(path: &Path, counts: &mut Counts) {
    let bytes = std::fs::read(path).unwrap();
    let Ok(file) = common::open(&bytes) else { return };
    let file = file.with_unfilter(Arc::new(Inflate));
    let starts = bytes.windows(4).enumerate().filter(|(_, window)| window == b"OHDR");
    for (at, _) in starts {
        let Some(addr) = (at as u64).checked_sub(file.superblock().base) else { continue };
        let Ok(header) = ObjectHeader::read(&file, FileAddr(addr)) else { continue };
        for message in header.messages.iter().filter(|message| !message.is_shared()) {
            let (name, body) = (kind::name(message.kind), header.body(message));
            if other_form(message.kind, body) {
                continue;
            }
            if let Some(again) = again(&file, &header, message) {
                assert_eq!(again, body, "{}: {name} at byte {}", path.display(), message.at);
                *counts.entry(name).or_default() += 1;
            }
        }
        if let Some(again) = header_again(&file, &header) {
            assert_eq!(again, bytes[at..at + again.len()], "{} at byte {at}", path.display());
            *counts.entry("object header").or_default() += 1;
        }
    }
    // Some say what no library writes: damaged ones, and one with a wrong number of messages.
    let path_text = path.to_string_lossy();
    if path_text.contains("cve") || path_text.ends_with("tbad_msg_count.h5") {
        return;
    }
    for addr in objects(&file) {
        let Ok(header) = ObjectHeader::read(&file, addr) else { continue };
        if header.version == 1 {
            let at = usize::try_from(file.position(addr)).unwrap();
            let again = old_header_again(&file, &header);
            assert_eq!(again, bytes[at..at + again.len()], "{} at byte {at}", path.display());
            *counts.entry(OLD_HEADER).or_default() += 1;
        }
    }
}

const OLD_HEADER: &str = "version 1 object header";

/// All objects that can be reached by links.
fn objects(file: &File) -> BTreeSet<FileAddr> {
    let mut found = BTreeSet::from([file.root()]);
    let mut pending = vec![file.root()];
    while let Some(addr) = pending.pop() {
        let links = file.object(addr).and_then(|object| object.links(file)).unwrap_or_default();
        for link in links {
            if let LinkTarget::Hard(addr) = link.target
                && found.insert(addr)
            {
                pending.push(addr);
            }
        }
    }
    found
}

/// The first block of a version 1 header, free space and references to other blocks included.
fn old_header_again(file: &File, header: &ObjectHeader) -> Vec<u8> {
    let messages: Vec<_> = header.first().iter().map(|message| header.carry(message)).collect();
    let mut none = |_| panic!("all fits into the first block");
    let encoded =
        encode_header(&header.style(), &messages, &header.space(), file.sizes(), &mut none);
    let mut first = encoded.unwrap().first;
    // It counts the messages of all blocks.
    let count = u16::try_from(header.messages.len()).unwrap();
    first[2..4].copy_from_slice(&count.to_le_bytes());
    first
}

/// All kinds of structures must have been met so often.
fn enough(counts: &Counts, least: usize) {
    eprintln!("{counts:?}");
    let all = [
        kind::DATASPACE,
        kind::LINK_INFO,
        kind::DATATYPE,
        kind::FILL_VALUE,
        kind::LINK,
        kind::DATA_LAYOUT,
        kind::GROUP_INFO,
        kind::FILTER_PIPELINE,
        kind::ATTRIBUTE,
        kind::ATTRIBUTE_INFO,
    ];
    for name in all.into_iter().map(kind::name).chain(["object header", OLD_HEADER]) {
        assert!(counts.get(name).is_some_and(|&count| count >= least), "{name}: {counts:?}");
    }
}

#[test]
fn files_of_the_tests() {
    let mut counts = Counts::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in
        ["links.h5", "attributes.h5", "shared.h5", "references.h5", "narrow.h5", "symbol_table.h5"]
    {
        check(&folder.join(name), &mut counts);
    }
    enough(&counts, 1);
}

#[test]
fn corpus() {
    let Some(corpus) = std::env::var_os("ZONDA_CORPUS").map(PathBuf::from) else {
        eprintln!("skipped: ZONDA_CORPUS is not set");
        return;
    };
    let manifest = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).unwrap();
    let mut counts = Counts::new();
    for line in manifest.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        if fields[2] == "hdf5" && fields[3] == "valid" {
            check(&corpus.join(fields[0]), &mut counts);
        }
    }
    enough(&counts, 100);
}

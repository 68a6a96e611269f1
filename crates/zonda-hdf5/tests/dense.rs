//! Links and attributes outside of headers, as they are written: read back by Zonda, and read and
//! changed by the HDF5 library.
//!
//! `tests/data/dense.py` knows the same files. It is run by the Python that `ZONDA_PYTHON` names,
//! which has h5py and netCDF4.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use zonda_hdf5::attributes;
use zonda_hdf5::links;
use zonda_hdf5::message::{
    AttributeInfo, ByteOrder, Charset, Class, Dataspace, Datatype, FixedPoint, GroupInfo, Link,
    LinkInfo, LinkTarget, SpaceKind, kind,
};
use zonda_hdf5::object_header::{HeaderSpace, HeaderStyle, NewMessage, encode_header};
use zonda_hdf5::{Attribute, File, FileAddr, NewBlocks, Object, Sizes, Space, Writer};
use zonda_storage::backend::Memory;

const SIZES: Sizes = Sizes::EIGHT;
/// Where the root group's header is, and its first block.
const ROOT: HeaderSpace = HeaderSpace { addr: FileAddr(48), len: 464 };
/// Header flags: creation order of attributes is tracked and indexed.
const ATTRIBUTE_ORDER: u8 = 12;

/// How a group or an object keeps creation order.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    None,
    Tracked,
    Indexed,
}

fn link_info(order: Order) -> LinkInfo {
    LinkInfo {
        tracked: order != Order::None,
        indexed: order == Order::Indexed,
        max_creation_index: (order != Order::None).then_some(0),
        heap: None,
        name_index: None,
        order_index: None,
    }
}

fn attribute_info(order: Order) -> AttributeInfo {
    AttributeInfo {
        tracked: order != Order::None,
        indexed: order == Order::Indexed,
        max_creation_index: (order != Order::None).then_some(0),
        heap: None,
        name_index: None,
        order_index: None,
    }
}

fn message(kind: u16, flags: u8, encode: impl FnOnce(&mut Writer)) -> NewMessage {
    let mut body = Writer::new("message", SIZES);
    encode(&mut body);
    NewMessage { kind, flags, creation_order: None, body: body.finish().into() }
}

/// The messages that make a group, but for its links.
fn group(info: &LinkInfo) -> Vec<NewMessage> {
    let group_info = GroupInfo { phase_change: None, estimates: None };
    vec![
        message(kind::LINK_INFO, 0, |writer| info.encode(writer).unwrap()),
        message(kind::GROUP_INFO, 1, |writer| group_info.encode(writer).unwrap()),
    ]
}

fn link(name: String, order: Order, i: usize, target: LinkTarget) -> Link {
    let creation_order = (order != Order::None).then_some(i as i64);
    Link { name: name.into_bytes().into(), charset: Charset::Ascii, creation_order, target }
}

fn hard(name: String, order: Order, i: usize, addr: FileAddr) -> Link {
    link(name, order, i, LinkTarget::Hard(addr))
}

/// A link that leads to the root group and is not counted there.
fn soft(name: String, i: usize) -> Link {
    link(name, Order::Indexed, i, LinkTarget::Soft(b"/".as_slice().into()))
}

/// Puts a header somewhere.
fn put_header(fresh: &mut NewBlocks<'_>, style: HeaderStyle, messages: &[NewMessage]) -> FileAddr {
    let len = zonda_hdf5::object_header::first_chunk_len(&style, messages);
    let space = HeaderSpace { addr: fresh.space().alloc(len).unwrap(), len };
    put_header_at(fresh, style, messages, &space)
}

fn put_header_at(
    fresh: &mut NewBlocks<'_>,
    style: HeaderStyle,
    messages: &[NewMessage],
    space: &HeaderSpace,
) -> FileAddr {
    let mut place = |len| fresh.space().alloc(len);
    let encoded = encode_header(&style, messages, space, SIZES, &mut place).unwrap();
    if let Some((addr, bytes)) = encoded.continuation {
        fresh.put_at(addr, bytes);
    }
    fresh.put_at(space.addr, encoded.first);
    space.addr
}

/// A file of what `make` puts into it, whose root group has links to these objects.
fn file(make: impl FnOnce(&mut NewBlocks<'_>) -> Vec<(String, FileAddr)>) -> Vec<u8> {
    let storage = Arc::new(Memory::new());
    let file = File::create(storage.clone(), 0).unwrap();
    let mut space = Space::new(ROOT.addr.0 + ROOT.len);
    let mut fresh = NewBlocks::new(&mut space);
    let objects = make(&mut fresh);
    let mut messages = group(&LinkInfo {
        max_creation_index: Some(objects.len() as i64),
        ..link_info(Order::Indexed)
    });
    for (i, (name, addr)) in objects.into_iter().enumerate() {
        let link = hard(name, Order::Indexed, i, addr);
        messages.push(message(kind::LINK, 4, |writer| link.encode(writer).unwrap()));
    }
    let style = HeaderStyle { flags: ATTRIBUTE_ORDER, ..HeaderStyle::default() };
    put_header_at(&mut fresh, style, &messages, &ROOT);
    fresh.write(&file).unwrap();
    file.write_superblock(space.end()).unwrap();
    storage.to_vec().unwrap()
}

/// A group of these links, which are written in another order than that of their creation.
fn dense_group(fresh: &mut NewBlocks<'_>, mut links: Vec<Link>, order: Order) -> FileAddr {
    let middle = links.len() / 2;
    links.rotate_left(middle);
    let info = links::write_dense(&links, &link_info(order), SIZES, fresh).unwrap();
    let style = HeaderStyle { flags: ATTRIBUTE_ORDER, ..HeaderStyle::default() };
    put_header(fresh, style, &group(&info))
}

/// Names of the links of a group: short ones, some long ones.
fn link_name(i: usize) -> String {
    let mut name = format!("link_{i}");
    if i % 50 == 7 {
        name.push_str(&"x".repeat(200));
    }
    name
}

/// Groups of this many empty groups.
fn groups(counts: &[usize], order: Order) -> Vec<u8> {
    file(|fresh| {
        let mut out = Vec::new();
        for &count in counts {
            let mut links = Vec::new();
            for i in 0..count {
                let info = link_info(Order::Indexed);
                let style = HeaderStyle { flags: ATTRIBUTE_ORDER, ..HeaderStyle::default() };
                let addr = put_header(fresh, style, &group(&info));
                links.push(hard(link_name(i), order, i, addr));
            }
            out.push((format!("g{count}"), dense_group(fresh, links, order)));
        }
        out
    })
}

/// Names of a group's links in the order in which it lists them.
fn names(file: &File, group: &Object) -> Vec<String> {
    let links = group.links(file).unwrap();
    links.iter().map(|link| String::from_utf8(link.name.to_vec()).unwrap()).collect()
}

fn child(file: &File, path: &str) -> Object {
    let link = file.resolve(file.root(), path.as_bytes()).unwrap();
    let zonda_hdf5::ResolvedLink::Object(addr) = link else { panic!("{path}: {link:?}") };
    file.object(addr).unwrap()
}

/// Bytes of an attribute.
fn bytes(i: usize, len: usize) -> Vec<u8> {
    (0..len).map(|j| ((i + j) % 251) as u8).collect()
}

/// Names and lengths of the attributes of an object: small ones, and long ones among them.
fn attribute_lens(count: usize) -> Vec<(String, usize)> {
    let len = |i: usize| match (count, i) {
        (9 | 70, 5) => 70_000,
        (70 | 3000, 8) => 5 << 20,
        (_, i) if i % 100 == 42 => 4000 + i % 200,
        (_, i) => i % 30,
    };
    (0..count).map(|i| (format!("attribute_{i}"), len(i))).collect()
}

fn dense_attributes(count: usize, order: Order) -> Vec<Attribute> {
    let byte = FixedPoint {
        order: ByteOrder::Little,
        signed: false,
        padding: [false; 2],
        bit_offset: 0,
        precision: 8,
    };
    let attribute = |(i, (name, len)): (usize, (String, usize))| Attribute {
        name: name.into_bytes().into(),
        charset: Charset::Ascii,
        creation_order: (order != Order::None).then_some(i as u32),
        datatype: Datatype { size: 1, class: Class::FixedPoint(byte) },
        committed: None,
        dataspace: Dataspace {
            kind: SpaceKind::Simple,
            dims: vec![len as u64],
            max_dims: Vec::new(),
        },
        data: bytes(i, len),
    };
    attribute_lens(count).into_iter().enumerate().map(attribute).collect()
}

/// Groups without links that have this many attributes.
fn objects(counts: &[usize], order: Order) -> Vec<u8> {
    file(|fresh| {
        let mut out = Vec::new();
        for &count in counts {
            let mut all = dense_attributes(count, order);
            all.rotate_left(count / 2);
            let info = attributes::write_dense(&all, &attribute_info(order), SIZES, fresh).unwrap();
            let mut messages = group(&link_info(Order::Indexed));
            messages.push(message(kind::ATTRIBUTE_INFO, 4, |writer| info.encode(writer).unwrap()));
            let flags = match order {
                Order::None => 0,
                Order::Tracked => 4,
                Order::Indexed => 12,
            };
            let style = HeaderStyle { flags, ..HeaderStyle::default() };
            out.push((format!("o{count}"), put_header(fresh, style, &messages)));
        }
        out
    })
}

fn open(bytes: &[u8]) -> File {
    File::open(Arc::new(Memory::from_slice(bytes))).unwrap()
}

/// A file for a test, deleted unless the test fails.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Scratch {
        let name = format!("zonda-dense-{name}-{}.nc", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        eprintln!("{}", path.display());
        Scratch(path)
    }

    fn open(&self) -> File {
        open(&std::fs::read(&self.0).unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

/// Runs a command of the script on a file, and gives what it prints; `None` without a Python.
fn python(command: &str, file: &Scratch) -> Option<serde_json::Value> {
    let Some(python) = std::env::var_os("ZONDA_PYTHON") else {
        eprintln!("skipped: ZONDA_PYTHON names no Python with h5py and netCDF4");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dense.py");
    let out = Command::new(python).arg(script).arg(command).arg(&file.0).output().unwrap();
    assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
    Some(serde_json::from_slice(&out.stdout).unwrap())
}

/// Runs a program of the distribution on a file; `None` where it is not there.
fn program(name: &str, args: &[&str], file: &Scratch) -> Option<String> {
    let Ok(out) = Command::new(name).args(args).arg(&file.0).output() else {
        eprintln!("skipped: there is no {name}");
        return None;
    };
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && errors.is_empty(), "{name}: {errors}");
    Some(String::from_utf8(out.stdout).unwrap())
}

/// The links of each group of a file as the script prints them.
fn check_links(file: &File, want: &serde_json::Value) {
    for (group, want) in want.as_object().unwrap() {
        let want: Vec<&str> =
            want.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let group = child(file, group);
        assert_eq!(names(file, &group), want);
        for name in want.iter().step_by(1 + want.len() / 100) {
            assert!(group.link(file, name.as_bytes()).unwrap().is_some(), "{name}");
        }
    }
}

#[test]
fn groups_are_read() {
    let counts = [9, 65, 1000, 50_000];
    let scratch = Scratch::new("groups", &groups(&counts, Order::Indexed));
    let file = scratch.open();
    for count in counts {
        let group = child(&file, &format!("g{count}"));
        let want: Vec<String> = (0..count).map(link_name).collect();
        assert_eq!(names(&file, &group), want);
        for i in (0..count).step_by(97) {
            let link = group.link(&file, link_name(i).as_bytes()).unwrap().unwrap();
            assert_eq!(link.creation_order, Some(i as i64));
        }
        assert!(group.link(&file, b"link").unwrap().is_none());
    }
    python("read-links", &scratch);
    if let Some(text) = program("h5dump", &["-n", "1"], &scratch) {
        assert_eq!(text.lines().filter(|line| line.contains("link_")).count(), 51_074);
    }
}

#[test]
fn groups_are_changed_by_the_hdf5_library() {
    for order in [Order::None, Order::Tracked, Order::Indexed] {
        let scratch = Scratch::new("changed", &groups(&[9, 65, 1000, 5000], order));
        let Some(want) = python("change-links", &scratch) else { return };
        let file = scratch.open();
        check_links(&file, &want);
        // The library has made managers of free space.
        let extents = extents(&file);
        for signature in [b"FSHD", b"FSSE"] {
            assert!(extents.iter().any(|(at, _)| is_at(&file, *at, signature)), "{signature:?}");
        }
        program("h5dump", &["-n", "1"], &scratch);
    }
}

fn is_at(file: &File, at: u64, signature: &[u8]) -> bool {
    file.read("signature", FileAddr(at), 4).unwrap() == signature
}

/// The HDF5 library goes on where a heap ends, whether that is within a block row, behind the last
/// row of direct blocks or within or behind a nested block.
#[test]
fn heaps_are_continued_wherever_they_end() {
    // Links of 491 bytes: one fills a block of 512 bytes.
    let per_block = |len: usize| (len - 21) / 491;
    let lens = |rows: usize| (0..rows).flat_map(|row| [512 << row.saturating_sub(1); 4]);
    // The direct blocks of the root, then those of the four nested ones of its tenth row.
    let blocks: Vec<usize> = lens(9).chain((0..4).flat_map(|_| lens(7))).chain(lens(8)).collect();
    let ends = [1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 35, 36, 37, 38, 63, 64, 65, 92, 148, 149, 180];
    let make = |fresh: &mut NewBlocks<'_>| {
        let group = |&end: &usize| {
            let count: usize = blocks[..end].iter().map(|&len| per_block(len)).sum();
            let links: Vec<Link> = (0..count).map(|i| soft(format!("{i:0>475}"), i)).collect();
            (format!("e{end}"), dense_group(fresh, links, Order::Indexed))
        };
        ends.iter().map(group).collect()
    };
    let scratch = Scratch::new("ends", &file(make));
    let Some(want) = python("change-ends", &scratch) else { return };
    check_links(&scratch.open(), &want);
    program("h5dump", &["-n", "1"], &scratch);
}

#[test]
fn long_names_are_huge_objects() {
    let name = |i: usize| format!("{i}_{}", "n".repeat(1500 * i));
    let bytes = file(|fresh| {
        let links: Vec<Link> = (0..40).map(|i| soft(name(i), i)).collect();
        vec![("long".into(), dense_group(fresh, links, Order::Indexed))]
    });
    let scratch = Scratch::new("long", &bytes);
    let file = scratch.open();
    let want: Vec<String> = (0..40).map(name).collect();
    assert_eq!(names(&file, &child(&file, "long")), want);
    let Some(want) = python("change-long", &scratch) else { return };
    check_links(&scratch.open(), &want);
}

fn check_attributes(file: &File, path: &str, want: &[(String, Vec<u8>)]) {
    let object = child(file, path);
    let all = object.attributes(file).unwrap();
    assert_eq!(all.len(), want.len(), "{path}");
    for (i, (name, data)) in want.iter().enumerate() {
        assert_eq!(all.name(i), name.as_bytes());
        assert_eq!(&all.decode(i, file).unwrap().data, data, "{path} {name}");
        if i % (1 + want.len() / 100) == 0 {
            let found = object.attribute(file, name.as_bytes()).unwrap().unwrap();
            assert_eq!(&found.data, data, "{path} {name}");
        }
    }
    assert!(object.attribute(file, b"attribute").unwrap().is_none());
}

#[test]
fn attributes_are_read() {
    let counts = [9, 70, 3000];
    let scratch = Scratch::new("attributes", &objects(&counts, Order::Indexed));
    let file = scratch.open();
    for count in counts {
        let lens = attribute_lens(count).into_iter().enumerate();
        let want: Vec<_> = lens.map(|(i, (name, len))| (name, bytes(i, len))).collect();
        check_attributes(&file, &format!("o{count}"), &want);
    }
    python("read-attributes", &scratch);
    program("h5dump", &["-n", "1"], &scratch);
}

#[test]
fn attributes_are_changed_by_the_hdf5_library() {
    for order in [Order::None, Order::Tracked, Order::Indexed] {
        let scratch = Scratch::new("attributes-changed", &objects(&[9, 70, 3000], order));
        let Some(want) = python("change-attributes", &scratch) else { return };
        let file = scratch.open();
        for (path, want) in want.as_object().unwrap() {
            let item = |item: &serde_json::Value| {
                let number = |i: usize| item[i].as_u64().unwrap() as usize;
                (item[0].as_str().unwrap().to_owned(), bytes(number(1), number(2)))
            };
            let mut want: Vec<_> = want.as_array().unwrap().iter().map(item).collect();
            if order == Order::None {
                // Without creation order a list is in that of the index.
                let all = child(&file, path).attributes(&file).unwrap();
                let rank: BTreeMap<_, _> = (0..all.len()).map(|i| (all.name(i), i)).collect();
                want.sort_by_key(|(name, _)| rank[name.as_bytes()]);
            }
            check_attributes(&file, path, &want);
        }
        extents(&file);
    }
}

#[test]
fn netcdf_reads_groups_and_attributes() {
    let scratch = Scratch::new("netcdf-groups", &groups(&[9, 65, 1000], Order::Indexed));
    if let Some(text) = program("ncdump", &["-h"], &scratch) {
        assert_eq!(text.lines().filter(|line| line.starts_with("  group: link_")).count(), 1074);
    }
    python("netcdf-groups", &scratch);
    let scratch = Scratch::new("netcdf-attributes", &objects(&[9, 70, 3000], Order::Indexed));
    program("ncdump", &["-h"], &scratch);
    python("netcdf-attributes", &scratch);
}

/// What the heaps and trees of all groups take: none of it twice.
fn extents(file: &File) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    for link in file.object(file.root()).unwrap().links(file).unwrap() {
        let LinkTarget::Hard(addr) = link.target else { panic!("{link:?}") };
        let object = file.object(addr).unwrap();
        let body = |kind| object.header().find(kind).map(|found| object.body(file, found).unwrap());
        let info = LinkInfo::decode(body(kind::LINK_INFO).unwrap().reader(file)).unwrap();
        out.extend(links::dense_extents(file, &info).unwrap());
        if let Some(info) = body(kind::ATTRIBUTE_INFO) {
            let info = AttributeInfo::decode(info.reader(file)).unwrap();
            out.extend(attributes::dense_extents(file, &info).unwrap());
        }
    }
    let mut out: Vec<(u64, u64)> = out.iter().map(|(addr, len)| (addr.0, addr.0 + len)).collect();
    out.sort_unstable();
    for (one, next) in out.iter().zip(&out[1..]) {
        assert!(one.1 <= next.0, "{one:?} {next:?}");
    }
    out
}

/// Bytes of all structures of a file but headers: each signature in it begins an extent.
fn check_extents(bytes: &[u8]) {
    let file = open(bytes);
    let extents = extents(&file);
    let mut found = 0;
    for signature in [b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTLF", b"BTIN", b"FSHD", b"FSSE"] {
        for (at, _) in bytes.windows(4).enumerate().filter(|(_, four)| four == signature) {
            assert!(extents.iter().any(|extent| extent.0 == at as u64), "{signature:?} at {at}");
            found += 1;
        }
    }
    // The others are huge objects.
    assert!(found > 6 && found <= extents.len(), "{found} of {}", extents.len());
}

#[test]
fn extents_are_what_was_taken() {
    check_extents(&groups(&[9, 1000, 5000], Order::Indexed));
    check_extents(&objects(&[9, 70, 3000], Order::Tracked));
}

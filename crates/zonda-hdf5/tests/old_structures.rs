//! Old files of the reference, edited: version 1 headers and groups that are symbol tables get new
//! links and attributes where they are. Then `h5dump` reads them, and h5py of the Python that
//! `ZONDA_PYTHON` names, which goes on changing them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use zonda_hdf5::message::{
    AllocTime, AttributeInfo, ByteOrder, Charset, ChunkIndexKind, ChunkedLayout, Class, DataLayout,
    Dataspace, Datatype, FillTime, FillValue, FixedPoint, GroupInfo, Link, LinkInfo, LinkTarget,
    Padding, SpaceKind, SymbolTableMessage, kind,
};
use zonda_hdf5::object_header::{
    HeaderSpace, HeaderStyle, NewMessage, encode_header, first_chunk_len,
};
use zonda_hdf5::symbol_table::{symbol_table_extents, write_symbol_table};
use zonda_hdf5::{
    Attribute, ChunkLocation, ChunkTree, File, FileAddr, HeapId, HeapWriter, NewBlocks,
    ObjectHeader, Result, Sizes, Space, Writer, attributes, links,
};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

fn int() -> Datatype {
    let (order, signed) = (ByteOrder::Little, true);
    let bits = FixedPoint { order, signed, padding: [false; 2], bit_offset: 0, precision: 32 };
    Datatype { size: 4, class: Class::FixedPoint(bits) }
}

fn scalar() -> Dataspace {
    Dataspace { kind: SpaceKind::Scalar, dims: Vec::new(), max_dims: Vec::new() }
}

fn message(
    kind: u16,
    flags: u8,
    sizes: Sizes,
    encode: impl FnOnce(&mut Writer) -> Result<()>,
) -> NewMessage {
    let mut writer = Writer::new("test", sizes);
    encode(&mut writer).unwrap();
    NewMessage { kind, flags, creation_order: None, body: writer.finish().into() }
}

/// Scalar attributes "added 0" and so on, of these values.
fn added(count: i32) -> Vec<Attribute> {
    let one = |i: i32| Attribute {
        name: format!("added {i}").into_bytes().into(),
        charset: Charset::Ascii,
        creation_order: None,
        datatype: int(),
        committed: None,
        dataspace: scalar(),
        data: i.to_le_bytes().into(),
    };
    (0..count).map(one).collect()
}

fn dataset(
    space: &Dataspace,
    datatype: &Datatype,
    layout: &DataLayout,
    sizes: Sizes,
) -> Vec<NewMessage> {
    let alloc_time = match layout {
        DataLayout::Compact { .. } => AllocTime::Early,
        _ => AllocTime::Incremental,
    };
    let fill = FillValue {
        alloc_time: Some(alloc_time),
        fill_time: Some(FillTime::IfSet),
        undefined: false,
        value: None,
    };
    vec![
        message(kind::DATASPACE, 0, sizes, |writer| space.encode(writer)),
        message(kind::DATATYPE, 1, sizes, |writer| datatype.encode(writer)),
        message(kind::FILL_VALUE, 1, sizes, |writer| fill.encode(writer)),
        message(kind::DATA_LAYOUT, 0, sizes, |writer| layout.encode(writer)),
    ]
}

fn link(name: &str, target: LinkTarget) -> Link {
    Link { name: name.as_bytes().into(), charset: Charset::Ascii, creation_order: None, target }
}

/// Name `i` of the group "many".
fn name(i: u32) -> String {
    format!("name {i:05}{}", "x".repeat(usize::try_from(i % 30).unwrap()))
}

/// A header of version 1 with so many links to it.
fn put_header(
    fresh: &mut NewBlocks<'_>,
    reference_count: u32,
    messages: &[NewMessage],
    sizes: Sizes,
) -> FileAddr {
    let style = HeaderStyle { version: 1, reference_count, ..HeaderStyle::default() };
    let len = first_chunk_len(&style, messages);
    let space = HeaderSpace { addr: fresh.space().alloc(len).unwrap(), len };
    let mut none = |_| panic!("one block");
    let header = encode_header(&style, messages, &space, sizes, &mut none).unwrap();
    fresh.put_at(space.addr, header.first);
    space.addr
}

fn put_group(fresh: &mut NewBlocks<'_>, file: &File, links: &[Link]) -> FileAddr {
    let table = write_symbol_table(links, file.superblock(), fresh).unwrap();
    let table = message(kind::SYMBOL_TABLE, 0, file.sizes(), |writer| table.encode(writer));
    put_header(fresh, 1, &[table], file.sizes())
}

/// A dataset of 100 chunks of 4 numbers, chunk `i` being filled with `i`.
fn put_chunks(fresh: &mut NewBlocks<'_>, file: &Arc<File>) -> FileAddr {
    let mut tree = ChunkTree::new(file, &[4], 4).unwrap();
    for i in 0..100u8 {
        let addr = fresh.put(i32::from(i).to_le_bytes().repeat(4)).unwrap();
        let location = ChunkLocation { at: file.position(addr), len: 16, mask: 0 };
        tree.insert(&[u64::from(i)], location).unwrap();
    }
    let commit = tree.commit(fresh, false).unwrap();
    assert!(commit.patches.is_empty());
    let layout = DataLayout::Chunked(ChunkedLayout {
        chunk_dims: vec![4],
        elem_size: 4,
        index: ChunkIndexKind::BtreeV1,
        addr: commit.root,
        partial_edge_unfiltered: false,
        wide_filtered_sizes: false,
    });
    let (dims, max_dims) = (vec![400], vec![u64::MAX]);
    let space = Dataspace { kind: SpaceKind::Simple, dims, max_dims };
    put_header(fresh, 1, &dataset(&space, &int(), &layout, file.sizes()), file.sizes())
}

/// A dataset of 300 texts.
fn put_texts(fresh: &mut NewBlocks<'_>, file: &File) -> FileAddr {
    let sizes = file.sizes();
    let mut heap = HeapWriter::new(sizes);
    let mut data = Vec::new();
    for i in 0..300 {
        let text = format!("text {i}");
        let id = heap.put(text.as_bytes(), fresh.space()).unwrap();
        let len = u32::try_from(text.len()).unwrap();
        HeapId::encode(Some(id), len, sizes, &mut data).unwrap();
    }
    heap.commit(file, fresh.space()).unwrap();
    let layout = DataLayout::Compact { data: data.into() };
    let (padding, charset) = (Padding::NullTerminated, Charset::Utf8);
    let class = Class::VarLenString { padding, charset };
    let text = Datatype { size: 8 + u32::from(sizes.offset), class };
    let space = Dataspace { kind: SpaceKind::Simple, dims: vec![300], max_dims: Vec::new() };
    put_header(fresh, 1, &dataset(&space, &text, &layout, sizes), sizes)
}

/// A new group, whose 500 links and 200 attributes are outside of its header.
fn put_dense(fresh: &mut NewBlocks<'_>, sizes: Sizes) -> FileAddr {
    let info = LinkInfo {
        tracked: false,
        indexed: false,
        max_creation_index: None,
        heap: None,
        name_index: None,
        order_index: None,
    };
    let path = || LinkTarget::Soft(b"/a dataset".as_slice().into());
    let all: Vec<_> = (0..500).map(|i| link(&name(i), path())).collect();
    let info = links::write_dense(&all, &info, sizes, fresh).unwrap();
    let group_info = GroupInfo { phase_change: None, estimates: None };
    let no_attributes = AttributeInfo {
        tracked: false,
        indexed: false,
        max_creation_index: None,
        heap: None,
        name_index: None,
        order_index: None,
    };
    let attributes = attributes::write_dense(&added(200), &no_attributes, sizes, fresh).unwrap();
    let messages = [
        message(kind::LINK_INFO, 0, sizes, |writer| info.encode(writer)),
        message(kind::GROUP_INFO, 1, sizes, |writer| group_info.encode(writer)),
        message(kind::ATTRIBUTE_INFO, 4, sizes, |writer| attributes.encode(writer)),
    ];
    let style = HeaderStyle::default();
    let len = first_chunk_len(&style, &messages);
    let space = HeaderSpace { addr: fresh.space().alloc(len).unwrap(), len };
    let mut none = |_| panic!("one block");
    let header = encode_header(&style, &messages, &space, sizes, &mut none).unwrap();
    fresh.put_at(space.addr, header.first);
    space.addr
}

/// The message of a group that is a symbol table.
fn table_of(file: &File, header: &ObjectHeader) -> SymbolTableMessage {
    let table = header.find(kind::SYMBOL_TABLE).unwrap();
    SymbolTableMessage::decode(header.reader(file.sizes(), table)).unwrap()
}

/// Adds to the root group: 20 attributes, a dataset, a group without links and one with `count`, two
/// of three of which are hard ones to the dataset; and what has its own structures: a dataset of
/// chunks, one of texts, a group with links and attributes outside of its header.
fn edited(bytes: &[u8], count: u32) -> Vec<u8> {
    let storage = Arc::new(Memory::from_slice(bytes));
    let file = Arc::new(File::open(Arc::clone(&storage) as Arc<dyn Storage>).unwrap());
    let sizes = file.sizes();
    let (base, eof) = (file.superblock().base, file.superblock().eof);
    let mut space = Space::new(eof - base);
    let mut fresh = NewBlocks::new(&mut space);

    let hard = u32::try_from((0..count).filter(|i| i % 3 != 0).count()).unwrap();
    let layout = DataLayout::Compact { data: 42i32.to_le_bytes().into() };
    let dataset = dataset(&scalar(), &int(), &layout, sizes);
    let dataset = put_header(&mut fresh, hard + 1, &dataset, sizes);
    let one = |i: u32| match i % 3 {
        0 => link(&name(i), LinkTarget::Soft(b"/a dataset".as_slice().into())),
        _ => link(&name(i), LinkTarget::Hard(dataset)),
    };
    let links: Vec<_> = (0..count).rev().map(one).collect();
    let many = put_group(&mut fresh, &file, &links);
    let empty = put_group(&mut fresh, &file, &[]);
    let chunks = put_chunks(&mut fresh, &file);
    let texts = put_texts(&mut fresh, &file);
    let dense = put_dense(&mut fresh, sizes);

    let root = file.object(file.root()).unwrap();
    let mut links = root.links(&file).unwrap();
    for (name, addr) in [
        ("a dataset", dataset),
        ("many", many),
        ("empty", empty),
        ("chunks", chunks),
        ("texts", texts),
        ("dense", dense),
    ] {
        links.push(link(name, LinkTarget::Hard(addr)));
    }
    let header = root.header();
    let old = table_of(&file, header);
    let extents = symbol_table_extents(&file, &old).unwrap();
    assert!(extents.iter().any(|(addr, _)| *addr == old.btree), "{extents:?}");
    let table = write_symbol_table(&links, file.superblock(), &mut fresh).unwrap();
    let mut messages = Vec::new();
    for kept in &header.messages {
        match kept.kind {
            kind::NIL | kind::CONTINUATION => {}
            kind::SYMBOL_TABLE => {
                let flags = kept.flags;
                messages.push(message(kept.kind, flags, sizes, |writer| table.encode(writer)));
            }
            _ => messages.push(header.carry(kept)),
        }
    }
    for attribute in added(20) {
        messages.push(message(kind::ATTRIBUTE, 0, sizes, |writer| attribute.encode(writer)));
    }
    let mut place = |len| fresh.space().alloc(len);
    let new =
        encode_header(&header.style(), &messages, &header.space(), sizes, &mut place).unwrap();
    let (addr, block) = new.continuation.unwrap();
    fresh.put_at(addr, block);
    fresh.write(&file).unwrap();
    storage.set_len(base + space.end()).unwrap();
    file.write_superblock(space.end()).unwrap();
    let cache = file.superblock().encode_root_cache(&table).unwrap();
    let switch = [Some((file.position(header.addr), new.first)), cache];
    for (at, bytes) in switch.into_iter().flatten() {
        storage.write_at(at, &bytes).unwrap();
    }
    let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    bytes
}

/// What a command says, if it is installed.
fn run(command: impl AsRef<OsStr>, arguments: &[&OsStr]) -> Option<String> {
    let output = match Command::new(command.as_ref()).args(arguments).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: {} is not installed", command.as_ref().display());
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {text}{errors}");
    Some(text)
}

/// Names in a group of the root.
fn names(file: &File, group: &[u8]) -> BTreeSet<String> {
    let root = file.object(file.root()).unwrap();
    let LinkTarget::Hard(addr) = root.link(file, group).unwrap().unwrap().target else {
        panic!("a soft link")
    };
    let links = file.object(addr).unwrap().links(file).unwrap();
    links.iter().map(|link| String::from_utf8(link.name.to_vec()).unwrap()).collect()
}

fn open(bytes: &[u8]) -> File {
    File::open(Arc::new(Memory::from_slice(bytes))).unwrap()
}

#[test]
fn old_files_are_edited() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let script = folder.join("old_structures.py");
    let python = std::env::var_os("ZONDA_PYTHON");
    if python.is_none() {
        eprintln!("skipped: ZONDA_PYTHON names no Python with h5py");
    }
    // Nodes of two entries and children; addresses of 4 bytes, lengths of 8, behind a user block.
    let bases = [("symbol_table.h5", "link00", 2000), ("old_narrow.h5", "words", 10_000)];
    for (base, in_root, most) in bases {
        let bytes = std::fs::read(folder.join(base)).unwrap();
        for count in [0, 1, 8, 9, 300, most] {
            let bytes = edited(&bytes, count);
            let file = open(&bytes);
            assert_eq!(names(&file, b"empty"), BTreeSet::new());
            assert_eq!(names(&file, b"many"), (0..count).map(name).collect());
            let root = file.object(file.root()).unwrap();
            assert!(root.link(&file, in_root.as_bytes()).unwrap().is_some());
            assert_eq!((root.header().addr, root.header().version), (file.root(), 1));

            let path = format!("zonda-old-{count}-{}-{base}", std::process::id());
            let path = std::env::temp_dir().join(path);
            std::fs::write(&path, &bytes).unwrap();
            eprintln!("{}", path.display());
            if let Some(dumped) = run("h5dump", &[OsStr::new("-n"), path.as_os_str()]) {
                let found = dumped.matches("/many/name ").count();
                assert_eq!(found, usize::try_from(count).unwrap(), "{dumped}");
            }
            if let Some(python) = &python {
                let count = count.to_string();
                let arguments = [script.as_os_str(), path.as_os_str(), OsStr::new(&count)];
                let said = run(python, &arguments).unwrap();
                let said = said.lines().map(String::from).collect();
                let file = open(&std::fs::read(&path).unwrap());
                assert_eq!(names(&file, b"many"), said, "as h5py left it");
                run("h5dump", &[OsStr::new("-n"), path.as_os_str()]);
            }
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn what_entries_say_of_groups_goes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let storage =
        Arc::new(Memory::from_slice(&std::fs::read(folder.join("symbol_table.h5")).unwrap()));
    let file = File::open(Arc::clone(&storage) as Arc<dyn Storage>).unwrap();
    let root = file.object(file.root()).unwrap();
    let table = table_of(&file, root.header());
    let mut count = 0;
    let before = root.links(&file).unwrap();
    for link in &before {
        let edit = links::uncache_entry(&file, &table, &link.name).unwrap();
        // The library says it of all groups, of which there is but the root group.
        assert_eq!(edit.is_some(), matches!(link.target, LinkTarget::Hard(_)), "{link:?}");
        let Some((at, bytes)) = edit else { continue };
        // The cache type, nothing, the table, as it is in the header.
        let old = file.read("entry", at, bytes.len() as u64).unwrap();
        let addrs = [table.btree, table.heap].map(|addr| addr.0.to_le_bytes());
        assert_eq!(old, [&[1, 0, 0, 0, 0, 0, 0, 0], addrs.as_flattened()].concat());
        storage.write_at(file.position(at), &bytes).unwrap();
        file.forget();
        assert_eq!(links::uncache_entry(&file, &table, &link.name).unwrap(), None);
        count += 1;
    }
    assert!(count > 10, "{count}");
    assert_eq!(links::uncache_entry(&file, &table, b"no such name").unwrap(), None);
    assert_eq!(root.links(&file).unwrap(), before);
}

//! A file of all kinds of objects, put together here, read by the HDF5 library: by `h5dump`, and
//! by h5py of the Python that `ZONDA_PYTHON` names, which then changes it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use zonda_hdf5::message::{
    AllocTime, AttributeInfo, ByteOrder, Charset, ChunkIndexKind, ChunkedLayout, Class, Compound,
    DataLayout, Dataspace, Datatype, EnumMember, FillTime, FillValue, FilterDescription,
    FixedPoint, FloatingPoint, GroupInfo, Link, LinkInfo, LinkTarget, Member, Normalisation,
    Padding, SpaceKind, encode_filter_pipeline, encode_reference_count, kind,
};
use zonda_hdf5::object_header::{
    HeaderSpace, HeaderStyle, NewMessage, encode_header, first_chunk_len,
};
use zonda_hdf5::shared::SharedReference;
use zonda_hdf5::space::SECTOR;
use zonda_hdf5::{Attribute, File, FileAddr, NewBlocks, Result, Sizes, Space, Writer};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

fn integer(size: u32, signed: bool, order: ByteOrder) -> Datatype {
    let precision = u16::try_from(size * 8).unwrap();
    let padding = [false; 2];
    let bits = FixedPoint { order, signed, padding, bit_offset: 0, precision };
    Datatype { size, class: Class::FixedPoint(bits) }
}

fn int(size: u32) -> Datatype {
    integer(size, true, ByteOrder::Little)
}

fn float(double: bool) -> Datatype {
    let (size, exponent_at, exponent_bits, bias) =
        if double { (8, 52, 11, 1023) } else { (4, 23, 8, 127) };
    let precision = u16::from(size) * 8;
    let number = FloatingPoint {
        order: ByteOrder::Little,
        bit_offset: 0,
        precision,
        normalisation: Normalisation::Implied,
        sign: size * 8 - 1,
        exponent_at,
        exponent_bits,
        mantissa_at: 0,
        mantissa_bits: exponent_at,
        bias,
    };
    Datatype { size: u32::from(size), class: Class::FloatingPoint(number) }
}

fn text(size: u32) -> Datatype {
    let (padding, charset) = (Padding::NullTerminated, Charset::Ascii);
    Datatype { size, class: Class::String { padding, charset } }
}

fn pair() -> Datatype {
    let member = |name: &[u8], offset, datatype| Member { name: name.into(), offset, datatype };
    let dims = vec![3];
    let three = Datatype { size: 6, class: Class::Array { base: Box::new(int(2)), dims } };
    let members = vec![member(b"d", 0, float(true)), member(b"three", 8, three)];
    Datatype { size: 16, class: Class::Compound(Compound { members }) }
}

fn colour() -> Datatype {
    let member = |name: &[u8], value| EnumMember { name: name.into(), value: Box::new([value]) };
    let (base, members) = (Box::new(int(1)), vec![member(b"red", 1), member(b"blue", 7)]);
    Datatype { size: 1, class: Class::Enum { base, members } }
}

fn simple(dims: &[u64]) -> Dataspace {
    Dataspace { kind: SpaceKind::Simple, dims: dims.into(), max_dims: Vec::new() }
}

fn of_kind(kind: SpaceKind) -> Dataspace {
    Dataspace { kind, dims: Vec::new(), max_dims: Vec::new() }
}

fn message(kind: u16, flags: u8, encode: impl FnOnce(&mut Writer) -> Result<()>) -> NewMessage {
    let mut writer = Writer::new("test", Sizes::EIGHT);
    encode(&mut writer).unwrap();
    NewMessage { kind, flags, creation_order: None, body: writer.finish().into() }
}

/// Attributes, and the message about them.
fn attributes(
    list: &[(&str, Datatype, Dataspace, &[u8])],
    committed: Option<FileAddr>,
) -> Vec<NewMessage> {
    let count = u16::try_from(list.len()).unwrap();
    let info = AttributeInfo {
        tracked: true,
        indexed: true,
        max_creation_index: Some(count),
        heap: None,
        name_index: None,
        order_index: None,
    };
    let mut messages = vec![message(kind::ATTRIBUTE_INFO, 4, |writer| info.encode(writer))];
    for (order, (name, datatype, dataspace, data)) in list.iter().enumerate() {
        let attribute = Attribute {
            name: name.as_bytes().into(),
            charset: Charset::Ascii,
            creation_order: None,
            datatype: datatype.clone(),
            committed: committed.filter(|_| *datatype == pair()),
            dataspace: dataspace.clone(),
            data: data.to_vec(),
        };
        let mut new = message(kind::ATTRIBUTE, 0, |writer| attribute.encode(writer));
        new.creation_order = Some(u16::try_from(order).unwrap());
        messages.push(new);
    }
    messages
}

/// What makes a group of links.
fn group(links: &[(&str, LinkTarget)]) -> Vec<NewMessage> {
    let info = LinkInfo {
        tracked: true,
        indexed: true,
        max_creation_index: Some(i64::try_from(links.len()).unwrap()),
        heap: None,
        name_index: None,
        order_index: None,
    };
    let thresholds = GroupInfo { phase_change: Some((64, 60)), estimates: None };
    let mut messages = vec![
        message(kind::LINK_INFO, 0, |writer| info.encode(writer)),
        message(kind::GROUP_INFO, 1, |writer| thresholds.encode(writer)),
    ];
    for (order, (name, target)) in links.iter().enumerate() {
        let link = Link {
            name: name.as_bytes().into(),
            charset: if name.is_ascii() { Charset::Ascii } else { Charset::Utf8 },
            creation_order: Some(i64::try_from(order).unwrap()),
            target: target.clone(),
        };
        messages.push(message(kind::LINK, 0, |writer| link.encode(writer)));
    }
    messages
}

/// What makes a dataset; the value is the one of elements that were never written.
fn dataset(
    datatype: NewMessage,
    space: &Dataspace,
    value: Option<&[u8]>,
    layout: &DataLayout,
) -> Vec<NewMessage> {
    let alloc_time = match layout {
        DataLayout::Compact { .. } => AllocTime::Early,
        DataLayout::Chunked(_) => AllocTime::Incremental,
        _ => AllocTime::Late,
    };
    let fill = FillValue {
        alloc_time: Some(alloc_time),
        fill_time: Some(FillTime::IfSet),
        undefined: false,
        value: value.map(Into::into),
    };
    vec![
        message(kind::DATASPACE, 0, |writer| space.encode(writer)),
        datatype,
        message(kind::FILL_VALUE, 1, |writer| fill.encode(writer)),
        message(kind::DATA_LAYOUT, 0, |writer| layout.encode(writer)),
    ]
}

fn plain(datatype: &Datatype) -> NewMessage {
    message(kind::DATATYPE, 1, |writer| datatype.encode(writer))
}

/// Objects on their way into a file.
struct Objects<'a> {
    fresh: NewBlocks<'a>,
    continued: usize,
}

impl Objects<'_> {
    fn put(&mut self, style: &HeaderStyle, messages: &[NewMessage], most: u64) -> FileAddr {
        let len = first_chunk_len(style, messages).min(most);
        let addr = self.fresh.space().alloc_in_sector(len).unwrap();
        self.put_at(style, messages, HeaderSpace { addr, len })
    }

    fn put_at(
        &mut self,
        style: &HeaderStyle,
        messages: &[NewMessage],
        at: HeaderSpace,
    ) -> FileAddr {
        let space = self.fresh.space();
        let mut fresh = |len| space.alloc(len);
        let header = encode_header(style, messages, &at, Sizes::EIGHT, &mut fresh).unwrap();
        self.fresh.put_at(at.addr, header.first);
        if let Some((addr, block)) = header.continuation {
            self.continued += 1;
            self.fresh.put_at(addr, block);
        }
        at.addr
    }
}

const STYLE: HeaderStyle = HeaderStyle {
    version: 2,
    reference_count: 1,
    flags: 0x0c,
    phase_change: Some((64, 60)),
    times: None,
};

fn le<const N: usize, const M: usize>(values: [[u8; M]; N]) -> Vec<u8> {
    values.concat()
}

/// The bytes of the file.
fn assembled(user_block: u64) -> Vec<u8> {
    let storage = Arc::new(Memory::new());
    let file = File::create(Arc::clone(&storage) as Arc<dyn Storage>, user_block).unwrap();
    let mut space = Space::new(SECTOR);
    let mut objects = Objects { fresh: NewBlocks::new(&mut space), continued: 0 };

    // A committed type: linked once, used by a dataset and an attribute.
    let count = message(kind::REFERENCE_COUNT, 4, |writer| encode_reference_count(3, writer));
    let committed = [message(kind::DATATYPE, 5, |writer| pair().encode(writer)), count];
    let style = HeaderStyle { times: Some([1_000_000_000; 4]), ..HeaderStyle::default() };
    let committed = objects.put(&style, &committed, SECTOR);
    let shared = || {
        let reference = SharedReference::Committed(committed);
        message(kind::DATATYPE, 3, |writer| reference.encode(writer))
    };

    let values = le([1.5f64, -2.0, 1e300].map(f64::to_le_bytes));
    let (addr, len) = (objects.fresh.put(values.clone()).unwrap(), values.len() as u64);
    let layout = DataLayout::Contiguous { addr: Some(addr), len: Some(len) };
    let contiguous = dataset(plain(&float(true)), &simple(&[3]), None, &layout);
    let contiguous = objects.put(&STYLE, &contiguous, SECTOR);

    let layout = DataLayout::Contiguous { addr: None, len: Some(24) };
    let fill = 0x7cf0_0000u32.to_le_bytes();
    let empty = dataset(plain(&float(false)), &simple(&[2, 3]), Some(&fill), &layout);
    let empty = objects.put(&STYLE, &empty, SECTOR);

    let values: Vec<u8> = (0..40u8).collect();
    let layout = DataLayout::Compact { data: values.into() };
    let big = integer(4, false, ByteOrder::Big);
    let compact = dataset(plain(&big), &simple(&[10]), None, &layout);
    let compact = objects.put(&STYLE, &compact, SECTOR);

    let layout = DataLayout::Compact { data: 42i16.to_le_bytes().into() };
    let scalar = dataset(plain(&int(2)), &of_kind(SpaceKind::Scalar), None, &layout);
    let scalar = objects.put(&STYLE, &scalar, SECTOR);

    let chunks = ChunkedLayout {
        chunk_dims: vec![1, 4],
        elem_size: 8,
        index: ChunkIndexKind::BtreeV1,
        addr: None,
        partial_edge_unfiltered: false,
        wide_filtered_sizes: false,
    };
    let growing =
        Dataspace { kind: SpaceKind::Simple, dims: vec![2, 4], max_dims: vec![u64::MAX, 4] };
    let layout = DataLayout::Chunked(chunks);
    let fill = (-7i64).to_le_bytes();
    let mut chunked = dataset(plain(&int(8)), &growing, Some(&fill), &layout);
    let filter = |id, flags, params: &[u32]| FilterDescription {
        id,
        name: Box::default(),
        flags,
        params: params.into(),
    };
    let filters = [filter(2, 1, &[8]), filter(1, 1, &[4]), filter(3, 0, &[])];
    chunked
        .push(message(kind::FILTER_PIPELINE, 1, |writer| encode_filter_pipeline(&filters, writer)));
    let chunked = objects.put(&STYLE, &chunked, SECTOR);

    // A dataset with more attributes than its first block has room for.
    let element = |d: f64, three: [i16; 3]| {
        let three = le(three.map(i16::to_le_bytes));
        [&d.to_le_bytes()[..], &three, &[0; 2]].concat()
    };
    let pairs = [element(0.5, [1, 2, 3]), element(-0.5, [-1, -2, -3])].concat();
    let (addr, len) = (objects.fresh.put(pairs.clone()).unwrap(), pairs.len() as u64);
    let layout = DataLayout::Contiguous { addr: Some(addr), len: Some(len) };
    let mut many = dataset(shared(), &simple(&[2]), None, &layout);
    let scalar_space = of_kind(SpaceKind::Scalar);
    let opaque = Datatype { size: 3, class: Class::Opaque { tag: b"tag".as_slice().into() } };
    let (padding, charset) = (Padding::NullTerminated, Charset::Utf8);
    let string = Datatype { size: 16, class: Class::VarLenString { padding, charset } };
    let base = Box::new(int(4));
    let sequence = Datatype { size: 16, class: Class::VarLenSequence { base } };
    let base = Box::new(integer(1, false, ByteOrder::Little));
    let array = Datatype { size: 4, class: Class::Array { base, dims: vec![2, 2] } };
    let ints = le([1i32, -2, 3].map(i32::to_le_bytes));
    let list: [(&str, Datatype, Dataspace, &[u8]); 14] = [
        ("i1", int(1), simple(&[2]), &[0x80, 0x7f]),
        ("u8", integer(8, false, ByteOrder::Little), simple(&[1]), &[0xff; 8]),
        ("i4", int(4), simple(&[3]), &ints),
        ("big", integer(4, true, ByteOrder::Big), scalar_space.clone(), &[0, 0, 1, 0]),
        ("f4", float(false), simple(&[1]), &2.5f32.to_le_bytes()),
        ("text", text(5), scalar_space.clone(), b"hours"),
        ("none", text(1), of_kind(SpaceKind::Null), b""),
        ("colour", colour(), simple(&[2]), &[7, 1]),
        ("array", array, simple(&[1]), &[1, 2, 3, 4]),
        ("opaque", opaque, scalar_space.clone(), b"\x01\x02\x03"),
        ("string", string, simple(&[1]), &[0; 16]),
        ("sequence", sequence, simple(&[1]), &[0; 16]),
        ("pair", pair(), simple(&[2]), &pairs),
        ("grid", int(1), simple(&[2, 3]), &[1, 2, 3, 4, 5, 6]),
    ];
    many.extend(attributes(&list, Some(committed)));
    let many = objects.put(&STYLE, &many, 400);
    assert_eq!(objects.continued, 1);

    let inner = group(&[("contiguous", LinkTarget::Hard(contiguous))]);
    let inner = objects.put(&STYLE, &inner, SECTOR);
    let outer = group(&[
        ("pair", LinkTarget::Hard(committed)),
        ("inner", LinkTarget::Hard(inner)),
        ("soft", LinkTarget::Soft(b"/many".as_slice().into())),
    ]);
    let outer = objects.put(&STYLE, &outer, SECTOR);

    let mut root = group(&[
        ("outer", LinkTarget::Hard(outer)),
        ("many", LinkTarget::Hard(many)),
        ("empty", LinkTarget::Hard(empty)),
        ("compact", LinkTarget::Hard(compact)),
        ("h\u{f6}he", LinkTarget::Hard(scalar)),
        ("chunked", LinkTarget::Hard(chunked)),
    ]);
    root.extend(attributes(&[("title", text(4), scalar_space, b"root")], None));
    let at = HeaderSpace { addr: file.root(), len: SECTOR - file.root().0 };
    objects.put_at(&STYLE, &root, at);

    objects.fresh.write(&file).unwrap();
    file.storage().barrier().unwrap();
    file.storage().set_len(user_block + space.end()).unwrap();
    file.write_superblock(space.end()).unwrap();
    // What was written is read through the same file.
    let root = file.object(file.root()).unwrap();
    assert_eq!(root.links(&file).unwrap().len(), 6);
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
    assert!(output.status.success(), "{arguments:?}: {text}{errors}");
    assert!(errors.is_empty(), "{arguments:?}: {errors}");
    Some(text)
}

/// The file on disk; it stays there where a test fails.
fn on_disk(name: &str, user_block: u64) -> PathBuf {
    let path = std::env::temp_dir().join(format!("zonda-written-{name}-{}.h5", std::process::id()));
    std::fs::write(&path, assembled(user_block)).unwrap();
    eprintln!("{}", path.display());
    path
}

#[test]
fn read_by_h5dump() {
    for user_block in [0, 512] {
        let path = on_disk(&format!("dump{user_block}"), user_block);
        let arguments = [OsStr::new("-B"), OsStr::new("-p"), path.as_os_str()];
        let Some(dumped) = run("h5dump", &arguments) else { return };
        let user_block_said = format!("USERBLOCK_SIZE {user_block}");
        for expected in [
            "SUPERBLOCK_VERSION 2",
            &user_block_said,
            "DATATYPE \"pair\" H5T_COMPOUND",
            "DATATYPE  \"/outer/pair\"",
            "COMPRESSION DEFLATE { LEVEL 4 }",
            "PREPROCESSING SHUFFLE",
            "CHECKSUM FLETCHER32",
            "( 2, 4 ) / ( H5S_UNLIMITED, 4 )",
            "H5T_ARRAY { [2][2] H5T_STD_U8LE }",
            "OPAQUE_TAG \"tag\"",
            "01:02:03",
            "SOFTLINK \"soft\"",
            "\"hours\"",
            "(0): blue, red",
            "(0): 1.5, -2, 1e+300",
            "(1,0): -7, -7, -7, -7",
            "(1,0): 9.96921e+36, 9.96921e+36, 9.96921e+36",
        ] {
            assert!(dumped.contains(expected), "{expected}: {dumped}");
        }
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn read_and_changed_by_h5py() {
    let Some(python) = std::env::var_os("ZONDA_PYTHON") else {
        eprintln!("skipped: ZONDA_PYTHON names no Python with h5py");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/read_written.py");
    for user_block in [0, 2048] {
        let path = on_disk(&format!("h5py{user_block}"), user_block);
        run(&python, &[script.as_os_str(), path.as_os_str()]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = File::open(Arc::new(Memory::from_slice(&bytes))).unwrap();
        let root = file.object(file.root()).unwrap();
        let names: Vec<_> = root.links(&file).unwrap().into_iter().map(|link| link.name).collect();
        let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
        let expected = ["outer", "many", "empty", "compact", "h\u{f6}he", "chunked"];
        assert_eq!(names[..5], expected[..5]);
        assert_eq!(names[5..], ["added", "renamed"]);
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn the_same_calls_give_the_same_bytes() {
    assert_eq!(assembled(0), assembled(0));
}

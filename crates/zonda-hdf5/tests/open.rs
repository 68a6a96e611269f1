//! Files of the reference library: what opening costs, and what their superblocks ask for.

use std::path::Path;
use std::sync::Arc;

use zonda_hdf5::message::{AttributeMessage, Class, DataLayout, LinkTarget, kind};
use zonda_hdf5::{File, FileAddr, HdfError, HeapCursor, Object, ObjectKind, Sizes};
use zonda_storage::backend::Memory;
use zonda_storage::layer::{Count, CountHandle};

fn bytes(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read(path).unwrap()
}

fn open(bytes: &[u8]) -> zonda_hdf5::Result<File> {
    File::open(Arc::new(Memory::from_slice(bytes)))
}

/// The file, and what counts the reads of it.
fn counted(bytes: &[u8]) -> (File, CountHandle) {
    let storage = Count::new(Memory::from_slice(bytes));
    let counts = storage.handle();
    (File::open(Arc::new(storage)).unwrap(), counts)
}

fn child(file: &File, name: &str) -> FileAddr {
    let root = file.object(file.root()).unwrap();
    match root.link(file, name.as_bytes()).unwrap().unwrap().target {
        LinkTarget::Hard(addr) => addr,
        other => panic!("{other:?}"),
    }
}

/// The text of an attribute in the header of `object`.
fn attribute(file: &File, object: &Object, name: &str) -> Option<String> {
    object.header().all(kind::ATTRIBUTE).find_map(|message| {
        let body = object.body(file, message).unwrap();
        let attribute = AttributeMessage::decode(file, body.reader(file)).unwrap();
        let text = String::from_utf8(attribute.data.to_vec()).unwrap();
        (attribute.name == name.as_bytes()).then_some(text)
    })
}

#[test]
fn opening_is_one_read_that_has_the_root_header_too() {
    for name in ["narrow.h5", "virtual-v110.h5"] {
        let (file, counts) = counted(&bytes(name));
        assert_eq!(counts.counts().read.calls, 1, "{name}");
        assert_eq!(file.object(file.root()).unwrap().kind(), ObjectKind::Group);
        assert_eq!(counts.counts().read.calls, 1, "{name}");
    }
}

#[test]
fn metadata_in_an_image_of_the_cache() {
    let bytes = bytes("cache_image.h5");
    let (file, _) = counted(&bytes);
    let root = usize::try_from(file.root().0).unwrap();
    assert_ne!(&bytes[root..root + 4], b"OHDR", "there is nothing at the address itself");
    assert!(file.has_cache_image());
    let root = file.object(file.root()).unwrap();
    assert_eq!(attribute(&file, &root, "title").as_deref(), Some("image"));
    let data = file.object(child(&file, "data")).unwrap();
    assert_eq!(data.dataspace(&file).unwrap().dims, [3]);
    let DataLayout::Contiguous { addr: Some(addr), .. } = data.layout(&file).unwrap() else {
        panic!("not contiguous")
    };
    assert_eq!(file.read("data", addr, 6).unwrap(), [0, 0, 1, 0, 2, 0]);
}

#[test]
fn narrow_addresses_behind_a_user_block() {
    let (file, counts) = counted(&bytes("narrow.h5"));
    assert_eq!((file.sizes(), file.superblock().base), (Sizes { offset: 4, length: 4 }, 1024));
    assert_eq!(counts.counts().read.calls, 1);
    let words = file.object(child(&file, "words")).unwrap();
    assert_eq!(words.comment(&file).unwrap().as_deref(), Some(b"what is it?".as_slice()));
    assert!(words.modification_time(&file).unwrap().is_some_and(|seconds| seconds > 1_700_000_000));
    let datatype = words.datatype(&file).unwrap();
    assert!(matches!(datatype.class, Class::VarLenString { .. }) && datatype.size == 12);
    let DataLayout::Contiguous { addr: Some(addr), len } = words.layout(&file).unwrap() else {
        panic!("not contiguous")
    };
    let elements = file.read("words", addr, len.unwrap()).unwrap();
    let mut reader = file.reader("words", addr, &elements);
    let mut cursor = HeapCursor::default();
    for expected in ["one", "", "three"] {
        assert_eq!(reader.u32().unwrap() as usize, expected.len());
        let (heap, index) = (reader.addr().unwrap().unwrap(), reader.u32().unwrap());
        let text = cursor.get(&file, heap, index).unwrap().unwrap_or_default();
        assert_eq!(text.strip_suffix(b"\0").unwrap_or(text), expected.as_bytes());
    }
    let committed = file.object(child(&file, "committed")).unwrap();
    assert_eq!(committed.committed_type(&file).unwrap(), Some(child(&file, "type")));
    let datatype = committed.datatype(&file).unwrap();
    assert_eq!(datatype, file.object(child(&file, "type")).unwrap().datatype(&file).unwrap());
    let Class::Compound(compound) = &datatype.class else { panic!("{datatype:?}") };
    assert_eq!((datatype.size, compound.members[1].offset), (52, 4));
    let filters = committed.filters(&file).unwrap();
    assert_eq!(filters.iter().map(|filter| filter.id).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn files_cut_short_are_refused() {
    let bytes = bytes("links.h5");
    for len in [bytes.len() - 1, 4000, 2048, 100, 48, 20, 8] {
        let error = open(&bytes[..len]).unwrap_err();
        let is_short = matches!(error, HdfError::FileTruncated { .. } | HdfError::Truncated { .. });
        assert!(is_short, "{len}: {error}");
    }
    assert!(matches!(open(&bytes[..7]), Err(HdfError::NotHdf5)));
}

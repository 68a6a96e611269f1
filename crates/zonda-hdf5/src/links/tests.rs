//! Groups built byte by byte; what real ones look like is tested with files.

use super::*;
use crate::built_file::{BuiltFile, at, heap_of_one, le, object, tree_of_one_leaf};

/// A hard link, as in a header and in a heap.
fn link_message(name: &[u8]) -> Vec<u8> {
    let mut bytes = le(&[(1, 1), (1, 1), (name.len() as u64, 2)]);
    bytes.extend(name);
    bytes.extend(le(&[(96, 8)]));
    bytes
}

/// A group whose index of names refers so many times to one link.
fn dense(times: usize, name: &[u8]) -> (File, FileAddr) {
    let mut built = BuiltFile::default();
    let (heap, id) = heap_of_one(&mut built, &link_message(name), 7);
    let mut record = lookup3(name, 0).to_le_bytes().to_vec();
    record.extend(id);
    let names = tree_of_one_leaf(&mut built, record_type::LINK_NAME, &vec![record; times]);
    let info = le(&[(0, 1), (0, 1), (heap, 8), (names, 8)]);
    let group = built.put_checked(&object(&[(0x02, info)]));
    (built.file(), at(group))
}

#[test]
fn many_records_of_one_long_link_end_in_an_error() {
    let name = [b'n'; 2000];
    let (file, group) = dense(1, &name);
    let links = file.object(group).unwrap().links(&file).unwrap();
    assert_eq!((links.len(), &*links[0].name), (1, name.as_slice()));
    let (file, group) = dense(100, &name);
    let error = file.object(group).unwrap().links(&file).unwrap_err();
    assert!(matches!(error, HdfError::Limit { .. }), "{error}");
}

/// A symbol table whose entries all have the same name, or the same path.
fn symbol_table(times: usize, soft: bool) -> (File, FileAddr) {
    let mut built = BuiltFile::default();
    let text = [b'n'; 2000];
    let names = built.put(&[[0; 8].as_slice(), &text, &[0; 8]].concat());
    let heap = le(&[(0, 4), (2016, 8), (1, 8), (names, 8)]);
    let heap = built.put(&[b"HEAP".as_slice(), &heap].concat());
    let mut node = b"SNOD".to_vec();
    node.extend(le(&[(1, 1), (0, 1), (times as u64, 2)]));
    for _ in 0..times {
        let (name, object, kind) = if soft { (2000, u64::MAX, 2) } else { (8, 96, 0) };
        node.extend(le(&[(name, 8), (object, 8), (kind, 4), (0, 4), (8, 8), (0, 8)]));
    }
    let node = built.put(&node);
    let mut tree = b"TREE".to_vec();
    tree.extend(le(&[(0, 1), (0, 1), (1, 2), (u64::MAX, 8), (u64::MAX, 8)]));
    tree.extend(le(&[(0, 8), (node, 8), (8, 8)]));
    let tree = built.put(&tree);
    let group = built.put_checked(&object(&[(0x11, le(&[(tree, 8), (heap, 8)]))]));
    (built.file(), at(group))
}

#[test]
fn many_entries_with_one_long_name_or_path_end_in_an_error() {
    for soft in [false, true] {
        let (file, group) = symbol_table(1, soft);
        assert_eq!(file.object(group).unwrap().links(&file).unwrap().len(), 1);
        let (file, group) = symbol_table(100, soft);
        let error = file.object(group).unwrap().links(&file).unwrap_err();
        assert!(matches!(error, HdfError::Limit { .. }), "{error}");
    }
}

#[test]
fn a_path_around_a_circle_ends() {
    let mut built = BuiltFile::default();
    // A link of the group to itself, behind which there is room for its checksum.
    let mut link = le(&[(1, 1), (0, 1), (1, 1)]);
    link.push(b'a');
    link.extend(le(&[(0, 8)]));
    let unknown = vec![0; 4000];
    let group = built.put_checked(&object(&[
        (0x02, le(&[(0, 2), (u64::MAX, 8), (u64::MAX, 8)])),
        (0x06, link),
        (0x00, unknown),
    ]));
    let file = built.file();
    assert_eq!(file.resolve(at(group), b"a/a/./a//a").unwrap(), ResolvedLink::Object(at(group)));
    assert_eq!(file.resolve(at(group), b"a/b/a").unwrap(), ResolvedLink::NotThere);
    let error = file.resolve(at(group), &b"a/".repeat(10_000)).unwrap_err();
    assert!(matches!(error, HdfError::Limit { .. }), "{error}");
}

#[test]
fn a_group_without_its_index_is_an_error() {
    let mut built = BuiltFile::default();
    let info = le(&[(0, 1), (0, 1), (4096, 8), (u64::MAX, 8)]);
    let group = built.put_checked(&object(&[(0x02, info)]));
    let file = built.file();
    let group = file.object(at(group)).unwrap();
    assert!(matches!(group.links(&file), Err(HdfError::Missing { .. })));
    assert!(matches!(group.link(&file, b"a"), Err(HdfError::Missing { .. })));
}

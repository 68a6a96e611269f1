//! Objects built byte by byte; what real ones look like is tested with files.

use super::*;
use crate::built_file::{BuiltFile, at, heap_of_one, le, object, tree_of_one_leaf};

/// An attribute of `len` bytes: an array of unsigned bytes.
fn attribute_message(name: &[u8], len: u64) -> Vec<u8> {
    let datatype = le(&[(0x10, 1), (0, 3), (1, 4), (0, 2), (8, 2)]);
    let dataspace = le(&[(2, 1), (1, 1), (0, 1), (1, 1), (len, 8)]);
    let mut bytes = le(&[(3, 1), (0, 1), (name.len() as u64 + 1, 2)]);
    bytes.extend(le(&[(datatype.len() as u64, 2), (dataspace.len() as u64, 2), (0, 1)]));
    bytes.extend(name);
    bytes.push(0);
    bytes.extend(datatype);
    bytes.extend(dataspace);
    bytes.resize(bytes.len() + usize::try_from(len).unwrap(), 7);
    bytes
}

/// An object whose index of names refers so many times to one attribute.
fn dense(times: usize, flags: u8) -> (File, FileAddr) {
    let mut built = BuiltFile::default();
    let (heap, id) = heap_of_one(&mut built, &attribute_message(b"a", 3000), 8);
    let mut record = id;
    record.extend(le(&[(u64::from(flags), 1), (0, 4), (u64::from(lookup3(b"a", 0)), 4)]));
    let names = tree_of_one_leaf(&mut built, record_type::ATTRIBUTE_NAME, &vec![record; times]);
    let info = le(&[(0, 1), (0, 1), (heap, 8), (names, 8)]);
    let addr = built.put_checked(&object(&[(0x15, info)]));
    (built.file(), at(addr))
}

#[test]
fn many_records_of_one_attribute_end_in_an_error() {
    let (file, addr) = dense(2, 0);
    let object = file.object(addr).unwrap();
    let attributes = object.attributes(&file).unwrap();
    assert_eq!((attributes.len(), attributes.name(1)), (2, b"a".as_slice()));
    assert_eq!(attributes.decode(1, &file).unwrap().data, [7; 3000]);
    assert_eq!(attributes.elements(1), [7; 3000]);
    assert_eq!(object.attribute(&file, b"a").unwrap().unwrap().data, [7; 3000]);
    // A thousand times 3000 bytes are more than this file and the allowance.
    let (file, addr) = dense(1000, 0);
    let error = file.object(addr).unwrap().attributes(&file).unwrap_err();
    assert!(matches!(error, HdfError::Limit { .. }), "{error}");
}

#[test]
fn attributes_in_a_heap_that_is_not_there_are_damaged_one_by_one() {
    let (file, addr) = dense(2, SHARED);
    let object = file.object(addr).unwrap();
    let attributes = object.attributes(&file).unwrap();
    assert_eq!((attributes.len(), attributes.name(0)), (2, b"".as_slice()));
    assert!(matches!(attributes.decode(0, &file), Err(HdfError::Missing { .. })));
    assert!(matches!(object.attribute(&file, b"a"), Err(HdfError::Missing { .. })));
    let (file, addr) = dense(1000, SHARED);
    let error = file.object(addr).unwrap().attributes(&file).unwrap_err();
    assert!(matches!(error, HdfError::Limit { .. }), "{error}");
}

#[test]
fn a_damaged_message_leaves_the_others_readable() {
    let mut built = BuiltFile::default();
    let mut damaged = attribute_message(b"bad", 4);
    damaged[2] = 0xff;
    let mut untyped = attribute_message(b"untyped", 4);
    untyped[17] = 0x1f;
    let messages = [
        (0x0c, attribute_message(b"first", 2)),
        (0x0c, damaged),
        (0x0c, untyped),
        (0x0c, attribute_message(b"last", 3)),
    ];
    let addr = built.put_checked(&object(&messages));
    let file = built.file();
    let object = file.object(at(addr)).unwrap();
    let attributes = object.attributes(&file).unwrap();
    let names: Vec<&[u8]> = (0..attributes.len()).map(|i| attributes.name(i)).collect();
    assert_eq!(names, [b"first".as_slice(), b"", b"untyped", b"last"]);
    let decoded: Vec<bool> = (0..4).map(|i| attributes.decode(i, &file).is_ok()).collect();
    assert_eq!(decoded, [true, false, false, true]);
    // A header may have padding behind a message.
    assert!(
        attributes.elements(0).starts_with(&[7; 2]) && attributes.elements(3).starts_with(&[7; 3])
    );
    assert!(attributes.elements(1).is_empty() && attributes.elements(4).is_empty());
    assert_eq!(object.attribute(&file, b"last").unwrap().unwrap().data, [7; 3]);
    assert!(object.attribute(&file, b"untyped").is_err());
    assert_eq!(attributes.find(b"last"), Some(3));
}

#[test]
fn items_are_small() {
    assert!(size_of::<AttributeItem>() <= 48, "{}", size_of::<AttributeItem>());
}

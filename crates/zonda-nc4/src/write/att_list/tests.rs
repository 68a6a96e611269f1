use std::sync::Arc;

use zonda_hdf5::message::Class;
use zonda_storage::backend::Memory;

use super::*;

fn list() -> EditedAtts {
    EditedAtts::new(Arc::new(File::create(Arc::new(Memory::new()), 0).unwrap()))
}

fn put(list: &mut EditedAtts, name: &str, nc_type: i32, n: u64) {
    let size = ExtType::from_nc_type(nc_type).unwrap().size();
    let bytes = vec![1; size * usize::try_from(n).unwrap()];
    list.put(name.as_bytes(), nc_type, n, OwnedValues::plain(bytes)).unwrap();
}

fn delete(list: &mut EditedAtts, name: &str) {
    list.delete(list.find(name.as_bytes()).unwrap());
}

fn rename(list: &mut EditedAtts, name: &str, to: &str) {
    list.rename(list.find(name.as_bytes()).unwrap(), to.as_bytes().into());
}

/// As the session numbers them.
fn shown(list: &EditedAtts) -> Vec<String> {
    let name = |number| String::from_utf8(list.info(number).unwrap().name.to_vec()).unwrap();
    (0..list.len()).map(name).collect()
}

fn made(list: &EditedAtts) -> Vec<Attribute> {
    let mut encode =
        |_: &ElementForm, _: &mut dyn VlenSource, _: &[u8], _: &mut [u8]| panic!("no pointers");
    list.attributes(&Model::default(), &mut encode).unwrap()
}

/// As the file has them.
fn in_file(list: &EditedAtts) -> Vec<String> {
    made(list).into_iter().map(|att| String::from_utf8(att.name.to_vec()).unwrap()).collect()
}

/// The orders that netCDF-C 4.9.0 shows in the session and after opening the file again.
#[test]
fn order_in_the_session_and_in_the_file() {
    let mut list = list();
    for (name, nc_type, n) in
        [("a", 4, 1), ("b", 4, 2), ("t", 2, 3), ("d", 4, 1), ("e", 4, 1), ("f", 4, 1), ("s", 3, 2)]
    {
        put(&mut list, name, nc_type, n);
    }
    assert_eq!(in_file(&list), shown(&list));
    // Before the file has them all keep their places.
    put(&mut list, "a", 4, 5);
    assert_eq!(in_file(&list), ["a", "b", "t", "d", "e", "f", "s"]);
    put(&mut list, "a", 4, 1);
    list.stored();
    put(&mut list, "a", 4, 1);
    put(&mut list, "b", 4, 3);
    put(&mut list, "t", 2, 3);
    put(&mut list, "d", 3, 1);
    put(&mut list, "s", 3, 2);
    rename(&mut list, "e", "ee");
    delete(&mut list, "f");
    put(&mut list, "f", 4, 1);
    assert_eq!(shown(&list), ["a", "b", "t", "d", "ee", "s", "f"]);
    assert_eq!(in_file(&list), ["a", "t", "s", "b", "d", "ee", "f"]);
    list.stored();
    put(&mut list, "new", 4, 1);
    rename(&mut list, "new", "new2");
    put(&mut list, "t", 2, 2);
    // Numbers of the session are not those of the file, which is not opened again.
    assert_eq!(shown(&list), ["a", "b", "t", "d", "ee", "s", "f", "new2"]);
    assert_eq!(in_file(&list), ["a", "s", "b", "d", "ee", "f", "t", "new2"]);
}

#[test]
fn what_is_put_again_as_the_file_has_it_keeps_its_place() {
    let mut list = list();
    put(&mut list, "a", 4, 1);
    put(&mut list, "b", 4, 1);
    list.stored();
    put(&mut list, "a", 5, 3);
    assert_eq!(in_file(&list), ["b", "a"]);
    put(&mut list, "a", 4, 1);
    assert_eq!(in_file(&list), ["a", "b"]);
    rename(&mut list, "a", "c");
    rename(&mut list, "c", "a");
    assert_eq!(in_file(&list), ["b", "a"]);
}

#[test]
fn many_attributes_are_found_whatever_was_done_to_them() {
    let mut list = list();
    for i in 0..100 {
        put(&mut list, &format!("n{i}"), 4, 1);
    }
    delete(&mut list, "n0");
    rename(&mut list, "n50", "fifty");
    put(&mut list, "last", 4, 1);
    assert_eq!(list.find(b"n1"), Some(0));
    assert_eq!(list.find(b"fifty"), Some(49));
    assert_eq!((list.find(b"n50"), list.find(b"n0")), (None, None));
    assert_eq!(list.find(b"last"), Some(99));
    assert!(list.info(100).is_none());
    list.delete(100);
    assert_eq!(list.len(), 100);
}

#[test]
fn an_object_has_no_more_than_headers_can_rank() {
    let mut list = list();
    for i in 0..MOST_ATTS {
        put(&mut list, &format!("{i}"), 1, 1);
    }
    let more = list.put(b"more", 1, 1, OwnedValues::plain(vec![0]));
    assert_eq!(more, Err(NcError::MaxAtts));
    put(&mut list, "0", 1, 1);
}

#[test]
fn what_the_file_has_of_values() {
    let mut list = list();
    put(&mut list, "numbers", 3, 2);
    put(&mut list, "one", 6, 1);
    put(&mut list, "text", 2, 4);
    put(&mut list, "no text", 2, 0);
    put(&mut list, "no numbers", 4, 0);
    put(&mut list, "näme", 4, 1);
    let found = made(&list);
    let seen: Vec<_> = found
        .iter()
        .map(|att| {
            let is_text = matches!(att.datatype.class, Class::String { .. });
            let space = &att.dataspace;
            (att.datatype.size, is_text, space.kind, space.dims.clone(), att.data.len())
        })
        .collect();
    use SpaceKind::{Null, Scalar, Simple};
    assert_eq!(
        seen,
        [
            (2, false, Simple, vec![2], 4),
            (8, false, Simple, vec![1], 8),
            (4, true, Scalar, vec![], 4),
            (1, true, Null, vec![], 0),
            (4, false, Null, vec![], 0),
            (4, false, Simple, vec![1], 4),
        ]
    );
    assert_eq!((found[0].charset, found[5].charset), (Charset::Ascii, Charset::Utf8));
}

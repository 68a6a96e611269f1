//! Links, paths and attributes of small files in all their storages; see `data/README.md`.

use std::path::Path;
use std::sync::Arc;

use zonda_hdf5::message::{Class, LinkTarget};
use zonda_hdf5::{File, HdfError, Object, ResolvedLink};

use common::Inflate;

mod common;

/// The names that `data/links_attributes.py` gives, in the order of creation.
fn names(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("link{:02}", i * 17 % 40)).collect()
}

fn numbered(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|i| format!("link{i:02}")).collect()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

fn open(name: &str) -> File {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    common::open(&std::fs::read(path).unwrap()).unwrap()
}

fn object(file: &File, path: &str) -> Object {
    match file.resolve(file.root(), path.as_bytes()).unwrap() {
        ResolvedLink::Object(addr) => file.object(addr).unwrap(),
        other => panic!("{path} leads to {other:?}"),
    }
}

fn listed(file: &File, group: &Object) -> Vec<String> {
    let links = group.links(file).unwrap();
    links.iter().map(|link| String::from_utf8(link.name.to_vec()).unwrap()).collect()
}

/// Listing gives the names in this order, and each is found by itself.
fn check_links(file: &File, group: &Object, want: &[String]) {
    assert_eq!(listed(file, group), want);
    for link in group.links(file).unwrap() {
        assert_eq!(group.link(file, &link.name).unwrap(), Some(link));
    }
    for absent in ["", "link", "link40", "link05x", "zzz", "Link01"] {
        assert_eq!(group.link(file, absent.as_bytes()).unwrap(), None, "{absent}");
    }
}

#[test]
fn a_symbol_table_of_several_levels() {
    let file = open("symbol_table.h5");
    let root = file.object(file.root()).unwrap();
    assert!(!root.tracks_creation_order(&file).unwrap());
    let mut want = names(40);
    want.extend(["soft", "dangling", "loop"].map(String::from));
    check_links(&file, &root, &sorted(want));
    check_attributes(&file, "/", &names(12));
    let soft = root.link(&file, b"soft").unwrap().unwrap();
    assert_eq!(soft.target, LinkTarget::Soft(b"/link03/link04".as_slice().into()));
    let found = file.resolve(file.root(), b"link30/soft/link02").unwrap();
    assert_eq!(found, ResolvedLink::Object(file.root()));
    assert_eq!(file.resolve(file.root(), b"dangling/x").unwrap(), ResolvedLink::NotThere);
    let error = file.resolve(file.root(), b"loop").unwrap_err();
    assert!(matches!(error, HdfError::Limit { limit: 16, .. }), "{error}");
}

#[test]
fn sixteen_soft_links_are_followed_and_no_more() {
    let file = open("links.h5");
    let found = file.resolve(file.root(), b"chain/16").unwrap();
    assert_eq!(found, ResolvedLink::Object(object(&file, "few").addr()));
    let error = file.resolve(file.root(), b"chain/17").unwrap_err();
    assert!(matches!(error, HdfError::Limit { limit: 16, .. }), "{error}");
}

#[test]
fn dense_links_in_the_order_that_the_group_keeps() {
    let file = open("links.h5");
    for (name, tracked) in [("ordered", true), ("tracked", true), ("hashed", false)] {
        let group = object(&file, name);
        assert_eq!(group.tracks_creation_order(&file).unwrap(), tracked);
        let want = if tracked { names(40) } else { sorted(names(40)) };
        check_links(&file, &group, &want);
        let last = group.link(&file, want[39].as_bytes()).unwrap().unwrap();
        assert_eq!(last.creation_order, tracked.then_some(39));
    }
}

#[test]
fn links_in_a_filtered_heap() {
    let file = open("links.h5");
    let error = object(&file, "filtered").links(&file).unwrap_err();
    assert!(matches!(error, HdfError::Unsupported { .. }), "{error}");
    let file = open("links.h5").with_unfilter(Arc::new(Inflate));
    check_links(&file, &object(&file, "filtered"), &sorted(names(40)));
}

#[test]
fn paths_over_soft_and_external_links() {
    let file = open("links.h5");
    let few = object(&file, "few").addr();
    let to = |path: &str| file.resolve(few, path.as_bytes()).unwrap();
    assert_eq!(to("link17/link05/."), ResolvedLink::Object(file.root()));
    assert_eq!(to(""), ResolvedLink::Object(few));
    assert_eq!(to("/"), ResolvedLink::Object(file.root()));
    assert_eq!(to("chain"), ResolvedLink::Object(few));
    assert_eq!(to("chain/./link00"), ResolvedLink::Object(object(&file, "ordered").addr()));
    assert_eq!(to("soft"), ResolvedLink::NotThere, "'..' is a name like others");
    assert_eq!(to("/committed/x"), ResolvedLink::NotThere);
    let external = |path: &[u8]| ResolvedLink::External {
        file: b"other.h5".as_slice().into(),
        path: path.into(),
    };
    assert_eq!(to("external"), external(b"/there"));
    assert_eq!(to("over/there//again"), external(b"/there/and/there/again"));
}

/// Numbers of the names in the order of their hashes, as h5py lists them.
const HASHED: [usize; 20] =
    [17, 39, 11, 3, 4, 27, 5, 28, 32, 33, 38, 21, 16, 22, 26, 15, 0, 10, 34, 9];

/// Names in the order of the list, values by the names.
fn check_attributes(file: &File, path: &str, want: &[String]) {
    let object = object(file, path);
    let attributes = object.attributes(file).unwrap();
    let found: Vec<&[u8]> = (0..attributes.len()).map(|i| attributes.name(i)).collect();
    assert_eq!(found, want.iter().map(String::as_bytes).collect::<Vec<_>>(), "{path}");
    let made = names(40);
    for (i, name) in want.iter().enumerate() {
        assert_eq!(attributes.find(name.as_bytes()), Some(i));
        let attribute = attributes.decode(i, file).unwrap();
        let rank = made.iter().position(|made| made == name).unwrap();
        assert_eq!(attribute.data, (rank as i32).to_le_bytes(), "{path} {name}");
        assert_eq!(object.attribute(file, name.as_bytes()).unwrap(), Some(attribute));
    }
    assert_eq!(attributes.find(b""), None);
    for absent in ["", "link", "link40"] {
        assert_eq!(object.attribute(file, absent.as_bytes()).unwrap(), None);
    }
    assert!(attributes.decode(want.len(), file).is_err());
}

#[test]
fn attributes_in_the_order_of_creation_or_of_the_file() {
    let file = open("attributes.h5");
    check_attributes(&file, "ordered", &names(20));
    check_attributes(&file, "tracked", &names(20));
    check_attributes(&file, "few-ordered", &names(5));
    check_attributes(&file, "few-tracked", &names(5));
    // The library moved a message when it needed its place for something else.
    check_attributes(&file, "few-hashed", &numbered(&[0, 34, 11, 28, 17]));
    // What H5Aiterate gives by creation order where none is kept: the order of the hashes.
    check_attributes(&file, "hashed", &numbered(&HASHED));
    let ordered = object(&file, "ordered").attributes(&file).unwrap();
    assert_eq!(ordered.creation_order(19), Some(19));
    assert_eq!(object(&file, "hashed").attributes(&file).unwrap().creation_order(0), None);
}

#[test]
fn large_attributes_and_committed_types() {
    let file = open("attributes.h5");
    let large = object(&file, "large");
    let attributes = large.attributes(&file).unwrap();
    assert_eq!((attributes.len(), attributes.find(b"huge")), (10, Some(9)));
    let huge = large.attribute(&file, b"huge").unwrap().unwrap();
    let want: Vec<u8> = (0..1200i32).flat_map(i32::to_le_bytes).collect();
    assert_eq!((huge.dataspace.dims, huge.data), (vec![1200], want));
    let root = file.object(file.root()).unwrap();
    let attribute = root.attribute(&file, b"of committed type").unwrap().unwrap();
    assert_eq!(attribute.committed, Some(object(&file, "committed").addr()));
    assert!(matches!(attribute.datatype.class, Class::FixedPoint(_)));
    assert_eq!((attribute.datatype.size, attribute.data), (2, vec![0, 1, 0, 2, 0, 3]));
}

#[test]
fn attributes_in_the_heap_of_shared_messages() {
    let file = open("shared.h5");
    for (path, count) in [("one", 5), ("two", 5), ("many", 20)] {
        let object = object(&file, path);
        let attributes = object.attributes(&file).unwrap();
        assert_eq!(attributes.len(), count, "{path}");
        for (i, name) in names(count).iter().enumerate() {
            assert_eq!(attributes.name(i), name.as_bytes());
            let attribute = attributes.decode(i, &file).unwrap();
            let i = i as i64;
            let want: Vec<u8> = (i..i + 3).flat_map(i64::to_le_bytes).collect();
            assert_eq!((attribute.dataspace.dims.len(), &attribute.data), (1, &want));
            assert_eq!(object.attribute(&file, name.as_bytes()).unwrap(), Some(attribute));
        }
    }
}

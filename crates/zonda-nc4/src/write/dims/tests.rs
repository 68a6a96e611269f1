//! Codes are those that netCDF-C 4.9.0 gives for the same calls.

use super::*;
use crate::write::testing::{ROOT, code, create, created, reopened};
use zonda_format::{Dispatch as _, DispatchWrite as _, Reserve, TypeDefinitions as _};

const HUGE: usize = 1 << 40;

#[test]
fn codes_of_definitions() {
    let mut file = create();
    let long = vec![b'a'; 257];
    let cases: &[(&[u8], usize, i32)] = &[
        (b"x", 4, 0),
        (b"x", 4, -42),
        (b"a/b", 4, -59),
        (b"", 4, -59),
        (&long, 4, -53),
        (b"u", 0, 0),
        (b"u2", 0, 0),
        (b"huge", HUGE, 0),
        // Composed and decomposed, it is one name.
        ("é".as_bytes(), 1, 0),
        ("e\u{301}".as_bytes(), 1, -42),
    ];
    for &(name, len, expected) in cases {
        assert_eq!(code(file.def_dim(ROOT, name, len)), expected, "{name:?}");
    }
    assert_eq!(code(file.def_dim(GroupId(1), b"z", 1)), -116);
    // Other groups have names of their own, ids are those of the whole file.
    let group = file.def_group(ROOT, b"g").unwrap();
    assert_eq!(file.def_dim(group, b"x", 7).unwrap(), DimId(5));
    let model = file.model().unwrap();
    assert_eq!(model.find_dim(ROOT, b"x"), Some(DimId(0)));
    assert_eq!(model.find_dim(group, b"x"), Some(DimId(5)));
    assert_eq!((model.dim(DimId(5)).unwrap().len, model.dim(DimId(1)).unwrap().len), (7, 0));
    assert!(model.dim(DimId(1)).unwrap().is_unlimited);
}

#[test]
fn codes_in_the_classic_model() {
    let mut file = created(true).0;
    assert_eq!(code(file.def_dim(ROOT, b"u", 0)), 0);
    assert_eq!(code(file.def_dim(ROOT, b"u2", 0)), -54);
    assert_eq!(code(file.def_dim(ROOT, b"a/", 0)), -54, "before the name");
    assert_eq!(code(file.def_dim(ROOT, b"big", 1 << 32)), -63);
    assert_eq!(code(file.def_dim(ROOT, b"fits", (1 << 32) - 1)), 0);
    assert_eq!(code(file.def_dim(ROOT, b"u", 1 << 32)), -63, "before the name's use");
    file.enddef(Reserve::Default).unwrap();
    assert_eq!(code(file.def_dim(ROOT, b"a/", 3)), -38);
    assert_eq!(code(file.def_dim(ROOT, b"u2", 0)), -54);
    assert_eq!(code(file.rename_dim(ROOT, DimId(0), b"longer")), 0, "also in data mode");
}

#[test]
fn codes_of_renames() {
    let mut file = create();
    let x = file.def_dim(ROOT, b"x", 4).unwrap();
    file.def_dim(ROOT, b"y", 4).unwrap();
    let group = file.def_group(ROOT, b"g").unwrap();
    file.def_dim(group, b"z", 4).unwrap();
    for (group, dim, name, expected) in [
        (ROOT, x, "y", -42),
        (ROOT, x, "x", -42),
        (ROOT, x, "a/", -59),
        (ROOT, DimId(9), "q", -46),
        (ROOT, DimId(-1), "q", -46),
        (ROOT, DimId(9), "y", -46),
        (group, x, "z", -42),
        (group, x, "new", 0),
        (ROOT, DimId(2), "z2", 0),
    ] {
        let result = file.rename_dim(group, dim, name.as_bytes());
        assert_eq!(code(result), expected, "{name} {dim:?}");
    }
    let model = file.model().unwrap();
    assert_eq!(model.find_dim(ROOT, b"new"), Some(x));
    assert_eq!(model.find_dim(ROOT, b"x"), None);
    assert_eq!(model.find_dim(group, b"z2"), Some(DimId(2)));
}

#[test]
fn a_file_open_for_reading_is_left_as_it_is() {
    let (mut file, memory) = created(false);
    file.def_dim(ROOT, b"x", 4).unwrap();
    let mut file = reopened(file, memory);
    assert_eq!(code(file.def_dim(ROOT, b"a/", 3)), -37);
    assert_eq!(code(file.rename_dim(ROOT, DimId(0), b"a/")), -37);
    assert_eq!(file.model().unwrap().dims.len(), 1);
}

#[test]
fn a_definition_in_data_mode_enters_define_mode() {
    let mut file = create();
    file.def_dim(ROOT, b"x", 4).unwrap();
    file.enddef(Reserve::Default).unwrap();
    assert_eq!(code(file.def_dim(ROOT, b"x", 4)), -42);
    assert!(!file.in_define_mode(), "only what is accepted does");
    file.def_dim(ROOT, b"y", 4).unwrap();
    assert!(file.in_define_mode());
}

//! Codes are those that netCDF-C 4.9.0 gives for the same calls.

use super::*;
use crate::write::testing::{ROOT, code, create, created, reopened};
use zonda_format::{Definitions as _, DispatchWrite as _, TypeDefinitions as _};

#[test]
fn codes_of_definitions_and_renames() {
    let mut file = create();
    file.def_dim(ROOT, b"d", 3).unwrap();
    file.def_var(ROOT, b"v", 4, &[]).unwrap();
    file.def_opaque(ROOT, 3, b"t").unwrap();
    let g = file.def_group(ROOT, b"g").unwrap();
    // The name of a dimension is 0 in the reference, which then cannot store the definitions.
    for (name, expected) in [("g", -42), ("v", -42), ("t", -42), ("d", -42), ("a/", -59)] {
        assert_eq!(code(file.def_group(ROOT, name.as_bytes())), expected, "{name}");
    }
    let inner = file.def_group(g, b"g").unwrap();
    for (group, name, expected) in [
        (ROOT, "a/", -116),
        (g, "a/", -59),
        (g, "v", -42),
        (g, "g", -42),
        (g, "h", 0),
        (inner, "h", 0),
        (GroupId(9), "x", -116),
    ] {
        assert_eq!(code(file.rename_group(group, name.as_bytes())), expected, "{name}");
    }
    let model = file.model().unwrap();
    assert_eq!(model.find_child(ROOT, b"h"), Some(g));
    assert_eq!(model.find_child(ROOT, b"g"), None);
    assert_eq!(model.find_child(g, b"h"), Some(inner));
    assert_eq!(model.group_path(inner), "/h/h");
    assert_eq!(
        file.n_atts(crate::VarRef { group: inner, var: zonda_model::VarId::GLOBAL }).unwrap(),
        0
    );
}

#[test]
fn codes_where_groups_are_not_defined() {
    let mut file = created(true).0;
    for (name, expected) in [("a/", -59), ("g", -112)] {
        assert_eq!(code(file.def_group(ROOT, name.as_bytes())), expected);
    }
    let (mut file, memory) = created(false);
    let g = file.def_group(ROOT, b"g").unwrap();
    let mut file = reopened(file, memory);
    for (name, expected) in [("a/", -59), ("g", -42), ("gg", -37)] {
        assert_eq!(code(file.def_group(ROOT, name.as_bytes())), expected);
    }
    assert_eq!(code(file.rename_group(g, b"a/")), -37);
}

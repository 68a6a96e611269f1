//! Codes are those that netCDF-C 4.9.0 gives for the same calls, or at the end of definitions where
//! it takes at first what it refuses then (these are marked).

use crate::Nc4File;
use zonda_format::{DispatchWrite as _, Reserve, TypeDefinitions as _};

use super::*;
use crate::write::testing::{ROOT, code, create, created, reopened};

#[test]
fn codes_of_definitions() {
    let mut file = create();
    let u = 32;
    let cases: &[(i32, i32)] = &[
        (code(file.def_compound(ROOT, 0, b"c0")), -36),
        (code(file.def_compound(ROOT, 16, b"c")), 0),
        (code(file.def_compound(ROOT, 16, b"c")), -42),
        (code(file.def_opaque(ROOT, 0, b"o0")), -36),
        (code(file.def_opaque(ROOT, 0, b"c")), -36),
        (code(file.def_opaque(ROOT, 0, b"a/")), -59),
        (code(file.def_opaque(ROOT, 3, b"o")), 0),
        (code(file.def_enum(ROOT, 4, b"e")), 0),
        (code(file.def_enum(ROOT, 0, b"ez")), -45),
        (code(file.def_enum(ROOT, 99, b"e9")), -117),
        (code(file.def_enum(ROOT, -1, b"em")), -36),
        // At the end of definitions in the reference:
        (code(file.def_enum(ROOT, 5, b"ef")), -101),
        (code(file.def_enum(ROOT, 2, b"ec")), -101),
        (code(file.def_enum(ROOT, 12, b"es")), -101),
        (code(file.def_enum(ROOT, u, b"eu")), -101),
        (code(file.def_vlen(ROOT, b"v0", 0)), -45),
        (code(file.def_vlen(ROOT, b"v9", 99)), -45),
        (code(file.def_vlen(ROOT, b"vm", -1)), -45),
        (code(file.def_vlen(ROOT, b"v", u)), 0),
    ];
    for (index, (found, expected)) in cases.iter().enumerate() {
        assert_eq!(found, expected, "case {index}");
    }
    let model = file.model().unwrap();
    let sizes: Vec<_> = model.types.iter().map(|ty| ty.size).collect();
    assert_eq!(sizes, [16, 3, 4, 16]);
    assert_eq!(model.find_type(ROOT, b"e"), Some(34));
}

#[test]
fn codes_of_fields_and_members() {
    let mut file = create();
    let c = file.def_compound(ROOT, 16, b"c").unwrap();
    let e = file.def_enum(ROOT, 3, b"e").unwrap();
    let field = |file: &mut Nc4File, ty, name: &str, offset, of, dims: &[i32]| {
        code(file.insert_field((ROOT, ty), name.as_bytes(), offset, of, dims))
    };
    assert_eq!(field(&mut file, c, "a", 0, 4, &[]), 0);
    assert_eq!(field(&mut file, 4, "z", 0, 4, &[]), -45);
    assert_eq!(field(&mut file, 99, "z", 0, 4, &[]), -117);
    assert_eq!(field(&mut file, -3, "z", 0, 4, &[]), -36);
    assert_eq!(field(&mut file, e, "z", 0, 4, &[]), -45);
    assert_eq!(field(&mut file, 99, "a/", 0, 4, &[]), -59);
    assert_eq!(field(&mut file, c, "x", 4, 99, &[]), -45);
    // At the end of definitions in the reference:
    assert_eq!(field(&mut file, c, "a", 4, 4, &[]), -101, "a name twice");
    assert_eq!(field(&mut file, c, "b", 2, 4, &[]), -101, "over another");
    assert_eq!(field(&mut file, c, "b", 14, 4, &[]), -101, "too long");
    assert_eq!(field(&mut file, c, "b", 8, 4, &[3]), -101, "too long");
    assert_eq!(field(&mut file, c, "b", 8, 4, &[2, 0]), -101, "nothing");
    assert_eq!(field(&mut file, c, "n", 4, 0, &[]), -45);
    assert_eq!(field(&mut file, c, "self", 4, c, &[]), -45);
    assert_eq!(field(&mut file, c, "later", 4, e, &[]), -45);
    assert_eq!(field(&mut file, c, "b", usize::MAX, 4, &[]), -101);
    assert_eq!(field(&mut file, c, "b", 8, 4, &[2, 1]), 0);
    let member = |file: &mut Nc4File, ty, name: &str, value: i16| {
        code(file.insert_member((ROOT, ty), name.as_bytes(), &value.to_ne_bytes()))
    };
    assert_eq!(member(&mut file, e, "one", 1), 0);
    assert_eq!(member(&mut file, c, "one", 1), -45);
    assert_eq!(member(&mut file, e, "a/", 1), -59);
    assert_eq!(member(&mut file, e, "one", 2), -101, "a name twice");
    assert_eq!(member(&mut file, e, "uno", 1), -101, "a value twice");
    assert_eq!(member(&mut file, e, "two", 2), 0);
    file.enddef(Reserve::Default).unwrap();
    assert_eq!(field(&mut file, c, "late", 4, 4, &[]), -118);
    assert_eq!(member(&mut file, e, "late", 4), -118);
    // Types do not enter define mode.
    assert_eq!(code(file.def_opaque(ROOT, 3, b"o")), 0);
    assert_eq!(code(file.enddef(Reserve::Default)), -38);
}

#[test]
fn incomplete_types_stop_the_end_of_definitions() {
    let mut file = create();
    let e = file.def_enum(ROOT, 4, b"e").unwrap();
    assert_eq!(code(file.enddef(Reserve::Default)), -36);
    assert_eq!(code(file.redef()), 0, "to complete it");
    file.insert_member((ROOT, e), b"one", &1i32.to_ne_bytes()).unwrap();
    let c = file.def_compound(ROOT, 4, b"c").unwrap();
    assert_eq!(code(file.sync()), -101);
    file.insert_field((ROOT, c), b"a", 0, 4, &[]).unwrap();
    assert_eq!(code(file.sync()), 0);
}

#[test]
fn codes_in_the_classic_model_and_for_reading() {
    let mut file = created(true).0;
    assert_eq!(code(file.def_opaque(ROOT, 0, b"a/")), -59);
    assert_eq!(code(file.def_opaque(ROOT, 0, b"o")), -112);
    let (mut file, memory) = created(false);
    let e = file.def_enum(ROOT, 4, b"e").unwrap();
    file.insert_member((ROOT, e), b"one", &1i32.to_ne_bytes()).unwrap();
    let mut file = reopened(file, memory);
    assert_eq!(code(file.insert_member((ROOT, e), b"two", &2i32.to_ne_bytes())), -118);
    // The reference defines types that no file will have.
    assert_eq!(code(file.def_opaque(ROOT, 3, b"o")), -37);
}

#[test]
fn types_are_nested_no_deeper_than_readers_go() {
    let mut file = create();
    let mut inner = 4;
    let mut n = 0;
    let refused = loop {
        let ty = file.def_compound(ROOT, 4, format!("c{n}").as_bytes()).unwrap();
        let result = file.insert_field((ROOT, ty), b"a", 0, inner, &[1]);
        if let Err(error) = result {
            break error.code();
        }
        (inner, n) = (ty, n + 1);
    };
    assert_eq!((refused, n), (NcError::HdfErr, 127));
    let typed = Typed::of(file.model().unwrap(), inner, Endianness::Native).unwrap();
    let mut writer = zonda_hdf5::Writer::new("test", zonda_hdf5::Sizes::EIGHT);
    typed.datatype.encode(&mut writer).unwrap();
    let bytes = writer.finish();
    let reader = zonda_hdf5::Reader::new("test", &bytes, 0, zonda_hdf5::Sizes::EIGHT);
    let limits = zonda_hdf5::ReadLimits::default();
    assert_eq!(zonda_hdf5::message::Datatype::decode(reader, &limits).unwrap(), typed.datatype);
}

/// Variables with types of groups that come after them, which the reference cannot find in its own
/// files either (it leaves the variables out): defined at once, in a later commit, and in a file that
/// was closed before.
#[test]
fn variables_have_types_of_later_groups() {
    /// One group with two types, one within the other, and a variable of each before it.
    fn define(file: &mut Nc4File, nth: u8) {
        let size = 5 + usize::from(nth);
        let early = file.def_group(ROOT, &[b'e', nth]).unwrap();
        let late = file.def_group(ROOT, &[b'l', nth]).unwrap();
        let inner = file.def_opaque(late, size, b"inner").unwrap();
        let outer = file.def_compound(late, size + 4, b"outer").unwrap();
        file.insert_field((late, outer), b"number", 0, 4, &[]).unwrap();
        file.insert_field((late, outer), b"bytes", 4, inner, &[]).unwrap();
        let list = file.def_vlen(late, b"list", outer).unwrap();
        for (name, ty) in [(b'o', outer), (b'i', inner), (b'v', list)] {
            file.def_var(ROOT, &[name, nth], ty, &[]).unwrap();
            file.def_var(early, &[name], ty, &[]).unwrap();
        }
    }
    /// What each variable has, by name.
    fn check(file: &Nc4File, n: u8) {
        let model = file.model().unwrap();
        assert_eq!(model.types.len(), 3 * usize::from(n), "no type is made up");
        for nth in b'0'..b'0' + n {
            let late = model.find_child(ROOT, &[b'l', nth]).unwrap();
            let early = model.find_child(ROOT, &[b'e', nth]).unwrap();
            for (name, ty) in [(b'o', &b"outer"[..]), (b'i', b"inner"), (b'v', b"list")] {
                for (group, name) in [(ROOT, &[name, nth][..]), (early, &[name])] {
                    let id = model.group(group).unwrap().find_var(name).unwrap();
                    let its = model.user_type(model.var(group, id).unwrap().nc_type).unwrap();
                    assert_eq!((its.group, &*its.name), (late, ty), "{name:?}");
                    assert!(
                        model
                            .group(late)
                            .unwrap()
                            .types
                            .contains(&model.var(group, id).unwrap().nc_type)
                    );
                }
            }
        }
    }
    let (mut file, memory) = created(false);
    define(&mut file, b'0');
    file.enddef(Reserve::Default).unwrap();
    file.redef().unwrap();
    define(&mut file, b'1');
    file.enddef(Reserve::Default).unwrap();
    check(&file, 2);
    let file = reopened(file, memory.clone());
    check(&file, 2);
    let name = std::path::Path::new("test.nc");
    let how = crate::Nc4OpenOptions::default();
    let mut file = Nc4File::open_for_writing(memory.clone(), name, how).unwrap();
    check(&file, 2);
    define(&mut file, b'2');
    file.sync().unwrap();
    check(&file, 3);
    check(&reopened(file, memory), 3);
}

use zonda_format::Values;
use zonda_format::{DispatchWrite as _, TypeDefinitions as _};
use zonda_model::NcError;

use super::*;
use crate::Nc4File;
use crate::model::Endianness;
use crate::write::Typed;
use crate::write::testing::{ROOT, code, create, created, reopened};

/// What `measure` says of the types of a file is what their encoding takes.
fn compare(file: &Nc4File, types: impl IntoIterator<Item = i32>) {
    let model = file.model().unwrap();
    for nc_type in types {
        let found = measure(model, nc_type, &mut HashMap::new()).unwrap();
        let typed = Typed::of(model, nc_type, Endianness::Native).unwrap();
        let exact = of_datatype(&typed.datatype).unwrap();
        assert_eq!(found.levels, exact.levels, "type {nc_type}");
        assert_eq!(found.stored, exact.stored, "type {nc_type}");
        assert!(found.bytes >= exact.bytes, "type {nc_type}: {found:?} {exact:?}");
        assert!(found.bytes <= exact.bytes + 3 * exact.bytes / 8, "type {nc_type}: {found:?}");
    }
}

#[test]
fn a_measure_is_what_the_encoding_takes() {
    let mut file = create();
    let opaque = file.def_opaque(ROOT, 5, b"o").unwrap();
    let vlen = file.def_vlen(ROOT, b"v", opaque).unwrap();
    let e = file.def_enum(ROOT, 3, b"e").unwrap();
    file.insert_member((ROOT, e), b"one", &1i16.to_ne_bytes()).unwrap();
    file.insert_member((ROOT, e), "zw\u{f6}lf".as_bytes(), &12i16.to_ne_bytes()).unwrap();
    let c = file.def_compound(ROOT, 1 << 20, b"c").unwrap();
    for (at, (name, of, dims)) in (0usize..).zip([
        (&b"a"[..], 4, &[][..]),
        (b"longer", 6, &[2, 3]),
        (b"s", NC_STRING, &[]),
        (b"v", vlen, &[]),
        (b"e", e, &[4]),
        (b"o", opaque, &[]),
        (b"t", 2, &[7]),
    ]) {
        file.insert_field((ROOT, c), name, at * 64, of, dims).unwrap();
    }
    compare(&file, (1..=12).chain([opaque, vlen, e, c]));
}

/// Types are refused when no message has room for them, and not a moment before or after: all that was
/// taken is in the file.
#[test]
fn a_type_that_no_file_can_hold_is_refused_when_it_is_defined() {
    let hdf_error = NcError::HdfErr.code();
    let (mut file, memory) = created(false);
    let e = file.def_enum(ROOT, 4, b"e").unwrap();
    let member = |file: &mut Nc4File, i: i32| {
        code(file.insert_member((ROOT, e), format!("m{i:07}").as_bytes(), &i.to_ne_bytes()))
    };
    let n_members = (0..20_000).find(|&i| member(&mut file, i) != 0).unwrap();
    assert_eq!(member(&mut file, n_members), hdf_error);
    assert!((4_900..5_050).contains(&n_members), "{n_members}");
    let c = file.def_compound(ROOT, 1 << 20, b"c").unwrap();
    let field = |file: &mut Nc4File, ty, i: usize, of| {
        code(file.insert_field((ROOT, ty), format!("f{i}").as_bytes(), i * 8, of, &[]))
    };
    let n_fields = (0..20_000).find(|&i| field(&mut file, c, i, 4) != 0).unwrap();
    assert_eq!(field(&mut file, c, n_fields, 4), hdf_error);
    assert!((2_500..4_000).contains(&n_fields), "{n_fields}");
    // Types that double: each has the one before twice.
    let mut inner = file.def_vlen(ROOT, b"v", 4).unwrap();
    let mut doubled = 0;
    loop {
        let twice = file.def_compound(ROOT, 16 << doubled, format!("d{doubled}").as_bytes());
        let twice = twice.unwrap();
        let first = code(file.insert_field((ROOT, twice), b"a", 0, inner, &[]));
        let second = match first {
            0 => code(file.insert_field((ROOT, twice), b"b", 8 << doubled, inner, &[])),
            refused => refused,
        };
        if (first, second) != (0, 0) {
            assert_eq!(first.min(second), hdf_error);
            if first != 0 {
                file.insert_field((ROOT, twice), b"a", 0, 4, &[]).unwrap();
            }
            break;
        }
        inner = file.def_vlen(ROOT, format!("v{doubled}").as_bytes(), twice).unwrap();
        doubled += 1;
        assert!(doubled < 20);
    }
    let n_types = file.model().unwrap().types.len();
    let file = reopened(file, memory);
    let model = file.model().unwrap();
    assert_eq!(model.types.len(), n_types);
    match &model.types[0].class {
        UserClass::Enum { members, .. } => assert_eq!(members.len() as i32, n_members),
        other => panic!("{other:?}"),
    }
    match &model.types[1].class {
        UserClass::Compound(fields) => assert_eq!(fields.len(), n_fields),
        other => panic!("{other:?}"),
    }
}

#[test]
fn types_nest_as_deep_as_readers_go_and_no_deeper() {
    for array in [false, true] {
        let (mut file, memory) = created(false);
        let (mut inner, mut size, mut n) = (4, 4, 0);
        let refused = loop {
            let name = format!("t{n}");
            if n % 2 == 0 {
                match file.def_vlen(ROOT, name.as_bytes(), inner) {
                    Ok(vlen) => (inner, size) = (vlen, 16),
                    Err(error) => break error,
                }
            } else {
                let compound = file.def_compound(ROOT, size * 2, name.as_bytes()).unwrap();
                let dims: &[i32] = if array { &[2] } else { &[] };
                if let Err(error) = file.insert_field((ROOT, compound), b"f", 0, inner, dims) {
                    file.insert_field((ROOT, compound), b"f", 0, 4, &[]).unwrap();
                    break error;
                }
                (inner, size) = (compound, size * 2);
            }
            n += 1;
        };
        assert_eq!(refused.code(), NcError::HdfErr);
        assert!(refused.to_string().contains("types in types"), "{refused}");
        assert!(n >= if array { 165 } else { 250 }, "{n}");
        let n_types = file.model().unwrap().types.len();
        let file = reopened(file, memory);
        assert_eq!(file.model().unwrap().types.len(), n_types);
    }
}

/// Strings are longer in the file, where an element must have less than 4 GiB, too.
#[test]
fn an_element_that_is_too_long_in_the_file_is_refused_when_it_is_defined() {
    let (mut file, memory) = created(false);
    let c = file.def_compound(ROOT, u32::MAX as usize, b"c").unwrap();
    file.insert_field((ROOT, c), b"i", 0, 4, &[]).unwrap();
    let refused = file.insert_field((ROOT, c), b"s", 8, NC_STRING, &[]);
    assert_eq!(code(refused), NcError::HdfErr.code());
    let file = reopened(file, memory);
    assert_eq!(file.model().unwrap().types.len(), 1);
}

/// The reference finds out when definitions end.
#[test]
fn a_type_of_a_later_group_is_no_part_of_another_type() {
    let (mut file, memory) = created(false);
    let a = file.def_group(ROOT, b"a").unwrap();
    let b = file.def_group(ROOT, b"b").unwrap();
    let in_a = file.def_opaque(a, 3, b"o").unwrap();
    let in_b = file.def_opaque(b, 4, b"o").unwrap();
    let hdf_error = NcError::HdfErr.code();
    assert_eq!(code(file.def_vlen(ROOT, b"v", in_a)), hdf_error);
    assert_eq!(code(file.def_vlen(a, b"v", in_b)), hdf_error);
    assert_eq!(code(file.def_vlen(b, b"v", in_a)), 0);
    let c = file.def_compound(a, 8, b"c").unwrap();
    assert_eq!(code(file.insert_field((a, c), b"f", 0, in_b, &[])), hdf_error);
    assert_eq!(code(file.insert_field((a, c), b"f", 0, in_a, &[])), 0);
    let file = reopened(file, memory);
    assert_eq!(file.model().unwrap().types.len(), 4);
}

#[test]
fn a_fill_value_that_no_message_has_room_for_is_refused() {
    let (mut file, memory) = created(false);
    let opaque = file.def_opaque(ROOT, 70_000, b"o").unwrap();
    let v = file.def_var(ROOT, b"v", opaque, &[]).unwrap();
    let value = vec![1u8; 70_000];
    let refused = file.def_var_fill(v.into(), false, Some(Values::plain(&value)));
    assert_eq!(code(refused), NcError::HdfErr.code());
    let file = reopened(file, memory);
    assert_eq!(file.model().unwrap().types.len(), 1);
}

use super::*;
use crate::write::testing::{ROOT, create};
use zonda_format::TypeDefinitions as _;

fn offsets(datatype: &Datatype) -> Vec<(String, u32, u32)> {
    let Class::Compound(compound) = &datatype.class else { panic!("{datatype:?}") };
    let name = |member: &Member| String::from_utf8(member.name.to_vec()).unwrap();
    compound.members.iter().map(|m| (name(m), m.offset, m.datatype.size)).collect()
}

fn of(list: &[(&str, u32, u32)]) -> Vec<(String, u32, u32)> {
    list.iter().map(|(name, offset, size)| ((*name).to_owned(), *offset, *size)).collect()
}

#[test]
fn atomic_types_are_read_as_what_they_are() {
    for ext in ExtType::ALL {
        for endianness in [Endianness::Native, Endianness::Little, Endianness::Big] {
            let Typed { datatype, form } =
                Typed::of(&Model::default(), ext.nc_type(), endianness).unwrap();
            assert_eq!(form.atomic(), Some(ext.nc_type()));
            assert_eq!((form.size, datatype.size as usize), (ext.size(), ext.size()));
            let order = match endianness {
                Endianness::Native => ByteOrder::NATIVE,
                Endianness::Little => ByteOrder::Little,
                Endianness::Big => ByteOrder::Big,
            };
            let is_number = ext != ExtType::Char;
            assert_eq!(form.shape == ElementShape::Number(ext, order), is_number, "{ext:?}");
        }
    }
    let Typed { datatype, form } = Typed::of(&Model::default(), 12, Endianness::Native).unwrap();
    assert_eq!((form.atomic(), form.size, datatype.size), (Some(12), 8, 16));
}

/// Places as netCDF-C 4.9.0 and HDF5 1.10.8 write them for the same structs:
/// `struct S { int a; char *s; double d; char c[3]; nc_vlen_t v; char *s2; }` and
/// `struct O { short x; struct S in[2]; signed char y; }`.
#[test]
fn strings_move_what_is_behind_them() {
    let mut file = create();
    let v = file.def_vlen(ROOT, b"vl", 4).unwrap();
    let s = file.def_compound(ROOT, 56, b"S").unwrap();
    for (name, offset, nc_type, dims) in [
        ("a", 0, 4, &[][..]),
        ("s2", 48, 12, &[]),
        ("s", 8, 12, &[]),
        ("d", 16, 6, &[]),
        ("c", 24, 2, &[3]),
        ("v", 32, v, &[]),
    ] {
        file.insert_field((ROOT, s), name.as_bytes(), offset, nc_type, dims).unwrap();
    }
    let o = file.def_compound(ROOT, 128, b"O").unwrap();
    for (name, offset, nc_type, dims) in
        [("x", 0, 3, &[][..]), ("in", 8, s, &[2]), ("y", 120, 1, &[])]
    {
        file.insert_field((ROOT, o), name.as_bytes(), offset, nc_type, dims).unwrap();
    }
    let model = file.model().unwrap();
    let typed = Typed::of(model, s, Endianness::Native).unwrap();
    assert_eq!((typed.datatype.size, typed.form.size), (72, 56));
    let expected =
        [("a", 0, 4), ("s", 8, 16), ("d", 24, 8), ("c", 32, 3), ("v", 40, 16), ("s2", 56, 16)];
    assert_eq!(offsets(&typed.datatype), of(&expected));
    let typed = Typed::of(model, o, Endianness::Native).unwrap();
    assert_eq!((typed.datatype.size, typed.form.size), (160, 128));
    assert_eq!(offsets(&typed.datatype), of(&[("x", 0, 2), ("in", 8, 144), ("y", 152, 1)]));
    // What a compiler lays out is what a reader makes of the file.
    assert_eq!(ElementForm::of(&typed.datatype).unwrap(), typed.form);
}

#[test]
fn packed_structs_stay_packed() {
    let mut file = create();
    let p = file.def_compound(ROOT, 5, b"packed").unwrap();
    file.insert_field((ROOT, p), b"b", 0, 1, &[]).unwrap();
    file.insert_field((ROOT, p), b"i", 1, 4, &[]).unwrap();
    let typed = Typed::of(file.model().unwrap(), p, Endianness::Native).unwrap();
    assert_eq!(offsets(&typed.datatype), of(&[("b", 0, 1), ("i", 1, 4)]));
    assert_eq!((typed.datatype.size, typed.form.size), (5, 5));
    let ElementShape::Compound(parts) = &typed.form.shape else { panic!() };
    assert_eq!((parts[1].at, parts[1].file_at), (1, 1));
}

#[test]
fn fields_without_pointers_keep_their_order() {
    let mut file = create();
    let c = file.def_compound(ROOT, 8, b"c").unwrap();
    file.insert_field((ROOT, c), b"second", 4, 4, &[]).unwrap();
    file.insert_field((ROOT, c), b"first", 0, 4, &[]).unwrap();
    let typed = Typed::of(file.model().unwrap(), c, Endianness::Native).unwrap();
    assert_eq!(offsets(&typed.datatype), of(&[("second", 4, 4), ("first", 0, 4)]));
}

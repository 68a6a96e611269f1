//! Codes and orders are those that netCDF-C 4.9.0 gives for the same calls.

use crate::Nc4File;
use zonda_format::{AttAccess, Destination, Transfer};
use zonda_format::{
    Definitions as _, Dispatch as _, DispatchWrite as _, Reserve, StoreVars as _,
    TypeDefinitions as _,
};
use zonda_model::MemType;

use super::*;
use crate::StorageRequest;
use crate::write::testing::{
    GLOBAL, List, ROOT, code, create, created, get, get_data, get_ints, get_strings, listed, names,
    of, put, put_data, put_ints, put_natural, put_strings, put_text, reopened,
};

/// `int v`, `float f`, `string s`, `char c`
fn vars() -> (Nc4File, [VarId; 4]) {
    let mut file = create();
    let mut def = |name: &str, nc_type| file.def_var(ROOT, name.as_bytes(), nc_type, &[]).unwrap();
    let vars = [def("v", 4), def("f", 5), def("s", 12), def("c", 2)];
    (file, vars)
}

#[test]
fn codes_of_puts() {
    let (mut file, [v, ..]) = vars();
    let v = of(v);
    assert_eq!(code(put_ints(&mut file, of(VarId(9)), "a", 4, &[1])), -49);
    let converted = put_ints(&mut file, v, "a", 1, &[1, 300, -5]).unwrap();
    assert_eq!(converted, 1, "NC_ERANGE");
    assert_eq!(get_ints(&file, v, "a"), [1, 44, -5], "and it is there");
    for (nc_type, expected) in [(0, -45), (99, -117), (-1, -36), (13, -117), (2, -56), (12, -56)] {
        assert_eq!(code(put_ints(&mut file, v, "b", nc_type, &[1])), expected, "{nc_type}");
    }
    let mut text = |nc_type| code(put(&mut file, v, "b", nc_type, MemType::Text, b"x"));
    assert_eq!((text(4), text(12), text(0)), (-56, -56, -45));
    assert_eq!(code(put_text(&mut file, v, &"n".repeat(257), "x")), -59, "this code, indeed");
    assert_eq!(code(put_text(&mut file, v, "a/", "x")), -59);
    let many = 1 << 31;
    let att = AttPut { owner: v, name: b"a", nc_type: 4, n_values: many, mem: Some(MemType::I32) };
    assert_eq!(code(file.check_put_att(&att)), -36, "without its values");
    put_text(&mut file, v, "t", "").unwrap();
    put_ints(&mut file, v, "z", 4, &[]).unwrap();
    put_strings(&mut file, v, "st", &[Some("eins"), None, Some("")]).unwrap();
    put_strings(&mut file, v, "st0", &[]).unwrap();
    let found = listed(&file, v);
    let found: Vec<_> =
        found.iter().map(|(name, nc_type, len)| (&**name, *nc_type, *len)).collect();
    // Those that were refused left nothing behind (in the reference they do).
    assert_eq!(found, [("a", 1, 3), ("t", 2, 0), ("z", 4, 0), ("st", 12, 3), ("st0", 12, 0)]);
    let strings = [Some("eins".to_owned()), None, Some(String::new())];
    assert_eq!(get_strings(&file, v, "st"), strings);
    let (number, att) = file.find_att(v, b"st").unwrap();
    assert_eq!((number, &*att.name, att.nc_type, att.len), (3, &b"st"[..], 12, 3));
}

#[test]
fn codes_of_reserved_names() {
    let (mut file, [v, ..]) = vars();
    let group = VarRef { group: file.def_group(ROOT, b"g").unwrap(), var: VarId::GLOBAL };
    let kept = "CLASS NAME DIMENSION_LIST REFERENCE_LIST _ARRAY_DIMENSIONS _Codecs _Format \
                _IsNetcdf4 _NCProperties _NCZARR_ATTR _Netcdf4Coordinates _Netcdf4Dimid \
                _SuperblockVersion _nc3_strict";
    for name in kept.split_whitespace() {
        assert_eq!(code(put_text(&mut file, of(v), name, "x")), -42, "{name}");
        assert_eq!(code(put_text(&mut file, GLOBAL, name, "x")), -42, "{name}");
        assert_eq!(code(put_text(&mut file, group, name, "x")), 0, "{name}");
    }
    for name in ["DIMENSION_LABELS", "class", "_FillValue2"] {
        assert_eq!(code(put_text(&mut file, of(v), name, "x")), 0, "{name}");
    }
}

#[test]
fn codes_of_renames_and_deletions() {
    let (mut file, [v, ..]) = vars();
    let v = of(v);
    for name in ["a", "b"] {
        put_ints(&mut file, v, name, 4, &[1]).unwrap();
    }
    let mut rename =
        |name: &str, to: &str| code(file.rename_att(v, name.as_bytes(), to.as_bytes()));
    assert_eq!(rename("nope", "a"), -42);
    assert_eq!(rename("nope", "n2"), -43);
    assert_eq!(rename("a", "a"), -42);
    assert_eq!(rename("a", &"n".repeat(257)), -53);
    assert_eq!(rename("a", "a/"), -59);
    assert_eq!(rename("a", "é"), 0);
    assert_eq!(rename("e\u{301}", "c"), 0);
    // The reference makes a file of it that it cannot read as it was.
    assert_eq!(rename("c", "CLASS"), -42);
    assert_eq!(names(&file, v), ["c", "b"]);
    assert_eq!(code(file.rename_att(of(VarId(9)), b"a", b"b")), -49);
    assert_eq!(code(file.del_att(v, b"a")), -43);
    assert_eq!(code(file.del_att(of(VarId(9)), b"c")), -49);
    assert_eq!(code(file.del_att(v, b"c")), 0);
    assert_eq!(names(&file, v), ["b"]);
}

#[test]
fn codes_in_the_classic_model() {
    let mut file = created(true).0;
    let v = of(file.def_var(ROOT, b"v", 4, &[]).unwrap());
    for (nc_type, expected) in [(7, -112), (10, -112), (12, -56), (99, -112), (6, 0)] {
        assert_eq!(code(put_ints(&mut file, v, "a", nc_type, &[1])), expected, "{nc_type}");
    }
    // What does not fit a byte is counted, but not a byte without its sign.
    assert_eq!(put(&mut file, v, "b", 1, MemType::U8, &[200]).unwrap(), 0);
    assert_eq!(put_ints(&mut file, v, "b", 1, &[200]).unwrap(), 1);
    put_text(&mut file, v, "t", "ab").unwrap();
    file.enddef(Reserve::Default).unwrap();
    assert_eq!(code(file.rename_att(v, b"t", b"longer")), -38);
    assert_eq!(code(file.rename_att(v, b"t", b"s")), 0);
    for (name, text, expected) in [("s", "xy", 0), ("s", "xyz", -38), ("new", "x", -38)] {
        assert_eq!(code(put_text(&mut file, v, name, text)), expected, "{name}");
    }
    assert_eq!(code(put_ints(&mut file, v, "s", 4, &[1])), -38);
    assert_eq!(code(put_ints(&mut file, v, "s", 3, &[1])), 0);
    assert_eq!(code(put_ints(&mut file, v, "new", 0, &[1])), -38, "before the type");
    assert_eq!(code(file.del_att(v, b"s")), -38);
    assert_eq!(code(file.del_att(of(VarId(9)), b"s")), -38);
    assert!(!file.in_define_mode());
}

#[test]
fn what_enters_define_mode() {
    let (mut file, [v, ..]) = vars();
    let v = of(v);
    put_ints(&mut file, v, "a", 4, &[1, 2]).unwrap();
    file.enddef(Reserve::Default).unwrap();
    put_ints(&mut file, v, "a", 3, &[1, 2, 3, 4]).unwrap();
    assert_eq!(code(file.rename_att(v, b"a", b"much longer")), 0);
    assert!(!file.in_define_mode());
    assert_eq!(code(file.del_att(v, b"nope")), -43);
    assert!(file.in_define_mode(), "before it is looked for");
    file.enddef(Reserve::Default).unwrap();
    put_ints(&mut file, v, "much longer", 4, &[1, 2, 3]).unwrap();
    assert!(file.in_define_mode());
}

#[test]
fn codes_of_fill_values() {
    let (mut file, [v, f, s, c]) = vars();
    let fill = "_FillValue";
    assert_eq!(code(put_ints(&mut file, of(v), fill, 4, &[1, 2])), -36);
    assert_eq!(code(put_ints(&mut file, of(v), fill, 3, &[1])), -45);
    assert_eq!(code(put_ints(&mut file, of(v), fill, 4, &[])), -36);
    assert_eq!(names(&file, of(v)), [""; 0]);
    assert_eq!(code(put(&mut file, of(v), fill, 4, MemType::F64, &300f64.to_ne_bytes())), 0);
    assert_eq!(file.var_info(ROOT, v).unwrap().fill_value, 300i32.to_ne_bytes());
    let out = put(&mut file, of(f), fill, 5, MemType::F64, &1e40f64.to_ne_bytes()).unwrap();
    assert_eq!(out, 1);
    assert_eq!(file.var_info(ROOT, f).unwrap().fill_value, f32::INFINITY.to_ne_bytes());
    assert_eq!(code(put_text(&mut file, of(c), fill, "z")), 0);
    assert_eq!(code(put_strings(&mut file, of(s), fill, &[Some("eins")])), 0);
    assert_eq!(code(put_ints(&mut file, GLOBAL, fill, 4, &[1, 2, 3])), 0, "means nothing there");
    let (mut out, mut list) = ([0; 8], List::default());
    let room = Destination { bytes: &mut out, place: Some(&mut list) };
    file.fill_value(of(s), room).unwrap();
    assert_eq!(list.at(u64::from_ne_bytes(out)), Some(&b"eins"[..]));
    let found = code(file.fill_value(of(s), Destination::plain(&mut out)));
    assert_eq!(found, -45, "no place for it");
    file.enddef(Reserve::Default).unwrap();
    assert_eq!(code(put_ints(&mut file, of(v), fill, 4, &[1])), -122);
    assert_eq!(code(put_ints(&mut file, of(v), fill, 3, &[1])), -122);
    assert_eq!(code(put_ints(&mut file, of(v), fill, 4, &[1, 2])), -36);
}

#[test]
fn a_fill_value_may_come_late_but_not_after_data() {
    let (mut file, memory) = created(false);
    file.def_dim(ROOT, b"x", 2).unwrap();
    let [chunked, compact, other] = ["chunked", "compact", "other"]
        .map(|name| file.def_var(ROOT, name.as_bytes(), 4, &[0]).unwrap());
    file.def_var_deflate(chunked.into(), true, Some(1)).unwrap();
    file.def_var_chunking(compact.into(), StorageRequest::Compact, None).unwrap();
    let whole: (&[usize], &[usize]) = (&[0], &[2]);
    let put = |file: &mut Nc4File, var| {
        put_data(file, var, whole, MemType::I32, &[1, 0, 0, 0, 2, 0, 0, 0]);
    };
    let get = |file: &Nc4File, var| {
        let out = get_data(file, var, whole, MemType::I32);
        out.as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect::<Vec<_>>()
    };
    // A put ends definitions without a word.
    put(&mut file, other);
    file.sync().unwrap();
    for var in [chunked, compact] {
        assert_eq!(get(&file, var), [-2_147_483_647; 2]);
        assert_eq!(code(put_ints(&mut file, of(var), "_FillValue", 4, &[7])), 0);
        assert_eq!(get(&file, var), [7, 7]);
    }
    assert_eq!(code(put_ints(&mut file, of(other), "_FillValue", 4, &[7])), -122);
    assert_eq!(code(file.def_var_fill(chunked.into(), false, None)), -123);
    let file = reopened(file, memory);
    for var in [chunked, compact] {
        assert_eq!(
            (get(&file, var), get_ints(&file, of(var), "_FillValue")),
            (vec![7, 7], vec![7])
        );
        assert_eq!(file.var_info(ROOT, var).unwrap().fill_value, 7i32.to_ne_bytes());
    }
    assert_eq!(get(&file, other), [1, 2]);
}

#[test]
fn user_types() {
    let (mut file, memory) = created(false);
    let c = file.def_compound(ROOT, 16, b"c").unwrap();
    file.insert_field((ROOT, c), b"n", 0, 3, &[]).unwrap();
    file.insert_field((ROOT, c), b"s", 8, 12, &[]).unwrap();
    let e = file.def_enum(ROOT, 4, b"e").unwrap();
    file.insert_member((ROOT, e), b"one", &1i32.to_ne_bytes()).unwrap();
    let o = file.def_opaque(ROOT, 3, b"o").unwrap();
    let vl = file.def_vlen(ROOT, b"vl", c).unwrap();
    assert_eq!(code(put_ints(&mut file, GLOBAL, "x", c, &[1])), -74);
    assert_eq!(code(put_ints(&mut file, GLOBAL, "x", e, &[1])), -74);
    assert_eq!(code(put_text(&mut file, GLOBAL, "x", c.to_string().as_str())), 0);
    file.del_att(GLOBAL, b"x").unwrap();
    assert_eq!(code(put(&mut file, GLOBAL, "x", c, MemType::Text, b"x")), -56);
    let mut list = List::default();
    let mut element = vec![7, 0, 0, 0, 0, 0, 0, 0];
    element.extend(list.add("zwölf".as_bytes()).to_ne_bytes());
    let mut two = element.clone();
    two.extend([9, 0, 0, 0, 0, 0, 0, 0]);
    two.extend([0; 8]);
    let sequence = list.sequence(2, &two);
    put_natural(&mut file, GLOBAL, "c", c, &mut list, &element, 1).unwrap();
    put_natural(&mut file, GLOBAL, "e", e, &mut list, &[1, 0, 0, 0, 1, 0, 0, 0], 2).unwrap();
    put_natural(&mut file, GLOBAL, "o", o, &mut list, b"abc", 1).unwrap();
    put_natural(&mut file, GLOBAL, "vl", vl, &mut list, &sequence, 1).unwrap();
    put_strings(&mut file, GLOBAL, "s", &[Some("a"), None, Some("")]).unwrap();
    let expected = [("c", c, 1), ("e", e, 2), ("o", o, 1), ("vl", vl, 1), ("s", 12, 3)];
    let expected = expected.map(|(name, nc_type, len)| (name.to_owned(), nc_type, len));
    let check = |file: &Nc4File| {
        assert_eq!(listed(file, GLOBAL), expected);
        let (bytes, kept) = get(file, GLOBAL, "c").unwrap();
        let text = |bytes: &[u8]| u64::from_ne_bytes(bytes[..8].try_into().unwrap());
        assert_eq!((bytes[0], kept.at(text(&bytes[8..]))), (7, Some("zwölf".as_bytes())));
        assert_eq!(get(file, GLOBAL, "e").unwrap().0, [1, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(get(file, GLOBAL, "o").unwrap().0, b"abc");
        let (bytes, kept) = get(file, GLOBAL, "vl").unwrap();
        let items = kept.at(text(&bytes[8..])).unwrap();
        assert_eq!((text(&bytes), items[0], items[16]), (2, 7, 9));
        assert_eq!(kept.at(text(&items[8..])), Some("zwölf".as_bytes()));
        assert_eq!(text(&items[24..]), 0);
        let strings = [Some("a".to_owned()), None, Some(String::new())];
        assert_eq!(get_strings(file, GLOBAL, "s"), strings);
        assert_eq!(code(get(file, GLOBAL, "x")), -43);
        let att = AttAccess { owner: GLOBAL, name: b"o", mem: Some(MemType::I32) };
        assert_eq!(code(file.check_get_att(&mut Transfer::new(att))), -45);
    };
    check(&file);
    file.enddef(Reserve::Default).unwrap();
    check(&file);
    // A second commit of the same header.
    put_ints(&mut file, GLOBAL, "more", 4, &[1]).unwrap();
    file.sync().unwrap();
    file.del_att(GLOBAL, b"more").unwrap();
    check(&reopened(file, memory));
}

#[test]
fn attributes_of_a_file_that_is_opened_again_for_writing() {
    use std::path::Path;
    let (mut file, memory) = created(false);
    let v = file.def_var(ROOT, b"v", 4, &[]).unwrap();
    for name in ["a", "b", "c"] {
        put_ints(&mut file, of(v), name, 4, &[1]).unwrap();
    }
    put_strings(&mut file, of(v), "s", &[Some("eins")]).unwrap();
    file.close().unwrap();
    let name = Path::new("test.nc");
    let mut file = Nc4File::open_for_writing(memory.clone(), name, Default::default()).unwrap();
    assert_eq!(code(put_ints(&mut file, of(v), "_FillValue", 4, &[1])), -122);
    assert_eq!(code(put_ints(&mut file, of(v), "a", 3, &[1, 2])), 0);
    assert_eq!(code(put_ints(&mut file, of(v), "b", 4, &[5])), 0);
    assert_eq!(code(file.del_att(of(v), b"c")), 0);
    assert_eq!(code(put_text(&mut file, of(v), "d", "new")), 0);
    assert_eq!(names(&file, of(v)), ["a", "b", "s", "d"]);
    assert_eq!(get_strings(&file, of(v), "s"), [Some("eins".to_owned())]);
    let file = reopened(file, memory);
    assert_eq!(names(&file, of(v)), ["b", "s", "a", "d"]);
    assert_eq!((get_ints(&file, of(v), "b"), get_ints(&file, of(v), "a")), (vec![5], vec![1, 2]));
    assert_eq!(get_strings(&file, of(v), "s"), [Some("eins".to_owned())]);
}

#[test]
fn nothing_changes_in_a_file_open_for_reading() {
    let (mut file, memory) = created(false);
    let v = of(file.def_var(ROOT, b"v", 4, &[]).unwrap());
    put_text(&mut file, v, "t", "x").unwrap();
    let mut file = reopened(file, memory);
    assert_eq!(code(put_ints(&mut file, of(VarId(9)), "t", 4, &[1])), -49);
    assert_eq!(code(put_ints(&mut file, v, "a/", 4, &[1])), -37);
    assert_eq!(code(put_ints(&mut file, v, &"n".repeat(257), 4, &[1])), -59);
    assert_eq!(code(file.rename_att(v, b"t", &[b'n'; 257])), -53);
    assert_eq!(code(file.rename_att(v, b"t", b"a/")), -37);
    assert_eq!(code(file.del_att(of(VarId(9)), b"t")), -37);
    assert_eq!(names(&file, v), ["t"]);
}

#[test]
fn what_ends_definitions_settles_the_order_though_nothing_is_written() {
    let order = |ends: bool| {
        let (mut file, memory) = created(false);
        for name in ["a", "b", "c"] {
            put_ints(&mut file, GLOBAL, name, 4, &[1]).unwrap();
        }
        if ends {
            file.leave_define_mode().unwrap();
        }
        put_ints(&mut file, GLOBAL, "a", 4, &[1, 2]).unwrap();
        file.rename_att(GLOBAL, b"b", b"d").unwrap();
        assert_eq!(names(&file, GLOBAL), ["a", "d", "c"]);
        names(&reopened(file, memory), GLOBAL)
    };
    // As a file of the reference has them, where data were put after the definitions.
    assert_eq!(order(true), ["c", "a", "d"]);
    assert_eq!(order(false), ["a", "d", "c"]);
}

//! Codes are those that netCDF-C 4.9.0 gives for the same calls.

use super::*;
use crate::write::testing::{ROOT, code, create, created, names, of, put_ints, reopened};
use zonda_format::{
    Definitions as _, DispatchWrite as _, FillMode, Reserve, StoreVars as _, TypeDefinitions as _,
};

#[test]
fn codes_of_definitions() {
    let mut file = create();
    file.def_dim(ROOT, b"x", 4).unwrap();
    file.def_group(ROOT, b"g").unwrap();
    let ty = file.def_opaque(ROOT, 3, b"t").unwrap();
    let cases: &[(&str, i32, &[i32], i32)] = &[
        ("v", 4, &[0], 0),
        ("v", 4, &[0], -42),
        ("g", 4, &[], -42),
        ("t", 4, &[], -42),
        ("x", 4, &[], 0),
        ("none", 0, &[], -45),
        ("negative", -1, &[], -36),
        ("thirteen", 13, &[], -45),
        ("user", ty, &[], 0),
        ("unknown", 99, &[], -45),
        ("dim", 4, &[77], -46),
        ("dim", 4, &[-1], -46),
        ("many", 4, &[0; 33], -41),
        ("enough", 4, &[0; 32], 0),
        // The first thing that is wrong.
        ("a/", 4, &[0; 33], -41),
        ("a/", 0, &[], -59),
        ("v", 0, &[], -45),
        ("v", 99, &[], -42),
        ("both", 99, &[77], -46),
        ("both", -1, &[77], -46),
    ];
    for &(name, nc_type, dims, expected) in cases {
        let result = file.def_var(ROOT, name.as_bytes(), nc_type, dims);
        assert_eq!(code(result), expected, "{name}");
    }
    let model = file.model().unwrap();
    let vars = &model.groups[0].vars;
    let found: Vec<_> = vars.iter().map(|var| String::from_utf8_lossy(&var.name)).collect();
    assert_eq!(found, ["v", "x", "user", "enough"]);
    assert_eq!((&*vars[0].extent, &*vars[0].dims), (&[4][..], &[DimId(0)][..]));
}

#[test]
fn codes_in_the_classic_model_and_for_reading() {
    let mut file = created(true).0;
    for (nc_type, expected) in [(6, 0), (7, -112), (10, -112), (12, -112), (99, -112)] {
        assert_eq!(code(file.def_var(ROOT, b"v", nc_type, &[])), expected, "{nc_type}");
    }
    file.enddef(Reserve::Default).unwrap();
    let v = VarId(0);
    assert_eq!(code(file.def_var(ROOT, b"a/", 4, &[])), -38);
    for (name, expected) in [("longer", -38), ("v", -42), ("w", 0), ("w", -42)] {
        assert_eq!(code(file.rename_var(v.into(), name.as_bytes())), expected, "{name}");
    }
    let (mut file, memory) = created(false);
    file.def_var(ROOT, b"v", 4, &[]).unwrap();
    let mut file = reopened(file, memory);
    assert_eq!(code(file.def_var(ROOT, b"a/", 4, &[0; 33])), -41);
    assert_eq!(code(file.def_var(ROOT, b"a/", 4, &[])), -37);
    assert_eq!(code(file.rename_var(v.into(), &[b'a'; 257])), -53);
    assert_eq!(code(file.rename_var(v.into(), b"a/")), -37);
}

#[test]
fn names_that_the_file_could_not_have() {
    // A variable beside a dimension of its name has a longer one in the file.
    let mut file = create();
    file.def_dim(ROOT, b"x", 4).unwrap();
    let long = [b'b'; 250];
    file.def_dim(ROOT, &long, 3).unwrap();
    assert_eq!(code(file.def_var(ROOT, &long, 4, &[0])), -53);
    assert_eq!(code(file.def_var(ROOT, &long, 4, &[1])), 0, "its coordinate variable");
    let v = file.def_var(ROOT, b"v", 4, &[0]).unwrap();
    file.def_dim(ROOT, &[b'c'; 250], 3).unwrap();
    assert_eq!(code(file.rename_var(v.into(), &[b'c'; 250])), -53);
    assert_eq!(code(file.rename_var(v.into(), b"x")), 0);
}

#[test]
fn a_new_variable_answers_at_once() {
    let mut file = create();
    file.def_dim(ROOT, b"u", 0).unwrap();
    file.def_dim(ROOT, b"x", 5).unwrap();
    let fixed = file.def_var(ROOT, b"fixed", 3, &[1]).unwrap();
    let record = file.def_var(ROOT, b"record", 6, &[0, 1]).unwrap();
    let text = file.def_var(ROOT, b"text", 2, &[]).unwrap();
    let info = file.var_info(ROOT, fixed).unwrap();
    assert_eq!(info.storage, StorageKind::Contiguous);
    assert_eq!((info.endianness, info.no_fill), (Endianness::Native, false));
    assert_eq!(info.fill_value, (-32767i16).to_ne_bytes());
    assert!(info.filters.is_empty());
    let info = file.var_info(ROOT, record).unwrap();
    assert_eq!(info.storage, StorageKind::Chunked(vec![204, 5]));
    assert_eq!(file.var_info(ROOT, text).unwrap().fill_value, [0]);
    assert_eq!(file.n_atts(of(record)).unwrap(), 0);
    assert_eq!(file.chunk_cache(fixed.into()).unwrap(), (16 << 20, 4133, 0.75));
    assert_eq!(file.chunk_cache(record.into()).unwrap(), (16 << 20, 4133, 0.75));
    assert_eq!(file.model().unwrap().var(ROOT, record).unwrap().extent[..], [0, 5]);
    let no_fill = file.set_fill(FillMode::NoFill).unwrap();
    let loose = file.def_var(ROOT, b"loose", 4, &[]).unwrap();
    let string = file.def_var(ROOT, b"string", 12, &[]).unwrap();
    assert_eq!(no_fill, FillMode::Fill);
    assert_eq!(file.set_fill(FillMode::Fill).unwrap(), FillMode::NoFill);
    assert!(file.var_info(ROOT, loose).unwrap().no_fill);
    assert!(!file.var_info(ROOT, string).unwrap().no_fill, "strings are always filled");
}

#[test]
fn settled_variables_are_what_the_file_has() {
    let (mut file, memory) = created(false);
    file.def_dim(ROOT, b"u", 0).unwrap();
    let ty = file.def_compound(ROOT, 8, b"pair").unwrap();
    file.insert_field((ROOT, ty), b"a", 0, 4, &[]).unwrap();
    let v = file.def_var(ROOT, b"v", ty, &[0]).unwrap();
    // The type grows after the variable has it.
    file.insert_field((ROOT, ty), b"b", 4, 5, &[]).unwrap();
    let f = file.def_var(ROOT, b"f", 5, &[0]).unwrap();
    file.def_var_quantize(f.into(), 1, 3).unwrap();
    put_ints(&mut file, of(f), "before", 4, &[1]).unwrap();
    file.def_var_deflate(f.into(), true, Some(2)).unwrap();
    assert_eq!(names(&file, of(f)), ["before"]);
    file.enddef(Reserve::Default).unwrap();
    let quantized = "_QuantizeBitGroomNumberOfSignificantDigits";
    assert_eq!(names(&file, of(f)), ["before", quantized]);
    assert_eq!(code(file.def_var_deflate(f.into(), true, None)), -123);
    let file = reopened(file, memory);
    let model = file.model().unwrap();
    assert_eq!(model.var(ROOT, v).unwrap().nc_type, ty);
    let crate::UserClass::Compound(fields) = &model.types[0].class else { panic!() };
    assert_eq!((fields.len(), fields[1].offset, fields[1].nc_type), (2, 4, 5));
    assert_eq!(names(&file, of(f)), ["before", quantized]);
    let info = file.var_info(ROOT, f).unwrap();
    let filters: Vec<_> = info.filters.iter().map(|f| (f.id, &f.params[..])).collect();
    assert_eq!(filters, [(2, &[4][..]), (1, &[2])]);
    assert_eq!(info.storage, StorageKind::Chunked(vec![2048]));
}

#[test]
fn a_shape_without_end_is_no_harm() {
    let (mut file, memory) = created(false);
    for (name, len) in [("a", 1_804_289_383), ("b", 846_930_886), ("c", 1_681_692_777)] {
        file.def_dim(ROOT, name.as_bytes(), len).unwrap();
    }
    let huge = file.def_var(ROOT, b"huge", 5, &[0, 1, 2]).unwrap();
    file.def_var_chunking(huge.into(), StorageRequest::Chunked, None).unwrap();
    file.def_var(ROOT, b"v", 4, &[]).unwrap();
    file.sync().unwrap();
    put_ints(&mut file, of(huge), "a", 4, &[1]).unwrap();
    let file = reopened(file, memory);
    let model = file.model().unwrap();
    assert_eq!(model.groups[0].find_var(b"v"), Some(VarId(1)));
}

//! Codes are those that netCDF-C 4.9.0 gives for the same calls, or at the end of definitions where
//! it takes at first what it refuses then (these are marked).

use super::*;
use crate::StorageKind;
use crate::write::testing::{ROOT, code, create, created, names, of, put_ints, reopened};
use zonda_format::{DispatchWrite as _, FillMode, Reserve, StoreVars as _, TypeDefinitions as _};

/// A file with dimensions x = 4, y = 6 and u, and variables of many kinds.
struct Vars {
    file: Nc4File,
    /// `int v(x, y)`
    v: VarId,
    /// `int rec(u, y)`
    rec: VarId,
    /// `int scalar`
    scalar: VarId,
    /// `string str(x)`
    string: VarId,
    /// `char ch(x)`
    text: VarId,
}

fn vars() -> Vars {
    let mut file = create();
    for (name, len) in [("x", 4), ("y", 6), ("u", 0)] {
        file.def_dim(ROOT, name.as_bytes(), len).unwrap();
    }
    let mut def = |name: &str, nc_type, dims: &[i32]| {
        file.def_var(ROOT, name.as_bytes(), nc_type, dims).unwrap()
    };
    let (v, rec) = (def("v", 4, &[0, 1]), def("rec", 4, &[2, 1]));
    let (scalar, string, text) = (def("scalar", 4, &[]), def("str", 12, &[0]), def("ch", 2, &[0]));
    Vars { file, v, rec, scalar, string, text }
}

fn spec(id: u32, params: &[u32]) -> FilterSpec {
    FilterSpec { id, optional: true, name: String::new(), params: params.to_vec() }
}

fn ids(file: &Nc4File, var: VarId) -> Vec<u32> {
    file.var_info(ROOT, var).unwrap().filters.iter().map(|filter| filter.id).collect()
}

fn storage(file: &Nc4File, var: VarId) -> StorageKind {
    file.var_info(ROOT, var).unwrap().storage.clone()
}

#[test]
fn codes_of_deflate_and_checksums() {
    let Vars { mut file, v, scalar, string, .. } = vars();
    let mut deflate = |var: VarId, shuffle: bool, deflate: bool, level| {
        let result = file.def_var_deflate(var.into(), shuffle, deflate.then_some(level));
        (code(result), if var == v { ids(&file, v) } else { Vec::new() })
    };
    let none = Vec::new;
    assert_eq!(deflate(VarId(99), true, true, 1), (-49, none()));
    assert_eq!(deflate(VarId::GLOBAL, true, true, 1), (-49, none()));
    assert_eq!(deflate(scalar, true, true, 1), (-36, none()));
    assert_eq!(deflate(scalar, false, true, 1), (-36, none()));
    assert_eq!(deflate(scalar, false, false, 1), (0, none()));
    assert_eq!(deflate(string, false, true, 1), (-132, none()));
    assert_eq!(deflate(string, true, false, 1), (-132, none()));
    assert_eq!(deflate(string, false, false, 1), (0, none()));
    assert_eq!(deflate(v, false, true, 10), (-36, none()));
    assert_eq!(deflate(v, true, true, 10), (-36, vec![2]), "shuffle stays");
    assert_eq!(deflate(v, false, true, -1), (-36, vec![2]));
    assert_eq!(deflate(v, false, true, 0), (0, vec![2]));
    assert_eq!(deflate(v, false, true, 4), (0, vec![2, 1]));
    assert_eq!(deflate(v, false, true, 9), (0, vec![2, 1]));
    // The reference says so at the end of definitions.
    assert_eq!(deflate(v, false, true, 20), (-36, vec![2, 1]));
    let level = file.var_info(ROOT, v).unwrap().filters[1].params.clone();
    assert_eq!(level, [9]);
    assert_eq!(code(file.def_var_fletcher32(scalar.into(), true)), -36);
    assert_eq!(code(file.def_var_fletcher32(string.into(), true)), -132);
    // Since 4.9.3; 4.9.0 sets checksums all the same.
    assert_eq!(code(file.def_var_fletcher32(v.into(), false)), 0);
    assert_eq!(ids(&file, v), [2, 1]);
    assert_eq!(code(file.def_var_fletcher32(v.into(), true)), 0);
    assert_eq!(ids(&file, v), [3, 2, 1]);
    assert_eq!(storage(&file, v), StorageKind::Chunked(vec![4, 6]));
}

#[test]
fn codes_of_filters() {
    let Vars { mut file, v, rec, scalar, string, .. } = vars();
    let mut filter =
        |var: VarId, id, params: &[u32]| code(file.def_var_filter(var.into(), spec(id, params)));
    for pixels in [33, 34, 8] {
        // More pixels than elements: 6 in each of no records.
        assert_eq!(filter(rec, 4, &[32, pixels]), -36, "{pixels}");
    }
    assert_eq!(filter(rec, 4, &[1]), -132);
    assert_eq!(filter(rec, 4, &[99, 6]), 0);
    assert_eq!(filter(rec, 4, &[32, 6]), 0);
    assert_eq!(filter(rec, 1, &[1]), -36, "szip is there");
    assert_eq!(filter(rec, 4, &[1, 31]), -36);
    // At the end of definitions in the reference:
    assert_eq!(filter(rec, 4, &[32, 0]), -36);
    assert_eq!(filter(scalar, 4, &[32, 6]), -36);
    assert_eq!(filter(scalar, 9999, &[]), -36);
    assert_eq!(filter(string, 1, &[1]), -132);
    assert_eq!(filter(VarId::GLOBAL, 1, &[1]), -49);
    assert_eq!(filter(rec, 9999, &[]), -136);
    assert_eq!(filter(rec, 0, &[]), -136);
    assert_eq!(filter(rec, 70000, &[]), -101);
    assert_eq!(filter(v, 1, &[1, 2]), -132);
    assert_eq!(filter(v, 1, &[]), -132);
    assert_eq!(filter(v, 1, &[5]), 0);
    assert_eq!(filter(v, 4, &[32, 4]), -36, "deflate is there");
    for (id, params) in [(2, &[][..]), (3, &[]), (5, &[]), (6, &[1, 31])] {
        assert_eq!(filter(rec, id, params), 0, "{id}");
    }
    assert_eq!(ids(&file, rec), [3, 2, 4, 5, 6]);
    let params = file.var_info(ROOT, rec).unwrap().filters[2].params.clone();
    assert_eq!(params, [32, 6], "replaced where it is");
    file.enddef(Reserve::Default).unwrap();
    assert_eq!(code(file.def_var_filter(v.into(), spec(1, &[1]))), -39, "this code, indeed");
    assert_eq!(code(file.def_var_filter(VarId(99).into(), spec(1, &[1]))), -49);
    file.redef().unwrap();
    assert_eq!(code(file.def_var_filter(v.into(), spec(1, &[1]))), -123);
    assert_eq!(code(file.def_var_filter(scalar.into(), spec(1, &[1]))), -36);
}

/// With 257 the reference can neither inquire nor get (NC_EHDFERR), also of a variable that it defined.
#[test]
fn filters_have_as_many_parameters_as_the_reference_can_read() {
    let (mut file, memory) = created(false);
    file.def_dim(ROOT, b"x", 4).unwrap();
    for (id, most) in [(3, 256), (2, 256), (307, 256), (32004, 256), (32008, 253)] {
        let v = file.def_var(ROOT, format!("v{id}").as_bytes(), 4, &[0]).unwrap();
        assert_eq!(code(file.def_var_filter(v.into(), spec(id, &vec![1; most + 1]))), -132, "{id}");
        assert_eq!(code(file.def_var_filter(v.into(), spec(id, &vec![1; most]))), 0, "{id}");
    }
    let file = reopened(file, memory);
    let stored = (0..5).map(|v| file.var_info(ROOT, VarId(v)).unwrap().filters[0].params.len());
    assert_eq!(stored.collect::<Vec<_>>(), [0, 1, 256, 256, 256]);
}

#[test]
fn filters_are_applied_in_their_order() {
    let Vars { mut file, v, .. } = vars();
    for id in [1, 307, 2, 5, 3, 307] {
        let params: &[u32] = if matches!(id, 1 | 307) { &[3] } else { &[] };
        file.def_var_filter(v.into(), spec(id, params)).unwrap();
    }
    let draft = file.model().unwrap().var(ROOT, v).unwrap().draft.as_ref().unwrap();
    let found: Vec<_> = draft.filters.iter().map(|filter| (filter.id, filter.flags)).collect();
    assert_eq!(found, [(3, 0), (2, 1), (1, 1), (307, 1), (5, 1)]);
}

#[test]
fn filters_have_names_where_hdf5_gives_them_none() {
    let (mut file, memory) = created(false);
    file.def_dim(ROOT, b"x", 4).unwrap();
    let v = file.def_var(ROOT, b"v", 4, &[0]).unwrap();
    file.def_var_deflate(v.into(), true, Some(1)).unwrap();
    file.def_var_filter(v.into(), spec(32015, &[3])).unwrap();
    let given = FilterSpec { name: String::from("given"), ..spec(307, &[9]) };
    file.def_var_filter(v.into(), given).unwrap();
    let file = reopened(file, memory);
    let filters = file.var_info(ROOT, v).unwrap().filters.clone();
    let names: Vec<_> = filters.iter().map(|filter| (filter.id, filter.name.as_str())).collect();
    assert_eq!(names, [(2, ""), (1, ""), (32015, "zstd"), (307, "given")]);
}

#[test]
fn a_filter_that_somebody_brings() {
    use std::sync::Arc;
    let Vars { mut file, v, .. } = vars();
    assert_eq!(code(file.def_var_filter(v.into(), spec(40000, &[7]))), -136);
    let make = zonda_chunk::filter::builtin(2).unwrap();
    file.how.find_filter = Some(Arc::new(move |spec| {
        let shape = zonda_chunk::filter::ChunkShape { dims: vec![1], elem_size: 1 };
        (spec.id == 40000).then(|| Ok(Arc::from(make(spec, &shape).unwrap())))
    }));
    assert_eq!(code(file.def_var_filter(v.into(), spec(40000, &[7]))), 0);
    assert_eq!(ids(&file, v), [40000]);
}

#[test]
fn codes_of_chunking() {
    use StorageRequest::{Chunked, Compact, Contiguous, Unknown};
    let Vars { mut file, v, rec, scalar, string, .. } = vars();
    let mut chunking = |var: VarId, storage, sizes: Option<&[usize]>| {
        code(file.def_var_chunking(var.into(), storage, sizes))
    };
    assert_eq!(chunking(VarId(99), Chunked, None), -49);
    assert_eq!(chunking(VarId::GLOBAL, Chunked, None), -49);
    for storage in [Contiguous, Compact, Unknown] {
        assert_eq!(chunking(rec, storage, None), -36, "{storage:?}");
        assert_eq!(chunking(scalar, storage, None), 0, "{storage:?}");
    }
    assert_eq!(chunking(scalar, Chunked, None), -36);
    assert_eq!(chunking(v, Chunked, Some(&[5, 6])), -127);
    assert_eq!(chunking(v, Chunked, Some(&[4, 0])), 0);
    assert_eq!(chunking(rec, Chunked, Some(&[1 << 28, 6])), -127);
    assert_eq!(chunking(rec, Chunked, Some(&[1 << 32, 0])), -127);
    assert_eq!(chunking(rec, Chunked, Some(&[usize::MAX, 6])), -127);
    assert_eq!(chunking(rec, Chunked, Some(&[100, 6])), 0);
    assert_eq!(chunking(string, Compact, None), 0);
    assert_eq!(storage(&file, v), StorageKind::Chunked(vec![4, 6]));
    assert_eq!(storage(&file, rec), StorageKind::Chunked(vec![100, 6]));
    assert_eq!(storage(&file, scalar), StorageKind::Compact, "the last that was known");
    file.def_var_chunking(v.into(), Chunked, Some(&[0, 2])).unwrap();
    assert_eq!(storage(&file, v), StorageKind::Chunked(vec![4, 2]));
    file.def_var_chunking(v.into(), Contiguous, None).unwrap();
    assert_eq!(storage(&file, v), StorageKind::Contiguous);
    // A filter needs chunks; those that were given are remembered.
    file.def_var_deflate(v.into(), false, Some(1)).unwrap();
    assert_eq!(storage(&file, v), StorageKind::Chunked(vec![4, 2]));
    for storage in [Contiguous, Compact, Unknown] {
        assert_eq!(code(file.def_var_chunking(v.into(), storage, None)), -36);
    }
    assert_eq!(code(file.def_var_chunking(v.into(), Chunked, None)), 0);
    assert_eq!(storage(&file, v), StorageKind::Chunked(vec![4, 2]));
}

#[test]
fn refused_chunks_make_a_variable_chunked_all_the_same() {
    let (mut file, memory) = created(false);
    file.def_dim(ROOT, b"x", 4).unwrap();
    let v = file.def_var(ROOT, b"v", 4, &[0]).unwrap();
    assert_eq!(storage(&file, v), StorageKind::Contiguous);
    let chunks = Some(&[5][..]);
    let refused = file.def_var_chunking(v.into(), StorageRequest::Chunked, chunks);
    assert_eq!(code(refused), -127);
    assert_eq!(storage(&file, v), StorageKind::Chunked(vec![4]), "of the open file");
    assert_eq!(storage(&reopened(file, memory), v), StorageKind::Chunked(vec![4]));
}

#[test]
fn compact_data_fit_a_header() {
    let mut file = create();
    for (len, expected) in [(65_536, -62), (65_521, -62), (65_520, 0)] {
        let name = format!("d{len}");
        let dim = file.def_dim(ROOT, name.as_bytes(), len).unwrap();
        let var = file.def_var(ROOT, name.as_bytes(), 1, &[dim.0]).unwrap();
        let result = file.def_var_chunking(var.into(), StorageRequest::Compact, None);
        assert_eq!(code(result), expected, "{len}");
    }
}

#[test]
fn codes_of_byte_order() {
    let Vars { mut file, v, string, text, .. } = vars();
    let opaque = file.def_opaque(ROOT, 3, b"o").unwrap();
    let user = file.def_var(ROOT, b"user", opaque, &[]).unwrap();
    for (var, expected) in
        [(v, 0), (string, -36), (text, -36), (user, -36), (VarId(99), -49), (VarId::GLOBAL, -49)]
    {
        assert_eq!(code(file.def_var_endian(var.into(), Endianness::Big)), expected, "{var:?}");
    }
    assert_eq!(file.var_info(ROOT, v).unwrap().endianness, Endianness::Big);
    file.def_var_endian(v.into(), Endianness::Native).unwrap();
    assert_eq!(file.var_info(ROOT, v).unwrap().endianness, Endianness::Native);
}

#[test]
fn codes_of_precision() {
    let Vars { mut file, v, .. } = vars();
    let float = file.def_var(ROOT, b"float", 5, &[]).unwrap();
    let double = file.def_var(ROOT, b"double", 6, &[0]).unwrap();
    let cases = [
        (VarId::GLOBAL, 1, 1, -50),
        (VarId(99), 1, 1, -49),
        (v, 1, 3, -36),
        (v, 0, 3, 0),
        (v, 9, 3, -36),
        (float, 1, 0, -36),
        (float, 1, -1, -36),
        (float, 1, 7, 0),
        (float, 1, 8, -36),
        (float, 2, 8, -36),
        (float, 3, 23, 0),
        (float, 3, 24, -36),
        (double, 1, 15, 0),
        (double, 1, 16, -36),
        (double, 2, 15, 0),
        (double, 3, 52, 0),
        (double, 3, 53, -36),
        (double, -1, 3, -36),
        (double, 4, 3, -36),
        (double, 0, 9, 0),
    ];
    for (var, mode, kept, expected) in cases {
        let result = file.def_var_quantize(var.into(), mode, kept);
        assert_eq!(code(result), expected, "{var:?} {mode} {kept}");
    }
    assert_eq!(file.var_quantize(double.into()).unwrap(), None);
    let expected = Quantize { mode: QuantizeMode::BitRound, kept: 23 };
    assert_eq!(file.var_quantize(float.into()).unwrap(), Some(expected));
    file.enddef(Reserve::Default).unwrap();
    assert_eq!(file.var_quantize(float.into()).unwrap(), Some(expected));
    assert_eq!(file.var_quantize(double.into()).unwrap(), None);
    assert_eq!(code(file.def_var_quantize(float.into(), 1, 3)), -123);
    assert_eq!(code(file.var_quantize(VarId(99).into())), -49);
    // As in the reference, an attribute without a value says the way alone.
    let name = QuantizeMode::GranularBitRound.attribute();
    let owner = VarRef { group: ROOT, var: double };
    put_ints(&mut file, owner, name, 4, &[]).unwrap();
    let expected = Quantize { mode: QuantizeMode::GranularBitRound, kept: 0 };
    assert_eq!(file.var_quantize(double.into()).unwrap(), Some(expected));
}

/// Whether it is filled and with what, as `nc_inq_var_fill` tells.
fn fill(file: &Nc4File, var: VarId) -> (bool, i32) {
    let info = file.var_info(ROOT, var).unwrap();
    let mut out = [0; 4];
    file.fill_value(of(var), zonda_format::Destination::plain(&mut out)).unwrap();
    assert_eq!(info.fill_value, out);
    (info.no_fill, i32::from_ne_bytes(out))
}

fn set_fill(file: &mut Nc4File, var: VarId, no_fill: bool, value: Option<i32>) -> i32 {
    let bytes = value.map(i32::to_ne_bytes);
    let value = bytes.as_ref().map(|bytes| Values::plain(bytes));
    code(file.def_var_fill(var.into(), no_fill, value))
}

#[test]
fn codes_and_effects_of_fill_values() {
    const DEFAULT: i32 = -2_147_483_647;
    let Vars { mut file, v, string, .. } = vars();
    assert_eq!(set_fill(&mut file, VarId::GLOBAL, false, None), -50);
    assert_eq!(set_fill(&mut file, VarId(99), false, None), -49);
    assert_eq!(set_fill(&mut file, string, true, None), -36);
    assert_eq!(fill(&file, v), (false, DEFAULT));
    put_ints(&mut file, of(v), "a", 4, &[1]).unwrap();
    put_ints(&mut file, of(v), "_FillValue", 4, &[300]).unwrap();
    put_ints(&mut file, of(v), "z", 4, &[1]).unwrap();
    assert_eq!(fill(&file, v), (false, 300));
    // The attribute is made anew, and comes last.
    assert_eq!(set_fill(&mut file, v, false, Some(7)), 0);
    assert_eq!(
        (fill(&file, v), names(&file, of(v))),
        ((false, 7), strings(&["a", "z", "_FillValue"]))
    );
    assert_eq!(set_fill(&mut file, v, true, None), 0);
    assert_eq!((fill(&file, v), names(&file, of(v))), ((true, DEFAULT), strings(&["a", "z"])));
    put_ints(&mut file, of(v), "_FillValue", 4, &[1]).unwrap();
    assert_eq!(fill(&file, v), (true, 1), "no fill mode stays");
    file.del_att(of(v), b"_FillValue").unwrap();
    assert_eq!(fill(&file, v), (true, 1), "the value stays");
    assert_eq!(set_fill(&mut file, v, false, None), 0);
    assert_eq!(fill(&file, v), (false, 1));
    assert_eq!(set_fill(&mut file, v, true, Some(5)), 0);
    assert_eq!((fill(&file, v), names(&file, of(v))), ((true, DEFAULT), strings(&["a", "z"])));
    file.enddef(Reserve::Default).unwrap();
    assert_eq!(set_fill(&mut file, v, false, Some(5)), -123);
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn nothing_is_set_in_a_file_open_for_reading() {
    let (mut file, memory) = created(false);
    file.def_dim(ROOT, b"x", 3).unwrap();
    file.def_var(ROOT, b"v", 4, &[0]).unwrap();
    let mut file = reopened(file, memory);
    let (none, v) = (VarId(9), VarId(0));
    assert_eq!(set_fill(&mut file, none, false, None), -37);
    assert_eq!(code(file.def_var_deflate(none.into(), true, Some(1))), -37);
    assert_eq!(code(file.def_var_fletcher32(none.into(), true)), -37);
    assert_eq!(code(file.def_var_endian(none.into(), Endianness::Big)), -37);
    assert_eq!(code(file.def_var_chunking(none.into(), StorageRequest::Chunked, None)), -37);
    assert_eq!(code(file.def_var_quantize(none.into(), 1, 1)), -37);
    assert_eq!(code(file.def_var_quantize(VarId::GLOBAL.into(), 1, 1)), -50);
    assert_eq!(code(file.def_var_filter(none.into(), spec(1, &[1]))), -49);
    assert_eq!(code(file.def_var_filter(v.into(), spec(1, &[1]))), -39);
    assert_eq!(code(file.set_fill(FillMode::NoFill)), -37);
}

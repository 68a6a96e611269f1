//! Files that the reference and h5py made, read back.

#[allow(dead_code, reason = "each test uses a part")]
mod support;

use std::path::Path;
use zonda_format::{Definitions as _, Dispatch as _, StoreVars as _};

use support::{Kept, got, got_att};
use zonda_format::FormatError as _;
use zonda_format::{Access, AttAccess, Destination, VarRef};
use zonda_model::{DimId, Hyperslab, MemType, NcError, VarId};
use zonda_nc4::{Endianness, GroupId, Model, Nc4File, StorageKind, UserClass};

fn fixture(name: &str) -> Nc4File {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    support::open(&path).unwrap()
}

fn var(model: &Model, group: GroupId, name: &str) -> VarId {
    model.group(group).unwrap().find_var(name.as_bytes()).unwrap_or_else(|| panic!("{name}"))
}

fn dims(model: &Model, group: GroupId, name: &str) -> Vec<(String, u64)> {
    let ids = &model.var(group, var(model, group, name)).unwrap().dims;
    let dim = |id: &DimId| model.dim(*id).unwrap();
    let name = |id| String::from_utf8(dim(id).name.to_vec()).unwrap();
    ids.iter().map(|id| (name(id), dim(id).len)).collect()
}

/// Numbers of a hyperslab as `double`, and how many did not fit.
fn doubles(
    file: &Nc4File,
    group: GroupId,
    name: &str,
    slab: Hyperslab<'_>,
) -> Result<Vec<f64>, NcError> {
    let id = var(file.model().unwrap(), group, name);
    let get = Access { var: VarRef { group, var: id }, slab, mem: Some(MemType::F64) };
    let (memory, _) = got(file, &get, &mut Kept::default()).map_err(|error| error.code())?;
    let numbers = memory.chunks_exact(8).map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap()));
    Ok(numbers.collect())
}

fn slab<'a>(start: &'a [usize], count: &'a [usize], stride: Option<&'a [isize]>) -> Hyperslab<'a> {
    Hyperslab { start, count, stride }
}

const ROOT: GroupId = GroupId::ROOT;

#[test]
fn dimensions_and_their_variables() {
    let file = fixture("model.nc");
    let model = file.model().unwrap();
    assert!(!model.is_classic);
    let names: Vec<_> = model.groups.iter().map(|group| &*group.name).collect();
    assert_eq!(names, [&b"/"[..], b"g", b"inner"]);
    // The longest variable is two groups away.
    assert_eq!(dims(model, ROOT, "time"), [("time".into(), 6)]);
    assert_eq!(dims(model, ROOT, "x"), [("x".into(), 4), ("name".into(), 3)]);
    assert_eq!(dims(model, ROOT, "name"), [("x".into(), 4), ("name".into(), 3)]);
    assert_eq!(dims(model, ROOT, "scalar"), []);
    assert_eq!(dims(model, GroupId(2), "up"), [("x".into(), 2), ("time".into(), 6)]);
    assert_eq!(model.group(GroupId(1)).unwrap().dims, [DimId(3)]);
}

#[test]
fn reads_beyond_a_variable_are_fill_values() {
    let file = fixture("model.nc");
    let read = |name, start: &[usize], count: &[usize], stride| {
        doubles(&file, ROOT, name, slab(start, count, stride))
    };
    let float_fill = f64::from(f32::from_bits(0x7CF0_0000));
    assert_eq!(read("b", &[3], &[3], None).unwrap(), [3.0, 4.0, float_fill]);
    assert_eq!(read("b", &[1], &[2], Some(&[4])).unwrap(), [1.0, float_fill]);
    // Chunks of `a` are there to its extent, then the user's fill value.
    let expected = [5.0, 6.0, 7.0, -9.0, -9.0, -9.0];
    assert_eq!(read("a", &[1, 1], &[2, 3], None).unwrap(), expected);
    assert_eq!(read("never", &[0], &[2], None).unwrap(), [65535.0; 2]);
    assert_eq!(read("scalar", &[], &[], None).unwrap(), [-1_099_511_627_776.0]);
    assert_eq!(read("b", &[6], &[1], None), Err(NcError::InvalidCoords));
    assert_eq!(read("b", &[5], &[2], None), Err(NcError::Edge));
    assert!(read("b", &[6], &[0], None).unwrap().is_empty());
    assert_eq!(read("a", &[0, 0], &[1, 2], Some(&[1, 0])), Err(NcError::Stride));
    assert_eq!(read("name", &[0, 0], &[1, 1], None), Err(NcError::Char));
    assert_eq!(read("s", &[0], &[1], None), Err(NcError::BadType));
    // Types come before coordinates.
    assert_eq!(read("s", &[9], &[1], None), Err(NcError::BadType));
}

#[test]
fn values_that_do_not_fit_are_counted() {
    let file = fixture("model.nc");
    let model = file.model().unwrap();
    let var = VarRef { group: ROOT, var: var(model, ROOT, "b") };
    assert_eq!(file.rank(var), 1);
    let get = Access { var, slab: slab(&[2], &[4], None), mem: Some(MemType::I8) };
    // 2, 3, 4, and the default fill value, which leaves its place alone.
    assert_eq!(got(&file, &get, &mut Kept::default()).unwrap(), (vec![2, 3, 4, 0], 1));
}

#[test]
fn storage_and_fill() {
    let file = fixture("model.nc");
    let model = file.model().unwrap();
    let info = file.var_info(ROOT, var(model, ROOT, "a")).unwrap();
    assert_eq!(info.storage, StorageKind::Chunked(vec![2, 3]));
    assert_eq!(info.endianness, Endianness::Big);
    let ids: Vec<_> = info.filters.iter().map(|filter| filter.id).collect();
    assert_eq!(ids, [3, 2, 1]);
    assert_eq!((info.no_fill, &info.fill_value[..]), (false, &(-9i32).to_ne_bytes()[..]));
    let mut kept = Kept::default();
    let mut out = [1; 8];
    let text = var(model, ROOT, "s");
    let room = Destination { bytes: &mut out, place: Some(&mut kept) };
    file.fill_value(text.into(), room).unwrap();
    let address = u64::from_ne_bytes(out);
    assert!(address == 0 || kept.0[address as usize - 1].is_empty());
    assert_eq!(file.chunk_cache(VarRef { group: ROOT, var: text }).unwrap(), (1 << 20, 521, 0.75));
    let chunked = var(model, ROOT, "a");
    assert_eq!(
        file.chunk_cache(VarRef { group: ROOT, var: chunked }).unwrap(),
        (16 << 20, 4133, 0.75)
    );
    file.set_chunk_cache(VarRef { group: ROOT, var: text }, (1 << 20, 7, 0.5)).unwrap();
    assert_eq!(file.chunk_cache(VarRef { group: ROOT, var: text }).unwrap(), (1 << 20, 7, 0.5));
    let error = file.set_chunk_cache(VarRef { group: ROOT, var: text }, (1, 1, 1.5)).unwrap_err();
    assert_eq!(error.code(), NcError::Inval);
    assert_eq!(file.var_info(ROOT, VarId(99)).unwrap_err().nc_error(), NcError::NotVar);
    assert_eq!(file.var_info(GroupId(9), VarId(0)).unwrap_err().nc_error(), NcError::BadGrpId);
}

#[test]
fn user_defined_types() {
    let file = fixture("model.nc");
    let model = file.model().unwrap();
    let g = GroupId(1);
    assert_eq!(model.group(g).unwrap().types, [32, 33, 34]);
    let pair = &model.types[0];
    let UserClass::Compound(fields) = &pair.class else { panic!("{pair:?}") };
    let offsets: Vec<_> = fields.iter().map(|f| (f.offset, f.nc_type, f.dims.clone())).collect();
    assert_eq!((pair.size, offsets), (24, vec![(0, 1, vec![]), (8, 6, vec![]), (16, 3, vec![2])]));
    let UserClass::Enum { base: 7, members } = &model.types[1].class else { panic!() };
    assert_eq!(&*members[1].0, b"green");
    assert_eq!(&*members[1].1, [7]);
    let bytes = support::read(&file, g, var(model, g, "p").0, &[1], &[1]).unwrap();
    let mut expected = vec![0xff];
    expected.extend((-2.5f64).to_le_bytes());
    expected.extend([5, 0, 6, 0]);
    assert_eq!(bytes, expected);
    let ragged = support::read(&file, g, var(model, g, "r").0, &[0], &[2]).unwrap();
    let mut expected = 3u64.to_le_bytes().to_vec();
    expected.extend([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    expected.extend(0u64.to_le_bytes());
    assert_eq!(ragged, expected);
    assert_eq!(support::read(&file, g, var(model, g, "e").0, &[0], &[2]).unwrap(), [7, 0]);
}

/// The strings of a variable; `None` for a null pointer.
fn strings(file: &Nc4File, name: &str, n: usize) -> Vec<Option<Vec<u8>>> {
    let id = var(file.model().unwrap(), ROOT, name);
    let mut kept = Kept::default();
    let count = [n];
    let get = Access { var: id.into(), slab: slab(&[0], &count, None), mem: None };
    let (memory, _) = got(file, &get, &mut kept).unwrap();
    let address = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
    let addresses = memory.chunks_exact(8).map(address);
    addresses.map(|at| (at > 0).then(|| kept.0[at as usize - 1].clone())).collect()
}

#[test]
fn strings_written_empty_and_never() {
    // netCDF gives its variables a fill value, an empty string; elsewhere there is none.
    let empty = Some(Vec::new());
    let written = strings(&fixture("model.nc"), "s", 3);
    assert_eq!(written, [Some(b"eins".to_vec()), empty.clone(), empty]);
    assert_eq!(strings(&fixture("plain.h5"), "unwritten", 2), [None, None]);
}

#[test]
fn attributes() {
    let file = fixture("model.nc");
    let owner = VarRef { group: ROOT, var: VarId::GLOBAL };
    let names: Vec<_> =
        (0..file.n_atts(owner).unwrap()).map(|i| file.att(owner, i).unwrap()).collect();
    let names: Vec<_> = names.iter().map(|a| (&*a.name, a.nc_type, a.len)).collect();
    let expected: [(&[u8], i32, u64); 5] = [
        (b"title", 2, 7),
        (b"empty", 2, 1),
        (b"words", 12, 3),
        (b"numbers", 3, 3),
        (b"one", 12, 1),
    ];
    assert_eq!(names, expected);
    let get = |name: &[u8], mem| -> Result<(Vec<u8>, u64), NcError> {
        let att = AttAccess { owner, name, mem: Some(mem) };
        got_att(&file, &att, &mut Kept::default()).map_err(|error| error.code())
    };
    assert_eq!(get(b"title", MemType::Text).unwrap().0, b"a model");
    assert_eq!(get(b"title", MemType::I8), Err(NcError::Char));
    assert_eq!(get(b"words", MemType::Text), Err(NcError::Char));
    assert_eq!(get(b"words", MemType::I32), Err(NcError::BadType));
    // 300 does not fit; its low byte is stored.
    assert_eq!(get(b"numbers", MemType::I8).unwrap(), (vec![1, 0xfe, 44], 1));
    assert_eq!(get(b"absent", MemType::I8), Err(NcError::NotAtt));
    assert_eq!(get(b"_Netcdf4Dimid", MemType::I8), Err(NcError::NotAtt));
    assert_eq!(get(b"_IsNetcdf4", MemType::I16).unwrap().0, 1i16.to_ne_bytes());
    assert_eq!(get(b"_SuperblockVersion", MemType::I8).unwrap().0, [2]);
    assert!(get(b"_NCProperties", MemType::Text).unwrap().0.starts_with(b"version=2,netcdf="));
    assert_eq!(file.find_att(owner, b"_NCProperties").unwrap().0, -1);
    assert_eq!(file.find_att(owner, b"numbers").unwrap().0, 3);
    let id = var(file.model().unwrap(), ROOT, "a");
    assert_eq!(file.n_atts(VarRef { group: ROOT, var: id }).unwrap(), 1);
}

#[test]
fn plain_hdf5() {
    let file = fixture("plain.h5");
    let model = file.model().unwrap();
    let names: Vec<_> =
        model.groups[0].vars.iter().map(|v| std::str::from_utf8(&v.name).unwrap()).collect();
    // By name; the dangling link and the reference are left out. That to `../data/other.h5` leaves the
    // folder and comes back.
    let expected = [
        "beyond",
        "empty",
        "grow",
        "half",
        "line",
        "outside",
        "packed",
        "raw",
        "soft",
        "square",
        "text",
        "three",
        "unwritten",
        "virtual",
        "yes",
    ];
    assert_eq!(names, expected);
    // The group's link to the root leads back.
    assert_eq!(model.groups.len(), 2);
    assert!(model.groups[1].children.is_empty());
    let square = dims(model, ROOT, "square");
    assert_eq!((square[0].1, square[1].1), (3, 3));
    assert_ne!(square[0].0, square[1].0);
    assert_eq!(dims(model, ROOT, "line"), dims(model, ROOT, "soft"));
    assert_ne!(dims(model, ROOT, "line"), dims(model, GroupId(1), "again"));
    let grow = &model.var(ROOT, var(model, ROOT, "grow")).unwrap().dims;
    assert!(model.dim(grow[0]).unwrap().is_unlimited);
    assert!(!model.dim(grow[1]).unwrap().is_unlimited);
}

#[test]
fn data_of_plain_hdf5() {
    let file = fixture("plain.h5");
    let read = |name, count: &[usize]| {
        doubles(&file, ROOT, name, slab(&[0; 2][..count.len()], count, None)).unwrap()
    };
    assert_eq!(read("line", &[3]), [0.0, 1.0, 2.0]);
    assert_eq!(read("half", &[2]), [1.5, -2.0]);
    assert_eq!(read("three", &[2]), [-2.0, 70000.0]);
    assert_eq!(read("raw", &[2, 3]), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(read("virtual", &[2, 3]), [3.0, 4.0, 5.0, -1.0, -1.0, -1.0]);
    assert_eq!(read("outside", &[3]), [0.0, 1.0, 2.0]);
    assert_eq!(read("empty", &[]), [0.0]);
    let model = file.model().unwrap();
    let nc_type = |name| model.var(ROOT, var(model, ROOT, name)).unwrap().nc_type;
    assert_eq!((nc_type("half"), nc_type("three"), nc_type("text")), (5, 4, 12));
    assert_eq!((nc_type("packed"), nc_type("yes")), (32, 33));
    assert_eq!(&*model.types[1].name, b"_AnonymousEnum2");
    // In the file without gaps, in memory as C has it.
    let UserClass::Compound(fields) = &model.types[0].class else { panic!() };
    assert_eq!((model.types[0].size, fields[1].offset), (16, 8));
    let packed = support::read(&file, ROOT, var(model, ROOT, "packed").0, &[1], &[1]).unwrap();
    assert_eq!(packed, [&[0xff][..], &(-2.5f64).to_le_bytes()].concat());
    let text = support::read(&file, ROOT, var(model, ROOT, "text").0, &[0], &[2]).unwrap();
    let mut expected = 2u64.to_le_bytes().to_vec();
    expected.extend(b"ab");
    expected.extend(3u64.to_le_bytes());
    expected.extend(b"cde");
    assert_eq!(text, expected);
}

#[test]
fn attributes_of_plain_hdf5() {
    let file = fixture("plain.h5");
    let owner = VarRef { group: ROOT, var: VarId::GLOBAL };
    let all: Vec<_> =
        (0..file.n_atts(owner).unwrap()).map(|i| file.att(owner, i).unwrap()).collect();
    let mut all: Vec<_> = all.iter().map(|a| (&*a.name, a.nc_type, a.len)).collect();
    all.sort();
    let expected: [(&[u8], i32, u64); 4] =
        [(b"fixed", 2, 3), (b"flag", 33, 1), (b"list", 12, 2), (b"nothing", 4, 0)];
    assert_eq!(all, expected);
    // One of two dimensions spoils the list.
    let line = VarRef { group: ROOT, var: var(file.model().unwrap(), ROOT, "line") };
    assert_eq!(file.n_atts(line).unwrap_err().code(), NcError::AttMeta);
    let att = AttAccess { owner, name: b"nothing", mem: Some(MemType::F64) };
    assert_eq!(got_att(&file, &att, &mut Kept::default()).unwrap(), (Vec::new(), 0));
}

#[test]
fn names_out_of_the_folder_are_not_followed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/plain.h5");
    let storage = std::sync::Arc::new(zonda_storage::backend::File::open_read(&path).unwrap());
    // Without a folder nothing is followed at all.
    let file = Nc4File::open(storage, &path, zonda_nc4::Nc4OpenOptions::default()).unwrap();
    let model = file.model().unwrap();
    assert!(model.groups[0].find_var(b"outside").is_none());
    let raw = doubles(&file, ROOT, "raw", slab(&[0, 0], &[1, 1], None));
    assert_eq!(raw, Err(NcError::HdfErr));
}

#[test]
fn what_is_not_hdf5_is_refused() {
    let storage = std::sync::Arc::new(zonda_storage::backend::Memory::from_slice(b"CDF\x01"));
    let error = Nc4File::open(storage, Path::new("x"), Default::default()).unwrap_err();
    assert_eq!(error.nc_error(), NcError::NotNc);
}

#[test]
fn a_missing_filter_hinders_nothing_but_its_data() {
    let file = fixture("foreign.h5");
    let model = file.model().unwrap();
    let filtered = var(model, ROOT, "filtered");
    assert_eq!(model.var(ROOT, filtered).unwrap().dims.len(), 2);
    let info = file.var_info(ROOT, filtered).unwrap();
    assert_eq!(info.storage, StorageKind::Chunked(vec![2, 3]));
    assert_eq!(doubles(&file, ROOT, "known", slab(&[2], &[2], None)), Ok(vec![2.0, 3.0]));
    let read = |start: usize| doubles(&file, ROOT, "filtered", slab(&[start, 1], &[1, 2], None));
    assert_eq!(read(0), Err(NcError::NoFilter));
    // A chunk that left the filter out still belongs to a variable that cannot be read.
    assert_eq!(read(3), Err(NcError::NoFilter));
    assert_eq!(read(0), Err(NcError::NoFilter), "also when asked again");
}

#[test]
fn a_text_of_variable_length_says_who_wrote_the_file() {
    let file = fixture("foreign.h5");
    let owner = VarRef { group: ROOT, var: VarId::GLOBAL };
    let att = AttAccess { owner, name: b"_NCProperties", mem: Some(MemType::Text) };
    assert_eq!(got_att(&file, &att, &mut Kept::default()).unwrap().0, b"version=2,h5lib=1.14.0");
}

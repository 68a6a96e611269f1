//! How many messages there and back reading takes where each costs one, how many bytes come, and what a failure leaves.
//!
//! `tests/data/make_remote.py` makes the HDF5 files; the others are made here.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use zonda::storage::backend::Memory;
use zonda::storage::{RemoteFailure, Storage};
use zonda::{
    Access, CreateOptions, Dataset, Destination, ExtType, Format, GroupId, Hyperslab, MemType,
    NC_STRING, NcError, OpenOptions, Reserve, Transfer, VarId, VarRef, VlenSink,
};
use zonda_testkit::{DistantMemory, TripCounts};

/// A file of `tests/data`.
fn packed(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let packed = std::fs::File::open(folder.join(name).with_added_extension("h5.gz")).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn open(storage: &Arc<DistantMemory>) -> zonda::Result<Dataset> {
    let options = OpenOptions::default();
    Dataset::open_in(Arc::clone(storage) as Arc<dyn Storage>, Path::new("far.nc"), &options)
}

/// Opens the bytes here and far away.
fn both(bytes: &[u8]) -> (Dataset, Dataset, Arc<DistantMemory>) {
    let near = Memory::new();
    near.write_at(0, bytes).unwrap();
    let options = OpenOptions::default();
    let near = Dataset::open_in(Arc::new(near), Path::new("near.nc"), &options).unwrap();
    let storage = Arc::new(DistantMemory::new(bytes));
    let far = open(&storage).unwrap();
    assert!(far.is_remote() && !near.is_remote());
    (near, far, storage)
}

/// Strings, one after the other.
#[derive(Default)]
struct Texts(Vec<Vec<u8>>);

impl VlenSink for Texts {
    fn place(&mut self, bytes: &[u8], _text: bool) -> Option<u64> {
        self.0.push(bytes.to_vec());
        Some(self.0.len() as u64)
    }
}

/// All variables of a dataset: by path and shape.
fn variables(file: &Dataset) -> zonda::Result<Vec<(String, VarRef, Vec<usize>)>> {
    let mut found = Vec::new();
    file.meta(|meta| {
        let mut groups = vec![GroupId::ROOT];
        while let Some(group) = groups.pop() {
            let meta = meta.group(group)?;
            groups.extend(meta.groups());
            for var in (0..meta.n_vars() as i32).map(VarId) {
                let path = [&meta.group_path()[..], b"/", meta.var(var)?.name].concat();
                let mut shape = [0; 8];
                let rank = meta.var_shape(var, &mut shape)?;
                let path = String::from_utf8_lossy(&path).into_owned();
                found.push((path, VarRef { group, var }, shape[..rank].to_vec()));
            }
        }
        Ok::<(), zonda::Error>(())
    })?;
    Ok(found)
}

/// Everything that one can ask of a dataset without reading variables.
fn inquire(file: &Dataset) -> zonda::Result<Vec<String>> {
    let mut said = Vec::new();
    let mut owners = vec![VarRef::group(GroupId::ROOT)];
    for (path, var, shape) in variables(file)? {
        owners.push(var);
        let how = if file.capabilities().groups { file.var_info(var).ok() } else { None };
        said.push(format!("{path} {shape:?} {how:?}"));
    }
    for owner in owners {
        let atts = file.meta(|meta| {
            let meta = meta.group(owner.group)?;
            let all =
                (0..meta.n_atts(owner.var)?).map(|i| Ok(meta.att(owner.var, i)?.name.to_vec()));
            all.collect::<zonda::Result<Vec<_>>>()
        })?;
        for name in atts {
            let (mut list, mut texts) = (Vec::new(), Texts::default());
            let all_fit = file.get_att_list(owner, &name, None, (&mut list, Some(&mut texts)))?;
            let name = String::from_utf8_lossy(&name);
            said.push(format!("{owner:?} {name} {all_fit:?} {list:?} {:?}", texts.0));
        }
    }
    Ok(said)
}

/// All values of a variable: as bytes of its own type, and strings.
fn values(file: &Dataset, var: VarRef, shape: &[usize]) -> zonda::Result<(Vec<u8>, Vec<Vec<u8>>)> {
    let start = vec![0; shape.len()];
    let slab = Hyperslab { start: &start, count: shape, stride: None };
    let (mut list, mut texts) = (Vec::new(), Texts::default());
    let converted = file.get_list(var, &slab, None, (&mut list, Some(&mut texts)))?;
    assert_eq!(converted.out_of_range, 0);
    Ok((list, texts.0))
}

fn find(file: &Dataset, name: &str) -> (VarRef, Vec<usize>) {
    let all = variables(file).unwrap();
    let found = all.into_iter().find(|(path, ..)| path.trim_start_matches('/') == name);
    let (_, var, shape) = found.unwrap_or_else(|| panic!("no {name}"));
    (var, shape)
}

/// Trips and bytes of a step.
fn since(storage: &DistantMemory, before: TripCounts) -> (u64, u64) {
    let now = storage.counts();
    (now.trips - before.trips, now.bytes - before.bytes)
}

#[test]
fn opening_takes_as_many_trips_as_structures_are_deep() {
    // Links, headers and what continues them, heaps and trees of attributes, strings: twice, for groups in groups.
    for (kind, most) in [("old", 12), ("new", 14)] {
        let mut trips = Vec::new();
        for n in [20, 200, 2000] {
            let bytes = packed(&format!("objects-{kind}-{n}"));
            let (near, far, storage) = both(&bytes);
            let said = inquire(&far).unwrap();
            assert!(said == inquire(&near).unwrap());
            assert!(said.len() > 3 * n, "{}", said.len());
            let counts = storage.counts();
            assert!(counts.bytes <= bytes.len() as u64, "{kind} {n}: {counts:?}");
            trips.push(counts.trips);
        }
        assert!(trips.iter().all(|&trips| trips <= most), "{kind}: {trips:?}");
        assert!(trips[0] <= 4, "{kind}: {trips:?}");
        assert!(trips[2] <= trips[1] + 4, "{kind}: flat in objects: {trips:?}");
    }
}

#[test]
fn whole_files_cost_few_trips_and_their_own_bytes() {
    for name in ["objects-old-200", "objects-new-200", "index-btree-v1", "index-filtered"] {
        let bytes = packed(name);
        let (near, far, storage) = both(&bytes);
        for (path, var, shape) in variables(&near).unwrap() {
            assert_eq!(
                values(&far, var, &shape).unwrap(),
                values(&near, var, &shape).unwrap(),
                "{path}"
            );
        }
        let counts = storage.counts();
        assert!(counts.bytes <= bytes.len() as u64 * 105 / 100 + (1 << 20), "{name}: {counts:?}");
    }
}

#[test]
fn trips_of_a_get_do_not_grow_with_chunks() {
    // Deep as the index is: header, then blocks or nodes; the chunks themselves are one more.
    for (kind, most) in [
        ("btree-v1", 5),
        ("fixed-array", 4),
        ("extensible-array", 5),
        ("btree-v2", 6),
        ("filtered", 5),
    ] {
        let bytes = packed(&format!("index-{kind}"));
        let mut trips = Vec::new();
        for n in [10, 1000, 10_000] {
            let (near, far, storage) = both(&bytes);
            let (var, shape) = find(&far, &format!("v{n}"));
            let _definitions = inquire(&far).unwrap();
            let before = storage.counts();
            let got = values(&far, var, &shape).unwrap();
            assert!(got == values(&near, var, &shape).unwrap());
            assert_eq!(got.0.len(), n * 16);
            let (here, _) = since(&storage, before);
            trips.push(here);
        }
        assert!(trips.iter().all(|&trips| trips <= most), "{kind}: {trips:?}");

        let (near, far, storage) = both(&bytes);
        let (var, shape) = find(&far, "strings");
        let before = storage.counts();
        assert!(values(&far, var, &shape).unwrap() == values(&near, var, &shape).unwrap());
        let (here, _) = since(&storage, before);
        assert!(here <= 3, "{kind}: strings: {here}");
    }
}

/// A classic file: `n_vars` of 100 doubles, and `n_records` records of `n_vars` variables.
fn classic(n_vars: usize, record_len: usize, n_records: usize) -> Vec<u8> {
    made(Format::Cdf5, n_vars, record_len, n_records)
}

/// Every tenth variable names a fill value.
const OWN_FILL: f64 = -999.5;

fn made(format: Format, n_vars: usize, record_len: usize, n_records: usize) -> Vec<u8> {
    let storage: Arc<dyn Storage> = Arc::new(Memory::new());
    let options = CreateOptions { format, ..CreateOptions::default() };
    let file = Dataset::create_in(Arc::clone(&storage), Path::new("new"), &options).unwrap();
    let t = file.def_dim(b"t", 0).unwrap();
    let x = file.def_dim(b"x", record_len).unwrap();
    let mut vars = Vec::new();
    for i in 0..n_vars {
        let dims = if i % 2 == 0 { vec![t.0, x.0] } else { vec![x.0] };
        let name = format!("a_variable_with_a_long_name_{i}");
        let var = file.def_var(name.as_bytes(), ExtType::Double.nc_type(), &dims).unwrap();
        let text = format!("what variable {i} is about, in some words that take space");
        let (ty, len) = (ExtType::Char.nc_type(), text.len());
        let all_fit = file.put_att(var, b"long_name", ty, len, None, text.as_bytes()).unwrap();
        assert_eq!(all_fit.out_of_range, 0);
        if i % 10 == 4 {
            let ty = ExtType::Double.nc_type();
            let fits = file.put_att(var, b"_FillValue", ty, 1, None, &OWN_FILL.to_ne_bytes());
            assert_eq!(fits.unwrap().out_of_range, 0);
        }
        vars.push((var, dims.len()));
    }
    file.enddef(Reserve::Default).unwrap();
    for (i, (var, rank)) in vars.into_iter().enumerate() {
        let (start, mut count) = ([0, 0], vec![record_len]);
        if rank == 2 {
            count.insert(0, n_records);
        }
        let n: usize = count.iter().product();
        let bytes: Vec<u8> = (0..n).flat_map(|k| ((k * 3 + i) as f64).to_ne_bytes()).collect();
        let slab = Hyperslab { start: &start[..rank], count: &count, stride: None };
        assert_eq!(file.put(var, &slab, None, &bytes).unwrap().out_of_range, 0);
    }
    file.close().unwrap();
    let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    bytes
}

/// What `zonda info` and `zonda check` ask for: which bytes are used, by all objects.
#[test]
fn what_is_used_comes_in_as_many_trips_as_structures_are_deep() {
    let mut files: Vec<(String, Vec<u8>, u64)> = Vec::new();
    for kind in ["old", "new"] {
        files.push((kind.into(), packed(&format!("objects-{kind}-200")), 14));
    }
    for kind in ["btree-v1", "fixed-array", "extensible-array", "btree-v2"] {
        files.push((kind.into(), packed(&format!("index-{kind}")), 14));
    }
    for n in [50, 400] {
        files.push((n.to_string(), made(Format::NetCdf4, n, 600, 5), 14));
    }
    for (name, bytes, most) in files {
        let (near, far, storage) = both(&bytes);
        let (near, far) = (near.usage().unwrap(), far.usage().unwrap());
        let told = |usage: &zonda::FileUsage| {
            let mut objects: Vec<_> =
                usage.objects.iter().map(|of| (of.0.0, format!("{:?}", of.1))).collect();
            objects.sort();
            format!("{:?} {:?} {objects:?}", usage.extents, usage.faults)
        };
        assert!(told(&near) == told(&far), "{name}: not the same");
        let counts = storage.counts();
        assert!(counts.trips <= most, "{name}: {counts:?}");
    }
}

#[test]
fn classic_headers_and_records_come_in_one_or_two_trips() {
    for (n_vars, most) in [(20, 1), (2000, 3)] {
        let bytes = classic(n_vars, 100, 2);
        let (near, far, storage) = both(&bytes);
        assert!(inquire(&far).unwrap() == inquire(&near).unwrap());
        let counts = storage.counts();
        assert!(counts.trips <= most, "{n_vars}: {counts:?}");
    }
    let bytes = classic(40, 600, 1000);
    let (near, far, storage) = both(&bytes);
    let (var, shape) = find(&far, "a_variable_with_a_long_name_6");
    assert_eq!(shape, [1000, 600]);
    for stride in [None, Some([3, 1]), Some([1, 2]), Some([2, 300])] {
        storage.forget();
        let steps = stride.unwrap_or([1, 1]);
        let count = [1000usize.div_ceil(steps[0]), 600usize.div_ceil(steps[1])];
        let step = [steps[0] as isize, steps[1] as isize];
        let slab = Hyperslab { start: &[0, 0], count: &count, stride: stride.map(|_| &step[..]) };
        for mem in [MemType::F64, MemType::F32] {
            let n = count[0] * count[1] * mem.size();
            let (mut got, mut want) = (vec![0; n], vec![1; n]);
            let before = storage.counts();
            let far = far.get(var, &slab, Some(mem), &mut got).unwrap();
            assert_eq!(far, near.get(var, &slab, Some(mem), &mut want).unwrap());
            assert!(got == want, "{stride:?}");
            let (trips, came) = since(&storage, before);
            assert!(trips <= 2, "{stride:?}: {trips}");
            let stored = 1000 * 600 * 8 / steps[0] as u64;
            // Rows do not begin with blocks: each brings up to two more.
            assert!(came <= stored + 1001 * 2 * 4096, "{stride:?}: {came}");
        }
    }
}

#[test]
fn contiguous_rows_come_in_one_trip() {
    let storage: Arc<dyn Storage> = Arc::new(Memory::new());
    let options = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
    let file = Dataset::create_in(Arc::clone(&storage), Path::new("new"), &options).unwrap();
    let (y, x) = (file.def_dim(b"y", 500).unwrap(), file.def_dim(b"x", 2000).unwrap());
    let var = file.def_var(b"v", ExtType::Int.nc_type(), &[y.0, x.0]).unwrap();
    file.enddef(Reserve::Default).unwrap();
    let bytes: Vec<u8> = (0..1_000_000i32).flat_map(i32::to_ne_bytes).collect();
    let slab = Hyperslab { start: &[0, 0], count: &[500, 2000], stride: None };
    assert_eq!(file.put(var, &slab, None, &bytes).unwrap().out_of_range, 0);
    file.close().unwrap();
    let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    let (near, far, distant) = both(&bytes);
    for (start, count, stride, most) in [
        ([0, 0], [500, 2000], None, 4_100_000),
        ([0, 100], [500, 1], None, 500 * 4096),
        ([10, 0], [100, 500], Some([4, 3]), 101 * 3 * 4096),
        ([0, 5], [500, 10], None, 500 * 4096),
    ] {
        distant.forget();
        let before = distant.counts();
        let slab =
            Hyperslab { start: &start, count: &count, stride: stride.as_ref().map(|s| &s[..]) };
        for mem in [MemType::I32, MemType::F64] {
            let n = count[0] * count[1] * mem.size();
            let (mut got, mut want) = (vec![0; n], vec![1; n]);
            let far = far.get(var, &slab, Some(mem), &mut got).unwrap();
            assert_eq!(far, near.get(var, &slab, Some(mem), &mut want).unwrap());
            assert!(got == want, "{start:?}");
        }
        let (trips, came) = since(&distant, before);
        assert!(trips <= 1 && came <= most + 8192, "{start:?}: {trips} trips, {came} bytes");
    }
}

/// Gets all of a variable as `mem` while each trip in turn fails. What is in memory afterwards is fill, and the next get gives the values.
fn fails_cleanly(bytes: &[u8], name: &str, mem: Option<MemType>, fill: &[u8]) -> usize {
    let (near, ..) = both(bytes);
    let (_, shape) = find(&near, name);
    let (want, want_texts) = values_as(&near, name, &shape, mem).unwrap();
    let mut n_failures = 0;
    for nth in 1.. {
        let storage = Arc::new(DistantMemory::failing(bytes, nth));
        let far = match open(&storage) {
            Ok(far) => far,
            Err(error) => {
                assert!(error.to_string().contains("http://distant/file.nc"), "{error}");
                n_failures += 1;
                open(&storage).unwrap()
            }
        };
        // Definitions fail, too, and are there the next time.
        if let Err(error) = variables(&far).and_then(|_| inquire(&far)) {
            assert!(error.to_string().contains("http://distant/file.nc"), "{error}");
            n_failures += 1;
        }
        assert!(inquire(&far).unwrap() == inquire(&near).unwrap());
        let (var, _) = find(&far, name);
        let start = vec![0; shape.len()];
        let slab = Hyperslab { start: &start, count: &shape, stride: None };
        let mut memory = vec![0x5a; want.len()];
        let mut texts = Texts::default();
        let mut get = Transfer::new(Access { var, slab, mem });
        let mut begun = far.get_from(var).unwrap();
        let place: Option<&mut dyn VlenSink> = if mem.is_none() { Some(&mut texts) } else { None };
        let room = Destination { bytes: &mut memory, place };
        let got = begun.check(&mut get).and_then(|checked| checked.read(room));
        drop(begun);
        if let Err(error) = got {
            n_failures += 1;
            let text = error.to_string();
            assert!(
                text.contains("http://distant/file.nc: ") && text.contains(" bytes at byte "),
                "{text}"
            );
            assert_eq!(error.remote_failure(), Some(RemoteFailure::Broken), "{error:?}");
            assert!(
                memory.chunks(fill.len()).all(|one| one == fill),
                "{name}: trip {nth}: something but fill"
            );
        } else {
            assert!((&memory, &texts.0) == (&want, &want_texts), "{name}: trip {nth}");
        }
        let again = values_as(&far, name, &shape, mem);
        let again = again.unwrap_or_else(|error| panic!("{name}: after trip {nth}: {error}"));
        assert!(again == (want.clone(), want_texts.clone()), "{name}: after trip {nth}");
        if storage.counts().trips < nth {
            break;
        }
    }
    n_failures
}

fn values_as(
    file: &Dataset,
    name: &str,
    shape: &[usize],
    mem: Option<MemType>,
) -> zonda::Result<(Vec<u8>, Vec<Vec<u8>>)> {
    let (var, _) = find(file, name);
    let start = vec![0; shape.len()];
    let slab = Hyperslab { start: &start, count: shape, stride: None };
    let (mut list, mut texts) = (Vec::new(), Texts::default());
    let place: Option<&mut dyn VlenSink> = if mem.is_none() { Some(&mut texts) } else { None };
    let converted = file.get_list(var, &slab, mem, (&mut list, place))?;
    assert_eq!(converted.out_of_range, 0);
    Ok((list, texts.0))
}

#[test]
fn a_failure_leaves_nothing_but_fill_and_is_not_remembered() {
    let double = f64::from_bits(0x479E_0000_0000_0000).to_ne_bytes();
    let long = (-9_223_372_036_854_775_806i64).to_ne_bytes();
    let int = (-2_147_483_647i32).to_ne_bytes();
    for kind in ["btree-v1", "fixed-array", "extensible-array", "btree-v2", "filtered"] {
        let bytes = packed(&format!("index-{kind}"));
        assert!(fails_cleanly(&bytes, "v10000", Some(MemType::F64), &double) >= 3, "{kind}");
        assert!(fails_cleanly(&bytes, "v1000", None, &int) >= 3, "{kind}");
        assert!(fails_cleanly(&bytes, "strings", None, &[0; 8]) >= 2, "{kind}");
    }
    for kind in ["old", "new"] {
        let bytes = packed(&format!("objects-{kind}-200"));
        assert!(fails_cleanly(&bytes, "v180", Some(MemType::I32), &int) >= 3, "{kind}");
    }
    let bytes = classic(30, 600, 300);
    assert!(fails_cleanly(&bytes, "a_variable_with_a_long_name_6", Some(MemType::I64), &long) >= 1);
    assert!(fails_cleanly(&bytes, "a_variable_with_a_long_name_8", None, &double) >= 1);
}

#[test]
fn a_failure_leaves_the_fill_value_that_the_variable_names() {
    let int = (OWN_FILL as i32).to_ne_bytes();
    for format in [Format::Cdf5, Format::NetCdf4] {
        let bytes = made(format, 30, 600, 300);
        for name in ["a_variable_with_a_long_name_4", "a_variable_with_a_long_name_14"] {
            assert!(fails_cleanly(&bytes, name, None, &OWN_FILL.to_ne_bytes()) >= 1, "{format:?}");
            let float = (OWN_FILL as f32).to_ne_bytes();
            assert!(fails_cleanly(&bytes, name, Some(MemType::F32), &float) >= 1);
            assert!(fails_cleanly(&bytes, name, Some(MemType::I32), &int) >= 1);
        }
    }
}

#[test]
fn an_object_that_was_cut_gives_no_zeros() {
    let bytes = classic(30, 600, 300);
    // The last variable of all records is cut in the last one; those before it are whole.
    let cut = &bytes[..bytes.len() - 9];
    let (near, far, _) = both(cut);
    let own = OWN_FILL.to_ne_bytes();
    let usual = f64::from_bits(0x479E_0000_0000_0000).to_ne_bytes();
    for (name, fill) in
        [("a_variable_with_a_long_name_24", own), ("a_variable_with_a_long_name_28", usual)]
    {
        let (var, shape) = find(&far, name);
        let is_cut = name.ends_with("28");
        // By the ways for many, few, one, converted and not.
        for count in [[300, 600], [1, 600], [1, 1], [2, 1]] {
            let start = [300 - count[0], 600 - count[1]];
            let slab = Hyperslab { start: &start, count: &count, stride: None };
            for mem in [MemType::F64, MemType::F32, MemType::I64] {
                let mut memory = vec![0x5a; count[0] * count[1] * mem.size()];
                let local = near.get(var, &slab, Some(mem), &mut memory);
                assert!(local.is_ok(), "a local file reads as in the reference");
                memory.fill(0x5a);
                let got = far.get(var, &slab, Some(mem), &mut memory);
                assert_eq!(got.is_err(), is_cut, "{name} {count:?} {mem:?}");
                if let Err(error) = got {
                    let text = error.to_string();
                    let end = format!("the object ends at byte {}", cut.len());
                    assert!(
                        text.contains("http://distant/file.nc") && text.contains(&end),
                        "{text}"
                    );
                    assert_eq!(error.code(), NcError::Curl);
                }
                if is_cut && mem == MemType::F64 {
                    assert!(memory.chunks(8).all(|one| one == fill));
                }
                let got = far.get_now(var, |_| slab, Some(mem), &mut memory);
                assert_eq!(got.is_err(), is_cut, "{name} {count:?} {mem:?}, in one step");
            }
        }
        assert_eq!(shape, [300, 600]);
    }
}

#[test]
fn calls_of_one_step_leave_fill_too_and_refused_ones_nothing() {
    let bytes = classic(30, 600, 300);
    let storage = Arc::new(DistantMemory::failing(&bytes[..], 2));
    let far = open(&storage).unwrap();
    let (var, _) = find(&far, "a_variable_with_a_long_name_8");
    let (start, count) = ([200usize, 0], [1usize, 20]);
    let mut memory = vec![0x5a; 20 * 4];
    let slab = || Hyperslab { start: &start, count: &count, stride: None };
    let failed = far.get_now(var, |_| slab(), Some(MemType::F32), &mut memory);
    assert_eq!(failed.unwrap_err().remote_failure(), Some(RemoteFailure::Broken));
    let fill = f32::from_bits(0x7CF0_0000).to_ne_bytes();
    assert!(memory.chunks(4).all(|one| one == fill), "{memory:?}");
    let got = far.get_now(var, |_| slab(), Some(MemType::F32), &mut memory).unwrap();
    assert_eq!(got.out_of_range, 0);
    let first = f32::from_ne_bytes(memory[..4].try_into().unwrap());
    assert_eq!(first, (200.0 * 600.0) * 3.0 + 8.0);

    let mut memory = vec![0x5a; 20 * 4];
    let beyond = Hyperslab { start: &[1000, 0], count: &count, stride: None };
    let refused = far.get_now(var, |_| beyond, Some(MemType::F32), &mut memory);
    assert_eq!(refused.unwrap_err().code(), NcError::InvalidCoords);
    assert!(memory.iter().all(|&byte| byte == 0x5a), "a call that is refused touches nothing");
}

#[test]
fn strings_that_zonda_writes_come_together() {
    let storage: Arc<dyn Storage> = Arc::new(Memory::new());
    let options = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
    let file = Dataset::create_in(Arc::clone(&storage), Path::new("new"), &options).unwrap();
    let x = file.def_dim(b"x", 20_000).unwrap();
    let var = file.def_var(b"v", NC_STRING, &[x.0]).unwrap();
    file.enddef(Reserve::Default).unwrap();
    struct Numbers(Vec<u8>);
    impl zonda::VlenSource for Numbers {
        fn text(&mut self, address: u64) -> Option<&[u8]> {
            self.0 = format!("string number {address}").into_bytes();
            Some(&self.0)
        }
        fn items(&mut self, _: u64, _: usize) -> &[u8] {
            &[]
        }
    }
    let bytes: Vec<u8> = (1..=20_000u64).flat_map(u64::to_ne_bytes).collect();
    let slab = Hyperslab { start: &[0], count: &[20_000], stride: None };
    let values = zonda::Values { bytes: &bytes, fetch: Some(&mut Numbers(Vec::new())) };
    assert_eq!(file.put_values(var, &slab, values).unwrap().out_of_range, 0);
    file.close().unwrap();
    let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    let (_, far, distant) = both(&bytes);
    let (list, texts) = self::values(&far, VarRef::from(var), &[20_000]).unwrap();
    assert_eq!(list.len(), 160_000);
    assert_eq!(texts[19_999], b"string number 20000");
    let counts = distant.counts();
    assert!(counts.trips <= 5, "{counts:?}");
}

#[test]
fn names_in_a_remote_file_are_refused_and_no_fill() {
    let bytes = packed("names");
    let (_, far, _) = both(&bytes);
    let names: Vec<String> = variables(&far).unwrap().into_iter().map(|(path, ..)| path).collect();
    assert_eq!(names.len(), 3, "a link leads to no variable: {names:?}");
    for name in ["virtual", "external"] {
        let (var, shape) = find(&far, name);
        assert_eq!(shape, [10]);
        let mut memory = vec![0x5a; 40];
        let slab = Hyperslab { start: &[0], count: &[10], stride: None };
        let error = far.get(var, &slab, Some(MemType::I32), &mut memory).unwrap_err().to_string();
        assert!(error.contains("a file behind a network may not name other files"), "{error}");
        let fill = (-2_147_483_647i32).to_ne_bytes();
        assert!(memory.chunks(4).all(|one| one == fill));
    }
    let (var, shape) = find(&far, "own");
    assert_eq!(values(&far, var, &shape).unwrap().0[4..8], 1i32.to_ne_bytes());
}

#[test]
fn a_walk_through_chunks_is_told_ahead() {
    let storage: Arc<dyn Storage> = Arc::new(Memory::new());
    let options = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
    let file = Dataset::create_in(Arc::clone(&storage), Path::new("new"), &options).unwrap();
    let (t, x) = (file.def_dim(b"t", 200).unwrap(), file.def_dim(b"x", 40_000).unwrap());
    for name in ["plain", "packed"] {
        let var = file.def_var(name.as_bytes(), ExtType::Int.nc_type(), &[t.0, x.0]).unwrap();
        let shape = Some(&[1, 40_000][..]);
        file.def_var_chunking(VarRef::from(var), zonda::StorageRequest::Chunked, shape).unwrap();
        if name == "packed" {
            file.def_var_deflate(VarRef::from(var), false, Some(1)).unwrap();
        }
    }
    file.enddef(Reserve::Default).unwrap();
    let mut random = zonda_testkit::Rng::new(1);
    let bytes: Vec<u8> = random.bytes(200 * 40_000 * 4);
    let slab = Hyperslab { start: &[0, 0], count: &[200, 40_000], stride: None };
    for var in [VarId(0), VarId(1)] {
        assert_eq!(file.put(var, &slab, None, &bytes).unwrap().out_of_range, 0);
    }
    file.close().unwrap();
    let mut stored = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut stored).unwrap();
    for var in [VarId(0), VarId(1)] {
        let (_, far, distant) = both(&stored);
        let before = distant.counts();
        let mut row = vec![0; 160_000];
        for k in 0..200 {
            let slab = Hyperslab { start: &[k, 0], count: &[1, 40_000], stride: None };
            assert_eq!(far.get(var, &slab, None, &mut row).unwrap().out_of_range, 0);
            assert!(row[..] == bytes[k * 160_000..][..160_000], "{k}");
            // A program does something with the values, and threads in the background come to their turn.
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let (trips, came) = since(&distant, before);
        assert!(came <= stored.len() as u64 * 6 / 10, "{came} bytes");
        assert!(trips <= 40, "{trips} trips for 200 chunks");
    }
}

#[test]
fn copies_of_remote_files_take_few_trips() {
    let folder = zonda_testkit::TempFolder::new("remote-copies");
    for (name, bytes, most) in [
        ("index-filtered", packed("index-filtered"), 30),
        ("index-btree-v2", packed("index-btree-v2"), 30),
        ("classic", classic(20, 600, 300), 25),
    ] {
        let (near, far, storage) = both(&bytes);
        let target = folder.path().join(name);
        let options = zonda::copy::CopyOptions::default();
        let go_on = &mut |_: &zonda::copy::Progress<'_>| std::ops::ControlFlow::Continue(());
        zonda::copy::copy_dataset(&far, &target, &options, go_on).unwrap();
        let counts = storage.counts();
        assert!(counts.bytes <= bytes.len() as u64 * 105 / 100 + (1 << 20), "{name}: {counts:?}");
        assert!(counts.trips <= most, "{name}: {counts:?}");
        let copy = Dataset::open(&target, &OpenOptions::default()).unwrap();
        for (path, var, shape) in variables(&near).unwrap() {
            let (there, _) = find(&copy, path.trim_start_matches('/'));
            let (got, want) = (values(&copy, there, &shape), values(&near, var, &shape));
            assert!(got.unwrap() == want.unwrap(), "{name}: {path}");
        }
    }
}

/// All files below a folder.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if std::fs::metadata(&path).is_ok_and(|meta| meta.len() < 20 << 20) {
            found.push(path);
        }
    }
}

/// `ZONDA_CORPUS` names a larger folder of files.
#[test]
fn every_file_is_read_far_away_as_here() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    files(&root.join("tests/corpus"), &mut found);
    files(&root.join("crates/zonda-hdf5/tests/data"), &mut found);
    files(&root.join("crates/zonda-nc4/tests/data"), &mut found);
    if let Some(corpus) = std::env::var_os("ZONDA_CORPUS") {
        files(&Path::new(&corpus).join("files"), &mut found);
    }
    let mut n_read = 0;
    for path in found {
        let bytes = std::fs::read(&path).unwrap();
        let near = Memory::new();
        near.write_at(0, &bytes).unwrap();
        let len = bytes.len();
        let near: Arc<dyn Storage> = Arc::new(near);
        let options = OpenOptions::default();
        let name = path.display();
        let near = Dataset::open_in(near, Path::new("near.nc"), &options);
        let far = open(&Arc::new(DistantMemory::new(bytes)));
        let (near, far) = match (near, far) {
            (Ok(near), Ok(far)) => (near, far),
            (Err(near), Err(far)) if near.code() == far.code() => continue,
            (near, far) => panic!("{name}: here {:?}, far away {:?}", near.err(), far.err()),
        };
        let code = |said: zonda::Result<Vec<String>>| said.map_err(|error| error.code());
        let (said, far_said) = (code(inquire(&near)), code(inquire(&far)));
        // How long a virtual dataset is depends on its sources, which are refused in a remote file.
        let is_virtual = said.as_ref().is_ok_and(|said| said.concat().contains("Virtual"));
        assert!(said == far_said || is_virtual, "{name}: other definitions");
        if said != far_said {
            continue;
        }
        let Ok(all) = variables(&near) else { continue };
        for (path, var, shape) in all {
            if shape.iter().fold(1u64, |n, &dim| n.saturating_mul(dim as u64)) > 1 << 22 {
                continue;
            }
            match (values(&near, var, &shape), values(&far, var, &shape)) {
                (Ok(near), Ok(far)) => assert!(near == far, "{name}: {path}: other values"),
                (near, Err(far)) => {
                    let refused = far.to_string().contains("behind a network may not name");
                    // What a cut file lacks is zeros here, and an error of what was to come from a server.
                    let end = format!("the object ends at byte {len}, before");
                    let refused = refused || far.to_string().contains(&end);
                    let same = near.err().map(|error| error.code()) == Some(far.code());
                    assert!(refused || same, "{name}: {path}: {far}");
                }
                (Err(near), Ok(_)) => panic!("{name}: {path}: only here: {near}"),
            }
        }
        n_read += 1;
    }
    assert!(n_read >= 20, "{n_read}");
}

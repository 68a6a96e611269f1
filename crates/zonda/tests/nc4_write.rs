//! netCDF-4 files made, changed and shared.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zonda::storage::Storage;
use zonda::storage::backend::Memory;
use zonda::{
    Access, AttAccess, CreateOptions, Dataset, Destination, ExtType, FillMode, Format, GroupId,
    Hyperslab, MemType, NC_STRING, NcError, OpenOptions, Persist, Reserve, Transfer, Values, VarId,
    VarRef, VlenSink, VlenSource,
};
use zonda_testkit::TempFolder;

fn options(format: Format) -> CreateOptions {
    CreateOptions { format, ..CreateOptions::default() }
}

fn created(storage: &Arc<dyn Storage>) -> Dataset {
    let options = options(Format::NetCdf4);
    Dataset::create_in(Arc::clone(storage), Path::new("new"), &options).expect("create")
}

fn opened(storage: &Arc<dyn Storage>, write: bool) -> Dataset {
    let options = OpenOptions { write, ..OpenOptions::default() };
    Dataset::open_in(Arc::clone(storage), Path::new("opened"), &options).expect("open")
}

fn memory() -> Arc<dyn Storage> {
    Arc::new(Memory::new())
}

fn code<T>(result: zonda::Result<T>) -> Result<(), NcError> {
    result.map(drop).map_err(|error| error.code())
}

fn put(file: &Dataset, var: VarRef, start: &[usize], values: &[i32]) -> Result<(), NcError> {
    let mut count = vec![1; start.len()];
    if let Some(last) = count.last_mut() {
        *last = values.len();
    }
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let slab = Hyperslab { start, count: &count, stride: None };
    code(file.put(var, &slab, Some(MemType::I32), &bytes))
}

fn get(file: &Dataset, var: VarRef, start: &[usize], n: usize) -> Vec<i32> {
    let mut count = vec![1; start.len()];
    if let Some(last) = count.last_mut() {
        *last = n;
    }
    let slab = Hyperslab { start, count: &count, stride: None };
    let mut bytes = vec![0; n * 4];
    let got = file.get(var, &slab, Some(MemType::I32), &mut bytes);
    assert_eq!(got.expect("get").out_of_range, 0);
    bytes.as_chunks::<4>().0.iter().map(|four| i32::from_ne_bytes(*four)).collect()
}

/// Strings by number, beginning with 1; 0 is none.
struct Texts(Vec<Vec<u8>>);

impl VlenSource for Texts {
    fn text(&mut self, address: u64) -> Option<&[u8]> {
        self.0.get(usize::try_from(address).ok()?.checked_sub(1)?).map(Vec::as_slice)
    }

    fn items(&mut self, _: u64, _: usize) -> &[u8] {
        &[]
    }
}

impl VlenSink for Texts {
    fn place(&mut self, bytes: &[u8], _: bool) -> Option<u64> {
        self.0.push(bytes.to_vec());
        Some(self.0.len() as u64)
    }
}

#[test]
fn groups_variables_and_attributes_are_read_back() {
    let storage = memory();
    let file = created(&storage);
    let t = file.def_dim(b"t", 0).expect("t");
    let x = file.def_dim(b"x", 3).expect("x");
    let group = file.def_group(GroupId::ROOT, b"g").expect("g");
    let y = file.def_dim_in(group, b"y", 2).expect("y");
    let root_var = file.def_var(b"v", ExtType::Int.nc_type(), &[t.0, x.0]).expect("v");
    let inner = file.def_var_in(group, b"w", ExtType::Short.nc_type(), &[y.0]).expect("w");
    let inner = VarRef { group, var: inner };
    file.put_att(inner, b"units", ExtType::Char.nc_type(), 1, Some(MemType::Text), b"m")
        .map(drop)
        .expect("units");
    assert_eq!(code(file.def_group(GroupId(9), b"h")), Err(NcError::BadGrpId));
    assert_eq!(code(file.def_group(GroupId::ROOT, b"v")), Err(NcError::NameInUse));
    // All are links of one group in the file.
    assert_eq!(code(file.def_group(GroupId::ROOT, b"x")), Err(NcError::NameInUse));
    assert_eq!(code(file.def_opaque(GroupId::ROOT, 3, b"x")), Err(NcError::NameInUse));
    assert_eq!(code(file.def_dim(b"g", 3)), Err(NcError::NameInUse));
    assert_eq!(code(file.rename_dim(x, b"g")), Err(NcError::NameInUse));
    file.enddef(Reserve::Default).expect("enddef");
    assert_eq!(put(&file, root_var.into(), &[1, 0], &[4, 5, 6]), Ok(()));
    assert_eq!(put(&file, inner, &[0], &[7, 8]), Ok(()));
    assert_eq!(get(&file, inner, &[0], 2), [7, 8]);
    file.close().expect("close");

    let file = opened(&storage, false);
    assert_eq!(file.format(), Format::NetCdf4);
    assert_eq!(file.meta(|meta| meta.n_records()), 2);
    assert_eq!(get(&file, root_var.into(), &[1, 0], 3), [4, 5, 6]);
    assert_eq!(get(&file, inner, &[0], 2), [7, 8]);
    let units = file.in_group(group, |meta| meta.find_att(inner.var, b"units").map(|(_, a)| a.len));
    assert_eq!(units.expect("g").expect("units"), 1);
    assert_eq!(put(&file, inner, &[0], &[1]), Err(NcError::HdfErr));
}

#[test]
fn strings_go_where_they_are_fetched_from() {
    let storage = memory();
    let file = created(&storage);
    let x = file.def_dim(b"x", 3).expect("x");
    let var = VarRef::from(file.def_var(b"s", NC_STRING, &[x.0]).expect("s"));
    let mut texts = Texts(vec![b"one".to_vec(), Vec::new()]);
    let addresses: Vec<u8> = [1u64, 2, 0].iter().flat_map(|at| at.to_ne_bytes()).collect();
    let slab = Hyperslab { start: &[0], count: &[3], stride: None };
    let values = Values { bytes: &addresses, fetch: Some(&mut texts) };
    let put = file.put_values(var, &slab, values);
    assert_eq!(code(put), Ok(()));
    let none = file.put(var, &slab, None, &addresses);
    assert_eq!(code(none), Err(NcError::BadType), "without a way to fetch them");
    let owner = VarRef::group(GroupId::ROOT);
    let what = (NC_STRING, 2);
    let values = Values { bytes: &addresses[..16], fetch: Some(&mut texts) };
    let att = file.put_att_values(owner, b"a", what, values);
    assert_eq!(code(att), Ok(()));
    let value = Values { bytes: &addresses[..8], fetch: Some(&mut texts) };
    file.def_var_fill_values(var, false, Some(value)).expect_err("it has data");
    file.close().expect("close");

    let file = opened(&storage, false);
    let (mut back, mut places) = (Texts(Vec::new()), [0; 16]);
    let mut att = Transfer::new(AttAccess { owner, name: b"a", mem: None });
    let room = Destination { bytes: &mut places, place: Some(&mut back) };
    let got = file.get_att_from(&mut att).and_then(|get| get.read(room));
    assert_eq!(code(got), Ok(()));
    assert_eq!(back.0, [b"one".to_vec(), Vec::new()]);
}

#[test]
fn the_classic_model_has_a_define_mode() {
    let storage = memory();
    let how = options(Format::NetCdf4Classic);
    let file =
        Dataset::create_in(Arc::clone(&storage), Path::new("classic"), &how).expect("create");
    assert_eq!(file.format(), Format::NetCdf4Classic);
    let x = file.def_dim(b"x", 3).expect("x");
    let var = VarRef::from(file.def_var(b"v", ExtType::Int.nc_type(), &[x.0]).expect("v"));
    assert_eq!(code(file.def_group(GroupId::ROOT, b"g")), Err(NcError::StrictNc3));
    assert_eq!(put(&file, var, &[0], &[1]), Err(NcError::InDefine));
    file.enddef(Reserve::Default).expect("enddef");
    assert_eq!(code(file.def_dim(b"y", 1)), Err(NcError::NotInDefine));
    assert_eq!(file.set_fill(FillMode::NoFill).expect("fill mode"), FillMode::Fill);
    file.close().expect("close");
    assert_eq!(code(file.close()), Err(NcError::BadId));
    assert_eq!(opened(&storage, false).format(), Format::NetCdf4Classic);
}

#[test]
fn a_file_that_never_was_one_goes() {
    let folder = TempFolder::new("nc4-abort");
    let path = folder.file("new.nc");
    let file = Dataset::create(&path, &options(Format::NetCdf4)).expect("create");
    file.def_dim(b"x", 3).map(drop).expect("x");
    assert!(path.exists());
    file.abort().expect("abort");
    assert!(!path.exists());

    let in_memory = Some(Persist::Yes);
    let how = CreateOptions { in_memory, ..options(Format::NetCdf4) };
    let file = Dataset::create(&path, &how).expect("create");
    file.def_dim(b"x", 3).map(drop).expect("x");
    file.close().expect("close");
    let file = Dataset::open(&path, &OpenOptions::default()).expect("written at close");
    assert_eq!(file.meta(|meta| meta.n_dims()), 1);
}

#[test]
fn a_close_that_is_refused_leaves_the_file_open() {
    let storage = memory();
    let file = created(&storage);
    let pair = file.def_compound(GroupId::ROOT, 8, b"pair").unwrap();
    for _ in 0..2 {
        assert_eq!(code(file.close()), Err(NcError::HdfErr), "a compound without fields");
        assert!(file.is_open() && file.in_define_mode());
    }
    file.insert_field((GroupId::ROOT, pair), b"a", 0, ExtType::Int.nc_type(), &[]).unwrap();
    file.close().expect("close");
    assert!(!file.is_open());
    assert_eq!(code(file.close()), Err(NcError::BadId));
    assert_eq!(opened(&storage, false).meta(|meta| meta.type_ids().len()), 1);

    let folder = TempFolder::new("nc4-given-up");
    let path = folder.file("new.nc");
    let file = Dataset::create(&path, &options(Format::NetCdf4)).unwrap();
    file.def_compound(GroupId::ROOT, 8, b"pair").unwrap();
    assert_eq!(code(file.close()), Err(NcError::HdfErr));
    file.abort().expect("what cannot be stored is given up");
    assert!(!file.is_open() && !path.exists());
}

#[test]
fn a_get_ends_define_mode_unless_the_model_is_classic() {
    let file = created(&memory());
    let number = file.def_var(b"v", ExtType::Int.nc_type(), &[]).unwrap();
    let letter = |var: VarId| {
        let mut byte = [0];
        let slab = Hyperslab { start: &[], count: &[], stride: None };
        code(file.get(var, &slab, Some(MemType::Text), &mut byte))
    };
    assert_eq!(letter(number), Err(NcError::Char));
    assert_eq!(letter(VarId(7)), Err(NcError::NotVar));
    assert!(file.in_define_mode(), "what is refused at sight does not end it");
    assert_eq!(get(&file, number.into(), &[], 1), [-2_147_483_647]);
    assert!(!file.in_define_mode());
    assert_eq!(code(file.enddef(Reserve::Default)), Err(NcError::NotInDefine));
    // An incomplete type keeps define mode from ending.
    file.redef().unwrap();
    file.def_compound(GroupId::ROOT, 8, b"pair").unwrap();
    let mut four = [0; 4];
    let slab = Hyperslab { start: &[], count: &[], stride: None };
    let refused = file.get(number, &slab, Some(MemType::I32), &mut four);
    assert_eq!(code(refused), Err(NcError::HdfErr));
}

#[test]
fn a_forked_child_reads_and_leaves_the_file_alone() {
    let storage = memory();
    let file = created(&storage);
    let x = file.def_dim(b"x", 3).expect("x");
    let var = VarRef::from(file.def_var(b"v", ExtType::Int.nc_type(), &[x.0]).expect("v"));
    file.enddef(Reserve::Default).expect("enddef");
    assert_eq!(put(&file, var, &[0], &[1, 2, 3]), Ok(()));
    let before = storage.len().expect("length");
    drop(file.freeze(std::time::Instant::now() + std::time::Duration::from_secs(60)));
    file.mark_forked();
    assert_eq!(get(&file, var, &[0], 3), [1, 2, 3]);
    let echild = Err(NcError::System(10));
    assert_eq!(put(&file, var, &[0], &[4]), echild);
    assert_eq!(code(file.def_dim(b"y", 1)), echild);
    assert_eq!(code(file.sync()), echild);
    file.close().expect("close");
    assert_eq!(storage.len().expect("length"), before);
}

/// Some threads read, some put, one defines: none waits for ever, and all values are in the file.
#[test]
fn threads_read_while_others_put() {
    const ROUNDS: i32 = 200;
    let storage = memory();
    let file = created(&storage);
    let t = file.def_dim(b"t", 0).expect("t");
    let x = file.def_dim(b"x", 8).expect("x");
    let vars: Vec<VarRef> = (0..4)
        .map(|n| {
            let name = format!("v{n}");
            let int = ExtType::Int.nc_type();
            VarRef::from(file.def_var(name.as_bytes(), int, &[t.0, x.0]).expect("v"))
        })
        .collect();
    file.enddef(Reserve::Default).expect("enddef");
    for &var in &vars {
        assert_eq!(put(&file, var, &[0, 0], &[0; 8]), Ok(()));
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = vars
            .iter()
            .map(|&var| {
                let file = &file;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let record = usize::try_from(round).expect("small") / 4;
                        assert_eq!(put(file, var, &[record, 0], &[round; 8]), Ok(()));
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for &var in &vars {
                        let row = get(&file, var, &[0, 0], 8);
                        assert!(row.iter().all(|&value| value == row[0]), "a torn row: {row:?}");
                        let n = file.meta(|meta| meta.var(var.var).map(|var| var.dims.len()));
                        assert_eq!(n.expect("v"), 2);
                    }
                }
            });
        }
        scope.spawn(|| {
            for round in 0..20i32 {
                let name = format!("a{round}");
                let value = round.to_ne_bytes();
                let owner = VarId::GLOBAL;
                let int = ExtType::Int.nc_type();
                let put = file.put_att(owner, name.as_bytes(), int, 1, None, &value);
                assert_eq!(code(put), Ok(()));
                file.sync().expect("sync");
            }
        });
        for writer in writers {
            writer.join().expect("writer");
        }
        done.store(true, Ordering::Relaxed);
    });
    file.close().expect("close");
    let file = opened(&storage, true);
    for &var in &vars {
        assert_eq!(get(&file, var, &[49, 0], 8), [ROUNDS - 1; 8]);
    }
    assert_eq!(file.meta(|meta| meta.n_atts(VarId::GLOBAL)).expect("attributes"), 20);
    assert_eq!(put(&file, vars[0], &[50, 0], &[9; 8]), Ok(()));
    file.close().expect("close");
    assert_eq!(get(&opened(&storage, false), vars[0], &[50, 0], 8), [9; 8]);
}

#[test]
#[should_panic(expected = "a lock of rank File while it holds one of rank File")]
#[cfg(debug_assertions)]
fn a_call_within_a_call_is_found_out() {
    let file = created(&memory());
    file.meta(|_| file.meta(|meta| meta.n_vars()));
}

#[test]
fn what_was_not_checked_is_not_moved() {
    for format in [Format::NetCdf4, Format::Cdf5] {
        let options = CreateOptions { format, ..CreateOptions::default() };
        let file = Dataset::create_in(memory(), Path::new("steps"), &options).expect("create");
        let (x, int) = (file.def_dim(b"x", 6).expect("x").0, ExtType::Int.nc_type());
        let [a, b] = [&b"a"[..], b"b"].map(|name| file.def_var(name, int, &[x]).expect("var"));
        file.enddef(Reserve::Default).expect("enddef");
        let of = |var: VarId, count| {
            let slab = Hyperslab { start: &[0], count, stride: Some(&[2]) };
            Transfer::new(Access { var: var.into(), slab, mem: None })
        };
        let (mut two, mut other) = (of(a, &[2]), of(b, &[2]));
        let put = file.put_to(a).expect("put_to").check(&mut other).map(drop);
        assert_eq!(code(put), Err(NcError::Inval), "{format:?}");
        let got = file.get_from(a).expect("get_from").check(&mut other).map(drop);
        assert_eq!(code(got), Err(NcError::Inval), "{format:?}");
        let put = file.put_to(a).expect("put_to").write_now(&mut other, Values::plain(&[1; 8]));
        assert_eq!(code(put), Err(NcError::Inval), "{format:?}");
        let got = file.get_from(a).expect("get_from").read_now(&mut other, &mut [0; 8]);
        assert_eq!(code(got), Err(NcError::Inval), "{format:?}");
        // Two elements have eight bytes.
        for len in [0, 4, 12] {
            let put = {
                let mut begun = file.put_to(a).expect("put_to");
                let put = begun.check(&mut two).expect("check");
                put.write(Values::plain(&[1; 12][..len]))
            };
            assert_eq!(code(put), Err(NcError::Inval), "{format:?}");
            let got = {
                let mut begun = file.get_from(a).expect("get_from");
                let get = begun.check(&mut two).expect("check");
                get.read(Destination::plain(&mut [0; 12][..len]))
            };
            assert_eq!(code(got), Err(NcError::Inval), "{format:?}");
        }
        file.close().expect("close");
    }
}

#[test]
fn a_transfer_forgets_what_an_earlier_check_found() {
    for format in [Format::NetCdf4, Format::Cdf5] {
        let options = CreateOptions { format, ..CreateOptions::default() };
        let file = Dataset::create_in(memory(), Path::new("again"), &options).expect("create");
        let (owner, int) = (VarId::GLOBAL, ExtType::Int.nc_type());
        let ints = |values: [i32; 2]| values.map(i32::to_ne_bytes).concat();
        for (name, values) in [(b"p", [1, 2]), (b"q", [3, 4])] {
            file.put_att(owner, name, int, 2, None, &ints(values)).map(drop).expect("put_att");
        }
        let access = AttAccess { owner: owner.into(), name: b"p", mem: None };
        let mut get = Transfer::new(access);
        assert_eq!(file.get_att_from(&mut get).expect("two values").n_bytes(), 8, "{format:?}");
        // Now the other one is where it was.
        file.del_att(owner, b"p").expect("del_att");
        file.put_att(owner, b"p", int, 0, None, &[]).map(drop).expect("put_att");
        assert_eq!(file.get_att_from(&mut get).expect("no value").n_bytes(), 0, "{format:?}");
        file.close().expect("close");
    }
}

//! Files that are created, changed and read again.

mod costs;
mod crash;
mod data;
mod foreign;
mod many_atts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use zonda_format::{
    AttView, Definitions as _, Dispatch as _, DispatchWrite as _, TypeDefinitions as _,
};

use zonda_format::{Access, AttAccess, Destination, Transfer, Values};
use zonda_model::{DimId, Hyperslab, MemType, NcError, VarId};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

use super::Nc4CreateOptions;
use super::testing::put;
use crate::hidden_atts;
use crate::model::{Dim, GroupId, Var};
use crate::{Nc4File, Nc4OpenOptions, VarRef};

fn how() -> Nc4CreateOptions {
    Nc4CreateOptions {
        classic: false,
        attribute_order: true,
        attach_scales: true,
        properties: b"version=2,zonda=0.2.0,netcdf=4.9.0".to_vec(),
    }
}

fn create(storage: Arc<dyn Storage>) -> Nc4File {
    Nc4File::create(storage, Path::new("test.nc"), Nc4OpenOptions::default(), how()).unwrap()
}

fn def_dim(file: &mut Nc4File, group: GroupId, name: &str, len: usize) -> DimId {
    file.def_dim(group, name.as_bytes(), len).unwrap()
}

fn def_group(file: &mut Nc4File, parent: GroupId, name: &str) -> GroupId {
    file.def_group(parent, name.as_bytes()).unwrap()
}

fn def_var(file: &mut Nc4File, group: GroupId, name: &str, dims: &[DimId]) -> VarId {
    let dims: Vec<_> = dims.iter().map(|dim| dim.0).collect();
    file.def_var(group, name.as_bytes(), 4, &dims).unwrap()
}

/// A model as far as readers see it: groups with dimensions and variables.
fn seen(file: &Nc4File) -> Vec<String> {
    let model = file.model().unwrap();
    let mut out = Vec::new();
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    for (id, group) in (0..).map(GroupId).zip(&model.groups) {
        out.push(format!("group {}", model.group_path(id)));
        for dim in &group.dims {
            let Dim { name, len, is_unlimited, .. } = model.dim(*dim).unwrap();
            out.push(format!("dim {} {} {len} {is_unlimited}", dim.0, text(name)));
        }
        for var in &group.vars {
            let dims: Vec<_> = var.dims.iter().map(|dim| dim.0).collect();
            let data = seen_data(file, id, var);
            out.push(format!("var {} {dims:?} {:?} {data:x}", text(&var.name), var.extent));
        }
    }
    for (id, group) in (0..).map(GroupId).zip(&model.groups) {
        let path = model.group_path(id);
        out.extend(seen_atts(file, VarRef { group: id, var: VarId::GLOBAL }, &path));
        for (var_id, var) in (0..).map(VarId).zip(&group.vars) {
            let path = model.var_path(id, var);
            out.extend(seen_atts(file, VarRef { group: id, var: var_id }, &path));
        }
        for ty in &group.types {
            let ty = model.user_type(*ty).unwrap();
            out.push(format!("type {path} {} {} {:?}", text(&ty.name), ty.size, ty.class));
        }
    }
    // Groups are numbered otherwise by who reads them depth first.
    out.sort();
    out
}

/// A checksum of the data of a variable of integers that can grow.
fn seen_data(file: &Nc4File, group: GroupId, var: &Var) -> u32 {
    let model = file.model().unwrap();
    let grows = var.dims.iter().any(|dim| model.dim(*dim).is_some_and(|dim| dim.is_unlimited));
    if !grows || var.nc_type != 4 {
        return 0;
    }
    let id = model.group(group).unwrap().find_var(&var.name).unwrap();
    let count: Vec<_> = var.extent.iter().map(|len| *len as usize).collect();
    if count.iter().product::<usize>() > 1_000_000 {
        return 0;
    }
    let start = vec![0; count.len()];
    let mut data = vec![0; count.iter().product::<usize>() * 4];
    let slab = Hyperslab { start: &start, count: &count, stride: None };
    let get = Access { var: VarRef { group, var: id }, slab, mem: Some(MemType::I32) };
    let read = file.get_now(&mut Transfer::new(get), Destination::plain(&mut data));
    // Some files of other writers are damaged there, or need filters that are nowhere.
    if read.is_err() {
        return 1;
    }
    zonda_hdf5::checksum::lookup3(&data, 0)
}

/// The attributes of an object with their values.
fn seen_atts(file: &Nc4File, owner: VarRef, path: &str) -> Vec<String> {
    let mut out = Vec::new();
    let n_atts = match file.n_atts(owner) {
        Ok(n_atts) => n_atts,
        Err(error) => return vec![format!("att {path} {error}")],
    };
    for index in 0..n_atts {
        let AttView { name, nc_type, len, .. } = file.att(owner, index).unwrap();
        let mem = if nc_type == 2 { MemType::Text } else { MemType::I32 };
        let mut value = vec![0; usize::try_from(len).unwrap() * mem.size()];
        let att = AttAccess { owner, name: &name, mem: Some(mem) };
        // Strings and user-defined types have no numbers.
        let mut get = Transfer::new(att);
        if file.check_get_att(&mut get).is_ok() {
            assert_eq!(get.n_bytes, value.len());
            drop(file.get_att(&get, Destination::plain(&mut value)));
        }
        let name = String::from_utf8_lossy(&name);
        let value = zonda_hdf5::checksum::lookup3(&value, 0);
        out.push(format!("att {path} {name} {nc_type} {len} {value}"));
    }
    out
}

fn open(storage: Arc<dyn Storage>) -> Nc4File {
    Nc4File::open(storage, Path::new("test.nc"), Nc4OpenOptions::default()).unwrap()
}

/// Checks that scales and variables say of each other what the model says.
fn check_lists(file: &Nc4File) {
    let (model, hdf5) = (file.model().unwrap(), file.hdf5());
    let mut users: BTreeMap<u64, Vec<(u64, u32)>> = BTreeMap::new();
    let scales: BTreeSet<u64> =
        model.dims.iter().flatten().map(|dim| dim.at.unwrap().addr.0).collect();
    for var in model.groups.iter().flat_map(|group| &group.vars) {
        let object = hdf5.object(var.at.addr).unwrap();
        let attributes = object.attributes(hdf5).unwrap();
        let listed = hidden_atts::scales(hdf5, &attributes).unwrap();
        let coordinates = hidden_atts::HiddenAtts::of(hdf5, &object).unwrap().coordinates;
        if var.dims.is_empty() {
            assert!(listed.is_none() && coordinates.is_none());
            continue;
        }
        assert_eq!(coordinates.as_deref(), Some(&*var.dims));
        if scales.contains(&var.at.addr.0) {
            assert!(listed.is_none());
            continue;
        }
        let at = |dim: &DimId| Some(model.dim(*dim).unwrap().at.unwrap().addr);
        assert_eq!(listed.unwrap(), var.dims.iter().map(at).collect::<Vec<_>>());
        for (axis, dim) in (0..).zip(&var.dims) {
            let scale = model.dim(*dim).unwrap().at.unwrap().addr.0;
            users.entry(scale).or_default().push((var.at.addr.0, axis));
        }
    }
    for scale in scales {
        let object = hdf5.object(zonda_hdf5::FileAddr(scale)).unwrap();
        let list = object.attribute(hdf5, hidden_atts::REFERENCE_LIST).unwrap();
        let data = list.map(|list| list.data).unwrap_or_default();
        let user = |element: &[u8]| {
            let addr = u64::from_le_bytes(element[..8].try_into().unwrap());
            (addr, u32::from_le_bytes(element[8..12].try_into().unwrap()))
        };
        let mut found: Vec<_> = data.chunks_exact(16).map(user).collect();
        let mut expected = users.remove(&scale).unwrap_or_default();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert!(object.attribute(hdf5, hidden_atts::CLASS).unwrap().is_some());
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.0 >> 33) % (n as u64)) as usize
    }
}

/// A name that nothing has in a group.
fn free_name(file: &Nc4File, group: GroupId, random: &mut Random) -> String {
    let model = file.model().unwrap();
    let group = model.group(group).unwrap();
    loop {
        // Few names, so that dimensions and variables meet.
        let name = format!("n{}", random.below(30));
        let bytes = name.as_bytes();
        let child = |id: &GroupId| *model.group(*id).unwrap().name == *bytes;
        if group.find_var(bytes).is_none() && !group.children.iter().any(child) {
            return name;
        }
    }
}

fn dim_name(file: &Nc4File, group: GroupId, random: &mut Random) -> String {
    let model = file.model().unwrap();
    loop {
        let name = format!("n{}", random.below(30));
        let dims = &model.group(group).unwrap().dims;
        let is_taken = |id: &DimId| *model.dim(*id).unwrap().name == *name.as_bytes();
        let groups = &model.group(group).unwrap().children;
        let is_group = |id: &GroupId| *model.group(*id).unwrap().name == *name.as_bytes();
        if !dims.iter().any(is_taken) && !groups.iter().any(is_group) {
            return name;
        }
    }
}

/// A name that a new group may have.
fn group_name(file: &Nc4File, group: GroupId, random: &mut Random) -> String {
    loop {
        let name = free_name(file, group, random);
        let model = file.model().unwrap();
        let dims = &model.group(group).unwrap().dims;
        if !dims.iter().any(|id| *model.dim(*id).unwrap().name == *name.as_bytes()) {
            return name;
        }
    }
}

/// One change of a file, or a commit.
fn random_step(file: &mut Nc4File, random: &mut Random) {
    if random.below(10) > 0 {
        return random_definition(file, random);
    }
    let result = if random.below(2) == 0 { file.sync() } else { file.redef() };
    if let Err(error) = result {
        assert_eq!(error.code(), NcError::InDefine);
    }
}

/// One change of a file.
fn random_definition(file: &mut Nc4File, random: &mut Random) {
    let n_groups = file.model().unwrap().groups.len();
    let group = GroupId(u16::try_from(random.below(n_groups)).unwrap());
    let (n_vars, dims) = {
        let model = file.model().unwrap();
        let dims: Vec<_> =
            model.lineage(group).flat_map(|group| group.dims.iter().copied()).collect();
        (model.group(group).unwrap().vars.len(), dims)
    };
    match random.below(12) {
        0 | 1 => {
            let name = dim_name(file, group, random);
            let len = random.below(4);
            def_dim(file, group, &name, len);
        }
        2 if n_groups < 6 => {
            let name = group_name(file, group, random);
            def_group(file, group, &name);
        }
        3..=5 if n_vars < 14 => {
            let name = free_name(file, group, random);
            let rank = if dims.is_empty() { 0 } else { random.below(3) };
            let mut of: Vec<_> = (0..rank).map(|_| dims[random.below(dims.len())]).collect();
            // Often the dimension of that name.
            let model = file.model().unwrap();
            let same = |id: &&DimId| *model.dim(**id).unwrap().name == *name.as_bytes();
            if let (Some(first), Some(same)) = (of.first_mut(), dims.iter().find(same)) {
                *first = *same;
            }
            def_var(file, group, &name, &of);
        }
        6 if n_vars > 0 => {
            let var = VarId(i32::try_from(random.below(n_vars)).unwrap());
            let name = free_name(file, group, random);
            file.rename_var(VarRef { group, var }, name.as_bytes()).unwrap();
        }
        7 if !file.model().unwrap().group(group).unwrap().dims.is_empty() => {
            let dims = &file.model().unwrap().group(group).unwrap().dims;
            let id = dims[random.below(dims.len())];
            let name = dim_name(file, group, random);
            file.rename_dim(group, id, name.as_bytes()).unwrap();
        }
        8 if n_vars > 0 => random_put(file, group, random),
        9 | 10 => random_attribute(file, group, random),
        11 => {
            random_type(file, group, random);
        }
        _ => {}
    }
}

/// Defines a type, if its name is not in use.
fn random_type(file: &mut Nc4File, group: GroupId, random: &mut Random) {
    let name = format!("type{}", random.below(8));
    match random.below(3) {
        0 => drop(file.def_opaque(group, 1 + random.below(40), name.as_bytes())),
        1 => drop(file.def_vlen(group, name.as_bytes(), 4)),
        _ => {
            if let Ok(ty) = file.def_compound(group, 8, name.as_bytes()) {
                file.insert_field((group, ty), b"a", 0, 4, &[]).unwrap();
                file.insert_field((group, ty), b"b", 4, 5, &[]).unwrap();
            }
        }
    }
}

/// Puts something behind all that a variable that grows has. What is stored without filters is
/// written over where it is, so that other puts are seen before they are committed.
fn random_put(file: &mut Nc4File, group: GroupId, random: &mut Random) {
    let model = file.model().unwrap();
    let vars = &model.group(group).unwrap().vars;
    let index = random.below(vars.len());
    let dims = vars[index].dims.iter().map(|dim| model.dim(*dim).unwrap());
    let dims: Vec<_> = dims.map(|dim| (dim.is_unlimited, dim.len as usize)).collect();
    if !dims.iter().any(|(is_unlimited, _)| *is_unlimited) {
        return;
    }
    let mut start = Vec::new();
    let mut count = Vec::new();
    for (is_unlimited, len) in dims {
        let at = if is_unlimited { len } else { random.below(len) };
        let most = if is_unlimited { 3 } else { len - at };
        start.push(at);
        count.push(1 + random.below(most));
    }
    let n: usize = count.iter().product();
    let values: Vec<u8> = (0..n * 4).map(|_| random.below(256) as u8).collect();
    let var = VarId(i32::try_from(index).unwrap());
    let slab = Hyperslab { start: &start, count: &count, stride: None };
    let put = Access { var: VarRef { group, var }, slab, mem: Some(MemType::I32) };
    let put = file.put_now(&mut Transfer::new(put), Values::plain(&values));
    assert!(put.unwrap().out_of_range == 0);
}

fn random_attribute(file: &mut Nc4File, group: GroupId, random: &mut Random) {
    let n_vars = file.model().unwrap().group(group).unwrap().vars.len();
    let var = match random.below(n_vars + 1) {
        0 => VarId::GLOBAL,
        n => VarId(i32::try_from(n - 1).unwrap()),
    };
    let owner = VarRef { group, var };
    let n_atts = file.n_atts(owner).unwrap();
    if n_atts > 0 && random.below(4) == 0 {
        let name = file.att(owner, random.below(n_atts)).unwrap().name.into_owned();
        if random.below(2) == 0 {
            file.del_att(owner, &name).unwrap();
        } else {
            // The new name may be in use.
            drop(file.rename_att(owner, &name, format!("a{}", random.below(9)).as_bytes()));
        }
        return;
    }
    let name = format!("a{}", random.below(9));
    let (nc_type, mem) = if random.below(2) == 0 { (2, MemType::Text) } else { (4, MemType::I32) };
    let n = if random.below(20) == 0 { random.below(20_000) } else { random.below(10) };
    let value: Vec<u8> = (0..n * mem.size()).map(|_| random.below(100) as u8 + 1).collect();
    assert_eq!(put(file, owner, &name, nc_type, mem, &value).unwrap(), 0);
}

#[test]
fn random_definitions_are_read_back() {
    let mut written = Vec::new();
    for seed in 0..60 {
        let random = &mut Random(seed);
        let memory: Arc<dyn Storage> = Arc::new(Memory::new());
        let mut file = create(Arc::clone(&memory));
        for part in 0..4 {
            for _ in 0..random.below(60) {
                random_step(&mut file, random);
            }
            let expected = seen(&file);
            file.close().unwrap();
            let again = open(Arc::clone(&memory));
            assert_eq!(seen(&again), expected, "seed {seed}, part {part}");
            check_lists(&again);
            file = Nc4File::open_for_writing(
                Arc::clone(&memory),
                Path::new("test.nc"),
                Nc4OpenOptions::default(),
            )
            .unwrap();
        }
        written.push(contents(&*memory));
    }
    check_with_the_reference(&written);
}

/// Lets netCDF4 and h5py of the Python that `ZONDA_PYTHON` names read and change files, and reads
/// what they made of them.
fn check_with_the_reference(files: &[Vec<u8>]) {
    let Some(python) = std::env::var_os("ZONDA_PYTHON") else {
        eprintln!("skipped: ZONDA_PYTHON names no Python with netCDF4 and h5py");
        return;
    };
    let folder = std::env::temp_dir().join(format!("zonda-nc4-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut paths = Vec::new();
    for (number, bytes) in files.iter().enumerate() {
        let path = folder.join(format!("{number}.nc"));
        std::fs::write(&path, bytes).unwrap();
        paths.push(path);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/check_written.py");
    let output = std::process::Command::new(python).arg(script).args(&paths).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for path in paths {
        let memory: Arc<dyn Storage> = Arc::new(Memory::from_slice(&std::fs::read(path).unwrap()));
        let names: Vec<_> = open(memory).model().unwrap().groups[0]
            .vars
            .iter()
            .map(|var| var.name.clone())
            .collect();
        assert!(names.contains(&Box::from(&b"values"[..])));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn contents(storage: &dyn Storage) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_simple_file() {
    let memory = Arc::new(Memory::new());
    let mut file = create(memory.clone());
    let root = GroupId::ROOT;
    let x = def_dim(&mut file, root, "x", 3);
    let t = def_dim(&mut file, root, "t", 0);
    let u = def_dim(&mut file, root, "u", 4);
    def_var(&mut file, root, "x", &[x]);
    def_var(&mut file, root, "v", &[t, x]);
    let g = def_group(&mut file, root, "g");
    let z = def_dim(&mut file, g, "z", 2);
    def_var(&mut file, g, "z", &[z]);
    def_var(&mut file, g, "k", &[z, x]);
    def_var(&mut file, g, "u", &[u]);
    def_var(&mut file, root, "s", &[]);
    file.close().unwrap();
    let again = Nc4File::open(memory, Path::new("test.nc"), Nc4OpenOptions::default()).unwrap();
    let model = again.model().unwrap();
    let names: Vec<_> = model.groups[0].vars.iter().map(|var| &*var.name).collect();
    assert_eq!(names, [&b"x"[..], b"v", b"s"]);
    assert_eq!(&*model.groups[0].vars[1].dims, [t, x]);
    assert_eq!(&*model.groups[1].vars[1].dims, [z, x]);
}

#[test]
fn variables_that_refer_to_no_scales_stay_so() {
    let memory = Arc::new(Memory::new());
    let apart = Nc4CreateOptions { attach_scales: false, ..how() };
    let (name, root) = (Path::new("test.nc"), GroupId::ROOT);
    let mut file = Nc4File::create(memory.clone(), name, Nc4OpenOptions::default(), apart).unwrap();
    let x = def_dim(&mut file, root, "x", 3);
    def_var(&mut file, root, "old", &[x]);
    file.close().unwrap();
    let mut file =
        Nc4File::open_for_writing(memory.clone(), name, Nc4OpenOptions::default()).unwrap();
    def_var(&mut file, root, "new", &[x]);
    file.close().unwrap();
    let file = open(memory);
    let (model, hdf5) = (file.model().unwrap(), file.hdf5());
    let vars = &model.groups[0].vars;
    let lists: Vec<_> = vars
        .iter()
        .map(|var| {
            let attributes = hdf5.object(var.at.addr).unwrap().attributes(hdf5).unwrap();
            hidden_atts::scales(hdf5, &attributes).unwrap()
        })
        .collect();
    let scale = model.dim(x).unwrap().at.unwrap().addr;
    assert_eq!(lists, [None, Some(vec![Some(scale)])]);
    let users = hdf5.object(scale).unwrap().attribute(hdf5, hidden_atts::REFERENCE_LIST).unwrap();
    assert_eq!(users.unwrap().data[..8], vars[1].at.addr.0.to_le_bytes());
}

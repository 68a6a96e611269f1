//! Files that are created, changed and read again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use zonda_hdf5::message::{
    ByteOrder, Class, Datatype, FixedPoint,
};
use zonda_model::{DimId, NcError, VarId};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

use super::{CreateHow, Fill, Layout, ObjectKey, VarDraft};
use crate::files::ObjectAt;
use crate::hidden;
use crate::model::{Dim, Endianness, Group, GroupId, Var};
use crate::{Nc4File, OpenHow};

fn how() -> CreateHow {
    CreateHow {
        classic: false,
        attribute_order: true,
        attach_scales: true,
        properties: b"version=2,zonda=0.1.0,netcdf=4.9.0".to_vec(),
    }
}

fn create(storage: Arc<dyn Storage>) -> Nc4File {
    Nc4File::create(storage, Path::new("test.nc"), OpenHow::default(), how()).unwrap()
}

fn int() -> Datatype {
    let bits = FixedPoint {
        order: ByteOrder::Little,
        signed: true,
        padding: [false; 2],
        bit_offset: 0,
        precision: 32,
    };
    Datatype { size: 4, class: Class::FixedPoint(bits) }
}

fn def_dim(file: &mut Nc4File, group: GroupId, name: &str, len: u64) -> DimId {
    let model = file.model.get_mut().unwrap();
    let id = DimId(i32::try_from(model.dims.len()).unwrap());
    let is_unlimited = len == 0;
    let name = name.as_bytes().into();
    model.dims.push(Some(Dim { name, group, len, is_unlimited, at: None }));
    model.group_mut(group).unwrap().dims.push(id);
    file.writing_mut().unwrap().changed.insert(ObjectKey::Scale(id));
    id
}

fn def_group(file: &mut Nc4File, parent: GroupId, name: &str) -> GroupId {
    let model = file.model.get_mut().unwrap();
    let id = GroupId(u16::try_from(model.groups.len()).unwrap());
    model.groups.push(Group::new(name.as_bytes().into(), Some(parent), ObjectAt::NOWHERE));
    model.group_mut(parent).unwrap().children.push(id);
    let changed = &mut file.writing_mut().unwrap().changed;
    changed.extend([ObjectKey::Group(id), ObjectKey::Group(parent)]);
    id
}

fn def_var(file: &mut Nc4File, group: GroupId, name: &str, dims: &[DimId]) -> VarId {
    let model = file.model.get_mut().unwrap();
    let extent: Vec<_> = dims.iter().map(|dim| model.dim(*dim).unwrap().len).collect();
    let unlimited = dims.iter().any(|dim| model.dim(*dim).unwrap().is_unlimited);
    let mut var = Var::new(name.as_bytes(), 4, dims.to_vec(), ObjectAt::NOWHERE, &extent);
    let chunk = extent.iter().map(|len| (*len).max(1)).collect();
    var.draft = Some(Box::new(VarDraft {
        datatype: int(),
        layout: if unlimited { Layout::Chunked(chunk) } else { Layout::Contiguous },
        layout_chosen: false,
        filters: Vec::new(),
        fill: Fill::Default,
        endianness: Endianness::Native,
        quantize: None,
        is_settled: false,
    }));
    let vars = &mut model.group_mut(group).unwrap().vars;
    vars.push(var);
    let id = VarId(i32::try_from(vars.len()).unwrap() - 1);
    file.writing_mut().unwrap().changed.insert(ObjectKey::Var(group, id));
    id
}

/// A model as far as readers see it: groups with dimensions and variables.
fn seen(file: &Nc4File) -> Vec<String> {
    let model = file.model().unwrap();
    let mut out = Vec::new();
    let text = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
    for (id, group) in (0..).map(GroupId).zip(&model.groups) {
        out.push(format!("group {}", model.group_path(id)));
        for dim in &group.dims {
            let Dim { name, len, is_unlimited, .. } = model.dim(*dim).unwrap();
            out.push(format!("dim {} {} {len} {is_unlimited}", dim.0, text(name)));
        }
        for var in &group.vars {
            let dims: Vec<_> = var.dims.iter().map(|dim| dim.0).collect();
            out.push(format!("var {} {dims:?} {:?}", text(&var.name), var.extent));
        }
    }
    // Groups are numbered otherwise by who reads them depth first.
    out.sort();
    out
}

fn open(storage: Arc<dyn Storage>) -> Nc4File {
    Nc4File::open(storage, Path::new("test.nc"), OpenHow::default()).unwrap()
}

/// Checks that scales and variables say of each other what the model says.
fn check_lists(file: &Nc4File) {
    let (model, hdf5) = (file.model().unwrap(), file.hdf5());
    let mut users: BTreeMap<u64, Vec<(u64, u32)>> = BTreeMap::new();
    let scales: BTreeSet<u64> =
        model.dims.iter().flatten().map(|dim| dim.at.unwrap().addr.0).collect();
    for var in model.groups.iter().flat_map(|group| &group.vars) {
        let attributes = hdf5.object(var.at.addr).unwrap().attributes(hdf5).unwrap();
        let listed = hidden::scales(hdf5, &attributes).unwrap();
        let coordinates = hidden::Hidden::of(hdf5, &attributes).unwrap().coordinates;
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
        let list = object.attribute(hdf5, hidden::REFERENCE_LIST).unwrap();
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
        assert!(object.attribute(hdf5, hidden::CLASS).unwrap().is_some());
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

fn change(file: &mut Nc4File, key: ObjectKey) {
    file.writing_mut().unwrap().changed.insert(key);
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

/// One change of a file.
fn random_step(file: &mut Nc4File, random: &mut Random) {
    let n_groups = file.model().unwrap().groups.len();
    let group = GroupId(u16::try_from(random.below(n_groups)).unwrap());
    let (n_vars, dims) = {
        let model = file.model().unwrap();
        let dims: Vec<_> =
            model.lineage(group).flat_map(|group| group.dims.iter().copied()).collect();
        (model.group(group).unwrap().vars.len(), dims)
    };
    match random.below(10) {
        0 | 1 => {
            let name = dim_name(file, group, random);
            let len = random.below(4) as u64;
            def_dim(file, group, &name, len);
        }
        2 if n_groups < 6 => {
            let name = loop {
                let name = free_name(file, group, random);
                let dims = &file.model().unwrap().group(group).unwrap().dims;
                let dim = |id: &DimId| {
                    *file.model().unwrap().dim(*id).unwrap().name == *name.as_bytes()
                };
                if !dims.iter().any(dim) {
                    break name;
                }
            };
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
            let var = random.below(n_vars);
            let name = free_name(file, group, random).into_bytes();
            let model = file.model.get_mut().unwrap();
            model.group_mut(group).unwrap().vars[var].name = name.into();
            change(file, ObjectKey::Var(group, VarId(i32::try_from(var).unwrap())));
            change(file, ObjectKey::Group(group));
        }
        7 if !file.model().unwrap().group(group).unwrap().dims.is_empty() => {
            let dims = &file.model().unwrap().group(group).unwrap().dims;
            let id = dims[random.below(dims.len())];
            let name = dim_name(file, group, random).into_bytes();
            let model = file.model.get_mut().unwrap();
            model.dims[usize::try_from(id.0).unwrap()].as_mut().unwrap().name = name.into();
            change(file, ObjectKey::Scale(id));
        }
        8 if n_vars > 0 => {
            let var = random.below(n_vars);
            let by = random.below(3) as u64;
            let model = file.model.get_mut().unwrap();
            let dims = model.group(group).unwrap().vars[var].dims.clone();
            for (axis, dim) in dims.iter().enumerate() {
                let dim = model.dims[usize::try_from(dim.0).unwrap()].as_mut().unwrap();
                if dim.is_unlimited {
                    dim.len += by;
                    let len = dim.len;
                    model.group_mut(group).unwrap().vars[var].extent[axis] = len;
                }
            }
            change(file, ObjectKey::Var(group, VarId(i32::try_from(var).unwrap())));
        }
        _ => {
            let result = if random.below(2) == 0 { file.sync() } else { file.redef() };
            if let Err(error) = result {
                assert_eq!(error.nc_error(), NcError::InDefine);
            }
        }
    }
}

#[test]
fn random_definitions_are_read_back() {
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
                OpenHow::default(),
            )
            .unwrap();
        }
        if let Some(folder) = std::env::var_os("ZONDA_KEEP") {
            let len = usize::try_from(memory.len().unwrap()).unwrap();
            let mut bytes = vec![0; len];
            memory.read_at(0, &mut bytes).unwrap();
            std::fs::write(Path::new(&folder).join(format!("r{seed}.nc")), &bytes).unwrap();
        }
    }
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
    let again = Nc4File::open(memory, Path::new("test.nc"), OpenHow::default()).unwrap();
    let model = again.model().unwrap();
    let names: Vec<_> = model.groups[0].vars.iter().map(|var| &*var.name).collect();
    assert_eq!(names, [&b"x"[..], b"v", b"s"]);
    assert_eq!(&*model.groups[0].vars[1].dims, [t, x]);
    assert_eq!(&*model.groups[1].vars[1].dims, [z, x]);
}

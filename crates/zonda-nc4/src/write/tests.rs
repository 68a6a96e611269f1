//! Files that are created, changed and read again.

use std::path::Path;
use std::sync::Arc;

use zonda_hdf5::message::{
    ByteOrder, Class, Datatype, FixedPoint,
};
use zonda_model::{DimId, VarId};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

use super::{CreateHow, Fill, Layout, ObjectKey, VarDraft};
use crate::files::ObjectAt;
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
    let bytes = memory.to_vec().unwrap();
    if let Some(path) = std::env::var_os("ZONDA_KEEP") {
        std::fs::write(path, &bytes).unwrap();
    }
    let again = Nc4File::open(memory, Path::new("test.nc"), OpenHow::default()).unwrap();
    let model = again.model().unwrap();
    let names: Vec<_> = model.groups[0].vars.iter().map(|var| &*var.name).collect();
    assert_eq!(names, [&b"x"[..], b"v", b"s"]);
    assert_eq!(&*model.groups[0].vars[1].dims, [t, x]);
    assert_eq!(&*model.groups[1].vars[1].dims, [z, x]);
}

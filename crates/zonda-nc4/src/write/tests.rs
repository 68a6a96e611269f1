//! Files that are created, changed and read again.

use std::path::Path;
use std::sync::Arc;

use zonda_model::{DimId, VarId};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

use super::CreateHow;
use crate::model::GroupId;
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

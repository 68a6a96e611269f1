//! Any bytes as an HDF5 file: opened, inquired and read through the public interface of netCDF-4.
//! Checksums are not verified under the fuzzer.
#![no_main]

use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use zonda_format::{
    Access, AttAccess, Definitions, Destination, Dispatch, Transfer, VarRef, VlenSink,
};
use zonda_model::{Hyperslab, MemType, VarId};
use zonda_nc4::{GroupId, Nc4File, Nc4OpenOptions};
use zonda_storage::backend::Memory;

/// Elements read of one variable: damaged files may claim any size.
const MOST: usize = 1 << 10;

/// Keeps nothing; what it is told of must be in memory already.
#[derive(Default)]
struct Counted(u64);

impl VlenSink for Counted {
    fn place(&mut self, bytes: &[u8], _text: bool) -> Option<u64> {
        self.0 = self.0.checked_add(bytes.len() as u64 + 1)?;
        (self.0 < 64 << 20).then_some(self.0)
    }
}

fn attributes(file: &Nc4File, owner: VarRef) {
    let Ok(n) = file.n_atts(owner) else { return };
    for index in 0..n {
        let Ok(att) = file.att(owner, index) else { continue };
        let _ = file.find_att(owner, &att.name);
        let mut memory = Vec::new();
        let mut place = Counted::default();
        for mem in [None, Some(MemType::F64)] {
            let mut get = Transfer::new(AttAccess { owner, name: &att.name, mem });
            if file.check_get_att(&mut get).is_err() {
                continue;
            }
            memory.resize(get.n_bytes, 0);
            let room = Destination { bytes: &mut memory, place: Some(&mut place) };
            let _ = file.get_att(&get, room);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let storage = Arc::new(Memory::from_slice(bytes));
    let Ok(file) = Nc4File::open(storage, Path::new("fuzz"), Nc4OpenOptions::default()) else { return };
    let Ok(model) = file.model() else { return };
    for (g, group) in model.groups.iter().enumerate() {
        let id = GroupId(g as u16);
        attributes(&file, VarRef { group: id, var: VarId::GLOBAL });
        for (v, var) in group.vars.iter().enumerate() {
            let var_id = VarId(v as i32);
            attributes(&file, VarRef { group: id, var: var_id });
            let _ = file.var_info(id, var_id);
            let shape: Vec<usize> = var
                .dims
                .iter()
                .map(|&dim| model.dim(dim).map_or(1, |dim| dim.len as usize))
                .collect();
            let mut left = MOST;
            let count: Vec<usize> = shape
                .iter()
                .map(|&len| {
                    let n = len.min(left);
                    left /= n.max(1);
                    n
                })
                .collect();
            let end: Vec<usize> = shape.iter().zip(&count).map(|(len, n)| len - n).collect();
            for start in [vec![0; shape.len()], end] {
                for stride in [None, Some(vec![1isize; shape.len()])] {
                    let slab =
                        Hyperslab { start: &start, count: &count, stride: stride.as_deref() };
                    let (mut memory, mut place) = (Vec::new(), Counted::default());
                    for mem in [None, Some(MemType::I16)] {
                        let var = VarRef { group: id, var: var_id };
                        let mut get = Transfer::new(Access { var, slab, mem });
                        if file.check_get(&mut get).is_err() || get.n_bytes > 1 << 26 {
                            continue;
                        }
                        memory.resize(get.n_bytes, 0);
                        let room = Destination { bytes: &mut memory, place: Some(&mut place) };
                        let _ = file.get(&get, room);
                    }
                }
            }
        }
    }
});

//! Any bytes as a file: opened, inquired and read through the public interface; then opened for
//! writing, edited, closed, and opened again.
#![no_main]

use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use zonda::storage::Storage;
use zonda::storage::backend::Memory;
use zonda::{Access, Dataset, DimId, Hyperslab, MemType, OpenOptions, Reserve, Destination, Transfer, VarId};

/// Elements read of one variable: damaged files may claim any size.
const MOST: usize = 1 << 12;

fn look(file: &Dataset) {
    let (n_dims, n_vars) = file.meta(|meta| (meta.n_dims(), meta.n_vars()));
    for id in 0..n_dims as i32 {
        file.meta(|meta| {
            let dim = meta.dim(DimId(id)).expect("counted");
            let _ = meta.find_dim(dim.name);
        });
    }
    for id in -1..n_vars as i32 {
        let owner = VarId(id);
        let n_atts = file.meta(|meta| meta.n_atts(owner)).expect("counted");
        for index in 0..n_atts {
            let name = file.meta(|meta| meta.att(owner, index).expect("counted").name.into_owned());
            for mem in [None, Some(MemType::F64), Some(MemType::I8), Some(MemType::Text)] {
                let mut memory = Vec::new();
                let _ = file.get_att_list(owner, &name, mem, (&mut memory, None));
            }
        }
    }
    for id in 0..n_vars as i32 {
        read(file, VarId(id));
    }
}

fn read(file: &Dataset, var: VarId) {
    let mut shape = vec![0usize; 1024];
    let rank = file.meta(|meta| meta.var_shape(var, &mut shape)).expect("counted");
    shape.truncate(rank);
    let mut left = MOST;
    let count: Vec<usize> = shape
        .iter()
        .map(|&len| {
            let n = len.min(left);
            left /= n.max(1);
            n
        })
        .collect();
    let starts = [vec![0; rank], shape.iter().zip(&count).map(|(len, n)| len - n).collect()];
    for start in starts {
        for mem in [None, Some(MemType::F64), Some(MemType::U8)] {
            for stride in [None, Some(vec![1isize; rank]), Some(vec![2; rank])] {
                let slab = Hyperslab { start: &start, count: &count, stride: stride.as_deref() };
                let Ok(mut get) = file.get_from(var) else { continue };
                let mut transfer = Transfer::new(Access { var: var.into(), slab, mem });
                let Ok(checked) = get.check(&mut transfer) else { continue };
                let n_bytes = checked.n_bytes();
                assert!(n_bytes <= MOST * 8);
                let _ = checked.read(Destination::plain(&mut vec![0; n_bytes]));
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let open = |storage: &Arc<dyn Storage>, write| {
        let options = OpenOptions { write, ..OpenOptions::default() };
        Dataset::open_in(Arc::clone(storage), Path::new("fuzz"), &options)
    };
    let storage: Arc<dyn Storage> = Arc::new(Memory::from_slice(bytes));
    let Ok(file) = open(&storage, false) else { return };
    look(&file);
    let _ = file.close();

    // Editing needs memory for what the file claims to hold: only modest claims are tried.
    let Ok(file) = open(&storage, true) else { return };
    let modest = file.meta(|meta| {
        let Some(layout) = meta.layout() else { return false };
        let records = layout.record_len.saturating_mul(meta.n_records());
        let vars = (0..meta.n_vars() as i32).filter_map(|id| meta.var(VarId(id)).ok());
        let end = vars.filter_map(|var| var.classic);
        let fixed = end.map(|var| var.begin.saturating_add(var.slab_bytes)).max().unwrap_or(0);
        fixed.saturating_add(records) < 1 << 20
    });
    if !modest {
        return;
    }
    if file.redef().is_ok() {
        let _ = file.put_att(VarId::GLOBAL, b"fuzz", 2, 300, None, &[b'x'; 300]);
        let dim = file.def_dim(b"fuzz_dim", 3);
        let dims: Vec<i32> = dim.iter().map(|dim| dim.0).collect();
        let _ = file.def_var(b"fuzz_var", 5, &dims);
        if file.enddef(Reserve::Default).is_ok() {
            look(&file);
        }
    }
    if file.close().is_ok() {
        let file = open(&storage, false).expect("what was closed without an error opens");
        look(&file);
    }
});

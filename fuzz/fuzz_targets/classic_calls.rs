//! Any sequence of calls with any arguments on a file in memory: an answer each, and a file that
//! opens in the end.
#![no_main]

use std::path::Path;
use std::sync::Arc;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use zonda::storage::Storage;
use zonda::storage::backend::Memory;
use zonda::{
    Access, AttPut, CreateOptions, Dataset, DimId, FillMode, Format, Hyperslab, MemType,
    OpenOptions, Reserve, Transfer, Values, VarId,
};

#[derive(Arbitrary, Debug)]
enum Call {
    Redef,
    Enddef(Option<(u8, u8, u8, u8)>),
    Sync,
    SetFill(bool),
    DefDim(Vec<u8>, u8),
    RenameDim(i8, Vec<u8>),
    DefVar(Vec<u8>, i8, Vec<i8>),
    RenameVar(i8, Vec<u8>),
    DefVarFill(i8, bool, Option<[u8; 8]>),
    PutAtt(i8, Vec<u8>, i8, u8, Option<u8>),
    DelAtt(i8, Vec<u8>),
    RenameAtt(i8, Vec<u8>, Vec<u8>),
    Put(i8, Vec<(u8, u8, i8)>, bool, Option<u8>),
    Get(i8, Vec<(u8, u8, i8)>, bool, Option<u8>),
    Reopen,
}

fn mem_type(code: Option<u8>) -> Option<MemType> {
    code.map(|code| MemType::ALL[code as usize % MemType::ALL.len()])
}

fn axes(axes: &[(u8, u8, i8)]) -> (Vec<usize>, Vec<usize>, Vec<isize>) {
    let start = axes.iter().map(|axis| axis.0 as usize).collect();
    let count = axes.iter().map(|axis| axis.1 as usize % 16).collect();
    let stride = axes.iter().map(|axis| axis.2 as isize).collect();
    (start, count, stride)
}

/// Bytes a file may need before calls that make it larger are left out.
const LARGE: u64 = 1 << 22;

fn is_large(file: &Dataset) -> bool {
    file.meta(|meta| {
        let vars = (0..meta.n_vars() as i32).filter_map(|id| meta.var(VarId(id)).ok());
        let sum = vars.fold(0u64, |sum, var| {
            let Some(var) = var.classic else { return sum };
            let records = if var.is_record { meta.n_records() + 512 } else { 1 };
            sum.saturating_add(var.slab_bytes.saturating_mul(records))
        });
        sum > LARGE
    })
}

fn call(file: &Dataset, call: &Call) {
    let zeros = vec![0x55u8; 1 << 16];
    match call {
        Call::Redef => drop(file.redef()),
        Call::Enddef(None) => {
            if !is_large(file) {
                let _ = file.enddef(Reserve::Default);
            }
        }
        Call::Enddef(Some((a, b, c, d))) => {
            if !is_large(file) {
                let _ = file.enddef(Reserve::Explicit {
                    h_minfree: u64::from(*a),
                    v_align: u64::from(*b),
                    v_minfree: u64::from(*c),
                    r_align: u64::from(*d),
                });
            }
        }
        Call::Sync => drop(file.sync()),
        Call::SetFill(fill) => {
            let _ = file.set_fill(if *fill { FillMode::Fill } else { FillMode::NoFill });
        }
        Call::DefDim(name, len) => drop(file.def_dim(name, *len as usize % 20)),
        Call::RenameDim(id, name) => drop(file.rename_dim(DimId((*id).into()), name)),
        Call::DefVar(name, ty, dims) => {
            let dims: Vec<i32> = dims.iter().take(6).map(|&dim| dim.into()).collect();
            let _ = file.def_var(name, (*ty).into(), &dims);
        }
        Call::RenameVar(id, name) => drop(file.rename_var(VarId((*id).into()), name)),
        Call::DefVarFill(id, no_fill, value) => {
            let _ = file.def_var_fill(
                VarId((*id).into()),
                *no_fill,
                value.as_ref().map(|value| &value[..]),
            );
        }
        Call::PutAtt(owner, name, ty, n, mem) => {
            let owner = VarId((*owner).into());
            let (nc_type, n_values, mem) = ((*ty).into(), (*n).into(), mem_type(*mem));
            let att = AttPut { owner: owner.into(), name, nc_type, n_values, mem };
            if let Ok(put) = file.put_att_to(&att) {
                let len = put.n_bytes();
                let _ = put.write(Values::plain(&zeros[..len]));
            }
        }
        Call::DelAtt(owner, name) => drop(file.del_att(VarId((*owner).into()), name)),
        Call::RenameAtt(owner, name, new) => {
            drop(file.rename_att(VarId((*owner).into()), name, new));
        }
        Call::Put(id, slab, strided, mem) => {
            if is_large(file) {
                return;
            }
            let (start, count, stride) = axes(slab);
            let stride = strided.then_some(&stride[..]);
            let slab = Hyperslab { start: &start, count: &count, stride };
            let id = VarId((*id).into());
            let mut transfer = Transfer::new(Access { var: id.into(), slab, mem: mem_type(*mem) });
            let Ok(mut put) = file.put_to(id) else { return };
            let Ok(checked) = put.check(&mut transfer) else { return };
            let len = checked.n_bytes();
            // Memory of another length is refused; then it is put as it should be.
            let refused = checked.write(Values::plain(&[]));
            assert!(refused.is_err() || len == 0);
            drop(put);
            if len > 0 {
                let _ = file.put(id, &slab, mem_type(*mem), &vec![0x11; len]);
            }
        }
        Call::Get(id, slab, strided, mem) => {
            let (start, count, stride) = axes(slab);
            let stride = strided.then_some(&stride[..]);
            let slab = Hyperslab { start: &start, count: &count, stride };
            let mut memory = Vec::new();
            let list = (&mut memory, None);
            let _ = file.get_list(VarId((*id).into()), &slab, mem_type(*mem), list);
        }
        Call::Reopen => {}
    }
}

fuzz_target!(|input: (u8, Vec<Call>)| {
    let (kind, calls) = input;
    let format = [Format::Cdf1, Format::Cdf2, Format::Cdf5][kind as usize % 3];
    let storage: Arc<dyn Storage> = Arc::new(Memory::new());
    let name = Path::new("fuzz");
    let options = CreateOptions { format, ..CreateOptions::default() };
    let mut file =
        Dataset::create_in(Arc::clone(&storage), name, &options).expect("a classic format");
    let reopen = || {
        let options = OpenOptions { write: true, ..OpenOptions::default() };
        Dataset::open_in(Arc::clone(&storage), name, &options)
    };
    for one in &calls {
        if matches!(one, Call::Reopen) {
            if is_large(&file) || file.close().is_err() {
                return;
            }
            file = reopen().expect("what was closed without an error opens");
        } else {
            call(&file, one);
        }
    }
    if !is_large(&file) && file.close().is_ok() {
        let _ = reopen().expect("what was closed without an error opens");
    }
});

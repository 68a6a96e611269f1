//! What the tests share: reading in natural form, and the canonical bytes that digests are made of.

use std::path::Path;
use std::sync::Arc;
use zonda_format::{Definitions as _, Dispatch as _};

use zonda_format::{Access, AttAccess, Destination, Transfer, VarRef, VlenSink};
use zonda_model::{Hyperslab, VarId};
use zonda_nc4::{GroupId, Model, Nc4Error, Nc4File, Nc4OpenOptions, UserClass, UserType};

/// Keeps strings and sequences in a list; an address is a place in it.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) Vec<Vec<u8>>);

impl VlenSink for Kept {
    fn place(&mut self, bytes: &[u8], _text: bool) -> Option<u64> {
        self.0.push(bytes.to_vec());
        Some(self.0.len() as u64)
    }
}

impl Kept {
    fn at(&self, address: u64) -> &[u8] {
        if address == 0 { &[] } else { &self.0[address as usize - 1] }
    }
}

pub(crate) fn open(path: &Path) -> Result<Nc4File, Nc4Error> {
    let storage = Arc::new(zonda_storage::backend::File::open_read(path).unwrap());
    let at = std::path::absolute(path).unwrap();
    Nc4File::open(storage, path, Nc4OpenOptions { path: Some(at), ..Nc4OpenOptions::default() })
}

pub(crate) const ATOMIC: [&str; 13] = [
    "?", "byte", "char", "short", "int", "float", "double", "ubyte", "ushort", "uint", "int64",
    "uint64", "string",
];

fn user(model: &Model, nc_type: i32) -> &UserType {
    &model.types[nc_type as usize - 32]
}

pub(crate) fn size(model: &Model, nc_type: i32) -> usize {
    match nc_type {
        1 | 2 | 7 => 1,
        3 | 8 => 2,
        4 | 5 | 9 => 4,
        6 | 10 | 11 | 12 => 8,
        _ => user(model, nc_type).size,
    }
}

/// Canonical bytes of elements in memory: little-endian, packed, strings and sequences with their lengths.
pub(crate) fn canonical(
    model: &Model,
    nc_type: i32,
    kept: &Kept,
    memory: &[u8],
    out: &mut Vec<u8>,
) {
    let word = |bytes: &[u8], at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    let elem = size(model, nc_type);
    match nc_type {
        ..12 => out.extend(memory),
        12 => {
            for address in memory.chunks_exact(8) {
                let text = kept.at(word(address, 0));
                out.extend((text.len() as u64).to_le_bytes());
                out.extend(text);
            }
        }
        _ => match &user(model, nc_type).class {
            UserClass::Opaque | UserClass::Enum { .. } => out.extend(memory),
            UserClass::Vlen { base } => {
                for element in memory.chunks_exact(16) {
                    let n = word(element, 0);
                    out.extend(n.to_le_bytes());
                    if n > 0 {
                        let items = kept.at(word(element, 8));
                        assert_eq!(items.len(), n as usize * size(model, *base));
                        canonical(model, *base, kept, items, out);
                    }
                }
            }
            UserClass::Compound(fields) => {
                for element in memory.chunks_exact(elem) {
                    for field in fields {
                        let n: usize = field.dims.iter().map(|&dim| dim as usize).product();
                        let bytes = n * size(model, field.nc_type);
                        let items = &element[field.offset..field.offset + bytes];
                        canonical(model, field.nc_type, kept, items, out);
                    }
                }
            }
            UserClass::String | UserClass::Unknown => out.extend(memory),
        },
    }
}

/// The elements of a hyperslab in memory, and how many values did not fit.
pub(crate) fn got(
    file: &Nc4File,
    get: &Access<'_>,
    kept: &mut Kept,
) -> Result<(Vec<u8>, u64), zonda_format::Error> {
    let mut get = Transfer::new(*get);
    file.check_get(&mut get)?;
    let mut memory = vec![0; get.n_bytes];
    let converted = file.get(&get, Destination { bytes: &mut memory, place: Some(kept) })?;
    Ok((memory, converted.out_of_range))
}

/// The values of an attribute in memory, and how many did not fit.
pub(crate) fn got_att(
    file: &Nc4File,
    att: &AttAccess<'_>,
    kept: &mut Kept,
) -> Result<(Vec<u8>, u64), zonda_format::Error> {
    let mut get = Transfer::new(*att);
    file.check_get_att(&mut get)?;
    let mut memory = vec![0; get.n_bytes];
    let converted = file.get_att(&get, Destination { bytes: &mut memory, place: Some(kept) })?;
    Ok((memory, converted.out_of_range))
}

/// The canonical bytes of a hyperslab.
pub(crate) fn read(
    file: &Nc4File,
    group: GroupId,
    var: i32,
    start: &[usize],
    count: &[usize],
) -> Result<Vec<u8>, zonda_format::Error> {
    let model = file.model()?;
    let nc_type = model.groups[usize::from(group.0)].vars[var as usize].nc_type;
    let mut kept = Kept::default();
    let slab = Hyperslab { start, count, stride: None };
    let get = Access { var: VarRef { group, var: VarId(var) }, slab, mem: None };
    let (memory, _) = got(file, &get, &mut kept)?;
    let mut bytes = Vec::new();
    canonical(model, nc_type, &kept, &memory, &mut bytes);
    Ok(bytes)
}

/// The canonical bytes of an attribute.
pub(crate) fn read_att(
    file: &Nc4File,
    owner: VarRef,
    name: &[u8],
    nc_type: i32,
) -> Result<Vec<u8>, zonda_format::Error> {
    let mut kept = Kept::default();
    let (memory, _) = got_att(file, &AttAccess { owner, name, mem: None }, &mut kept)?;
    let mut bytes = Vec::new();
    canonical(file.model()?, nc_type, &kept, &memory, &mut bytes);
    Ok(bytes)
}

/// Asks for everything of a file that may be damaged: answers or errors, no panic.
pub(crate) fn touch(file: &Nc4File) {
    let Ok(model) = file.model() else {
        return;
    };
    for (group, id) in model.groups.iter().zip(0u16..) {
        let group_id = GroupId(id);
        touch_atts(file, VarRef { group: group_id, var: VarId::GLOBAL });
        for (var, index) in group.vars.iter().zip(0i32..) {
            touch_atts(file, VarRef { group: group_id, var: VarId(index) });
            let _ = file.var_info(group_id, VarId(index));
            let count: Vec<_> = var
                .dims
                .iter()
                .map(|&id| model.dim(id).map_or(1, |dim| dim.len as usize))
                .collect();
            if count
                .iter()
                .try_fold(1usize, |n, &dim| n.checked_mul(dim))
                .is_some_and(|n| n < 1 << 24)
            {
                let _ = read(file, group_id, index, &vec![0; count.len()], &count);
            }
        }
    }
}

fn touch_atts(file: &Nc4File, owner: VarRef) {
    for i in 0..file.n_atts(owner).unwrap_or(0) {
        if let Ok(info) = file.att(owner, i) {
            let _ = read_att(file, owner, &info.name, info.nc_type);
        }
    }
}

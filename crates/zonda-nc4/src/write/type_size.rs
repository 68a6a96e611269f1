//! How many bytes the message of a type takes in the file, found out when the type is defined.
//!
//! HDF5 writes a type, with all types that it is made of, into one message of an object header, which has at most
//! 64 KiB. A type that does not fit could never be committed, nor could anything that was defined with it. So it is
//! refused when it is defined.

use std::collections::HashMap;

use zonda_hdf5::message::{Class, Datatype};
use zonda_hdf5::{HdfError, Sizes, Writer};
use zonda_model::{DimId, ExtType, MAX_NAME_BYTES, NcError};

use super::datatypes::DEEPEST;
use crate::element_form::NC_STRING;
use crate::fault::{Coded, Fault, Outcome, refuse_if};
use crate::files::{Files, ObjectAt};
use crate::model::{GroupId, Model, UserClass};

/// Most bytes of a message: its length has 16 bits, and libhdf5 wants them for its head, too.
pub(crate) const MOST_MESSAGE_BYTES: usize = 65_520;

/// How large a type is in a message, and its elements in memory and in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TypeSize {
    bytes: usize,
    /// Levels of types in types, with itself. An array is a level, too.
    levels: usize,
    /// Bytes of an element, in memory and in the file, where strings are longer.
    memory: u64,
    stored: u64,
}

/// Refuses a definition that made a type, or one of those that have it, impossible to write.
///
/// # Errors
/// `NC_EHDFERR`, with what there is too much of.
pub(crate) fn check_types(model: &Model, changed: i32) -> Outcome<()> {
    let mut known = HashMap::new();
    for nc_type in changed.. {
        if model.user_type(nc_type).is_none() {
            return Ok(());
        }
        check(measure(model, nc_type, &mut known)?)?;
    }
    Ok(())
}

/// Refuses a type of items that cannot be written, or that would be too deep in another one; and for a
/// type in `group` one of a group that comes after it, which is not in the file when it is needed.
///
/// # Errors
/// As [`check_types`].
pub(crate) fn check_items(model: &Model, nc_type: i32, group: GroupId) -> Outcome<()> {
    let home = model.user_type(nc_type).map_or(GroupId::ROOT, |ty| ty.group);
    refuse_if(!comes_before(model, home, group), NcError::HdfErr)?;
    let items = measure(model, nc_type, &mut HashMap::new())?;
    let (bytes, levels) = (items.bytes.saturating_add(HEAD), items.levels.saturating_add(1));
    check(TypeSize { bytes, levels, ..items })
}

/// Refuses a fill value that no message has room for.
///
/// # Errors
/// As [`check_types`].
pub(crate) fn check_fill(bytes: usize) -> Outcome<()> {
    if bytes > MOST_MESSAGE_BYTES {
        return Err(too_large("bytes of a fill value (at most 65520)", bytes));
    }
    Ok(())
}

/// Refuses an attribute that has to fit into one message and does not. Its name counts as the longest, since it
/// may get another one.
///
/// # Errors
/// As [`check_types`].
pub(crate) fn check_attribute(model: &Model, nc_type: i32, n_values: usize) -> Outcome<()> {
    let ty = measure(model, nc_type, &mut HashMap::new())?;
    let value = usize::try_from(ty.stored).unwrap_or(usize::MAX).saturating_mul(n_values);
    let bytes = value.saturating_add(ty.bytes).saturating_add(ATTRIBUTE_HEAD);
    if bytes > MOST_MESSAGE_BYTES {
        return Err(too_large(
            "bytes of an attribute in a header of version 1 (at most 65520)",
            bytes,
        ));
    }
    Ok(())
}

/// Refuses a variable of a dimension whose scale has no room for a further user: a scale with a header of version 1
/// has all its users in one message. Only files with an old superblock have such headers; others are not searched.
///
/// # Errors
/// As [`check_types`].
pub(crate) fn check_users(files: &Files, model: &Model, dims: &[DimId]) -> Outcome<()> {
    let file = files.main();
    if file.superblock().version >= 2 {
        return Ok(());
    }
    for dim in dims {
        let all = model.groups.iter().flat_map(|group| &group.vars);
        let axes = all.flat_map(|var| &var.dims).chain(dims);
        let n_users = axes.filter(|other| *other == dim).count();
        let at = model.dim(*dim).and_then(|dim| dim.at).filter(|at| *at != ObjectAt::NOWHERE);
        if let Some(at) = at.filter(|at| n_users > MOST_USERS && at.file == 0)
            && file.object(at.addr)?.header().version == 1
        {
            return Err(too_large(
                "axes that have a dimension whose header has version 1 (at most 4079)",
                n_users,
            ));
        }
    }
    Ok(())
}

/// Whether the types of a group come before those of another one, or are the same: a group before the
/// groups in it, each in the order in which they were made.
fn comes_before(model: &Model, first: GroupId, second: GroupId) -> bool {
    let mut todo = vec![GroupId::ROOT];
    while let Some(group) = todo.pop() {
        if group == first || group == second {
            return group == first;
        }
        todo.extend(model.group(group).into_iter().flat_map(|group| group.children.iter().rev()));
    }
    false
}

fn check(measure: TypeSize) -> Outcome<()> {
    if measure.levels > DEEPEST {
        return Err(too_large("levels of types in types (at most 255)", measure.levels));
    }
    if measure.bytes > MOST_MESSAGE_BYTES {
        return Err(too_large("bytes of a datatype message (at most 65520)", measure.bytes));
    }
    if u32::try_from(measure.stored).is_err() {
        let bytes = usize::try_from(measure.stored).unwrap_or(usize::MAX);
        return Err(too_large("bytes of an element in the file (at most 4294967295)", bytes));
    }
    Ok(())
}

fn too_large(structure: &'static str, value: usize) -> Fault {
    Fault::Hdf(HdfError::TooLarge { structure, value: value as u64 })
}

/// Bytes that each type begins with.
const HEAD: usize = 8;
/// Bytes of an attribute's message besides its type and its value: a head of 8, a name, an extent of one
/// dimension, each and the type up to a multiple of 8.
const ATTRIBUTE_HEAD: usize = 8 + (MAX_NAME_BYTES + 8) + 24 + 8;
/// Users of a scale that fit into a message, 16 bytes each.
const MOST_USERS: usize = (MOST_MESSAGE_BYTES - 256) / 16;
/// Bytes of the type of an integer.
const INTEGER: usize = 12;

/// Computes the size of a type. It ends because types are made of earlier ones, each of which is computed once.
fn measure(model: &Model, nc_type: i32, known: &mut HashMap<i32, TypeSize>) -> Coded<TypeSize> {
    if let Some(ext) = ExtType::from_nc_type(nc_type) {
        let bytes = match ext {
            ExtType::Char => HEAD,
            ExtType::Float | ExtType::Double => HEAD.saturating_add(INTEGER),
            _ => INTEGER,
        };
        let size = ext.size() as u64;
        return Ok(TypeSize { bytes, levels: 1, memory: size, stored: size });
    }
    if nc_type == NC_STRING {
        let bytes = HEAD.saturating_add(INTEGER);
        return Ok(TypeSize { bytes, levels: 2, memory: 8, stored: 16 });
    }
    if let Some(measure) = known.get(&nc_type) {
        return Ok(*measure);
    }
    let ty = model.user_type(nc_type).ok_or(NcError::BadType)?;
    let size = ty.size as u64;
    let plain = TypeSize { bytes: HEAD, levels: 1, memory: size, stored: size };
    let measured = match (&ty.class, ty.stored()) {
        (_, Some(stored)) => TypeSize { memory: size, ..of_datatype(stored)? },
        (UserClass::Compound(fields), _) => {
            let mut all = plain;
            for field in fields {
                let mut inner = measure(model, field.nc_type, known)?;
                if !field.dims.is_empty() {
                    let dims = field.dims.len().saturating_mul(4).saturating_add(HEAD);
                    inner.bytes = inner.bytes.saturating_add(dims).saturating_add(1);
                    inner.levels = inner.levels.saturating_add(1);
                }
                let more = inner.stored.saturating_sub(inner.memory);
                let n = field.dims.iter().map(|&dim| u64::try_from(dim).unwrap_or(0));
                all.stored = all.stored.saturating_add(n.fold(more, u64::saturating_mul));
                // Its name with a NUL, and its place in up to four bytes.
                let bytes = field.name.len().saturating_add(5).saturating_add(inner.bytes);
                all.bytes = all.bytes.saturating_add(bytes);
                all.levels = all.levels.max(inner.levels.saturating_add(1));
            }
            all
        }
        (UserClass::Enum { members, .. }, _) => {
            let member = |(name, value): &(Box<[u8]>, Box<[u8]>)| {
                name.len().saturating_add(1).saturating_add(value.len())
            };
            let bytes = members.iter().map(member).fold(HEAD, usize::saturating_add);
            TypeSize { bytes: bytes.saturating_add(INTEGER), levels: 2, ..plain }
        }
        (UserClass::Vlen { base }, _) => {
            let base = measure(model, *base, known)?;
            let (bytes, levels) = (base.bytes.saturating_add(HEAD), base.levels.saturating_add(1));
            TypeSize { bytes, levels, ..plain }
        }
        _ => plain,
    };
    known.insert(nc_type, measured);
    Ok(measured)
}

/// Computes the size of a type that is settled.
fn of_datatype(datatype: &Datatype) -> Coded<TypeSize> {
    let mut writer = Writer::new("datatype message", Sizes { offset: 8, length: 8 });
    datatype.encode(&mut writer).map_err(|_| NcError::HdfErr)?;
    let size = u64::from(datatype.size);
    let bytes = writer.finish().len();
    Ok(TypeSize { bytes, levels: levels(datatype), memory: size, stored: size })
}

fn levels(datatype: &Datatype) -> usize {
    let inner = match &datatype.class {
        Class::Compound(compound) => {
            let members = compound.members.iter().map(|member| levels(&member.datatype));
            members.max().unwrap_or(0)
        }
        Class::VarLenString { .. } => 1,
        Class::Enum { base, .. }
        | Class::Array { base, .. }
        | Class::VarLenSequence { base }
        | Class::Complex { base } => levels(base),
        _ => 0,
    };
    inner.saturating_add(1)
}

#[cfg(test)]
mod tests;

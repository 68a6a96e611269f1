//! How messages name what definitions and puts are about: as programs do, and not by numbers.

use std::borrow::Cow;

use zonda_format::{Definitions, GroupId, VarRef};
use zonda_model::{DimId, VarId};

/// The atomic types, as C names them, in the order of their numbers.
const TYPES: [&str; 12] = [
    "NC_BYTE",
    "NC_CHAR",
    "NC_SHORT",
    "NC_INT",
    "NC_FLOAT",
    "NC_DOUBLE",
    "NC_UBYTE",
    "NC_USHORT",
    "NC_UINT",
    "NC_INT64",
    "NC_UINT64",
    "NC_STRING",
];

/// A name.
pub(crate) fn shown(name: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(name)
}

/// The path of a variable or group; `NC_GLOBAL` for the root group.
pub(crate) fn object(definitions: &dyn Definitions, of: VarRef) -> String {
    match of.var {
        VarId::GLOBAL if of.group == GroupId::ROOT => String::from("NC_GLOBAL"),
        VarId::GLOBAL => group(definitions, of.group),
        VarId(number) => match definitions.var(of) {
            Ok(var) => within(definitions, of.group, var.name),
            Err(_) => format!("variable {number}"),
        },
    }
}

/// The path of what has a name in a group.
pub(crate) fn within(definitions: &dyn Definitions, of: GroupId, name: &[u8]) -> String {
    format!("{}/{}", group(definitions, of), shown(name))
}

/// The path of a group; of the root nothing.
fn group(definitions: &dyn Definitions, of: GroupId) -> String {
    let (mut path, mut at) = (String::new(), definitions.group(of).ok());
    // A parent has a lower number, so the loop ends.
    while let Some((group, parent)) = at.and_then(|group| Some((group, group.parent?))) {
        path = format!("/{}{path}", shown(group.name));
        at = definitions.group(parent).ok();
    }
    path
}

/// A type: as C names it, or its own name.
pub(crate) fn nc_type(definitions: &dyn Definitions, number: i32) -> Cow<'_, str> {
    let atomic = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    match atomic.and_then(|at| TYPES.get(at)) {
        Some(name) => Cow::Borrowed(name),
        None => match definitions.user_type(number) {
            Ok(known) => shown(&known.name),
            Err(_) => format!("type {number}").into(),
        },
    }
}

/// The dimensions of a variable that is to be defined.
pub(crate) fn dims(definitions: &dyn Definitions, ids: &[i32]) -> String {
    let name = |&id: &i32| match definitions.dim(DimId(id)) {
        Ok(dim) => shown(dim.name),
        Err(_) => format!("dimension {id}").into(),
    };
    match ids {
        [] => String::from("no dimensions"),
        ids => format!("dimensions {}", ids.iter().map(name).collect::<Vec<_>>().join(" ")),
    }
}

/// A length of a dimension that is to be defined.
pub(crate) fn len(len: usize) -> String {
    if len == 0 { String::from("NC_UNLIMITED") } else { len.to_string() }
}

/// Numbers that a name may not tell apart, as bytes.
pub(crate) fn numbers(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

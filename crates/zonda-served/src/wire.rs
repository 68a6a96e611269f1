//! How types of other crates travel: `serde` is told their fields here, so that those crates need not know it.

use serde::{Deserialize, Serialize};
use zonda_format::{Endianness, FillMode, FilterSpec, GroupId, Reserve, StorageRequest, VarRef};
use zonda_model::{DimId, VarId};

#[derive(Serialize, Deserialize)]
#[serde(remote = "GroupId")]
pub(crate) struct Group(u16);

#[derive(Serialize, Deserialize)]
#[serde(remote = "DimId")]
pub(crate) struct Dim(i32);

#[derive(Serialize, Deserialize)]
#[serde(remote = "VarId")]
struct Var(i32);

#[derive(Serialize, Deserialize)]
#[serde(remote = "VarRef")]
pub(crate) struct OneVar {
    #[serde(with = "Group")]
    group: GroupId,
    #[serde(with = "Var")]
    var: VarId,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FillMode")]
pub(crate) enum Filling {
    Fill,
    NoFill,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Reserve")]
pub(crate) enum Room {
    Default,
    Explicit { h_minfree: u64, v_align: u64, v_minfree: u64, r_align: u64 },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "StorageRequest")]
pub(crate) enum Layout {
    Contiguous,
    Compact,
    Chunked,
    Unknown,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Endianness")]
pub(crate) enum Order {
    Native,
    Little,
    Big,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FilterSpec")]
pub(crate) struct Filter {
    id: u32,
    optional: bool,
    name: String,
    params: Vec<u32>,
}

/// A type in memory: its place in [`MemType::ALL`](zonda_model::MemType::ALL), counted from 1; 0 where there is none.
pub(crate) mod mem {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use zonda_model::MemType;

    #[expect(clippy::ref_option, reason = "serde wants it so")]
    pub(crate) fn serialize<S: Serializer>(
        mem: &Option<MemType>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let place = mem.and_then(|mem| MemType::ALL.iter().position(|other| *other == mem));
        to.serialize_u8(place.and_then(|place| u8::try_from(place + 1).ok()).unwrap_or(0))
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(
        from: D,
    ) -> Result<Option<MemType>, D::Error> {
        let Some(place) = usize::from(u8::deserialize(from)?).checked_sub(1) else {
            return Ok(None);
        };
        let known = MemType::ALL.get(place).copied();
        known.map(Some).ok_or_else(|| de::Error::custom("no type of memory"))
    }
}

/// A group and a number.
pub(crate) mod numbered {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use zonda_format::GroupId;

    pub(crate) fn serialize<S: Serializer>(of: &(GroupId, i32), to: S) -> Result<S::Ok, S::Error> {
        (of.0.0, of.1).serialize(to)
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(
        from: D,
    ) -> Result<(GroupId, i32), D::Error> {
        let (group, number) = <(u16, i32)>::deserialize(from)?;
        Ok((GroupId(group), number))
    }
}

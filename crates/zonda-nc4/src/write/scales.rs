//! Dimension scales: which object stands for a dimension, and how scales and variables refer to each other.
//!
//! A dimension is a dataset: the variable of its name that begins with it, in its group, or else a
//! placeholder. Variables refer to the scales of their dimensions (`DIMENSION_LIST`), scales to the
//! variables that have them (`REFERENCE_LIST`). Both follow from the model; a commit compares what
//! the file has with what it should have.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use zonda_hdf5::Attribute;
use zonda_hdf5::FileAddr;
use zonda_hdf5::message::{Charset, Class, Compound, Dataspace, Datatype, Member};
use zonda_model::{DimId, ExtType, VarId};

use super::ObjectKey;
use super::datatypes::{self, array_space, reference, scalar_space};
use crate::hidden_atts;
use crate::model::{Dim, Endianness, GroupId, Model, Var};

/// A variable that has a dimension, and along which axis.
pub(super) type User = (ObjectKey, u32);

/// Which objects are scales, and who has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scales {
    /// The scale of each dimension that has one.
    pub(super) of_dim: BTreeMap<DimId, ObjectKey>,
    /// The dimension of each scale.
    pub(super) dim_of: HashMap<ObjectKey, DimId>,
    /// The variables that refer to each scale, in order.
    pub(super) users: HashMap<ObjectKey, Vec<User>>,
    /// The scales that each variable refers to, one for each axis.
    pub(super) lists: HashMap<ObjectKey, Vec<ObjectKey>>,
}

/// Dimensions and variables of a file that was opened which take no part in dimension scales.
#[derive(Clone, Debug, Default)]
pub(crate) struct Apart {
    /// Dimensions without a scale.
    pub(super) dims: HashSet<DimId>,
    /// Variables that do not refer to all scales of their dimensions.
    pub(super) vars: HashSet<ObjectKey>,
    /// Variables that refer to no scales, though their dimensions have some, and stay so.
    pub(super) unattached: HashSet<ObjectKey>,
    /// Scales whose own `DIMENSION_LIST` names them.
    pub(super) selves: HashSet<ObjectKey>,
    /// Number of types that the file had when it was opened; not all of them need have names.
    pub(super) n_types: usize,
}

impl Scales {
    /// The scales that the file should have. `attach` is whether variables and scales refer to each other.
    pub(super) fn of(model: &Model, attach: bool, apart: &Apart) -> Scales {
        let mut scales = Scales::default();
        for (index, dim) in model.dims.iter().enumerate() {
            let id = DimId(i32::try_from(index).unwrap_or(-1));
            if let Some(dim) = dim.as_ref().filter(|_| !apart.dims.contains(&id)) {
                let key = coordinate_of(model, id, dim)
                    .map_or(ObjectKey::Scale(id), |var| ObjectKey::Var(dim.group, var));
                scales.of_dim.insert(id, key);
                scales.dim_of.insert(key, id);
            }
        }
        if attach {
            scales.attach(model, apart);
        }
        scales
    }

    fn attach(&mut self, model: &Model, apart: &Apart) {
        for (group, list) in (0..=u16::MAX).map(GroupId).zip(&model.groups) {
            for (id, var) in (0..).map(VarId).zip(&list.vars) {
                let key = ObjectKey::Var(group, id);
                if var.dims.is_empty()
                    || (self.dim_of.contains_key(&key) && !apart.selves.contains(&key))
                    || apart.vars.contains(&key)
                    || apart.unattached.contains(&key)
                {
                    continue;
                }
                let of_dim = |dim: &DimId| self.of_dim.get(dim).copied();
                let Some(scales) = var.dims.iter().map(of_dim).collect::<Option<Vec<_>>>() else {
                    continue;
                };
                for (axis, scale) in (0..).zip(&scales) {
                    self.users.entry(*scale).or_default().push((key, axis));
                }
                self.lists.insert(key, scales);
            }
        }
    }

    /// The objects for which these scales differ from those before.
    pub(super) fn changed_since(&self, before: &Scales) -> Vec<ObjectKey> {
        let mut out = Vec::new();
        differing(&self.dim_of, &before.dim_of, &mut out);
        differing(&self.users, &before.users, &mut out);
        differing(&self.lists, &before.lists, &mut out);
        out
    }
}

/// Keys whose values differ between two maps.
fn differing<V: PartialEq>(
    now: &HashMap<ObjectKey, V>,
    before: &HashMap<ObjectKey, V>,
    out: &mut Vec<ObjectKey>,
) {
    out.extend(now.iter().filter(|(key, value)| before.get(*key) != Some(value)).map(|(k, _)| k));
    out.extend(before.keys().filter(|key| !now.contains_key(*key)));
}

/// The variable that is the scale of a dimension.
fn coordinate_of(model: &Model, id: DimId, dim: &Dim) -> Option<VarId> {
    let var = model.group(dim.group)?.find_var(&dim.name)?;
    (model.var(dim.group, var)?.dims.first() == Some(&id)).then_some(var)
}

/// Bytes of the placeholder's name with its NUL.
const NAME_BYTES: u32 = 64;

/// Bytes of a sequence in the file: its length, and the place of its items.
pub(super) const PLACE_BYTES: u32 = 16;

/// `CLASS` of a scale.
pub(super) fn class() -> Attribute {
    text(hidden_atts::CLASS, hidden_atts::SCALE.to_vec())
}

/// `NAME` of the scale of a dimension that is no variable.
pub(super) fn placeholder_name(len: u64) -> Attribute {
    let said = String::from_utf8_lossy(hidden_atts::ONLY_DIMENSION);
    let mut name = format!("{said}{len:10}").into_bytes();
    name.resize(usize::try_from(NAME_BYTES).unwrap_or(0), 0);
    text(hidden_atts::NAME, name)
}

/// `NAME` of a scale that is a variable.
pub(super) fn coordinate_name(var: &Var) -> Attribute {
    let mut name = var.name.to_vec();
    name.push(0);
    text(hidden_atts::NAME, name)
}

/// `_Netcdf4Dimid`.
pub(super) fn dim_id(id: DimId) -> Attribute {
    attribute(hidden_atts::DIM_ID, int(), scalar_space(), id.0.to_ne_bytes().to_vec())
}

/// `_Netcdf4Coordinates`.
pub(super) fn coordinates(dims: &[DimId]) -> Attribute {
    let data = dims.iter().flat_map(|dim| dim.0.to_ne_bytes()).collect();
    attribute(hidden_atts::COORDINATES, int(), array_space(vec![dims.len() as u64]), data)
}

/// `DIMENSION_LIST`: for each axis the place in the global heap of its one reference, as the file
/// has such places.
pub(super) fn dimension_list(places: Vec<u8>, rank: usize) -> Attribute {
    let base = Box::new(reference());
    let datatype = Datatype { size: PLACE_BYTES, class: Class::VarLenSequence { base } };
    attribute(hidden_atts::DIMENSION_LIST, datatype, array_space(vec![rank as u64]), places)
}

/// `REFERENCE_LIST`: the variables that have the dimension, and along which axes.
pub(super) fn reference_list(users: &[(FileAddr, u32)]) -> Attribute {
    let mut data = Vec::with_capacity(users.len().saturating_mul(16));
    for (var, axis) in users {
        data.extend(var.0.to_le_bytes());
        data.extend(axis.to_ne_bytes());
        data.extend([0; 4]);
    }
    let member = |name: &[u8], offset, datatype| Member { name: name.into(), offset, datatype };
    let members = vec![member(b"dataset", 0, reference()), member(b"dimension", 8, int())];
    let datatype = Datatype { size: 16, class: Class::Compound(Compound { members }) };
    attribute(hidden_atts::REFERENCE_LIST, datatype, array_space(vec![users.len() as u64]), data)
}

/// A text attribute in one piece.
pub(super) fn text(name: &[u8], value: Vec<u8>) -> Attribute {
    let size = u32::try_from(value.len()).unwrap_or(u32::MAX);
    attribute(name, datatypes::text(size), scalar_space(), value)
}

/// `_nc3_strict`.
pub(super) fn strict() -> Attribute {
    attribute(hidden_atts::STRICT, int(), scalar_space(), 1i32.to_ne_bytes().to_vec())
}

fn attribute(name: &[u8], datatype: Datatype, dataspace: Dataspace, data: Vec<u8>) -> Attribute {
    Attribute {
        name: name.into(),
        charset: Charset::Ascii,
        creation_order: None,
        datatype,
        committed: None,
        dataspace,
        data,
    }
}

/// An `int` of this machine.
fn int() -> Datatype {
    datatypes::atomic(ExtType::Int, Endianness::Native)
}

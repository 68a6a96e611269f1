//! The variable that is drawn, its dimensions, and the variables that say where along them an element is.

use zonda::{Dataset, DimId, ExtType, GroupId, Hyperslab, Meta, VarRef, memory};
use zonda_cf::values::Decoder;

use super::decode::{decoder, text};
use crate::cdl::types::outward;
use crate::failure::{CommandFailure, Result};
use crate::similar::similar_variable;

/// A variable with numbers.
#[derive(Debug)]
pub(super) struct Variable {
    /// As it was asked for: a path.
    pub(super) name: String,
    pub(super) id: VarRef,
    pub(super) ty: ExtType,
    pub(super) dims: Vec<Dimension>,
    /// What its attribute `coordinates` names, of numbers.
    pub(super) auxiliary: Vec<Auxiliary>,
}

/// A dimension of the variable.
#[derive(Debug)]
pub(super) struct Dimension {
    id: DimId,
    pub(super) name: String,
    pub(super) len: usize,
    /// Its coordinate variable, or else a variable of this dimension alone that `coordinates` names.
    pub(super) coordinate: Option<Auxiliary>,
}

/// A variable that says where elements of others are.
#[derive(Clone, Debug)]
pub(super) struct Auxiliary {
    pub(super) name: String,
    pub(super) id: VarRef,
    pub(super) ty: ExtType,
    /// Which dimensions of the variable it has, by number.
    pub(super) dims: Vec<usize>,
}

impl Variable {
    /// The variable of a name, which may be a path.
    ///
    /// # Errors
    /// There is none, or it has no numbers.
    pub(super) fn find(file: &Dataset, name: &str) -> Result<Variable> {
        let missing =
            |hint: String| CommandFailure::InFile(format!("{name}: no such variable{hint}"));
        let (group, own) = group_of(file, name)?.ok_or_else(|| missing(String::new()))?;
        let mut variable = file.in_group(group, |meta| {
            let id =
                meta.find_var(own.as_bytes()).map_err(|_| missing(similar_variable(meta, own)))?;
            let var = meta.var(id)?;
            if let Some(error) = meta.var_fault(id) {
                return Err(error.into());
            }
            let no_number =
                || CommandFailure::InFile(format!("{name}: no numbers, which a picture needs"));
            let ty = var.ty().ok_or_else(no_number)?;
            if ty == ExtType::Char {
                return Err(CommandFailure::InFile(format!("{name}: text, which has no picture")));
            }
            let mut shape = vec![0; var.dims.len()];
            meta.var_shape(id, &mut shape)?;
            let mut dims = Vec::with_capacity(shape.len());
            for (&id, len) in var.dims.iter().zip(shape) {
                let name = String::from_utf8_lossy(meta.dim(id)?.name).into_owned();
                dims.push(Dimension { id, name, len, coordinate: None });
            }
            let (id, name) = (VarRef { group, var: id }, name.to_owned());
            Ok(Variable { name, id, ty, dims, auxiliary: Vec::new() })
        })??;
        let listed = text(file, variable.id, "coordinates").unwrap_or_default();
        let mut auxiliary = Vec::new();
        for name in listed.split_whitespace() {
            auxiliary.extend(variable.beside(file, name)?);
        }
        for number in 0..variable.dims.len() {
            let own = variable.beside(file, &variable.dims[number].name)?;
            let is_alone = |found: &&Auxiliary| found.dims == [number];
            let other = || auxiliary.iter().find(is_alone).cloned();
            variable.dims[number].coordinate = own.filter(|own| is_alone(&own)).or_else(other);
        }
        variable.auxiliary = auxiliary;
        Ok(variable)
    }

    /// A variable of numbers that has only dimensions of this one. It is looked for in this one's group and those around it.
    pub(super) fn beside(&self, file: &Dataset, name: &str) -> Result<Option<Auxiliary>> {
        let (group, own) = match name.contains('/') {
            true => match group_of(file, name)? {
                Some(found) => found,
                None => return Ok(None),
            },
            false => (self.id.group, name),
        };
        let found = file.in_group(group, |meta| {
            outward(meta).find_map(|meta| {
                let id = meta.find_var(own.as_bytes()).ok()?;
                self.auxiliary_of(&meta, id, name)
            })
        })?;
        Ok(found)
    }

    /// All variables of the group that have only dimensions of this one.
    pub(super) fn all_beside(&self, file: &Dataset) -> Result<Vec<Auxiliary>> {
        Ok(file.in_group(self.id.group, |meta| {
            let ids = (0..meta.n_vars()).map_while(|number| i32::try_from(number).ok());
            let each = ids.filter_map(|id| {
                let id = zonda::VarId(id);
                let name = String::from_utf8_lossy(meta.var(id).ok()?.name).into_owned();
                self.auxiliary_of(meta, id, &name)
            });
            each.collect()
        })?)
    }

    fn auxiliary_of(&self, meta: &Meta<'_>, id: zonda::VarId, name: &str) -> Option<Auxiliary> {
        let var = meta.var(id).ok()?;
        let ty = var.ty().filter(|ty| *ty != ExtType::Char)?;
        let number = |dim: &DimId| self.dims.iter().position(|own| own.id == *dim);
        let dims = var.dims.iter().map(number).collect::<Option<Vec<_>>>()?;
        let id = VarRef { group: meta.group_id(), var: id };
        (id != self.id || dims.len() == 1).then(|| Auxiliary {
            name: name.to_owned(),
            id,
            ty,
            dims,
        })
    }

    /// What is wrong about this variable.
    pub(super) fn problem(&self, reason: impl std::fmt::Display) -> CommandFailure {
        CommandFailure::InFile(format!("{}: {reason}", self.name))
    }
}

impl Auxiliary {
    /// The variable that its attribute `bounds` names: numbers with the same dimensions and a last one of `n`.
    pub(super) fn bounds(&self, file: &Dataset, n: usize) -> Result<Option<(VarRef, ExtType)>> {
        let Some(name) = text(file, self.id, "bounds") else { return Ok(None) };
        let found = file.in_group(self.id.group, |meta| {
            let own = meta.var(self.id.var).ok()?.dims.to_vec();
            outward(meta).find_map(|meta| {
                let id = meta.find_var(name.as_bytes()).ok()?;
                let var = meta.var(id).ok()?;
                let ty = var.ty().filter(|ty| *ty != ExtType::Char)?;
                let (corners, dims) = var.dims.split_last()?;
                let is_right = dims == own && meta.dim(*corners).ok()?.len == n as u64;
                is_right.then_some((VarRef { group: meta.group_id(), var: id }, ty))
            })
        })?;
        Ok(found)
    }

    /// Reads `len` values of a variable of one dimension.
    pub(super) fn read_from(&self, file: &Dataset, start: usize, len: usize) -> Result<Vec<f64>> {
        let slab = Hyperslab { start: &[start], count: &[len], stride: None };
        read(file, self.id, &slab, &decoder(file, self.id, self.ty)?)
    }

    /// Reads every `step`th value of a variable of one dimension, `len` of them.
    pub(super) fn read(&self, file: &Dataset, len: usize, step: usize) -> Result<Vec<f64>> {
        let stride = [isize::try_from(step).unwrap_or(isize::MAX)];
        let slab = Hyperslab { start: &[0], count: &[len], stride: Some(&stride) };
        read(file, self.id, &slab, &decoder(file, self.id, self.ty)?)
    }
}

/// Reads the values of a hyperslab.
pub(super) fn read(
    file: &Dataset,
    id: VarRef,
    slab: &Hyperslab<'_>,
    decoder: &Decoder,
) -> Result<Vec<f64>> {
    let mut bytes = Vec::new();
    // No value is out of range, because none is converted to another type.
    let _ = file.get_list(id, slab, None, (&mut bytes, None))?;
    let mut values = memory::room(bytes.len() / decoder.elem_bytes())?;
    values.extend(decoder.values(&bytes));
    Ok(values)
}

/// Splits a path into the group and the name of the variable.
fn group_of<'n>(file: &Dataset, path: &'n str) -> Result<Option<(GroupId, &'n str)>> {
    let (groups, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut group = GroupId::ROOT;
    for part in groups.split('/').filter(|part| !part.is_empty()) {
        match file.in_group(group, |meta| meta.find_group(part.as_bytes()))? {
            Ok(found) => group = found,
            Err(_) => return Ok(None),
        }
    }
    Ok(Some((group, name)))
}

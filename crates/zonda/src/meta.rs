//! A look at the definitions of a dataset, without copying them.

use std::borrow::Cow;

use zonda_classic::{AttRef, Header, Layout};
use zonda_model::{DimId, ExtType, NcError, VarId, shown_name, sought_name};
use zonda_nc4::{Group, GroupId, Model, Nc4Error, Nc4File, UserType};

use crate::error::{Error, Result};
use crate::format::Format;
use crate::refs::VarRef;

/// `NC_STRING`: a piece of memory of its own for each element.
pub const NC_STRING: i32 = 12;
/// Numbers of types from here on belong to user-defined ones.
pub const FIRST_USER_TYPE: i32 = 32;

/// The definitions of one group of a dataset, as they stand while
/// [`Dataset::in_group`](crate::Dataset::in_group) runs. A classic dataset is one root group.
#[derive(Debug)]
pub struct Meta<'a> {
    pub(crate) of: Of<'a>,
}

#[derive(Debug)]
pub(crate) enum Of<'a> {
    Classic { header: &'a Header, n_records: u64 },
    Nc4 { file: &'a Nc4File, group: GroupId },
}

/// A dimension.
#[derive(Clone, Copy, Debug)]
pub struct DimView<'a> {
    /// Name, UTF-8 unless the file is odd.
    pub name: &'a [u8],
    /// Length; of an unlimited one as it is now.
    pub len: u64,
    /// Whether it can grow.
    pub is_unlimited: bool,
}

/// A variable.
#[derive(Clone, Copy, Debug)]
pub struct VarView<'a> {
    /// Name, UTF-8 unless the file is odd.
    pub name: &'a [u8],
    /// Number of its type: 1 to 12, or a user-defined one from [`FIRST_USER_TYPE`] on.
    pub nc_type: i32,
    /// Dimensions, slowest first.
    pub dims: &'a [DimId],
    /// What only classic files have.
    pub classic: Option<ClassicVar>,
}

impl VarView<'_> {
    /// The type, where it is a number or text; `None` for strings and user-defined types.
    #[must_use]
    pub fn ty(&self) -> Option<ExtType> {
        ExtType::from_nc_type(self.nc_type)
    }
}

/// A variable as it lies in a classic file.
#[derive(Clone, Copy, Debug)]
pub struct ClassicVar {
    /// Whether elements never written are left as they are.
    pub no_fill: bool,
    /// Byte offset of the first element.
    pub begin: u64,
    /// Bytes of the variable, or of its part of one record, without padding.
    pub slab_bytes: u64,
    /// Whether the first dimension is the unlimited one.
    pub is_record: bool,
}

/// An attribute.
#[derive(Clone, Debug)]
pub struct AttView<'a> {
    /// Name, UTF-8 unless the file is odd.
    pub name: Cow<'a, [u8]>,
    /// Number of its type.
    pub nc_type: i32,
    /// Number of values.
    pub len: u64,
    /// Of a classic file the values in external form, big-endian.
    pub bytes: Option<&'a [u8]>,
}

impl AttView<'_> {
    /// The type, where it is numbers or text; `None` for strings and user-defined types.
    #[must_use]
    pub fn ty(&self) -> Option<ExtType> {
        ExtType::from_nc_type(self.nc_type)
    }
}

impl<'a> From<AttRef<'a>> for AttView<'a> {
    fn from(AttRef { name, ty, len, bytes }: AttRef<'a>) -> AttView<'a> {
        AttView { name: Cow::Borrowed(name), nc_type: ty.nc_type(), len, bytes: Some(bytes) }
    }
}

impl From<zonda_nc4::AttInfo> for AttView<'_> {
    fn from(zonda_nc4::AttInfo { name, nc_type, len }: zonda_nc4::AttInfo) -> Self {
        AttView { name: Cow::Owned(name.into_vec()), nc_type, len, bytes: None }
    }
}

impl<'a> Meta<'a> {
    pub(crate) fn of_nc4(file: &'a Nc4File, group: GroupId) -> Meta<'a> {
        Meta { of: Of::Nc4 { file, group } }
    }
}

/// The model of a netCDF-4 file and the group looked at.
/// Nothing has that name.
#[cold]
fn no_such(code: NcError, what: &str, name: &[u8]) -> Error {
    Error::told(code, format!("no {what} {:?}", shown_name(name)))
}

/// No variable has that number.
#[cold]
pub(crate) fn no_var(id: VarId) -> Error {
    Error::told(NcError::NotVar, format!("no variable {}", id.0))
}

fn model_of(file: &Nc4File, group: GroupId) -> Result<(&Model, &Group)> {
    let model = file.model()?;
    let found = model.groups.get(usize::from(group.0));
    Ok((model, found.ok_or(Error::from(NcError::BadGrpId))?))
}

impl<'a> Meta<'a> {
    /// The model and the group of a netCDF-4 file.
    fn nc4(&self) -> Option<Result<(&'a Model, &'a Group)>> {
        match self.of {
            Of::Classic { .. } => None,
            Of::Nc4 { file, group } => Some(model_of(file, group)),
        }
    }

    /// The same where it can be had; a count of a damaged file is 0, and what asks for a thing by
    /// its number says why.
    fn nc4_or_none(&self) -> Option<(&'a Model, &'a Group)> {
        self.nc4()?.ok()
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> Format {
        match self.of {
            Of::Classic { header, .. } => Format::of(header.version),
            Of::Nc4 { file, .. } => match file.model() {
                Ok(model) if model.is_classic => Format::NetCdf4Classic,
                _ => Format::NetCdf4,
            },
        }
    }

    /// Number of dimensions of this group.
    #[must_use]
    pub fn n_dims(&self) -> usize {
        match self.of {
            Of::Classic { header, .. } => header.dims.len(),
            Of::Nc4 { .. } => self.nc4_or_none().map_or(0, |(_, group)| group.dims.len()),
        }
    }

    /// Ids of the dimensions of this group, ascending.
    pub fn dim_ids(&self) -> impl Iterator<Item = DimId> + use<'a> {
        let (n, own) = match self.of {
            Of::Classic { header, .. } => (header.dims.len(), &[][..]),
            Of::Nc4 { .. } => (0, self.nc4_or_none().map_or(&[][..], |(_, group)| &group.dims)),
        };
        (0..n).map_while(|id| i32::try_from(id).ok()).map(DimId).chain(own.iter().copied())
    }

    /// Number of variables of this group.
    #[must_use]
    pub fn n_vars(&self) -> usize {
        match self.of {
            Of::Classic { header, .. } => header.vars.len(),
            Of::Nc4 { .. } => self.nc4_or_none().map_or(0, |(_, group)| group.vars.len()),
        }
    }

    /// The first unlimited dimension of this group.
    #[must_use]
    pub fn unlimited(&self) -> Option<DimId> {
        match self.of {
            Of::Classic { header, .. } => header.record_dim(),
            Of::Nc4 { .. } => self.unlimited_dims().next(),
        }
    }

    /// The unlimited dimensions of this group, ascending.
    pub fn unlimited_dims(&self) -> impl Iterator<Item = DimId> + use<'a> {
        let (one, many) = match self.of {
            Of::Classic { header, .. } => (header.record_dim(), None),
            Of::Nc4 { .. } => (None, self.nc4_or_none()),
        };
        let many = many.into_iter().flat_map(|(model, group)| {
            let unlimited = move |id: &DimId| dim_of(model, *id).is_ok_and(|dim| dim.is_unlimited);
            group.dims.iter().copied().filter(unlimited)
        });
        one.into_iter().chain(many)
    }

    /// Number of records: the length of the first unlimited dimension.
    #[must_use]
    pub fn n_records(&self) -> u64 {
        match self.of {
            Of::Classic { n_records, .. } => n_records,
            Of::Nc4 { .. } => {
                self.unlimited().and_then(|id| self.dim(id).ok()).map_or(0, |dim| dim.len)
            }
        }
    }

    /// Where things lie in a classic file.
    #[must_use]
    pub fn layout(&self) -> Option<Layout> {
        match self.of {
            Of::Classic { header, .. } => Some(header.layout),
            Of::Nc4 { .. } => None,
        }
    }

    /// The dimension with that id, of whichever group.
    ///
    /// # Errors
    /// `NC_EBADDIM`.
    pub fn dim(&self, id: DimId) -> Result<DimView<'a>> {
        match self.of {
            Of::Classic { header, n_records } => {
                let dim = header.dim(id)?;
                let is_unlimited = dim.len == 0;
                let len = if is_unlimited { n_records } else { dim.len };
                Ok(DimView { name: &dim.name, len, is_unlimited })
            }
            Of::Nc4 { file, .. } => {
                let dim = dim_of(file.model()?, id)?;
                let (len, is_unlimited) = (dim.len, dim.is_unlimited);
                Ok(DimView { name: &dim.name, len, is_unlimited })
            }
        }
    }

    /// Id of the dimension with that name, which is normalised first, in this group or the nearest
    /// one around it.
    ///
    /// # Errors
    /// `NC_EBADDIM`; `NC_EINVAL` for a path in a netCDF-4 file.
    pub fn find_dim(&self, name: &[u8]) -> Result<DimId> {
        let (model, group) = match self.of {
            Of::Classic { header, .. } => return Ok(header.find_dim(name)?),
            Of::Nc4 { file, group } => (model_of(file, group)?.0, group),
        };
        if name.contains(&b'/') {
            return Err(NcError::Inval.into());
        }
        let name = sought_name(name, NcError::BadDim)?;
        let found = model.lineage_ids(group).find_map(|group| model.find_dim(group, &name));
        found.ok_or_else(|| no_such(NcError::BadDim, "dimension", &name))
    }

    /// The variable of this group with that id.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn var(&self, id: VarId) -> Result<VarView<'a>> {
        match self.of {
            Of::Classic { header, .. } => {
                let var = header.var(id)?;
                Ok(VarView {
                    name: &var.name,
                    nc_type: var.ty.nc_type(),
                    dims: &var.dims,
                    classic: Some(ClassicVar {
                        no_fill: var.no_fill,
                        begin: var.begin,
                        slab_bytes: var.slab_bytes(),
                        is_record: var.is_record(),
                    }),
                })
            }
            Of::Nc4 { file, group } => {
                let (_, group) = model_of(file, group)?;
                let found = usize::try_from(id.0).ok().and_then(|id| group.vars.get(id));
                let var = found.ok_or_else(|| no_var(id))?;
                Ok(VarView {
                    name: &var.name,
                    nc_type: var.nc_type,
                    dims: &var.dims,
                    classic: None,
                })
            }
        }
    }

    /// Id of the variable of this group with that name, which is normalised first.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn find_var(&self, name: &[u8]) -> Result<VarId> {
        match self.of {
            Of::Classic { header, .. } => Ok(header.find_var(name)?),
            Of::Nc4 { file, group } => {
                let name = sought_name(name, NcError::NotVar)?;
                let (model, inner) = model_of(file, group)?;
                let missing = || match model.gap(group, &name) {
                    // What the link leads to may be a variable.
                    Some(gap) => Error::told(NcError::NotVar, gap.to_string()),
                    None => no_such(NcError::NotVar, "variable", &name),
                };
                inner.find_var(&name).ok_or_else(missing)
            }
        }
    }

    /// Rank of a variable; its current lengths go to `out`, as many as fit there.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn var_shape(&self, id: VarId, out: &mut [usize]) -> Result<usize> {
        let as_len = |len: u64| usize::try_from(len).unwrap_or(usize::MAX);
        match self.of {
            Of::Classic { header, n_records } => {
                let var = header.var(id)?;
                for (axis, (out, &len)) in out.iter_mut().zip(&var.shape).enumerate() {
                    *out = as_len(if axis == 0 && var.is_record() { n_records } else { len });
                }
                Ok(var.shape.len())
            }
            Of::Nc4 { .. } => {
                let var = self.var(id)?;
                for (out, &dim) in out.iter_mut().zip(var.dims) {
                    *out = as_len(self.dim(dim)?.len);
                }
                Ok(var.dims.len())
            }
        }
    }

    /// Elements that a variable of a netCDF-4 file has itself along each dimension.
    #[must_use]
    pub fn extent(&self, id: VarId) -> Option<&'a [u64]> {
        match self.of {
            Of::Classic { .. } => None,
            Of::Nc4 { file, group } => file.extent(group, id).ok(),
        }
    }

    /// Whether netCDF has words for all of a user-defined type.
    pub(crate) fn is_whole_type(&self, nc_type: i32) -> bool {
        match self.of {
            Of::Classic { .. } => true,
            Of::Nc4 { file, .. } => file.is_whole_type(nc_type).unwrap_or(false),
        }
    }

    /// Whether the first dimension of a variable can grow.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn is_record(&self, id: VarId) -> Result<bool> {
        let var = self.var(id)?;
        Ok(match (var.classic, var.dims.first()) {
            (Some(classic), _) => classic.is_record,
            (None, Some(&dim)) => self.dim(dim)?.is_unlimited,
            (None, None) => false,
        })
    }

    /// Number of attributes of a variable of this group, or of the group for [`VarId::GLOBAL`].
    ///
    /// # Errors
    /// `NC_ENOTVAR`; what decoding them meets in a netCDF-4 file.
    pub fn n_atts(&self, owner: VarId) -> Result<usize> {
        match self.of {
            Of::Classic { header, .. } => Ok(header.atts(owner)?.len()),
            Of::Nc4 { file, group } => Ok(file.n_atts(VarRef { group, var: owner })?),
        }
    }

    /// Attribute number `index` of a variable, or of the group for [`VarId::GLOBAL`].
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_ENOTATT`.
    pub fn att(&self, owner: VarId, index: usize) -> Result<AttView<'a>> {
        match self.of {
            Of::Classic { header, .. } => {
                Ok(header.atts(owner)?.get(index).ok_or(NcError::NotAtt)?.into())
            }
            Of::Nc4 { file, group } => Ok(file.att(VarRef { group, var: owner }, index)?.into()),
        }
    }

    /// The attribute with that name, which is normalised first, and its number; one that is found
    /// by its name only (`_NCProperties`) has number -1.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_ENOTATT`.
    pub fn find_att(&self, owner: VarId, name: &[u8]) -> Result<(i32, AttView<'a>)> {
        match self.of {
            Of::Classic { header, .. } => {
                let (index, att) = header.att(owner, name)?;
                Ok((i32::try_from(index).unwrap_or(i32::MAX), att.into()))
            }
            Of::Nc4 { file, group } => {
                let (number, att) = file.find_att(VarRef { group, var: owner }, name)?;
                Ok((number, att.into()))
            }
        }
    }
}

/// The dimension with that id in a netCDF-4 file.
pub(crate) fn dim_of(model: &Model, id: DimId) -> Result<&zonda_nc4::Dim> {
    let found = usize::try_from(id.0).ok().and_then(|id| model.dims.get(id));
    let none = || Error::told(NcError::BadDim, format!("no dimension {}", id.0));
    found.and_then(Option::as_ref).ok_or_else(none)
}

/// A group, the one around it, and so on to the root.
pub(crate) fn outward(model: &Model, group: GroupId) -> impl Iterator<Item = &Group> {
    let group_of = |id: GroupId| model.groups.get(usize::from(id.0));
    // A parent has a lower number, so that the way ends.
    std::iter::successors(group_of(group), move |group| group_of(group.parent?))
}

/// What only netCDF-4 files have: groups and user-defined types. A classic dataset answers as one
/// root group without types.
impl<'a> Meta<'a> {
    /// The group looked at.
    #[must_use]
    pub fn group_id(&self) -> GroupId {
        match self.of {
            Of::Classic { .. } => GroupId::ROOT,
            Of::Nc4 { group, .. } => group,
        }
    }

    /// The same of another group.
    ///
    /// # Errors
    /// `NC_EBADGRPID`.
    pub fn group(&self, group: GroupId) -> Result<Meta<'a>> {
        let of = match self.of {
            Of::Classic { header, n_records } if group == GroupId::ROOT => {
                Of::Classic { header, n_records }
            }
            Of::Classic { .. } => return Err(NcError::BadGrpId.into()),
            Of::Nc4 { file, .. } => {
                model_of(file, group)?;
                Of::Nc4 { file, group }
            }
        };
        Ok(Meta { of })
    }

    /// Name of the group, `/` for the root.
    #[must_use]
    pub fn group_name(&self) -> &'a [u8] {
        self.nc4_or_none().map_or(b"/", |(_, group)| &group.name)
    }

    /// Path of the group from the root, which is `/`.
    #[must_use]
    pub fn group_path(&self) -> Vec<u8> {
        let mut names: Vec<&[u8]> = Vec::new();
        if let Of::Nc4 { file, group } = self.of
            && let Ok(model) = file.model()
        {
            names.extend(outward(model, group).filter(|g| g.parent.is_some()).map(|g| &*g.name));
        }
        if names.is_empty() {
            return b"/".to_vec();
        }
        names.iter().rev().flat_map(|name| [b"/", *name]).flatten().copied().collect()
    }

    /// The group around this one; the root has none.
    #[must_use]
    pub fn group_parent(&self) -> Option<GroupId> {
        self.nc4_or_none()?.1.parent
    }

    /// The groups in this one.
    #[must_use]
    pub fn groups(&self) -> &'a [GroupId] {
        self.nc4_or_none().map_or(&[], |(_, group)| &group.children)
    }

    /// The group in this one with that name, which is normalised first.
    ///
    /// # Errors
    /// `NC_ENOGRP`.
    pub fn find_group(&self, name: &[u8]) -> Result<GroupId> {
        let (model, _) = self.nc4().ok_or(NcError::NoGrp)??;
        let name = sought_name(name, NcError::NoGrp)?;
        let found = model.find_child(self.group_id(), &name);
        found.ok_or_else(|| no_such(NcError::NoGrp, "group", &name))
    }

    /// Numbers of the types defined in this group.
    #[must_use]
    pub fn type_ids(&self) -> &'a [i32] {
        self.nc4_or_none().map_or(&[], |(_, group)| &group.types)
    }

    /// All user-defined types of the file; the first has number [`FIRST_USER_TYPE`].
    #[must_use]
    pub fn types(&self) -> &'a [UserType] {
        self.nc4_or_none().map_or(&[], |(model, _)| &model.types)
    }

    /// The user-defined type with that number, of whichever group.
    ///
    /// # Errors
    /// `NC_EBADTYPE`.
    pub fn user_type(&self, nc_type: i32) -> Result<&'a UserType> {
        let Some(nc4) = self.nc4() else { return Err(NcError::BadType.into()) };
        let index = nc_type.checked_sub(FIRST_USER_TYPE).and_then(|at| usize::try_from(at).ok());
        Ok(index.and_then(|at| nc4.ok()?.0.types.get(at)).ok_or(NcError::BadType)?)
    }

    /// Why the definition of a variable is not whole: its type is damaged or one that netCDF has no words
    /// for, or a dimension of it is none that its group can have. `None` where it is whole.
    #[must_use]
    pub fn var_fault(&self, id: VarId) -> Option<Error> {
        let Of::Nc4 { file, group } = self.of else { return None };
        let var = self.var(id).ok()?;
        let object = || {
            let path = [&self.group_path()[..], b"/", var.name].concat();
            String::from_utf8_lossy(&path).replacen("//", "/", 1)
        };
        if var.ty().is_none() && var.nc_type != NC_STRING && self.user_type(var.nc_type).is_err() {
            let what = || "its type is one that netCDF has no words for".to_owned();
            return Some(match file.var_info(group, id) {
                Err(error) => error.into(),
                Ok(_) => {
                    let (object, what, code) = (object(), what(), NcError::BadType);
                    Nc4Error::NoWords { object, what, code }.into()
                }
            });
        }
        let axis = var.dims.iter().position(|&dim| self.dim(dim).is_err())?;
        let what =
            format!("the scale of its axis {axis} is no dimension of its group, or one around it");
        Some(Nc4Error::NoWords { object: object(), what, code: NcError::BadDim }.into())
    }

    /// Number of the user-defined type with that name, which is normalised first: in this group, in
    /// one around it, or else in any.
    ///
    /// # Errors
    /// `NC_EBADTYPE`.
    pub fn find_type(&self, name: &[u8]) -> Result<i32> {
        let (model, _) = self.nc4().ok_or(NcError::BadType)??;
        let name = sought_name(name, NcError::BadType)?;
        let named = |group| model.find_type(group, &name);
        let near = model.lineage_ids(self.group_id()).find_map(named);
        let all = (0..=u16::MAX).map(GroupId).zip(&model.groups);
        let any = || all.map(|(group, _)| group).find_map(named);
        near.or_else(any).ok_or_else(|| no_such(NcError::BadType, "type", &name))
    }

    /// Bytes of an element in memory, of any type; a string is an address, a sequence a length and
    /// an address.
    ///
    /// # Errors
    /// `NC_EBADTYPE`.
    pub fn type_size(&self, nc_type: i32) -> Result<usize> {
        match ExtType::from_nc_type(nc_type) {
            Some(ty) => Ok(ty.size()),
            None if nc_type == NC_STRING => Ok(8),
            None => Ok(self.user_type(nc_type)?.size),
        }
    }
}

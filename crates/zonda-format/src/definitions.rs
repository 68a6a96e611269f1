//! The definitions of a file, as a format shows them.

use std::borrow::Cow;

use zonda_model::{DimId, ExtType, NcError, VarId};

use crate::error::{Error, Result};
use crate::kind::Format;
use crate::refs::{GroupId, VarRef};
use crate::types::UserType;

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
    /// Number of its type: 1 to 12, or a user-defined one from [`FIRST_USER_TYPE`](crate::FIRST_USER_TYPE) on.
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
    /// Whether elements that were never written are not filled.
    pub no_fill: bool,
    /// Byte offset of the first element.
    pub begin: u64,
    /// Bytes of the variable, or of its part of one record, without padding.
    pub slab_bytes: u64,
    /// Whether the first dimension is the unlimited one.
    pub is_record: bool,
}

/// Where things lie in a classic file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the encoded header.
    pub header_len: u64,
    /// Where data begins: what lies between header and here is room for the header to grow.
    pub begin_var: u64,
    /// Where records begin.
    pub begin_rec: u64,
    /// Bytes from one record to the next, 0 without record variables.
    pub record_len: u64,
    /// Number of record variables.
    pub n_record_vars: usize,
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

/// A group: what is in it.
#[derive(Clone, Copy, Debug)]
pub struct GroupView<'a> {
    /// Name, `/` for the root.
    pub name: &'a [u8],
    /// The group around it; the root has none.
    pub parent: Option<GroupId>,
    /// The groups in it.
    pub children: &'a [GroupId],
    /// Numbers of the types defined in it.
    pub types: &'a [i32],
    /// Number of its variables.
    pub n_vars: usize,
    /// Its dimensions, ascending.
    pub dims: Dims<'a>,
}

/// Dimensions of a group.
#[derive(Clone, Copy, Debug)]
pub enum Dims<'a> {
    /// This number of dimensions, with ids from 0 on.
    First(usize),
    /// The dimensions with these ids.
    These(&'a [DimId]),
}

impl<'a> Dims<'a> {
    /// How many.
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Dims::First(n) => n,
            Dims::These(ids) => ids.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Their ids.
    pub fn ids(self) -> impl Iterator<Item = DimId> + use<'a> {
        let (n, these) = match self {
            Dims::First(n) => (n, &[][..]),
            Dims::These(ids) => (0, ids),
        };
        (0..n).map_while(|id| i32::try_from(id).ok()).map(DimId).chain(these.iter().copied())
    }
}

/// The definitions of an open file as they are now, read when they are first asked for.
///
/// Implementations normalise names that are looked for, since formats differ in the names that they allow. A format
/// without groups and types implements the required methods for group 0 alone.
pub trait Definitions {
    /// What netCDF calls the format. Of a damaged file the nearest one.
    fn format(&self) -> Format;

    /// A group.
    ///
    /// # Errors
    /// `NC_EBADGRPID`; what reading the definitions meets.
    fn group(&self, group: GroupId) -> Result<GroupView<'_>>;

    /// Says whether a group is there.
    ///
    /// # Errors
    /// As [`Definitions::group`].
    fn check_group(&self, group: GroupId) -> Result<()> {
        self.group(group).map(drop)
    }

    /// Number of variables of a group; 0 where its definitions cannot be read.
    fn n_vars(&self, group: GroupId) -> usize {
        self.group(group).map_or(0, |group| group.n_vars)
    }

    /// The dimensions of a group, ascending; none where its definitions cannot be read.
    fn dims(&self, group: GroupId) -> Dims<'_> {
        self.group(group).map_or(Dims::First(0), |group| group.dims)
    }

    /// The dimension with that id, of whichever group.
    ///
    /// # Errors
    /// `NC_EBADDIM`.
    fn dim(&self, id: DimId) -> Result<DimView<'_>>;

    /// Id of the dimension with that name in this group or the nearest one around it.
    ///
    /// # Errors
    /// `NC_EBADDIM`; `NC_EINVAL` for a path where there are groups.
    fn find_dim(&self, group: GroupId, name: &[u8]) -> Result<DimId>;

    /// How many dimensions of a group are unlimited. Where the format allows one only, and a file has more, the first
    /// counts.
    fn most_unlimited(&self) -> usize {
        usize::MAX
    }

    /// The first dimension of a group that can grow.
    fn first_unlimited(&self, group: GroupId) -> Option<DimId> {
        self.dims(group).ids().find(|&id| self.dim(id).is_ok_and(|dim| dim.is_unlimited))
    }

    /// Number of records, where the file counts them for all variables; else it is the length of a dimension.
    fn n_records(&self) -> Option<u64> {
        None
    }

    /// A variable.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    fn var(&self, var: VarRef) -> Result<VarView<'_>>;

    /// Id of the variable of a group with that name.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    fn find_var(&self, group: GroupId, name: &[u8]) -> Result<VarId>;

    /// Rank of a variable; its current lengths go to `out`, as many as fit there.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    fn var_shape(&self, var: VarRef, out: &mut [usize]) -> Result<usize> {
        let dims = self.var(var)?.dims;
        for (out, &dim) in out.iter_mut().zip(dims) {
            *out = usize::try_from(self.dim(dim)?.len).unwrap_or(usize::MAX);
        }
        Ok(dims.len())
    }

    /// Number of attributes of a variable, or of a group.
    ///
    /// # Errors
    /// `NC_ENOTVAR`; what decoding them meets.
    fn n_atts(&self, owner: VarRef) -> Result<usize>;

    /// Attribute number `index`.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_ENOTATT`.
    fn att(&self, owner: VarRef, index: usize) -> Result<AttView<'_>>;

    /// The attribute with that name and its number; one that is found by its name only
    /// (`_NCProperties`) has number -1.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_ENOTATT`.
    fn find_att(&self, owner: VarRef, name: &[u8]) -> Result<(i32, AttView<'_>)>;

    /// The group in a group with that name.
    ///
    /// # Errors
    /// `NC_ENOGRP`.
    fn find_group(&self, _group: GroupId, _name: &[u8]) -> Result<GroupId> {
        Err(NcError::NoGrp.into())
    }

    /// A user-defined type, of whichever group.
    ///
    /// # Errors
    /// `NC_EBADTYPE`.
    fn user_type(&self, _nc_type: i32) -> Result<&UserType> {
        Err(NcError::BadType.into())
    }

    /// Number of user-defined types of the file; the first has number
    /// [`FIRST_USER_TYPE`](crate::FIRST_USER_TYPE).
    fn n_types(&self) -> usize {
        0
    }

    /// Number of the user-defined type with that name: in this group, in one around it, or else in any.
    ///
    /// # Errors
    /// `NC_EBADTYPE`.
    fn find_type(&self, _group: GroupId, _name: &[u8]) -> Result<i32> {
        Err(NcError::BadType.into())
    }

    /// Whether netCDF can represent all of a user-defined type.
    fn is_whole_type(&self, _nc_type: i32) -> bool {
        true
    }

    /// Bytes of the text in each field of a compound, which netCDF shows as one character; 1 for fields that
    /// are something else. Empty where no field is text.
    fn text_lens(&self, _nc_type: i32) -> Vec<usize> {
        Vec::new()
    }

    /// Why the definition of a variable is not whole; `None` where it is.
    fn var_fault(&self, _var: VarRef) -> Option<Error> {
        None
    }

    /// Number of elements that a variable really has along each dimension, where that may be fewer than the length of
    /// the dimension.
    fn extent(&self, _var: VarRef) -> Option<&[u64]> {
        None
    }

    /// Where things lie in a classic file.
    fn layout(&self) -> Option<Layout> {
        None
    }
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl std::fmt::Debug for dyn Definitions + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Definitions")
    }
}

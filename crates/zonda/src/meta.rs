//! A look at the definitions of a dataset, without copying them.

use zonda_classic::{AttRef, Header, Layout};
use zonda_model::{DimId, ExtType, VarId};

use crate::error::Result;
use crate::format::Format;

/// The definitions of a dataset as they stand while [`Dataset::meta`](crate::Dataset::meta) runs.
#[derive(Debug)]
pub struct Meta<'a> {
    pub(crate) header: &'a Header,
    pub(crate) n_records: u64,
}

/// A dimension.
#[derive(Clone, Copy, Debug)]
pub struct DimView<'a> {
    /// Name, UTF-8 unless the file is odd.
    pub name: &'a [u8],
    /// Length; for the unlimited dimension the number of records.
    pub len: u64,
    /// Whether it is the unlimited one.
    pub is_unlimited: bool,
}

/// A variable.
#[derive(Clone, Copy, Debug)]
pub struct VarView<'a> {
    /// Name, UTF-8 unless the file is odd.
    pub name: &'a [u8],
    /// External type.
    pub ty: ExtType,
    /// Dimensions, slowest first.
    pub dims: &'a [DimId],
    /// Number of attributes.
    pub n_atts: usize,
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
#[derive(Clone, Copy, Debug)]
pub struct AttView<'a> {
    /// Name, UTF-8 unless the file is odd.
    pub name: &'a [u8],
    /// External type.
    pub ty: ExtType,
    /// Number of values.
    pub len: u64,
    /// The values in external form, big-endian.
    pub bytes: &'a [u8],
}

impl<'a> From<AttRef<'a>> for AttView<'a> {
    fn from(AttRef { name, ty, len, bytes }: AttRef<'a>) -> AttView<'a> {
        AttView { name, ty, len, bytes }
    }
}

impl<'a> Meta<'a> {
    /// The format.
    #[must_use]
    pub fn format(&self) -> Format {
        Format::of(self.header.version)
    }

    /// Number of dimensions.
    #[must_use]
    pub fn n_dims(&self) -> usize {
        self.header.dims.len()
    }

    /// Number of variables.
    #[must_use]
    pub fn n_vars(&self) -> usize {
        self.header.vars.len()
    }

    /// Number of global attributes.
    #[must_use]
    pub fn n_global_atts(&self) -> usize {
        self.header.atts.len()
    }

    /// The unlimited dimension.
    #[must_use]
    pub fn unlimited(&self) -> Option<DimId> {
        self.header.record_dim()
    }

    /// Number of records.
    #[must_use]
    pub fn n_records(&self) -> u64 {
        self.n_records
    }

    /// Where things lie in the file.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.header.layout
    }

    /// The dimension with that id.
    ///
    /// # Errors
    /// `NC_EBADDIM`.
    pub fn dim(&self, id: DimId) -> Result<DimView<'a>> {
        let dim = self.header.dim(id)?;
        let is_unlimited = dim.len == 0;
        let len = if is_unlimited { self.n_records } else { dim.len };
        Ok(DimView { name: &dim.name, len, is_unlimited })
    }

    /// Id of the dimension with that name, which is normalised first.
    ///
    /// # Errors
    /// `NC_EBADDIM`.
    pub fn find_dim(&self, name: &[u8]) -> Result<DimId> {
        Ok(self.header.find_dim(name)?)
    }

    /// The variable with that id.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn var(&self, id: VarId) -> Result<VarView<'a>> {
        let var = self.header.var(id)?;
        Ok(VarView {
            name: &var.name,
            ty: var.ty,
            dims: &var.dims,
            n_atts: var.atts.len(),
            no_fill: var.no_fill,
            begin: var.begin,
            slab_bytes: var.slab_bytes(),
            is_record: var.is_record(),
        })
    }

    /// Id of the variable with that name, which is normalised first.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn find_var(&self, name: &[u8]) -> Result<VarId> {
        Ok(self.header.find_var(name)?)
    }

    /// Rank of a variable; its current lengths go to `out`, as many as fit there.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn var_shape(&self, id: VarId, out: &mut [usize]) -> Result<usize> {
        let var = self.header.var(id)?;
        for (axis, (out, &len)) in out.iter_mut().zip(&var.shape).enumerate() {
            let len = if axis == 0 && var.is_record() { self.n_records } else { len };
            *out = usize::try_from(len).unwrap_or(usize::MAX);
        }
        Ok(var.shape.len())
    }

    /// Attribute number `index` of a variable, or of the dataset for [`VarId::GLOBAL`].
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_ENOTATT`.
    pub fn att(&self, owner: VarId, index: usize) -> Result<AttView<'a>> {
        let att = self.header.atts(owner)?.get(index).ok_or(zonda_model::NcError::NotAtt)?;
        Ok(att.into())
    }

    /// The attribute with that name, which is normalised first, and its number.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_ENOTATT`.
    pub fn find_att(&self, owner: VarId, name: &[u8]) -> Result<(usize, AttView<'a>)> {
        let (index, att) = self.header.att(owner, name)?;
        Ok((index, att.into()))
    }
}

//! The definitions of a classic file, as all formats show theirs.

use zonda_format::{
    AttView, ClassicVar, Definitions, DimView, Dims, Format, GroupId, GroupView, Layout, Result,
    VarRef, VarView,
};
use zonda_model::{DimId, NcError, VarId};

use crate::header::Header;

/// A look at a header, with the number of records that there are: it may be ahead of that in the file.
///
/// Whoever asks about another group than the root was told before that there is none; here the
/// root answers for it.
#[derive(Clone, Copy, Debug)]
pub struct HeaderView<'a> {
    /// The definitions.
    pub header: &'a Header,
    /// Number of records.
    pub n_records: u64,
}

impl Definitions for HeaderView<'_> {
    fn format(&self) -> Format {
        self.header.version.format()
    }

    fn group(&self, group: GroupId) -> Result<GroupView<'_>> {
        if group != GroupId::ROOT {
            return Err(NcError::BadGrpId.into());
        }
        Ok(GroupView {
            name: b"/",
            parent: None,
            children: &[],
            types: &[],
            n_vars: self.header.vars.len(),
            dims: Dims::First(self.header.dims.len()),
        })
    }

    fn dim(&self, id: DimId) -> Result<DimView<'_>> {
        let dim = self.header.dim(id)?;
        let is_unlimited = dim.len == 0;
        let len = if is_unlimited { self.n_records } else { dim.len };
        Ok(DimView { name: &dim.name, len, is_unlimited })
    }

    fn find_dim(&self, _group: GroupId, name: &[u8]) -> Result<DimId> {
        Ok(self.header.find_dim(name)?)
    }

    fn most_unlimited(&self) -> usize {
        1
    }

    fn n_records(&self) -> Option<u64> {
        Some(self.n_records)
    }

    fn var(&self, var: VarRef) -> Result<VarView<'_>> {
        let var = self.header.var(var.var)?;
        let classic = ClassicVar {
            no_fill: var.no_fill,
            begin: var.begin,
            slab_bytes: var.slab_bytes(),
            is_record: var.is_record(),
        };
        let nc_type = var.ty.nc_type();
        Ok(VarView { name: &var.name, nc_type, dims: &var.dims, classic: Some(classic) })
    }

    fn find_var(&self, _group: GroupId, name: &[u8]) -> Result<VarId> {
        Ok(self.header.find_var(name)?)
    }

    fn var_shape(&self, var: VarRef, out: &mut [usize]) -> Result<usize> {
        let var = self.header.var(var.var)?;
        for (axis, (out, &len)) in out.iter_mut().zip(&var.shape).enumerate() {
            let len = if axis == 0 && var.is_record() { self.n_records } else { len };
            *out = usize::try_from(len).unwrap_or(usize::MAX);
        }
        Ok(var.shape.len())
    }

    fn n_atts(&self, owner: VarRef) -> Result<usize> {
        Ok(self.header.atts(owner.var)?.len())
    }

    fn att(&self, owner: VarRef, index: usize) -> Result<AttView<'_>> {
        Ok(self.header.atts(owner.var)?.get(index).ok_or(NcError::NotAtt)?.into())
    }

    fn find_att(&self, owner: VarRef, name: &[u8]) -> Result<(i32, AttView<'_>)> {
        let (index, att) = self.header.att(owner.var, name)?;
        Ok((i32::try_from(index).unwrap_or(i32::MAX), att.into()))
    }

    fn layout(&self) -> Option<Layout> {
        Some(self.header.layout)
    }
}

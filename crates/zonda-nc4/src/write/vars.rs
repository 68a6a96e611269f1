//! Defining and renaming variables, and deriving layout and inquiries from their drafts.

use std::sync::{Arc, OnceLock};

use zonda_model::{DimId, ExtType, MAX_NAME_BYTES, NcError, VarId, default_fill};

use super::StorageRequest;
use super::atts::COPIES;
use super::datatypes::Typed;
use super::define::{Definer, owned, stored_name};
use super::draft::{Layout, VarDraft};
use super::type_size::check_users;
use super::{ObjectKey, chunk_sizes, filters};
use crate::details::{Details, reported};
use crate::element_form::NC_STRING;
use crate::fault::{Coded, Outcome, refuse_if};
use crate::file::Nc4File;
use crate::files::ObjectAt;
use crate::model::{Endianness, GroupId, Model, StorageKind, Var, VarInfo};
use crate::tuning::SMALL_ATTRIBUTE_BYTES;
use crate::walk::NON_COORD;
use crate::{Result, VarRef};
use zonda_model::memory;

/// Dimensions that a dataset can have.
const MOST_DIMS: usize = 32;

impl Nc4File {
    /// Settles a variable: type, layout and filters become what they are in the file, and do not change any more. That
    /// is at the end of definitions, or at the first put. A variable of the file, or one that is settled, stays as
    /// it is.
    ///
    /// # Errors
    /// `NC_EINVAL`, `NC_EHDFERR` for a user-defined type that is not complete.
    pub(crate) fn settle_var(&mut self, of: VarRef) -> Result<()> {
        self.define_of_var(of, |it| it.settle(of))
    }
}

/// The name that a variable has in the file must not be too long, either.
fn check_length(model: &Model, group: GroupId, name: &[u8], dims: &[DimId]) -> Coded<()> {
    let dim = model.find_dim(group, name);
    let is_other = dim.is_some() && dim != dims.first().copied();
    let len = name.len().saturating_add(NON_COORD.len());
    if is_other && len > MAX_NAME_BYTES { Err(NcError::MaxName) } else { Ok(()) }
}

/// The draft of a new variable.
fn draft(model: &Model, var: &Var, no_fill: bool) -> Coded<VarDraft> {
    let endianness = Endianness::Native;
    let datatype = match Typed::of(model, var.nc_type, endianness) {
        Ok(typed) => typed.datatype,
        // The type is not complete, and may still be completed.
        Err(NcError::Inval | NcError::HdfErr) => super::datatypes::string(),
        Err(code) => return Err(code),
    };
    let can_grow = |&id: &DimId| model.dim(id).is_some_and(|dim| dim.is_unlimited);
    // More bytes than 64 bits count cannot lie in one run.
    let size =
        u64::from(datatype.size).max(model.user_type(var.nc_type).map_or(0, |ty| ty.size as u64));
    let is_endless =
        super::store::bytes_of(&var.extent, usize::try_from(size).unwrap_or(usize::MAX)).is_err();
    let is_chunked = is_endless || var.dims.iter().any(can_grow);
    Ok(VarDraft {
        datatype,
        layout: Layout::Contiguous,
        storage: if is_chunked { StorageRequest::Chunked } else { StorageRequest::Contiguous },
        chunks: None,
        filters: Vec::new(),
        stored_filters: Vec::new(),
        filters_are_stored: false,
        no_fill,
        fill_value: None,
        endianness,
        quantize: None,
        is_settled: false,
        is_written: false,
    })
}

impl Definer<'_> {
    /// Defines a variable over dimensions, slowest first.
    ///
    /// # Errors
    /// In the reference's order: `NC_EMAXDIMS`; `NC_ENOTINDEFINE` in the classic model, else
    /// `NC_EPERM`; `NC_EBADNAME`, `NC_EMAXNAME`; `NC_EBADTYPE` for type 0; `NC_ESTRICTNC3` for a type
    /// that the classic model has not; `NC_ENAMEINUSE`, `NC_EBADDIM`; `NC_EINVAL` for a negative type,
    /// `NC_EBADTYPE` for one that is not there.
    pub(super) fn def_var(
        &mut self,
        group: GroupId,
        name: &[u8],
        nc_type: i32,
        dims: &[i32],
    ) -> Outcome<VarId> {
        self.group(group)?;
        refuse_if(dims.len() > MOST_DIMS, NcError::MaxDims)?;
        self.begin_definitions()?;
        let name = self.stored_name(name, true)?;
        refuse_if(nc_type == 0, NcError::BadType)?;
        refuse_if(self.is_classic() && nc_type > ExtType::Double.nc_type(), NcError::StrictNc3)?;
        self.check_unused(group, &name)?;
        let mut extent = Vec::with_capacity(dims.len());
        for &id in dims {
            let dim = self.model.dim(DimId(id)).ok_or(NcError::BadDim)?;
            extent.push(if dim.is_unlimited { 0 } else { dim.len });
        }
        refuse_if(nc_type < 0, NcError::Inval)?;
        let is_atomic = nc_type <= NC_STRING;
        refuse_if(!is_atomic && self.model.user_type(nc_type).is_none(), NcError::BadType)?;
        // Its fill value is in memory several times while it is written.
        let bytes = self.model.user_type(nc_type).map_or(0, |ty| ty.size);
        if bytes > SMALL_ATTRIBUTE_BYTES {
            memory::room::<u8>(bytes.saturating_mul(COPIES))?;
        }
        let ids: Vec<DimId> = dims.iter().map(|&id| DimId(id)).collect();
        check_length(self.model, group, &name, &ids)?;
        check_users(self.files, self.model, &ids)?;
        let no_fill = self.writing()?.mode.no_fill && ExtType::from_nc_type(nc_type).is_some();
        let scale = self.model.find_dim(group, &name);
        let mut var = Var::new(&name, nc_type, ids, ObjectAt::NOWHERE, &extent);
        var.draft = Some(Box::new(draft(self.model, &var, no_fill)?));
        let file = Arc::clone(self.files.main());
        var.details = OnceLock::from(Arc::new(Details::made(file)));
        let home = self.model.group_mut(group).ok_or(NcError::Internal)?;
        let id = home.add_var(var).ok_or(NcError::MaxVars)?;
        self.refresh(VarRef { group, var: id })?;
        self.mark(ObjectKey::Var(group, id));
        self.mark(ObjectKey::Group(group));
        if let Some(scale) = scale {
            self.mark(ObjectKey::Scale(scale));
        }
        Ok(id)
    }

    /// Renames a variable. It may become or cease to be a coordinate variable.
    ///
    /// # Errors
    /// In the reference's order: `NC_EMAXNAME`, `NC_EPERM`, `NC_EBADNAME`, `NC_ENOTVAR`,
    /// `NC_ENAMEINUSE` for a name that another variable has; in the classic model `NC_ENOTINDEFINE`
    /// for a longer name in data mode.
    pub(super) fn rename_var(&mut self, of: VarRef, name: &[u8]) -> Outcome<()> {
        let VarRef { group, var } = of;
        self.group(group)?;
        refuse_if(name.len() > MAX_NAME_BYTES, NcError::MaxName)?;
        self.writing()?;
        let name = stored_name(name)?;
        let known = self.var(of)?;
        let (old, dims) = (known.name.clone(), known.dims.clone());
        refuse_if(self.group(group)?.find_var(&name).is_some(), NcError::NameInUse)?;
        refuse_if(
            !self.is_defining() && self.is_classic() && name.len() > old.len(),
            NcError::NotInDefine,
        )?;
        // Types and groups are links beside it in the file.
        self.check_unused(group, &name)?;
        check_length(self.model, group, &name, &dims)?;
        let scales = [&old, &name].map(|name| self.model.find_dim(group, name));
        let home = self.model.group_mut(group).ok_or(NcError::Internal)?;
        home.rename_var(var, name).ok_or(NcError::Internal)?;
        self.mark(ObjectKey::Var(group, var));
        self.mark(ObjectKey::Group(group));
        for scale in scales.into_iter().flatten() {
            self.mark(ObjectKey::Scale(scale));
        }
        Ok(())
    }

    /// The draft of a variable that is not in the file yet and has no data.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_ENOTVAR`, `NC_ELATEDEF`.
    pub(crate) fn draft(&mut self, of: VarRef) -> Coded<&mut VarDraft> {
        self.writing()?;
        self.var(of)?;
        let var = self.model.var_mut(of.group, of.var).ok_or(NcError::NotVar)?;
        let draft = var.draft.as_deref_mut().filter(|draft| !draft.is_settled);
        draft.ok_or(NcError::LateDef)
    }

    /// Makes layout and inquiries agree with a draft that was changed.
    pub(crate) fn refresh(&mut self, of: VarRef) -> Coded<()> {
        let known = self.var(of)?;
        let draft = known.draft.as_deref().ok_or(NcError::Internal)?;
        let layout = layout(self.model, known, draft);
        let info = info(known, draft, &layout);
        let var = self.model.var_mut(of.group, of.var).ok_or(NcError::NotVar)?;
        if let Some(draft) = &mut var.draft {
            draft.layout = layout;
        }
        owned(&mut var.details).ok_or(NcError::Internal)?.set_info(info);
        Ok(())
    }

    /// See [`Nc4File::settle_var`].
    pub(crate) fn settle(&mut self, of: VarRef) -> Outcome<()> {
        let var = self.var(of)?;
        let Some(draft) = var.draft.as_deref().filter(|draft| !draft.is_settled) else {
            return Ok(());
        };
        let Typed { datatype, .. } = Typed::of(self.model, var.nc_type, draft.endianness)?;
        let (quantize, nc_type) = (draft.quantize, var.nc_type);
        let var = self.model.var_mut(of.group, of.var).ok_or(NcError::NotVar)?;
        if let Some(draft) = &mut var.draft {
            draft.datatype = datatype;
        }
        self.refresh(of)?;
        let var = self.model.var_mut(of.group, of.var).ok_or(NcError::NotVar)?;
        if let Some(draft) = &mut var.draft {
            draft.stored_filters = filters::stored(draft, ExtType::from_nc_type(nc_type));
            draft.is_settled = true;
        }
        if let Some(quantize) = quantize {
            let kept = quantize.kept.to_ne_bytes();
            let held = super::OwnedValues::plain(&kept[..]);
            let name = quantize.mode.attribute().as_bytes();
            self.edit_atts(of)?.put(name, ExtType::Int.nc_type(), 1, held)?;
        }
        Ok(())
    }
}

/// The layout that a draft asks for.
fn layout(model: &Model, var: &Var, draft: &VarDraft) -> Layout {
    match draft.storage {
        StorageRequest::Chunked if !var.dims.is_empty() => {
            let axis = |&id: &DimId| {
                let dim = model.dim(id);
                dim.filter(|dim| !dim.is_unlimited).map(|dim| dim.len)
            };
            let shape: Vec<Option<u64>> = var.dims.iter().map(axis).collect();
            let given = draft.chunks.as_deref().unwrap_or_default();
            Layout::Chunked(chunk_sizes::complete(given, &shape, u64::from(draft.datatype.size)))
        }
        StorageRequest::Compact => Layout::Compact,
        _ => Layout::Contiguous,
    }
}

/// What inquiries report of a draft.
fn info(var: &Var, draft: &VarDraft, layout: &Layout) -> VarInfo {
    let storage = match layout {
        Layout::Contiguous => StorageKind::Contiguous,
        Layout::Compact => StorageKind::Compact,
        Layout::Chunked(dims) => {
            let dims = dims.iter().map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX));
            StorageKind::Chunked(dims.collect())
        }
    };
    let ext = ExtType::from_nc_type(var.nc_type);
    let fill_value = match (ext, &draft.fill_value) {
        (Some(_), Some(held)) => held.bytes().to_vec(),
        (Some(ext), None) => default_fill(ext).into_iter().take(ext.size()).collect(),
        (None, _) => Vec::new(),
    };
    VarInfo {
        storage,
        filters: reported(&draft.filters),
        endianness: draft.endianness,
        no_fill: draft.no_fill,
        fill_value,
    }
}

#[cfg(test)]
mod tests;

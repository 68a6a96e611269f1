//! What the storage of a new variable is made of: its draft, in the terms of the file.

use zonda_convert::ByteOrder;
use zonda_hdf5::message::{DataLayout, FilterDescription};
use zonda_model::{ExtType, NcError, default_fill};

use super::store::bytes_of;
use super::{Fill, Layout, Quantize, VarDraft, header};
use crate::form::{Form, NC_STRING};
use crate::get::GetFault;
use crate::model::{Model, UserClass, Var};

type Result<T> = std::result::Result<T, GetFault>;

/// A variable without data.
pub(super) struct Recipe {
    pub(super) form: Form,
    pub(super) layout: DataLayout,
    pub(super) filters: Vec<FilterDescription>,
    /// One element that was never written, in file form; `None` where it may be anything.
    pub(super) fill: Option<Box<[u8]>>,
    pub(super) quantize: Option<Quantize>,
}

impl Recipe {
    pub(super) fn of(model: &Model, var: &Var, draft: &VarDraft) -> Result<Recipe> {
        let form = Form::of(&draft.datatype).ok_or(GetFault::Refused(NcError::BadType))?;
        let fill = fill(model, var, draft, &form);
        let bytes = || bytes_of(&var.extent, form.file_size);
        let layout = match &draft.layout {
            Layout::Contiguous => DataLayout::Contiguous { addr: None, len: Some(bytes()?) },
            Layout::Compact => DataLayout::Compact { data: compact(bytes()?, fill.as_deref())? },
            Layout::Chunked(chunk) => header::chunked(chunk.clone(), draft.datatype.size),
        };
        let quantize = draft.quantize;
        Ok(Recipe { form, layout, filters: draft.filters.clone(), fill, quantize })
    }
}

/// Elements in the header that nobody wrote to.
fn compact(bytes: u64, fill: Option<&[u8]>) -> Result<Box<[u8]>> {
    let len = usize::try_from(bytes).map_err(|_| GetFault::Refused(NcError::NoMem))?;
    let mut data = vec![0; len];
    if let Some(fill) = fill.filter(|fill| !fill.is_empty()) {
        data.chunks_exact_mut(fill.len()).for_each(|element| element.copy_from_slice(fill));
    }
    Ok(data.into())
}

/// The fill value of a new variable in file form; `None` where elements are left undefined.
pub(super) fn fill(model: &Model, var: &Var, draft: &VarDraft, form: &Form) -> Option<Box<[u8]>> {
    let base = match model.user_type(var.nc_type).map(|ty| &ty.class) {
        Some(UserClass::Enum { base, .. }) => *base,
        _ => var.nc_type,
    };
    let mut value = match &draft.fill {
        Fill::None => return None,
        Fill::User(value) => value.to_vec(),
        Fill::Default => match ExtType::from_nc_type(base) {
            Some(ext) => default_fill(ext).into_iter().take(form.size).collect(),
            None => vec![0; form.file_size],
        },
    };
    if base == NC_STRING {
        value.clear();
    }
    value.resize(form.file_size, 0);
    if form.order().is_some_and(|order| order != ByteOrder::NATIVE) {
        value.reverse();
    }
    Some(value.into())
}

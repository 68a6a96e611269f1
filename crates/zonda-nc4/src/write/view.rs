//! The view of a file that is being written: the definitions that callers look at while puts are queued and another
//! thread carries them out.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use zonda_runtime::lock::{Mutex, Rank};

use zonda_convert::RangeRule;
use zonda_format::{Dispatch, PutRules, StoreVars as _, VarRef, View as FormatView};
use zonda_model::{ExtType, Hyperslab, NcError};

use super::datatypes::Typed;
use super::grow;
use super::lifecycle::root_refusal;
use super::owned_values;
use super::store::fixed;
use super::{OwnedValues, VlenSource};
use crate::Result;
use crate::details::Details;
use crate::element_form::{ElementForm, ElementShape, NC_STRING};
use crate::fault::HdfResult;
use crate::file::Nc4File;
use crate::model::{Endianness, Model, StorageKind, Var};

/// The definitions of a file, as they were when the view was made. Only lengths of dimensions change: they grow with the
/// puts that are queued. A view answers all inquiries about definitions and attributes, and holds as long as
/// no definition changes.
#[derive(Debug)]
pub struct View(Nc4File);

impl Deref for View {
    type Target = Nc4File;

    fn deref(&self) -> &Nc4File {
        &self.0
    }
}

impl View {
    /// Makes a view of a file that is open for writing and not in define mode. Reads all definitions and attributes
    /// that were not read yet.
    ///
    /// # Errors
    /// `NC_EINDEFINE` in define mode; `NC_EHDFERR` where something is damaged.
    pub(crate) fn of(file: &Nc4File) -> Result<View> {
        if file.in_define_mode() {
            return Err(root_refusal(NcError::InDefine));
        }
        let mut model = file.model()?.clone();
        let files = file.files.clone();
        for group in &mut model.groups {
            own(&mut group.details, || Details::read(&files, group.at, &model.forms))
                .map_err(|error| crate::file::hdf(String::from("/"), error))?;
            for var in &mut group.vars {
                let read = || Details::read(&files, var.at, &model.forms);
                own(&mut var.details, read).map_err(|error| {
                    crate::file::hdf(String::from_utf8_lossy(&var.name).into_owned(), error)
                })?;
            }
        }
        let (how, read) = (file.how.clone(), file.read.clone());
        let (model, walking) = (OnceLock::from(model), Mutex::ranked(Rank::Walk, ()));
        let properties = file.properties_to_come().cloned();
        Ok(View(Nc4File { files, how, model, walking, writing: None, read, properties }))
    }
}

/// Copies the details of an object, so that changes of the file do not change the view.
fn own<E>(
    place: &mut OnceLock<Arc<Details>>,
    read: impl FnOnce() -> std::result::Result<Details, E>,
) -> std::result::Result<(), E> {
    let details = match place.get() {
        Some(known) => known.copy(),
        None => read()?,
    };
    *place = OnceLock::from(Arc::new(details));
    Ok(())
}

impl View {
    /// Whether a variable that is in the file is stored as Zonda would store it.
    fn is_plain(&self, var: &Var) -> HdfResult<bool> {
        let data = self.0.data(var)?;
        let storage = &self.0.details(var)?.info()?.storage;
        let is_here = !matches!(storage, StorageKind::External | StorageKind::Virtual);
        let is_number = ExtType::from_nc_type(var.nc_type).is_some();
        let form = &data.form.shape;
        let is_known = matches!(form, ElementShape::Number(..))
            || (matches!(form, ElementShape::FixedText(..)) && data.form.file_size == 1);
        Ok(is_here && data.missing.is_none() && (is_known || !is_number))
    }

    /// How elements of a type lie in memory; `NC_EBADTYPE` for what is no type.
    fn form(&self, nc_type: i32) -> Result<ElementForm> {
        let typed = Typed::of(self.0.model()?, nc_type, Endianness::Native);
        Ok(typed.map_err(root_refusal)?.form)
    }
}

impl FormatView for View {
    fn file(&self) -> &dyn Dispatch {
        &**self
    }

    /// What puts into a variable have to keep to; `None` for a variable whose puts may be refused for other reasons.
    fn put_rules(&self, of: VarRef) -> zonda_format::Result<Option<PutRules>> {
        let (model, var) = self.0.var(of.group, of.var)?;
        if var.draft.is_none() && !self.is_plain(var).unwrap_or(false) {
            return Ok(None);
        }
        let is_quantized = self.0.var_quantize(of)?.is_some();
        Ok(Some(PutRules {
            nc_type: var.nc_type,
            elem: match (var.nc_type, ExtType::from_nc_type(var.nc_type)) {
                (NC_STRING, _) => size_of::<u64>(),
                (_, Some(ext)) => ext.size(),
                (nc_type, None) => self.form(nc_type)?.size,
            },
            fixed: fixed(model, var),
            most: grow::MOST,
            takes_empty: true,
            // How quantization changes values depends on all values of a put.
            range_rule: (!is_quantized).then_some(RangeRule::Cast),
            tolerates_bytes: model.is_classic,
        }))
    }

    fn grow(&mut self, of: VarRef, rules: &PutRules, slab: &Hyperslab<'_>) -> Option<u64> {
        self.0.grow_to(of, &rules.fixed, slab)
    }

    fn grown(&mut self, of: VarRef, slab: &Hyperslab<'_>) {
        self.0.grow_by(of, slab);
    }

    fn hold(
        &self,
        nc_type: i32,
        fetch: &mut dyn VlenSource,
        elems: &[u8],
    ) -> zonda_format::Result<OwnedValues> {
        let form = self.form(nc_type)?;
        Ok(owned_values::take(&form, fetch, elems).map_err(root_refusal)?)
    }
}

impl Nc4File {
    /// Makes a variable, and the dimensions it has, as long as a put makes them that was checked. `fixed` has the lengths of
    /// its dimensions that cannot grow. Of the dimensions that became longer, gives the smallest length before.
    fn grow_to(
        &mut self,
        VarRef { group, var }: VarRef,
        fixed: &[Option<u64>],
        slab: &Hyperslab<'_>,
    ) -> Option<u64> {
        let model = self.model.get_mut()?;
        let mut grown_from = None;
        for (axis, len) in fixed.iter().enumerate() {
            if len.is_some() {
                continue;
            }
            let len = |model: &mut Model| model.dim_of_axis(group, var, axis).map(|dim| dim.len);
            let before = len(model);
            grow::grow_along(model, group, var, axis, slab);
            if let (Some(before), Some(now)) = (before, len(model))
                && now > before
            {
                grown_from = Some(grown_from.map_or(before, |from: u64| from.min(before)));
            }
        }
        grown_from
    }

    /// The same, where the lengths of its dimensions have to be found.
    pub(super) fn grow_by(&mut self, of: VarRef, slab: &Hyperslab<'_>) {
        let Ok((model, var)) = self.var(of.group, of.var) else { return };
        let fixed = fixed(model, var);
        self.grow_to(of, &fixed, slab);
    }
}

//! A second look at the definitions of a file that is being written: for one who puts into a queue,
//! and for all who ask about the file while another thread works through that queue.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use zonda_runtime::lock::{Mutex, Rank};

use zonda_convert::RangeRule;
use zonda_format::PutRules;
use zonda_model::{ExtType, Hyperslab, NcError, VarId};

use super::datatypes::Typed;
use super::grow;
use super::owned_values;
use super::store::fixed;
use super::{OwnedValues, VlenSource};
use crate::details::Details;
use crate::fault::HdfResult;
use crate::file::Nc4File;
use crate::form::{NC_STRING, Shape};
use crate::model::{Endianness, GroupId, Model, StorageKind, Var};
use crate::{Nc4Error, Result};

/// The definitions of a file as they were when it was made, but for the lengths of dimensions, which
/// grow with the puts that it is told of. All inquiries about definitions and attributes can be
/// made of it. It needs nothing of the file that may still change, as long as no definition does.
#[derive(Debug)]
pub struct View(Nc4File);

impl Deref for View {
    type Target = Nc4File;

    fn deref(&self) -> &Nc4File {
        &self.0
    }
}

impl Nc4File {
    /// A view of a file that is open for writing and not in define mode. Reads what was not read yet
    /// of its definitions and attributes.
    ///
    /// # Errors
    /// `NC_EINDEFINE` in define mode; `NC_EHDFERR` where something is damaged.
    pub fn view(&self) -> Result<View> {
        let refused = |code| Nc4Error::Refused { object: String::from("/"), code };
        if self.in_define_mode() {
            return Err(refused(NcError::InDefine));
        }
        let mut model = self.model()?.clone();
        let files = self.files.clone();
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
        let (how, read) = (self.how.clone(), self.read.clone());
        let (model, walking) = (OnceLock::from(model), Mutex::ranked(Rank::Walk, ()));
        let properties = self.properties_to_come().cloned();
        Ok(View(Nc4File { files, how, model, walking, writing: None, read, properties }))
    }
}

/// Makes what is known of an object one's own.
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
    fn definitions(&self) -> Result<&Model> {
        self.0.model()
    }

    /// What a put to a variable has to fit; `None` for one that is stored in a way that puts may be
    /// refused for.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`; what keeps attributes from being read.
    pub fn put_rules(&self, group: GroupId, id: VarId) -> Result<Option<PutRules>> {
        let (model, var) = self.0.var(group, id)?;
        if var.draft.is_none() && !self.is_plain(var).unwrap_or(false) {
            return Ok(None);
        }
        let is_quantized = self.0.var_quantize(group, id)?.is_some();
        Ok(Some(PutRules {
            nc_type: var.nc_type,
            elem: match var.nc_type {
                NC_STRING => size_of::<u64>(),
                nc_type => self.elem_bytes(nc_type)?,
            },
            fixed: fixed(model, var),
            most: grow::MOST,
            takes_empty: true,
            // Precision is lowered by what a put has.
            range_rule: (!is_quantized).then_some(RangeRule::Cast),
            tolerates_bytes: model.is_classic,
        }))
    }

    /// Whether a variable that is in the file is stored as we would store it.
    fn is_plain(&self, var: &Var) -> HdfResult<bool> {
        let data = self.0.data(var)?;
        let storage = &self.0.details(var)?.info()?.storage;
        let is_here = !matches!(storage, StorageKind::External | StorageKind::Virtual);
        let is_number = ExtType::from_nc_type(var.nc_type).is_some();
        let form = &data.form.shape;
        let is_known = matches!(form, Shape::Number(..))
            || (matches!(form, Shape::FixedText(..)) && data.form.file_size == 1);
        Ok(is_here && data.missing.is_none() && (is_known || !is_number))
    }

    /// A copy of elements of a type in the caller's memory, and of what they point to.
    ///
    /// # Errors
    /// `NC_EBADTYPE` for what is no type, `NC_ENOMEM` for sequences of impossible lengths.
    pub fn hold(
        &self,
        nc_type: i32,
        fetch: &mut dyn VlenSource,
        src: &[u8],
    ) -> Result<OwnedValues> {
        let refused = |code| Nc4Error::Refused { object: String::from("/"), code };
        let typed = Typed::of(self.definitions()?, nc_type, Endianness::Native);
        let form = typed.map_err(refused)?.form;
        owned_values::take(&form, fetch, src).map_err(refused)
    }

    /// Bytes of an element of a type in memory.
    ///
    /// # Errors
    /// `NC_EBADTYPE` for what is no type.
    fn elem_bytes(&self, nc_type: i32) -> Result<usize> {
        if let Some(ext) = ExtType::from_nc_type(nc_type) {
            return Ok(ext.size());
        }
        let refused = |code| Nc4Error::Refused { object: String::from("/"), code };
        let typed = Typed::of(self.definitions()?, nc_type, Endianness::Native);
        Ok(typed.map_err(refused)?.form.size)
    }

    /// Makes lengths what a put has made them that is in the file.
    pub fn grown(&mut self, group: GroupId, id: VarId, slab: &Hyperslab<'_>) {
        let Ok((model, var)) = self.0.var(group, id) else { return };
        let fixed = fixed(model, var);
        self.grow(group, id, &fixed, slab);
    }

    /// Makes a variable, and the dimensions it has, as long as a put that was checked makes them.
    /// `fixed` are the lengths of its dimensions that cannot grow. Gives the smallest length that a dimension had before
    /// which is longer now.
    pub fn grow(
        &mut self,
        group: GroupId,
        var: VarId,
        fixed: &[Option<u64>],
        slab: &Hyperslab<'_>,
    ) -> Option<u64> {
        let model = self.0.model.get_mut()?;
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
}

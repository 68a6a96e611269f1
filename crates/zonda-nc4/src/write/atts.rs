//! Putting, deleting and renaming attributes.

use zonda_convert::{ByteOrder, Converted, Decoder, Encoder, RangeRule};
use zonda_format::{AttPut, AttView, Values};
use zonda_format::{VarRef, VlenSink};
use zonda_model::{
    ExtType, MAX_NAME_BYTES, MemType, NcError, VarId, memory, normalize_name, sought_name,
};

use super::ObjectKey;
use super::datatypes::Typed;
use super::define::{Definer, stored_name};
use super::draft::VarDraft;
use super::settings::FILL_VALUE;
use super::type_size::{check_attribute, check_fill};
use super::{OwnedValues, owned_values};
use crate::element_form::NC_STRING;
use crate::fault::{Fault, Outcome, refuse_if};
use crate::get::default_element;
use crate::hidden_atts;
use crate::model::{Endianness, GroupId, Model, Var};
use crate::tuning::SMALL_ATTRIBUTE_BYTES;
use crate::value_target::{NoVlens, ValueTarget};

/// Values in one attribute.
const MOST_VALUES: usize = i32::MAX as usize;

/// How many copies of an attribute a commit has in memory: its values, its message, the block that is written,
/// and what a write joins. A put asks whether there is memory for all of them, so that an attribute that was
/// accepted can be written.
pub(crate) const COPIES: usize = 4;

/// The type that numbers and text of an attribute have in memory.
fn memory_type(att: &AttPut<'_>) -> Option<MemType> {
    att.mem.or(ExtType::from_nc_type(att.nc_type).map(ExtType::natural_mem))
}

impl From<VarRef> for ObjectKey {
    fn from(owner: VarRef) -> ObjectKey {
        match owner.var {
            VarId::GLOBAL => ObjectKey::Group(owner.group),
            var => ObjectKey::Var(owner.group, var),
        }
    }
}

impl Definer<'_> {
    /// Checks a put, and gives the bytes that its values take in memory.
    pub(super) fn check_put_att(&mut self, att: &AttPut<'_>) -> Outcome<usize> {
        let &AttPut { owner, name, nc_type, n_values, .. } = att;
        let mem = memory_type(att);
        let stored = self.check_put(owner, name, nc_type, n_values, mem, att.mem.is_none())?;
        let mut elem = mem.map_or(0, MemType::size);
        if ExtType::from_nc_type(nc_type).is_none() {
            let typed = Typed::of(self.model, nc_type, Endianness::Native)?;
            if owner.var != VarId::GLOBAL && *stored == *FILL_VALUE {
                check_fill(typed.form.file_size)?;
            }
            elem = typed.form.size;
        }
        Ok(crate::get::bytes_of(n_values, elem).ok_or(NcError::NoMem)?)
    }

    /// Puts values: converts them, or copies them with all that they point to. `none` notes whether they point to
    /// something although the call does not say where that is.
    pub(super) fn put_att(
        &mut self,
        att: &AttPut<'_>,
        values: Values<'_>,
        none: &mut NoVlens,
    ) -> Outcome<Converted> {
        let &AttPut { owner, name, nc_type, n_values, .. } = att;
        let (mem, bytes) = (memory_type(att), values.bytes);
        let mut converted = Converted::default();
        let stored = self.stored_name(name, false)?;
        let has = |elem: usize| match n_values.checked_mul(elem) {
            Some(len) if len == bytes.len() => Ok(()),
            _ => Err(NcError::Inval),
        };
        let held = match ExtType::from_nc_type(nc_type) {
            None => {
                let typed = Typed::of(self.model, nc_type, Endianness::Native)?;
                has(typed.form.size)?;
                match (att.mem, values.fetch) {
                    // Nothing to convert.
                    (Some(_), _) => OwnedValues::default(),
                    (None, Some(fetch)) => owned_values::take(&typed.form, fetch, bytes)?,
                    (None, None) => owned_values::take(&typed.form, none, bytes)?,
                }
            }
            Some(ext) => {
                let mem = mem.ok_or(NcError::BadType)?;
                has(mem.size())?;
                let size = n_values.checked_mul(ext.size()).ok_or(NcError::NoMem)?;
                let mut native = memory::filled(size, 0)?;
                let rule = range_rule(self.is_classic(), ext, mem);
                let encoder = Encoder::new(ext, ByteOrder::NATIVE, mem, rule);
                converted = encoder.map_err(|_| NcError::Char)?.encode(bytes, &mut native);
                OwnedValues::plain(native)
            }
        };
        refuse_if(none.is_asked, NcError::BadType)?;
        let bytes = held.memory_bytes();
        if bytes > SMALL_ATTRIBUTE_BYTES {
            memory::room::<u8>(bytes.saturating_mul(COPIES))?;
        }
        self.store_att(owner, &stored, nc_type, n_values, held)?;
        Ok(converted)
    }

    /// Deletes an attribute; those after it get the numbers before theirs. The fill value that a
    /// deleted `_FillValue` has set stays.
    ///
    /// # Errors
    /// In the reference's order: `NC_EPERM`, `NC_ENOTINDEFINE` in the classic model, `NC_ENOTVAR`,
    /// `NC_ENOTATT`.
    pub(super) fn del_att(&mut self, owner: VarRef, name: &[u8]) -> Outcome<()> {
        self.group(owner.group)?;
        self.writing()?;
        self.begin_definitions()?;
        let atts = self.edit_atts(owner)?;
        let name = normalize_name(name)?;
        let number = atts.find(&name).ok_or(NcError::NotAtt)?;
        atts.delete(number);
        self.mark(owner.into());
        Ok(())
    }

    /// Renames an attribute. It keeps its number until the file is closed, and comes last when that is opened again.
    ///
    /// # Errors
    /// In the reference's order: `NC_EMAXNAME`, `NC_EPERM`, `NC_EBADNAME`, `NC_ENOTVAR`,
    /// `NC_ENAMEINUSE`, `NC_ENOTATT`; in the classic model `NC_ENOTINDEFINE` for a longer name in
    /// data mode. Also `NC_ENAMEINUSE` for a name that netCDF keeps for itself.
    pub(super) fn rename_att(
        &mut self,
        owner: VarRef,
        name: &[u8],
        new_name: &[u8],
    ) -> Outcome<()> {
        self.group(owner.group)?;
        refuse_if(new_name.len() > MAX_NAME_BYTES, NcError::MaxName)?;
        self.writing()?;
        let new_name = stored_name(new_name)?;
        let (is_strict, is_defining) = (self.is_classic(), self.is_defining());
        let atts = self.edit_atts(owner)?;
        refuse_if(atts.find(&new_name).is_some(), NcError::NameInUse)?;
        let old = sought_name(name, NcError::BadName)?;
        let number = atts.find(&old).ok_or(NcError::NotAtt)?;
        refuse_if(is_strict && !is_defining && new_name.len() > old.len(), NcError::NotInDefine)?;
        refuse_if(hidden_atts::is_kept(&new_name), NcError::NameInUse)?;
        atts.rename(number, new_name);
        self.mark(owner.into());
        Ok(())
    }

    /// The checks of a put, in the reference's order; gives the name as it is stored.
    fn check_put(
        &mut self,
        owner: VarRef,
        name: &[u8],
        nc_type: i32,
        n_values: usize,
        mem: Option<MemType>,
        is_natural: bool,
    ) -> Outcome<Box<[u8]>> {
        refuse_if(n_values > MOST_VALUES, NcError::Inval)?;
        refuse_if(name.len() > MAX_NAME_BYTES, NcError::BadName)?;
        self.writing()?;
        let stored = self.stored_name(name, false)?;
        let in_root = owner.group == GroupId::ROOT;
        refuse_if(
            (in_root || owner.var != VarId::GLOBAL) && hidden_atts::is_kept(&stored),
            NcError::NameInUse,
        )?;
        // Values of ranks have lengths of their own, and whether definitions have begun has to be the same on all of them.
        let may_grow = self.writing()?.is_in_team && !self.is_classic();
        let atts = self.edit_atts(owner)?;
        let known = atts.find(&stored).and_then(|number| atts.info(number));
        let grows = known.is_none_or(|info| {
            let old = usize::try_from(info.len).unwrap_or(usize::MAX);
            !may_grow && bytes_of(nc_type, n_values) > bytes_of(info.nc_type, old)
        });
        if grows {
            self.begin_definitions()?;
        }
        let ext = ExtType::from_nc_type(nc_type);
        let is_text = |is: bool| if is { Some(()) } else { None };
        refuse_if(nc_type == 0, NcError::BadType)?;
        let text_in = is_text(mem == Some(MemType::Text));
        let text_out = is_text(ext == Some(ExtType::Char));
        refuse_if(!is_natural && (text_in != text_out || nc_type == NC_STRING), NcError::Char)?;
        refuse_if(self.is_classic() && nc_type > ExtType::Double.nc_type(), NcError::StrictNc3)?;
        refuse_if(nc_type < 0, NcError::Inval)?;
        let is_user = nc_type > NC_STRING;
        refuse_if(is_user && self.model.user_type(nc_type).is_none(), NcError::BadTypId)?;
        if owner.var != VarId::GLOBAL && *stored == *FILL_VALUE {
            refuse_if(n_values != 1, NcError::Inval)?;
            let var = self.var(owner)?;
            refuse_if(
                var.draft.as_deref().is_none_or(|draft| draft.is_written),
                NcError::LateFill,
            )?;
            refuse_if(var.nc_type != nc_type, NcError::BadType)?;
        }
        refuse_if(is_user && !is_natural && n_values > 0, NcError::DapUrl)?;
        Ok(stored)
    }

    fn store_att(
        &mut self,
        owner: VarRef,
        name: &[u8],
        nc_type: i32,
        n_values: usize,
        held: OwnedValues,
    ) -> Outcome<()> {
        let sets_fill = owner.var != VarId::GLOBAL && *name == *FILL_VALUE;
        let fill = sets_fill.then(|| held.clone());
        if self.edit_atts(owner)?.is_in_header() {
            check_attribute(self.model, nc_type, n_values)?;
        }
        self.edit_atts(owner)?.put(name, nc_type, n_values as u64, held)?;
        if let Some(fill) = fill {
            let var = self.model.var_mut(owner.group, owner.var).ok_or(NcError::NotVar)?;
            let draft = var.draft.as_deref_mut().ok_or(NcError::LateFill)?;
            draft.fill_value = Some(fill);
            self.refresh(owner)?;
            // The file form of the fill value before is not used any more.
            let key = ObjectKey::Var(owner.group, owner.var);
            self.writing()?.stores.fills.remove(&key);
        }
        self.mark(owner.into());
        Ok(())
    }
}

/// How values that do not fit are counted: in the classic model a byte may change its sign and is not counted.
fn range_rule(is_classic: bool, ext: ExtType, mem: MemType) -> RangeRule {
    let is_byte = ext == ExtType::Byte && mem == MemType::U8;
    if is_classic && is_byte { RangeRule::ByteIsUnsigned } else { RangeRule::Cast }
}

/// Bytes of values, as the reference computes them to find out whether an attribute grows: it takes -1 for the
/// size of a type that is not atomic.
fn bytes_of(nc_type: i32, n_values: usize) -> usize {
    let size = ExtType::from_nc_type(nc_type).map_or(usize::MAX, ExtType::size);
    n_values.wrapping_mul(size)
}

/// Reads an attribute that was put since the file was opened.
pub(crate) fn get_owned(
    model: &Model,
    info: &AttView<'_>,
    held: &OwnedValues,
    target: ValueTarget<'_>,
    out: &mut [u8],
) -> Outcome<Converted> {
    let refused = Fault::Refused;
    let n = usize::try_from(info.len).map_err(|_| refused(NcError::NoMem))?;
    let has = |elem: usize| match n.checked_mul(elem) {
        Some(len) if len == out.len() => Ok(()),
        _ => Err(Fault::wrong_length()),
    };
    let Some(ext) = ExtType::from_nc_type(info.nc_type) else {
        let ValueTarget::Natural(place) = target else {
            return Err(refused(NcError::BadType));
        };
        let typed = Typed::of(model, info.nc_type, Endianness::Native).map_err(refused)?;
        has(typed.form.size)?;
        owned_values::give(held, &typed.form, place, out).map_err(refused)?;
        return Ok(Converted::default());
    };
    let mem = match target {
        ValueTarget::Atomic(mem) => mem,
        ValueTarget::Natural(_) => ext.natural_mem(),
    };
    let rule = range_rule(model.is_classic, ext, mem);
    let decoder = Decoder::new(ext, ByteOrder::NATIVE, mem, rule);
    let decoder = decoder.map_err(|_| refused(NcError::Char))?;
    has(mem.size())?;
    Ok(decoder.decode(held.bytes(), out))
}

/// The fill value of a variable that has a draft, in memory form.
pub(crate) fn draft_fill(
    model: &Model,
    var: &Var,
    draft: &VarDraft,
    place: &mut dyn VlenSink,
    out: &mut [u8],
) -> Outcome<()> {
    let Typed { form, .. } = Typed::of(model, var.nc_type, Endianness::Native)?;
    let out = out.get_mut(..form.size).ok_or(NcError::Inval)?;
    match &draft.fill_value {
        Some(held) => Ok(owned_values::give(held, &form, place, out)?),
        None => default_element(model, var.nc_type, &form, place, out),
    }
}

#[cfg(test)]
mod tests;

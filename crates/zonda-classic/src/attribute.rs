//! Attributes: writing, reading, renaming, deleting.

use smallvec::SmallVec;
use zonda_convert::{ByteOrder, Converted, Decoder, Encoder, RangeRule};
use zonda_format::{AttAccess, AttPut, Transfer, VarRef};
use zonda_model::{ExtType, MemType, VarId, memory};

use crate::atts::Att;
use crate::define::valid_name;
use crate::error::{ClassicError, shown, wrong_length};
use crate::file::ClassicFile;
use crate::header::{Version, round_up};

/// Most values of one attribute (the reference's limit in every format).
const MAX_VALUES: usize = 0x7FFF_FFFF;

/// How often the bytes of an attribute are in memory while it is committed.
const COPIES: usize = 4;

/// Bytes of an attribute that is not worth asking for.
const SMALL: usize = 1 << 16;

/// How `NC_BYTE` and unsigned char go together in a format.
pub(crate) fn range_rule(version: Version) -> RangeRule {
    if version == Version::Cdf5 { RangeRule::Strict } else { RangeRule::ByteIsUnsigned }
}

/// Refuses text as numbers and numbers as text; otherwise the memory type to use.
pub(crate) fn check_mix(
    ty: ExtType,
    mem: Option<MemType>,
    object: impl FnOnce() -> String,
) -> Result<MemType, ClassicError> {
    let mem = mem.unwrap_or(ty.natural_mem());
    if (mem == MemType::Text) == (ty == ExtType::Char) {
        Ok(mem)
    } else {
        Err(ClassicError::TextNumberMix(object()))
    }
}

impl ClassicFile {
    /// First step of putting an attribute: bytes that its values take in memory.
    ///
    /// # Errors
    /// In the reference's order: read-only, no such variable, type not in the format, text mixed with numbers, too many values.
    pub fn check_put_att(&self, att: &AttPut<'_>) -> Result<usize, ClassicError> {
        self.base.require_writable()?;
        let (_, mem) = self.types_of(att)?;
        if att.n_values > MAX_VALUES {
            return Err(ClassicError::InvalidArgument(
                "an attribute of more than 2147483647 values",
            ));
        }
        // In range: of at most 2147483647 values.
        att.n_values.checked_mul(mem.size()).ok_or_else(wrong_length)
    }

    /// The type of an attribute, and that of its values in memory.
    fn types_of(&self, att: &AttPut<'_>) -> Result<(ExtType, MemType), ClassicError> {
        let header = self.state.require_open()?;
        header.atts(att.owner.var)?;
        let ty = header.version.type_of(att.nc_type)?;
        Ok((ty, check_mix(ty, att.mem, || shown(att.name))?))
    }

    /// Second step of putting an attribute. In data mode an existing one is overwritten if the new value is not longer.
    ///
    /// # Errors
    /// Memory of another length than the check said; not in define mode, bad name. Values that do not fit the
    /// type are counted, not refused.
    pub fn put_att(&mut self, att: &AttPut<'_>, memory: &[u8]) -> Result<Converted, ClassicError> {
        let (ty, mem) = self.types_of(att)?;
        let AttPut { owner: VarRef { var: owner, .. }, name, n_values, .. } = *att;
        if n_values.checked_mul(mem.size()) != Some(memory.len()) {
            return Err(wrong_length());
        }
        let in_define = self.state.in_define();
        let header = &mut self.state.header;
        let version = header.version;
        let existing = header.att_named(owner, name)?;
        let len = n_values.checked_mul(ty.size()).ok_or_else(wrong_length)?;
        let atts = header.atts_mut(owner)?;
        let old = existing.and_then(|i| atts.get_mut(i));
        let fits = old
            .as_ref()
            .is_some_and(|old| round_up(len as u64, 4) <= round_up(old.bytes.len() as u64, 4));
        if !in_define && !fits {
            return Err(ClassicError::NotInDefineMode);
        }
        let stored = match &old {
            // In data mode the reference keeps the name without looking at it again.
            Some(old) if !in_define => old.name.clone(),
            _ => valid_name(name)?,
        };
        let (bytes, converted) = encode(version, ty, mem, memory, len)?;
        let att = Att { name: stored, ty, len: n_values as u64, bytes };
        match old {
            // It was found by its name, so that is the same.
            Some(slot) => *slot = att,
            None => atts.push(att),
        }
        self.state.header_dirty |= !in_define;
        Ok(converted)
    }
}

impl ClassicFile {
    /// First step of reading an attribute: bytes that its values take in memory.
    ///
    /// # Errors
    /// In the reference's order: no such variable, no such attribute, text mixed with numbers.
    pub fn check_get_att(&self, get: &mut Transfer<AttAccess<'_>>) -> Result<(), ClassicError> {
        get.forget();
        let header = self.state.require_open()?;
        let att = get.of();
        let (index, found) = header.att(att.owner.var, att.name)?;
        if found.len == 0 {
            return Ok(());
        }
        let mem = check_mix(found.ty, att.mem, || shown(att.name))?;
        let n_elems = found.bytes.len().checked_div(found.ty.size()).ok_or_else(wrong_length)?;
        let n_bytes = n_elems.checked_mul(mem.size()).ok_or_else(wrong_length)?;
        get.note(n_bytes, n_elems, Some(mem), [index as u64, 0]);
        Ok(())
    }

    /// Second step of reading an attribute.
    ///
    /// # Errors
    /// Memory of another length than the check said. Values that do not fit are counted, not refused.
    pub fn get_att(
        &self,
        get: &Transfer<AttAccess<'_>>,
        out: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        if out.len() != get.n_bytes {
            return Err(wrong_length());
        }
        let att = get.of();
        let Some(mem) = get.mem else { return Ok(Converted { out_of_range: 0 }) };
        let header = self.state.require_open()?;
        let index = usize::try_from(get.found[0]).map_err(|_| wrong_length())?;
        let found = header.atts(att.owner.var)?.get(index).ok_or_else(wrong_length)?;
        let decoder = Decoder::new(found.ty, ByteOrder::Big, mem, range_rule(header.version));
        match decoder {
            Ok(decoder) => Ok(decoder.decode(found.bytes, out)),
            Err(_) => Err(ClassicError::TextNumberMix(shown(att.name))),
        }
    }
}

impl ClassicFile {
    /// Deletes an attribute; those behind it move up.
    ///
    /// # Errors
    /// In the reference's order: not in define mode, no such variable, no such attribute.
    pub fn del_att(&mut self, owner: VarId, name: &[u8]) -> Result<(), ClassicError> {
        let header = self.state.require_define()?;
        let index = header.find_att(owner, name)?;
        let atts = header.atts_mut(owner)?;
        atts.remove(index);
        Ok(())
    }

    /// Renames an attribute. In data mode the new name must fit the space of the old one.
    ///
    /// # Errors
    /// In the reference's order: read-only, no such variable, bad name, no such attribute, name in
    /// use, not in define mode.
    pub fn rename_att(
        &mut self,
        owner: VarId,
        name: &[u8],
        new_name: &[u8],
    ) -> Result<(), ClassicError> {
        self.base.require_writable()?;
        let state = &mut self.state;
        state.require_open()?;
        let in_define = state.in_define();
        let header = &mut state.header;
        header.atts(owner)?;
        let stored = valid_name(new_name)?;
        let index = header.find_att(owner, name)?;
        if header.att_named(owner, &stored)?.is_some() {
            return Err(ClassicError::NameInUse(shown(new_name)));
        }
        let atts = header.atts_mut(owner)?;
        let has_room = |att: &mut Att| att.name.has_room_for(stored.len());
        if !in_define && !atts.get_mut(index).is_some_and(has_room) {
            return Err(ClassicError::NotInDefineMode);
        }
        atts.rename(index, stored, in_define);
        state.header_dirty |= !in_define;
        Ok(())
    }
}

fn encode(
    version: Version,
    ty: ExtType,
    mem: MemType,
    memory: &[u8],
    len: usize,
) -> Result<(SmallVec<[u8; 16]>, Converted), ClassicError> {
    if len > SMALL {
        // A commit puts all of it into the header that it writes, beside the one that is there.
        memory::room::<u8>(len.saturating_mul(COPIES))?;
    }
    let mut bytes = SmallVec::new();
    if len > SMALL {
        bytes = SmallVec::from_vec(memory::filled(len, 0u8)?);
    }
    bytes.resize(len, 0);
    match Encoder::new(ty, ByteOrder::Big, mem, range_rule(version)) {
        Ok(encoder) => {
            let converted = encoder.encode(memory, &mut bytes);
            Ok((bytes, converted))
        }
        // `check_mix` has refused every pair that the encoder refuses.
        Err(_) => Ok((bytes, Converted { out_of_range: 0 })),
    }
}

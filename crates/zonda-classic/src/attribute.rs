//! Attributes: writing, reading, renaming, deleting.

use smallvec::SmallVec;
use zonda_convert::{ByteOrder, Converted, Decoder, Encoder, RangeRule};
use zonda_model::{ExtType, MemType, VarId, memory};

use crate::atts::Att;
use crate::define::valid_name;
use crate::error::{ClassicError, shown};
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
        Err(ClassicError::TextNumberMix { object: object() })
    }
}

impl ClassicFile {
    /// Writes an attribute of `n_values` values; `values` is asked for their bytes in memory form
    /// (type `mem`, by default the natural one of `nc_type`) once the other arguments are checked.
    ///
    /// In data mode an existing attribute is overwritten if the new value is not longer.
    ///
    /// # Errors
    /// In the reference's order: read-only, no such variable, type not in the format, text mixed
    /// with numbers, too many values, not in define mode, bad name. Values that do not fit the
    /// type are counted, not refused.
    pub fn put_att<'a, E: From<ClassicError>>(
        &self,
        owner: VarId,
        name: &[u8],
        nc_type: i32,
        n_values: usize,
        mem: Option<MemType>,
        values: impl FnOnce(usize) -> Result<&'a [u8], E>,
    ) -> Result<Converted, E> {
        self.require_writable()?;
        let mut state = self.state.write();
        state.require_open()?;
        let in_define = state.in_define();
        let header = &mut state.header;
        header.atts(owner)?;
        let version = header.version;
        let ty = version.type_of(nc_type)?;
        let mem = check_mix(ty, mem, || shown(name))?;
        if n_values > MAX_VALUES {
            let what = "an attribute of more than 2147483647 values";
            return Err(ClassicError::InvalidArgument { what }.into());
        }
        let mem_len = n_values.saturating_mul(mem.size());
        let memory = if n_values == 0 { &[][..] } else { values(mem_len)? };
        if memory.len() != mem_len {
            let what = "the memory given is not as long as its element count says";
            return Err(ClassicError::InvalidArgument { what }.into());
        }
        let existing = header.att_named(owner, name)?;
        let len = n_values.saturating_mul(ty.size());
        let atts = header.atts_mut(owner)?;
        let old = existing.and_then(|i| atts.get_mut(i));
        let fits = old
            .as_ref()
            .is_some_and(|old| round_up(len as u64, 4) <= round_up(old.bytes.len() as u64, 4));
        if !in_define && !fits {
            return Err(ClassicError::NotInDefineMode.into());
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
        state.header_dirty |= !in_define;
        Ok(converted)
    }

    /// Reads the values of an attribute as `mem` (by default its natural type) into the memory that
    /// `out` hands over when it is told the length in bytes.
    ///
    /// # Errors
    /// In the reference's order: no such variable, no such attribute, text mixed with numbers.
    /// Values that do not fit `mem` are counted, not refused.
    pub fn get_att<'a, E: From<ClassicError>>(
        &self,
        owner: VarId,
        name: &[u8],
        mem: Option<MemType>,
        out: impl FnOnce(usize) -> Result<&'a mut [u8], E>,
    ) -> Result<Converted, E> {
        let state = self.state.read();
        let header = state.require_open()?;
        let (_, att) = header.att(owner, name)?;
        if att.len == 0 {
            return Ok(Converted { out_of_range: 0 });
        }
        let mem = check_mix(att.ty, mem, || shown(name))?;
        let n_values = att.bytes.len().checked_div(att.ty.size()).unwrap_or(0);
        let memory = out(n_values.saturating_mul(mem.size()))?;
        let decoder = Decoder::new(att.ty, ByteOrder::Big, mem, range_rule(header.version));
        match decoder {
            Ok(decoder) => Ok(decoder.decode(att.bytes, memory)),
            Err(_) => Err(ClassicError::TextNumberMix { object: shown(name) }.into()),
        }
    }

    /// Deletes an attribute; those behind it move up.
    ///
    /// # Errors
    /// In the reference's order: not in define mode, no such variable, no such attribute.
    pub fn del_att(&self, owner: VarId, name: &[u8]) -> Result<(), ClassicError> {
        let mut state = self.state.write();
        let header = state.require_define()?;
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
        &self,
        owner: VarId,
        name: &[u8],
        new_name: &[u8],
    ) -> Result<(), ClassicError> {
        self.require_writable()?;
        let mut state = self.state.write();
        state.require_open()?;
        let in_define = state.in_define();
        let header = &mut state.header;
        header.atts(owner)?;
        let stored = valid_name(new_name)?;
        let index = header.find_att(owner, name)?;
        if header.att_named(owner, &stored)?.is_some() {
            return Err(ClassicError::NameInUse { name: shown(new_name) });
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

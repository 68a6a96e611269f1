//! The short way for small transfers: a few elements that exist and lie side by side.
//!
//! Programs that put and get single elements spend more on checks than on bytes. Here one pass over
//! the dimensions checks and locates; whatever is not plain, wrong arguments included, goes the
//! long way in `transfer`, which knows all codes.

use std::sync::atomic::Ordering;

use zonda_convert::{ByteOrder, Converted, Decoder, Encoder, RangeRule};
use zonda_model::{ExtType, Hyperslab, MemType, VarId};
use zonda_storage::Storage;

use crate::attribute::range_rule;
use crate::error::ClassicError;
use crate::file::{ClassicFile, Mode, State};
use crate::transfer::read_or_zeros;

/// Runs up to this many bytes are converted on the stack: a latitude of a climate model's grid.
pub(crate) const SMALL: usize = 1024;
/// Shorter ones do without clearing so much of it.
const TINY: usize = 64;

/// Calls `f` with a buffer of `len` bytes, at most [`SMALL`], on the stack. A frame of its own, so
/// that calls with tiny buffers stay light.
#[inline(never)]
pub(crate) fn on_stack<R>(len: usize, f: impl FnOnce(&mut [u8]) -> R) -> R {
    let mut buffer = [0u8; SMALL];
    f(buffer.get_mut(..len).unwrap_or_default())
}

/// A few elements side by side in the file.
pub(crate) struct PlainRun {
    at: u64,
    pub(crate) n_elems: usize,
    ty: ExtType,
    rule: RangeRule,
}

impl PlainRun {
    /// The run that a hyperslab is, and the memory type to use; `None` unless it is a block of at
    /// most [`SMALL`] bytes of existing elements in data mode, with memory of a fitting type.
    #[inline]
    pub(crate) fn find(
        file: &ClassicFile,
        state: &State,
        id: VarId,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
    ) -> Option<(PlainRun, MemType)> {
        if slab.stride.is_some() || !matches!(state.mode, Mode::Data) {
            return None;
        }
        let header = &state.header;
        let var = header.vars.get(usize::try_from(id.0).ok()?)?;
        let mem = mem.unwrap_or(var.ty.natural_mem());
        if (mem == MemType::Text) != (var.ty == ExtType::Char) {
            return None;
        }
        let rank = var.shape.len();
        let axes = var.shape.iter().zip(slab.start.get(..rank)?).zip(slab.count.get(..rank)?);
        let size = var.ty.size() as u64;
        let mut run_bytes = size;
        let mut step = size;
        let mut at = var.begin;
        for (axis, ((&len, &start), &count)) in axes.enumerate().rev() {
            let (start, count) = (start as u64, count as u64);
            let record = axis == 0 && len == 0;
            let len = if record { file.n_records.load(Ordering::Acquire) } else { len };
            if record {
                step = header.layout.record_len;
            }
            if count == 0 || start >= len || count > len.wrapping_sub(start) {
                return None;
            }
            at = at.checked_add(start.checked_mul(step)?)?;
            if count > 1 {
                if run_bytes != step {
                    return None;
                }
                run_bytes = step.checked_mul(count)?;
            }
            step = step.checked_mul(len)?;
        }
        if run_bytes > SMALL as u64 {
            return None;
        }
        let n_elems = usize::try_from(run_bytes.checked_div(size)?).ok()?;
        let rule = range_rule(header.version);
        Some((PlainRun { at, n_elems, ty: var.ty, rule }, mem))
    }

    #[inline]
    pub(crate) fn write(
        &self,
        storage: &dyn Storage,
        mem: MemType,
        memory: &[u8],
    ) -> Result<Converted, ClassicError> {
        let encoder =
            Encoder::new(self.ty, ByteOrder::Big, mem, self.rule).map_err(|_| self.mix())?;
        let len = self.n_elems.saturating_mul(encoder.ext_size());
        if let Some(external) = [0u8; TINY].get_mut(..len) {
            return self.encode(storage, &encoder, memory, external);
        }
        on_stack(len, |external| self.encode(storage, &encoder, memory, external))
    }

    #[inline(always)]
    fn encode(
        &self,
        storage: &dyn Storage,
        encoder: &Encoder,
        memory: &[u8],
        external: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        if encoder.keeps_unfit() {
            read_or_zeros(storage, self.at, external)?;
        }
        let converted = encoder.encode(memory, external);
        storage.write_at(self.at, external)?;
        Ok(converted)
    }

    #[inline]
    pub(crate) fn read(
        &self,
        storage: &dyn Storage,
        mem: MemType,
        memory: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        let decoder =
            Decoder::new(self.ty, ByteOrder::Big, mem, self.rule).map_err(|_| self.mix())?;
        let len = self.n_elems.saturating_mul(decoder.ext_size());
        if let Some(external) = [0u8; TINY].get_mut(..len) {
            return self.decode(storage, &decoder, memory, external);
        }
        on_stack(len, |external| self.decode(storage, &decoder, memory, external))
    }

    #[inline(always)]
    fn decode(
        &self,
        storage: &dyn Storage,
        decoder: &Decoder,
        memory: &mut [u8],
        external: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        read_or_zeros(storage, self.at, external)?;
        Ok(decoder.decode(external, memory))
    }

    /// `find` lets no such pair through; the converter's word counts all the same.
    #[cold]
    fn mix(&self) -> ClassicError {
        ClassicError::TextNumberMix { object: self.ty.name().to_owned() }
    }
}

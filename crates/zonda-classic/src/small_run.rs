//! The short way for small transfers: a few elements that exist and lie side by side.
//!
//! Programs that put and get single elements spend more on checks than on bytes. Here one pass over
//! the dimensions checks and locates; whatever is not plain, wrong arguments included, goes the
//! long way in `transfer`, which knows all codes.

use std::sync::atomic::Ordering;

use zonda_convert::{ByteOrder, Converted, Decoder, Encoder, RangeRule, swap_in_place};
use zonda_format::{Access, Transfer};
use zonda_model::{ExtType, Hyperslab, MemType, VarId};
use zonda_storage::Storage;

use crate::attribute::range_rule;
use crate::error::ClassicError;
use crate::file::{Base, FileMode, FileState};
use crate::header::{Header, Var};
use crate::past_end::{BUFFER, decode_or_zeros, read_or_zeros};
use crate::tuning::{LITTLE_RUN_BYTES, NO_KERNEL_BYTES, STACK_RUN_BYTES, TINY_RUN_BYTES};

/// Marks in `Transfer::found`, beside a place in the file, that say what the second step of a transfer does; 0 says nothing. This
/// one: a few elements side by side, from that place on, are converted.
pub(crate) const CONVERTED: u64 = 1;
/// The same without a conversion, the memory having the file's own type; the bytes of an element are added to the mark.
pub(crate) const NATURAL: u64 = 16;
/// Calls `f` with a buffer of `len` bytes, at most [`STACK_RUN_BYTES`], on the stack.
#[inline(always)]
pub(crate) fn on_stack<R>(
    len: usize,
    f: impl FnOnce(&mut [u8]) -> Result<R, ClassicError>,
) -> Result<R, ClassicError> {
    if len <= LITTLE_RUN_BYTES {
        framed::<LITTLE_RUN_BYTES, R>(len, f)
    } else {
        framed::<STACK_RUN_BYTES, R>(len, f)
    }
}

/// A frame of its own, so that calls with tiny buffers stay light.
#[inline(never)]
fn framed<const SIZE: usize, R>(
    len: usize,
    f: impl FnOnce(&mut [u8]) -> Result<R, ClassicError>,
) -> Result<R, ClassicError> {
    let mut buffer = [0u8; SIZE];
    f(buffer.get_mut(..len).ok_or(BUFFER)?)
}

/// A native number of `N` bytes as the file has it; `None` for another length.
#[inline]
fn big_endian<const N: usize>(number: &[u8]) -> Option<[u8; N]> {
    let mut bytes = <[u8; N]>::try_from(number).ok()?;
    if ByteOrder::NATIVE == ByteOrder::Little {
        bytes.reverse();
    }
    Some(bytes)
}

/// Makes the file's numbers of `size` bytes native ones.
#[inline(always)]
fn native_endian(numbers: &mut [u8], size: usize) {
    if ByteOrder::NATIVE == ByteOrder::Big {
        return;
    }
    // So few bytes need no kernel.
    match size {
        8 if numbers.len() <= NO_KERNEL_BYTES => {
            numbers.as_chunks_mut::<8>().0.iter_mut().for_each(reverse)
        }
        4 if numbers.len() <= NO_KERNEL_BYTES => {
            numbers.as_chunks_mut::<4>().0.iter_mut().for_each(reverse)
        }
        _ => swap_in_place(numbers, size),
    }
}

#[inline(always)]
fn reverse<const N: usize>(number: &mut [u8; N]) {
    number.reverse();
}

/// Native numbers of `size` bytes as the file has them, both of one length.
#[inline(always)]
fn to_big_endian(native: &[u8], external: &mut [u8], size: usize) {
    fn each<const N: usize>(native: &[u8], external: &mut [u8]) {
        let both = external.as_chunks_mut::<N>().0.iter_mut().zip(native.as_chunks::<N>().0);
        both.for_each(|(external, native)| {
            *external = *native;
            if ByteOrder::NATIVE == ByteOrder::Little {
                external.reverse();
            }
        });
    }
    match size {
        8 => each::<8>(native, external),
        4 => each::<4>(native, external),
        2 => each::<2>(native, external),
        _ => external.copy_from_slice(native),
    }
}

/// Reads up to [`STACK_RUN_BYTES`] bytes of elements of `size` bytes in the file's own type.
#[inline(always)]
pub(crate) fn read_natural(
    storage: &dyn Storage,
    at: u64,
    memory: &mut [u8],
    size: usize,
) -> Result<Converted, ClassicError> {
    // The bytes are swapped in the caller's memory.
    read_or_zeros(storage, at, memory)?;
    native_endian(memory, size);
    Ok(Converted { out_of_range: 0 })
}

/// Writes up to [`TINY_RUN_BYTES`] bytes of elements of `size` bytes in the file's own type.
#[inline(always)]
pub(crate) fn write_natural(
    storage: &dyn Storage,
    at: u64,
    memory: &[u8],
    size: usize,
) -> Result<Converted, ClassicError> {
    if memory.len() == size {
        // One stays in a register.
        if let Some(external) = big_endian::<8>(memory) {
            return write_external(storage, at, &external);
        }
        if let Some(external) = big_endian::<4>(memory) {
            return write_external(storage, at, &external);
        }
    }
    let mut tiny = [0u8; TINY_RUN_BYTES];
    let external = tiny.get_mut(..memory.len()).ok_or(BUFFER)?;
    to_big_endian(memory, external, size);
    write_external(storage, at, external)
}

#[inline(always)]
fn write_external(
    storage: &dyn Storage,
    at: u64,
    external: &[u8],
) -> Result<Converted, ClassicError> {
    storage.write_at(at, external)?;
    Ok(Converted { out_of_range: 0 })
}

/// A few elements side by side in the file.
pub(crate) struct SmallRun {
    at: u64,
    pub(crate) n_elems: usize,
    ty: ExtType,
    rule: RangeRule,
}

impl SmallRun {
    /// The run that a hyperslab is, and the memory type to use; `None` unless it is a block of at
    /// most [`STACK_RUN_BYTES`] bytes of existing elements in data mode, with memory of a fitting type.
    // Always inline: a result handed over in memory is read in other widths than it was written in,
    // and the processor waits for that.
    #[inline(always)]
    pub(crate) fn find(
        file: &Base,
        state: &FileState,
        id: VarId,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
    ) -> Option<(SmallRun, MemType)> {
        if slab.stride.is_some() || !matches!(state.mode, FileMode::Data) {
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
        if run_bytes > STACK_RUN_BYTES as u64 {
            return None;
        }
        let n_elems = usize::try_from(run_bytes.checked_div(size)?).ok()?;
        let rule = range_rule(header.version);
        Some((SmallRun { at, n_elems, ty: var.ty, rule }, mem))
    }

    /// Notes the run for the second step of a transfer; up to `most` bytes of the file's own type go without a converter.
    #[inline(always)]
    pub(crate) fn note_in(&self, mem: MemType, most: usize, by: &mut Transfer<Access<'_>>) {
        let (natural, n_bytes) = (NATURAL | self.ty.size() as u64, self.n_bytes(mem));
        let is_natural = mem == self.ty.natural_mem() && n_bytes <= most;
        let kind = if is_natural { natural } else { CONVERTED };
        by.note(n_bytes, self.n_elems, Some(mem), [kind, self.at]);
    }

    /// Bytes that it has in memory.
    #[inline(always)]
    pub(crate) fn n_bytes(&self, mem: MemType) -> usize {
        // At most STACK_RUN_BYTES elements.
        self.n_elems.wrapping_mul(mem.size())
    }

    /// A run that was found before.
    #[inline(always)]
    pub(crate) fn again(header: &Header, var: &Var, at: u64, n_elems: usize) -> SmallRun {
        SmallRun { at, n_elems, ty: var.ty, rule: range_rule(header.version) }
    }

    #[inline(always)]
    pub(crate) fn write(
        &self,
        storage: &dyn Storage,
        mem: MemType,
        memory: &[u8],
    ) -> Result<Converted, ClassicError> {
        if mem == self.ty.natural_mem() && memory.len() <= TINY_RUN_BYTES {
            return write_natural(storage, self.at, memory, self.ty.size());
        }
        self.write_converted(storage, mem, memory)
    }

    fn write_converted(
        &self,
        storage: &dyn Storage,
        mem: MemType,
        memory: &[u8],
    ) -> Result<Converted, ClassicError> {
        let encoder =
            Encoder::new(self.ty, ByteOrder::Big, mem, self.rule).map_err(|_| self.mix())?;
        let len = self.n_elems.saturating_mul(encoder.ext_size());
        if let Some(external) = [0u8; TINY_RUN_BYTES].get_mut(..len) {
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

    #[inline(always)]
    pub(crate) fn read(
        &self,
        storage: &dyn Storage,
        mem: MemType,
        memory: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        if mem == self.ty.natural_mem() && memory.len() <= TINY_RUN_BYTES {
            return read_natural(storage, self.at, memory, self.ty.size());
        }
        self.read_converted(storage, mem, memory)
    }

    fn read_converted(
        &self,
        storage: &dyn Storage,
        mem: MemType,
        memory: &mut [u8],
    ) -> Result<Converted, ClassicError> {
        let decoder =
            Decoder::new(self.ty, ByteOrder::Big, mem, self.rule).map_err(|_| self.mix())?;
        let len = self.n_elems.saturating_mul(decoder.ext_size());
        if let Some(external) = [0u8; TINY_RUN_BYTES].get_mut(..len) {
            return self.decode(storage, &decoder, memory, external);
        }
        on_stack(len, |external| {
            decode_or_zeros(storage, self.at, external, |bytes| decoder.decode(bytes, memory))
        })
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

    /// `find` lets no such pair of types through; an error of the converter is passed on all the same.
    #[cold]
    fn mix(&self) -> ClassicError {
        ClassicError::TextNumberMix(self.ty.name().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use zonda_format::{Access, Destination, Dispatch, DispatchWrite, GroupId, Values};
    use zonda_storage::backend::Memory;

    use super::*;
    use crate::{Reserve, Version};

    /// Every type in runs of every short length, against its bytes turned round one by one: a run
    /// of small numbers may be as long as one large number.
    #[test]
    fn numbers_of_the_files_own_type_are_turned_one_by_one() {
        for ty in ExtType::ALL {
            let storage = Arc::new(Memory::new());
            let mut file = crate::ClassicFile::create(storage.clone(), None, Version::Cdf5, false);
            let dim = file.def_dim(GroupId::ROOT, b"x", 40).unwrap();
            let id = file.def_var(GroupId::ROOT, b"v", ty.nc_type(), &[dim.0]).unwrap();
            file.enddef(Reserve::default()).unwrap();
            let begin = file.header().vars[0].begin;
            for n in 1..40 {
                let len = n * ty.size();
                let memory: Vec<u8> = (0..len).map(|i| (i * 7 + n) as u8).collect();
                let slab = Hyperslab { start: &[1], count: &[n], stride: None };
                let access = Access { var: id.into(), slab, mem: None };
                let put = file.shared_put_now(&mut Transfer::new(access), Values::plain(&memory));
                assert_eq!(put.unwrap().out_of_range, 0);
                let mut stored = vec![0; len];
                storage.read_at(begin + ty.size() as u64, &mut stored).unwrap();
                if ByteOrder::NATIVE == ByteOrder::Little {
                    stored.chunks_mut(ty.size()).for_each(<[u8]>::reverse);
                }
                assert_eq!(stored, memory, "{n} of {}", ty.name());
                let mut back = vec![0; len];
                let got = file.get_now(&mut Transfer::new(access), Destination::plain(&mut back));
                assert_eq!(got.unwrap().out_of_range, 0);
                assert_eq!(back, memory, "{n} of {}", ty.name());
            }
        }
    }
}

//! Elements of a variable without a call of the library for each: through a lease of the bytes around them.

use std::sync::Arc;

use zonda_convert::{ByteOrder, Decoder, Encoder, swap_in_place};
use zonda_format::{PlainPlace, VarRef};
use zonda_model::MemType;
use zonda_storage::Leased;

use crate::dataset::Dataset;

/// Bytes of the longest run that goes through a lease: longer ones are worth a call. Threads that put and get runs of this length do not
/// meet at the lock of the file.
const MOST_BYTES: u64 = 4096;
/// So many bytes of it are in the hands of this thread at once, on its stack.
const PIECE_BYTES: usize = 256;
/// More bytes than these are worth a call of a kernel.
const KERNEL_BYTES: usize = 32;

/// A part of a variable that one thread has for itself ([`Dataset::lease`]), for calls of a few elements one after the other.
///
/// All methods answer false where the lease is over or the elements are not all within it, do not lie side by side, do not
/// exist or do not fit their type: then the ordinary call is to be made, which knows all codes. Nothing was put then, and what
/// memory for a get holds is not specified. A lease is over when definitions change, when somebody else wants the same bytes,
/// and when the file is closed.
#[derive(Debug)]
pub struct LeasedVar {
    place: PlainPlace,
    lease: Arc<dyn Leased>,
    /// For the type in memory that was converted last.
    converters: Option<Converters>,
}

#[derive(Debug)]
struct Converters {
    mem: MemType,
    encoder: Encoder,
    decoder: Decoder,
}

/// Turns the bytes of each element round.
#[inline(always)]
fn swap(bytes: &mut [u8], size: usize) {
    match size {
        // Stored as it is read then, in wide pieces: the processor waits where bytes are read in wider ones than they were stored in.
        _ if bytes.len() > KERNEL_BYTES => swap_in_place(bytes, size),
        8 => bytes.as_chunks_mut::<8>().0.iter_mut().for_each(|element| element.reverse()),
        4 => bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|element| element.reverse()),
        2 => bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|element| element.reverse()),
        _ => {}
    }
}

impl LeasedVar {
    /// Number of dimensions.
    #[inline(always)]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.place.axes.len()
    }

    #[inline(always)]
    fn is_swapped(&self) -> bool {
        self.place.order != ByteOrder::NATIVE
    }

    /// The type in memory, where it needs no conversion but of the order of bytes.
    #[inline(always)]
    fn natural(&self) -> MemType {
        self.place.ty.natural_mem()
    }

    /// Where elements are and how many bytes they have in the file; without `count` it is one.
    #[inline(always)]
    fn run(&self, start: &[usize], count: Option<&[usize]>) -> Option<(u64, usize)> {
        match count {
            Some(count) => self.place.run(start, count, MOST_BYTES),
            None => Some((self.place.element(start)?, self.place.ty.size())),
        }
    }

    /// Bytes in memory of elements that have `len` in the file.
    #[inline(always)]
    fn bytes_of(&self, len: usize, mem: MemType) -> usize {
        len / self.place.ty.size() * mem.size()
    }

    /// Puts one element, or a block; `mem` is the type in memory, the variable's own if there is none. `values` gives as many
    /// bytes as it is asked for, those of the elements.
    // The caller's memory is not touched while the lease is: a signal handler may be about it.
    #[inline(always)]
    #[must_use]
    pub fn put<'v>(
        &mut self,
        start: &[usize],
        count: Option<&[usize]>,
        mem: Option<MemType>,
        values: impl FnOnce(usize) -> &'v [u8],
    ) -> bool {
        let Some((at, len)) = self.run(start, count) else { return false };
        let mem = mem.unwrap_or(self.natural());
        if mem != self.natural() {
            return self.put_converted(at, len, mem, values(self.bytes_of(len, mem)));
        }
        let values = values(len);
        // A number stays in a register.
        if let (8, Ok(mut number)) = (self.place.ty.size(), <[u8; 8]>::try_from(values)) {
            if self.is_swapped() {
                number.reverse();
            }
            return self.lease.put(at, &number);
        }
        // Where the lease ends in the middle, all is put again the ordinary way.
        let mut room = [0; PIECE_BYTES];
        let mut next = at;
        values.chunks(PIECE_BYTES).all(|piece| {
            let at = next;
            next += PIECE_BYTES as u64;
            let Some(bytes) = room.get_mut(..piece.len()) else { return false };
            bytes.copy_from_slice(piece);
            if self.is_swapped() {
                swap(bytes, self.place.ty.size());
            }
            self.lease.put(at, bytes)
        })
    }

    /// Gets one element, or a block, as [`LeasedVar::put`]; `out` gives memory for as many bytes as it is asked for.
    #[inline(always)]
    #[must_use]
    pub fn get<'v>(
        &mut self,
        start: &[usize],
        count: Option<&[usize]>,
        mem: Option<MemType>,
        out: impl FnOnce(usize) -> &'v mut [u8],
    ) -> bool {
        let Some((at, len)) = self.run(start, count) else { return false };
        let mem = mem.unwrap_or(self.natural());
        if mem != self.natural() {
            let out = out(self.bytes_of(len, mem));
            return self.get_converted(at, len, mem, out);
        }
        let out = out(len);
        if let (8, Ok(out)) = (self.place.ty.size(), <&mut [u8; 8]>::try_from(&mut *out)) {
            let mut number = [0; 8];
            if !self.lease.get(at, &mut number) {
                return false;
            }
            if self.is_swapped() {
                number.reverse();
            }
            *out = number;
            return true;
        }
        let mut room = [0; PIECE_BYTES];
        let mut next = at;
        out.chunks_mut(PIECE_BYTES).all(|piece| {
            let at = next;
            next += PIECE_BYTES as u64;
            let Some(bytes) = room.get_mut(..piece.len()) else { return false };
            if !self.lease.get(at, bytes) {
                return false;
            }
            if self.is_swapped() {
                swap(bytes, self.place.ty.size());
            }
            piece.copy_from_slice(bytes);
            true
        })
    }

    /// What converts between the file and `mem`; nothing where a text would be a number.
    #[inline(always)]
    fn converters(&mut self, mem: MemType) -> Option<&Converters> {
        if self.converters.as_ref().is_none_or(|made| made.mem != mem) {
            let PlainPlace { ty, order, rule, .. } = self.place;
            let encoder = Encoder::new(ty, order, mem, rule).ok()?;
            let decoder = Decoder::new(ty, order, mem, rule).ok()?;
            self.converters = Some(Converters { mem, encoder, decoder });
        }
        self.converters.as_ref()
    }

    #[inline(never)]
    fn put_converted(&mut self, at: u64, len: usize, mem: MemType, values: &[u8]) -> bool {
        let mut room = [0; PIECE_BYTES];
        let Some(bytes) = room.get_mut(..len) else { return false };
        let Some(converters) = self.converters(mem) else { return false };
        // Values that do not fit, and what is to stay in their place, are the ordinary call's.
        if converters.encoder.encode(values, bytes).out_of_range > 0 {
            return false;
        }
        self.lease.put(at, bytes)
    }

    #[inline(never)]
    fn get_converted(&mut self, at: u64, len: usize, mem: MemType, out: &mut [u8]) -> bool {
        let mut room = [0; PIECE_BYTES];
        let Some(bytes) = room.get_mut(..len) else { return false };
        if !self.lease.get(at, bytes) {
            return false;
        }
        let Some(converters) = self.converters(mem) else { return false };
        converters.decoder.decode(bytes, out).out_of_range == 0
    }
}

impl Dataset {
    /// Leases the part of a variable around one of its elements to the calling thread, for puts as well if it `writes`; `None`
    /// where that is not possible, or not now: the element has to be one that the thread has put or got just before, of a
    /// variable whose elements lie in the file as its type says, side by side.
    #[must_use]
    pub fn lease(&self, var: VarRef, index: &[usize], writes: bool) -> Option<LeasedVar> {
        if self.is_of_ranks() || self.check_group(var.group).is_err() {
            return None;
        }
        let (place, lease) = self.queued_file.lease(var, index, writes)?;
        Some(LeasedVar { place, lease, converters: None })
    }
}

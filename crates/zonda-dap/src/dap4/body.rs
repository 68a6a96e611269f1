//! Values in a body: those of all variables, one after the other in the order of its DMR, each with a checksum behind it.
//! Spec: DAP4, volume 1, "DAP4 serialized representation".

use std::io::Read;

use zonda_format::OwnedValues;
use zonda_model::memory;

use super::chunks::Chunks;
use super::layout::{Kind, Layout};
use crate::error::{DapError, Document};

/// Bytes of values that are read and handed over at once.
const BLOCK: usize = 64 << 10;

/// Who takes the elements of a variable; nobody, where they are read over.
pub(super) trait Taker {
    /// Elements without strings and sequences.
    fn plain(&mut self, elements: &[u8]) -> Result<(), DapError>;
    /// Elements with strings or sequences.
    fn owned(&mut self, elements: OwnedValues) -> Result<(), DapError>;
}

/// Whether checksums come behind variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sums {
    /// They do, as the sender says, or as was found.
    Come,
    /// They do not.
    None,
    /// Nobody says so. What comes behind the first variable decides: if it is no checksum and yet one, bytes are left at the end, which is an error.
    Unknown,
}

/// Values that are read out of chunks.
#[derive(Debug)]
pub(super) struct Values<R> {
    chunks: Chunks<R>,
    swaps: bool,
    sums: Sums,
    ignores: bool,
    /// Elements as they come, before they are put where they belong.
    raw: Vec<u8>,
    /// The variable whose checksum was none, where nobody says that there are any.
    doubtful: Option<String>,
}

fn no_memory(bytes: usize) -> DapError {
    DapError::NoMemory { document: Document::Dap, bytes: bytes as u64 }
}

impl<R: Read> Values<R> {
    pub(super) fn new(chunks: Chunks<R>, ignores: bool) -> Values<R> {
        let swaps = chunks.is_little_endian() != cfg!(target_endian = "little");
        let sums = match (chunks.says_no_checksums(), ignores) {
            (true, _) => Sums::None,
            (false, true) => Sums::Come,
            (false, false) => Sums::Unknown,
        };
        Values { chunks, swaps, sums, ignores, raw: Vec::new(), doubtful: None }
    }

    /// Reads a variable of so many elements. `says_sum` is whether it has an attribute for its checksum.
    pub(super) fn variable(
        &mut self,
        name: &str,
        layout: &Layout,
        count: u64,
        says_sum: bool,
        taker: &mut dyn Taker,
    ) -> Result<(), DapError> {
        self.chunks.take_crc();
        if layout.has_pointers {
            self.owned(name, layout, count, taker)?;
        } else {
            self.plain(name, layout, count, taker)?;
        }
        self.check(name, says_sum)
    }

    /// Nothing may come any more.
    pub(super) fn finish(self) -> Result<(), DapError> {
        let doubtful = self.doubtful;
        self.chunks.finish().map_err(|error| match (error, doubtful) {
            (DapError::Malformed { document, at, what }, Some(name)) => {
                let what = format!("{what}, or the checksum of {name} is wrong");
                DapError::Malformed { document, at, what }
            }
            (error, _) => error,
        })
    }

    fn plain(
        &mut self,
        name: &str,
        layout: &Layout,
        count: u64,
        taker: &mut dyn Taker,
    ) -> Result<(), DapError> {
        let mut left = count;
        let mut block = Vec::new();
        while left > 0 {
            block.clear();
            let n = if layout.wire.is_some() {
                self.bulk(name, layout, left, &mut block)?
            } else {
                let mut n = 0_u64;
                while n < left && block.len() < BLOCK {
                    self.element(name, layout, &mut block, &mut OwnedValues::default())?;
                    n = n.saturating_add(1);
                }
                n
            };
            taker.plain(&block)?;
            left = left.saturating_sub(n);
        }
        Ok(())
    }

    fn owned(
        &mut self,
        name: &str,
        layout: &Layout,
        count: u64,
        taker: &mut dyn Taker,
    ) -> Result<(), DapError> {
        let mut left = count;
        while left > 0 {
            let (mut elements, mut owned) = (Vec::new(), OwnedValues::default());
            let begin = self.chunks.position();
            while left > 0
                && elements.len() < BLOCK
                && self.chunks.position().saturating_sub(begin) < BLOCK as u64
            {
                self.element(name, layout, &mut elements, &mut owned)?;
                left = left.saturating_sub(1);
            }
            taker.owned(owned.with_bytes(elements))?;
        }
        Ok(())
    }

    /// One element, added to `to` in the form of memory.
    fn element(
        &mut self,
        name: &str,
        layout: &Layout,
        to: &mut Vec<u8>,
        owned: &mut OwnedValues,
    ) -> Result<(), DapError> {
        match &layout.kind {
            Kind::Plain(_) => self.all(name, layout, 1, to),
            Kind::Text => {
                let text = self.counted(name)?;
                let address = owned.keep(text.into());
                push(to, &address.to_ne_bytes())
            }
            Kind::Opaque => {
                let at = self.chunks.position();
                let bytes = self.counted(name)?;
                if bytes.len() > layout.size {
                    let (len, size) = (bytes.len(), layout.size);
                    let what = format!(
                        "byte {at}: an opaque of {name} has {len} bytes, its type {size}; opaquesize={len} makes room"
                    );
                    return Err(DapError::unrepresentable(Document::Dap, what));
                }
                push(to, &bytes)?;
                pad(to, layout.size.saturating_sub(bytes.len()))
            }
            Kind::Structure(_) if layout.wire.is_some() => self.all(name, layout, 1, to),
            Kind::Structure(fields) => {
                let begin = to.len();
                for field in fields {
                    let here = to.len().saturating_sub(begin);
                    pad(to, field.offset.saturating_sub(here))?;
                    if field.layout.wire.is_some() {
                        self.all(name, &field.layout, field.count as u64, to)?;
                        continue;
                    }
                    for _ in 0..field.count {
                        self.element(name, &field.layout, to, owned)?;
                    }
                }
                let here = to.len().saturating_sub(begin);
                pad(to, layout.size.saturating_sub(here))
            }
            Kind::Sequence(record) => {
                let count = self.number(name)?;
                let mut records = Vec::new();
                // Each record has bytes of its own, so the count is believed only as they come.
                if record.wire.is_some() {
                    self.all(name, record, count, &mut records)?;
                } else {
                    for _ in 0..count {
                        self.element(name, record, &mut records, owned)?;
                    }
                }
                let address = if count == 0 { 0 } else { owned.keep(records.into()) };
                push(to, &count.to_ne_bytes())?;
                push(to, &address.to_ne_bytes())
            }
        }
    }

    /// So many elements that all have as many bytes in the body, added to `to`.
    fn all(
        &mut self,
        name: &str,
        layout: &Layout,
        count: u64,
        to: &mut Vec<u8>,
    ) -> Result<(), DapError> {
        let mut left = count;
        while left > 0 {
            left = left.saturating_sub(self.bulk(name, layout, left, to)?);
        }
        Ok(())
    }

    /// At least one of so many such elements, as many as a block has room for. Says how many.
    fn bulk(
        &mut self,
        name: &str,
        layout: &Layout,
        most: u64,
        to: &mut Vec<u8>,
    ) -> Result<u64, DapError> {
        let wire = layout.wire.unwrap_or(layout.size).max(1);
        let room = BLOCK.checked_div(wire.max(layout.size)).unwrap_or(1).max(1);
        let n = usize::try_from(most).unwrap_or(usize::MAX).min(room);
        let begin = to.len();
        if let Kind::Plain(_) = layout.kind {
            self.bytes(name, layout.size.saturating_mul(n), to)?;
            if self.swaps {
                swap(to.get_mut(begin..).unwrap_or_default(), layout.size);
            }
            return Ok(n as u64);
        }
        let mut raw = std::mem::take(&mut self.raw);
        raw.clear();
        self.bytes(name, wire.saturating_mul(n), &mut raw)?;
        pad(to, layout.size.saturating_mul(n))?;
        let elements = to.get_mut(begin..).unwrap_or_default();
        for (from, to) in raw.chunks_exact(wire).zip(elements.chunks_exact_mut(layout.size.max(1)))
        {
            scatter(layout, from, to, self.swaps);
        }
        self.raw = raw;
        Ok(n as u64)
    }

    /// So many bytes, added to `to`, which grows only as they come.
    fn bytes(&mut self, name: &str, len: usize, to: &mut Vec<u8>) -> Result<(), DapError> {
        let mut left = len;
        while left > 0 {
            let now = left.min(BLOCK);
            let begin = to.len();
            pad(to, now)?;
            self.chunks.fill(to.get_mut(begin..).unwrap_or_default(), name)?;
            left = left.saturating_sub(now);
        }
        Ok(())
    }

    fn number(&mut self, name: &str) -> Result<u64, DapError> {
        let mut bytes = [0; 8];
        self.chunks.fill(&mut bytes, name)?;
        let number = u64::from_ne_bytes(bytes);
        Ok(if self.swaps { number.swap_bytes() } else { number })
    }

    /// A length, then as many bytes.
    fn counted(&mut self, name: &str) -> Result<Vec<u8>, DapError> {
        let (at, len) = (self.chunks.position(), self.number(name)?);
        let Ok(len) = usize::try_from(len) else {
            let what = format!("{name}: a length of {len} bytes");
            return Err(DapError::malformed(Document::Dap, at, what));
        };
        let mut bytes = Vec::new();
        self.bytes(name, len, &mut bytes)?;
        Ok(bytes)
    }

    /// The checksum behind a variable, where there is one.
    fn check(&mut self, name: &str, says_sum: bool) -> Result<(), DapError> {
        let crc = self.chunks.take_crc();
        let native = |bytes| {
            let sum = u32::from_ne_bytes(bytes);
            if self.swaps { sum.swap_bytes() } else { sum }
        };
        if self.sums == Sums::Unknown && says_sum {
            self.sums = Sums::Come;
        }
        if self.sums == Sums::Unknown {
            let comes = self.chunks.peek()?.map(native) == Some(crc);
            self.sums = if comes { Sums::Come } else { Sums::None };
            if !comes {
                self.doubtful = Some(name.to_owned());
            }
        }
        if self.sums == Sums::Come || says_sum {
            let at = self.chunks.position();
            let sum = native(self.chunks.checksum(name)?);
            // A fuzzer finds no checksums.
            if sum != crc && !self.ignores && !cfg!(fuzzing) {
                let what =
                    format!("the checksum of {name} is {sum:08x}, that of its values {crc:08x}");
                return Err(DapError::malformed(Document::Dap, at, what));
            }
        }
        Ok(())
    }
}

/// One element as it comes, to its form in memory, which is zeros.
fn scatter(layout: &Layout, from: &[u8], to: &mut [u8], swaps: bool) {
    let Kind::Structure(fields) = &layout.kind else {
        match layout.size {
            1 => number::<1>(from, to, false),
            2 => number::<2>(from, to, swaps),
            4 => number::<4>(from, to, swaps),
            _ => number::<8>(from, to, swaps),
        }
        return;
    };
    let mut rest = from;
    for field in fields {
        let (size, wire) = (field.layout.size, field.layout.wire.unwrap_or(0));
        let len = wire.saturating_mul(field.count).min(rest.len());
        let (now, after) = rest.split_at(len);
        rest = after;
        let all = to.get_mut(field.offset..).unwrap_or_default();
        let elements = now.chunks_exact(wire.max(1)).zip(all.chunks_exact_mut(size.max(1)));
        for (from, to) in elements {
            scatter(&field.layout, from, to, swaps);
        }
    }
}

/// One number.
fn number<const N: usize>(from: &[u8], to: &mut [u8], swaps: bool) {
    if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        *to = *from;
        if swaps {
            to.reverse();
        }
    }
}

/// Makes room, twice as much at a time: growing by what comes would copy what is there again and again.
fn grow(to: &mut Vec<u8>, len: usize) -> Result<(), DapError> {
    if to.len().saturating_add(len) > to.capacity() {
        let more = len.max(to.len());
        memory::reserve(to, more).map_err(|_| no_memory(more))?;
    }
    Ok(())
}

fn push(to: &mut Vec<u8>, bytes: &[u8]) -> Result<(), DapError> {
    grow(to, bytes.len())?;
    to.extend_from_slice(bytes);
    Ok(())
}

/// Adds so many zeros.
fn pad(to: &mut Vec<u8>, len: usize) -> Result<(), DapError> {
    grow(to, len)?;
    let all = to.len().saturating_add(len);
    memory::lengthen(to, all, 0).map_err(|_| no_memory(len))
}

/// Turns numbers of `size` bytes around.
fn swap(bytes: &mut [u8], size: usize) {
    match size {
        2 => bytes
            .as_chunks_mut()
            .0
            .iter_mut()
            .for_each(|x| *x = u16::from_ne_bytes(*x).swap_bytes().to_ne_bytes()),
        4 => bytes
            .as_chunks_mut()
            .0
            .iter_mut()
            .for_each(|x| *x = u32::from_ne_bytes(*x).swap_bytes().to_ne_bytes()),
        8 => bytes
            .as_chunks_mut()
            .0
            .iter_mut()
            .for_each(|x| *x = u64::from_ne_bytes(*x).swap_bytes().to_ne_bytes()),
        _ => {}
    }
}

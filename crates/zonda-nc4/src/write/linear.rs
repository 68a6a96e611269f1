//! Puts into a contiguous or compact variable: a hyperslab is rows of one run of bytes.

use crate::fault::{Fault, Outcome};
use crate::tuning::{PUT_BLOCK_BYTES, PUT_BLOCK_ROWS, PUT_GAP_BYTES};
use smallvec::SmallVec;
use zonda_chunk::ElementEncoding;
use zonda_convert::Converted;
use zonda_model::memory;
use zonda_model::{Hyperslab, NcError};
use zonda_slab::Rows;
use zonda_storage::{Storage, StorageError, WriteRange, fill_by_writes};

/// Encodes packed elements to packed elements.
fn encoded(encode: &ElementEncoding<'_>, src: &[u8], dst: &mut [u8]) -> Converted {
    match encode {
        ElementEncoding::Convert(encoder) => encoder.encode(src, dst),
        ElementEncoding::Custom { run, .. } => run(src, dst),
        ElementEncoding::Raw { .. } => {
            dst.iter_mut().zip(src).for_each(|(to, from)| *to = *from);
            Converted::default()
        }
    }
}

/// Encodes packed elements to places `step` bytes apart.
fn spread(
    encode: &ElementEncoding<'_>,
    src: &[u8],
    elem: usize,
    dst: &mut [u8],
    step: usize,
) -> Converted {
    if step == elem {
        return encoded(encode, src, dst);
    }
    match encode {
        ElementEncoding::Convert(encoder) => encoder.encode_strided(src, dst, step),
        _ => {
            let mem = mem_size(encode, elem);
            let mut converted = Converted::default();
            for (src, dst) in src.chunks_exact(mem).zip(dst.chunks_mut(step.max(1))) {
                if let Some(dst) = dst.get_mut(..elem) {
                    converted = converted.and(encoded(encode, src, dst));
                }
            }
            converted
        }
    }
}

fn mem_size(encode: &ElementEncoding<'_>, elem: usize) -> usize {
    let size = match encode {
        ElementEncoding::Convert(encoder) => encoder.mem_size(),
        ElementEncoding::Custom { mem_size, .. } => *mem_size,
        ElementEncoding::Raw { .. } => elem,
    };
    size.max(1)
}

fn is_copy(encode: &ElementEncoding<'_>) -> bool {
    match encode {
        ElementEncoding::Convert(encoder) => encoder.is_copy(),
        ElementEncoding::Raw { .. } => true,
        ElementEncoding::Custom { .. } => false,
    }
}

/// Whether values that do not fit leave the elements in the file as they are.
fn keeps_unfit(encode: &ElementEncoding<'_>) -> bool {
    matches!(encode, ElementEncoding::Convert(encoder) if encoder.keeps_unfit())
}

/// Writes an element over and over.
///
/// # Errors
/// What the storage reports.
pub(super) fn fill(
    storage: &dyn Storage,
    at: u64,
    len: u64,
    element: &[u8],
) -> Result<(), StorageError> {
    match element.len() {
        0 => Ok(()),
        1..=8 => storage.fill_at(at, len, element),
        _ => fill_by_writes(storage, at, len, element),
    }
}

/// Copies bytes of a storage to another place; behind its end it has zeros.
pub(super) fn copy(storage: &dyn Storage, from: u64, to: u64, len: u64) -> Outcome<()> {
    let (mut block, mut done) = (Vec::new(), 0);
    while done < len {
        let n = len.saturating_sub(done).min(PUT_BLOCK_BYTES as u64);
        block.clear();
        block.resize(usize::try_from(n).map_err(|_| NO_ROWS)?, 0);
        let (from, to) = (from.saturating_add(done), to.saturating_add(done));
        let _behind_the_end_are_zeros = storage.read_at(from, &mut block)?;
        storage.write_at(to, &block)?;
        done = done.saturating_add(n);
    }
    Ok(())
}

/// Writes an element over and over; `each` changes the elements before they are written.
pub(super) fn fill_each(
    storage: &dyn Storage,
    at: u64,
    len: u64,
    element: &[u8],
    each: &mut dyn FnMut(&mut [u8]) -> Outcome<()>,
) -> Outcome<()> {
    let per = PUT_BLOCK_BYTES.checked_div(element.len()).unwrap_or(1).max(1);
    let mut done = 0u64;
    while done < len && !element.is_empty() {
        let mut block = repeated(element, per)?;
        let left = usize::try_from(len.saturating_sub(done)).unwrap_or(usize::MAX);
        block.truncate(left);
        each(&mut block)?;
        storage.write_at(at.saturating_add(done), &block)?;
        done = done.saturating_add(block.len() as u64);
    }
    Ok(())
}

/// The element `n` times.
pub(super) fn repeated(element: &[u8], n: usize) -> Outcome<Vec<u8>> {
    let mut all = memory::room(element.len().saturating_mul(n))?;
    for _ in 0..n {
        all.extend_from_slice(element);
    }
    Ok(all)
}

const NO_ROWS: Fault = Fault::Refused(NcError::Internal);
const TOO_LARGE: Fault = Fault::Refused(NcError::VarSize);

/// Puts a hyperslab of elements of `elem` bytes that lie from byte `begin` of a storage on.
pub(super) fn put(
    storage: &dyn Storage,
    begin: u64,
    extent: &[u64],
    slab: &Hyperslab<'_>,
    elem: usize,
    encode: &ElementEncoding<'_>,
    src: &[u8],
) -> Outcome<Converted> {
    let run = Rows::of(extent, slab, elem).ok_or(NO_ROWS)?;
    let mem = mem_size(encode, elem);
    let row_bytes = usize::try_from(run.n).ok().and_then(|n| n.checked_mul(mem)).ok_or(NO_ROWS)?;
    let mut rest = src.chunks_exact(row_bytes.max(1));
    let mut block = RowBlock { storage, encode, elem, mem, rows: SmallVec::new(), used: 0 };
    let mut converted = Converted::default();
    let done = run.for_each(extent, slab, elem, |at| {
        let row = rest.next().ok_or(NO_ROWS)?;
        let at = begin.checked_add(at).ok_or(TOO_LARGE)?;
        converted = converted.and(block.add(at, run.step, row)?);
        Ok::<(), Fault>(())
    });
    done.ok_or(TOO_LARGE)??;
    Ok(converted.and(block.flush()?))
}

/// Rows without gaps that are converted and written together.
struct RowBlock<'a, 'e> {
    storage: &'a dyn Storage,
    encode: &'a ElementEncoding<'e>,
    elem: usize,
    mem: usize,
    /// A single row takes no memory of its own.
    rows: SmallVec<[(u64, &'a [u8]); 1]>,
    /// Bytes in the file that they have.
    used: usize,
}

impl<'a> RowBlock<'a, '_> {
    fn add(&mut self, at: u64, step: u64, row: &'a [u8]) -> Outcome<Converted> {
        let (elem, mem) = (self.elem, self.mem);
        if step != elem as u64 && row.len() > mem {
            return self.add_gapped(at, step, row);
        }
        if is_copy(self.encode) {
            return self.push(at, row, row.len());
        }
        // As many elements at a time as a block takes.
        let per = PUT_BLOCK_BYTES.checked_div(elem).unwrap_or(1).max(1);
        let piece_bytes = per.saturating_mul(mem);
        let mut converted = Converted::default();
        let mut at = at;
        for piece in row.chunks(piece_bytes) {
            let n = piece.len().checked_div(mem).unwrap_or(0);
            let len = n.saturating_mul(elem);
            converted = converted.and(self.push(at, piece, len)?);
            at = at.saturating_add(len as u64);
        }
        Ok(converted)
    }

    fn push(&mut self, at: u64, row: &'a [u8], len: usize) -> Outcome<Converted> {
        let mut converted = Converted::default();
        let is_full =
            self.used.saturating_add(len) > PUT_BLOCK_BYTES || self.rows.len() >= PUT_BLOCK_ROWS;
        if is_full && !self.rows.is_empty() {
            converted = self.flush()?;
        }
        self.rows.push((at, row));
        self.used = self.used.saturating_add(len);
        Ok(converted)
    }

    /// Writes the rows.
    fn flush(&mut self) -> Outcome<Converted> {
        let used = std::mem::take(&mut self.used);
        let rows = std::mem::take(&mut self.rows);
        let written = match &rows[..] {
            [] => return Ok(Converted::default()),
            [(at, row)] if is_copy(self.encode) => self.storage.write_at(*at, row),
            _ if is_copy(self.encode) => {
                let ranges: Vec<_> =
                    rows.iter().map(|(at, data)| WriteRange { at: *at, data }).collect();
                self.storage.write_ranges(&ranges)
            }
            _ => return self.convert(&rows, used),
        };
        written?;
        self.rows = rows;
        self.rows.clear();
        Ok(Converted::default())
    }

    /// Converts the rows and writes them.
    fn convert(&self, rows: &[(u64, &[u8])], used: usize) -> Outcome<Converted> {
        let mut packed = memory::filled(used, 0)?;
        let mut left = &mut packed[..];
        let mut ranges = Vec::with_capacity(rows.len());
        let mut converted = Converted::default();
        for (at, row) in rows {
            let n = row.len().checked_div(self.mem).unwrap_or(0);
            let cut = std::mem::take(&mut left).split_at_mut_checked(n.saturating_mul(self.elem));
            let (here, rest) = cut.ok_or(NO_ROWS)?;
            left = rest;
            if keeps_unfit(self.encode) {
                let _behind_the_end_are_zeros = self.storage.read_at(*at, here)?;
            }
            converted = converted.and(encoded(self.encode, row, here));
            ranges.push(WriteRange { at: *at, data: here });
        }
        match &ranges[..] {
            [one] => self.storage.write_at(one.at, one.data),
            many => self.storage.write_ranges(many),
        }?;
        Ok(converted)
    }

    /// Elements with gaps between them.
    fn add_gapped(&mut self, at: u64, step: u64, row: &'a [u8]) -> Outcome<Converted> {
        let (elem, mem) = (self.elem, self.mem);
        let mut converted = self.flush()?;
        let wide = usize::try_from(step)
            .ok()
            .filter(|_| step.saturating_sub(elem as u64) <= PUT_GAP_BYTES)
            .filter(|_| !self.storage.has_other_writers());
        let Some(step_bytes) = wide else {
            let mut at = at;
            for element in row.chunks_exact(mem) {
                converted = converted.and(self.push(at, element, elem)?);
                at = at.saturating_add(step);
            }
            return Ok(converted.and(self.flush()?));
        };
        let per = PUT_BLOCK_BYTES.checked_div(step_bytes).unwrap_or(1).max(1);
        let mut at = at;
        let mut span = Vec::new();
        for piece in row.chunks(per.saturating_mul(mem)) {
            let n = piece.len().checked_div(mem).unwrap_or(0);
            let len = n.saturating_sub(1).saturating_mul(step_bytes).saturating_add(elem);
            span.clear();
            memory::lengthen(&mut span, len, 0)?;
            let _behind_the_end_are_zeros = self.storage.read_at(at, &mut span)?;
            converted = converted.and(spread(self.encode, piece, elem, &mut span, step_bytes));
            self.storage.write_at(at, &span)?;
            at = at.saturating_add((n as u64).saturating_mul(step));
        }
        Ok(converted)
    }
}

/// Puts a hyperslab of elements that are in memory.
pub(super) fn put_here(
    bytes: &mut [u8],
    extent: &[u64],
    slab: &Hyperslab<'_>,
    elem: usize,
    encode: &ElementEncoding<'_>,
    src: &[u8],
) -> Outcome<Converted> {
    let run = Rows::of(extent, slab, elem).ok_or(NO_ROWS)?;
    let mem = mem_size(encode, elem);
    let n = usize::try_from(run.n).map_err(|_| NO_ROWS)?;
    let step = usize::try_from(run.step).map_err(|_| NO_ROWS)?;
    let row_bytes = n.checked_mul(mem).ok_or(NO_ROWS)?;
    let span = n.saturating_sub(1).saturating_mul(step).saturating_add(elem);
    let mut rest = src.chunks_exact(row_bytes.max(1));
    let mut converted = Converted::default();
    let done = run.for_each(extent, slab, elem, |at| {
        let row = rest.next().ok_or(NO_ROWS)?;
        let at = usize::try_from(at).map_err(|_| NO_ROWS)?;
        let place = bytes.get_mut(at..).and_then(|bytes| bytes.get_mut(..span)).ok_or(NO_ROWS)?;
        converted = converted.and(spread(encode, row, elem, place, step));
        Ok::<(), Fault>(())
    });
    done.ok_or(TOO_LARGE)??;
    Ok(converted)
}

#[cfg(test)]
mod tests;

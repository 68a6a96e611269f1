//! Mapped access: memory in any order, given by one distance per dimension.
//!
//! The elements travel through a block of temporary memory in row-major order, so that the engine
//! sees ordinary hyperslabs. Where the map says row-major, there is no detour.

use zonda::{ExtType, MemType, NcError, memory};

use crate::boundary::{CallResult, Failure};
use crate::transfer::{Caller, Mem, Transfer, required, slice};
use crate::types::{FIRST_USER_TYPE, NcType, STRING};

pub(crate) use crate::families::untyped::{get_varm as nc_get_varm, put_varm as nc_put_varm};

/// Temporary memory in bytes; a block of this size and what the engine makes of it stay in the
/// second-level cache.
const BLOCK_BYTES: usize = 256 << 10;
/// First stride that the reference refuses.
const STRIDE_LIMIT: usize = 0x7FFF_FFFF;

/// What the checks need to know of a variable.
struct Var {
    nc_type: NcType,
    /// Bytes of an element in memory of its own type.
    size: usize,
    is_record: bool,
    shape: Vec<usize>,
    /// Which dimensions grow with what is put.
    grows: Vec<bool>,
}

impl Transfer<'_> {
    /// `nc_put_varm`, `nc_get_varm`.
    ///
    /// # Safety
    /// The arrays are null or hold one value per dimension; the memory that `imap` reaches is the
    /// caller's.
    pub(crate) unsafe fn varm(
        &self,
        start: *const usize,
        count: *const usize,
        stride: *const isize,
        imap: *const isize,
    ) -> CallResult {
        let var = self.var_for_map()?;
        let rank = var.shape.len();
        let any_null = start.is_null() || count.is_null() || stride.is_null();
        if any_null && start.is_null() && rank > 0 {
            return Err(NcError::InvalidCoords.into());
        }
        if var.nc_type >= FIRST_USER_TYPE {
            return Err(NcError::MapType.into());
        }
        let is_text = var.nc_type == ExtType::Char.nc_type();
        let mixes = match self.mem {
            Mem::Natural => false,
            Mem::Number(mem) => (mem == MemType::Text) != is_text,
            Mem::Strings => is_text,
        };
        if mixes {
            return Err(NcError::Char.into());
        }
        if rank == 0 {
            // SAFETY: a scalar is one element wherever a map may lead.
            return unsafe { self.slab(&[], &[], None) };
        }
        let ones;
        // SAFETY: not null where required, one value per dimension.
        let (start, count, stride, imap) = unsafe {
            let start = required(start, rank)?;
            let count = if count.is_null() { &*var.shape } else { slice(count, rank) };
            let stride = if stride.is_null() {
                ones = vec![1isize; rank];
                &*ones
            } else {
                slice(stride, rank)
            };
            (start, count, stride, (!imap.is_null()).then(|| slice(imap, rank)))
        };
        if stride.iter().any(|&s| s == 0 || s.cast_unsigned() >= STRIDE_LIMIT) {
            return Err(NcError::Stride.into());
        }
        if self.file.dataset.is_hdf5() {
            self.check_strided(&var, start, count, stride)?;
        }
        let Some(imap) = imap else {
            let unit = stride.iter().all(|&s| s == 1);
            if !unit {
                self.check_mapped(&var, start, count)?;
                if count.contains(&0) {
                    return Ok(());
                }
            }
            // SAFETY: memory is row-major.
            return unsafe { self.slab(start, count, (!unit).then_some(stride)) };
        };
        self.check_mapped(&var, start, count)?;
        if count.contains(&0) {
            return Ok(());
        }
        let null = match self.caller {
            Caller::Put(from) => from.is_null(),
            Caller::Get(to) => to.is_null(),
        };
        let refused = self.mem == Mem::Strings && var.nc_type != STRING;
        if null || refused || is_row_major(count, imap) {
            // SAFETY: memory is row-major, or not used before the call is refused.
            return unsafe { self.slab(start, count, Some(stride)) };
        }
        // SAFETY: the contract above; not null.
        unsafe { self.blocks(self.element_bytes(var.size), [start, count], stride, imap) }
    }

    fn var_for_map(&self) -> Result<Var, Failure> {
        self.file.meta(|meta| {
            let id = self.var.var;
            let var = meta.var(id)?;
            let mut shape = vec![0; var.dims.len()];
            meta.var_shape(id, &mut shape)?;
            let (nc_type, size) = (var.nc_type, meta.type_size(var.nc_type)?);
            let grows = var.dims.iter().map(|&dim| meta.dim(dim).is_ok_and(|dim| dim.is_unlimited));
            let grows = grows.collect();
            Ok(Var { nc_type, size, is_record: meta.is_record(id)?, shape, grows })
        })?
    }

    /// The checks of start and count, in the order of the reference: a put from the first dimension
    /// on and without the records, a get from the last one down. They are made as if all strides
    /// were one; the engine looks at the last elements.
    fn check_mapped(&self, var: &Var, start: &[usize], count: &[usize]) -> Result<(), NcError> {
        let check = |axis: usize| {
            let (start, count, len) = (start[axis], count[axis], var.shape[axis]);
            if start > len || (start == len && count > 0) {
                Err(NcError::InvalidCoords)
            } else if start.saturating_add(count) > len {
                Err(NcError::Edge)
            } else {
                Ok(())
            }
        };
        let rank = var.shape.len();
        match self.caller {
            Caller::Put(_) => (usize::from(var.is_record)..rank).try_for_each(check),
            Caller::Get(_) => (0..rank).rev().try_for_each(check),
        }
    }

    /// The last elements of a selection that starts and, were its strides one, would end inside the
    /// variable. The reference comes upon them one by one, and in a netCDF-4 file calls them bad
    /// starts. Puts make the variable grow where it can.
    fn check_strided(
        &self,
        var: &Var,
        start: &[usize],
        count: &[usize],
        stride: &[isize],
    ) -> Result<(), NcError> {
        let puts = matches!(self.caller, Caller::Put(_));
        let leaves = |axis: usize| {
            let (start, count, len) = (start[axis], count[axis], var.shape[axis]);
            let reach = count.saturating_sub(1).saturating_mul(stride[axis].unsigned_abs());
            let ends_behind = start.saturating_add(reach) >= len && !(puts && var.grows[axis]);
            start < len && start.saturating_add(count) <= len && ends_behind
        };
        let is_empty = count.contains(&0);
        if !is_empty && (0..count.len()).any(leaves) { Err(NcError::InvalidCoords) } else { Ok(()) }
    }

    /// Moves the selection block by block. Values out of range are reported in the end; any other
    /// error ends the transfer.
    ///
    /// # Safety
    /// As [`Self::varm`], with memory not null, at least one dimension, and no zero in `count`.
    unsafe fn blocks(
        &self,
        size: usize,
        [start, count]: [&[usize]; 2],
        stride: &[isize],
        imap: &[isize],
    ) -> CallResult {
        let blocks = Blocks::new(count, (BLOCK_BYTES / size).max(1));
        let room = blocks.largest.checked_mul(size).ok_or(NcError::NoMem)?;
        let mut temporary = memory::filled(room, 0u8).map_err(NcError::from)?;
        let mut block_start = start.to_vec();
        let mut block_count = count.to_vec();
        block_count[..blocks.split].fill(1);
        let mut index = vec![0usize; blocks.split + 1];
        let mut result: CallResult = Ok(());
        loop {
            let rows = blocks.step.min(count[blocks.split] - index[blocks.split]);
            block_count[blocks.split] = rows;
            let mut offset = 0isize;
            for (axis, &i) in index.iter().enumerate() {
                // A map that leads out of the address space is a broken contract; wrapping keeps
                // the arithmetic itself defined.
                let step = (i.cast_signed()).wrapping_mul(stride[axis]);
                block_start[axis] = start[axis].wrapping_add_signed(step);
                offset = offset.wrapping_add(i.cast_signed().wrapping_mul(imap[axis]));
            }
            let offset = offset.wrapping_mul(size.cast_signed());
            let (counts, maps) = (&block_count[blocks.split..], &imap[blocks.split..]);
            let n_bytes = counts.iter().product::<usize>() * size;
            let block = &mut temporary[..n_bytes];
            let caller = match self.caller {
                Caller::Put(from) => {
                    // SAFETY: the map reaches only the caller's memory.
                    unsafe { gather(block, from.wrapping_offset(offset), size, counts, maps) };
                    Caller::Put(block.as_ptr())
                }
                Caller::Get(_) => Caller::Get(block.as_mut_ptr()),
            };
            let part = Transfer { caller, ..*self };
            // SAFETY: the block has room for the slab.
            let moved = unsafe { part.slab(&block_start, &block_count, Some(stride)) };
            match moved {
                Ok(()) => {}
                Err(failure) if failure.code() == NcError::Range => result = Err(failure),
                Err(failure) => return Err(failure),
            }
            if let Caller::Get(to) = self.caller {
                // SAFETY: the map reaches only the caller's memory.
                unsafe { scatter(block, to.wrapping_offset(offset), size, counts, maps) };
            }
            if !blocks.advance(&mut index, count) {
                return result;
            }
        }
    }
}

/// How a selection is cut: whole trailing dimensions, and `step` rows at a time of the one before.
struct Blocks {
    /// The dimension that is cut; those before it are stepped through one by one.
    split: usize,
    /// Rows of the cut dimension in a block.
    step: usize,
    /// Elements of the largest block.
    largest: usize,
}

impl Blocks {
    fn new(count: &[usize], max_elems: usize) -> Blocks {
        let mut split = count.len() - 1;
        let mut inner = 1;
        while split > 0 && count[split] <= max_elems / inner {
            inner *= count[split];
            split -= 1;
        }
        let step = (max_elems / inner).clamp(1, count[split]);
        Blocks { split, step, largest: inner * step }
    }

    /// The next block; false after the last one.
    fn advance(&self, index: &mut [usize], count: &[usize]) -> bool {
        for axis in (0..=self.split).rev() {
            index[axis] += if axis == self.split { self.step } else { 1 };
            if index[axis] < count[axis] {
                return true;
            }
            index[axis] = 0;
        }
        false
    }
}

/// Whether the map is that of plain row-major memory, so that it changes nothing.
fn is_row_major(count: &[usize], imap: &[isize]) -> bool {
    let mut expected = 1isize;
    for (&n, &map) in count.iter().zip(imap).rev() {
        if n != 1 && map != expected {
            return false;
        }
        expected = expected.wrapping_mul(n.cast_signed());
    }
    true
}

/// Calls `row` with the distance, in elements, of every row of the last dimension, in order.
fn each_row(counts: &[usize], maps: &[isize], mut row: impl FnMut(isize)) {
    let outer = counts.len() - 1;
    let mut index = vec![0usize; outer];
    let mut offset = 0isize;
    loop {
        row(offset);
        let mut axis = outer;
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            offset = offset.wrapping_add(maps[axis]);
            if index[axis] < counts[axis] {
                break;
            }
            offset = offset.wrapping_sub(maps[axis].wrapping_mul(counts[axis].cast_signed()));
            index[axis] = 0;
        }
    }
}

/// Memory in the order of the map, into a block.
///
/// # Safety
/// `from` and the map reach only memory that may be read; `block` has room for the elements.
unsafe fn gather(block: &mut [u8], from: *const u8, size: usize, counts: &[usize], maps: &[isize]) {
    // SAFETY: same contract, with the size made a constant.
    unsafe {
        match size {
            1 => gather_sized::<1>(block, from, counts, maps),
            2 => gather_sized::<2>(block, from, counts, maps),
            4 => gather_sized::<4>(block, from, counts, maps),
            _ => gather_sized::<8>(block, from, counts, maps),
        }
    }
}

/// # Safety
/// As [`gather`].
unsafe fn gather_sized<const SIZE: usize>(
    block: &mut [u8],
    from: *const u8,
    counts: &[usize],
    maps: &[isize],
) {
    let from = from.cast::<[u8; SIZE]>();
    let (row_len, step) = (counts[counts.len() - 1], maps[maps.len() - 1]);
    let mut rows = block.chunks_exact_mut(row_len * SIZE);
    each_row(counts, maps, |offset| {
        let mut at = from.wrapping_offset(offset);
        for element in rows.next().unwrap_or_default().as_chunks_mut::<SIZE>().0 {
            // SAFETY: one of the elements that the map reaches; bytes have no alignment.
            *element = unsafe { at.read() };
            at = at.wrapping_offset(step);
        }
    });
}

/// A block, into memory in the order of the map. Of elements mapped to one place the last one stays.
///
/// # Safety
/// `to` and the map reach only memory that may be written.
unsafe fn scatter(block: &[u8], to: *mut u8, size: usize, counts: &[usize], maps: &[isize]) {
    // SAFETY: same contract, with the size made a constant.
    unsafe {
        match size {
            1 => scatter_sized::<1>(block, to, counts, maps),
            2 => scatter_sized::<2>(block, to, counts, maps),
            4 => scatter_sized::<4>(block, to, counts, maps),
            _ => scatter_sized::<8>(block, to, counts, maps),
        }
    }
}

/// # Safety
/// As [`scatter`].
unsafe fn scatter_sized<const SIZE: usize>(
    block: &[u8],
    to: *mut u8,
    counts: &[usize],
    maps: &[isize],
) {
    let to = to.cast::<[u8; SIZE]>();
    let (row_len, step) = (counts[counts.len() - 1], maps[maps.len() - 1]);
    let mut rows = block.chunks_exact(row_len * SIZE);
    each_row(counts, maps, |offset| {
        let mut at = to.wrapping_offset(offset);
        for element in rows.next().unwrap_or_default().as_chunks::<SIZE>().0 {
            // SAFETY: one of the elements that the map reaches; bytes have no alignment.
            unsafe { at.write(*element) };
            at = at.wrapping_offset(step);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_and_back_is_the_identity() {
        let memory: Vec<u8> = (0..24u8).collect();
        let (counts, maps) = ([2usize, 3, 4], [1isize, 2, 6]);
        let mut block = vec![0u8; 24];
        // SAFETY: the map reaches elements 0 to 23.
        unsafe { gather(&mut block, memory.as_ptr(), 1, &counts, &maps) };
        assert_eq!(block[..6], [0, 6, 12, 18, 2, 8]);
        let mut back = vec![0u8; 24];
        // SAFETY: as above.
        unsafe { scatter(&block, back.as_mut_ptr(), 1, &counts, &maps) };
        assert_eq!(back, memory);
    }

    #[test]
    fn negative_maps_walk_backwards() {
        let memory = [10u16, 20, 30];
        let mut block = [0u8; 6];
        // SAFETY: the map reaches the three elements from the last one down.
        unsafe { gather(&mut block, memory[2..].as_ptr().cast(), 2, &[3], &[-1]) };
        assert_eq!(block, *[30u16, 20, 10].map(u16::to_ne_bytes).as_flattened());
    }

    #[test]
    fn the_last_of_overlapping_elements_stays() {
        let mut memory = [0u8; 1];
        // SAFETY: every element is mapped to the one byte.
        unsafe { scatter(&[1, 2, 3, 4], memory.as_mut_ptr(), 1, &[2, 2], &[0, 0]) };
        assert_eq!(memory, [4]);
    }

    #[test]
    fn blocks_cover_every_element_once() {
        for (count, max) in [
            (vec![7usize, 5, 3], 4usize),
            (vec![7, 5, 3], 1),
            (vec![7, 5, 3], 15),
            (vec![7, 5, 3], 1000),
            (vec![100], 7),
            (vec![1, 1], 1),
        ] {
            let blocks = Blocks::new(&count, max);
            let inner: usize = count[blocks.split + 1..].iter().product();
            let mut index = vec![0; blocks.split + 1];
            let mut seen = 0;
            loop {
                let rows = blocks.step.min(count[blocks.split] - index[blocks.split]);
                assert!(rows * inner <= blocks.largest && blocks.largest <= max.max(1));
                seen += rows * inner;
                if !blocks.advance(&mut index, &count) {
                    break;
                }
            }
            assert_eq!(seen, count.iter().product::<usize>(), "{count:?} {max}");
        }
    }

    #[test]
    fn row_major_maps_are_seen() {
        assert!(is_row_major(&[2, 3], &[3, 1]));
        assert!(is_row_major(&[1, 3], &[99, 1]));
        assert!(!is_row_major(&[2, 3], &[1, 2]));
        assert!(!is_row_major(&[2, 3], &[-3, 1]));
    }
}

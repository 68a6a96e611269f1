//! Mapped access: memory in any order, given by one distance per dimension.
//!
//! The elements travel through a block of temporary memory in row-major order, so that the engine
//! sees ordinary hyperslabs. Where the map says row-major, there is no detour.

use std::convert::Infallible;

use zonda::slab::{Blocks, Order, Places, is_row_major, is_stride, place_of};
use zonda::{ExtType, Hyperslab, MemType, NcError, memory};

use crate::c_memory::slice;
use crate::data_arguments::{CallerMemory, MemoryForm};
use crate::failure::{CallFailure, CallResult};
use crate::transfer::{VarTransfer, required};
use crate::types::{FIRST_USER_TYPE, NcType, STRING};

pub(crate) use crate::data_functions::untyped::{get_varm as nc_get_varm, put_varm as nc_put_varm};

/// Temporary memory in bytes; a block of this size and what the engine makes of it stay in the
/// second-level cache.
const BLOCK_BYTES: usize = 256 << 10;

/// What the checks need to know of a variable.
struct Var {
    nc_type: NcType,
    /// Bytes of an element in memory of its own type.
    size: usize,
    is_record: bool,
    shape: Vec<usize>,
    /// SelectionArrays dimensions grow with what is put.
    grows: Vec<bool>,
}

impl VarTransfer<'_> {
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
            MemoryForm::Natural => false,
            MemoryForm::Number(mem) => (mem == MemType::Text) != is_text,
            MemoryForm::Strings => is_text,
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
        let selected = Hyperslab { start, count, stride: Some(stride) };
        if !selected.strides_are(is_stride) {
            return Err(NcError::Stride.into());
        }
        if self.file.dataset.capabilities().dialect.is_netcdf4() {
            self.check_strided(&var, &selected)?;
        }
        let Some(imap) = imap else {
            let unit = selected.is_unit();
            if !unit {
                self.check_mapped(&var, &selected)?;
                if selected.is_empty() {
                    return Ok(());
                }
            }
            // SAFETY: memory is row-major.
            return unsafe { self.slab(start, count, (!unit).then_some(stride)) };
        };
        self.check_mapped(&var, &selected)?;
        if selected.is_empty() {
            return Ok(());
        }
        let null = match self.caller {
            CallerMemory::Put(from) => from.is_null(),
            CallerMemory::Get(to) => to.is_null(),
        };
        let refused = self.mem == MemoryForm::Strings && var.nc_type != STRING;
        if null || refused || is_row_major(count, imap) {
            // SAFETY: memory is row-major, or not used before the call is refused.
            return unsafe { self.slab(start, count, Some(stride)) };
        }
        // SAFETY: the contract above; not null.
        unsafe { self.blocks(self.mem.elem_bytes(var.size), &selected, imap) }
    }

    fn var_for_map(&self) -> Result<Var, CallFailure> {
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
    fn check_mapped(&self, var: &Var, slab: &Hyperslab<'_>) -> Result<(), NcError> {
        let (order, skipped) = match self.caller {
            CallerMemory::Put(_) => (Order::Up, usize::from(var.is_record)),
            CallerMemory::Get(_) => (Order::Down, 0),
        };
        let inside = slab.each_axis(order, |at, axis| {
            if at < skipped {
                return Ok(());
            }
            axis.begin_within(var.len(at))?;
            axis.count_within(var.len(at))
        });
        inside.map_err(|misfit| misfit.leaves.into())
    }

    /// The last elements of a selection that starts and, were its strides one, would end inside the
    /// variable. The reference comes upon them one by one, and in a netCDF-4 file calls them bad
    /// starts. Puts make the variable grow where it can.
    fn check_strided(&self, var: &Var, slab: &Hyperslab<'_>) -> Result<(), NcError> {
        let puts = matches!(self.caller, CallerMemory::Put(_));
        let inside = slab.each_axis(Order::Up, |at, axis| {
            let len = var.len(at);
            let is_plain = axis.start < len && axis.count_within(len).is_ok();
            if !is_plain || (puts && var.grows[at]) { Ok(()) } else { axis.last_within(len) }
        });
        if !slab.is_empty() && inside.is_err() { Err(NcError::InvalidCoords) } else { Ok(()) }
    }

    /// Moves the selection block by block. Values out of range are reported in the end; any other
    /// error ends the transfer.
    ///
    /// # Safety
    /// As [`Self::varm`], with memory not null, at least one dimension, and no zero in `count`.
    unsafe fn blocks(&self, size: usize, slab: &Hyperslab<'_>, imap: &[isize]) -> CallResult {
        // Whatever is selected is in the variable; a map that leads out of the address space is not.
        let mut blocks = Blocks::of(*slab, BLOCK_BYTES / size).ok_or(NcError::InvalidCoords)?;
        let room = blocks.largest().checked_mul(size).ok_or(NcError::NoMem)?;
        let mut temporary = memory::filled(room, 0u8).map_err(NcError::from)?;
        let cut = blocks.cut();
        let mut result: CallResult = Ok(());
        while let Some(part) = blocks.next() {
            let first = place_of(part.first, imap).and_then(|n| n.checked_mul(size.cast_signed()));
            let first = first.ok_or(NcError::Inval)?;
            let (counts, maps) = (&part.slab.count[cut..], &imap[cut..]);
            let mapped = Mapped::new(size, counts, maps).ok_or(NcError::Inval)?;
            let block = &mut temporary[..part.n_elems * size];
            let caller = match self.caller {
                CallerMemory::Put(from) => {
                    // SAFETY: the map reaches only the caller's memory.
                    unsafe { mapped.gather(block, from.wrapping_offset(first)) };
                    CallerMemory::Put(block.as_ptr())
                }
                CallerMemory::Get(_) => CallerMemory::Get(block.as_mut_ptr()),
            };
            let call = VarTransfer { caller, ..*self };
            // SAFETY: the block has room for the slab.
            let moved = unsafe { call.slab(part.slab.start, part.slab.count, part.slab.stride) };
            match moved {
                Ok(()) => {}
                Err(failure) if failure.code() == NcError::Range => result = Err(failure),
                Err(failure) => return Err(failure),
            }
            if let CallerMemory::Get(to) = self.caller {
                // SAFETY: the map reaches only the caller's memory.
                unsafe { mapped.scatter(block, to.wrapping_offset(first)) };
            }
        }
        result
    }
}

impl Var {
    fn len(&self, axis: usize) -> u64 {
        self.shape.get(axis).map_or(0, |&len| len as u64)
    }
}

/// Rows of elements in memory in the order of a map.
struct Mapped {
    /// Bytes of an element.
    size: usize,
    /// Elements of a row, and the distance from one to the next.
    row: (usize, isize),
    /// Where rows begin, in elements.
    rows: Places<isize>,
}

impl Mapped {
    /// `None` where the map leads out of the address space.
    fn new(size: usize, counts: &[usize], maps: &[isize]) -> Option<Mapped> {
        let ((&n, outer), (&step, outer_maps)) = (counts.split_last()?, maps.split_last()?);
        let rows = outer.iter().copied().zip(outer_maps.iter().copied());
        let all = counts.iter().copied().zip(maps.iter().copied());
        let (lowest, highest) = Places::new(0, all)?.ends();
        lowest.checked_mul(size.cast_signed())?;
        highest.checked_add(1)?.checked_mul(size.cast_signed())?;
        Some(Mapped { size, row: (n, step), rows: Places::new(0, rows)? })
    }

    /// Memory in the order of the map, into a block.
    ///
    /// # Safety
    /// `from` and the map reach only memory that may be read; `block` has room for the elements.
    unsafe fn gather(&self, block: &mut [u8], from: *const u8) {
        // SAFETY: same contract, with the size made a constant.
        unsafe {
            match self.size {
                1 => self.gather_sized::<1>(block, from),
                2 => self.gather_sized::<2>(block, from),
                4 => self.gather_sized::<4>(block, from),
                _ => self.gather_sized::<8>(block, from),
            }
        }
    }

    /// # Safety
    /// As [`Mapped::gather`].
    unsafe fn gather_sized<const SIZE: usize>(&self, block: &mut [u8], from: *const u8) {
        let from = from.cast::<[u8; SIZE]>();
        let (row_len, step) = self.row;
        let mut rows = block.chunks_exact_mut(row_len * SIZE);
        self.each_row(|offset| {
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
    unsafe fn scatter(&self, block: &[u8], to: *mut u8) {
        // SAFETY: same contract, with the size made a constant.
        unsafe {
            match self.size {
                1 => self.scatter_sized::<1>(block, to),
                2 => self.scatter_sized::<2>(block, to),
                4 => self.scatter_sized::<4>(block, to),
                _ => self.scatter_sized::<8>(block, to),
            }
        }
    }

    /// # Safety
    /// As [`Mapped::scatter`].
    unsafe fn scatter_sized<const SIZE: usize>(&self, block: &[u8], to: *mut u8) {
        let to = to.cast::<[u8; SIZE]>();
        let (row_len, step) = self.row;
        let mut rows = block.chunks_exact(row_len * SIZE);
        self.each_row(|offset| {
            let mut at = to.wrapping_offset(offset);
            for element in rows.next().unwrap_or_default().as_chunks::<SIZE>().0 {
                // SAFETY: one of the elements that the map reaches; bytes have no alignment.
                unsafe { at.write(*element) };
                at = at.wrapping_offset(step);
            }
        });
    }

    fn each_row(&self, mut row: impl FnMut(isize)) {
        let Ok(()) = self.rows.for_each(|offset| {
            row(offset);
            Ok::<(), Infallible>(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_and_back_is_the_identity() {
        let memory: Vec<u8> = (0..24u8).collect();
        let (counts, maps) = ([2usize, 3, 4], [1isize, 2, 6]);
        let mut block = vec![0u8; 24];
        let mapped = Mapped::new(1, &counts, &maps).unwrap();
        // SAFETY: the map reaches elements 0 to 23.
        unsafe { mapped.gather(&mut block, memory.as_ptr()) };
        assert_eq!(block[..6], [0, 6, 12, 18, 2, 8]);
        let mut back = vec![0u8; 24];
        // SAFETY: as above.
        unsafe { mapped.scatter(&block, back.as_mut_ptr()) };
        assert_eq!(back, memory);
    }

    #[test]
    fn negative_maps_walk_backwards() {
        let memory = [10u16, 20, 30];
        let mut block = [0u8; 6];
        let mapped = Mapped::new(2, &[3], &[-1]).unwrap();
        // SAFETY: the map reaches the three elements from the last one down.
        unsafe { mapped.gather(&mut block, memory[2..].as_ptr().cast()) };
        assert_eq!(block, *[30u16, 20, 10].map(u16::to_ne_bytes).as_flattened());
    }

    #[test]
    fn the_last_of_overlapping_elements_stays() {
        let mut memory = [0u8; 1];
        let mapped = Mapped::new(1, &[2, 2], &[0, 0]).unwrap();
        // SAFETY: every element is mapped to the one byte.
        unsafe { mapped.scatter(&[1, 2, 3, 4], memory.as_mut_ptr()) };
        assert_eq!(memory, [4]);
    }

    #[test]
    fn maps_out_of_the_address_space_are_none() {
        let far = isize::MAX / 4 - 1;
        assert!(Mapped::new(4, &[2], &[far]).is_some());
        assert!(Mapped::new(8, &[2], &[far]).is_none());
        assert!(Mapped::new(1, &[4, 3], &[far, far]).is_none());
        assert!(Mapped::new(8, &[1, 2], &[isize::MAX, 1]).is_some());
    }
}

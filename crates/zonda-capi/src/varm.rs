//! `nc_put_varm`, `nc_get_varm`: memory in any order, which a map describes.
//!
//! The checks are here, since their order is that of the reference. [`zonda::MappedSlab`] cuts the
//! transfer into blocks; where the map says row-major, there is no detour through them.

use zonda::slab::{Indices, Order, is_row_major, is_stride};
use zonda::{ExtType, Hyperslab, MappedSlab, MemType, NcError, RowMover};

use crate::c_memory::slice;
use crate::data_arguments::{CallerMemory, MemoryForm};
use crate::failure::{CallFailure, CallResult};
use crate::transfer::{VarTransfer, required};
use crate::types::{FIRST_USER_TYPE, NcType, STRING};

/// What the checks need to know of a variable.
struct MappedVar {
    nc_type: NcType,
    /// Bytes of an element in memory of its own type.
    elem_bytes: usize,
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
        let var = self.facts_for_map()?;
        let rank = var.shape.len();
        if start.is_null() && rank > 0 {
            return Err(NcError::InvalidCoords.into());
        }
        self.check_types(&var)?;
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
        // SAFETY: the contract above.
        unsafe { self.selected(&var, selected, imap) }
    }

    /// Moves the elements of a selection whose strides are right, in the order of the map or, without one,
    /// row-major.
    ///
    /// # Safety
    /// As [`Self::varm`].
    unsafe fn selected(
        &self,
        var: &MappedVar,
        slab: Hyperslab<'_>,
        imap: Option<&[isize]>,
    ) -> CallResult {
        let Some(map) = imap else {
            let is_unit = slab.is_unit();
            if !is_unit {
                self.check_mapped(var, &slab)?;
                if slab.is_empty() {
                    return Ok(());
                }
            }
            let stride = slab.stride.filter(|_| !is_unit);
            // SAFETY: memory is row-major.
            return unsafe { self.slab(slab.start, slab.count, stride) };
        };
        self.check_mapped(var, &slab)?;
        if slab.is_empty() {
            return Ok(());
        }
        let is_null = match self.caller {
            CallerMemory::Put(from) => from.is_null(),
            CallerMemory::Get(to) => to.is_null(),
        };
        let is_refused = self.mem == MemoryForm::Strings && var.nc_type != STRING;
        if is_null || is_refused || is_row_major(slab.count, map) {
            // SAFETY: memory is row-major, or not used before the call is refused.
            return unsafe { self.slab(slab.start, slab.count, slab.stride) };
        }
        let elem_bytes = self.mem.elem_bytes(var.elem_bytes);
        if let CallerMemory::Put(from) = self.caller
            && self.file.dataset.is_of_ranks()
        {
            // SAFETY: the contract above; not null.
            return unsafe { self.put_gathered(from, slab, map, elem_bytes) };
        }
        // SAFETY: the contract above; not null.
        unsafe { self.mapped_blocks(MappedSlab { slab, map, elem_bytes }) }
    }

    /// Puts elements of mapped memory in one put, however large: ranks that put together have to make as many.
    ///
    /// # Safety
    /// As [`Self::varm`]; `from` is not null.
    unsafe fn put_gathered(
        &self,
        from: *const u8,
        slab: Hyperslab<'_>,
        map: &[isize],
        elem_bytes: usize,
    ) -> CallResult {
        let n_bytes =
            slab.n_elems().and_then(|n| n.checked_mul(elem_bytes)).ok_or(NcError::NoMem)?;
        let mut packed = Vec::new();
        packed.try_reserve_exact(n_bytes).map_err(|_| NcError::NoMem)?;
        let mut places = Indices::of(slab.count);
        while let Some(at) = places.next() {
            let step = |(&index, &map): (&usize, &isize)| index as isize * map;
            let place = at.iter().zip(map).map(step).sum::<isize>() * elem_bytes as isize;
            // SAFETY: the contract above: the map leads to memory of the caller for each element.
            packed.extend_from_slice(unsafe { slice(from.offset(place), elem_bytes) });
        }
        let gathered = VarTransfer { caller: CallerMemory::Put(packed.as_ptr()), ..*self };
        // SAFETY: memory is row-major, and has an element for each that is selected.
        unsafe { gathered.slab(slab.start, slab.count, slab.stride) }
    }

    /// Types that cannot be moved by a map, and text with numbers.
    fn check_types(&self, var: &MappedVar) -> Result<(), NcError> {
        if var.nc_type >= FIRST_USER_TYPE {
            return Err(NcError::MapType);
        }
        let is_text = var.nc_type == ExtType::Char.nc_type();
        let mixes = match self.mem {
            MemoryForm::Natural => false,
            MemoryForm::Number(mem) => (mem == MemType::Text) != is_text,
            MemoryForm::Strings => is_text,
        };
        if mixes { Err(NcError::Char) } else { Ok(()) }
    }

    fn facts_for_map(&self) -> Result<MappedVar, CallFailure> {
        self.file.meta(|meta| {
            let id = self.var.var;
            let var = meta.var(id)?;
            let mut shape = vec![0; var.dims.len()];
            meta.var_shape(id, &mut shape)?;
            let (nc_type, elem_bytes) = (var.nc_type, meta.type_size(var.nc_type)?);
            let grows = var.dims.iter().map(|&dim| meta.dim(dim).is_ok_and(|dim| dim.is_unlimited));
            let grows = grows.collect();
            Ok(MappedVar { nc_type, elem_bytes, is_record: meta.is_record(id)?, shape, grows })
        })?
    }

    /// The checks of start and count, in the order of the reference: a put from the first dimension
    /// on and without the records, a get from the last one down. They are made as if all strides
    /// were one; the engine looks at the last elements.
    fn check_mapped(&self, var: &MappedVar, slab: &Hyperslab<'_>) -> Result<(), NcError> {
        let (order, skipped) = match self.caller {
            CallerMemory::Put(_) => (Order::Up, usize::from(var.is_record)),
            CallerMemory::Get(_) => (Order::Down, 0),
        };
        let inside = slab.each_axis(order, |at, axis| {
            if at < skipped {
                return Ok(());
            }
            axis.start_and_first_within(var.len(at))?;
            axis.count_within(var.len(at))
        });
        inside.map_err(|misfit| misfit.why.into())
    }

    /// The last elements of a selection that starts and, were its strides one, would end inside the
    /// variable. The reference comes upon them one by one, and in a netCDF-4 file calls them bad
    /// starts. Puts make the variable grow where it can.
    fn check_strided(&self, var: &MappedVar, slab: &Hyperslab<'_>) -> Result<(), NcError> {
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
    unsafe fn mapped_blocks(&self, mapped: MappedSlab<'_>) -> CallResult {
        let mut result: CallResult = Ok(());
        // An element of memory that a failed get of a remote file has left.
        let mut element = Vec::new();
        let moved = mapped.each_block(|block, bytes| {
            let caller = match self.caller {
                CallerMemory::Put(from) => {
                    // SAFETY: the map reaches only the caller's memory.
                    let mut gather = unsafe { Gather::new(from.wrapping_offset(block.first_byte)) };
                    block.each_row(bytes, &mut gather);
                    CallerMemory::Put(bytes.as_ptr())
                }
                CallerMemory::Get(_) => CallerMemory::Get(bytes.as_mut_ptr()),
            };
            let call = VarTransfer { caller, ..*self };
            let slab = block.slab;
            // SAFETY: the block has room for the slab.
            match unsafe { call.slab(slab.start, slab.count, slab.stride) } {
                Ok(()) => {}
                Err(failure) if failure.code() == NcError::Range => result = Err(failure),
                Err(failure) => {
                    element.extend_from_slice(bytes.get(..mapped.elem_bytes).unwrap_or_default());
                    return Err(failure);
                }
            }
            if let CallerMemory::Get(to) = self.caller {
                // SAFETY: the map reaches only the caller's memory.
                let mut scatter = unsafe { Scatter::new(to.wrapping_offset(block.first_byte)) };
                block.each_row(bytes, &mut scatter);
            }
            Ok::<(), CallFailure>(())
        });
        if let (Err(_), CallerMemory::Get(to)) = (&moved, self.caller)
            && self.file.dataset.is_remote()
            && !element.is_empty()
        {
            // Blocks before the one that failed are with the caller already.
            mapped.each_block(|block, bytes| {
                bytes.chunks_mut(element.len()).for_each(|to| to.copy_from_slice(&element));
                // SAFETY: the map reaches only the caller's memory.
                let mut scatter = unsafe { Scatter::new(to.wrapping_offset(block.first_byte)) };
                block.each_row(bytes, &mut scatter);
                Ok::<(), CallFailure>(())
            })?;
        }
        moved?;
        result
    }
}

impl MappedVar {
    fn len(&self, axis: usize) -> u64 {
        self.shape.get(axis).map_or(0, |&len| len as u64)
    }
}

/// Copies elements of the caller's memory into a block.
struct Gather(*const u8);

impl Gather {
    /// # Safety
    /// All places of the map that this is used for can be read: they are counted from `first`.
    unsafe fn new(first: *const u8) -> Gather {
        Gather(first)
    }
}

impl RowMover for Gather {
    #[inline(always)]
    fn move_row<const SIZE: usize>(&mut self, place: isize, step: isize, row: &mut [[u8; SIZE]]) {
        let mut at = self.0.cast::<[u8; SIZE]>().wrapping_offset(place);
        for element in row {
            // SAFETY: a place of the map, by the contract of `new`; bytes have no alignment.
            *element = unsafe { at.read() };
            at = at.wrapping_offset(step);
        }
    }
}

/// Copies elements of a block into the caller's memory.
struct Scatter(*mut u8);

impl Scatter {
    /// # Safety
    /// All places of the map that this is used for can be written: they are counted from `first`.
    unsafe fn new(first: *mut u8) -> Scatter {
        Scatter(first)
    }
}

impl RowMover for Scatter {
    #[inline(always)]
    fn move_row<const SIZE: usize>(&mut self, place: isize, step: isize, row: &mut [[u8; SIZE]]) {
        let mut at = self.0.cast::<[u8; SIZE]>().wrapping_offset(place);
        for element in row {
            // SAFETY: a place of the map, by the contract of `new`; bytes have no alignment.
            unsafe { at.write(*element) };
            at = at.wrapping_offset(step);
        }
    }
}

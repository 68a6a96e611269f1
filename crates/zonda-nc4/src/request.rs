//! Reads elements of a variable, in whichever way it is stored, into the caller's memory.

use std::cell::Cell;
use zonda_runtime::lock::{Mutex, Rank};

use zonda_chunk::{ChunkError, Decode};
use zonda_convert::{ByteOrder, Converted, Decoder, RangeRule};
use zonda_hdf5::HdfError;
use zonda_model::memory;
use zonda_model::{ExtType, Hyperslab, NcError};
use zonda_slab::{Blocks, advance};

use crate::details::native_fill;
use crate::element_form::NC_STRING;
use crate::fault::{Fault, Outcome};
use crate::file::Nc4File;
use crate::get::{Numeric, default_element, is_copy, natural, numeric, odd};
use crate::model::Model;
use crate::tuning::VLEN_READ_BYTES;
use crate::value_target::ValueTarget;
use crate::values::{ValueReader, add_collections};
use crate::var_data::VarData;
use crate::write::{VarStore, Writing};
use zonda_format::VlenSink;

/// What reads elements of one variable: where they are, and what they become in memory.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) nc4: &'a Nc4File,
    pub(crate) model: &'a Model,
    pub(crate) nc_type: i32,
    pub(crate) data: &'a VarData,
    /// The storage of a variable that was put to; `None` for one that is read as the file has it.
    pub(crate) written: Option<&'a Written<'a>>,
    /// Bytes of an element in memory.
    pub(crate) elem: usize,
    /// Number of virtual datasets that led to this one.
    pub(crate) level: u8,
    /// Number of elements that may still be read from sources of virtual datasets.
    pub(crate) work: &'a Cell<u64>,
}

/// A variable that was put to since the file was opened.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    pub(crate) writing: &'a Writing,
    pub(crate) store: &'a VarStore,
    pub(crate) extent: &'a [u64],
}

impl Request<'_> {
    /// Reads elements, and decodes them as `decode` says.
    fn fetch(
        &self,
        slab: &Hyperslab<'_>,
        decode: Decode<'_>,
        out: &mut [u8],
    ) -> Result<Converted, ChunkError> {
        match self.written {
            Some(Written { writing, store, extent }) => {
                writing.stores.read(store, extent, slab, decode, out)
            }
            None => self.data.read(slab, decode, out),
        }
    }

    pub(crate) fn read(
        &self,
        slab: &Hyperslab<'_>,
        target: ValueTarget<'_>,
        out: &mut [u8],
    ) -> Outcome<Converted> {
        if let Some(found) = self.data.as_virtual() {
            return self.read_virtual(found, slab, target, out);
        }
        let form = &self.data.form;
        let mem = match &target {
            ValueTarget::Atomic(mem) => Some(*mem),
            ValueTarget::Natural(_) => {
                form.atomic().and_then(ExtType::from_nc_type).map(ExtType::natural_mem)
            }
        };
        match (mem.and_then(|mem| numeric(form, mem)), target) {
            (Some(Numeric::Kernel(decoder)), _) => {
                if let (Some(mem), None) = (mem, self.data.decoder.get()) {
                    let _first = self.data.decoder.set((mem, decoder));
                }
                Ok(self.fetch(slab, Decode::Convert(decoder), out)?)
            }
            (Some(Numeric::Odd(decoder)), _) => {
                let run = |src: &[u8], dst: &mut [u8]| odd(form, &decoder, src, dst);
                let (file_size, mem_size) = (form.file_size, decoder.mem_size());
                Ok(self.fetch(slab, Decode::Custom { file_size, mem_size, run: &run }, out)?)
            }
            (None, ValueTarget::Atomic(_)) => Err(NcError::BadType.into()),
            (None, ValueTarget::Natural(place)) => self.read_natural(slab, place, out),
        }
    }

    fn read_natural(
        &self,
        slab: &Hyperslab<'_>,
        place: &mut dyn VlenSink,
        out: &mut [u8],
    ) -> Outcome<Converted> {
        let (data, form) = (self.data, &self.data.form);
        let (file_size, mem_size) = (form.file_size, self.elem);
        let is_string = form.atomic() == Some(NC_STRING);
        if !is_string && !form.has_pointers() {
            if is_copy(form) {
                return Ok(self.fetch(slab, Decode::Raw { elem_size: file_size }, out)?);
            }
            let failed = Mutex::ranked(Rank::Failed, None);
            let run = |src: &[u8], dst: &mut [u8]| {
                if let Err(fault) =
                    ValueReader::new(&data.file, &mut NoVlenSink).all(form, src, dst)
                {
                    let mut failed = failed.lock();
                    *failed = Some(fault);
                }
                Converted::default()
            };
            let decode = Decode::Custom { file_size, mem_size, run: &run };
            let converted = self.fetch(slab, decode, out)?;
            let failed = failed.into_inner();
            return match failed {
                Some(fault) => Err(fault.into()),
                None => Ok(converted),
            };
        }
        let most = VLEN_READ_BYTES.checked_div(file_size).unwrap_or(1).max(1);
        let mut raw = Vec::new();
        let mut left = out;
        let internal = Fault::Refused(NcError::Internal);
        let mut parts = Blocks::of(*slab, most).ok_or(internal)?;
        while let Some(part) = parts.next() {
            let no_memory = || Fault::Refused(NcError::NoMem);
            let len = part.n_elems.checked_mul(file_size).ok_or_else(no_memory)?;
            raw.clear();
            raw.try_reserve_exact(len).map_err(|_| no_memory())?;
            raw.resize(len, 0);
            let decode = Decode::Raw { elem_size: file_size };
            let _all_fit = self.fetch(&part.slab, decode, &mut raw)?;
            let n_bytes = part.n_elems.saturating_mul(mem_size);
            let cut = std::mem::take(&mut left).split_at_mut_checked(n_bytes);
            let (here, rest) = cut.ok_or(NcError::Internal)?;
            left = rest;
            if data.file.is_remote() {
                let mut collections = Vec::new();
                add_collections(form, &raw, data.file.sizes(), &mut collections);
                data.file.fetch_collections(collections)?;
            }
            natural(&data.file, form, place, &raw, here)?;
        }
        Ok(Converted::default())
    }

    /// Takes `n` elements from the budget of sources of virtual datasets.
    pub(crate) fn spend(&self, n: usize) -> Outcome<()> {
        let left = self.work.get().checked_sub(n as u64).ok_or_else(|| {
            let (structure, what) = ("virtual dataset", "elements of sources");
            Fault::Hdf(HdfError::Limit { structure, at: 0, what, limit: self.work.get() })
        })?;
        self.work.set(left);
        Ok(())
    }

    /// One element that no source has: the fill value of the file, else zeros.
    pub(crate) fn read_unwritten(
        &self,
        target: &mut ValueTarget<'_>,
        element: &mut [u8],
    ) -> Outcome<Converted> {
        let form = &self.data.form;
        let zeros;
        let fill = match &self.data.user_fill {
            Some(fill) => &fill[..],
            None => {
                zeros = memory::filled(form.file_size, 0)?;
                &zeros
            }
        };
        match target {
            ValueTarget::Atomic(mem) => match numeric(form, *mem) {
                Some(Numeric::Kernel(decoder)) => Ok(decoder.decode(fill, element)),
                Some(Numeric::Odd(decoder)) => Ok(odd(form, &decoder, fill, element)),
                None => Err(NcError::BadType.into()),
            },
            ValueTarget::Natural(place) => {
                natural(&self.data.file, form, &mut **place, fill, element)?;
                Ok(Converted::default())
            }
        }
    }

    /// Reads a hyperslab of which only the first `count` elements of each axis exist. The others become the
    /// reference's default fill values, not those of HDF5.
    pub(crate) fn read_cut(
        &self,
        slab: &Hyperslab<'_>,
        count: &[usize],
        target: ValueTarget<'_>,
        out: &mut [u8],
    ) -> Outcome<Converted> {
        let (form, elem) = (&self.data.form, self.elem);
        let inner = Hyperslab { start: slab.start, count, stride: slab.stride };
        let n_inner = inner.n_elems().unwrap_or(0);
        let n_all = slab.n_elems().unwrap_or(0);
        let n_fill = n_all.saturating_sub(n_inner) as u64;
        let mut packed = memory::filled(n_inner.saturating_mul(elem), 0)?;
        let mut converted = Converted::default();
        let mut fill = memory::filled(elem, 0)?;
        match target {
            ValueTarget::Atomic(mem) => {
                let ext = form.atomic().and_then(ExtType::from_nc_type);
                let ext = ext.ok_or(NcError::BadType)?;
                let decoder = Decoder::new(ext, ByteOrder::NATIVE, mem, RangeRule::Cast);
                let decoder = decoder.map_err(|_| Fault::Refused(NcError::Char))?;
                let one = decoder.decode(&native_fill(form, ext, None), &mut fill);
                converted.out_of_range = one.out_of_range.saturating_mul(n_fill);
                lay(out, slab.count, count, elem, &mut |place| {
                    place.copy_from_slice(&fill);
                    Ok(())
                })?;
                if n_inner > 0 {
                    converted =
                        converted.and(self.read(&inner, ValueTarget::Atomic(mem), &mut packed)?);
                }
            }
            ValueTarget::Natural(place) => {
                let (model, nc_type) = (self.model, self.nc_type);
                lay(out, slab.count, count, elem, &mut |element| {
                    default_element(model, nc_type, form, place, element)
                })?;
                if n_inner > 0 {
                    let read = self.read(&inner, ValueTarget::Natural(place), &mut packed)?;
                    converted = converted.and(read);
                }
            }
        }
        scatter(out, slab.count, count, elem, &packed);
        Ok(converted)
    }
}

/// A sink for elements without strings and sequences: it takes none.
struct NoVlenSink;

impl VlenSink for NoVlenSink {
    fn place(&mut self, _: &[u8], _: bool) -> Option<u64> {
        None
    }
}

/// Calls `each` for the elements of an array of shape `count` that are outside its first `inner`.
fn lay(
    out: &mut [u8],
    count: &[usize],
    inner: &[usize],
    elem: usize,
    each: &mut dyn FnMut(&mut [u8]) -> Outcome<()>,
) -> Outcome<()> {
    let mut at = vec![0usize; count.len()];
    for element in out.chunks_exact_mut(elem.max(1)) {
        if at.iter().zip(inner).any(|(at, inner)| at >= inner) {
            each(element)?;
        }
        advance(&mut at, count);
    }
    Ok(())
}

/// Puts the packed elements of shape `inner` to the beginning of each axis of `out`.
fn scatter(out: &mut [u8], count: &[usize], inner: &[usize], elem: usize, packed: &[u8]) {
    let mut at = vec![0usize; count.len()];
    let mut packed = packed.chunks_exact(elem.max(1));
    for element in out.chunks_exact_mut(elem.max(1)) {
        if at.iter().zip(inner).all(|(at, inner)| at < inner)
            && let Some(from) = packed.next()
        {
            element.copy_from_slice(from);
        }
        advance(&mut at, count);
    }
}

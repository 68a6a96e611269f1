//! Converting values of any type from the file's bytes to the caller's memory.
//!
//! Strings and sequences are in the global heap. Each is looked up, cut to what its heap object has, and given to a
//! [`VlenSink`]. Sequences may contain sequences: the bytes that one value may take are bounded by the file's
//! length, so that a heap object that is used again and again ends in an error.

use std::ffi::CStr;
use std::sync::Arc;

use zonda_convert::{Decoder, RangeRule};
use zonda_hdf5::{File, FileAddr, HdfError, HeapCursor, Reader, Sizes};

use crate::bits;
use crate::element_form::{ElementForm, ElementShape};
use crate::tuning::VLEN_VALUE_MIN_BYTES;
use zonda_format::VlenSink;

/// Why values cannot be delivered.
#[derive(Debug)]
pub(crate) enum ValueFault {
    /// The file's bytes are damaged.
    Hdf(HdfError),
    /// The caller has no memory for a string or sequence.
    NoMemory,
}

impl From<HdfError> for ValueFault {
    fn from(error: HdfError) -> ValueFault {
        ValueFault::Hdf(error)
    }
}

/// Turns values of the file into values in memory.
pub(crate) struct ValueReader<'a> {
    file: &'a File,
    place: &'a mut dyn VlenSink,
    /// The heap collections of the values before; those of the next values are most likely the same.
    heap: HeapCursor,
    /// Bytes that items of sequences in sequences may still have, for the present value.
    budget: u64,
}

fn damaged(what: &'static str, value: u64) -> ValueFault {
    ValueFault::Hdf(HdfError::BadValue { structure: "value", at: 0, what, value })
}

impl<'a> ValueReader<'a> {
    pub(crate) fn new(file: &'a File, place: &'a mut dyn VlenSink) -> ValueReader<'a> {
        ValueReader { file, place, heap: HeapCursor::default(), budget: 0 }
    }

    /// Converts all elements of `src`, as many as `dst` has room for.
    pub(crate) fn all(
        &mut self,
        form: &ElementForm,
        src: &[u8],
        dst: &mut [u8],
    ) -> Result<(), ValueFault> {
        if form.file_size == 0 || form.size == 0 {
            return Ok(());
        }
        if let (ElementShape::Text(..), 8) = (&form.shape, form.size) {
            let (dst, _) = dst.as_chunks_mut::<8>();
            for (src, dst) in src.chunks_exact(form.file_size).zip(dst) {
                *dst = self.string(src)?.to_ne_bytes();
            }
            return Ok(());
        }
        for (src, dst) in src.chunks_exact(form.file_size).zip(dst.chunks_exact_mut(form.size)) {
            self.budget = self.file.len().saturating_mul(4).saturating_add(VLEN_VALUE_MIN_BYTES);
            self.one(form, src, dst)?;
        }
        Ok(())
    }

    fn many(&mut self, form: &ElementForm, src: &[u8], dst: &mut [u8]) -> Result<(), ValueFault> {
        if let ElementShape::Number(ext, order) = &form.shape {
            let decoder = Decoder::new(*ext, *order, ext.natural_mem(), RangeRule::Strict);
            let decoder = decoder.map_err(|_| damaged("type", 0))?;
            let _all_fit = decoder.decode(src, dst);
            return Ok(());
        }
        if form.file_size == 0 || form.size == 0 {
            return Ok(());
        }
        for (src, dst) in src.chunks_exact(form.file_size).zip(dst.chunks_exact_mut(form.size)) {
            self.one(form, src, dst)?;
        }
        Ok(())
    }

    fn one(&mut self, form: &ElementForm, src: &[u8], dst: &mut [u8]) -> Result<(), ValueFault> {
        match &form.shape {
            ElementShape::Number(..)
            | ElementShape::Integer(_)
            | ElementShape::Float(_)
            | ElementShape::Bits(_) => {
                bits::convert(form, src, dst).ok_or_else(|| damaged("bytes of a number", 0))
            }
            ElementShape::FixedText(..) | ElementShape::Opaque(_) | ElementShape::Reference(_) => {
                for (to, from) in dst.iter_mut().zip(src) {
                    *to = *from;
                }
                Ok(())
            }
            ElementShape::Enum(base, _) => self.one(base, src, dst),
            ElementShape::Array(base, _) | ElementShape::Complex(base) => self.many(base, src, dst),
            ElementShape::Compound(parts) => {
                dst.fill(0);
                for part in parts {
                    let from = src.get(part.file_at..).and_then(|s| s.get(..part.form.file_size));
                    let to = dst.get_mut(part.at..).and_then(|d| d.get_mut(..part.form.size));
                    let (Some(from), Some(to)) = (from, to) else {
                        return Err(damaged("place of a member", part.file_at as u64));
                    };
                    self.one(&part.form, from, to)?;
                }
                Ok(())
            }
            ElementShape::Text(..) => {
                let address = self.string(src)?;
                store(dst, 0, address)
            }
            ElementShape::Sequence(base) => self.sequence(base, src, dst),
        }
    }

    /// Gives one string to the sink.
    pub(crate) fn text(&mut self, bytes: &[u8]) -> Result<u64, ValueFault> {
        self.place.place(bytes, true).ok_or(ValueFault::NoMemory)
    }

    /// Gives one string of the heap to the sink; 0 where none was written.
    fn string(&mut self, src: &[u8]) -> Result<u64, ValueFault> {
        let found = VlenReference::decode(src, self.file.sizes())?;
        let Some(addr) = found.addr else { return Ok(0) };
        if found.n_items == 0 {
            return self.text(b"");
        }
        let object = self.heap.get(self.file, addr, found.index)?.unwrap_or_default();
        let bytes = object.get(..found.n_items).ok_or_else(|| found.too_long())?;
        self.place.place(until_nul(bytes), true).ok_or(ValueFault::NoMemory)
    }

    fn sequence(
        &mut self,
        base: &ElementForm,
        src: &[u8],
        dst: &mut [u8],
    ) -> Result<(), ValueFault> {
        let found = VlenReference::decode(src, self.file.sizes())?;
        let n_items = found.n_items;
        let Some(addr) = found.addr.filter(|_| n_items > 0) else {
            store(dst, 0, 0)?;
            return store(dst, 8, 0);
        };
        // Held, because the items may be sequences from other collections.
        let collection = self.heap.collection(self.file, addr)?.map(Arc::clone);
        let object = collection.as_ref().and_then(|collection| collection.get(found.index));
        let file_len = n_items.checked_mul(base.file_size).ok_or(ValueFault::NoMemory)?;
        let items = object.unwrap_or_default().get(..file_len).ok_or_else(|| found.too_long())?;
        let len = n_items.checked_mul(base.size).ok_or(ValueFault::NoMemory)?;
        self.budget = self
            .budget
            .checked_sub(file_len as u64)
            .ok_or_else(|| damaged("bytes of sequences in one value, at least", file_len as u64))?;
        let mut out = Vec::new();
        out.try_reserve_exact(len).map_err(|_| ValueFault::NoMemory)?;
        out.resize(len, 0);
        self.many(base, items, &mut out)?;
        let address = self.place.place(&out, false).ok_or(ValueFault::NoMemory)?;
        store(dst, 0, n_items as u64)?;
        store(dst, 8, address)
    }
}

/// What an element of variable length is in the file: a reference to the heap.
#[derive(Clone, Copy)]
struct VlenReference {
    n_items: usize,
    /// The heap collection; `None` where nothing was written.
    addr: Option<FileAddr>,
    index: u32,
}

impl VlenReference {
    #[inline]
    fn decode(src: &[u8], sizes: Sizes) -> Result<VlenReference, ValueFault> {
        let mut reader = Reader::new("variable-length value", src, 0, sizes);
        let n_items = reader.u32()?;
        let addr = match sizes.offset {
            8 => Some(FileAddr(reader.u64()?)).filter(|addr| addr.0 != u64::MAX),
            _ => reader.addr()?,
        };
        let index = reader.u32()?;
        let n_items = usize::try_from(n_items).map_err(|_| ValueFault::NoMemory)?;
        Ok(VlenReference { n_items, addr: addr.filter(|addr| addr.0 != 0), index })
    }

    /// The heap has fewer items than the element says.
    fn too_long(&self) -> ValueFault {
        damaged("length of a variable-length value", self.n_items as u64)
    }
}

/// Adds the addresses of the collections that have the strings and sequences of some elements; of sequences in sequences those of the
/// outer ones alone.
pub(crate) fn add_collections(
    form: &ElementForm,
    src: &[u8],
    sizes: Sizes,
    found: &mut Vec<FileAddr>,
) {
    if form.file_size == 0 || !form.has_pointers() {
        return;
    }
    for src in src.chunks_exact(form.file_size) {
        match &form.shape {
            ElementShape::Text(..) | ElementShape::Sequence(_) => {
                let one = VlenReference::decode(src, sizes).ok();
                let addr = one.filter(|one| one.n_items > 0).and_then(|one| one.addr);
                // Neighbours are mostly in one collection.
                found.extend(addr.filter(|addr| found.last() != Some(addr)));
            }
            ElementShape::Compound(parts) => {
                for part in parts {
                    let bytes = src.get(part.file_at..).and_then(|s| s.get(..part.form.file_size));
                    add_collections(&part.form, bytes.unwrap_or_default(), sizes, found);
                }
            }
            ElementShape::Array(base, _)
            | ElementShape::Enum(base, _)
            | ElementShape::Complex(base) => add_collections(base, src, sizes, found),
            _ => {}
        }
    }
}

/// The bytes before the first NUL, where a text ends for C.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes)
}

fn store(dst: &mut [u8], at: usize, value: u64) -> Result<(), ValueFault> {
    let place = dst.get_mut(at..).and_then(|dst| dst.get_mut(..8));
    place
        .ok_or_else(|| damaged("bytes of an element in memory", at as u64))?
        .copy_from_slice(&value.to_ne_bytes());
    Ok(())
}

//! Elements in memory form become elements in file form.
//!
//! Strings and sequences go to the global heap, innermost first; their elements say where they are.
//! Bytes of a compound that no field has are copied along.

use zonda_convert::{ByteOrder, Encoder, RangeRule};
use zonda_format::VlenSource;
use zonda_hdf5::message::Padding;
use zonda_hdf5::{FileAddr, HdfError, HeapId, HeapWriter, Space};

use crate::element_form::{ElementForm, ElementShape};
use crate::fault::HdfResult;

/// Makes file form of as many elements as `dst` has room for.
///
/// # Errors
/// Numbers whose bits no type of memory has; values that are too long for the heap.
pub(crate) fn encode(
    form: &ElementForm,
    heap: &mut HeapWriter,
    space: &mut Space,
    fetch: &mut dyn VlenSource,
    src: &[u8],
    dst: &mut [u8],
) -> HdfResult<()> {
    ToFile { heap, space, fetch }.many(form, src, dst)
}

/// Why a put of half floats, bit fields and the like is refused.
pub(crate) const NOT_WRITTEN: &str = "values of its type can be read, not written";

/// Whether elements of this form can be written. Numbers of odd sizes, which only other programs
/// make, cannot.
pub(crate) fn can_encode(form: &ElementForm) -> bool {
    match &form.shape {
        ElementShape::Number(..)
        | ElementShape::FixedText(..)
        | ElementShape::Text(..)
        | ElementShape::Opaque(_)
        | ElementShape::Reference(_) => true,
        ElementShape::Integer(_) | ElementShape::Float(_) | ElementShape::Bits(_) => false,
        ElementShape::Compound(parts) => parts.iter().all(|part| can_encode(&part.form)),
        ElementShape::Enum(base, _)
        | ElementShape::Array(base, _)
        | ElementShape::Complex(base)
        | ElementShape::Sequence(base) => can_encode(base),
    }
}

/// Whether elements are addresses of texts that have a fixed length in the file.
pub(crate) fn is_fixed_string(form: &ElementForm) -> bool {
    matches!(form.shape, ElementShape::FixedText(..)) && form.file_size != 1
}

/// Encodes packed elements without strings and sequences: from memory form to file form.
pub(crate) fn plain(form: &ElementForm, src: &[u8], dst: &mut [u8]) {
    if form.size == 0 || form.file_size == 0 {
        return;
    }
    if let ElementShape::Number(ext, order) = &form.shape {
        if let Ok(encoder) = Encoder::new(*ext, *order, ext.natural_mem(), RangeRule::Strict) {
            let _all_fit = encoder.encode(src, dst);
        }
        return;
    }
    for (src, dst) in src.chunks_exact(form.size).zip(dst.chunks_exact_mut(form.file_size)) {
        match &form.shape {
            ElementShape::Enum(base, _)
            | ElementShape::Array(base, _)
            | ElementShape::Complex(base) => {
                plain(base, src, dst);
            }
            ElementShape::Compound(parts) => {
                surroundings(src, dst);
                for part in parts {
                    let from = src.get(part.at..).and_then(|s| s.get(..part.form.size));
                    let to = dst.get_mut(part.file_at..);
                    let to = to.and_then(|d| d.get_mut(..part.form.file_size));
                    if let (Some(from), Some(to)) = (from, to) {
                        plain(&part.form, from, to);
                    }
                }
            }
            _ => copy(src, dst),
        }
    }
}

/// Copies the bytes between the members of a compound, if memory has the same layout.
fn surroundings(src: &[u8], dst: &mut [u8]) {
    if src.len() == dst.len() { copy(src, dst) } else { dst.fill(0) }
}

/// Appends texts of fixed length, as the file stores them.
pub(crate) fn fixed_strings(
    form: &ElementForm,
    fetch: &mut dyn VlenSource,
    src: &[u8],
    out: &mut Vec<u8>,
) {
    let fill = match &form.shape {
        ElementShape::FixedText(Padding::SpacePadded, _) => b' ',
        _ => 0,
    };
    for address in src.as_chunks::<8>().0 {
        let end = out.len().saturating_add(form.file_size);
        let text = match u64::from_ne_bytes(*address) {
            0 => None,
            address => fetch.text(address),
        };
        let text = text.unwrap_or_default();
        out.extend_from_slice(text.get(..form.file_size).unwrap_or(text));
        out.resize(end, fill);
    }
}

struct ToFile<'a> {
    heap: &'a mut HeapWriter,
    space: &'a mut Space,
    fetch: &'a mut dyn VlenSource,
}

impl ToFile<'_> {
    fn many(&mut self, form: &ElementForm, src: &[u8], dst: &mut [u8]) -> HdfResult<()> {
        if let ElementShape::Number(ext, order) = &form.shape {
            if *order == ByteOrder::NATIVE || form.size == 1 {
                copy(src, dst);
                return Ok(());
            }
            let encoder = Encoder::new(*ext, *order, ext.natural_mem(), RangeRule::Strict);
            let encoder = encoder.map_err(|_| unknown("type", 0))?;
            let _all_fit = encoder.encode(src, dst);
            return Ok(());
        }
        if form.size == 0 || form.file_size == 0 {
            return Ok(());
        }
        for (src, dst) in src.chunks_exact(form.size).zip(dst.chunks_exact_mut(form.file_size)) {
            self.one(form, src, dst)?;
        }
        Ok(())
    }

    fn one(&mut self, form: &ElementForm, src: &[u8], dst: &mut [u8]) -> HdfResult<()> {
        match &form.shape {
            ElementShape::Number(..) => self.many(form, src, dst),
            ElementShape::Enum(base, _)
            | ElementShape::Array(base, _)
            | ElementShape::Complex(base) => self.many(base, src, dst),
            ElementShape::FixedText(..) | ElementShape::Opaque(_) | ElementShape::Reference(_) => {
                copy(src, dst);
                Ok(())
            }
            ElementShape::Compound(parts) => {
                surroundings(src, dst);
                for part in parts {
                    let from = src.get(part.at..).and_then(|src| src.get(..part.form.size));
                    let to = dst.get_mut(part.file_at..);
                    let to = to.and_then(|to| to.get_mut(..part.form.file_size));
                    let (Some(from), Some(to)) = (from, to) else {
                        return Err(unknown("place of a member", part.file_at as u64));
                    };
                    self.many(&part.form, from, to)?;
                }
                Ok(())
            }
            ElementShape::Text(..) => {
                let text = match load(src, 0) {
                    0 => None,
                    address => self.fetch.text(address),
                };
                let len = text.map_or(0, <[u8]>::len);
                let place = text.map(|text| self.heap.put(text, self.space)).transpose()?;
                refer(len, place, dst)
            }
            ElementShape::Sequence(base) => {
                let (n_items, address) = (load(src, 0), load(src, 8));
                if n_items == 0 || address == 0 {
                    return refer(0, None, dst);
                }
                let too_many = || HdfError::TooLarge { structure: SEQUENCE, value: n_items };
                let n = usize::try_from(n_items).map_err(|_| too_many())?;
                let len = n.checked_mul(base.size).ok_or_else(too_many)?;
                let file_len = n.checked_mul(base.file_size).ok_or_else(too_many)?;
                let mut stored = Vec::new();
                stored.try_reserve_exact(file_len).map_err(|_| too_many())?;
                stored.resize(file_len, 0);
                let items = self.fetch.items(address, len);
                if base.has_pointers() {
                    // Copied, because fetching what items point to uses the same buffer.
                    let items = items.to_vec();
                    self.many(base, &items, &mut stored)?;
                } else {
                    plain(base, items, &mut stored);
                }
                let place = self.heap.put(&stored, self.space)?;
                refer(n, Some(place), dst)
            }
            ElementShape::Integer(_) | ElementShape::Float(_) | ElementShape::Bits(_) => {
                Err(unknown("bits of a number", form.file_size as u64))
            }
        }
    }
}

const SEQUENCE: &str = "sequence";

fn unknown(what: &'static str, value: u64) -> HdfError {
    HdfError::BadValue { structure: "value", at: 0, what, value }
}

fn copy(src: &[u8], dst: &mut [u8]) {
    for (to, from) in dst.iter_mut().zip(src) {
        *to = *from;
    }
}

fn load(src: &[u8], at: usize) -> u64 {
    let bytes = src.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// Writes a reference to the heap: the number of items, the collection, the object in it. The address of the
/// collection has as many bytes as the other two leave.
fn refer(n_items: usize, place: Option<HeapId>, dst: &mut [u8]) -> HdfResult<()> {
    let n = u32::try_from(n_items)
        .map_err(|_| HdfError::TooLarge { structure: SEQUENCE, value: n_items as u64 })?;
    let HeapId { collection, index } =
        place.unwrap_or(HeapId { collection: FileAddr(0), index: 0 });
    let address_at = 4;
    let index_at = dst.len().saturating_sub(4).max(address_at);
    let (head, tail) = dst.split_at_mut_checked(index_at).ok_or_else(|| unknown("bytes", 0))?;
    copy(&index.to_le_bytes(), tail);
    copy(&n.to_le_bytes(), head);
    let address = head.get_mut(address_at..).unwrap_or_default();
    let bytes = collection.0.to_le_bytes();
    if bytes.get(address.len()..).unwrap_or_default().iter().any(|&byte| byte != 0) {
        return Err(HdfError::TooLarge { structure: SEQUENCE, value: collection.0 });
    }
    address.fill(0);
    copy(&bytes, address);
    Ok(())
}

#[cfg(test)]
mod tests;

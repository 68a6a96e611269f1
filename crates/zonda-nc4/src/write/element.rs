//! Elements of any type on their way into the file: the mirror of `values.rs`.
//!
//! Strings and sequences go to the global heap. A null pointer is an element that is not there; an
//! empty string is there, and has a heap object of no bytes. What was there before an element was
//! written over stays in the heap.

use zonda_convert::{Encoder, RangeRule};
use zonda_hdf5::message::Padding;
use zonda_hdf5::{HdfError, HeapId, HeapWriter, Sizes, Space};

use super::Fetch;
use crate::form::{Form, Shape};
use crate::get::GetFault;

type Result<T> = std::result::Result<T, GetFault>;

/// Whether elements of this form can be written. Numbers of odd sizes, which only other programs
/// make, cannot.
pub(crate) fn can_encode(form: &Form) -> bool {
    match &form.shape {
        Shape::Number(..)
        | Shape::FixedText(..)
        | Shape::Text(..)
        | Shape::Opaque(_)
        | Shape::Reference(_) => true,
        Shape::Integer(_) | Shape::Float(_) | Shape::Bits(_) => false,
        Shape::Compound(parts) => parts.iter().all(|part| can_encode(&part.form)),
        Shape::Enum(base, _)
        | Shape::Array(base, _)
        | Shape::Complex(base)
        | Shape::Sequence(base) => can_encode(base),
    }
}

/// Whether elements are addresses of texts that have a fixed length in the file.
pub(crate) fn is_fixed_string(form: &Form) -> bool {
    matches!(form.shape, Shape::FixedText(..)) && form.file_size != 1
}

/// Packed elements in memory form, none of which points to anything, to as many in file form.
pub(crate) fn plain(form: &Form, src: &[u8], dst: &mut [u8]) {
    if form.size == 0 || form.file_size == 0 {
        return;
    }
    if let Shape::Number(ext, order) = &form.shape {
        if let Ok(encoder) = Encoder::new(*ext, *order, ext.natural_mem(), RangeRule::Strict) {
            let _all_fit = encoder.encode(src, dst);
        }
        return;
    }
    for (src, dst) in src.chunks_exact(form.size).zip(dst.chunks_exact_mut(form.file_size)) {
        match &form.shape {
            Shape::Enum(base, _) | Shape::Array(base, _) | Shape::Complex(base) => {
                plain(base, src, dst);
            }
            Shape::Compound(parts) => {
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

/// What is between the members of a compound: as it is in memory where that has the same layout.
fn surroundings(src: &[u8], dst: &mut [u8]) {
    if src.len() == dst.len() { copy(src, dst) } else { dst.fill(0) }
}

fn copy(src: &[u8], dst: &mut [u8]) {
    dst.fill(0);
    for (to, from) in dst.iter_mut().zip(src) {
        *to = *from;
    }
}

/// Appends packed elements in file form; what they point to goes to the heap.
///
/// # Errors
/// `NC_EHDFERR` for strings and sequences that are too long for the file; those of the heap.
pub(crate) fn encode(
    form: &Form,
    heap: &mut HeapWriter,
    space: &mut Space,
    sizes: Sizes,
    fetch: &mut dyn Fetch,
    src: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    Elements { heap, space, sizes, fetch }.all(form, src, out)
}

/// Appends texts as the file has them that stores so many bytes of each.
pub(crate) fn fixed_strings(form: &Form, fetch: &mut dyn Fetch, src: &[u8], out: &mut Vec<u8>) {
    let fill = match &form.shape {
        Shape::FixedText(Padding::SpacePadded, _) => b' ',
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

struct Elements<'a> {
    heap: &'a mut HeapWriter,
    space: &'a mut Space,
    sizes: Sizes,
    fetch: &'a mut dyn Fetch,
}

impl Elements<'_> {
    fn all(&mut self, form: &Form, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if form.size == 0 {
            return Ok(());
        }
        let n = src.len().checked_div(form.size).unwrap_or(0);
        if !form.has_pointers() {
            let begin = out.len();
            let len = n.saturating_mul(form.file_size);
            out.resize(begin.saturating_add(len), 0);
            plain(form, src, out.get_mut(begin..).unwrap_or_default());
            return Ok(());
        }
        src.chunks_exact(form.size).try_for_each(|src| self.one(form, src, out))
    }

    fn one(&mut self, form: &Form, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match &form.shape {
            Shape::Text(..) => self.text(word(src, 0), out),
            Shape::Sequence(base) => self.sequence(base, word(src, 0), word(src, 8), out),
            Shape::Enum(base, _) | Shape::Array(base, _) | Shape::Complex(base) => {
                self.all(base, src, out)
            }
            Shape::Compound(parts) => {
                let begin = out.len();
                out.resize(begin.saturating_add(form.file_size), 0);
                if let Some(dst) = out.get_mut(begin..) {
                    surroundings(src, dst);
                }
                let mut member = Vec::new();
                for part in parts {
                    let from = src.get(part.at..).and_then(|s| s.get(..part.form.size));
                    member.clear();
                    self.all(&part.form, from.unwrap_or_default(), &mut member)?;
                    let to = out.get_mut(begin.saturating_add(part.file_at)..);
                    if let Some(to) = to.and_then(|to| to.get_mut(..part.form.file_size)) {
                        copy(&member, to);
                    }
                }
                Ok(())
            }
            _ => {
                let begin = out.len();
                out.resize(begin.saturating_add(form.file_size), 0);
                plain(form, src, out.get_mut(begin..).unwrap_or_default());
                Ok(())
            }
        }
    }

    fn text(&mut self, address: u64, out: &mut Vec<u8>) -> Result<()> {
        let Elements { heap, space, sizes, fetch } = self;
        let text = match address {
            0 => None,
            address => fetch.text(address),
        };
        let (mut id, mut n) = (None, 0);
        if let Some(text) = text {
            n = length(text.len() as u64)?;
            id = Some(heap.put(text, space).map_err(GetFault::Hdf)?);
        }
        HeapId::encode(id, n, *sizes, out).map_err(GetFault::Hdf)
    }

    fn sequence(
        &mut self,
        base: &Form,
        n_items: u64,
        address: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if n_items == 0 || address == 0 {
            return HeapId::encode(None, 0, self.sizes, out).map_err(GetFault::Hdf);
        }
        let n = length(n_items)?;
        let len = usize::try_from(n_items).ok().and_then(|n| n.checked_mul(base.size));
        let len = len.ok_or(GetFault::Refused(zonda_model::NcError::NoMem))?;
        let items = self.fetch.items(address, len);
        let mut stored = Vec::new();
        if base.has_pointers() {
            // What is asked for next takes their place.
            let items = items.to_vec();
            self.all(base, &items, &mut stored)?;
        } else {
            let n = items.len().checked_div(base.size).unwrap_or(0);
            stored.resize(n.saturating_mul(base.file_size), 0);
            plain(base, items, &mut stored);
        }
        let id = self.heap.put(&stored, self.space).map_err(GetFault::Hdf)?;
        HeapId::encode(Some(id), n, self.sizes, out).map_err(GetFault::Hdf)
    }
}

/// How long a string or sequence is, as elements say it.
fn length(n: u64) -> Result<u32> {
    let too_large = HdfError::TooLarge { structure: "variable-length value", value: n };
    u32::try_from(n).map_err(|_| GetFault::Hdf(too_large))
}

fn word(src: &[u8], at: usize) -> u64 {
    let bytes = src.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

//! Copying values with all that they point to: into [`OwnedValues`] and out of them.
//!
//! Attributes that were put and fill values that were set stay in memory form. Their strings and sequences are in
//! memory until a commit puts them into the global heap. So inquiries need no file, a value that is replaced before
//! the commit takes no space in the file, and definitions do no I/O.

use zonda_format::{OwnedValues, VlenSink, VlenSource};
use zonda_hdf5::File;
use zonda_model::NcError;
use zonda_model::memory::{self, NoMemory};

use crate::element_form::{ElementForm, ElementShape};
use crate::fault::Coded;
use crate::values::{ValueFault, ValueReader};

/// Copies elements in the caller's memory with what they point to.
///
/// # Errors
/// `NC_ENOMEM` for sequences of impossible lengths.
pub(crate) fn take(
    form: &ElementForm,
    fetch: &mut dyn VlenSource,
    src: &[u8],
) -> Coded<OwnedValues> {
    let mut bytes = memory::copied(src)?;
    let mut held = OwnedValues::default();
    if form.has_pointers() {
        adopt(&mut held, form, fetch, &mut bytes)?;
    }
    Ok(held.with_bytes(bytes))
}

/// Reads elements in file form, with what they point to in the file's global heap.
///
/// # Errors
/// Damage, and values of impossible lengths.
pub(crate) fn read(form: &ElementForm, file: &File, src: &[u8]) -> Result<OwnedValues, ValueFault> {
    let n = src.len().checked_div(form.file_size).unwrap_or(0);
    let len = n.checked_mul(form.size).ok_or(ValueFault::NoMemory)?;
    let mut bytes = memory::filled(len, 0).map_err(|_| ValueFault::NoMemory)?;
    let mut held = OwnedValues::default();
    ValueReader::new(file, &mut held).all(form, src, &mut bytes)?;
    Ok(held.with_bytes(bytes))
}

/// Copies the elements, with what they point to, into the caller's memory.
///
/// # Errors
/// `NC_ENOMEM` where the caller has no memory.
pub(crate) fn give(
    held: &OwnedValues,
    form: &ElementForm,
    place: &mut dyn VlenSink,
    out: &mut [u8],
) -> Coded<()> {
    for (to, from) in out.iter_mut().zip(held.bytes()) {
        *to = *from;
    }
    if form.has_pointers() { hand_over(held, form, place, out) } else { Ok(()) }
}

/// Copies what the elements point to, and makes them point to the copies.
fn adopt(
    held: &mut OwnedValues,
    form: &ElementForm,
    fetch: &mut dyn VlenSource,
    elements: &mut [u8],
) -> Coded<()> {
    each(form, elements, &mut |form, element| {
        match &form.shape {
            ElementShape::Text(..) => {
                let text = match load(element, 0) {
                    0 => None,
                    address => fetch.text(address).map(memory::copied).transpose()?,
                };
                let address = text.map_or(0, |text| held.keep(text.into()));
                store(element, 0, address);
            }
            ElementShape::Sequence(base) => {
                let (n_items, address) = (load(element, 0), load(element, 8));
                let n_items = if address == 0 { 0 } else { n_items };
                let mut kept = 0;
                if n_items > 0 {
                    let n = usize::try_from(n_items).map_err(|_| NcError::NoMem)?;
                    let len = n.checked_mul(base.size).ok_or(NcError::NoMem)?;
                    let impossible = isize::try_from(len).is_err();
                    if impossible {
                        return Err(NoMemory::of::<u8>(len).into());
                    }
                    let mut items = memory::copied(fetch.items(address, len))?;
                    if base.has_pointers() {
                        adopt(held, base, fetch, &mut items)?;
                    }
                    kept = held.keep(items.into());
                }
                store(element, 0, n_items);
                store(element, 8, kept);
            }
            _ => {}
        }
        Ok(())
    })
}

fn hand_over(
    held: &OwnedValues,
    form: &ElementForm,
    place: &mut dyn VlenSink,
    elements: &mut [u8],
) -> Coded<()> {
    each(form, elements, &mut |form, element| {
        match &form.shape {
            ElementShape::Text(..) => {
                let mut address = 0;
                if let Some(text) = held.part(load(element, 0)) {
                    address = place.place(text, true).ok_or(NcError::NoMem)?;
                }
                store(element, 0, address);
            }
            ElementShape::Sequence(base) => {
                let mut address = 0;
                if let Some(items) = held.part(load(element, 8)) {
                    let mut items = memory::copied(items)?;
                    if base.has_pointers() {
                        hand_over(held, base, place, &mut items)?;
                    }
                    address = place.place(&items, false).ok_or(NcError::NoMem)?;
                }
                store(element, 8, address);
            }
            _ => {}
        }
        Ok(())
    })
}

/// A function that is called for each string and sequence.
type VisitPointers<'v> = dyn FnMut(&ElementForm, &mut [u8]) -> Coded<()> + 'v;

/// Calls `visit` for every string and sequence in elements of a form.
fn each(form: &ElementForm, elements: &mut [u8], visit: &mut VisitPointers<'_>) -> Coded<()> {
    if form.size == 0 {
        return Ok(());
    }
    for element in elements.chunks_exact_mut(form.size) {
        match &form.shape {
            ElementShape::Text(..) | ElementShape::Sequence(_) => visit(form, element)?,
            ElementShape::Compound(parts) => {
                for part in parts.iter().filter(|part| part.form.has_pointers()) {
                    let place = element.get_mut(part.at..);
                    if let Some(place) = place.and_then(|place| place.get_mut(..part.form.size)) {
                        each(&part.form, place, visit)?;
                    }
                }
            }
            ElementShape::Array(base, _) => each(base, element, visit)?,
            _ => {}
        }
    }
    Ok(())
}

fn load(element: &[u8], at: usize) -> u64 {
    let bytes = element.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

fn store(element: &mut [u8], at: usize, value: u64) {
    if let Some(place) = element.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value.to_ne_bytes();
    }
}

#[cfg(test)]
mod tests;

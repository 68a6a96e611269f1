//! Values in memory form that own what they point to.
//!
//! Attributes that were put and fill values that were set stay in memory form: strings and sequences
//! are here, not in the global heap, until a commit puts them there. So inquiries need no file, a
//! value that is overwritten before the commit costs the file nothing, and definitions do no I/O.

use zonda_format::Fetch;
use zonda_hdf5::File;
use zonda_model::NcError;
use zonda_model::memory::{self, NoMemory};

use crate::form::{Form, Shape};
use crate::values::{Fault, Values};
use zonda_format::Place;

/// Elements in memory form, with what they point to. An address in them is the number of a part,
/// counted from 1; 0 is the null pointer. A reference to it fetches these parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    bytes: Box<[u8]>,
    parts: Vec<Box<[u8]>>,
}

/// Bytes of a length as it is written.
const WORD: usize = size_of::<u64>();

type Result<T> = std::result::Result<T, NcError>;

impl Held {
    /// Elements that point to nothing.
    pub(crate) fn plain(bytes: impl Into<Box<[u8]>>) -> Held {
        Held { bytes: bytes.into(), parts: Vec::new() }
    }

    /// A copy of elements in the caller's memory and of what they point to.
    ///
    /// # Errors
    /// `NC_ENOMEM` for sequences of impossible lengths.
    pub(crate) fn take(form: &Form, fetch: &mut dyn Fetch, src: &[u8]) -> Result<Held> {
        let mut held = Held::plain(memory::copied(src)?);
        if form.has_pointers() {
            let mut bytes = std::mem::take(&mut held.bytes);
            held.adopt(form, fetch, &mut bytes)?;
            held.bytes = bytes;
        }
        Ok(held)
    }

    /// Elements in file form, and what they point to in the file's global heap.
    ///
    /// # Errors
    /// Damage, and values of impossible lengths.
    pub(crate) fn read(form: &Form, file: &File, src: &[u8]) -> std::result::Result<Held, Fault> {
        let n = src.len().checked_div(form.file_size).unwrap_or(0);
        let len = n.checked_mul(form.size).ok_or(Fault::NoMemory)?;
        let mut bytes = memory::filled(len, 0).map_err(|_| Fault::NoMemory)?;
        let mut held = Held::default();
        Values::new(file, &mut held).all(form, src, &mut bytes)?;
        held.bytes = bytes.into();
        Ok(held)
    }

    /// Bytes that all of it takes in memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let parts = self.parts.iter().map(|part| part.len().saturating_add(size_of_val(part)));
        parts.fold(self.bytes.len(), usize::saturating_add)
    }

    /// The elements themselves.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that [`Held::write_to`] takes.
    #[must_use]
    pub fn written_bytes(&self) -> usize {
        let lens = (self.parts.len().saturating_add(2)).saturating_mul(WORD);
        let parts = self.parts.iter().map(|part| part.len());
        parts.fold(self.bytes.len(), usize::saturating_add).saturating_add(lens)
    }

    /// Writes all of it, for another process of the same machine: the number of parts, the lengths of
    /// the elements and of each part as words, then their bytes. `out` takes [`Held::written_bytes`];
    /// `None` where it is of another length.
    #[must_use]
    pub fn write_to(&self, out: &mut [u8]) -> Option<()> {
        let all = || std::iter::once(&self.bytes).chain(&self.parts);
        let words = std::iter::once(self.parts.len()).chain(all().map(|part| part.len()));
        let mut rest = out;
        let mut write = |bytes: &[u8]| {
            let (to, behind) = std::mem::take(&mut rest).split_at_mut_checked(bytes.len())?;
            to.copy_from_slice(bytes);
            rest = behind;
            Some(())
        };
        for word in words {
            write(&(word as u64).to_ne_bytes())?;
        }
        for part in all() {
            write(part)?;
        }
        rest.is_empty().then_some(())
    }

    /// What [`Held::write_to`] wrote; `None` for anything else.
    #[must_use]
    pub fn read_from(bytes: &[u8]) -> Option<Held> {
        let (n_parts, rest) = bytes.split_first_chunk()?;
        let n = usize::try_from(u64::from_ne_bytes(*n_parts)).ok()?.checked_add(1)?;
        let (lens, mut rest) = rest.split_at_checked(n.checked_mul(WORD)?)?;
        let mut parts = Vec::with_capacity(n);
        for len in lens.chunks_exact(WORD) {
            let len = usize::try_from(u64::from_ne_bytes(len.try_into().ok()?)).ok()?;
            let (part, behind) = rest.split_at_checked(len)?;
            parts.push(Box::from(part));
            rest = behind;
        }
        let mut parts = parts.into_iter();
        Some(Held { bytes: parts.next()?, parts: parts.collect() })
    }

    /// Hands the elements over with what they point to.
    ///
    /// # Errors
    /// `NC_ENOMEM` where the caller has no memory.
    pub(crate) fn give(&self, form: &Form, place: &mut dyn Place, out: &mut [u8]) -> Result<()> {
        for (to, from) in out.iter_mut().zip(&self.bytes) {
            *to = *from;
        }
        if form.has_pointers() { self.hand_over(form, place, out) } else { Ok(()) }
    }

    fn part(&self, address: u64) -> Option<&[u8]> {
        let index = usize::try_from(address.checked_sub(1)?).ok()?;
        self.parts.get(index).map(|part| &**part)
    }

    fn keep(&mut self, part: Box<[u8]>) -> u64 {
        self.parts.push(part);
        self.parts.len() as u64
    }

    /// Copies what the elements point to, and makes them point to the copies.
    fn adopt(&mut self, form: &Form, fetch: &mut dyn Fetch, elements: &mut [u8]) -> Result<()> {
        each(form, elements, &mut |form, element| {
            match &form.shape {
                Shape::Text(..) => {
                    let text = match load(element, 0) {
                        0 => None,
                        address => fetch.text(address).map(memory::copied).transpose()?,
                    };
                    let address = text.map_or(0, |text| self.keep(text.into()));
                    store(element, 0, address);
                }
                Shape::Sequence(base) => {
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
                            self.adopt(base, fetch, &mut items)?;
                        }
                        kept = self.keep(items.into());
                    }
                    store(element, 0, n_items);
                    store(element, 8, kept);
                }
                _ => {}
            }
            Ok(())
        })
    }

    fn hand_over(&self, form: &Form, place: &mut dyn Place, elements: &mut [u8]) -> Result<()> {
        each(form, elements, &mut |form, element| {
            match &form.shape {
                Shape::Text(..) => {
                    let mut address = 0;
                    if let Some(text) = self.part(load(element, 0)) {
                        address = place.place(text, true).ok_or(NcError::NoMem)?;
                    }
                    store(element, 0, address);
                }
                Shape::Sequence(base) => {
                    let mut address = 0;
                    if let Some(items) = self.part(load(element, 8)) {
                        let mut items = memory::copied(items)?;
                        if base.has_pointers() {
                            self.hand_over(base, place, &mut items)?;
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
}

impl Place for Held {
    fn place(&mut self, bytes: &[u8], _text: bool) -> Option<u64> {
        Some(self.keep(bytes.into()))
    }
}

impl Fetch for &Held {
    fn text(&mut self, address: u64) -> Option<&[u8]> {
        self.part(address)
    }

    fn items(&mut self, address: u64, len: usize) -> &[u8] {
        self.part(address).and_then(|part| part.get(..len)).unwrap_or_default()
    }
}

/// What is done with the elements that point to something.
type Visit<'v> = dyn FnMut(&Form, &mut [u8]) -> Result<()> + 'v;

/// Calls `visit` for every string and sequence in elements of a form.
fn each(form: &Form, elements: &mut [u8], visit: &mut Visit<'_>) -> Result<()> {
    if form.size == 0 {
        return Ok(());
    }
    for element in elements.chunks_exact_mut(form.size) {
        match &form.shape {
            Shape::Text(..) | Shape::Sequence(_) => visit(form, element)?,
            Shape::Compound(parts) => {
                for part in parts.iter().filter(|part| part.form.has_pointers()) {
                    let place = element.get_mut(part.at..);
                    if let Some(place) = place.and_then(|place| place.get_mut(..part.form.size)) {
                        each(&part.form, place, visit)?;
                    }
                }
            }
            Shape::Array(base, _) => each(base, element, visit)?,
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

//! Values that point to others: strings, sequences, and compounds that have some. For a way to another process they are copied with what they
//! point to, and made to point to places in the copy.

use zonda_model::{ExtType, NcError, memory};

use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::owned_values::OwnedValues;
use crate::transfer::{VlenSink, VlenSource};
use crate::types::{FIRST_USER_TYPE, NC_STRING, UserClass};

/// Bytes of an address and of a length in memory.
const WORD: usize = size_of::<u64>();

/// How deep types may lie in each other: deeper ones are of damaged files.
const MOST_DEPTH: usize = 64;

/// Where elements of a type have pointers, and to what.
#[derive(Debug)]
pub struct Pointers {
    size: usize,
    places: Vec<(usize, Target)>,
}

#[derive(Debug)]
enum Target {
    Text,
    Items(Pointers),
}

impl Pointers {
    /// Of elements that have none.
    #[must_use]
    pub fn none() -> Pointers {
        Pointers { size: 0, places: Vec::new() }
    }

    /// Those of strings.
    #[must_use]
    pub fn text() -> Pointers {
        Pointers { size: WORD, places: vec![(0, Target::Text)] }
    }

    /// Bytes of an element.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Those of a type.
    ///
    /// # Errors
    /// `NC_EBADTYPE`.
    pub fn of(definitions: &dyn Definitions, nc_type: i32) -> Result<Pointers> {
        Pointers::within(definitions, nc_type, 0)
    }

    fn within(definitions: &dyn Definitions, nc_type: i32, depth: usize) -> Result<Pointers> {
        let bad = || Error::from(NcError::BadType);
        if depth > MOST_DEPTH {
            return Err(bad());
        }
        if nc_type == NC_STRING {
            return Ok(Pointers::text());
        }
        if nc_type < FIRST_USER_TYPE {
            let size = ExtType::from_nc_type(nc_type).ok_or_else(bad)?.size();
            return Ok(Pointers { size, places: Vec::new() });
        }
        let known = definitions.user_type(nc_type)?;
        let mut places = Vec::new();
        match &known.class {
            UserClass::Vlen { base } => {
                let items = Pointers::within(definitions, *base, depth + 1)?;
                places.push((0, Target::Items(items)));
            }
            UserClass::Compound(fields) => {
                for field in fields {
                    let one = || Pointers::within(definitions, field.nc_type, depth + 1);
                    let first = one()?;
                    if first.places.is_empty() {
                        continue;
                    }
                    let mut lens = field.dims.iter().map(|&len| usize::try_from(len).unwrap_or(0));
                    // A field lies in its compound, so that there are no more pointers than that has words.
                    let n = lens.try_fold(1usize, usize::checked_mul);
                    let end = n.and_then(|n| n.checked_mul(first.size)?.checked_add(field.offset));
                    let n =
                        n.filter(|_| end.is_some_and(|end| end <= known.size)).ok_or_else(bad)?;
                    for index in 0..n {
                        let at = field.offset + index * first.size;
                        places.extend(one()?.places.into_iter().map(|(to, what)| (at + to, what)));
                    }
                }
            }
            _ => {}
        }
        Ok(Pointers { size: known.size, places })
    }

    /// Whether elements have none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Copies elements with what they point to.
    ///
    /// # Errors
    /// `NC_ENOMEM`, also for sequences of impossible lengths.
    pub fn take(&self, fetch: &mut dyn VlenSource, elements: &[u8]) -> Result<OwnedValues> {
        let mut bytes = memory::copied(elements)?;
        let mut kept = OwnedValues::default();
        self.adopt(&mut kept, fetch, &mut bytes)?;
        Ok(kept.with_bytes(bytes))
    }

    fn adopt(
        &self,
        kept: &mut OwnedValues,
        fetch: &mut dyn VlenSource,
        elements: &mut [u8],
    ) -> Result<()> {
        self.each(elements, &mut |target, element| {
            match target {
                Target::Text => {
                    let text = match load(element, 0) {
                        0 => None,
                        address => fetch.text(address).map(memory::copied).transpose()?,
                    };
                    store(element, 0, text.map_or(0, |text| kept.keep(text.into())));
                }
                Target::Items(items) => {
                    let (n, address) = (load(element, 0), load(element, WORD));
                    let n = if address == 0 { 0 } else { n };
                    let mut place = 0;
                    if n > 0 {
                        let mut copy = memory::copied(fetch.items(address, items.bytes_of(n)?))?;
                        items.adopt(kept, fetch, &mut copy)?;
                        place = kept.keep(copy.into());
                    }
                    store(element, 0, n);
                    store(element, WORD, place);
                }
            }
            Ok(())
        })
    }

    /// Copies elements to the caller's memory, with what they point to.
    ///
    /// # Errors
    /// `NC_ENOMEM` where the caller has no memory.
    pub fn give(&self, from: &OwnedValues, place: &mut dyn VlenSink, out: &mut [u8]) -> Result<()> {
        self.give_some(from, from.bytes(), place, out)
    }

    /// The same with `elements`, which are some of those of `from`.
    ///
    /// # Errors
    /// As [`Pointers::give`].
    pub fn give_some(
        &self,
        from: &OwnedValues,
        elements: &[u8],
        place: &mut dyn VlenSink,
        out: &mut [u8],
    ) -> Result<()> {
        out.iter_mut().zip(elements).for_each(|(to, from)| *to = *from);
        self.hand_over(from, place, out)
    }

    fn hand_over(
        &self,
        from: &OwnedValues,
        place: &mut dyn VlenSink,
        elements: &mut [u8],
    ) -> Result<()> {
        self.each(elements, &mut |target, element| {
            match target {
                Target::Text => {
                    let address = match from.part(load(element, 0)) {
                        Some(text) => place.place(text, true).ok_or(NcError::NoMem)?,
                        None => 0,
                    };
                    store(element, 0, address);
                }
                Target::Items(items) => {
                    let n = load(element, 0);
                    let mut address = 0;
                    if n > 0 {
                        let part = from.part(load(element, WORD)).unwrap_or_default();
                        let part = part.get(..items.bytes_of(n)?).ok_or(NcError::Internal)?;
                        let mut copy = memory::copied(part)?;
                        items.hand_over(from, place, &mut copy)?;
                        address = place.place(&copy, false).ok_or(NcError::NoMem)?;
                    }
                    store(element, WORD, address);
                }
            }
            Ok(())
        })
    }

    /// Bytes of so many elements.
    fn bytes_of(&self, n: u64) -> Result<usize> {
        let bytes = usize::try_from(n).ok().and_then(|n| n.checked_mul(self.size));
        Ok(bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(NcError::NoMem)?)
    }

    /// Calls `f` for each pointer of each element, with what it points to and the bytes from it on.
    fn each(
        &self,
        elements: &mut [u8],
        f: &mut dyn FnMut(&Target, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        if self.is_empty() || self.size == 0 {
            return Ok(());
        }
        for element in elements.chunks_exact_mut(self.size) {
            for (at, target) in &self.places {
                f(target, element.get_mut(*at..).ok_or(NcError::BadType)?)?;
            }
        }
        Ok(())
    }
}

fn load(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    word.map_or(0, |word| u64::from_ne_bytes(*word))
}

fn store(bytes: &mut [u8], at: usize, word: u64) {
    if let Some(to) = bytes.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut()) {
        *to = word.to_ne_bytes();
    }
}

/// Whether elements of a type point to others: strings, sequences, and compounds with such fields.
///
/// # Errors
/// `NC_EBADTYPE`.
pub fn has_pointers(definitions: &dyn Definitions, nc_type: i32) -> Result<bool> {
    Ok(!Pointers::of(definitions, nc_type)?.is_empty())
}

//! The attributes of one owner.
//!
//! Those of a file that is opened stay where they were read, in one copy of the header's bytes;
//! they are checked then, and taken apart when somebody asks for one. The first change to a list
//! takes all of it apart.

use std::sync::Arc;

use smallvec::SmallVec;
use zonda_model::{ExtType, normalize_name};

use crate::codec;
use crate::header::Name;
use crate::reader::Reader;

/// An attribute, its values as they stand in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Att {
    /// Name.
    pub name: Name,
    /// External type.
    pub ty: ExtType,
    /// Number of values.
    pub len: u64,
    /// The values in external form, big-endian, without padding: `len * ty.size()` bytes.
    pub bytes: SmallVec<[u8; 16]>,
}

/// A look at an [`Att`], wherever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttRef<'a> {
    /// Name.
    pub name: &'a [u8],
    /// External type.
    pub ty: ExtType,
    /// Number of values.
    pub len: u64,
    /// The values in external form, big-endian, without padding: `len * ty.size()` bytes.
    pub bytes: &'a [u8],
}

/// The header of a file as it was read, and where in it each attribute begins.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) bytes: Vec<u8>,
    /// For each list the places of its attributes and then of its end.
    pub(crate) places: Vec<u32>,
    /// Counts are 8 bytes (CDF-5) instead of 4.
    pub(crate) wide: bool,
}

impl Source {
    fn place(&self, number: u32) -> Option<usize> {
        self.places.get(number as usize).map(|&place| place as usize)
    }
}

/// A list as it was read: `n` attributes whose places in the source begin at number `first`.
#[derive(Clone, Debug)]
struct Stored {
    source: Arc<Source>,
    first: u32,
    n: u32,
}

impl Stored {
    /// An attribute with its name as it is counted, NULs included.
    #[inline]
    fn get(&self, index: usize) -> Option<AttRef<'_>> {
        let index = u32::try_from(index).ok().filter(|&index| index < self.n)?;
        let place = self.source.place(self.first.checked_add(index)?)?;
        let mut reader = Reader::resume(self.source.bytes.get(place..)?, self.source.wide);
        codec::att(&mut reader).ok()
    }
}

/// A list of attributes in order of definition.
#[derive(Clone, Debug, Default)]
pub struct Atts {
    /// Set until the list is changed.
    stored: Option<Stored>,
    own: Vec<Att>,
}

impl Atts {
    /// The list of `n` attributes whose places in the source begin at number `first`.
    pub(crate) fn stored(source: &Arc<Source>, first: u32, n: u32) -> Atts {
        let stored = (n > 0).then(|| Stored { source: Arc::clone(source), first, n });
        Atts { stored, own: Vec::new() }
    }

    /// Number of attributes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stored.as_ref().map_or(self.own.len(), |stored| stored.n as usize)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Attribute number `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<AttRef<'_>> {
        if let Some(stored) = &self.stored {
            let att = stored.get(index)?;
            return Some(AttRef { name: codec::up_to_nul(att.name), ..att });
        }
        let Att { name, ty, len, bytes } = self.own.get(index)?;
        Some(AttRef { name, ty: *ty, len: *len, bytes })
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = AttRef<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The attribute with that name, which is normalised first, and its position.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<(usize, AttRef<'_>)> {
        let name = normalize_name(name).ok()?;
        self.iter().enumerate().find(|(_, att)| *att.name == *name)
    }

    /// The list to change.
    pub(crate) fn to_mut(&mut self) -> &mut Vec<Att> {
        if let Some(stored) = self.stored.take() {
            let atts = (0..stored.n as usize).filter_map(|index| stored.get(index));
            let own = atts.map(|AttRef { name, ty, len, bytes }| Att {
                name: Name::in_space(codec::up_to_nul(name), name.len()),
                ty,
                len,
                bytes: SmallVec::from_slice(bytes),
            });
            self.own = own.collect();
        }
        &mut self.own
    }

    /// The attributes in external form, where they still stand as they were read.
    pub(crate) fn as_read(&self) -> Option<&[u8]> {
        let Stored { source, first, n } = self.stored.as_ref()?;
        let end = source.place(first.checked_add(*n)?)?;
        source.bytes.get(source.place(*first)?..end)
    }
}

impl PartialEq for Atts {
    fn eq(&self, other: &Atts) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Atts {}

impl From<Vec<Att>> for Atts {
    fn from(own: Vec<Att>) -> Atts {
        Atts { stored: None, own }
    }
}

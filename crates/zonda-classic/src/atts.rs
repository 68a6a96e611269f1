//! The attributes of one owner.
//!
//! Those of a file that is opened stay where they were read, in one copy of the header's bytes;
//! they are checked then, and taken apart when somebody asks for one. The first change to a list
//! takes all of it apart. Names and numbers are found without a look at all others, so a list of a
//! million attributes can be made, asked, renamed and emptied.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;
use zonda_format::AttView;
use zonda_model::{ExtType, SlotRanks, normalize_name};

use crate::codec;
use crate::header::Name;
use crate::names::NameIndex;
use crate::reader::HeaderReader;
use crate::spare;
use crate::tuning::LINEAR_ATTS;

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

impl<'a> From<AttRef<'a>> for AttView<'a> {
    fn from(AttRef { name, ty, len, bytes }: AttRef<'a>) -> AttView<'a> {
        AttView { name: Cow::Borrowed(name), nc_type: ty.nc_type(), len, bytes: Some(bytes) }
    }
}

/// The header of a file as it was read, and where in it each attribute begins.
#[derive(Debug)]
pub(crate) struct HeaderBytes {
    pub(crate) bytes: Vec<u8>,
    /// For each list the places of its attributes and then of its end.
    pub(crate) places: Vec<u32>,
    /// Counts are 8 bytes (CDF-5) instead of 4.
    pub(crate) wide: bool,
}

impl Drop for HeaderBytes {
    fn drop(&mut self) {
        spare::give_bytes(std::mem::take(&mut self.bytes));
        spare::give_places(std::mem::take(&mut self.places));
    }
}

/// A list as it was read: `n` attributes whose places in the source begin at number `first`.
#[derive(Clone, Debug)]
struct AttsAsRead {
    source: Arc<HeaderBytes>,
    first: u32,
    n: u32,
}

impl AttsAsRead {
    /// The bytes from attribute `index` on; for the number of attributes, from their end on.
    #[inline]
    fn from(&self, index: u32) -> Option<&[u8]> {
        let number = self.first.checked_add(index)? as usize;
        self.source.bytes.get(*self.source.places.get(number)? as usize..)
    }

    /// An attribute with its name as it is counted, NULs included.
    ///
    /// Always inlined, as its callers are: otherwise the parts are written to memory and read back
    /// as a whole, which costs more than finding them.
    #[inline(always)]
    fn get(&self, index: u32) -> Option<AttRef<'_>> {
        let bytes = self.from(index).filter(|_| index < self.n)?;
        codec::att(&mut HeaderReader::resume(bytes, self.source.wide)).ok()
    }

    /// Whether the attribute may have that name, by a look at its first bytes.
    #[inline]
    fn may_be(&self, index: u32, name: &[u8]) -> bool {
        let counted =
            self.from(index).and_then(|att| att.get(if self.source.wide { 8 } else { 4 }..));
        counted.is_some_and(|counted| counted.starts_with(name))
    }

    /// The attribute of that name.
    #[inline]
    fn find(&self, name: &[u8], index: &NameIndex) -> Option<(usize, AttRef<'_>)> {
        if self.n > LINEAR_ATTS {
            let name_of =
                |index| Some(codec::up_to_nul(self.get(u32::try_from(index).ok()?)?.name));
            let found = index.find(name, self.n as usize, name_of)?;
            let att = self.get(u32::try_from(found).ok()?)?;
            return Some((found, AttRef { name: codec::up_to_nul(att.name), ..att }));
        }
        (0..self.n).filter(|&index| self.may_be(index, name)).find_map(|index| {
            let att = self.get(index)?;
            let cut = codec::up_to_nul(att.name);
            (cut == name).then_some((index as usize, AttRef { name: cut, ..att }))
        })
    }
}

/// A list of attributes in order of definition.
#[derive(Clone, Debug, Default)]
pub struct Atts {
    /// Set until the list is changed.
    stored: Option<AttsAsRead>,
    own: AttsApart,
    /// Index by name: of attribute numbers while the list is as it was read, of slots once it was
    /// taken apart.
    names: NameIndex,
}

/// A list that was taken apart.
#[derive(Clone, Debug, Default)]
struct AttsApart {
    /// By slot. A deleted attribute leaves one without a name.
    slots: Vec<Att>,
    /// Maps numbers to slots; `None` while nothing was deleted, as both are then the same.
    ranks: Option<Box<SlotRanks>>,
}

impl AttsApart {
    fn len(&self) -> usize {
        self.ranks.as_ref().map_or(self.slots.len(), |ranks| ranks.len())
    }

    fn slot(&self, number: usize) -> Option<usize> {
        match &self.ranks {
            Some(ranks) => ranks.slot(number),
            None => Some(number),
        }
    }

    fn number(&self, slot: usize) -> usize {
        self.ranks.as_ref().map_or(slot, |ranks| ranks.number(slot))
    }

    /// A deleted attribute has no name, so no search finds it.
    fn name(&self, slot: usize) -> Option<&[u8]> {
        self.slots.get(slot).map(|att| &*att.name).filter(|name| !name.is_empty())
    }
}

impl Atts {
    /// The list of `n` attributes whose places in the source begin at number `first`.
    pub(crate) fn stored(source: &Arc<HeaderBytes>, first: u32, n: u32) -> Atts {
        let stored = (n > 0).then(|| AttsAsRead { source: Arc::clone(source), first, n });
        Atts { stored, ..Atts::default() }
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
            let att = stored.get(u32::try_from(index).ok()?)?;
            return Some(AttRef { name: codec::up_to_nul(att.name), ..att });
        }
        let Att { name, ty, len, bytes } = self.own.slots.get(self.own.slot(index)?)?;
        Some(AttRef { name, ty: *ty, len: *len, bytes })
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = AttRef<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The attribute with that name, which is normalised first, and its position.
    #[inline]
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<(usize, AttRef<'_>)> {
        let name = normalize_name(name).ok()?;
        if let Some(stored) = &self.stored {
            return stored.find(&name, &self.names);
        }
        let own = &self.own;
        let slot = self.names.find(&name, own.slots.len(), |slot| own.name(slot))?;
        let Att { name, ty, len, bytes } = own.slots.get(slot)?;
        Some((own.number(slot), AttRef { name, ty: *ty, len: *len, bytes }))
    }

    /// Where values of an attribute lie in the bytes of the header, if the list is as it was read.
    #[inline]
    pub(crate) fn place_of(&self, values: &[u8]) -> Option<usize> {
        let source = &self.stored.as_ref()?.source.bytes;
        let at = values.as_ptr().addr().checked_sub(source.as_ptr().addr())?;
        (at <= source.len()).then_some(at)
    }

    /// So many bytes of the header from a place on, if the list is as it was read.
    #[inline]
    pub(crate) fn values_at(&self, at: usize, len: usize) -> Option<&[u8]> {
        self.stored.as_ref()?.source.bytes.get(at..)?.get(..len)
    }

    /// Takes apart what was read, for a change.
    fn taken_apart(&mut self) -> &mut AttsApart {
        if let Some(stored) = self.stored.take() {
            let atts = (0..stored.n).filter_map(|index| stored.get(index));
            let own = atts.map(|AttRef { name, ty, len, bytes }| Att {
                name: Name::in_space(codec::up_to_nul(name), name.len()),
                ty,
                len,
                bytes: SmallVec::from_slice(bytes),
            });
            // Numbers and slots are the same as long as nothing was deleted.
            self.own = AttsApart { slots: own.collect(), ranks: None };
        }
        &mut self.own
    }

    /// Appends an attribute.
    pub(crate) fn push(&mut self, att: Att) {
        let own = self.taken_apart();
        own.slots.push(att);
        if let Some(ranks) = &mut own.ranks {
            ranks.push();
        }
        let own = &self.own;
        self.names.push(own.slots.len().saturating_sub(1), |slot| own.name(slot));
    }

    /// An attribute to be changed, all but its name.
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut Att> {
        let own = self.taken_apart();
        let slot = own.slot(number)?;
        own.slots.get_mut(slot)
    }

    /// Gives an attribute another name; see [`Name::replace`].
    pub(crate) fn rename(&mut self, number: usize, name: Name, in_define: bool) {
        let own = self.taken_apart();
        let Some(slot) = own.slot(number) else { return };
        let own = &self.own;
        self.names.remove(slot, |slot| own.name(slot));
        if let Some(att) = self.own.slots.get_mut(slot) {
            att.name.replace(name, in_define);
        }
        let own = &self.own;
        self.names.push(slot, |slot| own.name(slot));
    }

    /// Takes an attribute from the list; those behind it move up.
    pub(crate) fn remove(&mut self, number: usize) {
        let own = self.taken_apart();
        if number >= own.len() {
            return;
        }
        let n_slots = own.slots.len();
        let ranks = own.ranks.get_or_insert_with(|| Box::new(SlotRanks::new(n_slots)));
        let Some(slot) = ranks.remove(number) else { return };
        let own = &self.own;
        self.names.remove(slot, |slot| own.name(slot));
        if let Some(att) = self.own.slots.get_mut(slot) {
            *att = Att { name: Name::from(&[][..]), ty: att.ty, len: 0, bytes: SmallVec::new() };
        }
        // Slots of deleted attributes take no more memory than those that are left.
        let n_left = self.own.len();
        if n_slots.saturating_sub(n_left) > n_left {
            let (slots, ranks) = (std::mem::take(&mut self.own.slots), self.own.ranks.take());
            // The next attribute is in the slot of the next number.
            let (mut left, mut next) = (Vec::with_capacity(n_left), 0);
            for (slot, att) in slots.into_iter().enumerate() {
                if ranks.as_ref().and_then(|ranks| ranks.slot(next)) == Some(slot) {
                    left.push(att);
                    next = left.len();
                }
            }
            self.own.slots = left;
            self.names.clear();
        }
    }

    /// The attributes in external form, where they still stand as they were read.
    pub(crate) fn as_read(&self) -> Option<&[u8]> {
        let stored = self.stored.as_ref()?;
        let (all, behind) = (stored.from(0)?, stored.from(stored.n)?);
        all.get(..all.len().checked_sub(behind.len())?)
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
        Atts { own: AttsApart { slots: own, ranks: None }, ..Atts::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode_header, encode_header};
    use crate::header::{Header, Version};
    use zonda_model::VarId;

    fn named(name: &[u8], bytes: &[u8]) -> Att {
        let len = bytes.len() as u64;
        Att { name: name.into(), ty: ExtType::Char, len, bytes: SmallVec::from_slice(bytes) }
    }

    #[test]
    fn a_list_as_read_says_the_same_as_one_taken_apart() {
        for version in [Version::Cdf1, Version::Cdf5] {
            let mut header = Header::new(version);
            let names: [&[u8]; 4] = [b"ab", b"abc", b"a", b"none"];
            header.atts = names.map(|name| named(name, &name[..name.len() % 4])).to_vec().into();
            let bytes = encode_header(&header, 0).unwrap();
            let (mut read, _) = decode_header(&bytes).unwrap();
            assert!(read.atts.as_read().is_some());
            assert_eq!(read.atts, header.atts);
            for (index, name) in names.iter().enumerate() {
                let (found, att) = read.att(VarId::GLOBAL, name).unwrap();
                assert_eq!((found, att), (index, header.atts.get(index).unwrap()));
            }
            for absent in [&b"abcd"[..], b"b", b"", b"ab\0"] {
                assert!(read.atts.find(absent).is_none(), "{absent:?}");
            }
            assert_eq!(read.atts.get(4), None);
            // Written back as read, and the same once taken apart.
            assert_eq!(encode_header(&read, 0).unwrap(), bytes);
            read.atts.get_mut(0).unwrap();
            assert_eq!(read.atts.len(), 4);
            assert!(read.atts.as_read().is_none());
            assert_eq!(encode_header(&read, 0).unwrap(), bytes);
        }
    }

    #[test]
    fn a_list_that_changes_is_as_a_plain_one() {
        for n in [3usize, 12, 13, 40, 200] {
            let plain: Vec<Att> = (0..n).map(|i| named(format!("a{i}").as_bytes(), b"x")).collect();
            let mut header = Header::new(Version::Cdf1);
            header.atts = plain.clone().into();
            let (read, _) = decode_header(&encode_header(&header, 0).unwrap()).unwrap();
            for mut atts in [header.atts, read.atts] {
                let mut plain = plain.clone();
                let mut random = fastrand::Rng::with_seed(n as u64);
                for step in 0..6 * n {
                    let at = random.usize(..plain.len().max(1));
                    match random.usize(..4) {
                        0 => {
                            let att = named(format!("b{step}").as_bytes(), b"yy");
                            atts.push(att.clone());
                            plain.push(att);
                        }
                        1 if !plain.is_empty() => {
                            let name = Name::from(format!("c{step}").as_bytes());
                            atts.rename(at, name.clone(), true);
                            plain[at].name = name;
                        }
                        _ if !plain.is_empty() => {
                            atts.remove(at);
                            plain.remove(at);
                        }
                        _ => {}
                    }
                    assert_eq!(atts, Atts::from(plain.clone()));
                    for (number, att) in plain.iter().enumerate() {
                        assert_eq!(atts.find(&att.name).map(|found| found.0), Some(number));
                    }
                    assert!(atts.find(b"a").is_none() && atts.find(b"").is_none());
                    assert!(atts.get_mut(plain.len()).is_none());
                }
            }
        }
    }

    #[test]
    fn a_name_with_nuls_in_its_counted_length_is_cut_and_keeps_its_space() {
        let mut header = Header::new(Version::Cdf1);
        header.atts = vec![named(b"longer", b"x")].into();
        let mut bytes = encode_header(&header, 0).unwrap();
        let at = bytes.windows(6).position(|part| part == b"longer").unwrap();
        bytes[at + 2..at + 6].fill(0);
        let (mut read, _) = decode_header(&bytes).unwrap();
        assert_eq!(read.atts.get(0).unwrap().name, b"lo");
        assert!(read.atts.find(b"lo").is_some() && read.atts.find(b"longer").is_none());
        assert!(read.atts.get_mut(0).unwrap().name.has_room_for(6));
    }
}

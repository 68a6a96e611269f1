//! The attributes of an object that is being written.
//!
//! All that programs gave it are here, also those of types that netCDF has not, which are carried
//! along as they are; what netCDF keeps for itself follows from the model. What was put stays in
//! memory form until a commit makes file form of it.
//!
//! In a session attributes keep their numbers, whatever is put into them. In the file an attribute
//! that is put with another type or length, or gets another name, is a new one: it comes after the
//! others when the file is opened again, as in the reference.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use zonda_format::VlenSource;
use zonda_hdf5::message::{Charset, Dataspace, SpaceKind};
use zonda_hdf5::{Attribute, File, FileAddr, Object};
use zonda_model::memory;
use zonda_model::{ExtType, NcError, Ranks};

use super::OwnedValues;
use super::datatypes::{self, Typed};
use crate::attribute::{AttFault, AttValue, meaning, stored_value};
use crate::element_form::{ElementForm, NC_STRING};
use crate::fault::{Coded, HdfResult, refuse_if};
use crate::hidden_atts;
use crate::model::{AttInfo, Endianness, Model};
use crate::names::Names;
use crate::types::Types;

/// Attributes of one object: headers rank them by 16 bits, and netCDF has some for itself.
const MOST_ATTS: usize = 65_500;

/// The attributes of an object, to be changed.
#[derive(Clone, Debug)]
pub(crate) struct EditedAtts {
    file: Arc<File>,
    /// Those that are shown, by slot: deleting one leaves its slot empty, so that those behind it
    /// need not be moved, nor their names looked up anew.
    shown: Vec<Option<Box<Att>>>,
    /// Which slots have what number; `None` where nothing was deleted, and they are the same.
    ranks: Option<Box<Ranks>>,
    /// Those of types that netCDF has not, with their places among all.
    others: Vec<(u32, Attribute)>,
    /// Committed types that attributes which are no more had, once for each. They count who has them.
    released: Vec<FileAddr>,
    names: Names,
    /// The object's header is of version 1, which has all attributes within: none may be longer than a message.
    in_header: bool,
    /// What changed since a commit laid the list out.
    since: AttChanges,
}

/// What changed of a list since a commit laid it out.
#[derive(Clone, Debug, Default)]
struct AttChanges {
    /// Which list in the file it is that this one was then; `None` where that is not known, or not
    /// what changed since.
    stamp: Option<AttListStamp>,
    /// Slots whose attributes changed or are new, with the places that they had then.
    slots: BTreeMap<usize, Option<u32>>,
    /// Names that are no more, or were not for a while.
    gone: Vec<Box<[u8]>>,
    /// The place of what comes last.
    next_place: u32,
}

/// A list of attributes outside of a header, as one commit laid it out: no two are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttListStamp(u64);

impl AttListStamp {
    /// Another one.
    pub(crate) fn new() -> AttListStamp {
        static LAST: AtomicU64 = AtomicU64::new(0);
        AttListStamp(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// How a list differs from the one that is in the file.
#[derive(Debug, Default)]
pub(crate) struct ChangedAtts {
    /// Names that are no more, before all else.
    pub(crate) gone: Vec<Box<[u8]>>,
    /// Those that are new or have changed, in their order, and whether they stay where the file has
    /// them. The others come last.
    pub(crate) set: Vec<(Attribute, bool)>,
}

/// An attribute that is shown.
#[derive(Clone, Debug)]
pub(crate) struct Att {
    name: Box<[u8]>,
    nc_type: i32,
    len: u64,
    value: EditedValue,
    /// What the file has of it; `None` where it is new there.
    placed: Option<FiledAtt>,
}

/// What the file has of an attribute.
#[derive(Clone, Copy, Debug)]
struct FiledAtt {
    /// Its place among all.
    place: u32,
    nc_type: i32,
    len: u64,
    /// Its type there is the one that a put of its type makes.
    is_native: bool,
}

#[derive(Clone, Debug)]
enum EditedValue {
    /// As the file has it.
    Stored(Box<Attribute>),
    /// Put since.
    Owned {
        held: OwnedValues,
        /// The same in file form, once it was made: what it has in the global heap is there.
        encoded: OnceLock<Box<[u8]>>,
    },
}

/// Makes file form of elements in memory form: the destination is as long as the form says.
pub(crate) type EncodeElements<'a> =
    dyn FnMut(&ElementForm, &mut dyn VlenSource, &[u8], &mut [u8]) -> HdfResult<()> + 'a;

impl EditedAtts {
    /// The list of an object that is not in the file yet.
    pub(crate) fn new(file: Arc<File>) -> EditedAtts {
        EditedAtts {
            file,
            shown: Vec::new(),
            ranks: None,
            others: Vec::new(),
            released: Vec::new(),
            names: Names::default(),
            in_header: false,
            since: AttChanges::default(),
        }
    }

    /// The list of an object of the file.
    pub(crate) fn of(
        file: Arc<File>,
        object: &Object,
        types: &Types,
    ) -> Result<EditedAtts, AttFault> {
        let attributes = object.attributes(&file)?;
        let mut list = EditedAtts::new(Arc::clone(&file));
        list.in_header = object.header().version == 1;
        for (place, index) in (0u32..).zip(0..attributes.len()) {
            if hidden_atts::is_reserved(attributes.name(index)) {
                continue;
            }
            let attribute = attributes.decode(index, &file)?;
            let (datatype, space) = (&attribute.datatype, &attribute.dataspace);
            match meaning(&attribute.name, datatype, space, types)? {
                Some(meaning) => {
                    let mut att = Att {
                        name: attribute.name.clone(),
                        nc_type: meaning.nc_type,
                        len: meaning.len,
                        value: EditedValue::Stored(Box::new(attribute)),
                        placed: None,
                    };
                    att.put_at(place);
                    list.shown.push(Some(Box::new(att)));
                }
                None => list.others.push((place, attribute)),
            }
        }
        Ok(list)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Whether an attribute has to fit into one message of a header.
    pub(crate) fn is_in_header(&self) -> bool {
        self.in_header
    }

    pub(crate) fn len(&self) -> usize {
        self.ranks.as_ref().map_or(self.shown.len(), |ranks| ranks.len())
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        let slot = self.find_slot(name)?;
        Some(self.ranks.as_ref().map_or(slot, |ranks| ranks.number(slot)))
    }

    fn find_slot(&self, name: &[u8]) -> Option<usize> {
        let slots = (0u32..).zip(&self.shown);
        let all = slots.filter_map(|(slot, att)| Some((slot, &*att.as_ref()?.name)));
        let at = |slot: u32| self.shown.get(usize::try_from(slot).ok()?)?.as_ref();
        let is_named = |slot| at(slot).is_some_and(|att| *att.name == *name);
        let found = self.names.find(name, self.shown.len(), all, is_named);
        found.and_then(|slot| usize::try_from(slot).ok())
    }

    fn slot(&self, number: usize) -> Option<usize> {
        match &self.ranks {
            Some(ranks) => ranks.slot(number),
            None => Some(number),
        }
    }

    fn get(&self, number: usize) -> Option<&Att> {
        self.shown.get(self.slot(number)?)?.as_deref()
    }

    pub(crate) fn info(&self, number: usize) -> Option<AttInfo> {
        let att = self.get(number)?;
        Some(AttInfo { name: att.name.clone(), nc_type: att.nc_type, len: att.len })
    }

    pub(crate) fn value(&self, number: usize, types: &Types) -> Result<AttValue<'_>, AttFault> {
        let att = self.get(number).ok_or(AttFault::Refused(NcError::NotAtt))?;
        match &att.value {
            EditedValue::Stored(attribute) => stored_value((**attribute).clone(), types),
            EditedValue::Owned { held, .. } => Ok(AttValue::Owned(held)),
        }
    }

    /// Puts values in memory form, of an attribute that is there or a new one.
    ///
    /// # Errors
    /// `NC_EMAXATTS` where an object has as many as it can have.
    pub(crate) fn put(
        &mut self,
        name: &[u8],
        nc_type: i32,
        len: u64,
        held: OwnedValues,
    ) -> Coded<()> {
        let value = EditedValue::Owned { held, encoded: OnceLock::new() };
        if let Some(slot) = self.find_slot(name) {
            self.touch(slot);
            if let Some(Some(att)) = self.shown.get_mut(slot) {
                self.released.extend(att.committed());
                (att.nc_type, att.len, att.value) = (nc_type, len, value);
            }
            return Ok(());
        }
        refuse_if(self.len().saturating_add(self.others.len()) >= MOST_ATTS, NcError::MaxAtts)?;
        self.give_way(name);
        self.names.insert(name, u32::try_from(self.shown.len()).unwrap_or(u32::MAX));
        let att = Att { name: name.into(), nc_type, len, value, placed: None };
        self.shown.push(Some(Box::new(att)));
        if let Some(ranks) = &mut self.ranks {
            ranks.push();
        }
        self.touch(self.shown.len().saturating_sub(1));
        Ok(())
    }

    /// The attribute of a slot will not be what the file has.
    fn touch(&mut self, slot: usize) {
        if self.since.stamp.is_some() {
            let att = self.shown.get(slot).and_then(Option::as_ref);
            let place = att.and_then(|att| att.placed).map(|placed| placed.place);
            self.since.slots.entry(slot).or_insert(place);
        }
    }

    /// The file may have an attribute of this name that is no more.
    fn is_gone(&mut self, name: &[u8]) {
        if self.since.stamp.is_some() {
            self.since.gone.push(name.into());
        }
    }

    /// Takes an attribute from the list; those after it get the numbers before theirs.
    pub(crate) fn delete(&mut self, number: usize) {
        if number >= self.len() {
            return;
        }
        let n_slots = self.shown.len();
        let ranks = self.ranks.get_or_insert_with(|| Box::new(Ranks::new(n_slots)));
        let slot = ranks.remove(number);
        let att = slot.and_then(|slot| Some((slot, self.shown.get_mut(slot)?.take()?)));
        let Some((slot, att)) = att else { return };
        self.released.extend(att.committed());
        self.names.remove(&att.name, u32::try_from(slot).unwrap_or(u32::MAX));
        self.is_gone(&att.name);
        self.since.slots.remove(&slot);
        // Empty slots are no more than half of all.
        let n_left = self.len();
        if n_slots.saturating_sub(n_left) > n_left {
            self.shown.retain(Option::is_some);
            self.ranks = None;
            self.names.forget();
            // Which slots changed is not known any more.
            self.since.stamp = None;
        }
    }

    /// Gives an attribute another name.
    pub(crate) fn rename(&mut self, number: usize, name: Box<[u8]>) {
        let Some((slot, before)) = self.slot(number).zip(self.info(number)) else { return };
        self.touch(slot);
        self.is_gone(&before.name);
        let Some(Some(att)) = self.shown.get_mut(slot) else { return };
        let place = u32::try_from(slot).unwrap_or(u32::MAX);
        self.names.remove(&att.name, place);
        self.names.insert(&name, place);
        att.placed = None;
        if let EditedValue::Stored(attribute) = &mut att.value {
            attribute.name = name.clone();
            attribute.charset = charset_of(&name);
        }
        att.name = name.clone();
        self.give_way(&name);
    }

    /// One that cannot be shown gives way to one of its name.
    fn give_way(&mut self, name: &[u8]) {
        let n = self.others.len();
        let gone = self.others.extract_if(.., |(_, attribute)| *attribute.name == *name);
        self.released.extend(gone.filter_map(|(_, attribute)| attribute.committed));
        if self.others.len() < n {
            self.is_gone(name);
        }
    }

    /// The committed types that the file counts more users of than there then are, once for each.
    pub(crate) fn released(&self) -> &[FileAddr] {
        &self.released
    }

    /// All attributes as they go into the file, in the order in which they were made.
    ///
    /// # Errors
    /// Types that are not complete, and those of `encode`.
    pub(crate) fn attributes(
        &self,
        model: &Model,
        encode: &mut EncodeElements<'_>,
    ) -> Result<Vec<Attribute>, AttFault> {
        let mut all = Vec::with_capacity(self.len().saturating_add(self.others.len()));
        for (place, attribute) in &self.others {
            all.push((*place, attribute.clone()));
        }
        for att in self.shown.iter().flatten() {
            // New ones after those that are there; the sort keeps their order.
            all.push((att.place().unwrap_or(u32::MAX), att.attribute(model, encode)?));
        }
        all.sort_by_key(|(place, _)| *place);
        Ok(all.into_iter().map(|(_, attribute)| attribute).collect())
    }

    /// How many attributes go into the file, those included that are not shown.
    pub(crate) fn n_stored(&self) -> usize {
        self.len().saturating_add(self.others.len())
    }

    /// How many changed, if this is what became of a list in the file since that was laid out.
    pub(crate) fn n_changed(&self, since: AttListStamp) -> Option<usize> {
        let n = self.since.slots.len().saturating_add(self.since.gone.len());
        (self.since.stamp == Some(since)).then_some(n)
    }

    /// What changed since the list was laid out that it has the stamp of.
    ///
    /// # Errors
    /// As [`EditedAtts::attributes`].
    pub(crate) fn changes(
        &self,
        model: &Model,
        encode: &mut EncodeElements<'_>,
    ) -> Result<ChangedAtts, AttFault> {
        let mut set = Vec::with_capacity(self.since.slots.len());
        for (slot, filed) in &self.since.slots {
            let Some(Some(att)) = self.shown.get(*slot) else { continue };
            let (place, attribute) = (att.place(), att.attribute(model, encode)?);
            set.push((place.unwrap_or(u32::MAX), (attribute, place.is_some() && place == *filed)));
        }
        set.sort_by_key(|(place, _)| *place);
        let set = set.into_iter().map(|(_, one)| one).collect();
        Ok(ChangedAtts { gone: self.since.gone.clone(), set })
    }

    /// A commit has laid the list out: the file counts users of committed types as there are now, and
    /// has the list of this stamp, if it is outside of the header.
    pub(crate) fn laid_out(&mut self, stamp: Option<AttListStamp>) {
        self.released.clear();
        let next_place = self.since.next_place;
        self.since = AttChanges { stamp, next_place, ..AttChanges::default() };
    }

    /// The file has them now, in the order in which [`EditedAtts::attributes`] gives them.
    pub(crate) fn stored(&mut self) {
        if self.since.stamp.is_some() {
            // The others have their places.
            for slot in self.since.slots.keys() {
                let Some(Some(att)) = self.shown.get_mut(*slot) else { continue };
                let place = att.place().unwrap_or_else(|| {
                    let place = self.since.next_place;
                    self.since.next_place = place.saturating_add(1);
                    place
                });
                att.put_at(place);
            }
            return;
        }
        enum Of<'a> {
            Other(&'a mut u32),
            Shown(&'a mut Att),
        }
        let others = self.others.iter_mut().map(|(place, _)| (*place, Of::Other(place)));
        let shown = self.shown.iter_mut().flatten();
        let shown = shown.map(|att| (att.place().unwrap_or(u32::MAX), Of::Shown(att)));
        let mut all: Vec<_> = others.chain(shown).collect();
        all.sort_by_key(|(place, _)| *place);
        let mut next = 0u32;
        for (_, of) in all {
            match of {
                Of::Other(other) => *other = next,
                Of::Shown(att) => att.put_at(next),
            }
            next = next.saturating_add(1);
        }
        self.since.next_place = next;
    }
}

impl Att {
    /// The committed type that the file has it of.
    fn committed(&self) -> Option<FileAddr> {
        match &self.value {
            EditedValue::Stored(attribute) => attribute.committed,
            EditedValue::Owned { .. } => None,
        }
    }

    /// Its place among all in the file, where it stays: what has the type and the length that the file
    /// has of it. Others come last.
    fn place(&self) -> Option<u32> {
        let stays = |placed: &FiledAtt| match self.value {
            EditedValue::Stored(_) => true,
            EditedValue::Owned { .. } => {
                let is_same = placed.nc_type == self.nc_type && placed.len == self.len;
                is_same && placed.is_native
            }
        };
        self.placed.filter(stays).map(|placed| placed.place)
    }

    /// The file has it as it is now.
    fn put_at(&mut self, place: u32) {
        let (nc_type, len, is_native) = (self.nc_type, self.len, self.is_native());
        self.placed = Some(FiledAtt { place, nc_type, len, is_native });
    }

    /// Its type in the file is the one that a put of its type makes.
    fn is_native(&self) -> bool {
        match &self.value {
            EditedValue::Owned { .. } => true,
            EditedValue::Stored(attribute) => match ExtType::from_nc_type(self.nc_type) {
                Some(ExtType::Char) => {
                    let size = attribute.datatype.size;
                    attribute.datatype == datatypes::text(size)
                        && attribute.dataspace.kind != SpaceKind::Simple
                }
                Some(ext) => attribute.datatype == datatypes::atomic(ext, Endianness::Native),
                None if self.nc_type == NC_STRING => attribute.datatype == datatypes::string(),
                None => true,
            },
        }
    }

    fn attribute(
        &self,
        model: &Model,
        encode: &mut EncodeElements<'_>,
    ) -> Result<Attribute, AttFault> {
        let (held, encoded) = match &self.value {
            EditedValue::Stored(attribute) => return Ok((**attribute).clone()),
            EditedValue::Owned { held, encoded } => (held, encoded),
        };
        let (name, charset) = (self.name.clone(), charset_of(&self.name));
        let empty = Dataspace { kind: SpaceKind::Null, dims: Vec::new(), max_dims: Vec::new() };
        let finish = |datatype, dataspace, data| Attribute {
            name,
            charset,
            creation_order: None,
            datatype,
            committed: None,
            dataspace,
            data,
        };
        if self.nc_type == ExtType::Char.nc_type() {
            // Text is one element; a type without bytes does not exist.
            let len = u32::try_from(self.len).map_err(|_| AttFault::Refused(NcError::Inval))?;
            let datatype = datatypes::text(len.max(1));
            let dataspace = if len == 0 { empty } else { datatypes::scalar_space() };
            return Ok(finish(datatype, dataspace, memory::copied(held.bytes())?));
        }
        let typed = Typed::of(model, self.nc_type, Endianness::Native);
        let Typed { datatype, form } = typed.map_err(AttFault::Refused)?;
        if self.len == 0 {
            return Ok(finish(datatype, empty, Vec::new()));
        }
        let dataspace =
            Dataspace { kind: SpaceKind::Simple, dims: vec![self.len], max_dims: Vec::new() };
        if ExtType::from_nc_type(self.nc_type).is_some() {
            return Ok(finish(datatype, dataspace, memory::copied(held.bytes())?));
        }
        if let Some(data) = encoded.get() {
            return Ok(finish(datatype, dataspace, memory::copied(data)?));
        }
        let n = usize::try_from(self.len).ok();
        let len = n.and_then(|n| n.checked_mul(form.file_size));
        let mut data = memory::filled(len.ok_or(AttFault::Refused(NcError::NoMem))?, 0)?;
        encode(&form, &mut { held }, held.bytes(), &mut data)?;
        let _first = encoded.set(memory::copied(&data)?.into());
        Ok(finish(datatype, dataspace, data))
    }
}

/// The character set that a name is marked with.
fn charset_of(name: &[u8]) -> Charset {
    if name.is_ascii() { Charset::Ascii } else { Charset::Utf8 }
}

#[cfg(test)]
mod tests;

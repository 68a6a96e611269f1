//! The attributes of an object that is being written.
//!
//! The list has all attributes that programs gave the object. Those of types that netCDF does not have are kept as they
//! are. Attributes that netCDF keeps for itself are not in it: they follow from the model. Values that were put stay
//! in memory form until a commit encodes them.
//!
//! While a file is open its attributes keep their numbers, whatever is put into them. In the file an attribute that is
//! put with another type or length, or gets another name, is a new one: it comes after the others when the file
//! is opened again, as in the reference.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use zonda_format::{AttView, VlenSource};
use zonda_hdf5::message::{Charset, Dataspace, SpaceKind};
use zonda_hdf5::{Attribute, File, FileAddr, Object};
use zonda_model::memory;
use zonda_model::{ExtType, NcError, SlotRanks};

use super::OwnedValues;
use super::datatypes::{self, Typed};
use crate::attribute::{AttFault, AttValue, meaning, stored_value};
use crate::element_form::{ElementForm, NC_STRING};
use crate::fault::{Coded, HdfResult, refuse_if};
use crate::hidden_atts;
use crate::model::{AttInfo, Endianness, Model};
use crate::names::Names;
use crate::types::Types;

/// Most attributes of one object: headers number them by 16 bits, and netCDF has some for itself.
const MOST_ATTS: usize = 65_500;

/// The attributes of an object, to be changed.
#[derive(Clone, Debug)]
pub(crate) struct EditedAtts {
    file: Arc<File>,
    /// Attributes that are shown, by slot. Deleting one leaves its slot empty, so that the others need not be moved, and
    /// the table of names stays right.
    shown: Vec<Option<Box<Att>>>,
    /// The slot of each number; `None` where nothing was deleted, so that slots are numbers.
    ranks: Option<Box<SlotRanks>>,
    /// Attributes of types that netCDF does not have, with their places among all.
    others: Vec<(u32, Attribute)>,
    /// Committed types of attributes that were removed or replaced, once for each such attribute: a committed type
    /// counts its users in the file.
    released: Vec<FileAddr>,
    names: Names,
    /// The object's header has version 1, and so all attributes: each has to fit into one message.
    in_header: bool,
    /// What changed since the last commit.
    since: AttChanges,
}

/// What changed in a list since the last commit.
#[derive(Clone, Debug, Default)]
struct AttChanges {
    /// The stamp of the list in the file that has these changes not yet; `None` where that list, or what changed
    /// since, is not known.
    stamp: Option<AttListStamp>,
    /// Slots whose attributes changed or are new, with the places that they had in the file.
    slots: BTreeMap<usize, Option<u32>>,
    /// Names of attributes that were removed or renamed since; some may be in use again.
    gone: Vec<Box<[u8]>>,
    /// The place in the file of the next attribute that is new.
    next_place: u32,
}

/// Identifies a list of attributes outside of a header as one commit wrote it: no two have the same stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttListStamp(u64);

impl AttListStamp {
    /// A stamp that no other list has.
    pub(crate) fn new() -> AttListStamp {
        static LAST: AtomicU64 = AtomicU64::new(0);
        AttListStamp(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// How a list differs from the one that is in the file.
#[derive(Debug, Default)]
pub(crate) struct ChangedAtts {
    /// Names to be removed, before anything is set.
    pub(crate) gone: Vec<Box<[u8]>>,
    /// Attributes that are new or have changed, in their order, and whether each keeps its place in the file. Those
    /// that do not come last.
    pub(crate) set: Vec<(Attribute, bool)>,
}

/// An attribute that is shown.
#[derive(Clone, Debug)]
pub(crate) struct Att {
    name: Box<[u8]>,
    nc_type: i32,
    len: u64,
    value: EditedValue,
    /// The attribute as the file has it; `None` if the file does not have it, or not under this name.
    placed: Option<FiledAtt>,
}

/// An attribute as the file has it.
#[derive(Clone, Copy, Debug)]
struct FiledAtt {
    /// Its place among all.
    place: u32,
    nc_type: i32,
    len: u64,
    /// Its type in the file is the one that a put makes.
    is_native: bool,
}

#[derive(Clone, Debug)]
enum EditedValue {
    /// As the file has it.
    Stored(Box<Attribute>),
    /// Put since the file was opened.
    Owned {
        held: OwnedValues,
        /// The values in file form, once a commit made it: then their strings and sequences are in the global heap.
        encoded: OnceLock<Box<[u8]>>,
    },
}

/// A function that encodes elements: from memory form to file form.
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

    pub(crate) fn view(&self, number: usize) -> Option<AttView<'_>> {
        let Att { name, nc_type, len, .. } = self.get(number)?;
        Some(AttView { name: name[..].into(), nc_type: *nc_type, len: *len, bytes: None })
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

    /// Notes that the attribute of a slot changes.
    fn touch(&mut self, slot: usize) {
        if self.since.stamp.is_some() {
            let att = self.shown.get(slot).and_then(Option::as_ref);
            let place = att.and_then(|att| att.placed).map(|placed| placed.place);
            self.since.slots.entry(slot).or_insert(place);
        }
    }

    /// Notes that an attribute of this name, which the file may have, is removed.
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
        let ranks = self.ranks.get_or_insert_with(|| Box::new(SlotRanks::new(n_slots)));
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
            // Slots have other attributes now, so that the list of changed ones is lost.
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

    /// Removes an attribute that is not shown, since one of its name is put.
    fn give_way(&mut self, name: &[u8]) {
        let n = self.others.len();
        let gone = self.others.extract_if(.., |(_, attribute)| *attribute.name == *name);
        self.released.extend(gone.filter_map(|(_, attribute)| attribute.committed));
        if self.others.len() < n {
            self.is_gone(name);
        }
    }

    /// Committed types of attributes that were removed, once for each: the file counts these users still.
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
            // New attributes come after the others; the sort keeps their order.
            all.push((att.place().unwrap_or(u32::MAX), att.attribute(model, encode)?));
        }
        zonda_runtime::sort::sort_by_key(&mut all, |(place, _)| *place);
        Ok(all.into_iter().map(|(_, attribute)| attribute).collect())
    }

    /// How many attributes go into the file, those included that are not shown.
    pub(crate) fn n_stored(&self) -> usize {
        self.len().saturating_add(self.others.len())
    }

    /// How many attributes changed since the commit that wrote the list with this stamp; `None` if the changes since
    /// are not known.
    pub(crate) fn n_changed(&self, since: AttListStamp) -> Option<usize> {
        let n = self.since.slots.len().saturating_add(self.since.gone.len());
        (self.since.stamp == Some(since)).then_some(n)
    }

    /// What changed since the last commit.
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
        zonda_runtime::sort::sort_by_key(&mut set, |(place, _)| *place);
        let set = set.into_iter().map(|(_, one)| one).collect();
        Ok(ChangedAtts { gone: self.since.gone.clone(), set })
    }

    /// Notes that a commit has laid the list out. From then on the file counts the users of committed types that there
    /// are, and has the list with this stamp, if that is outside of the header.
    pub(crate) fn laid_out(&mut self, stamp: Option<AttListStamp>) {
        self.released.clear();
        let next_place = self.since.next_place;
        self.since = AttChanges { stamp, next_place, ..AttChanges::default() };
    }

    /// Notes that the file has the attributes, in the order in which [`EditedAtts::attributes`] gives them.
    pub(crate) fn stored(&mut self) {
        if self.since.stamp.is_some() {
            // Attributes that did not change keep their places.
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
        zonda_runtime::sort::sort_by_key(&mut all, |(place, _)| *place);
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
    /// The committed type that the attribute has in the file.
    fn committed(&self) -> Option<FileAddr> {
        match &self.value {
            EditedValue::Stored(attribute) => attribute.committed,
            EditedValue::Owned { .. } => None,
        }
    }

    /// Its place in the file, if it keeps that: an attribute does if its type and length are those in the file. Others
    /// come last.
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

    /// Notes that the file has the attribute as it is now, at this place.
    fn put_at(&mut self, place: u32) {
        let (nc_type, len, is_native) = (self.nc_type, self.len, self.is_native());
        self.placed = Some(FiledAtt { place, nc_type, len, is_native });
    }

    /// Whether its type in the file is the one that a put makes.
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

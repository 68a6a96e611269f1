//! The attributes of an object that is being written.
//!
//! All that programs gave it are here, also those of types that netCDF has not, which are carried
//! along as they are; what netCDF keeps for itself follows from the model. What was put stays in
//! memory form until a commit makes file form of it.
//!
//! In a session attributes keep their numbers, whatever is put into them. In the file an attribute
//! that is put with another type or length, or gets another name, is a new one: it comes after the
//! others when the file is opened again, as in the reference.

use std::sync::{Arc, OnceLock};

use zonda_hdf5::message::{Charset, Dataspace, SpaceKind};
use zonda_hdf5::{Attribute, File, FileAddr, HdfError, Object};
use zonda_model::memory;
use zonda_model::{ExtType, NcError, Ranks};

use super::datatypes::{self, Typed};
use super::held::Held;
use super::source::Fetch;
use crate::attribute::{AttFault, AttValue, meaning, stored_value};
use crate::form::{Form, NC_STRING};
use crate::hidden;
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
}

/// An attribute that is shown.
#[derive(Clone, Debug)]
pub(crate) struct Att {
    name: Box<[u8]>,
    nc_type: i32,
    len: u64,
    value: Value,
    /// What the file has of it; `None` where it is new there.
    placed: Option<Placed>,
}

/// What the file has of an attribute.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// Its place among all.
    place: u32,
    nc_type: i32,
    len: u64,
    /// Its type there is the one that a put of its type makes.
    is_native: bool,
}

#[derive(Clone, Debug)]
enum Value {
    /// As the file has it.
    Stored(Box<Attribute>),
    /// Put since.
    Held {
        held: Held,
        /// The same in file form, once it was made: what it has in the global heap is there.
        encoded: OnceLock<Box<[u8]>>,
    },
}

/// Makes file form of elements in memory form: the destination is as long as the form says.
pub(crate) type Encode<'a> =
    dyn FnMut(&Form, &mut dyn Fetch, &[u8], &mut [u8]) -> Result<(), HdfError> + 'a;

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
        for (place, index) in (0u32..).zip(0..attributes.len()) {
            if hidden::is_reserved(attributes.name(index)) {
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
                        value: Value::Stored(Box::new(attribute)),
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
            Value::Stored(attribute) => stored_value((**attribute).clone(), types),
            Value::Held { held, .. } => Ok(AttValue::Held(held)),
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
        held: Held,
    ) -> Result<(), NcError> {
        let value = Value::Held { held, encoded: OnceLock::new() };
        if let Some(slot) = self.find_slot(name) {
            if let Some(Some(att)) = self.shown.get_mut(slot) {
                self.released.extend(att.committed());
                (att.nc_type, att.len, att.value) = (nc_type, len, value);
            }
            return Ok(());
        }
        if self.len().saturating_add(self.others.len()) >= MOST_ATTS {
            return Err(NcError::MaxAtts);
        }
        self.give_way(name);
        self.names.insert(name, u32::try_from(self.shown.len()).unwrap_or(u32::MAX));
        let att = Att { name: name.into(), nc_type, len, value, placed: None };
        self.shown.push(Some(Box::new(att)));
        if let Some(ranks) = &mut self.ranks {
            ranks.push();
        }
        Ok(())
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
        // Empty slots are no more than half of all.
        let n_left = self.len();
        if n_slots.saturating_sub(n_left) > n_left {
            self.shown.retain(Option::is_some);
            self.ranks = None;
            self.names.forget();
        }
    }

    /// Gives an attribute another name.
    pub(crate) fn rename(&mut self, number: usize, name: Box<[u8]>) {
        let slot = self.slot(number);
        let att = slot.and_then(|slot| Some((slot, self.shown.get_mut(slot)?.as_mut()?)));
        let Some((slot, att)) = att else { return };
        let place = u32::try_from(slot).unwrap_or(u32::MAX);
        self.names.remove(&att.name, place);
        self.names.insert(&name, place);
        att.placed = None;
        if let Value::Stored(attribute) = &mut att.value {
            attribute.name = name.clone();
            attribute.charset = charset_of(&name);
        }
        att.name = name.clone();
        self.give_way(&name);
    }

    /// One that cannot be shown gives way to one of its name.
    fn give_way(&mut self, name: &[u8]) {
        let gone = self.others.extract_if(.., |(_, attribute)| *attribute.name == *name);
        self.released.extend(gone.filter_map(|(_, attribute)| attribute.committed));
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
        encode: &mut Encode<'_>,
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

    /// The file counts users of committed types as there are now.
    pub(crate) fn counted(&mut self) {
        self.released.clear();
    }

    /// The file has them now, in the order in which [`EditedAtts::attributes`] gave them.
    pub(crate) fn stored(&mut self) {
        enum Of<'a> {
            Other(&'a mut u32),
            Shown(&'a mut Att),
        }
        let others = self.others.iter_mut().map(|(place, _)| (*place, Of::Other(place)));
        let shown = self.shown.iter_mut().flatten();
        let shown = shown.map(|att| (att.place().unwrap_or(u32::MAX), Of::Shown(att)));
        let mut all: Vec<_> = others.chain(shown).collect();
        all.sort_by_key(|(place, _)| *place);
        for (place, (_, of)) in (0u32..).zip(all) {
            match of {
                Of::Other(other) => *other = place,
                Of::Shown(att) => att.put_at(place),
            }
        }
    }
}

impl Att {
    /// The committed type that the file has it of.
    fn committed(&self) -> Option<FileAddr> {
        match &self.value {
            Value::Stored(attribute) => attribute.committed,
            Value::Held { .. } => None,
        }
    }

    /// Its place among all in the file, where it stays: what has the type and the length that the file
    /// has of it. Others come last.
    fn place(&self) -> Option<u32> {
        let stays = |placed: &Placed| match self.value {
            Value::Stored(_) => true,
            Value::Held { .. } => {
                let is_same = placed.nc_type == self.nc_type && placed.len == self.len;
                is_same && placed.is_native
            }
        };
        self.placed.filter(stays).map(|placed| placed.place)
    }

    /// The file has it as it is now.
    fn put_at(&mut self, place: u32) {
        let (nc_type, len, is_native) = (self.nc_type, self.len, self.is_native());
        self.placed = Some(Placed { place, nc_type, len, is_native });
    }

    /// Its type in the file is the one that a put of its type makes.
    fn is_native(&self) -> bool {
        match &self.value {
            Value::Held { .. } => true,
            Value::Stored(attribute) => match ExtType::from_nc_type(self.nc_type) {
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

    fn attribute(&self, model: &Model, encode: &mut Encode<'_>) -> Result<Attribute, AttFault> {
        let (held, encoded) = match &self.value {
            Value::Stored(attribute) => return Ok((**attribute).clone()),
            Value::Held { held, encoded } => (held, encoded),
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
            let one = Dataspace { kind: SpaceKind::Scalar, ..empty.clone() };
            let dataspace = if len == 0 { empty } else { one };
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

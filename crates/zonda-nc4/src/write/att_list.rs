//! The attributes of an object that is being written.
//!
//! All that the file has are here, also those that are not shown: hidden ones of netCDF, and those of
//! types that it has not, which are carried along as they are. What was put stays in memory form
//! until a commit makes file form of it.
//!
//! In a session attributes keep their numbers, whatever is put into them. In the file an attribute
//! that is put with another type or length, or gets another name, is a new one: it comes after the
//! others when the file is opened again, as in the reference.

use std::sync::{Arc, OnceLock};

use zonda_hdf5::message::{Charset, Dataspace, SpaceKind};
use zonda_hdf5::{Attribute, File, HdfError, Object};
use zonda_model::{ExtType, NcError};

use super::datatypes::{self, Typed};
use super::held::Held;
use super::source::Fetch;
use crate::attribute::{AttFault, AttValue, meaning, stored_value};
use crate::form::{Form, NC_STRING};
use crate::hidden;
use crate::model::{AttInfo, Endianness, Model};
use crate::names::Names;
use crate::types::Types;

/// The last rank that a header can say when an attribute was made.
const LAST_ORDER: u32 = 65_534;

/// The hidden attributes that are made after those of the caller; the others come before them.
const AFTERWARDS: [&[u8]; 2] = [b"DIMENSION_LIST", b"REFERENCE_LIST"];

/// The attributes of an object, to be changed.
#[derive(Debug)]
pub(crate) struct EditedAtts {
    file: Arc<File>,
    /// Those that are shown, by number. Boxed, because one may be taken from the middle of many.
    #[expect(clippy::vec_box, reason = "taking one from the middle moves all behind it")]
    shown: Vec<Box<Att>>,
    /// The others, as the file has or is to have them; `None` for those that are not in it yet.
    hidden: Vec<(Option<u32>, Attribute)>,
    names: Names,
}

/// An attribute that is shown.
#[derive(Debug)]
pub(crate) struct Att {
    name: Box<[u8]>,
    nc_type: i32,
    len: u64,
    value: Value,
    /// When it was made, as a rank among its object's; `None` where it is not in the file yet.
    order: Option<u32>,
}

#[derive(Debug)]
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
        EditedAtts { file, shown: Vec::new(), hidden: Vec::new(), names: Names::default() }
    }

    /// The list of an object of the file.
    pub(crate) fn of(
        file: Arc<File>,
        object: &Object,
        types: &Types,
    ) -> Result<EditedAtts, AttFault> {
        let attributes = object.attributes(&file)?;
        let mut list = EditedAtts::new(Arc::clone(&file));
        for index in 0..attributes.len() {
            let attribute = attributes.decode(index, &file)?;
            // Without ranks their places in the header are what keeps their order.
            let place = u32::try_from(index).unwrap_or(LAST_ORDER);
            let order = Some(attribute.creation_order.unwrap_or(place));
            let is_hidden = hidden::is_reserved(&attribute.name);
            let found = if is_hidden {
                None
            } else {
                meaning(&attribute.datatype, &attribute.dataspace, types)?
            };
            match found {
                Some(meaning) => list.shown.push(Box::new(Att {
                    name: attribute.name.clone(),
                    nc_type: meaning.nc_type,
                    len: meaning.len,
                    value: Value::Stored(Box::new(attribute)),
                    order,
                })),
                None => list.hidden.push((order, attribute)),
            }
        }
        Ok(list)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn len(&self) -> usize {
        self.shown.len()
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        let all = (0u32..).zip(self.shown.iter().map(|att| &*att.name));
        let at = |number: u32| self.shown.get(usize::try_from(number).ok()?);
        let is_named = |number| at(number).is_some_and(|att| *att.name == *name);
        let found = self.names.find(name, self.shown.len(), all, is_named);
        found.and_then(|number| usize::try_from(number).ok())
    }

    pub(crate) fn info(&self, number: usize) -> Option<AttInfo> {
        let att = self.shown.get(number)?;
        Some(AttInfo { name: att.name.clone(), nc_type: att.nc_type, len: att.len })
    }

    pub(crate) fn value(&self, number: usize, types: &Types) -> Result<AttValue<'_>, AttFault> {
        let att = self.shown.get(number).ok_or(AttFault::Refused(NcError::NotAtt))?;
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
        if let Some(number) = self.find(name) {
            if let Some(att) = self.shown.get_mut(number) {
                // The same type and length stay where they are in the file.
                let is_same = att.nc_type == nc_type && att.len == len && att.is_native();
                att.order = att.order.filter(|_| is_same);
                (att.nc_type, att.len, att.value) = (nc_type, len, value);
            }
            return Ok(());
        }
        let n_atts = self.shown.len().saturating_add(self.hidden.len());
        // Room for the hidden ones that are still to come.
        let most = usize::try_from(LAST_ORDER).unwrap_or(usize::MAX).saturating_sub(16);
        if n_atts >= most {
            return Err(NcError::MaxAtts);
        }
        // One that cannot be shown gives way to one of its name.
        self.hidden.retain(|(_, attribute)| *attribute.name != *name);
        self.names.insert(name, u32::try_from(self.shown.len()).unwrap_or(u32::MAX));
        self.shown.push(Box::new(Att { name: name.into(), nc_type, len, value, order: None }));
        Ok(())
    }

    /// Takes an attribute from the list; those after it get the numbers before theirs.
    pub(crate) fn delete(&mut self, number: usize) {
        if number < self.shown.len() {
            self.shown.remove(number);
            self.names.forget();
        }
    }

    /// Gives an attribute another name.
    pub(crate) fn rename(&mut self, number: usize, name: Box<[u8]>) {
        let Some(att) = self.shown.get_mut(number) else {
            return;
        };
        let place = u32::try_from(number).unwrap_or(u32::MAX);
        self.names.remove(&att.name, place);
        self.names.insert(&name, place);
        self.hidden.retain(|(_, attribute)| *attribute.name != *name);
        att.order = None;
        if let Value::Stored(attribute) = &mut att.value {
            attribute.name = name.clone();
            attribute.charset = charset_of(&name);
        }
        att.name = name;
    }

    /// A hidden attribute, or one that cannot be shown.
    pub(crate) fn hidden(&self, name: &[u8]) -> Option<&Attribute> {
        let found = self.hidden.iter().find(|(_, attribute)| *attribute.name == *name);
        found.map(|(_, attribute)| attribute)
    }

    /// Sets a hidden attribute; with the type and shape that it has it keeps its place.
    pub(crate) fn set_hidden(&mut self, attribute: Attribute) {
        let known = self.hidden.iter_mut().find(|(_, known)| known.name == attribute.name);
        match known {
            Some((order, known)) => {
                let is_same =
                    known.datatype == attribute.datatype && known.dataspace == attribute.dataspace;
                *order = order.filter(|_| is_same);
                *known = attribute;
            }
            None => self.hidden.push((None, attribute)),
        }
    }

    /// Takes a hidden attribute from the list.
    pub(crate) fn remove_hidden(&mut self, name: &[u8]) {
        self.hidden.retain(|(_, attribute)| *attribute.name != *name);
    }

    /// Gives ranks to the attributes that are new to the file: hidden ones first, as they are made
    /// with the object, then those that are shown, then the lists of scales and of their users.
    pub(crate) fn assign_orders(&mut self) {
        let last = self.orders().flatten().max();
        let n_new = self.orders().filter(Option::is_none).count();
        let next = last.map_or(0, |last| last.saturating_add(1));
        let end = u32::try_from(n_new).ok().and_then(|n| next.checked_add(n));
        let mut next = next;
        if end.is_none_or(|end| end > LAST_ORDER.saturating_add(1)) {
            next = self.close_ranks();
        }
        let mut take = |order: &mut Option<u32>| {
            if order.is_none() {
                *order = Some(next);
                next = next.saturating_add(1);
            }
        };
        let is_late = |name: &[u8]| AFTERWARDS.contains(&name);
        for (order, attribute) in &mut self.hidden {
            if !is_late(&attribute.name) {
                take(order);
            }
        }
        self.shown.iter_mut().for_each(|att| take(&mut att.order));
        self.hidden.iter_mut().for_each(|(order, _)| take(order));
    }

    fn orders(&self) -> impl Iterator<Item = Option<u32>> {
        self.shown.iter().map(|att| att.order).chain(self.hidden.iter().map(|(order, _)| *order))
    }

    /// Renumbers those in the file without gaps, after very many changes; gives the next rank.
    fn close_ranks(&mut self) -> u32 {
        let mut places: Vec<&mut Option<u32>> = Vec::new();
        places.extend(self.shown.iter_mut().map(|att| &mut att.order));
        places.extend(self.hidden.iter_mut().map(|(order, _)| order));
        places.retain(|order| order.is_some());
        places.sort_by_key(|order| **order);
        let mut next = 0u32;
        for place in places {
            *place = Some(next);
            next = next.saturating_add(1);
        }
        next
    }

    /// All attributes as they go into the file, in the order of their ranks; `assign_orders` comes
    /// before it. `tracked`: the object keeps the order in which attributes were made.
    ///
    /// # Errors
    /// Types that are not complete, and those of `encode`.
    pub(crate) fn attributes(
        &self,
        model: &Model,
        tracked: bool,
        encode: &mut Encode<'_>,
    ) -> Result<Vec<Attribute>, AttFault> {
        let mut all = Vec::with_capacity(self.shown.len().saturating_add(self.hidden.len()));
        for (order, attribute) in &self.hidden {
            all.push((*order, attribute.clone()));
        }
        for att in &self.shown {
            all.push((att.order, att.attribute(model, encode)?));
        }
        // Those without a rank would come last; all have one.
        all.sort_by_key(|(order, _)| order.unwrap_or(u32::MAX));
        let finished = all.into_iter().map(|(order, mut attribute)| {
            attribute.creation_order = order.filter(|_| tracked);
            attribute
        });
        Ok(finished.collect())
    }
}

impl Att {
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
            return Ok(finish(datatype, dataspace, held.bytes().to_vec()));
        }
        let typed = Typed::of(model, self.nc_type, Endianness::Native);
        let Typed { datatype, form } = typed.map_err(AttFault::Refused)?;
        if self.len == 0 {
            return Ok(finish(datatype, empty, Vec::new()));
        }
        let dataspace =
            Dataspace { kind: SpaceKind::Simple, dims: vec![self.len], max_dims: Vec::new() };
        if ExtType::from_nc_type(self.nc_type).is_some() {
            return Ok(finish(datatype, dataspace, held.bytes().to_vec()));
        }
        if let Some(data) = encoded.get() {
            return Ok(finish(datatype, dataspace, data.to_vec()));
        }
        let n = usize::try_from(self.len).ok();
        let len = n.and_then(|n| n.checked_mul(form.file_size));
        let mut data = vec![0; len.ok_or(AttFault::Refused(NcError::NoMem))?];
        encode(&form, &mut { held }, held.bytes(), &mut data)?;
        let _first = encoded.set(data.clone().into());
        Ok(finish(datatype, dataspace, data))
    }
}

/// The character set that a name is marked with.
fn charset_of(name: &[u8]) -> Charset {
    if name.is_ascii() { Charset::Ascii } else { Charset::Utf8 }
}

#[cfg(test)]
mod tests;

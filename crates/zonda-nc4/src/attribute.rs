//! Attributes: which are shown, of which type and length, and their values.
//!
//! Text in one piece is `NC_CHAR`, many texts and texts of any length are `NC_STRING`. An attribute of
//! a type that netCDF has not is left out; one of more than one dimension makes the whole list
//! unreadable, as in the reference (`NC_EATTMETA`).

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use zonda_hdf5::message::{Dataspace, Datatype, SpaceKind};
use zonda_hdf5::{Attribute, Attributes, File, HdfError, Object};
use zonda_model::{ExtType, NcError};

use crate::form::{Form, NC_STRING, Shape};
use crate::hidden;
use crate::model::AttInfo;
use crate::types::Types;

/// Names are looked up one by one in lists of up to so many.
const SHORT_LIST: usize = 16;

/// The attributes of one object that are shown.
#[derive(Debug)]
pub(crate) struct AttList {
    file: Arc<File>,
    attributes: Attributes,
    /// What each of them is.
    shown: Box<[Shown]>,
    by_name: OnceLock<HashMap<Box<[u8]>, u32>>,
}

/// An attribute that is shown.
#[derive(Clone, Copy, Debug)]
struct Shown {
    nc_type: i32,
    len: u64,
}

/// Why a list is not to be had.
#[derive(Clone, Debug)]
pub(crate) enum AttFault {
    Hdf(HdfError),
    Refused(NcError),
}

impl From<HdfError> for AttFault {
    fn from(error: HdfError) -> AttFault {
        AttFault::Hdf(error)
    }
}

/// What an attribute is to netCDF.
pub(crate) struct Meaning {
    pub(crate) form: Form,
    pub(crate) nc_type: i32,
    pub(crate) len: u64,
}

impl AttList {
    pub(crate) fn read(
        file: Arc<File>,
        object: &Object,
        types: &Types,
    ) -> Result<AttList, AttFault> {
        let mut attributes = object.attributes(&file)?;
        let mut shown = Vec::with_capacity(attributes.len());
        let mut is_shown = Vec::with_capacity(attributes.len());
        for index in 0..attributes.len() {
            let mut found = None;
            if !hidden::is_reserved(attributes.name(index)) {
                let (datatype, space) = attributes.describe(index, &file)?;
                found = meaning(&datatype, &space, types)?;
            }
            is_shown.push(found.is_some());
            shown.extend(found.map(|Meaning { nc_type, len, .. }| Shown { nc_type, len }));
        }
        // The others are never asked for.
        attributes.retain(|index| is_shown.get(index).copied().unwrap_or(false));
        let (shown, by_name) = (shown.into_boxed_slice(), OnceLock::new());
        Ok(AttList { file, attributes, shown, by_name })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// All of them, decoded.
    pub(crate) fn all(&self) -> impl Iterator<Item = Result<Attribute, HdfError>> {
        (0..self.shown.len()).map(|number| self.attributes.decode(number, &self.file))
    }

    pub(crate) fn len(&self) -> usize {
        self.shown.len()
    }

    fn name(&self, number: usize) -> &[u8] {
        self.attributes.name(number)
    }

    /// Number of the attribute with that name.
    pub(crate) fn find(&self, name: &[u8]) -> Result<usize, AttFault> {
        if self.shown.len() <= SHORT_LIST {
            for number in 0..self.shown.len() {
                if self.name(number) == name {
                    return Ok(number);
                }
            }
            return Err(AttFault::Refused(NcError::NotAtt));
        }
        let map = self.by_name.get_or_init(|| {
            let mut map = HashMap::with_capacity(self.shown.len());
            for number in 0..self.shown.len() {
                if let Ok(place) = u32::try_from(number) {
                    map.entry(self.name(number).into()).or_insert(place);
                }
            }
            map
        });
        let found = map.get(name).and_then(|&number| usize::try_from(number).ok());
        found.ok_or(AttFault::Refused(NcError::NotAtt))
    }

    /// What the attribute with that number is.
    pub(crate) fn info(&self, number: usize) -> Result<AttInfo, AttFault> {
        let shown = self.shown.get(number).ok_or(AttFault::Refused(NcError::NotAtt))?;
        let name = self.name(number).into();
        Ok(AttInfo { name, nc_type: shown.nc_type, len: shown.len })
    }

    /// Hands the attribute with that number over.
    pub(crate) fn with<T>(
        &self,
        number: usize,
        types: &Types,
        then: impl FnOnce(&Attribute, &Meaning) -> T,
    ) -> Result<T, AttFault> {
        self.shown.get(number).ok_or(AttFault::Refused(NcError::NotAtt))?;
        let attribute = self.attributes.decode(number, &self.file)?;
        let meaning = meaning(&attribute.datatype, &attribute.dataspace, types)?;
        let meaning = meaning.ok_or(AttFault::Refused(NcError::NotAtt))?;
        Ok(then(&attribute, &meaning))
    }
}

/// What an attribute is to netCDF; `None` for a type that it has not.
fn meaning(
    datatype: &Datatype,
    space: &Dataspace,
    types: &Types,
) -> Result<Option<Meaning>, AttFault> {
    let Some(mut form) = Form::of(datatype) else {
        return Ok(None);
    };
    let rank = space.dims.len();
    let n_elems = space.elements();
    let char_type = ExtType::Char.nc_type();
    let Some(member_type) = form.atomic_member().or_else(|| types.of(&form)) else {
        return Ok(None);
    };
    let (nc_type, len) = match (&form.shape, space.kind) {
        (Shape::FixedText(..), SpaceKind::Null) => (char_type, 0),
        (Shape::FixedText(..), SpaceKind::Scalar) => (char_type, form.file_size as u64),
        (Shape::FixedText(..), SpaceKind::Simple) => (NC_STRING, n_elems),
        (_, SpaceKind::Null) => (member_type, 0),
        (_, SpaceKind::Simple) if rank > 1 && member_type != NC_STRING => {
            return Err(AttFault::Refused(NcError::AttMeta));
        }
        _ => (member_type, n_elems),
    };
    form.show(types.shown_fields(member_type));
    Ok(Some(Meaning { form, nc_type, len }))
}

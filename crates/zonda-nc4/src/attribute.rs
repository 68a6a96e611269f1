//! Attributes of an object that is read: which are shown, of which type and length, and their values.
//!
//! One text of fixed length is `NC_CHAR`; several texts, and texts of any length, are `NC_STRING`. An attribute of a
//! type that netCDF does not have is left out. An attribute of more than one dimension makes the whole list unreadable,
//! as in the reference (`NC_EATTMETA`).

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use zonda_convert::ByteOrder;
use zonda_format::AttView;
use zonda_hdf5::message::{Dataspace, Datatype, SpaceKind};
use zonda_hdf5::{Attribute, Attributes, File, HdfError, Object};
use zonda_model::memory::NoMemory;
use zonda_model::{ExtType, NcError, shown_name};

use crate::Nc4Error;
use crate::element_form::{ElementForm, ElementShape, NC_STRING};
use crate::hidden_atts;
use crate::tuning::SHORT_LIST_NAMES;
use crate::types::Types;
use crate::write::{EditedAtts, OwnedValues};

/// The attributes of one object.
#[derive(Clone, Debug)]
pub(crate) enum AttList {
    /// Those that are shown, as the file has them.
    Read(ReadAtts),
    /// All of them, to be changed; some may not be in the file yet.
    Edited(Box<EditedAtts>),
}

/// An attribute's values, and where they are.
pub(crate) enum AttValue<'a> {
    /// As the file has them, with what they are to netCDF.
    Stored(Box<(Attribute, AttMeaning)>),
    /// In memory form.
    Owned(&'a OwnedValues),
}

impl AttList {
    pub(crate) fn read(
        file: Arc<File>,
        object: &Object,
        types: &Types,
    ) -> Result<AttList, AttFault> {
        ReadAtts::read(file, object, types).map(AttList::Read)
    }

    /// The file that stored values are in.
    pub(crate) fn file(&self) -> &File {
        match self {
            AttList::Read(list) => &list.file,
            AttList::Edited(list) => list.file(),
        }
    }

    /// Why some attributes are not shown, in a file that was opened as a damaged one.
    pub(crate) fn faults(&self) -> &[AttFault] {
        match self {
            AttList::Read(list) => &list.faults,
            AttList::Edited(_) => &[],
        }
    }

    /// How many are shown.
    pub(crate) fn len(&self) -> usize {
        match self {
            AttList::Read(list) => list.shown.len(),
            AttList::Edited(list) => list.len(),
        }
    }

    /// Number of the attribute with that name.
    pub(crate) fn find(&self, name: &[u8]) -> Result<usize, AttFault> {
        let found = match self {
            AttList::Read(list) => list.find(name),
            AttList::Edited(list) => list.find(name),
        };
        found.ok_or_else(|| AttFault::None(name.into()))
    }

    /// What the attribute with that number is.
    pub(crate) fn view(&self, number: usize) -> Result<AttView<'_>, AttFault> {
        let view = match self {
            AttList::Read(list) => list.view(number),
            AttList::Edited(list) => list.view(number),
        };
        view.ok_or(AttFault::Refused(NcError::NotAtt))
    }

    /// The attribute with that number, if it has numbers or one text as the file has them: type, byte order, and the values.
    pub(crate) fn plain(&self, number: usize) -> Option<(ExtType, ByteOrder, &[u8])> {
        match self {
            AttList::Read(list) => list.plain(number),
            AttList::Edited(_) => None,
        }
    }

    /// The values of the attribute with that number.
    pub(crate) fn value(&self, number: usize, types: &Types) -> Result<AttValue<'_>, AttFault> {
        match self {
            AttList::Read(list) => list.value(number, types),
            AttList::Edited(list) => list.value(number, types),
        }
    }
}

/// The attributes of one object that are shown.
#[derive(Clone, Debug)]
pub(crate) struct ReadAtts {
    file: Arc<File>,
    attributes: Attributes,
    /// Type and length of each.
    shown: Box<[ShownAtt]>,
    by_name: OnceLock<HashMap<Box<[u8]>, u32>>,
    /// Why others are not shown, in a file that was opened as a damaged one.
    faults: Box<[AttFault]>,
}

/// An attribute that is shown.
#[derive(Clone, Copy, Debug)]
struct ShownAtt {
    nc_type: i32,
    len: u64,
    /// Byte order of numbers that a kernel converts, and of one text; `None` for what has to be decoded.
    order: Option<ByteOrder>,
}

impl From<AttMeaning> for ShownAtt {
    fn from(AttMeaning { form, nc_type, len }: AttMeaning) -> ShownAtt {
        let order = match form.shape {
            ElementShape::Number(ext, order) if ext.nc_type() == nc_type => Some(order),
            ElementShape::FixedText(..) if nc_type == ExtType::Char.nc_type() => {
                Some(ByteOrder::NATIVE)
            }
            _ => None,
        };
        ShownAtt { nc_type, len, order }
    }
}

/// Why attributes, or one of them, cannot be read.
#[derive(Clone, Debug)]
pub(crate) enum AttFault {
    Hdf(HdfError),
    Refused(NcError),
    /// There is no attribute of this name.
    None(Box<[u8]>),
    /// The attribute of this name has more dimensions than one.
    Shape(Box<[u8]>),
    /// The attribute of this name has a type that netCDF does not have.
    Unrepresentable(Box<[u8]>),
}

impl AttFault {
    pub(crate) fn at(self, object: impl FnOnce() -> String) -> Nc4Error {
        let object = object();
        match self {
            AttFault::Hdf(error) => Nc4Error::Hdf { object, error },
            AttFault::Refused(code) => Nc4Error::Refused { object, code },
            AttFault::None(name) => {
                let why = format!("no attribute {}", shown_name(&name));
                Nc4Error::Explained { object, why, code: NcError::NotAtt }
            }
            AttFault::Shape(name) => {
                let name = String::from_utf8_lossy(&name);
                let what = format!("its attribute {name} has more dimensions than one");
                Nc4Error::Unrepresentable { object, what, code: NcError::AttMeta }
            }
            AttFault::Unrepresentable(name) => {
                let name = String::from_utf8_lossy(&name);
                let what = format!("netCDF cannot represent the type of its attribute {name}");
                Nc4Error::Unrepresentable { object, what, code: NcError::AttMeta }
            }
        }
    }
}

impl From<NoMemory> for AttFault {
    fn from(_: NoMemory) -> AttFault {
        AttFault::Refused(NcError::NoMem)
    }
}

impl From<HdfError> for AttFault {
    fn from(error: HdfError) -> AttFault {
        AttFault::Hdf(error)
    }
}

/// What an attribute is to netCDF.
pub(crate) struct AttMeaning {
    pub(crate) form: ElementForm,
    pub(crate) nc_type: i32,
    pub(crate) len: u64,
}

impl ReadAtts {
    fn read(file: Arc<File>, object: &Object, types: &Types) -> Result<ReadAtts, AttFault> {
        let mut faults = Vec::new();
        if let Some(damage) = object.header().damage.as_deref() {
            faults.push(AttFault::Hdf(damage.clone()));
        }
        let mut attributes = match object.attributes(&file) {
            Err(error) if file.is_tolerant() && !error.is_remote() => {
                faults.push(error.into());
                Attributes::default()
            }
            read => read?,
        };
        let mut shown = Vec::with_capacity(attributes.len());
        let mut is_shown = Vec::with_capacity(attributes.len());
        for index in 0..attributes.len() {
            let mut found = None;
            let name = attributes.name(index);
            if !hidden_atts::is_reserved(name) {
                let described = attributes.describe(index, &file).map_err(AttFault::from);
                let means = |(datatype, space)| meaning(name, &datatype, &space, types);
                found = match described.and_then(means) {
                    Err(AttFault::Hdf(error)) if error.is_remote() => return Err(error.into()),
                    Err(fault) if file.is_tolerant() => {
                        faults.push(fault);
                        None
                    }
                    // As in the reference it is not shown. Copies and checks of a file list these faults.
                    Ok(None) => {
                        faults.push(AttFault::Unrepresentable(name.into()));
                        None
                    }
                    found => found?,
                };
            }
            is_shown.push(found.is_some());
            shown.extend(found.map(ShownAtt::from));
        }
        // Those that are not shown are never asked for.
        attributes.retain(|index| is_shown.get(index).copied().unwrap_or(false));
        let (shown, by_name) = (shown.into_boxed_slice(), OnceLock::new());
        Ok(ReadAtts { file, attributes, shown, by_name, faults: faults.into() })
    }

    fn name(&self, number: usize) -> &[u8] {
        self.attributes.name(number)
    }

    fn find(&self, name: &[u8]) -> Option<usize> {
        if self.shown.len() <= SHORT_LIST_NAMES {
            return (0..self.shown.len()).find(|&number| self.name(number) == name);
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
        map.get(name).and_then(|&number| usize::try_from(number).ok())
    }

    fn view(&self, number: usize) -> Option<AttView<'_>> {
        let ShownAtt { nc_type, len, .. } = *self.shown.get(number)?;
        Some(AttView { name: self.name(number).into(), nc_type, len, bytes: None })
    }

    fn plain(&self, number: usize) -> Option<(ExtType, ByteOrder, &[u8])> {
        let ShownAtt { nc_type, len, order } = *self.shown.get(number)?;
        let ext = ExtType::from_nc_type(nc_type)?;
        let n_bytes = usize::try_from(len).ok()?.checked_mul(ext.size())?;
        Some((ext, order?, self.attributes.elements(number).get(..n_bytes)?))
    }

    fn value(&self, number: usize, types: &Types) -> Result<AttValue<'_>, AttFault> {
        self.shown.get(number).ok_or(AttFault::Refused(NcError::NotAtt))?;
        stored_value(self.attributes.decode(number, &self.file)?, types)
    }
}

/// The values of an attribute as the file has it.
pub(crate) fn stored_value(
    attribute: Attribute,
    types: &Types,
) -> Result<AttValue<'static>, AttFault> {
    let meaning = meaning(&attribute.name, &attribute.datatype, &attribute.dataspace, types)?;
    let meaning = meaning.ok_or(AttFault::Refused(NcError::NotAtt))?;
    Ok(AttValue::Stored(Box::new((attribute, meaning))))
}

/// What an attribute is to netCDF; `None` for a type that netCDF does not have.
pub(crate) fn meaning(
    name: &[u8],
    datatype: &Datatype,
    space: &Dataspace,
    types: &Types,
) -> Result<Option<AttMeaning>, AttFault> {
    let Some(mut form) = ElementForm::of(datatype) else {
        return Ok(None);
    };
    let rank = space.dims.len();
    let n_elems = space.elements();
    let char_type = ExtType::Char.nc_type();
    let Some(member_type) = form.atomic_member().or_else(|| types.of(&form)) else {
        return Ok(None);
    };
    let (nc_type, len) = match (&form.shape, space.kind) {
        (ElementShape::FixedText(..), SpaceKind::Null) => (char_type, 0),
        (ElementShape::FixedText(..), SpaceKind::Scalar) => (char_type, form.file_size as u64),
        (ElementShape::FixedText(..), SpaceKind::Simple) => (NC_STRING, n_elems),
        (_, SpaceKind::Null) => (member_type, 0),
        (_, SpaceKind::Simple) if rank > 1 && member_type != NC_STRING => {
            return Err(AttFault::Shape(name.into()));
        }
        _ => (member_type, n_elems),
    };
    form.show(types.shown_fields(member_type));
    Ok(Some(AttMeaning { form, nc_type, len }))
}

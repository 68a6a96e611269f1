//! The HDF5 types of netCDF types, and how their elements lie in memory and in the file.
//!
//! A compound keeps the offsets and the size that its definition gives it, padding included; only
//! strings are longer in the file than in memory, and move what comes after them.

use zonda_convert::ByteOrder;
use zonda_hdf5::message::{
    ByteOrder as FileOrder, Charset, Class, Compound, Dataspace, Datatype, EnumMember, FixedPoint,
    Member, Padding, ReferenceKind, SpaceKind,
};
use zonda_model::{ExtType, NcError};

use crate::element_form::{
    ElementForm, ElementShape, NC_STRING, StructMember, ieee_double, ieee_single,
};
use crate::fault::{Coded, refuse_if};
use crate::model::{Endianness, Field, Model, UserClass, UserType};

/// Most levels of types in types: as many as a reader accepts. (libhdf5 has no limit, and needs minutes for some
/// hundred levels.)
pub(crate) const DEEPEST: usize = 255;

/// Bytes of a string in the file: its length and its place in the global heap.
const STRING_BYTES: u32 = 16;

/// A type as HDF5 has it, and the form of its elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Typed {
    pub(crate) datatype: Datatype,
    pub(crate) form: ElementForm,
}

/// The byte order of numbers in the file.
fn order(endianness: Endianness) -> FileOrder {
    match endianness {
        Endianness::Little => FileOrder::Little,
        Endianness::Big => FileOrder::Big,
        Endianness::Native if ByteOrder::NATIVE == ByteOrder::Little => FileOrder::Little,
        Endianness::Native => FileOrder::Big,
    }
}

impl Typed {
    /// A type by its number. The byte order applies to numbers only.
    ///
    /// # Errors
    /// `NC_EBADTYPE` for a number that is no type, and for a type whose elements cannot be written;
    /// `NC_EINVAL` for an enumeration without members and `NC_EHDFERR` for a compound without
    /// fields, as the reference says when it commits such types.
    pub(crate) fn of(model: &Model, nc_type: i32, endianness: Endianness) -> Coded<Typed> {
        nested(model, nc_type, endianness, DEEPEST)
    }

    fn new(datatype: Datatype) -> Coded<Typed> {
        let form = ElementForm::of(&datatype).ok_or(NcError::BadType)?;
        Ok(Typed { datatype, form })
    }
}

/// Text of `len` bytes, as attributes have it.
pub(crate) fn text(len: u32) -> Datatype {
    let (padding, charset) = (Padding::NullTerminated, Charset::Ascii);
    Datatype { size: len, class: Class::String { padding, charset } }
}

/// A reference to an object.
pub(crate) fn reference() -> Datatype {
    Datatype { size: 8, class: Class::Reference(ReferenceKind::Object) }
}

/// The extent of a single value.
pub(crate) fn scalar_space() -> Dataspace {
    Dataspace { kind: SpaceKind::Scalar, dims: Vec::new(), max_dims: Vec::new() }
}

/// The extent of an array that cannot grow.
pub(crate) fn array_space(dims: Vec<u64>) -> Dataspace {
    Dataspace { kind: SpaceKind::Simple, max_dims: dims.clone(), dims }
}

/// An atomic type but string.
pub(crate) fn atomic(ext: ExtType, endianness: Endianness) -> Datatype {
    let order = order(endianness);
    let size = u32::try_from(ext.size()).unwrap_or(0);
    let precision = u16::try_from(ext.size().saturating_mul(8)).unwrap_or(0);
    let integer = |signed| {
        let (padding, bit_offset) = ([false; 2], 0);
        Class::FixedPoint(FixedPoint { order, signed, padding, bit_offset, precision })
    };
    let class = match ext {
        ExtType::Char => return text(1),
        ExtType::Byte | ExtType::Short | ExtType::Int | ExtType::Int64 => integer(true),
        ExtType::UByte | ExtType::UShort | ExtType::UInt | ExtType::UInt64 => integer(false),
        ExtType::Float => Class::FloatingPoint(ieee_single(order)),
        ExtType::Double => Class::FloatingPoint(ieee_double(order)),
    };
    Datatype { size, class }
}

/// `NC_STRING`
pub(crate) fn string() -> Datatype {
    let (padding, charset) = (Padding::NullTerminated, Charset::Utf8);
    Datatype { size: STRING_BYTES, class: Class::VarLenString { padding, charset } }
}

fn nested(model: &Model, nc_type: i32, endianness: Endianness, depth: usize) -> Coded<Typed> {
    let depth = depth.checked_sub(1).ok_or(NcError::HdfErr)?;
    if let Some(ext) = ExtType::from_nc_type(nc_type) {
        return Typed::new(atomic(ext, endianness));
    }
    if nc_type == NC_STRING {
        return Typed::new(string());
    }
    let ty = model.user_type(nc_type).ok_or(NcError::BadType)?;
    match ty.stored() {
        Some(stored) if !ty.is_declared => {
            // Fields that netCDF cannot show cannot be written either.
            let is_whole = model.forms.shown_fields(nc_type).is_none();
            let is_known = !matches!(ty.class, UserClass::Unknown | UserClass::String);
            refuse_if(!is_whole || !is_known, NcError::BadType)?;
            Typed::new((**stored).clone())
        }
        _ => declared(model, ty, depth),
    }
}

/// A type that was defined since the file was opened.
fn declared(model: &Model, ty: &UserType, depth: usize) -> Coded<Typed> {
    let size = u32::try_from(ty.size).map_err(|_| NcError::Inval)?;
    let native = |nc_type| nested(model, nc_type, Endianness::Native, depth);
    match &ty.class {
        UserClass::Compound(fields) => compound(ty.size, fields, native),
        UserClass::Enum { base, members } => {
            refuse_if(members.is_empty(), NcError::Inval)?;
            let base = native(*base)?;
            let named = |(name, value): &(Box<[u8]>, Box<[u8]>)| EnumMember {
                name: name.clone(),
                value: value.clone(),
            };
            let list = members.iter().map(named).collect();
            let class = Class::Enum { base: Box::new(base.datatype), members: list };
            Typed::new(Datatype { size, class })
        }
        UserClass::Opaque => Typed::new(Datatype { size, class: Class::Opaque { tag: [].into() } }),
        UserClass::Vlen { base } => {
            let Typed { datatype, form } = native(*base)?;
            let class = Class::VarLenSequence { base: Box::new(datatype) };
            // Not `ElementForm::of`: the items lie in memory as they were declared.
            let shape = ElementShape::Sequence(Box::new(form));
            let form = ElementForm { file_size: ty.size, size: ty.size, align: 8, shape };
            Ok(Typed { datatype: Datatype { size, class }, form })
        }
        UserClass::String | UserClass::Unknown => Err(NcError::BadType),
    }
}

fn compound(size: usize, fields: &[Field], native: impl Fn(i32) -> Coded<Typed>) -> Coded<Typed> {
    refuse_if(fields.is_empty(), NcError::HdfErr)?;
    let mut members = Vec::with_capacity(fields.len());
    let mut parts = Vec::with_capacity(fields.len());
    for field in fields {
        let Typed { datatype, form } = array(native(field.nc_type)?, &field.dims)?;
        let (name, offset) = (field.name.clone(), 0);
        members.push(Member { name: name.clone(), offset, datatype });
        parts.push(StructMember { name, file_at: 0, at: field.offset, form });
    }
    // If a field points elsewhere, all fields are sorted, as in the reference.
    if parts.iter().any(|part| part.form.has_pointers()) {
        let mut both: Vec<_> = parts.into_iter().zip(members).collect();
        zonda_runtime::sort::sort_by_key(&mut both, |(part, _)| part.at);
        (parts, members) = both.into_iter().unzip();
    }
    let mut longer = 0usize;
    for (part, member) in parts.iter_mut().zip(&mut members) {
        // Strings are longer in the file than in memory, and move the fields behind them.
        part.file_at = part.at.checked_add(longer).ok_or(NcError::Inval)?;
        member.offset = u32::try_from(part.file_at).map_err(|_| NcError::Inval)?;
        let growth = part.form.file_size.saturating_sub(part.form.size);
        longer = longer.checked_add(growth).ok_or(NcError::Inval)?;
    }
    let file_size = size.checked_add(longer).ok_or(NcError::Inval)?;
    let class = Class::Compound(Compound { members });
    let datatype = Datatype { size: u32::try_from(file_size).map_err(|_| NcError::Inval)?, class };
    let align = parts.iter().map(|part| part.form.align).max().unwrap_or(1);
    let form = ElementForm { file_size, size, align, shape: ElementShape::Compound(parts) };
    Ok(Typed { datatype, form })
}

fn array(base: Typed, dims: &[i32]) -> Coded<Typed> {
    if dims.is_empty() {
        return Ok(base);
    }
    let dims: Option<Vec<u32>> = dims.iter().map(|&dim| u32::try_from(dim).ok()).collect();
    let dims = dims.filter(|dims| !dims.contains(&0)).ok_or(NcError::HdfErr)?;
    let times = |n: usize| {
        let times = |n: usize, &dim: &u32| n.checked_mul(usize::try_from(dim).ok()?);
        dims.iter().try_fold(n, times).ok_or(NcError::HdfErr)
    };
    let Typed { datatype, form } = base;
    let (file_size, size) = (times(form.file_size)?, times(form.size)?);
    let class = Class::Array { base: Box::new(datatype), dims: dims.clone() };
    let datatype = Datatype { size: u32::try_from(file_size).map_err(|_| NcError::HdfErr)?, class };
    let align = form.align;
    let form =
        ElementForm { file_size, size, align, shape: ElementShape::Array(Box::new(form), dims) };
    Ok(Typed { datatype, form })
}

#[cfg(test)]
mod tests;

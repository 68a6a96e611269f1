//! Element forms: how values of an HDF5 type lie in the file and in the caller's memory.
//!
//! In memory values are as C programs expect them: integers of 1, 2, 4 or 8 bytes, `float` and `double`, structs with the
//! alignment of C, strings as addresses, sequences as length and address. Two types of a file are the same type of
//! netCDF if their forms in memory are equal, whatever the byte orders in the file are.

use zonda_convert::ByteOrder;
pub(crate) use zonda_format::NC_STRING;
use zonda_hdf5::message::{
    ByteOrder as FileOrder, Charset, Class, Compound, Datatype, EnumMember, FixedPoint,
    FloatingPoint, Normalisation, Padding, ReferenceKind,
};
use zonda_model::ExtType;

use crate::model::Member;

/// Bytes of a sequence in memory: its length and its address.
const SEQUENCE: usize = 16;
/// Bytes of an address in memory.
const ADDRESS: usize = 8;

/// How an element lies in memory, with what is needed to make it from the file's bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ElementForm {
    /// Bytes in the file.
    pub(crate) file_size: usize,
    /// Bytes in memory.
    pub(crate) size: usize,
    /// Alignment in memory: its address is a multiple of this.
    pub(crate) align: usize,
    /// What kind of value it is.
    pub(crate) shape: ElementShape,
}

/// What kind of value an element is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ElementShape {
    /// A number or character that kernels convert.
    Number(ExtType, ByteOrder),
    /// An integer that does not use all bits of its bytes.
    Integer(FixedPoint),
    /// A floating-point number that is neither IEEE single nor double.
    Float(FloatingPoint),
    /// Text of fixed length.
    FixedText(Padding, Charset),
    /// Text of any length.
    Text(Padding, Charset),
    /// Bytes with a meaning that only programs know.
    Opaque(Box<[u8]>),
    /// A struct.
    Compound(Vec<StructMember>),
    /// Named integers, with their values in native bytes.
    Enum(Box<ElementForm>, Vec<Member>),
    /// A sequence of any length.
    Sequence(Box<ElementForm>),
    /// An array with these lengths.
    Array(Box<ElementForm>, Vec<u32>),
    /// Real and imaginary part.
    Complex(Box<ElementForm>),
    /// Bits, an unsigned integer in memory.
    Bits(FixedPoint),
    /// A reference, which is read as its bytes.
    Reference(ReferenceKind),
}

/// A member of a struct.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StructMember {
    /// Name.
    pub(crate) name: Box<[u8]>,
    /// First byte in the file's element.
    pub(crate) file_at: usize,
    /// First byte in memory.
    pub(crate) at: usize,
    /// Its form.
    pub(crate) form: ElementForm,
}

impl ElementForm {
    /// The form of a type; `None` for what has none (times, sizes beyond memory).
    pub(crate) fn of(datatype: &Datatype) -> Option<ElementForm> {
        let file_size = usize::try_from(datatype.size).ok()?;
        let (size, align, shape) = match &datatype.class {
            Class::FixedPoint(bits) => integer(*bits, file_size)?,
            Class::FloatingPoint(bits) => float(*bits, file_size),
            Class::Time { .. } => return None,
            Class::String { padding, charset } => {
                (file_size, 1, ElementShape::FixedText(*padding, *charset))
            }
            Class::VarLenString { padding, charset } => {
                (ADDRESS, ADDRESS, ElementShape::Text(*padding, *charset))
            }
            Class::Bitfield(bits) => {
                let size = bytes_for(bits.precision);
                (size, size, ElementShape::Bits(*bits))
            }
            Class::Opaque { tag } => (file_size, 1, ElementShape::Opaque(tag.clone())),
            Class::Compound(compound) => compound_struct(compound, file_size)?,
            Class::Reference(kind) => reference(*kind, file_size),
            Class::Enum { base, members } => enumeration(base, members)?,
            Class::VarLenSequence { base } => {
                (SEQUENCE, ADDRESS, ElementShape::Sequence(Box::new(ElementForm::of(base)?)))
            }
            Class::Array { base, dims } => array(base, dims, file_size)?,
            Class::Complex { base } => {
                let base = ElementForm::of(base)?;
                if base.file_size.checked_mul(2)? > file_size {
                    return None;
                }
                (base.size.checked_mul(2)?, base.align, ElementShape::Complex(Box::new(base)))
            }
        };
        Some(ElementForm { file_size, size, align, shape })
    }

    /// Number of the atomic type of a variable or attribute of this form: fixed text of one byte is
    /// `NC_CHAR`, longer text a string. `None` for what needs a user-defined type.
    pub(crate) fn atomic(&self) -> Option<i32> {
        match self.shape {
            ElementShape::FixedText(..) if self.file_size == 1 => Some(ExtType::Char.nc_type()),
            ElementShape::FixedText(..) => Some(NC_STRING),
            _ => self.atomic_member(),
        }
    }

    /// Number of the atomic type of a member of this form: fixed text is `NC_CHAR`, however long.
    pub(crate) fn atomic_member(&self) -> Option<i32> {
        match &self.shape {
            ElementShape::Number(ext, _) => Some(ext.nc_type()),
            ElementShape::Integer(bits) => Some(native_integer(self.size, bits.signed).nc_type()),
            ElementShape::Float(_) => Some(native_float(self.size).nc_type()),
            ElementShape::FixedText(..) => Some(ExtType::Char.nc_type()),
            ElementShape::Text(..) => Some(NC_STRING),
            ElementShape::Opaque(_)
            | ElementShape::Compound(_)
            | ElementShape::Enum(..)
            | ElementShape::Sequence(_)
            | ElementShape::Array(..)
            | ElementShape::Complex(_)
            | ElementShape::Bits(_)
            | ElementShape::Reference(_) => None,
        }
    }

    /// Byte order in the file, where the elements are numbers.
    pub(crate) fn order(&self) -> Option<ByteOrder> {
        match &self.shape {
            ElementShape::Number(_, order) => Some(*order),
            ElementShape::Integer(bits) => memory_order(bits.order),
            ElementShape::Float(bits) => memory_order(bits.order),
            _ => None,
        }
    }

    /// Leaves out the members of a compound that netCDF has no fields for: a program could not free the memory that they
    /// point to.
    pub(crate) fn show(&mut self, n_fields: Option<usize>) {
        if let (ElementShape::Compound(parts), Some(n_fields)) = (&mut self.shape, n_fields) {
            parts.truncate(n_fields);
        }
    }

    /// Whether elements hold addresses of memory.
    pub(crate) fn has_pointers(&self) -> bool {
        match &self.shape {
            ElementShape::Text(..) | ElementShape::Sequence(_) => true,
            ElementShape::Compound(parts) => parts.iter().any(|part| part.form.has_pointers()),
            ElementShape::Array(base, _)
            | ElementShape::Enum(base, _)
            | ElementShape::Complex(base) => base.has_pointers(),
            _ => false,
        }
    }

    /// Bytes that are equal for equal forms in memory, in whatever order the file has members.
    pub(crate) fn identity(&self) -> Box<[u8]> {
        let mut out = Vec::new();
        self.identify(&mut out);
        out.into_boxed_slice()
    }

    /// Appends what [`Form::identity`] gives.
    fn identify(&self, out: &mut Vec<u8>) {
        let mut head = |tag: u8, extra: [u8; 2]| {
            out.extend([tag]);
            out.extend(extra);
            out.extend((self.size as u64).to_le_bytes());
        };
        match &self.shape {
            // Integers of one size and sign are one type, however the file stores them.
            ElementShape::Number(ext, _) => head(1, [nc_byte(ext.nc_type()), 0]),
            ElementShape::Integer(bits) => {
                head(1, [nc_byte(native_integer(self.size, bits.signed).nc_type()), 0]);
            }
            // What is longer than `double` is `long double`, another type.
            ElementShape::Float(_) => {
                let long = u8::from(self.file_size > 8);
                head(1, [nc_byte(native_float(self.size).nc_type()), long]);
            }
            ElementShape::FixedText(padding, charset) => head(2, [*padding as u8, *charset as u8]),
            ElementShape::Text(padding, charset) => head(3, [*padding as u8, *charset as u8]),
            ElementShape::Opaque(tag) => {
                head(4, [0, 0]);
                text(tag, out);
            }
            ElementShape::Compound(parts) => {
                head(5, [0, 0]);
                identify_members(parts, out);
            }
            ElementShape::Enum(base, members) => {
                head(6, [0, 0]);
                base.identify(out);
                identify_enum_members(members, out);
            }
            ElementShape::Sequence(base) => {
                head(7, [0, 0]);
                base.identify(out);
            }
            ElementShape::Array(base, dims) => {
                head(8, [nc_byte(i32::try_from(dims.len()).unwrap_or(i32::MAX)), 0]);
                out.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
                base.identify(out);
            }
            ElementShape::Complex(base) => {
                head(9, [0, 0]);
                base.identify(out);
            }
            ElementShape::Bits(_) => head(10, [0, 0]),
            ElementShape::Reference(kind) => head(11, [*kind as u8, 0]),
        }
    }
}

/// Appends the members of a struct, in the order of their names.
fn identify_members(members: &[StructMember], out: &mut Vec<u8>) {
    let mut sorted: Vec<&StructMember> = members.iter().collect();
    zonda_runtime::sort::sort_by(&mut sorted, |a, b| a.name.cmp(&b.name));
    out.extend((sorted.len() as u64).to_le_bytes());
    for member in sorted {
        text(&member.name, out);
        out.extend((member.at as u64).to_le_bytes());
        member.form.identify(out);
    }
}

/// Appends the members of an enum, in the order of their names.
fn identify_enum_members(members: &[Member], out: &mut Vec<u8>) {
    let mut sorted: Vec<_> = members.iter().collect();
    zonda_runtime::sort::sort(&mut sorted);
    out.extend((sorted.len() as u64).to_le_bytes());
    for (name, value) in sorted {
        text(name, out);
        out.extend(value.iter());
    }
}

fn nc_byte(value: i32) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

fn text(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

/// Bytes of the smallest integer of C that holds so many bits.
fn bytes_for(precision: u16) -> usize {
    match precision {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}

/// The type of an integer in memory.
pub(crate) fn native_integer(size: usize, signed: bool) -> ExtType {
    match (size, signed) {
        (1, true) => ExtType::Byte,
        (1, false) => ExtType::UByte,
        (2, true) => ExtType::Short,
        (2, false) => ExtType::UShort,
        (4, true) => ExtType::Int,
        (4, false) => ExtType::UInt,
        (_, true) => ExtType::Int64,
        (_, false) => ExtType::UInt64,
    }
}

/// The type of a floating-point number in memory.
pub(crate) fn native_float(size: usize) -> ExtType {
    if size == 4 { ExtType::Float } else { ExtType::Double }
}

/// A byte order that kernels know; `None` for that of the VAX.
fn memory_order(order: FileOrder) -> Option<ByteOrder> {
    match order {
        FileOrder::Little => Some(ByteOrder::Little),
        FileOrder::Big => Some(ByteOrder::Big),
        FileOrder::Vax => None,
    }
}

/// A struct, whose members lie in memory as C lays them out.
fn compound_struct(compound: &Compound, file_size: usize) -> Option<(usize, usize, ElementShape)> {
    let mut size = 0usize;
    let mut align = 1usize;
    let mut parts = Vec::with_capacity(compound.members.len());
    for member in &compound.members {
        let form = ElementForm::of(&member.datatype)?;
        let file_at = usize::try_from(member.offset).ok()?;
        if file_at.checked_add(form.file_size)? > file_size {
            return None;
        }
        let at = size.checked_next_multiple_of(form.align)?;
        size = at.checked_add(form.size)?;
        align = align.max(form.align);
        parts.push(StructMember { name: member.name.clone(), file_at, at, form });
    }
    Some((size.checked_next_multiple_of(align)?, align, ElementShape::Compound(parts)))
}

fn reference(kind: ReferenceKind, file_size: usize) -> (usize, usize, ElementShape) {
    let (least, align) = match kind {
        ReferenceKind::Object => (8, 8),
        ReferenceKind::DatasetRegion => (12, 1),
        ReferenceKind::Object2 | ReferenceKind::DatasetRegion2 | ReferenceKind::Attribute => {
            (64, 8)
        }
    };
    (file_size.max(least), align, ElementShape::Reference(kind))
}

fn enumeration(base: &Datatype, members: &[EnumMember]) -> Option<(usize, usize, ElementShape)> {
    let base = ElementForm::of(base)?;
    let mut named = Vec::with_capacity(members.len());
    for member in members {
        let mut value = vec![0; base.size];
        crate::bits::convert(&base, &member.value, &mut value)?;
        named.push((member.name.clone(), value.into_boxed_slice()));
    }
    Some((base.size, base.align, ElementShape::Enum(Box::new(base), named)))
}

fn array(base: &Datatype, dims: &[u32], file_size: usize) -> Option<(usize, usize, ElementShape)> {
    let base = ElementForm::of(base)?;
    let n = dims.iter().try_fold(1usize, |n, &dim| n.checked_mul(usize::try_from(dim).ok()?))?;
    if n.checked_mul(base.file_size)? > file_size {
        return None;
    }
    let size = n.checked_mul(base.size)?;
    Some((size, base.align, ElementShape::Array(Box::new(base), dims.to_vec())))
}

fn integer(bits: FixedPoint, file_size: usize) -> Option<(usize, usize, ElementShape)> {
    if file_size == 0 {
        return None;
    }
    let size = bytes_for(bits.precision);
    let order = memory_order(bits.order)?;
    let plain = size == file_size
        && bits.bit_offset == 0
        && usize::from(bits.precision) == file_size.saturating_mul(8);
    let shape = if plain {
        ElementShape::Number(native_integer(size, bits.signed), order)
    } else {
        ElementShape::Integer(bits)
    };
    Some((size, size, shape))
}

/// The IEEE number of 32 bits (`float`).
pub(crate) fn ieee_single(order: FileOrder) -> FloatingPoint {
    ieee(order, 32, 23, 8, 127)
}

/// The IEEE number of 64 bits (`double`).
pub(crate) fn ieee_double(order: FileOrder) -> FloatingPoint {
    ieee(order, 64, 52, 11, 1023)
}

fn ieee(
    order: FileOrder,
    precision: u16,
    mantissa_bits: u8,
    exponent_bits: u8,
    bias: u32,
) -> FloatingPoint {
    FloatingPoint {
        order,
        bit_offset: 0,
        precision,
        normalisation: Normalisation::Implied,
        sign: mantissa_bits.saturating_add(exponent_bits),
        exponent_at: mantissa_bits,
        exponent_bits,
        mantissa_at: 0,
        mantissa_bits,
        bias,
    }
}

fn float(bits: FloatingPoint, file_size: usize) -> (usize, usize, ElementShape) {
    let size = if file_size <= 4 { 4 } else { 8 };
    let order = memory_order(bits.order);
    let single = file_size == 4 && bits == ieee_single(bits.order);
    let double = file_size == 8 && bits == ieee_double(bits.order);
    match order {
        Some(order) if single || double => {
            (size, size, ElementShape::Number(native_float(size), order))
        }
        _ => (size, size, ElementShape::Float(bits)),
    }
}

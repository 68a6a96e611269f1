//! Encoding of datatypes.
//! Watch: a type has the lowest version that can say it: 1, and 3 for compounds, enumerations and
//! arrays and for sequences of these; their members keep versions of their own.

use super::{
    ByteOrder, Charset, Class, Compound, Datatype, EnumMember, FixedPoint, FloatingPoint,
    Normalisation, Padding, ReferenceKind,
};
use crate::limits::ReadLimits;
use crate::{HdfError, Result, Writer};

const NAME: &str = "datatype message";

impl Datatype {
    /// Encodes the message.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] where a type has more members or a longer tag than fit, and beyond
    /// the nesting that decoding allows; [`HdfError::BadValue`] for a compound of nothing, and for
    /// names with a NUL.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        datatype(writer, self, ReadLimits::default().type_depth)
    }

    /// The lowest version that can say it.
    fn version(&self, depth: usize) -> u8 {
        let of = |base: &Datatype| depth.checked_sub(1).map_or(1, |depth| base.version(depth));
        match &self.class {
            Class::FloatingPoint(FloatingPoint { order: ByteOrder::Vax, .. }) => 3,
            Class::Compound(Compound { members }) => {
                members.iter().map(|member| of(&member.datatype)).fold(3, u8::max)
            }
            Class::Enum { base, .. } | Class::Array { base, .. } => of(base).max(3),
            Class::VarLenSequence { base } => of(base),
            Class::Reference(kind) => match kind {
                ReferenceKind::Object | ReferenceKind::DatasetRegion => 1,
                _ => 4,
            },
            Class::Complex { .. } => 5,
            _ => 1,
        }
    }
}

fn too_large(value: usize) -> HdfError {
    HdfError::TooLarge { structure: NAME, value: value as u64 }
}

fn bad(what: &'static str, value: u64) -> HdfError {
    HdfError::BadValue { structure: NAME, at: 0, what, value }
}

/// A name and the NUL behind it.
fn name(writer: &mut Writer, name: &[u8]) -> Result<()> {
    match name.iter().position(|&byte| byte == 0) {
        None => writer.put(name).u8(0),
        Some(at) => return Err(bad("the byte of a NUL in a name", at as u64)),
    };
    Ok(())
}

fn datatype(writer: &mut Writer, datatype: &Datatype, depth: usize) -> Result<()> {
    let Some(inner) = depth.checked_sub(1) else {
        return Err(too_large(ReadLimits::default().type_depth));
    };
    let (number, bits) = head(&datatype.class)?;
    writer.u8(number | datatype.version(depth) << 4);
    let [low, middle, high, _] = bits.to_le_bytes();
    writer.put(&[low, middle, high]).u32(datatype.size);
    match &datatype.class {
        Class::FixedPoint(bits) | Class::Bitfield(bits) => {
            writer.u16(bits.bit_offset).u16(bits.precision);
        }
        Class::FloatingPoint(number) => {
            writer.u16(number.bit_offset).u16(number.precision);
            writer.u8(number.exponent_at).u8(number.exponent_bits);
            writer.u8(number.mantissa_at).u8(number.mantissa_bits);
            writer.u32(number.bias);
        }
        Class::Time { precision, .. } => {
            writer.u16(*precision);
        }
        Class::String { .. } | Class::Reference(_) => {}
        Class::Opaque { tag } => {
            writer.put(tag).zeros(tag_len(tag).saturating_sub(tag.len()));
        }
        Class::Compound(Compound { members }) => {
            let width = datatype.size.checked_ilog2().unwrap_or_default() / 8;
            let width = u8::try_from(width).unwrap_or_default().saturating_add(1);
            for member in members {
                name(writer, &member.name)?;
                writer.uint(u64::from(member.offset), width)?;
                self::datatype(writer, &member.datatype, inner)?;
            }
        }
        Class::Enum { base, members } => enumeration(writer, base, members, inner)?,
        Class::VarLenSequence { base } | Class::Complex { base } => {
            self::datatype(writer, base, inner)?;
        }
        // What libraries name as the type of a character.
        Class::VarLenString { .. } => self::datatype(writer, &CHARACTER, inner)?,
        Class::Array { base, dims } => {
            writer.u8(u8::try_from(dims.len()).map_err(|_| too_large(dims.len()))?);
            for &dim in dims {
                writer.u32(dim);
            }
            self::datatype(writer, base, inner)?;
        }
    }
    Ok(())
}

const CHARACTER: Datatype = Datatype {
    size: 1,
    class: Class::FixedPoint(FixedPoint {
        order: ByteOrder::Little,
        signed: false,
        padding: [false; 2],
        bit_offset: 0,
        precision: 8,
    }),
};

/// Number of a class, and the bits that go with it.
fn head(class: &Class) -> Result<(u8, u32)> {
    let bit = |set: bool, at: u32| u32::from(set) << at;
    let count = |n: usize| u16::try_from(n).map(u32::from).map_err(|_| too_large(n));
    let big = |order: &ByteOrder| bit(*order != ByteOrder::Little, 0);
    let fixed = |bits: &FixedPoint| {
        let [low, high] = bits.padding;
        big(&bits.order) | bit(low, 1) | bit(high, 2) | bit(bits.signed, 3)
    };
    Ok(match class {
        Class::FixedPoint(bits) => (0, fixed(bits)),
        Class::FloatingPoint(number) => {
            let vax = bit(number.order == ByteOrder::Vax, 6);
            let normalisation = match number.normalisation {
                Normalisation::None => 0,
                Normalisation::Stored => 1,
                Normalisation::Implied => 2,
            };
            (1, big(&number.order) | vax | normalisation << 4 | u32::from(number.sign) << 8)
        }
        Class::Time { order, .. } => (2, big(order)),
        Class::String { padding, charset } => (3, text(*padding, *charset, 0)),
        Class::Bitfield(bits) => (4, fixed(bits)),
        Class::Opaque { tag } => match tag_len(tag) {
            len @ ..=0xf8 => (5, u32::try_from(len).unwrap_or_default()),
            len => return Err(too_large(len)),
        },
        Class::Compound(Compound { members }) if members.is_empty() => {
            return Err(bad("number of a compound's members", 0));
        }
        Class::Compound(Compound { members }) => (6, count(members.len())?),
        Class::Reference(kind) => match kind {
            ReferenceKind::Object => (7, 0),
            ReferenceKind::DatasetRegion => (7, 1),
            // Bits 4 to 7 are the version of their encoding.
            ReferenceKind::Object2 => (7, 0x12),
            ReferenceKind::DatasetRegion2 => (7, 0x13),
            ReferenceKind::Attribute => (7, 0x14),
        },
        Class::Enum { members, .. } => (8, count(members.len())?),
        Class::VarLenSequence { .. } => (9, 0),
        Class::VarLenString { padding, charset } => (9, 1 | text(*padding, *charset, 4)),
        Class::Array { .. } => (10, 0),
        // Both parts are of one type, the real one first.
        Class::Complex { .. } => (11, 1),
    })
}

/// Padding and character set, from bit `at` on.
fn text(padding: Padding, charset: Charset, at: u32) -> u32 {
    let padding = match padding {
        Padding::NullTerminated => 0u32,
        Padding::NullPadded => 1,
        Padding::SpacePadded => 2,
    };
    (padding | u32::from(charset.code()) << 4) << at
}

fn tag_len(tag: &[u8]) -> usize {
    tag.len().checked_next_multiple_of(8).unwrap_or(usize::MAX)
}

/// The base type, then all names, then all values.
fn enumeration(
    writer: &mut Writer,
    base: &Datatype,
    members: &[EnumMember],
    depth: usize,
) -> Result<()> {
    datatype(writer, base, depth)?;
    for member in members {
        name(writer, &member.name)?;
    }
    for member in members {
        if member.value.len() as u64 != u64::from(base.size) {
            return Err(bad("bytes of a member's value", member.value.len() as u64));
        }
        writer.put(&member.value);
    }
    Ok(())
}

#[cfg(test)]
mod tests;

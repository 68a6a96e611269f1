//! Decoding of datatypes.
//! Watch: each datatype inside another has a version of its own; versions 1 and 2 fill names up to
//! multiples of 8 bytes, later ones do not; what belongs to a type is known only by decoding it.

use super::{
    ByteOrder, Charset, Class, Compound, Datatype, EnumMember, FixedPoint, FloatingPoint, Member,
    Normalisation, Padding, ReferenceKind,
};
use crate::{HdfError, ReadLimits, Reader, Result};

impl Datatype {
    /// Decodes the message.
    ///
    /// # Errors
    /// Also for types whose parts do not fit into their size, and beyond the limits of nesting and
    /// of members.
    pub fn decode(reader: Reader<'_>, limits: &ReadLimits) -> Result<Datatype> {
        let mut reader = reader.named("datatype message");
        let mut budget = TypeBudget { members: limits.type_members, limits };
        datatype(&mut reader, &mut budget, limits.type_depth)
    }
}

/// What all types of one message may still take.
struct TypeBudget<'a> {
    members: usize,
    limits: &'a ReadLimits,
}

impl TypeBudget<'_> {
    fn spend(&mut self, reader: &Reader<'_>, members: usize) -> Result<()> {
        match self.members.checked_sub(members) {
            Some(left) => {
                self.members = left;
                Ok(())
            }
            None => Err(self.exceeded(reader, "members", self.limits.type_members)),
        }
    }

    fn exceeded(&self, reader: &Reader<'_>, what: &'static str, limit: usize) -> HdfError {
        let (structure, at) = (reader.structure(), reader.at());
        HdfError::Limit { structure, at, what, limit: limit as u64 }
    }
}

/// The fields that all classes begin with.
#[derive(Clone, Copy)]
struct TypeHead {
    version: u8,
    bits: u32,
    size: u32,
}

fn datatype(
    reader: &mut Reader<'_>,
    budget: &mut TypeBudget<'_>,
    depth: usize,
) -> Result<Datatype> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(budget.exceeded(reader, "levels of types", budget.limits.type_depth));
    };
    let at = reader.at();
    let [class, low, middle, high] = reader.array()?;
    let head = TypeHead {
        version: class >> 4,
        bits: u32::from_le_bytes([low, middle, high, 0]),
        size: reader.u32()?,
    };
    let structure = reader.structure();
    if !(1..=5).contains(&head.version) {
        let version = u32::from(head.version);
        return Err(HdfError::BadVersion { structure, at, version, newest: 5 });
    }
    if head.size == 0 {
        return Err(HdfError::BadValue { structure, at, what: "size of a type", value: 0 });
    }
    let class = match class & 0x0f {
        0 => Class::FixedPoint(fixed_point(reader, head)?),
        1 => Class::FloatingPoint(floating_point(reader, head)?),
        2 => {
            let precision = reader.u16()?;
            fits(reader, head, "bits of a time", 0, precision)?;
            Class::Time { order: order(head.bits & 1), precision }
        }
        3 => Class::String {
            padding: padding(reader, head.bits & 15)?,
            charset: charset(reader, head.bits >> 4 & 15)?,
        },
        4 => Class::Bitfield(FixedPoint { signed: false, ..fixed_point(reader, head)? }),
        5 => {
            let tag = reader.take_u64(u64::from(head.bits & 0xff))?;
            let tag = tag.split(|&byte| byte == 0).next().unwrap_or_default();
            Class::Opaque { tag: tag.into() }
        }
        6 => Class::Compound(compound(reader, head, budget, depth)?),
        7 => Class::Reference(reference(reader, head)?),
        8 => enumeration(reader, head, budget, depth)?,
        9 => var_len(reader, head, budget, depth)?,
        10 => array(reader, head, budget, depth)?,
        11 => complex(reader, head, budget, depth)?,
        class => return Err(reader.bad("class of a type", u64::from(class))),
    };
    Ok(Datatype { size: head.size, class })
}

fn order(bit: u32) -> ByteOrder {
    if bit == 0 { ByteOrder::Little } else { ByteOrder::Big }
}

/// `len` bits from bit `at` on must be in the element, and there must be some.
fn fits(reader: &Reader<'_>, head: TypeHead, what: &'static str, at: u16, len: u16) -> Result<()> {
    let end = u64::from(at).saturating_add(u64::from(len));
    if len > 0 && end <= u64::from(head.size).saturating_mul(8) {
        Ok(())
    } else {
        Err(reader.bad(what, end))
    }
}

fn fixed_point(reader: &mut Reader<'_>, head: TypeHead) -> Result<FixedPoint> {
    let (bit_offset, precision) = (reader.u16()?, reader.u16()?);
    fits(reader, head, "last bit of an integer", bit_offset, precision)?;
    Ok(FixedPoint {
        order: order(head.bits & 1),
        signed: head.bits & 8 != 0,
        padding: [head.bits & 2 != 0, head.bits & 4 != 0],
        bit_offset,
        precision,
    })
}

fn floating_point(reader: &mut Reader<'_>, head: TypeHead) -> Result<FloatingPoint> {
    let order = match (head.bits & 1 != 0, head.bits & 0x40 != 0) {
        // Before version 3 the second bit of the order had no meaning.
        (big, true) if head.version >= 3 => {
            if !big || !head.size.is_multiple_of(2) {
                return Err(reader.bad("bits of a number's byte order", u64::from(head.bits)));
            }
            ByteOrder::Vax
        }
        (big, _) => order(u32::from(big)),
    };
    let normalisation = match head.bits >> 4 & 3 {
        0 => Normalisation::None,
        1 => Normalisation::Stored,
        2 => Normalisation::Implied,
        code => return Err(reader.bad("normalisation of a mantissa", u64::from(code))),
    };
    let (bit_offset, precision) = (reader.u16()?, reader.u16()?);
    fits(reader, head, "last bit of a number", bit_offset, precision)?;
    let [exponent_at, exponent_bits, mantissa_at, mantissa_bits] = reader.array()?;
    let bias = reader.u32()?;
    let [_, sign, _, _] = head.bits.to_le_bytes();
    let end = u64::from(bit_offset).saturating_add(u64::from(precision));
    for (at, bits) in [(sign, 1), (exponent_at, exponent_bits), (mantissa_at, mantissa_bits)] {
        let field_end = u64::from(at).saturating_add(u64::from(bits));
        if bits == 0 || field_end > end {
            return Err(reader.bad("last bit of a number's part", field_end));
        }
    }
    Ok(FloatingPoint {
        order,
        bit_offset,
        precision,
        normalisation,
        sign,
        exponent_at,
        exponent_bits,
        mantissa_at,
        mantissa_bits,
        bias,
    })
}

fn padding(reader: &Reader<'_>, code: u32) -> Result<Padding> {
    match code {
        0 => Ok(Padding::NullTerminated),
        1 => Ok(Padding::NullPadded),
        2 => Ok(Padding::SpacePadded),
        _ => Err(reader.bad("padding of text", u64::from(code))),
    }
}

pub(super) fn charset(reader: &Reader<'_>, code: u32) -> Result<Charset> {
    match code {
        0 => Ok(Charset::Ascii),
        1 => Ok(Charset::Utf8),
        _ => Err(reader.bad("character set", u64::from(code))),
    }
}

/// A name, which versions 1 and 2 fill up to a multiple of 8 bytes.
fn name(reader: &mut Reader<'_>, version: u8) -> Result<Box<[u8]>> {
    let name = reader.until_nul()?;
    if version < 3 {
        let over = name.len().saturating_add(1) % 8;
        reader.skip(8usize.saturating_sub(over) % 8)?;
    }
    Ok(name.into())
}

fn compound(
    reader: &mut Reader<'_>,
    head: TypeHead,
    budget: &mut TypeBudget<'_>,
    depth: usize,
) -> Result<Compound> {
    let n_members = u64::from(head.bits & 0xffff);
    if n_members == 0 {
        return Err(reader.bad("number of a compound's members", 0));
    }
    // Name, offset and a type of at least 8 bytes.
    let n_members = reader.count(n_members, if head.version < 3 { 20 } else { 10 })?;
    budget.spend(reader, n_members)?;
    let offset_width = match head.version {
        1 | 2 => 4,
        // As many bytes as the size of the compound needs.
        _ => usize::try_from(head.size.ilog2() / 8).unwrap_or_default().saturating_add(1),
    };
    let mut members = Vec::with_capacity(n_members);
    for _ in 0..n_members {
        let name = name(reader, head.version)?;
        let offset = reader.uint(offset_width)?;
        let dims = if head.version == 1 { old_dims(reader)? } else { Vec::new() };
        let mut member = datatype(reader, budget, depth)?;
        if !dims.is_empty() {
            let size = array_size(reader, &member, &dims)?;
            member = Datatype { size, class: Class::Array { base: Box::new(member), dims } };
        }
        let end = offset.saturating_add(u64::from(member.size));
        let (Ok(offset), true) = (u32::try_from(offset), end <= u64::from(head.size)) else {
            return Err(reader.bad("end of a compound's member", end));
        };
        members.push(Member { name, offset, datatype: member });
    }
    Ok(Compound { members })
}

/// The dimensions of a member of a version 1 compound.
fn old_dims(reader: &mut Reader<'_>) -> Result<Vec<u32>> {
    let n_dims = usize::from(reader.u8()?);
    reader.skip(3)?;
    if n_dims > 4 {
        return Err(reader.bad("number of a member's dimensions", n_dims as u64));
    }
    reader.skip(8)?; // A permutation that was never used, and nothing.
    let mut dims: Vec<u32> = (0..4).map(|_| reader.u32()).collect::<Result<_>>()?;
    dims.truncate(n_dims);
    Ok(dims)
}

/// Bytes of an array, which must fit a datatype's size.
fn array_size(reader: &Reader<'_>, base: &Datatype, dims: &[u32]) -> Result<u32> {
    dims.iter()
        .try_fold(base.size, |product, &dim| product.checked_mul(dim))
        .filter(|&size| size != 0)
        .ok_or_else(|| reader.bad("bytes of an array", u64::MAX))
}

fn reference(reader: &Reader<'_>, head: TypeHead) -> Result<ReferenceKind> {
    // Revised references belong to version 4, but early files have them in version 1.
    let (kind, plain) = match head.bits & 15 {
        0 => (ReferenceKind::Object, Some(0)),
        1 => (ReferenceKind::DatasetRegion, Some(4)),
        2 => (ReferenceKind::Object2, None),
        3 => (ReferenceKind::DatasetRegion2, None),
        4 => (ReferenceKind::Attribute, None),
        code => return Err(reader.bad("kind of reference", u64::from(code))),
    };
    // An address, and for a region the index of an object of the heap there.
    if let Some(more) = plain {
        let size = u32::from(reader.sizes().offset).saturating_add(more);
        if head.size != size {
            return Err(reader.bad("size of a reference", u64::from(head.size)));
        }
    }
    Ok(kind)
}

fn enumeration(
    reader: &mut Reader<'_>,
    head: TypeHead,
    budget: &mut TypeBudget<'_>,
    depth: usize,
) -> Result<Class> {
    let base = datatype(reader, budget, depth)?;
    if !matches!(base.class, Class::FixedPoint(_)) {
        return Err(reader.unsupported("an enumeration of anything but integers"));
    }
    if base.size != head.size {
        return Err(reader.bad("size of an enumeration", u64::from(head.size)));
    }
    let value_len = usize::try_from(base.size).unwrap_or(usize::MAX);
    let n_members = u64::from(head.bits & 0xffff);
    let n_members = reader.count(n_members, value_len.saturating_add(1))?;
    budget.spend(reader, n_members)?;
    let names: Vec<Box<[u8]>> =
        (0..n_members).map(|_| name(reader, head.version)).collect::<Result<_>>()?;
    let mut members = Vec::with_capacity(n_members);
    for name in names {
        members.push(EnumMember { name, value: reader.take(value_len)?.into() });
    }
    Ok(Class::Enum { base: Box::new(base), members })
}

fn var_len(
    reader: &mut Reader<'_>,
    head: TypeHead,
    budget: &mut TypeBudget<'_>,
    depth: usize,
) -> Result<Class> {
    // A length, an address, the index of an object of the heap there.
    if head.size != u32::from(reader.sizes().offset).saturating_add(8) {
        return Err(reader.bad("size of a variable-length type", u64::from(head.size)));
    }
    let base = datatype(reader, budget, depth)?;
    match head.bits & 15 {
        0 => Ok(Class::VarLenSequence { base: Box::new(base) }),
        1 => Ok(Class::VarLenString {
            padding: padding(reader, head.bits >> 4 & 15)?,
            charset: charset(reader, head.bits >> 8 & 15)?,
        }),
        code => Err(reader.bad("kind of variable-length type", u64::from(code))),
    }
}

fn array(
    reader: &mut Reader<'_>,
    head: TypeHead,
    budget: &mut TypeBudget<'_>,
    depth: usize,
) -> Result<Class> {
    let n_dims = usize::from(reader.u8()?);
    if n_dims == 0 || n_dims > budget.limits.rank {
        return Err(reader.bad("number of an array's dimensions", n_dims as u64));
    }
    if head.version < 3 {
        reader.skip(3)?;
    }
    let dims: Vec<u32> = (0..n_dims).map(|_| reader.u32()).collect::<Result<_>>()?;
    if head.version < 3 {
        reader.skip(n_dims.saturating_mul(4))?; // A permutation that was never used.
    }
    let base = datatype(reader, budget, depth)?;
    if array_size(reader, &base, &dims)? != head.size {
        return Err(reader.bad("size of an array", u64::from(head.size)));
    }
    Ok(Class::Array { base: Box::new(base), dims })
}

fn complex(
    reader: &mut Reader<'_>,
    head: TypeHead,
    budget: &mut TypeBudget<'_>,
    depth: usize,
) -> Result<Class> {
    // Bit 0: both parts are of one type. Bits 1 and 2: 0 for real and imaginary part.
    if head.bits & 7 != 1 {
        return Err(reader.unsupported("a complex number in another than rectangular form"));
    }
    let base = datatype(reader, budget, depth)?;
    if !matches!(base.class, Class::FloatingPoint(_)) {
        return Err(reader.unsupported("a complex number of anything but floating-point numbers"));
    }
    if base.size.checked_mul(2) != Some(head.size) {
        return Err(reader.bad("size of a complex number", u64::from(head.size)));
    }
    Ok(Class::Complex { base: Box::new(base) })
}

#[cfg(test)]
mod tests;

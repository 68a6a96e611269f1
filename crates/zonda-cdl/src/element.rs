//! Makes values in memory of constants: native bytes in the layout of C, with strings and sequences
//! beside them.

use zonda_model::memory::NoMemory;
use zonda_model::{ExtType, default_fill};

use crate::constant::{Constant, NumberConstant, PlacedConstant};
use crate::fault::{CdlFault, shown};
use crate::schema::{
    CdlAttribute, CdlField, CdlType, CdlVariable, Primitive, Schema, TypeClass, TypeRef,
};

/// The most bytes of values that are made at once. A short text may ask for large values.
const MOST_BYTES: usize = 1 << 28;

/// Strings and items of sequences. Values contain their numbers, from 1 on; 0 means that there is
/// none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VlenPieces {
    bytes: Vec<u8>,
    /// The end of each one in `bytes`.
    ends: Vec<usize>,
}

/// Values in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elements {
    /// The values. A string is the number of its piece (8 bytes); a sequence is its length (8 bytes)
    /// and the number of the piece with its items.
    pub bytes: Vec<u8>,
    /// The strings and sequences whose numbers are in `bytes`.
    pub pieces: VlenPieces,
}

impl VlenPieces {
    /// The string or the items with this number.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&[u8]> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        let end = *self.ends.get(index)?;
        let begin = index.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before))?;
        self.bytes.get(*begin..end)
    }

    fn add(&mut self, piece: &[u8]) -> u64 {
        self.bytes.extend_from_slice(piece);
        self.ends.push(self.bytes.len());
        self.ends.len() as u64
    }

    /// Bytes of all pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl Elements {
    /// Removes everything but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.pieces.bytes.clear();
        self.pieces.ends.clear();
    }
}

/// Appends a value of a type. The constant `_` means `own_fill`, or else the fill value of the
/// type.
///
/// # Errors
/// A constant that cannot be a value of the type.
pub fn encode(
    schema: &Schema,
    ty: TypeRef,
    item: &PlacedConstant,
    own_fill: Option<&PlacedConstant>,
    out: &mut Elements,
) -> Result<(), CdlFault> {
    let mut bytes = std::mem::take(&mut out.bytes);
    let encoder = ConstantEncoder { schema };
    let item = match (&item.value, own_fill) {
        (Constant::Fill, Some(own)) => own,
        _ => item,
    };
    let done = encoder.value(ty, item, &mut bytes, &mut out.pieces);
    out.bytes = bytes;
    done
}

/// Appends the fill value of a variable.
///
/// # Errors
/// A `_FillValue` that cannot be a value of the type; a type that is too large.
pub fn fill(schema: &Schema, var: &CdlVariable, out: &mut Elements) -> Result<(), CdlFault> {
    let item = PlacedConstant { at: var.at, value: Constant::Fill };
    encode(schema, var.ty, &item, var.fill.as_ref(), out)
}

/// Values of an attribute, and their number. Texts of an attribute of characters are joined; an
/// empty one has one NUL, as in the reference.
///
/// # Errors
/// A constant that cannot be a value of its type.
pub fn attribute(schema: &Schema, att: &CdlAttribute) -> Result<(Elements, usize), CdlFault> {
    let mut out = Elements::default();
    if att.ty == TypeRef::CHAR {
        characters(&att.values, &mut out.bytes)?;
        if out.bytes.is_empty() {
            out.bytes.push(0);
        }
        let len = out.bytes.len();
        return Ok((out, len));
    }
    if att.values.is_empty() {
        let why = "only an attribute of characters can be without values";
        return Err(CdlFault::at(att.at, why));
    }
    for item in &att.values {
        encode(schema, att.ty, item, None, &mut out)?;
    }
    Ok((out, att.values.len()))
}

/// Appends characters and strings one after the other.
pub(crate) fn characters(items: &[PlacedConstant], out: &mut Vec<u8>) -> Result<(), CdlFault> {
    for item in items {
        match &item.value {
            Constant::Number(NumberConstant::Byte(byte)) => out.push(byte.cast_unsigned()),
            Constant::Number(NumberConstant::UByte(byte)) => out.push(*byte),
            Constant::Text(text) => out.extend_from_slice(text),
            Constant::Fill => out.push(0),
            other => {
                let why = format!("expected characters or strings, found {}", other.what());
                return Err(CdlFault::at(item.at, why));
            }
        }
    }
    Ok(())
}

struct ConstantEncoder<'a> {
    schema: &'a Schema,
}

impl ConstantEncoder<'_> {
    fn value(
        &self,
        ty: TypeRef,
        item: &PlacedConstant,
        out: &mut Vec<u8>,
        pieces: &mut VlenPieces,
    ) -> Result<(), CdlFault> {
        match ty {
            TypeRef::Primitive(Primitive::String) => self.string(item, out, pieces),
            TypeRef::Primitive(Primitive::Atomic(ext)) => self.atomic(ext, item, out),
            TypeRef::User(user) => match self.schema.types.get(user) {
                Some(user_type) => self.user(user, user_type, item, out, pieces),
                None => Err(CdlFault::at(item.at, "this type is not known")),
            },
        }
    }

    fn string(
        &self,
        item: &PlacedConstant,
        out: &mut Vec<u8>,
        pieces: &mut VlenPieces,
    ) -> Result<(), CdlFault> {
        let number = match &item.value {
            Constant::Text(text) => pieces.add(text),
            Constant::Fill => pieces.add(b""),
            Constant::Nil => 0,
            Constant::Number(number) => pieces.add(number_text(*number).as_bytes()),
            other => return unexpected(item.at, other, "a string"),
        };
        out.extend_from_slice(&number.to_ne_bytes());
        Ok(())
    }

    fn atomic(
        &self,
        ext: ExtType,
        item: &PlacedConstant,
        out: &mut Vec<u8>,
    ) -> Result<(), CdlFault> {
        let value = match &item.value {
            Constant::Number(number) => convert(*number, ext),
            Constant::Fill => default_fill(ext),
            Constant::Text(text) if ext == ExtType::Char => {
                [text.first().copied().unwrap_or(0), 0, 0, 0, 0, 0, 0, 0]
            }
            Constant::Text(text) => from_text(text, ext),
            Constant::Opaque(digits) => from_digits(digits),
            other => return unexpected(item.at, other, ext.name()),
        };
        out.extend_from_slice(&value[..ext.size()]);
        Ok(())
    }

    fn user(
        &self,
        index: usize,
        ty: &CdlType,
        item: &PlacedConstant,
        out: &mut Vec<u8>,
        pieces: &mut VlenPieces,
    ) -> Result<(), CdlFault> {
        match &ty.class {
            TypeClass::Opaque => opaque(ty.size, item, out),
            TypeClass::Enum { base, members } => {
                let value = match &item.value {
                    Constant::Fill => members.first().map_or([0; 8], |member| member.value),
                    Constant::Member(name) => self.member(index, name, item.at)?,
                    other => return unexpected(item.at, other, "a member of the enum type"),
                };
                out.extend_from_slice(&value[..base.size()]);
                Ok(())
            }
            TypeClass::Vlen { base } => self.vlen(*base, item, out, pieces),
            TypeClass::Compound(fields) => self.compound(ty, fields, item, out, pieces),
        }
    }

    /// The value of an enum member, which is written `Member` or `type.Member`. A name alone is
    /// looked up in the expected type.
    fn member(&self, ty: usize, name: &[u8], at: u64) -> Result<[u8; 8], CdlFault> {
        let Some(CdlType { class: TypeClass::Enum { members, .. }, name: type_name, .. }) =
            self.schema.types.get(ty)
        else {
            return Err(CdlFault::at(at, "this type has no members"));
        };
        let find = |name: &[u8]| members.iter().find(|member| member.name == name);
        // The type may be given by a path.
        let last = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
        let behind = last.strip_prefix(&type_name[..]).and_then(|rest| rest.strip_prefix(b"."));
        let found = find(last).or_else(|| behind.and_then(find));
        found.map(|member| member.value).ok_or_else(|| {
            let why = format!("'{}' is no member of the type {}", shown(name), shown(type_name));
            CdlFault::at(at, why).over(name.len())
        })
    }

    fn vlen(
        &self,
        base: TypeRef,
        item: &PlacedConstant,
        out: &mut Vec<u8>,
        pieces: &mut VlenPieces,
    ) -> Result<(), CdlFault> {
        let one = [PlacedConstant { at: item.at, value: Constant::Fill }];
        let items: &[PlacedConstant] = match &item.value {
            Constant::List(items) => items,
            // As in the reference, a constant without braces is a sequence of one value.
            Constant::Fill => &one,
            // A string is a sequence of characters.
            Constant::Text(_) if base == TypeRef::CHAR => std::slice::from_ref(item),
            other => return unexpected(item.at, other, "a sequence in {...}"),
        };
        let mut bytes = Vec::new();
        if base == TypeRef::CHAR {
            characters(items, &mut bytes)?;
        } else {
            for item in items {
                self.value(base, item, &mut bytes, pieces)?;
            }
        }
        let size = self.schema.size_of(base).max(1);
        let number = if bytes.is_empty() { 0 } else { pieces.add(&bytes) };
        out.extend_from_slice(&((bytes.len() / size) as u64).to_ne_bytes());
        out.extend_from_slice(&number.to_ne_bytes());
        Ok(())
    }

    fn compound(
        &self,
        ty: &CdlType,
        fields: &[CdlField],
        item: &PlacedConstant,
        out: &mut Vec<u8>,
        pieces: &mut VlenPieces,
    ) -> Result<(), CdlFault> {
        let items: &[PlacedConstant] = match &item.value {
            Constant::List(items) => items,
            Constant::Fill => &[],
            other => return unexpected(item.at, other, "a compound value in {...}"),
        };
        if let Some(extra) = items.get(fields.len()) {
            let why = format!("the type {} has {} fields only", shown(&ty.name), fields.len());
            return Err(CdlFault::at(extra.at, why));
        }
        room(item.at, out, ty.size)?;
        let begin = out.len();
        for (index, field) in fields.iter().enumerate() {
            out.resize(begin + field.offset, 0);
            let missing = PlacedConstant { at: item.at, value: Constant::Fill };
            self.field(field, items.get(index).unwrap_or(&missing), out, pieces)?;
        }
        out.resize(begin + ty.size, 0);
        Ok(())
    }

    fn field(
        &self,
        field: &CdlField,
        item: &PlacedConstant,
        out: &mut Vec<u8>,
        pieces: &mut VlenPieces,
    ) -> Result<(), CdlFault> {
        if field.dims.is_empty() {
            return self.value(field.ty, item, out, pieces);
        }
        let n_values = field.dims.iter().try_fold(1usize, |n, dim| n.checked_mul(*dim));
        let size = self.schema.size_of(field.ty);
        let n_bytes = n_values.and_then(|n| n.checked_mul(size));
        let (Some(n_values), Some(n_bytes)) = (n_values, n_bytes) else {
            return Err(CdlFault::at(
                item.at,
                format!("field {} is too large", shown(&field.name)),
            ));
        };
        let items: &[PlacedConstant] = match &item.value {
            Constant::List(items) => items,
            Constant::Fill => &[],
            Constant::Text(_) if field.ty == TypeRef::CHAR => std::slice::from_ref(item),
            other => return unexpected(item.at, other, "values of the field in {...}"),
        };
        if field.ty == TypeRef::CHAR {
            let row = field.dims.last().copied().unwrap_or(1);
            let unit = if field.dims.len() > 1 { row } else { 1 };
            let begin = out.len();
            for item in items {
                characters(std::slice::from_ref(item), out)?;
                let len = out.len() - begin;
                // Values after the last row are cut off at the end.
                let rows = len.checked_next_multiple_of(unit).unwrap_or(n_bytes);
                out.resize(begin + rows.min(n_bytes), 0);
            }
            out.resize(begin + n_bytes, 0);
            return Ok(());
        }
        if let Some(extra) = items.get(n_values) {
            let why = format!("field {} has {n_values} values only", shown(&field.name));
            return Err(CdlFault::at(extra.at, why));
        }
        let missing = PlacedConstant { at: item.at, value: Constant::Fill };
        for index in 0..n_values {
            self.value(field.ty, items.get(index).unwrap_or(&missing), out, pieces)?;
        }
        Ok(())
    }
}

fn unexpected(at: u64, found: &Constant, expected: &str) -> Result<(), CdlFault> {
    Err(CdlFault::at(at, format!("expected {expected}, found {}", found.what())))
}

/// Reserves memory for `more` bytes.
fn room(at: u64, out: &mut Vec<u8>, more: usize) -> Result<(), CdlFault> {
    let Some(sum) = out.len().checked_add(more).filter(|sum| *sum <= MOST_BYTES) else {
        return Err(CdlFault::at(at, "these values have too many bytes"));
    };
    // Reserves more than that if there is memory, because values come one by one.
    out.try_reserve(more).map_err(|_| CdlFault::at(at, NoMemory::of::<u8>(sum).to_string()))
}

/// Appends an opaque value. Missing bytes are zero, and surplus ones are left out.
fn opaque(size: usize, item: &PlacedConstant, out: &mut Vec<u8>) -> Result<(), CdlFault> {
    let digits: &[u8] = match &item.value {
        Constant::Opaque(digits) => digits,
        Constant::Fill => b"",
        other => return unexpected(item.at, other, "an opaque constant such as 0x1a2b"),
    };
    room(item.at, out, size)?;
    let end = out.len() + size;
    out.extend(digits.as_chunks::<2>().0.iter().take(size).map(|pair| byte_of(*pair)));
    out.resize(end, 0);
    Ok(())
}

fn byte_of(digits: [u8; 2]) -> u8 {
    let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or(0) as u8;
    value(digits[0]) << 4 | value(digits[1])
}

/// An opaque constant as a number: its bytes in memory, read as on a little-endian machine.
fn from_digits(digits: &[u8]) -> [u8; 8] {
    let mut value = [0; 8];
    for (to, pair) in value.iter_mut().zip(digits.as_chunks::<2>().0) {
        *to = byte_of(*pair);
    }
    if cfg!(target_endian = "big") {
        value.reverse();
    }
    value
}

fn put<const N: usize>(bytes: [u8; N]) -> [u8; 8] {
    let mut value = [0; 8];
    value[..N].copy_from_slice(&bytes);
    value
}

/// Converts a floating-point number to an integer of at most 32 bits as C does on x86: the integer
/// part if it fits an int, else the lowest int. Narrower types take the lower bits of it.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn int_of(value: f64) -> i64 {
    let cut = value.trunc();
    if cut >= f64::from(i32::MIN) && cut <= f64::from(i32::MAX) {
        cut as i64
    } else {
        i32::MIN.into()
    }
}

/// The same for 64 bits.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn int64_of(value: f64) -> i64 {
    let cut = value.trunc();
    let end = 9_223_372_036_854_775_808.0;
    if cut >= -end && cut < end { cut as i64 } else { i64::MIN }
}

/// The same for 64 bits without a sign.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn uint64_of(value: f64) -> u64 {
    if value >= 9_223_372_036_854_775_808.0 {
        value as u64
    } else {
        int64_of(value).cast_unsigned()
    }
}

/// Converts a number to the native bytes of a type as C does: numbers that do not fit lose their
/// upper bits.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
#[must_use]
pub(crate) fn convert(number: NumberConstant, ext: ExtType) -> [u8; 8] {
    let double = match number {
        NumberConstant::Float(value) => Some(f64::from(value)),
        NumberConstant::Double(value) => Some(value),
        _ => None,
    };
    let int = number.integer().unwrap_or(0);
    // The lower bits of what C makes of the number.
    let bits32 = double.map_or(int as i64, int_of);
    match ext {
        ExtType::Byte | ExtType::Char | ExtType::UByte => put([bits32 as u8]),
        ExtType::Short | ExtType::UShort => put((bits32 as u16).to_ne_bytes()),
        ExtType::Int => put((bits32 as i32).to_ne_bytes()),
        ExtType::UInt => put((double.map_or(int as i64, int64_of) as u32).to_ne_bytes()),
        ExtType::Int64 => put(double.map_or(int as i64, int64_of).to_ne_bytes()),
        ExtType::UInt64 => put(double.map_or(int as u64, uint64_of).to_ne_bytes()),
        ExtType::Float => put(match number {
            NumberConstant::Float(value) => value.to_ne_bytes(),
            _ => double.map_or(int as f32, |value| value as f32).to_ne_bytes(),
        }),
        ExtType::Double => put(double.unwrap_or(int as f64).to_ne_bytes()),
    }
}

/// The number at the beginning of a text; 0 if there is none.
fn from_text(text: &[u8], ext: ExtType) -> [u8; 8] {
    let text = text.trim_ascii_start();
    let is_float = matches!(ext, ExtType::Float | ExtType::Double);
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let mut len = sign + digits(sign);
    if is_float && text.get(len) == Some(&b'.') {
        len += 1 + digits(len + 1);
    }
    if is_float && matches!(text.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits((len + 1 + sign).min(text.len()));
        len += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    let text = std::str::from_utf8(&text[..len]).unwrap_or_default();
    let number = match is_float {
        true => NumberConstant::Double(text.parse().unwrap_or(0.0)),
        false => match text.parse::<i64>() {
            Ok(value) => NumberConstant::Int64(value),
            Err(_) => NumberConstant::UInt64(text.parse().unwrap_or(0)),
        },
    };
    convert(number, ext)
}

/// The text of a number: all digits of integers, eight significant digits of others, as `%.8g` in
/// C.
fn number_text(number: NumberConstant) -> String {
    match number {
        NumberConstant::Float(value) => general(f64::from(value), 8),
        NumberConstant::Double(value) => general(value, 8),
        other => other.integer().unwrap_or(0).to_string(),
    }
}

/// A number with so many significant digits, as `%.Ng` of C writes it.
#[must_use]
pub fn general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    let places = i32::try_from(digits).unwrap_or(i32::MAX) - 1 - exponent;
    if exponent < -4 || places < 0 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.unsigned_abs());
    }
    trim(&format!("{value:.*}", usize::try_from(places).unwrap_or(0)))
}

#[cfg(test)]
mod tests;

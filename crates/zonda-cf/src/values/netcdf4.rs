//! netCDF4-python's reading: [`Profile::NetCdf4Python`](super::Profile::NetCdf4Python).
//!
//! Its rules are those of NumPy: an attribute counts if a cast to the stored type keeps its values (compared in the type
//! that both are promoted to), and a product has the type that NumPy promotes its factors to. Which elements are masked
//! and what type values have follows from that, and is said here; NumPy does the arithmetic.

use zonda_model::{ExtType, default_fill};

use super::number::{CfNumber, holds, is_integer, is_real, is_signed, other_sign};
use super::reading::AttributeReader;
use super::{AttributeValue, Factor, FillRule, Range, Scaling, Unused, ValueRules};

/// What besides attributes decides in a session of netCDF4-python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetCdf4 {
    /// Values are scaled (`set_auto_scale`). Without it `_Unsigned` does not count either.
    pub scales: bool,
    /// Elements that nobody writes are filled; where they are not, the default fill value of bytes does not count.
    pub is_filled: bool,
    /// Of the NumPy that does the arithmetic.
    pub promotion: Promotion,
}

/// How NumPy finds the type of an array of numbers and one number more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promotion {
    /// By the two types: NumPy 2.
    ByType,
    /// By the array's type and the least type that holds the number: NumPy 1.
    ByValue,
}

const SAFELY: &str = "safely cast to the type of the variable";

pub(super) fn rules<E>(
    ty: ExtType,
    session: NetCdf4,
    attribute: impl FnMut(&'static str) -> Result<AttributeValue, E>,
) -> Result<ValueRules, E> {
    let mut reading = AttributeReader::new(attribute);
    let mut left = Vec::new();
    let taken_as = match (reading.attribute)("_Unsigned")? {
        AttributeValue::Text(text) if session.scales && is_signed(ty) && is_true(&text) => {
            other_sign(ty)
        }
        _ => ty,
    };
    let as_taken = |numbers: Vec<CfNumber>| -> Vec<CfNumber> {
        let wrapped =
            |number: CfNumber| if taken_as == ty { number } else { number.wrapped(taken_as) };
        numbers.into_iter().map(wrapped).collect()
    };

    let missing = kept(ty, "missing_value", &mut reading, &mut left)?;
    let given = kept(ty, "_FillValue", &mut reading, &mut left)?;
    let range = kept(ty, "valid_range", &mut reading, &mut left)?;
    let mut least = kept(ty, "valid_min", &mut reading, &mut left)?;
    let mut most = kept(ty, "valid_max", &mut reading, &mut left)?;
    if let Some(&[low, high]) = range.as_deref() {
        (least, most) = (Some(vec![low]), Some(vec![high]));
    }
    if ty == ExtType::Char {
        // Characters have no order.
        (least, most) = (None, None);
    }
    let bound = |bound: Option<Vec<CfNumber>>| as_taken(bound.unwrap_or_default());

    let fill = match given {
        Some(numbers) => {
            FillRule { ty: taken_as, numbers: as_taken(numbers), is_default: false, counts: true }
        }
        None => default(ty, taken_as, session.is_filled),
    };
    let scaling = scaling(taken_as, session, &mut reading, &mut left)?;
    Ok(ValueRules {
        taken_as,
        missing: as_taken(missing.unwrap_or_default()),
        fill: Some(fill),
        stored_range: Range { least: bound(least), most: bound(most) },
        scaling,
        unused: reading.unused,
        left,
        ..ValueRules::none(ty)
    })
}

/// Text as Python has it: without nulls.
fn is_true(text: &[u8]) -> bool {
    let said = || text.iter().filter(|byte| **byte != 0);
    said().eq(b"true") || said().eq(b"True")
}

/// The default fill value stays a number of the stored type. Of numbers that are meant unsigned it masks nothing, since
/// NumPy compares it by its value; bytes have none where nothing is filled.
fn default(ty: ExtType, taken_as: ExtType, is_filled: bool) -> FillRule {
    let number = match ty {
        ExtType::Char => CfNumber::Int(0),
        _ => CfNumber::native(ty, &default_fill(ty)).unwrap_or(CfNumber::Int(0)),
    };
    let is_byte = matches!(ty, ExtType::Byte | ExtType::UByte);
    let counts = taken_as == ty && (is_filled || !is_byte);
    FillRule { ty, numbers: vec![number], is_default: true, counts }
}

/// The numbers of an attribute in the stored type, if they keep their values there.
fn kept<A, E>(
    ty: ExtType,
    attribute: &'static str,
    reading: &mut AttributeReader<A>,
    left: &mut Vec<&'static str>,
) -> Result<Option<Vec<CfNumber>>, E>
where
    A: FnMut(&'static str) -> Result<AttributeValue, E>,
{
    let numbers = match (reading.attribute)(attribute)? {
        AttributeValue::Absent => return Ok(None),
        AttributeValue::Numbers(from, numbers) => {
            numbers.into_iter().map(|number| cast(ty, from, number)).collect()
        }
        // Python has bytes here and `str` elsewhere, which equals no character. NumPy drops nulls at the end.
        AttributeValue::Text(text) if ty == ExtType::Char && attribute == "_FillValue" => {
            match without_nulls_behind(&text) {
                [] => Some(vec![CfNumber::Int(0)]),
                [one] => Some(vec![CfNumber::Int((*one).into())]),
                _ => None,
            }
        }
        AttributeValue::Text(_) | AttributeValue::Other => {
            // A cast of text, or of structures, may be an error; if it is none, values are others.
            left.push(attribute);
            None
        }
    };
    if numbers.is_none() {
        reading.unused.push(Unused { attribute, wanted: SAFELY });
    }
    Ok(numbers)
}

fn without_nulls_behind(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &text[..end]
}

/// A number of an attribute of type `from` in the stored type, if NumPy finds the two equal.
fn cast(ty: ExtType, from: ExtType, number: CfNumber) -> Option<CfNumber> {
    match (ty, number) {
        (ExtType::Char, _) => None,
        (ExtType::Double, number) => Some(CfNumber::Real(number.to_f64())),
        (ExtType::Float, CfNumber::Real(real)) => {
            let single = f64::from(real as f32);
            (single == real || real.is_nan()).then_some(CfNumber::Real(single))
        }
        (ExtType::Float, CfNumber::Int(integer)) => {
            let single = f64::from(integer as f32);
            // Floats and integers of more than two bytes are compared as doubles.
            (from.size() <= 2 || single == integer as f64).then_some(CfNumber::Real(single))
        }
        (_, CfNumber::Int(integer)) => holds(ty, integer).then_some(number),
        (_, CfNumber::Real(real)) => {
            let is_whole = real.fract() == 0.0 && real.abs() < 2e19;
            (is_whole && holds(ty, real as i128)).then_some(CfNumber::Int(real as i128))
        }
    }
}

fn scaling<A, E>(
    ty: ExtType,
    session: NetCdf4,
    reading: &mut AttributeReader<A>,
    left: &mut Vec<&'static str>,
) -> Result<Scaling, E>
where
    A: FnMut(&'static str) -> Result<AttributeValue, E>,
{
    let mut is_used = true;
    let mut factor = |attribute: &'static str| -> Result<Option<Factor>, E> {
        Ok(match (reading.attribute)(attribute)? {
            AttributeValue::Absent => None,
            AttributeValue::Numbers(ty, numbers) if numbers.len() == 1 => {
                numbers.first().map(|number| Factor { ty, number: *number })
            }
            // Python's `float` takes text, too, but NumPy multiplies nothing by it.
            AttributeValue::Text(_) => {
                left.push(attribute);
                is_used = false;
                None
            }
            _ => {
                reading.unused.push(Unused { attribute, wanted: "one number" });
                is_used = false;
                None
            }
        })
    };
    let (factor, offset) = (factor("scale_factor")?, factor("add_offset")?);
    let as_it_is = Scaling { factor: None, offset: None, product: ty, result: ty };
    let is = |factor: Option<Factor>, wanted: f64| {
        factor.is_some_and(|factor| factor.number.to_f64() == wanted)
    };
    if !is_used {
        return Ok(as_it_is);
    }
    let (factor, offset) = match (factor, offset) {
        // Nothing changes but the type.
        (Some(by), Some(_)) if is(factor, 1.0) && is(offset, 0.0) => {
            return Ok(Scaling { product: by.ty, result: by.ty, ..as_it_is });
        }
        (Some(_), Some(_)) => (factor, offset),
        (factor, offset) => {
            (factor.filter(|_| !is(factor, 1.0)), offset.filter(|_| !is(offset, 0.0)))
        }
    };
    let with = |ty, factor: Option<Factor>| {
        factor.map_or(ty, |factor| session.promotion.of_array_and(ty, factor))
    };
    let product = with(ty, factor);
    Ok(Scaling { factor, offset, product, result: with(product, offset) })
}

impl Promotion {
    /// The type of an array of numbers combined with one number more.
    fn of_array_and(self, array: ExtType, factor: Factor) -> ExtType {
        let is_wider = is_real(factor.ty) && !is_real(array);
        if self == Promotion::ByType || is_wider {
            return promoted(array, factor.ty);
        }
        match factor.number {
            CfNumber::Real(number) => {
                let is_single = !number.is_finite() || number.abs() < 3.4e38;
                promoted(array, if is_single { ExtType::Float } else { ExtType::Double })
            }
            CfNumber::Int(number) => promoted(array, least_type(number, is_signed(array))),
        }
    }
}

/// The least type of integers that holds a number, preferably an unsigned one; a signed one of the same size where that
/// holds it, too, and is `wanted_signed`.
fn least_type(number: i128, wanted_signed: bool) -> ExtType {
    let unsigned = [ExtType::UByte, ExtType::UShort, ExtType::UInt, ExtType::UInt64];
    let signed = || unsigned.map(other_sign).into_iter().find(|ty| holds(*ty, number));
    match unsigned.into_iter().find(|ty| holds(*ty, number)) {
        Some(ty) if wanted_signed && holds(other_sign(ty), number) => other_sign(ty),
        Some(ty) => ty,
        None => signed().unwrap_or(ExtType::Int64),
    }
}

/// The least type that holds all numbers of two.
fn promoted(a: ExtType, b: ExtType) -> ExtType {
    if a == b {
        return a;
    }
    if is_real(a) || is_real(b) {
        let fits_single = |ty: ExtType| ty == ExtType::Float || (is_integer(ty) && ty.size() <= 2);
        return if fits_single(a) && fits_single(b) { ExtType::Float } else { ExtType::Double };
    }
    if is_signed(a) == is_signed(b) {
        return if a.size() < b.size() { b } else { a };
    }
    let (signed, unsigned) = if is_signed(a) { (a, b) } else { (b, a) };
    match (signed.size() > unsigned.size(), unsigned) {
        (true, _) => signed,
        (false, ExtType::UByte) => ExtType::Short,
        (false, ExtType::UShort) => ExtType::Int,
        (false, ExtType::UInt) => ExtType::Int64,
        (false, _) => ExtType::Double,
    }
}

//! The reading of the NetCDF Users Guide and of CF: [`Profile::View`](super::Profile::View).

use zonda_model::{ExtType, default_fill};

use super::number::{CfNumber, is_integer, is_signed, modulus, other_sign};
use super::reading::AttributeReader;
use super::{AttributeValue, Factor, FillRule, Range, Scaling, Unused, ValueRules};

pub(super) fn rules<E>(
    ty: ExtType,
    mut attribute: impl FnMut(&'static str) -> Result<AttributeValue, E>,
) -> Result<ValueRules, E> {
    let mut reading = AttributeReader::new(|name| {
        let found = attribute(name)?;
        Ok(match &found {
            AttributeValue::Text(text) if name != "_Unsigned" => {
                numbers_in(ty, text).unwrap_or(found)
            }
            _ => found,
        })
    });
    let taken_as = taken_as(ty, &mut reading)?;
    let as_stored = |number| as_stored(ty, taken_as, number);

    let given = reading.one("_FillValue")?.map(|fill| as_stored(fill.number));
    // A byte may have any of its values.
    let by_default = || {
        Some(ty).filter(|ty| ty.size() > 1).and_then(|ty| {
            CfNumber::native(ty, &default_fill(ty)).map(|number| wrapped(taken_as, number))
        })
    };
    let fill = given.or_else(by_default).map(|number| FillRule {
        ty: taken_as,
        numbers: vec![number],
        is_default: given.is_none(),
        counts: true,
    });
    let missing = reading.numbers("missing_value", "a number or a list of numbers", |n| n > 0)?;
    let missing = missing.map_or(Vec::new(), |(_, numbers)| numbers);

    let (factor, offset) = (reading.one("scale_factor")?, reading.one("add_offset")?);
    let packing =
        [factor, offset].into_iter().flatten().map(|factor| factor.ty).max_by_key(|ty| width(*ty));
    // CF 8.1 has 32-bit integers packed from doubles only, since floats cannot hold them.
    let is_single = packing == Some(ExtType::Float) && (ty.size() < 4 || ty == ExtType::Float);

    let (least, most) = bounds(&mut reading)?;
    // A bound of the type of scale and offset is one of values, if that type is wider than the stored one.
    let is_of_values =
        |bound: &Factor| packing.is_some_and(|to| to == bound.ty && width(to) > width(ty));
    let stored = |bound: Option<Factor>| {
        let bound = bound.filter(|bound| !is_of_values(bound));
        bound.map(|bound| as_stored(bound.number)).into_iter().collect()
    };
    let of_values = |bound: Option<Factor>| {
        bound.filter(is_of_values).map(|bound| bound.number).into_iter().collect()
    };
    Ok(ValueRules {
        taken_as,
        missing: missing.into_iter().map(as_stored).collect(),
        fill,
        stored_range: Range { least: stored(least), most: stored(most) },
        value_range: Range { least: of_values(least), most: of_values(most) },
        scaling: Scaling {
            factor,
            offset,
            product: ExtType::Double,
            result: if is_single { ExtType::Float } else { ExtType::Double },
        },
        unused: reading.unused,
        ..ValueRules::none(ty)
    })
}

/// Numbers that somebody wrote as text, such as "0.005" or "0, 100"; `None` where there is anything else in it. Old files have such attributes, and
/// what they mean is in no doubt. Whole numbers have the variable's type.
fn numbers_in(ty: ExtType, text: &[u8]) -> Option<AttributeValue> {
    let text = std::str::from_utf8(text).ok()?.trim_matches(['\0', ' ']);
    let mut is_whole = true;
    let mut number = |word: &str| {
        if let Ok(number) = word.parse() {
            return Some(CfNumber::Int(number));
        }
        is_whole = false;
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        word.parse().ok().filter(|n: &f64| is_number && n.is_finite()).map(CfNumber::Real)
    };
    let words = text.split([',', ' ']).filter(|word| !word.is_empty());
    let numbers: Vec<CfNumber> = words.map(&mut number).collect::<Option<_>>()?;
    let ty = if is_whole { ty } else { ExtType::Double };
    (!numbers.is_empty()).then_some(AttributeValue::Numbers(ty, numbers))
}

/// The least and the greatest valid number, each with the type of its attribute.
fn bounds<A, E>(reading: &mut AttributeReader<A>) -> Result<(Option<Factor>, Option<Factor>), E>
where
    A: FnMut(&'static str) -> Result<AttributeValue, E>,
{
    let range = reading.numbers("valid_range", "two numbers", |n| n == 2)?;
    Ok(match range.as_ref().map(|(ty, numbers)| (*ty, &numbers[..])) {
        Some((ty, &[least, most])) => {
            (Some(Factor { ty, number: least }), Some(Factor { ty, number: most }))
        }
        _ => (reading.one("valid_min")?, reading.one("valid_max")?),
    })
}

/// Which of two types holds the wider range of numbers, by the Guide's order.
fn width(ty: ExtType) -> u8 {
    match ty {
        ExtType::Char | ExtType::Byte | ExtType::UByte => 1,
        ExtType::Short | ExtType::UShort => 2,
        ExtType::Int | ExtType::UInt => 3,
        ExtType::Int64 | ExtType::UInt64 => 4,
        ExtType::Float => 5,
        ExtType::Double => 6,
    }
}

/// Signed integers stand for unsigned ones where `_Unsigned` says "true", unsigned ones for signed ones where it says "false".
fn taken_as<A, E>(ty: ExtType, reading: &mut AttributeReader<A>) -> Result<ExtType, E>
where
    A: FnMut(&'static str) -> Result<AttributeValue, E>,
{
    let said = match (reading.attribute)("_Unsigned")? {
        AttributeValue::Absent => return Ok(ty),
        AttributeValue::Text(text) => {
            let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
            text.trim_ascii().to_ascii_lowercase()
        }
        _ => Vec::new(),
    };
    Ok(match &said[..] {
        b"true" if is_signed(ty) => other_sign(ty),
        b"false" if is_integer(ty) && !is_signed(ty) => other_sign(ty),
        b"true" | b"false" => ty,
        _ => {
            reading.unused.push(Unused { attribute: "_Unsigned", wanted: "\"true\" or \"false\"" });
            ty
        }
    })
}

/// The same bits in the type that they are taken for.
fn wrapped(taken_as: ExtType, number: CfNumber) -> CfNumber {
    if is_integer(taken_as) { number.wrapped(taken_as) } else { number }
}

/// Integers of this many bits and more are not exact as doubles; no type of netCDF has as many.
const EXACT: f64 = (1u128 << 100) as f64;

/// A number of an attribute, in whichever type, as one that is compared with stored ones.
fn as_stored(ty: ExtType, taken_as: ExtType, number: CfNumber) -> CfNumber {
    if ty == ExtType::Float {
        // What was written as a double, such as 1e20, is another number as a float.
        return CfNumber::Real(f64::from(number.to_f64() as f32));
    }
    if ty == ExtType::Double {
        return CfNumber::Real(number.to_f64());
    }
    let integer = match number {
        CfNumber::Int(number) => number,
        CfNumber::Real(real) if real.fract() == 0.0 && real.abs() < EXACT => real as i128,
        CfNumber::Real(_) => return number,
    };
    // Of the other sign where it says the bits, and as it is where it says the number that they stand for.
    let half = modulus(ty) / 2;
    let by_bits = if is_signed(ty) { -half..0 } else { half..modulus(ty) };
    CfNumber::Int(match taken_as != ty && by_bits.contains(&integer) {
        true if is_signed(ty) => integer + modulus(ty),
        true => integer - modulus(ty),
        false => integer,
    })
}

//! xarray's reading: [`Profile::Xarray`](super::Profile::Xarray).
//!
//! Elements are converted to the type of the result, compared with one fill value and replaced by NaN, multiplied, added
//! to. Valid ranges do not count, nor does a default fill value.

use zonda_model::ExtType;

use super::number::is_real;
use super::reading::AttributeReader;
use super::{AttributeValue, Factor, FillRule, Scaling, ValueRules};

pub(super) fn rules<E>(
    ty: ExtType,
    attribute: impl FnMut(&'static str) -> Result<AttributeValue, E>,
) -> Result<ValueRules, E> {
    let mut reading = AttributeReader::new(attribute);
    let mut left = Vec::new();
    if (reading.attribute)("_Unsigned")? != AttributeValue::Absent {
        left.push("_Unsigned");
    }
    let mut fill: Option<Factor> = None;
    let mut has_fill = false;
    for name in ["missing_value", "_FillValue"] {
        let Some(found) = reading.one(name)? else { continue };
        has_fill = true;
        let is_nan = found.number.to_f64().is_nan();
        match fill {
            // Values that are NaN are missing already.
            _ if is_nan && is_real(ty) => {}
            _ if is_nan => left.push(name),
            None => fill = Some(found),
            Some(other) if other.number.equals(found.number) => {}
            Some(_) => left.push(name),
        }
    }
    let (factor, offset) = (reading.one("scale_factor")?, reading.one("add_offset")?);
    let is_packed = factor.is_some() || offset.is_some();
    let mut result = ty;
    if fill.is_some() {
        result = with_nan(ty);
    }
    if is_packed && (fill.is_some() || !has_fill) {
        result = unpacked(ty, factor, offset);
    }
    if (fill.is_some() || is_packed) && !is_real(result) {
        left.push(if factor.is_some() { "scale_factor" } else { "add_offset" });
    }
    left.extend(reading.unused.iter().map(|unused| unused.attribute));
    Ok(ValueRules {
        fill: fill.map(|fill| FillRule {
            ty: fill.ty,
            numbers: vec![fill.number],
            is_default: false,
            counts: true,
        }),
        scaling: Scaling { factor, offset, product: result, result },
        unused: reading.unused,
        left,
        ..ValueRules::none(ty)
    })
}

/// A type that holds the numbers of one, and NaN (`dtypes.maybe_promote`).
fn with_nan(ty: ExtType) -> ExtType {
    match ty {
        ExtType::Float | ExtType::Double => ty,
        _ if ty.size() <= 2 => ExtType::Float,
        _ => ExtType::Double,
    }
}

/// The type of unpacked numbers (`_choose_float_dtype`).
fn unpacked(ty: ExtType, factor: Option<Factor>, offset: Option<Factor>) -> ExtType {
    match (factor, offset) {
        (Some(factor), Some(offset)) if factor.ty == offset.ty && is_real(factor.ty) => {
            // Floats do not hold integers of four bytes; xarray does not ask about eight.
            if ty.size() == 4 && !is_real(ty) { ExtType::Double } else { factor.ty }
        }
        // A large offset would cost precision.
        (_, Some(_)) => ExtType::Double,
        (Some(factor), None) => factor.ty,
        (None, None) => with_nan(ty),
    }
}

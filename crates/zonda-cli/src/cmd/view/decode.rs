//! From stored numbers to values, as the CF conventions say: what is missing, scale and offset.

use zonda::{Dataset, ExtType, MemType, VarRef, default_fill};

use crate::failure::Result;
use crate::placed;

/// How the numbers of a variable become values.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Decoding {
    /// Numbers that stand for no value.
    missing: Vec<f64>,
    /// Numbers below and above stand for no value.
    least: Option<f64>,
    most: Option<f64>,
    scale: Option<f64>,
    offset: Option<f64>,
}

impl Decoding {
    /// What the attributes of a variable say; those of another type than a number say nothing.
    pub(super) fn of(file: &Dataset, id: VarRef, ty: ExtType) -> Result<Decoding> {
        let numbers = |name: &str| numbers(file, id, name);
        let one = |name: &str| Ok::<_, crate::failure::Failure>(numbers(name)?.first().copied());
        let mut missing = numbers("missing_value")?;
        match one("_FillValue")? {
            Some(fill) => missing.push(fill),
            // A byte may have any of its values.
            None if !matches!(ty, ExtType::Byte | ExtType::UByte) => missing.extend(default_of(ty)),
            None => {}
        }
        if ty == ExtType::Float {
            // What was written as a double, such as 1e20, is another number as a float.
            let rounded: Vec<f64> = missing.iter().map(|m| f64::from(*m as f32)).collect();
            missing.extend(rounded);
        }
        let (mut least, mut most) = (one("valid_min")?, one("valid_max")?);
        if let [low, high] = numbers("valid_range")?[..] {
            (least, most) = (Some(low), Some(high));
        }
        let (scale, offset) = (one("scale_factor")?, one("add_offset")?);
        Ok(Decoding { missing, least, most, scale, offset })
    }

    /// The value of a number; NaN where there is none.
    pub(super) fn value(&self, number: f64) -> f64 {
        if self.missing.contains(&number)
            || self.least.is_some_and(|least| number < least)
            || self.most.is_some_and(|most| number > most)
        {
            return f64::NAN;
        }
        // Not multiplied or added where nothing is said, so that values stay as they are.
        let scaled = self.scale.map_or(number, |scale| number * scale);
        self.offset.map_or(scaled, |offset| scaled + offset)
    }
}

/// The default fill value of a type as a number.
fn default_of(ty: ExtType) -> Option<f64> {
    let bytes = default_fill(ty);
    let [a, b, c, d, ..] = bytes;
    Some(match ty {
        ExtType::Char => return None,
        ExtType::Byte => f64::from(i8::from_ne_bytes([a])),
        ExtType::UByte => f64::from(a),
        ExtType::Short => f64::from(i16::from_ne_bytes([a, b])),
        ExtType::UShort => f64::from(u16::from_ne_bytes([a, b])),
        ExtType::Int => f64::from(i32::from_ne_bytes([a, b, c, d])),
        ExtType::UInt => f64::from(u32::from_ne_bytes([a, b, c, d])),
        ExtType::Float => f64::from(f32::from_ne_bytes([a, b, c, d])),
        ExtType::Double => f64::from_ne_bytes(bytes),
        // As the values are converted, too.
        ExtType::Int64 => i64::from_ne_bytes(bytes) as f64,
        ExtType::UInt64 => u64::from_ne_bytes(bytes) as f64,
    })
}

/// The numbers of an attribute; none if there is no such attribute, or it is a text.
fn numbers(file: &Dataset, id: VarRef, name: &str) -> Result<Vec<f64>> {
    let is_number = file.in_group(id.group, |meta| {
        let att = meta.find_att(id.var, name.as_bytes());
        att.is_ok_and(|(_, att)| att.ty().is_some_and(|ty| ty != ExtType::Char))
    })?;
    let mut bytes = Vec::new();
    if is_number {
        // Each number of a type can be told as a double.
        let _ = file.get_att(id, name.as_bytes(), Some(MemType::F64), |len| {
            bytes.resize(len, 0);
            Ok(&mut bytes)
        })?;
    }
    Ok(doubles(&bytes))
}

/// Numbers from their native bytes.
pub(super) fn doubles(bytes: &[u8]) -> Vec<f64> {
    let (numbers, _) = bytes.as_chunks();
    numbers.iter().map(|number| f64::from_ne_bytes(*number)).collect()
}

/// The text of an attribute, without what is behind a NUL; `None` if it is none, or empty.
pub(super) fn text(file: &Dataset, id: VarRef, name: &str) -> Option<String> {
    let text = file.in_group(id.group, |meta| {
        let (_, att) = meta.find_att(id.var, name.as_bytes()).ok()?;
        placed::text(file, id, &att)
    });
    let text = text.ok()??;
    let text = String::from_utf8_lossy(text.split(|byte| *byte == 0).next()?).into_owned();
    let text = text.trim().replace(['\n', '\t', '\r'], " ");
    if text.is_empty() { None } else { Some(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_values() {
        let plain = Decoding::default();
        assert_eq!(plain.value(3.25), 3.25);
        let packed = Decoding {
            missing: vec![-999.0, 7.0],
            least: Some(-100.0),
            most: Some(100.0),
            scale: Some(0.5),
            offset: Some(10.0),
        };
        assert_eq!(packed.value(4.0), 12.0);
        for none in [-999.0, 7.0, -101.0, 101.0, f64::NAN] {
            assert!(packed.value(none).is_nan(), "{none}");
        }
    }

    #[test]
    fn default_fill_values() {
        assert_eq!(default_of(ExtType::Short), Some(-32767.0));
        assert_eq!(default_of(ExtType::Double), Some(9.969209968386869e36));
        assert_eq!(default_of(ExtType::Float), Some(9.969209968386869e36));
        assert_eq!(default_of(ExtType::UInt), Some(4_294_967_295.0));
        assert_eq!(default_of(ExtType::Char), None);
    }
}

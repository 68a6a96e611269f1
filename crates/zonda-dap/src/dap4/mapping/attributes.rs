//! Attributes: the text of a DMR as values.

use std::collections::HashMap;

use zonda_format::{NC_STRING, OwnedValues};

use super::super::dmr::{Atomic, Attribute, AttributeValue, Group, Type, names};
use super::types::{Enum, integer};
use super::{Found, Mapper, netcdf_name};
use crate::error::{DapError, Document};
use crate::model::Att;

/// Attributes that say something about the transfer, not about the data.
const RESERVED: &[&str] = &[super::super::CHECKSUM, "_DAP4_Little_Endian", "_NCProperties"];
/// Where the variables that are coordinates are named.
const MAPS: &str = "_edu.ucar.maps";

/// What values become.
enum Target<'a> {
    Atomic(Atomic),
    Enum(&'a Enum),
}

impl Mapper<'_> {
    /// Gives all groups their attributes.
    pub(super) fn group_attributes(
        &mut self,
        group: &Group,
        index: &mut usize,
    ) -> Result<(), DapError> {
        let atts = self.attributes(&group.attributes, None)?;
        if let Some(made) = self.model.groups.get_mut(*index) {
            made.atts = atts;
        }
        *index = index.saturating_add(1);
        group.groups.iter().try_for_each(|inner| self.group_attributes(inner, index))
    }

    pub(super) fn variable_attributes(
        &self,
        found: &Found<'_>,
        nc_type: i32,
    ) -> Result<Vec<Att>, DapError> {
        let mut atts = self.attributes(&found.var.attributes, Some((found, nc_type)))?;
        if !found.var.maps.is_empty() {
            let maps: Vec<_> = found.var.maps.iter().map(|map| names::canonical(map)).collect();
            atts.push(strings(MAPS.into(), maps.iter().map(String::as_str)));
        }
        Ok(atts)
    }

    fn attributes(
        &self,
        all: &[Attribute],
        of: Option<(&Found<'_>, i32)>,
    ) -> Result<Vec<Att>, DapError> {
        let mut atts: Vec<Att> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for attribute in all {
            let AttributeValue::Values(kind, values) = &attribute.value else { continue };
            if attribute.name.starts_with("_edu.ucar.")
                || RESERVED.contains(&attribute.name.as_str())
            {
                continue;
            }
            let Some(att) = self.attribute(attribute, kind, values, of)? else { continue };
            // As with calls that put an attribute twice, the last one stays.
            let place = *places.entry(att.name.clone()).or_insert(atts.len());
            match atts.get_mut(place) {
                Some(before) => *before = att,
                None => atts.push(att),
            }
        }
        Ok(atts)
    }

    fn target(&self, name: &str) -> Option<Target<'_>> {
        let atomic = Atomic::named(name.trim_start_matches('/'));
        let known = || self.enums.get(&names::canonical(name));
        atomic.map(Target::Atomic).or_else(|| known().map(Target::Enum))
    }

    /// One attribute; `None` for a fill value that the variable cannot have.
    fn attribute(
        &self,
        attribute: &Attribute,
        kind: &str,
        values: &[String],
        of: Option<(&Found<'_>, i32)>,
    ) -> Result<Option<Att>, DapError> {
        let name = netcdf_name(&attribute.name)?;
        let wrong = |what: String| {
            let owner = of.map_or(String::new(), |(found, _)| format!(" of {}", found.fqn));
            let what = format!("attribute {}{owner}: {what}", attribute.name);
            DapError::malformed(Document::Dmr, attribute.at.0, what)
        };
        let mut target =
            self.target(kind).ok_or_else(|| wrong(format!("{kind:?} is no type of attributes")))?;
        let mut values = values;
        if let Some((found, nc_type)) = of.filter(|_| attribute.name == "_FillValue") {
            if target.nc_type() != nc_type {
                if !self.settings.fixes_fill {
                    return Err(wrong("the variable has another type".into()));
                }
                target = match &found.var.ty {
                    Type::Atomic(atomic) => Target::Atomic(*atomic),
                    Type::Enum(fqn) => match self.enums.get(&names::canonical(fqn)) {
                        Some(known) => Target::Enum(known),
                        None => return Ok(None),
                    },
                    _ => return Ok(None),
                };
            }
            values = values.get(..1).unwrap_or_default();
            if values.is_empty() {
                return Ok(None);
            }
        }
        let no_value = |text: &String| wrong(format!("{text:?} is no {kind}"));
        let nc_type = target.nc_type();
        if nc_type == NC_STRING {
            return Ok(Some(strings(name, values.iter().map(String::as_str))));
        }
        let mut bytes = Vec::new();
        for text in values {
            bytes.extend(target.value(text).ok_or_else(|| no_value(text))?);
        }
        let len = bytes.len().checked_div(target.size()).unwrap_or(0);
        Ok(Some(Att { name, nc_type, len, values: OwnedValues::plain(bytes) }))
    }
}

impl Target<'_> {
    fn nc_type(&self) -> i32 {
        match self {
            Target::Atomic(atomic) => atomic.nc_type(),
            Target::Enum(known) => known.nc_type,
        }
    }

    fn size(&self) -> usize {
        match self {
            Target::Atomic(atomic) => atomic.size().unwrap_or(8),
            Target::Enum(known) => known.base.size().unwrap_or(1),
        }
    }

    /// The bytes of a value. Text is read as far as it is a number, as C does it.
    fn value(&self, text: &str) -> Option<Vec<u8>> {
        let known = match self {
            Target::Atomic(Atomic::Char) if text.is_empty() => return Some(vec![0]),
            Target::Atomic(Atomic::Char) => return Some(text.as_bytes().to_vec()),
            Target::Atomic(Atomic::Float32) => {
                #[expect(clippy::cast_possible_truncation, reason = "rounded, as in C")]
                let number = number(text)? as f32;
                return Some(number.to_ne_bytes().to_vec());
            }
            Target::Atomic(Atomic::Float64) => return Some(number(text)?.to_ne_bytes().to_vec()),
            Target::Atomic(atomic) => return Some(integer(whole(text, *atomic)?, *atomic)),
            Target::Enum(known) => known,
        };
        let named = known.names.get(text).copied();
        let value = || whole(text, known.base).filter(|value| known.values.contains(value));
        Some(integer(named.or_else(value)?, known.base))
    }
}

/// The integer that a text begins with; what 64 bits do not hold becomes what they hold, as in C.
fn whole(text: &str, ty: Atomic) -> Option<i128> {
    let text = text.trim_start();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|ch: char| !ch.is_ascii_digit()).unwrap_or(digits.len());
    let digits = digits.get(..end).filter(|digits| !digits.is_empty())?;
    let value = digits.parse().unwrap_or(i128::MAX);
    let is_signed = ty.range().is_some_and(|(least, _)| least < 0);
    if is_signed {
        let value = if is_negative { value.saturating_neg() } else { value };
        return Some(value.clamp(i64::MIN.into(), i64::MAX.into()));
    }
    let value = value.min(u64::MAX.into());
    Some(if is_negative { value.saturating_neg() } else { value })
}

/// The number that a text begins with.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let numeric = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '.' | '+' | '-');
    let mut end = text.find(|ch| !numeric(ch)).unwrap_or(text.len());
    // All characters are of one byte. No number that means something has more than a thousand.
    end = end.min(1024);
    while end > 0 {
        if let Some(Ok(number)) = text.get(..end).map(str::parse) {
            return Some(number);
        }
        end = end.saturating_sub(1);
    }
    None
}

fn strings<'a>(name: String, texts: impl Iterator<Item = &'a str>) -> Att {
    let (mut owned, mut bytes) = (OwnedValues::default(), Vec::new());
    let mut len = 0_usize;
    for text in texts {
        bytes.extend(owned.keep(text.as_bytes().into()).to_ne_bytes());
        len = len.saturating_add(1);
    }
    Att { name, nc_type: NC_STRING, len, values: owned.with_bytes(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_does_it() {
        assert_eq!(integer(whole("128", Atomic::Int8).unwrap(), Atomic::Int8), [128]);
        assert_eq!(whole(" -5 apples", Atomic::Int32), Some(-5));
        assert_eq!(whole("1.5", Atomic::Int32), Some(1));
        assert_eq!(
            whole("99999999999999999999999999999999999999999999", Atomic::Int64),
            Some(i64::MAX.into())
        );
        assert_eq!(integer(whole("-1", Atomic::UInt64).unwrap(), Atomic::UInt64), [255; 8]);
        assert_eq!(whole("x", Atomic::Int32), None);
        assert_eq!(number("1.5f"), Some(1.5));
        assert_eq!(number(" -2e3,"), Some(-2000.0));
        assert!(number("NaN").unwrap().is_nan());
        assert_eq!(number("inf"), Some(f64::INFINITY));
        assert_eq!(number("e"), None);
    }
}

//! The arithmetic of [`ValueRules`], element by element, in double precision.

use zonda_model::ExtType;

use super::number::{CfNumber, is_integer};
use super::{AttributeValue, Profile, Unused, ValueRules};

/// Decodes stored numbers as [`Profile::View`] has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoder {
    rules: ValueRules,
}

impl Decoder {
    /// Reads the attributes of a variable of this type; `attribute` returns them by name.
    ///
    /// # Errors
    /// Errors of `attribute`.
    pub fn of<E>(
        ty: ExtType,
        attribute: impl FnMut(&'static str) -> Result<AttributeValue, E>,
    ) -> Result<Decoder, E> {
        Ok(Decoder { rules: ValueRules::of(Profile::View, ty, attribute)? })
    }

    /// Decodes elements in native bytes; missing values become NaN.
    pub fn values<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = f64> + 'a {
        CfNumber::all(self.rules.stored, bytes).map(|number| self.value(number))
    }

    /// Bytes of a stored value.
    #[must_use]
    pub fn elem_bytes(&self) -> usize {
        self.rules.stored.size()
    }

    /// Attributes that were not used.
    #[must_use]
    pub fn unused(&self) -> &[Unused] {
        &self.rules.unused
    }

    pub(super) fn value(&self, stored: CfNumber) -> f64 {
        let rules = &self.rules;
        let is_other = rules.taken_as != rules.stored && is_integer(rules.stored);
        let number = if is_other { stored.wrapped(rules.taken_as) } else { stored };
        let fill = rules.fill.as_ref().filter(|fill| fill.counts);
        let is_fill = fill.is_some_and(|fill| fill.numbers.contains(&number));
        if is_fill || rules.missing.contains(&number) || !rules.stored_range.has(number) {
            return f64::NAN;
        }
        let (scaling, number) = (&rules.scaling, number.to_f64());
        let scaled = scaling.factor.map_or(number, |factor| number * factor.number.to_f64());
        let mut value = scaling.offset.map_or(scaled, |offset| scaled + offset.number.to_f64());
        if scaling.result == ExtType::Float {
            value = f64::from(value as f32);
        }
        if rules.value_range.has(CfNumber::Real(value)) { value } else { f64::NAN }
    }
}

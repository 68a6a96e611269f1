//! Reads attributes from which rules are made.

use super::number::CfNumber;
use super::{AttributeValue, Factor, Unused};
use zonda_model::ExtType;

pub(super) struct AttributeReader<A> {
    pub(super) attribute: A,
    pub(super) unused: Vec<Unused>,
}

impl<A, E> AttributeReader<A>
where
    A: FnMut(&'static str) -> Result<AttributeValue, E>,
{
    pub(super) fn new(attribute: A) -> AttributeReader<A> {
        AttributeReader { attribute, unused: Vec::new() }
    }

    /// The numbers of an attribute, if it has some and `fits` their number.
    pub(super) fn numbers(
        &mut self,
        attribute: &'static str,
        wanted: &'static str,
        fits: impl Fn(usize) -> bool,
    ) -> Result<Option<(ExtType, Vec<CfNumber>)>, E> {
        Ok(match (self.attribute)(attribute)? {
            AttributeValue::Absent => None,
            AttributeValue::Numbers(ty, numbers) if fits(numbers.len()) => Some((ty, numbers)),
            _ => {
                self.unused.push(Unused { attribute, wanted });
                None
            }
        })
    }

    pub(super) fn one(&mut self, attribute: &'static str) -> Result<Option<Factor>, E> {
        let found = self.numbers(attribute, "one number", |n| n == 1)?;
        Ok(found.and_then(|(ty, numbers)| Some(Factor { ty, number: *numbers.first()? })))
    }
}

//! A team of one.

use crate::{Message, Reduction, Step, Team, TeamError};

/// The only rank there is. Its steps do nothing, and cannot fail.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Team for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn n_on_node(&self) -> usize {
        1
    }

    fn broadcast(&self, _: Step<'_>, _: usize, _: &mut Vec<u8>) -> Result<(), TeamError> {
        Ok(())
    }

    fn reduce(&self, _: Step<'_>, _: Reduction, _: &mut [u64]) -> Result<(), TeamError> {
        Ok(())
    }

    fn scan(&self, _: Step<'_>, numbers: &mut [u64]) -> Result<(), TeamError> {
        numbers.fill(0);
        Ok(())
    }

    fn gather(&self, _: Step<'_>, _: usize, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TeamError> {
        Ok(vec![bytes.to_vec()])
    }

    fn exchange(&self, _: Step<'_>, messages: Vec<Message>) -> Result<Vec<Message>, TeamError> {
        Ok(messages)
    }
}

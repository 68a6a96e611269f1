//! Filters 32022 (BitGroom) and 32023 (Granular BitRound): numbers with their last bits cut, so that
//! a later filter finds more to do. Nothing is to be undone.

use super::{ChunkShape, Filter, FilterError, FilterSpec, room};

/// Filter 32022 or 32023.
#[derive(Debug)]
struct Quantize {
    name: &'static str,
}

/// Makes the filter; the registry's line.
pub(crate) fn new(spec: &FilterSpec, _: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    let name = if spec.id == 32022 { "bitgroom" } else { "granular bitround" };
    Ok(Box::new(Quantize { name }))
}

impl Filter for Quantize {
    fn name(&self) -> &'static str {
        self.name
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        room::copy(self.name, stored, most, out)
    }

    fn decode_prefix(&self, stored: &[u8]) -> Option<Result<usize, FilterError>> {
        Some(Ok(stored.len()))
    }

    fn encode(&self, _: &[u8], _: &mut Vec<u8>) -> Result<bool, FilterError> {
        Err(FilterError::Unsupported { filter: self.name, what: "cutting numbers" })
    }
}

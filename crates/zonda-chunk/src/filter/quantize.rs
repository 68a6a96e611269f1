//! Filters 32022 (BitGroom) and 32023 (Granular BitRound): numbers with their last bits cut, so that
//! a later filter compresses better. There is nothing to undo.

use super::{ChunkShape, Filter, FilterError, FilterSpec, memory};

/// Filter 32022 or 32023.
#[derive(Debug)]
struct QuantizeFilter {
    name: &'static str,
}

pub(crate) fn new(spec: &FilterSpec, _: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    let name = super::name_of(spec.id).unwrap_or("quantize");
    Ok(Box::new(QuantizeFilter { name }))
}

impl Filter for QuantizeFilter {
    fn name(&self) -> &'static str {
        self.name
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        memory::copy(self.name, stored, most, out)
    }

    fn decode_prefix(&self, stored: &[u8]) -> Option<Result<usize, FilterError>> {
        Some(Ok(stored.len()))
    }

    fn encode(&self, _: &[u8], _: &mut Vec<u8>) -> Result<bool, FilterError> {
        Err(FilterError::Unsupported {
            filter: self.name,
            what: "quantizing where chunks are written",
        })
    }
}

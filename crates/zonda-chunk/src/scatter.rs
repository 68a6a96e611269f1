//! From the bytes of a decoded chunk, or from a fill value, to a part of the caller's memory.

use zonda_convert::Converted;
use zonda_trace::{Args, EventKind, span};

use crate::ChunkError;
use crate::decode::Decode;
use crate::memory_parts::MemoryPart;
use crate::selection::Coords;

/// Delivers the elements of a decoded chunk: the part's first element is at byte `base`, and elements lie `steps` bytes
/// apart.
pub(crate) fn scatter_rows(
    bytes: &[u8],
    part: MemoryPart<'_>,
    base: u64,
    steps: &[u64],
    decode: &Decode<'_>,
    block: &mut Vec<u8>,
) -> Result<Converted, ChunkError> {
    let mut converted = Converted::default();
    let args = || Args { bytes: part.n_bytes() as u64, ..Args::default() };
    let _span = span(EventKind::ChunkScatter, args);
    // Places in a decoded chunk are below its length, which memory holds.
    part.rows(base, steps, |at, step, row| {
        converted = converted.and(decode.row(&bytes[at as usize..], step as usize, row, block));
        Ok::<(), ChunkError>(())
    })?;
    Ok(converted)
}

/// Delivers fill values.
pub(crate) fn fill_part(
    part: MemoryPart<'_>,
    fill: &[u8],
    decode: &Decode<'_>,
    block: &mut Vec<u8>,
) -> Result<Converted, ChunkError> {
    let mut converted = Converted::default();
    let steps = Coords::from_elem(0, part.pieces.len());
    part.rows(0, &steps, |_, _, row| {
        converted = converted.and(decode.fill(fill, row, block));
        Ok::<(), ChunkError>(())
    })?;
    Ok(converted)
}

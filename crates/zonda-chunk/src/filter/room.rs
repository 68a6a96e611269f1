//! Memory for what filters give, taken so that a chunk too large for it is an error.

use super::FilterError;

/// Makes `out`, which is empty, `len` zeros.
pub(super) fn zeroed(
    filter: &'static str,
    out: &mut Vec<u8>,
    len: usize,
) -> Result<(), FilterError> {
    super::reserve(filter, out, len)?;
    out.resize(len, 0);
    Ok(())
}

/// The result is what is stored.
pub(super) fn copy(
    filter: &'static str,
    stored: &[u8],
    most: usize,
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    fits(filter, stored.len(), most)?;
    super::reserve(filter, out, stored.len())?;
    out.extend_from_slice(stored);
    Ok(())
}

/// Refuses a result of `len` bytes where `most` may be.
pub(super) fn fits(filter: &'static str, len: usize, most: usize) -> Result<(), FilterError> {
    if len > most {
        return Err(FilterError::WrongLength { filter, got: len, expected: most });
    }
    Ok(())
}

//! Reading files that are shorter than their header says.

use zonda_storage::Storage;

use crate::error::ClassicError;

pub(crate) const BUFFER: ClassicError = ClassicError::Length("a buffer for values");

/// Reads bytes; those behind the end of the file are zeros.
#[inline]
pub(crate) fn read_or_zeros(
    storage: &dyn Storage,
    at: u64,
    out: &mut [u8],
) -> Result<(), ClassicError> {
    let got = storage.read_at(at, out)?;
    no_bytes_behind(got, out)
}

/// The same for bytes that are only written elsewhere.
pub(crate) fn move_or_zeros(
    storage: &dyn Storage,
    at: u64,
    out: &mut [u8],
) -> Result<(), ClassicError> {
    let got = storage.read_unseen(at, out)?;
    no_bytes_behind(got, out)
}

#[inline]
fn no_bytes_behind(got: usize, out: &mut [u8]) -> Result<(), ClassicError> {
    if got < out.len() {
        out.get_mut(got..).ok_or(BUFFER)?.fill(0);
    }
    Ok(())
}

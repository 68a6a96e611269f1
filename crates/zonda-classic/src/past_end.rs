//! Reading files that are shorter than their header says.
//!
//! Of a file on a disk what is missing reads as zeros, as in the reference: programs stop before they have written all that they defined. An object on a
//! server got there as a whole; one that is shorter was cut on its way, and what is missing is an error.

use std::sync::Arc;

use zonda_storage::{RemoteFailure, Rows, Storage, StorageError};

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
    no_bytes_behind(storage, at, got, out)
}

/// Reads bytes through `decode`, which is called once and gives what it makes of them: where the storage has them in memory, otherwise in `buffer`.
#[inline]
pub(crate) fn decode_or_zeros<R>(
    storage: &dyn Storage,
    at: u64,
    buffer: &mut [u8],
    mut decode: impl FnMut(&[u8]) -> R,
) -> Result<R, ClassicError> {
    let mut shown = None;
    let row = Rows { at, len: buffer.len(), step: 0, count: 1 };
    storage.show_rows(row, &mut |bytes| shown = Some(decode(bytes)));
    if let Some(done) = shown {
        return Ok(done);
    }
    read_or_zeros(storage, at, buffer)?;
    Ok(decode(buffer))
}

/// The same for bytes that are only written elsewhere.
pub(crate) fn move_or_zeros(
    storage: &dyn Storage,
    at: u64,
    out: &mut [u8],
) -> Result<(), ClassicError> {
    let got = storage.read_unseen(at, out)?;
    no_bytes_behind(storage, at, got, out)
}

#[inline]
fn no_bytes_behind(
    storage: &dyn Storage,
    at: u64,
    got: usize,
    out: &mut [u8],
) -> Result<(), ClassicError> {
    if got < out.len() {
        check_missing(storage, at, out.len())?;
        out.get_mut(got..).ok_or(BUFFER)?.fill(0);
    }
    Ok(())
}

/// Whether bytes of a range may be missing.
#[cold]
fn check_missing(storage: &dyn Storage, at: u64, len: usize) -> Result<(), ClassicError> {
    let Some(remote) = storage.remote() else { return Ok(()) };
    let what = format!(
        "the object ends at byte {}, before the values that its header tells of",
        storage.len()?
    );
    Err(ClassicError::Storage(StorageError::Remote {
        url: remote.shown(),
        range: Some((at, len as u64)),
        kind: RemoteFailure::Broken,
        status: None,
        what: Arc::from(what),
    }))
}

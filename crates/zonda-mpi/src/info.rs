//! What a program says in an `MPI_Info`.

use crate::calls::Mpi;
use crate::error::MpiError;
use std::ffi::CString;

/// The value of a key in the Info that a caller gave as a word; none if it has no such key, or is `MPI_INFO_NULL`.
///
/// A key that is longer than the MPI allows is in no Info: none.
///
/// # Errors
/// [`MpiError`]: MPI cannot be called now.
pub fn info_value(info: usize, key: &str) -> Result<Option<String>, MpiError> {
    let mpi = Mpi::of_process()?;
    mpi.check_callable()?;
    let info = mpi.handle(info);
    let Some(name) = CString::new(key).ok().filter(|key| !key.is_empty()) else { return Ok(None) };
    // MPI ends the program for keys that are too long, unless told otherwise.
    let is_null = info == 0 || info == mpi.handles.info_null;
    if is_null || key.len() >= mpi.table.max_info_key {
        return Ok(None);
    }
    let value = mpi.info_value(info, &name).map_err(|failed| mpi.error(failed))?;
    Ok(value.map(|value| String::from_utf8_lossy(&value).into_owned()))
}

/// The keys of an Info that a caller gave as a word.
///
/// # Errors
/// [`MpiError`]: MPI cannot be called now.
pub fn info_keys(info: usize) -> Result<Vec<String>, MpiError> {
    let mpi = Mpi::of_process()?;
    mpi.check_callable()?;
    let info = mpi.handle(info);
    if info == 0 || info == mpi.handles.info_null {
        return Ok(Vec::new());
    }
    mpi.info_keys(info).map_err(|failed| mpi.error(failed))
}

/// The word of the Info that a Fortran program has under a number.
///
/// # Errors
/// [`MpiError`]: MPI cannot be called now.
pub fn info_from_fortran(number: i32) -> Result<usize, MpiError> {
    let mpi = Mpi::of_process()?;
    mpi.check_callable()?;
    Ok(mpi.fortran_info(number).unwrap_or(mpi.handles.info_null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_mpi_there_is_no_info() {
        assert_eq!(info_value(0, "zonda_x"), Err(MpiError::NoMpi));
        assert_eq!(info_keys(0), Err(MpiError::NoMpi));
        assert_eq!(info_from_fortran(0), Err(MpiError::NoMpi));
    }
}

//! What calls about how a variable is stored begin with: the file, the variable, how it is stored.

use std::ffi::c_int;
use std::sync::Arc;

use zonda::{NcError, VarId, VarInfo};

use crate::failure::CallFailure;
use crate::handles::{self, FileRef};

/// The file of a variable that exists; `NC_GLOBAL` does not name one.
pub(crate) fn file_with_var(ncid: c_int, varid: c_int) -> Result<FileRef, CallFailure> {
    let file = handles::file(ncid)?;
    file.meta(|meta| meta.var(VarId(varid)).map(drop))??;
    Ok(file)
}

/// A netCDF-4 file, whose variables are stored in more than one way; of a classic one the answer is
/// `refused`.
pub(crate) fn file_with_storage(ncid: c_int, refused: NcError) -> Result<FileRef, NcError> {
    let file = handles::file(ncid)?;
    if file.dataset.capabilities().storage { Ok(file) } else { Err(refused) }
}

/// How a variable of a netCDF-4 file is stored; `None` for classic files.
pub(crate) fn var_info(file: &FileRef, varid: c_int) -> Result<Option<Arc<VarInfo>>, CallFailure> {
    if !file.dataset.capabilities().storage {
        return Ok(None);
    }
    Ok(Some(file.dataset.var_info(file.var(varid))?))
}

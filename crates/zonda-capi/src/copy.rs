//! Attributes and whole variables from one file to another.

use std::ffi::{c_char, c_int};

use zonda::{NcError, VarToCopy};

use crate::boundary::{boundary, foreign_code};
use crate::c_memory::bytes;
use crate::handles;
use crate::user_format::{copies, table_of};

/// `int nc_copy_att(int ncid_in, int varid_in, const char *name, int ncid_out, int varid_out);`
///
/// Type and values stay as they are. An attribute copied onto itself is left alone, and its
/// existence not checked, as in the reference.
///
/// # Safety
/// `name` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_copy_att(
    ncid_in: c_int,
    varid_in: c_int,
    name: *const c_char,
    ncid_out: c_int,
    varid_out: c_int,
) -> c_int {
    if [ncid_in, ncid_out].map(table_of).iter().any(Option::is_some) {
        // SAFETY: same contract.
        let copied = unsafe { copies::copy_att((ncid_in, varid_in), name, (ncid_out, varid_out)) };
        return foreign_code(copied);
    }
    boundary(|| {
        let to = handles::file(ncid_out)?;
        if ncid_in == ncid_out && varid_in == varid_out {
            return Ok(());
        }
        let from = handles::file(ncid_in)?;
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(name) }.ok_or(NcError::BadName)?;
        let from = (&from.dataset, from.var(varid_in));
        Ok(zonda::copy_attribute(from, name, (&to.dataset, to.var(varid_out)))?)
    })
}

/// `int nc_copy_var(int ncid_in, int varid_in, int ncid_out);`
///
/// Defines a variable of the same name, type and dimension names in the other file, copies its
/// attributes, and then its data. The other file is left in data mode; if its definitions are
/// refused, in define mode.
#[unsafe(no_mangle)]
pub extern "C" fn nc_copy_var(ncid_in: c_int, varid_in: c_int, ncid_out: c_int) -> c_int {
    if [ncid_in, ncid_out].map(table_of).iter().any(Option::is_some) {
        return foreign_code(copies::copy_var((ncid_in, varid_in), ncid_out));
    }
    boundary(|| {
        let from = handles::file(ncid_in)?;
        let var = VarToCopy::read(&from.dataset, from.var(varid_in))?;
        let to = handles::file(ncid_out)?;
        Ok(var.copy_to(&to.dataset, to.group)?)
    })
}

//! Formats of a program's own: the calls that go to their tables.
//!
//! A program registers a table of functions for one of ten mode flags, and perhaps the bytes that its
//! files begin with (`zonda-user-format`). Files opened with that flag, or that begin so, belong to the
//! table: every call on them goes to it with the arguments that the reference would pass, and returns what
//! the table answers. Such a file has a slot of `handles` as any other.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;

use zonda::NcError;

use crate::boundary::{boundary, foreign_code};
use crate::c_memory::{bytes, put};
use crate::failure::CallFailure;
use crate::handles::{self, UserFile};
use crate::mode::{CLASSIC_MODEL, DATA_64BIT, NETCDF4, OFFSET_64BIT};
use zonda_user_format::NcMemio;

pub(crate) mod copies;
pub(crate) mod filters;
pub(crate) mod members;
pub(crate) mod records;
pub(crate) mod transfer;
pub(crate) mod type_list;
pub(crate) mod var_storage;

pub use zonda_user_format::NcDispatch;
pub(crate) use zonda_user_format::{
    MAX_MAGIC, member, table_of_content, table_of_mode, table_of_number,
};

/// `NC_MAX_VAR_DIMS`: how many dimensions callers make room for that do not ask for the number first.
const MAX_DIMS: usize = 1024;

/// `int nc_def_user_format(int mode_flag, NC_Dispatch *dispatch_table, char *magic_number);`
///
/// A magic number stays until another one is given. In the words of 4.10, which 4.9.0 does not know,
/// other flags may stand beside `NC_UDF*`, but with a magic number none of the classic formats.
///
/// # Safety
/// `dispatch_table` is null or a valid table that outlives its use; `magic_number` is null or a
/// NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_user_format(
    mode_flag: c_int,
    dispatch_table: *mut NcDispatch,
    magic_number: *mut c_char,
) -> c_int {
    boundary(|| {
        // SAFETY: null, or a table that outlives its use, which is what 'static stands for here.
        let table: &'static NcDispatch =
            unsafe { dispatch_table.cast_const().as_ref() }.ok_or(NcError::Inval)?;
        // SAFETY: the contract above is that of `bytes`.
        let magic = unsafe { bytes(magic_number) };
        let classic = mode_flag & (OFFSET_64BIT | DATA_64BIT) != 0
            || mode_flag & (CLASSIC_MODEL | NETCDF4) == CLASSIC_MODEL;
        if magic.is_some() && classic {
            return Err(NcError::Inval.into());
        }
        Ok(zonda_user_format::register(mode_flag, table, magic)?)
    })
}

/// `int nc_inq_user_format(int mode_flag, NC_Dispatch **dispatch_table, char *magic_number);`
///
/// # Safety
/// `dispatch_table` is null, or valid for a write; `magic_number` is null, or valid for
/// `NC_MAX_MAGIC_NUMBER_LEN` bytes, all of which are written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_user_format(
    mode_flag: c_int,
    dispatch_table: *mut *mut NcDispatch,
    magic_number: *mut c_char,
) -> c_int {
    boundary(|| {
        let known = zonda_user_format::registration(mode_flag)?;
        let table =
            known.table.map_or(std::ptr::null_mut(), |table| (&raw const *table).cast_mut());
        // SAFETY: the contract above covers both writes.
        unsafe {
            put(dispatch_table, table);
            put(magic_number.cast::<[u8; MAX_MAGIC]>(), known.magic);
        }
        Ok(())
    })
}

/// The table that answers for `ncid`; `None` if it is not of a program's own format.
#[inline(always)]
pub(crate) fn table_of(ncid: c_int) -> Option<&'static NcDispatch> {
    handles::user_file(ncid, |file| file.table)
}

/// Arguments of the members `create` and `open` of a table.
pub(crate) struct OpenArguments {
    pub(crate) mode: c_int,
    /// Bytes that a new file has from the start; `None` opens one that is there.
    pub(crate) create: Option<usize>,
    pub(crate) basepe: c_int,
    pub(crate) chunksizehintp: *mut usize,
    /// The memory that holds the file, with `NC_INMEMORY`.
    pub(crate) memory: *mut NcMemio,
}

/// Opens or creates a file with a table. The `ncid` is allocated before, and the mode has `NC_NETCDF4`, since
/// such files are shown by the model of netCDF-4.
///
/// # Errors
/// `NC_ENFILE`; what the table answers otherwise is in the result.
///
/// # Safety
/// `ncidp` is null, or valid for a write; the pointers in `arguments` are what the table expects.
pub(crate) unsafe fn open(
    table: &'static NcDispatch,
    path: CString,
    arguments: &OpenArguments,
    ncidp: *mut c_int,
) -> Result<c_int, CallFailure> {
    let path: Arc<CStr> = path.into();
    let ncid = handles::insert_user_file(UserFile { table, path: Arc::clone(&path) })?;
    let mode = arguments.mode | NETCDF4;
    let (hint, parameters) = (arguments.chunksizehintp, arguments.memory.cast::<c_void>());
    // SAFETY: the table is one that its program vouches for; the contract covers the arguments.
    let answer = unsafe {
        match arguments.create {
            Some(size) => table.create.map(|create| {
                create(path.as_ptr(), mode, size, arguments.basepe, hint, parameters, table, ncid)
            }),
            None => table.open.map(|open| {
                open(path.as_ptr(), mode, arguments.basepe, hint, parameters, table, ncid)
            }),
        }
    };
    let answer = answer.unwrap_or(NcError::NotBuilt.code());
    if answer != 0 {
        handles::remove_user_file(ncid);
    } else {
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(ncidp, ncid) };
    }
    Ok(answer)
}

/// Closes a file with its table; where the table refuses, it stays open.
///
/// # Safety
/// `memio` is null, or valid for a write.
pub(crate) unsafe fn close(table: &'static NcDispatch, ncid: c_int, memio: *mut NcMemio) -> c_int {
    // SAFETY: same contract.
    let answer = table.close.map_or(0, |close| unsafe { close(ncid, memio) });
    if answer == 0 {
        handles::remove_user_file(ncid);
    }
    foreign_code(answer)
}

/// Closes a file with its table without what was not yet written; the table cannot prevent it.
pub(crate) fn abort(table: &'static NcDispatch, ncid: c_int) -> c_int {
    // SAFETY: the table is one that its program vouches for.
    let answer = table.abort.map_or(0, |abort| unsafe { abort(ncid) });
    handles::remove_user_file(ncid);
    foreign_code(answer)
}

/// If the file is of a program's own format, returns what its table answers: the member of that name, or the
/// expression that is given for the table.
macro_rules! to_user_format {
    ($ncid:expr, $member:ident($($argument:expr),* $(,)?)) => {
        if let Some(table) = $crate::user_format::table_of($ncid) {
            return $crate::boundary::foreign_code($crate::user_format::member!(
                table,
                $member($($argument),*)
            ));
        }
    };
    ($ncid:expr, |$table:pat_param| $answer:expr) => {
        if let Some($table) = $crate::user_format::table_of($ncid) {
            return $crate::boundary::foreign_code($answer);
        }
    };
}
pub(crate) use to_user_format;

/// Ends the function with the code of a call that failed.
macro_rules! attempt {
    ($call:expr) => {
        match $call {
            0 => {}
            code => return code,
        }
    };
}
use attempt;

//! User-defined formats: dispatch tables that programs register.

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

use zonda::NcError;

use crate::boundary::{boundary, put};
use crate::foreign::bytes;

const UDF0: c_int = 0x0040;
const UDF1: c_int = 0x0080;
/// `NC_DISPATCH_VERSION` of 4.9.0: the layout of the table that programs compiled.
const DISPATCH_VERSION: c_int = 5;
/// `NC_MAX_MAGIC_NUMBER_LEN`, in bytes; a number that long has no NUL.
const MAX_MAGIC: usize = 8;

/// The start of `NC_Dispatch`, all that is looked at.
#[derive(Debug)]
#[repr(C)]
pub struct NcDispatch {
    /// `NC_FORMATX_*`
    pub model: c_int,
    /// Layout of the rest.
    pub dispatch_version: c_int,
}

#[derive(Clone, Copy, Debug)]
struct Registration {
    /// Address of the program's table, which is only handed back; 0 if there is none.
    table: usize,
    /// Padded with NUL.
    magic: [u8; MAX_MAGIC],
}

const NONE: Registration = Registration { table: 0, magic: [0; MAX_MAGIC] };

fn registrations() -> MutexGuard<'static, [Registration; 2]> {
    static REGISTRATIONS: Mutex<[Registration; 2]> = Mutex::new([NONE; 2]);
    REGISTRATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn slot(mode_flag: c_int) -> Result<usize, NcError> {
    match mode_flag {
        UDF0 => Ok(0),
        UDF1 => Ok(1),
        _ => Err(NcError::Inval),
    }
}

/// `int nc_def_user_format(int mode_flag, NC_Dispatch *dispatch_table, char *magic_number);`
///
/// The registration is kept and reported. Opening or creating a file with it is answered with
/// `NC_ENOTBUILT`: calls are not dispatched to foreign tables yet.
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
        let slot = slot(mode_flag)?;
        // SAFETY: valid if not null, by contract.
        let Some(table) = (unsafe { dispatch_table.as_ref() }) else {
            return Err(NcError::Inval.into());
        };
        // SAFETY: the contract above is that of `bytes`.
        let magic = unsafe { bytes(magic_number) };
        if magic.is_some_and(|magic| magic.len() > MAX_MAGIC)
            || table.dispatch_version != DISPATCH_VERSION
        {
            return Err(NcError::Inval.into());
        }
        let mut all = registrations();
        all[slot].table = dispatch_table as usize;
        if let Some(magic) = magic {
            all[slot].magic = [0; MAX_MAGIC];
            all[slot].magic[..magic.len()].copy_from_slice(magic);
        }
        Ok(())
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
        let known = registrations()[slot(mode_flag)?];
        // SAFETY: the contract above covers both writes.
        unsafe {
            put(dispatch_table, known.table as *mut NcDispatch);
            put(magic_number.cast::<[u8; MAX_MAGIC]>(), known.magic);
        }
        Ok(())
    })
}

//! Formats of a program's own: dispatch tables, and the files that go to them.
//!
//! A program registers a table of functions for one of ten mode flags, and perhaps the bytes that its
//! files begin with. Files opened with that flag, or that begin so, are the table's: every call on
//! them goes to it, with the arguments and in the terms of the reference, and what it answers is the
//! answer. Such a file has a slot of `handles` as any other.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;
use zonda_runtime::lock::{Global, MutexGuard, Rank};

use zonda::NcError;

use crate::boundary::{Failure, boundary, from_elsewhere, put};
use crate::foreign::bytes;
use crate::handles::{self, UserFile};
use crate::mem::NcMemio;
use crate::mode::{CLASSIC_MODEL, DATA_64BIT, NETCDF4, OFFSET_64BIT};

pub(crate) mod calls;
mod defaults;
mod table;
pub(crate) mod transfer;

pub use table::NcDispatch;

/// `NC_UDF0` to `NC_UDF9`; those from `NC_UDF2` on are of 4.10.0.
const FLAGS: [c_int; 10] = [
    0x0040, 0x0080, 0x1_0000, 0x8_0000, 0x10_0000, 0x20_0000, 0x40_0000, 0x80_0000, 0x100_0000,
    0x200_0000,
];
/// `NC_DISPATCH_VERSION` of 4.9.0 and of 4.10.1: the layout of the table that programs compiled.
const DISPATCH_VERSION: c_int = 5;
/// `NC_MAX_MAGIC_NUMBER_LEN`, in bytes; a number that long has no NUL.
pub(crate) const MAX_MAGIC: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Registration {
    table: Option<&'static NcDispatch>,
    /// Padded with NUL.
    magic: [u8; MAX_MAGIC],
}

impl Registration {
    /// The bytes that files begin with; empty where there are none.
    fn magic(&self) -> &[u8] {
        self.magic.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

fn registrations() -> MutexGuard<'static, [Registration; FLAGS.len()]> {
    const NONE: Registration = Registration { table: None, magic: [0; MAX_MAGIC] };
    static REGISTRATIONS: Global<[Registration; FLAGS.len()]> =
        Global::new(Rank::Settings, [NONE; FLAGS.len()], || [NONE; FLAGS.len()]);
    REGISTRATIONS.lock()
}

/// Which format a flag stands for; other flags beside it say something about its files.
fn format_of(mode_flag: c_int) -> Result<usize, NcError> {
    let mut asked = (0..FLAGS.len()).filter(|&n| mode_flag & FLAGS[n] != 0);
    match (asked.next(), asked.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(NcError::Inval),
    }
}

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
        let format = format_of(mode_flag)?;
        // SAFETY: null, or a table that outlives its use, which is what 'static stands for here.
        let table: &'static NcDispatch =
            unsafe { dispatch_table.cast_const().as_ref() }.ok_or(NcError::Inval)?;
        // SAFETY: the contract above is that of `bytes`.
        let magic = unsafe { bytes(magic_number) };
        let classic = mode_flag & (OFFSET_64BIT | DATA_64BIT) != 0
            || mode_flag & (CLASSIC_MODEL | NETCDF4) == CLASSIC_MODEL;
        if magic.is_some_and(|magic| magic.len() > MAX_MAGIC || classic)
            || table.dispatch_version != DISPATCH_VERSION
        {
            return Err(NcError::Inval.into());
        }
        let mut all = registrations();
        all[format].table = Some(table);
        if let Some(magic) = magic {
            all[format].magic = [0; MAX_MAGIC];
            all[format].magic[..magic.len()].copy_from_slice(magic);
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
        let known = registrations()[format_of(mode_flag)?];
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

/// The table that a mode asks for; of several, the one with the lowest number.
///
/// # Errors
/// `NC_ENOTBUILT` where no program registered one.
pub(crate) fn table_of_mode(mode: c_int) -> Result<Option<&'static NcDispatch>, NcError> {
    let asked = (0..FLAGS.len()).find(|&n| mode & FLAGS[n] != 0);
    asked.map(table_of_format).transpose()
}

/// The table of a format by its number.
///
/// # Errors
/// `NC_ENOTBUILT` where no program registered one.
pub(crate) fn table_of_format(format: usize) -> Result<&'static NcDispatch, NcError> {
    registrations().get(format).and_then(|known| known.table).ok_or(NcError::NotBuilt)
}

/// The table whose files begin as `read` tells, if any table has a magic number.
pub(crate) fn table_of_content(
    read: impl FnOnce(&mut [u8; MAX_MAGIC]) -> usize,
) -> Option<&'static NcDispatch> {
    let known = *registrations();
    if known.iter().all(|one| one.magic().is_empty()) {
        return None;
    }
    let mut start = [0; MAX_MAGIC];
    let n = read(&mut start).min(MAX_MAGIC);
    let begins =
        |one: &&Registration| !one.magic().is_empty() && start[..n].starts_with(one.magic());
    known.iter().find(begins)?.table
}

/// The table that answers for `ncid`; `None` if it is not of a program's own format.
#[inline(always)]
pub(crate) fn table_of(ncid: c_int) -> Option<&'static NcDispatch> {
    handles::user_file(ncid, |file| file.table)
}

/// What the tables' `create` and `open` get to know.
pub(crate) struct Opening {
    pub(crate) mode: c_int,
    /// Bytes that a new file has from the start; `None` opens one that is there.
    pub(crate) create: Option<usize>,
    pub(crate) basepe: c_int,
    pub(crate) chunksizehintp: *mut usize,
    /// The memory that holds the file, with `NC_INMEMORY`.
    pub(crate) memory: *mut NcMemio,
}

/// Opens or creates a file with a table. The table finds the `ncid` allocated, and the mode saying
/// netCDF-4, whose model such files are shown by.
///
/// # Errors
/// `NC_ENFILE`; what the table answers otherwise is in the result.
///
/// # Safety
/// `ncidp` is null, or valid for a write; the pointers in `how` are what the table expects.
pub(crate) unsafe fn open(
    table: &'static NcDispatch,
    path: CString,
    how: &Opening,
    ncidp: *mut c_int,
) -> Result<c_int, Failure> {
    let path: Arc<CStr> = path.into();
    let ncid = handles::insert_user_file(UserFile { table, path: Arc::clone(&path) })?;
    let mode = how.mode | NETCDF4;
    let (hint, parameters) = (how.chunksizehintp, how.memory.cast::<c_void>());
    // SAFETY: the table is one that its program vouches for; the contract covers the arguments.
    let answer = unsafe {
        match how.create {
            Some(size) => table.create.map(|create| {
                create(path.as_ptr(), mode, size, how.basepe, hint, parameters, table, ncid)
            }),
            None => table
                .open
                .map(|open| open(path.as_ptr(), mode, how.basepe, hint, parameters, table, ncid)),
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
    from_elsewhere(answer)
}

/// Gives a file up with its table, which cannot prevent it.
pub(crate) fn abort(table: &'static NcDispatch, ncid: c_int) -> c_int {
    // SAFETY: the table is one that its program vouches for.
    let answer = table.abort.map_or(0, |abort| unsafe { abort(ncid) });
    handles::remove_user_file(ncid);
    from_elsewhere(answer)
}

/// Calls a member of a table. One that the program left null does what a format does that lacks the
/// feature.
macro_rules! member {
    ($table:expr, $member:ident($($argument:expr),* $(,)?)) => {
        match $table.$member {
            // SAFETY: the table is one that its program vouches for, and the arguments are those of
            // the function of that name, whose contract the caller keeps.
            Some(function) => unsafe { function($($argument),*) },
            None => zonda::NcError::NotNc4.code(),
        }
    };
}
pub(crate) use member;

/// Hands a call on to the table of a program's own format, if the file is of one: to the member of that
/// name, or to what is said of the table.
macro_rules! to_user_format {
    ($ncid:expr, $member:ident($($argument:expr),* $(,)?)) => {
        if let Some(table) = $crate::user_format::table_of($ncid) {
            return $crate::boundary::from_elsewhere($crate::user_format::member!(
                table,
                $member($($argument),*)
            ));
        }
    };
    ($ncid:expr, |$table:pat_param| $answer:expr) => {
        if let Some($table) = $crate::user_format::table_of($ncid) {
            return $crate::boundary::from_elsewhere($answer);
        }
    };
}
pub(crate) use to_user_format;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_flag_names_a_format() {
        assert_eq!(format_of(0x40), Ok(0));
        assert_eq!(format_of(0x200_0000 | NETCDF4), Ok(9));
        assert_eq!(format_of(NETCDF4), Err(NcError::Inval));
        assert_eq!(format_of(0x40 | 0x80), Err(NcError::Inval));
        for (n, flag) in FLAGS.iter().enumerate() {
            assert_eq!(flag.count_ones(), 1);
            assert!(FLAGS[..n].iter().all(|other| other & flag == 0));
        }
    }

    #[test]
    fn a_magic_number_ends_at_its_nul() {
        let mut one = Registration::default();
        assert_eq!(one.magic(), b"");
        one.magic = *b"ab\0\0\0\0\0\0";
        assert_eq!(one.magic(), b"ab");
        one.magic = *b"12345678";
        assert_eq!(one.magic(), b"12345678");
    }
}

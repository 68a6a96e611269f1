//! What Zonda offers beyond the netCDF interface (`zonda.h`).

use std::ffi::{CStr, c_char, c_int};

use zonda::{Error, NcError, WriteBehind};
use zonda_runtime::memory;

use crate::boundary::{boundary, last_error_text};
use crate::c_memory::{put, put_text};
use crate::handles;
use crate::user_format::to_user_format;

/// The version with a NUL for C.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// `const char *nc_zonda_last_error(void);`
///
/// What went wrong in the last failed call of this thread: path, object, position, cause. Also what a
/// call that succeeded had to leave out: the first inquiry of a file with external links that are
/// refused names them. Empty if there is nothing; valid until the thread's next netCDF call.
#[unsafe(no_mangle)]
pub extern "C" fn nc_zonda_last_error() -> *const c_char {
    last_error_text()
}

/// `const char *nc_zonda_version(void);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_zonda_version() -> *const c_char {
    VERSION.as_ptr().cast()
}

/// `int nc_zonda_inq_stack(int ncid, size_t *lenp, char *spec);`
///
/// The layers a file goes through, from the application down, as `ZONDA_IO` takes them.
///
/// # Safety
/// `lenp` is null, or valid for a write; `spec` is null, or has room for the text and its NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_zonda_inq_stack(
    ncid: c_int,
    lenp: *mut usize,
    spec: *mut c_char,
) -> c_int {
    to_user_format!(ncid, |_| {
        // A program's own format has no layers of Zonda.
        // SAFETY: the contract above is that of both.
        unsafe {
            put(lenp, 0);
            put_text(spec, b"");
        }
        0
    });
    boundary(|| {
        let stack = handles::file(ncid)?.dataset.stack();
        // SAFETY: the contract above is that of both.
        unsafe {
            put(lenp, stack.len());
            put_text(spec, stack.as_bytes());
        }
        Ok(())
    })
}

/// `int nc_zonda_set_async(int ncid, const char *how);`
///
/// Whether puts to a file return when they are accepted (`on`, `mem=512M,threads=2`) or when they are
/// done (`off`), from now on. What was accepted before is carried out first.
///
/// # Safety
/// `how` is a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_zonda_set_async(ncid: c_int, how: *const c_char) -> c_int {
    to_user_format!(ncid, |_| NcError::NotNc4.code());
    boundary(|| {
        let file = handles::file(ncid)?;
        if how.is_null() {
            return Err(NcError::Inval.into());
        }
        // SAFETY: not null, and the contract above.
        let how = unsafe { CStr::from_ptr(how) }.to_str().map_err(|_| NcError::Inval)?;
        let how: WriteBehind = how.parse().map_err(|error| {
            Error::with_text(NcError::Inval, format!("write-behind \"{how}\": {error}"))
        })?;
        Ok(file.dataset.set_write_behind(how)?)
    })
}

/// `int nc_zonda_async_status(int ncid, size_t *pending_bytes, int *err);`
///
/// Bytes of puts that were accepted and wait, and the code of what went wrong with any of them,
/// `NC_NOERR` if nothing did. Never waits.
///
/// # Safety
/// The pointers are null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_zonda_async_status(
    ncid: c_int,
    pending_bytes: *mut usize,
    err: *mut c_int,
) -> c_int {
    to_user_format!(ncid, |_| {
        // A program's own format has no queue of Zonda.
        // SAFETY: the contract above.
        unsafe {
            put(pending_bytes, 0);
            put(err, 0);
        }
        0
    });
    boundary(|| {
        let (bytes, error) = handles::file(ncid)?.dataset.write_behind_status();
        // SAFETY: the contract above.
        unsafe {
            put(pending_bytes, bytes);
            put(err, error.map_or(0, |error| error.code().code()));
        }
        Ok(())
    })
}

/// `NC_ZONDA_MEMORY_ALL`.
const ALL: c_int = -1;

/// `int nc_zonda_memory(int kind, const char **namep, size_t *bytes, size_t *most);`
///
/// What the library holds of one kind of memory, in bytes: now, and the most at any time; for
/// `NC_ZONDA_MEMORY_ALL` of all kinds together, and the limit. `NC_EINVAL` for another kind. Never waits.
///
/// # Safety
/// The pointers are null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_zonda_memory(
    kind: c_int,
    namep: *mut *const c_char,
    bytes: *mut usize,
    most: *mut usize,
) -> c_int {
    boundary(|| {
        let broker = memory::process();
        let held =
            usize::try_from(kind).ok().and_then(|kind| broker.memory_use().get(kind).copied());
        let (name, now, at_most) = match held {
            Some(held) => (held.kind.c_name(), held.bytes, held.most),
            None if kind == ALL => ("all\0", broker.in_use(), broker.limit()),
            None => return Err(NcError::Inval.into()),
        };
        let count = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        // SAFETY: the contract above; names are static and end with a NUL.
        unsafe {
            put(namep, name.as_ptr().cast());
            put(bytes, count(now));
            put(most, count(at_most));
        }
        Ok(())
    })
}

//! What Zonda offers beyond the netCDF interface (`zonda.h`).

use std::ffi::{c_char, c_int};

use crate::boundary::{boundary, last_error_text, put};
use crate::foreign::put_text;
use crate::handles;
use crate::user_format::to_user_format;

/// The version with a NUL for C.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// `const char *nc_zonda_last_error(void);`
///
/// What went wrong in the last failed call of this thread: path, object, position, cause. Empty if
/// none failed; valid until the thread's next netCDF call.
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
        // None of our layers is under a format of the program's own.
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

//! The run-time configuration table, as programs ask and change it; see [`rc`].
//!
//! Lines of its files that start with `[url]` concern one server and are not seen through this interface.

use std::ffi::{c_char, c_int};

use zonda::NcError;
use zonda::storage::rc;

use crate::boundary::boundary;
use crate::c_memory::{bytes, malloc_text};

/// `char *nc_rc_get(const char *key);`
///
/// The value, in memory that the caller frees, or null if there is none.
///
/// # Safety
/// `key` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_rc_get(key: *const c_char) -> *mut c_char {
    let mut found = std::ptr::null_mut();
    boundary(|| {
        // SAFETY: the contract above is that of `bytes`.
        let Some(key) = (unsafe { bytes(key) }) else { return Ok(()) };
        if let Some(value) = rc::get(key) {
            found = malloc_text(&value)?;
        }
        Ok(())
    });
    found
}

/// `int nc_rc_set(const char *key, const char *value);`
///
/// Blanks around both are dropped. `NC_EINVAL` for a null pointer; nothing happens while the
/// table is turned off.
///
/// # Safety
/// Both are null or NUL-terminated strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_rc_set(key: *const c_char, value: *const c_char) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is that of `bytes`.
        let (Some(key), Some(value)) = (unsafe { (bytes(key), bytes(value)) }) else {
            return Err(NcError::Inval.into());
        };
        rc::set(key, value);
        Ok(())
    })
}

//! The library itself: version, start and end.

use std::ffi::{c_char, c_int};

/// The release whose interface this is, first, because programs read it as a number; then what it
/// really is. Ends as programs that cut the text expect.
const LIBVERS: &str = concat!("4.9.0 of Zonda ", env!("CARGO_PKG_VERSION"), " $\0");

/// `const char *nc_inq_libvers(void);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_inq_libvers() -> *const c_char {
    LIBVERS.as_ptr().cast()
}

/// `int nc_initialize(void);` There is nothing to be set up ahead of the first file.
#[unsafe(no_mangle)]
pub extern "C" fn nc_initialize() -> c_int {
    0
}

/// `int nc_finalize(void);` Files stay open; the process's end writes what is left.
#[unsafe(no_mangle)]
pub extern "C" fn nc_finalize() -> c_int {
    0
}

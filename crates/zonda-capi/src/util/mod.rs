//! Symbols of no public header that the distribution's own tools import: text, times, lists, URLs
//! and paths. Their structs have the layout that the tools of 4.9.0 were compiled with. (The log,
//! which is variadic, is in `csrc/shim.c`.)

mod list;
mod path;
mod text;
mod time;
mod uri;
mod uri_parse;

use std::ffi::c_int;

/// `int nc_set_log_level(int new_level);`
///
/// Accepted and ignored, as by a reference built without logging; `ZONDA_LOG` is Zonda's own.
#[unsafe(no_mangle)]
pub extern "C" fn nc_set_log_level(_new_level: c_int) -> c_int {
    0
}

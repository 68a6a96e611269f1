//! Another libnetcdf in the process, which this library stands in front of, as under `LD_PRELOAD`: which
//! release it is. None of its functions is called but `nc_inq_libvers`.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use zonda::release::Release;

use crate::library::nc_inq_libvers;

const SYMBOL: &CStr = c"nc_inq_libvers";

type Libvers = unsafe extern "C" fn() -> *const c_char;

/// The release of another libnetcdf in this process, if there is one.
///
/// It is searched behind this library in the order of the loader, and then among all libraries that are
/// loaded, since extensions of Python load theirs for themselves.
pub(crate) fn release() -> Option<Release> {
    // SAFETY: SYMBOL is NUL-terminated, and the loader's pseudo-handle is valid for every library.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, SYMBOL.as_ptr()) };
    release_said_by(next).or_else(|| {
        let mut found: Vec<Vec<u8>> = Vec::new();
        // SAFETY: the loader calls `add_libnetcdf` during this call alone, with the vector that it is given.
        unsafe { libc::dl_iterate_phdr(Some(add_libnetcdf), (&raw mut found).cast()) };
        found.iter().find_map(|path| of_library(path))
    })
}

/// Adds the path of a library to the list, if it is called libnetcdf.
unsafe extern "C" fn add_libnetcdf(
    info: *mut libc::dl_phdr_info,
    _: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: the loader hands over its description of one library, and our own vector.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Vec<Vec<u8>>>()) };
    if info.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: not null, and a NUL-terminated path.
    let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
    let name = Path::new(OsStr::from_bytes(path)).file_name().map_or(&b""[..], OsStrExt::as_bytes);
    if name.starts_with(b"libnetcdf") {
        // With the NUL, as dlopen wants it.
        found.push([path, b"\0"].concat());
    }
    0
}

fn of_library(path: &[u8]) -> Option<Release> {
    let path = CStr::from_bytes_with_nul(path).ok()?;
    // SAFETY: `path` is NUL-terminated; nothing is loaded that is not there, so no code of it runs.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if library.is_null() {
        return None;
    }
    // SAFETY: the handle is open, and SYMBOL NUL-terminated.
    let release = release_said_by(unsafe { libc::dlsym(library, SYMBOL.as_ptr()) });
    // SAFETY: opened above, once.
    unsafe { libc::dlclose(library) };
    release
}

/// The release that `nc_inq_libvers` of another library returns; `None` for that of this one.
fn release_said_by(function: *mut c_void) -> Option<Release> {
    if function.is_null() || function == nc_inq_libvers as *mut c_void {
        return None;
    }
    // SAFETY: a symbol of this name is netCDF's function, which takes nothing and gives a text that stays.
    let text = unsafe { std::mem::transmute::<*mut c_void, Libvers>(function)() };
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and NUL-terminated.
    let text = unsafe { CStr::from_ptr(text) }.to_str().ok()?;
    // Two copies of this library are not in front of anything.
    if text.contains(" of Zonda ") { None } else { Release::parse(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alone_there_is_none() {
        assert_eq!(release(), None);
        assert_eq!(release_said_by(std::ptr::null_mut()), None);
    }
}

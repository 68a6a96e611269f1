//! The folders searched for filter plugins, as one list of the process (netCDF-C 4.9.3 and later).

use std::ffi::{OsString, c_char, c_int};
use std::os::unix::ffi::OsStringExt;
use zonda_runtime::lock::{Global, Rank};

use zonda::NcError;
use zonda::storage::neighbour::from_env;

use crate::boundary::boundary;
use crate::c_memory::{bytes, malloc_strings, malloc_text, put};

/// Where HDF5 looks when nobody says otherwise.
const DEFAULT_DIR: &[u8] = b"/usr/local/hdf5/lib/plugin";

/// `NCPluginList`: folders as C holds them, each from `malloc`.
#[derive(Debug)]
#[repr(C)]
pub struct NcPluginList {
    /// Number of folders.
    pub ndirs: usize,
    /// The folders.
    pub dirs: *mut *mut c_char,
}

/// The list, first made from `HDF5_PLUGIN_PATH`.
fn with_list<R>(f: impl FnOnce(&mut Vec<Vec<u8>>) -> R) -> R {
    static LIST: Global<Option<Vec<Vec<u8>>>> = Global::new(Rank::Settings, None, || None);
    f(LIST.lock().get_or_insert_with(|| {
        let path = from_env("HDF5_PLUGIN_PATH").map(OsStringExt::into_vec);
        split(path.as_deref().unwrap_or(DEFAULT_DIR), b':')
    }))
}

/// The folders of a path list; none for an empty text.
pub(crate) fn split(text: &[u8], separator: u8) -> Vec<Vec<u8>> {
    if text.is_empty() {
        return Vec::new();
    }
    text.split(|&byte| byte == separator).map(<[u8]>::to_vec).collect()
}

/// A copy of the list in use.
pub(crate) fn current() -> Vec<Vec<u8>> {
    with_list(|list| list.clone())
}

/// Makes `dirs` the list in use.
pub(crate) fn replace(dirs: Vec<Vec<u8>>) {
    let folders = dirs.iter().cloned().map(|dir| OsString::from_vec(dir).into()).collect();
    with_list(|list| *list = dirs);
    zonda::set_plugin_path(folders);
}

/// The folders that a C list holds; null entries count as empty names.
///
/// # Safety
/// `dirs` points to `ndirs` strings, each null or NUL-terminated.
pub(crate) unsafe fn from_c(dirs: *const *mut c_char, ndirs: usize) -> Vec<Vec<u8>> {
    (0..ndirs)
        // SAFETY: `index` is below `ndirs`, and the strings are as the contract says.
        .map(|index| unsafe { bytes(*dirs.add(index)) }.unwrap_or_default().to_vec())
        .collect()
}

/// Stores folders into a C list: into its array if it has one, else into a new one.
///
/// # Safety
/// `to` is valid; its `dirs` is null, or has room for all.
pub(crate) unsafe fn to_c(to: *mut NcPluginList, dirs: &[Vec<u8>]) -> Result<(), NcError> {
    // SAFETY: `to` is valid by contract.
    let list = unsafe { &mut *to };
    if list.dirs.is_null() {
        if !dirs.is_empty() {
            list.dirs = malloc_strings(dirs, 0)?;
        }
    } else {
        for (index, dir) in dirs.iter().enumerate() {
            let copy = malloc_text(dir)?;
            // SAFETY: the array has room for all by contract.
            unsafe { list.dirs.add(index).write(copy) };
        }
    }
    list.ndirs = dirs.len();
    Ok(())
}

/// `int nc_plugin_path_ndirs(size_t *ndirsp);`
///
/// # Safety
/// `ndirsp` is null, or valid for a write of one `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_plugin_path_ndirs(ndirsp: *mut usize) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(ndirsp, with_list(|list| list.len())) };
        Ok(())
    })
}

/// `int nc_plugin_path_get(NCPluginList *dirs);`
///
/// # Safety
/// `dirs` is null, or valid; its array is null (one is made) or has room for all folders.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_plugin_path_get(dirs: *mut NcPluginList) -> c_int {
    boundary(|| {
        if dirs.is_null() {
            return Ok(());
        }
        // SAFETY: not null, the contract covers the rest.
        unsafe { to_c(dirs, &current()) }?;
        Ok(())
    })
}

/// `int nc_plugin_path_set(NCPluginList *dirs);`
///
/// No folders empties the list; a null pointer is `NC_EINVAL`.
///
/// # Safety
/// `dirs` is null, or holds `ndirs` NUL-terminated strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_plugin_path_set(dirs: *mut NcPluginList) -> c_int {
    boundary(|| {
        if dirs.is_null() {
            return Err(NcError::Inval.into());
        }
        // SAFETY: not null, and valid by contract.
        let (array, n) = unsafe { ((*dirs).dirs, (*dirs).ndirs) };
        if array.is_null() && n > 0 {
            return Err(NcError::Inval.into());
        }
        // SAFETY: `array` holds `n` strings by contract.
        replace(unsafe { from_c(array, n) });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn path_lists_split_at_every_separator() {
        assert!(split(b"", b':').is_empty());
        assert_eq!(split(b"/a", b':'), [b"/a".to_vec()]);
        assert_eq!(split(b"/a::b;c", b':'), [b"/a".to_vec(), b"".to_vec(), b"b;c".to_vec()]);
    }
}

//! `ncaux_plugin_path_*`: lists of plugin folders, from and to text.

use std::ffi::{c_char, c_int};

use zonda::NcError;

use crate::boundary::boundary;
use crate::c_memory::{bytes, malloc_copy, malloc_text, put, release};
use crate::plugin_path::{NcPluginList, current, from_c, replace, split, to_c};

/// Separator of the platform, where the caller names none.
const SEPARATOR: u8 = b':';
/// Separator of the list as one text, for Fortran.
const TEXT_SEPARATOR: u8 = b';';

fn separator(sep: c_char) -> u8 {
    if sep == 0 { SEPARATOR } else { u8::from_ne_bytes(sep.to_ne_bytes()) }
}

/// `int ncaux_plugin_path_parsen(size_t plen, const char *pathlist, char sep, NCPluginList *dirs);`
///
/// Reads at most `plen` bytes, up to a NUL. `dirs->dirs` is made if it is null.
///
/// # Safety
/// `pathlist` is null, or valid for `plen` bytes; `dirs` is null, or valid, with an array that is
/// null or has room for all folders.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_plugin_path_parsen(
    plen: usize,
    pathlist: *const c_char,
    sep: c_char,
    dirs: *mut NcPluginList,
) -> c_int {
    boundary(|| {
        // SAFETY: null or valid by contract.
        let Some(list) = (unsafe { dirs.as_mut() }) else {
            return Err(NcError::Inval.into());
        };
        if plen == 0 || pathlist.is_null() {
            list.ndirs = 0;
            return Ok(());
        }
        // SAFETY: valid for `plen` bytes by contract.
        let text = unsafe { std::slice::from_raw_parts(pathlist.cast::<u8>(), plen) };
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(plen);
        let mut found = split(&text[..end], separator(sep));
        if found.is_empty() {
            found.push(Vec::new());
        }
        // SAFETY: `dirs` is valid by contract.
        unsafe { to_c(dirs, &found) }?;
        Ok(())
    })
}

/// `int ncaux_plugin_path_parse(const char *pathlist, char sep, NCPluginList *dirs);`
///
/// # Safety
/// As [`ncaux_plugin_path_parsen`], with a NUL-terminated `pathlist`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_plugin_path_parse(
    pathlist: *const c_char,
    sep: c_char,
    dirs: *mut NcPluginList,
) -> c_int {
    // SAFETY: the contract is that of `bytes`.
    let len = unsafe { bytes(pathlist) }.map_or(0, <[u8]>::len);
    // SAFETY: same contract.
    unsafe { ncaux_plugin_path_parsen(len, pathlist, sep, dirs) }
}

/// `int ncaux_plugin_path_tostring(const NCPluginList *dirs, char sep, char **catp);`
///
/// # Safety
/// `dirs` is null, or valid with `ndirs` strings; `catp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_plugin_path_tostring(
    dirs: *const NcPluginList,
    sep: c_char,
    catp: *mut *mut c_char,
) -> c_int {
    boundary(|| {
        // SAFETY: null or valid by contract.
        let Some(list) = (unsafe { dirs.as_ref() }) else {
            return Err(NcError::Inval.into());
        };
        if list.dirs.is_null() && list.ndirs > 0 {
            return Err(NcError::Inval.into());
        }
        // SAFETY: `ndirs` strings by contract.
        let found = unsafe { from_c(list.dirs, list.ndirs) };
        if !catp.is_null() {
            let text = malloc_text(&found.join(&separator(sep)))?;
            // SAFETY: the contract above is `put`'s contract.
            unsafe { put(catp, text) };
        }
        Ok(())
    })
}

/// `int ncaux_plugin_path_clear(NCPluginList *dirs);` Frees the folders and their array.
///
/// # Safety
/// `dirs` is null, or valid with an array and strings from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_plugin_path_clear(dirs: *mut NcPluginList) -> c_int {
    boundary(|| {
        // SAFETY: null or valid by contract.
        let Some(list) = (unsafe { dirs.as_mut() }) else { return Ok(()) };
        if list.ndirs == 0 || list.dirs.is_null() {
            return Ok(());
        }
        for index in 0..list.ndirs {
            // SAFETY: `index` is below `ndirs`; the strings are from malloc.
            unsafe { release(*list.dirs.add(index)) };
        }
        // SAFETY: from malloc by contract.
        unsafe { release(list.dirs) };
        *list = NcPluginList { ndirs: 0, dirs: std::ptr::null_mut() };
        Ok(())
    })
}

/// `int ncaux_plugin_path_reclaim(NCPluginList *dirs);` Frees the list itself as well.
///
/// # Safety
/// As [`ncaux_plugin_path_clear`]; `dirs` is from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_plugin_path_reclaim(dirs: *mut NcPluginList) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { ncaux_plugin_path_clear(dirs) };
    if status == 0 {
        // SAFETY: from malloc by contract.
        unsafe { release(dirs) };
    }
    status
}

/// Puts one folder into a list, at the front or the end.
///
/// # Safety
/// As [`ncaux_plugin_path_append`].
unsafe fn insert(dirs: *mut NcPluginList, dir: *const c_char, in_front: bool) -> c_int {
    boundary(|| {
        // SAFETY: null or valid by contract.
        let (Some(list), Some(dir)) = (unsafe { (dirs.as_mut(), bytes(dir)) }) else {
            return Err(NcError::Inval.into());
        };
        let mut pointers = if list.dirs.is_null() {
            Vec::new()
        } else {
            // SAFETY: `ndirs` pointers by contract.
            unsafe { std::slice::from_raw_parts(list.dirs, list.ndirs) }.to_vec()
        };
        let at = if in_front { 0 } else { pointers.len() };
        pointers.insert(at, malloc_text(dir)?);
        let array = malloc_copy(&pointers)?;
        // SAFETY: the old array is from malloc; its strings live on in the new one.
        unsafe { release(list.dirs) };
        *list = NcPluginList { ndirs: pointers.len(), dirs: array };
        Ok(())
    })
}

/// `int ncaux_plugin_path_append(NCPluginList *dirs, const char *dir);`
///
/// # Safety
/// `dirs` is null, or valid with an array from `malloc`; `dir` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_plugin_path_append(
    dirs: *mut NcPluginList,
    dir: *const c_char,
) -> c_int {
    // SAFETY: same contract.
    unsafe { insert(dirs, dir, false) }
}

/// `int ncaux_plugin_path_prepend(NCPluginList *dirs, const char *dir);`
///
/// Puts the folder in front. (The reference writes it over the first one.)
///
/// # Safety
/// As [`ncaux_plugin_path_append`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_plugin_path_prepend(
    dirs: *mut NcPluginList,
    dir: *const c_char,
) -> c_int {
    // SAFETY: same contract.
    unsafe { insert(dirs, dir, true) }
}

fn as_text() -> Vec<u8> {
    current().join(&TEXT_SEPARATOR)
}

/// `int ncaux_plugin_path_stringlen(void);` Bytes of the list in use as one text, without a NUL.
#[unsafe(no_mangle)]
pub extern "C" fn ncaux_plugin_path_stringlen() -> c_int {
    let mut len = -1;
    boundary(|| {
        len = c_int::try_from(as_text().len()).map_err(|_| NcError::Internal)?;
        Ok(())
    });
    len
}

/// `int ncaux_plugin_path_stringget(int pathlen, char *path);`
///
/// Writes `pathlen` bytes: the text, cut if it is longer, and NULs after it.
///
/// # Safety
/// `path` is null, or valid for `pathlen` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_plugin_path_stringget(pathlen: c_int, path: *mut c_char) -> c_int {
    boundary(|| {
        let room = usize::try_from(pathlen).map_err(|_| NcError::Inval)?;
        if room == 0 || path.is_null() {
            return Err(NcError::Inval.into());
        }
        let mut text = as_text();
        text.truncate(room);
        // SAFETY: valid for `room` bytes by contract, of which the text is no more.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), path, text.len());
            std::ptr::write_bytes(path.add(text.len()), 0, room - text.len());
        }
        Ok(())
    })
}

/// `int ncaux_plugin_path_stringset(int pathlen, const char *path);`
///
/// # Safety
/// `path` is null, or valid for `pathlen` bytes or up to a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_plugin_path_stringset(pathlen: c_int, path: *const c_char) -> c_int {
    boundary(|| {
        let len = usize::try_from(pathlen).map_err(|_| NcError::Inval)?;
        if len == 0 || path.is_null() {
            return Err(NcError::Inval.into());
        }
        // SAFETY: strnlen looks at `len` bytes at most, and stops at a NUL.
        let len = unsafe { libc::strnlen(path, len) };
        // SAFETY: that many bytes are there.
        let text = unsafe { std::slice::from_raw_parts(path.cast::<u8>(), len) };
        replace(split(text, TEXT_SEPARATOR));
        Ok(())
    })
}

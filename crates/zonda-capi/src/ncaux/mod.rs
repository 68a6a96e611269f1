//! `ncaux_*`: helpers around types, filters and plugin folders.
//!
//! The folder is not called `aux`, a name that Windows reserves.

mod compound;
mod filter_spec;
mod path_list;
mod provenance;

use std::ffi::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use zonda::NcError;

use crate::boundary::boundary;
use crate::c_memory::{bytes, malloc_copy, put, put_text};
use crate::failure::CallFailure;
use crate::types::{FIRST_USER_TYPE, NcType, STRING, atomic};
use crate::user_types::nc_inq_user_type;
use crate::values::{
    nc_copy_data, nc_copy_data_all, nc_dump_data, nc_reclaim_data, nc_reclaim_data_all,
};

/// `NC_VLEN`, `NC_OPAQUE`: classes of user-defined types.
const VLEN: c_int = 13;
const OPAQUE: c_int = 14;

/// Alignment in bytes that C gives to values of an atomic type or of a class of types.
fn alignment(class: c_int) -> Option<usize> {
    match class {
        VLEN => Some(align_of::<crate::value_walk::NcVlen>()),
        OPAQUE => Some(1),
        STRING => Some(align_of::<*mut c_char>()),
        // On the platforms that Zonda knows, numbers align to their size.
        atomic_type => atomic(atomic_type).map(|(_, size)| size),
    }
}

/// `int ncaux_class_alignment(int ncclass, size_t *alignp);`
///
/// `NC_EINVAL`, with 0 in `*alignp`, where the class has none: enums and compounds.
///
/// # Safety
/// `alignp` is null, or valid for a write of one `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_class_alignment(ncclass: c_int, alignp: *mut usize) -> c_int {
    boundary(|| {
        let found = alignment(ncclass);
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(alignp, found.unwrap_or(0)) };
        found.map(|_| ()).ok_or_else(|| NcError::Inval.into())
    })
}

/// `int ncaux_type_alignment(int xtype, int ncid, size_t *alignp);`
///
/// # Safety
/// `alignp` is null, or valid for a write of one `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_type_alignment(
    xtype: c_int,
    ncid: c_int,
    alignp: *mut usize,
) -> c_int {
    boundary(|| {
        if xtype > STRING {
            crate::values::size_in_memory(ncid, xtype)?;
        }
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(alignp, alignment(xtype).unwrap_or(0)) };
        Ok(())
    })
}

/// `int ncaux_inq_any_type(int ncid, nc_type xtype, char *name, size_t *size, nc_type *basetypep, size_t *nfieldsp, int *classp);`
///
/// # Safety
/// `name` is null, or valid for `NC_MAX_NAME + 1` bytes; the others are null, or valid for a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_inq_any_type(
    ncid: c_int,
    xtype: NcType,
    name: *mut c_char,
    size: *mut usize,
    basetypep: *mut NcType,
    nfieldsp: *mut usize,
    classp: *mut c_int,
) -> c_int {
    if xtype >= FIRST_USER_TYPE {
        // SAFETY: same contract.
        return unsafe { nc_inq_user_type(ncid, xtype, name, size, basetypep, nfieldsp, classp) };
    }
    boundary(|| {
        let (text, bytes) = atomic(xtype).ok_or(NcError::BadType)?;
        // SAFETY: type names are shorter than NC_MAX_NAME; the contract covers the rest.
        unsafe {
            put_text(name, text.as_bytes());
            put(size, bytes);
            put(basetypep, 0);
            put(nfieldsp, 0);
            put(classp, xtype);
        }
        Ok(())
    })
}

/// `int ncaux_reclaim_data(int ncid, int xtype, void *memory, size_t count);`
///
/// # Safety
/// As [`nc_reclaim_data`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_reclaim_data(
    ncid: c_int,
    xtype: c_int,
    memory: *mut c_void,
    count: usize,
) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_reclaim_data(ncid, xtype, memory, count) }
}

/// `int ncaux_reclaim_data_all(int ncid, int xtype, void *memory, size_t count);`
///
/// # Safety
/// As [`nc_reclaim_data_all`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_reclaim_data_all(
    ncid: c_int,
    xtype: c_int,
    memory: *mut c_void,
    count: usize,
) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_reclaim_data_all(ncid, xtype, memory, count) }
}

/// `int ncaux_copy_data(int ncid, int xtype, void *memory, size_t count, void *copy);`
///
/// # Safety
/// As [`nc_copy_data`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_copy_data(
    ncid: c_int,
    xtype: c_int,
    memory: *mut c_void,
    count: usize,
    copy: *mut c_void,
) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_copy_data(ncid, xtype, memory, count, copy) }
}

/// `int ncaux_copy_data_all(int ncid, int xtype, void *memory, size_t count, void **copyp);`
///
/// # Safety
/// As [`nc_copy_data_all`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_copy_data_all(
    ncid: c_int,
    xtype: c_int,
    memory: *mut c_void,
    count: usize,
    copyp: *mut *mut c_void,
) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_copy_data_all(ncid, xtype, memory, count, copyp) }
}

/// `int ncaux_dump_data(int ncid, nc_type xtypeid, void *memory, size_t count, char **buf);`
///
/// # Safety
/// As [`nc_dump_data`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_dump_data(
    ncid: c_int,
    xtype: NcType,
    memory: *mut c_void,
    count: usize,
    bufp: *mut *mut c_char,
) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_dump_data(ncid, xtype, memory, count, bufp) }
}

/// The `errno` of a failed call.
fn system(error: std::io::Error) -> CallFailure {
    error.raw_os_error().map_or(NcError::Io, NcError::System).into()
}

/// `int ncaux_readfile(const char *filename, size_t *sizep, void **content);`
///
/// The whole file in memory that the caller frees, with a NUL after its last byte.
///
/// # Safety
/// `filename` is null or a NUL-terminated string; the others are null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_readfile(
    filename: *const c_char,
    sizep: *mut usize,
    contentp: *mut *mut c_void,
) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(filename) }.ok_or(NcError::Inval)?;
        let mut content =
            std::fs::read(Path::new(std::ffi::OsStr::from_bytes(name))).map_err(system)?;
        let size = content.len();
        content.push(0);
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            put(sizep, size);
            if !contentp.is_null() {
                contentp.write(malloc_copy(&content)?.cast());
            }
        }
        Ok(())
    })
}

/// `int ncaux_writefile(const char *filename, size_t size, void *content);`
///
/// Replaces the file; null content is an empty file.
///
/// # Safety
/// `filename` is null or a NUL-terminated string; `content` is null, or valid for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_writefile(
    filename: *const c_char,
    size: usize,
    content: *mut c_void,
) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is that of `bytes`.
        let name = unsafe { bytes(filename) }.ok_or(NcError::Inval)?;
        let content: &[u8] = if content.is_null() || size == 0 {
            &[]
        } else {
            // SAFETY: valid for `size` bytes by contract.
            unsafe { std::slice::from_raw_parts(content.cast(), size) }
        };
        let path = Path::new(std::ffi::OsStr::from_bytes(name));
        zonda::storage::whole::write(path, content).map_err(system)?;
        Ok(())
    })
}

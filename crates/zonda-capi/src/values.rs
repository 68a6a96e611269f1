//! Values in the caller's memory: freeing, copying and printing them, with all that they point to.
//!
//! With classic files only the atomic types occur, plus `NC_STRING` where a caller made strings
//! with another file; user-defined type ids are answered as by a file that has none. The walk
//! through nested values is in `value_walk.rs`.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use zonda::NcError;

use crate::boundary::boundary;
use crate::c_memory::{malloc_text, put, release};
use crate::failure::CallFailure;
use crate::handles::{self, FileRef};
use crate::types::{FIRST_USER_TYPE, NcType, STRING, atomic, nc_inq_type};
use crate::user_format::{self, type_list};
use crate::value_walk::{ElementLayout, NcVlen, UserTypes, ValueWalk};

/// Bytes of one element in memory.
///
/// The file matters for user-defined types only: with an atomic type, the reference accepts any
/// `ncid` that is not negative.
pub(crate) fn size_in_memory(ncid: c_int, xtype: NcType) -> Result<usize, NcError> {
    if xtype >= FIRST_USER_TYPE {
        if user_format::table_of(ncid).is_some() {
            let mut size = 0;
            // SAFETY: the size goes to a local.
            return match unsafe { nc_inq_type(ncid, xtype, null_mut(), &raw mut size) } {
                0 => Ok(size),
                code => Err(NcError::from_code(code).unwrap_or(NcError::BadType)),
            };
        }
        let file = user_file(ncid)?;
        let size = file.meta(|meta| meta.type_size(xtype)).map_err(|failure| failure.code())?;
        return size.map_err(|error| error.code());
    }
    atomic(xtype).map(|(_, size)| size).ok_or(NcError::BadType)
}

/// A file with user-defined types.
fn user_file(ncid: c_int) -> Result<FileRef, NcError> {
    let file = handles::file(ncid)?;
    if file.dataset.capabilities().user_types { Ok(file) } else { Err(NcError::NotNc4) }
}

/// Calls `f` with a walk through values of a type, and the layout of its elements.
fn with_walk<R>(
    ncid: c_int,
    xtype: NcType,
    f: impl FnOnce(&ValueWalk<'_>, ElementLayout<'_>) -> Result<R, NcError>,
) -> Result<R, CallFailure> {
    if let Some((_, size)) = atomic(xtype) {
        let layout = if xtype == STRING { ElementLayout::Text } else { ElementLayout::Plain(size) };
        return Ok(f(&ValueWalk { types: UserTypes::InList(&[]) }, layout)?);
    }
    if user_format::table_of(ncid).is_some() {
        let types = type_list::types_of(ncid, xtype)
            .map_err(|code| NcError::from_code(code).unwrap_or(NcError::BadType))?;
        let walk = ValueWalk { types: UserTypes::InList(&types) };
        let layout = walk.layout(xtype).ok_or(NcError::BadType)?;
        return Ok(f(&walk, layout)?);
    }
    let file = user_file(ncid)?;
    file.meta(|meta| {
        let walk = ValueWalk { types: UserTypes::InFile(meta) };
        let layout = walk.layout(xtype).ok_or(NcError::BadType)?;
        Ok(f(&walk, layout)?)
    })?
}

/// The checks that all three operations start with. `Ok(false)` where there are no values.
fn has_values(
    ncid: c_int,
    xtype: NcType,
    memory: *const c_void,
    count: usize,
) -> Result<bool, NcError> {
    if ncid < 0 || xtype <= 0 || (memory.is_null() && count > 0) {
        return Err(NcError::Inval);
    }
    Ok(!memory.is_null() && count > 0)
}

/// `int nc_free_string(size_t len, char **data);`
///
/// Frees the strings; the array of pointers stays the caller's.
///
/// # Safety
/// `data` points to `len` pointers, each null or from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_free_string(len: usize, data: *mut *mut c_char) -> c_int {
    boundary(|| {
        if data.is_null() && len > 0 {
            return Err(NcError::Inval.into());
        }
        for index in 0..len {
            // SAFETY: `index` is below `len`; the strings are from malloc.
            unsafe { release(*data.add(index)) };
        }
        Ok(())
    })
}

/// `int nc_free_vlen(nc_vlen_t *vl);`
///
/// # Safety
/// `vl` is null, or points to an element whose memory is null or from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_free_vlen(vl: *mut NcVlen) -> c_int {
    // SAFETY: same contract, one element.
    unsafe { nc_free_vlens(usize::from(!vl.is_null()), vl) }
}

/// `int nc_free_vlens(size_t len, nc_vlen_t vlens[]);`
///
/// # Safety
/// `vlens` points to `len` elements as for [`nc_free_vlen`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_free_vlens(len: usize, vlens: *mut NcVlen) -> c_int {
    boundary(|| {
        if vlens.is_null() && len > 0 {
            return Err(NcError::Inval.into());
        }
        for index in 0..len {
            // SAFETY: `index` is below `len`; the memory is from malloc.
            unsafe { release((*vlens.add(index)).p) };
        }
        Ok(())
    })
}

/// `int nc_reclaim_data(int ncid, nc_type xtype, void *memory, size_t count);`
///
/// Frees what `count` elements own, not the elements themselves.
///
/// # Safety
/// `memory` is null, or holds `count` elements of the type, made by `malloc` where they own
/// memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_reclaim_data(
    ncid: c_int,
    xtype: NcType,
    memory: *mut c_void,
    count: usize,
) -> c_int {
    boundary(|| {
        if !has_values(ncid, xtype, memory, count)? {
            return Ok(());
        }
        // Ids between the atomic and the user-defined types are looked up in the file as well.
        with_walk(ncid, xtype, |walk, layout| {
            // SAFETY: the contract above.
            unsafe { walk.reclaim(layout, memory.cast(), count) };
            Ok(())
        })
    })
}

/// `int nc_reclaim_data_all(int ncid, nc_type xtype, void *memory, size_t count);`
///
/// [`nc_reclaim_data`], and then frees `memory` too.
///
/// # Safety
/// As [`nc_reclaim_data`]; `memory` is from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_reclaim_data_all(
    ncid: c_int,
    xtype: NcType,
    memory: *mut c_void,
    count: usize,
) -> c_int {
    // SAFETY: same contract.
    let status = unsafe { nc_reclaim_data(ncid, xtype, memory, count) };
    if status == 0 {
        // SAFETY: the contract says it is from malloc, and its parts are gone.
        unsafe { release(memory) };
    }
    status
}

/// `int nc_copy_data(int ncid, nc_type xtype, const void *memory, size_t count, void *copy);`
///
/// # Safety
/// `memory` is null or holds `count` elements; `copy` is null or has room for as many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_copy_data(
    ncid: c_int,
    xtype: NcType,
    memory: *const c_void,
    count: usize,
    copy: *mut c_void,
) -> c_int {
    boundary(|| {
        let has_values = has_values(ncid, xtype, memory, count)?;
        if copy.is_null() && count > 0 {
            return Err(NcError::Inval.into());
        }
        if !has_values {
            return Ok(());
        }
        size_in_memory(ncid, xtype)?;
        with_walk(ncid, xtype, |walk, layout| {
            // SAFETY: the contract above.
            unsafe { walk.copy(layout, memory.cast(), copy.cast(), count) }
        })
    })
}

/// `int nc_copy_data_all(int ncid, nc_type xtype, const void *memory, size_t count, void **copyp);`
///
/// The copy is the caller's, for [`nc_reclaim_data_all`]; null when `count` is 0.
///
/// # Safety
/// `memory` is null or holds `count` elements; `copyp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_copy_data_all(
    ncid: c_int,
    xtype: NcType,
    memory: *const c_void,
    count: usize,
    copyp: *mut *mut c_void,
) -> c_int {
    let mut copy = std::ptr::null_mut();
    let status = boundary(|| {
        let size = size_in_memory(ncid, xtype)?;
        if count > 0 {
            // SAFETY: calloc takes any numbers, and checks their product.
            copy = unsafe { libc::calloc(count, size) };
            if copy.is_null() {
                return Err(NcError::NoMem.into());
            }
        }
        Ok(())
    });
    if status != 0 {
        return status;
    }
    // SAFETY: `copy` has room for `count` elements, the rest is the caller's contract.
    let status = unsafe { nc_copy_data(ncid, xtype, memory, count, copy) };
    if copyp.is_null() {
        // SAFETY: zeroed memory of calloc, filled as far as it went.
        return unsafe { nc_reclaim_data_all(ncid.max(0), xtype, copy, count) };
    }
    // SAFETY: the contract above is `put`'s contract.
    unsafe { put(copyp, copy) };
    status
}

/// `int nc_dump_data(int ncid, nc_type xtype, void *memory, size_t count, char **buf);`
///
/// The elements as text, separated by blanks, in memory that the caller frees. `*buf` is left
/// alone when `count` is 0.
///
/// # Safety
/// `memory` is null or holds `count` elements; `bufp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_dump_data(
    ncid: c_int,
    xtype: NcType,
    memory: *mut c_void,
    count: usize,
    bufp: *mut *mut c_char,
) -> c_int {
    boundary(|| {
        if !has_values(ncid, xtype, memory, count)? {
            return Ok(());
        }
        size_in_memory(ncid, xtype)?;
        let text = with_walk(ncid, xtype, |walk, layout| {
            let mut text = Vec::new();
            let size = walk.elem_bytes(layout);
            for index in 0..count {
                if index > 0 {
                    text.push(b' ');
                }
                // SAFETY: `index` is below `count`.
                unsafe { walk.print(xtype, memory.cast::<u8>().add(index * size), &mut text) };
            }
            Ok(text)
        })?;
        if !bufp.is_null() {
            let copy = malloc_text(&text)?;
            // SAFETY: the contract above is `put`'s contract.
            unsafe { put(bufp, copy) };
        }
        Ok(())
    })
}

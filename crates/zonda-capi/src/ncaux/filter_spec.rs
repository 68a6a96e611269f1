//! `ncaux_h5filterspec_*`: filters as text, `id,parameter,parameter…` ([`zonda::filter_text`]).

use std::ffi::{c_char, c_int, c_uchar, c_uint};

use zonda::NcError;
use zonda::filter_text::{filter, list, parameter};

use crate::boundary::boundary;
use crate::c_memory::{bytes, malloc_copy, put, release};

/// `NC_H5_Filterspec`: a filter and its parameters, from `malloc`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NcFilterSpec {
    /// Registered id of the filter.
    pub filterid: c_uint,
    /// Number of words.
    pub nparams: usize,
    /// The words.
    pub params: *mut c_uint,
}

/// `int ncaux_h5filterspec_parse(const char *txt, unsigned int *idp, size_t *nparamsp, unsigned int **paramsp);`
///
/// `NC_EINVAL` for a null, empty or malformed text; then nothing is written.
///
/// # Safety
/// `txt` is null or a NUL-terminated string; the others are null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_h5filterspec_parse(
    txt: *const c_char,
    idp: *mut c_uint,
    nparamsp: *mut usize,
    paramsp: *mut *mut c_uint,
) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is that of `bytes`.
        let (id, words) = unsafe { bytes(txt) }.and_then(filter).ok_or(NcError::Inval)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            if !paramsp.is_null() {
                paramsp.write(malloc_copy(&words)?);
            }
            put(idp, id);
            put(nparamsp, words.len());
        }
        Ok(())
    })
}

/// `int ncaux_h5filterspec_parse_parameter(const char *txt, size_t *nuiparamsp, unsigned int *uiparams);`
///
/// # Safety
/// `txt` is null or a NUL-terminated string; `nuiparamsp` is null, or valid for a write;
/// `uiparams` has room for two words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_h5filterspec_parse_parameter(
    txt: *const c_char,
    nuiparamsp: *mut usize,
    uiparams: *mut c_uint,
) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is that of `bytes`.
        let words = unsafe { bytes(txt) }.and_then(parameter).ok_or(NcError::Inval)?;
        if !uiparams.is_null() {
            // SAFETY: room for two words, and there are no more.
            unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), uiparams, words.len()) };
        }
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(nuiparamsp, words.len()) };
        Ok(())
    })
}

/// `int ncaux_h5filterspec_parselist(const char *txt, int *formatp, size_t *nspecsp, NC_H5_Filterspec ***vectorp);`
///
/// The array, from `malloc`, holds filters for [`ncaux_h5filterspec_free`]; it is null when there
/// are none.
///
/// # Safety
/// `txt` is null or a NUL-terminated string; the others are null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_h5filterspec_parselist(
    txt: *const c_char,
    formatp: *mut c_int,
    nspecsp: *mut usize,
    vectorp: *mut *mut *mut NcFilterSpec,
) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is that of `bytes`.
        let (format, filters) = unsafe { bytes(txt) }.and_then(list).ok_or(NcError::Inval)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            put(formatp, format);
            put(nspecsp, filters.len());
            if !vectorp.is_null() {
                vectorp.write(specs_for_c(&filters)?);
            }
        }
        Ok(())
    })
}

fn specs_for_c(filters: &[(u32, Vec<u32>)]) -> Result<*mut *mut NcFilterSpec, NcError> {
    if filters.is_empty() {
        return Ok(std::ptr::null_mut());
    }
    let mut made: Vec<*mut NcFilterSpec> = Vec::with_capacity(filters.len());
    let result = (|| {
        for (id, words) in filters {
            let params = malloc_copy(words)?;
            let spec = NcFilterSpec { filterid: *id, nparams: words.len(), params };
            // Should this fail, the words of one filter leak: memory is gone anyway.
            made.push(malloc_copy(&[spec])?);
        }
        malloc_copy(&made)
    })();
    if result.is_err() {
        for spec in made {
            // SAFETY: just made, and known to nobody.
            unsafe { ncaux_h5filterspec_free(spec) };
        }
    }
    result
}

/// `void ncaux_h5filterspec_free(NC_H5_Filterspec *f);`
///
/// # Safety
/// `f` is null, or from [`ncaux_h5filterspec_parselist`] and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_h5filterspec_free(f: *mut NcFilterSpec) {
    // SAFETY: null or valid by contract; both parts are from malloc.
    unsafe {
        if let Some(spec) = f.as_ref() {
            release(spec.params);
        }
        release(f);
    }
}

/// `void ncaux_h5filterspec_fix8(unsigned char *mem, int decode);`
///
/// Brings the bytes of a two-word parameter into the order of little-endian machines; on those
/// there is nothing to do.
///
/// # Safety
/// `mem` is valid for 8 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncaux_h5filterspec_fix8(_mem: *mut c_uchar, _decode: c_int) {}

const _: () = assert!(cfg!(target_endian = "little"), "fix8 has to swap words and bytes here");

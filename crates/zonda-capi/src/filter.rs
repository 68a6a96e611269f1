//! Filters of chunked variables. Classic files store numbers as they are: nothing can be defined
//! on them, and inquiries report "none".
//!
//! The functions of single filters answer as a reference that was built with that filter, because
//! Zonda has them built in. (One built without Zstandard or Blosc accepts their definitions,
//! compresses nothing and says `NC_NOERR`.)

use std::ffi::{c_int, c_uint};

use zonda::{NcError, VarId};

use crate::boundary::{boundary, put};
use crate::handles;

/// Checks that `varid` names a variable; `NC_GLOBAL` does not.
pub(crate) fn check_var(ncid: c_int, varid: c_int) -> Result<(), NcError> {
    let file = handles::file(ncid)?;
    file.dataset.meta(|meta| meta.var(VarId(varid)).map(|_| ())).map_err(|error| error.code())
}

/// What every definition of a netCDF-4 property says to a classic file.
macro_rules! definitions {
    ($($prototype:literal fn $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[doc = concat!("`", $prototype, "`")]
        ///
        /// `NC_ENOTNC4` for a classic file, whatever the variable.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(ncid: c_int, _varid: c_int, $($argument: $type),*) -> c_int {
            $( let _ = $argument; )*
            boundary(|| {
                handles::file(ncid)?;
                Err(NcError::NotNc4.into())
            })
        }
    )*};
}

definitions! {
    "int nc_def_var_deflate(int ncid, int varid, int shuffle, int deflate, int deflate_level);"
    fn nc_def_var_deflate(shuffle: c_int, deflate: c_int, deflate_level: c_int);
    "int nc_def_var_fletcher32(int ncid, int varid, int fletcher32);"
    fn nc_def_var_fletcher32(fletcher32: c_int);
}

/// `int nc_def_var_filter(int ncid, int varid, unsigned int id, size_t nparams, const unsigned int *params);`
///
/// # Safety
/// The pointer is not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_var_filter(
    ncid: c_int,
    varid: c_int,
    _id: c_uint,
    _nparams: usize,
    _params: *const c_uint,
) -> c_int {
    boundary(|| {
        check_var(ncid, varid)?;
        Err(NcError::NotNc4.into())
    })
}

/// `int nc_def_var_szip(int ncid, int varid, int options_mask, int pixels_per_block);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_def_var_szip(
    ncid: c_int,
    varid: c_int,
    _options_mask: c_int,
    _pixels_per_block: c_int,
) -> c_int {
    boundary(|| {
        check_var(ncid, varid)?;
        Err(NcError::NotNc4.into())
    })
}

/// `int nc_inq_var_deflate(int ncid, int varid, int *shufflep, int *deflatep, int *deflate_levelp);`
///
/// The variable is looked at only if the shuffle is asked for, as in the reference.
///
/// # Safety
/// Each pointer is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_deflate(
    ncid: c_int,
    varid: c_int,
    shufflep: *mut c_int,
    deflatep: *mut c_int,
    deflate_levelp: *mut c_int,
) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            put(deflatep, 0);
            put(deflate_levelp, 0);
        }
        if !shufflep.is_null() {
            check_var(ncid, varid)?;
            // SAFETY: as above.
            unsafe { put(shufflep, 0) };
        }
        Ok(())
    })
}

/// `int nc_inq_var_fletcher32(int ncid, int varid, int *fletcher32p);`
///
/// # Safety
/// `fletcher32p` is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_fletcher32(
    ncid: c_int,
    varid: c_int,
    fletcher32p: *mut c_int,
) -> c_int {
    boundary(|| {
        check_var(ncid, varid)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(fletcher32p, 0) };
        Ok(())
    })
}

/// `int nc_inq_var_szip(int ncid, int varid, int *options_maskp, int *pixels_per_blockp);`
///
/// # Safety
/// Each pointer is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_szip(
    ncid: c_int,
    _varid: c_int,
    options_maskp: *mut c_int,
    pixels_per_blockp: *mut c_int,
) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            put(options_maskp, 0);
            put(pixels_per_blockp, 0);
        }
        Ok(())
    })
}

/// `int nc_inq_var_filter(int ncid, int varid, unsigned int *idp, size_t *nparams, unsigned int *params);`
///
/// # Safety
/// `idp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_filter(
    ncid: c_int,
    _varid: c_int,
    idp: *mut c_uint,
    _nparams: *mut usize,
    _params: *mut c_uint,
) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(idp, 0) };
        Ok(())
    })
}

/// `int nc_inq_var_filter_ids(int ncid, int varid, size_t *nfilters, unsigned int *filterids);`
///
/// # Safety
/// `nfilters` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_filter_ids(
    ncid: c_int,
    _varid: c_int,
    nfilters: *mut usize,
    _filterids: *mut c_uint,
) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(nfilters, 0) };
        Ok(())
    })
}

/// `int nc_inq_var_filter_info(int ncid, int varid, unsigned int id, size_t *nparams, unsigned int *params);`
///
/// # Safety
/// The pointers are not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_filter_info(
    ncid: c_int,
    _varid: c_int,
    _id: c_uint,
    _nparams: *mut usize,
    _params: *mut c_uint,
) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        Err(NcError::NoFilter.into())
    })
}

/// `int nc_inq_filter_avail(int ncid, unsigned id);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_inq_filter_avail(ncid: c_int, _id: c_uint) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        Err(NcError::NoFilter.into())
    })
}

/// `int nc_filter_path_query(int id);`
///
/// Whether a filter is available to files in general. `NC_ENOFILTER` for every id: no format that
/// filters is built yet.
#[unsafe(no_mangle)]
pub extern "C" fn nc_filter_path_query(_id: c_int) -> c_int {
    boundary(|| Err(NcError::NoFilter.into()))
}

/// `int nc_def_var_bzip2(int ncid, int varid, int level);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_def_var_bzip2(ncid: c_int, _varid: c_int, _level: c_int) -> c_int {
    nc_inq_filter_avail(ncid, 307)
}

/// `int nc_def_var_zstandard(int ncid, int varid, int level);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_def_var_zstandard(ncid: c_int, _varid: c_int, _level: c_int) -> c_int {
    nc_inq_filter_avail(ncid, 32015)
}

/// `int nc_def_var_blosc(int ncid, int varid, unsigned subcompressor, unsigned level, unsigned blocksize, unsigned addshuffle);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_def_var_blosc(
    ncid: c_int,
    _varid: c_int,
    _subcompressor: c_uint,
    _level: c_uint,
    _blocksize: c_uint,
    _addshuffle: c_uint,
) -> c_int {
    nc_inq_filter_avail(ncid, 32001)
}

/// `int nc_inq_var_bzip2(int ncid, int varid, int *hasfilterp, int *levelp);`
///
/// Both results are written on failure too, as in the reference.
///
/// # Safety
/// Each pointer is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_bzip2(
    ncid: c_int,
    _varid: c_int,
    hasfilterp: *mut c_int,
    levelp: *mut c_int,
) -> c_int {
    // SAFETY: the contract above is `put`'s contract.
    unsafe {
        put(levelp, 0);
        put(hasfilterp, 0);
    }
    nc_inq_filter_avail(ncid, 307)
}

/// `int nc_inq_var_zstandard(int ncid, int varid, int *hasfilterp, int *levelp);`
///
/// # Safety
/// As [`nc_inq_var_bzip2`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_zstandard(
    ncid: c_int,
    varid: c_int,
    hasfilterp: *mut c_int,
    levelp: *mut c_int,
) -> c_int {
    // SAFETY: same contract; on a classic file the two differ in nothing.
    unsafe { nc_inq_var_bzip2(ncid, varid, hasfilterp, levelp) }
}

/// `int nc_inq_var_blosc(int ncid, int varid, int *hasfilterp, unsigned *subcompressorp, unsigned *levelp, unsigned *blocksizep, unsigned *addshufflep);`
///
/// # Safety
/// `hasfilterp` is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_blosc(
    ncid: c_int,
    _varid: c_int,
    hasfilterp: *mut c_int,
    _subcompressorp: *mut c_uint,
    _levelp: *mut c_uint,
    _blocksizep: *mut c_uint,
    _addshufflep: *mut c_uint,
) -> c_int {
    // SAFETY: the contract above is `put`'s contract.
    unsafe { put(hasfilterp, 0) };
    nc_inq_filter_avail(ncid, 32001)
}

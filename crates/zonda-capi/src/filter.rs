//! Filters of chunked variables. Classic files store numbers as they are: nothing can be defined
//! on them, and inquiries report "none".
//!
//! The functions of single filters answer as a reference that was built with that filter, because
//! Zonda has them built in. (One built without Zstandard or Blosc accepts their definitions,
//! compresses nothing and says `NC_NOERR`.)

use std::ffi::{c_int, c_uint};

use zonda::{FilterSpec, NcError, VarInfo};

use crate::boundary::boundary;
use crate::c_memory::{put, put_list, slice};
use crate::failure::CallResult;
use crate::handles;
use crate::stored_var::{file_with_storage, file_with_var, var_info};
use crate::user_format::filters;
use crate::user_format::members::{self, VarProperty};
use crate::user_format::to_user_format;

const DEFLATE: u32 = 1;
const SHUFFLE: u32 = 2;
const FLETCHER32: u32 = 3;
const SZIP: u32 = 4;
const BZIP2: u32 = 307;
const BLOSC: u32 = 32001;
const ZSTANDARD: u32 = 32015;
/// The last number that HDF5 has for a filter.
const LAST_FILTER: u32 = 65535;

fn find(info: &VarInfo, id: u32) -> Option<&FilterSpec> {
    info.filters.iter().find(|filter| filter.id == id)
}

/// A parameter of a filter as an int; 0 where there is none.
fn param(filter: Option<&FilterSpec>, index: usize) -> c_int {
    filter.and_then(|filter| filter.params.get(index)).map_or(0, |&value| value as c_int)
}

/// `int nc_def_var_deflate(int ncid, int varid, int shuffle, int deflate, int deflate_level);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_def_var_deflate(
    ncid: c_int,
    varid: c_int,
    shuffle: c_int,
    deflate: c_int,
    deflate_level: c_int,
) -> c_int {
    to_user_format!(ncid, def_var_deflate(ncid, varid, shuffle, deflate, deflate_level));
    boundary(|| {
        let file = file_with_storage(ncid, NcError::NotNc4)?;
        let level = (deflate != 0).then_some(deflate_level);
        let defined = file.dataset.def_var_deflate(file.var(varid), shuffle != 0, level);
        defined.map_err(|error| file.failure(error))
    })
}

/// `int nc_def_var_fletcher32(int ncid, int varid, int fletcher32);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_def_var_fletcher32(ncid: c_int, varid: c_int, fletcher32: c_int) -> c_int {
    to_user_format!(ncid, def_var_fletcher32(ncid, varid, fletcher32));
    boundary(|| {
        let file = file_with_storage(ncid, NcError::NotNc4)?;
        let defined = file.dataset.def_var_fletcher32(file.var(varid), fletcher32 != 0);
        defined.map_err(|error| file.failure(error))
    })
}

/// Gives a variable a filter. The variable is checked first; where the file is not in define mode, the
/// code is `NC_EINDEFINE`, as in the reference.
fn add_filter(ncid: c_int, varid: c_int, id: u32, params: &[u32]) -> CallResult {
    let file = file_with_var(ncid, varid)?;
    if !file.dataset.capabilities().storage {
        return Err(NcError::NotNc4.into());
    }
    if !file.dataset.in_define_mode() {
        return Err(NcError::InDefine.into());
    }
    // The flag that newer references set, too. A put fails where the plugin fails.
    let (optional, name) = (true, String::new());
    let filter = FilterSpec { id, optional, name, params: params.to_vec() };
    let defined = file.dataset.def_var_filter(file.var(varid), filter);
    defined.map_err(|error| file.failure(error))
}

/// `int nc_def_var_filter(int ncid, int varid, unsigned int id, size_t nparams, const unsigned int *params);`
///
/// # Safety
/// `params` is null or holds `nparams` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_var_filter(
    ncid: c_int,
    varid: c_int,
    id: c_uint,
    nparams: usize,
    params: *const c_uint,
) -> c_int {
    // SAFETY: same contract.
    to_user_format!(ncid, |table| unsafe {
        filters::def_filter(table, (ncid, varid), id, nparams, params)
    });
    boundary(|| {
        if nparams != 0 && params.is_null() {
            file_with_var(ncid, varid)?;
            return Err(NcError::Inval.into());
        }
        // More than a file can hold are refused whatever they are, but only after the filter is checked.
        let n_read = nparams.min(zonda::MOST_FILTER_PARAMS + 1);
        // SAFETY: the contract above; null only where nothing is read.
        add_filter(ncid, varid, id, unsafe { slice(params, n_read) })
    })
}

/// `int nc_def_var_szip(int ncid, int varid, int options_mask, int pixels_per_block);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_def_var_szip(
    ncid: c_int,
    varid: c_int,
    options_mask: c_int,
    pixels_per_block: c_int,
) -> c_int {
    let params = [options_mask.cast_unsigned(), pixels_per_block.cast_unsigned()];
    // SAFETY: two parameters.
    to_user_format!(ncid, |table| unsafe {
        filters::def_filter(table, (ncid, varid), SZIP, params.len(), params.as_ptr())
    });
    boundary(|| add_filter(ncid, varid, SZIP, &params))
}

/// `int nc_inq_var_deflate(int ncid, int varid, int *shufflep, int *deflatep, int *deflate_levelp);`
///
/// Of a classic file the variable is looked at only if the shuffle is asked for, as in the
/// reference.
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
    // SAFETY: same contract.
    to_user_format!(ncid, |table| unsafe {
        filters::deflate(table, (ncid, varid), shufflep, deflatep, deflate_levelp)
    });
    boundary(|| {
        let file = handles::file(ncid)?;
        if let Some(info) = var_info(&file, varid)? {
            let deflate = find(&info, DEFLATE);
            // SAFETY: the contract above is `put`'s contract.
            unsafe {
                put(shufflep, c_int::from(find(&info, SHUFFLE).is_some()));
                put(deflatep, c_int::from(deflate.is_some()));
                put(deflate_levelp, param(deflate, 0));
            }
            return Ok(());
        }
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            put(deflatep, 0);
            put(deflate_levelp, 0);
        }
        if !shufflep.is_null() {
            file_with_var(ncid, varid)?;
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
    let property = VarProperty::Fletcher32(fletcher32p);
    // SAFETY: same contract.
    to_user_format!(ncid, |table| unsafe { members::var_property(table, (ncid, varid), property) });
    boundary(|| {
        let info = var_info(&file_with_var(ncid, varid)?, varid)?;
        let found = info.is_some_and(|info| find(&info, FLETCHER32).is_some());
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(fletcher32p, c_int::from(found)) };
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
    varid: c_int,
    options_maskp: *mut c_int,
    pixels_per_blockp: *mut c_int,
) -> c_int {
    // SAFETY: same contract.
    to_user_format!(ncid, |_| unsafe {
        filters::szip((ncid, varid), options_maskp, pixels_per_blockp)
    });
    boundary(|| {
        let info = var_info(&handles::file(ncid)?, varid)?;
        let szip = info.as_ref().and_then(|info| find(info, SZIP));
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            put(options_maskp, param(szip, 0));
            put(pixels_per_blockp, param(szip, 1));
        }
        Ok(())
    })
}

/// `int nc_inq_var_filter(int ncid, int varid, unsigned int *idp, size_t *nparams, unsigned int *params);`
///
/// The first filter; without any, the number 0 and nothing else.
///
/// # Safety
/// Each pointer is null or valid for its result, `params` for as many as a call without it tells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_filter(
    ncid: c_int,
    varid: c_int,
    idp: *mut c_uint,
    nparams: *mut usize,
    params: *mut c_uint,
) -> c_int {
    // SAFETY: same contract.
    to_user_format!(ncid, |_| unsafe { filters::inq_filter((ncid, varid), idp, nparams, params) });
    boundary(|| {
        let info = var_info(&handles::file(ncid)?, varid)?;
        let first = info.as_ref().and_then(|info| info.filters.first());
        // SAFETY: the contract above.
        unsafe {
            put(idp, first.map_or(0, |filter| filter.id));
            if let Some(filter) = first {
                put(nparams, put_list(params, filter.params.iter().copied()));
            }
        }
        Ok(())
    })
}

/// `int nc_inq_var_filter_ids(int ncid, int varid, size_t *nfilters, unsigned int *filterids);`
///
/// # Safety
/// `nfilters` is null, or valid for a write; `filterids` is null, or has room for every filter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_filter_ids(
    ncid: c_int,
    varid: c_int,
    nfilters: *mut usize,
    filterids: *mut c_uint,
) -> c_int {
    to_user_format!(ncid, inq_var_filter_ids(ncid, varid, nfilters, filterids));
    boundary(|| {
        let info = var_info(&handles::file(ncid)?, varid)?;
        let filters = info.as_ref().map_or(&[][..], |info| &info.filters);
        // SAFETY: the contract above.
        unsafe { put(nfilters, put_list(filterids, filters.iter().map(|filter| filter.id))) };
        Ok(())
    })
}

/// `int nc_inq_var_filter_info(int ncid, int varid, unsigned int id, size_t *nparams, unsigned int *params);`
///
/// `NC_ENOFILTER` where the variable does not have that filter.
///
/// # Safety
/// `nparams` is null, or valid for a write; `params` is null, or has room for every parameter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_filter_info(
    ncid: c_int,
    varid: c_int,
    id: c_uint,
    nparams: *mut usize,
    params: *mut c_uint,
) -> c_int {
    to_user_format!(ncid, inq_var_filter_info(ncid, varid, id, nparams, params));
    boundary(|| {
        let info = var_info(&handles::file(ncid)?, varid)?;
        let filter = info.as_ref().and_then(|info| find(info, id)).ok_or(NcError::NoFilter)?;
        // SAFETY: the contract above.
        unsafe { put(nparams, put_list(params, filter.params.iter().copied())) };
        Ok(())
    })
}

/// `int nc_inq_filter_avail(int ncid, unsigned id);`
///
/// Whether Zonda can undo that filter: built in, or a plugin. Classic files have none.
#[unsafe(no_mangle)]
pub extern "C" fn nc_inq_filter_avail(ncid: c_int, id: c_uint) -> c_int {
    to_user_format!(ncid, inq_filter_avail(ncid, id));
    boundary(|| {
        let file = handles::any_group(ncid)?;
        if !file.dataset.capabilities().storage {
            return Err(NcError::NoFilter.into());
        }
        if id > LAST_FILTER {
            return Err(NcError::HdfErr.into());
        }
        Ok(zonda::check_filter(id)?)
    })
}

/// `int nc_filter_path_query(int id);`
///
/// Whether a filter is available to files in general.
#[unsafe(no_mangle)]
pub extern "C" fn nc_filter_path_query(id: c_int) -> c_int {
    boundary(|| Ok(zonda::check_filter(c_uint::try_from(id).map_err(|_| NcError::NoFilter)?)?))
}

/// Gives a variable one of the filters that have functions of their own; `valid` says whether its
/// parameters are. A classic file has no filters: `NC_ENOFILTER`.
fn add_named_filter((ncid, varid): (c_int, c_int), id: u32, valid: bool, params: &[u32]) -> c_int {
    to_user_format!(ncid, |table| filters::def_named_filter(
        table,
        (ncid, varid),
        id,
        valid,
        params
    ));
    boundary(|| {
        let file = handles::file(ncid)?;
        if !file.dataset.capabilities().storage {
            return Err(NcError::NoFilter.into());
        }
        if !valid {
            return Err(NcError::Inval.into());
        }
        add_filter(ncid, varid, id, params)
    })
}

/// `int nc_def_var_bzip2(int ncid, int varid, int level);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_def_var_bzip2(ncid: c_int, varid: c_int, level: c_int) -> c_int {
    let valid = (1..=9).contains(&level);
    add_named_filter((ncid, varid), BZIP2, valid, &[level.cast_unsigned()])
}

/// `int nc_def_var_zstandard(int ncid, int varid, int level);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_def_var_zstandard(ncid: c_int, varid: c_int, level: c_int) -> c_int {
    let valid = (-131_072..=22).contains(&level);
    add_named_filter((ncid, varid), ZSTANDARD, valid, &[level.cast_unsigned()])
}

/// `int nc_def_var_blosc(int ncid, int varid, unsigned subcompressor, unsigned level, unsigned blocksize, unsigned addshuffle);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_def_var_blosc(
    ncid: c_int,
    varid: c_int,
    subcompressor: c_uint,
    level: c_uint,
    blocksize: c_uint,
    addshuffle: c_uint,
) -> c_int {
    // BLOSC_ZSTD and BLOSC_BITSHUFFLE are the last ones.
    let valid = subcompressor <= 5 && level <= 9 && addshuffle <= 2;
    // What the filter itself finds out comes first: two versions, and the sizes of element and chunk.
    let params = [0, 0, 0, blocksize, level, addshuffle, subcompressor];
    add_named_filter((ncid, varid), BLOSC, valid, &params)
}

/// Inquires a filter with one parameter, its level.
///
/// # Safety
/// Each pointer is null, or valid for a write of one int.
unsafe fn level_of(
    (ncid, varid): (c_int, c_int),
    id: u32,
    hasfilterp: *mut c_int,
    levelp: *mut c_int,
) -> c_int {
    // Both results are written on failure too, as in the reference.
    // SAFETY: the contract above is `put`'s contract.
    let put_found = |found: Option<[c_uint; 1]>| unsafe {
        put(hasfilterp, c_int::from(found.is_some()));
        put(levelp, found.map_or(0, |[level]| level.cast_signed()));
    };
    put_found(None);
    to_user_format!(ncid, |_| filters::named_filter((ncid, varid), id, put_found));
    boundary(|| {
        let Some(info) = var_info(&handles::file(ncid)?, varid)? else {
            return Err(NcError::NoFilter.into());
        };
        let found = find(&info, id);
        put_found(found.map(|_| [param(found, 0).cast_unsigned()]));
        Ok(())
    })
}

/// `int nc_inq_var_bzip2(int ncid, int varid, int *hasfilterp, int *levelp);`
///
/// # Safety
/// Each pointer is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_bzip2(
    ncid: c_int,
    varid: c_int,
    hasfilterp: *mut c_int,
    levelp: *mut c_int,
) -> c_int {
    // SAFETY: same contract.
    unsafe { level_of((ncid, varid), BZIP2, hasfilterp, levelp) }
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
    // SAFETY: same contract.
    unsafe { level_of((ncid, varid), ZSTANDARD, hasfilterp, levelp) }
}

/// `int nc_inq_var_blosc(int ncid, int varid, int *hasfilterp, unsigned *subcompressorp, unsigned *levelp, unsigned *blocksizep, unsigned *addshufflep);`
///
/// The others are written only where the variable has the filter.
///
/// # Safety
/// Each pointer is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_blosc(
    ncid: c_int,
    varid: c_int,
    hasfilterp: *mut c_int,
    subcompressorp: *mut c_uint,
    levelp: *mut c_uint,
    blocksizep: *mut c_uint,
    addshufflep: *mut c_uint,
) -> c_int {
    // Parameters of the filter: two versions, element size, block size, level, shuffle, codec.
    const BLOCK_SIZE: usize = 3;
    const LEVEL: usize = 4;
    const ADD_SHUFFLE: usize = 5;
    const CODEC: usize = 6;
    // SAFETY: the contract above is `put`'s contract.
    let put_found = |found: Option<[c_uint; 7]>| unsafe {
        put(hasfilterp, c_int::from(found.is_some()));
        if let Some(params) = found {
            put(subcompressorp, params[CODEC]);
            put(levelp, params[LEVEL]);
            put(blocksizep, params[BLOCK_SIZE]);
            put(addshufflep, params[ADD_SHUFFLE]);
        }
    };
    put_found(None);
    to_user_format!(ncid, |_| filters::named_filter((ncid, varid), BLOSC, put_found));
    boundary(|| {
        let Some(info) = var_info(&handles::file(ncid)?, varid)? else {
            return Err(NcError::NoFilter.into());
        };
        let found = find(&info, BLOSC);
        put_found(found.map(|_| std::array::from_fn(|index| param(found, index).cast_unsigned())));
        Ok(())
    })
}

//! Settings of storage: chunking, caches, alignment, byte order, quantization.
//!
//! Those of the process are kept and reported; they steer netCDF-4 files. Those of a variable
//! are refused for classic files.

use std::ffi::{c_float, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

use zonda::NcError;

use crate::boundary::{boundary, put};
use crate::filter::check_var;
use crate::handles;

/// `NC_CONTIGUOUS`
const CONTIGUOUS: c_int = 1;
/// `NC_GLOBAL`
const GLOBAL: c_int = -1;

/// What `nc_set_chunk_cache` and its relatives set.
#[derive(Debug)]
struct Settings {
    /// Bytes of a variable's chunk cache.
    cache_bytes: usize,
    /// Hash slots of a variable's chunk cache.
    cache_slots: usize,
    /// 0 to 1: how readily fully read chunks are dropped.
    cache_preemption: c_float,
    /// Objects of at least `threshold` bytes start at multiples of `alignment`.
    threshold: c_int,
    alignment: c_int,
    /// Bytes by which metadata space grows; 0 leaves the format's own choice.
    meta_block_bytes: usize,
}

/// The defaults of 4.9.0, which programs read back.
static SETTINGS: Mutex<Settings> = Mutex::new(Settings {
    cache_bytes: 16_777_216,
    cache_slots: 4133,
    cache_preemption: 0.75,
    threshold: 0,
    alignment: 0,
    meta_block_bytes: 0,
});

fn settings() -> MutexGuard<'static, Settings> {
    // Every update is a whole assignment, so a panicked holder left nothing half done.
    SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `int nc_set_chunk_cache(size_t size, size_t nelems, float preemption);`
///
/// `NC_EINVAL` if the preemption is not between 0 and 1. (As in the reference, not-a-number is.)
#[expect(clippy::manual_range_contains, reason = "the range test would refuse not-a-number")]
#[unsafe(no_mangle)]
pub extern "C" fn nc_set_chunk_cache(size: usize, nelems: usize, preemption: c_float) -> c_int {
    boundary(|| {
        if preemption < 0.0 || preemption > 1.0 {
            return Err(NcError::Inval.into());
        }
        let mut settings = settings();
        settings.cache_bytes = size;
        settings.cache_slots = nelems;
        settings.cache_preemption = preemption;
        Ok(())
    })
}

/// `int nc_get_chunk_cache(size_t *sizep, size_t *nelemsp, float *preemptionp);`
///
/// # Safety
/// Each pointer is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_get_chunk_cache(
    sizep: *mut usize,
    nelemsp: *mut usize,
    preemptionp: *mut c_float,
) -> c_int {
    boundary(|| {
        let settings = settings();
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            put(sizep, settings.cache_bytes);
            put(nelemsp, settings.cache_slots);
            put(preemptionp, settings.cache_preemption);
        }
        Ok(())
    })
}

/// `int nc_set_chunk_cache_ints(int size, int nelems, int preemption);` for Fortran: bytes, slots
/// and percent.
#[unsafe(no_mangle)]
pub extern "C" fn nc_set_chunk_cache_ints(size: c_int, nelems: c_int, preemption: c_int) -> c_int {
    boundary(|| {
        if size <= 0 || nelems <= 0 || !(0..=100).contains(&preemption) {
            return Err(NcError::Inval.into());
        }
        let mut settings = settings();
        settings.cache_bytes = size.unsigned_abs() as usize;
        settings.cache_slots = nelems.unsigned_abs() as usize;
        settings.cache_preemption = preemption as c_float / 100.0;
        Ok(())
    })
}

/// `int nc_get_chunk_cache_ints(int *sizep, int *nelemsp, int *preemptionp);` for Fortran.
///
/// # Safety
/// Each pointer is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_get_chunk_cache_ints(
    sizep: *mut c_int,
    nelemsp: *mut c_int,
    preemptionp: *mut c_int,
) -> c_int {
    boundary(|| {
        let settings = settings();
        // Numbers above 2^31 lose their upper half, as in the reference.
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            put(sizep, settings.cache_bytes as c_int);
            put(nelemsp, settings.cache_slots as c_int);
            put(preemptionp, (settings.cache_preemption * 100.0) as c_int);
        }
        Ok(())
    })
}

/// `int nc_set_alignment(int threshold, int alignment);` Any value is kept.
#[unsafe(no_mangle)]
pub extern "C" fn nc_set_alignment(threshold: c_int, alignment: c_int) -> c_int {
    boundary(|| {
        let mut settings = settings();
        settings.threshold = threshold;
        settings.alignment = alignment;
        Ok(())
    })
}

/// `int nc_get_alignment(int *thresholdp, int *alignmentp);`
///
/// # Safety
/// Each pointer is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_get_alignment(thresholdp: *mut c_int, alignmentp: *mut c_int) -> c_int {
    boundary(|| {
        let settings = settings();
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            put(thresholdp, settings.threshold);
            put(alignmentp, settings.alignment);
        }
        Ok(())
    })
}

/// `int nc_set_meta_block_size(size_t size);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_set_meta_block_size(size: usize) -> c_int {
    boundary(|| {
        settings().meta_block_bytes = size;
        Ok(())
    })
}

/// `int nc_get_meta_block_size(size_t *sizep);`
///
/// # Safety
/// `sizep` is null, or valid for a write of one `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_get_meta_block_size(sizep: *mut usize) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(sizep, settings().meta_block_bytes) };
        Ok(())
    })
}

/// Functions that need a netCDF-4 file and say so with the given code.
macro_rules! refused {
    ($($code:ident: $prototype:literal fn $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[doc = concat!("`", $prototype, "`")]
        ///
        /// Belongs to netCDF-4; refused for classic files, whatever the other arguments.
        ///
        /// # Safety
        /// Pointers are not used.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(ncid: c_int, _varid: c_int, $($argument: $type),*) -> c_int {
            $( let _ = $argument; )*
            boundary(|| {
                handles::file(ncid)?;
                Err(NcError::$code.into())
            })
        }
    )*};
}

refused! {
    NotNc4: "int nc_set_var_chunk_cache(int ncid, int varid, size_t size, size_t nelems, float preemption);"
    fn nc_set_var_chunk_cache(size: usize, nelems: usize, preemption: c_float);
    NotNc4: "int nc_get_var_chunk_cache(int ncid, int varid, size_t *sizep, size_t *nelemsp, float *preemptionp);"
    fn nc_get_var_chunk_cache(sizep: *mut usize, nelemsp: *mut usize, preemptionp: *mut c_float);
    NotNc4: "int nc_def_var_chunking(int ncid, int varid, int storage, const size_t *chunksizesp);"
    fn nc_def_var_chunking(storage: c_int, chunksizesp: *const usize);
    NotNc4: "int nc_def_var_endian(int ncid, int varid, int endian);"
    fn nc_def_var_endian(endian: c_int);
    // The reference's helpers for Fortran look for a netCDF-4 file under the id and find none.
    BadId: "int nc_set_var_chunk_cache_ints(int ncid, int varid, int size, int nelems, int preemption);"
    fn nc_set_var_chunk_cache_ints(size: c_int, nelems: c_int, preemption: c_int);
    BadId: "int nc_get_var_chunk_cache_ints(int ncid, int varid, int *sizep, int *nelemsp, int *preemptionp);"
    fn nc_get_var_chunk_cache_ints(sizep: *mut c_int, nelemsp: *mut c_int, preemptionp: *mut c_int);
    BadId: "int nc_def_var_chunking_ints(int ncid, int varid, int storage, int *chunksizesp);"
    fn nc_def_var_chunking_ints(storage: c_int, chunksizesp: *mut c_int);
    BadId: "int nc_inq_var_chunking_ints(int ncid, int varid, int *storagep, int *chunksizesp);"
    fn nc_inq_var_chunking_ints(storagep: *mut c_int, chunksizesp: *mut c_int);
}

/// `int nc_inq_var_chunking(int ncid, int varid, int *storagep, size_t *chunksizesp);`
///
/// Variables of classic files are contiguous; chunk sizes are left alone.
///
/// # Safety
/// `storagep` is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_chunking(
    ncid: c_int,
    varid: c_int,
    storagep: *mut c_int,
    _chunksizesp: *mut usize,
) -> c_int {
    boundary(|| {
        check_var(ncid, varid)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(storagep, CONTIGUOUS) };
        Ok(())
    })
}

/// `int nc_inq_var_endian(int ncid, int varid, int *endianp);`
///
/// # Safety
/// The pointer is only compared with null: asking is what is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_endian(
    ncid: c_int,
    varid: c_int,
    endianp: *mut c_int,
) -> c_int {
    boundary(|| {
        check_var(ncid, varid)?;
        if endianp.is_null() { Ok(()) } else { Err(NcError::NotNc4.into()) }
    })
}

fn quantize_is_refused(ncid: c_int, varid: c_int) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        if varid == GLOBAL {
            return Err(NcError::Global.into());
        }
        Err(NcError::NotNc4.into())
    })
}

/// `int nc_def_var_quantize(int ncid, int varid, int quantize_mode, int nsd);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_def_var_quantize(
    ncid: c_int,
    varid: c_int,
    _quantize_mode: c_int,
    _nsd: c_int,
) -> c_int {
    quantize_is_refused(ncid, varid)
}

/// `int nc_inq_var_quantize(int ncid, int varid, int *quantize_modep, int *nsdp);`
///
/// # Safety
/// The pointers are not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_quantize(
    ncid: c_int,
    varid: c_int,
    _quantize_modep: *mut c_int,
    _nsdp: *mut c_int,
) -> c_int {
    quantize_is_refused(ncid, varid)
}

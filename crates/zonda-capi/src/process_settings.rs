//! ProcessSettings of the process for the files that it opens: chunk cache, alignment, size of metadata blocks.
//!
//! They are kept and reported; a netCDF-4 file takes those that hold when it is opened.

use std::ffi::{c_float, c_int};

use zonda::NcError;
use zonda_runtime::lock::{Global, MutexGuard, Rank};

use crate::boundary::boundary;
use crate::c_memory::put;

/// What `nc_set_chunk_cache` and its relatives set.
#[derive(Debug)]
struct ProcessSettings {
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
const DEFAULTS: ProcessSettings = ProcessSettings {
    cache_bytes: 16_777_216,
    cache_slots: 4133,
    cache_preemption: 0.75,
    threshold: 0,
    alignment: 0,
    meta_block_bytes: 0,
};

static SETTINGS: Global<ProcessSettings> = Global::new(Rank::Settings, DEFAULTS, || DEFAULTS);

fn settings() -> MutexGuard<'static, ProcessSettings> {
    // Every update is a whole assignment, so a panicked holder left nothing half done.
    SETTINGS.lock()
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

/// The chunk cache of the variables of a file that is opened now: bytes, slots, preemption.
pub(crate) fn chunk_cache() -> (usize, usize, c_float) {
    let settings = settings();
    (settings.cache_bytes, settings.cache_slots, settings.cache_preemption)
}

/// The alignment of a file that is opened now: objects of at least so many bytes begin at multiples of so
/// many bytes. `None` if there is none.
pub(crate) fn alignment() -> Option<(u64, u64)> {
    let settings = settings();
    let alignment = u64::try_from(settings.alignment).ok().filter(|&alignment| alignment > 1)?;
    Some((u64::try_from(settings.threshold).unwrap_or(0), alignment))
}

//! How a variable is stored: chunking, chunk cache, byte order, quantization. All of it is refused for
//! classic files.

use std::ffi::{c_float, c_int};

use zonda::{Endianness, NcError, Quantize, StorageKind, StorageRequest, VarId};

use crate::boundary::boundary;
use crate::c_memory::{put, put_list, slice};
use crate::failure::{CallFailure, CallResult};
use crate::handles::{self, FileRef};
use crate::stored_var::{file_with_storage, file_with_var, var_info};
use crate::user_format::members::{self, VarProperty};
use crate::user_format::var_storage;
use crate::user_format::{member, table_of, to_user_format};

/// `NC_CHUNKED`
pub(crate) const CHUNKED: c_int = 0;
/// `NC_CONTIGUOUS`
const CONTIGUOUS: c_int = 1;
/// `NC_COMPACT`
const COMPACT: c_int = 2;
/// `NC_UNKNOWN_STORAGE`
const UNKNOWN_STORAGE: c_int = 3;
/// `NC_GLOBAL`
const GLOBAL: c_int = -1;
/// The unit of a variable's cache in Fortran, in bytes.
const MIB: usize = 1 << 20;

/// `int nc_set_var_chunk_cache(int ncid, int varid, size_t size, size_t nelems, float preemption);`
///
/// The values are kept and reported; the bytes are the least that the variable's cache may hold.
#[expect(clippy::manual_range_contains, reason = "the range test would refuse not-a-number")]
#[unsafe(no_mangle)]
pub extern "C" fn nc_set_var_chunk_cache(
    ncid: c_int,
    varid: c_int,
    size: usize,
    nelems: usize,
    preemption: c_float,
) -> c_int {
    to_user_format!(ncid, set_var_chunk_cache(ncid, varid, size, nelems, preemption));
    boundary(|| {
        let found = handles::any_group(ncid)?;
        if !found.dataset.capabilities().storage {
            return Err(NcError::NotNc4.into());
        }
        if preemption < 0.0 || preemption > 1.0 {
            return Err(NcError::Inval.into());
        }
        let file = file_with_var(ncid, varid)?;
        Ok(file.dataset.set_chunk_cache(file.var(varid), (size, nelems, preemption))?)
    })
}

/// `int nc_get_var_chunk_cache(int ncid, int varid, size_t *sizep, size_t *nelemsp, float *preemptionp);`
///
/// # Safety
/// Each pointer is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_get_var_chunk_cache(
    ncid: c_int,
    varid: c_int,
    sizep: *mut usize,
    nelemsp: *mut usize,
    preemptionp: *mut c_float,
) -> c_int {
    to_user_format!(ncid, get_var_chunk_cache(ncid, varid, sizep, nelemsp, preemptionp));
    boundary(|| {
        let file = file_with_storage(ncid, NcError::NotNc4)?;
        let (bytes, slots, preemption) = file.dataset.chunk_cache(file.var(varid))?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            put(sizep, bytes);
            put(nelemsp, slots);
            put(preemptionp, preemption);
        }
        Ok(())
    })
}

// The reference's helpers for Fortran look for a netCDF-4 file under the id; in a classic one they
// find none, and say `NC_EBADID`.

/// `int nc_set_var_chunk_cache_ints(int ncid, int varid, int size, int nelems, int preemption);` for
/// Fortran: MiB, slots and percent; negative ones stand for the defaults.
#[unsafe(no_mangle)]
pub extern "C" fn nc_set_var_chunk_cache_ints(
    ncid: c_int,
    varid: c_int,
    size: c_int,
    nelems: c_int,
    preemption: c_int,
) -> c_int {
    if table_of(ncid).is_none() {
        let status = boundary(|| {
            let file = file_with_storage(ncid, NcError::BadId)?;
            Ok(file.dataset.chunk_cache(file.var(varid)).map(drop)?)
        });
        if status != 0 {
            return status;
        }
    }
    // All ones is what HDF5 has for "as the file".
    let bytes = usize::try_from(size).map_or(usize::MAX, |size| size.saturating_mul(MIB));
    let slots = usize::try_from(nelems).unwrap_or(usize::MAX);
    let preemption = if preemption < 0 { 0.75 } else { preemption as c_float / 100.0 };
    nc_set_var_chunk_cache(ncid, varid, bytes, slots, preemption)
}

/// `int nc_get_var_chunk_cache_ints(int ncid, int varid, int *sizep, int *nelemsp, int *preemptionp);`
/// for Fortran: MiB, slots and percent.
///
/// # Safety
/// Each pointer is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_get_var_chunk_cache_ints(
    ncid: c_int,
    varid: c_int,
    sizep: *mut c_int,
    nelemsp: *mut c_int,
    preemptionp: *mut c_int,
) -> c_int {
    // Numbers above 2^31 lose their upper half, as in the reference.
    // SAFETY: the contract above is `put`'s contract.
    let put_cache = |bytes: usize, slots: usize, preemption: c_float| unsafe {
        put(sizep, (bytes / MIB) as c_int);
        put(nelemsp, slots as c_int);
        put(preemptionp, (preemption * 100.0) as c_int);
    };
    to_user_format!(ncid, |table| members::chunk_cache(table, (ncid, varid), put_cache));
    boundary(|| {
        let file = file_with_storage(ncid, NcError::BadId)?;
        let (bytes, slots, preemption) = file.dataset.chunk_cache(file.var(varid))?;
        put_cache(bytes, slots, preemption);
        Ok(())
    })
}

/// Chooses the layout of a variable of a netCDF-4 file.
fn def_chunking(
    file: &FileRef,
    varid: c_int,
    storage: c_int,
    sizes: Option<&[usize]>,
) -> CallResult {
    let storage = match storage {
        CHUNKED => StorageRequest::Chunked,
        CONTIGUOUS => StorageRequest::Contiguous,
        COMPACT => StorageRequest::Compact,
        _ => StorageRequest::Unknown,
    };
    let sizes = sizes.filter(|_| storage == StorageRequest::Chunked);
    let defined = file.dataset.def_var_chunking(file.var(varid), storage, sizes);
    defined.map_err(|error| file.failure(error))
}

/// Rank of a variable; 0 for one that does not exist, which the definition then refuses.
fn rank_of(file: &FileRef, varid: c_int) -> Result<usize, CallFailure> {
    file.meta(|meta| meta.var(VarId(varid)).map_or(0, |var| var.dims.len()))
}

/// `int nc_def_var_chunking(int ncid, int varid, int storage, const size_t *chunksizesp);`
///
/// # Safety
/// `chunksizesp` is null or holds a size per dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_var_chunking(
    ncid: c_int,
    varid: c_int,
    storage: c_int,
    chunksizesp: *const usize,
) -> c_int {
    to_user_format!(ncid, def_var_chunking(ncid, varid, storage, chunksizesp));
    boundary(|| {
        let file = file_with_storage(ncid, NcError::NotNc4)?;
        let rank = rank_of(&file, varid)?;
        // SAFETY: the contract above.
        let sizes = (!chunksizesp.is_null()).then(|| unsafe { slice(chunksizesp, rank) });
        def_chunking(&file, varid, storage, sizes)
    })
}

/// `int nc_def_var_chunking_ints(int ncid, int varid, int storage, int *chunksizesp);` for Fortran.
///
/// # Safety
/// `chunksizesp` is null or holds a size per dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_def_var_chunking_ints(
    ncid: c_int,
    varid: c_int,
    storage: c_int,
    chunksizesp: *mut c_int,
) -> c_int {
    // SAFETY: same contract.
    to_user_format!(ncid, |table| unsafe {
        var_storage::def_chunking_ints(table, (ncid, varid), storage, chunksizesp)
    });
    boundary(|| {
        let file = file_with_storage(ncid, NcError::BadId)?;
        file_with_var(ncid, varid)?;
        let rank = rank_of(&file, varid)?;
        let sizes = (!chunksizesp.is_null()).then(|| {
            // SAFETY: the contract above.
            let ints = unsafe { slice(chunksizesp.cast_const(), rank) };
            // Negative ones become huge, which is refused: C converts them so.
            ints.iter().map(|&size| size as usize).collect::<Vec<_>>()
        });
        def_chunking(&file, varid, storage, sizes.as_deref())
    })
}

/// `int nc_def_var_endian(int ncid, int varid, int endian);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_def_var_endian(ncid: c_int, varid: c_int, endian: c_int) -> c_int {
    to_user_format!(ncid, def_var_endian(ncid, varid, endian));
    boundary(|| {
        let file = file_with_storage(ncid, NcError::NotNc4)?;
        let endianness = match endian {
            0 => Endianness::Native,
            1 => Endianness::Little,
            2 => Endianness::Big,
            _ if !file.dataset.is_writable() => return Err(NcError::Perm.into()),
            _ => {
                file_with_var(ncid, varid)?;
                return Err(NcError::Inval.into());
            }
        };
        let defined = file.dataset.def_var_endian(file.var(varid), endianness);
        defined.map_err(|error| file.failure(error))
    })
}

/// The number that C has for a kind of storage, and the shape of chunks.
fn storage_of(storage: &StorageKind) -> (c_int, &[usize]) {
    match storage {
        StorageKind::Contiguous | StorageKind::External => (CONTIGUOUS, &[]),
        StorageKind::Compact => (COMPACT, &[]),
        StorageKind::Chunked(shape) => (CHUNKED, shape),
        // The reference has NC_VIRTUAL, but does not return it.
        StorageKind::Virtual => (UNKNOWN_STORAGE, &[]),
    }
}

/// `int nc_inq_var_chunking_ints(int ncid, int varid, int *storagep, int *chunksizesp);` for Fortran.
///
/// # Safety
/// `storagep` is null, or valid for a write; `chunksizesp` is null, or has room for an int per
/// dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_chunking_ints(
    ncid: c_int,
    varid: c_int,
    storagep: *mut c_int,
    chunksizesp: *mut c_int,
) -> c_int {
    // SAFETY: same contract.
    to_user_format!(ncid, |_| unsafe {
        var_storage::chunking_ints((ncid, varid), storagep, chunksizesp)
    });
    boundary(|| {
        let file = file_with_storage(ncid, NcError::BadId)?;
        let info = file.dataset.var_info(file.var(varid))?;
        let (storage, chunks) = storage_of(&info.storage);
        let ints = chunks.iter().map(|&len| c_int::try_from(len).map_err(|_| NcError::Range));
        let ints = ints.collect::<Result<Vec<_>, _>>()?;
        // SAFETY: the contract above.
        unsafe {
            put(storagep, storage);
            put_list(chunksizesp, ints.into_iter());
        }
        Ok(())
    })
}

/// `int nc_inq_var_chunking(int ncid, int varid, int *storagep, size_t *chunksizesp);`
///
/// Variables of classic files are contiguous; chunk sizes are left alone where there are no chunks.
///
/// # Safety
/// `storagep` is null, or valid for a write; `chunksizesp` is null, or has room for a size per
/// dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_chunking(
    ncid: c_int,
    varid: c_int,
    storagep: *mut c_int,
    chunksizesp: *mut usize,
) -> c_int {
    let property = VarProperty::Chunking(storagep, chunksizesp);
    // SAFETY: same contract.
    to_user_format!(ncid, |table| unsafe { members::var_property(table, (ncid, varid), property) });
    boundary(|| {
        let info = var_info(&file_with_var(ncid, varid)?, varid)?;
        let (storage, chunks) =
            info.as_ref().map_or((CONTIGUOUS, &[][..]), |info| storage_of(&info.storage));
        // SAFETY: the contract above.
        unsafe {
            put(storagep, storage);
            put_list(chunksizesp, chunks.iter().copied());
        }
        Ok(())
    })
}

/// `int nc_inq_var_endian(int ncid, int varid, int *endianp);`
///
/// Of a classic file the variable may be asked for, but not the answer: `NC_ENOTNC4`.
///
/// # Safety
/// `endianp` is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_endian(
    ncid: c_int,
    varid: c_int,
    endianp: *mut c_int,
) -> c_int {
    let property = VarProperty::Endian(endianp);
    // SAFETY: same contract.
    to_user_format!(ncid, |table| unsafe { members::var_property(table, (ncid, varid), property) });
    boundary(|| {
        let info = var_info(&file_with_var(ncid, varid)?, varid)?;
        if endianp.is_null() {
            return Ok(());
        }
        let endian = match info.ok_or(NcError::NotNc4)?.endianness {
            Endianness::Native => 0,
            Endianness::Little => 1,
            Endianness::Big => 2,
        };
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(endianp, endian) };
        Ok(())
    })
}

/// A netCDF-4 file, where quantization is concerned.
fn quantized_file(ncid: c_int, varid: c_int) -> Result<FileRef, NcError> {
    if varid == GLOBAL {
        handles::any_group(ncid)?;
        return Err(NcError::Global);
    }
    file_with_storage(ncid, NcError::NotNc4)
}

/// `int nc_def_var_quantize(int ncid, int varid, int quantize_mode, int nsd);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_def_var_quantize(
    ncid: c_int,
    varid: c_int,
    quantize_mode: c_int,
    nsd: c_int,
) -> c_int {
    to_user_format!(ncid, |table| match varid {
        GLOBAL => NcError::Global.code(),
        _ => member!(table, def_var_quantize(ncid, varid, quantize_mode, nsd)),
    });
    boundary(|| {
        let file = quantized_file(ncid, varid)?;
        let defined = file.dataset.def_var_quantize(file.var(varid), quantize_mode, nsd);
        defined.map_err(|error| file.failure(error))
    })
}

/// `int nc_inq_var_quantize(int ncid, int varid, int *quantize_modep, int *nsdp);`
///
/// # Safety
/// Each pointer is null, or valid for a write of one int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_var_quantize(
    ncid: c_int,
    varid: c_int,
    quantize_modep: *mut c_int,
    nsdp: *mut c_int,
) -> c_int {
    to_user_format!(ncid, |table| match varid {
        GLOBAL => NcError::Global.code(),
        _ => member!(table, inq_var_quantize(ncid, varid, quantize_modep, nsdp)),
    });
    boundary(|| {
        let file = quantized_file(ncid, varid)?;
        file.meta(|meta| meta.var(VarId(varid)).map(drop))??;
        let quantize = file.dataset.var_quantize(file.var(varid))?;
        let kept = |it: Quantize| c_int::try_from(it.kept).unwrap_or(c_int::MAX);
        let found = quantize.map_or((0, 0), |it| (it.mode.number(), kept(it)));
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            put(quantize_modep, found.0);
            put(nsdp, found.1);
        }
        Ok(())
    })
}

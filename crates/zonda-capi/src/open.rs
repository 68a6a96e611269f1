//! Functions that create, open and delete files.

use std::ffi::{CString, c_char, c_int};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use zonda::{CreateOptions, Dataset, Format, NcError, OpenOptions, RemoteFailure};

use crate::boundary::boundary_with_code;
use crate::c_memory::put;
use crate::failure::{CallFailure, CallResult};
use crate::fork::prepare_for_fork_and_exit;
use crate::handles::{self, OpenDataset};
use crate::malloc_memory::{MallocMemory, PAGE_BYTES};
use crate::mode::{
    DISKLESS, INMEMORY, MMAP, NO_ATTRIBUTE_ORDER, NO_SCALES_ATTACHED, NOCLOBBER, PERSIST, SHARE,
    WRITE, check_create_mode, check_memory_flags, format_asked_for, held_in_memory, netcdf4_of,
    shown_mode,
};
use crate::path_argument::PathArgument;
use crate::process_settings::{alignment, chunk_cache};
use crate::user_format::{self, NcDispatch, OpenArguments, table_of_content, table_of_number};

/// What the chunk size argument returns: bytes in a block of I/O, by the rules of the reference. Zonda
/// itself uses blocks of other sizes.
fn block_bytes(hint_bytes: usize, parsed: &PathArgument, in_memory: Option<usize>) -> usize {
    const SMALLEST: usize = 256;
    const DEFAULT: u64 = 8192;
    const LARGEST: usize = 1 << 28;
    if let Some(len) = in_memory {
        return (len / 2 / 8 * 8).max(8);
    }
    if hint_bytes < SMALLEST {
        let of_file = match parsed.is_remote || parsed.is_dap {
            true => DEFAULT,
            false => std::fs::metadata(parsed.os_path()).map_or(DEFAULT, |file| file.blksize()),
        };
        return usize::try_from(of_file.max(DEFAULT)).unwrap_or(LARGEST);
    }
    hint_bytes.min(LARGEST).next_multiple_of(8)
}

/// # Safety
/// `chunksizehintp` is null, or valid for a read and a write.
unsafe fn answer_block_bytes(chunksizehintp: *mut usize, answer: impl FnOnce(usize) -> usize) {
    if !chunksizehintp.is_null() {
        // SAFETY: not null, and the contract covers the rest.
        unsafe { chunksizehintp.write(answer(chunksizehintp.read())) };
    }
}

/// The failure of a creation as C gets it: the reference reports any error of the system about an HDF5 file
/// as a lack of permission.
pub(crate) fn creation_failure(failure: CallFailure, format: Format) -> CallFailure {
    match failure.code() {
        NcError::System(_) if format.is_hdf5() => failure.with_code(NcError::System(libc::EACCES)),
        _ => failure,
    }
}

/// The failure of an opening as C gets it.
pub(crate) fn opening_failure(
    error: zonda::Error,
    parsed: &PathArgument,
    is_for_writing: bool,
) -> CallFailure {
    let of_server = error.remote_failure();
    let failure = CallFailure::from(error);
    match failure.code() {
        // A folder can be opened, but what is in it is no netCDF file.
        NcError::System(libc::EISDIR) => failure.with_code(NcError::NotNc),
        // The reference takes a file on a server for HDF5 where it does not know what it is; and has this code for
        // one that is HDF5 and is to be written.
        NcError::NotNc if parsed.is_remote && of_server.is_none() => {
            failure.with_code(NcError::HdfErr)
        }
        _ if is_for_writing && of_server == Some(RemoteFailure::ReadOnly) => {
            failure.with_code(NcError::HdfErr)
        }
        _ => failure,
    }
}

/// Enters an open file into the handle table.
///
/// # Safety
/// `ncidp` is null, or valid for a write.
pub(crate) unsafe fn enter(file: OpenDataset, ncidp: *mut c_int) -> CallResult {
    let ncid = handles::insert(file)?;
    // SAFETY: same contract.
    unsafe { put(ncidp, ncid) };
    Ok(())
}

/// The format without a look at the definitions: whether a netCDF-4 file keeps to the classic model is known
/// when these are read.
pub(crate) fn quick_format(dataset: &Dataset) -> Format {
    if dataset.is_hdf5() { Format::NetCdf4 } else { dataset.format() }
}

/// The table of a program's own format that a path argument or a mode asks for.
pub(crate) fn table_asked_for(
    parsed: &PathArgument,
    mode: c_int,
) -> Result<Option<&'static NcDispatch>, NcError> {
    match parsed.user_format {
        Some(format) => table_of_number(format).map(Some),
        None => user_format::table_of_mode(mode),
    }
}

/// How a mode and a path argument ask for a new file of that format.
fn create_options(format: Format, cmode: c_int, parsed: &PathArgument) -> CreateOptions {
    CreateOptions {
        format,
        exclusive: cmode & NOCLOBBER != 0,
        share: cmode & SHARE != 0,
        io: parsed.io.clone(),
        write_behind: parsed.write_behind,
        in_memory: held_in_memory(cmode),
        no_attribute_order: cmode & NO_ATTRIBUTE_ORDER != 0,
        no_scales_attached: cmode & NO_SCALES_ATTACHED != 0,
        chunk_cache: Some(chunk_cache()),
        alignment: alignment(),
        equal_attributes: false,
        hints: zonda::Hints::default(),
        independent_filters: false,
    }
}

/// Creates a file, or what lies in memory and has the path as its name.
fn create_dataset(
    parsed: &PathArgument,
    cmode: c_int,
    initial_bytes: usize,
    options: &CreateOptions,
) -> Result<(Dataset, Option<Arc<MallocMemory>>), CallFailure> {
    let format = options.format;
    if cmode & INMEMORY == 0 {
        let made = Dataset::create(parsed.os_path(), options).map_err(CallFailure::from);
        return Ok((made.map_err(|failure| creation_failure(failure, format))?, None));
    }
    // The size is that of a classic file from the start; HDF5 files are as long as they are.
    let memory = Arc::new(MallocMemory::zeroed(if format.is_hdf5() { 0 } else { initial_bytes })?);
    Ok((Dataset::create_in(memory.clone(), parsed.os_path(), options)?, Some(memory)))
}

/// All of the creating functions.
///
/// # Safety
/// `path` is null or a NUL-terminated string; the others are null, or valid for a write.
pub(crate) unsafe fn create(
    path: *const c_char,
    cmode: c_int,
    initialsz: usize,
    basepe: c_int,
    chunksizehintp: *mut usize,
    ncidp: *mut c_int,
) -> Result<c_int, CallFailure> {
    if path.is_null() {
        return Err(NcError::Inval.into());
    }
    check_create_mode(cmode)?;
    // SAFETY: not null, and the contract above.
    let (parsed, shown_path) = unsafe { PathArgument::from_c(path)? };
    if let Some(table) = table_asked_for(&parsed, cmode)? {
        let (create, memory) = (Some(initialsz), std::ptr::null_mut());
        let arguments = OpenArguments { mode: cmode, create, basepe, chunksizehintp, memory };
        // SAFETY: the contract above.
        return unsafe { user_format::open(table, shown_path, &arguments, ncidp) };
    }
    let format = match parsed.format {
        Some(format) => format,
        None if parsed.netcdf4 => netcdf4_of(cmode),
        None => format_asked_for(cmode),
    };
    if parsed.is_dap || (parsed.is_remote && !parsed.asks_for_bytes) {
        // The reference takes it for the URL of a service that has no files to be created.
        let why = "a netCDF file cannot be created behind a URL: create it on a disk and copy it there with `zonda copy`";
        return Err(zonda::Error::because(NcError::NotNc, why).at(parsed.os_path()).into());
    }
    if format.is_hdf5() && cmode & MMAP != 0 {
        return Err(NcError::Inval.into());
    }
    if basepe != 0 && !format.is_hdf5() {
        return Err(NcError::Inval.into());
    }
    prepare_for_fork_and_exit();
    let options = create_options(format, cmode, &parsed);
    let (dataset, memory) = create_dataset(&parsed, cmode, initialsz, &options)?;
    // SAFETY: the contract above.
    unsafe {
        let in_memory = cmode & (DISKLESS | INMEMORY) != 0;
        answer_block_bytes(chunksizehintp, |hint_bytes| {
            if in_memory { PAGE_BYTES } else { block_bytes(hint_bytes, &parsed, None) }
        });
        let mode = shown_mode(cmode, format);
        let persists_memory = cmode & PERSIST != 0;
        enter(
            OpenDataset::new(dataset, mode, shown_path).in_memory(memory, persists_memory),
            ncidp,
        )?;
    }
    Ok(0)
}

/// The table of a program's own format whose magic number a file begins with.
fn table_of_file(parsed: &PathArgument) -> Option<&'static NcDispatch> {
    if parsed.is_remote || parsed.is_dap {
        // Formats of programs read files by their own means, and have to be asked for by their mode.
        return None;
    }
    table_of_content(|start| {
        let Ok(mut file) = std::fs::File::open(parsed.os_path()) else { return 0 };
        let mut n = 0;
        // A file that cannot be read is refused when it is opened for good.
        while let Ok(more @ 1..) = file.read(&mut start[n..]) {
            n += more;
        }
        n
    })
}

/// All of the opening functions but those for memory.
///
/// # Safety
/// As [`create`].
unsafe fn open(
    path: *const c_char,
    omode: c_int,
    basepe: c_int,
    chunksizehintp: *mut usize,
    ncidp: *mut c_int,
) -> Result<c_int, CallFailure> {
    if path.is_null() {
        return Err(NcError::Inval.into());
    }
    check_memory_flags(omode)?;
    // SAFETY: not null, and the contract above.
    let (parsed, shown_path) = unsafe { PathArgument::from_c(path)? };
    let named_table = table_asked_for(&parsed, omode)?;
    if let Some(table) = named_table.or_else(|| table_of_file(&parsed)) {
        let (create, memory) = (None, std::ptr::null_mut());
        let arguments = OpenArguments { mode: omode, create, basepe, chunksizehintp, memory };
        // SAFETY: the contract above.
        return unsafe { user_format::open(table, shown_path, &arguments, ncidp) };
    }
    if basepe != 0 || omode & INMEMORY != 0 {
        // Without memory there is nothing to open in memory; the reference crashes.
        return Err(NcError::Inval.into());
    }
    prepare_for_fork_and_exit();
    let options = OpenOptions {
        write: omode & WRITE != 0,
        share: omode & SHARE != 0,
        io: parsed.io.clone(),
        write_behind: parsed.write_behind,
        in_memory: held_in_memory(omode),
        chunk_cache: Some(chunk_cache()),
        alignment: alignment(),
        equal_attributes: false,
        hints: zonda::Hints::default(),
        independent_filters: false,
        remote: zonda::RemoteSettings::default(),
    };
    let dataset = Dataset::open(parsed.os_path(), &options)
        .map_err(|error| opening_failure(error, &parsed, options.write))?;
    if omode & MMAP != 0 && dataset.is_hdf5() {
        return Err(NcError::Inval.into());
    }
    // SAFETY: the contract above.
    unsafe {
        answer_block_bytes(chunksizehintp, |hint_bytes| {
            let in_memory = (omode & DISKLESS != 0).then(|| {
                let len = dataset.storage().and_then(|storage| storage.len().ok()).unwrap_or(0);
                usize::try_from(len).unwrap_or(0).next_multiple_of(PAGE_BYTES)
            });
            block_bytes(hint_bytes, &parsed, in_memory)
        });
        let mode = shown_mode(omode, quick_format(&dataset));
        enter(OpenDataset::new(dataset, mode, shown_path), ncidp)?;
    }
    Ok(0)
}

/// The table of a program's own format that `nc_open_mem` and `nc_open_memio` mean, and the path.
///
/// # Safety
/// `path` is a NUL-terminated string.
pub(crate) unsafe fn table_of_memory(
    path: *const c_char,
    omode: c_int,
    memory: &[u8],
) -> Result<Option<(&'static NcDispatch, CString)>, NcError> {
    check_memory_flags(omode)?;
    // SAFETY: the contract above.
    let (parsed, shown_path) = unsafe { PathArgument::from_c(path)? };
    let by_content = || {
        table_of_content(|start| {
            let n = memory.len().min(start.len());
            start[..n].copy_from_slice(&memory[..n]);
            n
        })
    };
    let table = table_asked_for(&parsed, omode)?.or_else(by_content);
    Ok(table.map(|table| (table, shown_path)))
}

/// Opens what lies in memory; `path` is a name, and where `NC_PERSIST` writes to.
///
/// # Safety
/// `path` is a NUL-terminated string; `ncidp` is null, or valid for a write.
pub(crate) unsafe fn open_memory(
    path: *const c_char,
    omode: c_int,
    memory: Arc<MallocMemory>,
    ncidp: *mut c_int,
) -> CallResult {
    check_memory_flags(omode)?;
    // SAFETY: the contract above.
    let (parsed, shown_path) = unsafe { PathArgument::from_c(path)? };
    prepare_for_fork_and_exit();
    let options = OpenOptions {
        write: omode & WRITE != 0,
        share: omode & SHARE != 0,
        chunk_cache: Some(chunk_cache()),
        alignment: alignment(),
        ..OpenOptions::default()
    };
    let dataset = Dataset::open_in(memory.clone(), parsed.os_path(), &options)?;
    let persists_memory = omode & PERSIST != 0;
    if persists_memory {
        std::fs::OpenOptions::new()
            .append(true)
            .open(parsed.os_path())
            .map_err(|error| NcError::System(error.raw_os_error().unwrap_or(libc::EIO)))?;
    }
    let mode = shown_mode(omode, quick_format(&dataset));
    let file = OpenDataset::new(dataset, mode, shown_path).in_memory(Some(memory), persists_memory);
    // SAFETY: same contract.
    unsafe { enter(file, ncidp) }
}

/// `int nc_create(const char *path, int cmode, int *ncidp);`
///
/// # Safety
/// `path` is null or a NUL-terminated string; `ncidp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_create(path: *const c_char, cmode: c_int, ncidp: *mut c_int) -> c_int {
    // SAFETY: same contract.
    boundary_with_code(|| unsafe { create(path, cmode, 0, 0, std::ptr::null_mut(), ncidp) })
}

/// `int nc__create(const char *path, int cmode, size_t initialsz, size_t *chunksizehintp,
/// int *ncidp);`
///
/// # Safety
/// As [`nc_create`]; `chunksizehintp` is null, or valid for a read and a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc__create(
    path: *const c_char,
    cmode: c_int,
    initialsz: usize,
    chunksizehintp: *mut usize,
    ncidp: *mut c_int,
) -> c_int {
    // SAFETY: same contract.
    boundary_with_code(|| unsafe { create(path, cmode, initialsz, 0, chunksizehintp, ncidp) })
}

/// `int nc__create_mp(const char *path, int cmode, size_t initialsz, int basepe,
/// size_t *chunksizehintp, int *ncidp);`
///
/// `basepe` is from the days of the Cray T3E and must be 0.
///
/// # Safety
/// As [`nc__create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc__create_mp(
    path: *const c_char,
    cmode: c_int,
    initialsz: usize,
    basepe: c_int,
    chunksizehintp: *mut usize,
    ncidp: *mut c_int,
) -> c_int {
    // SAFETY: same contract.
    boundary_with_code(|| unsafe { create(path, cmode, initialsz, basepe, chunksizehintp, ncidp) })
}

/// `int nc_open(const char *path, int omode, int *ncidp);`
///
/// # Safety
/// `path` is null or a NUL-terminated string; `ncidp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_open(path: *const c_char, omode: c_int, ncidp: *mut c_int) -> c_int {
    // SAFETY: same contract.
    boundary_with_code(|| unsafe { open(path, omode, 0, std::ptr::null_mut(), ncidp) })
}

/// `int nc__open(const char *path, int omode, size_t *chunksizehintp, int *ncidp);`
///
/// # Safety
/// As [`nc_open`]; `chunksizehintp` is null, or valid for a read and a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc__open(
    path: *const c_char,
    omode: c_int,
    chunksizehintp: *mut usize,
    ncidp: *mut c_int,
) -> c_int {
    // SAFETY: same contract.
    boundary_with_code(|| unsafe { open(path, omode, 0, chunksizehintp, ncidp) })
}

/// `int nc__open_mp(const char *path, int omode, int basepe, size_t *chunksizehintp, int *ncidp);`
///
/// # Safety
/// As [`nc__open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc__open_mp(
    path: *const c_char,
    omode: c_int,
    basepe: c_int,
    chunksizehintp: *mut usize,
    ncidp: *mut c_int,
) -> c_int {
    // SAFETY: same contract.
    boundary_with_code(|| unsafe { open(path, omode, basepe, chunksizehintp, ncidp) })
}

/// `int nc_delete(const char *path);`
///
/// # Safety
/// `path` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_delete(path: *const c_char) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_delete_mp(path, 0) }
}

/// `int nc_delete_mp(const char *path, int basepe);`
///
/// Only what can be opened is deleted.
///
/// # Safety
/// `path` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_delete_mp(path: *const c_char, basepe: c_int) -> c_int {
    boundary_with_code(|| {
        let mut ncid = 0;
        // SAFETY: same contract.
        match unsafe { open(path, 0, 0, std::ptr::null_mut(), &raw mut ncid)? } {
            0 => {}
            code => return Ok(code),
        }
        match user_format::table_of(ncid) {
            // SAFETY: nothing is hint_bytes for.
            Some(table) => unsafe {
                user_format::close(table, ncid, std::ptr::null_mut());
            },
            None => handles::remove(ncid)?.dataset.close()?,
        }
        if basepe != 0 {
            return Err(NcError::Inval.into());
        }
        // SAFETY: not null, or it could not have been opened.
        let (parsed, _) = unsafe { PathArgument::from_c(path)? };
        match zonda::remove_on_path(parsed.os_path()) {
            Some(removed) => removed?,
            None => std::fs::remove_file(parsed.os_path()).map_err(|_| NcError::Io)?,
        }
        Ok(0)
    })
}

#[cfg(all(test, feature = "remote"))]
mod tests;

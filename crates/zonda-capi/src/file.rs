//! Whole files: create, open, modes, close.

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use zonda::{CreateOptions, Dataset, FillMode, Format, NcError, OpenOptions, Persist, Reserve};

use crate::boundary::{CallResult, Failure, boundary, put};
use crate::foreign::put_text;
use crate::fork::prepare_for_fork_and_exit;
use crate::handles::{self, OpenFile};
use crate::mem::{self, MallocMemory};
use crate::target::{self, Target};
use crate::var::c_count;

/// `NC_WRITE`
pub(crate) const WRITE: c_int = 0x0001;
const NOCLOBBER: c_int = 0x0004;
const DISKLESS: c_int = 0x0008;
/// `NC_MMAP`: what it promises, memory that reaches the file only with `NC_PERSIST`, is `NC_DISKLESS`.
pub(crate) const MMAP: c_int = 0x0010;
const DATA_64BIT: c_int = 0x0020;
const UDF: c_int = 0x0040 | 0x0080;
const CLASSIC_MODEL: c_int = 0x0100;
const OFFSET_64BIT: c_int = 0x0200;
const SHARE: c_int = 0x0800;
const NETCDF4: c_int = 0x1000;
const PERSIST: c_int = 0x4000;
/// `NC_INMEMORY`
pub(crate) const INMEMORY: c_int = 0x8000;
/// Flags that say anything about the format.
const ANY_FORMAT: c_int = OFFSET_64BIT | DATA_64BIT | CLASSIC_MODEL | NETCDF4 | UDF;

const NOFILL: c_int = 0x100;
/// `NC_FORMATX_NC3`: the implementation behind a file.
const FORMATX_NC3: c_int = 1;
/// `NC_FORMAT_NETCDF4`, `NC_FORMAT_NETCDF4_CLASSIC`
const FORMAT_NETCDF4: [c_int; 2] = [3, 4];

/// What `nc_create` makes when the mode names no format: an `NC_FORMAT_*` number.
static DEFAULT_FORMAT: AtomicI32 = AtomicI32::new(1);

/// The ways to hold a file in memory exclude each other.
fn check_memory_flags(mode: c_int) -> Result<(), NcError> {
    let has = |flag: c_int| mode & flag != 0;
    if has(DISKLESS) && (has(INMEMORY) || has(MMAP)) {
        Err(NcError::Diskless)
    } else if has(INMEMORY) && has(MMAP) {
        Err(NcError::InMemory)
    } else if has(MMAP) && has(NETCDF4) {
        Err(NcError::Inval)
    } else {
        Ok(())
    }
}

fn check_create_mode(mode: c_int) -> Result<(), NcError> {
    if (mode & (NETCDF4 | OFFSET_64BIT | DATA_64BIT)).count_ones() > 1 {
        return Err(NcError::Inval);
    }
    check_memory_flags(mode)
}

/// The format a mode asks for.
fn format_of(mode: c_int, default: c_int) -> Result<Format, NcError> {
    if mode & ANY_FORMAT == 0 {
        return match default {
            2 => Ok(Format::Cdf2),
            5 => Ok(Format::Cdf5),
            _ if FORMAT_NETCDF4.contains(&default) => Err(NcError::NotBuilt),
            _ => Ok(Format::Cdf1),
        };
    }
    if mode & UDF != 0 {
        Err(NcError::NotBuilt)
    } else if mode & OFFSET_64BIT != 0 {
        Ok(Format::Cdf2)
    } else if mode & DATA_64BIT != 0 {
        Ok(Format::Cdf5)
    } else if mode & NETCDF4 != 0 {
        Err(NcError::NotBuilt)
    } else {
        Ok(Format::Cdf1)
    }
}

/// The mode as `nc_inq_format_extended` shows it.
fn shown_mode(mode: c_int, format: Format) -> c_int {
    let flag = match format {
        Format::Cdf1 => 0,
        Format::Cdf2 => OFFSET_64BIT,
        Format::Cdf5 => DATA_64BIT,
    };
    mode & !NETCDF4 | flag
}

fn held_in_memory(mode: c_int) -> Option<Persist> {
    let persist = if mode & PERSIST != 0 { Persist::Yes } else { Persist::No };
    (mode & (DISKLESS | MMAP) != 0).then_some(persist)
}

/// A path argument and the text that `nc_inq_path` gives back for it.
///
/// # Safety
/// `path` is a NUL-terminated string.
unsafe fn target_of(path: *const c_char) -> Result<(Target, CString), NcError> {
    // SAFETY: the contract above.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    let target = target::parse(bytes)?;
    let blanks = bytes.iter().take_while(|&&byte| byte <= b' ').count();
    let shown = CString::new(&bytes[blanks..]).map_err(|_| NcError::Inval)?;
    Ok((target, shown))
}

fn os_path(target: &Target) -> &Path {
    Path::new(OsStr::from_bytes(&target.path))
}

/// What the chunk size argument comes back as: bytes in a block of I/O, by the rules of the
/// reference. Zonda sizes its own blocks.
fn block_bytes(asked: usize, target: &Target, in_memory: Option<usize>) -> usize {
    const SMALLEST: usize = 256;
    const DEFAULT: u64 = 8192;
    const LARGEST: usize = 1 << 28;
    if let Some(len) = in_memory {
        return (len / 2 / 8 * 8).max(8);
    }
    if asked < SMALLEST {
        let of_file = std::fs::metadata(os_path(target)).map_or(DEFAULT, |file| file.blksize());
        return usize::try_from(of_file.max(DEFAULT)).unwrap_or(LARGEST);
    }
    asked.min(LARGEST).next_multiple_of(8)
}

/// Bytes in a page, which is what a file created in memory grows by.
const PAGE: usize = 4096;

/// # Safety
/// `chunksizehintp` is null, or valid for a read and a write.
unsafe fn answer_block_bytes(chunksizehintp: *mut usize, answer: impl FnOnce(usize) -> usize) {
    if !chunksizehintp.is_null() {
        // SAFETY: not null, and the contract covers the rest.
        unsafe { chunksizehintp.write(answer(chunksizehintp.read())) };
    }
}

/// Enters an open file into the handle table.
///
/// # Safety
/// `ncidp` is null, or valid for a write.
unsafe fn enter(file: OpenFile, ncidp: *mut c_int) -> CallResult {
    let ncid = handles::insert(file)?;
    // SAFETY: same contract.
    unsafe { put(ncidp, ncid) };
    Ok(())
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
) -> CallResult {
    if path.is_null() {
        return Err(NcError::Inval.into());
    }
    check_create_mode(cmode)?;
    // SAFETY: not null, and the contract above.
    let (target, shown) = unsafe { target_of(path)? };
    let format = format_of(cmode, DEFAULT_FORMAT.load(Ordering::Relaxed))?;
    if target.netcdf4 {
        return Err(NcError::NotBuilt.into());
    }
    if basepe != 0 {
        return Err(NcError::Inval.into());
    }
    prepare_for_fork_and_exit();
    let options = CreateOptions {
        format,
        exclusive: cmode & NOCLOBBER != 0,
        share: cmode & SHARE != 0,
        io: target.io.clone(),
        in_memory: held_in_memory(cmode),
        initial_size: initialsz as u64,
    };
    let (dataset, memory) = if cmode & INMEMORY != 0 {
        let memory = mem::for_new_file(initialsz)?;
        (Dataset::create_in(memory.clone(), os_path(&target), &options), Some(memory))
    } else {
        (Dataset::create(os_path(&target), &options)?, None)
    };
    // SAFETY: the contract above.
    unsafe {
        let in_memory = cmode & (DISKLESS | INMEMORY) != 0;
        answer_block_bytes(chunksizehintp, |asked| {
            if in_memory { PAGE } else { block_bytes(asked, &target, None) }
        });
        let mode = shown_mode(cmode, format);
        let persists_memory = cmode & PERSIST != 0;
        enter(OpenFile { dataset, mode, path: shown, memory, persists_memory }, ncidp)
    }
}

/// The checks that opening makes before it looks at the file.
fn check_open_mode(omode: c_int) -> Result<(), NcError> {
    check_memory_flags(omode)?;
    if omode & UDF != 0 { Err(NcError::NotBuilt) } else { Ok(()) }
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
) -> CallResult {
    if path.is_null() {
        return Err(NcError::Inval.into());
    }
    check_memory_flags(omode)?;
    // SAFETY: not null, and the contract above.
    let (target, shown) = unsafe { target_of(path)? };
    check_open_mode(omode)?;
    if basepe != 0 || omode & INMEMORY != 0 {
        // Without memory there is nothing to open in memory; the reference crashes.
        return Err(NcError::Inval.into());
    }
    prepare_for_fork_and_exit();
    let options = OpenOptions {
        write: omode & WRITE != 0,
        share: omode & SHARE != 0,
        io: target.io.clone(),
        in_memory: held_in_memory(omode),
    };
    let dataset = Dataset::open(os_path(&target), &options).map_err(|error| {
        // A folder can be opened, but what is in it is no netCDF file.
        match Failure::from(error) {
            failure if failure.code() == NcError::System(libc::EISDIR) => {
                failure.seen_as(NcError::NotNc)
            }
            failure => failure,
        }
    })?;
    // SAFETY: the contract above.
    unsafe {
        answer_block_bytes(chunksizehintp, |asked| {
            let in_memory = (omode & DISKLESS != 0).then(|| {
                let len = std::fs::metadata(os_path(&target)).map_or(0, |file| file.len());
                usize::try_from(len).unwrap_or(0).next_multiple_of(PAGE)
            });
            block_bytes(asked, &target, in_memory)
        });
        let mode = shown_mode(omode, dataset.format());
        enter(OpenFile { dataset, mode, path: shown, memory: None, persists_memory: false }, ncidp)
    }
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
    let (target, shown) = unsafe { target_of(path)? };
    check_open_mode(omode)?;
    prepare_for_fork_and_exit();
    let options = OpenOptions {
        write: omode & WRITE != 0,
        share: omode & SHARE != 0,
        ..OpenOptions::default()
    };
    let dataset = Dataset::open_in(memory.clone(), os_path(&target), &options)?;
    let persists_memory = omode & PERSIST != 0;
    if persists_memory {
        std::fs::OpenOptions::new()
            .append(true)
            .open(os_path(&target))
            .map_err(|error| NcError::System(error.raw_os_error().unwrap_or(libc::EIO)))?;
    }
    let mode = shown_mode(omode, dataset.format());
    let file = OpenFile { dataset, mode, path: shown, memory: Some(memory), persists_memory };
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
    boundary(|| unsafe { create(path, cmode, 0, 0, std::ptr::null_mut(), ncidp) })
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
    boundary(|| unsafe { create(path, cmode, initialsz, 0, chunksizehintp, ncidp) })
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
    boundary(|| unsafe { create(path, cmode, initialsz, basepe, chunksizehintp, ncidp) })
}

/// `int nc_open(const char *path, int omode, int *ncidp);`
///
/// # Safety
/// `path` is null or a NUL-terminated string; `ncidp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_open(path: *const c_char, omode: c_int, ncidp: *mut c_int) -> c_int {
    // SAFETY: same contract.
    boundary(|| unsafe { open(path, omode, 0, std::ptr::null_mut(), ncidp) })
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
    boundary(|| unsafe { open(path, omode, 0, chunksizehintp, ncidp) })
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
    boundary(|| unsafe { open(path, omode, basepe, chunksizehintp, ncidp) })
}

/// `int nc_redef(int ncid);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_redef(ncid: c_int) -> c_int {
    boundary(|| Ok(handles::file(ncid)?.dataset.redef()?))
}

fn enddef(ncid: c_int, reserve: Reserve) -> CallResult {
    let file = handles::file(ncid)?;
    file.dataset.enddef(reserve).map_err(|error| file.failure(error))
}

/// `int nc_enddef(int ncid);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_enddef(ncid: c_int) -> c_int {
    boundary(|| enddef(ncid, Reserve::Default))
}

/// `int nc__enddef(int ncid, size_t h_minfree, size_t v_align, size_t v_minfree, size_t r_align);`
#[unsafe(no_mangle)]
pub extern "C" fn nc__enddef(
    ncid: c_int,
    h_minfree: usize,
    v_align: usize,
    v_minfree: usize,
    r_align: usize,
) -> c_int {
    let [h_minfree, v_align, v_minfree, r_align] =
        [h_minfree, v_align, v_minfree, r_align].map(|n| n as u64);
    boundary(|| enddef(ncid, Reserve::Explicit { h_minfree, v_align, v_minfree, r_align }))
}

/// `int nc_sync(int ncid);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_sync(ncid: c_int) -> c_int {
    boundary(|| {
        let file = handles::file(ncid)?;
        file.dataset.sync().map_err(|error| file.failure(error))
    })
}

/// `int nc_abort(int ncid);`
///
/// The file is closed even if this fails.
#[unsafe(no_mangle)]
pub extern "C" fn nc_abort(ncid: c_int) -> c_int {
    boundary(|| Ok(handles::remove(ncid)?.dataset.abort()?))
}

/// `int nc_close(int ncid);`
///
/// The file is closed even if this fails.
#[unsafe(no_mangle)]
pub extern "C" fn nc_close(ncid: c_int) -> c_int {
    boundary(|| {
        let file = handles::remove(ncid)?;
        file.dataset.close().map_err(|error| file.failure(error))?;
        Ok(file.persist_memory()?)
    })
}

/// `int nc_set_fill(int ncid, int fillmode, int *old_modep);`
///
/// # Safety
/// `old_modep` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_set_fill(ncid: c_int, fillmode: c_int, old_modep: *mut c_int) -> c_int {
    boundary(|| {
        let file = handles::file(ncid)?;
        let mode = match fillmode {
            0 => FillMode::Fill,
            NOFILL => FillMode::NoFill,
            _ if !file.dataset.is_writable() => return Err(NcError::Perm.into()),
            _ => return Err(NcError::Inval.into()),
        };
        let old = match file.dataset.set_fill(mode).map_err(|error| file.failure(error))? {
            FillMode::Fill => 0,
            FillMode::NoFill => NOFILL,
        };
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(old_modep, old) };
        Ok(())
    })
}

/// `int nc_set_default_format(int format, int *old_formatp);`
///
/// # Safety
/// `old_formatp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_set_default_format(format: c_int, old_formatp: *mut c_int) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is `put`'s contract. A wrong format leaves the old one, which
        // is told all the same.
        unsafe { put(old_formatp, DEFAULT_FORMAT.load(Ordering::Relaxed)) };
        if !(1..=5).contains(&format) {
            return Err(NcError::Inval.into());
        }
        DEFAULT_FORMAT.store(format, Ordering::Relaxed);
        Ok(())
    })
}

/// `int nc_get_default_format(void);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_get_default_format() -> c_int {
    DEFAULT_FORMAT.load(Ordering::Relaxed)
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
    boundary(|| {
        let mut ncid = 0;
        // SAFETY: same contract.
        unsafe { open(path, 0, 0, std::ptr::null_mut(), &raw mut ncid)? };
        handles::remove(ncid)?.dataset.close()?;
        if basepe != 0 {
            return Err(NcError::Inval.into());
        }
        // SAFETY: not null, or it could not have been opened.
        let (target, _) = unsafe { target_of(path)? };
        Ok(std::fs::remove_file(os_path(&target)).map_err(|_| NcError::Io)?)
    })
}

/// `int nc_set_base_pe(int ncid, int pe);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_set_base_pe(ncid: c_int, _pe: c_int) -> c_int {
    boundary(|| Ok(handles::file(ncid).map(drop)?))
}

/// `int nc_inq_base_pe(int ncid, int *pe);`
///
/// # Safety
/// `pe` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_base_pe(ncid: c_int, pe: *mut c_int) -> c_int {
    boundary(|| {
        handles::file(ncid)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(pe, 0) };
        Ok(())
    })
}

/// `int nc_inq_format(int ncid, int *formatp);`
///
/// # Safety
/// `formatp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_format(ncid: c_int, formatp: *mut c_int) -> c_int {
    boundary(|| {
        let format = handles::file(ncid)?.dataset.format();
        // SAFETY: the contract above is `put`'s contract.
        unsafe { put(formatp, format.nc_format()) };
        Ok(())
    })
}

/// `int nc_inq_format_extended(int ncid, int *formatp, int *modep);`
///
/// # Safety
/// Both are null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_format_extended(
    ncid: c_int,
    formatp: *mut c_int,
    modep: *mut c_int,
) -> c_int {
    boundary(|| {
        let file = handles::file(ncid)?;
        // SAFETY: the contract above is `put`'s contract.
        unsafe {
            put(formatp, FORMATX_NC3);
            put(modep, file.mode);
        }
        Ok(())
    })
}

/// `int nc_inq_path(int ncid, size_t *pathlen, char *path);`
///
/// # Safety
/// `pathlen` is null, or valid for a write; `path` is null, or has room for the path and its NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_path(ncid: c_int, pathlen: *mut usize, path: *mut c_char) -> c_int {
    boundary(|| {
        let file = handles::file(ncid)?;
        let text = file.path.to_bytes();
        // SAFETY: the contract above is that of both.
        unsafe {
            put(pathlen, text.len());
            put_text(path, text);
        }
        Ok(())
    })
}

/// `int nc_inq(int ncid, int *ndimsp, int *nvarsp, int *nattsp, int *unlimdimidp);`
///
/// # Safety
/// Each is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq(
    ncid: c_int,
    ndimsp: *mut c_int,
    nvarsp: *mut c_int,
    nattsp: *mut c_int,
    unlimdimidp: *mut c_int,
) -> c_int {
    boundary(|| {
        handles::file(ncid)?.dataset.meta(|meta| {
            // SAFETY: the contract above is `put`'s contract.
            unsafe {
                put(ndimsp, c_count(meta.n_dims()));
                put(nvarsp, c_count(meta.n_vars()));
                put(nattsp, c_count(meta.n_global_atts()));
                put(unlimdimidp, meta.unlimited().map_or(-1, |dim| dim.0));
            }
        });
        Ok(())
    })
}

use std::ptr::null_mut as null;

/// `int nc_inq_ndims(int ncid, int *ndimsp);`
///
/// # Safety
/// `ndimsp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_ndims(ncid: c_int, ndimsp: *mut c_int) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_inq(ncid, ndimsp, null(), null(), null()) }
}

/// `int nc_inq_nvars(int ncid, int *nvarsp);`
///
/// # Safety
/// `nvarsp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_nvars(ncid: c_int, nvarsp: *mut c_int) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_inq(ncid, null(), nvarsp, null(), null()) }
}

/// `int nc_inq_natts(int ncid, int *nattsp);`
///
/// # Safety
/// `nattsp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_natts(ncid: c_int, nattsp: *mut c_int) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_inq(ncid, null(), null(), nattsp, null()) }
}

/// `int nc_inq_unlimdim(int ncid, int *unlimdimidp);`
///
/// # Safety
/// `unlimdimidp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_inq_unlimdim(ncid: c_int, unlimdimidp: *mut c_int) -> c_int {
    // SAFETY: same contract.
    unsafe { nc_inq(ncid, null(), null(), null(), unlimdimidp) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicting_modes() {
        for (mode, answer) in [
            (OFFSET_64BIT | DATA_64BIT, Err(NcError::Inval)),
            (OFFSET_64BIT | NETCDF4, Err(NcError::Inval)),
            (DISKLESS | INMEMORY, Err(NcError::Diskless)),
            (DISKLESS | MMAP, Err(NcError::Diskless)),
            (INMEMORY | MMAP, Err(NcError::InMemory)),
            (MMAP | NETCDF4, Err(NcError::Inval)),
            (DISKLESS | PERSIST | SHARE | OFFSET_64BIT, Ok(())),
        ] {
            assert_eq!(check_create_mode(mode), answer, "{mode:#x}");
        }
    }

    #[test]
    fn the_mode_decides_before_the_default() {
        assert_eq!(format_of(0, 2), Ok(Format::Cdf2));
        assert_eq!(format_of(0, 4), Err(NcError::NotBuilt));
        assert_eq!(format_of(CLASSIC_MODEL, 5), Ok(Format::Cdf1));
        assert_eq!(format_of(DATA_64BIT, 2), Ok(Format::Cdf5));
        assert_eq!(format_of(NETCDF4 | CLASSIC_MODEL, 1), Err(NcError::NotBuilt));
        assert_eq!(format_of(UDF, 1), Err(NcError::NotBuilt));
    }

    #[test]
    fn the_mode_shown_names_the_format() {
        assert_eq!(shown_mode(WRITE | NETCDF4, Format::Cdf2), WRITE | OFFSET_64BIT);
    }
}

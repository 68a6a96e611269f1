//! Files in memory of C: `nc_open_mem`, `nc_open_memio`, `nc_create_mem`, `nc_close_memio`.
//!
//! Who owns the memory: `nc_open_mem` borrows it, `NC_MEMIO_LOCKED` borrows it and forbids moving it,
//! everything else makes it the library's until `nc_close_memio` hands it out.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use zonda::NcError;

use crate::boundary::{boundary, boundary_with_code};
use crate::c_memory::slice;
use crate::failure::{CallFailure, CallResult};
use crate::handles::{self, OpenDataset};
use crate::malloc_memory::MallocMemory;
use crate::mode::{INMEMORY, MMAP, WRITE};
use crate::open;
use crate::user_format::{self, OpenArguments, to_user_format};

pub use zonda_user_format::NcMemio;

/// `NC_MEMIO_LOCKED`: the memory stays the caller's and where it is.
const LOCKED: c_int = 1;
/// Shortest memory that can be a file: a magic number.
const MIN_BYTES: usize = 8;
impl OpenDataset {
    /// An error of this file as C sees it: memory that may not grow has a code of its own.
    #[cold]
    pub(crate) fn failure(&self, error: zonda::Error) -> CallFailure {
        let failure = CallFailure::from(error);
        let refused = self.memory.as_ref().is_some_and(|m| m.has_refused());
        if refused && failure.code() == NcError::System(libc::ENOMEM) {
            return failure.with_code(NcError::InMemory);
        }
        failure
    }

    /// Writes a file in C memory to its path, where `NC_PERSIST` asks for it.
    pub(crate) fn persist_memory(&self) -> Result<(), NcError> {
        let persists = self.persists_memory && !self.dataset.is_forked();
        let Some(memory) = self.memory.as_ref().filter(|_| persists) else {
            return Ok(());
        };
        zonda::persist(&**memory, self.dataset.path()).map_err(|error| error.code())
    }
}

/// Opens what lies in C memory, which becomes the library's if `owned` and when this succeeds.
///
/// # Safety
/// `path` is null or a NUL-terminated string; `memory` is valid for `size` bytes until the file is
/// closed, and for writes if `omode` says so; `ncidp` is null, or valid for a write.
unsafe fn open_bytes(
    path: *const c_char,
    omode: c_int,
    (memory, size): (*mut c_void, usize),
    owned: bool,
    ncidp: *mut c_int,
) -> CallResult {
    let memory = Arc::new(MallocMemory::of_caller(memory, size));
    // SAFETY: same contract.
    unsafe { open::open_memory(path, omode | INMEMORY, Arc::clone(&memory), ncidp)? };
    memory.set_owned(owned);
    Ok(())
}

/// Opens what lies in C memory with the table of a program's own format, if it is of one; the table gets
/// the description of the memory.
///
/// # Safety
/// As [`open_bytes`]; `memio` describes the memory.
unsafe fn open_by_table(
    path: *const c_char,
    omode: c_int,
    memio: *mut NcMemio,
    ncidp: *mut c_int,
) -> Result<Option<c_int>, CallFailure> {
    let mode = omode | INMEMORY;
    // SAFETY: same contract.
    unsafe {
        let bytes = slice((*memio).memory.cast::<u8>(), (*memio).size);
        let Some((table, path)) = open::table_of_memory(path, mode, bytes)? else {
            return Ok(None);
        };
        let arguments = OpenArguments {
            mode,
            create: None,
            basepe: 0,
            chunksizehintp: null_mut(),
            memory: memio,
        };
        user_format::open(table, path, &arguments, ncidp).map(Some)
    }
}

/// `int nc_open_mem(const char *path, int omode, size_t size, void *memory, int *ncidp);`
///
/// For reading only; the memory stays the caller's.
///
/// # Safety
/// `path` is null or a NUL-terminated string; `memory` is null or `size` bytes that stay as they are
/// until the file is closed; `ncidp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_open_mem(
    path: *const c_char,
    omode: c_int,
    size: usize,
    memory: *mut c_void,
    ncidp: *mut c_int,
) -> c_int {
    boundary_with_code(|| {
        let unusable = memory.is_null() || size < MIN_BYTES || path.is_null();
        if unusable || omode & (WRITE | MMAP) != 0 {
            return Err(NcError::Inval.into());
        }
        let mut memio = NcMemio { size, memory, flags: LOCKED };
        // SAFETY: the contract above.
        unsafe {
            if let Some(answer) = open_by_table(path, omode, &raw mut memio, ncidp)? {
                return Ok(answer);
            }
            open_bytes(path, omode, (memory, size), false, ncidp)?;
        }
        Ok(0)
    })
}

/// `int nc_open_memio(const char *path, int omode, NC_memio *params, int *ncidp);`
///
/// Without `NC_MEMIO_LOCKED` the memory, which must be of `malloc`, becomes the library's when the
/// call succeeds; with `NC_WRITE` the pointer in `params` is then null, since the memory may move.
///
/// # Safety
/// `path` is null or a NUL-terminated string; `params` is null or describes memory of the caller;
/// `ncidp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_open_memio(
    path: *const c_char,
    omode: c_int,
    params: *mut NcMemio,
    ncidp: *mut c_int,
) -> c_int {
    boundary_with_code(|| {
        // SAFETY: null, or the caller's.
        let Some(params) = (unsafe { params.as_mut() }) else {
            return Err(NcError::Inval.into());
        };
        let unusable = path.is_null() || params.memory.is_null() || params.size < MIN_BYTES;
        if unusable || omode & MMAP != 0 {
            return Err(NcError::Inval.into());
        }
        let locked = params.flags & LOCKED != 0;
        // SAFETY: the contract above.
        unsafe {
            if let Some(answer) = open_by_table(path, omode, &raw mut *params, ncidp)? {
                return Ok(answer);
            }
            open_bytes(path, omode, (params.memory, params.size), !locked, ncidp)?;
        }
        if !locked && omode & WRITE != 0 {
            params.memory = null_mut();
        }
        Ok(0)
    })
}

/// `int nc_create_mem(const char *path, int mode, size_t initialsize, int *ncidp);`
///
/// # Safety
/// `path` is null or a NUL-terminated string; `ncidp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_create_mem(
    path: *const c_char,
    mode: c_int,
    initialsize: usize,
    ncidp: *mut c_int,
) -> c_int {
    boundary_with_code(|| {
        if mode & MMAP != 0 {
            return Err(NcError::Inval.into());
        }
        // SAFETY: same contract.
        unsafe { open::create(path, mode | INMEMORY, initialsize, 0, null_mut(), ncidp) }
    })
}

/// `int nc_close_memio(int ncid, NC_memio *memio);`
///
/// Closes, and hands a file in memory over to the caller, who frees it with `free()` unless it is
/// the caller's own. For other files `memio` is left alone.
///
/// # Safety
/// `memio` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_close_memio(ncid: c_int, memio: *mut NcMemio) -> c_int {
    // SAFETY: same contract.
    to_user_format!(ncid, |table| unsafe { user_format::close(table, ncid, memio) });
    boundary(|| {
        handles::unless_out_of_reach(ncid)?;
        let file = handles::any_group(ncid)?;
        let closed = file.dataset.close().map_err(|error| file.failure(error));
        // Of several threads one closes it, and that one takes it out of the table.
        let is_over = |failure: &CallFailure| failure.code() == NcError::BadId;
        if closed.as_ref().is_err_and(|failure| file.dataset.is_open() || is_over(failure)) {
            return closed;
        }
        let file = handles::take_closed(file, ncid);
        closed?;
        let Some(file) = file else { return Ok(()) };
        // SAFETY: null, or valid for a write by the contract above.
        match (&file.memory, unsafe { memio.as_mut() }) {
            (Some(memory), Some(memio)) => {
                let (start, size) = memory.take();
                (memio.memory, memio.size) = (start.cast(), size);
            }
            _ => file.persist_memory()?,
        }
        Ok(())
    })
}

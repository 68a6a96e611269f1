//! Finds the MPI that is loaded in the process, and loads one where a program asks for that.

use crate::error::MpiError;
use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::NonNull;

/// An MPI in the process, which stays loaded.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// Where its symbols are looked for: a library's handle, or null for what all of the program sees.
    handle: usize,
    /// The file it is in.
    pub(crate) file: String,
}

/// The name of a function that is in each MPI itself: tools that count calls have functions by the name `MPI_Init` before it.
const OWN: &CStr = c"PMPI_Init";

impl Loaded {
    /// The MPI of the process.
    ///
    /// # Errors
    /// [`MpiError::NoMpi`], [`MpiError::TwoMpis`].
    pub(crate) fn find() -> Result<Loaded, MpiError> {
        // What the program sees first: its own copies of Open MPI's constants are there, and tools before MPI's functions.
        let seen = symbol(libc::RTLD_DEFAULT.addr(), OWN);
        let mut found: Vec<(NonNull<c_void>, Loaded)> = Vec::new();
        for path in libraries() {
            let Some(handle) = open(&path) else { continue };
            // A library that only depends on an MPI finds the function, too, in another file.
            match symbol(handle, OWN).filter(|&own| file_of(own).as_ref() == Some(&path)) {
                Some(own) if found.iter().all(|(other, _)| *other != own) => {
                    found.push((own, Loaded { handle, file: path.to_string_lossy().into_owned() }));
                }
                _ => close(handle),
            }
        }
        if let Some(own) = seen
            && found.iter().all(|(other, _)| *other != own)
        {
            let file = file_of(own).unwrap_or_default().to_string_lossy().into_owned();
            found.push((own, Loaded { handle: libc::RTLD_DEFAULT.addr(), file }));
        }
        match (found.pop(), found.pop()) {
            (None, _) => Err(MpiError::NoMpi),
            (Some((_, one)), Some((_, other))) => {
                Err(MpiError::TwoMpis { first: other.file, second: one.file })
            }
            (Some((_, mut one)), None) => {
                if seen.is_some() {
                    // The handle is not closed: it keeps the library in the process.
                    one.handle = libc::RTLD_DEFAULT.addr();
                }
                Ok(one)
            }
        }
    }

    /// Where it has this symbol.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        symbol(self.handle, name)
    }

    /// A function of it.
    ///
    /// # Safety
    /// `F` is the type of a pointer to what MPI has under this name.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let symbol = self.symbol(name)?;
        // SAFETY: of one size, and of the right type by contract.
        Some(unsafe { std::mem::transmute_copy::<NonNull<c_void>, F>(&symbol) })
    }
}

fn symbol(handle: usize, name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the handle is RTLD_DEFAULT or of an open library, the name is NUL-terminated.
    NonNull::new(unsafe {
        libc::dlsym(std::ptr::with_exposed_provenance_mut(handle), name.as_ptr())
    })
}

/// A library that is loaded already.
fn open(path: &CStr) -> Option<usize> {
    // SAFETY: the path is NUL-terminated. RTLD_NOLOAD: no code of a file is run.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    (!handle.is_null()).then(|| handle.expose_provenance())
}

/// Loads the first of some libraries that can be loaded: by its path, or by a name that the loader looks for.
///
/// # Errors
/// [`MpiError::NotLoaded`].
pub(crate) fn load(libraries: &[PathBuf]) -> Result<(), MpiError> {
    let mut why = Vec::new();
    for library in libraries {
        let Ok(name) = CString::new(library.as_os_str().as_bytes()) else { continue };
        // SAFETY: the path is NUL-terminated. The initialization of an MPI's library asks nothing of its program. What MPI
        // loads itself looks for its symbols among those that all see.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if !handle.is_null() {
            return Ok(());
        }
        why.push(loader_says());
    }
    let why = why.into_iter().next().unwrap_or_else(|| String::from("ZONDA_MPI says none"));
    Err(MpiError::NotLoaded { why })
}

/// Why the last `dlopen` of this thread failed.
fn loader_says() -> String {
    // SAFETY: it may be called at any time.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return String::new();
    }
    // SAFETY: a NUL-terminated text of this thread, which stays until the next call of the loader.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn close(handle: usize) {
    // SAFETY: `open` gave it, and nobody uses it any more. Others have the library open, so it stays.
    unsafe { libc::dlclose(std::ptr::with_exposed_provenance_mut(handle)) };
}

/// The loaded file with this address in it, by the name that the loader has for it.
fn file_of(address: NonNull<c_void>) -> Option<CString> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: any address may be asked about; `info` is valid for a write.
    let known = unsafe { libc::dladdr(address.as_ptr(), &raw mut info) } != 0;
    if !known || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a NUL-terminated text of the loader, which is copied before anything can be unloaded.
    Some(unsafe { CStr::from_ptr(info.dli_fname) }.to_owned())
}

/// The paths of the loaded libraries that have a name as MPIs have.
fn libraries() -> Vec<CString> {
    unsafe extern "C" fn note(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        paths: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader gives a valid structure, and `paths` is the list of `libraries`, which nobody else has now.
        let (info, paths) = unsafe { (&*info, &mut *paths.cast::<Vec<CString>>()) };
        if !info.dlpi_name.is_null() {
            // SAFETY: not null, so a NUL-terminated text of the loader.
            let path = unsafe { CStr::from_ptr(info.dlpi_name) };
            if is_named_as_mpi(path.to_bytes()) {
                paths.push(path.to_owned());
            }
        }
        0
    }

    let mut paths: Vec<CString> = Vec::new();
    // SAFETY: `note` is of the right type, does not panic, calls nothing of the loader, and the list outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut paths).cast()) };
    paths
}

/// `libmpi.so.40`, `libmpich.so.12`, `libmpi_abi.so.1`, `libmpi_cray.so.12`, `libmpi-0a1b2c.so.12` (in a wheel), ...
fn is_named_as_mpi(path: &[u8]) -> bool {
    let name = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    name.starts_with(b"libmpi") && name.windows(3).any(|part| part == b".so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_mpis() {
        for name in [
            "/usr/lib/x86_64-linux-gnu/libmpich.so.12",
            "libmpi.so",
            "/opt/cray/lib/libmpi_cray.so.12",
            "x/libmpi_abi.so.1",
            "/venv/mpi.libs/libmpi-8fe2b1.so.12.2",
        ] {
            assert!(is_named_as_mpi(name.as_bytes()), "{name}");
        }
        for name in ["", "/lib/libc.so.6", "/libmpi.so.1/libfoo.so", "libmpi.a", "liblibmpi.so"] {
            assert!(!is_named_as_mpi(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_process_without_mpi_has_none() {
        assert_eq!(Loaded::find().unwrap_err(), MpiError::NoMpi);
    }
}

//! The library beside: found, loaded and asked for its table when the first connection is made.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use zonda_runtime::{Settled, beside};

use crate::Engine;
use crate::table::{FILE, GetTable, SYMBOL, Table, VERSION};

/// Why there is no library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoLibrary {
    /// It is nowhere.
    #[error(
        "{FILE} is not there, which does TLS: not {}, and the loader has none ({why}). It belongs beside libnetcdf.so.19: \
         install Zonda anew (make install; Debian's package libzonda; the wheel zonda), or copy it there",
        listed(looked)
    )]
    Missing {
        /// The paths it could have.
        looked: Vec<PathBuf>,
        /// What the loader says.
        why: String,
    },
    /// A file with its name is something else.
    #[error("{}, which does TLS, cannot be used: {why}. Install it and libnetcdf.so.19 from the same release of Zonda", file.display())]
    Unusable {
        /// The file, or its name where the loader found it.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", not ")
}

/// What the static library has instead of a library beside: in `libnetcdf.a`, scripts/link.sh puts the engine's variable, which points to its table, in the
/// place of this one.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)] // a name for linkers
static zonda_tls_linked: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());

/// What does the work, in the library beside. Looked for until it was found, so that one that is installed later is taken.
///
/// # Errors
/// [`NoLibrary`].
pub fn engine() -> Result<Engine, NoLibrary> {
    static ENGINE: Settled<Engine> = Settled::new();
    let linked = zonda_tls_linked.load(Ordering::Relaxed);
    if !linked.is_null() {
        // SAFETY: the engine's own table, which was linked with this code.
        return Ok(unsafe { Engine::new(&*linked) });
    }
    if let Some(engine) = ENGINE.get() {
        return Ok(*engine);
    }
    // Two threads may come here: the loader counts how often it is asked for a library.
    let engine = find(&beside::places(FILE))?;
    Ok(*ENGINE.get_or_make(|| engine))
}

/// The library of this folder, loaded; where the folder has none, the one that the loader finds.
///
/// # Errors
/// [`NoLibrary`].
pub fn check(folder: &Path) -> Result<PathBuf, NoLibrary> {
    let file = folder.join(FILE);
    find(std::slice::from_ref(&file))?;
    Ok(if file.exists() { file } else { PathBuf::from(FILE) })
}

fn find(looked: &[PathBuf]) -> Result<Engine, NoLibrary> {
    let _alone = beside::loading();
    if let Some(file) = looked.iter().find(|path| path.exists()) {
        let unusable = |why| NoLibrary::Unusable { file: file.clone(), why };
        beside::check_whole(file).map_err(unusable)?;
        return open(file).and_then(table_of).map_err(unusable);
    }
    let file = Path::new(FILE);
    let handle = open(file).map_err(|why| NoLibrary::Missing { looked: looked.to_vec(), why })?;
    table_of(handle).map_err(|why| NoLibrary::Unusable { file: file.to_owned(), why })
}

/// A loaded library.
fn open(file: &Path) -> Result<NonNull<c_void>, String> {
    let name = CString::new(file.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the name is NUL-terminated. The library runs no code when it is loaded; another file with its name is trusted as this one is, beside which it
    // lies, or as the libraries are that the loader finds for this process.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    NonNull::new(handle).ok_or_else(loader_says)
}

/// The table of a loaded library, which stays loaded.
fn table_of(handle: NonNull<c_void>) -> Result<Engine, String> {
    // SAFETY: the handle is open, the name is NUL-terminated.
    let symbol = unsafe { libc::dlsym(handle.as_ptr(), SYMBOL.as_ptr()) };
    if symbol.is_null() {
        return Err(format!("there is no {} in it", SYMBOL.to_string_lossy()));
    }
    // SAFETY: by this name, the library has a function of this type, whatever its version is.
    let table = unsafe {
        let get = std::mem::transmute::<*mut c_void, GetTable>(symbol);
        get()
    };
    if table.is_null() {
        return Err(String::from("it gives no table"));
    }
    // SAFETY: a table has these two numbers first, in each version.
    let (version, table_bytes) = unsafe { (*table.cast::<u32>(), *table.cast::<u32>().add(1)) };
    let own = size_of::<Table>();
    if version != VERSION || usize::try_from(table_bytes) != Ok(own) {
        return Err(format!(
            "its table has version {version} and {table_bytes} bytes, and version {VERSION} with {own} bytes is wanted"
        ));
    }
    // SAFETY: not null, of this version, and there until the process ends, since the library is never closed. Its functions are those of the version.
    Ok(unsafe { Engine::new(&*table) })
}

/// Why the last call of the loader by this thread failed.
fn loader_says() -> String {
    // SAFETY: it may be called at any time.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return String::from("the loader says nothing");
    }
    // SAFETY: a NUL-terminated text of this thread, which stays until the next call of the loader.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_told_by_the_files_that_it_could_be() {
        let said = engine().unwrap_err().to_string();
        let own = std::env::current_exe().unwrap();
        let beside = own.with_file_name(FILE);
        assert!(said.contains(&format!("not {}", beside.display())), "{said}");
        assert!(said.contains("libnetcdf.so.19") && said.contains("make install"), "{said}");
    }

    #[test]
    fn a_file_of_the_name_that_is_something_else_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        std::fs::write(&file, "no library").unwrap();
        let error = find(&[folder.path().join("none"), file.clone()]).unwrap_err();
        assert!(
            matches!(&error, NoLibrary::Unusable { file: told, .. } if *told == file),
            "{error}"
        );
        // Some library that every process has, under our name.
        let libc = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc = libc.lines().find_map(|line| {
            line.split_whitespace().last().filter(|path| path.ends_with("/libc.so.6"))
        });
        let Some(libc) = libc else { return };
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(libc, &file).unwrap();
        let error = find(std::slice::from_ref(&file)).unwrap_err().to_string();
        assert!(error.contains("there is no zonda_tls_table in it"), "{error}");
    }
}

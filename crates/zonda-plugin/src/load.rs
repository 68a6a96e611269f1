//! Opening a plugin's file: what HDF5's header `H5PLextern.h` asks of it.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use zonda_runtime::{Settled, beside};

use crate::alone::Alone;

/// `H5PL_TYPE_FILTER`.
const TYPE_FILTER: c_int = 0;
/// `H5Z_CLASS_T_VERS`: the one version of the structure below.
const CLASS_VERSION: c_int = 1;

/// `H5Z_func_t`.
pub(crate) type FilterFn = unsafe extern "C" fn(
    flags: c_uint,
    cd_nelmts: usize,
    cd_values: *const c_uint,
    nbytes: usize,
    buf_size: *mut usize,
    buf: *mut *mut c_void,
) -> usize;

/// `H5Z_class2_t`.
#[repr(C)]
struct FilterClass {
    version: c_int,
    id: c_int,
    encoder_present: c_uint,
    decoder_present: c_uint,
    name: *const c_char,
    can_apply: *const c_void,
    set_local: *const c_void,
    filter: Option<FilterFn>,
}

/// A filter in a loaded file, which stays loaded.
#[derive(Debug)]
pub(crate) struct Plugin {
    pub(crate) id: u32,
    pub(crate) name: &'static str,
    pub(crate) encodes: bool,
    pub(crate) decodes: bool,
    pub(crate) function: FilterFn,
    /// One call at a time.
    pub(crate) alone: Alone,
}

/// The filter in a file; none if it does not load or is no filter.
pub(crate) fn open(file: &Path) -> Option<Arc<Plugin>> {
    let library = Library::open(file)?;
    // SAFETY: by these names, plugins define functions of these types (H5PLextern.h).
    let (plugin_type, plugin_info) = unsafe {
        (
            library.function::<unsafe extern "C" fn() -> c_int>(c"H5PLget_plugin_type")?,
            library
                .function::<unsafe extern "C" fn() -> *const FilterClass>(c"H5PLget_plugin_info")?,
        )
    };
    // SAFETY: both functions take nothing and may be called at any time.
    let class = unsafe {
        if plugin_type() != TYPE_FILTER {
            return None;
        }
        // What a filter plugin returns is its class, in static memory; null is checked for.
        plugin_info().as_ref()?
    };
    if class.version != CLASS_VERSION {
        return None;
    }
    let name = if class.name.is_null() {
        String::from("plugin")
    } else {
        // SAFETY: not null, so a NUL-terminated text as the interface says.
        unsafe { CStr::from_ptr(class.name) }.to_string_lossy().into_owned()
    };
    Some(Arc::new(Plugin {
        id: u32::try_from(class.id).ok()?,
        // Plugins stay, and are few.
        name: String::leak(name),
        encodes: class.encoder_present != 0,
        decodes: class.decoder_present != 0,
        function: class.filter?,
        alone: Alone::new(),
    }))
}

/// A loaded file. Never closed.
struct Library(*mut c_void);

impl Library {
    /// Loads a file with everything it needs bound, so that a symbol nobody has is a failure here
    /// and not the end of the process later.
    fn open(file: &Path) -> Option<Library> {
        let name = CString::new(file.as_os_str().as_bytes()).ok()?;
        beside::check_whole(file).ok()?;
        load(&name, libc::RTLD_LOCAL)
            .or_else(|| {
                load_shim();
                load(&name, libc::RTLD_LOCAL)
            })
            .map(Library)
    }

    /// A function of the file.
    ///
    /// # Safety
    /// `F` is the type of a pointer to what the file has under this name.
    unsafe fn function<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the handle is open, the name is NUL-terminated.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if symbol.is_null() {
            return None;
        }
        // SAFETY: of one size, and of the right type by contract.
        Some(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&symbol) })
    }
}

fn load(name: &CStr, scope: c_int) -> Option<*mut c_void> {
    let _alone = beside::loading();
    // SAFETY: the name is NUL-terminated. Initialisers of the file run: whoever names the folder
    // trusts what is in it.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | scope) };
    (!handle.is_null()).then_some(handle)
}

/// Gives plugins the HDF5 functions they lack, from the file beside the library or program that this
/// code is in. Only once a plugin did not load without: a program's real libhdf5 has them already.
fn load_shim() {
    const SHIM: &CStr = c"libzonda-h5shim.so";
    // The loader counts how often it is asked for a library, so two threads may come here.
    static LOADED: Settled<()> = Settled::new();
    LOADED.get_or_make(|| {
        let beside = SHIM.to_str().ok().and_then(|name| {
            beside::places(name).iter().find_map(|path| {
                load(&CString::new(path.as_os_str().as_bytes()).ok()?, libc::RTLD_GLOBAL)
            })
        });
        if beside.is_none() {
            load(SHIM, libc::RTLD_GLOBAL);
        }
    });
}

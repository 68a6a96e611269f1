//! The distribution's libnetcdf exports its conversion functions; where it is installed they are
//! timed beside ours.

use std::ffi::{CString, c_int, c_void};
use std::sync::OnceLock;

use zonda_model::{ExtType, MemType};

type GetN = unsafe extern "C" fn(*mut *const c_void, usize, *mut c_void) -> c_int;
type PutN = unsafe extern "C" fn(*mut *mut c_void, usize, *const c_void, *mut c_void) -> c_int;

/// One conversion function of the reference.
#[derive(Clone, Copy)]
pub(crate) enum Function {
    Get(GetN),
    Put(PutN),
}

fn c_name(ty: MemType) -> &'static str {
    match ty {
        MemType::Text => "text",
        MemType::I8 => "schar",
        MemType::U8 => "uchar",
        MemType::I16 => "short",
        MemType::U16 => "ushort",
        MemType::I32 => "int",
        MemType::U32 => "uint",
        MemType::I64 => "longlong",
        MemType::U64 => "ulonglong",
        MemType::F32 => "float",
        MemType::F64 => "double",
    }
}

fn symbol(direction: &str, ext: ExtType, mem: MemType) -> Option<*mut c_void> {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    // SAFETY: the name is a C string; loading the library runs only its own initialisers.
    let library = *LIBRARY.get_or_init(|| unsafe {
        libc::dlopen(c"libnetcdf.so.19".as_ptr(), libc::RTLD_NOW) as usize
    });
    if library == 0 {
        return None;
    }
    let name = format!("ncx_{direction}n_{}_{}", c_name(ext.natural_mem()), c_name(mem));
    let name = CString::new(name).ok()?;
    // SAFETY: the library was opened above and is never closed; the name is a C string.
    let symbol = unsafe { libc::dlsym(library as *mut c_void, name.as_ptr()) };
    (!symbol.is_null()).then_some(symbol)
}

impl Function {
    pub(crate) fn get(ext: ExtType, mem: MemType) -> Option<Function> {
        let symbol = symbol("get", ext, mem)?;
        // SAFETY: functions of this name have this signature in libnetcdf.so.19.
        Some(Function::Get(unsafe { std::mem::transmute::<*mut c_void, GetN>(symbol) }))
    }

    pub(crate) fn put(ext: ExtType, mem: MemType) -> Option<Function> {
        let symbol = symbol("put", ext, mem)?;
        // SAFETY: functions of this name have this signature in libnetcdf.so.19.
        Some(Function::Put(unsafe { std::mem::transmute::<*mut c_void, PutN>(symbol) }))
    }

    /// Converts `elems` elements, which both slices hold.
    pub(crate) fn call(self, src: &[u8], dst: &mut [u8], elems: usize) {
        // SAFETY: both slices hold `elems` elements of the types the function was looked up for
        // and stay borrowed for the call; the advanced pointer is ours and dropped.
        unsafe {
            match self {
                Function::Get(get) => {
                    let mut from: *const c_void = src.as_ptr().cast();
                    get(&raw mut from, elems, dst.as_mut_ptr().cast());
                }
                Function::Put(put) => {
                    let mut to: *mut c_void = dst.as_mut_ptr().cast();
                    put(&raw mut to, elems, src.as_ptr().cast(), std::ptr::null_mut());
                }
            }
        }
    }
}

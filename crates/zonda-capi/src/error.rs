//! Error codes as text.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use zonda::NcError;
use zonda_runtime::Settled;

/// Numbers of the operating system's errors; all that Linux has are below.
const N_ERRNO: usize = 256;

/// The netCDF codes and their texts.
static TEXTS: Settled<Vec<(c_int, CString)>> = Settled::new();

/// Texts of the operating system, made when asked for. They stay, since C keeps the pointers.
static SYSTEM: [Settled<CString>; N_ERRNO] = [const { Settled::new() }; N_ERRNO];

thread_local! {
    /// Text for a number that the system has no error for.
    static UNKNOWN: RefCell<CString> = RefCell::new(CString::default());
}

/// `const char *nc_strerror(int ncerr);`
///
/// For a positive code the text of the operating system. The result is static; for a positive code
/// that the system does not have, it is valid until the thread asks for another such code.
#[unsafe(no_mangle)]
pub extern "C" fn nc_strerror(ncerr: c_int) -> *const c_char {
    if let Some(text) = text(ncerr) {
        return text.as_ptr();
    }
    let made = UNKNOWN.try_with(|slot| {
        *slot.borrow_mut() = system_text(ncerr);
        slot.borrow().as_ptr()
    });
    made.unwrap_or(c"Unknown error".as_ptr())
}

fn text(code: c_int) -> Option<&'static CStr> {
    if code == 0 {
        return Some(c"No error");
    }
    if code < 0 {
        let texts = TEXTS.get_or_make(|| {
            let text_of = |error: &NcError| Some((error.code(), CString::new(error.text()?).ok()?));
            NcError::ALL.iter().filter_map(text_of).collect()
        });
        let known = texts.iter().find(|&&(known, _)| known == code);
        return Some(known.map_or(c"Unknown Error", |(_, text)| text));
    }
    let slot = SYSTEM.get(usize::try_from(code).ok()?)?;
    Some(slot.get_or_make(|| system_text(code)))
}

/// What `strerror` says, without its shared buffer.
fn system_text(errno: c_int) -> CString {
    let mut buffer: [c_char; 256] = [0; 256];
    // SAFETY: the buffer is as long as said, and the result is NUL-terminated, errors included.
    unsafe {
        libc::strerror_r(errno, buffer.as_mut_ptr(), buffer.len());
        CStr::from_ptr(buffer.as_ptr()).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_text() {
        for error in NcError::ALL {
            assert_eq!(text(error.code()).and_then(|text| text.to_str().ok()), error.text());
        }
        assert_eq!(text(0), Some(c"No error"));
        assert_eq!(text(2), Some(c"No such file or directory"));
        assert_eq!(text(-1), Some(c"Unknown Error"));
        assert_eq!(text(-9999), Some(c"Unknown Error"));
        // SAFETY: the result is a NUL-terminated string.
        let unknown = unsafe { CStr::from_ptr(nc_strerror(5000)) };
        assert_eq!(unknown, c"Unknown error 5000");
    }
}

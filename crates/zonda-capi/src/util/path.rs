//! `NCpathcanonical`: paths of Windows and Cygwin in the form that all platforms understand.

use std::ffi::{c_char, c_int};

use crate::boundary::boundary;
use crate::c_memory::{bytes, malloc_text, put};

/// The canonical form: forward slashes, and a drive as `/cygdrive/D`. Paths of Unix and relative
/// ones stay.
fn canonical(path: &[u8]) -> Vec<u8> {
    const CYGDRIVE: &[u8] = b"/cygdrive/";
    let path: Vec<u8> = path.iter().map(|&b| if b == b'\\' { b'/' } else { b }).collect();
    // A network path //host/..., whose drive is called '/'.
    if let Some(rest) = path.strip_prefix(b"//") {
        let tail = if rest.is_empty() { &[][..] } else { &path[1..] };
        return [CYGDRIVE, b"/", tail].concat();
    }
    match path.as_slice() {
        [drive, b':', rest @ ..]
            if drive.is_ascii_alphabetic() && matches!(rest.first(), None | Some(b'/')) =>
        {
            [CYGDRIVE, &[*drive], rest].concat()
        }
        _ => path,
    }
}

/// `int NCpathcanonical(const char *srcpath, char **canonp);`
///
/// The result is the caller's to free. A null path is no error and gives no result.
///
/// # Safety
/// `srcpath` is null or a NUL-terminated string; `canonp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NCpathcanonical(
    srcpath: *const c_char,
    canonp: *mut *mut c_char,
) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is that of `bytes`.
        let Some(path) = (unsafe { bytes(srcpath) }) else { return Ok(()) };
        if !canonp.is_null() {
            let copy = malloc_text(&canonical(path))?;
            // SAFETY: the contract above is `put`'s contract.
            unsafe { put(canonp, copy) };
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn paths_become_what_the_reference_makes_of_them() {
        for (path, expected) in [
            ("a/b", "a/b"),
            ("/a/b", "/a/b"),
            ("//a/b", "/cygdrive///a/b"),
            ("//", "/cygdrive//"),
            ("/cygdrive/d/x", "/cygdrive/d/x"),
            ("d:/x", "/cygdrive/d/x"),
            ("D:", "/cygdrive/D"),
            ("c:\\x\\y", "/cygdrive/c/x/y"),
            ("a\\b", "a/b"),
            ("ab:/x", "ab:/x"),
            ("", ""),
            ("http://x/y", "http://x/y"),
        ] {
            assert_eq!(String::from_utf8_lossy(&canonical(path.as_bytes())), expected, "{path}");
        }
    }
}

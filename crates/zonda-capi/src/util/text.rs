//! Small translations of text.

use std::ffi::{c_char, c_int, c_uchar, c_ushort};

use zonda::NcError;

use crate::boundary::boundary;
use crate::c_memory::{bytes, malloc_copy, malloc_text, put, put_text};

/// `char *NC_shellUnescape(const char *esc);`
///
/// Drops the backslash before each `#`, which some shells add to path fragments. The result is
/// the caller's to free; null for null.
///
/// # Safety
/// `esc` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NC_shellUnescape(esc: *const c_char) -> *mut c_char {
    // SAFETY: the contract above is that of `bytes`.
    let Some(text) = (unsafe { bytes(esc) }) else { return std::ptr::null_mut() };
    let mut plain = Vec::with_capacity(text.len());
    for (at, &byte) in text.iter().enumerate() {
        if byte != b'\\' || text.get(at + 1) != Some(&b'#') {
            plain.push(byte);
        }
    }
    malloc_text(&plain).unwrap_or(std::ptr::null_mut())
}

/// `int nc_utf8_to_utf16(const unsigned char *s8, unsigned short **utf16p, size_t *len16p);`
///
/// The result ends with a 0 that `*len16p` does not count. `NC_EBADNAME` for bytes that are not
/// UTF-8, and for characters that need two units: the reference makes none.
///
/// # Safety
/// `s8` is null or a NUL-terminated string; the others are null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_utf8_to_utf16(
    s8: *const c_uchar,
    utf16p: *mut *mut c_ushort,
    len16p: *mut usize,
) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is that of `bytes`.
        let text = unsafe { bytes(s8.cast()) }.ok_or(NcError::Inval)?;
        let text = std::str::from_utf8(text).map_err(|_| NcError::BadName)?;
        let units = text.chars().map(|c| u16::try_from(u32::from(c)));
        let mut units = units.collect::<Result<Vec<_>, _>>().map_err(|_| NcError::BadName)?;
        let len = units.len();
        units.push(0);
        // SAFETY: the contract above covers both writes.
        unsafe {
            if !utf16p.is_null() {
                utf16p.write(malloc_copy(&units)?);
            }
            put(len16p, len);
        }
        Ok(())
    })
}

/// `size_t strlcat(char *dst, const char *src, size_t dsize);`
///
/// Appends `src` to `dst` as far as an array of `dsize` bytes holds it, and ends it with a NUL.
/// Returns the length that was tried: `dsize` or more means that it was cut. A `dst` without a NUL
/// in its `dsize` bytes stays as it is and counts as `dsize` long. The tools import it, because
/// the libc that they were linked with has none.
///
/// # Safety
/// `dst` is valid for reads and writes of `dsize` bytes (null only if that is 0), `src` is null or
/// a NUL-terminated string, and the two do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strlcat(dst: *mut c_char, src: *const c_char, dsize: usize) -> usize {
    // SAFETY: the contract above is that of `bytes`.
    let text = unsafe { bytes(src) }.unwrap_or_default();
    // SAFETY: `dst` is valid for `dsize` bytes; of none, nothing is read.
    let len = if dsize == 0 { 0 } else { unsafe { libc::strnlen(dst, dsize) } };
    if len < dsize {
        let fits = text.len().min(dsize - len - 1);
        // SAFETY: `len + fits` is below `dsize`.
        unsafe { put_text(dst.add(len), &text[..fits]) };
    }
    len + text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strlcat_cuts_at_the_end_of_the_array() {
        for (before, room, after, returned) in [
            ("ab", 8, "abxyz", 5),
            ("ab", 6, "abxyz", 5),
            ("ab", 5, "abxy", 5),
            ("ab", 3, "ab", 5),
            ("ab", 2, "ab", 5),
            ("ab", 1, "ab", 4),
            ("ab", 0, "ab", 3),
            ("", 8, "xyz", 3),
        ] {
            let mut array = [b'#'; 10];
            array[..before.len()].copy_from_slice(before.as_bytes());
            array[before.len()] = 0;
            let dst = array.as_mut_ptr().cast();
            // SAFETY: the array is longer than `room`.
            assert_eq!(unsafe { strlcat(dst, c"xyz".as_ptr(), room) }, returned, "{room}");
            let end = array.iter().position(|&byte| byte == 0).unwrap();
            assert_eq!(&array[..end], after.as_bytes(), "{room}");
            assert!(array[end + 1..].iter().all(|&byte| byte == b'#' || byte == 0));
        }
        // SAFETY: nothing is read or written through a null array of no bytes.
        assert_eq!(unsafe { strlcat(std::ptr::null_mut(), c"xyz".as_ptr(), 0) }, 3);
    }
}

//! `NClist`: a growing array of pointers.

use std::ffi::{c_int, c_void};

use crate::c_memory::release;
use crate::tuning::NCLIST_FIRST_ENTRIES;

/// `NClist`. Callers read `length` and `content` themselves.
#[derive(Debug)]
#[repr(C)]
pub struct NcList {
    /// Entries that `content` has room for.
    pub alloc: usize,
    /// Entries in use.
    pub length: usize,
    /// The entries, from `malloc`.
    pub content: *mut *mut c_void,
}

/// `NClist *nclistnew(void);` An empty list, or null without memory.
#[unsafe(no_mangle)]
pub extern "C" fn nclistnew() -> *mut NcList {
    // SAFETY: all zero is an empty list.
    unsafe { libc::calloc(1, size_of::<NcList>()) }.cast()
}

/// `int nclistfree(NClist *l);` Frees the list, not what its entries point to. Returns 1.
///
/// # Safety
/// `l` is null, or from [`nclistnew`] and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nclistfree(l: *mut NcList) -> c_int {
    // SAFETY: null or valid by contract; the array is from malloc.
    unsafe {
        if let Some(list) = l.as_ref() {
            release(list.content);
        }
        release(l);
    }
    1
}

/// `int nclistpush(NClist *l, const void *elem);` Adds an entry at the end. Returns 1, or 0
/// without a list or memory.
///
/// # Safety
/// `l` is null or a valid list that no other thread uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nclistpush(l: *mut NcList, elem: *const c_void) -> c_int {
    // SAFETY: null or valid by contract.
    let Some(list) = (unsafe { l.as_mut() }) else { return 0 };
    if list.length >= list.alloc {
        let n_entries = list.alloc.saturating_mul(2).max(NCLIST_FIRST_ENTRIES);
        let Some(bytes) = n_entries.checked_mul(size_of::<*mut c_void>()) else { return 0 };
        // SAFETY: the array is null or from malloc.
        let content = unsafe { libc::realloc(list.content.cast(), bytes) };
        if content.is_null() {
            return 0;
        }
        list.content = content.cast();
        list.alloc = n_entries;
    }
    // SAFETY: `length` is below `alloc` now.
    unsafe { list.content.add(list.length).write(elem.cast_mut()) };
    list.length += 1;
    1
}

/// `void *nclistremove(NClist *l, size_t i);` Takes entry `i` out and returns it; null if there
/// is none.
///
/// # Safety
/// As [`nclistpush`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nclistremove(l: *mut NcList, i: usize) -> *mut c_void {
    // SAFETY: null or valid by contract.
    let Some(list) = (unsafe { l.as_mut() }) else { return std::ptr::null_mut() };
    if i >= list.length {
        return std::ptr::null_mut();
    }
    list.length -= 1;
    // SAFETY: `i` is in use, and what follows it moves down by one within the array.
    unsafe {
        let at = list.content.add(i);
        let entry = at.read();
        std::ptr::copy(at.add(1), at, list.length - i);
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_keeps_its_order_while_it_grows() {
        let list = nclistnew();
        // SAFETY: one list, used by this thread only.
        unsafe {
            for entry in 1..=50_usize {
                assert_eq!(nclistpush(list, entry as *const c_void), 1);
            }
            assert_eq!((*list).length, 50);
            assert_eq!(nclistremove(list, 49) as usize, 50);
            for entry in 1..=49_usize {
                assert_eq!(nclistremove(list, 0) as usize, entry);
            }
            assert!(nclistremove(list, 0).is_null());
            assert_eq!(nclistfree(list), 1);
            assert_eq!(nclistpush(std::ptr::null_mut(), std::ptr::null()), 0);
        }
    }
}

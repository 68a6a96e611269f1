//! Memory of C: what callers hand in, and what they will `free`.

use std::ffi::{CStr, c_char, c_int};

use zonda::{NcError, VlenSink, VlenSource, memory};

/// The bytes of a C string without the NUL; `None` for a null pointer.
///
/// # Safety
/// `text` is null, or a NUL-terminated string that stays unchanged for `'a`.
pub(crate) unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and the contract covers the rest.
    Some(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// Writes a result, unless the pointer is null.
///
/// # Safety
/// `to` is null or valid for a write of one `T`.
pub(crate) unsafe fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: not null, and the caller's contract covers the rest.
        unsafe { to.write(value) };
    }
}

/// Writes `text` and a NUL, unless the pointer is null.
///
/// # Safety
/// `to` is null, or valid for `text.len() + 1` bytes.
pub(crate) unsafe fn put_text(to: *mut c_char, text: &[u8]) {
    if !to.is_null() {
        // SAFETY: the contract gives room for the text and its NUL; `text` is ours, so the two
        // do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast::<c_char>(), to, text.len());
            to.add(text.len()).write(0);
        }
    }
}

/// Writes `items` one after the other, unless the pointer is null. Returns their number.
///
/// # Safety
/// `to` is null, or valid for writes of all items.
pub(crate) unsafe fn put_list<T>(to: *mut T, items: impl Iterator<Item = T>) -> usize {
    let mut n = 0;
    for item in items {
        if !to.is_null() {
            // SAFETY: not null, and room for all items.
            unsafe { to.add(n).write(item) };
        }
        n += 1;
    }
    n
}

/// A count as C holds it.
pub(crate) fn c_count(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

/// A copy of `items` that C frees with `free()`. Never null, even for an empty slice.
///
/// # Errors
/// `NC_ENOMEM` when there is no memory.
pub(crate) fn malloc_copy<T: Copy>(items: &[T]) -> Result<*mut T, NcError> {
    let size = std::mem::size_of_val(items);
    // SAFETY: malloc takes any size.
    let memory = unsafe { libc::malloc(size.max(1)) }.cast::<T>();
    if memory.is_null() {
        return Err(NcError::NoMem);
    }
    // SAFETY: `memory` has room for `size` bytes and is aligned for every C type.
    unsafe { std::ptr::copy_nonoverlapping(items.as_ptr(), memory, items.len()) };
    Ok(memory)
}

/// A NUL-terminated copy of `text` that C frees with `free()`.
///
/// # Errors
/// `NC_ENOMEM` when there is no memory.
pub(crate) fn malloc_text(text: &[u8]) -> Result<*mut c_char, NcError> {
    let mut with_nul = memory::room(text.len() + 1)?;
    with_nul.extend_from_slice(text);
    with_nul.push(0);
    Ok(malloc_copy(&with_nul)?.cast::<c_char>())
}

/// Gives memory of `malloc` back; null is fine.
///
/// # Safety
/// `memory` is null, or came from `malloc` and is not used afterwards.
pub(crate) unsafe fn release<T>(memory: *mut T) {
    // SAFETY: the contract is that of free().
    unsafe { libc::free(memory.cast()) };
}

/// A list of strings for C: pointers to `malloc` copies, then `n_nulls` null pointers; the array
/// is from `malloc` too.
pub(crate) fn malloc_strings(
    list: &[Vec<u8>],
    n_nulls: usize,
) -> Result<*mut *mut c_char, NcError> {
    let mut pointers = Vec::with_capacity(list.len() + n_nulls);
    for text in list {
        match malloc_text(text) {
            Ok(copy) => pointers.push(copy),
            Err(error) => {
                for copy in pointers {
                    // SAFETY: just made by malloc_text.
                    unsafe { release(copy) };
                }
                return Err(error);
            }
        }
    }
    pointers.resize(list.len() + n_nulls, std::ptr::null_mut());
    malloc_copy(&pointers)
}

/// Puts values of variable length for C into memory of `malloc`. All of it is freed, unless
/// [`MallocSink::keep`] is called.
#[derive(Debug, Default)]
pub(crate) struct MallocSink {
    placed: Vec<*mut u8>,
}

impl MallocSink {
    /// Leaves what was placed to the caller.
    pub(crate) fn keep(mut self) {
        self.placed.clear();
    }
}

impl Drop for MallocSink {
    fn drop(&mut self) {
        for memory in self.placed.drain(..) {
            // SAFETY: from malloc, and handed to nobody.
            unsafe { release(memory) };
        }
    }
}

impl VlenSink for MallocSink {
    fn place(&mut self, bytes: &[u8], text: bool) -> Option<u64> {
        self.placed.try_reserve(1).ok()?;
        let room = bytes.len().checked_add(usize::from(text))?;
        // SAFETY: malloc takes any size.
        let memory = unsafe { libc::malloc(room.max(1)) }.cast::<u8>();
        if memory.is_null() {
            return None;
        }
        // SAFETY: `memory` has room for the bytes and, for text, a NUL.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len());
            if text {
                memory.add(bytes.len()).write(0);
            }
        }
        self.placed.push(memory);
        Some(memory as u64)
    }
}

/// Gives values of variable length in C memory to a put.
#[derive(Debug)]
pub(crate) struct CVlenSource(());

impl CVlenSource {
    /// # Safety
    /// While this lives, the addresses in the values that are put are null, or those of what the type
    /// says: a NUL-terminated string, or as many items as a sequence claims.
    pub(crate) unsafe fn new() -> CVlenSource {
        CVlenSource(())
    }
}

impl VlenSource for CVlenSource {
    fn text(&mut self, address: u64) -> Option<&[u8]> {
        let text = usize::try_from(address).ok()? as *const c_char;
        // SAFETY: the contract of `new`.
        unsafe { bytes(text) }
    }

    fn items(&mut self, address: u64, len: usize) -> &[u8] {
        let items = usize::try_from(address).unwrap_or(0) as *const u8;
        if items.is_null() || len == 0 {
            return &[];
        }
        // SAFETY: not null, and the contract of `new`; C has no arrays beyond isize::MAX bytes.
        unsafe { std::slice::from_raw_parts(items, len) }
    }
}

/// A slice of C memory; null is fine when it is empty.
///
/// # Safety
/// `from` holds `len` values that stay unchanged for `'a`, or `len` is 0.
#[inline]
pub(crate) unsafe fn slice<'a, T>(from: *const T, len: usize) -> &'a [T] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the contract above; C has no arrays beyond isize::MAX bytes.
    unsafe { std::slice::from_raw_parts(from, len) }
}

/// A slice of C memory to be written; null is fine when it is empty.
///
/// # Safety
/// `to` is valid for writes of `len` values, used by nobody else for `'a`, or `len` is 0.
#[inline]
pub(crate) unsafe fn slice_mut<'a, T>(to: *mut T, len: usize) -> &'a mut [T] {
    if len == 0 {
        return &mut [];
    }
    // SAFETY: the contract above.
    unsafe { std::slice::from_raw_parts_mut(to, len) }
}

//! Memory for cache pages, by the megabyte and in huge pages where the system has them.
//!
//! A record of 20 MB that is put together from slices touches 5,000 pages of 4 KiB; in pages of
//! 2 MiB that is a dozen first touches, and addresses are found without walking tables. Memory is
//! taken from the system as it is touched, and given back when the last page of a slab is dropped.
#![allow(unsafe_code)]

use crate::tuning::SLAB_BYTES;
use std::ptr::NonNull;
use std::sync::Arc;

/// Zeroed memory from the system.
#[derive(Debug)]
struct SlabMemory {
    mapped: NonNull<libc::c_void>,
    len: usize,
}

// SAFETY: the memory belongs to the slab alone, and it is handed out in disjoint parts.
unsafe impl Send for SlabMemory {}
// SAFETY: as above; the slab itself reads and writes nothing.
unsafe impl Sync for SlabMemory {}

impl Drop for SlabMemory {
    fn drop(&mut self) {
        // SAFETY: this is what mmap gave, and nobody has a part of it any more.
        unsafe { libc::munmap(self.mapped.as_ptr(), self.len) };
    }
}

/// The memory of one cache page.
#[derive(Debug)]
pub(crate) struct SlabPage {
    start: NonNull<u8>,
    len: usize,
    _slab: Arc<SlabMemory>,
}

// SAFETY: each part of a slab is handed out once, so this is as good as a box of bytes.
unsafe impl Send for SlabPage {}
// SAFETY: as above.
unsafe impl Sync for SlabPage {}

impl SlabPage {
    /// Gives its memory to the system, also while other pages of its slab are in use. What is in it is lost.
    pub(crate) fn release(&mut self) {
        // SAFETY: the range is that of this page, which is borrowed exclusively; what it reads as afterwards
        // is zeros, or, where the system does nothing, what was there.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, libc::MADV_DONTNEED) };
    }
}

/// As many zeroed pages of `page_bytes` as a slab holds; none where a page is larger, or where the
/// system has no memory.
pub(crate) fn pages(page_bytes: usize) -> Vec<SlabPage> {
    if page_bytes == 0 || page_bytes > SLAB_BYTES {
        return Vec::new();
    }
    let len = 2 * SLAB_BYTES;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at a place of the system's choice touches no memory of ours.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0) };
    let Some(mapped) = NonNull::new(mapped).filter(|at| at.as_ptr() != libc::MAP_FAILED) else {
        return Vec::new();
    };
    let slab = Arc::new(SlabMemory { mapped, len });
    let first = mapped.cast::<u8>();
    let skip = first.as_ptr().align_offset(SLAB_BYTES).min(SLAB_BYTES);
    // SAFETY: `skip` is at most half of the mapping, so the other half lies within it.
    let start = unsafe { first.add(skip) };
    // Only a hint: without huge pages it is ordinary memory.
    // SAFETY: the range lies within the mapping.
    unsafe { libc::madvise(start.as_ptr().cast(), SLAB_BYTES, libc::MADV_HUGEPAGE) };
    (0..SLAB_BYTES / page_bytes)
        .map(|n| SlabPage {
            // SAFETY: page `n` ends within the slab.
            start: unsafe { start.add(n * page_bytes) },
            len: page_bytes,
            _slab: Arc::clone(&slab),
        })
        .collect()
}

/// `len` zeros; `None` where there is no memory for them. They come from the system as they are: nothing is
/// cleared twice, and what is not touched takes nothing.
pub(crate) fn zeros(len: usize) -> Option<Vec<u8>> {
    if len == 0 {
        return Some(Vec::new());
    }
    let layout = std::alloc::Layout::array::<u8>(len).ok()?;
    // SAFETY: the layout is not empty.
    let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })?;
    // SAFETY: the memory is from the global allocator, with this length and the alignment of bytes, each
    // of which is a zero.
    Some(unsafe { Vec::from_raw_parts(start.as_ptr(), len, len) })
}

impl std::ops::Deref for SlabPage {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: mmap gave zeroed memory of this length; it lives as long as the slab that is held,
        // and only this page reaches it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl std::ops::DerefMut for SlabPage {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the page is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn zeros_are_zero_or_not_there() {
        assert_eq!(super::zeros(0), Some(Vec::new()));
        assert_eq!(super::zeros(70_000), Some(vec![0; 70_000]));
        assert_eq!(super::zeros(isize::MAX as usize), None);
        assert_eq!(super::zeros(usize::MAX), None);
    }

    #[test]
    fn pages_are_apart_and_outlive_each_other() {
        let mut pages = super::pages(256 << 10);
        assert_eq!(pages.len(), 8);
        for (n, page) in pages.iter_mut().enumerate() {
            assert!(page.iter().all(|byte| *byte == 0));
            page.fill(n as u8 + 1);
        }
        let last = pages.pop().unwrap();
        assert!(pages.iter().zip(1..).all(|(page, n)| page.iter().all(|byte| *byte == n)));
        drop(pages);
        assert!(last.iter().all(|byte| *byte == 8));
        assert!(super::pages(4 << 20).is_empty());
    }
}

//! The memory of a page.

use crate::slab::SlabPage;
use std::ops::{Deref, DerefMut};

/// The memory of a page.
#[derive(Debug)]
pub(crate) enum PageBuffer {
    /// Of its own; it grows with its data at first, so that a small file costs little.
    Own(Vec<u8>),
    /// A whole page of a slab.
    Whole(SlabPage),
}

impl PageBuffer {
    /// Gives its memory to the system, so far as it is more than a part of what the allocator has.
    pub(crate) fn release(&mut self) {
        if let PageBuffer::Whole(page) = self {
            page.release();
        }
    }
}

impl Deref for PageBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            PageBuffer::Own(bytes) => bytes,
            PageBuffer::Whole(page) => page,
        }
    }
}

impl DerefMut for PageBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            PageBuffer::Own(bytes) => bytes,
            PageBuffer::Whole(page) => page,
        }
    }
}

//! The memory of a page.

use crate::slab::SlabPage;
use std::ops::{Deref, DerefMut};

/// The memory of a page.
#[derive(Debug)]
pub(crate) enum Buffer {
    /// Of its own; it grows with its data at first, so that a small file costs little.
    Own(Vec<u8>),
    /// A whole page of a slab.
    Whole(SlabPage),
}

impl Buffer {
    /// Gives its memory to the system, so far as it is more than a part of what the allocator has.
    pub(crate) fn release(&mut self) {
        if let Buffer::Whole(page) = self {
            page.release();
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Buffer::Own(bytes) => bytes,
            Buffer::Whole(page) => page,
        }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Buffer::Own(bytes) => bytes,
            Buffer::Whole(page) => page,
        }
    }
}

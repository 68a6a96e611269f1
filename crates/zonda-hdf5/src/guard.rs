//! What keeps trees and heaps sound: checksums, and a budget for each traversal.
//!
//! The nodes of one tree or heap of a sound file do not overlap, so together they are not longer
//! than the file. A traversal that spends the length of each node it reads stays linear in the
//! file's length whatever the bytes say, without keeping a set of the addresses it met.

use crate::checksum::{agrees, lookup3};
use crate::{FileAddr, HdfError, Reader, Result};

/// Bytes that a traversal may still read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    left: u64,
    whole: u64,
}

impl Budget {
    /// As many bytes as the file has.
    pub(crate) fn of(file: &crate::File) -> Budget {
        Budget::times(file, 1)
    }

    /// As many bytes as the file has, some times over: for what a sound file may meet repeatedly.
    pub(crate) fn times(file: &crate::File, factor: u64) -> Budget {
        let whole = file.len().saturating_mul(factor);
        Budget { left: whole, whole }
    }

    /// With some more.
    pub(crate) fn and(self, more: u64) -> Budget {
        Budget { left: self.left.saturating_add(more), whole: self.whole.saturating_add(more) }
    }

    /// Takes `len` bytes for the structure at `addr`.
    pub(crate) fn spend(
        &mut self,
        structure: &'static str,
        addr: FileAddr,
        len: u64,
    ) -> Result<()> {
        match self.left.checked_sub(len) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(HdfError::Limit {
                structure,
                at: addr.0,
                what: "bytes in one traversal",
                limit: self.whole,
            }),
        }
    }
}

/// A reader over all but the last four bytes of a structure, which are the checksum of the rest.
pub(crate) fn verified(whole: Reader<'_>) -> Result<Reader<'_>> {
    let mut tail = whole;
    let body = tail.sub(whole.left().saturating_sub(4))?;
    let stored = tail.u32()?;
    let computed = lookup3(body.rest(), 0);
    if agrees(stored, computed) {
        Ok(body)
    } else {
        let (structure, at) = (whole.structure(), whole.at());
        Err(HdfError::BadChecksum { structure, at, stored, computed })
    }
}

//! A bound on the bytes that a traversal of a tree or a heap reads.
//!
//! The nodes of one tree or heap of a sound file do not overlap, so together they are not longer
//! than the file. A traversal that spends the length of each node it reads stays linear in the
//! file's length whatever the bytes say, without keeping a set of the addresses it met.

use crate::{FileAddr, HdfError, Result};

/// Bytes that a traversal may still read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraversalBudget {
    left: u64,
    whole: u64,
}

impl TraversalBudget {
    /// As many bytes as the file has.
    pub(crate) fn of(file: &crate::File) -> TraversalBudget {
        TraversalBudget::times(file, 1)
    }

    /// As many bytes as the file has, times `factor`: for a traversal that may read a structure of
    /// a sound file more than once.
    pub(crate) fn times(file: &crate::File, factor: u64) -> TraversalBudget {
        let whole = file.len().saturating_mul(factor);
        TraversalBudget { left: whole, whole }
    }

    /// The same with `more` bytes in addition.
    pub(crate) fn and(self, more: u64) -> TraversalBudget {
        TraversalBudget {
            left: self.left.saturating_add(more),
            whole: self.whole.saturating_add(more),
        }
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

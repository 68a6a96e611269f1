//! `passthrough`: forwards everything, changes nothing. The layer to copy.

use crate::spec::{Args, Below, Building, Plan, Registered, SpecError};
use crate::{Advice, ReadRange, Stamp, Storage, StorageError, WriteRange};
use std::fmt;
use std::sync::Arc;

/// How a spec names this layer.
pub(super) const REGISTERED: Registered = Registered { name: "passthrough", plan };

/// Reads the arguments after the name; this layer has none.
fn plan(args: &mut Args<'_>) -> Result<Arc<dyn Plan>, SpecError> {
    args.end()?;
    Ok(Arc::new(Planned))
}

/// The layer as a spec holds it: checked, not yet built.
#[derive(Debug)]
struct Planned;

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("passthrough")
    }
}

impl Plan for Planned {
    fn build(&self, below: Below, _: &mut Building<'_>) -> Result<Below, StorageError> {
        Ok(Arc::new(Passthrough::new(below)))
    }

    fn buffers(&self) -> bool {
        false
    }
}

/// A layer that does nothing.
#[derive(Debug)]
pub struct Passthrough<S> {
    inner: S,
}

impl<S: Storage> Passthrough<S> {
    /// Wraps `inner`.
    pub fn new(inner: S) -> Self {
        Passthrough { inner }
    }
}

impl<S: Storage> Storage for Passthrough<S> {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.inner.read_at(at, buf)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        self.inner.read_ranges(ranges)
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.inner.write_at(at, data)
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        self.inner.write_ranges(ranges)
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        self.inner.fill_at(at, len, element)
    }

    fn advise(&self, advice: Advice) {
        self.inner.advise(advice);
    }

    fn rest(&self) {
        self.inner.rest();
    }

    fn len(&self) -> Result<u64, StorageError> {
        self.inner.len()
    }

    fn most_len(&self) -> u64 {
        self.inner.most_len()
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.inner.set_len(len)
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.inner.barrier()
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.inner.sync()
    }

    fn invalidate(&self) -> Result<(), StorageError> {
        self.inner.invalidate()
    }

    fn stamp(&self) -> Result<Stamp, StorageError> {
        self.inner.stamp()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("passthrough,")?;
        self.inner.describe(f)
    }
}

//! Objects on a server: the trait, and its backends.

mod http;
mod memory;

use std::ops::Range;
use std::sync::Arc;

pub use http::HttpObjects;
pub use memory::MemoryObjects;

use crate::{RemoteError, RemoteUrl};

/// What a server said of an object with the bytes that it sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectState {
    /// Bytes of the object.
    pub len: u64,
    /// What changes when the object does: a strong `ETag`, else `Last-Modified`, as the server writes them; empty where it says neither.
    pub validator: String,
}

/// What one request for a range brought.
#[derive(Debug)]
pub struct RangeRead {
    /// Bytes that were placed at the beginning of the buffer: fewer than were asked for only at the end of the object.
    pub got: usize,
    /// The object that they are of.
    pub state: ObjectState,
    /// All bytes of the object, from a server that sends no ranges.
    pub whole: Option<Vec<u8>>,
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// The whole key.
    pub key: String,
    /// Bytes of the object.
    pub len: u64,
}

/// Objects by key, on a server or in what takes its place. All methods may be called from any number of threads at once, and block.
///
/// A backend tries again what is worth it (429, 503, connections that break), within its limits of time; what it returns as an error
/// stands. Nothing that it did not verify counts as got: not the length of a body, not its range, not its encoding.
pub trait Objects: Send + Sync + std::fmt::Debug {
    /// Reads `buf.len()` bytes of an object from `at` on, in one request.
    ///
    /// With `known` the object has to be the one that had that state ([`RemoteError`] otherwise).
    ///
    /// # Errors
    /// [`RemoteError`]. What is in `buf` is unspecified then.
    fn get_range(
        &self,
        key: &str,
        at: u64,
        buf: &mut [u8],
        known: Option<&ObjectState>,
    ) -> Result<RangeRead, RemoteError>;

    /// A whole object of at most `most` bytes.
    ///
    /// # Errors
    /// [`RemoteError`], also for more bytes.
    fn get(&self, key: &str, most: u64) -> Result<(Vec<u8>, ObjectState), RemoteError>;

    /// Makes an object of `bytes`, or replaces one. Others see the old one or the new one, whole.
    ///
    /// # Errors
    /// [`RemoteError`], of kind `ReadOnly` where objects cannot be made.
    fn put(&self, key: &str, bytes: &[u8]) -> Result<(), RemoteError>;

    /// Objects whose keys begin with `prefix`, in order.
    ///
    /// # Errors
    /// [`RemoteError`], of kind `Unusable` where there are no lists.
    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, RemoteError>;

    /// Removes an object; one that is not there is no error.
    ///
    /// # Errors
    /// [`RemoteError`], of kind `ReadOnly` where objects cannot be removed.
    fn delete(&self, key: &str) -> Result<(), RemoteError>;

    /// An object as messages may show it, without secrets.
    fn shown(&self, key: &str) -> Arc<str>;
}

/// The backend for a URL, and settings for its server as of now.
///
/// # Errors
/// [`RemoteError`] where a setting is wrong.
pub fn of_url(url: &RemoteUrl) -> Result<Arc<dyn Objects>, RemoteError> {
    Ok(Arc::new(HttpObjects::new(url)?))
}

/// The part of `range` that an object of `len` bytes has.
#[must_use]
pub fn within(range: Range<u64>, len: u64) -> Range<u64> {
    range.start.min(len)..range.end.min(len)
}

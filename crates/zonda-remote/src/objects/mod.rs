//! Objects on a server: the trait, and its backends.

mod folder;
mod http;
mod memory;
mod reading;
mod s3;

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use zonda_storage::RemoteFailure;

pub use folder::FolderObjects;
pub use http::HttpObjects;
pub use memory::MemoryObjects;
pub use s3::{S3Objects, is_s3};

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
pub trait Objects: Send + Sync {
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

    /// Makes an object of what `source` gives until its end, which is `len` bytes. Others see nothing of it before it is complete.
    ///
    /// # Errors
    /// As [`Objects::put`]; a source that fails or has another length, after which there is no new object.
    fn put_from(&self, key: &str, len: u64, source: &mut dyn Read) -> Result<(), RemoteError> {
        let bytes = read_source(len, source)
            .map_err(|what| RemoteError::new(&self.shown(key), RemoteFailure::Broken, what))?;
        self.put(key, &bytes)
    }

    /// What tells an object from all others, whoever asks and wherever it lies, for who keeps parts of it beyond this process; `None` where that is not known:
    /// with logins and headers, which may decide what is sent, and behind redirects.
    fn identity(&self, _key: &str) -> Option<String> {
        None
    }

    /// How many requests are worth running at once: fewer after a server asked for fewer.
    fn parallel(&self) -> usize {
        DEFAULT_PARALLEL
    }

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

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl std::fmt::Debug for dyn Objects + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Objects")
    }
}

/// Requests that a server gets at once, unless somebody says otherwise.
pub const DEFAULT_PARALLEL: usize = 8;

/// The backend for a URL, with the settings for its server as of now, and the key of the object there.
///
/// # Errors
/// [`RemoteError`] where a setting is wrong.
pub fn of_url(url: &RemoteUrl) -> Result<(Arc<dyn Objects>, String), RemoteError> {
    if is_s3(url) {
        let (objects, key) = S3Objects::new(url)?;
        return Ok((Arc::new(objects), key));
    }
    Ok((Arc::new(HttpObjects::new(url)?), url.path.clone()))
}

/// What `source` gives, which has to be `len` bytes.
///
/// # Errors
/// What is wrong, in words.
fn read_source(len: u64, source: &mut dyn Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let n = usize::try_from(len).map_err(|_| "it has more bytes than this machine can address")?;
    bytes.try_reserve_exact(n).map_err(|_| format!("no memory for {len} bytes"))?;
    let n_read = source
        .take(len.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| format!("what is to be written cannot be read: {error}"))?;
    if n_read as u64 != len {
        Err(format!(
            "{len} bytes were to be written, and there are {}",
            if n_read as u64 > len { "more".into() } else { n_read.to_string() }
        ))
    } else {
        Ok(bytes)
    }
}

/// The part of `range` that an object of `len` bytes has.
#[must_use]
pub fn within(range: Range<u64>, len: u64) -> Range<u64> {
    range.start.min(len)..range.end.min(len)
}

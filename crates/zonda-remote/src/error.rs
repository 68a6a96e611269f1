//! What can go wrong with a request.

use std::sync::Arc;

use zonda_storage::{RemoteFailure, StorageError};

/// A request that did not bring what was asked for. No text of it has users, passwords, tokens or signatures.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{url}: {what}")]
pub struct RemoteError {
    /// What was asked for, as it may be shown.
    pub url: Arc<str>,
    /// Which bytes: the first, and how many.
    pub range: Option<(u64, u64)>,
    /// What kind of failure it is.
    pub kind: RemoteFailure,
    /// The status of HTTP of an answer that is no success.
    pub status: Option<u16>,
    /// What happened, in words.
    pub what: Arc<str>,
}

impl RemoteError {
    /// An error of a kind.
    #[must_use]
    pub fn new(url: &Arc<str>, kind: RemoteFailure, what: impl Into<Arc<str>>) -> RemoteError {
        let (url, what) = (Arc::clone(url), what.into());
        RemoteError { url, range: None, kind, status: None, what }
    }

    /// The same error, of a request for `len` bytes at byte `at`.
    #[must_use]
    pub fn of_range(mut self, at: u64, len: u64) -> RemoteError {
        self.range = Some((at, len));
        self
    }
}

impl From<RemoteError> for StorageError {
    fn from(error: RemoteError) -> StorageError {
        let RemoteError { url, range, kind, status, what } = error;
        StorageError::Remote { url, range, kind, status, what }
    }
}

//! Objects behind HTTP.

use std::io::Read;
use std::sync::Arc;

use zonda_storage::RemoteFailure;

use super::{ListedObject, ObjectState, Objects, RangeRead};
use crate::{RemoteError, RemoteUrl};

/// The objects of one server.
#[derive(Debug)]
pub struct HttpObjects {
    agent: ureq::Agent,
    /// Protocol, host and port, as they are written.
    server: String,
}

impl HttpObjects {
    /// The server of a URL.
    ///
    /// # Errors
    /// [`RemoteError`] where a setting is wrong.
    pub fn new(url: &RemoteUrl) -> Result<HttpObjects, RemoteError> {
        let port = url.port.map_or(String::new(), |port| format!(":{port}"));
        Ok(HttpObjects {
            agent: ureq::Agent::new_with_defaults(),
            server: format!("http://{}{port}", url.host),
        })
    }

    fn error(&self, key: &str, kind: RemoteFailure, what: impl Into<Arc<str>>) -> RemoteError {
        RemoteError::new(&self.shown(key), kind, what)
    }
}

impl Objects for HttpObjects {
    fn get_range(
        &self,
        key: &str,
        at: u64,
        buf: &mut [u8],
        known: Option<&ObjectState>,
    ) -> Result<RangeRead, RemoteError> {
        let wrong = |what: String| {
            self.error(key, RemoteFailure::Broken, what).of_range(at, buf.len() as u64)
        };
        let end = at.saturating_add(buf.len() as u64).saturating_sub(1);
        let request = self
            .agent
            .get(format!("{}{key}", self.server))
            .header("Range", format!("bytes={at}-{end}"));
        let answer = request.call().map_err(|error| wrong(error.to_string()))?;
        let header = |name: &str| {
            answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
        };
        let len = header("content-range").rsplit('/').next().and_then(|len| len.parse().ok());
        let len = len.ok_or_else(|| wrong("the server sends no ranges".into()))?;
        let state = ObjectState { len, validator: header("etag").to_owned() };
        if known.is_some_and(|known| *known != state) {
            return Err(wrong("the object has changed since it was opened".into()));
        }
        let wanted = super::within(at..end + 1, len);
        let n = (wanted.end - wanted.start) as usize;
        answer
            .into_body()
            .into_reader()
            .read_exact(&mut buf[..n])
            .map_err(|error| self.error(key, RemoteFailure::Broken, error.to_string()))?;
        Ok(RangeRead { got: n, state, whole: None })
    }

    fn get(&self, key: &str, _most: u64) -> Result<(Vec<u8>, ObjectState), RemoteError> {
        Err(self.error(key, RemoteFailure::Unusable, "whole objects are not read yet"))
    }

    fn put(&self, key: &str, _bytes: &[u8]) -> Result<(), RemoteError> {
        Err(self.error(key, RemoteFailure::ReadOnly, "objects behind HTTP can only be read"))
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, RemoteError> {
        Err(self.error(prefix, RemoteFailure::Unusable, "HTTP has no lists"))
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        Err(self.error(key, RemoteFailure::ReadOnly, "objects behind HTTP can only be read"))
    }

    fn shown(&self, key: &str) -> Arc<str> {
        format!("{}{key}", self.server).into()
    }
}

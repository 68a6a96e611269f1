//! Objects behind HTTP: read, by paths as they stand in URLs.
//!
//! Each answer's validator is compared with the one of the first, so `If-Match` is not sent: it would spare the bytes of an answer only where the object
//! has changed, and there are servers that answer it with an error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use zonda_runtime::lock::{Mutex, Rank};
use zonda_storage::RemoteFailure;

use super::{ListedObject, ObjectState, Objects, RangeRead, reading};
use crate::client::answer::Answer;
use crate::client::target::{ServerName, Target, escaped};
use crate::client::{ByPassword, Client, Request};
use crate::settings::Settings;
use crate::{RemoteError, RemoteUrl};

/// Where a redirect led is asked directly for this long; then again where the URL says.
const REDIRECT_HOLDS: Duration = Duration::from_secs(60);

/// The objects of one server.
pub struct HttpObjects {
    client: Client,
    /// The query of the URL, which goes with every key; may be secret.
    query: Option<String>,
    /// Where the last redirect led: of which key, and when. Only tried, so that nobody waits for it.
    redirect: Mutex<Option<(String, Target, Instant)>>,
}

/// Without secrets.
impl std::fmt::Debug for HttpObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HttpObjects({})", self.client.server.shown())
    }
}

impl HttpObjects {
    /// The server of a URL, with what is set for it now.
    ///
    /// # Errors
    /// [`RemoteError`] where a setting is wrong.
    pub fn new(url: &RemoteUrl) -> Result<HttpObjects, RemoteError> {
        let settings = Settings::of_url(url, &ServerName::of(url), &url.path);
        let settings = settings
            .map_err(|what| RemoteError::new(&url.shown().into(), RemoteFailure::Unusable, what))?;
        Ok(HttpObjects::with_settings(url, settings))
    }

    /// The server of a URL, with these settings.
    #[must_use]
    pub fn with_settings(url: &RemoteUrl, settings: Settings) -> HttpObjects {
        let client = Client::new(ServerName::of(url), settings);
        HttpObjects {
            client,
            query: url.query.as_deref().map(escaped),
            redirect: Mutex::ranked(Rank::Servers, None),
        }
    }

    fn target(&self, key: &str) -> Target {
        let path = if key.starts_with('/') { escaped(key) } else { format!("/{}", escaped(key)) };
        Target { server: self.client.server.clone(), path, query: self.query.clone() }
    }

    /// Where to ask for a key now.
    fn place(&self, key: &str) -> Target {
        let kept = self.redirect.try_lock().and_then(|kept| kept.clone());
        match kept {
            Some((of, target, since)) if of == key && since.elapsed() < REDIRECT_HOLDS => target,
            _ => self.target(key),
        }
    }

    /// Remembers where an answer came from, or forgets it where that did not work.
    fn note(&self, key: &str, answer: &Answer) {
        let Some(mut kept) = self.redirect.try_lock() else { return };
        if matches!(answer.status, 200 | 206 | 416) {
            if answer.is_redirected {
                *kept = Some((key.to_owned(), answer.from.clone(), Instant::now()));
            }
        } else if kept.as_ref().is_some_and(|(_, target, _)| *target == answer.from) {
            *kept = None;
        }
    }

    fn read_only(&self, key: &str) -> RemoteError {
        RemoteError::new(
            &self.shown(key),
            RemoteFailure::ReadOnly,
            "objects behind HTTP can only be read",
        )
    }
}

impl Objects for HttpObjects {
    fn identity(&self, key: &str) -> Option<String> {
        let settings = &self.client.settings;
        let is_anonymous = settings.user.is_none()
            && settings.headers.is_empty()
            && settings.cookie_jar.is_none()
            && settings.certificate.is_none();
        let is_direct = self.redirect.lock().is_none();
        let target = self.target(key);
        let query = target.query.unwrap_or_default();
        (is_anonymous && is_direct)
            .then(|| format!("{}{}?{query}", self.client.server.shown(), target.path))
    }

    fn get_range(
        &self,
        key: &str,
        at: u64,
        buf: &mut [u8],
        known: Option<&ObjectState>,
    ) -> Result<RangeRead, RemoteError> {
        let get = |target: Target, buf: &mut [u8]| {
            reading::get_range(
                &self.client,
                &self.shown(key),
                &|| Request::get(target.clone()),
                &ByPassword,
                &reading::refuse_by_status,
                &|answer| self.note(key, answer),
                at,
                buf,
                known,
            )
        };
        let place = self.place(key);
        let is_direct = place == self.target(key);
        match get(place, buf) {
            // A place that a redirect named is good for a while only; the server of the URL knows a new one.
            Err(error)
                if !is_direct
                    && matches!(error.kind, RemoteFailure::Denied | RemoteFailure::NotFound) =>
            {
                get(self.target(key), buf)
            }
            read => read,
        }
    }

    fn get(&self, key: &str, most: u64) -> Result<(Vec<u8>, ObjectState), RemoteError> {
        reading::get_whole(
            &self.client,
            &self.shown(key),
            &|| Request::get(self.target(key)),
            &ByPassword,
            &reading::refuse_by_status,
            most,
        )
    }

    fn put(&self, key: &str, _bytes: &[u8]) -> Result<(), RemoteError> {
        Err(self.read_only(key))
    }

    fn put_from(
        &self,
        key: &str,
        _len: u64,
        _source: &mut dyn std::io::Read,
    ) -> Result<(), RemoteError> {
        Err(self.read_only(key))
    }

    fn parallel(&self) -> usize {
        self.client.parallel()
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, RemoteError> {
        Err(RemoteError::new(&self.shown(prefix), RemoteFailure::Unusable, "HTTP has no lists"))
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        Err(self.read_only(key))
    }

    fn shown(&self, key: &str) -> Arc<str> {
        Target { query: None, ..self.target(key) }.shown().into()
    }
}

//! What a service answers to URLs that are made of one URL, such as a server of OPeNDAP: bodies that are read as they come.
//!
//! Such answers are made when they are asked for: they have no ranges, often no length that is known before, and nothing that tells whether they
//! would be the same another time. So a request is repeated until the first bytes of its body are here, and never after.

use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

use zonda_storage::{RemoteFailure, StorageError};

use crate::client::answer::Answer;
use crate::client::target::{ServerName, Target, escaped};
use crate::client::{
    Again, ByPassword, Client, Failure, Request, Running, failure_of_io, failure_of_status,
};
use crate::settings::Settings;
use crate::{RemoteError, RemoteUrl};

/// Bytes of an answer that is no success in which a message is looked for.
const MOST_MESSAGE: u64 = 64 << 10;
/// What has to be here of a body before a request is no longer repeated, at most.
const FIRST_BYTES: usize = 16 << 10;

/// A service at a URL.
pub struct Responses {
    client: Client,
    path: String,
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// What comes behind the path of the URL: `.dds`.
    pub extension: &'a str,
    /// What comes behind the question mark, as it is sent; empty without one.
    pub query: &'a str,
    /// About how many bytes the answer has: it may take as much longer.
    pub bytes: u64,
    /// The most bytes that it may have.
    pub most: u64,
    /// The message of an answer that is no success, where there is one in its body.
    pub message: fn(&[u8]) -> Option<String>,
}

/// Without secrets.
impl fmt::Debug for Responses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Responses({})", self.shown(""))
    }
}

impl Responses {
    /// The service at a URL, with what is set for its server now. The query of the URL is not its own: each request brings one.
    ///
    /// # Errors
    /// [`RemoteError`] where a setting is wrong.
    pub fn new(url: &RemoteUrl) -> Result<Responses, RemoteError> {
        let server = ServerName::of(url);
        let settings = Settings::of_url(url, &server, &url.path);
        let settings = settings
            .map_err(|what| RemoteError::new(&url.shown().into(), RemoteFailure::Unusable, what))?;
        Ok(Responses::with_settings(url, settings))
    }

    /// The service at a URL, with these settings.
    #[must_use]
    pub fn with_settings(url: &RemoteUrl, settings: Settings) -> Responses {
        Responses { client: Client::new(ServerName::of(url), settings), path: escaped(&url.path) }
    }

    /// How many requests are worth running at once.
    #[must_use]
    pub fn parallel(&self) -> usize {
        self.client.parallel()
    }

    /// The URL with an extension, as messages may show it.
    #[must_use]
    pub fn shown(&self, extension: &str) -> Arc<str> {
        self.target(extension, "").shown().into()
    }

    fn target(&self, extension: &str, query: &str) -> Target {
        let query = Some(escaped(query)).filter(|query| !query.is_empty());
        Target {
            server: self.client.server.clone(),
            path: format!("{}{extension}", self.path),
            query,
        }
    }

    /// Asks for an answer, of which the first bytes are here when this returns.
    ///
    /// # Errors
    /// [`RemoteError`]: with the status of an answer that is no success, and the message in it.
    pub fn get(&self, asking: &Asking<'_>) -> Result<Body, RemoteError> {
        let target = self.target(asking.extension, asking.query);
        let shown: Arc<str> = target.shown().into();
        let begun = self.client.persist_running(&shown, asking.bytes, |attempt| {
            let request = Request::get(target.clone());
            let answer = self.client.exchange(attempt, &request, &ByPassword)?;
            if answer.status == 200 { begin(answer, asking) } else { Err(refused(answer, asking)) }
        });
        let (Begun { answer, first, told }, running) = begun?;
        Ok(Body {
            answer,
            first: io::Cursor::new(first),
            told,
            came: 0,
            most: asking.most,
            shown,
            running: Some(running),
        })
    }
}

/// An answer whose first bytes are here.
struct Begun {
    answer: Answer,
    first: Vec<u8>,
    told: Option<u64>,
}

fn begin(mut answer: Answer, asking: &Asking<'_>) -> Result<Begun, Failure> {
    let told = answer.content_length().map_err(Failure::broken)?;
    if let Some(len) = told.filter(|len| *len > asking.most) {
        return Err(Failure::of(RemoteFailure::Broken, too_long(len, asking.most)));
    }
    let mut first = vec![0; FIRST_BYTES];
    loop {
        match answer.body.read(&mut first) {
            Ok(0) if told.is_some_and(|told| told > 0) => {
                let error = ErrorKind::UnexpectedEof.into();
                return Err(Failure { again: Again::Soon, ..failure_of_io(&error) });
            }
            Ok(n) => {
                first.truncate(n);
                return Ok(Begun { answer, first, told });
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let failure = failure_of_io(&error);
                // A connection that gave the headers was no old one.
                let is_old = failure.again == Again::AtOnce;
                return Err(Failure {
                    again: if is_old { Again::Soon } else { failure.again },
                    ..failure
                });
            }
        }
    }
}

fn too_long(len: u64, most: u64) -> String {
    format!("the answer has {len} bytes: more than such a document may have ({most})")
}

/// What an answer that is no success says.
fn refused(mut answer: Answer, asking: &Asking<'_>) -> Failure {
    let failure = failure_of_status(&answer, None);
    let mut body = Vec::new();
    // What cannot be read of it is not repeated.
    let read = answer.body.by_ref().take(MOST_MESSAGE).read_to_end(&mut body);
    let message = read.ok().and_then(|_| (asking.message)(&body));
    match message {
        // The service itself answered, and would say the same again.
        Some(message) => {
            let text: String = message.chars().filter(|ch| !ch.is_control()).take(500).collect();
            let what = format!("status {}: the server says: {text}", answer.status);
            let is_busy = matches!(answer.status, 429 | 503);
            Failure { what, again: if is_busy { failure.again } else { Again::Never }, ..failure }
        }
        None => failure,
    }
}

/// A body, read as it comes. One that ends before the length that was told, or goes on behind it, is an error, which has a [`StorageError`] in it.
pub struct Body {
    answer: Answer,
    first: io::Cursor<Vec<u8>>,
    /// Bytes by its `Content-Length`.
    told: Option<u64>,
    came: u64,
    most: u64,
    shown: Arc<str>,
    running: Option<Running>,
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({}, {} bytes)", self.shown, self.came)
    }
}

impl Body {
    fn error(&self, failure: Failure) -> io::Error {
        let kind = match failure.kind {
            RemoteFailure::TimedOut => ErrorKind::TimedOut,
            _ => ErrorKind::InvalidData,
        };
        let error = RemoteError::new(&self.shown, failure.kind, failure.what);
        io::Error::new(kind, StorageError::from(error))
    }

    fn end(&mut self) -> io::Result<usize> {
        // The next request may begin.
        self.running = None;
        match self.told {
            Some(told) if told != self.came => {
                let what =
                    format!("the body has {} bytes, and its Content-Length says {told}", self.came);
                Err(self.error(Failure::broken(what)))
            }
            _ => Ok(0),
        }
    }
}

impl Read for Body {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let mut n = self.first.read(buf)?;
        while n == 0 {
            n = match self.answer.body.read(buf) {
                Ok(0) => return self.end(),
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::Interrupted => 0,
                Err(error) => {
                    self.running = None;
                    let failure = failure_of_io(&error);
                    let of = self.told.map_or(String::new(), |told| format!(" of {told}"));
                    let what = format!("{} after {}{of} bytes", failure.what, self.came);
                    return Err(self.error(Failure { what, ..failure }));
                }
            };
        }
        self.came = self.came.saturating_add(n as u64);
        if self.came > self.most {
            self.running = None;
            let what = too_long(self.came, self.most);
            return Err(self.error(Failure::broken(what)));
        }
        Ok(n)
    }
}

//! A server of OPeNDAP behind a URL.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;

use zonda_dap::{Asked, Request, Server};
use zonda_remote::{Asking, Body, RemoteUrl, Responses};
use zonda_storage::StorageError;
use zonda_storage::url::RemoteSettings;
use zonda_trace::{Args, EventKind};

/// A document of metadata has no more bytes.
const MOST_METADATA: u64 = 64 << 20;
/// Bytes of one, about: what a request for it may take is by that.
const METADATA: u64 = 1 << 20;

/// The server of one dataset.
pub(super) struct DapServer {
    responses: Responses,
    /// Requests are told on standard error.
    shows: bool,
    /// The file of the trace.
    trace: u32,
}

/// Without secrets.
impl fmt::Debug for DapServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DapServer({})", self.responses.shown(""))
    }
}

impl DapServer {
    /// The server of a URL without a query. `given` are settings for this opening.
    ///
    /// # Errors
    /// [`StorageError::Remote`] for what is no URL, and for wrong settings.
    pub(super) fn new(
        url: &str,
        given: &RemoteSettings,
        asked: &Asked,
    ) -> Result<DapServer, StorageError> {
        let mut url = RemoteUrl::parse(url)?;
        if asked.setting("log").is_some() {
            url.settings.push(("http.verbose".into(), "1".into()));
        }
        url.given.clone_from(&given.0);
        let responses = Responses::new(&url)?;
        let shows =
            asked.setting("show").is_some_and(|what| what.split(',').any(|word| word == "fetch"));
        let trace = match zonda_trace::on() {
            true => zonda_trace::file(Path::new(&*responses.shown(""))),
            false => 0,
        };
        Ok(DapServer { responses, shows, trace })
    }

    fn get(
        &self,
        request: &Request,
        (bytes, most): (u64, u64),
    ) -> Result<Box<dyn Read + Send>, StorageError> {
        let Request { extension, query } = request;
        if self.shows {
            let shown = self.responses.shown(extension);
            let mark = if query.is_empty() { "" } else { "?" };
            // A program whose standard error is closed still runs.
            let _ = writeln!(io::stderr().lock(), "zonda: fetch {shown}{mark}{query}");
        }
        let begin = zonda_trace::start();
        let message = zonda_dap::server_message;
        let asking = Asking { extension, query, bytes, most, message };
        let body = self.responses.get(&asking)?;
        Ok(Box::new(TracedBody { body, begin, bytes: 0, trace: self.trace }))
    }
}

impl Server for DapServer {
    fn ask(&self, request: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        let is_data = matches!(request.extension, ".dods" | ".dap");
        let most = if is_data { u64::MAX } else { MOST_METADATA };
        self.get(request, (METADATA, most))
    }

    fn ask_for(&self, request: &Request, bytes: u64) -> Result<Box<dyn Read + Send>, StorageError> {
        self.get(request, (METADATA.saturating_add(bytes), u64::MAX))
    }

    fn heeds_constraints(&self) -> bool {
        true
    }

    fn parallel(&self) -> usize {
        self.responses.parallel()
    }
}

/// A body whose end is an event of the trace.
struct TracedBody {
    body: Body,
    begin: u64,
    bytes: u64,
    trace: u32,
}

impl Read for TracedBody {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.body.read(buf)?;
        self.bytes = self.bytes.saturating_add(n as u64);
        Ok(n)
    }
}

impl Drop for TracedBody {
    fn drop(&mut self) {
        let (file, bytes) = (self.trace, self.bytes);
        zonda_trace::span_since(self.begin, EventKind::Request, || Args {
            file,
            bytes,
            ..Args::default()
        });
    }
}

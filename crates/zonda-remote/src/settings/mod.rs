//! What is set for a server: by its URL, by lines of `.ncrc` and its kin for that server, by lines for all, by variables and `.netrc`,
//! in this order.
//!
//! A program that runs with more rights than its caller takes none of the files and variables: those are its caller's.

mod aws;
mod netrc;
mod proxy;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use zonda_storage::neighbour::from_env;
use zonda_storage::rc::{self, RcTable, RcUrl};

pub use aws::{AwsSettings, Credentials};
pub use proxy::Proxy;

use crate::RemoteUrl;
use crate::client::target::ServerName;
use crate::objects::DEFAULT_PARALLEL;

/// What is set for one server.
#[derive(Clone, PartialEq)]
pub struct Settings {
    /// The server, as messages name it.
    pub shown_server: String,
    /// User and password; secrets.
    pub user: Option<(String, String)>,
    /// They are of `.netrc`: sent to a server that asks for them, and not before. An entry for all servers is known to none by that.
    pub user_waits: bool,
    /// What requests go through.
    pub proxy: Option<Proxy>,
    /// Whether certificates have to be of somebody who is trusted.
    pub verify_peer: bool,
    /// Whether certificates have to have the server's name.
    pub verify_host: bool,
    /// A file of certificates that are trusted in place of the system's.
    pub ca_info: Option<PathBuf>,
    /// A folder of such files.
    pub ca_path: Option<PathBuf>,
    /// Our certificate.
    pub certificate: Option<PathBuf>,
    /// Its key, where that is in another file.
    pub key: Option<PathBuf>,
    /// The key has a password, which is not supported.
    pub has_key_password: bool,
    /// How long a connection may take, its TLS included.
    pub connect_timeout: Duration,
    /// How long nothing may come.
    pub idle_timeout: Duration,
    /// How long a request may take with all of its repetitions; `None` is by its length.
    pub total_timeout: Option<Duration>,
    /// What we say that we are.
    pub user_agent: String,
    /// A file with cookies.
    pub cookie_jar: Option<PathBuf>,
    /// Requests are told on standard error, without secrets.
    pub verbose: bool,
    /// Bytes that a connection takes at once.
    pub buffer_bytes: usize,
    /// Requests at once.
    pub connections: usize,
    /// How often a request is made at most.
    pub most_attempts: u32,
    /// How long the first pause before a repetition is, about; each later one is twice as long.
    pub first_pause: Duration,
    /// Bytes that are read of an object whose server sends no ranges.
    pub most_whole: u64,
    /// Users and passwords by server.
    pub netrc: Option<PathBuf>,
    /// Headers that go with each request to the server itself; secrets.
    pub headers: Vec<(String, String)>,
    /// Keys and values that come before all others; secrets.
    pub given: Vec<(String, String)>,
    /// Where lines for other servers are found, when a redirect leads there.
    pub rc: Arc<RcTable>,
}

/// Without secrets.
impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Settings({})", self.shown_server)
    }
}

/// Bytes that are read of an object whose server sends no ranges: it is kept in memory as long as the file is open.
const MOST_WHOLE: u64 = 64 << 20;
/// A request whose length is set may take this long, and more for what it brings.
const LEAST_TOTAL: Duration = Duration::from_secs(120);
/// Slower than this, in bytes a second, no transfer is waited for.
const LEAST_SPEED: u64 = 4 << 10;
/// A server that repeats a request for ever would be waited for as long as this.
const MOST_TOTAL: Duration = Duration::from_secs(24 * 3600);
/// Files of users and passwords are no longer.
const MOST_NETRC: u64 = 1 << 20;

impl Settings {
    /// What holds for a server of which nothing is set.
    #[must_use]
    pub fn plain(server: &ServerName) -> Settings {
        Settings {
            shown_server: server.shown(),
            user: None,
            user_waits: false,
            proxy: None,
            verify_peer: true,
            verify_host: true,
            ca_info: None,
            ca_path: None,
            certificate: None,
            key: None,
            has_key_password: false,
            connect_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(30),
            total_timeout: None,
            user_agent: concat!("zonda/", env!("CARGO_PKG_VERSION")).into(),
            cookie_jar: None,
            verbose: false,
            buffer_bytes: 128 << 10,
            connections: DEFAULT_PARALLEL,
            most_attempts: 5,
            first_pause: Duration::from_millis(200),
            most_whole: MOST_WHOLE,
            netrc: None,
            headers: Vec::new(),
            given: Vec::new(),
            rc: Arc::default(),
        }
    }

    /// What is set now for a URL at `server`, whatever the server is called in the URL.
    ///
    /// # Errors
    /// Which key has a value that it cannot have; the value is not repeated.
    pub fn of_url(url: &RemoteUrl, server: &ServerName, path: &str) -> Result<Settings, String> {
        let variable = from_env("NETRC").map(PathBuf::from);
        let netrc = variable.or_else(|| Some(rc::home()?.join(".netrc")));
        Settings { netrc, rc: rc::snapshot(), ..Settings::plain(server) }
            .with_url(url, server, path)
    }

    /// These, and what a URL and the lines for its server say besides.
    fn with_url(
        self,
        url: &RemoteUrl,
        server: &ServerName,
        path: &str,
    ) -> Result<Settings, String> {
        let mut settings = Settings { given: [&url.settings[..], &url.given].concat(), ..self };
        let (rc, given) = (Arc::clone(&settings.rc), settings.given.clone());
        let lookup =
            Lookup { given: &given, rc: &rc, url: rc_url(server, path), own: true, shared: true };
        settings.netrc = lookup.path("HTTP.NETRC").or(settings.netrc.take());
        settings.take_keys(&lookup)?;
        settings.headers = headers(&given)?;
        let told = Lookup { own: false, shared: false, ..lookup }.user();
        match told.or_else(|| url.user.clone()) {
            Some(user) => settings.user = Some(user),
            None => settings.take_user(&lookup, server),
        }
        settings.proxy = proxy::choose(lookup.proxy().as_deref(), server)?;
        Ok(settings)
    }

    /// The same for another server to which a redirect leads: nothing secret goes there that is not set for that server itself.
    ///
    /// # Errors
    /// As [`Settings::of_url`].
    pub fn of_redirect(&self, server: &ServerName, path: &str) -> Result<Settings, String> {
        let rc = Arc::clone(&self.rc);
        let lookup =
            Lookup { given: &[], rc: &rc, url: rc_url(server, path), own: true, shared: false };
        let mut settings = Settings {
            shown_server: server.shown(),
            user: None,
            certificate: None,
            key: None,
            has_key_password: false,
            cookie_jar: None,
            headers: Vec::new(),
            // Whom to trust is said for a server, or for all; a server that is not verified may lead anywhere.
            verify_peer: true,
            verify_host: true,
            ca_info: None,
            ca_path: None,
            ..self.clone()
        };
        settings.take_trust(&Lookup { shared: true, ..lookup })?;
        settings.take_keys(&lookup)?;
        // Who is asked by its own name over TLS may have what is set for it; over the open line nobody gets anything by a redirect.
        if server.tls {
            settings.take_user(&lookup, server);
        }
        let proxy = Lookup { given: &self.given, shared: true, ..lookup }.proxy();
        settings.proxy = proxy::choose(proxy.as_deref(), server)?;
        Ok(settings)
    }

    fn take_trust(&mut self, lookup: &Lookup<'_>) -> Result<(), String> {
        if let Some(validate) = lookup.flag("HTTP.SSL.VALIDATE")? {
            (self.verify_peer, self.verify_host) = (validate, validate);
        }
        self.verify_peer = lookup.flag("HTTP.SSL.VERIFYPEER")?.unwrap_or(self.verify_peer);
        self.verify_host = lookup.flag("HTTP.SSL.VERIFYHOST")?.unwrap_or(self.verify_host);
        self.ca_info = lookup.path("HTTP.SSL.CAINFO").or(self.ca_info.take());
        self.ca_path = lookup.path("HTTP.SSL.CAPATH").or(self.ca_path.take());
        Ok(())
    }

    fn take_keys(&mut self, lookup: &Lookup<'_>) -> Result<(), String> {
        self.take_trust(lookup)?;
        self.certificate = lookup.path("HTTP.SSL.CERTIFICATE").or(self.certificate.take());
        self.key = lookup.path("HTTP.SSL.KEY").or(self.key.take());
        self.has_key_password |=
            lookup.text("HTTP.SSL.KEYPASSWORD").is_some_and(|text| !text.is_empty());
        self.cookie_jar = lookup
            .path("HTTP.COOKIEJAR")
            .or_else(|| lookup.path("HTTP.COOKIEFILE"))
            .or(self.cookie_jar.take());
        self.verbose = lookup.flag("HTTP.VERBOSE")?.unwrap_or(self.verbose);
        // Zero stands for the default, as it does in curl.
        let seconds = |key| {
            lookup
                .number(key)
                .map(|number| number.filter(|number| *number > 0).map(Duration::from_secs))
        };
        self.total_timeout =
            seconds("HTTP.TIMEOUT")?.map(|time| time.min(MOST_TOTAL)).or(self.total_timeout);
        self.connect_timeout = seconds("HTTP.CONNECTTIMEOUT")?
            .map(|time| time.min(MOST_TOTAL))
            .unwrap_or(self.connect_timeout);
        if let Some(agent) = lookup.text("HTTP.USERAGENT").filter(|agent| !agent.is_empty()) {
            if !agent.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
                return Err("HTTP.USERAGENT has characters that a header cannot have".into());
            }
            self.user_agent = agent;
        }
        // `max` and `min` are words that netCDF-C knows here.
        let buffer =
            lookup.text("HTTP.READ.BUFFERSIZE").filter(|text| !text.eq_ignore_ascii_case("max"));
        if let Some(bytes) = buffer.as_deref().and_then(|text| {
            if text.eq_ignore_ascii_case("min") {
                Some(1 << 14)
            } else {
                text.parse::<usize>().ok()
            }
        }) {
            self.buffer_bytes = bytes.clamp(1 << 14, 1 << 20);
        }
        if let Some(connections) = lookup.number("ZONDA.CONNECTIONS")? {
            self.connections = usize::try_from(connections).unwrap_or(usize::MAX).clamp(1, 64);
        }
        // HTTP.DEFLATE asks for answers that have no ranges, and HTTP.KEEPALIVE for probes of connections that the idle time replaces.
        Ok(())
    }

    fn take_user(&mut self, lookup: &Lookup<'_>, server: &ServerName) {
        self.user = lookup.user();
        self.user_waits = self.user.is_none();
        let netrc = || {
            let text = read_file(self.netrc.as_ref()?, MOST_NETRC).ok()?;
            // The entry for all servers is not for those that a redirect names.
            netrc::find(&String::from_utf8_lossy(&text), server.bare_host(), lookup.shared)
        };
        self.user = self.user.take().or_else(netrc);
    }

    /// How long a request for `len` bytes may take, with all of its repetitions.
    #[must_use]
    pub fn total(&self, len: u64) -> Duration {
        self.total_timeout
            .unwrap_or_else(|| LEAST_TOTAL + Duration::from_secs(len / LEAST_SPEED))
            .min(MOST_TOTAL)
    }
}

fn rc_url<'a>(server: &'a ServerName, path: &'a str) -> RcUrl<'a> {
    RcUrl {
        protocol: if server.tls { "https" } else { "http" },
        host: &server.host,
        port: server.port_number(),
        path,
    }
}

/// Values of keys for one URL.
#[derive(Clone, Copy)]
struct Lookup<'a> {
    /// What comes before all lines; the last one counts.
    given: &'a [(String, String)],
    rc: &'a RcTable,
    url: RcUrl<'a>,
    /// Lines for this server count.
    own: bool,
    /// Lines for all servers count.
    shared: bool,
}

impl Lookup<'_> {
    fn text(&self, key: &str) -> Option<String> {
        let given = self.given.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case(key));
        if let Some((_, value)) = given {
            return Some(value.clone());
        }
        let own = self.own.then(|| self.rc.get_for(key, self.url)).flatten();
        let value = own.or_else(|| self.shared.then(|| self.rc.get_of_any_case(key)).flatten())?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    fn user(&self) -> Option<(String, String)> {
        let joined = self.text("HTTP.CREDENTIALS.USERPASSWORD").and_then(|text| {
            text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
        });
        joined.or_else(|| {
            let user = self.text("HTTP.CREDENTIALS.USER");
            let user = user.or_else(|| self.text("HTTP.CREDENTIALS.USERNAME"))?;
            Some((user, self.text("HTTP.CREDENTIALS.PASSWORD").unwrap_or_default()))
        })
    }

    fn proxy(&self) -> Option<String> {
        self.text("HTTP.PROXY.SERVER").or_else(|| self.text("HTTP.PROXY_SERVER"))
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).filter(|text| !text.is_empty()).map(PathBuf::from)
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        let Some(text) = self.text(key) else { return Ok(None) };
        match text.to_ascii_lowercase().as_str() {
            "1" | "2" | "true" | "yes" | "on" => Ok(Some(true)),
            "0" | "false" | "no" | "off" => Ok(Some(false)),
            _ => Err(format!("{key} is neither 0 nor 1")),
        }
    }

    /// A whole number; of one with a fraction the next one.
    fn number(&self, key: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let number = text.trim().parse::<f64>().ok().filter(|number| (0.0..1e15).contains(number));
        // In this range it is exact.
        number.map(|number| Some(number.ceil() as u64)).ok_or_else(|| format!("{key} is no number"))
    }
}

/// Headers that somebody wants to be sent: keys `http.header.NAME`.
fn headers(given: &[(String, String)]) -> Result<Vec<(String, String)>, String> {
    const OURS: [&str; 9] = [
        "host",
        "range",
        "connection",
        "content-length",
        "transfer-encoding",
        "accept-encoding",
        "te",
        "upgrade",
        "expect",
    ];
    let mut found: Vec<(String, String)> = Vec::new();
    for (key, value) in given {
        let Some(name) = key.strip_prefix("http.header.") else { continue };
        let name = name.to_ascii_lowercase();
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if !is_name || !value.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
            return Err(
                "a header that is to be sent has characters that headers cannot have".into()
            );
        }
        if OURS.contains(&name.as_str()) {
            return Err(format!("the header {name} is not to be set: requests have their own"));
        }
        found.retain(|(other, _)| *other != name);
        found.push((name, value.clone()));
    }
    Ok(found)
}

/// The text of a regular file of at most `most` bytes.
pub(crate) fn read_file(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    // A pipe would be waited for.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(std::io::Error::other("it is too long")) } else { Ok(bytes) }
}

/// The value of `Authorization` for a user and a password.
pub(crate) fn basic(user: &str, password: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::from("Basic ");
    for three in format!("{user}:{password}").into_bytes().chunks(3) {
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= three.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests;

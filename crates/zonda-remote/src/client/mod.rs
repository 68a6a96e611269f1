//! Requests to servers: connections that are kept, redirects, repetitions, and limits of time for all of it.
//!
//! What is shared by requests to a server ([`servers::Live`]) belongs to the process that made it: a forked child makes its own, and lets the
//! connections of its parent go without a word to the server. No lock is held while a request runs.

pub(crate) mod answer;
mod connect;
mod cookies;
mod gate;
mod interim;
mod lookup;
mod secured;
mod servers;
pub(crate) mod target;
mod tls;

pub(crate) use tls::check as check_tls;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use ureq::http;
use zonda_runtime::lock::{Mutex, Rank};
use zonda_storage::RemoteFailure;
use zonda_tls::{Fault, Kind};

use crate::RemoteError;
use crate::settings::{Settings, basic};
use answer::{Answer, check_encoding, excerpt, header};
use servers::Live;
use target::{ServerName, Target};

/// Redirects that one request follows.
const MOST_REDIRECTS: usize = 8;
/// A server that asks for a longer pause is not waited for.
const MOST_PAUSE: Duration = Duration::from_secs(60);
/// Pauses that we choose grow to this.
const MOST_OWN_PAUSE: Duration = Duration::from_secs(8);

/// Whether a request that failed is worth making again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    Never,
    /// The connection may have been an old one: the first repetition waits for nothing.
    AtOnce,
    Soon,
    /// The server has too much to do; with the pause that it asks for.
    Overloaded(Option<Duration>),
}

/// One attempt that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: RemoteFailure,
    /// The status of an answer that is no success.
    pub(crate) status: Option<u16>,
    pub(crate) what: String,
    pub(crate) again: Again,
}

impl Failure {
    /// An answer that is none to the request: it is not asked for again.
    pub(crate) fn broken(what: impl Into<String>) -> Failure {
        Failure::of(RemoteFailure::Broken, what)
    }

    /// A failure that stays one.
    pub(crate) fn of(kind: RemoteFailure, what: impl Into<String>) -> Failure {
        Failure { kind, status: None, what: what.into(), again: Again::Never }
    }
}

/// What is asked of a server; its headers may have secrets.
#[derive(Clone)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'static str,
    pub(crate) target: Target,
    /// Names in small letters.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<&'a [u8]>,
}

impl Request<'_> {
    pub(crate) fn get(target: Target) -> Request<'static> {
        Request { method: "GET", target, headers: Vec::new(), body: None }
    }
}

/// Who asks, told by headers.
pub(crate) trait Authorize: Send + Sync {
    /// The headers that a request has besides its own. Only for the server itself.
    fn headers(&self, request: &Request<'_>) -> Vec<(&'static str, String)>;

    /// Whether redirects are followed; they are not where headers are of one place alone.
    fn follows(&self) -> bool;
}

/// User and password of the settings, if there are any.
#[derive(Debug)]
pub(crate) struct ByPassword;

impl Authorize for ByPassword {
    fn headers(&self, _: &Request<'_>) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn follows(&self) -> bool {
        true
    }
}

/// A server, with what is set for it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) server: ServerName,
    pub(crate) settings: Arc<Settings>,
    /// What is set for the place that the last redirect led to. Only tried: nobody waits for it.
    elsewhere: Mutex<Option<(Target, Arc<Settings>)>>,
}

/// A request that goes on while its body is read; dropped when that is over.
pub(crate) struct Running(Arc<Live>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.gate.leave();
    }
}

/// One attempt of a request: when it has to be over.
pub(crate) struct Attempt {
    live: Arc<Live>,
    deadline: Instant,
}

impl Client {
    pub(crate) fn new(server: ServerName, settings: Settings) -> Client {
        Client {
            server,
            settings: Arc::new(settings),
            elsewhere: Mutex::ranked(Rank::Servers, None),
        }
    }

    /// How many requests are worth running at once.
    pub(crate) fn parallel(&self) -> usize {
        servers::live(&self.server, &self.settings)
            .map_or(self.settings.connections, |live| live.gate.limit())
    }

    /// Runs attempts of a request that brings `len` bytes, until one succeeds or it is not worth trying another time.
    pub(crate) fn persist<T>(
        &self,
        shown: &Arc<str>,
        len: u64,
        run: impl FnMut(&Attempt) -> Result<T, Failure>,
    ) -> Result<T, RemoteError> {
        self.persist_running(shown, len, run).map(|(done, _)| done)
    }

    /// The same for a request that goes on: it counts among those of its server until what comes with the result is dropped.
    pub(crate) fn persist_running<T>(
        &self,
        shown: &Arc<str>,
        len: u64,
        mut run: impl FnMut(&Attempt) -> Result<T, Failure>,
    ) -> Result<(T, Running), RemoteError> {
        let error = |kind, what: String| RemoteError::new(shown, kind, what);
        let deadline = Instant::now() + self.settings.total(len);
        let mut pause = self.settings.first_pause;
        let mut n_attempts = 0;
        loop {
            let live = servers::live(&self.server, &self.settings)
                .map_err(|what| error(RemoteFailure::Unusable, what))?;
            let pass = live.gate.enter(deadline).ok_or_else(|| {
                error(
                    RemoteFailure::TimedOut,
                    "other requests to this server took all of the time".into(),
                )
            })?;
            let result = run(&Attempt { live: Arc::clone(&live), deadline });
            n_attempts += 1;
            let failure = match result {
                Ok(done) => {
                    pass.keep();
                    live.gate.went_well();
                    return Ok((done, Running(live)));
                }
                Err(failure) => failure,
            };
            drop(pass);
            let wait = match failure.again {
                Again::Never => None,
                Again::AtOnce if n_attempts == 1 => Some(Duration::ZERO),
                Again::AtOnce | Again::Soon | Again::Overloaded(None) => Some(jittered(pause)),
                Again::Overloaded(Some(asked)) => {
                    (asked <= MOST_PAUSE).then(|| asked + jittered(pause) / 8)
                }
            };
            if matches!(failure.again, Again::Overloaded(_)) {
                live.gate.narrow();
            }
            let wait = wait.filter(|wait| {
                n_attempts < self.settings.most_attempts && Instant::now() + *wait < deadline
            });
            let Some(wait) = wait else {
                let what = if n_attempts > 1 {
                    format!("{} (asked {n_attempts} times)", failure.what)
                } else {
                    failure.what
                };
                let status = failure.status;
                return Err(RemoteError { status, ..error(failure.kind, what) });
            };
            self.tell(|| format!("{shown}: {}: again in {} ms", failure.what, wait.as_millis()));
            std::thread::sleep(wait);
            pause = (pause * 2).min(MOST_OWN_PAUSE);
        }
    }

    /// Sends a request and takes the beginning of the answer, after redirects. Its status may be any but of a redirect.
    pub(crate) fn exchange(
        &self,
        attempt: &Attempt,
        request: &Request<'_>,
        who: &dyn Authorize,
    ) -> Result<Answer, Failure> {
        let mut target = request.target.clone();
        let mut n_redirects = 0;
        loop {
            let is_own = target.server == self.server;
            let live = if is_own {
                Arc::clone(&attempt.live)
            } else {
                self.of_elsewhere(&target)
                    .and_then(|settings| servers::live(&target.server, &settings))
                    .map_err(|what| Failure::of(RemoteFailure::Unusable, what))?
            };
            let hop = Request { target: target.clone(), ..request.clone() };
            let is_asked = live.asks_user.load(Ordering::Relaxed);
            let begin = Instant::now();
            let response = send(&live, &hop, is_own.then_some(who), is_asked, attempt.deadline)?;
            let (parts, body) = response.into_parts();
            let status = parts.status.as_u16();
            self.tell(|| {
                let range = hop
                    .headers
                    .iter()
                    .find(|(name, _)| *name == "range")
                    .map_or("", |(_, range)| range);
                format!(
                    "{} {} {range}: status {status} after {:.1} ms",
                    hop.method,
                    target.shown(),
                    begin.elapsed().as_secs_f64() * 1e3
                )
            });
            live.keep_cookies(&target, &parts.headers);
            if status == 401 && live.settings.user.is_some() && !is_asked {
                live.asks_user.store(true, Ordering::Relaxed);
                continue;
            }
            if !matches!(status, 301 | 302 | 303 | 307 | 308) {
                check_encoding(&parts.headers).map_err(Failure::broken)?;
                return Ok(Answer {
                    status,
                    headers: parts.headers,
                    body: body.into_reader(),
                    from: target,
                    is_redirected: n_redirects > 0,
                });
            }
            if !who.follows() || request.method != "GET" {
                // What a signature is of goes nowhere else; S3 tells a wrong region so.
                return Ok(Answer {
                    status,
                    headers: parts.headers,
                    body: body.into_reader(),
                    from: target,
                    is_redirected: false,
                });
            }
            n_redirects += 1;
            if n_redirects > MOST_REDIRECTS {
                return Err(Failure::broken(format!(
                    "status {status}: there are more than {MOST_REDIRECTS} redirects"
                )));
            }
            let location = header(&parts.headers, "location");
            target = target.follow(location).ok_or_else(|| {
                Failure::broken(format!(
                    "status {status}: the redirect leads to nothing behind http:// or https://"
                ))
            })?;
        }
    }

    /// What is set for a place that a redirect led to.
    fn of_elsewhere(&self, target: &Target) -> Result<Arc<Settings>, String> {
        let is_it = |kept: &Target| (&kept.server, &kept.path) == (&target.server, &target.path);
        if let Some(kept) = self.elsewhere.try_lock()
            && let Some((_, settings)) = kept.as_ref().filter(|(kept, _)| is_it(kept))
        {
            return Ok(Arc::clone(settings));
        }
        let settings = Arc::new(self.settings.of_redirect(&target.server, &target.path)?);
        if let Some(mut kept) = self.elsewhere.try_lock() {
            *kept = Some((target.clone(), Arc::clone(&settings)));
        }
        Ok(settings)
    }

    /// One line on standard error, where a setting wants it (`HTTP.VERBOSE`).
    fn tell(&self, line: impl FnOnce() -> String) {
        if self.settings.verbose {
            use std::io::Write;
            // A program whose standard error is closed still runs.
            let _ = writeln!(std::io::stderr().lock(), "zonda: {}", line());
        }
    }
}

/// Sends one request to the server of `live`.
fn send(
    live: &Live,
    request: &Request<'_>,
    who: Option<&dyn Authorize>,
    tells_user: bool,
    deadline: Instant,
) -> Result<http::Response<ureq::Body>, Failure> {
    let unusable = |_| {
        Failure::of(
            RemoteFailure::Unusable,
            "the URL, or a header of the settings, has characters that requests cannot have",
        )
    };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Failure::of(RemoteFailure::TimedOut, "the time for the request is over"));
    }
    let uri = format!("{}{}", request.target.server.shown(), request.target.path_and_query());
    let mut builder = http::Request::builder().method(request.method).uri(uri);
    let mut headers = request.headers.clone();
    headers.push(("accept-encoding", "identity".into()));
    let of_who = who.map(|who| who.headers(request)).unwrap_or_default();
    let wanted = &live.settings.headers;
    let is_authorized = of_who.iter().any(|(name, _)| *name == "authorization")
        || wanted.iter().any(|(name, _)| name == "authorization");
    if let (Some((user, password)), true) = (&live.settings.user, tells_user && !is_authorized) {
        headers.push(("authorization", basic(user, password)));
    }
    headers.extend(of_who);
    if let Some(proxy) = live.settings.proxy.as_ref().filter(|_| !request.target.server.tls) {
        headers.extend(
            proxy
                .user
                .as_ref()
                .map(|(user, password)| ("proxy-authorization", basic(user, password))),
        );
    }
    headers.extend(live.cookies_for(&request.target).map(|cookies| ("cookie", cookies)));
    for (name, value) in wanted {
        if !headers.iter().any(|(own, _)| own == name) {
            builder = builder.header(name, value);
        }
    }
    for (name, value) in headers {
        builder = builder.header(name, value);
    }
    let result = match request.body {
        Some(body) => {
            let request = builder.body(body).map_err(unusable)?;
            live.agent.run(live.agent.configure_request(request).timeout_global(Some(left)).build())
        }
        None => {
            let request = builder.body(()).map_err(unusable)?;
            live.agent.run(live.agent.configure_request(request).timeout_global(Some(left)).build())
        }
    };
    result.map_err(|error| {
        // The host of S3 is in no URL.
        let host = || match &live.settings.proxy {
            Some(proxy) => format!("the proxy {}", excerpt(proxy.server.bare_host())),
            None => excerpt(request.target.server.bare_host()),
        };
        let failure = failure_of(&error);
        match error {
            ureq::Error::HostNotFound | ureq::Error::Timeout(ureq::Timeout::Resolve) => {
                Failure { what: format!("{} ({})", failure.what, host()), ..failure }
            }
            _ => failure,
        }
    })
}

/// What an error below HTTP is to us. No text of ureq is repeated that may have a URL.
pub(crate) fn failure_of(error: &ureq::Error) -> Failure {
    use RemoteFailure::{Broken, Denied, TimedOut, Unreachable, Unusable};
    let (kind, what, again) = match error {
        ureq::Error::Timeout(ureq::Timeout::Connect) => {
            (TimedOut, "no connection came about in time".into(), Again::Soon)
        }
        ureq::Error::Timeout(ureq::Timeout::Resolve) => {
            (TimedOut, "nobody said in time, by DNS, where the host is".into(), Again::Never)
        }
        ureq::Error::Timeout(_) => {
            (TimedOut, "nothing came for too long, or too little".into(), Again::Soon)
        }
        ureq::Error::HostNotFound => (Unreachable, "there is no such host".into(), Again::Never),
        ureq::Error::Io(error) => return failure_of_io(error),
        ureq::Error::LargeResponseHeader(..) => {
            (Broken, "the headers of the answer are too long".into(), Again::Never)
        }
        ureq::Error::Protocol(error) => (
            Broken,
            format!("the answer is none of HTTP: {}", excerpt(&error.to_string())),
            Again::Never,
        ),
        ureq::Error::Http(_) | ureq::Error::BadUri(_) => {
            (Unusable, "the URL has characters that requests cannot have".into(), Again::Never)
        }
        ureq::Error::ConnectProxyFailed(status) if status.ends_with("407") => (
            Denied,
            "the proxy wants a user and a password, or others (status 407)".into(),
            Again::Never,
        ),
        ureq::Error::ConnectProxyFailed(status) => (
            Unreachable,
            format!("the proxy makes no connection ({})", excerpt(status)),
            Again::Never,
        ),
        ureq::Error::Tls(what) => (Unreachable, (*what).into(), Again::Never),
        ureq::Error::Other(error) => {
            (Unreachable, format!("TLS: {}", excerpt(&error.to_string())), Again::Never)
        }
        _ => (Broken, "the answer cannot be read".into(), Again::Never),
    };
    Failure { kind, status: None, what, again }
}

/// The same of what reading a body met.
pub(crate) fn failure_of_io(error: &io::Error) -> Failure {
    use RemoteFailure::{Broken, Denied, TimedOut, Unreachable};
    if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>()) {
        return failure_of(inner);
    }
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>()) {
        if tls.kind == Kind::NotTls {
            return Failure::of(
                Unreachable,
                "TLS: the server speaks something else (http:// instead of https://, perhaps)",
            );
        }
        // What a certificate is said to be for comes from the server: its beginning only.
        let text: String = tls.text.chars().filter(|ch| !ch.is_control()).take(200).collect();
        // A server that is being started anew ends handshakes, too.
        let again = if tls.kind == Kind::Ended { Again::AtOnce } else { Again::Never };
        return Failure { again, ..Failure::of(Unreachable, format!("TLS: {text}")) };
    }
    let text = error.raw_os_error().map_or_else(
        || error.kind().to_string(),
        |code| io::Error::from_raw_os_error(code).to_string(),
    );
    let (kind, again) = match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => (TimedOut, Again::Soon),
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::AddrNotAvailable => (Unreachable, Again::Never),
        io::ErrorKind::PermissionDenied => (Denied, Again::Never),
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected => (Broken, Again::AtOnce),
        _ => (Broken, Again::Never),
    };
    let what = if error.kind() == io::ErrorKind::UnexpectedEof {
        "the connection ended before the answer did".into()
    } else {
        text
    };
    Failure { kind, status: None, what, again }
}

/// What a status says that is no success; `code` is what S3 says in words of its own.
pub(crate) fn failure_of_status(answer: &Answer, code: Option<&str>) -> Failure {
    use RemoteFailure::{Broken, Denied, NotFound};
    let (kind, what, again) = match answer.status {
        401 if header(&answer.headers, "www-authenticate")
            .get(..6)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("digest")) =>
        {
            (
                Denied,
                "the server wants a password by the scheme Digest, which is not supported",
                Again::Never,
            )
        }
        401 => (Denied, "the server wants a user and a password, or others", Again::Never),
        403 => (Denied, "the server does not allow it", Again::Never),
        407 => (Denied, "the proxy wants a user and a password, or others", Again::Never),
        404 | 410 => (NotFound, "there is no such object", Again::Never),
        412 => (Broken, "the object has changed since it was opened", Again::Never),
        408 => (Broken, "the server waited for too long", Again::Soon),
        429 | 503 => (
            Broken,
            "the server has too much to do",
            Again::Overloaded(retry_after(header(&answer.headers, "retry-after"))),
        ),
        500 | 502 | 504 => (Broken, "the server failed", Again::Soon),
        400..=499 => (Broken, "the server refuses the request", Again::Never),
        _ => (Broken, "the answer is none to the request", Again::Never),
    };
    let code = code.map_or(String::new(), |code| format!(", {code}"));
    let status = Some(answer.status);
    Failure { kind, status, what: format!("status {}{code}: {what}", answer.status), again }
}

/// How long a server asks to be left alone: seconds, or a date. A date that is over is no pause.
fn retry_after(text: &str) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX / 4)));
    }
    let at = http_date(text)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
    Some(Duration::from_secs(at.saturating_sub(now)))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` in seconds since 1970.
fn http_date(text: &str) -> Option<u64> {
    let fields: Vec<&str> = text.split([' ', ':']).collect();
    let [_, day, month, year, hour, minute, second, "GMT"] = fields[..] else { return None };
    let month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        .iter()
        .position(|name| *name == month)? as u64
        + 1;
    let number = |text: &str, most: u64| text.parse::<u64>().ok().filter(|number| *number <= most);
    let (day, year) = (number(day, 31)?, number(year, 9999)?);
    let days = days_since_1970(year, month, day)?;
    Some(days * 86400 + number(hour, 23)? * 3600 + number(minute, 59)? * 60 + number(second, 60)?)
}

/// Days from 1970-01-01 to a day of the Gregorian calendar that is not before it.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    // Years begin in March here, so that the day that some have is their last.
    let (year, month) =
        if month <= 2 { (year.checked_sub(1)?, month + 9) } else { (year, month - 3) };
    let before = year * 365 + year / 4 - year / 100 + year / 400;
    (before + (month * 153 + 2) / 5 + day).checked_sub(719_469)
}

/// Between half of a time and one and a half of it: those who failed together do not come back together.
fn jittered(time: Duration) -> Duration {
    use std::hash::{BuildHasher, Hasher};
    // Each state has keys of its own, which the system draws.
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    time.mul_f64(0.5 + (random >> 11) as f64 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_ask_for_pauses_by_number_or_date() {
        assert_eq!(retry_after("7"), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert!(retry_after("99999999999999999999").unwrap() > MOST_PAUSE);
        for no in [
            "",
            "soon",
            "-1",
            "Sun, 06 Nov 1994",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "x, 99 Nov 1 1:1:1 GMT",
        ] {
            assert_eq!(retry_after(no), None, "{no}");
        }
    }

    #[test]
    fn pauses_are_spread_around_their_length() {
        let times: Vec<Duration> =
            (0..100).map(|_| jittered(Duration::from_millis(1000))).collect();
        assert!(times.iter().all(|time| (500..1500).contains(&time.as_millis())));
        assert!(times.iter().max() > times.iter().min());
    }
}

//! Connections: TCP, through a proxy where there is one, with TLS where the URL says so.
//!
//! Not ureq's own: these name an `http://` resource to a proxy as a proxy wants it (squid refuses tunnels to other ports than 443),
//! look up names without a limit of time, and bound each wait by the idle time, the whole by the request's.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_tcp_quickack;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};
use zonda_tls::{Client, Kind};

use super::interim::Interim;
use super::lookup::{NoAddress, addresses};
use super::secured::Secured;
use super::target::ServerName;
use crate::settings::{Proxy, basic};

/// Bytes of what comes that a connection keeps; the memory of a connection, about.
const OUTPUT_BYTES: usize = 64 << 10;
/// A proxy's answer to a tunnel is no longer.
const MOST_PROXY_HEADER: usize = 16 << 10;

/// How one server is connected to.
pub(crate) struct Connect {
    pub(crate) server: ServerName,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) tls: Option<Arc<Client>>,
    /// Of the proxy, where that has TLS.
    pub(crate) proxy_tls: Option<Arc<Client>>,
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) buffer_bytes: usize,
    pub(crate) user_agent: String,
}

/// Without proxy, user and password.
impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connect({})", self.server.shown())
    }
}

/// Leaves names to [`Connect`].
#[derive(Debug)]
pub(crate) struct NoResolver;

impl Resolver for NoResolver {
    fn resolve(
        &self,
        _: &ureq::http::Uri,
        _: &ureq::config::Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        Ok(self.empty())
    }
}

/// Connects to nobody.
#[derive(Debug)]
pub(crate) struct NoConnection;

impl Connector<()> for NoConnection {
    type Out = Connection;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<Connection>, ureq::Error> {
        Ok(None)
    }
}

impl Connector<()> for Connect {
    type Out = Connection;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<Connection>, ureq::Error> {
        let deadline = deadline_of(details.timeout).min(Instant::now() + self.connect_timeout);
        let (host, port) = match &self.proxy {
            Some(proxy) => (proxy.server.bare_host(), proxy.server.port_number()),
            None => (self.server.bare_host(), self.server.port_number()),
        };
        let tcp = dial(host, port, deadline)?;
        tcp.set_nodelay(true)?;
        let mut timed = Timed { tcp, idle: self.idle_timeout, deadline, set: [Duration::ZERO; 2] };
        let mut forward = None;
        if let Some(proxy) = &self.proxy {
            if let Some(tls) = &self.proxy_tls {
                let mut stream = secured(timed, tls, proxy.server.bare_host())?;
                if self.tls.is_some() {
                    return Err(wrong(
                        "a tunnel through a proxy that has TLS itself is not supported: use an http:// proxy",
                    ));
                }
                stream.socket.deadline = deadline;
                return Ok(Some(
                    self.connection(Stream::Tls(Box::new(stream)), Some(self.server.shown())),
                ));
            }
            if self.tls.is_some() {
                self.tunnel(&mut timed, proxy)?;
            } else {
                forward = Some(self.server.shown());
            }
        }
        let stream = match &self.tls {
            Some(tls) => Stream::Tls(Box::new(secured(timed, tls, self.server.bare_host())?)),
            None => Stream::Plain(timed),
        };
        Ok(Some(self.connection(stream, forward)))
    }
}

impl Connect {
    fn connection(&self, stream: Stream, forward: Option<String>) -> Connection {
        let buffers = LazyBuffers::new(self.buffer_bytes, OUTPUT_BYTES);
        Connection {
            stream,
            buffers,
            forward,
            is_at_request: true,
            interim: Interim::default(),
            has_tls: self.tls.is_some(),
        }
    }

    /// Asks a proxy for a connection to the server.
    fn tunnel(&self, timed: &mut Timed, proxy: &Proxy) -> Result<(), ureq::Error> {
        let place = format!("{}:{}", self.server.host, self.server.port_number());
        let mut request = format!(
            "CONNECT {place} HTTP/1.1\r\nHost: {place}\r\nUser-Agent: {}\r\n",
            self.user_agent
        );
        if let Some((user, password)) = &proxy.user {
            request += &format!("Proxy-Authorization: {}\r\n", basic(user, password));
        }
        timed.write_all((request + "\r\n").as_bytes())?;
        // Byte by byte: what comes behind the header is the server's.
        let mut header = Vec::new();
        let mut byte = [0];
        while !header.ends_with(b"\r\n\r\n") {
            if header.len() >= MOST_PROXY_HEADER || timed.read(&mut byte)? == 0 {
                return Err(wrong("the proxy's answer is no answer"));
            }
            header.push(byte[0]);
        }
        let status = std::str::from_utf8(&header)
            .ok()
            .and_then(|text| text.strip_prefix("HTTP/1.")?.get(2..5)?.parse::<u16>().ok());
        match status {
            Some(200..=299) => Ok(()),
            Some(status) => Err(ureq::Error::ConnectProxyFailed(format!("status {status}"))),
            None => Err(wrong("the proxy's answer is no answer")),
        }
    }
}

fn wrong(what: &'static str) -> ureq::Error {
    ureq::Error::Tls(what)
}

/// A connection to the first address that takes one.
fn dial(host: &str, port: u16, deadline: Instant) -> Result<TcpStream, ureq::Error> {
    let addresses = addresses(host, port, deadline).map_err(|why| match why {
        NoAddress::Unknown => ureq::Error::HostNotFound,
        NoAddress::TimedOut => ureq::Error::Timeout(ureq::Timeout::Resolve),
    })?;
    let mut failure = ureq::Error::HostNotFound;
    for (i, address) in addresses.iter().enumerate() {
        // An address that does not answer leaves time for the others.
        let left = deadline.saturating_duration_since(Instant::now());
        let time = if i + 1 == addresses.len() { left } else { left / 2 };
        if time.is_zero() {
            return Err(ureq::Error::Timeout(ureq::Timeout::Connect));
        }
        failure = match TcpStream::connect_timeout(address, time) {
            Ok(tcp) => return Ok(tcp),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                ureq::Error::Timeout(ureq::Timeout::Connect)
            }
            Err(error) => error.into(),
        };
    }
    Err(failure)
}

/// TLS on a connection, its handshake done.
fn secured(timed: Timed, tls: &Client, host: &str) -> Result<Secured<Timed>, ureq::Error> {
    let connection = tls.connect(host).map_err(|fault| match fault.kind {
        Kind::Name => wrong("no certificate can have the name of the server"),
        _ => io::Error::other(fault).into(),
    })?;
    Ok(Secured::new(connection, timed)?)
}

/// A socket each of whose waits ends: after the idle time, and at the deadline.
#[derive(Debug)]
struct Timed {
    tcp: TcpStream,
    idle: Duration,
    deadline: Instant,
    /// What the socket was told, for reads and writes.
    set: [Duration; 2],
}

impl Timed {
    /// Tells the socket how long it may wait.
    fn prepare(&mut self, is_write: bool) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now()).min(self.idle);
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let set = &mut self.set[usize::from(is_write)];
        // A shorter wait that was set is fine as long as it is not much shorter.
        if *set > left || *set < left / 2 {
            *set = left;
            if is_write {
                self.tcp.set_write_timeout(Some(left))?
            } else {
                self.tcp.set_read_timeout(Some(left))?
            }
        }
        Ok(())
    }

    fn until_done<T>(
        &mut self,
        is_write: bool,
        mut attempt: impl FnMut(&mut TcpStream) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            self.prepare(is_write)?;
            match attempt(&mut self.tcp) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                done => return done,
            }
        }
    }
}

impl Read for Timed {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        // Servers that hold a last short packet back until what came before is acknowledged (nginx, on the first answer of a connection)
        // would wait 40 ms for it. The system forgets this after a while. Where it cannot be had, nothing but time is lost.
        let _ = set_tcp_quickack(&self.tcp, true);
        self.until_done(false, |tcp| tcp.read(buf))
    }
}

impl Write for Timed {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.until_done(true, |tcp| tcp.write(buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Stream {
    Plain(Timed),
    Tls(Box<Secured<Timed>>),
}

impl Stream {
    fn timed(&mut self) -> &mut Timed {
        match self {
            Stream::Plain(timed) => timed,
            Stream::Tls(tls) => &mut tls.socket,
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Plain(timed) => timed.write_all(bytes),
            Stream::Tls(tls) => tls.write_all(bytes),
        }
    }
}

/// A connection that requests go through, one after the other.
pub(crate) struct Connection {
    stream: Stream,
    buffers: LazyBuffers,
    /// What a proxy wants before each path.
    forward: Option<String>,
    /// What is sent next begins a request.
    is_at_request: bool,
    /// Answers that come before the one to the request.
    interim: Interim,
    has_tls: bool,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

/// A time-out keeps its name on the way up.
fn of_time(error: io::Error, timeout: NextTimeout) -> ureq::Error {
    if error.kind() == io::ErrorKind::TimedOut {
        ureq::Error::Timeout(timeout.reason)
    } else {
        error.into()
    }
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.timed().deadline = deadline_of(timeout);
        let is_first = std::mem::replace(&mut self.is_at_request, false);
        self.interim = Interim::default();
        let output = &self.buffers.output()[..amount];
        let done = match (&self.forward, is_first, output.iter().position(|byte| *byte == b' ')) {
            (Some(server), true, Some(space)) => {
                let (method, rest) = output.split_at(space + 1);
                self.stream.write_all(&[method, server.as_bytes(), rest].concat())
            }
            _ => self.stream.write_all(output),
        };
        done.map_err(|error| of_time(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.is_at_request = true;
        self.stream.timed().deadline = deadline_of(timeout);
        loop {
            let buf = self.buffers.input_append_buf();
            let n = match &mut self.stream {
                Stream::Plain(timed) => timed.read(buf),
                Stream::Tls(tls) => tls.read(buf),
            };
            let n = n.map_err(|error| of_time(error, timeout))?;
            self.buffers.input_appended(n);
            if n == 0 || self.interim.is_over(&mut self.buffers)? {
                return Ok(n > 0);
            }
        }
    }

    fn is_open(&mut self) -> bool {
        if matches!(&self.stream, Stream::Tls(tls) if tls.has_more()) {
            return false;
        }
        let timed = self.stream.timed();
        if timed.tcp.set_nonblocking(true).is_err() {
            return false;
        }
        // What comes without being asked for, an end too, makes the connection useless.
        let is_silent = matches!(timed.tcp.peek(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        timed.tcp.set_nonblocking(false).is_ok() && is_silent
    }

    fn is_tls(&self) -> bool {
        self.has_tls
    }
}

/// When a wait is over; a time of which nothing is said is a day.
fn deadline_of(timeout: NextTimeout) -> Instant {
    let far = Duration::from_secs(24 * 3600);
    Instant::now() + (*timeout.after).min(far)
}

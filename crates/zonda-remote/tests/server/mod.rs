//! A small HTTP server for tests: it reads requests, and a function says which bytes go back, and when.

// Each test program uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use zonda_remote::settings::Settings;
use zonda_remote::{RemoteUrl, ServerName};

/// A request as it came.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub method: String,
    /// Path and query, or what stands in their place.
    pub target: String,
    /// Names in small letters.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Which request of the server it is, the first being 0.
    pub nth: usize,
    /// Which connection it came by.
    pub connection: usize,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// First byte and end of the range that it asks for.
    pub fn range(&self) -> Option<(u64, u64)> {
        let (first, last) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().ok()?, last.parse::<u64>().ok()?.saturating_add(1)))
    }
}

/// What a server does about a request, one step after the other.
#[derive(Debug, Clone)]
pub enum Step {
    Send(Vec<u8>),
    Pause(u64),
    /// Sends these bytes until the client has enough.
    Flood(Vec<u8>),
    /// Sends these bytes one at a time, with a pause of so many milliseconds after each.
    Drip(Vec<u8>, u64),
    Close,
}

pub type Script = Vec<Step>;

/// A header and a body.
pub fn answer(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Script {
    let mut text = format!("HTTP/1.1 {status}\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += "\r\n";
    vec![Step::Send([text.as_bytes(), body].concat())]
}

/// The honest answer to a GET of an object.
pub fn serve(request: &Request, bytes: &[u8], tag: &str) -> Script {
    let len = bytes.len() as u64;
    match request.range() {
        Some((first, _)) if first >= len => answer(
            "416 Range Not Satisfiable",
            &[("Content-Length", "0"), ("Content-Range", &format!("bytes */{len}")), ("ETag", tag)],
            b"",
        ),
        Some((first, end)) => {
            let end = end.min(len);
            let part = &bytes[first as usize..end as usize];
            answer(
                "206 Partial Content",
                &[
                    ("Content-Length", &part.len().to_string()),
                    ("Content-Range", &format!("bytes {first}-{}/{len}", end - 1)),
                    ("ETag", tag),
                ],
                part,
            )
        }
        None => answer("200 OK", &[("Content-Length", &len.to_string()), ("ETag", tag)], bytes),
    }
}

type Handler = dyn Fn(&Request) -> Script + Send + Sync;

/// A server, until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    is_over: Arc<AtomicBool>,
}

impl Server {
    pub fn start(handler: impl Fn(&Request) -> Script + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, is_over) =
            (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (noted, ends, handler): (_, _, Arc<Handler>) =
            (Arc::clone(&requests), Arc::clone(&is_over), Arc::new(handler));
        let nth = Arc::new(AtomicUsize::new(0));
        std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { continue };
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                let (noted, ends, handler, nth) =
                    (Arc::clone(&noted), Arc::clone(&ends), Arc::clone(&handler), Arc::clone(&nth));
                std::thread::spawn(move || {
                    // A client that goes away ends it.
                    let _ = converse(stream, connection, &noted, &ends, &*handler, &nth);
                });
            }
        });
        Server { address, requests, is_over }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The requests until now.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn converse(
    stream: TcpStream,
    connection: usize,
    noted: &Mutex<Vec<Request>>,
    ends: &AtomicBool,
    handler: &Handler,
    nth: &AtomicUsize,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    // Whatever a test does, no thread stays for long.
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut words = line.split_whitespace().map(ToOwned::to_owned);
        let mut request = Request {
            method: words.next().unwrap_or_default(),
            target: words.next().unwrap_or_default(),
            connection,
            ..Request::default()
        };
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                request.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        let len: usize =
            request.header("content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
        request.body = vec![0; len];
        reader.read_exact(&mut request.body)?;
        request.nth = nth.fetch_add(1, Ordering::SeqCst);
        noted.lock().unwrap().push(request.clone());
        for step in handler(&request) {
            match step {
                Step::Send(bytes) => stream.write_all(&bytes)?,
                Step::Pause(ms) => pause(ms, ends),
                Step::Flood(bytes) => {
                    let until = Instant::now() + Duration::from_secs(20);
                    while Instant::now() < until && !ends.load(Ordering::SeqCst) {
                        stream.write_all(&bytes)?;
                    }
                }
                Step::Drip(bytes, ms) => {
                    for byte in bytes {
                        stream.write_all(&[byte])?;
                        pause(ms, ends);
                    }
                }
                Step::Close => return Ok(()),
            }
        }
    }
}

fn pause(ms: u64, ends: &AtomicBool) {
    let until = Instant::now() + Duration::from_millis(ms);
    while Instant::now() < until && !ends.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(ms.min(20)));
    }
}

/// Settings with short times: 0.3 s idle, 2 s in total, three attempts.
pub fn hasty(url: &RemoteUrl) -> Settings {
    Settings {
        connect_timeout: Duration::from_secs(1),
        idle_timeout: Duration::from_millis(300),
        total_timeout: Some(Duration::from_secs(2)),
        most_attempts: 3,
        first_pause: Duration::from_millis(10),
        most_whole: 1 << 20,
        user: url.user.clone(),
        ..Settings::plain(&ServerName::of(url))
    }
}

/// Bytes that tell where they are.
pub fn object(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

//! Servers that do not do what they should: each behaviour has to end in an error of the right kind, within the time and the memory that are set, and with no
//! value that counts.

mod server;

use std::time::{Duration, Instant};

use server::{Request, Script, Server, Step, answer, hasty, object, serve};
use zonda_remote::objects::HttpObjects;
use zonda_remote::{Objects, RemoteUrl};
use zonda_storage::RemoteFailure::{
    self, Broken, Denied, NotFound, TimedOut, Unreachable, Unusable,
};

const LEN: usize = 100_000;
const AT: u64 = 1000;
const N: usize = 5000;
const TAG: &str = "\"one\"";

struct Case {
    name: &'static str,
    /// What the server does about the request, which comes after an honest one.
    does: fn(&Request) -> Script,
    kind: RemoteFailure,
    /// How often it may be asked: once where another answer is not to be expected.
    asked: std::ops::RangeInclusive<usize>,
    /// A part of the message.
    says: &'static str,
}

/// A part with other headers than it should have; `Content-Length` and `Content-Range` are right unless they are told.
fn part(more: &[(&str, &str)], body: &[u8]) -> Script {
    let len = body.len().to_string();
    let range = format!("bytes {AT}-{}/{LEN}", AT + N as u64 - 1);
    let mut headers = vec![("ETag", TAG)];
    for (name, value) in [("Content-Length", len.as_str()), ("Content-Range", range.as_str())] {
        if !more.iter().any(|(told, _)| *told == name) {
            headers.push((name, value));
        }
    }
    // An empty value stands for no header.
    headers.extend(more.iter().filter(|(_, value)| !value.is_empty()));
    answer("206 Partial Content", &headers, body)
}

fn right() -> Vec<u8> {
    object(LEN)[AT as usize..AT as usize + N].to_vec()
}

fn chunked(sizes: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    for size in sizes {
        out.extend(format!("{size:x}\r\n").bytes());
        out.extend(vec![7; *size]);
        out.extend(b"\r\n");
    }
    out.extend(b"0\r\n\r\n");
    out
}

const CHUNKED: [(&str, &str); 2] = [("Content-Length", ""), ("Transfer-Encoding", "chunked")];

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut add = |name, kind, asked, says, does: fn(&Request) -> Script| {
        cases.push(Case { name, does, kind, asked, says })
    };
    let (once, often) = (1..=1, 3..=3);
    add("an object that is not there", NotFound, once.clone(), "status 404", |_| {
        answer("404 Not Found", &[("Content-Length", "0")], b"")
    });
    add("access that is not allowed", Denied, once.clone(), "status 403", |_| {
        answer("403 Forbidden", &[("Content-Length", "0")], b"")
    });
    add("a scheme of passwords that we do not have", Denied, once.clone(), "Digest", |_| {
        answer(
            "401 Unauthorized",
            &[("Content-Length", "0"), ("WWW-Authenticate", "Digest realm=x")],
            b"",
        )
    });
    add("a server that fails for ever", Broken, often.clone(), "status 500", |_| {
        answer("500 Oops", &[("Content-Length", "0")], b"")
    });
    add("a status that nobody knows", Broken, once.clone(), "status 299", |_| {
        answer("299 Strange", &[("Content-Length", "0")], b"")
    });
    add("an answer before the answer alone", Broken, 1..=3, "", |_| {
        vec![Step::Send(b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec()), Step::Close]
    });
    add("no content", Broken, once.clone(), "status 204", |_| answer("204 No Content", &[], b""));
    add("not modified", Broken, once.clone(), "status 304", |_| {
        answer("304 Not Modified", &[], b"")
    });
    add("a part that is said not to be there", Broken, once.clone(), "status 416", |_| {
        answer("416 No", &[("Content-Length", "0"), ("Content-Range", "bytes */100000")], b"")
    });
    add("too many requests, for an hour", Broken, once.clone(), "status 429", |_| {
        answer("429 Slow Down", &[("Content-Length", "0"), ("Retry-After", "3600")], b"")
    });
    add("overload for ever", Broken, often.clone(), "status 503", |_| {
        answer("503 Busy", &[("Content-Length", "0")], b"")
    });
    add("a body that ends early", Broken, often.clone(), "after 100 of 5000 bytes", |_| {
        [part(&[("Content-Length", "5000")], &right()[..100]), vec![Step::Close]].concat()
    });
    add("a body that ends before it begins", Broken, often.clone(), "after 0 of 5000", |_| {
        [part(&[("Content-Length", "5000")], b""), vec![Step::Close]].concat()
    });
    add("a body that is shorter than its range", Broken, once.clone(), "4000 bytes", |_| {
        part(&[], &right()[..4000])
    });
    add("an empty body", Broken, once.clone(), "0 bytes", |_| part(&[], b""));
    add("a body that is longer than its range", Broken, once.clone(), "6000 bytes", |_| {
        part(&[], &[7; 6000])
    });
    add("chunks that are more than the range", Broken, once.clone(), "more bytes", |_| {
        part(&CHUNKED, &chunked(&[N, 1]))
    });
    add("chunks that are less than the range", Broken, often.clone(), "of 5000 bytes", |_| {
        part(&CHUNKED, &chunked(&[N - 1]))
    });
    add("a chunk of all memory there is", TimedOut, 1..=3, "after 3 of 5000", |_| {
        part(&CHUNKED, b"ffffffffffffffff\r\nxxx")
    });
    add("a chunk whose length is none", Broken, 1..=3, "", |_| {
        part(&CHUNKED, b"zz\r\nxxx\r\n0\r\n\r\n")
    });
    add("a chunk whose length never ends", Broken, 1..=3, "", |_| {
        [part(&CHUNKED, b"1"), vec![Step::Flood(vec![b'0'; 65536])]].concat()
    });
    add("a chunk with endless remarks", Broken, 1..=3, "", |_| {
        [part(&CHUNKED, b"5;x="), vec![Step::Flood(vec![b'y'; 65536])]].concat()
    });
    add("trailers that never end", TimedOut, 1..=3, "", |_| {
        [
            part(&CHUNKED, &[b"1388\r\n".as_slice(), &right(), b"\r\n0\r\n"].concat()),
            vec![Step::Flood(b"x: y\r\n".repeat(1000))],
        ]
        .concat()
    });
    add("another range", Broken, once.clone(), "not those that were asked for", |_| {
        part(&[("Content-Range", "bytes 0-4999/100000")], &right())
    });
    add("a part of the range", Broken, once.clone(), "not those that were asked for", |_| {
        part(&[("Content-Range", "bytes 1000-1999/100000")], &right()[..1000])
    });
    add("a range that ends behind the object", Broken, once.clone(), "Content-Range", |_| {
        part(&[("Content-Range", "bytes 1000-5999/5000")], &right())
    });
    add("a range backwards", Broken, once.clone(), "Content-Range", |_| {
        part(&[("Content-Range", "bytes 5999-1000/100000")], &right())
    });
    add("a range of an object of any length", Broken, once.clone(), "Content-Range", |_| {
        part(&[("Content-Range", "bytes 1000-5999/*")], &right())
    });
    add("a part without its range", Broken, once.clone(), "no Content-Range", |_| {
        part(&[("Content-Range", "")], &right())
    });
    add("parts in one body", Broken, once.clone(), "in parts", |_| {
        part(
            &[("Content-Range", ""), ("Content-Type", "multipart/byteranges; boundary=x")],
            b"--x\r\nContent-Range: bytes 1000-5999/100000\r\n\r\n",
        )
    });
    add("a compressed body", Broken, once.clone(), "gzip", |_| {
        part(&[("Content-Encoding", "gzip")], &right())
    });
    add("a body in an unknown encoding", Broken, once.clone(), "nobody asked", |_| {
        part(&[("Content-Encoding", "x-secret")], &right())
    });
    add("a compressed transfer", Broken, 1..=3, "", |_| {
        part(&[("Content-Length", ""), ("Transfer-Encoding", "gzip, chunked")], &chunked(&[N]))
    });
    add("two lengths of two kinds", Broken, 1..=3, "", |_| {
        part(&[("Transfer-Encoding", "chunked")], &right())
    });
    add("two lengths", Broken, 1..=3, "", |_| {
        part(&[("Content-Length", "5000"), ("Content-Length", "4999")], &right())
    });
    add("a length that is no number", Broken, 1..=3, "", |_| {
        part(&[("Content-Length", "-5000")], &right())
    });
    add("a length that no number holds", Broken, 1..=3, "", |_| {
        part(&[("Content-Length", "99999999999999999999999")], &right())
    });
    add(
        "all of a long object, by its length",
        Unusable,
        once.clone(),
        "more than may be read",
        |_| answer("200 OK", &[("Content-Length", "99999999999999"), ("ETag", TAG)], b"x"),
    );
    add("two ranges", Broken, once.clone(), "several Content-Range", |_| {
        part(
            &[
                ("Content-Range", "bytes 0-4999/100000"),
                ("content-range", "bytes 1000-5999/100000"),
            ],
            &right(),
        )
    });
    add(
        "half of all, and the end of the connection",
        Broken,
        once.clone(),
        "how long it is",
        |_| answer("200 OK", &[("Connection", "close"), ("ETag", TAG)], &right()),
    );
    add("all of an endless object", Broken, once.clone(), "how long it is", |_| {
        [answer("200 OK", &[("Connection", "close")], b""), vec![Step::Flood(vec![1; 65536])]]
            .concat()
    });
    add(
        "all of an endless object in chunks",
        Unusable,
        once.clone(),
        "more than may be read",
        |_| {
            [
                answer("200 OK", &[("Transfer-Encoding", "chunked")], b""),
                vec![Step::Flood([b"1000\r\n".as_slice(), &[1; 4096], b"\r\n"].concat())],
            ]
            .concat()
        },
    );
    add("all of another object", Broken, once.clone(), "changed", |_| {
        answer("200 OK", &[("Content-Length", "10"), ("ETag", TAG)], &[1; 10])
    });
    add("all, but not all of it", Broken, often.clone(), "of 100000 bytes", |_| {
        [
            answer("200 OK", &[("Content-Length", "100000"), ("ETag", TAG)], &[1; 10]),
            vec![Step::Close],
        ]
        .concat()
    });
    add("another validator", Broken, once.clone(), "changed", |_| {
        part(&[("ETag", "\"two\"")], &right()).into_iter().map(|step| without(step, TAG)).collect()
    });
    add("no validator any more", Broken, once.clone(), "changed", |_| {
        part(&[], &right()).into_iter().map(|step| without(step, TAG)).collect()
    });
    add("another length of the object", Broken, once.clone(), "changed", |_| {
        part(&[("Content-Range", "bytes 1000-5999/100001")], &right())
    });
    add("a range that fails its condition", Broken, once.clone(), "changed", |_| {
        answer("412 No", &[("Content-Length", "0")], b"")
    });
    add("a body a byte at a time", TimedOut, 1..=3, "too long", |_| {
        [part(&[("Content-Length", "5000")], b""), vec![Step::Drip(vec![7; 5000], 50)]].concat()
    });
    add("headers a byte at a time", TimedOut, 1..=3, "too long", |_| {
        vec![Step::Send(b"HTTP/1.1 206 x\r\nA: ".to_vec()), Step::Drip(vec![b'a'; 5000], 50)]
    });
    add("silence", TimedOut, 1..=3, "too long", |_| vec![Step::Pause(5000)]);
    add("silence after the headers", TimedOut, 1..=3, "too long", |_| {
        [part(&[("Content-Length", "5000")], b""), vec![Step::Pause(5000)]].concat()
    });
    add("silence in the body", TimedOut, 1..=3, "after 2500 of 5000 bytes", |_| {
        [part(&[("Content-Length", "5000")], &right()[..2500]), vec![Step::Pause(5000)]].concat()
    });
    add("silence at the end of chunks", TimedOut, 1..=3, "", |_| {
        [
            part(&CHUNKED, &[b"1388\r\n".as_slice(), &right(), b"\r\n"].concat()),
            vec![Step::Pause(5000)],
        ]
        .concat()
    });
    add("a header without end", Broken, 1..=3, "", |_| {
        vec![Step::Send(b"HTTP/1.1 206 x\r\nA: ".to_vec()), Step::Flood(vec![b'a'; 65536])]
    });
    add("headers without end", Broken, 1..=3, "", |_| {
        vec![Step::Send(b"HTTP/1.1 206 x\r\n".to_vec()), Step::Flood(b"A: b\r\n".repeat(1000))]
    });
    add("cookies without end", Broken, 1..=3, "", |_| {
        vec![
            Step::Send(b"HTTP/1.1 206 x\r\n".to_vec()),
            Step::Flood(b"Set-Cookie: a=b\r\n".repeat(1000)),
        ]
    });
    add("go on without end", Broken, 1..=3, "", |_| {
        vec![Step::Flood(b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100)), Step::Close]
    });
    add("what is not HTTP", Broken, 1..=3, "", |_| {
        vec![Step::Send(b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()), Step::Close]
    });
    add("what is nothing", Broken, 1..=3, "", |_| vec![Step::Send(vec![0; 1000]), Step::Close]);
    add("noise without end", Broken, 1..=3, "", |_| vec![Step::Flood((0..=255).collect())]);
    add("a connection that is closed at once", Broken, often.clone(), "ended before", |_| {
        vec![Step::Close]
    });
    add("a redirect to itself", Broken, 9..=9, "redirects", |_| {
        answer("302 Found", &[("Content-Length", "0"), ("Location", "/x")], b"")
    });
    add("a redirect to ever new places", Broken, 9..=9, "redirects", |request| {
        answer(
            "307 There",
            &[("Content-Length", "0"), ("Location", &format!("/{}", request.nth))],
            b"",
        )
    });
    add("a redirect to a file", Broken, once.clone(), "leads to nothing", |_| {
        answer("302 Found", &[("Content-Length", "0"), ("Location", "file:///etc/passwd")], b"")
    });
    add("a redirect to another protocol", Broken, once.clone(), "leads to nothing", |_| {
        answer("301 Moved", &[("Content-Length", "0"), ("Location", "gopher://x/")], b"")
    });
    add("a redirect to nowhere", Broken, once.clone(), "leads to nothing", |_| {
        answer("302 Found", &[("Content-Length", "0")], b"")
    });
    add("a redirect to a place of a megabyte", Broken, 1..=3, "", |_| {
        answer(
            "302 Found",
            &[("Content-Length", "0"), ("Location", &format!("/{}", "x".repeat(1 << 20)))],
            b"",
        )
    });
    add("a redirect to a closed door", Unreachable, once, "", |_| {
        answer("302 Found", &[("Content-Length", "0"), ("Location", "http://127.0.0.1:1/x")], b"")
    });
    cases
}

/// A text without the header that has `value`.
fn without(step: Step, value: &str) -> Step {
    match step {
        Step::Send(bytes) => {
            let line = format!("ETag: {value}\r\n").into_bytes();
            let at =
                bytes.windows(line.len()).position(|window| window == line).expect("the header");
            Step::Send([&bytes[..at], &bytes[at + line.len()..]].concat())
        }
        step => step,
    }
}

/// The most memory that this process had, in bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

fn try_case(case: &Case) -> Result<(), String> {
    let does = case.does;
    // An honest answer first, and then what is tried.
    let server = Server::start(move |request| {
        if request.nth == 0 { serve(request, &object(LEN), TAG) } else { does(request) }
    });
    let url = RemoteUrl::parse(&server.url("/x?token=secret")).unwrap();
    let objects = HttpObjects::with_settings(&url, hasty(&url));
    let mut buf = vec![0; N];
    let known = objects
        .get_range(&url.path, 0, &mut buf, None)
        .map_err(|error| format!("the honest answer: {error}"))?
        .state;
    let begin = Instant::now();
    let result = objects.get_range(&url.path, AT, &mut buf, Some(&known));
    let time = begin.elapsed();
    let error = match result {
        Ok(read) => return Err(format!("{} bytes were delivered", read.got)),
        Err(error) => error,
    };
    let n_asked = server.requests().len() - 1;
    let text = zonda_storage::StorageError::from(error.clone()).to_string();
    let wrong = |what: &str| {
        Err(format!("{what}: asked {n_asked} times, {time:?}, {:?}: {text}", error.kind))
    };
    if error.kind != case.kind {
        return wrong("kind");
    }
    if !case.asked.contains(&n_asked) {
        return wrong("requests");
    }
    if time > Duration::from_millis(2500) {
        return wrong("time");
    }
    if !text.contains(case.says) {
        return wrong("words");
    }
    if text.contains("secret") && case.name != "a body in an unknown encoding" {
        return wrong("a secret is told");
    }
    if !text.starts_with(&format!("{}: {N} bytes at byte {AT}: ", server.url("/x"))) {
        return wrong("URL and range");
    }
    Ok(())
}

#[test]
fn no_answer_of_a_bad_server_counts() {
    let cases = cases();
    assert!(cases.len() >= 60);
    // Most of it is waiting.
    let failed: Vec<String> = std::thread::scope(|scope| {
        let cases = &cases;
        let threads: Vec<_> = (0..8)
            .map(|first| {
                scope.spawn(move || {
                    cases
                        .iter()
                        .skip(first)
                        .step_by(8)
                        .filter_map(|case| {
                            try_case(case).err().map(|what| format!("{}: {what}", case.name))
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    let peak = peak_bytes();
    assert!(peak < 256 << 20, "{peak} bytes");
}

#[test]
fn who_does_not_listen_is_not_reached() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = RemoteUrl::parse(&format!("http://127.0.0.1:{port}/x")).unwrap();
    let error = HttpObjects::with_settings(&url, hasty(&url))
        .get_range("/x", 0, &mut [0; 10], None)
        .unwrap_err();
    assert_eq!(error.kind, Unreachable, "{error}");
    // What cannot be looked up is named: of S3 the URL does not.
    let url = RemoteUrl::parse("http://nobody.invalid/x").unwrap();
    let error = HttpObjects::with_settings(&url, hasty(&url)).get("/x", 10).unwrap_err();
    assert!(error.what.ends_with("(nobody.invalid)"), "{error}");
}

#[test]
fn a_server_that_is_asked_for_tls_and_has_none_is_not_believed() {
    let server = Server::start(|request| serve(request, &object(LEN), TAG));
    let url = RemoteUrl::parse(&server.url("/x").replace("http://", "https://")).unwrap();
    let error = HttpObjects::with_settings(&url, hasty(&url))
        .get_range("/x", 0, &mut [0; 10], None)
        .unwrap_err();
    assert!(matches!(error.kind, Unreachable | Broken | TimedOut), "{error}");
    assert!(error.what.contains("TLS") || error.kind != Unreachable, "{error}");
    // Most servers answer what they do not understand.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for mut stream in listener.incoming().take(4).flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let url = RemoteUrl::parse(&format!("https://{address}/x")).unwrap();
    let error = HttpObjects::with_settings(&url, hasty(&url)).get("/x", 10).unwrap_err();
    assert!(error.what.contains("http:// instead of https://"), "{error}");
}

/// Servers that take a connection and never come to terms about TLS: silent ones, and ones that send a byte now and then.
#[test]
fn tls_that_does_not_come_about_ends_in_time() {
    use std::io::Write;
    for pause in [5000, 100] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let streams: Vec<_> = listener
                .incoming()
                .take(4)
                .map(|stream| {
                    std::thread::spawn(move || {
                        // The beginning of a record of 16 KiB, a byte at a time. A client that goes away ends it.
                        let Ok(mut stream) = stream else { return };
                        for byte in [22, 3, 3, 64, 0].into_iter().chain(std::iter::repeat_n(2, 40))
                        {
                            std::thread::sleep(Duration::from_millis(pause));
                            if stream.write_all(&[byte]).is_err() {
                                return;
                            }
                        }
                    })
                })
                .collect();
            drop(streams);
        });
        let url = RemoteUrl::parse(&format!("https://{address}/x")).unwrap();
        let begin = Instant::now();
        let error = HttpObjects::with_settings(&url, hasty(&url))
            .get_range("/x", 0, &mut [0; 10], None)
            .unwrap_err();
        assert_eq!(error.kind, TimedOut, "{error}");
        assert!(begin.elapsed() < Duration::from_millis(2500), "{:?}", begin.elapsed());
    }
}

#[test]
fn an_object_is_read_whole_where_there_are_no_ranges() {
    let server = Server::start(|_| {
        answer(
            "200 OK",
            &[("Content-Length", "100000"), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")],
            &object(LEN),
        )
    });
    let url = RemoteUrl::parse(&server.url("/x")).unwrap();
    let objects = HttpObjects::with_settings(&url, hasty(&url));
    let mut buf = vec![0; N];
    let read = objects.get_range("/x", AT, &mut buf, None).unwrap();
    assert_eq!((read.got, read.state.len, &buf), (N, LEN as u64, &right()));
    assert_eq!(read.whole.as_deref(), Some(&object(LEN)[..]));
    // What fits the buffer is there already.
    let mut all = vec![0; LEN + 10];
    let read = objects.get_range("/x", 0, &mut all, Some(&read.state)).unwrap();
    assert_eq!((read.got, read.whole), (LEN, None));
    assert_eq!(&all[..LEN], object(LEN));
}

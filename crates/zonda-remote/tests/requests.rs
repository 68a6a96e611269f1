//! Requests as servers see them: what is sent to whom, how often, and by how many connections.

mod server;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use server::{Request, Server, Step, answer, hasty, object, serve};
use zonda_remote::objects::HttpObjects;
use zonda_remote::settings::{Proxy, Settings};
use zonda_remote::{Objects, RemoteUrl};
use zonda_storage::RemoteFailure;

const TAG: &str = "\"one\"";

fn objects(url: &str, change: impl FnOnce(&mut Settings)) -> (HttpObjects, RemoteUrl) {
    let url = RemoteUrl::parse(url).unwrap();
    let mut settings = hasty(&url);
    change(&mut settings);
    (HttpObjects::with_settings(&url, settings), url)
}

fn read(objects: &HttpObjects, url: &RemoteUrl, at: u64, n: usize) -> Vec<u8> {
    let mut buf = vec![0; n];
    let read = objects.get_range(&url.path, at, &mut buf, None).unwrap();
    buf.truncate(read.got);
    buf
}

#[test]
fn connections_are_kept_and_their_number_has_a_limit() {
    let now = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (running, peak) = (Arc::clone(&now), Arc::clone(&most));
    let server = Server::start(move |request| {
        peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(5));
        running.fetch_sub(1, Ordering::SeqCst);
        serve(request, &object(1000), TAG)
    });
    let (objects, url) = objects(&server.url("/x"), |settings| settings.connections = 3);
    let start = Barrier::new(12);
    std::thread::scope(|scope| {
        for i in 0..12 {
            let (objects, url, start) = (&objects, &url, &start);
            scope.spawn(move || {
                start.wait();
                for _ in 0..5 {
                    assert_eq!(
                        read(objects, url, i * 10, 10),
                        object(1000)[i as usize * 10..][..10]
                    );
                }
            });
        }
    });
    assert_eq!(most.load(Ordering::SeqCst), 3);
    let connections: BTreeSet<usize> =
        server.requests().iter().map(|request| request.connection).collect();
    assert_eq!((server.requests().len(), connections.len()), (60, 3));
    // Another file of the same server takes the same connections.
    let (other, url) = self::objects(&server.url("/x"), |settings| settings.connections = 3);
    read(&other, &url, 0, 10);
    assert!(connections.contains(&server.requests().last().unwrap().connection));
}

#[test]
fn what_may_go_well_later_is_asked_for_again() {
    let server = Server::start(|request| match request.nth {
        0 => answer("503 Busy", &[("Content-Length", "0"), ("Retry-After", "1")], b""),
        1 => [
            answer(
                "206 Part",
                &[("Content-Length", "10"), ("Content-Range", "bytes 0-9/1000"), ("ETag", TAG)],
                b"123",
            ),
            vec![Step::Close],
        ]
        .concat(),
        _ => serve(request, &object(1000), TAG),
    });
    let (objects, url) = objects(&server.url("/x"), |settings| {
        settings.total_timeout = Some(Duration::from_secs(5))
    });
    let begin = Instant::now();
    assert_eq!(read(&objects, &url, 0, 10), object(1000)[..10]);
    assert!(begin.elapsed() >= Duration::from_secs(1), "the pause that the server asked for");
    assert_eq!(server.requests().len(), 3);
    assert_eq!(objects.parallel(), 4, "half of what there was");
}

#[test]
fn a_connection_that_the_server_closed_meanwhile_is_no_failure() {
    let server =
        Server::start(|request| [serve(request, &object(1000), TAG), vec![Step::Close]].concat());
    let (objects, url) = objects(&server.url("/x"), |_| {});
    for at in 0..5 {
        assert_eq!(read(&objects, &url, at, 10), object(1000)[at as usize..][..10]);
    }
}

#[test]
fn what_is_sent_says_who_we_are_and_asks_for_bytes_as_they_are() {
    let server = Server::start(|request| serve(request, &object(1000), TAG));
    let text = server.url("/a%20b/\u{e4}?x=1&y=%20").replace("http://", "http://me:p%40ss@");
    let (objects, url) = objects(&text, |_| {});
    assert_eq!(read(&objects, &url, 5, 10), object(1000)[5..15]);
    let request: Request = server.requests().remove(0);
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("GET", "/a%20b/%C3%A4?x=1&y=%20")
    );
    assert_eq!(request.header("range"), Some("bytes=5-14"));
    assert_eq!(request.header("accept-encoding"), Some("identity"));
    assert_eq!(request.header("authorization"), Some("Basic bWU6cEBzcw=="));
    assert!(request.header("user-agent").unwrap().starts_with("zonda/"));
    assert_eq!(request.header("host"), Some(server.address.to_string().as_str()));
    assert_eq!(&*objects.shown(&url.path), server.url("/a%20b/%C3%A4"));
    let shown = format!("{objects:?} {url:?} {:?}", hasty(&url));
    assert!(!shown.contains("p@ss") && !shown.contains("x=1"), "{shown}");
}

#[test]
fn secrets_do_not_follow_to_another_server() {
    let there = Server::start(|request| serve(request, &object(1000), TAG));
    let to = there.url("/moved?signature=1");
    let here = Server::start(move |request| {
        if request.target == "/second" {
            serve(request, &object(1000), TAG)
        } else {
            answer(
                "302 Found",
                &[
                    ("Content-Length", "0"),
                    ("Set-Cookie", "session=1"),
                    ("Location", if request.target == "/x" { &to } else { "/second" }),
                ],
                b"",
            )
        }
    });
    let (objects, url) = objects(&here.url("/x").replace("http://", "http://me:pw@"), |_| {});
    assert_eq!(read(&objects, &url, 0, 10), object(1000)[..10]);
    let request = there.requests().remove(0);
    assert_eq!(
        (request.header("authorization"), request.header("cookie"), request.target.as_str()),
        (None, None, "/moved?signature=1")
    );
    // The next range is asked for where the first was found.
    assert_eq!(read(&objects, &url, 10, 10), object(1000)[10..20]);
    assert_eq!((here.requests().len(), there.requests().len()), (1, 2));
    assert_eq!(there.requests()[1].header("authorization"), None);
    // On the same server all goes on.
    let (objects, url) = self::objects(&here.url("/y").replace("http://", "http://me:pw@"), |_| {});
    assert_eq!(read(&objects, &url, 0, 10), object(1000)[..10]);
    let request = here.requests().pop().unwrap();
    assert_eq!(
        (request.target.as_str(), request.header("authorization"), request.header("cookie")),
        ("/second", Some("Basic bWU6cHc="), Some("session=1"))
    );
}

#[test]
fn a_place_that_a_redirect_named_is_asked_for_anew_when_it_is_gone() {
    let there = Server::start(|request| {
        if request.target == "/1" && request.nth > 0 {
            answer("403 Expired", &[("Content-Length", "0")], b"")
        } else {
            serve(request, &object(1000), TAG)
        }
    });
    let base = there.url("/");
    let here = Server::start(move |request| {
        answer(
            "307 There",
            &[("Content-Length", "0"), ("Location", &format!("{base}{}", request.nth + 1))],
            b"",
        )
    });
    let (objects, url) = objects(&here.url("/x"), |_| {});
    for at in 0..4 {
        assert_eq!(read(&objects, &url, at, 10), object(1000)[at as usize..][..10]);
    }
    assert_eq!(here.requests().len(), 2);
}

#[test]
fn a_proxy_gets_the_whole_url_and_its_own_password() {
    let proxy = Server::start(|request| {
        if request.header("proxy-authorization").is_some() {
            serve(request, &object(1000), TAG)
        } else {
            answer("407 Who", &[("Content-Length", "0")], b"")
        }
    });
    let by = |user: &str| format!("http://{user}{}", proxy.address);
    let (objects, url) = objects("http://nowhere.invalid:8080/x?q", |settings| {
        settings.proxy = Some(Proxy::parse(&by("me:pw@")).unwrap())
    });
    assert_eq!(read(&objects, &url, 0, 10), object(1000)[..10]);
    assert_eq!(read(&objects, &url, 10, 10), object(1000)[10..20]);
    let requests = proxy.requests();
    assert_eq!(requests[1].target, "http://nowhere.invalid:8080/x?q");
    assert_eq!(requests[1].header("proxy-authorization"), Some("Basic bWU6cHc="));
    assert_eq!(
        (requests[1].header("host"), requests[1].connection),
        (Some("nowhere.invalid:8080"), requests[0].connection)
    );
    let (objects, _) = self::objects("http://nowhere.invalid:8080/x", |settings| {
        settings.proxy = Some(Proxy::parse(&by("")).unwrap())
    });
    let error = objects.get_range("/x", 0, &mut [0; 10], None).unwrap_err();
    assert_eq!(error.kind, RemoteFailure::Denied, "{error}");
    // By TLS a tunnel is asked for.
    let (objects, _) = self::objects("https://nowhere.invalid/x", |settings| {
        settings.proxy = Some(Proxy::parse(&by("me:pw@")).unwrap())
    });
    assert!(objects.get_range("/x", 0, &mut [0; 10], None).is_err());
    let request = proxy.requests().pop().unwrap();
    assert_eq!(
        (request.method.as_str(), request.target.as_str(), request.header("proxy-authorization")),
        ("CONNECT", "nowhere.invalid:443", Some("Basic bWU6cHc="))
    );
}

#[test]
fn an_object_without_bytes_is_one() {
    let server = Server::start(|request| serve(request, b"", TAG));
    let (objects, url) = objects(&server.url("/x"), |_| {});
    let read = objects.get_range(&url.path, 0, &mut [0; 10], None).unwrap();
    assert_eq!((read.got, read.state.len), (0, 0));
    assert_eq!(objects.get_range(&url.path, 7, &mut [], Some(&read.state)).unwrap().got, 0);
}

/// The password of `.netrc` goes to a server that asks for it, and to no other: an entry may be for all of them.
#[test]
fn what_netrc_says_waits_until_a_server_asks() {
    let server = Server::start(|request| {
        if request.target == "/open" || request.header("authorization").is_some() {
            serve(request, &object(1000), TAG)
        } else {
            answer(
                "401 Who",
                &[("Content-Length", "0"), ("WWW-Authenticate", "Basic realm=x")],
                b"",
            )
        }
    });
    let (objects, url) = objects(&server.url("/open"), |settings| {
        settings.user = Some(("me".into(), "pw".into()));
        settings.user_waits = true;
    });
    let asked = || {
        server
            .requests()
            .iter()
            .map(|request| request.header("authorization").is_some())
            .collect::<Vec<_>>()
    };
    read(&objects, &url, 0, 10);
    assert_eq!(asked(), [false]);
    let closed = RemoteUrl::parse(&server.url("/closed")).unwrap();
    read(&objects, &closed, 0, 10);
    read(&objects, &closed, 10, 10);
    assert_eq!(asked(), [false, false, true, true]);
}

#[test]
fn headers_that_are_wanted_go_to_the_server_and_not_to_others() {
    let there = Server::start(|request| serve(request, &object(1000), TAG));
    let to = there.url("/x");
    let here = Server::start(move |_| {
        answer("302 Found", &[("Content-Length", "0"), ("Location", &to)], b"")
    });
    let (objects, url) = objects(&here.url("/x").replace("http://", "http://me:pw@"), |settings| {
        settings.headers =
            vec![("authorization".into(), "Bearer token".into()), ("x-own".into(), "1".into())];
    });
    read(&objects, &url, 0, 10);
    let (first, second) = (here.requests().remove(0), there.requests().remove(0));
    assert_eq!(
        (first.header("authorization"), first.header("x-own")),
        (Some("Bearer token"), Some("1"))
    );
    assert_eq!((second.header("authorization"), second.header("x-own")), (None, None));
}

/// A forked child makes connections of its own: one that both write to would mix their requests.
#[test]
fn a_child_has_connections_of_its_own() {
    let server = Server::start(|request| serve(request, &object(1000), TAG));
    let (objects, url) = objects(&server.url("/x"), |_| {});
    read(&objects, &url, 0, 10);
    let child = fork_and(|| read(&objects, &url, 10, 10) == object(1000)[10..20]);
    assert!(child, "the child reads");
    assert_eq!(read(&objects, &url, 20, 10), object(1000)[20..30]);
    let connections: Vec<usize> =
        server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 1, 0]);
}

/// Whether `body` is true in a child of this process.
fn fork_and(body: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child does what one thread may, and ends without running anything of the parent's.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let is_fine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(false);
        // SAFETY: it ends the process at once.
        unsafe { libc::_exit(i32::from(!is_fine)) };
    }
    let mut status = 0;
    // SAFETY: `status` is ours for the call.
    let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
    waited == pid && status == 0
}

#[test]
fn answers_before_the_answer_are_skipped() {
    // One read may bring them with all of a long body.
    let before =
        b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    let server = Server::start(move |request| {
        let mut script = serve(request, &object(500_000), TAG);
        if let Some(Step::Send(bytes)) = script.first_mut() {
            *bytes = [before.as_slice(), bytes].concat();
        }
        script
    });
    let (objects, url) = objects(&server.url("/x"), |_| ());
    for at in [0, 100, 200_000] {
        assert_eq!(read(&objects, &url, at, 300_000), object(500_000)[at as usize..][..300_000]);
    }
    let requests = server.requests();
    assert_eq!((requests.len(), requests.last().unwrap().connection), (3, 0), "one connection");
}

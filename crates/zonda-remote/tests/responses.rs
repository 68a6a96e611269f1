//! Bodies that are read as they come: what is repeated, what is believed, and what is an error.

mod server;

use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use server::{Server, Step, answer, hasty, object};
use zonda_remote::settings::Settings;
use zonda_remote::{Asking, RemoteError, RemoteUrl, Responses};
use zonda_storage::{RemoteFailure, StorageError};

fn responses(server: &Server, change: impl FnOnce(&mut Settings)) -> Responses {
    let url = RemoteUrl::parse(&server.url("/a%20b")).unwrap();
    let mut settings = hasty(&url);
    change(&mut settings);
    Responses::with_settings(&url, settings)
}

fn message(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    text.strip_prefix("Error: ").map(str::to_owned)
}

const ASKING: Asking<'static> =
    Asking { extension: ".dds", query: "x[0:1]", bytes: 1000, most: 1 << 20, message };

/// The body, or what reading it met.
fn body(
    responses: &Responses,
    asking: &Asking<'_>,
) -> Result<Result<Vec<u8>, StorageError>, RemoteError> {
    let mut bytes = Vec::new();
    let mut body = responses.get(asking)?;
    Ok(match body.read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => {
            assert!([ErrorKind::InvalidData, ErrorKind::TimedOut].contains(&error.kind()));
            Err(error.get_ref().unwrap().downcast_ref::<StorageError>().unwrap().clone())
        }
    })
}

fn failed(responses: &Responses) -> (RemoteFailure, Option<u16>, String) {
    let error = body(responses, &ASKING).unwrap_err();
    (error.kind, error.status, error.what.to_string())
}

/// Why a body was not read to its end.
fn broken(responses: &Responses) -> String {
    match body(responses, &ASKING).unwrap().unwrap_err() {
        StorageError::Remote { url, kind: RemoteFailure::Broken, what, .. } => {
            assert!(url.ends_with("/a%20b.dds"), "{url}");
            what.to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_response_is_asked_for_by_extension_and_query_and_connections_are_kept() {
    let server = Server::start(|_| answer("200 OK", &[("Content-Length", "5")], b"hello"));
    let responses = responses(&server, |_| ());
    for _ in 0..3 {
        assert_eq!(body(&responses, &ASKING).unwrap().unwrap(), b"hello");
    }
    let requests = server.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.target == "/a%20b.dds?x[0:1]" && request.connection == 0)
    );
    assert_eq!(requests[0].header("accept-encoding"), Some("identity"));
    let plain = Asking { query: "", ..ASKING };
    body(&responses, &plain).unwrap().unwrap();
    assert_eq!(server.requests()[3].target, "/a%20b.dds");
}

#[test]
fn bodies_without_a_length_end_with_their_chunks_or_their_connection() {
    let chunked = Server::start(|_| {
        answer("200 OK", &[("Transfer-Encoding", "chunked")], b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    });
    assert_eq!(body(&responses(&chunked, |_| ()), &ASKING).unwrap().unwrap(), b"abcde");
    let closed = Server::start(|_| {
        [answer("200 OK", &[("Connection", "close")], b"abcde"), vec![Step::Close]].concat()
    });
    assert_eq!(body(&responses(&closed, |_| ()), &ASKING).unwrap().unwrap(), b"abcde");
}

#[test]
fn what_ends_early_is_an_error_and_not_asked_for_again() {
    for headers in [("Content-Length", "100000"), ("Transfer-Encoding", "chunked")] {
        let server = Server::start(move |_| {
            let first = if headers.0 == "Content-Length" {
                vec![7; 50_000]
            } else {
                [b"186a0\r\n", &[7; 50_000][..]].concat()
            };
            [answer("200 OK", &[headers], &first), vec![Step::Pause(50), Step::Close]].concat()
        });
        let why = broken(&responses(&server, |_| ()));
        assert!(why.contains("after 50000"), "{why}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_request_is_repeated_until_its_first_bytes_are_here() {
    let server = Server::start(|request| match request.nth {
        0 => answer("503 Service Unavailable", &[("Content-Length", "0")], b""),
        1 => [answer("200 OK", &[("Content-Length", "5")], b""), vec![Step::Close]].concat(),
        _ => answer("200 OK", &[("Content-Length", "5")], b"hello"),
    });
    assert_eq!(body(&responses(&server, |_| ()), &ASKING).unwrap().unwrap(), b"hello");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn statuses_and_messages_are_in_errors() {
    let of = |status: &'static str, text: &'static str| {
        let server = Server::start(move |_| {
            answer(status, &[("Content-Length", &text.len().to_string())], text.as_bytes())
        });
        let (kind, status, what) = failed(&responses(&server, |_| ()));
        (kind, status.unwrap(), what, server.requests().len())
    };
    let (kind, status, what, n) = of("404 Not Found", "Error: no such dataset\x1b");
    assert_eq!((kind, status, n), (RemoteFailure::NotFound, 404, 1));
    assert_eq!(what, "status 404: the server says: no such dataset");
    let (kind, status, what, n) = of("500 Oops", "Error: no such variable");
    assert_eq!((kind, status, n), (RemoteFailure::Broken, 500, 1));
    assert!(what.ends_with("no such variable"), "{what}");
    let (kind, status, what, _) = of("401 Unauthorized", "<html>secret</html>");
    assert_eq!((kind, status), (RemoteFailure::Denied, 401));
    assert!(!what.contains("secret"), "{what}");
    assert_eq!(of("204 No Content", "").0, RemoteFailure::Broken);
}

#[test]
fn a_document_has_a_most_and_an_endless_one_ends_there() {
    let told = Server::start(|_| answer("200 OK", &[("Content-Length", "2000000")], &[1; 100]));
    assert!(failed(&responses(&told, |_| ())).2.contains("2000000"));
    let endless = Server::start(|_| {
        let chunk = [b"10000\r\n", &[1; 65536][..], b"\r\n"].concat();
        [answer("200 OK", &[("Transfer-Encoding", "chunked")], b""), vec![Step::Flood(chunk)]]
            .concat()
    });
    assert!(broken(&responses(&endless, |_| ())).contains("more than"));
}

#[test]
fn encodings_that_nobody_asked_for_are_refused() {
    let server = Server::start(|_| {
        answer("200 OK", &[("Content-Encoding", "gzip"), ("Content-Length", "5")], b"hello")
    });
    assert!(failed(&responses(&server, |_| ())).2.contains("gzip"));
}

#[test]
fn a_silent_body_is_not_waited_for() {
    let server = Server::start(|_| {
        [answer("200 OK", &[("Content-Length", "100000")], &[1; 40_000]), vec![Step::Pause(20_000)]]
            .concat()
    });
    let responses =
        responses(&server, |settings| settings.idle_timeout = Duration::from_millis(300));
    let begin = Instant::now();
    let error = body(&responses, &ASKING).unwrap().unwrap_err();
    assert!(
        matches!(error, StorageError::Remote { kind: RemoteFailure::TimedOut, .. }),
        "{error:?}"
    );
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_body_that_is_being_read_counts_among_the_requests_of_its_server() {
    let server =
        Server::start(|_| answer("200 OK", &[("Content-Length", "100000")], &object(100_000)));
    let responses = Arc::new(responses(&server, |settings| settings.connections = 1));
    let mut first = responses.get(&ASKING).unwrap();
    let second = Arc::clone(&responses);
    let waits = std::thread::spawn(move || body(&second, &ASKING).unwrap().unwrap().len());
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(server.requests().len(), 1);
    let mut bytes = Vec::new();
    first.read_to_end(&mut bytes).unwrap();
    assert_eq!((bytes.len(), waits.join().unwrap()), (100_000, 100_000));
    // One that nobody reads to its end makes room, too.
    drop(responses.get(&ASKING).unwrap());
    assert_eq!(body(&responses, &ASKING).unwrap().unwrap().len(), 100_000);
}

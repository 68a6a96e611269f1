//! What every backend of objects does, whatever is behind it; then what S3 does besides.

mod server;

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use server::{Request, Script, Server, Step, answer, hasty, object, serve};
use zonda_remote::objects::{FolderObjects, HttpObjects, ListedObject, MemoryObjects, S3Objects};
use zonda_remote::settings::{AwsSettings, Credentials};
use zonda_remote::{Objects, RemoteUrl};
use zonda_storage::RemoteFailure;

/// Keys with everything that is special in paths, URLs, XML and lists.
const KEYS: [&str; 6] =
    ["a.nc", "dir/a.nc", "dir/sub/b c.nc", "dir/ä+&<>%20.nc", "dir.nc", "z~=?#@:.nc"];

/// What holds for every backend that has the objects of `content`.
fn reads(objects: &dyn Objects, content: &BTreeMap<String, Vec<u8>>) {
    for (key, bytes) in content {
        let len = bytes.len();
        let (whole, state) = objects.get(key, len as u64).unwrap();
        assert_eq!((&whole, state.len), (bytes, len as u64), "{key}");
        assert!(!state.validator.is_empty(), "{key}");
        for (at, n) in [
            (0, len),
            (0, 1),
            (len / 3, len / 2),
            (len.saturating_sub(1), 1),
            (len / 2, len),
            (0, len + 100),
            (len, 10),
            (len + 5, 10),
            (0, 0),
        ] {
            let mut buf = vec![0xaa; n];
            let read = objects
                .get_range(key, at as u64, &mut buf, Some(&state))
                .unwrap_or_else(|error| panic!("{key} {at} {n}: {error}"));
            let wanted = &bytes[at.min(len)..(at + n).min(len)];
            assert_eq!(read.got, wanted.len(), "{key} {at} {n}");
            assert!(buf.starts_with(wanted), "{key} {at} {n}");
            assert_eq!(read.state.len, state.len);
        }
        if len > 0 {
            assert_eq!(
                objects.get(key, len as u64 - 1).unwrap_err().kind,
                RemoteFailure::Unusable,
                "{key}"
            );
        }
        let mut other = state.clone();
        other.validator.push('x');
        let error = objects.get_range(key, 0, &mut [0; 1], Some(&other)).unwrap_err();
        assert_eq!((error.kind, error.range), (RemoteFailure::Broken, Some((0, 1))), "{key}");
    }
    for key in ["not there", "dir", "dir/sub/no"] {
        assert_eq!(
            objects.get_range(key, 0, &mut [0; 1], None).unwrap_err().kind,
            RemoteFailure::NotFound,
            "{key}"
        );
        assert_eq!(objects.get(key, 10).unwrap_err().kind, RemoteFailure::NotFound, "{key}");
    }
    // From many threads at once.
    std::thread::scope(|scope| {
        for i in 0..8 {
            scope.spawn(move || {
                for (key, bytes) in content {
                    let mut buf = vec![0; bytes.len() / 2];
                    let at = i * bytes.len() / 20;
                    let read = objects.get_range(key, at as u64, &mut buf, None).unwrap();
                    assert_eq!(&buf[..read.got], &bytes[at..(at + buf.len()).min(bytes.len())]);
                }
            });
        }
    });
}

/// What holds for every backend that is written to, beginning with nothing.
fn writes(objects: &dyn Objects) {
    let names = |prefix: &str| {
        objects
            .list(prefix)
            .unwrap()
            .into_iter()
            .map(|object| (object.key, object.len))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(""), []);
    let mut content = BTreeMap::new();
    for (i, key) in KEYS.iter().enumerate() {
        let bytes = object(i * 1000);
        objects.put(key, &bytes).unwrap_or_else(|error| panic!("{error}"));
        content.insert((*key).to_owned(), bytes);
    }
    reads(objects, &content);
    let all: Vec<(String, u64)> =
        content.iter().map(|(key, bytes)| (key.clone(), bytes.len() as u64)).collect();
    assert_eq!(names(""), all);
    assert_eq!(
        names("dir/"),
        all.iter().filter(|(key, _)| key.starts_with("dir/")).cloned().collect::<Vec<_>>()
    );
    assert_eq!(names("dir/sub/b c"), [("dir/sub/b c.nc".to_owned(), 2000)]);
    assert_eq!(names("none"), []);
    // Another object in the place of one is another.
    let (_, before) = objects.get("a.nc", 1 << 20).unwrap();
    objects.put("a.nc", b"new").unwrap();
    let (bytes, after) = objects.get("a.nc", 1 << 20).unwrap();
    assert_eq!(bytes, b"new");
    assert_ne!(before, after);
    // From a source, which has to have as many bytes as it is said to have.
    let bytes = object(100_000);
    objects.put_from("s", bytes.len() as u64, &mut &bytes[..]).unwrap();
    assert_eq!(objects.get("s", 1 << 20).unwrap().0, bytes);
    for len in [99_999, 100_001] {
        assert!(objects.put_from("s", len, &mut &bytes[..]).is_err(), "{len}");
        assert!(objects.put_from("fresh", len, &mut &bytes[..]).is_err(), "{len}");
    }
    assert!(objects.put_from("s", 100_000, &mut Failing(50_000)).is_err());
    assert_eq!(objects.get("s", 1 << 20).unwrap().0, bytes, "the one that was there stays");
    assert_eq!(objects.get("fresh", 1 << 20).unwrap_err().kind, RemoteFailure::NotFound);
    for (key, _) in names("") {
        objects.delete(&key).unwrap();
        objects.delete(&key).unwrap();
        assert_eq!(objects.get(&key, 1 << 20).unwrap_err().kind, RemoteFailure::NotFound);
    }
    objects.delete("never/there").unwrap();
    assert_eq!(names(""), []);
}

/// Gives so many bytes and then fails.
struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = buf.len().min(self.0);
        self.0 -= n;
        if n == 0 { Err(std::io::Error::other("no more")) } else { Ok(n) }
    }
}

#[test]
fn memory_does_what_backends_do() {
    writes(&MemoryObjects::new(Duration::ZERO));
}

#[test]
fn a_folder_does_what_backends_do_and_no_key_leaves_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let objects = FolderObjects::new(&root).unwrap();
    writes(&objects);
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(folder.path(), root.join("out")).unwrap();
    std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
    for key in [
        "../secret",
        "/etc/passwd",
        "a/../../secret",
        "./a",
        "a//b",
        "",
        "a/",
        "a\0b",
        "out/secret",
        "link",
        "out/new",
    ] {
        assert!(objects.get(key, 100).is_err(), "{key:?}");
        if key != "link" {
            assert!(objects.put(key, b"x").is_err(), "{key:?}");
            assert!(key == "out/new" || objects.delete(key).is_err(), "{key:?}");
        }
    }
    assert_eq!(std::fs::read(folder.path().join("secret")).unwrap(), b"secret");
    assert_eq!(objects.list("").unwrap(), []);
    assert_eq!(FolderObjects::new(&root.join("none")).unwrap_err().kind, RemoteFailure::NotFound);
}

#[test]
fn http_does_what_backends_do_that_are_read() {
    let content: BTreeMap<String, Vec<u8>> = ["a.nc", "dir/a.nc", "b%20c.nc"]
        .iter()
        .enumerate()
        .map(|(i, key)| ((*key).to_owned(), object(i * 1000)))
        .collect();
    let served = content.clone();
    let server = Server::start(move |request| match served.get(&request.target[1..]) {
        Some(bytes) => serve(request, bytes, "\"tag\""),
        None => answer("404 No", &[("Content-Length", "0")], b""),
    });
    let url = RemoteUrl::parse(&server.url("/a.nc")).unwrap();
    let objects = HttpObjects::with_settings(&url, hasty(&url));
    reads(&objects, &content);
    assert_eq!(objects.put("a.nc", b"").unwrap_err().kind, RemoteFailure::ReadOnly);
    assert_eq!(
        objects.put_from("a.nc", 0, &mut &b""[..]).unwrap_err().kind,
        RemoteFailure::ReadOnly
    );
    assert_eq!(objects.delete("a.nc").unwrap_err().kind, RemoteFailure::ReadOnly);
    assert_eq!(objects.list("").unwrap_err().kind, RemoteFailure::Unusable);
}

/// A bucket in memory, behind a server that speaks as S3 does.
#[derive(Default)]
struct Bucket {
    objects: Mutex<BTreeMap<String, (Vec<u8>, usize)>>,
    uploads: Mutex<BTreeMap<String, BTreeMap<usize, Vec<u8>>>>,
    page: usize,
}

fn unescaped(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let two = if byte == b'%' { bytes.next().zip(bytes.next()) } else { None };
        out.push(two.map_or(byte, |(a, b)| {
            u8::from_str_radix(std::str::from_utf8(&[a, b]).unwrap(), 16).unwrap()
        }));
    }
    String::from_utf8(out).unwrap()
}

fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

impl Bucket {
    fn answer(&self, request: &Request) -> Script {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let query: BTreeMap<&str, String> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key, unescaped(value)))
            .collect();
        let Some(key) = path.strip_prefix("/bucket") else {
            return error("404 No", "NoSuchBucket");
        };
        let key = unescaped(key.trim_start_matches('/'));
        let ok = |body: &str| {
            answer(
                "200 OK",
                &[("Content-Length", &body.len().to_string()), ("ETag", "\"part\"")],
                body.as_bytes(),
            )
        };
        match request.method.as_str() {
            "GET" if key.is_empty() => self.list(&query),
            "GET" => match self.objects.lock().unwrap().get(&key) {
                Some((bytes, tag)) => serve(request, bytes, &format!("\"{tag}\"")),
                None => error("404 No", "NoSuchKey"),
            },
            "PUT" => match query.get("uploadId") {
                Some(id) => {
                    let number = query["partNumber"].parse().unwrap();
                    self.uploads
                        .lock()
                        .unwrap()
                        .get_mut(id)
                        .unwrap()
                        .insert(number, request.body.clone());
                    ok("")
                }
                None => {
                    self.objects.lock().unwrap().insert(key, (request.body.clone(), request.nth));
                    ok("")
                }
            },
            "POST" if query.contains_key("uploads") => {
                let id = format!("id/{}=", request.nth);
                self.uploads.lock().unwrap().insert(id.clone(), BTreeMap::new());
                ok(&format!(
                    "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
                ))
            }
            "POST" => {
                let parts = self.uploads.lock().unwrap().remove(&query["uploadId"]).unwrap();
                let text = String::from_utf8(request.body.clone()).unwrap();
                assert_eq!(text.matches("<Part>").count(), parts.len());
                self.objects
                    .lock()
                    .unwrap()
                    .insert(key, (parts.into_values().flatten().collect(), request.nth));
                ok("<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")
            }
            "DELETE" => {
                match query.get("uploadId") {
                    Some(id) => drop(self.uploads.lock().unwrap().remove(id)),
                    None => drop(self.objects.lock().unwrap().remove(&key)),
                }
                answer("204 No Content", &[], b"")
            }
            _ => error("405 No", "MethodNotAllowed"),
        }
    }

    fn list(&self, query: &BTreeMap<&str, String>) -> Script {
        let objects = self.objects.lock().unwrap();
        let after = query.get("continuation-token").map_or("", String::as_str);
        let mut found = objects
            .iter()
            .filter(|(key, _)| key.starts_with(&query["prefix"]) && key.as_str() > after);
        let mut body = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><EncodingType>url</EncodingType>",
        );
        let mut last = "";
        for (key, (bytes, _)) in found.by_ref().take(self.page) {
            body += &format!(
                "<Contents><Key>{}</Key><Size>{}</Size></Contents>",
                escaped(key),
                bytes.len()
            );
            last = key;
        }
        match found.next() {
            Some(_) => {
                body += &format!(
                    "<IsTruncated>true</IsTruncated><NextContinuationToken>{}</NextContinuationToken>",
                    last.replace('&', "&amp;").replace('<', "&lt;")
                )
            }
            None => body += "<IsTruncated>false</IsTruncated>",
        }
        body += "</ListBucketResult>";
        answer("200 OK", &[("Content-Length", &body.len().to_string())], body.as_bytes())
    }
}

fn error(status: &str, code: &str) -> Script {
    let body = format!(
        "<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>secret</Message><AWSAccessKeyId>secret</AWSAccessKeyId></Error>"
    );
    answer(status, &[("Content-Length", &body.len().to_string())], body.as_bytes())
}

fn aws() -> AwsSettings {
    let credentials = Credentials {
        access_key: "KEYID".into(),
        secret_key: "secret".into(),
        session_token: Some("token".into()),
    };
    AwsSettings {
        credentials: Some(credentials),
        region: Some("here-1".into()),
        is_for_server: true,
        ..AwsSettings::default()
    }
}

fn s3(server: &Server, aws: AwsSettings) -> S3Objects {
    let url = RemoteUrl::parse(&server.url("/bucket/a%20key#mode=s3,bytes")).unwrap();
    let (objects, key) = S3Objects::with_settings(&url, hasty(&url), aws).unwrap();
    assert_eq!(key, "a key");
    objects
}

#[test]
fn s3_does_what_backends_do() {
    let bucket = Bucket { page: 2, ..Bucket::default() };
    let server = Server::start(move |request| bucket.answer(request));
    writes(&s3(&server, aws()));
    let requests = server.requests();
    for request in &requests {
        let authorization = request.header("authorization").unwrap();
        assert!(
            authorization.starts_with("AWS4-HMAC-SHA256 Credential=KEYID/20"),
            "{authorization}"
        );
        assert!(
            authorization.contains("/here-1/s3/aws4_request,SignedHeaders=host;"),
            "{authorization}"
        );
        assert_eq!(
            (
                request.header("x-amz-security-token"),
                request.header("x-amz-content-sha256").map(str::len)
            ),
            (Some("token"), Some(64))
        );
        assert!(
            !request.target.contains("secret") && !request.target.contains("KEYID"),
            "{}",
            request.target
        );
    }
    assert!(
        requests.iter().filter(|request| request.target.contains("continuation-token")).count() > 4
    );
}

#[test]
fn nobody_signs_what_is_anonymous() {
    let bucket = Bucket { page: 1000, ..Bucket::default() };
    let server = Server::start(move |request| bucket.answer(request));
    let objects = s3(&server, AwsSettings::default());
    assert_eq!(objects.list("").unwrap(), []);
    let request = server.requests().remove(0);
    assert_eq!(
        (request.header("authorization"), request.header("x-amz-date"), request.target.as_str()),
        (None, None, "/bucket?encoding-type=url&list-type=2&prefix=")
    );
}

/// Whoever can give a program a URL must not get requests with its keys, and no token of a session.
#[test]
fn keys_do_not_go_to_a_server_that_only_the_url_names() {
    let server = Server::start(|_| answer("403 Forbidden", &[("Content-Length", "0")], b""));
    let of_others = AwsSettings {
        is_for_server: false,
        trusted: vec!["https://s3.example.org".into()],
        ..aws()
    };
    let error = s3(&server, of_others.clone()).get("a key", 100).unwrap_err();
    let request = server.requests().remove(0);
    for name in ["authorization", "x-amz-security-token", "x-amz-date"] {
        assert_eq!(request.header(name), None);
    }
    assert_eq!(error.kind, RemoteFailure::Denied);
    let text = error.to_string();
    assert!(text.contains("only the URL names this server: AWS_ENDPOINT_URL"), "{text}");
    // An anonymous request that is refused says nothing of keys.
    let text = s3(&server, AwsSettings::default()).get("a key", 100).unwrap_err().to_string();
    assert!(!text.contains("AWS_ENDPOINT_URL"), "{text}");
    let named = AwsSettings { trusted: vec![server.url("/")], ..of_others };
    let _ = s3(&server, named).get("a key", 100).unwrap_err();
    assert!(server.requests().last().unwrap().header("x-amz-security-token").is_some());
}

#[test]
fn long_objects_go_in_parts_and_are_there_when_all_are() {
    let bucket = Arc::new(Bucket { page: 1000, ..Bucket::default() });
    let behind = Arc::clone(&bucket);
    let server = Server::start(move |request| behind.answer(request));
    let url = RemoteUrl::parse(&server.url("/bucket/k#mode=s3")).unwrap();
    let settings = zonda_remote::settings::Settings {
        total_timeout: Some(Duration::from_secs(30)),
        idle_timeout: Duration::from_secs(10),
        ..hasty(&url)
    };
    let (objects, _) = S3Objects::with_settings(&url, settings, aws()).unwrap();
    let bytes = object((17 << 20) + 5);
    objects.put_from("k", bytes.len() as u64, &mut &bytes[..]).unwrap();
    let parts: Vec<usize> = server
        .requests()
        .iter()
        .filter(|request| request.target.contains("partNumber"))
        .map(|request| request.body.len())
        .collect();
    assert_eq!(parts, [8 << 20, 8 << 20, (1 << 20) + 5]);
    assert!(bucket.objects.lock().unwrap()["k"].0 == bytes);
    assert_eq!(
        objects.list("").unwrap(),
        [ListedObject { key: "k".into(), len: bytes.len() as u64 }]
    );
    // One whose source fails, or is longer, leaves nothing: neither an object nor parts.
    assert!(objects.put_from("broken", bytes.len() as u64, &mut Failing(10 << 20)).is_err());
    assert!(objects.put_from("broken", bytes.len() as u64 - 1, &mut &bytes[..]).is_err());
    assert!(!bucket.objects.lock().unwrap().contains_key("broken"));
    assert_eq!(bucket.uploads.lock().unwrap().len(), 0);
}

/// The status of what makes an object of its parts comes before the work is done.
#[test]
fn an_upload_that_fails_behind_its_status_is_a_failure_and_is_removed() {
    let bucket = Arc::new(Bucket { page: 1000, ..Bucket::default() });
    let behind = Arc::clone(&bucket);
    let server = Server::start(move |request| {
        if request.method == "POST" && request.target.contains("uploadId=") {
            error("200 OK", "InternalError")
        } else {
            behind.answer(request)
        }
    });
    let url = RemoteUrl::parse(&server.url("/bucket/k#mode=s3")).unwrap();
    let settings = zonda_remote::settings::Settings {
        total_timeout: Some(Duration::from_secs(30)),
        idle_timeout: Duration::from_secs(10),
        ..hasty(&url)
    };
    let (objects, _) = S3Objects::with_settings(&url, settings, aws()).unwrap();
    let error = objects.put("k", &object(9 << 20)).unwrap_err();
    assert!(error.what.contains("InternalError"), "{error}");
    assert_eq!(
        (bucket.objects.lock().unwrap().len(), bucket.uploads.lock().unwrap().len()),
        (0, 0)
    );
}

#[test]
fn what_servers_say_against_a_signature_is_told_without_what_it_was() {
    for (status, code, kind) in [
        ("403 Forbidden", "SignatureDoesNotMatch", RemoteFailure::Denied),
        ("403 Forbidden", "InvalidAccessKeyId", RemoteFailure::Denied),
        ("400 Bad Request", "ExpiredToken", RemoteFailure::Denied),
        ("404 Not Found", "NoSuchBucket", RemoteFailure::NotFound),
        ("400 Bad Request", "Strange", RemoteFailure::Broken),
    ] {
        let server = Server::start(move |_| error(status, code));
        let error = s3(&server, aws()).get_range("k", 0, &mut [0; 10], None).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.what.contains(code) && !error.to_string().contains("secret"), "{error}");
        assert_eq!(server.requests().len(), 1);
    }
}

/// A signature holds for one server: it goes to no other.
#[test]
fn signed_requests_follow_no_redirect() {
    let there = Server::start(|request| serve(request, b"x", "\"t\""));
    let to = there.url("/bucket/k");
    let here = Server::start(move |_| {
        answer("307 There", &[("Content-Length", "0"), ("Location", &to)], b"")
    });
    let error = s3(&here, aws()).get_range("k", 0, &mut [0; 10], None).unwrap_err();
    assert!(error.what.contains("status 307"), "{error}");
    assert_eq!(there.requests().len(), 0);
}

#[test]
fn a_bucket_is_looked_for_in_the_region_that_its_server_names() {
    let server = Server::start(|request| {
        if request.header("authorization").is_some_and(|text| text.contains("/there-2/")) {
            serve(request, b"0123456789", "\"t\"")
        } else {
            answer("400 Bad", &[("Content-Length", "0"), ("x-amz-bucket-region", "there-2")], b"")
        }
    });
    let objects = s3(&server, aws());
    for _ in 0..2 {
        let mut buf = [0; 4];
        objects.get_range("k", 3, &mut buf, None).unwrap();
        assert_eq!(&buf, b"3456");
    }
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn lists_that_never_end_do() {
    let endless = |token: &'static str, contents: &'static str| {
        move |_: &Request| {
            let body = format!(
                "<ListBucketResult>{contents}<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken></ListBucketResult>"
            );
            answer("200 OK", &[("Content-Length", &body.len().to_string())], body.as_bytes())
        }
    };
    let entry = "<Contents><Key>a</Key><Size>1</Size></Contents>";
    for server in [
        Server::start(endless("t", entry)),
        Server::start(endless("t", "")),
        Server::start(|_| {
            vec![
                Step::Send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec()),
                Step::Flood(b"<x>".repeat(10_000)),
            ]
        }),
    ] {
        let error = s3(&server, aws()).list("").unwrap_err();
        assert_eq!(error.kind, RemoteFailure::Broken, "{error}");
    }
}

//! What is opened by OPeNDAP and what as a file, with which requests, and which error there is where it is neither.
#![cfg(feature = "remote")]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use zonda::{
    CreateOptions, Dataset, ExtType, Hyperslab, MemType, NcError, OpenOptions, Reserve, VarId,
};

/// Status and body for the path and query of a request.
type Answer = (u16, Vec<u8>);

struct Server {
    root: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        let (asked, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (noted, answer) = (Arc::clone(&noted), Arc::clone(&answer));
                std::thread::spawn(move || converse(stream, &noted, &*answer));
            }
        });
        Server { root, asked }
    }

    /// What was asked for since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn converse(stream: TcpStream, noted: &Mutex<Vec<String>>, answer: &dyn Fn(&str) -> Answer) {
    let mut out = stream.try_clone().unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(first) = lines.next() {
        let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut range = None;
        for header in lines.by_ref().take_while(|line| !line.is_empty()) {
            let header = header.to_ascii_lowercase();
            let found =
                header.strip_prefix("range: bytes=").and_then(|range| range.split_once('-'));
            range = range
                .or(found.map(|(a, b)| (a.parse::<usize>().unwrap(), b.parse::<usize>().unwrap())));
        }
        let what = if range.is_some() { format!("bytes of {target}") } else { target.clone() };
        noted.lock().unwrap().push(what);
        let (status, body) = answer(&target);
        let (mut status, mut part, mut more) = (status, &body[..], String::new());
        if let Some((first, last)) = range.filter(|_| status == 200) {
            let end = (last + 1).min(body.len());
            (status, part) = (206, &body[first.min(end)..end]);
            more = format!("Content-Range: bytes {first}-{}/{}\r\n", end - 1, body.len());
        }
        let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n{more}\r\n", part.len());
        if out.write_all(&[head.as_bytes(), part].concat()).is_err() {
            return;
        }
    }
}

const DDS: &[u8] = b"Dataset {\n    Int32 x[x = 3];\n} t;\n";
const ERROR: &[u8] = b"Error {\n    code = 500;\n    message = \"the disk is full\";\n};\n";

fn dods() -> Vec<u8> {
    let numbers: Vec<u8> = [3u32, 3, 11, 12, 13].into_iter().flat_map(u32::to_be_bytes).collect();
    [DDS, b"Data:\n", &numbers].concat()
}

/// A classic file with the variable `x` of the three numbers.
fn file() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.nc");
    let dataset = Dataset::create(&path, &CreateOptions::default()).unwrap();
    let dim = dataset.def_dim(b"x", 3).unwrap();
    let var = dataset.def_var(b"x", ExtType::Int.nc_type(), &[dim.0]).unwrap();
    dataset.enddef(Reserve::Default).unwrap();
    let slab = Hyperslab { start: &[0], count: &[3], stride: None };
    let _ = dataset.put(var, &slab, None, &[11i32, 12, 13].map(i32::to_ne_bytes).concat()).unwrap();
    dataset.close().unwrap();
    std::fs::read(&path).unwrap()
}

/// A dataset at `/dap/`, files at `/files/`, a page for each other path below `/pages/`.
fn server() -> Server {
    let file = file();
    Server::start(move |target| {
        let path = target.split('?').next().unwrap_or_default();
        match path {
            "/dap/t.dds" => (200, DDS.to_vec()),
            "/dap/t.das" => (404, b"no".to_vec()),
            "/dap/t.dods" => (200, dods()),
            "/dap/full.dds" => (500, ERROR.to_vec()),
            "/dap/said.dds" => (200, ERROR.to_vec()),
            "/dap/broken.dds" | "/dap/broken.das" => (
                200,
                if path.ends_with("dds") { DDS.to_vec() } else { b"Attributes {\n}\n".to_vec() },
            ),
            "/dap/broken.dods" => (200, dods()[..50].to_vec()),
            "/denied/x.dds" => (403, b"no".to_vec()),
            _ if path.starts_with("/files/") && path.ends_with(".nc") => (200, file.clone()),
            _ if path.starts_with("/pages/") => (200, b"<html>hello</html>".to_vec()),
            _ => (404, b"no".to_vec()),
        }
    })
}

fn open(url: &str) -> zonda::Result<Dataset> {
    Dataset::open(Path::new(url), &OpenOptions::default())
}

fn values(dataset: &Dataset) -> zonda::Result<Vec<i32>> {
    let mut bytes = [1; 12];
    let slab = Hyperslab { start: &[0], count: &[3], stride: None };
    let got = dataset.get(VarId(0), &slab, None, &mut bytes);
    let values = bytes.chunks(4).map(|one| i32::from_ne_bytes(one.try_into().unwrap())).collect();
    if got.is_err() {
        assert_eq!(values, [-2_147_483_647; 3]);
    }
    got.map(|_| values)
}

#[test]
fn a_plain_url_is_a_dataset_or_else_a_file() {
    let server = server();
    let root = &server.root;
    let dataset = open(&format!("{root}/dap/t")).unwrap();
    assert_eq!(values(&dataset).unwrap(), [11, 12, 13]);
    assert_eq!(dataset.capabilities().formatx, 5);
    let asked = server.asked();
    assert_eq!(asked[..2], ["/dap/t.dds", "/dap/t.das"]);
    assert!(asked.len() == 3 && asked[2].starts_with("/dap/t.dods?x"), "{asked:?}");

    let dataset = open(&format!("{root}/files/a.nc")).unwrap();
    assert_eq!(values(&dataset).unwrap(), [11, 12, 13]);
    assert_eq!(dataset.capabilities().formatx, 1);
    assert_eq!(server.asked(), ["/files/a.nc.dds", "bytes of /files/a.nc"]);
    // The next one in the folder is taken for a file.
    assert!(open(&format!("{root}/files/b.nc?sig=1")).is_ok());
    assert_eq!(server.asked(), ["bytes of /files/b.nc?sig=1"]);
    assert!(open(&format!("{root}/files/c.nc#mode=bytes")).is_ok());
    assert_eq!(server.asked(), ["bytes of /files/c.nc"]);
}

#[test]
fn names_that_say_what_they_are_ask_nothing_else() {
    let server = server();
    let (root, host) = (&server.root, server.root.trim_start_matches("http://"));
    for url in [
        format!("dods://{host}/dap/t"),
        format!("{root}/dap/t#mode=dap2"),
        format!("[dap2]{root}/dap/t"),
    ] {
        assert_eq!(values(&open(&url).unwrap()).unwrap(), [11, 12, 13]);
        assert_eq!(server.asked().len(), 3);
    }
    let error = open(&format!("{root}/files/a.nc#mode=dap2")).unwrap_err();
    assert_eq!((error.code(), server.asked().len()), (NcError::NotFound, 1));
    let error = open(&format!("dap4://{host}/dap/t")).unwrap_err();
    assert_eq!(
        (error.code(), server.asked()),
        (NcError::System(2), vec!["/dap/t.dmr.xml".to_owned(), "/dap/t.dmr".into()])
    );
}

#[test]
fn where_there_is_neither_the_first_answer_counts() {
    let server = server();
    let root = &server.root;
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, code, says) in [
        (format!("{root}/none"), NcError::NotFound, "status 404"),
        (format!("{root}/pages/x"), NcError::Dds, "DDS"),
        (format!("{root}/denied/x"), NcError::Auth, "status 403"),
        (format!("{root}/dap/full#mode=dap2"), NcError::DapSvc, "the disk is full"),
        (format!("{root}/dap/said"), NcError::DapSvc, "the disk is full"),
        (format!("http://{nobody}/x"), NcError::Io, ""),
        (format!("http://{nobody}/x#dap4"), NcError::DapSvc, ""),
        (format!("{root}/dap/t?x[0:1#mode=dap2"), NcError::DapConstraint, "constraint"),
        ("file:///nowhere/x#mode=dap2".into(), NcError::System(2), "/nowhere/x.dds"),
    ] {
        let error = open(&url).unwrap_err();
        assert_eq!(error.code(), code, "{url}: {error}");
        assert!(error.to_string().contains(says), "{url}: {error}");
    }
}

#[test]
fn a_response_that_breaks_off_gives_an_error_and_fill() {
    let server = server();
    let dataset = open(&format!("{}/dap/broken", server.root)).unwrap();
    assert_eq!(values(&dataset).unwrap_err().code(), NcError::DataDds);
}

#[test]
fn saved_responses_are_opened_by_file_urls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.01");
    let url = format!("file://{}", path.display());
    assert!(open(&url).is_err());
    for (extension, bytes) in [("dds", DDS), ("das", b"Attributes {\n}\n"), ("dods", &dods())] {
        std::fs::write(folder.path().join(format!("t.01.{extension}")), bytes).unwrap();
    }
    for url in [url.clone(), format!("[dap2]{url}"), format!("{url}.dods#mode=dap2")] {
        let dataset = open(&url).unwrap();
        assert_eq!(values(&dataset).unwrap(), [11, 12, 13]);
        let slab = Hyperslab { start: &[0], count: &[2], stride: Some(&[2]) };
        let mut bytes = [0; 8];
        let _ = dataset.get(VarId(0), &slab, None, &mut bytes).unwrap();
        assert_eq!(bytes[..], [11i32, 13].map(i32::to_ne_bytes).concat());
    }
    assert_eq!(open(&format!("{url}?x[0:1]")).unwrap_err().code(), NcError::DapConstraint);
}

#[test]
fn bytes_are_read_as_text_and_text_as_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b");
    let dds = b"Dataset {\n    Byte b[b = 3];\n    Int16 s;\n} t;\n";
    let body = [0u8, 0, 0, 3, 0, 0, 0, 3, b'x', 200, b'z', 0, 0, 0, 0, 65];
    for (extension, bytes) in [("dds", &dds[..]), ("dods", &[dds, &b"Data:\n"[..], &body].concat())]
    {
        std::fs::write(folder.path().join(format!("b.{extension}")), bytes).unwrap();
    }
    let dataset = open(&format!("file://{}#mode=dap2", path.display())).unwrap();
    let slab = Hyperslab { start: &[0], count: &[3], stride: None };
    for mem in [MemType::Text, MemType::U8, MemType::I8] {
        let mut bytes = [0; 3];
        let converted = dataset.get(VarId(0), &slab, Some(mem), &mut bytes).unwrap();
        assert_eq!((bytes, converted.out_of_range), ([b'x', 200, b'z'], 0), "{mem:?}");
    }
    let one = Hyperslab { start: &[], count: &[], stride: None };
    let refused = dataset.get(VarId(1), &one, Some(MemType::Text), &mut [0]).unwrap_err();
    assert_eq!(refused.code(), NcError::Char);
}

//! Codes of URLs, which are those of netCDF-C 4.10.1.

use std::ffi::{CStr, CString, c_int};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use zonda_runtime::worker::{self, Purpose};

use super::*;
use crate::file::{nc_close, nc_inq_path};

/// Answers one connection after the other: ranges of `/NAME`, 404 for what is not there, 401 for `/denied`.
fn serve(files: Vec<(&'static str, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let files = Arc::new(files);
    // It ends with the process.
    let spawn = |work: Box<dyn FnOnce() + Send>| {
        drop(worker::spawn(String::from("served"), Purpose::Share, work).unwrap());
    };
    spawn(Box::new(move || {
        for stream in listener.incoming().flatten() {
            let files = Arc::clone(&files);
            spawn(Box::new(move || while answer(&stream, &files).is_some() {}));
        }
    }));
    format!("http://{address}")
}

fn answer(stream: &TcpStream, files: &[(&str, Vec<u8>)]) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next()?;
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let target = first.split(' ').nth(1)?;
    let name = target.trim_start_matches('/').split('?').next()?;
    let range = headers.iter().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let (start, end) = value.trim().strip_prefix("bytes=")?.split_once('-')?;
        let is_range = key.eq_ignore_ascii_case("range");
        is_range.then_some((start.parse::<usize>().ok()?, end.parse::<usize>().ok()?))
    });
    let found = files.iter().find(|(one, _)| *one == name);
    let mut out = stream;
    let Some(((_, bytes), (start, end))) = found.zip(range) else {
        let status = if name == "denied" { "401 Unauthorized" } else { "404 Not Found" };
        return write!(out, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").ok();
    };
    let part = &bytes[start.min(bytes.len())..(end + 1).min(bytes.len())];
    let (last, len) = ((start + part.len()).saturating_sub(1), bytes.len());
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {start}-{last}/{len}\r\nETag: \"1\"\r\nContent-Length: {}\r\n\r\n",
        part.len()
    );
    out.write_all(head.as_bytes()).and_then(|()| out.write_all(part)).ok()
}

/// A file with a variable of five numbers.
fn file(format: Format) -> Vec<u8> {
    let memory = Arc::new(zonda::storage::backend::Memory::new());
    let options = CreateOptions { format, ..CreateOptions::default() };
    let dataset = Dataset::create_in(memory.clone(), "x".as_ref(), &options).unwrap();
    dataset.close().unwrap();
    let mut bytes =
        vec![0; usize::try_from(zonda::storage::Storage::len(&*memory).unwrap()).unwrap()];
    zonda::storage::Storage::read_at(&*memory, 0, &mut bytes).unwrap();
    bytes
}

/// The code of an opening; what opens is closed, and its name is given.
fn opened(url: &str, mode: c_int) -> (c_int, String) {
    let (url, mut ncid) = (CString::new(url).unwrap(), 0);
    // SAFETY: a string of C, and a place.
    match unsafe { nc_open(url.as_ptr(), mode, &raw mut ncid) } {
        0 => {}
        code => return (code, String::new()),
    }
    let mut path = [0; 4096];
    // SAFETY: there is place for any of these names.
    assert_eq!(unsafe { nc_inq_path(ncid, std::ptr::null_mut(), path.as_mut_ptr()) }, 0);
    assert_eq!(nc_close(ncid), 0);
    // SAFETY: it was just filled with a string of C.
    let path = unsafe { CStr::from_ptr(path.as_ptr()) };
    (0, path.to_string_lossy().into_owned())
}

fn created(url: &str, mode: c_int) -> c_int {
    let (url, mut ncid) = (CString::new(url).unwrap(), 0);
    // SAFETY: a string of C, and a place.
    let code = unsafe { nc_create(url.as_ptr(), mode, &raw mut ncid) };
    if code == 0 {
        assert_eq!(nc_close(ncid), 0);
    }
    code
}

/// What `nc_zonda_last_error` says.
fn said() -> String {
    // SAFETY: a string of C that stays until the next call of this thread.
    let text = unsafe { CStr::from_ptr(crate::extensions::nc_zonda_last_error()) };
    text.to_string_lossy().into_owned()
}

#[test]
fn codes_of_urls_are_those_of_the_reference() {
    let text = b"no netCDF at all\n".repeat(50);
    let root =
        serve(vec![("a.nc", file(Format::NetCdf4)), ("c.nc", file(Format::Cdf1)), ("t.nc", text)]);
    let secret = "signature=s3cret";
    for name in ["a.nc", "c.nc"] {
        for mode in [0, DISKLESS, DISKLESS | WRITE] {
            let shown = format!("{root}/{name}#mode=bytes");
            assert_eq!(
                opened(&format!("{root}/{name}?{secret}#mode=bytes"), mode),
                (0, shown.clone())
            );
            assert_eq!(opened(&format!("[bytes]{root}/{name}"), mode), (0, shown));
            assert_eq!(opened(&format!("{root}/{name}"), mode), (0, format!("{root}/{name}")));
        }
        let code = opened(&format!("{root}/{name}?{secret}#mode=bytes"), WRITE).0;
        assert_eq!(code, NcError::HdfErr.code(), "{}", said());
        assert!(
            said().contains(&format!("{root}/{name}")) && !said().contains("s3cret"),
            "{}",
            said()
        );
    }
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, code) in [
        (format!("{root}/none.nc?{secret}#mode=bytes"), NcError::NotNc),
        (format!("{root}/denied?{secret}#mode=bytes"), NcError::NotNc),
        (format!("{root}/t.nc?{secret}#mode=bytes"), NcError::HdfErr),
        (format!("http://{nobody}/a.nc?{secret}#mode=bytes"), NcError::Curl),
        (format!("http://?{secret}#mode=bytes"), NcError::Curl),
        (format!("{root}/a.nc?x&{secret}#mode=dap2"), NcError::NotFound),
        (format!("{root}/a.nc?x#mode=dap4"), NcError::System(2)),
        (format!("{root}/a.nc?{secret}#mode=zarr"), NcError::NotBuilt),
    ] {
        assert_eq!(opened(&url, 0).0, code.code(), "{url}: {}", said());
        assert!(!said().contains("s3cret"), "{}", said());
    }
    let new = format!("{root}/new.nc?{secret}");
    for mode in [0, 0x1000] {
        assert_eq!(created(&format!("{new}#mode=bytes"), mode), libc::EACCES);
        assert!(said().contains("zonda copy") && !said().contains("s3cret"), "{}", said());
        assert_eq!(created(&new, mode), NcError::NotNc.code());
        assert!(said().contains("zonda copy") && !said().contains("s3cret"), "{}", said());
        assert_eq!(created(&format!("{new}#mode=bytes"), mode | DISKLESS), 0);
    }
}

//! Files behind URLs that the ranks of a simulated team open together.
#![cfg(feature = "remote")]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

use zonda::team::{Team, threads};
use zonda::{CreateOptions, Dataset, Format, Hyperslab, MemType, NcError, OpenOptions};

const N: usize = 100_000;

/// Serves `bytes` as `/a.nc`, and 404 for all else, until the process ends.
fn serve(bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let bytes: Arc<[u8]> = bytes.into();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let bytes = Arc::clone(&bytes);
            std::thread::spawn(move || while answer(&stream, &bytes).is_some() {});
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: &TcpStream, bytes: &[u8]) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next()?;
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let range = headers.iter().find_map(|line| {
        let value = line.to_ascii_lowercase().strip_prefix("range: bytes=")?.to_owned();
        let (start, end) = value.split_once('-')?;
        Some((start.parse::<usize>().ok()?, end.parse::<usize>().ok()?))
    });
    let Some((start, end)) = range.filter(|_| first.contains(" /a.nc")) else {
        return write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").ok();
    };
    let part = &bytes[start.min(bytes.len())..(end + 1).min(bytes.len())];
    let (last, len, n) = ((start + part.len()).saturating_sub(1), bytes.len(), part.len());
    write!(
        stream,
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {start}-{last}/{len}\r\nETag: \"1\"\r\nContent-Length: {n}\r\n\r\n"
    )
    .and_then(|()| stream.write_all(part))
    .ok()
}

/// The bytes of a file with the numbers from 0 on.
fn file(format: Format) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.nc");
    let made = Dataset::create(&path, &CreateOptions { format, ..CreateOptions::default() });
    let file = made.unwrap();
    let x = file.def_dim(b"x", N).unwrap();
    let v = file.def_var(b"v", 4, &[x.0]).unwrap();
    file.enddef(zonda::Reserve::Default).unwrap();
    let values: Vec<u8> = (0..N as i32).flat_map(i32::to_ne_bytes).collect();
    let all = Hyperslab { start: &[0], count: &[N], stride: None };
    assert_eq!(file.put(v, &all, Some(MemType::I32), &values).unwrap().out_of_range, 0);
    file.close().unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn each_rank_reads_its_part_of_a_file_on_a_server() {
    for format in [Format::Cdf5, Format::NetCdf4] {
        let root = serve(file(format));
        let url = format!("{root}/a.nc?signature=s3cret#mode=bytes");
        threads::all(3, |team| {
            let all: Arc<dyn Team> = Arc::new(team.clone());
            let open = |url: &str, options| {
                Dataset::open_parallel(Arc::clone(&all), Path::new(url), &options)
            };
            let opened = open(&url, OpenOptions::default()).unwrap();
            assert_eq!(opened.path(), Path::new(&format!("{root}/a.nc")));
            let v = opened.meta(|meta| meta.find_var(b"v")).unwrap();
            let (each, rank) = (N / 3, team.rank());
            let mut out = vec![0; each * 4];
            let part = Hyperslab { start: &[rank * each], count: &[each], stride: None };
            let got = opened.get(v, &part, Some(MemType::I32), &mut out).unwrap();
            assert_eq!(got.out_of_range, 0);
            let wanted: Vec<u8> =
                ((rank * each) as i32..).take(each).flat_map(i32::to_ne_bytes).collect();
            assert!(out == wanted, "{format:?}, rank {rank}");
            opened.close().unwrap();

            // All ranks learn the same of what cannot be.
            let missing = open(&format!("{root}/none.nc?signature=s3cret"), OpenOptions::default());
            let error = missing.unwrap_err();
            assert_eq!(error.code(), NcError::NotNc);
            let text = error.to_string();
            assert!(text.contains("404") && !text.contains("s3cret"), "{text}");
            let write = OpenOptions { write: true, ..OpenOptions::default() };
            let refused = open(&url, write).unwrap_err().to_string();
            assert!(refused.contains("only be read") && !refused.contains("s3cret"), "{refused}");
        });
    }
}

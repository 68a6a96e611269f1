//! Connections through the table, with a server of rustls at the other end of a piece of memory.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use zonda_tls::{Client, Connection, Fault, Identity, Kind, Settings, Source};

/// A certificate that a server called localhost made for itself, good from 2020 to 2120, with its key; and a key of somebody else. For these tests alone.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\n\
     MIIBXjCCAQSgAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv\n\
     c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM\n\
     CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJ5Mv/5Vcht1v/r8\n\
     YHDSs+vli6/Vc0ddRoD4aq4YlHoIN2AT5HeG6UgsYrlJbFHiP8RFXVCJVo+JLQdp\n\
     9KPisxijRTBDMBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAMBgNVHRMBAf8EAjAAMB0G\n\
     A1UdDgQWBBSmcyZD2DqqiT5SRDlieMImiJ58JDAKBggqhkjOPQQDAgNIADBFAiBl\n\
     HBZMncycpcn1lplrayCNSRCWbTEqNgsfbvHavZNdMgIhAPKPZSN8LCXG2jAG69g/\n\
     It2tZr6Iz37Ky45XfGAxMWtT\n\
     -----END CERTIFICATE-----";
const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
     MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgKdi1a4wKPIDjIeuV\n\
     AyergvCQAuj9eks0IZ7YbSBxZu2hRANCAASeTL/+VXIbdb/6/GBw0rPr5Yuv1XNH\n\
     XUaA+GquGJR6CDdgE+R3hulILGK5SWxR4j/ERV1QiVaPiS0HafSj4rMY\n\
     -----END PRIVATE KEY-----";
const OTHER_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
     MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg8/Spkl+iIDzNqX17\n\
     HuBO0Uaz0Ky5RlQCbsM4ZPZYgSWhRANCAAS7tsrQdiphhvvYWf2TanMCaPpcrLca\n\
     TWVWgOJicjYTrJM65mr9QkHEeeJeKe+Jk9ZGwa4V2yC1XqhH/nz2LX7K\n\
     -----END PRIVATE KEY-----";

fn trusted(pem: &str) -> Source<'_> {
    Source { pem: pem.as_bytes(), may_be_empty: false, may_be_shown: false }
}

fn client(sources: &[Source<'_>], identity: Option<Identity<'_>>) -> Result<Client, Fault> {
    let settings = Settings { verify_peer: true, verify_host: true, sources, identity };
    Client::new(zonda_tls_engine::engine(), &settings)
}

fn server() -> ServerConnection {
    let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    ServerConnection::new(Arc::new(config.unwrap())).unwrap()
}

/// Carries all that there is from each side to the other, `piece` bytes at a time, until both are silent.
fn carry(
    client: &mut Connection,
    server: &mut ServerConnection,
    piece: usize,
) -> Result<(), Fault> {
    let (mut room, mut coming) = (vec![0; piece], Vec::new());
    loop {
        while client.wants_write() {
            let n = client.send(&mut room)?;
            let mut rest = &room[..n];
            while !rest.is_empty() {
                server.read_tls(&mut rest).unwrap();
                // What it does not believe, it tells the client.
                let _ = server.process_new_packets();
            }
        }
        while server.wants_write() {
            server.write_tls(&mut coming).unwrap();
        }
        if coming.is_empty() {
            return Ok(());
        }
        let n = client.receive(&coming[..piece.min(coming.len())])?;
        assert!(n > 0 || client.wants_write(), "it neither takes nor says anything");
        coming.drain(..n);
    }
}

fn connected(name: &str, piece: usize) -> Result<(Connection, ServerConnection), Fault> {
    let mut connection = client(&[trusted(CERTIFICATE)], None)?.connect(name)?;
    let mut server = server();
    assert!(connection.is_handshaking());
    carry(&mut connection, &mut server, piece)?;
    Ok((connection, server))
}

#[test]
fn data_go_both_ways_in_pieces_of_any_length() {
    let data: Vec<u8> = (0..100_000_u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    for piece in [1, 100, 1 << 20] {
        let (mut client, mut server) = connected("localhost", piece).unwrap();
        assert!(!client.is_handshaking());
        let mut room = vec![0; 7000];
        assert_eq!(client.get(&mut room).unwrap(), None);

        let (mut put, mut got) = (0, Vec::new());
        while put < data.len() {
            put += client.put(&data[put..data.len().min(put + 9000)]).unwrap();
            carry(&mut client, &mut server, piece).unwrap();
            while let Ok(n @ 1..) = server.reader().read(&mut room) {
                got.extend_from_slice(&room[..n]);
            }
        }
        assert!(got == data, "{} bytes came", got.len());

        // More than fits: the rest waits until something was got.
        server.writer().write_all(&data[..40_000]).unwrap();
        let mut out = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut out).unwrap();
        }
        let (mut taken, mut got) = (0, Vec::new());
        while got.len() < 40_000 {
            taken += client.receive(&out[taken..]).unwrap();
            assert!(!client.wants_read());
            assert_eq!(client.receive(b"x").unwrap(), 0);
            while let Some(n) = client.get(&mut room).unwrap() {
                got.extend_from_slice(&room[..n]);
            }
        }
        assert!(got == data[..40_000]);

        server.send_close_notify();
        carry(&mut client, &mut server, piece).unwrap();
        assert_eq!(client.get(&mut room).unwrap(), Some(0));
    }
}

#[test]
fn a_connection_that_is_cut_off_is_no_end() {
    let (mut client, _) = connected("localhost", 500).unwrap();
    assert_eq!(client.receive(&[]).unwrap(), 0);
    assert_eq!(client.get(&mut [0; 9]).unwrap_err().kind, Kind::Ended);
}

#[test]
fn who_is_not_the_one_meant_is_not_spoken_to() {
    let fault = connected("other", 500).unwrap_err();
    assert_eq!(fault.kind, Kind::Peer, "{fault}");
    assert!(
        fault.text.contains("other is asked for, and the certificate is for localhost"),
        "{fault}"
    );

    let mut connection =
        client(&[trusted(CERTIFICATE)], None).unwrap().connect("localhost").unwrap();
    // It speaks first.
    assert!(connection.send(&mut [0; 4096]).unwrap() > 100);
    let fault = connection.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err();
    assert_eq!(fault.kind, Kind::NotTls, "{fault}");

    let client = client(&[trusted(CERTIFICATE)], None).unwrap();
    assert_eq!(client.connect("no name at all").unwrap_err().kind, Kind::Name);
}

#[test]
fn settings_that_cannot_be_used_are_told_by_their_place() {
    let empty = Source { pem: b"nothing", may_be_empty: true, may_be_shown: false };
    let of = |certificate: &'static str, key: &'static str| {
        Some(Identity { certificate: certificate.as_bytes(), key: key.as_bytes() })
    };
    let good = trusted(CERTIFICATE);
    for (sources, identity, kind, source, text) in [
        (vec![empty], None, Kind::NoRoots, 0, "no certificate"),
        (vec![good, trusted("nothing")], None, Kind::Setting, 1, "no certificate in it"),
        (vec![good, empty], of(KEY, KEY), Kind::Setting, 2, "no certificate in it"),
        (vec![good, empty], of(CERTIFICATE, CERTIFICATE), Kind::Setting, 3, "no private key"),
        (vec![good], of(CERTIFICATE, OTHER_KEY), Kind::OtherKey, 0, "not that of the certificate"),
    ] {
        let fault = client(&sources, identity).unwrap_err();
        assert_eq!((fault.kind, fault.place), (kind, source), "{fault}");
        assert!(fault.text.contains(text), "{fault}");
    }
    assert!(client(&[empty, good], of(CERTIFICATE, KEY)).is_ok());
}

#[test]
fn a_client_serves_threads_and_outlives_nothing() {
    let client = Arc::new(client(&[trusted(CERTIFICATE)], None).unwrap());
    let connections: Vec<Connection> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| client.connect("localhost").unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    drop(client);
    for mut connection in connections {
        let mut server = server();
        carry(&mut connection, &mut server, 1000).unwrap();
        assert!(!connection.is_handshaking());
    }
}

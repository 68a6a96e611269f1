//! A socket with TLS on it: what comes and goes by the socket is carried to the connection and away from it.

use std::io::{self, Read, Write};
use std::ops::Range;

use zonda_tls::{Connection, Fault, Kind};

/// Bytes that are taken from the socket at once: two records of TLS, about.
const INPUT_BYTES: usize = 32 << 10;
/// Bytes that go to the socket at once: a record, about.
const OUTPUT_BYTES: usize = 20 << 10;

/// A socket, and the connection on it.
pub(super) struct Secured<S> {
    connection: Connection,
    pub(super) socket: S,
    /// Memory for what comes, and where in it that is which the connection has not taken yet.
    came: Vec<u8>,
    left: Range<usize>,
    /// Memory for what goes out.
    going: Vec<u8>,
}

/// A part of some bytes. A count that does not fit is an error, and never the end of what a server says.
fn part(bytes: &[u8], range: Range<usize>) -> io::Result<&[u8]> {
    let fault = || Fault::new(Kind::Internal, "TLS counts more bytes than there are");
    bytes.get(range).ok_or_else(|| io::Error::other(fault()))
}

impl<S: Read + Write> Secured<S> {
    /// With the handshake done. An end before that is a [`Fault`] of [`Kind::Ended`].
    pub(super) fn new(connection: Connection, socket: S) -> io::Result<Secured<S>> {
        let (came, going) = (vec![0; INPUT_BYTES], vec![0; OUTPUT_BYTES]);
        let mut secured = Secured { connection, socket, came, left: 0..0, going };
        secured.shake_hands().map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected => io::Error::other(Fault::new(
                Kind::Ended,
                "the connection ended before both sides had come to terms",
            )),
            _ => error,
        })?;
        Ok(secured)
    }

    fn shake_hands(&mut self) -> io::Result<()> {
        while self.connection.is_handshaking() {
            self.send()?;
            if self.connection.is_handshaking() && !self.receive()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.send()
    }

    /// Whether something is here of which nobody has asked.
    pub(super) fn has_more(&self) -> bool {
        !self.left.is_empty() || !self.connection.wants_read()
    }

    /// Sends data, all of them.
    pub(super) fn write_all(&mut self, data: &[u8]) -> io::Result<()> {
        let mut rest = data;
        while !rest.is_empty() {
            let n = self.connection.put(rest).map_err(io::Error::other)?;
            self.send()?;
            if n == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            rest = part(rest, n..rest.len())?;
        }
        Ok(())
    }

    /// Data of the server, some; 0 bytes are the end.
    pub(super) fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.get(room) {
                Ok(Some(n)) => return Ok(n),
                Ok(None) => {}
                Err(Fault { kind: Kind::Ended, .. }) => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Err(fault) => return Err(io::Error::other(fault)),
            }
            // What the connection has to say itself, such as new keys.
            self.send()?;
            self.receive()?;
        }
    }

    /// Sends what the connection has to send.
    fn send(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            let n = self.connection.send(&mut self.going).map_err(io::Error::other)?;
            if n == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.socket.write_all(part(&self.going, 0..n)?)?;
        }
        Ok(())
    }

    /// Gives the connection what came, from the socket where nothing is here. Whether it was not the end.
    fn receive(&mut self) -> io::Result<bool> {
        if self.left.is_empty() {
            self.left = 0..self.socket.read(&mut self.came)?;
        }
        let came = part(&self.came, self.left.clone())?;
        let is_end = came.is_empty();
        match self.connection.receive(came) {
            Ok(0) if !is_end => {
                Err(io::Error::other(Fault::new(Kind::Internal, "TLS takes nothing of what came")))
            }
            Ok(n) => {
                self.left.start += n;
                Ok(!is_end)
            }
            Err(fault) => {
                // The server is told why, if it still listens.
                let _ = self.send();
                Err(io::Error::other(fault))
            }
        }
    }
}

//! One connection of rustls, driven over memory.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use zonda_tls::{Fault, Kind};

use crate::config::internal;
use crate::words::of_peer;

/// A connection.
pub(crate) struct Connection(ClientConnection);

impl Connection {
    /// One to a server of this name.
    pub(crate) fn new(config: &Arc<ClientConfig>, name: &[u8]) -> Result<Connection, Fault> {
        let name = std::str::from_utf8(name)
            .ok()
            .and_then(|name| ServerName::try_from(name.to_owned()).ok());
        let name = name.ok_or_else(|| {
            Fault::new(Kind::Name, "no certificate can have the name of the server")
        })?;
        ClientConnection::new(Arc::clone(config), name).map(Connection).map_err(|why| of_peer(&why))
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    pub(crate) fn wants_read(&self) -> bool {
        self.0.wants_read()
    }

    pub(crate) fn wants_write(&self) -> bool {
        self.0.wants_write()
    }

    /// Takes what came, as far as there is room for what it says; nothing is the end.
    pub(crate) fn receive(&mut self, came: &[u8]) -> Result<usize, Fault> {
        let mut rest = came;
        if !came.is_empty() && !self.0.wants_read() {
            return Ok(0);
        }
        loop {
            self.0.read_tls(&mut rest).map_err(internal)?;
            self.0.process_new_packets().map_err(|why| of_peer(&why))?;
            if rest.is_empty() || !self.0.wants_read() {
                return Ok(came.len() - rest.len());
            }
        }
    }

    /// Fills `room` with what is to go out.
    pub(crate) fn send(&mut self, room: &mut [u8]) -> Result<usize, Fault> {
        let most = room.len();
        let mut rest = room;
        while self.0.wants_write() && !rest.is_empty() {
            self.0.write_tls(&mut rest).map_err(internal)?;
        }
        Ok(most - rest.len())
    }

    /// Takes data, as far as there is room for them.
    pub(crate) fn put(&mut self, data: &[u8]) -> Result<usize, Fault> {
        self.0.writer().write(data).map_err(internal)
    }

    /// Fills `room` with data; `None` where none are here.
    pub(crate) fn get(&mut self, room: &mut [u8]) -> Result<Option<usize>, Fault> {
        match self.0.reader().read(room) {
            Ok(n) => Ok(Some(n)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(Fault::new(Kind::Ended, "the connection ended without a word"))
            }
            Err(error) => Err(internal(error)),
        }
    }
}

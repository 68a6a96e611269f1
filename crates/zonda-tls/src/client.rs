//! The functions of the table as safe ones.

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

use crate::table::{
    Bytes, HAS_IDENTITY, IS_HANDSHAKING, MAY_BE_EMPTY, MAY_BE_SHOWN, MOST_SAID, NOTHING_YET,
    RawSettings, RawSource, Room, Said, Table, VERIFY_HOST, VERIFY_PEER, WANTS_READ, WANTS_WRITE,
};
use crate::{Fault, Kind};

/// What does the work: a table whose functions do what [`table`](crate::table) says.
#[derive(Debug, Clone, Copy)]
pub struct Engine(&'static Table);

impl Engine {
    /// The one with this table.
    ///
    /// # Safety
    /// The functions do what [`table`](crate::table) says of them, from any thread, until the process ends.
    #[must_use]
    pub const unsafe fn new(table: &'static Table) -> Engine {
        Engine(table)
    }
}

/// Certificates that are trusted.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// PEM.
    pub pem: &'a [u8],
    /// Whether there may be no certificate in it.
    pub may_be_empty: bool,
    /// Whether a server may show one of these itself, also if it is that of an authority: so are those that people make for one server.
    pub may_be_shown: bool,
}

/// What we show of ourselves, PEM.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    /// Our certificate and those above it.
    pub certificate: &'a [u8],
    /// Its key; a secret.
    pub key: &'a [u8],
}

/// What is set for a server.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// Whether certificates have to be of somebody who is trusted.
    pub verify_peer: bool,
    /// Whether certificates have to have the name of the server.
    pub verify_host: bool,
    /// Who is trusted.
    pub sources: &'a [Source<'a>],
    /// Who we are, where a server wants to know.
    pub identity: Option<Identity<'a>>,
}

/// What connections to a server have in common.
pub struct Client {
    engine: Engine,
    raw: NonNull<c_void>,
}

// SAFETY: the table allows clients to be used by several threads at once, and to be freed by any.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

impl Client {
    /// A client with these settings.
    ///
    /// # Errors
    /// A [`Fault`]: what is wrong with the settings.
    pub fn new(engine: Engine, settings: &Settings<'_>) -> Result<Client, Fault> {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let sources: Vec<RawSource> = settings
            .sources
            .iter()
            .map(|source| RawSource {
                pem: bytes(source.pem),
                flags: flag(source.may_be_empty, MAY_BE_EMPTY)
                    | flag(source.may_be_shown, MAY_BE_SHOWN),
            })
            .collect();
        let identity = settings.identity.unwrap_or(Identity { certificate: &[], key: &[] });
        let raw = RawSettings {
            flags: flag(settings.verify_peer, VERIFY_PEER)
                | flag(settings.verify_host, VERIFY_HOST)
                | flag(settings.identity.is_some(), HAS_IDENTITY),
            n_sources: sources.len(),
            sources: sources.as_ptr(),
            certificate: bytes(identity.certificate),
            key: bytes(identity.key),
        };
        let raw = made(|made, said| {
            // SAFETY: all that the settings point to is borrowed until the call is over.
            unsafe { (engine.0.client)(&raw const raw, made, said) }
        })?;
        Ok(Client { engine, raw })
    }

    /// A connection to a server of this name, for one thread after the other. Nothing is sent by that.
    ///
    /// # Errors
    /// A [`Fault`]: no certificate can have the name.
    pub fn connect(&self, name: &str) -> Result<Connection, Fault> {
        let raw = made(|made, said| {
            // SAFETY: the client is there as long as `self`, and the name until the call is over.
            unsafe {
                (self.engine.0.connect)(self.raw.as_ptr(), bytes(name.as_bytes()), made, said)
            }
        })?;
        Ok(Connection { engine: self.engine, raw })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: the same table made it, and nobody has it any more.
        unsafe { (self.engine.0.free_client)(self.raw.as_ptr()) }
    }
}

/// One connection: between what comes and goes by a socket, and data.
pub struct Connection {
    engine: Engine,
    raw: NonNull<c_void>,
}

// SAFETY: the table allows connections to be used by one thread after the other.
unsafe impl Send for Connection {}
// SAFETY: what takes `&self` only asks for the state, which changes nothing.
unsafe impl Sync for Connection {}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

/// A function of the table that takes bytes of the caller or fills memory of the caller.
type Move<P> = unsafe extern "C" fn(*mut c_void, P, *mut usize, *mut Said) -> u32;

impl Connection {
    fn has(&self, state: u32) -> bool {
        // SAFETY: the connection is there as long as `self`, and who changes it has `&mut self`.
        unsafe { (self.engine.0.state)(self.raw.as_ptr()) & state != 0 }
    }

    /// Whether both sides are still coming to terms, and data have to wait.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.has(IS_HANDSHAKING)
    }

    /// Whether more has to come by the socket before there is anything to get.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        self.has(WANTS_READ)
    }

    /// Whether there is something that is to go out by the socket.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.has(WANTS_WRITE)
    }

    /// Takes what came by the socket; none at all is its end. Says how much was taken: less, where there is something to get first.
    ///
    /// # Errors
    /// A [`Fault`]. What is to be sent then tells the server why.
    pub fn receive(&mut self, came: &[u8]) -> Result<usize, Fault> {
        self.moved(self.engine.0.receive, bytes(came), came.len())
    }

    /// Fills `room` with what is to go out by the socket; says how much that is.
    ///
    /// # Errors
    /// A [`Fault`] of [`Kind::Internal`].
    pub fn send(&mut self, room: &mut [u8]) -> Result<usize, Fault> {
        self.moved(self.engine.0.send, self::room(room), room.len())
    }

    /// Takes data for the server; says how many bytes: fewer, where something is to be sent first.
    ///
    /// # Errors
    /// A [`Fault`] of [`Kind::Internal`].
    pub fn put(&mut self, data: &[u8]) -> Result<usize, Fault> {
        self.moved(self.engine.0.put, bytes(data), data.len())
    }

    /// Fills `room` with data of the server; says how many bytes. 0: the server said that no more will come. `None`: something has to come by the socket first.
    ///
    /// # Errors
    /// A [`Fault`] of [`Kind::Ended`] where the connection was cut off.
    pub fn get(&mut self, room: &mut [u8]) -> Result<Option<usize>, Fault> {
        let most = room.len();
        let n = self.called(self.engine.0.get, self::room(room))?;
        if n == NOTHING_YET { Ok(None) } else { within(n, most).map(Some) }
    }

    fn moved<P>(&mut self, function: Move<P>, part: P, most: usize) -> Result<usize, Fault> {
        within(self.called(function, part)?, most)
    }

    fn called<P>(&mut self, function: Move<P>, part: P) -> Result<usize, Fault> {
        let mut n = 0;
        // SAFETY: the connection is there as long as `self`, which nobody else has; `part` is borrowed by the callers of this until the call is over.
        checked(|said| unsafe { function(self.raw.as_ptr(), part, &raw mut n, said) })?;
        Ok(n)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the same table made it, and nobody has it any more.
        unsafe { (self.engine.0.free_connection)(self.raw.as_ptr()) }
    }
}

fn bytes(slice: &[u8]) -> Bytes {
    Bytes { at: slice.as_ptr(), len: slice.len() }
}

fn room(slice: &mut [u8]) -> Room {
    Room { at: slice.as_mut_ptr(), len: slice.len() }
}

/// A number of bytes, which cannot be more than there were.
fn within(n: usize, most: usize) -> Result<usize, Fault> {
    if n <= most { Ok(n) } else { Err(Fault::new(Kind::Internal, "more bytes than there are")) }
}

/// What a function says that makes something.
fn made(call: impl FnOnce(*mut *mut c_void, *mut Said) -> u32) -> Result<NonNull<c_void>, Fault> {
    let mut made = std::ptr::null_mut();
    checked(|said| call(&raw mut made, said))?;
    NonNull::new(made).ok_or_else(|| Fault::new(Kind::Internal, "nothing was made"))
}

/// What a function says.
fn checked(call: impl FnOnce(*mut Said) -> u32) -> Result<(), Fault> {
    let mut said = Said { place: 0, len: 0, text: [0; MOST_SAID] };
    let answer = call(&raw mut said);
    if answer == 0 {
        return Ok(());
    }
    let len = usize::try_from(said.len).map_or(MOST_SAID, |len| len.min(MOST_SAID));
    Err(Fault {
        kind: Kind::of_number(answer),
        place: usize::try_from(said.place).unwrap_or(usize::MAX),
        text: String::from_utf8_lossy(&said.text[..len]).into_owned(),
    })
}

//! The table of functions, as C sees it: what is on both sides of it is compiled together or apart.
//!
//! A function answers 0, or the number of a [`Kind`](crate::Kind); then it has filled in a [`Said`]. Pointers are valid for the call alone, but those that it
//! makes: these are given back to the functions of the same table that free them. A client may be used by several threads at once, a connection by one after the other.

use std::ffi::{CStr, c_void};

/// The version of all that is in this module. Whatever of it changes, this and the number in [`FILE`] do, too.
pub const VERSION: u32 = 1;
/// The name of the library.
pub const FILE: &str = "libzonda-tls.so.1";
/// The one function that it exports: [`GetTable`].
pub const SYMBOL: &CStr = c"zonda_tls_table";

/// Gives the table, which is there until the process ends.
pub type GetTable = unsafe extern "C" fn() -> *const Table;

/// Bytes that are read.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Bytes {
    /// Where they are; anything, where there are none.
    pub at: *const u8,
    /// How many.
    pub len: usize,
}

/// Bytes that are written.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Room {
    /// Where they are; anything, where there are none.
    pub at: *mut u8,
    /// How many.
    pub len: usize,
}

/// Bytes of a [`Said`].
pub const MOST_SAID: usize = 480;

/// Memory of the caller for the words of a failure.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Said {
    /// As in [`Fault`](crate::Fault).
    pub place: u32,
    /// How many bytes of `text` are said.
    pub len: u32,
    /// UTF-8; what is too long is cut off.
    pub text: [u8; MOST_SAID],
}

/// Of [`RawSource`]: it may be without any certificate.
pub const MAY_BE_EMPTY: u32 = 1;
/// Of [`RawSource`]: a server may show one of these itself, also if it is that of an authority.
pub const MAY_BE_SHOWN: u32 = 2;

/// Certificates that are trusted.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawSource {
    /// PEM.
    pub pem: Bytes,
    /// [`MAY_BE_EMPTY`], [`MAY_BE_SHOWN`].
    pub flags: u32,
}

/// Of [`RawSettings`]: certificates have to be of somebody who is trusted.
pub const VERIFY_PEER: u32 = 1;
/// Of [`RawSettings`]: certificates have to have the name of the server.
pub const VERIFY_HOST: u32 = 2;
/// Of [`RawSettings`]: there are a certificate and a key of ours.
pub const HAS_IDENTITY: u32 = 4;

/// What is set for a server.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawSettings {
    /// [`VERIFY_PEER`], [`VERIFY_HOST`], [`HAS_IDENTITY`].
    pub flags: u32,
    /// How many sources there are.
    pub n_sources: usize,
    /// The first of them.
    pub sources: *const RawSource,
    /// Our certificate and those above it, PEM.
    pub certificate: Bytes,
    /// Our key, PEM.
    pub key: Bytes,
}

/// State of a connection: it is not ready for data yet.
pub const IS_HANDSHAKING: u32 = 1;
/// State of a connection: it has to be given more of what comes.
pub const WANTS_READ: u32 = 2;
/// State of a connection: it has something that is to go out.
pub const WANTS_WRITE: u32 = 4;

/// The functions.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    /// [`VERSION`].
    pub version: u32,
    /// Bytes of this table.
    pub table_bytes: u32,
    /// Makes a client of settings.
    pub client: unsafe extern "C" fn(*const RawSettings, *mut *mut c_void, *mut Said) -> u32,
    /// Frees a client. Its connections stay.
    pub free_client: unsafe extern "C" fn(*mut c_void),
    /// Makes a connection to a server of this name, UTF-8.
    pub connect: unsafe extern "C" fn(*const c_void, Bytes, *mut *mut c_void, *mut Said) -> u32,
    /// Frees a connection.
    pub free_connection: unsafe extern "C" fn(*mut c_void),
    /// [`IS_HANDSHAKING`], [`WANTS_READ`], [`WANTS_WRITE`] of a connection.
    pub state: unsafe extern "C" fn(*const c_void) -> u32,
    /// Gives a connection what came; none at all is the end. Says how much of it was taken: less, where something is to be got first.
    pub receive: unsafe extern "C" fn(*mut c_void, Bytes, *mut usize, *mut Said) -> u32,
    /// Takes what is to go out.
    pub send: unsafe extern "C" fn(*mut c_void, Room, *mut usize, *mut Said) -> u32,
    /// Gives a connection data for the server. Says how much of it was taken: less, where something is to be sent first.
    pub put: unsafe extern "C" fn(*mut c_void, Bytes, *mut usize, *mut Said) -> u32,
    /// Takes data of the server: [`NOTHING_YET`] bytes, where none are here; 0, where the server said that no more will come.
    pub get: unsafe extern "C" fn(*mut c_void, Room, *mut usize, *mut Said) -> u32,
}

/// What [`Table::get`] says where the connection has to receive more first.
pub const NOTHING_YET: usize = usize::MAX;

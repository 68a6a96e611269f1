//! How calls come to servers: through memory that both have, or by messages of MPI.

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;

use zonda_format::Error;
use zonda_model::{Answer, NcError};

use super::wire;
use crate::error::Result;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Address {
    /// On this node, at this socket.
    Socket(PathBuf),
    /// A rank of the program, on any node.
    Rank(usize),
}

/// Writes the values of a frame to where they are carried from.
pub(super) type Fill<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<()>;

/// A message of a server, and values that came with it.
pub(super) type Message = (Vec<u8>, Option<Vec<u8>>);

/// Values that came with a message.
#[derive(Debug)]
pub(super) enum Came {
    Nothing,
    /// They are in the room that was given.
    InRoom,
    Apart(Vec<u8>),
}

impl Came {
    pub(super) fn of(values: Vec<u8>, room: &mut [u8]) -> Came {
        if values.is_empty() || values.len() != room.len() {
            return Came::Apart(values);
        }
        room.copy_from_slice(&values);
        Came::InRoom
    }
}

/// A way to one server. Threads send in turn; one thread at a time reads messages.
pub(super) trait Way: Send + Sync {
    /// Most bytes of a frame.
    fn most_bytes(&self) -> usize;

    /// Hands a frame over: bytes, and as many values as `fill` writes. Waits for room.
    fn send(&self, head: &[u8], n_bytes: usize, fill: Fill<'_>) -> Result<()>;

    /// Now and then sees whether the server is there.
    fn look(&self) -> Result<()>;

    /// Whether the server is there, as far as this process knows now.
    fn is_there(&self) -> bool;

    /// A number that changes when there may be a message.
    fn n_news(&self) -> u64;

    /// The next message; `None` where there is none now. Who is patient waits for one, and may get none before there is one.
    fn message(&self, is_patient: bool) -> Result<Option<Message>>;

    /// Waits for a message as [`Way::message`] does. Values that come with it go to `room` where they are as many bytes as it has.
    fn message_into(&self, room: &mut [u8]) -> Result<Option<(Vec<u8>, Came)>> {
        let Some((bytes, values)) = self.message(true)? else { return Ok(None) };
        Ok(Some((bytes, values.map_or(Came::Nothing, |values| Came::of(values, room)))))
    }
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl std::fmt::Debug for dyn Way + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Way")
    }
}

/// The server is not there any more.
pub(super) fn gone() -> Error {
    let why = "an I/O server is gone: files that it wrote have what it had committed";
    Error::answered(NcError::Io, Answer::System, why)
}

pub(super) fn of_system(error: &io::Error) -> Error {
    let text = format!("the I/O server cannot be reached: {error}");
    Error::answered(NcError::Io, Answer::System, text)
}

pub(super) fn other_version() -> Error {
    let text = format!(
        "the I/O server is of another version than this library ({}): use zonda run of the same installation",
        wire::VERSION
    );
    Error::answered(NcError::Io, Answer::Request, text)
}

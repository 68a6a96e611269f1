//! Files whose data another process writes.
//!
//! A [`ServedFile`] is what a client has: the definitions, in a file of the same format in memory, and a [`Line`] to the server. The
//! server has the file, and makes the client's [`Call`]s again, in their order. A [`ReadFile`] is one that the client has open for reading, and whose
//! elements the server reads. Design: `docs/dev/servers.md`.
#![forbid(unsafe_code)]

mod call;
mod dispatch;
mod file;
mod line;
pub mod local;
mod phantom;
mod ranks;
mod reading;
pub mod replay;
mod tuning;
mod wire;
mod words;
mod write;

pub use call::{Call, OwnedSlab, Told, ValuesForm};
pub use file::ServedFile;
pub use line::{Line, Reply};
pub use phantom::Phantom;
pub use reading::{Got, ReadFile, ReadLine};

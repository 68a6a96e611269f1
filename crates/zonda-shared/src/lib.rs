#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod arena;
mod channel;
mod layout;
mod orphaned;
mod ring;

pub use arena::{Arena, Block, NoRoom};
pub use channel::{
    Channel, Happened, Listener, MOST_MESSAGE_BYTES, Process, memory_of, raise_open_files,
};
pub use orphaned::{OrphanedBlock, OrphanedMemory};
pub use ring::{Frame, Full, Ring, RingNews, RingReader};

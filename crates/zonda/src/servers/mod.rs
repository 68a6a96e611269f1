//! I/O servers on one node: processes that write and read files of others, which tell them their calls through shared memory.
//! Design: `docs/dev/servers.md`.

mod board;
mod client;
mod connection;
mod extra_ranks;
mod gate;
mod group;
mod memory_way;
mod message_way;
mod post_office;
mod queue;
mod reading;
mod session;
mod way;
mod wire;
mod work;

pub use client::finish;
pub(crate) use client::{are_there, create, create_parallel, settle};
pub use extra_ranks::divide_ranks;
pub use group::{serve, write_alone};
pub(crate) use reading::reader;
pub use reading::{MARK as READING_MARK, Reading};

/// The variable that names the folder with the sockets of the servers: `zonda run --servers` sets it.
pub const VARIABLE: &str = "ZONDA_SERVERS";

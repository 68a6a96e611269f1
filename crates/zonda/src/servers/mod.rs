//! I/O servers on one node: processes that write and read files of others, which tell them their calls through shared memory.
//! Design: `docs/dev/servers.md`.

mod board;
mod buffers;
mod client;
mod connection;
mod extra_ranks;
mod gate;
mod group;
mod look;
mod members;
mod memory_way;
mod message_way;
mod post_office;
mod progress;
mod queue;
mod reading;
mod room;
mod session;
mod spec;
mod team;
mod watch;
mod way;
mod wire;
mod work;

pub use client::finish;
pub(crate) use client::{are_there, create, create_parallel, settle};
pub use extra_ranks::divide_ranks;
pub use group::{name_of, serve, write_alone};
pub use look::{CallCount, ClientLook, FileLook, Looked, ServerLook, Watcher};
pub use reading::Reading;
pub(crate) use reading::reader;
pub use spec::ServersSpec;

/// The variable that names the folder with the sockets of the servers: `zonda run --servers` sets it.
pub const VARIABLE: &str = "ZONDA_SERVERS";

//! What write-behind of a rank takes from the settings: its queue is with the file of ranks (`zonda-parallel`).

use std::sync::Arc;

use zonda_parallel::QueueRoom;
use zonda_runtime::Settled;

use super::{WriteBehind, WriteBehindOptions};

/// The room of all files of ranks that were not given their own.
static SHARED: Settled<Arc<QueueRoom>> = Settled::new();

/// The room for what waits of a file: its own where the options give a size other than that of all files.
pub(crate) fn room_of(how: &WriteBehindOptions) -> Arc<QueueRoom> {
    let shared = SHARED.get_or_make(|| QueueRoom::new(limit_of_process()));
    match how.memory_bytes {
        Some(bytes) if bytes != shared.limit() => QueueRoom::new(bytes),
        _ => Arc::clone(shared),
    }
}

/// Bytes that values of all files of the process may take together.
pub(super) fn limit_of_process() -> u64 {
    let from_env = match WriteBehind::from_env() {
        WriteBehind::On(how) => how.memory_bytes,
        WriteBehind::Off => None,
    };
    from_env.unwrap_or_else(WriteBehindOptions::default_memory)
}

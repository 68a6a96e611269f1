//! Whether puts of ranks wait in queues.

use zonda::{WriteBehind, WriteBehindOptions};

/// What a rank is told of write-behind, where a life has it: some have little room, and some none.
pub(crate) fn write_behind_of(rank: usize) -> WriteBehind {
    let room = |bytes| WriteBehindOptions { memory_bytes: Some(bytes), ..Default::default() };
    match rank % 4 {
        0 => WriteBehind::On(WriteBehindOptions::default()),
        1 => WriteBehind::On(room(4096)),
        2 => WriteBehind::Off,
        _ => WriteBehind::On(room(1 << 20)),
    }
}

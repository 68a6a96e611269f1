//! Whether puts of ranks wait in queues.

use zonda::{WriteBehind, WriteBehindOptions};

/// How a life goes on its ranks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    /// Puts wait in queues of the ranks.
    pub(crate) is_queued: bool,
    /// Ranks sync before they put alone: what others put together may else come after it where puts wait.
    pub(crate) syncs: bool,
}

impl Way {
    /// What a rank is told of write-behind: some have little room, and some none.
    pub(crate) fn of_rank(self, rank: usize) -> Option<WriteBehind> {
        let room = |bytes| WriteBehindOptions { memory_bytes: Some(bytes), ..Default::default() };
        self.is_queued.then(|| match rank % 4 {
            0 => WriteBehind::On(WriteBehindOptions::default()),
            1 => WriteBehind::On(room(4096)),
            2 => WriteBehind::Off,
            _ => WriteBehind::On(room(1 << 20)),
        })
    }
}

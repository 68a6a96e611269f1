//! What can be recorded. The numbers are those of the file (docs/dev/trace.md): they are never reused.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal $text:literal,)*) => {
        /// What an event tells.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum EventKind {
            $($(#[$doc])* $name = $number,)*
        }

        impl EventKind {
            /// Every kind, in ascending order.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$name,)*];

            /// The kind with this number.
            #[must_use]
            pub fn of(number: u16) -> Option<EventKind> {
                match number {
                    $($number => Some(EventKind::$name),)*
                    _ => None,
                }
            }

            /// What it is called in tables.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self {
                    $(EventKind::$name => $text,)*
                }
            }
        }
    };
}

kinds! {
    /// Span: a function of the C API, `name`; `item` is the variable or [`NO_ITEM`], `offset` the group,
    /// `bytes` what moved in the caller's memory, `code` what the function returned.
    Call = 1 "call",

    /// Span: bytes asked of a storage, at `offset`. Of all operations of a storage, `item` is the
    /// number of the opening in the upper 24 bits, and in the lower 8 how many layers stand above
    /// (0 is what the format asked); `code` is the system's number of an error. `bytes` are those
    /// that were asked for; those beyond the end of the storage are subtracted.
    Read = 16 "read",
    /// Span: bytes given to a storage.
    Write = 17 "write",
    /// Span: a repeated element put into a storage.
    Fill = 18 "fill",
    /// Span: its length, which comes in `offset`.
    Len = 19 "len",
    /// Span: cut or extended to `offset`.
    SetLen = 20 "setlen",
    /// Span: order between what was written before and after.
    Barrier = 21 "barrier",
    /// Span: handed to the device.
    Sync = 22 "sync",
    /// Span: clean copies forgotten.
    Invalidate = 23 "invalidate",
    /// Instant: what the format told of accesses to come: `offset` is the bytes of a record, `bytes`
    /// those of the file; the number of a record's parts is in `code`.
    Advise = 24 "advise",
    /// Instant: a layer was opened; its token is `name`. `bytes` is the length of the storage.
    Open = 25 "open",
    /// Instant: an opening ended.
    Close = 26 "close",
    /// Instant: one more range of the call whose event stands before it.
    ReadMore = 27 "read range",
    /// As `ReadMore`.
    WriteMore = 28 "write range",

    /// Span: a request to a server for `bytes` of a remote file from `offset` on, until all of them were here; `code` is the system's number of an error.
    Request = 29 "request",

    /// Span: chunks fetched from the storage; `bytes` as stored.
    ChunkRead = 32 "chunk read",
    /// Span: a chunk's filters undone; `bytes` as stored, `offset` the bytes that became of them.
    ChunkDecode = 33 "chunk decode",
    /// Span: a chunk filtered; `bytes` before, `offset` the bytes that became of them.
    ChunkEncode = 34 "chunk encode",
    /// Span: one filter, `name`; `bytes` before, `offset` after; `code` is 1 where it was undone.
    Filter = 35 "filter",
    /// Span: elements of a decoded chunk into the caller's memory, conversion included.
    ChunkScatter = 36 "chunk scatter",
    /// Span: the caller's elements into a chunk, conversion included.
    ChunkGather = 37 "chunk gather",
    /// Span: finished chunks given to the storage; `bytes` as stored.
    ChunkWrite = 38 "chunk write",
    /// Instant: a chunk was found in the cache; `bytes` of it.
    ChunkHit = 39 "chunk in cache",
    /// Span: a chunk that waits for more data left memory for a file without a name; `bytes` of it.
    ChunkSpill = 40 "chunk spilled",
    /// Span: its bytes came back from there.
    ChunkFetch = 41 "chunk fetched",

    /// Span: elements converted; `bytes` in the caller's memory.
    Convert = 48 "convert",

    /// Span: waited for the lock of a file.
    WaitLock = 64 "wait: lock",
    /// Span: waited for tasks of the pool of threads.
    WaitPool = 65 "wait: pool",
    /// Span: waited for a chunk that another thread was bringing.
    WaitChunk = 66 "wait: chunk",
    /// Span: waited for other MPI ranks, and for what they send.
    WaitRanks = 67 "wait: ranks",

    /// Instant: write-behind accepted a put; `item` is the variable, `bytes` what was copied.
    QueueAccept = 80 "accepted",
    /// Span: an accepted put was carried out, by whichever thread.
    QueueExecute = 81 "executed",
    /// Span: a put waited because the budget was used up.
    QueueBlocked = 82 "wait: budget",
    /// Span: a call waited for puts accepted before it: a get, sync, redef, close.
    QueueDrain = 83 "wait: queue",
    /// Counter: bytes accepted and not yet carried out, in `offset`.
    QueueBytes = 84 "queue bytes",
    /// Counter: puts accepted and not yet carried out, in `offset`.
    QueueJobs = 85 "queue jobs",

    /// Span: a commit: data first, then what makes it visible.
    Commit = 96 "commit",

    /// Instant: a hint to a file of several ranks, or what the system says of its layout. What it did is `name`, which begins with its key; `offset` is
    /// the number that was given and `bytes` the one in effect, 0 where there is none; `code` is the system's number of an error.
    Hint = 112 "hint",
    /// Span: short runs of a put of several ranks came together at owners of stripes, in one round: `bytes` of this rank that others wrote,
    /// `offset` how many others.
    Exchange = 113 "exchange of runs",

    /// Instant: an I/O server had the values of a get, `bytes`, when a client asked for them: read for another client, or, where `code` is 1, read ahead.
    ReadFound = 120 "read found",
    /// Span: a client of I/O servers handed a call over, `name`, in which it may have waited for room; `bytes` are those of its values.
    ServerTell = 128 "handed over",
    /// Span: a client of I/O servers asked something, `name`, and waited for the answer; `bytes` as above.
    ServerAsk = 129 "wait: I/O server",
    /// Instant: an I/O server took a call, `name`, from the client whose process is `item`; `bytes` of values; `offset` is 1 more than the
    /// client's rank in the file, 0 for a file of this client alone. Of the following three, too.
    ServerTake = 130 "taken",
    /// Span: the call waited in the server, until it began to be carried out.
    ServerQueue = 131 "queued",
    /// Span: it was carried out; `code` is that of the error.
    ServerCall = 132 "carried out",
    /// Span: of the time in the queue, that in which calls of other ranks of the file were waited for.
    ServerGather = 133 "wait: calls of other ranks",
}

/// `item` of events that have none.
pub const NO_ITEM: u32 = u32::MAX;

/// What an event carries; which field means what depends on its [`EventKind`]. Fields that a kind does not
/// name are as [`Args::default`] has them.
#[derive(Debug, Clone, Copy)]
pub struct Args {
    /// The file: what [`file`](crate::file) gave for its path; 0 for none.
    pub file: u32,
    /// The variable, the opening and layer, or [`NO_ITEM`].
    pub item: u32,
    /// Byte of the file, or another number.
    pub offset: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// 0, or what went wrong.
    pub code: i32,
    /// Of a function or filter; empty for none. The text is written once, then a number stands for it.
    pub name: &'static str,
}

impl Default for Args {
    fn default() -> Args {
        Args { file: 0, item: NO_ITEM, offset: 0, bytes: 0, code: 0, name: "" }
    }
}

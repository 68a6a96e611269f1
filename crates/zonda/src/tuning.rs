//! Tuning constants: numbers that change how fast something is or how much memory it takes, and not what it does.
//!
//! Each says its reason, and which bench row shows a change: *overlap* are the rows of `bench/overlap.py`, *copies* rows of
//! `bench/copies.py`, *run* rows of `bench/run.py`.

use std::time::Duration;

// ---- Write-behind: accepting puts ------------------------------------------------------------------------------

/// Bytes of values up to which a put is collected with others: to ask a thread to come for each would cost more
/// than the put. *overlap*.
pub(crate) const SMALL_PUT_BYTES: usize = 64 << 10;

/// Most bytes of small puts that are collected before a thread is asked to carry them out. *overlap*.
pub(crate) const COLLECTED_MAX_BYTES: usize = 256 << 10;

/// Bytes of the first memory in which small puts are collected: a file with few puts takes no more. No row:
/// shows in the memory of the process.
pub(crate) const COLLECTED_FIRST_BYTES: usize = 8 << 10;

/// Bytes that are converted at a time while a put is accepted: they stay in the second-level cache of a core.
/// *overlap*.
pub(crate) const ACCEPT_BLOCK_BYTES: usize = 64 << 10;

/// Most pieces of memory that a budget keeps for later puts. No row: a bound on memory.
pub(crate) const SPARE_PIECES: usize = 256;

/// Most bytes that accepted values take unless the user gives a number. *overlap*, with slow storage.
pub(crate) const WRITE_BEHIND_MAX_BYTES: u64 = 512 << 20;

// ---- Write-behind: carrying puts out ---------------------------------------------------------------------------

/// Files that are written at the same time unless the user gives a number. No row: the cases write one file.
pub(crate) const QUEUE_THREADS: usize = 2;

/// How long a thread without work stays: starting one anew is to be rare. A program whose own threads have all
/// ended ends when the last of these does, so not longer. No row: programs of the benches end by returning from
/// `main`.
pub(crate) const QUEUE_THREAD_IDLE: Duration = Duration::from_millis(500);

/// How long all queues have to be empty before bytes that storage layers have gathered are written, too: what
/// comes shortly after goes with them. *overlap*.
pub(crate) const QUEUE_REST_WAIT: Duration = Duration::from_millis(5);

/// Bytes put to a file that a helper watches after which it is committed, so that memory is given back. This
/// changes when it is committed and nothing else. Formats that count their commits (netCDF-4) commit by their
/// own rule, since more commits would change the file. No row: no case has a helper.
pub(crate) const WATCHED_COMMIT_BYTES: usize = 64 << 20;

/// How long the helper waits in all until somebody makes room on a full device. No row: devices of the benches
/// have room.
pub(crate) const FULL_DEVICE_PATIENCE: Duration = Duration::from_secs(60);

/// The first wait of the helper before it tries a full device again; each is twice as long as the one before.
/// No row: as [`FULL_DEVICE_PATIENCE`].
pub(crate) const FULL_DEVICE_FIRST_WAIT: Duration = Duration::from_millis(100);

/// The longest of these waits. No row: as [`FULL_DEVICE_PATIENCE`].
pub(crate) const FULL_DEVICE_LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Descriptors that the helper keeps free for its own work: memory, a file, its journal, a copy, a folder, and
/// some to spare. No row: a bound on files that are watched.
pub(crate) const HELPER_SPARE_DESCRIPTORS: u64 = 16;

// ---- Copies ----------------------------------------------------------------------------------------------------

/// Bytes of memory for data that a copy takes unless the caller gives a number. *copies*: "maps become series,
/// deflate 1".
pub(crate) const COPY_MEMORY_BYTES: u64 = 256 << 20;

/// How often a copy that may be completed has what is complete on the device, and notes it, at most: each time costs a commit and a sync. What was copied
/// since the last time is copied again where the process is killed. No row.
pub(crate) const COMPLETE_NOTED_EVERY: Duration = Duration::from_secs(2);

/// A longer list of variables that are complete counts as none. No row: a bound for hostile files.
pub(crate) const MOST_COMPLETE_LIST: u64 = 256 << 20;

/// Bytes of definitions that are looked at together. No row.
pub(crate) const COMPLETE_BLOCK_BYTES: usize = 64 << 10;

/// Bytes of a box beyond which a longer one gains nothing: enough for all threads. Two are in memory, one that
/// is being read and one that is being written. *copies*: "deflate 1 becomes 5".
pub(crate) const COPY_BOX_BYTES: u64 = 32 << 20;

/// The same where neither file has filters: there is no work for many threads, and two boxes stay in the caches. 67 MB: 37 ms for 54 with 8 MiB.
/// *copies*: "maps become series, unfiltered".
pub(crate) const COPY_PLAIN_BOX_BYTES: u64 = 2 << 20;

/// The same where the source is on a server. No row: bytes on the way decide.
pub(crate) const COPY_FAR_PLAIN_BOX_BYTES: u64 = 8 << 20;

/// Bytes of a box between two variables without chunks: they stay in the caches of the processor. *copies*:
/// "nothing changes, contiguous".
pub(crate) const COPY_RUN_BYTES: u64 = 4 << 20;

/// Bytes of a box where chunks are missing: shorter ones fit the chunks that are there more closely. No row:
/// variables of the cases are complete.
pub(crate) const COPY_SPARSE_BOX_BYTES: u64 = 1 << 20;

/// Absent chunks that a box may contain for each chunk that the source has: they are read and written, too. No
/// row: as [`COPY_SPARSE_BOX_BYTES`].
pub(crate) const COPY_ABSENT_PER_CHUNK: u64 = 2;

/// Bytes of strings and sequences that wait in the target before it is committed: a bound on memory. No row: no
/// case copies strings.
pub(crate) const COPY_HEAP_BYTES: usize = 32 << 20;

/// Times that each chunk may be decoded before copying through a file in between is less work. *copies*: "maps
/// become series, deflate 1, 16 MB of memory".
pub(crate) const SPILL_DECODES: f64 = 3.0;

/// Shapes of boxes that are compared: a bound on time for high ranks. *copies*: "bricks become series, deflate
/// 1".
pub(crate) const BOX_SHAPES_TRIED: usize = 100_000;

/// Bytes of a run beyond which a longer one is not read faster. *copies*: "series become maps, deflate 1".
pub(crate) const LONG_RUN_BYTES: u64 = 1 << 20;

/// The same of chunks without filters, whose parts are read where they are. Shorter runs come from the page cache as fast, and boxes are smaller:
/// 67 MB 45 ms with 8 KiB, 54 with 24 KiB, 66 with 32 and more. From a disk 335 MB take 0.8 s with 8 KiB, 0.48 with 24, 0.4 with 256.
/// *copies*: "series become maps, unfiltered".
pub(crate) const LONG_PLAIN_RUN_BYTES: u64 = 24 << 10;

/// The same where the source is on a server, which is asked for each. No row: the network decides.
pub(crate) const LONG_FAR_PLAIN_RUN_BYTES: u64 = 256 << 10;

/// Bytes of a run that are copied in the time that it takes to find the run. *copies*: as [`LONG_RUN_BYTES`].
pub(crate) const SHORT_RUN_BYTES: f64 = 8192.0;

/// Bytes of a run from which on it goes to and from the file in between by a call of its own; shorter ones go
/// together. *copies*: the rows with 16 MB of memory.
pub(crate) const SPILL_LONG_RUN_BYTES: usize = 16 << 10;

/// Bytes of short runs that go together: they stay in the caches of the processor. *copies*: the rows with 16
/// MB of memory.
pub(crate) const SPILL_BUFFER_BYTES: usize = 256 << 10;

/// Bytes of a variable from which on ranks divide its copy: an order and its replies take some hundred microseconds. No row: benches have one
/// node.
pub(crate) const DIVIDED_LEAST_BYTES: u64 = 1 << 20;

/// Most boxes that ranks read and filter at a time: a bound on memory where boxes are small. No row: as [`DIVIDED_LEAST_BYTES`].
pub(crate) const DIVIDED_BOXES: usize = 1024;

/// Ranks from which on rank 0 only writes what the others make: there it would hold up all others. No row: as [`DIVIDED_LEAST_BYTES`].
pub(crate) const LEAD_WORKS_BELOW: usize = 8;

/// Boxes that each rank reads in a check before rank 0 notes what was found. No row: as [`DIVIDED_LEAST_BYTES`].
pub(crate) const CHECK_BOXES_EACH: usize = 2;

/// Stored bytes of chunks that are read and written together: they stay in the caches of the processor.
/// *copies*: "nothing changes, deflated maps".
pub(crate) const STORED_BATCH_BYTES: u64 = 1 << 20;

/// Most chunks that are read and written together: a bound on memory where chunks are small. *copies*: as
/// [`STORED_BATCH_BYTES`].
pub(crate) const STORED_BATCH_CHUNKS: usize = 4096;

/// Batches of stored chunks in memory at once, so that one is read while another one is written. *copies*: as
/// [`STORED_BATCH_BYTES`].
pub(crate) const STORED_BATCHES: usize = 3;

/// Most bytes of a chunk of which a rule gives only some lengths. Also decides what is in the file. No row: the
/// cases give all lengths.
pub(crate) const RULED_CHUNK_MAX_BYTES: u64 = 4 << 20;

/// Bytes that were never written from which on a copy does not write them either. Also decides what is in the
/// file. No row: variables of the cases are complete.
pub(crate) const UNWRITTEN_MAX_BYTES: f64 = (64 << 20) as f64;

/// Reads of parts of boxes that failed, after which a part that cannot be read is given up as a whole rather than divided:
/// a bound on time. No row: sound files have none.
pub(crate) const SALVAGE_FAILED_READS: u64 = 1 << 20;

// ---- Comparing and checking ------------------------------------------------------------------------------------

/// Bytes of memory for data that a comparison takes unless the caller gives a number. No row: no bench compares
/// files.
pub(crate) const DIFF_MEMORY_BYTES: u64 = 256 << 20;

/// Bytes of a box of one file beyond which a longer one gains nothing: enough for all threads. No row: no bench
/// compares files.
pub(crate) const DIFF_BOX_BYTES: u64 = 16 << 20;

/// Types within types that are followed: a bound for hostile files. No row: no bench compares files.
pub(crate) const TYPE_MAX_DEPTH: usize = 64;

/// Bytes that a check reads at a time: enough for all threads. No row: no bench checks files.
pub(crate) const CHECK_BOX_BYTES: u64 = 32 << 20;

/// Most bytes that a check reads at a time, where single chunks are that long. No row: no bench checks files.
pub(crate) const CHECK_BOX_MAX_BYTES: u64 = 256 << 20;

/// Bytes of a classic file that a check reads at a time: long enough for the device. No row: no bench checks
/// files.
pub(crate) const CHECK_BLOCK_BYTES: usize = 8 << 20;

/// Findings that are kept, while others are counted: a bound on memory. No row: sound files have none.
pub(crate) const CHECK_FINDINGS: usize = 10_000;

/// Chunks of a variable that are tried one by one where the index of its chunks is damaged: a bound on time. No
/// row: sound files have none.
pub(crate) const DAMAGED_INDEX_CHUNKS: u64 = 1 << 22;

/// Absent chunks that a box may contain for each chunk that is there, where elements are only read. No row: no
/// bench compares or checks files.
pub(crate) const ABSENT_PER_CHUNK: u64 = 64;

/// Bytes that a string or sequence is taken to need with its place in a list, where memory is shared out before
/// its length is known. No row: a bound on memory.
pub(crate) const POINTER_VALUE_BYTES: u64 = 256;

// ---- Single objects, maps, datasets in memory ------------------------------------------------------------------

/// Bytes that a copy of one variable reads and writes at a time, or one element where that is longer: long
/// enough for one large transfer of the device, short enough to be no burden. No row: no bench copies single
/// variables.
pub(crate) const OBJECT_COPY_BLOCK_BYTES: usize = 4 << 20;

/// Bytes of scratch memory of a mapped transfer. A block of this size and what the format makes of it stay in
/// the second-level cache. *run*: "put_varm transposed, 8 MB".
pub(crate) const MAPPED_BLOCK_BYTES: usize = 256 << 10;

/// Bytes that are copied at a time when a dataset in memory is written to its file: long enough for the device.
/// No row: no bench has persistent datasets in memory.
pub(crate) const PERSIST_BLOCK_BYTES: usize = 1 << 20;

// I/O servers.

/// Most bytes of the memory through which a client hands calls to a group of servers: half of `ZONDA_MEMORY` where that is less. Pages that nobody
/// wrote to take no memory. *servers*.
pub(crate) const SERVER_RING_BYTES: usize = 128 << 20;
/// Least bytes of it. No row: a bound on memory.
pub(crate) const SERVER_LEAST_RING_BYTES: usize = 1 << 20;
/// How often a client sees whether its server is there, and how long it sleeps at most while it waits for room.
pub(crate) const SERVER_LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);
/// How long a client waits for the first word of a server.
pub(crate) const SERVER_HELLO_WAIT: std::time::Duration = std::time::Duration::from_secs(30);
/// How long a server sleeps at most before it looks whether its client is there.
pub(crate) const SERVER_SLEEP: std::time::Duration = std::time::Duration::from_millis(100);
/// After how many such sleeps without a call it sleeps until the client says that there is one, which costs the client a message instead of
/// waking a thread. *servers*: the idle rows.
pub(crate) const SERVER_SLEEPS: u32 = 10;
/// Bytes that a call takes in the memory of a server besides its values, about.
pub(crate) const SERVER_CALL_BYTES: usize = 512;
/// Most bytes of calls of one client that wait in a server besides those in the ring; less where many clients share the memory. *servers*.
pub(crate) const SERVER_QUEUE_BYTES: usize = 64 << 20;
/// Least bytes of them. No row: a bound on memory.
pub(crate) const SERVER_LEAST_QUEUE_BYTES: usize = 256 << 10;
/// Bytes of memory that a server keeps for further calls of a client: pages that are new to it cost more than the copy. *servers*: the processor time
/// of the server.
pub(crate) const SERVER_SPARE_BYTES: usize = 16 << 20;
/// Bytes of a call from which on its memory is kept; and the steps in which such memory is taken. *servers*: as [`SERVER_SPARE_BYTES`].
pub(crate) const SERVER_LEAST_BUFFER: usize = 16 << 10;
pub(crate) const SERVER_BUFFER_STEP: usize = 64 << 10;

/// Values of more bytes come to a client as memory, not in a message.
pub(crate) const SERVER_INLINE_BYTES: usize = 32 << 10;
/// Most bytes of results of gets that a server keeps of one file; a quarter of `ZONDA_MEMORY` where that is less.
pub(crate) const SERVER_RESULT_BYTES: u64 = 256 << 20;
/// Most results of gets that a server keeps of one file.
pub(crate) const SERVER_MOST_RESULTS: usize = 64;
/// Most gets that wait to be made ahead in a server.
pub(crate) const SERVER_MOST_AHEAD: usize = 64;
/// Most bytes of memory that a server keeps for the values of later gets, and most pieces of it.
pub(crate) const SERVER_SPARE_SHEET_BYTES: u64 = 64 << 20;
pub(crate) const SERVER_SPARE_SHEETS: usize = 8;

/// Most bytes of a message of MPI to a server: what the server has in memory twice for a while.
pub(crate) const SERVER_MESSAGE_BYTES: usize = 16 << 20;
/// Most bytes of messages of MPI from a client to a server that the server has not taken: as many as wait in a ring.
pub(crate) const SERVER_MESSAGES_BYTES: u64 = 128 << 20;

/// How long a client waits for the server that takes the place of one that has ended, and how often it looks.
pub(crate) const SERVER_NEXT_WAIT: std::time::Duration = std::time::Duration::from_secs(3);
pub(crate) const SERVER_NEXT_POLL: std::time::Duration = std::time::Duration::from_millis(20);

/// How often one who waits until a client's calls were taken looks.
pub(crate) const SERVER_TAKE_POLL: std::time::Duration = std::time::Duration::from_micros(200);

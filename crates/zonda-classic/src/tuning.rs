//! Numbers that change how fast something is, and not what it does. Each says its unit, its reason, and which rows of `bench/run.py`
//! (`--list` shows all of them) change with it.

/// Bytes of external values that are converted at a time: a block and its converted form fit the second-level cache together.
/// Rows: `array 64 MB, short <- float, write`, `array 64 MB, double <- float, read`.
pub(crate) const CONVERTED_BLOCK_BYTES: usize = 256 << 10;

/// The same where other ranks write to the file: writes of one file take turns in the system, and each turn costs more than the
/// second-level cache saves. 122 MB of 8 ranks (ext4): with 64 KiB 145 ms, with 256 KiB 118, with 1 MiB 103. Rows: `bench/parallel.py`,
/// records; one process alone writes `array 64 MB, double <- double, write` 5 % slower with it.
pub(crate) const SHARED_BLOCK_BYTES: usize = 1 << 20;

/// Bytes from one element to the next up to which a strided read reads what lies between, too. Rows: `get_vars stride 2, 512 MB`,
/// `get_vars stride 10, 512 MB`.
pub(crate) const DENSE_STRIDE_BYTES: u64 = 512;

/// Bytes between two runs of a remote file up to which they are asked for together: a block of the cache that they come to. Rows:
/// `bench/remote.py`.
pub(crate) const REMOTE_GAP_BYTES: u64 = 4 << 10;

/// Bytes of a run up to which runs are converted and handed on many at a time. Rows: `put_vars stride 10, 512 MB`,
/// `put_varm transposed, 512 MB`.
pub(crate) const SHORT_RUN_BYTES: usize = 256;

/// The most such runs that are handed on at a time. Rows: as above.
pub(crate) const RUNS_AT_ONCE: usize = 1024;

/// Bytes in memory from which on a converted block is worth an event in a trace, which takes as long as converting a few
/// elements. No row: `bench/trace.py` measures what traces cost.
pub(crate) const TRACED_BYTES: usize = 4096;

/// Bytes of a run up to which it is converted on the stack: a latitude of a climate model's grid. Rows:
/// `history 197 MB, double, ..., write`, `history 197 MB, double, ..., read`.
pub(crate) const STACK_RUN_BYTES: usize = 1024;

/// Bytes of a run up to which only so much of the stack is cleared. No row: runs of the rows have at most 128 bytes, or
/// at least 512.
pub(crate) const LITTLE_RUN_BYTES: usize = 256;

/// Bytes of a run up to which a put needs no stack frame of its own. Rows: `put_vara 16 sequential, 8 MB`.
pub(crate) const TINY_RUN_BYTES: usize = 128;

/// Bytes up to which numbers are swapped one by one: to find the kernel for them takes longer. Rows:
/// `get_vara 4 sequential, 8 MB`.
pub(crate) const NO_KERNEL_BYTES: usize = 32;

/// Bytes of a fixed-size variable from which on it is filled by writes of its own: the commit that follows writes all of it, so
/// much of it need not wait in between. No row: the rows that fill have record variables alone.
pub(crate) const FILLED_BY_WRITES_BYTES: u64 = 256 << 10;

/// Records from which on they are filled together: one put may lie millions of records behind the end. No row: a put far behind
/// the end is rare.
pub(crate) const FILLED_TOGETHER_RECORDS: u64 = 256;

/// Bytes of a record up to which such records are prepared in memory. No row: as above.
pub(crate) const FILLED_RECORD_MAX_BYTES: u64 = 64 << 10;

/// Bytes of such records that are written at a time. No row: as above.
pub(crate) const FILL_BLOCK_BYTES: usize = 1 << 20;

/// Bytes on a multiple of which data begin after a default header: one sector, so that short headers, with the space behind them,
/// are rewritten by one atomic write of a sector on most devices. No row: it decides how safe a rename is, and how long files are.
pub(crate) const DATA_ALIGN_BYTES: u64 = 512;

/// The least bytes that stay free behind a default header: a handful of attributes or two variables. No row: a redefinition that
/// finds no space moves the data.
pub(crate) const HEADER_SPACE_MIN_BYTES: u64 = 256;

/// The most bytes that stay free behind a default header. No row: as above.
pub(crate) const HEADER_SPACE_MAX_BYTES: u64 = 64 << 10;

/// Bytes of data up to which a file without records gets no free space behind its header: moving them is as cheap as writing
/// the header, and small files stay as small as the reference's. No row: as above.
pub(crate) const SMALL_DATA_BYTES: u64 = 4096;

/// Bytes of new records after which a put that begins another one commits those before it. Rows: `history 197 MB, ..., write`.
pub(crate) const COMMIT_BYTES: u64 = 64 << 20;

/// The most pieces in a batch of a move: small records would make long lists. No row: in the rows so much
/// moves that the file is made anew instead.
pub(crate) const BATCH_PIECES: usize = 16 << 10;

/// Bytes between two such pieces up to which they are read, and written, by one call: it takes as long as to copy so much. No row: 4 million
/// pieces of 16 bytes in memory take 0.3 s so, one by one 1.0.
pub(crate) const PIECE_GAP_BYTES: u64 = 4 << 10;

/// The most bytes of such a call. No row: as above.
pub(crate) const PIECES_SPAN_BYTES: u64 = 8 << 20;

/// Bytes of a record up to which a new variable's parts are filled by reading and writing whole records: a call for each part takes longer. No
/// row: as above.
pub(crate) const FILLED_AMONG_RECORD_BYTES: u64 = 8 << 10;

/// Bytes of zeros that are written at a time, where a file grows before its data move. No row: as above.
pub(crate) const ZEROS_BYTES: u64 = 1 << 20;

/// Bytes that are copied at a time, where a file is made anew beside the old one. Rows: `100 bytes more, the
/// reference's file: data must move`.
pub(crate) const COPY_BLOCK_BYTES: usize = 1 << 20;

/// Runs of less than [`HOLE_BYTES`] that are copied together. No row: the file of the row has long ones.
pub(crate) const COPY_PIECES: usize = 4096;

/// Bytes of a run from which on the system copies it from file to file. Row: the same.
pub(crate) const KERNEL_COPY_BYTES: u64 = 4 << 20;

/// Bytes of zeros from which on a copied block is left out: it reads the same, and a file with holes keeps them. No row: the
/// files of the rows have no holes.
pub(crate) const HOLE_BYTES: usize = 64 << 10;

/// Names in a list up to which looking at each is as fast as hashing. Rows: `inq_varid`, `inq_dimid`.
pub(crate) const LINEAR_NAMES: usize = 12;

/// Attributes as they were read up to which each is compared by its first bytes: an index of them would cost more. Rows:
/// `inq_attid`, `get_att_text`, `get_att_double`.
pub(crate) const LINEAR_ATTS: u32 = 32;

/// Bytes of a list of a closed header that are kept for the next header of the thread: less is cheap to have anew, and more
/// would be memory that a program may want for something else. Three such lists are kept. Rows: `open + close, 1000 variables`.
pub(crate) const SPARE_MIN_BYTES: usize = 4 << 10;
pub(crate) const SPARE_MAX_BYTES: usize = 512 << 10;

//! Numbers that change how fast something is, and not what it does. Rows are those of `bench/run.py --list`, `bench/reads.py` and
//! `bench/writes.py`.

/// Bytes of external values that are converted at a time: a block and its converted form fit the second-level cache together.
/// Rows: those of whole variables with another type in memory.
pub(crate) const CONVERTED_BLOCK_BYTES: usize = 256 << 10;

/// Bytes from one element to the next up to which a strided read reads what lies between, too. Rows: those with strides.
pub(crate) const DENSE_STRIDE_BYTES: u64 = 512;

/// Bytes of a run up to which runs are converted and handed on many at a time. Rows: puts of columns.
pub(crate) const SHORT_RUN_BYTES: usize = 256;

/// The most such runs that are handed on at a time. Rows: puts of columns.
pub(crate) const RUNS_AT_ONCE: usize = 1024;

/// Bytes in memory from which on a converted block is worth an event in a trace, which takes as long as converting a few
/// elements. No row: traces are not measured.
pub(crate) const TRACED_BYTES: usize = 4096;

/// Bytes of a run up to which it is converted on the stack: a latitude of a climate model's grid. Rows: small puts and gets.
pub(crate) const STACK_RUN_BYTES: usize = 1024;

/// Bytes of a run up to which only so much of the stack is cleared. Rows: small puts and gets.
pub(crate) const LITTLE_RUN_BYTES: usize = 256;

/// Bytes of a run up to which a put needs no stack frame of its own. Rows: small puts.
pub(crate) const TINY_RUN_BYTES: usize = 128;

/// Bytes up to which numbers are swapped one by one: to find the kernel for them takes longer. Rows: small gets.
pub(crate) const NO_KERNEL_BYTES: usize = 32;

/// Bytes of a fixed-size variable from which on it is filled by writes of its own: the commit that follows writes all of it, so
/// much of it need not wait in between. Rows: files that are created in fill mode.
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

/// Bytes of new records after which a put that begins another one commits those before it. Rows: appended records.
pub(crate) const COMMIT_BYTES: u64 = 64 << 20;

/// The most pieces in a batch of a move: small records would make long lists. No row: moves are rare.
pub(crate) const BATCH_PIECES: usize = 16 << 10;

/// Bytes of zeros that are written at a time, where a file grows before its data move. No row: as above.
pub(crate) const ZEROS_BYTES: u64 = 1 << 20;

/// Bytes that are copied at a time, where a file is made anew beside the old one. No row: as above.
pub(crate) const COPY_BLOCK_BYTES: usize = 1 << 20;

/// Bytes of zeros from which on a copied block is left out: it reads the same, and a file with holes keeps them. No row: as above.
pub(crate) const HOLE_BYTES: usize = 64 << 10;

/// Names in a list up to which looking at each is as fast as hashing. Rows: inquiries by name.
pub(crate) const LINEAR_NAMES: usize = 12;

/// Attributes as they were read up to which each is compared by its first bytes: an index of them would cost more. Rows:
/// attributes by name.
pub(crate) const LINEAR_ATTS: u32 = 32;

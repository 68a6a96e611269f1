//! What documents of DAP2 may be. All of it is far above what real datasets have, and keeps what a hostile server can cost within bounds.

/// Bytes of a DDS, a DAS or an error document.
pub const MAX_DOCUMENT_BYTES: usize = 64 << 20;
/// Variables, containers and fields of a DDS; attributes and sets of a DAS.
pub const MAX_NODES: usize = 1 << 17;
/// Containers in containers.
pub const MAX_DEPTH: usize = 64;
/// Bytes of a name as it is written.
pub const MAX_NAME_BYTES: usize = 4096;
/// Dimensions of one variable, its containers included (`NC_MAX_VAR_DIMS`).
pub const MAX_RANK: usize = 1024;
/// Length of a dimension: XDR counts elements with 32 bits, and the reference takes those of signed numbers.
pub const MAX_DIM_LEN: u64 = i32::MAX as u64;
/// Values of one attribute.
pub const MAX_ATTRIBUTE_VALUES: usize = 1 << 20;
/// Names, slices, conditions and arguments in a constraint.
pub const MAX_CONSTRAINT_WORDS: usize = 1 << 16;
/// Bytes of a body that are decoded at once.
pub const BLOCK_BYTES: usize = 64 << 10;
/// Bytes of a body in which the message of a server is looked for where the body breaks off.
pub const ERROR_BYTES: usize = 64 << 10;
/// Attributes that variables have, in all: a set of attributes can belong to many.
pub const MAX_ATTACHED: usize = 1 << 20;
/// Bytes of names with dots between them: far more than netCDF takes.
pub const MAX_FULL_NAME_BYTES: usize = 1024;
/// Bytes of a message of the server that are shown.
pub const MAX_MESSAGE_BYTES: usize = 1000;
/// Records of a sequence that are counted when a dataset is opened, unless the user sets a limit: a server may send them without end.
pub const MAX_RECORDS: u64 = 1 << 24;

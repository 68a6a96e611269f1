//! DAP4: one document with all definitions, and bodies in chunks.
//! Spec: DAP4, volume 1, <https://opendap.github.io/dap4-specification/DAP4.html>.

pub mod chunks;
pub mod constraint;
pub mod dmr;

mod body;
mod dataset;
mod encode;
mod error;
mod layout;
mod mapping;
mod query;
mod settings;

pub use dataset::{Dap4, open};
pub use encode::{BodyWriter, Form};

/// The attribute of a variable whose values have a checksum behind them.
const CHECKSUM: &str = "_DAP4_Checksum_CRC32";
/// XML attribute of a dimension that can grow.
const IS_UNLIMITED: &str = "_edu.ucar.isunlimited";
/// XML attribute of a sequence that was one of netCDF.
const IS_VLEN: &str = "_edu.ucar.isvlen";
/// XML attribute of an opaque: bytes of the type.
const OPAQUE_SIZE: &str = "_edu.ucar.opaque.size";
/// XML attribute: the name that the type had.
const ORIGINAL_TYPE: &str = "_edu.ucar.orig.type";

#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod answer;
mod error;
mod fill;
mod filter;
pub mod filter_text;
mod ids;
pub mod memory;
mod name;
mod ranks;
pub mod release;
mod types;

pub use answer::Answer;
pub use error::NcError;
pub use fill::{FillBytes, default_fill};
pub use filter::FilterSpec;
pub use ids::{DimId, VarId};
pub use name::{MAX_NAME_BYTES, check_name, normalize_name, shown_name, sought_name};
pub use ranks::SlotRanks;
pub use types::{ExtType, MemType};
pub use zonda_slab::Hyperslab;

/// Largest number of dimensions of a variable (`NC_MAX_VAR_DIMS`, enforced).
pub const MAX_VAR_DIMS: usize = 1024;

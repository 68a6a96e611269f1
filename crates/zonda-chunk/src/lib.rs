#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod error;
pub mod filter;
mod table;

pub use error::ChunkError;
pub use filter::{FilterError, FilterSpec};
pub use table::{ChunkAt, ChunkTable, TableError};

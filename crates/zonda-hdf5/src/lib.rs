#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::panic,
        clippy::cast_possible_truncation
    )
)]

pub mod btree_v1;
pub mod btree_v2;
#[cfg(test)]
mod built;
pub mod checksum;
mod error;
mod file;
pub mod fractal_heap;
mod guard;
mod limits;
pub mod message;
mod reader;
pub mod sohm;
pub mod symbol_table;

pub use error::HdfError;
pub use file::{File, Unfilter};
pub use limits::Limits;
pub use reader::{FileAddr, Reader, Sizes};

/// What decoding gives.
pub type Result<T> = std::result::Result<T, HdfError>;

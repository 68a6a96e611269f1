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

mod error;
mod file;
mod limits;
pub mod message;
mod reader;

pub use error::HdfError;
pub use file::File;
pub use limits::Limits;
pub use reader::{FileAddr, Reader, Sizes};

/// What decoding gives.
pub type Result<T> = std::result::Result<T, HdfError>;

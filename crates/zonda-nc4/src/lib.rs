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

mod attribute;
mod bits;
mod data;
mod definitions;
mod details;
mod dispatch;
mod elsewhere;
mod error;
mod file;
mod files;
mod form;
mod get;
mod hidden;
mod model;
mod names;
mod place;
mod refresh;
mod request;
mod select;
mod stored;
mod types;
mod usage;
mod values;
mod virtual_data;
mod walk;
mod walk_left;
mod write;

pub use error::Nc4Error;
pub use file::{Damaged, FindFilter, Nc4File, OnGaps, OpenHow};
pub use model::{AttInfo, Dim, Gap, Group, Model, Passed, TypeEntry, Var, WhyPassed};
pub use stored::Stored;
pub use write::MOST_FILTER_PARAMS;
pub use write::{CreateHow, NeverWritten, View, recover, recover_of};
pub use zonda_format::{
    Endianness, Fetch, Field, GroupId, Member, Place, Quantize, QuantizeMode, StorageKind,
    StorageRequest, UserClass, UserType, VarInfo, VarRef,
};
pub use zonda_hdf5::HdfError;
pub use zonda_hdf5::journal::Recovered;
pub use zonda_hdf5::usage::{Extent, ExtentKind, Fault, ObjectUsage, Usage};

/// What an operation gives.
pub type Result<T> = std::result::Result<T, Nc4Error>;

#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod file;
mod model;
mod place;

pub use error::Nc4Error;
pub use file::{FindFilter, Nc4File, OpenHow, Owner};
pub use model::{
    AttInfo, Dim, Endianness, Field, Group, GroupId, Model, StorageKind, UserClass, UserType, Var, VarInfo,
};
pub use place::{Place, Target};

/// What an operation gives.
pub type Result<T> = std::result::Result<T, Nc4Error>;

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
mod definitions;
mod details;
mod dispatch;
mod element_form;
mod error;
mod fault;
mod file;
mod file_atts;
mod file_lookup;
mod files;
mod get;
mod get_one;
mod hidden_atts;
mod model;
mod names;
mod refresh;
mod rehearsal;
mod request;
mod select;
mod storage_info;
mod stored;
mod tuning;
mod types;
mod usage;
mod value_target;
mod values;
mod var_data;
mod virtual_data;
mod walk;
mod walk_salvage;
mod write;

pub use error::Nc4Error;
pub use file::{Damaged, FindFilter, Nc4File, Nc4OpenOptions, OnGaps};
pub use model::{AttInfo, Dim, Gap, Group, Model, SkipReason, SkippedObject, TypeEntry, Var};
pub use stored::StorageUse;
pub use write::MOST_FILTER_PARAMS;
pub use write::{Nc4CreateOptions, UnwrittenElements, View, recover, recover_of};
pub use zonda_format::{
    Endianness, Field, GroupId, Member, Quantize, QuantizeMode, StorageKind, StorageRequest,
    UserClass, UserType, VarInfo, VarRef, VlenSink, VlenSource,
};
pub use zonda_hdf5::HdfError;
pub use zonda_hdf5::journal::Recovered;
pub use zonda_hdf5::usage::{ExtentKind, FileUsage, ObjectUsage, UsageFault, UsedExtent};

/// What an operation gives.
pub type Result<T> = std::result::Result<T, Nc4Error>;

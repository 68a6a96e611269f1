#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod capabilities;
mod definitions;
mod dispatch;
mod error;
mod kind;
mod meta;
mod owned_values;
mod parallel;
mod plain_place;
mod pointers;
mod refs;
mod rules;
mod shared_chunks;
mod storage;
mod transfer;
mod types;

pub use capabilities::{Capabilities, DefineMode, Dialect, Unlimited};
pub use definitions::{
    AttView, ClassicVar, Definitions, DimView, Dims, GroupView, Layout, VarView,
};
pub use dispatch::{
    Dispatch, DispatchWrite, Ending, FillMode, Reserve, StoreVars, TypeDefinitions, View,
};
pub use error::{Error, FormatError, Result, remote_code};
pub use kind::{Format, Other};
pub use meta::{Meta, no_such, no_var};
pub use owned_values::OwnedValues;
pub use parallel::{Grown, PieceShape, PutTogether, TeamWrite, UnfilledRun, not_by_several_ranks};
pub use plain_place::{PlainAxis, PlainPlace};
pub use pointers::{Pointers, has_pointers};
pub use refs::{GroupId, VarRef};
pub use rules::{FittingPut, PutRules};
pub use shared_chunks::{
    ChunkPlace, DetachedChunks, FilteredBytes, HeldChunk, MergedChunk, SharedChunk, SharedChunks,
    SharedGrid, SlabBytes, UnfilteredChunk,
};
pub use storage::{
    Endianness, FilterSpec, Quantize, QuantizeMode, StorageKind, StorageRequest, VarInfo,
};
pub use transfer::{
    Access, AttAccess, AttPut, Destination, Transfer, Values, VlenSink, VlenSource,
};
pub use types::{FIRST_USER_TYPE, Field, Member, NC_STRING, UserClass, UserType};

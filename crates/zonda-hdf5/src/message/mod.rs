//! The messages of object headers, one module each, named as the specification names them.

mod data_layout;
mod dataspace;
mod datatype;
mod fill_value;
mod filter_pipeline;
mod link;

pub use data_layout::{ChunkIndexKind, ChunkedLayout, DataLayout};
pub use dataspace::{Dataspace, SpaceKind};
pub use datatype::{
    ByteOrder, Charset, Class, Compound, Datatype, EnumMember, FixedPoint, FloatingPoint, Member,
    Normalisation, Padding, ReferenceKind,
};
pub use fill_value::{AllocTime, FillTime, FillValue};
pub use filter_pipeline::FilterDescription;
pub use link::{Link, LinkTarget};

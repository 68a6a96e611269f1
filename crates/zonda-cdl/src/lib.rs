#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod constant;
mod data;
mod element;
mod fault;
mod infer;
mod kind;
mod lexer;
mod names;
mod parser;
mod schema;
mod source;
mod tuning;

pub use constant::{Constant, NumberConstant, PlacedConstant};
pub use data::{DataSink, DataSlab, Nowhere, stream};
pub use element::{Elements, VlenPieces, attribute, encode, fill, general};
pub use fault::Fault;
pub use kind::FileKind;
pub use parser::{Dialect, parse};
pub use schema::{
    AttributeDef, DimensionDef, Endian, FieldDef, GroupDef, MemberDef, Primitive, Quantizer,
    Schema, StorageLayout, TypeClass, TypeDef, TypeRef, VariableDef, VariableStorage,
};
pub use source::Source;

#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod constant;
mod data;
mod dialect;
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
pub use dialect::Dialect;
pub use element::{Elements, VlenPieces, attribute, encode, fill, general};
pub use fault::CdlFault;
pub use kind::NetCdfKind;
pub use parser::parse;
pub use schema::{
    CdlAttribute, CdlDimension, CdlEnumMember, CdlField, CdlGroup, CdlType, CdlVariable, Endian,
    Primitive, Quantizer, Schema, StorageLayout, TypeClass, TypeRef, VariableStorage,
};
pub use source::CdlText;

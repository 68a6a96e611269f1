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

pub use constant::{Constant, Item, Number};
pub use data::{Nowhere, Sink, Slab, stream};
pub use element::{Elements, Pieces, attribute, encode, fill, general};
pub use fault::Fault;
pub use kind::Kind;
pub use parser::{Dialect, parse};
pub use schema::{
    Attribute, Class, Dimension, Endian, Field, Group, Member, Primitive, Quantizer, Schema,
    Special, Storage, TypeRef, UserType, Variable,
};
pub use source::Source;

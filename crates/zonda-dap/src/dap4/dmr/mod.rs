//! DMR: names, types, shapes and attributes of a dataset, in XML.
//! Spec: DAP4, volume 1, "The DMR".

pub(super) mod names;
mod parse;
mod relative;
mod tree;
mod write;
pub(super) mod xml;

pub use names::At;
pub use tree::{
    Atomic, Attribute, AttributeValue, DimRef, Dimension, Dmr, Enumeration, Group, MOST_DEPTH,
    MOST_OBJECTS, Type, Variable, reserved,
};

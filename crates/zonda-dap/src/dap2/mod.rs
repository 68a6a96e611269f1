//! DAP2: documents, constraints and bodies.
//!
//! Spec: ESE-RFC-004, "The Data Access Protocol: DAP 2.0". Where it leaves something open, libdap and netCDF-C decide.

mod attributes;
pub mod body;
pub mod constraint;
pub mod das;
mod dataset;
pub mod dds;
pub mod encode;
pub mod error;
mod fetch;
pub mod limits;
mod mapping;
mod open;
mod project;
mod records;
mod select;
mod xdr;

pub use dataset::Dap2;
pub use open::open;

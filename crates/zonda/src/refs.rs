//! Which variable is meant.

pub use zonda_format::VarRef;

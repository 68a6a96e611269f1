//! Calls of the C functions, in the trace of the process.

pub(crate) mod calls;
pub(crate) mod files;

//! Storages that hold the bytes themselves.

mod file;
mod memory;

pub use file::File;
pub use memory::Memory;

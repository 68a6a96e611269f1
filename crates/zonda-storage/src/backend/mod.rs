//! Storages that hold the bytes themselves.

mod file;
mod memory;

pub use file::File;
pub(crate) use file::sync_folder_of;
pub use memory::Memory;

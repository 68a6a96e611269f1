//! Storages that hold the bytes themselves.

mod file;
mod memory;

pub use file::File;
pub(crate) use file::{folder_of, sync_folder};
pub use memory::Memory;

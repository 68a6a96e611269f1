//! Where bytes are: positional storage, its backends and its layers.
//!
//! Everything is a [`Storage`]: a flat run of bytes read and written by offset. A *backend* holds
//! the bytes ([`backend::File`], [`backend::Memory`]); a *layer* wraps a storage and is one
//! ([`layer::Cache`], [`layer::Event`], ...). A [`Spec`] such as `cache:64:64,event,file` names a
//! stack from the application down; [`open`] builds it on a file, [`Spec::build_on`] on anything.
//!
//! ```
//! use std::sync::Arc;
//! use zonda_storage::{Spec, Stack, Storage, backend::Memory};
//!
//! let spec: Spec = "cache:1:8,memory".parse()?;
//! let storage = spec.build_on(Arc::new(Memory::new()))?;
//! storage.write_at(10, b"wind")?;
//! assert_eq!(storage.len()?, 14);
//! let mut bytes = [0xff; 6];
//! assert_eq!(storage.read_at(8, &mut bytes)?, 6);
//! assert_eq!(&bytes, b"\0\0wind");
//! assert_eq!(Stack(&*storage).to_string(), "cache:1:8,memory");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! System calls go through the libc symbols, so that outside tracers and fault shims see them.
//! Threads are started only for layers that are named for them, by `zonda-runtime`.
#![deny(unsafe_code)]

pub mod backend;
mod copy;
mod error;
pub mod layer;
pub mod lock;
pub mod neighbour;
mod open;
mod os;
pub mod rc;
mod sidecars;
mod slab;
pub mod spec;
mod storage;
mod striping;
/// What threads meet at. A model puts others in its place.
mod sync {
    pub(crate) use std::sync::atomic;
    pub(crate) use std::thread::JoinHandle;
    pub(crate) use zonda_runtime::{fork, lock, worker};
}
mod sync_level;
mod syncs;
pub mod temporary;
mod told_reads;
mod tuning;
pub mod url;
pub mod whole;

pub use error::{Op, RemoteFailure, StorageError, check_place};
pub use lock::{FileWriter, Locking, MayWrite, WriterLock};
pub use open::{
    Create, DEFAULT_PAGE_BLOCKS, DEFAULT_PAGES, OpenedStorage, StorageOptions, open,
    open_with_sidecars,
};
pub use sidecars::{
    FoundSidecar, Sidecar, SidecarForReader, Sidecars, has_no_descriptor, has_no_room,
    has_no_room_in_file, takes_no_files, write_journal,
};
pub use spec::{Handles, Spec, SpecError};
pub use storage::{
    Advice, DeviceSpace, Leased, ReadRange, RemoteReads, Rows, Stack, Storage, StorageStamp,
    WriteRange, fill_by_writes,
};
pub use striping::{StripedFile, Striping, make_striped};
pub use sync_level::{SyncLevel, UnknownSyncLevel};
pub use told_reads::{RunRanges, ToldReads};

/// The unit of sizes in the spec grammar and the grain at which a killed write may stop, in bytes.
pub const BLOCK_BYTES: u64 = 4096;

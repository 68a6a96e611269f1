//! The file without a name of one writer, and how another one of the process gets its room.
//!
//! On a device that has no room left the data of all files come before chunks that wait. A writer has its own come back to
//! memory; those of others it cannot reach, since a call has that file. But it can have the bytes of their file read into memory, where
//! that writer then finds them, and the file dropped: for that alone each such file has a lock, under which it is read and
//! written, and nothing else is done.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Weak};

use zonda_runtime::lock::{Global, Rank, RwLock};
use zonda_runtime::memory::Kind;
use zonda_storage::backend::File;
use zonda_storage::{DeviceSpace, Storage, StorageError};

use crate::engine::Engine;
use crate::stored::lengthen;

/// A file for chunks that wait.
pub trait SpillFile: Storage {
    /// What the device has that it is on; `None` where nobody knows.
    fn room(&self) -> Option<DeviceSpace>;
}

impl SpillFile for File {
    fn room(&self) -> Option<DeviceSpace> {
        File::room(self)
    }
}

/// The spills of all writers of the process.
static STORES: Global<Vec<Weak<SpillStore>>> = Global::new(Rank::Spills, Vec::new(), Vec::new);

/// The device that a file is on.
fn device_of(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|found| found.dev())
}

/// Has all files that chunks wait in beside data on the device of `path` come to memory, whatever the limit. Whether any did.
pub fn release_spills_on_device(path: &Path) -> bool {
    let Some(device) = device_of(path) else { return false };
    let all: Vec<_> = STORES.lock().iter().filter_map(Weak::upgrade).collect();
    let here = all.iter().filter(|it| it.device == Some(device) && !it.is_inherited());
    let mut any = false;
    // Each of them, also when one did.
    for it in here {
        any |= it.come_to_memory();
    }
    any
}

/// The spilled bytes of one writer: in a file, or in memory once the file had to give its room back.
pub(super) struct SpillStore {
    /// The process that made it: writers of a forked child leave it alone.
    pid: u32,
    device: Option<u64>,
    engine: Arc<Engine>,
    bytes: RwLock<SpillContent>,
}

enum SpillContent {
    File(Arc<dyn SpillFile>),
    Memory(Vec<u8>),
}

impl SpillStore {
    /// A file for chunks of the data at `path`.
    pub(super) fn new(
        file: Arc<dyn SpillFile>,
        path: &Path,
        engine: &Arc<Engine>,
    ) -> Arc<SpillStore> {
        let made = Arc::new(SpillStore {
            pid: zonda_runtime::fork::process_id(),
            device: device_of(path),
            engine: Arc::clone(engine),
            bytes: RwLock::ranked(Rank::Spill, SpillContent::File(file)),
        });
        let mut all = STORES.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&made));
        drop(all);
        made
    }

    pub(super) fn is_inherited(&self) -> bool {
        self.pid != zonda_runtime::fork::process_id()
    }

    /// The space of the device; `None` where it is unknown, and where nothing more may be spilled.
    pub(super) fn room(&self) -> Option<DeviceSpace> {
        match &*self.bytes.read() {
            SpillContent::File(file) => file.room(),
            SpillContent::Memory(_) => None,
        }
    }

    /// Writes; says whether the bytes are in the file now.
    pub(super) fn write_at(&self, at: u64, data: &[u8]) -> bool {
        match &*self.bytes.read() {
            // The barrier says what a server would say only later.
            SpillContent::File(file) => {
                file.write_at(at, data).and_then(|()| file.barrier()).is_ok()
            }
            SpillContent::Memory(_) => false,
        }
    }

    pub(super) fn read_at(&self, at: u64, out: &mut [u8]) -> Result<usize, StorageError> {
        match &*self.bytes.read() {
            SpillContent::File(file) => file.read_at(at, out),
            SpillContent::Memory(bytes) => {
                let from = usize::try_from(at).unwrap_or(usize::MAX);
                let there = bytes.get(from..).unwrap_or(&[]);
                let n = there.len().min(out.len());
                out[..n].copy_from_slice(&there[..n]);
                Ok(n)
            }
        }
    }

    fn come_to_memory(&self) -> bool {
        let mut now = self.bytes.write();
        let SpillContent::File(file) = &*now else { return false };
        let mut bytes = Vec::new();
        let len = file.len().ok().and_then(|len| usize::try_from(len).ok()).filter(|len| *len > 0);
        let is_there = len.is_some_and(|len| {
            lengthen(&mut bytes, len).is_ok()
                && file.read_at(0, &mut bytes).is_ok_and(|got| got == len)
        });
        if is_there {
            self.engine.broker().take_anyway(Kind::Incomplete, bytes.len() as u64);
            *now = SpillContent::Memory(bytes);
        }
        is_there
    }
}

impl Drop for SpillStore {
    fn drop(&mut self) {
        if let SpillContent::Memory(bytes) = self.bytes.get_mut() {
            self.engine.broker().give_back(Kind::Incomplete, bytes.len() as u64);
        }
    }
}

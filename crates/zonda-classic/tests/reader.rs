//! A reader whose storage knows of a length that the file had a moment ago.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use zonda_classic::{ClassicFile, Reserve, Version};
use zonda_format::{Access, Destination, Dispatch, DispatchWrite, GroupId, Transfer, Values};
use zonda_model::Hyperslab;
use zonda_storage::backend::Memory;
use zonda_storage::{Advice, ReadRange, Storage, StorageError, StorageStamp, WriteRange};

/// What a writer does in the middle of a call of the reader.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// A file as a cache sees it: as long as it was when that was asked for, until it is told to forget.
struct Cached {
    below: Arc<Memory>,
    len: AtomicU64,
    /// Done before the header is read, once.
    meanwhile: Mutex<Option<Meanwhile>>,
}

impl fmt::Debug for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cached")
    }
}

impl Storage for Cached {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        if at == 0
            && let Some(meanwhile) = self.meanwhile.lock().unwrap().take()
        {
            meanwhile();
        }
        let len = self.len.load(Ordering::Relaxed).saturating_sub(at);
        let n = buf.len().min(usize::try_from(len).unwrap());
        self.below.read_at(at, &mut buf[..n])
    }
    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        self.below.read_ranges(ranges)
    }
    fn write_at(&self, _: u64, _: &[u8]) -> Result<(), StorageError> {
        unreachable!("a reader")
    }
    fn write_ranges(&self, _: &[WriteRange<'_>]) -> Result<(), StorageError> {
        unreachable!("a reader")
    }
    fn fill_at(&self, _: u64, _: u64, _: &[u8]) -> Result<(), StorageError> {
        unreachable!("a reader")
    }
    fn advise(&self, _: Advice) {}
    fn rest(&self) {}
    fn len(&self) -> Result<u64, StorageError> {
        Ok(self.len.load(Ordering::Relaxed))
    }
    fn set_len(&self, _: u64) -> Result<(), StorageError> {
        unreachable!("a reader")
    }
    fn barrier(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn sync(&self) -> Result<(), StorageError> {
        Ok(())
    }
    fn invalidate(&self) -> Result<(), StorageError> {
        self.len.store(self.below.len()?, Ordering::Relaxed);
        Ok(())
    }
    fn stamp(&self) -> Result<StorageStamp, StorageError> {
        self.below.stamp()
    }
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cached")
    }
}

fn access(var: i32, slab: Hyperslab<'_>) -> Access<'_> {
    Access { var: zonda_model::VarId(var).into(), slab, mem: None }
}

#[test]
fn records_that_a_sync_shows_are_there() {
    let below = Arc::new(Memory::new());
    let mut writer = ClassicFile::create(below.clone(), None, Version::Cdf2, false);
    let time = writer.def_dim(GroupId::ROOT, b"time", 0).unwrap();
    let x = writer.def_dim(GroupId::ROOT, b"x", 4096).unwrap();
    writer.def_var(GroupId::ROOT, b"v", 4, &[time.0, x.0]).unwrap();
    writer.enddef(Reserve::Default).unwrap();
    let cached = Arc::new(Cached {
        len: AtomicU64::new(below.len().unwrap()),
        below,
        meanwhile: Mutex::new(None),
    });
    let mut reader = ClassicFile::open(cached.clone(), None, false, false).unwrap();
    let record: Vec<u8> = (0..4096i32).flat_map(i32::to_ne_bytes).collect();
    let slab = Hyperslab { start: &[0, 0], count: &[1, 4096], stride: None };
    let values = record.clone();
    *cached.meanwhile.lock().unwrap() = Some(Box::new(move || {
        writer
            .shared_put_now(&mut Transfer::new(access(0, slab)), Values::plain(&values))
            .map(drop)
            .unwrap();
        writer.sync().unwrap();
    }));
    reader.sync().unwrap();
    assert_eq!(reader.n_records(), 1, "the writer was at work in the middle of the sync");
    let mut got = vec![0; record.len()];
    reader
        .get_now(&mut Transfer::new(access(0, slab)), Destination::plain(&mut got))
        .map(drop)
        .unwrap();
    assert!(got == record, "the record that the sync shows is not there");
}

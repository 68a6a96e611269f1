//! One object as a storage that is read.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use zonda_storage::{Advice, Op, ReadRange, RemoteReads, Storage, StorageError, StorageStamp, WriteRange};

use crate::objects::{ObjectState, Objects};
use crate::{RemoteError, RemoteUrl};

/// An object, opened for reading.
#[derive(Debug)]
pub struct RemoteFile {
    objects: Arc<dyn Objects>,
    key: String,
    state: ObjectState,
    head: Vec<u8>,
}

/// Bytes that the first request asks for.
const HEAD_BYTES: usize = 256 << 10;

impl RemoteFile {
    /// Opens the object of a URL: one request, which brings the beginning, the length and what tells a change.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn open(objects: Arc<dyn Objects>, url: &RemoteUrl) -> Result<RemoteFile, RemoteError> {
        let key = url.path.clone();
        let mut head = vec![0; HEAD_BYTES];
        let read = objects.get_range(&key, 0, &mut head, None)?;
        head.truncate(read.got);
        Ok(RemoteFile { objects, key, state: read.state, head })
    }

    fn refused(&self, op: Op, at: u64, len: u64) -> StorageError {
        let path = std::path::PathBuf::from(&*self.objects.shown(&self.key));
        StorageError::ReadOnly { path: path.into(), op, at, len }
    }
}

impl RemoteReads for RemoteFile {
    fn will_read(&self, _ranges: &[Range<u64>]) {}
}

impl Storage for RemoteFile {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        let n = usize::try_from(self.state.len.saturating_sub(at)).unwrap_or(usize::MAX).min(buf.len());
        let buf = &mut buf[..n];
        let head = usize::try_from(at).ok().and_then(|at| self.head.get(at..)?.get(..n));
        match head {
            Some(head) => buf.copy_from_slice(head),
            None => {
                self.objects.get_range(&self.key, at, buf, Some(&self.state))?;
            }
        }
        Ok(n)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        for range in ranges {
            range.got = self.read_at(range.at, range.buf)?;
        }
        Ok(())
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        Err(self.refused(Op::Write, at, data.len() as u64))
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        ranges.first().map_or(Ok(()), |range| self.write_at(range.at, range.data))
    }

    fn fill_at(&self, at: u64, len: u64, _element: &[u8]) -> Result<(), StorageError> {
        Err(self.refused(Op::Write, at, len))
    }

    fn advise(&self, _advice: Advice) {}

    fn rest(&self) {}

    fn len(&self) -> Result<u64, StorageError> {
        Ok(self.state.len)
    }

    fn remote(&self) -> Option<&dyn RemoteReads> {
        Some(self)
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        Err(self.refused(Op::SetLen, len, 0))
    }

    fn barrier(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn invalidate(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn stamp(&self) -> Result<StorageStamp, StorageError> {
        Ok(StorageStamp { len: self.state.len, changed: [0; 5] })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("remote")
    }
}

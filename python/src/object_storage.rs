//! Read-only storages over Python objects: an object with `read`, and a buffer of bytes.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use zonda_runtime::lock::{Mutex, Rank};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use zonda::storage::{
    Advice, Op, ReadRange, RemoteFailure, RemoteReads, Storage, StorageError, StorageStamp,
    WriteRange,
};

use crate::ranges::Ranges;

/// Reads by `seek` and `read` of an object, one call at a time; or, of a file of fsspec that is on a server, by calls for many ranges.
///
/// A thread that waits for its turn does not hold the GIL, since the engine is called without it.
pub(crate) struct ObjectReader {
    /// Set for what is on a server.
    ranges: Option<Ranges>,
    turn: Mutex<Py<PyAny>>,
    name: String,
    len: u64,
    /// The exception that the object raised, for the Python call that led to it.
    raised: Mutex<Option<PyErr>>,
}

impl fmt::Debug for ObjectReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ObjectReader {
    /// Asks the object for its name and length. Its position may change.
    pub(crate) fn new(file: Bound<'_, PyAny>) -> PyResult<ObjectReader> {
        let len: u64 = file.call_method1("seek", (0, 2))?.extract().or_else(|_| {
            // Some objects return nothing from `seek`.
            file.call_method0("tell")?.extract()
        })?;
        let named = file.getattr("name").ok().and_then(|name| name.extract::<String>().ok());
        let name = named.unwrap_or_else(|| format!("<{}>", file.get_type()));
        let ranges = Ranges::of_file(&file, len);
        let turn = Mutex::ranked(Rank::Storage, file.unbind());
        Ok(ObjectReader { ranges, turn, name, len, raised: Mutex::ranked(Rank::Cause, None) })
    }

    /// Takes the exception that the object raised since the last call.
    pub(crate) fn take_raised(&self) -> Option<PyErr> {
        self.raised.lock().take()
    }

    fn read_from(&self, file: &Bound<'_, PyAny>, at: u64, buf: &mut [u8]) -> PyResult<usize> {
        file.call_method1("seek", (at,))?;
        let mut got = 0;
        while got < buf.len() {
            let bytes = file.call_method1("read", (buf.len() - got,))?;
            let bytes = bytes.cast::<PyBytes>()?.as_bytes();
            if bytes.is_empty() {
                break;
            }
            let n = bytes.len().min(buf.len() - got);
            buf[got..got + n].copy_from_slice(&bytes[..n]);
            got += n;
        }
        Ok(got)
    }
}

/// Bytes that are read and never change.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// The name of the layer in a layer spec.
    const KIND: &'static str;

    /// For messages.
    fn name(&self) -> &str;

    fn len_bytes(&self) -> u64;

    /// As [`Storage::read_at`].
    fn read(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError>;

    /// As [`Storage::remote`].
    fn remote(&self) -> Option<&dyn RemoteReads> {
        None
    }
}

impl RemoteReads for ObjectReader {
    fn will_read(&self, ranges: &[Range<u64>]) {
        let Some(reader) = &self.ranges else { return };
        // What goes wrong is met again, and told, by the read.
        let _ahead = Python::try_attach(|py| reader.fetch_ahead(py, ranges));
    }

    fn shown(&self) -> Arc<str> {
        Arc::from(&*self.name)
    }
}

impl Source for ObjectReader {
    const KIND: &'static str = "object";

    fn name(&self) -> &str {
        &self.name
    }

    fn len_bytes(&self) -> u64 {
        self.len
    }

    fn remote(&self) -> Option<&dyn RemoteReads> {
        self.ranges.as_ref().map(|_| self as &dyn RemoteReads)
    }

    fn read(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        let len = buf.len() as u64;
        let noted = |py: Python<'_>, error: &PyErr| *self.raised.lock() = Some(error.clone_ref(py));
        let read = match &self.ranges {
            Some(ranges) => Python::try_attach(|py| {
                ranges.read(py, at, buf).inspect_err(|error| noted(py, error))
            }),
            None => {
                let turn = self.turn.lock();
                Python::try_attach(|py| {
                    self.read_from(turn.bind(py), at, buf).inspect_err(|error| noted(py, error))
                })
            }
        };
        match read {
            Some(Ok(got)) => Ok(got),
            // `None` while the interpreter shuts down.
            Some(Err(_)) | None if self.ranges.is_some() => Err(StorageError::Remote {
                url: Arc::from(&*self.name),
                range: Some((at, len)),
                kind: RemoteFailure::Broken,
                status: None,
                what: "its file system raised an exception".into(),
            }),
            Some(Err(_)) | None => {
                let path = Arc::from(Path::new(&self.name));
                Err(StorageError::Io { path, op: Op::Read, at, len, errno: libc::EIO })
            }
        }
    }
}

/// Bytes that Python holds.
#[derive(Debug)]
pub(crate) struct Buffer(pub(crate) PyBackedBytes);

impl Source for Buffer {
    const KIND: &'static str = "bytes";

    fn name(&self) -> &str {
        "<bytes>"
    }

    fn len_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        let from = usize::try_from(at).ok().and_then(|at| self.0.get(at..)).unwrap_or(&[]);
        let n = from.len().min(buf.len());
        buf[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }
}

/// A storage that only reads from a source.
#[derive(Debug)]
pub(crate) struct ReadOnly<S>(pub(crate) S);

impl<S: Source> ReadOnly<S> {
    fn refused(&self, at: u64, len: u64) -> Result<(), StorageError> {
        let path = Arc::from(Path::new(self.0.name()));
        Err(StorageError::ReadOnly { path, op: Op::Write, at, len })
    }
}

impl<S: Source> Storage for ReadOnly<S> {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.0.read(at, buf)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        for range in ranges {
            range.got = self.0.read(range.at, range.buf)?;
        }
        Ok(())
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.refused(at, data.len() as u64)
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        ranges.iter().try_for_each(|range| self.write_at(range.at, range.data))
    }

    fn fill_at(&self, at: u64, len: u64, _: &[u8]) -> Result<(), StorageError> {
        self.refused(at, len)
    }

    fn remote(&self) -> Option<&dyn RemoteReads> {
        self.0.remote()
    }

    fn advise(&self, _: Advice) {}

    fn rest(&self) {}

    fn len(&self) -> Result<u64, StorageError> {
        Ok(self.0.len_bytes())
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.refused(len, 0)
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
        Ok(StorageStamp { len: self.0.len_bytes(), ..StorageStamp::default() })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(S::KIND)
    }
}

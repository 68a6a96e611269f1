//! Objects in memory, for tests: each request takes as long as one is told, and is counted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use zonda_runtime::lock::{Mutex, Rank};
use zonda_storage::RemoteFailure;

use super::{ListedObject, ObjectState, Objects, RangeRead, within};
use crate::RemoteError;

/// Bytes, and which change made them.
type Stored = (Arc<[u8]>, u64);

/// Objects in memory.
#[derive(Debug)]
pub struct MemoryObjects {
    objects: Mutex<BTreeMap<String, Stored>>,
    /// How long each request takes.
    latency: Duration,
    n_changes: AtomicU64,
    /// Ranges that were asked for, in the order of their requests.
    asked: Mutex<Vec<(u64, u64)>>,
}

impl MemoryObjects {
    /// No objects yet; each request takes `latency`.
    #[must_use]
    pub fn new(latency: Duration) -> MemoryObjects {
        MemoryObjects {
            objects: Mutex::ranked(Rank::Failed, BTreeMap::new()),
            latency,
            n_changes: AtomicU64::new(0),
            asked: Mutex::ranked(Rank::Failed, Vec::new()),
        }
    }

    /// Ranges that were asked for until now, first and length, which are forgotten.
    pub fn take_asked(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut *self.asked.lock())
    }

    fn find(&self, key: &str) -> Result<(Arc<[u8]>, ObjectState), RemoteError> {
        std::thread::sleep(self.latency);
        let found = self.objects.lock().get(key).cloned();
        let (bytes, change) = found
            .ok_or_else(|| self.error(key, RemoteFailure::NotFound, "there is no such object"))?;
        let state = ObjectState { len: bytes.len() as u64, validator: format!("\"{change}\"") };
        Ok((bytes, state))
    }

    fn error(&self, key: &str, kind: RemoteFailure, what: &str) -> RemoteError {
        RemoteError::new(&self.shown(key), kind, what)
    }
}

impl Objects for MemoryObjects {
    fn get_range(
        &self,
        key: &str,
        at: u64,
        buf: &mut [u8],
        known: Option<&ObjectState>,
    ) -> Result<RangeRead, RemoteError> {
        self.asked.lock().push((at, buf.len() as u64));
        let (bytes, state) = self.find(key)?;
        if known.is_some_and(|known| *known != state) {
            return Err(self
                .error(key, RemoteFailure::Broken, "the object has changed since it was opened")
                .of_range(at, buf.len() as u64));
        }
        let wanted = within(at..at.saturating_add(buf.len() as u64), state.len);
        let part = usize::try_from(wanted.start)
            .ok()
            .zip(usize::try_from(wanted.end).ok())
            .and_then(|(from, to)| bytes.get(from..to));
        let part = part.unwrap_or_default();
        buf[..part.len()].copy_from_slice(part);
        Ok(RangeRead { got: part.len(), state, whole: None })
    }

    fn get(&self, key: &str, most: u64) -> Result<(Vec<u8>, ObjectState), RemoteError> {
        let (bytes, state) = self.find(key)?;
        if state.len > most {
            return Err(self.error(
                key,
                RemoteFailure::Unusable,
                "the object is longer than what may be read of it",
            ));
        }
        Ok((bytes.to_vec(), state))
    }

    fn put(&self, key: &str, bytes: &[u8]) -> Result<(), RemoteError> {
        std::thread::sleep(self.latency);
        let change = self.n_changes.fetch_add(1, Ordering::Relaxed);
        self.objects.lock().insert(key.to_owned(), (bytes.into(), change));
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, RemoteError> {
        std::thread::sleep(self.latency);
        let objects = self.objects.lock();
        let found = objects.iter().filter(|(key, _)| key.starts_with(prefix));
        Ok(found
            .map(|(key, (bytes, _))| ListedObject { key: key.clone(), len: bytes.len() as u64 })
            .collect())
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        std::thread::sleep(self.latency);
        self.objects.lock().remove(key);
        Ok(())
    }

    fn shown(&self, key: &str) -> Arc<str> {
        format!("memory://{key}").into()
    }
}

//! `throttle:BANDWIDTH[:LATENCY][:shared]`: the pace of a slower device.
//!
//! BANDWIDTH is in bytes per second (`k`, `M`, `G` may follow), LATENCY a time such as `5ms`. All
//! callers share the bandwidth of a file; with `shared` all files of the process do, as they would share the device. The latency is each call's own.

use crate::forward;
use crate::spec::{Below, Building, LayerSpec, Registered, SpecArgs, SpecError, size_text};
use crate::storage::fill_by_writes;
use crate::{ReadRange, Storage, StorageError, WriteRange};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zonda_runtime::lock::{Global, Mutex, Rank};

/// How a spec names this layer.
pub(super) const REGISTERED: Registered = Registered { name: "throttle", parse };

/// Latencies beyond this are taken for a slip.
const MAX_LATENCY: Duration = Duration::from_secs(60);

fn parse(args: &mut SpecArgs<'_>) -> Result<Arc<dyn LayerSpec>, SpecError> {
    let argument = args.required("a bandwidth in bytes per second")?;
    let bytes_per_s = args.bytes(argument)?;
    if !(1..=1 << 50).contains(&bytes_per_s) {
        return Err(args.out_of_range(argument, "the bandwidth", "1 to 1048576G bytes per second"));
    }
    let (mut latency, mut next) = (Duration::ZERO, args.next());
    if let Some(argument) = next.filter(|argument| *argument != SHARED) {
        latency = args.time(argument)?;
        if latency > MAX_LATENCY {
            return Err(args.out_of_range(argument, "the latency", "at most 60s"));
        }
        next = args.next();
    }
    if let Some(argument) = next.filter(|argument| *argument != SHARED) {
        return Err(args.bad(argument, "the word `shared`"));
    }
    args.end()?;
    Ok(Arc::new(ThrottleSpec { bytes_per_s, latency, is_shared: next.is_some() }))
}

/// The argument of a bandwidth that all files of the process share.
const SHARED: &str = "shared";

/// When the device of all such files will have done all that it was given.
static BUSY_UNTIL: Global<Option<Instant>> = Global::new(Rank::Layer, None, || None);

#[derive(Debug, Clone, Copy)]
struct ThrottleSpec {
    bytes_per_s: u64,
    latency: Duration,
    is_shared: bool,
}

impl fmt::Display for ThrottleSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "throttle:{}", size_text(self.bytes_per_s))?;
        let us = self.latency.as_micros();
        match us {
            0 => Ok(()),
            _ if us.is_multiple_of(1_000_000) => write!(f, ":{}s", us / 1_000_000),
            _ if us.is_multiple_of(1000) => write!(f, ":{}ms", us / 1000),
            _ => write!(f, ":{us}us"),
        }?;
        if self.is_shared { write!(f, ":{SHARED}") } else { Ok(()) }
    }
}

impl LayerSpec for ThrottleSpec {
    fn build(&self, below: Below, _: &mut Building<'_>) -> Result<Below, StorageError> {
        let throttle = Throttle::new(below, self.bytes_per_s, self.latency);
        Ok(Arc::new(Throttle { pace: *self, ..throttle }))
    }

    fn buffers(&self) -> bool {
        false
    }
}

/// The layer, of one file.
#[derive(Debug)]
pub struct Throttle<S> {
    inner: S,
    pace: ThrottleSpec,
    /// When the device will have done all it was given.
    busy_until: Mutex<Option<Instant>>,
}

impl<S: Storage> Throttle<S> {
    /// Wraps `inner`; a bandwidth of 0 is taken as 1 byte per second.
    pub fn new(inner: S, bytes_per_s: u64, latency: Duration) -> Self {
        let pace = ThrottleSpec { bytes_per_s: bytes_per_s.max(1), latency, is_shared: false };
        Throttle { inner, pace, busy_until: Mutex::ranked(Rank::Layer, None) }
    }

    /// Waits as long as the device would need for `len` bytes.
    fn wait(&self, len: usize) {
        let seconds = len as f64 / self.pace.bytes_per_s as f64;
        let takes = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let now = Instant::now();
        let after = |busy_until: &mut Option<Instant>| {
            let begin = busy_until.map_or(now, |until| until.max(now));
            *busy_until.insert(begin.checked_add(takes).unwrap_or(begin))
        };
        let done = match self.pace.is_shared {
            true => after(&mut BUSY_UNTIL.lock()),
            false => after(&mut self.busy_until.lock()),
        };
        std::thread::sleep(done.saturating_duration_since(now) + self.pace.latency);
    }
}

impl<S: Storage> Storage for Throttle<S> {
    forward! { this => this.inner; advise, rest, len, most_len, has_other_writers, remote, barrier, invalidate, stamp }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.wait(buf.len());
        self.inner.read_at(at, buf)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        self.wait(ranges.iter().map(|r| r.buf.len()).sum());
        self.inner.read_ranges(ranges)
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.wait(data.len());
        self.inner.write_at(at, data)
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        self.wait(ranges.iter().map(|r| r.data.len()).sum());
        self.inner.write_ranges(ranges)
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        fill_by_writes(self, at, len, element)
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.wait(0);
        self.inner.set_len(len)
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.wait(0);
        self.inner.sync()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},", self.pace)?;
        self.inner.describe(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use zonda_runtime::worker::{self, Purpose};

    /// However many files there are, the device needs its time for all of them: a bound from below, whatever the machine does.
    #[test]
    fn files_share_a_device() {
        let spec = Spec::parse("throttle:1M:shared,memory").unwrap();
        let files = [(); 3].map(|()| spec.build_in_memory().unwrap());
        let began = Instant::now();
        std::thread::scope(|scope| {
            for file in &files {
                let write = || file.write_at(0, &[1; 32 << 10]).unwrap();
                worker::spawn_scoped(scope, String::new(), Purpose::WriteBehind, write).unwrap();
            }
        });
        assert!(began.elapsed() >= Duration::from_secs(1) * 3 * 32 / 1024);
    }
}

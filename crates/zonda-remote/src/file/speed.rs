//! How fast the way to the server is, as far as requests have shown.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::tuning::{BLOCK_BYTES, FIRST_LATENCY, FIRST_RATE, MOST_GAP_BYTES, MOST_REQUESTS};

/// What was measured. Threads note at the same time; a lost note changes nothing but speed.
#[derive(Debug)]
pub(super) struct Speed {
    /// Nanoseconds of the quickest request for few bytes; 0 before there was one.
    latency: AtomicU64,
    /// Bytes a second of the best request for many bytes, without the latency; 0 before there was one.
    rate: AtomicU64,
}

impl Speed {
    pub(super) const fn new() -> Speed {
        Speed { latency: AtomicU64::new(0), rate: AtomicU64::new(0) }
    }

    /// A request for so many bytes took so long.
    pub(super) fn note(&self, bytes: u64, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        if bytes <= BLOCK_BYTES {
            let known = self.latency.load(Ordering::Relaxed);
            if known == 0 || nanos < known {
                self.latency.store(nanos, Ordering::Relaxed);
            }
            return;
        }
        let moving = took.saturating_sub(self.latency()).as_secs_f64().max(1e-6);
        let rate = (bytes as f64 / moving) as u64;
        if rate > self.rate.load(Ordering::Relaxed) {
            self.rate.store(rate, Ordering::Relaxed);
        }
    }

    fn latency(&self) -> Duration {
        match self.latency.load(Ordering::Relaxed) {
            0 => FIRST_LATENCY,
            nanos => Duration::from_nanos(nanos),
        }
    }

    fn rate(&self) -> f64 {
        match self.rate.load(Ordering::Relaxed) {
            0 => FIRST_RATE,
            rate => rate as f64,
        }
    }

    /// The longest gap that costs less than a request more: several requests are under way at a time, so a request more costs a part of the latency.
    pub(super) fn gap(&self) -> u64 {
        let bytes = self.latency().as_secs_f64() * self.rate() / MOST_REQUESTS as f64;
        (bytes as u64).clamp(4096, MOST_GAP_BYTES)
    }

    /// Seconds that requests take together, by all that is known.
    pub(super) fn seconds(&self, n_requests: usize, bytes: u64) -> f64 {
        let rounds = n_requests.div_ceil(MOST_REQUESTS) as f64;
        rounds * self.latency().as_secs_f64() + bytes as f64 / self.rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_grow_with_latency_and_rate() {
        let speed = Speed::new();
        let unknown = speed.gap();
        speed.note(1000, Duration::from_micros(100));
        let near = speed.gap();
        assert!(near < unknown, "{near} {unknown}");
        speed.note(10 << 20, Duration::from_millis(2));
        assert!(speed.gap() > near, "a fast way makes gaps cheap");
        let far = Speed::new();
        far.note(1000, Duration::from_secs(2));
        far.note(100 << 20, Duration::from_secs(3));
        assert_eq!(far.gap(), MOST_GAP_BYTES);
    }
}

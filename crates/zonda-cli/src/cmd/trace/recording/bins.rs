//! Amounts over time in a bounded number of bins: when time goes on, neighbours become one.

use crate::tuning::{BINS, FINEST_BIN_NS, LEVEL_POINTS};

/// Amounts by time.
#[derive(Debug, Clone)]
pub(super) struct Bins {
    /// Nanoseconds of a bin.
    width: u64,
    amounts: Vec<f64>,
}

impl Default for Bins {
    fn default() -> Bins {
        Bins { width: FINEST_BIN_NS, amounts: Vec::new() }
    }
}

impl Bins {
    /// Adds an amount, spread evenly over the time it took.
    pub(super) fn add(&mut self, begin_ns: u64, end_ns: u64, amount: f64) {
        let end_ns = end_ns.max(begin_ns);
        while end_ns / self.width >= BINS as u64 {
            self.width *= 2;
            let pairs = self.amounts.chunks(2);
            self.amounts = pairs.map(|pair| pair.iter().sum()).collect();
        }
        // The loop above makes sure that this is below BINS.
        let (first, last) = ((begin_ns / self.width) as usize, (end_ns / self.width) as usize);
        if self.amounts.len() <= last {
            self.amounts.resize(last + 1, 0.0);
        }
        let took = (end_ns - begin_ns) as f64;
        for (bin, sum) in self.amounts.iter_mut().enumerate().take(last + 1).skip(first) {
            let from = bin as u64 * self.width;
            let to = from.saturating_add(self.width);
            let part = to.min(end_ns).saturating_sub(from.max(begin_ns)) as f64;
            *sum += if first == last { amount } else { amount * part / took };
        }
    }

    /// For each bin its middle in seconds, and the amount per second.
    pub(super) fn rates(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let seconds = self.width as f64 / 1e9;
        let bins = self.amounts.iter().enumerate();
        bins.map(move |(bin, sum)| ((bin as f64 + 0.5) * seconds, sum / seconds))
    }

    /// Nanoseconds of a bin.
    pub(super) fn width_ns(&self) -> u64 {
        self.width
    }

    /// The amounts in bins of another width, which is that of other bins and no less than here.
    pub(super) fn in_bins_of(&self, width_ns: u64) -> Vec<f64> {
        // Widths are doubles of the finest.
        let together = usize::try_from(width_ns / self.width).unwrap_or(BINS).clamp(1, BINS);
        self.amounts.chunks(together).map(|chunk| chunk.iter().sum()).collect()
    }

    /// Whether nothing was added.
    pub(super) fn is_empty(&self) -> bool {
        self.amounts.iter().all(|amount| *amount == 0.0)
    }
}

/// A number that changes over time, in a bounded number of points. Of neighbouring points the
/// highest is kept.
#[derive(Debug, Clone, Default)]
pub(super) struct LevelOverTime {
    points: Vec<(u64, u64)>,
    /// One point in so many is kept.
    every: usize,
    waiting: Vec<(u64, u64)>,
    pub(super) most: u64,
    /// When it was first that high.
    pub(super) most_at_ns: u64,
}

impl LevelOverTime {
    pub(super) fn add(&mut self, at_ns: u64, value: u64) {
        if value > self.most || value == self.most && at_ns < self.most_at_ns {
            (self.most, self.most_at_ns) = (value, at_ns);
        }
        self.waiting.push((at_ns, value));
        if self.waiting.len() >= self.every.max(1) {
            self.keep();
        }
        if self.points.len() >= LEVEL_POINTS {
            self.every = self.every.max(1) * 2;
            let pairs = std::mem::take(&mut self.points);
            let highest = |pair: &[(u64, u64)]| pair.iter().copied().max_by_key(|point| point.1);
            self.points = pairs.chunks(2).filter_map(highest).collect();
        }
    }

    fn keep(&mut self) {
        let highest = self.waiting.iter().copied().max_by_key(|point| point.1);
        self.waiting.clear();
        self.points.extend(highest);
    }

    /// Seconds and values, in the order of time.
    pub(super) fn points(&self) -> Vec<(f64, f64)> {
        let all = self.points.iter().chain(self.waiting.last());
        let mut all: Vec<(u64, u64)> = all.copied().collect();
        all.sort_unstable();
        let mut points: Vec<(f64, f64)> = Vec::with_capacity(2 * all.len());
        for (at, value) in all {
            // The number holds until the next point.
            let (at, value) = (at as f64 / 1e9, value as f64);
            points.extend(points.last().map(|before| (at, before.1)));
            points.push((at, value));
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_kept_whatever_the_bins() {
        let mut bins = Bins::default();
        bins.add(0, 0, 5.0);
        bins.add(500, 2500, 8.0);
        assert_eq!(bins.amounts, [5.0 + 2.0, 4.0, 2.0]);
        bins.add(3_600_000_000_000, 3_600_000_000_001, 3.0);
        assert!(bins.amounts.len() <= BINS, "{}", bins.amounts.len());
        let seconds = bins.width as f64 / 1e9;
        let sum: f64 = bins.rates().map(|(_, rate)| rate * seconds).sum();
        assert!((sum - 16.0).abs() < 1e-6, "{sum}");
        let twice = bins.in_bins_of(bins.width_ns() * 2);
        assert_eq!(twice.len(), bins.amounts.len().div_ceil(2));
        assert!((twice.iter().sum::<f64>() - 16.0).abs() < 1e-6, "{twice:?}");
        // A transfer that takes hours is no longer a loop than the bins are many.
        bins.add(0, u64::MAX, 1.0);
        assert!(bins.amounts.len() <= BINS);
    }

    #[test]
    fn peaks_of_levels_stay() {
        let mut level = LevelOverTime::default();
        for i in 0..100_000 {
            level.add(i, if i == 77_777 { 1_000_000 } else { i % 7 });
        }
        let points = level.points();
        assert!(points.len() <= 2 * LEVEL_POINTS + 1 && points.is_sorted_by(|a, b| a.0 <= b.0));
        assert!(points.iter().any(|point| point.1 == 1e6));
        assert_eq!((level.most, level.most_at_ns), (1_000_000, 77_777));
    }
}

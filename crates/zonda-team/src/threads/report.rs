//! Who waits where, in words.

use std::fmt;
use std::time::Duration;

use crate::tuning;

/// A rank has waited long for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Who waits.
    pub rank: usize,
    /// Of how many ranks.
    pub size: usize,
    /// The call that it is in.
    pub call: String,
    /// The file that the call is about.
    pub file: String,
    /// How long it has waited for one message.
    pub waited: Duration,
    /// The rank whose message it waits for, if it is of a certain one.
    pub awaits: Option<usize>,
    /// The ranks that have not come to this step, in their order. Where all have come, one of them stopped in it.
    pub absent: Vec<usize>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { rank, size, call, file, waited, awaits, absent } = self;
        let seconds = whole_seconds(*waited);
        write!(f, "{call} of {file}: rank {rank} of {size} has waited {seconds} s")?;
        if let Some(awaited) = awaits {
            write!(f, " for rank {awaited}")?;
        }
        if absent.is_empty() {
            return write!(f, "; all ranks have come to this call, and one has stopped in it");
        }
        write!(f, "; not yet in this call: {}", Runs(absent))
    }
}

/// Seconds, of which a part counts as one.
pub(super) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Numbers in their order, as `3, 5-9`.
struct Runs<'a>(&'a [usize]);

impl fmt::Display for Runs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut n_named = 0;
        let runs = self.0.chunk_by(|a, b| a + 1 == *b);
        for (i, run) in runs.take(tuning::MOST_NAMED_RUNS).enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            n_named += run.len();
            match run {
                [one] => write!(f, "{comma}{one}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        match self.0.len() - n_named {
            0 => Ok(()),
            n_more => write!(f, " and {n_more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_who_is_not_there() {
        let mut report = Report {
            rank: 3,
            size: 64,
            call: "nc_enddef".into(),
            file: "x.nc".into(),
            waited: Duration::from_millis(60_001),
            awaits: Some(5),
            absent: vec![5, 7, 8, 9, 11],
        };
        let text = "nc_enddef of x.nc: rank 3 of 64 has waited 61 s for rank 5; not yet in this call: 5, 7-9, 11";
        assert_eq!(report.to_string(), text);
        report.absent = (0..64).step_by(2).collect();
        assert!(report.to_string().ends_with(": 0, 2, 4, 6, 8, 10, 12, 14 and 24 more"));
        report.absent.clear();
        report.awaits = None;
        let text = "nc_enddef of x.nc: rank 3 of 64 has waited 61 s; all ranks have come to this call, and one has stopped in it";
        assert_eq!(report.to_string(), text);
    }
}

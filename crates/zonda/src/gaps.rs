//! What the definitions of a file lack, since it is in other files that are refused or cannot be read.
//!
//! Opening and inquiring such a file succeeds all the same. A library that is built on this one can have the gaps
//! reported.

use std::path::Path;

use zonda_model::{Answer, NcError};
use zonda_nc4::Gap;
use zonda_runtime::Settled;

use crate::error::Error;

/// Called with what definitions lack, in the thread whose call reads them.
static ON_GAP: Settled<fn(Error)> = Settled::new();

/// Gaps that one message names.
const MOST_NAMED: usize = 8;

/// Sets the function that is called whenever definitions that were read lack something, for the whole process. Only
/// the first call sets it.
///
/// See [`Gap`](crate::Gap).
pub fn report_gaps(on_gap: fn(Error)) {
    // A function that was set before stays.
    ON_GAP.settle(on_gap);
}

/// Reports the gaps of the file at `path`.
pub(crate) fn report(path: &Path, gaps: &[Gap]) {
    let (Some(on_gap), false) = (ON_GAP.get(), gaps.is_empty()) else { return };
    let named: Vec<String> = gaps.iter().take(MOST_NAMED).map(Gap::to_string).collect();
    let mut text = format!("left out: {}", named.join("; "));
    if let Some(more @ 1..) = gaps.len().checked_sub(MOST_NAMED) {
        text.push_str(&format!("; and {more} more"));
    }
    on_gap(Error::answered(NcError::HdfErr, Answer::Missing, text).at(path));
}

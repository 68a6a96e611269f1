//! What the definitions of a file lack, since it is in other files that are refused or cannot be read.
//!
//! Opening and inquiring such a file succeeds all the same. A library that is built on this one can ask to be told of the gaps.

use std::path::Path;

use zonda_model::{Answer, NcError};
use zonda_nc4::Gap;
use zonda_runtime::Settled;

use crate::error::Error;

/// Told of what definitions lack, in the thread whose call reads them.
static ON_GAP: Settled<fn(Error)> = Settled::new();

/// Gaps that one message names.
const MOST_NAMED: usize = 8;

/// Has `on_gap` called whenever definitions that were read lack something. The first call counts, for the
/// whole process.
pub fn report_gaps(on_gap: fn(Error)) {
    // Another one stays.
    ON_GAP.settle(on_gap);
}

/// Tells of the gaps of the file at `path`.
pub(crate) fn report(path: &Path, gaps: &[Gap]) {
    let (Some(on_gap), false) = (ON_GAP.get(), gaps.is_empty()) else { return };
    let named: Vec<String> = gaps.iter().take(MOST_NAMED).map(Gap::to_string).collect();
    let mut text = format!("left out: {}", named.join("; "));
    if let Some(more @ 1..) = gaps.len().checked_sub(MOST_NAMED) {
        text.push_str(&format!("; and {more} more"));
    }
    on_gap(Error::answered(NcError::HdfErr, Answer::Missing, text).at(path));
}

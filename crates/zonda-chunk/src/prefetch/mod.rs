//! What a program is about to ask for: seen from its last requests, decoded in the background.
//!
//! Requests of the same shape that move along one dimension by the same step are taken for a walk.
//! After three of them the chunks that the walk comes to next are decoded by threads that have
//! nothing else to do, as far as the budget allows. Errors there are dropped: the request for that
//! chunk meets them again.
//!
//! `pattern` sees walks: it knows requests, and no thread. `work` decodes: it knows chunks and what becomes of them meanwhile,
//! and nothing of requests but how far the walk is.

mod pattern;
mod work;

pub(crate) use pattern::{AccessPattern, Observation};
pub(crate) use work::{BackgroundDecoding, PrefetchBox};

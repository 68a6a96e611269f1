//! How calls come to the server of a file.

use std::fmt::Debug;

use zonda_convert::Converted;
use zonda_format::{Error, Result};

use crate::call::{Call, Told};

/// What carries the calls of one client about one file to its server, in the order in which they are made.
///
/// A call that is *told* is carried out later: the client goes on. Of a call that is *asked* the client waits for the reply, and so for all
/// calls before it.
pub trait Line: Send + Sync {
    /// Hands a call over, with so many bytes of values, which `fill` writes to where they are carried from. Waits only while the
    /// server has taken so little of what was handed over that there is no room.
    ///
    /// # Errors
    /// `NC_ENOMEM` for values that never have room; `NC_EIO` where the server is gone; what `fill` gives: then the call is not made.
    fn tell(
        &self,
        told: &Told,
        n_bytes: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()>;

    /// Hands a call over, and waits for the reply.
    ///
    /// # Errors
    /// That of the call; `NC_EIO` where the server is gone.
    fn ask(&self, call: &Call, values: &[u8]) -> Result<Reply>;

    /// The first thing that went wrong with calls that were told, unless it was given before.
    fn failure(&self) -> Option<Error>;
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl std::fmt::Debug for dyn Line + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Line")
    }
}

/// What a call gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Values that did not fit.
    pub converted: Converted,
    /// Values of a get: as they are in memory, or with what they point to ([`OwnedValues::write_to`](zonda_format::OwnedValues::write_to)).
    pub values: Vec<u8>,
    /// The lengths that a variable has, where they were asked for.
    pub shape: Vec<usize>,
}

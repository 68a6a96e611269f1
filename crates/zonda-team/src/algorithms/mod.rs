//! The steps of a team, made of messages between two ranks at a time.
//!
//! Each is written once, over [`Links`], and does its work in rounds, of which there are about log2(n) at n ranks: no rank sends
//! to, or hears from, more others than that. Only the messages that an exchange is asked to carry come on top. The rounds are:
//!
//! | Step | Way | Messages that a rank sends |
//! |---|---|---|
//! | [`broadcast`] | binomial tree | at most ceil(log2 n), n - 1 in all |
//! | [`reduce`] | recursive doubling; ranks above the greatest power of two give theirs to one below it | at most floor(log2 n) + 1 |
//! | [`scan`] | ranks at distance 1, 2, 4, ... | at most ceil(log2 n) |
//! | [`gather`] | binomial tree | 1; the root none |
//! | [`exchange`] | the counts of messages, in halves; then the messages | ceil(log2 n), and those it was given for others |
//!
//! The messages of two steps must not be confused. Who implements [`Links`] numbers steps, or relies on the order of messages between
//! each two ranks: a rank has sent all of one step before it sends any of the next one, so [`Links::receive`] finds the right ones.
//! [`Links::receive_any`] does, too: nobody sends data of an exchange before all ranks have come to it.

mod exchange;
mod packing;
mod trees;

use crate::TeamError;

pub use exchange::exchange;
pub use trees::{broadcast, gather, reduce, scan};

/// Tells apart the messages of one step: the round in which they are sent. Below 128, so that any carrier has room for it.
pub type Tag = u32;

/// Messages from rank to rank within one step, whoever carries them.
///
/// Messages of one rank to another one with the same tag arrive in the order in which they were sent. Lengths are 64-bit.
pub trait Links {
    /// Which of the ranks this is, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are, at least 1.
    fn size(&self) -> usize;

    /// Sends bytes to another rank, and does not wait until that one receives them: all ranks may send first and receive then.
    ///
    /// # Errors
    /// See [`TeamError`].
    fn send(&self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), TeamError>;

    /// Waits for the next bytes of one rank.
    ///
    /// # Errors
    /// See [`TeamError`].
    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>, TeamError>;

    /// Waits for the next bytes of any rank, and says whose they are.
    ///
    /// # Errors
    /// See [`TeamError`].
    fn receive_any(&self, tag: Tag) -> Result<(usize, Vec<u8>), TeamError>;

    /// [`TeamError::Failed`], with the call and the file of the step.
    fn failed(&self, what: String) -> TeamError;
}

/// How many rounds reach all of `n` ranks when each doubles how many were reached: ceil(log2 n).
#[must_use]
pub const fn rounds(n: usize) -> u32 {
    match n {
        0 | 1 => 0,
        _ => (n - 1).ilog2() + 1,
    }
}

/// A rank that there is, or an error that says which there are.
fn check_rank(links: &(impl Links + ?Sized), rank: usize, what: &str) -> Result<(), TeamError> {
    if rank < links.size() {
        return Ok(());
    }
    let most = links.size() - 1;
    Err(links.failed(format!("{what} is to be a rank from 0 to {most}, and is {rank}")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn rounds_are_the_logarithm() {
        let expected = [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10), (1025, 11)];
        for (n, rounds) in expected {
            assert_eq!(super::rounds(n), rounds, "{n}");
        }
    }
}

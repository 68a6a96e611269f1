//! Ranks that work on one file together, and what they say to each other.
//!
//! A [`Team`] is what parallel files need of MPI, and no more: who one is, broadcasts, reductions, scans, and a sparse
//! exchange of byte messages. [`Alone`] is a team of one, whose steps are empty. [`threads`] simulates teams of up to 1,024 ranks in
//! one process, counts their messages and makes things go wrong; [`model`] says how long as many messages take on a machine that is not
//! there. [`spread`] has ranks as threads of several processes. [`algorithms`] has the steps over messages of two ranks. [`agree`] is the first step of most calls: do all ranks make the
//! same one? By [`tell_all`] all ranks learn what each has to say. MPI itself is in `zonda-mpi`, the only crate that knows it.
//!
//! Every method that communicates is a *step*: all ranks of the team call the same steps in the same order. A step has a [`Step`],
//! which says what the rank is doing; who waits for others tells it to its user.
#![forbid(unsafe_code)]

mod agreement;
pub mod algorithms;
mod alone;
pub mod model;
mod patience;
pub mod spread;
mod telling;
pub mod threads;
pub mod traffic;
mod tuning;

use std::time::Duration;

pub use agreement::{Agreed, Differing, Mine, agree, agree_and_reduce};
pub use alone::Alone;
pub use patience::{WaitClock, named_ranks};
pub use telling::tell_all;
pub use traffic::{Count, Kind, Traffic};

/// What a rank is doing while it waits for others: for messages.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The call, such as `nc_enddef`.
    pub call: &'a str,
    /// The file.
    pub file: &'a str,
}

/// Why ranks could not come together. After any of these but [`TeamError::Refused`] the team is of no use: some ranks may be in one step, and
/// others in the next one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamError {
    /// A rank did not come within the time that the user allows (`ZONDA_PAR_TIMEOUT`).
    #[error("{call} of {file}: waited {} s for {whom}, in vain (ZONDA_PAR_TIMEOUT)", shown_seconds(*.waited))]
    TimedOut {
        /// The call that waited.
        call: String,
        /// The file it was about.
        file: String,
        /// How long it waited.
        waited: Duration,
        /// Who did not come, as far as it is known: `rank 3`, or `other ranks`.
        whom: String,
    },
    /// What carries the messages failed.
    #[error("{call} of {file}: {what}")]
    Failed {
        /// The call that met it.
        call: String,
        /// The file it was about.
        file: String,
        /// What failed, and the carrier's own words.
        what: String,
    },
    /// This thread must not take part now, and sent nothing: the step can be made again, in another way.
    #[error("{call} of {file}: {what}")]
    Refused {
        /// The call that was refused.
        call: String,
        /// The file it was about.
        file: String,
        /// What keeps the thread from it.
        what: String,
    },
    /// This rank has no memory for what others sent it. It took that and dropped it, so that nobody waits for it: the team goes on.
    #[error("{call} of {file}: no memory for {bytes} bytes that other ranks send")]
    NoMemory {
        /// The call that met it.
        call: String,
        /// The file it was about.
        file: String,
        /// Bytes of the first message that it has no memory for.
        bytes: usize,
    },
    /// The team had failed before.
    #[error("{call} of {file}: an earlier call lost the other ranks; the file can only be closed")]
    Broken {
        /// The call that was refused.
        call: String,
        /// The file it was about.
        file: String,
    },
}

/// Seconds with as many digits as a reader wants: two of less than a second, and one of less than ten.
#[must_use]
pub fn shown_seconds(time: Duration) -> String {
    let digits = match time.as_secs() {
        0 => 2,
        1..10 => 1,
        _ => 0,
    };
    let text = format!("{:.digits$}", time.as_secs_f64());
    if digits == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// How numbers of all ranks become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The sum, which wraps around.
    Sum,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// All bits that any has.
    Or,
}

/// Bytes on their way to, or from, a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// To which rank, or from which one.
    pub rank: usize,
    /// What it says.
    pub bytes: Vec<u8>,
}

/// The ranks that have a file open together, as one of them sees it.
///
/// Steps are called by one thread at a time, in the same order on all ranks. Lengths are 64-bit: a carrier that counts in
/// 32 bits splits by itself.
pub trait Team: Send + Sync {
    /// Which of the ranks this is, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are, at least 1.
    fn size(&self) -> usize;

    /// How many of them are on this node, at least 1.
    fn n_on_node(&self) -> usize;

    /// Gives the bytes of rank `root` to all.
    ///
    /// # Errors
    /// See [`TeamError`].
    fn broadcast(&self, step: Step<'_>, root: usize, bytes: &mut Vec<u8>) -> Result<(), TeamError>;

    /// Makes one number of those of all ranks, for each place of the list: lists are equally long on all ranks, and all ranks get the
    /// result.
    ///
    /// # Errors
    /// See [`TeamError`].
    fn reduce(&self, step: Step<'_>, how: Reduction, numbers: &mut [u64]) -> Result<(), TeamError>;

    /// Makes each number the sum of those of all ranks below this one: 0 on rank 0.
    ///
    /// # Errors
    /// See [`TeamError`].
    fn scan(&self, step: Step<'_>, numbers: &mut [u64]) -> Result<(), TeamError>;

    /// Gathers the bytes of all ranks, in their order, on rank `root`; the others get nothing.
    ///
    /// # Errors
    /// See [`TeamError`].
    fn gather(&self, step: Step<'_>, root: usize, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TeamError>;

    /// Sends messages to some ranks, and gives those that were sent to this one, in the order of their senders, and of one sender in
    /// the order in which it gave them. A rank may send to itself. Who sends nothing takes part, too.
    ///
    /// # Errors
    /// See [`TeamError`]. After [`TeamError::NoMemory`], which a rank may have alone, the team goes on.
    fn exchange(&self, step: Step<'_>, messages: Vec<Message>) -> Result<Vec<Message>, TeamError>;

    /// As [`Team::exchange`], where all know who sends what: each rank gives with a message how long its receiver expects it, and in `expected` the senders
    /// of what it gets with the length of each, both in ascending order, one for a rank. A message that is shorter may come with zeros behind it, up to the length that is
    /// expected. Ranks need not find out who sends to whom, and nobody waits for others than those.
    ///
    /// # Errors
    /// See [`TeamError`].
    fn exchange_known(
        &self,
        step: Step<'_>,
        messages: Vec<(Message, usize)>,
        expected: &[(usize, usize)],
    ) -> Result<Vec<Message>, TeamError> {
        let _anyone_may_send = expected;
        self.exchange(step, messages.into_iter().map(|(message, _)| message).collect())
    }

    /// Returns when all ranks have come.
    ///
    /// # Errors
    /// See [`TeamError`].
    fn meet(&self, step: Step<'_>) -> Result<(), TeamError> {
        self.reduce(step, Reduction::Max, &mut [0])
    }
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl std::fmt::Debug for dyn Team + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Team")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_the_digits_that_a_reader_wants() {
        let of_ms = [500, 50, 3, 999, 1000, 1520, 4001, 10_600, 60_000, 0];
        let shown = of_ms.map(|ms| shown_seconds(Duration::from_millis(ms)));
        assert_eq!(shown, ["0.5", "0.05", "0", "1", "1", "1.5", "4", "11", "60", "0"]);
    }
}

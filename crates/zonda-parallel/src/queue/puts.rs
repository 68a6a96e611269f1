//! Puts that wait in queues of ranks, as a file knows them: what all ranks tell each other of them, and when.

use std::sync::Arc;

use zonda_convert::Converted;
use zonda_format::{Error, Result, UnfilledRun, VarRef};
use zonda_model::{Answer, NcError};
use zonda_team::Reduction;

use super::piece::PutLabel;
use super::unsettled::{PutBounds, UnsettledPuts};
use crate::file::{FAILED, LAST_CALLS, MORE, ParallelFile, code_of, status_of};

/// What a rank notes of puts that wait.
#[derive(Debug, Default)]
pub(crate) struct PutNotes {
    /// The put whose writes wait, while it is made.
    pub(crate) current: Option<PutLabel>,
    /// The same on all ranks.
    pub(crate) unsettled: UnsettledPuts,
    /// A put of all ranks failed on this rank before it was in the queue, and nobody was told.
    failed: Option<(Failed, NcError, String)>,
    /// Places that the last put of all ranks was to cover. The same on all ranks.
    covered: Vec<UnfilledRun>,
    /// What a close tells when it is done.
    to_report: Option<Error>,
}

/// What is known of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failed {
    /// Chunks of an earlier put did not get to their filters, or through them.
    Filters,
    /// The last put of all ranks failed before it was in the queue.
    LastPut,
    /// It stands in a queue, and is tried again by a commit.
    Stands,
}

/// The bit of a number that says: what failed stands in a queue.
const STANDS: u64 = 1 << 63;
/// The bit that says: it is that of the last put.
const OF_LAST: u64 = 1 << 62;
/// Bits of a rank in such a number.
const RANK_BITS: u32 = 30;
const RANK_MASK: u64 = (1 << RANK_BITS) - 1;

/// A failure as a number: the greatest of all ranks is that of all. Of those with one code it is the first rank's.
fn number_of(failed: Failed, status: u64, rank: usize) -> u64 {
    let failed = match failed {
        Failed::Filters => 0,
        Failed::LastPut => OF_LAST,
        Failed::Stands => STANDS,
    };
    let status = (status & u64::from(u32::MAX)) << RANK_BITS;
    failed | status | (!(rank as u64) & RANK_MASK)
}

/// What it is, its code, and its rank.
fn failure_of(number: u64) -> (Failed, NcError, usize) {
    let code = code_of((number & !(STANDS | OF_LAST)) >> RANK_BITS);
    let rank = usize::try_from(!number & RANK_MASK).unwrap_or(0);
    let failed = match () {
        () if number & STANDS != 0 => Failed::Stands,
        () if number & OF_LAST != 0 => Failed::LastPut,
        () => Failed::Filters,
    };
    (failed, code, rank)
}

impl PutNotes {
    /// Notes that chunks of a put of all ranks did not get to their filters on this rank. The first failure is told.
    pub(crate) fn note_failure(&mut self, put: &PutLabel, error: &Error) {
        let text = || format!("{put} failed: {}", error.cause());
        self.failed.get_or_insert_with(|| (Failed::Filters, error.code(), text()));
    }
}

impl ParallelFile {
    /// Whether puts of this rank wait in its queue.
    pub(crate) fn is_queued(&self) -> bool {
        self.replica.queue().is_on()
    }

    /// What messages say of a put, and the queue needs to know of it.
    pub(crate) fn label(&self, var: VarRef, is_alone: bool) -> PutLabel {
        let name = Arc::from(self.object(var));
        PutLabel { number: self.n_puts_together, is_alone, var, name }
    }

    /// Has what writes data write for the put that is made: into the queue, if that is where its writes wait.
    pub(crate) fn writing<T>(&mut self, write: impl FnOnce(&mut ParallelFile) -> T) -> T {
        let Some(put) = self.notes.current.clone() else { return write(self) };
        self.replica.state().queue(put);
        let done = write(self);
        self.replica.state().be_own();
        done
    }

    /// What went wrong on this rank and the others do not know of, as they are told it ([`FAILED`]); 0 for nothing.
    pub(crate) fn own_failure(&self) -> u64 {
        let rank = self.team.rank();
        if let Some(error) = self.replica.queue().failure() {
            return number_of(Failed::Stands, status_of(&error), rank);
        }
        let failed = self.notes.failed.as_ref().map(|(failed, code, _)| (*failed, *code));
        let refused = || self.replica.queue().refused().map(|(code, _)| (Failed::Filters, code));
        let status = |code: NcError| u64::from(code.code().cast_unsigned()).max(1);
        let failed = failed.or_else(refused);
        failed.map_or(0, |(failed, code)| number_of(failed, status(code), rank))
    }

    /// What all ranks make of the greatest failure that one of them told: the same error. One that stands in a queue is told again until a
    /// commit gets over it, any other one is told once.
    ///
    /// # Errors
    /// That one.
    pub(crate) fn heed(&mut self, call: &'static str, number: u64) -> Result<()> {
        if number == 0 {
            self.notes.covered.clear();
            return Ok(());
        }
        let (failed, code, rank) = failure_of(number);
        let mut text = Vec::new();
        if rank == self.team.rank() {
            let own = self.replica.queue().failure().map(|error| error.cause());
            let own = own.or_else(|| self.notes.failed.take().map(|(.., text)| text));
            let own = own.or_else(|| self.replica.queue().take_refused().map(|(_, text)| text));
            text = own.unwrap_or_default().into_bytes();
        }
        if self.team.size() > 1 {
            let told = self.team.broadcast(self.step(call), rank, &mut text);
            told.map_err(|error| self.lost_team(error))?;
        }
        let text = format!("on MPI rank {rank}: {}", String::from_utf8_lossy(&text));
        let error = Error::answered(code, Answer::of_code(code), text);
        if failed != Failed::Stands {
            let covered = std::mem::take(&mut self.notes.covered);
            // Where it is an earlier put that failed, the last one has put there.
            if failed == Failed::LastPut && !covered.is_empty() {
                // They are filled in place of what the others may still have in their queues.
                self.leave_unfilled(covered, &error);
                self.settle(call)?;
            }
        }
        Err(error)
    }

    /// As [`ParallelFile::heed`], before a commit. A close tells of a put that failed when it has closed the file: it would stay open for no
    /// other reason.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn heed_before_commit(&mut self, call: &'static str, number: u64) -> Result<()> {
        let heeded = self.heed(call, number);
        let is_last = LAST_CALLS.contains(&call) && number & STANDS == 0 && !self.is_lost();
        match heeded {
            Err(error) if is_last => {
                self.notes.to_report = Some(error);
                Ok(())
            }
            heeded => heeded,
        }
    }

    /// What a call that has ended the file has to tell.
    pub(crate) fn report(&mut self) -> Result<()> {
        self.notes.to_report.take().map_or(Ok(()), Err)
    }

    /// All ranks wait until what they have put together is in the file, and learn whether that went well.
    ///
    /// # Errors
    /// What keeps a queue from going on, on all ranks.
    pub(crate) fn settle(&mut self, call: &'static str) -> Result<()> {
        let _told_by_number = self.replica.queue().drain(false);
        let mut numbers = [self.own_failure()];
        if self.team.size() > 1 {
            let told = self.team.reduce(self.step(call), Reduction::Max, &mut numbers);
            told.map_err(|error| self.lost_team(error))?;
        }
        self.heed(call, numbers[0])?;
        self.notes.unsettled.clear();
        self.enter_behind(u64::MAX)
    }

    /// Before a call that has to find in the file what all ranks put together: they agree on the call when all have written. `of` is the
    /// variable that the call is about.
    ///
    /// # Errors
    /// As [`ParallelFile::settle`], and those of ranks that make different calls.
    pub(crate) fn agree_when_written(
        &mut self,
        call: &'static str,
        of: Option<VarRef>,
    ) -> Result<()> {
        let _told_by_number = self.replica.queue().drain(false);
        let mut numbers = [0; MORE];
        numbers[FAILED] = self.own_failure();
        self.agree(call, of, 0, &mut numbers)?;
        self.heed(call, numbers[FAILED])?;
        self.notes.unsettled.clear();
        self.enter_behind(u64::MAX)
    }

    /// Whether a get of a variable has to wait for what ranks put together: the same answer on all ranks.
    pub(crate) fn waits_in_queues(&self, var: VarRef) -> bool {
        self.access.is_collective(var) && self.notes.unsettled.has_any(Some(var))
    }

    /// The end of a put of all ranks that nobody waits for: what went wrong is told to all with the next call of all, also to this rank.
    pub(crate) fn leave_to_queues(
        &mut self,
        put: &PutLabel,
        bounds: PutBounds,
        (done, covered): (Result<Option<Converted>>, Vec<UnfilledRun>),
    ) -> Option<Converted> {
        // One rank alone writes in the order of its calls.
        if !bounds.is_empty() && self.team.size() > 1 {
            self.notes.unsettled.add(put.number, bounds);
        }
        self.notes.covered = covered;
        done.unwrap_or_else(|error| {
            let text = format!("{put} failed: {}", error.cause());
            self.notes.failed = Some((Failed::LastPut, error.code(), text));
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_come_back_from_their_numbers() {
        let full = status_of(&Error::with_text(NcError::System(28), ""));
        let memory = status_of(&Error::with_text(NcError::NoMem, ""));
        for (failed, status, code, rank) in [
            (Failed::Stands, full, NcError::System(28), 0),
            (Failed::LastPut, memory, NcError::NoMem, 70_000),
            (Failed::Filters, memory, NcError::NoMem, 3),
        ] {
            assert_eq!(failure_of(number_of(failed, status, rank)), (failed, code, rank));
            assert_ne!(number_of(failed, status, rank), 0);
        }
        // What stands comes first, then the last put, and of the same the first rank.
        let of = |failed, rank| number_of(failed, full, rank);
        assert!(of(Failed::Stands, 9) > number_of(Failed::LastPut, memory, 0));
        assert!(number_of(Failed::LastPut, full, 9) > number_of(Failed::Filters, memory, 0));
        assert!(of(Failed::Stands, 3) > of(Failed::Stands, 4));
    }
}

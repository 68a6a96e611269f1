//! Fill values in places that are new: each is written once, by one rank.

use zonda_format::{Error, Result, UnfilledRun};
use zonda_model::{Answer, NcError};
use zonda_storage::{Storage, StorageError, fill_by_writes};

use crate::file::ParallelFile;

impl ParallelFile {
    /// Fills runs that all ranks have the same list of, and those that an error left before: each rank its share. Returns when all
    /// have.
    pub(crate) fn fill(&mut self, call: &'static str, runs: Vec<UnfilledRun>) -> Result<()> {
        self.unfilled.extend(runs);
        if self.unfilled.is_empty() {
            return Ok(());
        }
        let (rank, size) = (self.team.rank() as u64, self.team.size() as u64);
        let done = fill_share(&*self.replica, &self.unfilled, rank, size);
        let shared = self.share(call, done.map_err(Into::into));
        self.unfilled_why = shared.as_ref().err().map(why);
        if shared.is_ok() {
            self.unfilled.clear();
        }
        shared
    }

    /// Has new places filled before anything else is done with the file: the put that was to cover them failed on some rank, by which
    /// `error` says.
    pub(crate) fn leave_unfilled(&mut self, covered: Vec<UnfilledRun>, error: &Error) {
        if !covered.is_empty() {
            self.unfilled.extend(covered);
            self.unfilled_why = Some(why(error));
        }
    }

    /// Refuses a put of this rank alone while places are not filled: they would be filled later, over what was put.
    pub(crate) fn check_filled(&self) -> Result<()> {
        let Some((code, text)) = &self.unfilled_why else { return Ok(()) };
        // What the system refuses may go well at another time; what the library refuses will not.
        let advice = match code {
            NcError::System(_) | NcError::NoMem => {
                "; new elements could not be filled for that reason in an earlier call: all ranks have to call nc_sync before one of them puts"
            }
            _ => "",
        };
        Err(Error::answered(*code, Answer::of_code(*code), format!("{text}{advice}")))
    }
}

/// What is kept of an error that left places unfilled.
pub(crate) fn why(error: &Error) -> (NcError, String) {
    (error.code(), error.cause())
}

/// Fills what of the runs falls to a rank: of all bytes in a row an equal part, in whole elements.
fn fill_share(
    storage: &dyn Storage,
    runs: &[UnfilledRun],
    rank: u64,
    size: u64,
) -> std::result::Result<(), StorageError> {
    let total = runs.iter().fold(0u128, |sum, run| sum + u128::from(run.len));
    let bound = |rank: u64| total * u128::from(rank) / u128::from(size.max(1));
    let (first, last) = (bound(rank), bound(rank + 1));
    let mut before = 0u128;
    for run in runs {
        let begin = before;
        before += u128::from(run.len);
        if before <= first || begin >= last {
            continue;
        }
        let elem = run.element.len().max(1) as u64;
        // Both bounds are rounded alike, so that the shares of two ranks meet.
        let within = |bound: u128| {
            let at = u64::try_from(bound.saturating_sub(begin)).unwrap_or(u64::MAX).min(run.len);
            at.checked_next_multiple_of(elem).unwrap_or(run.len).min(run.len)
        };
        let (from, to) = (within(first), within(last));
        let (at, len) = (run.at.saturating_add(from), to - from);
        match run.element.len() {
            _ if len == 0 => {}
            0 => storage.fill_at(at, len, &[0])?,
            1..=8 => storage.fill_at(at, len, &run.element)?,
            _ => fill_by_writes(storage, at, len, &run.element)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_format::VarRef;
    use zonda_model::VarId;
    use zonda_storage::backend::Memory;

    #[test]
    fn each_element_is_filled_once() {
        let element = |n: usize| vec![n as u8; n].into_boxed_slice();
        let var = VarRef::from(VarId(0));
        let run = |at, len, n| UnfilledRun { var, at, len, element: element(n) };
        let runs = [run(0, 40, 4), run(50, 9, 3), run(64, 1, 1), run(80, 240, 12)];
        for size in 1..9 {
            let whole = Memory::new();
            for rank in 0..size {
                let own = Memory::new();
                fill_share(&own, &runs, rank, size).unwrap();
                let (own, mut all) = (own.to_vec().unwrap(), whole.to_vec().unwrap());
                all.resize(all.len().max(own.len()), 0);
                for (all, own) in all.iter_mut().zip(&own).filter(|(_, own)| **own != 0) {
                    assert_eq!(*all, 0, "filled twice, {size} ranks");
                    *all = *own;
                }
                whole.write_at(0, &all).unwrap();
            }
            let alone = Memory::new();
            fill_share(&alone, &runs, 0, 1).unwrap();
            assert_eq!(whole.to_vec().unwrap(), alone.to_vec().unwrap(), "{size} ranks");
        }
    }
}

//! A common step: rank 0 acts on the file, and the other ranks do the same over its record.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use zonda_team::{Reduction, Step, Team, TeamError};

use crate::record::{Record, RecordError};
use crate::replica::{Replica, StepState};

/// Why a common step cannot be trusted. The file is of no use after it: ranks may have different definitions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParallelError {
    /// The ranks could not come together.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// This rank did not do what rank 0 did.
    #[error("{call} of {file}: {error}")]
    Record {
        /// The call.
        call: String,
        /// The file.
        file: String,
        /// What differs.
        error: RecordError,
    },
    /// Another rank did not do what rank 0 did, or could not go on.
    #[error(
        "{call} of {file}: another rank did not follow rank 0: its definitions differ, or it failed inside the library"
    )]
    Elsewhere {
        /// The call.
        call: String,
        /// The file.
        file: String,
    },
}

/// How far a rank came; more is worse.
const FOLLOWED: u64 = 0;
const LEFT: u64 = 1;

/// Carries out `work` on all ranks: on rank 0 on the file, on the others over the record of what the file answered to rank 0. All ranks
/// get what `work` gives, errors of the file included.
///
/// All ranks call it with the same work, on replicas of one file with equal objects above. `work` asks its storage from one thread, and what it
/// does depends on nothing but the object and what the storage answers. It costs a broadcast of the record and a reduction of one number. A
/// rank whose `work` panics goes through the step before it panics on, so that nobody waits for it.
///
/// # Errors
/// [`ParallelError`]: ranks that did not come, or did something else. On all ranks alike, but for what the message says. Rank 0 has acted
/// by then: who wants to know before that the ranks mean the same has them agree first ([`zonda_team::agree`]).
pub fn common<T>(
    team: &dyn Team,
    step: Step<'_>,
    replica: &Replica,
    work: impl FnOnce() -> T,
) -> Result<T, ParallelError> {
    if team.size() == 1 {
        return Ok(work());
    }
    let state = replica.state();
    let (followed, done) = match team.rank() {
        0 => act(team, step, state, work)?,
        _ => follow(team, step, state, work)?,
    };
    let is_whole = followed.is_ok() && matches!(done, Some(Ok(_)));
    let mut worst = [if is_whole { FOLLOWED } else { LEFT }];
    team.reduce(step, Reduction::Max, &mut worst)?;
    let (call, file) = (step.call.to_owned(), step.file.to_owned());
    match (done, followed) {
        (Some(Err(panic)), _) => resume_unwind(panic),
        (_, Err(error)) => Err(ParallelError::Record { call, file, error }),
        (Some(Ok(done)), Ok(())) if worst == [FOLLOWED] => Ok(done),
        _ => Err(ParallelError::Elsewhere { call, file }),
    }
}

/// Whether a rank did what rank 0 did, and what its work gave, if it began.
type Went<T> = (Result<(), RecordError>, Option<std::thread::Result<T>>);

/// What rank 0 does.
fn act<T>(
    team: &dyn Team,
    step: Step<'_>,
    state: &StepState,
    work: impl FnOnce() -> T,
) -> Result<Went<T>, TeamError> {
    state.record();
    let done = catch_unwind(AssertUnwindSafe(work));
    // No bytes are no record: the others then know that there is nothing to follow.
    let record = state.recorded().filter(|_| done.is_ok());
    let mut bytes = record.map(|record| record.encode(0)).unwrap_or_default();
    team.broadcast(step, 0, &mut bytes)?;
    Ok((Ok(()), Some(done)))
}

/// What the other ranks do.
fn follow<T>(
    team: &dyn Team,
    step: Step<'_>,
    state: &StepState,
    work: impl FnOnce() -> T,
) -> Result<Went<T>, TeamError> {
    let mut bytes = Vec::new();
    team.broadcast(step, 0, &mut bytes)?;
    if bytes.is_empty() {
        return Ok((Ok(()), None));
    }
    let record = match Record::decode(&bytes) {
        Ok(record) => record,
        Err(error) => return Ok((Err(error), None)),
    };
    drop(bytes);
    state.replay(record);
    let done = catch_unwind(AssertUnwindSafe(work));
    Ok((state.replayed(), Some(done)))
}

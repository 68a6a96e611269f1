//! A common step: rank 0 acts on the file, and the other ranks do the same over its record.

use zonda_team::{Reduction, Step, Team, TeamError};

use crate::record::{Record, RecordError};
use crate::replica::Replica;

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
    /// Another rank did not do what rank 0 did.
    #[error("{call} of {file}: the definitions of another rank differ from those of rank 0")]
    Elsewhere {
        /// The call.
        call: String,
        /// The file.
        file: String,
    },
}

/// Carries out `work` on all ranks: on rank 0 on the file, on the others over the record of what the file answered to rank 0. All ranks
/// get what `work` gives, errors of the file included.
///
/// All ranks call it with the same work, on replicas of one file with equal objects above. `work` asks its storage from one thread, and what it
/// does depends on nothing but the object and what the storage answers. It costs a broadcast of the record and a reduction of one number.
///
/// # Errors
/// [`ParallelError`]: ranks that did not come, or did something else. On all ranks alike, but for what the message says.
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
    let mut bytes = Vec::new();
    let mut done = None;
    let mut work = Some(work);
    if team.rank() == 0 {
        state.record();
        done = work.take().map(|work| work());
        bytes = state.recorded().encode(0);
    }
    team.broadcast(step, 0, &mut bytes)?;
    let mut followed = Ok(());
    if let Some(work) = work {
        followed = Record::decode(&bytes).and_then(|record| {
            drop(bytes);
            state.replay(record);
            done = Some(work());
            state.replayed()
        });
    }
    let mut any = [u64::from(followed.is_err())];
    team.reduce(step, Reduction::Max, &mut any)?;
    let named = || (step.call.to_owned(), step.file.to_owned());
    let ((call, file), (of_other, file_of_other)) = (named(), named());
    followed.map_err(|error| ParallelError::Record { call, file, error })?;
    match (any, done) {
        ([0], Some(done)) => Ok(done),
        _ => Err(ParallelError::Elsewhere { call: of_other, file: file_of_other }),
    }
}

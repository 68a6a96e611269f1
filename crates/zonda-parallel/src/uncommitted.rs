//! What was put or defined since the last commit: a program that ends without a close loses it.

use zonda_format::{Error, Result};
use zonda_model::{Answer, NcError};

use crate::file::ParallelFile;

/// Whether a rank has something that no commit has.
#[derive(Debug, Default)]
pub(crate) struct Uncommitted {
    /// All ranks put or defined something together.
    pub(crate) together: bool,
    /// This rank put something alone.
    pub(crate) alone: bool,
}

impl ParallelFile {
    /// Notes a commit, if it was one.
    pub(crate) fn committed<T>(&mut self, done: Result<T>) -> Result<T> {
        if done.is_ok() {
            self.uncommitted = Uncommitted::default();
        }
        done
    }

    /// The process ends without the other ranks. Only all of them together commit; what was committed stays.
    ///
    /// # Errors
    /// What the user has to know: on rank 0 for all, and on each rank that put alone.
    pub(crate) fn end_without_close(&self) -> Result<()> {
        // What was put is where it would be if it had not waited.
        self.replica.queue().give_up_filters();
        let written = self.replica.queue().drain(true);
        let Uncommitted { together, alone } = self.uncommitted;
        let has_to_say = alone || together && self.team.rank() == 0;
        if !has_to_say {
            return written;
        }
        let text = "the program ends without nc_close; what was put since the last nc_sync may not be in the file";
        Err(Error::answered(NcError::Mpi, Answer::Request, text))
    }
}

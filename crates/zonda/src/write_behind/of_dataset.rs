//! Write-behind of a dataset: switching it, and asking about it.

use super::WriteBehind;
use crate::dataset::Dataset;
use crate::error::{Error, Result};

impl Dataset {
    /// Sets whether puts return when they are accepted, from now on. In a file of several ranks each chooses for itself, a helper process is not
    /// there, and the number of threads is one.
    ///
    /// # Errors
    /// What went wrong with puts that were accepted before.
    pub fn set_write_behind(&self, how: WriteBehind) -> Result<()> {
        if let Some(queue) = &self.rank_queue {
            return self.set_rank_queue(queue, how);
        }
        self.queued_file.set_write_behind(how, self.path(), self.file.as_ref())
    }

    /// Bytes of puts that were accepted and wait, and what went wrong with any of them. Never waits.
    #[must_use]
    pub fn write_behind_status(&self) -> (usize, Option<Error>) {
        match &self.rank_queue {
            Some(queue) => queue.status(),
            None => self.queued_file.write_behind_status(),
        }
    }
}

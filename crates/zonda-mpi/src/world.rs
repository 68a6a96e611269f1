//! All ranks that a launcher has started, for a program that has no MPI of its own: the MPI of the launcher is loaded, begun and ended here.

use crate::calls::Mpi;
use crate::error::MpiError;
use crate::launcher;
use crate::loaded::load;
use crate::settings::Settings;
use crate::team::MpiTeam;
use std::path::Path;
use std::time::Duration;
use zonda_team::Step;

/// The ranks of a launcher (`MPI_COMM_WORLD`). The program calls MPI by its main thread only.
#[derive(Debug)]
pub struct World {
    mpi: &'static Mpi,
}

impl World {
    /// Loads the MPI of a launcher, unless the process has one, and begins it. All ranks call this, and wait for each other.
    ///
    /// `launcher` is the file of the program that started this process.
    ///
    /// # Errors
    /// [`MpiError::NotLoaded`] where there is none, or none that can be loaded; those of finding out what it is. MPI itself ends the process where
    /// it cannot begin.
    pub fn begin(launcher: Option<&Path>) -> Result<World, MpiError> {
        let mpi = match Mpi::of_process() {
            Err(MpiError::NoMpi) => {
                load(&launcher::candidates(launcher, &|name| std::env::var(name).ok()))?;
                Mpi::of_process()?
            }
            found => found?,
        };
        if !mpi.is_initialized() {
            mpi.begin().map_err(|failed| mpi.error(failed))?;
        }
        Ok(World { mpi })
    }

    /// The team of all ranks, which all call this. A rank says each `say_every` for whom it waits.
    ///
    /// # Errors
    /// Those of [`MpiTeam::new`].
    pub fn team(&self, step: Step<'_>, say_every: Duration) -> Result<MpiTeam, MpiError> {
        let settings = Settings { say_every, ..Settings::from_environment() };
        MpiTeam::with_settings(step, self.mpi.handles.comm_world, settings)
    }

    /// How many ranks there are. One that another MPI's launcher has started is alone.
    #[must_use]
    pub fn size(&self) -> usize {
        self.mpi.size(self.mpi.handles.comm_world).unwrap_or(1)
    }

    /// Ends MPI, in which all ranks wait for each other. Teams are dropped before.
    pub fn end(self) {
        if !self.mpi.is_finalized() {
            self.mpi.end();
        }
    }

    /// Ends all ranks: where some would wait for ever.
    pub fn abort(self, status: u8) {
        self.mpi.abort(status.into());
    }
}

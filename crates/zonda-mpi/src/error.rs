//! Why there is no team.

use zonda_team::TeamError;

/// Why a communicator did not become a team.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MpiError {
    /// The process has no MPI.
    #[error(
        "no MPI is loaded in this process, so there is no communicator; link the program with MPI, or open the file without a communicator"
    )]
    NoMpi,
    /// No MPI could be loaded for a program that has none.
    #[error(
        "no MPI of the launcher can be loaded ({why}); name its library by ZONDA_MPI=/path/to/libmpi.so"
    )]
    NotLoaded {
        /// What the loader says of the first one that was tried.
        why: String,
    },
    /// Nobody can say to which of them a communicator belongs.
    #[error(
        "two MPI libraries are loaded in this process, {first} and {second}; link all of the program with one of them"
    )]
    TwoMpis {
        /// The file of one.
        first: String,
        /// The file of the other one.
        second: String,
    },
    /// An MPI with an ABI of its own.
    #[error(
        "{file} is no MPI that is known ({version:?}); known are the MPICH family, Open MPI and the standard ABI of MPI 5"
    )]
    UnknownMpi {
        /// The file it is in.
        file: String,
        /// What it says of itself.
        version: String,
    },
    /// An MPI that is too old.
    #[error(
        "the MPI in {file} lacks {symbol}, which parallel files need; use one of MPI 3.0 or later"
    )]
    Lacks {
        /// The file it is in.
        file: String,
        /// What it lacks.
        symbol: String,
    },
    /// `MPI_Init` was not called yet.
    #[error(
        "MPI is not initialized; call MPI_Init or MPI_Init_thread before you open files in parallel"
    )]
    NotInitialized,
    /// `MPI_Finalize` was called already.
    #[error("MPI is finalized; open files in parallel before MPI_Finalize")]
    Finalized,
    /// `MPI_COMM_NULL`, or no handle at all.
    #[error(
        "the communicator is MPI_COMM_NULL; only ranks that belong to a communicator may open a file with it"
    )]
    NullCommunicator,
    /// Two groups of ranks.
    #[error(
        "the communicator is an inter-communicator; make one group of it by MPI_Intercomm_merge"
    )]
    InterCommunicator,
    /// MPI allows its main thread only.
    #[error(
        "MPI was initialized for calls by its main thread only, and this is another thread; call MPI_Init_thread with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE"
    )]
    ForbiddenThread,
    /// A function of MPI failed.
    #[error("{function} failed: {text}")]
    Call {
        /// Which one.
        function: &'static str,
        /// MPI's own words.
        text: String,
    },
    /// Other ranks did not come.
    #[error(transparent)]
    Team(#[from] TeamError),
}

/// What a caller of netCDF is told, in its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is nothing parallel here: `NC_ENOPAR`.
    NotParallel,
    /// Parallel access could not begin: `NC_EPARINIT`.
    NotBegun,
    /// MPI failed: `NC_EMPI`.
    MpiFailed,
}

impl MpiError {
    /// Which code says it best.
    #[must_use]
    pub fn answer(&self) -> Answer {
        match self {
            MpiError::NoMpi | MpiError::NotLoaded { .. } => Answer::NotParallel,
            MpiError::TwoMpis { .. }
            | MpiError::UnknownMpi { .. }
            | MpiError::Lacks { .. }
            | MpiError::NotInitialized
            | MpiError::Finalized
            | MpiError::NullCommunicator
            | MpiError::InterCommunicator
            | MpiError::ForbiddenThread => Answer::NotBegun,
            MpiError::Call { .. } | MpiError::Team(_) => Answer::MpiFailed,
        }
    }
}

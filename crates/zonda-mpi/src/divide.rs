//! Dividing the ranks of a program, and what is done when MPI ends.

use crate::calls::{ENDS, Mpi, Word};
use crate::error::MpiError;
use std::ffi::{c_int, c_void};

/// A communicator as a program passes it.
#[derive(Clone, Copy, Debug)]
pub enum Communicator {
    /// The word that a C program has, in the low half where handles have 32 bits.
    C(usize),
    /// The number that a Fortran program has.
    Fortran(c_int),
}

impl Communicator {
    /// The word that C programs have for it; that of `MPI_COMM_NULL` for a number that is none.
    ///
    /// # Errors
    /// Those of finding the MPI of the process, and where it may not be called.
    pub fn word(self) -> Result<usize, MpiError> {
        let mpi = Mpi::of_process()?;
        mpi.check_callable()?;
        match self {
            Communicator::C(word) => Ok(mpi.handle(word)),
            Communicator::Fortran(number) => {
                Ok(mpi.fortran_comm(number).unwrap_or(mpi.handles.comm_null))
            }
        }
    }
}

/// A communicator that was made for a program, which frees it.
#[derive(Clone, Copy, Debug)]
pub struct MadeComm(Word);

impl MadeComm {
    /// `MPI_COMM_NULL`.
    ///
    /// # Errors
    /// Those of finding the MPI of the process.
    pub fn null() -> Result<MadeComm, MpiError> {
        Ok(MadeComm(Mpi::of_process()?.handles.comm_null))
    }

    /// Divides a communicator: this rank gets that of all ranks with the same `number`, in their order. All ranks call it, and wait for each other.
    ///
    /// # Errors
    /// [`MpiError::Call`], and those of finding the MPI of the process.
    pub fn split(comm: usize, number: u16) -> Result<MadeComm, MpiError> {
        let mpi = Mpi::of_process()?;
        mpi.check_callable()?;
        let made = mpi.split(mpi.handle(comm), number.into());
        made.map(MadeComm).map_err(|failed| mpi.error(failed))
    }

    /// Frees it: all its ranks call this.
    ///
    /// # Errors
    /// [`MpiError::Call`], and those of finding the MPI of the process.
    pub fn free(self) -> Result<(), MpiError> {
        let mpi = Mpi::of_process()?;
        mpi.free(self.0).map_err(|failed| mpi.error(failed))
    }

    /// Writes the handle to where a C program has one.
    ///
    /// # Safety
    /// `to` is valid for a write of an `MPI_Comm` of the MPI of the process.
    ///
    /// # Errors
    /// Those of finding the MPI of the process.
    #[expect(unsafe_code, reason = "a place that the program gives")]
    pub unsafe fn write_to(self, to: *mut c_void) -> Result<(), MpiError> {
        // SAFETY: the contract above.
        unsafe { Mpi::of_process()?.write_handle(to, self.0) };
        Ok(())
    }

    /// The number that a Fortran program has for it.
    ///
    /// # Errors
    /// [`MpiError::Lacks`] where MPI has no way to say it.
    pub fn number(self) -> Result<c_int, MpiError> {
        let lacks = || MpiError::Lacks { file: "MPI".into(), symbol: "MPI_Comm_c2f".into() };
        Mpi::of_process()?.number_of_comm(self.0).ok_or_else(lacks)
    }
}

/// Has `MPI_Finalize` call a function before it does anything else, by the thread that calls it. Only the first function is kept.
///
/// # Errors
/// [`MpiError::Call`], and those of finding the MPI of the process.
pub fn at_finalize(end: fn()) -> Result<(), MpiError> {
    let mpi = Mpi::of_process()?;
    mpi.check_callable()?;
    if ENDS.settle(end) {
        mpi.call_at_finalize().map_err(|failed| mpi.error(failed))?;
    }
    Ok(())
}

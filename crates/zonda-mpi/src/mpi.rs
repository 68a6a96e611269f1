//! The MPI of the process, found once, and whether it may be called now.

use crate::abi::{Kind, Table, Word as Constant};
use crate::calls::{Failed, Functions, Mpi, Word, has_standard_abi, version};
use crate::error::MpiError;
use crate::loaded::Loaded;
use std::ffi::CStr;
use zonda_runtime::Settled;

/// Words of an MPICH family's version text.
const MPICH_FAMILY: [&str; 5] = ["MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation", "Cray"];

impl Mpi {
    /// The MPI of the process. One that was not there yet may be there later; one that was found stays.
    pub(crate) fn of_process() -> Result<&'static Mpi, MpiError> {
        static FOUND: Settled<Mpi> = Settled::new();
        if let Some(mpi) = FOUND.get() {
            return Ok(mpi);
        }
        let found = Mpi::of(&Loaded::find()?)?;
        Ok(FOUND.get_or_make(|| found))
    }

    fn of(loaded: &Loaded) -> Result<Mpi, MpiError> {
        let lacks = |symbol: &CStr| MpiError::Lacks {
            file: loaded.file.clone(),
            symbol: symbol.to_string_lossy().into_owned(),
        };
        let table = Table::of(kind(loaded)?);
        let handles = table.handles.resolve(|constant| match constant {
            Constant::Value(value) => Ok(value),
            Constant::Symbol(name) => {
                loaded.symbol(name).map(|at| at.as_ptr().expose_provenance()).ok_or(name)
            }
        });
        Ok(Mpi {
            table,
            handles: handles.map_err(lacks)?,
            functions: Functions::of(loaded).map_err(lacks)?,
        })
    }

    /// Whether calls that communicate are allowed now, on this thread.
    pub(crate) fn check_callable(&self) -> Result<(), MpiError> {
        if !self.is_initialized() {
            return Err(MpiError::NotInitialized);
        }
        if self.is_finalized() {
            return Err(MpiError::Finalized);
        }
        let any_thread = self.thread_level() >= self.table.thread_serialized;
        if any_thread || self.is_main_thread() { Ok(()) } else { Err(MpiError::ForbiddenThread) }
    }

    /// The part of a caller's word that is the handle: of MPICH's, the upper half may be anything.
    pub(crate) fn handle(&self, word: usize) -> Word {
        match self.table.kind {
            Kind::Mpich => word & 0xffff_ffff,
            Kind::OpenMpi | Kind::Standard => word,
        }
    }

    /// The error of a call.
    pub(crate) fn error(&self, failed: Failed) -> MpiError {
        MpiError::Call { function: failed.function, text: self.text(failed.code) }
    }
}

/// Whose ABI a library has.
fn kind(loaded: &Loaded) -> Result<Kind, MpiError> {
    if has_standard_abi(loaded) {
        return Ok(Kind::Standard);
    }
    if loaded.symbol(c"ompi_mpi_comm_world").is_some() {
        return Ok(Kind::OpenMpi);
    }
    let version = version(loaded).unwrap_or_default();
    if MPICH_FAMILY.iter().any(|word| version.contains(word)) {
        return Ok(Kind::Mpich);
    }
    let version = version.lines().next().unwrap_or_default().to_owned();
    Err(MpiError::UnknownMpi { file: loaded.file.clone(), version })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_mpi_there_is_an_error_each_time() {
        assert_eq!(Mpi::of_process().unwrap_err(), MpiError::NoMpi);
        assert_eq!(Mpi::of_process().unwrap_err(), MpiError::NoMpi);
    }
}

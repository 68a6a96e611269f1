//! The constants of the three ABIs of MPI, each as its header has it. `tests/par` compares them with every `mpi.h` that is installed.

use std::ffi::{CStr, c_int};

/// What one MPI has in common with others: a program built for one runs with the others of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// MPICH, Intel MPI, Cray MPICH, MVAPICH ("MPICH ABI compatibility initiative").
    Mpich,
    /// Open MPI, versions 2 to 5.
    OpenMpi,
    /// The standard ABI, chapter 20 of MPI 5.0.
    Standard,
}

/// A constant handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The number itself.
    Value(usize),
    /// The address of this symbol.
    Symbol(&'static CStr),
}

/// The handles that steps use; each has its name of MPI.
#[derive(Clone, Copy, Debug)]
pub struct Handles<W> {
    /// `MPI_COMM_NULL`
    pub comm_null: W,
    /// `MPI_COMM_WORLD`
    pub comm_world: W,
    /// `MPI_COMM_SELF`
    pub comm_self: W,
    /// `MPI_INFO_NULL`
    pub info_null: W,
    /// `MPI_REQUEST_NULL`
    pub request_null: W,
    /// `MPI_ERRORS_RETURN`
    pub errors_return: W,
    /// `MPI_BYTE`
    pub byte: W,
    /// `MPI_UINT64_T`
    pub uint64: W,
    /// `MPI_INT64_T`
    pub int64: W,
    /// `MPI_SUM`
    pub sum: W,
    /// `MPI_MAX`
    pub max: W,
    /// `MPI_MIN`
    pub min: W,
    /// `MPI_BOR`
    pub bor: W,
}

impl<W: Copy> Handles<W> {
    /// All of them, by their names of MPI.
    pub fn named(&self) -> [(&'static CStr, W); 13] {
        [
            (c"MPI_COMM_NULL", self.comm_null),
            (c"MPI_COMM_WORLD", self.comm_world),
            (c"MPI_COMM_SELF", self.comm_self),
            (c"MPI_INFO_NULL", self.info_null),
            (c"MPI_REQUEST_NULL", self.request_null),
            (c"MPI_ERRORS_RETURN", self.errors_return),
            (c"MPI_BYTE", self.byte),
            (c"MPI_UINT64_T", self.uint64),
            (c"MPI_INT64_T", self.int64),
            (c"MPI_SUM", self.sum),
            (c"MPI_MAX", self.max),
            (c"MPI_MIN", self.min),
            (c"MPI_BOR", self.bor),
        ]
    }

    /// The same with other words; the symbol that is missing, where `word` gives none.
    pub(crate) fn resolve<V>(
        &self,
        mut word: impl FnMut(W) -> Result<V, &'static CStr>,
    ) -> Result<Handles<V>, &'static CStr> {
        Ok(Handles {
            comm_null: word(self.comm_null)?,
            comm_world: word(self.comm_world)?,
            comm_self: word(self.comm_self)?,
            info_null: word(self.info_null)?,
            request_null: word(self.request_null)?,
            errors_return: word(self.errors_return)?,
            byte: word(self.byte)?,
            uint64: word(self.uint64)?,
            int64: word(self.int64)?,
            sum: word(self.sum)?,
            max: word(self.max)?,
            min: word(self.min)?,
            bor: word(self.bor)?,
        })
    }
}

/// What the header of a kind of MPI says.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Whose it is.
    pub kind: Kind,
    /// Bytes of a handle (`MPI_Comm`, `MPI_Request`, ...).
    pub handle_bytes: usize,
    /// Its handles.
    pub handles: Handles<Word>,
    /// `MPI_STATUS_IGNORE`, an address that is none.
    pub status_ignore: usize,
    /// `MPI_ANY_SOURCE`
    pub any_source: c_int,
    /// `MPI_THREAD_SERIALIZED`; the levels ascend in all ABIs.
    pub thread_serialized: c_int,
    /// `MPI_THREAD_FUNNELED`
    pub thread_funneled: c_int,
    /// `MPI_MAX_INFO_KEY`: bytes of the longest key, the NUL included in Open MPI. Longer ones are errors there.
    pub max_info_key: usize,
}

impl Table {
    /// The table of a kind.
    #[must_use]
    pub const fn of(kind: Kind) -> &'static Table {
        match kind {
            Kind::Mpich => &MPICH,
            Kind::OpenMpi => &OPEN_MPI,
            Kind::Standard => &STANDARD,
        }
    }
}

/// `mpi.h` of MPICH 4.0.2 (Debian 12) and 5.0.2 (PyPI), which agree.
static MPICH: Table = Table {
    kind: Kind::Mpich,
    handle_bytes: 4,
    handles: Handles {
        comm_null: Word::Value(0x0400_0000),
        comm_world: Word::Value(0x4400_0000),
        comm_self: Word::Value(0x4400_0001),
        info_null: Word::Value(0x1c00_0000),
        request_null: Word::Value(0x2c00_0000),
        errors_return: Word::Value(0x5400_0001),
        byte: Word::Value(0x4c00_010d),
        uint64: Word::Value(0x4c00_083e),
        int64: Word::Value(0x4c00_083a),
        sum: Word::Value(0x5800_0003),
        max: Word::Value(0x5800_0001),
        min: Word::Value(0x5800_0002),
        bor: Word::Value(0x5800_0008),
    },
    status_ignore: 1,
    any_source: -2,
    thread_serialized: 2,
    thread_funneled: 1,
    max_info_key: 255,
};

/// `mpi.h` of Open MPI 4.1.4 (Debian 12) and 5.0.11 (PyPI), which agree. `MPI_BYTE` is a macro for the address of `ompi_mpi_byte`.
static OPEN_MPI: Table = Table {
    kind: Kind::OpenMpi,
    handle_bytes: 8,
    handles: Handles {
        comm_null: Word::Symbol(c"ompi_mpi_comm_null"),
        comm_world: Word::Symbol(c"ompi_mpi_comm_world"),
        comm_self: Word::Symbol(c"ompi_mpi_comm_self"),
        info_null: Word::Symbol(c"ompi_mpi_info_null"),
        request_null: Word::Symbol(c"ompi_request_null"),
        errors_return: Word::Symbol(c"ompi_mpi_errors_return"),
        byte: Word::Symbol(c"ompi_mpi_byte"),
        uint64: Word::Symbol(c"ompi_mpi_uint64_t"),
        int64: Word::Symbol(c"ompi_mpi_int64_t"),
        sum: Word::Symbol(c"ompi_mpi_op_sum"),
        max: Word::Symbol(c"ompi_mpi_op_max"),
        min: Word::Symbol(c"ompi_mpi_op_min"),
        bor: Word::Symbol(c"ompi_mpi_op_bor"),
    },
    status_ignore: 0,
    any_source: -1,
    thread_serialized: 2,
    thread_funneled: 1,
    max_info_key: 36,
};

/// `mpi_abi.h` of MPICH 5.0.2 (PyPI, `mpicc_abi`), whose values are those of chapter 20 of MPI 5.0.
static STANDARD: Table = Table {
    kind: Kind::Standard,
    handle_bytes: 8,
    handles: Handles {
        comm_null: Word::Value(0x100),
        comm_world: Word::Value(0x101),
        comm_self: Word::Value(0x102),
        info_null: Word::Value(0x130),
        request_null: Word::Value(0x180),
        errors_return: Word::Value(0x143),
        byte: Word::Value(0x247),
        uint64: Word::Value(0x259),
        int64: Word::Value(0x258),
        sum: Word::Value(0x21),
        max: Word::Value(0x23),
        min: Word::Value(0x22),
        bor: Word::Value(0x29),
    },
    status_ignore: 0,
    any_source: -1,
    thread_serialized: 2048,
    thread_funneled: 1024,
    max_info_key: 256,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_is_of_its_kind_and_no_handle_is_another_one() {
        for kind in [Kind::Mpich, Kind::OpenMpi, Kind::Standard] {
            let table = Table::of(kind);
            assert_eq!(table.kind, kind);
            assert!(table.thread_funneled < table.thread_serialized);
            let named = table.handles.named();
            for (at, (name, word)) in named.iter().enumerate() {
                assert!(named[at + 1..].iter().all(|(_, other)| other != word), "{name:?}");
                match word {
                    Word::Value(value) => assert!(*value != 0 && table.handle_bytes <= 8),
                    Word::Symbol(_) => assert_eq!(kind, Kind::OpenMpi),
                }
            }
        }
    }

    #[test]
    fn handles_of_mpich_fit_half_a_word() {
        for (name, word) in Table::of(Kind::Mpich).handles.named() {
            assert!(matches!(word, Word::Value(value) if value <= 0xffff_ffff), "{name:?}");
        }
    }
}

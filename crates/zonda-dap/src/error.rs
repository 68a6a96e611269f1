//! What is wrong with something that a server sent, or with what is asked of it.

use std::fmt;

use zonda_format::FormatError;
use zonda_model::{Answer, NcError};
use zonda_storage::{RemoteFailure, StorageError};

/// What a server sends, or is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// DAP2: names, types and shapes.
    Dds,
    /// DAP2: attributes.
    Das,
    /// DAP2: a DDS and values.
    Dods,
    /// DAP4: names, types, shapes and attributes.
    Dmr,
    /// DAP4: a DMR and values.
    Dap,
    /// What is asked for, by the user or by us.
    Constraint,
}

impl Document {
    /// Whether it is one of DAP4.
    #[must_use]
    pub fn is_dap4(self) -> bool {
        matches!(self, Document::Dmr | Document::Dap)
    }

    /// The code that C sees, as the reference has it: it has one for both versions.
    #[must_use]
    pub fn code(self) -> NcError {
        match self {
            Document::Dds | Document::Dmr => NcError::Dds,
            Document::Das => NcError::Das,
            Document::Dods | Document::Dap => NcError::DataDds,
            Document::Constraint => NcError::DapConstraint,
        }
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Document::Dds => "DDS",
            Document::Das => "DAS",
            Document::Dods => "DAP2 data",
            Document::Dmr => "DMR",
            Document::Dap => "DAP4 data",
            Document::Constraint => "constraint",
        })
    }
}

/// Why a response, or a constraint, is not used.
#[derive(Debug, thiserror::Error)]
pub enum DapError {
    /// It does not say what it should.
    #[error("{document}, byte {at}: {what}")]
    Malformed {
        /// What was read.
        document: Document,
        /// Byte of it where reading stopped.
        at: u64,
        /// What is wrong, with the name of the object.
        what: String,
    },
    /// The server sent an error of its own in place of it, or in the middle.
    #[error("{document}: the server says: {message}")]
    Server {
        /// What was asked for.
        document: Document,
        /// The server's number for the error, where it has one.
        number: Option<i64>,
        /// The server's message.
        message: String,
    },
    /// netCDF has no form for it, or a limit of ours is passed.
    #[error("{document}: {what}")]
    Unrepresentable {
        /// Where it stands.
        document: Document,
        /// What it is.
        what: String,
    },
    /// The body could not be read to its end.
    #[error("{document}: {error}")]
    Storage {
        /// What was read.
        document: Document,
        /// Why not.
        error: StorageError,
    },
    /// There is no memory for it.
    #[error("{document}: no memory for {bytes} bytes")]
    NoMemory {
        /// What was read.
        document: Document,
        /// How many bytes were wanted.
        bytes: u64,
    },
}

impl DapError {
    /// What is wrong with a document, and where.
    #[must_use]
    pub fn malformed(document: Document, at: u64, what: impl Into<String>) -> DapError {
        DapError::Malformed { document, at, what: what.into() }
    }

    /// What netCDF has no form for.
    #[must_use]
    pub fn unrepresentable(document: Document, what: impl Into<String>) -> DapError {
        DapError::Unrepresentable { document, what: what.into() }
    }

    /// Why a body could not be read: the [`StorageError`] that is in the error, or one that says what it says.
    #[must_use]
    pub fn of_io(document: Document, error: &std::io::Error) -> DapError {
        let inside = error.get_ref().and_then(|inside| inside.downcast_ref::<StorageError>());
        let error = inside.cloned().unwrap_or_else(|| StorageError::Remote {
            url: "the body".into(),
            range: None,
            kind: RemoteFailure::Broken,
            status: None,
            what: error.to_string().into(),
        });
        DapError::Storage { document, error }
    }
}

/// The code of a request that failed, as the reference has it for each version, by the status of HTTP where there was an answer.
fn code_of_request(document: Document, error: &StorageError) -> NcError {
    let is_dap4 = document.is_dap4();
    let StorageError::Remote { kind, status, .. } = error else {
        return match error {
            StorageError::NoMemory { .. } => NcError::NoMem,
            error => NcError::System(error.raw_os_error()),
        };
    };
    match (status, kind) {
        (_, RemoteFailure::NoMemory) => NcError::NoMem,
        (Some(403), _) => NcError::Auth,
        (Some(404), _) if is_dap4 => NcError::System(ENOENT),
        (Some(404), _) => NcError::NotFound,
        (Some(400), _) if is_dap4 => NcError::DataDds,
        (Some(401), _) => NcError::Access,
        (Some(400..=499), _) if !is_dap4 => NcError::Access,
        (Some(500), _) => NcError::DapSvc,
        (Some(501..), _) if !is_dap4 => NcError::DapSvc,
        (Some(_), _) => NcError::Curl,
        // The connection broke, or the answer is none: there the reference goes on with what came.
        (None, RemoteFailure::Broken) => document.code(),
        (None, _) if is_dap4 => NcError::DapSvc,
        (None, _) => NcError::Io,
    }
}

/// `ENOENT` of Linux on every architecture.
const ENOENT: i32 = 2;

impl FormatError for DapError {
    fn nc_error(&self) -> NcError {
        match self {
            DapError::Malformed { document, .. } => document.code(),
            // As the reference has it of servers that say so and give the status of a success.
            DapError::Server {
                document: Document::Dds | Document::Das | Document::Dods,
                number: Some(404),
                ..
            } => NcError::CantRead,
            // A page, and no error document.
            DapError::Server { document, number: None, .. } => document.code(),
            DapError::Server { .. } => NcError::DapSvc,
            DapError::Unrepresentable { .. } => NcError::Translation,
            DapError::Storage { document, error } => code_of_request(*document, error),
            DapError::NoMemory { .. } => NcError::NoMem,
        }
    }

    fn answer(&self) -> Answer {
        match self {
            DapError::Malformed { document: Document::Constraint, .. } => Answer::Request,
            DapError::Malformed { .. } => Answer::Damaged,
            DapError::Server { .. } => Answer::System,
            DapError::Storage { error, .. } => Answer::of_errno(error.raw_os_error()),
            DapError::Unrepresentable { .. } => Answer::Unrepresentable,
            DapError::NoMemory { .. } => Answer::NoMemory,
        }
    }

    fn offset(&self) -> Option<u64> {
        match self {
            DapError::Malformed { at, .. } => Some(*at),
            _ => None,
        }
    }

    fn storage(&self) -> Option<&StorageError> {
        match self {
            DapError::Storage { error, .. } => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(document: Document, status: Option<u16>, kind: RemoteFailure) -> NcError {
        let (url, what) = ("http://h/x".into(), "".into());
        let error = StorageError::Remote { url, range: None, kind, status, what };
        DapError::Storage { document, error }.nc_error()
    }

    /// What the distribution's library (4.9.0) gives at `nc_open`, and at `nc_get_var` for answers to that, by small servers.
    #[test]
    fn codes_are_those_of_the_reference() {
        use NcError::{Access, Auth, Curl, DapSvc, DataDds, Dds, Io, NotFound, System};
        let by_status = |document, status| code(document, Some(status), RemoteFailure::Broken);
        for (status, dap2, dap4) in [
            (400, Access, DataDds),
            (401, Access, Access),
            (403, Auth, Auth),
            (404, NotFound, System(ENOENT)),
            (410, Access, Curl),
            (500, DapSvc, DapSvc),
            (502, DapSvc, Curl),
            (503, DapSvc, Curl),
        ] {
            for document in [Document::Dds, Document::Das, Document::Dods] {
                assert_eq!(by_status(document, status), dap2, "{status}");
            }
            for document in [Document::Dmr, Document::Dap] {
                assert_eq!(by_status(document, status), dap4, "{status}");
            }
        }
        for kind in [RemoteFailure::Unreachable, RemoteFailure::TimedOut] {
            assert_eq!(code(Document::Dds, None, kind), Io);
            assert_eq!(code(Document::Dmr, None, kind), DapSvc);
        }
        // Where it goes on with what there is, without an error.
        assert_eq!(code(Document::Dods, None, RemoteFailure::Broken), DataDds);
        assert_eq!(code(Document::Dds, None, RemoteFailure::Broken), Dds);
        assert_eq!(code(Document::Dap, None, RemoteFailure::NoMemory), NcError::NoMem);
        let missing = StorageError::Open { path: std::path::Path::new("x").into(), errno: 2 };
        let missing = DapError::Storage { document: Document::Dds, error: missing };
        assert_eq!(missing.nc_error(), System(2));
        let says = |document, number| {
            DapError::Server { document, number, message: String::new() }.nc_error()
        };
        assert_eq!(says(Document::Dds, Some(404)), NcError::CantRead);
        assert_eq!(says(Document::Dods, Some(500)), DapSvc);
        assert_eq!(says(Document::Dmr, Some(404)), DapSvc);
        assert_eq!([Document::Dds, Document::Dap].map(|of| says(of, None)), [Dds, DataDds]);
    }
}

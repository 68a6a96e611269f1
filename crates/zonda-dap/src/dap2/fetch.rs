//! Documents of a dataset, as the server or a folder has them.

use std::io::Read;

use zonda_storage::StorageError;

use crate::dap2::body::Body;
use crate::dap2::constraint::escape;
use crate::dap2::das::Set;
use crate::dap2::dds::Dds;
use crate::dap2::limits::MAX_DOCUMENT_BYTES;
use crate::error::{DapError, Document};
use crate::protocol::{Request, Server};

/// Asks for a document.
pub(super) fn ask(
    server: &dyn Server,
    document: Document,
    extension: &'static str,
    query: &str,
) -> Result<Box<dyn Read + Send>, DapError> {
    let request = Request { extension, query: escape(query) };
    server.ask(&request).map_err(|error| DapError::Storage { document, error })
}

/// All bytes of a document.
fn whole_document(document: Document, body: Box<dyn Read + Send>) -> Result<Vec<u8>, DapError> {
    let mut bytes = Vec::new();
    let most = (MAX_DOCUMENT_BYTES as u64).saturating_add(1);
    body.take(most).read_to_end(&mut bytes).map_err(|error| DapError::of_io(document, &error))?;
    Ok(bytes)
}

/// The DDS, constrained.
pub(super) fn dds(server: &dyn Server, query: &str) -> Result<Dds, DapError> {
    let body = match ask(server, Document::Dds, ".dds", query) {
        // Of saved responses the one with values may be the only one.
        Err(error) if !server.heeds_constraints() => {
            let Ok(mut body) = ask(server, Document::Dods, ".dods", query) else {
                return Err(error);
            };
            return Ok(Body::open(&mut body)?.dds().clone());
        }
        body => body?,
    };
    Dds::decode(&whole_document(Document::Dds, body)?)
}

/// Whether a server, or a folder, says that it does not have a document; not that it cannot give it now, or not to everybody.
fn is_missing(error: &StorageError) -> bool {
    /// `ENOENT`.
    const NOT_FOUND: i32 = 2;
    match error {
        StorageError::Remote { status: Some(status), .. } => {
            matches!(status, 400 | 404 | 405 | 406 | 410 | 501)
        }
        _ => error.raw_os_error() == NOT_FOUND,
    }
}

/// The DAS; `None` where there is none.
pub(super) fn das(server: &dyn Server) -> Result<Option<Set>, DapError> {
    let body = match ask(server, Document::Das, ".das", "") {
        Err(DapError::Storage { error, .. }) if is_missing(&error) => return Ok(None),
        body => body?,
    };
    match Set::decode(&whole_document(Document::Das, body)?) {
        // The server has the dataset, but no attributes of it.
        Err(DapError::Server { .. }) => Ok(None),
        das => das.map(Some),
    }
}

//! Responses that somebody saved: files `NAME.dds`, `NAME.das`, `NAME.dods`, `NAME.dmr`, `NAME.dap`.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use zonda_dap::{Request, Server};
use zonda_storage::StorageError;

use super::name::with_extension;

/// Saved responses of one dataset.
#[derive(Debug)]
pub(super) struct SavedResponses(pub(super) PathBuf);

impl Server for SavedResponses {
    fn ask(&self, request: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        let path = with_extension(&self.0, request.extension);
        let failed = |errno| StorageError::Open { path: Arc::from(&*path), errno };
        let of_system = |error: std::io::Error| failed(error.raw_os_error().unwrap_or(EIO));
        // A pipe would be waited for.
        let is_file = std::fs::metadata(&path).map_err(of_system)?.is_file();
        if !is_file {
            return Err(failed(EISDIR));
        }
        let file = std::fs::File::open(&path).map_err(of_system)?;
        Ok(Box::new(std::io::BufReader::with_capacity(BLOCK_BYTES, file)))
    }

    fn heeds_constraints(&self) -> bool {
        false
    }

    fn parallel(&self) -> usize {
        1
    }
}

/// Bytes that are read at once.
const BLOCK_BYTES: usize = 256 << 10;
/// Numbers of Linux on every architecture.
const EIO: i32 = 5;
const EISDIR: i32 = 21;

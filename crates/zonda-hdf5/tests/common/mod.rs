//! What several tests need.

use std::io::Read;
use std::sync::Arc;

use zonda_hdf5::message::FilterDescription;
use zonda_hdf5::{File, Result, Unfilter};
use zonda_storage::backend::Memory;

/// Undoes deflate, the one filter that heaps of the tests' files have.
#[derive(Debug)]
pub(crate) struct Inflate;

impl Unfilter for Inflate {
    fn unfilter(
        &self,
        filters: &[FilterDescription],
        mask: u32,
        stored: Vec<u8>,
        most: usize,
    ) -> Option<Vec<u8>> {
        if filters.iter().any(|filter| filter.id != 1) || mask != 0 {
            return None;
        }
        let mut bytes = Vec::new();
        let mut inflated = flate2::read::ZlibDecoder::new(&stored[..]).take(most as u64 + 1);
        inflated.read_to_end(&mut bytes).ok().filter(|&len| len <= most)?;
        Some(bytes)
    }
}

/// A file with these bytes.
pub(crate) fn open(bytes: &[u8]) -> Result<File> {
    File::open(Arc::new(Memory::from_slice(bytes)))
}

//! An open HDF5 file: its bytes by address.

use std::sync::Arc;

use zonda_storage::Storage;

use crate::message::FilterDescription;
use crate::{FileAddr, HdfError, Limits, Reader, Result, Sizes};

/// Undoes filters, for the few metadata that are filtered. This crate knows no filter, so who opens
/// a file gives one.
pub trait Unfilter: Send + Sync + std::fmt::Debug {
    /// Undoes the filters of a pipeline but those whose bit is set in `mask`.
    ///
    /// Gives `None` where a filter is not there or its input is damaged, or where more than `most`
    /// bytes would come out.
    fn unfilter(
        &self,
        filters: &[FilterDescription],
        mask: u32,
        stored: Vec<u8>,
        most: usize,
    ) -> Option<Vec<u8>>;
}

/// An HDF5 file opened for reading. All methods may be called from any thread.
#[derive(Debug)]
pub struct File {
    storage: Arc<dyn Storage>,
    /// What all addresses are relative to, in bytes.
    base: u64,
    /// Bytes of the storage when it was opened.
    len: u64,
    sizes: Sizes,
    limits: Limits,
    unfilter: Option<Arc<dyn Unfilter>>,
}

impl File {
    /// With what undoes the filters of metadata. Without, filtered heaps are not supported.
    #[must_use]
    pub fn with_unfilter(self, unfilter: Arc<dyn Unfilter>) -> File {
        File { unfilter: Some(unfilter), ..self }
    }

    /// Undoes the filters of metadata that were read at `addr`.
    ///
    /// # Errors
    /// [`HdfError::Unsupported`] where filters are not known or what they need is not there.
    pub fn unfilter(
        &self,
        structure: &'static str,
        addr: FileAddr,
        filters: &[FilterDescription],
        mask: u32,
        stored: Vec<u8>,
        most: usize,
    ) -> Result<Vec<u8>> {
        let undone = self.unfilter.as_ref();
        let undone = undone.and_then(|undo| undo.unfilter(filters, mask, stored, most));
        let at = self.base.saturating_add(addr.0);
        undone.ok_or(HdfError::Unsupported { structure, at, what: "undoing its filters" })
    }

    /// Bytes of the storage when it was opened.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Widths of addresses and lengths.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The bounds that decoders keep.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The storage below.
    #[must_use]
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// The byte of the storage that an address means.
    ///
    /// # Errors
    /// [`HdfError::OutOfFile`] where `len` bytes from there are not in the file.
    pub fn locate(&self, structure: &'static str, addr: FileAddr, len: u64) -> Result<u64> {
        let at = self.base.saturating_add(addr.0);
        let end = at.checked_add(len);
        if end.is_some_and(|end| end <= self.len) {
            Ok(at)
        } else {
            Err(HdfError::OutOfFile { structure, at, len, end: self.len })
        }
    }

    /// The `len` bytes at an address.
    ///
    /// # Errors
    /// [`HdfError::OutOfFile`] before anything is allocated; what the storage reports.
    pub fn read(&self, structure: &'static str, addr: FileAddr, len: u64) -> Result<Vec<u8>> {
        let at = self.locate(structure, addr, len)?;
        let out_of_file = HdfError::OutOfFile { structure, at, len, end: self.len };
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| out_of_file.clone())?];
        if self.storage.read_at(at, &mut bytes)? == bytes.len() {
            Ok(bytes)
        } else {
            Err(out_of_file)
        }
    }

    /// Up to `len` bytes at an address: fewer where the file ends, for structures that say their
    /// length in their first bytes.
    ///
    /// # Errors
    /// [`HdfError::OutOfFile`] where not even one byte is there; what the storage reports.
    pub fn read_up_to(&self, structure: &'static str, addr: FileAddr, len: u64) -> Result<Vec<u8>> {
        let at = self.locate(structure, addr, 1)?;
        self.read(structure, addr, len.min(self.len.saturating_sub(at)))
    }

    /// A reader over bytes that were read at `addr`.
    #[must_use]
    pub fn reader<'a>(
        &self,
        structure: &'static str,
        addr: FileAddr,
        bytes: &'a [u8],
    ) -> Reader<'a> {
        Reader::new(structure, bytes, self.base.saturating_add(addr.0), self.sizes)
    }
}

#[cfg(test)]
impl File {
    /// A file without a superblock, for tests of single structures.
    pub(crate) fn over(storage: Arc<dyn Storage>, len: u64, sizes: Sizes) -> File {
        File { storage, base: 0, len, sizes, limits: Limits::default(), unfilter: None }
    }
}

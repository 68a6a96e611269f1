//! Opening a file whose header is damaged or cut off, or counts other records than the file has.
//!
//! Definitions are taken up to the first that cannot be read. How long a record is follows from all
//! record variables, so where their list is not complete, nobody knows where records are.

use std::sync::Arc;

use zonda_storage::Storage;

use crate::codec::{self, DecodeLimits};
use crate::error::ClassicError;
use crate::file::{ClassicFile, read_header};
use crate::header::Header;

/// A header that counts more records than the file has is believed as long as these would have at most this many times the
/// bytes of the file, and [`SMALL`] bytes more.
const FACTOR: u64 = 16;
const SMALL: u64 = 1 << 20;

/// A part of a damaged file that opening it skipped.
#[derive(Debug)]
pub enum SkippedPart {
    /// Definitions from here on cannot be read.
    Header(ClassicError),
    /// The file is longer than the records that its header counts.
    MoreRecords {
        /// The number in the header.
        counted: u64,
        /// Records of which the file has at least a part.
        found: u64,
    },
    /// The header counts more records than any file of this length ever had.
    FewerRecords {
        /// The number in the header.
        counted: u64,
        /// Records of which the file has at least a part.
        found: u64,
    },
}

impl ClassicFile {
    /// Opens what is left of a damaged file, for reading: definitions up to the first that cannot be
    /// read, and all records of which the file has something, the last one perhaps not whole.
    ///
    /// # Errors
    /// [`ClassicError::BadMagic`]; a file that ends before its list of dimensions; what the storage
    /// reports.
    pub fn open_damaged(
        storage: Arc<dyn Storage>,
    ) -> Result<(ClassicFile, Vec<SkippedPart>), ClassicError> {
        let mut skipped = Vec::new();
        let limits = DecodeLimits::default();
        let (header, counted) = match read_header(&*storage, limits) {
            Ok(found) => found,
            Err(error @ (ClassicError::Storage(_) | ClassicError::BadMagic { .. })) => {
                return Err(error);
            }
            Err(error) => {
                let len = storage.len()?.min(limits.header_bytes);
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                let mut bytes = zonda_model::memory::filled(len, 0)?;
                let got = storage.read_at(0, &mut bytes)?;
                bytes.truncate(got);
                let (header, counted) = codec::decode_damaged(bytes)?;
                skipped.push(SkippedPart::Header(error));
                let n_records = counted_records(&header, counted, storage.len()?);
                return Ok((ClassicFile::of_left(storage, header, n_records), skipped));
            }
        };
        let n_records = records(&header, counted, storage.len()?, &mut skipped);
        Ok((ClassicFile::of_left(storage, header, n_records), skipped))
    }
}

/// The number of records in a header that is not whole, unless no file of this length ever had so many.
fn counted_records(header: &Header, counted: u64, len: u64) -> u64 {
    let bytes = counted.saturating_mul(header.layout.record_len.max(1));
    if bytes > len.saturating_mul(FACTOR).saturating_add(SMALL) { 0 } else { counted }
}

/// How many records a file of `len` bytes has: as many as its header counts, or as the file has a part of.
fn records(header: &Header, counted: u64, len: u64, skipped: &mut Vec<SkippedPart>) -> u64 {
    let streaming = [u64::MAX, u64::from(u32::MAX)].contains(&counted);
    let bytes = len.saturating_sub(header.layout.begin_rec);
    let record_len = header.layout.record_len;
    if record_len == 0 {
        return if streaming { 0 } else { counted };
    }
    // Behind the last record there may be padding.
    let found = last_record_with_data(header, len).unwrap_or(bytes.div_ceil(record_len));
    let most = len.saturating_mul(FACTOR).saturating_add(SMALL);
    if found > counted {
        skipped.push(SkippedPart::MoreRecords { counted, found });
        found
    } else if streaming {
        found
    } else if counted.saturating_mul(record_len) > most {
        skipped.push(SkippedPart::FewerRecords { counted, found });
        found
    } else {
        counted
    }
}

/// The number of records of which a file of `len` bytes has at least one element.
fn last_record_with_data(header: &Header, len: u64) -> Option<u64> {
    let record_len = header.layout.record_len;
    let vars = header.vars.iter().filter(|var| var.is_record() && var.slab_bytes() > 0);
    vars.map(|var| {
        let elem = var.ty.size() as u64;
        // Its first element of the last record has to be there as a whole.
        let there = len.checked_sub(var.begin.saturating_add(elem));
        there.and_then(|there| there.checked_div(record_len)).map_or(0, |n| n.saturating_add(1))
    })
    .max()
}

//! The number of records, from the length of a file: for files whose writer died before it wrote it.

use zonda_storage::Storage;

use crate::codec::{DecodeLimits, NUMRECS_AT, encode_numrecs};
use crate::error::ClassicError;
use crate::file::read_header;
use crate::header::{Header, Version};

/// A record count of CDF-1 and CDF-2 with all bits set means that nobody knows it.
const MOST_OF_32_BITS: u64 = 0xffff_fffe;

/// Writes the number of complete records that the file has into its header, and gives the number that
/// stood there and the new one. `None` for a file without variables that have records, which is left
/// as it is, as is one whose header is right.
///
/// # Errors
/// What the storage reports; what is wrong with the header.
pub fn set_records(storage: &dyn Storage) -> Result<Option<(u64, u64)>, ClassicError> {
    let (header, before) = read_header(storage, DecodeLimits::default())?;
    let Some(after) = complete_records(&header, storage.len()?) else { return Ok(None) };
    if before != after {
        storage.write_at(NUMRECS_AT, &encode_numrecs(header.version, after))?;
        storage.sync()?;
    }
    Ok(Some((before, after)))
}

/// What [`set_records`] would give; nothing is written.
///
/// # Errors
/// As [`set_records`].
pub fn count_records(storage: &dyn Storage) -> Result<Option<(u64, u64)>, ClassicError> {
    let (header, before) = read_header(storage, DecodeLimits::default())?;
    Ok(complete_records(&header, storage.len()?).map(|after| (before, after)))
}

/// The number of complete records in a file of `len` bytes; padding behind the last one may be missing.
fn complete_records(header: &Header, file_len: u64) -> Option<u64> {
    let layout = &header.layout;
    let ends = header.vars.iter().filter(|var| var.is_record());
    let end = ends.map(|var| var.begin.saturating_add(var.slab_bytes())).max()?;
    let behind = file_len.checked_sub(end);
    let n = match behind.and_then(|behind| behind.checked_div(layout.record_len)) {
        Some(more) => more.saturating_add(1),
        None => 0,
    };
    Some(if header.version == Version::Cdf5 { n } else { n.min(MOST_OF_32_BITS) })
}

#[cfg(test)]
mod tests {
    use zonda_model::{DimId, ExtType};
    use zonda_storage::backend::Memory;

    use super::*;
    use crate::header::Name;
    use crate::{Atts, Dim, Var, encode_header};

    /// Two variables with records of 3 and 8 bytes, the first one padded to 4.
    fn header(version: Version) -> Header {
        let mut header = Header::new(version);
        header.push_dim(Dim { name: name("t"), len: 0 });
        header.push_dim(Dim { name: name("x"), len: 3 });
        for (var, ty, dims) in [("a", ExtType::Byte, &[0, 1][..]), ("b", ExtType::Double, &[0][..])]
        {
            header.push_var(Var {
                name: name(var),
                dims: dims.iter().map(|&dim| DimId(dim)).collect(),
                shape: dims.iter().map(|&dim| if dim == 0 { 0 } else { 3 }).collect(),
                atts: Atts::default(),
                ty,
                begin: 0,
                no_fill: false,
            });
        }
        header.vars[0].begin = 400;
        header.vars[1].begin = 404;
        header
    }

    fn name(text: &str) -> Name {
        Name::from(text.as_bytes())
    }

    fn file(version: Version, n_records: u64, len: usize) -> Memory {
        let mut bytes = encode_header(&header(version), n_records).unwrap();
        bytes.resize(len, 1);
        Memory::from_slice(&bytes)
    }

    #[test]
    fn complete_records_count() {
        for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
            for (len, n) in [(399, 0), (400, 0), (411, 0), (412, 1), (423, 1), (424, 2), (460, 5)] {
                let storage = file(version, 7, len);
                assert_eq!(count_records(&storage).unwrap().map(|(_, after)| after), Some(n));
                let set = set_records(&storage).unwrap();
                assert_eq!(set, Some((7, n)), "{version:?} {len}");
                assert_eq!(set_records(&storage).unwrap(), Some((n, n)));
            }
        }
        let mut fixed = header(Version::Cdf1);
        fixed.vars.clear();
        assert_eq!(
            set_records(&Memory::from_slice(&encode_header(&fixed, 7).unwrap())).unwrap(),
            None
        );
        assert!(set_records(&Memory::from_slice(b"CDF\x01\0\0")).is_err());
    }
}

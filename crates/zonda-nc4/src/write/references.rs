//! References to scales in the global heap, as the lists of variables have them.

use zonda_hdf5::{FileAddr, Fresh, HdfError, Sizes, Writer};

/// Bytes before the objects of a collection.
const HEAD: usize = 16;
/// Bytes of an object that is a reference, with what is before it.
const OBJECT: usize = 24;
/// Least and most bytes of a collection.
const LEAST: usize = 4096;
const MOST: usize = 65536;

/// Puts references into collections of their own and says where each is.
pub(super) fn put(
    references: &[FileAddr],
    sizes: Sizes,
    fresh: &mut Fresh<'_>,
) -> Result<Vec<(FileAddr, u32)>, HdfError> {
    let mut places = Vec::with_capacity(references.len());
    let room = MOST.saturating_sub(HEAD).saturating_sub(HEAD).checked_div(OBJECT).unwrap_or(1);
    for part in references.chunks(room) {
        let len = part.len().saturating_mul(OBJECT).saturating_add(HEAD);
        let len = len.max(LEAST).checked_next_multiple_of(8).unwrap_or(MOST);
        let mut writer = Writer::new("global heap collection", sizes);
        writer.put(b"GCOL").u8(1).zeros(3).length(len as u64)?;
        for (index, reference) in (1u16..).zip(part) {
            writer.u16(index).u16(0).u32(0).length(8)?.addr(Some(*reference))?.pad_to(8);
        }
        let left = len.saturating_sub(writer.len());
        if left >= HEAD {
            writer.u16(0).u16(0).u32(0).length(left as u64)?;
        }
        writer.zeros(len.saturating_sub(writer.len()));
        let addr = fresh.put(writer.finish())?;
        places.extend((1u32..).zip(part).map(|(index, _)| (addr, index)));
    }
    Ok(places)
}

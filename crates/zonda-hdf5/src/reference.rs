//! References: elements of datasets that name an object, a part of it, or an attribute of it.
//! Spec: HDF5 File Format, "Appendix D: Encoding for References" and the text on datatype class 7.
//! Old references to objects are addresses. Old ones to regions are places in the global heap, where
//! the address and a selection are. Revised ones (HDF5 1.12) begin with type and flags; a reference
//! to an object of the same file follows in place, everything else is in the global heap.
//! Watch: the type of a revised reference is in the element; the datatype need not say the same.

use crate::message::ReferenceKind;
use crate::selection::Selection;
use crate::{File, FileAddr, Reader, Result};

const NAME: &str = "reference";

/// Types of revised references, in their first byte.
const OBJECT: u8 = 2;
const REGION: u8 = 3;
const ATTRIBUTE: u8 = 4;

/// Flag of a revised reference: the name of a file is in it.
const EXTERNAL: u8 = 1;

/// What an element refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Header of the object.
    pub object: FileAddr,
    /// Name of the file that it is in; `None` for this one.
    pub file: Option<Box<[u8]>>,
    /// Which of its elements are meant, if not the object itself.
    pub region: Option<Selection>,
    /// Which of its attributes is meant, if not the object itself.
    pub attribute: Option<Box<[u8]>>,
}

impl Reference {
    /// Reads an element of a reference type as it is in the file; `None` for one that refers to
    /// nothing.
    ///
    /// # Errors
    /// Types that are not known; heap objects that are not there; selections of impossible form.
    pub fn read(file: &File, kind: ReferenceKind, element: &[u8]) -> Result<Option<Reference>> {
        let mut reader = Reader::new(NAME, element, 0, file.sizes());
        if element.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        match kind {
            ReferenceKind::Object => Ok(reader.addr()?.map(|object| Reference {
                object,
                file: None,
                region: None,
                attribute: None,
            })),
            ReferenceKind::DatasetRegion => in_heap(file, &mut reader, &mut |mut object| {
                let addr = object.defined_addr("the object")?;
                let region = Some(Selection::decode(&mut object)?);
                Ok(Reference { object: addr, file: None, region, attribute: None })
            }),
            ReferenceKind::Object2 | ReferenceKind::DatasetRegion2 | ReferenceKind::Attribute => {
                let kind = reader.u8()?;
                let flags = reader.u8()?;
                if !(OBJECT..=ATTRIBUTE).contains(&kind) {
                    return Err(reader.bad("the type of a reference", u64::from(kind)));
                }
                if kind == OBJECT && flags & EXTERNAL == 0 {
                    return revised(reader, kind, flags).map(Some);
                }
                // The bytes of the heap object, which may be longer.
                let len = u64::from(reader.u32()?);
                in_heap(file, &mut reader, &mut |mut object| {
                    let len = object.count(len, 1)?;
                    revised(object.sub(len)?, kind, flags)
                })
            }
        }
    }
}

/// Decodes the object of the global heap whose id is next in `reader`.
fn in_heap(
    file: &File,
    reader: &mut Reader<'_>,
    decode: &mut dyn FnMut(Reader<'_>) -> Result<Reference>,
) -> Result<Option<Reference>> {
    let Some(addr) = reader.addr()?.filter(|addr| addr.0 != 0) else { return Ok(None) };
    let index = reader.u32()?;
    let collection = file.global_heap_collection(addr)?;
    let object = collection.get(index).ok_or_else(|| reader.missing("its heap object"))?;
    decode(file.reader(NAME, addr, object)).map(Some)
}

/// Decodes a revised reference: its token, and those of file name, region and attribute name that
/// it has.
fn revised(mut reader: Reader<'_>, kind: u8, flags: u8) -> Result<Reference> {
    let token = usize::from(reader.u8()?);
    let object = FileAddr(reader.uint(token)?);
    let mut text = |is_there: bool| -> Result<Option<Box<[u8]>>> {
        if !is_there {
            return Ok(None);
        }
        let len = usize::from(reader.u16()?);
        reader.take(len).map(|text| Some(text.into()))
    };
    let file = text(flags & EXTERNAL != 0)?;
    let attribute = text(kind == ATTRIBUTE)?;
    let mut region = None;
    if kind == REGION {
        let len = u64::from(reader.u32()?);
        let rank = u64::from(reader.u32()?);
        let len = reader.count(len, 1)?;
        let selection = Selection::decode(&mut reader.sub(len)?)?;
        if selection.rank().is_some_and(|other| other as u64 != rank) {
            return Err(reader.bad("the number of dimensions of a region", rank));
        }
        region = Some(selection);
    }
    Ok(Reference { object, file, region, attribute })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;

    fn decode(bytes: &[u8], kind: u8, flags: u8) -> Result<Reference> {
        revised(Reader::new(NAME, bytes, 0, Sizes::EIGHT), kind, flags)
    }

    #[test]
    fn revised_references() {
        let object = b"\x08\x28\x07\0\0\0\0\0\0";
        let found = decode(object, OBJECT, 0).unwrap();
        assert_eq!(found.object, FileAddr(0x728));
        assert_eq!((found.file, found.region, found.attribute), (None, None, None));
        let attribute = b"\x08\x90\x07\0\0\0\0\0\0\x0e\0trefer_ext1.h5\x05\0Attr1";
        let found = decode(attribute, ATTRIBUTE, EXTERNAL).unwrap();
        assert_eq!(found.file.as_deref(), Some(&b"trefer_ext1.h5"[..]));
        assert_eq!(found.attribute.as_deref(), Some(&b"Attr1"[..]));
        let mut region =
            b"\x08\x28\x07\0\0\0\0\0\0\x10\0\0\0\x01\0\0\0\x03\0\0\0\x01\0\0\0".to_vec();
        region.extend([0; 8]);
        assert_eq!(decode(&region, REGION, 0).unwrap().region, Some(Selection::All));
        for end in 0..region.len() {
            assert!(decode(&region[..end], REGION, 0).is_err());
        }
        for end in 0..attribute.len() {
            assert!(decode(&attribute[..end], ATTRIBUTE, EXTERNAL).is_err());
        }
    }
}

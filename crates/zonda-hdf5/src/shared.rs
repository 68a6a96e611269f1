//! Shared messages: a reference instead of the body.
//! Spec: HDF5 File Format, "Disk Format: Level 2A2 - Data Object Header Messages", "Shared Message".
//! Versions 1 to 3 read, 2 and 3 written.
//! Watch: versions 1 and 2 have a type field, too, but it always means a committed datatype.

use std::borrow::Cow;

use crate::message::kind;
use crate::object_header::{Message, ObjectHeader};
use crate::{File, FileAddr, HdfError, Reader, Result, Writer, sohm};

const NAME: &str = "shared message";

/// What a reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedReference {
    /// The message of the same type in the header of this object, a committed datatype.
    Committed(FileAddr),
    /// An object of the heap of shared messages.
    Heap([u8; 8]),
}

impl SharedReference {
    /// Decodes a reference.
    ///
    /// # Errors
    /// Also for a type of sharing that the format does not define.
    pub fn decode(mut reader: Reader<'_>) -> Result<SharedReference> {
        reader = reader.named(NAME);
        let version = reader.version(1..=3)?;
        let place = reader.u8()?;
        match (version, place) {
            (1, _) => {
                // A former symbol table entry: unused bytes, an offset in a heap, the address.
                reader.skip(6)?;
                reader.length()?;
                Ok(SharedReference::Committed(reader.defined_addr("object")?))
            }
            (2, _) | (3, 2) => Ok(SharedReference::Committed(reader.defined_addr("object")?)),
            (3, 1) => Ok(SharedReference::Heap(reader.array()?)),
            _ => Err(reader.bad("place of a shared message", u64::from(place))),
        }
    }
}

impl SharedReference {
    /// Encodes a reference: in version 2 to a committed type, in version 3 into the heap, as
    /// libraries do.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] where the address is.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        match self {
            SharedReference::Committed(addr) => writer.u8(2).u8(2).addr(Some(*addr))?,
            SharedReference::Heap(id) => writer.u8(3).u8(1).put(id),
        };
        Ok(())
    }
}

/// The body of a message, wherever it is.
#[derive(Clone, Debug)]
pub struct Body<'a> {
    /// The bytes.
    pub bytes: Cow<'a, [u8]>,
    /// Byte of the file where they are, or where the reference to them is.
    pub at: u64,
    /// The object whose header they are in, if that is another one.
    pub committed: Option<FileAddr>,
    /// Type of the message.
    pub kind: u16,
}

impl Body<'_> {
    /// A reader over the body.
    #[must_use]
    pub fn reader(&self, file: &File) -> Reader<'_> {
        Reader::new(kind::name(self.kind), &self.bytes, self.at, file.sizes())
    }
}

/// The body of a message of `header`, a shared one followed to where it is.
///
/// # Errors
/// Also for shared messages of types that cannot be, and for references to references.
pub fn body<'a>(file: &File, header: &'a ObjectHeader, message: &Message) -> Result<Body<'a>> {
    let reader = header.reader(file.sizes(), message);
    if message.is_shared() {
        return resolve(file, reader, message.kind);
    }
    let bytes = Cow::Borrowed(header.body(message));
    Ok(Body { bytes, at: message.at, committed: None, kind: message.kind })
}

/// The body that a reference to a message of type `kind` leads to.
///
/// # Errors
/// As [`body`].
pub fn resolve(file: &File, reader: Reader<'_>, kind: u16) -> Result<Body<'static>> {
    let at = reader.at();
    if !kind::may_be_shared(kind) {
        return Err(reader.named(NAME).bad("type of a shared message", u64::from(kind)));
    }
    match SharedReference::decode(reader)? {
        SharedReference::Heap(id) => {
            let bytes = Cow::Owned(sohm::message(file, kind, &id)?);
            Ok(Body { bytes, at, committed: None, kind })
        }
        SharedReference::Committed(addr) => {
            let header = ObjectHeader::read(file, addr)?;
            let missing = HdfError::Missing { structure: NAME, at, what: "the message" };
            let message = header.find(kind).ok_or(missing)?;
            if message.is_shared() {
                return Err(HdfError::Cycle { structure: NAME, at: message.at });
            }
            let bytes = Cow::Owned(header.body(message).to_vec());
            Ok(Body { bytes, at: message.at, committed: Some(addr), kind })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;

    fn decode(bytes: &[u8]) -> Result<SharedReference> {
        SharedReference::decode(Reader::new("test", bytes, 0, Sizes { offset: 2, length: 4 }))
    }

    #[test]
    fn references_of_all_versions() {
        let committed = SharedReference::Committed(FileAddr(0x10));
        assert_eq!(decode(b"\x01\0\0\0\0\0\0\0\x07\0\0\0\x10\0").unwrap(), committed);
        assert_eq!(decode(b"\x02\x02\x10\0").unwrap(), committed);
        assert_eq!(decode(b"\x02\0\x10\0").unwrap(), committed);
        assert_eq!(decode(b"\x03\x02\x10\0").unwrap(), committed);
        assert_eq!(decode(b"\x03\x01ABCDEFGH").unwrap(), SharedReference::Heap(*b"ABCDEFGH"));
        for body in [b"\x02\x02\x10\0".as_slice(), b"\x03\x01ABCDEFGH"] {
            let mut writer = Writer::new("test", Sizes { offset: 2, length: 4 });
            decode(body).unwrap().encode(&mut writer).unwrap();
            assert_eq!(writer.bytes(), body);
        }
        assert!(decode(b"\x03\x03\x10\0").is_err(), "shared from here");
        assert!(decode(b"\x03\x01ABCDEFG").is_err(), "short");
        assert!(decode(b"\x02\x02\xff\xff").is_err(), "undefined");
        assert!(decode(b"\x04\x02\x10\0").is_err(), "version");
    }
}

//! Attribute Info message (0x0015): where attributes are that are not in the header.
//! Spec: HDF5 File Format, "The Attribute Info Message". Version 0.

use super::{decode_order_flags, encode_heap_and_indexes, encode_order_flags};
use crate::{FileAddr, Reader, Result, Writer};

/// Where the attributes of an object are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeInfo {
    /// Whether the order of creation is kept.
    pub tracked: bool,
    /// Whether there is an index by it.
    pub indexed: bool,
    /// The next creation index, where the order is kept.
    pub max_creation_index: Option<u16>,
    /// Heap of the attribute messages; `None` where they are in the header.
    pub heap: Option<FileAddr>,
    /// B-tree by name.
    pub name_index: Option<FileAddr>,
    /// B-tree by creation order.
    pub order_index: Option<FileAddr>,
}

impl AttributeInfo {
    /// Decodes the message.
    ///
    /// # Errors
    /// Those of a message that ends early, has another version or unknown flags.
    pub fn decode(mut reader: Reader<'_>) -> Result<AttributeInfo> {
        reader = reader.named("attribute info message");
        let (tracked, indexed) = decode_order_flags(&mut reader)?;
        Ok(AttributeInfo {
            tracked,
            indexed,
            max_creation_index: if tracked { Some(reader.u16()?) } else { None },
            heap: reader.addr()?,
            name_index: reader.addr()?,
            order_index: if indexed { reader.addr()? } else { None },
        })
    }

    /// Encodes the message.
    ///
    /// # Errors
    /// [`crate::HdfError::TooLarge`] where an address is.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_order_flags(self.tracked, self.indexed, writer);
        if self.tracked {
            writer.u16(self.max_creation_index.unwrap_or_default());
        }
        let addrs = [self.heap, self.name_index, self.order_index];
        encode_heap_and_indexes(addrs, self.indexed, writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;
    use crate::testing::{encoded, hex};

    #[test]
    fn optional_fields() {
        let sizes = Sizes { offset: 2, length: 2 };
        let decode = |bytes| AttributeInfo::decode(Reader::new("test", bytes, 0, sizes));
        let info = decode(b"\0\x03\x05\0\x10\0\x20\0\x30\0").unwrap();
        assert_eq!((info.max_creation_index, info.order_index), (Some(5), Some(FileAddr(0x30))));
        let info = decode(b"\0\0\xff\xff\xff\xff").unwrap();
        assert_eq!((info.heap, info.name_index, info.tracked), (None, None, false));
        assert!(decode(b"\0\x02\x10\0\x20\0").is_err(), "no order index");
        assert!(decode(b"\0\x04\x10\0\x20\0").is_err(), "flags");
        assert!(decode(b"\x01\0\x10\0\x20\0").is_err(), "version");
    }

    #[test]
    fn written_as_libraries_do() {
        // netCDF-C 4.9.0 on HDF5 1.10.8, and h5py 3.16, which keeps no order.
        let bodies = [
            "0003 0e00 ffffffffffffffff ffffffffffffffff ffffffffffffffff",
            "0000 ffffffffffffffff ffffffffffffffff",
        ];
        for body in bodies.map(hex) {
            let info = AttributeInfo::decode(Reader::new("test", &body, 0, Sizes::EIGHT)).unwrap();
            assert_eq!(encoded(|writer| info.encode(writer)).unwrap(), body);
        }
    }
}

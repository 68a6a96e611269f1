//! Link Info message (0x0002): where links are that are not in the header.
//! Spec: HDF5 File Format, "The Link Info Message". Version 0.

use super::{decode_order_flags, encode_heap_and_indexes, encode_order_flags};
use crate::{FileAddr, HdfError, Reader, Result, Writer};

/// Where the links of a group are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// Whether the order of creation is kept.
    pub tracked: bool,
    /// Whether there is an index by it.
    pub indexed: bool,
    /// The next creation index, where the order is kept.
    pub max_creation_index: Option<i64>,
    /// Heap of the link messages; `None` where they are in the header.
    pub heap: Option<FileAddr>,
    /// B-tree by name.
    pub name_index: Option<FileAddr>,
    /// B-tree by creation order.
    pub order_index: Option<FileAddr>,
}

impl LinkInfo {
    /// Decodes the message.
    ///
    /// # Errors
    /// Those of a message that ends early, has another version or unknown flags; a negative index.
    pub fn decode(mut reader: Reader<'_>) -> Result<LinkInfo> {
        reader = reader.named("link info message");
        let (tracked, indexed) = decode_order_flags(&mut reader)?;
        let max_creation_index = match tracked {
            false => None,
            true => {
                let index = reader.u64()?;
                Some(i64::try_from(index).map_err(|_| reader.bad("next creation index", index))?)
            }
        };
        Ok(LinkInfo {
            tracked,
            indexed,
            max_creation_index,
            heap: reader.addr()?,
            name_index: reader.addr()?,
            order_index: if indexed { reader.addr()? } else { None },
        })
    }

    /// Encodes the message.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] where an address is.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_order_flags(self.tracked, self.indexed, writer);
        if self.tracked {
            let index = self.max_creation_index.unwrap_or_default();
            let too_large =
                |_| HdfError::TooLarge { structure: "link info message", value: index as u64 };
            writer.u64(u64::try_from(index).map_err(too_large)?);
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
        let decode = |bytes| LinkInfo::decode(Reader::new("test", bytes, 0, sizes));
        let info = decode(b"\0\x03\x05\0\0\0\0\0\0\0\x10\0\x20\0\x30\0").unwrap();
        assert_eq!((info.max_creation_index, info.order_index), (Some(5), Some(FileAddr(0x30))));
        let info = decode(b"\0\0\xff\xff\xff\xff").unwrap();
        assert_eq!((info.heap, info.name_index, info.tracked), (None, None, false));
        assert!(decode(b"\0\x01\xff\xff\xff\xff\xff\xff\xff\xff\x10\0\x20\0").is_err(), "negative");
        assert!(decode(b"\0\x02\x10\0\x20\0").is_err(), "no order index");
        assert!(decode(b"\0\x04\x10\0\x20\0").is_err(), "flags");
        assert!(decode(b"\x01\0\x10\0\x20\0").is_err(), "version");
    }

    #[test]
    fn written_as_libraries_do() {
        // netCDF-C 4.9.0 on HDF5 1.10.8: 4 links, and 20. h5py 3.16: links without an order.
        let bodies = [
            "0003 0400000000000000 ffffffffffffffff ffffffffffffffff ffffffffffffffff",
            "0003 1400000000000000 1309000000000000 a509000000000000 cb09000000000000",
            "0000 3b21000000000000 cd21000000000000",
        ];
        for body in bodies.map(hex) {
            let info = LinkInfo::decode(Reader::new("test", &body, 0, Sizes::EIGHT)).unwrap();
            assert_eq!(encoded(|writer| info.encode(writer)).unwrap(), body);
        }
    }
}

//! Shared Message Table message (0x000F), in the superblock extension: where that table is.
//! Spec: HDF5 File Format, "The Shared Message Table Message". Version 0 read.

use crate::{FileAddr, Reader, Result};

/// Where the table of shared messages is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMessageTable {
    /// The table.
    pub addr: FileAddr,
    /// Indexes in it.
    pub n_indexes: u8,
}

impl SharedMessageTable {
    /// Decodes the message.
    ///
    /// # Errors
    /// Also where there are no indexes, or more than kinds of messages to be shared.
    pub fn decode(mut reader: Reader<'_>) -> Result<SharedMessageTable> {
        reader = reader.named("shared message table message");
        reader.version(0..=0)?;
        let addr = reader.defined_addr("table")?;
        match reader.u8()? {
            n_indexes @ 1..=8 => Ok(SharedMessageTable { addr, n_indexes }),
            n_indexes => Err(reader.bad("number of indexes", u64::from(n_indexes))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;

    #[test]
    fn address_and_number() {
        let sizes = Sizes { offset: 2, length: 2 };
        let decode = |bytes| SharedMessageTable::decode(Reader::new("test", bytes, 0, sizes));
        let table = decode(b"\0\x10\0\x02").unwrap();
        assert_eq!((table.addr, table.n_indexes), (FileAddr(16), 2));
        assert!(decode(b"\0\xff\xff\x02").is_err() && decode(b"\0\x10\0\x00").is_err());
        assert!(decode(b"\0\x10\0\x09").is_err() && decode(b"\0\x10\0").is_err());
    }
}

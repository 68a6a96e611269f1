//! Symbol Table message (0x0011): where the links of an old-style group are.
//! Spec: HDF5 File Format, "The Symbol Table Message". It has no version.

use crate::{FileAddr, Reader, Result, Writer};

/// Where the links of an old-style group are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolTableMessage {
    /// Version 1 B-tree of the entries.
    pub btree: FileAddr,
    /// Local heap of their names.
    pub heap: FileAddr,
}

impl SymbolTableMessage {
    /// Decodes the message.
    ///
    /// # Errors
    /// Where one of the two addresses is not defined.
    pub fn decode(mut reader: Reader<'_>) -> Result<SymbolTableMessage> {
        reader = reader.named("symbol table message");
        let btree = reader.defined_addr("B-tree")?;
        Ok(SymbolTableMessage { btree, heap: reader.defined_addr("local heap")? })
    }

    /// Encodes the message.
    ///
    /// # Errors
    /// [`crate::HdfError::TooLarge`] where an address is.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.addr(Some(self.btree))?.addr(Some(self.heap))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;

    #[test]
    fn two_addresses() {
        let sizes = Sizes { offset: 2, length: 2 };
        let decode = |bytes| SymbolTableMessage::decode(Reader::new("test", bytes, 0, sizes));
        let table = decode(b"\x10\0\x20\0").unwrap();
        assert_eq!((table.btree, table.heap), (FileAddr(16), FileAddr(32)));
        assert!(decode(b"\x10\0\xff\xff").is_err() && decode(b"\x10\0\x20").is_err());
        let mut writer = Writer::new("test", sizes);
        table.encode(&mut writer).unwrap();
        assert_eq!(writer.bytes(), b"\x10\0\x20\0");
    }
}

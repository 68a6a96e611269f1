//! B-tree 'K' Values message (0x0013), in the superblock extension: sizes of version 1 B-trees.
//! Spec: HDF5 File Format, "The B-tree 'K' Values Message". Version 0 read.

use crate::{Reader, Result};

/// Sizes of version 1 B-trees that are not the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KValues {
    /// Half the children of a node of a chunk index.
    pub chunk: u16,
    /// Half the children of a node of a group's B-tree.
    pub group_internal: u16,
    /// Half the entries of a symbol table node.
    pub group_leaf: u16,
}

impl KValues {
    /// Decodes the message.
    ///
    /// # Errors
    /// Also for a size of 0.
    pub fn decode(mut reader: Reader<'_>) -> Result<KValues> {
        reader = reader.named("B-tree 'K' values message");
        reader.version(0..=0)?;
        let mut size = || match reader.u16()? {
            0 => Err(reader.bad("half the children of a B-tree node", 0)),
            size => Ok(size),
        };
        Ok(KValues { chunk: size()?, group_internal: size()?, group_leaf: size()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;

    #[test]
    fn three_sizes() {
        let decode = |bytes| KValues::decode(Reader::new("test", bytes, 0, Sizes::EIGHT));
        let k = decode(b"\0\x20\0\x10\0\x04\0").unwrap();
        assert_eq!((k.chunk, k.group_internal, k.group_leaf), (32, 16, 4));
        assert!(decode(b"\0\x20\0\0\0\x04\0").is_err() && decode(b"\0\x20\0\x10\0").is_err());
    }
}

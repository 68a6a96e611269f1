//! Metadata Cache Image message (0x0018), in the superblock extension: where that image is.
//! Spec: HDF5 File Format, "The Metadata Cache Image Message". Version 0 read.
//! The image itself is decoded by [`crate::cache_image`].

use crate::{FileAddr, Reader, Result};

/// Where the image of the metadata cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheImageMessage {
    /// The image; `None` where there is none any more.
    pub addr: Option<FileAddr>,
    /// Bytes of the image.
    pub len: u64,
}

impl CacheImageMessage {
    /// Decodes the message.
    ///
    /// # Errors
    /// Those of a message that ends early or has another version.
    pub fn decode(mut reader: Reader<'_>) -> Result<CacheImageMessage> {
        reader = reader.named("metadata cache image message");
        reader.version(0..=0)?;
        Ok(CacheImageMessage { addr: reader.addr()?, len: reader.length()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;

    #[test]
    fn address_and_length() {
        let sizes = Sizes { offset: 2, length: 2 };
        let decode = |bytes| CacheImageMessage::decode(Reader::new("test", bytes, 0, sizes));
        let image = decode(b"\0\x10\0\x20\0").unwrap();
        assert_eq!((image.addr, image.len), (Some(FileAddr(16)), 32));
        assert!(decode(b"\x01\x10\0\x20\0").is_err() && decode(b"\0\x10\0\x20").is_err());
    }
}

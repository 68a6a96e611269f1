//! Object Comment message (0x000D): text about an object.
//! Spec: HDF5 File Format, "The Object Comment Message". It has no version.

use crate::{Reader, Result};

/// Text about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment(pub Box<[u8]>);

impl Comment {
    /// Decodes the message.
    ///
    /// # Errors
    /// Where the text does not end within the message.
    pub fn decode(mut reader: Reader<'_>) -> Result<Comment> {
        reader = reader.named("object comment message");
        Ok(Comment(reader.until_nul()?.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;

    #[test]
    fn text_ends_with_nul() {
        let decode = |bytes| Comment::decode(Reader::new("test", bytes, 0, Sizes::EIGHT));
        assert_eq!(&*decode(b"hello\0\0\0").unwrap().0, b"hello");
        assert!(decode(b"hello").is_err());
    }
}

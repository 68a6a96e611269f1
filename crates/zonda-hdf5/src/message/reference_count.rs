//! Object Reference Count message (0x0016): hard links to an object, where there is not just one.
//! Spec: HDF5 File Format, "The Object Reference Count Message". Version 0.

use crate::{Reader, Result, Writer};

/// Decodes the message.
///
/// # Errors
/// Those of a message that ends early or has another version.
pub fn decode_reference_count(mut reader: Reader<'_>) -> Result<u32> {
    reader = reader.named("object reference count message");
    reader.version(0..=0)?;
    reader.u32()
}

/// Encodes the message.
///
/// # Errors
/// None; the other messages have some.
pub fn encode_reference_count(count: u32, writer: &mut Writer) -> Result<()> {
    writer.u8(0).u32(count);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;
    use crate::testing::encoded;

    #[test]
    fn one_number() {
        let decode = |bytes| decode_reference_count(Reader::new("test", bytes, 0, Sizes::EIGHT));
        assert_eq!(decode(b"\0\x03\0\0\0").unwrap(), 3);
        // h5py 3.16: a committed type with a link, used by a dataset and an attribute.
        let body = encoded(|writer| encode_reference_count(3, writer)).unwrap();
        assert_eq!(body, b"\0\x03\0\0\0");
        assert!(decode(b"\x01\x03\0\0\0").is_err() && decode(b"\0\x03\0\0").is_err());
    }
}

//! Driver Info message (0x0014), in the superblock extension: which driver wrote the file.
//! Spec: HDF5 File Format, "The Driver Info Message". Version 0 read.

use crate::superblock::DriverInfo;
use crate::{Reader, Result};

/// Decodes the message.
///
/// # Errors
/// Those of a message that ends early or has another version.
pub fn decode_driver_info(mut reader: Reader<'_>) -> Result<DriverInfo> {
    reader = reader.named("driver info message");
    reader.version(0..=0)?;
    let id = reader.array()?;
    let len = reader.u16()?;
    reader.skip(usize::from(len))?;
    Ok(DriverInfo { id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;

    #[test]
    fn split_files_are_known() {
        let decode = |bytes| decode_driver_info(Reader::new("test", bytes, 0, Sizes::EIGHT));
        assert!(decode(b"\0NCSAfami\x02\0hi").unwrap().is_split());
        assert!(!decode(b"\0NCSAxxxx\0\0").unwrap().is_split());
        assert!(decode(b"\0NCSAfami\x03\0hi").is_err());
    }
}

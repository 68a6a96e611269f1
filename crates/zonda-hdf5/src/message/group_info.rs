//! Group Info message (0x000A): how a group keeps its links.
//! Spec: HDF5 File Format, "The Group Info Message". Version 0.

use crate::{Reader, Result, Writer};

/// How a group keeps its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupInfo {
    /// Most links in the header, least links outside of it, where they are not the defaults.
    pub phase_change: Option<(u16, u16)>,
    /// Estimated number of links and length of their names, where they are not the defaults.
    pub estimates: Option<(u16, u16)>,
}

impl GroupInfo {
    /// Decodes the message.
    ///
    /// # Errors
    /// Those of a message that ends early, has another version or unknown flags.
    pub fn decode(mut reader: Reader<'_>) -> Result<GroupInfo> {
        reader = reader.named("group info message");
        reader.version(0..=0)?;
        let flags = reader.u8()?;
        if flags & !3 != 0 {
            return Err(reader.bad("flags", u64::from(flags)));
        }
        let mut pair = |present| -> Result<Option<(u16, u16)>> {
            if present { Ok(Some((reader.u16()?, reader.u16()?))) } else { Ok(None) }
        };
        Ok(GroupInfo { phase_change: pair(flags & 1 != 0)?, estimates: pair(flags & 2 != 0)? })
    }

    /// Encodes the message.
    ///
    /// # Errors
    /// None; the other messages have some.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let pairs = [self.phase_change, self.estimates];
        let flags = u8::from(self.phase_change.is_some()) | u8::from(self.estimates.is_some()) << 1;
        writer.u8(0).u8(flags);
        for (one, other) in pairs.into_iter().flatten() {
            writer.u16(one).u16(other);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;
    use crate::testing::{encoded, hex};

    #[test]
    fn optional_fields() {
        let decode = |bytes| GroupInfo::decode(Reader::new("test", bytes, 0, Sizes::EIGHT));
        let info = decode(b"\0\x02\x05\0\x06\0").unwrap();
        assert_eq!((info.phase_change, info.estimates), (None, Some((5, 6))));
        assert_eq!(decode(b"\0\x01\x08\0\x06\0").unwrap().phase_change, Some((8, 6)));
        assert!(decode(b"\0\x03\x05\0\x06\0").is_err(), "too short");
        assert!(decode(b"\0\x04").is_err(), "flags");
    }

    #[test]
    fn written_as_libraries_do() {
        // HDF5 1.10.8: the defaults; H5Pset_link_phase_change(64, 60), H5Pset_est_link_info(5, 9).
        for body in ["0000", "0003 4000 3c00 0500 0900"].map(hex) {
            let info = GroupInfo::decode(Reader::new("test", &body, 0, Sizes::EIGHT)).unwrap();
            assert_eq!(encoded(|writer| info.encode(writer)).unwrap(), body);
        }
    }
}

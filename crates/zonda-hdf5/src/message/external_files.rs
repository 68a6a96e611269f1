//! External Data Files message (0x0007): files that hold the bytes of a dataset.
//! Spec: HDF5 File Format, "The Data Storage - External Data Files Message". Version 1 read.
//! Watch: names are in a local heap of their own.

use crate::{FileAddr, Reader, Result};

/// Files that hold the bytes of a dataset, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalFilesMessage {
    /// Local heap of the names.
    pub heap: FileAddr,
    /// The pieces, in the order of their bytes in the dataset.
    pub slots: Vec<ExternalSlotMessage>,
}

/// A piece of a dataset in another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalSlotMessage {
    /// Name of the file: an offset in the heap.
    pub name_offset: u64,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes; `u64::MAX` where there is no limit.
    pub len: u64,
}

impl ExternalFilesMessage {
    /// Decodes the message.
    ///
    /// # Errors
    /// Also where more slots are in use than there are.
    pub fn decode(mut reader: Reader<'_>) -> Result<ExternalFilesMessage> {
        reader = reader.named("external data files message");
        reader.version(1..=1)?;
        reader.skip(3)?;
        let allocated = reader.u16()?;
        let used = reader.u16()?;
        if used > allocated {
            return Err(reader.bad("slots in use", u64::from(used)));
        }
        let heap = reader.defined_addr("local heap")?;
        let width = usize::from(reader.sizes().length);
        let used = reader.count(u64::from(used), width.saturating_mul(3))?;
        let bits = u32::from(reader.sizes().length).saturating_mul(8);
        let unlimited = u64::MAX.checked_shr(64u32.saturating_sub(bits)).unwrap_or(0);
        let mut slots = Vec::with_capacity(used);
        for _ in 0..used {
            let (name_offset, offset) = (reader.length()?, reader.length()?);
            let len = match reader.length()? {
                len if len == unlimited => u64::MAX,
                len => len,
            };
            slots.push(ExternalSlotMessage { name_offset, offset, len });
        }
        Ok(ExternalFilesMessage { heap, slots })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;

    #[test]
    fn slots_in_use() {
        let sizes = Sizes { offset: 2, length: 2 };
        let decode = |bytes| ExternalFilesMessage::decode(Reader::new("test", bytes, 0, sizes));
        let bytes = b"\x01\0\0\0\x02\0\x02\0\x10\0\x08\0\0\0\x40\0\x10\0\x01\0\xff\xff";
        let list = decode(bytes).unwrap();
        assert_eq!(list.slots[0], ExternalSlotMessage { name_offset: 8, offset: 0, len: 64 });
        assert_eq!((list.heap, list.slots[1].len), (FileAddr(16), u64::MAX));
        assert!(
            decode(b"\x01\0\0\0\x01\0\x02\0\x10\0\x08\0\0\0\x40\0\x10\0\x01\0\xff\xff").is_err()
        );
        assert!(decode(b"\x01\0\0\0\xff\xff\xff\xff\x10\0\x08\0\0\0\x40\0").is_err());
    }
}

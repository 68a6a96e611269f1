//! File Space Info message (0x0017), in the superblock extension: how space is managed.
//! Spec: HDF5 File Format, "The File Space Info Message". Versions 0 and 1 read.
//! The free-space managers themselves are never read: a reader has no use for them.

use crate::{FileAddr, Reader, Result};

/// How space in the file is managed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpaceInfo {
    /// Version of the message.
    pub version: u8,
    /// Who gives out space.
    pub strategy: FileSpaceStrategy,
    /// Whether what is free is kept in the file.
    pub persistent: bool,
    /// Bytes of the least free section that is kept.
    pub threshold: u64,
    /// Bytes of a page, where space is managed in pages.
    pub page_size: u64,
    /// End of the file before free-space managers were written.
    pub end_before: Option<FileAddr>,
    /// The free-space managers.
    pub managers: Vec<Option<FileAddr>>,
}

/// Who gives out space in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSpaceStrategy {
    /// Free-space managers, aggregators, the driver.
    ManagersAndAggregators,
    /// Free-space managers with pages.
    Pages,
    /// Aggregators, the driver.
    Aggregators,
    /// The driver alone.
    None,
}

impl FileSpaceInfo {
    /// Decodes the message.
    ///
    /// # Errors
    /// Also for an unknown strategy, and for a page of less than the 512 bytes that it must have.
    pub fn decode(mut reader: Reader<'_>) -> Result<FileSpaceInfo> {
        reader = reader.named("file space info message");
        let version = reader.version(0..=1)?;
        let code = reader.u8()?;
        if version == 0 {
            // Version 0 counted from 1 and had "all, kept", "all", "aggregators", "driver".
            let (strategy, persistent) = match code {
                1 => (FileSpaceStrategy::ManagersAndAggregators, true),
                2 => (FileSpaceStrategy::ManagersAndAggregators, false),
                3 => (FileSpaceStrategy::Aggregators, false),
                4 => (FileSpaceStrategy::None, false),
                _ => return Err(reader.bad("strategy", u64::from(code))),
            };
            let threshold = reader.length()?;
            let n_managers = if persistent { 6 } else { 0 };
            let managers = (0..n_managers).map(|_| reader.addr()).collect::<Result<_>>()?;
            let (page_size, end_before) = (4096, None);
            return Ok(FileSpaceInfo {
                version,
                strategy,
                persistent,
                threshold,
                page_size,
                end_before,
                managers,
            });
        }
        let strategy = match code {
            0 => FileSpaceStrategy::ManagersAndAggregators,
            1 => FileSpaceStrategy::Pages,
            2 => FileSpaceStrategy::Aggregators,
            3 => FileSpaceStrategy::None,
            _ => return Err(reader.bad("strategy", u64::from(code))),
        };
        let persistent = reader.u8()? != 0;
        let threshold = reader.length()?;
        let page_size = reader.length()?;
        if page_size < 512 {
            return Err(reader.bad("bytes of a page", page_size));
        }
        reader.u16()?; // Least bytes at the end of a page that are kept.
        let end_before = reader.addr()?;
        let n_managers = if persistent { 12 } else { 0 };
        let managers = (0..n_managers).map(|_| reader.addr()).collect::<Result<_>>()?;
        Ok(FileSpaceInfo {
            version,
            strategy,
            persistent,
            threshold,
            page_size,
            end_before,
            managers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;

    #[test]
    fn both_versions() {
        let sizes = Sizes { offset: 2, length: 2 };
        let decode = |bytes| FileSpaceInfo::decode(Reader::new("test", bytes, 0, sizes));
        let new = decode(b"\x01\x01\0\x01\0\0\x10\x0a\0\xff\xff").unwrap();
        assert_eq!((new.strategy, new.page_size), (FileSpaceStrategy::Pages, 4096));
        assert_eq!((new.end_before, new.managers.len()), (None, 0));
        let mut kept = b"\x01\0\x01\x01\0\0\x10\x0a\0\x40\0".to_vec();
        kept.extend(b"\xff\xff".repeat(12));
        assert_eq!(decode(&kept).unwrap().managers, [None; 12]);
        assert!(decode(&kept[..30]).is_err(), "managers cut");
        let old = decode(b"\0\x01\x01\0\x10\0\x20\0\x30\0\x40\0\x50\0\x60\0").unwrap();
        assert!(old.persistent && old.managers[5] == Some(FileAddr(0x60)));
        assert!(decode(b"\0\0\x01\0").is_err() && decode(b"\x01\x04\0").is_err(), "strategy");
        assert!(decode(b"\x01\x01\0\x01\0\0\x01\x0a\0\xff\xff").is_err(), "page of 256 bytes");
    }
}

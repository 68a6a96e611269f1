//! File Space Info message (0x0017), in the superblock extension: how space is managed.
//! Spec: HDF5 File Format, "The File Space Info Message". Versions 0 and 1 read and written. The
//! free-space managers themselves are never read: a reader has no use for them, and a writer here
//! says that there are none.
//! Watch: the library makes a file as short as this message says before it gives out space.

use crate::{FileAddr, HdfError, Reader, Result, Writer};

const NAME: &str = "file space info message";

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
    /// Bytes at the end of a page that are not kept if they are fewer.
    pub page_end_threshold: u16,
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
        reader = reader.named(NAME);
        let version = reader.version(0..=1)?;
        let code = reader.u8()?;
        let (strategy, persistent) = match (version, code) {
            // Version 0 counted from 1 and had "all, kept", "all", "aggregators", "driver".
            (0, 1) => (FileSpaceStrategy::ManagersAndAggregators, true),
            (0, 2) => (FileSpaceStrategy::ManagersAndAggregators, false),
            (0, 3) => (FileSpaceStrategy::Aggregators, false),
            (0, 4) => (FileSpaceStrategy::None, false),
            (1, 0) => (FileSpaceStrategy::ManagersAndAggregators, reader.u8()? != 0),
            (1, 1) => (FileSpaceStrategy::Pages, reader.u8()? != 0),
            (1, 2) => (FileSpaceStrategy::Aggregators, reader.u8()? != 0),
            (1, 3) => (FileSpaceStrategy::None, reader.u8()? != 0),
            _ => return Err(reader.bad("strategy", u64::from(code))),
        };
        let threshold = reader.length()?;
        let (mut page_size, mut page_end_threshold, mut end_before) = (4096, 0, None);
        if version > 0 {
            page_size = reader.length()?;
            if page_size < 512 {
                return Err(reader.bad("bytes of a page", page_size));
            }
            page_end_threshold = reader.u16()?;
            end_before = reader.addr()?;
        }
        let n_managers = match (persistent, version) {
            (false, _) => 0,
            (true, 0) => 6,
            (true, _) => 12,
        };
        let managers = (0..n_managers).map(|_| reader.addr()).collect::<Result<_>>()?;
        Ok(FileSpaceInfo {
            version,
            strategy,
            persistent,
            threshold,
            page_size,
            page_end_threshold,
            end_before,
            managers,
        })
    }

    /// The same without managers and without an end to cut the file at. A writer has to write this
    /// before it puts anything behind the end of the file. The message keeps its length, and the
    /// library makes new managers when it next closes the file.
    #[must_use]
    pub fn without_managers(&self) -> FileSpaceInfo {
        let managers = vec![None; self.managers.len()];
        FileSpaceInfo { end_before: None, managers, ..self.clone() }
    }

    /// Encodes the message in its version.
    ///
    /// # Errors
    /// [`HdfError::Unsupported`] for pages in version 0, [`HdfError::TooLarge`] for what is wider
    /// than lengths and addresses are.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let managers = |writer: &mut Writer| {
            self.managers.iter().try_for_each(|addr| writer.addr(*addr).map(|_| ()))
        };
        if self.version == 0 {
            let code = match (self.strategy, self.persistent) {
                (FileSpaceStrategy::ManagersAndAggregators, true) => 1,
                (FileSpaceStrategy::ManagersAndAggregators, false) => 2,
                (FileSpaceStrategy::Aggregators, _) => 3,
                (FileSpaceStrategy::None, _) => 4,
                (FileSpaceStrategy::Pages, _) => {
                    let what = "pages in version 0";
                    return Err(HdfError::Unsupported { structure: NAME, at: 0, what });
                }
            };
            writer.u8(0).u8(code).length(self.threshold)?;
            return managers(writer);
        }
        let code = match self.strategy {
            FileSpaceStrategy::ManagersAndAggregators => 0,
            FileSpaceStrategy::Pages => 1,
            FileSpaceStrategy::Aggregators => 2,
            FileSpaceStrategy::None => 3,
        };
        writer.u8(1).u8(code).u8(u8::from(self.persistent));
        writer.length(self.threshold)?.length(self.page_size)?;
        writer.u16(self.page_end_threshold).addr(self.end_before)?;
        managers(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;
    use crate::testing::{encoded, hex};

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
    #[test]
    fn written_as_libraries_do() {
        // HDF5 2.0 (h5py 3.16): managers that are kept, pages, aggregators.
        let undefined = "ffffffffffffffff";
        let kept = format!(
            "01 00 01 4000000000000000 0010000000000000 0000 18e1030000000000 2637020000000000
            {undefined} d436020000000000 {}",
            undefined.repeat(9)
        );
        let bodies = [
            kept.as_str(),
            "01 01 00 0100000000000000 0010000000000000 0a00 ffffffffffffffff",
            "01 02 00 0100000000000000 0010000000000000 0000 ffffffffffffffff",
            "01 03 00 0100000000000000 0010000000000000 0000 ffffffffffffffff",
            // Version 0, which the library no longer writes.
            "00 01 0100000000000000 100000000000000020000000000000003000000000000000
            4000000000000000 5000000000000000 ffffffffffffffff",
            "00 02 0100000000000000",
            "00 04 0100000000000000",
        ];
        for body in bodies.map(hex) {
            let decode = |body| FileSpaceInfo::decode(Reader::new("test", body, 0, Sizes::EIGHT));
            let info = decode(&body).unwrap();
            assert_eq!(encoded(|writer| info.encode(writer)).unwrap(), body);
            let without = info.without_managers();
            let shorter = encoded(|writer| without.encode(writer)).unwrap();
            assert_eq!((shorter.len(), decode(&shorter).unwrap()), (body.len(), without.clone()));
            assert!(without.managers.iter().all(Option::is_none) && without.end_before.is_none());
            assert_eq!(without.persistent, info.persistent);
        }
    }
}

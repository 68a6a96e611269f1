//! Kinds of files, and which one a text needs.

/// A kind of netCDF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// CDF-1.
    Classic,
    /// CDF-2.
    Offset64,
    /// CDF-5.
    Data64,
    /// netCDF-4.
    NetCdf4,
    /// netCDF-4 with the classic data model.
    NetCdf4Classic,
}

/// Names of kinds, as the options `-k` and `-v` and the attribute `_Format` have them.
const NAMES: [(&str, FileKind); 29] = [
    ("classic", FileKind::Classic),
    ("nc3", FileKind::Classic),
    ("1", FileKind::Classic),
    ("64-bit offset", FileKind::Offset64),
    ("nc6", FileKind::Offset64),
    ("2", FileKind::Offset64),
    ("64-bit-offset", FileKind::Offset64),
    ("netCDF-4", FileKind::NetCdf4),
    ("nc4", FileKind::NetCdf4),
    ("3", FileKind::NetCdf4),
    ("netCDF4", FileKind::NetCdf4),
    ("hdf5", FileKind::NetCdf4),
    ("enhanced", FileKind::NetCdf4),
    ("netcdf-4", FileKind::NetCdf4),
    ("netcdf4", FileKind::NetCdf4),
    ("netCDF-4 classic model", FileKind::NetCdf4Classic),
    ("nc7", FileKind::NetCdf4Classic),
    ("4", FileKind::NetCdf4Classic),
    ("netCDF-4-classic", FileKind::NetCdf4Classic),
    ("netCDF-4_classic", FileKind::NetCdf4Classic),
    ("netCDF4_classic", FileKind::NetCdf4Classic),
    ("hdf5-nc3", FileKind::NetCdf4Classic),
    ("enhanced-nc3", FileKind::NetCdf4Classic),
    ("5", FileKind::Data64),
    ("64-bit-data", FileKind::Data64),
    ("64-bit data", FileKind::Data64),
    ("nc5", FileKind::Data64),
    ("cdf5", FileKind::Data64),
    ("cdf-5", FileKind::Data64),
];

impl FileKind {
    /// The kind of that name.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<FileKind> {
        NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, kind)| *kind)
    }

    /// Whether the data model is the classic one, with unsigned types or without.
    #[must_use]
    pub fn is_classic_model(self) -> bool {
        self != FileKind::NetCdf4
    }

    /// Whether unsigned and 64-bit integers are types.
    #[must_use]
    pub fn has_all_integers(self) -> bool {
        matches!(self, FileKind::Data64 | FileKind::NetCdf4)
    }

    /// Whether files are HDF5.
    #[must_use]
    pub fn is_hdf5(self) -> bool {
        matches!(self, FileKind::NetCdf4 | FileKind::NetCdf4Classic)
    }
}

/// Features that a text uses and not every kind of file has, with the place of the first use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    /// Groups, own types, strings: netCDF-4 only.
    pub(crate) enhanced: Option<(u64, &'static str)>,
    /// Unsigned and 64-bit integers: CDF-5 and netCDF-4.
    pub(crate) integers: Option<u64>,
    /// How variables are stored: HDF5.
    pub(crate) storage: Option<u64>,
}

impl Needs {
    pub(crate) fn enhanced(&mut self, at: u64, what: &'static str) {
        self.enhanced.get_or_insert((at, what));
    }

    /// The simplest kind that has all features.
    pub(crate) fn kind(&self) -> FileKind {
        match () {
            () if self.enhanced.is_some() || self.storage.is_some() => FileKind::NetCdf4,
            () if self.integers.is_some() => FileKind::Data64,
            () => FileKind::Classic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, kind) in [
            ("classic", Some(FileKind::Classic)),
            ("64-bit offset", Some(FileKind::Offset64)),
            ("cdf5", Some(FileKind::Data64)),
            ("3", Some(FileKind::NetCdf4)),
            ("4", Some(FileKind::NetCdf4Classic)),
            ("enhanced-nc3", Some(FileKind::NetCdf4Classic)),
            ("6", None),
            ("", None),
            ("Classic", None),
        ] {
            assert_eq!(FileKind::named(name.as_bytes()), kind, "{name}");
        }
    }

    #[test]
    fn least_kind_that_serves() {
        let mut needs = Needs::default();
        assert_eq!(needs.kind(), FileKind::Classic);
        needs.integers = Some(1);
        assert_eq!(needs.kind(), FileKind::Data64);
        needs.enhanced(3, "a group");
        assert_eq!(needs.kind(), FileKind::NetCdf4);
    }
}

//! Kinds of files, and which one a text needs.

/// A kind of netCDF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
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
const NAMES: [(&str, Kind); 29] = [
    ("classic", Kind::Classic),
    ("nc3", Kind::Classic),
    ("1", Kind::Classic),
    ("64-bit offset", Kind::Offset64),
    ("nc6", Kind::Offset64),
    ("2", Kind::Offset64),
    ("64-bit-offset", Kind::Offset64),
    ("netCDF-4", Kind::NetCdf4),
    ("nc4", Kind::NetCdf4),
    ("3", Kind::NetCdf4),
    ("netCDF4", Kind::NetCdf4),
    ("hdf5", Kind::NetCdf4),
    ("enhanced", Kind::NetCdf4),
    ("netcdf-4", Kind::NetCdf4),
    ("netcdf4", Kind::NetCdf4),
    ("netCDF-4 classic model", Kind::NetCdf4Classic),
    ("nc7", Kind::NetCdf4Classic),
    ("4", Kind::NetCdf4Classic),
    ("netCDF-4-classic", Kind::NetCdf4Classic),
    ("netCDF-4_classic", Kind::NetCdf4Classic),
    ("netCDF4_classic", Kind::NetCdf4Classic),
    ("hdf5-nc3", Kind::NetCdf4Classic),
    ("enhanced-nc3", Kind::NetCdf4Classic),
    ("5", Kind::Data64),
    ("64-bit-data", Kind::Data64),
    ("64-bit data", Kind::Data64),
    ("nc5", Kind::Data64),
    ("cdf5", Kind::Data64),
    ("cdf-5", Kind::Data64),
];

impl Kind {
    /// The kind of that name.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Kind> {
        NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, kind)| *kind)
    }

    /// Whether the data model is the classic one, with unsigned types or without.
    #[must_use]
    pub fn is_classic_model(self) -> bool {
        self != Kind::NetCdf4
    }

    /// Whether unsigned and 64-bit integers are types.
    #[must_use]
    pub fn has_all_integers(self) -> bool {
        matches!(self, Kind::Data64 | Kind::NetCdf4)
    }

    /// Whether files are HDF5.
    #[must_use]
    pub fn is_hdf5(self) -> bool {
        matches!(self, Kind::NetCdf4 | Kind::NetCdf4Classic)
    }
}

/// What a text uses that not every kind has, and where it does so first.
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

    /// The kind that serves, where nobody asked for one.
    pub(crate) fn kind(&self) -> Kind {
        match () {
            () if self.enhanced.is_some() || self.storage.is_some() => Kind::NetCdf4,
            () if self.integers.is_some() => Kind::Data64,
            () => Kind::Classic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, kind) in [
            ("classic", Some(Kind::Classic)),
            ("64-bit offset", Some(Kind::Offset64)),
            ("cdf5", Some(Kind::Data64)),
            ("3", Some(Kind::NetCdf4)),
            ("4", Some(Kind::NetCdf4Classic)),
            ("enhanced-nc3", Some(Kind::NetCdf4Classic)),
            ("6", None),
            ("", None),
            ("Classic", None),
        ] {
            assert_eq!(Kind::named(name.as_bytes()), kind, "{name}");
        }
    }

    #[test]
    fn least_kind_that_serves() {
        let mut needs = Needs::default();
        assert_eq!(needs.kind(), Kind::Classic);
        needs.integers = Some(1);
        assert_eq!(needs.kind(), Kind::Data64);
        needs.enhanced(3, "a group");
        assert_eq!(needs.kind(), Kind::NetCdf4);
    }
}

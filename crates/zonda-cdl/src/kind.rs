//! Kinds of files, and which one a text needs.

/// A kind of netCDF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetCdfKind {
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
const NAMES: [(&str, NetCdfKind); 29] = [
    ("classic", NetCdfKind::Classic),
    ("nc3", NetCdfKind::Classic),
    ("1", NetCdfKind::Classic),
    ("64-bit offset", NetCdfKind::Offset64),
    ("nc6", NetCdfKind::Offset64),
    ("2", NetCdfKind::Offset64),
    ("64-bit-offset", NetCdfKind::Offset64),
    ("netCDF-4", NetCdfKind::NetCdf4),
    ("nc4", NetCdfKind::NetCdf4),
    ("3", NetCdfKind::NetCdf4),
    ("netCDF4", NetCdfKind::NetCdf4),
    ("hdf5", NetCdfKind::NetCdf4),
    ("enhanced", NetCdfKind::NetCdf4),
    ("netcdf-4", NetCdfKind::NetCdf4),
    ("netcdf4", NetCdfKind::NetCdf4),
    ("netCDF-4 classic model", NetCdfKind::NetCdf4Classic),
    ("nc7", NetCdfKind::NetCdf4Classic),
    ("4", NetCdfKind::NetCdf4Classic),
    ("netCDF-4-classic", NetCdfKind::NetCdf4Classic),
    ("netCDF-4_classic", NetCdfKind::NetCdf4Classic),
    ("netCDF4_classic", NetCdfKind::NetCdf4Classic),
    ("hdf5-nc3", NetCdfKind::NetCdf4Classic),
    ("enhanced-nc3", NetCdfKind::NetCdf4Classic),
    ("5", NetCdfKind::Data64),
    ("64-bit-data", NetCdfKind::Data64),
    ("64-bit data", NetCdfKind::Data64),
    ("nc5", NetCdfKind::Data64),
    ("cdf5", NetCdfKind::Data64),
    ("cdf-5", NetCdfKind::Data64),
];

impl NetCdfKind {
    /// The kind of that name.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<NetCdfKind> {
        NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, kind)| *kind)
    }

    /// Whether the data model is the classic one, with unsigned types or without.
    #[must_use]
    pub fn is_classic_model(self) -> bool {
        self != NetCdfKind::NetCdf4
    }

    /// Whether unsigned and 64-bit integers are types.
    #[must_use]
    pub fn has_all_integers(self) -> bool {
        matches!(self, NetCdfKind::Data64 | NetCdfKind::NetCdf4)
    }

    /// Whether files are HDF5.
    #[must_use]
    pub fn is_hdf5(self) -> bool {
        matches!(self, NetCdfKind::NetCdf4 | NetCdfKind::NetCdf4Classic)
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
    pub(crate) fn kind(&self) -> NetCdfKind {
        match () {
            () if self.enhanced.is_some() || self.storage.is_some() => NetCdfKind::NetCdf4,
            () if self.integers.is_some() => NetCdfKind::Data64,
            () => NetCdfKind::Classic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, kind) in [
            ("classic", Some(NetCdfKind::Classic)),
            ("64-bit offset", Some(NetCdfKind::Offset64)),
            ("cdf5", Some(NetCdfKind::Data64)),
            ("3", Some(NetCdfKind::NetCdf4)),
            ("4", Some(NetCdfKind::NetCdf4Classic)),
            ("enhanced-nc3", Some(NetCdfKind::NetCdf4Classic)),
            ("6", None),
            ("", None),
            ("Classic", None),
        ] {
            assert_eq!(NetCdfKind::named(name.as_bytes()), kind, "{name}");
        }
    }

    #[test]
    fn least_kind_that_serves() {
        let mut needs = Needs::default();
        assert_eq!(needs.kind(), NetCdfKind::Classic);
        needs.integers = Some(1);
        assert_eq!(needs.kind(), NetCdfKind::Data64);
        needs.enhanced(3, "a group");
        assert_eq!(needs.kind(), NetCdfKind::NetCdf4);
    }
}

//! Names of formats.

use zonda_model::ExtType;

/// A format, by what netCDF calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// CDF-1, "classic".
    #[default]
    Cdf1,
    /// CDF-2, "64-bit offset".
    Cdf2,
    /// CDF-5, "64-bit data".
    Cdf5,
    /// netCDF-4, or any HDF5 file read as one.
    NetCdf4,
    /// netCDF-4 that keeps to the classic data model.
    NetCdf4Classic,
    /// A format that netCDF has no number for.
    Other(&'static Other),
}

/// A format that netCDF has no number for.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Other {
    /// Its name: `mode=NAME` in a URL, and the kind that tools are asked for.
    pub name: &'static str,
    /// The format of netCDF's own with the same data model.
    pub model: Format,
}

impl Format {
    /// The format of netCDF's own with the same data model.
    #[must_use]
    pub fn model(self) -> Format {
        match self {
            Format::Other(other) => other.model,
            own => own,
        }
    }

    /// The `NC_FORMAT_*` number; of a format that has none that of its data model.
    #[must_use]
    pub fn nc_format(self) -> i32 {
        match self {
            Format::Other(other) => other.model.nc_format(),
            Format::Cdf1 => 1,
            Format::Cdf2 => 2,
            Format::Cdf5 => 5,
            Format::NetCdf4 => 3,
            Format::NetCdf4Classic => 4,
        }
    }

    /// The last atomic type that its files can have.
    #[must_use]
    pub fn last_type(self) -> ExtType {
        match self.model() {
            Format::Cdf1 | Format::Cdf2 | Format::NetCdf4Classic => ExtType::Double,
            _ => ExtType::UInt64,
        }
    }

    /// What `ncdump -k` calls it.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Format::Cdf1 => "classic",
            Format::Cdf2 => "64-bit offset",
            Format::Cdf5 => "cdf5",
            Format::NetCdf4 => "netCDF-4",
            Format::NetCdf4Classic => "netCDF-4 classic model",
            Format::Other(other) => other.name,
        }
    }

    /// Whether files of this format are HDF5.
    #[must_use]
    pub fn is_hdf5(self) -> bool {
        matches!(self, Format::NetCdf4 | Format::NetCdf4Classic)
    }
}

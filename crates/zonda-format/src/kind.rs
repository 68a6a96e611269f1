//! Which format is this?

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
}

impl Format {
    /// The `NC_FORMAT_*` number.
    #[must_use]
    pub fn nc_format(self) -> i32 {
        match self {
            Format::Cdf1 => 1,
            Format::Cdf2 => 2,
            Format::Cdf5 => 5,
            Format::NetCdf4 => 3,
            Format::NetCdf4Classic => 4,
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
        }
    }

    /// Whether files of this format are HDF5.
    #[must_use]
    pub fn is_hdf5(self) -> bool {
        matches!(self, Format::NetCdf4 | Format::NetCdf4Classic)
    }
}

//! Which format is this?

use std::path::Path;

use zonda_classic::Version;
use zonda_model::NcError;
use zonda_storage::Storage;

use crate::error::{Error, Result};
use crate::open;

/// A format that Zonda reads and writes.
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

    /// The version of a classic format.
    pub(crate) fn version(self) -> Option<Version> {
        match self {
            Format::Cdf1 => Some(Version::Cdf1),
            Format::Cdf2 => Some(Version::Cdf2),
            Format::Cdf5 => Some(Version::Cdf5),
            Format::NetCdf4 | Format::NetCdf4Classic => None,
        }
    }

    pub(crate) fn of(version: Version) -> Format {
        match version {
            Version::Cdf1 => Format::Cdf1,
            Version::Cdf2 => Format::Cdf2,
            Version::Cdf5 => Format::Cdf5,
        }
    }
}

/// What the first bytes of a file say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detected {
    /// A classic format.
    Classic(Format),
    /// HDF5, and so perhaps netCDF-4.
    Hdf5,
    /// HDF4, which Zonda does not read.
    Hdf4,
    /// Nothing Zonda knows.
    Unknown,
}

impl Detected {
    /// Whether it is a format that is read.
    ///
    /// # Errors
    /// `NC_ENOTBUILT` for HDF4, `NC_ENOTNC` for what is not known.
    pub(crate) fn readable(self) -> Result<()> {
        match self {
            Detected::Classic(_) | Detected::Hdf5 => Ok(()),
            Detected::Hdf4 | Detected::Unknown => Err(self.refused()),
        }
    }

    /// Why a file that is of no format that is read cannot be opened.
    pub(crate) fn refused(self) -> Error {
        match self {
            Detected::Hdf4 => {
                Error::told(NcError::NotBuilt, "an HDF4 file, a format that is not read")
            }
            _ => {
                let why = "neither a classic netCDF file nor HDF5, by its first bytes";
                Error::told(NcError::NotNc, why)
            }
        }
    }
}

/// The signature of HDF5, at byte 0 or, behind a user block, at 512 times a power of two.
const HDF5_SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// The signature of HDF4, at byte 0 only, and of files of at least 8 bytes, as the reference has it.
const HDF4_SIGNATURE: &[u8; 4] = b"\x0e\x03\x13\x01";
/// Where the search for the HDF5 signature ends. User blocks of more than 4 GiB are unheard of.
const HDF5_SEARCH_END: u64 = 4 << 30;

/// Looks at a file's first bytes.
///
/// # Errors
/// What the operating system reports on opening and reading.
pub fn detect(path: &Path) -> Result<Detected> {
    let storage = open::for_reading(path).map_err(|error| error.at(path))?;
    detect_in(&*storage).map_err(|error| error.at(path))
}

/// Looks at a storage's first bytes, as [`detect`] does at a file's.
///
/// # Errors
/// What the storage reports on reading.
pub fn detect_in(storage: &dyn Storage) -> Result<Detected> {
    let mut magic = [0u8; 8];
    let got = storage.read_at(0, &mut magic)?;
    if got >= 4 && magic.starts_with(b"CDF") {
        let format = match magic[3] {
            1 => Some(Format::Cdf1),
            2 => Some(Format::Cdf2),
            5 => Some(Format::Cdf5),
            _ => None,
        };
        return Ok(format.map_or(Detected::Unknown, Detected::Classic));
    }
    if got == magic.len() && magic.starts_with(HDF4_SIGNATURE) {
        return Ok(Detected::Hdf4);
    }
    let len = storage.len()?;
    let mut at = 0;
    while at < len.min(HDF5_SEARCH_END) {
        if storage.read_at(at, &mut magic)? == magic.len() && magic == *HDF5_SIGNATURE {
            return Ok(Detected::Hdf5);
        }
        at = if at == 0 { 512 } else { at * 2 };
    }
    Ok(Detected::Unknown)
}

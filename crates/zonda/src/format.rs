//! Which format is this?

use std::path::Path;

use zonda_format::Format;
use zonda_model::NcError;
use zonda_storage::Storage;

use crate::error::{Error, Result};
use crate::open;

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

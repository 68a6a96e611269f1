//! Mode flags of creating and opening: which exclude each other, and the format they ask for.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use zonda::{Format, NcError, Persist};

use crate::boundary::boundary;
use crate::c_memory::put;

/// `NC_WRITE`
pub(crate) const WRITE: c_int = 0x0001;
/// `NC_NOCLOBBER`
pub(crate) const NOCLOBBER: c_int = 0x0004;
/// `NC_DISKLESS`
pub(crate) const DISKLESS: c_int = 0x0008;
/// `NC_MMAP`: what it promises, memory that reaches the file only with `NC_PERSIST`, is `NC_DISKLESS`.
pub(crate) const MMAP: c_int = 0x0010;
/// `NC_64BIT_DATA`
pub(crate) const DATA_64BIT: c_int = 0x0020;
/// `NC_CLASSIC_MODEL`
pub(crate) const CLASSIC_MODEL: c_int = 0x0100;
/// `NC_64BIT_OFFSET`
pub(crate) const OFFSET_64BIT: c_int = 0x0200;
/// `NC_SHARE`
pub(crate) const SHARE: c_int = 0x0800;
/// `NC_NETCDF4`
pub(crate) const NETCDF4: c_int = 0x1000;
/// `NC_NOATTCREORD`
pub(crate) const NO_ATTRIBUTE_ORDER: c_int = 0x2_0000;
/// `NC_NODIMSCALE_ATTACH`
pub(crate) const NO_SCALES_ATTACHED: c_int = 0x4_0000;
/// `NC_PERSIST`
pub(crate) const PERSIST: c_int = 0x4000;
/// `NC_INMEMORY`
pub(crate) const INMEMORY: c_int = 0x8000;
/// Flags that say which of our formats is meant.
const ANY_FORMAT: c_int = OFFSET_64BIT | DATA_64BIT | CLASSIC_MODEL | NETCDF4;

/// What `nc_create` makes when the mode names no format: an `NC_FORMAT_*` number.
static DEFAULT_FORMAT: AtomicI32 = AtomicI32::new(1);

/// The ways to hold a file in memory exclude each other.
pub(crate) fn check_memory_flags(mode: c_int) -> Result<(), NcError> {
    let has = |flag: c_int| mode & flag != 0;
    if has(DISKLESS) && (has(INMEMORY) || has(MMAP)) {
        Err(NcError::Diskless)
    } else if has(INMEMORY) && has(MMAP) {
        Err(NcError::InMemory)
    } else if has(MMAP) && has(NETCDF4) {
        Err(NcError::Inval)
    } else {
        Ok(())
    }
}

/// The checks that creating makes before it looks at the path.
pub(crate) fn check_create_mode(mode: c_int) -> Result<(), NcError> {
    if (mode & (NETCDF4 | OFFSET_64BIT | DATA_64BIT)).count_ones() > 1 {
        return Err(NcError::Inval);
    }
    check_memory_flags(mode)
}

/// The format a mode asks for; without a word on it, the default one.
pub(crate) fn format_asked_for(mode: c_int) -> Format {
    format_of(mode, DEFAULT_FORMAT.load(Ordering::Relaxed))
}

fn format_of(mode: c_int, default: c_int) -> Format {
    if mode & ANY_FORMAT == 0 {
        return match default {
            2 => Format::Cdf2,
            3 => Format::NetCdf4,
            4 => Format::NetCdf4Classic,
            5 => Format::Cdf5,
            _ => Format::Cdf1,
        };
    }
    if mode & OFFSET_64BIT != 0 {
        Format::Cdf2
    } else if mode & DATA_64BIT != 0 {
        Format::Cdf5
    } else if mode & NETCDF4 != 0 {
        netcdf4_of(mode)
    } else {
        Format::Cdf1
    }
}

/// The netCDF-4 format of a mode that asks for one.
pub(crate) fn netcdf4_of(mode: c_int) -> Format {
    if mode & CLASSIC_MODEL != 0 { Format::NetCdf4Classic } else { Format::NetCdf4 }
}

/// The mode as `nc_inq_format_extended` shows it.
pub(crate) fn shown_mode(mode: c_int, format: Format) -> c_int {
    let flag = match format {
        Format::Cdf1 => 0,
        Format::Cdf2 => OFFSET_64BIT,
        Format::Cdf5 => DATA_64BIT,
        Format::NetCdf4 => NETCDF4,
        Format::NetCdf4Classic => NETCDF4 | CLASSIC_MODEL,
        Format::Other(_) => 0,
    };
    mode & !NETCDF4 | flag
}

/// How a file is held in memory, where the mode asks for it.
pub(crate) fn held_in_memory(mode: c_int) -> Option<Persist> {
    let persist = if mode & PERSIST != 0 { Persist::Yes } else { Persist::No };
    (mode & (DISKLESS | MMAP) != 0).then_some(persist)
}

/// `int nc_set_default_format(int format, int *old_formatp);`
///
/// # Safety
/// `old_formatp` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_set_default_format(format: c_int, old_formatp: *mut c_int) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is `put`'s contract. A wrong format changes nothing, but
        // the old one is returned all the same.
        unsafe { put(old_formatp, DEFAULT_FORMAT.load(Ordering::Relaxed)) };
        if !(1..=5).contains(&format) {
            return Err(NcError::Inval.into());
        }
        DEFAULT_FORMAT.store(format, Ordering::Relaxed);
        Ok(())
    })
}

/// `int nc_get_default_format(void);`
#[unsafe(no_mangle)]
pub extern "C" fn nc_get_default_format() -> c_int {
    DEFAULT_FORMAT.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicting_modes() {
        for (mode, answer) in [
            (OFFSET_64BIT | DATA_64BIT, Err(NcError::Inval)),
            (OFFSET_64BIT | NETCDF4, Err(NcError::Inval)),
            (DISKLESS | INMEMORY, Err(NcError::Diskless)),
            (DISKLESS | MMAP, Err(NcError::Diskless)),
            (INMEMORY | MMAP, Err(NcError::InMemory)),
            (MMAP | NETCDF4, Err(NcError::Inval)),
            (DISKLESS | PERSIST | SHARE | OFFSET_64BIT, Ok(())),
        ] {
            assert_eq!(check_create_mode(mode), answer, "{mode:#x}");
        }
    }

    #[test]
    fn the_mode_decides_before_the_default() {
        assert_eq!(format_of(0, 2), Format::Cdf2);
        assert_eq!(format_of(0, 3), Format::NetCdf4);
        assert_eq!(format_of(0, 4), Format::NetCdf4Classic);
        assert_eq!(format_of(CLASSIC_MODEL, 5), Format::Cdf1);
        assert_eq!(format_of(DATA_64BIT, 2), Format::Cdf5);
        assert_eq!(format_of(NETCDF4, 1), Format::NetCdf4);
        assert_eq!(format_of(NETCDF4 | CLASSIC_MODEL, 1), Format::NetCdf4Classic);
    }

    #[test]
    fn the_mode_shown_names_the_format() {
        assert_eq!(shown_mode(WRITE | NETCDF4, Format::Cdf2), WRITE | OFFSET_64BIT);
    }
}

//! Which format is this? The table of formats: how each is found, opened and created.

use std::path::{Path, PathBuf};

use zonda_classic::SkippedPart;
use zonda_format::{Dispatch, Format};
use zonda_model::NcError;
use zonda_nc4::Damaged;
use zonda_storage::{OpenedStorage, Storage};

use crate::error::{Error, Result};
use crate::open::{self, CreateOptions, Opening};
use crate::open_file::OpenFile;
use crate::{classic, nc4};

#[cfg(test)]
pub(crate) mod trial;

/// All formats. To add one takes a crate for it and an entry here.
static FORMATS: &[FormatEntry] = &[
    FormatEntry::on_bytes(
        "a classic netCDF file",
        &[Format::Cdf1, Format::Cdf2, Format::Cdf5],
        CLASSIC,
        classic::open,
        Some(classic::create),
    ),
    FormatEntry::known("HDF4", HDF4),
    FormatEntry::on_bytes(
        "HDF5",
        &[Format::NetCdf4, Format::NetCdf4Classic],
        HDF5,
        nc4::open,
        Some(nc4::create),
    ),
    FormatEntry::on_path(
        &[zonda_npy::FORMAT],
        zonda_npy::is_one,
        zonda_npy::open,
        Some(zonda_npy::create),
        zonda_npy::remove,
    ),
    #[cfg(test)]
    trial::ENTRY,
];

/// A format of the table.
struct FormatEntry {
    /// The formats that its files may have.
    formats: &'static [Format],
    stands: FormatPlace,
}

/// Where the datasets of a format are. A format without a function that creates them can only be read.
enum FormatPlace {
    /// In the bytes of one file: what to call them in messages, and their first bytes. A format without a function
    /// that opens them is recognised and not read.
    OnBytes(&'static str, &'static [Magic], Option<OpenBytes>, Option<CreateBytes>),
    /// At a path, such as a folder: a test whether there is one, and what opens and removes it.
    OnPath(fn(&Path) -> bool, OpenPath, Option<CreatePath>, fn(&Path) -> Result<()>),
}

/// What makes files of a format.
pub(crate) enum Maker {
    OnBytes(CreateBytes),
    OnPath(CreatePath),
}

type OpenBytes = fn(OpenedStorage, &Opening<'_>) -> Result<(OpenFile, Vec<SkippedPart>)>;
pub(crate) type CreateBytes = fn(OpenedStorage, &Path, &CreateOptions) -> Result<OpenFile>;
/// Arguments: the path, and whether the dataset is to be written.
type OpenPath = fn(&Path, bool) -> Result<Box<dyn Dispatch>>;
/// Arguments: the path, and whether it is an error that something is there already.
pub(crate) type CreatePath = fn(&Path, bool) -> Result<Box<dyn Dispatch>>;

/// How many of the first bytes of a file are looked at.
const LOOKED_AT: usize = 8;

/// First bytes that say what a file is.
struct Magic {
    bytes: &'static [u8],
    /// Least length in bytes of a file that may be of this kind.
    least: usize,
    /// They may also come after a user block: at 512 bytes times a power of two.
    moves: bool,
    means: Detected,
}

/// Files of other versions of the classic formats are unknown, and not searched for other first bytes.
const CLASSIC: &[Magic] = &[
    Magic::at_begin(b"CDF\x01", 4, Detected::Classic(Format::Cdf1)),
    Magic::at_begin(b"CDF\x02", 4, Detected::Classic(Format::Cdf2)),
    Magic::at_begin(b"CDF\x05", 4, Detected::Classic(Format::Cdf5)),
    Magic::at_begin(b"CDF", 4, Detected::Unknown),
];
const HDF5: &[Magic] =
    &[Magic { moves: true, ..Magic::at_begin(b"\x89HDF\r\n\x1a\n", 8, Detected::Hdf5) }];
/// Only files of at least 8 bytes count, as in the reference.
const HDF4: &[Magic] = &[Magic::at_begin(b"\x0e\x03\x13\x01", 8, Detected::Hdf4)];
/// Where the search behind user blocks ends. Those of more than 4 GiB are unheard of.
const SEARCH_END: u64 = 4 << 30;

impl Magic {
    /// `bytes` at the beginning of files that have at least `least` bytes. More bytes than are looked at would never
    /// match, which the compiler refuses.
    const fn at_begin(bytes: &'static [u8], least: usize, means: Detected) -> Magic {
        assert!(
            bytes.len() <= LOOKED_AT && least <= LOOKED_AT,
            "only the first bytes are looked at"
        );
        Magic { bytes, least, moves: false, means }
    }

    fn is_in(&self, first: &[u8]) -> bool {
        first.len() >= self.least && first.starts_with(self.bytes)
    }
}

impl FormatEntry {
    /// `called` is said of files that are none: `neither HDF5 nor ...`.
    const fn on_bytes(
        called: &'static str,
        formats: &'static [Format],
        magic: &'static [Magic],
        open: OpenBytes,
        create: Option<CreateBytes>,
    ) -> FormatEntry {
        FormatEntry { formats, stands: FormatPlace::OnBytes(called, magic, Some(open), create) }
    }

    /// A format that is recognised and not read.
    const fn known(called: &'static str, magic: &'static [Magic]) -> FormatEntry {
        FormatEntry { formats: &[], stands: FormatPlace::OnBytes(called, magic, None, None) }
    }

    const fn on_path(
        formats: &'static [Format],
        is: fn(&Path) -> bool,
        open: OpenPath,
        create: Option<CreatePath>,
        remove: fn(&Path) -> Result<()>,
    ) -> FormatEntry {
        FormatEntry { formats, stands: FormatPlace::OnPath(is, open, create, remove) }
    }

    fn magic(&self) -> &'static [Magic] {
        if let FormatPlace::OnBytes(_, magic, ..) = self.stands { magic } else { &[] }
    }

    fn maker(&self) -> Option<Maker> {
        match self.stands {
            FormatPlace::OnBytes(_, _, _, create) => create.map(Maker::OnBytes),
            FormatPlace::OnPath(_, _, create, _) => create.map(Maker::OnPath),
        }
    }
}

fn entry_of(format: Format) -> Option<&'static FormatEntry> {
    FORMATS.iter().find(|entry| entry.formats.contains(&format))
}

/// What makes files of a format. To be asked for before anything is touched: what is at the path stays where the new file
/// cannot be made.
///
/// # Errors
/// `NC_EPERM` for a format that can only be read, `NC_EINVAL` for one that is not in the table.
pub(crate) fn maker(format: Format) -> Result<Maker> {
    let entry = entry_of(format).ok_or_else(|| {
        let made: Vec<_> = formats_made().map(Format::kind).collect();
        let (kind, made) = (format.kind(), made.join(", "));
        Error::with_text(NcError::Inval, format!("no format is called {kind:?}; known: {made}"))
    })?;
    entry.maker().ok_or_else(Error::only_read)
}

/// The formats of which files can be made.
///
/// See [`detect`](crate::detect).
pub fn formats_made() -> impl Iterator<Item = Format> {
    let makers = FORMATS.iter().filter(|entry| entry.maker().is_some());
    makers.flat_map(|entry| entry.formats).copied()
}

/// The format that a copy of a file has where nobody asks for another one: that of the file, or where no files of that are made
/// the one of netCDF's own with the same data model.
///
/// See [`detect`](crate::detect).
#[must_use]
pub fn format_of_copy(source: Format) -> Format {
    if maker(source).is_ok() { source } else { source.model() }
}

/// Opens bytes.
///
/// # Errors
/// As [`Dataset::open_in`](crate::Dataset::open_in).
pub(crate) fn open(
    opened: OpenedStorage,
    how: &Opening<'_>,
) -> Result<(OpenFile, Vec<SkippedPart>)> {
    let detected = detect_in(&*opened.storage)?;
    // A file that lost its first bytes may be HDF5: its objects are searched for.
    let searches = detected == Detected::Unknown && how.damaged == Damaged::Search;
    let sought = if searches { Detected::Hdf5 } else { detected };
    let opener = FORMATS.iter().find_map(|entry| match entry.stands {
        FormatPlace::OnBytes(_, magic, Some(open), _) => {
            magic.iter().any(|magic| magic.means == sought).then_some(open)
        }
        _ => None,
    });
    let opener =
        opener.filter(|_| sought != Detected::Unknown).ok_or_else(|| detected.refused())?;
    let (file, passed) = opener(opened, how)?;
    if how.options.write && !file.is_writable() {
        return Err(Error::only_read());
    }
    if searches && nc4::found_nothing(&file)? {
        return Err(detected.refused());
    }
    Ok((file, passed))
}

/// Opens what is at a path and is not one file; `None` where no format stands on it.
pub(crate) fn open_path(path: &Path, write: bool) -> Option<Result<Box<dyn Dispatch>>> {
    FORMATS.iter().find_map(|entry| match entry.stands {
        FormatPlace::OnPath(is, open, ..) if is(path) => {
            Some(open(path, write).and_then(|mut file| {
                let is_refused = write && file.writer().is_none();
                if is_refused { Err(Error::only_read()) } else { Ok(file) }
            }))
        }
        _ => None,
    })
}

/// The format that stands on what is at a path, where that is not one file.
///
/// See [`detect`](crate::detect).
#[must_use]
pub fn on_path(path: &Path) -> Option<Format> {
    FORMATS.iter().find_map(|entry| match entry.stands {
        FormatPlace::OnPath(is, ..) if is(path) => entry.formats.first().copied(),
        _ => None,
    })
}

/// Removes a dataset that is not one file; `None` where no format stands on what is at the path.
///
/// See [`detect`](crate::detect).
///
/// # Errors
/// What the operating system reports.
#[must_use]
pub fn remove_on_path(path: &Path) -> Option<Result<()>> {
    FORMATS.iter().find_map(|entry| match entry.stands {
        FormatPlace::OnPath(is, _, _, remove) if is(path) => Some(remove(path)),
        _ => None,
    })
}

/// Whether datasets of a format stand on a path and not on the bytes of one file.
///
/// See [`detect`](crate::detect).
#[must_use]
pub fn stands_on_path(format: Format) -> bool {
    entry_of(format).is_some_and(|entry| matches!(entry.stands, FormatPlace::OnPath(..)))
}

/// The format of that name, among those that netCDF itself does not have.
///
/// See [`detect`](crate::detect).
#[must_use]
pub fn format_named(name: &str) -> Option<Format> {
    let mut all = FORMATS.iter().flat_map(|entry| entry.formats).copied();
    all.find(
        |format| matches!(format, Format::Other(other) if other.name.eq_ignore_ascii_case(name)),
    )
}

/// The path and the format of a URL that names one that is none of netCDF's own, such as `file:///a/b#mode=npy`; `None`
/// for everything else.
///
/// See [`detect`](crate::detect).
#[must_use]
pub fn of_url(text: &Path) -> Option<(PathBuf, Format)> {
    let (place, fragment) = text.to_str()?.strip_prefix("file:")?.rsplit_once('#')?;
    let path = place.strip_prefix("//").unwrap_or(place);
    let modes = fragment.split('&').filter_map(|pair| pair.strip_prefix("mode="));
    let format = modes.flat_map(|words| words.split(',')).find_map(format_named)?;
    (!path.is_empty()).then(|| (PathBuf::from(path), format))
}

/// What the first bytes of a file say, or what else there is at its path.
///
/// See [`detect`](crate::detect).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detected {
    /// A classic format.
    Classic(Format),
    /// HDF5, and so perhaps netCDF-4.
    Hdf5,
    /// HDF4, which Zonda does not read.
    Hdf4,
    /// A format that is none of netCDF's own, in a file or, as a folder is, at a path.
    Other(Format),
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
            Detected::Classic(_) | Detected::Hdf5 | Detected::Other(_) => Ok(()),
            Detected::Hdf4 | Detected::Unknown => Err(self.refused()),
        }
    }

    /// Why a file that is of no format that is read cannot be opened.
    pub(crate) fn refused(self) -> Error {
        match self {
            Detected::Hdf4 => {
                Error::with_text(NcError::NotBuilt, "an HDF4 file, a format that is not read")
            }
            _ => {
                let read = FORMATS.iter().filter_map(|entry| match entry.stands {
                    FormatPlace::OnBytes(called, _, Some(_), _) => Some(called),
                    _ => None,
                });
                let read: Vec<_> = read.collect();
                let why = format!("neither {}, by its first bytes", read.join(" nor "));
                Error::with_text(NcError::NotNc, why)
            }
        }
    }
}

/// Looks at a file's first bytes, or at what else there is at a path.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("zonda-detect-{}.nc", std::process::id()));
/// zonda::typed::File::create(&path)?.close()?;
/// assert!(matches!(zonda::detect(&path)?, zonda::Detected::Hdf5));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the operating system reports on opening and reading.
pub fn detect(path: &Path) -> Result<Detected> {
    let found = || detect_in(&*open::for_reading(path)?);
    found().or_else(|error| match on_path(path).filter(|_| is_folder(&error)) {
        Some(format) => Ok(Detected::Other(format)),
        None => Err(error.at(path)),
    })
}

/// Whether an error says that the path is a folder.
pub(crate) fn is_folder(error: &Error) -> bool {
    error.code() == NcError::System(EISDIR)
}

/// `EISDIR` of Linux on every architecture.
const EISDIR: i32 = 21;

/// Looks at a storage's first bytes, as [`detect`] does at a file's.
///
/// # Errors
/// What the storage reports on reading.
pub fn detect_in(storage: &dyn Storage) -> Result<Detected> {
    let mut buf = [0u8; LOOKED_AT];
    let mut found = |at, moved: bool| {
        let got = storage.read_at(at, &mut buf)?;
        let first = buf.get(..got).unwrap_or_default();
        let all = FORMATS.iter().flat_map(FormatEntry::magic);
        let mut fits = all.filter(|magic| !moved || magic.moves);
        Ok::<_, Error>(fits.find(|magic| magic.is_in(first)).map(|magic| magic.means))
    };
    if let Some(means) = found(0, false)? {
        return Ok(means);
    }
    let (end, mut at) = (storage.len()?.min(SEARCH_END), 512);
    if let Some(remote) = storage.remote() {
        // All places come together.
        let places = std::iter::successors(Some(at), |&at| Some(at * 2)).take_while(|&at| at < end);
        remote.will_read(&places.map(|at| at..at + LOOKED_AT as u64).collect::<Vec<_>>());
    }
    while at < end {
        if let Some(means) = found(at, true)? {
            return Ok(means);
        }
        at *= 2;
    }
    Ok(Detected::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_storage::backend::Memory;

    #[test]
    fn first_bytes() {
        let hdf5 = b"\x89HDF\r\n\x1a\n";
        let moved = |at: usize| [&vec![7; at][..], hdf5].concat();
        for (bytes, means) in [
            (b"CDF\x01".to_vec(), Detected::Classic(Format::Cdf1)),
            (b"CDF\x05abc".to_vec(), Detected::Classic(Format::Cdf5)),
            (b"CDF\x03".to_vec(), Detected::Unknown),
            (b"CDF".to_vec(), Detected::Unknown),
            ([b"CDF\x03", &moved(512)[4..]].concat(), Detected::Unknown),
            (b"\x0e\x03\x13\x01".to_vec(), Detected::Unknown),
            (b"\x0e\x03\x13\x01abcd".to_vec(), Detected::Hdf4),
            (hdf5.to_vec(), Detected::Hdf5),
            (hdf5[..7].to_vec(), Detected::Unknown),
            (moved(512), Detected::Hdf5),
            (moved(2048), Detected::Hdf5),
            (moved(1536), Detected::Unknown),
            (moved(2048)[..2055].to_vec(), Detected::Unknown),
            (Vec::new(), Detected::Unknown),
        ] {
            assert_eq!(detect_in(&Memory::from_slice(&bytes)).unwrap(), means, "{bytes:?}");
        }
    }

    #[test]
    #[should_panic(expected = "only the first bytes are looked at")]
    fn first_bytes_that_are_never_found() {
        let _ = Magic::at_begin(b"NINEBYTES", 4, Detected::Unknown);
    }

    #[test]
    fn formats_in_urls() {
        let npy = zonda_npy::FORMAT;
        let of = |text: &str| of_url(Path::new(text));
        for (url, path) in [
            ("file:///a/b#mode=npy", "/a/b"),
            ("file:/a/b#mode=bytes,NPY", "/a/b"),
            ("file://a#x&mode=npy", "a"),
            ("file:///a#b#mode=npy", "/a#b"),
        ] {
            assert_eq!(of(url), Some((path.into(), npy)), "{url}");
        }
        for other in [
            "/a#mode=npy",
            "file:///a",
            "file:///a#mode=zarr",
            "file://#mode=npy",
            "http://a#mode=npy",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        assert!(stands_on_path(npy) && !stands_on_path(Format::Cdf5));
    }
}

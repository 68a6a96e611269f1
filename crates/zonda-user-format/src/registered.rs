//! The formats that a program has registered, and which of them a file is in.

use std::ffi::c_int;

use zonda_model::NcError;
use zonda_runtime::lock::{Global, MutexGuard, Rank};

use crate::NcDispatch;

/// `NC_UDF0` to `NC_UDF9`; those from `NC_UDF2` on are of 4.10.0.
const FLAGS: [c_int; 10] = [
    0x0040, 0x0080, 0x1_0000, 0x8_0000, 0x10_0000, 0x20_0000, 0x40_0000, 0x80_0000, 0x100_0000,
    0x200_0000,
];
/// `NC_DISPATCH_VERSION` of 4.9.0 and of 4.10.1: the layout of the table that programs compiled.
const DISPATCH_VERSION: c_int = 5;
/// `NC_MAX_MAGIC_NUMBER_LEN`, in bytes; a number that long has no NUL.
pub const MAX_MAGIC: usize = 8;

/// One of the formats that a program may register.
#[derive(Clone, Copy, Debug, Default)]
pub struct Registration {
    /// The table that answers for its files; `None` if the program has registered none.
    pub table: Option<&'static NcDispatch>,
    /// The bytes that its files begin with, padded with NUL.
    pub magic: [u8; MAX_MAGIC],
}

impl Registration {
    /// The bytes that files begin with; empty where there are none.
    fn magic(&self) -> &[u8] {
        self.magic.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

fn registrations() -> MutexGuard<'static, [Registration; FLAGS.len()]> {
    const NONE: Registration = Registration { table: None, magic: [0; MAX_MAGIC] };
    static REGISTRATIONS: Global<[Registration; FLAGS.len()]> =
        Global::new(Rank::Settings, [NONE; FLAGS.len()], || [NONE; FLAGS.len()]);
    REGISTRATIONS.lock()
}

/// The number of the format that a mode names by a flag; the mode may have other flags.
fn format_of(mode_flag: c_int) -> Result<usize, NcError> {
    let mut asked = (0..FLAGS.len()).filter(|&n| mode_flag & FLAGS[n] != 0);
    match (asked.next(), asked.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(NcError::Inval),
    }
}

/// Registers a table for the format that a mode names. Its magic number stays until another one is given.
///
/// # Errors
/// `NC_EINVAL` for a mode that names no format or several, for a table of another layout, and for a magic
/// number that is too long.
pub fn register(
    mode_flag: c_int,
    table: &'static NcDispatch,
    magic: Option<&[u8]>,
) -> Result<(), NcError> {
    let format = format_of(mode_flag)?;
    let is_too_long = magic.is_some_and(|magic| magic.len() > MAX_MAGIC);
    if is_too_long || table.dispatch_version != DISPATCH_VERSION {
        return Err(NcError::Inval);
    }
    let mut all = registrations();
    all[format].table = Some(table);
    if let Some(magic) = magic {
        all[format].magic = [0; MAX_MAGIC];
        all[format].magic[..magic.len()].copy_from_slice(magic);
    }
    Ok(())
}

/// The registration of the format that a mode names; an empty one, if there is none.
///
/// # Errors
/// `NC_EINVAL` for a mode that names no format or several.
pub fn registration(mode_flag: c_int) -> Result<Registration, NcError> {
    Ok(registrations()[format_of(mode_flag)?])
}

/// The table that a mode asks for; of several, the one with the lowest number.
///
/// # Errors
/// `NC_ENOTBUILT` where no program registered one.
pub fn table_of_mode(mode: c_int) -> Result<Option<&'static NcDispatch>, NcError> {
    let asked = (0..FLAGS.len()).find(|&n| mode & FLAGS[n] != 0);
    asked.map(table_of_number).transpose()
}

/// The table of a format by its number.
///
/// # Errors
/// `NC_ENOTBUILT` where no program registered one.
pub fn table_of_number(format: usize) -> Result<&'static NcDispatch, NcError> {
    registrations().get(format).and_then(|format| format.table).ok_or(NcError::NotBuilt)
}

/// The table whose files begin with the bytes that `read` reads. It is called only if a table has a magic
/// number, and returns how many bytes there were.
pub fn table_of_content(
    read: impl FnOnce(&mut [u8; MAX_MAGIC]) -> usize,
) -> Option<&'static NcDispatch> {
    let all = *registrations();
    if all.iter().all(|one| one.magic().is_empty()) {
        return None;
    }
    let mut start = [0; MAX_MAGIC];
    let n = read(&mut start).min(MAX_MAGIC);
    let begins =
        |one: &&Registration| !one.magic().is_empty() && start[..n].starts_with(one.magic());
    all.iter().find(begins)?.table
}

/// The number of the format that `mode=` in the fragment of a URL names: `udf0` to `udf9`.
#[must_use]
pub fn number_in_url(fragment: &[u8]) -> Option<usize> {
    let modes = fragment.split(|&byte| byte == b'&').filter_map(|pair| pair.strip_prefix(b"mode="));
    let words = modes.flat_map(|value| value.split(|&byte| byte == b','));
    words.into_iter().find_map(|word| match word {
        [b'u' | b'U', b'd' | b'D', b'f' | b'F', digit @ b'0'..=b'9'] => Some((digit - b'0').into()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `NC_NETCDF4`.
    const OTHER: c_int = 0x1000;

    #[test]
    fn one_flag_names_a_format() {
        assert_eq!(format_of(0x40), Ok(0));
        assert_eq!(format_of(0x200_0000 | OTHER), Ok(9));
        assert_eq!(format_of(OTHER), Err(NcError::Inval));
        assert_eq!(format_of(0x40 | 0x80), Err(NcError::Inval));
        for (n, flag) in FLAGS.iter().enumerate() {
            assert_eq!(flag.count_ones(), 1);
            assert!(FLAGS[..n].iter().all(|other| other & flag == 0));
        }
    }

    #[test]
    fn files_go_where_flag_url_or_content_says() {
        static TABLE: NcDispatch =
            NcDispatch { dispatch_version: DISPATCH_VERSION, ..NcDispatch::NONE };
        let is_it = |found: Option<&NcDispatch>| found.is_some_and(|one| std::ptr::eq(one, &TABLE));
        assert_eq!(table_of_mode(0x80).err(), Some(NcError::NotBuilt));
        assert!(table_of_content(|_| unreachable!("no format has a magic number")).is_none());
        assert_eq!(register(0x80, &TABLE, Some(b"123456789")), Err(NcError::Inval));
        register(0x80, &TABLE, Some(b"abc")).unwrap();
        register(0x80, &TABLE, None).unwrap();
        assert!(is_it(table_of_mode(OTHER | 0x80).unwrap()));
        assert!(table_of_mode(OTHER).unwrap().is_none());
        let content = |bytes: &'static [u8]| {
            table_of_content(|start| {
                start[..bytes.len()].copy_from_slice(bytes);
                bytes.len()
            })
        };
        assert!(is_it(content(b"abcd")) && content(b"ab").is_none() && content(b"").is_none());
        assert_eq!(number_in_url(b"x=1&mode=bytes,UDF1"), Some(1));
        assert_eq!(number_in_url(b"mode=udf10&udf2"), None);
    }

    #[test]
    fn a_magic_number_ends_at_its_nul() {
        let mut one = Registration::default();
        assert_eq!(one.magic(), b"");
        one.magic = *b"ab\0\0\0\0\0\0";
        assert_eq!(one.magic(), b"ab");
        one.magic = *b"12345678";
        assert_eq!(one.magic(), b"12345678");
    }
}

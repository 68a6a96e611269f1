//! The run-time configuration table: `key=value` lines of `.ncrc`, `.daprc` and `.dodsrc`.
//!
//! The files are looked for in the home folder and then in the working folder, later entries
//! replacing earlier ones; `NCRCENV_RC` names one file instead, `NCRCENV_IGNORE` turns it off. A program
//! that runs with more rights than its caller has reads none.
//! Lines that start with `[url]` concern one server and are not seen through this interface.

use std::ffi::{c_char, c_int};
use std::path::PathBuf;
use zonda_runtime::Settled;
use zonda_runtime::lock::{Global, MutexGuard, Rank};

use zonda::NcError;
use zonda::storage::neighbour::trusts_environment;

use crate::boundary::boundary;
use crate::c_memory::{bytes, malloc_text};

const FILES: [&str; 3] = [".ncrc", ".daprc", ".dodsrc"];

/// Entries in order of definition, each key once.
type ConfigEntries = Vec<(Vec<u8>, Vec<u8>)>;

/// Whether the files were read, and the entries; `None` if the table is turned off. The first call reads the
/// files.
fn table() -> Option<MutexGuard<'static, (bool, ConfigEntries)>> {
    static IS_OFF: Settled<bool> = Settled::new();
    static TABLE: Global<(bool, ConfigEntries)> = Global::new(Rank::Settings, UNREAD, || UNREAD);
    const UNREAD: (bool, ConfigEntries) = (false, ConfigEntries::new());
    if *IS_OFF.get_or_make(|| std::env::var_os("NCRCENV_IGNORE").is_some()) {
        return None;
    }
    let mut table = TABLE.lock();
    let (is_read, entries) = &mut *table;
    if !std::mem::replace(is_read, true) {
        for path in paths() {
            // Files that are not there, or cannot be read, configure nothing.
            if let Ok(text) = std::fs::read(path) {
                add_entries(&text, entries);
            }
        }
    }
    Some(table)
}

fn paths() -> Vec<PathBuf> {
    if !trusts_environment() {
        return Vec::new();
    }
    if let Some(one) = std::env::var_os("NCRCENV_RC") {
        return vec![one.into()];
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let dirs = home.into_iter().chain([PathBuf::from(".")]);
    dirs.flat_map(|dir| FILES.map(|name| dir.join(name))).collect()
}

/// Adds the entries of one file.
fn add_entries(text: &[u8], table: &mut ConfigEntries) {
    for line in text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii) {
        if line.is_empty() || line[0] == b'#' || line[0] == b'[' {
            continue;
        }
        let at = line.iter().position(|&byte| byte == b'=').unwrap_or(line.len());
        let value = line.get(at + 1..).unwrap_or_default();
        set_entry(table, &line[..at], value);
    }
}

/// Sets the value of a key; both without the blanks around them.
fn set_entry(table: &mut ConfigEntries, key: &[u8], value: &[u8]) {
    let (key, value) = (key.trim_ascii(), value.trim_ascii().to_vec());
    match table.iter_mut().find(|(entry_key, _)| entry_key == key) {
        Some(entry) => entry.1 = value,
        None => table.push((key.to_vec(), value)),
    }
}

/// `char *nc_rc_get(const char *key);`
///
/// The value, in memory that the caller frees, or null if there is none.
///
/// # Safety
/// `key` is null or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_rc_get(key: *const c_char) -> *mut c_char {
    let mut found = std::ptr::null_mut();
    boundary(|| {
        // SAFETY: the contract above is that of `bytes`.
        let Some(key) = (unsafe { bytes(key) }) else { return Ok(()) };
        let Some(table) = table() else { return Ok(()) };
        if let Some((_, value)) = table.1.iter().find(|(entry_key, _)| entry_key == key) {
            found = malloc_text(value)?;
        }
        Ok(())
    });
    found
}

/// `int nc_rc_set(const char *key, const char *value);`
///
/// Blanks around both are dropped. `NC_EINVAL` for a null pointer; nothing happens while the
/// table is turned off.
///
/// # Safety
/// Both are null or NUL-terminated strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_rc_set(key: *const c_char, value: *const c_char) -> c_int {
    boundary(|| {
        // SAFETY: the contract above is that of `bytes`.
        let (Some(key), Some(value)) = (unsafe { (bytes(key), bytes(value)) }) else {
            return Err(NcError::Inval.into());
        };
        if let Some(mut table) = table() {
            set_entry(&mut table.1, key, value);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::{ConfigEntries, add_entries};

    #[test]
    fn later_lines_replace_earlier_ones_and_urls_are_left_out() {
        let mut table = ConfigEntries::new();
        add_entries(b"# comment\n A = 1 \r\nB\n\n[http://x]A=2\nA= 3=4\n", &mut table);
        let expected = [(b"A".to_vec(), b"3=4".to_vec()), (b"B".to_vec(), b"".to_vec())];
        assert_eq!(table, expected);
    }
}

//! Files that are written as a whole or as a stream, by `std`: their end. What `std` closes by itself reports
//! nothing, and some file systems tell only at the close that they could not keep what was written.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use crate::os;

/// Makes a file of these bytes in the place of what is there, as [`std::fs::write`], and gives what
/// closing it reports. A part of them helps nobody: a file that cannot be completed is removed.
///
/// # Errors
/// What the operating system reports.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    let written = file.write_all(bytes);
    let done = close(file);
    let done = written.and(done);
    // No link, device or pipe, whose name is not ours.
    if done.is_err() && std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        let _as_good_as_done = std::fs::remove_file(path);
    }
    done
}

/// Closes a file that was written.
///
/// # Errors
/// What the operating system reports.
pub fn close(file: File) -> io::Result<()> {
    os::check_close(Ok(file.into())).map_err(|os::Errno(errno)| io::Error::from_raw_os_error(errno))
}

/// What closing a stream would report, which stays open: for standard output, that ends with the program.
///
/// # Errors
/// What the operating system reports.
pub fn check_close(stream: impl AsFd) -> io::Result<()> {
    let again = stream.as_fd().try_clone_to_owned();
    os::check_close(again).map_err(|os::Errno(errno)| io::Error::from_raw_os_error(errno))
}

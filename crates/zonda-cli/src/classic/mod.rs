//! The tools of netCDF-C under their own names: `ncdump` is this program, called by another name.
//!
//! Options, output, messages and exit statuses are those of the reference, for scripts that count on
//! them. What Zonda adds is in the commands of `zonda`.

mod getopt;
mod nccopy;
mod ncdump;
mod ncgen;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use zonda::NcError;

/// Runs a tool. The first argument is the name that it was called by, with which its messages
/// begin.
type ToolFn = fn(&[OsString]) -> ExitCode;

/// Tools by name.
const TOOLS: [(&str, ToolFn); 4] = [
    ("nccopy", nccopy::run),
    ("ncdump", ncdump::run),
    ("ncgen", ncgen::run),
    ("ncgen3", ncgen::run_classic),
];

/// The tool that the program was called as; `None` for `zonda` and any other name.
pub(crate) fn tool(called: &OsStr) -> Option<ToolFn> {
    let name = Path::new(called).file_name()?;
    TOOLS.iter().find(|(known, _)| name == *known).map(|(_, run)| *run)
}

/// Whether ranks divide the work of a tool.
pub(crate) fn is_divided(called: &OsStr) -> bool {
    Path::new(called).file_name().is_some_and(|name| name == "nccopy")
}

/// `EISDIR` of Linux.
const IS_A_FOLDER: i32 = 21;

/// The text of an error, as `nc_strerror` of the reference has it.
fn text_of(code: NcError) -> String {
    match code {
        // The reference opens a folder as a file and then finds no format in it.
        NcError::System(IS_A_FOLDER) => NcError::NotNc.to_string(),
        NcError::System(number) => {
            let text = code.to_string();
            let end = format!(" (os error {number})");
            text.strip_suffix(&end).unwrap_or(&text).to_owned()
        }
        code => code.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_errors() {
        assert_eq!(text_of(NcError::System(2)), "No such file or directory");
        assert_eq!(text_of(NcError::System(21)), "NetCDF: Unknown file format");
        assert_eq!(text_of(NcError::HdfErr), "NetCDF: HDF error");
    }

    #[test]
    fn names_of_tools() {
        for called in ["ncdump", "/usr/bin/ncgen3", "./nccopy"] {
            assert!(tool(OsStr::new(called)).is_some(), "{called}");
        }
        for called in ["zonda", "", "/", "ncdump.old", "ncgen/zonda"] {
            assert!(tool(OsStr::new(called)).is_none(), "{called}");
        }
    }
}

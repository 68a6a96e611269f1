//! The tools of netCDF-C under their own names: `nccopy` is this program, called by another name.
//!
//! Options, output, messages and exit statuses are those of the reference, for scripts that count on
//! them. What Zonda adds is in the commands of `zonda`.

mod getopt;
mod nccopy;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// What runs a tool. The first argument is the name it was called by, which its messages begin with.
type Run = fn(&[OsString]) -> ExitCode;

/// Tools by name.
const TOOLS: [(&str, Run); 1] = [("nccopy", nccopy::run)];

/// The tool that the program was called as; `None` for `zonda` and whatever else.
pub(crate) fn tool(called: &OsStr) -> Option<Run> {
    let name = Path::new(called).file_name()?;
    TOOLS.iter().find(|(known, _)| name == *known).map(|(_, run)| *run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools() {
        for called in ["nccopy", "/usr/bin/nccopy", "./nccopy"] {
            assert!(tool(OsStr::new(called)).is_some(), "{called}");
        }
        for called in ["zonda", "", "/", "nccopy.old", "nccopy/zonda"] {
            assert!(tool(OsStr::new(called)).is_none(), "{called}");
        }
    }
}

//! The tools of netCDF-C under their own names: `ncgen` is this program, called by another name.
//!
//! Options, output, messages and exit statuses are those of the reference, for scripts that count on
//! them. What Zonda adds is in the commands of `zonda`.

mod getopt;
mod ncgen;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// What runs a tool. The first argument is the name it was called by, which its messages begin with.
type Run = fn(&[OsString]) -> ExitCode;

/// Tools by name.
const TOOLS: [(&str, Run); 2] = [("ncgen", ncgen::run), ("ncgen3", ncgen::run_classic)];

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
        for called in ["ncgen", "/usr/bin/ncgen3", "./ncgen"] {
            assert!(tool(OsStr::new(called)).is_some(), "{called}");
        }
        for called in ["zonda", "", "/", "ncgen.old", "ncgen/zonda"] {
            assert!(tool(OsStr::new(called)).is_none(), "{called}");
        }
    }
}

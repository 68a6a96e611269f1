//! Where the I/O servers of a run record, if the program does.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Command;

/// Gives a server, which `command` starts, a file of its own beside those of the program.
pub(super) fn name(command: &mut Command, program: &Command, socket: &Path) {
    let said = program.get_envs().find(|(name, _)| *name == zonda_trace::VARIABLE);
    let asked = match said {
        Some((_, value)) => value.map(OsStr::to_owned),
        None => std::env::var_os(zonda_trace::VARIABLE),
    };
    if let Some(asked) = asked.filter(|asked| !asked.is_empty()) {
        command.env(zonda_trace::VARIABLE, file(&asked, &zonda::servers::name_of(socket)));
    }
}

/// The server's name stands for the rank, or for the process, or comes behind the name of the file.
fn file(asked: &OsStr, server: &str) -> OsString {
    let bytes = asked.as_bytes();
    let at = |mark: &[u8]| bytes.windows(mark.len()).position(|part| part == mark);
    let (before, after) = match at(b"%r").or_else(|| at(b"%p")) {
        Some(at) => (&bytes[..at], &bytes[at + 2..]),
        None => (bytes, &b""[..]),
    };
    let dot: &[u8] = if before.len() == bytes.len() { b"." } else { b"" };
    OsString::from_vec([before, dot, server.as_bytes(), after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_files_of_their_own() {
        for (asked, expected) in [
            ("trace.%r", "trace.server1"),
            ("%r/t.%p", "server1/t.%p"),
            ("t.%p.trace", "t.server1.trace"),
            ("out.trace", "out.trace.server1"),
        ] {
            assert_eq!(file(OsStr::new(asked), "server1"), expected, "{asked}");
        }
    }
}

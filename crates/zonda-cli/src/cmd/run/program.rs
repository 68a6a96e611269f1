//! Finds the executable that a command runs, through scripts and their interpreters.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::failure::{CommandFailure, Result};

/// How many interpreters of interpreters are followed, as many as Linux follows.
const MOST_INTERPRETERS: usize = 5;
/// Longest first line of a script that is looked at.
const SCRIPT_LINE: usize = 512;
/// What `execvp` runs a file with that the system cannot run by itself, having no first line with `#!`.
pub(super) const SHELL: &str = "/bin/sh";
/// Most program headers of an executable that are looked at; real ones have about a dozen.
const MOST_HEADERS: u64 = 1000;

/// A program as the system would start it.
#[derive(Debug)]
pub(super) struct Program {
    /// The file that was named, then the interpreter of each script; the last file is no script.
    chain: Vec<PathBuf>,
    /// It has no interpreter, and is run by [`SHELL`], as `execvp` and shells do it.
    pub(super) is_for_shell: bool,
    /// The kind of the last file.
    pub(super) kind: ExecutableKind,
    /// Whether the loader ignores the environment for it.
    pub(super) privileged: bool,
}

/// What an executable is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ExecutableKind {
    /// Linked dynamically, and loaded by this loader.
    Dynamic(PathBuf),
    /// Linked statically.
    Static,
    /// Unknown.
    Other,
}

impl Program {
    /// Finds a program as `execvp` does.
    ///
    /// # Errors
    /// If there is none, status 127; if it may not be executed, 126.
    pub(super) fn find(name: &OsStr) -> Result<Program> {
        let path = search(name)?;
        let mut chain = vec![path];
        let mut is_for_shell = false;
        while chain.len() <= MOST_INTERPRETERS {
            let last = chain.last().map_or(Path::new(""), PathBuf::as_path);
            match interpreter(last) {
                Some(next) => chain.push(next),
                None => {
                    is_for_shell = is_no_executable(last);
                    break;
                }
            }
        }
        if is_for_shell {
            // The shell gets the file that was named, whatever this names.
            chain.truncate(1);
            chain.push(SHELL.into());
        }
        let last = chain.last().map_or(Path::new(""), PathBuf::as_path);
        let kind = kind(last).unwrap_or(ExecutableKind::Other);
        let privileged = is_privileged(last);
        Ok(Program { chain, is_for_shell, kind, privileged })
    }

    /// The file that is executed.
    pub(super) fn path(&self) -> &Path {
        self.chain.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// The executable that is loaded: the program or its last interpreter.
    pub(super) fn executable(&self) -> &Path {
        self.chain.last().map_or(Path::new(""), PathBuf::as_path)
    }

    /// The Python interpreter, if it is one. Wrappers are recognised by their name, too.
    pub(super) fn python(&self) -> Option<&Path> {
        let is_python = |path: &&PathBuf| {
            let name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
            let rest = name.strip_prefix(b"python").or_else(|| name.strip_prefix(b"pypy"));
            rest.is_some_and(|rest| {
                rest.iter().all(|&b| b.is_ascii_digit() || b == b'.' || b == b't')
            })
        };
        self.chain.iter().find(is_python).map(PathBuf::as_path)
    }

    /// Whether it is R, whose start script puts R's and the system's folders in front of the library
    /// path.
    pub(super) fn is_r(&self) -> bool {
        self.chain.iter().any(|path| path.file_name().is_some_and(|n| n == "R" || n == "Rscript"))
    }
}

/// The file that a name stands for: itself if it has a slash, else the first in `PATH`.
fn search(name: &OsStr) -> Result<PathBuf> {
    let missing = |why: &str, status| {
        CommandFailure::NotStarted(format!("{}: {why}", Path::new(name).display()), status)
    };
    if name.as_bytes().contains(&b'/') {
        let metadata = fs::metadata(name).map_err(|error| missing(&error.to_string(), 127))?;
        if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
            return Err(missing("no executable file", 126));
        }
        return Ok(name.into());
    }
    let paths = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&paths)
        .map(|folder| folder.join(name))
        .find(|path| {
            fs::metadata(path).is_ok_and(|metadata| {
                metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
            })
        })
        .ok_or_else(|| missing("no such program", 127))
}

/// The interpreter that a script names in its first line; `env` stands for what it starts.
fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    File::open(path).ok()?.take(SCRIPT_LINE as u64).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let first = PathBuf::from(OsString::from_vec(words.next()?.to_vec()));
    if first.file_name() != Some(OsStr::new("env")) {
        return Some(first);
    }
    let started = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='));
    match started {
        Some(name) => search(OsStr::from_bytes(name)).ok(),
        None => Some(first),
    }
}

/// Whether the system says of a file that it is nothing to be executed (`ENOEXEC`): no ELF file, and no script that names an interpreter.
fn is_no_executable(path: &Path) -> bool {
    let mut line = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(SCRIPT_LINE as u64).read_to_end(&mut line));
    let first = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let names_none = first.strip_prefix(b"#!").is_none_or(|rest| rest.trim_ascii().is_empty());
    read.is_ok() && !line.starts_with(b"\x7fELF") && names_none
}

/// What an ELF file is (System V ABI, "ELF Header" and "Program Header"); `None` if it cannot be read
/// or is none, or one for machines that are not 64-bit little-endian, as Zonda's are.
fn kind(path: &Path) -> Option<ExecutableKind> {
    const PT_INTERP: u32 = 3;
    let file = File::open(path).ok()?;
    let mut header = [0u8; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Some(ExecutableKind::Other);
    }
    let field = |bytes: &[u8], at: usize, len: usize| -> u64 {
        bytes[at..at + len].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    };
    let (table, size, n) =
        (field(&header, 32, 8), field(&header, 54, 2), field(&header, 56, 2).min(MOST_HEADERS));
    for index in 0..n {
        let mut entry = [0u8; 56];
        file.read_exact_at(&mut entry, table.checked_add(index * size)?).ok()?;
        if field(&entry, 0, 4) != u64::from(PT_INTERP) {
            continue;
        }
        let (at, len) = (field(&entry, 8, 8), field(&entry, 32, 8));
        let mut loader = vec![0u8; usize::try_from(len.min(4096)).ok()?];
        file.read_exact_at(&mut loader, at).ok()?;
        let end = loader.iter().position(|&byte| byte == 0).unwrap_or(loader.len());
        loader.truncate(end);
        return Some(ExecutableKind::Dynamic(OsString::from_vec(loader).into()));
    }
    Some(ExecutableKind::Static)
}

/// Whether a program runs with more rights than its caller, so that the loader ignores what the
/// caller's environment says.
fn is_privileged(path: &Path) -> bool {
    const SET_UID: u32 = 0o4000;
    const SET_GID: u32 = 0o2000;
    // File capabilities are such rights, too.
    let has_capabilities =
        rustix::fs::getxattr(path, "security.capability", &mut [0u8; 64][..]).is_ok();
    has_capabilities
        || fs::metadata(path).is_ok_and(|metadata| {
            let mode = metadata.mode();
            (mode & SET_UID != 0 && metadata.uid() != rustix::process::getuid().as_raw())
                || (mode & SET_GID != 0 && metadata.gid() != rustix::process::getgid().as_raw())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_followed_to_their_loader() {
        let shell = Program::find(OsStr::new("sh")).unwrap();
        assert!(matches!(&shell.kind, ExecutableKind::Dynamic(loader) if loader.is_absolute()));
        assert!(shell.python().is_none());
        let missing = Program::find(OsStr::new("no-such-program-here")).unwrap_err();
        assert!(matches!(missing, CommandFailure::NotStarted(_, 127)));
        let folder = Program::find(OsStr::new("/tmp/")).unwrap_err();
        assert!(matches!(folder, CommandFailure::NotStarted(_, 126)));
    }

    #[test]
    fn scripts_lead_to_their_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let outer = script("outer", "#!/usr/bin/env -S sh -e\n");
        assert_eq!(interpreter(&outer), search(OsStr::new("sh")).ok());
        let python = script("python3.12", "#!/bin/sh\nexec false\n");
        let program = Program::find(python.as_os_str()).unwrap();
        assert_eq!(program.python(), Some(python.as_path()));
        assert_eq!(program.executable(), Path::new("/bin/sh"));
        // What the system does not run, the shell does.
        for (name, text) in [("plain", "echo x\n"), ("empty", ""), ("nobody", "#! \necho x\n")] {
            let plain = Program::find(script(name, text).as_os_str()).unwrap();
            assert!(plain.is_for_shell, "{name}");
            assert_eq!(plain.path(), folder.path().join(name));
            assert_eq!(plain.executable(), Path::new(SHELL));
            assert!(matches!(plain.kind, ExecutableKind::Dynamic(_)));
        }
        let by_plain = format!("#!{}\n", folder.path().join("plain").display());
        let program = Program::find(script("by-plain", &by_plain).as_os_str()).unwrap();
        assert_eq!(program.chain, [folder.path().join("by-plain"), SHELL.into()]);
        let missing = script("missing", "#!/usr/bin/env no-such-program-here\n");
        assert!(!Program::find(missing.as_os_str()).unwrap().is_for_shell);
        // A program for other machines is none for the shell.
        let other = Program::find(script("other", "\x7fELF\x01\x01").as_os_str()).unwrap();
        assert!(!other.is_for_shell && other.kind == ExecutableKind::Other);
        // A script that names itself ends, too.
        let own = folder.path().join("loop");
        script("loop", &format!("#!{}\n", own.display()));
        assert_eq!(Program::find(own.as_os_str()).unwrap().chain.len(), MOST_INTERPRETERS + 1);
    }
}

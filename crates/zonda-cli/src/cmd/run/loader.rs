//! Asks the dynamic loader what it would load.
//!
//! The loader is started as a program in its tracing mode. It uses RPATH, RUNPATH,
//! `LD_LIBRARY_PATH`, `LD_PRELOAD` and the cache as a real start does, and looks up all symbols. It
//! runs no code of the object; starting the program itself with tracing, as `ldd` does, might.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the loader says of an object.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LoaderTrace {
    /// The files it would load, in order.
    pub(super) files: Vec<PathBuf>,
    /// Names of libraries that it does not find.
    pub(super) missing: Vec<PathBuf>,
    /// Symbols that no file has.
    pub(super) undefined: Vec<String>,
}

/// What `loader` would load for `object`; `None` if it does not answer.
pub(super) fn trace(
    loader: &Path,
    object: &Path,
    environment: &[(&'static str, OsString)],
) -> LoaderTrace {
    let output = Command::new(loader)
        .arg(object)
        .envs([("LD_TRACE_LOADED_OBJECTS", "1"), ("LD_WARN", "yes"), ("LD_BIND_NOW", "yes")])
        .envs(environment.iter().cloned())
        .stdin(Stdio::null())
        .output();
    output.map_or(LoaderTrace::default(), |output| {
        let mut text = output.stdout;
        // The stream on which symbols are reported depends on the version.
        text.push(b'\n');
        text.extend_from_slice(&output.stderr);
        parse(&text)
    })
}

/// Lines are `NAME => PATH (ADDRESS)`, `PATH (ADDRESS)`, `NAME => not found` or
/// `undefined symbol: NAME (PATH)`.
fn parse(text: &[u8]) -> LoaderTrace {
    let mut trace = LoaderTrace::default();
    for line in text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii) {
        if let Some(rest) = line.strip_prefix(b"undefined symbol: ") {
            let name = rest.split(|byte| byte.is_ascii_whitespace() || *byte == b',').next();
            trace.undefined.push(String::from_utf8_lossy(name.unwrap_or(rest)).into_owned());
            continue;
        }
        let arrow = line.windows(4).position(|four| four == b" => ");
        let file = arrow.map_or(line, |at| &line[at + 4..]);
        if let (Some(at), b"not found") = (arrow, file) {
            trace.missing.push(OsString::from_vec(line[..at].to_vec()).into());
        } else if let Some(end) = file.windows(4).rposition(|four| four == b" (0x")
            && (arrow.is_some() || file.starts_with(b"/"))
        {
            trace.files.push(OsString::from_vec(file[..end].to_vec()).into());
        }
    }
    trace
}

/// Whether a file is a C library of netCDF by its name: `libnetcdf.so.19`, the same with the hash that
/// Python packages put in (`libnetcdf-5c1ab0f3.so.22`), or a parallel one of Debian. The Fortran and
/// C++ libraries, which sit on it, are not.
pub(super) fn is_netcdf(path: &Path) -> bool {
    let name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
    let Some(rest) = name.strip_prefix(b"libnetcdf") else { return false };
    let rest = ["_mpi", "_pnetcdf"]
        .iter()
        .find_map(|build| rest.strip_prefix(build.as_bytes()))
        .unwrap_or(rest);
    let rest = match rest.strip_prefix(b"-") {
        Some(hashed) => {
            let end = hashed.iter().position(|b| !b.is_ascii_hexdigit()).unwrap_or(hashed.len());
            if end == 0 {
                return false;
            }
            &hashed[end..]
        }
        None => rest,
    };
    rest == b".so" || rest.starts_with(b".so.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_understood() {
        let text = b"\tlinux-vdso.so.1 (0x00007ffd)\n\
            \t/p/lib/libzonda-preload.so (0x00007f00)\n\
            \tlibnetcdf.so.19 => /p/my lib/libnetcdf.so.19 (0x00007f01)\n\
            \tlibmissing.so.1 => not found\n\
            \tlibz.so.1 => dist/lib/libz.so.1 (0x00007f02)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f02)\n\
            undefined symbol: H5open\t(/p/module.so)\n";
        let files = [
            "/p/lib/libzonda-preload.so",
            "/p/my lib/libnetcdf.so.19",
            "dist/lib/libz.so.1",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        let expected = LoaderTrace {
            files: files.map(PathBuf::from).to_vec(),
            missing: vec!["libmissing.so.1".into()],
            undefined: vec!["H5open".to_owned()],
        };
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn names_of_the_c_library() {
        for (name, is) in [
            ("libnetcdf.so.19", true),
            ("libnetcdf.so", true),
            ("libnetcdf-5c1ab0f3.so.22", true),
            ("libnetcdf_mpi.so.19", true),
            ("libnetcdf_pnetcdf.so.19", true),
            ("libnetcdff.so.7", false),
            ("libnetcdf_c++4.so.1", false),
            ("libnetcdf-cxx4.so.1", false),
            ("libnetcdf.a", false),
        ] {
            assert_eq!(is_netcdf(&Path::new("/usr/lib").join(name)), is, "{name}");
        }
    }
}

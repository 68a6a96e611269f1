//! Which libnetcdf programs load.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::run::loads::{self, ProgramLoads};
use super::super::run::maps::{self, MappedFile};
use super::Finding;
use crate::failure::{CommandFailure, Result};

/// The library beside this program, and what stands in the way of programs that look for it.
pub(super) fn library(lib: Option<&Path>) -> Vec<Finding> {
    let mut found = match loads::folder(lib) {
        Ok(folder) => vec![
            Finding::ok(format!("Zonda's library is in {}", folder.display())),
            match zonda::check_tls(&folder) {
                Ok(Some(file)) => Finding::ok(format!("https:// URLs open, by {}", file.display())),
                Ok(None) => Finding::ok("https:// URLs open"),
                Err(why) => Finding::wrong(format!("https:// URLs do not open: {why}")),
            },
        ],
        Err(failure) => vec![
            Finding::wrong(failure.into_text())
                .advised("build or install it, or name its folder: --lib DIR"),
        ],
    };
    for name in ["LD_LIBRARY_PATH", "LD_PRELOAD"] {
        if let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) {
            found.push(Finding::note(format!("{name}={}", value.to_string_lossy())));
            let files = value.to_string_lossy();
            let files = files.split([':', ' ']).filter(|_| name == "LD_PRELOAD");
            for file in files.filter(|file| file.contains('/') && !Path::new(file).exists()) {
                found.push(Finding::wrong(format!("LD_PRELOAD names {file}, which is not there")));
            }
        }
    }
    found
}

/// A program that is not started.
///
/// # Errors
/// If there is no such program.
pub(super) fn loads(name: &OsStr, lib: Option<&Path>) -> Result<Vec<Finding>> {
    let ProgramLoads { executable, found, not_found, not_asked, privileged, by_run } =
        loads::ask(name, lib)?;
    let mut findings = Vec::new();
    if privileged {
        findings.push(Finding::note("it runs with more rights than its caller: the loader ignores LD_LIBRARY_PATH and LD_PRELOAD for it"));
    }
    if let Some(why) = &not_asked {
        findings.push(Finding::note(format!("what it loads cannot be told: {why}")));
    }
    for file in &found {
        let text = format!("{} loads {}", file.object.display(), file.library.display());
        findings.push(if file.is_ours {
            Finding::ok(format!("{text}, which is Zonda's"))
        } else {
            let advice = match &by_run {
                Ok(how) => format!("`zonda run -- PROGRAM` gives it Zonda's, {how}"),
                Err(why) => format!("`zonda run` does not help: {why}"),
            };
            Finding::note(format!("{text}, which is not Zonda's")).advised(advice)
        });
    }
    for object in &not_found {
        let text = format!("{} finds no libnetcdf", object.display());
        findings.push(Finding::wrong(text).advised("`zonda run -- PROGRAM`, or LD_LIBRARY_PATH"));
    }
    if found.is_empty() && not_found.is_empty() && not_asked.is_none() {
        let text = format!("{} names no libnetcdf", executable.display());
        let why = by_run.err().unwrap_or_else(|| "zonda run preloads Zonda's".to_owned());
        findings.push(Finding::note(text).advised(why));
    }
    Ok(findings)
}

/// A process that runs.
///
/// # Errors
/// If its memory map cannot be read.
pub(super) fn running(pid: u32) -> Result<Vec<Finding>> {
    let maps = PathBuf::from(format!("/proc/{pid}/maps"));
    let text = fs::read(&maps).map_err(|error| CommandFailure::at(&maps, error))?;
    let text = String::from_utf8_lossy(&text);
    let mapped = mapped(&text);
    let mut found = Vec::new();
    for (MappedFile { range, file, is_gone }, kind) in &mapped {
        let has = format!("has {} loaded", file.display());
        // The file of the mapping stays after its name has gone, as after an upgrade.
        let bytes = if *is_gone {
            format!("/proc/{pid}/map_files/{range}").into()
        } else {
            file.to_path_buf()
        };
        found.push(match (kind, is_zonda(&bytes)) {
            (LibraryKind::Hdf5, _) => {
                Finding::note(has).advised("its calls of HDF5 go there, not to Zonda")
            }
            (LibraryKind::NetCdf, Ok(true)) => Finding::ok(format!("{has}: Zonda")),
            (LibraryKind::NetCdf, Ok(false)) => Finding::note(format!("{has}: not Zonda")),
            (LibraryKind::NetCdf, Err(error)) => {
                Finding::note(format!("{has}; whether it is Zonda cannot be told: {error}"))
            }
        });
        if *is_gone {
            found.push(Finding::note(format!("{} was removed or replaced since", file.display())));
        }
    }
    if !mapped.iter().any(|(_, kind)| *kind == LibraryKind::NetCdf) {
        found.push(Finding::note("has no libnetcdf loaded"));
    }
    Ok(found)
}

#[derive(Debug, PartialEq, Eq)]
enum LibraryKind {
    NetCdf,
    Hdf5,
}

/// What a file is by its name; nothing where it is neither.
fn kind(file: &Path) -> Option<LibraryKind> {
    let name = file.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    let is_hdf5 =
        ["libhdf5.", "libhdf5-", "libhdf5_serial."].iter().any(|begin| name.starts_with(begin));
    if loads::is_netcdf(file) || name == "libzonda-preload.so" {
        Some(LibraryKind::NetCdf)
    } else {
        is_hdf5.then_some(LibraryKind::Hdf5)
    }
}

/// Files of netCDF and HDF5 in a memory map, each once.
fn mapped(maps: &str) -> Vec<(MappedFile<'_>, LibraryKind)> {
    let mut found: Vec<(MappedFile<'_>, LibraryKind)> = Vec::new();
    for mapped in maps::files(maps) {
        if let Some(kind) = kind(mapped.file)
            && !found.iter().any(|(known, _)| known.file == mapped.file)
        {
            found.push((mapped, kind));
        }
    }
    found
}

/// Whether a library says so of itself: it holds the text that `nc_inq_libvers` gives, or that of the one which is preloaded and loads another.
fn is_zonda(file: &Path) -> std::io::Result<bool> {
    const SAYS: [&[u8]; 2] = [b" of Zonda ", b"zonda: libzonda-preload.so: "];
    // A library of 100 MB with all debugging symbols is read in a few hundredths of a second.
    let bytes = fs::read(file)?;
    Ok(SAYS.iter().any(|says| bytes.windows(says.len()).any(|window| window == *says)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_in_a_memory_map() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 12 /usr/bin/python3\n\
                    7f02-7f03 r-xp 00000000 08:01 13 /v/netCDF4.libs/libnetcdf-5c1ab0f3.so.22\n\
                    7f03-7f04 r--p 00000000 08:01 13 /v/netCDF4.libs/libnetcdf-5c1ab0f3.so.22\n\
                    7f04-7f05 r-xp 00000000 08:01 14 /v/h5py.libs/libhdf5-346dda4d.so.310.2.0 (deleted)\n\
                    7f05-7f06 r-xp 00000000 08:01 14 /usr/lib/libhdf5_hl.so.100\n\
                    7f06-7f07 rw-p 00000000 00:00 0 [heap]\n";
        let found = mapped(maps);
        let found: Vec<_> =
            found.iter().map(|(mapped, kind)| (mapped.file, mapped.is_gone, kind)).collect();
        let expected = [
            (Path::new("/v/netCDF4.libs/libnetcdf-5c1ab0f3.so.22"), false, &LibraryKind::NetCdf),
            (Path::new("/v/h5py.libs/libhdf5-346dda4d.so.310.2.0"), true, &LibraryKind::Hdf5),
        ];
        assert_eq!(found, expected);
    }
}

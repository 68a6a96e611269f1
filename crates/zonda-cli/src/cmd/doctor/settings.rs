//! Settings of the environment, and filters.

use std::path::{Path, PathBuf};

use zonda::storage::{Spec, SyncLevel};
use zonda::{WriteBehind, check_filter, filter_name};
use zonda_runtime::setting;

use super::Finding;
use crate::similar::nearest;

/// What a value has to be; the answer is why it is none.
type Check = fn(&str) -> std::result::Result<(), String>;

/// Every variable that the library reads, with what it takes.
const SETTINGS: [(&str, Check); 19] = [
    ("ZONDA_IO", |text| text.parse::<Spec>().map(drop).map_err(|error| error.to_string())),
    ("ZONDA_MEMORY", bytes),
    ("ZONDA_WRITE_CACHE", bytes),
    ("ZONDA_THREADS", |text| match text.parse::<usize>() {
        Ok(1..) => Ok(()),
        _ => Err("not a number of threads, from 1".to_owned()),
    }),
    ("ZONDA_ASYNC", |text| {
        text.parse::<WriteBehind>().map(drop).map_err(|error| error.to_string())
    }),
    ("ZONDA_FULL_DEVICE_WAIT", seconds),
    ("ZONDA_SYNC", |text| text.parse::<SyncLevel>().map(drop).map_err(|error| error.to_string())),
    // Letter by letter, as HDF5 compares them.
    ("HDF5_USE_FILE_LOCKING", |text| one_of(&["TRUE", "1", "FALSE", "0", "BEST_EFFORT"], text)),
    ("ZONDA_EXTERNAL", |text| text.split(':').try_for_each(folder)),
    ("ZONDA_MPI", |text| match text {
        "none" => Ok(()),
        path if !path.contains('/') || Path::new(path).is_file() => Ok(()),
        _ => Err("no such file".to_owned()),
    }),
    ("ZONDA_SERVERS", folder),
    ("ZONDA_PAR_TIMEOUT", seconds),
    ("ZONDA_REMOTE_CACHE", |text| match text.rsplit_once(':') {
        Some((_, limit)) if setting::bytes_of(limit).is_some() => Ok(()),
        Some((_, limit)) if !limit.contains('/') => bytes(limit),
        _ => Ok(()),
    }),
    ("ZONDA_EXPLAIN", |text| one_of(&["0", "1"], text)),
    ("ZONDA_TRACE", |text| match Path::new(text).parent() {
        Some(parent) if !parent.as_os_str().is_empty() => folder(&parent.to_string_lossy()),
        _ => Ok(()),
    }),
    ("ZONDA_IOD", |text| match Path::new(text).is_file() {
        true => Ok(()),
        false => Err("no such file".to_owned()),
    }),
    ("HDF5_PLUGIN_PATH", |text| {
        let folders = text.split([':', ';']).filter(|folder| !folder.is_empty());
        folders.map(folder).find(Result::is_err).unwrap_or(Ok(()))
    }),
    ("HDF5_PLUGIN_PRELOAD", |_| Ok(())),
    ("NETCDF_RC", |_| Ok(())),
];

/// Filters that files of others often have and that may come as plugins: registered numbers of HDF5.
const KNOWN_PLUGINS: [(u32, &str); 5] =
    [(32017, "SZ"), (32018, "FCIDECOMP"), (32024, "SZ3"), (32028, "SPERR"), (32033, "HTJ2K")];

fn bytes(text: &str) -> std::result::Result<(), String> {
    setting::bytes_of(text)
        .map(drop)
        .ok_or_else(|| "not a number of bytes, such as 512M".to_owned())
}

fn seconds(text: &str) -> std::result::Result<(), String> {
    let is_time = text.parse::<f64>().is_ok_and(|n| n.is_finite() && n >= 0.0);
    if is_time { Ok(()) } else { Err("not a number of seconds".to_owned()) }
}

fn folder(text: &str) -> std::result::Result<(), String> {
    if Path::new(text).is_dir() { Ok(()) } else { Err(format!("{text}: no such folder")) }
}

fn one_of(words: &[&str], text: &str) -> std::result::Result<(), String> {
    if words.contains(&text) { Ok(()) } else { Err(format!("none of {}", words.join(", "))) }
}

/// Settings that are there. Those of a name that is nearly one of ours are told, too.
pub(super) fn findings() -> Vec<Finding> {
    let mut found: Vec<Finding> = SETTINGS
        .iter()
        .filter_map(|(name, check)| Some((*name, check, setting::text(name)?)))
        .map(|(name, check, text)| match check(&text) {
            Ok(()) => Finding::ok(format!("{name}={text}")),
            Err(why) => Finding::wrong(format!("{name}={text}: {why}"))
                .advised("the library uses its default instead, and says so"),
        })
        .collect();
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut others: Vec<String> = names
        .filter(|name| {
            name.starts_with("ZONDA") && !SETTINGS.iter().any(|(known, _)| known == name)
        })
        .collect();
    others.sort();
    for name in others {
        let known = SETTINGS.iter().map(|(known, _)| *known);
        let text = format!("{name}: the library has no such setting");
        found.push(match nearest(&name, known) {
            Some(meant) => Finding::wrong(text).advised(format!("did you mean {meant}?")),
            None => Finding::note(text),
        });
    }
    if found.is_empty() {
        found.push(Finding::ok("none: all defaults"));
    }
    found.extend(rc_files());
    found
}

/// Files with settings for URLs. What they hold may be secret, and is not shown.
fn rc_files() -> Vec<Finding> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let folders = home.iter().cloned().chain([PathBuf::from(".")]);
    let names = [".ncrc", ".dodsrc", ".daprc", ".netrc"];
    let files = folders.flat_map(|folder| names.map(|name| folder.join(name)));
    files
        .filter(|file| file.is_file())
        .map(|file| Finding::ok(format!("{}: is there, for URLs", file.display())))
        .collect()
}

/// Filters that are built in, and what comes by plugins.
pub(super) fn filters() -> Vec<Finding> {
    let builtin = (1..=307).chain(32000..=32100).filter_map(filter_name);
    let builtin: Vec<&str> = builtin.collect();
    let mut found = vec![Finding::ok(format!("built in: {}", builtin.join(", ")))];
    for (number, name) in KNOWN_PLUGINS {
        match check_filter(number) {
            Ok(()) => found.push(Finding::ok(format!("{name} ({number}): by a plugin"))),
            Err(error) if error.code() != zonda::NcError::NoFilter => {
                found.push(Finding::wrong(format!("{name} ({number}): {}", error.line())));
            }
            Err(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_takes_what_it_should_and_nothing_else() {
        let check = |name: &str, text: &str| {
            let (_, check) = SETTINGS.iter().find(|(known, _)| *known == name).unwrap();
            check(text).is_ok()
        };
        for (name, good, bad) in [
            ("ZONDA_IO", "cache:16:8,file", "cash,file"),
            ("ZONDA_MEMORY", "512M", "lots"),
            ("ZONDA_WRITE_CACHE", "0", "1.5G"),
            ("ZONDA_THREADS", "4", "0"),
            ("ZONDA_ASYNC", "mem=512M,threads=2", "yes please"),
            ("ZONDA_FULL_DEVICE_WAIT", "0.5", "soon"),
            ("ZONDA_SYNC", "data", "always"),
            ("HDF5_USE_FILE_LOCKING", "BEST_EFFORT", "best_effort"),
            ("ZONDA_EXTERNAL", "/tmp:/", "/no/such/folder"),
            ("ZONDA_MPI", "none", "/no/such/libmpi.so"),
            ("ZONDA_SERVERS", "/tmp", "/no/such/folder"),
            ("ZONDA_PAR_TIMEOUT", "90", "-1"),
            ("ZONDA_REMOTE_CACHE", "/tmp/cache:2G", "/tmp/cache:much"),
            ("ZONDA_EXPLAIN", "1", "2"),
            ("ZONDA_TRACE", "trace-%p", "/no/such/folder/trace"),
            ("HDF5_PLUGIN_PATH", "/tmp;/usr", "/tmp:/no/such/folder"),
        ] {
            assert!(check(name, good), "{name}={good}");
            assert!(!check(name, bad), "{name}={bad}");
        }
    }
}

//! The forms of 1995: layer names of Cray's flexible file I/O (`assign -F`, `NETCDF_FFIOSPEC`).
//!
//! | form | arguments | runs as |
//! |---|---|---|
//! | `cachea:BLOCKS:PAGES[:AHEAD[:ID]]` | page size, pages, read-ahead pages, shared cache | `cache:BLOCKS:PAGES` |
//! | `bufa:BLOCKS:BUFFERS` | buffer size, number | `cache:BLOCKS:BUFFERS` |
//! | `eie:BLOCKS:PAGES[:N[:N]]` | page size, pages, two more numbers | `cache:BLOCKS:PAGES` |
//! | `mr`, `sds`, `global`, `set`, `direct`, `mmap` | any numbers | left out |
//! | `system`, `syscall` | none | the backend `file` |
//!
//! Asynchronous forms come with their own layers; until then they run synchronously. Options after
//! dots (`.sds`, `.skip`, ...) said where memory was on that machine, and are accepted.

use super::{Args, Plan, SpecError};
use crate::layer::CacheShape;
use std::sync::Arc;

/// Names that have no layer of their own.
pub(super) const NAMES: [&str; 11] =
    ["bufa", "cachea", "direct", "eie", "global", "mmap", "mr", "sds", "set", "syscall", "system"];

/// Option words of the 1995 manuals.
const OPTIONS: &[&str] = &[
    "aio", "all", "brief", "diag", "globpos", "lim", "mem", "mr", "noaio", "nodiag", "nostat",
    "novfl", "ovfl", "privpos", "rtc", "save", "scr", "sds", "shr", "skip", "summary",
];

/// Refuses option words that no FFIO layer had; numbers are options too.
pub(super) fn check_options(args: &Args<'_>) -> Result<(), SpecError> {
    let known = |option: &str| {
        OPTIONS.contains(&option)
            || (!option.is_empty() && option.bytes().all(|b| b.is_ascii_digit()))
    };
    args.options().find(|option| !known(option)).map_or(Ok(()), |o| Err(args.bad_option(o)))
}

/// `system` and `syscall`: the backend.
pub(super) fn system(args: &mut Args<'_>) -> Result<(), SpecError> {
    check_options(args)?;
    args.end()
}

/// Checks the arguments of a token without a layer of its own; `None` when nothing stands for it.
pub(super) fn plan(args: &mut Args<'_>) -> Result<Option<Arc<dyn Plan>>, SpecError> {
    // Cray's default was two buffers for double buffering, and four pages for a cache.
    let (pages, extra) = match args.name() {
        "bufa" => (2, 0),
        "cachea" | "eie" => (4, 2),
        "direct" | "global" | "mmap" | "mr" | "sds" | "set" => {
            check_options(args)?;
            while let Some(argument) = args.next() {
                args.size(argument)?;
            }
            return Ok(None);
        }
        name => {
            return Err(SpecError::Unknown {
                token: name.to_owned(),
                position: args.position(),
                known: super::known_names(),
            });
        }
    };
    check_options(args)?;
    let shape = CacheShape::parse(args, pages)?;
    for _ in 0..extra {
        if let Some(argument) = args.next() {
            args.number(argument)?;
        }
    }
    args.end()?;
    Ok(Some(shape.plan()))
}

//! The forms of 1995: layer names of Cray's flexible file I/O (`assign -F`, `NETCDF_FFIOSPEC`).
//!
//! | form | arguments | runs as |
//! |---|---|---|
//! | `mr`, `sds`, `global`, `set` | any numbers | left out |
//! | `system`, `syscall` | none | the backend `file` |
//!
//! Layers of those days that there are (`bufa`, `cachea`, `eie`, ...) are found by their names. Options
//! after dots (`.sds`, `.skip`, ...) said where memory was on that machine, and are accepted.

use super::{SpecArgs, SpecError};

/// Names that have no layer of their own.
pub(super) const NAMES: [&str; 6] = ["global", "mr", "sds", "set", "syscall", "system"];

/// Option words of the 1995 manuals.
const OPTIONS: &[&str] = &[
    "aio", "all", "brief", "diag", "globpos", "lim", "mem", "mr", "noaio", "nodiag", "nostat",
    "novfl", "ovfl", "privpos", "rtc", "save", "scr", "sds", "shr", "skip", "summary",
];

/// Refuses option words that no FFIO layer had; numbers are options too.
pub(super) fn check_options(args: &SpecArgs<'_>) -> Result<(), SpecError> {
    let known = |option: &str| {
        OPTIONS.contains(&option)
            || (!option.is_empty() && option.bytes().all(|b| b.is_ascii_digit()))
    };
    args.options().find(|option| !known(option)).map_or(Ok(()), |o| Err(args.bad_option(o)))
}

/// `system` and `syscall`: the backend.
pub(super) fn system(args: &mut SpecArgs<'_>) -> Result<(), SpecError> {
    check_options(args)?;
    args.end()
}

/// Checks the arguments of a token that nothing stands for.
pub(super) fn left_out(args: &mut SpecArgs<'_>) -> Result<(), SpecError> {
    if !["global", "mr", "sds", "set"].contains(&args.name()) {
        return Err(SpecError::Unknown {
            token: args.name().to_owned(),
            position: args.position(),
            known: super::known_names(),
        });
    }
    check_options(args)?;
    while let Some(argument) = args.next() {
        args.size(argument)?;
    }
    Ok(())
}

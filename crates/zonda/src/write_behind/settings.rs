//! Settings of write-behind.

use std::fmt;
use std::str::FromStr;

use crate::tuning::WRITE_BEHIND_MAX_BYTES;
use zonda_runtime::{Settled, memory, setting};

/// The environment variable with the setting for all files of a process.
const VARIABLE: &str = "ZONDA_ASYNC";

/// Whether puts return when they are accepted, and are carried out later by a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBehind {
    /// A put returns when it is done.
    #[default]
    Off,
    /// A put returns when its values are copied.
    On(WriteBehindOptions),
}

/// How accepted puts are carried out; what is `None` gets a default.
///
/// See [`WriteBehind`](crate::WriteBehind).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteBehindOptions {
    /// Whether a helper process watches, which carries out what was accepted should this process be
    /// killed.
    pub helper: bool,
    /// Bytes that accepted values may take before puts wait. By default half of `ZONDA_MEMORY` and
    /// no more than 512 MiB, for all files together; a number given to one file is its own.
    pub memory_bytes: Option<u64>,
    /// Files that are written at the same time. Filters use `ZONDA_THREADS` besides.
    pub threads: Option<usize>,
}

/// Least size of the budget in bytes: less would not hold one small put.
const LEAST_MEMORY: u64 = 4096;
/// Most threads that can be asked for: more files are hardly written at the same time.
const MOST_THREADS: usize = 64;

impl WriteBehindOptions {
    pub(super) fn default_memory() -> u64 {
        (memory::budget() / 2).clamp(LEAST_MEMORY, WRITE_BEHIND_MAX_BYTES)
    }
}

impl WriteBehind {
    /// The setting of the environment variable `ZONDA_ASYNC`. A text that cannot be read is reported once on standard
    /// error, and counts as `off`.
    #[must_use]
    pub fn from_env() -> WriteBehind {
        static SAID: Settled<WriteBehind> = Settled::new();
        *SAID.get_or_make(|| {
            let Some(text) = std::env::var_os(VARIABLE) else { return WriteBehind::Off };
            let text = text.to_string_lossy();
            text.parse().unwrap_or_else(|why: WriteBehindError| {
                setting::warn_once(VARIABLE, &text, &why, &"off");
                WriteBehind::Off
            })
        })
    }
}

/// Why a text is no setting of write-behind.
///
/// See [`WriteBehind`](crate::WriteBehind).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WriteBehindError(String);

impl FromStr for WriteBehind {
    type Err = WriteBehindError;

    /// `off`, `on`, or `helper`, `mem=BYTES` and `threads=N` with commas between; bytes may have a
    /// suffix `k`, `M` or `G`.
    fn from_str(text: &str) -> Result<WriteBehind, WriteBehindError> {
        let mut how = WriteBehindOptions::default();
        match text.trim() {
            "off" | "" => return Ok(WriteBehind::Off),
            "on" => return Ok(WriteBehind::On(how)),
            _ => {}
        }
        for part in text.split(',').map(str::trim) {
            let wrong = |what: &str| WriteBehindError(format!("`{part}` is not {what}"));
            if part == "helper" {
                how.helper = true;
                continue;
            }
            match part.split_once('=') {
                Some(("mem", value)) => {
                    let bytes = setting::bytes_of(value).filter(|&bytes| bytes >= LEAST_MEMORY);
                    how.memory_bytes = Some(
                        bytes.ok_or_else(|| wrong("`mem=` with 4k or more, such as mem=512M"))?,
                    );
                }
                Some(("threads", value)) => {
                    let n = value.parse().ok().filter(|n| (1..=MOST_THREADS).contains(n));
                    how.threads = Some(n.ok_or_else(|| wrong("`threads=` with 1 to 64"))?);
                }
                _ => return Err(wrong("`off`, `on`, `helper`, `mem=BYTES` or `threads=N`")),
            }
        }
        Ok(WriteBehind::On(how))
    }
}

impl fmt::Display for WriteBehind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WriteBehind::On(WriteBehindOptions { helper, memory_bytes, threads }) = self else {
            return f.write_str("off");
        };
        let parts = [
            helper.then(|| "helper".to_owned()),
            memory_bytes.map(|bytes| format!("mem={bytes}")),
            threads.map(|n| format!("threads={n}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { f.write_str("on") } else { f.write_str(&parts.join(",")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_said() {
        let read = |text: &str| text.parse::<WriteBehind>().map(|said| said.to_string());
        assert_eq!(read("off").unwrap(), "off");
        assert_eq!(read("on").unwrap(), "on");
        assert_eq!(read("mem=512M").unwrap(), format!("mem={}", 512 << 20));
        assert_eq!(read(" threads=2 , mem=64k").unwrap(), "mem=65536,threads=2");
        assert_eq!(read("helper").unwrap(), "helper");
        assert_eq!(read("helper,mem=64k,threads=3").unwrap(), "helper,mem=65536,threads=3");
        for wrong in ["yes", "mem=", "mem=1", "threads=0", "threads=65", "mem=1M,,", "mem"] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains("is not"), "{wrong}: {error}");
        }
    }
}

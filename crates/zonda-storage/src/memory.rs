//! The bytes that all caches of the process may use together (`ZONDA_MEMORY`).
//!
//! Only caches that size themselves are held to it: one whose size was asked for by name has it. A
//! cache may always have a few pages, so that many open files slow each other down but still work.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most that is taken unless the user says so.
const DEFAULT_MOST: u64 = 1 << 30;
/// Which part of the machine's memory, or of the container's, is taken.
const DEFAULT_PART: u64 = 8;
/// Variables in which launchers of parallel programs say how many ranks share the node.
const LOCAL_RANKS: [&str; 4] = [
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "PALS_LOCAL_SIZE",
    "MV2_COMM_WORLD_LOCAL_SIZE",
];

/// Bytes in use by the caches that count.
static IN_USE: AtomicU64 = AtomicU64::new(0);

/// The most that a program takes for itself, see [`limit`].
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// How many bytes there are for all caches.
#[must_use]
pub fn budget() -> u64 {
    static BUDGET: OnceLock<u64> = OnceLock::new();
    let budget = *BUDGET.get_or_init(|| setting("ZONDA_MEMORY", default_budget));
    budget.min(LIMIT.load(Ordering::Relaxed))
}

/// Takes no more than so many bytes for all caches of this process, if the user did not say how
/// many there are: for a program that was told of how much memory to take in all.
pub fn limit(bytes: u64) {
    if std::env::var_os("ZONDA_MEMORY").is_none() {
        LIMIT.store(bytes, Ordering::Relaxed);
    }
}

/// A number of bytes from the environment, such as `512M`; `default` where there is none. What is
/// no number is reported once on standard error.
pub fn setting(variable: &str, default: impl FnOnce() -> u64) -> u64 {
    let Some(text) = std::env::var_os(variable) else { return default() };
    let text = text.to_string_lossy();
    crate::spec::parse_bytes(&text).unwrap_or_else(|| {
        let default = default();
        let why = "not a number of bytes, such as 512M";
        crate::spec::warn_once(variable, &text, &why, &default);
        default
    })
}

/// A number of bytes with or without a suffix `k`, `M` or `G`.
#[must_use]
pub fn bytes_of(text: &str) -> Option<u64> {
    crate::spec::parse_bytes(text)
}

/// Says on standard error, once for a variable, that what it holds cannot be read and what is used.
pub fn warn_of_variable(
    variable: &str,
    text: &str,
    why: &dyn std::fmt::Display,
    used: &dyn std::fmt::Display,
) {
    crate::spec::warn_once(variable, text, why, used);
}

fn default_budget() -> u64 {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let machine = || -> Option<u64> {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    };
    let limits = [
        machine(),
        number("/sys/fs/cgroup/memory.max"),
        number("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        left_of("Max address space", "VmSize:"),
        left_of("Max data size", "VmData:"),
    ];
    let memory = limits.into_iter().flatten().min().unwrap_or(DEFAULT_MOST);
    let ranks = LOCAL_RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse::<u64>().ok());
    (memory / DEFAULT_PART).min(DEFAULT_MOST) / ranks.unwrap_or(1).max(1)
}

/// What the process may still take of one of its limits (`ulimit -v`, `-d`), where it has that limit.
fn left_of(limit: &str, used: &str) -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix(limit))?;
    let most: u64 = line.split_whitespace().next()?.parse().ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(used))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(most.saturating_sub(kib.checked_mul(1024)?))
}

/// Bytes that are taken now.
#[must_use]
pub fn in_use() -> u64 {
    IN_USE.load(Ordering::Relaxed)
}

/// Takes `bytes` if the budget has them.
#[must_use = "what was not taken must not be given back"]
pub fn take(bytes: u64) -> bool {
    let taken = IN_USE.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    let fits = taken <= budget();
    if !fits {
        give_back(bytes);
    }
    fits
}

/// Takes `bytes` whether the budget has them or not.
pub fn take_anyway(bytes: u64) {
    IN_USE.fetch_add(bytes, Ordering::Relaxed);
}

/// Gives back what was taken.
pub fn give_back(bytes: u64) {
    IN_USE.fetch_sub(bytes, Ordering::Relaxed);
}

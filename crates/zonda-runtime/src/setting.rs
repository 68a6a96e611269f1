//! Settings from the environment: numbers, with units, and what is said of those that are none.

use crate::lock::{Global, Rank};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// What a variable of the environment says, without blanks around it. `None` also where it is empty:
/// launchers set variables to nothing where they mean the default.
#[must_use]
pub fn text(variable: &str) -> Option<String> {
    let text = std::env::var_os(variable)?;
    let text = text.to_string_lossy().trim().to_owned();
    Some(text).filter(|text| !text.is_empty())
}

/// A number of bytes from the environment, such as `512M`; `default` where there is none. What is
/// no number is reported once on standard error.
pub fn bytes(variable: &str, default: impl FnOnce() -> u64) -> u64 {
    let Some(text) = text(variable) else { return default() };
    bytes_of(&text).unwrap_or_else(|| {
        let default = default();
        warn_once(variable, &text, &"not a number of bytes, such as 512M", &default);
        default
    })
}

/// A number of bytes; `k`, `M` or `G` may follow.
#[must_use]
pub fn bytes_of(text: &str) -> Option<u64> {
    scaled(text.trim(), 1)
}

/// A number of units, or with a suffix `k`, `M` or `G` of bytes. One that is too large for 64 bits is
/// the largest there is.
#[must_use]
pub fn scaled(text: &str, unit: u64) -> Option<u64> {
    let (digits, unit) = match text.as_bytes() {
        [.., b'k' | b'K'] => (&text[..text.len() - 1], 1 << 10),
        [.., b'm' | b'M'] => (&text[..text.len() - 1], 1 << 20),
        [.., b'g' | b'G'] => (&text[..text.len() - 1], 1 << 30),
        _ => (text, unit),
    };
    let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    // Only a number beyond 64 bits fails here; every range check refuses this one.
    let number: u64 = all_digits.then(|| digits.parse().unwrap_or(u64::MAX))?;
    Some(number.saturating_mul(unit))
}

/// Seconds from the environment, such as `90` or `0.5`; `None` where there are none. What is no number of seconds is reported once on standard error, with
/// what is used in its place.
#[must_use]
pub fn seconds(variable: &str, used: &dyn fmt::Display) -> Option<Duration> {
    let text = text(variable)?;
    let time = seconds_of(&text);
    if time.is_none() {
        warn_once(variable, &text, &"not a number of seconds", used);
    }
    time
}

fn seconds_of(text: &str) -> Option<Duration> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite())?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Says on standard error, once for what a variable holds, that it cannot be used and what is used.
pub fn warn_once(variable: &str, text: &str, why: &dyn fmt::Display, used: &dyn fmt::Display) {
    say_once(format!("{variable}={text}: {why}; using the default, {used}"));
}

/// One line on standard error, once in a process.
pub fn say_once(line: String) {
    static SAID: Global<BTreeSet<String>> = Global::new(Rank::Said, BTreeSet::new(), BTreeSet::new);
    let mut said = SAID.lock();
    if !said.contains(&line) {
        use std::io::Write;
        // A program whose standard error is closed still runs.
        let _ = writeln!(std::io::stderr().lock(), "zonda: {line}");
        said.insert(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_seconds() {
        let of_ms = |ms| Some(Duration::from_millis(ms));
        let read = ["0", "90", "0.5", "-1", "soon", "1e300"].map(seconds_of);
        assert_eq!(read, [of_ms(0), of_ms(90_000), of_ms(500), None, None, None]);
    }

    #[test]
    fn numbers_of_bytes() {
        for (text, bytes) in [
            ("0", Some(0)),
            (" 12 ", Some(12)),
            ("4k", Some(4096)),
            ("3M", Some(3 << 20)),
            ("2G", Some(2 << 30)),
            ("99999999999999999999", Some(u64::MAX)),
            ("99999999999G", Some(u64::MAX)),
            ("", None),
            ("k", None),
            ("-1", None),
            ("1.5G", None),
            ("1T", None),
        ] {
            assert_eq!(bytes_of(text), bytes, "{text}");
        }
    }
}

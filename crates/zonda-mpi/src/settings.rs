//! What a team is told about waiting and counting.

use crate::tuning::{ROUND_BYTES, SAY_EVERY};
use std::time::Duration;
use zonda_runtime::setting;

/// How a team waits for ranks and counts bytes. The same on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long a step waits for other ranks; for ever if `None`.
    pub timeout: Option<Duration>,
    /// How often a line on standard error says that it waits.
    pub say_every: Duration,
    /// Bytes of one operation of MPI; a gibibyte if `None`, and at most.
    pub round_bytes: Option<usize>,
}

impl Settings {
    /// What the environment says: `ZONDA_PAR_TIMEOUT`, in seconds.
    #[must_use]
    pub fn from_environment() -> Settings {
        Settings {
            timeout: seconds(setting::text("ZONDA_PAR_TIMEOUT").as_deref()),
            say_every: SAY_EVERY,
            round_bytes: None,
        }
    }

    /// Bytes of one operation.
    pub(crate) fn most_bytes(&self) -> usize {
        self.round_bytes.unwrap_or(ROUND_BYTES).min(ROUND_BYTES)
    }
}

/// Seconds to wait; 0 is for ever, as is what is no number, of which a line is said.
fn seconds(text: Option<&str>) -> Option<Duration> {
    let text = text?;
    match text.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds >= 0.0) {
        Some(0.0) => None,
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => {
            setting::warn_once("ZONDA_PAR_TIMEOUT", text, &"not a number of seconds", &"no limit");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_of_a_text() {
        assert_eq!(seconds(None), None);
        assert_eq!(seconds(Some("0")), None);
        assert_eq!(seconds(Some("90")), Some(Duration::from_secs(90)));
        assert_eq!(seconds(Some("0.5")), Some(Duration::from_millis(500)));
        assert_eq!(seconds(Some("-1")), None);
        assert_eq!(seconds(Some("soon")), None);
        assert_eq!(seconds(Some("1e300")), None);
    }

    #[test]
    fn bytes_of_an_operation() {
        let mut settings = Settings::from_environment();
        assert_eq!(settings.most_bytes(), 1 << 30);
        settings.round_bytes = Some(7);
        assert_eq!(settings.most_bytes(), 7);
        settings.round_bytes = Some(1 << 40);
        assert_eq!(settings.most_bytes(), 1 << 30);
    }
}

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
            // 0 is for ever.
            timeout: setting::seconds("ZONDA_PAR_TIMEOUT", &"no limit")
                .filter(|time| !time.is_zero()),
            say_every: SAY_EVERY,
            round_bytes: None,
        }
    }

    /// Bytes of one operation.
    pub(crate) fn most_bytes(&self) -> usize {
        self.round_bytes.unwrap_or(ROUND_BYTES).min(ROUND_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

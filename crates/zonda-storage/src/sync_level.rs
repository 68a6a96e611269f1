//! How far `barrier` and `sync` go.

use std::fmt;
use std::str::FromStr;

/// What protects data that was synced (`ZONDA_SYNC`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SyncLevel {
    /// Program order only: survives the death of the process; costs nothing.
    #[default]
    None,
    /// Barriers and syncs also `fdatasync`: survives power loss.
    Data,
    /// Barriers and syncs also `fsync`, and the folder of a new file is synced as well.
    Full,
}

impl SyncLevel {
    /// The level named by `ZONDA_SYNC`, else [`SyncLevel::None`].
    ///
    /// An unknown word gives a warning on standard error, once per process and word.
    #[must_use]
    pub fn from_env() -> SyncLevel {
        let Some(text) = std::env::var_os("ZONDA_SYNC") else { return SyncLevel::None };
        let text = text.to_string_lossy();
        text.parse().unwrap_or_else(|why: UnknownSyncLevel| {
            zonda_runtime::setting::warn_once("ZONDA_SYNC", &text, &why, &"none");
            SyncLevel::None
        })
    }
}

/// A word that names no [`SyncLevel`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown sync level `{0}`; known: none, data, full")]
pub struct UnknownSyncLevel(pub String);

impl FromStr for SyncLevel {
    type Err = UnknownSyncLevel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "" | "none" => Ok(SyncLevel::None),
            "data" => Ok(SyncLevel::Data),
            "full" => Ok(SyncLevel::Full),
            other => Err(UnknownSyncLevel(other.to_owned())),
        }
    }
}

impl fmt::Display for SyncLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SyncLevel::None => "none",
            SyncLevel::Data => "data",
            SyncLevel::Full => "full",
        })
    }
}

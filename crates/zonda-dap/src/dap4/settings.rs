//! What the fragment of a URL, or brackets before it, say about DAP4.

use crate::protocol::Asked;

/// Bytes of an opaque where nobody says otherwise.
const OPAQUE_SIZE: usize = 16;
/// Largest that can be asked for.
const MOST_OPAQUE: usize = 1 << 24;

/// Settings, as the reference has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// `opaquesize`: bytes of opaque types.
    pub(super) opaque_size: usize,
    /// `translate=nc4`: what a server says about the netCDF-4 file it has is used.
    pub(super) translates: bool,
    /// Not `nofillmismatch`: a fill value of another type becomes one of the variable's.
    pub(super) fixes_fill: bool,
    /// `checksummode=ignore`: checksums are read over.
    pub(super) ignores_checksums: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            opaque_size: OPAQUE_SIZE,
            translates: false,
            fixes_fill: true,
            ignores_checksums: false,
        }
    }
}

impl Settings {
    pub(super) fn of(asked: &Asked) -> Settings {
        let has = |name: &str, word: &str| {
            let words = asked.setting(name).unwrap_or_default().split(['+', ',', ':', ';']);
            words.into_iter().any(|one| one == word)
        };
        let size = asked.setting("opaquesize").and_then(|text| text.trim().parse().ok());
        Settings {
            opaque_size: size
                .filter(|size| (1..=MOST_OPAQUE).contains(size))
                .unwrap_or(OPAQUE_SIZE),
            translates: has("translate", "nc4"),
            fixes_fill: asked.setting("nofillmismatch").is_none(),
            ignores_checksums: has("checksummode", "ignore"),
        }
    }
}

//! Names that begin with `http://`, `https://` or `s3://`, or, for OPeNDAP alone, `dods://` or `dap4://`: what opens them is registered here by the crate that can.
//!
//! This crate knows no network. So a program without it has none of its code, and whoever opens a path gets a URL by the same call.

use crate::{RemoteFailure, Storage, StorageError};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use zonda_runtime::Settled;

/// The protocols whose names are URLs.
pub const PROTOCOLS: [&str; 5] = ["http", "https", "s3", "dods", "dap4"];

/// Settings for one opening: keys as in the fragment of a URL, and values. They take precedence over those of the URL. Secrets may be
/// among them, so nothing shows the values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RemoteSettings(pub Vec<(String, String)>);

impl fmt::Debug for RemoteSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(key, _)| key)).finish()
    }
}

/// What opening a URL gives.
type Opened = Result<Arc<dyn Storage>, StorageError>;

/// What knows URLs.
#[derive(Debug, Clone, Copy)]
pub struct UrlOpener {
    /// Opens a URL for reading: the bytes of one object.
    pub open: fn(&Path, &RemoteSettings) -> Opened,
    /// The URL without user, password, tokens and signatures: what messages and traces say.
    pub shown: fn(&Path) -> Arc<str>,
}

static OPENER: Settled<UrlOpener> = Settled::new();

/// Says what opens URLs in this process. The first one stays.
pub fn register(opener: UrlOpener) {
    OPENER.settle(opener);
}

/// A URL as messages, traces and inquiries may show it: without user, password, tokens and signatures.
#[must_use]
pub fn shown(name: &Path) -> Arc<str> {
    // Without what knows URLs nothing of it is repeated.
    OPENER.get().map_or_else(|| "URL".into(), |opener| (opener.shown)(name))
}

/// Whether a name is a URL and not a path. Settings in brackets may stand before it: `[bytes]https://host/file.nc`.
#[must_use]
pub fn is_url(name: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let mut text = name.as_os_str().as_bytes();
    while let [b'[', rest @ ..] = text {
        let Some(end) = rest.iter().position(|&byte| byte == b']') else { return false };
        text = &rest[end + 1..];
    }
    let Some(end) = text.windows(3).position(|three| three == b"://") else { return false };
    PROTOCOLS.iter().any(|protocol| text[..end].eq_ignore_ascii_case(protocol.as_bytes()))
}

/// Opens a URL by what was registered.
pub(crate) fn open(
    name: &Path,
    settings: &RemoteSettings,
) -> Result<Arc<dyn Storage>, StorageError> {
    match OPENER.get() {
        Some(opener) => (opener.open)(name, settings),
        None => Err(StorageError::Remote {
            url: shown(name),
            range: None,
            kind: RemoteFailure::Unusable,
            status: None,
            what: "this library was built without remote files (feature `remote`)".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_settings_are_not_shown() {
        let settings = RemoteSettings(vec![("aws.key".into(), "secret".into())]);
        assert_eq!(format!("{settings:?}"), "{\"aws.key\"}");
    }

    #[test]
    fn only_names_with_a_known_protocol_are_urls() {
        for url in [
            "http://h/a.nc",
            "HTTPS://h",
            "s3://b/k#mode=bytes",
            "[bytes]https://h/x",
            "[a=1][b]s3://b/k",
            "dods://h/a",
            "DAP4://h/a",
        ] {
            assert!(is_url(Path::new(url)), "{url}");
        }
        for path in [
            "a.nc",
            "/http://x",
            "http:/x",
            "http:",
            "file:///a",
            "ftp://h",
            "[bytes",
            "[x]a.nc",
            "",
            "://",
        ] {
            assert!(!is_url(Path::new(path)), "{path}");
        }
    }
}

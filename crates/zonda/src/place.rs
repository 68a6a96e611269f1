//! Names of datasets: paths, and URLs of files on servers.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Whether a name is the URL of a file on a server (`http://`, `https://`, `s3://`, also behind settings in brackets), and not a path.
///
/// See [`Dataset::open`](crate::Dataset::open).
#[must_use]
pub fn is_url(name: &Path) -> bool {
    zonda_storage::url::is_url(name)
}

/// A name as messages and inquiries may show it: a URL without user, password, query and settings. A path is itself.
///
/// See [`Dataset::open`](crate::Dataset::open).
#[must_use]
pub fn shown_name(name: &Path) -> Cow<'_, Path> {
    if !is_url(name) {
        return Cow::Borrowed(name);
    }
    register();
    Cow::Owned(Path::new(&*zonda_storage::url::shown(name)).to_owned())
}

/// What a library in this folder does `https://` by: a file of its own, or nothing where that is linked.
///
/// # Errors
/// In words, that there is no such file, or what is wrong with it; that this was built without files on servers.
pub fn check_tls(folder: &Path) -> Result<Option<PathBuf>, String> {
    #[cfg(feature = "remote")]
    return zonda_remote::check_tls(folder);
    #[cfg(not(feature = "remote"))]
    Err(format!("{}: files on servers were left out when this was built", folder.display()))
}

/// Says what opens URLs.
pub(crate) fn register() {
    #[cfg(feature = "remote")]
    zonda_remote::register();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_secrets_and_paths_as_they_are() {
        let url =
            Path::new("[bytes]https://me:secret@h:8/a.nc?sig=secret#mode=bytes&http.x=secret");
        let shown = if cfg!(feature = "remote") { "https://h:8/a.nc" } else { "URL" };
        assert_eq!(shown_name(url), Path::new(shown));
        for path in ["a.nc", "/tmp/http:/x", "file:///a#mode=npy"] {
            assert_eq!(shown_name(Path::new(path)), Path::new(path));
        }
    }
}

//! Names of datasets of OPeNDAP.

use std::path::{Path, PathBuf};

use zonda_dap::Asked;

/// Which version of the protocol a name asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Dap2,
    Dap4,
}

/// Where responses come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DapPlace {
    /// A server: the URL without its query, as `zonda-remote` takes it apart.
    Server(String),
    /// Files: their name but for the extension.
    Saved(PathBuf),
}

/// A name that may be one of a dataset of OPeNDAP.
#[derive(Clone, Debug)]
pub(crate) struct DapName {
    pub(crate) place: DapPlace,
    /// `None` for a URL that says nothing: it is asked by DAP2 first, and may be a file.
    pub(crate) version: Option<Version>,
    pub(crate) asked: Asked,
    /// Whether there is a question mark.
    pub(crate) has_query: bool,
}

/// Words of `mode=` that mean something else than OPeNDAP.
const OTHERS: [&str; 6] = ["bytes", "s3", "zarr", "nczarr", "xarray", "noxarray"];

impl DapName {
    /// Takes a name apart. `None` for what is none: a path, the URL of a file that is asked for by its bytes.
    pub(crate) fn of(name: &Path) -> Option<DapName> {
        let text = name.to_str()?;
        let mut settings = Vec::new();
        let mut rest = text;
        while let Some(inner) = rest.strip_prefix('[') {
            let (inside, behind) = inner.split_once(']')?;
            add_settings(inside, &mut settings);
            rest = behind;
        }
        let brackets = text.strip_suffix(rest)?;
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        add_settings(fragment, &mut settings);
        let (rest, query) =
            rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let modes = modes(&settings);
        if modes.iter().any(|mode| OTHERS.contains(&mode.as_str())) {
            return None;
        }
        let by_mode = modes.iter().find_map(|mode| match mode.as_str() {
            "dap2" => Some(Version::Dap2),
            "dap4" => Some(Version::Dap4),
            _ => None,
        });
        let constraint = query.map(unescaped).unwrap_or_default();
        let asked = Asked { constraint, settings };
        let has_query = query.is_some();
        let is_file = rest.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"));
        if let Some(path) = rest.get(5..).filter(|_| is_file) {
            let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
            let is_saved = || !path.exists() && with_extension(&path, ".dds").is_file();
            let version = by_mode.or_else(|| is_saved().then_some(Version::Dap2))?;
            let place = DapPlace::Saved(without_extension(path));
            return Some(DapName { place, version: Some(version), asked, has_query });
        }
        let (protocol, behind) = rest.split_once("://")?;
        let (protocol, by_protocol) = match protocol.to_ascii_lowercase().as_str() {
            "http" => ("http", None),
            "https" => ("https", None),
            "dods" => ("http", Some(Version::Dap2)),
            "dap4" => ("http", Some(Version::Dap4)),
            _ => return None,
        };
        let place = DapPlace::Server(format!("{brackets}{protocol}://{behind}#{fragment}"));
        Some(DapName { place, version: by_protocol.or(by_mode), asked, has_query })
    }
}

/// The path of a saved response with another extension.
pub(crate) fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(extension);
    PathBuf::from(name)
}

/// A name of a saved response may be that of one of its files.
fn without_extension(path: PathBuf) -> PathBuf {
    const EXTENSIONS: [&str; 5] = [".dods", ".dds", ".das", ".dap", ".dmr"];
    let text = path.to_str().unwrap_or_default();
    let cut = EXTENSIONS.iter().find_map(|extension| text.strip_suffix(extension));
    match cut.filter(|_| path.is_file()) {
        Some(cut) => PathBuf::from(cut),
        None => path,
    }
}

fn add_settings(text: &str, settings: &mut Vec<(String, String)>) {
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        settings.push((key.to_ascii_lowercase(), value.to_owned()));
    }
}

/// The words of `mode=`, and those that stand alone.
fn modes(settings: &[(String, String)]) -> Vec<String> {
    let words = settings.iter().flat_map(|(key, value)| match (key.as_str(), value.as_str()) {
        ("mode", words) => words.split(',').map(str::to_ascii_lowercase).collect(),
        (word, "") => vec![word.to_owned()],
        _ => Vec::new(),
    });
    words.collect()
}

/// Text with `%XX` made what it stands for; what is no UTF-8 then stays as it is written.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let digit = |at: usize| char::from(*behind.get(at)?).to_digit(16);
        let byte = (first == b'%').then(|| Some(digit(0)? * 16 + digit(1)?)).flatten();
        match byte.and_then(|byte| u8::try_from(byte).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Option<DapName> {
        DapName::of(Path::new(name))
    }

    #[test]
    fn names_say_which_version_they_ask_for() {
        use Version::{Dap2, Dap4};
        for (name, version, place) in [
            ("http://h/a.nc", None, "http://h/a.nc#"),
            ("HTTPS://h/a?x[0:1]", None, "https://h/a#"),
            ("dods://h/a", Some(Dap2), "http://h/a#"),
            ("dap4://h/a#show=fetch", Some(Dap4), "http://h/a#show=fetch"),
            ("http://h/a#dap4", Some(Dap4), "http://h/a#dap4"),
            ("[dap4]http://h/a", Some(Dap4), "[dap4]http://h/a#"),
            ("[log][mode=dap2]http://h/a", Some(Dap2), "[log][mode=dap2]http://h/a#"),
            ("http://h/a#mode=dap4&x=1", Some(Dap4), "http://h/a#mode=dap4&x=1"),
        ] {
            let found = of(name).unwrap();
            assert_eq!(found.version, version, "{name}");
            assert_eq!(found.place, DapPlace::Server(place.into()), "{name}");
        }
        for name in
            ["a.nc", "s3://b/k", "http://h/a#mode=bytes", "[bytes]http://h/a", "file:///nowhere"]
        {
            assert!(of(name).is_none(), "{name}");
        }
    }

    #[test]
    fn constraints_come_without_escapes_and_settings_in_order() {
        let name = of("[Show=fetch]http://h/a?x%5B0:1%5d&y%3E3%#log&limit=5").unwrap();
        assert_eq!(name.asked.constraint, "x[0:1]&y>3%");
        let expected = [("show", "fetch"), ("log", ""), ("limit", "5")];
        let found: Vec<_> =
            name.asked.settings.iter().map(|(key, value)| (&**key, &**value)).collect();
        assert_eq!(found, expected);
        assert!(name.has_query && !of("http://h/a").unwrap().has_query);
    }

    #[test]
    fn saved_responses_are_known_by_their_dds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.01");
        let url = format!("file://{}", path.display());
        assert!(of(&url).is_none());
        std::fs::write(with_extension(&path, ".dds"), "").unwrap();
        let saved = of(&url).unwrap();
        assert_eq!(
            (saved.version, saved.place),
            (Some(Version::Dap2), DapPlace::Saved(path.clone()))
        );
        let named = of(&format!("[dap2]{url}.dds")).unwrap();
        assert_eq!(named.place, DapPlace::Saved(path.clone()));
        let dap4 = of(&format!("{url}#mode=dap4")).unwrap();
        assert_eq!(
            (dap4.version, dap4.place),
            (Some(Version::Dap4), DapPlace::Saved(path.clone()))
        );
        // A file of that name is a file.
        std::fs::write(&path, "").unwrap();
        assert!(of(&url).is_none());
    }
}

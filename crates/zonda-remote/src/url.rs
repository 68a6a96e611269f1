//! What a name of a remote file says: `[settings]protocol://user:password@host:port/path?query#fragment`.

use std::path::Path;
use std::sync::Arc;

use zonda_storage::RemoteFailure;

use crate::RemoteError;

/// The ways to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `http://`
    Http,
    /// `https://`
    Https,
    /// `s3://bucket/key`
    S3,
}

/// A URL, taken apart.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteUrl {
    /// How the server is spoken to.
    pub protocol: Protocol,
    /// User and password, decoded; secrets.
    pub user: Option<(String, String)>,
    /// Name or address of the server; the bucket of `s3://`.
    pub host: String,
    /// The port, where one is named.
    pub port: Option<u16>,
    /// From the first `/` on, as it is written.
    pub path: String,
    /// Behind the `?`, as it is written; may have signatures.
    pub query: Option<String>,
    /// Settings in brackets before the URL, then those of the fragment: keys in small letters, and values.
    pub settings: Vec<(String, String)>,
    /// Settings of who opens the URL, those of HTTP among them: they come before the URL's own, and are believed more.
    pub given: Vec<(String, String)>,
}

/// Shown without secrets.
impl std::fmt::Debug for RemoteUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

impl RemoteUrl {
    /// Takes a name apart.
    ///
    /// # Errors
    /// [`RemoteError`] for what is no URL of these protocols; its text has nothing of the name.
    pub fn parse(text: &str) -> Result<RemoteUrl, RemoteError> {
        let wrong = |what: &str| RemoteError::new(&"URL".into(), RemoteFailure::Unusable, what);
        let (mut rest, mut settings) = (text, Vec::new());
        while let Some(inner) = rest.strip_prefix('[') {
            let (inside, behind) =
                inner.split_once(']').ok_or_else(|| wrong("a bracket is not closed"))?;
            add_settings(inside, &mut settings);
            rest = behind;
        }
        let (protocol, rest) =
            rest.split_once("://").ok_or_else(|| wrong("no protocol is named"))?;
        let protocol = match protocol.to_ascii_lowercase().as_str() {
            // Those of OPeNDAP are HTTP.
            "http" | "dods" | "dap4" => Protocol::Http,
            "https" => Protocol::Https,
            "s3" => Protocol::S3,
            _ => return Err(wrong("the protocol is none of http, https and s3")),
        };
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        add_settings(fragment, &mut settings);
        let (rest, query) = rest
            .split_once('?')
            .map_or((rest, None), |(rest, query)| (rest, Some(query.to_owned())));
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, "/"),
        };
        let (user, server) = match authority.rsplit_once('@') {
            Some((user, server)) => (Some(user), server),
            None => (None, authority),
        };
        let user = user.map(|text| {
            let (name, password) = text.split_once(':').unwrap_or((text, ""));
            (decoded(name), decoded(password))
        });
        let (host, port) = match server
            .rsplit_once(':')
            .filter(|(host, _)| !host.starts_with('[') || host.ends_with(']'))
        {
            Some((host, port)) => {
                (host, Some(port.parse().map_err(|_| wrong("the port is no number below 65536"))?))
            }
            None => (server, None),
        };
        if host.is_empty() {
            return Err(wrong("no server is named"));
        }
        if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(wrong("it has blanks or control characters: write them as %20"));
        }
        Ok(RemoteUrl {
            protocol,
            user,
            host: host.to_owned(),
            port,
            path: path.to_owned(),
            query,
            settings,
            given: Vec::new(),
        })
    }

    /// As [`RemoteUrl::parse`], for a name that came as a path.
    ///
    /// # Errors
    /// As [`RemoteUrl::parse`]; names that are not UTF-8.
    pub fn parse_path(name: &Path) -> Result<RemoteUrl, RemoteError> {
        let text = name.to_str().ok_or_else(|| {
            RemoteError::new(&"URL".into(), RemoteFailure::Unusable, "it is not UTF-8")
        })?;
        RemoteUrl::parse(text)
    }

    /// The value of a setting of this URL; the last one counts.
    #[must_use]
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.given(key).or_else(|| last(&self.settings, key))
    }

    /// The value of a setting that who opens the URL gives.
    #[must_use]
    pub fn given(&self, key: &str) -> Option<&str> {
        last(&self.given, key)
    }

    /// The URL without user, password, query, settings. Of a path with an `@` what stands before that is left out: it may be a password with a `/`.
    #[must_use]
    pub fn shown(&self) -> String {
        let protocol = match self.protocol {
            Protocol::Http => "http",
            Protocol::Https => "https",
            Protocol::S3 => "s3",
        };
        let port = self.port.map_or(String::new(), |port| format!(":{port}"));
        match self.path.rsplit_once('@') {
            None => format!("{protocol}://{}{port}{}", self.host, self.path),
            Some((_, rest)) => format!("{protocol}://...@{rest}"),
        }
    }

    /// A name as it may be shown, whatever it is.
    #[must_use]
    pub fn shown_name(name: &Path) -> Arc<str> {
        RemoteUrl::parse_path(name).map_or_else(|_| "URL".into(), |url| url.shown().into())
    }
}

/// Adds `key=value&key=value`. Keys of HTTP are left out: they name files, logins and whom to trust, which a URL that somebody passes on is not to say.
fn last<'a>(settings: &'a [(String, String)], key: &str) -> Option<&'a str> {
    settings.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

fn add_settings(text: &str, settings: &mut Vec<(String, String)>) {
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let key = key.to_ascii_lowercase();
        if !key.starts_with("http.") {
            settings.push((key, value.to_owned()));
        }
    }
}

/// Text with `%XX` made what it stands for; what is no UTF-8 then stays as it is written.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let digits = behind
            .get(..2)
            .and_then(|two| std::str::from_utf8(two).ok())
            .filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
        match (first, digits.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_and_shown_without_secrets() {
        let url = RemoteUrl::parse("[bytes]https://me:p%40ss@host:8080/a%20b.nc?X-Amz-Signature=abc#mode=bytes&aws.profile=x").unwrap();
        assert_eq!(url.user, Some(("me".into(), "p@ss".into())));
        assert_eq!(
            (url.host.as_str(), url.port, url.path.as_str()),
            ("host", Some(8080), "/a%20b.nc")
        );
        assert_eq!(
            (url.setting("mode"), url.setting("bytes"), url.setting("aws.profile")),
            (Some("bytes"), Some(""), Some("x"))
        );
        assert_eq!(url.shown(), "https://host:8080/a%20b.nc");
        assert_eq!(format!("{url:?}"), url.shown());
        let odd = RemoteUrl::parse("http://me:12/secret@host/x").unwrap();
        assert_eq!(odd.shown(), "http://...@host/x");
        assert_eq!(RemoteUrl::parse("http://[::1]:80/x").unwrap().host, "[::1]");
        assert_eq!(RemoteUrl::parse("http://[::1]/x").unwrap().host, "[::1]");
    }

    #[test]
    fn what_is_no_url_says_nothing_of_itself() {
        for text in [
            "secret",
            "ftp://secret/x",
            "http://",
            "http://secret@/x",
            "http://h:secret/x",
            "[secret",
            "http://h/secret x",
        ] {
            let error = RemoteUrl::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}

//! Where a request goes.

use crate::url::{Protocol, RemoteUrl};

/// A server, as requests name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerName {
    /// By TLS.
    pub tls: bool,
    /// Name or address in small letters, that of IPv6 in brackets.
    pub host: String,
    /// The port, where it is not the usual one.
    pub port: Option<u16>,
}

impl ServerName {
    /// The server of a URL; for `s3://` nothing that can be reached.
    #[must_use]
    pub fn of(url: &RemoteUrl) -> ServerName {
        let tls = url.protocol != Protocol::Http;
        ServerName::new(tls, &url.host, url.port)
    }

    /// A server by its parts.
    #[must_use]
    pub fn new(tls: bool, host: &str, port: Option<u16>) -> ServerName {
        let port = port.filter(|port| *port != if tls { 443 } else { 80 });
        ServerName { tls, host: host.to_ascii_lowercase(), port }
    }

    /// The port, whether it is named or not.
    #[must_use]
    pub fn port_number(&self) -> u16 {
        self.port.unwrap_or(if self.tls { 443 } else { 80 })
    }

    /// Name and port as the header `Host` has them.
    #[must_use]
    pub fn authority(&self) -> String {
        self.port.map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }

    /// The name as certificates and resolvers have it: without the brackets of IPv6.
    #[must_use]
    pub fn bare_host(&self) -> &str {
        self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&self.host)
    }

    /// The beginning of its URLs.
    #[must_use]
    pub fn shown(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}

/// One resource of a server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// Where.
    pub(crate) server: ServerName,
    /// From the first `/` on, without the query, as it is sent.
    pub(crate) path: String,
    /// Behind the `?`, as it is sent; may be secret.
    pub(crate) query: Option<String>,
}

/// Without the query, which may be secret.
impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Target {
    /// Path and query of the request.
    #[must_use]
    pub(crate) fn path_and_query(&self) -> String {
        let query = self.query.as_ref().map_or(String::new(), |query| format!("?{query}"));
        format!("{}{query}", self.path)
    }

    /// As messages show it: without the query.
    #[must_use]
    pub(crate) fn shown(&self) -> String {
        format!("{}{}", self.server.shown(), self.path)
    }

    /// Where a `Location` leads from here. `None` for what is no place behind HTTP.
    #[must_use]
    pub(crate) fn follow(&self, location: &str) -> Option<Target> {
        let location = location.split('#').next().unwrap_or_default().trim();
        if location.is_empty()
            || location.len() > MOST_LOCATION
            || location.bytes().any(|byte| byte < b' ' || byte == 0x7f)
        {
            return None;
        }
        let scheme = if self.server.tls { "https:" } else { "http:" };
        let has_scheme = location.split(['/', '?']).next().is_some_and(|first| first.contains(':'));
        let absolute = match location.strip_prefix("//") {
            Some(_) => Some(format!("{scheme}{location}")),
            None => has_scheme.then(|| location.to_owned()),
        };
        if let Some(absolute) = absolute {
            let url =
                RemoteUrl::parse(&absolute).ok().filter(|url| url.protocol != Protocol::S3)?;
            return Some(Target {
                server: ServerName::of(&url),
                path: escaped(&url.path),
                query: url.query.as_deref().map(escaped),
            });
        }
        let (path, query) = location
            .split_once('?')
            .map_or((location, None), |(path, query)| (path, Some(escaped(query))));
        let path = match path {
            "" => self.path.clone(),
            path if path.starts_with('/') => escaped(path),
            path => format!(
                "{}{}",
                self.path.rsplit_once('/').map_or("/", |(folder, _)| &self.path[..=folder.len()]),
                escaped(path)
            ),
        };
        Some(Target { server: self.server.clone(), path, query })
    }
}

/// A longer `Location` is not followed.
const MOST_LOCATION: usize = 8 << 10;

/// A path or query as it may be sent: what no URL has becomes `%XX`, what is escaped stays.
#[must_use]
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte <= b' ' || byte >= 0x7f || b"\"<>\\^`{|}#".contains(&byte) {
            out.push_str(&format!("%{byte:02X}"));
        } else {
            out.push(char::from(byte));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        let url = RemoteUrl::parse(text).unwrap();
        Target { server: ServerName::of(&url), path: url.path, query: url.query }
    }

    #[test]
    fn locations_are_followed_as_urls_are() {
        let here = target("https://host:8443/a/b.nc?x=1");
        let to = |location: &str| {
            here.follow(location).map(|to| format!("{}{}", to.server.shown(), to.path_and_query()))
        };
        assert_eq!(to("/c?y#z").as_deref(), Some("https://host:8443/c?y"));
        assert_eq!(to("c.nc").as_deref(), Some("https://host:8443/a/c.nc"));
        assert_eq!(to("?y").as_deref(), Some("https://host:8443/a/b.nc?y"));
        assert_eq!(to("//other/c").as_deref(), Some("https://other/c"));
        assert_eq!(to("HTTP://Other:80/c").as_deref(), Some("http://other/c"));
        assert_eq!(to("http://o/ä").as_deref(), Some("http://o/%C3%A4"));
        for no in [
            "",
            "ftp://x/y",
            "file:///etc/passwd",
            "s3://b/k",
            "http://",
            "javascript:1",
            "/a\u{1}b",
        ] {
            assert_eq!(to(no), None, "{no}");
        }
    }
}

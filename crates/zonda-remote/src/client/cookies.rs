//! Cookies: sent to the server that set them, and to no other. Logins that lead through another server need them.

use std::path::Path;

use super::target::Target;

/// One server sets no more.
const MOST_COOKIES: usize = 64;
/// A longer one is not kept.
const MOST_COOKIE: usize = 4096;
/// A file of cookies is no longer.
const MOST_FILE: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cookie {
    host: String,
    name: String,
    value: String,
    path: String,
    is_secure: bool,
}

/// The cookies of some servers; secrets.
#[derive(Default)]
pub(crate) struct Cookies(Vec<Cookie>);

impl Cookies {
    /// Those of a file in the form of Netscape and curl (`HTTP.COOKIEJAR`); none where there is no such file.
    pub(crate) fn of_file(path: &Path) -> Cookies {
        let text = crate::settings::read_file(path, MOST_FILE).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut cookies = Cookies::default();
        for line in text
            .lines()
            .map(|line| line.strip_prefix("#HttpOnly_").unwrap_or(line))
            .filter(|line| !line.starts_with('#'))
        {
            let fields: Vec<&str> = line.split('\t').collect();
            if let [host, _, path, secure, _, name, value] = fields[..] {
                let host = host.trim_start_matches('.').to_ascii_lowercase();
                cookies.add(Cookie {
                    host,
                    name: name.into(),
                    value: value.into(),
                    path: path.into(),
                    is_secure: secure == "TRUE",
                });
            }
        }
        cookies
    }

    fn add(&mut self, cookie: Cookie) {
        self.0.retain(|kept| {
            (&kept.host, &kept.name, &kept.path) != (&cookie.host, &cookie.name, &cookie.path)
        });
        let is_text = [&cookie.name, &cookie.value]
            .iter()
            .all(|text| text.bytes().all(|byte| (b' '..0x7f).contains(&byte)));
        if is_text
            && cookie.name.len() + cookie.value.len() <= MOST_COOKIE
            && self.0.len() < MOST_COOKIES
        {
            self.0.push(cookie);
        }
    }

    /// Keeps what a server set by a header `Set-Cookie`.
    pub(crate) fn set(&mut self, from: &Target, header: &str) {
        let mut parts = header.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|first| first.split_once('=')) else {
            return;
        };
        let mut cookie = Cookie {
            host: from.server.host.clone(),
            name: name.trim().into(),
            value: value.trim().into(),
            path: "/".into(),
            is_secure: false,
        };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key.to_ascii_lowercase().as_str() {
                "secure" => cookie.is_secure = true,
                "path" if value.starts_with('/') => cookie.path = value.into(),
                // Removed by its server.
                "max-age" if value.trim().starts_with(['0', '-']) => cookie.value.clear(),
                _ => {}
            }
        }
        self.add(cookie);
    }

    /// What is sent with a request, if anything is.
    pub(crate) fn header(&self, to: &Target) -> Option<String> {
        let matches = |cookie: &&Cookie| {
            let behind = to.path.strip_prefix(cookie.path.as_str());
            let is_below = behind.is_some_and(|behind| {
                behind.is_empty() || behind.starts_with('/') || cookie.path.ends_with('/')
            });
            cookie.host == to.server.host
                && is_below
                && (to.server.tls || !cookie.is_secure)
                && !cookie.value.is_empty()
        };
        let pairs: Vec<String> = self
            .0
            .iter()
            .filter(matches)
            .map(|cookie| format!("{}={}", cookie.name, cookie.value))
            .collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RemoteUrl;
    use crate::client::target::ServerName;

    fn to(text: &str) -> Target {
        let url = RemoteUrl::parse(text).unwrap();
        Target { server: ServerName::of(&url), path: url.path, query: None }
    }

    #[test]
    fn cookies_go_where_they_came_from_and_nowhere_else() {
        let mut cookies = Cookies::default();
        cookies.set(&to("https://a/x"), "s=1; Secure; HttpOnly");
        cookies.set(&to("https://a/x"), "p=2; Path=/in");
        cookies.set(&to("https://a/x"), "bad=\u{1}");
        assert_eq!(cookies.header(&to("https://a/in/x")).as_deref(), Some("s=1; p=2"));
        assert_eq!(cookies.header(&to("https://a/inner")).as_deref(), Some("s=1"));
        assert_eq!(cookies.header(&to("http://a/")), None);
        assert_eq!(cookies.header(&to("https://b.a/")), None);
        cookies.set(&to("https://a/"), "s=; Max-Age=0");
        assert_eq!(cookies.header(&to("https://a/x")), None);
    }
}

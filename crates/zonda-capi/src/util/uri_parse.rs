//! URLs: `[key=value]protocol://user:password@host:port/path?query#fragment`.

/// Keys and values in order of appearance.
pub(super) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// The parts of a URL; absent ones are `None`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct UrlParts {
    pub(super) protocol: Vec<u8>,
    pub(super) user: Option<Vec<u8>>,
    pub(super) password: Option<Vec<u8>>,
    pub(super) host: Option<Vec<u8>>,
    pub(super) port: Option<Vec<u8>>,
    /// With its leading slash, where there is one.
    pub(super) path: Option<Vec<u8>>,
    pub(super) query: Pairs,
    /// From the fragment, and from bracketed prefixes.
    pub(super) fragment: Pairs,
}

/// Where one of `wanted` occurs without a backslash before it.
fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'\\' {
            at += 1;
        } else if wanted.contains(&text[at]) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Splits `text` at the first of `wanted`, which is dropped.
fn cut<'a>(text: &'a [u8], wanted: &[u8]) -> (&'a [u8], Option<&'a [u8]>) {
    match find(text, wanted) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// Adds the pairs of `key=value&key=value`; a key alone has an empty value.
fn pairs(text: &[u8], list: &mut Pairs) {
    let mut rest = text;
    while !rest.is_empty() {
        let (pair, next) = cut(rest, b"&");
        let at = pair.iter().position(|&byte| byte == b'=').unwrap_or(pair.len());
        list.push((pair[..at].to_vec(), pair.get(at + 1..).unwrap_or_default().to_vec()));
        rest = next.unwrap_or_default();
    }
}

/// Drops pairs that repeat an earlier one, whatever their case.
fn drop_repeated(list: &mut Pairs) {
    let mut at = 0;
    while at < list.len() {
        let (key, value) = &list[at];
        let known = list[..at]
            .iter()
            .any(|(k, v)| k.eq_ignore_ascii_case(key) && v.eq_ignore_ascii_case(value));
        if known {
            list.remove(at);
        } else {
            at += 1;
        }
    }
}

/// Replaces `%xx` by the byte it stands for.
fn decode(text: &[u8]) -> Vec<u8> {
    let hex = |byte: u8| char::from(byte).to_digit(16);
    let mut plain = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let digits = match text[at..] {
            [b'%', high, low, ..] => hex(high).zip(hex(low)),
            _ => None,
        };
        match digits {
            Some((high, low)) => {
                // Two hexadecimal digits make a byte.
                plain.push((high * 16 + low) as u8);
                at += 3;
            }
            None => {
                plain.push(text[at]);
                at += 1;
            }
        }
    }
    plain
}

/// Where the path of a `file:` URL starts; no host is accepted there.
fn file_path(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [drive, b':', ..] if drive.is_ascii_alphabetic() => Some(rest),
        [b'/', b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => Some(&rest[2..]),
        [b'/', b'/', b'/', next, ..] if *next != b'/' => Some(&rest[2..]),
        [b'/', b'/', next, _, ..] if *next != b'/' => Some(&rest[2..]),
        [b'/', next, ..] if *next != b'/' => Some(rest),
        _ => None,
    }
}

impl UrlParts {
    /// The parts of a URL; `None` if it is none.
    pub(super) fn of(url: &[u8]) -> Option<UrlParts> {
        if url.is_empty() {
            return None;
        }
        // Control characters go, and of two backslashes the first.
        let mut text = Vec::with_capacity(url.len());
        for (at, &byte) in url.iter().enumerate() {
            let doubled = byte == b'\\' && url.get(at + 1) == Some(&b'\\');
            if !doubled && byte.cast_signed() >= b' '.cast_signed() {
                text.push(byte);
            }
        }
        let mut parts = UrlParts::default();

        let mut core: &[u8] = &text;
        while let Some(tagged) = core.strip_prefix(b"[") {
            let end = find(tagged, b"]")?;
            pairs(&tagged[..end], &mut parts.fragment);
            core = &tagged[end + 1..];
        }
        let (before_fragment, fragment) = match find(core, b"?#") {
            Some(at) if core[at] == b'?' => {
                let (query, fragment) = cut(&core[at + 1..], b"#");
                pairs(query, &mut parts.query);
                (&core[..at], fragment)
            }
            Some(at) => (&core[..at], Some(&core[at + 1..])),
            None => (core, None),
        };
        pairs(fragment.unwrap_or_default(), &mut parts.fragment);
        drop_repeated(&mut parts.fragment);
        core = before_fragment;

        let colon = core.iter().position(|&byte| byte == b':')?;
        if colon == 0 {
            return None;
        }
        parts.protocol = core[..colon].to_vec();
        let rest = &core[colon + 1..];
        if parts.protocol == b"file" {
            parts.path = Some(file_path(rest)?.to_vec());
            return Some(parts);
        }
        let rest = rest.strip_prefix(b"//")?;
        let host_end = find(rest, b"/").unwrap_or(rest.len());
        parts.path = (host_end < rest.len()).then(|| rest[host_end..].to_vec());
        parts.set_host(&rest[..host_end])?;
        Some(parts)
    }

    /// Takes `user:password@host:port` apart.
    fn set_host(&mut self, text: &[u8]) -> Option<()> {
        if text.is_empty() {
            return Some(());
        }
        let split = |text: &'_ [u8], byte: u8| text.iter().position(|&b| b == byte);
        let mut host = text;
        if let Some(at) = split(text, b'@') {
            let login = &text[..at];
            let colon = split(login, b':')?;
            if colon == 0 || colon + 1 == login.len() {
                return None;
            }
            self.user = Some(decode(&login[..colon]));
            self.password = Some(decode(&login[colon + 1..]));
            host = &text[at + 1..];
        }
        if let Some(colon) = split(host, b':') {
            let port = &host[colon + 1..];
            let is_port = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
            if colon == 0 || port.is_empty() || !port.iter().all(is_port) {
                return None;
            }
            self.port = Some(port.to_vec());
            host = &host[..colon];
        }
        self.host = Some(host.to_vec());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::UrlParts;

    #[test]
    fn a_url_with_everything() {
        let url = b"[log][mode=dap]http://me:p%40ss@host:8080/a/b.nc?x[0],y&z=1#mode=DAP&cache";
        let parts = UrlParts::of(url).expect("a URL");
        let pair = |k: &str, v: &str| (k.as_bytes().to_vec(), v.as_bytes().to_vec());
        assert_eq!(parts.protocol, b"http");
        assert_eq!(parts.user.as_deref(), Some(&b"me"[..]));
        assert_eq!(parts.password.as_deref(), Some(&b"p@ss"[..]));
        assert_eq!(parts.host.as_deref(), Some(&b"host"[..]));
        assert_eq!(parts.port.as_deref(), Some(&b"8080"[..]));
        assert_eq!(parts.path.as_deref(), Some(&b"/a/b.nc"[..]));
        assert_eq!(parts.query, [pair("x[0],y", ""), pair("z", "1")]);
        assert_eq!(parts.fragment, [pair("log", ""), pair("mode", "dap"), pair("cache", "")]);
    }

    #[test]
    fn files_have_no_host() {
        for (url, path) in [
            ("file:///a/b", Some("/a/b")),
            ("file:/a", Some("/a")),
            ("file://a/b", Some("a/b")),
            ("file:d:/x", Some("d:/x")),
            ("file://d:/x", Some("d:/x")),
            ("file:a", None),
            ("file:////a", None),
        ] {
            let found = UrlParts::of(url.as_bytes()).and_then(|parts| parts.path);
            assert_eq!(found.as_deref(), path.map(str::as_bytes), "{url}");
        }
    }

    #[test]
    fn other_texts_are_no_urls() {
        for text in ["", "a/b", "/a:b", ":x", "http:/h", "http://@h", "http://u@h", "http://h:x"] {
            assert_eq!(UrlParts::of(text.as_bytes()), None, "{text}");
        }
    }
}

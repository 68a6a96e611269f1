//! The run-time configuration table: `key=value` lines of `.ncrc`, `.daprc` and `.dodsrc`.
//!
//! The files are looked for in the home folder and then in the working folder, later entries
//! replacing earlier ones; `NCRCENV_HOME` names another home folder, `NCRCENV_RC` one file instead of all,
//! `NCRCENV_IGNORE` turns the table off. A program that runs with more rights than its caller has reads none.
//!
//! Lines that start with `[protocol://host:port/path]` concern that server, and what is below that path there.

use std::path::PathBuf;
use std::sync::Arc;

use zonda_runtime::Settled;
use zonda_runtime::lock::{Global, MutexGuard, Rank};

use crate::neighbour::trusts_environment;

const FILES: [&str; 3] = [".ncrc", ".daprc", ".dodsrc"];

/// Which URLs a line is for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// In small letters; `None` where the line names none.
    protocol: Option<String>,
    /// In small letters; IPv6 in brackets.
    host: String,
    port: Option<u16>,
    /// Without the `/` at its end.
    path: String,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    place: Option<Place>,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// A server and a path there, of which one asks what is set for it.
#[derive(Debug, Clone, Copy)]
pub struct RcUrl<'a> {
    /// `http` or `https`.
    pub protocol: &'a str,
    /// Name or address in small letters; IPv6 in brackets.
    pub host: &'a str,
    /// The port, whether the URL names it or not.
    pub port: u16,
    /// From the first `/` on.
    pub path: &'a str,
}

/// Entries in order of definition; each key once for the same place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RcTable(Vec<Entry>);

impl Place {
    /// What stands in the brackets; a host alone is one, too.
    fn parse(text: &str) -> Option<Place> {
        let text = text.trim();
        let (protocol, rest) = text
            .split_once("://")
            .map_or((None, text), |(protocol, rest)| (Some(protocol.to_ascii_lowercase()), rest));
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let server = authority.rsplit_once('@').map_or(authority, |(_, server)| server);
        let (host, port) = match server
            .rsplit_once(':')
            .filter(|(host, _)| !host.starts_with('[') || host.ends_with(']'))
        {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (server, None),
        };
        (!host.is_empty()).then(|| Place {
            protocol,
            host: host.to_ascii_lowercase(),
            port,
            path: path.trim_end_matches('/').to_owned(),
        })
    }

    fn covers(&self, url: RcUrl<'_>) -> bool {
        let usual = if url.protocol == "https" { 443 } else { 80 };
        // Without protocol and port a line is for the server whatever its port; with the protocol for that one's usual port.
        let is_port = match (self.port, &self.protocol) {
            (Some(port), _) => port == url.port,
            (None, Some(_)) => url.port == usual,
            (None, None) => true,
        };
        let is_below = url
            .path
            .strip_prefix(self.path.as_str())
            .is_some_and(|behind| behind.is_empty() || behind.starts_with('/'));
        self.protocol.as_deref().is_none_or(|protocol| protocol == url.protocol)
            && self.host == url.host
            && is_port
            && is_below
    }
}

impl RcTable {
    /// The value of a key for all servers.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.0
            .iter()
            .find(|entry| entry.place.is_none() && entry.key == key)
            .map(|entry| entry.value.as_slice())
    }

    /// The value of a key in lines for one URL only: of those that cover it, the one with the longest path.
    #[must_use]
    pub fn get_for(&self, key: &str, url: RcUrl<'_>) -> Option<&[u8]> {
        let covering = self.0.iter().filter(|entry| entry.key.eq_ignore_ascii_case(key.as_bytes()));
        let covering = covering.filter_map(|entry| {
            entry.place.as_ref().filter(|place| place.covers(url)).map(|place| (place, entry))
        });
        covering.max_by_key(|(place, _)| place.path.len()).map(|(_, entry)| entry.value.as_slice())
    }

    /// The value of a key for all servers, however it is spelled in large and small letters.
    #[must_use]
    pub fn get_of_any_case(&self, key: &str) -> Option<&[u8]> {
        let mut entries = self.0.iter().filter(|entry| entry.place.is_none());
        entries
            .find(|entry| entry.key.eq_ignore_ascii_case(key.as_bytes()))
            .map(|entry| entry.value.as_slice())
    }

    /// Adds the entries of one file.
    fn add(&mut self, text: &[u8]) {
        for line in text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii) {
            let (place, line) = match line {
                [] | [b'#', ..] => continue,
                [b'[', inside @ ..] => {
                    // The last bracket: addresses of IPv6 have some, too.
                    let equals =
                        inside.iter().position(|&byte| byte == b'=').unwrap_or(inside.len());
                    let Some(end) = inside[..equals].iter().rposition(|&byte| byte == b']') else {
                        continue;
                    };
                    let Some(place) =
                        std::str::from_utf8(&inside[..end]).ok().and_then(Place::parse)
                    else {
                        continue;
                    };
                    (Some(place), inside[end + 1..].trim_ascii())
                }
                line => (None, line),
            };
            let at = line.iter().position(|&byte| byte == b'=').unwrap_or(line.len());
            self.set_for(place, &line[..at], line.get(at + 1..).unwrap_or_default());
        }
    }

    /// Sets the value of a key; both without the blanks around them.
    fn set_for(&mut self, place: Option<Place>, key: &[u8], value: &[u8]) {
        let (key, value) = (key.trim_ascii(), value.trim_ascii().to_vec());
        match self.0.iter_mut().find(|entry| entry.key == key && entry.place == place) {
            Some(entry) => entry.value = value,
            None => self.0.push(Entry { place, key: key.to_vec(), value }),
        }
    }

    /// The entries of a text in the form of the files: for tests.
    #[must_use]
    pub fn of_text(text: &str) -> RcTable {
        let mut table = RcTable::default();
        table.add(text.as_bytes());
        table
    }
}

/// Whether the files were read, and the entries; `None` if the table is turned off. The first call reads the files.
fn table() -> Option<MutexGuard<'static, (bool, RcTable)>> {
    static IS_OFF: Settled<bool> = Settled::new();
    static TABLE: Global<(bool, RcTable)> = Global::new(Rank::Settings, UNREAD, || UNREAD);
    const UNREAD: (bool, RcTable) = (false, RcTable(Vec::new()));
    if *IS_OFF.get_or_make(|| std::env::var_os("NCRCENV_IGNORE").is_some()) {
        return None;
    }
    let mut table = TABLE.lock();
    let (is_read, entries) = &mut *table;
    if !std::mem::replace(is_read, true) {
        for path in paths() {
            // Files that are not there, or cannot be read, configure nothing.
            if let Ok(text) = std::fs::read(path) {
                entries.add(&text);
            }
        }
    }
    Some(table)
}

fn paths() -> Vec<PathBuf> {
    if !trusts_environment() {
        return Vec::new();
    }
    if let Some(one) = std::env::var_os("NCRCENV_RC") {
        return vec![one.into()];
    }
    let dirs = home().into_iter().chain([PathBuf::from(".")]);
    dirs.flat_map(|dir| FILES.map(|name| dir.join(name))).collect()
}

/// The folder with the user's own settings.
#[must_use]
pub fn home() -> Option<PathBuf> {
    let variable = |name| crate::neighbour::from_env(name).filter(|value| !value.is_empty());
    variable("NCRCENV_HOME").or_else(|| variable("HOME")).map(PathBuf::from)
}

/// The value of a key for all servers, if there is one.
#[must_use]
pub fn get(key: &[u8]) -> Option<Vec<u8>> {
    table()?.1.get(key).map(<[u8]>::to_vec)
}

/// Sets the value of a key for all servers; both without the blanks around them. Nothing happens while the table is turned off.
pub fn set(key: &[u8], value: &[u8]) {
    if let Some(mut table) = table() {
        table.1.set_for(None, key, value);
    }
}

/// All entries as of now; none while the table is turned off.
#[must_use]
pub fn snapshot() -> Arc<RcTable> {
    Arc::new(table().map(|table| table.1.clone()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: RcUrl<'static> =
        RcUrl { protocol: "https", host: "h.org", port: 443, path: "/data/a.nc" };

    #[test]
    fn later_lines_replace_earlier_ones_and_those_for_urls_are_apart() {
        let table = RcTable::of_text("# comment\n A = 1 \r\nB\n\n[http://x]A=2\nA= 3=4\n");
        assert_eq!(
            (table.get(b"A"), table.get(b"B"), table.get(b"a")),
            (Some(&b"3=4"[..]), Some(&b""[..]), None)
        );
        assert_eq!(table.get_of_any_case("a"), Some(&b"3=4"[..]));
        assert_eq!(table.get_for("A", URL), None);
    }

    #[test]
    fn lines_for_servers_concern_what_is_below_their_path() {
        let table = RcTable::of_text(
            "[https://H.org]K=host\n[https://h.org/data/]K=data\n[https://h.org:8443]K=port\n[http://h.org]K=plain\n[https://u:p@h.org/dat]K=part\n[h.org]L=any\n[unclosed K=1\n[http://[::1]:81/x]K=six\n",
        );
        assert_eq!(table.get_for("K", URL), Some(&b"data"[..]));
        assert_eq!(table.get_for("k", RcUrl { path: "/else", ..URL }), Some(&b"host"[..]));
        assert_eq!(table.get_for("K", RcUrl { port: 8443, ..URL }), Some(&b"port"[..]));
        assert_eq!(
            table.get_for("K", RcUrl { protocol: "http", port: 80, ..URL }),
            Some(&b"plain"[..])
        );
        assert_eq!(table.get_for("L", RcUrl { port: 99, ..URL }), Some(&b"any"[..]));
        assert_eq!(
            table.get_for("K", RcUrl { protocol: "http", host: "[::1]", port: 81, path: "/x" }),
            Some(&b"six"[..])
        );
        assert_eq!(table.get_for("K", RcUrl { host: "other", ..URL }), None);
        assert_eq!(table.get(b"K"), None);
    }
}

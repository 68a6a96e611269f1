//! Which proxy requests to a server go through.

use zonda_storage::neighbour::from_env;

use crate::RemoteUrl;
use crate::client::target::ServerName;
use crate::url::Protocol;

/// A proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Where it is.
    pub server: ServerName,
    /// User and password; secrets.
    pub user: Option<(String, String)>,
}

/// Without secrets.
impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({})", self.server.shown())
    }
}

impl Proxy {
    /// A proxy as settings and variables name it: `http://user:password@host:port`, also without `http://`.
    ///
    /// # Errors
    /// What is wrong, without the text.
    pub fn parse(text: &str) -> Result<Proxy, String> {
        let text = text.trim();
        let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = RemoteUrl::parse(&text)
            .map_err(|_| "the proxy that is named is no http:// or https:// URL".to_owned())?;
        if url.protocol == Protocol::S3 {
            return Err("the proxy that is named is no http:// or https:// URL".into());
        }
        // As curl does it: 1080 where no port is named, and what every proxy listens on for TLS.
        let tls = url.protocol == Protocol::Https;
        let port = url.port.unwrap_or(if tls { 443 } else { 1080 });
        Ok(Proxy { server: ServerName::new(tls, &url.host, Some(port)), user: url.user })
    }
}

/// The proxy for a server: what a setting says, else variables (`http_proxy` in small letters only, since web servers make the other of a header).
pub(crate) fn choose(setting: Option<&str>, server: &ServerName) -> Result<Option<Proxy>, String> {
    choose_by(setting, server, |name| {
        from_env(name)
            .map(|value| value.to_string_lossy().trim().to_owned())
            .filter(|value| !value.is_empty())
    })
}

fn choose_by(
    setting: Option<&str>,
    server: &ServerName,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Proxy>, String> {
    if let Some(setting) = setting {
        // A setting of nothing turns proxies off.
        return if setting.is_empty() { Ok(None) } else { Proxy::parse(setting).map(Some) };
    }
    let names: &[&str] = if server.tls {
        &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    } else {
        &["http_proxy", "all_proxy", "ALL_PROXY"]
    };
    let Some((name, text)) = names.iter().find_map(|name| Some((name, variable(name)?))) else {
        return Ok(None);
    };
    let excluded = variable("no_proxy").or_else(|| variable("NO_PROXY")).unwrap_or_default();
    if is_excluded(&excluded, server) {
        return Ok(None);
    }
    Proxy::parse(&text).map(Some).map_err(|what| format!("{name}: {what}"))
}

/// Whether a list such as `localhost,.org,10.0.0.0/8` has the server.
fn is_excluded(list: &str, server: &ServerName) -> bool {
    let host = server.bare_host();
    list.split([',', ' '])
        .map(|entry| entry.trim().to_ascii_lowercase())
        .filter(|entry| !entry.is_empty())
        .any(|entry| {
            if entry == "*" {
                return true;
            }
            if let (Some((network, bits)), Ok(address)) =
                (entry.split_once('/'), host.parse::<std::net::IpAddr>())
            {
                return is_within(network, bits, address);
            }
            let entry = match entry.rsplit_once(':').filter(|(name, _)| !name.contains(':')) {
                Some((name, port)) if port.parse() == Ok(server.port_number()) => name,
                Some((_, port)) if port.parse::<u16>().is_ok() => return false,
                _ => &entry,
            };
            let name = entry.trim_start_matches('.').trim_matches(['[', ']']);
            host == name || host.strip_suffix(name).is_some_and(|front| front.ends_with('.'))
        })
}

fn is_within(network: &str, bits: &str, address: std::net::IpAddr) -> bool {
    let bytes = |address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(v4) => v4.octets().to_vec(),
        std::net::IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let (Ok(network), Ok(bits)) = (network.parse().map(bytes), bits.parse::<usize>()) else {
        return false;
    };
    let address = bytes(address);
    let bit = |bytes: &[u8], i: usize| bytes[i / 8] >> (7 - i % 8) & 1;
    network.len() == address.len()
        && bits <= 8 * network.len()
        && (0..bits).all(|i| bit(&network, i) == bit(&address, i))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_choose_a_proxy_and_exclude_servers() {
        let http = ServerName::new(false, "a.org", None);
        let https = ServerName::new(true, "a.org", None);
        let by = |variables: &'static [(&'static str, &'static str)]| {
            move |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            }
        };
        let of = |server: &ServerName, variables| {
            choose_by(None, server, by(variables))
                .unwrap()
                .map(|proxy| (proxy.server.shown(), proxy.user))
        };
        let me = Some(("me".to_owned(), "p@ss".to_owned()));
        assert_eq!(
            of(&http, &[("http_proxy", "http://me:p%40ss@p:3128/")]),
            Some(("http://p:3128".into(), me))
        );
        assert_eq!(of(&http, &[("HTTP_PROXY", "p:3128")]), None);
        assert_eq!(of(&https, &[("HTTPS_PROXY", "p")]), Some(("http://p:1080".into(), None)));
        assert_eq!(of(&https, &[("all_proxy", "https://p")]), Some(("https://p".into(), None)));
        assert_eq!(of(&https, &[("https_proxy", "p:1"), ("no_proxy", "x,.org")]), None);
        assert!(
            choose_by(None, &https, by(&[("https_proxy", "socks5://secret")]))
                .is_err_and(|what| !what.contains("secret"))
        );
        assert_eq!(choose_by(Some(""), &https, by(&[("https_proxy", "p:1")])).unwrap(), None);
    }

    #[test]
    fn lists_of_servers_without_proxy() {
        let server = |host: &str| ServerName::new(false, host, Some(8080));
        for (list, host, is) in [
            ("*", "a", true),
            ("a", "a", true),
            ("a", "b.a", true),
            (".a", "a", true),
            ("a", "ba", false),
            ("a:8080", "a", true),
            ("a:81", "a", false),
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("10.0.0.0/99", "10.1.2.3", false),
            ("::1", "[::1]", true),
            ("", "a", false),
            ("x, localhost", "localhost", true),
        ] {
            assert_eq!(is_excluded(list, &server(host)), is, "{list} {host}");
        }
    }
}

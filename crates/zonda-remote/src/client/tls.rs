//! TLS as the settings want it: whose certificates are trusted, and what is shown of ourselves. What it is done with is linked, or in a library beside.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zonda_runtime::setting::say_once;
use zonda_storage::neighbour::from_env;
use zonda_tls::{Client, Engine, Fault, Identity, Kind, Source};

use crate::settings::Settings;

/// Where systems keep the certificates that they trust, in one file: Debian, Fedora, SUSE, Alpine and BSD, older Fedora.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];
/// A file of certificates or keys is no longer.
const MOST_PEM: u64 = 16 << 20;
/// Files of a folder of certificates that are looked at.
const MOST_FILES: usize = 4096;

/// What does TLS in this program.
#[cfg(feature = "tls-inside")]
#[allow(clippy::unnecessary_wraps)] // a library beside may be missing
fn engine() -> Result<Engine, String> {
    Ok(zonda_tls_engine::engine())
}

/// What does TLS in this program.
#[cfg(not(feature = "tls-inside"))]
fn engine() -> Result<Engine, String> {
    zonda_tls::beside::engine().map_err(|error| error.to_string())
}

/// The library in a folder that does TLS, or nothing where that is linked.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn check(folder: &Path) -> Result<Option<PathBuf>, String> {
    if cfg!(feature = "tls-inside") {
        return Ok(None);
    }
    zonda_tls::beside::check(folder).map(Some).map_err(|error| error.to_string())
}

/// What connections have in common to a server, or to a proxy that has TLS.
///
/// # Errors
/// What is wrong with a setting, in words; that there is nothing that does TLS.
pub(crate) fn client(settings: &Settings, is_proxy: bool) -> Result<Arc<Client>, String> {
    let engine = engine()?;
    if !settings.verify_peer || !settings.verify_host {
        let names =
            if settings.verify_peer { "names of certificates are" } else { "certificates are" };
        say_once(format!(
            "{}: {names} not verified, as a setting says: whoever is between can read and change everything",
            settings.shown_server
        ));
    }
    let roots = if settings.verify_peer { roots(settings)? } else { Vec::new() };
    let sources: Vec<Source<'_>> = roots.iter().map(Roots::source).collect();
    let certificate = settings.certificate.as_deref().filter(|_| !is_proxy);
    if certificate.is_some() && settings.has_key_password {
        return Err("HTTP.SSL.KEYPASSWORD: keys with a password are not supported: write the key without one, for yourself alone".into());
    }
    let key = certificate.map(|certificate| settings.key.as_deref().unwrap_or(certificate));
    let (certificate_pem, key_pem) = (certificate.map(pem).transpose()?, key.map(pem).transpose()?);
    let identity = match (&certificate_pem, &key_pem) {
        (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
        _ => None,
    };
    let wanted = zonda_tls::Settings {
        verify_peer: settings.verify_peer,
        verify_host: settings.verify_host,
        sources: &sources,
        identity,
    };
    let shown =
        |path: Option<&Path>| path.map(|path| path.display().to_string()).unwrap_or_default();
    let files = || {
        let roots = roots.iter().map(|roots| Some(roots.file.as_path()));
        roots.chain([certificate, key]).map(shown)
    };
    let in_words = |fault: Fault| {
        match fault.kind {
        Kind::Setting => {
            let file = files().nth(fault.place).unwrap_or_default();
            format!("{file}: {}", fault.text)
        }
        Kind::NoRoots => "no certificate is trusted on this machine: install ca-certificates, or name a file with HTTP.SSL.CAINFO".into(),
        Kind::OtherKey => {
            format!("{}: the key is not that of the certificate {}", shown(key), shown(certificate))
        }
        _ => fault.text,
    }
    };
    Client::new(engine, &wanted).map(Arc::new).map_err(in_words)
}

fn pem(path: &Path) -> Result<Vec<u8>, String> {
    crate::settings::read_file(path, MOST_PEM)
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Certificates of one file.
struct Roots {
    file: PathBuf,
    pem: Vec<u8>,
    may_be_empty: bool,
    may_be_shown: bool,
}

impl Roots {
    fn source(&self) -> Source<'_> {
        let Roots { pem, may_be_empty, may_be_shown, .. } = self;
        Source { pem, may_be_empty: *may_be_empty, may_be_shown: *may_be_shown }
    }
}

/// Whom we trust: those that settings or variables name, else the system's.
fn roots(settings: &Settings) -> Result<Vec<Roots>, String> {
    let named = |variables: &[&str]| {
        variables
            .iter()
            .find_map(|name| from_env(name).filter(|value| !value.is_empty()))
            .map(PathBuf::from)
    };
    let is_told = settings.ca_info.is_some() || settings.ca_path.is_some();
    let told = |setting: &Option<PathBuf>, variables: &[&str]| {
        if is_told { setting.clone() } else { named(variables) }
    };
    let (file, folder) = (
        told(&settings.ca_info, &["CURL_CA_BUNDLE", "SSL_CERT_FILE"]),
        told(&settings.ca_path, &["SSL_CERT_DIR"]),
    );
    let may_be_shown = settings.ca_info.is_some();
    let mut found = Vec::new();
    if let Some(file) = &file {
        let pem = pem(file)?;
        found.push(Roots { file: file.clone(), pem, may_be_empty: false, may_be_shown });
    }
    // Other files than those of `HTTP.SSL.CAINFO`.
    let other = |file: PathBuf, pem| Roots { file, pem, may_be_empty: true, may_be_shown: false };
    if let Some(folder) = &folder {
        let entries =
            std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for path in entries
            .take(MOST_FILES)
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .filter(|path| path.is_file())
        {
            // Such folders have other files, too.
            found.extend(
                pem(&path).ok().filter(|pem| has_certificate(pem)).map(|pem| other(path, pem)),
            );
        }
    }
    if file.is_none() && folder.is_none() {
        let bundle = BUNDLES.iter().map(Path::new).find_map(|path| {
            pem(path).ok().filter(|pem| has_certificate(pem)).map(|pem| other(path.to_owned(), pem))
        });
        found.extend(bundle);
    }
    Ok(found)
}

fn has_certificate(pem: &[u8]) -> bool {
    const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
    pem.windows(BEGIN.len()).any(|bytes| bytes == BEGIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerName as Server;

    /// A certificate that a server called localhost made for itself.
    const ONE: &str = "-----BEGIN CERTIFICATE-----\n\
         MIIBlTCCATugAwIBAgIUb0rDWn8GPAJiV0R81eIKVyUDYD8wCgYIKoZIzj0EAwIw\n\
         FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyOTA1NTExMFoYDzIxMjYxMTA1\n\
         MDU1MTEwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO\n\
         PQMBBwNCAATuNOyIEjxwaAsdFFczIhCSztIIGDN9L/KhxieXY1E3Ugl9Cg72Ok2p\n\
         Vddob+3T4J2elvI66YfskB7g8WHmeUGXo2kwZzAdBgNVHQ4EFgQUCGIureVijIiU\n\
         91Uz4TGJg72Y3RowHwYDVR0jBBgwFoAUCGIureVijIiU91Uz4TGJg72Y3RowDwYD\n\
         VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID\n\
         SAAwRQIhAJeMGDl+MX+0LO1UiteRQ74BP9oFWeu8g0U+27of3YC6AiA2sJdP8ET6\n\
         QTbOSngXU3rlY/uGCxFTa+AuIrxUy2/GLA==\n\
         -----END CERTIFICATE-----";

    #[test]
    fn settings_that_cannot_be_used_are_told_by_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("none.pem");
        let plain = Settings::plain(&Server::new(true, "localhost", None));
        let settings = Settings { ca_info: Some(file.clone()), ..plain.clone() };
        assert!(client(&settings, false).is_err_and(|what| what.contains("none.pem")));
        std::fs::write(&file, "no certificate").unwrap();
        assert!(client(&settings, false).is_err_and(|what| what.contains("no certificate")));
        std::fs::write(&file, ONE).unwrap();
        let settings = Settings { certificate: Some(file), ..settings };
        assert!(client(&settings, false).is_err_and(|what| what.contains("no private key")));
        let settings = Settings { has_key_password: true, ..settings };
        assert!(client(&settings, false).is_err_and(|what| what.contains("KEYPASSWORD")));
    }
}

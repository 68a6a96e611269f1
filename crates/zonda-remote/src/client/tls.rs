//! TLS as the settings want it: whose certificates are trusted, and what is shown of ourselves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use zonda_runtime::setting::say_once;
use zonda_storage::neighbour::from_env;

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

/// The configuration for a server, or for a proxy that has TLS.
///
/// # Errors
/// What is wrong with a setting, in words.
pub(crate) fn config(settings: &Settings, is_proxy: bool) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    if !settings.verify_peer || !settings.verify_host {
        let names =
            if settings.verify_peer { "names of certificates are" } else { "certificates are" };
        say_once(format!(
            "{}: {names} not verified, as a setting says: whoever is between can read and change everything",
            settings.shown_server
        ));
    }
    let builder = if settings.verify_peer && settings.verify_host && settings.ca_info.is_none() {
        builder.with_root_certificates(roots(settings)?)
    } else {
        let verifier = Arc::new(Verifier::new(settings, &provider)?);
        builder.dangerous().with_custom_certificate_verifier(verifier)
    };
    match &settings.certificate {
        Some(certificate) if !is_proxy => {
            if settings.has_key_password {
                return Err("HTTP.SSL.KEYPASSWORD: keys with a password are not supported: write the key without one, for yourself alone".into());
            }
            let chain: Vec<CertificateDer<'static>> = certificates(certificate)?;
            let key_file = settings.key.as_ref().unwrap_or(certificate);
            let key = PrivateKeyDer::from_pem_slice(&pem(key_file)?)
                .map_err(|error| format!("{}: no private key: {error:?}", key_file.display()))?;
            let key = provider
                .key_provider
                .load_private_key(key)
                .map_err(|error| format!("{}: {error}", key_file.display()))?;
            let certified = CertifiedKey::new(chain, key);
            // Whether the certificate is good, the server says: it may take ones that we would not (those of version 1).
            if matches!(certified.keys_match(), Err(Error::InconsistentKeys(_))) {
                return Err(format!(
                    "{}: the key is not that of the certificate {}",
                    key_file.display(),
                    certificate.display()
                ));
            }
            Ok(Arc::new(
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified))),
            ))
        }
        _ => Ok(Arc::new(builder.with_no_client_auth())),
    }
}

fn pem(path: &Path) -> Result<Vec<u8>, String> {
    crate::settings::read_file(path, MOST_PEM)
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Certificates of a file; at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(&pem(path)?)
        .filter_map(Result::ok)
        .map(CertificateDer::into_owned)
        .collect();
    if found.is_empty() {
        Err(format!("{}: there is no certificate in it", path.display()))
    } else {
        Ok(found)
    }
}

/// Whom we trust: those that settings or variables name, else the system's.
fn roots(settings: &Settings) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
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
    if let Some(file) = &file {
        store.add_parsable_certificates(certificates(file)?);
    }
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
            store.add_parsable_certificates(certificates(&path).unwrap_or_default());
        }
    }
    if file.is_none() && folder.is_none() {
        let bundle = BUNDLES.iter().find_map(|path| certificates(Path::new(path)).ok());
        store.add_parsable_certificates(bundle.unwrap_or_default());
    }
    if store.is_empty() {
        return Err("no certificate is trusted on this machine: install ca-certificates, or name a file with HTTP.SSL.CAINFO".into());
    }
    Ok(store)
}

/// Verifies as settings say: no names, or nothing, where these turn that off; and what a server shows of itself, where a setting names it.
#[derive(Debug)]
struct Verifier {
    /// `None`: everything is good.
    chain: Option<Arc<WebPkiServerVerifier>>,
    verify_host: bool,
    /// The certificates of `HTTP.SSL.CAINFO`. A server may show one of them itself, also if it is that of an authority:
    /// so are those that people make for one server.
    named: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(settings: &Settings, provider: &Arc<CryptoProvider>) -> Result<Verifier, String> {
        let chain = || {
            let roots = Arc::new(roots(settings)?);
            let verifier =
                WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider)).build();
            verifier.map_err(|error| error.to_string())
        };
        Ok(Verifier {
            chain: settings.verify_peer.then(chain).transpose()?,
            verify_host: settings.verify_host,
            named: settings.ca_info.as_deref().map(certificates).transpose()?.unwrap_or_default(),
            provider: Arc::clone(provider),
        })
    }
}

/// Whether the only thing wrong with a certificate is that it is one of an authority. Its dates are looked at before that.
fn is_of_authority(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::Other(other)) if format!("{:?}", other.0) == "CaUsedAsEndEntity")
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end, others, name, ocsp, now) {
            // The name is looked at when all else was found to be right.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.verify_host => Ok(ServerCertVerified::assertion()),
            Err(error)
                if is_of_authority(&error) && self.named.iter().any(|named| named == end) =>
            {
                if self.verify_host {
                    verify_server_name(&ParsedCertificate::try_from(end)?, name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        end: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            end,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        end: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            end,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerName as Server;
    use std::time::Duration;

    /// Certificates that two servers called localhost made for themselves, good from 2026 to 2126.
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
    const TWO: &str = "-----BEGIN CERTIFICATE-----\n\
         MIIBlDCCATugAwIBAgIUV1P1PRdlCSRFMsqz8rJHIYdr+N0wCgYIKoZIzj0EAwIw\n\
         FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyOTA1NTExMFoYDzIxMjYxMTA1\n\
         MDU1MTEwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO\n\
         PQMBBwNCAASnjc/3B8w4OHCDQzOeKsGN7yxU+81HYC4PJSIX4cvDhmXlNTaX6Rmp\n\
         wG8rsXUj8h9dw90yLJ0cyq4Aw6kkSOaao2kwZzAdBgNVHQ4EFgQUO2VuFtkM11m8\n\
         RKYpo5aREl2fjyMwHwYDVR0jBBgwFoAUO2VuFtkM11m8RKYpo5aREl2fjyMwDwYD\n\
         VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID\n\
         RwAwRAIgVMMO/FMDkDPcsG+Aog0elTetyGKINZwY2PeYAWjQ/RACIFNmgu7nzB/q\n\
         ErQhbq5WKIj0At/rwCk9rs765biD1YRW\n\
         -----END CERTIFICATE-----";

    fn verified(change: impl FnOnce(&mut Settings), name: &str, years: u64) -> [bool; 2] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, ONE).unwrap();
        let mut settings = Settings {
            ca_info: Some(file),
            ..Settings::plain(&Server::new(true, "localhost", None))
        };
        change(&mut settings);
        let verifier =
            Verifier::new(&settings, &Arc::new(rustls::crypto::ring::default_provider())).unwrap();
        // Of years of 365 days, since 1970.
        let now = UnixTime::since_unix_epoch(Duration::from_secs(years * 365 * 86400));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        [ONE, TWO].map(|pem| {
            let end = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            verifier.verify_server_cert(&end, &[], &name, &[], now).is_ok()
        })
    }

    #[test]
    fn a_server_may_show_the_certificate_that_a_setting_names_and_no_other() {
        assert_eq!(verified(|_| {}, "localhost", 60), [true, false]);
        assert_eq!(verified(|_| {}, "other", 60), [false, false]);
        // Before it was made, and after its time.
        assert_eq!(verified(|_| {}, "localhost", 50), [false, false]);
        assert_eq!(verified(|_| {}, "localhost", 200), [false, false]);
        assert_eq!(verified(|settings| settings.verify_host = false, "other", 60), [true, false]);
        assert_eq!(verified(|settings| settings.verify_peer = false, "other", 60), [true, true]);
    }

    #[test]
    fn settings_that_cannot_be_used_are_told_by_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("none.pem");
        let plain = Settings::plain(&Server::new(true, "localhost", None));
        let settings = Settings { ca_info: Some(file.clone()), ..plain.clone() };
        assert!(config(&settings, false).is_err_and(|what| what.contains("none.pem")));
        std::fs::write(&file, "no certificate").unwrap();
        assert!(config(&settings, false).is_err_and(|what| what.contains("no certificate")));
        std::fs::write(&file, ONE).unwrap();
        let settings = Settings { certificate: Some(file), ..settings };
        assert!(config(&settings, false).is_err_and(|what| what.contains("no private key")));
        let settings = Settings { has_key_password: true, ..settings };
        assert!(config(&settings, false).is_err_and(|what| what.contains("KEYPASSWORD")));
    }
}

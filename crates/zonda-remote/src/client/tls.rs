//! TLS as the settings want it: whose certificates are trusted, and what is shown of ourselves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
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
    let builder = if settings.verify_peer && settings.verify_host {
        builder.with_root_certificates(roots(settings)?)
    } else {
        let names =
            if settings.verify_peer { "names of certificates are" } else { "certificates are" };
        say_once(format!(
            "{}: {names} not verified, as a setting says: whoever is between can read and change everything",
            settings.shown_server
        ));
        let chain = if settings.verify_peer {
            let verifier = WebPkiServerVerifier::builder_with_provider(
                Arc::new(roots(settings)?),
                Arc::clone(&provider),
            )
            .build();
            Some(verifier.map_err(|error| error.to_string())?)
        } else {
            None
        };
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Lenient {
            chain,
            provider: Arc::clone(&provider),
        }))
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

/// Verifies no names, or nothing: only where a setting says so.
#[derive(Debug)]
struct Lenient {
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
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
            )) => Ok(ServerCertVerified::assertion()),
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

//! Who is believed: what webpki says, but for what settings turn off, and for certificates that they name.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use zonda_tls::{Fault, Settings};

use crate::config::{certificates, internal, roots};

/// Verifies as settings say: no names, or nothing, where these turn that off; and what a server shows of itself, where a setting names it.
#[derive(Debug)]
pub(crate) struct Verifier {
    /// `None`: everything is good.
    chain: Option<Arc<WebPkiServerVerifier>>,
    verify_host: bool,
    /// Certificates one of which a server may show itself.
    named: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    pub(crate) fn new(
        settings: &Settings<'_>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Verifier, Fault> {
        let chain = || {
            let roots = Arc::new(roots(settings.sources)?);
            let verifier =
                WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider)).build();
            verifier.map_err(internal)
        };
        let shown = settings.sources.iter().filter(|source| source.may_be_shown);
        Ok(Verifier {
            chain: settings.verify_peer.then(chain).transpose()?,
            verify_host: settings.verify_host,
            named: shown.flat_map(|source| certificates(source.pem)).collect(),
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
    use rustls::pki_types::pem::PemObject;
    use std::time::Duration;
    use zonda_tls::Source;

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

    fn verified(change: impl FnOnce(&mut Settings<'_>), name: &str, years: u64) -> [bool; 2] {
        let source = Source { pem: ONE.as_bytes(), may_be_empty: false, may_be_shown: true };
        let mut settings =
            Settings { verify_peer: true, verify_host: true, sources: &[source], identity: None };
        change(&mut settings);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new(&settings, &provider).unwrap();
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
}

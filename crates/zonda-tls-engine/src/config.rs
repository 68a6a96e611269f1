//! Settings as rustls wants them.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, Error, RootCertStore};
use zonda_tls::{Fault, Identity, Kind, Settings, Source};

use crate::verify::Verifier;
use crate::words;

/// The configuration for a server.
///
/// # Errors
/// What is wrong with a setting.
pub(crate) fn config(settings: &Settings<'_>) -> Result<Arc<ClientConfig>, Fault> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(internal)?;
    let is_usual = settings.verify_peer
        && settings.verify_host
        && settings.sources.iter().all(|source| !source.may_be_shown);
    let builder = if is_usual {
        builder.with_root_certificates(roots(settings.sources)?)
    } else {
        let verifier = Arc::new(Verifier::new(settings, &provider)?);
        builder.dangerous().with_custom_certificate_verifier(verifier)
    };
    Ok(Arc::new(match &settings.identity {
        Some(identity) => {
            let key = certified(identity, settings.sources.len(), &provider)?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key)))
        }
        None => builder.with_no_client_auth(),
    }))
}

/// Our certificates with their key; failures tell of source `place`, and of the one behind it.
fn certified(
    identity: &Identity<'_>,
    place: usize,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, Fault> {
    let at = |place, text| Fault { kind: Kind::Setting, place, text };
    let chain = certificates(identity.certificate);
    if chain.is_empty() {
        return Err(at(place, NO_CERTIFICATE.into()));
    }
    let key = PrivateKeyDer::from_pem_slice(identity.key)
        .map_err(|error| at(place + 1, words::of_pem(&error)))?;
    let key = provider
        .key_provider
        .load_private_key(key)
        .map_err(|_| at(place + 1, words::OTHER_KIND.into()))?;
    let certified = CertifiedKey::new(chain, key);
    // Whether the certificate is good, the server says: it may take ones that we would not (those of version 1).
    if matches!(certified.keys_match(), Err(Error::InconsistentKeys(_))) {
        return Err(Fault::new(Kind::OtherKey, "the key is not that of the certificate"));
    }
    Ok(certified)
}

const NO_CERTIFICATE: &str = "there is no certificate in it";

/// What cannot be wrong by anything that is set.
pub(crate) fn internal(error: impl std::fmt::Display) -> Fault {
    Fault::new(Kind::Internal, error.to_string())
}

/// Certificates of a text.
pub(crate) fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    let found = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
    found.map(CertificateDer::into_owned).collect()
}

/// Whom we trust.
pub(crate) fn roots(sources: &[Source<'_>]) -> Result<RootCertStore, Fault> {
    let mut store = RootCertStore::empty();
    for (source, place) in sources.iter().zip(0..) {
        let found = certificates(source.pem);
        if found.is_empty() && !source.may_be_empty {
            return Err(Fault { kind: Kind::Setting, place, text: NO_CERTIFICATE.into() });
        }
        store.add_parsable_certificates(found);
    }
    if store.is_empty() {
        return Err(Fault::new(Kind::NoRoots, "no certificate is trusted"));
    }
    Ok(store)
}

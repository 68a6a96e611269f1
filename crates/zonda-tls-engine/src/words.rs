//! What rustls finds wrong, in words for whoever opens a URL.

use rustls::pki_types::{UnixTime, pem};
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};
use zonda_tls::{Fault, Kind};

/// A failure between us and the server.
pub(crate) fn of_peer(error: &Error) -> Fault {
    let text = match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            return Fault::new(Kind::NotTls, "what the server sends is not TLS");
        }
        Error::InvalidCertificate(why) => of_certificate(why),
        Error::AlertReceived(why) => of_alert(*why),
        Error::PeerIncompatible(why) => of_other_ways(why),
        Error::NoCertificatesPresented => String::from("the server shows no certificate"),
        Error::FailedToGetCurrentTime => String::from("the time of day is not known here"),
        Error::FailedToGetRandomBytes => String::from("the system gives no random numbers"),
        Error::DecryptError => String::from(
            "what the server sends cannot be decrypted: it was changed on the way, or the server makes a mistake",
        ),
        // The name of the rule is for whoever looks after the server.
        other => format!("the server does not keep to the rules of TLS ({other:?})"),
    };
    Fault::new(Kind::Peer, text)
}

fn of_certificate(error: &CertificateError) -> String {
    use CertificateError as E;
    let certificate = "the certificate of the server";
    match error {
        E::UnknownIssuer => {
            format!("{certificate} is not trusted: nobody who is trusted has signed it")
        }
        E::NotValidForName => format!("{certificate} has another name than the server"),
        E::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
            let names = if names.is_empty() { String::from("none") } else { names.join(", ") };
            format!(
                "{certificate} has another name than the server: {} is asked for, and the certificate is for {names}",
                expected.to_str()
            )
        }
        E::Expired => format!("{certificate} is no longer valid"),
        E::ExpiredContext { time, not_after } => format!(
            "{certificate} is no longer valid: it was until {}, and here it is {}",
            date(*not_after),
            date(*time)
        ),
        E::NotValidYet => format!("{certificate} is not valid yet"),
        E::NotValidYetContext { time, not_before } => format!(
            "{certificate} is not valid yet: it will be from {}, and here it is {}",
            date(*not_before),
            date(*time)
        ),
        E::Revoked => format!("{certificate} was taken back by who signed it"),
        E::BadEncoding => format!("{certificate} cannot be read"),
        E::BadSignature => format!("{certificate} has a signature that is not right"),
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => {
            format!("{certificate} is for another purpose than that of a server")
        }
        E::UnsupportedSignatureAlgorithmContext { .. }
        | E::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            format!("{certificate} is signed in a way that is not supported")
        }
        E::UnhandledCriticalExtension => {
            format!("{certificate} has a condition that is not known here")
        }
        // These come from webpki, whose names say what they are about.
        E::Other(why) => match format!("{:?}", why.0).as_str() {
            "CaUsedAsEndEntity" => {
                format!(
                    "{certificate} is one of an authority, which signs others, and not trusted for itself"
                )
            }
            name => format!("{certificate} is not accepted ({name})"),
        },
        other => format!("{certificate} is not accepted ({other:?})"),
    }
}

/// `DnsName("example.org")`, `IpAddress(127.0.0.1)`: what is in it.
fn bare(presented: &str) -> &str {
    let inner = presented.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.map_or(presented, |inner| inner.trim_matches('"'))
}

/// The server says no, and ends the connection.
fn of_alert(alert: AlertDescription) -> String {
    use AlertDescription as A;
    let why = match alert {
        A::HandshakeFailure | A::InsufficientSecurity => {
            "it has no way of encryption in common with us"
        }
        A::ProtocolVersion => "it takes neither TLS 1.2 nor TLS 1.3",
        A::NoCertificate | A::CertificateRequired => "it wants a certificate from us",
        A::BadCertificate
        | A::UnsupportedCertificate
        | A::CertificateRevoked
        | A::CertificateExpired
        | A::CertificateUnknown
        | A::CertificateUnobtainable
        | A::UnknownCA => "it does not accept our certificate",
        A::AccessDenied => "it does not let us in",
        A::UnrecognisedName => "it knows no server of this name",
        A::InternalError => "something failed in it",
        _ => return format!("the server refuses the connection (alert {alert:?})"),
    };
    format!("the server refuses the connection: {why}")
}

fn of_other_ways(error: &PeerIncompatible) -> String {
    use PeerIncompatible as P;
    match error {
        P::ServerDoesNotSupportTls12Or13
        | P::ServerTlsVersionIsDisabledByOurConfig
        | P::Tls12NotOffered
        | P::Tls12NotOfferedOrEnabled => {
            String::from("the server speaks neither TLS 1.2 nor TLS 1.3")
        }
        other => format!("the server has no way of TLS in common with us ({other:?})"),
    }
}

/// Why a text has no private key.
pub(crate) fn of_pem(error: &pem::Error) -> String {
    match error {
        pem::Error::NoItemsFound => String::from("there is no private key in it"),
        _ => String::from(
            "there is no private key in it that can be read: it is not whole, or was changed",
        ),
    }
}

/// A private key that is of no kind that we know.
pub(crate) const OTHER_KIND: &str = "the private key in it cannot be used: it is none of RSA (2048 to 8192 bits), ECDSA (P-256, P-384) or Ed25519, or damaged";

/// `2026-11-29 05:51 UTC`
fn date(time: UnixTime) -> String {
    let (days, seconds) = (time.as_secs() / 86400, time.as_secs() % 86400);
    // Years begin in March here, so that the day that some have is their last; 400 of them have 146097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, after) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
    format!("{:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC", era * 400 + year + after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::PeerMisbehaved;
    use rustls::pki_types::ServerName;
    use std::time::Duration;

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (784_111_777, "1994-11-06 08:49 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (951_868_799, "2000-02-29 23:59 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_709_164_800, "2024-02-29 00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(at(seconds)), text);
        }
    }

    #[test]
    fn what_users_meet_has_no_words_of_rustls() {
        let other_name = CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("data.example.org").unwrap(),
            presented: vec![
                String::from("DnsName(\"example.org\")"),
                String::from("IpAddress(127.0.0.1)"),
            ],
        };
        let ended = CertificateError::ExpiredContext { time: at(86400), not_after: at(0) };
        for (error, text) in [
            (
                CertificateError::UnknownIssuer.into(),
                "the certificate of the server is not trusted: nobody who is trusted has signed it",
            ),
            (
                other_name.into(),
                "the certificate of the server has another name than the server: data.example.org is asked for, and the certificate is for example.org, 127.0.0.1",
            ),
            (
                ended.into(),
                "the certificate of the server is no longer valid: it was until 1970-01-01 00:00 UTC, and here it is 1970-01-02 00:00 UTC",
            ),
            (
                Error::AlertReceived(AlertDescription::HandshakeFailure),
                "the server refuses the connection: it has no way of encryption in common with us",
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13),
                "the server speaks neither TLS 1.2 nor TLS 1.3",
            ),
            (
                Error::PeerMisbehaved(PeerMisbehaved::TooMuchEarlyDataReceived),
                "the server does not keep to the rules of TLS (PeerMisbehaved(TooMuchEarlyDataReceived))",
            ),
        ] {
            let fault = of_peer(&error);
            assert_eq!((fault.kind, fault.text.as_str()), (Kind::Peer, text));
        }
        let no_tls = Error::InvalidMessage(InvalidMessage::InvalidContentType);
        assert_eq!(of_peer(&no_tls).kind, Kind::NotTls);
    }
}

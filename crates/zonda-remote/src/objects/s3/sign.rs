//! Signatures of S3 (AWS Signature Version 4), in headers.
//!
//! Not rusty-s3: it signs by the query alone, and a URL with a signature in it is a secret that redirects, proxies and logs pass on; it would bring
//! `url`, `idna`, the tables of ICU and `jiff`, too. What is computed with here is ring, which TLS brings.

use std::time::{SystemTime, UNIX_EPOCH};

use ring::{digest, hmac};

use crate::client::{Authorize, Request};
use crate::settings::Credentials;

/// Signs requests for one region.
pub(super) struct Signer {
    pub(super) credentials: Option<Credentials>,
    pub(super) region: String,
}

impl Authorize for Signer {
    fn headers(&self, request: &Request<'_>) -> Vec<(&'static str, String)> {
        let Some(credentials) = &self.credentials else { return Vec::new() };
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        signed(credentials, &self.region, request, &stamp(seconds))
    }

    fn follows(&self) -> bool {
        self.credentials.is_none()
    }
}

/// The headers that sign a request at a time, which is written as `20130524T000000Z`.
fn signed(
    credentials: &Credentials,
    region: &str,
    request: &Request<'_>,
    time: &str,
) -> Vec<(&'static str, String)> {
    let date = &time[..8];
    let body = hex(digest::digest(&digest::SHA256, request.body.unwrap_or_default()).as_ref());
    let mut headers = vec![("x-amz-content-sha256", body.clone()), ("x-amz-date", time.to_owned())];
    headers.extend(
        credentials.session_token.iter().map(|token| ("x-amz-security-token", token.clone())),
    );
    // In the order of their names, as they have to be.
    let mut all = vec![("host", request.target.server.authority())];
    all.extend(request.headers.iter().filter(|(name, _)| *name == "range").cloned());
    all.extend(headers.iter().cloned());
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let lines: String =
        all.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let query = request.target.query.as_deref().unwrap_or_default();
    let canonical =
        format!("{}\n{}\n{query}\n{lines}\n{names}\n{body}", request.method, request.target.path);
    let scope = format!("{date}/{region}/s3/aws4_request");
    let canonical = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{canonical}");
    let mut key = hmac_of(format!("AWS4{}", credentials.secret_key).as_bytes(), date);
    for part in [region, "s3", "aws4_request"] {
        key = hmac_of(key.as_ref(), part);
    }
    let signature = hex(hmac_of(key.as_ref(), &text).as_ref());
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope},SignedHeaders={names},Signature={signature}",
        credentials.access_key
    );
    headers.push(("authorization", authorization));
    headers
}

fn hmac_of(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Seconds since 1970 as `20130524T000000Z`.
fn stamp(seconds: u64) -> String {
    let (mut days, time) = (seconds / 86400, seconds % 86400);
    // Years begin in March here, and eras of 400 years on 0000-03-01.
    days += 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z", time / 3600, time / 60 % 60, time % 60)
}

/// A text with all but letters, digits and `-._~` as `%XX`; with `keep_slashes` without `/`, too.
pub(super) fn encoded(text: &str, keep_slashes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (keep_slashes && byte == b'/')
        {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::target::{ServerName, Target};

    fn keys(session_token: Option<&str>) -> Credentials {
        Credentials {
            access_key: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            session_token: session_token.map(ToOwned::to_owned),
        }
    }

    fn request(path: &str, query: Option<&str>) -> Request<'static> {
        let server = ServerName::new(true, "examplebucket.s3.amazonaws.com", None);
        Request::get(Target { server, path: path.into(), query: query.map(ToOwned::to_owned) })
    }

    fn signature(request: &Request<'_>, keys: &Credentials) -> String {
        let headers = signed(keys, "us-east-1", request, "20130524T000000Z");
        let (_, text) = headers.iter().find(|(name, _)| *name == "authorization").unwrap();
        text.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    /// The examples of Amazon's documentation of the header.
    #[test]
    fn signatures_are_those_of_the_documentation() {
        let mut get = request("/test.txt", None);
        get.headers.push(("range", "bytes=0-9".into()));
        assert_eq!(
            signature(&get, &keys(None)),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        let list = request("/", Some("max-keys=2&prefix=J"));
        assert_eq!(
            signature(&list, &keys(None)),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
        let lifecycle = request("/", Some("lifecycle="));
        assert_eq!(
            signature(&lifecycle, &keys(None)),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        assert_ne!(signature(&list, &keys(Some("token"))), signature(&list, &keys(None)));
    }

    /// Keys, queries and bodies with everything that is escaped, as botocore signs them.
    #[test]
    fn signatures_are_those_of_botocore() {
        let server = ServerName::new(true, "h.org", Some(8443));
        let cases = [
            (
                "GET",
                "/bucket/dir/b%20c%2B%C3%A4.nc",
                None,
                None,
                None,
                "e622e860927496a4c733db8af2fdef68ad54e8e590d852273b97594fe71fd42e",
            ),
            (
                "PUT",
                "/bucket/a%3D%26.nc",
                Some("partNumber=2&uploadId=id%2F1%3D"),
                Some(&b"hello"[..]),
                Some("token"),
                "5190cdc31e1bd1083b54806e429ee374c9582b9ce6a81786fe6afa9ad7c91eae",
            ),
            (
                "GET",
                "/bucket",
                Some(
                    "continuation-token=n%2F%3D%2B&encoding-type=url&list-type=2&prefix=a%2Fb%20c",
                ),
                None,
                None,
                "6c976af7384dc8590650ce158e82308dfa06d3a0fc8f0f6d5272f2264722763d",
            ),
        ];
        for (method, path, query, body, token, expected) in cases {
            let target = Target {
                server: server.clone(),
                path: path.into(),
                query: query.map(ToOwned::to_owned),
            };
            let request = Request { method, target, headers: Vec::new(), body };
            let headers = signed(&keys(token), "here-1", &request, "20130524T000000Z");
            let text = &headers.last().unwrap().1;
            assert!(text.ends_with(expected), "{method} {path}: {text}");
        }
    }

    #[test]
    fn times_and_names_are_written_as_signatures_want_them() {
        assert_eq!(stamp(1_369_353_600), "20130524T000000Z");
        assert_eq!(stamp(951_782_399), "20000228T235959Z");
        assert_eq!(stamp(1_709_164_800), "20240229T000000Z");
        assert_eq!(stamp(0), "19700101T000000Z");
        assert_eq!(encoded("a b/ä+~", true), "a%20b/%C3%A4%2B~");
        assert_eq!(encoded("a/b", false), "a%2Fb");
    }
}

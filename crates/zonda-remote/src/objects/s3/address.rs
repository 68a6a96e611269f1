//! Where a bucket is: what `s3://` and the URLs of S3 say, with what is set besides.

use crate::client::target::ServerName;
use crate::settings::AwsSettings;
use crate::url::{Protocol, RemoteUrl, decoded};

/// Where a bucket is, and how its objects are named there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) server: ServerName,
    /// What comes before each key in a path: `/` or `/bucket/`, perhaps behind the path of an endpoint.
    pub(super) root: String,
    pub(super) region: String,
    pub(super) bucket: String,
    /// The server follows from bucket and region, and changes with the region.
    is_amazon: bool,
}

/// What is asked where nobody says a region.
const DEFAULT_REGION: &str = "us-east-1";

/// Whether a URL is one of S3 and not of HTTP alone.
pub(super) fn is_s3(url: &RemoteUrl) -> bool {
    let is_mode = url
        .setting("mode")
        .is_some_and(|modes| modes.split(',').any(|mode| mode.trim().eq_ignore_ascii_case("s3")));
    url.protocol == Protocol::S3 || is_mode || url.setting("s3").is_some()
}

impl Address {
    /// The bucket of a URL, and the key there.
    ///
    /// # Errors
    /// What is wrong with the URL or with a setting.
    pub(super) fn of(url: &RemoteUrl, aws: &AwsSettings) -> Result<(Address, String), String> {
        if url.query.is_some() {
            return Err("a URL of S3 has a query, which is not sent there (versions, signatures): write a ? in a key as %3F, and open a signed URL without mode=s3".into());
        }
        let path = url.path.strip_prefix('/').unwrap_or(&url.path);
        let host = url.host.to_ascii_lowercase();
        if let Some((bucket, region)) = amazon_host(&host) {
            // The host says where; a region that is set is only for hosts that say none.
            let region =
                region.or_else(|| aws.region.clone()).unwrap_or_else(|| DEFAULT_REGION.into());
            let (bucket, key) = match bucket {
                Some(bucket) => (bucket, path),
                None => split_bucket(path)?,
            };
            return Ok((Address::amazon(bucket, &region)?, decoded(key)));
        }
        let region = aws.region.clone().unwrap_or_else(|| DEFAULT_REGION.into());
        if url.protocol != Protocol::S3 {
            let (bucket, key) = split_bucket(path)?;
            check_bucket(bucket)?;
            let server = ServerName::of(url);
            return Ok((
                Address {
                    server,
                    root: format!("/{bucket}/"),
                    region,
                    bucket: bucket.into(),
                    is_amazon: false,
                },
                decoded(key),
            ));
        }
        if url.port.is_some() {
            return Err("s3:// is followed by a bucket, which has no port: name a server by AWS_ENDPOINT_URL, or by https://server:port/bucket/key#mode=s3,bytes".into());
        }
        let bucket = url.host.as_str();
        check_bucket(bucket)?;
        match &aws.endpoint {
            None => Ok((Address::amazon(bucket, &region)?, decoded(path))),
            Some(endpoint) => {
                let place = endpoint_url(endpoint)
                    .ok_or("the endpoint that is set for S3 is no http:// or https:// URL")?;
                let root = format!("{}/{bucket}/", place.path.trim_end_matches('/'));
                Ok((
                    Address {
                        server: ServerName::of(&place),
                        root,
                        region,
                        bucket: bucket.into(),
                        is_amazon: false,
                    },
                    decoded(path),
                ))
            }
        }
    }

    /// Whether the server may have the credentials of these settings: Amazon's, and one that somebody other than the URL named.
    pub(super) fn may_have(&self, aws: &AwsSettings) -> bool {
        self.is_amazon
            || aws.is_for_server
            || aws
                .trusted
                .iter()
                .filter_map(|endpoint| endpoint_url(endpoint))
                .any(|url| ServerName::of(&url) == self.server)
    }

    fn amazon(bucket: &str, region: &str) -> Result<Address, String> {
        check_bucket(bucket)?;
        if region.is_empty()
            || !region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        {
            return Err("the region that is set for S3 is none".into());
        }
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        // No certificate is for names with more dots.
        let (host, root) = if bucket.contains('.') {
            (format!("s3.{region}.{domain}"), format!("/{bucket}/"))
        } else {
            (format!("{bucket}.s3.{region}.{domain}"), "/".to_owned())
        };
        Ok(Address {
            server: ServerName::new(true, &host, None),
            root,
            region: region.into(),
            bucket: bucket.into(),
            is_amazon: true,
        })
    }

    /// The same bucket in another region, which the server named. `None` where that changes nothing.
    pub(super) fn in_region(&self, region: &str) -> Option<Address> {
        if region == self.region {
            return None;
        }
        if self.is_amazon {
            return Address::amazon(&self.bucket, region).ok();
        }
        let is_one = !region.is_empty()
            && region.len() < 40
            && region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_one.then(|| Address { region: region.into(), ..self.clone() })
    }
}

/// The server that a setting names, with or without a protocol.
fn endpoint_url(endpoint: &str) -> Option<RemoteUrl> {
    let text =
        if endpoint.contains("://") { endpoint.to_owned() } else { format!("https://{endpoint}") };
    RemoteUrl::parse(&text).ok().filter(|place| place.protocol != Protocol::S3)
}

/// Bucket and region of Amazon's hosts: `s3.REGION.amazonaws.com`, `s3-REGION.…`, `s3.dualstack.REGION.…`, each with `BUCKET.` before it.
fn amazon_host(host: &str) -> Option<(Option<&str>, Option<String>)> {
    let front =
        host.strip_suffix(".amazonaws.com").or_else(|| host.strip_suffix(".amazonaws.com.cn"))?;
    let labels: Vec<&str> = front.split('.').collect();
    // From the right: a bucket may have dots, and labels that look like those of S3.
    let (n_behind, region) = match labels[..] {
        [.., "s3"] => (1, None),
        [.., "s3", region] => (2, Some(region)),
        [.., "s3", "dualstack", region] => (3, Some(region)),
        [.., last] => (1, Some(last.strip_prefix("s3-")?)),
        [] => return None,
    };
    let bucket_len = front.len()
        - labels[labels.len() - n_behind..]
            .iter()
            .map(|label| label.len() + 1)
            .sum::<usize>()
            .min(front.len());
    let bucket = (labels.len() > n_behind).then(|| &front[..bucket_len]);
    Some((bucket, region.map(ToOwned::to_owned)))
}

fn split_bucket(path: &str) -> Result<(&str, &str), String> {
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    if bucket.is_empty() {
        Err("the URL names no bucket: https://server/bucket/key".into())
    } else {
        Ok((bucket, key))
    }
}

/// What a bucket may be called, about; it becomes a part of hosts and paths.
fn check_bucket(bucket: &str) -> Result<(), String> {
    let is_name = !bucket.is_empty()
        && bucket.len() <= 255
        && !bucket.starts_with('.')
        && bucket.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    if is_name { Ok(()) } else { Err("the bucket has a name that no bucket can have".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_s3_in_every_style_lead_to_a_bucket() {
        let of = |text: &str, region: Option<&str>, endpoint: Option<&str>| {
            let aws = AwsSettings {
                credentials: None,
                region: region.map(ToOwned::to_owned),
                endpoint: endpoint.map(ToOwned::to_owned),
                ..AwsSettings::default()
            };
            let url = RemoteUrl::parse(text).unwrap();
            assert!(is_s3(&url), "{text}");
            Address::of(&url, &aws).map(|(address, key)| {
                (
                    format!("{}{}{key}", address.server.shown(), address.root),
                    address.region,
                    address.bucket,
                )
            })
        };
        let is = |place: &str, region: &str, bucket: &str| {
            Ok((place.to_owned(), region.to_owned(), bucket.to_owned()))
        };
        assert_eq!(
            of("s3://b/d/k%20.nc", None, None),
            is("https://b.s3.us-east-1.amazonaws.com/d/k .nc", "us-east-1", "b")
        );
        assert_eq!(
            of("s3://b/k", Some("eu-west-1"), None),
            is("https://b.s3.eu-west-1.amazonaws.com/k", "eu-west-1", "b")
        );
        assert_eq!(
            of("s3://b.c/k", Some("eu-west-1"), None),
            is("https://s3.eu-west-1.amazonaws.com/b.c/k", "eu-west-1", "b.c")
        );
        assert_eq!(
            of("s3://b/k", None, Some("http://h:9000/")),
            is("http://h:9000/b/k", "us-east-1", "b")
        );
        assert_eq!(of("s3://b/k", Some("x"), Some("h/pre")), is("https://h/pre/b/k", "x", "b"));
        assert_eq!(
            of("http://h:9000/b/d/k#mode=s3,bytes", None, Some("http://other")),
            is("http://h:9000/b/d/k", "us-east-1", "b")
        );
        assert_eq!(
            of("https://s3.eu-west-1.amazonaws.com/b/k#mode=bytes,s3", Some("x"), None),
            is("https://b.s3.eu-west-1.amazonaws.com/k", "eu-west-1", "b")
        );
        assert_eq!(
            of("https://b.s3.eu-west-1.amazonaws.com/d/k#mode=s3", None, None),
            is("https://b.s3.eu-west-1.amazonaws.com/d/k", "eu-west-1", "b")
        );
        assert_eq!(
            of("https://b.s3.amazonaws.com/k#mode=s3", None, None),
            is("https://b.s3.us-east-1.amazonaws.com/k", "us-east-1", "b")
        );
        assert_eq!(
            of("https://b.s3-eu-west-1.amazonaws.com/k#s3", None, None),
            is("https://b.s3.eu-west-1.amazonaws.com/k", "eu-west-1", "b")
        );
        assert_eq!(
            of("https://b.c.s3.dualstack.us-west-2.amazonaws.com/k#mode=s3", None, None),
            is("https://s3.us-west-2.amazonaws.com/b.c/k", "us-west-2", "b.c")
        );
        assert_eq!(
            of("s3://s3.us-west-2.amazonaws.com/b/k", None, None),
            is("https://b.s3.us-west-2.amazonaws.com/k", "us-west-2", "b")
        );
        for (wrong, region, endpoint) in [
            ("s3://b:80/k", None, None),
            ("https://h/#mode=s3", None, None),
            ("s3://b/k", Some("a.evil/"), None),
            ("s3://b/k", None, Some("ftp://h")),
            ("s3://b%/k", None, None),
        ] {
            assert!(of(wrong, region, endpoint).is_err(), "{wrong}");
        }
        assert!(!is_s3(&RemoteUrl::parse("https://b.s3.amazonaws.com/k#mode=bytes").unwrap()));
    }

    #[test]
    fn keys_go_to_amazon_and_to_servers_that_settings_name() {
        let of = |url: &str, trusted: &str| {
            let url = RemoteUrl::parse(url).unwrap();
            let aws = AwsSettings { trusted: vec![trusted.to_owned()], ..AwsSettings::default() };
            let (address, _) = Address::of(&url, &aws).unwrap();
            assert!(
                address.may_have(&AwsSettings { is_for_server: true, ..AwsSettings::default() })
            );
            address.may_have(&aws)
        };
        assert!(of("s3://b/k", "https://h"));
        assert!(of("https://b.s3.eu-west-1.amazonaws.com/k#mode=s3", ""));
        assert!(of("https://H:443/b/k#mode=s3", "h"));
        assert!(of("http://h:9000/b/k#mode=s3", "http://h:9000/x"));
        for (url, trusted) in [
            ("https://evil/b/k#mode=s3", "https://h"),
            ("http://h/b/k#mode=s3", "https://h"),
            ("https://h:9000/b/k#mode=s3", "https://h"),
            ("https://ec2-1.compute.amazonaws.com/b/k#mode=s3", "https://h"),
            ("https://h/b/k#mode=s3&aws.endpoint=https://h", ""),
        ] {
            assert!(!of(url, trusted), "{url}");
        }
    }

    #[test]
    fn a_bucket_moves_to_the_region_that_its_server_names() {
        let aws = AwsSettings::default();
        let (address, _) = Address::of(&RemoteUrl::parse("s3://b/k").unwrap(), &aws).unwrap();
        assert_eq!(address.in_region("us-east-1"), None);
        assert_eq!(
            address.in_region("eu-west-1").unwrap().server.host,
            "b.s3.eu-west-1.amazonaws.com"
        );
        assert_eq!(address.in_region("evil.org/"), None);
    }
}

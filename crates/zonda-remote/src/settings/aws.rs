//! Who we are to S3, and where that is: keys of the URL, of `.ncrc`, variables, and the files of the AWS tools.

use std::path::PathBuf;

use zonda_storage::neighbour::from_env;
use zonda_storage::rc::{self, RcTable};

use super::{rc_url, read_file};
use crate::RemoteUrl;
use crate::client::target::ServerName;
use crate::url::Protocol;

/// What requests are signed with. All of it is secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Which key.
    pub access_key: String,
    /// The key.
    pub secret_key: String,
    /// What belongs to keys of a session.
    pub session_token: Option<String>,
}

/// Without secrets.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials")
    }
}

/// What is set for S3.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AwsSettings {
    /// `None`: requests are not signed.
    pub credentials: Option<Credentials>,
    /// Where the buckets are.
    pub region: Option<String>,
    /// The URL of a server that is not Amazon's.
    pub endpoint: Option<String>,
    /// The credentials are for the server of the URL, whoever that is: the URL has them, who opens it gives them, or lines of `.ncrc` for this server do.
    pub is_for_server: bool,
    /// Servers besides Amazon's that get them: those that a setting names. What a URL alone names is not among them: it may come from anywhere.
    pub trusted: Vec<String>,
}

/// A file of profiles is no longer.
const MOST_PROFILES: u64 = 1 << 20;

/// Where values come from.
struct Sources<'a> {
    url: &'a RemoteUrl,
    rc: &'a RcTable,
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of `~/.aws/credentials` and `config`.
    credentials: String,
    config: String,
}

impl AwsSettings {
    /// What is set now for a URL.
    ///
    /// # Errors
    /// A profile that is named and not there; keys of which one half is missing.
    pub fn of_url(url: &RemoteUrl) -> Result<AwsSettings, String> {
        let variable = |name: &str| {
            from_env(name)
                .map(|value| value.to_string_lossy().trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let text = |name: &str, file: &str| {
            let path = variable(name)
                .map(PathBuf::from)
                .or_else(|| Some(rc::home()?.join(".aws").join(file)));
            let bytes = path.and_then(|path| read_file(&path, MOST_PROFILES).ok());
            String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
        };
        let (credentials, config) =
            (text("AWS_SHARED_CREDENTIALS_FILE", "credentials"), text("AWS_CONFIG_FILE", "config"));
        Sources { url, rc: &rc::snapshot(), variable: &variable, credentials, config }.settings()
    }
}

impl Sources<'_> {
    /// A key of the URL, of `.ncrc`, or a variable.
    fn value(&self, key: &str, variables: &[&str]) -> Option<String> {
        self.of_url(key).or_else(|| self.of_server(key)).or_else(|| self.of_all(key, variables))
    }

    /// A key of the URL or of who opens it.
    fn of_url(&self, key: &str) -> Option<String> {
        self.url.setting(key).filter(|value| !value.is_empty()).map(ToOwned::to_owned)
    }

    /// A key of lines for this server alone.
    fn of_server(&self, key: &str) -> Option<String> {
        // What follows s3:// is a bucket.
        let server = (self.url.protocol != Protocol::S3).then(|| ServerName::of(self.url))?;
        text(self.rc.get_for(key, rc_url(&server, &self.url.path)))
    }

    /// A key of lines for all servers, or a variable.
    fn of_all(&self, key: &str, variables: &[&str]) -> Option<String> {
        text(self.rc.get_of_any_case(key))
            .or_else(|| variables.iter().find_map(|name| (self.variable)(name)))
    }

    fn settings(&self) -> Result<AwsSettings, String> {
        // A profile of the URL or of `.ncrc` comes before the variables with keys, one of the variables behind them, as in the AWS tools.
        let named = self.value("aws.profile", &[]);
        let profile = named
            .clone()
            .or_else(|| (self.variable)("AWS_PROFILE"))
            .or_else(|| (self.variable)("AWS_DEFAULT_PROFILE"));
        let of_profile = |key: &str| {
            let name = profile.as_deref().unwrap_or("default");
            entry(&self.credentials, name, key)
                .or_else(|| entry(&self.config, &format!("profile {name}"), key))
                .or_else(|| entry(&self.config, name, key))
        };
        let is_none = |name: &str| matches!(name, "no" | "none");
        let is_anonymous = profile.as_deref().is_some_and(is_none)
            || self
                .value("aws.anonymous", &[])
                .is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
            || (self.variable)("AWS_NO_SIGN_REQUEST").is_some_and(|value| {
                value.eq_ignore_ascii_case("yes")
                    || value.eq_ignore_ascii_case("true")
                    || value == "1"
            });
        let region = self
            .value("aws.region", &["AWS_REGION", "AWS_DEFAULT_REGION"])
            .or_else(|| of_profile("region"));
        let endpoint = self
            .value("aws.endpoint", &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
            .or_else(|| of_profile("endpoint_url"));
        let of_profile_endpoint = of_profile("endpoint_url");
        let is_profile_of_server =
            self.of_url("aws.profile").is_none() && self.of_server("aws.profile").is_some();
        let (credentials, is_for_server) = if is_anonymous {
            (None, false)
        } else if let (None, Some(own)) = (&named, self.own_credentials()?) {
            (Some(own), true)
        } else {
            (self.credentials(named.is_some(), &of_profile)?, is_profile_of_server)
        };
        let trusted = [
            self.url.given("aws.endpoint").map(ToOwned::to_owned),
            self.of_all("aws.endpoint", &[]),
            (self.variable)("AWS_ENDPOINT_URL_S3"),
            (self.variable)("AWS_ENDPOINT_URL"),
            of_profile_endpoint,
        ];
        let trusted = trusted.into_iter().flatten().collect();
        if let (Some(name), None, false) = (&profile, &credentials, is_anonymous) {
            let name = crate::client::answer::excerpt(name);
            // Requests that are not signed are not what was asked for.
            let others = [
                "role_arn",
                "sso_session",
                "sso_start_url",
                "credential_process",
                "web_identity_token_file",
            ];
            if let Some(other) = others.iter().find(|key| of_profile(key).is_some()) {
                return Err(format!(
                    "the profile {name:?} has no keys but {other}, which is not supported: set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
                ));
            }
            // It may have a region or an endpoint alone.
            if of_profile("region").is_none() && of_profile("endpoint_url").is_none() {
                return Err(format!(
                    "there is no profile {name:?} in the files of AWS credentials"
                ));
            }
        }
        Ok(AwsSettings { credentials, region, endpoint, is_for_server, trusted })
    }

    /// Keys that are for this server: all of them from one place that is about it.
    fn own_credentials(&self) -> Result<Option<Credentials>, String> {
        for place in [&|key| self.of_url(key), &|key| self.of_server(key)]
            as [&dyn Fn(&str) -> Option<String>; 2]
        {
            let found =
                ["aws.access_key_id", "aws.secret_access_key", "aws.session_token"].map(place);
            if found[..2].iter().all(Option::is_some) {
                return complete(found);
            }
        }
        Ok(None)
    }

    fn credentials(
        &self,
        is_profile_first: bool,
        of_profile: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Credentials>, String> {
        let told = |key: &str, variable: &str| self.value(key, &[variable]);
        let direct = [
            told("aws.access_key_id", "AWS_ACCESS_KEY_ID"),
            told("aws.secret_access_key", "AWS_SECRET_ACCESS_KEY"),
            told("aws.session_token", "AWS_SESSION_TOKEN"),
        ];
        let stored =
            || ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"].map(of_profile);
        let found = if is_profile_first || direct[..2].iter().all(Option::is_none) {
            stored()
        } else {
            direct
        };
        complete(found)
    }
}

/// Keys that were found, of which none or both have to be there.
fn complete(found: [Option<String>; 3]) -> Result<Option<Credentials>, String> {
    match found {
        [Some(access_key), Some(secret_key), session_token] => {
            let is_text = [&access_key, session_token.as_ref().unwrap_or(&access_key)]
                .iter()
                .all(|text| text.bytes().all(|byte| (b'!'..0x7f).contains(&byte)));
            if is_text {
                Ok(Some(Credentials { access_key, secret_key, session_token }))
            } else {
                Err("the keys for S3 have characters that no header can have".into())
            }
        }
        [None, None, _] => Ok(None),
        _ => Err("of the keys for S3 one is set, and the other is not (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)".into()),
    }
}

/// A value that has something.
fn text(value: Option<&[u8]>) -> Option<String> {
    value.map(|value| String::from_utf8_lossy(value).into_owned()).filter(|value| !value.is_empty())
}

/// The value of a key in a section `[name]` of a file.
fn entry(text: &str, section: &str, key: &str) -> Option<String> {
    let mut is_in = false;
    let mut found = None;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
            is_in = name.split_whitespace().eq(section.split_whitespace());
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_in)
            && name.trim().eq_ignore_ascii_case(key)
            && !value.trim().is_empty()
        {
            found = Some(value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys, region, endpoint.
    type Found = (Option<String>, Option<String>, Option<String>);

    const CREDENTIALS: &str = "[default]\naws_access_key_id = D\naws_secret_access_key=DS\n# x\n[me]\nAWS_ACCESS_KEY_ID=M\naws_secret_access_key = M=S\naws_session_token= MT\n[half]\naws_access_key_id=H\n";
    const CONFIG: &str = "[default]\nregion = d-1\n[profile role]\nrole_arn = x\nregion = y\n[profile me]\nregion=m-1\nendpoint_url = http://here:1\n";

    fn of(url: &str, rc: &str, variables: &[(&str, &str)]) -> Result<Found, String> {
        let variable = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let url = RemoteUrl::parse(url).unwrap();
        let sources = Sources {
            url: &url,
            rc: &RcTable::of_text(rc),
            variable: &variable,
            credentials: CREDENTIALS.into(),
            config: CONFIG.into(),
        };
        let keys = |keys: Credentials| {
            format!(
                "{} {} {}",
                keys.access_key,
                keys.secret_key,
                keys.session_token.unwrap_or_default()
            )
        };
        sources.settings().map(|found| (found.credentials.map(keys), found.region, found.endpoint))
    }

    #[test]
    fn keys_of_a_place_go_to_the_servers_that_it_is_about() {
        let variables = [
            ("AWS_ACCESS_KEY_ID", "V"),
            ("AWS_SECRET_ACCESS_KEY", "VS"),
            ("AWS_SESSION_TOKEN", "VT"),
        ];
        let of = |url: &str, rc: &str, given: &[(&str, &str)]| {
            let variable = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            let mut url = RemoteUrl::parse(url).unwrap();
            url.given = given.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            let sources = Sources {
                url: &url,
                rc: &RcTable::of_text(rc),
                variable: &variable,
                credentials: CREDENTIALS.into(),
                config: CONFIG.into(),
            };
            let found = sources.settings().unwrap();
            let keys = found.credentials.unwrap();
            (keys.access_key, keys.session_token, found.is_for_server, found.trusted)
        };
        let url = "https://h.org/b/k#mode=s3";
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(url, "", &[]), ("V".into(), some("VT"), false, vec![]));
        let own = format!("{url}&aws.access_key_id=U&aws.secret_access_key=US");
        assert_eq!(of(&own, "", &[]), ("U".into(), None, true, vec![]), "no token of others");
        // Half of them is none of them.
        let half = format!("{url}&aws.access_key_id=U");
        assert!(!of(&half, "", &[]).2);
        let keys = [("aws.access_key_id", "G"), ("aws.secret_access_key", "GS")];
        assert_eq!(of(url, "", &keys), ("G".into(), None, true, vec![]));
        let lines = "[https://h.org]AWS.PROFILE=me\n";
        assert_eq!(
            of(url, lines, &[]),
            ("M".into(), some("MT"), true, vec!["http://here:1".into()])
        );
        let profile = format!("{url}&aws.profile=default");
        assert_eq!(of(&profile, lines, &[]), ("D".into(), None, false, vec![]));
        assert_eq!(of("https://i.org/b/k#mode=s3", lines, &[]).0, "V");
        let endpoint = format!("{url}&aws.endpoint=https://h.org");
        assert_eq!(
            of(&endpoint, "", &[]).3,
            Vec::<String>::new(),
            "a URL does not vouch for itself"
        );
        assert_eq!(of(url, "AWS.ENDPOINT=https://h.org", &[]).3, ["https://h.org"]);
        assert_eq!(of(url, "", &[("aws.endpoint", "https://h.org")]).3, ["https://h.org"]);
    }

    #[test]
    fn keys_come_from_where_the_tools_take_them() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("s3://b/k", "", &[]), Ok((some("D DS "), some("d-1"), None)));
        assert_eq!(
            of(
                "s3://b/k#aws.profile=me",
                "",
                &[("AWS_ACCESS_KEY_ID", "V"), ("AWS_SECRET_ACCESS_KEY", "VS")]
            ),
            Ok((some("M M=S MT"), some("m-1"), some("http://here:1")))
        );
        assert_eq!(
            of("s3://b/k", "AWS.PROFILE=me\nAWS.REGION=r", &[]),
            Ok((some("M M=S MT"), some("r"), some("http://here:1")))
        );
        assert_eq!(
            of(
                "s3://b/k",
                "",
                &[
                    ("AWS_PROFILE", "me"),
                    ("AWS_ACCESS_KEY_ID", "V"),
                    ("AWS_SECRET_ACCESS_KEY", "VS"),
                    ("AWS_SESSION_TOKEN", "T")
                ]
            )
            .unwrap()
            .0,
            some("V VS T")
        );
        assert_eq!(of("s3://b/k#aws.profile=none", "", &[]).unwrap().0, None);
        assert_eq!(
            of("s3://b/k#aws.region=u", "", &[("AWS_NO_SIGN_REQUEST", "YES"), ("AWS_REGION", "v")]),
            Ok((None, some("u"), None))
        );
        assert!(of("s3://b/k#aws.profile=other", "", &[]).is_err());
        assert!(
            of("s3://b/k#aws.profile=role", "", &[]).is_err_and(|what| what.contains("role_arn"))
        );
        assert!(of("s3://b/k#aws.profile=half", "", &[]).is_err());
        assert_eq!(
            of("s3://b/k", "", &[("AWS_ENDPOINT_URL", "a"), ("AWS_ENDPOINT_URL_S3", "s")])
                .unwrap()
                .2,
            some("s")
        );
    }
}

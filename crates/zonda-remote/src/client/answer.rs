//! What a server answered, and whether it is an answer to what was asked.

use ureq::http::HeaderMap;

use super::target::Target;
use crate::objects::ObjectState;

/// An answer whose body was not read yet.
pub(crate) struct Answer {
    /// The status of HTTP.
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: ureq::BodyReader<'static>,
    /// Who answered, after redirects.
    pub(crate) from: Target,
    /// Whether there were redirects.
    pub(crate) is_redirected: bool,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answer({})", self.status)
    }
}

impl Answer {
    /// The value of a header; empty where there is none, or it is no text.
    pub(crate) fn header(&self, name: &str) -> &str {
        header(&self.headers, name)
    }

    /// What it says of the object's length: `Err` with what is wrong, `None` where it says nothing.
    pub(crate) fn content_length(&self) -> Result<Option<u64>, String> {
        content_length(&self.headers)
    }

    /// What it says of the object that it is of, which has `len` bytes.
    pub(crate) fn state(&self, len: u64) -> ObjectState {
        ObjectState { len, validator: validator(&self.headers) }
    }
}

pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim).unwrap_or_default()
}

fn content_length(headers: &HeaderMap) -> Result<Option<u64>, String> {
    let mut found = None;
    for value in headers.get_all("content-length") {
        let text = value.to_str().unwrap_or_default().trim();
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let len: u64 = is_number
            .then(|| text.parse().ok())
            .flatten()
            .ok_or("the Content-Length is no number")?;
        if found.is_some_and(|found| found != len) {
            return Err("there are several Content-Lengths".into());
        }
        found = Some(len);
    }
    Ok(found)
}

/// What can be read of no answer, whatever its status.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), String> {
    for value in headers.get_all("content-encoding") {
        let text = value.to_str().unwrap_or("something unreadable");
        for name in text.split(',').map(str::trim) {
            // `aws-chunked` is of how an object came to S3, which some servers keep with it.
            if !["", "identity", "aws-chunked"].iter().any(|known| name.eq_ignore_ascii_case(known))
            {
                return Err(format!(
                    "the server encoded the body ({}), which nobody asked for",
                    excerpt(name)
                ));
            }
        }
    }
    if headers.get_all("content-range").iter().count() > 1 {
        return Err("the answer has several Content-Range".into());
    }
    if header(headers, "content-type").to_ascii_lowercase().starts_with("multipart/byteranges") {
        return Err("the server sends ranges in parts, which nobody asked for".into());
    }
    let transfers: Vec<_> = headers.get_all("transfer-encoding").iter().collect();
    if transfers
        .iter()
        .any(|value| !value.to_str().is_ok_and(|text| text.trim().eq_ignore_ascii_case("chunked")))
        || transfers.len() > 1
    {
        return Err("the server sends the body in an encoding that nobody asked for".into());
    }
    if !transfers.is_empty() && headers.contains_key("content-length") {
        return Err("the answer has two lengths: it is chunked and has a Content-Length".into());
    }
    Ok(())
}

/// What changes when the object does: a strong `ETag`; else what there is of another `ETag` and `Last-Modified`, both; empty where there is none of them.
fn validator(headers: &HeaderMap) -> String {
    let (tag, modified) = (header(headers, "etag"), header(headers, "last-modified"));
    match (tag.starts_with('"'), tag.is_empty(), modified.is_empty()) {
        (true, ..) | (_, _, true) => tag.to_owned(),
        (_, true, _) => modified.to_owned(),
        _ => format!("{tag} {modified}"),
    }
}

/// `bytes FIRST-LAST/LENGTH` of a part, as first byte, end, and length of the object.
pub(crate) fn content_range(text: &str) -> Result<(u64, u64, u64), String> {
    let wrong = || format!("the Content-Range says {:?}", excerpt(text));
    if text.is_empty() {
        return Err("there is no Content-Range in an answer of status 206".into());
    }
    let number = |text: &str| -> Option<u64> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
    };
    let parts = || {
        let rest = text
            .strip_prefix("bytes")
            .or_else(|| text.strip_prefix("Bytes"))?
            .trim_start_matches([' ', '=']);
        let (range, len) = rest.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last, len) = (number(first.trim())?, number(last.trim())?, number(len.trim())?);
        (first <= last && last < len).then(|| (first, last + 1, len))
    };
    parts().ok_or_else(wrong)
}

/// The length in the `Content-Range` of an answer that has no bytes: `bytes */LENGTH`.
pub(crate) fn unsatisfied_length(text: &str) -> Option<u64> {
    text.strip_prefix("bytes")?.trim().strip_prefix("*/")?.trim().parse().ok()
}

/// A text of the server as messages show it: its beginning, printable.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().filter(|ch| !ch.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_what_they_say_or_nothing() {
        assert_eq!(content_range("bytes 0-9/10"), Ok((0, 10, 10)));
        assert_eq!(content_range("bytes 5-5/10"), Ok((5, 6, 10)));
        for wrong in [
            "",
            "bytes 0-10/10",
            "bytes 5-4/10",
            "bytes */10",
            "bytes 0-9/*",
            "bytes +0-9/10",
            "0-9/10",
            "bytes 0-18446744073709551616/10",
            "bytes -9/10",
            "bytes 0-9",
        ] {
            assert!(content_range(wrong).is_err(), "{wrong}");
        }
        assert_eq!(unsatisfied_length("bytes */0"), Some(0));
        assert_eq!(unsatisfied_length("bytes 0-1/2"), None);
    }

    #[test]
    fn headers_that_contradict_each_other_are_refused() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, value.parse().unwrap());
            }
            headers
        };
        assert_eq!(content_length(&of(&[("content-length", "5")])), Ok(Some(5)));
        assert_eq!(content_length(&of(&[])), Ok(None));
        for wrong in ["-1", "+1", "1e3", "", "99999999999999999999", "5, 5"] {
            assert!(content_length(&of(&[("content-length", wrong)])).is_err(), "{wrong}");
        }
        assert!(content_length(&of(&[("content-length", "5"), ("content-length", "6")])).is_err());
        assert!(check_encoding(&of(&[("content-encoding", "gzip")])).is_err());
        assert!(check_encoding(&of(&[("content-encoding", "aws-chunked,gzip")])).is_err());
        assert!(check_encoding(&of(&[("content-encoding", "aws-chunked")])).is_ok());
        assert!(check_encoding(&of(&[("transfer-encoding", "gzip, chunked")])).is_err());
        assert!(
            check_encoding(&of(&[("transfer-encoding", "chunked"), ("content-length", "1")]))
                .is_err()
        );
        assert!(
            check_encoding(&of(&[
                ("transfer-encoding", "Chunked"),
                ("content-encoding", "identity")
            ]))
            .is_ok()
        );
        assert_eq!(validator(&of(&[("etag", "W/\"a\""), ("last-modified", "now")])), "W/\"a\" now");
        assert_eq!(validator(&of(&[("etag", "\"a\""), ("last-modified", "now")])), "\"a\"");
    }
}

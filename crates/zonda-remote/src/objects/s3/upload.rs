//! Objects that are made: in one request, or in parts that become one object when all are there.

use std::io::Read;
use std::sync::Arc;

use zonda_storage::RemoteFailure;

use super::sign::encoded;
use super::{MOST_ERROR, Moved, Place, S3Objects, xml};
use crate::RemoteError;
use crate::client::Request;
use crate::objects::{Objects, read_source};

/// Bytes of a part; what is shorter goes in one request.
const PART: u64 = 8 << 20;
/// An object has no more parts.
const MOST_PARTS: u64 = 10_000;

pub(super) fn put_from(
    objects: &S3Objects,
    key: &str,
    len: u64,
    source: &mut dyn Read,
) -> Result<(), RemoteError> {
    let shown = objects.shown(key);
    let broken = |what: String| RemoteError::new(&shown, RemoteFailure::Broken, what);
    if len <= PART {
        let bytes = read_source(len, source).map_err(broken)?;
        return objects.there(|place, moved| {
            let request = Request { body: Some(&bytes), ..place.request("PUT", key, None) };
            place.ask(&shown, moved, &request, &[200], MOST_ERROR).map(drop)
        });
    }
    // Where the bucket is shows the first request, which can be made twice.
    let (id, place) = objects
        .there(|place, moved| {
            let request =
                Request { body: Some(&[]), ..place.request("POST", key, Some("uploads=".into())) };
            let (_, text) = place.ask(&shown, moved, &request, &[200], MOST_ERROR)?;
            let id = xml::upload_id(&text).ok_or_else(|| {
                RemoteError::new(
                    &shown,
                    RemoteFailure::Broken,
                    "the server does not say what the upload is called",
                )
            })?;
            Ok(id)
        })
        .map(|id| (id, objects.place()))?;
    let upload = Upload { place: &place, shown: &shown, key, id };
    let done = upload.send(len, source).and_then(|tags| upload.complete(&tags));
    if done.is_err() {
        // Parts that nobody removes are paid for. What fails here changes nothing: the first failure is told.
        let _ = upload.ask(
            "DELETE",
            format!("uploadId={}", encoded(&upload.id, false)),
            None,
            &[200, 204, 404],
        );
    }
    done
}

/// A source is to end where it was said to.
fn check_end(source: &mut dyn Read) -> Result<(), String> {
    match source.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err("there are more bytes than were to be written".into()),
        Err(error) => Err(format!("what is to be written cannot be read: {error}")),
    }
}

/// An upload in parts that has begun.
struct Upload<'a> {
    place: &'a Place,
    shown: &'a Arc<str>,
    key: &'a str,
    id: String,
}

impl Upload<'_> {
    fn error(&self, what: impl Into<Arc<str>>) -> RemoteError {
        RemoteError::new(self.shown, RemoteFailure::Broken, what)
    }

    fn ask(
        &self,
        method: &'static str,
        query: String,
        body: Option<&[u8]>,
        statuses: &[u16],
    ) -> Result<(super::Answered, String), RemoteError> {
        let request = Request { body, ..self.place.request(method, self.key, Some(query)) };
        self.place.ask(self.shown, &Moved::of(self.place), &request, statuses, MOST_ERROR)
    }

    /// Sends all parts; gives their tags.
    fn send(&self, len: u64, source: &mut dyn Read) -> Result<Vec<String>, RemoteError> {
        let part = PART.max(len.div_ceil(MOST_PARTS).next_multiple_of(1 << 20));
        let mut tags = Vec::new();
        let mut at = 0;
        while at < len {
            let n = part.min(len - at);
            let bytes = read_source(n, &mut source.take(n))
                .map_err(|what| self.error(what).of_range(at, n))?;
            let query =
                format!("partNumber={}&uploadId={}", tags.len() + 1, encoded(&self.id, false));
            let (answered, _) = self
                .ask("PUT", query, Some(&bytes), &[200])
                .map_err(|error| error.of_range(at, n))?;
            if answered.tag.is_empty() {
                return Err(self
                    .error("the server does not say what it took for a part")
                    .of_range(at, n));
            }
            tags.push(answered.tag);
            at += n;
        }
        check_end(source).map_err(|what| self.error(what))?;
        Ok(tags)
    }

    /// Makes the object of its parts.
    fn complete(&self, tags: &[String]) -> Result<(), RemoteError> {
        let body = xml::completion(tags);
        let query = format!("uploadId={}", encoded(&self.id, false));
        let (_, text) = self.ask("POST", query, Some(body.as_bytes()), &[200])?;
        // The status comes before the work is done: what it came to is in the body.
        if xml::is_completion(&text) {
            return Ok(());
        }
        let (code, _) = xml::error(&text);
        Err(self.error(format!(
            "the parts do not become an object{}",
            code.map_or(String::new(), |code| format!(": {code}"))
        )))
    }
}

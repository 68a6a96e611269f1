//! Objects in a bucket of S3, or of a server that speaks as S3 does.

mod address;
mod sign;
mod upload;
mod xml;

use std::io::Read;
use std::sync::Arc;

use zonda_runtime::Settled;
use zonda_runtime::lock::{Mutex, Rank};
use zonda_storage::RemoteFailure;

use super::{ListedObject, ObjectState, Objects, RangeRead, reading};
use crate::client::answer::Answer;
use crate::client::target::Target;
use crate::client::{Again, Client, Failure, Request, failure_of_io, failure_of_status};
use crate::settings::{AwsSettings, Settings};
use crate::url::Protocol;
use crate::{RemoteError, RemoteUrl};
use address::Address;
use sign::{Signer, encoded};

/// An error, or an answer that says little, is no longer.
const MOST_ERROR: u64 = 64 << 10;
/// A page of a list is no longer.
const MOST_PAGE: u64 = 16 << 20;
/// A list has no more objects.
const MOST_LISTED: usize = 10_000_000;
/// And comes in no more pages, however short they are.
const MOST_PAGES: usize = 20_000;

/// The objects of one bucket. Keys are what they are called, without anything escaped.
pub struct S3Objects {
    /// Where the bucket is, as URL and settings say.
    told: Arc<Place>,
    /// Where it was found, as its server said. Neither is waited for: a forked child has both as they were.
    found: Settled<Arc<Place>>,
    /// How messages begin the name of an object.
    shown_root: String,
}

/// A bucket in a region.
struct Place {
    address: Address,
    client: Client,
    signer: Signer,
    /// There are keys, and this server does not get them.
    withholds: bool,
}

impl std::fmt::Debug for S3Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "S3Objects({})", self.shown_root)
    }
}

/// Whether a URL is one of S3: `s3://`, or another with `#mode=s3`.
#[must_use]
pub fn is_s3(url: &RemoteUrl) -> bool {
    address::is_s3(url)
}

impl S3Objects {
    /// The bucket of a URL, with what is set for it now, and the key of the URL.
    ///
    /// # Errors
    /// [`RemoteError`] where the URL or a setting is wrong.
    pub fn new(url: &RemoteUrl) -> Result<(S3Objects, String), RemoteError> {
        let wrong =
            |what: String| RemoteError::new(&url.shown().into(), RemoteFailure::Unusable, what);
        let aws = AwsSettings::of_url(url).map_err(wrong)?;
        let (address, _) = Address::of(url, &aws).map_err(wrong)?;
        let settings = Settings::of_url(url, &address.server, &address.root).map_err(wrong)?;
        S3Objects::with_settings(url, settings, aws)
    }

    /// The same with these settings.
    ///
    /// # Errors
    /// As [`S3Objects::new`].
    pub fn with_settings(
        url: &RemoteUrl,
        settings: Settings,
        aws: AwsSettings,
    ) -> Result<(S3Objects, String), RemoteError> {
        let (address, key) = Address::of(url, &aws)
            .map_err(|what| RemoteError::new(&url.shown().into(), RemoteFailure::Unusable, what))?;
        let shown_root = match url.protocol {
            Protocol::S3 => format!("s3://{}/", address.bucket),
            _ => format!("{}{}", address.server.shown(), address.root),
        };
        // Users and passwords are not of S3, which has keys.
        let settings = Settings { user: None, netrc: None, ..settings };
        let may_have = address.may_have(&aws);
        let withholds = aws.credentials.is_some() && !may_have;
        let credentials = aws.credentials.filter(|_| may_have);
        let signer = Signer { credentials, region: address.region.clone() };
        let client = Client::new(address.server.clone(), settings);
        let place = Place { address, client, signer, withholds };
        Ok((S3Objects { told: Arc::new(place), found: Settled::new(), shown_root }, key))
    }

    fn place(&self) -> Arc<Place> {
        Arc::clone(self.found.get().unwrap_or(&self.told))
    }

    /// Does something where the bucket is; a second time where its server says that it is in another region.
    fn there<T>(
        &self,
        mut run: impl FnMut(&Place, &Moved) -> Result<T, RemoteError>,
    ) -> Result<T, RemoteError> {
        let place = self.place();
        let moved = Moved::of(&place);
        let result = run(&place, &moved);
        let region = moved.region.into_inner();
        let elsewhere =
            region.and_then(|region| place.address.in_region(&region)).filter(|_| result.is_err());
        let Some(address) = elsewhere else { return result };
        let settings =
            Settings { shown_server: address.server.shown(), ..(*place.client.settings).clone() };
        let signer = Signer {
            credentials: place.signer.credentials.clone(),
            region: address.region.clone(),
        };
        let place = Arc::new(Place {
            client: Client::new(address.server.clone(), settings),
            signer,
            withholds: place.withholds,
            address,
        });
        let result = run(&place, &Moved::of(&place));
        if result.is_ok() {
            self.found.settle(place);
        }
        result
    }
}

/// The region that an error named.
struct Moved {
    region: Mutex<Option<String>>,
    /// Of the place that is asked.
    withholds: bool,
}

impl Moved {
    fn of(place: &Place) -> Moved {
        Moved { region: Mutex::ranked(Rank::Servers, None), withholds: place.withholds }
    }

    /// Makes of an answer that is no success what went wrong.
    fn refuse(&self, mut answer: Answer) -> Failure {
        let mut bytes = Vec::new();
        // What cannot be read of it says nothing; the status does.
        let _ = answer.body.by_ref().take(MOST_ERROR).read_to_end(&mut bytes);
        let (code, region) = xml::error(&String::from_utf8_lossy(&bytes));
        let told = answer.header("x-amz-bucket-region");
        let region = Some(told.to_owned()).filter(|told| !told.is_empty()).or(region);
        let mut failure = match code.as_deref() {
            Some("RequestTimeout") => {
                Failure { again: Again::Soon, ..failure_of_status(&answer, code.as_deref()) }
            }
            Some("SlowDown") => Failure {
                again: Again::Overloaded(None),
                ..failure_of_status(&answer, code.as_deref())
            },
            Some(
                "ExpiredToken"
                | "InvalidToken"
                | "AuthorizationHeaderMalformed"
                | "TokenRefreshRequired",
            ) => Failure {
                kind: RemoteFailure::Denied,
                ..failure_of_status(&answer, code.as_deref())
            },
            _ => failure_of_status(&answer, code.as_deref()),
        };
        *self.region.lock() = region;
        if self.withholds && failure.kind == RemoteFailure::Denied {
            failure.what += "; the request was not signed, since only the URL names this server: AWS_ENDPOINT_URL, or AWS.ENDPOINT in .ncrc, says that it gets your keys";
        }
        failure
    }
}

impl Place {
    fn request(&self, method: &'static str, key: &str, query: Option<String>) -> Request<'static> {
        let path = format!("{}{}", self.address.root, encoded(key, true));
        let target = Target { server: self.address.server.clone(), path, query };
        Request { method, ..Request::get(target) }
    }

    /// A request without a body whose answer is one of these, with what the answer has to say.
    fn ask(
        &self,
        shown: &Arc<str>,
        moved: &Moved,
        request: &Request<'_>,
        statuses: &[u16],
        most: u64,
    ) -> Result<(Answered, String), RemoteError> {
        let len = request.body.map_or(0, |body| body.len() as u64);
        self.client.persist(shown, len.max(most.min(1 << 20)), |attempt| {
            let mut answer = self.client.exchange(attempt, request, &self.signer)?;
            if !statuses.contains(&answer.status) {
                return Err(moved.refuse(answer));
            }
            let mut bytes = Vec::new();
            answer
                .body
                .by_ref()
                .take(most + 1)
                .read_to_end(&mut bytes)
                .map_err(|error| failure_of_io(&error))?;
            if bytes.len() as u64 > most {
                return Err(Failure::broken("the answer is too long"));
            }
            let text =
                String::from_utf8(bytes).map_err(|_| Failure::broken("the answer is no text"))?;
            Ok((Answered { tag: answer.header("etag").to_owned() }, text))
        })
    }
}

/// What is kept of the headers of an answer.
struct Answered {
    tag: String,
}

impl Objects for S3Objects {
    fn get_range(
        &self,
        key: &str,
        at: u64,
        buf: &mut [u8],
        known: Option<&ObjectState>,
    ) -> Result<RangeRead, RemoteError> {
        let shown = self.shown(key);
        self.there(|place, moved| {
            reading::get_range(
                &place.client,
                &shown,
                &|| place.request("GET", key, None),
                &place.signer,
                &|answer| moved.refuse(answer),
                &|_| {},
                at,
                buf,
                known,
            )
        })
    }

    fn get(&self, key: &str, most: u64) -> Result<(Vec<u8>, ObjectState), RemoteError> {
        let shown = self.shown(key);
        self.there(|place, moved| {
            reading::get_whole(
                &place.client,
                &shown,
                &|| place.request("GET", key, None),
                &place.signer,
                &|answer| moved.refuse(answer),
                most,
            )
        })
    }

    fn put(&self, key: &str, bytes: &[u8]) -> Result<(), RemoteError> {
        self.put_from(key, bytes.len() as u64, &mut &*bytes)
    }

    fn put_from(&self, key: &str, len: u64, source: &mut dyn Read) -> Result<(), RemoteError> {
        upload::put_from(self, key, len, source)
    }

    fn parallel(&self) -> usize {
        self.place().client.parallel()
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, RemoteError> {
        let shown = self.shown(prefix);
        let wrong = |what: String| RemoteError::new(&shown, RemoteFailure::Broken, what);
        let mut objects: Vec<ListedObject> = Vec::new();
        let mut next: Option<String> = None;
        for _ in 0..MOST_PAGES {
            // In the order of their names, as signatures want them.
            let token = next.as_ref().map_or(String::new(), |token| {
                format!("continuation-token={}&", encoded(token, false))
            });
            let query =
                format!("{token}encoding-type=url&list-type=2&prefix={}", encoded(prefix, false));
            let text = self.there(|place, moved| {
                let mut request = place.request("GET", "", Some(query.clone()));
                // A bucket that is a folder of its server is named without the slash behind it.
                if request.target.path.len() > 1 {
                    request.target.path.truncate(request.target.path.trim_end_matches('/').len());
                }
                place.ask(&shown, moved, &request, &[200], MOST_PAGE)
            })?;
            let page = xml::page(&text.1).map_err(wrong)?;
            let is_over = page.next.is_none();
            if !is_over && (page.objects.is_empty() || page.next == next) {
                return Err(wrong("the list does not come to an end".into()));
            }
            // Who asks for a prefix is not given others.
            objects
                .extend(page.objects.into_iter().filter(|object| object.key.starts_with(prefix)));
            if objects.len() > MOST_LISTED {
                return Err(wrong(format!("there are more than {MOST_LISTED} objects")));
            }
            if is_over {
                zonda_runtime::sort::sort_by(&mut objects, |one, other| one.key.cmp(&other.key));
                return Ok(objects);
            }
            next = page.next;
        }
        Err(wrong(format!("the list has more than {MOST_PAGES} pages")))
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        let shown = self.shown(key);
        self.there(|place, moved| {
            place.ask(
                &shown,
                moved,
                &place.request("DELETE", key, None),
                &[200, 204, 404],
                MOST_ERROR,
            )
        })
        .map(drop)
    }

    fn shown(&self, key: &str) -> Arc<str> {
        format!("{}{}", self.shown_root, encoded(key, true)).into()
    }
}

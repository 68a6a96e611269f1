//! Objects that are read by HTTP, whoever is asked: answers are looked at before a byte of them counts.

use std::io::{ErrorKind, Read};
use std::sync::Arc;

use zonda_storage::RemoteFailure;

use super::{ObjectState, RangeRead, within};
use crate::RemoteError;
use crate::client::answer::{Answer, content_range, unsatisfied_length};
use crate::client::{Again, Authorize, Client, Failure, Request, failure_of_io, failure_of_status};

/// A body whose length is not known is taken in pieces of this many bytes.
const PIECE: usize = 1 << 20;

/// Makes of an answer that is no success what went wrong.
pub(super) type Refuse<'a> = &'a dyn Fn(Answer) -> Failure;

/// The usual one: by the status.
pub(super) fn refuse_by_status(answer: Answer) -> Failure {
    failure_of_status(&answer, None)
}

/// Reads `buf.len()` bytes at byte `at` of what `request` asks for.
pub(super) fn get_range(
    client: &Client,
    shown: &Arc<str>,
    request: &dyn Fn() -> Request<'static>,
    who: &dyn Authorize,
    refuse: Refuse<'_>,
    seen: &dyn Fn(&Answer),
    at: u64,
    buf: &mut [u8],
    known: Option<&ObjectState>,
) -> Result<RangeRead, RemoteError> {
    let asked = (at, buf.len() as u64);
    // Nothing cannot be asked for: one byte is, for what comes with it.
    let mut one = [0];
    let is_empty = buf.is_empty();
    let buf = if is_empty { &mut one[..] } else { buf };
    let last = at.saturating_add(buf.len() as u64 - 1);
    let read = client.persist(shown, buf.len() as u64, |attempt| {
        let mut request = request();
        request.headers.push(("range", format!("bytes={at}-{last}")));
        let answer = client.exchange(attempt, &request, who)?;
        seen(&answer);
        take_range(answer, refuse, at, buf, known, client.settings.most_whole)
    });
    let mut read = read.map_err(|error| error.of_range(asked.0, asked.1))?;
    if is_empty {
        read.got = 0;
    }
    Ok(read)
}

fn take_range(
    answer: Answer,
    refuse: Refuse<'_>,
    at: u64,
    buf: &mut [u8],
    known: Option<&ObjectState>,
    most_whole: u64,
) -> Result<RangeRead, Failure> {
    match answer.status {
        206 => {
            let (first, end, len) =
                content_range(answer.header("content-range")).map_err(Failure::broken)?;
            let wanted = within(at..at.saturating_add(buf.len() as u64), len);
            if (first, end) != (wanted.start, wanted.end) {
                return Err(Failure::broken(format!(
                    "the server sends bytes {first} to {} of {len}, which are not those that were asked for",
                    end - 1
                )));
            }
            let state = answer.state(len);
            check_state(&state, known)?;
            let n = usize::try_from(end - first)
                .map_err(|_| Failure::broken("the range is too long"))?;
            check_length(&answer, n as u64)?;
            let buf = buf.get_mut(..n).ok_or_else(|| Failure::broken("the range is too long"))?;
            read_body(answer, buf)?;
            Ok(RangeRead { got: n, state, whole: None })
        }
        200 => {
            let (bytes, state) =
                take_whole(answer, known, most_whole, "the server sends no ranges, and ")?;
            let wanted = within(at..at.saturating_add(buf.len() as u64), state.len);
            // It fits: both ends are within the bytes.
            let part = &bytes[wanted.start as usize..wanted.end as usize];
            buf[..part.len()].copy_from_slice(part);
            let got = part.len();
            let is_all = got == bytes.len();
            Ok(RangeRead { got, state, whole: (!is_all).then_some(bytes) })
        }
        // Nothing is there: the range begins behind the end.
        416 => match unsatisfied_length(answer.header("content-range")) {
            Some(len) if len <= at => {
                // Answers of this kind need not say which object they are of; what they say has to be right.
                let mut state = answer.state(len);
                if let Some(known) = known.filter(|_| state.validator.is_empty()) {
                    state.validator.clone_from(&known.validator);
                }
                check_state(&state, known)?;
                Ok(RangeRead { got: 0, state, whole: None })
            }
            _ => Err(Failure::broken(
                "status 416: the server has no such range, which the object should have",
            )),
        },
        _ => Err(refuse(answer)),
    }
}

/// A whole object of at most `most` bytes.
pub(super) fn get_whole(
    client: &Client,
    shown: &Arc<str>,
    request: &dyn Fn() -> Request<'static>,
    who: &dyn Authorize,
    refuse: Refuse<'_>,
    most: u64,
) -> Result<(Vec<u8>, ObjectState), RemoteError> {
    client.persist(shown, most, |attempt| {
        let answer = client.exchange(attempt, &request(), who)?;
        if answer.status == 200 { take_whole(answer, None, most, "") } else { Err(refuse(answer)) }
    })
}

/// All bytes of an answer that has the whole object.
fn take_whole(
    mut answer: Answer,
    known: Option<&ObjectState>,
    most: u64,
    why: &str,
) -> Result<(Vec<u8>, ObjectState), Failure> {
    // Another program writes to a disk what comes.
    let advice =
        if why.is_empty() { "" } else { "; fetch it once, as by curl -O, and open the file" };
    let too_long = |len: &str| {
        Failure::of(
            RemoteFailure::Unusable,
            format!(
                "{why}the object has {len} bytes: more than may be read of it at once ({most}){advice}"
            ),
        )
    };
    let told = answer.content_length().map_err(Failure::broken)?;
    if let Some(len) = told.filter(|len| *len > most) {
        return Err(too_long(&len.to_string()));
    }
    if let Some(len) = told {
        check_state(&answer.state(len), known)?;
    } else if answer.header("transfer-encoding").is_empty() {
        // A connection that breaks looks like the end.
        return Err(Failure::broken(format!(
            "{why}the answer does not say how long it is: neither by Content-Length nor in chunks"
        )));
    }
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        let n = bytes.len();
        if n as u64 > most {
            return Err(too_long("too many"));
        }
        // The length that a server tells is no reason to take memory: what has come is, and a little.
        let room = PIECE.max(n).min(told.map_or(usize::MAX, |len| {
            usize::try_from(len).unwrap_or(usize::MAX).saturating_sub(n).saturating_add(1)
        }));
        bytes.try_reserve_exact(room).map_err(|_| {
            Failure::of(RemoteFailure::NoMemory, format!("no memory for {} bytes", n + room))
        })?;
        let came = answer.body.by_ref().take(room as u64).read_to_end(&mut bytes);
        let came = came.map_err(|error| ended(&error, bytes.len() as u64, told))?;
        if came == 0 {
            break;
        }
    }
    let len = bytes.len() as u64;
    if len > most {
        return Err(too_long("too many"));
    }
    if told.is_some_and(|told| told != len) {
        return Err(Failure::broken(format!(
            "the body has {len} bytes, not those that its Content-Length says"
        )));
    }
    let state = answer.state(len);
    check_state(&state, known)?;
    Ok((bytes, state))
}

/// Compares an answer with the object that was opened.
fn check_state(state: &ObjectState, known: Option<&ObjectState>) -> Result<(), Failure> {
    match known {
        Some(known) if known != state => {
            Err(Failure::broken("the object has changed since it was opened"))
        }
        _ => Ok(()),
    }
}

fn check_length(answer: &Answer, n: u64) -> Result<(), Failure> {
    match answer.content_length().map_err(Failure::broken)? {
        Some(len) if len != n => {
            Err(Failure::broken(format!("the body is to have {len} bytes, and its range has {n}")))
        }
        _ => Ok(()),
    }
}

/// Fills `buf` from a body that has to have just as many bytes.
fn read_body(mut answer: Answer, buf: &mut [u8]) -> Result<(), Failure> {
    let mut n = 0;
    while n < buf.len() {
        match answer.body.read(&mut buf[n..]) {
            Ok(0) => {
                return Err(ended(
                    &ErrorKind::UnexpectedEof.into(),
                    n as u64,
                    Some(buf.len() as u64),
                ));
            }
            Ok(came) => n += came,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(ended(&error, n as u64, Some(buf.len() as u64))),
        }
    }
    // The end of the body, after which the connection can be used again.
    match answer.body.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Failure::broken("the body has more bytes than its range")),
        Err(error) => Err(ended(&error, n as u64, Some(n as u64))),
    }
}

/// A body that ended or stopped too early.
fn ended(error: &std::io::Error, n: u64, of: Option<u64>) -> Failure {
    let failure = failure_of_io(error);
    let of = of.map_or(String::new(), |of| format!(" of {of}"));
    // A connection that gave the headers was no old one.
    let again = if failure.again == Again::AtOnce { Again::Soon } else { failure.again };
    Failure { what: format!("{} after {n}{of} bytes", failure.what), again, ..failure }
}

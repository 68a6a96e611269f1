//! What a storage answered in a common step, in order, and the same as bytes.
//!
//! Numbers are 8 bytes, little-endian. An answer is a tag, what was asked, and the answer. What was asked is there so that a replica
//! that asks for something else is found out.

use std::sync::Arc;

use zonda_storage::{StorageError, StorageStamp};

/// Why a record is none, or was not followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The bytes that came are no record.
    #[error("the record of rank 0 is damaged at byte {at} of {len}")]
    Damaged {
        /// Where, in bytes.
        at: usize,
        /// How long the record is.
        len: usize,
    },
    /// This rank did something else than rank 0.
    #[error(
        "this rank asked for {asked} where rank 0 asked for {expected}: the definitions of the ranks differ"
    )]
    Diverged {
        /// What this rank asked for.
        asked: String,
        /// What is next in the record.
        expected: String,
    },
}

/// What was asked of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub what: What,
    /// Where, in bytes; 0 where the operation has no place.
    pub at: u64,
    /// How many bytes.
    pub len: u64,
}

/// The operations that answer something, or can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Read,
    Write,
    Fill,
    Len,
    SetLen,
    Barrier,
    Sync,
    Invalidate,
    Stamp,
    /// Of the neighbours of the file.
    MakeSidecar,
    FindSidecar,
    RemoveSidecar,
    SettleSidecars,
}

impl What {
    const ALL: [What; 13] = [
        What::Read,
        What::Write,
        What::Fill,
        What::Len,
        What::SetLen,
        What::Barrier,
        What::Sync,
        What::Invalidate,
        What::Stamp,
        What::MakeSidecar,
        What::FindSidecar,
        What::RemoveSidecar,
        What::SettleSidecars,
    ];
}

impl What {
    /// Whether it leaves the file as it is.
    pub(crate) fn only_reads(self) -> bool {
        matches!(self, What::Read | What::Len | What::Stamp | What::FindSidecar)
    }
}

impl std::fmt::Display for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {} bytes at byte {}", self.what, self.len, self.at)
    }
}

/// What a storage answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Bytes(Vec<u8>),
    Number(u64),
    Stamp(StorageStamp),
    Failed(StorageError),
}

/// All that was asked and answered in a common step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub answers: Vec<(Asked, Answer)>,
}

impl Record {
    /// The record as bytes. An error becomes one of the rank `of`.
    pub(crate) fn encode(&self, of: usize) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.answers.len() as u64);
        for (asked, answer) in &self.answers {
            out.push(asked.what as u8);
            put(&mut out, asked.at);
            put(&mut out, asked.len);
            encode_answer(&mut out, answer, of);
        }
        out
    }

    /// The record that bytes are.
    ///
    /// # Errors
    /// [`RecordError::Damaged`].
    pub(crate) fn decode(bytes: &[u8]) -> Result<Record, RecordError> {
        let mut from = Reader { bytes, at: 0 };
        let n = from.number()?;
        let mut answers = Vec::new();
        for _ in 0..n {
            let tag = usize::from(from.byte()?);
            let what = *What::ALL.get(tag).ok_or_else(|| from.damaged())?;
            let asked = Asked { what, at: from.number()?, len: from.number()? };
            answers.push((asked, decode_answer(&mut from)?));
        }
        if from.at == bytes.len() { Ok(Record { answers }) } else { Err(from.damaged()) }
    }
}

fn put(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn encode_answer(out: &mut Vec<u8>, answer: &Answer, of: usize) {
    match answer {
        Answer::Done => out.push(0),
        Answer::Bytes(bytes) => {
            out.push(1);
            put_bytes(out, bytes);
        }
        Answer::Number(number) => {
            out.push(2);
            put(out, *number);
        }
        Answer::Stamp(stamp) => {
            out.push(3);
            put(out, stamp.len);
            stamp.changed.iter().for_each(|n| put(out, *n as u64));
        }
        Answer::Failed(error) => {
            out.push(4);
            let (rank, text) = match error {
                StorageError::OfRank { rank, text, .. } => (*rank, text.to_string()),
                error => (of, error.to_string()),
            };
            put(out, rank as u64);
            put(out, error.raw_os_error() as u64);
            put(out, error.offset().unwrap_or(u64::MAX));
            out.push(u8::from(error.is_lost_sync()) | u8::from(error.is_refused()) << 1);
            put_bytes(out, text.as_bytes());
        }
    }
}

fn decode_answer(from: &mut Reader<'_>) -> Result<Answer, RecordError> {
    Ok(match from.byte()? {
        0 => Answer::Done,
        1 => Answer::Bytes(from.bytes()?.to_vec()),
        2 => Answer::Number(from.number()?),
        3 => {
            let mut stamp = StorageStamp { len: from.number()?, ..StorageStamp::default() };
            for number in &mut stamp.changed {
                *number = from.number()? as i64;
            }
            Answer::Stamp(stamp)
        }
        4 => {
            let rank = usize::try_from(from.number()?).map_err(|_| from.damaged())?;
            let errno = i32::try_from(from.number()? as i64).map_err(|_| from.damaged())?;
            let at = from.number()?;
            let flags = from.byte()?;
            let text = String::from_utf8_lossy(from.bytes()?).into_owned();
            Answer::Failed(StorageError::OfRank {
                rank,
                errno,
                at: Some(at).filter(|at| *at != u64::MAX),
                lost_sync: flags & 1 != 0,
                refused: flags & 2 != 0,
                text: Arc::from(text),
            })
        }
        _ => return Err(from.damaged()),
    })
}

/// Bytes that are read from their beginning.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn damaged(&self) -> RecordError {
        RecordError::Damaged { at: self.at, len: self.bytes.len() }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], RecordError> {
        let end = self.at.checked_add(len).ok_or_else(|| self.damaged())?;
        let taken = self.bytes.get(self.at..end).ok_or_else(|| self.damaged())?;
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, RecordError> {
        Ok(self.take(1)?.first().copied().unwrap_or(0))
    }

    fn number(&mut self) -> Result<u64, RecordError> {
        let bytes = self.take(8)?;
        let mut number = [0; 8];
        number.copy_from_slice(bytes);
        Ok(u64::from_le_bytes(number))
    }

    fn bytes(&mut self) -> Result<&'a [u8], RecordError> {
        let len = usize::try_from(self.number()?).map_err(|_| self.damaged())?;
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let asked = |what, at, len| Asked { what, at, len };
        let failed = StorageError::OfRank {
            rank: 0,
            errno: 28,
            at: Some(7),
            lost_sync: true,
            refused: false,
            text: Arc::from("no room"),
        };
        Record {
            answers: vec![
                (asked(What::Read, 8, 3), Answer::Bytes(vec![1, 2, 3])),
                (asked(What::Len, 0, 0), Answer::Number(u64::MAX)),
                (
                    asked(What::Stamp, 0, 0),
                    Answer::Stamp(StorageStamp { len: 4, changed: [-1, 2, 3, 4, 5] }),
                ),
                (asked(What::Write, 1 << 40, 9), Answer::Done),
                (asked(What::SettleSidecars, 0, 0), Answer::Failed(failed)),
            ],
        }
    }

    #[test]
    fn tags_are_places_in_the_list() {
        assert!(What::ALL.iter().enumerate().all(|(at, what)| *what as usize == at));
    }

    #[test]
    fn a_record_comes_back() {
        assert_eq!(Record::decode(&record().encode(0)), Ok(record()));
    }

    #[test]
    fn an_error_keeps_its_meaning() {
        let own = StorageError::NoPlace { at: 3, len: 4, most: 5 };
        let asked = Asked { what: What::Write, at: 3, len: 4 };
        let sent = Record { answers: vec![(asked, Answer::Failed(own.clone()))] };
        let came = Record::decode(&sent.encode(6)).unwrap();
        let Answer::Failed(error) = &came.answers[0].1 else { panic!("{came:?}") };
        assert_eq!((error.raw_os_error(), error.offset()), (own.raw_os_error(), own.offset()));
        assert_eq!(error.to_string(), format!("on MPI rank 6: {own}"));
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let whole = record().encode(0);
        for len in 0..whole.len() {
            assert!(
                matches!(Record::decode(&whole[..len]), Err(RecordError::Damaged { .. })),
                "{len}"
            );
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut other = whole.clone();
                other[at] ^= 1 << bit;
                // What counts and lengths say is believed only as far as there are bytes.
                let _ = Record::decode(&other);
            }
        }
    }
}

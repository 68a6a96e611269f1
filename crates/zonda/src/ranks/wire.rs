//! How orders and replies are written.

use zonda_model::{Answer, NcError};

use crate::error::{Error, Result};

/// All kinds of answers: each goes by its place.
const ANSWERS: [Answer; 9] = [
    Answer::Request,
    Answer::Missing,
    Answer::System,
    Answer::NoMemory,
    Answer::Unrepresentable,
    Answer::Refused,
    Answer::Undecodable,
    Answer::Unknown,
    Answer::Damaged,
];

/// Numbers and texts, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    pub bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text);
    }

    pub(crate) fn numbers(&mut self, numbers: &[u64]) {
        self.number(numbers.len() as u64);
        numbers.iter().for_each(|number| self.number(*number));
    }
}

/// Reads what a [`Writer`] wrote.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Reader<'a> {
        Reader { rest }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        let (number, rest) = self.rest.split_first_chunk().ok_or_else(unreadable)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*number))
    }

    pub(crate) fn len(&mut self) -> Result<usize> {
        usize::try_from(self.number()?).map_err(|_| unreadable())
    }

    pub(crate) fn text(&mut self) -> Result<&'a [u8]> {
        let len = self.len()?;
        let (text, rest) = self.rest.split_at_checked(len).ok_or_else(unreadable)?;
        self.rest = rest;
        Ok(text)
    }

    pub(crate) fn numbers(&mut self) -> Result<Vec<u64>> {
        let n = self.len()?;
        // As many as the message can have.
        if n > self.rest.len() / 8 {
            return Err(unreadable());
        }
        (0..n).map(|_| self.number()).collect()
    }
}

/// Ranks of one program understand each other, unless they are of several versions.
pub(crate) fn unreadable() -> Error {
    let why = "ranks do not understand each other: is it one version of the program on all nodes?";
    Error::answered(NcError::Mpi, Answer::Request, why)
}

pub(crate) fn put_error(to: &mut Writer, error: &Error) {
    let answer = ANSWERS.iter().position(|answer| *answer == error.answer()).unwrap_or(0);
    to.number(u64::from(error.code().code().cast_unsigned()));
    to.number(answer as u64);
    to.number(error.offset().map_or(0, |at| at.saturating_add(1)));
    to.text(error.cause().as_bytes());
}

/// The error that a rank told; rank 0 tells it as its own. Damage is the same whoever finds it; of other errors it counts on which
/// rank, and so on which node, they were met.
pub(crate) fn error(from: &mut Reader<'_>, rank: Option<usize>) -> Error {
    let mut read = || -> Result<Error> {
        let code = from.number()? as u32;
        let code = NcError::from_code(code.cast_signed()).unwrap_or(NcError::Internal);
        let answer = ANSWERS.get(from.len()?).copied().ok_or_else(unreadable)?;
        let at = from.number()?.checked_sub(1);
        let cause = String::from_utf8_lossy(from.text()?).into_owned();
        let is_of_file =
            [Answer::Damaged, Answer::Undecodable, Answer::Unrepresentable].contains(&answer);
        let text = match rank.filter(|_| !is_of_file) {
            Some(rank) => format!("rank {rank}: {cause}"),
            None => cause,
        };
        let error = Error::answered(code, answer, text);
        Ok(at.into_iter().fold(error, Error::about_byte))
    };
    read().unwrap_or_else(|error| error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut to = Writer::default();
        to.number(u64::MAX);
        to.text(b"/v");
        to.numbers(&[1, 2, 3]);
        let mut from = Reader::new(&to.bytes);
        assert_eq!(from.number().unwrap(), u64::MAX);
        assert_eq!(from.text().unwrap(), b"/v");
        assert_eq!(from.numbers().unwrap(), [1, 2, 3]);
        assert!(from.is_at_end() && from.number().is_err());
        for cut in 8..to.bytes.len() {
            let mut from = Reader::new(&to.bytes[..cut]);
            let read = from.number().and_then(|_| from.text()).and_then(|_| from.numbers());
            assert!(read.is_err(), "{cut}");
        }
        let mut long = Writer::default();
        long.number(u64::MAX);
        assert!(Reader::new(&long.bytes).numbers().is_err());
        assert!(Reader::new(&long.bytes).text().is_err());
    }

    #[test]
    fn errors_are_told_again() {
        for (answer, text) in [
            (Answer::Damaged, "/v: chunk [0] at byte 7"),
            (Answer::NoMemory, "rank 3: /v: chunk [0] at byte 7"),
        ] {
            let told = "/v: chunk [0] at byte 7";
            let first = Error::answered(NcError::HdfErr, answer, told).about_byte(7);
            let mut to = Writer::default();
            put_error(&mut to, &first);
            let second = error(&mut Reader::new(&to.bytes), Some(3));
            assert_eq!(second.cause(), text);
            assert_eq!((second.code(), second.answer()), (NcError::HdfErr, answer));
            assert_eq!(second.offset(), Some(7));
        }
        assert_eq!(error(&mut Reader::new(&[1]), None).code(), NcError::Mpi);
    }
}

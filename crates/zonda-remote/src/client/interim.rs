//! Answers that come before the answer: `100 Continue`, `103 Early Hints` and others of their kind, which any server may send (RFC 9110, 15.2).
//!
//! ureq skips them, too, but counts what comes behind one in the same read as a header, and any number of them.

use ureq::unversioned::transport::Buffers;

/// More of them are no way to answer.
const MOST_INTERIM: usize = 16;
/// One is no longer.
const MOST_BYTES: usize = 16 << 10;

/// What was seen of the answer to one request.
#[derive(Debug, Default)]
pub(super) struct Interim {
    n_skipped: usize,
    /// What comes now is of the answer itself.
    is_over: bool,
}

impl Interim {
    /// Takes answers before the answer out of what has come. Whether what is left begins the answer itself: else more has to come to know.
    pub(super) fn is_over(&mut self, buffers: &mut dyn Buffers) -> Result<bool, ureq::Error> {
        while !self.is_over {
            match beginning(buffers.input()) {
                Beginning::Other => self.is_over = true,
                Beginning::Unknown => return Ok(false),
                Beginning::Interim(len) => {
                    buffers.input_consume(len);
                    self.n_skipped += 1;
                    if self.n_skipped > MOST_INTERIM {
                        return Err(ureq::Error::LargeResponseHeader(MOST_BYTES, MOST_BYTES));
                    }
                }
            }
        }
        Ok(true)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Beginning {
    /// An answer of so many bytes before the answer.
    Interim(usize),
    /// Too few bytes to say.
    Unknown,
    /// Nothing to be skipped; it need not be an answer at all.
    Other,
}

fn beginning(bytes: &[u8]) -> Beginning {
    // Spaces stand for any digit.
    const STATUS_LINE: &[u8] = b"HTTP/1.  1";
    let fits = |(byte, wanted): (&u8, &u8)| byte == wanted || (*wanted == b' ');
    if !bytes.iter().zip(STATUS_LINE).all(fits) {
        return Beginning::Other;
    }
    if bytes.len() < 12 {
        return Beginning::Unknown;
    }
    if bytes.get(9..12) == Some(b"101") {
        // That one is the answer: the server speaks something else from here on.
        return Beginning::Other;
    }
    let end = bytes.windows(4).take(MOST_BYTES).position(|four| four == b"\r\n\r\n");
    match end {
        Some(at) => Beginning::Interim(at + 4),
        None if bytes.len() < MOST_BYTES => Beginning::Unknown,
        // The parser says what is wrong with it.
        None => Beginning::Other,
    }
}

#[cfg(test)]
mod tests {
    use ureq::unversioned::transport::LazyBuffers;

    use super::*;

    /// What is left of bytes that come in such pieces, once the answer has begun.
    fn left(bytes: &[u8], piece: usize) -> Result<Vec<u8>, ureq::Error> {
        let mut buffers = LazyBuffers::new(1 << 20, 1);
        let mut interim = Interim::default();
        for part in bytes.chunks(piece) {
            buffers.input_append_buf()[..part.len()].copy_from_slice(part);
            buffers.input_appended(part.len());
            interim.is_over(&mut buffers)?;
        }
        Ok(buffers.input().to_vec())
    }

    #[test]
    fn answers_before_the_answer_are_skipped_however_they_come() {
        let answer = b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 100 is of the body\r\n\r\n";
        let early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
        let go_on = b"HTTP/1.1 100 Continue\r\n\r\n";
        for piece in [1, 2, 7, 12, 13, 1000] {
            for before in [&[][..], early, go_on, &[&early[..], go_on, early].concat()] {
                let all = [before, answer].concat();
                assert_eq!(left(&all, piece).unwrap(), answer, "{piece}");
            }
        }
        for other in
            ["HTTP/1.1 101 Other\r\n\r\n", "HTTP/2 103", "", "HTTP/1.0 20", "<html>\r\n\r\n"]
        {
            assert_eq!(left(other.as_bytes(), 3).unwrap(), other.as_bytes());
        }
        assert!(left(&go_on.repeat(MOST_INTERIM + 1), 9).is_err());
        let long = [b"HTTP/1.1 103 Early\r\nx: ".as_slice(), &[b'y'; MOST_BYTES]].concat();
        assert_eq!(left(&long, 4096).unwrap(), long, "is for the parser to refuse");
    }
}

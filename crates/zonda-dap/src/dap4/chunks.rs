//! The chunks in which a body comes: a DMR in the first, then bytes of values, cut anywhere.
//! Spec: DAP4, volume 1, "DAP4 chunked data representation".
//!
//! A chunk begins with four bytes: flags, and the length of what follows as a number of 24 bits, most significant byte first.

use std::io::{ErrorKind, Read};

use crate::dap4::error;
use crate::error::{DapError, Document};

/// Flag: no chunk comes after this one.
pub const LAST: u8 = 1;
/// Flag: an error of the server, in place of all that was to come.
pub const ERROR: u8 = 2;
/// Flag of the first chunk: values have their least significant byte first.
pub const LITTLE_ENDIAN: u8 = 4;
/// Flag of the first chunk: no checksums come after the variables.
pub const NO_CHECKSUMS: u8 = 8;
/// Bytes that are read ahead where fewer are asked for.
const AHEAD: usize = 16 << 10;
/// Longest chunk.
pub const MOST_BYTES: usize = 0xff_ffff;

/// Bytes of a message, or of what is no body at all, that are read.
const MOST_MESSAGE: u64 = 64 << 10;
/// Chunks without bytes, one after the other: a server could send them for ever.
const MOST_EMPTY: u32 = 1000;
/// Flags that mean something.
const KNOWN: u8 = LAST | ERROR | LITTLE_ENDIAN | NO_CHECKSUMS;

/// A body that is read.
pub struct Chunks<R> {
    inner: R,
    flags: u8,
    /// Bytes of the chunk that are still to come.
    left: usize,
    is_last: bool,
    /// Bytes of the body that were read.
    at: u64,
    crc: crc32fast::Hasher,
    /// Bytes of values that are here.
    ahead: Vec<u8>,
    /// How many of these are taken.
    taken: usize,
    /// How many of those are in the checksum.
    summed: usize,
}

fn malformed(at: u64, what: impl Into<String>) -> DapError {
    DapError::malformed(Document::Dap, at, what)
}

impl<R: Read> Chunks<R> {
    /// Reads the first chunk: the text of the DMR.
    ///
    /// # Errors
    /// A body that is none: of an error, a page; what the reader says.
    pub fn begin(mut inner: R) -> Result<(Vec<u8>, Chunks<R>), DapError> {
        let mut header = [0; 4];
        let len = read_full(&mut inner, &mut header)?;
        let [flags, ..] = header;
        let is_text = header.first().is_some_and(|first| first & !KNOWN != 0);
        if len < header.len() || is_text {
            let mut text = header.get(..len).unwrap_or_default().to_vec();
            text.extend(message(&mut inner, MOST_MESSAGE)?);
            if len == 0 || is_text {
                return Err(error::of_text(Document::Dap, &text));
            }
            return Err(malformed(len as u64, "the body ends in the header of its first chunk"));
        }
        let crc = crc32fast::Hasher::new();
        let (ahead, taken, summed) = (Vec::new(), 0, 0);
        let (left, is_last, at) = (0, false, 4);
        let mut chunks = Chunks { inner, flags, left, is_last, at, crc, ahead, taken, summed };
        chunks.take_header(header)?;
        let mut dmr = Vec::new();
        let len = chunks.left;
        if len == 0 {
            return Err(malformed(4, "the first chunk, which should have the DMR, is empty"));
        }
        // A length is believed only as its bytes come.
        let read = (&mut chunks.inner).take(len as u64).read_to_end(&mut dmr);
        read.map_err(|error| DapError::of_io(Document::Dap, &error))?;
        chunks.at = chunks.at.saturating_add(dmr.len() as u64);
        chunks.left = len.saturating_sub(dmr.len());
        if chunks.left > 0 {
            return Err(chunks.ended("in the DMR"));
        }
        Ok((dmr, chunks))
    }

    /// Whether values have their least significant byte first.
    #[must_use]
    pub fn is_little_endian(&self) -> bool {
        self.flags & LITTLE_ENDIAN != 0
    }

    /// Whether the sender says that it has no checksums.
    #[must_use]
    pub fn says_no_checksums(&self) -> bool {
        self.flags & NO_CHECKSUMS != 0
    }

    /// Bytes of the body that were read, headers included.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.at.saturating_sub(self.here().len() as u64)
    }

    /// The checksum of all bytes taken since the last call.
    pub fn take_crc(&mut self) -> u32 {
        self.sum();
        std::mem::take(&mut self.crc).finalize()
    }

    /// Bytes that are here and not taken.
    fn here(&self) -> &[u8] {
        self.ahead.get(self.taken..).unwrap_or_default()
    }

    /// Adds what was taken to the checksum.
    fn sum(&mut self) {
        self.crc.update(self.ahead.get(self.summed..self.taken).unwrap_or_default());
        self.summed = self.taken;
    }

    /// The next bytes of values, all of `to`.
    ///
    /// # Errors
    /// A body that ends before, or has an error in it.
    pub fn fill(&mut self, to: &mut [u8], what: &str) -> Result<(), DapError> {
        let mut done = 0_usize;
        while let Some(rest) = to.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let here = self.here();
            let len = if here.is_empty() && rest.len() >= AHEAD {
                let len = self.some(rest, what)?;
                // What was taken of the bytes ahead comes before these.
                self.sum();
                self.crc.update(rest.get(..len).unwrap_or_default());
                len
            } else if here.is_empty() {
                self.read_ahead(what)?;
                0
            } else {
                let len = here.len().min(rest.len());
                if let (Some(to), Some(from)) = (rest.get_mut(..len), here.get(..len)) {
                    to.copy_from_slice(from);
                }
                self.taken = self.taken.saturating_add(len);
                len
            };
            done = done.saturating_add(len);
        }
        Ok(())
    }

    /// The next four bytes, which are a checksum.
    ///
    /// # Errors
    /// As [`Chunks::fill`].
    pub fn checksum(&mut self, what: &str) -> Result<[u8; 4], DapError> {
        let mut bytes = [0; 4];
        self.sum();
        self.fill(&mut bytes, &format!("the checksum of {what}"))?;
        self.summed = self.taken;
        Ok(bytes)
    }

    /// The next four bytes without taking them; `None` where values end before.
    ///
    /// # Errors
    /// As [`Chunks::fill`].
    pub fn peek(&mut self) -> Result<Option<[u8; 4]>, DapError> {
        while self.here().len() < 4 {
            if !self.has_more()? {
                return Ok(None);
            }
            self.read_ahead("a checksum")?;
        }
        Ok(self.here().first_chunk().copied())
    }

    /// Reads to the end of the body, where no values are left.
    ///
    /// # Errors
    /// Bytes that are left, in the last chunk, in more chunks or behind them; no last chunk.
    pub fn finish(mut self) -> Result<(), DapError> {
        if !self.here().is_empty() || self.has_more()? {
            let at = self.position();
            return Err(malformed(at, "more bytes come than the variables have"));
        }
        // An editor may have ended a saved response with the end of a line.
        let mut bytes = [0; 3];
        let len = read_full(&mut self.inner, &mut bytes)?;
        let after = bytes.get(..len).unwrap_or_default();
        if !matches!(after, [] | b"\n" | b"\r\n") {
            return Err(malformed(self.at, "bytes come after the last chunk"));
        }
        Ok(())
    }

    /// Gets some more bytes of values. What is here and not taken stays.
    fn read_ahead(&mut self, what: &str) -> Result<(), DapError> {
        self.sum();
        self.ahead.drain(..self.taken.min(self.ahead.len()));
        (self.taken, self.summed) = (0, 0);
        let mut block = [0; AHEAD];
        let room = AHEAD.saturating_sub(self.ahead.len());
        let block = block.get_mut(..room).unwrap_or_default();
        let got = self.some(block, what)?;
        self.ahead.extend_from_slice(block.get(..got).unwrap_or_default());
        Ok(())
    }

    /// Some bytes of values, at least one: those that come of this chunk, or of the next one that has any.
    fn some(&mut self, to: &mut [u8], what: &str) -> Result<usize, DapError> {
        if !self.has_more()? {
            return Err(malformed(self.at, format!("values end early, in {what}")));
        }
        let len = to.len().min(self.left);
        let to = to.get_mut(..len).unwrap_or_default();
        loop {
            let got = match self.inner.read(to) {
                Ok(0) => return Err(self.ended(what)),
                Ok(got) => got.min(len),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(DapError::of_io(Document::Dap, &error)),
            };
            self.left = self.left.saturating_sub(got);
            self.at = self.at.saturating_add(got as u64);
            return Ok(got);
        }
    }

    /// Whether a byte of values is left in this chunk or a later one.
    fn has_more(&mut self) -> Result<bool, DapError> {
        let mut n_empty = 0_u32;
        while self.left == 0 {
            if self.is_last {
                return Ok(false);
            }
            let mut header = [0; 4];
            let len = read_full(&mut self.inner, &mut header)?;
            if len < header.len() {
                let at = self.at.saturating_add(len as u64);
                return Err(malformed(at, "the body ends without a last chunk"));
            }
            self.at = self.at.saturating_add(4);
            self.take_header(header)?;
            n_empty = n_empty.saturating_add(1);
            if n_empty > MOST_EMPTY {
                return Err(malformed(self.at, format!("{MOST_EMPTY} chunks without bytes")));
            }
        }
        Ok(true)
    }

    fn take_header(&mut self, [flags, a, b, c]: [u8; 4]) -> Result<(), DapError> {
        // Fits, having three bytes.
        self.left = usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or(MOST_BYTES);
        self.is_last = flags & LAST != 0;
        if flags & ERROR != 0 {
            let text = message(&mut self.inner, MOST_MESSAGE.min(self.left as u64))?;
            return Err(error::of_text(Document::Dap, &text));
        }
        Ok(())
    }

    fn ended(&self, what: &str) -> DapError {
        let left = self.left;
        malformed(self.at, format!("the body ends {left} bytes before its chunk does, in {what}"))
    }
}

/// Reads until `to` is full or the reader ends.
fn read_full(inner: &mut impl Read, to: &mut [u8]) -> Result<usize, DapError> {
    let mut done = 0_usize;
    while let Some(rest) = to.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match inner.read(rest) {
            Ok(0) => break,
            Ok(got) => done = done.saturating_add(got),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(DapError::of_io(Document::Dap, &error)),
        }
    }
    Ok(done)
}

/// So many bytes, or as many as come.
fn message(inner: &mut impl Read, most: u64) -> Result<Vec<u8>, DapError> {
    let mut text = Vec::new();
    let read = inner.take(most).read_to_end(&mut text);
    read.map_err(|error| DapError::of_io(Document::Dap, &error))?;
    Ok(text)
}

impl<R> std::fmt::Debug for Chunks<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunks").field("at", &self.at).field("left", &self.left).finish()
    }
}

/// Writes chunks, none longer than `most` bytes, and nothing of values before a chunk is full.
#[derive(Debug)]
pub struct ChunkWriter<W> {
    inner: W,
    most: usize,
    pending: Vec<u8>,
    crc: crc32fast::Hasher,
}

impl<W: std::io::Write> ChunkWriter<W> {
    /// Writes the first chunk. `flags` are those of the first chunk, [`LITTLE_ENDIAN`] and [`NO_CHECKSUMS`]; `most` is the longest that chunks of values
    /// become, at most [`MOST_BYTES`] and at least 1.
    ///
    /// # Errors
    /// A DMR that is longer than a chunk; what the writer says.
    pub fn begin(mut inner: W, flags: u8, dmr: &str, most: usize) -> std::io::Result<Self> {
        chunk(&mut inner, flags & !(LAST | ERROR), dmr.as_bytes())?;
        let most = most.clamp(1, MOST_BYTES);
        Ok(ChunkWriter { inner, most, pending: Vec::new(), crc: crc32fast::Hasher::new() })
    }

    /// Adds bytes of values.
    ///
    /// # Errors
    /// What the writer says.
    pub fn values(&mut self, mut bytes: &[u8]) -> std::io::Result<()> {
        self.crc.update(bytes);
        while !bytes.is_empty() {
            let room = self.most.saturating_sub(self.pending.len());
            let (now, after) = bytes.split_at(room.min(bytes.len()));
            self.pending.extend_from_slice(now);
            bytes = after;
            if self.pending.len() >= self.most {
                chunk(&mut self.inner, 0, &std::mem::take(&mut self.pending))?;
            }
        }
        Ok(())
    }

    /// Adds the checksum of all values since the last one.
    ///
    /// # Errors
    /// What the writer says.
    pub fn checksum(&mut self, little_endian: bool) -> std::io::Result<()> {
        let crc = std::mem::take(&mut self.crc).finalize();
        let bytes = if little_endian { crc.to_le_bytes() } else { crc.to_be_bytes() };
        self.values(&bytes)?;
        self.crc.reset();
        Ok(())
    }

    /// Writes what is left as the last chunk.
    ///
    /// # Errors
    /// What the writer says.
    pub fn end(mut self) -> std::io::Result<W> {
        chunk(&mut self.inner, LAST, &self.pending)?;
        Ok(self.inner)
    }

    /// Ends with an error in place of what was to come.
    ///
    /// # Errors
    /// What the writer says.
    pub fn fail(mut self, http_code: u16, message: &str) -> std::io::Result<W> {
        let text = error::write(http_code, message);
        chunk(&mut self.inner, LAST | ERROR, text.as_bytes())?;
        Ok(self.inner)
    }
}

fn chunk(inner: &mut impl std::io::Write, flags: u8, bytes: &[u8]) -> std::io::Result<()> {
    let too_long = || std::io::Error::new(ErrorKind::InvalidInput, "longer than a chunk can be");
    let len = u32::try_from(bytes.len()).ok().filter(|len| *len <= 0xff_ffff);
    let [_, a, b, c] = len.ok_or_else(too_long)?.to_be_bytes();
    inner.write_all(&[flags, a, b, c])?;
    inner.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(body: &[u8]) -> Result<Chunks<&[u8]>, DapError> {
        Chunks::begin(body).map(|(_, chunks)| chunks)
    }

    fn message_of(result: Result<impl Sized, DapError>) -> String {
        match result {
            Ok(_) => panic!("it should fail"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn values_are_cut_anywhere() {
        let body = b"\x04\0\0\x03DMR\0\0\0\x01a\0\0\0\0\0\0\0\x02bc\x01\0\0\x01d";
        let (dmr, mut chunks) = Chunks::begin(&body[..]).unwrap();
        assert_eq!(dmr, b"DMR");
        assert!(chunks.is_little_endian() && !chunks.says_no_checksums());
        let mut bytes = [0; 3];
        chunks.fill(&mut bytes, "v").unwrap();
        assert_eq!((&bytes, chunks.take_crc()), (b"abc", crc32fast::hash(b"abc")));
        assert_eq!(chunks.peek().unwrap(), None);
        chunks.fill(&mut bytes[..1], "v").unwrap();
        assert_eq!(&bytes[..1], b"d");
        assert_eq!(chunks.position(), body.len() as u64);
        chunks.finish().unwrap();
    }

    #[test]
    fn the_checksum_of_values_partly_ahead_is_in_order() {
        // A small value brings a part of the large ones ahead, the rest of which goes past that.
        let values: Vec<u8> = (0..3 * AHEAD).map(|n| (n % 251) as u8).collect();
        let (first, second) = values.split_at(AHEAD + 100);
        let mut body = b"\0\0\0\x03DMR".to_vec();
        chunk(&mut body, 0, first).unwrap();
        chunk(&mut body, LAST, second).unwrap();
        let mut chunks = begun(&body).unwrap();
        let mut bytes = vec![0; values.len()];
        let (small, large) = bytes.split_at_mut(4);
        chunks.fill(small, "v").unwrap();
        chunks.fill(large, "v").unwrap();
        assert_eq!(chunks.take_crc(), crc32fast::hash(&values));
        assert_eq!(bytes, values);
    }

    #[test]
    fn what_is_no_body() {
        let page = b"<html><head><title>Log in</title></head></html>";
        assert!(message_of(begun(page)).contains("a page in HTML: Log in"));
        let error = b"<?xml version='1.0'?><Error httpcode='403'><Message>no</Message></Error>";
        assert!(message_of(begun(error)).ends_with("the server says: no"));
        let dap2 = b"Error {\n code = 404;\n message = \"gone\";\n};";
        assert!(message_of(begun(dap2)).contains("message = \"gone\""));
        assert!(message_of(begun(b"")).contains("it sent nothing"));
        assert!(message_of(begun(b"\x04\0")).contains("in the header of its first chunk"));
        assert!(message_of(begun(b"\x04\0\0\0")).contains("is empty"));
        assert!(message_of(begun(b"\x04\xff\xff\xffDMR")).contains("in the DMR"));
        let error = b"\x02\0\0\x18<Error><Message>no</Message></Error>";
        assert!(message_of(begun(error)).contains("the server says"));
    }

    #[test]
    fn chunks_without_bytes_end() {
        let body = [&b"\0\0\0\x03DMR"[..], &[0; 40_000]].concat();
        let mut chunks = begun(&body).unwrap();
        assert!(message_of(chunks.fill(&mut [0], "v")).contains("chunks without bytes"));
    }

    #[test]
    fn an_error_behind_the_last_variable_is_one() {
        let body = b"\0\0\0\x03DMR\0\0\0\x01a\x03\0\0\x04gone";
        let mut chunks = begun(body).unwrap();
        chunks.fill(&mut [0], "v").unwrap();
        assert!(message_of(chunks.finish()).contains("gone"));
    }

    #[test]
    fn more_than_there_should_be() {
        let begin = &b"\0\0\0\x03DMR"[..];
        let body = |rest: &[u8]| [begin, rest].concat();
        assert!(begun(&body(b"\x01\0\0\0")).unwrap().finish().is_ok());
        assert!(begun(&body(b"\x01\0\0\0\n")).unwrap().finish().is_ok());
        assert!(begun(&body(b"\x01\0\0\0\n\n")).unwrap().finish().is_err());
        assert!(begun(&body(b"\x01\0\0\x01a")).unwrap().finish().is_err());
        assert!(begun(&body(b"\0\0\0\0")).unwrap().finish().is_err());
        assert!(begun(&body(b"")).unwrap().finish().is_err());
    }

    #[test]
    fn a_dmr_longer_than_a_chunk_is_refused() {
        let dmr = "x".repeat(MOST_BYTES + 1);
        assert!(ChunkWriter::begin(Vec::new(), 0, &dmr, 1).is_err());
    }
}

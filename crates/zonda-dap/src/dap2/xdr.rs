//! XDR (RFC 4506) as DAP2 uses it: numbers of 4 or 8 bytes, big end first; bytes and texts filled up to 4.

use std::io::Read;
use std::rc::Rc;

use zonda_convert::swap_in_place;
use zonda_model::memory;

use crate::dap2::dds::Atomic;
use crate::dap2::error::ServerError;
use crate::dap2::limits::{BLOCK_BYTES, ERROR_BYTES};
use crate::error::{DapError, Document};

/// Bytes that were read and are kept for a message that may have begun in them.
const KEPT_BYTES: usize = 8 << 10;
/// Bytes of the block in the beginning, and at most.
const FIRST_BYTES: usize = 4 << 10;
const MOST_BYTES: usize = BLOCK_BYTES + KEPT_BYTES;

/// A body that is read in blocks.
pub(crate) struct Reader<'a> {
    body: &'a mut dyn Read,
    block: Vec<u8>,
    /// What was read and not taken yet, in `block`.
    begin: usize,
    end: usize,
    /// Byte of the body that comes next.
    at: u64,
    has_ended: bool,
    /// What is being read, for messages.
    pub(crate) object: Rc<str>,
}

impl<'a> Reader<'a> {
    /// Reads from the beginning.
    pub(crate) fn new(body: &'a mut dyn Read) -> Reader<'a> {
        Reader {
            body,
            block: Vec::new(),
            begin: 0,
            end: 0,
            at: 0,
            has_ended: false,
            object: "".into(),
        }
    }

    /// Byte of the body that comes next.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// An error here.
    pub(crate) fn error(&self, what: &str) -> DapError {
        let of = if self.object.is_empty() { "" } else { ": " };
        let what = format!("{}{of}{what}", self.object);
        DapError::Malformed { document: Document::Dods, at: self.at, what }
    }

    fn here(&self) -> &[u8] {
        self.block.get(self.begin..self.end).unwrap_or_default()
    }

    /// Reads more; whether there was more.
    fn fill(&mut self) -> Result<bool, DapError> {
        let kept = self.begin.min(KEPT_BYTES);
        let from = self.begin.saturating_sub(kept);
        if from > 0 {
            self.block.copy_within(from..self.end, 0);
            self.begin = kept;
            self.end = self.end.saturating_sub(from);
        }
        if self.end == self.block.len() {
            // Most responses are short.
            let bytes = self.block.len().saturating_mul(2).clamp(FIRST_BYTES, MOST_BYTES);
            memory::lengthen(&mut self.block, bytes, 0).map_err(|_| no_memory(bytes))?;
        }
        while !self.has_ended {
            let Some(room) = self.block.get_mut(self.end..).filter(|room| !room.is_empty()) else {
                return Ok(false);
            };
            match self.body.read(room) {
                Ok(0) => self.has_ended = true,
                Ok(n) => {
                    self.end = self.end.saturating_add(n.min(room.len()));
                    return Ok(true);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(DapError::of_io(Document::Dods, &error)),
            }
        }
        Ok(false)
    }

    /// Takes between 1 and `most` units of `unit` bytes, as many as are here; `unit` is 8 at most.
    pub(crate) fn units(&mut self, unit: usize, most: u64) -> Result<&[u8], DapError> {
        while self.here().len() < unit {
            if !self.fill()? {
                return Err(self.error("the body ends before all values"));
            }
        }
        let here = self.here().len().checked_div(unit).unwrap_or(0);
        let n = usize::try_from(most).map_or(here, |most| most.min(here));
        let bytes = n.saturating_mul(unit);
        let begin = self.begin;
        self.begin = begin.saturating_add(bytes);
        self.at = self.at.saturating_add(bytes as u64);
        Ok(self.block.get(begin..self.begin).unwrap_or_default())
    }

    /// All that is here, at least one byte, or nothing at the end; nothing is taken.
    pub(crate) fn peek(&mut self) -> Result<&[u8], DapError> {
        if self.here().is_empty() {
            self.fill()?;
        }
        Ok(self.here())
    }

    /// Takes `n` of the bytes that [`Reader::peek`] showed.
    pub(crate) fn take(&mut self, n: usize) {
        let n = n.min(self.here().len());
        self.begin = self.begin.saturating_add(n);
        self.at = self.at.saturating_add(n as u64);
    }

    /// Four bytes.
    pub(crate) fn word(&mut self) -> Result<[u8; 4], DapError> {
        let bytes = self.units(4, 1)?;
        Ok(<[u8; 4]>::try_from(bytes).unwrap_or_default())
    }

    /// A number without a sign.
    pub(crate) fn count(&mut self) -> Result<u64, DapError> {
        Ok(u64::from(u32::from_be_bytes(self.word()?)))
    }

    /// Leaves out bytes.
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<(), DapError> {
        let mut left = bytes;
        while left > 0 {
            left = left.saturating_sub(self.units(1, left)?.len() as u64);
        }
        Ok(())
    }

    /// Leaves out what fills `bytes` up to a multiple of 4.
    pub(crate) fn skip_padding(&mut self, bytes: u64) -> Result<(), DapError> {
        self.skip(padding(bytes))
    }

    /// The error of the server that stands where values should be: in what was read last, or in what follows.
    pub(crate) fn server_error(&mut self) -> Option<ServerError> {
        let mut found = self.block.get(..self.end).unwrap_or_default().to_vec();
        let most = found.len().saturating_add(ERROR_BYTES);
        self.begin = self.end;
        while found.len() < most {
            self.begin = self.end;
            if !matches!(self.fill(), Ok(true)) {
                break;
            }
            found.extend_from_slice(self.here());
        }
        let word = b"Error";
        let begins = found.windows(word.len()).enumerate().filter(|(_, bytes)| *bytes == word);
        let mut begins: Vec<usize> = begins.map(|(at, _)| at).collect();
        begins.reverse();
        begins.into_iter().find_map(|at| ServerError::decode(found.get(at..)?))
    }
}

/// There is no memory for so many bytes.
pub(crate) fn no_memory(bytes: usize) -> DapError {
    DapError::NoMemory { document: Document::Dods, bytes: bytes as u64 }
}

/// Bytes that fill `bytes` up to a multiple of 4.
pub(crate) fn padding(bytes: u64) -> u64 {
    bytes.next_multiple_of(4).saturating_sub(bytes)
}

/// Bytes of an element of an array in XDR.
pub(crate) fn unit(atomic: Atomic) -> usize {
    match atomic {
        Atomic::Byte => 1,
        Atomic::Float64 => 8,
        _ => 4,
    }
}

/// Makes elements in the form of memory of elements of an array in XDR.
pub(crate) fn decode(atomic: Atomic, from: &[u8], to: &mut Vec<u8>) {
    to.clear();
    match atomic {
        Atomic::Int16 | Atomic::UInt16 => {
            for word in from.chunks_exact(4) {
                if let [_, _, high, low] = word {
                    to.extend_from_slice(&u16::from_be_bytes([*high, *low]).to_ne_bytes());
                }
            }
        }
        _ => {
            to.extend_from_slice(from);
            swap(unit(atomic), to);
        }
    }
}

/// Makes elements of an array in XDR of elements in the form of memory.
pub(crate) fn encode(atomic: Atomic, from: &[u8], to: &mut Vec<u8>) {
    to.clear();
    match atomic {
        Atomic::Int16 | Atomic::UInt16 => {
            for element in from.chunks_exact(2) {
                let bytes = <[u8; 2]>::try_from(element).unwrap_or_default();
                let word = if atomic == Atomic::Int16 {
                    i32::from(i16::from_ne_bytes(bytes)).to_be_bytes()
                } else {
                    u32::from(u16::from_ne_bytes(bytes)).to_be_bytes()
                };
                to.extend_from_slice(&word);
            }
        }
        _ => {
            to.extend_from_slice(from);
            swap(unit(atomic), to);
        }
    }
}

fn swap(size: usize, bytes: &mut [u8]) {
    if size > 1 && cfg!(target_endian = "little") {
        swap_in_place(bytes, size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_go_there_and_back() {
        let mut there = Vec::new();
        let mut back = Vec::new();
        for atomic in Atomic::ALL.into_iter().filter(|atomic| !atomic.is_text()) {
            let bytes: Vec<u8> = (0..16).map(|at| at * 15 + 3).collect();
            encode(atomic, &bytes, &mut there);
            assert_eq!(there.len() / unit(atomic), 16 / atomic.size(), "{atomic:?}");
            decode(atomic, &there, &mut back);
            assert_eq!(back, bytes, "{atomic:?}");
        }
        encode(Atomic::Int16, &(-2i16).to_ne_bytes(), &mut there);
        assert_eq!(there, [255, 255, 255, 254]);
        encode(Atomic::UInt16, &65534u16.to_ne_bytes(), &mut there);
        assert_eq!(there, [0, 0, 255, 254]);
        encode(Atomic::Float64, &1.0f64.to_ne_bytes(), &mut there);
        assert_eq!(there, [0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
    }

    /// Gives 1, 2, 3, ... bytes a call.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            self.1 += 1;
            let n = self.1.min(self.0.len()).min(buf.len());
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn a_body_that_drips_is_read_whole() {
        let bytes: Vec<u8> = (0..200_000u32).flat_map(u32::to_be_bytes).collect();
        let mut slow = Slow(&bytes, 0);
        let mut reader = Reader::new(&mut slow);
        let mut n = 0;
        while n < 199_000 {
            let more = reader.units(4, 199_000 - n).unwrap();
            for word in more.chunks(4) {
                assert_eq!(u32::from_be_bytes(word.try_into().unwrap()), u32::try_from(n).unwrap());
                n += 1;
            }
        }
        reader.skip(3996).unwrap();
        assert_eq!((reader.count().unwrap(), reader.at()), (199_999, 800_000));
        assert!(reader.word().unwrap_err().to_string().contains("the body ends before all values"));
    }

    #[test]
    fn a_message_is_found_before_and_behind_the_place() {
        let mut bytes = vec![7u8; 100_000];
        bytes.extend_from_slice(b"Error {\ncode=3; message = \"no space\"; };");
        let mut body = &bytes[..];
        let mut reader = Reader::new(&mut body);
        reader.skip(100_020).unwrap();
        assert_eq!(reader.server_error().unwrap().message, "no space");
        let mut body = &bytes[..];
        let mut reader = Reader::new(&mut body);
        reader.skip(99_000).unwrap();
        assert_eq!(reader.server_error().unwrap().code, Some(3));
        let mut body = &bytes[..1000];
        assert_eq!(Reader::new(&mut body).server_error(), None);
    }
}

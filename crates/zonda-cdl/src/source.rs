//! The text. Any part of it can be read, because it is read twice.

use crate::tuning::TEXT_IN_MEMORY_BYTES;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A CDL text.
#[derive(Debug)]
pub struct CdlText {
    bytes: TextBytes,
    len: u64,
    /// Bytes of the byte order mark of UTF-8 at the beginning; 0 if there is none.
    mark: u64,
}

#[derive(Debug)]
enum TextBytes {
    Memory(Vec<u8>),
    File(File),
}

impl CdlText {
    /// Opens the text of a file. If it is not a regular file, it is read to its end first.
    ///
    /// # Errors
    /// Errors of the operating system; a text that is not UTF-8 by its first bytes.
    pub fn open(path: &Path) -> io::Result<CdlText> {
        let file = File::open(path)?;
        let data = file.metadata()?;
        if !data.is_file() {
            return CdlText::read(file);
        }
        CdlText::new(TextBytes::File(file), data.len())
    }

    /// Reads the text from `from` to its end.
    ///
    /// # Errors
    /// As [`CdlText::open`]; errors of making a temporary file.
    pub fn read(from: impl Read) -> io::Result<CdlText> {
        CdlText::read_with(from, TEXT_IN_MEMORY_BYTES)
    }

    fn read_with(mut from: impl Read, most_in_memory: u64) -> io::Result<CdlText> {
        let mut bytes = Vec::new();
        let len = from.by_ref().take(most_in_memory).read_to_end(&mut bytes)? as u64;
        if len < most_in_memory {
            return CdlText::new(TextBytes::Memory(bytes), len);
        }
        let mut file = tempfile::tempfile()?;
        file.write_all(&bytes)?;
        let more = io::copy(&mut from, &mut file)?;
        CdlText::new(TextBytes::File(file), len + more)
    }

    /// A text in memory.
    ///
    /// # Errors
    /// As [`CdlText::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> io::Result<CdlText> {
        let len = bytes.len() as u64;
        CdlText::new(TextBytes::Memory(bytes), len)
    }

    fn new(bytes: TextBytes, len: u64) -> io::Result<CdlText> {
        let mut source = CdlText { bytes, len, mark: 0 };
        let mut first = [0; 3];
        let got = source.read_at(0, &mut first)?;
        match &first[..got] {
            [0xef, 0xbb, 0xbf] => source.mark = 3,
            [0 | 0xff | 0xfe, _, ..] => {
                let why = "it begins with a byte order mark of another encoding than UTF-8";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            _ => {}
        }
        Ok(source)
    }

    /// Bytes of the text.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == self.mark
    }

    /// Where the text begins.
    pub(crate) fn begin(&self) -> u64 {
        self.mark
    }

    /// Reads at the offset `at`. Returns fewer bytes than `out` has only at the end of the text.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub(crate) fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        match &self.bytes {
            TextBytes::Memory(bytes) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let there = bytes.get(at..).unwrap_or_default();
                let len = there.len().min(out.len());
                out[..len].copy_from_slice(&there[..len]);
                Ok(len)
            }
            TextBytes::File(file) => {
                let mut done = 0;
                while done < out.len() {
                    match file.read_at(&mut out[done..], at + done as u64) {
                        Ok(0) => break,
                        Ok(got) => done += got,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(done)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_files_read_alike() {
        let text = b"netcdf x { }".repeat(10);
        for most in [8, 1 << 20] {
            let source = CdlText::read_with(&text[..], most).unwrap();
            assert_eq!(matches!(source.bytes, TextBytes::File(_)), most == 8);
            let mut out = [0; 7];
            assert_eq!(source.read_at(3, &mut out).unwrap(), 7);
            assert_eq!(&out, b"cdf x {");
            assert_eq!(source.read_at(source.len() - 2, &mut out).unwrap(), 2);
            assert_eq!(source.read_at(1 << 40, &mut out).unwrap(), 0);
        }
    }

    #[test]
    fn marks_of_encodings() {
        let begin = |bytes: &[u8]| CdlText::from_bytes(bytes.to_vec()).map(|s| s.begin());
        assert_eq!(begin(b"\xef\xbb\xbfnetcdf").unwrap(), 3);
        assert_eq!(begin(b"netcdf").unwrap(), 0);
        assert_eq!(begin(b"").unwrap(), 0);
        assert!(begin(b"\xff\xfen").is_err() && begin(b"\0\0\xfe\xff").is_err());
    }
}

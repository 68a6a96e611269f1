//! Writes bodies of `.dods` responses.

use std::io::Write;

use crate::dap2::body::{END, RECORD, Visitor};
use crate::dap2::dds::{Atomic, Dds, Kind};
use crate::dap2::xdr;
use crate::error::{DapError, Document};

/// Writes a body: what a [`Visitor`] is told, all of it and in the order of the DDS.
pub struct Encoder<'a> {
    out: &'a mut dyn Write,
    dds: &'a Dds,
    /// Bytes of an array of bytes that are still to come, and how many it has.
    bytes: (u64, u64),
    xdr: Vec<u8>,
}

impl<'a> Encoder<'a> {
    /// Writes the DDS and the line behind it.
    ///
    /// # Errors
    /// What `out` says.
    pub fn new(dds: &'a Dds, out: &'a mut dyn Write) -> Result<Encoder<'a>, DapError> {
        let mut encoder = Encoder { out, dds, bytes: (0, 0), xdr: Vec::new() };
        encoder.write(dds.encode().as_bytes())?;
        encoder.write(b"\nData:\n")?;
        Ok(encoder)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), DapError> {
        self.out.write_all(bytes).map_err(|error| DapError::of_io(Document::Dods, &error))
    }

    fn pad(&mut self, len: u64) -> Result<(), DapError> {
        let n = usize::try_from(xdr::padding(len)).unwrap_or(0);
        self.write([0u8; 3].get(..n).unwrap_or_default())
    }

    fn write_count(&mut self, count: u64) -> Result<(), DapError> {
        let Ok(count) = u32::try_from(count) else {
            let what = format!("{count} elements are more than XDR can count");
            return Err(DapError::Unrepresentable { document: Document::Dods, what });
        };
        self.write(&count.to_be_bytes())
    }
}

impl Visitor for Encoder<'_> {
    fn wants(&self, _node: usize) -> Option<usize> {
        Some(usize::MAX)
    }

    fn count(&mut self, node: usize, count: u64) -> Result<(), DapError> {
        self.write_count(count)?;
        match self.dds.node(node).kind {
            Kind::Atomic(atomic) if !atomic.is_text() => {
                if atomic == Atomic::Byte {
                    self.bytes = (count, count);
                }
                self.write_count(count)
            }
            _ => Ok(()),
        }
    }

    fn numbers(&mut self, node: usize, elements: &[u8]) -> Result<(), DapError> {
        let node = self.dds.node(node);
        let Kind::Atomic(atomic) = node.kind else { return Ok(()) };
        let mut words = std::mem::take(&mut self.xdr);
        xdr::encode(atomic, elements, &mut words);
        if atomic == Atomic::Byte && node.dims.is_empty() {
            self.write(&[0, 0, 0])?;
        }
        self.write(&words)?;
        self.xdr = words;
        if atomic == Atomic::Byte && !node.dims.is_empty() {
            let (left, all) = self.bytes;
            self.bytes.0 = left.saturating_sub(elements.len() as u64);
            if self.bytes.0 == 0 && left > 0 {
                return self.pad(all);
            }
        }
        Ok(())
    }

    fn text(&mut self, _node: usize, text: &[u8]) -> Result<(), DapError> {
        self.write_count(text.len() as u64)?;
        self.write(text)?;
        self.pad(text.len() as u64)
    }

    fn record(&mut self, _node: usize) -> Result<(), DapError> {
        self.write(&[RECORD, 0, 0, 0])
    }

    fn end(&mut self, _node: usize) -> Result<(), DapError> {
        self.write(&[END, 0, 0, 0])
    }
}

//! Writes bodies: what a server sends, of values in the form of memory.

use std::io::{Error, ErrorKind, Result, Write};

use zonda_format::OwnedValues;

use super::chunks::{ChunkWriter, LITTLE_ENDIAN, NO_CHECKSUMS};
use super::dataset::list;
use super::dmr::Dmr;
use super::layout::{Kind, Layout, Names};
use super::settings::Settings;

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Whether values have their least significant byte first.
    pub little_endian: bool,
    /// Whether checksums come behind variables.
    pub checksums: bool,
    /// Longest chunk of values, in bytes.
    pub chunk: usize,
}

/// Writes a DMR and then the values of its variables, which have to be added in its order.
#[derive(Debug)]
pub struct BodyWriter<W> {
    chunks: ChunkWriter<W>,
    form: Form,
    /// Layouts of variables and how many elements each has, last first.
    left: Vec<(Layout, u64)>,
}

fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, what.to_owned())
}

impl<W: Write> BodyWriter<W> {
    /// Begins with the DMR.
    ///
    /// # Errors
    /// A DMR that is too long, or has what netCDF has no form for; what the writer says.
    pub fn begin(inner: W, dmr: &Dmr, form: Form) -> Result<BodyWriter<W>> {
        let names = Names::of(dmr, Settings::default());
        let (mut vars, mut left) = (Vec::new(), Vec::new());
        list(&dmr.root, "", &mut vars);
        for (_, var) in vars.into_iter().rev() {
            let made = names.layout(var).and_then(|layout| Ok((layout, names.shape(var)?)));
            let (layout, shape) = made.map_err(|error| wrong(&error.to_string()))?;
            let count = shape.iter().try_fold(1_u64, |product, len| product.checked_mul(*len));
            left.push((layout, count.ok_or_else(|| wrong("a shape that is too large"))?));
        }
        let mut flags = if form.little_endian { LITTLE_ENDIAN } else { 0 };
        if !form.checksums {
            flags |= NO_CHECKSUMS;
        }
        let chunks = ChunkWriter::begin(inner, flags, &dmr.write(), form.chunk)?;
        Ok(BodyWriter { chunks, form, left })
    }

    /// Adds all values of the next variable, in the form of memory.
    ///
    /// # Errors
    /// More variables than the DMR has, more or fewer values; what the writer says.
    pub fn variable(&mut self, values: &OwnedValues) -> Result<()> {
        let (layout, count) =
            self.left.pop().ok_or_else(|| wrong("more variables than the DMR has"))?;
        let n = usize::try_from(count).ok().and_then(|count| count.checked_mul(layout.size));
        if n != Some(values.bytes().len()) {
            return Err(wrong("not as many values as the variable has"));
        }
        for element in values.bytes().chunks_exact(layout.size.max(1)) {
            self.element(&layout, element, values)?;
        }
        if self.form.checksums { self.chunks.checksum(self.form.little_endian) } else { Ok(()) }
    }

    /// Ends the body.
    ///
    /// # Errors
    /// Variables that were not added; what the writer says.
    pub fn end(self) -> Result<W> {
        if self.left.is_empty() { self.chunks.end() } else { Err(wrong("variables are missing")) }
    }

    /// Ends with an error in place of what was to come.
    ///
    /// # Errors
    /// What the writer says.
    pub fn fail(self, http_code: u16, message: &str) -> Result<W> {
        self.chunks.fail(http_code, message)
    }

    fn element(&mut self, layout: &Layout, bytes: &[u8], values: &OwnedValues) -> Result<()> {
        match &layout.kind {
            Kind::Plain(_) => self.plain(bytes),
            Kind::Text => self.counted(values.part(word(bytes)).unwrap_or_default()),
            Kind::Opaque => self.counted(bytes),
            Kind::Structure(fields) => {
                for field in fields {
                    let rest = bytes.get(field.offset..).unwrap_or_default();
                    let elements = rest.chunks_exact(field.layout.size.max(1)).take(field.count);
                    for element in elements {
                        self.element(&field.layout, element, values)?;
                    }
                }
                Ok(())
            }
            Kind::Sequence(record) => {
                let (len, address) = bytes.split_at_checked(8).unwrap_or_default();
                let records = values.part(word(address)).unwrap_or_default();
                let count = word(len);
                let records = records.chunks_exact(record.size.max(1));
                if count != records.len() as u64 {
                    return Err(wrong("not as many records as the sequence has"));
                }
                self.plain(&count.to_ne_bytes())?;
                for one in records {
                    self.element(record, one, values)?;
                }
                Ok(())
            }
        }
    }

    fn counted(&mut self, bytes: &[u8]) -> Result<()> {
        self.plain(&(bytes.len() as u64).to_ne_bytes())?;
        self.chunks.values(bytes)
    }

    /// A number in the order of the body.
    fn plain(&mut self, bytes: &[u8]) -> Result<()> {
        let mut turned = [0; 8];
        let Some(to) = turned.get_mut(..bytes.len()) else {
            return Err(wrong("a number of more than 8 bytes"));
        };
        to.copy_from_slice(bytes);
        if self.form.little_endian != cfg!(target_endian = "little") {
            to.reverse();
        }
        self.chunks.values(to)
    }
}

/// An address or length.
fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
#[path = "tests/encode.rs"]
mod tests;

//! The body of a `.dods` response: a DDS, the line `Data:`, and the values of its variables in XDR, one behind the other.
//!
//! An array has its number of elements in front of it, twice if they are no texts; an array of structures has it once. A record of a sequence begins
//! with the byte 0x5A, and 0xA5 comes behind the last; each of them is filled up to 4 bytes.
//!
//! Both directions go through a [`Visitor`]: a body is decoded into one, and the [`Encoder`](crate::dap2::encode::Encoder) is one.

use std::io::Read;
use std::rc::Rc;

use zonda_model::memory;

use crate::dap2::dds::{Atomic, Dds, Kind};
use crate::dap2::error::refuse;
use crate::dap2::limits::{ERROR_BYTES, MAX_DOCUMENT_BYTES};
use crate::dap2::xdr::{self, Reader};
use crate::error::{DapError, Document};

/// Begins a record.
pub(super) const RECORD: u8 = 0x5A;
/// Ends a sequence.
pub(super) const END: u8 = 0xA5;

/// Takes values in the order of the body. Nodes are those of its DDS.
pub trait Visitor {
    /// Most bytes of a text of this variable that are wanted; `None` where nothing of the variable is.
    fn wants(&self, node: usize) -> Option<usize>;

    /// So many structures of an array, or elements of an array, follow.
    ///
    /// # Errors
    /// Any: nothing more is read then. So for all of these.
    fn count(&mut self, node: usize, count: u64) -> Result<(), DapError>;

    /// Numbers in the form of memory: a scalar, or the next elements of an array.
    ///
    /// # Errors
    /// As for [`Visitor::count`].
    fn numbers(&mut self, node: usize, elements: &[u8]) -> Result<(), DapError>;

    /// A text, or as much of its beginning as is wanted.
    ///
    /// # Errors
    /// As for [`Visitor::count`].
    fn text(&mut self, node: usize, text: &[u8]) -> Result<(), DapError>;

    /// A record of the sequence `node` begins.
    ///
    /// # Errors
    /// As for [`Visitor::count`].
    fn record(&mut self, node: usize) -> Result<(), DapError>;

    /// The sequence `node` has no more records.
    ///
    /// # Errors
    /// As for [`Visitor::count`].
    fn end(&mut self, node: usize) -> Result<(), DapError>;
}

/// A body whose DDS was read.
pub struct Body<'a> {
    reader: Reader<'a>,
    dds: Dds,
    header: Vec<u8>,
}

impl<'a> Body<'a> {
    /// Reads the DDS.
    ///
    /// # Errors
    /// What is wrong with it; what the server says in place of it; what the connection says.
    pub fn open(body: &'a mut dyn Read) -> Result<Body<'a>, DapError> {
        let mut reader = Reader::new(body);
        let header = header(&mut reader)?;
        let dds = Dds::decode_as(Document::Dods, &header)?;
        Ok(Body { reader, dds, header })
    }

    /// Its DDS.
    #[must_use]
    pub fn dds(&self) -> &Dds {
        &self.dds
    }

    /// The DDS as it is written, without the line `Data:`.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// Reads all values, to the end of the body.
    ///
    /// # Errors
    /// A body that is shorter or longer than its DDS declares, numbers of elements that differ from it; what the server says in the middle of the
    /// values; what the connection and `visitor` say.
    pub fn values(self, visitor: &mut dyn Visitor) -> Result<(), DapError> {
        let Body { mut reader, dds, .. } = self;
        let names = std::iter::once(0)
            .chain(dds.ids())
            .map(|id| dds.node(id).name.as_str().into())
            .collect();
        let mut walk =
            Walk { reader: &mut reader, dds: &dds, visitor, names, elements: Vec::new() };
        match walk.all() {
            // It may be that the values are no values.
            Err(error @ DapError::Malformed { .. }) => match reader.server_error() {
                Some(said) => Err(said.into_error(Document::Dods)),
                None => Err(error),
            },
            result => result,
        }
    }
}

/// The DDS in front of the values; the reader is then where they begin.
fn header(reader: &mut Reader<'_>) -> Result<Vec<u8>, DapError> {
    let mut header: Vec<u8> = Vec::new();
    loop {
        let had = header.len();
        let here = reader.peek()?;
        if here.is_empty() {
            refuse(Document::Dods, &header)?;
            return Err(reader.error("the body ends before the line `Data:`"));
        }
        let len = here.len();
        header.extend_from_slice(here);
        // The line may have begun in what was here before.
        let from = had.saturating_sub(b"Data:\r\n".len());
        if let Some((text, values)) = data_line(&header, from) {
            header.truncate(text);
            reader.take(values.saturating_sub(had));
            return Ok(header);
        }
        reader.take(len);
        let is_dds = header.trim_ascii_start().first().is_none_or(|byte| b"Dd#".contains(byte));
        let most = if is_dds { MAX_DOCUMENT_BYTES } else { ERROR_BYTES };
        if header.len() > most {
            refuse(Document::Dods, &header)?;
            return Err(reader.error(&format!("no line `Data:` in {most} bytes")));
        }
    }
}

/// Where the DDS ends and where the values begin.
fn data_line(header: &[u8], from: usize) -> Option<(usize, usize)> {
    let word = b"Data:";
    let rest = header.get(from..)?;
    let begins = rest.windows(word.len()).enumerate().filter(|(_, bytes)| *bytes == word);
    for (at, _) in begins {
        let at = at.checked_add(from)?;
        let before = at.checked_sub(1).and_then(|at| header.get(at));
        let behind = header.get(at.checked_add(word.len())?..)?;
        let is_alone = before.is_none_or(|byte| byte.is_ascii_whitespace() || *byte == b';');
        let len = match behind {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => continue,
        };
        if is_alone {
            return Some((at, at.checked_add(word.len())?.checked_add(len)?));
        }
    }
    None
}

struct Walk<'a, 'b> {
    reader: &'a mut Reader<'b>,
    dds: &'a Dds,
    visitor: &'a mut dyn Visitor,
    /// Of all nodes, for messages.
    names: Vec<Rc<str>>,
    /// Elements in the form of memory: a block of them.
    elements: Vec<u8>,
}

impl Walk<'_, '_> {
    fn all(&mut self) -> Result<(), DapError> {
        self.fields(0)?;
        self.reader.object = "".into();
        // Responses that were saved by hand may end as lines do.
        if self.reader.peek()?.first() == Some(&b'\n') {
            self.reader.take(1);
        }
        if !self.reader.peek()?.is_empty() {
            return Err(self.reader.error("the body goes on behind all values"));
        }
        Ok(())
    }

    fn fields(&mut self, id: usize) -> Result<(), DapError> {
        let dds = self.dds;
        dds.node(id).children.iter().try_for_each(|child| self.node(*child))
    }

    fn node(&mut self, id: usize) -> Result<(), DapError> {
        let node = self.dds.node(id);
        match node.kind {
            Kind::Dataset | Kind::Grid => self.fields(id),
            Kind::Sequence => self.sequence(id),
            Kind::Structure if node.dims.is_empty() => self.fields(id),
            Kind::Structure => {
                let count = self.counted(id)?;
                self.visitor.count(id, count)?;
                for _ in 0..count {
                    let at = self.reader.at();
                    self.fields(id)?;
                    if self.reader.at() == at {
                        // Nothing is in them: any number of them is read.
                        break;
                    }
                }
                Ok(())
            }
            Kind::Atomic(atomic) => {
                self.object(id);
                if node.dims.is_empty() {
                    return if atomic.is_text() { self.text(id) } else { self.scalar(id, atomic) };
                }
                let count = self.counted(id)?;
                if !atomic.is_text() {
                    self.same(count)?;
                }
                self.visitor.count(id, count)?;
                if atomic.is_text() {
                    return (0..count).try_for_each(|_| self.text(id));
                }
                self.numbers(id, atomic, count)
            }
        }
    }

    fn object(&mut self, id: usize) {
        if let Some(name) = self.names.get(id) {
            self.reader.object = Rc::clone(name);
        }
    }

    /// The number of elements that comes next, which is that of the DDS.
    fn counted(&mut self, id: usize) -> Result<u64, DapError> {
        self.object(id);
        let dims = &self.dds.node(id).dims;
        let declared = dims.iter().try_fold(1u64, |product, dim| product.checked_mul(dim.len));
        let Some(declared) = declared.filter(|count| *count <= u64::from(u32::MAX)) else {
            return Err(self.reader.error("has more elements than XDR can count"));
        };
        self.same(declared)?;
        Ok(declared)
    }

    fn same(&mut self, declared: u64) -> Result<(), DapError> {
        let count = self.reader.count()?;
        if count != declared {
            let what = format!("{count} elements come, the DDS declares {declared}");
            return Err(self.reader.error(&what));
        }
        Ok(())
    }

    fn scalar(&mut self, id: usize, atomic: Atomic) -> Result<(), DapError> {
        let bytes = self.reader.units(xdr::unit(atomic).max(4), 1)?;
        // A scalar byte is a word: its value is the last byte by libdap, perhaps with a sign in front, and the first by pydap.
        let bytes = match (atomic, bytes) {
            (Atomic::Byte, [0, 0, 0, value] | [0xff, 0xff, 0xff, value] | [value, 0, 0, 0]) => {
                std::slice::from_ref(value)
            }
            (Atomic::Byte, _) => {
                let what = format!("{bytes:02X?} is no byte");
                return Err(self.reader.error(&what));
            }
            _ => bytes,
        };
        if self.visitor.wants(id).is_some() {
            xdr::decode(atomic, bytes, &mut self.elements);
            self.visitor.numbers(id, &self.elements)?;
        }
        Ok(())
    }

    fn numbers(&mut self, id: usize, atomic: Atomic, count: u64) -> Result<(), DapError> {
        let unit = xdr::unit(atomic);
        let is_wanted = self.visitor.wants(id).is_some();
        let mut left = count;
        while left > 0 {
            let bytes = self.reader.units(unit, left)?;
            left = left.saturating_sub(bytes.len().checked_div(unit).unwrap_or(0) as u64);
            if is_wanted {
                xdr::decode(atomic, bytes, &mut self.elements);
                self.visitor.numbers(id, &self.elements)?;
            }
        }
        // Of the types only bytes leave a word open.
        if unit == 1 { self.reader.skip_padding(count) } else { Ok(()) }
    }

    fn text(&mut self, id: usize) -> Result<(), DapError> {
        let len = self.reader.count()?;
        let wants = self.visitor.wants(id);
        let most = wants.map_or(0, |most| most as u64).min(len);
        self.elements.clear();
        let mut left = most;
        while left > 0 {
            let bytes = self.reader.units(1, left)?;
            left = left.saturating_sub(bytes.len() as u64);
            memory::reserve(&mut self.elements, bytes.len())
                .map_err(|_| xdr::no_memory(bytes.len()))?;
            self.elements.extend_from_slice(bytes);
        }
        self.reader.skip(len.saturating_sub(most))?;
        self.reader.skip_padding(len)?;
        if wants.is_some() { self.visitor.text(id, &self.elements) } else { Ok(()) }
    }

    fn sequence(&mut self, id: usize) -> Result<(), DapError> {
        loop {
            self.object(id);
            let [mark, ..] = self.reader.word()?;
            match mark {
                RECORD => {
                    self.visitor.record(id)?;
                    self.fields(id)?;
                }
                END => return self.visitor.end(id),
                _ => {
                    return Err(self.reader.error(&format!("0x{mark:02X} is no mark of a record")));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dap2::encode::Encoder;

    const DDS: &str = "Dataset {
    Byte b;
    Byte bs[5];
    Int16 i[2];
    String s;
    String ss[2];
    Structure {
        Float64 f;
        UInt16 u[2];
    } st[2];
    Sequence {
        Int32 i;
        Sequence {
            Byte b;
        } inner;
    } q;
    Grid {
     ARRAY:
        Float32 g[x = 1];
     MAPS:
        Float32 x[x = 1];
    } g;
} all;
";

    /// A body of all that there is.
    fn body() -> Vec<u8> {
        let dds = Dds::decode(DDS.as_bytes()).unwrap();
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&dds, &mut out).unwrap();
        let id = |name: &str| dds.ids().find(|id| dds.full_name(*id) == name).unwrap();
        encoder.numbers(id("b"), &[7]).unwrap();
        encoder.count(id("bs"), 5).unwrap();
        encoder.numbers(id("bs"), &[1, 2, 3]).unwrap();
        encoder.numbers(id("bs"), &[4, 5]).unwrap();
        encoder.count(id("i"), 2).unwrap();
        encoder.numbers(id("i"), &[1, 0, 0xfe, 0xff]).unwrap();
        encoder.text(id("s"), b"abc").unwrap();
        encoder.count(id("ss"), 2).unwrap();
        encoder.text(id("ss"), b"").unwrap();
        encoder.text(id("ss"), b"abcde").unwrap();
        encoder.count(id("st"), 2).unwrap();
        for _ in 0..2 {
            encoder.numbers(id("st.f"), &[1; 8]).unwrap();
            encoder.count(id("st.u"), 2).unwrap();
            encoder.numbers(id("st.u"), &[1, 2, 3, 4]).unwrap();
        }
        for n in 0..3 {
            encoder.record(id("q")).unwrap();
            encoder.numbers(id("q.i"), &[n; 4]).unwrap();
            for n in 0..n {
                encoder.record(id("q.inner")).unwrap();
                encoder.numbers(id("q.inner.b"), &[n]).unwrap();
            }
            encoder.end(id("q.inner")).unwrap();
        }
        encoder.end(id("q")).unwrap();
        for name in ["g.g", "g.x"] {
            encoder.count(id(name), 1).unwrap();
            encoder.numbers(id(name), &[1, 2, 3, 4]).unwrap();
        }
        out
    }

    fn again(bytes: &[u8]) -> Result<Vec<u8>, DapError> {
        let mut rest = bytes;
        let body = Body::open(&mut rest)?;
        let dds = body.dds().clone();
        let mut out = Vec::new();
        body.values(&mut Encoder::new(&dds, &mut out)?)?;
        Ok(out)
    }

    #[test]
    fn a_body_is_read_and_written() {
        let bytes = body();
        assert_eq!(again(&bytes).unwrap(), bytes);
        let text = String::from_utf8_lossy(&bytes).replace("\nData:\n", "Data:\r\n");
        assert!(text.contains(";\nData:\r\n"));
    }

    #[test]
    fn a_body_cut_anywhere_is_an_error_and_so_is_a_longer_one() {
        let bytes = body();
        for len in 0..bytes.len() {
            let error = again(&bytes[..len]).unwrap_err();
            assert!(error.to_string().starts_with("DAP2 data, byte"), "{len}: {error}");
        }
        assert_eq!(again(&[&bytes, &b"\n"[..]].concat()).unwrap(), bytes);
        for more in [&[0][..], &[0, 0, 0, 0], b"\n\n", b"\n\0\0\0"] {
            let error = again(&[&bytes, more].concat()).unwrap_err().to_string();
            assert!(error.contains("goes on behind all values"), "{error}");
        }
    }

    #[test]
    fn other_counts_and_marks_are_errors() {
        let bytes = body();
        let values = bytes.windows(7).position(|line| line == b"\nData:\n").unwrap() + 7;
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[values + at] = byte;
            again(&bytes).unwrap_err().to_string()
        };
        assert!(with(7, 6).contains("bs: 6 elements come, the DDS declares 5"), "{}", with(7, 6));
        assert!(with(11, 4).contains("bs: 4 elements come"));
        let mark = bytes[values..].iter().position(|byte| *byte == RECORD).unwrap();
        assert!(with(mark, 1).contains("q: 0x01 is no mark of a record"));
    }

    #[test]
    fn a_byte_alone_is_at_either_end_of_its_word() {
        let with = |word: &[u8]| again(&[b"Dataset { Byte b; } x;\nData:\r\n", word].concat());
        let said = with(&[0, 0, 0, 7]).unwrap();
        assert!(said.ends_with(&[0, 0, 0, 7]));
        assert_eq!(with(&[7, 0, 0, 0]).unwrap(), said);
        assert_eq!(with(&[0xff, 0xff, 0xff, 7]).unwrap(), said);
        assert!(with(&[0, 0, 0, 0]).is_ok());
        assert!(
            with(&[0, 7, 0, 0]).unwrap_err().to_string().contains("b: [00, 07, 00, 00] is no byte")
        );
    }

    #[test]
    fn what_the_server_says_in_place_of_values_is_the_error() {
        let bytes = body();
        let said = b"Error {\n    code = 500;\n    message = \"disk on fire\";\n};\n";
        let values = bytes.windows(7).position(|line| line == b"\nData:\n").unwrap() + 7;
        for at in [0, values, values + 4, values + 16, bytes.len() - 30, bytes.len()] {
            let error = again(&[&bytes[..at], said].concat()).unwrap_err().to_string();
            assert_eq!(error, "DAP2 data: the server says: disk on fire", "{at}");
        }
        let page = b"<html><head><title>Login</title></head><body>who are you?</body></html>";
        assert!(again(page).unwrap_err().to_string().ends_with("a page: Login"));
        let endless = [page.to_vec(), vec![b' '; 10_000_000]].concat();
        assert!(again(&endless).unwrap_err().to_string().ends_with("a page: Login"));
    }

    #[test]
    fn nothing_takes_time_or_memory_that_has_no_bytes() {
        let bytes = b"Dataset { Structure { } s[2147483647]; } x;\nData:\n\x7f\xff\xff\xff";
        assert!(again(bytes).unwrap().ends_with(b"\x7f\xff\xff\xff"));
        let bytes = b"Dataset { Int32 a[2147483647][2147483647]; } x;\nData:\n\x7f\xff\xff\xff";
        assert!(again(bytes).unwrap_err().to_string().contains("more elements than XDR can count"));
        let bytes = b"Dataset { String s; } x;\nData:\n\xff\xff\xff\xffabcd";
        assert!(again(bytes).unwrap_err().to_string().contains("ends before all values"));
    }
}

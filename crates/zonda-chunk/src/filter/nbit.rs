//! Filter 5, nbit: only the significant bits of each number, without gaps.
//!
//! Parameters: their count, "need not compress", elements in the chunk, then the tree of the
//! element's type: 1 atomic {size, order 0 LE / 1 BE, precision, offset}; 2 array {size, type};
//! 3 compound {size, members, each {offset, type}}; 4 bytes as they are {size}.
//! Stream: the precision's bits of each number, highest first, whatever its byte order; one byte
//! more than the bits fill, so a spare one where they end with a byte.

use super::bits::{BitReader, BitWriter};
use super::{ChunkShape, Filter, FilterError, FilterSpec, memory};

const NAME: &str = "nbit";

/// Types within types; HDF5's own nest far less.
const MOST_LEVELS: usize = 32;

/// A node of the type tree.
#[derive(Debug)]
enum Node {
    Number { size: usize, big_endian: bool, precision: u32, offset: u32 },
    Array { count: usize, item: Box<Node> },
    Compound { size: usize, members: Vec<(usize, Node)> },
    Bytes { size: usize },
}

/// Filter 5.
#[derive(Debug)]
pub(crate) struct Nbit {
    /// None: the chunk is stored as it is.
    element: Option<Node>,
    n_elems: usize,
    size: usize,
    /// Bits that one element takes in the stream.
    bits: usize,
}

/// Makes the filter; the registry's line.
pub(crate) fn new(spec: &FilterSpec, _shape: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    let mut params = Params { all: &spec.params, at: 1 };
    if params.next()? != 0 {
        return Ok(Box::new(Nbit { element: None, n_elems: 0, size: 0, bits: 0 }));
    }
    let n_elems = params.next()? as usize;
    let element = params.node(MOST_LEVELS)?;
    let (size, bits) = (element.size(), element.bits().ok_or(params.bad(3))?);
    Ok(Box::new(Nbit { element: Some(element), n_elems, size, bits }))
}

/// The parameters, read from front to back.
struct Params<'a> {
    all: &'a [u32],
    at: usize,
}

impl Params<'_> {
    fn next(&mut self) -> Result<u32, FilterError> {
        let (have, need) = (self.all.len(), self.at + 1);
        let value = *self.all.get(self.at).ok_or(FilterError::FewParameters {
            filter: NAME,
            have,
            need,
        })?;
        self.at += 1;
        Ok(value)
    }

    fn bad(&self, index: usize) -> FilterError {
        let value = self.all.get(index).copied().unwrap_or_default();
        FilterError::BadParameter { filter: NAME, index, value }
    }

    /// A size in bytes: at least 1.
    fn size(&mut self) -> Result<usize, FilterError> {
        let size = self.next()? as usize;
        if size == 0 { Err(self.bad(self.at - 1)) } else { Ok(size) }
    }

    fn node(&mut self, levels: usize) -> Result<Node, FilterError> {
        let class_at = self.at;
        let class = self.next()?;
        if levels == 0 {
            return Err(FilterError::Unsupported {
                filter: NAME,
                what: "a type nested more than 32 levels deep",
            });
        }
        let size = self.size()?;
        match class {
            1 => {
                let big_endian = match self.next()? {
                    0 => false,
                    1 => true,
                    _ => return Err(self.bad(self.at - 1)),
                };
                let (precision, offset) = (self.next()?, self.next()?);
                let most = (size as u64) * 8;
                if precision == 0 || u64::from(precision) > most {
                    return Err(self.bad(self.at - 2));
                }
                if u64::from(precision) + u64::from(offset) > most {
                    return Err(self.bad(self.at - 1));
                }
                Ok(Node::Number { size, big_endian, precision, offset })
            }
            2 => {
                let item_at = self.at;
                let item = Box::new(self.node(levels - 1)?);
                if size % item.size() != 0 {
                    return Err(self.bad(item_at));
                }
                Ok(Node::Array { count: size / item.size(), item })
            }
            3 => {
                let n_members = self.next()?;
                let mut members = Vec::new();
                for _ in 0..n_members {
                    let offset_at = self.at;
                    let offset = self.next()? as usize;
                    let member = self.node(levels - 1)?;
                    if offset.checked_add(member.size()).is_none_or(|end| end > size) {
                        return Err(self.bad(offset_at));
                    }
                    members.push((offset, member));
                }
                Ok(Node::Compound { size, members })
            }
            4 => Ok(Node::Bytes { size }),
            _ => Err(self.bad(class_at)),
        }
    }
}

impl Node {
    fn size(&self) -> usize {
        match self {
            Node::Number { size, .. } | Node::Compound { size, .. } | Node::Bytes { size } => *size,
            Node::Array { count, item } => count * item.size(),
        }
    }

    /// Bits in the stream; none where the count does not fit.
    fn bits(&self) -> Option<usize> {
        match self {
            Node::Number { precision, .. } => Some(*precision as usize),
            Node::Array { count, item } => item.bits()?.checked_mul(*count),
            Node::Compound { members, .. } => {
                members.iter().try_fold(0usize, |sum, (_, member)| sum.checked_add(member.bits()?))
            }
            Node::Bytes { size } => size.checked_mul(8),
        }
    }

    /// Takes one value from the stream into `to`, `size()` bytes of zeros.
    fn unpack(&self, from: &mut BitReader<'_>, to: &mut [u8]) {
        match self {
            Node::Number { size, big_endian, precision, offset } => {
                for (byte, width, shift) in pieces(*size, *precision, *offset) {
                    let byte = if *big_endian { size - 1 - byte } else { byte };
                    if let Some(to) = to.get_mut(byte) {
                        *to |= (from.take(width) as u8) << shift;
                    }
                }
            }
            Node::Array { item, .. } => {
                to.chunks_exact_mut(item.size()).for_each(|to| item.unpack(from, to));
            }
            Node::Compound { members, .. } => {
                for (offset, member) in members {
                    if let Some(to) = to.get_mut(*offset..offset + member.size()) {
                        member.unpack(from, to);
                    }
                }
            }
            Node::Bytes { .. } => to.iter_mut().for_each(|to| *to = from.take(8) as u8),
        }
    }

    /// Adds one value, `size()` bytes, to the stream.
    fn pack(&self, from: &[u8], to: &mut BitWriter<'_>) {
        match self {
            Node::Number { size, big_endian, precision, offset } => {
                for (byte, width, shift) in pieces(*size, *precision, *offset) {
                    let byte = if *big_endian { size - 1 - byte } else { byte };
                    let value = from.get(byte).copied().unwrap_or_default();
                    to.put(u64::from(value >> shift), width);
                }
            }
            Node::Array { item, .. } => {
                from.chunks_exact(item.size()).for_each(|from| item.pack(from, to));
            }
            Node::Compound { members, .. } => {
                for (offset, member) in members {
                    if let Some(from) = from.get(*offset..offset + member.size()) {
                        member.pack(from, to);
                    }
                }
            }
            Node::Bytes { .. } => from.iter().for_each(|&byte| to.put(u64::from(byte), 8)),
        }
    }
}

/// The bytes that hold a number's significant bits, from the highest down: which byte (0 holds
/// the lowest bits), how many bits of it, and how far those are from its low end.
fn pieces(
    size: usize,
    precision: u32,
    offset: u32,
) -> impl Iterator<Item = (usize, u32, u32)> + use<> {
    let end = precision + offset;
    let (lowest, highest) = ((offset / 8) as usize, ((end - 1) / 8) as usize);
    (lowest..=highest.min(size - 1)).rev().map(move |byte| {
        let shift = if byte == lowest { offset % 8 } else { 0 };
        let top = if byte == highest { (end - 1) % 8 + 1 } else { 8 };
        (byte, top - shift, shift)
    })
}

impl Nbit {
    /// Bytes of the stream that hold bits; none where that is no size of memory.
    fn stream_len(&self) -> Option<usize> {
        Some(self.bits.checked_mul(self.n_elems)?.div_ceil(8))
    }

    /// A lone number of a size that fits a register: nearly every use of this filter.
    fn unpack_numbers(&self, stored: &[u8], out: &mut [u8]) -> bool {
        let Some(Node::Number { size, big_endian, precision, offset }) = self.element else {
            return false;
        };
        if size > 8 {
            return false;
        }
        let mut from = BitReader::new(stored);
        for to in out.chunks_exact_mut(size) {
            let value = from.take(precision) << offset;
            if big_endian {
                let bytes = value.to_be_bytes();
                to.copy_from_slice(bytes.get(8 - size..).unwrap_or_default());
            } else {
                let bytes = value.to_le_bytes();
                to.copy_from_slice(bytes.get(..size).unwrap_or_default());
            }
        }
        true
    }
}

impl Filter for Nbit {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        let Some(element) = &self.element else {
            return memory::copy(NAME, stored, most, out);
        };
        let len = self.size.checked_mul(self.n_elems).filter(|len| *len <= most).ok_or(
            FilterError::WrongLength {
                filter: NAME,
                got: self.size.saturating_mul(self.n_elems),
                expected: most,
            },
        )?;
        if self.stream_len().is_none_or(|need| need > stored.len()) {
            return Err(FilterError::Damaged {
                filter: NAME,
                at: stored.len(),
                what: "ends early",
            });
        }
        memory::zeroed(NAME, out, len)?;
        if !self.unpack_numbers(stored, out) {
            let mut from = BitReader::new(stored);
            out.chunks_exact_mut(self.size).for_each(|to| element.unpack(&mut from, to));
        }
        Ok(())
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        let Some(element) = &self.element else {
            out.extend_from_slice(raw);
            return Ok(true);
        };
        let expected = self.size.saturating_mul(self.n_elems);
        if raw.len() != expected {
            return Err(FilterError::WrongLength { filter: NAME, got: raw.len(), expected });
        }
        let mut to = BitWriter::new(out);
        raw.chunks_exact(self.size).for_each(|from| element.pack(from, &mut to));
        to.finish();
        out.resize(self.stream_len().unwrap_or(out.len()), 0);
        if (self.bits * self.n_elems).is_multiple_of(8) {
            out.push(0);
        }
        Ok(true)
    }
}

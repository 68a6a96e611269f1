//! Parameters of filters as they go into the file.
//!
//! The parameters of some filters in the file have more than what a program gives: the size of an element, the
//! shape of a chunk or the byte order. A filter that cannot work with the variable's type keeps the parameters that were
//! given, and fails when it is applied. The parameters of zfp in the file are the header of a stream, and the
//! program has to give them so.

use zonda_hdf5::message::{ByteOrder, Class, Datatype, FilterDescription};
use zonda_model::{ExtType, default_fill};

use super::draft::{Fill, Layout, VarDraft};

/// Registered numbers.
pub(crate) const DEFLATE: u16 = 1;
pub(crate) const SHUFFLE: u16 = 2;
pub(crate) const FLETCHER32: u16 = 3;
pub(crate) const SZIP: u16 = 4;
const NBIT: u16 = 5;
const SCALE_OFFSET: u16 = 6;
const LZF: u16 = 32000;
const BLOSC: u16 = 32001;
const BITSHUFFLE: u16 = 32008;
const BLOSC2: u16 = 32026;

/// How many parameters the file has before those that a program gives.
pub(crate) fn params_added(id: u16) -> usize {
    if id == BITSHUFFLE { 3 } else { 0 }
}

/// The filters of a draft as they go into the file. The type of numbers is needed where the default
/// fill value is one.
pub(crate) fn stored(draft: &VarDraft, ext: Option<ExtType>) -> Vec<FilterDescription> {
    let Layout::Chunked(chunk) = &draft.layout else {
        return Vec::new();
    };
    if draft.filters_are_stored {
        return draft.filters.clone();
    }
    let fill = match (draft.fill(), ext) {
        (Fill::User(held), _) => Some(held.bytes().to_vec()),
        (Fill::Default, Some(ext)) => {
            Some(default_fill(ext).into_iter().take(ext.size()).collect())
        }
        (Fill::Default, None) | (Fill::None, _) => None,
    };
    let params = |filter: &FilterDescription| {
        let told = params(filter, &draft.datatype, chunk, fill.as_deref());
        told.unwrap_or_else(|| filter.params.clone())
    };
    let stored =
        |filter: &FilterDescription| FilterDescription { params: params(filter), ..filter.clone() };
    draft.filters.iter().map(stored).collect()
}

/// The parameters of a filter in the file; `None` where they are those that were given. The fill value is in native
/// bytes.
fn params(
    filter: &FilterDescription,
    datatype: &Datatype,
    chunk: &[u64],
    fill: Option<&[u8]>,
) -> Option<Vec<u32>> {
    let size = datatype.size;
    let given = &filter.params[..];
    let elems = chunk.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim))?;
    let bytes = elems.checked_mul(u64::from(size));
    match filter.id {
        SHUFFLE => Some(vec![size]),
        FLETCHER32 => Some(Vec::new()),
        SZIP => szip(given, datatype, chunk, elems),
        NBIT => {
            let number = Number::of(datatype)?;
            let elems = u32::try_from(elems).ok()?;
            // The filter gets all bits of the number.
            let (order, precision) = (number.order, u32::from(number.precision));
            Some(vec![8, 1, elems, 1, size, order, precision, 0])
        }
        SCALE_OFFSET => {
            let number = Number::of(datatype)?;
            let (&[kind, factor], Ok(elems)) = (given, u32::try_from(elems)) else {
                return None;
            };
            let signed = u32::from(number.signed && !number.is_float);
            let mut params = vec![kind, factor, elems, u32::from(number.is_float), size];
            params.extend([signed, number.order, u32::from(fill.is_some())]);
            params.extend(words(fill.unwrap_or_default()));
            params.resize(20, 0);
            Some(params)
        }
        LZF => Some(vec![4, 0x0105, u32::try_from(bytes?).ok()?]),
        BLOSC | BLOSC2 => {
            let mut params = given.to_vec();
            // Blosc has one byte for the size; more are shuffled as bytes.
            let size = if size > 255 { 1 } else { size };
            *params.get_mut(2)? = size;
            *params.get_mut(3)? = u32::try_from(bytes?).ok()?;
            Some(params)
        }
        BITSHUFFLE => {
            let mut params = vec![0, 4, size];
            params.extend(given);
            params.resize(params.len().max(5), 0);
            Some(params)
        }
        _ => None,
    }
}

/// A number's bits in words, the least significant first.
fn words(native: &[u8]) -> Vec<u32> {
    let mut bytes = native.to_vec();
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// What filters are told of a type of numbers.
struct Number {
    /// 0 for the least significant byte first, 1 for the most significant.
    order: u32,
    precision: u16,
    signed: bool,
    is_float: bool,
}

impl Number {
    fn of(datatype: &Datatype) -> Option<Number> {
        let (order, precision, signed, is_float) = match &datatype.class {
            Class::FixedPoint(bits) => (bits.order, bits.precision, bits.signed, false),
            Class::FloatingPoint(bits) => (bits.order, bits.precision, true, true),
            _ => return None,
        };
        let order = match order {
            ByteOrder::Little => 0,
            ByteOrder::Big => 1,
            ByteOrder::Vax => return None,
        };
        Some(Number { order, precision, signed, is_float })
    }
}

/// Options and pixels per block as given become: options with the byte order, pixels per block, bits
/// per pixel, pixels per scanline.
fn szip(given: &[u32], datatype: &Datatype, chunk: &[u64], elems: u64) -> Option<Vec<u32>> {
    // Of libaec's interface: K13 is allowed, data are "raw", chips are not worked for.
    const ALLOW_K13: u32 = 1;
    const CHIP: u32 = 2;
    const LSB: u32 = 8;
    const MSB: u32 = 16;
    const RAW: u32 = 128;
    const BLOCKS_PER_SCANLINE: u64 = 128;
    const MOST_PIXELS: u64 = 4096;
    let number = Number::of(datatype)?;
    let &[options, block] = given else {
        return None;
    };
    let pixels = u64::from(block);
    let order = if number.order == 0 { LSB } else { MSB };
    let options = (options & !(CHIP | LSB | MSB)) | ALLOW_K13 | RAW | order;
    let most = pixels.saturating_mul(BLOCKS_PER_SCANLINE);
    let scanline = match *chunk.last()? {
        _ if elems < pixels => return None,
        short if short < pixels => most.min(elems),
        fits if fits <= MOST_PIXELS => most.min(fits),
        _ => most,
    };
    Some(vec![options, block, u32::from(number.precision), u32::try_from(scanline).ok()?])
}

#[cfg(test)]
mod tests;

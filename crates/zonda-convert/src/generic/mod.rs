//! The definition of all conversions, one element at a time, written to be read: what each value of each pair of
//! types becomes.
//!
//! The block kernels are tested against this, and this against the reference library
//! (`tests/oracle.rs`). It is slow and never used for data.

mod number;

pub use number::{AnyNumber, ConvertedNumber, cast, get, put};

use zonda_model::{ExtType, MemType};

use crate::{ByteOrder, RangeRule};

/// Decodes one external element from `src` into `dst`; whether it fits.
///
/// Both slices hold exactly one element. `None` between text and numbers.
#[must_use]
pub fn decode_one(
    (ext, order): (ExtType, ByteOrder),
    (mem, rule): (MemType, RangeRule),
    src: &[u8],
    dst: &mut [u8],
) -> Option<bool> {
    if is_same(ext, mem, rule) {
        dst.copy_from_slice(&reordered(src, order));
        return Some(true);
    }
    let source = AnyNumber::from_ne_bytes(ext.natural_mem(), &reordered(src, order))?;
    let outcome = match rule {
        RangeRule::Cast => cast(source, mem)?,
        RangeRule::Strict | RangeRule::ByteIsUnsigned => get(source, mem)?,
    };
    if let Some(stored) = outcome.stored {
        dst.copy_from_slice(&stored.to_ne_bytes(mem));
    }
    Some(outcome.fits)
}

/// Encodes one memory element from `src` into `dst`; whether it fits.
///
/// Both slices hold exactly one element. `None` between text and numbers.
#[must_use]
pub fn encode_one(
    (ext, order): (ExtType, ByteOrder),
    (mem, rule): (MemType, RangeRule),
    src: &[u8],
    dst: &mut [u8],
) -> Option<bool> {
    if is_same(ext, mem, rule) {
        dst.copy_from_slice(&reordered(src, order));
        return Some(true);
    }
    let source = AnyNumber::from_ne_bytes(mem, src)?;
    let outcome = match rule {
        RangeRule::Cast if ext == ExtType::Char => None?,
        RangeRule::Cast => cast(source, ext.natural_mem())?,
        RangeRule::Strict | RangeRule::ByteIsUnsigned => put(source, mem, ext)?,
    };
    if let Some(stored) = outcome.stored {
        dst.copy_from_slice(&reordered(&stored.to_ne_bytes(ext.natural_mem()), order));
    }
    Some(outcome.fits)
}

/// Whether the element's bits are copied: the natural type, or the byte rule of CDF-1 and CDF-2.
fn is_same(ext: ExtType, mem: MemType, rule: RangeRule) -> bool {
    ext.natural_mem() == mem
        || (rule == RangeRule::ByteIsUnsigned && ext == ExtType::Byte && mem == MemType::U8)
}

/// One element's bytes in the machine's order, or back.
fn reordered(element: &[u8], order: ByteOrder) -> Vec<u8> {
    let mut bytes = element.to_vec();
    if order != ByteOrder::NATIVE {
        bytes.reverse();
    }
    bytes
}

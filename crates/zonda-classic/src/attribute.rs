//! Types and values of attributes.

use smallvec::SmallVec;
use zonda_convert::{ByteOrder, Converted, Encoder, RangeRule};
use zonda_model::{ExtType, MemType, memory};

use crate::error::ClassicError;
use crate::header::Version;

/// Most values of one attribute (the reference's limit in every format).
pub(crate) const MAX_VALUES: usize = 0x7FFF_FFFF;

/// How often the bytes of an attribute are in memory while it is committed.
const COPIES: usize = 4;

/// Bytes of an attribute that is not worth asking for.
const SMALL: usize = 1 << 16;

/// How `NC_BYTE` and unsigned char go together in a format.
pub(crate) fn range_rule(version: Version) -> RangeRule {
    if version == Version::Cdf5 { RangeRule::Strict } else { RangeRule::ByteIsUnsigned }
}

/// Refuses text as numbers and numbers as text; otherwise the memory type to use.
pub(crate) fn check_mix(
    ty: ExtType,
    mem: Option<MemType>,
    object: impl FnOnce() -> String,
) -> Result<MemType, ClassicError> {
    let mem = mem.unwrap_or(ty.natural_mem());
    if (mem == MemType::Text) == (ty == ExtType::Char) {
        Ok(mem)
    } else {
        Err(ClassicError::TextNumberMix(object()))
    }
}

/// The values of an attribute in external form: `len` bytes.
pub(crate) fn encode(
    version: Version,
    ty: ExtType,
    mem: MemType,
    memory: &[u8],
    len: usize,
) -> Result<(SmallVec<[u8; 16]>, Converted), ClassicError> {
    if len > SMALL {
        // A commit puts all of it into the header that it writes, beside the one that is there.
        memory::room::<u8>(len.saturating_mul(COPIES))?;
    }
    let mut bytes = SmallVec::new();
    if len > SMALL {
        bytes = SmallVec::from_vec(memory::filled(len, 0u8)?);
    }
    bytes.resize(len, 0);
    match Encoder::new(ty, ByteOrder::Big, mem, range_rule(version)) {
        Ok(encoder) => {
            let converted = encoder.encode(memory, &mut bytes);
            Ok((bytes, converted))
        }
        // `check_mix` has refused every pair that the encoder refuses.
        Err(_) => Ok((bytes, Converted { out_of_range: 0 })),
    }
}

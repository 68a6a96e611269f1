//! The grammar from definitions to bytes, and how many bytes these are.

use zonda_model::memory::{self, NoMemory};

use super::{NC_ATTRIBUTE, NC_DIMENSION, NC_VARIABLE};
use crate::atts::Atts;
use crate::header::{Header, Var, Version};

/// What stands in the `vsize` field of CDF-1/2 when the size does not fit (2^32 - 1).
const VSIZE_TOO_LARGE: u64 = 0xFFFF_FFFF;
/// The largest size that the field can hold.
const VSIZE_MAX: u64 = 0xFFFF_FFFC;

/// Bytes that [`encode_header`] will produce, known before offsets are.
#[must_use]
pub(crate) fn encoded_len(header: &Header) -> u64 {
    let mut out = HeaderWriter { bytes: Length(0), version: header.version };
    out.header(header, 0);
    out.bytes.0
}

/// The header in external form.
///
/// # Errors
/// [`NoMemory`].
pub fn encode_header(header: &Header, n_records: u64) -> Result<Vec<u8>, NoMemory> {
    let capacity = usize::try_from(encoded_len(header)).unwrap_or(usize::MAX);
    let mut out = HeaderWriter { bytes: memory::room(capacity)?, version: header.version };
    out.header(header, n_records);
    Ok(out.bytes)
}

/// `numrecs` alone in external form, to be written at byte 4.
#[must_use]
pub(crate) fn encode_numrecs(version: Version, n_records: u64) -> Vec<u8> {
    let mut out = HeaderWriter { bytes: Vec::with_capacity(8), version };
    out.non_neg(n_records);
    out.bytes
}

/// Where encoded bytes go: into memory, or they are only counted.
trait ByteSink {
    fn append(&mut self, bytes: &[u8]);
}

impl ByteSink for Vec<u8> {
    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// How many bytes were appended; saturating.
struct Length(u64);

impl ByteSink for Length {
    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        self.0 = self.0.saturating_add(bytes.len() as u64);
    }
}

struct HeaderWriter<B> {
    bytes: B,
    version: Version,
}

impl<B: ByteSink> HeaderWriter<B> {
    fn header(&mut self, header: &Header, n_records: u64) {
        self.bytes.append(b"CDF");
        self.bytes.append(&[header.version.byte()]);
        self.non_neg(n_records);
        self.list(NC_DIMENSION, header.dims.len());
        for dim in &header.dims {
            self.name(&dim.name);
            self.non_neg(dim.len);
        }
        self.atts(&header.atts);
        self.list(NC_VARIABLE, header.vars.len());
        for var in &header.vars {
            self.var(var);
        }
    }

    fn u32(&mut self, value: u32) {
        self.bytes.append(&value.to_be_bytes());
    }

    fn non_neg(&mut self, value: u64) {
        if self.version == Version::Cdf5 {
            self.bytes.append(&value.to_be_bytes());
        } else {
            // Values beyond 32 bits are refused at definition; all ones is the only other use.
            self.u32(u32::try_from(value).unwrap_or(u32::MAX));
        }
    }

    fn list(&mut self, tag: u32, n_items: usize) {
        self.u32(if n_items == 0 { 0 } else { tag });
        self.non_neg(n_items as u64);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes.append(bytes);
        let padding = bytes.len().wrapping_neg() & 3;
        self.bytes.append([0; 3].get(..padding).unwrap_or_default());
    }

    fn name(&mut self, name: &[u8]) {
        self.non_neg(name.len() as u64);
        self.padded(name);
    }

    fn atts(&mut self, atts: &Atts) {
        self.list(NC_ATTRIBUTE, atts.len());
        if let Some(bytes) = atts.as_read() {
            return self.bytes.append(bytes);
        }
        for att in atts.iter() {
            self.name(att.name);
            self.u32(att.ty.nc_type().cast_unsigned());
            self.non_neg(att.len);
            self.padded(att.bytes);
        }
    }

    fn var(&mut self, var: &Var) {
        self.name(&var.name);
        self.non_neg(var.dims.len() as u64);
        for dim in &var.dims {
            self.non_neg(u64::from(dim.0.cast_unsigned()));
        }
        self.atts(&var.atts);
        self.u32(var.ty.nc_type().cast_unsigned());
        let vsize = var.padded_bytes();
        let narrow = self.version != Version::Cdf5;
        self.non_neg(if narrow && vsize > VSIZE_MAX { VSIZE_TOO_LARGE } else { vsize });
        if self.version == Version::Cdf1 {
            self.u32(u32::try_from(var.begin).unwrap_or(u32::MAX));
        } else {
            self.bytes.append(&var.begin.to_be_bytes());
        }
    }
}

//! The header grammar, both ways.
//!
//! Spec: NetCDF File Format Specifications, "The Format in Detail", and the CDF-5 text of PnetCDF.
//! One function per production; `N` is 4 bytes in CDF-1/2 and 8 in CDF-5.
//!
//! ```text
//! header   = magic numrecs(N) dim_list gatt_list var_list
//! list     = ABSENT | tag(4) nelems(N) item*
//! name     = nbytes(N) bytes padded to 4
//! dim      = name length(N)
//! att      = name nc_type(4) nelems(N) values padded to 4
//! var      = name ndims(N) dimid(N)* att_list nc_type(4) vsize(N) begin(4 in CDF-1, else 8)
//! ```

use std::sync::Arc;

use smallvec::SmallVec;
use zonda_model::memory::{self, NoMemory};
use zonda_model::{DimId, ExtType};

use crate::atts::{AttRef, Atts, Source};
use crate::error::{ClassicError, shown};
use crate::header::{Dim, Header, Name, Var, Version, round_up};
use crate::layout;
use crate::reader::Reader;

/// Tag of a dimension list.
const NC_DIMENSION: u32 = 0x0A;
/// Tag of a variable list.
const NC_VARIABLE: u32 = 0x0B;
/// Tag of an attribute list.
const NC_ATTRIBUTE: u32 = 0x0C;

/// What stands in the `vsize` field of CDF-1/2 when the size does not fit (2^32 - 1).
const VSIZE_TOO_LARGE: u64 = 0xFFFF_FFFF;
/// The largest size that the field can hold.
const VSIZE_MAX: u64 = 0xFFFF_FFFC;

/// Bounds on what a header may cost, above any real file.
#[derive(Clone, Copy, Debug)]
pub struct DecodeLimits {
    /// Longest header in bytes. A header of a million variables is about 100 MB.
    pub header_bytes: u64,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        DecodeLimits { header_bytes: 256 << 20 }
    }
}

/// Reads a header from the first bytes of a file.
///
/// Returns it with its layout, and the record count as it stands in the file (all ones: streaming).
/// `bytes` may be any prefix of the file that holds the header.
///
/// # Errors
/// [`ClassicError::Truncated`] and [`ClassicError::CountTooLarge`] when `bytes` end too early: the
/// caller decides whether the file goes on; the other causes for bytes that break the grammar or
/// the rules on offsets and sizes.
pub fn decode_header(bytes: &[u8]) -> Result<(Header, u64), ClassicError> {
    let mut reader = Reader::new(bytes);
    let parsed = parse(&mut reader)?;
    parsed.finish(bytes.get(..reader.done()).unwrap_or(bytes).to_vec())
}

/// [`decode_header`] of bytes that the header then keeps.
///
/// # Errors
/// As [`decode_header`], and how long the header may be by what could be read of it: at least as
/// long as `bytes`.
pub(crate) fn decode_read(mut bytes: Vec<u8>) -> Result<(Header, u64), (ClassicError, u64)> {
    let mut reader = Reader::new(&bytes);
    let parsed = match parse(&mut reader) {
        Ok(parsed) => parsed,
        Err(error) => return Err((error, reader.expected())),
    };
    let len = reader.done();
    bytes.truncate(len);
    bytes.shrink_to_fit();
    parsed.finish(bytes).map_err(|error| (error, len as u64))
}

/// The definitions of a header that is damaged or cut off, up to the first that cannot be read, and
/// the record count as it stands there.
///
/// # Errors
/// [`ClassicError::BadMagic`]; bytes that end before the list of dimensions.
pub(crate) fn decode_left(bytes: Vec<u8>) -> Result<(Header, u64), ClassicError> {
    let mut reader = Reader::new(&bytes);
    let version = magic(&mut reader)?;
    let mut header = Header::new(version);
    reader.set_wide(version == Version::Cdf5);
    reader.enter("numrecs");
    let n_records = reader.non_neg()?;
    let mut lists = AttLists::default();
    // It ends with the error that the whole header gave.
    let _ = (|| {
        reader.enter("dim_list");
        for _ in 0..left_items(&mut reader, NC_DIMENSION, min_dim_len(version))? {
            reader.enter("dim");
            let name = name(&mut reader)?;
            let len = reader.non_neg()?;
            header.push_dim(Dim { name, len });
        }
        lists.read_left(&mut reader, "gatt_list")?;
        reader.enter("var_list");
        for _ in 0..left_items(&mut reader, NC_VARIABLE, 28)? {
            let n_lists = lists.lists.len();
            match var(&mut reader, &header, &mut lists) {
                Ok(var) => header.push_var(var),
                Err(error) => {
                    lists.lists.truncate(n_lists);
                    return Err(error);
                }
            }
        }
        Ok::<_, ClassicError>(())
    })();
    lists.give_to(&mut header, bytes);
    if layout::read_back(&mut header).is_err() {
        // Where one lies is not to be believed, so where the others lie is not either.
        header.clear_vars();
        layout::read_back(&mut header)?;
    }
    Ok((header, n_records))
}

/// The number of items of a list, of which not all need to be there.
fn left_items(reader: &mut Reader<'_>, expected: u32, item_len: u64) -> Result<u64, ClassicError> {
    match list(reader, expected, item_len) {
        Err(ClassicError::CountTooLarge { count, .. }) => Ok(count),
        listed => listed.map(|n| n as u64),
    }
}

/// A header that was taken apart but for its attributes.
struct Parsed {
    header: Header,
    n_records: u64,
    lists: AttLists,
}

fn parse(reader: &mut Reader<'_>) -> Result<Parsed, ClassicError> {
    let version = magic(reader)?;
    let mut header = Header::new(version);
    reader.set_wide(version == Version::Cdf5);
    reader.enter("numrecs");
    let n_records = reader.non_neg()?;
    dim_list(reader, &mut header)?;
    let mut lists = AttLists::default();
    lists.read(reader, "gatt_list")?;
    var_list(reader, &mut header, &mut lists)?;
    Ok(Parsed { header, n_records, lists })
}

impl Parsed {
    /// The header on top of its `bytes`, which are kept for the attributes.
    fn finish(self, bytes: Vec<u8>) -> Result<(Header, u64), ClassicError> {
        let mut header = self.header;
        self.lists.give_to(&mut header, bytes);
        layout::read_back(&mut header)?;
        Ok((header, self.n_records))
    }
}

/// `magic = "CDF" version`
fn magic(reader: &mut Reader<'_>) -> Result<Version, ClassicError> {
    let found: [u8; 4] = reader.array()?;
    match &found {
        b"CDF\x01" => Ok(Version::Cdf1),
        b"CDF\x02" => Ok(Version::Cdf2),
        b"CDF\x05" => Ok(Version::Cdf5),
        _ => Err(ClassicError::BadMagic { found: found.to_vec() }),
    }
}

/// `list = ABSENT | tag nelems item*`: the number of items.
///
/// With no items any tag is accepted, as the reference does.
#[inline]
fn list(reader: &mut Reader<'_>, expected: u32, item_len: u64) -> Result<usize, ClassicError> {
    let at = reader.at();
    let found = reader.u32()?;
    let before_count = reader.at();
    let n_items = reader.count(item_len);
    if found != expected && !matches!(n_items, Ok(0)) {
        // The count is not worth reporting when not even the tag is right.
        let production = reader.production();
        if before_count != reader.at() {
            return Err(ClassicError::BadTag { production, at, expected, found });
        }
    }
    n_items
}

/// `name = nbytes bytes padding`.
fn name(reader: &mut Reader<'_>) -> Result<Name, ClassicError> {
    let counted = counted_name(reader)?;
    Ok(Name::in_space(up_to_nul(counted), counted.len()))
}

#[inline]
fn counted_name<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], ClassicError> {
    let len = reader.count(1)?;
    reader.padded(len)
}

/// Bytes from the first NUL on are not part of a name: netCDF-C pads a name that was shortened in
/// data mode with NULs inside its counted length.
#[inline]
pub(crate) fn up_to_nul(counted: &[u8]) -> &[u8] {
    let end = counted.iter().position(|&byte| byte == 0);
    end.and_then(|end| counted.get(..end)).unwrap_or(counted)
}

fn dim_list(reader: &mut Reader<'_>, header: &mut Header) -> Result<(), ClassicError> {
    reader.enter("dim_list");
    let n = list(reader, NC_DIMENSION, min_dim_len(header.version))?;
    header.dims.reserve_exact(n);
    for _ in 0..n {
        reader.enter("dim");
        let name = name(reader)?;
        let len = reader.non_neg()?;
        header.push_dim(Dim { name, len });
    }
    Ok(())
}

/// The attribute lists of a header while it is read: they are checked and passed over.
#[derive(Default)]
struct AttLists {
    /// For each list the places of its attributes and then of its end.
    places: Vec<u32>,
    /// Where the places of each list begin, and how many attributes it has.
    lists: Vec<(u32, u32)>,
}

impl AttLists {
    /// `gatt_list` or `vatt_list`.
    fn read(
        &mut self,
        reader: &mut Reader<'_>,
        production: &'static str,
    ) -> Result<(), ClassicError> {
        reader.enter(production);
        // name length, type and count: at least 12 bytes also in CDF-1
        let n = list(reader, NC_ATTRIBUTE, 12)?;
        reader.enter("att");
        let first = self.places.len();
        for _ in 0..n {
            self.places.push(place(reader.at())?);
            att(reader)?;
        }
        self.places.push(place(reader.at())?);
        self.lists.push((place(first as u64)?, place(n as u64)?));
        Ok(())
    }

    /// [`AttLists::read`] where the list may be damaged or cut off: it then has those before.
    fn read_left(
        &mut self,
        reader: &mut Reader<'_>,
        production: &'static str,
    ) -> Result<(), ClassicError> {
        reader.enter(production);
        let first = place(self.places.len() as u64)?;
        let mut n = 0u32;
        let mut whole = left_items(reader, NC_ATTRIBUTE, 12);
        reader.enter("att");
        if let Ok(listed) = whole {
            for _ in 0..listed {
                self.places.push(place(reader.at())?);
                if let Err(error) = att(reader) {
                    whole = Err(error);
                    break;
                }
                n = n.saturating_add(1);
            }
        }
        if whole.is_ok() || n == 0 {
            self.places.push(place(reader.at())?);
        }
        self.lists.push((first, n));
        whole.map(drop)
    }

    /// Gives the lists to their owners, the file first, with the `bytes` that they were read from.
    fn give_to(self, header: &mut Header, bytes: Vec<u8>) {
        let wide = header.version == Version::Cdf5;
        let source = Arc::new(Source { bytes, places: self.places, wide });
        let owners = header.vars.iter_mut().map(|var| &mut var.atts);
        for (owner, (first, n)) in std::iter::once(&mut header.atts).chain(owners).zip(self.lists) {
            *owner = Atts::stored(&source, first, n);
        }
    }
}

/// A place in a header, of which there are no more than 4 GiB.
#[inline]
fn place(at: u64) -> Result<u32, ClassicError> {
    u32::try_from(at).map_err(|_| ClassicError::HeaderTooLong { limit: u64::from(u32::MAX) })
}

/// `att = name nc_type nelems values`, its name with all bytes that are counted.
///
/// Always inlined: where a list is only passed over, nothing is left of it but the bounds.
#[inline(always)]
pub(crate) fn att<'a>(reader: &mut Reader<'a>) -> Result<AttRef<'a>, ClassicError> {
    let name = counted_name(reader)?;
    let ty = nc_type(reader)?;
    let len = reader.count(ty.size() as u64)?;
    let bytes = reader.padded(len.saturating_mul(ty.size()))?;
    Ok(AttRef { name, ty, len: len as u64, bytes })
}

#[inline]
fn nc_type(reader: &mut Reader<'_>) -> Result<ExtType, ClassicError> {
    let at = reader.at();
    let found = reader.u32()?;
    // The reference accepts the five CDF-5 types in CDF-1/2 files, too.
    let Some(ty) = i32::try_from(found).ok().and_then(ExtType::from_nc_type) else {
        return Err(ClassicError::BadTypeCode { production: reader.production(), at, found });
    };
    Ok(ty)
}

fn var_list(
    reader: &mut Reader<'_>,
    header: &mut Header,
    lists: &mut AttLists,
) -> Result<(), ClassicError> {
    reader.enter("var_list");
    // name length, ndims, empty att_list (tag and count), type, vsize, begin
    let listed = list(reader, NC_VARIABLE, 28);
    if let Err(ClassicError::CountTooLarge { count, .. }) = listed {
        // Those that are here tell how long all of them may be.
        reader.begin_items(count);
        while var(reader, header, lists).is_ok() {
            reader.item_read();
        }
    }
    let n = listed?;
    header.vars.reserve_exact(n);
    reader.begin_items(n as u64);
    for _ in 0..n {
        let var = var(reader, header, lists)?;
        header.push_var(var);
        reader.item_read();
    }
    Ok(())
}

fn var(
    reader: &mut Reader<'_>,
    header: &Header,
    lists: &mut AttLists,
) -> Result<Var, ClassicError> {
    reader.enter("var");
    let name = name(reader)?;
    let n_dims = reader.count(header.version.count_len())?;
    let mut dims = SmallVec::with_capacity(n_dims);
    let mut shape = SmallVec::with_capacity(n_dims);
    for _ in 0..n_dims {
        let id = reader.non_neg()?;
        let dim = usize::try_from(id).ok().and_then(|i| header.dims.get(i));
        let (Some(dim), Ok(id)) = (dim, i32::try_from(id)) else {
            let dim = i64::try_from(id).unwrap_or(i64::MAX);
            return Err(ClassicError::BadDimOfVar { variable: shown(&name), dim });
        };
        if dim.len == 0 && !dims.is_empty() {
            return Err(ClassicError::RecordDimNotFirst { variable: shown(&name) });
        }
        dims.push(DimId(id));
        shape.push(dim.len);
    }
    lists.read(reader, "vatt_list")?;
    reader.enter("var");
    let ty = nc_type(reader)?;
    // vsize is redundant and, in CDF-1/2, may not hold the true size: computed from the shape.
    let _vsize = reader.non_neg()?;
    let begin =
        if header.version == Version::Cdf1 { u64::from(reader.u32()?) } else { reader.u64()? };
    // The attributes come when all lists are known.
    let atts = Atts::default();
    Ok(Var { name, dims, shape, atts, ty, begin, no_fill: false })
}

fn min_dim_len(version: Version) -> u64 {
    version.count_len().saturating_mul(2)
}

/// Bytes that [`encode_header`] will produce, known before offsets are.
#[must_use]
pub(crate) fn encoded_len(header: &Header) -> u64 {
    let n = header.version.count_len();
    let list = n.saturating_add(4);
    let name = |name: &[u8]| n.saturating_add(round_up(name.len() as u64, 4));
    let atts = |atts: &Atts| {
        if let Some(bytes) = atts.as_read() {
            return list.saturating_add(bytes.len() as u64);
        }
        atts.iter().fold(list, |sum, att| {
            sum.saturating_add(name(att.name))
                .saturating_add(4)
                .saturating_add(n)
                .saturating_add(round_up(att.bytes.len() as u64, 4))
        })
    };
    let dims = header
        .dims
        .iter()
        .fold(list, |sum, dim| sum.saturating_add(name(&dim.name)).saturating_add(n));
    let vars = header.vars.iter().fold(list, |sum, var| {
        sum.saturating_add(name(&var.name))
            .saturating_add(n.saturating_mul((var.dims.len() as u64).saturating_add(2)))
            .saturating_add(atts(&var.atts))
            .saturating_add(4)
            .saturating_add(header.version.offset_len())
    });
    4u64.saturating_add(n)
        .saturating_add(dims)
        .saturating_add(atts(&header.atts))
        .saturating_add(vars)
}

/// The header in external form.
///
/// # Errors
/// [`NoMemory`].
pub fn encode_header(header: &Header, n_records: u64) -> Result<Vec<u8>, NoMemory> {
    let capacity = usize::try_from(encoded_len(header)).unwrap_or(usize::MAX);
    let mut out = Writer { bytes: memory::room(capacity)?, version: header.version };
    out.bytes.extend_from_slice(b"CDF");
    out.bytes.push(header.version.byte());
    out.non_neg(n_records);
    out.list(NC_DIMENSION, header.dims.len());
    for dim in &header.dims {
        out.name(&dim.name);
        out.non_neg(dim.len);
    }
    out.atts(&header.atts);
    out.list(NC_VARIABLE, header.vars.len());
    for var in &header.vars {
        out.var(var);
    }
    Ok(out.bytes)
}

/// `numrecs` alone in external form, to be written at byte 4.
#[must_use]
pub(crate) fn encode_numrecs(version: Version, n_records: u64) -> Vec<u8> {
    let mut out = Writer { bytes: Vec::with_capacity(8), version };
    out.non_neg(n_records);
    out.bytes
}

/// Byte offset of `numrecs` in every classic file.
pub(crate) const NUMRECS_AT: u64 = 4;

struct Writer {
    bytes: Vec<u8>,
    version: Version,
}

impl Writer {
    fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    fn non_neg(&mut self, value: u64) {
        if self.version == Version::Cdf5 {
            self.bytes.extend_from_slice(&value.to_be_bytes());
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
        self.bytes.extend_from_slice(bytes);
        let padding = bytes.len().wrapping_neg() & 3;
        self.bytes.resize(self.bytes.len().saturating_add(padding), 0);
    }

    fn name(&mut self, name: &[u8]) {
        self.non_neg(name.len() as u64);
        self.padded(name);
    }

    fn atts(&mut self, atts: &Atts) {
        self.list(NC_ATTRIBUTE, atts.len());
        if let Some(bytes) = atts.as_read() {
            return self.bytes.extend_from_slice(bytes);
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
            self.bytes.extend_from_slice(&var.begin.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atts::Att;
    use crate::layout;
    use zonda_format::{FormatError as _, Reserve};
    use zonda_model::VarId;

    fn sample(version: Version) -> Header {
        let mut header = Header::new(version);
        let dim = |name: &str, len| Dim { name: name.as_bytes().into(), len };
        header.push_dim(dim("time", 0));
        header.push_dim(dim("x", 3));
        header.push_dim(dim("naïve", 7));
        header.atts.push(Att {
            name: b"title"[..].into(),
            ty: ExtType::Char,
            len: 5,
            bytes: SmallVec::from_slice(b"hello"),
        });
        header.atts.push(Att {
            name: b"none"[..].into(),
            ty: ExtType::Int,
            len: 0,
            bytes: SmallVec::new(),
        });
        for (name, dims, ty) in [
            ("s", &[][..], ExtType::Double),
            ("f", &[1, 2][..], ExtType::Short),
            ("r", &[0, 1][..], ExtType::Byte),
            ("t", &[0][..], ExtType::Float),
        ] {
            header.push_var(Var {
                name: name.as_bytes().into(),
                dims: dims.iter().map(|&d| DimId(d)).collect(),
                shape: dims.iter().map(|&d| header.dims[d as usize].len).collect(),
                atts: header.atts.clone(),
                ty,
                begin: 0,
                no_fill: false,
            });
        }
        layout::assign(&mut header, None, Reserve::Default).unwrap();
        header
    }

    #[test]
    fn round_trip_in_every_version() {
        for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
            let header = sample(version);
            let bytes = encode_header(&header, 9).unwrap();
            assert_eq!(bytes.len() as u64, encoded_len(&header));
            let (back, n_records) = decode_header(&bytes).unwrap();
            assert_eq!(n_records, 9);
            assert_eq!(back.dims, header.dims);
            assert_eq!(back.atts, header.atts);
            assert_eq!(back.vars, header.vars);
            assert_eq!(back.layout, header.layout);
            assert_eq!(encode_header(&back, 9).unwrap(), bytes);
            assert_eq!(back.find_var(b"r").unwrap(), VarId(2));
        }
    }

    #[test]
    fn empty_files_have_the_specified_lengths() {
        for (version, len) in [(Version::Cdf1, 32), (Version::Cdf2, 32), (Version::Cdf5, 48)] {
            assert_eq!(encode_header(&Header::new(version), 0).unwrap().len(), len);
        }
    }

    #[test]
    fn every_prefix_and_every_flipped_byte_ends_in_an_answer() {
        for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
            let bytes = encode_header(&sample(version), 2).unwrap();
            for len in 0..bytes.len() {
                assert!(decode_header(&bytes[..len]).is_err(), "prefix of {len} bytes");
            }
            let mut damaged = bytes.clone();
            for at in 0..bytes.len() {
                for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1] {
                    damaged[at] = value;
                    let _ = decode_header(&damaged);
                }
                damaged[at] = bytes[at];
            }
        }
    }

    #[test]
    fn damage_is_reported_where_it_is() {
        let mut bytes = encode_header(&sample(Version::Cdf1), 2).unwrap();
        bytes[8..12].copy_from_slice(&0x0Bu32.to_be_bytes());
        let error = decode_header(&bytes).unwrap_err();
        assert_eq!(error.to_string(), "dim_list at byte 8: tag 0x0a expected, got 0x0b");
        assert_eq!(error.nc_error().code(), 22);
    }
}

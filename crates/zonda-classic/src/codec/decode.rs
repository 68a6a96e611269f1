//! The grammar from bytes to definitions.

use std::sync::Arc;

use smallvec::SmallVec;
use zonda_model::{DimId, ExtType};

use super::{NC_ATTRIBUTE, NC_DIMENSION, NC_VARIABLE};
use crate::atts::{AttRef, Atts, HeaderBytes};
use crate::error::{ClassicError, shown};
use crate::header::{Dim, Header, Name, Var, Version};
use crate::layout;
use crate::reader::HeaderReader;
use crate::spare;

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
    let mut reader = HeaderReader::new(bytes);
    let parsed = Parsed::read(&mut reader)?;
    parsed.finish(bytes.get(..reader.done()).unwrap_or(bytes).to_vec())
}

/// [`decode_header`] of the first `got` bytes, which the header then takes.
///
/// # Errors
/// As [`decode_header`], with an estimate of the header's length from the part that could be read: at least that of `bytes`.
pub(crate) fn decode_read(
    bytes: &mut Vec<u8>,
    got: usize,
) -> Result<(Header, u64), (ClassicError, u64)> {
    let read = bytes.get(..got).unwrap_or_default();
    let mut reader = HeaderReader::new(read);
    let parsed = match Parsed::read(&mut reader) {
        Ok(parsed) => parsed,
        Err(error) => return Err((error, reader.expected())),
    };
    let len = reader.done();
    let mut header = std::mem::take(bytes);
    // What is much longer than the header goes to the next file that is opened.
    if len.saturating_mul(2) < header.capacity() {
        let exact = header.get(..len).unwrap_or_default().to_vec();
        spare::give_bytes(std::mem::replace(&mut header, exact));
    }
    header.truncate(len);
    parsed.finish(header).map_err(|error| (error, len as u64))
}

/// The definitions of a header that is damaged or cut off, up to the first that cannot be read, and
/// the record count as it stands there.
///
/// # Errors
/// [`ClassicError::BadMagic`]; bytes that end before the list of dimensions.
pub(crate) fn decode_damaged(bytes: Vec<u8>) -> Result<(Header, u64), ClassicError> {
    let mut reader = HeaderReader::new(&bytes);
    let mut parsed = Parsed::begin(&mut reader)?;
    reader.tolerate_counts();
    // The caller has this error already: it is the one that the whole header gave.
    let _ = parsed.read_definitions(&mut reader);
    let Parsed { mut header, n_records, lists, .. } = parsed;
    lists.give_to(&mut header, bytes);
    if layout::read_back(&mut header, None).is_err() {
        // The place of one variable is wrong, so the places of the others cannot be trusted either.
        header.clear_vars();
        layout::read_back(&mut header, None)?;
    }
    Ok((header, n_records))
}

/// A header that was taken apart but for its attributes.
struct Parsed {
    header: Header,
    n_records: u64,
    lists: AttLists,
    /// Bytes that it has when it is written, if they are known.
    written_len: Option<u64>,
}

impl Parsed {
    fn read(reader: &mut HeaderReader<'_>) -> Result<Parsed, ClassicError> {
        let mut parsed = Parsed::begin(reader)?;
        parsed.read_definitions(reader)?;
        parsed.written_len = reader.written_len();
        Ok(parsed)
    }

    /// `magic numrecs`
    fn begin(reader: &mut HeaderReader<'_>) -> Result<Parsed, ClassicError> {
        let header = Header::new(magic(reader)?);
        reader.set_wide(header.version == Version::Cdf5);
        reader.enter("numrecs");
        let lists = AttLists { places: spare::places(), lists: Vec::new() };
        Ok(Parsed { header, n_records: reader.non_neg()?, lists, written_len: None })
    }

    /// `dim_list gatt_list var_list`. After an error it has the definitions before the one that cannot be read.
    fn read_definitions(&mut self, reader: &mut HeaderReader<'_>) -> Result<(), ClassicError> {
        dim_list(reader, &mut self.header)?;
        self.lists.read(reader, "gatt_list")?;
        var_list(reader, &mut self.header, &mut self.lists)
    }

    /// The header on top of its `bytes`, which are kept for the attributes.
    fn finish(self, bytes: Vec<u8>) -> Result<(Header, u64), ClassicError> {
        let mut header = self.header;
        self.lists.give_to(&mut header, bytes);
        layout::read_back(&mut header, self.written_len)?;
        Ok((header, self.n_records))
    }
}

/// `magic = "CDF" version`
fn magic(reader: &mut HeaderReader<'_>) -> Result<Version, ClassicError> {
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
/// With no items any tag is accepted, as the reference does. Of a damaged header the count may be too large.
#[inline]
fn list(
    reader: &mut HeaderReader<'_>,
    expected: u32,
    item_len: u64,
) -> Result<usize, ClassicError> {
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
    match n_items {
        Err(ClassicError::CountTooLarge { count, .. }) if reader.tolerates_counts() => {
            Ok(usize::try_from(count).unwrap_or(usize::MAX))
        }
        n_items => n_items,
    }
}

/// `name = nbytes bytes padding`.
fn name(reader: &mut HeaderReader<'_>) -> Result<Name, ClassicError> {
    let counted = counted_name(reader)?;
    let name = up_to_nul(counted);
    if name.len() < counted.len() {
        reader.cut_name();
    }
    Ok(Name::in_space(name, counted.len()))
}

#[inline]
fn counted_name<'a>(reader: &mut HeaderReader<'a>) -> Result<&'a [u8], ClassicError> {
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

fn dim_list(reader: &mut HeaderReader<'_>, header: &mut Header) -> Result<(), ClassicError> {
    reader.enter("dim_list");
    let min_dim_len = header.version.count_len().saturating_mul(2);
    let n = list(reader, NC_DIMENSION, min_dim_len)?;
    if !reader.tolerates_counts() {
        header.dims.reserve_exact(n);
    }
    for _ in 0..n {
        reader.enter("dim");
        let name = name(reader)?;
        let len = reader.non_neg()?;
        header.push_dim(Dim { name, len });
    }
    Ok(())
}

/// The attribute lists of a header while it is read: they are checked and passed over.
struct AttLists {
    /// For each list the places of its attributes and then of its end.
    places: Vec<u32>,
    /// Where the places of each list begin, and how many attributes it has.
    lists: Vec<(u32, u32)>,
}

impl AttLists {
    /// `gatt_list` or `vatt_list`. After an error it has the attributes before the one that cannot be read.
    fn read(
        &mut self,
        reader: &mut HeaderReader<'_>,
        production: &'static str,
    ) -> Result<(), ClassicError> {
        reader.enter(production);
        let first = place(self.places.len() as u64)?;
        // name length, type and count: at least 12 bytes also in CDF-1
        let listed = list(reader, NC_ATTRIBUTE, 12);
        reader.enter("att");
        let mut n = 0u32;
        let result = listed.and_then(|listed| {
            for _ in 0..listed {
                self.places.push(place(reader.at())?);
                if !reader.pass_att() {
                    // It says what is wrong.
                    att(reader)?;
                }
                n = n.saturating_add(1);
            }
            self.places.push(place(reader.at())?);
            Ok(())
        });
        self.lists.push((first, n));
        result
    }

    /// Gives the lists to their owners, the file first, with the `bytes` that they were read from.
    fn give_to(self, header: &mut Header, bytes: Vec<u8>) {
        let wide = header.version == Version::Cdf5;
        let mut places = self.places;
        if places.len().saturating_mul(2) < places.capacity() {
            // Too much for this header.
            let exact = places.clone();
            spare::give_places(std::mem::replace(&mut places, exact));
        }
        let source = Arc::new(HeaderBytes { bytes, places, wide });
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
/// Always inlined: where a list is only passed over, only the checks of bounds are left of it.
#[inline(always)]
pub(crate) fn att<'a>(reader: &mut HeaderReader<'a>) -> Result<AttRef<'a>, ClassicError> {
    let name = counted_name(reader)?;
    let ty = nc_type(reader)?;
    let len = reader.count(ty.size() as u64)?;
    let bytes = reader.padded(len.saturating_mul(ty.size()))?;
    Ok(AttRef { name, ty, len: len as u64, bytes })
}

#[inline]
fn nc_type(reader: &mut HeaderReader<'_>) -> Result<ExtType, ClassicError> {
    let at = reader.at();
    let found = reader.u32()?;
    // The reference accepts the five CDF-5 types in CDF-1/2 files, too.
    let Some(ty) = i32::try_from(found).ok().and_then(ExtType::from_nc_type) else {
        return Err(ClassicError::BadTypeCode { production: reader.production(), at, found });
    };
    Ok(ty)
}

fn var_list(
    reader: &mut HeaderReader<'_>,
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
    if !reader.tolerates_counts() {
        header.vars = spare::vars(n);
        lists.lists.reserve_exact(n.saturating_add(1));
    }
    reader.begin_items(n as u64);
    for _ in 0..n {
        let var = var(reader, header, lists)?;
        header.push_var(var);
        reader.item_read();
    }
    Ok(())
}

fn var(
    reader: &mut HeaderReader<'_>,
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
            return Err(ClassicError::RecordDimNotFirst(shown(&name)));
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

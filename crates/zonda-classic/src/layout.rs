//! Where data lies: offsets, record size and the rules of size and order.
//!
//! Spec: NetCDF File Format Specifications, "Notes on Computing File Offsets" and "Large File
//! Support". `begin` is authoritative for readers; the rest is computed from it.

use zonda_format::{Layout, Reserve};
use zonda_storage::Advice;

use crate::codec::encoded_len;
use crate::error::{ClassicError, shown};
use crate::header::{Header, Var, Version, round_up};
use crate::tuning::{
    DATA_ALIGN_BYTES, HEADER_SPACE_MAX_BYTES, HEADER_SPACE_MIN_BYTES, SMALL_DATA_BYTES,
};

/// Alignment used where `NC_ALIGN_CHUNK` is asked for: the usual `st_blksize`.
const IO_BLOCK: u64 = 4096;
/// Largest `begin` of CDF-1.
const CDF1_OFFSET_MAX: u64 = 0x7FFF_FFFF;

/// Computes the layout of a header that was read and checks it as the reference does. `written_len` is how long it is when it
/// is written, if that is known.
///
/// # Errors
/// [`ClassicError::BadOffset`] for falling or overlapping offsets, [`ClassicError::VarTooLarge`].
pub(crate) fn read_back(header: &mut Header, written_len: Option<u64>) -> Result<(), ClassicError> {
    let header_len = written_len.unwrap_or_else(|| encoded_len(header));
    header.layout = Layout { header_len, ..Layout::default() };
    let header_len = header.layout.header_len;
    let mut layout = header.layout;
    layout.begin_var = header_len;
    layout.begin_rec = header_len;
    let mut first_record = None;
    let mut first_fixed = None;
    for var in &header.vars {
        if var.is_record() {
            first_record.get_or_insert(var);
        } else {
            first_fixed.get_or_insert(var);
            layout.begin_rec = end_of(var)?;
        }
    }
    if let Some(var) = first_record {
        if layout.begin_rec > var.begin {
            return Err(overlap(var, layout.begin_rec));
        }
        layout.begin_rec = var.begin;
    }
    layout.begin_var = first_fixed.map_or(layout.begin_rec, |var| var.begin);
    if let Some(var) = first_fixed.or(first_record)
        && layout.begin_var < header_len
    {
        return Err(overlap(var, header_len));
    }
    (layout.record_len, layout.n_record_vars) = record_len(header);
    header.layout = layout;
    check_sizes(header)?;
    check_order(header)
}

fn end_of(var: &Var) -> Result<u64, ClassicError> {
    var.begin.checked_add(var.padded_bytes()).ok_or_else(|| overlap(var, u64::MAX))
}

fn overlap(var: &Var, least: u64) -> ClassicError {
    ClassicError::BadOffset { variable: shown(&var.name), begin: var.begin, least }
}

/// Bytes of a record and number of record variables.
///
/// With exactly one record variable its records follow each other without padding.
fn record_len(header: &Header) -> (u64, usize) {
    let mut len = 0u64;
    let mut n = 0usize;
    let mut only = 0;
    for var in header.vars.iter().filter(|var| var.is_record()) {
        len = len.saturating_add(var.padded_bytes());
        n = n.saturating_add(1);
        only = var.slab_bytes();
    }
    if n == 1 { (only, 1) } else { (len, n) }
}

/// The rules on the size of a variable (large file support): each within the limit of its format,
/// but for the last fixed-size one of a file without records, or the last record variable.
pub(crate) fn check_sizes(header: &Header) -> Result<(), ClassicError> {
    let limit = match header.version {
        Version::Cdf1 => 0x7FFF_FFFC,
        Version::Cdf2 => 0xFFFF_FFFC,
        Version::Cdf5 => 0x7FFF_FFFF_FFFF_FFFC,
    };
    let too_large = |var: &Var| ClassicError::VarTooLarge {
        variable: shown(&var.name),
        format: header.version.name(),
    };
    let has_records = header.vars.iter().any(Var::is_record);
    for record in [false, true] {
        let mut of_kind = header.vars.iter().filter(|var| var.is_record() == record).peekable();
        while let Some(var) = of_kind.next() {
            let excused = header.version != Version::Cdf5
                && of_kind.peek().is_none()
                && (record || !has_records);
            if var.slab_bytes() > limit && !excused {
                return Err(too_large(var));
            }
        }
    }
    Ok(())
}

/// Offsets rise in order of definition without overlap, first the fixed-size variables, then the
/// parts of the first record.
fn check_order(header: &Header) -> Result<(), ClassicError> {
    for record in [false, true] {
        let mut least = if record { header.layout.begin_rec } else { header.layout.begin_var };
        for var in header.vars.iter().filter(|var| var.is_record() == record) {
            if var.begin < least {
                return Err(overlap(var, least));
            }
            least = end_of(var)?;
        }
    }
    Ok(())
}

/// Gives every variable its place, for enddef.
///
/// `old` is the header before redef: nothing that existed moves towards the start of the file.
///
/// # Errors
/// [`ClassicError::VarTooLarge`] when sizes or offsets exceed the format; the header's offsets are
/// then in disorder and the caller must not use them.
pub(crate) fn assign(
    header: &mut Header,
    old: Option<&Header>,
    reserve: Reserve,
) -> Result<(), ClassicError> {
    check_sizes(header)?;
    match assign_with(header, old, reserve) {
        // Room in the header must not be what makes a variable lie beyond the format's offsets.
        Err(ClassicError::VarTooLarge { .. }) if reserve == Reserve::Default => {
            assign_with(header, old, TIGHT)
        }
        result => result,
    }
}

/// No room anywhere: what the reference's `nc_enddef` leaves.
const TIGHT: Reserve = Reserve::Explicit { h_minfree: 0, v_align: 1, v_minfree: 0, r_align: 1 };

/// A [`Reserve`] in numbers: bytes that stay free, and multiples at which parts begin.
struct Reserved {
    h_minfree: u64,
    v_align: u64,
    v_minfree: u64,
    r_align: u64,
    /// Data stay where they are as long as the header fits in front of them, whatever the other numbers say.
    is_default: bool,
}

impl Reserved {
    fn of(reserve: Reserve, header: &Header, header_len: u64) -> Reserved {
        let none =
            Reserved { h_minfree: 0, v_align: 1, v_minfree: 0, r_align: 1, is_default: true };
        let io_block = |align: u64| if align == u64::MAX { IO_BLOCK } else { align };
        match reserve {
            Reserve::Default if has_small_data(header) => none,
            Reserve::Default => Reserved {
                h_minfree: (header_len >> 2).clamp(HEADER_SPACE_MIN_BYTES, HEADER_SPACE_MAX_BYTES),
                v_align: DATA_ALIGN_BYTES,
                ..none
            },
            Reserve::Explicit { h_minfree, v_align, v_minfree, r_align } => Reserved {
                h_minfree,
                v_align: io_block(v_align),
                v_minfree,
                r_align: io_block(r_align),
                is_default: false,
            },
        }
    }

    /// Where data begin behind a header of `header_len` bytes.
    fn begin_of_data(&self, header_len: u64, old: Option<&Header>) -> u64 {
        let old_begin = old.map_or(0, |old| old.layout.begin_var);
        let least = header_len.saturating_add(self.h_minfree);
        let stays = if self.is_default {
            old.is_some_and(|old| !old.vars.is_empty()) && old_begin >= header_len
        } else {
            old_begin >= least && round_up(old_begin, self.v_align) == old_begin
        };
        if stays { old_begin } else { round_up(least, self.v_align).max(old_begin) }
    }

    /// Where records begin behind fixed-size variables that end at `end`.
    fn begin_of_records(&self, end: u64, old: Option<&Header>) -> u64 {
        let begin = old.map_or(0, |old| old.layout.begin_rec).max(end);
        let least = end.saturating_add(self.v_minfree);
        let stays = begin >= least && round_up(begin, self.r_align) == begin && old.is_some();
        if stays { begin } else { round_up(begin.max(least), self.r_align) }
    }
}

fn assign_with(
    header: &mut Header,
    old: Option<&Header>,
    reserve: Reserve,
) -> Result<(), ClassicError> {
    let header_len = encoded_len(header);
    let mut layout = Layout { header_len, ..header.layout };
    (layout.record_len, layout.n_record_vars) = record_len(header);
    if header.vars.is_empty() {
        // Nothing lies behind the header yet.
        let old = old.map_or(Layout::default(), |old| old.layout);
        layout.begin_var = header_len.max(old.begin_var);
        layout.begin_rec = layout.begin_var.max(old.begin_rec);
        header.layout = layout;
        return Ok(());
    }
    let reserved = Reserved::of(reserve, header, header_len);
    let begin = reserved.begin_of_data(header_len, old);
    let end = place_all(header, old, false, begin)?;
    layout.begin_rec = reserved.begin_of_records(end, old);
    let first_fixed = header.vars.iter().find(|var| !var.is_record());
    layout.begin_var = first_fixed.map_or(layout.begin_rec, |var| var.begin);
    place_all(header, old, true, layout.begin_rec)?;
    header.layout = layout;
    check_order(header)
}

/// Places the variables with or without records one behind the other from byte `at` on, none before its old place; gives the
/// end of the last one.
fn place_all(
    header: &mut Header,
    old: Option<&Header>,
    is_record: bool,
    mut at: u64,
) -> Result<u64, ClassicError> {
    let version = header.version;
    let mut old = old.iter().flat_map(|old| &old.vars).filter(|var| var.is_record() == is_record);
    for var in header.vars.iter_mut().filter(|var| var.is_record() == is_record) {
        at = at.max(old.next().map_or(0, |old| old.begin));
        place(var, at, version)?;
        at = end_of(var)?;
    }
    Ok(at)
}

fn has_small_data(header: &Header) -> bool {
    let bytes = header.vars.iter().fold(0u64, |sum, var| sum.saturating_add(var.padded_bytes()));
    bytes <= SMALL_DATA_BYTES && !header.vars.iter().any(Var::is_record)
}

fn place(var: &mut Var, at: u64, version: Version) -> Result<(), ClassicError> {
    let limit = if version == Version::Cdf1 { CDF1_OFFSET_MAX } else { i64::MAX.cast_unsigned() };
    if at > limit {
        return Err(ClassicError::VarTooLarge {
            variable: shown(&var.name),
            format: version.name(),
        });
    }
    var.begin = at;
    Ok(())
}

impl Header {
    /// What the storage may know about a file with `n_records` records.
    pub(crate) fn advice(&self, n_records: u64) -> Advice {
        Advice {
            record_bytes: self.layout.record_len,
            n_record_parts: self.layout.n_record_vars as u64,
            file_bytes: self.file_len(n_records),
        }
    }

    /// Bytes of the whole file with `n_records` records: its length after a proper close.
    #[must_use]
    pub fn file_len(&self, n_records: u64) -> u64 {
        if self.layout.n_record_vars > 0 {
            let records = n_records.saturating_mul(self.layout.record_len);
            return self.layout.begin_rec.saturating_add(records);
        }
        let last = self.vars.last();
        last.map_or(self.layout.header_len, |var| {
            var.begin.saturating_add(round_up(var.slab_bytes(), 4))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Dim;
    use zonda_model::{DimId, ExtType};

    fn header(version: Version, vars: &[(&[u64], ExtType)]) -> Header {
        let mut header = Header::new(version);
        for (shape, ty) in vars {
            let mut dims = Vec::new();
            for &len in *shape {
                dims.push(DimId(header.dims.len() as i32));
                header.push_dim(Dim { name: b"d"[..].into(), len });
            }
            header.push_var(Var {
                name: b"v"[..].into(),
                dims: dims.into(),
                shape: (*shape).into(),
                atts: crate::atts::Atts::default(),
                ty: *ty,
                begin: 0,
                no_fill: false,
            });
        }
        header
    }

    #[test]
    fn single_record_variable_is_packed() {
        let mut one = header(Version::Cdf1, &[(&[0, 3], ExtType::Byte)]);
        assign(&mut one, None, TIGHT).unwrap();
        assert_eq!((one.layout.record_len, one.vars[0].padded_bytes()), (3, 4));
        let mut two = header(Version::Cdf1, &[(&[0, 3], ExtType::Byte), (&[0], ExtType::Short)]);
        assign(&mut two, None, TIGHT).unwrap();
        assert_eq!(two.layout.record_len, 8);
    }

    #[test]
    fn large_variables_only_where_nothing_follows() {
        let big: &[u64] = &[1 << 32];
        let ok = |version, vars: &[(&[u64], ExtType)]| check_sizes(&header(version, vars)).is_ok();
        for version in [Version::Cdf1, Version::Cdf2] {
            assert!(ok(version, &[(&[4], ExtType::Int), (big, ExtType::Byte)]));
            assert!(!ok(version, &[(big, ExtType::Byte), (&[4], ExtType::Int)]));
            assert!(!ok(version, &[(big, ExtType::Byte), (&[0], ExtType::Int)]));
            assert!(!ok(version, &[(big, ExtType::Byte), (big, ExtType::Int)]));
            assert!(ok(version, &[(&[0], ExtType::Int), (&[0, 1 << 32], ExtType::Int)]));
            assert!(!ok(version, &[(&[0, 1 << 32], ExtType::Int), (&[0], ExtType::Int)]));
        }
        assert!(ok(Version::Cdf5, &[(big, ExtType::Byte), (big, ExtType::Double)]));
        assert!(!ok(Version::Cdf5, &[(&[1 << 62, 4], ExtType::Double)]));
        // Limits to the byte: 2^31 - 4 and 2^32 - 4.
        for (version, limit) in [(Version::Cdf1, 0x7FFF_FFFC), (Version::Cdf2, 0xFFFF_FFFC)] {
            let next: (&[u64], ExtType) = (&[1], ExtType::Byte);
            assert!(ok(version, &[(&[limit], ExtType::Byte), next]));
            assert!(!ok(version, &[(&[limit + 1], ExtType::Byte), next]));
        }
    }

    #[test]
    fn cdf1_offsets_end_at_two_gib() {
        // Header and first variable end exactly where offsets do: no room, but it fits.
        let mut fits =
            header(Version::Cdf1, &[(&[0x7FFF_FF00], ExtType::Byte), (&[1], ExtType::Byte)]);
        assign(&mut fits, None, Reserve::Default).unwrap();
        assert_eq!(fits.layout.begin_var, fits.layout.header_len);
        let at_limit = 0x7FFF_FFFC;
        let mut header =
            header(Version::Cdf1, &[(&[at_limit], ExtType::Byte), (&[1], ExtType::Byte)]);
        assert!(matches!(assign(&mut header, None, TIGHT), Err(ClassicError::VarTooLarge { .. })));
    }

    #[test]
    fn default_headers_have_room_and_redef_uses_it() {
        let mut first = header(Version::Cdf2, &[(&[5], ExtType::Int), (&[0], ExtType::Int)]);
        assign(&mut first, None, Reserve::Default).unwrap();
        assert_eq!(first.layout.begin_var % DATA_ALIGN_BYTES, 0);
        assert!(first.layout.begin_var >= first.layout.header_len + HEADER_SPACE_MIN_BYTES);
        let mut second = first.clone();
        second.push_dim(Dim { name: b"more"[..].into(), len: 3 });
        assign(&mut second, Some(&first), Reserve::Default).unwrap();
        assert_eq!(second.layout.begin_var, first.layout.begin_var);
        assert!(second.layout.header_len > first.layout.header_len);
    }

    #[test]
    fn explicit_alignment_is_kept() {
        let mut header = header(Version::Cdf5, &[(&[5], ExtType::Int), (&[0], ExtType::Int)]);
        let reserve =
            Reserve::Explicit { h_minfree: 100, v_align: 64, v_minfree: 10, r_align: 4096 };
        assign(&mut header, None, reserve).unwrap();
        let layout = header.layout;
        assert_eq!(layout.begin_var, round_up(layout.header_len + 100, 64));
        assert_eq!(layout.begin_rec, 4096);
    }
}

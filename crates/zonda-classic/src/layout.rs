//! Where data lies: offsets, record size and the rules of size and order.
//!
//! Spec: NetCDF File Format Specifications, "Notes on Computing File Offsets" and "Large File
//! Support". `begin` is authoritative for readers; the rest is computed from it.

use zonda_format::{Layout, Reserve};
use zonda_storage::Advice;

use crate::codec::encoded_len;
use crate::error::{ClassicError, shown};
use crate::header::{Header, Var, Version, round_up};

/// Alignment used where `NC_ALIGN_CHUNK` is asked for: the usual `st_blksize`.
const IO_BLOCK: u64 = 4096;
/// Data starts on a multiple of this after a default header: one sector, so that short headers,
/// their room included, are rewritten by one atomic sector write on most devices.
const DEFAULT_ALIGN: u64 = 512;
/// Least room after a default header: a handful of attributes or two variables.
const DEFAULT_ROOM_MIN: u64 = 256;
/// Most room after a default header.
const DEFAULT_ROOM_MAX: u64 = 64 << 10;
/// A file without records whose data are no more than this gets no room: moving them is as cheap as
/// writing the header, and small files stay as small as the reference's.
const SMALL_DATA: u64 = 4096;

/// Largest `begin` of CDF-1.
const CDF1_OFFSET_MAX: u64 = 0x7FFF_FFFF;

/// Computes the layout of a header that was read and checks it as the reference does.
///
/// # Errors
/// [`ClassicError::BadOffset`] for falling or overlapping offsets, [`ClassicError::VarTooLarge`].
pub(crate) fn read_back(header: &mut Header) -> Result<(), ClassicError> {
    header.layout = Layout { header_len: encoded_len(header), ..Layout::default() };
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

fn assign_with(
    header: &mut Header,
    old: Option<&Header>,
    reserve: Reserve,
) -> Result<(), ClassicError> {
    let io_block = |align: u64| if align == u64::MAX { IO_BLOCK } else { align };
    let header_len = encoded_len(header);
    let (h_minfree, v_align, v_minfree, r_align, default) = match reserve {
        Reserve::Default if has_small_data(header) => (0, 1, 0, 1, true),
        Reserve::Default => {
            let room = (header_len >> 2).clamp(DEFAULT_ROOM_MIN, DEFAULT_ROOM_MAX);
            (room, DEFAULT_ALIGN, 0, 1, true)
        }
        Reserve::Explicit { h_minfree, v_align, v_minfree, r_align } => {
            (h_minfree, io_block(v_align), v_minfree, io_block(r_align), false)
        }
    };
    let (old_begin_var, old_begin_rec) =
        old.map_or((0, 0), |old| (old.layout.begin_var, old.layout.begin_rec));
    let mut layout = Layout { header_len, ..header.layout };
    (layout.record_len, layout.n_record_vars) = record_len(header);
    if header.vars.is_empty() {
        // Nothing lies behind the header yet.
        layout.begin_var = header_len.max(old_begin_var);
        layout.begin_rec = layout.begin_var.max(old_begin_rec);
        header.layout = layout;
        return Ok(());
    }

    // A default enddef keeps the place of data as long as the header fits in front of it.
    let stays = if default {
        old.is_some_and(|old| !old.vars.is_empty()) && old_begin_var >= header_len
    } else {
        old_begin_var >= header_len.saturating_add(h_minfree)
            && round_up(old_begin_var, v_align) == old_begin_var
    };
    let mut at = if stays {
        old_begin_var
    } else {
        round_up(header_len.saturating_add(h_minfree), v_align).max(old_begin_var)
    };

    let mut old_fixed = old.iter().flat_map(|old| &old.vars).filter(|var| !var.is_record());
    let mut first_fixed = None;
    for var in header.vars.iter_mut().filter(|var| !var.is_record()) {
        if let Some(old) = old_fixed.next() {
            at = at.max(old.begin);
        }
        place(var, at, header.version)?;
        first_fixed.get_or_insert(at);
        at = end_of(var)?;
    }

    let begin_rec = old_begin_rec.max(at);
    let fits = begin_rec >= at.saturating_add(v_minfree)
        && round_up(begin_rec, r_align) == begin_rec
        && old.is_some();
    layout.begin_rec = if fits {
        begin_rec
    } else {
        round_up(begin_rec.max(at.saturating_add(v_minfree)), r_align)
    };
    layout.begin_var = first_fixed.unwrap_or(layout.begin_rec);

    let mut at = layout.begin_rec;
    let mut old_records = old.iter().flat_map(|old| &old.vars).filter(|var| var.is_record());
    for var in header.vars.iter_mut().filter(|var| var.is_record()) {
        if let Some(old) = old_records.next() {
            at = at.max(old.begin);
        }
        place(var, at, header.version)?;
        at = end_of(var)?;
    }
    header.layout = layout;
    check_order(header)
}

fn has_small_data(header: &Header) -> bool {
    let bytes = header.vars.iter().fold(0u64, |sum, var| sum.saturating_add(var.padded_bytes()));
    bytes <= SMALL_DATA && !header.vars.iter().any(Var::is_record)
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
        assert_eq!(first.layout.begin_var % DEFAULT_ALIGN, 0);
        assert!(first.layout.begin_var >= first.layout.header_len + DEFAULT_ROOM_MIN);
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

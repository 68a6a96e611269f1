//! Writing fill values into space that comes into being.

use zonda_model::{ExtType, default_fill, memory};
use zonda_storage::{Storage, fill_by_writes};

use crate::error::{ClassicError, shown};
use crate::header::{Header, Var};
use crate::past_end::read_or_zeros;
use crate::tuning::{
    FILL_BLOCK_BYTES, FILLED_AMONG_RECORD_BYTES, FILLED_BY_WRITES_BYTES, FILLED_RECORD_MAX_BYTES,
    FILLED_TOGETHER_RECORDS,
};

/// Parts of a record lie in it.
const RECORD: ClassicError = ClassicError::Length("a record");

/// Name of the attribute that overrides the default fill value.
pub(crate) const FILL_VALUE: &[u8] = b"_FillValue";

/// The fill value of a variable in external form: one element.
///
/// # Errors
/// [`ClassicError::BadFillValue`] for a `_FillValue` of another type or length than one.
pub(crate) fn fill_element(var: &Var) -> Result<Vec<u8>, ClassicError> {
    match var.atts.iter().find(|att| *att.name == *FILL_VALUE) {
        Some(att) if att.ty == var.ty && att.len == 1 => Ok(att.bytes.to_vec()),
        Some(_) => Err(ClassicError::BadFillValue(shown(&var.name))),
        None => Ok(external_default(var.ty)),
    }
}

fn external_default(ty: ExtType) -> Vec<u8> {
    let mut bytes: Vec<u8> = default_fill(ty).into_iter().take(ty.size()).collect();
    if cfg!(target_endian = "little") {
        bytes.reverse();
    }
    bytes
}

/// Fills the fixed-size variables from number `first` on, as enddef does for new ones.
///
/// The padding up to a multiple of 4 is filled with the same values (not zeros), as the
/// specification asks.
pub(crate) fn new_fixed_vars(
    storage: &dyn Storage,
    header: &Header,
    first: usize,
) -> Result<(), ClassicError> {
    for var in header.vars.iter().skip(first).filter(|var| !var.is_record() && !var.no_fill) {
        let len = var.padded_bytes();
        let element = fill_element(var)?;
        // The commit that follows writes all of it, so the larger ones need not wait in a cache.
        if len >= FILLED_BY_WRITES_BYTES {
            fill_by_writes(storage, var.begin, len, &element)?;
        } else {
            storage.fill_at(var.begin, len, &element)?;
        }
    }
    Ok(())
}

/// Fills the record variables from number `first` on in all records there are.
pub(crate) fn new_record_vars(
    storage: &dyn Storage,
    header: &Header,
    first: usize,
    n_records: u64,
) -> Result<(), ClassicError> {
    records(storage, header, first, 0, n_records, None)
}

/// The same where nobody else puts to the file: records that are short are read, filled and written many at a time.
pub(crate) fn new_record_vars_alone(
    storage: &dyn Storage,
    header: &Header,
    first: usize,
    n_records: u64,
) -> Result<(), ClassicError> {
    if header.layout.record_len > FILLED_AMONG_RECORD_BYTES {
        return new_record_vars(storage, header, first, n_records);
    }
    among_records(storage, header, &record_parts(header, first)?, n_records)
}

/// Has zeros in the first `stored` bytes of a file where variables from number `first` on lie that are not filled: something else lay there.
pub(crate) fn unfilled_record_vars(
    storage: &dyn Storage,
    header: &Header,
    first: usize,
    n_records: u64,
    stored: u64,
) -> Result<(), ClassicError> {
    let layout = &header.layout;
    let unfilled = header.vars.iter().enumerate().skip(first);
    let unfilled = unfilled.filter(|(_, var)| var.is_record() && var.no_fill);
    let parts: Vec<RecordPart> = unfilled
        .map(|(index, var)| (index, var.begin, var.padded_bytes().min(layout.record_len), vec![0]))
        .collect();
    let n_stored = stored.saturating_sub(layout.begin_rec).div_ceil(layout.record_len.max(1));
    let n_records = n_records.min(n_stored);
    if layout.record_len <= FILLED_AMONG_RECORD_BYTES {
        return among_records(storage, header, &parts, n_records);
    }
    for record in 0..n_records {
        let offset = record.saturating_mul(layout.record_len);
        for (_, begin, len, element) in &parts {
            storage.fill_at(begin.saturating_add(offset), *len, element)?;
        }
    }
    Ok(())
}

/// Puts parts of all records among what they have, many records at a time.
fn among_records(
    storage: &dyn Storage,
    header: &Header,
    parts: &[RecordPart],
    n_records: u64,
) -> Result<(), ClassicError> {
    if parts.is_empty() {
        return Ok(());
    }
    let record_len = header.layout.record_len;
    let at_once = (FILL_BLOCK_BYTES as u64).checked_div(record_len).unwrap_or(0).max(1);
    let record_bytes = usize::try_from(record_len).map_err(|_| RECORD)?;
    let (mut record, mut block) = (0, Vec::new());
    while record < n_records {
        let n = at_once.min(n_records.saturating_sub(record));
        let at = header.layout.begin_rec.saturating_add(record.saturating_mul(record_len));
        let len = usize::try_from(n.saturating_mul(record_len)).map_err(|_| RECORD)?;
        memory::resize(&mut block, len, 0)?;
        read_or_zeros(storage, at, &mut block)?;
        for bytes in block.chunks_exact_mut(record_bytes.max(1)) {
            for (_, begin, len, element) in parts {
                let from = begin.checked_sub(header.layout.begin_rec);
                let from = from.and_then(|from| usize::try_from(from).ok()).ok_or(RECORD)?;
                let len = usize::try_from(*len).map_err(|_| RECORD)?;
                let part = bytes.get_mut(from..).and_then(|rest| rest.get_mut(..len));
                let elements = part.ok_or(RECORD)?.chunks_mut(element.len().max(1));
                elements
                    .for_each(|to| to.iter_mut().zip(element).for_each(|(to, from)| *to = *from));
            }
        }
        storage.write_at(at, &block)?;
        record = record.saturating_add(n);
    }
    Ok(())
}

/// The parts of a record that variables from number `first` on have, those that are filled.
fn record_parts(header: &Header, first: usize) -> Result<Vec<RecordPart>, ClassicError> {
    let mut parts = Vec::new();
    for (index, var) in header.vars.iter().enumerate().skip(first) {
        if !var.is_record() || var.no_fill {
            continue;
        }
        // A single record variable has unpadded records.
        let len = var.padded_bytes().min(header.layout.record_len);
        parts.push((index, var.begin, len, fill_element(var)?));
    }
    Ok(parts)
}

/// The records of a variable that a put is about to write completely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Covered {
    /// Index of the variable.
    pub(crate) var: usize,
    /// The first of them; all later ones count, too.
    pub(crate) from: u64,
}

/// Fills records `from..to` of the record variables from number `first` on.
pub(crate) fn records(
    storage: &dyn Storage,
    header: &Header,
    first: usize,
    from: u64,
    to: u64,
    covered: Option<Covered>,
) -> Result<(), ClassicError> {
    let layout = &header.layout;
    let parts = record_parts(header, first)?;
    if parts.is_empty() {
        return Ok(());
    }
    // Until then all of each record is filled.
    let whole_to = covered.map_or(to, |put| put.from.clamp(from, to));
    let mut next = from;
    if whole_to.saturating_sub(from) >= FILLED_TOGETHER_RECORDS
        && let Some(one) = whole_record(&parts, layout.record_len)
    {
        let begin = parts.first().map_or(0, |part| part.1);
        fill_whole(storage, begin, from..whole_to, &one)?;
        next = whole_to;
    }
    for record in next..to {
        let offset = record.saturating_mul(layout.record_len);
        for (index, begin, len, element) in &parts {
            if covered.is_some_and(|put| put.var == *index && record >= put.from) {
                continue;
            }
            storage.fill_at(begin.saturating_add(offset), *len, element)?;
        }
    }
    Ok(())
}

/// A part of each record: index of the variable, first byte in the file, length, element.
type RecordPart = (usize, u64, u64, Vec<u8>);

/// The bytes of a record of fill values; `None` where something else lies in it, where it is long, and where there is no
/// memory for it.
fn whole_record(parts: &[RecordPart], record_len: u64) -> Option<Vec<u8>> {
    if record_len > FILLED_RECORD_MAX_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(record_len).ok()?).ok()?;
    let mut end = parts.first()?.1;
    for (_, begin, len, element) in parts {
        if *begin != end {
            return None;
        }
        end = end.checked_add(*len)?;
        bytes.extend(element.iter().cycle().take(usize::try_from(*len).ok()?));
    }
    (bytes.len() as u64 == record_len).then_some(bytes)
}

/// Writes `one` as each of these records, the first of all being at `begin`.
fn fill_whole(
    storage: &dyn Storage,
    begin: u64,
    records: std::ops::Range<u64>,
    one: &[u8],
) -> Result<(), ClassicError> {
    let len = one.len() as u64;
    let (mut at, end) = (
        begin.saturating_add(records.start.saturating_mul(len)),
        begin.saturating_add(records.end.saturating_mul(len)),
    );
    let n_at_once = FILL_BLOCK_BYTES.checked_div(one.len()).unwrap_or(0).max(1);
    let mut block = Vec::new();
    let is_had = block.try_reserve_exact(n_at_once.saturating_mul(one.len())).is_ok();
    (0..if is_had { n_at_once } else { 1 }).for_each(|_| block.extend_from_slice(one));
    while at < end {
        let left = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
        let piece = block.get(..left.min(block.len())).unwrap_or_default();
        storage.write_at(at, piece)?;
        at = at.saturating_add(piece.len() as u64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_format::{DispatchWrite, GroupId};

    /// Filling many records together gives the same bytes as one after another, whatever the variables are, and leaves out what a
    /// put covers.
    #[test]
    fn many_records_are_filled_as_few_are() {
        use crate::file::ClassicFile;
        use crate::{Reserve, Version};
        use std::sync::Arc;
        use zonda_storage::backend::Memory;
        let types = [ExtType::Byte, ExtType::Double, ExtType::Short, ExtType::Char];
        for n_vars in 1..=4 {
            for width in [1, 3, 50] {
                let storage: Arc<dyn Storage> = Arc::new(Memory::new());
                let mut file = ClassicFile::create(storage, None, Version::Cdf2, false);
                let dims = [
                    file.def_dim(GroupId::ROOT, b"t", 0).unwrap().0,
                    file.def_dim(GroupId::ROOT, b"x", width).unwrap().0,
                ];
                for (n, ty) in types.iter().take(n_vars).enumerate() {
                    file.def_var(GroupId::ROOT, format!("v{n}").as_bytes(), ty.nc_type(), &dims)
                        .unwrap();
                }
                file.enddef(Reserve::Default).unwrap();
                let (from, to) = (7, 7 + 3 * FILLED_TOGETHER_RECORDS);
                for covered in [None, Some(Covered { var: n_vars - 1, from: to - 5 })] {
                    let (together, apart) = (Memory::new(), Memory::new());
                    {
                        let header = file.header();
                        records(&together, header, 0, from, to, covered).unwrap();
                        for record in from..to {
                            records(&apart, header, 0, record, record + 1, covered).unwrap();
                        }
                    }
                    let (together, apart) = (together.to_vec().unwrap(), apart.to_vec().unwrap());
                    assert!(together == apart && !apart.is_empty(), "{n_vars} of {width}");
                }
                // Among others, which stay as they are.
                for first in 0..n_vars {
                    let (alone, apart) = (Memory::new(), Memory::new());
                    let header = file.header();
                    let other = vec![7; header.file_len(to) as usize];
                    alone.write_at(0, &other).unwrap();
                    apart.write_at(0, &other).unwrap();
                    new_record_vars_alone(&alone, header, first, to).unwrap();
                    new_record_vars(&apart, header, first, to).unwrap();
                    let (alone, apart) = (alone.to_vec().unwrap(), apart.to_vec().unwrap());
                    assert!(alone == apart && alone != other, "{first} of {n_vars} of {width}");
                }
            }
        }
    }

    #[test]
    fn defaults_are_big_endian() {
        assert_eq!(external_default(ExtType::Short), [0x80, 0x01]);
        assert_eq!(external_default(ExtType::Float), [0x7C, 0xF0, 0, 0]);
        assert_eq!(external_default(ExtType::Double), [0x47, 0x9E, 0, 0, 0, 0, 0, 0]);
        assert_eq!(external_default(ExtType::Byte), [0x81]);
    }
}

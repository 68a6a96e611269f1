//! Writing fill values into space that comes into being.

use zonda_model::{ExtType, default_fill};
use zonda_storage::{Storage, fill_by_writes};

use crate::error::{ClassicError, shown};
use crate::header::{Header, Var};

/// Name of the attribute that overrides the default fill value.
pub(crate) const FILL_VALUE: &[u8] = b"_FillValue";

/// Fixed-size variables from this size on are filled by writes of their own.
const STRAIGHT_BYTES: u64 = 256 << 10;

/// The fill value of a variable in external form: one element.
///
/// # Errors
/// [`ClassicError::BadFillValue`] for a `_FillValue` of another type or length than one.
pub(crate) fn fill_element(var: &Var) -> Result<Vec<u8>, ClassicError> {
    match var.atts.iter().find(|att| *att.name == *FILL_VALUE) {
        Some(att) if att.ty == var.ty && att.len == 1 => Ok(att.bytes.to_vec()),
        Some(_) => Err(ClassicError::BadFillValue { variable: shown(&var.name) }),
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
        // The commit that follows writes all of it, so much of it need not wait in between.
        if len >= STRAIGHT_BYTES {
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

/// Records that a put is about to write completely, and for which variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Covered {
    /// Index of the variable.
    pub(crate) var: usize,
    /// First record covered; all later ones are, too.
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
    let mut parts = Vec::new();
    for (index, var) in header.vars.iter().enumerate().skip(first) {
        if !var.is_record() || var.no_fill {
            continue;
        }
        // A single record variable has unpadded records.
        let len = var.padded_bytes().min(layout.record_len);
        parts.push((index, var.begin, len, fill_element(var)?));
    }
    if parts.is_empty() {
        return Ok(());
    }
    for record in from..to {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_big_endian() {
        assert_eq!(external_default(ExtType::Short), [0x80, 0x01]);
        assert_eq!(external_default(ExtType::Float), [0x7C, 0xF0, 0, 0]);
        assert_eq!(external_default(ExtType::Double), [0x47, 0x9E, 0, 0, 0, 0, 0, 0]);
        assert_eq!(external_default(ExtType::Byte), [0x81]);
    }
}

//! Moving data when the header outgrows its room or the record layout changes.
//!
//! Everything moves towards the end of the file, so it is done from back to front: nothing is
//! overwritten before it was moved.

use zonda_storage::Storage;

use crate::error::ClassicError;
use crate::header::{Header, Var};

/// Bytes moved at a time.
const BLOCK: usize = 1 << 20;

/// Moves the data of `old` to the places `new` gives it.
pub(crate) fn move_data(
    storage: &dyn Storage,
    old: &Header,
    new: &Header,
    n_records: u64,
) -> Result<(), ClassicError> {
    move_records(storage, old, new, n_records)?;
    for (old_var, new_var) in pairs(old, new, false) {
        shift(storage, old_var.begin, new_var.begin, old_var.padded_bytes())?;
    }
    Ok(())
}

/// Variables of one kind that both headers have, last first. Redef only appends variables.
fn pairs<'a>(
    old: &'a Header,
    new: &'a Header,
    record: bool,
) -> impl Iterator<Item = (&'a Var, &'a Var)> {
    let both: Vec<_> = old.vars.iter().zip(&new.vars).collect();
    both.into_iter().rev().filter(move |(old, _)| old.is_record() == record)
}

fn move_records(
    storage: &dyn Storage,
    old: &Header,
    new: &Header,
    n_records: u64,
) -> Result<(), ClassicError> {
    let (from_len, to_len) = (old.layout.record_len, new.layout.record_len);
    let mut shifts = pairs(old, new, true).map(|(old, new)| new.begin.saturating_sub(old.begin));
    let Some(distance) = shifts.next() else { return Ok(()) };
    if from_len == to_len && shifts.all(|other| other == distance) {
        // The records keep their shape: one block.
        let len = n_records.saturating_mul(from_len);
        let begin = old.layout.begin_rec;
        return shift(storage, begin, begin.saturating_add(distance), len);
    }
    for record in (0..n_records).rev() {
        for (old_var, new_var) in pairs(old, new, true) {
            let from = old_var.begin.saturating_add(record.saturating_mul(from_len));
            let to = new_var.begin.saturating_add(record.saturating_mul(to_len));
            // A single record variable has unpadded records.
            shift(storage, from, to, old_var.padded_bytes().min(from_len))?;
        }
    }
    Ok(())
}

/// Moves `len` bytes towards the end of the file; the two places may overlap.
fn shift(storage: &dyn Storage, from: u64, to: u64, len: u64) -> Result<(), ClassicError> {
    // What was never written needs no moving: it reads as zeros here and there.
    let stored = storage.len()?.saturating_sub(from);
    let mut left = len.min(stored);
    if from == to || left == 0 {
        return Ok(());
    }
    let block_len = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
    let mut buffer = vec![0u8; block_len];
    while left > 0 {
        let n = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
        let rest = left.saturating_sub(n as u64);
        let Some(block) = buffer.get_mut(..n) else { break };
        let got = storage.read_at(from.saturating_add(rest), block)?;
        if let Some(missing) = block.get_mut(got..) {
            missing.fill(0);
        }
        storage.write_at(to.saturating_add(rest), block)?;
        left = rest;
    }
    Ok(())
}

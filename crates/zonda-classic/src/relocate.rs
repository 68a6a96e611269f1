//! Moving data when the header outgrows its room or the record layout changes.
//!
//! Everything moves towards the end of the file, so it is done from back to front: nothing is
//! overwritten before it was moved.

use zonda_storage::Storage;

use crate::error::ClassicError;
use crate::header::{Header, Var};

/// Bytes moved at a time.
const BLOCK: usize = 1 << 20;

/// Data on its way from one layout to the next, and how far it has come.
///
/// A move that met an error goes on from there when it is tried again: what was moved may have been
/// written over the place it came from.
#[derive(Debug)]
pub(crate) struct Relocation {
    /// The layout that is made: the old variables at their new places.
    target: Header,
    /// Bytes of the file before: what was never written needs no moving, it reads as zeros here and
    /// there.
    stored: u64,
    /// Moves completed.
    n_done: u64,
    /// Bytes of the current move still to go, from the front.
    left: Option<u64>,
    /// A block that was read and perhaps partly written, where that may have changed its source.
    block: Vec<u8>,
    /// Whether `block` is still to be written.
    pending: bool,
    /// Whether something may have been written.
    begun: bool,
}

impl Relocation {
    /// A move of the data of `old`, in a file of `stored` bytes, to the places that `new`, a header
    /// with more variables, gives it.
    pub(crate) fn new(old: &Header, new: &Header, stored: u64) -> Relocation {
        let mut target = new.clone();
        target.vars.truncate(old.vars.len());
        Relocation {
            target,
            stored,
            n_done: 0,
            left: None,
            block: Vec::new(),
            pending: false,
            begun: false,
        }
    }

    /// Whether something may have been written.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// The layout that is there when all is moved.
    pub(crate) fn into_target(self) -> Header {
        self.target
    }

    /// Moves what is not yet moved. `old` and `n_records` are the same in every call.
    pub(crate) fn run(
        &mut self,
        storage: &dyn Storage,
        old: &Header,
        n_records: u64,
    ) -> Result<(), ClassicError> {
        let new = self.target.clone();
        let mut n = 0u64;
        for_each_move(old, &new, n_records, |from, to, len| {
            n = n.saturating_add(1);
            if from == to || n <= self.n_done {
                return Ok(());
            }
            self.shift(storage, from, to, len)?;
            self.n_done = n;
            Ok(())
        })
    }

    /// Moves `len` bytes towards the end of the file; the two places may overlap.
    fn shift(
        &mut self,
        storage: &dyn Storage,
        from: u64,
        to: u64,
        len: u64,
    ) -> Result<(), ClassicError> {
        let mut left = self.left.unwrap_or(len.min(self.stored.saturating_sub(from)));
        while left > 0 {
            self.left = Some(left);
            let n = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            let rest = left.saturating_sub(n as u64);
            if !self.pending {
                self.block.resize(n, 0);
                let got = storage.read_at(from.saturating_add(rest), &mut self.block)?;
                if let Some(missing) = self.block.get_mut(got..) {
                    missing.fill(0);
                }
                self.pending = true;
            }
            self.begun = true;
            storage.write_at(to.saturating_add(rest), &self.block)?;
            self.pending = false;
            left = rest;
        }
        self.left = None;
        Ok(())
    }
}

/// Calls `f` with (from, to, length) of every piece to be moved, those behind first.
fn for_each_move(
    old: &Header,
    new: &Header,
    n_records: u64,
    mut f: impl FnMut(u64, u64, u64) -> Result<(), ClassicError>,
) -> Result<(), ClassicError> {
    for_each_record_move(old, new, n_records, &mut f)?;
    for (old_var, new_var) in pairs(old, new, false) {
        f(old_var.begin, new_var.begin, old_var.padded_bytes())?;
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

fn for_each_record_move(
    old: &Header,
    new: &Header,
    n_records: u64,
    f: &mut impl FnMut(u64, u64, u64) -> Result<(), ClassicError>,
) -> Result<(), ClassicError> {
    let (from_len, to_len) = (old.layout.record_len, new.layout.record_len);
    let mut shifts = pairs(old, new, true).map(|(old, new)| new.begin.saturating_sub(old.begin));
    let Some(distance) = shifts.next() else { return Ok(()) };
    if from_len == to_len && shifts.all(|other| other == distance) {
        // The records keep their shape: one block.
        let len = n_records.saturating_mul(from_len);
        let begin = old.layout.begin_rec;
        return f(begin, begin.saturating_add(distance), len);
    }
    for record in (0..n_records).rev() {
        for (old_var, new_var) in pairs(old, new, true) {
            let from = old_var.begin.saturating_add(record.saturating_mul(from_len));
            let to = new_var.begin.saturating_add(record.saturating_mul(to_len));
            // A single record variable has unpadded records.
            f(from, to, old_var.padded_bytes().min(from_len))?;
        }
    }
    Ok(())
}

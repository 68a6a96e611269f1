//! A file with new definitions, made complete beside the old one before it takes its name.
//!
//! Readers that have the old file open keep it as it was.

use std::sync::Arc;

use zonda_model::memory;
use zonda_storage::layer::Adaptive;
use zonda_storage::{Sidecar, Sidecars, Storage, has_no_descriptor, has_no_room, takes_no_files};

use crate::codec::encode_header;
use crate::error::ClassicError;
use crate::fill;
use crate::header::Header;
use crate::moving::{BatchPiece, MovedRun, MovedRuns, read_pieces, write_pieces};
use crate::past_end::read_or_zeros;
use crate::tuning::{COPY_BLOCK_BYTES, COPY_PIECES, HOLE_BYTES, KERNEL_COPY_BYTES};

/// Replaces the file by a copy with the definitions `target`, whose first variables are those of `old`. False where the copy
/// cannot be made or renamed; everything is then as before. Afterwards the caller has to drop what is cached of the old file, and
/// to sync the folder.
///
/// # Errors
/// What the storage reports; everything is then as before.
pub(crate) fn rewrite(
    storage: &dyn Storage,
    sidecars: &dyn Sidecars,
    old: &Header,
    target: &Header,
    n_records: u64,
) -> Result<bool, ClassicError> {
    storage.barrier()?;
    let copy = match sidecars.create(Sidecar::Copy) {
        Err(error)
            if takes_no_files(error.raw_os_error()) || has_no_descriptor(error.raw_os_error()) =>
        {
            return Ok(false);
        }
        other => other?,
    };
    let made =
        write_copy(storage, copy, old, target, n_records).and_then(|()| Ok(sidecars.replace()?));
    let Err(error) = made else { return Ok(true) };
    let _ = sidecars.remove(Sidecar::Copy);
    match &error {
        ClassicError::Storage(cause) if has_no_room(cause.raw_os_error()) => Ok(false),
        _ => Err(error),
    }
}

fn write_copy(
    from: &dyn Storage,
    copy: Arc<dyn Storage>,
    old: &Header,
    target: &Header,
    n_records: u64,
) -> Result<(), ClassicError> {
    let runs = MovedRuns::new(old, target, n_records, from.len()?);
    // Before there is a cache above the copy, which would have to know of it.
    let long = |run: &MovedRun| run.len >= KERNEL_COPY_BYTES;
    let in_kernel = merged(runs.iter()).filter(long).map(|run| copy_in_kernel(from, &*copy, run));
    let mut in_kernel = in_kernel.collect::<Vec<u64>>().into_iter();
    // Small pieces of many variables become large writes.
    let copy = Adaptive::new(copy);
    copy.advise(target.advice(n_records));
    copy.write_at(0, &encode_header(target, n_records)?)?;
    let mut copier = Copier { from, to: &copy, block: Vec::new(), pieces: Vec::new(), waiting: 0 };
    for run in merged(runs.iter()) {
        let done = if long(&run) { in_kernel.next() } else { None };
        copier.copy(run, done.unwrap_or(0))?;
    }
    copier.copy_pieces()?;
    let first = old.vars.len();
    fill::new_fixed_vars(&copy, target, first)?;
    fill::new_record_vars_alone(&copy, target, first, n_records)?;
    let full = target.file_len(n_records);
    if copy.len()? < full {
        copy.set_len(full)?;
    }
    Ok(copy.sync()?)
}

/// The runs, as one where one continues another.
fn merged(runs: impl Iterator<Item = MovedRun>) -> impl Iterator<Item = MovedRun> {
    let mut runs = runs.filter(|run| run.len > 0).peekable();
    std::iter::from_fn(move || {
        let mut run = runs.next()?;
        while let Some(next) = runs.next_if(|next| {
            run.from.checked_add(run.len) == Some(next.from)
                && run.to.checked_add(run.len) == Some(next.to)
        }) {
            run.len = run.len.saturating_add(next.len);
        }
        Some(run)
    })
}

/// Copies a long run from file to file, past this process, as far as the system does so: how many bytes, from the first on. The old
/// file has had its barrier.
fn copy_in_kernel(from: &dyn Storage, copy: &dyn Storage, run: MovedRun) -> u64 {
    match (from.plain_file(), copy.plain_file()) {
        (Some(old), Some(copy)) => copy.copy_from(run.to, old, run.from, run.len),
        _ => 0,
    }
}

struct Copier<'a> {
    from: &'a dyn Storage,
    to: &'a dyn Storage,
    block: Vec<u8>,
    /// Short runs that wait, so that those that lie close to each other go together.
    pieces: Vec<BatchPiece>,
    /// Bytes of these.
    waiting: usize,
}

impl Copier<'_> {
    /// Copies a run, whose first `done` bytes are there; a short one later.
    fn copy(&mut self, run: MovedRun, mut done: u64) -> Result<(), ClassicError> {
        let len = usize::try_from(run.len).unwrap_or(usize::MAX);
        if len < HOLE_BYTES {
            self.pieces.push(BatchPiece { from: run.from, to: run.to, len, joins: true });
            self.waiting = self.waiting.saturating_add(len);
            let is_full = self.pieces.len() == COPY_PIECES || self.waiting >= COPY_BLOCK_BYTES;
            return if is_full { self.copy_pieces() } else { Ok(()) };
        }
        self.copy_pieces()?;
        while done < run.len {
            let left = run.len.saturating_sub(done);
            let n = usize::try_from(left).unwrap_or(usize::MAX).min(COPY_BLOCK_BYTES);
            self.block.truncate(n);
            memory::lengthen(&mut self.block, n, 0)?;
            read_or_zeros(self.from, run.from.saturating_add(done), &mut self.block)?;
            if n < HOLE_BYTES || self.block.iter().any(|byte| *byte != 0) {
                self.to.write_at(run.to.saturating_add(done), &self.block)?;
            }
            done = done.saturating_add(n as u64);
        }
        Ok(())
    }

    /// Copies the short runs that wait.
    fn copy_pieces(&mut self) -> Result<(), ClassicError> {
        self.block.truncate(self.waiting);
        memory::lengthen(&mut self.block, self.waiting, 0)?;
        // Those that come last in the file come first in the list.
        self.pieces.reverse();
        read_pieces(self.from, &self.pieces, &mut self.block)?;
        write_pieces(self.to, &self.pieces, &self.block)?;
        self.pieces.clear();
        self.waiting = 0;
        Ok(())
    }
}

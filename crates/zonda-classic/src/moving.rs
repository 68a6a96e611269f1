//! Moving data in place when the header outgrows its room or the shape of a record changes.
//!
//! Everything moves towards the end of the file, so it is done from back to front, in batches: a batch is read whole, kept in the
//! journal, then written to where it goes. A batch that was begun can be repeated from the journal, by this process after an
//! error or by the next one after a death; what comes after it has not been touched. A last slot without a batch says that all
//! are done: new variables and the header go where batches came from. Without a journal (a file in memory) only this process can
//! repeat a batch.
//!
//! Where the device is nearly full the batches are smaller, and so is the journal: the file's own
//! growth is all that a move surely needs, and the reference needs that, too.

use std::sync::Arc;

use zonda_model::memory;
use zonda_storage::neighbour::journal_id;
use zonda_storage::{Sidecar, Sidecars, Storage, has_no_room, write_journal};

use crate::codec::{decode_header, encode_header};
use crate::error::ClassicError;
use crate::fill;
use crate::header::{Header, Var};
use crate::journal::{ChangeKind, JournalBody, SLOT_FIXED, SLOT_PAYLOAD, Slots};
use crate::past_end::{move_or_zeros, read_or_zeros};
use crate::tuning::{BATCH_PIECES, PIECE_GAP_BYTES, PIECES_SPAN_BYTES, ZEROS_BYTES};

/// The most bytes of a batch, and what is tried instead where the device has no room for a journal of
/// two of these.
const PAYLOADS: [usize; 4] = [SLOT_PAYLOAD, 256 << 10, 32 << 10, 4 << 10];

/// Bytes that go from one place to one further back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchPiece {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) len: usize,
    /// Nothing that stays where it is lies between this piece and the one before it in the list, which is behind it in the file.
    pub(crate) joins: bool,
}

/// A move of a file's data to the places that new definitions give it.
#[derive(Debug)]
pub(crate) struct Move {
    runs: MovedRuns,
    /// The definitions that the file has in the end. Its first variables are those of the old ones.
    target: Header,
    /// How many variables the old definitions have.
    n_old_vars: usize,
    n_records: u64,
    /// The most bytes of a batch.
    payload: usize,
    slots: Option<Slots>,
    /// The batch to be done next.
    next: u64,
    /// What that batch moves, behind room for the slot's own bytes; empty before it is read.
    block: Vec<u8>,
}

impl Move {
    /// Prepares a move: the file gets room for what moves, and the journal is written. The data and
    /// definitions of `old` are intact whether it succeeds or not.
    ///
    /// A folder that takes no files means that there is no journal.
    ///
    /// # Errors
    /// What the storage reports.
    pub(crate) fn begin(
        storage: &dyn Storage,
        sidecars: Option<&Arc<dyn Sidecars>>,
        old: &Header,
        target: &Header,
        n_records: u64,
    ) -> Result<Move, ClassicError> {
        let stored = storage.len()?;
        let runs = MovedRuns::new(old, target, n_records, stored);
        // Zeros are written: a longer length alone would not show now that the device has no room.
        let full = runs.end();
        let len =
            usize::try_from(full.saturating_sub(stored).min(ZEROS_BYTES)).map_err(|_| BATCH)?;
        let zeros = memory::filled(len, 0)?;
        let mut at = stored;
        while at < full {
            let n = usize::try_from(full.saturating_sub(at)).unwrap_or(usize::MAX).min(zeros.len());
            storage.write_at(at, zeros.get(..n).ok_or(BATCH)?)?;
            at = at.saturating_add(n as u64);
        }
        storage.barrier()?;
        let mut moving = Move {
            runs,
            target: target.clone(),
            n_old_vars: old.vars.len(),
            n_records,
            payload: SLOT_PAYLOAD,
            slots: None,
            next: 0,
            block: Vec::new(),
        };
        let Some(sidecars) = sidecars else { return Ok(moving) };
        let new = encode_header(target, n_records)?;
        let mut body = JournalBody {
            id: Some(journal_id()),
            kind: ChangeKind::Header,
            old: read_whole(storage, new.len())?,
            new,
            n_records,
            stored,
            no_fill: target.vars.iter().map(|var| var.no_fill).collect(),
        };
        let mut payloads = PAYLOADS.into_iter();
        while let Some(payload) = payloads.next() {
            moving.payload = payload;
            body.kind = ChangeKind::Move { payload };
            match moving.keep_journal(&**sidecars, &body) {
                Err(ClassicError::Storage(cause))
                    if has_no_room(cause.raw_os_error()) && payloads.len() > 0 => {}
                other => {
                    other?;
                    break;
                }
            }
        }
        Ok(moving)
    }

    /// Writes the journal, with room for all that it will keep.
    fn keep_journal(
        &mut self,
        sidecars: &dyn Sidecars,
        body: &JournalBody,
    ) -> Result<(), ClassicError> {
        let Some(journal) = write_journal(sidecars, &body.encode()?)? else { return Ok(()) };
        let slots = Slots::new(journal, body);
        let (mut even, mut odd) = (0, 0);
        self.runs.for_each_batch(self.payload, |number, pieces| {
            let most = if number & 1 == 0 { &mut even } else { &mut odd };
            *most = journal_bytes(pieces).max(*most);
            Ok(())
        })?;
        if let Err(error) = slots.reserve([even, odd]) {
            let _ = sidecars.remove(Sidecar::Journal);
            return Err(error);
        }
        self.slots = Some(slots);
        Ok(())
    }

    /// Whether another process could complete it.
    pub(crate) fn has_journal(&self) -> bool {
        self.slots.is_some()
    }

    /// Whether a file may be the one whose data a journal moves: it got all the room that the move needs
    /// before there was a journal. One that was restored from before has the same header, and its data
    /// where they were.
    ///
    /// # Errors
    /// What the storage reports.
    pub(crate) fn has_room(
        storage: &dyn Storage,
        body: &JournalBody,
    ) -> Result<bool, ClassicError> {
        let (Ok((old, _)), Ok((target, _))) = (decode_header(&body.old), decode_header(&body.new))
        else {
            return Ok(false);
        };
        Ok(storage.len()? >= MovedRuns::new(&old, &target, body.n_records, body.stored).end())
    }

    /// Goes on with the move that a journal describes.
    ///
    /// # Errors
    /// As [`decode_header`], and what the storage reports.
    pub(crate) fn resume(
        journal: Arc<dyn Storage>,
        body: &JournalBody,
    ) -> Result<Move, ClassicError> {
        let (old, _) = decode_header(&body.old)?;
        let (mut target, _) = decode_header(&body.new)?;
        for (var, no_fill) in target.vars.iter_mut().zip(&body.no_fill) {
            var.no_fill = *no_fill;
        }
        let slots = Slots::new(journal, body);
        let (next, block) = slots.last()?.unwrap_or_default();
        Ok(Move {
            runs: MovedRuns::new(&old, &target, body.n_records, body.stored),
            target,
            n_old_vars: old.vars.len(),
            n_records: body.n_records,
            payload: body.kind.payload(),
            // A slot without payload: the batch can be read again from where it came.
            block: if block.len() > SLOT_FIXED { block } else { Vec::new() },
            slots: Some(slots),
            next,
        })
    }

    /// The definitions that are there when it is done.
    pub(crate) fn into_target(self) -> Header {
        self.target
    }

    /// Moves what is not yet moved, fills new variables, writes the header, removes the journal.
    /// After an error it may be called again and goes on where it stopped.
    ///
    /// # Errors
    /// What the storage reports.
    pub(crate) fn finish(
        &mut self,
        storage: &dyn Storage,
        sidecars: Option<&Arc<dyn Sidecars>>,
    ) -> Result<(), ClassicError> {
        let runs = self.runs.clone();
        runs.for_each_batch(self.payload, |number, pieces| {
            if number < self.next { Ok(()) } else { self.carry_out(storage, pieces) }
        })?;
        if let Some(slots) = &self.slots {
            // The next write may go where the last batch came from, so that batch is not read from there any more.
            slots.write(self.next, &mut [0; SLOT_FIXED])?;
        }
        let header = encode_header(&self.target, self.n_records)?;
        let stored = self.runs.stored;
        clear_gaps(storage, &self.target, self.n_old_vars, header.len() as u64..stored)?;
        let (n_old, n_records) = (self.n_old_vars, self.n_records);
        fill::unfilled_record_vars(storage, &self.target, n_old, n_records, stored)?;
        fill::new_fixed_vars(storage, &self.target, self.n_old_vars)?;
        fill::new_record_vars_alone(storage, &self.target, self.n_old_vars, self.n_records)?;
        let full = self.target.file_len(self.n_records);
        if storage.len()? < full {
            storage.set_len(full)?;
        }
        storage.barrier()?;
        storage.write_at(0, &header)?;
        storage.sync()?;
        if let (Some(sidecars), Some(_)) = (sidecars, &self.slots) {
            sidecars.remove(Sidecar::Journal)?;
            sidecars.settle()?;
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        storage: &dyn Storage,
        pieces: &[BatchPiece],
    ) -> Result<(), ClassicError> {
        if self.block.is_empty() {
            let len = pieces.iter().fold(SLOT_FIXED, |sum, piece| sum.saturating_add(piece.len));
            let mut block = memory::filled(len, 0)?;
            read_pieces(storage, pieces, block.get_mut(SLOT_FIXED..).ok_or(BATCH)?)?;
            if let Some(slots) = &self.slots {
                // A piece that does not overlap its new place can be read again from the old one.
                let kept = SLOT_FIXED.saturating_add(journal_bytes(pieces));
                slots.write(self.next, block.get_mut(..kept).ok_or(BATCH)?)?;
            }
            self.block = block;
        }
        write_pieces(storage, pieces, self.block.get(SLOT_FIXED..).ok_or(BATCH)?)?;
        // The batch is in the storage before the journal drops it.
        storage.barrier()?;
        self.block.clear();
        self.next = self.next.saturating_add(1);
        Ok(())
    }
}

/// The first pieces of a list that lie so close to each other that they are read, or written, as one: how many, and the bytes from the first of
/// the last one to the end of the first one. `place` gives where a piece lies; `joins` whether it may be one with the piece before it.
fn close_together(
    pieces: &[BatchPiece],
    place: impl Fn(&BatchPiece) -> u64,
    joins: impl Fn(&BatchPiece) -> bool,
) -> (usize, u64, u64) {
    let Some(first) = pieces.first() else { return (0, 0, 0) };
    let end = place(first).saturating_add(first.len as u64);
    let (mut n, mut begin) = (1usize, place(first));
    for piece in pieces.get(1..).unwrap_or_default() {
        let gap = begin.checked_sub(place(piece).saturating_add(piece.len as u64));
        let is_close = gap.is_some_and(|gap| gap <= PIECE_GAP_BYTES)
            && end.saturating_sub(place(piece)) <= PIECES_SPAN_BYTES;
        if !is_close || !joins(piece) {
            break;
        }
        (n, begin) = (n.saturating_add(1), place(piece));
    }
    (n, begin, end)
}

/// Reads pieces to `block`, one behind the other in the order of the list.
pub(crate) fn read_pieces(
    storage: &dyn Storage,
    pieces: &[BatchPiece],
    block: &mut [u8],
) -> Result<(), ClassicError> {
    let (mut pieces, mut rest, mut span) = (pieces, block, Vec::new());
    while let Some(first) = pieces.first() {
        let (n, begin, end) = close_together(pieces, |piece| piece.from, |_| true);
        let (group, behind) = pieces.split_at_checked(n).ok_or(BATCH)?;
        pieces = behind;
        if n == 1 {
            let (part, more) = rest.split_at_mut_checked(first.len).ok_or(BATCH)?;
            rest = more;
            move_or_zeros(storage, first.from, part)?;
            continue;
        }
        let len = usize::try_from(end.saturating_sub(begin)).map_err(|_| BATCH)?;
        memory::resize(&mut span, len, 0)?;
        move_or_zeros(storage, begin, &mut span)?;
        for piece in group {
            let (part, more) = rest.split_at_mut_checked(piece.len).ok_or(BATCH)?;
            rest = more;
            part.copy_from_slice(part_of(&span, piece.from, begin, piece.len)?);
        }
    }
    Ok(())
}

/// Writes pieces, which lie one behind the other in `block`, to their new places. Between those that lie close together it writes zeros: what lies
/// there has moved already, and new variables are filled later.
pub(crate) fn write_pieces(
    storage: &dyn Storage,
    pieces: &[BatchPiece],
    block: &[u8],
) -> Result<(), ClassicError> {
    let (mut pieces, mut rest, mut span) = (pieces, block, Vec::new());
    while let Some(first) = pieces.first() {
        let (n, begin, end) = close_together(pieces, |piece| piece.to, |piece| piece.joins);
        let (group, behind) = pieces.split_at_checked(n).ok_or(BATCH)?;
        pieces = behind;
        if n == 1 {
            let (part, more) = rest.split_at_checked(first.len).ok_or(BATCH)?;
            rest = more;
            storage.write_at(first.to, part)?;
            continue;
        }
        let len = usize::try_from(end.saturating_sub(begin)).map_err(|_| BATCH)?;
        span.clear();
        memory::resize(&mut span, len, 0)?;
        for piece in group {
            let (part, more) = rest.split_at_checked(piece.len).ok_or(BATCH)?;
            rest = more;
            part_of_mut(&mut span, piece.to, begin, piece.len)?.copy_from_slice(part);
        }
        storage.write_at(begin, &span)?;
    }
    Ok(())
}

/// Where a piece at `at` lies in bytes that begin at `begin`.
fn range_of(at: u64, begin: u64, len: usize) -> Result<std::ops::Range<usize>, ClassicError> {
    let first = at.checked_sub(begin).and_then(|first| usize::try_from(first).ok()).ok_or(BATCH)?;
    Ok(first..first.checked_add(len).ok_or(BATCH)?)
}

fn part_of(span: &[u8], at: u64, begin: u64, len: usize) -> Result<&[u8], ClassicError> {
    span.get(range_of(at, begin, len)?).ok_or(BATCH)
}

fn part_of_mut(
    span: &mut [u8],
    at: u64,
    begin: u64,
    len: usize,
) -> Result<&mut [u8], ClassicError> {
    span.get_mut(range_of(at, begin, len)?).ok_or(BATCH)
}

/// Has zeros in `within` where no variable is, or one from number `n_old_vars` on that is not filled, as a file that is made anew has them there:
/// what lay there has moved.
fn clear_gaps(
    storage: &dyn Storage,
    target: &Header,
    n_old_vars: usize,
    within: std::ops::Range<u64>,
) -> Result<(), ClassicError> {
    let is_kept =
        |index: usize, var: &Var| !var.is_record() && (index < n_old_vars || !var.no_fill);
    let fixed = target.vars.iter().enumerate().filter(|(index, var)| is_kept(*index, var));
    let mut parts: Vec<(u64, u64)> =
        fixed.map(|(_, var)| (var.begin, var.padded_bytes())).collect();
    if target.layout.n_record_vars > 0 {
        parts.push((target.layout.begin_rec, u64::MAX));
    }
    zonda_runtime::sort::sort(&mut parts);
    let mut at = within.start;
    for (begin, len) in parts {
        if let Some(gap) = begin.min(within.end).checked_sub(at).filter(|gap| *gap > 0) {
            storage.fill_at(at, gap, &[0])?;
        }
        at = at.max(begin.saturating_add(len));
    }
    Ok(())
}

/// A piece and its new place have the same length; if they had not, data would be lost.
const BATCH: ClassicError = ClassicError::Length("data that moves");

/// Bytes that a batch takes in the journal: none for pieces that do not overlap their new place.
fn journal_bytes(pieces: &[BatchPiece]) -> usize {
    let apart = highest_source(pieces) <= lowest_target(pieces);
    if apart { 0 } else { pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.len)) }
}

/// The first `len` bytes of a file.
pub(crate) fn read_whole(storage: &dyn Storage, len: usize) -> Result<Vec<u8>, ClassicError> {
    let mut bytes = memory::filled(len, 0)?;
    read_or_zeros(storage, 0, &mut bytes)?;
    Ok(bytes)
}

fn highest_source(pieces: &[BatchPiece]) -> u64 {
    pieces.iter().map(|piece| piece.from.saturating_add(piece.len as u64)).max().unwrap_or(0)
}

fn lowest_target(pieces: &[BatchPiece]) -> u64 {
    pieces.iter().map(|piece| piece.to).min().unwrap_or(0)
}

/// A run of bytes that new definitions move: where it lies, where it goes, and its length in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MovedRun {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) len: u64,
}

/// All data that two headers have in common, as runs of bytes. The same headers give the same runs in every process, which a
/// journal relies on.
#[derive(Clone, Debug)]
pub(crate) struct MovedRuns {
    /// Those of fixed-size variables.
    fixed: Vec<MovedRun>,
    /// Those of the first record.
    of_record: Vec<MovedRun>,
    n_records: u64,
    /// Bytes from a record to the next, before and after.
    record_lens: (u64, u64),
    /// Bytes of the file before the move. Data behind that were never written and need not move.
    stored: u64,
}

impl MovedRuns {
    pub(crate) fn new(old: &Header, new: &Header, n_records: u64, stored: u64) -> MovedRuns {
        let (from_len, to_len) = (old.layout.record_len, new.layout.record_len);
        let runs = |is_record, most: u64| -> Vec<MovedRun> {
            pairs(old, new, is_record)
                .map(|(old, new)| MovedRun {
                    from: old.begin,
                    to: new.begin,
                    len: old.padded_bytes().min(most),
                })
                .collect()
        };
        let fixed = runs(false, u64::MAX);
        // A single record variable has unpadded records.
        let mut of_record = runs(true, from_len);
        // Records behind the end of the file were never written, however many a header claims.
        let n_stored = stored.checked_div(from_len).map_or(0, |n| n.saturating_add(1));
        let mut n_runs = n_records.min(n_stored);
        let distance = |run: &MovedRun| run.to.saturating_sub(run.from);
        if let Some(first) = of_record.first().copied()
            && from_len == to_len
            && of_record.iter().all(|run| distance(run) == distance(&first))
        {
            // All records move together: they are one run.
            let len = n_records.saturating_mul(from_len);
            (of_record, n_runs) = (vec![MovedRun { len, ..first }], 1);
        }
        MovedRuns { fixed, of_record, n_records: n_runs, record_lens: (from_len, to_len), stored }
    }

    /// The runs in the order in which they lie in the file, up to the file's end.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = MovedRun> {
        let of_records = (0..self.n_records).flat_map(|record| {
            let (from, to) = self.record_lens;
            let (from, to) = (record.saturating_mul(from), record.saturating_mul(to));
            self.of_record.iter().map(move |run| MovedRun {
                from: run.from.saturating_add(from),
                to: run.to.saturating_add(to),
                len: run.len,
            })
        });
        self.fixed
            .iter()
            .copied()
            .chain(of_records)
            .map(|run| MovedRun { len: run.len.min(self.stored.saturating_sub(run.from)), ..run })
    }

    /// Bytes that change their place.
    pub(crate) fn moved_bytes(&self) -> u64 {
        let moved = self.iter().filter(|run| run.from != run.to);
        moved.fold(0, |sum, run| sum.saturating_add(run.len))
    }

    /// Bytes of the file after the move: the end of the last run's new place.
    fn end(&self) -> u64 {
        let ends = self.iter().filter(|run| run.len > 0);
        ends.map(|run| run.to.saturating_add(run.len)).max().unwrap_or(0)
    }

    /// Calls `f` with the number and the pieces of every batch of at most `payload` bytes, those at the end of the file first.
    fn for_each_batch(
        &self,
        payload: usize,
        mut f: impl FnMut(u64, &[BatchPiece]) -> Result<(), ClassicError>,
    ) -> Result<(), ClassicError> {
        let mut pieces: Vec<BatchPiece> = Vec::new();
        let mut space = payload;
        let mut number = 0u64;
        let mut joins = false;
        for MovedRun { from, to, len: mut left } in self.iter().rev().filter(|run| run.len > 0) {
            if from == to {
                joins = false;
                continue;
            }
            while left > 0 {
                let len = usize::try_from(left).unwrap_or(usize::MAX).min(space);
                left = left.saturating_sub(len as u64);
                let (from, to) = (from.saturating_add(left), to.saturating_add(left));
                pieces.push(BatchPiece { from, to, len, joins });
                joins = true;
                space = space.saturating_sub(len);
                if space == 0 || pieces.len() == BATCH_PIECES {
                    f(number, &pieces)?;
                    number = number.saturating_add(1);
                    pieces.clear();
                    space = payload;
                }
            }
        }
        if pieces.is_empty() { Ok(()) } else { f(number, &pieces) }
    }
}

/// Variables with or without records that both headers have. A redefinition only appends variables.
fn pairs<'a>(
    old: &'a Header,
    new: &'a Header,
    is_record: bool,
) -> impl Iterator<Item = (&'a Var, &'a Var)> {
    old.vars.iter().zip(&new.vars).filter(move |(old, _)| old.is_record() == is_record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_storage::backend::Memory;

    /// Pieces that move together leave alone what stays between them.
    #[test]
    fn what_stays_between_pieces_that_move_is_left_alone() {
        // A fixed variable moves, the first record stays, the others get room for 8 bytes more each.
        let fixed = vec![MovedRun { from: 100, to: 150, len: 40 }];
        let of_record = vec![MovedRun { from: 200, to: 200, len: 8 }];
        let runs = MovedRuns { fixed, of_record, n_records: 4, record_lens: (8, 16), stored: 232 };
        let before: Vec<u8> = (1..=232).collect();
        let storage = Memory::new();
        storage.write_at(0, &before).unwrap();
        let mut batches = 0;
        runs.for_each_batch(1 << 20, |_, pieces| {
            batches += 1;
            let mut block = vec![0; pieces.iter().map(|piece| piece.len).sum()];
            read_pieces(&storage, pieces, &mut block)?;
            write_pieces(&storage, pieces, &block)
        })
        .unwrap();
        assert_eq!(batches, 1);
        let after = storage.to_vec().unwrap();
        assert_eq!(after[150..190], before[100..140]);
        assert_eq!(after[..100], before[..100]);
        for record in 0..4 {
            assert_eq!(after[200 + 16 * record..][..8], before[200 + 8 * record..][..8]);
        }
        // What lies between the fixed variable and the record that stays is nobody's, but was not touched either.
        assert_eq!(after[190..200], before[190..200]);
    }
}

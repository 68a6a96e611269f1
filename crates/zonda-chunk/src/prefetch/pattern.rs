//! Walks: what a request is to those before it, and which chunks come next.

use std::thread::ThreadId;

use super::work::{PrefetchBox, WalkPosition};
use crate::selection::DimNumbers;
use crate::selection::{Coords, GridSelection, SelectedAxis};
use crate::tuning::WALK_STEPS;

/// The last request, and how it came about.
#[derive(Debug, Default)]
pub(crate) struct AccessPattern {
    start: Coords,
    count: DimNumbers,
    stride: Coords,
    /// Dimension and step of the walk.
    walk: Option<(usize, i128)>,
    /// Steps of the walk so far.
    n_steps: u32,
    /// Number of the walk.
    number: u64,
    /// First chunk along the walk that was not yet asked for in the background.
    reached: Option<u64>,
    /// Chunk of the last request, if it needed only one, and requests to it so far.
    only: Option<Coords>,
    same_chunk: u32,
    /// Who made it, and whether others have made some.
    thread: Option<ThreadId>,
    shared: bool,
}

/// What the pattern says of a request.
#[derive(Debug, Default)]
pub(crate) struct Observation {
    /// It shares elements with the last one.
    pub overlaps: bool,
    /// Requests before this one that needed the same single chunk.
    pub same_chunk: u32,
    /// Where it is in its walk.
    pub position: WalkPosition,
    /// What to decode in the background.
    pub ahead: Option<PrefetchBox>,
}

impl AccessPattern {
    /// Takes note of a request. `large` chunks are worth it to be given up early. Of a remote storage `far` is how many chunks may be on their
    /// way at most.
    pub(crate) fn observe(
        &mut self,
        selection: &GridSelection,
        (threads, far): (usize, Option<u64>),
        large: bool,
    ) -> Observation {
        // Another thread may be where this one has been.
        let thread = std::thread::current().id();
        self.shared |= self.thread.replace(thread).is_some_and(|last| last != thread);
        let axes = &selection.axes;
        let starts: Coords = axes.iter().map(|axis| axis.start).collect();
        let counts: DimNumbers = axes.iter().map(|axis| axis.cuts.n_elems()).collect();
        let strides: Coords = axes.iter().map(|axis| axis.stride).collect();
        let same_shape = self.start.len() == starts.len()
            && !self.count.is_empty()
            && (&self.count, &self.stride) == (&counts, &strides);
        let mut observed = Observation {
            overlaps: self.overlaps(&starts, &counts, &strides),
            ..Observation::default()
        };

        let one_chunk = axes.iter().all(|axis| axis.cuts.n_pieces() == 1);
        let chunk = || axes.iter().map(|axis| Some(axis.piece(0)?.chunk)).collect();
        let only: Option<Coords> = if one_chunk { chunk() } else { None };
        self.same_chunk = match only.is_some() && only == self.only {
            true => self.same_chunk.saturating_add(1),
            false => 0,
        };
        observed.same_chunk = self.same_chunk;
        self.only = only;

        let step = if same_shape { single_step(&self.start, &starts) } else { None };
        if step.is_some() && step == self.walk {
            self.n_steps = self.n_steps.saturating_add(1);
        } else if step.is_some() || !same_shape || self.start != starts {
            (self.walk, self.n_steps, self.reached) = (step, u32::from(step.is_some()), None);
            self.number += 1;
        }
        (self.start, self.count, self.stride) = (starts, counts, strides);

        observed.position.walk = self.number;
        if let Some((axis, step)) = self.walk.filter(|_| self.n_steps >= WALK_STEPS) {
            let last = if step > 0 { axes[axis].cuts.n_chunks().saturating_sub(1) } else { 0 };
            observed.position.edge = axes[axis].piece(last).map_or(0, |piece| piece.chunk);
            let n_chunks = axes[axis].cuts.n_chunks();
            observed.position.keeps =
                n_chunks <= 2 && (0..n_chunks).all(|k| !axes[axis].is_whole(k));
            observed.ahead = self.ahead(selection, axis, step, (threads, far));
            if let Some(ahead) = observed.ahead.as_mut().filter(|_| self.shared || !large) {
                ahead.behind = None;
            }
        }
        observed
    }

    fn overlaps(&self, starts: &[u64], counts: &[usize], strides: &[u64]) -> bool {
        let last = |start: u64, count: usize, stride: u64| {
            start.saturating_add((count as u64).saturating_sub(1).saturating_mul(stride))
        };
        self.start.len() == starts.len()
            && !starts.is_empty()
            && (0..starts.len()).all(|d| {
                self.count[d] > 0
                    && counts[d] > 0
                    && starts[d] <= last(self.start[d], self.count[d], self.stride[d])
                    && self.start[d] <= last(starts[d], counts[d], strides[d])
            })
    }

    /// The chunks that the walk comes to next and that were not asked for yet.
    fn ahead(
        &mut self,
        selection: &GridSelection,
        walk: usize,
        step: i128,
        (threads, far): (usize, Option<u64>),
    ) -> Option<PrefetchBox> {
        let (mut first, mut last) = (Coords::new(), Coords::new());
        let (mut per_row, mut n_chunks, mut all_whole) = (1u64, 1u64, true);
        for (d, axis) in selection.axes.iter().enumerate() {
            let behind = axis.cuts.n_chunks();
            let (from, to) = axis.chunks(0, behind.checked_sub(1)?);
            first.push(from);
            last.push(to);
            n_chunks = n_chunks.saturating_mul(behind as u64);
            per_row = per_row.saturating_mul(if d == walk { 1 } else { to - from + 1 });
            all_whole = all_whole && axis.is_whole(0) && axis.is_whole(behind - 1);
        }
        // Enough for all threads goes straight to the caller, with one copy less.
        if far.is_none() && all_whole && n_chunks >= 2 * threads as u64 {
            return None;
        }
        let axis = &selection.axes[walk];
        let (here_first, here_last) = (first[walk], last[walk]);
        let width = here_last - here_first + 1;
        // A walk that leaves chunks out is none.
        if step.unsigned_abs() > u128::from(axis.chunk) * u128::from(width) {
            return None;
        }
        // Rows of chunks: the next request's, and at least a chunk for each thread.
        let n_rows = match far {
            None => (threads as u64).div_ceil(per_row).max(width),
            // As far as the walk has come: one that ends soon has not cost much more than it wanted.
            Some(most) => {
                let come = u64::from(self.n_steps).saturating_mul(2).saturating_mul(width);
                (most / per_row).min(come).max(width)
            }
        };
        if far.is_some() && self.is_far_ahead((here_first, here_last), step > 0, n_rows / 2) {
            return None;
        }
        let (from, to) = self.next_rows(axis, (here_first, here_last), step > 0, n_rows)?;
        // As many rows behind: a walk through all of the array does not come back to them soon.
        let rows = to - from + 1;
        let behind = match step > 0 {
            true => here_first.checked_sub(1).map(|to| (to.saturating_sub(rows - 1), to)),
            false => Some((here_last + 1, here_last + rows)),
        };
        let behind = behind.filter(|_| is_all_across(selection, walk)).map(|(from, to)| {
            let (mut first, mut last) = (first.clone(), last.clone());
            (first[walk], last[walk]) = (from, to);
            (first, last)
        });
        (first[walk], last[walk]) = (from, to);
        let extent = selection.axes.iter().map(|axis| axis.extent).collect();
        Some(PrefetchBox {
            first,
            last,
            behind,
            extent,
            axis: walk,
            forward: step > 0,
            walk: self.number,
        })
    }

    /// Whether more rows than these were asked for ahead of the request: then others can wait, to be asked for together.
    fn is_far_ahead(&self, (first, last): (u64, u64), forward: bool, n_rows: u64) -> bool {
        self.reached.is_some_and(|reached| match forward {
            true => reached.saturating_sub(last + 1) > n_rows,
            false => first.saturating_sub(reached) > n_rows,
        })
    }

    /// First and last row of chunks, of the `n_rows` rows that follow those of the request along the
    /// walk, that were not asked for yet. They count as asked for from then on.
    fn next_rows(
        &mut self,
        axis: &SelectedAxis,
        (here_first, here_last): (u64, u64),
        forward: bool,
        n_rows: u64,
    ) -> Option<(u64, u64)> {
        let (from, to) = if forward {
            let end = axis.extent.checked_sub(1)? / axis.chunk;
            let from = self.reached.unwrap_or(0).max(here_last + 1);
            let to = here_last.saturating_add(n_rows).min(end);
            self.reached = Some(from.max(to + 1));
            (from, to)
        } else {
            let to = self.reached.unwrap_or(here_first).min(here_first).checked_sub(1)?;
            let from = here_first.saturating_sub(n_rows);
            self.reached = Some(from.min(to + 1));
            (from, to)
        };
        (from <= to).then_some((from, to))
    }
}

/// Whether a request has all elements of each dimension but that of the walk.
fn is_all_across(selection: &GridSelection, walk: usize) -> bool {
    let all_across = |(d, axis): (usize, &SelectedAxis)| {
        let count = axis.cuts.n_elems() as u64;
        d == walk || (axis.start == 0 && axis.stride == 1 && count == axis.extent)
    };
    selection.axes.iter().enumerate().all(all_across)
}

/// The one dimension in which `to` differs from `from`, and by how much.
fn single_step(from: &[u64], to: &[u64]) -> Option<(usize, i128)> {
    let mut moved = (0..from.len()).filter(|&d| from[d] != to[d]);
    let axis = moved.next()?;
    moved.next().is_none().then(|| (axis, i128::from(to[axis]) - i128::from(from[axis])))
}

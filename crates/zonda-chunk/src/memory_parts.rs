//! The caller's memory, handed out to threads in parts that do not overlap.
//!
//! The only module with unsafe code. What it relies on is all here: a selection of `count` elements
//! per dimension is cut in each dimension into pieces ([`AxisCuts`]); a part is one piece of each, so
//! two parts differ in a piece of some dimension and have no element in common. Each part is handed
//! out once, because a counter hands out the numbers of parts, and each row of a part once, because
//! a part is used up by walking over its rows.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::SmallVec;

/// How the selected elements of one dimension are cut into pieces: by chunk, and those beyond the
/// extent as a last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisCuts {
    /// First selected element, from its chunk's first.
    offset: u64,
    stride: u64,
    chunk: u64,
    /// Elements inside the extent; at most `count`.
    n_in: usize,
    count: usize,
    /// Pieces inside the extent.
    n_chunks: usize,
}

impl AxisCuts {
    /// `stride` and `chunk` are at least 1, `offset` is below `chunk`.
    pub(crate) fn new(offset: u64, stride: u64, chunk: u64, n_in: usize, count: usize) -> AxisCuts {
        let n_in = n_in.min(count);
        let n_chunks = match n_in.checked_sub(1) {
            None => 0,
            Some(last) if stride < chunk => {
                let last = (last as u64).saturating_mul(stride).saturating_add(offset);
                usize::try_from(last / chunk).unwrap_or(usize::MAX).saturating_add(1).min(n_in)
            }
            Some(_) => n_in,
        };
        AxisCuts { offset, stride, chunk, n_in, count, n_chunks }
    }

    /// Elements selected.
    pub(crate) fn n_elems(&self) -> usize {
        self.count
    }

    /// Pieces inside the extent.
    pub(crate) fn n_chunks(&self) -> usize {
        self.n_chunks
    }

    /// All pieces.
    pub(crate) fn n_pieces(&self) -> usize {
        self.n_chunks + usize::from(self.n_in < self.count)
    }

    /// The first element of piece `k`, which is the end of the one before. Never falls as `k`
    /// rises, and is at most `count`: that makes pieces disjoint.
    #[inline]
    pub(crate) fn lower(&self, k: usize) -> usize {
        if k == 0 {
            0
        } else if k > self.n_chunks {
            self.count
        } else if k == self.n_chunks {
            self.n_in
        } else if self.stride >= self.chunk {
            k.min(self.n_in)
        } else {
            let begin = (k as u64).saturating_mul(self.chunk).saturating_sub(self.offset);
            // A division costs more than all the rest.
            let begin = if self.stride == 1 { begin } else { begin.div_ceil(self.stride) };
            usize::try_from(begin).unwrap_or(usize::MAX).min(self.n_in)
        }
    }

    /// Elements of piece `k`.
    #[inline]
    pub(crate) fn len(&self, k: usize) -> usize {
        self.lower(k + 1).saturating_sub(self.lower(k))
    }
}

/// One piece of each dimension.
pub(crate) type PieceNumbers = SmallVec<[usize; 4]>;

/// One dimension of the caller's memory.
#[derive(Clone, Copy, Debug)]
struct MemoryAxis {
    cuts: AxisCuts,
    /// Bytes from one element to the next.
    step: usize,
}

/// The caller's memory, cut into parts.
#[derive(Debug)]
pub(crate) struct MemoryParts<'a> {
    memory: *mut u8,
    len: usize,
    elem: usize,
    axes: SmallVec<[MemoryAxis; 4]>,
    n_parts: usize,
    /// The next part to be handed out.
    next: AtomicUsize,
    _memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: `MemoryParts` is an exclusive borrow of bytes, which may go to and be used from any thread;
// shared use hands out each part once (module text).
unsafe impl Send for MemoryParts<'_> {}
// SAFETY: as above.
unsafe impl Sync for MemoryParts<'_> {}

impl<'a> MemoryParts<'a> {
    /// Cuts `out`, packed elements of `elem` bytes in row-major order, along `cuts`, slowest
    /// dimension first. `None` if `out` is not as long as the cuts say.
    pub(crate) fn new(
        out: &'a mut [u8],
        elem: usize,
        cuts: impl Iterator<Item = AxisCuts>,
    ) -> Option<MemoryParts<'a>> {
        let mut axes: SmallVec<[MemoryAxis; 4]> =
            cuts.map(|cuts| MemoryAxis { cuts, step: 0 }).collect();
        let (mut step, mut n_parts) = (elem, 1usize);
        for axis in axes.iter_mut().rev() {
            axis.step = step;
            step = step.checked_mul(axis.cuts.count)?;
            n_parts = n_parts.checked_mul(axis.cuts.n_pieces())?;
        }
        if step != out.len() || elem == 0 {
            return None;
        }
        Some(MemoryParts {
            memory: out.as_mut_ptr(),
            len: out.len(),
            elem,
            axes,
            n_parts,
            next: AtomicUsize::new(0),
            _memory: PhantomData,
        })
    }

    /// Number of parts. They are numbered with the last dimension fastest.
    pub(crate) fn n_parts(&self) -> usize {
        self.n_parts
    }

    /// Bytes of all parts.
    pub(crate) fn n_bytes(&self) -> usize {
        self.len
    }

    /// The piece of each dimension that the part `number` is made of.
    pub(crate) fn pieces(&self, number: usize) -> PieceNumbers {
        let mut pieces: PieceNumbers = SmallVec::from_elem(0, self.axes.len());
        let mut rest = number;
        for (axis, piece) in self.axes.iter().zip(pieces.iter_mut()).rev() {
            let n = axis.cuts.n_pieces();
            if rest < n {
                *piece = rest;
                break;
            }
            *piece = rest % n;
            rest /= n;
        }
        pieces
    }

    /// From the pieces of a part to those of the next one; after the last comes the first.
    #[inline]
    pub(crate) fn advance(&self, pieces: &mut PieceNumbers) {
        for (axis, piece) in self.axes.iter().zip(pieces.iter_mut()).rev() {
            *piece += 1;
            if *piece < axis.cuts.n_pieces() {
                return;
            }
            *piece = 0;
        }
    }

    /// Takes the next up to `n` parts below `end`; `None` when all of these are taken.
    pub(crate) fn claim(&self, n: usize, end: usize) -> Option<ClaimedParts<'_, 'a>> {
        let end = end.min(self.n_parts);
        let take = |at: usize| (at < end).then(|| at.saturating_add(n.max(1)).min(end));
        let from = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        let range = from..take(from)?;
        Some(ClaimedParts { parts: self, pieces: self.pieces(from), range })
    }
}

/// Parts that are this thread's alone.
#[derive(Debug)]
pub(crate) struct ClaimedParts<'p, 'a> {
    parts: &'p MemoryParts<'a>,
    range: Range<usize>,
    /// The pieces of part `range.start`.
    pieces: PieceNumbers,
}

impl<'a> Iterator for ClaimedParts<'_, 'a> {
    type Item = MemoryPart<'a>;

    fn next(&mut self) -> Option<MemoryPart<'a>> {
        let number = self.range.next()?;
        let pieces = SmallVec::from_slice(&self.pieces);
        self.parts.advance(&mut self.pieces);
        let mut first = 0;
        let mut lens: SmallVec<[(usize, usize); 4]> = SmallVec::with_capacity(pieces.len());
        for (axis, &k) in self.parts.axes.iter().zip(&pieces) {
            let from = axis.cuts.lower(k);
            first += from * axis.step;
            lens.push((axis.cuts.lower(k + 1).saturating_sub(from), axis.step));
        }
        Some(MemoryPart {
            number,
            pieces,
            memory: self.parts.memory,
            len: self.parts.len,
            first,
            elem: self.parts.elem,
            lens,
            _memory: PhantomData,
        })
    }
}

/// One part of the caller's memory.
#[derive(Debug)]
pub(crate) struct MemoryPart<'a> {
    /// Its number.
    pub number: usize,
    /// Its piece in each dimension.
    pub pieces: PieceNumbers,
    memory: *mut u8,
    len: usize,
    /// Its first byte.
    first: usize,
    elem: usize,
    /// Elements, and bytes from one to the next, of each dimension.
    lens: SmallVec<[(usize, usize); 4]>,
    _memory: PhantomData<&'a mut [u8]>,
}

/// One level of the loops over a part.
#[derive(Clone, Copy, Debug)]
struct RowLoop {
    n: usize,
    out_step: usize,
    src_step: u64,
}

impl<'a> MemoryPart<'a> {
    /// Elements in it.
    pub(crate) fn n_elems(&self) -> usize {
        self.lens.iter().map(|(n, _)| n).product()
    }

    /// Bytes of it in memory.
    pub(crate) fn n_bytes(&self) -> usize {
        self.n_elems() * self.elem
    }

    /// Elements along the last dimension.
    pub(crate) fn last_len(&self) -> usize {
        self.lens.last().map_or(1, |(n, _)| *n)
    }

    /// Whether its elements are side by side in memory.
    pub(crate) fn is_one_run(&self) -> bool {
        let mut next = self.elem;
        self.lens.iter().rev().filter(|(n, _)| *n != 1).all(|&(n, step)| {
            let joined = step == next;
            next = next.saturating_mul(n);
            joined
        })
    }

    /// Walks over the part in rows as long as possible: `row` gets where the row's first element is
    /// in the source, the distance of its elements there, and its memory. `steps` are distances in
    /// the source per dimension, `base` is the place of the part's first element there. Rows come
    /// with ascending places where the steps are those of a row-major source.
    pub(crate) fn rows<E>(
        self,
        base: u64,
        steps: &[u64],
        mut row: impl FnMut(u64, u64, &'a mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        // Fewer would leave out rows.
        assert_eq!(steps.len(), self.lens.len(), "a step for each dimension");
        let mut loops: SmallVec<[RowLoop; 4]> = SmallVec::new();
        for (&(n, out_step), &src_step) in self.lens.iter().zip(steps) {
            if n == 0 {
                return Ok(());
            }
            let inner_loop = RowLoop { n, out_step, src_step };
            match loops.last_mut() {
                _ if n == 1 => {}
                // The inner loop ends where the next round of the outer one begins, on both sides.
                Some(outer)
                    if outer.out_step == n * out_step
                        && Some(outer.src_step) == src_step.checked_mul(n as u64) =>
                {
                    *outer = RowLoop { n: outer.n * n, ..inner_loop };
                }
                _ => loops.push(inner_loop),
            }
        }
        let run = match loops.last() {
            Some(last) if last.out_step == self.elem => loops.pop(),
            _ => None,
        };
        let run = run.unwrap_or(RowLoop { n: 1, out_step: self.elem, src_step: self.elem as u64 });
        let row_len = run.n * self.elem;
        let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, loops.len());
        let (mut out, mut src) = (self.first, base);
        loop {
            // Cheap beside a row, and it bounds what an error in the arithmetic could do.
            assert!(out.checked_add(row_len).is_some_and(|end| end <= self.len), "row in memory");
            // SAFETY: in bounds by the assertion. The rows of a part are disjoint, as are parts
            // (module text), and the memory is borrowed exclusively for 'a.
            let memory = unsafe { std::slice::from_raw_parts_mut(self.memory.add(out), row_len) };
            row(src, run.src_step, memory)?;
            // The next round of the innermost loop that has one.
            let mut d = loops.len();
            loop {
                let Some(inner) = d.checked_sub(1) else { return Ok(()) };
                d = inner;
                let inner_loop = loops[d];
                at[d] += 1;
                if at[d] < inner_loop.n {
                    out += inner_loop.out_step;
                    src += inner_loop.src_step;
                    break;
                }
                at[d] = 0;
                out -= (inner_loop.n - 1) * inner_loop.out_step;
                src -= (inner_loop.n as u64 - 1) * inner_loop.src_step;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte is handed out once, whatever the cuts and however many parts at a time.
    #[test]
    fn parts_cover_memory_once() {
        for (chunks, counts, stride, grain) in [
            ([2u64, 3, 4], [5usize, 7, 9], 1, 1),
            ([1, 1, 1], [3, 2, 4], 1, 5),
            ([4, 5, 6], [8, 9, 5], 3, 2),
            ([4, 2, 1], [3, 3, 3], 5, 100),
            ([100, 100, 100], [3, 4, 5], 1, 1),
        ] {
            for inside in 0..=counts[1] {
                let cuts = || {
                    (0..3).map(|d| {
                        let n_in = if d == 1 { inside } else { counts[d] };
                        AxisCuts::new(chunks[d] / 2, stride, chunks[d], n_in, counts[d])
                    })
                };
                let mut out = vec![0u8; counts.iter().product::<usize>() * 2];
                let parts = MemoryParts::new(&mut out, 2, cuts()).expect("fits");
                let mut n = 0;
                while let Some(claim) = parts.claim(grain, usize::MAX) {
                    for part in claim {
                        n += 1;
                        let n_elems = part.n_elems();
                        let mut bytes = 0;
                        let rows = part.rows(0, &[0, 0, 0], |_, _, row| {
                            row.iter_mut().for_each(|byte| *byte += 1);
                            bytes += row.len();
                            Ok::<(), ()>(())
                        });
                        assert_eq!((rows, bytes), (Ok(()), n_elems * 2));
                    }
                }
                assert_eq!(n, parts.n_parts());
                assert!(out.iter().all(|&byte| byte == 1));
            }
        }
    }

    #[test]
    fn another_length_is_refused() {
        let mut out = [0u8; 8];
        assert!(
            MemoryParts::new(&mut out, 2, std::iter::once(AxisCuts::new(0, 1, 4, 3, 3))).is_none()
        );
        assert!(MemoryParts::new(&mut out, 0, std::iter::empty()).is_none());
    }

    #[test]
    fn rows_are_as_long_as_both_sides_allow() {
        let rows = |counts: [usize; 2], chunk: [u64; 2], steps: [u64; 2]| {
            let mut out = vec![0u8; counts[0] * counts[1]];
            let cuts = (0..2).map(|d| AxisCuts::new(0, 1, chunk[d], counts[d], counts[d]));
            let parts = MemoryParts::new(&mut out, 1, cuts).expect("fits");
            let part = parts.claim(1, 1).and_then(|mut claim| claim.next()).expect("one");
            let mut rows = Vec::new();
            let done = part.rows(10, &steps, |at, step, row| {
                rows.push((at, step, row.len()));
                Ok::<(), ()>(())
            });
            assert_eq!(done, Ok(()));
            rows
        };
        assert_eq!(rows([3, 4], [3, 4], [4, 1]), [(10, 1, 12)]);
        assert_eq!(rows([3, 4], [3, 4], [5, 1]), [(10, 1, 4), (15, 1, 4), (20, 1, 4)]);
        assert_eq!(rows([3, 1], [3, 4], [4, 1]), [(10, 4, 3)]);
        assert_eq!(rows([2, 4], [2, 2], [2, 1]), [(10, 1, 2), (12, 1, 2)]);
        // Neighbours in memory that are one per row of the source.
        assert_eq!(rows([2, 2], [2, 1], [1, 1]), [(10, 1, 1), (11, 1, 1)]);
    }
}

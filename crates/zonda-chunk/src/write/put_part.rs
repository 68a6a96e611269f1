//! One chunk's part of a put: which elements of the caller's memory go where in the chunk.

use smallvec::SmallVec;

use super::encode::ElementEncoding;
use super::store::PutMemory;
use super::written_bits::WrittenBits;
use crate::selection::DimNumbers;
use crate::selection::{Coords, GridSelection};
use zonda_convert::Converted;

/// The elements of a put that lie in one chunk.
#[derive(Clone, Debug)]
pub(crate) struct PutPart {
    /// Elements, and bytes in memory from one to the next, of each dimension.
    lens: SmallVec<[(usize, usize); 4]>,
    /// First byte in memory.
    first: usize,
    /// First byte in the chunk, and bytes from one element to the next in each dimension.
    base: usize,
    steps: Coords,
}

/// One level of the loops over a part.
#[derive(Clone, Copy)]
struct PutLoop {
    n: usize,
    mem_step: usize,
    file_step: usize,
}

impl PutPart {
    /// The part made of these pieces, which are inside the extent. `mem_steps` are distances in the
    /// caller's memory, `file_steps` those of neighbours in a chunk.
    pub(crate) fn new(
        selection: &GridSelection,
        pieces: &[usize],
        mem_steps: &[usize],
        file_steps: &[u64],
    ) -> Option<PutPart> {
        let (base, steps) = selection.place(pieces, file_steps)?;
        let mut first = 0;
        let mut lens = SmallVec::with_capacity(pieces.len());
        for ((axis, &k), &step) in selection.axes.iter().zip(pieces).zip(mem_steps) {
            first += axis.cuts.lower(k) * step;
            lens.push((axis.cuts.len(k), step));
        }
        Some(PutPart { lens, first, base: usize::try_from(base).ok()?, steps })
    }

    /// The same elements to where they lie side by side, row-major, from the first byte on.
    pub(crate) fn into_packed(mut self, elem: usize) -> PutPart {
        let mut step = elem;
        for (to, &(n, _)) in self.steps.iter_mut().zip(&self.lens).rev() {
            *to = step as u64;
            step = step.saturating_mul(n);
        }
        self.base = 0;
        self
    }

    /// The same elements from where [`PutPart::into_packed`] put them, `first` bytes behind the beginning.
    pub(crate) fn packed_from(mut self, first: usize, elem: usize) -> PutPart {
        let mut step = elem;
        for (n, from) in self.lens.iter_mut().rev() {
            *from = step;
            step = step.saturating_mul(*n);
        }
        self.first = first;
        self
    }

    pub(crate) fn n_elems(&self) -> usize {
        self.lens.iter().map(|(n, _)| n).product()
    }

    /// Its bytes in memory, where all elements are side by side there.
    pub(crate) fn one_run<'a>(&self, src: &'a [u8], mem_size: usize) -> Option<&'a [u8]> {
        let mut next = mem_size;
        for &(n, step) in self.lens.iter().rev().filter(|(n, _)| *n != 1) {
            if step != next {
                return None;
            }
            next = next.checked_mul(n)?;
        }
        src.get(self.first..)?.get(..next)
    }

    /// Puts its elements into the chunk.
    pub(crate) fn put(
        &self,
        encode: &ElementEncoding<'_>,
        src: &[u8],
        chunk: &mut [u8],
        written: Option<&mut WrittenBits>,
        block: &mut Vec<u8>,
    ) -> Converted {
        let (mem, file) = (encode.mem_size(), encode.file_size());
        let mut converted = Converted::default();
        let mut written = written;
        if written.is_none() && encode.is_copy() {
            self.rows(mem, file, |from, n, to, step| {
                if step == file {
                    chunk[to..to + n * mem].copy_from_slice(&src[from..from + n * mem]);
                } else {
                    let _ = encode.row(&src[from..][..n * mem], &mut chunk[to..], step, block);
                }
            });
            return converted;
        }
        self.rows(mem, file, |from, n, to, step| {
            let row = encode.row(&src[from..][..n * mem], &mut chunk[to..], step, block);
            converted = converted.and(row);
            if let Some(written) = &mut written {
                written.mark_apart(to / file, n, step / file);
            }
        });
        converted
    }

    /// Hands its elements over in runs that are side by side in the chunk, each with its first byte
    /// there.
    pub(crate) fn each_run<'s, E>(
        &self,
        source: &PutMemory<'s>,
        mut run: impl FnMut(usize, &'s [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mem, file) = (source.encode.mem_size(), source.encode.file_size());
        let mut result = Ok(());
        self.rows(mem, file, |from, n, to, step| {
            if result.is_err() {
                return;
            }
            let src = &source.src[from..][..n * mem];
            result = match step == file {
                true => run(to, src),
                false => {
                    let mut elems = src.chunks_exact(mem).enumerate();
                    elems.try_for_each(|(i, src)| run(to + i * step, src))
                }
            };
        });
        result
    }

    /// Walks over the part in rows as long as possible: `row` gets the place in memory, the number
    /// of elements, which are packed there, the place in the chunk, and their distance there.
    fn rows(&self, mem: usize, file: usize, mut row: impl FnMut(usize, usize, usize, usize)) {
        let mut loops: SmallVec<[PutLoop; 4]> = SmallVec::new();
        for (&(n, mem_step), &file_step) in self.lens.iter().zip(&self.steps) {
            if n == 0 {
                return;
            }
            let inner_loop = PutLoop { n, mem_step, file_step: file_step as usize };
            match loops.last_mut() {
                _ if n == 1 => {}
                // The inner loop ends where the next round of the outer one begins, on both sides.
                Some(outer)
                    if outer.mem_step == n * mem_step
                        && Some(outer.file_step) == inner_loop.file_step.checked_mul(n) =>
                {
                    *outer = PutLoop { n: outer.n * n, ..inner_loop };
                }
                _ => loops.push(inner_loop),
            }
        }
        let run = match loops.last() {
            Some(last) if last.mem_step == mem => loops.pop(),
            _ => None,
        };
        let run = run.unwrap_or(PutLoop { n: 1, mem_step: mem, file_step: file });
        // The innermost loop on its own: what is done for each row keeps loads from overlapping.
        let inner = loops.pop().unwrap_or(PutLoop { n: 1, mem_step: 0, file_step: 0 });
        let mut at = DimNumbers::from_elem(0, loops.len());
        let (mut from, mut to) = (self.first, self.base);
        loop {
            for i in 0..inner.n {
                row(from + i * inner.mem_step, run.n, to + i * inner.file_step, run.file_step);
            }
            let mut d = loops.len();
            loop {
                let Some(outer) = d.checked_sub(1) else { return };
                d = outer;
                let inner_loop = loops[d];
                at[d] += 1;
                if at[d] < inner_loop.n {
                    from += inner_loop.mem_step;
                    to += inner_loop.file_step;
                    break;
                }
                at[d] = 0;
                from -= (inner_loop.n - 1) * inner_loop.mem_step;
                to -= (inner_loop.n - 1) * inner_loop.file_step;
            }
        }
    }
}

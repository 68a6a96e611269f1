//! The boxes in which the elements of a variable are copied.
//!
//! A box is read whole, held in memory and written whole. Boxes are made of whole chunks of the
//! target, so that each of its chunks is filtered and written once. How often chunks of the source
//! are decoded follows from where the boxes cut them: where a box is made of whole chunks of the
//! source, too (its lengths are common multiples of both), each is decoded once. Chunks without
//! filters need not be read whole: there only the length of runs counts. Of the boxes that
//! fit into memory the one is taken that decodes least; of those, one that is large enough for all
//! threads, and has long runs.

use std::collections::BTreeSet;

use crate::tuning::{BOX_SHAPES_TRIED, LONG_RUN_BYTES, SHORT_RUN_BYTES};
use zonda_slab::{advance, advance_by};

/// An array that is copied from one file to another, or read from one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoxedArray<'a> {
    /// Elements along each dimension.
    pub lens: &'a [u64],
    /// Shape of the chunks that are read; `None` for elements in one run.
    pub from: Option<&'a [u64]>,
    /// Where the chunks that are read have no filters, so that parts of them can be read: bytes of a run beyond which a longer one gains nothing.
    pub plain_run: Option<u64>,
    /// Shape of the chunks that are written; `None` for elements in one run.
    pub to: Option<&'a [u64]>,
    /// Bytes of an element in memory.
    pub elem: u64,
}

/// The shape of boxes, and what they cost.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Boxes {
    /// Elements of a box along each dimension.
    pub shape: Vec<u64>,
    /// How many times a chunk of the source is decoded, on average; for chunks without filters, the cost of reading
    /// them relative to reading each once.
    pub reads: f64,
}

/// Chooses boxes for an array: of at most `most` bytes, unless a chunk of the target is longer, and preferably of no
/// more than `goal` bytes.
pub(crate) fn choose(array: &BoxedArray<'_>, goal: u64, most: u64) -> Boxes {
    let BoxedArray { lens, from, plain_run, to, elem } = *array;
    let unit = |chunks: Option<&[u64]>, d: usize| {
        let chunk = chunks.and_then(|dims| dims.get(d).copied()).unwrap_or(1);
        chunk.clamp(1, lens[d].max(1))
    };
    let axes: Vec<AxisChunks> = (0..lens.len())
        .map(|d| AxisChunks { len: lens[d].max(1), from: unit(from, d), to: unit(to, d) })
        .collect();
    let mut lengths: Vec<Vec<u64>> = axes.iter().map(AxisChunks::lengths).collect();
    let tried =
        |lengths: &[Vec<u64>]| lengths.iter().fold(1usize, |n, of| n.saturating_mul(of.len()));
    while tried(&lengths) > BOX_SHAPES_TRIED {
        let longest = lengths.iter_mut().max_by_key(|of| of.len());
        let Some(longest) = longest.filter(|of| of.len() > 2) else { break };
        thin(longest);
    }
    let is_linear = from.is_none() || to.is_none();
    let mut best: Option<(Score, Vec<u64>, f64)> = None;
    let n_lengths: Vec<usize> = lengths.iter().map(Vec::len).collect();
    let mut at = vec![0usize; axes.len()];
    loop {
        let shape: Vec<u64> = at.iter().zip(&lengths).map(|(&at, of)| of[at]).collect();
        let bytes = shape.iter().fold(elem, |bytes, &len| bytes.saturating_mul(len));
        if bytes <= most || best.is_none() {
            let mut reads: f64 =
                axes.iter().zip(&shape).map(|(axis, &len)| axis.reads(len)).product();
            let mut bytes_side_by_side = if is_linear { run(&shape, lens, elem) } else { 0 };
            if let Some(chunk) = from.filter(|_| plain_run.is_some()) {
                let inside: Vec<u64> = shape.iter().zip(chunk).map(|(a, b)| *a.min(b)).collect();
                bytes_side_by_side = run(&inside, chunk, elem);
                if to.is_none() {
                    bytes_side_by_side = bytes_side_by_side.min(run(&shape, lens, elem));
                }
                reads = reads.min((SHORT_RUN_BYTES / bytes_side_by_side as f64).max(1.0));
            }
            let score = Score {
                fits: bytes <= most,
                reads: -(reads * 1000.0).round(),
                is_run: bytes_side_by_side.min(SHORT_RUN_BYTES as u64),
                enough: bytes.min(goal),
                run: bytes_side_by_side.min(plain_run.unwrap_or(LONG_RUN_BYTES)),
                short: u64::MAX - bytes,
            };
            if best.as_ref().is_none_or(|(known, ..)| score.is_better(known)) {
                best = Some((score, shape, reads));
            }
        }
        if !advance(&mut at, &n_lengths) {
            break;
        }
    }
    let (_, shape, reads) = best.unwrap_or((Score::default(), Vec::new(), 1.0));
    Boxes { shape, reads }
}

/// What makes one box better than another, most important first; more is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
struct Score {
    fits: bool,
    reads: f64,
    /// Runs so short that to find each takes longer than to copy it are worse than a small box.
    is_run: u64,
    enough: u64,
    run: u64,
    short: u64,
}

impl Score {
    fn is_better(&self, than: &Score) -> bool {
        self.partial_cmp(than) == Some(std::cmp::Ordering::Greater)
    }
}

/// Bytes of a box that are side by side in a file which stores the array in one run.
fn run(shape: &[u64], lens: &[u64], elem: u64) -> u64 {
    let mut bytes = elem;
    for (&count, &len) in shape.iter().zip(lens).rev() {
        bytes = bytes.saturating_mul(count);
        if count < len {
            break;
        }
    }
    bytes
}

/// The length of a dimension, and of the chunks along it in source and target.
#[derive(Clone, Copy, Debug)]
struct AxisChunks {
    len: u64,
    from: u64,
    to: u64,
}

impl AxisChunks {
    /// Lengths that boxes may have: a chunk of the target times powers of two, the least common multiple of both
    /// chunks times powers of two, and the whole dimension.
    fn lengths(&self) -> Vec<u64> {
        let both = (self.to / gcd(self.from, self.to)).checked_mul(self.from);
        let mut lengths = vec![self.len];
        for unit in [Some(self.to), both].into_iter().flatten() {
            let mut length = unit;
            while length < self.len {
                lengths.push(length);
                length = length.saturating_mul(2);
            }
        }
        zonda_runtime::sort::sort(&mut lengths);
        lengths.dedup();
        lengths
    }

    /// In how many boxes a chunk of the source is, on average.
    fn reads(&self, length: u64) -> f64 {
        let n_boxes = self.len.div_ceil(length);
        let n_chunks = self.len.div_ceil(self.from);
        let cuts = n_boxes - 1;
        // Cuts between boxes that are also between two chunks.
        let period = self.from / gcd(self.from, length);
        let inside = cuts - cuts / period;
        (n_chunks + inside) as f64 / n_chunks as f64
    }
}

/// Keeps every second length of a list, and the last one.
fn thin(lengths: &mut Vec<u64>) {
    let last = lengths.len() - 1;
    let mut index = 0;
    lengths.retain(|_| {
        index += 1;
        (index - 1) % 2 == 0 || index - 1 == last
    });
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// The chunks of an array that are in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunksPresent<'a> {
    /// Shape of a chunk.
    pub shape: &'a [u64],
    /// Coordinates, counted in chunks.
    pub keys: &'a [Vec<u64>],
}

/// The boxes that contain elements of chunks which are in a file. Their shape is that of [`choose`], but smaller
/// where the boxes would contain more than `most_empty` absent chunks for each one that is there: so the time depends
/// on the chunks in the files, and not on the length of the array.
pub(crate) fn choose_around(
    array: &BoxedArray<'_>,
    (goal, most): (u64, u64),
    there: &[ChunksPresent<'_>],
    most_empty: u64,
) -> (Boxes, BoxWalk) {
    let n: u64 = there.iter().map(|there| there.keys.len() as u64).sum();
    let mut goal = goal.min(most);
    // Where source or target is in one run, boxes are fitted to the chunks of the other one; long runs do not matter.
    let chunked =
        BoxedArray { from: array.from.or(array.to), to: array.to.or(array.from), ..*array };
    loop {
        let boxes = choose(&chunked, goal, most);
        let mut starts = BTreeSet::new();
        for ChunksPresent { shape, keys } in there {
            for key in *keys {
                let start: Vec<u64> =
                    key.iter().zip(*shape).map(|(k, n)| k.saturating_mul(*n)).collect();
                add_boxes(&mut starts, array.lens, &boxes.shape, (&start, shape));
            }
        }
        let in_box = |there: &ChunksPresent<'_>| {
            let along = boxes.shape.iter().zip(there.shape).map(|(len, n)| len.div_ceil(*n));
            along.fold(1, u64::saturating_mul)
        };
        let looked_at =
            there.iter().map(in_box).fold(0, u64::max).saturating_mul(starts.len() as u64);
        if looked_at <= n.saturating_mul(most_empty) || goal <= array.elem {
            let walk = BoxWalk::over(array.lens, &boxes.shape, starts);
            return (boxes, walk);
        }
        goal = (goal / 8).max(array.elem);
    }
}

/// Adds to `starts` the first elements of the boxes that overlap a slab.
fn add_boxes(
    starts: &mut BTreeSet<Vec<u64>>,
    lens: &[u64],
    shape: &[u64],
    (start, count): (&[u64], &[u64]),
) {
    let ends: Vec<u64> =
        (0..lens.len()).map(|d| start[d].saturating_add(count[d]).min(lens[d])).collect();
    let first: Vec<u64> = (0..lens.len()).map(|d| start[d] / shape[d] * shape[d]).collect();
    if first.iter().zip(&ends).any(|(first, end)| first >= end) {
        return;
    }
    let mut at = first.clone();
    loop {
        starts.insert(at.clone());
        if !advance_by(&mut at, &first, shape, &ends) {
            return;
        }
    }
}

/// Iterates over the boxes of an array, the last dimension fastest: first element and number of elements along each
/// dimension.
#[derive(Clone, Debug)]
pub(crate) struct BoxWalk {
    lens: Vec<u64>,
    shape: Vec<u64>,
    /// Zeros.
    origin: Vec<u64>,
    next: Option<Vec<u64>>,
    /// First elements of the boxes after the next one; `None` where all boxes of the array are visited.
    only: Option<BTreeSet<Vec<u64>>>,
}

impl BoxWalk {
    pub(crate) fn new(lens: &[u64], shape: &[u64]) -> BoxWalk {
        let origin = vec![0; lens.len()];
        let next = (!lens.contains(&0)).then(|| origin.clone());
        BoxWalk { lens: lens.to_vec(), shape: shape.to_vec(), origin, next, only: None }
    }

    /// Only the boxes that begin at these elements. For an array of which a file has few chunks the time depends on
    /// these.
    pub(crate) fn over(lens: &[u64], shape: &[u64], mut starts: BTreeSet<Vec<u64>>) -> BoxWalk {
        let next = starts.pop_first();
        let (lens, shape, origin) = (lens.to_vec(), shape.to_vec(), vec![0; lens.len()]);
        BoxWalk { lens, shape, origin, next, only: Some(starts) }
    }

    /// First element of the next box.
    pub(crate) fn peek(&self) -> Option<&[u64]> {
        self.next.as_deref()
    }
}

impl Iterator for BoxWalk {
    type Item = (Vec<u64>, Vec<u64>);

    fn next(&mut self) -> Option<(Vec<u64>, Vec<u64>)> {
        let start = self.next.take()?;
        let (lens, shape) = (&self.lens, &self.shape);
        let count = (0..lens.len()).map(|d| shape[d].min(lens[d] - start[d])).collect();
        if let Some(only) = &mut self.only {
            self.next = only.pop_first();
            return Some((start, count));
        }
        let mut next = start.clone();
        self.next = advance_by(&mut next, &self.origin, shape, lens).then_some(next);
        Some((start, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::LONG_PLAIN_RUN_BYTES;

    /// How often each chunk of the source is touched, by going through all boxes.
    fn counted(array: &BoxedArray<'_>, shape: &[u64]) -> f64 {
        let from = array.from.unwrap();
        let (mut touched, mut n) = (0u64, 1u64);
        for (start, count) in BoxWalk::new(array.lens, shape) {
            let along = |d: usize| (start[d] + count[d]).div_ceil(from[d]) - start[d] / from[d];
            touched += (0..start.len()).map(along).product::<u64>();
        }
        for (len, chunk) in array.lens.iter().zip(from) {
            n *= len.div_ceil(*chunk);
        }
        touched as f64 / n as f64
    }

    /// A box of exactly the bytes that are wanted is worse than one with whole rows.
    #[test]
    fn runs_are_not_cut_to_fill_a_box() {
        let (lens, column) = ([2_000_000, 3], [1_000_000, 1]);
        let one_run = BoxedArray { lens: &lens, from: None, plain_run: None, to: None, elem: 8 };
        let of_columns =
            BoxedArray { from: Some(&column), plain_run: Some(LONG_PLAIN_RUN_BYTES), ..one_run };
        for array in [one_run, of_columns] {
            for most in (1..=24).map(|n| n * 524_288) {
                let Boxes { shape, .. } = choose(&array, most.min(8 << 20), most);
                let bytes = run(&shape, &lens, 8);
                assert!(bytes >= SHORT_RUN_BYTES as u64, "{shape:?} of {most} bytes");
            }
        }
    }

    #[test]
    fn each_chunk_is_decoded_once_where_memory_allows() {
        let lens = [365, 180, 360];
        for (from, to) in [
            ([1, 180, 360], [365, 10, 10]),
            ([7, 31, 64], [5, 50, 50]),
            ([10, 10, 10], [10, 10, 10]),
            ([365, 1, 1], [1, 180, 360]),
        ] {
            let array = BoxedArray {
                lens: &lens,
                from: Some(&from),
                plain_run: None,
                to: Some(&to),
                elem: 4,
            };
            let boxes = choose(&array, 1 << 20, 1 << 30);
            assert_eq!(boxes.reads, 1.0, "{from:?} {to:?} {boxes:?}");
            assert_eq!(counted(&array, &boxes.shape), 1.0);
        }
    }

    #[test]
    fn boxes_of_what_is_there() {
        let (lens, shape) = ([10, 7], [4, 3]);
        let all: Vec<_> = BoxWalk::new(&lens, &shape).collect();
        for slab in [([0, 0], [1, 1]), ([3, 2], [2, 2]), ([0, 0], [10, 7]), ([9, 6], [5, 5])] {
            let ([a, b], [n, m]) = slab;
            let mut starts = BTreeSet::new();
            add_boxes(&mut starts, &lens, &shape, (&[a, b], &[n, m]));
            let over: Vec<_> = BoxWalk::over(&lens, &shape, starts).collect();
            let touches = |at: u64, n: u64, from: u64, of: u64| at < from + of && from < at + n;
            let expected: Vec<_> = all
                .iter()
                .filter(|(s, c)| touches(a, n, s[0], c[0]) && touches(b, m, s[1], c[1]))
                .cloned()
                .collect();
            assert_eq!(over, expected, "{slab:?}");
        }
        // As many as starts, however long the array is.
        let mut starts = BTreeSet::new();
        add_boxes(&mut starts, &[1 << 60], &[4], (&[1 << 40], &[4]));
        assert_eq!(BoxWalk::over(&[1 << 60], &[4], starts).count(), 1);
    }

    #[test]
    fn boxes_are_small_where_little_is_there() {
        let (lens, one) = ([900_000_000], [1]);
        let array =
            BoxedArray { lens: &lens, from: Some(&one), plain_run: None, to: Some(&one), elem: 1 };
        let sizes = (16 << 20, 64 << 20);
        let keys: Vec<Vec<u64>> = [0, 3, 450_000_000, 899_999_999].map(|k| vec![k]).into();
        let (boxes, walk) =
            choose_around(&array, sizes, &[ChunksPresent { shape: &one, keys: &keys }], 64);
        assert!(boxes.shape[0] <= 64, "{boxes:?}");
        assert_eq!(walk.count(), 3);
        // Also where only one of two is in chunks.
        let run = BoxedArray { to: None, ..array };
        let (boxes, _) =
            choose_around(&run, sizes, &[ChunksPresent { shape: &one, keys: &keys }], 64);
        assert!(boxes.shape[0] <= 64, "{boxes:?}");
        // As large as ever where much is.
        let keys: Vec<Vec<u64>> = (0..1_000_000).map(|k| vec![k]).collect();
        let lens = [1_000_000];
        let array = BoxedArray { lens: &lens, ..array };
        let (boxes, walk) =
            choose_around(&array, sizes, &[ChunksPresent { shape: &one, keys: &keys }], 64);
        assert_eq!((boxes.shape, walk.count()), (vec![1_000_000], 1));
        // And nothing where nothing is, of two files.
        let none = ChunksPresent { shape: &one, keys: &[] };
        assert_eq!(choose_around(&array, sizes, &[none, none], 64).1.count(), 0);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let (lens, from, to) = ([1000, 200, 200], [1, 200, 200], [1000, 10, 10]);
        let array =
            BoxedArray { lens: &lens, from: Some(&from), plain_run: None, to: Some(&to), elem: 4 };
        // One chunk of the target has 400 kB.
        let boxes = choose(&array, 1 << 20, 1 << 20);
        assert!(boxes.shape.iter().product::<u64>() * 4 <= 1 << 20);
        assert_eq!(boxes.shape[0], 1000);
        assert!((boxes.reads - counted(&array, &boxes.shape)).abs() < 1e-9, "{boxes:?}");
        assert!(boxes.reads > 100.0);
        // Less than a chunk of the target is no use.
        let boxes = choose(&array, 1000, 1000);
        assert_eq!(boxes.shape, to);
    }

    #[test]
    fn parts_of_plain_chunks_can_be_read() {
        let (lens, from, to) = ([1000, 200, 200], [1, 200, 200], [1000, 10, 10]);
        let plain = BoxedArray {
            lens: &lens,
            from: Some(&from),
            plain_run: Some(LONG_PLAIN_RUN_BYTES),
            to: Some(&to),
            elem: 4,
        };
        let boxes = choose(&plain, 4 << 20, 16 << 20);
        assert_eq!((boxes.shape, boxes.reads), (vec![1000, 20, 200], 1.0));
        // Runs of a few elements are not better than whole chunks.
        let from = [200, 10, 10];
        let plain = BoxedArray { from: Some(&from), ..plain };
        let boxes = choose(&plain, 4 << 20, 64 << 20);
        assert_eq!(boxes.reads, 1.0, "{boxes:?}");
        assert_eq!(counted(&plain, &boxes.shape), 1.0);
    }

    #[test]
    fn counting_agrees_with_the_formula() {
        for (len, from, to) in [(100, 7, 5), (97, 10, 4), (64, 64, 3), (50, 1, 50), (9, 4, 4)] {
            let (lens, from, to) = ([len], [from], [to]);
            let array = BoxedArray {
                lens: &lens,
                from: Some(&from),
                plain_run: None,
                to: Some(&to),
                elem: 1,
            };
            let axis = AxisChunks { len, from: from[0], to: to[0] };
            for length in axis.lengths() {
                let (formula, counted) = (axis.reads(length), counted(&array, &[length]));
                assert!((formula - counted).abs() < 1e-12, "{axis:?} {length}");
            }
        }
    }

    #[test]
    fn boxes_are_large_enough_for_all_threads_and_no_larger() {
        let (lens, chunk) = ([100_000, 100, 100], [1, 100, 100]);
        let array = BoxedArray {
            lens: &lens,
            from: Some(&chunk),
            plain_run: None,
            to: Some(&chunk),
            elem: 4,
        };
        let boxes = choose(&array, 32 << 20, 128 << 20);
        let bytes = boxes.shape.iter().product::<u64>() * 4;
        assert!((32 << 20..64 << 20).contains(&bytes), "{boxes:?}");
        // Many dimensions are no obstacle.
        let (lens, chunk) = ([40; 12], [3; 12]);
        let other = [7; 12];
        let array = BoxedArray {
            lens: &lens,
            from: Some(&chunk),
            plain_run: None,
            to: Some(&other),
            elem: 8,
        };
        let boxes = choose(&array, 32 << 20, 128 << 20);
        assert_eq!(boxes.shape.len(), 12);
    }

    #[test]
    fn walks() {
        let all: Vec<_> = BoxWalk::new(&[3, 5], &[2, 5]).collect();
        assert_eq!(all, [(vec![0, 0], vec![2, 5]), (vec![2, 0], vec![1, 5])]);
        assert_eq!(BoxWalk::new(&[], &[]).count(), 1);
        assert_eq!(BoxWalk::new(&[3, 0], &[1, 1]).count(), 0);
    }
}

//! Which chunks a put of all ranks touches, and which ranks have parts of each. All ranks make the same plan, from what each puts.

use zonda_format::SharedGrid;
use zonda_slab::Hyperslab;

/// What a rank puts, as all ranks know it. One of no elements puts nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RankSlab {
    start: Vec<usize>,
    count: Vec<usize>,
    stride: Vec<isize>,
}

/// A chunk that is put to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TouchedChunk {
    /// Its coordinates in the grid of chunks.
    pub(crate) key: Vec<u64>,
    /// Its number in the grid, row-major.
    pub(crate) number: u64,
    /// The ranks that have parts of it, in ascending order.
    pub(crate) ranks: Vec<usize>,
    /// The first of them that has all of it.
    pub(crate) whole_by: Option<usize>,
}

/// The chunks that a put touches, in the order of their numbers.
pub(crate) type Plan = Vec<TouchedChunk>;

impl RankSlab {
    /// What a put of a variable of so many dimensions is; nothing where it has other numbers of dimensions.
    pub(crate) fn of(slab: &Hyperslab<'_>, rank: usize) -> RankSlab {
        let Some(slab) = slab.ranked(rank) else { return RankSlab::default() };
        let stride = (0..rank).map(|axis| slab.stride_of(axis)).collect();
        RankSlab { start: slab.start.to_vec(), count: slab.count.to_vec(), stride }
    }

    pub(crate) fn slab(&self) -> Hyperslab<'_> {
        Hyperslab { start: &self.start, count: &self.count, stride: Some(&self.stride) }
    }

    /// Where it begins along an axis; `None` for one of no elements.
    pub(crate) fn first(&self, axis: usize) -> Option<u64> {
        self.start.get(axis).filter(|_| !self.is_empty()).map(|&first| first as u64)
    }

    fn is_empty(&self) -> bool {
        self.count.is_empty() || self.count.contains(&0)
    }

    /// Bytes that [`RankSlab::write_to`] writes for a variable of so many dimensions.
    pub(crate) fn n_bytes(rank: usize) -> usize {
        24 * rank
    }

    pub(crate) fn write_to(&self, rank: usize, out: &mut Vec<u8>) {
        for axis in 0..rank {
            let at = |list: &[usize]| list.get(axis).map_or(0, |&n| n as u64);
            let stride = self.stride.get(axis).map_or(1, |&n| (n as i64).cast_unsigned());
            for number in [at(&self.start), at(&self.count), stride] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
    }

    pub(crate) fn read_from(bytes: &[u8]) -> Option<RankSlab> {
        let mut slab = RankSlab::default();
        let (words, _) = bytes.as_chunks::<8>();
        for axis in words.chunks_exact(3) {
            let [start, count, stride] = axis else { return None };
            slab.start.push(usize::try_from(u64::from_le_bytes(*start)).ok()?);
            slab.count.push(usize::try_from(u64::from_le_bytes(*count)).ok()?);
            let stride = u64::from_le_bytes(*stride).cast_signed();
            slab.stride.push(isize::try_from(stride).ok()?);
        }
        Some(slab)
    }
}

/// Along one axis: a chunk that has some of the elements of a put, and whether it has all that the array can have there.
type AxisChunk = (u64, bool);

fn axis_chunks(
    (start, count, stride): (usize, usize, isize),
    (dim, limit): (u64, u64),
) -> Vec<AxisChunk> {
    let (start, count, dim) = (start as u64, count as u64, dim.max(1));
    let stride = if count <= 1 { 1 } else { stride.unsigned_abs().max(1) as u64 };
    let mut chunks: Vec<AxisChunk> = Vec::new();
    let mut at = 0;
    while at < count {
        let chunk = start.saturating_add(at.saturating_mul(stride)) / dim;
        let begin = chunk.saturating_mul(dim);
        let end = begin.saturating_add(dim);
        // Elements of the put before the end of the chunk.
        let behind = end.saturating_sub(start).div_ceil(stride).min(count).max(at + 1);
        let possible = dim.min(limit.saturating_sub(begin));
        chunks.push((chunk, behind - at == possible));
        at = behind;
    }
    chunks
}

/// The chunks that the ranks' puts touch, where the variable has this extent.
pub(crate) fn plan(grid: &SharedGrid, extent: &[u64], slabs: &[RankSlab]) -> Plan {
    let dims = &grid.chunk_dims;
    let counts: Vec<u64> =
        extent.iter().zip(dims).map(|(&len, &dim)| len.div_ceil(dim.max(1))).collect();
    let mut touched: Vec<(u64, usize, bool)> = Vec::new();
    for (rank, slab) in slabs.iter().enumerate().filter(|(_, slab)| !slab.is_empty()) {
        let axes: Vec<Vec<AxisChunk>> = (0..dims.len())
            .map(|axis| {
                let of = (slab.start[axis], slab.count[axis], slab.stride[axis]);
                axis_chunks(of, (dims[axis], grid.limits[axis]))
            })
            .collect();
        each_of_product(&axes, &counts, |number, is_whole| touched.push((number, rank, is_whole)));
    }
    // Each rank's are in order.
    touched.sort();
    let of_chunk = touched.chunk_by(|a, b| a.0 == b.0);
    let chunk = |parts: &[(u64, usize, bool)]| {
        let number = parts.first().map_or(0, |part| part.0);
        let mut key = vec![0; counts.len()];
        zonda_slab::unrank(number, &counts, &mut key);
        TouchedChunk {
            key,
            number,
            ranks: parts.iter().map(|part| part.1).collect(),
            whole_by: parts.iter().find(|part| part.2).map(|part| part.1),
        }
    };
    of_chunk.map(chunk).collect()
}

/// Calls `each` with the number of each chunk in the product of the axes, row-major.
fn each_of_product(axes: &[Vec<AxisChunk>], counts: &[u64], mut each: impl FnMut(u64, bool)) {
    let mut at = vec![0; axes.len()];
    let lens: Vec<usize> = axes.iter().map(Vec::len).collect();
    if lens.contains(&0) {
        return;
    }
    loop {
        // There are far fewer chunks than 64 bits count: the format refuses an extent of more than ranks can keep the places of.
        let (mut number, mut is_whole) = (0u64, true);
        for ((axis, &at), &count) in axes.iter().zip(&at).zip(counts) {
            let (chunk, is) = axis[at];
            number = number.saturating_mul(count).saturating_add(chunk);
            is_whole &= is;
        }
        each(number, is_whole);
        if !zonda_slab::advance(&mut at, &lens) {
            break;
        }
    }
}

impl TouchedChunk {
    /// Who owns it, where nobody does yet: the rank that has all of it, or one of those that have parts, another one for each number.
    pub(crate) fn new_owner(&self, of_var: u64) -> usize {
        let turn = self.number.wrapping_add(of_var);
        let nth = turn.checked_rem(self.ranks.len() as u64).unwrap_or(0);
        let in_turn = self.ranks.get(usize::try_from(nth).unwrap_or(0)).copied().unwrap_or(0);
        self.whole_by.unwrap_or(in_turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slab(start: &[usize], count: &[usize], stride: &[isize]) -> RankSlab {
        RankSlab::of(&Hyperslab { start, count, stride: Some(stride) }, start.len())
    }

    #[test]
    fn slabs_come_back() {
        let one = slab(&[3, 0], &[2, 5], &[1, 7]);
        let mut bytes = Vec::new();
        one.write_to(2, &mut bytes);
        assert_eq!(bytes.len(), RankSlab::n_bytes(2));
        assert_eq!(RankSlab::read_from(&bytes), Some(one));
    }

    /// Element by element.
    fn counted(grid: &SharedGrid, extent: &[u64], slabs: &[RankSlab]) -> Plan {
        let mut all = std::collections::BTreeMap::<u64, Vec<(usize, u64)>>::new();
        let counts: Vec<u64> =
            extent.iter().zip(&grid.chunk_dims).map(|(len, dim)| len.div_ceil(*dim)).collect();
        for (rank, slab) in slabs.iter().enumerate() {
            for i in 0..slab.count[0] {
                for j in 0..slab.count[1] {
                    let key = [(i, 0), (j, 1)].map(|(n, axis): (usize, usize)| {
                        (slab.start[axis] + n * slab.stride[axis] as usize) as u64
                            / grid.chunk_dims[axis]
                    });
                    let parts = all.entry(key[0] * counts[1] + key[1]).or_default();
                    match parts.last_mut() {
                        Some(last) if last.0 == rank => last.1 += 1,
                        _ => parts.push((rank, 1)),
                    }
                }
            }
        }
        let chunk = |(number, parts): (u64, Vec<(usize, u64)>)| {
            let key = vec![number / counts[1], number % counts[1]];
            let possible: u64 = (0..2)
                .map(|axis| {
                    let begin = key[axis] * grid.chunk_dims[axis];
                    grid.chunk_dims[axis].min(grid.limits[axis] - begin)
                })
                .product();
            let whole_by = parts.iter().find(|part| part.1 == possible).map(|part| part.0);
            TouchedChunk { key, number, ranks: parts.iter().map(|part| part.0).collect(), whole_by }
        };
        all.into_iter().map(chunk).collect()
    }

    #[test]
    fn plans_are_what_counting_gives() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..3000 {
            let chunk_dims = vec![rng.u64(1..5), rng.u64(1..5)];
            let extent = [rng.u64(1..12), rng.u64(1..12)];
            let limits = vec![if rng.bool() { u64::MAX } else { extent[0] }, extent[1]];
            let grid = SharedGrid { chunk_dims, limits, elem_size: 4, ..SharedGrid::default() };
            let slabs: Vec<RankSlab> = (0..rng.usize(1..5))
                .map(|_| {
                    let mut one = RankSlab::default();
                    for len in extent.map(|len| len as usize) {
                        let (start, stride) = (rng.usize(0..len), rng.usize(1..6));
                        one.start.push(start);
                        one.stride.push(stride as isize);
                        one.count.push(rng.usize(0..=(len - start).div_ceil(stride)));
                    }
                    one
                })
                .collect();
            assert_eq!(plan(&grid, &extent, &slabs), counted(&grid, &extent, &slabs), "{slabs:?}");
        }
    }
}

//! The elements of a selection as runs along the last dimension.

use smallvec::SmallVec;

use super::{DimValues, HyperslabDim, Selection};
use crate::{HdfError, Result};

impl Selection {
    /// Tells `found` of the selected elements inside the extent `dims` in order: where each run
    /// along the last dimension begins, and its elements. Ends where `found` says `false`.
    ///
    /// # Errors
    /// [`HdfError::BadValue`] where the selection has another number of dimensions.
    pub fn for_each_run(
        &self,
        dims: &[u64],
        found: &mut dyn FnMut(&[u64], u64) -> bool,
    ) -> Result<()> {
        if self.rank().is_some_and(|rank| rank != dims.len()) {
            let value = self.rank().unwrap_or(0) as u64;
            let what = "the number of dimensions";
            return Err(HdfError::BadValue { structure: "selection", at: 0, what, value });
        }
        let inside = |at: &[u64]| at.iter().zip(dims).all(|(at, dim)| at < dim);
        match self {
            Selection::None => {}
            Selection::All => {
                let all: SmallVec<[HyperslabDim; 3]> =
                    dims.iter().map(|&dim| HyperslabDim::run(0, dim)).collect();
                slab_runs(&all, dims, found);
            }
            Selection::Points { rank, coords } => {
                for at in coords.chunks_exact(*rank) {
                    if inside(at) && !found(at, 1) {
                        break;
                    }
                }
            }
            Selection::Hyperslab(slab) => slab_runs(slab, dims, found),
            Selection::Blocks(blocks) => {
                let all: Vec<_> = blocks.iter().collect();
                block_runs(&all, dims, &mut DimValues::new(), found);
            }
        }
        Ok(())
    }
}

/// The runs of a regular hyperslab, in order.
fn slab_runs(slab: &[HyperslabDim], dims: &[u64], found: &mut dyn FnMut(&[u64], u64) -> bool) {
    let lens: DimValues = slab.iter().zip(dims).map(|(slab, &dim)| slab.before(dim)).collect();
    let Some((inner, &len)) = slab.last().zip(lens.last()) else { return };
    if lens.contains(&0) {
        return;
    }
    let mut i = DimValues::from_elem(0, slab.len());
    let mut at: DimValues = slab.iter().map(|slab| slab.at(0)).collect();
    loop {
        let mut from = 0u64;
        while from < len {
            let run = inner.contiguous(from).min(len.saturating_sub(from)).max(1);
            if let Some(place) = at.last_mut() {
                *place = inner.at(from);
            }
            if !found(&at, run) {
                return;
            }
            from = from.saturating_add(run);
        }
        // The next row.
        let mut dim = slab.len().saturating_sub(1);
        loop {
            let Some(outer) = dim.checked_sub(1) else { return };
            dim = outer;
            let (Some(i), Some(at), Some(slab), Some(&len)) =
                (i.get_mut(dim), at.get_mut(dim), slab.get(dim), lens.get(dim))
            else {
                return;
            };
            *i = i.saturating_add(1);
            let more = *i < len;
            if !more {
                *i = 0;
            }
            *at = slab.at(*i);
            if more {
                break;
            }
        }
    }
}

/// Tells `found` of the runs of blocks in row-major order, of the rows that begin with the
/// coordinates `at`. Gives `false` where `found` did.
fn block_runs(
    blocks: &[(&[u64], &[u64])],
    dims: &[u64],
    at: &mut DimValues,
    found: &mut dyn FnMut(&[u64], u64) -> bool,
) -> bool {
    let dim = at.len();
    let Some(&extent) = dims.get(dim) else { return true };
    let is_last = dim.saturating_add(1) == dims.len();
    let end = |block: &(&[u64], &[u64])| {
        block.1.get(dim).map_or(0, |last| last.saturating_add(1)).min(extent)
    };
    let begin = |block: &(&[u64], &[u64])| block.0.get(dim).copied().unwrap_or(0);
    let mut key = 0u64;
    loop {
        // The blocks that have the coordinate `key` here, and the coordinate up to which these are
        // the same.
        let with_key: Vec<_> =
            blocks.iter().filter(|b| begin(b) <= key && key < end(b)).copied().collect();
        let stop = with_key.iter().map(end).min();
        let next = blocks.iter().map(begin).filter(|&begin| begin > key && begin < extent).min();
        let Some(stop) = stop else {
            match next {
                Some(next) => key = next,
                None => return true,
            }
            continue;
        };
        let stop = next.map_or(stop, |next| next.min(stop));
        if is_last {
            at.push(key);
            let go_on = found(at, stop.saturating_sub(key));
            at.pop();
            if !go_on {
                return false;
            }
        } else {
            for row in key..stop {
                at.push(row);
                let go_on = block_runs(&with_key, dims, at, found);
                at.pop();
                if !go_on {
                    return false;
                }
            }
        }
        key = stop;
    }
}

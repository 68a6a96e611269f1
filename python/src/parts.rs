//! A long put in parts, so that Ctrl-C ends it: Python looks at signals between calls only.

use zonda::{Dataset, Hyperslab, StorageKind, VarRef};

/// Bytes of a part for each thread that filters chunks: few enough that one takes less than a second with any filter, and enough chunks for all threads.
const PART_BYTES: usize = 8 << 20;

/// A part of a selection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) start: Vec<usize>,
    pub(crate) count: Vec<usize>,
    /// Where its values are among those of the whole: first byte, and the one behind the last.
    pub(crate) bytes: (usize, usize),
}

/// The shape of a variable's chunks, if it has some. Of formats that do not say it is none: they take parts as they come.
pub(crate) fn chunk_shape(dataset: &Dataset, var: VarRef) -> Option<Vec<usize>> {
    let info = if dataset.is_hdf5() { dataset.var_info(var).ok()? } else { return None };
    match &info.storage {
        StorageKind::Chunked(dims) => Some(dims.to_vec()),
        _ => None,
    }
}

/// Cuts a selection with values of `n_bytes` in all into parts of about [`PART_BYTES`] for each of `threads`, along the first dimension that is longer
/// than one. Parts end at borders of chunks, so that each chunk is filtered once.
pub(crate) fn cut(
    slab: &Hyperslab<'_>,
    n_bytes: usize,
    chunk: Option<&[usize]>,
    threads: usize,
) -> Vec<Part> {
    let whole =
        || Part { start: slab.start.to_vec(), count: slab.count.to_vec(), bytes: (0, n_bytes) };
    let part_bytes = PART_BYTES.saturating_mul(threads.max(1));
    let axis = slab.count.iter().position(|&n| n > 1);
    let Some(axis) = axis.filter(|_| n_bytes > part_bytes) else { return vec![whole()] };
    let (first, n_rows) = (slab.start[axis], slab.count[axis]);
    let row = n_bytes / n_rows;
    // A row of less than a byte is no row: then the whole has no more bytes than elements of one dimension.
    let mut rows = (part_bytes / row.max(1)).max(1);
    let is_dense = slab.stride.is_none_or(|stride| stride.get(axis) == Some(&1));
    let chunk = chunk.and_then(|chunk| chunk.get(axis).copied()).filter(|&n| n > 1 && is_dense);
    if let Some(chunk) = chunk {
        rows = (rows / chunk).max(1).saturating_mul(chunk);
    }
    let (mut parts, mut done) = (Vec::new(), 0);
    while done < n_rows {
        let mut here = rows.min(n_rows - done);
        if let Some(chunk) = chunk.filter(|_| done == 0) {
            // To the next border of chunks first.
            here = here.min(rows - first % chunk);
        }
        let mut part = whole();
        let pace = slab.stride.and_then(|stride| stride.get(axis).copied()).unwrap_or(1);
        let step = usize::try_from(pace).unwrap_or(1);
        part.start[axis] = first.saturating_add(done.saturating_mul(step));
        part.count[axis] = here;
        part.bytes = (done * row, (done + here) * row);
        parts.push(part);
        done += here;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_of(
        start: &[usize],
        count: &[usize],
        stride: Option<&[isize]>,
        chunk: Option<&[usize]>,
    ) -> Vec<Part> {
        let n_bytes = count.iter().product::<usize>() * 4;
        cut(&Hyperslab { start, count, stride }, n_bytes, chunk, 1)
    }

    #[test]
    fn parts_follow_one_another_and_end_at_borders_of_chunks() {
        // A row is 1 MiB.
        let parts = cut_of(&[3, 0, 0], &[50, 256, 1024], None, Some(&[5, 256, 1024]));
        let (mut row, mut byte) = (3, 0);
        for part in &parts {
            assert_eq!((part.start[0], part.bytes.0), (row, byte));
            row += part.count[0];
            byte = part.bytes.1;
            assert!(row % 5 == 0 || row == 53, "{parts:?}");
        }
        assert_eq!((row, byte), (53, 50 << 20));
        assert!(parts.len() >= 6);
    }

    #[test]
    fn small_puts_are_one_part_and_long_first_dimensions_of_one_are_passed() {
        assert_eq!(cut_of(&[0, 0], &[10, 10], None, None).len(), 1);
        assert_eq!(cut_of(&[7], &[1], None, None)[0].start, [7]);
        let parts = cut_of(&[9, 0, 0], &[1, 64, 1 << 18], None, None);
        assert_eq!(parts.len(), 8);
        assert!(parts.iter().all(|part| part.start[0] == 9 && part.count == [1, 8, 1 << 18]));
        // Strided: no borders of chunks, and starts are a stride apart.
        let parts = cut_of(&[1, 0], &[16, 1 << 19], Some(&[3, 1]), Some(&[100, 10]));
        assert_eq!(parts.len(), 4);
        assert_eq!((parts[1].start[0], parts[1].count[0]), (13, 4));
        // One chunk is one part, however long.
        assert_eq!(cut_of(&[0, 0], &[64, 1 << 19], None, Some(&[64, 1 << 19])).len(), 1);
    }
}

//! Copying a variable by way of a temporary file beside the target, where memory is too short to make chunks of the
//! target out of chunks of the source. The source is read once, in boxes of its chunks, and the target written once,
//! in boxes of its chunks. The elements that a box of the source and a box of the target have in common are one piece
//! of the file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use zonda_model::{NcError, memory};
use zonda_slab::advance;

use super::boxes::BoxWalk;
use crate::error::{Error, Result};
use crate::tuning::{SPILL_BUFFER_BYTES, SPILL_LONG_RUN_BYTES};

/// A file without a name.
#[derive(Debug)]
pub(super) struct Spill {
    file: File,
    lens: Vec<u64>,
    /// Boxes that are written to the target.
    to: Vec<u64>,
    /// Boxes that are read from the source.
    from: Vec<u64>,
    elem: u64,
}

/// A box of elements.
type Cube<'a> = (&'a [u64], &'a [u64]);

impl Spill {
    /// Makes a file in the folder of `beside`. It has no name, so it is removed when it is closed.
    ///
    /// # Errors
    /// What the operating system reports.
    pub(super) fn new(
        beside: &Path,
        lens: &[u64],
        from: &[u64],
        to: &[u64],
        elem: usize,
    ) -> Result<Spill> {
        let mut name = beside.as_os_str().to_owned();
        name.push("-pieces");
        let open = OpenOptions::new().read(true).write(true).create_new(true).open(&name);
        let file = open.map_err(|error| io_error(&error))?;
        // After this, only the open descriptor refers to the file. Another copy that took it for abandoned may have
        // removed it already.
        match std::fs::remove_file(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(&error)),
            _ => {}
        }
        Ok(Spill {
            file,
            lens: lens.to_vec(),
            to: to.to_vec(),
            from: from.to_vec(),
            elem: elem as u64,
        })
    }

    /// Writes a box of the source to the file.
    ///
    /// # Errors
    /// What the operating system reports.
    pub(super) fn put(&self, (start, count): Cube<'_>, data: &[u8]) -> Result<()> {
        let mut together = Vec::new();
        for (first, n) in overlapping(start, count, &self.to, &self.lens) {
            let mut at = self.place(&first, &n);
            let inner: Vec<u64> = first.iter().zip(start).map(|(a, b)| a - b).collect();
            for (from, len) in runs(count, &inner, &n, self.elem) {
                let bytes = &data[from..from + len];
                if len >= SPILL_LONG_RUN_BYTES {
                    self.write(bytes, &mut at)?;
                    continue;
                }
                together.extend_from_slice(bytes);
                if together.len() >= SPILL_BUFFER_BYTES {
                    self.write(&together, &mut at)?;
                    together.clear();
                }
            }
            self.write(&together, &mut at)?;
            together.clear();
        }
        Ok(())
    }

    /// Reads a box of the target from the file.
    ///
    /// # Errors
    /// What the operating system reports.
    pub(super) fn get(&self, (start, count): Cube<'_>, data: &mut [u8]) -> Result<()> {
        let mut together = Vec::new();
        for (first, n) in overlapping(start, count, &self.from, &self.lens) {
            let mut at = self.place(&first, &n);
            let inner: Vec<u64> = first.iter().zip(start).map(|(a, b)| a - b).collect();
            let mut left = n.iter().product::<u64>() * self.elem;
            let mut behind = 0;
            for (to, len) in runs(count, &inner, &n, self.elem) {
                let run = &mut data[to..to + len];
                if len >= SPILL_LONG_RUN_BYTES {
                    self.read(run, &mut at)?;
                    continue;
                }
                if behind == together.len() {
                    // Whole runs, as many as the piece has left.
                    let most = (SPILL_BUFFER_BYTES / len).max(1) * len;
                    let n = most.min(usize::try_from(left).unwrap_or(most));
                    memory::resize(&mut together, n, 0)?;
                    self.read(&mut together, &mut at)?;
                    left -= together.len() as u64;
                    behind = 0;
                }
                run.copy_from_slice(&together[behind..behind + len]);
                behind += len;
            }
            together.clear();
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8], at: &mut u64) -> Result<()> {
        let written = self.file.write_all_at(bytes, *at);
        *at += bytes.len() as u64;
        written.map_err(|error| io_error(&error))
    }

    fn read(&self, bytes: &mut [u8], at: &mut u64) -> Result<()> {
        let read = self.file.read_exact_at(bytes, *at);
        *at += bytes.len() as u64;
        read.map_err(|error| io_error(&error))
    }

    /// Offset of the piece that begins with this element. The file has the boxes of the target one after the other,
    /// and in each of them its pieces.
    fn place(&self, first: &[u64], n: &[u64]) -> u64 {
        let rank = first.len();
        let start: Vec<u64> = (0..rank).map(|d| first[d] / self.to[d] * self.to[d]).collect();
        let count: Vec<u64> = (0..rank).map(|d| self.to[d].min(self.lens[d] - start[d])).collect();
        let inner: Vec<u64> = (0..rank).map(|d| first[d] - start[d]).collect();
        (before(&start, &count, &self.lens) + before(&inner, n, &count)) * self.elem
    }
}

/// Number of elements in the boxes before one, where a regular grid of boxes divides an array.
fn before(start: &[u64], count: &[u64], lens: &[u64]) -> u64 {
    let mut behind: u64 = lens.iter().product();
    let mut n_before = 1u64;
    let mut sum = 0;
    for d in 0..start.len() {
        behind /= lens[d].max(1);
        sum += n_before * start[d] * behind;
        n_before *= count[d];
    }
    sum
}

/// The intersections of a box with the boxes of a regular grid over the array.
fn overlapping<'a>(
    start: &'a [u64],
    count: &'a [u64],
    cut: &'a [u64],
    lens: &'a [u64],
) -> impl Iterator<Item = (Vec<u64>, Vec<u64>)> + use<'a> {
    let rank = lens.len();
    let first: Vec<u64> = (0..rank).map(|d| start[d] / cut[d]).collect();
    let n: Vec<u64> =
        (0..rank).map(|d| (start[d] + count[d]).div_ceil(cut[d]) - first[d]).collect();
    BoxWalk::new(&n, &vec![1; rank]).map(move |(at, _)| {
        let from: Vec<u64> =
            (0..rank).map(|d| ((first[d] + at[d]) * cut[d]).max(start[d])).collect();
        let n = (0..rank)
            .map(|d| ((first[d] + at[d] + 1) * cut[d]).min(start[d] + count[d]) - from[d])
            .collect();
        (from, n)
    })
}

/// The runs of a part of a packed array: offset and length in bytes.
fn runs(
    shape: &[u64],
    start: &[u64],
    count: &[u64],
    elem: u64,
) -> impl Iterator<Item = (usize, usize)> {
    let rank = shape.len();
    // The part has all elements of the dimensions from `whole` on.
    let mut whole = rank;
    while whole > 0 && count[whole - 1] == shape[whole - 1] {
        whole -= 1;
    }
    let outer = whole.saturating_sub(1);
    let len: u64 = count[outer..].iter().product::<u64>() * elem;
    let mut at = vec![0u64; outer];
    let mut is_next = true;
    std::iter::from_fn(move || {
        if !is_next {
            return None;
        }
        let along = |d: usize| start[d] + at.get(d).copied().unwrap_or(0);
        let offset = (0..rank).fold(0, |offset, d| offset * shape[d] + along(d));
        is_next = advance(&mut at, &count[..outer]);
        Some(((offset * elem) as usize, len as usize))
    })
}

fn io_error(error: &io::Error) -> Error {
    let code = NcError::System(error.raw_os_error().unwrap_or(0));
    Error::with_text(
        code,
        format!("the temporary file beside the target, which takes one variable: {code}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_testkit::TempFolder;

    /// The packed elements of a box of the array of successive numbers.
    fn numbers(lens: &[u64], (start, count): Cube<'_>) -> Vec<u8> {
        let all: Vec<u64> = (0..lens.iter().product()).collect();
        let mut out = Vec::new();
        for (at, n) in runs(lens, start, count, 1) {
            out.extend(all[at..at + n].iter().flat_map(|value| value.to_ne_bytes()));
        }
        out
    }

    #[test]
    fn boxes_become_others() {
        let folder = TempFolder::new("copy-spill");
        for (lens, from, to) in [
            ([7, 9, 5], [1, 9, 5], [7, 2, 2]),
            ([7, 9, 5], [3, 4, 5], [2, 5, 3]),
            ([7, 9, 5], [7, 9, 5], [1, 1, 1]),
            ([7, 9, 5], [2, 2, 2], [2, 2, 2]),
            // Long runs, on one side or both, and thousands of short ones.
            ([5, 90, 500], [1, 90, 500], [5, 20, 500]),
            ([5, 90, 500], [2, 90, 500], [5, 90, 6]),
            ([5, 90, 500], [2, 90, 6], [5, 31, 500]),
        ] {
            let spill = Spill::new(&folder.file("x"), &lens, &from, &to, 8).unwrap();
            for (start, count) in BoxWalk::new(&lens, &from) {
                spill.put((&start, &count), &numbers(&lens, (&start, &count))).unwrap();
            }
            let bytes = lens.iter().product::<u64>() * 8;
            assert_eq!(spill.file.metadata().unwrap().len(), bytes, "nothing lies twice");
            for (start, count) in BoxWalk::new(&lens, &to) {
                let expected = numbers(&lens, (&start, &count));
                let mut data = vec![0; expected.len()];
                spill.get((&start, &count), &mut data).unwrap();
                assert!(data == expected, "{lens:?} {from:?} {to:?} {start:?}");
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

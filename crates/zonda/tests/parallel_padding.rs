//! Chunks that reach beyond the lengths of their variable: what is there does not depend on how ranks divide a put that covers all elements.

use std::path::Path;
use std::sync::Arc;

use zonda::team::{Team, threads};
use zonda::{
    CreateOptions, Dataset, Format, Hyperslab, MemType, Reserve, Result, StorageRequest, VarId,
};

const ROWS: usize = 10;
const COLUMNS: usize = 23;
const STEPS: usize = 4;

/// How ranks divide the rows or columns of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Division {
    Rows,
    Columns,
    /// Each n-th row.
    Cyclic,
    /// Rows, and one more at each side, which another rank puts, too.
    Halos,
    /// One rank has all.
    First,
}

const DIVISIONS: [Division; 5] =
    [Division::Rows, Division::Columns, Division::Cyclic, Division::Halos, Division::First];

/// What rank `me` of `n` puts: start, count and stride along rows and columns.
fn part(of: Division, me: usize, n: usize) -> [[usize; 2]; 3] {
    let bounds = |len: usize| (len * me / n, len * (me + 1) / n);
    match of {
        Division::Rows => {
            let (first, end) = bounds(ROWS);
            [[first, 0], [end - first, COLUMNS], [1, 1]]
        }
        Division::Columns => {
            let (first, end) = bounds(COLUMNS);
            [[0, first], [ROWS, end - first], [1, 1]]
        }
        Division::Cyclic => [[me, 0], [(ROWS - me).div_ceil(n), COLUMNS], [n, 1]],
        Division::Halos => {
            let (first, end) = bounds(ROWS);
            let (first, end) = (first.saturating_sub(1), (end + 1).min(ROWS));
            [[first, 0], [end - first, COLUMNS], [1, 1]]
        }
        Division::First => [[0, 0], [if me == 0 { ROWS } else { 0 }, COLUMNS], [1, 1]],
    }
}

fn put(file: &Dataset, var: VarId, step: usize, part: [[usize; 2]; 3]) -> Result<()> {
    let [start, count, stride] = part;
    let mut bytes = Vec::new();
    for y in 0..count[0] {
        for x in 0..count[1] {
            let at = (step * ROWS + start[0] + y * stride[0]) * COLUMNS + start[1] + x * stride[1];
            bytes.extend_from_slice(&(at as i32).to_ne_bytes());
        }
    }
    let (start, count) = ([step, start[0], start[1]], [1, count[0], count[1]]);
    let stride = [1, stride[0] as isize, stride[1] as isize];
    let slab = Hyperslab { start: &start, count: &count, stride: Some(&stride) };
    file.put(var, &slab, Some(MemType::I32), &bytes).map(drop)
}

fn life(team: &threads::Threads, path: &Path, chunk: &[usize], of: Division) {
    let options = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
    let shared: Arc<dyn Team> = Arc::new(team.clone());
    let file = Dataset::create_parallel(shared, path, &options).unwrap();
    let lens = [("t", 0), ("y", ROWS), ("x", COLUMNS)];
    let dims = lens.map(|(name, len)| file.def_dim(name.as_bytes(), len).unwrap().0);
    let var = file.def_var(b"v", 4, &dims).unwrap();
    file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(chunk)).unwrap();
    file.enddef(Reserve::Default).unwrap();
    file.set_collective(var, true).unwrap();
    for step in 0..STEPS {
        put(&file, var, step, part(of, team.rank(), team.size())).unwrap();
    }
    file.close().unwrap();
}

fn bytes(n: usize, chunk: &[usize], of: Division) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.nc");
    let _ = threads::all(n, |team| life(team, &path, chunk, of));
    std::fs::read(&path).unwrap()
}

#[test]
fn what_lies_beyond_the_lengths_does_not_depend_on_who_covers_what() {
    for chunk in [[1, 4, 10], [1, 5, 23], [1, 5, 16], [2, 10, 23], [3, 3, 3]] {
        let expected = bytes(1, &chunk, Division::Rows);
        // Fill values are there, where chunks reach so far.
        let fill = (-2_147_483_647_i32).to_le_bytes();
        let is_padded = expected.windows(4 * 4).any(|run| run == fill.repeat(4));
        let reaches = chunk != [1, 5, 23] && chunk != [2, 10, 23];
        assert_eq!(is_padded, reaches, "{chunk:?}");
        for of in DIVISIONS {
            for n in [1, 2, 3, 5] {
                assert!(bytes(n, &chunk, of) == expected, "{chunk:?}, {of:?}, {n} ranks");
            }
        }
    }
}

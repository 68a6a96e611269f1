//! Variables whose chunks go through filters, written by the ranks of simulated teams: the same bytes for any number of ranks, and those that
//! one process writes that makes the same puts by itself.

use std::path::Path;
use std::sync::Arc;

use zonda::team::{Team, threads};
use zonda::{
    CreateOptions, Dataset, Format, Hyperslab, MemType, NcError, OpenOptions, Reserve,
    StorageRequest, VarId, VarRef,
};

const SIZES: [usize; 7] = [1, 2, 3, 4, 7, 12, 16];
const ROWS: usize = 24;
const COLUMNS: usize = 18;

/// Which box of a put is a rank's: rows are divided, or columns, or both.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Division {
    Rows,
    Columns,
    Blocks,
    /// The last rank has all.
    Last,
}

const DIVISIONS: [Division; 4] =
    [Division::Rows, Division::Columns, Division::Blocks, Division::Last];

/// What of `n` elements is the `nth` of `parts` parts.
fn part(n: usize, nth: usize, parts: usize) -> (usize, usize) {
    let (begin, end) = (n * nth / parts, n * (nth + 1) / parts);
    (begin, end - begin)
}

fn divided(division: Division, (rank, size): (usize, usize)) -> [(usize, usize); 2] {
    match division {
        Division::Rows => [part(ROWS, rank, size), (0, COLUMNS)],
        Division::Columns => [(0, ROWS), part(COLUMNS, rank, size)],
        Division::Blocks => {
            let across = (1..=size).rev().find(|n| size.is_multiple_of(*n) && n * n <= size);
            let across = across.unwrap_or(1);
            let down = size / across;
            [part(ROWS, rank / across, down), part(COLUMNS, rank % across, across)]
        }
        Division::Last if rank + 1 == size => [(0, ROWS), (0, COLUMNS)],
        Division::Last => [(0, 0), (0, 0)],
    }
}

fn value(record: usize, row: usize, column: usize) -> i32 {
    (record * 1000 + row * 7 + column % 5) as i32
}

/// One process, or a rank of a team.
enum Writer<'a> {
    Alone,
    Of(&'a threads::Threads),
}

impl Writer<'_> {
    fn rank(&self) -> (usize, usize) {
        match self {
            Writer::Alone => (0, 1),
            Writer::Of(team) => (team.rank(), team.size()),
        }
    }

    fn create(&self, path: &Path) -> Dataset {
        let options = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
        match self {
            Writer::Alone => Dataset::create(path, &options).unwrap(),
            Writer::Of(team) => {
                let team: Arc<dyn Team> = Arc::new((*team).clone());
                Dataset::create_parallel(team, path, &options).unwrap()
            }
        }
    }

    fn open(&self, path: &Path) -> Dataset {
        let options = OpenOptions { write: true, ..OpenOptions::default() };
        match self {
            Writer::Alone => Dataset::open(path, &options).unwrap(),
            Writer::Of(team) => {
                let team: Arc<dyn Team> = Arc::new((*team).clone());
                Dataset::open_parallel(team, path, &options).unwrap()
            }
        }
    }

    fn put_record(&self, file: &Dataset, var: VarId, record: usize, division: Division) {
        let [(row, n_rows), (column, n_columns)] = divided(division, self.rank());
        let bytes: Vec<u8> = (row..row + n_rows)
            .flat_map(|row| {
                (column..column + n_columns).map(move |column| value(record, row, column))
            })
            .flat_map(i32::to_ne_bytes)
            .collect();
        let (start, count) = ([record, row, column], [1, n_rows, n_columns]);
        let slab = Hyperslab { start: &start, count: &count, stride: None };
        let done = file.put(var, &slab, Some(MemType::I32), &bytes).unwrap();
        assert_eq!(done.out_of_range, 0);
    }
}

/// A file with a deflated variable of records in such chunks.
fn write(writer: &Writer<'_>, path: &Path, chunks: [usize; 3], division: Division, n: usize) {
    let file = writer.create(path);
    let time = file.def_dim(b"time", 0).unwrap();
    let y = file.def_dim(b"y", ROWS).unwrap();
    let x = file.def_dim(b"x", COLUMNS).unwrap();
    let var = file.def_var(b"v", 4, &[time.0, y.0, x.0]).unwrap();
    file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(&chunks)).unwrap();
    file.def_var_deflate(var.into(), true, Some(1)).unwrap();
    file.enddef(Reserve::Default).unwrap();
    for record in 0..n {
        writer.put_record(&file, var, record, division);
    }
    file.close().unwrap();
}

fn check(path: &Path, n: usize) {
    let file = Dataset::open(path, &OpenOptions::default()).unwrap();
    let count = [n, ROWS, COLUMNS];
    let mut bytes = vec![0; n * ROWS * COLUMNS * 4];
    let slab = Hyperslab { start: &[0, 0, 0], count: &count, stride: None };
    let done = file.get(VarId(0), &slab, Some(MemType::I32), &mut bytes).unwrap();
    assert_eq!(done.out_of_range, 0);
    let mut values = bytes.as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes));
    for record in 0..n {
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                assert_eq!(values.next(), Some(value(record, row, column)));
            }
        }
    }
}

fn same(one: &Path, other: &Path, what: &str) {
    let (one, other) = (std::fs::read(one).unwrap(), std::fs::read(other).unwrap());
    let at = one.iter().zip(&other).position(|(a, b)| a != b);
    assert!(
        one == other,
        "{what}: {} and {} bytes, first difference {at:?}",
        one.len(),
        other.len()
    );
}

#[test]
fn records_are_the_bytes_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let (alone, path) = (folder.path().join("alone.nc"), folder.path().join("ranks.nc"));
    for chunks in [[1, 24, 18], [1, 6, 18], [1, 5, 7], [2, 7, 18], [4, 24, 5], [3, 1, 1]] {
        write(&Writer::Alone, &alone, chunks, Division::Rows, 7);
        check(&alone, 7);
        for division in DIVISIONS {
            for size in SIZES {
                threads::all(size, |team| write(&Writer::Of(team), &path, chunks, division, 7));
                check(&path, 7);
                same(&alone, &path, &format!("{chunks:?}, {division:?}, {size} ranks"));
            }
        }
    }
}

//! Variables whose chunks go through filters, written by the ranks of simulated teams: the same bytes for any number of ranks, and those that
//! one process writes that makes the same puts by itself, whether or not ranks have write-behind.

#[path = "common/way.rs"]
mod way;

use std::path::Path;
use std::sync::Arc;

use zonda::team::{Team, threads};
use zonda::{
    CreateOptions, Dataset, Endianness, FilterSpec, Format, Hyperslab, MemType, NcError,
    OpenOptions, Reserve, StorageRequest, VarId, VarRef,
};
use zonda_testkit::{Rng, by};

use way::Way;

const SIZES: [usize; 7] = [1, 2, 3, 4, 7, 12, 16];
/// With write-behind.
const QUEUED_SIZES: [usize; 5] = [1, 2, 3, 4, 8];
const ROWS: usize = 24;
const COLUMNS: usize = 18;

/// Memory, where there is a folder of it.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

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
    Of(&'a threads::Threads, Way),
}

const DIRECT: Way = Way { is_queued: false, syncs: false };
const QUEUED: Way = Way { is_queued: true, syncs: false };

impl Writer<'_> {
    fn rank(&self) -> (usize, usize) {
        match self {
            Writer::Alone => (0, 1),
            Writer::Of(team, _) => (team.rank(), team.size()),
        }
    }

    fn create(&self, path: &Path) -> Dataset {
        let format = Format::NetCdf4;
        match self {
            Writer::Alone => {
                let options = CreateOptions { format, ..CreateOptions::default() };
                Dataset::create(path, &options).unwrap()
            }
            Writer::Of(team, way) => {
                let write_behind = way.of_rank(team.rank());
                let options = CreateOptions { format, write_behind, ..CreateOptions::default() };
                let team: Arc<dyn Team> = Arc::new((*team).clone());
                Dataset::create_parallel(team, path, &options).unwrap()
            }
        }
    }

    fn open(&self, path: &Path) -> Dataset {
        let options = OpenOptions { write: true, ..OpenOptions::default() };
        match self {
            Writer::Alone => Dataset::open(path, &options).unwrap(),
            Writer::Of(team, way) => {
                let write_behind = way.of_rank(team.rank());
                let options = OpenOptions { write_behind, ..options };
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
    let folder = folder();
    let (alone, path) = (folder.path().join("alone.nc"), folder.path().join("ranks.nc"));
    for chunks in [[1, 24, 18], [1, 6, 18], [1, 5, 7], [2, 7, 18], [4, 24, 5], [3, 1, 1]] {
        write(&Writer::Alone, &alone, chunks, Division::Rows, 7);
        check(&alone, 7);
        let of = |sizes: &[usize], way: Way| -> Vec<(usize, Way)> {
            sizes.iter().map(|&size| (size, way)).collect()
        };
        let ways = [of(&SIZES, DIRECT), of(&QUEUED_SIZES, QUEUED)].concat();
        for division in DIVISIONS {
            for &(size, way) in &ways {
                let live = |team: &threads::Threads| {
                    write(&Writer::Of(team, way), &path, chunks, division, 7);
                };
                threads::all(size, live);
                check(&path, 7);
                same(&alone, &path, &format!("{chunks:?}, {division:?}, {size} ranks, {way:?}"));
            }
        }
    }
}

/// A variable of a random program: its type, its dimensions and its chunks.
#[derive(Clone, Debug)]
struct VarPlan {
    nc_type: i32,
    dims: Vec<usize>,
    chunks: Vec<usize>,
    filters: usize,
    is_big: bool,
}

/// What a random program does.
#[derive(Clone, Debug)]
enum Op {
    /// A put of a box, divided along an axis: into runs, or element by element in turn.
    Put {
        var: usize,
        start: Vec<usize>,
        count: Vec<usize>,
        stride: Vec<isize>,
        axis: usize,
        in_turn: bool,
    },
    Sync,
    /// One more variable, in define mode.
    Define(VarPlan),
    Reopen,
}

/// Lengths of dimensions; 0 for those that can grow.
const DIMS: [usize; 5] = [0, 9, 14, 0, 5];
/// How far those grow.
const MOST_LEN: usize = 12;

fn var_plan(rng: &mut Rng) -> VarPlan {
    let below = |rng: &mut Rng, n: usize| rng.below(n as u64) as usize;
    let mut dims: Vec<usize> = Vec::new();
    for _ in 0..1 + below(rng, 3) {
        let dim = below(rng, DIMS.len());
        if !dims.contains(&dim) {
            dims.push(dim);
        }
    }
    let len = |dim: usize| if DIMS[dim] == 0 { 5 } else { DIMS[dim] };
    let chunks = dims.iter().map(|&dim| 1 + below(rng, len(dim))).collect();
    let nc_type = [3, 4, 5, 6, 10][below(rng, 5)];
    VarPlan { nc_type, dims, chunks, filters: below(rng, 7), is_big: below(rng, 4) == 0 }
}

fn program(rng: &mut Rng, n: usize) -> (Vec<VarPlan>, Vec<Op>) {
    let mut vars: Vec<VarPlan> = (0..1 + rng.below(4)).map(|_| var_plan(rng)).collect();
    let (first, mut ops) = (vars.clone(), Vec::new());
    for _ in 0..n {
        ops.push(match rng.below(16) {
            0 | 1 => Op::Sync,
            2 => Op::Reopen,
            3 => {
                vars.push(var_plan(rng));
                Op::Define(vars.last().unwrap().clone())
            }
            _ => {
                let var = rng.below(vars.len() as u64) as usize;
                let (mut start, mut count, mut stride) = (Vec::new(), Vec::new(), Vec::new());
                for &dim in &vars[var].dims {
                    let len = if DIMS[dim] == 0 { MOST_LEN } else { DIMS[dim] };
                    let is_whole = rng.below(2) == 0 && DIMS[dim] != 0;
                    let from = if is_whole { 0 } else { rng.below(len as u64) as usize };
                    let step = if is_whole { 1 } else { [1, 1, 1, 2, 3][rng.below(5) as usize] };
                    let most = (len - from).div_ceil(step);
                    let n = if is_whole { most } else { 1 + rng.below(most as u64) as usize };
                    start.push(from);
                    count.push(n);
                    stride.push(step as isize);
                }
                let axis = rng.below(start.len() as u64) as usize;
                Op::Put { var, start, count, stride, axis, in_turn: rng.below(4) == 0 }
            }
        });
    }
    (first, ops)
}

fn define(file: &Dataset, number: usize, plan: &VarPlan) -> VarId {
    let dims: Vec<i32> = plan.dims.iter().map(|&dim| dim as i32).collect();
    let var = file.def_var(format!("v{number}").as_bytes(), plan.nc_type, &dims).unwrap();
    let of = VarRef::from(var);
    file.def_var_chunking(of, StorageRequest::Chunked, Some(&plan.chunks)).unwrap();
    match plan.filters {
        0 => file.def_var_fletcher32(of, true).unwrap(),
        1 => {
            file.def_var_deflate(of, true, Some(2)).unwrap();
            file.def_var_fletcher32(of, true).unwrap();
        }
        n @ (2 | 5 | 6) => {
            // Zstandard, bzip2, szip.
            let (id, params) = match n {
                2 => (32015, vec![1]),
                5 => (307, vec![1]),
                _ => (4, vec![32, 4]),
            };
            let filter = FilterSpec { id, name: String::new(), optional: false, params };
            // Szip does not take chunks of each shape.
            if file.def_var_filter(of, filter).is_err() {
                file.def_var_fletcher32(of, true).unwrap();
            }
        }
        3 => file.def_var_deflate(of, true, None).unwrap(),
        _ => file.def_var_deflate(of, false, Some(1)).unwrap(),
    }
    if plan.is_big {
        file.def_var_endian(of, Endianness::Big).unwrap();
    }
    var
}

/// The part of `n` elements that is a rank's: the first, the step, and how many.
fn share(n: usize, in_turn: bool, (rank, size): (usize, usize)) -> (usize, usize, usize) {
    if in_turn {
        return (rank, size, n.saturating_sub(rank).div_ceil(size));
    }
    let (first, n) = part(n, rank, size);
    (first, 1, n)
}

fn carry_out(writer: &Writer<'_>, path: &Path, (vars, ops): &(Vec<VarPlan>, Vec<Op>)) {
    let mut file = writer.create(path);
    for (number, len) in DIMS.iter().enumerate() {
        let _ = file.def_dim(format!("d{number}").as_bytes(), *len).unwrap();
    }
    let mut ids: Vec<VarId> =
        vars.iter().enumerate().map(|(number, plan)| define(&file, number, plan)).collect();
    file.enddef(Reserve::Default).unwrap();
    for (n_put, op) in ops.iter().enumerate() {
        match op {
            Op::Sync => file.sync().unwrap(),
            Op::Define(plan) => {
                file.redef().unwrap();
                ids.push(define(&file, ids.len(), plan));
                file.enddef(Reserve::Default).unwrap();
            }
            Op::Reopen => {
                file.close().unwrap();
                file = writer.open(path);
                if let Writer::Of(..) = writer {
                    ids.iter().for_each(|var| file.set_collective(*var, true).unwrap());
                }
            }
            Op::Put { var, start, count, stride, axis, in_turn } => {
                let (first, step, n) = share(count[*axis], *in_turn, writer.rank());
                let (mut start, mut count, mut stride) =
                    (start.clone(), count.clone(), stride.clone());
                start[*axis] += first * stride[*axis] as usize;
                stride[*axis] *= step as isize;
                count[*axis] = n;
                let n_elems: usize = count.iter().product();
                if n_elems == 0 {
                    start.fill(0);
                }
                let value = |number: usize| {
                    let (mut rest, mut value) = (number, n_put * 7);
                    for axis in (0..count.len()).rev() {
                        let at = start[axis] + rest % count[axis] * stride[axis] as usize;
                        rest /= count[axis];
                        value += at * (3 + axis * 10);
                    }
                    value as i32
                };
                let bytes: Vec<u8> =
                    (0..n_elems).flat_map(|number| value(number).to_ne_bytes()).collect();
                let slab = Hyperslab { start: &start, count: &count, stride: Some(&stride) };
                let done = file.put(ids[*var], &slab, Some(MemType::I32), &bytes).unwrap();
                assert_eq!(done.out_of_range, 0);
            }
        }
    }
    file.close().unwrap();
}

/// Programs of these seeds, with so many ranks.
fn try_programs(seeds: std::ops::Range<u64>, sizes: &[usize], queued_sizes: &[usize]) {
    let folder = folder();
    let (alone, path) = (folder.path().join("alone.nc"), folder.path().join("ranks.nc"));
    for seed in seeds {
        let program = program(&mut Rng::new(seed), by(24, 80));
        carry_out(&Writer::Alone, &alone, &program);
        let ways = [(sizes, DIRECT), (queued_sizes, QUEUED)];
        for (size, way) in
            ways.into_iter().flat_map(|(sizes, way)| sizes.iter().map(move |n| (*n, way)))
        {
            threads::all(size, |team| carry_out(&Writer::Of(team, way), &path, &program));
            same(&alone, &path, &format!("seed {seed}, {size} ranks, {way:?}, {program:?}"));
        }
    }
}

#[test]
fn random_programs_are_the_bytes_of_one_process() {
    let only = std::env::var("ZONDA_SEED").ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = only.map_or(0..by(12, 3000), |seed| seed..seed + 1);
    try_programs(seeds, &[1, 2, 3, 5, 16], &QUEUED_SIZES);
}

/// What the next test runs with a limit of its own, as the limit is one of the process.
#[test]
#[ignore = "run by the next test"]
fn a_few_random_programs() {
    try_programs(0..by(2, 200), &[1, 3], &[2, 3]);
}

/// So few chunks may wait that puts store others.
#[test]
fn where_few_chunks_may_wait_the_bytes_are_those_of_one_process_too() {
    for limit in ["300", "1000", "4000"] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "a_few_random_programs", "--ignored"]);
        let done = child.env("ZONDA_WRITE_CACHE", limit).output().unwrap();
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && text.contains("1 passed"), "{limit}: {text}");
    }
}

/// A put alone has the answer of the reference, and puts nothing.
#[test]
fn chunks_through_filters_are_put_to_by_all_ranks() {
    let folder = folder();
    let path = folder.path().join("ranks.nc");
    threads::all(3, |team| {
        let writer = Writer::Of(team, DIRECT);
        write(&writer, &path, [1, 6, 18], Division::Rows, 2);
        let file = writer.open(&path);
        let var = VarId(0);
        let slab = Hyperslab { start: &[0, 0, 0], count: &[1, 1, 1], stride: None };
        let one = || file.put(var, &slab, Some(MemType::I32), &7_i32.to_ne_bytes());
        assert_eq!(one().unwrap_err().code(), NcError::HdfErr);
        assert_eq!(file.set_collective(var, false).unwrap_err().code(), NcError::Inval);
        file.set_collective(var, true).unwrap();
        // A wrong argument is an error of its rank, and the others' puts are made.
        let beyond = Hyperslab { start: &[0, ROWS, 0], count: &[1, 1, 1], stride: None };
        let row = 8 * team.rank();
        let mine = Hyperslab { start: &[0, row, 0], count: &[1, 1, 1], stride: None };
        let slab = if team.rank() == 1 { beyond } else { mine };
        let done = file.put(var, &slab, Some(MemType::I32), &(-5_i32).to_ne_bytes());
        let code = done.err().map(|error| error.code());
        assert_eq!(code, (team.rank() == 1).then_some(NcError::InvalidCoords));
        // What others put is seen at once where all get.
        let mut bytes = vec![0; ROWS * 4];
        let column = Hyperslab { start: &[0, 0, 0], count: &[1, ROWS, 1], stride: None };
        let done = file.get(var, &column, Some(MemType::I32), &mut bytes).unwrap();
        assert_eq!(done.out_of_range, 0);
        for (row, found) in bytes.as_chunks().0.iter().enumerate() {
            let put = if [0, 16].contains(&row) { -5 } else { value(0, row, 0) };
            assert_eq!(i32::from_ne_bytes(*found), put, "row {row}");
        }
        file.close().unwrap();
    });
}

/// In data mode it is a close, as for one process.
#[test]
fn an_abort_stores_what_waits() {
    let folder = folder();
    let (alone, path) = (folder.path().join("alone.nc"), folder.path().join("ranks.nc"));
    let live = |writer: &Writer<'_>, path: &Path| {
        write(writer, path, [4, 5, 7], Division::Rows, 3);
        let file = writer.open(path);
        if let Writer::Of(..) = writer {
            file.set_collective(VarId(0), true).unwrap();
        }
        writer.put_record(&file, VarId(0), 3, Division::Columns);
        writer.put_record(&file, VarId(0), 4, Division::Columns);
        file.abort().unwrap();
    };
    live(&Writer::Alone, &alone);
    check(&alone, 5);
    for (size, way) in [(1, DIRECT), (3, DIRECT), (4, DIRECT), (1, QUEUED), (3, QUEUED)] {
        threads::all(size, |team| live(&Writer::Of(team, way), &path));
        check(&path, 5);
        same(&alone, &path, &format!("{size} ranks, {way:?}"));
    }
}

/// One process commits before a record when 64 MiB were put since the last commit; all ranks do at the same records.
#[test]
fn ranks_commit_where_one_process_does() {
    const WIDE: usize = 4 << 20;
    let folder = folder();
    let (alone, path) = (folder.path().join("alone.nc"), folder.path().join("ranks.nc"));
    let live = |writer: &Writer<'_>, path: &Path| {
        let file = writer.create(path);
        let time = file.def_dim(b"time", 0).unwrap();
        let x = file.def_dim(b"x", WIDE).unwrap();
        let var = file.def_var(b"v", 4, &[time.0, x.0]).unwrap();
        let chunks = [2, WIDE / 4 + 5];
        file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(&chunks)).unwrap();
        file.def_var_fletcher32(var.into(), true).unwrap();
        file.enddef(Reserve::Default).unwrap();
        let (rank, size) = writer.rank();
        let (first, n) = part(WIDE, rank, size);
        for record in 0..7 {
            let (start, count) = ([record, first], [1, n]);
            let slab = Hyperslab { start: &start, count: &count, stride: None };
            let bytes = vec![record as u8; 4 * n];
            let done = file.put(var, &slab, Some(MemType::I32), &bytes).unwrap();
            assert_eq!(done.out_of_range, 0);
        }
        file.close().unwrap();
    };
    live(&Writer::Alone, &alone);
    for (size, way) in [(1, DIRECT), (3, DIRECT), (3, QUEUED)] {
        threads::all(size, |team| live(&Writer::Of(team, way), &path));
        same(&alone, &path, &format!("{size} ranks, {way:?}"));
    }
}

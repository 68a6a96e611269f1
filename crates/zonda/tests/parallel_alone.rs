//! Puts by a rank alone to variables whose chunks go through filters, on request: kept, placed together by all, and the same bytes whenever
//! they were made.

use std::path::Path;
use std::sync::Arc;

use zonda::team::{Team, threads};
use zonda::{
    CreateOptions, Dataset, Format, Hyperslab, MemType, NcError, OpenOptions, Reserve,
    StorageRequest, VarId,
};
use zonda_testkit::{Rng, by};

const ROWS: usize = 24;
const COLUMNS: usize = 18;
const FILL: i32 = -2147483647;

/// Memory, where there is a folder of it.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn created(team: &threads::Threads, path: &Path) -> Dataset {
    let team: Arc<dyn Team> = Arc::new(team.clone());
    let format = Format::NetCdf4;
    let options = CreateOptions { format, independent_filters: true, ..CreateOptions::default() };
    Dataset::create_parallel(team, path, &options).unwrap()
}

fn opened(team: &threads::Threads, path: &Path) -> Dataset {
    let team: Arc<dyn Team> = Arc::new(team.clone());
    let options = OpenOptions { write: true, independent_filters: true, ..OpenOptions::default() };
    Dataset::open_parallel(team, path, &options).unwrap()
}

/// Variables of the same shape: so many with filters, and perhaps one without.
fn define(file: &Dataset, chunks: &[usize], n: usize, one_more: bool) -> Vec<VarId> {
    let y = file.def_dim(b"y", ROWS).unwrap();
    let x = file.def_dim(b"x", COLUMNS).unwrap();
    let vars: Vec<VarId> = (0..n + usize::from(one_more))
        .map(|number| {
            let name = format!("v{number}");
            let var = file.def_var(name.as_bytes(), 4, &[y.0, x.0]).unwrap();
            file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(chunks)).unwrap();
            if number < n {
                file.def_var_deflate(var.into(), true, Some(1)).unwrap();
            }
            var
        })
        .collect();
    file.enddef(Reserve::Default).unwrap();
    vars
}

/// A put of a box, strided or not, with the same value everywhere.
#[derive(Clone, Debug)]
struct BoxPut {
    var: usize,
    start: [usize; 2],
    count: [usize; 2],
    stride: [isize; 2],
    value: i32,
}

fn random_put(rng: &mut Rng, n_vars: usize) -> BoxPut {
    let mut below = |n: usize| rng.below(n as u64) as usize;
    let (mut start, mut count, mut stride) = ([0; 2], [0; 2], [1; 2]);
    for (axis, len) in [ROWS, COLUMNS].into_iter().enumerate() {
        start[axis] = below(len);
        stride[axis] = [1, 1, 1, 2, 3][below(5)];
        count[axis] = 1 + below((len - start[axis]).div_ceil(stride[axis] as usize));
        if below(4) == 0 {
            (start[axis], count[axis], stride[axis]) = (0, len, 1);
        }
    }
    BoxPut { var: below(n_vars), start, count, stride, value: below(1000) as i32 }
}

impl BoxPut {
    fn put(&self, file: &Dataset, vars: &[VarId]) -> zonda::Result<()> {
        let slab = Hyperslab { start: &self.start, count: &self.count, stride: Some(&self.stride) };
        let n = self.count[0] * self.count[1];
        let bytes = self.value.to_ne_bytes().repeat(n);
        file.put(vars[self.var], &slab, Some(MemType::I32), &bytes).map(drop)
    }

    fn onto(&self, model: &mut [Vec<i32>]) {
        for i in 0..self.count[0] {
            for j in 0..self.count[1] {
                let row = self.start[0] + i * self.stride[0] as usize;
                let column = self.start[1] + j * self.stride[1] as usize;
                model[self.var][row * COLUMNS + column] = self.value;
            }
        }
    }
}

fn get(file: &Dataset, var: VarId) -> Vec<i32> {
    let slab = Hyperslab { start: &[0, 0], count: &[ROWS, COLUMNS], stride: None };
    let mut out = vec![0; ROWS * COLUMNS * 4];
    let done = file.get(var, &slab, Some(MemType::I32), &mut out).unwrap();
    assert_eq!(done.out_of_range, 0);
    out.as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect()
}

/// What all ranks do one after the other.
#[derive(Clone, Debug)]
enum Round {
    /// Each rank puts alone.
    Alone(Vec<Vec<BoxPut>>),
    /// All ranks put together, each its own or nothing.
    Together(usize, Vec<Option<BoxPut>>),
    Sync,
    Redef,
    Reopen,
}

fn program(rng: &mut Rng, size: usize, n_vars: usize) -> Vec<Round> {
    let n = by(12, 40);
    (0..n)
        .map(|_| match rng.below(10) {
            0 => Round::Sync,
            1 => Round::Redef,
            2 => Round::Reopen,
            3 | 4 => {
                let var = rng.below(n_vars as u64) as usize;
                // Where puts of one call overlap, which counts is not decided by their ranks.
                let who = rng.below(size as u64) as usize;
                let put = BoxPut { var, ..random_put(rng, n_vars) };
                let of = |rank| (rank == who).then(|| put.clone());
                Round::Together(var, (0..size).map(of).collect())
            }
            _ => {
                let mut list = || {
                    let n = rng.below(4);
                    (0..n).map(|_| random_put(rng, n_vars)).collect()
                };
                Round::Alone((0..size).map(|_| list()).collect())
            }
        })
        .collect()
}

/// What the file has after the program, as its rules say.
fn expected(program: &[Round], n_vars: usize) -> Vec<Vec<i32>> {
    let mut model = vec![vec![FILL; ROWS * COLUMNS]; n_vars];
    // Puts of ranks that are not placed yet: those of the greater rank go over those of others.
    let mut kept: Vec<Vec<BoxPut>> = Vec::new();
    for round in program {
        if let Round::Alone(lists) = round {
            kept.resize(lists.len(), Vec::new());
            kept.iter_mut().zip(lists).for_each(|(kept, list)| kept.extend_from_slice(list));
            continue;
        }
        std::mem::take(&mut kept).iter().flatten().for_each(|put| put.onto(&mut model));
        if let Round::Together(_, puts) = round {
            puts.iter().flatten().for_each(|put| put.onto(&mut model));
        }
    }
    kept.iter().flatten().for_each(|put| put.onto(&mut model));
    model
}

/// `delay` decides how long ranks wait between their puts.
fn carry_out(
    team: &threads::Threads,
    path: &Path,
    (chunks, n_vars): (&[usize], usize),
    program: &[Round],
    delay: u64,
) {
    let mut file = created(team, path);
    let vars = define(&file, chunks, n_vars, true);
    let alone = |file: &Dataset| {
        vars[..n_vars].iter().for_each(|var| file.set_collective(*var, false).unwrap());
    };
    alone(&file);
    let (me, mut rng) = (team.rank(), Rng::new(delay + team.rank() as u64));
    // What this rank sees.
    let mut seen = vec![vec![FILL; ROWS * COLUMNS]; n_vars];
    for (number, round) in program.iter().enumerate() {
        match round {
            Round::Alone(lists) => {
                for put in &lists[me] {
                    if delay > 0 && rng.below(3) == 0 {
                        std::thread::yield_now();
                    }
                    put.put(&file, &vars).unwrap();
                    put.onto(&mut seen);
                    assert_eq!(get(&file, vars[put.var]), seen[put.var], "rank {me}, {number}");
                }
                continue;
            }
            Round::Together(var, puts) => {
                file.set_collective(vars[*var], true).unwrap();
                let nothing =
                    BoxPut { var: *var, start: [0; 2], count: [0; 2], stride: [1; 2], value: 0 };
                puts[me].as_ref().unwrap_or(&nothing).put(&file, &vars).unwrap();
                file.set_collective(vars[*var], false).unwrap();
            }
            Round::Sync => file.sync().unwrap(),
            Round::Redef => {
                file.redef().unwrap();
                file.enddef(Reserve::Default).unwrap();
            }
            Round::Reopen => {
                file.close().unwrap();
                file = opened(team, path);
            }
        }
        seen = expected(&program[..=number], n_vars);
        for (var, seen) in vars.iter().zip(&seen) {
            assert_eq!(&get(&file, *var), seen, "rank {me}, {number}: {round:?}");
        }
    }
    file.close().unwrap();
}

/// Programs of these seeds: by other ranks, after other waits, the bytes are the same, and the values what the rules say.
fn try_programs(seeds: std::ops::Range<u64>) {
    let folder = folder();
    let paths = [folder.path().join("one.nc"), folder.path().join("other.nc")];
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let size = [1, 2, 3, 5, 16][rng.below(5) as usize];
        let n_vars = 1 + rng.below(3) as usize;
        let chunks = [1 + rng.below(ROWS as u64) as usize, 1 + rng.below(COLUMNS as u64) as usize];
        let program = program(&mut rng, size, n_vars);
        for (delay, path) in paths.iter().enumerate() {
            threads::all(size, |team| {
                carry_out(team, path, (&chunks, n_vars), &program, delay as u64);
            });
        }
        let [one, other] = paths.each_ref().map(|path| std::fs::read(path).unwrap());
        assert!(one == other, "seed {seed}: {program:?}");
        let file = Dataset::open(&paths[0], &OpenOptions::default()).unwrap();
        for (var, expected) in expected(&program, n_vars).iter().enumerate() {
            assert_eq!(&get(&file, VarId(var as i32)), expected, "seed {seed}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

#[test]
fn random_programs_have_what_the_rules_say() {
    let only = std::env::var("ZONDA_SEED").ok().and_then(|text| text.parse::<u64>().ok());
    try_programs(only.map_or(0..by(30, 3000), |seed| seed..seed + 1));
}

/// What the next test runs with a limit of its own, as the limit is one of the process.
#[test]
#[ignore = "run by the next test"]
fn a_few_random_programs() {
    try_programs(100..100 + by(6, 200));
}

/// Where there is hardly any memory what ranks keep goes to a file, and where few chunks may wait they still keep all.
#[test]
fn with_little_memory_it_is_the_same() {
    for (name, limit) in [("ZONDA_MEMORY", "2000"), ("ZONDA_WRITE_CACHE", "300")] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "a_few_random_programs", "--ignored"]);
        let done = child.env(name, limit).output().unwrap();
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && text.contains("1 passed"), "{name}: {text}");
    }
}

/// Chunks that ranks put whole and once have the places that one process gives them.
#[test]
fn whole_chunks_are_the_bytes_of_one_process() {
    let folder = folder();
    let (alone, path) = (folder.path().join("alone.nc"), folder.path().join("ranks.nc"));
    let put = |file: &Dataset, vars: &[VarId], first: usize, n: usize| {
        let bytes: Vec<u8> = (first * COLUMNS..(first + n) * COLUMNS)
            .flat_map(|value| (value as i32).to_ne_bytes())
            .collect();
        let (start, count) = ([first, 0], [n, COLUMNS]);
        let slab = Hyperslab { start: &start, count: &count, stride: None };
        for var in vars {
            let done = file.put(*var, &slab, Some(MemType::I32), &bytes).unwrap();
            assert_eq!(done.out_of_range, 0);
        }
    };
    for chunks in [[4, 18], [2, 7], [1, 1]] {
        let options = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
        let file = Dataset::create(&alone, &options).unwrap();
        let vars = define(&file, &chunks, 3, false);
        put(&file, &vars, 0, ROWS);
        file.close().unwrap();
        for size in [1, 2, 3, 6] {
            threads::all(size, |team| {
                let file = created(team, &path);
                let vars = define(&file, &chunks, 3, false);
                vars.iter().for_each(|var| file.set_collective(*var, false).unwrap());
                let each = ROWS / size;
                put(&file, &vars, each * team.rank(), each);
                file.close().unwrap();
            });
            let [one, other] = [&alone, &path].map(|path| std::fs::read(path).unwrap());
            assert!(one == other, "{chunks:?}, {size} ranks");
        }
    }
}

/// A commit that failed took places, which the next one takes again: the file is as long as without the error.
#[test]
fn what_could_not_be_written_takes_no_more_room_the_next_time() {
    let folder = folder();
    let path = folder.path().join("ranks.nc");
    let run = |bad: usize, nth: usize| {
        let codes = threads::all(3, |team| {
            let io =
                (team.rank() == bad && nth > 0).then(|| format!("fault:write:{nth}:enospc,file"));
            let shared: Arc<dyn Team> = Arc::new(team.clone());
            let format = Format::NetCdf4;
            let options =
                CreateOptions { format, independent_filters: true, io, ..CreateOptions::default() };
            let file = Dataset::create_parallel(shared, &path, &options).unwrap();
            let vars = define(&file, &[2, 9], 1, false);
            file.set_collective(vars[0], false).unwrap();
            let bytes: Vec<u8> =
                (0..ROWS * COLUMNS * 4).map(|at| ((at * 7919) >> 3) as u8).collect();
            let slab = Hyperslab { start: &[0, 0], count: &[ROWS, COLUMNS], stride: None };
            let _ = file.put(vars[0], &slab, Some(MemType::I32), &bytes).unwrap();
            let mut code = file.sync().err().map(|error| error.code());
            if code.is_some() {
                file.sync().unwrap();
            }
            code = code.or(file.close().err().map(|error| error.code()));
            code
        });
        assert!(codes.iter().all(|code| *code == codes[0]), "{nth}: {codes:?}");
        (codes[0].is_some(), std::fs::read(&path).unwrap())
    };
    let (_, expected) = run(1, 0);
    let mut n_failed = 0;
    for bad in 1..3 {
        for nth in 1..100 {
            let (has_failed, bytes) = run(bad, nth);
            if !has_failed {
                break;
            }
            n_failed += 1;
            assert_eq!(bytes.len(), expected.len(), "write {nth} of rank {bad}");
        }
    }
    assert!(n_failed >= 2, "{n_failed}");
}

/// Errors are told at once, and are those of the rank.
#[test]
fn errors_are_told_at_once() {
    let folder = folder();
    let path = folder.path().join("ranks.nc");
    threads::all(3, |team| {
        let file = created(team, &path);
        let time = file.def_dim(b"time", 0).unwrap();
        let growing = file.def_var(b"growing", 1, &[time.0]).unwrap();
        file.def_var_deflate(growing.into(), false, Some(1)).unwrap();
        file.enddef(Reserve::Default).unwrap();
        let put = |start: usize, value: i32| {
            let slab = Hyperslab { start: &[start], count: &[1], stride: None };
            file.put(growing, &slab, Some(MemType::I32), &value.to_ne_bytes())
        };
        // Together it grows.
        assert_eq!(put(team.rank(), 5).unwrap().out_of_range, 0);
        file.set_collective(growing, false).unwrap();
        if team.rank() == 1 {
            assert_eq!(put(3, 7).unwrap_err().code(), NcError::CantExtend);
            assert_eq!(put(0, 300).unwrap().out_of_range, 1);
            assert_eq!(put(2, 9).unwrap().out_of_range, 0);
            let mut out = [0; 12];
            let slab = Hyperslab { start: &[0], count: &[3], stride: None };
            let done = file.get(growing, &slab, Some(MemType::I32), &mut out).unwrap();
            assert_eq!(done.out_of_range, 0);
            assert_eq!(i32::from_ne_bytes([out[8], out[9], out[10], out[11]]), 9);
        }
        // An abort in data mode is a close.
        file.abort().unwrap();
    });
    let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
    let mut out = [0; 12];
    let slab = Hyperslab { start: &[0], count: &[3], stride: None };
    let done = file.get(VarId(0), &slab, Some(MemType::I32), &mut out).unwrap();
    assert_eq!(done.out_of_range, 0);
    assert_eq!(out[4..], [5_i32.to_ne_bytes(), 9_i32.to_ne_bytes()].concat());
}

/// A rank that is told something else is an error on all.
#[test]
fn all_ranks_ask_for_it() {
    let folder = folder();
    let path = folder.path().join("ranks.nc");
    threads::all(2, |team| {
        let independent_filters = team.rank() == 1;
        let options = CreateOptions {
            format: Format::NetCdf4,
            independent_filters,
            ..CreateOptions::default()
        };
        let team: Arc<dyn Team> = Arc::new(team.clone());
        let error = Dataset::create_parallel(team, &path, &options).unwrap_err();
        assert_eq!(error.code(), NcError::Mpi);
        assert!(error.to_string().contains("zonda_independent_filters"), "{error}");
    });
}

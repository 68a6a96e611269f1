//! Puts whose short runs go by way of owners of stripes: the bytes are those of runs that each rank writes by itself, for any boxes, and no rank has
//! an error alone.

use std::path::Path;
use std::sync::Arc;

use zonda::team::threads::{End, Fault, Moment, Options, Trouble};
use zonda::team::{Kind, Team, threads};
use zonda::{
    CreateOptions, Dataset, FillMode, Format, Gathering, Hints, Hyperslab, MemType, NcError,
    Reserve, Result, StorageRequest, VarId,
};
use zonda_testkit::{Rng, by};

const FORMATS: [Format; 4] = [Format::Cdf1, Format::Cdf2, Format::Cdf5, Format::NetCdf4];
const WAYS: [Gathering; 3] = [Gathering::Disable, Gathering::Automatic, Gathering::Enable];

fn created(
    team: &threads::Threads,
    path: &Path,
    format: Format,
    (way, io): (Gathering, Option<String>),
) -> Result<Dataset> {
    let team: Arc<dyn Team> = Arc::new(team.clone());
    let hints = Hints { cb_write: Some(way), ..Hints::default() };
    let options = CreateOptions { format, hints, io, ..CreateOptions::default() };
    Dataset::create_parallel(team, path, &options)
}

/// A variable of `rows` times `columns`, along records if they can grow, and its file.
fn table(file: &Dataset, how: (bool, Option<[usize; 2]>), shape: [usize; 2]) -> VarId {
    table_or(file, how, shape).unwrap()
}

/// The same; `None` where definitions do not end.
fn table_or(
    file: &Dataset,
    (is_growing, chunk): (bool, Option<[usize; 2]>),
    [rows, columns]: [usize; 2],
) -> Option<VarId> {
    let y = file.def_dim(b"y", if is_growing { 0 } else { rows }).unwrap();
    let x = file.def_dim(b"x", columns).unwrap();
    // Between its records are those of another variable.
    let beside = file.def_var(b"beside", 3, &[y.0]).unwrap();
    let var = file.def_var(b"v", 4, &[y.0, x.0]).unwrap();
    if let Some(chunk) = chunk.filter(|_| file.is_hdf5()) {
        file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(&chunk)).unwrap();
    }
    file.enddef(Reserve::Default).ok()?;
    file.set_collective(var, true).unwrap();
    file.set_collective(beside, true).unwrap();
    Some(var)
}

/// What element `at` of a put is.
fn value(seed: i32, at: [usize; 2]) -> i32 {
    seed ^ (at[0] as i32).wrapping_mul(1_000_003) ^ (at[1] as i32).wrapping_mul(7919)
}

fn put(
    file: &Dataset,
    var: VarId,
    seed: i32,
    [start, count, stride]: [[usize; 2]; 3],
) -> Result<()> {
    let mut bytes = Vec::new();
    for y in 0..count[0] {
        for x in 0..count[1] {
            let at = [start[0] + y * stride[0], start[1] + x * stride[1]];
            bytes.extend_from_slice(&value(seed, at).to_ne_bytes());
        }
    }
    let stride = stride.map(|n| isize::try_from(n).unwrap());
    let slab = Hyperslab { start: &start, count: &count, stride: Some(&stride) };
    file.put(var, &slab, Some(MemType::I32), &bytes).map(drop)
}

/// A number from the first to the second less one.
fn between(rng: &mut Rng, first: usize, end: usize) -> usize {
    first + rng.below((end - first) as u64) as usize
}

/// How much of each file the ranks exchanged: bytes.
fn exchanged(team: &threads::Threads) -> u64 {
    team.traffic().of(Kind::Exchange).bytes
}

fn life(team: &threads::Threads, path: &Path, format: Format, way: Gathering, seed: u64) {
    let mut rng = Rng::new(seed);
    let (n, me) = (team.size(), team.rank());
    let shape = [between(&mut rng, 64, 300), between(&mut rng, n, 40 * n + 1)];
    let chunk = [between(&mut rng, 1, 80), between(&mut rng, 1, shape[1] + 1)];
    let kind = (rng.below(2) == 0, (rng.below(3) > 0).then_some(chunk));
    let file = created(team, path, format, (way, None)).unwrap();
    if rng.below(2) == 0 {
        file.set_fill(FillMode::Fill).unwrap();
    }
    let var = table(&file, kind, shape);
    for step in 0..3 {
        // Columns, of which some are of nobody; or rows of which each rank has each n-th.
        let rows = [rng.below(20) as usize, between(&mut rng, 64, shape[0] + 1)];
        let count = rows[1] - rows[0].min(rows[1] - 1);
        let at = rows[1] - count;
        let (first, last) = (shape[1] * me / n, shape[1] * (me + 1) / n);
        let used = (last - first).saturating_sub(rng.below(2) as usize);
        let part = if rng.below(4) > 0 {
            [[at, first], [count, used], [1, 1]]
        } else {
            let of_rank = (count + n - 1 - me) / n;
            [[at + if of_rank == 0 { 0 } else { me }, 0], [of_rank, shape[1].div_ceil(2)], [n, 2]]
        };
        put(&file, var, step, part).unwrap();
    }
    file.close().unwrap();
}

#[test]
fn bytes_are_those_of_runs_that_each_rank_writes() {
    let mut n_exchanged = 0;
    for seed in 0..by(12_u64, 200) {
        for format in FORMATS {
            let n = [1, 2, 3, 5, 8, 16][seed as usize % 6];
            let folder = tempfile::tempdir().unwrap();
            let files = WAYS.map(|way| {
                let path = folder.path().join("file.nc");
                let sent = threads::all(n, |team| {
                    life(team, &path, format, way, seed);
                    exchanged(team)
                });
                if way == Gathering::Disable {
                    assert_eq!(sent.iter().sum::<u64>(), 0);
                } else {
                    n_exchanged += usize::from(sent.iter().sum::<u64>() > 0);
                }
                std::fs::read(&path).unwrap()
            });
            assert!(files[0] == files[1], "automatic, seed {seed}, {n} ranks, {format:?}");
            assert!(files[0] == files[2], "enable, seed {seed}, {n} ranks, {format:?}");
        }
    }
    assert!(n_exchanged > 20, "{n_exchanged}");
}

#[test]
fn large_puts_go_in_rounds_and_overlapping_ones_are_those_of_the_last_rank() {
    // More than a round takes: 20 MB by each of 4 ranks.
    let (n, shape) = (4, [5000, 4096]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.nc");
    let _ = threads::all(n, |team| {
        let way = (Gathering::Automatic, None);
        let file = created(team, &path, Format::Cdf5, way).unwrap();
        let var = table(&file, (true, None), shape);
        let (first, each) = (team.rank() * 1024, 1024);
        let before = team.traffic();
        // All ranks put the last columns, too, but in another put.
        put(&file, var, 3, [[0, first], [shape[0], each], [1, 1]]).unwrap();
        let sent = team.traffic().since(&before);
        assert!(sent.of(Kind::Exchange).steps > 1);
        put(&file, var, team.rank() as i32, [[0, 4000], [100, 96], [1, 1]]).unwrap();
        file.close().unwrap();
    });
    let options = zonda::OpenOptions::default();
    let file = Dataset::open(&path, &options).unwrap();
    let mut bytes = vec![0; shape[0] * shape[1] * 4];
    let slab = Hyperslab { start: &[0, 0], count: &shape, stride: None };
    let var = file.meta(|meta| meta.find_var(b"v")).unwrap();
    let _ = file.get(var, &slab, Some(MemType::I32), &mut bytes).unwrap();
    for (at, bytes) in bytes.as_chunks().0.iter().enumerate() {
        let at = [at / shape[1], at % shape[1]];
        let seed = if at[0] < 100 && (4000..4096).contains(&at[1]) { n as i32 - 1 } else { 3 };
        assert_eq!(i32::from_ne_bytes(*bytes), value(seed, at), "{at:?}");
    }
}

#[test]
fn messages_besides_the_data_grow_with_the_logarithm_of_the_ranks() {
    for n in [16, 64, 256] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.nc");
        let all = |team: &threads::Threads| {
            let file = created(team, &path, Format::Cdf5, (WAYS[1], None)).unwrap();
            let var = table(&file, (true, None), [128, 4 * n]);
            let before = team.traffic();
            put(&file, var, 1, [[0, 4 * team.rank()], [128, 4], [1, 1]]).unwrap();
            let sent = team.traffic().since(&before);
            file.close().unwrap();
            sent
        };
        let on_nodes = Options { n_on_node: 16, ..Options::default() };
        let ends = threads::run(n, &on_nodes, all);
        let log = u64::from(n.ilog2());
        for end in ends {
            let sent = end.returned().unwrap();
            assert_eq!(sent.of(Kind::Exchange).steps, 1);
            assert_eq!(sent.of(Kind::Reduce).steps, 2);
            // The record is in one stripe or two; the data are in 128 rows of 4 * n elements.
            let owners = 2 + (128 * 4 * 4 * n as u64) / (1 << 20);
            let messages = sent.total().messages;
            assert!(messages <= 5 * log + owners, "{n} ranks: {messages}");
        }
    }
}

/// A rank writes nothing of its own; each write of one fails in turn. Says how many of its writes failed.
fn with_failing_writes(format: Format, bad: usize) -> usize {
    let mut n_failed = 0_usize;
    for nth in 1..40 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.nc");
        let codes = threads::all(3, |team| {
            let io = (team.rank() == bad).then(|| format!("fault:write:{nth}:enospc,file"));
            let file = created(team, &path, format, (WAYS[2], io)).ok()?;
            let var = table_or(&file, (false, None), [300, 3000])?;
            let done = put(&file, var, 1, [[0, 1000 * team.rank()], [300, 1000], [1, 1]]);
            let code = done.err().map(|error| error.code());
            let _ = file.close();
            Some(code)
        });
        assert!(codes.iter().all(|code| *code == codes[0]), "{format:?}, {bad}, {nth}: {codes:?}");
        match codes[0] {
            // Before the put.
            None => {}
            Some(Some(_)) => n_failed += 1,
            Some(None) => break,
        }
    }
    n_failed
}

#[test]
fn a_write_of_an_owner_that_fails_is_the_error_of_all() {
    for format in [Format::Cdf5, Format::NetCdf4] {
        // Each of three ranks owns stripes.
        for bad in 0..3 {
            assert!(with_failing_writes(format, bad) > 0, "{format:?}, {bad}");
        }
    }
}

#[test]
fn a_rank_without_memory_for_what_others_send_is_the_error_of_all_and_the_file_goes_on() {
    let run = |faults: Vec<Fault>| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.nc");
        let options = Options { faults, ..Options::default() };
        let ends = threads::run(3, &options, |team| {
            let file = created(team, &path, Format::Cdf5, (WAYS[1], None)).unwrap();
            let var = table(&file, (true, None), [128, 30]);
            let part = [[0, 10 * team.rank()], [128, 10], [1, 1]];
            let before = team.traffic().total().steps;
            let first = put(&file, var, 1, part).err().map(|error| error.code());
            let after = team.traffic().total().steps;
            put(&file, var, 1, part).unwrap();
            file.close().unwrap();
            (first, before, after)
        });
        let codes: Vec<_> = ends.into_iter().map(|end| end.returned().unwrap()).collect();
        (codes, std::fs::read(&path).unwrap())
    };
    let (codes, expected) = run(Vec::new());
    let (None, before, after) = codes[1] else { panic!("{codes:?}") };
    let mut n_refused = 0;
    for rank in 0..3 {
        for step in before..after {
            let fault = Fault { rank, before: Moment::Step(step), what: Trouble::NoMemory };
            let (codes, bytes) = run(vec![fault]);
            assert!(codes.iter().all(|of| of.0 == codes[0].0), "{rank}, {step}: {codes:?}");
            assert!(codes[0].0.is_none_or(|code| code == NcError::NoMem), "{codes:?}");
            n_refused += usize::from(codes[0].0.is_some());
            assert!(bytes == expected, "{rank}, {step}");
        }
    }
    // There is one exchange.
    assert_eq!(n_refused, 3);
}

#[test]
fn hints_that_are_absurd_cost_neither_bytes_nor_rounds() {
    let absurd = [
        Hints { striping_unit: Some(1), cb_buffer_size: Some(1), ..Hints::default() },
        Hints { striping_unit: Some(1 << 30), cb_nodes: Some(1 << 24), ..Hints::default() },
        Hints { striping_unit: Some(4099), cb_nodes: Some(2), ..Hints::default() },
        Hints { cb_buffer_size: Some(1 << 30), cb_nodes: Some(1), ..Hints::default() },
    ];
    let shape = [300, 1000];
    let run = |hints: Hints| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.nc");
        let steps = threads::all(4, |team| {
            let shared: Arc<dyn Team> = Arc::new(team.clone());
            let options = CreateOptions { format: Format::Cdf5, hints, ..CreateOptions::default() };
            let file = Dataset::create_parallel(shared, &path, &options).unwrap();
            let var = table(&file, (false, None), shape);
            let before = team.traffic();
            put(&file, var, 5, [[0, 250 * team.rank()], [300, 250], [1, 1]]).unwrap();
            let sent = team.traffic().since(&before);
            file.close().unwrap();
            (sent.of(Kind::Exchange).steps, sent.of(Kind::Exchange).bytes)
        });
        (std::fs::read(&path).unwrap(), steps)
    };
    let disable = Hints { cb_write: Some(Gathering::Disable), ..Hints::default() };
    let (expected, none) = run(disable);
    assert!(none.iter().all(|sent| *sent == (0, 0)));
    for hints in absurd {
        let hints = Hints { cb_write: Some(Gathering::Enable), ..hints };
        let (bytes, sent) = run(hints);
        assert!(bytes == expected, "{hints:?}");
        for (steps, bytes) in sent {
            // 300 kB of this rank in rounds of 64 KiB at least, with heads.
            assert!((1..=8).contains(&steps), "{hints:?}: {steps}");
            assert!(bytes < 400_000, "{hints:?}: {bytes}");
        }
    }
}

#[test]
fn a_rank_that_is_lost_in_the_exchange_ends_the_put_of_all() {
    let run = |faults: Vec<Fault>| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.nc");
        let timeout = Some(std::time::Duration::from_millis(500));
        let options = Options { faults, timeout, ..Options::default() };
        threads::run(3, &options, |team| {
            let made = created(team, &path, Format::Cdf5, (WAYS[1], None));
            let Ok(file) = made else { return None };
            let var = table(&file, (true, None), [128, 30]);
            let before = team.traffic().total();
            let done = put(&file, var, 1, [[0, 10 * team.rank()], [128, 10], [1, 1]]);
            let after = team.traffic().total();
            let _ = file.close();
            Some((done.is_ok(), before.steps, after.steps))
        })
    };
    let ends = run(Vec::new());
    let End::Returned(Some((true, before, after))) = ends[1].end else { panic!("{ends:?}") };
    for step in before..after {
        let fault = Fault { rank: 1, before: Moment::Step(step), what: Trouble::Death };
        for (rank, end) in run(vec![fault]).into_iter().enumerate().filter(|(rank, _)| *rank != 1) {
            let put = end.returned().flatten();
            assert!(matches!(put, Some((false, ..))), "{rank}, {step}: {put:?}");
        }
    }
}

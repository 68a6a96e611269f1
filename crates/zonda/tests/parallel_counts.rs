//! What parallel files cost with many ranks: a file is read once, whatever the number of ranks, and the messages of a rank grow with its
//! logarithm. The numbers are those of simulated teams, message by message; `docs/dev/parallel.md` has them.
//!
//! 1,024 ranks are for `ZONDA_LONG=1`. `cargo test --test parallel_counts -- --nocapture` shows the table.

use std::path::Path;
use std::sync::Arc;

use zonda::team::{Kind, Team, Traffic, threads};
use zonda::{
    CreateOptions, Dataset, Format, Hyperslab, MemType, OpenOptions, Reserve, StorageRequest, VarId,
};

const N_VARS: usize = 100;
/// Elements of a rank.
const EACH: usize = 4;

/// A call that all ranks make, and the bound of the messages that one rank sends in it: `a + b * log2(n)`.
struct Call {
    name: &'static str,
    a: u64,
    b: u64,
}

/// In their order in a life. A reduction or a broadcast is at most one message of a rank for each doubling of the ranks, where their
/// number is a power of two.
const CALLS: [Call; 6] = [
    Call { name: "enddef", a: 0, b: 6 },
    Call { name: "a put that grows nothing", a: 0, b: 2 },
    Call { name: "a put that grows", a: 0, b: 3 },
    Call { name: "sync", a: 0, b: 3 },
    Call { name: "close", a: 0, b: 3 },
    Call { name: "open", a: 0, b: 5 },
];

/// What a rank sent in each of the calls.
struct Life {
    sent: [Traffic; CALLS.len()],
}

/// A storage that writes a line into `log` for each operation.
fn logged(log: &Path) -> Option<String> {
    Some(format!("event:{},file", log.display()))
}

/// Where the storage of a rank says what it is asked, while the rank reads the file.
fn log_of(folder: &Path, rank: usize) -> std::path::PathBuf {
    folder.join(format!("{rank}.log"))
}

/// Reads in a log of the layer `event`.
fn reads(log: &Path) -> usize {
    let text = std::fs::read_to_string(log).unwrap();
    let operations = text.lines().filter(|line| !line.starts_with('#'));
    operations
        .filter(|line| line.split_whitespace().any(|word| matches!(word, "read" | "readv")))
        .count()
}

fn put(file: &Dataset, var: VarId, start: &[usize], count: &[usize]) {
    let bytes = vec![7; count.iter().product::<usize>() * 4];
    let slab = Hyperslab { start, count, stride: None };
    let done = file.put(var, &slab, Some(MemType::I32), &bytes).unwrap();
    assert_eq!(done.out_of_range, 0);
}

fn live(team: &threads::Threads, folder: &Path, format: Format) -> Life {
    let path = folder.join("file.nc");
    let (rank, n) = (team.rank(), team.size());
    let mut sent = [Traffic::default(); CALLS.len()];
    let mut calls = sent.iter_mut();
    let mut counted = |work: &mut dyn FnMut()| {
        let before = team.traffic();
        work();
        *calls.next().unwrap() = team.traffic().since(&before);
    };
    let of_team = || -> Arc<dyn Team> { Arc::new(team.clone()) };

    let options = CreateOptions { format, ..CreateOptions::default() };
    let file = Dataset::create_parallel(of_team(), &path, &options).unwrap();
    let time = file.def_dim(b"time", 0).unwrap();
    let x = file.def_dim(b"x", EACH * n).unwrap();
    let fixed = file.def_var(b"fixed", 4, &[x.0]).unwrap();
    let growing = file.def_var(b"growing", 4, &[time.0, x.0]).unwrap();
    if file.is_hdf5() {
        let chunk = [1, EACH * n];
        file.def_var_chunking(growing.into(), StorageRequest::Chunked, Some(&chunk)).unwrap();
    }
    for at in 2..N_VARS {
        let _ = file.def_var(format!("variable{at}").as_bytes(), 5, &[x.0]).unwrap();
    }
    counted(&mut || file.enddef(Reserve::Default).unwrap());
    file.set_collective(fixed, true).unwrap();
    file.set_collective(growing, true).unwrap();
    counted(&mut || put(&file, fixed, &[EACH * rank], &[EACH]));
    counted(&mut || put(&file, growing, &[0, EACH * rank], &[1, EACH]));
    counted(&mut || file.sync().unwrap());
    let mut file = Some(file);
    counted(&mut || file.take().unwrap().close().unwrap());

    let log = log_of(folder, rank);
    let options = OpenOptions { io: logged(&log), ..OpenOptions::default() };
    let mut opened = None;
    counted(&mut || opened = Some(Dataset::open_parallel(of_team(), &path, &options).unwrap()));
    let opened = opened.unwrap();
    // What there is was read for all ranks.
    assert_eq!(opened.meta(|meta| meta.n_vars()), N_VARS);
    opened.close().unwrap();
    Life { sent }
}

/// How often one process reads to open the file by itself, and to know what is in it.
fn reads_of_one_process(folder: &Path) -> usize {
    let log = folder.join("serial.log");
    let options = OpenOptions { io: logged(&log), ..OpenOptions::default() };
    let file = Dataset::open(&folder.join("file.nc"), &options).unwrap();
    assert_eq!(file.meta(|meta| meta.n_vars()), N_VARS);
    file.close().unwrap();
    // The log is written when the layer goes.
    drop(file);
    reads(&log)
}

#[test]
fn a_file_is_read_once_and_messages_grow_with_the_logarithm_of_the_ranks() {
    let is_long = std::env::var_os("ZONDA_LONG").is_some();
    let most = if is_long { 1024 } else { 256 };
    eprintln!(
        "| Format | Call | Ranks | Reductions | Broadcasts | Messages of a rank, at most | Bytes of a rank, at most |"
    );
    eprintln!("|---|---|--:|--:|--:|--:|--:|");
    for format in [Format::Cdf5, Format::NetCdf4] {
        let counts = [16, 64, 256, 1024].into_iter().filter(|&n| n <= most);
        for n in counts {
            let folder = tempfile::tempdir().unwrap();
            let lives = threads::all(n, |team| live(team, folder.path(), format));
            let serial = reads_of_one_process(folder.path());
            assert!(serial > 0);
            let n_reads: usize = (0..n).map(|rank| reads(&log_of(folder.path(), rank))).sum();
            // A netCDF-4 file in a team does not keep what it read of its beginning.
            let again = if format.is_hdf5() { 2 } else { 0 };
            let expected = serial..=serial + again;
            assert!(
                expected.contains(&n_reads),
                "{n} ranks, {format:?}: {n_reads}, not {expected:?}"
            );
            for (at, Call { name, a, b }) in CALLS.iter().enumerate() {
                let most = |which: fn(&Traffic) -> u64| {
                    lives.iter().map(|life| which(&life.sent[at])).max().unwrap()
                };
                let messages = most(|sent| sent.total().messages);
                let bytes = most(|sent| sent.total().bytes);
                let reductions = most(|sent| sent.of(Kind::Reduce).steps);
                let broadcasts = most(|sent| sent.of(Kind::Broadcast).steps);
                eprintln!(
                    "| {format:?} | {name} | {n} | {reductions} | {broadcasts} | {messages} | {bytes} |"
                );
                // Every step is one of these: nothing goes from all ranks to one.
                let all = most(|sent| sent.total().steps);
                assert_eq!(all, reductions + broadcasts, "{name}, {n} ranks, {format:?}");
                let bound = a + b * u64::from(n.ilog2());
                assert!(
                    messages <= bound,
                    "{name}, {n} ranks, {format:?}: {messages} messages, and not {bound}"
                );
            }
        }
    }
}

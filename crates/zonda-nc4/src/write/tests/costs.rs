//! What commits cost.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use zonda_format::{DispatchWrite as _, Reserve};

use zonda_model::{MemType, VarId};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;
use zonda_storage::layer::{Count, Log, LogEntry};

use super::{create, def_dim, def_var};
use crate::model::GroupId;
use crate::write::testing::{of, put_data, put_text};
use crate::{Nc4File, Nc4OpenOptions};

const ROOT: GroupId = GroupId::ROOT;

fn put(file: &mut Nc4File, var: VarId, start: &[usize], count: &[usize], data: &[u8]) {
    put_data(file, var, (start, count), MemType::I32, data);
}

/// Nanoseconds that this thread was running, whatever else the machine does.
fn cpu_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

fn time<T>(what: &str, n: u32, work: impl FnOnce() -> T) -> T {
    let (start, cpu) = (Instant::now(), cpu_time());
    let out = work();
    let each = (cpu_time() - cpu) / u64::from(n);
    let elapsed = start.elapsed().as_nanos() / u128::from(n);
    eprintln!("{what}: {each} ns each of {n}, {elapsed} by the clock");
    out
}

/// Zeros between the headers of a new file, so that they are one run: a system call each would be half of what the file costs.
#[test]
fn a_small_new_file_is_two_runs_of_bytes() {
    let log = Log::new(Memory::new()).unwrap();
    let handle = log.handle();
    let mut file = create(Arc::new(log));
    let dims = ["x", "y", "z"].map(|name| def_dim(&mut file, ROOT, name, 3));
    for n in 0..10 {
        let var = def_var(&mut file, ROOT, &format!("var_{n}"), &dims);
        put_text(&mut file, of(var), "units", &"m".repeat(1 + 7 * n)).unwrap();
    }
    file.enddef(Reserve::Default).unwrap();
    file.close().unwrap();
    // The cache above puts together what is written between two barriers.
    let mut runs = Vec::new();
    for stretch in
        handle.entries().split(|entry| matches!(entry, LogEntry::Barrier | LogEntry::Sync))
    {
        let range = |entry: &LogEntry| match entry {
            LogEntry::Write { at, data } => (*at, at + data.len() as u64),
            _ => panic!("no call says the length"),
        };
        let mut ranges: Vec<_> = stretch.iter().map(range).collect();
        ranges.sort_unstable();
        let mut end = None;
        for (at, behind) in ranges {
            if end.replace(behind) != Some(at) {
                runs.push(at);
            }
        }
    }
    assert_eq!(runs, [48, 0], "all but the superblock, and that");
}

/// What the walk asks of the storage follows from the length of the headers, not from their number.
#[test]
fn a_walk_reads_headers_in_rows() {
    let memory = Arc::new(Memory::new());
    let mut file = create(Arc::clone(&memory) as Arc<dyn Storage>);
    let x = def_dim(&mut file, ROOT, "x", 3);
    for n in 0..2000 {
        let var = def_var(&mut file, ROOT, &format!("var_{n}"), &[x]);
        put_text(&mut file, of(var), "units", "m").unwrap();
    }
    file.close().unwrap();
    let bytes = memory.len().unwrap();
    let count = Count::new(memory as Arc<dyn Storage>);
    let counts = count.handle();
    let how = Nc4OpenOptions::default();
    let file = Nc4File::open_for_reading(Arc::new(count), Path::new("test.nc"), how).unwrap();
    assert_eq!(file.model().unwrap().group(ROOT).unwrap().vars.len(), 2000);
    let reads = counts.counts().read;
    assert!(reads.bytes <= 2 * bytes, "{} of {bytes}", reads.bytes);
    assert!(reads.calls <= 40 + bytes / 4096, "{} for {bytes} bytes", reads.calls);
}

#[test]
#[ignore = "a measurement: run in release, with --nocapture"]
fn many_variables() {
    let n = 10_000;
    let memory: Arc<dyn Storage> = Arc::new(Memory::new());
    let mut file = create(Arc::clone(&memory));
    let t = def_dim(&mut file, ROOT, "t", 0);
    let x = def_dim(&mut file, ROOT, "x", 100);
    let vars: Vec<_> = time("define", n, || {
        (0..n).map(|i| def_var(&mut file, ROOT, &format!("var_{i}"), &[t, x])).collect()
    });
    time("attributes", 4 * n, || {
        for (var, name) in vars.iter().flat_map(|var| ["a", "b", "c", "d"].map(|name| (var, name)))
        {
            put_text(&mut file, of(*var), name, "some text").unwrap();
        }
    });
    time("enddef", n, || file.enddef(Reserve::Default).unwrap());
    eprintln!("{} bytes each", memory.len().unwrap() / u64::from(n));
    let data = [7; 400];
    time("first puts", n, || {
        vars.iter().for_each(|var| put(&mut file, *var, &[0, 0], &[1, 100], &data))
    });
    time("sync", n, || file.sync().unwrap());
    time("second puts", n, || {
        vars.iter().for_each(|var| put(&mut file, *var, &[1, 0], &[1, 100], &data))
    });
    time("sync", n, || file.sync().unwrap());
    put(&mut file, vars[77], &[2, 0], &[1, 100], &data);
    time("sync of one variable", 1, || file.sync().unwrap());
    time("sync of nothing", 1, || file.sync().unwrap());
    time("close", n, || file.close().unwrap());
    let name = Path::new("test.nc");
    let open =
        || Nc4File::open_for_writing(Arc::clone(&memory), name, Nc4OpenOptions::default()).unwrap();
    let mut file = time("open for writing", n, open);
    put(&mut file, vars[77], &[3, 0], &[1, 100], &data);
    time("sync of one variable", 1, || file.sync().unwrap());
    def_var(&mut file, ROOT, "new", &[t, x]);
    time("sync of a new variable", n, || file.sync().unwrap());
    def_var(&mut file, ROOT, "newer", &[t, x]);
    time("sync of a new variable", n, || file.sync().unwrap());
}

#[test]
#[ignore = "a measurement: run in release, with --nocapture"]
fn many_syncs() {
    let n = 2_000;
    let memory: Arc<dyn Storage> = Arc::new(Memory::new());
    let mut file = create(Arc::clone(&memory));
    let t = def_dim(&mut file, ROOT, "t", 0);
    let x = def_dim(&mut file, ROOT, "x", 100);
    let vars: Vec<_> =
        (0..10).map(|i| def_var(&mut file, ROOT, &format!("var_{i}"), &[t, x])).collect();
    file.enddef(Reserve::Default).unwrap();
    let data = [7; 400];
    time("record of 10 variables and sync", n, || {
        for record in 0..usize::try_from(n).unwrap() {
            vars.iter().for_each(|var| put(&mut file, *var, &[record, 0], &[1, 100], &data));
            file.sync().unwrap();
        }
    });
    eprintln!("{} bytes for {} of data", memory.len().unwrap(), n * 4000);
}

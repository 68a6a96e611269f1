//! Is the default stack ever a bad choice? By the calls and bytes that come down, as a device of
//! 500 MB/s with 100 us a call would charge them, so that what else the machine does changes nothing.
//! `make stacks` measures the same families in time, through the whole library.

use std::sync::Arc;
use zonda_storage::backend::Memory;
use zonda_storage::{Advice, Handles, ReadRange, Spec, Storage, StorageError, WriteRange};
use zonda_testkit::Rng;

const SIZE: u64 = 8 << 20;
/// What the default may take, of the best stack's time.
const MOST: f64 = 1.15;
/// The same for single elements. In any order: a page is read in part first, as long as nobody knows that
/// there will be as many of them as there is room for. In order: they take so long to put that the thread
/// of the default has nothing to do meanwhile and writes what is complete, however little.
const MOST_SINGLE: f64 = 1.25;
/// What the default may take besides, in calls: on a busy machine its thread comes late to a page now and then, and
/// the request fetches it.
const LATE_CALLS: f64 = 3.0;
/// What the device takes for a call, in milliseconds.
const CALL: f64 = 0.1;
/// Other stacks, and the device under them.
const STACKS: [&str; 9] = [
    "count",
    "cache:1:8,count",
    "cache:16:512,count",
    "cache:64:128,count",
    "cache:256:64,count",
    "bufa:336:2,count",
    "cachea:64:128:4,count",
    "cache:29:141,eie.sds:4096:4:1,count",
    "direct,count",
];
/// The default, which has to find out that it is slow.
const DEFAULT: &str = "cache,count,throttle:500M:100us";

/// One request: its ranges.
type Request = Vec<(u64, u64)>;

/// The requests of one family, and what a format would say of its file.
struct Family {
    name: &'static str,
    advice: Advice,
    requests: Vec<Request>,
}

/// `count` rows of `len` bytes, each `stride` after the one before.
fn rows(at: u64, count: u64, len: u64, stride: u64) -> Request {
    (0..count).map(|i| (at + i * stride, len)).collect()
}

/// The numbers below `n` in an order that is always the same.
fn shuffled(n: u64, rng: &mut Rng) -> Vec<u64> {
    let mut order: Vec<u64> = (0..n).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, rng.below(i as u64 + 1) as usize);
    }
    order
}

/// The families of `bench/engines/families.c` that differ in what they ask of a storage.
fn families(writing: bool) -> Vec<Family> {
    let plain = Advice { record_bytes: 0, n_record_parts: 0, file_bytes: SIZE };
    let records = |record_bytes, n_record_parts| Advice { record_bytes, n_record_parts, ..plain };
    let mut rng = Rng::new(1);
    let family = |name, advice, requests| Family { name, advice, requests };
    let in_order = (0..SIZE).step_by(16 << 10).map(|at| vec![(at, 16 << 10)]).collect();
    let (levels, latitudes, circle, vars) = (8, 32, 512, 16);
    let field = levels * latitudes * circle;
    let mut slices = Vec::new();
    for record in 0..SIZE / (vars * field) {
        for latitude in shuffled(latitudes, &mut rng) {
            for var in 0..vars {
                let at = (record * vars + var) * field + latitude * circle;
                slices.push(rows(at, levels, circle, latitudes * circle));
            }
        }
    }
    let tile = |i: u64| rows(i / 16 * 16 * 8192 + i % 16 * 512, 16, 512, 8192);
    let tiles = shuffled(SIZE / 8192, &mut rng).into_iter().map(tile).collect();
    let (n_vars, n_records) = (1024, 4);
    let piece = SIZE / n_vars / n_records;
    let many_vars = (0..n_vars * n_records)
        .map(|i| vec![(i % n_records * n_vars * piece + i / n_records * piece, piece)])
        .collect();
    // Written in the order of time; read variable by variable, 256 records at a time.
    let many_records = match writing {
        true => (0..SIZE / 256).map(|i| vec![(i * 256, 256)]).collect(),
        false => (0..4)
            .flat_map(|var| (0..SIZE / 1024).step_by(256).map(move |t| (var, t)))
            .map(|(var, t)| rows(t * 1024 + var * 256, 256, 256, 1024))
            .collect(),
    };
    let singles = (0..SIZE / 8).map(|i| vec![(i * 8, 8)]).collect();
    let random = (0..1 << 17).map(|_| vec![(rng.below(SIZE / 8) * 8, 8)]).collect();
    let whole = (0..4).map(|i| vec![(i * SIZE / 4, SIZE / 4)]).collect();
    vec![
        family("in order", plain, in_order),
        family("random slices", records(vars * field, vars), slices),
        family("partial arrays out of order", plain, tiles),
        family("one element, sequential", plain, singles),
        family("one element, random", plain, random),
        family("many variables x few records", records(n_vars * piece, n_vars), many_vars),
        family("few variables x many records", records(1024, 4), many_records),
        family("whole arrays", plain, whole),
    ]
}

/// Milliseconds that the device needs for a family through `spec`.
fn cost(spec: &str, family: &Family, writing: bool) -> Result<f64, StorageError> {
    let base = Arc::new(Memory::new());
    if !writing {
        base.set_len(SIZE)?;
    }
    let mut handles = Handles::default();
    let s = Spec::parse(spec).unwrap().build_with(base, &mut handles)?;
    s.advise(family.advice);
    let data = vec![1; SIZE as usize];
    let mut memory = vec![0; SIZE as usize];
    for request in &family.requests {
        if writing {
            let ranges: Vec<WriteRange<'_>> = request
                .iter()
                .map(|(at, len)| WriteRange { at: *at, data: &data[..*len as usize] })
                .collect();
            s.write_ranges(&ranges)?;
        } else {
            let mut rest = &mut memory[..];
            let mut ranges = Vec::with_capacity(request.len());
            for (at, len) in request {
                let (now, later) = rest.split_at_mut(*len as usize);
                ranges.push(ReadRange::new(*at, now));
                rest = later;
            }
            s.read_ranges(&mut ranges)?;
        }
    }
    s.sync()?;
    drop(s);
    let counts = handles.counts[0].counts();
    let moved = if writing { counts.write } else { counts.read };
    // A range of a call that does not follow the one before is another one for the system, but not for
    // the device, which gets whole pages of the system's cache later.
    let calls = moved.calls + if writing { counts.read.calls } else { 0 };
    let bytes = moved.bytes + if writing { counts.read.bytes } else { 0 };
    Ok(calls as f64 * CALL + bytes as f64 / 500e3)
}

#[test]
fn the_default_is_never_a_bad_choice() -> Result<(), StorageError> {
    use std::io::Write;
    let mut bad = Vec::new();
    for writing in [true, false] {
        for family in families(writing) {
            let mine = cost(DEFAULT, &family, writing)?;
            let mut all = vec![(mine, "default")];
            for spec in STACKS {
                all.push((cost(spec, &family, writing)?, spec));
            }
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            let rank = all.iter().position(|(_, spec)| *spec == "default").unwrap_or(0) + 1;
            let (best, by) = all[0];
            let (worst, _) = all[all.len() - 1];
            let op = if writing { "write" } else { "read" };
            let line = format!(
                "| {}, {op} | {mine:.1} | `{}` {best:.1} | {:.2} | {rank} of {} | {:.1} |",
                family.name,
                by.trim_end_matches(",count"),
                mine / best,
                all.len(),
                worst / best,
            );
            let _ = writeln!(std::io::stdout(), "{line}");
            let single = family.name.starts_with("one element");
            let most = if single { MOST_SINGLE } else { MOST };
            if mine > most * best + LATE_CALLS * CALL || (rank == all.len() && worst > 1.05 * best)
            {
                bad.push(line);
            }
        }
    }
    assert!(bad.is_empty(), "too far from the best, or last:\n{}", bad.join("\n"));
    Ok(())
}

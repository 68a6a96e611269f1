//! The case study of 1995, in calls: a history file of 62 record variables, put as latitude slices
//! with the latitudes in random order, through the stacks that were proposed for it then.

use std::sync::Arc;
use zonda_storage::backend::Memory;
use zonda_storage::layer::Counts;
use zonda_storage::{Advice, Handles, Spec, Storage, StorageError};
use zonda_testkit::Rng;

const VARS: u64 = 62;
const LEVELS: u64 = 4;
const LATITUDES: u64 = 64;
/// A latitude circle of 128 doubles.
const CIRCLE: u64 = 128 * 8;
const FIELD: u64 = LEVELS * LATITUDES * CIRCLE;
const RECORD: u64 = VARS * FIELD;
const RECORDS: u64 = 2;
const HEADER: u64 = 8192;

/// The latitudes in an order that is always the same.
fn latitudes(seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    let mut order: Vec<u64> = (0..LATITUDES).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, rng.below(i as u64 + 1) as usize);
    }
    order
}

/// Calls `f` with the place of each slice, as a model puts them.
fn slices(mut f: impl FnMut(u64) -> Result<(), StorageError>) -> Result<(), StorageError> {
    for record in 0..RECORDS {
        for latitude in latitudes(record) {
            for var in 0..VARS {
                for level in 0..LEVELS {
                    let row = level * LATITUDES + latitude;
                    f(HEADER + record * RECORD + var * FIELD + row * CIRCLE)?;
                }
            }
        }
    }
    Ok(())
}

/// What is at a place: a byte for each circle.
fn circle(at: u64) -> [u8; CIRCLE as usize] {
    [((at / CIRCLE) % 251) as u8; CIRCLE as usize]
}

fn stack(spec: &str, base: &Arc<Memory>) -> (Arc<dyn Storage>, Handles) {
    let mut handles = Handles::default();
    let below = Arc::clone(base) as Arc<dyn Storage>;
    let s = Spec::parse(spec).unwrap().build_with(below, &mut handles).unwrap();
    // As the format does.
    let file_bytes = HEADER + RECORDS * RECORD;
    s.advise(Advice { record_bytes: RECORD, n_record_parts: VARS, file_bytes });
    (s, handles)
}

/// Puts all slices through `spec`, which ends in a `count`, and reads them back through it anew, in
/// another order; gives what came down of each.
fn calls(spec: &str) -> Result<(Counts, Counts), StorageError> {
    let base = Arc::new(Memory::new());
    let (s, handles) = stack(spec, &base);
    slices(|at| s.write_at(at, &circle(at)))?;
    s.sync()?;
    drop(s);
    let put = handles.counts.last().unwrap().counts();
    let bytes = base.to_vec()?;
    let right = |at: u64| bytes[at as usize..(at + CIRCLE) as usize] == circle(at);
    assert_eq!(bytes.len() as u64, HEADER + RECORDS * RECORD);
    assert!((HEADER..bytes.len() as u64).step_by(CIRCLE as usize).all(right), "{spec}");
    let (s, handles) = stack(spec, &base);
    let mut buf = [0; CIRCLE as usize];
    slices(|at| {
        assert_eq!(s.read_at(at, &mut buf)?, buf.len());
        assert!(buf == circle(at), "{spec}: {at}");
        Ok(())
    })?;
    drop(s);
    Ok((put, handles.counts.last().unwrap().counts()))
}

const SLICES: u64 = RECORDS * VARS * LEVELS * LATITUDES;

#[test]
fn slices_without_a_buffer_are_a_call_each() -> Result<(), StorageError> {
    let (put, got) = calls("count")?;
    assert_eq!((put.write.calls, got.read.calls), (SLICES, SLICES));
    Ok(())
}

#[test]
fn two_levels_of_cache_take_the_calls_away() -> Result<(), StorageError> {
    let (put, got) = calls("cache:29:141,eie.sds:4096:4:1,count")?;
    // Pages of 16 MiB: each byte goes down once, a few calls in all.
    assert!(put.write.calls * 60 < SLICES, "{put:?}");
    assert!(put.write.bytes <= HEADER + RECORDS * RECORD + (16 << 20), "{put:?}");
    assert!(put.write.calls <= 40, "{put:?}");
    assert!(got.read.calls * 60 < SLICES, "{got:?}");
    assert!(got.read.bytes <= 2 * (HEADER + RECORDS * RECORD), "{got:?}");
    // The second level is what makes them few, and the first what makes its own few.
    let base = Arc::new(Memory::new());
    let (s, handles) = stack("cache:29:141,count,eie.sds:4096:4:1,count", &base);
    slices(|at| s.write_at(at, &circle(at)))?;
    s.sync()?;
    let between = handles.counts[0].counts().write.calls;
    let below = handles.counts[1].counts().write.calls;
    assert!(between * 30 < SLICES && below <= between, "{between} between, {below} below");
    Ok(())
}

#[test]
fn two_buffers_carry_streams_and_not_slices() -> Result<(), StorageError> {
    // Whole fields one after the other: a call for a buffer or so, from the thread.
    let base = Arc::new(Memory::new());
    let (s, handles) = stack("bufa:336:2,count", &base);
    let data: Vec<u8> =
        (HEADER..HEADER + RECORD).step_by(CIRCLE as usize).flat_map(circle).collect();
    s.write_at(0, &[0; HEADER as usize])?;
    for (i, field) in data.chunks(FIELD as usize).enumerate() {
        s.write_at(HEADER + i as u64 * FIELD, field)?;
    }
    s.sync()?;
    let counts = handles.counts[0].counts();
    let buffers = (HEADER + RECORD).div_ceil(336 * 4096);
    assert!(counts.write.calls <= buffers + 1, "{counts:?} for {buffers} buffers");
    assert_eq!(counts.write.bytes, HEADER + RECORD);
    assert!(base.to_vec()?[HEADER as usize..] == data);
    // Slices leave their buffers all the time: fewer calls than without, but far more than pages need.
    let (put, _) = calls("bufa:336:2,count")?;
    let (cached, _) = calls("cache:29:141,eie.sds:4096:4:1,count")?;
    assert!(put.write.calls <= SLICES, "{put:?}");
    assert!(put.write.calls > 20 * cached.write.calls, "{put:?} {cached:?}");
    Ok(())
}

/// Prints the table of `docs/status/layers.md`.
#[test]
#[ignore = "a table, not a test"]
fn table() -> Result<(), StorageError> {
    use std::io::Write;
    for spec in [
        "count",
        "bufa:336:2,count",
        "cache:29:141,count",
        "cache:29:141,eie.sds:4096:4:1,count",
        "cachea:29:141:8,count",
        "cachea:64:128:4,count",
        "cache,count",
    ] {
        let (put, got) = calls(spec)?;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let _ = writeln!(
            std::io::stdout(),
            "| `{spec}` | {} | {:.0} | {} | {:.0} |",
            put.write.calls,
            mib(put.write.bytes),
            got.read.calls,
            mib(got.read.bytes)
        );
    }
    Ok(())
}

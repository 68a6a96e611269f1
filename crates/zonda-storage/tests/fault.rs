//! Errors at every n-th operation, and replays of every prefix of the writes.

use std::sync::Arc;
use zonda_storage::backend::Memory;
use zonda_storage::layer::{
    Cache, CacheShape, FaultHandle, FaultLayer, FaultPlan, InjectedFault, Log, LogEntry, Watched,
};
use zonda_storage::{ReadRange, Spec, Storage, StorageError, WriteRange};
use zonda_testkit::Rng;
use zonda_testkit::storage::contents;

/// The `cache` shapes tried above the fault; none at all first.
const SHAPES: [Option<(u64, u64)>; 4] = [None, Some((1, 1)), Some((1, 4)), Some((4, 8))];

const NEVER: FaultPlan =
    FaultPlan { watched: Watched::Any, nth: u64::MAX, onwards: false, kind: InjectedFault::Eio };

fn stack(shape: Option<(u64, u64)>) -> (Arc<Memory>, FaultHandle, Arc<dyn Storage>) {
    let base = Arc::new(Memory::new());
    let fault = FaultLayer::new(Arc::clone(&base), NEVER);
    let handle = fault.handle();
    let top: Arc<dyn Storage> = match shape {
        None => Arc::new(fault),
        Some((blocks, pages)) => {
            Arc::new(Cache::new(fault, CacheShape::new(blocks, pages).unwrap()).unwrap())
        }
    };
    (base, handle, top)
}

/// What a run met.
#[derive(Default)]
struct Met {
    errors: u64,
}

/// Repeats `call` until it succeeds; errors must be the injected ones and end.
fn insist<T>(met: &mut Met, mut call: impl FnMut() -> Result<T, StorageError>) -> T {
    for _ in 0..50 {
        match call() {
            Ok(value) => return value,
            Err(StorageError::Injected { .. }) => met.errors += 1,
            Err(other) => panic!("not the injected error: {other}"),
        }
    }
    panic!("still failing after the fault is over");
}

/// A scripted run: small and large writes, reads, lengths and barriers, each call repeated when it
/// fails. The bytes must be right at every step and below at the end.
fn run(base: &Memory, s: &dyn Storage, note: &str) -> Met {
    let mut met = Met::default();
    let mut model: Vec<u8> = Vec::new();
    let mut rng = Rng::new(7);
    for i in 0..60_usize {
        let at = rng.below(60_000) as usize;
        let n = if i.is_multiple_of(4) { 9000 } else { 1 + rng.below(300) as usize };
        let data = rng.bytes(n);
        if i.is_multiple_of(5) {
            let (left, right) = data.split_at(n / 2);
            let ranges = [
                WriteRange { at: at as u64, data: left },
                WriteRange { at: (at + n / 2) as u64, data: right },
            ];
            insist(&mut met, || s.write_ranges(&ranges));
        } else {
            insist(&mut met, || s.write_at(at as u64, &data));
        }
        model.resize(model.len().max(at + n), 0);
        model[at..at + n].copy_from_slice(&data);
        let from = rng.below(model.len() as u64) as usize;
        let n = (1 + rng.below(9000) as usize).min(model.len() - from);
        let mut buf = vec![0; n];
        let got = insist(&mut met, || {
            let mut ranges = [ReadRange::new(from as u64, &mut buf)];
            s.read_ranges(&mut ranges)?;
            Ok(ranges[0].got)
        });
        assert_eq!(got, n, "{note} step {i}");
        assert!(buf == model[from..from + n], "{note} step {i}: {n} at {from}");
        match i % 15 {
            3 => insist(&mut met, || s.barrier()),
            9 => {
                let len = 20_000 + rng.below(50_000);
                insist(&mut met, || s.set_len(len));
                model.resize(len as usize, 0);
            }
            12 => insist(&mut met, || s.sync()),
            _ => {}
        }
        assert_eq!(insist(&mut met, || s.len()), model.len() as u64, "{note} step {i}");
    }
    insist(&mut met, || s.sync());
    assert!(insist_contents(&mut met, s) == model, "{note}: through the stack");
    assert!(base.to_vec().unwrap() == model, "{note}: below");
    met
}

fn insist_contents(met: &mut Met, s: &dyn Storage) -> Vec<u8> {
    let mut bytes = vec![0; insist(met, || s.len()) as usize];
    let got = insist(met, || s.read_at(0, &mut bytes));
    bytes.truncate(got);
    bytes
}

#[test]
fn an_error_at_every_nth_operation_loses_nothing() {
    for shape in SHAPES {
        for watched in [Watched::Read, Watched::Write, Watched::SetLen] {
            let (base, handle, s) = stack(shape);
            handle.arm(FaultPlan { watched, ..NEVER });
            run(&base, &*s, "no fault");
            let total = handle.seen();
            assert!(total > 0, "{shape:?} {watched:?}");
            let kinds: &[InjectedFault] = match watched {
                Watched::Write => {
                    &[InjectedFault::Eio, InjectedFault::Enospc, InjectedFault::Short]
                }
                _ => &[InjectedFault::Eio],
            };
            for kind in kinds {
                for nth in 1..=total {
                    let note = format!("{shape:?} {watched:?} {nth} {kind:?}");
                    let (base, handle, s) = stack(shape);
                    handle.arm(FaultPlan { watched, nth, onwards: false, kind: *kind });
                    let met = run(&base, &*s, &note);
                    assert_eq!(handle.injected(), 1, "{note}");
                    // A read-ahead that fails is tried again without the part nobody asked for,
                    // and a fill that only saves calls is left out.
                    let may_hide = watched == Watched::Read && shape.is_some();
                    assert!(met.errors == 1 || (may_hide && met.errors == 0), "{note}");
                }
            }
        }
    }
}

/// Layers with a thread, and one that is not asked for buffers. What their threads meet is told by a
/// later call: once, and never lost.
const SPECS: [&str; 7] = [
    "cachea:1:4:2",
    "cachea:4:8",
    "bufa:2:2",
    "cache:1:3,eie:4:4:1",
    "cachea:1:8,bufa:4:2",
    "direct",
    // The default, where a thread helps it: what that fails at is tried again before anybody is told.
    "cache,throttle:10G:40us",
];

fn stack_of(spec: &str) -> (Arc<Memory>, FaultHandle, Arc<dyn Storage>) {
    let base = Arc::new(Memory::new());
    let fault = FaultLayer::new(Arc::clone(&base), NEVER);
    let handle = fault.handle();
    (base, handle, Spec::parse(spec).unwrap().build_on(Arc::new(fault)).unwrap())
}

#[test]
fn an_error_behind_the_callers_back_is_told_once_and_loses_nothing() {
    for spec in SPECS {
        for watched in [Watched::Read, Watched::Write, Watched::SetLen] {
            let (base, handle, s) = stack_of(spec);
            handle.arm(FaultPlan { watched, ..NEVER });
            run(&base, &*s, "no fault");
            let total = handle.seen();
            assert!(total > 0, "{spec} {watched:?}");
            let kinds: &[InjectedFault] = match watched {
                Watched::Write => {
                    &[InjectedFault::Eio, InjectedFault::Enospc, InjectedFault::Short]
                }
                _ => &[InjectedFault::Eio],
            };
            let mut struck = 0;
            for kind in kinds {
                for nth in 1..=total {
                    let note = format!("{spec} {watched:?} {nth} {kind:?}");
                    let (base, handle, s) = stack_of(spec);
                    handle.arm(FaultPlan { watched, nth, onwards: false, kind: *kind });
                    let met = run(&base, &*s, &note);
                    // A thread writes more or less at a time: a run may not come to the last ones.
                    let injected = handle.injected();
                    struck += injected;
                    // A read that nobody asked for, or that only saves calls, may meet a write of the
                    // cache below, which has to make room for it: that is tried again.
                    let may_hide = watched == Watched::Read || spec.contains(',');
                    assert!(met.errors == injected || may_hide && met.errors < injected, "{note}");
                }
            }
            assert!(struck > total * kinds.len() as u64 / 2, "{spec} {watched:?}: {struck}");
        }
    }
}

/// A sync that failed: all later ones fail, whatever is written meanwhile and whichever they are, and what
/// was written is handed down all the same.
#[test]
fn a_sync_that_failed_is_never_followed_by_one_that_succeeds() {
    let mut specs = SPECS.to_vec();
    specs.extend(["passthrough", "cache:1:2", "cache", "cachea:4:8,cache:1:4"]);
    for spec in specs {
        for kind in [InjectedFault::Eio, InjectedFault::Enospc] {
            for nth in 1..=4 {
                let (base, handle, s) = stack_of(spec);
                handle.arm(FaultPlan { watched: Watched::Sync, nth, onwards: false, kind });
                let mut rng = Rng::new(nth);
                let mut model = vec![0; 40_000];
                let mut lost = false;
                for step in 1..=8 {
                    let at = rng.below(30_000) as usize;
                    let data = rng.bytes(9000);
                    s.write_at(at as u64, &data).unwrap();
                    model[at..at + 9000].copy_from_slice(&data);
                    let synced = if step % 2 == 0 { s.sync() } else { s.barrier() };
                    lost |= step == nth;
                    let note = format!("{spec}: {nth}, step {step}");
                    match synced {
                        Ok(()) => assert!(!lost, "{note}: a lost sync is forgotten"),
                        Err(error) => assert!(lost && error.is_lost_sync(), "{note}: {error}"),
                    }
                    if step == 6 {
                        handle.disarm();
                    }
                }
                let bytes = base.to_vec().unwrap();
                assert!(bytes[..] == model[..bytes.len()], "{spec}: {nth}: not handed down");
                assert_eq!(handle.injected(), 1, "{spec}");
            }
        }
    }
}

#[test]
fn barriers_order_what_threads_write() {
    for spec in ["cachea:1:8:2", "bufa:2:3", "cache:1:4,eie:4:4:1", "cachea:1:4,cachea:4:4"] {
        let base = Arc::new(Memory::new());
        let log = Log::new(Arc::clone(&base)).unwrap();
        let handle = log.handle();
        let s = Spec::parse(spec).unwrap().build_on(Arc::new(log)).unwrap();
        let mut expected = Vec::new();
        let mut rng = Rng::new(3);
        for round in 0..20_u64 {
            for i in 0..12 {
                let n = 1 + rng.below(6000) as usize;
                let data = rng.bytes(n);
                // Some of it in order, so that pages are complete and go out early.
                let at = if i % 3 == 0 { rng.below(40_000) } else { round * 2000 + i * 500 };
                s.write_at(at, &data).unwrap();
            }
            s.write_at(0, &round.to_le_bytes()).unwrap();
            s.barrier().unwrap();
            expected.push((handle.len(), contents(&*s)));
        }
        drop(s);
        for (n, (prefix, bytes)) in expected.iter().enumerate() {
            assert!(handle.replay(*prefix, 0) == *bytes, "{spec}: barrier {n}");
        }
    }
}

#[test]
fn a_full_disk_behind_a_thread_keeps_what_was_accepted() {
    for spec in ["cachea:1:8", "bufa:1:4", "eie:1:8:1"] {
        let (base, handle, s) = stack_of(spec);
        let kind = InjectedFault::Enospc;
        handle.arm(FaultPlan { watched: Watched::Write, nth: 1, onwards: true, kind });
        let data = Rng::new(1).bytes(60_000);
        let (mut accepted, mut refused) = (0, 0);
        for (i, part) in data.chunks(1000).enumerate() {
            match s.write_at(i as u64 * 1000, part) {
                Ok(()) if accepted == i * 1000 => accepted += part.len(),
                Ok(()) => break,
                Err(error) => {
                    assert_eq!(error.raw_os_error(), libc::ENOSPC, "{spec}");
                    refused += 1;
                    break;
                }
            }
        }
        assert!(refused == 1 && accepted >= 3000, "{spec}: {accepted} accepted, {refused} refused");
        for _ in 0..3 {
            assert_eq!(s.barrier().unwrap_err().raw_os_error(), libc::ENOSPC, "{spec}");
        }
        let mut back = vec![0; accepted];
        assert_eq!(s.read_at(0, &mut back), Ok(accepted), "{spec}");
        assert!(back == data[..accepted], "{spec}");
        handle.disarm();
        // What a thread met in the meantime is still to be told.
        if let Err(error) = s.barrier() {
            assert_eq!(error.raw_os_error(), libc::ENOSPC, "{spec}");
            s.barrier().unwrap();
        }
        assert!(base.to_vec().unwrap()[..accepted] == data[..accepted], "{spec}");
    }
}

/// The default on a slow device: an error of its thread is nobody's until a user met it, too.
#[test]
fn what_the_thread_of_the_default_failed_at_is_tried_by_its_users() {
    let (base, handle, s) = stack_of("cache,throttle:10G:100us");
    let data = Rng::new(2).bytes(4 << 20);
    let (before, after) = data.split_at(2 << 20);
    for (i, part) in before.chunks(4096).enumerate() {
        s.write_at(i as u64 * 4096, part).unwrap();
    }
    handle.arm(FaultPlan {
        watched: Watched::Write,
        nth: 1,
        onwards: true,
        kind: InjectedFault::Enospc,
    });
    let mut accepted = before.len();
    let mut refused = None;
    for part in after.chunks(4096) {
        if let Err(error) = s.write_at(accepted as u64, part) {
            refused = Some(error);
            break;
        }
        accepted += part.len();
        if handle.injected() == 0 {
            // On a busy machine the thread needs time to find out.
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    }
    let refused = refused.expect("a full disk shows while there is room in memory");
    assert_eq!(refused.raw_os_error(), libc::ENOSPC);
    assert!(handle.injected() >= 2, "the thread, and who told");
    let mut back = vec![0; accepted];
    assert_eq!(s.read_at(0, &mut back), Ok(accepted));
    assert!(back == data[..accepted]);
    assert_eq!(s.barrier().unwrap_err().raw_os_error(), libc::ENOSPC);
    handle.disarm();
    s.barrier().unwrap();
    for (i, part) in data[accepted..].chunks(4096).enumerate() {
        s.write_at((accepted + i * 4096) as u64, part).unwrap();
    }
    s.sync().unwrap();
    assert!(base.to_vec().unwrap() == data);
}

#[test]
fn a_full_disk_keeps_what_was_accepted_until_there_is_room() {
    for shape in [(1, 2), (4, 8)] {
        let (base, handle, s) = stack(Some(shape));
        s.write_at(0, b"before").unwrap();
        s.sync().unwrap();
        let kind = InjectedFault::Enospc;
        handle.arm(FaultPlan { watched: Watched::Write, nth: 1, onwards: true, kind });
        s.write_at(2, b"accepted").unwrap();
        for _ in 0..3 {
            let error = s.barrier().unwrap_err();
            assert_eq!(error.raw_os_error(), libc::ENOSPC);
            assert_eq!(error.offset(), Some(2));
        }
        assert_eq!(s.sync().map_err(|e| e.raw_os_error()), Err(libc::ENOSPC));
        assert_eq!(contents(&*s), b"beaccepted");
        s.invalidate().unwrap();
        assert_eq!(contents(&*s), b"beaccepted");
        assert_eq!(base.to_vec().unwrap(), b"before");
        handle.disarm();
        s.barrier().unwrap();
        assert_eq!(base.to_vec().unwrap(), b"beaccepted");
    }
}

#[test]
fn a_short_write_stops_at_a_page_border() {
    let (base, handle, s) = stack(None);
    let kind = InjectedFault::Short;
    handle.arm(FaultPlan { watched: Watched::Write, nth: 1, onwards: false, kind });
    assert!(s.write_at(100, &[1; 20_000]).is_err());
    let len = base.len().unwrap();
    assert!(len > 100 && len.is_multiple_of(4096) && len < 20_100, "{len}");
}

#[test]
fn dropping_a_cache_discards_and_barriers_order_the_log() {
    let base = Arc::new(Memory::new());
    let log = Log::new(Arc::clone(&base)).unwrap();
    let handle = log.handle();
    let cache = Cache::new(log, CacheShape::new(1, 4).unwrap()).unwrap();
    let mut expected = Vec::new();
    let mut rng = Rng::new(3);
    for round in 0..10_u64 {
        for _ in 0..12 {
            let n = 1 + rng.below(6000) as usize;
            let data = rng.bytes(n);
            cache.write_at(rng.below(40_000), &data).unwrap();
        }
        cache.write_at(0, &round.to_le_bytes()).unwrap();
        cache.barrier().unwrap();
        expected.push((handle.len(), contents(&cache)));
    }
    cache.write_at(0, b"never flushed").unwrap();
    drop(cache);
    assert!(!handle.is_empty());
    let entries = handle.entries();
    assert_eq!(entries.iter().filter(|e| **e == LogEntry::Barrier).count(), 10);
    assert!(base.to_vec().unwrap() == expected[9].1, "what was not flushed is gone");
    for (n, (prefix, bytes)) in expected.iter().enumerate() {
        assert!(handle.replay(*prefix, 0) == *bytes, "barrier {n}");
    }
    assert!(handle.replay(usize::MAX, 0) == expected[9].1);
    // A cut write leaves its beginning, up to a page border.
    let (n, at, data) = entries
        .iter()
        .enumerate()
        .find_map(|(n, entry)| match entry {
            LogEntry::Write { at, data } if handle.cuts(n) > 0 => Some((n, *at as usize, data)),
            _ => None,
        })
        .expect("a write over a page border");
    let border = (at / 4096 + 1) * 4096;
    let (before, cut) = (handle.replay(n, 0), handle.replay(n, 1));
    assert!(cut[at..border] == data[..border - at]);
    assert!(before.len() <= border || cut[border..] == before[border..]);
}

#[test]
fn spec_gives_handles() {
    let mut handles = zonda_storage::Handles::default();
    let spec = Spec::parse("count,fault:write:2:enospc,fault:log,count,memory").unwrap();
    let s = spec.build_with(Arc::new(Memory::new()), &mut handles).unwrap();
    s.write_at(0, b"a").unwrap();
    assert_eq!(s.write_at(1, b"b").unwrap_err().raw_os_error(), libc::ENOSPC);
    assert_eq!(handles.counts[0].counts().write.calls, 2);
    assert_eq!(handles.counts[0].counts().write.errors, 1);
    assert_eq!(handles.counts[1].counts().write.calls, 1);
    assert_eq!(handles.faults[0].injected(), 1);
    assert_eq!(handles.logs[0].replay(1, 0), b"a");
}

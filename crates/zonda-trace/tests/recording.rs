//! What is recorded is what is read back: threads, names, a second process, a killed one, odd files.
//!
//! Recording is of a process, so each case runs this program again as a child with the case's name.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use zonda_runtime::lock::{Mutex, Rank};

use tempfile::TempDir;
use zonda_trace::decode::{DecodeError, Decoder, RecordedEvent, TraceStep};
use zonda_trace::{Args, EventKind, NO_ITEM, counter, instant, lock, span, span_since, start};

const CASE: &str = "ZONDA_TRACE_TEST_CASE";

/// A folder that goes with the test.
struct Scratch(TempDir);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(TempDir::with_prefix(format!("zonda-trace-{name}-")).unwrap())
    }

    fn trace(&self) -> PathBuf {
        self.0.path().join("out.trace")
    }
}

/// Runs this test program again, for one case that records to `trace`.
fn child(case: &str, trace: &Path) -> (u32, ExitStatus) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_side", "--nocapture", "--test-threads", "1"])
        .env(CASE, case)
        .env(zonda_trace::VARIABLE, trace)
        // As rank 3 of MPICH.
        .env_remove("OMPI_COMM_WORLD_RANK")
        .env("PMI_RANK", "3")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    (child.id(), child.wait().unwrap())
}

/// What the children do; nothing where this is no child.
#[test]
fn child_side() {
    let Ok(case) = std::env::var(CASE) else { return };
    assert!(!zonda_trace::on());
    instant(EventKind::Commit, || unreachable!("nothing is recorded before init"));
    zonda_trace::init(|| true);
    assert_eq!(zonda_trace::on(), case != "refused");
    match &case[..] {
        "all" => everything(),
        "many" => (0..10_000).for_each(|i| counter(EventKind::QueueBytes, 0, || i)),
        "killed" => {
            (0..5000).for_each(|i| counter(EventKind::QueueBytes, 0, || i));
            std::process::abort();
        }
        "fork" => {
            counter(EventKind::QueueBytes, 0, || 1);
            let name = zonda_trace::file(Path::new("before.nc"));
            // What a child of fork does is done by this process itself, that has one thread only.
            zonda_runtime::fork::before();
            zonda_runtime::fork::in_child();
            counter(EventKind::QueueJobs, name, || 2);
            zonda_trace::flush();
        }
        "server" => {
            zonda_trace::role("server1");
            std::process::abort();
        }
        "refused" => counter(EventKind::QueueBytes, 0, || unreachable!("no trace, no argument")),
        other => panic!("no case {other}"),
    }
}

fn everything() {
    let file = zonda_trace::file(Path::new("a/b.nc"));
    assert_eq!(zonda_trace::file(Path::new("a/b.nc")), file);
    zonda_trace::variable(file, 1, 7, || "temp".to_owned());
    zonda_trace::variable(file, 1, 7, || unreachable!("named already"));
    zonda_trace::layer(3, 0, "cache:1:8".to_owned());
    {
        let mut outer =
            span(EventKind::Call, || Args { file, item: 7, name: "nc_put", ..Args::default() });
        let begin = start();
        std::thread::sleep(std::time::Duration::from_millis(20));
        span_since(begin, EventKind::WaitPool, Args::default);
        let mutex = Mutex::ranked(Rank::File, ());
        drop(lock(|| mutex.try_lock(), || unreachable!("it is free")));
        drop(lock(|| None, || mutex.lock()));
        outer.bytes(u64::MAX);
        outer.code(-57);
    }
    span(EventKind::Commit, Args::default).cancel();
    let thread = std::thread::Builder::new().name("writer-1".to_owned());
    let thread = thread.spawn(move || {
        instant(EventKind::Filter, || Args {
            name: "deflate",
            offset: 5,
            bytes: 10,
            ..Args::default()
        });
    });
    thread.unwrap().join().unwrap();
}

/// Every event of a trace, with what its name and file are called, and the number of processes.
fn read(trace: &Path) -> (Vec<(RecordedEvent, String, String)>, usize, u64) {
    let mut decoder = Decoder::new(std::fs::File::open(trace).unwrap());
    let (mut events, mut processes) = (Vec::new(), 0);
    loop {
        let these = match decoder.step().unwrap() {
            None => break,
            Some(TraceStep::Process(process)) => {
                assert!(process.command[0].contains("recording"), "{process:?}");
                processes += 1;
                continue;
            }
            Some(TraceStep::Events(these)) => these.to_vec(),
        };
        let names = decoder.names();
        let text = |name: Option<&str>| name.unwrap_or("").to_owned();
        events.extend(
            these
                .iter()
                .map(|event| (*event, text(names.word(event.name)), text(names.file(event.file)))),
        );
    }
    assert_eq!(decoder.torn(), None);
    (events, processes, decoder.lost())
}

#[test]
fn what_was_recorded_is_read_back() {
    let scratch = Scratch::new("all");
    assert!(child("all", &scratch.trace()).1.success());
    let (mut events, processes, lost) = read(&scratch.trace());
    assert_eq!((processes, lost), (1, 0));
    events.sort_by_key(|(event, ..)| event.begin_ns);
    let kinds: Vec<_> = events.iter().map(|(event, ..)| event.kind.unwrap()).collect();
    assert_eq!(
        kinds,
        [EventKind::Call, EventKind::WaitPool, EventKind::WaitLock, EventKind::Filter]
    );
    let (call, name, file) = &events[0];
    assert_eq!((&name[..], &file[..]), ("nc_put", "a/b.nc"));
    assert_eq!((call.item, call.bytes, call.code), (7, u64::MAX, -57));
    let (wait, ..) = &events[1];
    assert_eq!((wait.item, wait.file, wait.thread), (NO_ITEM, 0, call.thread));
    // Whatever the clock: what was slept for at least, and within what is around it.
    assert!(wait.took_ns >= 20_000_000 && wait.took_ns <= call.took_ns, "{wait:?} {call:?}");
    assert!(call.took_ns < 5_000_000_000, "{call:?}");
    let (filter, name, _) = &events[3];
    assert_eq!((&name[..], filter.offset, filter.bytes), ("deflate", 5, 10));
    assert_ne!(filter.thread, call.thread);

    let mut decoder = Decoder::new(std::fs::File::open(scratch.trace()).unwrap());
    while decoder.step().unwrap().is_some() {}
    let names = decoder.names();
    assert_eq!(names.variable(call.file, 1, 7), Some("temp"));
    assert_eq!(names.layer(3, 0), Some("cache:1:8"));
    assert_eq!(names.thread(filter.thread), Some("writer-1"));
}

/// A second process of the same name appends; `%p` keeps them apart, and `%r` ranks.
#[test]
fn several_processes() {
    let scratch = Scratch::new("several");
    for _ in 0..2 {
        assert!(child("many", &scratch.trace()).1.success());
    }
    let (events, processes, _) = read(&scratch.trace());
    assert_eq!((events.len(), processes), (20_000, 2));
    let values = events[10_000..].iter().map(|(event, ..)| event.offset);
    assert!(values.eq(0..10_000));

    let (pid, status) = child("many", &scratch.0.path().join("of-%p-%r.trace"));
    assert!(status.success());
    assert_eq!(read(&scratch.0.path().join(format!("of-{pid}-3.trace"))).0.len(), 10_000);

    // While somebody else writes it, a process takes another file.
    let held = std::fs::File::open(scratch.trace()).unwrap();
    held.lock().unwrap();
    let (pid, status) = child("many", &scratch.trace());
    assert!(status.success());
    assert_eq!(read(&scratch.trace()).1, 2);
    assert_eq!(read(&scratch.0.path().join(format!("out.trace.{pid}"))).0.len(), 10_000);
}

#[test]
fn a_child_of_fork_has_its_own() {
    let scratch = Scratch::new("fork");
    let (_, status) = child("fork", &scratch.trace());
    assert!(status.success());
    let (events, processes, _) = read(&scratch.trace());
    // The event before belongs to the parent, which is not there any more to write it.
    assert_eq!((events.len(), processes), (1, 2));
    assert_eq!(events[0].0.kind, Some(EventKind::QueueJobs));
    assert_eq!(events[0].2, "before.nc");
}

/// A process that dies leaves whole blocks, and the next one appends behind them.
#[test]
fn killed_processes() {
    let scratch = Scratch::new("killed");
    assert!(!child("killed", &scratch.trace()).1.success());
    let (events, ..) = read(&scratch.trace());
    assert!(events.len() > 1000 && events.len() < 5000, "{}", events.len());
    // Half a block at the end, as of one that was killed while it wrote.
    let whole = std::fs::read(scratch.trace()).unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).open(scratch.trace()).unwrap();
    file.write_all(&whole[..100]).unwrap();
    let mut decoder = Decoder::new(std::fs::File::open(scratch.trace()).unwrap());
    let torn = loop {
        match decoder.step() {
            Ok(Some(_)) => {}
            other => break other.map(|_| ()),
        }
    };
    assert!(torn.is_ok() && decoder.torn() == Some(whole.len() as u64), "{torn:?}");
    assert!(child("many", &scratch.trace()).1.success());
    let (all, processes, _) = read(&scratch.trace());
    assert_eq!((all.len(), processes), (events.len() + 10_000, 2));
}

/// A file that is no trace is left as it is.
#[test]
fn other_files_are_left_alone() {
    let scratch = Scratch::new("refused");
    for bytes in [&b"CDF\x01 some data of years"[..], b"x", b"ZTR"] {
        std::fs::write(scratch.trace(), bytes).unwrap();
        assert!(child("refused", &scratch.trace()).1.success());
        assert_eq!(std::fs::read(scratch.trace()).unwrap(), bytes);
    }
    assert!(child("refused", &scratch.0.path().join("no/such/folder")).1.success());
}

/// Every prefix and every flipped byte of a trace gives events or an error with its place.
#[test]
fn damaged_traces() {
    let scratch = Scratch::new("damaged");
    assert!(child("all", &scratch.trace()).1.success());
    let whole = std::fs::read(scratch.trace()).unwrap();
    let steps = |bytes: &[u8]| -> Result<usize, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        let mut n = 0;
        while decoder.step()?.is_some() {
            n += 1;
        }
        Ok(n)
    };
    let all = steps(&whole).unwrap();
    for len in 0..whole.len() {
        match steps(&whole[..len]) {
            Ok(n) => assert!(n <= all),
            Err(DecodeError::Bad { at, .. }) => assert!(at <= len as u64),
            Err(other) => panic!("{other}"),
        }
    }
    let mut bytes = whole.clone();
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            bytes[at] ^= flip;
            if let Err(DecodeError::Bad { at, .. }) = steps(&bytes) {
                assert!(at <= bytes.len() as u64);
            }
            bytes[at] ^= flip;
        }
    }
    assert!(matches!(steps(b"CDF\x01"), Err(DecodeError::Bad { at: 0, .. })));
    assert_eq!(steps(b"").unwrap(), 0);
}

/// Who a process is, is known whether it recorded anything or not.
#[test]
fn roles() {
    for (case, role) in [("all", "rank 3"), ("server", "server1")] {
        let scratch = Scratch::new("roles");
        child(case, &scratch.trace());
        let bytes = std::fs::read(scratch.trace()).unwrap();
        let mut decoder = Decoder::new(&bytes[..]);
        while decoder.step().unwrap().is_some() {}
        assert_eq!(decoder.names().role(), Some(role), "{case}");
    }
}

/// What blocks say was lost is as wrong as they like.
#[test]
fn lost_events_without_number() {
    use zonda_trace::format::{BlockHead, EVENTS, SECTION, SECTION_HEAD};
    let mut trace = Vec::new();
    let mut section = vec![1, 0, 1, 0];
    // And two empty texts.
    section.resize(SECTION_HEAD + 4, 0);
    for _ in 0..2 {
        for (contents, payload, lost) in [(SECTION, &section[..], 0), (EVENTS, &[][..], u64::MAX)] {
            let len_bytes = payload.len() as u32;
            let head = BlockHead { contents, len_bytes, thread: 1, ticks: 1, ns: 1, lost };
            trace.extend_from_slice(&head.encode());
            trace.extend_from_slice(payload);
        }
    }
    trace.extend_from_slice(&trace.clone());
    let mut decoder = Decoder::new(&trace[..]);
    while decoder.step().unwrap().is_some() {}
    assert_eq!(decoder.lost(), u64::MAX);
}

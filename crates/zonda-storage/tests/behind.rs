//! What layers with a thread promise beyond being a storage: callers that do not wait, bounded memory,
//! and nothing that hangs in a fork.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use zonda_storage::backend::Memory;
use zonda_storage::{
    Advice, Create, Handles, Spec, Stack, Storage, StorageError, StorageOptions, WriteRange,
    fill_by_writes, open,
};
use zonda_testkit::{Rng, TempFolder};

const MIB: u64 = 1 << 20;

/// Waits until `what` holds.
fn until(what: impl Fn() -> bool, why: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    while !what() {
        assert!(Instant::now() < end, "still not: {why}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn counted(spec: &str, base: Arc<Memory>) -> (Arc<dyn Storage>, Handles) {
    let mut handles = Handles::default();
    let s = Spec::parse(spec).unwrap().build_with(base, &mut handles).unwrap();
    (s, handles)
}

#[test]
fn complete_pages_leave_while_the_caller_goes_on() -> Result<(), StorageError> {
    for spec in ["cachea:16:64,count,throttle:4M", "bufa:64:4,count,throttle:4M"] {
        let base = Arc::new(Memory::new());
        let (s, handles) = counted(spec, Arc::clone(&base));
        let data = Rng::new(1).bytes(MIB as usize);
        let begin = Instant::now();
        for (i, part) in data.chunks(4096).enumerate() {
            s.write_at(i as u64 * 4096, part)?;
        }
        let took = begin.elapsed();
        // The device needs 250 ms for it.
        assert!(took < Duration::from_millis(125), "{spec}: {took:?}");
        let written = || handles.counts[0].counts().write.bytes;
        until(|| written() == MIB, "all is below without a barrier");
        let calls = handles.counts[0].counts().write.calls;
        s.sync()?;
        assert_eq!(
            handles.counts[0].counts().write.calls,
            calls,
            "{spec}: nothing is written twice"
        );
        assert!(base.to_vec()? == data, "{spec}");
    }
    Ok(())
}

/// A device that takes a millisecond for a write, and for ever while it is shut.
#[derive(Debug)]
struct Gate {
    inner: Arc<Memory>,
    shut: Mutex<bool>,
    bell: Condvar,
    /// How long a write takes.
    nap: Duration,
    /// The most bytes that a thread of a layer wrote by one call.
    longest: AtomicU64,
}

impl Gate {
    fn new(inner: &Arc<Memory>, nap: Duration) -> Arc<Gate> {
        let inner = Arc::clone(inner);
        let (shut, bell, longest) = (Mutex::new(false), Condvar::new(), AtomicU64::new(0));
        Arc::new(Gate { inner, shut, bell, nap, longest })
    }

    fn shut(&self, shut: bool) {
        *self.shut.lock().unwrap() = shut;
        self.bell.notify_all();
    }
}

impl Storage for Gate {
    zonda_storage::forward! {
        this => this.inner;
        read_at, read_ranges, len, set_len, barrier, sync, invalidate, stamp
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.write_ranges(&[WriteRange { at, data }])
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        if std::thread::current().name().is_some_and(|name| name.starts_with("zonda-io")) {
            let bytes = ranges.iter().map(|range| range.data.len() as u64).sum();
            self.longest.fetch_max(bytes, Ordering::Relaxed);
        }
        std::thread::sleep(self.nap);
        drop(self.bell.wait_while(self.shut.lock().unwrap(), |shut| *shut).unwrap());
        self.inner.write_ranges(ranges)
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        fill_by_writes(self, at, len, element)
    }

    fn advise(&self, _: Advice) {}

    fn rest(&self) {}

    fn describe(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("gate")
    }
}

/// The default does not wait for a slow device either, once it has found out that it is one.
#[test]
fn the_default_writes_behind_where_the_device_is_slow() -> Result<(), StorageError> {
    let base = Arc::new(Memory::new());
    let gate = Gate::new(&base, Duration::from_millis(1));
    let s = Spec::parse("cache").unwrap().build_on(Arc::clone(&gate) as Arc<dyn Storage>)?;
    let data = Rng::new(4).bytes(8 * MIB as usize);
    let write = |from: u64, to: u64| {
        (from..to)
            .step_by(4096)
            .try_for_each(|at| s.write_at(at, &data[at as usize..at as usize + 4096]))
    };
    write(0, 4 * MIB)?;
    gate.shut(true);
    // If anybody waited for the device here, it would be for ever.
    write(4 * MIB, 8 * MIB)?;
    // Not what the thread has in its hands, which is up to 1 MiB from where it was.
    let mut back = vec![0; MIB as usize];
    assert_eq!(s.read_at(7 * MIB, &mut back)?, back.len());
    assert!(back == data[7 * MIB as usize..], "what waits is read");
    gate.shut(false);
    s.sync()?;
    assert!(base.to_vec()? == data);
    Ok(())
}

/// Who wants a page that the thread is writing waits for that call: so it is never a long one, however
/// much has piled up.
#[test]
fn a_thread_writes_no_more_than_four_megabytes_by_one_call() -> Result<(), StorageError> {
    for spec in ["cachea:64:512:1", "cachea:1:16384:1", "cachea:256:64:1"] {
        let base = Arc::new(Memory::new());
        let gate = Gate::new(&base, Duration::ZERO);
        let s = Spec::parse(spec).unwrap().build_on(Arc::clone(&gate) as Arc<dyn Storage>)?;
        let data = Rng::new(8).bytes(24 * MIB as usize);
        gate.shut(true);
        for (i, part) in data.chunks(4096).enumerate() {
            s.write_at(i as u64 * 4096, part)?;
        }
        gate.shut(false);
        until(|| base.len().is_ok_and(|len| len >= 23 * MIB), "what is complete leaves");
        let longest = gate.longest.load(Ordering::Relaxed);
        assert!(longest <= 4 * MIB, "{spec}: {longest} bytes by one call");
        s.sync()?;
        assert!(base.to_vec()? == data, "{spec}");
    }
    Ok(())
}

/// On any device it leaves the copies of a long stream to another core.
#[test]
fn the_default_writes_long_streams_behind() -> Result<(), StorageError> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("skipped: there is one core");
        return Ok(());
    }
    let base = Arc::new(Memory::new());
    let gate = Gate::new(&base, Duration::ZERO);
    let s = Spec::parse("cache").unwrap().build_on(Arc::clone(&gate) as Arc<dyn Storage>)?;
    let data = Rng::new(9).bytes(24 * MIB as usize);
    let write = |from: u64, to: u64| {
        (from..to)
            .step_by(4096)
            .try_for_each(|at| s.write_at(at, &data[at as usize..at as usize + 4096]))
    };
    write(0, 20 * MIB)?;
    until(|| base.len().is_ok_and(|len| len >= 17 * MIB), "what is complete leaves");
    gate.shut(true);
    // If anybody waited for the other core here, it would be for ever.
    write(20 * MIB, 24 * MIB)?;
    gate.shut(false);
    s.sync()?;
    assert!(base.to_vec()? == data);
    Ok(())
}

#[test]
fn the_default_reads_ahead_where_the_device_is_slow() -> Result<(), StorageError> {
    let bytes = Rng::new(5).bytes(8 * MIB as usize);
    let base = Arc::new(Memory::from_slice(&bytes));
    let (s, handles) = counted("cache,count,throttle:4G:300us", base);
    s.advise(Advice { file_bytes: 8 * MIB, ..Advice::default() });
    let read = || handles.counts[0].counts().read.bytes;
    let mut buf = vec![0; 1000];
    let mut at = 0;
    while at < 3 * MIB {
        let got = s.read_at(at, &mut buf)?;
        assert!(buf[..got] == bytes[at as usize..at as usize + got]);
        at += got as u64;
    }
    until(|| read() >= at + MIB / 2, "a block ahead of the reader");
    // Several streams, each of which has its own next block.
    let mut ats = [4 * MIB, 5 * MIB, 6 * MIB, 7 * MIB];
    for _ in 0..MIB / 1000 {
        for at in &mut ats {
            let got = s.read_at(*at, &mut buf)?;
            assert!(buf[..got] == bytes[*at as usize..*at as usize + got]);
            *at += got as u64;
        }
    }
    assert!(read() < 9 * MIB, "hardly anything twice: {}", read());
    Ok(())
}

/// Reads that are long enough to go past a cache are worth pages where several go on side by side.
#[test]
fn long_reads_in_several_streams_are_kept_ahead_of() -> Result<(), StorageError> {
    let bytes = Rng::new(6).bytes(8 * MIB as usize);
    let base = Arc::new(Memory::from_slice(&bytes));
    let (s, handles) = counted("cache,count,throttle:4G:300us", base);
    s.advise(Advice { file_bytes: 8 * MIB, ..Advice::default() });
    let mut buf = vec![0; 16 << 10];
    for step in 0..128 {
        for stream in 0..4 {
            let at = stream * 2 * MIB + step * (16 << 10);
            assert_eq!(s.read_at(at, &mut buf)?, buf.len());
            assert!(buf == bytes[at as usize..at as usize + buf.len()]);
        }
    }
    let read = handles.counts[0].counts().read;
    assert!(read.calls < 60, "512 reads took {} calls", read.calls);
    assert!(read.bytes < 9 * MIB, "hardly anything twice: {}", read.bytes);
    Ok(())
}

/// So they are where they come back, as those of a strided variable do.
#[test]
fn long_reads_that_come_back_are_kept() -> Result<(), StorageError> {
    let bytes = Rng::new(7).bytes(16 * MIB as usize);
    let base = Arc::new(Memory::from_slice(&bytes));
    let (s, handles) = counted("cache,count,throttle:4G:300us", base);
    s.advise(Advice { file_bytes: 16 * MIB, ..Advice::default() });
    let mut buf = vec![0; 128 << 10];
    for stretch in 0..16 {
        for phase in 0..8 {
            let at = stretch * MIB + phase * 8;
            let got = s.read_at(at, &mut buf)?;
            assert!(buf[..got] == bytes[at as usize..at as usize + got]);
        }
    }
    let read = handles.counts[0].counts().read;
    // The first stretches show what it is like; then one call each, and one for what lies behind it.
    assert!(read.calls < 8 + 3 * 16, "128 reads took {} calls", read.calls);
    assert!(read.bytes < 5 * MIB, "{} bytes were read for 2 MiB", read.bytes);
    Ok(())
}

/// What is put together from parts in any order stays until it is complete, as far as there is memory;
/// what is read again and again fits after the second time.
#[test]
fn pages_that_are_come_back_to_find_room() -> Result<(), StorageError> {
    const SIZE: u64 = 48 * MIB;
    const PART: u64 = 128 << 10;
    let base = Arc::new(Memory::new());
    let (s, handles) = counted("cache,count,throttle:8G:100us", Arc::clone(&base));
    s.advise(Advice { file_bytes: SIZE, ..Advice::default() });
    let data = Rng::new(8).bytes(SIZE as usize);
    let write = |part: u64| {
        let at = part * PART;
        s.write_at(at, &data[at as usize..(at + PART) as usize])
    };
    // Of each page one half, then the other.
    (0..SIZE / PART).step_by(2).try_for_each(write)?;
    (1..SIZE / PART).step_by(2).try_for_each(write)?;
    s.sync()?;
    assert!(base.to_vec()? == data);
    let counts = handles.counts[0].counts();
    assert!(counts.read.bytes < 2 * MIB, "{} bytes were read", counts.read.bytes);
    assert!(counts.write.bytes < SIZE + 2 * MIB, "{} bytes were written", counts.write.bytes);

    let (s, handles) = counted("cache,count,throttle:8G:100us", base);
    s.advise(Advice { file_bytes: SIZE, ..Advice::default() });
    let mut buf = vec![0; 64 << 10];
    for _ in 0..4 {
        for at in (0..SIZE).step_by(buf.len()) {
            assert_eq!(s.read_at(at, &mut buf)?, buf.len());
            assert!(buf == data[at as usize..at as usize + buf.len()]);
        }
    }
    let read = handles.counts[0].counts().read.bytes;
    assert!(read < 5 * SIZE / 2, "four times {SIZE} bytes were {read} bytes below");
    Ok(())
}

/// Small pages that wait for a large write must not wait for ever.
#[test]
fn complete_small_pages_leave_while_a_slow_device_is_written() -> Result<(), StorageError> {
    let base = Arc::new(Memory::new());
    let (s, handles) = counted("cache:1:8192,count,throttle:1G:300us", Arc::clone(&base));
    let data = Rng::new(3).bytes(8 * MIB as usize);
    for (i, part) in data.chunks(2048).enumerate() {
        s.write_at(i as u64 * 2048, part)?;
        let (put, below) = ((i as u64 + 1) * 2048, handles.counts[0].counts().write.bytes);
        assert!(put - below <= MIB + 4096, "{put} were put, {below} are below");
    }
    let calls = handles.counts[0].counts().write.calls;
    assert!(calls < 100, "{calls} calls");
    s.sync()?;
    assert!(base.to_vec()? == data);
    Ok(())
}

#[test]
fn what_is_read_next_is_there_before_it_is_asked_for() -> Result<(), StorageError> {
    for (spec, page, ahead) in [
        ("cachea:4:32:8,count", 16 << 10, 8),
        ("bufa:16:4,count", 64 << 10, 2),
        ("eie:16:8:2,count", 64 << 10, 2),
    ] {
        let bytes = Rng::new(2).bytes(MIB as usize);
        let (s, handles) = counted(spec, Arc::new(Memory::from_slice(&bytes)));
        let read = || handles.counts[0].counts().read;
        let mut buf = vec![0; 1000];
        let mut at = 0;
        while at <= 2 * page {
            s.read_at(at, &mut buf)?;
            at += 1000;
        }
        until(|| read().bytes >= (2 + ahead) * page, "pages ahead of the reader");
        while at < MIB {
            let got = s.read_at(at, &mut buf)?;
            assert_eq!(buf[..got], bytes[at as usize..at as usize + got], "{spec} at {at}");
            at += got as u64;
        }
        assert_eq!(read().bytes, MIB, "{spec}: every byte once");
    }
    Ok(())
}

#[test]
fn sharers_keep_to_the_pages_of_the_first() -> Result<(), StorageError> {
    let folder = TempFolder::new("shared");
    let make = |name: &str, spec: &str| {
        let spec = Some(Spec::parse(spec).unwrap());
        let options =
            StorageOptions { create: Create::Truncate, spec, ..StorageOptions::default() };
        open(&folder.file(name), &options)
    };
    let files: Vec<_> = (0..4)
        .map(|i| make(&i.to_string(), if i == 0 { "cachea:1:8:1:7" } else { "cachea:64:99:2:7" }))
        .collect::<Result<_, _>>()?;
    for file in &files {
        let text = Stack(&**file).to_string();
        assert!(text.starts_with("cachea:1:8:"), "{text}");
    }
    let mut models = vec![vec![0; 100_000]; files.len()];
    let mut rng = Rng::new(4);
    for (file, model) in files.iter().zip(&models) {
        file.set_len(model.len() as u64)?;
    }
    for step in 0..4000 {
        let which = rng.below(files.len() as u64) as usize;
        let n = rng.length(5000);
        let at = rng.below((models[which].len() - n) as u64 + 1) as usize;
        if rng.below(2) == 0 {
            let data = rng.bytes(n);
            files[which].write_at(at as u64, &data)?;
            models[which][at..at + n].copy_from_slice(&data);
        } else {
            let mut buf = vec![0; n];
            assert_eq!(files[which].read_at(at as u64, &mut buf)?, n);
            assert!(buf == models[which][at..at + n], "step {step}: {n} at {at} of {which}");
        }
    }
    for (i, (file, model)) in files.iter().zip(&models).enumerate() {
        file.sync()?;
        assert!(std::fs::read(folder.file(&i.to_string())).unwrap() == *model, "{i}");
    }
    drop(files);
    let text = Stack(&*make("after", "cachea:2:4:1:7")?).to_string();
    assert_eq!(text, "cachea:2:4:1:7,file", "nobody has the others any more");
    Ok(())
}

/// The child: its threads, before and after they are needed, and their signals.
#[test]
#[ignore = "the child of threads_are_named_and_take_no_signals"]
fn child_has_threads() {
    let names = || -> Vec<(String, u64)> {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let folders = tasks.map(|entry| entry.unwrap().path());
        let all = folders.map(|folder| {
            let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            let status = text("status");
            let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
            let blocked = u64::from_str_radix(blocked.unwrap_or("0").trim(), 16).unwrap();
            (text("comm").trim().to_owned(), blocked)
        });
        all.filter(|(name, _)| name.starts_with("zonda-io-")).collect()
    };
    let s = Spec::parse("cachea:1:8,bufa:1:4").unwrap().build_in_memory().unwrap();
    s.write_at(0, b"a page that is not complete").unwrap();
    assert_eq!(names(), [], "none before one is needed");
    fill_by_writes(&*s, 0, 100_000, &[7]).unwrap();
    until(|| !names().is_empty(), "a thread");
    for (name, blocked) in names() {
        // All that can be: all but SIGKILL and SIGSTOP, and the two that the C library keeps.
        let wanted: u64 = !(1 << 8 | 1 << 18) & !(1 << 31 | 1 << 32);
        assert_eq!(blocked & wanted, wanted, "{name}: {blocked:x}");
    }
    drop(s);
    until(|| names().is_empty(), "gone with the layer");
}

/// The most memory that this process ever had, in bytes.
fn peak() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}

/// The child: a stream of 192 MiB through 8 MiB of pages, faster than the device, and read again.
#[test]
#[ignore = "the child of memory_is_that_of_the_pages"]
fn child_streams() {
    let folder = TempFolder::new("streams");
    for (i, spec) in
        ["cachea:64:32:8,throttle:2G", "bufa:512:4,throttle:2G", "eie:512:4:1,throttle:2G"]
            .into_iter()
            .enumerate()
    {
        let spec = Some(Spec::parse(spec).unwrap());
        let options =
            StorageOptions { create: Create::Truncate, spec, ..StorageOptions::default() };
        let file = open(&folder.file(&i.to_string()), &options).unwrap();
        let mut part = vec![i as u8 + 1; 50_000];
        let before = peak();
        for at in (0..192 * MIB).step_by(50_000) {
            file.write_at(at, &part).unwrap();
        }
        file.sync().unwrap();
        for at in (0..192 * MIB).step_by(50_000) {
            let got = file.read_at(at, &mut part).unwrap();
            assert!(part[..got].iter().all(|byte| *byte == i as u8 + 1));
        }
        let grown = peak() - before;
        // What was freed before may serve again, so the first is the one that shows it.
        assert!(grown < 14 * MIB, "{grown} bytes for 8 MiB of pages");
        drop(file);
        std::fs::remove_file(folder.file(&i.to_string())).unwrap();
    }
}

fn run_child(name: &str) {
    let exe = std::env::current_exe().expect("this test");
    let out = Command::new(exe).args(["--ignored", "--exact", name]).output().expect("the child");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn threads_are_named_and_take_no_signals() {
    run_child("child_has_threads");
}

#[test]
fn memory_is_that_of_the_pages() {
    run_child("child_streams");
}

/// Forks while the threads are at work; in the child nothing hangs, reads see what was put, and
/// the end writes nothing.
#[test]
fn a_forked_child_reads_and_ends() {
    let folder = TempFolder::new("fork");
    for spec in [
        "cachea:1:16:4",
        "bufa:4:3",
        "cache:1:4,eie:8:4:1",
        "cachea:1:8:1:9",
        "direct",
        "mmap",
        "cache",
    ] {
        // Slow enough that the thread is nearly always at a transfer, with pages in its hands.
        let parsed = Some(Spec::parse(&format!("{spec},throttle:200M")).unwrap());
        let options =
            StorageOptions { create: Create::Truncate, spec: parsed, ..StorageOptions::default() };
        let path = folder.file("a");
        let file = open(&path, &options).unwrap();
        let data = Rng::new(6).bytes(400_000);
        for round in 0..40_usize {
            let mut buf = vec![0; 100_000];
            file.read_at(round as u64 * 1000, &mut buf[..50_000]).unwrap();
            for (i, part) in data.chunks(3000).enumerate() {
                file.write_at(i as u64 * 3000, part).unwrap();
            }
            let held = zonda_runtime::fork::quiet(None);
            // SAFETY: the child calls what is under test, and leaves by `_exit`.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                drop(held);
                // SAFETY: alarm takes no pointer: a child that hangs is ended by it.
                unsafe { libc::alarm(10) };
                let mut good = true;
                for at in (0..=300_000).step_by(60_000) {
                    let got = file.read_at(at as u64, &mut buf);
                    good &= got == Ok(buf.len()) && buf == data[at..at + buf.len()];
                }
                good &= file.len() == Ok(data.len() as u64);
                drop(file);
                // SAFETY: nothing of the parent's is to be run down here.
                unsafe { libc::_exit(if good { 0 } else { 3 }) };
            }
            drop(held);
            let mut status = 0;
            // SAFETY: `status` is ours.
            unsafe { libc::waitpid(pid, &raw mut status, 0) };
            assert!(libc::WIFEXITED(status), "{spec} round {round}: signal {status}");
            assert_eq!(libc::WEXITSTATUS(status), 0, "{spec} round {round}");
        }
        file.sync().unwrap();
        assert!(std::fs::read(&path).unwrap() == data, "{spec}");
    }
}

/// What waits in its pages is its parent's to write, however much room the child needs for others.
#[test]
fn a_forked_child_writes_nothing_of_its_parent() {
    let folder = TempFolder::new("fork-writes");
    let path = folder.file("a");
    let data = Rng::new(7).bytes(40 * 4096);
    for spec in ["cache:1:4", "cachea:1:4:1"] {
        std::fs::write(&path, &data).unwrap();
        let spec = Some(Spec::parse(spec).unwrap());
        let file = open(&path, &StorageOptions { spec, write: true, ..StorageOptions::default() })
            .unwrap();
        file.write_at(100, b"mine").unwrap();
        let held = zonda_runtime::fork::quiet(None);
        // SAFETY: the child calls what is under test, and leaves by `_exit`.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            drop(held);
            // SAFETY: alarm takes no pointer: a child that hangs is ended by it.
            unsafe { libc::alarm(10) };
            let mut good = true;
            let mut byte = [0];
            for at in (0..data.len()).step_by(1024) {
                good &= file.read_at(at as u64, &mut byte) == Ok(1) && byte[0] == data[at];
            }
            file.rest();
            // SAFETY: nothing of the parent's is to be run down here.
            unsafe { libc::_exit(if good { 0 } else { 3 }) };
        }
        drop(held);
        let mut status = 0;
        // SAFETY: `status` is ours.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!(status, 0);
        assert!(std::fs::read(&path).unwrap() == data, "the child has written");
        file.sync().unwrap();
        assert_eq!(&std::fs::read(&path).unwrap()[100..104], b"mine");
    }
}

#[test]
fn whole_blocks_pass_the_cache_of_the_system_by() -> Result<(), StorageError> {
    let folder = TempFolder::new("direct");
    let path = folder.file("a");
    let spec = Some(Spec::parse("direct").unwrap());
    let options = StorageOptions { create: Create::Truncate, spec, ..StorageOptions::default() };
    let file = open(&path, &options)?;
    let is_direct = |fd: std::path::PathBuf| {
        let name = fd.file_name()?.to_owned();
        let same = std::fs::read_link(&fd).ok()? == path;
        let info =
            std::fs::read_to_string(std::path::Path::new("/proc/self/fdinfo").join(name)).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?.trim().to_owned();
        (same && i32::from_str_radix(&flags, 8).ok()? & libc::O_DIRECT != 0).then_some(())
    };
    let fds = std::fs::read_dir("/proc/self/fd").unwrap();
    if fds.filter_map(|entry| is_direct(entry.ok()?.path())).next().is_none() {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: no O_DIRECT at {}", path.display());
        return Ok(());
    }
    // Nothing of this whole-block write stays in the system's cache, by its own account of it.
    let data = Rng::new(8).bytes(3 * MIB as usize + 77);
    file.write_at(0, &data)?;
    assert_eq!(file.len()?, data.len() as u64, "no block too long");
    assert!(std::fs::read(&path).unwrap() == data);
    // Neighbours in one block, by two threads.
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let file = &file;
            scope.spawn(move || {
                for i in (thread * 10..40_000).step_by(20) {
                    file.write_at(i, &[thread as u8 + 1; 10]).unwrap();
                }
            });
        }
    });
    let back = std::fs::read(&path).unwrap();
    assert!(back[..40_000].chunks(20).all(|two| two[..10] == [1; 10] && two[10..] == [2; 10]));
    assert!(back[40_000..] == data[40_000..]);
    Ok(())
}

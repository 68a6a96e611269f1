//! The end of a program that has files open.
//!
//! What was put is committed, as a close would. `exit` may be called anywhere, also in a signal handler
//! while its own thread is in the middle of a call and has locks that it will never give back, or while
//! another thread is at a long call: batch systems end programs so. Then threads do the work, this one
//! waits for them no longer than [`MOST_WAIT`] where they wait for others, and one line says what was
//! given up. A thread that has a lock of the allocator cannot even start them: see [`timer`].

mod timer;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use timer::ExitTimer;
use zonda_runtime::fork::MOST_WAIT;
use zonda_runtime::worker::{self, Purpose};

use crate::current_call::is_in_call;
use crate::handles::{self, SharedFile};

/// How often the exiting thread looks.
const STEP: Duration = Duration::from_millis(1);
/// How long it waits for the trace, after all else.
const TRACE_WAIT: Duration = Duration::from_millis(200);

/// No panic leaves a handler that C calls.
fn guarded(body: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(body));
}

/// Has the process end by [`at_exit`], also where it ends by `quick_exit`.
pub(crate) fn register() {
    unsafe extern "C" {
        fn at_quick_exit(function: extern "C" fn()) -> libc::c_int;
    }
    extern "C" fn quickly() {
        timer::note_quick();
        at_exit();
    }
    // SAFETY: the handler is a function of this library, which is never unloaded, and takes nothing. Where there is no
    // memory for it, such an end is one without it, as in any other library.
    let _ = unsafe { at_quick_exit(quickly) };
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn on_exit(
                function: extern "C" fn(libc::c_int, *mut libc::c_void),
                argument: *mut libc::c_void,
            ) -> libc::c_int;
        }
        extern "C" fn with_status(status: libc::c_int, _: *mut libc::c_void) {
            timer::note_status(status);
            at_exit();
        }
        // SAFETY: the handler is a function of this library, which is never unloaded, and takes nothing.
        let _ = unsafe { on_exit(with_status, std::ptr::null_mut()) };
    }
    #[cfg(not(target_env = "gnu"))]
    {
        // SAFETY: as above.
        let _ = unsafe { libc::atexit(at_exit) };
    }
}

/// A program that ends without `nc_close` keeps what it put. An error goes to standard error: no call can
/// return it any more.
extern "C" fn at_exit() {
    worker::note_end();
    if !handles::is_any_open() && !zonda_trace::on() {
        return;
    }
    let watch = ExitTimer::begin(MOST_WAIT);
    timer::try_memory();
    drop(watch);
    let is_inside = is_in_call();
    // Other locks that it may have are seldom in the way.
    let _watch = if is_inside { ExitTimer::begin(MOST_WAIT + 2 * TRACE_WAIT) } else { None };
    let to_commit =
        |file: &SharedFile| file.dataset.is_writable() && !file.dataset.is_out_of_reach();
    let mut files = handles::all();
    files.retain(to_commit);
    if !is_inside && files.iter().all(|file| file.dataset.is_free()) {
        for file in files {
            guarded(|| told(file.dataset.drain()));
        }
        guarded(zonda_trace::flush);
    } else {
        guarded(|| in_time(files, is_inside));
    }
}

/// Says what could not be committed.
fn told(done: zonda::Result<()>) {
    if let Err(error) = done {
        say(&format!(
            "zonda: the program ended without nc_close, and what it put is not all kept: {error}\n"
        ));
    }
}

/// Says a line in one call of the system, which takes no lock.
fn say(line: &str) {
    // SAFETY: the bytes are those of the line. Where nobody reads them, nothing is to be done.
    let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// The work on one file, done by a thread.
struct FileCommit {
    file: SharedFile,
    /// It waits for the call of another thread.
    waits: AtomicBool,
    is_done: AtomicBool,
    /// There was no thread for it.
    has_no_thread: AtomicBool,
}

/// Has threads commit the files. Where the exiting thread may have locks itself, all of it has to be
/// done in [`MOST_WAIT`]; else only the waiting counts.
fn in_time(files: Vec<SharedFile>, is_inside: bool) {
    let work: Vec<Arc<FileCommit>> = files.into_iter().map(FileCommit::begin).collect();
    // Where there are no threads to be had, as far as it goes without.
    let without_thread = work.iter().filter(|work| work.has_no_thread.load(Ordering::Relaxed));
    for work in without_thread.filter(|_| !is_inside) {
        guarded(|| told(work.file.dataset.drain()));
        work.is_done.store(true, Ordering::Release);
    }
    let begin = Instant::now();
    let mut waited = Duration::ZERO;
    let limit = |waited: Duration| waited >= MOST_WAIT || is_inside && begin.elapsed() >= MOST_WAIT;
    while work.iter().any(|work| !work.is_done()) && !limit(waited) {
        let before = Instant::now();
        std::thread::sleep(STEP);
        let is_at_work =
            |work: &Arc<FileCommit>| !work.is_done() && !work.waits.load(Ordering::Acquire);
        if work.iter().any(is_at_work) {
            continue;
        }
        waited += before.elapsed();
    }
    let given_up: Vec<&Arc<FileCommit>> = work.iter().filter(|work| !work.is_done()).collect();
    if let Some(first) = given_up.first() {
        first.tell(given_up.len());
    }
    // The trace comes last. What this thread has of it, it may be in the middle of.
    let (begin, is_flushed) = (Instant::now(), Arc::new(AtomicBool::new(!zonda_trace::on())));
    let flushed = Arc::clone(&is_flushed);
    if zonda_trace::on() {
        start(move || {
            zonda_trace::flush();
            flushed.store(true, Ordering::Release);
        });
    }
    while !is_flushed.load(Ordering::Acquire) && begin.elapsed() < TRACE_WAIT {
        std::thread::sleep(STEP);
    }
}

/// Starts a thread; false where there is none.
fn start(body: impl FnOnce() + Send + 'static) -> bool {
    let guarded_body = move || guarded(body);
    worker::spawn("zonda-exit".to_owned(), Purpose::Exit, guarded_body).is_ok()
}

impl FileCommit {
    fn begin(file: SharedFile) -> Arc<FileCommit> {
        let (waits, is_done) = (AtomicBool::new(true), AtomicBool::new(false));
        let work =
            Arc::new(FileCommit { file, waits, is_done, has_no_thread: AtomicBool::new(false) });
        let mine = Arc::clone(&work);
        let is_started = start(move || {
            let waits = |waits| mine.waits.store(waits, Ordering::Release);
            // The queue goes on by itself, which is no waiting.
            waits(false);
            guarded(|| told(mine.file.dataset.drain_telling(&waits)));
            mine.is_done.store(true, Ordering::Release);
        });
        work.has_no_thread.store(!is_started, Ordering::Relaxed);
        work
    }

    fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Says what is given up.
    fn tell(&self, n_files: usize) {
        let path = String::from_utf8_lossy(self.file.path.as_bytes());
        let more = match n_files {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        say(&format!(
            "zonda: the program ended during a call on {path}{more}: what was put since the last nc_sync, if anything, is given up\n"
        ));
    }
}

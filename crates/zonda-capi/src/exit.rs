//! The end of a program that has files open.
//!
//! What was put is committed, as a close would. Batch systems end programs by signals, so that `exit` may
//! be called in a signal handler: while its own thread is in a call and holds locks that it will never
//! give back, or while another thread is in a long call. Then other threads commit, the exiting thread
//! waits for them no longer than [`MOST_WAIT`] while they wait for others, and one line on standard error
//! names what was given up. A thread that holds a lock of the allocator cannot even start threads: see
//! [`timer`].

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
use crate::tuning::{EXIT_STEP, EXIT_TRACE_WAIT};

/// Runs `body`; no panic of it leaves the handler, which C calls.
fn guarded(body: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(body));
}

/// Makes the end of the process call [`at_exit`], also an end by `quick_exit`.
pub(crate) fn register() {
    unsafe extern "C" {
        fn at_quick_exit(function: extern "C" fn()) -> libc::c_int;
    }
    extern "C" fn at_quick_end() {
        timer::note_quick();
        at_exit();
    }
    // SAFETY: the handler is a function of this library, which is never unloaded, and takes nothing. Where there is no
    // memory to register it, such an end happens without it, as with any other library.
    let _ = unsafe { at_quick_exit(at_quick_end) };
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn on_exit(
                function: extern "C" fn(libc::c_int, *mut libc::c_void),
                argument: *mut libc::c_void,
            ) -> libc::c_int;
        }
        extern "C" fn at_end(status: libc::c_int, _: *mut libc::c_void) {
            timer::note_status(status);
            at_exit();
        }
        // SAFETY: the handler is a function of this library, which is never unloaded, and takes nothing.
        let _ = unsafe { on_exit(at_end, std::ptr::null_mut()) };
    }
    #[cfg(not(target_env = "gnu"))]
    {
        // SAFETY: as above.
        let _ = unsafe { libc::atexit(at_exit) };
    }
}

/// Commits what a program put that ends without `nc_close`. An error goes to standard error, since no call
/// can return it any more.
extern "C" fn at_exit() {
    worker::note_end();
    if !handles::is_any_open() && !zonda_trace::on() {
        guarded(finish_servers);
        return;
    }
    let watch = ExitTimer::begin(MOST_WAIT);
    timer::try_memory();
    drop(watch);
    let is_in_call = is_in_call();
    // It may hold other locks, too, but they are seldom in the way.
    let _watch = if is_in_call { ExitTimer::begin(MOST_WAIT + 2 * EXIT_TRACE_WAIT) } else { None };
    let to_commit =
        |file: &SharedFile| file.dataset.is_writable() && !file.dataset.is_out_of_reach();
    let mut files = handles::all();
    files.retain(to_commit);
    if !is_in_call && files.iter().all(|file| file.dataset.is_free()) {
        for file in files {
            guarded(|| report(&file, file.dataset.drain()));
        }
        guarded(finish_servers);
        guarded(zonda_trace::flush);
    } else {
        guarded(|| commit_in_time(files, is_in_call));
    }
}

/// Waits until I/O servers have closed what the program closed: who runs after it finds whole files.
fn finish_servers() {
    if let Err(error) = zonda::servers::finish() {
        write_line(&format!("zonda: {error}\n"));
    }
}

/// Reports what could not be committed.
fn report(file: &SharedFile, done: zonda::Result<()>) {
    match done {
        Ok(()) => {}
        // Nothing went wrong but that the program ends so.
        Err(error) if file.dataset.is_of_ranks() => write_line(&format!("zonda: {error}\n")),
        Err(error) => write_line(&format!(
            "zonda: the program ended without nc_close, and what it put is not all kept: {error}\n"
        )),
    }
}

/// Writes a line to standard error by one system call, which takes no lock.
pub(crate) fn write_line(line: &str) {
    // SAFETY: the bytes are those of the line. Where nobody reads them, nothing is to be done.
    let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// The commit of one file, by a thread.
struct FileCommit {
    file: SharedFile,
    /// The thread waits for the call of another one.
    waits: AtomicBool,
    is_done: AtomicBool,
    /// No thread could be started.
    has_no_thread: AtomicBool,
}

/// Commits the files by threads of their own. Where the exiting thread may hold locks itself, all of it has
/// to be done within [`MOST_WAIT`]; else only the time counts in which all threads wait.
fn commit_in_time(files: Vec<SharedFile>, is_in_call: bool) {
    let commits: Vec<Arc<FileCommit>> = files.into_iter().map(FileCommit::begin).collect();
    // Where no threads can be started, this one commits.
    let without_thread =
        commits.iter().filter(|commit| commit.has_no_thread.load(Ordering::Relaxed));
    for commit in without_thread.filter(|_| !is_in_call) {
        guarded(|| report(&commit.file, commit.file.dataset.drain()));
        commit.is_done.store(true, Ordering::Release);
    }
    let begin = Instant::now();
    let mut waited = Duration::ZERO;
    let limit =
        |waited: Duration| waited >= MOST_WAIT || is_in_call && begin.elapsed() >= MOST_WAIT;
    while commits.iter().any(|commit| !commit.is_done()) && !limit(waited) {
        let before = Instant::now();
        std::thread::sleep(EXIT_STEP);
        let is_at_work =
            |commit: &Arc<FileCommit>| !commit.is_done() && !commit.waits.load(Ordering::Acquire);
        if commits.iter().any(is_at_work) {
            continue;
        }
        waited += before.elapsed();
    }
    let given_up: Vec<&Arc<FileCommit>> =
        commits.iter().filter(|commit| !commit.is_done()).collect();
    if let Some(first) = given_up.first() {
        first.report_given_up(given_up.len());
    }
    // The trace comes last, and by another thread: this one may be in the middle of recording an event.
    let (begin, is_flushed) = (Instant::now(), Arc::new(AtomicBool::new(!zonda_trace::on())));
    let flushed = Arc::clone(&is_flushed);
    if zonda_trace::on() {
        start(move || {
            zonda_trace::flush();
            flushed.store(true, Ordering::Release);
        });
    }
    while !is_flushed.load(Ordering::Acquire) && begin.elapsed() < EXIT_TRACE_WAIT {
        std::thread::sleep(EXIT_STEP);
    }
}

/// Starts a thread; false where that is not possible.
fn start(body: impl FnOnce() + Send + 'static) -> bool {
    let guarded_body = move || guarded(body);
    worker::spawn("zonda-exit".to_owned(), Purpose::Exit, guarded_body).is_ok()
}

impl FileCommit {
    fn begin(file: SharedFile) -> Arc<FileCommit> {
        let (waits, is_done) = (AtomicBool::new(true), AtomicBool::new(false));
        let commit =
            Arc::new(FileCommit { file, waits, is_done, has_no_thread: AtomicBool::new(false) });
        let of_thread = Arc::clone(&commit);
        let is_started = start(move || {
            let waits = |waits| of_thread.waits.store(waits, Ordering::Release);
            // Time in which the queue of the file writes does not count as waiting.
            waits(false);
            let file = &of_thread.file;
            guarded(|| report(file, file.dataset.drain_reporting(&waits)));
            of_thread.is_done.store(true, Ordering::Release);
        });
        commit.has_no_thread.store(!is_started, Ordering::Relaxed);
        commit
    }

    fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Reports that this file, and others, are given up.
    fn report_given_up(&self, n_files: usize) {
        let path = String::from_utf8_lossy(self.file.path.as_bytes());
        let more = match n_files {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        write_line(&format!(
            "zonda: the program ended during a call on {path}{more}: what was put since the last nc_sync, if anything, is given up\n"
        ));
    }
}

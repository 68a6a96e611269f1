//! The helper process `zonda iod`, seen from the process that it watches.
//!
//! The helper maps the memory that holds accepted values, knows their files, and sleeps. Should this process be
//! killed, it carries out the puts that are not committed ([`serve`]).

mod find;
mod message;
mod place;
mod serve;

use std::os::fd::BorrowedFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zonda_runtime::lock::{Global, MutexGuard, Rank};

use zonda_shared::{Channel, Happened};

pub(super) use message::HelperMessage;
pub use serve::serve;

/// The process id, and its helper; the helper is `None` where it could not be started.
static HELPER: Global<ProcessHelper> = Global::new(Rank::Helper, None, || None);

type ProcessHelper = Option<(u32, Option<Arc<Helper>>)>;

/// The message of a helper that is ready.
const READY: &[u8] = b"zonda iod 2";

/// A helper that was started.
#[derive(Debug)]
pub(super) struct Helper {
    channel: Channel,
    is_gone: AtomicBool,
}

fn lock() -> MutexGuard<'static, ProcessHelper> {
    HELPER.lock()
}

/// Warns that puts are carried out without a helper.
pub(super) fn warn(why: &dyn std::fmt::Display) {
    use std::io::Write;
    // A program whose standard error is closed still runs.
    let _ = writeln!(
        std::io::stderr().lock(),
        "zonda: ZONDA_ASYNC=helper: {why}; puts are carried out by this process alone, as with \
         ZONDA_ASYNC=on"
    );
}

impl Helper {
    /// The helper of this process, which is started if there is none. Where that fails, a warning is printed once.
    pub(super) fn of_process() -> Option<Arc<Helper>> {
        let pid = std::process::id();
        let mut known = lock();
        if let Some((its_pid, helper)) = &*known
            && *its_pid == pid
            && helper.as_ref().is_none_or(|helper| !helper.is_gone.load(Ordering::Relaxed))
        {
            return helper.clone();
        }
        let helper = match Helper::start() {
            Ok(helper) => Some(Arc::new(helper)),
            Err(why) => {
                warn(&why);
                None
            }
        };
        *known = Some((pid, helper.clone()));
        helper
    }

    fn start() -> Result<Helper, String> {
        let program = find::program()
            .map_err(|why| format!("{why} (ZONDA_IOD names the program that may be run)"))?;
        let failed = |why: &dyn std::fmt::Display| {
            format!("{}: {why} (ZONDA_IOD names another one)", program.display())
        };
        let (mine, its) = Channel::pair().map_err(|error| failed(&error))?;
        // It starts another process and ends at once, so that the program never sees a child of this library.
        let mut command = Command::new(&program);
        command
            .args(["iod", "--started", &std::process::id().to_string()])
            .stdin(Stdio::from(its.into_fd()))
            .stdout(Stdio::null());
        // The locks of files are handed over, so it takes none. It must not trace, preload or write behind by itself.
        command.env("ZONDA_ASYNC", "off").env("HDF5_USE_FILE_LOCKING", "FALSE");
        command.env_remove("ZONDA_TRACE").env_remove("LD_PRELOAD");
        let started = command.status();
        drop(command);
        if let Err(error) = started
            && error.raw_os_error() != Some(ECHILD)
        {
            return Err(failed(&error));
        }
        match mine.wait(None, false) {
            Ok(Happened::Message(text, _)) if text == READY => {}
            Ok(_) => return Err(failed(&"is not `zonda` of this version, or did not start")),
            Err(error) => return Err(failed(&error)),
        }
        let helper = Helper { channel: mine, is_gone: AtomicBool::new(false) };
        let hello = HelperMessage::Hello { pid: std::process::id() };
        if helper.send(&hello, None) { Ok(helper) } else { Err(failed(&"ended at once")) }
    }

    /// A number for a file. No two files of the process have the same number, even with different helpers: values
    /// that were left for a helper which has ended are still in the memory that the next one sees.
    pub(super) fn new_id() -> u64 {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        NEXT_ID.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a message; false where the helper has ended.
    pub(super) fn send(&self, message: &HelperMessage, fd: Option<BorrowedFd<'_>>) -> bool {
        self.channel.send(&message.encode(), fd).is_ok()
    }

    /// Whether the helper has ended.
    pub(super) fn is_cut(&self) -> bool {
        self.channel.is_cut()
    }

    /// Notes that the helper has ended. Files that are opened later start another one.
    pub(super) fn is_gone(&self) {
        if !self.is_gone.swap(true, Ordering::Relaxed) {
            warn(&"the helper process has ended");
        }
    }
}

/// `ECHILD` of Linux: the program ignores `SIGCHLD`, so the status of the child is not kept.
const ECHILD: i32 = 10;

//! What a server counts for those who look at it (`zonda top`), and what it and its clients record in a trace.
//!
//! Counting is a few additions for each call. Nothing here waits for the work of the server, so that it answers while its disk does not.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use zonda_runtime::lock::{Mutex, Rank};
use zonda_trace::{Args, EventKind, TraceSpan};

use super::board::Board;
use super::look::{ClientLook, FileLook, ServerLook};
use super::queue::{Load, Waiting};
use super::wire::{RankOf, What};

/// What a server has under way.
#[derive(Debug)]
pub(super) struct Watch {
    began: Instant,
    entries: Mutex<Entries>,
    totals: Arc<Totals>,
}

/// Who is there. What has gone is taken out when the next one comes.
#[derive(Debug, Default)]
struct Entries {
    clients: Vec<Weak<ClientWatch>>,
    files: Vec<Weak<FileWatch>>,
}

/// Calls and the bytes of their values.
#[derive(Debug, Default)]
struct Counted {
    calls: AtomicU64,
    bytes: AtomicU64,
}

impl Counted {
    fn add(&self, n_bytes: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }

    fn look(&self) -> (u64, u64) {
        (self.calls.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

/// Of one file of one client, or of all.
#[derive(Debug, Default)]
struct Totals {
    taken: Counted,
    done: Counted,
    /// Values and calls that wait.
    waiting_bytes: AtomicU64,
    waiting_calls: AtomicU64,
}

impl Totals {
    fn take(&self, n_bytes: usize) {
        self.taken.add(n_bytes);
        self.waiting_bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
        self.waiting_calls.fetch_add(1, Ordering::Relaxed);
    }

    fn let_go(&self, n_bytes: usize) {
        self.waiting_bytes.fetch_sub(n_bytes as u64, Ordering::Relaxed);
        self.waiting_calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A client that is there.
#[derive(Debug)]
pub(super) struct ClientWatch {
    pid: u32,
    load: Arc<Load>,
}

/// A file of a client, as long as calls of it are carried out.
#[derive(Debug)]
pub(super) struct FileWatch {
    path: PathBuf,
    /// Its number in the trace.
    in_trace: u32,
    pid: u32,
    ranks: Option<RankOf>,
    began: Instant,
    is_over: AtomicBool,
    own: Totals,
    of_all: Arc<Totals>,
}

impl Watch {
    pub(super) fn new() -> Watch {
        let entries = Mutex::ranked(Rank::Watch, Entries::default());
        Watch { began: Instant::now(), entries, totals: Arc::default() }
    }

    /// A client has come; it is there as long as what this gives.
    pub(super) fn client(&self, pid: u32, load: &Arc<Load>) -> Arc<ClientWatch> {
        let client = Arc::new(ClientWatch { pid, load: Arc::clone(load) });
        let mut entries = self.entries.lock();
        entries.clients.retain(|known| known.strong_count() > 0);
        entries.clients.push(Arc::downgrade(&client));
        client
    }

    /// A client creates a file.
    pub(super) fn file(
        &self,
        client: &ClientWatch,
        path: &Path,
        ranks: Option<RankOf>,
    ) -> Arc<FileWatch> {
        let file = Arc::new(FileWatch {
            path: path.to_owned(),
            in_trace: zonda_trace::file(path),
            pid: client.pid,
            ranks,
            began: Instant::now(),
            is_over: AtomicBool::new(false),
            own: Totals::default(),
            of_all: Arc::clone(&self.totals),
        });
        let mut entries = self.entries.lock();
        entries.files.retain(|known| known.upgrade().is_some_and(|known| known.is_there()));
        entries.files.push(Arc::downgrade(&file));
        file
    }

    /// What there is now.
    pub(super) fn look(&self, board: &Board) -> ServerLook {
        let entries = self.entries.lock();
        let clients: Vec<_> = entries.clients.iter().filter_map(Weak::upgrade).collect();
        let files: Vec<_> = entries.files.iter().filter_map(Weak::upgrade).collect();
        drop(entries);
        let files: Vec<FileLook> = files
            .iter()
            .filter(|file| file.is_there())
            .map(|file| file.look(|team| board.waited_for(team)))
            .collect();
        let of_client = |client: Arc<ClientWatch>| ClientLook {
            pid: client.pid,
            n_files: files.iter().filter(|file| file.pid == client.pid).count(),
            waits: client.load.is_waited_for(),
        };
        let (memory_bytes, most_memory_bytes) = memory();
        ServerLook {
            pid: std::process::id(),
            age_ns: nanoseconds(self.began),
            taken: self.totals.taken.look().into(),
            done: self.totals.done.look().into(),
            waiting_bytes: self.totals.waiting_bytes.load(Ordering::Relaxed),
            n_failed: board.n_failed(),
            memory_bytes,
            most_memory_bytes,
            clients: clients.into_iter().map(of_client).collect(),
            files,
        }
    }
}

impl FileWatch {
    fn is_there(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    /// For events about calls of the file.
    fn args(&self, name: &'static str, n_bytes: usize) -> Args {
        let offset = self.ranks.map_or(0, |of| of.rank as u64 + 1);
        let bytes = n_bytes as u64;
        Args { file: self.in_trace, item: self.pid, offset, bytes, name, ..Args::default() }
    }

    /// A call was taken from the client. Gives the moment for the trace.
    pub(super) fn take(&self, what: &What, n_bytes: usize) -> u64 {
        self.own.take(n_bytes);
        self.of_all.take(n_bytes);
        zonda_trace::instant(EventKind::ServerTake, || self.args(word(what), n_bytes));
        self.levels();
        zonda_trace::start()
    }

    /// The calling thread will carry calls of the file out.
    pub(super) fn enter(&self) {
        zonda_trace::set_current_file(self.in_trace);
    }

    /// A call is to be carried out, until what this gives is dropped.
    pub(super) fn begin(&self, call: &Waiting) -> TraceSpan {
        let args = || self.args(word(&call.what), call.values.len());
        zonda_trace::span_since(call.taken, EventKind::ServerQueue, args);
        zonda_trace::span(EventKind::ServerCall, args)
    }

    /// A call was carried out.
    pub(super) fn done(&self, n_bytes: usize) {
        self.own.done.add(n_bytes);
        self.of_all.done.add(n_bytes);
        self.let_go(n_bytes);
    }

    /// A call that was taken waits no more.
    pub(super) fn let_go(&self, n_bytes: usize) {
        self.own.let_go(n_bytes);
        self.of_all.let_go(n_bytes);
        self.levels();
    }

    /// No call of the file is carried out any more.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn levels(&self) {
        let now = |level: &AtomicU64| level.load(Ordering::Relaxed);
        zonda_trace::counter(EventKind::QueueBytes, 0, || now(&self.of_all.waiting_bytes));
        zonda_trace::counter(EventKind::QueueJobs, 0, || now(&self.of_all.waiting_calls));
    }

    fn look(&self, waited_for: impl Fn([u64; 2]) -> Vec<usize>) -> FileLook {
        FileLook {
            path: self.path.to_string_lossy().into_owned(),
            pid: self.pid,
            rank: self.ranks.map(|of| of.rank),
            n_ranks: self.ranks.map(|of| of.size),
            age_ns: nanoseconds(self.began),
            taken: self.own.taken.look().into(),
            done: self.own.done.look().into(),
            waiting_bytes: self.own.waiting_bytes.load(Ordering::Relaxed),
            waits_for_ranks: self.ranks.map(|of| waited_for(of.team)).unwrap_or_default(),
        }
    }
}

/// The time in which a shadow waits for calls of other ranks: from its first pause to the end of this.
#[derive(Debug)]
pub(super) struct Gathering {
    rank: usize,
    began: u64,
}

impl Gathering {
    pub(super) fn new(rank: usize) -> Gathering {
        Gathering { rank, began: 0 }
    }

    /// There is something to wait for.
    pub(super) fn pause(&mut self) {
        if self.began == 0 {
            self.began = zonda_trace::start();
        }
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        let args = || Args { offset: self.rank as u64 + 1, ..Args::default() };
        zonda_trace::span_since(self.began, EventKind::ServerGather, args);
    }
}

/// What clients and servers call a message in traces.
pub(super) fn word(what: &What) -> &'static str {
    match what {
        What::Create(_) => "create",
        What::Read(_) => "read",
        What::Call(told) => told.call.word(),
        What::Settle { .. } => "settle",
        What::Load => "load",
    }
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Bytes of memory that this process has, and had at most; 0 where the system does not say.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or_default().saturating_mul(1024)
    };
    (of("VmRSS:"), of("VmHWM:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file<'a>(look: &'a ServerLook, path: &str) -> Option<&'a FileLook> {
        look.files.iter().find(|file| file.path == path)
    }

    #[test]
    fn what_waits_is_what_was_taken_and_is_not_done() {
        let (board, load) = (Board::new(None), Arc::new(Load::new()));
        let client = board.watch.client(77, &load);
        let ranks = RankOf { team: [1, 2], rank: 3, size: 4 };
        let one = board.watch.file(&client, Path::new("/a.nc"), Some(ranks));
        let other = board.watch.file(&client, Path::new("/b.nc"), None);
        for bytes in [100, 20, 3] {
            one.take(&What::Load, bytes);
        }
        other.take(&What::Load, 5000);
        one.done(100);
        one.let_go(3);
        let look = board.watch.look(&board);
        assert_eq!((look.taken.calls, look.taken.bytes, look.done.bytes), (4, 5123, 100));
        assert_eq!((look.waiting_bytes, look.clients.len()), (5020, 1));
        let seen = file(&look, "/a.nc").unwrap();
        assert_eq!((seen.waiting_bytes, seen.done.calls, seen.taken.calls), (20, 1, 3));
        assert_eq!((seen.pid, seen.rank, seen.n_ranks), (77, Some(3), Some(4)));
        assert!(look.memory_bytes > 0 && look.most_memory_bytes >= look.memory_bytes);
        assert!(
            !look.clients[0].waits
                && load.while_waiting(|| board.watch.look(&board).clients[0].waits)
        );
        // What is over is not there, what was counted is.
        other.end();
        drop(client);
        let look = board.watch.look(&board);
        assert!(file(&look, "/b.nc").is_none() && file(&look, "/a.nc").is_some());
        assert_eq!((look.clients.len(), look.taken.bytes), (0, 5123));
    }
}

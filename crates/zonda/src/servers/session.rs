//! What a server does for one client.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zonda_format::Error;
use zonda_model::{Answer, NcError};
use zonda_runtime::memory;
use zonda_runtime::worker::{self, Purpose};
use zonda_served::{Call, Reply, Told};
use zonda_shared::{Channel, Happened, Process, RingNews, RingReader};

use super::board::Board;
use super::buffers::{Buffers, Bytes};
use super::connection::notice_of;
use super::look;
use super::progress::Progress;
use super::queue::{Load, Queue, Waiting};
use super::reading::SessionReads;
use super::team::Team;
use super::watch::{ClientWatch, FileWatch};
use super::wire::{
    self, Creation, FrameHead, Hello, NamedFile, Notice, Outcome, RankOf, SentError, What,
};
use super::work::FileWork;
use crate::error::Result;
use crate::tuning::{
    SERVER_LEAST_QUEUE_BYTES, SERVER_QUEUE_BYTES, SERVER_SLEEP, SERVER_SLEEPS, SERVER_SPARE_BYTES,
};

/// The client at the other end.
#[derive(Debug)]
pub(super) struct Client {
    channel: Channel,
    /// Forked children of the client have its end of the channel, too.
    process: Option<Process>,
    news: RingNews,
}

impl Client {
    fn is_gone(&self) -> bool {
        self.channel.is_cut() || self.process.as_ref().is_some_and(Process::has_ended)
    }

    /// Sleeps until it says something, or is gone.
    fn wait(&self) {
        // What it says is that it has told a call.
        let _ = self.channel.wait(self.process.as_ref(), true);
    }

    /// Says something to the client, and may show it some memory.
    pub(super) fn send(&self, message: &[u8], memory: Option<BorrowedFd<'_>>) {
        // One that waits for it reads on, as soon as it has handed its question over; one that is gone needs none.
        while let Err(error) = self.channel.send(message, memory) {
            if error.kind() != io::ErrorKind::WouldBlock || self.is_gone() {
                return;
            }
        }
    }

    /// Answers what was asked.
    pub(super) fn reply(&self, done: Result<Reply>) {
        let notice = notice_of(Outcome::of(done))
            .or_else(|error| notice_of(Outcome::Failed((&error).into())));
        if let Ok((bytes, memory)) = notice {
            self.send(&bytes, memory.as_ref().map(std::os::fd::AsFd::as_fd));
        }
    }

    /// Tells that a call is not carried out, since its file is over.
    pub(super) fn refuse(&self, file: u64, call: &Waiting, why: Option<&SentError>) {
        let text = "the I/O server has ended the file before this call: it could not be made or closed, or another rank ended early";
        let over = || Error::answered(NcError::Io, Answer::Request, text);
        let error = why.map_or_else(over, SentError::error);
        if call.is_asked { self.reply(Err(error)) } else { self.fail(file, (&error).into()) }
    }

    /// Tells what went wrong with a call that was told.
    pub(super) fn fail(&self, file: u64, error: SentError) {
        let notice = Notice::Failure { file, error };
        if let Ok(bytes) = wire::encode(&notice) {
            // Where there is no room, failures before it wait to be read; and it is on standard error, too.
            let _ = self.channel.send_now(&bytes);
            self.news.tell();
        }
    }
}

/// A file of the client.
struct ClientFile {
    queue: Arc<Queue>,
    path: PathBuf,
    is_classic: bool,
    rank: Option<(Arc<Team>, usize)>,
    watch: Arc<FileWatch>,
}

struct Session {
    client: Arc<Client>,
    board: Arc<Board>,
    load: Arc<Load>,
    watch: Arc<ClientWatch>,
    progress: Arc<Progress>,
    buffers: Arc<Buffers>,
    files: HashMap<u64, ClientFile>,
    /// Values of which more come.
    pieces: HashMap<u64, Vec<u8>>,
    reads: SessionReads,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// Serves a client until it is gone and all that it told is carried out.
///
/// # Errors
/// What the system says; `InvalidData` for a client that says what no client says.
pub(super) fn serve(channel: Channel, board: &Arc<Board>) -> io::Result<()> {
    let (bytes, memory) = match channel.wait(None, false) {
        Ok(Happened::Message(bytes, memory)) => (bytes, memory),
        // Who has said nothing has handed nothing over.
        Ok(Happened::Ended) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(()),
        Err(error) => return Err(error),
    };
    let hello: Option<Hello> = wire::decode(&bytes);
    let version = wire::VERSION.to_owned();
    let refused = match &hello {
        Some(hello) if hello.version == version => (hello.brings_ring && memory.is_none())
            .then(|| String::from("the I/O server may have no more open files (ulimit -n)")),
        Some(hello) => Some(format!(
            "the I/O server is of version {version}, and the program's library of version {}: use zonda run of the same installation",
            hello.version
        )),
        None => return Err(damaged("no client")),
    };
    let is_refused = refused.is_some();
    let welcome = wire::encode(&Notice::Welcome { version, refused });
    // One that looks may have given up meanwhile.
    let is_there = channel.send(&welcome.map_err(io::Error::other)?, None).is_ok();
    if is_refused || !is_there {
        return Ok(());
    }
    if let Some(file) = hello.as_ref().and_then(|hello| hello.settles.clone()) {
        let path = PathBuf::from(OsString::from_vec(file.path));
        board.settle(&board.writers(&path, file.identity), &path, file.identity);
        let (bytes, _) = notice_of(Outcome::of(Ok(Reply::default()))).map_err(io::Error::other)?;
        // It may have gone.
        let _ = channel.send(&bytes, None);
        return Ok(());
    }
    let Some(memory) = memory else {
        // One that has no calls to hand over.
        look::show(&channel, board);
        return Ok(());
    };
    let mut reader = RingReader::of(memory)?;
    let (pid, numbers) = hello.map_or((0, None), |hello| (hello.pid, hello.numbers));
    // In a container a process has another number than here; then the end of the channel tells its end.
    let process = if numbers == wire::own_numbers() { Process::find(pid) } else { None };
    let client = Arc::new(Client { channel, process, news: reader.news()? });
    let load = Arc::new(Load::new());
    board.count(&load);
    let progress = Progress::new(reader.news()?);
    let mut session = Session {
        client,
        board: Arc::clone(board),
        watch: board.watch.client(pid, &load),
        load,
        progress,
        buffers: Buffers::new(SERVER_SPARE_BYTES),
        files: HashMap::new(),
        pieces: HashMap::new(),
        reads: SessionReads::default(),
        threads: Vec::new(),
    };
    N_CLIENTS.fetch_add(1, Ordering::Relaxed);
    let progress = Arc::clone(&session.progress);
    let done = session.take_all(&mut reader);
    // Of a damaged ring no more is taken.
    progress.end();
    session.end();
    N_CLIENTS.fetch_sub(1, Ordering::Relaxed);
    done
}

/// Clients that this process serves.
static N_CLIENTS: AtomicUsize = AtomicUsize::new(0);

/// Bytes of a client's calls that wait besides those in the ring. All clients together have half of the memory of the process: what files need
/// to be written has the other half. Each has a little in any case.
fn client_bytes(n_clients: usize) -> usize {
    let all = usize::try_from(memory::budget() / 2).unwrap_or(usize::MAX);
    (all / n_clients.max(1)).clamp(SERVER_LEAST_QUEUE_BYTES, SERVER_QUEUE_BYTES)
}

fn damaged(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl Session {
    fn take_all(&mut self, reader: &mut RingReader) -> io::Result<()> {
        let mut n_idle = 0;
        loop {
            self.load.wait_below(client_bytes(N_CLIENTS.load(Ordering::Relaxed)));
            if let Some(len) = reader.wait(SERVER_SLEEP)? {
                n_idle = 0;
                let bytes = self.buffers.take(len).map_err(|_| io::ErrorKind::OutOfMemory);
                let mut bytes = bytes?;
                reader.take(bytes.as_mut())?;
                let (head, values_at) =
                    wire::frame(&bytes).ok_or_else(|| damaged("a call that is none"))?;
                self.take(head, bytes.without_first(values_at))?;
                self.progress.note(reader.taken());
                continue;
            }
            n_idle += 1;
            if n_idle >= SERVER_SLEEPS {
                // Many clients without output are to cost nothing.
                self.buffers.clear();
                reader.wait_elsewhere(|| self.client.wait());
            }
            if self.client.is_gone() && !reader.has_frame() {
                return Ok(());
            }
        }
    }

    fn take(&mut self, head: FrameHead, mut values: Bytes) -> io::Result<()> {
        let FrameHead { file, is_asked, has_more, what } = head;
        let pieces = self.pieces.remove(&file);
        if has_more || pieces.is_some() {
            let mut all = pieces.unwrap_or_default();
            all.try_reserve_exact(values.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
            all.extend_from_slice(&values);
            if has_more {
                self.pieces.insert(file, all);
                return Ok(());
            }
            values = all.into();
        }
        match what {
            What::Create(creation) => self.create(file, creation),
            What::Read(opening) => {
                self.reads.open(file, &opening, &self.board.readings, &self.client);
            }
            What::Call(told) if self.reads.has(file) => {
                self.reads.call(file, &told, &self.board.readings, &self.client);
            }
            What::Settle { file } => {
                match file {
                    Some(file) => return self.settle(file),
                    None => self.load.wait_closed(),
                }
                self.client.reply(Ok(Reply::default()));
            }
            What::Load => {
                let shape = vec![self.board.waiting_bytes()];
                self.client.reply(Ok(Reply { shape, ..Reply::default() }));
            }
            What::Call(_) => {
                let Some(to) = self.files.get(&file) else {
                    let why = "the I/O server has no such file";
                    let error = Error::because(NcError::BadId, why);
                    match is_asked {
                        true => self.client.reply(Err(error)),
                        false => self.client.fail(file, (&error).into()),
                    }
                    return Ok(());
                };
                let number = match (&what, &to.rank) {
                    (What::Call(told), Some((team, rank))) if !told.failed => {
                        team.gate.told(*rank, &told.call, to.is_classic)
                    }
                    _ => None,
                };
                let is_last = matches!(&what, What::Call(told) if matches!(told.call, Call::Close | Call::Abort));
                if is_last {
                    self.board.begin_close(&to.path, &to.queue);
                    if !to.queue.begin_close() {
                        self.board.end_close(&to.path, to.queue.identity());
                    }
                }
                let taken = to.watch.take(&what, values.len());
                let mut call = Waiting { what, values, is_asked, number, taken };
                if to.queue.is_overfull(client_bytes(N_CLIENTS.load(Ordering::Relaxed)))
                    && self.leave_out_values(file, &mut call)
                    && to.rank.is_none()
                {
                    return Ok(());
                }
                if let Some(call) = to.queue.push(call) {
                    to.watch.let_go(call.values.len());
                    self.client.refuse(file, &call, None);
                    // The thread of a file that is over closes it no more.
                    if is_last && to.queue.end_close() {
                        self.board.end_close(&to.path, to.queue.identity());
                    }
                }
            }
        }
        Ok(())
    }

    /// Answers when what clients have closed of a file is closed.
    fn settle(&mut self, file: NamedFile) -> io::Result<()> {
        let (path, identity) = (PathBuf::from(OsString::from_vec(file.path)), file.identity);
        let mut writers = self.board.writers(&path, identity);
        // What this client told before was taken.
        writers.retain(|writer| !Arc::ptr_eq(writer, &self.progress));
        if writers.is_empty() {
            self.load.while_waiting(|| self.board.wait_for(&path, identity));
            self.client.reply(Ok(Reply::default()));
            return Ok(());
        }
        // Others may wait for what this client tells meanwhile.
        let (board, load, client) = (Arc::clone(&self.board), Arc::clone(&self.load), Arc::clone(&self.client));
        self.start(move || {
            load.while_waiting(|| board.settle(&writers, &path, identity));
            client.reply(Ok(Reply::default()));
        })
    }

    /// Leaves out the values of a put that was told, since there is no memory for them: those before wait for room on the device. Ranks take part in it all the
    /// same. Whether it is such a put.
    fn leave_out_values(&self, file: u64, call: &mut Waiting) -> bool {
        let What::Call(Told { call: Call::Put { var, .. }, .. }) = call.what else { return false };
        if call.is_asked {
            return false;
        }
        let why = "no room on the device, and no memory for more that waits for it: the I/O server has left out a put";
        let error = Error::answered(NcError::System(ENOSPC), Answer::System, why);
        self.client.fail(file, (&error).into());
        self.board.note_failed();
        call.what = What::Call(Call::TakePart { var }.into());
        call.values = Vec::new().into();
        true
    }

    fn create(&mut self, file: u64, creation: Creation) {
        let options = match creation.options() {
            Ok(options) => options,
            Err(error) => return self.client.reply(Err(error)),
        };
        let queue = Arc::new(Queue::new(Arc::clone(&self.load)));
        let (path, is_classic) = (creation.path(), !options.format.is_hdf5());
        let ranks = creation.ranks;
        self.board.open(&path, &queue, &self.progress);
        let watch = self.board.watch.file(&self.watch, &path, ranks);
        let work = FileWork {
            file,
            path: creation.path(),
            options,
            umask: creation.umask,
            queue: Arc::clone(&queue),
            client: Arc::clone(&self.client),
            board: Arc::clone(&self.board),
            watch: Arc::clone(&watch),
        };
        let rank = match ranks {
            None => self.start(move || work.run(None)).map(|()| None),
            Some(of) => self.sit_down(of, work).map(|team| Some((team, of.rank))),
        };
        match rank {
            Ok(rank) => {
                let file_of_client = ClientFile { queue, path, is_classic, rank, watch };
                drop(self.files.insert(file, file_of_client));
            }
            Err(error) => {
                let text = format!("the I/O server cannot write the file: {error}");
                self.client.reply(Err(Error::with_text(NcError::NoMem, text)));
            }
        }
    }

    /// Gives the work of a rank to the team of its file, whose threads the first rank starts.
    fn sit_down(&mut self, of: RankOf, work: FileWork) -> io::Result<Arc<Team>> {
        let RankOf { team: name, rank, size } = of;
        let team = self.board.team(name, size, &work.path)?;
        team.gate.enter(rank, &work.queue, &work.path);
        team.sit_down(rank, work)?;
        if team.begins() {
            let (of_thread, board) = (Arc::clone(&team), Arc::clone(&self.board));
            self.start(move || of_thread.run(&board))?;
        }
        Ok(team)
    }

    fn start(&mut self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(worker::spawn(String::from("zonda-served"), Purpose::WriteBehind, work)?);
        Ok(())
    }

    /// The client is gone: what it told is carried out.
    fn end(self) {
        for file in self.files.values() {
            file.queue.end();
            if let Some((team, rank)) = &file.rank {
                team.gate.end(*rank);
                team.give_up_missing();
            }
        }
        for thread in self.threads {
            // A panic was reported on standard error.
            let _ = thread.join();
        }
    }
}

/// `ENOSPC` of Linux.
const ENOSPC: i32 = 28;

//! What a server does for one client.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use zonda_format::Error;
use zonda_model::{Answer, NcError};
use zonda_runtime::worker::{self, Purpose};
use zonda_served::{Call, Reply};
use zonda_shared::{Channel, Happened, Process, RingNews, RingReader};

use super::board::Board;
use super::connection::notice_of;
use super::queue::{Load, Queue, Waiting};
use super::team::Team;
use super::wire::{self, Creation, FrameHead, Hello, Notice, Outcome, RankOf, SentError, What};
use super::work::FileWork;
use crate::error::Result;
use crate::tuning::{SERVER_QUEUE_BYTES, SERVER_SLEEP};

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

    /// Answers what was asked.
    pub(super) fn reply(&self, done: Result<Reply>) {
        let notice = notice_of(Outcome::of(done))
            .or_else(|error| notice_of(Outcome::Failed((&error).into())));
        if let Ok((bytes, memory)) = notice {
            // A client that is gone needs no reply.
            let _ = self.channel.send(&bytes, memory.as_ref().map(std::os::fd::AsFd::as_fd));
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
            // The failure is on standard error, too.
            let _ = self.channel.send(&bytes, None);
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
}

struct Session {
    client: Arc<Client>,
    board: Arc<Board>,
    load: Arc<Load>,
    files: HashMap<u64, ClientFile>,
    /// Values of which more come.
    pieces: HashMap<u64, Vec<u8>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// Serves a client until it is gone and all that it told is carried out.
///
/// # Errors
/// What the system says; `InvalidData` for a client that says what no client says.
pub(super) fn serve(channel: Channel, board: &Arc<Board>) -> io::Result<()> {
    let Happened::Message(bytes, memory) = channel.wait(None, false)? else { return Ok(()) };
    let hello: Option<Hello> = wire::decode(&bytes);
    let version = wire::VERSION.to_owned();
    let refused = match &hello {
        Some(hello) if hello.version == version => None,
        Some(hello) => Some(format!(
            "the I/O server is of version {version}, and the program's library of version {}: use zonda run of the same installation",
            hello.version
        )),
        None => return Err(damaged("no client")),
    };
    let is_refused = refused.is_some();
    let welcome = wire::encode(&Notice::Welcome { version, refused });
    channel.send(&welcome.map_err(io::Error::other)?, None)?;
    if is_refused {
        return Ok(());
    }
    let mut reader = RingReader::of(memory.ok_or_else(|| damaged("a client without memory"))?)?;
    let process = hello.and_then(|hello| Process::find(hello.pid));
    let client = Arc::new(Client { channel, process, news: reader.news()? });
    let load = Arc::new(Load::new());
    board.count(&load);
    let mut session = Session {
        client,
        board: Arc::clone(board),
        load,
        files: HashMap::new(),
        pieces: HashMap::new(),
        threads: Vec::new(),
    };
    let done = session.take_all(&mut reader);
    session.end();
    done
}

fn damaged(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl Session {
    fn take_all(&mut self, reader: &mut RingReader) -> io::Result<()> {
        let mut bytes = Vec::new();
        loop {
            self.load.wait_below(SERVER_QUEUE_BYTES);
            if reader.next(&mut bytes, SERVER_SLEEP)? {
                let (head, values) =
                    wire::frame(&bytes).ok_or_else(|| damaged("a call that is none"))?;
                self.take(head, values)?;
            } else if self.client.is_gone() && !reader.has_frame() {
                return Ok(());
            }
        }
    }

    fn take(&mut self, head: FrameHead, values: &[u8]) -> io::Result<()> {
        let FrameHead { file, is_asked, has_more, what } = head;
        let mut all = self.pieces.remove(&file).unwrap_or_default();
        all.try_reserve_exact(values.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        all.extend_from_slice(values);
        if has_more {
            self.pieces.insert(file, all);
            return Ok(());
        }
        match what {
            What::Create(creation) => self.create(file, creation),
            What::Settle { path } => {
                let path = path.map(|path| {
                    PathBuf::from(
                        <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(path),
                    )
                });
                match path {
                    Some(path) => self.load.while_waiting(|| self.board.wait_for(&path)),
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
                    self.board.begin_close(&to.path);
                    if !to.queue.begin_close() {
                        self.board.end_close(&to.path);
                    }
                }
                let call = Waiting { what, values: all, is_asked, number };
                if let Err(call) = to.queue.push(call) {
                    self.client.refuse(file, &call, None);
                    // The thread of a file that is over closes it no more.
                    if is_last && to.queue.end_close() {
                        self.board.end_close(&to.path);
                    }
                }
            }
        }
        Ok(())
    }

    fn create(&mut self, file: u64, creation: Creation) {
        let options = match creation.options() {
            Ok(options) => options,
            Err(error) => return self.client.reply(Err(error)),
        };
        let queue = Arc::new(Queue::new(Arc::clone(&self.load)));
        let (path, is_classic) = (creation.path(), !options.format.is_hdf5());
        let ranks = creation.ranks;
        let work = FileWork {
            file,
            path: creation.path(),
            options,
            queue: Arc::clone(&queue),
            client: Arc::clone(&self.client),
            board: Arc::clone(&self.board),
        };
        let rank = match ranks {
            None => self.start(move || work.run(None)).map(|()| None),
            Some(of) => self.sit_down(of, work).map(|team| Some((team, of.rank))),
        };
        match rank {
            Ok(rank) => drop(self.files.insert(file, ClientFile { queue, path, is_classic, rank })),
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

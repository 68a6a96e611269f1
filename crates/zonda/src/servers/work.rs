//! One file of one client: its calls are carried out, one after the other.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use zonda_format::Error;
use zonda_model::{Answer, NcError};
use zonda_served::{Call, Reply};
use zonda_team::{Team, threads};

use super::board::Board;
use super::gate::Gate;
use super::queue::{Queue, Waiting};
use super::room::{Attempt, Room};
use super::session::Client;
use super::watch::FileWatch;
use super::wire::{What, identity_at};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::open::CreateOptions;

/// What a thread needs to write a file for a client.
#[derive(Debug)]
pub(super) struct FileWork {
    pub(super) file: u64,
    pub(super) path: PathBuf,
    pub(super) options: CreateOptions,
    /// That of the client.
    pub(super) umask: Option<u32>,
    pub(super) queue: Arc<Queue>,
    pub(super) client: Arc<Client>,
    pub(super) board: Arc<Board>,
    pub(super) watch: Arc<FileWatch>,
}

impl FileWork {
    /// Creates the file, and carries calls out until it is closed or the client has ended. Of a file of several ranks all of these do so, as a
    /// team.
    pub(super) fn run(self, rank: Option<(&threads::Threads, &Gate)>) {
        self.watch.enter();
        match whole(|| self.create(rank.map(|(team, _)| team))) {
            Ok(dataset) => {
                // Which file it is: the client may see another one at that path, in a container.
                let words = self.queue.identity().map_or(Vec::new(), |(device, inode)| vec![device, inode]);
                let values = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                self.client.reply(Ok(Reply { values, ..Reply::default() }));
                self.carry_out(&dataset, rank);
            }
            Err(error) => self.client.reply(Err(error)),
        }
        let (left, why) = self.queue.end_work();
        if let Some(why) = &why {
            self.client.fail(self.file, why.clone());
            if rank.is_some_and(|(team, gate)| gate.is_first(team.rank())) {
                self.say(&mut false, &why.error());
            }
        }
        // The client may wait for a reply.
        for call in &left {
            self.watch.let_go(call.values.len());
            self.client.refuse(self.file, call, why.as_ref());
        }
        self.watch.end();
        if self.queue.end_close() {
            self.board.end_close(&self.path, self.queue.identity());
        }
    }

    /// The client came too late.
    pub(super) fn refuse(self) {
        let why = "the I/O server has ended the file: another rank ended early";
        self.client.reply(Err(Error::answered(NcError::Io, Answer::Request, why)));
        drop(self.queue.end_work());
    }

    fn create(&self, team: Option<&threads::Threads>) -> Result<Dataset> {
        let is_new = std::fs::metadata(&self.path).is_err();
        let created = self.create_file(team)?;
        if let Some(identity) = identity_at(&self.path) {
            self.queue.identify(identity);
        }
        // A file that was there keeps its mode. Of several ranks each sees whether it was, or one that has just made it.
        if let Some(umask) = self.umask.filter(|_| is_new) {
            let mode = std::fs::Permissions::from_mode(0o666 & !umask);
            if let Err(error) = std::fs::set_permissions(&self.path, mode) {
                // As on file systems without modes: the file is there all the same. Nobody may be there to read it.
                let path = self.path.display();
                let _ = writeln!(
                    std::io::stderr().lock(),
                    "zonda iod: {path}: its mode cannot be set: {error}"
                );
            }
        }
        Ok(created)
    }

    fn create_file(&self, team: Option<&threads::Threads>) -> Result<Dataset> {
        match team {
            None => Dataset::create_here(&self.path, &self.options),
            Some(team) => {
                let team: Arc<dyn Team> = Arc::new(team.clone());
                Dataset::create_parallel_here(&team, &self.path, &self.options)
            }
        }
    }

    fn carry_out(&self, dataset: &Dataset, rank: Option<(&threads::Threads, &Gate)>) {
        let gate = rank.map(|(team, gate)| (gate, team.rank()));
        let (mut has_failed, mut room) = (false, Room::default());
        while let Some(call) = self.queue.next(gate) {
            let mut carries_out = self.watch.begin(&call);
            let Waiting { what, values, is_asked, number, .. } = &call;
            let team = rank.filter(|_| number.is_some()).map(|(team, _)| team as &dyn Team);
            let attempt = Attempt { queue: &self.queue, is_asked: *is_asked, team };
            let tell = |error: &Error| self.client.fail(self.file, error.into());
            let done = match what {
                What::Call(told) => {
                    let mut is_again = false;
                    room.make(&attempt, tell, || match std::mem::replace(&mut is_again, true) {
                        false => whole(|| dataset.carry_out(told, values)),
                        true => whole(|| dataset.carry_out_again(told, values)),
                    })
                }
                _ => Err(NcError::Internal.into()),
            };
            carries_out.code(done.as_ref().err().map_or(0, |error| error.code().code()));
            drop(carries_out);
            match done {
                done if *is_asked => self.client.reply(done),
                Ok(_) => {}
                Err(error) => {
                    self.client.fail(self.file, (&error).into());
                    self.say(&mut has_failed, &error);
                }
            }
            let is_last =
                matches!(what, What::Call(told) if matches!(told.call, Call::Close | Call::Abort));
            self.watch.done(values.len());
            self.queue.done(&call);
            // A file that could not be closed has what it had committed: the client makes no further call.
            if is_last || !dataset.is_open() {
                return;
            }
        }
        // The client ended without closing it.
        let end = || if gate.is_some() { dataset.close() } else { dataset.drain() };
        let team = rank.map(|(team, _)| team as &dyn Team);
        let attempt = Attempt { queue: &self.queue, is_asked: false, team };
        let ended = room.make(&attempt, |_| {}, || whole(end));
        if let Err(error) = ended {
            self.say(&mut has_failed, &error);
        }
    }

    /// Says once what went wrong: the client may make no further call.
    fn say(&self, has_failed: &mut bool, error: &Error) {
        if !std::mem::replace(has_failed, true) {
            self.board.note_failed();
            // Nobody may be there to read it.
            let _ = writeln!(std::io::stderr().lock(), "zonda iod: {error}");
        }
    }
}

/// A call of the engine, of which a panic is an error: the client waits for what becomes of it.
pub(super) fn whole<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    // What the panic was is on standard error.
    let why = "bug in Zonda: an I/O server panicked in a call";
    let panicked = |_| Err(Error::because(NcError::Internal, why));
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(panicked)
}

//! One file of one client: its calls are carried out, one after the other.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use zonda_format::Error;
use zonda_model::NcError;
use zonda_served::{Call, Reply};
use zonda_team::{Team, threads};

use super::board::Board;
use super::gate::Gate;
use super::queue::{Queue, Waiting};
use super::session::Client;
use super::wire::What;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::open::CreateOptions;

/// What a thread needs to write a file for a client.
#[derive(Debug)]
pub(super) struct FileWork {
    pub(super) file: u64,
    pub(super) path: PathBuf,
    pub(super) options: CreateOptions,
    pub(super) queue: Arc<Queue>,
    pub(super) client: Arc<Client>,
    pub(super) board: Arc<Board>,
}

impl FileWork {
    /// Creates the file, and carries calls out until it is closed or the client has ended. Of a file of several ranks all of these do so, as a
    /// team.
    pub(super) fn run(self, rank: Option<(&threads::Threads, &Gate)>) {
        match whole(|| self.create(rank.map(|(team, _)| team))) {
            Ok(dataset) => {
                self.client.reply(Ok(Reply::default()));
                self.carry_out(&dataset, rank.map(|(team, gate)| (gate, team.rank())));
            }
            Err(error) => self.client.reply(Err(error)),
        }
        let (left, why) = self.queue.end_work();
        if let Some(why) = &why {
            self.client.fail(self.file, why.clone());
            if rank.is_some_and(|(team, _)| team.rank() == 0) {
                self.say(&mut false, &why.error());
            }
        }
        // The client may wait for a reply.
        left.iter().for_each(|call| self.client.refuse(self.file, call, why.as_ref()));
        if self.queue.end_close() {
            self.board.end_close(&self.path);
        }
    }

    fn create(&self, team: Option<&threads::Threads>) -> Result<Dataset> {
        match team {
            None => Dataset::create_here(&self.path, &self.options),
            Some(team) => {
                let team: Arc<dyn Team> = Arc::new(team.clone());
                Dataset::create_parallel_here(&team, &self.path, &self.options)
            }
        }
    }

    fn carry_out(&self, dataset: &Dataset, gate: Option<(&Gate, usize)>) {
        let mut has_failed = false;
        while let Some(call) = self.queue.next(gate) {
            let Waiting { what, values, is_asked, .. } = &call;
            let done = match what {
                What::Call(told) => whole(|| dataset.carry_out(told, values)),
                _ => Err(NcError::Internal.into()),
            };
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
            self.queue.done(&call);
            // A file that could not be closed has what it had committed: the client makes no further call.
            if is_last || !dataset.is_open() {
                return;
            }
        }
        // The client ended without closing it.
        let end = || if gate.is_some() { dataset.close() } else { dataset.drain() };
        let ended = whole(end);
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

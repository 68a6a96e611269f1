//! A line within one process, for tests and simulations: the server is a thread.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use zonda_format::{Error, Result};
use zonda_model::{Answer, NcError};
use zonda_runtime::lock::{Mutex, Rank};

use crate::call::{Call, Told};
use crate::line::{Line, Reply};
use crate::reading::{Got, ReadLine};

/// The client's end.
#[derive(Debug)]
pub struct LocalLine {
    calls: SyncSender<Arrived>,
    told: Arc<Failure>,
}

/// The server's end.
#[derive(Debug)]
pub struct LocalServer {
    calls: Receiver<Arrived>,
    told: Arc<Failure>,
}

/// The first failure of a call that was told.
type Failure = Mutex<Option<Error>>;

/// A call as it comes to the server.
#[derive(Debug)]
pub struct Arrived {
    /// The call, as bytes.
    pub told: Vec<u8>,
    /// The values behind it.
    pub values: Vec<u8>,
    reply: Option<Sender<Result<Reply>>>,
}

/// A line on which so many calls may wait.
#[must_use]
pub fn line(n_waiting: usize) -> (LocalLine, LocalServer) {
    let (sender, calls) = sync_channel(n_waiting);
    let told = Arc::new(Mutex::ranked(Rank::Queue, None));
    (LocalLine { calls: sender, told: Arc::clone(&told) }, LocalServer { calls, told })
}

fn gone() -> Error {
    Error::answered(NcError::Io, Answer::System, "the server of the file is gone")
}

impl LocalLine {
    fn send(&self, arrived: Arrived) -> Result<()> {
        self.calls.send(arrived).map_err(|_| gone())
    }
}

impl Line for LocalLine {
    fn tell(
        &self,
        told: &Told,
        n_bytes: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let mut values = zonda_model::memory::filled(n_bytes, 0)?;
        fill(&mut values)?;
        self.send(Arrived { told: told.encode()?, values, reply: None })
    }

    fn ask(&self, call: &Call, values: &[u8]) -> Result<Reply> {
        let (reply, answer) = channel();
        let values = zonda_model::memory::copied(values)?;
        let told = Told::from(call.clone()).encode()?;
        self.send(Arrived { told, values, reply: Some(reply) })?;
        answer.recv().map_err(|_| gone())?
    }

    fn failure(&self) -> Option<Error> {
        self.told.lock().take()
    }
}

impl ReadLine for LocalLine {
    fn get(&self, call: &Call, _: &mut [u8]) -> Option<Got> {
        let Reply { converted, values, .. } = self.ask(call, &[]).ok()?;
        Some(Got { converted, apart: Some(values) })
    }

    fn renew(&self) {}
}

impl LocalServer {
    /// Carries out calls by `carry_out` until the client is gone.
    pub fn serve(&self, mut carry_out: impl FnMut(&Told, &[u8]) -> Result<Reply>) {
        while let Ok(Arrived { told, values, reply }) = self.calls.recv() {
            let damaged = || Error::because(NcError::Internal, "a call that is none");
            let told = Told::decode(&told).ok_or_else(damaged);
            let done = told.and_then(|told| carry_out(&told, &values));
            match (reply, done) {
                // The client may be gone.
                (Some(reply), done) => drop(reply.send(done)),
                (None, Ok(_)) => {}
                (None, Err(error)) => drop(self.told.lock().get_or_insert(error)),
            }
        }
    }
}

//! The work of one command, divided among ranks: rank 0 leads, the others follow.
//!
//! Rank 0 does what one process does, in the same order. It alone writes and speaks, so files and messages are those of one process. What takes
//! the time (reading, decoding, filters) it gives to the other ranks in *orders*, which all of them hear, and takes their *replies*. A rank
//! that fails replies with its error, and waits for the next order; the last one is to end, and goes out whatever happens to rank 0.

pub(crate) mod wire;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use zonda_model::NcError;
use zonda_parallel::of_team;
use zonda_team::{Message, Reduction, Step, Team};

use crate::error::{Error, Result};
use wire::{Reader, Writer};

/// The first byte of what rank 0 says: that there is no more, or that an order follows.
const END: u8 = 0;
const ORDER: u8 = 1;
/// The first byte of a reply.
const DONE: u8 = 0;
const FAILED: u8 = 1;

/// No order is under way; replies to one are to be taken; the last word was said.
const IDLE: u8 = 0;
const ORDERED: u8 = 1;
const ENDED: u8 = 2;
/// The ranks have lost each other.
const LOST: u8 = 3;

/// Rank 0, which leads. When it is dropped, the others end.
///
/// See [`CopyOptions::lead`](crate::copy::CopyOptions::lead) and [`check_with`](crate::check::check_with).
#[derive(Debug)]
pub struct Lead {
    team: Arc<dyn Team>,
    call: String,
    file: String,
    state: AtomicU8,
}

/// What a rank replied.
#[derive(Debug)]
pub(crate) struct Reply {
    pub rank: usize,
    pub said: Result<Vec<u8>>,
}

impl Lead {
    /// Leads the other ranks of a team, which call [`follow_copy`](crate::copy::follow_copy) or [`follow_check`](crate::check::follow_check). `call` and `file`
    /// say in messages what is done.
    #[must_use]
    pub fn new(team: Arc<dyn Team>, call: &str, file: &str) -> Lead {
        let (call, file) = (call.to_owned(), file.to_owned());
        Lead { team, call, file, state: AtomicU8::new(IDLE) }
    }

    /// How many ranks there are.
    pub(crate) fn size(&self) -> usize {
        self.team.size()
    }

    fn step(&self) -> Step<'_> {
        Step { call: &self.call, file: &self.file }
    }

    fn set(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
    }

    /// Whether the ranks have lost each other: some may wait for ever, and their launcher has to end them.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.state.load(Ordering::Relaxed) == LOST
    }

    /// Gives all other ranks an order. Replies to the one before were taken.
    ///
    /// # Errors
    /// `NC_EMPI` where the ranks do not come together.
    pub(crate) fn order(&self, order: &[u8]) -> Result<()> {
        if self.state.load(Ordering::Relaxed) != IDLE {
            return Err(NcError::Internal.into());
        }
        let mut said = [&[ORDER], order].concat();
        self.set(LOST);
        self.team.broadcast(self.step(), 0, &mut said).map_err(|error| of_team(&error))?;
        self.set(ORDERED);
        Ok(())
    }

    /// What the other ranks reply to the order, as far as it was for them.
    ///
    /// # Errors
    /// As [`Lead::order`].
    pub(crate) fn replies(&self) -> Result<Vec<Reply>> {
        if self.state.load(Ordering::Relaxed) != ORDERED {
            return Err(NcError::Internal.into());
        }
        self.set(LOST);
        let replies = self.team.exchange(self.step(), Vec::new());
        let replies = replies.map_err(|error| of_team(&error))?;
        self.set(IDLE);
        Ok(replies.into_iter().map(Reply::of).collect())
    }

    /// Has the other ranks end; they come back from what they follow. It is no use to order more.
    pub fn end(&self) {
        if self.state.load(Ordering::Relaxed) == ORDERED {
            // What they are doing is of no use any more, but they reply before they hear.
            let _replies = self.replies();
        }
        if self.state.load(Ordering::Relaxed) == IDLE {
            let ended = self.team.broadcast(self.step(), 0, &mut vec![END]);
            self.set(if ended.is_ok() { ENDED } else { LOST });
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.end();
    }
}

impl Reply {
    fn of(Message { rank, bytes }: Message) -> Reply {
        let said = match bytes.split_first() {
            Some((&DONE, said)) => Ok(said.to_vec()),
            Some((&FAILED, said)) => Err(wire::error(&mut Reader::new(said), Some(rank))),
            _ => Err(wire::unreadable()),
        };
        Reply { rank, said }
    }
}

/// What a rank replies to an order.
pub(crate) type Answered = Option<Vec<u8>>;

/// Does what rank 0 orders, until it says that there is no more. `work` gives what this rank replies to an order, `None` for one that is not for
/// it.
///
/// # Errors
/// `NC_EMPI` where the ranks do not come together. Errors of `work` are rank 0's to tell.
pub(crate) fn follow(
    team: &dyn Team,
    step: Step<'_>,
    work: &mut dyn FnMut(&[u8]) -> Result<Answered>,
) -> Result<()> {
    loop {
        let mut said = Vec::new();
        team.broadcast(step, 0, &mut said).map_err(|error| of_team(&error))?;
        let Some((&ORDER, order)) = said.split_first() else { return Ok(()) };
        let bytes = match work(order) {
            Ok(Some(reply)) => Some([&[DONE], &reply[..]].concat()),
            Ok(None) => None,
            Err(error) => {
                let mut reply = Writer::default();
                wire::put_error(&mut reply, &error);
                Some([&[FAILED], &reply.bytes[..]].concat())
            }
        };
        let messages = bytes.map(|bytes| Message { rank: 0, bytes }).into_iter().collect();
        team.exchange(step, messages).map_err(|error| of_team(&error))?;
    }
}

/// Whether all ranks of a team have the same text, such as the arguments of a command. All of them call this.
///
/// # Errors
/// `NC_EMPI` where the ranks do not come together.
pub fn are_alike(team: &dyn Team, step: Step<'_>, text: &[u8]) -> Result<bool> {
    // FNV-1a: the same in all processes, whoever built them.
    let hash = text.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut greatest = [hash, !hash];
    team.reduce(step, Reduction::Max, &mut greatest).map_err(|error| of_team(&error))?;
    Ok(greatest[0] == !greatest[1])
}

/// The inode of a file, which nodes that share it know by the same number; 0 where it is not known.
pub(crate) fn inode(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.ino())
}

/// Refuses a file that is another one than that of rank 0, whose inode is `first`.
pub(crate) fn check_file(path: &Path, first: u64) -> Result<()> {
    let own = inode(path);
    if own == first || first == 0 || own == 0 { Ok(()) } else { Err(another_file()) }
}

pub(crate) fn another_file() -> Error {
    let why =
        "it finds another file at the path than rank 0: do all nodes have the same folder there?";
    Error::because(NcError::Mpi, why)
}

/// An error that was told before it is made again: `follow` tells one for each order.
pub(crate) fn again(error: &Error) -> Error {
    Error::answered(error.code(), error.answer(), error.cause())
}

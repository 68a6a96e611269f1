//! Messages on their way to one rank.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use zonda_runtime::lock::{Condvar, Mutex, MutexGuard, Rank};

use crate::algorithms::Tag;

/// Of which step, and of which round in it.
type Key = (u64, Tag);

/// What the owner of a mailbox looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The number of the step.
    pub(super) step: u64,
    /// The round.
    pub(super) tag: Tag,
    /// Whose message, or anybody's.
    pub(super) from: Option<usize>,
}

/// A message, and who sent it.
pub(super) type Letter = (usize, Vec<u8>);

/// The letters that have come and were not asked for yet.
#[derive(Debug, Default)]
struct Letters {
    by_key: HashMap<Key, VecDeque<Letter>>,
    awaited: Option<Wanted>,
}

impl Letters {
    /// The first letter that is wanted.
    fn take(&mut self, wanted: Wanted) -> Option<Letter> {
        let key = (wanted.step, wanted.tag);
        let letters = self.by_key.get_mut(&key)?;
        let place = match wanted.from {
            None => 0,
            Some(rank) => letters.iter().position(|(from, _)| *from == rank)?,
        };
        let letter = letters.remove(place);
        if letters.is_empty() {
            self.by_key.remove(&key);
        }
        letter
    }
}

/// The letters of one rank, and the rank waiting for one.
#[derive(Debug)]
pub(super) struct Mailbox {
    letters: Mutex<Letters>,
    came: Condvar,
    /// Set while the owner waits, so that who leaves the team need not take the locks of all.
    is_awaited: AtomicBool,
}

impl Mailbox {
    pub(super) fn new() -> Mailbox {
        Mailbox {
            letters: Mutex::ranked(Rank::Mailbox, Letters::default()),
            came: Condvar::new(),
            is_awaited: AtomicBool::new(false),
        }
    }

    /// Puts a letter in.
    pub(super) fn put(&self, step: u64, tag: Tag, from: usize, bytes: Vec<u8>) {
        let mut letters = self.letters.lock();
        letters.by_key.entry((step, tag)).or_default().push_back((from, bytes));
        let is_it = |wanted: Wanted| {
            (wanted.step, wanted.tag) == (step, tag) && wanted.from.is_none_or(|rank| rank == from)
        };
        if letters.awaited.is_some_and(is_it) {
            self.came.notify_one();
        }
    }

    /// Takes a letter; waits for it, not beyond a time, unless it can no longer come. What `is_lost` says is asked before each wait: if
    /// it said so after the mailbox was looked into, the letter is not on its way, since letters are put before their sender leaves.
    pub(super) fn take(
        &self,
        wanted: Wanted,
        time: Duration,
        is_lost: impl FnOnce() -> bool,
    ) -> Option<Letter> {
        let mut letters = self.letters.lock();
        if let Some(letter) = letters.take(wanted) {
            return Some(letter);
        }
        letters.awaited = Some(wanted);
        self.is_awaited.store(true, Ordering::SeqCst);
        let mut letters = match is_lost() {
            true => letters,
            false => self.wait(letters, time),
        };
        self.is_awaited.store(false, Ordering::SeqCst);
        letters.awaited = None;
        letters.take(wanted)
    }

    fn wait<'a>(
        &self,
        letters: MutexGuard<'a, Letters>,
        time: Duration,
    ) -> MutexGuard<'a, Letters> {
        self.came.wait_timeout(letters, time).0
    }

    /// Lets the owner look again whether what it waits for can still come.
    pub(super) fn nudge(&self) {
        if self.is_awaited.load(Ordering::SeqCst) {
            // It has the lock until it waits: a notice before that would be lost.
            drop(self.letters.lock());
            self.came.notify_one();
        }
    }
}

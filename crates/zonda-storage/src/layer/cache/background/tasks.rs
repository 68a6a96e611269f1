//! What the thread of a cache is to do. Newer tasks take the place of older ones where that is enough.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// The most blocks that wait to be read: of so many streams each has its next one.
const MOST_BLOCKS: usize = 16;

/// One thing to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Read these pages, that somebody is about to ask for.
    Ahead(Range<u64>),
    /// Read the block that begins with this page, after one that somebody reads.
    Block(u64),
    /// Write this page, which became complete, with those around it.
    Complete(u64),
    /// Write this complete page, and no more may follow.
    Rest(u64),
    /// Write this page, which its stream has left.
    Left(u64),
    /// Write some of the pages that would have to leave next.
    Clean,
}

/// All that is to be done.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    pub(crate) ahead: Option<Range<u64>>,
    /// Those asked for last, newest at the end.
    blocks: VecDeque<u64>,
    pub(crate) complete: BTreeSet<u64>,
    pub(crate) left: BTreeSet<u64>,
    /// Complete pages that were too few to be written.
    pub(crate) rest: BTreeSet<u64>,
    pub(crate) clean: bool,
}

impl Tasks {
    /// The next thing to do: first what somebody may be waiting for.
    pub(crate) fn take(&mut self) -> Option<Task> {
        let ahead = self.ahead.take().map(Task::Ahead);
        ahead
            .or_else(|| self.blocks.pop_front().map(Task::Block))
            .or_else(|| self.complete.pop_first().map(Task::Complete))
            .or_else(|| self.left.pop_first().map(Task::Left))
            .or_else(|| std::mem::take(&mut self.clean).then_some(Task::Clean))
    }

    /// Forgets what is to be written: those pages stay dirty.
    pub(crate) fn forget_writes(&mut self) {
        self.complete.clear();
        self.left.clear();
        self.rest.clear();
        self.clean = false;
    }

    /// Adds a block to be read; of many that nobody came to read, the oldest is forgotten.
    pub(crate) fn add_block(&mut self, first: u64) {
        if self.blocks.len() == MOST_BLOCKS {
            self.blocks.pop_front();
        }
        self.blocks.push_back(first);
    }

    /// The next thing to do when nothing came for a while.
    pub(crate) fn take_late(&mut self) -> Option<Task> {
        self.take().or_else(|| self.rest.pop_first().map(Task::Rest))
    }

    /// Whether there is something to do when nothing comes for a while.
    pub(crate) fn has_rest(&self) -> bool {
        !self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(tasks: &mut Tasks) -> Vec<Task> {
        std::iter::from_fn(|| tasks.take()).collect()
    }

    #[test]
    fn what_somebody_may_wait_for_comes_first() {
        let mut tasks = Tasks { clean: true, ..Tasks::default() };
        tasks.rest.insert(9);
        tasks.left.extend([7, 5]);
        tasks.complete.extend([4, 3, 4]);
        tasks.add_block(2);
        tasks.ahead = Some(0..1);
        tasks.ahead = Some(1..3);
        let expected = [
            Task::Ahead(1..3),
            Task::Block(2),
            Task::Complete(3),
            Task::Complete(4),
            Task::Left(5),
            Task::Left(7),
            Task::Clean,
        ];
        assert_eq!(all(&mut tasks), expected);
        assert!(tasks.has_rest());
        assert_eq!((tasks.take_late(), tasks.take_late()), (Some(Task::Rest(9)), None));
    }

    #[test]
    fn of_many_blocks_the_oldest_is_forgotten() {
        let mut tasks = Tasks::default();
        (0..20).for_each(|first| tasks.add_block(first));
        let expected: Vec<Task> = (4..20).map(Task::Block).collect();
        assert_eq!(all(&mut tasks), expected);
    }

    #[test]
    fn writes_are_forgotten_and_reads_are_not() {
        let mut tasks = Tasks { clean: true, ahead: Some(1..2), ..Tasks::default() };
        tasks.rest.insert(9);
        tasks.left.insert(5);
        tasks.complete.insert(4);
        tasks.add_block(2);
        tasks.forget_writes();
        assert_eq!(all(&mut tasks), [Task::Ahead(1..2), Task::Block(2)]);
        assert!(!tasks.has_rest());
    }
}

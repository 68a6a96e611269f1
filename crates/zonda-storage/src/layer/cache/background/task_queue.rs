//! The tasks of the thread of a cache. A newer task replaces an older one where that is enough.

use crate::tuning::MOST_WAITING_BLOCKS;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// One task.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CacheTask {
    /// Read these pages, which a caller is about to ask for.
    ReadAhead(Range<u64>),
    /// Read the block that begins with this page: a caller reads the block before it.
    ReadBlock(u64),
    /// Write this page, which became complete, with the complete ones around it.
    WriteComplete(u64),
    /// Write this complete page and those around it, however few they are: no more came for a while.
    WriteIncompleteRun(u64),
    /// Write this page, complete or not: the stream that wrote it has gone on to the next.
    WritePassed(u64),
    /// Write some of the pages that would be evicted next.
    CleanOldest,
}

/// All tasks that wait.
#[derive(Debug, Default)]
pub(crate) struct TaskQueue {
    pub(crate) ahead: Option<Range<u64>>,
    /// Blocks to be read, newest at the end.
    blocks: VecDeque<u64>,
    pub(crate) complete: BTreeSet<u64>,
    pub(crate) passed: BTreeSet<u64>,
    /// First pages of runs of complete pages that are too short to be written at once.
    pub(crate) incomplete_runs: BTreeSet<u64>,
    pub(crate) clean: bool,
}

impl TaskQueue {
    /// The next task: reads first, since somebody may wait for them.
    pub(crate) fn take(&mut self) -> Option<CacheTask> {
        let ahead = self.ahead.take().map(CacheTask::ReadAhead);
        ahead
            .or_else(|| self.blocks.pop_front().map(CacheTask::ReadBlock))
            .or_else(|| self.complete.pop_first().map(CacheTask::WriteComplete))
            .or_else(|| self.passed.pop_first().map(CacheTask::WritePassed))
            .or_else(|| std::mem::take(&mut self.clean).then_some(CacheTask::CleanOldest))
    }

    /// Forgets all writes; the pages stay dirty.
    pub(crate) fn forget_writes(&mut self) {
        self.complete.clear();
        self.passed.clear();
        self.incomplete_runs.clear();
        self.clean = false;
    }

    /// Adds a block to be read; if too many wait, the oldest is dropped.
    pub(crate) fn add_block(&mut self, first: u64) {
        if self.blocks.len() == MOST_WAITING_BLOCKS {
            self.blocks.pop_front();
        }
        self.blocks.push_back(first);
    }

    /// The next task when none came for a while: runs that are too short are written, too.
    pub(crate) fn take_late(&mut self) -> Option<CacheTask> {
        self.take().or_else(|| self.incomplete_runs.pop_first().map(CacheTask::WriteIncompleteRun))
    }

    /// Whether a run that is too short waits for more pages.
    pub(crate) fn has_incomplete_runs(&self) -> bool {
        !self.incomplete_runs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(tasks: &mut TaskQueue) -> Vec<CacheTask> {
        std::iter::from_fn(|| tasks.take()).collect()
    }

    #[test]
    fn what_somebody_may_wait_for_comes_first() {
        let mut tasks = TaskQueue { clean: true, ..TaskQueue::default() };
        tasks.incomplete_runs.insert(9);
        tasks.passed.extend([7, 5]);
        tasks.complete.extend([4, 3, 4]);
        tasks.add_block(2);
        tasks.ahead = Some(0..1);
        tasks.ahead = Some(1..3);
        let expected = [
            CacheTask::ReadAhead(1..3),
            CacheTask::ReadBlock(2),
            CacheTask::WriteComplete(3),
            CacheTask::WriteComplete(4),
            CacheTask::WritePassed(5),
            CacheTask::WritePassed(7),
            CacheTask::CleanOldest,
        ];
        assert_eq!(all(&mut tasks), expected);
        assert!(tasks.has_incomplete_runs());
        assert_eq!(
            (tasks.take_late(), tasks.take_late()),
            (Some(CacheTask::WriteIncompleteRun(9)), None)
        );
    }

    #[test]
    fn of_many_blocks_the_oldest_is_forgotten() {
        let mut tasks = TaskQueue::default();
        (0..20).for_each(|first| tasks.add_block(first));
        let expected: Vec<CacheTask> = (4..20).map(CacheTask::ReadBlock).collect();
        assert_eq!(all(&mut tasks), expected);
    }

    #[test]
    fn writes_are_forgotten_and_reads_are_not() {
        let mut tasks = TaskQueue { clean: true, ahead: Some(1..2), ..TaskQueue::default() };
        tasks.incomplete_runs.insert(9);
        tasks.passed.insert(5);
        tasks.complete.insert(4);
        tasks.add_block(2);
        tasks.forget_writes();
        assert_eq!(all(&mut tasks), [CacheTask::ReadAhead(1..2), CacheTask::ReadBlock(2)]);
        assert!(!tasks.has_incomplete_runs());
    }
}

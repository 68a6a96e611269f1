//! Messages of one step, from mailbox to mailbox.

use std::time::{Duration, Instant};

use crate::algorithms::{Links, Tag};
use crate::{Kind, Step, TeamError};

use super::mailbox::{Letter, Wanted};
use super::shared::{Shared, failed};

/// A rank in a step.
#[derive(Debug)]
pub(super) struct StepLinks<'a> {
    pub(super) shared: &'a Shared,
    pub(super) rank: usize,
    pub(super) step: Step<'a>,
    /// Which of its steps it is.
    pub(super) number: u64,
    pub(super) kind: Kind,
}

impl StepLinks<'_> {
    fn wait(&self, tag: Tag, from: Option<usize>) -> Result<Letter, TeamError> {
        let Shared { options, .. } = self.shared;
        let wanted = Wanted { step: self.number, tag, from };
        let since = Instant::now();
        let mut report_at = options.report_every;
        loop {
            let until = options.timeout.map_or(report_at, |timeout| timeout.min(report_at));
            let mut lost = None;
            let is_lost = || {
                lost = self.shared.lost(self.rank, wanted);
                lost.is_some()
            };
            let time = until.saturating_sub(since.elapsed());
            if let Some(letter) = self.shared.mailbox(self.rank).take(wanted, time, is_lost) {
                self.shared.counters(self.rank).received(self.kind);
                return Ok(letter);
            }
            if let Some(lost) = lost {
                return Err(self.failed(self.shared.text_of_lost(lost)));
            }
            let waited = since.elapsed();
            if options.timeout.is_some_and(|timeout| waited >= timeout) {
                return Err(self.timed_out(waited, from));
            }
            if waited >= report_at {
                let report = self.shared.report(self.rank, self.step, wanted, waited);
                if (options.reporter)(&report).is_break() {
                    return Err(self.timed_out(waited, from));
                }
                report_at = waited.saturating_add(options.report_every);
            }
        }
    }

    fn timed_out(&self, waited: Duration, from: Option<usize>) -> TeamError {
        let Step { call, file } = self.step;
        let whom = from.map_or_else(|| "other ranks".into(), |from| format!("rank {from}"));
        TeamError::TimedOut { call: call.into(), file: file.into(), waited, whom }
    }
}

impl Links for StepLinks<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size()
    }

    fn send(&self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), TeamError> {
        self.shared.begin_message(self.rank, self.step)?;
        self.shared.counters(self.rank).sent(self.kind, bytes.len());
        let sent = self.shared.send((self.rank, to), (self.number, tag), bytes);
        sent.map_err(|what| self.failed(what))
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>, TeamError> {
        self.wait(tag, Some(from)).map(|(_, bytes)| bytes)
    }

    fn receive_any(&self, tag: Tag) -> Result<(usize, Vec<u8>), TeamError> {
        self.wait(tag, None)
    }

    fn failed(&self, what: String) -> TeamError {
        failed(self.step, what)
    }
}

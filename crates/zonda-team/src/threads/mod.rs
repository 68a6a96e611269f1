//! A simulated team: up to 1,024 ranks, which are threads of this process, for tests.
//!
//! ```
//! use zonda_team::{Reduction, Step, Team, threads};
//!
//! let sums = threads::all(16, |team| {
//!     let mut numbers = [team.rank() as u64];
//!     team.reduce(Step { call: "example", file: "none" }, Reduction::Sum, &mut numbers)?;
//!     Ok::<u64, zonda_team::TeamError>(numbers[0])
//! });
//! assert!(sums.iter().all(|sum| *sum == Ok(120)));
//! ```
//!
//! The steps are those of [`algorithms`], message by message, so what is counted is what an implementation over
//! point-to-point messages sends. Two things are told that MPI would not tell: a step that differs from that of other ranks
//! fails, and who waits for a rank whose body returned or panicked gets an error. [`Options`] can have ranks delayed, failing or dying at any
//! step or message: of that the others hear nothing, so they wait until [`Options::timeout`] or until the reporter ends it.
//! With a timeout they wait for ranks that left after an error in the same way, so that whose time ends first decides nothing.

mod links;
mod mailbox;
mod options;
mod report;
mod shared;

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use crate::{Kind, Message, Reduction, Step, Team, TeamError, Traffic, algorithms, tuning};

use links::StepLinks;
use shared::{Form, Leaving};

pub(crate) use shared::Shared;

pub use options::{Fault, Moment, Options, Reporter, Trouble};
pub use report::Report;

/// The simulated team as one of its ranks sees it. A clone is the same rank.
#[derive(Clone)]
pub struct Threads {
    shared: Arc<Shared>,
    rank: usize,
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threads(rank {} of {})", self.rank, self.size())
    }
}

/// How a rank ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End<T> {
    /// Its body returned.
    Returned(T),
    /// Its body panicked with this message, or its thread could not be started.
    Panicked(String),
    /// It died of a [`Fault`].
    Died,
}

/// What became of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished<T> {
    /// How it ended.
    pub end: End<T>,
    /// What it sent.
    pub traffic: Traffic,
}

impl<T> Finished<T> {
    /// What the body returned, if it did.
    #[must_use]
    pub fn returned(self) -> Option<T> {
        match self.end {
            End::Returned(value) => Some(value),
            End::Panicked(_) | End::Died => None,
        }
    }
}

/// Runs `body` on each of `n` ranks at the same time, and returns when all have ended: what became of each, in their order.
///
/// Ranks wait without end for one that dies of a fault, unless there is a timeout or a reporter that ends it.
///
/// # Panics
/// If `n` is 0 or greater than 1,024. A panic of a rank is in its [`End`].
pub fn run<T: Send>(
    n: usize,
    options: &Options,
    body: impl Fn(&Threads) -> T + Sync,
) -> Vec<Finished<T>> {
    let most = tuning::MOST_RANKS;
    assert!((1..=most).contains(&n), "a simulated team has 1 to {most} ranks, and not {n}");
    run_ranks(&Arc::new(Shared::new(n, options)), 0..n, body)
}

/// Runs `body` on those ranks of a team that are threads of this process.
pub(crate) fn run_ranks<T: Send>(
    shared: &Arc<Shared>,
    ranks: Range<usize>,
    body: impl Fn(&Threads) -> T + Sync,
) -> Vec<Finished<T>> {
    let (most, n) = (tuning::MOST_RANKS, ranks.len());
    assert!(n <= most, "a process runs at most {most} ranks of a team, and not {n}");
    let body = &body;
    let ends: Vec<End<T>> = std::thread::scope(|scope| {
        let start = |rank| {
            let team = Threads { shared: Arc::clone(shared), rank };
            let thread = std::thread::Builder::new().name(format!("rank {rank}"));
            let started = thread
                .stack_size(shared.options.stack_bytes)
                .spawn_scoped(scope, move || team.live(body));
            started.map_err(|error| {
                shared.leave(rank, Leaving::Panicked);
                format!("the thread of rank {rank} could not be started: {error}")
            })
        };
        let started: Vec<_> = ranks.clone().map(start).collect();
        started.into_iter().map(ended).collect()
    });
    let traffic = ranks.map(|rank| shared.counters(rank).traffic());
    ends.into_iter().zip(traffic).map(|(end, traffic)| Finished { end, traffic }).collect()
}

/// Runs `body` on each of `n` ranks, where nothing is to go wrong: what it returned on each.
///
/// # Panics
/// As [`run`]; if a rank panics.
pub fn all<T: Send>(n: usize, body: impl Fn(&Threads) -> T + Sync) -> Vec<T> {
    let finished = run(n, &Options::default(), body).into_iter().enumerate();
    let value = |(rank, finished): (usize, Finished<T>)| match finished.end {
        End::Returned(value) => value,
        End::Panicked(text) => panic!("rank {rank} of {n} panicked: {text}"),
        End::Died => unreachable!("there are no faults"),
    };
    finished.map(value).collect()
}

/// How a thread ended that was started, or why it was not.
fn ended<T>(started: Result<ScopedJoinHandle<'_, End<T>>, String>) -> End<T> {
    match started.map(ScopedJoinHandle::join) {
        Ok(Ok(end)) => end,
        Ok(Err(panic)) => End::Panicked(text_of(&*panic)),
        Err(text) => End::Panicked(text),
    }
}

/// The message of a panic.
fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("(no message)").to_owned()
}

impl Threads {
    /// What this rank sent so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.shared.counters(self.rank).traffic()
    }

    /// The life of the rank, on its thread.
    fn live<T>(self, body: impl Fn(&Threads) -> T) -> End<T> {
        // What the body shares with others is theirs to look after, as it is with any thread that panics.
        let result = catch_unwind(AssertUnwindSafe(|| body(&self)));
        if self.shared.is_dead(self.rank) {
            return End::Died;
        }
        let (end, leaving) = match result {
            Ok(value) => (End::Returned(value), Leaving::Returned),
            Err(panic) => (End::Panicked(text_of(&*panic)), Leaving::Panicked),
        };
        self.shared.leave(self.rank, leaving);
        end
    }

    /// One step: what all of them have in common.
    fn step<T>(
        &self,
        step: Step<'_>,
        form: Form,
        work: impl FnOnce(&StepLinks<'_>) -> Result<T, TeamError>,
    ) -> Result<T, TeamError> {
        let number = self.shared.enter(self.rank, step, form)?;
        let links =
            StepLinks { shared: &self.shared, rank: self.rank, step, number, kind: form.kind };
        let result = work(&links);
        self.shared.finish(self.rank, result.is_ok());
        result
    }
}

impl Team for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size()
    }

    fn n_on_node(&self) -> usize {
        self.shared.n_on_node(self.rank)
    }

    fn broadcast(&self, step: Step<'_>, root: usize, bytes: &mut Vec<u8>) -> Result<(), TeamError> {
        let form = Form { kind: Kind::Broadcast, detail: root };
        self.step(step, form, |links| algorithms::broadcast(links, root, bytes))
    }

    fn reduce(&self, step: Step<'_>, how: Reduction, numbers: &mut [u64]) -> Result<(), TeamError> {
        let form = Form { kind: Kind::Reduce, detail: how as usize };
        self.step(step, form, |links| algorithms::reduce(links, how, numbers))
    }

    fn scan(&self, step: Step<'_>, numbers: &mut [u64]) -> Result<(), TeamError> {
        let form = Form { kind: Kind::Scan, detail: 0 };
        self.step(step, form, |links| algorithms::scan(links, numbers))
    }

    fn gather(&self, step: Step<'_>, root: usize, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TeamError> {
        let form = Form { kind: Kind::Gather, detail: root };
        self.step(step, form, |links| algorithms::gather(links, root, bytes))
    }

    fn exchange(&self, step: Step<'_>, messages: Vec<Message>) -> Result<Vec<Message>, TeamError> {
        let form = Form { kind: Kind::Exchange, detail: 0 };
        let exchange =
            |links: &StepLinks<'_>| Ok((links.number, algorithms::exchange(links, messages)?));
        let (number, received) = self.step(step, form, exchange)?;
        if !self.shared.lacks_memory(self.rank, number) {
            return Ok(received);
        }
        let bytes = received.iter().fold(0, |sum, message| sum + message.bytes.len());
        Err(TeamError::NoMemory { call: step.call.to_owned(), file: step.file.to_owned(), bytes })
    }

    fn exchange_known(
        &self,
        step: Step<'_>,
        messages: Vec<(Message, usize)>,
        expected: &[(usize, usize)],
    ) -> Result<Vec<Message>, TeamError> {
        let messages = messages.into_iter().map(|(message, _)| message).collect();
        let got = self.exchange(step, messages)?;
        // MPI would wait for ever, or cut a message off.
        let is_as_known = got.len() == expected.len()
            && got.iter().zip(expected).all(|(one, &(rank, len))| {
                one.rank == rank && (one.bytes.len() == len || one.bytes.is_empty())
            });
        if is_as_known {
            return Ok(got);
        }
        Err(TeamError::Failed {
            call: step.call.into(),
            file: step.file.into(),
            what: "what ranks sent is not what was expected".into(),
        })
    }
}

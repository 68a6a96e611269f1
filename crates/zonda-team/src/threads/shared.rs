//! What the ranks of a simulated team have in common.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use zonda_runtime::lock::{Mutex, Rank};

use crate::algorithms::Tag;
use crate::spread::{self, Frame, FrameKind, Head, Mesh, TeamName};
use crate::traffic::Counters;
use crate::{Kind, Reduction, Step, TeamError};

use super::mailbox::{Mailbox, Wanted};
use super::options::{Fault, Moment, Options, Trouble};
use super::report::Report;

/// How a rank leaves the team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Leaving {
    /// Its body returned.
    Returned = 1,
    /// A step of it had failed; then its body ended in some way.
    Failed,
    /// Its body panicked.
    Panicked,
    /// The process that ran it has ended.
    Lost,
}

impl Leaving {
    fn of(number: u8) -> Option<Leaving> {
        let all = [Leaving::Returned, Leaving::Failed, Leaving::Panicked, Leaving::Lost];
        all.into_iter().find(|leaving| *leaving as u8 == number)
    }
}

/// The processes that run ranks of a team, one of which is this one.
#[derive(Debug)]
struct Outside {
    mesh: Arc<Mesh>,
    name: TeamName,
}

impl Outside {
    fn head(&self, kind: FrameKind, from: usize) -> Head {
        Head { kind, team: self.name, step: 0, tag: 0, from: narrow(from), to: 0 }
    }
}

/// The number of a rank as it travels.
fn narrow(rank: usize) -> u32 {
    u32::try_from(rank).unwrap_or(u32::MAX)
}

/// What all ranks do alike in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) kind: Kind,
    /// The root, or the reduction.
    pub(super) detail: usize,
}

impl Form {
    fn text(self) -> String {
        let Form { kind, detail } = self;
        match kind {
            Kind::Broadcast => format!("broadcast from rank {detail}"),
            Kind::Gather => format!("gather to rank {detail}"),
            Kind::Reduce => {
                let all = [Reduction::Sum, Reduction::Max, Reduction::Min, Reduction::Or];
                let how = all.into_iter().find(|how| *how as usize == detail);
                how.map_or("reduce".into(), |how| format!("reduce by {how:?}"))
            }
            Kind::Scan | Kind::Exchange => kind.name().into(),
        }
    }
}

/// What the first rank does in a step, for the others to be compared with.
#[derive(Debug)]
struct First {
    form: Form,
    rank: usize,
    call: String,
    n_come: usize,
}

/// A rank, as the others see it.
#[derive(Debug)]
struct Seat {
    mailbox: Mailbox,
    counters: Counters,
    faults: Vec<Fault>,
    /// A [`Leaving`], or 0.
    left: AtomicU8,
    is_broken: AtomicBool,
    is_dead: AtomicBool,
    /// Steps that it came to.
    n_begun: AtomicU64,
    /// Steps that it came to the end of.
    n_finished: AtomicU64,
    /// Messages that it was to send.
    n_sent: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) options: Options,
    seats: Vec<Seat>,
    /// Where the other ranks are, of a team of several processes.
    outside: Option<Outside>,
    /// The steps to which some ranks have come, and some not.
    begun: Mutex<HashMap<u64, First>>,
}

/// A step that failed on its way.
pub(super) fn failed(step: Step<'_>, what: String) -> TeamError {
    TeamError::Failed { call: step.call.into(), file: step.file.into(), what }
}

fn text_of_lost_process(rank: usize) -> String {
    format!("the process that ran rank {rank} has ended")
}

fn broken(step: Step<'_>) -> TeamError {
    TeamError::Broken { call: step.call.into(), file: step.file.into() }
}

/// Ends the thread of a rank that died. It is no panic, so nothing is printed.
struct Death;

impl Shared {
    pub(super) fn new(n: usize, options: &Options) -> Shared {
        Shared::of(n, options, None)
    }

    /// Of a team whose ranks are in several processes.
    pub(crate) fn spread(
        n: usize,
        options: &Options,
        (mesh, name): (&Arc<Mesh>, TeamName),
    ) -> Shared {
        Shared::of(n, options, Some(Outside { mesh: Arc::clone(mesh), name }))
    }

    fn of(n: usize, options: &Options, outside: Option<Outside>) -> Shared {
        let seat = |rank| Seat {
            mailbox: Mailbox::new(),
            counters: Counters::default(),
            faults: options.faults.iter().filter(|fault| fault.rank == rank).copied().collect(),
            left: AtomicU8::new(0),
            is_broken: AtomicBool::new(false),
            is_dead: AtomicBool::new(false),
            n_begun: AtomicU64::new(0),
            n_finished: AtomicU64::new(0),
            n_sent: AtomicU64::new(0),
        };
        Shared {
            options: options.clone(),
            seats: (0..n).map(seat).collect(),
            outside,
            begun: Mutex::ranked(Rank::Mailbox, HashMap::new()),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.seats.len()
    }

    /// The ranks that are threads of this process.
    fn ranks_here(&self) -> Range<usize> {
        let n = self.size();
        match &self.outside {
            None => 0..n,
            Some(Outside { mesh, .. }) => spread::ranks_of(mesh.me(), n, mesh.size()),
        }
    }

    pub(super) fn n_on_node(&self, rank: usize) -> usize {
        match self.options.n_on_node {
            0 => self.size(),
            most => most.min(self.size() - rank / most * most),
        }
    }

    pub(super) fn counters(&self, rank: usize) -> &Counters {
        &self.seats[rank].counters
    }

    pub(super) fn mailbox(&self, rank: usize) -> &Mailbox {
        &self.seats[rank].mailbox
    }

    /// Brings a letter to a rank, which may be in another process.
    pub(super) fn send(
        &self,
        (from, to): (usize, usize),
        (step, tag): (u64, Tag),
        bytes: Vec<u8>,
    ) -> Result<(), String> {
        let away = self.outside.as_ref().filter(|_| !self.ranks_here().contains(&to));
        let Some(outside) = away else {
            self.mailbox(to).put(step, tag, from, bytes);
            return Ok(());
        };
        let head = Head { step, tag, to: narrow(to), ..outside.head(FrameKind::Letter, from) };
        let member = spread::member_of(to, self.size(), outside.mesh.size());
        // A rank of a process that has ended, and not only of one whose rank has left.
        outside.mesh.send(member, &head, &bytes).map_err(|_| text_of_lost_process(to))
    }

    /// Takes what came from another process; `None` where that one could not have sent it.
    pub(crate) fn take(&self, member: usize, frame: Frame) -> Option<()> {
        let Frame { head, bytes } = frame;
        let mesh = &self.outside.as_ref()?.mesh;
        let from = usize::try_from(head.from).ok()?;
        if !spread::ranks_of(member, self.size(), mesh.size()).contains(&from) {
            return None;
        }
        let seat = self.seats.get(from)?;
        match head.kind {
            FrameKind::Letter => {
                let to =
                    usize::try_from(head.to).ok().filter(|to| self.ranks_here().contains(to))?;
                // It has come to this step.
                seat.n_begun.fetch_max(head.step.saturating_add(1), Ordering::SeqCst);
                self.mailbox(to).put(head.step, head.tag, from, bytes);
            }
            FrameKind::Left => {
                let leaving = Leaving::of(u8::try_from(head.tag).ok()?)?;
                seat.n_finished.store(head.step, Ordering::SeqCst);
                seat.left.store(leaving as u8, Ordering::SeqCst);
                self.nudge_all();
            }
            FrameKind::Notice => return None,
        }
        Some(())
    }

    /// The process of a member has ended: who waits for its ranks hears of it.
    pub(crate) fn lose_member(&self, member: usize) {
        let Some(Outside { mesh, .. }) = &self.outside else { return };
        for rank in spread::ranks_of(member, self.size(), mesh.size()) {
            // Those that had left before did so in order.
            let lost = Leaving::Lost as u8;
            let _ =
                self.seats[rank].left.compare_exchange(0, lost, Ordering::SeqCst, Ordering::SeqCst);
        }
        self.nudge_all();
    }

    fn nudge_all(&self) {
        self.seats.iter().for_each(|seat| seat.mailbox.nudge());
    }

    pub(super) fn is_dead(&self, rank: usize) -> bool {
        self.seats[rank].is_dead.load(Ordering::SeqCst)
    }

    /// A rank comes to its next step: the number of it.
    pub(super) fn enter(&self, rank: usize, step: Step<'_>, form: Form) -> Result<u64, TeamError> {
        let seat = &self.seats[rank];
        if self.is_dead(rank) {
            return Err(self.die(rank, step));
        }
        if seat.is_broken.load(Ordering::SeqCst) {
            return Err(broken(step));
        }
        let number = seat.n_begun.load(Ordering::SeqCst);
        let entered = self.suffer(rank, step, Moment::Step(number)).and_then(|()| {
            seat.n_begun.store(number + 1, Ordering::SeqCst);
            seat.counters.begin(form.kind);
            self.compare(rank, number, step, form)
        });
        if entered.is_err() {
            self.finish(rank, false);
        }
        entered.map(|()| number)
    }

    /// A rank came to the end of its step, or the step failed and the team is of no use to it any more.
    pub(super) fn finish(&self, rank: usize, is_ok: bool) {
        let seat = &self.seats[rank];
        if is_ok {
            seat.n_finished.fetch_add(1, Ordering::SeqCst);
        } else {
            seat.is_broken.store(true, Ordering::SeqCst);
        }
    }

    /// Looks whether a rank does what the others do in this step.
    fn compare(
        &self,
        rank: usize,
        number: u64,
        step: Step<'_>,
        form: Form,
    ) -> Result<(), TeamError> {
        let mut begun = self.begun.lock();
        let first = begun.entry(number).or_insert_with(|| First {
            form,
            rank,
            call: step.call.into(),
            n_come: 0,
        });
        if first.form != form {
            let (mine, other) = (form.text(), first.form.text());
            let First { rank: other_rank, call, .. } = first;
            return Err(failed(
                step,
                format!(
                    "rank {rank} is in a {mine}, and rank {other_rank} in a {other} ({call}): all ranks take the same steps in the same order"
                ),
            ));
        }
        first.n_come += 1;
        if first.n_come == self.ranks_here().len() {
            begun.remove(&number);
        }
        Ok(())
    }

    /// The number of the next message of a rank, before which something may go wrong.
    pub(super) fn begin_message(&self, rank: usize, step: Step<'_>) -> Result<(), TeamError> {
        let number = self.seats[rank].n_sent.fetch_add(1, Ordering::SeqCst);
        self.suffer(rank, step, Moment::Message(number))
    }

    /// What goes wrong at a moment.
    fn suffer(&self, rank: usize, step: Step<'_>, moment: Moment) -> Result<(), TeamError> {
        for fault in self.seats[rank].faults.iter().filter(|fault| fault.before == moment) {
            match fault.what {
                Trouble::Delay(time) => std::thread::sleep(time),
                Trouble::Error => {
                    return Err(failed(step, format!("a fault was injected before {moment:?}")));
                }
                Trouble::Death => return Err(self.die(rank, step)),
                Trouble::NoMemory => {}
            }
        }
        Ok(())
    }

    /// Whether a rank has no memory for what comes in a step.
    pub(super) fn lacks_memory(&self, rank: usize, number: u64) -> bool {
        let fault = Fault { rank, before: Moment::Step(number), what: Trouble::NoMemory };
        self.seats[rank].faults.contains(&fault)
    }

    /// Unwinds from a rank that died. Who calls steps while that goes on gets an error.
    fn die(&self, rank: usize, step: Step<'_>) -> TeamError {
        self.seats[rank].is_dead.store(true, Ordering::SeqCst);
        if !std::thread::panicking() {
            std::panic::resume_unwind(Box::new(Death));
        }
        broken(step)
    }

    /// A rank will not call steps any more: who waits for it hears of it.
    pub(super) fn leave(&self, rank: usize, leaving: Leaving) {
        let seat = &self.seats[rank];
        let leaving = match seat.is_broken.load(Ordering::SeqCst) {
            true => Leaving::Failed,
            false => leaving,
        };
        // Before the others are looked at: who is not seen waiting sees this.
        seat.left.store(leaving as u8, Ordering::SeqCst);
        self.nudge_all();
        if let Some(outside) = &self.outside {
            let head = Head {
                step: seat.n_finished.load(Ordering::SeqCst),
                tag: u32::from(leaving as u8),
                ..outside.head(FrameKind::Left, rank)
            };
            for member in spread::others_of(&outside.mesh, self.size()) {
                // A member that has ended waits for nobody.
                let _ = outside.mesh.send(member, &head, &[]);
            }
        }
    }

    /// Whether a rank has left, and is known to have. After an error others know it only where they have no timeout: those that have
    /// one wait for it, whoever was first.
    fn has_left(&self, rank: usize) -> bool {
        let left = self.seats[rank].left.load(Ordering::SeqCst);
        left != 0 && (left != Leaving::Failed as u8 || self.options.timeout.is_none())
    }

    /// A rank because of which a letter that has not come will not come any more.
    pub(super) fn lost(&self, rank: usize, wanted: Wanted) -> Option<usize> {
        if let Some(from) = wanted.from {
            return Some(from).filter(|&from| self.has_left(from));
        }
        // Whoever came to the end of the step had sent all. How far a rank came is final once it has left, and not before.
        let is_lost = |other: &usize| {
            let is_behind = || self.seats[*other].n_finished.load(Ordering::SeqCst) <= wanted.step;
            *other != rank && self.has_left(*other) && is_behind()
        };
        (0..self.size()).find(is_lost)
    }

    /// What is to be said of a rank that a letter did not come from.
    pub(super) fn text_of_lost(&self, rank: usize) -> String {
        match self.seats[rank].left.load(Ordering::SeqCst) {
            left if left == Leaving::Panicked as u8 => format!("rank {rank} panicked"),
            left if left == Leaving::Failed as u8 => format!("rank {rank} left after an error"),
            left if left == Leaving::Lost as u8 => text_of_lost_process(rank),
            _ => format!("rank {rank} has ended without this step"),
        }
    }

    /// Who waits where.
    pub(super) fn report(
        &self,
        rank: usize,
        step: Step<'_>,
        wanted: Wanted,
        waited: Duration,
    ) -> Report {
        let is_absent = |other: &usize| {
            let n_begun = self.seats[*other].n_begun.load(Ordering::SeqCst);
            n_begun <= wanted.step
        };
        Report {
            rank,
            size: self.size(),
            call: step.call.into(),
            file: step.file.into(),
            waited,
            awaits: wanted.from,
            absent: (0..self.size()).filter(is_absent).collect(),
        }
    }
}

//! Messages between ranks that do not come together for them: who sends goes on at once, and who receives looks now and then. This is how ranks
//! reach I/O servers that are ranks, too.
//!
//! A message begins with a heading of one length, which its receiver expects of anybody at any time; a long one follows by itself, and is received when
//! there is room for it. MPI works on what is under way only while some call of it is made.

use crate::error::MpiError;
use crate::flight::{Fault, Flight, Slot, Tag};
use crate::heading::{self, Rest};
use crate::team::{InStep, MpiTeam};
use crate::tuning::HEADING_BYTES;
use std::collections::{BTreeMap, VecDeque};
use zonda_team::{Step, TeamError};

/// The messages of a rank, on a communicator that nothing else uses.
#[derive(Debug)]
pub struct Post {
    team: MpiTeam,
    sending: Vec<Sending>,
    /// Where the next heading comes.
    expected: Option<(Flight, Slot)>,
    /// What comes from ranks, in the order in which each sent it.
    coming: BTreeMap<usize, VecDeque<Coming>>,
    /// The rank that is looked at last.
    last: usize,
}

#[derive(Debug)]
struct Sending {
    flight: Flight,
    n_bytes: usize,
}

#[derive(Debug)]
enum Coming {
    Here(Vec<u8>),
    Announced(usize),
    UnderWay(Flight, Slot),
}

impl Coming {
    fn len(&self) -> usize {
        match self {
            Coming::Here(bytes) => bytes.len(),
            Coming::Announced(len) => *len,
            Coming::UnderWay(..) => 0,
        }
    }
}

impl Post {
    /// The messages between the ranks of a communicator, which all call this and may free it afterwards.
    ///
    /// # Errors
    /// See [`MpiError`].
    pub fn new(step: Step<'_>, comm: usize) -> Result<Post, MpiError> {
        let team = MpiTeam::new(step, comm)?;
        let (sending, coming) = (Vec::new(), BTreeMap::new());
        Ok(Post { team, sending, expected: None, coming, last: 0 })
    }

    /// The ranks as a team, for what they do together before messages go.
    #[must_use]
    pub fn team(&self) -> &MpiTeam {
        &self.team
    }

    /// Sends a message to a rank.
    ///
    /// # Errors
    /// See [`TeamError`].
    pub fn send(&mut self, step: Step<'_>, to: usize, bytes: Vec<u8>) -> Result<(), TeamError> {
        let inside = self.team.enter(step)?;
        inside.check_rank(to)?;
        let n_bytes = bytes.len();
        let mut messages = vec![bytes];
        let (heading, _, is_apart) = heading::encode(self.team.channel.rank, &messages);
        let begun = inside.flight(|flight| {
            flight.send_short(heading, to, Tag::PostHeading)?;
            match messages.pop() {
                Some(bytes) if is_apart => flight.send(bytes, to, Tag::PostBody),
                _ => Ok(()),
            }
        });
        let ((), flight) = begun?;
        self.sending.push(Sending { flight, n_bytes });
        Ok(())
    }

    /// Bytes of messages of this rank that are still under way.
    ///
    /// # Errors
    /// See [`TeamError`].
    pub fn unsent_bytes(&mut self, step: Step<'_>) -> Result<usize, TeamError> {
        let inside = self.team.enter(step)?;
        let mut left = Vec::new();
        for mut sending in self.sending.drain(..) {
            if !over(&inside, &mut sending.flight)? {
                left.push(sending);
            }
        }
        drop(inside);
        self.sending = left;
        Ok(self.sending.iter().map(|sending| sending.n_bytes.max(1)).sum())
    }

    /// The next message that has come, with its sender; `None` if there is none now. What comes of a rank is not received before `is_wanted` says so of the
    /// rank and the length.
    ///
    /// # Errors
    /// See [`TeamError`].
    pub fn take(
        &mut self,
        step: Step<'_>,
        is_wanted: &mut dyn FnMut(usize, usize) -> bool,
    ) -> Result<Option<(usize, Vec<u8>)>, TeamError> {
        self.unsent_bytes(step)?;
        let inside = self.team.enter(step)?;
        while let Some(heading) = next_heading(&inside, &mut self.expected)? {
            let Some(heading) = heading::decode(&heading) else {
                return Err(inside.refuse("a message that no rank of Zonda sent"));
            };
            let coming = self.coming.entry(heading.sender).or_default();
            match heading.rest {
                Rest::Nothing(whole) => coming.extend(whole.into_iter().map(Coming::Here)),
                Rest::Messages(lengths) => {
                    coming.extend(lengths.into_iter().map(Coming::Announced));
                }
                Rest::Lengths(_) => return Err(inside.refuse("a message of another kind")),
            }
        }
        // Each rank in turn.
        let last = self.last;
        let ranks: Vec<usize> = self.coming.keys().copied().collect();
        let (before, behind): (Vec<usize>, Vec<usize>) =
            ranks.into_iter().partition(|rank| *rank <= last);
        for from in behind.into_iter().chain(before) {
            let Some(queue) = self.coming.get_mut(&from) else { continue };
            if let Some(bytes) = first(&inside, from, queue, is_wanted)? {
                if queue.is_empty() {
                    self.coming.remove(&from);
                }
                self.last = from;
                return Ok(Some((from, bytes)));
            }
        }
        Ok(None)
    }

    /// Ends the messages of this rank: no rank sends it any, and those that it sent have come.
    ///
    /// # Errors
    /// See [`TeamError`].
    pub fn end(mut self, step: Step<'_>) -> Result<(), TeamError> {
        if self.expected.is_some() {
            // MPI may not end while a heading is expected.
            let own = self.team.channel.rank;
            self.send(step, own, Vec::new())?;
            let mut is_over = false;
            while !is_over {
                let inside = self.team.enter(step)?;
                if let Some((flight, _)) = &mut self.expected {
                    is_over = over(&inside, flight)?;
                }
            }
            self.expected = None;
        }
        while self.unsent_bytes(step)? > 0 {
            std::thread::yield_now();
        }
        Ok(())
    }
}

fn over(inside: &InStep<'_>, flight: &mut Flight) -> Result<bool, TeamError> {
    flight.is_over().map_err(|fault| inside.fail(fault.into()))
}

/// A heading that has come. The next one is expected at once.
fn next_heading(
    inside: &InStep<'_>,
    expected: &mut Option<(Flight, Slot)>,
) -> Result<Option<Vec<u8>>, TeamError> {
    let expect = || {
        let begun =
            inside.flight(|flight| flight.receive(HEADING_BYTES, None, Tag::PostHeading))?;
        Ok((begun.1, begun.0))
    };
    let (mut flight, slot) = match expected.take() {
        Some(expected) => expected,
        None => expect()?,
    };
    if !over(inside, &mut flight)? {
        *expected = Some((flight, slot));
        return Ok(None);
    }
    *expected = Some(expect()?);
    let mut landed = flight.landed().ok_or_else(|| inside.fail(Fault::Number(0).into()))?;
    Ok(Some(landed.bytes(slot)))
}

/// The first message of a rank, if it has come.
fn first(
    inside: &InStep<'_>,
    from: usize,
    queue: &mut VecDeque<Coming>,
    is_wanted: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Option<Vec<u8>>, TeamError> {
    let Some(mut coming) = queue.pop_front() else { return Ok(None) };
    if !matches!(coming, Coming::UnderWay(..)) && !is_wanted(from, coming.len()) {
        queue.push_front(coming);
        return Ok(None);
    }
    if let Coming::Announced(len) = coming {
        // A length for which there is no memory ends the messages: it would come again and again.
        let (slot, flight) =
            inside.flight(|flight| flight.receive(len, Some(from), Tag::PostBody))?;
        coming = Coming::UnderWay(flight, slot);
    }
    let (mut flight, slot) = match coming {
        Coming::Here(bytes) => return Ok(Some(bytes)),
        Coming::Announced(_) => return Ok(None),
        Coming::UnderWay(flight, slot) => (flight, slot),
    };
    if !over(inside, &mut flight)? {
        queue.push_front(Coming::UnderWay(flight, slot));
        return Ok(None);
    }
    let mut landed = flight.landed().ok_or_else(|| inside.fail(Fault::Number(0).into()))?;
    Ok(Some(landed.bytes(slot)))
}

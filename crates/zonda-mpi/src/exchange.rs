//! Messages between ranks that only their senders know of.
//!
//! First each rank learns from how many others it gets something: one reduction of a list with a number for each rank, of which
//! each gets its own. MPI does that in about log2 n messages a rank. Then as many headings are received, of whoever
//! sends them, and what they announce (`heading.rs`). Where receivers know all of that, there is nothing but the messages.
//!
//! Nobody leaves the reduction before all have come to it. So all headings that come after it are of this exchange: the one before was
//! over on all ranks.
//!
//! A rank that has no memory for a message takes it all the same, in parts that it drops: its sender would wait for ever.

use crate::flight::{Fault, Flight, Landed, Slot, Tag, zeroed_bytes, zeros};
use crate::heading::{self, Heading, Rest};
use crate::rounds::rounds;
use crate::team::InStep;
use crate::tuning::{HEADING_BYTES, PART_BYTES};
use std::collections::BTreeMap;
use zonda_team::{Message, TeamError};

/// Messages by the rank they go to, or come from.
type ByRank = BTreeMap<usize, Vec<Vec<u8>>>;

/// Messages that there is no memory for: their senders and lengths.
type Refused = Vec<(usize, usize)>;

/// What a rank is sent beside its heading.
struct Apart {
    to: usize,
    lengths: Option<Vec<u8>>,
    messages: Vec<Vec<u8>>,
}

impl InStep<'_> {
    /// What [`zonda_team::Team::exchange`] says.
    pub(crate) fn exchange(&self, messages: Vec<Message>) -> Result<Vec<Message>, TeamError> {
        let mut to_send = ByRank::new();
        for Message { rank, bytes } in messages {
            self.check_rank(rank)?;
            to_send.entry(rank).or_default().push(bytes);
        }
        let own = self.team.channel.rank;
        let mut received = ByRank::new();
        if let Some(messages) = to_send.remove(&own) {
            received.insert(own, messages);
        }
        if self.team.channel.size > 1 {
            let n_senders = self.count_senders(&to_send)?;
            self.send_and_receive(to_send, n_senders, &mut received)?;
        }
        let flat = |(rank, messages): (usize, Vec<Vec<u8>>)| {
            messages.into_iter().map(move |bytes| Message { rank, bytes })
        };
        Ok(received.into_iter().flat_map(flat).collect())
    }

    /// What [`zonda_team::Team::exchange_known`] says.
    pub(crate) fn exchange_known(
        &self,
        messages: Vec<(Message, usize)>,
        expected: &[(usize, usize)],
    ) -> Result<Vec<Message>, TeamError> {
        let ranks = messages.iter().map(|(message, _)| message.rank);
        ranks.chain(expected.iter().map(|one| one.0)).try_for_each(|rank| self.check_rank(rank))?;
        if messages.iter().any(|(message, len)| message.bytes.len() > *len) {
            return Err(self.refuse("a message is longer than its receiver expects"));
        }
        // Before others send: for messages that there is no memory for.
        let spare =
            if expected.is_empty() { Ok(Vec::new()) } else { zeroed_bytes(self.part_bytes()) };
        let spare = spare.map_err(|fault| self.fail(fault.into()))?;
        let (mut ready, mut refused) = (Vec::new(), Refused::new());
        for &(sender, length) in expected {
            match zeroed_bytes(length) {
                Ok(memory) => ready.push((sender, length, memory)),
                Err(_) => refused.push((sender, length)),
            }
        }
        let most = self.part_bytes();
        // Receives first: what comes finds its place. Messages of one rank come in the order of steps.
        let (slots, coming) = self.flight(|flight| {
            let receive = |(sender, length, memory): (usize, usize, Vec<u8>)| {
                let slot = flight.in_parts(most, |flight| {
                    flight.receive_into(memory, length, Some(sender), Tag::Message)
                })?;
                Ok((sender, slot))
            };
            ready.into_iter().map(receive).collect::<Result<Vec<_>, Fault>>()
        })?;
        let ((), sent) = self.flight(|flight| {
            messages.into_iter().try_for_each(|(Message { rank, bytes }, len)| {
                flight.in_parts(most, |flight| flight.send_as(bytes, len, rank, Tag::Message))
            })
        })?;
        let mut landed = self.land(coming)?;
        let first = refused.first().map(|&(_, length)| length);
        self.take_and_drop(refused, spare)?;
        self.land(sent)?;
        if let Some(bytes) = first {
            return Err(self.without_memory(bytes));
        }
        let got = slots.into_iter();
        Ok(got.map(|(rank, slot)| Message { rank, bytes: landed.bytes(slot) }).collect())
    }

    /// How many other ranks have something for this one.
    fn count_senders(&self, to_send: &ByRank) -> Result<usize, TeamError> {
        let mut is_sent = vec![0_u64; self.team.channel.size];
        for &rank in to_send.keys() {
            is_sent[rank] = 1;
        }
        let (slot, mut landed) = self.fly(|flight| flight.sum_for_each(is_sent))?;
        let count = landed.numbers(slot)[0];
        let most = self.team.channel.size as u64 - 1;
        match usize::try_from(count) {
            Ok(n_senders) if count <= most => Ok(n_senders),
            _ => Err(self.not_understood()),
        }
    }

    fn send_and_receive(
        &self,
        to_send: ByRank,
        n_senders: usize,
        received: &mut ByRank,
    ) -> Result<(), TeamError> {
        // Before others send: for messages that there is no memory for.
        let spare = match n_senders {
            0 => Ok(Vec::new()),
            _ => zeros(self.part_bytes()),
        };
        let spare = spare.map_err(|fault| self.fail(fault.into()))?;
        // Two flights: long messages are not over before their receivers, who know of them by the headings, take them.
        let (mut apart, mut headings_to) = (Vec::new(), Vec::new());
        for (to, messages) in to_send {
            let (heading, lengths, are_apart) = heading::encode(self.team.channel.rank, &messages);
            headings_to.push((to, heading));
            if are_apart {
                apart.push(Apart { to, lengths, messages });
            }
        }
        let (slots, headings) = self.flight(|flight| {
            let slots = (0..n_senders)
                .map(|_| flight.receive(HEADING_BYTES, None, Tag::Heading))
                .collect::<Result<Vec<_>, _>>()?;
            for (to, heading) in headings_to {
                flight.send_short(heading, to, Tag::Heading)?;
            }
            Ok(slots)
        })?;
        let most = self.part_bytes();
        let ((), sent) = self.flight(|flight| send_apart(flight, apart, most))?;
        let announced = self.read_headings(&slots, self.land(headings)?, received)?;
        let announced = self.receive_lengths(announced)?;
        let refused = self.receive_messages(announced, received)?;
        let first = refused.first().map(|&(_, length)| length);
        self.take_and_drop(refused, spare)?;
        self.land(sent)?;
        first.map_or(Ok(()), |bytes| Err(self.without_memory(bytes)))
    }

    /// Bytes of one operation that carries a message.
    fn part_bytes(&self) -> usize {
        self.team.channel.most_bytes.min(PART_BYTES)
    }

    /// Takes messages and drops them.
    fn take_and_drop(&self, refused: Refused, mut spare: Vec<u8>) -> Result<(), TeamError> {
        for (sender, length) in refused {
            for part in rounds(length, self.part_bytes()) {
                let receive = |flight: &mut Flight| {
                    flight.receive_into(spare, part.len(), Some(sender), Tag::Message)
                };
                let (slot, mut landed) = self.fly(receive)?;
                spare = landed.bytes(slot);
            }
        }
        Ok(())
    }

    /// Takes the messages that are within headings; the others, by their senders.
    fn read_headings(
        &self,
        slots: &[Slot],
        mut landed: Landed,
        received: &mut ByRank,
    ) -> Result<Vec<(usize, Rest)>, TeamError> {
        let mut announced = Vec::new();
        for &slot in slots {
            let Some(Heading { sender, rest }) = heading::decode(&landed.bytes(slot)) else {
                return Err(self.not_understood());
            };
            match rest {
                Rest::Nothing(messages) => {
                    received.insert(sender, messages);
                }
                rest => announced.push((sender, rest)),
            }
        }
        Ok(announced)
    }

    /// Receives the lists of lengths that did not fit in headings.
    fn receive_lengths(
        &self,
        announced: Vec<(usize, Rest)>,
    ) -> Result<Vec<(usize, Vec<usize>)>, TeamError> {
        let mut known = Vec::new();
        let (slots, mut landed) = self.fly(|flight| {
            let mut slots = Vec::new();
            for (sender, rest) in announced {
                match rest {
                    Rest::Nothing(_) => {}
                    Rest::Messages(lengths) => known.push((sender, lengths)),
                    Rest::Lengths(count) => {
                        let bytes =
                            heading::bytes_of_lengths(count).ok_or(Fault::Memory(usize::MAX))?;
                        let slot = flight.receive(bytes, Some(sender), Tag::Lengths)?;
                        slots.push((sender, slot));
                    }
                }
            }
            Ok(slots)
        })?;
        for (sender, slot) in slots {
            let lengths = heading::lengths(&landed.bytes(slot));
            known.push((sender, lengths.ok_or_else(|| self.not_understood())?));
        }
        Ok(known)
    }

    /// Receives messages. Gives those that there is no memory for: they are to be taken next.
    fn receive_messages(
        &self,
        announced: Vec<(usize, Vec<usize>)>,
        received: &mut ByRank,
    ) -> Result<Refused, TeamError> {
        let mut refused = Refused::new();
        let (slots, mut landed) = self.fly(|flight| {
            let mut slots = Vec::new();
            for (sender, lengths) in announced {
                let mut has_room = true;
                for length in lengths {
                    // What comes behind one that waits cannot come before it.
                    let memory = if has_room { zeros(length).ok() } else { None };
                    has_room = memory.is_some();
                    let Some(memory) = memory else {
                        refused.push((sender, length));
                        continue;
                    };
                    let slot = flight.in_parts(self.part_bytes(), |flight| {
                        flight.receive_into(memory, length, Some(sender), Tag::Message)
                    })?;
                    slots.push((sender, slot));
                }
            }
            Ok(slots)
        })?;
        for (sender, slot) in slots {
            received.entry(sender).or_default().push(landed.bytes(slot));
        }
        Ok(refused)
    }

    fn not_understood(&self) -> TeamError {
        self.refuse("a rank sent what no exchange has; all ranks must use one version of Zonda")
    }
}

/// Begins to send what is not within headings. Messages of one sender come in the order in which they were begun.
fn send_apart(flight: &mut Flight, apart: Vec<Apart>, most: usize) -> Result<(), Fault> {
    for Apart { to, lengths, messages } in apart {
        if let Some(lengths) = lengths {
            flight.send(lengths, to, Tag::Lengths)?;
        }
        for message in messages {
            flight.in_parts(most, |flight| flight.send(message, to, Tag::Message))?;
        }
    }
    Ok(())
}

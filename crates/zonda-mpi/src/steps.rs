//! The steps of a team, but for the exchange.

use crate::flight::Tag;
use crate::heading;
use crate::team::{InStep, MpiTeam};
use crate::tuning::FIRST_BYTES;
use zonda_team::{Message, Reduction, Step, Team, TeamError};

/// Bytes of a length.
const LENGTH_BYTES: usize = 8;

impl Team for MpiTeam {
    fn rank(&self) -> usize {
        self.channel.rank
    }

    fn size(&self) -> usize {
        self.channel.size
    }

    fn n_on_node(&self) -> usize {
        MpiTeam::n_on_node(self)
    }

    fn broadcast(&self, step: Step<'_>, root: usize, bytes: &mut Vec<u8>) -> Result<(), TeamError> {
        let inside = self.enter(step)?;
        inside.check_rank(root)?;
        if self.channel.size == 1 {
            return Ok(());
        }
        *bytes = if self.channel.rank == root {
            inside.tell(root, std::mem::take(bytes))?
        } else {
            inside.hear(root)?
        };
        Ok(())
    }

    fn reduce(&self, step: Step<'_>, how: Reduction, numbers: &mut [u64]) -> Result<(), TeamError> {
        let inside = self.enter(step)?;
        if self.channel.size == 1 || numbers.is_empty() {
            return Ok(());
        }
        // With the highest bit turned over, signed numbers have the order of unsigned ones.
        let turn = match how {
            Reduction::Max | Reduction::Min => 1 << 63,
            Reduction::Sum | Reduction::Or => 0,
        };
        let given = numbers.iter().map(|number| number ^ turn).collect();
        let (slot, mut landed) = inside.fly(|flight| flight.reduce(how, given))?;
        numbers.copy_from_slice(&landed.numbers(slot));
        numbers.iter_mut().for_each(|number| *number ^= turn);
        Ok(())
    }

    fn scan(&self, step: Step<'_>, numbers: &mut [u64]) -> Result<(), TeamError> {
        let inside = self.enter(step)?;
        if self.channel.size == 1 || numbers.is_empty() {
            numbers.fill(0);
            return Ok(());
        }
        let (slot, mut landed) = inside.fly(|flight| flight.scan(numbers.to_vec()))?;
        if self.channel.rank == 0 {
            // MPI leaves open what rank 0 gets.
            numbers.fill(0);
        } else {
            numbers.copy_from_slice(&landed.numbers(slot));
        }
        Ok(())
    }

    fn gather(&self, step: Step<'_>, root: usize, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TeamError> {
        let inside = self.enter(step)?;
        inside.check_rank(root)?;
        let own = self.channel.rank;
        let lengths = if self.channel.size == 1 {
            vec![bytes.len() as u64]
        } else {
            let (slot, mut landed) =
                inside.fly(|flight| flight.gather(bytes.len() as u64, root))?;
            landed.numbers(slot)
        };
        if own != root {
            inside.fly(|flight| flight.send(bytes.to_vec(), root, Tag::Gathered))?;
            return Ok(Vec::new());
        }
        let (slots, mut landed) = inside.fly(|flight| {
            let receive = |(rank, &length): (usize, &u64)| {
                let length = if rank == own { 0 } else { length };
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                flight.receive(length, Some(rank), Tag::Gathered)
            };
            lengths.iter().enumerate().map(receive).collect::<Result<Vec<_>, _>>()
        })?;
        let mut all: Vec<Vec<u8>> = slots.into_iter().map(|slot| landed.bytes(slot)).collect();
        if let Some(place) = all.get_mut(own) {
            *place = bytes.to_vec();
        }
        Ok(all)
    }

    fn exchange(&self, step: Step<'_>, messages: Vec<Message>) -> Result<Vec<Message>, TeamError> {
        let inside = self.enter(step)?;
        inside.exchange(messages)
    }

    fn exchange_known(
        &self,
        step: Step<'_>,
        messages: Vec<(Message, usize)>,
        expected: &[(usize, usize)],
    ) -> Result<Vec<Message>, TeamError> {
        let inside = self.enter(step)?;
        inside.exchange_known(messages, expected)
    }
}

// A broadcast is one message of a fixed length, which has the length and as many bytes as fit, and one with the others. So a
// short one costs one message, and nobody has to know lengths before.
impl InStep<'_> {
    /// Broadcasts bytes, and gives them back.
    fn tell(&self, root: usize, bytes: Vec<u8>) -> Result<Vec<u8>, TeamError> {
        let within = bytes.len().min(FIRST_BYTES - LENGTH_BYTES);
        let mut first = (bytes.len() as u64).to_le_bytes().to_vec();
        first.extend(&bytes[..within]);
        first.resize(FIRST_BYTES, 0);
        if within == bytes.len() {
            self.fly(|flight| flight.broadcast(first, root))?;
            return Ok(bytes);
        }
        let (slot, mut landed) = self.fly(|flight| {
            flight.broadcast(first, root)?;
            flight.broadcast(bytes, root)
        })?;
        Ok(landed.bytes(slot))
    }

    /// The bytes that `root` broadcasts.
    fn hear(&self, root: usize) -> Result<Vec<u8>, TeamError> {
        let (slot, mut landed) = self.fly(|flight| flight.broadcast(vec![0; FIRST_BYTES], root))?;
        let mut first = landed.bytes(slot);
        let others = first.split_off(LENGTH_BYTES);
        let Some(length) = heading::lengths(&first).and_then(|lengths| lengths.first().copied())
        else {
            return Err(self.refuse("a broadcast is longer than this process can address"));
        };
        if length <= others.len() {
            first = others;
            first.truncate(length);
            return Ok(first);
        }
        let (slot, mut landed) = self.fly(|flight| flight.broadcast_into(length, root))?;
        Ok(landed.bytes(slot))
    }
}

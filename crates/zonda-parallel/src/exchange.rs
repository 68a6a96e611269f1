//! Short runs of a collective put go to the rank that owns their stripe of the file, and are written there in long ones.
//!
//! Where ranks divide the fastest dimension, what each has of a row is a few hundred bytes, and all ranks write to the same
//! pages: each write costs microseconds, and waits for those of others. So a put whose runs are short is made in rounds. In each, a rank has the format make
//! a piece of the put, whose writes are collected instead of carried out; ranks send each other what lies in others' stripes,
//! and write what they got. A byte is written once, by the rank to which it was handed, and no byte between runs is.

use std::collections::BTreeMap;
use std::sync::Arc;

use zonda_convert::Converted;
use zonda_format::{Access, Error, PieceShape, Result, Transfer, Values};
use zonda_model::NcError;
use zonda_model::memory::{self, NoMemory};
use zonda_slab::{Blocks, Hyperslab, Rows};
use zonda_storage::{Storage, Striping, WriteRange};
use zonda_team::Message;
use zonda_trace::{Args, EventKind};

use crate::file::ParallelFile;
use crate::hints::{Gathering, Hints};
use crate::replica::StepState;
use crate::shared_put::damaged_message;
use crate::tuning::{
    EXCHANGE_LEAST_ROUND, EXCHANGE_LEAST_RUNS, EXCHANGE_LEAST_STRIPE, EXCHANGE_ROUND_BYTES,
    EXCHANGE_RUN_BYTES, EXCHANGE_STRIPE_BYTES,
};

/// How short runs come together. Where ranks have other rules, bytes are the same, and are only written in other pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeRules {
    pub(crate) when: Gathering,
    pub(crate) stripe_bytes: u64,
    /// How many ranks own stripes.
    pub(crate) n_owners: u64,
    /// Servers of the file system that have its stripes in turn; 1 where that is not known.
    n_servers: u64,
    /// Bytes that a rank hands on at once.
    pub(crate) round_bytes: usize,
}

impl ExchangeRules {
    /// The rules of a file on so many ranks. Its stripes are those that it has on its file system, where it has some: so each server has as few ranks that
    /// write to it as can be.
    pub(crate) fn of(hints: &Hints, striping: Option<Striping>, n_ranks: usize) -> ExchangeRules {
        let n_ranks = (n_ranks as u64).max(1);
        let most_owners = hints.cb_nodes.unwrap_or(n_ranks).clamp(1, n_ranks);
        let n_servers = striping.map_or(1, |striping| striping.n_servers.max(1));
        let unit = striping.map(|striping| striping.unit_bytes).or(hints.striping_unit);
        let round_bytes = hints.cb_buffer_size.unwrap_or(EXCHANGE_ROUND_BYTES);
        ExchangeRules {
            when: hints.cb_write.unwrap_or(Gathering::Automatic),
            stripe_bytes: unit.unwrap_or(EXCHANGE_STRIPE_BYTES).max(EXCHANGE_LEAST_STRIPE),
            n_owners: match most_owners.checked_rem(n_servers) {
                Some(over) if most_owners > n_servers => most_owners - over,
                _ => most_owners,
            },
            n_servers,
            round_bytes: usize::try_from(round_bytes.max(EXCHANGE_LEAST_ROUND))
                .unwrap_or(usize::MAX),
        }
    }

    /// The number of the owner of a stripe. Each server has one owner where there are fewer owners than servers, and each owner one server
    /// where there are more.
    fn owner(&self, stripe: u64) -> u64 {
        let ExchangeRules { n_owners, n_servers, .. } = *self;
        let turn = if n_owners < n_servers { stripe.checked_rem(n_servers) } else { Some(stripe) };
        turn.and_then(|turn| turn.checked_rem(n_owners)).unwrap_or(0)
    }
}

/// Bytes that the head of a run takes in a message: where it goes, and its length.
const HEAD_BYTES: usize = 16;

/// A put of this rank as rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounds {
    /// How many; none where the rank writes by itself.
    pub(crate) n: u64,
    /// Elements of each.
    most_elems: usize,
    /// Dimensions of the variable.
    n_dims: usize,
}

impl Rounds {
    pub(crate) const NONE: Rounds = Rounds { n: 0, most_elems: 0, n_dims: 0 };

    /// The rounds of a put to a variable whose pieces have a shape.
    fn of(rules: &ExchangeRules, shape: &PieceShape, slab: Hyperslab<'_>) -> Option<Rounds> {
        let slab = slab.ranked(shape.dims.len())?;
        let n_elems = slab.n_elems().filter(|&n| n > 0)?;
        let run_bytes = run_bytes(shape, slab)?;
        let n_bytes = n_elems.checked_mul(shape.elem_bytes)?;
        let n_runs = n_bytes / run_bytes.max(1);
        let wants = match rules.when {
            Gathering::Automatic => {
                run_bytes <= EXCHANGE_RUN_BYTES && n_runs >= EXCHANGE_LEAST_RUNS && slab.is_unit()
            }
            Gathering::Enable => n_runs > 1,
            Gathering::Disable => false,
        };
        if !wants {
            return None;
        }
        // A run of a round takes its head, too. One that is longer than a round goes in several.
        let each = run_bytes.min(rules.round_bytes).saturating_add(HEAD_BYTES);
        let most_runs = (rules.round_bytes / each).max(1);
        let run_elems = run_bytes.min(rules.round_bytes) / shape.elem_bytes.max(1);
        let most_elems = run_elems.max(1).saturating_mul(most_runs);
        let mut blocks = Blocks::of(slab, most_elems)?;
        let mut n = 0;
        while blocks.next().is_some() {
            n += 1;
        }
        Some(Rounds { n, most_elems, n_dims: shape.dims.len() })
    }
}

/// Bytes that a put writes side by side, at most.
fn run_bytes(shape: &PieceShape, slab: Hyperslab<'_>) -> Option<usize> {
    let clipped = |(&count, &dim): (&usize, &u64)| count.min(usize::try_from(dim).unwrap_or(count));
    let count: Vec<usize> = slab.count.iter().zip(&shape.dims).map(clipped).collect();
    let within = Hyperslab { count: &count, ..slab };
    let rows = Rows::of(&shape.dims, &within, shape.elem_bytes)?;
    let n = if rows.step == shape.elem_bytes as u64 { rows.n } else { 1 };
    usize::try_from(n).ok()?.checked_mul(shape.elem_bytes)
}

/// What a rank writes in a round, by the owners of the stripes.
#[derive(Debug)]
pub(crate) struct Collector {
    rules: ExchangeRules,
    size: u64,
    packets: Packets,
    /// There was no memory for what came then.
    refused: Option<NoMemory>,
}

/// Runs by the ranks that own them.
pub(crate) type Packets = BTreeMap<usize, Packet>;

/// Runs for one owner, in the order in which they were written.
#[derive(Debug, Default)]
pub(crate) struct Packet {
    heads: Vec<(u64, u64)>,
    bytes: Vec<u8>,
}

impl Collector {
    fn new(rules: &ExchangeRules, size: usize) -> Collector {
        Collector {
            rules: *rules,
            size: size.max(1) as u64,
            packets: Packets::new(),
            refused: None,
        }
    }

    /// The rank that owns a stripe: owners are spread evenly over the ranks.
    fn owner(&self, stripe: u64) -> usize {
        let number = u128::from(self.rules.owner(stripe));
        let rank = number * u128::from(self.size) / u128::from(self.rules.n_owners.max(1));
        usize::try_from(rank).unwrap_or(0)
    }

    /// What was written.
    ///
    /// # Errors
    /// There was no memory for some of it.
    pub(crate) fn into_packets(self) -> std::result::Result<Packets, NoMemory> {
        self.refused.map_or(Ok(self.packets), Err)
    }

    /// Takes a write, cut at the borders of stripes.
    pub(crate) fn add(&mut self, at: u64, data: &[u8]) {
        let (mut at, mut data) = (at, data);
        while !data.is_empty() {
            let stripe_bytes = self.rules.stripe_bytes;
            let within = stripe_bytes - at % stripe_bytes;
            let n = usize::try_from(within).unwrap_or(data.len()).min(data.len());
            let (run, behind) = data.split_at(n);
            let owner = self.owner(at / stripe_bytes);
            if let Err(refused) = self.packets.entry(owner).or_default().add(at, run) {
                self.refused = Some(refused);
                return;
            }
            (at, data) = (at.saturating_add(n as u64), behind);
        }
    }
}

/// Makes room for a run behind others, and for as many again: many short ones come, and each would move all before it.
fn more<T>(list: &mut Vec<T>, n: usize) -> std::result::Result<(), NoMemory> {
    list.try_reserve(n).map_err(|_| NoMemory::of::<T>(list.len().saturating_add(n)))
}

impl Packet {
    fn add(&mut self, at: u64, run: &[u8]) -> std::result::Result<(), NoMemory> {
        more(&mut self.bytes, run.len())?;
        match self.heads.last_mut() {
            Some((last, len)) if last.checked_add(*len) == Some(at) => *len += run.len() as u64,
            _ => {
                more(&mut self.heads, 1)?;
                self.heads.push((at, run.len() as u64));
            }
        }
        self.bytes.extend_from_slice(run);
        Ok(())
    }

    fn into_message(self) -> std::result::Result<Vec<u8>, NoMemory> {
        let mut message = memory::room(8 + self.heads.len() * HEAD_BYTES + self.bytes.len())?;
        message.extend_from_slice(&(self.heads.len() as u64).to_le_bytes());
        for (at, len) in &self.heads {
            message.extend_from_slice(&at.to_le_bytes());
            message.extend_from_slice(&len.to_le_bytes());
        }
        message.extend_from_slice(&self.bytes);
        Ok(message)
    }
}

/// The runs that a message has, or why there is no memory for them; `None` for one that is damaged.
fn runs_of(message: &[u8]) -> Option<std::result::Result<Vec<WriteRange<'_>>, NoMemory>> {
    let (n, rest) = message.split_first_chunk()?;
    let n_heads = usize::try_from(u64::from_le_bytes(*n)).ok()?;
    let (heads, mut bytes) = rest.split_at_checked(n_heads.checked_mul(HEAD_BYTES)?)?;
    let mut runs = match memory::room(n_heads) {
        Ok(runs) => runs,
        Err(refused) => return Some(Err(refused)),
    };
    for head in heads.chunks_exact(HEAD_BYTES) {
        let (at, len) = head.split_first_chunk()?;
        let len = usize::try_from(u64::from_le_bytes(*len.first_chunk()?)).ok()?;
        let (data, behind) = bytes.split_at_checked(len)?;
        runs.push(WriteRange { at: u64::from_le_bytes(*at), data });
        bytes = behind;
    }
    bytes.is_empty().then_some(Ok(runs))
}

/// Writes the runs of all messages, each of the ranks in their order: where runs overlap, the last rank's stay.
fn write_runs(storage: &dyn Storage, messages: &[Vec<WriteRange<'_>>]) -> Result<()> {
    let n = messages.iter().fold(0, |n: usize, runs| n.saturating_add(runs.len()));
    let mut runs = memory::room(n)?;
    runs.extend(messages.iter().flatten().map(|run| WriteRange { at: run.at, data: run.data }));
    // Those that begin at one place overlap.
    zonda_runtime::sort::sort_by_key(&mut runs, |run| run.at);
    let ends_before = |pair: &[WriteRange<'_>]| match pair {
        [one, next] => one.at.saturating_add(one.data.len() as u64) <= next.at,
        _ => true,
    };
    if runs.windows(2).all(ends_before) {
        return Ok(storage.write_ranges(&runs)?);
    }
    messages.iter().try_for_each(|runs| Ok(storage.write_ranges(runs)?))
}

/// While writes are kept. They no longer are when it goes, also where the format panics: what is put later would be lost without a word.
struct Collecting<'a>(&'a StepState);

impl Drop for Collecting<'_> {
    fn drop(&mut self) {
        let _nobody_wants_them = self.0.collected();
    }
}

impl ParallelFile {
    pub(crate) fn exchange_rules(&self) -> ExchangeRules {
        ExchangeRules::of(&self.hints, self.striping, self.team.size())
    }

    /// The rounds that a put of this rank wants.
    pub(crate) fn rounds_of(&mut self, put: &Transfer<Access<'_>>) -> Rounds {
        let Access { var, slab, .. } = *put.of();
        if self.team.size() == 1 || put.n_elems == 0 {
            return Rounds::NONE;
        }
        let rules = self.exchange_rules();
        let Ok(file) = self.in_team() else { return Rounds::NONE };
        if file.is_in_definitions(var) {
            return Rounds::NONE;
        }
        let shape = file.piece_shape(var);
        shape.and_then(|shape| Rounds::of(&rules, &shape, slab)).unwrap_or(Rounds::NONE)
    }

    /// A put of all ranks in `n_rounds`, the most that a rank wants. The outer error is that of ranks that lost each other, the inner one
    /// that of this rank.
    pub(crate) fn put_by_rounds(
        &mut self,
        call: &'static str,
        own: Option<(&Transfer<Access<'_>>, Values<'_>)>,
        (wanted, n_rounds): (Rounds, u64),
    ) -> Result<Result<Option<Converted>>> {
        let (mut done, mut n_made) = (Ok(None), 0);
        if let Some((put, values)) = own {
            let slab = put.of().slab.ranked(wanted.n_dims);
            match slab.and_then(|slab| Blocks::of(slab, wanted.most_elems)) {
                Some(blocks) if wanted.n > 0 && values.bytes.len() == put.n_bytes => {
                    let (made, n) = self.put_blocks(call, put, values.bytes, blocks)?;
                    (done, n_made) = (made.map(Some), n);
                }
                // Its runs are long, or the format says what is wrong.
                _ => {
                    let made = self.writing(|file| file.in_team()?.put_in_place(put, values));
                    done = made.map(Some);
                }
            }
        }
        for _ in n_made..n_rounds {
            if let Err(error) = self.hand_on(call, Ok(Packets::new()))? {
                done = done.and(Err(error));
            }
        }
        Ok(done)
    }

    /// A put in blocks, one in each round: what became of it, and how many rounds it took.
    fn put_blocks(
        &mut self,
        call: &'static str,
        put: &Transfer<Access<'_>>,
        bytes: &[u8],
        mut blocks: Blocks<'_>,
    ) -> Result<(Result<Converted>, u64)> {
        let each = put.n_bytes.checked_div(put.n_elems).unwrap_or(0);
        let (mut done, mut rest, mut n) = (Ok(Converted::default()), bytes, 0);
        while let Some(block) = blocks.next() {
            let split = block.n_elems.checked_mul(each).and_then(|n| rest.split_at_checked(n));
            // After an error the rank takes part with nothing.
            let piece = match split.filter(|_| done.is_ok()) {
                Some((bytes, behind)) => {
                    rest = behind;
                    Some((block.slab, bytes))
                }
                None => {
                    done = done.and(Err(NcError::Internal.into()));
                    None
                }
            };
            let made = self.put_round_of_runs(call, put, piece)?;
            done = done.and_then(|before| Ok(before.and(made?)));
            n += 1;
        }
        Ok((done, n))
    }

    /// One round: a piece of the put is collected, and handed on.
    fn put_round_of_runs(
        &mut self,
        call: &'static str,
        put: &Transfer<Access<'_>>,
        piece: Option<(Hyperslab<'_>, &[u8])>,
    ) -> Result<Result<Converted>> {
        let mut converted = Converted::default();
        let collected = match piece {
            Some((slab, bytes)) => self.collect(put, slab, bytes).map(|(packets, one)| {
                converted = one;
                packets
            }),
            None => Ok(Packets::new()),
        };
        Ok(self.hand_on(call, collected)?.map(|()| converted))
    }

    /// Has the format put a block, and keeps what it writes.
    fn collect(
        &mut self,
        put: &Transfer<Access<'_>>,
        slab: Hyperslab<'_>,
        bytes: &[u8],
    ) -> Result<(Packets, Converted)> {
        let collector = Collector::new(&self.exchange_rules(), self.team.size());
        let mut block = Transfer::new(Access { slab, ..*put.of() });
        self.in_team()?.check_put_in_place(&mut block)?;
        let state = Arc::clone(self.replica.state());
        state.collect(collector);
        let collecting = Collecting(&state);
        let done = self.in_team().and_then(|file| file.put_in_place(&block, Values::plain(bytes)));
        let packets = state.collected();
        drop(collecting);
        Ok((packets?, done?))
    }

    /// Ranks send each other what lies in others' stripes, and write what they have of their own ones.
    fn hand_on(&mut self, call: &'static str, collected: Result<Packets>) -> Result<Result<()>> {
        let me = self.team.rank();
        let packed = collected.and_then(|packets| {
            let each = |(rank, packet): (usize, Packet)| {
                Ok(Message { rank, bytes: packet.into_message()? })
            };
            packets.into_iter().map(each).collect::<Result<Vec<_>>>()
        });
        let (messages, failed) = match packed {
            Ok(messages) => (messages, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        let (own, messages): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|message| message.rank == me);
        let _span = zonda_trace::span(EventKind::Exchange, || {
            let bytes = messages.iter().map(|message| message.bytes.len() as u64).sum();
            Args { offset: messages.len() as u64, bytes, ..Args::default() }
        });
        let (mut received, failed) = match self.exchange(call, messages)? {
            Ok(received) => (received, failed),
            Err(error) => return Ok(failed.and(Err(error))),
        };
        received.extend(own);
        zonda_runtime::sort::sort_by_key(&mut received, |message| message.rank);
        let runs: Option<Vec<_>> = received.iter().map(|one| runs_of(&one.bytes)).collect();
        let runs = runs.ok_or_else(|| self.lose(damaged_message()))?;
        let runs: std::result::Result<Vec<_>, NoMemory> = runs.into_iter().collect();
        let written = runs.map_err(Error::from);
        let written =
            written.and_then(|runs| self.writing(|file| write_runs(&*file.replica, &runs)));
        Ok(failed.and(written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_follow_the_servers_of_the_file() {
        for n_ranks in 1..20 {
            for n_servers in 1..20 {
                let striping = Striping { unit_bytes: 1 << 22, n_servers };
                let hints = Hints { striping_unit: Some(7), ..Hints::default() };
                let rules = ExchangeRules::of(&hints, Some(striping), n_ranks);
                assert_eq!(rules.stripe_bytes, 1 << 22);
                let mut of_server = vec![std::collections::BTreeSet::new(); n_servers as usize];
                let mut of_owner = vec![std::collections::BTreeSet::new(); n_ranks];
                let collector = Collector::new(&rules, n_ranks);
                for stripe in 0..400 {
                    let owner = collector.owner(stripe);
                    of_server[(stripe % n_servers) as usize].insert(owner);
                    of_owner[owner].insert(stripe % n_servers);
                }
                let most_owners = of_server.iter().map(|owners| owners.len()).max().unwrap();
                let most_servers = of_owner.iter().map(|servers| servers.len()).max().unwrap();
                let what = format!("{n_ranks} ranks, {n_servers} servers");
                assert_eq!(most_owners, (n_ranks / n_servers as usize).max(1), "{what}");
                assert_eq!(most_servers, (n_servers as usize).div_ceil(n_ranks), "{what}");
            }
        }
    }
}

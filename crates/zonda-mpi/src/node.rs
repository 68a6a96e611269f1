//! How many ranks are on this node: those of one running kernel, which share processors and memory, also from several containers.
//!
//! Not by `MPI_Comm_split_type`, which has no non-blocking form: MPICH 4.0.2, which spins in it, needs 180 to 340 ms for it with more ranks than
//! processors (8 ranks on 2), for each file that is opened. And it makes a list of all ranks on each of them.

use crate::team::{InStep, MpiTeam};
use std::collections::BTreeMap;
use zonda_team::{Message, Reduction, Step, TeamError};

/// Files that say which kernel this is: a number that each start of one draws, or its name.
const WHO: [&str; 2] = ["/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/hostname"];

/// A number that the processes of a node have in common, and those of other nodes do not.
#[must_use]
pub fn node() -> u64 {
    let text = WHO.iter().find_map(|file| std::fs::read(file).ok()).unwrap_or_default();
    number(&text)
}

/// FNV-1a: the same in all processes, whoever built them.
fn number(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What ranks of one node alone leave as it is when they reduce it to the greatest: numbers that MPI takes for signed ones.
fn extremes(node: u64) -> [u64; 2] {
    [node, !node]
}

impl MpiTeam {
    /// How many ranks, this one among them, call it with the same number: all ranks call it.
    ///
    /// # Errors
    /// Those of [`Team::exchange`](zonda_team::Team::exchange).
    pub fn count_alike(&self, step: Step<'_>, number: u64) -> Result<usize, TeamError> {
        self.enter(step)?.count_alike(number)
    }
}

impl InStep<'_> {
    /// How many ranks are on this node.
    pub(crate) fn count_node(&self) -> Result<usize, TeamError> {
        self.count_alike(node())
    }

    fn count_alike(&self, number: u64) -> Result<usize, TeamError> {
        let size = self.team.channel.size;
        if size == 1 {
            return Ok(1);
        }
        let (slot, mut landed) =
            self.fly(|flight| flight.reduce(Reduction::Max, extremes(number).to_vec()))?;
        // The usual case: all ranks on one node.
        if landed.numbers(slot) == extremes(number) { Ok(size) } else { self.count_apart(number) }
    }

    /// Each rank reports to one that its number chooses, which counts, and answers.
    fn count_apart(&self, number: u64) -> Result<usize, TeamError> {
        let size = self.team.channel.size;
        let counter = usize::try_from(number % size as u64).unwrap_or(0);
        let report = Message { rank: counter, bytes: number.to_le_bytes().to_vec() };
        let reports = self.exchange(vec![report])?;
        let mut counts = BTreeMap::new();
        for report in &reports {
            *counts.entry(&report.bytes).or_insert(0_u64) += 1;
        }
        let answer = |report: &Message| Message {
            rank: report.rank,
            bytes: counts
                .get(&report.bytes)
                .map(|count| count.to_le_bytes().to_vec())
                .unwrap_or_default(),
        };
        let answers = self.exchange(reports.iter().map(answer).collect())?;
        let count = answers.first().and_then(|answer| answer.bytes.first_chunk());
        let count = count.map_or(1, |bytes| u64::from_le_bytes(*bytes));
        Ok(usize::try_from(count).unwrap_or(size).clamp(1, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_two_nodes_do_not_stay_as_they_are() {
        let signed = |numbers: [u64; 2]| numbers.map(u64::cast_signed);
        for (a, b) in [(1, 2), (0, u64::MAX), (u64::MAX / 2, u64::MAX / 2 + 1), (7, 1 << 63)] {
            let (a, b) = (signed(extremes(a)), signed(extremes(b)));
            let greatest = [a[0].max(b[0]), a[1].max(b[1])];
            assert!(greatest != a && greatest != b, "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_node_has_one_number_and_another_text_another_one() {
        assert_eq!(node(), node());
        assert_eq!(number(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(number(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(number(b"ab"), number(b"ba"));
    }
}

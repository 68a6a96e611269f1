//! How many ranks are on this node: those of one running kernel, which share processors and memory, also from several containers.
//!
//! Not by `MPI_Comm_split_type`, which has no non-blocking form: MPICH 4.0.2, which spins in it, needs 180 to 340 ms for it with more ranks than
//! processors (8 ranks on 2), for each file that is opened. And it makes a list of all ranks on each of them.

use crate::team::InStep;
use std::collections::BTreeMap;
use zonda_team::{Message, TeamError};

/// Files that say which kernel this is: a number that each start of one draws, or its name.
const WHO: [&str; 2] = ["/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/hostname"];

/// A number that the processes of a node have in common, and those of other nodes do not.
fn node() -> u64 {
    let text = WHO.iter().find_map(|file| std::fs::read(file).ok()).unwrap_or_default();
    number(&text)
}

/// FNV-1a: the same in all processes, whoever built them.
fn number(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl InStep<'_> {
    /// Each rank reports to one that its node's number chooses, which counts, and answers.
    pub(crate) fn count_node(&self) -> Result<usize, TeamError> {
        let size = self.team.channel.size;
        if size == 1 {
            return Ok(1);
        }
        let node = node();
        let counter = usize::try_from(node % size as u64).unwrap_or(0);
        let report = Message { rank: counter, bytes: node.to_le_bytes().to_vec() };
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
    fn a_node_has_one_number_and_another_text_another_one() {
        assert_eq!(node(), node());
        assert_eq!(number(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(number(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(number(b"ab"), number(b"ba"));
    }
}

//! Leaves of a tree of chunks that lie between the chunks themselves, in a file behind a server.
//!
//! A writer places a leaf where the file ends at that time, so the leaves of a large variable lie a hundred kilobytes apart, and its chunks lie between them. Each
//! leaf by itself is then a request, and so is each run of chunks between two of them: several hundred requests for what is one run of bytes.
//! Where all these chunks are wanted, that run is asked for instead. A few leaves show whether it is one: whether what lies between the leaves is no more than
//! the chunks of this tree.

use super::chunk_btree::{ChunkBtree, ChunkNode, NodeLink};
use super::grid::ChunkGrid;
use crate::tuning::{LEAST_SCATTERED_LEAVES, MOST_SCATTERED_BYTES, PROBED_LEAVES, SPARE_SHIFT};
use crate::{FileAddr, Result};

/// Bytes from `begin` up to, not including, `end`.
#[derive(Clone, Copy, Debug)]
struct Span {
    begin: u64,
    end: u64,
}

/// What some leaves have.
#[derive(Debug, Default)]
struct Probe {
    chunks: u64,
    bytes: u64,
    /// Bytes of chunks that lie in the span.
    within: u64,
}

impl Probe {
    /// Whether a span with `n_chunks` chunks such as these has little else in it.
    fn fills(&self, span: Span, n_chunks: u64, node_bytes: u64) -> bool {
        let all = u128::from(self.bytes).saturating_mul(n_chunks.into());
        let all = all.checked_div(self.chunks.into()).unwrap_or(0);
        let most = all.saturating_add(all >> SPARE_SHIFT).saturating_add(node_bytes.into());
        let length = span.end.saturating_sub(span.begin);
        // Chunks of the first leaf and of the last may lie before all leaves, or behind them.
        let outside = self.bytes.saturating_sub(self.within);
        u128::from(length) <= most && outside <= self.bytes / 4
    }
}

impl ChunkBtree {
    /// Asks for leaves and the chunks between them together, where that is worth it: `n_chunks` of them will be read. Whether it was.
    pub(super) fn foretell_with_chunks(
        &self,
        grid: &ChunkGrid,
        leaves: &[&NodeLink],
        n_chunks: u64,
    ) -> Result<bool> {
        let file = self.file();
        let Some(step) = leaves.len().checked_div(PROBED_LEAVES) else { return Ok(false) };
        if leaves.len() < LEAST_SCATTERED_LEAVES {
            return Ok(false);
        }
        let (mut span, mut node_bytes) = (Span { begin: u64::MAX, end: 0 }, 0u64);
        for leaf in leaves {
            let len = self.read_len(leaf)?;
            span.begin = span.begin.min(leaf.addr.0);
            span.end = span.end.max(leaf.addr.0.saturating_add(len));
            node_bytes = node_bytes.saturating_add(len);
        }
        let length = span.end.saturating_sub(span.begin);
        if length > MOST_SCATTERED_BYTES || length <= node_bytes.saturating_mul(2) {
            return Ok(false);
        }
        let probed: Vec<&NodeLink> = leaves.iter().copied().step_by(step.max(1)).collect();
        self.foretell_nodes(&probed)?;
        // Places of chunks count from the beginning of the storage, those of leaves from the superblock.
        let from = file.position(FileAddr(span.begin));
        let to = from.saturating_add(length);
        let mut probe = Probe::default();
        for (leaf, bytes) in probed.iter().zip(self.read_many(&probed)?) {
            let (ChunkNode::Leaf(chunks), _) = self.decode(grid, leaf, bytes)? else {
                return Ok(false);
            };
            for (_, chunk) in chunks.iter(0, u64::MAX) {
                let end = chunk.at.saturating_add(chunk.len).min(to);
                let within = end.saturating_sub(chunk.at.max(from));
                probe.chunks = probe.chunks.saturating_add(1);
                probe.bytes = probe.bytes.saturating_add(chunk.len);
                probe.within = probe.within.saturating_add(within);
            }
        }
        let fills = probe.fills(span, n_chunks.min(grid.total), node_bytes);
        if fills {
            file.will_read([(FileAddr(span.begin), length)]);
        }
        Ok(fills)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_have_much_else_are_not_asked_for() {
        let probe = Probe { chunks: 10, bytes: 1000, within: 990 };
        let span = |end| Span { begin: 0, end };
        assert!(probe.fills(span(10_000), 100, 0));
        assert!(probe.fills(span(10_300), 100, 100));
        assert!(!probe.fills(span(11_000), 100, 100));
        // Leaves together at one place, chunks elsewhere.
        assert!(!Probe { within: 100, ..probe }.fills(span(10_000), 100, 0));
        assert!(!Probe::default().fills(span(100), 100, 0));
    }
}

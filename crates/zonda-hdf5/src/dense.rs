//! Parts that links and attributes share where they are in a heap with B-trees over it.

use crate::btree_v2::BtreeV2;
use crate::checksum::lookup3;
use crate::fractal_heap::FractalHeap;
use crate::tuning::REMOTE_READ_BYTES;
use crate::{File, FileAddr, HdfError, Result, Sizes, Writer};

/// Encoded messages, one after the other.
pub(crate) struct EncodedMessages {
    writer: Writer,
    ends: Vec<usize>,
}

impl EncodedMessages {
    /// None so far.
    pub(crate) fn new(structure: &'static str, sizes: Sizes) -> EncodedMessages {
        EncodedMessages { writer: Writer::new(structure, sizes), ends: Vec::new() }
    }

    /// Appends the message that `encode` writes.
    pub(crate) fn push(&mut self, encode: impl FnOnce(&mut Writer) -> Result<()>) -> Result<()> {
        encode(&mut self.writer)?;
        self.ends.push(self.writer.len());
        Ok(())
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<&[u8]> {
        let mut start = 0;
        let message = |&end: &usize| {
            let message = self.writer.bytes().get(start..end).unwrap_or_default();
            start = end;
            message
        };
        self.ends.iter().map(message).collect()
    }
}

/// Hashes and places of names in the order of an index by name: by hash, then by name.
pub(crate) fn by_name(names: &[&[u8]]) -> Vec<(u32, usize)> {
    let hashes = names.iter().map(|name| lookup3(name, 0));
    let mut order: Vec<_> = hashes.zip(0usize..).collect();
    zonda_runtime::sort::sort(&mut order);
    // Names are compared only now, since few have one hash.
    for same in order.chunk_by_mut(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        zonda_runtime::sort::sort_by_key(same, |&(_, i)| names.get(i));
    }
    order
}

/// Has a heap of a remote file and the tree over it come, level by level. Does nothing where a read is a system call.
///
/// # Errors
/// What the storage reports.
pub(crate) fn fetch(file: &File, heap: FileAddr, tree: FileAddr, record_type: u8) -> Result<()> {
    if !file.is_remote() {
        return Ok(());
    }
    file.will_read([(heap, REMOTE_READ_BYTES), (tree, REMOTE_READ_BYTES)]);
    let blocks = FractalHeap::open(file, heap).and_then(|heap| heap.fetch_blocks(file));
    let nodes = BtreeV2::open(file, tree, record_type).and_then(|tree| tree.fetch_levels(file));
    HdfError::of_storage(blocks)?;
    HdfError::of_storage(nodes)
}

/// The extents of a heap and of the trees over it; none where there is no heap.
pub(crate) fn extents(
    file: &File,
    heap: Option<FileAddr>,
    trees: [(Option<FileAddr>, u8); 2],
) -> Result<Vec<(FileAddr, u64)>> {
    let Some(heap) = heap else { return Ok(Vec::new()) };
    let mut out = FractalHeap::open(file, heap)?.extents(file)?;
    for (addr, record_type) in trees {
        if let Some(addr) = addr {
            out.extend(BtreeV2::open(file, addr, record_type)?.extents(file)?);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_hash_are_in_the_order_of_their_bytes() {
        // Found by trying: 100,000 names have a few pairs of one hash.
        let names: Vec<String> = (0..100_000).map(|i| format!("name_{i}")).collect();
        let names: Vec<&[u8]> = names.iter().map(String::as_bytes).rev().collect();
        let order = by_name(&names);
        let sorted = |a: &(u32, usize), b: &(u32, usize)| (a.0, names[a.1]) < (b.0, names[b.1]);
        assert!(order.is_sorted_by(sorted));
        assert!(order.windows(2).any(|pair| pair[0].0 == pair[1].0), "no pair");
        assert!(order.iter().all(|&(hash, i)| hash == lookup3(names[i], 0)));
    }
}

//! What links and attributes have in common where a heap and B-trees over it hold them.

use crate::btree_v2::BtreeV2;
use crate::checksum::lookup3;
use crate::fractal_heap::FractalHeap;
use crate::{File, FileAddr, Result, Sizes, Writer};

/// Messages, one after the other.
pub(crate) struct Messages {
    writer: Writer,
    ends: Vec<usize>,
}

impl Messages {
    /// None so far.
    pub(crate) fn new(structure: &'static str, sizes: Sizes) -> Messages {
        Messages { writer: Writer::new(structure, sizes), ends: Vec::new() }
    }

    /// Takes the message that `encode` writes.
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
pub(crate) fn by_name<'a>(names: impl Iterator<Item = &'a [u8]>) -> Vec<(u32, usize)> {
    let names = names.enumerate().map(|(i, name)| (lookup3(name, 0), name, i));
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.into_iter().map(|(hash, _, i)| (hash, i)).collect()
}

/// What a heap and the trees over it take of the file; nothing where there is no heap.
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

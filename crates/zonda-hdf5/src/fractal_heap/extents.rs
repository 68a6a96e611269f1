//! The extents of a heap, for giving them back.

use super::{FractalHeap, INDIRECT, OBJECT};
use crate::btree_v2::BtreeV2;
use crate::checksum::verified;
use crate::traversal_budget::TraversalBudget;
use crate::{File, FileAddr, HdfError, Result};

const FREE_SPACE: &str = "free space manager header";

/// An indirect block: its address, where it begins in the heap, its rows.
type IndirectBlock = (FileAddr, u64, u32);

impl FractalHeap {
    /// The extents of the heap: of its header, its blocks, its huge objects with their B-tree, and
    /// its free space manager.
    ///
    /// # Errors
    /// Damage on the way; [`HdfError::Limit`] where blocks overlap.
    pub fn extents(&self, file: &File) -> Result<Vec<(FileAddr, u64)>> {
        let mut out = vec![(self.addr, self.header_len)];
        self.block_extents(file, &mut out)?;
        if let Some(addr) = self.huge_btree {
            let (_, kind) = self.huge_ids(file.sizes());
            let tree = BtreeV2::open(file, addr, kind)?;
            out.extend(tree.extents(file)?);
            tree.walk(file, &mut |record| {
                let mut reader = tree.reader(file, record);
                out.push((reader.defined_addr(OBJECT)?, reader.length()?));
                Ok(true)
            })?;
        }
        if let Some(addr) = self.free_space_manager {
            free_space_extents(file, addr, &mut out)?;
        }
        Ok(out)
    }

    fn block_extents(&self, file: &File, out: &mut Vec<(FileAddr, u64)>) -> Result<()> {
        let Some(root) = self.root else { return Ok(()) };
        if self.root_rows == 0 {
            let len = root.filtered.map_or(self.table.start_block, |(len, _)| len);
            out.push((root.addr, len));
            return Ok(());
        }
        let mut budget = TraversalBudget::of(file);
        let mut pending = vec![(root.addr, 0u64, self.root_rows)];
        while let Some((addr, offset, rows)) = pending.pop() {
            let len = self.indirect_len(file, rows);
            budget.spend(INDIRECT, addr, len)?;
            out.push((addr, len));
            self.block_children(file, (addr, offset, rows), out, &mut pending)?;
        }
        Ok(())
    }

    /// The children of an indirect block: direct blocks with their bytes in the file, and indirect ones.
    fn block_children(
        &self,
        file: &File,
        (addr, offset, rows): IndirectBlock,
        direct: &mut Vec<(FileAddr, u64)>,
        below: &mut Vec<IndirectBlock>,
    ) -> Result<()> {
        let children = self.indirect(file, addr, offset, rows)?;
        let mut children = children.iter();
        let mut at = offset;
        for row in 0..rows {
            let too_far =
                HdfError::BadValue { structure: INDIRECT, at: addr.0, what: "rows", value: at };
            let len = self.table.block_len(row).ok_or_else(|| too_far.clone())?;
            for _ in 0..self.table.width {
                let child = children.next().copied().flatten();
                let start = at;
                at = at.saturating_add(len);
                let Some(child) = child else { continue };
                if row < self.table.direct_rows {
                    direct.push((child.addr, child.filtered.map_or(len, |(len, _)| len)));
                } else {
                    let rows = self.table.rows_of(len).filter(|&below| below < rows);
                    below.push((child.addr, start, rows.ok_or_else(|| too_far.clone())?));
                }
            }
        }
        Ok(())
    }

    /// Reads the indirect blocks of a remote file's heap level by level, so that each level comes in one go, and tells of the direct ones.
    /// Does nothing where a read is a system call.
    ///
    /// # Errors
    /// As [`FractalHeap::extents`].
    pub(crate) fn fetch_blocks(&self, file: &File) -> Result<()> {
        let Some(root) = self.root.filter(|_| file.is_remote()) else { return Ok(()) };
        if self.root_rows == 0 {
            let len = root.filtered.map_or(self.table.start_block, |(len, _)| len);
            file.will_read([(root.addr, len)]);
            return Ok(());
        }
        let mut budget = TraversalBudget::of(file);
        let mut level = vec![(root.addr, 0u64, self.root_rows)];
        while !level.is_empty() {
            let len = |rows| self.indirect_len(file, rows);
            file.will_read(level.iter().map(|&(addr, _, rows)| (addr, len(rows))));
            let (mut direct, mut below) = (Vec::new(), Vec::new());
            for block in level {
                budget.spend(INDIRECT, block.0, len(block.2))?;
                self.block_children(file, block, &mut direct, &mut below)?;
            }
            file.will_read(direct);
            level = below;
        }
        Ok(())
    }
}

/// A manager's header, and its list of free sections where there is one.
pub(crate) fn free_space_extents(
    file: &File,
    addr: FileAddr,
    out: &mut Vec<(FileAddr, u64)>,
) -> Result<()> {
    let sizes = file.sizes();
    let (offset, length) = (u64::from(sizes.offset), u64::from(sizes.length));
    let len = length.saturating_mul(7).saturating_add(offset).saturating_add(18);
    let bytes = file.read(FREE_SPACE, addr, len)?;
    let mut reader = verified(file.reader(FREE_SPACE, addr, &bytes))?;
    reader.signature(*b"FSHD")?;
    reader.version(0..=0)?;
    let _client = reader.u8()?;
    for _space_and_sections in 0..4 {
        reader.length()?;
    }
    for _classes_percents_and_bits in 0..4 {
        reader.u16()?;
    }
    let _longest_section = reader.length()?;
    let list = reader.addr()?;
    let _used = reader.length()?;
    let list_len = reader.length()?;
    out.push((addr, len));
    out.extend(list.map(|list| (list, list_len)));
    Ok(())
}

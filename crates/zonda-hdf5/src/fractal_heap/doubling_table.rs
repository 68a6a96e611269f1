//! The doubling table: how the offsets of a heap are spread over blocks.
//!
//! Each row has as many blocks as the table is wide. Those of the first two rows are the smallest,
//! and from then on each row's are twice as long as those of the row before. Blocks longer than
//! the longest direct ones are indirect: tables of their own, with fewer rows.

/// A doubling table.
#[derive(Clone, Copy, Debug)]
pub(super) struct DoublingTable {
    /// Blocks in a row.
    pub(super) width: u64,
    /// Bytes of the first block.
    pub(super) start_block: u64,
    /// Most bytes of a direct block.
    pub(super) max_direct: u64,
    /// Rows that hold direct blocks.
    pub(super) direct_rows: u32,
    /// Most rows that an indirect block can have.
    pub(super) max_rows: u32,
}

/// A place in an indirect block.
#[derive(Clone, Copy, Debug)]
pub(super) struct TablePlace {
    pub(super) row: u32,
    pub(super) column: u64,
    /// Bytes of the block there.
    pub(super) len: u64,
    /// Its first offset, counted from that of the indirect block.
    pub(super) start: u64,
}

impl DoublingTable {
    /// A table for offsets of `max_bits` bits. All but that are powers of two.
    pub(super) fn new(
        width: u64,
        start_block: u64,
        max_direct: u64,
        max_bits: u32,
    ) -> Option<DoublingTable> {
        let (start_bits, direct_bits) = (start_block.checked_ilog2()?, max_direct.checked_ilog2()?);
        let row_bits = start_bits.saturating_add(width.checked_ilog2()?);
        if direct_bits < start_bits || max_bits > 64 || row_bits > max_bits {
            return None;
        }
        Some(DoublingTable {
            width,
            start_block,
            max_direct,
            direct_rows: direct_bits.saturating_sub(start_bits).saturating_add(2),
            max_rows: max_bits.saturating_sub(row_bits).saturating_add(1),
        })
    }

    /// Bytes of a block in a row.
    pub(super) fn block_len(&self, row: u32) -> Option<u64> {
        self.start_block.checked_mul(1u64.checked_shl(row.saturating_sub(1))?)
    }

    /// Where an offset is in an indirect block that begins at offset 0.
    pub(super) fn cell(&self, offset: u64) -> Option<TablePlace> {
        let first_rows = self.width.checked_mul(self.start_block)?;
        let row =
            offset.checked_div(first_rows)?.checked_ilog2().map_or(0, |log| log.saturating_add(1));
        let len = self.block_len(row)?;
        let row_start = if row == 0 { 0 } else { len.checked_mul(self.width)? };
        let column = offset.checked_sub(row_start)?.checked_div(len)?;
        let start = row_start.checked_add(column.checked_mul(len)?)?;
        Some(TablePlace { row, column, len, start })
    }

    /// Rows of an indirect block of `len` bytes; `None` where it is too short for one.
    pub(super) fn rows_of(&self, len: u64) -> Option<u32> {
        let rows = len.checked_div(self.width.checked_mul(self.start_block)?)?;
        Some(rows.checked_ilog2()?.saturating_add(1))
    }

    /// Bytes of the direct block that begins at an offset of the heap.
    pub(super) fn direct_at(&self, offset: u64) -> Option<u64> {
        let mut inside = offset;
        let mut rows = self.max_rows;
        // Each level down has fewer rows, so this ends.
        loop {
            let cell = self.cell(inside)?;
            if cell.row >= rows {
                return None;
            }
            if cell.row < self.direct_rows {
                return Some(cell.len);
            }
            rows = self.rows_of(cell.len).filter(|&below| below < rows)?;
            inside = inside.saturating_sub(cell.start);
        }
    }

    /// Bytes for objects in all direct blocks under `rows` rows, where each block has `overhead`
    /// bytes of its own.
    pub(super) fn room(&self, rows: u32, overhead: u64) -> u64 {
        let row = |row| {
            let len = self.block_len(row).unwrap_or(0);
            let room = if row < self.direct_rows {
                len.saturating_sub(overhead)
            } else {
                // Nested blocks have fewer rows than where they are.
                let below = self.rows_of(len).unwrap_or(0).min(row);
                self.room(below, overhead)
            };
            room.saturating_mul(self.width)
        };
        (0..rows).map(row).fold(0, u64::saturating_add)
    }

    /// Bytes of heap offsets under `rows` rows.
    pub(super) fn span(&self, rows: u32) -> Option<u64> {
        match rows {
            0 => Some(0),
            rows => self.block_len(rows)?.checked_mul(self.width),
        }
    }
}

//! Transfers between a hyperslab and memory in any order, which a map describes: the distance, in
//! elements, from one index of a dimension to the next.
//!
//! The elements go through a block of scratch memory in row-major order, so that formats see ordinary
//! hyperslabs. Only the caller can read or write its own memory: it does so row by row, as a [`RowMover`].

use std::convert::Infallible;

use crate::tuning::MAPPED_BLOCK_BYTES;
use zonda_model::{NcError, memory};
use zonda_slab::{Blocks, Hyperslab, Places, place_of};

/// Copies rows of elements between a block and the caller's memory. (By rows, since a call for each element
/// takes up to twice as long.)
///
/// See [`Dataset`](crate::Dataset).
pub trait RowMover {
    /// Copies the elements of a row, of `SIZE` bytes each, one after the other. `place` is where the first of
    /// them is in the caller's memory, and `step` the distance from one to the next: both in elements, `place`
    /// counted from the first element of the block.
    fn move_row<const SIZE: usize>(&mut self, place: isize, step: isize, row: &mut [[u8; SIZE]]);
}

/// A hyperslab whose elements lie in the caller's memory in the order of a map.
///
/// See [`Dataset`](crate::Dataset).
#[derive(Clone, Copy, Debug)]
pub struct MappedSlab<'a> {
    /// The elements in the variable.
    pub slab: Hyperslab<'a>,
    /// Distances in the caller's memory, in elements: one for each dimension.
    pub map: &'a [isize],
    /// Bytes of an element in the caller's memory: 1, 2, 4 or 8.
    pub elem_bytes: usize,
}

impl MappedSlab<'_> {
    /// Cuts the hyperslab into blocks and calls `transfer` with each of them, in row-major order, and with
    /// scratch memory for its elements.
    ///
    /// # Errors
    /// The first error of `transfer`. `NC_EINVALCOORDS` where the hyperslab ends beyond every variable,
    /// `NC_ENOMEM` without scratch memory, `NC_EINVAL` where the map leads out of the address space.
    pub fn each_block<E: From<NcError>>(
        &self,
        mut transfer: impl FnMut(&MappedBlock<'_>, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (map, elem_bytes) = (self.map, self.elem_bytes);
        let mut blocks =
            Blocks::of(self.slab, MAPPED_BLOCK_BYTES / elem_bytes).ok_or(NcError::InvalidCoords)?;
        let most_bytes = blocks.largest().checked_mul(elem_bytes).ok_or(NcError::NoMem)?;
        let mut scratch = memory::filled(most_bytes, 0u8).map_err(NcError::from)?;
        let cut = blocks.cut();
        while let Some(block) = blocks.next() {
            let first = place_of(block.first, map);
            let first_byte = first.and_then(|n| n.checked_mul(elem_bytes.cast_signed()));
            let first_byte = first_byte.ok_or(NcError::Inval)?;
            let (counts, maps) = (&block.slab.count[cut..], &map[cut..]);
            let rows = MappedRows::new(elem_bytes, counts, maps).ok_or(NcError::Inval)?;
            let n_bytes = block.n_elems * elem_bytes;
            transfer(&MappedBlock { slab: block.slab, first_byte, rows }, &mut scratch[..n_bytes])?;
        }
        Ok(())
    }
}

/// A block of a mapped transfer.
///
/// See [`Dataset`](crate::Dataset).
#[derive(Debug)]
pub struct MappedBlock<'a> {
    /// Its elements in the variable.
    pub slab: Hyperslab<'a>,
    /// Distance in bytes of its first element in the caller's memory from the first element of the whole transfer.
    pub first_byte: isize,
    rows: MappedRows,
}

impl MappedBlock<'_> {
    /// Calls `mover` for each row of the block, in row-major order: of elements that the map puts in one
    /// place the last one is moved last.
    pub fn each_row(&self, block: &mut [u8], mover: &mut impl RowMover) {
        self.rows.each_row(block, mover);
    }
}

/// Rows of elements that lie in memory in the order of a map.
#[derive(Debug)]
struct MappedRows {
    /// Bytes of an element.
    elem_bytes: usize,
    /// Elements of a row.
    row_len: usize,
    /// Distance from one element of a row to the next, in elements.
    step: isize,
    /// Where rows begin, in elements.
    starts: Places<isize>,
}

impl MappedRows {
    /// `None` where the map leads out of the address space.
    fn new(elem_bytes: usize, counts: &[usize], maps: &[isize]) -> Option<MappedRows> {
        let ((&row_len, outer), (&step, outer_maps)) = (counts.split_last()?, maps.split_last()?);
        let rows = outer.iter().copied().zip(outer_maps.iter().copied());
        let all = counts.iter().copied().zip(maps.iter().copied());
        let (lowest, highest) = Places::new(0, all)?.ends();
        lowest.checked_mul(elem_bytes.cast_signed())?;
        highest.checked_add(1)?.checked_mul(elem_bytes.cast_signed())?;
        Some(MappedRows { elem_bytes, row_len, step, starts: Places::new(0, rows)? })
    }

    fn each_row(&self, block: &mut [u8], mover: &mut impl RowMover) {
        // With the size as a constant, one instruction moves an element.
        match self.elem_bytes {
            1 => self.each_row_of::<1>(block, mover),
            2 => self.each_row_of::<2>(block, mover),
            4 => self.each_row_of::<4>(block, mover),
            _ => self.each_row_of::<8>(block, mover),
        }
    }

    fn each_row_of<const SIZE: usize>(&self, block: &mut [u8], mover: &mut impl RowMover) {
        let mut rows = block.chunks_exact_mut(self.row_len * SIZE);
        let Ok(()) = self.starts.for_each(|start| {
            let row = rows.next().unwrap_or_default().as_chunks_mut::<SIZE>().0;
            mover.move_row(start, self.step, row);
            Ok::<(), Infallible>(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of memory, and the place in it that the first element has.
    struct SliceGather<'a>(&'a [u8], usize);

    impl RowMover for SliceGather<'_> {
        fn move_row<const SIZE: usize>(
            &mut self,
            place: isize,
            step: isize,
            row: &mut [[u8; SIZE]],
        ) {
            let mut at = self.1.cast_signed() + place;
            for element in row {
                let begin = at.cast_unsigned() * SIZE;
                element.copy_from_slice(&self.0[begin..begin + SIZE]);
                at += step;
            }
        }
    }

    struct SliceScatter<'a>(&'a mut [u8]);

    impl RowMover for SliceScatter<'_> {
        fn move_row<const SIZE: usize>(
            &mut self,
            place: isize,
            step: isize,
            row: &mut [[u8; SIZE]],
        ) {
            let mut at = place;
            for element in row {
                let begin = at.cast_unsigned() * SIZE;
                self.0[begin..begin + SIZE].copy_from_slice(element);
                at += step;
            }
        }
    }

    #[test]
    fn transposing_and_back_is_the_identity() {
        let memory: Vec<u8> = (0..24u8).collect();
        let (counts, maps) = ([2usize, 3, 4], [1isize, 2, 6]);
        let mut block = vec![0u8; 24];
        let rows = MappedRows::new(1, &counts, &maps).unwrap();
        rows.each_row(&mut block, &mut SliceGather(&memory, 0));
        assert_eq!(block[..6], [0, 6, 12, 18, 2, 8]);
        let mut back = vec![0u8; 24];
        rows.each_row(&mut block, &mut SliceScatter(&mut back));
        assert_eq!(back, memory);
    }

    #[test]
    fn negative_maps_walk_backwards() {
        let memory = [10u16, 20, 30].map(u16::to_ne_bytes);
        let mut block = [0u8; 6];
        let rows = MappedRows::new(2, &[3], &[-1]).unwrap();
        rows.each_row(&mut block, &mut SliceGather(memory.as_flattened(), 2));
        assert_eq!(block, *[30u16, 20, 10].map(u16::to_ne_bytes).as_flattened());
    }

    #[test]
    fn the_last_of_overlapping_elements_stays() {
        let mut memory = [0u8; 1];
        let rows = MappedRows::new(1, &[2, 2], &[0, 0]).unwrap();
        rows.each_row(&mut [1, 2, 3, 4], &mut SliceScatter(&mut memory));
        assert_eq!(memory, [4]);
    }

    #[test]
    fn maps_out_of_the_address_space_are_none() {
        let far = isize::MAX / 4 - 1;
        assert!(MappedRows::new(4, &[2], &[far]).is_some());
        assert!(MappedRows::new(8, &[2], &[far]).is_none());
        assert!(MappedRows::new(1, &[4, 3], &[far, far]).is_none());
        assert!(MappedRows::new(8, &[1, 2], &[isize::MAX, 1]).is_some());
    }

    #[test]
    fn blocks_cover_a_hyperslab_and_keep_to_the_scratch_memory() {
        let (start, count, map) = ([0, 0], [3, MAPPED_BLOCK_BYTES], [1, 3]);
        let slab = Hyperslab { start: &start, count: &count, stride: None };
        let mapped = MappedSlab { slab, map: &map, elem_bytes: 2 };
        let mut memory = vec![0u8; 3 * MAPPED_BLOCK_BYTES * 2];
        let mut n_elems = 0;
        let done = mapped.each_block(|block, bytes| {
            assert!(bytes.len() <= MAPPED_BLOCK_BYTES);
            n_elems += block.slab.n_elems().unwrap();
            bytes.fill(1);
            let first = usize::try_from(block.first_byte).unwrap();
            block.each_row(bytes, &mut SliceScatter(&mut memory[first..]));
            Ok::<(), NcError>(())
        });
        assert_eq!((done, n_elems), (Ok(()), 3 * MAPPED_BLOCK_BYTES));
        assert!(memory.iter().all(|&byte| byte == 1));
    }
}

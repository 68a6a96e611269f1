//! Structures that are encoded and have an address, and are not written yet.

use zonda_storage::WriteRange;

use super::Space;
use crate::{File, FileAddr, Result};

/// Structures that have an address and are not written yet. Nothing in the file refers to them.
#[derive(Debug)]
pub struct NewBlocks<'a> {
    space: &'a mut Space,
    blocks: Vec<(FileAddr, Vec<u8>)>,
}

impl<'a> NewBlocks<'a> {
    /// Nothing so far.
    pub fn new(space: &'a mut Space) -> NewBlocks<'a> {
        NewBlocks { space, blocks: Vec::new() }
    }

    /// The space that they are given.
    pub fn space(&mut self) -> &mut Space {
        self.space
    }

    /// Gives a structure an address, which is returned.
    ///
    /// # Errors
    /// As [`Space::alloc`].
    pub fn put(&mut self, bytes: Vec<u8>) -> Result<FileAddr> {
        let addr = self.space.alloc(bytes.len() as u64)?;
        self.blocks.push((addr, bytes));
        Ok(addr)
    }

    /// The same for a structure whose space the next commits may give back.
    ///
    /// # Errors
    /// As [`Space::alloc`].
    pub fn put_passing(&mut self, bytes: Vec<u8>) -> Result<FileAddr> {
        let addr = self.space.alloc_passing(bytes.len() as u64)?;
        self.blocks.push((addr, bytes));
        Ok(addr)
    }

    /// Puts a structure at an address that was taken for it.
    pub fn put_at(&mut self, addr: FileAddr, bytes: Vec<u8>) {
        self.blocks.push((addr, bytes));
    }

    /// What was put, in that order, for a caller that writes it later.
    #[must_use]
    pub fn into_blocks(self) -> Vec<(FileAddr, Vec<u8>)> {
        self.blocks
    }

    /// Writes them all, in ascending order, and those that an earlier call could not write.
    ///
    /// # Errors What the storage reports. Nothing is lost then: the next call writes what this one
    /// could not, so that a caller need not keep what it has put.
    pub fn write(self, file: &File) -> Result<()> {
        let NewBlocks { space, blocks } = self;
        space.unwritten.extend(blocks);
        zonda_runtime::sort::sort_by_key(&mut space.unwritten, |(addr, _)| *addr);
        let mut ranges = Vec::with_capacity(space.unwritten.len());
        for (addr, bytes) in &space.unwritten {
            file.grown_to(addr.0.saturating_add(bytes.len() as u64));
            ranges.push(WriteRange { at: file.position(*addr), data: bytes });
        }
        file.storage().write_ranges(&ranges)?;
        space.unwritten = Vec::new();
        Ok(())
    }
}

//! Memory for values: the process's own, or such as a helper process sees.

use zonda_shared::{Block, NoRoom};

/// Memory with room for values, and the values in it.
#[derive(Debug)]
pub(super) enum Memory {
    /// Of the process.
    Own(Vec<u8>),
    /// A helper process sees it.
    Shared(Block),
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::Own(Vec::new())
    }
}

impl Memory {
    pub(super) fn capacity(&self) -> usize {
        match self {
            Memory::Own(bytes) => bytes.capacity(),
            Memory::Shared(block) => block.capacity(),
        }
    }

    /// In a child of a fork, whose parent's it is: drops it, but for what others share.
    pub(super) fn leave(self) {
        if let Memory::Shared(block) = self {
            std::mem::forget(block);
        }
    }

    /// The values.
    pub(super) fn values(&self) -> &[u8] {
        match self {
            Memory::Own(bytes) => bytes,
            Memory::Shared(block) => block.values(),
        }
    }

    /// Adds a copy of values.
    pub(super) fn append(&mut self, values: &[u8]) -> Result<(), NoRoom> {
        match self {
            Memory::Own(bytes) if values.len() > bytes.capacity() - bytes.len() => Err(NoRoom),
            Memory::Own(bytes) => {
                bytes.extend_from_slice(values);
                Ok(())
            }
            Memory::Shared(block) => {
                block.grow(values.len())?.copy_from_slice(values);
                Ok(())
            }
        }
    }

    /// Room for more values, to be written to.
    pub(super) fn grow(&mut self, n_bytes: usize) -> Result<&mut [u8], NoRoom> {
        match self {
            Memory::Own(bytes) if n_bytes > bytes.capacity() - bytes.len() => Err(NoRoom),
            Memory::Own(bytes) => {
                let from = bytes.len();
                bytes.resize(from + n_bytes, 0);
                Ok(&mut bytes[from..])
            }
            Memory::Shared(block) => block.grow(n_bytes),
        }
    }
}

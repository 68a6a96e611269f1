//! Memory for values: of the process alone, or shared with a helper process.

use zonda_shared::{Block, NoRoom};

/// Memory with room for values, and the values in it.
#[derive(Debug)]
pub(super) enum ValueMemory {
    /// Of the process alone.
    Own(Vec<u8>),
    /// Shared with a helper process.
    Shared(Block),
}

impl Default for ValueMemory {
    fn default() -> ValueMemory {
        ValueMemory::Own(Vec::new())
    }
}

impl ValueMemory {
    pub(super) fn capacity(&self) -> usize {
        match self {
            ValueMemory::Own(bytes) => bytes.capacity(),
            ValueMemory::Shared(block) => block.capacity(),
        }
    }

    /// In a forked child: drops it, without freeing shared memory, which belongs to the parent.
    pub(super) fn leave(self) {
        if let ValueMemory::Shared(block) = self {
            std::mem::forget(block);
        }
    }

    /// The values.
    pub(super) fn values(&self) -> &[u8] {
        match self {
            ValueMemory::Own(bytes) => bytes,
            ValueMemory::Shared(block) => block.values(),
        }
    }

    /// Adds a copy of values.
    pub(super) fn append(&mut self, values: &[u8]) -> Result<(), NoRoom> {
        match self {
            ValueMemory::Own(bytes) if values.len() > bytes.capacity() - bytes.len() => Err(NoRoom),
            ValueMemory::Own(bytes) => {
                bytes.extend_from_slice(values);
                Ok(())
            }
            ValueMemory::Shared(block) => {
                block.grow(values.len())?.copy_from_slice(values);
                Ok(())
            }
        }
    }

    /// Room for more values, to be written to.
    pub(super) fn grow(&mut self, n_bytes: usize) -> Result<&mut [u8], NoRoom> {
        match self {
            ValueMemory::Own(bytes) if n_bytes > bytes.capacity() - bytes.len() => Err(NoRoom),
            ValueMemory::Own(bytes) => {
                let from = bytes.len();
                bytes.resize(from + n_bytes, 0);
                Ok(&mut bytes[from..])
            }
            ValueMemory::Shared(block) => block.grow(n_bytes),
        }
    }
}

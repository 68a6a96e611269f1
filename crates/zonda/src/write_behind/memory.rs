//! Memory for values: of the process alone, or shared with a helper process.

use zonda_shared::{Block, NoRoom};

/// Memory with room for values, and the values in it.
#[derive(Debug)]
pub(super) enum ValueMemory {
    /// Of the process alone.
    Own(OwnMemory),
    /// Shared with a helper process.
    Shared(Block),
}

/// Memory that is used again and again: what it had before stays in it until it is overwritten, since to clear it would be one more pass over
/// the memory of each put.
#[derive(Debug)]
pub(super) struct OwnMemory {
    /// As many bytes as were ever used, within the capacity that was asked for.
    bytes: Vec<u8>,
    /// How many of them are values.
    used: usize,
}

impl OwnMemory {
    /// Memory without values: all of the capacity of `bytes`.
    pub(super) fn of(bytes: Vec<u8>) -> OwnMemory {
        OwnMemory { bytes, used: 0 }
    }

    /// The memory, to be used for other values.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn has_room(&self, n_bytes: usize) -> Result<(), NoRoom> {
        if n_bytes > self.bytes.capacity() - self.used { Err(NoRoom) } else { Ok(()) }
    }

    fn append(&mut self, values: &[u8]) -> Result<(), NoRoom> {
        self.has_room(values.len())?;
        let known = &mut self.bytes[self.used..];
        let (over, behind) = values.split_at(values.len().min(known.len()));
        known[..over.len()].copy_from_slice(over);
        self.bytes.extend_from_slice(behind);
        self.used += values.len();
        Ok(())
    }

    fn grow(&mut self, n_bytes: usize) -> Result<&mut [u8], NoRoom> {
        self.has_room(n_bytes)?;
        let from = self.used;
        self.used += n_bytes;
        if self.used > self.bytes.len() {
            self.bytes.resize(self.used, 0);
        }
        Ok(&mut self.bytes[from..self.used])
    }
}

impl Default for ValueMemory {
    fn default() -> ValueMemory {
        ValueMemory::Own(OwnMemory::of(Vec::new()))
    }
}

impl ValueMemory {
    pub(super) fn capacity(&self) -> usize {
        match self {
            ValueMemory::Own(own) => own.bytes.capacity(),
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
            ValueMemory::Own(own) => &own.bytes[..own.used],
            ValueMemory::Shared(block) => block.values(),
        }
    }

    /// Adds a copy of values.
    pub(super) fn append(&mut self, values: &[u8]) -> Result<(), NoRoom> {
        match self {
            ValueMemory::Own(own) => own.append(values),
            ValueMemory::Shared(block) => {
                block.grow(values.len())?.copy_from_slice(values);
                Ok(())
            }
        }
    }

    /// Room for more values, all of which is to be written to: what is in it now means nothing.
    pub(super) fn grow(&mut self, n_bytes: usize) -> Result<&mut [u8], NoRoom> {
        match self {
            ValueMemory::Own(own) => own.grow(n_bytes),
            ValueMemory::Shared(block) => block.grow(n_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever was in the memory before, it has the values that were added since, and no more of them than it was asked for.
    #[test]
    fn memory_that_was_used_has_new_values_alone() {
        let mut bytes = Vec::new();
        bytes.reserve_exact(100);
        let capacity = bytes.capacity();
        for (round, lens) in [[30, 20, 40], [10, 70, 15], [1, 98, 1], [0, 5, 0]].iter().enumerate()
        {
            let mut memory = ValueMemory::Own(OwnMemory::of(std::mem::take(&mut bytes)));
            assert!(memory.values().is_empty());
            let mut expected = Vec::new();
            for (number, len) in lens.iter().enumerate() {
                let value = (10 * round + number + 1) as u8;
                let values = vec![value; *len];
                if number % 2 == 0 {
                    memory.append(&values).unwrap();
                } else {
                    memory.grow(*len).unwrap().fill(value);
                }
                expected.extend_from_slice(&values);
                assert_eq!(memory.values(), expected);
            }
            let more = capacity - expected.len() + 1;
            assert!(memory.append(&vec![0; more]).is_err() && memory.grow(more).is_err());
            assert_eq!((memory.values(), memory.capacity()), (&expected[..], capacity));
            let ValueMemory::Own(own) = memory else { unreachable!() };
            bytes = own.into_bytes();
        }
    }
}

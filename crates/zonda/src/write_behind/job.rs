//! Accepted puts, and the batches of them that a queue is made of.

use std::sync::atomic::AtomicUsize;

use zonda_format::{OwnedValues, VarRef};
use zonda_model::{Hyperslab, MemType};
use zonda_shared::NoRoom;

use super::memory::ValueMemory;
use super::record::{self, RecordedValues};

/// Puts one after another, with the memory of their values.
#[derive(Debug, Default)]
pub(super) struct PutBatch {
    /// Values, one after another.
    pub(super) bytes: ValueMemory,
    /// Starts, counts and strides, one after another.
    index: Vec<usize>,
    strides: Vec<isize>,
    jobs: Vec<BatchEntry>,
    /// Bytes that the puts take besides their values: [`job_bytes`] of each.
    job_bytes: usize,
    owned: Vec<OwnedValues>,
    /// Bytes of the budget that are taken in addition to those of `bytes`.
    pub(super) other_bytes: usize,
    /// Number of the next put to carry out; those before it are done.
    pub(super) next: AtomicUsize,
}

/// One put.
#[derive(Clone, Copy, Debug)]
struct BatchEntry {
    var: VarRef,
    mem: Option<MemType>,
    values: ValuesPlace,
    /// Where its start and count are.
    index: usize,
    rank: usize,
    /// Where its strides are, counted from 1; 0 for none.
    stride: usize,
    /// The length that a dimension had before, where this put makes it longer.
    grown_from: Option<u64>,
}

/// Where values are.
#[derive(Clone, Copy, Debug)]
enum ValuesPlace {
    Packed {
        at: usize,
        len: usize,
    },
    Owned(usize),
    /// As [`OwnedValues::write_to`] writes them.
    Written {
        at: usize,
        len: usize,
    },
}

/// What a put hands over.
#[derive(Clone, Copy, Debug)]
pub(super) enum PutValues<'a> {
    /// Elements one after another.
    Packed(&'a [u8]),
    /// Elements with what they point to.
    Owned(&'a OwnedValues),
    /// Elements with what they point to, as [`OwnedValues::write_to`] writes them.
    Written(&'a [u8]),
}

/// A put, to be carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct AcceptedPut<'a> {
    pub(super) var: VarRef,
    pub(super) slab: Hyperslab<'a>,
    pub(super) mem: Option<MemType>,
    pub(super) given: PutValues<'a>,
    pub(super) grown_from: Option<u64>,
}

/// Most bytes that a put takes besides its values, in memory of the process or as a record for a helper process.
pub(super) const fn job_bytes(rank: usize) -> usize {
    let in_memory =
        size_of::<BatchEntry>().saturating_add(rank.saturating_mul(3 * size_of::<usize>()));
    let record = record::bytes(rank);
    if in_memory > record { in_memory } else { record }
}

impl PutBatch {
    /// With memory for values.
    pub(super) fn new(bytes: ValueMemory) -> PutBatch {
        PutBatch { bytes, ..PutBatch::default() }
    }

    /// Makes the batch known to a helper process from now on, as number `number` of the file `owner`.
    pub(super) fn begin(&mut self, owner: u64, number: u64) {
        if let ValueMemory::Shared(block) = &mut self.bytes {
            block.begin(owner, number);
        }
    }

    /// For values that have memory of their own, of so many bytes.
    pub(super) fn of_owned(other_bytes: usize) -> PutBatch {
        PutBatch { other_bytes, ..PutBatch::default() }
    }

    /// Bytes of its values.
    pub(super) fn value_bytes(&self) -> usize {
        self.bytes.values().len().saturating_add(self.other_bytes)
    }

    /// In a forked child: drops it, without freeing shared memory, which belongs to the parent.
    pub(super) fn leave(self) {
        self.bytes.leave();
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether the batch has room for a put with so many bytes of values, its record included.
    pub(super) fn has_room(&self, bytes: usize, rank: usize) -> bool {
        let used = self.bytes.values().len().saturating_add(self.job_bytes);
        used.saturating_add(job_bytes(rank)).saturating_add(bytes) <= self.bytes.capacity()
    }

    /// Adds a put whose values are the last `len` bytes.
    ///
    /// # Errors
    /// [`NoRoom`] where there is no room for a record for the helper process: then the put is not in the batch.
    pub(super) fn add(
        &mut self,
        var: VarRef,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
        len: usize,
        grown_from: Option<u64>,
    ) -> Result<(), NoRoom> {
        let at = self.bytes.values().len().checked_sub(len).ok_or(NoRoom)?;
        if let ValueMemory::Shared(block) = &mut self.bytes {
            record::write(block, var, slab, (at, len), RecordedValues::Typed(None))?;
        }
        let values = ValuesPlace::Packed { at, len };
        self.push(var, slab, mem, values, grown_from);
        Ok(())
    }

    /// Adds a put that was carried out already, with values of the type that the caller has; `None` is
    /// the variable's.
    ///
    /// # Errors
    /// As [`PutBatch::add`]; also where no helper process sees the memory.
    pub(super) fn add_other(
        &mut self,
        var: VarRef,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
        len: usize,
    ) -> Result<(), NoRoom> {
        let ValueMemory::Shared(block) = &mut self.bytes else { return Err(NoRoom) };
        let at = block.values().len().checked_sub(len).ok_or(NoRoom)?;
        record::write(block, var, slab, (at, len), RecordedValues::Typed(mem))
    }

    /// Adds a put of values that own what they point to.
    ///
    /// # Errors
    /// As [`PutBatch::add`].
    pub(super) fn add_owned(
        &mut self,
        var: VarRef,
        slab: &Hyperslab<'_>,
        owned: OwnedValues,
        grown_from: Option<u64>,
    ) -> Result<(), NoRoom> {
        let values = if let ValueMemory::Shared(block) = &mut self.bytes {
            let (at, len) = (block.values().len(), owned.written_bytes());
            owned.write_to(block.grow(len)?).ok_or(NoRoom)?;
            record::write(block, var, slab, (at, len), RecordedValues::Owned)?;
            ValuesPlace::Written { at, len }
        } else {
            self.owned.push(owned);
            ValuesPlace::Owned(self.owned.len() - 1)
        };
        self.push(var, slab, None, values, grown_from);
        Ok(())
    }

    fn push(
        &mut self,
        var: VarRef,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
        values: ValuesPlace,
        grown_from: Option<u64>,
    ) {
        let (index, rank) = (self.index.len(), slab.start.len());
        self.job_bytes = self.job_bytes.saturating_add(job_bytes(rank));
        self.index.extend_from_slice(slab.start);
        self.index.extend_from_slice(slab.count);
        let mut stride = 0;
        if let Some(strides) = slab.stride {
            stride = self.strides.len() + 1;
            self.strides.extend_from_slice(strides);
        }
        self.jobs.push(BatchEntry { var, mem, values, index, rank, stride, grown_from });
    }

    /// The put with that number in the batch.
    pub(super) fn get(&self, number: usize) -> Option<AcceptedPut<'_>> {
        let job = self.jobs.get(number)?;
        let index = self.index.get(job.index..)?;
        let (start, counts) = index.split_at_checked(job.rank)?;
        let stride = match job.stride.checked_sub(1) {
            None => None,
            Some(at) => Some(self.strides.get(at..)?.get(..job.rank)?),
        };
        let slab = Hyperslab { start, count: counts.get(..job.rank)?, stride };
        let given = match job.values {
            ValuesPlace::Packed { at, len } => {
                PutValues::Packed(self.bytes.values().get(at..)?.get(..len)?)
            }
            ValuesPlace::Owned(number) => PutValues::Owned(self.owned.get(number)?),
            ValuesPlace::Written { at, len } => {
                PutValues::Written(self.bytes.values().get(at..)?.get(..len)?)
            }
        };
        Some(AcceptedPut { var: job.var, slab, mem: job.mem, given, grown_from: job.grown_from })
    }
}

/// Whether the boxes around two hyperslabs of one variable have elements in common.
pub(super) fn touch(one: &Hyperslab<'_>, other: &Hyperslab<'_>) -> bool {
    let last = |slab: &Hyperslab<'_>, axis: usize| {
        let stride = slab.stride.and_then(|stride| stride.get(axis).copied()).unwrap_or(1);
        let steps = slab.count[axis].saturating_sub(1);
        slab.start[axis].saturating_add(steps.saturating_mul(usize::try_from(stride).unwrap_or(1)))
    };
    let rank = one.start.len().min(other.start.len());
    let has_all = |slab: &Hyperslab<'_>| slab.count.len() >= rank;
    has_all(one)
        && has_all(other)
        && (0..rank).all(|axis| {
            one.start[axis] <= last(other, axis) && other.start[axis] <= last(one, axis)
        })
}

#[cfg(test)]
mod tests {
    use zonda_model::VarId;
    use zonda_nc4::GroupId;
    use zonda_shared::{Arena, OrphanedMemory};

    use super::*;

    /// Whatever `has_room` allows can be added, for any rank, length and size of memory, and the helper process sees
    /// a record of each. (Once the bytes of the new record were not counted, and it was missing.)
    #[test]
    fn what_has_room_has_a_record() {
        let arena = Arena::new(1 << 20).unwrap();
        let mut seed = 7u64;
        let mut pick = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % n
        };
        let (mut n_puts, mut n_full) = (0, 0);
        for case in 0..60 {
            let (rank, bytes) = (pick(40), pick(3000));
            let least = bytes + job_bytes(rank);
            let mut batch =
                PutBatch::new(ValueMemory::Shared(arena.take(least + pick(4000)).unwrap()));
            batch.begin(1, 1);
            let (mut next, mut n) = ((rank, bytes), 0);
            while batch.has_room(next.1, next.0) {
                let (rank, bytes) = next;
                let list = vec![1; rank];
                let strides = vec![1; rank];
                let stride = (pick(2) == 0).then_some(&strides[..]);
                let slab = Hyperslab { start: &list, count: &list, stride };
                let var = VarRef { group: GroupId(0), var: VarId(n) };
                batch.bytes.grow(bytes).unwrap().fill(case as u8);
                batch.add(var, &slab, None, bytes, None).unwrap();
                n += 1;
                // Most are alike, as in a model; some are of another rank.
                next = if pick(4) == 0 { (pick(40), pick(200)) } else { next };
            }
            assert!(n > 0, "the first one has room");
            let left = OrphanedMemory::of(arena.fd().try_clone_to_owned().unwrap()).unwrap();
            let (_, records) = left.read(&left.blocks()[0]).unwrap();
            assert_eq!(records.len(), batch.len());
            // A put without room is refused, and is not in the batch.
            let slab = Hyperslab { start: &[0; 512], count: &[1; 512], stride: None };
            let var = VarRef { group: GroupId(0), var: VarId(n) };
            if batch.add(var, &slab, None, 0, None).is_err() {
                n_full += 1;
                let (_, after) = left.read(&left.blocks()[0]).unwrap();
                assert_eq!((after.len(), batch.len()), (records.len(), records.len()));
            }
            n_puts += records.len();
        }
        assert!(n_puts > 120 && n_full > 50, "{n_puts} {n_full}");
    }
}

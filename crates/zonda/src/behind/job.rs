//! A put that was accepted, and those that follow one another in the queue.

use std::sync::atomic::AtomicUsize;

use zonda_model::{Hyperslab, MemType};
use zonda_nc4::Held;

use super::memory::Memory;
use super::record::{self, Form};
use crate::refs::VarRef;

/// Puts one after another, with the memory of their values.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Values, one after another.
    pub(super) bytes: Memory,
    /// Starts, counts and strides, one after another.
    index: Vec<usize>,
    strides: Vec<isize>,
    jobs: Vec<Job>,
    held: Vec<Held>,
    /// Bytes of the budget that are taken besides those of `bytes`.
    pub(super) other_bytes: usize,
    /// Those before it are done.
    pub(super) next: AtomicUsize,
}

/// One put.
#[derive(Clone, Copy, Debug)]
struct Job {
    var: VarRef,
    mem: Option<MemType>,
    values: Values,
    /// Where its start and count are.
    index: usize,
    rank: usize,
    /// Where its strides are, counted from 1; 0 for none.
    stride: usize,
    /// The length that a dimension had which becomes longer by it.
    grown_from: Option<u64>,
}

/// Where values are.
#[derive(Clone, Copy, Debug)]
enum Values {
    Packed {
        at: usize,
        len: usize,
    },
    Held(usize),
    /// As [`Held::write_to`] writes them.
    Written {
        at: usize,
        len: usize,
    },
}

/// What a put hands over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Given<'a> {
    /// Elements one after another.
    Packed(&'a [u8]),
    /// Elements with what they point to.
    Held(&'a Held),
    /// The same as it was written.
    Written(&'a [u8]),
}

/// A put, to be carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Put<'a> {
    pub(super) var: VarRef,
    pub(super) slab: Hyperslab<'a>,
    pub(super) mem: Option<MemType>,
    pub(super) given: Given<'a>,
    pub(super) grown_from: Option<u64>,
}

/// What a job takes besides its values, about.
pub(super) fn job_bytes(rank: usize) -> usize {
    size_of::<Job>() + rank * 3 * size_of::<usize>()
}

impl Batch {
    /// With memory for values.
    pub(super) fn new(bytes: Memory) -> Batch {
        Batch { bytes, ..Batch::default() }
    }

    /// Lets a helper process know of it from now on, as what `owner` has at place `number`.
    pub(super) fn begin(&mut self, owner: u64, number: u64) {
        if let Memory::Shared(block) = &mut self.bytes {
            block.begin(owner, number);
        }
    }

    /// For values that have memory of their own, of so many bytes.
    pub(super) fn of_held(other_bytes: usize) -> Batch {
        Batch { other_bytes, ..Batch::default() }
    }

    /// Bytes of its values.
    pub(super) fn value_bytes(&self) -> usize {
        self.bytes.values().len().saturating_add(self.other_bytes)
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether values of so many bytes find room in the memory it has.
    pub(super) fn has_room(&self, bytes: usize, rank: usize) -> bool {
        let used = self.bytes.values().len().saturating_add(self.jobs.len() * job_bytes(rank));
        used.saturating_add(bytes) <= self.bytes.capacity()
            && bytes <= self.bytes.capacity() - self.bytes.values().len()
    }

    /// Adds a put whose values are the last `len` bytes.
    pub(super) fn add(
        &mut self,
        var: VarRef,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
        len: usize,
        grown_from: Option<u64>,
    ) {
        let at = self.bytes.values().len().saturating_sub(len);
        if let Memory::Shared(block) = &mut self.bytes {
            record::write(block, var, slab, (at, len), Form::Of(None));
        }
        let values = Values::Packed { at, len };
        self.push(var, slab, mem, values, grown_from);
    }

    /// Adds a put that was carried out already, with values of the type that the caller has; `None` is
    /// the variable's.
    pub(super) fn add_other(
        &mut self,
        var: VarRef,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
        len: usize,
    ) {
        if let Memory::Shared(block) = &mut self.bytes {
            let at = block.values().len().saturating_sub(len);
            record::write(block, var, slab, (at, len), Form::Of(mem));
        }
    }

    /// Adds a put of values that own what they point to.
    pub(super) fn add_held(
        &mut self,
        var: VarRef,
        slab: &Hyperslab<'_>,
        held: Held,
        grown_from: Option<u64>,
    ) {
        let values = if let Memory::Shared(block) = &mut self.bytes {
            let (at, len) = (block.values().len(), held.written_bytes());
            held.write_to(block.grow(len));
            record::write(block, var, slab, (at, len), Form::Held);
            Values::Written { at, len }
        } else {
            self.held.push(held);
            Values::Held(self.held.len() - 1)
        };
        self.push(var, slab, None, values, grown_from);
    }

    fn push(
        &mut self,
        var: VarRef,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
        values: Values,
        grown_from: Option<u64>,
    ) {
        let (index, rank) = (self.index.len(), slab.start.len());
        self.index.extend_from_slice(slab.start);
        self.index.extend_from_slice(slab.count);
        let mut stride = 0;
        if let Some(strides) = slab.stride {
            stride = self.strides.len() + 1;
            self.strides.extend_from_slice(strides);
        }
        self.jobs.push(Job { var, mem, values, index, rank, stride, grown_from });
    }

    /// The put with that number in the batch.
    pub(super) fn get(&self, number: usize) -> Option<Put<'_>> {
        let job = self.jobs.get(number)?;
        let index = self.index.get(job.index..)?;
        let (start, rest) = index.split_at_checked(job.rank)?;
        let stride = match job.stride.checked_sub(1) {
            None => None,
            Some(at) => Some(self.strides.get(at..)?.get(..job.rank)?),
        };
        let slab = Hyperslab { start, count: rest.get(..job.rank)?, stride };
        let given = match job.values {
            Values::Packed { at, len } => Given::Packed(self.bytes.values().get(at..)?.get(..len)?),
            Values::Held(number) => Given::Held(self.held.get(number)?),
            Values::Written { at, len } => {
                Given::Written(self.bytes.values().get(at..)?.get(..len)?)
            }
        };
        Some(Put { var: job.var, slab, mem: job.mem, given, grown_from: job.grown_from })
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

//! Operations of MPI that are under way, together with the memory that MPI reads and writes meanwhile.
//!
//! A [`Flight`] owns that memory, and nobody gets it back before all of its operations are over: so no code outside of this module can
//! give MPI memory that goes away. A flight that is dropped before leaks its memory.

use crate::calls::{Failed, Mpi, Word, check};
use crate::rounds::rounds;
use std::ffi::{c_int, c_void};
use zonda_team::Reduction;

/// On which communicator operations go, and how much each may move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) mpi: &'static Mpi,
    pub(crate) comm: Word,
    /// Which of its ranks this is, and how many there are.
    pub(crate) rank: usize,
    pub(crate) size: usize,
    /// Bytes of one operation.
    pub(crate) most_bytes: usize,
}

/// Which message of two ranks it is: what has different tags never meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Gathered = 1,
    Heading = 2,
    Lengths = 3,
    Message = 4,
    PostHeading = 5,
    PostBody = 6,
}

/// A buffer of a flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot(usize);

#[derive(Debug)]
struct Pending {
    request: Word,
    /// The rank whose message it waits for.
    from: Option<usize>,
}

/// Why an operation did not begin, or did not end.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A call failed.
    Call(Failed),
    /// There is no memory for what others send.
    Memory(usize),
    /// A rank, a count that MPI cannot have.
    Number(usize),
}

impl From<Failed> for Fault {
    fn from(failed: Failed) -> Fault {
        Fault::Call(failed)
    }
}

/// Operations that are under way on one communicator.
#[derive(Debug)]
pub(crate) struct Flight {
    channel: Channel,
    pending: Vec<Pending>,
    // In use by MPI while anything is pending: until then they are neither read nor written here, and stay where they are (what a
    // vector holds does not move with it).
    bytes: Vec<Vec<u8>>,
    numbers: Vec<Vec<u64>>,
    /// A call failed: what MPI does with the memory is not known.
    is_lost: bool,
}

/// The memory of a flight that is over.
#[derive(Debug)]
pub(crate) struct Landed {
    bytes: Vec<Vec<u8>>,
    numbers: Vec<Vec<u64>>,
}

impl Landed {
    /// The bytes of a slot of this flight; taken once. A slot of another flight is a mistake of ours, and must not look like no bytes.
    pub(crate) fn bytes(&mut self, slot: Slot) -> Vec<u8> {
        std::mem::take(&mut self.bytes[slot.0])
    }

    /// The numbers of a slot of this flight; taken once.
    pub(crate) fn numbers(&mut self, slot: Slot) -> Vec<u64> {
        std::mem::take(&mut self.numbers[slot.0])
    }
}

fn int(number: usize) -> Result<c_int, Fault> {
    c_int::try_from(number).map_err(|_| Fault::Number(number))
}

/// Zeros, where there is memory for them.
pub(crate) fn zeros<T: Default + Clone>(count: usize) -> Result<Vec<T>, Fault> {
    let mut made = Vec::new();
    made.try_reserve_exact(count).map_err(|_| Fault::Memory(count * size_of::<T>()))?;
    made.resize(count, T::default());
    Ok(made)
}

/// Bytes that are zeros, where there is memory for them. The system's own zeros are taken as they are: what MPI writes over need not be written twice.
pub(crate) fn zeroed_bytes(count: usize) -> Result<Vec<u8>, Fault> {
    let Ok(layout) = std::alloc::Layout::array::<u8>(count) else {
        return Err(Fault::Memory(count));
    };
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout has bytes. What comes of it is zeros of that layout, or null.
    let at = unsafe { std::alloc::alloc_zeroed(layout) };
    if at.is_null() {
        return Err(Fault::Memory(count));
    }
    // SAFETY: the global allocator gave as many bytes, with the alignment of bytes, and all of them are set.
    Ok(unsafe { Vec::from_raw_parts(at, count, count) })
}

impl Flight {
    pub(crate) fn new(channel: Channel) -> Flight {
        let (bytes, numbers) = (Vec::new(), Vec::new());
        Flight { channel, pending: Vec::new(), bytes, numbers, is_lost: false }
    }

    /// Keeps bytes for as long as MPI may use them, and says where they are.
    fn keep_bytes(&mut self, bytes: Vec<u8>) -> (Slot, *mut u8) {
        self.bytes.push(bytes);
        let at = self.bytes.len() - 1;
        (Slot(at), self.bytes[at].as_mut_ptr())
    }

    fn keep_numbers(&mut self, numbers: Vec<u64>) -> (Slot, *mut u64) {
        self.numbers.push(numbers);
        let at = self.numbers.len() - 1;
        (Slot(at), self.numbers[at].as_mut_ptr())
    }

    /// Begins an operation: `call` gets the place for its request.
    fn begin(
        &mut self,
        function: &'static str,
        from: Option<usize>,
        call: impl FnOnce(&Mpi, *mut Word) -> c_int,
    ) -> Result<(), Fault> {
        // Of MPICH's requests, the lower half is written, the upper one stays 0.
        let mut request = self.channel.mpi.handles.request_null;
        let begun = check(function, call(self.channel.mpi, &raw mut request));
        match begun {
            Ok(()) => self.pending.push(Pending { request, from }),
            Err(_) => self.is_lost = true,
        }
        Ok(begun?)
    }

    /// Gives the bytes of rank `root` to all, into bytes that are as long.
    pub(crate) fn broadcast(&mut self, bytes: Vec<u8>, root: usize) -> Result<Slot, Fault> {
        let (root, length) = (int(root)?, bytes.len());
        let Channel { comm, most_bytes, .. } = self.channel;
        let (slot, at) = self.keep_bytes(bytes);
        for part in rounds(length, most_bytes) {
            self.begin("MPI_Ibcast", None, |mpi, request| {
                let (calls, byte) = (&mpi.functions, mpi.handles.byte);
                // SAFETY: the part is within the bytes, which this flight keeps; the count fits: `most_bytes` is what MPI counts.
                unsafe {
                    let data: *mut c_void = at.add(part.start).cast();
                    (calls.ibcast)(data, part.len() as c_int, byte, root, comm, request)
                }
            })?;
        }
        Ok(slot)
    }

    /// Gets as many bytes of rank `root`.
    pub(crate) fn broadcast_into(&mut self, length: usize, root: usize) -> Result<Slot, Fault> {
        self.broadcast(zeroed_bytes(length)?, root)
    }

    /// Makes one of the numbers of all ranks. The greatest and the least are those of signed numbers: MPICH 4.0.2 takes those of
    /// `MPI_UINT64_T` for signed, too.
    pub(crate) fn reduce(&mut self, how: Reduction, given: Vec<u64>) -> Result<Slot, Fault> {
        let handles = &self.channel.mpi.handles;
        let (op, of) = match how {
            Reduction::Sum => (handles.sum, handles.uint64),
            Reduction::Max => (handles.max, handles.int64),
            Reduction::Min => (handles.min, handles.int64),
            Reduction::Or => (handles.bor, handles.uint64),
        };
        self.combine("MPI_Iallreduce", op, of, given)
    }

    /// Adds up the numbers of the ranks before. What rank 0 gets has no meaning.
    pub(crate) fn scan(&mut self, given: Vec<u64>) -> Result<Slot, Fault> {
        let handles = &self.channel.mpi.handles;
        self.combine("MPI_Iexscan", handles.sum, handles.uint64, given)
    }

    fn combine(
        &mut self,
        name: &'static str,
        op: Word,
        of: Word,
        given: Vec<u64>,
    ) -> Result<Slot, Fault> {
        let length = given.len();
        let Channel { comm, most_bytes, .. } = self.channel;
        let result = zeros(length)?;
        let (_, from) = self.keep_numbers(given);
        let (slot, to) = self.keep_numbers(result);
        for part in rounds(length, most_bytes / size_of::<u64>()) {
            self.begin(name, None, |mpi, request| {
                let calls = &mpi.functions;
                let call = if name == "MPI_Iexscan" { calls.iexscan } else { calls.iallreduce };
                // SAFETY: the part is within both lists, which this flight keeps and which are two; the count fits as in `broadcast`.
                unsafe {
                    let given: *const c_void = from.add(part.start).cast_const().cast();
                    let result: *mut c_void = to.add(part.start).cast();
                    call(given, result, part.len() as c_int, of, op, comm, request)
                }
            })?;
        }
        Ok(slot)
    }

    /// Gathers one number of each rank, in their order, on rank `root`; on others there are none.
    pub(crate) fn gather(&mut self, number: u64, root: usize) -> Result<Slot, Fault> {
        let Channel { comm, rank, size, .. } = self.channel;
        let result = zeros(if rank == root { size } else { 0 })?;
        let root = int(root)?;
        let (_, from) = self.keep_numbers(vec![number]);
        let (slot, to) = self.keep_numbers(result);
        self.begin("MPI_Igather", None, |mpi, request| {
            let of = mpi.handles.uint64;
            // SAFETY: one number from each rank; on the root there is room for all, and only there it is written.
            unsafe {
                (mpi.functions.igather)(
                    from.cast_const().cast(),
                    1,
                    of,
                    to.cast(),
                    1,
                    of,
                    root,
                    comm,
                    request,
                )
            }
        })?;
        Ok(slot)
    }

    /// Adds up lists that have a number for each rank, and gives each rank its sum.
    pub(crate) fn sum_for_each(&mut self, given: Vec<u64>) -> Result<Slot, Fault> {
        let Channel { comm, size, .. } = self.channel;
        if given.len() != size {
            return Err(Fault::Number(given.len()));
        }
        let (_, from) = self.keep_numbers(given);
        let (slot, to) = self.keep_numbers(vec![0]);
        self.begin("MPI_Ireduce_scatter_block", None, |mpi, request| {
            let (of, sum) = (mpi.handles.uint64, mpi.handles.sum);
            // SAFETY: a number is given for each rank, and this rank gets one.
            unsafe {
                (mpi.functions.ireduce_scatter_block)(
                    from.cast_const().cast(),
                    to.cast(),
                    1,
                    of,
                    sum,
                    comm,
                    request,
                )
            }
        })?;
        Ok(slot)
    }

    /// Sends bytes to a rank, which receives as many, or more in one round.
    pub(crate) fn send(&mut self, bytes: Vec<u8>, to: usize, tag: Tag) -> Result<(), Fault> {
        let length = bytes.len();
        self.send_as(bytes, length, to, tag)
    }

    /// Sends bytes to a rank that receives `length`, in as many rounds as that takes.
    pub(crate) fn send_as(
        &mut self,
        bytes: Vec<u8>,
        length: usize,
        to: usize,
        tag: Tag,
    ) -> Result<(), Fault> {
        let (to, tag, end) = (int(to)?, tag as c_int, bytes.len());
        let Channel { comm, most_bytes, .. } = self.channel;
        let (_, at) = self.keep_bytes(bytes);
        for part in rounds(length, most_bytes) {
            let part = part.start.min(end)..part.end.min(end);
            self.begin("MPI_Isend", None, |mpi, request| {
                let (calls, byte) = (&mpi.functions, mpi.handles.byte);
                // SAFETY: as in `broadcast`.
                unsafe {
                    let data: *const c_void = at.add(part.start).cast_const().cast();
                    (calls.isend)(data, part.len() as c_int, byte, to, tag, comm, request)
                }
            })?;
        }
        Ok(())
    }

    /// Receives bytes of a rank, or one message of any rank; what is not received stays 0.
    pub(crate) fn receive(
        &mut self,
        length: usize,
        from: Option<usize>,
        tag: Tag,
    ) -> Result<Slot, Fault> {
        self.receive_into(zeroed_bytes(length)?, length, from, tag)
    }

    /// As [`Flight::receive`], into memory that is there; it is not shorter.
    pub(crate) fn receive_into(
        &mut self,
        memory: Vec<u8>,
        length: usize,
        from: Option<usize>,
        tag: Tag,
    ) -> Result<Slot, Fault> {
        if memory.len() < length {
            return Err(Fault::Memory(length));
        }
        let tag = tag as c_int;
        let source = from.map_or(Ok(self.channel.mpi.table.any_source), int)?;
        let Channel { comm, most_bytes, .. } = self.channel;
        // A message of any rank is in one round: parts of two could not be told apart.
        let most_bytes = if from.is_none() { length } else { most_bytes };
        let (slot, at) = self.keep_bytes(memory);
        for part in rounds(length, most_bytes) {
            self.begin("MPI_Irecv", from, |mpi, request| {
                let (calls, byte) = (&mpi.functions, mpi.handles.byte);
                // SAFETY: as in `broadcast`; MPI writes no more than the count.
                unsafe {
                    let data: *mut c_void = at.add(part.start).cast();
                    (calls.irecv)(data, part.len() as c_int, byte, source, tag, comm, request)
                }
            })?;
        }
        Ok(slot)
    }

    /// Sends a short message to a rank that receives one of any rank: in one round.
    pub(crate) fn send_short(&mut self, bytes: Vec<u8>, to: usize, tag: Tag) -> Result<(), Fault> {
        self.in_parts(bytes.len(), |flight| flight.send(bytes, to, tag))
    }

    /// Begins operations of so many bytes at most.
    pub(crate) fn in_parts<T>(&mut self, most: usize, begin: impl FnOnce(&mut Flight) -> T) -> T {
        let channel = self.channel;
        self.channel.most_bytes = most;
        let begun = begin(self);
        self.channel = channel;
        begun
    }

    /// Duplicates the communicator; the handle of the copy is the slot's number.
    pub(crate) fn duplicate(&mut self) -> Result<Slot, Fault> {
        let comm = self.channel.comm;
        let (slot, to) = self.keep_numbers(vec![0]);
        self.begin("MPI_Comm_idup", None, |mpi, request| {
            // SAFETY: a number has room for a handle and its alignment; MPI may write it until the end, and this flight keeps it.
            unsafe { (mpi.functions.comm_idup)(comm, to.cast(), request) }
        })?;
        Ok(slot)
    }

    /// Whether everything is over. Lets MPI work a little.
    pub(crate) fn is_over(&mut self) -> Result<bool, Fault> {
        // The last one first: others are not looked at before it is over, since all must be.
        while let Some(last) = self.pending.len().checked_sub(1) {
            if !self.test(last)? {
                return Ok(false);
            }
            self.pending.truncate(last);
        }
        Ok(true)
    }

    fn test(&mut self, at: usize) -> Result<bool, Fault> {
        let (mpi, mut done) = (self.channel.mpi, 0);
        let request = &raw mut self.pending[at].request;
        // SAFETY: the request is one that MPI gave and that is not over; the status is ignored.
        let code = unsafe { (mpi.functions.test)(request, &raw mut done, mpi.table.status_ignore) };
        let tested = check("MPI_Test", code);
        self.is_lost |= tested.is_err();
        tested?;
        Ok(done != 0)
    }

    /// The ranks whose messages have not come; empty where it is not known.
    pub(crate) fn waits_for(&mut self) -> Result<Vec<usize>, Fault> {
        for at in (0..self.pending.len()).rev() {
            if self.test(at)? {
                self.pending.remove(at);
            }
        }
        let mut ranks: Vec<usize> = self.pending.iter().filter_map(|one| one.from).collect();
        zonda_runtime::sort::sort(&mut ranks);
        ranks.dedup();
        Ok(ranks)
    }

    /// The memory, when everything is over; `None` (and the memory is leaked) if it is not.
    pub(crate) fn landed(mut self) -> Option<Landed> {
        (self.pending.is_empty() && !self.is_lost).then(|| Landed {
            bytes: std::mem::take(&mut self.bytes),
            numbers: std::mem::take(&mut self.numbers),
        })
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.pending.is_empty() || self.is_lost {
            // MPI may still use it.
            std::mem::forget(std::mem::take(&mut self.bytes));
            std::mem::forget(std::mem::take(&mut self.numbers));
        }
    }
}

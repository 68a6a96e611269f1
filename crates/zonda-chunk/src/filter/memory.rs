//! Memory that filters work in and give their results in. Where it is short, that is an error of the filter.

use std::cell::{Cell, RefCell};
use std::thread::LocalKey;

use zonda_model::memory::{self, NoMemory};

use super::FilterError;

/// Reserves `len` more bytes in `out`.
pub(super) fn reserve(
    filter: &'static str,
    out: &mut Vec<u8>,
    len: usize,
) -> Result<(), FilterError> {
    out.try_reserve(len).map_err(|_| FilterError::NoMemory { filter, bytes: len })
}

/// A table of `len` zeros that a filter works with.
pub(super) fn zeroed_table<T: Clone + Default>(
    filter: &'static str,
    len: usize,
) -> Result<Box<[T]>, FilterError> {
    let no_memory = |error: NoMemory| FilterError::NoMemory { filter, bytes: error.bytes };
    Ok(memory::filled(len, T::default()).map_err(no_memory)?.into_boxed_slice())
}

/// Makes `out`, which is empty, `len` zeros.
pub(super) fn zeroed(
    filter: &'static str,
    out: &mut Vec<u8>,
    len: usize,
) -> Result<(), FilterError> {
    reserve(filter, out, len)?;
    out.resize(len, 0);
    Ok(())
}

/// The first `len` bytes of `bytes`, which is made longer if it is shorter. They hold what earlier users left there.
pub(super) fn lengthen<'a>(
    filter: &'static str,
    bytes: &'a mut Vec<u8>,
    len: usize,
) -> Result<&'a mut [u8], FilterError> {
    if let Some(more) = len.checked_sub(bytes.len()) {
        reserve(filter, bytes, more)?;
        bytes.resize(len, 0);
    }
    Ok(&mut bytes[..len])
}

/// Appends the stored bytes unchanged: the result of a filter that left the chunk as it was.
pub(super) fn copy(
    filter: &'static str,
    stored: &[u8],
    most: usize,
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    check_len(filter, stored.len(), most)?;
    reserve(filter, out, stored.len())?;
    out.extend_from_slice(stored);
    Ok(())
}

/// Refuses a result of `len` bytes where at most `most` are allowed.
pub(super) fn check_len(filter: &'static str, len: usize, most: usize) -> Result<(), FilterError> {
    if len > most {
        return Err(FilterError::WrongLength { filter, got: len, expected: most });
    }
    Ok(())
}

/// Buffers of a thread for filters that work block by block. They keep their length between calls, so that only
/// new bytes have to be cleared.
#[derive(Default)]
pub(super) struct BlockBuffers {
    /// A block between two steps of the filter.
    pub(super) block: Vec<u8>,
    /// What the second step needs for itself.
    pub(super) inner: Vec<u8>,
}

/// Runs `work` with the thread's buffers.
pub(super) fn with_block_buffers<T>(work: impl FnOnce(&mut BlockBuffers) -> T) -> T {
    thread_local! {
        static BUFFERS: Cell<BlockBuffers> =
            const { Cell::new(BlockBuffers { block: Vec::new(), inner: Vec::new() }) };
    }
    // A thread that is ending may have dropped them: see `with_thread_value`.
    let mut buffers = BUFFERS.try_with(Cell::take).unwrap_or_default();
    let result = work(&mut buffers);
    let _dropped = BUFFERS.try_with(|kept| kept.set(buffers));
    result
}

/// Runs `work` with the value that the thread keeps, or with a new one where that cannot be had. It was dropped
/// already when a process that ends without closing its files stores chunks. It is in use when a signal handler
/// interrupts a call and its forked child writes files of its own.
pub(super) fn with_thread_value<K, T>(
    kept: &'static LocalKey<RefCell<K>>,
    new: impl FnOnce() -> K,
    work: impl FnOnce(&mut K) -> T,
) -> T {
    let mut work = Some(work);
    let done = kept.try_with(|kept| {
        let mut kept = kept.try_borrow_mut().ok()?;
        work.take().map(|work| work(&mut kept))
    });
    match (done, work) {
        (Ok(Some(done)), _) => done,
        (_, Some(work)) => work(&mut new()),
        (_, None) => unreachable!("work that was taken has a result"),
    }
}

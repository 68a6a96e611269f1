//! Buffers of a thread that reads or writes chunks, kept from one request to the next.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use zonda_runtime::Apart;

use crate::engine::Engine;
use crate::filter::FilterBuffers;
use crate::row_reader::RowBuffers;
use crate::tuning::{KEPT_BUFFERS_BUDGET_PART, KEPT_BUFFERS_CHUNK_BYTES};

/// The buffers of one thread.
#[derive(Debug, Default)]
pub(crate) struct WorkerBuffers {
    /// Rows on their way from and to the storage.
    pub rows: RowBuffers,
    /// A chunk between two filters.
    pub filter: FilterBuffers,
    /// A decoded chunk that is not kept.
    pub chunk: Vec<u8>,
}

/// The buffers of a thread between two requests.
#[derive(Default)]
struct KeptBuffers {
    buffers: WorkerBuffers,
    /// The part of [`KEPT_BYTES`] that they are.
    counted: u64,
}

/// Bytes that all threads together keep for large chunks.
static KEPT_BYTES: Apart<AtomicU64> = Apart(AtomicU64::new(0));

impl Drop for KeptBuffers {
    fn drop(&mut self) {
        // Nothing is written for nothing: others would have to fetch the line again.
        if self.counted > 0 {
            KEPT_BYTES.fetch_sub(self.counted, Ordering::Relaxed);
        }
    }
}

thread_local! {
    static KEPT_BUFFERS: RefCell<Option<KeptBuffers>> = const { RefCell::new(None) };
}

impl WorkerBuffers {
    /// The buffers that this thread kept, or empty ones.
    pub(crate) fn take() -> WorkerBuffers {
        let kept = KEPT_BUFFERS.try_with(RefCell::take).ok().flatten();
        kept.map_or_else(WorkerBuffers::default, |mut kept| std::mem::take(&mut kept.buffers))
    }

    /// Keeps the buffers for the thread's next request. Those for large chunks are dropped where all threads together
    /// would keep too much beside the budget.
    pub(crate) fn put_back(self, chunk_bytes: usize, engine: &Engine) {
        let mut kept = KeptBuffers { buffers: self, counted: 0 };
        if chunk_bytes > KEPT_BUFFERS_CHUNK_BYTES {
            let WorkerBuffers { rows, filter, chunk } = &kept.buffers;
            let bytes = rows.stored.capacity() + rows.block.capacity() + chunk.capacity();
            kept.counted = (bytes + filter.bytes()) as u64;
            let all =
                KEPT_BYTES.fetch_add(kept.counted, Ordering::Relaxed).saturating_add(kept.counted);
            if all > engine.budget_bytes() / KEPT_BUFFERS_BUDGET_PART {
                return;
            }
        }
        // A thread that is ending does not keep them.
        let _ = KEPT_BUFFERS.try_with(|buffers| buffers.replace(Some(kept)));
    }
}

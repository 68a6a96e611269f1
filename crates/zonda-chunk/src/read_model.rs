//! What a read does with the chunks that it touches: the rules in one place. They know numbers, and no chunk.
//!
//! | the request has of a chunk | the chunk is | decoded | by | kept | copied once more |
//! |---|---|---|---|---|---|
//! | a part | filtered | once, wholly | a thread of the pool where the request decodes 256 KiB | yes: requests come back to what they left | the part |
//! | all of it | filtered | for each request | the same; small chunks by the handful | no, unless the request shares elements with the one before | nothing, where it is one run of the caller's memory; else all of it |
//! | a part or all | in the cache | no | a thread of the pool from 4 MiB on | yes | the part |
//! | a part or all | unfiltered | no | a thread of the pool from 8 MiB on | where the same chunk was asked for some times, and little of it | what is asked for |
//! | the next of a walk | filtered | ahead of its request | who has nothing else to do; before the request where that has fewer chunks than there are threads | yes | |
//!
//! A chunk that is kept costs its bytes in fresh memory and one copy of the part; a wrong guess to keep it, no more than that. A wrong
//! guess that requests walk on costs one row of chunks, which threads decode that had nothing to do.
//!
//! Two things are not done. A chunk is decoded wholly also where its first elements would do: what proves a stream (Adler-32, Fletcher-32) is
//! at its end, and bytes that nothing has proved are not handed out. And no chunk is decoded on a guess before three requests have shown
//! a walk: on cores that other programs use a wrong guess would take as long as a right one saves.
//!
//! `tests/read_model.rs` counts chunks decoded, bytes inflated and bytes copied for 60 pairs of shape and access against these rules.

use crate::prefetch::Observation;
use crate::tuning::{
    CACHED_UNFILTERED_BYTES, CACHED_UNFILTERED_REQUESTS, CLAIMS_OF_A_THREAD, READ_CLAIM_BYTES,
    READ_POOL_CACHED_BYTES, READ_POOL_DECODED_BYTES, READ_POOL_UNFILTERED_BYTES,
    SMALL_REQUEST_PART, claims_at_once,
};

/// Which chunks stay in the cache besides filtered ones that are wanted only in part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepRules {
    /// Filtered chunks that are wanted as a whole.
    whole: bool,
    /// Unfiltered chunks.
    unfiltered: bool,
}

impl KeepRules {
    /// For a request for so many bytes of the file's form. `alone`: nobody else writes to the storage.
    pub(crate) fn new(
        observed: &Observation,
        wanted_bytes: usize,
        chunk_bytes: usize,
        alone: bool,
    ) -> KeepRules {
        KeepRules {
            whole: observed.overlaps,
            unfiltered: alone
                && observed.same_chunk >= CACHED_UNFILTERED_REQUESTS
                && wanted_bytes <= chunk_bytes / SMALL_REQUEST_PART
                && chunk_bytes <= CACHED_UNFILTERED_BYTES,
        }
    }

    /// Whether a chunk that is not in the cache is kept there.
    pub(crate) fn of_chunk(self, is_raw: bool, is_whole: bool) -> bool {
        match (is_raw, is_whole) {
            (true, _) => self.unfiltered,
            (false, true) => self.whole,
            (false, false) => true,
        }
    }
}

/// The chunks that a request touches, by what is to be done with them, and the bytes that it asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FoundChunks {
    pub n_ready: usize,
    pub n_filtered: usize,
    pub n_unfiltered: usize,
    pub chunk_bytes: usize,
    pub out_bytes: usize,
}

impl FoundChunks {
    /// How many chunks are worth the pool's threads; 1 where the calling thread does all of it.
    pub(crate) fn n_tasks(&self) -> usize {
        let wanted = |n: usize| self.out_bytes.min(n.saturating_mul(self.chunk_bytes));
        if self.n_filtered.saturating_mul(self.chunk_bytes) >= READ_POOL_DECODED_BYTES {
            self.n_filtered + self.n_ready
        } else if wanted(self.n_unfiltered) >= READ_POOL_UNFILTERED_BYTES {
            self.n_unfiltered + self.n_ready
        } else if wanted(self.n_ready) >= READ_POOL_CACHED_BYTES {
            self.n_ready
        } else {
            1
        }
    }

    /// How many of `n_tasks` chunks each of `threads` threads claims at a time.
    pub(crate) fn per_claim(&self, n_tasks: usize, threads: usize) -> usize {
        if n_tasks <= 1 {
            return usize::MAX;
        }
        let few = (READ_CLAIM_BYTES / self.chunk_bytes).max(1);
        let many = READ_CLAIM_BYTES * claims_at_once(threads) / self.chunk_bytes;
        // All of them come back some times, so that none is left with much when the others are done.
        few.max(many.min(n_tasks / (threads * CLAIMS_OF_A_THREAD)))
    }
}

/// Whether chunks ahead are handed out before the request is read: with work for all threads they can wait until it is done.
pub(crate) fn prefetch_comes_first(n_parts: usize, threads: usize) -> bool {
    n_parts < threads
}

//! Reads of one element: the short way of programs that get value by value.

use std::sync::atomic::Ordering;

use zonda_convert::{Converted, Decoder};

use crate::ChunkedArray;
use crate::array::SharedArray;
use crate::one_element::{key_of, number_in};
use crate::selection::Coords;

/// Bytes of the longest number.
const MOST_ELEM_BYTES: usize = 8;

impl ChunkedArray {
    /// Reads the element `at` of the array, whose shape is `extent`, as [`ChunkedArray::read`] does: out of a chunk in the cache; or, where
    /// chunks are stored as they are, its own bytes out of the storage. `None` where that has more to do, or fails: then `out` holds anything.
    #[inline]
    pub fn read_one(
        &self,
        extent: &[u64],
        at: &[usize],
        decoder: &Decoder,
        out: &mut [u8],
    ) -> Option<Converted> {
        let inner = &*self.inner;
        let (dims, elem) = (&inner.chunk_dims[..], inner.elem_size);
        if [extent.len(), at.len()] != [dims.len(); 2]
            || [decoder.ext_size(), decoder.mem_size()] != [elem, out.len()]
        {
            return None;
        }
        let hot = inner.cache.hot();
        if let Some(chunk) = hot.as_ref()
            && let origin = chunk.key.iter().zip(dims).map(|(&k, &n)| k.wrapping_mul(n))
            && let Some(number) = number_in(dims, extent, origin, at)
        {
            chunk.touch();
            let src = chunk.bytes.get(number * elem..)?.get(..elem)?;
            return Some(decoder.decode(src, out));
        }
        drop(hot);
        inner.read_stored_one(extent, at, decoder, out)
    }
}

impl SharedArray {
    /// Reads an element that cannot be found without a lock.
    fn read_stored_one(
        &self,
        extent: &[u64],
        at: &[usize],
        decoder: &Decoder,
        out: &mut [u8],
    ) -> Option<Converted> {
        let (dims, elem) = (&self.chunk_dims[..], self.elem_size);
        let chunk_bytes = self.chunk_bytes?;
        let key: Coords = key_of(dims, at).collect();
        let origin = key.iter().zip(dims).map(|(&k, &n)| k.wrapping_mul(n));
        let from = number_in(dims, extent, origin, at)? * elem;
        if !self.cache.seems_empty()
            && let Some(chunk) = self.cache.get(&key)
        {
            return Some(decoder.decode(chunk.bytes.get(from..)?.get(..elem)?, out));
        }
        if self.is_filtered() || self.is_remote() {
            return None;
        }
        let place = self.find(&key).ok()??;
        // Several requests in a row to the same chunk have it cached.
        let is_again = self.last_read.swap(place.at, Ordering::Relaxed) == place.at;
        let end = place.at.checked_add(place.len)?;
        if is_again || place.len != chunk_bytes as u64 || end > i64::MAX as u64 {
            return None;
        }
        // A chunk that is not all there is refused, whichever part of it is wanted. To ask takes a call.
        if end > self.known_len.load(Ordering::Relaxed) {
            let len = self.storage.len().ok()?;
            self.known_len.store(len, Ordering::Relaxed);
            if end > len {
                return None;
            }
        }
        let mut bytes = [0; MOST_ELEM_BYTES];
        let stored = bytes.get_mut(..elem)?;
        let got = self.storage.read_at(place.at + from as u64, stored).ok()?;
        (got == elem).then(|| decoder.decode(stored, out))
    }
}

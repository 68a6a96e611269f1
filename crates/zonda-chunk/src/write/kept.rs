//! Chunks that this writer holds and of which another one stores some of the elements: what is put here is sent there, and merged with
//! what others have.
//!
//! A *kept part* is which elements of a chunk were put, a bit for each in words of 64, and these elements, in the order of the chunk.

use super::{ArrayId, ChunkWriter, OUTSIDE, WRONG_LENGTH};
use crate::ChunkError;
use crate::stored::lengthen;

/// What another writer kept of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct KeptPart<'a> {
    /// As [`ChunkWriter::kept_part`] made it.
    pub bytes: &'a [u8],
    /// Its elements count where this writer has put, too.
    pub is_over: bool,
}

/// Elements of a word.
const BITS: usize = u64::BITS as usize;

/// Calls `each` with the runs of elements whose bits are set.
fn each_run(words: &[u64], mut each: impl FnMut(usize, usize)) {
    let mut open: Option<usize> = None;
    for (number, &word) in words.iter().enumerate() {
        let mut bit = 0;
        while bit < BITS {
            let rest = word >> bit;
            let n = match open {
                Some(_) => rest.trailing_ones() as usize,
                None => rest.trailing_zeros() as usize,
            };
            let n = n.min(BITS - bit);
            bit += n;
            if bit < BITS {
                let at = number * BITS + bit;
                match open.take() {
                    Some(first) => each(first, at - first),
                    None => open = Some(at),
                }
            }
        }
    }
    if let Some(first) = open {
        each(first, words.len() * BITS - first);
    }
}

/// The words and the elements of a kept part of a chunk of so many elements.
fn split(bytes: &[u8], n_words: usize) -> Result<(Vec<u64>, &[u8]), ChunkError> {
    let (words, elems) = bytes.split_at_checked(n_words * size_of::<u64>()).ok_or(WRONG_LENGTH)?;
    let words = words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    Ok((words, elems))
}

/// Bytes of the kept part at the beginning of `bytes`; `None` where they are too few.
fn len_of(bytes: &[u8], n_words: usize, elem_size: usize) -> Option<usize> {
    let (words, _) = bytes.split_at_checked(n_words.checked_mul(size_of::<u64>())?)?;
    let n = words.iter().fold(0usize, |sum, byte| sum + byte.count_ones() as usize);
    let len = n.checked_mul(elem_size)?.checked_add(words.len())?;
    (len <= bytes.len()).then_some(len)
}

impl ChunkWriter {
    /// Whether a chunk waits here.
    #[must_use]
    pub fn holds(&self, id: ArrayId, key: &[u64]) -> bool {
        self.writer_array(id).is_ok_and(|array| array.keys.contains_key(key))
    }

    /// Whether chunks that wait take more memory than they may, and cannot go to a file.
    pub fn is_without_room(&mut self) -> bool {
        if self.is_stuck() {
            self.try_spilling_again();
            self.account();
        }
        self.is_stuck()
    }

    /// The elements of a chunk as they are here, and which were put.
    fn kept(&self, id: ArrayId, key: &[u64]) -> Result<(Vec<u8>, &[u64]), ChunkError> {
        let array = self.writer_array(id)?;
        let pending = array.keys.get(key).and_then(|&node| self.pending.get(node));
        let elems = &pending.ok_or(OUTSIDE)?.elems;
        let mut bytes = Vec::new();
        lengthen(&mut bytes, array.chunk_bytes)?;
        match elems.spilled {
            Some(slot) => self.pending.spills.read(key, slot, &mut bytes)?,
            None => bytes.copy_from_slice(elems.bytes.get(..array.chunk_bytes).ok_or(OUTSIDE)?),
        }
        Ok((bytes, elems.written.words()))
    }

    /// Appends the kept part of a chunk that waits here.
    ///
    /// # Errors
    /// [`ChunkError::Request`] for a chunk that does not wait here; [`ChunkError::NoMemory`]; those of spilled chunks.
    pub fn kept_part(&self, id: ArrayId, key: &[u64], out: &mut Vec<u8>) -> Result<(), ChunkError> {
        let elem_size = self.writer_array(id)?.elem_size;
        let (bytes, words) = self.kept(id, key)?;
        let n: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        let more = size_of_val(words) + n * elem_size;
        out.try_reserve(more).map_err(|_| ChunkError::NoMemory { bytes: more as u64 })?;
        words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        each_run(words, |first, n| {
            out.extend_from_slice(&bytes[first * elem_size..(first + n) * elem_size]);
        });
        Ok(())
    }

    /// How many bytes of `bytes` are the kept part of one chunk; `None` where they are not even that.
    #[must_use]
    pub fn kept_len(&self, id: ArrayId, bytes: &[u8]) -> Option<usize> {
        let array = self.writer_array(id).ok()?;
        len_of(bytes, array.chunk_elems.div_ceil(BITS), array.elem_size)
    }

    /// A chunk that waits here, with what others kept of it, in this order. It waits as it is.
    ///
    /// # Errors
    /// As [`ChunkWriter::kept_part`]; [`ChunkError::Request`] for parts that are none of this chunk.
    pub fn merged(
        &self,
        id: ArrayId,
        key: &[u64],
        parts: &[KeptPart<'_>],
    ) -> Result<Vec<u8>, ChunkError> {
        let array = self.writer_array(id)?;
        let size = array.elem_size;
        let (mut merged, words) = self.kept(id, key)?;
        let mut written = words.to_vec();
        for part in parts {
            let (mut words, elems) = split(part.bytes, written.len())?;
            let n: usize = words.iter().map(|word| word.count_ones() as usize).sum();
            let last = words.iter().rposition(|&word| word != 0);
            let end = last.map_or(0, |at| (at + 1) * BITS - words[at].leading_zeros() as usize);
            if elems.len() != n * size || end > array.chunk_elems {
                return Err(WRONG_LENGTH);
            }
            let mut from = 0;
            each_run(&words, |first, n| {
                for at in first..first + n {
                    if part.is_over || written[at / BITS] >> (at % BITS) & 1 == 0 {
                        merged[at * size..(at + 1) * size]
                            .copy_from_slice(&elems[from..from + size]);
                    }
                    from += size;
                }
            });
            written.iter_mut().zip(&mut words).for_each(|(written, word)| *written |= *word);
        }
        Ok(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_those_of_the_bits() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..2000 {
            let dense = rng.u64(1..20);
            let words: Vec<u64> = (0..rng.usize(0..5))
                .map(|_| match rng.u8(0..4) {
                    0 => 0,
                    1 => u64::MAX,
                    _ => {
                        (0..64).fold(0, |word, bit| word | u64::from(rng.u64(0..dense) > 0) << bit)
                    }
                })
                .collect();
            let mut found = vec![0; words.len()];
            let mut end = None;
            each_run(&words, |first, n| {
                // Runs are the longest ones.
                assert!(n > 0 && end.is_none_or(|end| first > end));
                end = Some(first + n);
                (first..first + n).for_each(|at| found[at / 64] |= 1 << (at % 64));
            });
            assert_eq!(found, words);
        }
    }

    #[test]
    fn lengths_are_told_by_the_bits() {
        let part = [5_u64.to_le_bytes(), 1_u64.to_le_bytes()].concat();
        let bytes = [&part[..], &[0; 12], &[9; 3]].concat();
        assert_eq!(len_of(&bytes, 2, 4), Some(28));
        assert_eq!(len_of(&bytes[..27], 2, 4), None);
        assert_eq!(len_of(&bytes[..15], 2, 4), None);
    }
}

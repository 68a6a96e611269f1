//! Which elements of a chunk were written since it was begun or loaded.

/// A bit for each element of a chunk.
#[derive(Debug, Default)]
pub(crate) struct WrittenBits {
    words: Vec<u64>,
    /// Elements that are still to come before the chunk is complete.
    missing: usize,
}

/// Elements of a word.
const BITS: usize = u64::BITS as usize;

impl WrittenBits {
    /// Bytes that the bits take.
    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    /// None of `n_elems`; `missing` of them make the chunk complete, the others are never marked.
    pub(crate) fn new(n_elems: usize, missing: usize) -> Option<WrittenBits> {
        let mut words = Vec::new();
        words.try_reserve_exact(n_elems.div_ceil(BITS)).ok()?;
        words.resize(n_elems.div_ceil(BITS), 0);
        Some(WrittenBits { words, missing })
    }

    /// All of `n_elems`, and those that are never marked.
    pub(crate) fn complete(n_elems: usize) -> Option<WrittenBits> {
        let mut written = WrittenBits::new(n_elems, n_elems)?;
        written.mark(0, n_elems);
        Some(written)
    }

    /// A bit for each element, in words of 64.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Marks `n` elements from `first` on.
    #[inline]
    pub(crate) fn mark(&mut self, first: usize, n: usize) {
        if n == 1 {
            return self.mark_one(first);
        }
        let (mut at, end) = (first, first + n);
        while at < end {
            let (word, bit) = (at / BITS, at % BITS);
            let here = (BITS - bit).min(end - at);
            let mask = (u64::MAX >> (BITS - here)) << bit;
            let present = &mut self.words[word];
            self.missing -= (mask & !*present).count_ones() as usize;
            *present |= mask;
            at += here;
        }
    }

    /// Marks `n` elements from `first` on, `step` apart.
    pub(crate) fn mark_apart(&mut self, first: usize, n: usize, step: usize) {
        match step {
            1 => self.mark(first, n),
            _ => (0..n).for_each(|i| self.mark_one(first + i * step)),
        }
    }

    /// Marks an element, unless the chunk would be complete with it. Whether it is marked.
    #[inline]
    pub(crate) fn mark_unless_last(&mut self, at: usize) -> bool {
        let Some(present) = self.words.get_mut(at / BITS) else { return false };
        let mask = 1 << (at % BITS);
        let is_new = *present & mask == 0;
        if is_new {
            if self.missing <= 1 {
                return false;
            }
            self.missing -= 1;
            *present |= mask;
        }
        self.missing > 0
    }

    #[inline]
    fn mark_one(&mut self, at: usize) {
        let present = &mut self.words[at / BITS];
        let mask = 1 << (at % BITS);
        self.missing -= usize::from(*present & mask == 0);
        *present |= mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_element_counts_once() {
        for (n_elems, needed) in [(1, 1), (64, 64), (65, 60), (200, 200), (1000, 990)] {
            let mut written = WrittenBits::new(n_elems, needed).expect("memory");
            let mut model = vec![false; needed];
            let mut random = fastrand::Rng::with_seed(n_elems as u64);
            while !written.is_complete() {
                let first = random.usize(..needed);
                let step = random.usize(1..=5);
                let n = random.usize(1..=130).min((needed - first).div_ceil(step));
                written.mark_apart(first, n, step);
                (0..n).for_each(|i| model[first + i * step] = true);
                assert_eq!(written.missing, model.iter().filter(|there| !**there).count());
            }
        }
    }
}

//! Sets of processors, by their numbers in the system.

use std::fmt;

/// A set of processors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet {
    /// Bit `n % 64` of word `n / 64` stands for processor `n`; the last word is not zero.
    words: Vec<u64>,
}

/// Processors beyond this number are not counted: no system has so many, a broken list may.
pub(crate) const MOST_CPUS: usize = 1 << 16;

impl CpuSet {
    /// The set of those processors whose bits are set, 64 to a word.
    pub(crate) fn of_words(words: Vec<u64>) -> CpuSet {
        let mut set = CpuSet { words };
        set.trim();
        set
    }

    /// The words of the set, at least `n` of them.
    pub(crate) fn words(&self, n: usize) -> Vec<u64> {
        let mut words = self.words.clone();
        words.resize(n.max(words.len()), 0);
        words
    }

    /// The set that a list such as `0-3,8,10-11` names, as files of the kernel write it; `None`
    /// where it is no list.
    #[must_use]
    pub fn parse(list: &str) -> Option<CpuSet> {
        let mut set = CpuSet::default();
        for part in list.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) =
                (first.trim().parse().ok()?, last.trim().parse().ok()?);
            if first > last || last >= MOST_CPUS {
                return None;
            }
            for cpu in first..=last {
                set.insert(cpu);
            }
        }
        Some(set)
    }

    /// Adds a processor.
    pub fn insert(&mut self, cpu: usize) {
        if cpu < MOST_CPUS {
            let (word, bit) = (cpu / 64, cpu % 64);
            if self.words.len() <= word {
                self.words.resize(word + 1, 0);
            }
            self.words[word] |= 1 << bit;
        }
    }

    /// How many processors there are in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: usize) -> bool {
        self.words.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// The processors of either set.
    #[must_use]
    pub fn union(&self, other: &CpuSet) -> CpuSet {
        self.by_word(other, |a, b| a | b)
    }

    /// The processors of both sets.
    #[must_use]
    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        self.by_word(other, |a, b| a & b)
    }

    /// The processors of this set that are not in the other.
    #[must_use]
    pub fn without(&self, other: &CpuSet) -> CpuSet {
        self.by_word(other, |a, b| a & !b)
    }

    fn by_word(&self, other: &CpuSet, of: impl Fn(u64, u64) -> u64) -> CpuSet {
        let n = self.words.len().max(other.words.len());
        let (a, b) = (self.words(n), other.words(n));
        CpuSet::of_words(a.into_iter().zip(b).map(|(a, b)| of(a, b)).collect())
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

impl fmt::Display for CpuSet {
    /// As the kernel writes it: `0-3,8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpu = 0;
        let end = self.words.len() * 64;
        let mut comma = "";
        while cpu < end {
            if !self.contains(cpu) {
                cpu += 1;
                continue;
            }
            let first = cpu;
            while self.contains(cpu) {
                cpu += 1;
            }
            match cpu - first {
                1 => write!(f, "{comma}{first}")?,
                n => write!(f, "{comma}{first}-{}", first + n - 1)?,
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        for list in ["", "0", "0-3", "0-3,8,10-11", "63-64", "1000"] {
            assert_eq!(CpuSet::parse(list).unwrap().to_string(), list);
        }
        assert_eq!(CpuSet::parse("3,1,2\n").unwrap().to_string(), "1-3");
        for broken in ["x", "3-1", "1-", "-1", "0-99999999999"] {
            assert_eq!(CpuSet::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn sets_are_sets() {
        let set = |list| CpuSet::parse(list).unwrap();
        assert_eq!(set("0-70").len(), 71);
        assert_eq!(set("0-1").union(&set("128")).to_string(), "0-1,128");
        assert_eq!(set("0-9").intersection(&set("5-200")), set("5-9"));
        assert_eq!(set("0-9,100").without(&set("100")), set("0-9"));
        assert!(set("1").without(&set("0-3")).is_empty());
        assert!(!set("1").contains(1000));
    }
}

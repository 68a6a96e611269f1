//! Tables of names, which find a name without comparing it with all others.
//!
//! A table is built when it is first needed, and from then on updated: ten thousand definitions cost ten thousand
//! steps. It has hashes and numbers; names stay in the caller's list, and the caller says whether a number has the
//! name.

use std::hash::BuildHasher;
use std::sync::OnceLock;

use crate::tuning::SHORT_LIST_NAMES;
use hashbrown::HashTable;
use zonda_runtime::Settled;

/// Numbers by the hashes of their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    table: OnceLock<HashTable<(u64, u32)>>,
}

impl Names {
    /// The lowest of the numbers in `all` that has the name, as `is_named` tells.
    pub(crate) fn find<'n>(
        &self,
        name: &[u8],
        n_names: usize,
        all: impl Iterator<Item = (u32, &'n [u8])>,
        is_named: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        if n_names <= SHORT_LIST_NAMES && self.table.get().is_none() {
            return all.into_iter().find(|(_, known)| *known == name).map(|(number, _)| number);
        }
        let table = self.table.get_or_init(|| {
            let mut table = HashTable::with_capacity(n_names);
            for (number, name) in all {
                let hash = hash(name);
                table.insert_unique(hash, (hash, number), |&(hash, _)| hash);
            }
            table
        });
        let hash = hash(name);
        let same = table.iter_hash(hash).filter(|&&(known, _)| known == hash);
        // Files may hold one name twice; the first counts.
        same.map(|&(_, number)| number).filter(|&number| is_named(number)).min()
    }

    /// Adds a name that was added to the list.
    pub(crate) fn insert(&mut self, name: &[u8], number: u32) {
        if let Some(table) = self.table.get_mut() {
            let hash = hash(name);
            table.insert_unique(hash, (hash, number), |&(hash, _)| hash);
        }
    }

    /// Removes a name that was removed from the list; the numbers of the others stay.
    pub(crate) fn remove(&mut self, name: &[u8], number: u32) {
        if let Some(table) = self.table.get_mut() {
            let entry = table.find_entry(hash(name), |&(_, known)| known == number);
            if let Ok(entry) = entry {
                entry.remove();
            }
        }
    }

    /// Drops the table because numbers changed; it is built again when it is needed.
    pub(crate) fn forget(&mut self) {
        self.table.take();
    }
}

/// Keyed by the process, so that no file can choose names that collide.
fn hash(name: &[u8]) -> u64 {
    static KEY: Settled<hashbrown::DefaultHashBuilder> = Settled::new();
    KEY.get_or_make(Default::default).hash_one(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct List(Vec<String>, Names);

    impl List {
        fn find(&self, name: &str) -> Option<u32> {
            let all = (0..).zip(self.0.iter().map(|name| name.as_bytes()));
            let is_named = |number: u32| self.0[number as usize] == name;
            self.1.find(name.as_bytes(), self.0.len(), all, is_named)
        }

        fn push(&mut self, name: &str) {
            self.1.insert(name.as_bytes(), self.0.len() as u32);
            self.0.push(name.to_owned());
        }

        fn rename(&mut self, number: u32, name: &str) {
            self.1.remove(self.0[number as usize].as_bytes(), number);
            self.1.insert(name.as_bytes(), number);
            self.0[number as usize] = name.to_owned();
        }
    }

    #[test]
    fn short_and_long_lists_find_the_same() {
        for n in [1u32, 15, 16, 17, 300] {
            let mut list = List(Vec::new(), Names::default());
            for i in 0..n {
                list.push(&format!("n{i}"));
                assert_eq!(list.find(&format!("n{i}")), Some(i), "{n}");
            }
            assert_eq!(list.find("n"), None);
            list.rename(0, "first");
            assert_eq!((list.find("first"), list.find("n0")), (Some(0), None), "{n}");
            // One name twice: the first counts, whichever came first into the table.
            list.push("first");
            assert_eq!(list.find("first"), Some(0));
            list.rename(0, "again");
            assert_eq!(list.find("first"), Some(n));
            list.1.forget();
            assert_eq!((list.find("again"), list.find("first")), (Some(0), Some(n)));
        }
    }
}

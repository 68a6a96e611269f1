//! Finding an object by name without a map of strings: a table of ids, hashed by the names that the
//! objects hold anyway (4 bytes an entry, and none at all for short lists).
//!
//! The table is made when something is first looked up in a long list: whoever opens a file to read
//! the variables by number, or one of them, does not wait for it.

use std::hash::BuildHasher;
use std::sync::OnceLock;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::tuning::LINEAR_NAMES;

/// An index of names onto positions in the list that owns them.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameIndex {
    table: OnceLock<NameHashes>,
}

#[derive(Clone, Debug, Default)]
struct NameHashes {
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Of some names there are several, of which only the first are here.
    has_twins: bool,
}

impl NameIndex {
    /// Position of `name` in a list of `len` names that `name_of` reads.
    pub(crate) fn find<'a>(
        &self,
        name: &[u8],
        len: usize,
        name_of: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Option<usize> {
        if len <= LINEAR_NAMES {
            return (0..len).find(|&i| name_of(i) == Some(name));
        }
        let table = self.table.get_or_init(|| NameHashes::new(len, &name_of));
        let hash = table.hasher.hash_one(name);
        let found = table.ids.find(hash, |&i| name_of(i as usize) == Some(name))?;
        Some(*found as usize)
    }

    /// Notes that the name at position `id` was appended to the list.
    pub(crate) fn push<'a>(&mut self, id: usize, name_of: impl Fn(usize) -> Option<&'a [u8]>) {
        if let Some(table) = self.table.get_mut() {
            table.insert(id, &name_of);
        }
    }

    /// Notes that the name at position `id` is to go, or to become another one: `name_of` still
    /// reads the old one.
    pub(crate) fn remove<'a>(&mut self, id: usize, name_of: impl Fn(usize) -> Option<&'a [u8]>) {
        let Some(table) = self.table.get_mut() else { return };
        if table.has_twins {
            // Another one of that name would have to take its place.
            self.table.take();
        } else if let Some(name) = name_of(id) {
            let hash = table.hasher.hash_one(name);
            if let Ok(entry) = table.ids.find_entry(hash, |&known| known as usize == id) {
                entry.remove();
            }
        }
    }

    /// Forgets all after positions changed.
    pub(crate) fn clear(&mut self) {
        self.table.take();
    }
}

impl NameHashes {
    fn new<'a>(len: usize, name_of: &impl Fn(usize) -> Option<&'a [u8]>) -> NameHashes {
        let mut table = NameHashes { ids: HashTable::with_capacity(len), ..NameHashes::default() };
        for id in 0..len {
            table.insert(id, name_of);
        }
        table
    }

    fn insert<'a>(&mut self, id: usize, name_of: &impl Fn(usize) -> Option<&'a [u8]>) {
        let (Some(name), Ok(id)) = (name_of(id), u32::try_from(id)) else { return };
        let hasher = &self.hasher;
        let hash_at = |i: u32| name_of(i as usize).map_or(0, |name| hasher.hash_one(name));
        let hash = hasher.hash_one(name);
        // Of two equal names in a (damaged) file the first keeps the entry.
        match self.ids.find(hash, |&i| name_of(i as usize) == Some(name)) {
            Some(_) => self.has_twins = true,
            None => _ = self.ids.insert_unique(hash, id, |&i| hash_at(i)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_first_of_each_name_at_every_size() {
        for len in [0, 1, LINEAR_NAMES, LINEAR_NAMES + 1, 1000] {
            let names: Vec<Vec<u8>> = (0..len).map(|i| format!("n{}", i % 700).into()).collect();
            let name_of = |i: usize| names.get(i).map(Vec::as_slice);
            let first_asked_at_the_end = NameIndex::default();
            let mut asked_on_the_way = NameIndex::default();
            for id in 0..len {
                assert_eq!(asked_on_the_way.find(b"absent", id, name_of), None);
                asked_on_the_way.push(id, name_of);
            }
            for index in [&first_asked_at_the_end, &asked_on_the_way] {
                for (i, name) in names.iter().enumerate() {
                    assert_eq!(index.find(name, len, name_of), Some(i % 700));
                }
                assert_eq!(index.find(b"absent", len, name_of), None);
            }
        }
    }

    #[test]
    fn names_that_changed_are_found() {
        // Of 50 names the second list has two each, and a third one comes.
        for distinct in [100, 50] {
            let mut names: Vec<Vec<u8>> =
                (0..100).map(|i| format!("n{}", i % distinct).into()).collect();
            let mut index = NameIndex::default();
            assert_eq!(index.find(b"n7", 100, |i| names.get(i).map(Vec::as_slice)), Some(7));
            index.remove(7, |i| names.get(i).map(Vec::as_slice));
            names[7] = b"other".to_vec();
            index.push(7, |i| names.get(i).map(Vec::as_slice));
            let twin = (distinct == 50).then_some(57);
            assert_eq!(index.find(b"n7", 100, |i| names.get(i).map(Vec::as_slice)), twin);
            assert_eq!(index.find(b"other", 100, |i| names.get(i).map(Vec::as_slice)), Some(7));
        }
    }

    #[test]
    fn a_changed_name_costs_one_look_at_it() {
        // Names that were read, counted: renaming each of n read n x n of them.
        for n in [1000usize, 4000] {
            let mut names: Vec<Vec<u8>> = (0..n).map(|i| format!("n{i}").into()).collect();
            let mut index = NameIndex::default();
            let reads = std::cell::Cell::new(0usize);
            for id in 0..n {
                let new = format!("m{id}").into_bytes();
                let name_of = |i: usize| {
                    reads.set(reads.get() + 1);
                    names.get(i).map(Vec::as_slice)
                };
                assert_eq!(index.find(&new, n, name_of), None);
                index.remove(id, name_of);
                names[id] = new;
                index.push(id, |i| names.get(i).map(Vec::as_slice));
            }
            assert!(reads.get() < 20 * n, "{} reads for {n} names", reads.get());
        }
    }
}

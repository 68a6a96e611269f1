//! Finding an object by name without a map of strings: a table of ids, hashed by the names that the
//! objects hold anyway (4 bytes an entry, and none at all for short lists).
//!
//! The table is made when something is first looked up in a long list: whoever opens a file to read
//! the variables by number, or one of them, does not wait for it.

use std::hash::BuildHasher;
use std::sync::OnceLock;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Up to this many names a linear look is as fast as hashing.
const LINEAR_LIMIT: usize = 12;

/// An index of names onto positions in the list that owns them.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameIndex {
    table: OnceLock<Table>,
}

#[derive(Clone, Debug, Default)]
struct Table {
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl NameIndex {
    /// Position of `name` in a list of `len` names that `name_of` reads.
    pub(crate) fn find<'a>(
        &self,
        name: &[u8],
        len: usize,
        name_of: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Option<usize> {
        if len <= LINEAR_LIMIT {
            return (0..len).find(|&i| name_of(i) == Some(name));
        }
        let table = self.table.get_or_init(|| Table::new(len, &name_of));
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

    /// Forgets all after names changed.
    pub(crate) fn clear(&mut self) {
        self.table.take();
    }
}

impl Table {
    fn new<'a>(len: usize, name_of: &impl Fn(usize) -> Option<&'a [u8]>) -> Table {
        let mut table = Table { ids: HashTable::with_capacity(len), ..Table::default() };
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
        if self.ids.find(hash, |&i| name_of(i as usize) == Some(name)).is_none() {
            self.ids.insert_unique(hash, id, |&i| hash_at(i));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_first_of_each_name_at_every_size() {
        for len in [0, 1, LINEAR_LIMIT, LINEAR_LIMIT + 1, 1000] {
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
    fn names_that_changed_are_found_once_the_index_is_cleared() {
        let mut names: Vec<Vec<u8>> = (0..100).map(|i| format!("n{i}").into()).collect();
        let mut index = NameIndex::default();
        assert_eq!(index.find(b"n7", 100, |i| names.get(i).map(Vec::as_slice)), Some(7));
        names[7] = b"other".to_vec();
        index.clear();
        assert_eq!(index.find(b"n7", 100, |i| names.get(i).map(Vec::as_slice)), None);
        assert_eq!(index.find(b"other", 100, |i| names.get(i).map(Vec::as_slice)), Some(7));
    }
}

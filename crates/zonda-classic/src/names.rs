//! Finding an object by name without a map of strings: a table of ids, hashed by the names that the
//! objects hold anyway (4 bytes an entry, and none at all for short lists).

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Below this many names a linear look is as fast as hashing.
const LINEAR_LIMIT: usize = 12;

/// An index of names onto positions in the list that owns them.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameIndex {
    table: HashTable<u32>,
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
        if self.table.is_empty() {
            return (0..len).find(|&i| name_of(i) == Some(name));
        }
        let hash = self.hasher.hash_one(name);
        let found = self.table.find(hash, |&i| name_of(i as usize) == Some(name))?;
        Some(*found as usize)
    }

    /// Notes that the name at position `id` was appended to the list.
    pub(crate) fn push<'a>(&mut self, id: usize, name_of: impl Fn(usize) -> Option<&'a [u8]>) {
        if id < LINEAR_LIMIT {
            return;
        }
        if self.table.is_empty() {
            // The list has just outgrown linear search: all names so far go in.
            for earlier in 0..id {
                self.insert(earlier, &name_of);
            }
        }
        self.insert(id, &name_of);
    }

    fn insert<'a>(&mut self, id: usize, name_of: &impl Fn(usize) -> Option<&'a [u8]>) {
        let (Some(name), Ok(id)) = (name_of(id), u32::try_from(id)) else { return };
        let hasher = &self.hasher;
        let hash_at = |i: u32| name_of(i as usize).map_or(0, |name| hasher.hash_one(name));
        let hash = hasher.hash_one(name);
        // Of two equal names in a (damaged) file the first keeps the entry.
        if self.table.find(hash, |&i| name_of(i as usize) == Some(name)).is_none() {
            self.table.insert_unique(hash, id, |&i| hash_at(i));
        }
    }

    /// Makes the index anew after names changed.
    pub(crate) fn rebuild<'a>(&mut self, len: usize, name_of: impl Fn(usize) -> Option<&'a [u8]>) {
        self.table.clear();
        if len > LINEAR_LIMIT {
            for id in 0..len {
                self.insert(id, &name_of);
            }
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
            let mut pushed = NameIndex::default();
            (0..len).for_each(|id| pushed.push(id, name_of));
            let mut rebuilt = NameIndex::default();
            rebuilt.rebuild(len, name_of);
            for index in [&pushed, &rebuilt] {
                for (i, name) in names.iter().enumerate() {
                    assert_eq!(index.find(name, len, name_of), Some(i % 700));
                }
                assert_eq!(index.find(b"absent", len, name_of), None);
            }
        }
    }
}

//! Which chunks wait for more elements, who owns them, and which was put to longest ago. All ranks have the same ledger: it follows from the
//! puts that all made together, and from what all were told of them.

use std::collections::{BTreeMap, HashMap};

use zonda_format::{SharedChunk, VarRef};

/// A chunk that waits with its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The rank that holds it.
    pub(crate) owner: usize,
    /// The file does not have it as it is.
    pub(crate) is_dirty: bool,
    /// Bytes that it takes.
    bytes: u64,
    /// When it was put to, counted in puts to chunks.
    used: u64,
}

/// The chunks that wait.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    chunks: HashMap<SharedChunk, Waiting>,
    /// By when they were put to.
    order: BTreeMap<u64, SharedChunk>,
    n_touches: u64,
    /// Bytes that all of them take, on whichever rank.
    bytes: u64,
    /// Variables in the order in which they were first put to: chunks are stored in this order.
    vars: HashMap<VarRef, usize>,
    /// How many chunks of a variable the file does not have as they are: each get asks for it.
    n_dirty: HashMap<VarRef, usize>,
}

impl Ledger {
    pub(crate) fn get(&self, chunk: &SharedChunk) -> Option<&Waiting> {
        self.chunks.get(chunk)
    }

    /// The place of a variable among those that were put to.
    pub(crate) fn number(&mut self, var: VarRef) -> usize {
        let next = self.vars.len();
        *self.vars.entry(var).or_insert(next)
    }

    /// A chunk got elements.
    pub(crate) fn touch(&mut self, chunk: &SharedChunk, owner: usize, bytes: u64) {
        let used = self.n_touches;
        self.n_touches = used.saturating_add(1);
        self.remove(chunk);
        self.chunks.insert(chunk.clone(), Waiting { owner, is_dirty: true, bytes, used });
        self.bytes = self.bytes.saturating_add(bytes);
        *self.n_dirty.entry(chunk.var).or_insert(0) += 1;
        self.order.insert(used, chunk.clone());
    }

    /// The file has it as it is.
    pub(crate) fn clean(&mut self, chunk: &SharedChunk) {
        if let Some(waiting) = self.chunks.get_mut(chunk)
            && std::mem::replace(&mut waiting.is_dirty, false)
        {
            self.one_less_dirty(chunk.var);
        }
    }

    fn one_less_dirty(&mut self, var: VarRef) {
        if let Some(n) = self.n_dirty.get_mut(&var) {
            *n -= 1;
        }
    }

    pub(crate) fn remove(&mut self, chunk: &SharedChunk) {
        if let Some(waiting) = self.chunks.remove(chunk) {
            self.order.remove(&waiting.used);
            self.bytes = self.bytes.saturating_sub(waiting.bytes);
            if waiting.is_dirty {
                self.one_less_dirty(chunk.var);
            }
        }
    }

    /// Whether a variable has chunks that the file does not have as they are.
    pub(crate) fn is_dirty(&self, var: VarRef) -> bool {
        self.n_dirty.get(&var).is_some_and(|&n| n > 0)
    }

    /// Whether chunks of a variable wait, also those that the file has as they are.
    pub(crate) fn has_any(&self, var: VarRef) -> bool {
        self.is_dirty(var) || self.chunks.keys().any(|chunk| chunk.var == var)
    }

    /// All chunks of a variable that wait, in the order in which they are stored.
    pub(crate) fn of_var(&self, var: VarRef) -> Vec<(SharedChunk, usize)> {
        let waiting = self.chunks.iter().filter(|(chunk, _)| chunk.var == var);
        self.sorted(waiting.map(|(chunk, waiting)| (chunk.clone(), waiting.owner)).collect())
    }

    /// All chunks that the file does not have as they are, in the order in which they are stored.
    pub(crate) fn dirty(&self) -> Vec<(SharedChunk, usize)> {
        let dirty = self.chunks.iter().filter(|(_, waiting)| waiting.is_dirty);
        self.sorted(dirty.map(|(chunk, waiting)| (chunk.clone(), waiting.owner)).collect())
    }

    fn sorted(&self, mut list: Vec<(SharedChunk, usize)>) -> Vec<(SharedChunk, usize)> {
        let number = |var: VarRef| self.vars.get(&var).copied().unwrap_or(usize::MAX);
        zonda_runtime::sort::sort_by(&mut list, |(a, _), (b, _)| {
            (number(a.var), &a.key).cmp(&(number(b.var), &b.key))
        });
        list
    }

    /// Whether more than `limit` bytes wait when `more` come.
    pub(crate) fn is_more_than(&self, limit: u64, more: u64) -> bool {
        self.bytes.saturating_add(more) > limit
    }

    /// Chunks that were put to longest ago and have to go, so that the others take no more than `limit` bytes; none while all of them
    /// do not. In the order in which they are stored; who has to be stored before it goes is dirty.
    pub(crate) fn too_many(&self, limit: u64) -> Vec<(SharedChunk, usize)> {
        if self.bytes <= limit || self.chunks.len() < 2 {
            return Vec::new();
        }
        // A few at a time, for all threads to have work.
        let wanted = limit - limit / 8;
        let (mut left, mut gone) = (self.bytes, Vec::new());
        // The last one stays: it is being put.
        for chunk in self.order.values().take(self.chunks.len() - 1) {
            let Some(waiting) = self.chunks.get(chunk).filter(|_| left > wanted) else { break };
            left = left.saturating_sub(waiting.bytes);
            gone.push((chunk.clone(), waiting.owner));
        }
        self.sorted(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_model::VarId;

    fn chunk(var: i32, key: u64) -> SharedChunk {
        SharedChunk { var: VarRef::from(VarId(var)), key: vec![key] }
    }

    #[test]
    fn those_put_to_longest_ago_go() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.number(VarRef::from(VarId(9))), 0);
        assert_eq!(ledger.number(VarRef::from(VarId(3))), 1);
        for key in 0..10 {
            ledger.touch(&chunk(3, key), 0, 10);
        }
        ledger.touch(&chunk(9, 5), 1, 10);
        ledger.touch(&chunk(3, 0), 0, 10);
        assert!(ledger.too_many(110).is_empty());
        let gone = ledger.too_many(100);
        let expected: Vec<_> = (1..4).map(|key| (chunk(3, key), 0)).collect();
        assert_eq!(gone[..2], expected[..2]);
        for (chunk, _) in &gone {
            ledger.remove(chunk);
        }
        assert!(ledger.too_many(100).is_empty());
        // The newest stays, whatever the limit.
        assert!(ledger.too_many(0).iter().all(|(one, _)| *one != chunk(3, 0)));
        let dirty = ledger.dirty();
        assert_eq!(dirty[0], (chunk(9, 5), 1));
        assert!(dirty[1..].is_sorted());
        ledger.clean(&chunk(9, 5));
        assert!(!ledger.is_dirty(VarRef::from(VarId(9))));
        assert!(ledger.is_dirty(VarRef::from(VarId(3))));
        let rest: Vec<SharedChunk> = ledger.dirty().into_iter().map(|(chunk, _)| chunk).collect();
        rest.iter().for_each(|chunk| ledger.remove(chunk));
        assert!(!ledger.is_dirty(VarRef::from(VarId(3))));
        ledger.touch(&rest[0], 0, 10);
        ledger.touch(&rest[0], 0, 10);
        ledger.clean(&rest[0]);
        ledger.clean(&rest[0]);
        assert!(!ledger.is_dirty(rest[0].var) && ledger.dirty().is_empty());
    }
}

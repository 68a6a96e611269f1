//! Nodes in the order of their last use: two lists linked through one table.

/// Number of a node.
pub(crate) type NodeId = usize;

const NONE: NodeId = usize::MAX;

/// A list of nodes, oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecencyList {
    oldest: NodeId,
    newest: NodeId,
    pub len: usize,
}

impl Default for RecencyList {
    fn default() -> RecencyList {
        RecencyList { oldest: NONE, newest: NONE, len: 0 }
    }
}

impl RecencyList {
    /// The node longest unused.
    pub(crate) fn oldest(&self) -> Option<NodeId> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The node used last.
    pub(crate) fn newest(&self) -> Option<NodeId> {
        (self.newest != NONE).then_some(self.newest)
    }
}

/// Nodes, which may each be in one list.
#[derive(Debug)]
pub(crate) struct NodeTable<T> {
    nodes: Vec<ListNode<T>>,
    free: Vec<NodeId>,
}

#[derive(Debug)]
struct ListNode<T> {
    value: Option<T>,
    older: NodeId,
    newer: NodeId,
}

impl<T> Default for NodeTable<T> {
    fn default() -> NodeTable<T> {
        NodeTable { nodes: Vec::new(), free: Vec::new() }
    }
}

impl<T> NodeTable<T> {
    /// A new node, in no list.
    pub(crate) fn insert(&mut self, value: T) -> NodeId {
        let node = ListNode { value: Some(value), older: NONE, newer: NONE };
        match self.free.pop() {
            Some(id) => {
                self.nodes[id] = node;
                id
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        }
    }

    /// Takes out a node, which is in no list.
    pub(crate) fn remove(&mut self, id: NodeId) -> Option<T> {
        let value = self.nodes.get_mut(id)?.value.take();
        if value.is_some() {
            self.free.push(id);
        }
        value
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<&T> {
        self.nodes.get(id)?.value.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: NodeId) -> Option<&mut T> {
        self.nodes.get_mut(id)?.value.as_mut()
    }

    /// The node used next after this one.
    pub(crate) fn newer(&self, id: NodeId) -> Option<NodeId> {
        Some(self.nodes.get(id)?.newer).filter(|&newer| newer != NONE)
    }

    /// Puts a node that is in no list at the end of `list`, as the newest.
    pub(crate) fn link(&mut self, list: &mut RecencyList, id: NodeId) {
        let last = std::mem::replace(&mut list.newest, id);
        (self.nodes[id].older, self.nodes[id].newer) = (last, NONE);
        match self.nodes.get_mut(last) {
            Some(last) => last.newer = id,
            None => list.oldest = id,
        }
        list.len += 1;
    }

    /// Takes a node out of `list`, where it is.
    pub(crate) fn unlink(&mut self, list: &mut RecencyList, id: NodeId) {
        let (older, newer) = (self.nodes[id].older, self.nodes[id].newer);
        match self.nodes.get_mut(older) {
            Some(node) => node.newer = newer,
            None => list.oldest = newer,
        }
        match self.nodes.get_mut(newer) {
            Some(node) => node.older = older,
            None => list.newest = older,
        }
        (self.nodes[id].older, self.nodes[id].newer) = (NONE, NONE);
        list.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_the_order_of_use() {
        let mut nodes = NodeTable::default();
        let (mut list, mut other) = (RecencyList::default(), RecencyList::default());
        let ids: Vec<NodeId> = (0..4).map(|value| nodes.insert(value)).collect();
        ids.iter().for_each(|&id| nodes.link(&mut list, id));
        let order = |nodes: &NodeTable<i32>, list: &RecencyList| {
            let mut order = Vec::new();
            let mut at = list.oldest;
            while at != NONE {
                order.extend(nodes.get(at).copied());
                at = nodes.nodes[at].newer;
            }
            assert_eq!(order.len(), list.len);
            order
        };
        assert_eq!(order(&nodes, &list), [0, 1, 2, 3]);
        for id in [ids[1], ids[3], ids[0]] {
            nodes.unlink(&mut list, id);
            nodes.link(&mut list, id);
        }
        assert_eq!(order(&nodes, &list), [2, 1, 3, 0]);
        nodes.unlink(&mut list, ids[0]);
        nodes.link(&mut other, ids[0]);
        nodes.unlink(&mut list, ids[2]);
        assert_eq!(nodes.remove(ids[2]), Some(2));
        assert_eq!(nodes.remove(ids[2]), None);
        assert_eq!((order(&nodes, &list), order(&nodes, &other)), (vec![1, 3], vec![0]));
        assert_eq!(nodes.insert(7), ids[2]);
    }
}

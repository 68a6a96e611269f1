//! A tree made whole from all its records.
//!
//! There are as few nodes as hold the records, and the records of a level are spread evenly over
//! its nodes. So all nodes but a root are at least nearly half full, which is more than what other
//! writers merge at.

use std::borrow::Cow;

use super::{Layout, header_len};
use crate::{FileAddr, Fresh, HdfError, Result, Sizes, Writer};

const TREE: &str = "version 2 B-tree";

/// What the HDF5 library has in the trees of groups, attributes and heaps: bytes of a node, and
/// how full nodes are, in percent, when it splits or merges them.
const NODE_SIZE: u32 = 512;
const SPLIT_PERCENT: u8 = 100;
const MERGE_PERCENT: u8 = 40;

/// Records that stand in the nodes of one level, the others being in nodes above.
struct Plan {
    /// Nodes of the level.
    nodes: u64,
    /// Records in them: all that were left but one between each two nodes.
    records: u64,
}

impl Plan {
    /// How `records` go into as few nodes as hold them, with one record between two nodes.
    fn new(records: u64, max: u64) -> Plan {
        let nodes = records.saturating_add(1).div_ceil(max.saturating_add(1)).max(1);
        Plan { nodes, records: records.saturating_sub(nodes.saturating_sub(1)) }
    }

    /// Records of node `i`.
    fn share(&self, i: u64) -> u64 {
        let each = self.records.checked_div(self.nodes).unwrap_or(0);
        let more = self.records.checked_rem(self.nodes).unwrap_or(0);
        each.saturating_add(u64::from(i < more))
    }
}

/// A node that was written: its address, its records, and those of everything under it too.
#[derive(Clone, Copy)]
struct Child {
    addr: FileAddr,
    records: u64,
    total: u64,
}

/// Makes a tree of these records, which are one after the other in the order of the tree, and says
/// where its header is.
///
/// # Errors
/// [`HdfError::TooLarge`] for records that do not fit into nodes, or a file that would become too
/// long.
pub fn build(
    record_type: u8,
    record_len: u16,
    records: &[u8],
    sizes: Sizes,
    fresh: &mut Fresh<'_>,
) -> Result<FileAddr> {
    let too_large = |value| HdfError::TooLarge { structure: TREE, value };
    let width = usize::from(record_len);
    let all = records.len().checked_div(width).unwrap_or(0);
    let node_size = u64::from(NODE_SIZE);
    let unfit = || too_large(u64::from(record_len));
    let mut layout =
        Layout::leaf(node_size, u64::from(record_len), sizes.offset).ok_or_else(unfit)?;

    let mut plans: Vec<Plan> = Vec::new();
    let mut left = all as u64;
    let mut level = layout.levels.last().copied();
    while left > 0 {
        // Nodes with room for one record could not all have one.
        let max = level.map(|level| level.max_records).filter(|&max| max > 1).ok_or_else(unfit)?;
        let plan = Plan::new(left, max);
        left = plan.nodes.saturating_sub(1);
        plans.push(plan);
        if left > 0 {
            level = layout.grow();
        }
    }

    // One run of space for everything: the nodes from the leaves up, then the header.
    let nodes = plans.iter().map(|plan| plan.nodes).fold(0, u64::saturating_add);
    let header_at = nodes.checked_mul(node_size).ok_or_else(|| too_large(nodes))?;
    let whole_len = header_at.saturating_add(header_len(sizes));
    let start = fresh.space().alloc(whole_len)?;
    let mut out = Vec::with_capacity(usize::try_from(whole_len).unwrap_or(0));

    let mut children: Vec<Child> = Vec::new();
    // The records of this level and those above, one after the other.
    let mut here = Cow::Borrowed(records);
    for (level, plan) in plans.iter().enumerate() {
        let below = level.checked_sub(1).and_then(|below| layout.levels.get(below)).copied();
        let (mut records, mut pointers) = (&*here, children.iter());
        let (mut above, mut made) = (Vec::new(), Vec::new());
        for i in 0..plan.nodes {
            let count = plan.share(i);
            let count_usize = usize::try_from(count).unwrap_or(usize::MAX);
            let mut node = Writer::new(TREE, sizes);
            node.put(if below.is_none() { b"BTLF" } else { b"BTIN" }).u8(0).u8(record_type);
            node.put(take(&mut records, count_usize.saturating_mul(width)));
            let mut total = count;
            if let Some(below) = below {
                for child in pointers.by_ref().take(count_usize.saturating_add(1)) {
                    node.addr(Some(child.addr))?.uint(child.records, byte(layout.count_width))?;
                    // Leaves have no total but the records they have.
                    if below.total_width > 0 {
                        node.uint(child.total, byte(below.total_width))?;
                    }
                    total = total.saturating_add(child.total);
                }
            }
            above.extend_from_slice(take(&mut records, width));
            let addr = FileAddr(start.0.saturating_add(out.len() as u64));
            made.push(Child { addr, records: count, total });
            out.extend(node.finish_checked());
            out.resize(out.len().next_multiple_of(NODE_SIZE as usize), 0);
        }
        (here, children) = (Cow::Owned(above), made);
    }

    let root = children.first().copied();
    let depth = plans.len().saturating_sub(1);
    let mut header = Writer::new(TREE, sizes);
    header.put(b"BTHD").u8(0).u8(record_type).u32(NODE_SIZE).u16(record_len);
    header.uint(depth as u64, 2)?.u8(SPLIT_PERCENT).u8(MERGE_PERCENT);
    header.addr(root.map(|root| root.addr))?.uint(root.map_or(0, |root| root.records), 2)?;
    header.length(root.map_or(0, |root| root.total))?;
    out.extend(header.finish_checked());
    fresh.put_at(start, out);
    Ok(FileAddr(start.0.saturating_add(header_at)))
}

/// The next `len` bytes, or what is left.
fn take<'a>(bytes: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (head, rest) = bytes.split_at_checked(len).unwrap_or((bytes, &[]));
    *bytes = rest;
    head
}

/// A width of at most 8 bytes.
fn byte(width: usize) -> u8 {
    u8::try_from(width).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::BtreeV2;
    use super::*;
    use crate::File;
    use crate::built::written;

    const KIND: u8 = 6;

    /// A tree of the numbers from 0 on.
    fn tree(count: u64, record_len: u16, sizes: Sizes) -> (File, BtreeV2) {
        let width = usize::from(record_len);
        let mut records = Vec::new();
        for i in 0..count {
            let at = records.len() + width;
            records.extend(i.to_le_bytes());
            records.resize(at, 0xa5);
        }
        let (file, addr) =
            written(sizes, |fresh| build(KIND, record_len, &records, sizes, fresh).unwrap());
        let tree = BtreeV2::open(&file, addr, KIND).unwrap();
        (file, tree)
    }

    fn number(record: &[u8]) -> u64 {
        u64::from_le_bytes(record[..8].try_into().unwrap())
    }

    /// The least share of a node's records that any node but the root has, in percent.
    fn least_fill(file: &File, tree: &BtreeV2) -> u64 {
        let mut least = 100;
        let mut nodes = vec![(tree.root().unwrap(), tree.depth())];
        while let Some((node, level)) = nodes.pop() {
            if level < tree.depth() {
                let max = tree.layout.levels[level].max_records;
                assert!(node.records <= max);
                least = least.min(100 * node.records / max);
            }
            let len = tree.node_len(node, level).unwrap();
            let bytes = file.read("node", node.addr, len).unwrap();
            let children = tree.decode_node(file, node, level, bytes).unwrap().children;
            nodes.extend(children.into_iter().map(|child| (child, level - 1)));
        }
        least
    }

    #[test]
    fn trees_of_any_number_of_records() {
        let mut depths = Vec::new();
        // Leaves of 45 records, nodes of 24 above them, of 22 in all levels above those.
        let counts = (0..200).chain([1149, 1150, 1151, 26_000, 26_449, 26_450, 608_349, 608_350]);
        for count in counts {
            let (file, tree) = tree(count, 11, Sizes::EIGHT);
            assert_eq!((tree.len(), tree.record_len()), (count, 11));
            let mut next = 0;
            tree.walk(&file, &mut |record| {
                assert_eq!(
                    (number(record), record[8..].iter().all(|&byte| byte == 0xa5)),
                    (next, true)
                );
                next += 1;
                Ok(true)
            })
            .unwrap();
            assert_eq!(next, count);
            for wanted in [0, 1, count / 2, count.saturating_sub(1), count] {
                let found =
                    tree.find(&file, &mut |record| Ok(number(record).cmp(&wanted))).unwrap();
                assert_eq!(found.is_some(), wanted < count, "{wanted} of {count}");
            }
            if count > 0 {
                assert!(least_fill(&file, &tree) >= u64::from(MERGE_PERCENT), "{count}");
            }
            if depths.last() != Some(&tree.depth()) {
                depths.push(tree.depth());
            }
        }
        assert_eq!(depths, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_level_more_only_where_it_must_be() {
        for (count, depth) in [(45, 0), (46, 1), (1149, 1), (1150, 2)] {
            assert_eq!(tree(count, 11, Sizes::EIGHT).1.depth(), depth, "{count}");
        }
    }

    #[test]
    fn other_records_and_widths() {
        for record_len in [8, 13, 15, 17, 24, 100, 200] {
            let (file, tree) = tree(5000, record_len, Sizes { offset: 4, length: 2 });
            let mut count = 0;
            tree.walk(&file, &mut |record| {
                assert_eq!(number(record), count);
                count += 1;
                Ok(true)
            })
            .unwrap();
            assert_eq!(count, 5000);
        }
        let mut space = crate::Space::new(0);
        let mut fresh = Fresh::new(&mut space);
        for (record_len, count) in [(503, 1), (300, 2), (240, 5)] {
            let records = vec![0; record_len * count];
            let made = build(KIND, record_len as u16, &records, Sizes::EIGHT, &mut fresh);
            assert!(matches!(made, Err(HdfError::TooLarge { .. })), "{record_len}");
        }
    }

    #[test]
    fn extents_are_what_was_taken() {
        for count in [0, 1, 45, 46, 26_450] {
            let (file, tree) = tree(count, 11, Sizes::EIGHT);
            let mut extents = tree.extents(&file).unwrap();
            extents.sort();
            let mut end = 64;
            for (addr, len) in extents {
                assert_eq!(addr.0, end);
                end += len;
            }
            assert_eq!(end, file.len());
        }
    }
}

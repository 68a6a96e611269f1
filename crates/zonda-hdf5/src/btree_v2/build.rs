//! A tree that is written whole from all its records.

use super::record_tree::{RecordTree, TreeRecord};
use crate::{FileAddr, NewBlocks, Result, Sizes, Writer};

/// A record in encoded form.
#[derive(Clone)]
struct RawRecord<'a>(&'a [u8]);

impl TreeRecord for RawRecord<'_> {
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.put(self.0);
        Ok(())
    }
}

/// Writes a tree of these records, which are one after the other in the order of the tree, and
/// gives the address of its header.
///
/// # Errors
/// [`HdfError::TooLarge`](crate::HdfError::TooLarge) for records that do not fit into nodes, or a file
/// that would become too long.
pub fn build(
    record_type: u8,
    record_len: u16,
    records: &[u8],
    sizes: Sizes,
    fresh: &mut NewBlocks<'_>,
) -> Result<FileAddr> {
    let width = usize::from(record_len).max(1);
    let records = records.chunks_exact(width).map(RawRecord).collect();
    RecordTree::of(record_type, record_len, sizes, records)?.write(fresh, &mut Vec::new())
}

#[cfg(test)]
mod tests {
    use super::super::{BtreeV2, MERGE_PERCENT};
    use super::*;
    use crate::built_file::written;
    use crate::{File, HdfError};

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
        let mut fresh = NewBlocks::new(&mut space);
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

use super::*;
use crate::btree_v1::{self, BtreeV1Node};
use crate::message::{Charset, kind};
use crate::object_header::{HeaderSpace, HeaderStyle, NewMessage, encode_header, first_chunk_len};
use crate::symbol_table::symbol_table_extents;
use crate::{File, ReadLimits, Sizes, Space, Writer};

fn link(name: &str, target: LinkTarget) -> Link {
    Link { name: name.as_bytes().into(), charset: Charset::Ascii, creation_order: None, target }
}

/// Links not in the order of their names, each fifth one soft.
fn some_links(count: u64) -> Vec<Link> {
    let new = |i: u64| {
        let number = i * 7919 % count.max(1);
        let target = match number % 5 {
            0 => LinkTarget::Soft(format!("/where/{number}/is").into_bytes().into()),
            _ => LinkTarget::Hard(FileAddr(number)),
        };
        link(&format!("name {number}"), target)
    };
    (0..count).map(new).collect()
}

/// The superblock of a bare file.
fn superblock(sizes: Sizes, [leaf, internal]: [u16; 2]) -> Superblock {
    let superblock = File::bare(crate::testing::storage(&[]), sizes, ReadLimits::default());
    let (group_leaf_k, group_internal_k) = (leaf, internal);
    Superblock { group_leaf_k, group_internal_k, ..superblock.superblock().clone() }
}

/// Where written structures begin.
const FIRST: u64 = 64;

/// A file with a group of these links: the group's header, its message, the end of its table.
fn write(links: &[Link], superblock: &Superblock) -> Result<(File, FileAddr, SymbolTableMessage)> {
    let mut space = Space::new(FIRST);
    let mut fresh = NewBlocks::new(&mut space);
    let table = write_symbol_table(links, superblock, &mut fresh)?;
    let mut body = Writer::new("test", superblock.sizes);
    table.encode(&mut body)?;
    let (kind, body) = (kind::SYMBOL_TABLE, body.finish().into());
    let messages = [NewMessage { kind, flags: 0, creation_order: None, body }];
    let style = HeaderStyle { version: 1, ..HeaderStyle::default() };
    let len = first_chunk_len(&style, &messages);
    let header = HeaderSpace { addr: fresh.space().alloc(len)?, len };
    let mut none = |_| panic!("one block");
    let bytes = encode_header(&style, &messages, &header, superblock.sizes, &mut none)?.first;
    fresh.put_at(header.addr, bytes);
    let storage = crate::testing::storage(&[]);
    fresh.write(&File::bare(storage.clone(), superblock.sizes, ReadLimits::default()))?;
    let file = File::bare_with(storage, superblock.clone(), ReadLimits::default());
    Ok((file, header.addr, table))
}

/// The levels of a tree from the leaves up, in the order of the neighbours: the addresses, the
/// numbers of children, first and last keys.
fn levels(file: &File, table: &SymbolTableMessage) -> Vec<Vec<(FileAddr, usize, u64, u64)>> {
    let key_len = usize::from(file.sizes().length);
    let mut first = table.btree;
    let mut out = Vec::new();
    loop {
        let mut level = Vec::new();
        let mut next = Some(first);
        let mut left = None;
        let mut below = None;
        while let Some(addr) = next {
            let node = BtreeV1Node::read(file, addr, NodeType::Group, None, key_len).unwrap();
            let bytes = file.read("node", addr, 8 + 8).unwrap();
            let width = usize::from(file.sizes().offset);
            let mut stored = [0; 8];
            stored[..width].copy_from_slice(&bytes[8..8 + width]);
            let none = u64::MAX >> (64 - 8 * width);
            assert_eq!(u64::from_le_bytes(stored), left.map_or(none, |addr: FileAddr| addr.0));
            let key = |i| node.key(i).unwrap().length().unwrap();
            level.push((addr, node.len(), key(0), key(node.len())));
            if below.is_none() && node.level() > 0 {
                below = Some(node.child(0).unwrap());
            }
            (left, next) = (Some(addr), node.right());
        }
        out.push(level);
        match below {
            Some(below) => first = below,
            None => break,
        }
    }
    out.reverse();
    out
}

fn check(count: u64, sizes: Sizes, k: [u16; 2]) -> usize {
    let superblock = superblock(sizes, k);
    let links = some_links(count);
    let (file, group, table) = write(&links, &superblock).unwrap();
    let group = file.object(group).unwrap();
    let mut sorted = links.clone();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(group.links(&file).unwrap(), sorted);
    for link in links.iter().step_by(97).chain(sorted.first()).chain(sorted.last()) {
        assert_eq!(group.link(&file, &link.name).unwrap().as_ref(), Some(link));
    }
    assert_eq!(group.link(&file, b"name").unwrap(), None);
    assert_eq!(group.link(&file, b"zzz").unwrap(), None);

    // Nodes as full as they can be, keys that go on where those to the left end.
    let levels = levels(&file, &table);
    let [leaf, internal] = k.map(|k| u64::from(k) * 2);
    let mut n_children = count.div_ceil(leaf);
    for level in &levels {
        assert_eq!(level.len() as u64, n_children.div_ceil(internal).max(1));
        let counts = level.iter().map(|(_, count, ..)| *count as u64);
        assert_eq!(counts.clone().sum::<u64>(), n_children);
        assert!(counts.clone().max().unwrap() - counts.min().unwrap() <= 1);
        assert_eq!(level[0].2, 0, "the least name is the empty one");
        assert!(level.windows(2).all(|pair| pair[0].3 == pair[1].2));
        n_children = level.len() as u64;
    }
    assert_eq!(levels.last().unwrap().len(), 1);

    // All that was taken, but the header of the group, belongs to the table.
    let mut end = FIRST;
    for (addr, len) in symbol_table_extents(&file, &table).unwrap() {
        assert_eq!(addr.0, end.next_multiple_of(8));
        end = addr.0 + len;
    }
    assert_eq!(end.next_multiple_of(8), group.addr().0);
    levels.len()
}

#[test]
fn tables_of_all_sizes() {
    let default = |count| check(count, Sizes::EIGHT, [4, 16]);
    let depths = [0, 1, 7, 8, 9, 17, 256, 257, 300, 8192, 8193, 10_000].map(default);
    assert_eq!(depths, [1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3]);
    assert_eq!(check(1000, Sizes::EIGHT, [1, 1]), 9);
    assert_eq!(check(1000, Sizes::EIGHT, [500, 1]), 1);
    // Where the numbers of entries do not fit into two bytes.
    assert_eq!(check(3, Sizes::EIGHT, [u16::MAX, u16::MAX]), 1);
}

#[test]
fn narrow_addresses() {
    for (offset, length) in [(4, 4), (4, 8), (8, 4), (2, 4)] {
        check(300, Sizes { offset, length }, [4, 16]);
    }
    let superblock = superblock(Sizes { offset: 2, length: 2 }, [4, 16]);
    assert!(matches!(write(&some_links(3000), &superblock), Err(HdfError::TooLarge { .. })));
}

#[test]
fn what_no_symbol_table_can_have() {
    let hard = || LinkTarget::Hard(FileAddr(8));
    let text = |text: &[u8]| text.into();
    let refused = [
        vec![link("a", hard()), link("b", hard()), link("a", LinkTarget::Soft(text(b"/")))],
        vec![link("a", LinkTarget::External { file: text(b"f"), path: text(b"/") })],
        vec![link("a", LinkTarget::UserDefined { kind: 65, data: text(b"") })],
        vec![link("a\0b", hard())],
        vec![link("", hard())],
        vec![link("a", LinkTarget::Soft(text(b"/b\0c")))],
        vec![link("a", LinkTarget::Soft(text(b"")))],
    ];
    for links in refused {
        let error = write(&links, &superblock(Sizes::EIGHT, [4, 16])).unwrap_err();
        assert!(matches!(error, HdfError::Unsupported { .. }), "{links:?}: {error}");
    }
}

#[test]
fn extents_of_damaged_tables_are_errors() {
    let superblock = superblock(Sizes::EIGHT, [4, 16]);
    let (file, _, table) = write(&some_links(300), &superblock).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
    file.storage().read_at(0, &mut bytes).unwrap();
    let extents = |bytes: &[u8], table: &SymbolTableMessage| {
        let storage = crate::testing::storage(bytes);
        let file = File::bare_with(storage, superblock.clone(), ReadLimits::default());
        symbol_table_extents(&file, table)
    };
    assert!(extents(&bytes, &table).is_ok());
    // The first entries of the root, which is of level 1.
    let root = usize::try_from(table.btree.0).unwrap();
    let [first, second] = [root + 32, root + 48];
    let child = |at: usize| bytes[at..at + 8].to_vec();
    let with = |at: usize, new: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        extents(&bytes, &table).unwrap_err()
    };
    assert!(matches!(with(second, &child(first)), HdfError::BadValue { .. }), "one child twice");
    assert!(
        matches!(with(first, &table.btree.0.to_le_bytes()), HdfError::BadValue { .. }),
        "itself"
    );
    assert!(matches!(with(first, &[0xff; 8]), HdfError::Missing { .. }), "no child");
    let cut = &bytes[..root + 500];
    let (file, what) = (extents(cut, &table), "a node without the end of its space");
    assert!(matches!(file, Err(HdfError::OutOfFile { .. })), "{what}");
    let other = SymbolTableMessage { heap: table.btree, ..table };
    assert!(matches!(extents(&bytes, &other), Err(HdfError::BadSignature { .. })));
    // More children than a node has room for would lead behind its end.
    assert!(matches!(with(root + 6, &33u16.to_le_bytes()), HdfError::BadValue { .. }));
}

#[test]
fn branches_that_are_shared_end_in_an_error() {
    // Each level refers to the one below 32 times.
    let superblock = superblock(Sizes::EIGHT, [4, 16]);
    let shape = shape(&superblock);
    let mut space = Space::new(FIRST);
    let mut fresh = NewBlocks::new(&mut space);
    let (heap, bytes) =
        NewLocalHeap::new(Sizes::EIGHT).encode(|len| fresh.space().alloc(len)).unwrap();
    fresh.put_at(heap, bytes);
    let mut below = fresh.put(encode_node(&[], &superblock).unwrap()).unwrap();
    for level in 0..30 {
        let entries = |writer: &mut Writer| {
            for _ in 0..32 {
                writer.length(0)?.addr(Some(below))?;
            }
            writer.length(0)?;
            Ok(())
        };
        below = fresh.put(shape.encode(level, 32, [None; 2], entries).unwrap()).unwrap();
    }
    let storage = crate::testing::storage(&[]);
    fresh.write(&File::bare(storage.clone(), Sizes::EIGHT, ReadLimits::default())).unwrap();
    let file = File::bare_with(storage, superblock, ReadLimits::default());
    let table = SymbolTableMessage { btree: below, heap };
    let error = symbol_table_extents(&file, &table).unwrap_err();
    assert!(matches!(error, HdfError::Limit { .. }), "{error}");
    let error = btree_v1::walk(&file, below, NodeType::Group, 8, &mut |_, _| Ok(true)).unwrap_err();
    assert!(matches!(error, HdfError::Limit { .. }), "{error}");
}

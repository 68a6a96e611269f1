//! Objects of a damaged file that no group leads to any more, found by their bytes.
//!
//! The search goes from the first byte of the file to its last. Headers of version 2 have a
//! signature and a checksum, so what looks like one is one. Headers of version 1 have neither: they
//! are found through the nodes of symbol tables that name them, and headers of datasets by messages
//! that all make sense. Names are in the groups alone: in link messages, which may be in any block
//! or heap, and in symbol tables with their heaps. A link message is recognised by its target: the
//! address of an object that was found, behind a name.
//!
//! The search also finds old copies that a writer left behind when it wrote a group or an object
//! anew: of several names of an object the last one in the file counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::local_heap::LocalHeap;
use crate::message::{Link, LinkTarget};
use crate::symbol_table::{self, EntryTarget};
use crate::tuning::{SALVAGE_LINK_BYTES, SALVAGE_MARKS, SALVAGE_READ_BYTES};
use crate::{File, FileAddr, Object, ObjectKind, Reader, Result};

/// Bytes before the messages of an object header of version 1.
const OLD_PREFIX: usize = 16;
/// An object that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundObject {
    /// Its header.
    pub addr: FileAddr,
    /// The name that some group has, or had, for it.
    pub name: Option<Box<[u8]>>,
}

/// Searches a file for objects besides those in `known`, in the order of their addresses.
///
/// # Errors
/// What the storage reports.
pub fn find_objects(file: &File, known: &dyn Fn(FileAddr) -> bool) -> Result<Vec<FoundObject>> {
    let mut marks = SignatureMarks::default();
    each_window(file, OLD_PREFIX, &mut |at, bytes| {
        for (i, prefix) in bytes.windows(OLD_PREFIX).enumerate() {
            if is_old_prefix(prefix) && marks.old.len() < SALVAGE_MARKS {
                marks.old.push(FileAddr(at.saturating_add(i as u64)));
            }
        }
        for (i, four) in bytes.windows(4).enumerate() {
            let addr = FileAddr(at.saturating_add(i as u64));
            let list = match four {
                b"OHDR" => &mut marks.headers,
                b"SNOD" => &mut marks.nodes,
                b"HEAP" => &mut marks.heaps,
                _ => continue,
            };
            if list.len() < SALVAGE_MARKS {
                list.push(addr);
            }
        }
    })?;
    let mut names: BTreeMap<FileAddr, Option<Box<[u8]>>> = BTreeMap::new();
    for addr in marks.headers.iter().copied().filter(|addr| !known(*addr)) {
        names.insert(addr, None);
    }
    from_symbol_tables(file, &marks, known, &mut names);
    for addr in marks.old.iter().copied().filter(|addr| !known(*addr)) {
        if !names.contains_key(&addr) && is_old_dataset(file, addr) {
            names.insert(addr, None);
        }
    }
    // A header that cannot be read is no object.
    names.retain(|addr, _| file.object(*addr).is_ok_and(|object| is_something(&object)));
    from_link_messages(file, &mut names)?;
    Ok(names.into_iter().map(|(addr, name)| FoundObject { addr, name }).collect())
}

/// Whether these bytes may be the prefix of an object header of version 1: the version, the number of
/// messages, that of links, and the length of the messages, with zeros between and behind.
fn is_old_prefix(prefix: &[u8]) -> bool {
    let [1, 0, n, m, c, d, 0, 0, s, t, u, 0, 0, 0, 0, 0] = *prefix else { return false };
    let n_messages = u16::from_le_bytes([n, m]);
    let len = u32::from_le_bytes([s, t, u, 0]);
    (1..=4096).contains(&n_messages) && c.max(d) > 0 && len >= 16 && len.is_multiple_of(8)
}

/// Whether the header of a dataset in version 1 is at an address. It has no signature, so all
/// messages that a dataset needs have to decode.
fn is_old_dataset(file: &File, addr: FileAddr) -> bool {
    file.object(addr).is_ok_and(|object| {
        object.header().version == 1
            && object.dataspace(file).is_ok()
            && object.datatype(file).is_ok()
            && object.layout(file).is_ok()
    })
}

/// Whether a group can have an object; the superblock extension is none.
fn is_something(object: &Object) -> bool {
    object.kind() != ObjectKind::Unknown
}

/// Where signatures are.
#[derive(Default)]
struct SignatureMarks {
    headers: Vec<FileAddr>,
    /// What may be headers of version 1.
    old: Vec<FileAddr>,
    nodes: Vec<FileAddr>,
    heaps: Vec<FileAddr>,
}

/// Gives the bytes of a file to `visit` window by window. Each window goes on for `overlap` bytes
/// into the next one. Addresses are relative to the base address.
fn each_window(file: &File, overlap: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<()> {
    let end = file.len().saturating_sub(file.position(FileAddr(0)));
    let mut at = 0u64;
    while at < end {
        let len =
            (SALVAGE_READ_BYTES as u64).saturating_add(overlap as u64).min(end.saturating_sub(at));
        let bytes = file.read("file", FileAddr(at), len)?;
        visit(at, &bytes);
        at = at.saturating_add(SALVAGE_READ_BYTES as u64);
    }
    Ok(())
}

/// Takes the objects, and their names, of the nodes of symbol tables.
fn from_symbol_tables(
    file: &File,
    marks: &SignatureMarks,
    known: &dyn Fn(FileAddr) -> bool,
    names: &mut BTreeMap<FileAddr, Option<Box<[u8]>>>,
) {
    let heaps: Vec<(FileAddr, LocalHeap)> = marks
        .heaps
        .iter()
        .filter_map(|addr| Some((*addr, LocalHeap::read(file, *addr).ok()?)))
        .collect();
    for addr in &marks.nodes {
        let Ok((entries, _)) = symbol_table::read_node_left(file, *addr) else { continue };
        // The heap that has a name for each entry; of several the one nearest to the node.
        let has_all = |heap: &&(FileAddr, LocalHeap)| {
            entries.iter().all(|entry| is_name(heap.1.name(entry.name).unwrap_or_default()))
        };
        let heap = heaps.iter().filter(has_all).min_by_key(|heap| heap.0.0.abs_diff(addr.0));
        for entry in &entries {
            let EntryTarget::Object(object) = entry.target else { continue };
            if known(object) {
                continue;
            }
            let name = heap.and_then(|(_, heap)| heap.name(entry.name).ok());
            let known = names.entry(object).or_default();
            if let Some(name) = name {
                *known = Some(name.into());
            }
        }
    }
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.iter().any(|byte| matches!(byte, b'/' | 0..=0x1f | 0x7f))
}

/// Looks for link messages that lead to objects without a name.
fn from_link_messages(
    file: &File,
    names: &mut BTreeMap<FileAddr, Option<Box<[u8]>>>,
) -> Result<()> {
    let mut wanted: BTreeSet<FileAddr> = BTreeSet::new();
    wanted.extend(names.iter().filter(|(_, name)| name.is_none()).map(|(addr, _)| *addr));
    if wanted.is_empty() {
        return Ok(());
    }
    let sizes = file.sizes();
    each_window(file, SALVAGE_LINK_BYTES, &mut |at, bytes| {
        for (i, pair) in bytes.windows(2).enumerate() {
            // The version, and flags of a hard link.
            let [1, flags] = *pair else { continue };
            if flags & !0x1f != 0 {
                continue;
            }
            let message = bytes.get(i..).unwrap_or_default();
            let message = message.get(..SALVAGE_LINK_BYTES).unwrap_or(message);
            let at = at.saturating_add(i as u64);
            let Ok(link) = Link::decode(Reader::new("link message", message, at, sizes)) else {
                continue;
            };
            if let LinkTarget::Hard(object) = link.target
                && wanted.contains(&object)
                && is_name(&link.name)
            {
                names.insert(object, Some(link.name));
            }
        }
    })
}

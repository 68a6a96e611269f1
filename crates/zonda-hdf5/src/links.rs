//! The links of a group, whichever way it stores them, and the paths that lead through them.
//! Spec: HDF5 File Format, "Disk Format: Level 0C" and "The Link Info Message", "The Link Message",
//! "The Symbol Table Message".
//! Three ways: a symbol table (a version 1 B-tree over symbol table nodes, names in a local heap),
//! link messages in the header, and a fractal heap with version 2 B-trees over it ("dense").
//! Watch: ".." has no meaning in a path, "." has.

use std::cmp::Ordering;

use crate::btree_v1::{self, BtreeV1Node, NodeType};
use crate::btree_v2::{BtreeV2, record_type};
use crate::checksum::lookup3;
use crate::fractal_heap::FractalHeap;
use crate::local_heap::LocalHeap;
use crate::message::{Charset, Link, LinkInfo, LinkTarget, SymbolTableMessage, kind};
use crate::symbol_table::{self, EntryTarget, SymbolTableEntry};
use crate::traversal_budget::TraversalBudget;
use crate::tuning::{GROUP_FAULTS, PATH_FILE_LENGTHS, REMOTE_READ_BYTES};
use crate::{File, FileAddr, HdfError, Object, Result};

mod dense;

pub use dense::{dense_extents, write_dense};

const GROUP: &str = "group";
const PATH: &str = "path";

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolvedLink {
    /// To an object of this file.
    Object(FileAddr),
    /// Nowhere: there is no such link, a soft link that leads nowhere is on the way, or an object
    /// that is no group.
    NotThere,
    /// Into another file.
    External {
        /// The file, as the link names it.
        file: Box<[u8]>,
        /// The path in it, with what was left of the path that was asked for.
        path: Box<[u8]>,
    },
    /// To a link that only the writer's program understands.
    Unknown,
}

/// How a group stores its links.
enum LinkStorage {
    SymbolTable { btree: FileAddr, heap: FileAddr },
    Messages,
    Dense { heap: FileAddr, names: FileAddr },
}

/// A heap and the tree over it that knows the links' names.
struct DenseLinks {
    heap: FractalHeap,
    names: BtreeV2,
}

impl DenseLinks {
    /// Opens them for a walk over all of them.
    fn open_all(file: &File, heap: FileAddr, names: FileAddr) -> Result<DenseLinks> {
        crate::dense::fetch(file, heap, names, record_type::LINK_NAME)?;
        DenseLinks::open(file, heap, names)
    }

    fn open(file: &File, heap: FileAddr, names: FileAddr) -> Result<DenseLinks> {
        Ok(DenseLinks {
            heap: FractalHeap::open(file, heap)?,
            names: BtreeV2::open(file, names, record_type::LINK_NAME)?,
        })
    }

    /// The link that a record of the tree stands for, its bytes taken from `budget`.
    fn link(&self, file: &File, record: &[u8], budget: &mut TraversalBudget) -> Result<Link> {
        let mut reader = self.names.reader(file, record);
        let _hash = reader.u32()?;
        self.heap.look_at(file, reader.take(self.heap.id_len())?, |bytes| {
            budget.spend(GROUP, self.heap.addr(), bytes.len() as u64)?;
            // The bytes have no address of their own: blocks may be filtered.
            Link::decode(self.names.reader(file, bytes))
        })
    }
}

/// The links of a damaged group that can be read, and what is wrong with the others.
#[derive(Default)]
struct SalvagedLinks {
    links: Vec<Link>,
    faults: Vec<HdfError>,
}

impl SalvagedLinks {
    fn take(&mut self, link: Result<Link>) {
        match link {
            Ok(link) => self.links.push(link),
            Err(error) => self.faults.push(error),
        }
    }

    /// Takes the links of a symbol table, from each node of its tree that can be read.
    fn table(&mut self, file: &File, btree: FileAddr, heap: FileAddr) {
        self.faults.extend(fetch_table(file, btree, heap).err());
        let names = match LocalHeap::read(file, heap) {
            Ok(names) => Some(names),
            Err(error) => {
                self.faults.push(error);
                None
            }
        };
        let key_len = usize::from(file.sizes().length);
        let mut budget = TraversalBudget::of(file);
        let mut inner = Vec::new();
        match btree_v1::read_root(file, btree, NodeType::Group, key_len) {
            Ok(root) => inner.push(root),
            Err(error) => self.faults.push(error),
        }
        while let Some(node) = inner.pop().filter(|_| self.faults.len() < GROUP_FAULTS) {
            for i in 0..node.len() {
                let read = node.child(i).and_then(|addr| {
                    budget.spend(GROUP, addr, node_space(&node))?;
                    match node.level().checked_sub(1) {
                        Some(below) => inner.push(BtreeV1Node::read(
                            file,
                            addr,
                            NodeType::Group,
                            Some(below),
                            key_len,
                        )?),
                        None => self.entries(file, names.as_ref(), addr)?,
                    }
                    Ok(())
                });
                self.faults.extend(read.err());
            }
        }
    }

    fn entries(&mut self, file: &File, names: Option<&LocalHeap>, addr: FileAddr) -> Result<()> {
        let (entries, cut) = symbol_table::read_node_left(file, addr)?;
        self.faults.extend(cut);
        for entry in entries {
            let named = names.map(|names| entry_link(names, &entry));
            let unnamed = match entry.target {
                EntryTarget::Object(object) => Some(unnamed_link(object)),
                EntryTarget::Soft(_) => None,
            };
            match (named, unnamed) {
                (Some(Ok(link)), _) => self.links.push(link),
                (Some(Err(error)), unnamed) => {
                    self.faults.push(error);
                    self.links.extend(unnamed);
                }
                (None, unnamed) => self.links.extend(unnamed),
            }
        }
        Ok(())
    }
}

/// Has the symbol table of a group in a remote file come, level by level. Does nothing where a read is a system call.
///
/// # Errors
/// What the storage reports.
fn fetch_table(file: &File, btree: FileAddr, heap: FileAddr) -> Result<()> {
    if !file.is_remote() {
        return Ok(());
    }
    file.will_read([(btree, REMOTE_READ_BYTES), (heap, REMOTE_READ_BYTES)]);
    let key_len = usize::from(file.sizes().length);
    let len = symbol_table::usual_len(file);
    let nodes = btree_v1::fetch_levels(file, btree, NodeType::Group, key_len, len);
    let names = LocalHeap::read(file, heap).map(|_| ());
    HdfError::of_storage(nodes)?;
    HdfError::of_storage(names)
}

/// What a node of a group's tree takes from the budget, in bytes: no more than the node is long.
fn node_space(node: &BtreeV1Node) -> u64 {
    node.len().max(1) as u64
}

/// A link to an object whose name is lost.
#[must_use]
pub fn unnamed_link(object: FileAddr) -> Link {
    Link {
        name: format!("object_at_{}", object.0).into_bytes().into(),
        charset: Charset::Ascii,
        creation_order: None,
        target: LinkTarget::Hard(object),
    }
}

/// The link that an entry of a symbol table stands for.
fn entry_link(names: &LocalHeap, entry: &SymbolTableEntry) -> Result<Link> {
    let target = match entry.target {
        EntryTarget::Object(object) => LinkTarget::Hard(object),
        EntryTarget::Soft(path) => LinkTarget::Soft(names.name(path)?.into()),
    };
    let name = names.name(entry.name)?.into();
    Ok(Link { name, charset: Charset::Ascii, creation_order: None, target })
}

impl Object {
    fn link_storage(&self, file: &File) -> Result<LinkStorage> {
        if let Some(info) = self.link_info(file)? {
            return match (info.heap, info.name_index) {
                (None, _) => Ok(LinkStorage::Messages),
                (Some(heap), Some(names)) => Ok(LinkStorage::Dense { heap, names }),
                (Some(_), None) => Err(HdfError::Missing {
                    structure: GROUP,
                    at: file.position(self.addr()),
                    what: "the index of names",
                }),
            };
        }
        let Some(message) = self.header().find(kind::SYMBOL_TABLE) else {
            return Ok(LinkStorage::Messages);
        };
        let table = SymbolTableMessage::decode(self.body(file, message)?.reader(file))?;
        Ok(LinkStorage::SymbolTable { btree: table.btree, heap: table.heap })
    }

    fn link_info(&self, file: &File) -> Result<Option<LinkInfo>> {
        let Some(message) = self.header().find(kind::LINK_INFO) else { return Ok(None) };
        LinkInfo::decode(self.body(file, message)?.reader(file)).map(Some)
    }

    /// Gives each link message of the header to `visit`, until it says `false`.
    fn link_messages(&self, file: &File, visit: &mut dyn FnMut(Link) -> bool) -> Result<()> {
        for message in self.header().all(kind::LINK) {
            if !visit(Link::decode(self.body(file, message)?.reader(file))?) {
                break;
            }
        }
        Ok(())
    }

    /// Whether the group keeps the order in which its links were made.
    ///
    /// # Errors
    /// A damaged message.
    pub fn tracks_creation_order(&self, file: &File) -> Result<bool> {
        Ok(self.link_info(file)?.is_some_and(|info| info.tracked))
    }

    /// All links of a group: in the order in which they were made where the group keeps that, else
    /// in the order of the bytes of their names. An object that is no group has none.
    ///
    /// # Errors
    /// Damage anywhere in the group's storage.
    pub fn links(&self, file: &File) -> Result<Vec<Link>> {
        let mut links = Vec::new();
        match self.link_storage(file)? {
            LinkStorage::Messages => self.link_messages(file, &mut |link| {
                links.push(link);
                true
            })?,
            LinkStorage::SymbolTable { btree, heap } => {
                fetch_table(file, btree, heap)?;
                let names = LocalHeap::read(file, heap)?;
                let key_len = usize::from(file.sizes().length);
                let mut budget = TraversalBudget::of(file);
                btree_v1::walk(file, btree, NodeType::Group, key_len, &mut |node, i| {
                    let addr = node.child(i)?;
                    let entries = symbol_table::read_node(file, addr)?;
                    budget.spend(GROUP, addr, symbol_table::node_len(file, entries.len()))?;
                    for entry in &entries {
                        let link = entry_link(&names, entry)?;
                        budget.spend(GROUP, addr, link.name.len() as u64)?;
                        if let LinkTarget::Soft(path) = &link.target {
                            budget.spend(GROUP, addr, path.len() as u64)?;
                        }
                        links.push(link);
                    }
                    Ok(true)
                })?;
            }
            LinkStorage::Dense { heap, names } => {
                let dense = DenseLinks::open_all(file, heap, names)?;
                let mut budget = dense.heap.budget(file);
                dense.names.walk(file, &mut |record| {
                    links.push(dense.link(file, record, &mut budget)?);
                    Ok(true)
                })?;
            }
        }
        if self.tracks_creation_order(file)? {
            zonda_runtime::sort::sort_by(&mut links, |a, b| {
                (a.creation_order, &a.name).cmp(&(b.creation_order, &b.name))
            });
        } else {
            zonda_runtime::sort::sort_by(&mut links, |a, b| a.name.cmp(&b.name));
        }
        Ok(links)
    }

    /// The links of a group that can be read, where the group is damaged, and what is wrong with the
    /// others. A link in a symbol table whose name is lost has the name `object_at_` and the address
    /// of its object.
    ///
    /// # Errors
    /// What the storage reports.
    pub fn links_with_faults(&self, file: &File) -> Result<(Vec<Link>, Vec<HdfError>)> {
        let mut salvaged = SalvagedLinks::default();
        match self.link_storage(file) {
            Err(error) => salvaged.faults.push(error),
            Ok(LinkStorage::Messages) => {
                for message in self.header().all(kind::LINK) {
                    let body = self.body(file, message);
                    salvaged.take(body.and_then(|body| Link::decode(body.reader(file))));
                }
            }
            Ok(LinkStorage::SymbolTable { btree, heap }) => salvaged.table(file, btree, heap),
            Ok(LinkStorage::Dense { heap, names }) => match DenseLinks::open_all(file, heap, names)
            {
                Err(error) => salvaged.faults.push(error),
                Ok(dense) => {
                    let mut budget = dense.heap.budget(file);
                    let walked = dense.names.walk(file, &mut |record| {
                        salvaged.take(dense.link(file, record, &mut budget));
                        Ok(salvaged.faults.len() < GROUP_FAULTS)
                    });
                    salvaged.faults.extend(walked.err());
                }
            },
        }
        if let Some(storage) = salvaged.faults.iter().find(|e| matches!(e, HdfError::Storage(_))) {
            return Err(storage.clone());
        }
        let tracked = self.tracks_creation_order(file).unwrap_or(false);
        let rank = |link: &Link| if tracked { link.creation_order } else { None };
        zonda_runtime::sort::sort_by(&mut salvaged.links, |a, b| {
            (rank(a), &a.name).cmp(&(rank(b), &b.name))
        });
        Ok((salvaged.links, salvaged.faults))
    }

    /// The link of this name, found without listing the group.
    ///
    /// # Errors
    /// Damage on the way to it.
    pub fn link(&self, file: &File, name: &[u8]) -> Result<Option<Link>> {
        match self.link_storage(file)? {
            LinkStorage::Messages => {
                let mut found = None;
                self.link_messages(file, &mut |link| {
                    if *link.name == *name {
                        found = Some(link);
                    }
                    found.is_none()
                })?;
                Ok(found)
            }
            LinkStorage::SymbolTable { btree, heap } => {
                let names = LocalHeap::read(file, heap)?;
                let found = find_entry(file, btree, &names, name)?;
                found.map(|(_, _, entry)| entry_link(&names, &entry)).transpose()
            }
            LinkStorage::Dense { heap, names } => {
                let dense = DenseLinks::open(file, heap, names)?;
                let hash = lookup3(name, 0);
                let mut found = None;
                let mut budget = dense.heap.budget(file);
                dense.names.find(file, &mut |record| {
                    let stored = dense.names.reader(file, record).u32()?;
                    if stored != hash {
                        return Ok(stored.cmp(&hash));
                    }
                    let link = dense.link(file, record, &mut budget)?;
                    let order = (*link.name).cmp(name);
                    if order == Ordering::Equal {
                        found = Some(link);
                    }
                    Ok(order)
                })?;
                Ok(found)
            }
        }
    }
}

/// Descends to the one symbol table node that can hold the name. Gives the address of the node, the
/// index of the entry in it, and the entry.
fn find_entry(
    file: &File,
    btree: FileAddr,
    names: &LocalHeap,
    name: &[u8],
) -> Result<Option<(FileAddr, usize, SymbolTableEntry)>> {
    let key_len = usize::from(file.sizes().length);
    let mut node = btree_v1::read_root(file, btree, NodeType::Group, key_len)?;
    loop {
        // Child i holds the names after key i up to and including key i + 1, so it is the first
        // whose last name is not before this one.
        let (mut low, mut high) = (0, node.len());
        while low < high {
            let middle = low.midpoint(high);
            let last = node.key(middle.saturating_add(1))?.length()?;
            if names.name(last)? < name {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        if low == node.len() {
            return Ok(None);
        }
        let child = node.child(low)?;
        let Some(below) = node.level().checked_sub(1) else {
            for (i, entry) in symbol_table::read_node(file, child)?.into_iter().enumerate() {
                if names.name(entry.name)? == name {
                    return Ok(Some((child, i, entry)));
                }
            }
            return Ok(None);
        };
        node = BtreeV1Node::read(file, child, NodeType::Group, Some(below), key_len)?;
    }
}

/// What to write over the entry of the group `name` so that the entry caches no symbol table any
/// more: address and bytes. A caller that moves the symbol table of that group needs it. `None`
/// where the entry caches none, or where there is no such name.
///
/// Libraries do not look at the cache, other programs do.
///
/// # Errors
/// Damage on the way to the entry.
pub fn uncache_entry(
    file: &File,
    table: &SymbolTableMessage,
    name: &[u8],
) -> Result<Option<(FileAddr, Vec<u8>)>> {
    let names = LocalHeap::read(file, table.heap)?;
    let Some((node, i, _)) = find_entry(file, table.btree, &names, name)? else { return Ok(None) };
    let (at, len) = symbol_table::cache_at(file.sizes(), i);
    let at = FileAddr(node.0.saturating_add(at));
    let cache = file.read(GROUP, at, len)?;
    Ok(cache.starts_with(&symbol_table::CACHED_TABLE).then(|| (at, vec![0; cache.len()])))
}

impl File {
    /// Follows a path from the group at `base`, or from the root group where it begins with "/".
    ///
    /// # Errors
    /// Damage on the way; [`HdfError::Limit`] for more soft links than
    /// [`link_hops`](crate::Limits::link_hops).
    pub fn resolve(&self, base: FileAddr, path: &[u8]) -> Result<ResolvedLink> {
        let mut at = if path.starts_with(b"/") { self.root() } else { base };
        // Components still to be followed, the next one last.
        let mut pending = Vec::new();
        push_components(&mut pending, path);
        let mut hops = 0usize;
        // A path may come by the same group more than once, but not for ever.
        let mut budget = TraversalBudget::times(self, PATH_FILE_LENGTHS);
        while let Some(component) = pending.pop() {
            let group = self.object(at)?;
            budget.spend(PATH, at, group.header().bytes.len().max(64) as u64)?;
            let Some(link) = group.link(self, &component)? else {
                return Ok(ResolvedLink::NotThere);
            };
            match link.target {
                LinkTarget::Hard(object) => at = object,
                LinkTarget::Soft(to) => {
                    let limit = self.limits().link_hops;
                    hops = hops.saturating_add(1);
                    if hops > limit {
                        let (structure, what) = (PATH, "soft links");
                        let limit = limit as u64;
                        return Err(HdfError::Limit { structure, at: at.0, what, limit });
                    }
                    if to.starts_with(b"/") {
                        at = self.root();
                    }
                    push_components(&mut pending, &to);
                }
                LinkTarget::External { file, path } => {
                    let mut path = path.into_vec();
                    for component in pending.iter().rev() {
                        path.push(b'/');
                        path.extend_from_slice(component);
                    }
                    return Ok(ResolvedLink::External { file, path: path.into() });
                }
                LinkTarget::UserDefined { .. } => return Ok(ResolvedLink::Unknown),
            }
        }
        Ok(ResolvedLink::Object(at))
    }
}

/// Puts the components of a path before those that are pending.
fn push_components(pending: &mut Vec<Box<[u8]>>, path: &[u8]) {
    let components = path.split(|&byte| byte == b'/');
    let components = components.filter(|component| !component.is_empty() && *component != b".");
    pending.extend(components.rev().map(Box::from));
}

#[cfg(test)]
mod tests;

//! The walk over a file's objects.

use std::sync::Arc;

use hashbrown::HashSet;
use zonda_storage::Storage;

use super::{ExtentKind, FileUsage, UsedExtent};
use crate::attributes;
use crate::btree_v1::{self, BtreeV1Node, NodeType};
use crate::btree_v2::{BtreeV2, record_type};
use crate::fractal_heap::FractalHeap;
use crate::fractal_heap::extents::free_space_extents;
use crate::links;
use crate::message::{
    AttributeInfo, CacheImageMessage, ExternalFilesMessage, LinkInfo, LinkTarget,
    SymbolTableMessage, decode, kind,
};
use crate::sohm::{SharedMessages, SharedRecord};
use crate::symbol_table;
use crate::traversal_budget::TraversalBudget;
use crate::tuning::USAGE_ROUNDS;
use crate::{
    File, FileAddr, FileRange, Message, Object, ObjectHeader, ObjectKind, Rehearsal, Result,
};

const LOCAL_HEAP: &str = "local heap";
const DRIVER: &str = "driver information block";

/// Whether no reader decodes a message, so that nothing but this walk notices that it is damaged.
fn nobody_needs(message: &Message) -> bool {
    const UNNEEDED: [u16; 5] = [
        kind::GROUP_INFO,
        kind::COMMENT,
        kind::MODIFICATION_TIME,
        kind::OLD_MODIFICATION_TIME,
        kind::REFERENCE_COUNT,
    ];
    !message.is_shared() && UNNEEDED.contains(&message.kind)
}

/// Has all that the walk looks at in a remote file come, level by level ([`Rehearsal`]). Does nothing where a read is a system call, and says nothing of
/// what is wrong: the walk does.
pub(super) fn fetch(file: &File) {
    let Some(rehearsal) = Rehearsal::on(file.storage()) else { return };
    for _ in 0..USAGE_ROUNDS {
        let before = rehearsal.n_misses();
        let storage: Arc<dyn Storage> = Arc::clone(&rehearsal) as Arc<dyn Storage>;
        // What the walk meets that is not here is a fault of its object, and the others are walked on.
        if let Ok(rehearsed) = File::open(storage) {
            UsageWalk::new(&Arc::new(rehearsed)).whole_file();
        }
        if rehearsal.n_misses() == before || !rehearsal.fetch() {
            return;
        }
    }
}

pub(super) struct UsageWalk<'a> {
    pub(super) file: &'a Arc<File>,
    pub(super) usage: FileUsage,
    seen: HashSet<FileAddr>,
    pending: Vec<FileAddr>,
}

impl<'a> UsageWalk<'a> {
    pub(super) fn new(file: &'a Arc<File>) -> UsageWalk<'a> {
        let usage = FileUsage { file_bytes: file.len(), ..FileUsage::default() };
        UsageWalk { file, usage, seen: HashSet::new(), pending: Vec::new() }
    }

    pub(super) fn whole_file(&mut self) {
        self.file_level();
        self.visit_later(self.file.root());
        while let Some(addr) = self.pending.pop() {
            match self.file.object(addr) {
                Ok(object) => self.object(&object),
                Err(error) => self.usage.fault(Some(addr), error),
            }
        }
    }

    fn visit_later(&mut self, addr: FileAddr) {
        if self.seen.insert(addr) {
            self.pending.push(addr);
        }
    }

    pub(super) fn claim(
        &mut self,
        kind: ExtentKind,
        owner: Option<FileAddr>,
        addr: FileAddr,
        len: u64,
    ) {
        let at = self.file.position(addr);
        self.usage.claim(UsedExtent { at, len, kind, owner });
    }

    fn claim_all(
        &mut self,
        kind: ExtentKind,
        owner: Option<FileAddr>,
        found: Result<Vec<FileRange>>,
    ) {
        match found {
            Ok(found) => {
                found.into_iter().for_each(|(addr, len)| self.claim(kind, owner, addr, len));
            }
            Err(error) => self.usage.fault(owner, error),
        }
    }

    /// Claims the structures that belong to no object.
    fn file_level(&mut self) {
        for error in self.file.faults() {
            self.usage.fault(None, error.clone());
        }
        let superblock = self.file.superblock();
        let (base, version) = (superblock.base, superblock.version);
        let offset = u64::from(superblock.sizes.offset);
        let len = match version {
            // Four addresses and the entry of the root group.
            0 | 1 => offset.saturating_mul(6).saturating_add(48).saturating_add(if version == 1 {
                4
            } else {
                0
            }),
            _ => offset.saturating_mul(4).saturating_add(16),
        };
        let user_block = UsedExtent { at: 0, len: base, kind: ExtentKind::UserBlock, owner: None };
        self.usage.claim(user_block);
        self.claim(ExtentKind::Superblock, None, FileAddr(0), len);
        if let Some(addr) = superblock.driver_info {
            let driver = self.driver_info(addr);
            self.claim_all(ExtentKind::Superblock, None, driver);
        }
        if let Some(addr) = superblock.extension {
            match ObjectHeader::read(self.file, addr) {
                Ok(header) => self.extension(&header),
                Err(error) => self.usage.fault(None, error),
            }
        }
        if let Some(table) = self.file.shared_message_table() {
            let found = self.shared_messages(table.addr, table.n_indexes);
            self.claim_all(ExtentKind::SharedMessages, None, found);
        }
        let managers = self.file.file_space_info().map(|info| info.managers.clone());
        for addr in managers.into_iter().flatten().flatten() {
            let mut found = Vec::new();
            let read = free_space_extents(self.file, addr, &mut found).map(|()| found);
            self.claim_all(ExtentKind::FreeSpace, None, read);
        }
    }

    fn extension(&mut self, header: &ObjectHeader) {
        self.header(header, None);
        if let Some(message) = header.find(kind::CACHE_IMAGE) {
            match CacheImageMessage::decode(header.reader(self.file.sizes(), message)) {
                Ok(CacheImageMessage { addr: Some(addr), len }) => {
                    self.claim(ExtentKind::CacheImage, None, addr, len);
                }
                Ok(_) => {}
                Err(error) => self.usage.fault(None, error),
            }
        }
    }

    fn driver_info(&self, addr: FileAddr) -> Result<Vec<FileRange>> {
        let bytes = self.file.read(DRIVER, addr, 16)?;
        let mut reader = self.file.reader(DRIVER, addr, &bytes);
        reader.skip(4)?;
        let len = u64::from(reader.u32()?);
        Ok(vec![(addr, len.saturating_add(16))])
    }

    fn shared_messages(&self, addr: FileAddr, n_indexes: u8) -> Result<Vec<FileRange>> {
        let file = self.file;
        let entry = u64::from(file.sizes().offset).saturating_mul(2).saturating_add(14);
        let len = u64::from(n_indexes).saturating_mul(entry).saturating_add(8);
        let mut out = vec![(addr, len)];
        for index in SharedMessages::read(file, addr, n_indexes)?.indexes() {
            if let Some(list) = index.index.filter(|_| !index.is_btree) {
                let record = SharedRecord::encoded_len(file.sizes()) as u64;
                let records = record.saturating_mul(u64::from(index.list_max));
                out.push((list, records.saturating_add(8)));
            } else if let Some(tree) = index.index {
                let tree = BtreeV2::open(file, tree, record_type::SHARED_MESSAGE)?;
                out.extend(tree.extents(file)?);
            }
            if let Some(heap) = index.heap {
                out.extend(FractalHeap::open(file, heap)?.extents(file)?);
            }
        }
        Ok(out)
    }

    fn header(&mut self, header: &ObjectHeader, owner: Option<FileAddr>) {
        for message in header.messages.iter().filter(|message| nobody_needs(message)) {
            let reader = header.reader(self.file.sizes(), message);
            if let Err(error) = decode(message.kind, reader, self.file.limits()) {
                self.usage.fault(owner, error);
            }
        }
        let space = header.space();
        self.claim(ExtentKind::ObjectHeader, owner, space.addr, space.len);
        let blocks: Vec<_> = header.continuations(self.file.sizes()).collect();
        self.claim_all(ExtentKind::ObjectHeader, owner, Ok(blocks));
    }

    fn object(&mut self, object: &Object) {
        let owner = Some(object.addr());
        self.header(object.header(), owner);
        if let Some(message) = object.header().find(kind::ATTRIBUTE_INFO) {
            let body = object.body(self.file, message);
            let info = body.and_then(|body| AttributeInfo::decode(body.reader(self.file)));
            let found = info.and_then(|info| attributes::dense_extents(self.file, &info));
            self.claim_all(ExtentKind::Attributes, owner, found);
        }
        match object.kind() {
            ObjectKind::Group => self.group(object),
            ObjectKind::Dataset => {
                self.dataset(object);
                if let Some(message) = object.header().find(kind::EXTERNAL_FILES) {
                    let body = object.body(self.file, message);
                    let found = body
                        .and_then(|body| ExternalFilesMessage::decode(body.reader(self.file)))
                        .and_then(|message| self.local_heap(message.heap));
                    self.claim_all(ExtentKind::ExternalNames, owner, found);
                }
                match object.committed_type(self.file) {
                    Ok(Some(addr)) => self.visit_later(addr),
                    Ok(None) => {}
                    Err(error) => self.usage.fault(owner, error),
                }
            }
            ObjectKind::Datatype | ObjectKind::Unknown => {}
        }
    }

    fn group(&mut self, object: &Object) {
        let owner = Some(object.addr());
        if let Some(message) = object.header().find(kind::LINK_INFO) {
            let body = object.body(self.file, message);
            let info = body.and_then(|body| LinkInfo::decode(body.reader(self.file)));
            let found = info.and_then(|info| links::dense_extents(self.file, &info));
            self.claim_all(ExtentKind::Links, owner, found);
        } else if let Some(message) = object.header().find(kind::SYMBOL_TABLE) {
            let body = object.body(self.file, message);
            let table = body.and_then(|body| SymbolTableMessage::decode(body.reader(self.file)));
            let found = table.and_then(|table| self.symbol_table(&table));
            self.claim_all(ExtentKind::Links, owner, found);
        }
        match object.links(self.file) {
            Ok(links) => {
                for link in links {
                    if let LinkTarget::Hard(addr) = link.target {
                        self.visit_later(addr);
                    }
                }
            }
            Err(error) => self.usage.fault(owner, error),
        }
    }

    fn symbol_table(&self, table: &SymbolTableMessage) -> Result<Vec<FileRange>> {
        let superblock = self.file.superblock();
        let key_len = usize::from(self.file.sizes().length);
        let k = superblock.group_internal_k;
        let mut out = self.nodes(table.btree, NodeType::Group, key_len, k)?;
        let entries = usize::from(superblock.group_leaf_k).saturating_mul(2);
        let node_len = symbol_table::node_len(self.file, entries);
        btree_v1::walk(self.file, table.btree, NodeType::Group, key_len, &mut |node, i| {
            out.push((node.child(i)?, node_len));
            Ok(true)
        })?;
        out.extend(self.local_heap(table.heap)?);
        Ok(out)
    }

    /// The nodes of a version 1 B-tree. A node takes the bytes of 2K children, however many it has.
    pub(super) fn nodes(
        &self,
        root: FileAddr,
        node_type: NodeType,
        key_len: usize,
        k: u16,
    ) -> Result<Vec<FileRange>> {
        let offset = u64::from(self.file.sizes().offset);
        let children = u64::from(k).saturating_mul(2);
        let len = (key_len as u64)
            .saturating_add(offset)
            .saturating_mul(children)
            .saturating_add(key_len as u64)
            .saturating_add(offset.saturating_mul(2))
            .saturating_add(8);
        let mut out = vec![(root, len)];
        let mut budget = TraversalBudget::of(self.file);
        let top = btree_v1::read_root(self.file, root, node_type, key_len)?;
        let mut inner = vec![top];
        while let Some(node) = inner.pop().filter(|node| node.level() > 0) {
            for i in 0..node.len() {
                let child = node.child(i)?;
                budget.spend("version 1 B-tree node", child, len)?;
                out.push((child, len));
                // Leaves refer to no nodes.
                let below = node.level().saturating_sub(1);
                if below > 0 {
                    inner.push(BtreeV1Node::read(
                        self.file,
                        child,
                        node_type,
                        Some(below),
                        key_len,
                    )?);
                }
            }
        }
        Ok(out)
    }

    /// Header and data of a local heap.
    fn local_heap(&self, addr: FileAddr) -> Result<Vec<FileRange>> {
        let sizes = self.file.sizes();
        let lengths = u64::from(sizes.length).saturating_mul(2);
        let len = lengths.saturating_add(u64::from(sizes.offset)).saturating_add(8);
        let bytes = self.file.read(LOCAL_HEAP, addr, len)?;
        let mut reader = self.file.reader(LOCAL_HEAP, addr, &bytes);
        reader.signature(*b"HEAP")?;
        reader.skip(4)?;
        let data_len = reader.length()?;
        let _free = reader.length()?;
        Ok(vec![(addr, len), (reader.defined_addr("data segment")?, data_len)])
    }
}

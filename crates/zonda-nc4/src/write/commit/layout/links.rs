//! Links of a group that a commit writes: in its header, in a heap outside of it, or in a symbol table.

use zonda_hdf5::message::{Link, LinkInfo, LinkTarget, SymbolTableMessage, kind};
use zonda_hdf5::object_header::NewMessage;
use zonda_hdf5::symbol_table::write_symbol_table;
use zonda_hdf5::{FileAddr, NewBlocks, Writer, links};

use super::{CommitLayout, hash_of};
use crate::fault::HdfResult;
use crate::files::ObjectAt;
use crate::model::GroupId;
use crate::write::links::LinkEntry;
use crate::write::objects::{Dense, Outside, StoredObject};
use crate::write::{ObjectKey, header};

/// Stands for a symbol table whose place is not known yet.
const NO_SYMBOLS: SymbolTableMessage = SymbolTableMessage { btree: FileAddr(0), heap: FileAddr(0) };

impl CommitLayout<'_> {
    /// Adds the links of a group to its messages, or writes them outside of the header, and adds the message about
    /// them.
    pub(super) fn links(
        &mut self,
        id: GroupId,
        stored: &StoredObject,
        dense: Option<&mut Vec<Dense>>,
        out: &mut Vec<NewMessage>,
    ) -> HdfResult<()> {
        let is_same = !self.names.contains_key(&id);
        let before =
            stored.dense.iter().find(|dense| !matches!(dense.what, Outside::Attributes(_)));
        let stays = |before: &&Dense| {
            is_same && !self.writing.commits.tidying.contains(&ObjectKey::Group(id))
                || before.extents().is_empty()
        };
        if let Some(before) = before.filter(stays) {
            out.insert(0, self.link_message(&before.what)?);
            dense.into_iter().for_each(|dense| dense.push(before.clone()));
            return Ok(());
        }
        let entries = self.names.get(&id).or_else(|| self.writing.stored.links.get(&id));
        let entries = entries.map_or(&[][..], |entries| entries);
        let info = stored.link_info();
        let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
        let info = LinkInfo { max_creation_index: info.tracked.then_some(count), ..info };
        let link = |(order, entry): (i64, &LinkEntry)| Link {
            name: entry.name.clone(),
            charset: entry.charset,
            creation_order: info.tracked.then_some(order),
            target: self.target(entry),
        };
        let list: Vec<_> = (0..).zip(entries).map(link).collect();
        let mut what = Outside::Links(info);
        if stored.has_symbols {
            what = Outside::Symbols(NO_SYMBOLS);
        } else if list.len() <= usize::from(header::PHASE_CHANGE.0) {
            for link in &list {
                out.push(header::link(link, self.sizes)?);
            }
            out.insert(0, self.link_message(&what)?);
            return Ok(());
        }
        if let Some(dense) = dense {
            let mut bytes = Writer::new("links", self.sizes);
            list.iter().try_for_each(|link| link.encode(&mut bytes))?;
            let hash = Some(hash_of(bytes.bytes()));
            let moves = self.writing.commits.tidying.contains(&ObjectKey::Group(id));
            let laid_out = match before.filter(|before| before.hash == hash && !moves) {
                Some(before) => before.clone(),
                None => self.write_links(&list, what, hash)?,
            };
            what = laid_out.what.clone();
            dense.push(laid_out);
        }
        out.insert(0, self.link_message(&what)?);
        Ok(())
    }

    /// Writes the links of a group outside of its header: into a symbol table, or a heap and its trees.
    fn write_links(
        &mut self,
        links: &[Link],
        what: Outside,
        hash: Option<u64>,
    ) -> HdfResult<Dense> {
        let mut fresh = NewBlocks::new(&mut self.writing.space);
        let what = match what {
            Outside::Symbols(_) => {
                let superblock = self.file.superblock();
                Outside::Symbols(write_symbol_table(links, superblock, &mut fresh)?)
            }
            Outside::Links(info) => {
                Outside::Links(links::write_dense(links, &info, self.sizes, &mut fresh)?)
            }
            what @ Outside::Attributes(_) => what,
        };
        let blocks = fresh.into_blocks();
        let extents = self.out.take(blocks);
        Ok(Dense { hash, what, extents, list: None })
    }

    /// The message of a header about links or attributes outside of it.
    fn link_message(&self, what: &Outside) -> HdfResult<NewMessage> {
        match what {
            Outside::Symbols(table) => header::symbol_table(table, self.sizes),
            Outside::Links(info) => header::link_info(info, self.sizes),
            Outside::Attributes(info) => header::attribute_info(info, self.sizes),
        }
    }

    /// The target of a link.
    fn target(&self, entry: &LinkEntry) -> LinkTarget {
        let places = &self.places.0;
        let now = entry.key.and_then(|key| {
            let stored = self.writing.stored.objects.get(&key).map(|stored| stored.space.addr);
            places.get(&key).copied().or(stored)
        });
        match (&entry.target, now) {
            (None | Some(LinkTarget::Hard(_)), Some(addr)) => LinkTarget::Hard(addr),
            (Some(target), _) => target.clone(),
            // Before places are known, only the length of the link counts.
            (None, None) => LinkTarget::Hard(FileAddr(0)),
        }
    }

    /// Updates the other places that may name a group's symbol table: the superblock names that of the root group, and
    /// goes on to do so; the entry of a group in the one above may name its table, and then does not any more.
    pub(super) fn symbols_elsewhere(
        &mut self,
        id: GroupId,
        stored: &StoredObject,
    ) -> HdfResult<()> {
        let table = stored.dense.iter().find_map(|dense| match &dense.what {
            Outside::Symbols(table) if dense.hash.is_some() => Some(table),
            _ => None,
        });
        let Some(table) = table else { return Ok(()) };
        let switch = match self.model.group(id).and_then(|group| Some((group, group.parent?))) {
            Some((group, parent)) => self.entry_above(parent, &group.name)?,
            None => {
                let superblock = self.file.superblock();
                let cache = superblock.encode_root_cache(table)?;
                cache.map(|(at, bytes)| (FileAddr(at.saturating_sub(superblock.base)), bytes))
            }
        };
        let switches = &mut self.out.decided.switches;
        switches.extend(switch.map(|(addr, bytes)| (addr, bytes.into())));
        Ok(())
    }

    /// The bytes that remove the symbol table of a group from its entry in the group above; `None` where that does not
    /// name it.
    fn entry_above(&self, above: GroupId, name: &[u8]) -> HdfResult<Option<(FileAddr, Vec<u8>)>> {
        let above = self.model.group(above).map(|group| group.at);
        let Some(at) = above.filter(|at| *at != ObjectAt::NOWHERE) else { return Ok(None) };
        let object = self.file.object(at.addr)?;
        let Some(message) = object.header().find(kind::SYMBOL_TABLE) else { return Ok(None) };
        let table = object.header().reader(self.sizes, message);
        links::uncache_entry(self.file, &SymbolTableMessage::decode(table)?, name)
    }
}

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

/// A symbol table before it is known where it is.
const NO_SYMBOLS: SymbolTableMessage = SymbolTableMessage { btree: FileAddr(0), heap: FileAddr(0) };

impl CommitLayout<'_> {
    /// The links of a group and what is said of them.
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

    /// What the header of a group says of its links.
    fn link_message(&self, what: &Outside) -> HdfResult<NewMessage> {
        match what {
            Outside::Symbols(table) => header::symbol_table(table, self.sizes),
            Outside::Links(info) => header::link_info(info, self.sizes),
            Outside::Attributes(info) => header::attribute_info(info, self.sizes),
        }
    }

    /// What a name stands for.
    fn target(&self, entry: &LinkEntry) -> LinkTarget {
        let places = &self.places.0;
        let now = entry.key.and_then(|key| {
            let stored = self.writing.stored.objects.get(&key).map(|stored| stored.space.addr);
            places.get(&key).copied().or(stored)
        });
        match (&entry.target, now) {
            (None | Some(LinkTarget::Hard(_)), Some(addr)) => LinkTarget::Hard(addr),
            (Some(target), _) => target.clone(),
            // While places are looked for, only lengths count.
            (None, None) => LinkTarget::Hard(FileAddr(0)),
        }
    }

    /// Where a group's symbol table is may be said elsewhere, too: that of the root group by the
    /// superblock, which goes on to do so; that of another one by its entry in the group above, which
    /// then says nothing of it.
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

    /// What makes the entry of a group in the one above say nothing of its symbol table.
    fn entry_above(&self, above: GroupId, name: &[u8]) -> HdfResult<Option<(FileAddr, Vec<u8>)>> {
        let above = self.model.group(above).map(|group| group.at);
        let Some(at) = above.filter(|at| *at != ObjectAt::NOWHERE) else { return Ok(None) };
        let object = self.file.object(at.addr)?;
        let Some(message) = object.header().find(kind::SYMBOL_TABLE) else { return Ok(None) };
        let table = object.header().reader(self.sizes, message);
        links::uncache_entry(self.file, &SymbolTableMessage::decode(table)?, name)
    }
}

//! Commits: what was defined and put becomes what a reader finds, whatever happens meanwhile.
//!
//! Everything new goes to fresh space first, then the superblock says how long the file is, then the
//! first blocks of the headers that changed are written over, each by one write within a sector.
//! Nothing that the last commit refers to is written over before. All is laid out in memory before
//! the first byte is written; from then on a commit is decided, and what an error stops the next
//! commit completes.

mod plan;

use std::sync::Arc;

use hashbrown::HashMap;
use zonda_hdf5::global_heap::HeapId;
use zonda_hdf5::message::{AttributeInfo, Link, LinkInfo, LinkTarget};
use zonda_hdf5::object_header::{HeaderSpace, NewMessage, encode_header, first_chunk_len};
use zonda_hdf5::space::SECTOR;
use zonda_hdf5::{File, FileAddr, HdfError, Sizes, Writer};
use zonda_storage::WriteRange;

use self::plan::{Made, Plan};
use super::define::owned;
use super::links::Entry;
use super::objects::{AttMessage, Block};
use super::scales::User;
use super::{ObjectKey, Writing, header, scales};
use crate::attribute::AttList;
use crate::file::{Nc4File, hdf};
use crate::files::{Files, ObjectAt};
use crate::hidden;
use crate::model::{GroupId, Model};
use crate::{Nc4Error, Result};

/// A commit that is laid out, and perhaps written in part.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// What goes to fresh space.
    blocks: Vec<(FileAddr, Vec<u8>)>,
    /// First blocks of headers that change.
    switches: Vec<(FileAddr, Box<[u8]>)>,
    /// There is no superblock yet.
    is_first: bool,
}

/// Bytes of the first block of a header that is not one block.
const SPLIT_LEN: u64 = 256;
/// Least bytes of a first block.
const LEAST_LEN: u64 = 128;

impl Nc4File {
    /// Writes what the file lacks.
    pub(crate) fn commit(&mut self) -> Result<()> {
        self.settle()?;
        let Nc4File { files, model, writing: Some(writing), .. } = self else {
            return Ok(());
        };
        let Some(model) = model.get_mut() else { return Ok(()) };
        let file = Arc::clone(files.main());
        complete(&file, writing)?;
        if !writing.changed.is_empty() || writing.is_new {
            decide(files, &file, model, writing)?;
            complete(&file, writing)?;
        }
        Ok(file.storage().sync().map_err(|error| root_error(error.into()))?)
    }
}

/// An error that concerns the whole file.
fn root_error(error: HdfError) -> Nc4Error {
    hdf(String::from("/"), error)
}

/// Lays a commit out.
fn decide(files: &Files, file: &Arc<File>, model: &mut Model, writing: &mut Writing) -> Result<()> {
    let plan = Plan::make(files, model, writing)?;
    let mut layout = Layout {
        file,
        sizes: file.sizes(),
        decided: Decided::default(),
        model,
        places: Places::default(),
        writing,
        freed: Vec::new(),
    };
    layout.run(plan).map_err(root_error)?;
    let Layout { mut decided, freed, .. } = layout;
    for (addr, len) in freed {
        writing.space.free(addr, len);
    }
    decided.is_first = writing.is_new;
    writing.decided = Some(decided);
    for key in std::mem::take(&mut writing.changed) {
        attributes_are_laid_out(model, key);
    }
    writing.is_new = false;
    publish(model, writing);
    Ok(())
}

/// The attributes of an object are in the file in the order in which they were laid out.
fn attributes_are_laid_out(model: &mut Model, key: ObjectKey) {
    let details = match key {
        ObjectKey::Group(id) => model.group_mut(id).map(|group| &mut group.details),
        ObjectKey::Var(group, id) => model.var_mut(group, id).map(|var| &mut var.details),
        ObjectKey::Scale(_) | ObjectKey::Type(_) => None,
    };
    if let Some(Ok(AttList::Edited(list))) = details.and_then(owned).map(|of| &mut of.atts) {
        list.stored();
    }
}

/// Writes a commit that is laid out, in whole, whatever was written of it before.
fn complete(file: &File, writing: &mut Writing) -> Result<()> {
    if writing.decided.is_some() {
        finish(file, writing).map_err(root_error)?;
        writing.decided = None;
        writing.space.committed();
    }
    Ok(())
}

fn finish(file: &File, writing: &mut Writing) -> Laid<()> {
    let Writing { decided, heap, space, end, .. } = writing;
    let storage = file.storage();
    heap.commit(file, space)?;
    let Some(decided) = decided else { return Ok(()) };
    decided.blocks.sort_unstable_by_key(|(addr, _)| *addr);
    let blocks = decided.blocks.iter();
    let ranges = blocks.map(|(addr, data)| WriteRange { at: file.position(*addr), data });
    let ranges: Vec<_> = ranges.collect();
    storage.write_ranges(&ranges)?;
    let len = file.position(FileAddr(space.end()));
    if storage.len()? < len {
        storage.set_len(len)?;
    }
    storage.barrier()?;
    if decided.is_first || space.end() > *end {
        file.write_superblock(space.end())?;
        storage.barrier()?;
        *end = space.end();
    }
    for (addr, bytes) in &decided.switches {
        storage.write_at(file.position(*addr), bytes)?;
    }
    file.forget();
    Ok(())
}

/// Says in the model where objects are.
fn publish(model: &mut Model, writing: &Writing) {
    let at = |key: &ObjectKey| {
        let stored = writing.objects.get(key)?;
        Some(ObjectAt { file: 0, addr: stored.space.addr })
    };
    for (id, group) in (0u16..).map(GroupId).zip(&mut model.groups) {
        if let Some(at) = at(&ObjectKey::Group(id)) {
            group.at = at;
            if let Some(details) = owned(&mut group.details) {
                details.at = at;
            }
        }
        for (var_id, var) in (0..).map(zonda_model::VarId).zip(&mut group.vars) {
            if let Some(at) = at(&ObjectKey::Var(id, var_id)) {
                var.at = at;
                if let Some(details) = owned(&mut var.details) {
                    details.at = at;
                }
            }
        }
    }
    for (id, key) in &writing.scales.of_dim {
        let index = usize::try_from(id.0).unwrap_or(usize::MAX);
        if let (Some(at), Some(Some(dim))) = (at(key), model.dims.get_mut(index)) {
            dim.at = Some(at);
        }
    }
}

/// A commit while it is laid out.
struct Layout<'a> {
    file: &'a Arc<File>,
    sizes: Sizes,
    decided: Decided,
    model: &'a Model,
    places: Places,
    writing: &'a mut Writing,
    freed: Vec<(FileAddr, u64)>,
}

/// What comes of laying out and writing below the model.
type Laid<T> = std::result::Result<T, HdfError>;

impl Layout<'_> {
    fn run(&mut self, plan: Plan) -> Laid<()> {
        let Plan { mut made, scales, links } = plan;
        let removed = self.writing.scales.dim_of.keys();
        let removed = removed.filter(|key| !scales.dim_of.contains_key(*key)).copied();
        for key in removed.filter(|key| matches!(key, ObjectKey::Scale(_))).collect::<Vec<_>>() {
            self.remove(key);
        }
        self.writing.scales = scales;
        self.writing.links.extend(links);
        self.lists(&mut made)?;
        for object in &mut made {
            self.place(object)?;
            self.places.0.insert(object.key, object.stored.space.addr);
        }
        self.fill_lists(&mut made)?;
        // Groups come last, and inner ones before those they are in.
        let (groups, others): (Vec<_>, Vec<_>) =
            made.into_iter().partition(|object| matches!(object.key, ObjectKey::Group(_)));
        for object in others.into_iter().chain(groups.into_iter().rev()) {
            self.write(object)?;
        }
        Ok(())
    }
}

impl Layout<'_> {
    /// Gives the space of a placeholder back.
    fn remove(&mut self, key: ObjectKey) {
        if let Some(stored) = self.writing.objects.remove(&key) {
            let continuation = stored.continuation.iter();
            let continuation = continuation.map(|block| (block.addr, block.bytes.len() as u64));
            self.freed.extend(continuation.chain([(stored.space.addr, stored.space.len)]));
            self.freed.extend(stored.others);
        }
    }

    /// Puts lists of the right length, without their addresses.
    fn lists(&self, made: &mut [Made]) -> Laid<()> {
        for object in made {
            if let Some(list) = &object.list {
                let len = usize::try_from(scales::PLACE_BYTES).unwrap_or(0);
                let places = vec![0; list.len().saturating_mul(len)];
                let list = scales::dimension_list(places, list.len());
                let list = AttMessage::new(self.file, &list)?;
                object.stored.hide(&list.name.clone(), Some(list));
            }
            if let Some(users) = &object.users {
                let users = scales::reference_list(&vec![(FileAddr(0), 0); users.len()]);
                let users = AttMessage::new(self.file, &users)?;
                object.stored.hide(&users.name.clone(), Some(users));
            }
        }
        Ok(())
    }

    /// Finds a place for the first block of a new header.
    fn place(&mut self, object: &mut Made) -> Laid<()> {
        if object.stored.space.len > 0 {
            return Ok(());
        }
        let messages = self.messages(object)?;
        let is_root = object.key == ObjectKey::Group(GroupId::ROOT);
        // The root group's is directly behind the superblock, in the same sector.
        let most = if is_root { SECTOR.saturating_sub(48) } else { SECTOR };
        let len = first_chunk_len(&object.stored.style, &messages).max(LEAST_LEN);
        let len = len.checked_next_multiple_of(8).unwrap_or(u64::MAX);
        let len = if len > most { SPLIT_LEN } else { len };
        let addr = self.writing.space.alloc_in_sector(len)?;
        object.stored.space = HeaderSpace { addr, len };
        object.is_fresh = true;
        Ok(())
    }

    /// Puts the addresses into lists of which only the length was known.
    fn fill_lists(&mut self, made: &mut [Made]) -> Laid<()> {
        for object in made {
            if let Some(list) = &object.list {
                let mut places = Vec::with_capacity(list.len().saturating_mul(16));
                for scale in list {
                    let mut reference = Writer::new("object reference", self.sizes);
                    reference.addr(Some(self.places.of(self.model, *scale)?))?;
                    let Writing { heap, space, .. } = &mut *self.writing;
                    let id = heap.put(reference.bytes(), space)?;
                    HeapId::encode(Some(id), 1, self.sizes, &mut places)?;
                }
                let list = scales::dimension_list(places, list.len());
                let list = AttMessage::new(self.file, &list)?;
                object.stored.hide(&list.name.clone(), Some(list));
            }
            if let Some(users) = &object.users {
                let user = |(user, axis): &User| Ok((self.places.of(self.model, *user)?, *axis));
                let users = users.iter().map(user).collect::<Laid<Vec<_>>>()?;
                let users = AttMessage::new(self.file, &scales::reference_list(&users))?;
                object.stored.hide(&users.name.clone(), Some(users));
            }
        }
        Ok(())
    }

    /// All messages of a header. Those that change most often come first, to stay in its first block.
    fn messages(&self, object: &Made) -> Laid<Vec<NewMessage>> {
        let (stored, sizes) = (&object.stored, self.sizes);
        let mut out = stored.messages.clone();
        if let ObjectKey::Group(id) = object.key {
            self.links(id, &stored.link_info(), &mut out)?;
        }
        // What says what an object is comes before the attributes that users made, lists after them.
        let is_last = |att: &&AttMessage| {
            let name = &*att.name;
            matches!(
                name,
                hidden::DIMENSION_LIST
                    | hidden::REFERENCE_LIST
                    | hidden::PROPERTIES
                    | hidden::STRICT
            )
        };
        let first = stored.hidden.iter().filter(|att| !is_last(att));
        let last = stored.hidden.iter().filter(is_last);
        let atts: Vec<_> = first.chain(&object.atts).chain(last).collect();
        if atts.is_empty() {
            return Ok(out);
        }
        let tracked = stored.style.flags & header::TRACKED != 0;
        let indexed = stored.style.flags & header::INDEXED != 0;
        let count = u16::try_from(atts.len()).map_err(|_| HdfError::TooLarge {
            structure: "number of attributes",
            value: atts.len() as u64,
        })?;
        let info = AttributeInfo {
            tracked,
            indexed,
            max_creation_index: tracked.then_some(count),
            heap: None,
            name_index: None,
            order_index: None,
        };
        out.push(header::attribute_info(&info, sizes)?);
        out.extend((0..).zip(atts).map(|(order, att)| header::attribute(att, Some(order))));
        Ok(out)
    }

    /// The links of a group and what is said of them.
    fn links(&self, id: GroupId, info: &LinkInfo, out: &mut Vec<NewMessage>) -> Laid<()> {
        let entries = self.writing.links.get(&id).map_or(&[][..], |links| links);
        let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
        let info = LinkInfo { max_creation_index: info.tracked.then_some(count), ..*info };
        out.insert(0, header::link_info(&info, self.sizes)?);
        for (order, entry) in (0..).zip(entries) {
            let link = Link {
                name: entry.name.clone(),
                charset: entry.charset,
                creation_order: info.tracked.then_some(order),
                target: self.target(entry),
            };
            out.push(header::link(&link, self.sizes)?);
        }
        Ok(())
    }

    /// What a name stands for.
    fn target(&self, entry: &Entry) -> LinkTarget {
        let now = entry.key.and_then(|key| self.places.0.get(&key));
        match (&entry.target, now) {
            (None | Some(LinkTarget::Hard(_)), Some(addr)) => LinkTarget::Hard(*addr),
            (Some(target), _) => target.clone(),
            // While places are looked for, only lengths count.
            (None, None) => LinkTarget::Hard(FileAddr(0)),
        }
    }

    /// Encodes a header, and says what of it is to be written.
    fn write(&mut self, object: Made) -> Laid<()> {
        let messages = self.messages(&object)?;
        let Made { key, mut stored, is_fresh, .. } = object;
        let before = stored.continuation.take();
        let space = &mut self.writing.space;
        let mut again = before.as_ref();
        let mut encoded;
        loop {
            let mut place = |len: u64| match again {
                Some(block) if block.bytes.len() as u64 == len => Ok(block.addr),
                _ => space.alloc(len),
            };
            encoded =
                encode_header(&stored.style, &messages, &stored.space, self.sizes, &mut place)?;
            match (&encoded.continuation, again) {
                // The same place with other bytes is not to be had.
                (Some((addr, bytes)), Some(block))
                    if *addr == block.addr && **bytes != *block.bytes =>
                {
                    again = None;
                }
                _ => break,
            }
        }
        let mut freed = std::mem::take(&mut stored.others);
        if let Some((addr, bytes)) = encoded.continuation {
            if before.as_ref().is_none_or(|block| block.addr != addr) {
                self.decided.blocks.push((addr, bytes.clone()));
            }
            stored.continuation = Some(Block { addr, bytes: bytes.into() });
        }
        if let Some(block) = before
            && stored.continuation.as_ref().is_none_or(|now| now.addr != block.addr)
        {
            freed.push((block.addr, block.bytes.len() as u64));
        }
        let addr = stored.space.addr;
        if is_fresh {
            self.decided.blocks.push((addr, encoded.first.clone()));
        } else if *stored.first != *encoded.first {
            self.decided.switches.push((addr, encoded.first.clone().into()));
        }
        stored.first = encoded.first.into();
        self.freed.extend(freed);
        self.writing.objects.insert(key, stored);
        Ok(())
    }
}

/// Where objects are or will be.
#[derive(Debug, Default)]
struct Places(HashMap<ObjectKey, FileAddr>);

impl Places {
    fn of(&self, model: &Model, key: ObjectKey) -> Laid<FileAddr> {
        let at = match key {
            ObjectKey::Group(id) => model.group(id).map(|group| group.at),
            ObjectKey::Scale(id) => model.dim(id).and_then(|dim| dim.at),
            ObjectKey::Var(group, id) => model.var(group, id).map(|var| var.at),
            ObjectKey::Type(_) => None,
        };
        let at = at.filter(|at| *at != ObjectAt::NOWHERE).map(|at| at.addr);
        let found = self.0.get(&key).copied().or(at);
        found.ok_or(HdfError::Missing { structure: "object", at: 0, what: "its place" })
    }
}

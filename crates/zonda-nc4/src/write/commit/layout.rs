//! Lays a commit out: finds the place and the bytes of each block that it writes.

mod attributes;
mod links;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashMap;
use zonda_hdf5::global_heap::HeapId;
use zonda_hdf5::object_header::{
    EncodedHeader, HeaderSpace, NewMessage, encode_header, first_chunk_len,
};
use zonda_hdf5::space::SECTOR;
use zonda_hdf5::{File, FileAddr, HdfError, Sizes, Writer};

use self::attributes::fit_header;
use super::DecidedCommit;
use super::plan::{CommitPlan, PlannedAtts, PlannedObject};
use crate::fault::HdfResult;
use crate::files::ObjectAt;
use crate::hidden_atts;
use crate::model::{GroupId, Model};
use crate::tuning::{HEADER_MIN_BYTES, HEADER_SPLIT_BYTES};
use crate::write::create::ROOT_LEN;
use crate::write::links::LinkEntry;
use crate::write::objects::{AttMessage, Dense, HeaderBlock, StoredObject};
use crate::write::scales::{self, Scales, User};
use crate::write::{ObjectKey, Writing};

/// A commit while it is laid out.
struct CommitLayout<'a> {
    file: &'a Arc<File>,
    sizes: Sizes,
    model: &'a Model,
    writing: &'a mut Writing,
    /// The links of groups whose links change.
    names: BTreeMap<GroupId, Vec<LinkEntry>>,
    places: ObjectPlaces,
    /// Groups with new dimensions or types, and their depths: their headers are written before those of objects that may
    /// refer to what is new.
    defining: BTreeMap<GroupId, usize>,
    /// `DIMENSION_LIST` attributes whose elements are not set, by number of dimensions.
    empty_lists: HashMap<usize, AttMessage>,
    out: LaidOut,
}

/// What is laid out so far.
#[derive(Debug, Default)]
struct LaidOut {
    decided: DecidedCommit,
    /// The objects as the file has them after the commit.
    objects: Vec<(ObjectKey, StoredObject)>,
    /// Placeholders that the commit removes.
    removed: Vec<ObjectKey>,
    /// Space that was taken, and space that nothing refers to after the commit.
    taken: Vec<(FileAddr, u64)>,
    freed: Vec<(FileAddr, u64)>,
}

/// Lays a plan out, and gives the objects that it writes. After an error everything is as before.
pub(super) fn lay_out(
    plan: CommitPlan,
    file: &Arc<File>,
    model: &Model,
    writing: &mut Writing,
) -> HdfResult<(DecidedCommit, Vec<ObjectKey>)> {
    let CommitPlan { mut made, scales, links, types, all_or_none } = plan;
    let sizes = file.sizes();
    let (places, out) = (ObjectPlaces::default(), LaidOut::default());
    let (defining, empty_lists) = (BTreeMap::new(), HashMap::new());
    let mut layout = CommitLayout {
        file,
        sizes,
        model,
        writing,
        names: links,
        places,
        defining,
        empty_lists,
        out,
    };
    let result = layout.run(&mut made, scales.as_ref());
    let CommitLayout { writing, names, mut out, .. } = layout;
    out.decided.all_or_none = all_or_none;
    out.decided.switches.extend(types);
    if let Err(error) = result {
        for (addr, len) in out.taken {
            writing.space.free_definitions(addr, len);
        }
        return Err(error);
    }
    for (addr, len) in out.freed {
        writing.space.free_definitions(addr, len);
    }
    if let Some(scales) = scales {
        writing.stored.ids_are_said |= scales.of_dim != writing.stored.scales.of_dim;
        writing.stored.apart.dims.retain(|dim| !scales.of_dim.contains_key(dim));
        writing.stored.scales = scales;
    }
    writing.stored.links.extend(names);
    for key in out.removed {
        writing.stored.objects.remove(&key);
    }
    let written = out.objects.iter().map(|(key, _)| *key).collect();
    writing.stored.objects.extend(out.objects);
    Ok((out.decided, written))
}

impl CommitLayout<'_> {
    fn run(&mut self, made: &mut Vec<PlannedObject>, scales: Option<&Scales>) -> HdfResult<()> {
        if let Some(scales) = scales {
            self.remove_placeholders(scales);
        }
        self.lists(made)?;
        for object in made.iter_mut() {
            self.place(object)?;
            self.places.0.insert(object.key, object.stored.space.addr);
        }
        self.fill_lists(made)?;
        self.find_defining(made, scales);
        // Groups come last, and those after the ones they are in, whose dimensions they may have.
        let (groups, others): (Vec<_>, Vec<_>) = std::mem::take(made)
            .into_iter()
            .partition(|object| matches!(object.key, ObjectKey::Group(_)));
        for object in others.into_iter().chain(groups) {
            self.write(object)?;
        }
        Ok(())
    }

    /// Finds groups with new dimensions or types that headers may refer to which are written over: those of variables in
    /// groups below refer to dimensions, those of objects with attributes to types.
    fn find_defining(&mut self, made: &[PlannedObject], scales: Option<&Scales>) {
        let scales = scales.unwrap_or(&self.writing.stored.scales);
        let is_switched = |object: &&PlannedObject| !object.is_fresh;
        let is_group = |object: &&PlannedObject| matches!(object.key, ObjectKey::Group(_));
        let n_switched = made.iter().filter(is_switched).count();
        let n_groups = made.iter().filter(is_switched).filter(is_group).count();
        for object in made.iter().filter(|object| object.is_fresh) {
            let group = match object.key {
                ObjectKey::Type(id) if n_switched > 1 => {
                    self.model.user_type(id).map(|ty| ty.group)
                }
                key if n_groups > 1 => {
                    scales.dim_of.get(&key).and_then(|id| self.model.dim(*id)).map(|dim| dim.group)
                }
                _ => None,
            };
            if let Some(group) = group {
                self.defining.insert(group, self.model.lineage(group).count());
            }
        }
    }

    /// Removes placeholders of dimensions that have none any more, and gives their space back.
    fn remove_placeholders(&mut self, scales: &Scales) {
        let before = self.writing.stored.scales.dim_of.keys();
        let removed = before.filter(|key| !scales.dim_of.contains_key(*key));
        let removed = removed.filter(|key| matches!(key, ObjectKey::Scale(_)));
        for key in removed {
            if let Some(stored) = self.writing.stored.objects.get(key) {
                self.out.freed.extend(stored.extents());
            }
            self.out.removed.push(*key);
        }
    }

    /// Sets `DIMENSION_LIST` and `REFERENCE_LIST` with the right lengths; addresses are not known yet.
    fn lists(&mut self, made: &mut [PlannedObject]) -> HdfResult<()> {
        for object in made {
            if let Some(list) = &object.list {
                let list = self.empty_list(list.len())?;
                object.stored.hide(hidden_atts::DIMENSION_LIST, Some(list));
            }
            if let Some(users) = &object.users {
                let users = scales::reference_list(&vec![(FileAddr(0), 0); users.len()]);
                let users = AttMessage::new(self.file, &users)?;
                object.stored.hide(hidden_atts::REFERENCE_LIST, Some(users));
            }
        }
        Ok(())
    }

    /// `DIMENSION_LIST` of a variable of so many dimensions, its elements not set: encoded once for each number.
    fn empty_list(&mut self, rank: usize) -> HdfResult<AttMessage> {
        if let Some(list) = self.empty_lists.get(&rank) {
            return Ok(list.clone());
        }
        let len = usize::try_from(scales::PLACE_BYTES).unwrap_or(0);
        let places = vec![0; rank.saturating_mul(len)];
        let list = AttMessage::new(self.file, &scales::dimension_list(places, rank))?;
        self.empty_lists.insert(rank, list.clone());
        Ok(list)
    }

    /// Finds a place for the first block of a new header.
    fn place(&mut self, object: &mut PlannedObject) -> HdfResult<()> {
        if object.stored.space.len > 0 {
            return Ok(());
        }
        if object.key == ObjectKey::Group(GroupId::ROOT) && self.writing.is_new {
            // Its place was chosen when the file was created.
            object.stored.space = HeaderSpace { addr: self.file.root(), len: ROOT_LEN };
            object.is_fresh = true;
            return Ok(());
        }
        let messages = self.messages(object, None)?;
        let first_len = first_chunk_len(&object.stored.style, &messages);
        // Types do not change, so that their headers need no room to grow.
        let least = if let ObjectKey::Type(_) = object.key { 0 } else { HEADER_MIN_BYTES };
        let len = first_len.max(least);
        let len = len.checked_next_multiple_of(8).unwrap_or(u64::MAX);
        let len = if len > SECTOR { HEADER_SPLIT_BYTES } else { len };
        let addr = self.writing.space.alloc_in_sector(len)?;
        self.out.taken.push((addr, len));
        object.stored.space = HeaderSpace { addr, len };
        object.is_fresh = true;
        // Links name places that are not known yet, and what is outside of the header is not written yet.
        let is_all = !matches!(object.key, ObjectKey::Group(_)) && has_all_attributes(object);
        object.messages = is_all.then_some(messages);
        Ok(())
    }

    /// Sets `DIMENSION_LIST` and `REFERENCE_LIST` with the addresses of objects, which are known now.
    fn fill_lists(&mut self, made: &mut [PlannedObject]) -> HdfResult<()> {
        for object in made {
            if let Some(list) = &object.list {
                // If that collection is damaged, a new one is made.
                self.go_on_with_heap(list).unwrap_or(());
                let mut places = Vec::with_capacity(list.len().saturating_mul(16));
                for scale in list {
                    let mut reference = Writer::new("object reference", self.sizes);
                    reference.addr(Some(self.places.of(self.model, *scale)?))?;
                    let (heap, space) = self.writing.heap_and_space();
                    let id = heap.put(reference.bytes(), space)?;
                    HeapId::encode(Some(id), 1, self.sizes, &mut places)?;
                }
                let list = self.empty_list(list.len())?.with_data(&places);
                set_list(object, hidden_atts::DIMENSION_LIST, list);
            }
            if let Some(users) = &object.users {
                let user = |(user, axis): &User| Ok((self.places.of(self.model, *user)?, *axis));
                let users = users.iter().map(user).collect::<HdfResult<Vec<_>>>()?;
                let users = AttMessage::new(self.file, &scales::reference_list(&users))?;
                set_list(object, hidden_atts::REFERENCE_LIST, users);
            }
        }
        Ok(())
    }

    /// If no collection of the global heap is open, goes on with the one that the last variable of one of these scales
    /// refers to, if it has room. Otherwise each opening of the file would add a collection.
    fn go_on_with_heap(&mut self, scales: &[ObjectKey]) -> HdfResult<()> {
        let all = &self.writing.stored.scales;
        let users = scales.iter().filter_map(|scale| all.users.get(scale)).flatten();
        let last = users.map(|(key, _)| *key).max().filter(|key| all.lists.contains_key(key));
        let at = match last {
            Some(ObjectKey::Var(group, id)) => self.model.var(group, id).map(|var| var.at),
            _ => None,
        };
        let (heap, _) = self.writing.heap_and_space();
        let at = at.filter(|at| at.file == 0 && *at != ObjectAt::NOWHERE && !heap.has_open());
        let Some(at) = at else { return Ok(()) };
        let object = self.file.object(at.addr)?;
        let Some(list) = object.attribute(self.file, hidden_atts::DIMENSION_LIST)? else {
            return Ok(());
        };
        let place = list.data.get(4..).and_then(|place| place.first_chunk::<8>());
        if let Some(addr) = place.map(|addr| FileAddr(u64::from_le_bytes(*addr)))
            && addr != FileAddr(0)
        {
            let (heap, _) = self.writing.heap_and_space();
            heap.go_on_with(self.file, addr)?;
        }
        Ok(())
    }

    /// All messages of a header. Those that change most often come first, to stay in its first block. Lists outside of
    /// the header are written only if `dense` is given, which gets what was written.
    fn messages(
        &mut self,
        object: &PlannedObject,
        mut dense: Option<&mut Vec<Dense>>,
    ) -> HdfResult<Vec<NewMessage>> {
        let stored = &object.stored;
        let mut out = stored.messages.clone();
        if let ObjectKey::Group(id) = object.key {
            self.links(id, stored, dense.as_deref_mut(), &mut out)?;
        }
        // Attributes that say what an object is come before those that programs made, lists after them.
        let is_last = |att: &&AttMessage| {
            matches!(
                &*att.name,
                hidden_atts::DIMENSION_LIST
                    | hidden_atts::REFERENCE_LIST
                    | hidden_atts::PROPERTIES
                    | hidden_atts::STRICT
            )
        };
        let all = match &object.atts {
            PlannedAtts::All(all) => all,
            PlannedAtts::Changed(changed) => {
                self.changed_attributes(object.key, changed, stored, dense, &mut out)?;
                return Ok(out);
            }
        };
        let first = stored.hidden.iter().filter(|att| !is_last(att));
        let last = stored.hidden.iter().filter(is_last);
        let atts: Vec<_> = first.chain(all).chain(last).collect();
        if !atts.is_empty() {
            let moves = self.writing.commits.tidying.contains(&object.key);
            self.attributes(&atts, stored, moves, dense, &mut out)?;
        }
        Ok(out)
    }

    /// Encodes a header, and adds its blocks to the commit if they changed.
    fn write(&mut self, mut object: PlannedObject) -> HdfResult<()> {
        let mut dense = Vec::new();
        let messages = match object.messages.take() {
            Some(messages) => messages,
            None => self.messages(&object, Some(&mut dense))?,
        };
        let PlannedObject { key, mut stored, is_fresh, .. } = object;
        let moves = self.writing.commits.tidying.contains(&key);
        let EncodedHeader { first, continuation } = self.encode(&stored, moves, &messages)?;
        let before = stored.continuation.take();
        if let Some((addr, bytes)) = continuation {
            if before.as_ref().is_none_or(|block| block.addr != addr) {
                self.out.taken.push((addr, HeaderBlock::room(bytes.len() as u64)));
                self.out.decided.blocks.push((addr, bytes.clone()));
            }
            stored.continuation = Some(HeaderBlock { addr, bytes: bytes.into() });
        }
        let freed = &mut self.out.freed;
        if let Some(block) = before
            && stored.continuation.as_ref().is_none_or(|now| now.addr != block.addr)
        {
            freed.push(block.extent());
        }
        freed.append(&mut stored.others);
        let is_gone = |before: &&Dense| !dense.iter().any(|now| now.goes_on_from(before));
        freed.extend(stored.dense.iter().filter(is_gone).flat_map(Dense::extents));
        stored.dense = dense;
        let addr = stored.space.addr;
        if let ObjectKey::Group(id) = key
            && !is_fresh
        {
            self.symbols_elsewhere(id, &stored)?;
        }
        if is_fresh {
            self.out.decided.blocks.push((addr, first.clone()));
        } else if *stored.first != *first {
            let switch = (addr, first.clone().into());
            let depth = match key {
                ObjectKey::Group(id) => self.defining.get(&id),
                _ => None,
            };
            let decided = &mut self.out.decided;
            match depth {
                Some(depth) => decided.defining.entry(*depth).or_default().push(switch),
                None => decided.switches.push(switch),
            }
        }
        stored.first = first.into();
        self.out.objects.push((key, stored));
        Ok(())
    }

    /// Encodes a header. The second block stays where it was, if it is the same as before.
    fn encode(
        &mut self,
        stored: &StoredObject,
        moves: bool,
        messages: &[NewMessage],
    ) -> HdfResult<EncodedHeader> {
        let mut again = stored.continuation.as_ref().filter(|_| !moves);
        loop {
            let space = &mut self.writing.space;
            let mut place = |len: u64| match again {
                Some(block) if block.bytes.len() as u64 == len => Ok(block.addr),
                _ => space.alloc(HeaderBlock::room(len)),
            };
            let encoded =
                encode_header(&stored.style, messages, &stored.space, self.sizes, &mut place)?;
            match (&encoded.continuation, again) {
                (Some((addr, bytes)), Some(block))
                    if *addr == block.addr && **bytes != *block.bytes =>
                {
                    again = None;
                }
                _ => return Ok(encoded),
            }
        }
    }
}

/// Whether all attributes of an object come into its header, without a look at what the file has.
fn has_all_attributes(object: &PlannedObject) -> bool {
    let PlannedAtts::All(atts) = &object.atts else { return false };
    fit_header(atts.iter().chain(&object.stored.hidden))
}

/// Sets an attribute that names objects, in the messages of the header, too, where these are known.
fn set_list(object: &mut PlannedObject, name: &[u8], list: AttMessage) {
    let before = object.stored.hidden.iter().find(|att| *att.name == *name);
    if let (Some(messages), Some(before)) = (&mut object.messages, before) {
        let is_it = |message: &&mut NewMessage| Arc::ptr_eq(&message.body, &before.body);
        if let Some(message) = messages.iter_mut().find(is_it) {
            message.body = Arc::clone(&list.body);
        }
    }
    object.stored.hide(name, Some(list));
}

impl LaidOut {
    /// Adds blocks to the commit, and gives their extents.
    fn take(&mut self, blocks: Vec<(FileAddr, Vec<u8>)>) -> Vec<(FileAddr, u64)> {
        let extents: Vec<_> =
            blocks.iter().map(|(addr, bytes)| (*addr, bytes.len() as u64)).collect();
        self.decided.blocks.extend(blocks);
        self.taken.extend(&extents);
        extents
    }
}

fn hash_of<T: Hash + ?Sized>(what: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// The addresses of objects after the commit.
#[derive(Debug, Default)]
struct ObjectPlaces(HashMap<ObjectKey, FileAddr>);

impl ObjectPlaces {
    fn of(&self, model: &Model, key: ObjectKey) -> HdfResult<FileAddr> {
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

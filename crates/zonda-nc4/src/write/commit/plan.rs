//! Which objects a commit writes, and what is to be in them but addresses that are not known yet.
//! What cannot be changed is refused here, before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use zonda_hdf5::message::{DataLayout, Dataspace, LinkTarget, kind};
use zonda_hdf5::object_header::{HeaderStyle, ObjectHeader};
use zonda_hdf5::{FileAddr, HdfError, Sizes, shared};
use zonda_model::memory::{NoMemory, take_refused};
use zonda_model::{DimId, NcError, VarId};

use super::super::att_list::ChangedAtts;
use super::super::links::{Entry, name, wanted};
use super::super::objects::{AttMessage, SHARED, StoredObject};
use super::super::recipe::Recipe;
use super::super::scales::{Apart, Scales, User};
use super::super::{EditedAtts, ObjectKey, VarDraft, VarStore, Writing, element, header, scales};
use super::{Switch, root_error};
use crate::attribute::AttList;
use crate::fault::{Fault, HdfResult};
use crate::file::hdf;
use crate::files::{Files, ObjectAt};
use crate::hidden;
use crate::model::{GroupId, Model, Var};
use crate::{Nc4Error, Result};

/// An object that is written.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) key: ObjectKey,
    /// What the file will have of it. A place of no bytes is yet to be found.
    pub(super) stored: StoredObject,
    /// Its first block is at a new place.
    pub(super) is_fresh: bool,
    /// Its attributes but those that netCDF does not show.
    pub(super) atts: MadeAtts,
    /// Scales that `DIMENSION_LIST` is to name, where that changes.
    pub(super) list: Option<Vec<ObjectKey>>,
    /// Variables that `REFERENCE_LIST` is to name, where that changes.
    pub(super) users: Option<Vec<User>>,
}

/// The attributes of an object that is written.
#[derive(Debug)]
pub(super) enum MadeAtts {
    /// All of them.
    All(Vec<AttMessage>),
    /// What changed of those that the file has outside of the header.
    Changed(ChangedMessages),
}

/// What changed of attributes: see [`ChangedAtts`].
#[derive(Debug, Default)]
pub(super) struct ChangedMessages {
    pub(super) gone: Vec<Box<[u8]>>,
    pub(super) set: Vec<(AttMessage, bool)>,
}

/// What a commit writes.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) made: Vec<Made>,
    /// Scales as they then are, where they change.
    pub(super) scales: Option<Scales>,
    /// Names in groups in which they change.
    pub(super) links: BTreeMap<GroupId, Vec<Entry>>,
    /// Blocks of the headers of committed types that fewer attributes have, which are written over.
    pub(super) types: Vec<Switch>,
    /// What is written over is to change all at once.
    pub(super) all_or_none: bool,
}

/// Why an object that is two variables is not changed by both.
const TWO_NAMES: &str =
    "it has two names (links) and was changed by both; change it by one of them only";

/// Attributes that netCDF does not show which an object can get.
const MARKS: usize = 8;

/// A plan in the making.
struct Planner<'a> {
    files: &'a Files,
    model: &'a Model,
    writing: &'a mut Writing,
    sizes: Sizes,
    keys: BTreeSet<ObjectKey>,
    /// Scales as they will be, where that was computed.
    new_scales: Option<Scales>,
    /// Objects with other names than before.
    renamed: BTreeSet<ObjectKey>,
    links: BTreeMap<GroupId, Vec<Entry>>,
    moved: BTreeSet<ObjectKey>,
    /// Committed types, and how many attributes have them no more.
    released: BTreeMap<FileAddr, u32>,
    all_or_none: bool,
}

impl Plan {
    pub(super) fn make(files: &Files, model: &Model, writing: &mut Writing) -> Result<Plan> {
        let keys = writing.commits.changed.clone();
        let sizes = files.main().sizes();
        let mut planner = Planner {
            files,
            model,
            writing,
            sizes,
            keys,
            new_scales: None,
            renamed: BTreeSet::new(),
            links: BTreeMap::new(),
            moved: BTreeSet::new(),
            released: BTreeMap::new(),
            all_or_none: false,
        };
        planner.find_structure()?;
        planner.find_moves()?;
        let keys = std::mem::take(&mut planner.keys);
        let made = keys.into_iter().map(|key| planner.make(key)).collect::<Result<_>>()?;
        let types = planner.release().map_err(root_error)?;
        let Planner { new_scales: scales, links, all_or_none, .. } = planner;
        Ok(Plan { made, scales, links, types, all_or_none })
    }
}

impl Planner<'_> {
    /// Finds objects whose scales or names change.
    fn find_structure(&mut self) -> Result<()> {
        let is_plain = |key: &ObjectKey| match key {
            ObjectKey::Var(..) => self.place(*key).is_some(),
            _ => false,
        };
        if self.keys.iter().all(is_plain) {
            return Ok(());
        }
        let (attach, model) = (self.writing.how.attach_scales, self.model);
        let before = &self.writing.stored.scales;
        let mut scales = Scales::of(model, attach, &self.writing.stored.apart);
        if scales.of_dim != before.of_dim && !self.writing.stored.apart.dims.is_empty() {
            // Dimensions that no object stands for have names and ids that follow from those that
            // others have. They get objects, to keep them.
            let apart = Apart { dims: Default::default(), ..self.writing.stored.apart.clone() };
            scales = Scales::of(model, attach, &apart);
        }
        self.keys.extend(scales.changed_since(before));
        let ids_differ = scales.of_dim != before.of_dim;
        self.new_scales = Some(scales);
        if ids_differ && !self.writing.stored.ids_are_said {
            self.find_unsaid_ids()?;
        }
        let groups: BTreeSet<GroupId> =
            self.keys.iter().filter_map(|key| self.group_of(*key)).collect();
        for group in groups {
            self.find_names(group)?;
        }
        // Placeholders that are no more, and dimensions that are variables.
        let scales = self.new_scales.as_ref().unwrap_or(&self.writing.stored.scales);
        self.keys.retain(|key| match key {
            ObjectKey::Scale(_) => scales.dim_of.contains_key(key),
            _ => true,
        });
        Ok(())
    }

    /// The scales as they will be.
    fn scales(&self) -> &Scales {
        self.new_scales.as_ref().unwrap_or(&self.writing.stored.scales)
    }

    /// Finds out which names of a group change.
    fn find_names(&mut self, group: GroupId) -> Result<()> {
        self.load_links(group)?;
        let before = self.writing.stored.links.get(&group).map_or(&[][..], |links| links);
        let after = wanted(self.model, self.scales(), &self.writing.stored.apart, group, before);
        if after == *before && self.place(ObjectKey::Group(group)).is_some() {
            return Ok(());
        }
        let names: HashMap<ObjectKey, &[u8]> =
            before.iter().filter_map(|entry| Some((entry.key?, &*entry.name))).collect();
        let mut new = Vec::new();
        for entry in &after {
            let Some(key) = entry.key else { continue };
            match names.get(&key) {
                Some(name) if **name == *entry.name => {}
                Some(_) => {
                    self.renamed.insert(key);
                }
                None => new.push(key),
            }
        }
        new.retain(|key| self.place(*key).is_none());
        self.keys.extend(new);
        self.keys.insert(ObjectKey::Group(group));
        self.links.insert(group, after);
        Ok(())
    }

    /// Finds scales that do not say the id of their dimension, which then follows from their order:
    /// it does no more when scales come and go.
    fn find_unsaid_ids(&mut self) -> Result<()> {
        let scales: Vec<_> = self.scales().of_dim.values().copied().collect();
        for key in scales {
            if self.place(key).is_some() && !self.load(key)?.says(hidden::DIM_ID) {
                self.keys.insert(key);
            }
        }
        Ok(())
    }

    /// What the file has of an object that is in it.
    fn load(&mut self, key: ObjectKey) -> Result<&StoredObject> {
        if !self.writing.stored.objects.contains_key(&key) {
            let at = self.place(key).unwrap_or(ObjectAt::NOWHERE);
            let stored = StoredObject::load(self.files.main(), at);
            let stored = stored.map_err(|fault| self.fault(key, fault))?;
            self.writing.stored.objects.insert(key, stored);
        }
        let missing = HdfError::Missing { structure: "object", at: 0, what: "its header" };
        self.writing.stored.objects.get(&key).ok_or_else(|| root_error(missing))
    }

    /// Finds headers that have to go elsewhere: those of variables that become scales or are none any
    /// more. These change with the names of their group, in which a placeholder goes or comes.
    ///
    /// What refers to them changes, too. Variables come to refer to a new scale before the group
    /// does, which readers do not mind: the dimensions that a variable has it says by their ids.
    /// Where something may refer to them that is not known, they stay, and a journal is needed.
    fn find_moves(&mut self) -> Result<()> {
        let mut waiting: Vec<_> = self.keys.iter().copied().collect();
        let mut changed = BTreeMap::new();
        while let Some(key) = waiting.pop() {
            let Some(at) = self.place(key) else { continue };
            if changed.insert(at.addr, key).is_some_and(|other| other != key) {
                return Err(self.fault(key, Fault::Unwritable(TWO_NAMES)));
            }
            let has_one_link = !self.load(key)?.has_several_links();
            let role = |scales: &Scales| scales.dim_of.get(&key).copied();
            let (before, after) = (role(&self.writing.stored.scales), role(self.scales()));
            if before == after || self.moved.contains(&key) {
                continue;
            }
            let are_known = before.is_none() || self.writing.stored.apart.vars.is_empty();
            if !(has_one_link && are_known && self.writing.owns_references) {
                self.all_or_none = true;
                continue;
            }
            self.moved.insert(key);
            for referrer in self.referrers(key)? {
                if self.keys.insert(referrer) {
                    waiting.push(referrer);
                }
            }
        }
        Ok(())
    }

    /// What refers to an object by its place, the names in its group included.
    fn referrers(&mut self, key: ObjectKey) -> Result<Vec<ObjectKey>> {
        let mut referrers = Vec::new();
        let group = match key {
            ObjectKey::Group(id) => self.model.group(id).and_then(|group| group.parent),
            _ => self.group_of(key),
        };
        if let Some(group) = group {
            referrers.push(ObjectKey::Group(group));
            if !self.links.contains_key(&group) {
                self.load_links(group)?;
                let links = self.writing.stored.links.get(&group).cloned().unwrap_or_default();
                self.links.insert(group, links);
            }
        }
        referrers.extend(self.scales().lists.get(&key).into_iter().flatten());
        let users = self.scales().users.get(&key).into_iter().flatten();
        referrers.extend(users.map(|(user, _)| user));
        Ok(referrers)
    }

    /// The group that the name of an object is in.
    fn group_of(&self, key: ObjectKey) -> Option<GroupId> {
        match key {
            ObjectKey::Group(id) => Some(id),
            ObjectKey::Type(id) => self.model.user_type(id).map(|ty| ty.group),
            ObjectKey::Scale(id) => self.model.dim(id).map(|dim| dim.group),
            ObjectKey::Var(group, _) => Some(group),
        }
    }

    /// Where the file has an object.
    fn place(&self, key: ObjectKey) -> Option<ObjectAt> {
        if let Some(stored) = self.writing.stored.objects.get(&key) {
            return Some(ObjectAt { file: 0, addr: stored.space.addr });
        }
        let at = match key {
            ObjectKey::Group(_) if self.writing.is_new => None,
            ObjectKey::Group(id) => self.model.group(id).map(|group| group.at),
            ObjectKey::Type(_) => None,
            ObjectKey::Scale(id) => {
                let is_scale = self.writing.stored.scales.dim_of.contains_key(&key);
                self.model.dim(id).filter(|_| is_scale).and_then(|dim| dim.at)
            }
            ObjectKey::Var(group, id) => self.model.var(group, id).map(|var| var.at),
        };
        at.filter(|at| *at != ObjectAt::NOWHERE)
    }

    /// Reads the names in a group as the file has them.
    fn load_links(&mut self, group: GroupId) -> Result<()> {
        if !self.writing.stored.links.contains_key(&group) {
            let links = match self.place(ObjectKey::Group(group)) {
                Some(at) => self.read_links(group, at)?,
                None => Vec::new(),
            };
            self.writing.stored.links.insert(group, links);
        }
        Ok(())
    }

    fn read_links(&self, id: GroupId, at: ObjectAt) -> Result<Vec<Entry>> {
        let file = self.files.main();
        let fail = |error| hdf(self.model.group_path(id), error);
        if at.file != 0 {
            return Err(
                self.fault(ObjectKey::Group(id), Fault::Unwritable("it is in another file"))
            );
        }
        let links = file.object(at.addr).and_then(|object| object.links(file)).map_err(fail)?;
        let keys = self.keys_by_place(id);
        let types = self.types_by_name(id);
        let entry = |link: zonda_hdf5::message::Link| {
            let addr = match &link.target {
                LinkTarget::Hard(addr) => Some(ObjectAt { file: 0, addr: *addr }),
                // One that leads to nothing that can be read stays as it is.
                target => self.files.follow(at, target).unwrap_or(None),
            };
            let at = addr.and_then(|addr| keys.get(&(addr.addr, addr.file)));
            // An object may have several names, and is as many variables.
            let is_named = |key: &&ObjectKey| *name(self.model, **key) == *link.name;
            let key = at.and_then(|keys| keys.iter().find(is_named).or(keys.first())).copied();
            let key = key.or_else(|| types.get(&*link.name).copied());
            Entry { name: link.name, charset: link.charset, key, target: Some(link.target) }
        };
        Ok(links.into_iter().map(entry).collect())
    }

    /// The objects that a group has in the model, by where they are.
    fn keys_by_place(&self, id: GroupId) -> BTreeMap<(FileAddr, u16), Vec<ObjectKey>> {
        let mut keys: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let Some(group) = self.model.group(id) else { return keys };
        let children = group.children.iter().map(|&child| ObjectKey::Group(child));
        let dims = group.dims.iter().map(|&dim| ObjectKey::Scale(dim));
        let vars = (0..).map(VarId).zip(&group.vars).map(|(var, _)| ObjectKey::Var(id, var));
        for key in children.chain(dims).chain(vars) {
            if let Some(at) = self.place(key) {
                keys.entry((at.addr, at.file)).or_default().push(key);
            }
        }
        keys
    }

    /// The types of a group, of which the model does not say where they are.
    fn types_by_name(&self, id: GroupId) -> BTreeMap<&[u8], ObjectKey> {
        let types = self.model.group(id).into_iter().flat_map(|group| &group.types);
        let named =
            types.filter_map(|&ty| Some((&*self.model.user_type(ty)?.name, ObjectKey::Type(ty))));
        named.collect()
    }

    /// What an object will be.
    fn make(&mut self, key: ObjectKey) -> Result<Made> {
        let known = self.writing.stored.objects.get(&key).cloned();
        let is_new = known.is_none();
        let atts = self.attributes(key)?;
        let mut stored = match known {
            Some(stored) => stored,
            None => self.new_object(key).map_err(|error| self.fault(key, error))?,
        };
        if self.moved.contains(&key) {
            stored.move_away();
        }
        let model = self.model;
        if let ObjectKey::Var(group, id) = key
            && let Some(var) = model.var(group, id)
        {
            let updated = self.update(&mut stored, key, var);
            updated.map_err(|error| self.fault(key, error))?;
        }
        let before = &self.writing.stored.scales;
        let list = self.scales().lists.get(&key);
        let list_moved =
            list.is_some_and(|list| list.iter().any(|scale| self.moved.contains(scale)));
        let list_changed = list_moved || list != before.lists.get(&key);
        let users = self.scales().users.get(&key);
        let users_moved =
            users.is_some_and(|users| users.iter().any(|(user, _)| self.moved.contains(user)));
        let users_changed = users_moved || users != before.users.get(&key);
        let role_changed = self.scales().dim_of.get(&key) != before.dim_of.get(&key);
        let mut made = Made {
            key,
            stored,
            is_fresh: false,
            atts,
            list: list.filter(|_| list_changed).cloned(),
            users: users.filter(|_| users_changed).cloned(),
        };
        let result = (|| {
            if list_changed {
                made.stored.hide(hidden::DIMENSION_LIST, None);
            }
            if users_changed {
                made.stored.hide(hidden::REFERENCE_LIST, None);
            }
            if is_new || role_changed || list_changed || self.renamed.contains(&key) {
                self.mark(&mut made.stored, key)?;
            } else if let Some(id) = self.scales().dim_of.get(&key)
                && self.scales().of_dim != before.of_dim
            {
                let id = AttMessage::new(self.files.main(), &scales::dim_id(*id))?;
                made.stored.hide(hidden::DIM_ID, Some(id));
            }
            Ok(())
        })();
        result.map_err(|error: HdfError| self.fault(key, error))?;
        Ok(made)
    }

    /// Attributes that say what an object is for netCDF.
    fn mark(&self, stored: &mut StoredObject, key: ObjectKey) -> HdfResult<()> {
        let file = self.files.main();
        let dim = self.scales().dim_of.get(&key);
        let (mut name, mut coordinates) = (None, None);
        match key {
            ObjectKey::Scale(id) => {
                let len = self.model.dim(id).map_or(0, |dim| dim.len);
                name = Some(scales::placeholder_name(len));
            }
            ObjectKey::Var(group, id) => {
                let var = self.model.var(group, id);
                // Readers take dimensions that have no objects for damage.
                let has = |dim: &DimId| self.scales().of_dim.contains_key(dim);
                let said = |var: &&Var| !var.dims.is_empty() && var.dims.iter().all(has);
                if let Some(var) = var.filter(said) {
                    coordinates = Some(scales::coordinates(&var.dims));
                    name = dim.map(|_| scales::coordinate_name(var));
                }
            }
            ObjectKey::Group(GroupId::ROOT) => {
                let text = scales::text(hidden::PROPERTIES, self.writing.how.properties.clone());
                stored.hide(hidden::PROPERTIES, Some(AttMessage::new(file, &text)?));
                if self.writing.how.classic {
                    let strict = AttMessage::new(file, &scales::strict())?;
                    stored.hide(hidden::STRICT, Some(strict));
                }
                return Ok(());
            }
            ObjectKey::Group(_) | ObjectKey::Type(_) => return Ok(()),
        }
        let marks = [
            (hidden::COORDINATES, coordinates),
            (hidden::CLASS, dim.map(|_| scales::class())),
            (hidden::NAME, name),
            (hidden::DIM_ID, dim.map(|id| scales::dim_id(*id))),
        ];
        for (name, mark) in marks {
            let mark = mark.map(|mark| AttMessage::new(file, &mark)).transpose()?;
            stored.hide(name, mark);
        }
        Ok(())
    }

    /// An object that the file has not.
    fn new_object(&mut self, key: ObjectKey) -> HdfResult<StoredObject> {
        let (model, sizes) = (self.model, self.sizes);
        let missing = HdfError::Missing { structure: "object", at: 0, what: "its definition" };
        let messages = match key {
            ObjectKey::Group(_) => header::group(sizes)?,
            ObjectKey::Type(id) => {
                let ty = model.user_type(id).and_then(|ty| ty.stored());
                let message = header::datatype(ty.ok_or(missing)?, sizes)?;
                // Types have no attributes in netCDF.
                return Ok(StoredObject::new(HeaderStyle::default(), vec![message]));
            }
            ObjectKey::Scale(id) => header::placeholder(model.dim(id).ok_or(missing)?, sizes)?,
            ObjectKey::Var(group, id) => {
                let var = model.var(group, id).ok_or(missing.clone())?;
                let draft = var.draft.as_deref().ok_or(missing.clone())?;
                let space = header::shape(model, var);
                let Recipe { layout, filters, fill, .. } = self.recipe(key, var, draft)?;
                let place = self.writing.stores.of(key).map_or(layout, VarStore::layout);
                header::variable(&space, &draft.datatype, &place, &filters, fill, sizes)?
            }
        };
        let attribute_order = self.writing.how.attribute_order;
        Ok(StoredObject::new(header::style(attribute_order), messages))
    }

    fn recipe(&mut self, key: ObjectKey, var: &Var, draft: &VarDraft) -> HdfResult<Recipe> {
        let recipe = Recipe::of(self.model, var, draft, Some((&mut *self.writing, key)));
        recipe.map_err(|fault| match fault {
            Fault::Hdf(error) => error,
            Fault::Refused(NcError::NoMem) => {
                HdfError::NoMemory(NoMemory { bytes: take_refused().unwrap_or(usize::MAX) })
            }
            Fault::Chunk(_)
            | Fault::Att(_)
            | Fault::Refused(_)
            | Fault::Explained(..)
            | Fault::Unwritable(_) => {
                HdfError::Missing { structure: "object", at: 0, what: "its definition" }
            }
        })
    }

    /// Brings the messages of a variable that is in the file up to date.
    fn update(&mut self, stored: &mut StoredObject, key: ObjectKey, var: &Var) -> HdfResult<()> {
        // Until something is put the fill value may be another one, and the header may not say so yet.
        if let Some(draft) = var.draft.as_deref() {
            let recipe = self.recipe(key, var, draft)?;
            stored.replace(header::fill_value(&recipe.layout, recipe.fill, self.sizes)?);
            if matches!(recipe.layout, DataLayout::Compact { .. }) {
                stored.replace(header::layout(&recipe.layout, self.sizes)?);
            }
        }
        // A layout that says the same as before is encoded to the same bytes.
        if let Some(store) = self.writing.stores.of(key) {
            stored.replace(header::layout(&store.layout(), self.sizes)?);
        }
        if var.draft.is_some() {
            // Made here, of whatever shape: more elements than can be counted are no reason to
            // keep all else from the file.
            let space = header::shape(self.model, var);
            stored.replace(header::dataspace(&space, self.sizes)?);
            return Ok(());
        }
        let Some(message) = stored.message(kind::DATASPACE) else { return Ok(()) };
        let file = self.files.main();
        let reader = zonda_hdf5::Reader::new("dataspace", &message.body, 0, self.sizes);
        let space = if message.flags & SHARED == 0 {
            Dataspace::decode(reader, file.limits())?
        } else {
            let body = shared::resolve(file, reader, kind::DATASPACE)?;
            Dataspace::decode(body.reader(file), file.limits())?
        };
        if *space.dims != *var.extent {
            let space = Dataspace { dims: var.extent.to_vec(), ..space };
            stored.replace(header::dataspace(&space, self.sizes)?);
        }
        Ok(())
    }

    /// What the headers of committed types say of how many have them. With fewer than there are,
    /// libhdf5 would free a type that is in use: all changes at once.
    fn release(&mut self) -> HdfResult<Vec<Switch>> {
        let file = self.files.main();
        let mut out = Vec::new();
        for (addr, fewer) in std::mem::take(&mut self.released) {
            let blocks = ObjectHeader::read(file, addr)?.with_fewer_links(file, fewer)?;
            out.extend(blocks.into_iter().map(|(addr, bytes)| (addr, bytes.into())));
        }
        self.all_or_none |= !out.is_empty();
        Ok(out)
    }

    /// Attributes that are shown, or that netCDF has no type for.
    fn attributes(&mut self, key: ObjectKey) -> Result<MadeAtts> {
        let details = match key {
            ObjectKey::Group(id) => self.model.group(id).and_then(|group| group.details.get()),
            ObjectKey::Var(group, id) => {
                self.model.var(group, id).and_then(|var| var.details.get())
            }
            ObjectKey::Scale(_) | ObjectKey::Type(_) => None,
        };
        let file = self.files.main();
        let edited = match details.map(|details| &details.atts) {
            Some(Ok(AttList::Edited(list))) => Some(&**list),
            _ => None,
        };
        if let Some(changed) = self.changed_attributes(key, edited)? {
            return Ok(MadeAtts::Changed(changed));
        }
        let mut out = Vec::new();
        if let Some(list) = edited {
            let (heap, space) = self.writing.heap_and_space();
            let attributes = list.attributes(self.model, &mut |form, fetch, src, dst| {
                element::encode(form, heap, space, fetch, src, dst)
            });
            let attributes = attributes.map_err(|fault| self.fault(key, fault))?;
            self.count_released(list);
            for attribute in attributes {
                let message = AttMessage::new(file, &attribute);
                out.push(message.map_err(|error| self.fault(key, error))?);
            }
            return Ok(MadeAtts::All(out));
        }
        let fail = |error| self.fault(key, error);
        let Some(at) = self.place(key) else { return Ok(MadeAtts::All(out)) };
        let attributes = file.object(at.addr).and_then(|object| object.attributes(file));
        let attributes = attributes.map_err(fail)?;
        for index in 0..attributes.len() {
            if !hidden::is_reserved(attributes.name(index)) {
                let attribute = attributes.decode(index, file).map_err(fail)?;
                out.push(AttMessage::new(file, &attribute).map_err(fail)?);
            }
        }
        Ok(MadeAtts::All(out))
    }

    /// What changed of the attributes of an object that has them outside of its header, where that is
    /// known and they stay there. Many changes are better laid out with all the rest.
    fn changed_attributes(
        &mut self,
        key: ObjectKey,
        edited: Option<&EditedAtts>,
    ) -> Result<Option<ChangedMessages>> {
        let stored = self.writing.stored.objects.get(&key);
        let known = stored.and_then(|stored| Some((stored, stored.att_list()?)));
        let Some((stored, before)) = known.filter(|_| !self.writing.commits.tidying.contains(&key))
        else {
            return Ok(None);
        };
        let n_hidden = stored.hidden.len();
        let n_before = usize::try_from(before.atts.len()).unwrap_or(usize::MAX);
        let (n_left, n_changed) = match edited {
            Some(list) => (list.n_stored(), list.n_changed(before.stamp)),
            None => (n_before.saturating_sub(n_hidden), Some(0)),
        };
        let Some(n_changed) = n_changed.filter(|n| *n <= n_before / 4) else { return Ok(None) };
        // What netCDF does not show may change, too.
        let can_take =
            before.atts.can_take(n_changed.saturating_add(n_hidden).saturating_add(MARKS));
        if n_left <= usize::from(header::PHASE_CHANGE.0) || !can_take {
            return Ok(None);
        }
        let mut out = ChangedMessages::default();
        let Some(list) = edited else { return Ok(Some(out)) };
        let (heap, space) = self.writing.heap_and_space();
        let changes = list.changes(self.model, &mut |form, fetch, src, dst| {
            element::encode(form, heap, space, fetch, src, dst)
        });
        let ChangedAtts { gone, set } = changes.map_err(|fault| self.fault(key, fault))?;
        self.count_released(list);
        out.gone = gone;
        for (attribute, stays) in set {
            let message = AttMessage::new(self.files.main(), &attribute);
            out.set.push((message.map_err(|error| self.fault(key, error))?, stays));
        }
        Ok(Some(out))
    }

    /// Counts what a list has no more of committed types.
    fn count_released(&mut self, list: &EditedAtts) {
        for addr in list.released() {
            let count = self.released.entry(*addr).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// The path of an object, for messages.
    fn path(&self, key: ObjectKey) -> String {
        match key {
            ObjectKey::Group(id) => self.model.group_path(id),
            ObjectKey::Type(_) | ObjectKey::Scale(_) | ObjectKey::Var(..) => {
                let group = self.group_of(key).unwrap_or(GroupId::ROOT);
                self.model.path_in(group, &name(self.model, key))
            }
        }
    }

    /// The error about an object.
    fn fault(&self, key: ObjectKey, fault: impl Into<Fault>) -> Nc4Error {
        fault.into().at(|| self.path(key))
    }
}

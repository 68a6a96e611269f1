//! Plans a commit: which objects it writes, and their contents but for addresses, which are not known yet. Objects that
//! Zonda cannot change are refused here, before anything is written.

mod attributes;
mod structure;

use std::collections::{BTreeMap, BTreeSet};

use zonda_hdf5::message::{DataLayout, Dataspace, kind};
use zonda_hdf5::object_header::{HeaderStyle, NewMessage, ObjectHeader};
use zonda_hdf5::{FileAddr, HdfError, Sizes, shared};
use zonda_model::memory::{NoMemory, take_refused};
use zonda_model::{DimId, NcError};

pub(super) use self::attributes::{ChangedMessages, PlannedAtts};
use super::super::links::{LinkEntry, name};
use super::super::new_storage::NewStorage;
use super::super::objects::{AttMessage, SHARED, StoredObject};
use super::super::scales::{Scales, User};
use super::super::{ObjectKey, VarDraft, VarStore, Writing, header, scales};
use super::{Switch, root_error};
use crate::fault::{Fault, HdfResult};
use crate::files::{Files, ObjectAt};
use crate::hidden_atts;
use crate::model::{GroupId, Model, Var};
use crate::{Nc4Error, Result};

/// An object that is written.
#[derive(Debug)]
pub(super) struct PlannedObject {
    pub(super) key: ObjectKey,
    /// The object as the file will have it. A place of no bytes stands for one that is not found yet.
    pub(super) stored: StoredObject,
    /// Its first block is at a new place.
    pub(super) is_fresh: bool,
    /// Its attributes, without those that netCDF does not show.
    pub(super) atts: PlannedAtts,
    /// The messages of its header, where they are known when its place is found: all but the elements of the lists below.
    pub(super) messages: Option<Vec<NewMessage>>,
    /// Scales that `DIMENSION_LIST` is to name; `None` if it does not change.
    pub(super) list: Option<Vec<ObjectKey>>,
    /// Variables that `REFERENCE_LIST` is to name; `None` if it does not change.
    pub(super) users: Option<Vec<User>>,
}

/// The plan of a commit.
#[derive(Debug)]
pub(super) struct CommitPlan {
    pub(super) made: Vec<PlannedObject>,
    /// The scales after the commit; `None` if they do not change.
    pub(super) scales: Option<Scales>,
    /// The links of groups whose links change.
    pub(super) links: BTreeMap<GroupId, Vec<LinkEntry>>,
    /// Blocks of committed types that have fewer users after the commit; they are written over.
    pub(super) types: Vec<Switch>,
    /// All blocks that are written over have to change at once, by a journal.
    pub(super) all_or_none: bool,
}

/// A plan in the making.
struct Planner<'a> {
    files: &'a Files,
    model: &'a Model,
    writing: &'a mut Writing,
    sizes: Sizes,
    keys: BTreeSet<ObjectKey>,
    /// The scales after the commit, if they were computed.
    new_scales: Option<Scales>,
    /// Objects that the commit renames.
    renamed: BTreeSet<ObjectKey>,
    links: BTreeMap<GroupId, Vec<LinkEntry>>,
    moved: BTreeSet<ObjectKey>,
    /// Committed types, and how many users they lose.
    released: BTreeMap<FileAddr, u32>,
    all_or_none: bool,
}

impl CommitPlan {
    pub(super) fn make(files: &Files, model: &Model, writing: &mut Writing) -> Result<CommitPlan> {
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
        Ok(CommitPlan { made, scales, links, types, all_or_none })
    }
}

impl Planner<'_> {
    /// The scales after the commit.
    fn scales(&self) -> &Scales {
        self.new_scales.as_ref().unwrap_or(&self.writing.stored.scales)
    }

    /// The object as the file has it.
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

    /// The group that the name of an object is in.
    fn group_of(&self, key: ObjectKey) -> Option<GroupId> {
        match key {
            ObjectKey::Group(id) => Some(id),
            ObjectKey::Type(id) => self.model.user_type(id).map(|ty| ty.group),
            ObjectKey::Scale(id) => self.model.dim(id).map(|dim| dim.group),
            ObjectKey::Var(group, _) => Some(group),
        }
    }

    /// The place of an object in the file; `None` for a new one.
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

    /// Plans one object.
    fn make(&mut self, key: ObjectKey) -> Result<PlannedObject> {
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
        let mut made = PlannedObject {
            key,
            stored,
            is_fresh: false,
            atts,
            messages: None,
            list: list.filter(|_| list_changed).cloned(),
            users: users.filter(|_| users_changed).cloned(),
        };
        let result = (|| {
            if list_changed {
                made.stored.hide(hidden_atts::DIMENSION_LIST, None);
            }
            if users_changed {
                made.stored.hide(hidden_atts::REFERENCE_LIST, None);
            }
            if is_new || role_changed || list_changed || self.renamed.contains(&key) {
                self.mark(&mut made.stored, key)?;
            } else if let Some(id) = self.scales().dim_of.get(&key)
                && self.scales().of_dim != before.of_dim
            {
                let id = AttMessage::new(self.files.main(), &scales::dim_id(*id))?;
                made.stored.hide(hidden_atts::DIM_ID, Some(id));
            }
            Ok(())
        })();
        result.map_err(|error: HdfError| self.fault(key, error))?;
        Ok(made)
    }

    /// Sets the attributes that say what an object is to netCDF.
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
                // Readers take ids of dimensions without scales for damage.
                let has = |dim: &DimId| self.scales().of_dim.contains_key(dim);
                let said = |var: &&Var| !var.dims.is_empty() && var.dims.iter().all(has);
                if let Some(var) = var.filter(said) {
                    coordinates = Some(scales::coordinates(&var.dims));
                    name = dim.map(|_| scales::coordinate_name(var));
                }
            }
            ObjectKey::Group(GroupId::ROOT) => {
                let text =
                    scales::text(hidden_atts::PROPERTIES, self.writing.how.properties.clone());
                stored.hide(hidden_atts::PROPERTIES, Some(AttMessage::new(file, &text)?));
                if self.writing.how.classic {
                    let strict = AttMessage::new(file, &scales::strict())?;
                    stored.hide(hidden_atts::STRICT, Some(strict));
                }
                return Ok(());
            }
            ObjectKey::Group(_) | ObjectKey::Type(_) => return Ok(()),
        }
        let marks = [
            (hidden_atts::COORDINATES, coordinates),
            (hidden_atts::CLASS, dim.map(|_| scales::class())),
            (hidden_atts::NAME, name),
            (hidden_atts::DIM_ID, dim.map(|id| scales::dim_id(*id))),
        ];
        for (name, mark) in marks {
            let mark = mark.map(|mark| AttMessage::new(file, &mark)).transpose()?;
            stored.hide(name, mark);
        }
        Ok(())
    }

    /// A new object.
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
                let NewStorage { layout, filters, fill, .. } = self.recipe(key, var, draft)?;
                let place = self.writing.stores.of(key).map_or(layout, VarStore::layout);
                header::variable(&space, &draft.datatype, &place, &filters, fill, sizes)?
            }
        };
        let attribute_order = self.writing.how.attribute_order;
        Ok(StoredObject::new(header::style(attribute_order), messages))
    }

    fn recipe(&mut self, key: ObjectKey, var: &Var, draft: &VarDraft) -> HdfResult<NewStorage> {
        let recipe = NewStorage::of(self.model, var, draft, Some((&mut *self.writing, key)));
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
        // Until something is put the fill value can change, and the header may still have the one before.
        if let Some(draft) = var.draft.as_deref() {
            let recipe = self.recipe(key, var, draft)?;
            stored.replace(header::fill_value(&recipe.layout, recipe.fill, self.sizes)?);
            if matches!(recipe.layout, DataLayout::Compact { .. }) {
                stored.replace(header::layout(&recipe.layout, self.sizes)?);
            }
        }
        // If the layout is the same as before, its bytes are the same.
        if let Some(store) = self.writing.stores.of(key) {
            stored.replace(header::layout(&store.layout(), self.sizes)?);
        }
        if var.draft.is_some() {
            // The variable was defined here. Its dataspace is not read back, as below: one with more elements than can be
            // counted would fail, and with it the commit.
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

    /// The blocks of committed types with their new numbers of users. If a number were too small for a moment, libhdf5
    /// could free a type that is in use; so all blocks of the commit change at once.
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

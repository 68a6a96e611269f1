//! Which objects a commit writes besides those that were changed: where scales, names or places change,
//! what refers to them changes, too.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use zonda_hdf5::FileAddr;
use zonda_hdf5::message::LinkTarget;
use zonda_model::VarId;

use super::Planner;
use crate::Result;
use crate::fault::Fault;
use crate::file::hdf;
use crate::files::ObjectAt;
use crate::hidden_atts;
use crate::model::GroupId;
use crate::write::ObjectKey;
use crate::write::links::{LinkEntry, name, wanted};
use crate::write::scales::{Apart, Scales};

/// Why changes of one object by two of its names are refused.
const TWO_NAMES: &str =
    "it has two names (links) and was changed by both; change it by one of them only";

impl Planner<'_> {
    /// Finds objects whose scales or names change.
    pub(super) fn find_structure(&mut self) -> Result<()> {
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
            // Names and ids of dimensions without scales follow from those of other dimensions. They get scales, to
            // keep their names and ids.
            let apart = Apart { dims: Default::default(), ..self.writing.stored.apart.clone() };
            scales = Scales::of(model, attach, &apart);
        }
        self.keys.extend(scales.changed_since(before));
        let ids_differ = scales.of_dim != before.of_dim;
        self.new_scales = Some(scales);
        if ids_differ && !self.writing.stored.ids_are_said {
            self.find_unsaid_ids()?;
        }
        let mut groups = BTreeSet::new();
        groups.extend(self.keys.iter().filter_map(|key| self.group_of(*key)));
        for group in groups {
            self.find_names(group)?;
        }
        // Leaves out dimensions that have no placeholder any more, or are variables.
        let scales = self.new_scales.as_ref().unwrap_or(&self.writing.stored.scales);
        self.keys.retain(|key| match key {
            ObjectKey::Scale(_) => scales.dim_of.contains_key(key),
            _ => true,
        });
        Ok(())
    }

    /// Finds out which links of a group change.
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

    /// Finds scales without the attribute with the id of their dimension. Their ids followed from the order of scales,
    /// which changes when scales come and go, so they get the attribute.
    fn find_unsaid_ids(&mut self) -> Result<()> {
        let scales: Vec<_> = self.scales().of_dim.values().copied().collect();
        for key in scales {
            if self.place(key).is_some() && !self.load(key)?.says(hidden_atts::DIM_ID) {
                self.keys.insert(key);
            }
        }
        Ok(())
    }

    /// Finds headers that have to move: those of variables that become scales, or are scales no longer. They have to
    /// change together with the links of their group, where a placeholder comes or goes.
    ///
    /// Objects that refer to them change, too. Variables refer to a new scale before the group does; readers do
    /// not mind, because a variable names its dimensions by ids. If unknown objects may refer to such headers, these
    /// stay where they are, and the commit needs a journal.
    pub(super) fn find_moves(&mut self) -> Result<()> {
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

    /// The objects that refer to an object by its address; its group is one of them.
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

    /// Reads the links of a group as the file has them.
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

    fn read_links(&self, id: GroupId, at: ObjectAt) -> Result<Vec<LinkEntry>> {
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
                // A link that leads nowhere, or to what cannot be read, stays as it is.
                target => self.files.follow(at, target).unwrap_or(None),
            };
            let at = addr.and_then(|addr| keys.get(&(addr.addr, addr.file)));
            // An object may have several names; the model then has a variable for each.
            let is_named = |key: &&ObjectKey| *name(self.model, **key) == *link.name;
            let key = at.and_then(|keys| keys.iter().find(is_named).or(keys.first())).copied();
            let key = key.or_else(|| types.get(&*link.name).copied());
            LinkEntry { name: link.name, charset: link.charset, key, target: Some(link.target) }
        };
        Ok(links.into_iter().map(entry).collect())
    }

    /// The objects that a group has in the model, by their addresses.
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

    /// The types of a group by their names: the model does not have their addresses.
    fn types_by_name(&self, id: GroupId) -> BTreeMap<&[u8], ObjectKey> {
        let types = self.model.group(id).into_iter().flat_map(|group| &group.types);
        let named =
            types.filter_map(|&ty| Some((&*self.model.user_type(ty)?.name, ObjectKey::Type(ty))));
        let mut by_name = BTreeMap::new();
        by_name.extend(named);
        by_name
    }
}

//! The part of the walk that takes in objects that no group leads to any more, in a file whose groups are damaged.

use hashbrown::HashSet;
use zonda_hdf5::message::{Link, LinkTarget};
use zonda_hdf5::salvage::{FoundObject, find_objects};
use zonda_hdf5::{FileAddr, ObjectKind, links};

use crate::fault::HdfResult;
use crate::files::ObjectAt;
use crate::model::{GroupId, SkipReason};
use crate::walk::{NamedObject, Walk, WalkFailure};
use zonda_model::DimId;

impl Walk<'_> {
    /// Looks for objects that the walk did not meet, and puts them into the root group, under their names where a
    /// group still has these. A group that is found keeps its members; if it has no name, its members are put into
    /// the root group, because it may be the root group.
    pub(crate) fn search(&mut self) -> Result<(), WalkFailure> {
        let fail = |error| WalkFailure { path: String::from("/"), error };
        let found = self.find_unmet().map_err(fail)?;
        let (groups, others) = self.sorted(found).map_err(fail)?;
        let mut taken = self.taken();
        self.add_found_groups(groups, &mut taken)?;
        for FoundObject { addr, name } in others {
            if !self.met.insert(addr) {
                continue;
            }
            let name = name.unwrap_or_else(|| links::unnamed_link(addr).name);
            let name = free_name(&mut taken, &name, addr);
            self.note_skipped(GroupId::ROOT, Some(&name), SkipReason::FoundByBytes);
            let link = Link { name, ..links::unnamed_link(addr) };
            self.members(GroupId::ROOT, self.files.root(), vec![link]).map_err(fail)?;
        }
        Ok(())
    }

    /// Looks through the bytes of the file for objects that were not met.
    fn find_unmet(&self) -> HdfResult<Vec<FoundObject>> {
        let file = self.files.main();
        let (met, root, extension) = (&self.met, file.root(), file.superblock().extension);
        let known = |addr: FileAddr| met.contains(&addr) || addr == root || Some(addr) == extension;
        find_objects(file, &known)
    }

    /// Takes in the groups that were found and are in none of the others found.
    fn add_found_groups(
        &mut self,
        groups: Vec<(FoundObject, Vec<Link>)>,
        taken: &mut HashSet<Box<[u8]>>,
    ) -> Result<(), WalkFailure> {
        let inner: HashSet<FileAddr> =
            groups.iter().flat_map(|(_, links)| links.iter().filter_map(hard)).collect();
        let mut waiting = Vec::new();
        for (group, members) in groups {
            if inner.contains(&group.addr) || !self.met.insert(group.addr) {
                continue;
            }
            let at = ObjectAt { file: 0, addr: group.addr };
            match group.name {
                Some(name) => {
                    let name = free_name(taken, &name, group.addr);
                    self.note_skipped(GroupId::ROOT, Some(&name), SkipReason::FoundByBytes);
                    waiting.push((Some(GroupId::ROOT), name, at));
                }
                None => {
                    let inner = self.add_members_to_root(at, members, taken);
                    let inner =
                        inner.map_err(|error| WalkFailure { path: String::from("/"), error })?;
                    waiting.extend(
                        inner.into_iter().map(|(name, at)| (Some(GroupId::ROOT), name, at)),
                    );
                }
            }
        }
        waiting.reverse();
        self.groups(waiting)
    }

    /// Puts what a group without a name leads to, and was not met, into the root group; gives the groups
    /// among that.
    fn add_members_to_root(
        &mut self,
        at: ObjectAt,
        members: Vec<Link>,
        taken: &mut HashSet<Box<[u8]>>,
    ) -> HdfResult<Vec<NamedObject>> {
        let members: Vec<Link> = members
            .into_iter()
            .filter(|link| hard(link).is_none_or(|addr| !self.met.contains(&addr)))
            .map(|link| Link {
                name: match hard(&link) {
                    Some(addr) => free_name(taken, &link.name, addr),
                    None => link.name.clone(),
                },
                ..link
            })
            .collect();
        if !members.is_empty() {
            self.adopt(at, self.files.main().root());
        }
        self.members(GroupId::ROOT, at, members)
    }

    /// Moves variables of the root group to the groups that their dimensions are in: a variable has dimensions of its
    /// group, or of groups around it, only. To be called when dimensions are known.
    pub(crate) fn settle(&mut self) {
        let vars = self.model.group_mut(GroupId::ROOT).map(|root| std::mem::take(&mut root.vars));
        let mut kept = Vec::new();
        for mut var in vars.unwrap_or_default() {
            let of_dims = var.dims.iter().filter_map(|id| Some(self.model.dim(*id)?.group));
            let groups: HashSet<GroupId> = of_dims.collect();
            let depth = |group: &GroupId| self.model.lineage(*group).count();
            let inner = groups.iter().copied().max_by_key(depth).unwrap_or(GroupId::ROOT);
            if inner == GroupId::ROOT {
                kept.push(var);
                continue;
            }
            let around: Vec<ObjectAt> = self.model.lineage(inner).map(|group| group.at).collect();
            let is_around =
                |id: &GroupId| self.model.group(*id).is_some_and(|it| around.contains(&it.at));
            if !groups.iter().all(is_around) {
                // No group sees all of these dimensions: which ones the variable has is not known.
                var.dims.iter_mut().for_each(|id| *id = DimId(-1));
                kept.push(var);
            } else if let Some(group) = self.model.group_mut(inner) {
                let mut taken = group.vars.iter().map(|var| var.name.clone()).collect();
                var.name = free_name(&mut taken, &var.name, var.at.addr);
                group.vars.push(var);
            }
        }
        if let Some(root) = self.model.group_mut(GroupId::ROOT) {
            root.vars = kept;
        }
    }

    /// Makes a group that was found the root group, if the root group itself cannot be read.
    fn adopt(&mut self, at: ObjectAt, root: FileAddr) {
        if self.files.main().object(root).is_err()
            && let Some(group) = self.model.group_mut(GroupId::ROOT)
            && group.at.addr == root
        {
            group.at = at;
        }
    }

    /// Splits what was found into groups, with their links, and other objects.
    #[expect(clippy::type_complexity, reason = "two lists")]
    fn sorted(
        &self,
        found: Vec<FoundObject>,
    ) -> HdfResult<(Vec<(FoundObject, Vec<Link>)>, Vec<FoundObject>)> {
        let file = self.files.main();
        let (mut groups, mut others) = (Vec::new(), Vec::new());
        for found in found {
            let Ok(object) = file.object(found.addr) else { continue };
            match object.kind() {
                ObjectKind::Group => groups.push((found, object.links_with_faults(file)?.0)),
                _ => others.push(found),
            }
        }
        Ok((groups, others))
    }

    /// Names that are in the root group already.
    fn taken(&self) -> HashSet<Box<[u8]>> {
        let root = self.model.group(GroupId::ROOT);
        let vars = root.into_iter().flat_map(|root| root.vars.iter().map(|var| var.name.clone()));
        let groups = root.into_iter().flat_map(|root| root.children.iter());
        let groups = groups.filter_map(|id| Some(self.model.group(*id)?.name.clone()));
        let dims = self.model.dims.iter().flatten().map(|dim| dim.name.clone());
        vars.chain(groups).chain(dims).collect()
    }
}

fn hard(link: &Link) -> Option<FileAddr> {
    match link.target {
        LinkTarget::Hard(addr) => Some(addr),
        _ => None,
    }
}

/// The name, or one made of it and the address where another object has it.
fn free_name(taken: &mut HashSet<Box<[u8]>>, name: &[u8], addr: FileAddr) -> Box<[u8]> {
    let mut free: Box<[u8]> = name.into();
    if taken.contains(&free) {
        free = [name, format!("_at_{}", addr.0).as_bytes()].concat().into();
    }
    taken.insert(free.clone());
    free
}

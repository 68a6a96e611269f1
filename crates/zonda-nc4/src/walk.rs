//! The walk over a file's objects that makes the model, in the order of the reference.
//!
//! The links of a group are followed in order of creation where the group keeps that order, else by name.
//! Datasets and named types are taken in at once; groups come after them, depth first. The target of a soft link has
//! the link's name. Links that lead nowhere are left out (the reference then refuses the whole file), and so are
//! links to files that are refused or cannot be read; of these, external links are listed as gaps. A link from a
//! group to itself, or to one it is in, is left out. A damaged object is listed as a variable of type 0, so
//! that others can be read and whoever asks for it gets the error.

mod dataset;
mod dims;

use zonda_hdf5::message::{Link, LinkTarget};
use zonda_hdf5::{File, FileAddr, HdfError, Object, ObjectKind, ReadAhead};
use zonda_model::{DimId, MAX_NAME_BYTES};

use crate::Damaged;
use crate::element_form::ElementForm;
use crate::fault::HdfResult;
use crate::files::{Files, ObjectAt};
use crate::hidden_atts;
use crate::model::{Dim, Gap, Group, GroupId, Model, SkipReason, SkippedObject, Var};
use crate::tuning::WALK_REVISITS;
use crate::types::Types;
use dataset::AtomicTypes;
use dims::UnmatchedVar;

/// Comes before the name of a variable in the file, if a dimension has that name and is not the variable's first.
pub(crate) const NON_COORD: &[u8] = b"_nc4_non_coord_";
/// The name of a link and the object that it leads to.
pub(crate) type NamedObject = (Box<[u8]>, ObjectAt);

/// The model in the making.
pub(crate) struct Walk<'a> {
    pub(crate) files: &'a Files,
    pub(crate) model: Model,
    types: Types,
    atomic_types: AtomicTypes,
    pub(crate) next_dim: i32,
    /// For each group the variables whose dimensions are found after the walk.
    pub(crate) unmatched: Vec<Vec<UnmatchedVar>>,
    /// All scales with the groups they are in and the ids they have, also those that share one.
    pub(crate) scales: Vec<(ObjectAt, GroupId, DimId)>,
    seen_groups: hashbrown::HashSet<ObjectAt>,
    revisits_left: u64,
    /// What was read ahead, and of which file.
    ahead: (u16, ReadAhead),
    /// What becomes of objects that cannot be read.
    damaged: Damaged,
    /// Addresses of the objects of the file itself that were met; the search for lost objects leaves them out.
    pub(crate) met: hashbrown::HashSet<FileAddr>,
    /// A group is damaged, or may be, so that the walk may have missed objects.
    pub(crate) misses: bool,
}

/// Why the walk ends: what failed, and in which group.
pub(crate) struct WalkFailure {
    pub(crate) path: String,
    pub(crate) error: HdfError,
}

impl<'a> Walk<'a> {
    /// Walks the whole file; twice where variables come before the types that they have.
    pub(crate) fn run(files: &'a Files, damaged: Damaged) -> Result<Model, WalkFailure> {
        let mut walk = Walk::begin(files, damaged, Types::default())?;
        if let Some(types) = walk.types.foretold() {
            walk = Walk::begin(files, damaged, types)?;
        }
        dims::match_all(&mut walk);
        if damaged == Damaged::Search && walk.misses {
            walk.settle();
        }
        dims::lengths(&mut walk.model);
        walk.model.types = std::mem::take(&mut walk.types.listed);
        walk.model.forms = walk.types;
        Ok(walk.model)
    }

    /// Walks through all objects, with the named types that an earlier walk found.
    fn begin(files: &'a Files, damaged: Damaged, types: Types) -> Result<Walk<'a>, WalkFailure> {
        let mut walk = Walk {
            files,
            model: Model::default(),
            types,
            atomic_types: AtomicTypes::default(),
            next_dim: 0,
            unmatched: Vec::new(),
            scales: Vec::new(),
            seen_groups: hashbrown::HashSet::new(),
            revisits_left: WALK_REVISITS,
            ahead: Default::default(),
            damaged,
            met: hashbrown::HashSet::new(),
            misses: !files.main().faults().is_empty(),
        };
        let root = files.root();
        walk.groups(vec![(None, Box::from(&b"/"[..]), root)])?;
        if damaged == Damaged::Search && walk.misses {
            walk.search()?;
        }
        Ok(walk)
    }

    /// Takes in groups, depth first. It has a stack and does not recurse, because the file decides how deep groups are.
    pub(crate) fn groups(
        &mut self,
        mut waiting: Vec<(Option<GroupId>, Box<[u8]>, ObjectAt)>,
    ) -> Result<(), WalkFailure> {
        while let Some((parent, name, at)) = waiting.pop() {
            let Some(id) = self.add_group(parent, name, at) else {
                break;
            };
            let inner = match self.group(id, at) {
                Err(error) if self.may_skip(&error) => {
                    self.misses = true;
                    self.note_skipped(id, None, SkipReason::Damaged(error));
                    Vec::new()
                }
                read => {
                    read.map_err(|error| WalkFailure { path: self.model.group_path(id), error })?
                }
            };
            // The last pushed is the first popped.
            waiting.extend(inner.into_iter().rev().map(|(name, at)| (Some(id), name, at)));
        }
        Ok(())
    }

    fn add_group(
        &mut self,
        parent: Option<GroupId>,
        name: Box<[u8]>,
        at: ObjectAt,
    ) -> Option<GroupId> {
        let id = GroupId(u16::try_from(self.model.groups.len()).ok()?);
        if let Some(parent) = parent.and_then(|parent| self.model.group_mut(parent)) {
            parent.children.push(id);
        }
        self.model.groups.push(Group::new(name, parent, at));
        self.unmatched.push(Vec::new());
        Some(id)
    }

    /// Takes in the members of one group, and gives those that are groups.
    fn group(&mut self, id: GroupId, at: ObjectAt) -> HdfResult<Vec<NamedObject>> {
        let file = self.files.get(at.file)?;
        let object = self.object(&file, at)?;
        if id == GroupId::ROOT {
            let strict = object.attribute(&file, hidden_atts::STRICT);
            self.model.is_classic = self.read_or_skip(id, None, strict)?.flatten().is_some();
        }
        let links = if self.damaged == Damaged::Refuse {
            object.links(&file)?
        } else {
            let (links, faults) = object.links_with_faults(&file)?;
            let damage = object.header().damage.as_deref().cloned();
            for error in faults.into_iter().chain(damage) {
                self.misses = true;
                self.note_skipped(id, None, SkipReason::Damaged(error));
            }
            links
        };
        self.members(id, at, links)
    }

    /// Whether an object with this error is skipped; otherwise the walk fails.
    fn may_skip(&self, error: &HdfError) -> bool {
        self.damaged != Damaged::Refuse && !matches!(error, HdfError::Storage(_))
    }

    /// Lists a group, or an object in it, as skipped.
    pub(crate) fn note_skipped(&mut self, group: GroupId, name: Option<&[u8]>, why: SkipReason) {
        let mut path = self.model.group_path(group);
        if let Some(name) = name {
            if !path.ends_with('/') {
                path.push('/');
            }
            path.push_str(&String::from_utf8_lossy(name));
        }
        self.model.faults.push(SkippedObject { path, why });
    }

    /// What was read; `None` where it is damaged and may be skipped, which is noted.
    fn read_or_skip<T>(
        &mut self,
        group: GroupId,
        name: Option<&[u8]>,
        read: HdfResult<T>,
    ) -> HdfResult<Option<T>> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if self.may_skip(&error) => {
                self.note_skipped(group, name, SkipReason::Damaged(error));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes in the objects that links of a group lead to, and gives those that are groups.
    pub(crate) fn members(
        &mut self,
        id: GroupId,
        at: ObjectAt,
        links: Vec<Link>,
    ) -> HdfResult<Vec<NamedObject>> {
        let again = !self.seen_groups.insert(at);
        let mut inner = Vec::new();
        for link in links {
            if again {
                let Some(left) = self.revisits_left.checked_sub(1) else {
                    break;
                };
                self.revisits_left = left;
            }
            let name = cut_name(&link.name);
            let before = self.listed(id, &inner);
            self.link(id, at, &link, &mut inner)?;
            if self.listed(id, &inner) == before
                && let Some(group) = self.model.group_mut(id)
            {
                group.unlisted.insert(name.into());
            }
        }
        Ok(inner)
    }

    /// How many variables, types, scales and groups are listed so far.
    fn listed(&self, id: GroupId, inner: &[NamedObject]) -> [usize; 4] {
        let group = self.model.group(id);
        let (vars, types) = group.map_or((0, 0), |group| (group.vars.len(), group.types.len()));
        [vars, types, self.scales.len(), inner.len()]
    }

    /// Takes in the object that one link of a group leads to.
    fn link(
        &mut self,
        id: GroupId,
        at: ObjectAt,
        link: &Link,
        inner: &mut Vec<NamedObject>,
    ) -> HdfResult<()> {
        let name = cut_name(&link.name);
        let target = match &link.target {
            LinkTarget::Hard(addr) => ObjectAt { file: at.file, addr: *addr },
            target => match self.files.follow(at, target) {
                Ok(Some(target)) => target,
                Ok(None) => {
                    if let LinkTarget::External { file, .. } = target {
                        self.note_gap(id, name, self.files.absence(at.file, file));
                    }
                    return Ok(());
                }
                // A circle of soft links.
                Err(HdfError::Limit { .. }) => return Ok(()),
                Err(error @ HdfError::Storage(_)) => return Err(error),
                Err(error) => {
                    self.note_gap(id, name, error);
                    return Ok(());
                }
            },
        };
        match self.member(id, name, target) {
            Ok(true) if !self.is_within(id, target) => inner.push((name.into(), target)),
            Ok(_) => {}
            // Another file that cannot be read fails only those calls that need it.
            Err(error @ HdfError::Storage(_)) if target.file != 0 => {
                self.note_gap(id, name, error);
            }
            Err(HdfError::Storage(error)) => return Err(HdfError::Storage(error)),
            Err(error) => {
                self.add_var(id, Var::damaged(stripped(name), target));
                if self.damaged != Damaged::Refuse {
                    // The object may be a group, with members that are now missed.
                    self.misses |= !matches!(error, HdfError::BadValue { .. });
                    self.note_skipped(id, Some(name), SkipReason::Damaged(error));
                }
            }
        }
        Ok(())
    }

    /// Lists a link of a group as a gap.
    fn note_gap(&mut self, group: GroupId, name: &[u8], error: HdfError) {
        let path = self.model.path_in(group, name);
        self.model.gaps.push(Gap { path, error });
    }

    /// Takes in what a link leads to; `true` for a group, which comes later.
    fn member(&mut self, group: GroupId, name: &[u8], at: ObjectAt) -> HdfResult<bool> {
        let file = self.files.get(at.file)?;
        if self.damaged == Damaged::Search && at.file == 0 {
            self.met.insert(at.addr);
        }
        let object = self.object(&file, at)?;
        let kind = object.kind();
        if let Some(damage) = object.header().damage.as_deref()
            && !matches!(kind, ObjectKind::Group | ObjectKind::Dataset)
        {
            // The message that would say what the object is may be the damaged one.
            return Err(damage.clone());
        }
        match kind {
            ObjectKind::Group => return Ok(true),
            ObjectKind::Dataset => self.dataset(group, name, at, &file, &object)?,
            ObjectKind::Datatype => {
                let datatype = object.datatype(&file)?;
                if let Some(form) = ElementForm::of(&datatype) {
                    let id = self.types.add_named(group, name, &datatype, &form);
                    id.into_iter().for_each(|id| {
                        if let Some(group) = self.model.group_mut(group) {
                            group.types.push(id);
                        }
                    });
                }
            }
            ObjectKind::Unknown => {}
        }
        Ok(false)
    }

    /// Reads the header of the object that the walk comes to next, and of those behind it ahead.
    fn object(&mut self, file: &File, at: ObjectAt) -> HdfResult<Object> {
        if self.ahead.0 != at.file {
            self.ahead = (at.file, ReadAhead::default());
        }
        file.object_ahead(at.addr, &mut self.ahead.1)
    }

    /// Whether the object at `at` is the given group or one that it is in.
    fn is_within(&self, group: GroupId, at: ObjectAt) -> bool {
        self.model.lineage(group).any(|group| group.at == at)
    }

    fn add_var(&mut self, group: GroupId, var: Var) {
        if let Some(group) = self.model.group_mut(group) {
            group.vars.push(var);
        }
    }

    /// Lists a dimension.
    pub(crate) fn add_dim(&mut self, id: i32, dim: Dim) {
        let Ok(index) = usize::try_from(id) else {
            return;
        };
        let group = dim.group;
        let dims = &mut self.model.dims;
        if dims.len() <= index {
            dims.resize_with(index.saturating_add(1), || None);
        }
        if let Some(place) = dims.get_mut(index) {
            // Two scales with one id: the later one has it, as in the reference.
            *place = Some(dim);
        }
        if let Some(group) = self.model.group_mut(group)
            && !group.dims.contains(&DimId(id))
        {
            group.dims.push(DimId(id));
        }
    }
}

/// The name, cut to the most bytes that names have in the reference.
fn cut_name(name: &[u8]) -> &[u8] {
    name.get(..MAX_NAME_BYTES).unwrap_or(name)
}

fn stripped(name: &[u8]) -> &[u8] {
    name.strip_prefix(NON_COORD).filter(|rest| !rest.is_empty()).unwrap_or(name)
}

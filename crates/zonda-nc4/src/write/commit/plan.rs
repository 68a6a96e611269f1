//! Which objects a commit writes, and what is to be in them but addresses that are not known yet.
//! What cannot be changed is refused here, before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use zonda_convert::ByteOrder;
use zonda_hdf5::message::{
    ByteOrder as FileOrder, Class, DataLayout, Dataspace, Datatype, LinkTarget, kind,
};
use zonda_hdf5::object_header::{HeaderStyle, NewMessage};
use zonda_hdf5::{FileAddr, HdfError, Sizes};
use zonda_model::{ExtType, NcError, VarId, default_fill};

use super::super::links::{Entry, wanted};
use super::super::objects::{AttMessage, Fixed, Stored};
use super::super::scales::{Scales, User};
use super::super::{Fill, ObjectKey, VarDraft, Writing, element, header, scales};
use crate::attribute::{AttFault, AttList};
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
    pub(super) stored: Stored,
    /// Its first block is at a new place.
    pub(super) is_fresh: bool,
    /// Its attributes that are shown.
    pub(super) atts: Vec<AttMessage>,
    /// Scales that `DIMENSION_LIST` is to name, where that changes.
    pub(super) list: Option<Vec<ObjectKey>>,
    /// Variables that `REFERENCE_LIST` is to name, where that changes.
    pub(super) users: Option<Vec<User>>,
}

/// What a commit writes.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) made: Vec<Made>,
    /// Scales as they then are.
    pub(super) scales: Scales,
    /// Names in groups in which they change.
    pub(super) links: BTreeMap<GroupId, Vec<Entry>>,
}

/// A plan in the making.
struct Planner<'a> {
    files: &'a Files,
    model: &'a Model,
    writing: &'a mut Writing,
    sizes: Sizes,
    keys: BTreeSet<ObjectKey>,
    scales: Scales,
    links: BTreeMap<GroupId, Vec<Entry>>,
    moved: BTreeSet<ObjectKey>,
}

impl Plan {
    pub(super) fn make(files: &Files, model: &Model, writing: &mut Writing) -> Result<Plan> {
        let keys = writing.changed.clone();
        let scales = writing.scales.clone();
        let sizes = files.main().sizes();
        let (links, moved) = (BTreeMap::new(), BTreeSet::new());
        let mut planner = Planner { files, model, writing, sizes, keys, scales, links, moved };
        planner.find_structure()?;
        planner.find_moves()?;
        let keys = std::mem::take(&mut planner.keys);
        let made = keys.into_iter().map(|key| planner.make(key)).collect::<Result<_>>()?;
        Ok(Plan { made, scales: planner.scales, links: planner.links })
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
        self.scales = Scales::of(model, attach, &self.writing.apart);
        self.keys.extend(self.scales.changed_since(&self.writing.scales));
        let groups: BTreeSet<GroupId> =
            self.keys.iter().filter_map(|key| self.group_of(*key)).collect();
        for group in groups {
            self.load_links(group)?;
            let before = self.writing.links.get(&group).map_or(&[][..], |links| links);
            let after = wanted(model, &self.scales, &self.writing.apart, group, before);
            if after == *before && self.place(ObjectKey::Group(group)).is_some() {
                continue;
            }
            let new = after.iter().filter(|entry| entry.target.is_none());
            let new: Vec<_> = new.filter_map(|entry| entry.key).collect();
            let new: Vec<_> = new.into_iter().filter(|key| self.place(*key).is_none()).collect();
            self.keys.extend(new);
            self.keys.insert(ObjectKey::Group(group));
            self.links.insert(group, after);
        }
        // Placeholders that are no more, and dimensions that are variables.
        let scales = &self.scales;
        self.keys.retain(|key| match key {
            ObjectKey::Scale(_) => scales.dim_of.contains_key(key),
            _ => true,
        });
        Ok(())
    }

    /// Finds headers that have to go elsewhere: those that no single write within a sector changes,
    /// and those of variables that become scales or are none any more. These change with the names
    /// of their group, in which a placeholder goes or comes.
    fn find_moves(&mut self) -> Result<()> {
        let mut waiting: Vec<_> = self.keys.iter().copied().collect();
        while let Some(key) = waiting.pop() {
            let Some(at) = self.place(key) else { continue };
            if !self.writing.objects.contains_key(&key) {
                let stored = Stored::load(self.files.main(), at);
                let stored = stored.map_err(|fixed| self.fixed(key, fixed))?;
                self.writing.objects.insert(key, stored);
            }
            let Some(stored) = self.writing.objects.get(&key) else { continue };
            let role = |scales: &Scales| scales.dim_of.get(&key).copied();
            let (before, after) = (role(&self.writing.scales), role(&self.scales));
            let is_switchable = stored.is_switchable(self.files.main()) && before == after;
            if is_switchable || self.moved.contains(&key) {
                continue;
            }
            let ObjectKey::Var(group, _) = key else {
                return Err(self.fixed(key, CROSSES));
            };
            // Others know a scale by its place.
            if before.is_some() && before == after {
                return Err(self.fixed(key, CROSSES));
            }
            self.moved.insert(key);
            // What refers to it.
            let mut referrers = vec![ObjectKey::Group(group)];
            referrers.extend(self.scales.lists.get(&key).into_iter().flatten());
            for referrer in referrers {
                if self.keys.insert(referrer) {
                    waiting.push(referrer);
                }
            }
            if !self.links.contains_key(&group) {
                self.load_links(group)?;
                let links = self.writing.links.get(&group).cloned().unwrap_or_default();
                self.links.insert(group, links);
            }
        }
        Ok(())
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
        if let Some(stored) = self.writing.objects.get(&key) {
            return Some(ObjectAt { file: 0, addr: stored.space.addr });
        }
        let at = match key {
            ObjectKey::Group(_) if self.writing.is_new => None,
            ObjectKey::Group(id) => self.model.group(id).map(|group| group.at),
            ObjectKey::Type(_) => None,
            ObjectKey::Scale(id) => {
                let is_scale = self.writing.scales.dim_of.contains_key(&key);
                self.model.dim(id).filter(|_| is_scale).and_then(|dim| dim.at)
            }
            ObjectKey::Var(group, id) => self.model.var(group, id).map(|var| var.at),
        };
        at.filter(|at| *at != ObjectAt::NOWHERE)
    }

    /// Reads the names in a group as the file has them.
    fn load_links(&mut self, group: GroupId) -> Result<()> {
        if !self.writing.links.contains_key(&group) {
            let links = match self.place(ObjectKey::Group(group)) {
                Some(at) => self.read_links(group, at)?,
                None => Vec::new(),
            };
            self.writing.links.insert(group, links);
        }
        Ok(())
    }

    fn read_links(&self, id: GroupId, at: ObjectAt) -> Result<Vec<Entry>> {
        let file = self.files.main();
        let fail = |error| hdf(self.model.group_path(id), error);
        if at.file != 0 {
            return Err(self.fixed(ObjectKey::Group(id), Fixed::Foreign("it is in another file")));
        }
        let links = file.object(at.addr).and_then(|object| object.links(file)).map_err(fail)?;
        let keys = self.keys_by_place(id);
        let types = self.types_by_name(id);
        let entry = |link: zonda_hdf5::message::Link| {
            let addr = match &link.target {
                LinkTarget::Hard(addr) => Some(ObjectAt { file: 0, addr: *addr }),
                target => self.files.follow(at, target),
            };
            let key = addr.and_then(|addr| keys.get(&(addr.addr, addr.file)).copied());
            let key = key.or_else(|| types.get(&*link.name).copied());
            Entry { name: link.name, charset: link.charset, key, target: Some(link.target) }
        };
        Ok(links.into_iter().map(entry).collect())
    }

    /// The objects that a group has in the model, by where they are.
    fn keys_by_place(&self, id: GroupId) -> BTreeMap<(FileAddr, u16), ObjectKey> {
        let mut keys = BTreeMap::new();
        let Some(group) = self.model.group(id) else { return keys };
        let children = group.children.iter().map(|&child| ObjectKey::Group(child));
        let dims = group.dims.iter().map(|&dim| ObjectKey::Scale(dim));
        let vars = (0..).map(VarId).zip(&group.vars).map(|(var, _)| ObjectKey::Var(id, var));
        for key in children.chain(dims).chain(vars) {
            if let Some(at) = self.place(key) {
                keys.insert((at.addr, at.file), key);
            }
        }
        keys
    }

    /// The types of a group, of which the model does not say where they are.
    fn types_by_name(&self, id: GroupId) -> BTreeMap<&[u8], ObjectKey> {
        let types = self.model.group(id).into_iter().flat_map(|group| &group.types);
        let named = types.filter_map(|&ty| {
            Some((&*self.model.user_type(ty)?.name, ObjectKey::Type(ty)))
        });
        named.collect()
    }

    /// What an object will be.
    fn make(&mut self, key: ObjectKey) -> Result<Made> {
        let known = self.writing.objects.get(&key).cloned();
        let is_new = known.is_none();
        let atts = self.attributes(key)?;
        let mut stored = match known {
            Some(stored) => stored,
            None => self.new_object(key).map_err(|error| hdf(self.path(key), error))?,
        };
        if self.moved.contains(&key) {
            stored.move_away();
        }
        let before = &self.writing.scales;
        let list = self.scales.lists.get(&key);
        let list_changed = list != before.lists.get(&key);
        let users = self.scales.users.get(&key);
        let users_moved =
            users.is_some_and(|users| users.iter().any(|(user, _)| self.moved.contains(user)));
        let users_changed = users_moved || users != before.users.get(&key);
        let role_changed = self.scales.dim_of.get(&key) != before.dim_of.get(&key);
        let mut made = Made {
            key,
            stored,
            is_fresh: false,
            atts,
            list: list.filter(|_| list_changed).cloned(),
            users: users.filter(|_| users_changed).cloned(),
        };
        let result = (|| {
            if let ObjectKey::Var(group, id) = key
                && let Some(var) = self.model.var(group, id)
            {
                self.update(&mut made.stored, var)?;
            }
            if list_changed {
                made.stored.hide(hidden::DIMENSION_LIST, None);
            }
            if users_changed {
                made.stored.hide(hidden::REFERENCE_LIST, None);
            }
            if is_new || role_changed || list_changed || self.is_renamed(key) {
                self.mark(&mut made.stored, key)?;
            }
            Ok(())
        })();
        result.map_err(|error: HdfError| hdf(self.path(key), error))?;
        Ok(made)
    }

    /// Whether the name that an object has in the file is not what it should be.
    fn is_renamed(&self, key: ObjectKey) -> bool {
        let Some(group) = self.group_of(key) else { return false };
        let name = |links: &[Entry]| {
            links.iter().find(|entry| entry.key == Some(key)).map(|entry| entry.name.clone())
        };
        let after = self.links.get(&group).and_then(|links| name(links));
        after.is_some() && after != self.writing.links.get(&group).and_then(|links| name(links))
    }

    /// Attributes that say what an object is for netCDF.
    fn mark(&self, stored: &mut Stored, key: ObjectKey) -> std::result::Result<(), HdfError> {
        let file = self.files.main();
        let dim = self.scales.dim_of.get(&key);
        let (mut name, mut coordinates) = (None, None);
        match key {
            ObjectKey::Scale(id) => {
                let len = self.model.dim(id).map_or(0, |dim| dim.len);
                name = Some(scales::placeholder_name(len));
            }
            ObjectKey::Var(group, id) => {
                let var = self.model.var(group, id);
                if let Some(var) = var.filter(|var| !var.dims.is_empty()) {
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
    fn new_object(&self, key: ObjectKey) -> std::result::Result<Stored, HdfError> {
        let (model, sizes) = (self.model, self.sizes);
        let missing = HdfError::Missing { structure: "object", at: 0, what: "its definition" };
        let messages = match key {
            ObjectKey::Group(_) => header::group(sizes)?,
            ObjectKey::Type(id) => {
                let ty = model.user_type(id).and_then(|ty| ty.stored.as_deref());
                let message = header::datatype(ty.ok_or(missing)?, sizes)?;
                // Types have no attributes in netCDF.
                return Ok(Stored::new(HeaderStyle::default(), vec![message]));
            }
            ObjectKey::Scale(id) => header::placeholder(model.dim(id).ok_or(missing)?, sizes)?,
            ObjectKey::Var(group, id) => {
                let var = model.var(group, id).ok_or(missing.clone())?;
                let draft = var.draft.as_deref().ok_or(missing)?;
                let space = header::shape(model, var);
                let place = unwritten(var, draft);
                let fill = fill_in_file(var, draft);
                header::variable(
                    &space,
                    &draft.datatype,
                    &place,
                    &draft.stored_filters,
                    fill,
                    sizes,
                )?
            }
        };
        let attribute_order = self.writing.how.attribute_order;
        Ok(Stored::new(header::style(attribute_order), messages))
    }

    /// Brings the messages of a variable that is in the file up to date.
    fn update(&self, stored: &mut Stored, var: &Var) -> std::result::Result<(), HdfError> {
        let found = stored.messages.iter().find(|message| message.kind == kind::DATASPACE);
        if let Some(message) = found.filter(|message| message.flags & 2 == 0) {
            let reader = zonda_hdf5::Reader::new("dataspace", &message.body, 0, self.sizes);
            let space = Dataspace::decode(reader, self.files.main().limits())?;
            if *space.dims != *var.extent {
                let space = Dataspace { dims: var.extent.to_vec(), ..space };
                let flags = message.flags;
                let new = NewMessage { flags, ..header::dataspace(&space, self.sizes)? };
                stored.replace(new);
            }
        }
        Ok(())
    }

    /// Attributes that are shown, or that netCDF has no type for.
    fn attributes(&mut self, key: ObjectKey) -> Result<Vec<AttMessage>> {
        let details = match key {
            ObjectKey::Group(id) => self.model.group(id).and_then(|group| group.details.get()),
            ObjectKey::Var(group, id) => {
                self.model.var(group, id).and_then(|var| var.details.get())
            }
            ObjectKey::Scale(_) | ObjectKey::Type(_) => None,
        };
        let file = self.files.main();
        let mut out = Vec::new();
        if let Some(Ok(AttList::Edited(list))) = details.map(|details| &details.atts) {
            let (heap, space) = (&mut self.writing.heap, &mut self.writing.space);
            let attributes = list.attributes(self.model, &mut |form, fetch, src, dst| {
                element::encode(form, heap, space, fetch, src, dst)
            });
            let attributes = attributes.map_err(|fault| match fault {
                AttFault::Hdf(error) => hdf(self.path(key), error),
                AttFault::Refused(code) => Nc4Error::Refused { object: self.path(key), code },
            })?;
            for attribute in attributes {
                let message = AttMessage::new(file, &attribute);
                out.push(message.map_err(|error| hdf(self.path(key), error))?);
            }
            return Ok(out);
        }
        let fail = |error| hdf(self.path(key), error);
        let Some(at) = self.place(key) else { return Ok(out) };
        let attributes = file.object(at.addr).and_then(|object| object.attributes(file));
        let attributes = attributes.map_err(fail)?;
        for index in 0..attributes.len() {
            if !hidden::is_reserved(attributes.name(index)) {
                let attribute = attributes.decode(index, file).map_err(fail)?;
                out.push(AttMessage::new(file, &attribute).map_err(fail)?);
            }
        }
        Ok(out)
    }

    /// The path of an object, for messages.
    fn path(&self, key: ObjectKey) -> String {
        match key {
            ObjectKey::Group(id) => self.model.group_path(id),
            ObjectKey::Type(_) | ObjectKey::Scale(_) | ObjectKey::Var(..) => {
                self.inside(self.group_of(key), super::super::links::name(self.model, key))
            }
        }
    }

    fn inside(&self, group: Option<GroupId>, name: Box<[u8]>) -> String {
        let mut path = group.map_or_else(String::new, |group| self.model.group_path(group));
        if !path.ends_with('/') {
            path.push('/');
        }
        path.push_str(&String::from_utf8_lossy(&name));
        path
    }

    fn fixed(&self, key: ObjectKey, fixed: Fixed) -> Nc4Error {
        match fixed {
            Fixed::Damaged(error) => hdf(self.path(key), error),
            Fixed::Foreign(why) => Nc4Error::Refused {
                object: format!("{}: cannot be changed yet: {why}", self.path(key)),
                code: NcError::NotBuilt,
            },
        }
    }
}

/// Why a header stays as it is.
const CROSSES: Fixed = Fixed::Foreign("its header is not within one sector");

/// Where the elements of a variable are that nobody wrote to.
fn unwritten(var: &Var, draft: &VarDraft) -> DataLayout {
    let size = u64::from(draft.datatype.size);
    let bytes = var.extent.iter().fold(size, |bytes, &len| bytes.saturating_mul(len));
    match &draft.layout {
        super::super::Layout::Contiguous => DataLayout::Contiguous { addr: None, len: Some(bytes) },
        super::super::Layout::Compact => {
            DataLayout::Compact { data: vec![0; usize::try_from(bytes).unwrap_or(0)].into() }
        }
        super::super::Layout::Chunked(chunk) => header::chunked(chunk.clone(), draft.datatype.size),
    }
}

/// The fill value in file form; `None` where elements are left undefined.
fn fill_in_file(var: &Var, draft: &VarDraft) -> Option<Box<[u8]>> {
    let size = usize::try_from(draft.datatype.size).ok()?;
    let native = match draft.fill() {
        Fill::None => return None,
        Fill::User(value) => value.bytes().to_vec(),
        Fill::Default => match ExtType::from_nc_type(var.nc_type) {
            Some(ext) => default_fill(ext).into_iter().collect(),
            None => vec![0; size],
        },
    };
    let mut value = native;
    value.resize(size, 0);
    if order(&draft.datatype).is_some_and(|order| order != ByteOrder::NATIVE) {
        value.reverse();
    }
    Some(value.into())
}

/// Byte order of a number.
fn order(datatype: &Datatype) -> Option<ByteOrder> {
    let order = match &datatype.class {
        Class::FixedPoint(bits) => bits.order,
        Class::FloatingPoint(bits) => bits.order,
        _ => return None,
    };
    match order {
        FileOrder::Little => Some(ByteOrder::Little),
        FileOrder::Big => Some(ByteOrder::Big),
        FileOrder::Vax => None,
    }
}

//! User-defined types: named ones of the file, and those that a variable has for itself.
//!
//! A type that only a variable has gets a name of its own (`_AnonymousCompound1`), as in the
//! reference since 4.9.3. A member that netCDF has no type for ends a compound there: the type stays
//! listed with the members before it, and the variable that brought it is left out. Later variables
//! of that type find it and are shown.
//!
//! A variable may have a type of a group that comes after it, which is in its header as a copy. So
//! that it is not taken for a type of its own, the walk is made again where that was so, with the
//! types that are [`foretold`](Types::foretold) then.

use hashbrown::{HashMap, HashSet};
use zonda_format::FIRST_USER_TYPE;
use zonda_hdf5::message::Datatype;

use crate::element_form::{ElementForm, ElementShape, StructMember};
use crate::model::{Field, GroupId, TypeEntry, UserClass, UserType};

/// The types of a file: while it is walked, and later to find the types of attributes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    pub(crate) listed: Vec<TypeEntry>,
    /// Compounds of which netCDF shows only the first fields, and how many it shows.
    partial: HashMap<i32, usize>,
    /// Number of the first type of each form.
    by_form: HashMap<Box<[u8]>, i32>,
    /// Types without a name in the file, and the group of the first variable that has each.
    anonymous: HashMap<i32, GroupId>,
    /// Named types that an earlier walk found: they are listed before this walk comes to them.
    foretold: HashMap<(GroupId, Box<[u8]>), i32>,
    /// Groups of variables whose types have members of types that were not found yet.
    lacking: HashSet<GroupId>,
    /// A variable may have a named type that the walk came to after it.
    misses: bool,
}

impl Types {
    /// Number of the type of a variable or attribute; `None` where netCDF has none.
    pub(crate) fn of(&self, form: &ElementForm) -> Option<i32> {
        form.atomic().or_else(|| self.user(form))
    }

    fn user(&self, form: &ElementForm) -> Option<i32> {
        if self.by_form.is_empty() { None } else { self.by_form.get(&form.identity()).copied() }
    }

    fn of_member(&self, form: &ElementForm) -> Option<i32> {
        form.atomic_member().or_else(|| self.user(form))
    }

    /// Lists a type of the file. Named numbers are no types of netCDF and are left out.
    pub(crate) fn add_named(
        &mut self,
        group: GroupId,
        name: &[u8],
        datatype: &Datatype,
        form: &ElementForm,
    ) -> Option<i32> {
        match form.shape {
            ElementShape::Number(..)
            | ElementShape::Integer(_)
            | ElementShape::Float(_)
            | ElementShape::Reference(_) => None,
            _ => Some(self.named(group, name.into(), datatype, form)),
        }
    }

    fn named(
        &mut self,
        group: GroupId,
        name: Box<[u8]>,
        datatype: &Datatype,
        form: &ElementForm,
    ) -> i32 {
        let key = (group, name);
        if let Some(id) = self.foretold.remove(&key) {
            return id;
        }
        let first = self.by_form.get(&form.identity());
        // Within one group the order decides, as in the reference: netCDF-C writes types first there.
        let is_other = |at: &GroupId| *at != group;
        self.misses |= first.and_then(|id| self.anonymous.get(id)).is_some_and(is_other);
        // It may be the type that a member of an earlier type has.
        self.misses |= self.lacking.iter().any(is_other);
        self.add(group, key.1, datatype, form).0
    }

    /// The named types of the file, in its order, for a second walk; `None` where a second walk would find nothing
    /// else.
    pub(crate) fn foretold(&self) -> Option<Types> {
        if !self.misses {
            return None;
        }
        let mut all = Types::default();
        for (id, ty) in (0..).map(number).zip(&self.listed) {
            if let Some(datatype) = ty.stored().filter(|_| !self.anonymous.contains_key(&id))
                && let Some(form) = ElementForm::of(datatype)
            {
                let (id, _) = all.add(ty.group, ty.name.clone(), datatype, &form);
                all.foretold.insert((ty.group, ty.name.clone()), id);
            }
        }
        Some(all)
    }

    /// Lists the type of a variable; `None` where it is not complete.
    pub(crate) fn add_anonymous(
        &mut self,
        group: GroupId,
        datatype: &Datatype,
        form: &ElementForm,
    ) -> Option<i32> {
        let class = match form.shape {
            ElementShape::Reference(_) => return None,
            ElementShape::Enum(..) => "Enum",
            ElementShape::Compound(_) => "Compound",
            ElementShape::Sequence(_) => "Vlen",
            ElementShape::Opaque(_) => "Opaque",
            _ => "Unknown",
        };
        let nth = self.anonymous.len().saturating_add(1);
        let name = format!("_Anonymous{class}{nth}").into_bytes();
        let (id, complete) = self.add(group, name.into(), datatype, form);
        self.anonymous.insert(id, group);
        if !complete {
            self.lacking.insert(group);
        }
        complete.then_some(id)
    }

    /// Notes the form of a type that was defined since the file was opened and is settled now, so that
    /// attributes of that type find it.
    pub(crate) fn learn(&mut self, nc_type: i32, form: &ElementForm) {
        self.by_form.entry(form.identity()).or_insert(nc_type);
    }

    fn add(
        &mut self,
        group: GroupId,
        name: Box<[u8]>,
        datatype: &Datatype,
        form: &ElementForm,
    ) -> (i32, bool) {
        let (class, complete) = self.class(form);
        let id = number(self.listed.len());
        if let (UserClass::Compound(fields), false) = (&class, complete) {
            self.partial.insert(id, fields.len());
        }
        let shown = UserType { name, group, ..UserType::described(form.size, class) };
        self.listed.push(TypeEntry::found(shown, datatype.clone()));
        self.by_form.entry(form.identity()).or_insert(id);
        (id, complete)
    }

    fn class(&self, form: &ElementForm) -> (UserClass, bool) {
        match &form.shape {
            ElementShape::Compound(parts) => {
                let fields: Vec<Field> = parts.iter().map_while(|part| self.field(part)).collect();
                let complete = fields.len() == parts.len();
                (UserClass::Compound(fields), complete)
            }
            ElementShape::Enum(base, members) => {
                let base = base.atomic().unwrap_or(0);
                (UserClass::Enum { base, members: members.clone() }, base != 0)
            }
            ElementShape::Opaque(_) => (UserClass::Opaque, true),
            ElementShape::Sequence(base) => match self.of_member(base) {
                Some(base) => (UserClass::Vlen { base }, true),
                None => (UserClass::Vlen { base: 0 }, false),
            },
            ElementShape::FixedText(..) | ElementShape::Text(..) => (UserClass::String, true),
            _ => (UserClass::Unknown, false),
        }
    }

    /// These types with other numbers, without the list.
    pub(crate) fn renumbered(self, number: impl Fn(i32) -> i32) -> Types {
        let partial = self.partial.into_iter().map(|(ty, fields)| (number(ty), fields));
        let by_form = self.by_form.into_iter().map(|(form, ty)| (form, number(ty)));
        Types { partial: partial.collect(), by_form: by_form.collect(), ..Types::default() }
    }

    /// How many fields netCDF shows of a compound that also has members of types which netCDF does not have.
    pub(crate) fn shown_fields(&self, nc_type: i32) -> Option<usize> {
        self.partial.get(&nc_type).copied()
    }

    fn field(&self, part: &StructMember) -> Option<Field> {
        let (form, dims) = match &part.form.shape {
            ElementShape::Array(base, dims) => {
                let dims = dims.iter().map(|&dim| i32::try_from(dim).unwrap_or(i32::MAX));
                (&**base, dims.collect())
            }
            _ => (&part.form, Vec::new()),
        };
        let nc_type = self.of_member(form)?;
        Some(Field { name: part.name.clone(), offset: part.at, nc_type, dims })
    }
}

/// Number of the type at this place of the list.
pub(crate) fn number(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX).saturating_add(FIRST_USER_TYPE)
}

impl TypeEntry {
    /// Bytes of the text in each field of a compound, which netCDF shows as one character; 1 for
    /// fields that are something else.
    #[must_use]
    pub fn text_lens(&self) -> Vec<usize> {
        fn len(form: &ElementForm) -> usize {
            match &form.shape {
                ElementShape::FixedText(..) => form.file_size,
                ElementShape::Array(base, _) => len(base),
                _ => 1,
            }
        }
        let form = self.stored().and_then(|stored| ElementForm::of(stored));
        match form.as_ref().map(|form| &form.shape) {
            Some(ElementShape::Compound(parts)) => {
                parts.iter().map(|part| len(&part.form)).collect()
            }
            _ => Vec::new(),
        }
    }
}

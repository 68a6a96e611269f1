//! Types of users: enumerations, opaques, compounds, sequences.

use std::collections::{HashMap, HashSet};

use zonda_format::{FIRST_USER_TYPE, Field, GroupId, UserClass, UserType};

use super::super::dmr::{Atomic, Group, Type, Variable, names, reserved};
use super::super::layout::{Kind, Layout, only_field};
use super::{Mapper, netcdf_name, unrepresentable};
use crate::error::DapError;

/// An enumeration: the number of its type, and its members.
#[derive(Clone, Debug)]
pub(super) struct Enum {
    pub(super) nc_type: i32,
    pub(super) base: Atomic,
    pub(super) names: HashMap<String, i128>,
    pub(super) values: HashSet<i128>,
}

/// An integer in native order, cut to the size of its type as C does it.
pub(super) fn integer(value: i128, base: Atomic) -> Vec<u8> {
    let size = base.size().unwrap_or(8);
    let bytes = value.to_ne_bytes();
    let bytes = if cfg!(target_endian = "little") {
        bytes.get(..size)
    } else {
        bytes.get(bytes.len().saturating_sub(size)..)
    };
    bytes.unwrap_or_default().to_vec()
}

impl Mapper<'_> {
    /// Makes the enumerations of a group and those in it.
    pub(super) fn enumerations(
        &mut self,
        group: &Group,
        index: &mut usize,
        path: &str,
    ) -> Result<(), DapError> {
        let here = *index;
        *index = index.saturating_add(1);
        for one in &group.enums {
            let members = one.constants.iter().map(|(name, value)| {
                let name = netcdf_name(name)?;
                Ok((name.into_bytes().into(), integer(*value, one.base).into()))
            });
            let class = UserClass::Enum {
                base: one.base.nc_type(),
                members: members.collect::<Result<_, DapError>>()?,
            };
            let size = one.base.size().unwrap_or(1);
            let nc_type = self.push(netcdf_name(&one.name)?, here, size, class)?;
            let values = one.constants.iter().map(|(_, value)| *value).collect();
            let names = one.constants.iter().rev().cloned().collect();
            let known = Enum { nc_type, base: one.base, names, values };
            self.enums.insert(names::join(path, &one.name), known);
        }
        for inner in &group.groups {
            self.enumerations(inner, index, &names::join(path, &inner.name))?;
        }
        Ok(())
    }

    /// Makes an opaque type for each size, in the group of the first variable with it.
    pub(super) fn opaques(&mut self) -> Result<(), DapError> {
        let vars: Vec<_> = self.found.iter().map(|found| (found.group, found.var)).collect();
        for (group, var) in vars {
            let layout = self.names.layout(var)?;
            self.opaques_of(var, &layout, group)?;
        }
        Ok(())
    }

    fn opaques_of(
        &mut self,
        var: &Variable,
        layout: &Layout,
        group: usize,
    ) -> Result<(), DapError> {
        match (&var.ty, &layout.kind) {
            (Type::Structure(inner), _) => self.opaques_in(inner, layout, group),
            (Type::Sequence(inner), Kind::Sequence(record)) => {
                match only_field(var, inner, self.settings) {
                    Some(field) => self.opaques_of(field, record, group),
                    None => self.opaques_in(inner, record, group),
                }
            }
            (Type::Opaque, _) if self.opaque(layout.size).is_none() => {
                let (group, name) = self.original(var, group)?.map_or_else(
                    || Ok((group, format!("opaque{}_t", layout.size))),
                    Ok::<_, DapError>,
                )?;
                let nc_type = self.push(name, group, layout.size, UserClass::Opaque)?;
                self.opaques.insert(layout.size, nc_type);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn opaques_in(
        &mut self,
        fields: &[Variable],
        record: &Layout,
        group: usize,
    ) -> Result<(), DapError> {
        let Kind::Structure(placed) = &record.kind else { return Ok(()) };
        let mut both = fields.iter().zip(placed);
        both.try_for_each(|(field, placed)| self.opaques_of(field, &placed.layout, group))
    }

    fn opaque(&self, size: usize) -> Option<i32> {
        self.opaques.get(&size).copied()
    }

    /// The number of the type of a variable or field; types that it needs are made. `name` is the name of the variable, or of the field with those around
    /// it.
    pub(super) fn type_of(
        &mut self,
        var: &Variable,
        layout: &Layout,
        group: usize,
        name: &str,
    ) -> Result<i32, DapError> {
        match (&var.ty, &layout.kind) {
            (Type::Atomic(atomic), _) => Ok(atomic.nc_type()),
            (Type::Enum(fqn), _) => {
                let known = self.enums.get(&names::canonical(fqn));
                Ok(known.map_or(0, |known| known.nc_type))
            }
            (Type::Structure(fields), Kind::Structure(_)) => {
                let class = self.compound(fields, layout, group, name)?;
                let named = self.original(var, group)?;
                self.define(named.unwrap_or((group, format!("{name}_t"))), layout.size, class)
            }
            (Type::Sequence(fields), Kind::Sequence(record)) => {
                let base = if let Some(field) = only_field(var, fields, self.settings) {
                    self.type_of(field, record, group, &format!("{name}_{}", field.name))?
                } else {
                    let base = format!("{name}_base");
                    let class = self.compound(fields, record, group, &base)?;
                    self.define((group, format!("{base}_t")), record.size, class)?
                };
                let named = self.original(var, group)?;
                let class = UserClass::Vlen { base };
                self.define(named.unwrap_or((group, format!("{name}_t"))), layout.size, class)
            }
            _ => Ok(self.opaque(layout.size).unwrap_or(0)),
        }
    }

    fn compound(
        &mut self,
        fields: &[Variable],
        layout: &Layout,
        group: usize,
        name: &str,
    ) -> Result<UserClass, DapError> {
        let Kind::Structure(placed) = &layout.kind else { return Ok(UserClass::Unknown) };
        let (mut made, mut names) = (Vec::new(), HashSet::new());
        for (field, placed) in fields.iter().zip(placed) {
            let written = netcdf_name(&field.name)?;
            let inner = format!("{name}_{written}");
            let nc_type = self.type_of(field, &placed.layout, group, &inner)?;
            let dims = placed.dims.iter().map(|len| i32::try_from(*len)).collect::<Result<_, _>>();
            let dims = dims.map_err(|_| unrepresentable(format!("{inner} is too large")))?;
            if !names.insert(written.clone()) {
                return Err(unrepresentable(format!("field {inner} is there twice")));
            }
            let written = written.into_bytes().into();
            made.push(Field { name: written, offset: placed.offset, nc_type, dims });
        }
        Ok(UserClass::Compound(made))
    }

    /// Group and name that a type had in the file behind the server, where that is to be used and there is such a group.
    fn original(&self, var: &Variable, group: usize) -> Result<Option<(usize, String)>, DapError> {
        let said = reserved(&var.reserved, super::super::ORIGINAL_TYPE);
        let Some(fqn) = said.filter(|_| self.settings.translates) else { return Ok(None) };
        let mut path = names::split(fqn);
        let Some(name) = path.pop() else { return Ok(None) };
        let path = path.iter().fold(String::new(), |group, name| names::join(&group, name));
        let group = self.group_names.get(&path).copied().unwrap_or(group);
        Ok(Some((group, netcdf_name(&name)?)))
    }

    /// Makes a type, or finds the same one with that name.
    fn define(
        &mut self,
        (group, name): (usize, String),
        size: usize,
        class: UserClass,
    ) -> Result<i32, DapError> {
        let known = self.type_names.get(&(group, name.clone())).copied();
        let same = known.filter(|nc_type| {
            let ty = UserType::index(*nc_type).and_then(|index| self.model.types.get(index));
            ty.is_some_and(|ty| {
                ty.size == size && format!("{:?}", ty.class) == format!("{class:?}")
            })
        });
        same.map_or_else(|| self.push(name, group, size, class), Ok)
    }

    /// Makes a type with that name, or one like it that nothing in the group has.
    fn push(
        &mut self,
        mut name: String,
        group: usize,
        size: usize,
        class: UserClass,
    ) -> Result<i32, DapError> {
        loop {
            if name.len() > super::MOST_NAME {
                return Err(unrepresentable(format!("the name {name:?} of a type is too long")));
            }
            if self.taken.insert((group, name.clone())) {
                break;
            }
            name.push('_');
        }
        let too_many = || unrepresentable("too many types".into());
        let nc_type = number(self.model.types.len()).ok_or_else(too_many)?;
        self.type_names.insert((group, name.clone()), nc_type);
        let group = GroupId(u16::try_from(group).map_err(|_| too_many())?);
        let name = name.into_bytes().into();
        self.model.types.push(UserType { name, group, size, class, is_stored: true });
        Ok(nc_type)
    }
}

fn number(index: usize) -> Option<i32> {
    i32::try_from(index).ok()?.checked_add(FIRST_USER_TYPE)
}

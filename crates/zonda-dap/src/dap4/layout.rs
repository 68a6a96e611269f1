//! How the values of a variable come, and how they lie in memory.

use std::collections::HashMap;

use super::dmr::{Atomic, DimRef, Dmr, Group, Type, Variable, names, reserved};
use super::settings::Settings;
use crate::error::{DapError, Document};

/// Largest element in memory, in bytes.
const MOST_ELEMENT: usize = 1 << 30;

/// An element of a variable or field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) kind: Kind,
    /// Bytes of an element in memory.
    pub(super) size: usize,
    /// What its address is a multiple of, as in C.
    pub(super) align: usize,
    /// Whether it has strings or sequences in it.
    pub(super) has_pointers: bool,
    /// Bytes of an element in a body, where all have as many.
    pub(super) wire: Option<usize>,
}

/// What an element is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number or character; enumerations are their integers.
    Plain(Atomic),
    /// A length of 8 bytes, then text.
    Text,
    /// A length of 8 bytes, then bytes. In memory it is as long as its type.
    Opaque,
    /// Fields, without anything between them.
    Structure(Vec<Field>),
    /// How many records, in 8 bytes, then these.
    Sequence(Box<Layout>),
}

/// A field of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    /// First byte in memory.
    pub(super) offset: usize,
    /// Its shape.
    pub(super) dims: Vec<u64>,
    /// Product of its shape.
    pub(super) count: usize,
    pub(super) layout: Layout,
}

/// What names in a DMR stand for.
#[derive(Debug)]
pub(super) struct Names {
    dims: HashMap<String, u64>,
    enums: HashMap<String, Atomic>,
    settings: Settings,
}

impl Names {
    pub(super) fn of(dmr: &Dmr, settings: Settings) -> Names {
        let mut names = Names { dims: HashMap::new(), enums: HashMap::new(), settings };
        names.add(&dmr.root, "");
        names
    }

    fn add(&mut self, group: &Group, path: &str) {
        let dims = group.dims.iter().map(|dim| (names::join(path, &dim.name), dim.size));
        self.dims.extend(dims);
        let enums = group.enums.iter().map(|one| (names::join(path, &one.name), one.base));
        self.enums.extend(enums);
        for inner in &group.groups {
            self.add(inner, &names::join(path, &inner.name));
        }
    }

    /// The shape of a variable or field.
    pub(super) fn shape(&self, var: &Variable) -> Result<Vec<u64>, DapError> {
        let len = |dim: &DimRef| match dim {
            DimRef::Size(size) => Ok(*size),
            DimRef::Shared(name) => {
                self.dims.get(&names::canonical(name)).copied().ok_or_else(|| {
                    malformed(
                        var,
                        format!("{} has a dimension {name}, which is not there", var.name),
                    )
                })
            }
        };
        var.dims.iter().map(len).collect()
    }

    /// The layout of an element.
    pub(super) fn layout(&self, var: &Variable) -> Result<Layout, DapError> {
        Ok(match &var.ty {
            Type::Atomic(atomic) => match atomic.size() {
                Some(size) => plain(*atomic, size),
                None => pointer(Kind::Text, 8),
            },
            Type::Enum(name) => {
                let base = self.enums.get(&names::canonical(name)).copied();
                let base = base.ok_or_else(|| {
                    malformed(var, format!("{} is of {name}, which is not there", var.name))
                })?;
                plain(base, base.size().unwrap_or(1))
            }
            Type::Opaque => {
                let size = self.opaque_size(var)?;
                Layout { kind: Kind::Opaque, size, align: 1, has_pointers: false, wire: None }
            }
            Type::Structure(fields) => self.structure(var, fields)?,
            Type::Sequence(fields) => {
                let record = match only_field(var, fields, self.settings) {
                    Some(field) => self.layout(field)?,
                    None => self.structure(var, fields)?,
                };
                pointer(Kind::Sequence(Box::new(record)), 16)
            }
        })
    }

    fn opaque_size(&self, var: &Variable) -> Result<usize, DapError> {
        let said = self.settings.translates.then(|| reserved(&var.reserved, super::OPAQUE_SIZE));
        let Some(text) = said.flatten() else { return Ok(self.settings.opaque_size) };
        let size = text.trim().parse().ok().filter(|size| *size <= MOST_ELEMENT);
        match size {
            Some(0) => Ok(self.settings.opaque_size),
            Some(size) => Ok(size),
            None => Err(malformed(var, format!("{}: {text:?} is no size", var.name))),
        }
    }

    fn structure(&self, var: &Variable, fields: &[Variable]) -> Result<Layout, DapError> {
        let too_large = || {
            let what = format!("an element of {} has more than {MOST_ELEMENT} bytes", var.name);
            DapError::unrepresentable(Document::Dmr, what)
        };
        let (mut size, mut align, mut has_pointers) = (0_usize, 1_usize, false);
        let mut wire = Some(0_usize);
        let mut placed = Vec::new();
        for field in fields {
            let layout = self.layout(field)?;
            let dims = self.shape(field)?;
            let count = dims.iter().try_fold(1_u64, |product, len| product.checked_mul(*len));
            let count =
                count.and_then(|count| usize::try_from(count).ok()).ok_or_else(too_large)?;
            if count == 0 {
                let what = format!("field {} of {} has no elements", field.name, var.name);
                return Err(DapError::unrepresentable(Document::Dmr, what));
            }
            let offset = size.checked_next_multiple_of(layout.align).ok_or_else(too_large)?;
            let end = layout.size.checked_mul(count).and_then(|len| len.checked_add(offset));
            size = end.filter(|end| *end <= MOST_ELEMENT).ok_or_else(too_large)?;
            align = align.max(layout.align);
            has_pointers |= layout.has_pointers;
            let own = layout.wire.and_then(|wire| wire.checked_mul(count));
            wire = wire.zip(own).and_then(|(wire, own)| wire.checked_add(own));
            placed.push(Field { name: field.name.clone(), offset, dims, count, layout });
        }
        if placed.is_empty() {
            let what = format!("{} has no fields", var.name);
            return Err(DapError::unrepresentable(Document::Dmr, what));
        }
        let size = size.checked_next_multiple_of(align).ok_or_else(too_large)?;
        Ok(Layout { kind: Kind::Structure(placed), size, align, has_pointers, wire })
    }
}

/// The field of a sequence that was a sequence of netCDF, which has items, not records.
pub(super) fn only_field<'a>(
    var: &Variable,
    fields: &'a [Variable],
    settings: Settings,
) -> Option<&'a Variable> {
    let is_vlen = settings.translates && reserved(&var.reserved, super::IS_VLEN).is_some();
    match fields {
        [field] if is_vlen && field.dims.is_empty() => Some(field),
        _ => None,
    }
}

fn plain(atomic: Atomic, size: usize) -> Layout {
    let wire = Some(size);
    Layout { kind: Kind::Plain(atomic), size, align: size, has_pointers: false, wire }
}

fn pointer(kind: Kind, size: usize) -> Layout {
    Layout { kind, size, align: 8, has_pointers: true, wire: None }
}

fn malformed(var: &Variable, what: String) -> DapError {
    DapError::malformed(Document::Dmr, var.at.0, what)
}

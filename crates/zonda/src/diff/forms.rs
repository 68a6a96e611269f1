//! The form of a type in which values of two files can be compared, whatever numbers the type has in each.

use zonda_format::NC_STRING;
use zonda_model::ExtType;

use super::values::number;
use crate::copy::tree::{ClassDef, DefinitionTree, FieldDef, shown as text};
use crate::tuning::TYPE_MAX_DEPTH;

/// How a value lies in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ComparedForm {
    /// A number or a character.
    Plain(ExtType),
    /// A string, by its number in the buffer of strings.
    Text,
    /// Bytes without meaning.
    Opaque(usize),
    /// Fields: offset in bytes, number of values and form of each. Then the bytes of the compound.
    Fields(Vec<(usize, usize, ComparedForm)>, usize),
    /// A sequence: its length, and its number in the buffer.
    Items(Box<ComparedForm>),
}

impl ComparedForm {
    /// The form of a type; `None` where netCDF cannot represent it.
    pub(super) fn of(tree: &DefinitionTree, nc_type: i32) -> Option<ComparedForm> {
        ComparedForm::within(tree, nc_type, 0)
    }

    fn within(tree: &DefinitionTree, nc_type: i32, depth: usize) -> Option<ComparedForm> {
        if let Some(ext) = ExtType::from_nc_type(nc_type) {
            return Some(ComparedForm::Plain(ext));
        }
        if nc_type == NC_STRING {
            return Some(ComparedForm::Text);
        }
        if depth > TYPE_MAX_DEPTH {
            return None;
        }
        let ty = tree.types.iter().find(|ty| ty.source == nc_type)?;
        Some(match &ty.class {
            ClassDef::Opaque => ComparedForm::Opaque(ty.size),
            ClassDef::Enum(base, _) => ComparedForm::within(tree, *base, depth + 1)?,
            ClassDef::Vlen(base) => {
                ComparedForm::Items(Box::new(ComparedForm::within(tree, *base, depth + 1)?))
            }
            ClassDef::Compound(fields) => {
                let field = |field: &FieldDef| {
                    let n = field.dims.iter().fold(1usize, |n, &len| {
                        n.saturating_mul(usize::try_from(len).unwrap_or(0))
                    });
                    Some((field.offset, n, ComparedForm::within(tree, field.nc_type, depth + 1)?))
                };
                ComparedForm::Fields(fields.iter().map(field).collect::<Option<Vec<_>>>()?, ty.size)
            }
        })
    }

    /// Bytes of a value.
    pub(super) fn size(&self) -> usize {
        match self {
            ComparedForm::Plain(ext) => ext.size(),
            ComparedForm::Text => 8,
            ComparedForm::Opaque(size) | ComparedForm::Fields(_, size) => *size,
            ComparedForm::Items(_) => 16,
        }
    }

    /// Whether values refer to strings or sequences, so that their own bytes cannot be compared.
    pub(super) fn has_pointers(&self) -> bool {
        match self {
            ComparedForm::Plain(_) | ComparedForm::Opaque(_) => false,
            ComparedForm::Text | ComparedForm::Items(_) => true,
            ComparedForm::Fields(fields, _) => fields.iter().any(|(.., form)| form.has_pointers()),
        }
    }
}

/// A type as text: `float`, `compound point {float x; float y}`.
pub(super) fn shown(tree: &DefinitionTree, nc_type: i32) -> String {
    shown_within(tree, nc_type, 0)
}

fn shown_within(tree: &DefinitionTree, nc_type: i32, depth: usize) -> String {
    if let Some(ext) = ExtType::from_nc_type(nc_type) {
        return ext.name().to_owned();
    }
    if nc_type == NC_STRING {
        return "string".to_owned();
    }
    let Some(ty) = tree.types.iter().find(|ty| ty.source == nc_type) else {
        return "unknown".to_owned();
    };
    let name = text(&ty.name);
    if depth > TYPE_MAX_DEPTH {
        return name;
    }
    let inner = |nc_type| shown_within(tree, nc_type, depth + 1);
    match &ty.class {
        ClassDef::Opaque => format!("opaque({}) {name}", ty.size),
        ClassDef::Vlen(base) => format!("{}(*) {name}", inner(*base)),
        ClassDef::Enum(base, members) => {
            let form = ComparedForm::of(tree, *base);
            let member = |(name, value): &zonda_nc4::Member| {
                let number = form.as_ref().map_or_else(String::new, |form| number(form, value));
                format!("{} = {number}", String::from_utf8_lossy(name))
            };
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{} enum {name} {{{}}}", inner(*base), members.join(", "))
        }
        ClassDef::Compound(fields) => {
            let field = |field: &FieldDef| {
                let dims: Vec<String> = field.dims.iter().map(i32::to_string).collect();
                let dims =
                    if dims.is_empty() { String::new() } else { format!("({})", dims.join(",")) };
                format!("{} {}{dims}", inner(field.nc_type), text(&field.name))
            };
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("compound {name} {{{}}}", fields.join("; "))
        }
    }
}

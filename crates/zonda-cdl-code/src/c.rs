//! Programs in C.

mod constants;
mod data;
mod define;

use std::collections::BTreeMap;

use zonda_cdl::{CdlFault, Primitive, Schema, TypeClass, TypeRef};

use crate::ProgramOptions;
use crate::names::{UniqueNames, plain, with_groups};
use constants::c_type;

/// A program, in the same words as the reference's, because its tests compare the text.
pub(crate) struct CProgram<'a> {
    options: &'a ProgramOptions<'a>,
    warn: &'a dyn Fn(&CdlFault),
    out: String,
    /// Names of the variables that have the numbers of groups.
    groups: Vec<String>,
    types: Vec<TypeNames>,
    /// Names for dimensions and variables, to which `_dim`, `_len` or `_id` is added.
    dims: Vec<String>,
    vars: Vec<String>,
    /// Arrays of sequences that were declared so far; each gets the next number.
    n_arrays: usize,
    /// Constants by variable and index. They are written at the end, when lengths of unlimited dimensions
    /// are known.
    data: BTreeMap<usize, BTreeMap<Vec<u64>, CConstant>>,
}

/// A constant of C.
#[derive(Clone, Debug, Default)]
struct CConstant {
    /// Declarations of the arrays that it points to.
    before: String,
    /// The constant; empty for a character.
    text: String,
    /// The byte of a character, which becomes part of a string.
    byte: u8,
}

/// Names of a type in the program.
struct TypeNames {
    /// Name of the variable that has its number.
    id: String,
    /// Name of the type in C.
    ty: String,
    /// Names of fields or members.
    parts: Vec<String>,
}

impl<'a> CProgram<'a> {
    pub(crate) fn new(
        schema: &Schema,
        options: &'a ProgramOptions<'a>,
        warn: &'a dyn Fn(&CdlFault),
    ) -> CProgram<'a> {
        let mut unique = UniqueNames::default();
        let full = |group: usize, name: &[u8]| plain(&with_groups(schema, group, name));
        let mut numbers = UniqueNames::default();
        let groups = schema.groups.iter().map(|group| {
            // The data model of the classic formats has no groups: the number is that of the file.
            match group.parent {
                None if options.kind.is_classic_model() => "ncid".to_owned(),
                None => numbers.give(plain(&group.name) + "_grp"),
                Some(parent) => numbers.give(full(parent, &group.name) + "_grp"),
            }
        });
        let groups = groups.collect();
        let types = schema.types.iter().map(|ty| {
            let name = unique.give(full(ty.group, &ty.name));
            let names: Vec<&[u8]> = match &ty.class {
                TypeClass::Compound(fields) => fields.iter().map(|field| &field.name[..]).collect(),
                TypeClass::Enum { members, .. } => members.iter().map(|m| &m.name[..]).collect(),
                _ => Vec::new(),
            };
            let parts =
                names.into_iter().map(|part| unique.give(format!("{name}_PERIOD_{}", plain(part))));
            TypeNames { id: format!("{name}_typ"), parts: parts.collect(), ty: name }
        });
        let types = types.collect();
        let mut unique = UniqueNames::default();
        let dims = schema.dims.iter().map(|dim| unique.give(full(dim.group, &dim.name))).collect();
        let mut unique = UniqueNames::default();
        let vars = schema.vars.iter().map(|var| unique.give(full(var.group, &var.name))).collect();
        let (out, data) = (String::new(), BTreeMap::new());
        CProgram { options, warn, out, groups, types, dims, vars, n_arrays: 0, data }
    }

    fn line(&mut self, text: impl AsRef<str>) {
        self.out += text.as_ref();
        self.out.push('\n');
    }

    /// A call, and the check of its result in the next line.
    fn call(&mut self, call: impl AsRef<str>) {
        self.line(format!("    stat = {};", call.as_ref()));
        self.line("    CHECK_ERR(stat);");
    }

    /// A call, and the check of its result in the same line.
    fn short_call(&mut self, call: impl AsRef<str>) {
        self.line(format!("    stat = {};    CHECK_ERR(stat);", call.as_ref()));
    }

    /// Declarations with a heading before and a blank line behind them.
    fn section(&mut self, heading: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.line(format!("    /* {heading} */"));
        lines.iter().for_each(|line| self.line(line));
        self.line("");
    }

    /// The name of a type in C.
    fn c_type(&self, ty: TypeRef) -> String {
        match ty {
            TypeRef::Primitive(Primitive::String) => "char*".to_owned(),
            TypeRef::Primitive(Primitive::Atomic(ext)) => c_type(ext).to_owned(),
            TypeRef::User(user) => self.types[user].ty.clone(),
        }
    }

    /// The name of a type's number: a constant of the library, or a variable of the program.
    fn nc_type(&self, ty: TypeRef) -> String {
        match ty {
            TypeRef::Primitive(primitive) => {
                format!("NC_{}", primitive.name().to_ascii_uppercase())
            }
            TypeRef::User(user) => self.types[user].id.clone(),
        }
    }
}

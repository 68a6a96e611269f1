//! Makes a schema of a text.
//!
//! The grammar is that of the reference (`man ncgen`, "CDL Grammar"), except that sections may come
//! in any order and more than once. Objects are defined before they are used.

mod attributes;
mod skip;
mod special;
pub(crate) mod tokens;
mod types;

use crate::constant::NumberConstant;
use crate::dialect::Dialect;
use crate::fault::{CdlFault, shown};
use crate::kind::{Needs, NetCdfKind};
use crate::lexer::{Lexer, Token};
use crate::names::{NameReference, NameSpace, ObjectNames, soft_primitive};
use crate::schema::{
    CdlDimension, CdlGroup, CdlVariable, Primitive, Schema, TypeRef, VariableStorage,
};
use crate::source::CdlText;
use tokens::Tokens;
use zonda_model::ExtType;

/// The most groups within groups. A limit is needed, because names are looked up in all of them.
const MOST_NESTED_GROUPS: usize = 1000;

/// The section of a group that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    /// Before all sections, and after an inner group: only attributes may follow.
    Attributes,
    Types,
    Dimensions,
    Variables,
    Data,
}

/// Reads all definitions and attributes of a text, and notes where data are.
///
/// `name` replaces the name of the dataset in the text. `kind` is the kind of file that will be
/// made, if that is known: names of its types cannot be names of dimensions then.
///
/// # Errors
/// Errors of syntax; unknown names; names that are defined twice; values that do not have their
/// type.
pub fn parse(
    source: &CdlText,
    dialect: Dialect,
    name: Option<&[u8]>,
    kind: Option<NetCdfKind>,
) -> Result<Schema, CdlFault> {
    let mut tokens = Tokens::new(Lexer::new(source))?;
    let at = tokens.at();
    match &tokens.now {
        Token::Name(word) if matches!(&word[..], b"netcdf" | b"NETCDF" | b"netCDF") => {}
        _ => return Err(tokens.unexpected("'netcdf'")),
    }
    let own = tokens.lexer().dataset_name()?;
    tokens.lexer().hex_integers = dialect == Dialect::Classic;
    tokens.advance()?;
    let root = CdlGroup { name: name.map_or(own, <[u8]>::to_vec), parent: None, at };
    let schema = Schema {
        groups: vec![root],
        types: Vec::new(),
        dims: Vec::new(),
        vars: Vec::new(),
        atts: Vec::new(),
        format: None,
        needs: Needs::default(),
        dialect,
    };
    let mut parser =
        Parser { source, tokens, schema, names: ObjectNames::default(), dialect, kind, group: 0 };
    parser.names.add_group(None);
    parser.tokens.expect(b'{')?;
    parser.body()?;
    if parser.tokens.now != Token::End {
        return Err(parser.tokens.unexpected("the end of the text"));
    }
    parser.finish()
}

struct Parser<'s> {
    source: &'s CdlText,
    tokens: Tokens<'s>,
    schema: Schema,
    names: ObjectNames,
    dialect: Dialect,
    kind: Option<NetCdfKind>,
    /// The number of the group that is read.
    group: usize,
}

impl Parser<'_> {
    /// Reads everything up to the brace that closes the root group.
    fn body(&mut self) -> Result<(), CdlFault> {
        let mut section = Section::Attributes;
        loop {
            section = match self.tokens.now {
                Token::Types => Section::Types,
                Token::Dimensions => Section::Dimensions,
                Token::Variables => Section::Variables,
                Token::Data => Section::Data,
                Token::Group => {
                    self.begin_group()?;
                    section = Section::Attributes;
                    continue;
                }
                Token::Mark(b'}') => {
                    self.tokens.advance()?;
                    let Some(parent) = self.schema.groups[self.group].parent else { return Ok(()) };
                    self.group = parent;
                    // The reference and its ncdump have no semicolon here. One is accepted, because
                    // nothing else can follow.
                    self.tokens.accept(b';')?;
                    section = Section::Attributes;
                    continue;
                }
                _ => {
                    self.statement(section)?;
                    continue;
                }
            };
            if section == Section::Types {
                self.only_enhanced("types")?;
                self.schema.needs.enhanced(self.tokens.at(), "types of its own");
            }
            self.tokens.advance()?;
        }
    }

    fn only_enhanced(&self, what: &str) -> Result<(), CdlFault> {
        match self.dialect {
            Dialect::Enhanced => Ok(()),
            Dialect::Classic => {
                Err(self.tokens.fault(format!("{what} are not of the classic model")))
            }
        }
    }

    fn begin_group(&mut self) -> Result<(), CdlFault> {
        self.only_enhanced("groups")?;
        if self.names.depth(self.group) >= MOST_NESTED_GROUPS {
            return Err(self.tokens.fault("too many groups within groups"));
        }
        self.tokens.advance()?;
        let at = self.tokens.at();
        let name = self.tokens.word("the name of a group")?;
        self.schema.needs.enhanced(at, "groups");
        let index = self.schema.groups.len();
        if !self.names.add(NameSpace::Group, self.group, &name, index) {
            let why = format!("there is a group {} already", shown(&name));
            return Err(CdlFault::at(at, why).over(name.len()));
        }
        self.names.add_group(Some(self.group));
        self.schema.groups.push(CdlGroup { name, parent: Some(self.group), at });
        self.group = index;
        self.tokens.expect(b'{')
    }

    fn statement(&mut self, section: Section) -> Result<(), CdlFault> {
        let at = self.tokens.at();
        if self.tokens.is(b':') {
            self.attribute(at, None, None)?;
            return self.end_of_statement(section);
        }
        if section == Section::Types && self.type_by_keyword()? {
            return Ok(());
        }
        if !self.tokens.is_reference() {
            return Err(self.tokens.unexpected(match section {
                Section::Attributes => "a section, a group, an attribute or '}'",
                Section::Types => "a type, an attribute, a section or '}'",
                Section::Dimensions => "a dimension, an attribute, a section or '}'",
                Section::Variables => "a variable, an attribute, a section or '}'",
                Section::Data => "a variable, a group or '}'",
            }));
        }
        let first = self.tokens.reference("a name")?;
        match (&self.tokens.now, section) {
            (Token::Mark(b':'), _) => self.attribute_of(at, &first)?,
            (Token::Mark(b'='), Section::Dimensions) => {
                self.dimensions(at, first)?;
            }
            (Token::Mark(b'='), Section::Data) => return self.data(at, &first),
            (Token::Enum, Section::Types) => return self.enum_type(at, &first),
            (Token::Mark(b'('), Section::Types) => return self.vlen_type(at, &first),
            _ if self.tokens.is_reference() => {
                let second_at = self.tokens.at();
                let second = self.tokens.reference("a name")?;
                if self.tokens.is(b':') {
                    let ty = self.type_of(at, &first)?;
                    self.typed_attribute(second_at, ty, &second)?;
                } else if section == Section::Variables {
                    let ty = self.type_of(at, &first)?;
                    self.variables(ty, second_at, second)?;
                } else {
                    return Err(self.tokens.unexpected("':'"));
                }
            }
            _ => {
                return Err(self.tokens.unexpected(match section {
                    Section::Dimensions => "'='",
                    Section::Data => "'='",
                    Section::Variables => "the name of a variable or ':'",
                    Section::Attributes | Section::Types => "':'",
                }));
            }
        }
        self.end_of_statement(section)
    }

    fn end_of_statement(&mut self, section: Section) -> Result<(), CdlFault> {
        if self.tokens.accept(b';')? {
            return Ok(());
        }
        Err(self.tokens.unexpected(match section {
            Section::Dimensions | Section::Variables => "',' or ';'",
            _ => "';'",
        }))
    }

    /// Checks the name of a dimension: for the reference, the types of the kind that is asked for
    /// are keywords. (Variables may be named like types, and in HDF5 files often are.)
    fn check_name(&self, at: u64, name: &[u8]) -> Result<(), CdlFault> {
        let is_type = match (soft_primitive(name), self.kind) {
            (Some(Primitive::String), Some(kind)) => kind == NetCdfKind::NetCdf4,
            (Some(Primitive::Atomic(_)), Some(kind)) => kind.has_all_integers(),
            _ => false,
        };
        if is_type && self.dialect == Dialect::Enhanced {
            let why = format!("syntax error: {} is a type of this kind of file", shown(name));
            return Err(CdlFault::at(at, why).over(name.len()));
        }
        Ok(())
    }

    fn type_of(&self, at: u64, reference: &NameReference) -> Result<TypeRef, CdlFault> {
        let known = match self.dialect {
            Dialect::Enhanced => self.names.type_ref(self.group, reference),
            Dialect::Classic => match reference {
                NameReference::Primitive(primitive, _) => Some(TypeRef::Primitive(*primitive)),
                NameReference::Name(_) | NameReference::Path(_) => None,
            },
        };
        known.ok_or_else(|| {
            let name = reference.text();
            CdlFault::at(at, format!("undefined type: {name}")).over(name.len())
        })
    }

    /// Notes that a variable or an attribute uses a type.
    fn uses(&mut self, at: u64, ty: TypeRef) {
        match ty {
            TypeRef::Primitive(Primitive::String) => self.schema.needs.enhanced(at, "strings"),
            TypeRef::Primitive(Primitive::Atomic(ext))
                if ext.nc_type() > ExtType::Double.nc_type() =>
            {
                self.schema.needs.integers.get_or_insert(at);
            }
            TypeRef::Primitive(Primitive::Atomic(_)) => {}
            TypeRef::User(_) => self.schema.needs.enhanced(at, "types of its own"),
        }
    }

    /// `name = length`, and more behind commas.
    fn dimensions(&mut self, mut at: u64, first: NameReference) -> Result<(), CdlFault> {
        let Some(mut name) = first.into_name() else {
            return Err(CdlFault::at(at, "a dimension has a name, not a path"));
        };
        loop {
            self.tokens.expect(b'=')?;
            let (len, unlimited) = match self.tokens.now {
                Token::Unlimited => (0, true),
                Token::Number(number) => {
                    let len = self.dimension_len(number)?;
                    // NC_UNLIMITED is 0.
                    (len, len == 0)
                }
                _ => return Err(self.tokens.unexpected("a length or 'unlimited'")),
            };
            self.tokens.advance()?;
            self.check_name(at, &name)?;
            let index = self.schema.dims.len();
            if !self.names.add(NameSpace::Dimension, self.group, &name, index) {
                let why = format!("there is a dimension {} already", shown(&name));
                return Err(CdlFault::at(at, why).over(name.len()));
            }
            self.schema.dims.push(CdlDimension { group: self.group, name, len, unlimited, at });
            if !self.tokens.accept(b',')? {
                return Ok(());
            }
            at = self.tokens.at();
            name = self.tokens.word("the name of a dimension")?;
        }
    }

    fn dimension_len(&self, number: NumberConstant) -> Result<u64, CdlFault> {
        let len = match number {
            // The reference takes 5. and 5.0, too.
            NumberConstant::Double(len) if len.fract() == 0.0 && (0.0..1e15).contains(&len) => {
                Some(crate::element::uint64_of(len))
            }
            other => other.integer().and_then(|len| u64::try_from(len).ok()),
        };
        let len = len.filter(|len| i64::try_from(*len).is_ok());
        len.ok_or_else(|| self.tokens.fault("a length is a whole number, not negative"))
    }

    /// `type name(dims)`, and more names behind commas.
    fn variables(
        &mut self,
        ty: TypeRef,
        mut at: u64,
        first: NameReference,
    ) -> Result<(), CdlFault> {
        let Some(mut name) = first.into_name() else {
            return Err(CdlFault::at(at, "a variable has a name, not a path"));
        };
        loop {
            let mut dims = Vec::new();
            if self.tokens.accept(b'(')? {
                while !self.tokens.is(b')') || !dims.is_empty() {
                    let dim_at = self.tokens.at();
                    let reference = self.tokens.reference("a dimension")?;
                    let Some(dim) = self.names.dimension(self.group, &reference) else {
                        let name = reference.text();
                        let why = format!("undefined dimension: {name}");
                        return Err(CdlFault::at(dim_at, why).over(name.len()));
                    };
                    if self.schema.dims[dim].unlimited && !dims.is_empty() {
                        let what = "an unlimited dimension that is not the first";
                        self.schema.needs.enhanced(dim_at, what);
                    }
                    dims.push(dim);
                    if !self.tokens.accept(b',')? {
                        break;
                    }
                }
                self.tokens.expect(b')')?;
            }
            let index = self.schema.vars.len();
            if !self.names.add(NameSpace::Variable, self.group, &name, index) {
                let why = format!("there is a variable {} already", shown(&name));
                return Err(CdlFault::at(at, why).over(name.len()));
            }
            self.uses(at, ty);
            let (group, special) = (self.group, VariableStorage::default());
            let var = CdlVariable { group, name, ty, dims, special, fill: None, data: None, at };
            self.schema.vars.push(var);
            if !self.tokens.accept(b',')? {
                return Ok(());
            }
            at = self.tokens.at();
            name = self.tokens.word("the name of a variable")?;
        }
    }

    /// `variable = values ;`. Only the place of the values is noted.
    fn data(&mut self, at: u64, reference: &NameReference) -> Result<(), CdlFault> {
        let Some(var) = self.names.variable(self.group, reference) else {
            let name = reference.text();
            return Err(CdlFault::at(at, format!("undefined variable: {name}")).over(name.len()));
        };
        let begin = self.tokens.at() + 1;
        let end = skip::to_semicolon(self.tokens.cursor());
        if let Some(error) = self.tokens.cursor().failure() {
            return Err(error.into());
        }
        let Some(end) = end else {
            // An error about the missing end comes when the data are read.
            crate::data::check(self.source, begin, self.source.len())?;
            let why = format!("the values of {} do not end with ';'", reference.text());
            return Err(CdlFault::at(at, why));
        };
        self.schema.vars[var].data = Some((begin, end));
        // Moves from the `=` to the token after the `;`.
        self.tokens.advance()?;
        Ok(())
    }

    /// Completes the schema with what is known only at the end of the text.
    fn finish(mut self) -> Result<Schema, CdlFault> {
        let unlimited: Vec<&CdlDimension> =
            self.schema.dims.iter().filter(|dim| dim.unlimited).collect();
        if let [_, second, ..] = unlimited[..] {
            let at = second.at;
            self.schema.needs.enhanced(at, "several unlimited dimensions");
        }
        Ok(self.schema)
    }
}

#[cfg(test)]
mod tests;

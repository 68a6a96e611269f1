//! C.

mod data;

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

use zonda_cdl::{
    Attribute, Class, Endian, Fault, Kind, Primitive, Quantizer, Schema, Storage, TypeRef,
    UserType, Variable, attribute,
};

use super::How;
use super::c_text::{c_type, family, number, quoted};
use super::names::{Unique, plain, with_groups};

/// A program, in the words of the reference's, which its tests compare.
pub(super) struct Program<'a> {
    how: &'a How<'a>,
    warn: &'a dyn Fn(&Fault),
    out: String,
    /// Names of the numbers of all objects, and of types; of the others without an ending.
    groups: Vec<String>,
    types: Vec<TypeNames>,
    dims: Vec<String>,
    vars: Vec<String>,
    /// Arrays that others point to, so far.
    n_arrays: usize,
    /// Values as they are written, by variable and index: lengths of dimensions are not known yet.
    data: BTreeMap<usize, BTreeMap<Vec<u64>, Text>>,
}

/// A value as it is written.
#[derive(Clone, Debug, Default)]
struct Text {
    /// Declarations of what it points to.
    before: String,
    /// The value; of characters the byte.
    value: String,
    byte: u8,
}

struct TypeNames {
    /// Of its number.
    id: String,
    /// Of the type in C.
    ty: String,
    /// Of fields or members.
    parts: Vec<String>,
}

impl<'a> Program<'a> {
    pub(super) fn new(schema: &Schema, how: &'a How<'a>, warn: &'a dyn Fn(&Fault)) -> Program<'a> {
        let mut unique = Unique::default();
        let full = |group: usize, name: &[u8]| plain(&with_groups(schema, group, name));
        let mut numbers = Unique::default();
        let groups = schema.groups.iter().map(|group| {
            // The data model of the classic formats has no groups: the number is that of the file.
            match group.parent {
                None if how.kind.is_classic_model() => "ncid".to_owned(),
                None => numbers.give(plain(&group.name) + "_grp"),
                Some(parent) => numbers.give(full(parent, &group.name) + "_grp"),
            }
        });
        let groups = groups.collect();
        let types = schema.types.iter().map(|ty| {
            let name = unique.give(full(ty.group, &ty.name));
            let names: Vec<&[u8]> = match &ty.class {
                Class::Compound(fields) => fields.iter().map(|field| &field.name[..]).collect(),
                Class::Enum { members, .. } => members.iter().map(|m| &m.name[..]).collect(),
                _ => Vec::new(),
            };
            let parts =
                names.into_iter().map(|part| unique.give(format!("{name}_PERIOD_{}", plain(part))));
            TypeNames { id: format!("{name}_typ"), parts: parts.collect(), ty: name }
        });
        let types = types.collect();
        let mut unique = Unique::default();
        let dims = schema.dims.iter().map(|dim| unique.give(full(dim.group, &dim.name))).collect();
        let mut unique = Unique::default();
        let vars = schema.vars.iter().map(|var| unique.give(full(var.group, &var.name))).collect();
        let (out, data) = (String::new(), BTreeMap::new());
        Program { how, warn, out, groups, types, dims, vars, n_arrays: 0, data }
    }

    fn line(&mut self, text: impl AsRef<str>) {
        self.out += text.as_ref();
        self.out.push('\n');
    }

    /// A call that is checked.
    fn call(&mut self, call: impl AsRef<str>) {
        self.line(format!("    stat = {};", call.as_ref()));
        self.line("    CHECK_ERR(stat);");
    }

    /// A call that is checked in its line.
    fn short_call(&mut self, call: impl AsRef<str>) {
        self.line(format!("    stat = {};    CHECK_ERR(stat);", call.as_ref()));
    }

    /// A part of declarations: a heading, lines, a blank line.
    fn part(&mut self, heading: &str, lines: impl IntoIterator<Item = String>) {
        let lines: Vec<String> = lines.into_iter().collect();
        if lines.is_empty() {
            return;
        }
        self.line(format!("    /* {heading} */"));
        lines.iter().for_each(|line| self.line(line));
        self.line("");
    }

    pub(super) fn definitions(&mut self, schema: &Schema) -> Result<(), Fault> {
        self.line("#include <stdio.h>\n#include <stdlib.h>\n#include <netcdf.h>\n\n");
        for index in schema.type_order() {
            self.declare_type(schema, index);
        }
        if !schema.types.is_empty() {
            self.line("");
        }
        let before = self.out.len();
        for (index, var) in schema.vars.iter().enumerate() {
            self.declare_storage(index, var);
        }
        if self.out.len() > before || !self.how.kind.is_classic_model() {
            self.line("");
        }
        self.line(
            "void\ncheck_err(const int stat, int line, const char* file, const char* func) {\n    \
             if (stat != NC_NOERR) {\n        (void)fprintf(stderr,\"line %d of %s.%s: %s\\n\", line, \
             file, func, nc_strerror(stat));\n        fflush(stderr);\n        exit(1);\n    }\n}\n\n\
             #define CHECK_ERR(err) check_err(err, __LINE__, __FILE__, __func__)\n",
        );
        let target = quoted(self.how.target.as_os_str().as_bytes());
        let main = plain(self.how.main.unwrap_or("main").as_bytes());
        let comment = target.trim_matches('"').replace("*/", "*_/");
        self.line(format!("int\n{main}() {{/* create {comment} */\n"));
        self.line("    int  stat;  /* return status */\n    int  ncid;  /* netCDF id */\n");
        let int = |name: &String| format!("    int {name};");
        if !self.how.kind.is_classic_model() {
            let groups: Vec<String> = self.groups.iter().map(int).collect();
            self.part("group ids", groups);
        }
        let types = schema.type_order().into_iter().map(|ty| int(&self.types[ty].id));
        let types: Vec<String> = types.collect();
        self.part("type ids", types);
        let ids: Vec<String> =
            self.dims.iter().map(|name| format!("    int {name}_dim;")).collect();
        self.part("dimension ids", ids);
        let lens: Vec<String> = schema
            .dims
            .iter()
            .enumerate()
            .map(|(index, dim)| {
                let len =
                    if dim.unlimited { "NC_UNLIMITED".to_owned() } else { dim.len.to_string() };
                format!("    size_t {}_len = {len};", self.dims[index])
            })
            .collect();
        self.part("dimension lengths", lens);
        let ids: Vec<String> = self.vars.iter().map(|name| format!("    int {name}_id;")).collect();
        self.part("variable ids", ids);
        let all = || schema.vars.iter().zip(&self.vars);
        let ranks: Vec<String> =
            all().map(|(var, name)| format!("#   define RANK_{name} {}", var.dims.len())).collect();
        let shapes: Vec<String> = all()
            .filter(|(var, _)| !var.dims.is_empty())
            .map(|(_, name)| format!("    int {name}_dims[RANK_{name}];"))
            .collect();
        self.part("rank (number of dimensions) for each variable", ranks);
        self.part("variable shapes", shapes);
        self.line("    /* enter define mode */");
        let mode = match self.how.kind {
            Kind::Classic => "NC_CLOBBER",
            Kind::Offset64 => "NC_CLOBBER|NC_64BIT_OFFSET",
            Kind::Data64 => "NC_CLOBBER|NC_64BIT_DATA",
            Kind::NetCdf4 => "NC_CLOBBER|NC_NETCDF4",
            Kind::NetCdf4Classic => "NC_CLOBBER|NC_NETCDF4|NC_CLASSIC_MODEL",
        };
        self.call(format!("nc_create({target}, {mode}, &ncid)"));
        if !self.how.kind.is_classic_model() {
            self.line(format!("    {} = ncid;", self.groups[0]));
        }
        if self.how.no_fill {
            self.call("nc_set_fill(ncid, NC_NOFILL, 0)");
        }
        for (index, group) in schema.groups.iter().enumerate() {
            if let Some(parent) = group.parent {
                let (id, parent) = (&self.groups[index], &self.groups[parent]);
                let call = format!("nc_def_grp({parent}, {}, &{id})", quoted(&group.name));
                self.call(call);
            }
        }
        self.line("");
        for index in schema.type_order() {
            self.define_type(schema, index);
        }
        if !schema.types.is_empty() {
            self.line("");
        }
        if !schema.dims.is_empty() {
            self.line("    /* define dimensions */");
        }
        for (index, dim) in schema.dims.iter().enumerate() {
            let (group, id) = (&self.groups[dim.group], &self.dims[index]);
            let call = format!("nc_def_dim({group}, {}, {id}_len, &{id}_dim)", quoted(&dim.name));
            self.call(call);
        }
        if !schema.dims.is_empty() {
            self.line("");
        }
        if !schema.vars.is_empty() {
            self.line("    /* define variables */\n");
        }
        for (index, var) in schema.vars.iter().enumerate() {
            self.define_variable(index, var);
        }
        let (of_groups, of_vars): (Vec<_>, Vec<_>) =
            schema.atts.iter().partition(|att| att.var.is_none());
        for (heading, atts) in [("global", of_groups), ("per-variable", of_vars)] {
            if atts.is_empty() {
                continue;
            }
            self.line(format!("    /* assign {heading} attributes */\n"));
            for att in atts {
                self.define_attribute(schema, att)?;
            }
            self.line("");
        }
        self.line("    /* leave define mode */");
        self.call(format!("nc_enddef ({})", self.groups[0]));
        self.line("");
        Ok(())
    }

    /// A type as C has it.
    fn c_type(&self, ty: TypeRef) -> String {
        match ty {
            TypeRef::Primitive(Primitive::String) => "char*".to_owned(),
            TypeRef::Primitive(Primitive::Atomic(ext)) => c_type(ext).to_owned(),
            TypeRef::User(user) => self.types[user].ty.clone(),
        }
    }

    /// The number of a type.
    fn nc_type(&self, ty: TypeRef) -> String {
        match ty {
            TypeRef::Primitive(primitive) => {
                format!("NC_{}", primitive.name().to_ascii_uppercase())
            }
            TypeRef::User(user) => self.types[user].id.clone(),
        }
    }

    fn declare_type(&mut self, schema: &Schema, index: usize) {
        let UserType { class, size, .. } = &schema.types[index];
        let (name, parts) = (self.types[index].ty.clone(), self.types[index].parts.clone());
        match class {
            Class::Opaque => self.line(format!("typedef unsigned char {name}[{size}];")),
            Class::Enum { base, members } => {
                let base_type = c_type(*base);
                for (member, part) in members.iter().zip(parts) {
                    let value = number(*base, &member.value[..base.size()]);
                    self.line(format!("#define {part} (({base_type}){value})"));
                }
                self.line(format!("typedef {base_type} {name};"));
            }
            Class::Vlen { .. } => self.line(format!("typedef nc_vlen_t {name};")),
            Class::Compound(fields) => {
                self.line(format!("typedef struct {name} {{"));
                for (field, part) in fields.iter().zip(parts) {
                    let ty = self.c_type(field.ty);
                    let dims: String = field.dims.iter().map(|len| format!("[{len}]")).collect();
                    self.line(format!("    {ty} {part}{dims};"));
                }
                self.line(format!("}} {name};"));
            }
        }
    }

    fn define_type(&mut self, schema: &Schema, index: usize) {
        let ty = &schema.types[index];
        let TypeNames { id, ty: c_name, parts } = &self.types[index];
        let (id, c_name, parts) = (id.clone(), c_name.clone(), parts.clone());
        let group = self.groups[ty.group].clone();
        let name = quoted(&ty.name);
        match &ty.class {
            Class::Opaque => {
                self.call(format!("nc_def_opaque({group}, {}, {name}, &{id})", ty.size));
            }
            Class::Vlen { base } => {
                let base = self.nc_type(*base);
                self.short_call(format!("nc_def_vlen({group}, {name}, {base}, &{id})"));
            }
            Class::Enum { base, members } => {
                let base_id = self.nc_type(TypeRef::Primitive(Primitive::Atomic(*base)));
                self.line(format!("    {{\n    {} econst;", c_type(*base)));
                self.call(format!("nc_def_enum({group}, {base_id}, {name}, &{id})"));
                for member in members {
                    let text = number(*base, &member.value[..base.size()]);
                    let member = quoted(&member.name);
                    self.line(format!("    econst = {text};"));
                    self.call(format!("nc_insert_enum({group}, {id}, {member}, &econst)"));
                }
                self.line("    }");
            }
            Class::Compound(fields) => {
                self.short_call(format!(
                    "nc_def_compound({group}, sizeof({c_name}), {name}, &{id})"
                ));
                self.line("    {");
                for (field, part) in fields.iter().zip(&parts) {
                    if !field.dims.is_empty() {
                        let lengths: Vec<String> =
                            field.dims.iter().map(usize::to_string).collect();
                        let (n, lengths) = (lengths.len(), lengths.join(", "));
                        self.line(format!("    static int {part}_dims[{n}] = {{{lengths}}};"));
                    }
                }
                for (field, part) in fields.iter().zip(&parts) {
                    let (base, field_name) = (self.nc_type(field.ty), quoted(&field.name));
                    let place = format!("NC_COMPOUND_OFFSET({c_name},{part})");
                    let lead = format!("{group}, {id}, {field_name}, {place}, {base}");
                    match field.dims.len() {
                        0 => self.short_call(format!("nc_insert_compound({lead})")),
                        n => {
                            self.short_call(format!(
                                "nc_insert_array_compound({lead}, {n}, {part}_dims)"
                            ));
                        }
                    }
                }
                self.line("    }");
            }
        }
        self.line("");
    }

    /// Lists that calls about the storage of a variable need.
    fn declare_storage(&mut self, index: usize, var: &Variable) {
        let stem = self.vars[index].clone();
        if let Some(sizes) = &var.special.chunk_sizes {
            let (n, sizes) = (sizes.len(), sizes.iter().map(usize::to_string));
            let sizes = sizes.collect::<Vec<String>>().join(", ");
            self.line(format!("static size_t {stem}_chunksizes[{n}] = {{{sizes}}} ;"));
        }
        for (number, (_, params)) in var.special.filters.iter().enumerate() {
            if params.is_empty() {
                continue;
            }
            let (n, params) = (params.len(), params.iter().map(|param| format!("{param}U")));
            let params = params.collect::<Vec<String>>().join(", ");
            let name = format!("{stem}_{number}_filterparams");
            self.line(format!("static unsigned int {name}[{n}] = {{{params}}} ;"));
        }
    }

    fn define_variable(&mut self, index: usize, var: &Variable) {
        let (group, stem) = (self.groups[var.group].clone(), self.vars[index].clone());
        let (ty, name, id) = (self.nc_type(var.ty), quoted(&var.name), format!("{stem}_id"));
        for (at, dim) in var.dims.iter().enumerate() {
            self.line(format!("    {stem}_dims[{at}] = {}_dim;", self.dims[*dim]));
        }
        let dims = if var.dims.is_empty() { "0".to_owned() } else { format!("{stem}_dims") };
        self.call(format!("nc_def_var({group}, {name}, {ty}, RANK_{stem}, {dims}, &{id})"));
        let special = &var.special;
        if let Some(storage) = special.storage {
            let what = match storage {
                Storage::Contiguous => "NC_CONTIGUOUS",
                Storage::Compact => "NC_COMPACT",
                Storage::Chunked => "NC_CHUNKED",
            };
            let has_sizes = special.chunk_sizes.is_some() && storage == Storage::Chunked;
            let sizes = if has_sizes { format!("{stem}_chunksizes") } else { "NULL".to_owned() };
            self.call(format!("nc_def_var_chunking({group}, {id}, {what}, {sizes})"));
        }
        if let Some(on) = special.fletcher32 {
            self.call(format!("nc_def_var_fletcher32({group}, {id}, {})", i32::from(on)));
        }
        if special.deflate.is_some() || special.shuffle.is_some() {
            let shuffle = if special.shuffle == Some(true) { "NC_SHUFFLE" } else { "NC_NOSHUFFLE" };
            let level = special.deflate.filter(|level| *level >= 0);
            let (on, level) = (i32::from(level.is_some()), level.unwrap_or(0));
            self.call(format!("nc_def_var_deflate({group}, {id}, {shuffle}, {on}, {level})"));
        }
        if let Some(endianness) = special.endianness {
            let order = match endianness {
                Endian::Little => "NC_ENDIAN_LITTLE",
                Endian::Big => "NC_ENDIAN_BIG",
            };
            self.call(format!("nc_def_var_endian({group}, {id}, {order})"));
        }
        if let Some(no_fill) = special.no_fill {
            let mode = if no_fill { "NC_NOFILL" } else { "NC_FILL" };
            self.call(format!("nc_def_var_fill({group}, {id}, {mode}, NULL)"));
        }
        for (number, (filter, params)) in special.filters.iter().enumerate() {
            let list = match params.len() {
                0 => "NULL".to_owned(),
                _ => format!("{stem}_{number}_filterparams"),
            };
            let n = params.len();
            self.call(format!("nc_def_var_filter({group}, {id}, {filter}, {n}, {list})"));
        }
        if let Some((way, kept)) = special.quantize {
            let mode = match way {
                Quantizer::BitGroom => 1,
                Quantizer::GranularBitRound => 2,
                Quantizer::BitRound => 3,
            };
            self.call(format!("nc_def_var_quantize({group}, {id}, {mode}, {kept})"));
        }
        self.line("");
    }

    fn define_attribute(&mut self, schema: &Schema, att: &Attribute) -> Result<(), Fault> {
        let group = self.groups[att.group].clone();
        let owner = att.var.map_or("NC_GLOBAL".to_owned(), |var| self.vars[var].clone() + "_id");
        let (values, n) = attribute(schema, att)?;
        let (name, ty) = (quoted(&att.name), self.nc_type(att.ty));
        self.line("    {");
        if att.ty == TypeRef::CHAR {
            let text = quoted(&values.bytes);
            // An empty text has one NUL, which each string of C has behind it.
            let text = if values.bytes == [0] { "\"\"" } else { &text };
            self.call(format!("nc_put_att_text({group}, {owner}, {name}, {n}, {text})"));
        } else {
            let lead = match self.how.kind.is_classic_model() {
                true => plain(&schema.groups[0].name) + "_",
                false => String::new(),
            };
            let array = lead + &plain(&att.name).replace("_PERIOD_", "_DOT_") + "_att";
            let size = schema.size_of(att.ty).max(1);
            let mut texts = Vec::new();
            for bytes in values.bytes.chunks_exact(size) {
                let mut before = String::new();
                texts.push(self.value(schema, att.ty, bytes, &values, &mut before));
                self.out += &before;
            }
            let (c_type, texts) = (self.c_type(att.ty), texts.join(", "));
            self.line(format!("    static const {c_type} {array}[{n}] = {{{texts}}} ;"));
            match att.ty {
                TypeRef::Primitive(Primitive::Atomic(ext)) => {
                    let family = family(ext);
                    self.call(format!(
                        "nc_put_att_{family}({group}, {owner}, {name}, {ty}, {n}, {array})"
                    ));
                }
                TypeRef::Primitive(Primitive::String) => {
                    self.short_call(format!(
                        "nc_put_att_string({group}, {owner}, {name}, {n}, {array})"
                    ));
                }
                TypeRef::User(_) => {
                    self.call(format!("nc_put_att({group}, {owner}, {name}, {ty}, {n}, {array})"));
                }
            }
        }
        self.line("    }\n");
        Ok(())
    }
}

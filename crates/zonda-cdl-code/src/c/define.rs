//! Declarations and definitions of a program in C.

use std::os::unix::ffi::OsStrExt;

use zonda_cdl::{
    CdlAttribute, CdlFault, CdlField, CdlType, CdlVariable, Endian, NetCdfKind, Primitive,
    Quantizer, Schema, StorageLayout, TypeClass, TypeRef, VariableStorage, attribute,
};

use super::constants::{c_type, family, joined, number, quoted};
use super::{CProgram, TypeNames};
use crate::names::plain;

impl CProgram<'_> {
    /// Everything before the data.
    pub(crate) fn definitions(&mut self, schema: &Schema) -> Result<(), CdlFault> {
        self.declare_statics(schema);
        self.begin_main();
        self.declare_ids(schema);
        self.create_file(schema);
        for index in schema.type_order() {
            self.define_type(schema, index);
        }
        if !schema.types.is_empty() {
            self.line("");
        }
        self.define_dimensions(schema);
        if !schema.vars.is_empty() {
            self.line("    /* define variables */\n");
        }
        for (index, var) in schema.vars.iter().enumerate() {
            self.define_variable(index, var);
        }
        self.define_attributes(schema)?;
        self.line("    /* leave define mode */");
        self.call(format!("nc_enddef ({})", self.groups[0]));
        self.line("");
        Ok(())
    }

    /// Includes, and what stands before functions: types, lists that calls about storage need.
    fn declare_statics(&mut self, schema: &Schema) {
        self.line("#include <stdio.h>\n#include <stdlib.h>\n#include <netcdf.h>\n\n");
        for index in schema.type_order() {
            self.declare_type(schema, index);
        }
        if !schema.types.is_empty() {
            self.line("");
        }
        let len_before = self.out.len();
        for (index, var) in schema.vars.iter().enumerate() {
            self.declare_storage(index, var);
        }
        if self.out.len() > len_before || !self.options.kind.is_classic_model() {
            self.line("");
        }
    }

    /// The function that checks results, and the head of the main function.
    fn begin_main(&mut self) {
        self.line(
            "void\ncheck_err(const int stat, int line, const char* file, const char* func) {\n    \
             if (stat != NC_NOERR) {\n        (void)fprintf(stderr,\"line %d of %s.%s: %s\\n\", line, \
             file, func, nc_strerror(stat));\n        fflush(stderr);\n        exit(1);\n    }\n}\n\n\
             #define CHECK_ERR(err) check_err(err, __LINE__, __FILE__, __func__)\n",
        );
        let main = plain(self.options.main.unwrap_or("main").as_bytes());
        let comment = self.quoted_target();
        let comment = comment.trim_matches('"').replace("*/", "*_/");
        self.line(format!("int\n{main}() {{/* create {comment} */\n"));
        self.line("    int  stat;  /* return status */\n    int  ncid;  /* netCDF id */\n");
    }

    fn quoted_target(&self) -> String {
        quoted(self.options.target.as_os_str().as_bytes())
    }

    /// Variables of the main function: numbers, lengths, ranks and shapes.
    fn declare_ids(&mut self, schema: &Schema) {
        let int = |name: &String| format!("    int {name};");
        if !self.options.kind.is_classic_model() {
            let groups: Vec<String> = self.groups.iter().map(int).collect();
            self.section("group ids", &groups);
        }
        let types = schema.type_order().into_iter().map(|ty| int(&self.types[ty].id));
        let types: Vec<String> = types.collect();
        self.section("type ids", &types);
        let ids = self.dims.iter().map(|name| format!("    int {name}_dim;"));
        let ids: Vec<String> = ids.collect();
        self.section("dimension ids", &ids);
        let lens = schema.dims.iter().zip(&self.dims).map(|(dim, name)| {
            let len = if dim.unlimited { "NC_UNLIMITED".to_owned() } else { dim.len.to_string() };
            format!("    size_t {name}_len = {len};")
        });
        let lens: Vec<String> = lens.collect();
        self.section("dimension lengths", &lens);
        let ids = self.vars.iter().map(|name| format!("    int {name}_id;"));
        let ids: Vec<String> = ids.collect();
        self.section("variable ids", &ids);
        let vars = || schema.vars.iter().zip(&self.vars);
        let ranks = vars().map(|(var, name)| format!("#   define RANK_{name} {}", var.dims.len()));
        let ranks: Vec<String> = ranks.collect();
        let shapes = vars().filter(|(var, _)| !var.dims.is_empty());
        let shapes: Vec<String> =
            shapes.map(|(_, name)| format!("    int {name}_dims[RANK_{name}];")).collect();
        self.section("rank (number of dimensions) for each variable", &ranks);
        self.section("variable shapes", &shapes);
    }

    /// Makes the file and its groups.
    fn create_file(&mut self, schema: &Schema) {
        self.line("    /* enter define mode */");
        let mode = match self.options.kind {
            NetCdfKind::Classic => "NC_CLOBBER",
            NetCdfKind::Offset64 => "NC_CLOBBER|NC_64BIT_OFFSET",
            NetCdfKind::Data64 => "NC_CLOBBER|NC_64BIT_DATA",
            NetCdfKind::NetCdf4 => "NC_CLOBBER|NC_NETCDF4",
            NetCdfKind::NetCdf4Classic => "NC_CLOBBER|NC_NETCDF4|NC_CLASSIC_MODEL",
        };
        self.call(format!("nc_create({}, {mode}, &ncid)", self.quoted_target()));
        if !self.options.kind.is_classic_model() {
            self.line(format!("    {} = ncid;", self.groups[0]));
        }
        if self.options.no_fill {
            self.call("nc_set_fill(ncid, NC_NOFILL, 0)");
        }
        for (index, group) in schema.groups.iter().enumerate() {
            if let Some(parent) = group.parent {
                let (id, parent) = (&self.groups[index], &self.groups[parent]);
                self.call(format!("nc_def_grp({parent}, {}, &{id})", quoted(&group.name)));
            }
        }
        self.line("");
    }

    fn define_dimensions(&mut self, schema: &Schema) {
        if schema.dims.is_empty() {
            return;
        }
        self.line("    /* define dimensions */");
        for (index, dim) in schema.dims.iter().enumerate() {
            let (group, id) = (&self.groups[dim.group], &self.dims[index]);
            let name = quoted(&dim.name);
            self.call(format!("nc_def_dim({group}, {name}, {id}_len, &{id}_dim)"));
        }
        self.line("");
    }

    fn define_attributes(&mut self, schema: &Schema) -> Result<(), CdlFault> {
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
        Ok(())
    }

    fn declare_type(&mut self, schema: &Schema, index: usize) {
        let CdlType { class, size, .. } = &schema.types[index];
        let (name, parts) = (self.types[index].ty.clone(), self.types[index].parts.clone());
        match class {
            TypeClass::Opaque => self.line(format!("typedef unsigned char {name}[{size}];")),
            TypeClass::Enum { base, members } => {
                let base_type = c_type(*base);
                for (member, part) in members.iter().zip(parts) {
                    let value = number(*base, &member.value[..base.size()]);
                    self.line(format!("#define {part} (({base_type}){value})"));
                }
                self.line(format!("typedef {base_type} {name};"));
            }
            TypeClass::Vlen { .. } => self.line(format!("typedef nc_vlen_t {name};")),
            TypeClass::Compound(fields) => {
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
            TypeClass::Opaque => {
                self.call(format!("nc_def_opaque({group}, {}, {name}, &{id})", ty.size));
            }
            TypeClass::Vlen { base } => {
                let base = self.nc_type(*base);
                self.short_call(format!("nc_def_vlen({group}, {name}, {base}, &{id})"));
            }
            TypeClass::Enum { base, members } => {
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
            TypeClass::Compound(fields) => {
                self.short_call(format!(
                    "nc_def_compound({group}, sizeof({c_name}), {name}, &{id})"
                ));
                self.line("    {");
                self.insert_fields(fields, &parts, &c_name, &format!("{group}, {id}"));
                self.line("    }");
            }
        }
        self.line("");
    }

    /// Calls that add fields to a compound type; `lead` is the first arguments of each.
    fn insert_fields(&mut self, fields: &[CdlField], names: &[String], c_name: &str, lead: &str) {
        for (field, part) in fields.iter().zip(names) {
            if !field.dims.is_empty() {
                let (n, lengths) = (field.dims.len(), joined(&field.dims));
                self.line(format!("    static int {part}_dims[{n}] = {{{lengths}}};"));
            }
        }
        for (field, part) in fields.iter().zip(names) {
            let (base, name) = (self.nc_type(field.ty), quoted(&field.name));
            let args = format!("{lead}, {name}, NC_COMPOUND_OFFSET({c_name},{part}), {base}");
            self.short_call(match field.dims.len() {
                0 => format!("nc_insert_compound({args})"),
                n => format!("nc_insert_array_compound({args}, {n}, {part}_dims)"),
            });
        }
    }

    /// Arrays that the calls about the storage of a variable take.
    fn declare_storage(&mut self, index: usize, var: &CdlVariable) {
        let stem = self.vars[index].clone();
        if let Some(sizes) = &var.special.chunk_sizes {
            let (n, sizes) = (sizes.len(), joined(sizes));
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

    fn define_variable(&mut self, index: usize, var: &CdlVariable) {
        let (group, stem) = (self.groups[var.group].clone(), self.vars[index].clone());
        let (ty, name, id) = (self.nc_type(var.ty), quoted(&var.name), format!("{stem}_id"));
        for (at, dim) in var.dims.iter().enumerate() {
            self.line(format!("    {stem}_dims[{at}] = {}_dim;", self.dims[*dim]));
        }
        let dims = if var.dims.is_empty() { "0".to_owned() } else { format!("{stem}_dims") };
        self.call(format!("nc_def_var({group}, {name}, {ty}, RANK_{stem}, {dims}, &{id})"));
        self.define_storage(&group, &stem, &var.special);
        self.line("");
    }

    /// Calls that say how a variable is stored.
    fn define_storage(&mut self, group: &str, stem: &str, special: &VariableStorage) {
        let id = format!("{stem}_id");
        if let Some(storage) = special.storage {
            let what = match storage {
                StorageLayout::Contiguous => "NC_CONTIGUOUS",
                StorageLayout::Compact => "NC_COMPACT",
                StorageLayout::Chunked => "NC_CHUNKED",
            };
            let has_sizes = special.chunk_sizes.is_some() && storage == StorageLayout::Chunked;
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
    }

    fn define_attribute(&mut self, schema: &Schema, att: &CdlAttribute) -> Result<(), CdlFault> {
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
            let lead = match self.options.kind.is_classic_model() {
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

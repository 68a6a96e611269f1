//! C.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use zonda_cdl::{
    Attribute, Class, Elements, Endian, Fault, Field, Kind, Primitive, Quantizer, Schema, Sink,
    Slab, Storage, TypeRef, UserType, Variable, attribute,
};

use super::How;
use super::names::{Unique, Value, plain, value, with_groups};

/// Values in a line.
const PER_LINE: usize = 8;
/// Characters in a line.
const CHARS_PER_LINE: usize = 64;

/// A program.
pub(super) struct Program<'a> {
    how: &'a How<'a>,
    warn: &'a dyn Fn(&Fault),
    out: String,
    /// Names of the numbers of all objects, and of types.
    groups: Vec<String>,
    types: Vec<TypeNames>,
    dims: Vec<String>,
    vars: Vec<String>,
    /// Arrays that others point to, so far.
    n_arrays: usize,
}

struct TypeNames {
    /// Of its number.
    id: String,
    /// Of the type in C.
    ty: String,
    fields: Vec<String>,
}

impl<'a> Program<'a> {
    pub(super) fn new(schema: &Schema, how: &'a How<'a>, warn: &'a dyn Fn(&Fault)) -> Program<'a> {
        let mut unique = Unique::default();
        let mut give = |group: usize, name: &[u8], what: &str| {
            unique.give(format!("{}_{what}", plain(&with_groups(schema, group, name))))
        };
        let groups = schema.groups.iter();
        let groups =
            groups.map(|group| give(group.parent.unwrap_or(0), &group.name, "grp")).collect();
        let types = schema.types.iter().map(|ty| {
            let fields = match &ty.class {
                Class::Compound(fields) => {
                    let mut unique = Unique::default();
                    fields.iter().map(|f| unique.give(plain(&f.name) + "_fld")).collect()
                }
                _ => Vec::new(),
            };
            TypeNames {
                id: give(ty.group, &ty.name, "typ"),
                ty: give(ty.group, &ty.name, "t"),
                fields,
            }
        });
        let types = types.collect();
        let dims = schema.dims.iter().map(|dim| give(dim.group, &dim.name, "dim")).collect();
        let vars = schema.vars.iter().map(|var| give(var.group, &var.name, "id")).collect();
        Program { how, warn, out: String::new(), groups, types, dims, vars, n_arrays: 0 }
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

    pub(super) fn definitions(&mut self, schema: &Schema) -> Result<(), Fault> {
        self.line(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <stddef.h>\n#include <math.h>",
        );
        self.line("#include <netcdf.h>\n");
        for index in schema.type_order() {
            self.declare_type(schema, index);
        }
        self.line(
            "static void\ncheck_err(const int stat, const int line, const char *file)\n{\n    \
             if (stat != NC_NOERR) {\n        fprintf(stderr, \"line %d of %s: %s\\n\", line, file, \
             nc_strerror(stat));\n        exit(1);\n    }\n}\n\n\
             #define CHECK_ERR(err) check_err(err, __LINE__, __FILE__)\n",
        );
        let target = quoted(self.how.target.as_os_str().as_bytes());
        let main = self.how.main.unwrap_or("main").to_owned();
        self.line(format!("int\n{}(void)", plain(main.as_bytes())));
        self.line(format!("{{   /* create {} */", target.trim_matches('"').replace("*/", "*_/")));
        self.line("    int stat;  /* return status */\n    int ncid;  /* netCDF id */\n");
        let ids = [&self.groups[..], &self.dims, &self.vars].concat();
        let types: Vec<String> = self.types.iter().map(|names| names.id.clone()).collect();
        for id in ids.iter().chain(&types) {
            self.line(format!("    int {id};"));
        }
        self.line("\n    /* enter define mode */");
        let mode = match self.how.kind {
            Kind::Classic => "NC_CLOBBER",
            Kind::Offset64 => "NC_CLOBBER|NC_64BIT_OFFSET",
            Kind::Data64 => "NC_CLOBBER|NC_64BIT_DATA",
            Kind::NetCdf4 => "NC_CLOBBER|NC_NETCDF4",
            Kind::NetCdf4Classic => "NC_CLOBBER|NC_NETCDF4|NC_CLASSIC_MODEL",
        };
        self.call(format!("nc_create({target}, {mode}, &ncid)"));
        if self.how.no_fill {
            self.call("nc_set_fill(ncid, NC_NOFILL, NULL)");
        }
        self.line(format!("    {} = ncid;", self.groups[0]));
        for (index, group) in schema.groups.iter().enumerate() {
            if let Some(parent) = group.parent {
                let (id, parent) = (&self.groups[index], &self.groups[parent]);
                let call = format!("nc_def_grp({parent}, {}, &{id})", quoted(&group.name));
                self.call(call);
            }
        }
        for index in schema.type_order() {
            self.define_type(schema, index);
        }
        if !schema.dims.is_empty() {
            self.line("\n    /* define dimensions */");
        }
        for (index, dim) in schema.dims.iter().enumerate() {
            let len = if dim.unlimited { "NC_UNLIMITED".to_owned() } else { dim.len.to_string() };
            let (group, id) = (&self.groups[dim.group], &self.dims[index]);
            let call = format!("nc_def_dim({group}, {}, {len}, &{id})", quoted(&dim.name));
            self.call(call);
        }
        for (index, var) in schema.vars.iter().enumerate() {
            self.define_variable(index, var);
        }
        let (of_groups, of_vars): (Vec<_>, Vec<_>) =
            schema.atts.iter().partition(|att| att.var.is_none());
        for att in of_groups.into_iter().chain(of_vars) {
            self.define_attribute(schema, att)?;
        }
        self.line("\n    /* leave define mode */");
        self.call(format!("nc_enddef({})", self.groups[0]));
        Ok(())
    }

    /// A type as C has it.
    fn c_type(&self, ty: TypeRef) -> String {
        match ty {
            TypeRef::Primitive(Primitive::String) => "char *".to_owned(),
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
        let name = self.types[index].ty.clone();
        match class {
            Class::Opaque => {
                self.line(format!("typedef struct {{ unsigned char bytes[{size}]; }} {name};"))
            }
            Class::Enum { base, .. } => self.line(format!("typedef {} {name};", c_type(*base))),
            Class::Vlen { .. } => self.line(format!("typedef nc_vlen_t {name};")),
            Class::Compound(fields) => {
                self.line("typedef struct {");
                for (index_of_field, field) in fields.iter().enumerate() {
                    let ty = self.c_type(field.ty);
                    let dims: String = field.dims.iter().map(|len| format!("[{len}]")).collect();
                    let field_name = &self.types[index].fields[index_of_field];
                    let text = format!("    {ty} {field_name}{dims};");
                    self.line(text);
                }
                self.line(format!("}} {name};"));
            }
        }
        self.line("");
    }

    fn define_type(&mut self, schema: &Schema, index: usize) {
        let ty = &schema.types[index];
        let TypeNames { id, ty: c_name, .. } = &self.types[index];
        let (id, c_name) = (id.clone(), c_name.clone());
        let group = self.groups[ty.group].clone();
        let name = quoted(&ty.name);
        self.line("");
        match &ty.class {
            Class::Opaque => {
                self.call(format!("nc_def_opaque({group}, {}, {name}, &{id})", ty.size))
            }
            Class::Vlen { base } => {
                let base = self.nc_type(*base);
                self.call(format!("nc_def_vlen({group}, {name}, {base}, &{id})"));
            }
            Class::Enum { base, members } => {
                let base_type = TypeRef::Primitive(Primitive::Atomic(*base));
                let base_id = self.nc_type(base_type);
                self.call(format!("nc_def_enum({group}, {base_id}, {name}, &{id})"));
                for member in members {
                    let text = number(*base, &member.value[..base.size()]);
                    let member = quoted(&member.name);
                    self.line(format!("    {{\n    {c_name} value = {text};"));
                    self.call(format!("nc_insert_enum({group}, {id}, {member}, &value)"));
                    self.line("    }");
                }
            }
            Class::Compound(fields) => {
                self.call(format!("nc_def_compound({group}, sizeof({c_name}), {name}, &{id})"));
                for (index_of_field, field) in fields.iter().enumerate() {
                    let Field { dims, .. } = field;
                    let base = self.nc_type(field.ty);
                    let c_field = &self.types[index].fields[index_of_field];
                    let place = format!("offsetof({c_name}, {c_field})");
                    let field_name = quoted(&field.name);
                    if dims.is_empty() {
                        self.call(format!(
                            "nc_insert_compound({group}, {id}, {field_name}, {place}, {base})"
                        ));
                        continue;
                    }
                    let lengths: Vec<String> = dims.iter().map(usize::to_string).collect();
                    let n = dims.len();
                    self.line(format!(
                        "    {{\n    static const int dims[] = {{{}}};",
                        lengths.join(", ")
                    ));
                    self.call(format!(
                        "nc_insert_array_compound({group}, {id}, {field_name}, {place}, {base}, {n}, dims)"
                    ));
                    self.line("    }");
                }
            }
        }
    }

    fn define_variable(&mut self, index: usize, var: &Variable) {
        let (group, id) = (self.groups[var.group].clone(), self.vars[index].clone());
        let (ty, name) = (self.nc_type(var.ty), quoted(&var.name));
        self.line("");
        if var.dims.is_empty() {
            self.call(format!("nc_def_var({group}, {name}, {ty}, 0, NULL, &{id})"));
        } else {
            let dims: Vec<&str> = var.dims.iter().map(|dim| &self.dims[*dim][..]).collect();
            let (n, dims) = (dims.len(), dims.join(", "));
            self.line(format!("    {{\n    const int dims[] = {{{dims}}};"));
            self.call(format!("nc_def_var({group}, {name}, {ty}, {n}, dims, &{id})"));
            self.line("    }");
        }
        let special = &var.special;
        if let Some(storage) = special.storage {
            let what = match storage {
                Storage::Contiguous => "NC_CONTIGUOUS",
                Storage::Compact => "NC_COMPACT",
                Storage::Chunked => "NC_CHUNKED",
            };
            match special.chunk_sizes.as_ref().filter(|_| storage == Storage::Chunked) {
                Some(sizes) => {
                    let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
                    self.line(format!(
                        "    {{\n    static const size_t sizes[] = {{{}}};",
                        sizes.join(", ")
                    ));
                    self.call(format!("nc_def_var_chunking({group}, {id}, {what}, sizes)"));
                    self.line("    }");
                }
                None => self.call(format!("nc_def_var_chunking({group}, {id}, {what}, NULL)")),
            }
        }
        if let Some(on) = special.fletcher32 {
            self.call(format!("nc_def_var_fletcher32({group}, {id}, {})", i32::from(on)));
        }
        if special.deflate.is_some() || special.shuffle.is_some() {
            let shuffle = i32::from(special.shuffle == Some(true));
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
            self.call(format!("nc_def_var_fill({group}, {id}, {}, NULL)", i32::from(no_fill)));
        }
        for (filter, params) in &special.filters {
            if params.is_empty() {
                self.call(format!("nc_def_var_filter({group}, {id}, {filter}, 0, NULL)"));
                continue;
            }
            let n = params.len();
            let params: Vec<String> = params.iter().map(|param| format!("{param}U")).collect();
            self.line(format!(
                "    {{\n    static const unsigned int params[] = {{{}}};",
                params.join(", ")
            ));
            self.call(format!("nc_def_var_filter({group}, {id}, {filter}, {n}, params)"));
            self.line("    }");
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

    fn define_attribute(&mut self, schema: &Schema, att: &Attribute) -> Result<(), Fault> {
        let group = self.groups[att.group].clone();
        let owner = att.var.map_or("NC_GLOBAL".to_owned(), |var| self.vars[var].clone());
        let (values, n) = attribute(schema, att)?;
        let (name, ty) = (quoted(&att.name), self.nc_type(att.ty));
        self.line("\n    {");
        self.values(schema, att.ty, &values);
        self.call(format!("nc_put_att({group}, {owner}, {name}, {ty}, {n}, values)"));
        self.line("    }");
        Ok(())
    }

    /// Declares `values`, an array.
    fn values(&mut self, schema: &Schema, ty: TypeRef, values: &Elements) {
        if ty == TypeRef::CHAR {
            let text = long_text(&values.bytes);
            return self.line(format!("    static const char values[] = {text};"));
        }
        let size = schema.size_of(ty).max(1);
        let mut before = String::new();
        let texts: Vec<String> = values
            .bytes
            .chunks_exact(size)
            .map(|bytes| self.value(schema, ty, bytes, values, &mut before))
            .collect();
        self.out += &before;
        let ty = self.c_type(ty);
        self.line(format!("    static {ty} values[] = {{{}}};", lines(&texts)));
    }

    /// A value; what it points to is declared in `before`.
    fn value(
        &mut self,
        schema: &Schema,
        ty: TypeRef,
        bytes: &[u8],
        values: &Elements,
        before: &mut String,
    ) -> String {
        match ty {
            TypeRef::Primitive(Primitive::Atomic(ext)) => number(ext, bytes),
            TypeRef::Primitive(Primitive::String) => {
                let piece = bytes.first_chunk().map_or(0, |number| u64::from_ne_bytes(*number));
                values.pieces.get(piece).map_or("NULL".to_owned(), quoted)
            }
            TypeRef::User(user) => match &schema.types[user].class {
                Class::Opaque => {
                    let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
                    format!("{{{{{}}}}}", bytes.join(", "))
                }
                Class::Enum { base, .. } => number(*base, bytes),
                Class::Vlen { base } => self.sequence(schema, *base, bytes, values, before),
                Class::Compound(fields) => {
                    let mut parts = Vec::new();
                    for field in fields {
                        let n: usize = field.dims.iter().product();
                        let size = schema.size_of(field.ty);
                        let of_field = bytes.get(field.offset..).unwrap_or_default();
                        let of_field = of_field.get(..n * size).unwrap_or_default();
                        let items: Vec<String> = of_field
                            .chunks_exact(size.max(1))
                            .map(|bytes| self.value(schema, field.ty, bytes, values, before))
                            .collect();
                        parts.push(match field.dims.is_empty() {
                            true => items.concat(),
                            false => nested(&items, &field.dims),
                        });
                    }
                    format!("{{{}}}", parts.join(", "))
                }
            },
        }
    }

    fn sequence(
        &mut self,
        schema: &Schema,
        base: TypeRef,
        bytes: &[u8],
        values: &Elements,
        before: &mut String,
    ) -> String {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |at: usize| words.get(at).map_or(0, |word| u64::from_ne_bytes(*word));
        let Some(items) = values.pieces.get(word(1)) else { return "{0, NULL}".to_owned() };
        let items: Vec<String> = items
            .chunks_exact(schema.size_of(base).max(1))
            .map(|bytes| self.value(schema, base, bytes, values, before))
            .collect();
        self.n_arrays += 1;
        let (name, ty) = (format!("vlen_{}", self.n_arrays), self.c_type(base));
        let _ = writeln!(before, "    static {ty} {name}[] = {{{}}};", lines(&items));
        format!("{{{}, (void *){name}}}", word(0))
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.line("");
        self.call(format!("nc_close({})", self.groups[0]));
        self.line("    return 0;\n}");
        self.out.into_bytes()
    }
}

impl Sink for Program<'_> {
    fn put(
        &mut self,
        schema: &Schema,
        var: usize,
        slab: Slab<'_>,
        values: &mut Elements,
    ) -> Result<(), String> {
        let variable = &schema.vars[var];
        let (group, id) = (self.groups[variable.group].clone(), self.vars[var].clone());
        self.line("\n    {");
        self.values(schema, variable.ty, values);
        if slab.start.is_empty() {
            self.call(format!("nc_put_var({group}, {id}, values)"));
        } else {
            let list = |numbers: &[u64]| {
                numbers.iter().map(u64::to_string).collect::<Vec<String>>().join(", ")
            };
            self.line(format!("    static const size_t start[] = {{{}}};", list(slab.start)));
            self.line(format!("    static const size_t count[] = {{{}}};", list(slab.count)));
            self.call(format!("nc_put_vara({group}, {id}, start, count, values)"));
        }
        self.line("    }");
        Ok(())
    }

    fn fills(&self, schema: &Schema, var: usize) -> bool {
        let var = &schema.vars[var];
        !self.how.no_fill && var.special.no_fill != Some(true) && var.ty.atomic().is_some()
    }

    fn warn(&mut self, fault: &Fault) {
        (self.warn)(fault);
    }
}

fn c_type(ext: zonda::ExtType) -> &'static str {
    use zonda::ExtType;
    match ext {
        ExtType::Byte => "signed char",
        ExtType::Char => "char",
        ExtType::Short => "short",
        ExtType::Int => "int",
        ExtType::Float => "float",
        ExtType::Double => "double",
        ExtType::UByte => "unsigned char",
        ExtType::UShort => "unsigned short",
        ExtType::UInt => "unsigned int",
        ExtType::Int64 => "long long",
        ExtType::UInt64 => "unsigned long long",
    }
}

fn number(ext: zonda::ExtType, bytes: &[u8]) -> String {
    let special =
        |text: &str, negative: bool| if negative { format!("-{text}") } else { text.to_owned() };
    match value(ext, bytes) {
        // C has no negative constants, and none for the magnitude of this one.
        Value::Int(i64::MIN) => "(-9223372036854775807LL - 1)".to_owned(),
        Value::Int(value) if i32::try_from(value).is_err() && ext == zonda::ExtType::UInt => {
            format!("{value}U")
        }
        Value::Int(value) if ext == zonda::ExtType::Int64 => format!("{value}LL"),
        Value::Int(value) => value.to_string(),
        Value::UInt64(value) => format!("{value}ULL"),
        Value::Float(value) if value.is_nan() => "NAN".to_owned(),
        Value::Float(value) if value.is_infinite() => special("INFINITY", value < 0.0),
        Value::Float(value) => format!("{value:?}f"),
        Value::Double(value) if value.is_nan() => "NAN".to_owned(),
        Value::Double(value) if value.is_infinite() => special("INFINITY", value < 0.0),
        Value::Double(value) => format!("{value:?}"),
    }
}

/// Values in lines.
fn lines(texts: &[String]) -> String {
    let lines: Vec<String> = texts.chunks(PER_LINE).map(|line| line.join(", ")).collect();
    lines.join(",\n        ")
}

/// Values in braces by their shape.
fn nested(items: &[String], dims: &[usize]) -> String {
    match dims {
        [_, inner @ ..] if !inner.is_empty() => {
            let per_part = inner.iter().product::<usize>().max(1);
            let parts: Vec<String> =
                items.chunks(per_part).map(|part| nested(part, inner)).collect();
            format!("{{{}}}", parts.join(", "))
        }
        _ => format!("{{{}}}", items.join(", ")),
    }
}

/// A string of C.
fn quoted(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in text {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(*byte));
            }
            b'\n' => out += "\\n",
            // Two of them may begin a trigraph.
            b' '..=b'~' if *byte != b'?' => out.push(char::from(*byte)),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out + "\""
}

/// A string of C in several lines.
fn long_text(text: &[u8]) -> String {
    if text.is_empty() {
        return "\"\"".to_owned();
    }
    let lines: Vec<String> = text.chunks(CHARS_PER_LINE).map(quoted).collect();
    lines.join("\n        ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda::ExtType;

    #[test]
    fn constants() {
        assert_eq!(quoted(b"a\"b\\\n\x01?\xff"), r#""a\"b\\\n\001\077\377""#);
        assert_eq!(number(ExtType::Float, &1.5f32.to_ne_bytes()), "1.5f");
        assert_eq!(number(ExtType::Float, &f32::NAN.to_ne_bytes()), "NAN");
        assert_eq!(number(ExtType::Double, &f64::NEG_INFINITY.to_ne_bytes()), "-INFINITY");
        assert_eq!(number(ExtType::Double, &1e300f64.to_ne_bytes()), "1e300");
        assert_eq!(number(ExtType::UInt, &u32::MAX.to_ne_bytes()), "4294967295U");
        assert_eq!(number(ExtType::Int64, &i64::MIN.to_ne_bytes()), "(-9223372036854775807LL - 1)");
    }

    #[test]
    fn shapes() {
        let items: Vec<String> = (1..=6).map(|n| n.to_string()).collect();
        assert_eq!(nested(&items, &[2, 3]), "{{1, 2, 3}, {4, 5, 6}}");
        assert_eq!(nested(&items, &[6]), "{1, 2, 3, 4, 5, 6}");
    }
}

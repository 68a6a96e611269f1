//! Programs in Java, for the library of Unidata.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use zonda_cdl::{CdlAttribute, CdlFault, DataSink, DataSlab, Elements, Schema, attribute};
use zonda_model::ExtType;
use zonda_slab::unrank;

use crate::ProgramOptions;
use crate::names::{NativeNumber, UniqueNames, atomic, numbers_in, plain};

/// Values that a method puts: the code of a method has at most 64 KiB.
const PER_METHOD: usize = 1000;
/// Values that stand in one line.
const PER_LINE: usize = 8;

/// A program in Java.
pub(crate) struct JavaProgram<'a> {
    options: &'a ProgramOptions<'a>,
    warn: &'a dyn Fn(&CdlFault),
    class: String,
    main: String,
    /// Methods other than `main`.
    methods: String,
    dims: Vec<String>,
    n_methods: usize,
}

impl<'a> JavaProgram<'a> {
    pub(crate) fn new(
        schema: &Schema,
        options: &'a ProgramOptions<'a>,
        warn: &'a dyn Fn(&CdlFault),
    ) -> JavaProgram<'a> {
        let mut unique = UniqueNames::default();
        let dims = schema.dims.iter().map(|dim| unique.give(plain(&dim.name) + "_dim")).collect();
        let class = plain(options.main.unwrap_or("Main").as_bytes());
        let (main, methods) = (String::new(), String::new());
        JavaProgram { options, warn, class, main, methods, dims, n_methods: 0 }
    }

    fn line(&mut self, text: &str) {
        self.main += text;
        self.main.push('\n');
    }

    pub(crate) fn definitions(&mut self, schema: &Schema) -> Result<(), CdlFault> {
        let class = self.class.clone();
        self.line("import java.util.*;\nimport ucar.ma2.*;\nimport ucar.nc2.*;\n");
        self.line(&format!("public class {class}\n{{\n"));
        self.line("static public void main(String[] argv) throws Exception\n{");
        let target = quoted(self.options.target.as_os_str().as_bytes());
        let fill = !self.options.no_fill;
        self.line("    NetcdfFileWriteable ncfile =");
        self.line(&format!("        NetcdfFileWriteable.createNew({target}, {fill});\n"));
        for (index, dim) in schema.dims.iter().enumerate() {
            let (id, name) = (self.dims[index].clone(), quoted(&dim.name));
            if dim.unlimited {
                self.line(&format!("    Dimension {id} = ncfile.addUnlimitedDimension({name});"));
            } else {
                self.line(&format!(
                    "    Dimension {id} = ncfile.addDimension({name}, {});",
                    dim.len
                ));
            }
        }
        for var in &schema.vars {
            let dims: Vec<&str> = var.dims.iter().map(|dim| &self.dims[*dim][..]).collect();
            let (name, ty, dims) = (quoted(&var.name), data_type(atomic(var.ty)), dims.join(", "));
            let call = format!(
                "    ncfile.addVariable({name}, DataType.{ty}, new Dimension[] {{{dims}}});"
            );
            self.line(&call);
        }
        let (of_file, of_vars): (Vec<_>, Vec<_>) =
            schema.atts.iter().partition(|att| att.var.is_none());
        for att in of_file.into_iter().chain(of_vars) {
            self.define_attribute(schema, att)?;
        }
        self.line("\n    ncfile.create();\n");
        Ok(())
    }

    fn define_attribute(&mut self, schema: &Schema, att: &CdlAttribute) -> Result<(), CdlFault> {
        let (content, n) = attribute(schema, att)?;
        let (ext, name) = (atomic(att.ty), quoted(&att.name));
        let add = match att.var {
            None => format!("ncfile.addGlobalAttribute({name}, "),
            Some(var) => {
                format!("ncfile.addVariableAttribute({}, {name}, ", quoted(&schema.vars[var].name))
            }
        };
        if ext == ExtType::Char {
            self.line(&format!("    {add}{});", quoted(&content.bytes)));
        } else {
            let (class, list) = (java_type(ext), list(ext, &content));
            self.line(&format!(
                "    {add}Array.factory({class}.class, new int[] {{{n}}}, new {class}[] {{{list}}}));"
            ));
        }
        Ok(())
    }

    /// Makes a method that puts values of one row, and calls it: only their last index differs.
    fn row(&mut self, name: &[u8], ext: ExtType, start: &[u64], row: &Elements) {
        self.n_methods += 1;
        let method = format!("put{}", self.n_methods);
        self.line(&format!("    {method}(ncfile);"));
        let n = row.bytes.len() / ext.size();
        let mut shape = vec!["1".to_owned(); start.len()];
        if let Some(last) = shape.last_mut() {
            *last = n.to_string();
        }
        let shape = shape.join(", ");
        let origin = start.iter().map(u64::to_string).collect::<Vec<String>>().join(", ");
        let (class, name) = (java_type(ext), quoted(name));
        let values = match ext {
            ExtType::Char => format!("{}.toCharArray()", quoted(&row.bytes)),
            _ => format!("new {class}[] {{{}}}", list(ext, row)),
        };
        let _ = write!(
            self.methods,
            "\nstatic void {method}(NetcdfFileWriteable ncfile) throws Exception\n{{\n    \
             {class}[] values = {values};\n    \
             Array data = Array.factory({class}.class, new int[] {{{shape}}}, values);\n    \
             ncfile.write({name}, new int[] {{{origin}}}, data);\n}}\n"
        );
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.line("\n    ncfile.close();\n}");
        (self.main + &self.methods + "\n}\n").into_bytes()
    }
}

impl DataSink for JavaProgram<'_> {
    fn put(
        &mut self,
        schema: &Schema,
        var: usize,
        slab: DataSlab<'_>,
        values: &mut Elements,
    ) -> Result<(), String> {
        let variable = &schema.vars[var];
        let ext = atomic(variable.ty);
        let row_len = slab.count.last().map_or(1, |len| usize::try_from(*len).unwrap_or(1));
        for (row, bytes) in values.bytes.chunks(row_len.max(1) * ext.size()).enumerate() {
            let mut start = slab.start.to_vec();
            let outer = start.len().saturating_sub(1);
            unrank(row as u64, &slab.count[..outer], &mut start[..outer]);
            for (part, bytes) in bytes.chunks(PER_METHOD * ext.size()).enumerate() {
                let mut start = start.clone();
                if let Some(last) = start.last_mut() {
                    *last += (part * PER_METHOD) as u64;
                }
                let row = Elements { bytes: bytes.to_vec(), ..Elements::default() };
                self.row(&variable.name, ext, &start, &row);
            }
        }
        Ok(())
    }

    fn fills(&self, _: &Schema, _: usize) -> bool {
        !self.options.no_fill
    }

    fn warn(&mut self, fault: &CdlFault) {
        (self.warn)(fault);
    }
}

fn data_type(ext: ExtType) -> &'static str {
    match ext {
        ExtType::Byte => "BYTE",
        ExtType::Char => "CHAR",
        ExtType::Short => "SHORT",
        ExtType::Float => "FLOAT",
        ExtType::Double => "DOUBLE",
        _ => "INT",
    }
}

fn java_type(ext: ExtType) -> &'static str {
    match ext {
        ExtType::Byte => "byte",
        ExtType::Char => "char",
        ExtType::Short => "short",
        ExtType::Float => "float",
        ExtType::Double => "double",
        _ => "int",
    }
}

/// Constants with commas between them.
fn list(ext: ExtType, content: &Elements) -> String {
    let text = |value: NativeNumber| match value {
        NativeNumber::Int(value) => value.to_string(),
        NativeNumber::UInt64(value) => value.to_string(),
        NativeNumber::Float(value) if value.is_nan() => "Float.NaN".to_owned(),
        NativeNumber::Float(value) if value.is_infinite() => {
            format!("Float.{}_INFINITY", if value > 0.0 { "POSITIVE" } else { "NEGATIVE" })
        }
        NativeNumber::Float(value) => format!("{value:?}f"),
        NativeNumber::Double(value) if value.is_nan() => "Double.NaN".to_owned(),
        NativeNumber::Double(value) if value.is_infinite() => {
            format!("Double.{}_INFINITY", if value > 0.0 { "POSITIVE" } else { "NEGATIVE" })
        }
        NativeNumber::Double(value) => format!("{value:?}"),
    };
    let texts: Vec<String> = numbers_in(ext, content).into_iter().map(text).collect();
    let lines: Vec<String> = texts.chunks(PER_LINE).map(|line| line.join(", ")).collect();
    lines.join(",\n        ")
}

/// A string of Java: UTF-8 as it is, other bytes as characters of the same number.
fn quoted(text: &[u8]) -> String {
    let owned;
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(_) => {
            owned = text.iter().copied().map(char::from).collect::<String>();
            &owned
        }
    };
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                out.push('\\');
                out.push(letter);
            }
            '\n' => out += "\\n",
            '\r' => out += "\\r",
            letter if letter.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants() {
        assert_eq!(quoted("é\"\\\n\u{1}".as_bytes()), "\"é\\\"\\\\\\n\\u0001\"");
        assert_eq!(quoted(b"\xff"), "\"ÿ\"");
        let of = |ext, bytes: &[u8]| {
            list(ext, &Elements { bytes: bytes.to_vec(), ..Elements::default() })
        };
        assert_eq!(of(ExtType::Float, &f32::INFINITY.to_ne_bytes()), "Float.POSITIVE_INFINITY");
        assert_eq!(of(ExtType::Double, &1e300f64.to_ne_bytes()), "1e300");
        assert_eq!(of(ExtType::Byte, &[0xff, 1]), "-1, 1");
    }
}

//! Fortran 77, in fixed form.
//!
//! Data are set by assignments in subroutines of their own, a few values in each: compilers limit lines,
//! continuation lines and the constants that they take.

use std::os::unix::ffi::OsStrExt;

use zonda::ExtType;
use zonda::slab::unrank;
use zonda_cdl::{Attribute, Elements, Fault, Schema, Sink, Slab, attribute};

use super::How;
use super::names::{Unique, Value, atomic, plain, values};

/// Last column of a statement.
const LAST_COLUMN: usize = 72;
/// Values that a subroutine writes.
const PER_ROUTINE: usize = 200;
/// Longest name: compilers of Fortran 95 and later take that many.
const LONGEST_NAME: usize = 24;

/// A program.
pub(super) struct Program<'a> {
    how: &'a How<'a>,
    warn: &'a dyn Fn(&Fault),
    main: String,
    /// Subroutines.
    others: String,
    dims: Vec<String>,
    vars: Vec<String>,
    n_routines: usize,
}

/// A name that is short enough.
fn short(name: &[u8]) -> String {
    let mut name = plain(name);
    // A name begins with a letter.
    if name.starts_with('_') {
        name.insert(0, 'x');
    }
    name.truncate(LONGEST_NAME);
    name
}

impl<'a> Program<'a> {
    pub(super) fn new(schema: &Schema, how: &'a How<'a>, warn: &'a dyn Fn(&Fault)) -> Program<'a> {
        let mut unique = Unique::folding();
        let dims = schema.dims.iter().map(|dim| unique.give(short(&dim.name) + "_dim")).collect();
        let vars = schema.vars.iter().map(|var| unique.give(short(&var.name) + "_id")).collect();
        let (main, others) = (String::new(), String::new());
        Program { how, warn, main, others, dims, vars, n_routines: 0 }
    }

    fn statement(&mut self, text: &str) {
        statement(&mut self.main, text);
    }

    fn call(&mut self, call: &str) {
        self.statement(&format!("stat = {call}"));
        self.statement("call check_err(stat)");
    }

    pub(super) fn definitions(&mut self, schema: &Schema) -> Result<(), Fault> {
        let name = self.how.main.unwrap_or("fgennc").to_owned();
        self.statement(&format!("program {}", short(name.as_bytes())));
        self.statement("implicit none");
        self.statement("include 'netcdf.inc'");
        for name in ["stat", "ncid"].map(str::to_owned).iter().chain(&self.dims).chain(&self.vars) {
            statement(&mut self.main, &format!("integer {name}"));
        }
        let most_dims = schema.vars.iter().map(|var| var.dims.len()).max().unwrap_or(0);
        self.statement(&format!("integer dims({})", most_dims.max(1)));
        let target = quoted(self.how.target.as_os_str().as_bytes());
        self.call(&format!("nf_create({target}, nf_clobber, ncid)"));
        if self.how.no_fill {
            // The old mode is of no interest: any variable takes it.
            self.call("nf_set_fill(ncid, nf_nofill, dims)");
        }
        for (index, dim) in schema.dims.iter().enumerate() {
            let len = if dim.unlimited { "nf_unlimited".to_owned() } else { dim.len.to_string() };
            let id = self.dims[index].clone();
            self.call(&format!("nf_def_dim(ncid, {}, {len}, {id})", quoted(&dim.name)));
        }
        for (index, var) in schema.vars.iter().enumerate() {
            for (at, dim) in var.dims.iter().rev().enumerate() {
                let id = self.dims[*dim].clone();
                self.statement(&format!("dims({}) = {id}", at + 1));
            }
            let (ty, rank, id) =
                (nf_type(atomic(var.ty)), var.dims.len(), self.vars[index].clone());
            let name = quoted(&var.name);
            self.call(&format!("nf_def_var(ncid, {name}, {ty}, {rank}, dims, {id})"));
        }
        let (of_file, of_vars): (Vec<_>, Vec<_>) =
            schema.atts.iter().partition(|att| att.var.is_none());
        for att in of_file.into_iter().chain(of_vars) {
            self.define_attribute(schema, att)?;
        }
        self.call("nf_enddef(ncid)");
        Ok(())
    }

    fn define_attribute(&mut self, schema: &Schema, att: &Attribute) -> Result<(), Fault> {
        let (content, n) = attribute(schema, att)?;
        let owner = att.var.map_or("nf_global".to_owned(), |var| self.vars[var].clone());
        let (ext, name) = (atomic(att.ty), quoted(&att.name));
        let put = match ext {
            ExtType::Char => format!("nf_put_att_text(ncid, varid, {name}, {n}, values)"),
            _ => {
                let (family, ty) = (family(ext), nf_type(ext));
                format!("nf_put_att_{family}(ncid, varid, {name}, {ty}, {n}, values)")
            }
        };
        let assigned = assignments(ext, &content);
        self.routine(&owner, &declaration(ext, n), &[], &assigned, &put);
        Ok(())
    }

    /// A subroutine, and a call of it.
    fn routine(&mut self, id: &str, values: &str, others: &[String], body: &[String], put: &str) {
        self.n_routines += 1;
        let name = format!("put_{}", self.n_routines);
        self.statement(&format!("call {name}(ncid, {id})"));
        let out = &mut self.others;
        out.push('\n');
        statement(out, &format!("subroutine {name}(ncid, varid)"));
        statement(out, "implicit none");
        statement(out, "include 'netcdf.inc'");
        statement(out, "integer ncid, varid, stat");
        statement(out, values);
        for line in others.iter().chain(body) {
            statement(out, line);
        }
        statement(out, &format!("stat = {put}"));
        statement(out, "call check_err(stat)");
        statement(out, "end");
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.call("nf_close(ncid)");
        self.statement("end");
        let out = &mut self.others;
        out.push('\n');
        for line in [
            "subroutine check_err(stat)",
            "implicit none",
            "include 'netcdf.inc'",
            "integer stat",
            "if (stat .ne. nf_noerr) then",
            "print *, nf_strerror(stat)",
            "stop 1",
            "endif",
            "end",
        ] {
            statement(out, line);
        }
        (self.main + &self.others).into_bytes()
    }

    /// Writes a row of values: they differ in the last index only.
    fn row(&mut self, id: &str, ext: ExtType, start: &[u64], row: &Elements) {
        let n = row.bytes.len() / ext.size();
        let rank = start.len();
        let (mut declared, mut indices) = (Vec::new(), Vec::new());
        if rank > 0 {
            declared.push(format!("integer start({rank}), edges({rank})"));
        }
        for (at, index) in start.iter().rev().enumerate() {
            indices.push(format!("start({}) = {}", at + 1, index + 1));
            indices.push(format!("edges({}) = {}", at + 1, if at == 0 { n } else { 1 }));
        }
        indices.extend(assignments(ext, row));
        let family = if ext == ExtType::Char { "text" } else { family(ext) };
        let put = match rank {
            0 => format!("nf_put_var_{family}(ncid, varid, values)"),
            _ => format!("nf_put_vara_{family}(ncid, varid, start, edges, values)"),
        };
        self.routine(id, &declaration(ext, n), &declared, &indices, &put);
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
        let (ext, id) = (atomic(schema.vars[var].ty), self.vars[var].clone());
        let row_len = slab.count.last().map_or(1, |len| usize::try_from(*len).unwrap_or(1));
        let per_row = row_len.max(1) * ext.size();
        for (row, bytes) in values.bytes.chunks(per_row).enumerate() {
            let mut start = slab.start.to_vec();
            let outer = start.len().saturating_sub(1);
            unrank(row as u64, &slab.count[..outer], &mut start[..outer]);
            for (part, bytes) in bytes.chunks(PER_ROUTINE * ext.size()).enumerate() {
                let mut start = start.clone();
                if let Some(last) = start.last_mut() {
                    *last += (part * PER_ROUTINE) as u64;
                }
                let row = Elements { bytes: bytes.to_vec(), ..Elements::default() };
                self.row(&id, ext, &start, &row);
            }
        }
        Ok(())
    }

    fn fills(&self, _: &Schema, _: usize) -> bool {
        !self.how.no_fill
    }

    fn warn(&mut self, fault: &Fault) {
        (self.warn)(fault);
    }
}

/// The middle of names of functions.
fn family(ext: ExtType) -> &'static str {
    match ext {
        ExtType::Byte => "int1",
        ExtType::Short => "int2",
        ExtType::Float => "real",
        ExtType::Double => "double",
        _ => "int",
    }
}

fn nf_type(ext: ExtType) -> &'static str {
    match ext {
        ExtType::Byte => "nf_byte",
        ExtType::Char => "nf_char",
        ExtType::Short => "nf_short",
        ExtType::Float => "nf_float",
        ExtType::Double => "nf_double",
        _ => "nf_int",
    }
}

fn declaration(ext: ExtType, n: usize) -> String {
    match ext {
        ExtType::Byte => format!("integer*1 values({n})"),
        ExtType::Char => format!("character*{n} values"),
        ExtType::Short => format!("integer*2 values({n})"),
        ExtType::Float => format!("real values({n})"),
        ExtType::Double => format!("double precision values({n})"),
        _ => format!("integer values({n})"),
    }
}

/// Statements that set `values`.
fn assignments(ext: ExtType, content: &Elements) -> Vec<String> {
    if ext == ExtType::Char {
        let parts = content.bytes.chunks(30).enumerate();
        let set = |(part, text): (usize, &[u8])| {
            let from = part * 30 + 1;
            format!("values({from}:{}) = {}", from + text.len() - 1, quoted(text))
        };
        return parts.map(set).collect();
    }
    let mut out = Vec::new();
    for (index, value) in values(ext, content).into_iter().enumerate() {
        let to = format!("values({})", index + 1);
        let zero = if ext == ExtType::Double { "0d0" } else { "0e0" };
        let double = match value {
            Value::Float(value) => f64::from(value),
            Value::Double(value) => value,
            Value::Int(value) if value == i64::from(i32::MIN) => {
                // No integer constant is that small.
                out.push(format!("{to} = -2147483647"));
                out.push(format!("{to} = {to} - 1"));
                continue;
            }
            Value::Int(value) => {
                out.push(format!("{to} = {value}"));
                continue;
            }
            Value::UInt64(value) => {
                out.push(format!("{to} = {value}"));
                continue;
            }
        };
        if double.is_finite() {
            let text = match value {
                Value::Float(value) => format!("{value:e}"),
                _ => format!("{double:e}"),
            };
            // The letter of the exponent says how precise a constant is.
            let text = if ext == ExtType::Double { text.replace('e', "d") } else { text };
            out.push(format!("{to} = {text}"));
            continue;
        }
        out.push(format!("{to} = {zero}"));
        let one = match double {
            _ if double.is_nan() => to.clone(),
            _ if double > 0.0 => zero.replacen('0', "1", 1),
            _ => format!("-{}", zero.replacen('0', "1", 1)),
        };
        out.push(format!("{to} = {one} / {to}"));
    }
    out
}

/// A constant of characters.
fn quoted(text: &[u8]) -> String {
    let mut out = String::new();
    let mut open = false;
    for byte in text {
        if (b' '..=b'~').contains(byte) && *byte != b'\\' {
            if !open {
                out += if out.is_empty() { "'" } else { " // '" };
                open = true;
            }
            out.push(char::from(*byte));
            if *byte == b'\'' {
                out.push('\'');
            }
            continue;
        }
        if open {
            out.push('\'');
            open = false;
        }
        let join = if out.is_empty() { "" } else { " // " };
        out += &format!("{join}char({byte})");
    }
    if open {
        out.push('\'');
    }
    if out.is_empty() { "''".to_owned() } else { out }
}

/// A statement, with continuation lines where it is long.
fn statement(out: &mut String, text: &str) {
    let mut lead = "      ";
    let mut rest = text;
    loop {
        let room = LAST_COLUMN - 6;
        let cut = rest.len().min(room);
        out.push_str(lead);
        out.push_str(&rest[..cut]);
        out.push('\n');
        rest = &rest[cut..];
        if rest.is_empty() {
            return;
        }
        lead = "     &";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_form() {
        let mut out = String::new();
        statement(&mut out, &"x".repeat(150));
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() <= LAST_COLUMN));
        assert!(lines[0].starts_with("      x") && lines[1].starts_with("     &x"));
    }

    #[test]
    fn constants() {
        assert_eq!(quoted(b"it's"), "'it''s'");
        assert_eq!(quoted(b"a\nb\\"), "'a' // char(10) // 'b' // char(92)");
        assert_eq!(quoted(b""), "''");
        let of = |ext, bytes: &[u8]| {
            assignments(ext, &Elements { bytes: bytes.to_vec(), ..Elements::default() })
        };
        assert_eq!(of(ExtType::Double, &1.5f64.to_ne_bytes()), ["values(1) = 1.5d0"]);
        assert_eq!(of(ExtType::Float, &0.1f32.to_ne_bytes()), ["values(1) = 1e-1"]);
        assert_eq!(
            of(ExtType::Float, &f32::NEG_INFINITY.to_ne_bytes()),
            ["values(1) = 0e0", "values(1) = -1e0 / values(1)"]
        );
        assert_eq!(
            of(ExtType::Int, &i32::MIN.to_ne_bytes()),
            ["values(1) = -2147483647", "values(1) = values(1) - 1"]
        );
        assert_eq!(of(ExtType::Char, b"abc"), ["values(1:3) = 'abc'"]);
        assert_eq!(short(b"_FillValue_of_a_very_long_name"), "x_FillValue_of_a_very_lo");
    }
}

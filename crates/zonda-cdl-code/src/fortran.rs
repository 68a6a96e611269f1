//! Programs in Fortran 77, in fixed form.
//!
//! Subroutines assign data to an array, a few values in each: compilers limit the length and number of
//! lines, and the constants of a statement.

use std::os::unix::ffi::OsStrExt;

use zonda_cdl::{CdlAttribute, CdlFault, DataSink, DataSlab, Elements, Schema, attribute};
use zonda_model::ExtType;
use zonda_slab::unrank;

use crate::ProgramOptions;
use crate::names::{NativeNumber, UniqueNames, atomic, numbers_in, plain};

/// The last column that compilers read.
const LAST_COLUMN: usize = 72;
/// Values that a subroutine puts.
const PER_ROUTINE: usize = 200;
/// The most letters of a name. Compilers for Fortran 95 and later take 31, and some are needed for endings.
const LONGEST_NAME: usize = 24;

/// A program in Fortran.
pub(crate) struct FortranProgram<'a> {
    options: &'a ProgramOptions<'a>,
    warn: &'a dyn Fn(&CdlFault),
    main: String,
    subroutines: String,
    dims: Vec<String>,
    vars: Vec<String>,
    n_routines: usize,
}

/// A name that compilers take: it begins with a letter and is not too long.
fn short(name: &[u8]) -> String {
    let mut name = plain(name);
    if name.starts_with('_') {
        name.insert(0, 'x');
    }
    name.truncate(LONGEST_NAME);
    name
}

impl<'a> FortranProgram<'a> {
    pub(crate) fn new(
        schema: &Schema,
        options: &'a ProgramOptions<'a>,
        warn: &'a dyn Fn(&CdlFault),
    ) -> FortranProgram<'a> {
        let mut unique = UniqueNames::folding();
        let dims = schema.dims.iter().map(|dim| unique.give(short(&dim.name) + "_dim")).collect();
        let vars = schema.vars.iter().map(|var| unique.give(short(&var.name) + "_id")).collect();
        let (main, subroutines) = (String::new(), String::new());
        FortranProgram { options, warn, main, subroutines, dims, vars, n_routines: 0 }
    }

    fn statement(&mut self, text: &str) {
        statement(&mut self.main, text);
    }

    fn call(&mut self, call: &str) {
        self.statement(&format!("stat = {call}"));
        self.statement("call check_err(stat)");
    }

    pub(crate) fn definitions(&mut self, schema: &Schema) -> Result<(), CdlFault> {
        let name = self.options.main.unwrap_or("fgennc").to_owned();
        self.statement(&format!("program {}", short(name.as_bytes())));
        self.statement("implicit none");
        self.statement("include 'netcdf.inc'");
        for name in ["stat", "ncid"].map(str::to_owned).iter().chain(&self.dims).chain(&self.vars) {
            statement(&mut self.main, &format!("integer {name}"));
        }
        let most_dims = schema.vars.iter().map(|var| var.dims.len()).max().unwrap_or(0);
        self.statement(&format!("integer dims({})", most_dims.max(1)));
        let target = quoted(self.options.target.as_os_str().as_bytes());
        self.call(&format!("nf_create({target}, nf_clobber, ncid)"));
        if self.options.no_fill {
            // `dims` takes the previous mode, which nobody needs.
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

    fn define_attribute(&mut self, schema: &Schema, att: &CdlAttribute) -> Result<(), CdlFault> {
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

    /// Makes a subroutine that calls `put`, and calls it. `values` declares its array, `others` other variables.
    fn routine(&mut self, id: &str, values: &str, others: &[String], body: &[String], put: &str) {
        self.n_routines += 1;
        let name = format!("put_{}", self.n_routines);
        self.statement(&format!("call {name}(ncid, {id})"));
        let out = &mut self.subroutines;
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

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.call("nf_close(ncid)");
        self.statement("end");
        let out = &mut self.subroutines;
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
        (self.main + &self.subroutines).into_bytes()
    }

    /// Puts values of one row: only their last index differs.
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

impl DataSink for FortranProgram<'_> {
    fn put(
        &mut self,
        schema: &Schema,
        var: usize,
        slab: DataSlab<'_>,
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
        !self.options.no_fill
    }

    fn warn(&mut self, fault: &CdlFault) {
        (self.warn)(fault);
    }
}

/// The part of `nf_put_...` that names a type.
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
    for (index, value) in numbers_in(ext, content).into_iter().enumerate() {
        let to = format!("values({})", index + 1);
        let zero = if ext == ExtType::Double { "0d0" } else { "0e0" };
        let double = match value {
            NativeNumber::Float(value) => f64::from(value),
            NativeNumber::Double(value) => value,
            NativeNumber::Int(value) if value == i64::from(i32::MIN) => {
                // Fortran makes a negative number of a constant and a sign, and has no constant for this magnitude.
                out.push(format!("{to} = -2147483647"));
                out.push(format!("{to} = {to} - 1"));
                continue;
            }
            NativeNumber::Int(value) => {
                out.push(format!("{to} = {value}"));
                continue;
            }
            NativeNumber::UInt64(value) => {
                out.push(format!("{to} = {value}"));
                continue;
            }
        };
        if double.is_finite() {
            let text = match value {
                NativeNumber::Float(value) => format!("{value:e}"),
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

/// A character constant: quoted parts, and `char(n)` for what cannot be quoted.
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
    let mut remaining = text;
    loop {
        let cut = remaining.len().min(LAST_COLUMN - lead.len());
        out.push_str(lead);
        out.push_str(&remaining[..cut]);
        out.push('\n');
        remaining = &remaining[cut..];
        if remaining.is_empty() {
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

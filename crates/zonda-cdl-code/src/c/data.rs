//! The data of a program in C.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use zonda_cdl::{
    CdlFault, CdlVariable, DataSink, DataSlab, Elements, Primitive, Schema, TypeClass, TypeRef,
    fill,
};
use zonda_slab::unrank;

use super::constants::{character, joined, nested, number, quoted};
use super::{CConstant, CProgram};

/// The most values that one call puts, as in programs of the reference.
const MOST_AT_ONCE: u64 = 1024;

impl CProgram<'_> {
    /// Calls that put the data of a variable: all at once if it is small and cannot grow, and else row by row.
    /// `constants` are by the number of the element; missing ones are fill values.
    fn put_data(
        &mut self,
        schema: &Schema,
        var: usize,
        constants: &BTreeMap<u64, CConstant>,
    ) -> Result<(), CdlFault> {
        let variable = &schema.vars[var];
        let fill = self.fill_value(schema, variable)?;
        if variable.dims.is_empty() {
            self.put_scalar(variable, var, constants.get(&0).unwrap_or(&fill));
            return Ok(());
        }
        let shape: Vec<u64> = variable.dims.iter().map(|dim| schema.dims[*dim].len).collect();
        let all = shape.iter().fold(1u64, |n, len| n.saturating_mul(*len));
        let grows = variable.dims.iter().any(|dim| schema.dims[*dim].unlimited);
        let at_once = variable.ty == TypeRef::CHAR || (all <= MOST_AT_ONCE && !grows);
        let row = if at_once { all } else { shape.last().copied().unwrap_or(1) };
        let mut first = 0;
        while first < all && row > 0 {
            let mut start = vec![0; shape.len()];
            let mut count = shape.clone();
            if !at_once {
                let outer = shape.len() - 1;
                unrank(first / row, &shape[..outer], &mut start[..outer]);
                count[..outer].fill(1);
            }
            let values: Vec<&CConstant> =
                (first..first + row).map(|n| constants.get(&n).unwrap_or(&fill)).collect();
            self.put_slab(variable, var, (&start, &count), &values);
            first += row;
        }
        Ok(())
    }

    fn put_scalar(&mut self, variable: &CdlVariable, var: usize, value: &CConstant) {
        let (group, stem) = (self.groups[variable.group].clone(), self.vars[var].clone());
        let ty = self.c_type(variable.ty);
        self.line("    {\n    size_t count = 0;");
        self.out += &value.before;
        let text = match variable.ty == TypeRef::CHAR {
            true => format!("'{}'", character(value.byte)),
            false => value.text.clone(),
        };
        self.line(format!("    static {ty} {stem}_data[1] = {{{text}}};"));
        self.call(format!("nc_put_var1({group}, {stem}_id, &count, {stem}_data)"));
        self.line("    }\n\n");
    }

    /// One call, with arrays for its arguments.
    fn put_slab(
        &mut self,
        variable: &CdlVariable,
        var: usize,
        (start, count): (&[u64], &[u64]),
        values: &[&CConstant],
    ) {
        let (group, stem) = (self.groups[variable.group].clone(), self.vars[var].clone());
        self.line("    {");
        for value in values {
            self.out += &value.before;
        }
        if variable.ty == TypeRef::CHAR {
            let bytes: Vec<u8> = values.iter().map(|value| value.byte).collect();
            self.line(format!("    char* {stem}_data = {} ;", quoted(&bytes)));
        } else {
            let (ty, n) = (self.c_type(variable.ty), values.len());
            let list = values.iter().map(|value| &value.text[..]).collect::<Vec<&str>>().join(", ");
            self.line(format!("    {ty} {stem}_data[{n}] = {{{list}}} ;"));
        }
        let (rank, start, count) = (start.len(), joined(start), joined(count));
        self.line(format!("    size_t {stem}_startset[{rank}] = {{{start}}} ;"));
        self.line(format!("    size_t {stem}_countset[{rank}] = {{{count}}};"));
        let args = format!("{group}, {stem}_id, {stem}_startset, {stem}_countset, {stem}_data");
        self.call(format!("nc_put_vara({args})"));
        self.line("    }\n\n");
    }

    /// The fill value of a variable.
    fn fill_value(&mut self, schema: &Schema, var: &CdlVariable) -> Result<CConstant, CdlFault> {
        let mut values = Elements::default();
        fill(schema, var, &mut values)?;
        let byte = values.bytes.first().copied().unwrap_or(0);
        let mut constant = CConstant { byte, ..CConstant::default() };
        constant.text = self.value(schema, var.ty, &values.bytes, &values, &mut constant.before);
        Ok(constant)
    }

    /// The constant for the element in `bytes`. Arrays that it points to are declared in `before`.
    pub(crate) fn value(
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
                TypeClass::Opaque => {
                    let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
                    format!("{{{}}}", bytes.join(", "))
                }
                TypeClass::Enum { base, .. } => number(*base, bytes),
                TypeClass::Vlen { base } => self.sequence(schema, *base, bytes, values, before),
                TypeClass::Compound(fields) => {
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

    /// The constant for a sequence, whose items become an array that is declared in `before`.
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
        let _ = writeln!(before, "    static {ty} {name}[] = {{{}}};", items.join(", "));
        format!("{{{}, (void *){name}}}", word(0))
    }

    /// Ends the program with the calls that put data, and returns its text.
    pub(crate) fn end(mut self, schema: &Schema) -> Result<Vec<u8>, CdlFault> {
        if !self.options.header_only && !schema.vars.is_empty() {
            self.line("    /* assign variable data */\n");
        }
        let mut data = std::mem::take(&mut self.data);
        let with_data = (0..schema.vars.len()).filter(|var| schema.vars[*var].data.is_some());
        for var in with_data.filter(|_| !self.options.header_only).collect::<Vec<usize>>() {
            // A variable of which only fill values were given has no constants.
            let constants = data.remove(&var).unwrap_or_default();
            let shape: Vec<u64> =
                schema.vars[var].dims.iter().map(|dim| schema.dims[*dim].len).collect();
            let at = |index: &[u64]| -> u64 {
                index.iter().zip(&shape).fold(0, |at, (index, len)| at * len + index)
            };
            let constants =
                constants.into_iter().map(|(index, value)| (at(&index), value)).collect();
            self.put_data(schema, var, &constants)?;
        }
        self.call(format!("nc_close({})", self.groups[0]));
        self.line("    return 0;\n}");
        if self.out.contains("NAN") || self.out.contains("INFINITY") {
            self.out = self.out.replacen(
                "#include <stdlib.h>\n",
                "#include <stdlib.h>\n#include <math.h>\n",
                1,
            );
        }
        Ok(self.out.into_bytes())
    }
}

impl DataSink for CProgram<'_> {
    fn put(
        &mut self,
        schema: &Schema,
        var: usize,
        slab: DataSlab<'_>,
        values: &mut Elements,
    ) -> Result<(), String> {
        let variable = &schema.vars[var];
        let size = schema.size_of(variable.ty).max(1);
        for (n, bytes) in values.bytes.chunks_exact(size).enumerate() {
            let byte = bytes.first().copied().unwrap_or(0);
            let mut constant = CConstant { byte, ..CConstant::default() };
            if variable.ty != TypeRef::CHAR {
                let before = &mut constant.before;
                constant.text = self.value(schema, variable.ty, bytes, values, before);
            }
            let mut index = slab.start.to_vec();
            unrank(n as u64, slab.count, &mut index);
            self.data.entry(var).or_default().insert(index, constant);
        }
        Ok(())
    }

    fn fills(&self, schema: &Schema, var: usize) -> bool {
        let var = &schema.vars[var];
        !self.options.no_fill && var.special.no_fill != Some(true) && var.ty.atomic().is_some()
    }

    fn warn(&mut self, fault: &CdlFault) {
        (self.warn)(fault);
    }
}

//! The data of a program in C.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use zonda::slab::unrank;
use zonda_cdl::{Class, Elements, Fault, Primitive, Schema, Sink, Slab, TypeRef, Variable, fill};

use super::{Program, Text};
use crate::classic::ncgen::code::c_text::{character, nested, number, quoted};

/// Most values that are put at once, as in the reference.
const MOST_AT_ONCE: u64 = 1024;

impl Program<'_> {
    /// Puts of the data of a variable: all at once if it is small and cannot grow, and else row by row.
    fn put_data(
        &mut self,
        schema: &Schema,
        var: usize,
        texts: &BTreeMap<u64, Text>,
    ) -> Result<(), Fault> {
        let variable = &schema.vars[var];
        let missing = self.missing(schema, variable)?;
        let (group, stem) = (self.groups[variable.group].clone(), self.vars[var].clone());
        let ty = self.c_type(variable.ty);
        let is_text = variable.ty == TypeRef::CHAR;
        let shape: Vec<u64> = variable.dims.iter().map(|dim| schema.dims[*dim].len).collect();
        let all = shape.iter().fold(1u64, |n, len| n.saturating_mul(*len));
        if shape.is_empty() {
            let text = texts.get(&0).unwrap_or(&missing);
            self.line("    {\n    size_t count = 0;");
            self.out += &text.before;
            let value =
                if is_text { format!("'{}'", character(text.byte)) } else { text.value.clone() };
            self.line(format!("    static {ty} {stem}_data[1] = {{{value}}};"));
            self.call(format!("nc_put_var1({group}, {stem}_id, &count, {stem}_data)"));
            self.line("    }\n\n");
            return Ok(());
        }
        let grows = variable.dims.iter().any(|dim| schema.dims[*dim].unlimited);
        let whole = is_text || (all <= MOST_AT_ONCE && !grows);
        let row = if whole { all } else { shape.last().copied().unwrap_or(1) };
        let mut first = 0;
        while first < all && row > 0 {
            self.line("    {");
            let values: Vec<&Text> =
                (first..first + row).map(|n| texts.get(&n).unwrap_or(&missing)).collect();
            for text in &values {
                self.out += &text.before;
            }
            if is_text {
                let bytes: Vec<u8> = values.iter().map(|text| text.byte).collect();
                self.line(format!("    char* {stem}_data = {} ;", quoted(&bytes)));
            } else {
                let list =
                    values.iter().map(|text| &text.value[..]).collect::<Vec<&str>>().join(", ");
                self.line(format!("    {ty} {stem}_data[{row}] = {{{list}}} ;"));
            }
            let mut start = vec![0; shape.len()];
            let mut count = shape.clone();
            if !whole {
                let outer = shape.len() - 1;
                unrank(first / row, &shape[..outer], &mut start[..outer]);
                count[..outer].fill(1);
            }
            let list = |numbers: &[u64]| {
                numbers.iter().map(u64::to_string).collect::<Vec<String>>().join(", ")
            };
            let (rank, start, count) = (shape.len(), list(&start), list(&count));
            self.line(format!("    size_t {stem}_startset[{rank}] = {{{start}}} ;"));
            self.line(format!("    size_t {stem}_countset[{rank}] = {{{count}}};"));
            let call = format!("{group}, {stem}_id, {stem}_startset, {stem}_countset, {stem}_data");
            self.call(format!("nc_put_vara({call})"));
            self.line("    }\n\n");
            first += row;
        }
        Ok(())
    }

    /// The fill value of a variable.
    fn missing(&mut self, schema: &Schema, var: &Variable) -> Result<Text, Fault> {
        let mut values = Elements::default();
        fill(schema, var, &mut values)?;
        let mut text = Text { byte: values.bytes.first().copied().unwrap_or(0), ..Text::default() };
        text.value = self.value(schema, var.ty, &values.bytes, &values, &mut text.before);
        Ok(text)
    }

    /// A value; what it points to is declared in `before`.
    pub(super) fn value(
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
                    format!("{{{}}}", bytes.join(", "))
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
        let _ = writeln!(before, "    static {ty} {name}[] = {{{}}};", items.join(", "));
        format!("{{{}, (void *){name}}}", word(0))
    }

    /// The program, with all data.
    pub(in super::super) fn end(mut self, schema: &Schema) -> Result<Vec<u8>, Fault> {
        if !self.how.header_only && !schema.vars.is_empty() {
            self.line("    /* assign variable data */\n");
        }
        let mut data = std::mem::take(&mut self.data);
        let with_data = (0..schema.vars.len()).filter(|var| schema.vars[*var].data.is_some());
        for var in with_data.filter(|_| !self.how.header_only).collect::<Vec<usize>>() {
            // Values that are fill values all need not be there.
            let texts = data.remove(&var).unwrap_or_default();
            let shape: Vec<u64> =
                schema.vars[var].dims.iter().map(|dim| schema.dims[*dim].len).collect();
            let at = |index: &[u64]| {
                index.iter().zip(&shape).fold(0, |at, (index, len)| at * len + index)
            };
            let texts = texts.into_iter().map(|(index, text)| (at(&index), text)).collect();
            self.put_data(schema, var, &texts)?;
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

impl Sink for Program<'_> {
    fn put(
        &mut self,
        schema: &Schema,
        var: usize,
        slab: Slab<'_>,
        values: &mut Elements,
    ) -> Result<(), String> {
        let variable = &schema.vars[var];
        let size = schema.size_of(variable.ty).max(1);
        for (n, bytes) in values.bytes.chunks_exact(size).enumerate() {
            let mut text = Text { byte: bytes.first().copied().unwrap_or(0), ..Text::default() };
            if variable.ty != TypeRef::CHAR {
                text.value = self.value(schema, variable.ty, bytes, values, &mut text.before);
            }
            let mut index = slab.start.to_vec();
            unrank(n as u64, slab.count, &mut index);
            self.data.entry(var).or_default().insert(index, text);
        }
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

//! Data of variables, handed on in blocks.
//!
//! Most variables are one list of values in row-major order (`flat`). One with an unlimited dimension
//! that is not the first has a list in braces for each instance of it (`nested`); how long that
//! dimension is, is known when all lists were read, so these variables are read twice.

mod chars;
mod fast;
mod flat;
mod nested;
mod run;
mod sink;
mod slab;

use sink::refused;
pub use sink::{DataSink, DataSlab, Nowhere};

use crate::dialect::Dialect;
use crate::element::{self, Elements};
use crate::fault::CdlFault;
use crate::lexer::{Cursor, Lexer, Token};
use crate::parser::tokens::Tokens;
use crate::schema::{CdlVariable, Schema, TypeRef};
use crate::source::CdlText;
use run::ValueRun;

/// Reads the data of all variables, and sets the lengths of unlimited dimensions in the schema.
///
/// A variable with data gets all its values; where the text lacks some, they are the fill value. If
/// the sink fills by itself, only the last of these is put, so that the file gets the right length.
///
/// # Errors
/// Errors of syntax; values that do not have the variable's type; errors of the sink.
pub fn stream(
    source: &CdlText,
    schema: &mut Schema,
    sink: &mut dyn DataSink,
) -> Result<(), CdlFault> {
    let with_data: Vec<usize> =
        (0..schema.vars.len()).filter(|var| schema.vars[*var].data.is_some()).collect();
    let is_nested = |schema: &Schema, var: usize| {
        let dims = &schema.vars[var].dims;
        dims.iter().skip(1).any(|dim| schema.dims[*dim].unlimited)
    };
    let (nested, flat): (Vec<usize>, Vec<usize>) =
        with_data.into_iter().partition(|var| is_nested(schema, *var));
    for var in &nested {
        nested::read(source, schema, *var, &mut Nowhere)?;
    }
    let mut done = Vec::with_capacity(flat.len());
    for var in flat {
        done.push((var, flat::read(source, schema, var, sink)?));
    }
    for var in nested {
        let last = nested::read(source, schema, var, sink)?;
        if !last {
            put_last(schema, var, sink)?;
        }
    }
    // Here all lengths are known.
    for (var, n_values) in done {
        finish(schema, var, n_values, sink)?;
    }
    Ok(())
}

/// Reads a list of values and checks its grammar only.
pub(crate) fn check(source: &CdlText, begin: u64, end: u64) -> Result<(), CdlFault> {
    let mut tokens = Tokens::new(Lexer::over(Cursor::between(source, begin, end)))?;
    if tokens.is(b';') || tokens.now == Token::End {
        return Ok(());
    }
    loop {
        tokens.item(0)?;
        if !tokens.accept(b',')? {
            break;
        }
    }
    match tokens.now {
        Token::End | Token::Mark(b';') => Ok(()),
        _ => Err(tokens.unexpected("',' or ';'")),
    }
}

/// The data of a variable as tokens, from a place on.
fn tokens<'s>(
    source: &'s CdlText,
    schema: &Schema,
    from: u64,
    end: u64,
) -> Result<Tokens<'s>, CdlFault> {
    let mut lexer = Lexer::over(Cursor::between(source, from, end));
    lexer.hex_integers = schema.dialect == Dialect::Classic;
    let mut tokens = Tokens::new(lexer)?;
    tokens.ends_before_semicolon = true;
    Ok(tokens)
}

fn lengths(schema: &Schema, var: &CdlVariable) -> Vec<u64> {
    var.dims.iter().map(|dim| schema.dims[*dim].len).collect()
}

fn product(lengths: &[u64]) -> u64 {
    lengths.iter().fold(1, |n, len| n.saturating_mul(*len))
}

/// Puts fill values after the values of a flat list.
fn finish(
    schema: &Schema,
    var: usize,
    n_values: u64,
    sink: &mut dyn DataSink,
) -> Result<(), CdlFault> {
    let variable = &schema.vars[var];
    let shape = lengths(schema, variable);
    let all = product(&shape);
    if n_values >= all {
        return Ok(());
    }
    if sink.fills(schema, var) {
        return put_last(schema, var, sink);
    }
    let mut run = ValueRun::new(schema, var, Vec::new(), shape);
    run.resume(n_values);
    run.fill(schema, all - n_values, sink)
}

/// Puts the fill value into the last element.
fn put_last(schema: &Schema, var: usize, sink: &mut dyn DataSink) -> Result<(), CdlFault> {
    let variable = &schema.vars[var];
    let shape = lengths(schema, variable);
    let is_growing = variable.dims.iter().any(|dim| schema.dims[*dim].unlimited);
    if product(&shape) == 0 || !is_growing {
        return Ok(());
    }
    let start: Vec<u64> = shape.iter().map(|len| len - 1).collect();
    let count = vec![1; start.len()];
    let mut values = Elements::default();
    element::fill(schema, variable, &mut values)?;
    let slab = DataSlab { start: &start, count: &count };
    sink.put(schema, var, slab, &mut values).map_err(|why| refused(variable, why))
}

/// Strings are padded to a multiple of this many bytes; 1 means that they are not.
fn unit(schema: &Schema, var: &CdlVariable) -> u64 {
    match var.dims[..] {
        [_, .., last] if !schema.dims[last].unlimited => schema.dims[last].len.max(1),
        _ => 1,
    }
}

fn is_text(var: &CdlVariable) -> bool {
    var.ty == TypeRef::CHAR
}

#[cfg(test)]
mod tests;

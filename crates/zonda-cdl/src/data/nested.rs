//! Data with lists in braces: one for each instance of an unlimited dimension that is not the
//! first.

use super::chars::CharRows;
use super::run::ValueRun;
use super::slab::index;
use super::{DataSink, Tokens, is_text, lengths, tokens};
use crate::fault::CdlFault;
use crate::lexer::Token;
use crate::schema::Schema;
use crate::source::CdlText;

/// Puts all values of a variable, and makes its unlimited dimensions as long as they need. Returns
/// whether the last element was put.
pub(super) fn read(
    source: &CdlText,
    schema: &mut Schema,
    var: usize,
    sink: &mut dyn DataSink,
) -> Result<bool, CdlFault> {
    let variable = &schema.vars[var];
    let Some((begin, end)) = variable.data else { return Ok(true) };
    let mut tokens = tokens(source, schema, begin, end)?;
    let shape = lengths(schema, variable);
    let unlimited = variable.dims.iter().map(|dim| schema.dims[*dim].unlimited).collect();
    let extent = vec![0; shape.len()];
    let mut reader = NestedReader { schema, var, shape, unlimited, extent, put_last: false, sink };
    reader.block(&mut tokens, &[])?;
    if tokens.now != Token::End {
        return Err(tokens.unexpected("',' or ';'"));
    }
    let NestedReader { extent, put_last, .. } = reader;
    let dims = schema.vars[var].dims.clone();
    for (dim, len) in dims.into_iter().zip(extent) {
        if schema.dims[dim].unlimited {
            schema.dims[dim].len = schema.dims[dim].len.max(len);
        }
    }
    Ok(put_last)
}

struct NestedReader<'a> {
    schema: &'a Schema,
    var: usize,
    /// Lengths, as far as they are known.
    shape: Vec<u64>,
    unlimited: Vec<bool>,
    /// Lengths that dimensions need.
    extent: Vec<u64>,
    put_last: bool,
    sink: &'a mut dyn DataSink,
}

impl NestedReader<'_> {
    /// Reads the data below an index along the slower dimensions: a list of lists above the next
    /// unlimited dimension, a list of values below the last one.
    fn block(&mut self, tokens: &mut Tokens<'_>, prefix: &[u64]) -> Result<(), CdlFault> {
        let first = prefix.len();
        let Some(next) = (first + 1..self.shape.len()).find(|dim| self.unlimited[*dim]) else {
            return self.values(tokens, prefix);
        };
        let lengths = self.shape[first..next].to_vec();
        let per_step = super::product(&lengths[1..]).max(1);
        let room = if self.unlimited[first] { u64::MAX } else { super::product(&lengths) };
        let mut n = 0;
        while !matches!(tokens.now, Token::End | Token::Mark(b'}')) || n > 0 {
            if n == room {
                return Err(tokens.fault("there is no room for this list"));
            }
            if !tokens.is(b'{') {
                let why = "values along an unlimited dimension that is not the first are in braces";
                return Err(tokens.fault(why));
            }
            tokens.advance()?;
            let below = [prefix, &index(&lengths, n)].concat();
            self.block(tokens, &below)?;
            tokens.expect(b'}')?;
            n += 1;
            if !tokens.accept(b',')? {
                break;
            }
        }
        self.extent[first] = self.extent[first].max(n.div_ceil(per_step));
        let all = super::product(&lengths);
        if n < all && !self.sink.fills(self.schema, self.var) {
            for missing in n..all {
                let below = [prefix, &index(&lengths, missing)].concat();
                self.fill(&below)?;
            }
        }
        Ok(())
    }

    fn values(&mut self, tokens: &mut Tokens<'_>, prefix: &[u64]) -> Result<(), CdlFault> {
        let first = prefix.len();
        let shape = self.shape[first..].to_vec();
        let mut run = ValueRun::new(self.schema, self.var, prefix.to_vec(), shape.clone());
        if is_text(&self.schema.vars[self.var]) {
            CharRows::new(self.schema, self.var).read(tokens, &mut run, self.sink)?;
        } else if !matches!(tokens.now, Token::End | Token::Mark(b'}')) {
            loop {
                let item = tokens.item(0)?;
                run.push(self.schema, &item, self.sink)?;
                if !tokens.accept(b',')? {
                    break;
                }
            }
        }
        let per_step = super::product(&shape[1..]).max(1);
        self.extent[first] = self.extent[first].max(run.len().div_ceil(per_step));
        let all = super::product(&shape);
        if run.len() < all && !self.sink.fills(self.schema, self.var) {
            run.fill(self.schema, all - run.len(), self.sink)?;
        }
        run.flush(self.schema, self.sink)?;
        let is_last = prefix.iter().zip(&self.shape).all(|(index, len)| index + 1 == *len);
        self.put_last |= is_last && run.len() >= all;
        Ok(())
    }

    /// Puts fill values below an index without a list.
    fn fill(&mut self, prefix: &[u64]) -> Result<(), CdlFault> {
        let shape = self.shape[prefix.len()..].to_vec();
        let all = super::product(&shape);
        let mut run = ValueRun::new(self.schema, self.var, prefix.to_vec(), shape);
        self.put_last |= prefix.iter().zip(&self.shape).all(|(index, len)| index + 1 == *len);
        run.fill(self.schema, all, self.sink)
    }
}

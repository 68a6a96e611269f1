//! Data that is one list of values in row-major order.

use super::chars::CharRows;
use super::fast::{self, FastEnd};
use super::run::ValueRun;
use super::{DataSink, is_text, lengths, tokens};
use crate::constant::{Constant, PlacedConstant};
use crate::dialect::Dialect;
use crate::element::{self, Elements};
use crate::fault::{CdlFault, shown};
use crate::lexer::Token;
use crate::schema::Schema;
use crate::source::CdlText;

/// Puts all values of a variable and returns their number. If its first dimension is unlimited, it
/// gets at least the length that they need.
pub(super) fn read(
    source: &CdlText,
    schema: &mut Schema,
    var: usize,
    sink: &mut dyn DataSink,
) -> Result<u64, CdlFault> {
    let variable = &schema.vars[var];
    let Some((begin, end)) = variable.data else { return Ok(0) };
    let mut run = ValueRun::new(schema, var, Vec::new(), lengths(schema, variable));
    let mut stop = FastEnd { at: begin, behind_value: false };
    // In the classic language an opaque constant is a number, which only the general grammar knows.
    // Speed does not matter there.
    let has_fast_way = !is_text(variable) && schema.dialect == Dialect::Enhanced;
    if let Some(ext) = variable.ty.atomic().filter(|_| has_fast_way) {
        let mut fill = Elements::default();
        let item = PlacedConstant { at: variable.at, value: Constant::Fill };
        let own = variable.fill.as_ref();
        element::encode(schema, variable.ty, &item, own, &mut fill)?;
        let mut put = |bytes: &[u8], at: u64| run.push_bytes(schema, bytes, at, sink);
        stop = fast::numbers(source, (begin, end), ext, &fill.bytes, &mut put)?;
    }
    slow(source, schema, var, (stop, end), &mut run, sink)?;
    run.flush(schema, sink)?;
    if let Some(at) = run.excess {
        let why = format!(
            "warning: {} has no room for this value and what follows",
            shown(&variable.name)
        );
        sink.warn(&CdlFault::at(at, why));
    }
    let n_values = run.len();
    if let Some(first) = variable.dims.first().copied().filter(|dim| schema.dims[*dim].unlimited) {
        let per_step = super::product(&lengths(schema, variable)[1..]).max(1);
        let dim = &mut schema.dims[first];
        dim.len = dim.len.max(n_values.div_ceil(per_step));
    }
    Ok(n_values)
}

/// Reads the remaining values as tokens.
fn slow(
    source: &CdlText,
    schema: &Schema,
    var: usize,
    (stop, end): (FastEnd, u64),
    run: &mut ValueRun,
    sink: &mut dyn DataSink,
) -> Result<(), CdlFault> {
    let mut tokens = tokens(source, schema, stop.at, end)?;
    if tokens.now == Token::End && (stop.behind_value || run.len() == 0) {
        return Ok(());
    }
    if stop.behind_value && !tokens.accept(b',')? {
        return Err(tokens.unexpected("',' or ';'"));
    }
    if is_text(&schema.vars[var]) {
        CharRows::new(schema, var).read(&mut tokens, run, sink)?;
    } else {
        loop {
            let item = tokens.item(0)?;
            run.push(schema, &item, sink)?;
            if !tokens.accept(b',')? {
                break;
            }
        }
    }
    match tokens.now {
        Token::End => Ok(()),
        _ => Err(tokens.unexpected("',' or ';'")),
    }
}

//! Data of variables of characters: strings side by side.
//!
//! Each string is padded to a multiple of the last dimension's length, an empty one to a whole row.
//! Consecutive characters in single quotes are one string. If there is only one dimension, or the
//! last one is unlimited, strings are not padded.

use super::run::ValueRun;
use super::{DataSink, Tokens};
use crate::constant::{Constant, NumberConstant, PlacedConstant};
use crate::element::convert;
use crate::fault::CdlFault;
use crate::lexer::Token;
use crate::schema::Schema;
use zonda_model::ExtType;

/// Puts strings into a run.
pub(super) struct CharRows<'a> {
    schema: &'a Schema,
    unit: u64,
    fill: u8,
    /// Whether the last constant was a character, to whose string another one belongs.
    in_chars: bool,
    /// Characters so far, including those that did not fit.
    len: u64,
}

impl<'a> CharRows<'a> {
    pub(super) fn new(schema: &'a Schema, var: usize) -> CharRows<'a> {
        let variable = &schema.vars[var];
        let fill = match variable.fill.as_ref().map(|item| &item.value) {
            Some(Constant::Text(text)) => text.first().copied().unwrap_or(0),
            Some(Constant::Number(number)) => convert(*number, ExtType::Char)[0],
            _ => 0,
        };
        let unit = super::unit(schema, variable);
        CharRows { schema, unit, fill, in_chars: false, len: 0 }
    }

    /// Reads all values, up to a token that is none.
    pub(super) fn read(
        mut self,
        tokens: &mut Tokens<'_>,
        run: &mut ValueRun,
        sink: &mut dyn DataSink,
    ) -> Result<(), CdlFault> {
        if matches!(tokens.now, Token::End | Token::Mark(b'}')) {
            return Ok(());
        }
        loop {
            let item = tokens.item(0)?;
            self.item(&item, run, sink)?;
            if !tokens.accept(b',')? {
                break;
            }
        }
        self.end_string(tokens.at(), run, sink)
    }

    fn item(
        &mut self,
        item: &PlacedConstant,
        run: &mut ValueRun,
        sink: &mut dyn DataSink,
    ) -> Result<(), CdlFault> {
        if let Constant::List(items) = &item.value {
            return items.iter().try_for_each(|item| self.item(item, run, sink));
        }
        let is_char = matches!(item.value, Constant::Number(NumberConstant::Byte(_)));
        if !(is_char && self.in_chars) {
            self.end_string(item.at, run, sink)?;
        }
        let one;
        let text: &[u8] = match &item.value {
            Constant::Text(text) => text,
            Constant::Fill => {
                one = [self.fill];
                &one
            }
            Constant::Number(number @ (NumberConstant::Byte(_) | NumberConstant::UByte(_))) => {
                one = [convert(*number, ExtType::Char)[0]];
                &one
            }
            other => {
                let why = format!("expected characters or a string, found {}", other.what());
                return Err(CdlFault::at(item.at, why));
            }
        };
        self.put(text, item.at, run, sink)?;
        self.in_chars = is_char;
        if text.is_empty() && self.unit > 1 {
            self.pad(self.unit, item.at, run, sink)?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        text: &[u8],
        at: u64,
        run: &mut ValueRun,
        sink: &mut dyn DataSink,
    ) -> Result<(), CdlFault> {
        self.len += text.len() as u64;
        run.push_bytes(self.schema, text, at, sink)
    }

    /// Ends a string.
    fn end_string(
        &mut self,
        at: u64,
        run: &mut ValueRun,
        sink: &mut dyn DataSink,
    ) -> Result<(), CdlFault> {
        self.in_chars = false;
        let missing = self.len.next_multiple_of(self.unit) - self.len;
        self.pad(missing, at, run, sink)
    }

    fn pad(
        &mut self,
        mut n: u64,
        at: u64,
        run: &mut ValueRun,
        sink: &mut dyn DataSink,
    ) -> Result<(), CdlFault> {
        const PART: usize = 4096;
        let fill = [self.fill; PART];
        while n > 0 {
            let part = usize::try_from(n).unwrap_or(PART).min(PART);
            self.put(&fill[..part], at, run, sink)?;
            n -= part as u64;
        }
        Ok(())
    }
}

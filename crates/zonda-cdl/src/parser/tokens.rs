//! A stream of tokens with a look at the next one, and lists of constants.

use zonda_cf::times::{self, Calendar};

use crate::constant::{Constant, NumberConstant, PlacedConstant};
use crate::fault::{CdlFault, shown};
use crate::lexer::{Cursor, Lexer, Token};
use crate::names::NameReference;

/// The most braces within braces. No type needs as many.
const MOST_NESTED: usize = 500;

/// A text as tokens.
#[derive(Debug)]
pub(crate) struct Tokens<'s> {
    lexer: Lexer<'s>,
    /// The next token.
    pub(crate) now: Token,
    /// Whether the end of the stream is that of a list of values, after which there is a semicolon.
    pub(crate) ends_before_semicolon: bool,
}

impl<'s> Tokens<'s> {
    /// Reads the first token.
    pub(crate) fn new(mut lexer: Lexer<'s>) -> Result<Tokens<'s>, CdlFault> {
        let now = lexer.next()?;
        Ok(Tokens { lexer, now, ends_before_semicolon: false })
    }

    pub(crate) fn lexer(&mut self) -> &mut Lexer<'s> {
        &mut self.lexer
    }

    /// The text after the next token.
    pub(crate) fn cursor(&mut self) -> &mut Cursor<'s> {
        self.lexer.cursor()
    }

    /// The offset of the next token.
    pub(crate) fn at(&self) -> u64 {
        self.lexer.at
    }

    /// A fault at the next token.
    pub(crate) fn fault(&self, message: impl Into<String>) -> CdlFault {
        self.lexer.fault(message)
    }

    /// The fault that the next token is none of those that are allowed.
    pub(crate) fn unexpected(&self, expected: &str) -> CdlFault {
        let found = match self.now {
            Token::End if self.ends_before_semicolon => "';'".to_owned(),
            _ => self.now.what(),
        };
        self.fault(format!("syntax error: expected {expected}, found {found}"))
    }

    /// Returns the next token and moves past it.
    pub(crate) fn advance(&mut self) -> Result<Token, CdlFault> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.now, next))
    }

    pub(crate) fn is(&self, mark: u8) -> bool {
        self.now == Token::Mark(mark)
    }

    /// Moves past a character if it is next.
    pub(crate) fn accept(&mut self, mark: u8) -> Result<bool, CdlFault> {
        let is = self.is(mark);
        if is {
            self.advance()?;
        }
        Ok(is)
    }

    pub(crate) fn expect(&mut self, mark: u8) -> Result<(), CdlFault> {
        match self.accept(mark)? {
            true => Ok(()),
            false => Err(self.unexpected(&format!("'{}'", char::from(mark)))),
        }
    }

    /// Reads a name where only a name can be, so that any word counts as one.
    pub(crate) fn word(&mut self, what: &str) -> Result<Vec<u8>, CdlFault> {
        match &self.now {
            Token::Name(name) => {
                let name = name.clone();
                self.advance()?;
                Ok(name)
            }
            _ => match self.lexer.word() {
                Some(word) => {
                    self.advance()?;
                    Ok(word)
                }
                None => Err(self.unexpected(what)),
            },
        }
    }

    /// Whether the next token can be a name.
    pub(crate) fn is_reference(&self) -> bool {
        matches!(self.now, Token::Name(_) | Token::Path(_)) || self.lexer.word().is_some()
    }

    pub(crate) fn reference(&mut self, what: &str) -> Result<NameReference, CdlFault> {
        if !self.is_reference() {
            return Err(self.unexpected(what));
        }
        // A keyword that cannot begin anything here is a name.
        let word = self.lexer.word().unwrap_or_default();
        Ok(match self.advance()? {
            Token::Name(name) => NameReference::Name(name),
            Token::Path(parts) => NameReference::Path(parts),
            Token::Type(primitive) => NameReference::Primitive(primitive, word),
            _ => NameReference::Name(word),
        })
    }

    /// Reads values up to a token that is none. There may be no value.
    pub(crate) fn values(&mut self, depth: usize) -> Result<Vec<PlacedConstant>, CdlFault> {
        let mut items = Vec::new();
        if self.is(b';') || self.is(b'}') {
            return Ok(items);
        }
        loop {
            items.push(self.item(depth)?);
            if !self.accept(b',')? {
                return Ok(items);
            }
        }
    }

    /// Reads one value.
    pub(crate) fn item(&mut self, depth: usize) -> Result<PlacedConstant, CdlFault> {
        let at = self.at();
        if self.is(b'{') {
            if depth >= MOST_NESTED {
                return Err(self.fault("too many braces within braces"));
            }
            self.advance()?;
            let items = self.values(depth + 1)?;
            if !self.is(b'}') {
                return Err(self.unexpected("',' or '}'"));
            }
            self.advance()?;
            return Ok(PlacedConstant { at, value: Constant::List(items) });
        }
        let value = match &mut self.now {
            Token::Number(number) => Constant::Number(*number),
            Token::Text(text) => Constant::Text(std::mem::take(text)),
            Token::Opaque(digits) => Constant::Opaque(std::mem::take(digits)),
            Token::Fill => Constant::Fill,
            Token::Nil => Constant::Nil,
            Token::Name(name) => Constant::Member(std::mem::take(name)),
            Token::Path(parts) => Constant::Member(parts.join(&b'/')),
            _ => return Err(self.unexpected("a value")),
        };
        self.advance()?;
        match value {
            Constant::Member(name) if self.is(b'(') => {
                Ok(PlacedConstant { at, value: self.call(&name, at)? })
            }
            value => Ok(PlacedConstant { at, value }),
        }
    }

    /// The value of a function in the text. There is one function: `time("1990-1-2 12:30")` has the
    /// hours from 1970 to then, in the Gregorian calendar, whatever the units of the variable.
    fn call(&mut self, name: &[u8], at: u64) -> Result<Constant, CdlFault> {
        if !name.eq_ignore_ascii_case(b"time") {
            return Err(CdlFault::at(at, format!("there is no function '{}'", shown(name))));
        }
        self.advance()?;
        let at = self.at();
        let Token::Text(text) = &mut self.now else {
            return Err(self.unexpected("a date as text"));
        };
        let text = std::mem::take(text);
        self.advance()?;
        self.expect(b')')?;
        let calendar = Calendar::named(b"proleptic_gregorian");
        let mut problems = Vec::new();
        let known = times::date(calendar, &text, &mut problems);
        match problems.first() {
            Some(problem) => Err(CdlFault::at(at, format!("no date: {problem}"))),
            None => Ok(Constant::Number(NumberConstant::Double(calendar.hours(&known, 1970)))),
        }
    }
}

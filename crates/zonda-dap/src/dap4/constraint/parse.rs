//! Reads constraints.

use super::{Clause, Constraint, Segment, Slice};
use crate::dap4::dmr::MOST_DEPTH;
use crate::error::{DapError, Document};

type Result<T> = std::result::Result<T, DapError>;

impl Constraint {
    /// Reads a constraint without escapes of a URL.
    ///
    /// # Errors
    /// What is none, with the byte where it stops being one.
    pub fn parse(text: &str) -> Result<Constraint> {
        let mut parser = Parser { text, at: 0 };
        let mut clauses = Vec::new();
        loop {
            while parser.takes(';') {}
            if parser.peek().is_none() {
                return Ok(Constraint { clauses });
            }
            clauses.push(parser.clause()?);
            if parser.peek().is_some_and(|ch| ch != ';') {
                return parser.wrong("more comes where the clause should end");
            }
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let ch = self.peek()?;
        self.at = self.at.saturating_add(ch.len_utf8());
        Some(ch)
    }

    fn takes(&mut self, ch: char) -> bool {
        let is_it = self.peek() == Some(ch);
        if is_it {
            self.next();
        }
        is_it
    }

    fn wrong<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(DapError::malformed(Document::Constraint, self.at as u64, what))
    }

    fn clause(&mut self) -> Result<Clause> {
        let name = self.name(true)?;
        if self.takes('=') {
            if self.peek() != Some('[') {
                return self.wrong(format!("dimension {name}: [ is missing"));
            }
            return Ok(Clause::Dimension { slice: self.slice()?, name });
        }
        let path = self.segment(name, 0)?;
        let filter = if self.takes('|') { Some(self.filter()) } else { None };
        Ok(Clause::Variable { path, filter })
    }

    /// Text up to a semicolon that is not in quotes.
    fn filter(&mut self) -> String {
        let begin = self.at;
        let mut is_quoted = false;
        while let Some(ch) = self.peek() {
            match ch {
                ';' if !is_quoted => break,
                '"' => is_quoted = !is_quoted,
                '\\' => _ = self.next(),
                _ => {}
            }
            self.next();
        }
        self.text.get(begin..self.at).unwrap_or_default().to_owned()
    }

    /// A name, with the escapes that it has. The name of a variable begins at the root.
    fn name(&mut self, with_groups: bool) -> Result<String> {
        let mut name = String::new();
        while let Some(ch) = self.peek() {
            match ch {
                '[' | ']' | '{' | '}' | ';' | '|' | '=' | '.' | ',' => break,
                '\\' => {
                    self.next();
                    let Some(ch) = self.next() else {
                        return self.wrong("a backslash at the end");
                    };
                    super::write::character(ch, &mut name);
                    continue;
                }
                '/' if with_groups => name.push(ch),
                ch => super::write::character(ch, &mut name),
            }
            self.next();
        }
        if name.trim_matches('/').is_empty() {
            return self.wrong("a name is missing");
        }
        Ok(if with_groups && !name.starts_with('/') { format!("/{name}") } else { name })
    }

    fn segment(&mut self, name: String, depth: usize) -> Result<Segment> {
        if depth >= MOST_DEPTH {
            return self.wrong(format!("nested more than {MOST_DEPTH} deep"));
        }
        let depth = depth.saturating_add(1);
        let (mut slices, mut fields) = (Vec::new(), Vec::new());
        while self.peek() == Some('[') {
            slices.push(self.slice()?);
        }
        let has_point = self.takes('.');
        if self.takes('{') {
            loop {
                let name = self.name(false)?;
                fields.push(self.segment(name, depth)?);
                if self.takes('}') {
                    break;
                }
                if !self.takes(';') && !self.takes(',') {
                    return self.wrong("} is missing");
                }
            }
        } else if has_point {
            let name = self.name(false)?;
            fields.push(self.segment(name, depth)?);
        }
        Ok(Segment { name, slices, fields })
    }

    fn slice(&mut self) -> Result<Slice> {
        self.takes('[');
        self.blanks();
        if self.takes(']') {
            return Ok(Slice::All);
        }
        let first = self.number()?;
        if !self.takes(':') {
            return self.close(Slice::Part { first, stride: 1, last: Some(first) });
        }
        let begin = self.at;
        let second = self.number_or_end()?;
        let (stride, last) = if self.takes(':') {
            (second.unwrap_or(1), self.number_or_end()?)
        } else {
            (1, second)
        };
        let wrong =
            |what: String| Err(DapError::malformed(Document::Constraint, begin as u64, what));
        if stride == 0 {
            return wrong("a stride of 0".into());
        }
        if last.is_some_and(|last| last < first) {
            return wrong(format!("it ends before it begins, at {first}"));
        }
        self.close(Slice::Part { first, stride, last })
    }

    fn close(&mut self, slice: Slice) -> Result<Slice> {
        if self.takes(']') { Ok(slice) } else { self.wrong("] is missing") }
    }

    fn blanks(&mut self) {
        while self.takes(' ') {}
    }

    fn number_or_end(&mut self) -> Result<Option<u64>> {
        self.blanks();
        if self.takes('*') {
            self.blanks();
            return Ok(None);
        }
        if self.peek() == Some(']') {
            return Ok(None);
        }
        self.number().map(Some)
    }

    fn number(&mut self) -> Result<u64> {
        self.blanks();
        let digits = self.rest();
        let len = digits.find(|ch: char| !ch.is_ascii_digit()).unwrap_or(digits.len());
        let Some(number) = digits.get(..len).and_then(|digits| digits.parse().ok()) else {
            return self.wrong("a number is missing, or too large");
        };
        self.at = self.at.saturating_add(len);
        self.blanks();
        Ok(number)
    }
}

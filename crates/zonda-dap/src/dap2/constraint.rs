//! Constraints of DAP2: what comes behind the question mark of a URL.
//!
//! ```text
//! constraint := "?"? (projection ("," projection)*)? ("&" condition)*
//! projection := path | function
//! path       := name slice* ("." name slice*)*
//! slice      := "[" first "]" | "[" first ":" last "]" | "[" first ":" stride ":" last "]"
//! condition  := value relation value | value relation "{" value ("," value)* "}" | function
//! value      := path | function | number | text
//! function   := name "(" (value ("," value)*)? ")"
//! ```
//!
//! A constraint is text without the escapes of URLs here; [`escape`] adds them.

use std::fmt;

use crate::dap2::limits::{MAX_CONSTRAINT_WORDS, MAX_DEPTH, MAX_DOCUMENT_BYTES};
use crate::error::{DapError, Document};
use crate::text::shown;

/// What is asked of a dataset: everything where it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constraint {
    /// Which variables.
    pub projections: Vec<Projection>,
    /// Which records.
    pub conditions: Vec<Condition>,
}

/// A variable, or what a function of the server makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projection {
    /// A variable or container by its names.
    Path(Vec<Segment>),
    /// What a function of the server returns.
    Function(Function),
}

/// A name of a path with slices of its dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The name.
    pub name: String,
    /// Slices; none for all.
    pub slices: Vec<Slice>,
}

/// Elements of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The first.
    pub first: u64,
    /// Steps, at least 1.
    pub stride: u64,
    /// The last that can be, at least `first`.
    pub last: u64,
}

impl Slice {
    /// How many elements it has; at least 1 of a slice that was read.
    #[must_use]
    pub fn count(&self) -> u64 {
        let span = self.last.saturating_sub(self.first);
        span.checked_div(self.stride).unwrap_or(0).saturating_add(1)
    }
}

/// A call of a function of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Arguments.
    pub arguments: Vec<Value>,
}

/// Something that is compared, or an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A variable.
    Path(Vec<Segment>),
    /// What a function returns.
    Function(Function),
    /// A number as it is written.
    Number(String),
    /// Text.
    Text(String),
}

/// What is asked of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A comparison with one of several values.
    Compare {
        /// What is compared.
        left: Value,
        /// How: `=`, `!=`, `<`, `<=`, `>`, `>=`, `=~`.
        relation: &'static str,
        /// With what, at least one.
        right: Vec<Value>,
    },
    /// A function that says yes or no.
    Function(Function),
}

const RELATIONS: [&str; 7] = ["!=", ">=", "<=", "=~", "=", ">", "<"];

impl Constraint {
    /// Reads a constraint.
    ///
    /// # Errors
    /// `NC_EDAPCONSTRAINT` with the place of what is wrong.
    pub fn decode(text: &str) -> Result<Constraint, DapError> {
        let mut parser = Parser::new(text);
        if text.len() > MAX_DOCUMENT_BYTES {
            return Err(parser.error(format!("{} bytes", text.len())));
        }
        let mut constraint = Constraint::default();
        parser.blank();
        parser.takes(b"?");
        if !matches!(parser.first(), None | Some(b'&')) {
            loop {
                // Nothing here is a number: names may begin with digits, and be numbers.
                let name = parser.word()?;
                constraint.projections.push(if parser.takes(b"(") {
                    Projection::Function(parser.function(name, 1)?)
                } else {
                    Projection::Path(parser.path(name)?)
                });
                if !parser.takes(b",") {
                    break;
                }
            }
        }
        while parser.takes(b"&") {
            constraint.conditions.push(parser.condition()?);
        }
        match parser.first() {
            None => Ok(constraint),
            Some(byte) => Err(parser.error(format!("`{}` is not expected", char::from(byte)))),
        }
    }

    /// Whether it asks for everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.projections.is_empty() && self.conditions.is_empty()
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    n_words: usize,
}

fn is_in_word(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f && !b"[](){}:,&=<>?.\"".contains(&byte)
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        Parser { text: text.as_bytes(), at: 0, n_words: 0 }
    }

    fn error(&self, what: impl Into<String>) -> DapError {
        DapError::Malformed {
            document: Document::Constraint,
            at: self.at as u64,
            what: what.into(),
        }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self, n: usize) {
        self.at = self.at.saturating_add(n);
    }

    fn blank(&mut self) {
        self.skip(self.rest().iter().take_while(|byte| **byte <= b' ' || **byte == 0x7f).count());
    }

    fn first(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    /// Takes these bytes, and what is blank behind them, if they come next.
    fn takes(&mut self, what: &[u8]) -> bool {
        let comes = self.rest().starts_with(what);
        if comes {
            self.skip(what.len());
            self.blank();
        }
        comes
    }

    fn needs(&mut self, what: &str) -> Result<(), DapError> {
        if self.takes(what.as_bytes()) {
            Ok(())
        } else {
            Err(self.error(format!("no `{what}` here")))
        }
    }

    /// Counts what takes memory.
    fn count(&mut self) -> Result<(), DapError> {
        self.n_words = self.n_words.saturating_add(1);
        if self.n_words > MAX_CONSTRAINT_WORDS {
            return Err(self.error(format!("more than {MAX_CONSTRAINT_WORDS} words")));
        }
        Ok(())
    }

    fn word(&mut self) -> Result<String, DapError> {
        self.count()?;
        let rest = self.rest();
        let len = rest
            .iter()
            .enumerate()
            .take_while(|(at, byte)| {
                // `!=` ends a name, an exclamation mark does not.
                let ends = **byte == b'!' && rest.get(at.saturating_add(1)) == Some(&b'=');
                is_in_word(**byte) && !ends
            })
            .count();
        let word = rest.get(..len).unwrap_or_default();
        if word.is_empty() {
            return Err(self.error("no name here"));
        }
        // Words end at characters of ASCII, so they are whole characters.
        let word = String::from_utf8_lossy(word).into_owned();
        self.skip(len);
        self.blank();
        Ok(word)
    }

    fn number(&mut self) -> Result<u64, DapError> {
        let at = self.at;
        let word = self.word()?;
        word.parse().map_err(|_| {
            self.at = at;
            self.error(format!("{} is no index", shown(word.as_bytes())))
        })
    }

    fn slices(&mut self) -> Result<Vec<Slice>, DapError> {
        let mut slices = Vec::new();
        while self.takes(b"[") {
            let at = self.at;
            let mut numbers = vec![self.number()?];
            while numbers.len() < 3 && self.takes(b":") {
                numbers.push(self.number()?);
            }
            self.needs("]")?;
            let slice = match numbers[..] {
                [first, stride, last] => Slice { first, stride, last },
                [first, last] => Slice { first, stride: 1, last },
                _ => {
                    let first = numbers.first().copied().unwrap_or(0);
                    Slice { first, stride: 1, last: first }
                }
            };
            if slice.stride == 0 || slice.last < slice.first {
                self.at = at;
                return Err(self.error(format!("{slice} has no elements")));
            }
            slices.push(slice);
        }
        Ok(slices)
    }

    fn path(&mut self, name: String) -> Result<Vec<Segment>, DapError> {
        let mut path = vec![Segment { name, slices: self.slices()? }];
        while self.takes(b".") {
            let name = self.word()?;
            path.push(Segment { name, slices: self.slices()? });
        }
        Ok(path)
    }

    /// A number, if there is one that no name goes on from.
    fn constant(&mut self) -> Option<Value> {
        let rest = self.rest();
        let first = *rest.first()?;
        if !first.is_ascii_digit() && !b"+-.".contains(&first) {
            return None;
        }
        let len = rest
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
            .count();
        let word = std::str::from_utf8(rest.get(..len)?).ok()?;
        let goes_on = rest.get(len).is_some_and(|byte| is_in_word(*byte) && *byte != b'!');
        if goes_on || word.parse::<f64>().is_err() {
            return None;
        }
        self.skip(len);
        self.blank();
        Some(Value::Number(word.to_owned()))
    }

    fn text(&mut self) -> Result<Value, DapError> {
        let mut text = Vec::new();
        let mut is_escaped = false;
        self.skip(1);
        loop {
            let Some(byte) = self.first() else { return Err(self.error("a text has no end")) };
            self.skip(1);
            match byte {
                b'"' if !is_escaped => break,
                b'\\' if !is_escaped => is_escaped = true,
                _ => {
                    text.push(byte);
                    is_escaped = false;
                }
            }
        }
        self.blank();
        Ok(Value::Text(String::from_utf8_lossy(&text).into_owned()))
    }

    fn value(&mut self, depth: usize) -> Result<Value, DapError> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} functions in each other")));
        }
        self.count()?;
        if self.first() == Some(b'"') {
            return self.text();
        }
        if let Some(number) = self.constant() {
            return Ok(number);
        }
        let name = self.word()?;
        if self.takes(b"(") {
            return Ok(Value::Function(self.function(name, depth)?));
        }
        Ok(Value::Path(self.path(name)?))
    }

    fn function(&mut self, name: String, depth: usize) -> Result<Function, DapError> {
        let mut arguments = Vec::new();
        while !self.takes(b")") {
            if !arguments.is_empty() {
                self.needs(",")?;
            }
            arguments.push(self.value(depth.saturating_add(1))?);
        }
        Ok(Function { name, arguments })
    }

    fn condition(&mut self) -> Result<Condition, DapError> {
        let left = self.value(1)?;
        let Some(relation) = RELATIONS.into_iter().find(|word| self.takes(word.as_bytes())) else {
            return match left {
                Value::Function(function) => Ok(Condition::Function(function)),
                _ => Err(self.error("no comparison here")),
            };
        };
        let mut right = Vec::new();
        if self.takes(b"{") {
            loop {
                right.push(self.value(1)?);
                if !self.takes(b",") {
                    break;
                }
            }
            self.needs("}")?;
        } else {
            right.push(self.value(1)?);
        }
        Ok(Condition::Compare { left, relation, right })
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slice { first, stride: 1, last } if first == last => write!(f, "[{first}]"),
            Slice { first, stride: 1, last } => write!(f, "[{first}:{last}]"),
            Slice { first, stride, last } => write!(f, "[{first}:{stride}:{last}]"),
        }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.slices.iter().try_for_each(|slice| slice.fmt(f))
    }
}

/// Writes things with a separator between them.
fn joined<T: fmt::Display>(f: &mut fmt::Formatter<'_>, all: &[T], between: &str) -> fmt::Result {
    for (at, one) in all.iter().enumerate() {
        if at > 0 {
            f.write_str(between)?;
        }
        one.fmt(f)?;
    }
    Ok(())
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        joined(f, &self.arguments, ",")?;
        f.write_str(")")
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Path(path) => {
                let names: Vec<String> = path.iter().map(ToString::to_string).collect();
                let whole = names.join(".");
                // Names that are a number together are told from it by a blank.
                let is_number = Parser::new(&whole).constant().is_some();
                f.write_str(&if is_number { names.join(". ") } else { whole })
            }
            Value::Function(function) => function.fmt(f),
            Value::Number(number) => f.write_str(number),
            Value::Text(text) => {
                write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
            }
        }
    }
}

impl fmt::Display for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Projection::Path(path) => joined(f, path, "."),
            Projection::Function(function) => function.fmt(f),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Function(function) => function.fmt(f),
            Condition::Compare { left, relation, right } => {
                let left = left.to_string();
                // A name may end with what begins another relation, or begin with what ends one.
                let blank = if left.ends_with('!') && relation.starts_with('=') { " " } else { "" };
                write!(f, "{left}{blank}{relation}")?;
                match &right[..] {
                    [one] => {
                        let one = one.to_string();
                        let blank = if *relation == "=" && one.starts_with('~') { " " } else { "" };
                        write!(f, "{blank}{one}")
                    }
                    all => {
                        f.write_str("{")?;
                        joined(f, all, ",")?;
                        f.write_str("}")
                    }
                }
            }
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        joined(f, &self.projections, ",")?;
        for condition in &self.conditions {
            write!(f, "&{condition}")?;
        }
        Ok(())
    }
}

/// A constraint as a part of a URL. The same characters stay as in the reference, so servers see what they know; but `#` would end the query, and
/// some servers take `+` for a blank.
#[must_use]
pub fn escape(constraint: &str) -> String {
    use fmt::Write;
    let mut out = String::new();
    for byte in constraint.bytes() {
        if byte.is_ascii_alphanumeric() || b"!$&'()*,-./:;=?@_~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // A String takes all that is written.
            let _always = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(text: &str) -> String {
        let constraint = Constraint::decode(text).unwrap();
        let written = constraint.to_string();
        assert_eq!(Constraint::decode(&written).unwrap(), constraint);
        written
    }

    #[test]
    fn constraints_are_read_and_written() {
        for text in [
            "",
            "SST[0:2:9][3].lat,x",
            "seq.a,seq.b&seq.a>=3.5&seq.b!=\"x\\\"y\"&seq.c={1,2}&f(a,1,\"b\")&a=~\"^x\"",
            "geogrid(SST,10,-20.5,\"TIME<5\"),lat&x<y.z[1]",
            "1990-S1700101.HDF",
            "123,4e,55.555,-2.5",
        ] {
            assert_eq!(again(text), text);
        }
        assert_eq!(again("? a [ 1 : 1 : 5 ] , b [2:2] & a = 1"), "a[1:5],b[2]&a=1");
        assert_eq!(again("é!a,b"), "é!a,b");
        assert_eq!(again("&a! = o&b!!=1&c= ~d"), "&a! =o&b!!=1&c= ~d");
        // Names of which one would read a number.
        assert_eq!(again("&-.\u{1f}5>9K.%&a=+ . 2"), "&-. 5>9K.%&a=+. 2");
        assert!(Constraint::decode("&a>1").unwrap().projections.is_empty());
        assert!(Constraint::decode("").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let wrong = |text: &str| Constraint::decode(text).unwrap_err().to_string();
        assert_eq!(wrong("a[5:2]"), "constraint, byte 2: [5:2] has no elements");
        assert_eq!(wrong("a[0:0:2]"), "constraint, byte 2: [0:0:2] has no elements");
        assert_eq!(wrong("a[x]"), "constraint, byte 2: x is no index");
        assert_eq!(wrong("a[-1]"), "constraint, byte 2: -1 is no index");
        assert_eq!(wrong("a[1"), "constraint, byte 3: no `]` here");
        assert_eq!(wrong("a,"), "constraint, byte 2: no name here");
        assert_eq!(wrong("a&b"), "constraint, byte 3: no comparison here");
        assert_eq!(wrong("a&f(1,"), "constraint, byte 6: no name here");
        assert_eq!(wrong("a&b=\"x"), "constraint, byte 6: a text has no end");
        assert_eq!(wrong("a)"), "constraint, byte 1: `)` is not expected");
        assert!(wrong(&"f(".repeat(1_000_000)).contains("functions in each other"));
        assert!(wrong(&"a,".repeat(MAX_CONSTRAINT_WORDS)).contains("words"));
    }

    #[test]
    fn slices_count_their_elements() {
        let count = |first, stride, last| Slice { first, stride, last }.count();
        assert_eq!(
            (count(0, 1, 9), count(3, 4, 10), count(3, 4, 11), count(5, 7, 5)),
            (10, 2, 3, 1)
        );
    }

    #[test]
    fn what_urls_cannot_have_is_escaped() {
        assert_eq!(escape("a%20b[0:1]&c>\"é\""), "a%2520b%5B0:1%5D&c%3E%22%C3%A9%22");
    }
}

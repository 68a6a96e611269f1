//! The DAS of DAP2: attributes, in sets that are called as variables, or as something else.
//!
//! ```text
//! attributes := ("Attributes" "{" entry* "}" ";"?)+
//! entry      := type name value ("," value)* ";" | name "{" entry* "}" | "Alias" word word ";"
//! ```
//!
//! Values stay text as the server wrote it: the mapping makes numbers of them. An alias is read and forgotten, as in the reference. An attribute of a type
//! that DAP2 does not have (`OtherXML`, `Int64`) is text: without it, the dataset could be read all the same.

use crate::dap2::dds::Atomic;
use crate::dap2::error::refuse;
use crate::dap2::limits::{MAX_ATTRIBUTE_VALUES, MAX_DEPTH, MAX_DOCUMENT_BYTES, MAX_NODES};
use crate::error::{DapError, Document};
use crate::text::{Lexer, Token, What, encoded};

/// An attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub atomic: Atomic,
    /// Its values, as they are written. Backslashes in texts are kept.
    pub values: Vec<Vec<u8>>,
}

/// A set of attributes and of other sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Its name; the outermost has none.
    pub name: String,
    /// What is in it.
    pub entries: Vec<Entry>,
}

/// What is in a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Another set.
    Set(Set),
    /// An attribute.
    Attribute(Attribute),
}

impl Set {
    /// Reads a document; the outermost set.
    ///
    /// # Errors
    /// What is wrong with it, and where; what the server says in place of it.
    pub fn decode(bytes: &[u8]) -> Result<Set, DapError> {
        let document = Document::Das;
        if bytes.len() > MAX_DOCUMENT_BYTES {
            let what = format!("{} bytes, {MAX_DOCUMENT_BYTES} are the most", bytes.len());
            return Err(DapError::Unrepresentable { document, what });
        }
        refuse(document, bytes)?;
        let mut parser = Parser { lexer: Lexer::new(document, bytes), n_entries: 0 };
        let mut entries = Vec::new();
        loop {
            let word = parser.lexer.next()?;
            if !word.is_word("Attributes") {
                return Err(parser.lexer.unexpected(&word, "`Attributes`"));
            }
            parser.lexer.mark(b'{', "the attributes")?;
            entries.extend(parser.entries(1)?);
            while parser.lexer.peek()?.what == What::Mark(b';') {
                parser.lexer.next()?;
            }
            if !parser.lexer.peek()?.is_word("Attributes") {
                break;
            }
        }
        parser.lexer.end("the attributes")?;
        Ok(Set { name: String::new(), entries })
    }

    /// The document with this outermost set.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = b"Attributes {\n".to_vec();
        self.write(&mut out, 1);
        out.extend_from_slice(b"}\n");
        out
    }

    fn write(&self, out: &mut Vec<u8>, depth: usize) {
        let indent = "    ".repeat(depth);
        for entry in &self.entries {
            out.extend_from_slice(indent.as_bytes());
            match entry {
                Entry::Set(set) => {
                    out.extend_from_slice(
                        format!("{} {{\n", encoded(Document::Das, &set.name)).as_bytes(),
                    );
                    set.write(out, depth.saturating_add(1));
                    out.extend_from_slice(format!("{indent}}}\n").as_bytes());
                }
                Entry::Attribute(attribute) => {
                    out.extend_from_slice(attribute.atomic.word().as_bytes());
                    out.extend_from_slice(
                        format!(" {}", encoded(Document::Das, &attribute.name)).as_bytes(),
                    );
                    for (at, value) in attribute.values.iter().enumerate() {
                        out.extend_from_slice(if at == 0 { b" " } else { b", " });
                        // A number is a word, but where a server wrote something else for it.
                        let word = Lexer::new(Document::Das, value).next();
                        let is_word =
                            word.is_ok_and(|word| word.what == What::Word(value.as_slice()));
                        let quote: &[u8] =
                            if attribute.atomic.is_text() || !is_word { b"\"" } else { b"" };
                        out.extend_from_slice(quote);
                        out.extend_from_slice(value);
                        out.extend_from_slice(quote);
                    }
                    out.extend_from_slice(b";\n");
                }
            }
        }
    }
}

/// A word as it would stand between quotation marks.
fn as_text(word: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut is_escaped = false;
    for byte in word.bytes() {
        if byte == b'"' && !is_escaped {
            out.push(b'\\');
        }
        is_escaped = byte == b'\\' && !is_escaped;
        out.push(byte);
    }
    if is_escaped {
        out.push(b'\\');
    }
    out
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    n_entries: usize,
}

impl Parser<'_> {
    /// Entries until a closing brace.
    fn entries(&mut self, depth: usize) -> Result<Vec<Entry>, DapError> {
        let mut entries = Vec::new();
        loop {
            let token = self.lexer.next()?;
            match token.what {
                What::Mark(b'}') => return Ok(entries),
                // An empty entry: servers write one behind a set.
                What::Mark(b';') => continue,
                What::Word(_) => {}
                _ => return Err(self.lexer.unexpected(&token, "an attribute")),
            }
            self.n_entries = self.n_entries.saturating_add(1);
            if self.n_entries > MAX_NODES {
                return Err(self
                    .lexer
                    .error(token.at, format!("more than {MAX_NODES} attributes and sets")));
            }
            if self.lexer.peek()?.what == What::Mark(b'{') {
                if depth > MAX_DEPTH {
                    return Err(self
                        .lexer
                        .error(token.at, format!("more than {MAX_DEPTH} sets in each other")));
                }
                self.lexer.next()?;
                let name = self.lexer.decoded(&token)?;
                entries.push(Entry::Set(Set {
                    name,
                    entries: self.entries(depth.saturating_add(1))?,
                }));
            } else if token.is_word("Alias") {
                self.lexer.word("the name of an alias")?;
                self.lexer.word("what an alias is for")?;
                self.lexer.mark(b';', "an alias")?;
            } else {
                entries.push(Entry::Attribute(self.attribute(&token)?));
            }
        }
    }

    fn attribute(&mut self, word: &Token<'_>) -> Result<Attribute, DapError> {
        let atomic = match word.what {
            What::Word(text) => Atomic::named(text).unwrap_or(Atomic::String),
            _ => return Err(self.lexer.unexpected(word, "a type")),
        };
        let name = self.lexer.name("the name of an attribute")?;
        let mut values = Vec::new();
        loop {
            let token = self.lexer.next()?;
            let value = match token.what {
                // As the reference has it: words lose their escapes, texts do not.
                What::Word(_) if atomic.is_text() => as_text(&self.lexer.decoded(&token)?),
                // Some servers write numbers as texts.
                What::Word(text) | What::Text(text) => text.to_vec(),
                _ => return Err(self.lexer.unexpected(&token, &format!("a value of {name}"))),
            };
            if values.len() >= MAX_ATTRIBUTE_VALUES {
                let what = format!("{name} has more than {MAX_ATTRIBUTE_VALUES} values");
                return Err(self.lexer.error(token.at, what));
            }
            values.push(value);
            let token = self.lexer.next()?;
            match token.what {
                What::Mark(b',') => {}
                What::Mark(b';') => return Ok(Attribute { name, atomic, values }),
                _ => return Err(self.lexer.unexpected(&token, &format!("`;` behind {name}"))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "Attributes {
        NC_GLOBAL { String title \"a \\\"b\\\"\", word%41; Alias x y; };
        String { Int32 Byte 1, -2; Float64 x NaN, 1e-3; grid:x { } Url u \"http://x/#y\"; }
        Byte b 255;
    }";

    fn wrong(text: &str) -> String {
        Set::decode(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn sets_and_attributes_are_read_and_written() {
        let set = Set::decode(ALL.as_bytes()).unwrap();
        assert_eq!(Set::decode(&set.encode()).unwrap(), set);
        let [Entry::Set(global), Entry::Set(string), Entry::Attribute(b)] = &set.entries[..] else {
            panic!()
        };
        let Entry::Attribute(title) = &global.entries[0] else { panic!() };
        assert_eq!(title.values, [b"a \\\"b\\\"".to_vec(), b"wordA".to_vec()]);
        assert_eq!((global.entries.len(), string.name.as_str()), (1, "String"));
        let Entry::Attribute(byte) = &string.entries[0] else { panic!() };
        assert_eq!(
            (byte.name.as_str(), byte.atomic, byte.values.len()),
            ("Byte", Atomic::Int32, 2)
        );
        assert!(matches!(&string.entries[2], Entry::Set(Set { name, .. }) if name == "grid:x"));
        assert_eq!((b.atomic, &b.values[0][..]), (Atomic::Byte, &b"255"[..]));
    }

    #[test]
    fn values_are_written_so_that_they_are_read_again() {
        let text = r#"Attributes { Int32 a "", " 1 ", 2, "a;b\\" ; String b x%22y, z\, "q\"" ; }"#;
        let set = Set::decode(text.as_bytes()).unwrap();
        assert_eq!(Set::decode(&set.encode()).unwrap(), set);
        let Entry::Attribute(b) = &set.entries[1] else { panic!("a set") };
        assert_eq!(b.values, [br#"x\"y"#.to_vec(), br"z\\".to_vec(), br#"q\""#.to_vec()]);
    }

    #[test]
    fn other_types_are_text_and_blocks_may_follow_each_other() {
        let text = "Attributes { Int64 a 1, 2; } ; attributes { OtherXML b \"<x/>\"; }";
        let set = Set::decode(text.as_bytes()).unwrap();
        let shown: Vec<_> = set
            .entries
            .iter()
            .map(|entry| match entry {
                Entry::Attribute(a) => (a.name.as_str(), a.atomic, a.values.len()),
                Entry::Set(_) => panic!("a set"),
            })
            .collect();
        assert_eq!(shown, [("a", Atomic::String, 2), ("b", Atomic::String, 1)]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        assert_eq!(
            wrong("Attributes { Int8 a }"),
            "DAS, byte 20: `}` where a value of a should be"
        );
        assert!(wrong("Attributes { Byte a; }").contains("`;` where a value of a should be"));
        assert!(wrong("Attributes { Byte a 1 2; }").contains("`2` where `;` behind a"));
        assert!(wrong("Attributes { \"x\" { } }").contains("where an attribute should be"));
        assert!(wrong("Dataset { }").contains("where `Attributes` should be"));
        assert!(wrong("Attributes { } x").contains("behind the end"));
        assert!(wrong("<html><title>Login</title>").contains("a page: Login"));
        let deep = |n: usize| format!("Attributes {{ {} {} }}", "a { ".repeat(n), "} ".repeat(n));
        assert!(Set::decode(deep(MAX_DEPTH).as_bytes()).is_ok());
        assert!(wrong(&deep(1_000_000)).contains("sets in each other"));
        let many = "a { } ".repeat(MAX_NODES + 1);
        assert!(wrong(&format!("Attributes {{ {many} }}")).contains("attributes and sets"));
        let many = "1,".repeat(MAX_ATTRIBUTE_VALUES + 1);
        assert!(wrong(&format!("Attributes {{ Byte a {many}1; }}")).contains("values"));
    }

    #[test]
    fn a_document_cut_anywhere_is_an_error() {
        for len in 0..ALL.len() {
            assert!(Set::decode(&ALL.as_bytes()[..len]).is_err(), "{len}");
        }
    }
}

//! The DDS of DAP2: names, types and shapes of a dataset.
//!
//! ```text
//! dataset     := "Dataset" "{" declaration* "}" name ";"
//! declaration := base name array* ";"
//!              | "Structure" "{" declaration* "}" name array* ";"
//!              | "Sequence" "{" declaration* "}" name ";"
//!              | "Grid" "{" "ARRAY" ":" declaration "MAPS" ":" declaration* "}" name ";"
//! array       := "[" size "]" | "[" "=" size "]" | "[" name "=" size "]"
//! ```
//!
//! Words of the language in capital or small letters. A variable may be called as one of them.

use std::collections::HashSet;
use std::fmt;

use crate::dap2::error::refuse;
use crate::dap2::limits::{MAX_DEPTH, MAX_DIM_LEN, MAX_DOCUMENT_BYTES, MAX_NODES, MAX_RANK};
use crate::error::{DapError, Document};
use crate::text::{Lexer, What, encoded};

/// A type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atomic {
    /// 8 bits without a sign.
    Byte,
    /// 16 bits with a sign.
    Int16,
    /// 16 bits without a sign.
    UInt16,
    /// 32 bits with a sign.
    Int32,
    /// 32 bits without a sign.
    UInt32,
    /// IEEE 754, 32 bits.
    Float32,
    /// IEEE 754, 64 bits.
    Float64,
    /// Text of any length.
    String,
    /// Text that is a URL.
    Url,
}

impl Atomic {
    /// All of them.
    pub const ALL: [Atomic; 9] = [
        Atomic::Byte,
        Atomic::Int16,
        Atomic::UInt16,
        Atomic::Int32,
        Atomic::UInt32,
        Atomic::Float32,
        Atomic::Float64,
        Atomic::String,
        Atomic::Url,
    ];

    /// As documents have it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Atomic::Byte => "Byte",
            Atomic::Int16 => "Int16",
            Atomic::UInt16 => "UInt16",
            Atomic::Int32 => "Int32",
            Atomic::UInt32 => "UInt32",
            Atomic::Float32 => "Float32",
            Atomic::Float64 => "Float64",
            Atomic::String => "String",
            Atomic::Url => "Url",
        }
    }

    /// The type that a word names.
    #[must_use]
    pub fn named(word: &[u8]) -> Option<Atomic> {
        Atomic::ALL.into_iter().find(|atomic| word.eq_ignore_ascii_case(atomic.word().as_bytes()))
    }

    /// Whether it is text.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, Atomic::String | Atomic::Url)
    }

    /// Bytes of an element in memory; 0 for text.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Atomic::Byte => 1,
            Atomic::Int16 | Atomic::UInt16 => 2,
            Atomic::Int32 | Atomic::UInt32 | Atomic::Float32 => 4,
            Atomic::Float64 => 8,
            Atomic::String | Atomic::Url => 0,
        }
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The dataset itself.
    Dataset,
    /// Fields together.
    Structure,
    /// Records of fields, as many as come.
    Sequence,
    /// An array, the first field, and a map for each of its dimensions.
    Grid,
    /// Values.
    Atomic(Atomic),
}

/// A dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimDecl {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Its length.
    pub len: u64,
}

/// A variable, a container, or a field of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its own dimensions.
    pub dims: Vec<DimDecl>,
    /// The container; the dataset has none.
    pub parent: Option<usize>,
    /// Fields.
    pub children: Vec<usize>,
}

/// A DDS. Nodes have numbers: 0 is the dataset, a container comes before its fields, and these in the order of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dds {
    root: Node,
    nodes: Vec<Node>,
}

impl Dds {
    /// A dataset without variables.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Dds {
        let root = Node {
            name: name.into(),
            kind: Kind::Dataset,
            dims: Vec::new(),
            parent: None,
            children: Vec::new(),
        };
        Dds { root, nodes: Vec::new() }
    }

    /// Adds a field behind those that `parent` has; its number. Containers are to be complete before what comes behind them.
    pub fn add(
        &mut self,
        parent: usize,
        name: impl Into<String>,
        kind: Kind,
        dims: Vec<DimDecl>,
    ) -> usize {
        self.nodes.push(Node {
            name: name.into(),
            kind,
            dims,
            parent: Some(parent),
            children: Vec::new(),
        });
        let id = self.nodes.len();
        self.node_mut(parent).children.push(id);
        id
    }

    /// A node by its number; the dataset for numbers that there are not.
    #[must_use]
    pub fn node(&self, id: usize) -> &Node {
        id.checked_sub(1).and_then(|at| self.nodes.get(at)).unwrap_or(&self.root)
    }

    fn node_mut(&mut self, id: usize) -> &mut Node {
        id.checked_sub(1).and_then(|at| self.nodes.get_mut(at)).unwrap_or(&mut self.root)
    }

    /// Numbers of all nodes but the dataset, containers before their fields.
    pub fn ids(&self) -> impl Iterator<Item = usize> + use<> {
        1..=self.nodes.len()
    }

    /// The nodes from below the dataset to `id`, which is the last.
    #[must_use]
    pub fn path(&self, id: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = id;
        while let Some(parent) = self.node(at).parent {
            path.push(at);
            at = parent;
        }
        path.reverse();
        path
    }

    /// Names of [`Dds::path`] with dots between them.
    #[must_use]
    pub fn full_name(&self, id: usize) -> String {
        let names: Vec<&str> =
            self.path(id).iter().map(|id| self.node(*id).name.as_str()).collect();
        names.join(".")
    }

    /// The field of that name.
    #[must_use]
    pub fn child(&self, parent: usize, name: &str) -> Option<usize> {
        self.node(parent).children.iter().copied().find(|id| self.node(*id).name == name)
    }

    /// Reads a document.
    ///
    /// # Errors
    /// What is wrong with it, and where; what the server says in place of it.
    pub fn decode(bytes: &[u8]) -> Result<Dds, DapError> {
        Dds::decode_as(Document::Dds, bytes)
    }

    /// Reads a document that is part of `document`.
    pub(crate) fn decode_as(document: Document, bytes: &[u8]) -> Result<Dds, DapError> {
        if bytes.len() > MAX_DOCUMENT_BYTES {
            let what = format!("{} bytes, {MAX_DOCUMENT_BYTES} are the most", bytes.len());
            return Err(DapError::Unrepresentable { document, what });
        }
        refuse(document, bytes)?;
        let mut parser = Parser { lexer: Lexer::new(document, bytes), dds: Dds::new("") };
        parser.dataset()?;
        Ok(parser.dds)
    }

    /// The document.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut out = String::new();
        // A String takes all that is written.
        let _always = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        writeln!(out, "Dataset {{")?;
        for id in &self.root.children {
            self.write_node(out, *id, 1)?;
        }
        writeln!(out, "}} {};", encoded(Document::Dds, &self.root.name))
    }

    fn write_node(&self, out: &mut dyn fmt::Write, id: usize, depth: usize) -> fmt::Result {
        let node = self.node(id);
        let indent = "    ".repeat(depth);
        let inner = depth.saturating_add(1);
        match node.kind {
            Kind::Atomic(atomic) => write!(out, "{indent}{} ", atomic.word())?,
            Kind::Structure | Kind::Sequence | Kind::Dataset => {
                let word = if node.kind == Kind::Sequence { "Sequence" } else { "Structure" };
                writeln!(out, "{indent}{word} {{")?;
                for child in &node.children {
                    self.write_node(out, *child, inner)?;
                }
                write!(out, "{indent}}} ")?;
            }
            Kind::Grid => {
                writeln!(out, "{indent}Grid {{\n{indent} ARRAY:")?;
                for child in node.children.iter().take(1) {
                    self.write_node(out, *child, inner)?;
                }
                writeln!(out, "{indent} MAPS:")?;
                for child in node.children.iter().skip(1) {
                    self.write_node(out, *child, inner)?;
                }
                write!(out, "{indent}}} ")?;
            }
        }
        write!(out, "{}", encoded(Document::Dds, &node.name))?;
        for dim in &node.dims {
            match &dim.name {
                Some(name) => write!(out, "[{} = {}]", encoded(Document::Dds, name), dim.len)?,
                None => write!(out, "[{}]", dim.len)?,
            }
        }
        writeln!(out, ";")
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    dds: Dds,
}

impl Parser<'_> {
    fn dataset(&mut self) -> Result<(), DapError> {
        let word = self.lexer.next()?;
        if !word.is_word("Dataset") {
            return Err(self.lexer.unexpected(&word, "`Dataset`"));
        }
        self.lexer.mark(b'{', "the dataset")?;
        self.fields(0, 1)?;
        self.dds.root.name = self.lexer.name("the name of the dataset")?;
        self.lexer.mark(b';', "the dataset")?;
        self.lexer.end("the dataset")
    }

    /// Declarations until a closing brace.
    fn fields(&mut self, parent: usize, depth: usize) -> Result<(), DapError> {
        loop {
            let token = self.lexer.peek()?;
            if token.what == What::Mark(b'}') {
                self.lexer.next()?;
                return self.distinct(parent, token.at);
            }
            self.declaration(parent, depth)?;
        }
    }

    /// No two fields have one name: a name would mean either.
    fn distinct(&self, parent: usize, at: usize) -> Result<(), DapError> {
        let node = self.dds.node(parent);
        // A map may have the name of the array.
        let skipped = usize::from(node.kind == Kind::Grid);
        let mut names = HashSet::new();
        for id in node.children.iter().skip(skipped) {
            let name = self.dds.node(*id).name.as_str();
            if !names.insert(name) {
                return Err(self
                    .lexer
                    .error(at, format!("two fields of one container are called {name}")));
            }
        }
        Ok(())
    }

    fn declaration(&mut self, parent: usize, depth: usize) -> Result<(), DapError> {
        let word = self.lexer.word("a type")?;
        let What::Word(text) = word.what else {
            return Err(self.lexer.unexpected(&word, "a type"));
        };
        if depth > MAX_DEPTH {
            return Err(self
                .lexer
                .error(word.at, format!("more than {MAX_DEPTH} containers in each other")));
        }
        let kind = match Atomic::named(text) {
            Some(atomic) => Kind::Atomic(atomic),
            None if word.is_word("Structure") => Kind::Structure,
            None if word.is_word("Sequence") => Kind::Sequence,
            None if word.is_word("Grid") => Kind::Grid,
            None => {
                return Err(self
                    .lexer
                    .error(word.at, format!("{} is no type of DAP2", word.shown())));
            }
        };
        if self.dds.nodes.len() >= MAX_NODES {
            return Err(self
                .lexer
                .error(word.at, format!("more than {MAX_NODES} variables and fields")));
        }
        let id = self.dds.add(parent, "", kind, Vec::new());
        let inner = depth.saturating_add(1);
        match kind {
            Kind::Structure | Kind::Sequence => {
                self.lexer.mark(b'{', "a container")?;
                self.fields(id, inner)?;
            }
            Kind::Grid => self.grid(id, inner)?,
            Kind::Dataset | Kind::Atomic(_) => {}
        }
        let name = self.lexer.name("a name")?;
        self.dds.node_mut(id).name.clone_from(&name);
        if matches!(kind, Kind::Structure | Kind::Atomic(_)) {
            self.dims(id, &name)?;
        }
        self.lexer.mark(b';', &name)
    }

    fn grid(&mut self, id: usize, depth: usize) -> Result<(), DapError> {
        self.lexer.mark(b'{', "a grid")?;
        self.section("ARRAY")?;
        let at = self.lexer.peek()?.at;
        self.declaration(id, depth)?;
        self.section("MAPS")?;
        self.fields(id, depth)?;
        let node = self.dds.node(id);
        let is_values = |id: &usize| matches!(self.dds.node(*id).kind, Kind::Atomic(_));
        if !node.children.iter().all(is_values) {
            return Err(self.lexer.error(at, "array and maps of a grid are arrays of values"));
        }
        Ok(())
    }

    fn section(&mut self, word: &str) -> Result<(), DapError> {
        let token = self.lexer.next()?;
        if !token.is_word(word) {
            return Err(self.lexer.unexpected(&token, &format!("`{word}:` of a grid")));
        }
        self.lexer.mark(b':', "a grid")
    }

    fn dims(&mut self, id: usize, of: &str) -> Result<(), DapError> {
        while self.lexer.peek()?.what == What::Mark(b'[') {
            let at = self.lexer.next()?.at;
            let mut name = None;
            let mut size = self.lexer.next()?;
            let is_named = self.lexer.peek()?.what == What::Mark(b'=');
            if matches!(size.what, What::Word(_)) && is_named {
                name = Some(self.lexer.decoded(&size)?);
                self.lexer.next()?;
                size = self.lexer.next()?;
            } else if size.what == What::Mark(b'=') {
                size = self.lexer.next()?;
            }
            let len = match size.what {
                What::Word(word) => {
                    std::str::from_utf8(word).ok().and_then(|word| word.parse::<u64>().ok())
                }
                _ => None,
            };
            let Some(len) = len.filter(|len| *len <= MAX_DIM_LEN) else {
                let what = format!("{} is no length of a dimension of {of}", size.shown());
                return Err(self.lexer.error(size.at, what));
            };
            self.lexer.mark(b']', of)?;
            let dims = &mut self.dds.node_mut(id).dims;
            if dims.len() >= MAX_RANK {
                return Err(self
                    .lexer
                    .error(at, format!("{of} has more than {MAX_RANK} dimensions")));
            }
            dims.push(DimDecl { name, len });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "dataset {
        BYTE byte; url u[4]; Int16 a[x = 2][=3][5];
        Structure { Sequence { String s; } q; } st[2];
        Grid { Array: Float32 SST[lat=3][lon=4]; maps: Float64 lat[lat=3]; Float64 lon[lon=4]; } SST;
    } a%2Eb%41;";

    fn wrong(text: &str) -> String {
        Dds::decode(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn all_kinds_are_read_and_written() {
        let dds = Dds::decode(ALL.as_bytes()).unwrap();
        let again = Dds::decode(dds.encode().as_bytes()).unwrap();
        assert_eq!(dds, again);
        let names: Vec<String> = dds.ids().map(|id| dds.full_name(id)).collect();
        assert_eq!(names.join(" "), "byte u a st st.q st.q.s SST SST.SST SST.lat SST.lon");
        assert_eq!(dds.node(0).name, "a%2EbA");
        let a = dds.child(0, "a").unwrap();
        let dims: Vec<_> =
            dds.node(a).dims.iter().map(|dim| (dim.name.as_deref(), dim.len)).collect();
        assert_eq!(dims, [(Some("x"), 2), (None, 3), (None, 5)]);
        assert_eq!(dds.path(6), [4, 5, 6]);
        assert!(
            dds.encode().starts_with(
                "Dataset {\n    Byte byte;\n    Url u[4];\n    Int16 a[x = 2][3][5];\n"
            )
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        assert_eq!(wrong("Dataset { Int64 a; } x;"), "DDS, byte 10: `Int64` is no type of DAP2");
        assert_eq!(
            wrong("Dataset { Int32 a; Byte a; } x;"),
            "DDS, byte 27: two fields of one container are called a"
        );
        assert_eq!(
            wrong("Dataset { Int32 a[-1]; } x;"),
            "DDS, byte 18: `-1` is no length of a dimension of a"
        );
        assert!(wrong("Dataset { Int32 a[4294967296]; } x;").contains("no length"));
        assert!(wrong("Dataset { Int32 a } x;").contains("`}` where `;` of a should be"));
        assert!(wrong("Dataset { Sequence { Byte b; } s[3]; } x;").contains("`[` where `;` of s"));
        assert!(
            wrong("Dataset { Grid { ARRAY: Byte b[2]; } s; } x;")
                .contains("where `MAPS:` of a grid")
        );
        assert!(
            wrong("Dataset { Grid { ARRAY: Structure { Byte c; } b; MAPS: } s; } x;")
                .contains("arrays of values")
        );
        assert!(wrong("Dataset { } x; more").contains("behind the end"));
        assert!(wrong("").contains("the end where `Dataset` should be"));
        assert!(wrong("Error { message = \"none\"; };").contains("the server says: none"));
    }

    #[test]
    fn depth_and_counts_are_bounded() {
        let deep = |n: usize| {
            format!("Dataset {{ {}Byte b; {}}} x;", "Structure { ".repeat(n), "} s; ".repeat(n))
        };
        assert!(Dds::decode(deep(MAX_DEPTH - 1).as_bytes()).is_ok());
        assert!(wrong(&deep(MAX_DEPTH)).contains("containers in each other"));
        assert!(wrong(&deep(1_000_000)).contains("containers in each other"));
        let ranks = |n: usize| format!("Dataset {{ Byte b{}; }} x;", "[1]".repeat(n));
        assert!(Dds::decode(ranks(MAX_RANK).as_bytes()).is_ok());
        assert!(wrong(&ranks(MAX_RANK + 1)).contains("dimensions"));
        let many: String = (0..=MAX_NODES).map(|at| format!("Byte b{at};")).collect();
        assert!(wrong(&format!("Dataset {{ {many} }} x;")).contains("variables and fields"));
    }

    #[test]
    fn a_document_cut_anywhere_is_an_error() {
        for len in 0..ALL.len() {
            assert!(Dds::decode(&ALL.as_bytes()[..len]).is_err(), "{len}");
        }
    }
}

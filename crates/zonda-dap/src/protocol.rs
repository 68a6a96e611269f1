//! What the two versions of the protocol have in common for who reads a dataset.

use std::fmt;
use std::io::Read;

use zonda_format::OwnedValues;
use zonda_storage::StorageError;

use crate::error::DapError;
use crate::model::Model;

/// A dataset by one version of the protocol: its definitions, and how its values are asked for and read.
pub trait Protocol: Send + Sync {
    /// Its definitions.
    fn model(&self) -> &Model;

    /// The request that brings these parts, of which no two are of the same variable.
    ///
    /// # Errors
    /// `NC_EDAPCONSTRAINT` for what this version cannot ask for.
    fn request(&self, parts: &[Part<'_>]) -> Result<Request, DapError>;

    /// Reads the body of the response to [`Protocol::request`], to its end, and hands the elements of all parts to `sink`, as they come: memory is
    /// bounded by blocks, whatever the length of the body.
    ///
    /// # Errors
    /// A body that is not exactly what was asked for: shorter, longer, of other shapes or types, with a wrong checksum, an error of the server; what `sink`
    /// returns.
    fn read(
        &self,
        parts: &[Part<'_>],
        body: &mut dyn Read,
        sink: &mut dyn Sink,
    ) -> Result<(), DapError>;

    /// Whether elements of the variable (by its place in [`Model::vars`]) have strings or sequences in them, so that they come by [`Sink::owned`].
    fn has_pointers(&self, var: usize) -> bool;
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl fmt::Debug for dyn Protocol + '_ {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Protocol")
    }
}

/// Elements of one variable.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Its place in [`Model::vars`].
    pub var: usize,
    /// First element of each dimension.
    pub start: &'a [u64],
    /// Elements of each dimension, none of which is 0.
    pub count: &'a [u64],
    /// Steps, at least 1.
    pub stride: &'a [u64],
}

/// Where elements go. The elements of a part come in row-major order of the selection, in one or more pieces; parts come in any order.
pub trait Sink {
    /// The next elements of a part, each in the form of memory of the variable's type, native byte order.
    ///
    /// # Errors
    /// What `Sink` meets where it takes them; the body is read no further.
    fn plain(&mut self, part: usize, elements: &[u8]) -> Result<(), DapError>;

    /// The next elements of a part whose type has strings or sequences in it.
    ///
    /// # Errors
    /// As [`Sink::plain`].
    fn owned(&mut self, part: usize, elements: OwnedValues) -> Result<(), DapError>;
}

/// What is asked of a server: `URL` + `extension` + `?` + `query`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `.dds`, `.das`, `.dods`, `.dmr`, `.dmr.xml`, `.dap`.
    pub extension: &'static str,
    /// What comes after the question mark, with all characters escaped that have to be; empty without one.
    pub query: String,
}

/// A server, or a folder of saved responses, with one dataset.
pub trait Server: Send + Sync {
    /// The body of the response. An error of the connection comes as an [`std::io::Error`] that has a [`StorageError`] in it.
    ///
    /// # Errors
    /// What the server, the connection or the system says.
    fn ask(&self, request: &Request) -> Result<Box<dyn Read + Send>, StorageError>;

    /// The same for a response that has about so many bytes of elements: it may take as much longer.
    ///
    /// # Errors
    /// As [`Server::ask`].
    fn ask_for(
        &self,
        request: &Request,
        _bytes: u64,
    ) -> Result<Box<dyn Read + Send>, StorageError> {
        self.ask(request)
    }

    /// Whether constraints are heeded. Saved responses are always whole.
    fn heeds_constraints(&self) -> bool;

    /// How many requests are worth running at once.
    fn parallel(&self) -> usize;
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl fmt::Debug for dyn Server + '_ {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Server")
    }
}

/// What the user asks for besides the dataset.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// What stood behind the question mark of the URL, without escapes: projections and selections. Empty for all of the dataset.
    pub constraint: String,
    /// Settings of the fragment and of brackets before the URL, names in small letters, in order: `("stringlength", "10")`. What concerns the connection is
    /// not heeded here.
    pub settings: Vec<(String, String)>,
}

impl Asked {
    /// The value of a setting; of several the last.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&str> {
        let mut all = self.settings.iter().rev();
        all.find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

//! The spec grammar: a stack of layers as one string.
//!
//! ```text
//! spec    = token *( "," token )            application first, backend last
//! token   = name *( "." option ) *( ":" argument )
//! ```
//!
//! `cache:29:141,event,file` is a cache over a trace over a file. A backend at the end (`file`,
//! `memory`) may be left out and is then `file`. Sizes are in blocks of 4096 bytes; with a suffix
//! `k`, `M` or `G` (powers of 1024) they are in bytes. The forms of 1995 (FFIO, `assign -F`) are
//! read as well; what they become is in `ffio.rs` and in [`Spec::replaced`].

mod args;
mod ffio;

pub(crate) use args::{SpecArgs, size_text};

use crate::neighbour::from_env;
use crate::storage::Storage;
use crate::{StorageError, backend, layer};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use zonda_runtime::setting;

/// A storage under construction.
pub(crate) type Below = Arc<dyn Storage>;

/// The variables that hold a spec, the first that is set deciding.
pub const VARIABLES: [&str; 3] = ["ZONDA_IO", "NETCDF_FFIOSPEC", "NETCDF_FFIO_SPEC"];

/// A layer as the registry knows it.
pub(crate) struct Registered {
    pub(crate) name: &'static str,
    /// Checks the arguments.
    pub(crate) parse: fn(&mut SpecArgs<'_>) -> Result<Arc<dyn LayerSpec>, SpecError>,
}

/// A layer with its arguments checked; `Display` gives its token.
pub(crate) trait LayerSpec: fmt::Display + Send + Sync {
    /// Puts the layer on `below`.
    fn build(&self, below: Below, building: &mut Building<'_>) -> Result<Below, StorageError>;

    /// Whether the layer keeps data of its own, so that others do not see writes at once.
    fn buffers(&self) -> bool;
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl fmt::Debug for dyn LayerSpec + '_ {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("LayerSpec")
    }
}

/// What a layer may ask and tell while the stack is built.
pub(crate) struct Building<'a> {
    /// How many layers of the stack stand above this one.
    pub(crate) depth: usize,
    /// The file at the bottom, if there is one.
    pub(crate) file: Option<&'a Arc<backend::File>>,
    /// Nothing stands between this layer and the bottom.
    pub(crate) is_lowest: bool,
    pub(crate) handles: &'a mut Handles,
}

/// The handles of the layers that have one, each list in the order of the stack, top first.
#[derive(Debug, Default)]
pub struct Handles {
    /// Of every `count`.
    pub counts: Vec<layer::CountHandle>,
    /// Of every `fault`.
    pub faults: Vec<layer::FaultHandle>,
    /// Of every `fault:log`.
    pub logs: Vec<layer::WriteLog>,
}

/// What holds the bytes at the bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bottom {
    File,
    Memory,
}

impl fmt::Display for Bottom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bottom::File => "file",
            Bottom::Memory => "memory",
        })
    }
}

/// A stack of layers, parsed and checked. `Display` gives back what will run.
#[derive(Debug, Clone)]
pub struct Spec {
    layers: Vec<Arc<dyn LayerSpec>>,
    bottom: Bottom,
    replaced: Vec<Replaced>,
}

/// A token whose layer does not exist, and what stands in for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The token as given.
    pub token: String,
    /// What runs, as a token; empty when nothing does.
    pub by: String,
}

impl fmt::Display for Replaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.by.is_empty() {
            write!(f, "`{}` is left out", self.token)
        } else {
            write!(f, "`{}` runs as `{}`", self.token, self.by)
        }
    }
}

/// Why a spec was refused. Positions count characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A name that no layer or backend has.
    #[error("unknown layer `{token}` at character {position}; known: {known}")]
    Unknown {
        /// The name.
        token: String,
        /// Where it begins.
        position: usize,
        /// Every known name, separated by spaces.
        known: String,
    },
    /// Nothing between two commas, or at an end.
    #[error("empty layer name at character {position}")]
    Empty {
        /// Where a name should begin.
        position: usize,
    },
    /// An option after a dot that its layer does not know.
    #[error("unknown option `{option}` of `{token}` at character {position}")]
    Option {
        /// The token.
        token: String,
        /// The option.
        option: String,
        /// Where the token begins.
        position: usize,
    },
    /// An argument that is not what its place asks for.
    #[error("`{token}` at character {position}: argument `{argument}` is not {wanted}")]
    Argument {
        /// The token.
        token: String,
        /// Where it begins.
        position: usize,
        /// The argument.
        argument: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// An argument outside the range its layer takes.
    #[error("`{token}` at character {position}: {what} must be {range}, not {argument}")]
    Range {
        /// The token.
        token: String,
        /// Where it begins.
        position: usize,
        /// What the argument means.
        what: &'static str,
        /// The range it must be in.
        range: &'static str,
        /// The argument.
        argument: String,
    },
    /// An argument is not there.
    #[error("`{token}` at character {position}: {wanted} is missing")]
    Missing {
        /// The token.
        token: String,
        /// Where it begins.
        position: usize,
        /// What should follow.
        wanted: &'static str,
    },
    /// More arguments than the layer has.
    #[error("`{token}` at character {position}: too many arguments, from `{argument}` on")]
    TooMany {
        /// The token.
        token: String,
        /// Where it begins.
        position: usize,
        /// The first one too many.
        argument: String,
    },
    /// A backend that is not the last token.
    #[error("`{token}` at character {position} is a backend: nothing can follow it")]
    BackendNotLast {
        /// The token.
        token: String,
        /// Where it begins.
        position: usize,
    },
}

/// The names a spec can hold, for messages.
fn known_names() -> String {
    let mut names: Vec<&str> = layer::LAYERS.iter().map(|l| l.name).collect();
    names.extend(ffio::NAMES);
    names.extend(["file", "memory"]);
    zonda_runtime::sort::sort(&mut names);
    names.dedup();
    names.join(" ")
}

/// Tokens with the character position each begins at, the first being 1.
fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut begin = 1;
    // FFIO separates by either sign.
    text.split([',', '|']).map(move |part| {
        let spaces = part.chars().take_while(|c| c.is_whitespace()).count();
        let here = begin + spaces;
        begin += part.chars().count() + 1;
        (here, part.trim())
    })
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Spec, SpecError> {
        let mut spec = Spec { layers: Vec::new(), bottom: Bottom::File, replaced: Vec::new() };
        let mut bottom: Option<(usize, &str)> = None;
        for (position, token) in tokens(text) {
            if let Some((position, token)) = bottom {
                return Err(SpecError::BackendNotLast { token: token.to_owned(), position });
            }
            let mut args = SpecArgs::new(token, position)?;
            match args.name() {
                "file" | "memory" => {
                    let memory = args.name() == "memory";
                    args.no_options()?;
                    args.end()?;
                    spec.bottom = if memory { Bottom::Memory } else { Bottom::File };
                    bottom = Some((position, token));
                }
                "system" | "syscall" => {
                    ffio::system(&mut args)?;
                    spec.replaced.push(Replaced { token: token.to_owned(), by: "file".into() });
                    bottom = Some((position, token));
                }
                name => match layer::LAYERS.iter().find(|l| l.name == name) {
                    Some(found) => {
                        ffio::check_options(&args)?;
                        spec.layers.push((found.parse)(&mut args)?);
                    }
                    None => {
                        ffio::left_out(&mut args)?;
                        let by = String::new();
                        spec.replaced.push(Replaced { token: token.to_owned(), by });
                    }
                },
            }
        }
        Ok(spec)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.layers.iter().try_for_each(|layer| write!(f, "{layer},"))?;
        self.bottom.fmt(f)
    }
}

impl PartialEq for Spec {
    /// Equal when the same stack runs.
    fn eq(&self, other: &Spec) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Spec {}

impl Spec {
    /// Parses a spec, as `str::parse` does.
    ///
    /// # Errors
    /// [`SpecError`], which names the token and its position.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        text.parse()
    }

    /// No layer at all: the backend `file` alone.
    #[must_use]
    pub fn file() -> Spec {
        Spec { layers: Vec::new(), bottom: Bottom::File, replaced: Vec::new() }
    }

    /// The default stack for files: a cache that sizes itself over the file.
    #[must_use]
    pub fn default_stack() -> Spec {
        Spec { layers: vec![layer::adaptive_spec()], ..Spec::file() }
    }

    /// The spec in the first of [`VARIABLES`] that is set and not empty.
    ///
    /// A spec that does not parse gives one line on standard error naming the token, once per
    /// process and string, and `None`: the default is then used.
    #[must_use]
    pub fn from_env() -> Option<Spec> {
        // It can name files to be written.
        let set = |name| from_env(name).filter(|text| !text.is_empty());
        let (name, text) = VARIABLES.iter().find_map(|name| Some((name, set(*name)?)))?;
        let text = text.to_string_lossy();
        match text.parse() {
            Ok(spec) => Some(spec),
            Err(why) => {
                setting::warn_once(name, &text, &why, &Spec::default_stack());
                None
            }
        }
    }

    /// Tokens of the 1995 grammar that run as something else, in order.
    #[must_use]
    pub fn replaced(&self) -> &[Replaced] {
        &self.replaced
    }

    /// The same stack without the layers that keep data of their own (`NC_SHARE`).
    #[must_use]
    pub fn without_buffering(mut self) -> Spec {
        self.layers.retain(|layer| !layer.buffers());
        self
    }

    pub(crate) fn bottom(&self) -> Bottom {
        self.bottom
    }

    /// Stacks the layers on `base`, which takes the place of the spec's backend.
    ///
    /// # Errors
    /// What a layer meets when it asks `base` for its length, or opens its trace file.
    pub fn build_on(&self, base: Arc<dyn Storage>) -> Result<Arc<dyn Storage>, StorageError> {
        self.build_with(base, &mut Handles::default())
    }

    /// As [`Spec::build_on`], and hands out the handles of the layers that have one.
    ///
    /// # Errors
    /// As [`Spec::build_on`].
    pub fn build_with(
        &self,
        base: Arc<dyn Storage>,
        handles: &mut Handles,
    ) -> Result<Arc<dyn Storage>, StorageError> {
        self.build(base, None, layer::TracedOpening::of(None), handles)
    }

    /// Stacks the layers on a file, which some of them ask for more than bytes.
    pub(crate) fn build_on_file(
        &self,
        file: &Arc<backend::File>,
    ) -> Result<Arc<dyn Storage>, StorageError> {
        let opening = layer::TracedOpening::of(Some(file.path()));
        self.build(Arc::clone(file) as Below, Some(file), opening, &mut Handles::default())
    }

    /// Stacks the layers on what a URL leads to, which traces know by `name`.
    pub(crate) fn build_on_url(
        &self,
        base: Arc<dyn Storage>,
        name: &str,
    ) -> Result<Arc<dyn Storage>, StorageError> {
        self.build(
            base,
            None,
            layer::TracedOpening::of(Some(std::path::Path::new(name))),
            &mut Handles::default(),
        )
    }

    /// Builds the stack, with a probe above each part of it where a trace is recorded.
    fn build(
        &self,
        base: Below,
        file: Option<&Arc<backend::File>>,
        opening: Option<layer::TracedOpening>,
        handles: &mut Handles,
    ) -> Result<Arc<dyn Storage>, StorageError> {
        let probed = |stack, depth, token: &dyn fmt::Display| match opening {
            Some(opening) => opening.probe(stack, depth, token.to_string()),
            None => stack,
        };
        let mut built = Handles::default();
        let mut stack = probed(base, self.layers.len(), &self.bottom);
        for (depth, layer) in self.layers.iter().enumerate().rev() {
            let is_lowest = depth + 1 == self.layers.len();
            let mut building = Building { depth, file, is_lowest, handles: &mut built };
            stack = layer.build(stack, &mut building)?;
            stack = probed(stack, depth, layer);
        }
        handles.counts.extend(built.counts.into_iter().rev());
        handles.faults.extend(built.faults.into_iter().rev());
        handles.logs.extend(built.logs.into_iter().rev());
        Ok(stack)
    }

    /// Builds the stack on an empty memory, whatever backend the spec names.
    ///
    /// # Errors
    /// As [`Spec::build_on`].
    pub fn build_in_memory(&self) -> Result<Arc<dyn Storage>, StorageError> {
        self.build_on(Arc::new(backend::Memory::new()))
    }
}

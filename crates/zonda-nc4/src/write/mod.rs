//! Writing: definitions and data that go into the file at the next commit.
//!
//! A file that is being written keeps its whole state in memory: the model that readers know, for
//! each variable a draft ([`VarDraft`]) of what only a writer needs, and the attributes of whatever
//! was changed. Definitions change the model at once, so inquiries need not know of writing. A commit
//! turns what is marked as changed into object headers.

mod att_list;
mod atts;
mod chunk_sizes;
mod commit;
mod contiguous;
mod create;
mod datatypes;
mod define;
mod dims;
mod dispatch;
mod draft;
mod draft_data;
mod element;
mod fill_copies;
mod filters;
mod groups;
mod grow;
mod header;
mod lifecycle;
mod linear;
mod links;
mod make_store;
mod new_storage;
mod objects;
mod owned_values;
mod put;
mod quantize;
mod raw;
mod reopen;
mod scales;
mod settings;
mod store;
mod type_size;
mod types;
mod unwritten_chunks;
mod vars;
mod view;

pub(crate) use att_list::EditedAtts;
pub(crate) use atts::{draft_fill, get_owned};
pub(crate) use datatypes::Typed;
pub(crate) use draft::{Fill, Layout, VarDraft};
pub(crate) use links::committed_name;
pub use raw::UnwrittenElements;
pub use reopen::{recover, recover_of};
pub use settings::MOST_FILTER_PARAMS;
pub(crate) use store::{Stores, VarStore};
pub use view::View;
pub(crate) use zonda_format::OwnedValues;
pub(crate) use zonda_format::{Quantize, QuantizeMode, StorageRequest, VlenSource};

use std::collections::BTreeSet;
use std::sync::Arc;
use zonda_runtime::lock::Mutex;

use hashbrown::HashMap;
use std::path::PathBuf;
use zonda_hdf5::{HeapWriter, Space};
use zonda_model::{DimId, VarId};
use zonda_storage::Sidecars;

use self::commit::DecidedCommit;
use self::links::LinkEntry;
use self::objects::StoredObject;
use self::scales::{Apart, Scales};
use crate::model::GroupId;

/// How to create a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nc4CreateOptions {
    /// The classic model is kept to (`NC_CLASSIC_MODEL`).
    pub classic: bool,
    /// Attributes keep the order in which they were made (not `NC_NOATTCREORD`).
    pub attribute_order: bool,
    /// Variables say which scales their dimensions are (not `NC_NODIMSCALE_ATTACH`).
    pub attach_scales: bool,
    /// Value of `_NCProperties`.
    pub properties: Vec<u8>,
}

/// An object of the file, by what it is in the model: the number stays, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ObjectKey {
    /// A group.
    Group(GroupId),
    /// A named type.
    Type(i32),
    /// The scale of a dimension that is no variable.
    Scale(DimId),
    /// A variable.
    Var(GroupId, VarId),
}

/// What a file that is open for writing has besides what readers need.
#[derive(Debug)]
pub(crate) struct Writing {
    /// How it was created, or what was found out about it.
    pub(crate) how: Nc4CreateOptions,
    /// Being created: no commit was made.
    pub(crate) is_new: bool,
    /// Whether definitions may be changed, and which are accepted.
    pub(crate) mode: Mode,
    /// What the file has of the definitions.
    pub(crate) stored: StoredDefinitions,
    /// What the next commit has to do, and what the last one did.
    pub(crate) commits: Commits,
    /// Where the file ends.
    pub(crate) file_end: FileEnd,
    /// The space of the file.
    pub(crate) space: Space,
    /// Values on their way to the global heap. Readers flush it before they look something up there.
    pub(crate) heap: Mutex<HeapWriter>,
    /// Data that were put.
    pub(crate) stores: Stores,
    /// Where a journal can stand; `None` for a file in memory.
    pub(crate) sidecars: Option<Arc<dyn Sidecars>>,
    /// See [`Nc4OpenOptions`](crate::Nc4OpenOptions).
    pub(crate) spills_beside: Option<PathBuf>,
    /// Object references in the file are those of its scales and no others: its properties say that
    /// a netCDF library made it.
    pub(crate) owns_references: bool,
}

/// Whether definitions may be changed, and which are accepted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mode {
    /// In define mode.
    pub(crate) is_defining: bool,
    /// Define mode was entered again, after the creation of the file.
    pub(crate) is_redefining: bool,
    /// Definitions were ended once, if only since data were put.
    pub(crate) has_defined: bool,
    /// Names that netCDF does not allow are accepted: those of another HDF5 file.
    pub(crate) takes_any_name: bool,
    /// New variables are not filled (`nc_set_fill`).
    pub(crate) no_fill: bool,
}

/// What the file has of the definitions, to compare with what it should have.
#[derive(Debug, Default)]
pub(crate) struct StoredDefinitions {
    /// The objects that were written or are to be changed.
    pub(crate) objects: HashMap<ObjectKey, StoredObject>,
    /// Names in groups.
    pub(crate) links: HashMap<GroupId, Vec<LinkEntry>>,
    /// What scales and variables say of each other.
    pub(crate) scales: Scales,
    /// All scales say the ids of their dimensions.
    pub(crate) ids_are_said: bool,
    /// Dimensions and variables that have no part in scales.
    pub(crate) apart: Apart,
}

/// What the next commit has to do, and what the last one did.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    /// Objects whose headers have to be written at the next commit: new ones, and those of which
    /// attributes, links, extent, storage or scales changed.
    pub(crate) changed: BTreeSet<ObjectKey>,
    /// Objects of which what is outside of the first block goes to another place.
    pub(crate) tidying: BTreeSet<ObjectKey>,
    /// A commit that is laid out and not wholly written.
    pub(crate) decided: Option<DecidedCommit>,
    /// Commits so far.
    pub(crate) n_commits: u64,
    /// The superblock no longer says what holds only until somebody writes to the file.
    pub(crate) is_prepared: bool,
}

/// Where the file ends, as addresses are counted.
#[derive(Debug)]
pub(crate) struct FileEnd {
    /// End as the superblock has it. What is used may end before it.
    pub(crate) said: u64,
    /// End of a file that was there when it was opened, until it is found out what of it is free.
    pub(crate) found: Option<u64>,
    /// The file ends at a multiple of so many bytes, where its space is managed in pages.
    pub(crate) page: Option<u64>,
    /// The end stays where it is when the file is closed.
    pub(crate) is_kept: bool,
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

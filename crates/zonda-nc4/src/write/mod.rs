//! Writing: definitions and data that go into the file at the next commit.
//!
//! A file that is being written keeps its whole state in memory: the model that readers know, for
//! each variable a draft ([`VarDraft`]) of what only a writer needs, and the attributes of whatever
//! was changed. Definitions change the model at once, so inquiries need not know of writing. A commit
//! turns what is marked as changed into object headers.

mod absent;
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
mod element;
mod filters;
mod groups;
mod grow;
mod header;
mod lifecycle;
mod linear;
mod links;
mod measure;
mod objects;
mod own;
mod owned_values;
mod put;
mod quantize;
mod raw;
mod recipe;
mod reopen;
mod scales;
mod settings;
mod store;
mod types;
mod unwritten;
mod vars;
mod view;

pub(crate) use att_list::EditedAtts;
pub(crate) use atts::{draft_fill, get_owned};
pub(crate) use datatypes::Typed;
pub(crate) use draft::{Fill, Layout, VarDraft};
pub(crate) use links::committed_name;
pub use raw::NeverWritten;
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

use self::commit::Decided;
use self::links::Entry;
use self::objects::Stored;
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
    /// In define mode.
    pub(crate) is_defining: bool,
    /// Define mode was entered again, after the creation of the file.
    pub(crate) is_redefining: bool,
    /// Definitions were ended once, if only since data were put.
    pub(crate) has_defined: bool,
    /// Being created: no commit was made.
    pub(crate) is_new: bool,
    /// Names that netCDF does not allow are taken: those of another HDF5 file.
    pub(crate) takes_any_name: bool,
    /// New variables are not filled (`nc_set_fill`).
    pub(crate) no_fill: bool,
    /// The space of the file.
    pub(crate) space: Space,
    /// The file ends at a multiple of so many bytes, where its space is managed in pages.
    pub(crate) page: Option<u64>,
    /// What the file said that holds only until somebody writes to it is taken back.
    pub(crate) is_prepared: bool,
    /// Where a journal can stand; none for a file in memory.
    pub(crate) sidecars: Option<Arc<dyn Sidecars>>,
    /// See [`Nc4OpenOptions`](crate::OpenHow).
    pub(crate) spills_beside: Option<PathBuf>,
    /// Object references in the file are those of its scales and no others: its properties say that
    /// a netCDF library made it.
    pub(crate) owns_references: bool,
    /// Objects whose headers have to be written at the next commit: new ones, and those of which
    /// attributes, links, extent, storage or scales changed.
    pub(crate) changed: BTreeSet<ObjectKey>,
    /// What the file has of the objects that were written or are to be changed.
    pub(crate) objects: HashMap<ObjectKey, Stored>,
    /// Names in groups, as the file has them.
    pub(crate) links: HashMap<GroupId, Vec<Entry>>,
    /// What scales and variables say of each other, as the file has it.
    pub(crate) scales: Scales,
    /// All scales say the ids of their dimensions.
    pub(crate) ids_are_said: bool,
    /// What has no part in them.
    pub(crate) apart: Apart,
    /// What is on its way to the global heap. Readers flush it before they look something up there.
    pub(crate) heap: Mutex<HeapWriter>,
    /// Data that were put.
    pub(crate) stores: Stores,
    /// End of the file as the superblock has it, as addresses are counted. What is used may end
    /// before it.
    pub(crate) end: u64,
    /// End of a file that was there when it was opened, until it is found out what of it is free.
    pub(crate) found_end: Option<u64>,
    /// Commits so far.
    pub(crate) n_commits: u64,
    /// What is said to be ahead of what is used stays so.
    pub(crate) keeps_end: bool,
    /// Objects of which what is outside of the first block goes to another place.
    pub(crate) tidying: BTreeSet<ObjectKey>,
    /// A commit that is laid out and not wholly written.
    pub(crate) decided: Option<Decided>,
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

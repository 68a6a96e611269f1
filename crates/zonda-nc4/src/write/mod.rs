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
mod put_one;
mod quantize;
mod raw;
mod reopen;
mod scales;
mod settings;
mod shared_chunks;
mod store;
mod team;
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
use zonda_format::UnfilledRun;
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
    /// The file keeps to the classic model (`NC_CLASSIC_MODEL`).
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
    /// How the file was created; of one that was opened, what its definitions show of that.
    pub(crate) how: Nc4CreateOptions,
    /// The file is being created: there was no commit yet.
    pub(crate) is_new: bool,
    /// Whether definitions may be changed, and which are accepted.
    pub(crate) mode: Mode,
    /// The definitions as the file has them.
    pub(crate) stored: StoredDefinitions,
    /// What the next commit has to write, and what of the last one is not written yet.
    pub(crate) commits: Commits,
    /// Where the file ends.
    pub(crate) file_end: FileEnd,
    /// The space of the file.
    pub(crate) space: Space,
    /// Values that are put and go to the global heap. Readers flush it before they look something up there.
    pub(crate) heap: Mutex<HeapWriter>,
    /// The storage of variables that were put to.
    pub(crate) stores: Stores,
    /// Makes the journal beside the file; `None` for a file in memory.
    pub(crate) sidecars: Option<Arc<dyn Sidecars>>,
    /// See [`Nc4OpenOptions`](crate::Nc4OpenOptions).
    pub(crate) spills_beside: Option<PathBuf>,
    /// All object references in the file are those of its scales: `_NCProperties` says that a netCDF library made it.
    pub(crate) owns_references: bool,
    /// Several ranks write the file: it commits only when it is told to.
    pub(crate) is_in_team: bool,
    /// Places that were given to elements and are not filled yet: they stay here where an error ended the step that gave them,
    /// and are told by the next one.
    pub(crate) unfilled: Vec<UnfilledRun>,
    /// Those of them that reach beyond the lengths of their variable.
    pub(crate) padded: Vec<UnfilledRun>,
}

/// Whether definitions may be changed, and which are accepted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mode {
    /// In define mode.
    pub(crate) is_defining: bool,
    /// Define mode was entered again, after the creation of the file.
    pub(crate) is_redefining: bool,
    /// Definitions ended at least once, by a call or by a put.
    pub(crate) has_defined: bool,
    /// Names that netCDF does not allow are accepted: those of another HDF5 file.
    pub(crate) takes_any_name: bool,
    /// New variables are not filled (`nc_set_fill`).
    pub(crate) no_fill: bool,
}

/// The definitions as the file has them, to be compared with what it should have.
#[derive(Debug, Default)]
pub(crate) struct StoredDefinitions {
    /// The objects that were written since the file was opened, or are to be changed.
    pub(crate) objects: HashMap<ObjectKey, StoredObject>,
    /// The links of groups.
    pub(crate) links: HashMap<GroupId, Vec<LinkEntry>>,
    /// Which scales there are, and which variables refer to them.
    pub(crate) scales: Scales,
    /// All scales have the attribute with the id of their dimension.
    pub(crate) ids_are_said: bool,
    /// Dimensions without scales, and variables that do not refer to theirs.
    pub(crate) apart: Apart,
}

/// What the next commit has to write, and what of the last one is not written yet.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    /// Objects whose headers have to be written at the next commit: new ones, and those of which
    /// attributes, links, extent, storage or scales changed.
    pub(crate) changed: BTreeSet<ObjectKey>,
    /// Objects whose lists and further blocks are moved to other places when the file is closed.
    pub(crate) tidying: BTreeSet<ObjectKey>,
    /// A commit that is laid out and not completely written.
    pub(crate) decided: Option<DecidedCommit>,
    /// Commits so far.
    pub(crate) n_commits: u64,
    /// The file no longer has what holds only until somebody writes to it, such as a list of free space.
    pub(crate) is_prepared: bool,
}

/// Where the file ends, as addresses are counted.
#[derive(Debug)]
pub(crate) struct FileEnd {
    /// End as the superblock has it. What is used may end before it.
    pub(crate) said: u64,
    /// Where the file ended when it was opened; `None` once its free space was looked for.
    pub(crate) found: Option<u64>,
    /// Bytes of a page, if the space of the file is managed in pages: it then ends with one.
    pub(crate) page: Option<u64>,
    /// A close leaves the end where it is.
    pub(crate) is_kept: bool,
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

//! New files.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use zonda_runtime::lock::{Mutex, Rank};

use zonda_hdf5::space::SECTOR;
use zonda_hdf5::{File, HeapWriter, Sizes, Space};
use zonda_storage::Storage;

use super::{Commits, FileEnd, Mode, Nc4CreateOptions, StoredDefinitions, Stores, Writing};
use crate::file::{Nc4File, Nc4OpenOptions};
use crate::files::Files;
use crate::model::{GroupId, Model};
use crate::refresh::ReadState;
use crate::tuning::FREED_WAIT_BYTES;
use crate::write::ObjectKey;
use crate::{Nc4Error, Result};

/// Bytes of a superblock of version 2. The root group's header is behind it.
const SUPERBLOCK: u64 = 48;

/// Bytes of the first block of the root group's header, whose place is taken before all else: what
/// is left of the first sector.
pub(super) const ROOT_LEN: u64 = SECTOR - SUPERBLOCK;

impl Nc4File {
    /// Creates a file, in define mode. Nothing is written before the first commit, which writes the superblock last: if it
    /// is interrupted before, there is no file. `name` is for messages.
    ///
    /// # Errors
    /// Those of the HDF5 file below.
    pub fn create(
        storage: Arc<dyn Storage>,
        name: &Path,
        how: Nc4OpenOptions,
        create: Nc4CreateOptions,
    ) -> Result<Nc4File> {
        let fail = |error| Nc4Error::Hdf { object: name.display().to_string(), error };
        let read = ReadState::now(&*storage);
        let file = File::create(storage, 0).map_err(fail)?;
        let file = Arc::new(file.with_unfilter(crate::var_data::unfilter(how.find_filter.clone())));
        let files = Files::new(file, how.path.clone());
        let model = Model::created(files.main(), create.classic);
        let space = space(SECTOR, how.alignment);
        let mut writing = Writing::new(create, space, files.main().sizes());
        writing.is_new = true;
        writing.mode = Mode { is_defining: true, ..Mode::default() };
        writing.stored.ids_are_said = true;
        writing.commits.changed.insert(ObjectKey::Group(GroupId::ROOT));
        writing.spills_beside.clone_from(&how.spills_beside);
        Ok(Nc4File {
            files,
            how,
            model: OnceLock::from(model),
            walking: Mutex::ranked(Rank::Walk, ()),
            writing: Some(Box::new(writing)),
            read,
            properties: None,
        })
    }
}

/// The space of a file behind `end`. `alignment` is a threshold and an alignment, in bytes: what has at least as many
/// bytes as the first begins at a multiple of the second.
pub(super) fn space(end: u64, alignment: Option<(u64, u64)>) -> Space {
    let mut space = Space::new(end);
    space.wait(FREED_WAIT_BYTES);
    if let Some((threshold, alignment)) = alignment {
        space.align(threshold, alignment);
    }
    space
}

impl Writing {
    /// The state of a file in data mode, without changes.
    pub(super) fn new(how: Nc4CreateOptions, space: Space, sizes: Sizes) -> Writing {
        Writing {
            how,
            is_new: false,
            mode: Mode { has_defined: true, ..Mode::default() },
            stored: StoredDefinitions::default(),
            commits: Commits::default(),
            file_end: FileEnd { said: space.end(), found: None, page: None, is_kept: false },
            heap: Mutex::ranked(Rank::NewHeap, HeapWriter::new(sizes)),
            stores: Stores::default(),
            sidecars: None,
            spills_beside: None,
            owns_references: true,
            is_in_team: false,
            unfilled: Vec::new(),
            padded: Vec::new(),
            space,
        }
    }
}

//! New files.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use zonda_runtime::lock::{Mutex, Rank};

use zonda_hdf5::space::SECTOR;
use zonda_hdf5::{File, HeapWriter, Sizes, Space};
use zonda_storage::Storage;

use super::{Nc4CreateOptions, Writing};
use crate::file::{Nc4File, Nc4OpenOptions};
use crate::files::Files;
use crate::model::{GroupId, Model};
use crate::refresh::Read;
use crate::write::ObjectKey;
use crate::{Nc4Error, Result};

/// Bytes of a superblock of version 2. The root group's header is behind it.
const SUPERBLOCK: u64 = 48;

/// Bytes of the first block of the root group's header, whose place is taken before all else: what
/// is left of the first sector.
pub(super) const ROOT_LEN: u64 = SECTOR - SUPERBLOCK;

impl Nc4File {
    /// Makes a file, in define mode. Nothing is written before the first commit, and the superblock
    /// last of all: what is interrupted before never was a file. `name` is for messages.
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
        let read = Read::now(&*storage);
        let file = File::create(storage, 0).map_err(fail)?;
        let file = Arc::new(file.with_unfilter(crate::data::unfilter(how.find_filter.clone())));
        let files = Files::new(file, how.path.clone());
        let model = Model::created(files.main(), create.classic);
        let writing = Writing {
            is_defining: true,
            has_defined: false,
            is_new: true,
            ids_are_said: true,
            spills_beside: how.spills_beside.clone(),
            changed: BTreeSet::from([ObjectKey::Group(GroupId::ROOT)]),
            ..Writing::new(create, space(SECTOR, how.alignment), files.main().sizes())
        };
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

/// Bytes given back after what serves again. A writer of small records gives some KiB back with each
/// commit, so a reader may take hundreds of commits to read what it has opened.
const WAIT_BYTES: u64 = 4 << 20;

/// The space behind `end`. What has at least so many bytes begins at a multiple of the other number.
pub(super) fn space(end: u64, alignment: Option<(u64, u64)>) -> Space {
    let mut space = Space::new(end);
    space.wait(WAIT_BYTES);
    if let Some((threshold, alignment)) = alignment {
        space.align(threshold, alignment);
    }
    space
}

impl Writing {
    /// Of a file in data mode of which nothing changed.
    pub(super) fn new(how: Nc4CreateOptions, space: Space, sizes: Sizes) -> Writing {
        Writing {
            how,
            is_defining: false,
            is_redefining: false,
            has_defined: true,
            is_new: false,
            takes_any_name: false,
            no_fill: false,
            changed: BTreeSet::new(),
            objects: Default::default(),
            links: Default::default(),
            scales: Default::default(),
            ids_are_said: false,
            apart: Default::default(),
            heap: Mutex::ranked(Rank::NewHeap, HeapWriter::new(sizes)),
            stores: Default::default(),
            end: space.end(),
            found_end: None,
            n_commits: 0,
            keeps_end: false,
            tidying: BTreeSet::new(),
            decided: None,
            page: None,
            is_prepared: false,
            sidecars: None,
            spills_beside: None,
            owns_references: true,
            space,
        }
    }
}

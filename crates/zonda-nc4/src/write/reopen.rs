//! Files that are opened for writing.

use std::path::Path;
use std::sync::Arc;

use zonda_hdf5::journal::{self, Recovered};
use zonda_hdf5::message::FileSpaceStrategy;
use zonda_hdf5::{File, HdfError, Sizes};
use zonda_model::{DimId, NcError, VarId};
use zonda_storage::{Sidecars, Storage};

use super::create::space;
use super::scales::{Apart, Scales};
use super::{FileEnd, Nc4CreateOptions, ObjectKey, Writing};
use crate::file::{Nc4File, Nc4OpenOptions, hdf};
use crate::hidden_atts;
use crate::model::{GroupId, Model};
use crate::{Nc4Error, Result};

impl Nc4File {
    /// Opens a file for writing, in data mode, and walks its objects. `name` is for messages.
    /// A journal that a dead writer left beside the file is completed.
    ///
    /// # Errors
    /// As [`Nc4File::open`] and [`Nc4File::model`]; `NC_ENOTBUILT` for files that manage their space
    /// in ways that Zonda cannot update; `NC_EHDFERR` where another program writes the file for readers
    /// at the same time (SWMR), or died while it did.
    pub fn open_for_writing(
        storage: Arc<dyn Storage>,
        name: &Path,
        how: Nc4OpenOptions,
    ) -> Result<Nc4File> {
        if let Some(sidecars) = &how.sidecars
            && journal::for_writing(&*storage, &**sidecars)
                .map_err(|error| hdf(name.display().to_string(), error))?
                == Recovered::InUse
        {
            let object = format!("{}: another program is writing it", name.display());
            return Err(Nc4Error::Refused { object, code: NcError::HdfErr });
        }
        let mut file = Nc4File::open(storage, name, how)?;
        let model = file.model()?;
        let below = file.hdf5();
        if let Some((why, code)) = foreign_space(below) {
            let object = format!("{}: {why}", name.display());
            return Err(Nc4Error::Refused { object, code });
        }
        let apart = apart(model);
        let root = below.object(below.root()).map_err(|error| hdf(String::from("/"), error))?;
        let create = Nc4CreateOptions {
            classic: model.is_classic,
            attribute_order: root.attribute_creation_order_tracked(),
            attach_scales: true,
            properties: Vec::new(),
        };
        let has_properties = root.attribute(below, hidden_atts::PROPERTIES);
        let has_properties = has_properties.map_err(|error| hdf(String::from("/"), error))?;
        let eof = below.superblock().eof.saturating_sub(below.superblock().base);
        let page = below.file_space_info();
        let page = page.filter(|space| space.strategy == FileSpaceStrategy::Pages);
        let page = page.map(|space| space.page_size);
        let alignment = file.how.alignment.or(page.map(|page| (page, page)));
        let mut writing = Writing::new(create, space(eof, alignment), below.sizes());
        writing.stored.scales = Scales::of(model, true, &apart);
        writing.stored.apart = apart;
        writing.sidecars.clone_from(&file.how.sidecars);
        writing.spills_beside.clone_from(&file.how.spills_beside);
        writing.owns_references = has_properties.is_some();
        writing.file_end = FileEnd { found: Some(eof), page, ..writing.file_end };
        file.writing = Some(Box::new(writing));
        Ok(file)
    }
}

/// Completes the commit of a writer that died, by the journal beside the file. `name` is for messages.
///
/// # Errors
/// What the storage reports.
pub fn recover(storage: &dyn Storage, sidecars: &dyn Sidecars, name: &Path) -> Result<Recovered> {
    journal::recover(storage, sidecars).map_err(|error| hdf(name.display().to_string(), error))
}

/// As [`recover`], with a journal that may belong to `user`, too. `show` gets what will be changed before anything
/// is, and prevents it by an error.
///
/// # Errors
/// What the storage reports, and the errors of `show`.
pub fn recover_of<E: From<Nc4Error>>(
    storage: &dyn Storage,
    sidecars: &dyn Sidecars,
    user: u32,
    name: &Path,
    show: impl FnOnce(&[String]) -> std::result::Result<(), E>,
) -> std::result::Result<Recovered, E> {
    /// An error of either.
    enum Either<E> {
        Ours(HdfError),
        Shown(E),
    }
    impl<E> From<HdfError> for Either<E> {
        fn from(error: HdfError) -> Either<E> {
            Either::Ours(error)
        }
    }
    let shown = |lines: &[String]| show(lines).map_err(Either::Shown);
    journal::recover_of(storage, sidecars, user, shown).map_err(|error| match error {
        Either::Ours(error) => hdf(name.display().to_string(), error).into(),
        Either::Shown(error) => error,
    })
}

/// Why Zonda cannot put new structures into a file, and the error code.
fn foreign_space(file: &File) -> Option<(&'static str, NcError)> {
    if file.superblock().marked_swmr() {
        let why = "a SWMR writer has it open, or ended without closing it; if none is running, h5clear -s clears the mark";
        Some((why, NcError::HdfErr))
    } else if !file.faults().is_empty() {
        Some((
            "what its superblock says of space and tables is damaged; see zonda check",
            NcError::HdfErr,
        ))
    } else if file.shared_message_table().is_some() {
        Some((
            "it keeps messages in a shared table (SOHM); such files can be read, not changed",
            NcError::NotBuilt,
        ))
    } else if file.sizes() != Sizes::EIGHT {
        Some((
            "its addresses are not 8 bytes long; such files can be read, not changed",
            NcError::NotBuilt,
        ))
    } else {
        None
    }
}

/// Finds dimensions without scales, and variables that do not refer to all scales of their dimensions: they have a
/// dimension without a scale, or one that is not known, or were made with `NC_NODIMSCALE_ATTACH`. The reference
/// leaves them as they are.
fn apart(model: &Model) -> Apart {
    let mut apart = Apart { n_types: model.types.len(), ..Apart::default() };
    for (id, dim) in (0..).map(DimId).zip(&model.dims) {
        if dim.as_ref().is_some_and(|dim| dim.at.is_none()) {
            apart.dims.insert(id);
        }
    }
    let scales = Scales::of(model, false, &apart);
    for (group, list) in (0..=u16::MAX).map(GroupId).zip(&model.groups) {
        for (id, var) in (0..).map(VarId).zip(&list.vars) {
            let key = ObjectKey::Var(group, id);
            if !var.refers_to_scales && !scales.dim_of.contains_key(&key) {
                apart.unattached.insert(key);
            }
            if var.names_itself {
                apart.selves.insert(key);
            }
            let has = |dim: &DimId| model.dim(*dim).is_some_and(|dim| dim.at.is_some());
            if !var.dims.iter().all(has) {
                apart.vars.insert(key);
            }
        }
    }
    apart
}

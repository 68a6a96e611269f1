//! Files that are opened for writing.

use std::path::Path;
use std::sync::Arc;

use zonda_hdf5::message::FileSpaceStrategy;
use zonda_hdf5::{File, HdfError, Sizes};
use zonda_model::{DimId, NcError, VarId};
use zonda_storage::Storage;

use super::create::space;
use super::scales::{Apart, Scales};
use super::{CreateHow, ObjectKey, Writing};
use crate::file::{Nc4File, OpenHow, hdf};
use crate::model::{GroupId, Model};
use crate::{Nc4Error, Result};

impl Nc4File {
    /// Opens a file for writing, in data mode, and walks its objects. `name` is for messages.
    ///
    /// # Errors
    /// As [`Nc4File::open`] and [`Nc4File::model`]; `NC_ECANTWRITE` where a group does not keep the
    /// order in which its objects were made, for which netCDF has no other; `NC_ENOTBUILT` for files
    /// that manage their space in ways that are not kept up yet.
    pub fn open_for_writing(
        storage: Arc<dyn Storage>,
        name: &Path,
        how: OpenHow,
    ) -> Result<Nc4File> {
        let mut file = Nc4File::open(storage, name, how)?;
        let model = file.model()?;
        let below = file.hdf5();
        let refused = |object: String, code| Nc4Error::Refused { object, code };
        if let Some(path) = unordered_group(below, model)? {
            let why = "does not keep the order in which its objects were made";
            return Err(refused(format!("{path}: {why}"), NcError::CantWrite));
        }
        if let Some(why) = foreign_space(below) {
            let object = format!("{}: {why}", name.display());
            return Err(refused(object, NcError::NotBuilt));
        }
        let apart = apart(model);
        let root = below.object(below.root()).map_err(|error| hdf(String::from("/"), error))?;
        let create = CreateHow {
            classic: model.is_classic,
            attribute_order: root.attribute_creation_order_tracked(),
            attach_scales: true,
            properties: Vec::new(),
        };
        let eof = below.superblock().eof.saturating_sub(below.superblock().base);
        let writing = Writing {
            scales: Scales::of(model, true, &apart),
            apart,
            ..Writing::new(create, space(eof, &file.how), below.sizes())
        };
        file.writing = Some(Box::new(writing));
        Ok(file)
    }
}

/// The path of a group that does not keep the order of what is in it.
fn unordered_group(file: &File, model: &Model) -> Result<Option<String>> {
    for (id, group) in (0u16..).map(GroupId).zip(&model.groups) {
        // Those of other files are not changed.
        if group.at.file != 0 {
            continue;
        }
        let object = file.object(group.at.addr);
        let ordered = object.and_then(|object| object.tracks_creation_order(file));
        if !ordered.map_err(|error: HdfError| hdf(model.group_path(id), error))? {
            return Ok(Some(model.group_path(id)));
        }
    }
    Ok(None)
}

/// Why new structures cannot be put into a file.
fn foreign_space(file: &File) -> Option<&'static str> {
    let space = file.file_space_info();
    if file.has_cache_image() {
        Some("its metadata are in an image of a cache")
    } else if space.is_some_and(|space| space.persistent) {
        Some("it keeps what space is free")
    } else if space.is_some_and(|space| space.strategy == FileSpaceStrategy::Pages) {
        Some("its space is managed in pages")
    } else if file.shared_message_table().is_some() {
        Some("objects share their messages")
    } else if file.sizes() != Sizes::EIGHT {
        Some("its addresses have not 8 bytes")
    } else {
        None
    }
}

/// What has no part in dimension scales: dimensions that no object stands for, and variables that
/// have such dimensions, or none that are known, or refer to no scales: `NC_NODIMSCALE_ATTACH` makes
/// them so, and the reference leaves them as they are.
fn apart(model: &Model) -> Apart {
    let mut apart = Apart { n_types: model.types.len(), ..Apart::default() };
    for (id, dim) in (0..).map(DimId).zip(&model.dims) {
        if dim.as_ref().is_some_and(|dim| dim.at.is_none()) {
            apart.dims.insert(id);
        }
    }
    let scales = Scales::of(model, false, &apart);
    for (group, list) in (0u16..).map(GroupId).zip(&model.groups) {
        for (id, var) in (0..).map(VarId).zip(&list.vars) {
            let key = ObjectKey::Var(group, id);
            if !var.refers_to_scales && !scales.dim_of.contains_key(&key) {
                apart.unattached.insert(key);
            }
            let has = |dim: &DimId| model.dim(*dim).is_some_and(|dim| dim.at.is_some());
            if !var.dims.iter().all(has) {
                apart.vars.insert(key);
            }
        }
    }
    apart
}

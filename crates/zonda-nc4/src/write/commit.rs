//! Commits: what was defined and put becomes what a reader finds, whatever happens meanwhile.
//!
//! Everything new goes to fresh space first, then the superblock says how long the file is, then the
//! first blocks of the headers that changed are written over, each by one write within a sector.
//! Nothing that the last commit refers to is written over before. All is laid out in memory before
//! the first byte is written; from then on a commit is decided, and what an error stops the next
//! commit completes.

mod layout;
mod plan;

use std::sync::{Arc, PoisonError};

use zonda_hdf5::{File, FileAddr, HdfError};
use zonda_storage::WriteRange;

use self::layout::lay_out;
use self::plan::Plan;
use super::define::owned;
use super::{ObjectKey, Writing};
use crate::attribute::AttList;
use crate::file::{Nc4File, hdf};
use crate::files::{Files, ObjectAt};
use crate::model::{GroupId, Model};
use crate::{Nc4Error, Result};

/// What comes of laying out and writing below the model.
type Laid<T> = std::result::Result<T, HdfError>;

/// A commit that is laid out, and perhaps written in part.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// What goes to fresh space.
    blocks: Vec<(FileAddr, Vec<u8>)>,
    /// First blocks of headers that change.
    switches: Vec<(FileAddr, Box<[u8]>)>,
    /// There is no superblock yet.
    is_first: bool,
}

impl Nc4File {
    /// Writes what the file lacks.
    pub(crate) fn commit(&mut self) -> Result<()> {
        self.settle()?;
        let Nc4File { files, model, writing: Some(writing), .. } = self else {
            return Ok(());
        };
        let Some(model) = model.get_mut() else { return Ok(()) };
        let file = Arc::clone(files.main());
        complete(&file, writing)?;
        writing.gather(&file).map_err(|fault| fault.at(|| String::from("/")))?;
        if !writing.changed.is_empty() || writing.is_new {
            decide(files, &file, model, writing)?;
            complete(&file, writing)?;
        }
        Ok(file.storage().sync().map_err(|error| root_error(error.into()))?)
    }
}

/// An error that concerns the whole file.
fn root_error(error: HdfError) -> Nc4Error {
    hdf(String::from("/"), error)
}

/// Lays a commit out.
fn decide(files: &Files, file: &Arc<File>, model: &mut Model, writing: &mut Writing) -> Result<()> {
    let plan = Plan::make(files, model, writing)?;
    let mut decided = lay_out(plan, file, model, writing).map_err(root_error)?;
    let [blocks, patches] = writing.stores.take_blocks();
    decided.blocks.extend(blocks);
    decided.switches.extend(patches.into_iter().map(|(at, bytes)| (at, bytes.into())));
    decided.is_first = writing.is_new;
    writing.decided = Some(decided);
    for key in std::mem::take(&mut writing.changed) {
        attributes_are_laid_out(model, key);
    }
    writing.is_new = false;
    publish(model, writing);
    Ok(())
}

/// The attributes of an object are in the file in the order in which they were laid out.
fn attributes_are_laid_out(model: &mut Model, key: ObjectKey) {
    let details = match key {
        ObjectKey::Group(id) => model.group_mut(id).map(|group| &mut group.details),
        ObjectKey::Var(group, id) => model.var_mut(group, id).map(|var| &mut var.details),
        ObjectKey::Scale(_) | ObjectKey::Type(_) => None,
    };
    if let Some(Ok(AttList::Edited(list))) = details.and_then(owned).map(|of| &mut of.atts) {
        list.stored();
    }
}

/// Writes a commit that is laid out, in whole, whatever was written of it before.
fn complete(file: &File, writing: &mut Writing) -> Result<()> {
    if writing.decided.is_some() {
        finish(file, writing).map_err(root_error)?;
        writing.decided = None;
        writing.space.committed();
    }
    Ok(())
}

fn finish(file: &File, writing: &mut Writing) -> Laid<()> {
    let Writing { decided, heap, space, end, .. } = writing;
    let storage = file.storage();
    let heap = heap.get_mut().unwrap_or_else(PoisonError::into_inner);
    heap.commit(file, space)?;
    let Some(decided) = decided else { return Ok(()) };
    decided.blocks.sort_unstable_by_key(|(addr, _)| *addr);
    let blocks = decided.blocks.iter();
    let ranges = blocks.map(|(addr, data)| WriteRange { at: file.position(*addr), data });
    let ranges: Vec<_> = ranges.collect();
    storage.write_ranges(&ranges)?;
    let len = file.position(FileAddr(space.end()));
    if storage.len()? < len {
        storage.set_len(len)?;
    }
    storage.barrier()?;
    if decided.is_first || space.end() > *end {
        file.write_superblock(space.end())?;
        storage.barrier()?;
        *end = space.end();
    }
    for (addr, bytes) in &decided.switches {
        storage.write_at(file.position(*addr), bytes)?;
    }
    file.forget();
    Ok(())
}

/// Says in the model where objects are.
fn publish(model: &mut Model, writing: &Writing) {
    let at = |key: &ObjectKey| {
        let stored = writing.objects.get(key)?;
        Some(ObjectAt { file: 0, addr: stored.space.addr })
    };
    for (id, group) in (0u16..).map(GroupId).zip(&mut model.groups) {
        if let Some(at) = at(&ObjectKey::Group(id)) {
            group.at = at;
            if let Some(details) = owned(&mut group.details) {
                details.at = at;
            }
        }
        for (var_id, var) in (0..).map(zonda_model::VarId).zip(&mut group.vars) {
            if let Some(at) = at(&ObjectKey::Var(id, var_id)) {
                var.at = at;
                if let Some(details) = owned(&mut var.details) {
                    details.at = at;
                }
            }
        }
    }
    for (id, key) in &writing.scales.of_dim {
        let index = usize::try_from(id.0).unwrap_or(usize::MAX);
        if let (Some(at), Some(Some(dim))) = (at(key), model.dims.get_mut(index)) {
            dim.at = Some(at);
        }
    }
}

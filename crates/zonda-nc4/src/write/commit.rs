//! Commits: what was defined and put becomes what a reader finds, whatever happens meanwhile.
//!
//! The order of writes:
//! 1. What is new goes to fresh space.
//! 2. The superblock says how long the file is.
//! 3. Nodes of chunk trees that grew in place count their new entries, and headers of attribute heaps that grew in
//!    place say where these are.
//! 4. The first blocks of headers that changed are written over, each by one write within a sector. If a header of
//!    another program does not lie within a sector, all of them go by a journal.
//!
//! Nothing that the last commit refers to is written over before step 3. The whole commit is laid out in memory before
//! its first byte is written; from then on it is decided: if an error stops it, the next commit completes it.

mod ahead;
mod layout;
mod plan;
mod tidy;

use std::collections::BTreeMap;
use std::sync::Arc;

use zonda_format::FormatError as _;
use zonda_hdf5::journal::{crosses_sectors, switch};
use zonda_hdf5::{File, FileAddr, HdfError, Space, TreeCommit};
use zonda_model::{NcError, VarId};
use zonda_storage::{Sidecars, WriteRange, has_no_room};
use zonda_trace::{Args, EventKind, span};

use self::ahead::Ends;
pub(super) use self::ahead::is_often;
use self::layout::lay_out;
use self::plan::CommitPlan;
use super::define::owned;
use super::objects::StoredObject;
use super::store::TreeBlocks;
use super::{Commits, EditedAtts, FileEnd, ObjectKey, Writing};
use crate::attribute::AttList;
use crate::fault::HdfResult;
use crate::file::{Nc4File, hdf};
use crate::files::{Files, ObjectAt};
use crate::model::{GroupId, Model};
use crate::tuning::COMMIT_AFTER_BYTES;
use crate::{Nc4Error, Result};

/// What fills gaps between new blocks.
const ZEROS: [u8; SECTOR_BYTES] = [0; SECTOR_BYTES];
/// Bytes of a sector, as [`zonda_hdf5::space::SECTOR`].
const SECTOR_BYTES: usize = 512;

/// Bytes that are written over: the first block of a header, or a word; and where.
type Switch = (FileAddr, Box<[u8]>);

/// A commit that is laid out, and perhaps written in part.
#[derive(Debug, Default)]
pub(crate) struct DecidedCommit {
    /// Blocks at new places.
    blocks: Vec<(FileAddr, Vec<u8>)>,
    /// Changes of chunk trees in place.
    trees: TreeCommit,
    /// Headers of attribute heaps that are written over, each within a sector.
    heaps: Vec<(FileAddr, Vec<u8>)>,
    /// First blocks of groups with new dimensions or types, by the depth of the groups. They are written first, the
    /// outer groups before the inner ones, because other objects may refer to what is new.
    defining: BTreeMap<usize, Vec<Switch>>,
    /// First blocks of headers that change.
    switches: Vec<Switch>,
    /// The switches are to be made all or none.
    all_or_none: bool,
    /// There is no superblock yet.
    is_first: bool,
}

impl Nc4File {
    /// Writes what was defined and put since the last commit, and syncs as the storage is set to.
    pub(crate) fn commit(&mut self) -> Result<()> {
        let done = self.commit_now();
        let is_full = |error: &Nc4Error| matches!(error.nc_error(), NcError::System(errno) if has_no_room(errno));
        // Layers keep data back, so that a full device may show only here.
        if done.as_ref().is_err_and(is_full) && self.release_spill() {
            self.commit_now()
        } else {
            done
        }
    }

    /// Takes spilled chunks off the device of the file, those of other files of the process too, so that the data get
    /// their room. Whether there were any.
    fn release_spill(&mut self) -> bool {
        if self.writing.as_ref().is_some_and(|writing| writing.is_in_team) {
            // What waits differs between ranks, and all of them have to do the same.
            return false;
        }
        let chunks = self.writing.as_mut().and_then(|writing| writing.stores.chunks.as_mut());
        match (chunks, &self.how.spills_beside) {
            (Some(chunks), _) => chunks.release_spill(),
            (None, Some(path)) => zonda_chunk::release_spills_on_device(path),
            (None, None) => false,
        }
    }

    fn commit_now(&mut self) -> Result<()> {
        let _span = span(EventKind::Commit, Args::default);
        self.write_changes()?;
        self.hdf5().storage().sync().map_err(|error| root_error(error.into()))?;
        if let Some(writing) = &mut self.writing {
            writing.stores.n_confirmed = writing.stores.n_confirmed.saturating_add(1);
            // Only now: if this failed, a put that is made again has to commit those before it, too.
            writing.stores.put_bytes = 0;
        }
        Ok(())
    }

    /// Commits if much was put since the last commit and a put begins another record. To be called before each put.
    /// Bytes decide, not time, so that the same calls give the same file.
    #[inline]
    pub(crate) fn commit_if_due(
        &mut self,
        group: GroupId,
        var: VarId,
        start: &[usize],
    ) -> Result<()> {
        let put = self.writing.as_ref().map_or(0, |writing| writing.stores.put_bytes);
        if put < COMMIT_AFTER_BYTES { Ok(()) } else { self.commit_records(group, var, start) }
    }

    #[cold]
    fn commit_records(&mut self, group: GroupId, var: VarId, start: &[usize]) -> Result<()> {
        let (model, var) = self.var(group, var)?;
        let begins_one = var.dims.iter().zip(start).any(|(dim, start)| {
            model.dim(*dim).is_some_and(|dim| dim.is_unlimited && *start as u64 >= dim.len)
        });
        if begins_one { self.commit() } else { Ok(()) }
    }

    /// Writes what was defined and put since the last commit.
    fn write_changes(&mut self) -> Result<()> {
        self.settle()?;
        let Nc4File { files, model, writing: Some(writing), .. } = self else {
            return Ok(());
        };
        let Some(model) = model.get_mut() else { return Ok(()) };
        let file = Arc::clone(files.main());
        complete(&file, writing)?;
        writing.gather(&file, model).map_err(|fault| fault.at(|| String::from("/")))?;
        // Strings that replace others change no header, but may move the end of the file.
        let heap = writing.heap.get_mut();
        let has_grown = heap.pending() > 0 || writing.space.end() > writing.file_end.said;
        if !writing.commits.changed.is_empty() || writing.is_new || has_grown {
            decide(files, &file, model, writing)?;
            complete(&file, writing)?;
        }
        Ok(())
    }
}

/// An error that concerns the whole file.
fn root_error(error: HdfError) -> Nc4Error {
    hdf(String::from("/"), error)
}

/// Lays a commit out.
fn decide(files: &Files, file: &Arc<File>, model: &mut Model, writing: &mut Writing) -> Result<()> {
    let plan = CommitPlan::make(files, model, writing)?;
    let (mut decided, written) = lay_out(plan, file, model, writing).map_err(root_error)?;
    if let Some(page) = writing.file_end.page {
        writing.space.round_end(page).map_err(root_error)?;
    }
    let TreeBlocks { nodes, mut in_place } = writing.stores.take_trees();
    decided.blocks.extend(nodes);
    let patches = std::mem::take(&mut in_place.patches).into_iter();
    decided.switches.extend(patches.map(|(at, bytes)| (at, bytes.into())));
    decided.trees = in_place;
    decided.is_first = writing.is_new;
    writing.commits.decided = Some(decided);
    for key in std::mem::take(&mut writing.commits.changed) {
        attributes_are_laid_out(model, key);
        let stamp = writing
            .stored
            .objects
            .get(&key)
            .and_then(StoredObject::att_list)
            .map(|list| list.stamp);
        if let Some(list) = edited_atts(model, key) {
            list.laid_out(stamp);
        }
    }
    writing.is_new = false;
    written.into_iter().for_each(|key| publish(model, writing, key));
    Ok(())
}

/// Notes that the file has the attributes of an object in the order that they have now.
pub(super) fn attributes_are_laid_out(model: &mut Model, key: ObjectKey) {
    if let Some(list) = edited_atts(model, key) {
        list.stored();
    }
}

fn edited_atts(model: &mut Model, key: ObjectKey) -> Option<&mut EditedAtts> {
    let details = match key {
        ObjectKey::Group(id) => model.group_mut(id).map(|group| &mut group.details),
        ObjectKey::Var(group, id) => model.var_mut(group, id).map(|var| &mut var.details),
        ObjectKey::Scale(_) | ObjectKey::Type(_) => None,
    };
    match details.and_then(owned).map(|of| &mut of.atts) {
        Some(Ok(AttList::Edited(list))) => Some(list),
        _ => None,
    }
}

/// Writes a commit that is laid out, from its beginning, even if an error stopped it before.
fn complete(file: &File, writing: &mut Writing) -> Result<()> {
    if writing.commits.decided.is_some() {
        finish(file, writing).map_err(root_error)?;
        writing.commits.decided = None;
        writing.commits.n_commits = writing.commits.n_commits.saturating_add(1);
        writing.space.committed();
    }
    Ok(())
}

/// Removes from the file what holds only until somebody writes to it: the list of free space, the image of
/// cached metadata, and the mark of a writer that died.
fn prepare(file: &File, writing: &mut Writing) -> HdfResult<()> {
    let storage = file.storage();
    if let Some(edit) = file.edit_extension()? {
        for (addr, bytes) in &edit.entries {
            storage.write_at(file.position(*addr), bytes)?;
        }
        storage.barrier()?;
        let changes = edit.switches.iter().map(|(addr, bytes)| (file.position(*addr), &**bytes));
        let superblock = file.position(FileAddr(0));
        switch(&**storage, writing.sidecars.as_deref(), superblock, changes)?;
        storage.barrier()?;
        file.extension_edited();
        edit.freed.into_iter().for_each(|(addr, len)| writing.space.free(addr, len));
    }
    if !writing.is_new && file.superblock().marked_open_for_writing() {
        file.write_superblock(writing.file_end.said)?;
        storage.barrier()?;
    }
    writing.commits.is_prepared = true;
    Ok(())
}

/// Writes a commit that is laid out: first what is at new places, then what leads to it.
fn finish(file: &File, writing: &mut Writing) -> HdfResult<()> {
    if !writing.commits.is_prepared {
        prepare(file, writing)?;
    }
    let Writing {
        commits, heap, space, file_end: FileEnd { said: end, page, .. }, sidecars, ..
    } = writing;
    let storage = file.storage();
    let heap = heap.get_mut();
    heap.commit(file, space)?;
    let Commits { decided: Some(decided), n_commits, .. } = commits else { return Ok(()) };
    write_blocks(file, decided, space)?;
    let put = |pieces: &[(FileAddr, Vec<u8>)]| {
        let mut all = pieces.iter();
        all.try_for_each(|(addr, bytes)| storage.write_at(file.position(*addr), bytes))
    };
    put(&decided.trees.appended)?;
    let base = file.position(FileAddr(0));
    let len = storage.len()?.saturating_sub(base);
    let ends = Ends { used: space.end(), said: *end, len };
    let mut next = ends.next(*n_commits, page.unwrap_or(1));
    let set_len = |end: u64| storage.set_len(file.position(FileAddr(end)));
    if next.len > len && set_len(next.len).is_err() {
        // A limit of the process (`ulimit -f`) or of the file system: only what is used has to fit.
        next = ends.without_ahead();
        if next.len > len {
            set_len(next.len)?;
        }
    }
    storage.barrier()?;
    if decided.is_first || next.said > *end {
        file.write_superblock(next.said)?;
        storage.barrier()?;
        *end = next.said;
    }
    let has_words = !decided.trees.switches.is_empty() || !decided.heaps.is_empty();
    if has_words || heap.hides_some() {
        heap.show(file)?;
        put(&decided.trees.switches)?;
        put(&decided.heaps)?;
        storage.barrier()?;
    }
    write_switches(file, decided, sidecars.as_deref())?;
    file.forget();
    Ok(())
}

/// Writes what goes to fresh space, in the order of addresses. In a new file zeros fill the gaps of less than a sector that
/// nobody uses, which have none yet: then all of it is one write.
fn write_blocks(file: &File, decided: &mut DecidedCommit, space: &Space) -> HdfResult<()> {
    zonda_runtime::sort::sort_by_key(&mut decided.blocks, |(addr, _)| *addr);
    let mut ranges = Vec::with_capacity(decided.blocks.len().saturating_mul(2));
    let mut blocks = decided.blocks.iter().peekable();
    while let Some((addr, data)) = blocks.next() {
        ranges.push(WriteRange { at: file.position(*addr), data });
        let Some((next, _)) = blocks.peek().filter(|_| decided.is_first) else { continue };
        let end = addr.0.saturating_add(data.len() as u64);
        let padded = space.padded(addr.0, end);
        let is_nobodys = next.0 >= padded && space.is_free(padded, next.0.saturating_sub(padded));
        let gap = usize::try_from(next.0.saturating_sub(end)).ok();
        let gap = gap.filter(|_| is_nobodys).and_then(|gap| ZEROS.get(..gap));
        if let Some(zeros) = gap.filter(|zeros| !zeros.is_empty()) {
            ranges.push(WriteRange { at: file.position(FileAddr(end)), data: zeros });
        }
    }
    Ok(file.storage().write_ranges(&ranges)?)
}

/// Writes over the first blocks of headers that change: by a journal where they are to change all at once
/// or one of them does not lie within a sector.
fn write_switches(
    file: &File,
    decided: &DecidedCommit,
    sidecars: Option<&dyn Sidecars>,
) -> HdfResult<()> {
    let storage = file.storage();
    let at = |(addr, bytes): &'_ Switch| (file.position(*addr), bytes.len() as u64);
    let mut all = decided.defining.values().flatten().chain(&decided.switches);
    if decided.all_or_none || all.any(|one| crosses_sectors(at(one).0, at(one).1)) {
        let all = decided.defining.values().flatten().chain(&decided.switches);
        let changes = all.map(|(addr, bytes)| (file.position(*addr), &**bytes));
        switch(&**storage, sidecars, file.position(FileAddr(0)), changes)?;
    } else {
        let write_over = |switches: &[Switch]| {
            let mut all = switches.iter();
            all.try_for_each(|(addr, bytes)| storage.write_at(file.position(*addr), bytes))
        };
        for switches in decided.defining.values() {
            write_over(switches)?;
            storage.barrier()?;
        }
        write_over(&decided.switches)?;
    }
    Ok(())
}

/// Notes in the model where an object is.
fn publish(model: &mut Model, writing: &Writing, key: ObjectKey) {
    let Some(stored) = writing.stored.objects.get(&key) else { return };
    let at = ObjectAt { file: 0, addr: stored.space.addr };
    match key {
        ObjectKey::Group(id) => {
            if let Some(group) = model.group_mut(id) {
                group.at = at;
                if let Some(details) = owned(&mut group.details) {
                    details.at = at;
                }
            }
        }
        ObjectKey::Var(group, id) => {
            if let Some(var) = model.var_mut(group, id) {
                var.at = at;
                if let Some(details) = owned(&mut var.details) {
                    details.at = at;
                }
            }
        }
        ObjectKey::Scale(_) | ObjectKey::Type(_) => {}
    }
    if let Some(dim) = writing.stored.scales.dim_of.get(&key).and_then(|id| model.dim_mut(*id)) {
        dim.at = Some(at);
    }
}

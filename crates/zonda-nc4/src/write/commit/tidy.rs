//! At close, definitions are moved from the end of a file into holes, and the file is cut.
//!
//! Each commit that changes a list of links or attributes lays it out anew, in space that the last two commits do not
//! use. So these lists end up behind holes of their own size. A close moves them into the holes, by a commit like any
//! other, and cuts off the free space at the end. Only space that definitions gave back is used for that; space that
//! data gave back still waits, for readers.
//!
//! Heaps of attributes that hold removed ones are laid out anew, too, so that no program finds these in the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use zonda_hdf5::usage::FileUsage;
use zonda_hdf5::{File, FileAddr, Space};

use super::super::objects::{Dense, HeaderBlock, Outside, StoredObject};
use super::super::{ObjectKey, Writing};
use crate::file::Nc4File;
use crate::tuning::{TIDY_ROUNDS, TIDY_WALK_BYTES};
use crate::{Result, hidden_atts};

impl Nc4File {
    /// Moves definitions from the end of the file into holes, and cuts the file. Everything must be committed.
    ///
    /// # Errors
    /// Those of a commit.
    pub(crate) fn tidy(&mut self) -> Result<()> {
        for _ in 0..TIDY_ROUNDS {
            let Some(writing) = self.writing.as_deref_mut() else { return Ok(()) };
            let is_whole = !writing.is_new && writing.commits.decided.is_none();
            let is_changed = !writing.commits.changed.is_empty() || writing.commits.n_commits == 0;
            if !is_whole
                || is_changed
                || writing.file_end.is_kept
                || writing.file_end.page.is_some()
            {
                return Ok(());
            }
            writing.space.release_definitions();
            writing.space.cut_end();
            find_free(self.files.main(), writing);
            let mut moving = find(writing);
            let with_dead = movable(writing).filter(|(_, stored)| has_dead(stored));
            let with_dead: Vec<_> = with_dead.map(|(key, _)| *key).collect();
            // What is laid out anew for that may come to lie at the end; the next round moves it.
            let goes_on = !with_dead.is_empty();
            moving.extend(with_dead);
            if moving.is_empty() {
                return Ok(());
            }
            let end = writing.space.end();
            writing.commits.changed.extend(moving.iter().copied());
            writing.commits.tidying = moving.into_iter().collect();
            writing.space.take_lowest(true);
            let done = self.commit();
            if let Some(writing) = self.writing.as_deref_mut() {
                writing.space.take_lowest(false);
                writing.commits.tidying.clear();
                writing.space.release_definitions();
                writing.space.cut_end();
                done?;
                if writing.space.end() >= end && !goes_on {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Finds the free space that earlier writers left in a file that was opened, if something can move there. Only in files
/// whose object references are all netCDF's: other references may lead to objects that are not found.
fn find_free(file: &Arc<File>, writing: &mut Writing) {
    let begin = file.position(FileAddr(0));
    let may_look = writing.file_end.found.is_some_and(|end| end <= TIDY_WALK_BYTES);
    if !may_look || !writing.owns_references || !writing.stored.objects.values().any(has_moves) {
        return;
    }
    let Some(found_end) = writing.file_end.found.take() else { return };
    let usage = FileUsage::of(file);
    if usage.is_partial || !usage.faults.is_empty() || !usage.overlaps.is_empty() {
        return;
    }
    // A commit that was interrupted may have left objects that only references lead to.
    let is_known = |addr: FileAddr| usage.objects.contains_key(&addr);
    let all_known = |addr: &FileAddr| {
        let referred = hidden_atts::referred(file, *addr);
        referred.is_ok_and(|referred| referred.into_iter().all(is_known))
    };
    // In the order of addresses, so that ranks of a team read alike.
    let mut objects: Vec<&FileAddr> = usage.objects.keys().collect();
    zonda_runtime::sort::sort(&mut objects);
    if !objects.into_iter().all(all_known) {
        return;
    }
    for (at, len) in usage.gaps() {
        let at = at.saturating_sub(begin);
        let behind = at.saturating_add(len).min(found_end);
        let at = at.checked_next_multiple_of(8).unwrap_or(behind);
        writing.space.found_free(at, behind.saturating_sub(at));
    }
}

fn has_moves(stored: &StoredObject) -> bool {
    moves(stored).next().is_some()
}

/// Whether the heap of its attributes holds removed ones.
fn has_dead(stored: &StoredObject) -> bool {
    stored.att_list().is_some_and(|list| list.atts.has_dead())
}

/// Objects whose further blocks and lists are all known.
fn movable(writing: &Writing) -> impl Iterator<Item = (&ObjectKey, &StoredObject)> {
    writing.stored.objects.iter().filter(|(key, stored)| match key {
        ObjectKey::Group(id) => writing.stored.links.contains_key(id) && !stored.has_symbols,
        _ => true,
    })
}

/// Finds objects whose lists and further blocks are at the end of the file, and have room before it.
fn find(writing: &Writing) -> Vec<ObjectKey> {
    let mut by_end = BTreeMap::new();
    for (key, stored) in movable(writing) {
        for (addr, len) in moves(stored) {
            by_end.insert(writing.space.padded(addr.0, addr.0.saturating_add(len)), (addr, *key));
        }
    }
    let (mut found, mut space) = (Vec::new(), writing.space.clone());
    space.take_lowest(true);
    let mut end = writing.space.padded(0, space.end());
    end = space.padded(end, end);
    while let Some(at) = space.free_up_to(end).or_else(|| {
        let (addr, key) = by_end.get(&end).copied()?;
        let stored = writing.stored.objects.get(&key)?;
        (found.contains(&key) || fits_before(&mut space, stored, end)).then(|| {
            found.push(key);
            addr.0
        })
    }) {
        if at >= end {
            break;
        }
        end = at;
    }
    found
}

/// Takes room for the lists and further blocks of an object, if all of them come to lie before `end`.
fn fits_before(space: &mut Space, stored: &StoredObject, end: u64) -> bool {
    let mut tried = space.clone();
    let mut all = moves(stored);
    let fits =
        all.all(|(_, len)| tried.alloc(len).is_ok_and(|FileAddr(at)| at.saturating_add(len) < end));
    if fits {
        *space = tried;
    }
    fits
}

/// The lists and further blocks of an object that a commit can move.
fn moves(stored: &StoredObject) -> impl Iterator<Item = (FileAddr, u64)> {
    let blocks = stored.continuation.iter();
    let blocks = blocks.map(HeaderBlock::extent);
    let lists = stored.dense.iter().filter(|dense| !matches!(dense.what, Outside::Symbols(_)));
    blocks.chain(lists.flat_map(Dense::extents))
}

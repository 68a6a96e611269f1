//! From `ncid` to the open file behind it.
//!
//! An `ncid` is `slot << 16 | group`, slots counting from 1, as the reference lays it out: programs
//! print them, and the group half must be free for netCDF-4. Lookups take no lock; the slot table is
//! zero-initialised static memory that costs nothing until used.

use std::ffi::{CString, c_int};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arc_swap::{ArcSwapOption, Guard};
use zonda::{Dataset, GroupId, Meta, NcError, VarId, VarRef};

use crate::boundary::{Failure, works_on};

/// Slots 1 to 65535; slot 0 stays empty so that an `ncid` of zero is never valid.
pub(crate) const N_SLOTS: usize = 1 << 16;

static SLOTS: [ArcSwapOption<OpenFile>; N_SLOTS] =
    [const { ArcSwapOption::const_empty() }; N_SLOTS];
/// A bit for each slot that has an owner: a file in [`SLOTS`], or one of a program's own format, which
/// is kept in `user_format` so that lookups of ordinary files need not tell the two apart.
static TAKEN: [AtomicU64; N_SLOTS / 64] = [const { AtomicU64::new(0) }; N_SLOTS / 64];
/// Highest slot ever used plus one: what a walk over all open files has to look at.
static HIGH_WATER: AtomicUsize = AtomicUsize::new(1);
/// The mark of the thread that took the first slot.
static FIRST: AtomicUsize = AtomicUsize::new(0);
/// From when on another thread has taken slots: the word of [`TAKEN`] where to look for the next.
static ROUND: AtomicUsize = AtomicUsize::new(LOWEST);
const LOWEST: usize = usize::MAX;

/// A dataset as C opened it.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// The dataset.
    pub(crate) dataset: Dataset,
    /// Mode flags as `nc_inq_format_extended` reports them.
    pub(crate) mode: c_int,
    /// Path as given, as `nc_inq_path` reports it.
    pub(crate) path: CString,
    /// Path as messages name it.
    pub(crate) name: Arc<Path>,
    /// Caller memory behind an in-memory file, handed back by `nc_close_memio`.
    pub(crate) memory: Option<Arc<crate::mem::MallocMemory>>,
    /// Whether that memory is written to `path` when the file is closed (`NC_PERSIST`).
    pub(crate) persists_memory: bool,
}

impl OpenFile {
    /// A dataset that C has opened by `path`.
    pub(crate) fn new(dataset: Dataset, mode: c_int, path: CString) -> OpenFile {
        let name = Arc::from(dataset.path());
        OpenFile { dataset, mode, path, name, memory: None, persists_memory: false }
    }

    /// One that lies in `memory`, which is written to its path in the end where it `persists`.
    pub(crate) fn in_memory(
        self,
        memory: Option<Arc<crate::mem::MallocMemory>>,
        persists: bool,
    ) -> OpenFile {
        OpenFile { memory, persists_memory: persists, ..self }
    }
}

/// A file and a group of it, found by an `ncid`; keeps the file alive while a call uses it, even if
/// another thread closes it.
pub(crate) struct FileRef {
    file: Guard<Option<Arc<OpenFile>>>,
    /// The group that the `ncid` names.
    pub(crate) group: GroupId,
}

impl FileRef {
    /// A variable of the group.
    #[inline]
    pub(crate) fn var(&self, varid: c_int) -> VarRef {
        VarRef { group: self.group, var: VarId(varid) }
    }

    /// Shows the definitions of the group to `f`.
    #[inline]
    pub(crate) fn meta<R>(&self, f: impl FnOnce(&Meta<'_>) -> R) -> Result<R, Failure> {
        Ok(self.dataset.in_group(self.group, f)?)
    }

    /// The `ncid` of another group of this file.
    pub(crate) fn id_of(&self, ncid: c_int, group: GroupId) -> c_int {
        ncid & !0xffff | c_int::from(group.0)
    }
}

impl Deref for FileRef {
    type Target = OpenFile;
    fn deref(&self) -> &OpenFile {
        match &*self.file {
            Some(file) => file,
            // `file` hands out no reference to an empty slot.
            None => unreachable!("a FileRef is made from an occupied slot only"),
        }
    }
}

/// The file and group of `ncid`. What the call fails at from now on names the file.
///
/// # Errors
/// `NC_EBADID` when nothing is open under that number, or its group half names no group.
#[inline]
pub(crate) fn file(ncid: c_int) -> Result<FileRef, NcError> {
    works_on(slot_of(ncid));
    unnamed(ncid)
}

/// [`file`] for calls of some nanoseconds, which say by themselves what they were about when they fail.
///
/// # Errors
/// As [`file`].
#[inline]
pub(crate) fn unnamed(ncid: c_int) -> Result<FileRef, NcError> {
    let found = look_up(ncid)?;
    if found.group == GroupId::ROOT || found.dataset.has_group(found.group) {
        Ok(found)
    } else {
        Err(NcError::BadId)
    }
}

/// The file of `ncid`, for calls that do not look at its group: as in the reference, a netCDF-4 file
/// is then found under ids that name no group of it.
///
/// # Errors
/// `NC_EBADID` when nothing is open under that number.
#[inline]
pub(crate) fn any_group(ncid: c_int) -> Result<FileRef, NcError> {
    works_on(slot_of(ncid));
    look_up(ncid)
}

#[inline]
fn look_up(ncid: c_int) -> Result<FileRef, NcError> {
    let id = ncid.cast_unsigned();
    let slot = slot_of(ncid);
    if zonda_trace::on() {
        crate::trace::works_on(slot);
    }
    let file = SLOTS[slot].load();
    let group = GroupId((id & 0xffff) as u16);
    match &*file {
        Some(open) if open.dataset.is_out_of_reach() => Err(NcError::System(libc::ECHILD)),
        Some(open) if group == GroupId::ROOT || open.dataset.capabilities().groups => {
            Ok(FileRef { file, group })
        }
        _ => Err(NcError::BadId),
    }
}

/// How messages name the file in a slot.
#[cold]
pub(crate) fn path_at(slot: usize) -> Option<Arc<Path>> {
    let file = SLOTS.get(slot)?.load_full()?;
    Some(Arc::clone(&file.name))
}

/// A slot of its own for a file, and the `ncid` of the file.
///
/// It is the lowest free one, as in the reference, as long as one thread opens all files. After that
/// slots are taken round and round: a thread that goes on with the number of a file that another one
/// closed gets `NC_EBADID`, not what is in a file that was opened since.
///
/// # Errors
/// `NC_ENFILE` when all slots are taken.
pub(crate) fn take_slot() -> Result<(usize, c_int), NcError> {
    let thread = thread_mark();
    let first = FIRST.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err_and(|first| first != thread) {
        // Not the first word: a number of it may have been given back just now.
        let _was_there = ROUND.compare_exchange(LOWEST, 1, Ordering::Relaxed, Ordering::Relaxed);
    }
    let slot = match ROUND.load(Ordering::Relaxed) {
        LOWEST => (0..TAKEN.len()).find_map(take_bit),
        _ => {
            // Numbers of the other half are negative, which some programs take for "not open".
            let half = TAKEN.len() / 2;
            let first = ROUND.fetch_add(1, Ordering::Relaxed);
            let round = (0..half).map(|n| first.wrapping_add(n) % half);
            round.chain(half..TAKEN.len()).find_map(take_bit)
        }
    };
    let slot = slot.ok_or(NcError::NFile)?;
    let id = u32::try_from(slot << 16).map_err(|_| NcError::NFile)?;
    Ok((slot, id.cast_signed()))
}

/// What tells this thread from others that live: where its own memory is. The standard library's id would be
/// allocated for a thread of C.
fn thread_mark() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

/// The lowest free slot of a word of [`TAKEN`].
fn take_bit(index: usize) -> Option<usize> {
    let word = TAKEN.get(index)?;
    // Slot 0 belongs to nobody.
    let never = u64::from(index == 0);
    let mut seen = word.load(Ordering::Relaxed);
    while (seen | never) != u64::MAX {
        let bit = (seen | never).trailing_ones() as usize;
        seen = word.fetch_or(1 << bit, Ordering::AcqRel);
        if seen & (1 << bit) == 0 {
            return Some(index * 64 + bit);
        }
    }
    None
}

/// Gives a slot back, once nothing is found in it any more.
pub(crate) fn free_slot(slot: usize) {
    TAKEN[slot / 64].fetch_and(!(1 << (slot % 64)), Ordering::AcqRel);
}

/// Slot of an `ncid`, whoever owns it.
#[inline]
pub(crate) fn slot_of(ncid: c_int) -> usize {
    (ncid.cast_unsigned() >> 16) as usize
}

/// Enters a file into the table and returns its `ncid`.
///
/// # Errors
/// `NC_ENFILE` when all slots are taken.
pub(crate) fn insert(file: OpenFile) -> Result<c_int, NcError> {
    let (slot, ncid) = take_slot()?;
    crate::trace::opened(slot, &file);
    SLOTS[slot].store(Some(Arc::new(file)));
    HIGH_WATER.fetch_max(slot + 1, Ordering::AcqRel);
    Ok(ncid)
}

/// Takes a file out of the table; later calls with its `ncid` get `NC_EBADID`.
///
/// Of several threads closing one file, one gets it.
///
/// # Errors
/// `NC_EBADID` when nothing is open under that number.
pub(crate) fn remove(ncid: c_int) -> Result<Arc<OpenFile>, NcError> {
    drop(any_group(ncid)?);
    let slot = slot_of(ncid);
    let file = SLOTS[slot].swap(None).ok_or(NcError::BadId)?;
    // Another thread may open a file here at once: what this call fails at from now on names itself.
    works_on(0);
    free_slot(slot);
    Ok(file)
}

/// Before a file is closed: in a forked child that can do nothing with it, its number is given back.
///
/// # Errors
/// `ECHILD` for such a file.
pub(crate) fn unless_out_of_reach(ncid: c_int) -> Result<(), NcError> {
    let slot = slot_of(ncid);
    let lost = |file: &Arc<OpenFile>| file.dataset.is_out_of_reach();
    if !SLOTS[slot].load().as_ref().is_some_and(lost) {
        return Ok(());
    }
    if let Some(file) = SLOTS[slot].swap(None) {
        works_on(0);
        // To drop it would be to wait for its locks.
        std::mem::forget(file);
        free_slot(slot);
    }
    Err(NcError::System(libc::ECHILD))
}

/// Whether any file is open. Takes no memory.
pub(crate) fn is_any_open() -> bool {
    let high = HIGH_WATER.load(Ordering::Acquire).min(N_SLOTS);
    SLOTS.iter().take(high).any(|slot| slot.load().is_some())
}

/// Every open file, for what concerns all of them: flushing at exit, fork.
pub(crate) fn all() -> Vec<Arc<OpenFile>> {
    let high = HIGH_WATER.load(Ordering::Acquire).min(N_SLOTS);
    SLOTS[..high].iter().filter_map(ArcSwapOption::load_full).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_file() -> OpenFile {
        let storage = Arc::new(zonda::storage::backend::Memory::new());
        let dataset = Dataset::create_in(storage, Path::new("test"), &Default::default()).unwrap();
        OpenFile::new(dataset, 0, CString::default())
    }

    /// One test, because the table is one for the process.
    #[test]
    fn slots_are_taken_from_the_lowest_and_come_free() {
        let ids: Vec<c_int> = (0..4).map(|_| insert(open_file()).unwrap()).collect();
        assert_eq!(ids, [1 << 16, 2 << 16, 3 << 16, 4 << 16]);
        assert_eq!(all().len(), 4);
        for bad in [0, -1, ids[0] + 1, 5 << 16, c_int::MIN, c_int::MAX] {
            assert_eq!(file(bad).err(), Some(NcError::BadId), "{bad:#x}");
            assert_eq!(remove(bad).err(), Some(NcError::BadId), "{bad:#x}");
        }
        let used = file(ids[1]).unwrap();
        drop(remove(ids[1]).unwrap());
        assert!(used.dataset.in_define_mode(), "a call that is under way keeps its file");
        drop(used);
        assert_eq!(file(ids[1]).err(), Some(NcError::BadId));
        assert_eq!(insert(open_file()).unwrap(), ids[1]);

        // Once another thread opens files, numbers are not used again soon.
        let close = |id| drop(remove(id).unwrap());
        let other = std::thread::scope(|scope| scope.spawn(|| insert(open_file()).unwrap()).join());
        close(other.unwrap());
        let mut seen: Vec<c_int> = (0..500)
            .map(|_| {
                let id = insert(open_file()).unwrap();
                close(id);
                id
            })
            .collect();
        assert!(seen.iter().all(|id| *id > 0 && !ids.contains(id)));
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 500);

        let winners: usize = std::thread::scope(|scope| {
            let close = || usize::from(remove(ids[0]).is_ok());
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(close)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(winners, 1, "of several closes one succeeds");
        for id in &ids[1..] {
            remove(*id).unwrap();
        }
        assert!(all().is_empty());
    }
}

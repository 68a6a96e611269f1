//! From `ncid` to the open file behind it.
//!
//! An `ncid` is `slot << 16 | group`, slots counting from 1, as the reference lays it out: programs
//! print them, and the group half must be free for netCDF-4. Lookups take no lock; the slot table is
//! zero-initialised static memory that costs nothing until used.

use std::ffi::{CStr, CString, c_int};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arc_swap::{ArcSwapOption, Guard};
use zonda::{Dataset, GroupId, Meta, NcError, VarId, VarRef};
use zonda_user_format::NcDispatch;

use crate::current_call::note_file;
use crate::failure::CallFailure;
use crate::trace::{self, files::N_SLOTS};

/// Slots 1 to 65535; slot 0 stays empty so that an `ncid` of zero is never valid.
static SLOTS: [ArcSwapOption<SlotEntry>; N_SLOTS] =
    [const { ArcSwapOption::const_empty() }; N_SLOTS];
/// Whether a file of a program's own format was ever opened. In most programs none is, and then this test
/// alone says that a call is not about one.
static HAS_USER_FILES: AtomicBool = AtomicBool::new(false);
/// A bit for each slot that is in use.
static SLOTS_IN_USE: [AtomicU64; N_SLOTS / 64] = [const { AtomicU64::new(0) }; N_SLOTS / 64];
/// Highest slot ever used plus one: so far a walk over all open files has to go.
static HIGH_WATER: AtomicUsize = AtomicUsize::new(1);
/// The [`thread_mark`] of the thread that took the first slot.
static FIRST_THREAD: AtomicUsize = AtomicUsize::new(0);
/// The word of [`SLOTS_IN_USE`] where the search for the next slot begins, once a second thread has opened
/// a file; before that [`ONE_THREAD`].
static NEXT_WORD: AtomicUsize = AtomicUsize::new(ONE_THREAD);
/// One thread has opened all files so far: slots are taken from the lowest.
const ONE_THREAD: usize = usize::MAX;

/// What an `ncid` stands for. An entry never changes; its slot gets another one.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // nearly all are datasets, and a lookup follows one pointer less
enum SlotEntry {
    Dataset(OpenDataset),
    User(UserFile),
}

/// A file of a program's own format.
#[derive(Debug)]
pub(crate) struct UserFile {
    /// The table that answers for it.
    pub(crate) table: &'static NcDispatch,
    /// Path as given.
    pub(crate) path: Arc<CStr>,
}

/// A dataset as C opened it.
#[derive(Debug)]
pub(crate) struct OpenDataset {
    /// The dataset.
    pub(crate) dataset: Dataset,
    /// Mode flags as `nc_inq_format_extended` reports them.
    pub(crate) mode: c_int,
    /// Path as given, as `nc_inq_path` reports it.
    pub(crate) path: CString,
    /// Path as messages name it.
    pub(crate) name: Arc<Path>,
    /// Caller memory behind an in-memory file, handed back by `nc_close_memio`.
    pub(crate) memory: Option<Arc<crate::malloc_memory::MallocMemory>>,
    /// Whether that memory is written to `path` when the file is closed (`NC_PERSIST`).
    pub(crate) persists_memory: bool,
}

impl OpenDataset {
    /// A dataset that C has opened by `path`.
    pub(crate) fn new(dataset: Dataset, mode: c_int, path: CString) -> OpenDataset {
        let name = Arc::from(dataset.path());
        OpenDataset { dataset, mode, path, name, memory: None, persists_memory: false }
    }

    /// A dataset that lies in `memory`, which is written to its path at close if it `persists`.
    pub(crate) fn in_memory(
        self,
        memory: Option<Arc<crate::malloc_memory::MallocMemory>>,
        persists: bool,
    ) -> OpenDataset {
        OpenDataset { memory, persists_memory: persists, ..self }
    }
}

/// A file and a group of it, found by an `ncid`; keeps the file alive while a call uses it, even if
/// another thread closes it.
pub(crate) struct FileRef {
    file: Guard<Option<Arc<SlotEntry>>>,
    /// The group that the `ncid` names.
    pub(crate) group: GroupId,
}

impl FileRef {
    /// A variable of the group.
    #[inline]
    pub(crate) fn var(&self, varid: c_int) -> VarRef {
        VarRef { group: self.group, var: VarId(varid) }
    }

    /// Calls `f` with the definitions of the group.
    #[inline]
    pub(crate) fn meta<R>(&self, f: impl FnOnce(&Meta<'_>) -> R) -> Result<R, CallFailure> {
        Ok(self.dataset.in_group(self.group, f)?)
    }

    /// The `ncid` of another group of this file.
    pub(crate) fn id_of(&self, ncid: c_int, group: GroupId) -> c_int {
        ncid & !0xffff | c_int::from(group.0)
    }
}

impl Deref for FileRef {
    type Target = OpenDataset;
    #[inline]
    fn deref(&self) -> &OpenDataset {
        match self.file.as_deref() {
            Some(SlotEntry::Dataset(file)) => file,
            // SAFETY: `look_up`, which alone makes a `FileRef`, has found a dataset in there, and an
            // entry does not change. That saves each call a second test of the kind.
            _ => unsafe { std::hint::unreachable_unchecked() },
        }
    }
}

/// A dataset that outlives a call, or that is no longer in the table.
#[derive(Clone)]
pub(crate) struct SharedFile(Arc<SlotEntry>);

impl SharedFile {
    fn new(entry: Arc<SlotEntry>) -> Option<SharedFile> {
        matches!(*entry, SlotEntry::Dataset(_)).then_some(SharedFile(entry))
    }

    /// Whether both are one open file.
    pub(crate) fn is(&self, other: &SharedFile) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for SharedFile {
    type Target = OpenDataset;
    fn deref(&self) -> &OpenDataset {
        match &*self.0 {
            SlotEntry::Dataset(file) => file,
            SlotEntry::User(_) => unreachable!("a SharedFile is made of a dataset only"),
        }
    }
}

/// Why there is no file for an `ncid`: `NC_EBADID`, and `ECHILD` for a file that a forked child cannot reach.
///
/// One byte: a longer error would share bytes with a [`FileRef`] in a result, which would then be read in other pieces than it was written in. The
/// processor waits some 5 ns for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotOpen {
    Unknown,
    OutOfReach,
}

impl From<NotOpen> for NcError {
    #[cold]
    fn from(why: NotOpen) -> NcError {
        match why {
            NotOpen::Unknown => NcError::BadId,
            NotOpen::OutOfReach => NcError::System(libc::ECHILD),
        }
    }
}

impl From<NotOpen> for CallFailure {
    #[cold]
    fn from(why: NotOpen) -> CallFailure {
        NcError::from(why).into()
    }
}

/// The file and group of `ncid`. A failure of the call from now on names the file.
///
/// # Errors
/// `NC_EBADID` when nothing is open under that number, or its group half names no group.
#[inline(always)] // where it is not, the thread's number of calls is looked for twice
pub(crate) fn file(ncid: c_int) -> Result<FileRef, NotOpen> {
    note_file(slot_of(ncid));
    unnamed(ncid)
}

/// [`file`] for calls of some nanoseconds, which note the file themselves when they fail.
///
/// # Errors
/// As [`file`].
#[inline(always)] // a result in memory is read in other pieces than it was written in, which the processor waits for
pub(crate) fn unnamed(ncid: c_int) -> Result<FileRef, NotOpen> {
    let found = look_up(ncid)?;
    if found.group == GroupId::ROOT || found.dataset.has_group(found.group) {
        Ok(found)
    } else {
        Err(NotOpen::Unknown)
    }
}

/// The file of `ncid`, for calls that do not look at its group: as in the reference, a netCDF-4 file
/// is then found under ids that name no group of it.
///
/// # Errors
/// `NC_EBADID` when nothing is open under that number.
#[inline(always)]
pub(crate) fn any_group(ncid: c_int) -> Result<FileRef, NotOpen> {
    note_file(slot_of(ncid));
    look_up(ncid)
}

#[inline(always)]
fn look_up(ncid: c_int) -> Result<FileRef, NotOpen> {
    let id = ncid.cast_unsigned();
    let slot = slot_of(ncid);
    if zonda_trace::on() {
        trace::files::set_current(slot);
    }
    let file = SLOTS[slot].load();
    let group = GroupId((id & 0xffff) as u16);
    match file.as_deref() {
        Some(SlotEntry::Dataset(open)) if open.dataset.is_out_of_reach() => {
            Err(NotOpen::OutOfReach)
        }
        Some(SlotEntry::Dataset(open))
            if group == GroupId::ROOT || open.dataset.capabilities().groups =>
        {
            Ok(FileRef { file, group })
        }
        _ => Err(NotOpen::Unknown),
    }
}

/// Calls `f` with the file of a program's own format that `ncid` stands for; `None` if it stands for another
/// file.
#[inline(always)]
pub(crate) fn user_file<R>(ncid: c_int, f: impl FnOnce(&UserFile) -> R) -> Option<R> {
    if HAS_USER_FILES.load(Ordering::Relaxed) { find_user_file(ncid, f) } else { None }
}

#[cold]
fn find_user_file<R>(ncid: c_int, f: impl FnOnce(&UserFile) -> R) -> Option<R> {
    match SLOTS[slot_of(ncid)].load().as_deref() {
        // The group half is for the table, if its format has groups.
        Some(SlotEntry::User(file))
            if ncid >= 0 && (ncid & 0xffff == 0 || file.table.has_groups()) =>
        {
            Some(f(file))
        }
        _ => None,
    }
}

/// How messages name the file in a slot.
#[cold]
pub(crate) fn path_at(slot: usize) -> Option<Arc<Path>> {
    let file = SharedFile::new(SLOTS.get(slot)?.load_full()?)?;
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
fn take_slot() -> Result<(usize, c_int), NcError> {
    let thread = thread_mark();
    let first = FIRST_THREAD.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err_and(|first| first != thread) {
        // Not from the first word, which may have a slot that was freed just now.
        let _was_set =
            NEXT_WORD.compare_exchange(ONE_THREAD, 1, Ordering::Relaxed, Ordering::Relaxed);
    }
    let slot = match NEXT_WORD.load(Ordering::Relaxed) {
        ONE_THREAD => (0..SLOTS_IN_USE.len()).find_map(take_bit),
        _ => {
            // Numbers of the other half are negative, which some programs take for "not open".
            let half = SLOTS_IN_USE.len() / 2;
            let first = NEXT_WORD.fetch_add(1, Ordering::Relaxed);
            let round = (0..half).map(|n| first.wrapping_add(n) % half);
            round.chain(half..SLOTS_IN_USE.len()).find_map(take_bit)
        }
    };
    let slot = slot.ok_or(NcError::NFile)?;
    let id = u32::try_from(slot << 16).map_err(|_| NcError::NFile)?;
    Ok((slot, id.cast_signed()))
}

/// A number that no other living thread has: the address of its thread-local memory. The standard library's
/// id would be allocated for a thread of C.
fn thread_mark() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

/// The lowest free slot of a word of [`SLOTS_IN_USE`].
fn take_bit(index: usize) -> Option<usize> {
    let word = SLOTS_IN_USE.get(index)?;
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

/// Files that were closed so far. What is known of a number may be out of date where another one was closed since.
static N_CLOSED: AtomicUsize = AtomicUsize::new(0);

/// How many files were closed so far.
#[inline(always)]
pub(crate) fn n_closed() -> usize {
    N_CLOSED.load(Ordering::Acquire)
}

/// Frees a slot that is empty.
fn free_slot(slot: usize) {
    N_CLOSED.fetch_add(1, Ordering::AcqRel);
    SLOTS_IN_USE[slot / 64].fetch_and(!(1 << (slot % 64)), Ordering::AcqRel);
}

/// Slot of an `ncid`, whether or not a file is there.
#[inline]
pub(crate) fn slot_of(ncid: c_int) -> usize {
    (ncid.cast_unsigned() >> 16) as usize
}

/// Enters a file into the table and returns its `ncid`.
///
/// # Errors
/// `NC_ENFILE` when all slots are taken.
pub(crate) fn insert(file: OpenDataset) -> Result<c_int, NcError> {
    let (slot, ncid) = take_slot()?;
    trace::files::note_opened(slot, file.dataset.path());
    enter(slot, SlotEntry::Dataset(file));
    Ok(ncid)
}

/// [`insert`] for a file of a program's own format.
///
/// # Errors
/// `NC_ENFILE` when all slots are taken.
pub(crate) fn insert_user_file(file: UserFile) -> Result<c_int, NcError> {
    let (slot, ncid) = take_slot()?;
    HAS_USER_FILES.store(true, Ordering::Relaxed);
    enter(slot, SlotEntry::User(file));
    Ok(ncid)
}

fn enter(slot: usize, entry: SlotEntry) {
    SLOTS[slot].store(Some(Arc::new(entry)));
    HIGH_WATER.fetch_max(slot + 1, Ordering::AcqRel);
}

/// Takes an entry out of its slot; of several threads that do, one gets it, and none gets what was
/// opened there since.
fn take_out(slot: usize, entry: Guard<Option<Arc<SlotEntry>>>) -> Option<Arc<SlotEntry>> {
    let before = SLOTS[slot].compare_and_swap(&entry, None);
    let taken = Guard::into_inner(entry)?;
    if !before.as_ref().is_some_and(|before| Arc::ptr_eq(before, &taken)) {
        return None;
    }
    // Another thread may open a file here at once, which a failure of this call must not name.
    note_file(0);
    free_slot(slot);
    Some(taken)
}

/// Takes a file out of the table; later calls with its `ncid` get `NC_EBADID`.
///
/// Of several threads closing one file, one gets it.
///
/// # Errors
/// `NC_EBADID` when nothing is open under that number.
pub(crate) fn remove(ncid: c_int) -> Result<SharedFile, NcError> {
    let found = any_group(ncid)?;
    take_out(slot_of(ncid), found.file).map(SharedFile).ok_or(NcError::BadId)
}

/// Takes a closed file out of the table; `None` where another thread has done that.
pub(crate) fn take_closed(file: FileRef, ncid: c_int) -> Option<SharedFile> {
    take_out(slot_of(ncid), file.file).map(SharedFile)
}

/// [`remove`] for a file of a program's own format.
pub(crate) fn remove_user_file(ncid: c_int) {
    let slot = slot_of(ncid);
    let found = SLOTS[slot].load();
    if matches!(found.as_deref(), Some(SlotEntry::User(_))) {
        drop(take_out(slot, found));
    }
}

/// Before a file is closed: in a forked child that can do nothing with it, its number is given back.
///
/// # Errors
/// `ECHILD` for such a file.
pub(crate) fn unless_out_of_reach(ncid: c_int) -> Result<(), NcError> {
    let slot = slot_of(ncid);
    let found = SLOTS[slot].load();
    match found.as_deref() {
        Some(SlotEntry::Dataset(file)) if file.dataset.is_out_of_reach() => {}
        _ => return Ok(()),
    }
    // A drop would wait for its locks.
    std::mem::forget(take_out(slot, found));
    Err(NcError::System(libc::ECHILD))
}

/// Whether any dataset is open. Takes no memory.
pub(crate) fn is_any_open() -> bool {
    let high = HIGH_WATER.load(Ordering::Acquire).min(N_SLOTS);
    let is_dataset = |slot: &ArcSwapOption<SlotEntry>| {
        matches!(slot.load().as_deref(), Some(SlotEntry::Dataset(_)))
    };
    SLOTS.iter().take(high).any(is_dataset)
}

/// Every open dataset, for what concerns all of them: flushing at exit, fork.
pub(crate) fn all() -> Vec<SharedFile> {
    let high = HIGH_WATER.load(Ordering::Acquire).min(N_SLOTS);
    SLOTS[..high].iter().filter_map(|slot| SharedFile::new(slot.load_full()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_file() -> OpenDataset {
        let storage = Arc::new(zonda::storage::backend::Memory::new());
        let dataset = Dataset::create_in(storage, Path::new("test"), &Default::default()).unwrap();
        OpenDataset::new(dataset, 0, CString::default())
    }

    /// One test, because the table is one for the process.
    #[test]
    fn slots_are_taken_from_the_lowest_and_come_free() {
        let ids: Vec<c_int> = (0..4).map(|_| insert(open_file()).unwrap()).collect();
        assert_eq!(ids, [1 << 16, 2 << 16, 3 << 16, 4 << 16]);
        assert_eq!(all().len(), 4);
        for bad in [0, -1, ids[0] + 1, 5 << 16, c_int::MIN, c_int::MAX] {
            assert_eq!(file(bad).err().map(NcError::from), Some(NcError::BadId), "{bad:#x}");
            assert_eq!(remove(bad).err(), Some(NcError::BadId), "{bad:#x}");
        }
        let used = file(ids[1]).unwrap();
        drop(remove(ids[1]).unwrap());
        assert!(used.dataset.in_define_mode(), "a call that is under way keeps its file");
        drop(used);
        assert_eq!(file(ids[1]).err().map(NcError::from), Some(NcError::BadId));
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

        // A file of a program's own format is no dataset, and the other way round.
        static TABLE: NcDispatch = NcDispatch::NONE;
        let user = insert_user_file(UserFile { table: &TABLE, path: c"x".into() }).unwrap();
        let dataset = insert(open_file()).unwrap();
        let path = |id| user_file(id, |file| Arc::clone(&file.path));
        assert_eq!(path(user).as_deref(), Some(c"x"));
        assert_eq!(path(user + 1).as_deref(), Some(c"x"), "groups are the table's");
        assert!(path(dataset).is_none() && all().len() == 1);
        assert_eq!(remove(user).err(), Some(NcError::BadId));
        remove_user_file(dataset);
        remove(dataset).unwrap();
        remove_user_file(user);
        assert!(path(user).is_none() && !is_any_open());
    }
}

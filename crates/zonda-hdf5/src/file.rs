//! An open HDF5 file: its bytes by address.

mod extension;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use zonda_model::memory;
use zonda_storage::{Storage, StorageStamp};

use crate::cache_image::Overlay;
use crate::global_heap::HeapCache;
use crate::message::{FileSpaceInfo, FilterDescription, SharedMessageTable};
use crate::superblock::{DriverInfo, SIGNATURE, Superblock};
use crate::tuning::{
    FORETOLD_BYTES, FORETOLD_RANGES, SETTLED_SECONDS, SUPERBLOCK_READ_BYTES, SUPERBLOCK_READ_LASTS,
};
use crate::{FileAddr, HdfError, ReadLimits, Reader, Result, Sizes};

pub use extension::ExtensionEdit;

/// Bytes of a driver information block that are looked at.
const DRIVER_INFO_BYTES: u64 = 16;

/// Undoes filters, for the few metadata that are filtered. This crate knows no filter, so the
/// program that opens a file provides them.
pub trait Unfilter: Send + Sync {
    /// Undoes the filters of a pipeline but those whose bit is set in `mask`.
    ///
    /// Gives `None` where a filter is not there or its input is damaged, or where more than `most`
    /// bytes would come out.
    fn unfilter(
        &self,
        filters: &[FilterDescription],
        mask: u32,
        stored: Vec<u8>,
        most: usize,
    ) -> Option<Vec<u8>>;
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl std::fmt::Debug for dyn Unfilter + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Unfilter")
    }
}

/// An HDF5 file. All methods may be called from any thread.
#[derive(Debug)]
pub struct File {
    storage: Arc<dyn Storage>,
    /// Whether each read of the storage costs a message there and back.
    is_remote: bool,
    /// Bytes of the storage when it was opened, or up to the end of what was written since.
    len: AtomicU64,
    superblock: Superblock,
    /// The bytes that were read with the superblock.
    window: SuperblockWindow,
    /// Whether the bytes of the window may have been written over since.
    window_is_old: AtomicBool,
    /// The cache image that covers bytes of the storage.
    overlay: Option<Overlay>,
    /// Whether its bytes were written to their addresses since.
    overlay_is_old: AtomicBool,
    /// The message about the table of shared messages, or why it cannot be read.
    shared_messages: Result<Option<SharedMessageTable>>,
    file_space: Option<FileSpaceInfo>,
    heap_cache: HeapCache,
    limits: ReadLimits,
    unfilter: Option<Arc<dyn Unfilter>>,
    /// Damage of the superblock and of what it refers to that was passed over.
    faults: Vec<HdfError>,
    /// Whether damaged objects are read as far as they can be.
    is_tolerant: bool,
}

/// Some bytes of the storage.
#[derive(Debug)]
struct SuperblockWindow {
    at: u64,
    bytes: Box<[u8]>,
    /// When they were read, and the state of the storage then.
    read: Instant,
    stamp: Option<StorageStamp>,
    /// Whether that state was old then, so that stamps tell of each change.
    is_settled: bool,
}

impl SuperblockWindow {
    fn read(storage: &dyn Storage, at: u64) -> Result<SuperblockWindow> {
        let (mut bytes, read) = (vec![0; SUPERBLOCK_READ_BYTES], Instant::now());
        let stamp = storage.stamp().ok();
        let got = storage.read_at(at, &mut bytes)?;
        bytes.truncate(got);
        let is_settled = stamp.is_some_and(|stamp| !stamp.is_younger_than(SETTLED_SECONDS));
        Ok(SuperblockWindow { at, bytes: bytes.into(), read, stamp, is_settled })
    }

    fn none() -> SuperblockWindow {
        let (bytes, read) = (Box::default(), Instant::now());
        SuperblockWindow { at: 0, bytes, read, stamp: None, is_settled: false }
    }

    /// Whether the storage may have changed since. The time since then counts only where stamps may
    /// not tell of a change.
    fn is_old(&self, storage: &dyn Storage) -> bool {
        (!self.is_settled && self.read.elapsed() > SUPERBLOCK_READ_LASTS)
            || storage.stamp().ok() != self.stamp
    }

    /// The bytes from `at` on; none where `at` is outside.
    fn from(&self, at: u64) -> &[u8] {
        let skip = at.checked_sub(self.at).and_then(|skip| usize::try_from(skip).ok());
        skip.and_then(|skip| self.bytes.get(skip..)).unwrap_or_default()
    }
}

impl File {
    /// Opens an HDF5 file: finds and decodes its superblock, and the extension of it where there is
    /// one. Nothing else is read. What is damaged and no reader needs (see [`File::faults`]) is
    /// passed over.
    ///
    /// # Errors
    /// [`HdfError::NotHdf5`] where there is no superblock, [`HdfError::FileTruncated`] where the
    /// file is shorter than it was left, [`HdfError::Unsupported`] for members of a file that
    /// drivers split into several; those of decoding.
    pub fn open(storage: Arc<dyn Storage>) -> Result<File> {
        File::open_with(storage, ReadLimits::default())
    }

    /// As [`File::open`], with other bounds than the default ones.
    ///
    /// # Errors
    /// As [`File::open`].
    pub fn open_with(storage: Arc<dyn Storage>, limits: ReadLimits) -> Result<File> {
        let len = storage.len()?;
        let (window, at) = find(&*storage, len)?;
        let superblock = Superblock::decode(window.from(at), at)?;
        let eof = superblock.eof;
        let mut file = File::of(storage, len, superblock, window, limits);
        // A file that is one of several is shorter than their superblock says, so this check is
        // first.
        file.read_driver_info()?;
        if eof > len {
            return Err(HdfError::FileTruncated { eof, len });
        }
        if let Some(addr) = file.superblock.extension {
            file.read_extension(addr)?;
        }
        Ok(file)
    }

    /// Opens what may be left of a damaged file: one that is shorter than it was, whose superblock
    /// or extension is not to be read, or that has no superblock at all. What is wrong is in
    /// [`File::faults`].
    ///
    /// Where the superblock does not say where the root group is, [`File::root`] is an address that
    /// is in no file.
    ///
    /// # Errors
    /// What the storage reports; [`HdfError::Unsupported`] as [`File::open`].
    pub fn open_damaged(storage: Arc<dyn Storage>) -> Result<File> {
        let len = storage.len()?;
        let mut faults = Vec::new();
        let found = find(&*storage, len).and_then(|(window, at)| {
            let superblock = Superblock::decode(window.from(at), at);
            Ok((superblock.or_else(|error| passed_over(&mut faults, error, at))?, window))
        });
        let (superblock, window) = match found {
            Ok(found) => found,
            Err(error) => (passed_over(&mut faults, error, 0)?, SuperblockWindow::none()),
        };
        let eof = superblock.eof;
        let mut file = File::of(storage, len, superblock, window, ReadLimits::default());
        (file.faults, file.is_tolerant) = (faults, true);
        if eof > len {
            file.faults.push(HdfError::FileTruncated { eof, len });
        }
        file.read_driver_info()?;
        if let Some(addr) = file.superblock.extension {
            match file.read_extension(addr) {
                Err(error @ (HdfError::Storage(_) | HdfError::Unsupported { .. })) => {
                    return Err(error);
                }
                Err(error) => file.faults.push(error),
                Ok(()) => {}
            }
        }
        Ok(file)
    }

    /// Refuses a file that is one of several, where its driver information says so.
    fn read_driver_info(&mut self) -> Result<()> {
        const NAME: &str = "driver information block";
        let Some(addr) = self.superblock.driver_info else { return Ok(()) };
        let decoded = self.read(NAME, addr, DRIVER_INFO_BYTES).and_then(|bytes| {
            let reader = self.reader(NAME, addr, &bytes);
            Ok((reader, DriverInfo::decode_block(reader)?.is_split()))
                .map(|(reader, is_split)| is_split.then(|| split_error(&reader)))
        });
        match decoded {
            Ok(None) => Ok(()),
            Ok(Some(split)) => Err(split),
            Err(error) => self.pass_over(error),
        }
    }

    /// Records damage that no reader is hindered by. Errors of the storage are no damage.
    fn pass_over(&mut self, error: HdfError) -> Result<()> {
        if let HdfError::Storage(_) = error {
            return Err(error);
        }
        self.faults.push(error);
        Ok(())
    }

    /// A file that is being made: version 2 of the superblock, the root group's header directly
    /// behind it. Nothing is written yet, not even the superblock.
    ///
    /// Addresses begin behind a user block of `user_block` bytes, mostly 0.
    ///
    /// # Errors
    /// [`HdfError::BadValue`] where there can be no superblock behind such a user block.
    pub fn create(storage: Arc<dyn Storage>, user_block: u64) -> Result<File> {
        if user_block != 0 && (user_block < 512 || !user_block.is_power_of_two()) {
            let (structure, what) = ("superblock", "bytes of the user block");
            return Err(HdfError::BadValue { structure, at: 0, what, value: user_block });
        }
        let superblock = Superblock::new(user_block);
        let (len, window) = (superblock.eof, SuperblockWindow::none());
        Ok(File::of(storage, len, superblock, window, ReadLimits::default()))
    }

    fn of(
        storage: Arc<dyn Storage>,
        len: u64,
        superblock: Superblock,
        window: SuperblockWindow,
        limits: ReadLimits,
    ) -> File {
        File {
            is_remote: storage.remote().is_some(),
            storage,
            len: AtomicU64::new(len),
            superblock,
            window,
            window_is_old: AtomicBool::new(false),
            overlay: None,
            overlay_is_old: AtomicBool::new(false),
            shared_messages: Ok(None),
            file_space: None,
            heap_cache: HeapCache::new(&limits),
            limits,
            unfilter: None,
            faults: Vec::new(),
            is_tolerant: false,
        }
    }

    /// A file without a superblock whose addresses are bytes of the storage.
    #[cfg(test)]
    pub(crate) fn bare(storage: Arc<dyn Storage>, sizes: Sizes, limits: ReadLimits) -> File {
        let len = storage.len().unwrap();
        let superblock = Superblock {
            version: 0,
            sizes,
            base: 0,
            stored_base: 0,
            eof: len,
            flags: 0,
            group_leaf_k: 4,
            group_internal_k: 16,
            chunk_k: 32,
            extension: None,
            driver_info: None,
            root: FileAddr(0),
        };
        File::bare_with(storage, superblock, limits)
    }

    /// The same with what a superblock would say.
    #[cfg(test)]
    pub(crate) fn bare_with(
        storage: Arc<dyn Storage>,
        superblock: Superblock,
        limits: ReadLimits,
    ) -> File {
        let len = storage.len().unwrap();
        File::of(storage, len, superblock, SuperblockWindow::none(), limits)
    }

    /// Sets what undoes the filters of metadata. Without it, filtered heaps cannot be read.
    #[must_use]
    pub fn with_unfilter(self, unfilter: Arc<dyn Unfilter>) -> File {
        File { unfilter: Some(unfilter), ..self }
    }

    /// Undoes the filters of metadata that were read at `addr`.
    ///
    /// # Errors
    /// [`HdfError::Unsupported`] where [`Unfilter`] is not there or gives nothing.
    pub fn unfilter(
        &self,
        structure: &'static str,
        addr: FileAddr,
        filters: &[FilterDescription],
        mask: u32,
        stored: Vec<u8>,
        most: usize,
    ) -> Result<Vec<u8>> {
        let undone = self.unfilter.as_ref();
        let undone = undone.and_then(|undo| undo.unfilter(filters, mask, stored, most));
        let at = self.position(addr);
        undone.ok_or(HdfError::Unsupported { structure, at, what: "undoing its filters" })
    }

    /// The superblock, with what its extension says of sizes.
    #[must_use]
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Object header of the root group.
    #[must_use]
    pub fn root(&self) -> FileAddr {
        self.superblock.root
    }

    /// Where the table of shared messages is.
    #[must_use]
    pub fn shared_message_table(&self) -> Option<SharedMessageTable> {
        self.shared_messages.as_ref().ok().copied().flatten()
    }

    /// The same for a reader that needs it.
    ///
    /// # Errors
    /// What is wrong with the message that says where it is; [`HdfError::Missing`] where there is
    /// none.
    pub(crate) fn required_shared_message_table(&self) -> Result<SharedMessageTable> {
        self.shared_messages.clone()?.ok_or(HdfError::Missing {
            structure: "superblock extension",
            at: 0,
            what: "the table of shared messages",
        })
    }

    /// Whether it was opened by [`File::open_damaged`]: of a damaged object header those messages are
    /// given that can be read.
    #[must_use]
    pub fn is_tolerant(&self) -> bool {
        self.is_tolerant
    }

    /// Damage of the superblock and of what it refers to that was passed over, since data and
    /// definitions can be read nevertheless. A writer cannot do without these parts.
    #[must_use]
    pub fn faults(&self) -> &[HdfError] {
        &self.faults
    }

    /// How space in the file is managed, where it says so.
    #[must_use]
    pub fn file_space_info(&self) -> Option<&FileSpaceInfo> {
        self.file_space.as_ref()
    }

    /// Whether a writer left metadata in an image of its cache, and they still are nowhere else.
    #[must_use]
    pub fn has_cache_image(&self) -> bool {
        self.overlay.is_some() && !self.overlay_is_old.load(Ordering::Acquire)
    }

    /// Bytes of the storage when it was opened, or up to the end of what was written since.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a file is never empty")]
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Says that all before the address `end` was written, or will be before it is read. A file
    /// never becomes shorter.
    pub fn grown_to(&self, end: u64) {
        self.len.fetch_max(self.position(FileAddr(end)), Ordering::AcqRel);
    }

    /// Forgets all bytes that are kept. A writer that writes over some of them calls this.
    pub fn forget(&self) {
        self.window_is_old.store(true, Ordering::Release);
        self.heap_cache.clear();
    }

    /// Writes the superblock, or what changes in it, with a new end of the file, which is counted
    /// as addresses are. It is one write, in one sector.
    ///
    /// All before the end must be in the storage already: a file that is shorter is refused when it
    /// is opened. [`File::superblock`] stays what it was when the file was opened.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] where the file's addresses are too narrow; what the storage reports.
    pub fn write_superblock(&self, end: u64) -> Result<()> {
        let (at, bytes) = self.superblock.encode_end(self.position(FileAddr(end)))?;
        self.storage.write_at(at, &bytes)?;
        self.grown_to(end);
        self.window_is_old.store(true, Ordering::Release);
        Ok(())
    }

    /// Widths of addresses and lengths.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        self.superblock.sizes
    }

    /// The bounds that decoders keep.
    #[must_use]
    pub fn limits(&self) -> &ReadLimits {
        &self.limits
    }

    /// The storage below.
    #[must_use]
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// Whether each read costs a message there and back, so that [`File::will_read`] is worth its while.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Tells a remote storage which metadata will be read soon, first what is wanted first: addresses, and bytes from there on. All of
    /// them come at the same time. What is behind the end of the file is left out, and so is what is more than memory has room for: lengths
    /// are the file's.
    pub fn will_read(&self, wanted: impl IntoIterator<Item = (FileAddr, u64)>) {
        let Some(remote) = self.storage.remote() else { return };
        let (end, mut left) = (self.len(), FORETOLD_BYTES);
        let mut ranges = Vec::new();
        for (addr, len) in wanted {
            let at = self.position(addr);
            let behind = at.saturating_add(len.min(left)).min(end);
            let Some(bytes) = behind.checked_sub(at).filter(|&bytes| bytes > 0) else { continue };
            left = left.saturating_sub(bytes);
            ranges.push(at..behind);
            if left == 0 || ranges.len() >= FORETOLD_RANGES {
                break;
            }
        }
        if !ranges.is_empty() {
            remote.will_read(&ranges);
        }
    }

    pub(crate) fn heap_cache(&self) -> &HeapCache {
        &self.heap_cache
    }

    /// The byte of the storage that an address means, in the file or not.
    #[must_use]
    pub fn position(&self, addr: FileAddr) -> u64 {
        self.superblock.base.saturating_add(addr.0)
    }

    /// The byte of the storage that an address means.
    ///
    /// # Errors
    /// [`HdfError::OutOfFile`] where `len` bytes from there are not in the file.
    pub fn locate(&self, structure: &'static str, addr: FileAddr, len: u64) -> Result<u64> {
        let (at, end) = (self.position(addr), self.len());
        let behind = at.checked_add(len);
        if behind.is_some_and(|behind| behind <= end) {
            return Ok(at);
        }
        let end = self.len_now();
        if behind.is_some_and(|behind| behind <= end) {
            return Ok(at);
        }
        Err(HdfError::OutOfFile { structure, at, len, end })
    }

    /// Bytes of the storage as it is now: what another program writes makes it longer.
    #[cold]
    fn len_now(&self) -> u64 {
        let known = self.len();
        match self.storage.stamp() {
            Ok(stamp) if stamp.len > known && self.storage.invalidate().is_ok() => {
                self.len.fetch_max(stamp.len, Ordering::AcqRel).max(stamp.len)
            }
            _ => known,
        }
    }

    /// Metadata: the `len` bytes at an address.
    ///
    /// # Errors
    /// [`HdfError::OutOfFile`] before anything is allocated; [`HdfError::NoMemory`]; what the storage
    /// reports.
    pub fn read(&self, structure: &'static str, addr: FileAddr, len: u64) -> Result<Vec<u8>> {
        let at = self.locate(structure, addr, len)?;
        let out_of_file = || HdfError::OutOfFile { structure, at, len, end: self.len() };
        let len = usize::try_from(len).map_err(|_| out_of_file())?;
        let mut bytes = memory::filled(len, 0)?;
        self.fill(structure, at, &mut bytes)?;
        Ok(bytes)
    }

    /// Metadata: as many bytes at an address as `buf` has.
    ///
    /// # Errors
    /// As [`File::read`].
    pub fn read_into(&self, structure: &'static str, addr: FileAddr, buf: &mut [u8]) -> Result<()> {
        let at = self.locate(structure, addr, buf.len() as u64)?;
        self.fill(structure, at, buf)
    }

    /// Metadata: up to `len` bytes at an address, fewer where the file ends, for structures that
    /// say their length in their first bytes.
    ///
    /// # Errors
    /// [`HdfError::OutOfFile`] where not even one byte is there; what the storage reports.
    pub fn read_up_to(&self, structure: &'static str, addr: FileAddr, len: u64) -> Result<Vec<u8>> {
        let at = self.locate(structure, addr, 1)?;
        self.read(structure, addr, len.min(self.len().saturating_sub(at)))
    }

    /// The bytes from byte `at` of the storage on, as they are for metadata.
    fn fill(&self, structure: &'static str, at: u64, buf: &mut [u8]) -> Result<()> {
        let in_window = self.window.from(at).get(..buf.len());
        // Ranks that read the same must not depend on their clocks.
        let is_old = || {
            self.window_is_old.load(Ordering::Acquire)
                || self.storage.has_other_writers()
                || self.window.is_old(&*self.storage)
        };
        if let Some(bytes) = in_window.filter(|_| !is_old()) {
            buf.copy_from_slice(bytes);
        } else if self.storage.read_at(at, buf)? != buf.len() {
            let (len, end) = (buf.len() as u64, self.len());
            return Err(HdfError::OutOfFile { structure, at, len, end });
        }
        if let Some(overlay) = self.overlay.as_ref().filter(|_| self.has_cache_image()) {
            overlay.cover(at, buf);
        }
        Ok(())
    }

    /// A reader over bytes that were read at `addr`.
    #[must_use]
    pub fn reader<'a>(
        &self,
        structure: &'static str,
        addr: FileAddr,
        bytes: &'a [u8],
    ) -> Reader<'a> {
        Reader::new(structure, bytes, self.position(addr), self.sizes())
    }
}

/// Finds the superblock: the bytes around it, and where it begins.
fn find(storage: &dyn Storage, len: u64) -> Result<(SuperblockWindow, u64)> {
    let mut window = SuperblockWindow::read(storage, 0)?;
    let mut at = 0u64;
    if let Some(remote) = storage.remote().filter(|_| !window.from(0).starts_with(&SIGNATURE)) {
        // All places where it may be come together.
        let places = (9..63u32).filter_map(|bits| 1u64.checked_shl(bits));
        let bytes = SUPERBLOCK_READ_BYTES as u64;
        let places = places.take_while(|&at| at < len).map(|at| at..at.saturating_add(bytes));
        remote.will_read(&places.collect::<Vec<_>>());
    }
    while at.saturating_add(SIGNATURE.len() as u64) <= len {
        if window.from(at).len() < Superblock::MAX_BYTES && at > window.at {
            window = SuperblockWindow::read(storage, at)?;
        }
        if window.from(at).starts_with(&SIGNATURE) {
            return Ok((window, at));
        }
        at = at.saturating_mul(2).max(512);
    }
    Err(HdfError::NotHdf5)
}

/// What stands for a superblock that cannot be read, which is or was at byte `at`.
fn passed_over(faults: &mut Vec<HdfError>, error: HdfError, at: u64) -> Result<Superblock> {
    if let HdfError::Storage(_) = error {
        return Err(error);
    }
    faults.push(error);
    Ok(Superblock { root: FileAddr(u64::MAX), ..Superblock::new(at) })
}

fn split_error(reader: &Reader<'_>) -> HdfError {
    reader.unsupported("a file that is split into several")
}

#[cfg(test)]
mod tests;

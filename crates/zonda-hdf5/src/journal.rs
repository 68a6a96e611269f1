//! The journal beside a file: what is needed to complete changes that no single write makes.
//!
//! A header that crosses a border between sectors cannot be switched at once, and some changes take
//! several headers. The bytes that are to be written over are first written to a journal beside the
//! file. If the writer dies meanwhile, the next program that opens the file for writing completes
//! the changes, or `zonda recover` does.
//!
//! ```text
//! journal = magic(8) checksum(4) n_changes(4) total(8) id(16) change*     checksum: of all behind it
//! change  = position(8) length(8) old bytes, new bytes
//! ```
//!
//! All numbers are little-endian; positions count from the first byte of the file. A journal that
//! is not complete has no value: the file is untouched until it is complete. The old bytes show
//! whether the journal belongs to the file: then each sector under a change has its old or its new
//! bytes. The beginning of the superblock, which says where the file ends, is among the changes
//! though it stays as it is (a *witness*): so a file that was restored from before the commit is
//! not taken for this one. `id` is a random number, by which two journals differ. The magic of the
//! former version ends in 1; it has no id and no witness.

use std::sync::Arc;

use zonda_storage::neighbour::{Refusal, journal_id, warn_once};
use zonda_storage::{
    FoundSidecar, Sidecar, SidecarForReader, Sidecars, Storage, StorageError, write_journal,
};

use crate::checksum::lookup3;
use crate::space::SECTOR;
use crate::tuning::{JOURNAL_MAX_BYTES, OTHERS_JOURNAL_BYTES};
use crate::{HdfError, Reader, Result, Sizes, Writer};

const NAME: &str = "journal";
const MAGIC: [u8; 8] = *b"ZNDJHDF\x02";
/// The magic of the former version, which had no id.
const MAGIC_1: [u8; 8] = *b"ZNDJHDF\x01";
/// Bytes before what the checksum covers.
const BEFORE: usize = 12;
/// Bytes before the changes.
const FIXED: usize = 24;
/// Bytes of a change besides its bytes.
const CHANGE_FIXED: usize = 16;
/// Bytes of an id.
const ID: usize = 16;
/// Bytes of the beginning of a superblock of any version that have the end of the file.
const WITNESS: usize = 48;

/// Bytes that are written over.
#[derive(Clone, Debug, PartialEq, Eq)]
struct JournalChange {
    at: u64,
    old: Vec<u8>,
    new: Vec<u8>,
}

/// Changes of which all or none are to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// A random number, none in a journal of the former version.
    id: Option<[u8; ID]>,
    changes: Vec<JournalChange>,
}

/// What [`recover`] found, and what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// There is no journal: the file is as its last commit left it.
    Nothing,
    /// The writer died before it had touched the file; the journal was removed.
    Untouched,
    /// The changes were completed.
    Completed,
    /// The journal does not belong to this file, which another program made or changed since. Both
    /// were left as they are.
    NotItsJournal,
    /// The writer is alive. Nothing was done.
    InUse,
}

/// Whether bytes at a position lie in several sectors, so that no write changes them at once.
#[must_use]
pub fn crosses_sectors(at: u64, len: u64) -> bool {
    let last = at.saturating_add(len.max(1)).saturating_sub(1);
    at.checked_div(SECTOR) != last.checked_div(SECTOR)
}

impl Journal {
    /// A journal of bytes that are to be written over at these positions.
    ///
    /// # Errors
    /// What the storage reports while it reads what is there.
    pub fn of<'a>(
        storage: &dyn Storage,
        changes: impl IntoIterator<Item = (u64, &'a [u8])>,
    ) -> Result<Journal> {
        let change = |(at, new): (u64, &[u8])| {
            let mut old = vec![0; new.len()];
            // Bytes behind the end of the file count as zeros.
            let _got = storage.read_at(at, &mut old)?;
            Ok(JournalChange { at, old, new: new.to_vec() })
        };
        let changes = changes.into_iter().map(change).collect::<Result<_>>()?;
        Ok(Journal { id: Some(journal_id()), changes })
    }

    /// Adds the superblock at this position as a witness, unless a change touches it.
    ///
    /// # Errors
    /// What the storage reports.
    fn witness(&mut self, storage: &dyn Storage, at: u64) -> Result<()> {
        let end = at.saturating_add(WITNESS as u64);
        let touches =
            |one: &JournalChange| one.at < end && at < one.at.saturating_add(one.new.len() as u64);
        if !self.changes.iter().any(touches) {
            let mut old = vec![0; WITNESS];
            let _got = storage.read_at(at, &mut old)?;
            self.changes.push(JournalChange { at, new: old.clone(), old });
        }
        Ok(())
    }

    /// Writes the journal beside the file, as [`write_journal`].
    ///
    /// # Errors
    /// What the operating system reports. The file is untouched, and there is no journal.
    pub fn write(&self, sidecars: &dyn Sidecars) -> Result<Option<Arc<dyn Storage>>> {
        Ok(write_journal(sidecars, &self.encode()?)?)
    }

    /// Makes the changes. It can be repeated.
    ///
    /// # Errors
    /// What the storage reports.
    pub fn apply(&self, storage: &dyn Storage) -> Result<()> {
        let real = self.changes.iter().filter(|change| change.old != change.new);
        real.into_iter().try_for_each(|change| Ok(storage.write_at(change.at, &change.new)?))
    }

    /// What completing the journal changes, one line for each change.
    fn change_lines(&self) -> Vec<String> {
        let line = |change: &JournalChange| {
            let last = change.at.saturating_add(change.new.len() as u64).saturating_sub(1);
            format!("bytes {} to {last}: {}", change.at, kind_of(&change.new))
        };
        let real = self.changes.iter().filter(|change| change.old != change.new);
        real.map(line).collect()
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let mut covered = Writer::new(NAME, Sizes::EIGHT);
        let n = u32::try_from(self.changes.len());
        let too_large = |_| HdfError::TooLarge { structure: NAME, value: u64::from(u32::MAX) };
        covered.u32(n.map_err(too_large)?);
        let len = |change: &JournalChange| {
            change.new.len().saturating_mul(2).saturating_add(CHANGE_FIXED)
        };
        let fixed = FIXED.saturating_add(self.id.map_or(0, |id| id.len()));
        let total = self.changes.iter().map(len).fold(fixed, usize::saturating_add);
        covered.u64(total as u64);
        if let Some(id) = &self.id {
            covered.put(id);
        }
        for change in &self.changes {
            covered.u64(change.at).u64(change.new.len() as u64);
            covered.put(&change.old).put(&change.new);
        }
        let covered = covered.finish();
        let mut whole = Writer::new(NAME, Sizes::EIGHT);
        whole.put(if self.id.is_some() { &MAGIC } else { &MAGIC_1 });
        whole.u32(lookup3(&covered, 0)).put(&covered);
        Ok(whole.finish())
    }

    /// The journal in a storage, of `most` bytes at most; `None` where it is not complete, or another
    /// program's.
    ///
    /// # Errors
    /// What the storage reports; [`StorageError::MemoryLimit`].
    fn read(journal: &dyn Storage, most: u64) -> Result<Option<Journal>> {
        let limit = most.min(JOURNAL_MAX_BYTES);
        let total = journal.len()?.min(limit);
        let Some(len) = usize::try_from(total).ok().filter(|len| *len >= FIXED) else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let op = zonda_storage::Op::Read;
        let no_memory = |_| StorageError::MemoryLimit { op, at: 0, len: total, limit };
        bytes.try_reserve_exact(len).map_err(no_memory)?;
        bytes.resize(len, 0);
        let got = journal.read_at(0, &mut bytes)?;
        bytes.truncate(got);
        Ok(Journal::decode(&bytes).ok())
    }

    fn decode(bytes: &[u8]) -> Result<Journal> {
        let mut reader = Reader::new(NAME, bytes, 0, Sizes::EIGHT);
        let magic = reader.take(MAGIC.len())?;
        let has_id = magic == MAGIC;
        if !has_id && magic != MAGIC_1 {
            return Err(HdfError::BadSignature { structure: NAME, at: 0 });
        }
        let (stored, covered) = (reader.u32()?, bytes.get(BEFORE..).unwrap_or_default());
        let n_changes = reader.u32()?;
        let total = reader.u64()?;
        let behind = usize::try_from(total).ok().and_then(|len| len.checked_sub(BEFORE));
        let covered = behind.and_then(|len| covered.get(..len));
        let covered = covered.ok_or_else(|| reader.bad("bytes of the journal", total))?;
        let computed = lookup3(covered, 0);
        if stored != computed {
            return Err(HdfError::BadChecksum { structure: NAME, at: 0, stored, computed });
        }
        let id = if has_id { reader.take(ID)?.first_chunk::<ID>().copied() } else { None };
        let mut changes = Vec::with_capacity(reader.count(u64::from(n_changes), CHANGE_FIXED)?);
        for _ in 0..n_changes {
            let (at, len) = (reader.u64()?, reader.u64()?);
            let old = reader.take_u64(len)?.to_vec();
            let new = reader.take_u64(len)?.to_vec();
            changes.push(JournalChange { at, old, new });
        }
        Ok(Journal { id, changes })
    }

    /// Whether each sector under the changes has its old or its new bytes.
    fn belongs_to(&self, storage: &dyn Storage) -> Result<bool> {
        for change in &self.changes {
            let mut now = vec![0; change.new.len()];
            let _behind_the_end_are_zeros = storage.read_at(change.at, &mut now)?;
            let mut unchecked = (&*now, &*change.old, &*change.new);
            let mut at = change.at;
            while !unchecked.0.is_empty() {
                let left = SECTOR.saturating_sub(at.checked_rem(SECTOR).unwrap_or(0));
                let n = usize::try_from(left).unwrap_or(usize::MAX).min(unchecked.0.len());
                let (now, old, new) =
                    (unchecked.0.split_at(n), unchecked.1.split_at(n), unchecked.2.split_at(n));
                if now.0 != old.0 && now.0 != new.0 {
                    return Ok(false);
                }
                unchecked = (now.1, old.1, new.1);
                at = at.saturating_add(n as u64);
            }
        }
        Ok(true)
    }
}

/// Makes changes all or none: by a journal beside the file, where there is a folder for one that
/// takes it, else one after the other. `superblock` is the position of the superblock.
///
/// # Errors What the storage reports. Changes that were begun are to be repeated; none were if the
/// journal could not be written.
pub fn switch<'a>(
    storage: &dyn Storage,
    sidecars: Option<&dyn Sidecars>,
    superblock: u64,
    changes: impl IntoIterator<Item = (u64, &'a [u8])>,
) -> Result<()> {
    let mut journal = Journal::of(storage, changes)?;
    let Some(sidecars) = sidecars else { return journal.apply(storage) };
    journal.witness(storage, superblock)?;
    // Where the folder takes no files, the changes are no safer than with the reference.
    let kept = journal.write(sidecars)?;
    journal.apply(storage)?;
    if let Some(kept) = kept {
        storage.barrier()?;
        drop(kept);
        sidecars.remove(Sidecar::Journal)?;
        sidecars.settle()?;
    }
    Ok(())
}

/// Completes what a dead writer began, and removes its journal.
///
/// # Errors
/// [`StorageError::Refused`] for a journal that is not to be trusted; what the storage reports. It can
/// then be tried again.
pub fn recover(storage: &dyn Storage, sidecars: &dyn Sidecars) -> Result<Recovered> {
    complete(storage, sidecars, sidecars.find(Sidecar::Journal)?, |_| Ok(()))
}

/// As [`recover`], with a journal that may belong to `user`, too. Before anything is changed,
/// `show` gets a list of the changes, and prevents them by an error.
///
/// # Errors
/// As [`recover`], and those of `show`.
pub fn recover_of<E: From<HdfError>>(
    storage: &dyn Storage,
    sidecars: &dyn Sidecars,
    user: u32,
    show: impl FnOnce(&[String]) -> std::result::Result<(), E>,
) -> std::result::Result<Recovered, E> {
    let found = sidecars.find_of(Sidecar::Journal, user).map_err(HdfError::from)?;
    complete(storage, sidecars, found, |journal| match journal {
        Some(journal) => show(&journal.change_lines()),
        None => show(&["nothing: it is not complete, and is removed".to_owned()]),
    })
}

fn complete<E: From<HdfError>>(
    storage: &dyn Storage,
    sidecars: &dyn Sidecars,
    found: Option<FoundSidecar>,
    show: impl FnOnce(Option<&Journal>) -> std::result::Result<(), E>,
) -> std::result::Result<Recovered, E> {
    let Some(found) = found else { return Ok(Recovered::Nothing) };
    if found.in_use {
        return Ok(Recovered::InUse);
    }
    let remove = || sidecars.remove(Sidecar::Journal).map_err(HdfError::from);
    let Some(journal) = Journal::read(&*found.storage, JOURNAL_MAX_BYTES)? else {
        show(None)?;
        drop(found);
        remove()?;
        return Ok(Recovered::Untouched);
    };
    if !journal.belongs_to(storage)? {
        return Ok(Recovered::NotItsJournal);
    }
    show(Some(&journal))?;
    journal.apply(storage)?;
    storage.barrier().map_err(HdfError::from)?;
    drop(found);
    remove()?;
    sidecars.settle().map_err(HdfError::from)?;
    Ok(Recovered::Completed)
}

/// As [`recover`], for a caller that opens the file for writing.
///
/// # Errors
/// As [`recover`]; [`StorageError::Refused`] for a journal that is not this file's, too.
pub fn for_writing(storage: &dyn Storage, sidecars: &dyn Sidecars) -> Result<Recovered> {
    match recover(storage, sidecars)? {
        Recovered::NotItsJournal => {
            Err(sidecars.refuse(Sidecar::Journal, Refusal::OtherBytes).into())
        }
        done => Ok(done),
    }
}

/// Checks for a reader whether a journal makes the file unreadable. The reader's own journal does
/// not: the bytes under it are old or new. Another user's journal that belongs to the file, and
/// that nobody is completing, is an error: nobody else may complete it, so that the file may stay
/// torn.
///
/// # Errors
/// [`StorageError::Refused`]; what the storage reports.
pub fn for_reading(storage: &dyn Storage, sidecars: &dyn Sidecars) -> Result<()> {
    let (found, refused) = match sidecars.sight(Sidecar::Journal)? {
        SidecarForReader::Theirs(found, refused) if !found.in_use => (found, refused),
        _ => return Ok(()),
    };
    let most = storage.len()?.saturating_mul(8).saturating_add(OTHERS_JOURNAL_BYTES);
    match Journal::read(&*found.storage, most)? {
        Some(journal) if journal.belongs_to(storage)? => Err(refused.into()),
        _ => {
            let error = sidecars.refuse(Sidecar::Journal, Refusal::OtherBytes);
            warn_once(&error, "the file is read without it");
            Ok(())
        }
    }
}

/// The name of the structure that begins with these bytes, for messages.
fn kind_of(bytes: &[u8]) -> &'static str {
    match bytes.first_chunk::<4>() {
        Some(b"\x89HDF") => "the superblock",
        Some(b"OHDR" | b"OCHK") => {
            "the header of an object: its attributes, shape, place of its data"
        }
        Some([1, 0, _, _]) => "the header of an object, or a part of it",
        Some(
            b"TREE" | b"SNOD" | b"HEAP" | b"BTHD" | b"BTIN" | b"BTLF" | b"FRHP" | b"FHDB" | b"FHIB",
        ) => "names of a group, or an index of chunks or attributes",
        Some(b"GCOL") => "strings and references",
        _ => "a part of a structure",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zonda_storage::backend::Memory;

    use super::*;

    fn journal() -> Journal {
        let change =
            |at, old: &[u8], new: &[u8]| JournalChange { at, old: old.into(), new: new.into() };
        let long = change(500, &[7; 600], &[8; 600]);
        let changes = vec![change(3, b"old", b"new"), long, change(2000, b"", b"")];
        Journal { id: Some([9; ID]), changes }
    }

    fn read(bytes: &[u8]) -> Option<Journal> {
        Journal::read(&Memory::from_slice(bytes), JOURNAL_MAX_BYTES).unwrap()
    }

    #[test]
    fn the_bytes_of_the_former_version_are_as_they_were() {
        let bytes = Journal { id: None, ..journal() }.encode().unwrap();
        assert_eq!((&bytes[..8], bytes[12]), (&b"ZNDJHDF\x01"[..], 3));
        assert_eq!((bytes[24], &bytes[40..46]), (3, &b"oldnew"[..]));
        assert_eq!(read(&bytes), Some(Journal { id: None, ..journal() }));
    }

    #[test]
    fn the_superblock_is_a_witness_where_it_stays() {
        let memory = Memory::from_slice(&[5; 200]);
        let mut apart = Journal::of(&memory, [(100, &b"abc"[..])]).unwrap();
        apart.witness(&memory, 0).unwrap();
        assert_eq!((apart.changes.len(), apart.change_lines().len()), (2, 1));
        assert!(apart.belongs_to(&memory).unwrap());
        apart.apply(&memory).unwrap();
        assert!(apart.belongs_to(&memory).unwrap());
        memory.write_at(40, b"restored").unwrap();
        assert!(!apart.belongs_to(&memory).unwrap());
        let mut over = Journal::of(&memory, [(47, &b"abc"[..])]).unwrap();
        over.witness(&memory, 0).unwrap();
        assert_eq!(over.changes.len(), 1);
    }

    #[test]
    fn a_journal_is_complete_or_worth_nothing() {
        let bytes = journal().encode().unwrap();
        assert_eq!(read(&bytes), Some(journal()));
        assert_eq!(read(&[&*bytes, b"more"].concat()), Some(journal()));
        for cut in 0..bytes.len() {
            assert_eq!(read(&bytes[..cut]), None, "{cut}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert_eq!(read(&damaged), None, "{at}");
        }
    }

    #[test]
    fn a_journal_knows_its_file_in_every_state() {
        let mut bytes = vec![0; 1500];
        bytes[3..6].copy_from_slice(b"old");
        bytes[500..1100].fill(7);
        let belongs = |bytes: &[u8]| journal().belongs_to(&Memory::from_slice(bytes)).unwrap();
        assert!(belongs(&bytes));
        // Sectors come into the file in any order.
        bytes[512..1024].fill(8);
        assert!(belongs(&bytes));
        bytes[3..6].copy_from_slice(b"new");
        assert!(belongs(&bytes));
        bytes[505] = 8;
        assert!(!belongs(&bytes), "no sector is written in part");
        bytes[500..512].fill(8);
        bytes[1024..1100].fill(8);
        assert!(belongs(&bytes));
        bytes[4] = b'x';
        assert!(!belongs(&bytes));
    }

    #[test]
    fn changes_are_found_and_made() {
        let memory = Memory::from_slice(&[1; 40]);
        let changes: [(u64, &[u8]); 2] = [(8, b"abc"), (38, b"defg")];
        let journal = Journal::of(&memory, changes).unwrap();
        assert_eq!(journal.changes[0].old, [1; 3]);
        assert_eq!(journal.changes[1].old, [1, 1, 0, 0]);
        switch(&memory, None, 0, changes).unwrap();
        let mut bytes = [0; 42];
        memory.read_at(0, &mut bytes).unwrap();
        assert_eq!((&bytes[8..11], &bytes[38..]), (&b"abc"[..], &b"defg"[..]));
        assert!(journal.belongs_to(&memory).unwrap());
    }

    #[test]
    fn what_no_write_changes_at_once() {
        assert!(!crosses_sectors(0, 512) && !crosses_sectors(511, 1) && !crosses_sectors(512, 0));
        assert!(crosses_sectors(511, 2) && crosses_sectors(512, 513));
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_reason_to_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut with_magic = MAGIC.to_vec();
            with_magic.extend(&bytes);
            prop_assert!(Journal::decode(&bytes).is_err());
            prop_assert!(Journal::decode(&with_magic).is_err());
        }
    }
}

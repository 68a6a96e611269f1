//! The journal beside a file: what is needed to complete changes that no single write makes.
//!
//! A header that crosses a border between sectors cannot be switched at once, and some changes take
//! several headers. What is to be written over goes into a file beside the file first; whoever opens
//! the file for writing next, or `zonda recover`, writes it again if the writer died meanwhile.
//!
//! ```text
//! journal = magic(8) checksum(4) n_changes(4) total(8) change*     checksum: of all behind it
//! change  = position(8) length(8) old bytes, new bytes
//! ```
//!
//! All numbers are little-endian; positions count from the first byte of the file. A journal is
//! complete or worth nothing: the file is untouched until it is. The old bytes tell whether the
//! journal is this file's: each sector under a change then has its old or its new bytes.

use std::sync::Arc;

use zonda_storage::{Beside, Neighbour, Storage};

use crate::checksum::lookup3;
use crate::space::SECTOR;
use crate::{HdfError, Reader, Result, Sizes, Writer};

const NAME: &str = "journal";
const MAGIC: [u8; 8] = *b"ZNDJHDF\x01";
/// Bytes before what the checksum covers.
const BEFORE: usize = 12;
/// Bytes before the changes.
const FIXED: usize = 24;
/// Bytes of a change besides its bytes.
const CHANGE_FIXED: usize = 16;
/// Longest journal that is read.
const MOST_BYTES: u64 = 1 << 30;

/// Bytes that are written over.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    at: u64,
    old: Vec<u8>,
    new: Vec<u8>,
}

/// Changes that are to be made all or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    changes: Vec<Change>,
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
    /// The journal is not this file's, which somebody else made or changed since. Both were left as
    /// they are.
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
            // What is not there yet is as good as zeros.
            let _got = storage.read_at(at, &mut old)?;
            Ok(Change { at, old, new: new.to_vec() })
        };
        Ok(Journal { changes: changes.into_iter().map(change).collect::<Result<_>>()? })
    }

    /// Writes the journal beside the file, durable as the file's sync level asks. What it gives holds
    /// the journal's lock, which says that its writer lives.
    ///
    /// # Errors
    /// What the operating system reports. The file is untouched, and the journal worth nothing.
    pub fn write(&self, beside: &dyn Beside) -> Result<Arc<dyn Storage>> {
        let journal = beside.create(Neighbour::Journal)?;
        journal.write_at(0, &self.encode()?)?;
        journal.barrier()?;
        beside.settle()?;
        Ok(journal)
    }

    /// Makes the changes. This can be repeated.
    ///
    /// # Errors
    /// What the storage reports.
    pub fn apply(&self, storage: &dyn Storage) -> Result<()> {
        self.changes.iter().try_for_each(|change| Ok(storage.write_at(change.at, &change.new)?))
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let mut covered = Writer::new(NAME, Sizes::EIGHT);
        let n = u32::try_from(self.changes.len());
        let too_large = |_| HdfError::TooLarge { structure: NAME, value: u64::from(u32::MAX) };
        covered.u32(n.map_err(too_large)?);
        let len = |change: &Change| change.new.len().saturating_mul(2).saturating_add(CHANGE_FIXED);
        let total = self.changes.iter().map(len).fold(FIXED, usize::saturating_add);
        covered.u64(total as u64);
        for change in &self.changes {
            covered.u64(change.at).u64(change.new.len() as u64);
            covered.put(&change.old).put(&change.new);
        }
        let covered = covered.finish();
        let mut whole = Writer::new(NAME, Sizes::EIGHT);
        whole.put(&MAGIC).u32(lookup3(&covered, 0)).put(&covered);
        Ok(whole.finish())
    }

    /// The journal in a storage; `None` where it is not complete, or another program's.
    ///
    /// # Errors
    /// What the storage reports.
    fn read(journal: &dyn Storage) -> Result<Option<Journal>> {
        let len = journal.len()?;
        let Some(len) = usize::try_from(len.min(MOST_BYTES)).ok().filter(|len| *len >= FIXED)
        else {
            return Ok(None);
        };
        let mut bytes = vec![0; len];
        let got = journal.read_at(0, &mut bytes)?;
        bytes.truncate(got);
        Ok(Journal::decode(&bytes).ok())
    }

    fn decode(bytes: &[u8]) -> Result<Journal> {
        let mut reader = Reader::new(NAME, bytes, 0, Sizes::EIGHT);
        if reader.take(MAGIC.len())? != MAGIC {
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
        let mut changes = Vec::with_capacity(reader.count(u64::from(n_changes), CHANGE_FIXED)?);
        for _ in 0..n_changes {
            let (at, len) = (reader.u64()?, reader.u64()?);
            let old = reader.take_u64(len)?.to_vec();
            let new = reader.take_u64(len)?.to_vec();
            changes.push(Change { at, old, new });
        }
        Ok(Journal { changes })
    }

    /// Whether each sector under the changes has its old or its new bytes.
    fn belongs_to(&self, storage: &dyn Storage) -> Result<bool> {
        for change in &self.changes {
            let mut now = vec![0; change.new.len()];
            let _behind_the_end_are_zeros = storage.read_at(change.at, &mut now)?;
            let mut rest = (&*now, &*change.old, &*change.new);
            let mut at = change.at;
            while !rest.0.is_empty() {
                let left = SECTOR.saturating_sub(at.checked_rem(SECTOR).unwrap_or(0));
                let n = usize::try_from(left).unwrap_or(usize::MAX).min(rest.0.len());
                let (now, old, new) = (rest.0.split_at(n), rest.1.split_at(n), rest.2.split_at(n));
                if now.0 != old.0 && now.0 != new.0 {
                    return Ok(false);
                }
                rest = (now.1, old.1, new.1);
                at = at.saturating_add(n as u64);
            }
        }
        Ok(true)
    }
}

/// Makes changes all or none: by a journal beside the file, where there is a folder for one that
/// takes it, else one after the other.
///
/// # Errors
/// What the storage reports. What was begun is to be repeated.
pub fn switch<'a>(
    storage: &dyn Storage,
    beside: Option<&dyn Beside>,
    changes: impl IntoIterator<Item = (u64, &'a [u8])>,
) -> Result<()> {
    let journal = Journal::of(storage, changes)?;
    let Some(beside) = beside else { return journal.apply(storage) };
    // Where the folder takes no files this is as safe as the reference does it. What there is of a
    // journal then must not be taken for one later.
    let kept = journal.write(beside);
    if kept.is_err() {
        beside.remove(Neighbour::Journal)?;
    }
    journal.apply(storage)?;
    if let Ok(kept) = kept {
        storage.barrier()?;
        drop(kept);
        beside.remove(Neighbour::Journal)?;
        beside.settle()?;
    }
    Ok(())
}

/// Completes what a dead writer began, and removes its journal.
///
/// # Errors
/// What the storage reports; it can then be tried again.
pub fn recover(storage: &dyn Storage, beside: &dyn Beside) -> Result<Recovered> {
    let Some(found) = beside.find(Neighbour::Journal)? else { return Ok(Recovered::Nothing) };
    if found.in_use {
        return Ok(Recovered::InUse);
    }
    let Some(journal) = Journal::read(&*found.storage)? else {
        drop(found);
        beside.remove(Neighbour::Journal)?;
        return Ok(Recovered::Untouched);
    };
    if !journal.belongs_to(storage)? {
        return Ok(Recovered::NotItsJournal);
    }
    journal.apply(storage)?;
    storage.barrier()?;
    drop(found);
    beside.remove(Neighbour::Journal)?;
    beside.settle()?;
    Ok(Recovered::Completed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zonda_storage::backend::Memory;

    use super::*;

    fn journal() -> Journal {
        let change = |at, old: &[u8], new: &[u8]| Change { at, old: old.into(), new: new.into() };
        let long = change(500, &[7; 600], &[8; 600]);
        Journal { changes: vec![change(3, b"old", b"new"), long, change(2000, b"", b"")] }
    }

    #[test]
    fn a_journal_is_complete_or_worth_nothing() {
        let bytes = journal().encode().unwrap();
        assert_eq!(Journal::read(&Memory::from_slice(&bytes)).unwrap(), Some(journal()));
        let longer = [&*bytes, b"more"].concat();
        assert_eq!(Journal::read(&Memory::from_slice(&longer)).unwrap(), Some(journal()));
        for cut in 0..bytes.len() {
            assert_eq!(Journal::read(&Memory::from_slice(&bytes[..cut])).unwrap(), None, "{cut}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert_eq!(Journal::read(&Memory::from_slice(&damaged)).unwrap(), None, "{at}");
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
        switch(&memory, None, changes).unwrap();
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

//! The journal beside a file: what is needed to complete a change that takes more than one write.
//!
//! ```text
//! journal = body [ slot slot ]                           slots only of a move
//! body    = magic(8) kind(4) crc(4) total(8) n_records(8) stored(8) n_old(8) n_new(8) n_flags(8) id(16)
//!           old header, new header, flags                crc: of everything behind it
//! slot    = magic(4) crc(4) batch(8) len(8) payload      at the next multiple of 4096 behind the body
//! ```
//!
//! The lowest byte of `kind` is 1 where the header is rewritten, 2 where data moves; the next one is then
//! the logarithm of the most payload of a slot, 0 for 4 MiB.
//!
//! All numbers are little-endian. `old header` is as long as `new header`: what stood in the file
//! where that goes, which is how a journal names its file. `stored` is the length of the file before; a
//! flag for each variable says whether it is left unfilled. `id` is a random number: the checksum of a
//! slot begins with it, so that a slot of another journal counts for nothing. Magic and bodies of the
//! former version end in 1 and have none.
//! A body is complete or worth nothing: the file is untouched until it is. See
//! `docs/dev/commits.md` for the order of the writes.

use std::sync::Arc;

use zonda_model::memory::{self, NoMemory};
use zonda_storage::Storage;

use crate::error::ClassicError;
use crate::header::round_up;
use crate::past_end::read_or_zeros;

const MAGIC: [u8; 8] = *b"ZNDJRNL\x02";
/// Of the former version, which had no id.
const MAGIC_1: [u8; 8] = *b"ZNDJRNL\x01";
const SLOT_MAGIC: [u8; 4] = *b"ZNDS";
/// Bytes of a body before the id.
const FIXED: usize = 64;
/// Bytes of an id.
const ID: usize = 16;
/// Where what the checksum covers begins.
const COVERED: usize = 16;
/// Bytes of a slot before its payload.
pub(crate) const SLOT_FIXED: usize = 24;
/// The most payload of a slot.
pub(crate) const SLOT_PAYLOAD: usize = 4 << 20;
/// What it may be instead where the device has no room for so much, by its logarithm.
const LEAST_PAYLOAD_LOG: u32 = 12;
/// Slots begin at multiples of this.
const SLOT_ALIGN: u64 = 4096;
/// Longest body: two headers at their limit, and a flag for each variable.
pub(crate) const BODY_MAX: u64 = 1 << 30;
/// What a device writes at once: a torn file has each of these old or new.
const SECTOR: usize = 512;

/// What is to be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// The header is rewritten in place.
    Header,
    /// Data moves in place, then the header is rewritten.
    Move {
        /// The most bytes moved at a time: a power of two, [`SLOT_PAYLOAD`] or less.
        payload: usize,
    },
}

impl ChangeKind {
    fn encode(self) -> u32 {
        match self {
            ChangeKind::Header => 1,
            ChangeKind::Move { payload: SLOT_PAYLOAD } => 2,
            ChangeKind::Move { payload } => payload.checked_ilog2().unwrap_or(0) << 8 | 2,
        }
    }

    fn decode(number: u32) -> Option<ChangeKind> {
        let most = SLOT_PAYLOAD.ilog2();
        match (number & 0xFF, number >> 8) {
            (1, 0) => Some(ChangeKind::Header),
            (2, 0) => Some(ChangeKind::Move { payload: SLOT_PAYLOAD }),
            (2, log @ LEAST_PAYLOAD_LOG..) if log < most => {
                Some(ChangeKind::Move { payload: 1 << log })
            }
            _ => None,
        }
    }

    /// The most payload of a slot.
    pub(crate) fn payload(self) -> usize {
        match self {
            ChangeKind::Header => 0,
            ChangeKind::Move { payload } => payload,
        }
    }
}

/// A journal's description of the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalBody {
    /// A random number, none in a journal of the former version.
    pub(crate) id: Option<[u8; ID]>,
    pub(crate) kind: ChangeKind,
    /// What stands in the file, from its first byte on, where `new` goes; as long as that.
    pub(crate) old: Vec<u8>,
    /// What is to stand there.
    pub(crate) new: Vec<u8>,
    /// Records there are.
    pub(crate) n_records: u64,
    /// Bytes of the file before.
    pub(crate) stored: u64,
    /// For each variable of `new` whether it is left unfilled.
    pub(crate) no_fill: Vec<bool>,
}

/// A number of eight bytes at `at`.
fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

/// A number of four bytes at `at`.
fn small(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

impl JournalBody {
    fn lengths(&self) -> [usize; 3] {
        [self.old.len(), self.new.len(), self.no_fill.len()]
    }

    /// Bytes of the body.
    fn total(&self) -> usize {
        let fixed = FIXED.saturating_add(self.id.map_or(0, |id| id.len()));
        self.lengths().iter().fold(fixed, |sum, len| sum.saturating_add(*len))
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, NoMemory> {
        let (lengths, total) = (self.lengths(), self.total());
        let mut covered = memory::room(total)?;
        covered.extend_from_slice(&(total as u64).to_le_bytes());
        covered.extend_from_slice(&self.n_records.to_le_bytes());
        covered.extend_from_slice(&self.stored.to_le_bytes());
        lengths.iter().for_each(|len| covered.extend_from_slice(&(*len as u64).to_le_bytes()));
        covered.extend(self.id.into_iter().flatten());
        covered.extend_from_slice(&self.old);
        covered.extend_from_slice(&self.new);
        covered.extend(self.no_fill.iter().map(|flag| u8::from(*flag)));
        let mut bytes = memory::room(total)?;
        bytes.extend_from_slice(if self.id.is_some() { &MAGIC } else { &MAGIC_1 });
        bytes.extend_from_slice(&self.kind.encode().to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&covered).to_le_bytes());
        bytes.extend_from_slice(&covered);
        Ok(bytes)
    }

    /// Where the slots begin.
    pub(crate) fn slots_at(&self) -> u64 {
        round_up(self.total() as u64, SLOT_ALIGN)
    }

    /// The body at the beginning of a journal, of `most` bytes at most; `None` where it is not
    /// complete: its writer died before it had touched the file.
    ///
    /// # Errors
    /// What the storage reports; [`StorageError::MemoryLimit`].
    pub(crate) fn read(
        journal: &dyn Storage,
        most: u64,
    ) -> Result<Option<JournalBody>, ClassicError> {
        let mut start = [0; FIXED];
        if journal.read_at(0, &mut start)? < FIXED {
            return Ok(None);
        }
        let total = number(&start, COVERED).unwrap_or(0);
        if total < FIXED as u64 || total > journal.len()?.min(most) {
            return Ok(None);
        }
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        let mut bytes = memory::filled(total, 0)?;
        if journal.read_at(0, &mut bytes)? < bytes.len() {
            return Ok(None);
        }
        Ok(JournalBody::decode(&bytes))
    }

    fn decode(bytes: &[u8]) -> Option<JournalBody> {
        let (magic, _) = bytes.split_first_chunk()?;
        let kind = ChangeKind::decode(small(bytes, 8)?)?;
        let covered = bytes.get(COVERED..)?;
        if small(bytes, 12)? != crc32fast::hash(covered) {
            return None;
        }
        let length = |at| number(bytes, at).and_then(|len| usize::try_from(len).ok());
        let rest = bytes.get(FIXED..)?;
        let (id, rest) = match *magic {
            MAGIC => rest.split_first_chunk::<ID>().map(|(id, rest)| (Some(*id), rest))?,
            MAGIC_1 => (None, rest),
            _ => return None,
        };
        let (old, rest) = rest.split_at_checked(length(40)?)?;
        let (new, flags) = rest.split_at_checked(length(48)?)?;
        (flags.len() == length(56)? && old.len() == new.len()).then(|| JournalBody {
            id,
            kind,
            old: old.to_vec(),
            new: new.to_vec(),
            n_records: number(bytes, 24).unwrap_or(0),
            stored: number(bytes, 32).unwrap_or(0),
            no_fill: flags.iter().map(|flag| *flag != 0).collect(),
        })
    }

    /// Whether this is the journal of the file in `storage`: each sector of the header is as it was
    /// or as it is to be. Otherwise the file was made or changed by somebody else since.
    ///
    /// # Errors
    /// What the storage reports.
    pub(crate) fn belongs_to(&self, storage: &dyn Storage) -> Result<bool, ClassicError> {
        let mut found = memory::filled(self.new.len(), 0)?;
        read_or_zeros(storage, 0, &mut found)?;
        let known = self.old.chunks(SECTOR).zip(self.new.chunks(SECTOR));
        Ok(found.chunks(SECTOR).zip(known).all(|(found, (old, new))| found == old || found == new))
    }
}

/// The two slots of a move's journal, used in turns: while one is written the other is intact.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    journal: Arc<dyn Storage>,
    id: Option<[u8; ID]>,
    at: u64,
    /// The most payload of one.
    payload: usize,
}

impl Slots {
    pub(crate) fn new(journal: Arc<dyn Storage>, body: &JournalBody) -> Slots {
        Slots { journal, id: body.id, at: body.slots_at(), payload: body.kind.payload() }
    }

    /// The checksum of a slot, of which `covered` is what lies behind it.
    fn checksum(&self, covered: &[u8]) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        crc.update(self.id.as_ref().map_or(&[], |id| &id[..]));
        crc.update(covered);
        crc.finalize()
    }

    /// Makes sure of the room for what the two slots will keep at most, before anything has moved.
    /// Nothing that was there is a slot then.
    ///
    /// # Errors
    /// What the storage reports, `ENOSPC` above all.
    pub(crate) fn reserve(&self, most: [usize; 2]) -> Result<(), ClassicError> {
        for (parity, most) in (0..).zip(most) {
            let len = SLOT_FIXED.saturating_add(most);
            self.journal.write_at(self.place(parity), &memory::filled(len, 0)?)?;
        }
        Ok(self.journal.barrier()?)
    }

    fn place(&self, batch: u64) -> u64 {
        let slot = round_up(SLOT_FIXED.saturating_add(self.payload) as u64, SLOT_ALIGN);
        self.at.saturating_add(if batch & 1 == 0 { 0 } else { slot })
    }

    /// Writes `block`, a payload behind [`SLOT_FIXED`] bytes for the slot's own, as that of a batch.
    pub(crate) fn write(&self, batch: u64, block: &mut [u8]) -> Result<(), ClassicError> {
        let len = block.len().saturating_sub(SLOT_FIXED) as u64;
        let mut start = [0u8; SLOT_FIXED];
        let parts = [&SLOT_MAGIC[..], &[0; 4], &batch.to_le_bytes(), &len.to_le_bytes()].concat();
        start.copy_from_slice(&parts);
        if let Some(head) = block.first_chunk_mut::<SLOT_FIXED>() {
            *head = start;
        }
        let crc = self.checksum(block.get(8..).unwrap_or_default());
        if let Some(place) = block.get_mut(4..8) {
            place.copy_from_slice(&crc.to_le_bytes());
        }
        self.journal.write_at(self.place(batch), block)?;
        self.journal.barrier()?;
        Ok(())
    }

    /// The number of the last batch that was begun, and its slot, payload behind [`SLOT_FIXED`]
    /// bytes.
    ///
    /// # Errors
    /// What the storage reports.
    pub(crate) fn last(&self) -> Result<Option<(u64, Vec<u8>)>, ClassicError> {
        let mut last: Option<(u64, Vec<u8>)> = None;
        for parity in [0, 1] {
            let found = self.read(parity)?;
            if found.as_ref().map(|slot| slot.0) > last.as_ref().map(|slot| slot.0) {
                last = found;
            }
        }
        Ok(last)
    }

    fn read(&self, parity: u64) -> Result<Option<(u64, Vec<u8>)>, ClassicError> {
        let mut start = [0; SLOT_FIXED];
        let at = self.place(parity);
        self.journal.read_at(at, &mut start)?;
        let (batch, len) = (number(&start, 8).unwrap_or(0), number(&start, 16).unwrap_or(0));
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if start.get(..4) != Some(&SLOT_MAGIC[..]) || len > self.payload || batch & 1 != parity {
            return Ok(None);
        }
        let mut block = memory::filled(SLOT_FIXED.saturating_add(len), 0)?;
        let got = self.journal.read_at(at, &mut block)?;
        let intact = small(&start, 4) == Some(self.checksum(block.get(8..).unwrap_or_default()));
        Ok((got == block.len() && intact).then_some((batch, block)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_storage::backend::Memory;

    fn body() -> JournalBody {
        JournalBody {
            id: Some([7; ID]),
            kind: ChangeKind::Move { payload: SLOT_PAYLOAD },
            old: (0..5000u32).map(|i| (i % 7) as u8).collect(),
            new: (0..5000u32).map(|i| (i % 11) as u8).collect(),
            n_records: 3,
            stored: 1 << 40,
            no_fill: vec![true, false, true],
        }
    }

    #[test]
    fn a_body_is_complete_or_nothing() {
        for body in [body(), JournalBody { id: None, ..body() }] {
            let read =
                |bytes: &[u8]| JournalBody::read(&Memory::from_slice(bytes), BODY_MAX).unwrap();
            let bytes = body.encode().unwrap();
            assert_eq!(read(&bytes), Some(body));
            for len in (0..bytes.len()).step_by(97) {
                assert_eq!(read(&bytes[..len]), None, "{len}");
            }
            for at in (0..bytes.len()).step_by(31) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x40;
                assert_eq!(read(&damaged), None, "{at}");
            }
        }
    }

    #[test]
    fn the_bytes_of_the_former_version_are_as_they_were() {
        let (old, new, id) = (vec![1; 2], vec![2; 2], None);
        let body = JournalBody { id, old, new, no_fill: vec![true], ..body() };
        let bytes = body.encode().unwrap();
        assert_eq!(&bytes[..12], b"ZNDJRNL\x01\x02\0\0\0");
        assert_eq!(bytes[16..24], 69u64.to_le_bytes());
        assert_eq!(&bytes[64..], [1, 1, 2, 2, 1]);
        let mut block = vec![9; SLOT_FIXED + 3];
        Slots::new(Arc::new(Memory::new()), &body).write(0, &mut block).unwrap();
        assert_eq!(small(&block, 4), Some(crc32fast::hash(&block[8..])));
    }

    #[test]
    fn no_body_is_longer_than_it_may_be() {
        let bytes = body().encode().unwrap();
        let (memory, len) = (Memory::from_slice(&bytes), bytes.len() as u64);
        assert!(JournalBody::read(&memory, len).unwrap().is_some());
        assert_eq!(JournalBody::read(&memory, len - 1).unwrap(), None);
    }

    #[test]
    fn a_slot_of_another_journal_does_not_count() {
        let journal: Arc<dyn Storage> = Arc::new(Memory::new());
        let slots = Slots::new(Arc::clone(&journal), &body());
        slots.write(0, &mut [1; SLOT_FIXED + 100]).unwrap();
        assert!(slots.last().unwrap().is_some());
        let other = Slots::new(journal, &JournalBody { id: Some([8; ID]), ..body() });
        assert_eq!(other.last().unwrap(), None);
    }

    #[test]
    fn the_kind_says_how_long_slots_are() {
        let kinds = (12..=22).map(|log| ChangeKind::Move { payload: 1 << log });
        for kind in kinds.chain([ChangeKind::Header]) {
            let bytes = JournalBody { kind, ..body() }.encode().unwrap();
            assert_eq!(
                JournalBody::read(&Memory::from_slice(&bytes), BODY_MAX).unwrap().unwrap().kind,
                kind
            );
        }
        for number in [0, 3, 11 << 8 | 2, 22 << 8 | 2, 63 << 8 | 2, 1 << 8 | 1] {
            assert_eq!(ChangeKind::decode(number), None, "{number}");
        }
    }

    #[test]
    fn a_torn_header_belongs_and_a_foreign_one_does_not() {
        let body = body();
        let old = Memory::from_slice(&body.old);
        assert!(body.belongs_to(&old).unwrap());
        old.write_at(512, &body.new[512..1024]).unwrap();
        assert!(body.belongs_to(&old).unwrap());
        old.write_at(0, &body.new).unwrap();
        assert!(body.belongs_to(&old).unwrap());
        old.write_at(700, b"others").unwrap();
        assert!(!body.belongs_to(&old).unwrap());
    }

    #[test]
    fn the_later_slot_counts_and_a_torn_one_does_not() {
        let journal: Arc<dyn Storage> = Arc::new(Memory::new());
        let slots = Slots::new(Arc::clone(&journal), &body());
        assert_eq!(slots.last().unwrap(), None);
        for batch in 0..3 {
            let mut block = vec![batch as u8 + 1; SLOT_FIXED + 100];
            slots.write(batch, &mut block).unwrap();
            let (last, found) = slots.last().unwrap().unwrap();
            assert_eq!((last, &found[SLOT_FIXED..]), (batch, &block[SLOT_FIXED..]));
        }
        journal.write_at(slots.place(2) + SLOT_FIXED as u64, b"torn").unwrap();
        assert_eq!(slots.last().unwrap().unwrap().0, 1);
    }
}

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use super::*;
use zonda_format::{Error, VarRef};
use zonda_model::VarId;
use zonda_storage::backend::Memory;
use zonda_storage::{Storage, StorageError, WriteRange, forward};

/// Chunks of one byte each, whose filter waits for leave, doubles them, refuses them or panics.
#[derive(Debug)]
struct Fakes {
    chunks: Vec<u8>,
    gate: Option<Receiver<()>>,
}

const REFUSED: u8 = 255;
const PANICS: u8 = 254;

impl DetachedChunks for Fakes {
    fn n_bytes(&self) -> u64 {
        self.chunks.len() as u64
    }

    fn filter(self: Box<Self>) -> Vec<FilterResult> {
        // Nobody gives leave any more: all may.
        let _leave = self.gate.as_ref().map(Receiver::recv);
        let one = |byte: u8| {
            assert_ne!(byte, PANICS);
            let refused = || Error::with_text(NcError::Filter, "no");
            match byte {
                REFUSED => Err(UnfilteredChunk { error: refused(), bytes: vec![byte] }),
                _ => Ok(FilteredBytes { mask: 0, bytes: vec![byte * 2] }),
            }
        };
        self.chunks.into_iter().map(one).collect()
    }
}

fn fakes(chunks: &[u8]) -> Box<Fakes> {
    Box::new(Fakes { chunks: chunks.to_vec(), gate: None })
}

fn gated(chunks: &[u8]) -> (Box<Fakes>, Sender<()>) {
    let (leave, gate) = mpsc::channel();
    (Box::new(Fakes { chunks: chunks.to_vec(), gate: Some(gate) }), leave)
}

fn put(number: u64) -> PutLabel {
    PutLabel { number, is_alone: false, var: VarRef::from(VarId(3)), name: Arc::from("/v") }
}

fn queue(storage: Arc<dyn Storage>) -> (Arc<RankQueue>, Arc<QueueRoom>) {
    let (queue, room) = (RankQueue::new(storage), QueueRoom::new(1 << 20));
    queue.set(Some(Arc::clone(&room))).unwrap();
    (queue, room)
}

/// Chunks to the filters of a queue.
fn later(queue: &RankQueue, of: u64, chunks: Box<Fakes>) -> u64 {
    let counted = queue.room_for(chunks.n_bytes()).unwrap();
    queue.filter_later(put(of), chunks, counted)
}

fn bytes(done: Option<(Vec<FilterResult>, CountedBytes)>) -> Vec<Option<u8>> {
    done.unwrap().0.into_iter().map(|one| one.ok().map(|chunk| chunk.bytes[0])).collect()
}

/// All of the room is free.
fn is_free(room: &Arc<QueueRoom>) -> bool {
    let is_free = room.take(room.limit());
    room.give_back(if is_free { room.limit() } else { 0 });
    is_free
}

#[test]
fn chunks_wait_for_who_asks_and_count_until_then() {
    let (queue, room) = queue(Arc::new(Memory::new()));
    let (chunks, leave) = gated(&[1, 2]);
    let first = later(&queue, 1, chunks);
    let second = later(&queue, 2, fakes(&[3]));
    let numbers = || [Some(first), None, Some(second)].into_iter();
    assert_eq!(queue.n_filtered(numbers()), 0);
    assert!(queue.status().0 >= 3 && !is_free(&room));
    // What filters have is not what has to be written.
    assert_eq!(queue.first_number(), None);
    drop(leave);
    queue.drain(false).unwrap();
    assert_eq!(queue.n_filtered(numbers()), 3);
    assert!(queue.status().0 > 0 && !is_free(&room));
    assert_eq!(bytes(queue.filtered(second)), [Some(6)]);
    assert_eq!(bytes(queue.filtered(first)), [Some(2), Some(4)]);
    assert!(queue.filtered(first).is_none());
    assert!(is_free(&room) && queue.status().0 == 0);
    queue.end();
}

#[test]
fn who_waits_for_filters_does_their_work_where_no_thread_does() {
    let (queue, _) = queue(Arc::new(Memory::new()));
    let (chunks, leave) = gated(&[1]);
    let first = later(&queue, 1, chunks);
    // The thread, if there is one, is with the first.
    let second = later(&queue, 1, fakes(&[2]));
    drop(leave);
    assert_eq!(bytes(queue.filtered(second)), [Some(4)]);
    assert_eq!(bytes(queue.filtered(first)), [Some(2)]);
    queue.end();
}

#[test]
fn what_filters_refuse_comes_back_and_the_first_reason_is_told_once() {
    let (queue, room) = queue(Arc::new(Memory::new()));
    let first = later(&queue, 7, fakes(&[1, REFUSED, 3]));
    let second = later(&queue, 8, fakes(&[PANICS]));
    queue.drain(false).unwrap();
    let (code, text) = queue.refused().unwrap();
    assert_eq!((code, &text[..]), (NcError::Filter, "put 7 of all ranks, to /v, failed: no"));
    assert!(queue.take_refused().is_some() && queue.refused().is_none());
    let (mut done, counted) = queue.filtered(first).unwrap();
    assert!(done.pop().unwrap().is_ok());
    assert_eq!(done.pop().unwrap().unwrap_err().bytes, [REFUSED]);
    drop(counted);
    // What panicked is lost.
    assert_eq!(bytes(queue.filtered(second)), []);
    later(&queue, 9, fakes(&[PANICS]));
    queue.drain(false).unwrap();
    let (code, text) = queue.refused().unwrap();
    assert!(code == NcError::Io && text.starts_with("put 9 of all ranks"), "{text}");
    queue.give_up_filters();
    assert!(is_free(&room));
    queue.end();
}

#[test]
fn what_is_given_up_is_forgotten() {
    let (queue, room) = queue(Arc::new(Memory::new()));
    let (chunks, leave) = gated(&[1]);
    let first = later(&queue, 1, chunks);
    let second = later(&queue, 1, fakes(&[2]));
    leave.send(()).unwrap();
    queue.give_up_filters();
    assert!(queue.filtered(first).is_none() && queue.filtered(second).is_none());
    assert!(is_free(&room));
    queue.drain(false).unwrap();
    queue.end();
}

/// Memory that refuses as many writes as it is told.
#[derive(Debug)]
struct Full {
    below: Memory,
    n_refused: AtomicUsize,
}

impl Storage for Full {
    forward! {
        this => this.below;
        read_at, read_ranges, write_at, fill_at, advise, rest, len, most_len, has_other_writers, remote, set_len, barrier, sync, invalidate, stamp
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        let one_less = |left: usize| left.checked_sub(1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.n_refused.fetch_update(set, fetch, one_less).is_ok() {
            let text = Arc::from("full");
            let (at, lost_sync, refused) = (None, false, false);
            return Err(StorageError::OfRank { rank: 0, errno: 28, at, lost_sync, refused, text });
        }
        self.below.write_ranges(ranges)
    }

    fn describe(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("full")
    }
}

#[test]
fn chunks_that_cannot_be_written_stay_also_in_a_queue_that_is_off_and_filters_go_on() {
    for is_on in [true, false] {
        let n_refused = AtomicUsize::new(1);
        let storage = Arc::new(Full { below: Memory::new(), n_refused });
        let (queue, room) = queue(Arc::<Full>::clone(&storage));
        if !is_on {
            queue.set(None).unwrap();
        }
        let counted = queue.counted(8);
        queue.accept_chunks(put(3), vec![(4, vec![7; 4]), (20, vec![8; 4])], counted);
        assert_eq!(queue.drain(false).unwrap_err().code(), NcError::System(28));
        let text = queue.failure().unwrap().to_string();
        assert!(text.starts_with("put 3 of all ranks, to /v, which was accepted before"), "{text}");
        assert_eq!((queue.status().0, queue.first_number()), (8, Some(3)));
        assert!(queue.before([(22, 1)].into_iter()).is_err());
        queue.before([(8, 12)].into_iter()).unwrap();
        if is_on {
            let task = later(&queue, 4, fakes(&[5]));
            assert_eq!(bytes(queue.filtered(task)), [Some(10)]);
        }
        // A commit gets over it.
        queue.drain(true).unwrap();
        let made = storage.below.to_vec().unwrap();
        assert_eq!((&made[4..8], &made[20..]), (&[7; 4][..], &[8; 4][..]));
        assert_eq!(queue.first_number(), None);
        queue.end();
        assert!(is_free(&room));
    }
}

#[test]
fn a_put_that_comes_late_is_still_the_first_that_is_not_written() {
    let n_refused = AtomicUsize::new(1);
    let storage = Arc::new(Full { below: Memory::new(), n_refused });
    let (queue, _) = queue(Arc::<Full>::clone(&storage));
    queue.accept(&[WriteRange { at: 0, data: b"abc" }], &put(9)).unwrap();
    assert!(queue.drain(false).is_err());
    queue.accept_chunks(put(4), vec![(10, vec![1])], queue.counted(1));
    assert_eq!(queue.first_number(), Some(4));
    queue.drain(true).unwrap();
    queue.end();
}

#[test]
fn there_is_room_for_what_fits_when_the_rest_is_written() {
    let (queue, room) = queue(Arc::new(Memory::new()));
    let most = room.limit();
    assert!(queue.room_for(most + 1).is_none());
    let all = queue.room_for(most).unwrap();
    assert!(queue.is_short_of(1) && queue.room_for(1).is_none());
    // What is written gives its room back to who waits for it.
    queue.accept_chunks(put(1), vec![(0, vec![1])], all);
    drop(queue.room_for(most).unwrap());
    assert!(!queue.is_short_of(most));
    queue.set(None).unwrap();
    assert!(queue.is_short_of(0) && queue.room_for(1).is_none());
    queue.end();
}

use std::sync::mpsc;
use std::time::Duration;

use super::*;
use zonda_model::{NcError, VarId};
use zonda_storage::backend::Memory;
use zonda_storage::forward;

/// Memory whose writes wait for leave, and may fail.
#[derive(Debug)]
struct Slow {
    below: Memory,
    gate: Mutex<mpsc::Receiver<bool>>,
}

impl Slow {
    /// Waits for leave to write: true writes, false refuses. After the last one all may.
    fn pass(&self) -> Result<(), StorageError> {
        match self.gate.lock().recv() {
            Ok(false) => Err(StorageError::OfRank {
                rank: 0,
                errno: 28,
                at: None,
                lost_sync: false,
                refused: false,
                text: Arc::from("full"),
            }),
            _ => Ok(()),
        }
    }
}

impl Storage for Slow {
    forward! {
        this => this.below;
        read_at, read_ranges, fill_at, advise, rest, len, most_len, has_other_writers, remote, set_len, barrier, sync, invalidate, stamp
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.pass()?;
        self.below.write_at(at, data)
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        self.pass()?;
        self.below.write_ranges(ranges)
    }

    fn describe(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("slow")
    }
}

/// A queue over such memory, with room for so many bytes.
fn queue(limit: u64) -> (Arc<RankQueue>, Arc<Slow>, mpsc::Sender<bool>) {
    let (leave, gate) = mpsc::channel();
    let gate = Mutex::ranked(Rank::Storage, gate);
    let storage = Arc::new(Slow { below: Memory::new(), gate });
    let below: Arc<dyn Storage> = Arc::<Slow>::clone(&storage);
    let queue = RankQueue::new(below);
    queue.set(Some(QueueRoom::new(limit))).unwrap();
    (queue, storage, leave)
}

fn put(number: u64, is_alone: bool) -> PutLabel {
    PutLabel { number, is_alone, var: VarRef::from(VarId(3)), name: Arc::from("/v") }
}

fn accept(queue: &RankQueue, at: u64, data: &[u8], of: &PutLabel) -> Result<(), StorageError> {
    queue.accept(&[WriteRange { at, data }], of)
}

#[test]
fn what_waits_is_written_in_order_and_seen_when_it_is_read() {
    let (queue, storage, leave) = queue(1 << 20);
    accept(&queue, 10, b"first", &put(1, false)).unwrap();
    accept(&queue, 12, b"second", &put(2, false)).unwrap();
    accept(&queue, 100, b"alone", &put(2, true)).unwrap();
    assert_eq!(queue.status().0, 16);
    assert_eq!(queue.first_number(), Some(1));
    assert!(queue.has_alone(VarId(3).into()) && !queue.has_alone(VarId(4).into()));
    // Nothing of these waits: nobody waits for it.
    queue.before([(0, 10), (18, 50)].into_iter()).unwrap();
    assert!(storage.to_vec().unwrap().is_empty());
    leave.send(true).unwrap();
    leave.send(true).unwrap();
    queue.before([(17, 1)].into_iter()).unwrap();
    assert_eq!(&storage.to_vec().unwrap()[10..], b"fisecond");
    assert_eq!(queue.first_number(), Some(3));
    drop(leave);
    queue.drain(false).unwrap();
    assert_eq!((queue.status().0, queue.first_number()), (0, None));
    assert_eq!(&storage.to_vec().unwrap()[100..], b"alone");
    queue.end();
}

impl Slow {
    fn to_vec(&self) -> Result<Vec<u8>, StorageError> {
        self.below.to_vec()
    }
}

#[test]
fn what_is_refused_stays_with_all_behind_it_until_it_is_tried_again() {
    let (queue, storage, leave) = queue(1 << 20);
    leave.send(false).unwrap();
    accept(&queue, 0, b"abc", &put(7, false)).unwrap();
    let error = queue.drain(false).unwrap_err();
    assert_eq!(error.code(), NcError::System(28));
    assert_eq!(
        error.to_string(),
        "put 7 of all ranks, to /v, which was accepted before failed: on MPI rank 0: full"
    );
    assert_eq!(queue.failure().unwrap().to_string(), error.to_string());
    // There is room for what comes behind.
    accept(&queue, 3, b"def", &put(8, false)).unwrap();
    assert!(queue.before([(2, 1)].into_iter()).is_err());
    queue.before([(6, 1)].into_iter()).unwrap();
    // To switch it off tries again, too.
    leave.send(false).unwrap();
    assert!(queue.set(None).is_err() && queue.is_on());
    drop(leave);
    queue.drain(true).unwrap();
    assert!(queue.failure().is_none());
    assert_eq!(storage.to_vec().unwrap(), b"abcdef");
    queue.end();
}

#[test]
fn a_put_waits_for_room_and_takes_no_more_than_there_is() {
    let (limit, n) = (64_u64 << 10, 1 << 20);
    let (queue, storage, leave) = queue(limit);
    let data: Vec<u8> = (0..n).map(|at| (at / 7) as u8).collect();
    let (by, given) = (Arc::clone(&queue), data.clone());
    let put_all = move || accept(&by, 5, &given, &put(1, false));
    let putting = worker::spawn(String::from("put"), Purpose::Share, put_all).unwrap();
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(5));
        assert!(!putting.is_finished());
        assert!(queue.status().0 as u64 <= limit);
        leave.send(true).unwrap();
    }
    drop(leave);
    putting.join().unwrap().unwrap();
    queue.drain(false).unwrap();
    assert_eq!(storage.to_vec().unwrap()[5..], data);
    let room = queue.state.lock().room.clone().unwrap();
    queue.end();
    // All of it was given back.
    assert!(room.take(limit) && !room.take(1));
    room.give_back(limit);
}

#[test]
fn short_runs_count_with_their_places() {
    let (queue, storage, leave) = queue(16 << 10);
    let runs: Vec<u8> = (0..40_000).map(|at| at as u8).collect();
    let ranges: Vec<WriteRange<'_>> = runs
        .chunks(1)
        .enumerate()
        .map(|(at, data)| WriteRange { at: 2 * at as u64, data })
        .collect();
    drop(leave);
    queue.accept(&ranges, &put(1, false)).unwrap();
    queue.drain(false).unwrap();
    let all = storage.to_vec().unwrap();
    assert!(all.iter().step_by(2).eq(&runs));
    queue.end();
}

#[test]
fn a_queue_that_is_given_up_gives_its_room_back() {
    let (queue, storage, leave) = queue(1 << 20);
    leave.send(false).unwrap();
    accept(&queue, 0, &[1; 100_000], &put(1, false)).unwrap();
    assert!(queue.drain(false).is_err());
    queue.discard();
    let room = queue.state.lock().room.clone().unwrap();
    assert!(room.take(1 << 20));
    room.give_back(1 << 20);
    queue.drain(false).unwrap();
    assert!(storage.to_vec().unwrap().is_empty());
    queue.end();
}

//! One object as a storage: what is read, by how many requests, and what goes wrong.

#![expect(clippy::single_range_in_vec_init, reason = "lists of ranges, some of which have one")]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use zonda_remote::RemoteError;
use zonda_remote::file::RemoteFile;
use zonda_remote::objects::{ListedObject, MemoryObjects, ObjectState, Objects, RangeRead};
use zonda_storage::{ReadRange, RemoteFailure, Storage, StorageError};

const HEAD: u64 = 256 << 10;

fn bytes(len: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(len as u64);
    (0..len).map(|_| random.u8(..)).collect()
}

fn memory(content: &[u8], latency: Duration) -> Arc<MemoryObjects> {
    let objects = Arc::new(MemoryObjects::new(latency));
    objects.put("key", content).unwrap();
    objects
}

fn open(objects: &Arc<MemoryObjects>) -> RemoteFile {
    let file = RemoteFile::open_key(Arc::clone(objects) as Arc<dyn Objects>, "key").unwrap();
    assert_eq!(objects.take_asked(), [(0, HEAD)], "one request opens");
    file
}

fn tell(file: &RemoteFile, ranges: &[Range<u64>]) {
    file.remote().unwrap().will_read(ranges);
}

fn total(asked: &[(u64, u64)]) -> u64 {
    asked.iter().map(|(_, len)| len).sum()
}

#[test]
fn a_short_object_comes_with_the_first_request() {
    for len in [0, 1, 1000, HEAD as usize] {
        let content = bytes(len);
        let objects = memory(&content, Duration::ZERO);
        let file = open(&objects);
        assert_eq!(file.len().unwrap(), len as u64);
        let mut buf = vec![7; len + 10];
        assert_eq!(file.read_at(0, &mut buf).unwrap(), len);
        assert_eq!(buf[..len], content);
        assert_eq!(buf[len..], [7; 10], "behind the end nothing is touched");
        assert_eq!(file.read_at(len as u64 + 5, &mut buf).unwrap(), 0);
        assert_eq!(objects.take_asked(), []);
    }
}

#[test]
fn random_reads_of_threads_give_what_is_there() {
    let content = bytes(3_000_000);
    let objects = memory(&content, Duration::ZERO);
    let file = open(&objects);
    std::thread::scope(|scope| {
        for seed in 0..6 {
            let (file, content) = (&file, &content);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..300 {
                    let at = random.usize(0..content.len() + 100);
                    let most = 1 << random.usize(0..20);
                    let len = random.usize(0..most);
                    let end = (at + len).min(content.len());
                    if random.bool() {
                        let starts: Vec<u64> =
                            std::iter::repeat_with(|| random.u64(0..3_000_000)).take(5).collect();
                        let long = random.u64(0..100_000);
                        let ranges: Vec<Range<u64>> =
                            starts.into_iter().map(|from| from..from + long).collect();
                        tell(file, &ranges);
                    }
                    let mut buf = vec![0; len];
                    let got = file.read_at(at as u64, &mut buf).unwrap();
                    assert_eq!(buf[..got], content[at.min(end)..end], "{at} {len}");
                }
            });
        }
    });
}

#[test]
fn what_was_told_is_asked_for_at_once_and_once() {
    let content = bytes(20_000_000);
    let latency = Duration::from_millis(40);
    let objects = memory(&content, latency);
    let file = open(&objects);
    let ranges: Vec<Range<u64>> = (1..17).map(|i| 1_000_000 * i..1_000_000 * i + 50_000).collect();
    let begin = Instant::now();
    tell(&file, &ranges);
    for range in &ranges {
        let mut buf = vec![0; 50_000];
        file.read_at(range.start, &mut buf).unwrap();
        assert_eq!(buf, content[range.start as usize..range.end as usize]);
    }
    let (took, asked) = (begin.elapsed(), objects.take_asked());
    // Eight at a time would take two latencies; one after the other sixteen.
    assert!(took < latency * 12, "{took:?}");
    assert_eq!((asked.len(), total(&asked)), (16, 800_000));
    for range in &ranges {
        file.read_at(range.start, &mut [0; 50_000]).unwrap();
    }
    assert_eq!(objects.take_asked(), [], "it is here");
}

#[test]
fn a_walk_that_nobody_told_of_needs_few_requests_and_few_bytes_more() {
    let content = bytes(8_000_000);
    let objects = memory(&content, Duration::ZERO);
    let file = open(&objects);
    let mut at = 0;
    while at < 4_000_000 {
        let mut buf = [0; 4096];
        file.read_at(at, &mut buf).unwrap();
        assert_eq!(buf, content[at as usize..at as usize + 4096]);
        at += 4096;
    }
    let asked = objects.take_asked();
    assert!(asked.len() <= 20, "{asked:?}");
    assert!(total(&asked) <= 4_000_000 - HEAD + (1 << 20), "{}", total(&asked));
}

#[test]
fn a_whole_object_in_large_reads_costs_its_bytes() {
    let content = bytes(30_000_000);
    let objects = memory(&content, Duration::ZERO);
    let file = open(&objects);
    let mut got = vec![0; content.len()];
    for (i, part) in got.chunks_mut(10_000_000).enumerate() {
        assert_eq!(file.read_at(10_000_000 * i as u64, part).unwrap(), part.len());
    }
    assert_eq!(got, content);
    assert_eq!(total(&objects.take_asked()), content.len() as u64 - HEAD);
    let (mut a, mut b, mut c) = (vec![0; 3000], vec![0; 70_000], vec![0; 5]);
    let mut ranges = [
        ReadRange::new(29_999_000, &mut a),
        ReadRange::new(500_000, &mut b),
        ReadRange::new(40_000_000, &mut c),
    ];
    file.read_ranges(&mut ranges).unwrap();
    assert_eq!(ranges.map(|range| range.got), [1000, 70_000, 0]);
    assert_eq!(a[..1000], content[29_999_000..]);
    assert_eq!(b, content[500_000..570_000]);
}

#[test]
fn a_file_that_is_read_part_by_part_needs_few_round_trips() {
    let content = bytes(7_000_000);
    let latency = Duration::from_millis(5);
    let objects = memory(&content, latency);
    let file = open(&objects);
    // Twenty variables, one after the other, with a little of something else between.
    let begin = Instant::now();
    for i in 0..20 {
        let at = 300_000 + i * 331_000;
        tell(&file, &[at..at + 165_000, at + 165_000..at + 330_000]);
        let mut buf = vec![0; 330_000];
        file.read_at(at, &mut buf).unwrap();
        assert_eq!(buf, content[at as usize..at as usize + 330_000]);
        tell(&file, &[7000 + i..7100 + i]);
    }
    let (took, asked) = (begin.elapsed(), objects.take_asked());
    assert!(total(&asked) <= 20 * 331_000 + (1 << 20), "{}", total(&asked));
    assert!(asked.len() <= 40, "{asked:?}");
    // One alone, or two far from each other, bring nothing besides.
    let file = open(&objects);
    tell(&file, &[2_000_000..2_400_000]);
    tell(&file, &[5_000_000..5_400_000]);
    for at in [2_000_000, 5_000_000] {
        file.read_at(at, &mut vec![0; 400_000]).unwrap();
    }
    assert_eq!(total(&objects.take_asked()), 800_000, "{took:?}");
}

#[test]
fn records_of_one_variable_among_others_come_with_them() {
    let content = bytes(18_000_000);
    let objects = memory(&content, Duration::from_millis(10));
    let file = open(&objects);
    let records: Vec<Range<u64>> =
        (0..1900).map(|i| 300_000 + i * 9_000..300_456 + i * 9_000).collect();
    tell(&file, &records);
    for record in &records {
        let mut buf = [0; 456];
        file.read_at(record.start, &mut buf).unwrap();
        assert_eq!(buf, content[record.start as usize..record.end as usize]);
    }
    let asked = objects.take_asked();
    assert!(asked.len() <= 64, "{} requests", asked.len());
    // The next variable is there already.
    let next: Vec<Range<u64>> =
        records.iter().map(|range| range.start + 456..range.end + 456).collect();
    tell(&file, &next);
    file.read_at(next[1000].start, &mut [0; 456]).unwrap();
    assert!(objects.take_asked().len() <= 2);
}

#[test]
fn small_reads_far_apart_cost_a_block_each() {
    let objects = memory(&bytes(50_000_000), Duration::ZERO);
    let file = open(&objects);
    for i in 0..20u64 {
        file.read_at(1_000_000 + (i * 7 % 20) * 2_000_003, &mut [0; 100]).unwrap();
    }
    let asked = objects.take_asked();
    assert_eq!(asked.len(), 20);
    assert!(total(&asked) <= 20 * (128 << 10), "{asked:?}");
}

#[test]
fn an_object_that_was_replaced_is_an_error_and_never_a_mixture() {
    let content = bytes(2_000_000);
    let objects = memory(&content, Duration::ZERO);
    let file = open(&objects);
    file.read_at(1_000_000, &mut [0; 10]).unwrap();
    objects.put("key", &bytes(2_000_001)).unwrap();
    let error = file.read_at(1_900_000, &mut [0; 10]).unwrap_err();
    assert!(
        matches!(&error, StorageError::Remote { kind: RemoteFailure::Broken, range: Some(_), .. }),
        "{error}"
    );
    assert!(error.to_string().contains("changed"), "{error}");
    let mut buf = [0; 10];
    file.read_at(1_000_000, &mut buf).unwrap();
    assert_eq!(buf, content[1_000_000..1_000_010], "what is here is of the object that was opened");
    objects.delete("key").unwrap();
    assert_eq!(
        file.read_at(1_500_000, &mut buf).unwrap_err().raw_os_error(),
        RemoteFailure::NotFound.raw_os_error()
    );
}

/// Fails some requests, by number; the first is 0.
#[derive(Debug)]
struct Failing {
    inner: Arc<MemoryObjects>,
    number: AtomicUsize,
    fails: fn(usize) -> bool,
    /// By bringing half of what was asked for, without a word.
    is_short: bool,
}

impl Objects for Failing {
    fn get_range(
        &self,
        key: &str,
        at: u64,
        buf: &mut [u8],
        known: Option<&ObjectState>,
    ) -> Result<RangeRead, RemoteError> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let read = self.inner.get_range(key, at, buf, known)?;
        if !(self.fails)(number) {
            return Ok(read);
        }
        buf.fill(0xee);
        match self.is_short {
            true => Ok(RangeRead { got: read.got / 2, ..read }),
            false => {
                Err(RemoteError::new(&self.shown(key), RemoteFailure::TimedOut, "nothing came")
                    .of_range(at, buf.len() as u64))
            }
        }
    }

    fn get(&self, key: &str, most: u64) -> Result<(Vec<u8>, ObjectState), RemoteError> {
        self.inner.get(key, most)
    }

    fn put(&self, key: &str, bytes: &[u8]) -> Result<(), RemoteError> {
        self.inner.put(key, bytes)
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, RemoteError> {
        self.inner.list(prefix)
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        self.inner.delete(key)
    }

    fn shown(&self, key: &str) -> Arc<str> {
        self.inner.shown(key)
    }
}

#[test]
fn a_request_that_fails_is_an_error_of_its_reads_alone_and_is_made_again() {
    let content = bytes(6_000_000);
    for is_short in [false, true] {
        let failing = Failing {
            inner: memory(&content, Duration::ZERO),
            number: 0.into(),
            fails: |n| n % 3 == 2,
            is_short,
        };
        let file = RemoteFile::open_key(Arc::new(failing), "key").unwrap();
        let mut random = fastrand::Rng::with_seed(5);
        let (mut n_failed, mut n_good) = (0, 0);
        for _ in 0..300 {
            let at = random.u64(0..6_000_000 - 3000);
            if random.bool() {
                tell(&file, &[at..at + 2000, at / 2..at / 2 + 3000]);
            }
            let mut buf = [0; 3000];
            match file.read_at(at, &mut buf) {
                Ok(n) => {
                    assert_eq!(buf[..n], content[at as usize..at as usize + n]);
                    n_good += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains("memory://key"), "{error}");
                    n_failed += 1;
                }
            }
        }
        assert!(n_failed > 5 && n_good > 50, "{n_failed} {n_good}");
    }
    let failing = Failing {
        inner: memory(&content, Duration::ZERO),
        number: 0.into(),
        fails: |_| true,
        is_short: true,
    };
    assert!(
        RemoteFile::open_key(Arc::new(failing), "key").is_err(),
        "a head that is cut is no file"
    );
}

#[test]
fn a_failure_of_long_ago_is_no_error_of_a_read_now() {
    let content = bytes(2_000_000);
    // The head comes, then one request fails.
    let failing = Failing {
        inner: memory(&content, Duration::ZERO),
        number: 0.into(),
        fails: |n| n == 1,
        is_short: false,
    };
    let file = RemoteFile::open_key(Arc::new(failing), "key").unwrap();
    tell(&file, &[1_000_000..1_100_000]);
    std::thread::sleep(Duration::from_millis(300));
    let mut buf = [0; 1000];
    file.read_at(1_000_000, &mut buf).unwrap();
    assert_eq!(buf, content[1_000_000..1_001_000]);
}

#[test]
fn what_is_kept_is_bounded_however_much_was_told() {
    let content = bytes(150_000_000);
    let objects = memory(&content, Duration::ZERO);
    let file = open(&objects);
    let all: Vec<Range<u64>> = (0..150).map(|i| i * 1_000_000..(i + 1) * 1_000_000).collect();
    tell(&file, &all);
    std::thread::sleep(Duration::from_millis(300));
    assert!(
        total(&objects.take_asked()) <= 64 << 20,
        "no more than there is room for is asked for before it is read"
    );
    let mut buf = vec![0; 1_000_000];
    for i in (0..150).rev() {
        file.read_at(i * 1_000_000, &mut buf).unwrap();
        assert_eq!(buf, content[i as usize * 1_000_000..][..1_000_000]);
    }
    // Beside what the reader asks for itself.
    let kept = zonda_runtime::memory::process().memory_use()[0].most;
    assert!(kept <= 256 << 20, "{kept}");
}

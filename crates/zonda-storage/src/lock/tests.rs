use super::*;
use crate::{Create, StorageOptions, SyncLevel, open_with_sidecars};
use tempfile::NamedTempFile;

/// A file that is removed in the end.
struct TestFile(NamedTempFile);

impl TestFile {
    fn new(name: &str) -> TestFile {
        let file = NamedTempFile::with_prefix(format!("zonda-lock-{name}-")).unwrap();
        std::fs::write(file.path(), b"something").unwrap();
        TestFile(file)
    }

    fn open(&self) -> File {
        File::open(self.0.path(), true, Create::MustExist, SyncLevel::None).unwrap()
    }

    fn flock(&self, what: libc::c_int) -> Result<Fd, Errno> {
        let fd = Fd::open(self.0.path(), libc::O_RDWR).unwrap();
        fd.flock(what | libc::LOCK_NB).map(|()| fd)
    }
}

fn take(file: &File, intent: Intent) -> Result<Option<WriterLock>, StorageError> {
    WriterLock::take(file, intent, Locking::Always)
}

#[test]
fn the_words_are_those_of_hdf5() {
    let of = |text| Locking::of(Some(text));
    assert_eq!(Locking::of(None), Locking::Warn);
    assert_eq!((of("FALSE"), of("0")), (Locking::Off, Locking::Off));
    assert_eq!((of("TRUE"), of("1")), (Locking::Always, Locking::Always));
    assert_eq!(of("BEST_EFFORT"), Locking::BestEffort);
    // It knows no small letters.
    assert_eq!((of("false"), of("")), (Locking::Warn, Locking::Warn));
}

#[test]
fn a_writer_admits_readers_of_hdf5_and_no_writers() {
    let made = TestFile::new("admits");
    let lock = take(&made.open(), Intent::Change).unwrap().unwrap();
    assert!(made.flock(libc::LOCK_SH).is_ok());
    assert_eq!(made.flock(libc::LOCK_EX).unwrap_err(), Errno(libc::EAGAIN));
    // The file it was taken by is closed long since.
    drop(lock);
    assert!(made.flock(libc::LOCK_EX).is_ok());
}

#[test]
fn a_writer_of_hdf5_keeps_writers_out() {
    let made = TestFile::new("out");
    let theirs = made.flock(libc::LOCK_EX).unwrap();
    let error = take(&made.open(), Intent::Change).unwrap_err();
    assert!(error.to_string().ends_with("another program has it open for writing"), "{error}");
    assert_eq!(error.raw_os_error(), libc::EACCES);
    drop(theirs);
    assert!(take(&made.open(), Intent::Change).unwrap().is_some());
}

#[test]
fn another_writer_of_this_library_is_kept_out_by_the_byte() {
    let made = TestFile::new("byte");
    // As another process has it, which is not on this one's list.
    let theirs = lock(&made.open(), Intent::Change).unwrap();
    let error = take(&made.open(), Intent::Change).unwrap_err();
    assert!(matches!(error, StorageError::Locked { .. }), "{error}");
    // What was refused left nothing behind: theirs is the only lock.
    theirs.flock(libc::LOCK_UN).unwrap();
    assert!(made.flock(libc::LOCK_EX).is_ok());
    drop(theirs);
    assert!(take(&made.open(), Intent::Change).unwrap().is_some());
}

#[test]
fn what_others_read_is_not_emptied() {
    let made = TestFile::new("emptied");
    let create = |lock| {
        let options =
            StorageOptions { create: Create::Truncate, lock, ..StorageOptions::default() };
        open_with_sidecars(made.0.path(), &options)
    };
    let reader = made.flock(libc::LOCK_SH).unwrap();
    let error = create(Locking::Warn).unwrap_err();
    assert!(error.to_string().ends_with("another program has it open"), "{error}");
    assert_eq!(std::fs::read(made.0.path()).unwrap(), b"something");
    drop(reader);
    let opened = create(Locking::Warn).unwrap();
    assert!(opened.lock.is_some());
    assert_eq!(opened.storage.len().unwrap(), 0);
    // Its readers are admitted from now on.
    assert!(made.flock(libc::LOCK_SH).is_ok());
    assert_eq!(made.flock(libc::LOCK_EX).unwrap_err(), Errno(libc::EAGAIN));
    let error = create(Locking::Warn).unwrap_err();
    assert!(error.to_string().ends_with("this program has it open for writing"), "{error}");
    drop(opened);
    assert!(create(Locking::Off).unwrap().lock.is_none());
}

#[test]
fn no_locks_where_none_are_asked_for() {
    let made = TestFile::new("none");
    let _theirs = made.flock(libc::LOCK_EX).unwrap();
    assert!(WriterLock::take(&made.open(), Intent::Change, Locking::Off).unwrap().is_none());
}

#[test]
fn writers_of_one_process_share_the_lock_and_take_turns() {
    let made = TestFile::new("turns");
    let writer = || take(&made.open(), Intent::Change).unwrap().unwrap().writer();
    let (mut a, mut b) = (writer(), writer());
    assert_eq!(a.begin(), MayWrite::Now);
    assert_eq!((a.begin(), b.begin()), (MayWrite::Now, MayWrite::NotYet));
    let mut late = writer();
    a.is_done();
    // Opened before the change was complete.
    assert_eq!((b.begin(), late.begin()), (MayWrite::AfterReading, MayWrite::AfterReading));
    b.has_read();
    assert_eq!((b.begin(), a.begin()), (MayWrite::Now, MayWrite::NotYet));
    drop(a);
    assert_eq!(made.flock(libc::LOCK_EX).unwrap_err(), Errno(libc::EAGAIN));
    drop((b, late));
    assert!(made.flock(libc::LOCK_EX).is_ok());
}

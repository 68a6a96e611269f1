//! What was fetched, on a disk, for later openings and other processes: `ZONDA_REMOTE_CACHE=FOLDER[:BYTES]`.
//!
//! Each object in one of its states has a folder, named by a digest of its key and of what the server says of the state; so parts of
//! different states never meet, and nobody reads a URL from a name. The server is asked for the state at each opening, and only objects
//! whose state is told by a strong `ETag` are kept: one that is told to the second may change unseen. A part is a file, named by its place, with a checksum before its bytes. It gets its name when it
//! is whole, so processes share the folder without a lock; a part that is damaged counts as one that is not there. Whatever goes wrong here costs a request and
//! nothing else.
//!
//! The folder belongs to this user and nobody else may write it, or it is not used: what is in it becomes values.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use ring::digest::{Context, SHA256};
use zonda_runtime::lock::{Mutex, Rank};
use zonda_runtime::{Settled, setting};
use zonda_storage::neighbour::trusts_environment;

use super::tuning::{DISK_BYTES, DISK_KEPT_PERCENT, MOST_KEPT_PART_BYTES};
use crate::objects::ObjectState;

/// The variable that names the folder.
const VARIABLE: &str = "ZONDA_REMOTE_CACHE";

/// All of it is in a folder of this name: nothing besides is read, counted or removed.
const OWN_FOLDER: &str = "zonda-remote-1";

const MAGIC: &[u8; 8] = b"ZONDARC2";

/// Magic, checksum of the bytes, their number.
const HEADER_BYTES: usize = 20;

/// How names of files begin that are not whole yet.
const NEW: &str = "new.";

/// Bytes of a digest that are in a name.
const DIGEST_BYTES: usize = 20;

/// A file without its name yet that is so old belongs to nobody any more.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The folder of all objects.
#[derive(Debug)]
pub(super) struct DiskCache {
    folder: PathBuf,
    most: u64,
    /// Bytes there, as far as this process knows; unknown before it has written.
    bytes: Mutex<Option<u64>>,
    n_made: AtomicU64,
}

/// The parts of one object in one state.
#[derive(Debug)]
pub(super) struct ObjectParts {
    cache: Arc<DiskCache>,
    folder: PathBuf,
    /// Parts that are there, first byte and number, by the list at the opening and what this process has added.
    parts: Mutex<Vec<(u64, u64)>>,
}

impl DiskCache {
    /// The one that the environment names, as of the first remote file of the process.
    pub(super) fn of_environment() -> Option<Arc<DiskCache>> {
        static CACHE: Settled<Option<Arc<DiskCache>>> = Settled::new();
        CACHE.get_or_make(DiskCache::named).clone()
    }

    fn named() -> Option<Arc<DiskCache>> {
        let text = setting::text(VARIABLE).filter(|_| trusts_environment())?;
        let opened =
            split(&text).and_then(|(folder, most)| DiskCache::open(Path::new(folder), most));
        match opened {
            Ok(cache) => Some(Arc::new(cache)),
            Err(why) => {
                setting::say_once(format!(
                    "{VARIABLE}={text}: {why}; parts of remote files are not kept on a disk"
                ));
                None
            }
        }
    }

    /// The one in `folder`, which is made where it is not there, with at most `most` bytes.
    fn open(folder: &Path, most: u64) -> Result<DiskCache, String> {
        if !folder.is_absolute() {
            return Err("the folder is to be named from / on".into());
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| error.to_string())?;
        let status = fs::symlink_metadata(folder).map_err(|error| error.to_string())?;
        if !status.is_dir() {
            return Err("this is no folder".into());
        }
        if status.uid() != rustix::process::geteuid().as_raw() || status.mode() & 0o022 != 0 {
            return Err("the folder belongs to somebody else, or others may write it".into());
        }
        // Whatever else is in the folder is nobody's business here.
        let folder = folder.join(OWN_FOLDER);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| error.to_string())?;
        if !fs::symlink_metadata(&folder).is_ok_and(|status| status.is_dir()) {
            return Err("what is there by the name of the cache is no folder".into());
        }
        Ok(DiskCache {
            folder,
            most,
            bytes: Mutex::ranked(Rank::Spill, None),
            n_made: AtomicU64::new(0),
        })
    }

    /// The parts of an object in a state; `None` where its state is not told well enough.
    pub(super) fn object(
        self: &Arc<Self>,
        server: &str,
        key: &str,
        state: &ObjectState,
    ) -> Option<ObjectParts> {
        if !state.validator.starts_with('"') {
            return None;
        }
        let mut digest = Context::new(&SHA256);
        for part in [
            server.as_bytes(),
            key.as_bytes(),
            state.validator.as_bytes(),
            &state.len.to_le_bytes(),
        ] {
            digest.update(&(part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let name: String = digest
            .finish()
            .as_ref()
            .iter()
            .take(DIGEST_BYTES)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let folder = self.folder.join(name);
        let parts =
            entries(&folder).filter_map(|entry| range_of(entry.file_name().to_str()?)).collect();
        Some(ObjectParts {
            cache: Arc::clone(self),
            folder,
            parts: Mutex::ranked(Rank::Spill, parts),
        })
    }

    /// Counts bytes that were added, and removes what was used longest ago where there are too many.
    fn added(&self, bytes: u64) {
        let mut known = self.bytes.lock();
        let now = match *known {
            Some(before) => before.saturating_add(bytes),
            None => self.files().iter().map(|file| file.bytes).sum(),
        };
        *known = Some(now);
        if now <= self.most {
            return;
        }
        // Other processes may have added and removed, too.
        let mut files = self.files();
        zonda_runtime::sort::sort_by_key(&mut files, |file| file.used);
        let mut left: u64 = files.iter().map(|file| file.bytes).sum();
        for file in files {
            if left <= self.most / 100 * DISK_KEPT_PERCENT {
                break;
            }
            if fs::remove_file(&file.path).is_ok() {
                left -= file.bytes;
                // Goes when it is empty.
                drop(file.path.parent().map(fs::remove_dir));
            }
        }
        *known = Some(left);
    }

    /// All parts of all objects. What was abandoned half made is removed.
    fn files(&self) -> Vec<KeptFile> {
        let mut files = Vec::new();
        for object in entries(&self.folder).filter(is_object) {
            for entry in entries(&object.path()) {
                // Of the entry itself, and not of what a link leads to.
                let Ok(status) = entry.metadata() else { continue };
                let name = entry.file_name();
                let Some(name) = name.to_str().filter(|_| status.is_file()) else { continue };
                let used = status.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if range_of(name).is_some() {
                    files.push(KeptFile { path: entry.path(), bytes: status.len(), used });
                } else if name.starts_with(NEW) && used.elapsed().is_ok_and(|age| age > ABANDONED) {
                    drop(fs::remove_file(entry.path()));
                }
            }
        }
        files
    }
}

/// Whether an entry is the folder of an object.
fn is_object(entry: &fs::DirEntry) -> bool {
    let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
    let name = entry.file_name();
    is_folder
        && name.len() == 2 * DIGEST_BYTES
        && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit)
}

/// Folder and limit of a setting.
fn split(text: &str) -> Result<(&str, u64), String> {
    match text.rsplit_once(':').filter(|(_, most)| !most.contains('/')) {
        None => Ok((text, DISK_BYTES)),
        Some((folder, most)) => match setting::bytes_of(most) {
            Some(bytes) => Ok((folder, bytes)),
            None => Err(format!("{most} is no number of bytes, such as 500M or 8G")),
        },
    }
}

/// A part, for who counts.
struct KeptFile {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// The first byte and the number of bytes that a name of a part says.
fn range_of(name: &str) -> Option<(u64, u64)> {
    let (at, len) = name.split_once('-')?;
    let number =
        |text: &str| text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    // None that is longer was made here.
    Some((number(at)?, number(len).filter(|len| *len <= MOST_KEPT_PART_BYTES)?))
}

impl ObjectParts {
    /// The bytes of a range, where one part has all of them.
    pub(super) fn get(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let has = |&(at, len): &(u64, u64)| {
            at <= range.start && at.checked_add(len).is_some_and(|end| end >= range.end)
        };
        let (at, len) = self.parts.lock().iter().copied().find(has)?;
        let bytes = self.read_part(at, len);
        let Some(bytes) = bytes else {
            // Gone, or damaged.
            self.parts.lock().retain(|part| *part != (at, len));
            drop(fs::remove_file(self.path(at, len)));
            return None;
        };
        let (from, to) =
            (usize::try_from(range.start - at).ok()?, usize::try_from(range.end - at).ok()?);
        if (from, to) == (0, bytes.len()) {
            Some(bytes)
        } else {
            bytes.get(from..to).map(<[u8]>::to_vec)
        }
    }

    /// Keeps the bytes of a range.
    pub(super) fn put(&self, range: &Range<u64>, bytes: &[u8]) {
        // A folder that is full, or gone, keeps nothing: the bytes are here.
        if self.write(range, bytes).is_some() {
            self.parts.lock().push((range.start, bytes.len() as u64));
            self.cache.added((bytes.len() + HEADER_BYTES) as u64);
        }
    }

    fn write(&self, range: &Range<u64>, bytes: &[u8]) -> Option<()> {
        if bytes.len() as u64 > (self.cache.most / 4).min(MOST_KEPT_PART_BYTES) {
            return None;
        }
        drop(DirBuilder::new().mode(0o700).create(&self.folder));
        let number = self.cache.n_made.fetch_add(1, Ordering::Relaxed);
        let temporary =
            self.folder.join(format!("{NEW}{}.{number}", zonda_runtime::fork::process_id()));
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&self.checksum(range.start, bytes).to_le_bytes());
        header[12..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        let mut made =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).ok()?;
        let whole = made.write_all(&header).and_then(|()| made.write_all(bytes));
        let named =
            whole.and_then(|()| fs::rename(&temporary, self.path(range.start, bytes.len() as u64)));
        if named.is_err() {
            drop(fs::remove_file(&temporary));
        }
        named.ok()
    }

    fn path(&self, at: u64, len: u64) -> PathBuf {
        self.folder.join(format!("{at}-{len}"))
    }

    /// Of bytes and of what they are: a part that has got the name of another one is damaged.
    fn checksum(&self, at: u64, bytes: &[u8]) -> u32 {
        let mut sum = crc32fast::Hasher::new();
        sum.update(self.folder.file_name().unwrap_or_default().as_encoded_bytes());
        sum.update(&at.to_le_bytes());
        sum.update(bytes);
        sum.finalize()
    }

    /// The bytes of a part that is whole.
    fn read_part(&self, at: u64, len: u64) -> Option<Vec<u8>> {
        let path = self.path(at, len);
        let mut file: File = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
            .ok()?;
        let status = file.metadata().ok()?;
        if !status.is_file() || status.len() != len.checked_add(HEADER_BYTES as u64)? {
            return None;
        }
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).ok()?;
        let n = usize::try_from(len).ok()?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(n).ok()?;
        bytes.resize(n, 0);
        file.read_exact(&mut bytes).ok()?;
        let is_whole = header[..8] == *MAGIC
            && header[8..12] == self.checksum(at, &bytes).to_le_bytes()
            && header[12..] == len.to_le_bytes();
        if is_whole {
            // What is used stays.
            drop(file.set_modified(SystemTime::now()));
        }
        is_whole.then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(validator: &str) -> ObjectState {
        ObjectState { len: 1000, validator: validator.into() }
    }

    fn cache(folder: &Path, most: u64) -> Arc<DiskCache> {
        Arc::new(DiskCache::open(folder, most).unwrap())
    }

    #[test]
    fn parts_are_found_by_state_and_range() {
        let folder = tempfile::tempdir().unwrap();
        let disk = cache(&folder.path().join("a/b"), 1 << 20);
        let bytes: Vec<u8> = (0..=255).collect();
        let object = disk.object("http://h", "/x", &state("\"1\"")).unwrap();
        assert_eq!(object.get(&(100..200)), None);
        object.put(&(100..356), &bytes);
        assert_eq!(object.get(&(100..356)).as_deref(), Some(&bytes[..]));
        let later = disk.object("http://h", "/x", &state("\"1\"")).unwrap();
        assert_eq!(later.get(&(110..120)).as_deref(), Some(&bytes[10..20]));
        assert_eq!(later.get(&(90..120)), None);
        for (server, key, validator) in
            [("http://h", "/x", "\"2\""), ("http://h", "/y", "\"1\""), ("http://i", "/x", "\"1\"")]
        {
            assert_eq!(disk.object(server, key, &state(validator)).unwrap().get(&(110..120)), None);
        }
        assert!(disk.object("http://h", "/x", &state("W/\"1\"")).is_none(), "weak");
        assert!(
            disk.object("http://h", "/x", &state("Sun, 29 Nov 2026 04:00:00 GMT")).is_none(),
            "to the second"
        );
        assert!(disk.object("http://h", "/x", &state("")).is_none());
    }

    #[test]
    fn a_damaged_part_is_one_that_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let disk = cache(folder.path(), 1 << 20);
        let damages: [fn(&mut Vec<u8>); 5] =
            [|b| b[0] ^= 1, |b| b[9] ^= 1, |b| b[25] ^= 1, |b| b.truncate(30), |b| b.push(0)];
        for damage in damages {
            let object = disk.object("s", "k", &state("\"1\"")).unwrap();
            object.put(&(0..100), &[7; 100]);
            let path = object.path(0, 100);
            let mut bytes = fs::read(&path).unwrap();
            damage(&mut bytes);
            fs::write(&path, bytes).unwrap();
            assert_eq!(object.get(&(0..100)), None);
            assert!(!path.exists(), "it is removed");
        }
        let object = disk.object("s", "k", &state("\"1\"")).unwrap();
        object.put(&(0..100), &[7; 100]);
        fs::rename(object.path(0, 100), folder.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), object.path(0, 100)).unwrap();
        assert_eq!(object.get(&(0..100)), None, "a link is not followed");
    }

    #[test]
    fn a_part_is_no_other_one_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let disk = cache(folder.path(), 1 << 20);
        let objects = ["\"1\"", "\"2\""].map(|tag| disk.object("s", "k", &state(tag)).unwrap());
        for object in &objects {
            object.put(&(0..100), &[7; 100]);
            object.put(&(100..200), &[8; 100]);
        }
        fs::copy(objects[0].path(0, 100), objects[0].path(100, 100)).unwrap();
        assert_eq!(objects[0].get(&(100..200)), None);
        fs::copy(objects[0].path(0, 100), objects[1].path(0, 100)).unwrap();
        assert_eq!(objects[1].get(&(0..100)), None);
        let long = objects[1].path(0, 1 << 40);
        File::create(&long).unwrap().set_len((1 << 40) + HEADER_BYTES as u64).unwrap();
        assert_eq!(
            disk.object("s", "k", &state("\"2\"")).unwrap().get(&(0..100)),
            None,
            "no memory is taken for it"
        );
    }

    #[test]
    fn a_setting_says_a_folder_and_perhaps_a_limit() {
        assert_eq!(split("/a"), Ok(("/a", DISK_BYTES)));
        assert_eq!(split("/a:8G"), Ok(("/a", 8 << 30)));
        assert_eq!(split("/a:b/c"), Ok(("/a:b/c", DISK_BYTES)));
        assert!(["/a:8GB", "/a:", "/a:-1"].into_iter().all(|text| split(text).is_err()));
    }

    #[test]
    fn the_longest_unused_goes_where_there_is_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let disk = cache(folder.path(), 10_000);
        let object = disk.object("s", "k", &state("\"1\"")).unwrap();
        for i in 0..20u64 {
            object.put(&(i * 1000..(i + 1) * 1000), &[i as u8; 1000]);
            let old = SystemTime::now() - Duration::from_secs(1000 - i);
            drop(File::open(object.path(i * 1000, 1000)).map(|file| file.set_modified(old)));
            let there: u64 = disk.files().iter().map(|file| file.bytes).sum();
            assert!(there <= 10_000, "{there}");
        }
        let later = disk.object("s", "k", &state("\"1\"")).unwrap();
        assert_eq!(later.get(&(19_000..20_000)), Some(vec![19; 1000]));
        assert_eq!(later.get(&(0..1000)), None);
        object.put(&(50_000..53_000), &[1; 3000]);
        assert_eq!(object.get(&(50_000..53_000)), None, "no part has more than a quarter");
    }

    #[test]
    fn what_else_is_in_the_folder_stays() {
        let folder = tempfile::tempdir().unwrap();
        let others = ["Documents/old", "photos/2020-01", "zonda-remote-1/notes/2020-01"]
            .map(|name| folder.path().join(name));
        let elsewhere = tempfile::tempdir().unwrap();
        for path in others.iter().chain([&elsewhere.path().join("9-9")]) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, [0; 5000]).unwrap();
            let long_ago = SystemTime::now() - Duration::from_secs(1_000_000);
            File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
        }
        let disk = cache(folder.path(), 10_000);
        let link = disk.folder.join("a".repeat(2 * DIGEST_BYTES));
        std::os::unix::fs::symlink(elsewhere.path(), link).unwrap();
        let object = disk.object("s", "k", &state("\"1\"")).unwrap();
        for i in 0..20u64 {
            object.put(&(i * 1000..(i + 1) * 1000), &[1; 1000]);
        }
        assert!(others.iter().all(|path| path.exists()) && elsewhere.path().join("9-9").exists());
    }

    #[test]
    fn a_folder_that_others_may_write_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(DiskCache::open(&open, 1).is_err());
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(DiskCache::open(&folder.path().join("file"), 1).is_err());
        std::os::unix::fs::symlink(folder.path(), folder.path().join("link")).unwrap();
        assert!(DiskCache::open(&folder.path().join("link"), 1).is_err());
        assert!(DiskCache::open(Path::new("relative"), 1).is_err());
    }
}

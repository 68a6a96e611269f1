//! Whether a folder is fit for files that programs write: rooms, rights, locks, renames.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use zonda::{CreateOptions, Dataset, Format, Hyperslab, OpenOptions, Reserve};

use super::Finding;

/// Numbers of file systems (`linux/magic.h`, and those that are not in the kernel), and whether they are on other machines.
const KINDS: [(u64, &str, bool); 20] = [
    (0xef53, "ext4", false),
    (0x5846_5342, "XFS", false),
    (0x9123_683e, "Btrfs", false),
    (0x2fc1_2fc1, "ZFS", false),
    (0x0102_1994, "tmpfs", false),
    (0x794c_7630, "overlayfs", false),
    (0x4d44, "FAT", false),
    (0x2011_bab0, "exFAT", false),
    (0x6969, "NFS", true),
    (0x0bd0_0bd3, "Lustre", true),
    (0x4750_4653, "GPFS", true),
    (0x1983_0326, "BeeGFS", true),
    (0x00c3_6400, "CephFS", true),
    (0x6173_6f73, "AFS", true),
    (0xff53_4d42, "CIFS", true),
    (0xfe53_4d42, "SMB", true),
    (0x0102_1997, "9p", true),
    (0x6573_5546, "FUSE", false),
    (0x6573_5543, "FUSE control", false),
    (0xcafe_4a11, "BPF", false),
];

/// Less than this is told.
const LITTLE_ROOM: u64 = 1 << 30;
/// A sync that takes longer is told: with `ZONDA_SYNC=data` each commit waits for two or three.
const SLOW_SYNC_MS: u128 = 100;

pub(super) fn findings(place: &Path) -> Vec<Finding> {
    let folder = match fs::metadata(place) {
        Ok(found) if found.is_dir() => place.to_owned(),
        Ok(_) => match place.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => ".".into(),
        },
        Err(error) => return vec![Finding::wrong(format!("{}: {error}", place.display()))],
    };
    let mut found = device(&folder);
    // Its name begins with a dot, and it goes whatever happens but a kill.
    let made = tempfile::Builder::new().prefix(".zonda-doctor-").tempdir_in(&folder);
    match made {
        Ok(made) => {
            found.push(result("files can be made, locked, renamed and removed", files(made.path())));
            found.extend(locks(made.path()));
            found.push(sync(made.path()));
            found.push(holes(made.path()));
            let written = netcdf(made.path());
            found.push(result("a netCDF-4 file was written and read", written));
        }
        Err(error) => found.push(
            Finding::wrong(format!("no file can be made here: {error}"))
                .advised("files here can be read, not written; changes of headers need a journal beside the file"),
        ),
    }
    found.extend(leftovers(&folder));
    found
}

fn result(what: &str, outcome: std::result::Result<(), String>) -> Finding {
    match outcome {
        Ok(()) => Finding::ok(what),
        Err(why) => Finding::wrong(format!("not all of this works: {what}: {why}")),
    }
}

fn device(folder: &Path) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Ok(kind) = rustix::fs::statfs(folder) {
        // The kernel's numbers have 32 bits, whatever the type of the field is.
        let number = u64::from(kind.f_type as u32);
        let (name, is_remote) = KINDS
            .iter()
            .find(|(known, ..)| *known == number)
            .map_or((format!("file system {number:#x}"), false), |(_, name, remote)| {
                ((*name).to_owned(), *remote)
            });
        found.push(if is_remote {
            Finding::note(format!("{name}, on other machines"))
                .advised("locks hold between machines only where the server has them; a kill of this machine may lose what it has not sent")
        } else {
            Finding::ok(name)
        });
    }
    if let Ok(room) = rustix::fs::statvfs(folder) {
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        let text = format!("{} MiB free", free >> 20);
        found.push(if free < LITTLE_ROOM {
            Finding::note(text).advised(
                "a commit that finds no room fails, and nothing that was committed is lost",
            )
        } else {
            Finding::ok(text)
        });
        if room.f_favail == 0 && room.f_files > 0 {
            found.push(Finding::wrong(
                "no more files can be made: the file system has no free inodes",
            ));
        }
    }
    found
}

fn text(error: io::Error) -> String {
    error.to_string()
}

/// A rename over a file has to replace it, and the open one has to stay as it was.
fn files(folder: &Path) -> std::result::Result<(), String> {
    let (one, other) = (folder.join("one"), folder.join("other"));
    fs::write(&one, b"one").map_err(text)?;
    fs::write(&other, b"other").map_err(text)?;
    let open = File::open(&one).map_err(text)?;
    fs::rename(&other, &one).map_err(text)?;
    let now = fs::read(&one).map_err(text)?;
    if now != b"other" || other.exists() {
        return Err("a renamed file does not take the place of another".to_owned());
    }
    let (was, is) = (open.metadata().map_err(text)?, fs::metadata(&one).map_err(text)?);
    if (was.dev(), was.ino()) == (is.dev(), is.ino()) {
        return Err("two files have one number (inode)".to_owned());
    }
    fs::remove_file(&one).map_err(text)
}

/// What keeps two writers off one file.
fn locks(folder: &Path) -> Vec<Finding> {
    let path = folder.join("locked");
    let opened = File::create(&path).and_then(|first| Ok((first, File::open(&path)?)));
    let (first, second) = match opened {
        Ok(opened) => opened,
        Err(error) => return vec![Finding::wrong(format!("locks cannot be tried: {error}"))],
    };
    if let Err(error) = first.try_lock() {
        let advice = "two programs can write one file at once; HDF5_USE_FILE_LOCKING=BEST_EFFORT says that this is known";
        let why = match error {
            TryLockError::Error(error) => error.to_string(),
            TryLockError::WouldBlock => {
                "somebody holds the lock of a file that was just made".to_owned()
            }
        };
        return vec![Finding::wrong(format!("files cannot be locked: {why}")).advised(advice)];
    }
    match second.try_lock() {
        Err(TryLockError::WouldBlock) => vec![Finding::ok("a lock keeps a second writer out")],
        Err(TryLockError::Error(error)) => {
            vec![Finding::wrong(format!("a second lock gives no answer: {error}"))]
        }
        Ok(()) => vec![
            Finding::wrong("a lock does not keep a second writer out")
                .advised("two programs can write one file at once, and nothing tells them"),
        ],
    }
}

fn sync(folder: &Path) -> Finding {
    let path = folder.join("synced");
    let tried = File::create(&path).and_then(|mut file| {
        file.write_all(&[1; 4096])?;
        let begin = Instant::now();
        file.sync_all()?;
        Ok(begin.elapsed())
    });
    match tried {
        Ok(took) if took.as_millis() >= SLOW_SYNC_MS => {
            Finding::note(format!("a sync takes {} ms", took.as_millis()))
                .advised("ZONDA_SYNC=data and full wait for two or three at each commit")
        }
        Ok(took) => Finding::ok(format!("a sync takes {:.1} ms", took.as_secs_f64() * 1e3)),
        Err(error) => Finding::wrong(format!("files cannot be synced: {error}"))
            .advised("ZONDA_SYNC=data and full fail here"),
    }
}

fn holes(folder: &Path) -> Finding {
    let made = File::create(folder.join("holes")).and_then(|file| {
        file.set_len(1 << 20)?;
        file.metadata()
    });
    match made {
        Ok(found) if found.blocks() == 0 => Finding::ok("holes take no room"),
        Ok(_) => Finding::note("holes take room")
            .advised("a variable that is only written in part takes all of its bytes"),
        Err(error) => Finding::wrong(format!("files cannot be made longer: {error}")),
    }
}

/// The library's own way, from creation to reading back.
fn netcdf(folder: &Path) -> std::result::Result<(), String> {
    let path = folder.join("tried.nc");
    let line = |error: zonda::Error| error.line();
    // Whatever layers the environment says: this is about the folder.
    let io = Some("cache,file".to_owned());
    let options =
        CreateOptions { format: Format::NetCdf4, io: io.clone(), ..CreateOptions::default() };
    let values: Vec<u8> = (0..100i32).flat_map(i32::to_ne_bytes).collect();
    let slab = Hyperslab { start: &[0], count: &[100], stride: None };
    let file = Dataset::create(&path, &options).map_err(line)?;
    let dim = file.def_dim(b"n", 100).map_err(line)?;
    let var = file.def_var(b"v", 4, &[dim.0]).map_err(line)?;
    file.def_var_deflate(var.into(), true, Some(1)).map_err(line)?;
    file.enddef(Reserve::Default).map_err(line)?;
    file.put(var, &slab, None, &values).map(drop).map_err(line)?;
    file.close().map_err(line)?;
    let file = Dataset::open(&path, &OpenOptions { io, ..OpenOptions::default() }).map_err(line)?;
    let mut back = vec![0; values.len()];
    file.get(var, &slab, None, &mut back).map(drop).map_err(line)?;
    file.close().map_err(line)?;
    if back == values { Ok(()) } else { Err("other values came back".to_owned()) }
}

/// What writers that died have left beside their files.
fn leftovers(folder: &Path) -> Vec<Finding> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut left: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            [".zonda-journal", ".zonda-copy", ".zonda-part"].iter().any(|end| name.ends_with(end))
        })
        .collect();
    left.sort();
    let advice = |name: &str| match name.strip_suffix(".zonda-journal") {
        Some(file) => format!(
            "a writer of {file} died, or is at work: `zonda recover {file}` says which, and completes the change"
        ),
        None => {
            "a writer or a copy died, or is at work; who writes the file anew removes it".to_owned()
        }
    };
    left.into_iter()
        .map(|name| Finding::note(format!("{name} is here")).advised(advice(&name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_folder_that_is_fit_and_some_that_are_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("x.nc.zonda-journal"), b"").unwrap();
        let found = findings(folder.path());
        assert!(found.iter().all(|finding| finding.level != Level::Wrong), "{found:?}");
        let left = found.iter().find(|finding| finding.text.contains("zonda-journal")).unwrap();
        assert!(left.advice.as_ref().unwrap().contains("zonda recover x.nc"));
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["x.nc.zonda-journal"]);
        assert_eq!(findings(Path::new("/no/such/folder"))[0].level, Level::Wrong);
        // A file stands for its folder.
        let file = folder.path().join("x.nc.zonda-journal");
        assert!(findings(&file).len() >= 7);
        assert!(findings(Path::new("/proc")).iter().any(|finding| finding.level == Level::Wrong));
    }
}

//! The file, and those that its external links, virtual datasets and external data lead to.
//!
//! Names of other files count from the file's folder. Absolute names and such that leave the folder
//! are not followed: a file from elsewhere must not make a program read what it names. Of an
//! absolute name the last part is looked for in the folder, as libhdf5 does for files that moved.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, RwLock};

use zonda_hdf5::message::LinkTarget;
use zonda_hdf5::{File, FileAddr, HdfError, Resolved};
use zonda_storage::Storage;

/// An object: in which file, and where there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectAt {
    /// 0 for the file itself, else one that it led to.
    pub(crate) file: u16,
    /// Its header.
    pub(crate) addr: FileAddr,
}

impl ObjectAt {
    /// That of an object that is not in the file yet.
    pub(crate) const NOWHERE: ObjectAt = ObjectAt { file: 0, addr: FileAddr(u64::MAX) };
}

/// Files that one may lead to.
const MOST_FILES: usize = 1024;
/// Links from file to file that are followed for one object.
const MOST_HOPS: usize = 16;

/// The file and others.
#[derive(Debug)]
pub(crate) struct Files {
    main: Arc<File>,
    folder: Option<PathBuf>,
    others: RwLock<Vec<(PathBuf, Option<Arc<File>>)>>,
}

impl Files {
    pub(crate) fn new(main: Arc<File>, folder: Option<PathBuf>) -> Files {
        Files { main, folder, others: RwLock::default() }
    }

    /// The file itself.
    pub(crate) fn main(&self) -> &Arc<File> {
        &self.main
    }

    /// Its root group.
    pub(crate) fn root(&self) -> ObjectAt {
        ObjectAt { file: 0, addr: self.main.root() }
    }

    /// A file by its number.
    pub(crate) fn get(&self, number: u16) -> Result<Arc<File>, HdfError> {
        let Some(index) = usize::from(number).checked_sub(1) else {
            return Ok(Arc::clone(&self.main));
        };
        let others = self.others.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let file = others.get(index).and_then(|(_, file)| file.clone());
        file.ok_or(HdfError::Missing { structure: "external link", at: 0, what: "the file" })
    }

    /// Where a soft or external link leads from the group it is in; `None` for nowhere.
    pub(crate) fn follow(&self, from: ObjectAt, target: &LinkTarget) -> Option<ObjectAt> {
        let mut at = from;
        let mut target = target.clone();
        for _ in 0..MOST_HOPS {
            let file = self.get(at.file).ok()?;
            let resolved = match target {
                LinkTarget::Hard(addr) => return Some(ObjectAt { file: at.file, addr }),
                LinkTarget::Soft(path) => file.resolve(at.addr, &path).ok()?,
                LinkTarget::External { file, path } => {
                    let number = self.other(&file)?;
                    at = ObjectAt { file: number, addr: self.get(number).ok()?.root() };
                    target = LinkTarget::Soft(path);
                    continue;
                }
                LinkTarget::UserDefined { .. } => return None,
            };
            target = match resolved {
                Resolved::Object(addr) => return Some(ObjectAt { file: at.file, addr }),
                Resolved::External { file, path } => LinkTarget::External { file, path },
                Resolved::NotThere | Resolved::Unknown => return None,
            };
        }
        None
    }

    /// The number of another file by its name.
    pub(crate) fn other(&self, name: &[u8]) -> Option<u16> {
        let path = self.path_of(name)?;
        let number = |index: usize| u16::try_from(index.checked_add(1)?).ok();
        let mut others = self.others.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(index) = others.iter().position(|(known, _)| *known == path) {
            return others.get(index).filter(|(_, file)| file.is_some()).and(number(index));
        }
        if others.len() >= MOST_FILES {
            return None;
        }
        let file = open_storage(&path).and_then(|storage| File::open(storage).ok());
        let found = file.is_some();
        others.push((path, file.map(Arc::new)));
        if found { number(others.len().checked_sub(1)?) } else { None }
    }

    /// The path of another file; `None` where its name leads out of the folder.
    pub(crate) fn path_of(&self, name: &[u8]) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        let name = Path::new(std::str::from_utf8(name).ok()?);
        let inside = if name.is_absolute() { Path::new(name.file_name()?) } else { name };
        let stays = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        (!inside.as_os_str().is_empty() && inside.components().all(stays))
            .then(|| folder.join(inside))
    }
}

/// The bytes of a file that is not there are none.
pub(crate) fn open_storage(path: &Path) -> Option<Arc<dyn Storage>> {
    let file = zonda_storage::backend::File::open_read(path).ok()?;
    Some(Arc::new(file))
}

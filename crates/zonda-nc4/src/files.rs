//! The open file, and other files that its external links, virtual datasets and external data lead to.
//!
//! Names of other files are relative to the folder of the file that has them. Which files may be read depends on the file
//! that was opened: those in its folder, and in folders that `ZONDA_EXTERNAL` names. A file that does not exist is
//! `None`. A file that exists and is refused, or cannot be read, is an error, which no caller may turn into `None`.

use std::path::PathBuf;
use std::sync::Arc;
use zonda_runtime::lock::{Rank, RwLock};

use hashbrown::HashMap;
use zonda_hdf5::message::LinkTarget;
use zonda_hdf5::{File, FileAddr, HdfError, ResolvedLink};
use zonda_storage::Storage;

use crate::fault::HdfResult;
use crate::file_lookup::{FileLookup, FilePath, FileRole};
use crate::tuning::LINKED_FILES;

/// An object: in which file, and where there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectAt {
    /// 0 for the file itself, else the number of another file.
    pub(crate) file: u16,
    /// Its header.
    pub(crate) addr: FileAddr,
}

impl ObjectAt {
    /// The place of an object that is not in the file yet.
    pub(crate) const NOWHERE: ObjectAt = ObjectAt { file: 0, addr: FileAddr(u64::MAX) };
}

/// Links from file to file that are followed for one object.
const MOST_HOPS: usize = 16;

/// The open file, and other files that were opened because of it.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    main: Arc<File>,
    around: Arc<FileLookup>,
    others: Arc<RwLock<OtherFiles>>,
}

/// Other files that were opened, and what their names led to.
#[derive(Debug, Default)]
struct OtherFiles {
    files: Vec<(FilePath, Arc<File>)>,
    /// What names led to.
    known: HashMap<FileNaming, FoundFile>,
}

/// A name of a file in another file: what it is named for, the number of the file with the name, and the name.
type FileNaming = (FileRole, u16, Box<[u8]>);

/// The number of a file; `None` where there is none.
type FoundFile = HdfResult<Option<u16>>;

impl Files {
    /// `path` is the absolute path of the file; `None` for one in memory.
    pub(crate) fn new(main: Arc<File>, path: Option<PathBuf>) -> Files {
        let is_remote = main.is_remote();
        let around = if is_remote { FileLookup::of_remote() } else { FileLookup::new(path) };
        let around = Arc::new(around);
        Files {
            main,
            around,
            others: Arc::new(RwLock::ranked(Rank::Others, OtherFiles::default())),
        }
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
    pub(crate) fn get(&self, number: u16) -> HdfResult<Arc<File>> {
        let Some(index) = usize::from(number).checked_sub(1) else {
            return Ok(Arc::clone(&self.main));
        };
        let others = self.others.read();
        let file = others.files.get(index).map(|(_, file)| Arc::clone(file));
        file.ok_or(HdfError::Missing { structure: "external link", at: 0, what: "the file" })
    }

    /// Where a file is, by its number; none where it is in memory.
    fn home(&self, number: u16) -> Option<FilePath> {
        let Some(index) = usize::from(number).checked_sub(1) else {
            return self.around.home().cloned();
        };
        let others = self.others.read();
        others.files.get(index).map(|(home, _)| home.clone())
    }

    /// Where a soft or external link leads from the group it is in; `None` for nowhere.
    ///
    /// # Errors
    /// Damage on the way, and files that are there and are refused or cannot be read.
    pub(crate) fn follow(
        &self,
        from: ObjectAt,
        target: &LinkTarget,
    ) -> HdfResult<Option<ObjectAt>> {
        let mut at = from;
        let mut target = target.clone();
        // Errors in another file name that file.
        let mut other: Option<Box<[u8]>> = None;
        for _ in 0..MOST_HOPS {
            let resolved = match target {
                LinkTarget::Hard(addr) => return Ok(Some(ObjectAt { file: at.file, addr })),
                LinkTarget::Soft(path) => {
                    let resolved = self.get(at.file)?.resolve(at.addr, &path);
                    resolved.map_err(|cause| match &other {
                        Some(name) => FileRole::Link.fault(name, cause),
                        None => cause,
                    })?
                }
                LinkTarget::External { file, path } => {
                    let Some(number) = self.other(FileRole::Link, at.file, &file)? else {
                        return Ok(None);
                    };
                    at = ObjectAt { file: number, addr: self.get(number)?.root() };
                    target = LinkTarget::Soft(path);
                    other = Some(file);
                    continue;
                }
                LinkTarget::UserDefined { .. } => return Ok(None),
            };
            target = match resolved {
                ResolvedLink::Object(addr) => return Ok(Some(ObjectAt { file: at.file, addr })),
                ResolvedLink::External { file, path } => LinkTarget::External { file, path },
                ResolvedLink::NotThere | ResolvedLink::Unknown => return Ok(None),
            };
        }
        // So many links are a circle.
        Ok(None)
    }

    /// Why an external link leads nowhere.
    pub(crate) fn absence(&self, from: u16, name: &[u8]) -> HdfError {
        match self.other(FileRole::Link, from, name) {
            Ok(Some(_)) => FileRole::Link.fault(name, HdfError::NoObject),
            Ok(None) => FileRole::Link.fault(name, HdfError::NoFile),
            Err(error) => error,
        }
    }

    /// The number of the file that another one names; `None` where there is none.
    ///
    /// # Errors
    /// What is there and is refused, or is no HDF5 file, or cannot be read.
    pub(crate) fn other(&self, role: FileRole, from: u16, name: &[u8]) -> HdfResult<Option<u16>> {
        let key = (role, from, Box::from(name));
        let known = {
            let others = self.others.read();
            others.known.get(&key).cloned()
        };
        if let Some(known) = known {
            return known;
        }
        let home = self.home(from);
        let mut others = self.others.write();
        let found = self.open_other(&mut others.files, role, home.as_ref(), name);
        let found = found.map_err(|cause| role.fault(name, cause));
        // Another thread may have opened the same file meanwhile; `open_other` finds it by its path.
        others.known.insert(key, found.clone());
        found
    }

    fn open_other(
        &self,
        files: &mut Vec<(FilePath, Arc<File>)>,
        role: FileRole,
        home: Option<&FilePath>,
        name: &[u8],
    ) -> HdfResult<Option<u16>> {
        let Some((named, found)) = self.around.open(role, home, name)? else { return Ok(None) };
        let resolved = found.resolved;
        let known = files.iter().position(|(home, _)| home.resolved == resolved);
        let index = match known {
            Some(index) => index,
            None => {
                let too_many = HdfError::Limit {
                    structure: "external links and virtual datasets",
                    at: 0,
                    what: "files that they lead to",
                    limit: LINKED_FILES as u64,
                };
                if files.len() >= LINKED_FILES {
                    return Err(too_many);
                }
                files.push((
                    FilePath { named, resolved },
                    Arc::new(File::open(Arc::new(found.file))?),
                ));
                files.len().saturating_sub(1)
            }
        };
        // There are at most `LINKED_FILES`.
        Ok(index.checked_add(1).and_then(|number| u16::try_from(number).ok()))
    }

    /// The storage of external data that a file names.
    ///
    /// # Errors
    /// A file that does not exist is an error here, as in the reference.
    pub(crate) fn bytes(&self, from: u16, name: &[u8]) -> HdfResult<Arc<dyn Storage>> {
        let fail = |cause| FileRole::Bytes.fault(name, cause);
        let found = self.around.open(FileRole::Bytes, self.home(from).as_ref(), name);
        match found.map_err(|error| fail(error.into()))? {
            Some((_, found)) => Ok(Arc::new(found.file)),
            None => Err(fail(HdfError::NoFile)),
        }
    }
}

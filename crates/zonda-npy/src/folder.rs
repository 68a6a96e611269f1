//! The folder of a dataset: the files of its variables, and the order in which they are committed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use zonda_convert::ByteOrder;
use zonda_format::{Error, Result};
use zonda_model::NcError;
use zonda_plain::{Arrays, Changes, MakeArrays, Model, Run};

use crate::array::NpyArray;
use crate::{json, system_error};

/// A folder with a dataset.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    write: bool,
    /// The files of the variables that were asked for.
    arrays: Vec<OnceLock<NpyArray>>,
}

/// Removes a dataset: definitions, arrays, and the folder if nothing else is in it.
///
/// # Errors
/// What the operating system reports.
pub fn remove(folder: &Path) -> Result<()> {
    let is_ours = |name: &str| {
        let number = name.strip_suffix(".npy").filter(|number| !number.is_empty());
        let is_array = number.is_some_and(|number| number.bytes().all(|c| c.is_ascii_digit()));
        is_array || [json::FILE, json::NEW].contains(&name)
    };
    for entry in std::fs::read_dir(folder).map_err(|error| system_error(folder, &error))? {
        let entry = entry.map_err(|error| system_error(folder, &error))?;
        if entry.file_name().to_str().is_some_and(is_ours) {
            let path = entry.path();
            std::fs::remove_file(&path).map_err(|error| system_error(&path, &error))?;
        }
    }
    match std::fs::remove_dir(folder) {
        Err(error) if error.kind() != ErrorKind::DirectoryNotEmpty => {
            Err(system_error(folder, &error))
        }
        _ => Ok(()),
    }
}

impl Folder {
    pub(crate) fn open(path: &Path, write: bool) -> Result<Folder> {
        // The path is made absolute, since the working directory may change before an array is opened.
        let path = std::path::absolute(path).map_err(|error| system_error(path, &error))?;
        Ok(Folder { path, write, arrays: Vec::new() })
    }

    pub(crate) fn create(path: &Path, exclusive: bool) -> Result<Folder> {
        let folder = Folder::open(path, true)?;
        let path = &folder.path;
        match std::fs::read_dir(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(mut entries) => {
                if exclusive || (entries.next().is_some() && !crate::is_one(path)) {
                    let what = "the folder exists and may not be overwritten";
                    return Err(Error::because(NcError::Exist, what).at(path));
                }
                remove(path)?;
            }
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                return Err(Error::because(NcError::Exist, "there is something else than a folder, and it is not replaced; give another path").at(path));
            }
            Err(error) => return Err(system_error(path, &error)),
        }
        match std::fs::create_dir(path) {
            // Other files in the folder stay.
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(system_error(path, &error))
            }
            _ => Ok(folder),
        }
    }

    fn file(&self, index: usize) -> PathBuf {
        self.path.join(format!("{index}.npy"))
    }

    /// The arrays that were opened, with their numbers.
    fn opened(&self) -> impl Iterator<Item = (usize, &NpyArray)> {
        let arrays = self.arrays.iter().enumerate();
        arrays.filter_map(|(index, array)| Some((index, array.get()?)))
    }
}

impl Arrays for Folder {
    fn read(&mut self) -> Result<Model> {
        let model = json::read(&self.path)?;
        self.arrays.clear();
        self.arrays.resize_with(model.vars.len(), OnceLock::new);
        Ok(model)
    }

    fn run(&self, model: &Model, index: usize) -> Result<Run<'_>> {
        let (Some(var), Some(cell)) = (model.vars.get(index), self.arrays.get(index)) else {
            return Err(NcError::NotVar.into());
        };
        if cell.get().is_none() {
            // Where another thread was faster, its array is used.
            let _ = cell.set(NpyArray::open(self.file(index), self.write, var, model.records)?);
        }
        let array = cell.get().ok_or(NcError::Internal)?;
        Ok(Run { storage: &*array.storage, begin: array.begin, order: ByteOrder::Little })
    }

    fn maker(&mut self) -> Option<&mut dyn MakeArrays> {
        Some(self)
    }
}

impl MakeArrays for Folder {
    fn make(&mut self, model: &Model, index: usize) -> Result<()> {
        let var = model.vars.get(index).ok_or(NcError::NotVar)?;
        let array = NpyArray::create(self.file(index), var, model.records)?;
        self.arrays.truncate(index);
        self.arrays.push(OnceLock::from(array));
        Ok(())
    }

    /// Commits values, then the lengths in their headers, then definitions.
    fn commit(&mut self, model: &Model, changes: Changes) -> Result<()> {
        if changes.records {
            self.opened().try_for_each(|(_, array)| array.storage.barrier())?;
            for (index, array) in self.opened() {
                if let Some(var) = model.vars.get(index).filter(|var| var.is_record()) {
                    array.count(var, model.records)?;
                }
            }
        }
        self.opened().try_for_each(|(_, array)| array.storage.sync())?;
        if changes == Changes::default() {
            return Ok(());
        }
        json::write(model, &self.path)
    }

    fn remove(&mut self) -> Result<()> {
        self.arrays.clear();
        remove(&self.path)
    }
}

//! A format for tests: `TRIAL`, and the bytes of one variable. It can only be read, and tests how callers treat such
//! formats.

use std::sync::Arc;

use zonda_classic::SkippedPart;
use zonda_convert::ByteOrder;
use zonda_format::{Format, Other};
use zonda_model::{Answer, DimId, ExtType, NcError};
use zonda_plain::{Arrays, Dim, Model, PlainFile, Run, Var};
use zonda_runtime::callout::Mark;
use zonda_storage::{OpenedStorage, Storage};

use super::{Detected, FormatEntry, Magic};
use crate::error::{Error, Result};
use crate::open::Opening;
use crate::open_file::OpenFile;

pub(crate) const FORMAT: Format = Format::Other(&Other { name: "trial", model: Format::Cdf5 });
const BEGIN: &[u8] = b"TRIAL";
const MAGIC: &[Magic] = &[Magic::at_begin(BEGIN, BEGIN.len(), Detected::Other(FORMAT))];
pub(super) const ENTRY: FormatEntry =
    FormatEntry::on_bytes("a trial", &[FORMAT], MAGIC, open, None);

#[derive(Debug)]
struct TrialBytes(Arc<dyn Storage>);

impl Arrays for TrialBytes {
    fn read(&mut self) -> Result<Model> {
        let mut model = Model::new(FORMAT);
        let len = self.0.len()?.saturating_sub(BEGIN.len() as u64);
        model.dims.push(Dim { name: b"x".to_vec(), len });
        model.vars.push(Var::new(b"v".to_vec(), ExtType::Byte, vec![DimId(0)], false));
        Ok(model)
    }

    fn run(&self, _model: &Model, _index: usize) -> Result<Run<'_>> {
        let mut first = [0];
        let begin = BEGIN.len() as u64;
        if self.0.read_at(begin, &mut first)? == 1 && first == [0xff] {
            let what = "value at byte 5: it is damaged";
            return Err(Error::answered(NcError::NotNc, Answer::Damaged, what));
        }
        Ok(Run { storage: &*self.0, begin, order: ByteOrder::Big })
    }
}

/// Ignores whether the file is to be written; the caller refuses that.
fn open(opened: OpenedStorage, _how: &Opening<'_>) -> Result<(OpenFile, Vec<SkippedPart>)> {
    let file = PlainFile::open(TrialBytes(opened.storage), false)?;
    Ok((OpenFile::new(file, Mark::NONE, None), Vec::new()))
}

mod tests {
    use super::*;
    use std::ops::ControlFlow;

    use crate::check::{Grade, check};
    use crate::copy::{CopyOptions, Pattern, copy};
    use crate::format::{formats_made, on_path};
    use crate::open::{CreateOptions, Persist};
    use crate::{Dataset, OpenOptions};
    use zonda_model::{Hyperslab, VarId};
    use zonda_storage::backend::Memory;
    use zonda_testkit::TempFolder;

    const UNKNOWN: Format = Format::Other(&Other { name: "nowhere", model: Format::Cdf5 });

    #[test]
    fn what_cannot_be_created_replaces_nothing() {
        let folder = TempFolder::new("create-refused");
        let path = folder.path().join("old.nc");
        std::fs::write(&path, "what somebody needs").unwrap();
        let all = [
            (FORMAT, NcError::Perm, "files of this format can only be read"),
            (UNKNOWN, NcError::Inval, "no format is called \"nowhere\"; known: classic, "),
        ];
        for (format, code, why) in all {
            let ways = [(None, false), (None, true), (Some(Persist::Yes), false)];
            for (in_memory, share) in ways {
                let options =
                    CreateOptions { format, in_memory, share, ..CreateOptions::default() };
                let error = Dataset::create(&path, &options).unwrap_err();
                assert_eq!((error.code(), error.path()), (code, Some(&*path)), "{error}");
                assert!(error.to_string().contains(why), "{error}");
                let new = folder.path().join("new.nc");
                assert_eq!(Dataset::create(&new, &options).unwrap_err().code(), code);
                assert!(!new.exists());
                let memory = Arc::new(Memory::new());
                let error = Dataset::create_in(memory, &path, &options).unwrap_err();
                assert_eq!(error.code(), code, "{error}");
            }
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"what somebody needs");
    }

    #[test]
    fn what_can_only_be_read_is_copied_to_its_data_model() {
        let folder = TempFolder::new("only-read-copy");
        let [source, target] = ["a.trial", "a.nc"].map(|name| folder.path().join(name));
        std::fs::write(&source, "TRIALabc").unwrap();
        let copy = |options| copy(&source, &target, &options, &mut |_| ControlFlow::Continue(()));
        for (format, code) in [(FORMAT, NcError::Perm), (UNKNOWN, NcError::Inval)] {
            let error = copy(CopyOptions { format: Some(format), ..CopyOptions::default() });
            let error = error.unwrap_err();
            assert_eq!((error.code(), error.path()), (code, Some(&*target)), "{error}");
        }
        // A format that cannot be created is refused before the target is looked at.
        let options = CopyOptions { format: Some(FORMAT), ..CopyOptions::default() };
        let nowhere = folder.path().join("no folder/a.nc");
        let refused =
            crate::copy::copy(&source, &nowhere, &options, &mut |_| ControlFlow::Continue(()));
        assert_eq!(refused.unwrap_err().code(), NcError::Perm);
        // The message names this format, and not classic files.
        let (format, contiguous) = (Some(zonda_npy::FORMAT), vec![Pattern::new("v")]);
        let options = CopyOptions { format, contiguous, ..CopyOptions::default() };
        let error = copy(options).unwrap_err();
        assert!(error.to_string().contains("npy files have no chunks"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left");
        assert_eq!(copy(CopyOptions::default()).unwrap().format, Format::Cdf5);
        let file = Dataset::open(&target, &OpenOptions::default()).unwrap();
        let slab = Hyperslab { start: &[0], count: &[3], stride: None };
        let mut out = Vec::new();
        let _ = file.get_list(VarId(0), &slab, None, (&mut out, None)).unwrap();
        assert_eq!((file.format(), &*out), (Format::Cdf5, &b"abc"[..]));
    }

    #[test]
    fn a_format_of_whose_bytes_nothing_is_known_is_checked_by_its_values() {
        let folder = TempFolder::new("only-read-check");
        let path = folder.path().join("a.trial");
        let check = || check(&path, &mut |_| ControlFlow::Continue(())).unwrap();
        std::fs::write(&path, "TRIALabc").unwrap();
        let checked = check();
        assert_eq!((&checked.findings[..], checked.format), (&[][..], Some(FORMAT)));
        assert_eq!((checked.n_vars, checked.data_bytes, checked.file_bytes), (1, 3, 8));
        std::fs::write(&path, b"TRIAL\xffbc").unwrap();
        let checked = check();
        assert_eq!(checked.worst(), Some(Grade::Damage), "{checked:?}");
        assert_eq!(checked.findings[0].object.as_deref(), Some("/v"));
    }

    #[test]
    fn what_is_not_known_is_none_of_the_table() {
        let storage = Arc::new(Memory::from_slice(b"something else"));
        let opened = Dataset::open_in(storage, "a".as_ref(), &OpenOptions::default());
        let text = "a: neither a classic netCDF file nor HDF5 nor a trial, by its first bytes";
        assert_eq!(opened.unwrap_err().to_string(), text);
    }

    #[test]
    fn a_folder_is_not_created_in_bytes() {
        let options = CreateOptions { format: zonda_npy::FORMAT, ..CreateOptions::default() };
        let error =
            Dataset::create_in(Arc::new(Memory::new()), "a".as_ref(), &options).unwrap_err();
        assert_eq!(error.code(), NcError::Inval, "{error}");
    }

    #[test]
    fn what_can_only_be_read_is_not_opened_for_writing() {
        let folder = TempFolder::new("only-read-write");
        let path = folder.path().join("a.trial");
        std::fs::write(&path, "TRIALabc").unwrap();
        for in_memory in [None, Some(Persist::Yes)] {
            let options = OpenOptions { write: true, in_memory, ..OpenOptions::default() };
            let error = Dataset::open(&path, &options).unwrap_err();
            assert_eq!((error.code(), error.path()), (NcError::Perm, Some(&*path)), "{error}");
            assert!(
                error.to_string().ends_with("files of this format can only be read"),
                "{error}"
            );
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"TRIALabc");
    }

    #[test]
    fn what_can_only_be_read_is_read() {
        let folder = TempFolder::new("only-read");
        let path = folder.path().join("a.trial");
        std::fs::write(&path, "TRIALabc").unwrap();
        let file = Dataset::open(&path, &OpenOptions::default()).unwrap();
        assert_eq!((file.format(), on_path(&path)), (FORMAT, None));
        assert!(!formats_made().any(|format| format == FORMAT));
        assert!(!file.is_writable());
        assert_eq!(file.redef().unwrap_err().code(), NcError::Perm);
        file.sync().unwrap();
        file.close().unwrap();
    }
}

//! A target on a server: it is made in a folder for temporary files, and sent when it is complete.

use std::path::{Path, PathBuf};

use zonda_model::NcError;

use crate::error::{Error, Result};

/// Why nothing is written behind a URL of HTTP.
#[cfg(feature = "remote")]
const ONLY_S3: &str = "files behind http:// and https:// can only be read: copy to a path, or to s3://BUCKET/KEY (or a URL with #mode=s3)";

#[cfg(feature = "remote")]
mod upload {
    use std::fs::File;
    use std::io;
    use std::sync::Arc;

    use zonda_remote::url::Protocol;
    use zonda_remote::{Objects, RemoteUrl, objects};
    use zonda_storage::{RemoteFailure, StorageError};

    use super::{Error, NcError, ONLY_S3, Path, PathBuf, Result};
    use crate::copy::target::EXISTS;

    /// Where a file is to be sent, and the folder where it is made.
    #[derive(Debug)]
    pub(in super::super) struct Upload {
        objects: Arc<dyn Objects>,
        key: String,
        /// Removed with all that is in it.
        folder: tempfile::TempDir,
    }

    impl Upload {
        /// Prepares to send a file to a URL. Asks the server whether it is there, where it may not be replaced.
        ///
        /// # Errors
        /// `NC_EEXIST`; `EACCES` for servers that take no files; those of the server and of the folder for temporary files.
        pub(in super::super) fn to(target: &Path, replace: bool) -> Result<Upload> {
            crate::place::register();
            let url = RemoteUrl::parse_path(target).map_err(StorageError::from)?;
            let asks_for_s3 = url
                .setting("mode")
                .is_some_and(|mode| mode.split(',').any(|word| word.eq_ignore_ascii_case("s3")));
            if url.protocol != Protocol::S3 && !asks_for_s3 && url.setting("s3").is_none() {
                return Err(Error::because(NcError::System(EACCES), ONLY_S3));
            }
            let (objects, key) = objects::of_url(&url).map_err(StorageError::from)?;
            if !replace {
                match objects.get_range(&key, 0, &mut [0], None) {
                    Err(error) if error.kind == RemoteFailure::NotFound => {}
                    Ok(_) => return Err(Error::with_text(NcError::Exist, EXISTS)),
                    Err(error) => return Err(StorageError::from(error).into()),
                }
            }
            let folder = tempfile::Builder::new().prefix("zonda-upload-").tempdir();
            let folder = folder.map_err(|error| {
                of_system(&error, "no folder for the file until it is complete (TMPDIR)")
            })?;
            Ok(Upload { objects, key, folder })
        }

        /// Where the file is to be made.
        pub(in super::super) fn working_path(&self) -> PathBuf {
            self.folder.path().join("complete.nc")
        }

        /// Sends the file. Others see nothing of it before it is there whole.
        pub(in super::super) fn send(&self) -> Result<()> {
            let path = self.working_path();
            let open = || -> io::Result<(File, u64)> {
                let file = File::open(&path)?;
                let len = file.metadata()?.len();
                Ok((file, len))
            };
            let (mut file, len) =
                open().map_err(|error| of_system(&error, "the complete file cannot be read"))?;
            Ok(self.objects.put_from(&self.key, len, &mut file).map_err(StorageError::from)?)
        }
    }

    fn of_system(error: &io::Error, what: &str) -> Error {
        let code = NcError::System(error.raw_os_error().unwrap_or(0));
        Error::with_text(code, format!("{what}: {error}"))
    }

    /// `EACCES` of Linux on every architecture.
    const EACCES: i32 = 13;
}

#[cfg(not(feature = "remote"))]
mod upload {
    use super::{Error, NcError, Path, PathBuf, Result};

    /// There is none.
    #[derive(Debug)]
    pub(in super::super) enum Upload {}

    impl Upload {
        pub(in super::super) fn to(_: &Path, _: bool) -> Result<Upload> {
            Err(Error::because(
                NcError::NotBuilt,
                "this program was built without remote files (feature `remote`)",
            ))
        }

        pub(in super::super) fn working_path(&self) -> PathBuf {
            match *self {}
        }

        pub(in super::super) fn send(&self) -> Result<()> {
            match *self {}
        }
    }
}

pub(super) use upload::Upload;

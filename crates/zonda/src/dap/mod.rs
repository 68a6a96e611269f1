//! Datasets of OPeNDAP: which names are theirs, who answers, and what becomes of their definitions.

mod files;
mod name;
#[cfg(feature = "remote")]
mod remote;
mod saved;

use std::path::Path;
use std::sync::Arc;

use zonda_dap::file::{DapFile, define};
use zonda_dap::{Asked, DapError, Document, Model, Protocol, Server, dap2, dap4};
use zonda_format::{Dispatch, Format, VarRef};
use zonda_model::NcError;
use zonda_served::Phantom;
use zonda_storage::backend::Memory;
use zonda_storage::url::RemoteSettings;
use zonda_storage::{OpenedStorage, RemoteFailure, Storage};

use crate::error::{Error, Result};
use crate::format::{self, Maker};
use crate::open::CreateOptions;
use name::{DapName, DapPlace, Version};

/// Whether a name asks for a dataset of OPeNDAP: by its protocol, by `mode=dap2` or `mode=dap4`, or as a `file:` URL beside whose path there is a
/// saved response. A URL that says nothing of it may be one, too, or a file on a server.
///
/// See [`Dataset::open`](crate::Dataset::open).
#[must_use]
pub fn names_dap(name: &Path) -> bool {
    DapName::of(name).is_some_and(|name| name.version.is_some())
}

/// Opens a dataset of OPeNDAP; `None` for a name that is none of one. Where the name does not say what it is, and no server of OPeNDAP answers to it,
/// `open_bytes` opens it.
pub(crate) fn open<T>(
    name: &Path,
    settings: &RemoteSettings,
    made: impl Fn(Box<dyn Dispatch>) -> T,
    open_bytes: impl Fn() -> Result<T>,
) -> Option<Result<T>> {
    let parts = DapName::of(name)?;
    // No file may be opened at all. Errors show the URL.
    crate::place::register();
    zonda_trace::init(zonda_storage::neighbour::trusts_environment);
    let open = |version| open_by(&parts, version, settings).map(|file| made(Box::new(file)));
    Some(match (parts.version, &parts.place) {
        (Some(version), _) => open(version),
        (None, DapPlace::Server(url)) => {
            open_either(url, parts.has_query, || open(Version::Dap2), open_bytes)
        }
        (None, DapPlace::Saved(_)) => return None,
    })
}

/// Opens what a URL leads to that does not say what it is.
fn open_either<T>(
    url: &str,
    has_query: bool,
    open_dap: impl Fn() -> Result<T>,
    open_bytes: impl Fn() -> Result<T>,
) -> Result<T> {
    let is_file_first = files::are_beside(url);
    let tried = if is_file_first { Some(open_bytes()) } else { None };
    if let Some(Ok(opened)) = tried {
        return Ok(opened);
    }
    let of_dap = match open_dap() {
        Ok(opened) => {
            files::forget(url);
            return Ok(opened);
        }
        Err(error) if may_be_file(&error, has_query) => error,
        Err(error) => return Err(error),
    };
    match tried.unwrap_or_else(open_bytes) {
        Ok(opened) => {
            files::note(url);
            Ok(opened)
        }
        Err(of_bytes) => Err(neither(of_dap, of_bytes)),
    }
}

fn open_by(parts: &DapName, version: Version, settings: &RemoteSettings) -> Result<DapFile> {
    let mut asked = parts.asked.clone();
    asked.settings.extend(settings.0.iter().cloned());
    let server: Arc<dyn Server> = match &parts.place {
        DapPlace::Saved(_) if parts.has_query => {
            let what = "a saved response is always whole";
            return Err(DapError::malformed(Document::Constraint, 0, what).into());
        }
        DapPlace::Saved(path) => Arc::new(saved::SavedResponses(path.clone())),
        DapPlace::Server(url) => server(url, settings, &asked)?,
    };
    let protocol: Box<dyn Protocol> = match version {
        Version::Dap2 => Box::new(dap2::open(&server, &asked)?),
        Version::Dap4 => Box::new(dap4::open(&server, &asked)?),
    };
    let copy = copy_of(protocol.model())?;
    DapFile::new(protocol, server, &asked, copy)
}

#[cfg(feature = "remote")]
fn server(url: &str, settings: &RemoteSettings, asked: &Asked) -> Result<Arc<dyn Server>> {
    Ok(Arc::new(remote::DapServer::new(url, settings, asked)?))
}

#[cfg(not(feature = "remote"))]
fn server(_: &str, _: &RemoteSettings, _: &Asked) -> Result<Arc<dyn Server>> {
    let what = "this library was built without remote files (feature `remote`)";
    Err(Error::because(NcError::NotBuilt, what))
}

/// A file in memory with the definitions, and which of its variables is which.
fn copy_of(model: &Model) -> Result<(Box<dyn Dispatch>, Vec<VarRef>)> {
    if model.is_netcdf4 {
        return copy_as(model, Format::NetCdf4);
    }
    match copy_as(model, Format::Cdf1) {
        // A server need not keep to the lengths of its variables.
        Err(error) if matches!(error.code(), NcError::VarSize | NcError::DimSize) => {
            copy_as(model, Format::Cdf5)
        }
        made => made,
    }
}

fn copy_as(model: &Model, format: Format) -> Result<(Box<dyn Dispatch>, Vec<VarRef>)> {
    let Maker::OnBytes(make) = format::maker(format)? else {
        return Err(NcError::Internal.into());
    };
    let storage: Arc<dyn Storage> = match format.is_hdf5() {
        true => Arc::new(Memory::new()),
        false => Arc::new(Phantom::default()),
    };
    let options = CreateOptions { format, ..CreateOptions::default() };
    let made = make(OpenedStorage::of(storage), Path::new(""), &options)?;
    let (mut copy, _) = made.into_parts();
    let vars = define(model, copy.writer().ok_or(NcError::Internal)?)?;
    Ok((copy, vars))
}

/// Whether what kept a URL from being opened by DAP2 leaves it possible that it is one of a file.
fn may_be_file(error: &Error, has_query: bool) -> bool {
    match error.remote_failure() {
        // Somebody is there.
        Some(RemoteFailure::NotFound | RemoteFailure::Denied | RemoteFailure::Broken) => true,
        Some(_) => false,
        None => match error.code() {
            NcError::Dds => true,
            // A signature, perhaps.
            NcError::DapConstraint => has_query,
            _ => false,
        },
    }
}

/// The error for a URL behind which there is neither. What the server said to the first question counts, as in the reference, which asks no other;
/// but where only the dataset is not there, and the file is, what is wrong with that.
fn neither(of_dap: Error, of_bytes: Error) -> Error {
    let is_file = match of_bytes.remote_failure() {
        None => of_bytes.code() != NcError::NotNc,
        // It was to be written.
        Some(failure) => failure == RemoteFailure::ReadOnly,
    };
    // Something is wrong with the file; or the query is no constraint, so that nobody was asked for a dataset.
    if is_file || of_dap.code() == NcError::DapConstraint {
        return of_bytes;
    }
    let text = format!(
        "no netCDF file: {}; and no dataset of OPeNDAP: {}",
        of_bytes.cause(),
        of_dap.cause()
    );
    let is_there = of_bytes.remote_failure() != Some(RemoteFailure::NotFound);
    match of_dap.code() == NcError::NotFound && is_there {
        true => of_bytes.with_other_text(text),
        false => of_dap.with_other_text(text),
    }
}

#[cfg(test)]
mod tests;

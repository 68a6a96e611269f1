//! Files behind HTTP and S3.
//!
//! From the bottom up:
//!
//! - [`url`]: what a name says, and how it is shown without its secrets.
//! - [`settings`]: what is set for a server, as netCDF-C takes it from files and variables.
//! - `client`: requests: connections, redirects, repetitions, and what is believed of an answer.
//! - [`objects`]: ranges of an object, whole objects, lists: the trait [`Objects`], and one backend for each way to a server.
//! - [`Responses`]: what a service answers to URLs that it makes answers for; read as they come.
//! - [`file`]: one object as a [`Storage`](zonda_storage::Storage): ranges are planned, fetched in parallel, and kept for a while.
//!
//! [`register`] lets `zonda_storage` open URLs by all this. No thread, no socket and no certificate is there before the first URL is opened.
#![deny(unsafe_code)]

mod client;
mod error;
pub mod file;
pub mod objects;
mod responses;
pub mod settings;
pub mod url;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use client::target::ServerName;
pub use error::RemoteError;
pub use objects::{ObjectState, Objects, RangeRead};
pub use responses::{Asking, Body, Responses};
pub use url::RemoteUrl;

use zonda_runtime::fork;
use zonda_storage::url::RemoteSettings;
use zonda_storage::{Storage, StorageError};

/// Lets `zonda_storage` open URLs.
pub fn register() {
    zonda_storage::url::register(zonda_storage::url::UrlOpener { open, shown });
}

/// What a library in this folder does `https://` by: the file of it, or nothing where that is linked.
///
/// # Errors
/// In words, that there is no such file, or what is wrong with it.
pub fn check_tls(folder: &Path) -> Result<Option<PathBuf>, String> {
    client::check_tls(folder)
}

/// Leave for a thread in the background to take locks; waits while a fork is under way.
fn entered() -> fork::Inside {
    loop {
        match fork::enter() {
            Some(gate) => return gate,
            None => std::thread::sleep(NAP),
        }
    }
}

/// How long such a thread waits before it asks again.
const NAP: Duration = Duration::from_millis(1);

fn shown(name: &Path) -> Arc<str> {
    RemoteUrl::shown_name(name)
}

/// Opens the object that a URL names.
fn open(name: &Path, settings: &RemoteSettings) -> Result<Arc<dyn Storage>, StorageError> {
    let mut url = RemoteUrl::parse_path(name)?;
    url.given = settings.0.clone();
    let (objects, key) = objects::of_url(&url)?;
    // The file asks for the object by this path: it is the key of the backend, which S3 does not write as a URL does.
    url.path = key;
    Ok(Arc::new(file::RemoteFile::open(objects, &url)?))
}

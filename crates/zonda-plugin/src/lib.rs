#![doc = include_str!("../README.md")]

mod alone;
mod filter;
mod load;
mod path;
mod tuning;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_runtime::callout::{self, Mark};
use zonda_runtime::lock::{Global, MutexGuard, Rank};

use zonda_chunk::filter::{FilterError, FilterLookup};
use zonda_storage::StorageError;
use zonda_storage::neighbour::{Refusal, plugin};

pub use path::default_path;

/// The plugins that are known.
#[derive(Debug, Default)]
struct Plugins {
    /// The folders to search; `None` before the first use.
    path: Option<Vec<PathBuf>>,
    /// Every file that was opened, with the filter in it if there is one. No file is opened twice,
    /// and none is closed: plugins leave behind threads and exit handlers.
    opened: BTreeMap<PathBuf, OpenedFile>,
    /// The filters that were looked for, found or not.
    known: BTreeMap<u32, FoundFilter>,
}

/// The result of opening a file: `None` for one that is no plugin, or why it was not opened.
type OpenedFile = Result<Option<Arc<load::Plugin>>, StorageError>;

/// The result of looking for a filter: `None` if no plugin has it, or why a file that may have it was not opened.
type FoundFilter = Result<Option<Arc<load::Plugin>>, String>;

const NONE: Plugins = Plugins { path: None, opened: BTreeMap::new(), known: BTreeMap::new() };
static PLUGINS: Global<Plugins> = Global::new(Rank::Plugins, NONE, || NONE);

/// The lock is held only while plugins are looked for and loaded, never while one works. Code that a file runs while
/// it is loaded must not take it again.
fn plugins() -> MutexGuard<'static, Plugins> {
    if is_loading() {
        callout::give_up();
    }
    PLUGINS.lock()
}

/// Identifies loading in the list of plugins that a thread is in.
fn loading() -> usize {
    std::ptr::from_ref(&PLUGINS).addr()
}

/// Whether this thread is in code that a file runs when it is loaded.
fn is_loading() -> bool {
    callout::is_in(loading())
}

/// The folders in which plugins are looked for: those set last, or [`default_path`].
#[must_use]
pub fn path() -> Vec<PathBuf> {
    plugins().path.get_or_insert_with(default_path).clone()
}

/// Sets the folders in which plugins are looked for, the first to be searched first. Filters that
/// were not found are looked for again; those that were found stay.
pub fn set_path(folders: Vec<PathBuf>) {
    let mut plugins = plugins();
    plugins.path = Some(folders);
    plugins.known.retain(|_, plugin| matches!(plugin, Ok(Some(_))));
    plugins.opened.retain(|_, opened| opened.is_ok());
}

/// The filter with this registered number from the first plugin that has it, with `params` as its parameters. None if
/// there is no such plugin; that is remembered until [`set_path`]. An error if no plugin has it and files that may
/// have it were not opened, since others than root and the user of this process can change them
/// ([`zonda_storage::neighbour::plugin`]).
///
/// Neither `can_apply` nor `set_local` of the plugin is called: `params` are those that a file
/// has, or that a caller has completed.
///
/// Code in the plugin runs in this process, as it would with HDF5. `of` identifies the file whose chunks these are.
#[must_use]
pub fn find(id: u32, params: &[u32], of: Mark) -> FilterLookup {
    if is_loading() {
        let what = "a plugin called the library while it was being loaded";
        return Some(Err(FilterError::Busy { filter: "of a plugin", what }));
    }
    match plugins().find(id) {
        Ok(plugin) => Some(Ok(Arc::new(filter::PluginFilter::new(plugin?, params, of)))),
        Err(why) => Some(Err(FilterError::Refused { id, name: String::new(), why })),
    }
}

impl Plugins {
    fn find(&mut self, id: u32) -> FoundFilter {
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        let folders = self.path.get_or_insert_with(default_path).clone();
        let found = if path::are_off() { Ok(None) } else { self.search(id, &folders) };
        self.known.insert(id, found.clone());
        found
    }

    fn search(&mut self, id: u32, folders: &[PathBuf]) -> FoundFilter {
        let mut refused = None;
        for file in folders.iter().flat_map(|folder| path::candidates(folder)) {
            let opened = self.opened.entry(file).or_insert_with_key(|file| open(file));
            match opened {
                Ok(Some(plugin)) if plugin.id == id => return Ok(Some(Arc::clone(plugin))),
                Ok(_) => {}
                Err(error) => refused = refused.or_else(|| Some(error.to_string())),
            }
        }
        refused.map_or(Ok(None), Err)
    }
}

/// The plugin in a file that may be run. Only a regular file is a plugin, as for HDF5.
fn open(file: &Path) -> OpenedFile {
    match plugin::resolve(file) {
        Ok(file) => {
            let opened = callout::run(Mark::NONE, loading(), || load::open(&file));
            Ok(opened.flatten())
        }
        Err(StorageError::Refused { why: Refusal::Kind(_), .. } | StorageError::Open { .. }) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#![doc = include_str!("../README.md")]

mod filter;
mod load;
mod path;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use zonda_chunk::filter::Filter;

pub use path::default_path;

/// What is known of the plugins.
#[derive(Debug, Default)]
struct Plugins {
    /// The folders to search; none before the first use.
    path: Option<Vec<PathBuf>>,
    /// Every file that was opened, with the filter in it if there is one. No file is opened twice,
    /// and none is closed: plugins leave behind threads and exit handlers.
    opened: HashMap<PathBuf, Option<Arc<load::Plugin>>>,
    /// The filters that were asked for, found or not.
    known: HashMap<u32, Option<Arc<load::Plugin>>>,
}

/// Held only while looking for plugins and loading them, never while one works.
fn plugins() -> MutexGuard<'static, Plugins> {
    static PLUGINS: OnceLock<Mutex<Plugins>> = OnceLock::new();
    PLUGINS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
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
    plugins.known.retain(|_, plugin| plugin.is_some());
}

/// The filter with this registered number from the first plugin that has it, with `params` as its
/// parameters. None if there is no such plugin; that is remembered until [`set_path`].
///
/// Neither `can_apply` nor `set_local` of the plugin is called: `params` are those that a file
/// has, or that a caller has completed.
///
/// Code in the plugin runs in this process, as it would with HDF5: its folders are to be trusted.
#[must_use]
pub fn find(id: u32, params: &[u32]) -> Option<Arc<dyn Filter>> {
    let plugin = plugins().find(id)?;
    Some(Arc::new(filter::PluginFilter::new(plugin, params)))
}

impl Plugins {
    fn find(&mut self, id: u32) -> Option<Arc<load::Plugin>> {
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        let folders = self.path.get_or_insert_with(default_path).clone();
        let found = if path::are_off() { None } else { self.search(id, &folders) };
        self.known.insert(id, found.clone());
        found
    }

    fn search(&mut self, id: u32, folders: &[PathBuf]) -> Option<Arc<load::Plugin>> {
        for file in folders.iter().flat_map(|folder| path::candidates(folder)) {
            let plugin = self.opened.entry(file).or_insert_with_key(|file| load::open(file));
            if let Some(plugin) = plugin.as_ref().filter(|plugin| plugin.id == id) {
                return Some(Arc::clone(plugin));
            }
        }
        None
    }
}

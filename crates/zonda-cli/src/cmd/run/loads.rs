//! Which libnetcdf a program loads as it is started now, and what `zonda run` would change.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::loader;
use super::plan::{Effect, LibraryMode, Means, Python, RunPlan, ZondaLibrary};
use super::program::{ExecutableKind, Program};
use crate::failure::Result;

/// What a program loads.
#[derive(Debug)]
pub(in crate::cmd) struct ProgramLoads {
    /// The executable: the program, or the interpreter of a script.
    pub(in crate::cmd) executable: PathBuf,
    /// Each part of the program that names a libnetcdf (itself, or modules of Python), with the file that the loader finds.
    pub(in crate::cmd) found: Vec<LoadedFile>,
    /// Parts that name a libnetcdf which the loader does not find.
    pub(in crate::cmd) not_found: Vec<PathBuf>,
    /// Why parts could not be asked about, if any could not.
    pub(in crate::cmd) not_asked: Option<String>,
    /// Whether the loader ignores the environment for it.
    pub(in crate::cmd) privileged: bool,
    /// How `zonda run` gives it Zonda's library, or why it cannot.
    pub(in crate::cmd) by_run: std::result::Result<&'static str, String>,
}

/// A libnetcdf in a program.
#[derive(Debug)]
pub(in crate::cmd) struct LoadedFile {
    pub(in crate::cmd) object: PathBuf,
    pub(in crate::cmd) library: PathBuf,
    pub(in crate::cmd) is_ours: bool,
}

/// Asks the loader, with the environment as it is. No code of the program runs, but that of audit libraries that it names for the loader
/// (`DT_AUDIT`).
///
/// # Errors
/// If there is no such program, or the folder of Zonda's library is not found.
pub(in crate::cmd) fn ask(name: &OsStr, lib: Option<&Path>) -> Result<ProgramLoads> {
    let library = ZondaLibrary::find(lib)?;
    let program = Program::find(name)?;
    let plan = RunPlan::make(&program, &library, LibraryMode::Auto);
    let by_run = match (plan.effect, plan.means) {
        (Effect::None(why), _) => Err(why),
        (Effect::Unknown(why), _) => Err(format!("this is known only while it runs: {why}")),
        (Effect::Certain { .. }, Means::Path) => Ok("by LD_LIBRARY_PATH"),
        (Effect::Certain { .. }, Means::Preload) => Ok("by LD_PRELOAD"),
        (Effect::Certain { .. }, Means::Both) => Ok("by LD_LIBRARY_PATH and LD_PRELOAD"),
    };
    let executable = program.executable().to_owned();
    let (mut found, mut not_found, mut not_asked) = (Vec::new(), Vec::new(), None);
    // What the loader ignores for the program it would heed when it is asked about it.
    let ignored = ["LD_LIBRARY_PATH", "LD_PRELOAD"].map(|name| (name, std::ffi::OsString::new()));
    let environment = if program.privileged { &ignored[..] } else { &[] };
    if let ExecutableKind::Dynamic(loader) = &program.kind
        && !is_loader(loader)
    {
        not_asked = Some(format!("{} is no loader of the system", loader.display()));
    } else if let ExecutableKind::Dynamic(loader) = &program.kind {
        let modules = program.python().map(Python::ask).unwrap_or_default().modules;
        for object in std::iter::once(executable.clone()).chain(modules) {
            let now = loader::trace(loader, &object, environment);
            if now.files.is_empty() && now.missing.is_empty() {
                let (loader, object) = (loader.display(), object.display());
                not_asked = Some(format!("{loader} does not say what {object} loads"));
            }
            let is_preloaded = |file: &PathBuf| file.ends_with("libzonda-preload.so");
            let preloaded = now.files.iter().find(|file| is_preloaded(file));
            let named = now.files.iter().find(|file| loader::is_netcdf(file));
            if let Some(file) = named.map(|named| preloaded.unwrap_or(named)) {
                let is_ours = library.is_ours(file);
                found.push(LoadedFile { object, library: file.clone(), is_ours });
            } else if now.missing.iter().any(|name| loader::is_netcdf(name)) {
                not_found.push(object);
            }
        }
    }
    let privileged = program.privileged;
    Ok(ProgramLoads { executable, found, not_found, not_asked, privileged, by_run })
}

/// Whether a program names a loader of the C library, by its name, and not a program of its own that would run.
fn is_loader(path: &Path) -> bool {
    let name = path.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    ["ld-linux", "ld-musl-", "ld64.so", "ld.so"].iter().any(|begin| name.starts_with(begin))
}

/// The folder of Zonda's library.
///
/// # Errors
/// If it is not there.
pub(in crate::cmd) fn folder(lib: Option<&Path>) -> Result<PathBuf> {
    ZondaLibrary::find(lib).map(|library| library.folder().to_owned())
}

/// Whether a file is a C library of netCDF by its name.
pub(in crate::cmd) fn is_netcdf(path: &Path) -> bool {
    loader::is_netcdf(path)
}

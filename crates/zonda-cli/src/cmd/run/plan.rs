//! How the program gets Zonda's library.
//!
//! The rule of `auto`. By library path, if the loader then says of the program, and for Python of its
//! netCDF4 package, that the libnetcdf it loads is Zonda's and that no symbol gets lost which it has
//! now. R's start script puts folders of its own in front of the path. A program may take symbols of HDF5 without naming libhdf5, because its own libnetcdf brings
//! that in; Debian's netCDF4 package does so with one function, which Zonda's library brings, too
//! (`libzonda-hdf5-version.so`). Otherwise, and if a Python package brings a libnetcdf, by preloading;
//! the program's own libnetcdf is then loaded as well, but nobody calls it. What names no libnetcdf, as `env`, `timeout`, `mpiexec`, scripts, gets
//! both: the programs that it starts may need either. There is one copy of Zonda in each of them all the same, since
//! the library that is preloaded has nothing in it but jumps into the other.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::program::{ExecutableKind, Program};
use super::{loader, prepend};
use crate::failure::{CommandFailure, Result};

/// The library that programs linked to libnetcdf find.
const LIBRARY: &str = "libnetcdf.so.19";
/// The library that goes before a program's own.
const PRELOAD: &str = "libzonda-preload.so";
/// What Debian's parallel libraries are called: here they hold no code, and need the library.
const STUBS: [&str; 2] = ["libnetcdf_mpi.so.19", "libnetcdf_pnetcdf.so.19"];

/// Asks Python for its netCDF4 modules (`m`) and for libraries that packages bring (`b`). Nothing is
/// imported but the standard library.
const PYTHON_PROBE: &str = "\
import glob, importlib.util, os, sys
spec = importlib.util.find_spec('netCDF4')
for place in (spec.submodule_search_locations or []) if spec else []:
    for path in glob.glob(os.path.join(glob.escape(place), '*.so')):
        print('m' + path)
for place in sys.path:
    for path in glob.glob(os.path.join(glob.escape(place), '*.libs', 'libnetcdf-*.so*')):
        print('b' + path)
";

/// How a program gets the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cmd) enum LibraryMode {
    /// By library path, or by preloading where that does not do
    Auto,
    /// By library path (LD_LIBRARY_PATH)
    Library,
    /// By preloading (LD_PRELOAD)
    Preload,
}

/// How a program is made to find the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// `LD_LIBRARY_PATH`.
    Path,
    /// `LD_PRELOAD`.
    Preload,
    /// Both: for a program that finds no libnetcdf at all without the library path, and for those that one starts which names none.
    Both,
}

/// Where Zonda's libraries are.
#[derive(Clone, Debug)]
pub(super) struct ZondaLibrary {
    folder: PathBuf,
}

impl ZondaLibrary {
    /// Finds the libraries in the folder given, or in `../lib` relative to this executable.
    ///
    /// # Errors
    /// If they are missing.
    pub(super) fn find(folder: Option<&Path>) -> Result<ZondaLibrary> {
        let folder = match folder {
            Some(folder) => folder.to_owned(),
            None => {
                let own = std::env::current_exe()
                    .map_err(|error| CommandFailure::text(format!("where zonda is: {error}")))?;
                own.parent().map_or(PathBuf::from("../lib"), |bin| bin.join("../lib"))
            }
        };
        let real = fs::canonicalize(&folder).map_err(|error| CommandFailure::at(&folder, error))?;
        for name in [LIBRARY, PRELOAD] {
            if !real.join(name).is_file() {
                let hint = "no such file; --lib names the folder of Zonda's library";
                return Err(CommandFailure::at(&real.join(name), hint));
            }
        }
        Ok(ZondaLibrary { folder: real })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the loader can be told of it: it takes spaces and colons for the end of a name.
    fn can_be_preloaded(&self) -> bool {
        !self.folder.as_os_str().as_encoded_bytes().iter().any(|byte| b" :".contains(byte))
    }

    /// The environment variables for the loader.
    pub(super) fn environment(&self, means: Means) -> Vec<(&'static str, OsString)> {
        let mut variables = Vec::new();
        if matches!(means, Means::Path | Means::Both) {
            variables.push(("LD_LIBRARY_PATH", prepend("LD_LIBRARY_PATH", &self.folder)));
        }
        if matches!(means, Means::Preload | Means::Both) {
            variables.push(("LD_PRELOAD", prepend("LD_PRELOAD", &self.folder.join(PRELOAD))));
        }
        variables
    }

    /// Whether a file is one of Zonda's libraries, under any of its names.
    pub(super) fn is_ours(&self, path: &Path) -> bool {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        [LIBRARY, PRELOAD]
            .iter()
            .chain(&STUBS)
            .any(|name| fs::canonicalize(self.folder.join(name)).is_ok_and(|ours| ours == real))
    }
}

/// Whether the program will use the library.
#[derive(Debug)]
pub(super) enum Effect {
    /// The loader binds `object` to `file`, which is Zonda's.
    Certain {
        /// The program, or the Python module.
        object: PathBuf,
        /// The library.
        file: PathBuf,
    },
    /// That is known only while the program runs, because it does not name libnetcdf itself.
    Unknown(String),
    /// It will not, for this reason.
    None(String),
}

/// What `zonda run` does for a program.
#[derive(Debug)]
pub(super) struct RunPlan {
    /// How the program gets the library.
    pub(super) means: Means,
    /// Why this way.
    pub(super) why: String,
    /// What is known of the effect.
    pub(super) effect: Effect,
}

impl RunPlan {
    /// Examines a program and decides.
    pub(super) fn make(program: &Program, library: &ZondaLibrary, mode: LibraryMode) -> RunPlan {
        let hopeless = |reason: &str| RunPlan {
            means: if mode == LibraryMode::Preload { Means::Preload } else { Means::Path },
            why: "nothing can be done from outside".to_owned(),
            effect: Effect::None(reason.to_owned()),
        };
        let loader = match &program.kind {
            ExecutableKind::Dynamic(loader) => loader,
            ExecutableKind::Static => return hopeless("it is statically linked"),
            ExecutableKind::Other => return hopeless("it is no 64-bit program of this machine"),
        };
        if program.privileged {
            return hopeless(
                "it is setuid or setgid, or has capabilities, and the loader ignores LD_LIBRARY_PATH for such programs",
            );
        }
        let python = program.python().map(Python::ask).unwrap_or_default();
        let mut found = LoaderFindings::default();
        found.look_at(program.executable(), loader, library);
        for module in &python.modules {
            found.look_at(module, loader, library);
        }
        if let Some(bundled) = python.bundled.first() {
            let text = format!("a Python package brings {}", bundled.display());
            found.obstacle.get_or_insert(text);
        }
        if program.is_r() {
            let text = "R puts its own folders in front of the library path".to_owned();
            found.obstacle.get_or_insert(text);
        }
        match (mode, found.obstacle, found.ours) {
            (LibraryMode::Preload, _, _) => {
                RunPlan::preload(program, loader, library, found.missing, "as asked for".to_owned())
            }
            (LibraryMode::Auto, Some(obstacle), _) => {
                RunPlan::preload(program, loader, library, found.missing, obstacle)
            }
            (LibraryMode::Library, Some(obstacle), _) => RunPlan {
                means: Means::Path,
                why: "as asked for".to_owned(),
                effect: Effect::None(format!("{obstacle}; --mode preload can help")),
            },
            (_, None, Some((object, file))) => RunPlan {
                means: Means::Path,
                why: format!("{} finds libnetcdf by the library path", object.display()),
                effect: Effect::Certain { object, file },
            },
            (_, None, None) => RunPlan {
                means: match mode {
                    LibraryMode::Auto if library.can_be_preloaded() => Means::Both,
                    _ => Means::Path,
                },
                why: format!("{} names no libnetcdf", program.executable().display()),
                effect: Effect::Unknown(
                    "it names none itself; programs that it starts were not watched".to_owned(),
                ),
            },
        }
    }

    /// The plan that preloads the library. The loader is asked whether it accepts that.
    fn preload(
        program: &Program,
        loader: &Path,
        library: &ZondaLibrary,
        missing: bool,
        why: String,
    ) -> RunPlan {
        let means = if missing { Means::Both } else { Means::Preload };
        let trace = loader::trace(loader, program.executable(), &library.environment(means));
        let is_it = |file: &PathBuf| file.ends_with(PRELOAD) && library.is_ours(file);
        let effect = match trace.files.into_iter().find(is_it) {
            Some(file) => Effect::Certain { object: program.executable().to_owned(), file },
            None => Effect::None(format!("the loader does not accept {PRELOAD} for it")),
        };
        RunPlan { means, why, effect }
    }
}

/// What the loader answers for the program and its modules.
#[derive(Debug, Default)]
struct LoaderFindings {
    /// The first part that gets Zonda's library by the library path, and the library.
    ours: Option<(PathBuf, PathBuf)>,
    /// Why the library path is not enough.
    obstacle: Option<String>,
    /// Whether a part finds no libnetcdf without help.
    missing: bool,
}

impl LoaderFindings {
    fn look_at(&mut self, object: &Path, loader: &Path, library: &ZondaLibrary) {
        let by_path = loader::trace(loader, object, &library.environment(Means::Path));
        let Some(file) = by_path.files.into_iter().find(|file| loader::is_netcdf(file)) else {
            return;
        };
        let shown = object.display();
        let now = loader::trace(loader, object, &[]);
        self.missing |= now.missing.iter().any(|name| loader::is_netcdf(name));
        let lost = by_path.undefined.into_iter().find(|name| !now.undefined.contains(name));
        if !library.is_ours(&file) {
            let text = format!("{shown} would load {}", file.display());
            self.obstacle.get_or_insert(text);
        } else if let Some(symbol) = lost {
            let text = format!("{shown} takes {symbol} from what its own libnetcdf loads");
            self.obstacle.get_or_insert(text);
        } else {
            self.ours.get_or_insert_with(|| (object.to_owned(), file));
        }
    }
}

/// What a Python interpreter says about netCDF in its packages.
#[derive(Debug, Default)]
pub(super) struct Python {
    /// Extension modules of the package netCDF4.
    pub(super) modules: Vec<PathBuf>,
    /// C libraries of netCDF that packages bring.
    bundled: Vec<PathBuf>,
}

impl Python {
    pub(super) fn ask(python: &Path) -> Python {
        let output = Command::new(python)
            .args(["-c", PYTHON_PROBE])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output();
        let mut answer = Python::default();
        // A Python that does not answer is treated as one without these packages.
        for line in output.map_or(Vec::new(), |output| output.stdout).split(|&b| b == b'\n') {
            match line.split_first() {
                Some((b'm', path)) => answer.modules.push(OsString::from_vec(path.to_vec()).into()),
                Some((b'b', path)) => answer.bundled.push(OsString::from_vec(path.to_vec()).into()),
                _ => {}
            }
        }
        answer
    }
}

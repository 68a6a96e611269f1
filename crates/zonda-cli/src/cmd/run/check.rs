//! Finds out whether a program will use Zonda before it is started, by asking the loader or Python.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use super::plan::{Effect, RunPlan};
use super::program::Program;
use crate::failure::{CommandFailure, Result};

/// Asks a Python interpreter: `v` and the version of libnetcdf that its netCDF4 package calls, `n` if there is no such
/// package, `e` and why it cannot be imported; `h` if there is h5py, which calls libhdf5 itself.
const PYTHON: &str = "\
import importlib.util
if importlib.util.find_spec('h5py'):
    print('h')
if not importlib.util.find_spec('netCDF4'):
    print('n')
else:
    try:
        import netCDF4
        print('v' + netCDF4.getlibversion())
    except Exception as error:
        print('e' + ' '.join(str(error).split()))
";

/// The word in the answer of `nc_inq_libvers` that marks Zonda's library.
const OURS: &str = "Zonda";
/// What is said to users of h5py.
const H5PY: &str = "h5py and h5netcdf call libhdf5 themselves: for them nothing changes";

/// Reports which library a program will use.
///
/// For Python, this imports its netCDF4 package in the environment that the script will have, and
/// asks it for the version that `nc_inq_libvers` returns. For other programs the loader must be
/// certain.
///
/// # Errors
/// If the program will not use Zonda, or if that cannot be found out.
pub(super) fn check(
    program: &Program,
    plan: &RunPlan,
    environment: &[(&'static str, OsString)],
) -> Result<Vec<String>> {
    let shown = program.path().display();
    match (&plan.effect, program.python()) {
        (Effect::None(reason), _) => {
            Err(CommandFailure::Failed(format!("{shown} will not use Zonda: {reason}")))
        }
        (_, Some(python)) => understood(&ask(python, environment)?)
            .map_err(|reason| CommandFailure::Failed(format!("{}: {reason}", python.display()))),
        (Effect::Certain { object, file }, None) => {
            Ok(vec![format!("checked: {} will load {}", object.display(), file.display())])
        }
        (Effect::Unknown(reason), None) => Err(CommandFailure::Failed(format!(
            "whether {shown} will use Zonda cannot be told: {reason}"
        ))),
    }
}

fn ask(python: &Path, environment: &[(&'static str, OsString)]) -> Result<String> {
    let output = Command::new(python)
        .args(["-c", PYTHON])
        .envs(environment.iter().cloned())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| CommandFailure::at(python, error))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Lines for the user that follow from Python's answer, or why the answer will not do.
fn understood(answer: &str) -> std::result::Result<Vec<String>, String> {
    let with = |first: char| answer.lines().find_map(|line| line.strip_prefix(first));
    let h5py = with('h').is_some();
    if let Some(version) = with('v') {
        if !version.contains(OURS) {
            return Err(format!("its netCDF4 package calls libnetcdf {version}, not Zonda"));
        }
        let mut lines =
            vec![format!("checked: Python's netCDF4 package calls libnetcdf {version}")];
        if h5py {
            lines.push(H5PY.to_owned());
        }
        return Ok(lines);
    }
    match (with('e'), with('n')) {
        (Some(why), _) => Err(format!("its netCDF4 package cannot be imported: {why}")),
        (None, Some(_)) if h5py => Err(format!("it has no netCDF4 package; {H5PY}")),
        (None, Some(_)) => {
            Err("it has no netCDF4 package, and nothing else that is known to use libnetcdf"
                .to_owned())
        }
        (None, None) => Err("it did not answer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood() {
        let ours = understood("h\nv4.9.0 of Zonda 0.2.0 $\n").unwrap();
        assert_eq!(ours.len(), 2);
        assert!(ours[0].contains("calls libnetcdf 4.9.0 of Zonda") && ours[1].contains("libhdf5"));
        assert_eq!(understood("v4.9.0 of Zonda 0.2.0 $").unwrap().len(), 1);
        for (answer, why) in [
            ("v4.9.3 of Jul 2026", "not Zonda"),
            ("n\n", "no netCDF4 package, and"),
            ("h\nn\n", "libhdf5 themselves"),
            ("eNo module named numpy", "cannot be imported: No module"),
            ("", "did not answer"),
        ] {
            let error = understood(answer).unwrap_err();
            assert!(error.contains(why), "{answer:?}: {error}");
        }
    }
}

//! Where the library of MPI may be that belongs to a launcher.
//!
//! A program without MPI, which a launcher has started in several ranks, has to load the MPI of this launcher: ranks of another one would
//! each be alone. The variables of the launcher say which family it is of, and its file where it was installed.

use std::path::{Path, PathBuf};

/// Names of libraries in the MPICH family: upstream and its wheel, Debian, Cray, the standard ABI.
const MPICH: [&str; 5] =
    ["libmpi.so.12", "libmpich.so.12", "libmpi_cray.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0"];
/// Names of libraries of Open MPI, versions 2 to 5.
const OPEN_MPI: [&str; 3] = ["libmpi.so.40", "libmpi.so.20", "libmpi_abi.so.1"];

/// Folders below a prefix that have libraries; the last one is Intel's.
const FOLDERS: [&str; 5] =
    ["lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib/release"];

/// How many folders above that of the launcher may be the prefix: `bin`, or `intel64/bin`.
const PREFIXES: usize = 3;

/// The library that the user names; `none` for none.
const NAMED: &str = "ZONDA_MPI";

/// What is to be tried, in this order: paths of files that exist, and names that the loader may know.
///
/// `launcher` is the file of the program that started this process, `variable` gives the environment.
pub(crate) fn candidates(
    launcher: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<PathBuf> {
    match variable(NAMED).filter(|named| !named.is_empty()) {
        Some(named) if named == "none" => return Vec::new(),
        Some(named) => return vec![PathBuf::from(named)],
        None => {}
    }
    let names = names(variable);
    let is_prefix = |folder: &Path| folder.parent().is_some();
    let above = launcher.into_iter().flat_map(|file| file.ancestors().skip(2).take(PREFIXES));
    let own = variable("OPAL_PREFIX").map(PathBuf::from);
    let prefixes =
        own.into_iter().chain(above.filter(|folder| is_prefix(folder)).map(Path::to_owned));
    let mut found = Vec::new();
    for prefix in prefixes {
        for folder in FOLDERS {
            found.extend(names.iter().map(|name| prefix.join(folder).join(name)));
        }
    }
    found.retain(|file| file.is_file());
    found.extend(names.iter().map(PathBuf::from));
    found
}

/// Names of the libraries of the family that the variables tell of.
fn names(variable: &dyn Fn(&str) -> Option<String>) -> Vec<&'static str> {
    let is_there = |name: &str| variable(name).is_some();
    if is_there("OMPI_COMM_WORLD_RANK") {
        return OPEN_MPI.to_vec();
    }
    if is_there("PMI_RANK") || is_there("MV2_COMM_WORLD_RANK") || is_there("PALS_RANKID") {
        return MPICH.to_vec();
    }
    // Slurm, Flux and LSF start ranks of any MPI.
    let (first, second): (&[_], &[_]) =
        if is_there("PMIX_RANK") { (&OPEN_MPI, &MPICH) } else { (&MPICH, &OPEN_MPI) };
    [first, second].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(launcher: &str, variables: &[(&str, &str)]) -> Vec<String> {
        let variable = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let found = candidates(Some(Path::new(launcher)), &variable);
        found.iter().map(|file| file.display().to_string()).collect()
    }

    #[test]
    fn the_library_is_beside_its_launcher_or_where_the_loader_looks() {
        let prefix = std::env::temp_dir().join(format!("zonda-launcher-{}", std::process::id()));
        let file = prefix.join("lib/libmpi.so.12");
        std::fs::create_dir_all(prefix.join("lib")).unwrap();
        std::fs::write(&file, "").unwrap();
        let launcher = prefix.join("bin/hydra_pmi_proxy").display().to_string();
        let mpich = found(&launcher, &[("PMI_RANK", "0")]);
        let openmpi = found(&launcher, &[("OMPI_COMM_WORLD_RANK", "0")]);
        std::fs::remove_dir_all(&prefix).unwrap();
        assert_eq!(mpich[0], file.display().to_string());
        assert_eq!(mpich[1], "libmpi.so.12");
        assert_eq!(openmpi, OPEN_MPI);
    }

    #[test]
    fn the_user_has_the_last_word() {
        let rank = ("PMI_RANK", "0");
        assert_eq!(found("/usr/bin/x", &[rank, ("ZONDA_MPI", "/a/b.so")]), ["/a/b.so"]);
        assert!(found("/usr/bin/x", &[rank, ("ZONDA_MPI", "none")]).is_empty());
        assert!(!found("/usr/bin/x", &[rank, ("ZONDA_MPI", "")]).is_empty());
    }

    #[test]
    fn families_by_variables() {
        let by = |name: &'static str| names(&move |key| (key == name).then(String::new));
        assert_eq!(by("OMPI_COMM_WORLD_RANK"), OPEN_MPI);
        assert_eq!(by("PMI_RANK"), MPICH);
        assert_eq!(by("PMIX_RANK")[0], "libmpi.so.40");
        assert_eq!(by("SLURM_PROCID")[0], "libmpi.so.12");
        assert!(names(&|_| None).contains(&"libmpi.so.40"));
    }
}

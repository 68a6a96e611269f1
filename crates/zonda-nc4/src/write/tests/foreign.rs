//! Files of other writers, changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_format::Transfer;
use zonda_format::{DispatchWrite as _, Reserve, TypeDefinitions as _};

use zonda_hdf5::ResolvedLink;
use zonda_model::{DimId, MemType, NcError, VarId};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

use super::{check_lists, def_dim, def_var, open, seen};
use crate::model::GroupId;
use crate::write::testing::{access, put_ints};
use crate::{Nc4File, Nc4OpenOptions, VarRef};

const ROOT: GroupId = GroupId::ROOT;

fn reopen(storage: &Arc<dyn Storage>) -> Result<Nc4File, zonda_format::Error> {
    let how = Nc4OpenOptions::default();
    Ok(Nc4File::open_for_writing(Arc::clone(storage), Path::new("test.nc"), how)?)
}

fn put_int(
    file: &mut Nc4File,
    var: VarId,
    name: &str,
    value: i32,
) -> Result<(), zonda_format::Error> {
    let owner = VarRef { group: ROOT, var };
    put_ints(file, owner, name, 4, &[value]).map(drop)
}

/// Makes a change, and checks that a reader finds all as it then should be. Gives the reason where
/// the file cannot be changed so, and checks that it was not.
fn changed(
    storage: &Arc<dyn Storage>,
    change: impl FnOnce(&mut Nc4File) -> Result<(), zonda_format::Error>,
) -> Result<(), String> {
    let before = seen(&open(Arc::clone(storage)));
    let mut file = match reopen(storage) {
        Ok(file) => file,
        Err(error) => return Err(error.to_string()),
    };
    assert_eq!(seen(&file), before);
    file.redef().unwrap();
    // The classic model has no groups, and files without dimensions none to be renamed.
    if let Err(error) = change(&mut file) {
        return Err(format!("definition: {error}"));
    }
    if let Err(error) = file.enddef(Reserve::Default) {
        assert_eq!(error.code(), NcError::NotBuilt, "{error}");
        assert_eq!(seen(&open(Arc::clone(storage))), before);
        return Err(error.to_string());
    }
    // In the classic model data are not read in define mode.
    let expected = seen(&file);
    file.close().unwrap();
    assert_eq!(seen(&open(Arc::clone(storage))), expected);
    Ok(())
}

/// The changes that are tried of a file, each by its name.
fn try_all(storage: &Arc<dyn Storage>) -> Vec<(&'static str, Result<(), String>)> {
    let mut out = Vec::new();
    out.push((
        "attribute of the file",
        changed(storage, |file| put_int(file, VarId::GLOBAL, "zonda_added", 1)),
    ));
    let n_vars = open(Arc::clone(storage)).model().unwrap().groups[0].vars.len();
    for var in 0..n_vars.min(12) {
        let var = VarId(i32::try_from(var).unwrap());
        out.push((
            "attribute of a variable",
            changed(storage, |file| put_int(file, var, "zonda_added", 2)),
        ));
    }
    out.push((
        "definitions",
        changed(storage, |file| {
            let new = def_dim(file, ROOT, "zonda_dim", 977);
            let old = file.model()?.groups[0].dims.iter().copied().find(|dim| *dim != new);
            let dims: Vec<DimId> = old.into_iter().chain([new]).collect();
            def_var(file, ROOT, "zonda_var", &dims);
            def_var(file, ROOT, "zonda_dim", &[new]);
            let group = file.def_group(ROOT, b"zonda_group")?;
            def_var(file, group, "inside", &dims);
            Ok(())
        }),
    ));
    out.push((
        "rename of a variable",
        changed(storage, |file| {
            let n_vars = file.model()?.groups[0].vars.len();
            let last = i32::try_from(n_vars).unwrap() - 1;
            file.rename_var(VarId(last).into(), b"zonda_renamed")
        }),
    ));
    out.push((
        "rename of a dimension",
        changed(storage, |file| {
            let dim = file.model()?.groups[0].dims.first().copied().unwrap_or(DimId(-1));
            file.rename_dim(ROOT, dim, b"zonda_renamed")
        }),
    ));
    out
}

#[test]
fn a_file_of_the_reference_is_changed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/model.nc");
    let bytes = std::fs::read(path).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Memory::from_slice(&bytes));
    for (change, result) in try_all(&storage) {
        assert_eq!(result, Ok(()), "{change}");
    }
    let file = open(storage);
    check_lists(&file);
    // Objects moved, since some headers of the reference are not within one sector.
    let old = open(Arc::new(Memory::from_slice(&bytes)));
    let at = |file: &Nc4File| file.model().unwrap().dims[0].as_ref().unwrap().at;
    assert_ne!(at(&file), at(&old));
}

/// How many links and users a committed type of the root group counts.
fn users_of(storage: &Arc<dyn Storage>, path: &[u8]) -> u32 {
    let file = open(Arc::clone(storage));
    let file = file.hdf5();
    let ResolvedLink::Object(addr) = file.resolve(file.root(), path).unwrap() else {
        panic!("no type");
    };
    file.object(addr).unwrap().reference_count(file).unwrap()
}

#[test]
fn committed_types_count_who_has_them() {
    // h5py: a link to it, and an attribute of the root group.
    let path = "../zonda-hdf5/tests/data/attributes.h5";
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let name = "of committed type";
    let global = VarRef { group: ROOT, var: VarId::GLOBAL };
    let users_after = |change: &dyn Fn(&mut Nc4File) -> Result<(), zonda_format::Error>| {
        let storage: Arc<dyn Storage> = Arc::new(Memory::from_slice(&bytes));
        assert_eq!(users_of(&storage, b"/committed"), 2);
        assert_eq!(changed(&storage, change), Ok(()));
        let after = users_of(&storage, b"/committed");
        // It is not counted twice.
        assert_eq!(changed(&storage, |file| put_int(file, VarId::GLOBAL, name, 2)), Ok(()));
        (after, users_of(&storage, b"/committed"))
    };
    assert_eq!(users_after(&|file| put_int(file, VarId::GLOBAL, "another", 1)), (2, 1));
    assert_eq!(users_after(&|file| put_int(file, VarId::GLOBAL, name, 1)), (1, 1));
    assert_eq!(users_after(&|file| file.del_att(global, name.as_bytes())), (1, 1));
    assert_eq!(users_after(&|file| file.rename_att(global, name.as_bytes(), b"moved")), (2, 2));
    let commits = |file: &mut Nc4File| {
        put_int(file, VarId::GLOBAL, name, 1)?;
        file.enddef(Reserve::Default)?;
        file.redef()?;
        put_int(file, VarId::GLOBAL, name, 3)
    };
    assert_eq!(users_after(&commits), (1, 1));
}

#[test]
fn numbers_that_are_not_written_are_refused_with_a_reason() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/plain.h5");
    let bytes = std::fs::read(path).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Memory::from_slice(&bytes));
    let mut file = reopen(&storage).unwrap();
    let vars = &file.model().unwrap().groups[0].vars;
    let half = vars.iter().position(|var| *var.name == *b"half").unwrap();
    let half = VarId(i32::try_from(half).unwrap());
    for mem in [None, Some(MemType::F32), Some(MemType::I32)] {
        let put = access(half, &[0], &[2], mem);
        let error = file.check_put(&mut Transfer::new(put)).unwrap_err();
        assert_eq!(error.code(), NcError::NotBuilt);
        let said = error.to_string();
        assert!(
            said.contains("/half: cannot be changed: values of its type can be read"),
            "{said}"
        );
    }
    file.close().unwrap();
    let mut after = vec![0; bytes.len()];
    storage.read_at(0, &mut after).unwrap();
    assert!(after == bytes && storage.len().unwrap() == bytes.len() as u64, "nothing is changed");
}

#[test]
#[ignore = "needs files: ZONDA_FILES names folders"]
fn files_are_changed() {
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&std::env::var_os("ZONDA_FILES").unwrap()).collect();
    let mut counts = std::collections::BTreeMap::<String, u32>::new();
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            folders.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let Ok(bytes) = std::fs::read(&path) else { continue };
        if bytes.len() > 50_000_000 {
            continue;
        }
        let memory: Arc<dyn Storage> = Arc::new(Memory::from_slice(&bytes));
        let file = Nc4File::open(Arc::clone(&memory), &path, Nc4OpenOptions::default());
        let is_whole = |file: &Nc4File| {
            let model = file.model().ok()?;
            let vars = model.groups.iter().flat_map(|group| &group.vars);
            Some({ vars }.all(|var| var.nc_type > 0))
        };
        if !file.is_ok_and(|file| is_whole(&file) == Some(true)) {
            continue;
        }
        eprintln!("{}", path.display());
        for (change, result) in try_all(&memory) {
            let result = match result {
                Ok(()) => String::from("done"),
                Err(why) => why.rsplit(": ").nth(2).unwrap_or(&why).to_owned(),
            };
            *counts.entry(format!("{change}: {result}")).or_default() += 1;
        }
    }
    eprintln!("{counts:#?}");
}

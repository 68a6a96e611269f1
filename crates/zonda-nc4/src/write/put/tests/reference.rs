//! What netCDF4 and h5py read of what was put, and puts into what they made. `ZONDA_PYTHON` names
//! the Python that has them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use zonda_format::DispatchWrite as _;

use sha2::{Digest, Sha256};
use zonda_model::MemType;
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

use super::lab::Lab;
use super::user_types::{Caller, put};
use crate::{GroupId, Nc4File, Nc4OpenOptions};

/// A file of this test.
pub(super) fn place(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("zonda-put-{}-{name}", std::process::id()))
}

/// What the script prints; `None` where there is no Python for it.
#[allow(clippy::print_stdout, reason = "a test that is skipped says so")]
pub(super) fn script(command: &str, path: &Path) -> Option<String> {
    let Some(python) = std::env::var_os("ZONDA_PYTHON") else {
        println!("skipped: ZONDA_PYTHON names no Python with netCDF4 and h5py");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/values.py");
    let output = Command::new(python).arg(script).arg(command).arg(path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {said}", path.display());
    Some(String::from_utf8(output.stdout).unwrap())
}

pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the reference reads of a file: lines as the script prints them.
pub(super) fn digests(lab: &Lab, name: &str) -> Option<Vec<String>> {
    let path = place(name);
    std::fs::write(&path, lab.memory.to_vec().unwrap()).unwrap();
    let lines = script("digests", &path)?;
    std::fs::remove_file(path).unwrap();
    Some(lines.lines().map(String::from).collect())
}

#[test]
fn variables_of_other_writers_are_changed() {
    let path = place("made.h5");
    if script("make", &path).is_none() {
        return;
    }
    let memory = Arc::new(Memory::from_slice(&std::fs::read(&path).unwrap()));
    let storage: Arc<dyn Storage> = memory.clone();
    let name = Path::new("made.h5");
    let file = Nc4File::open_for_writing(storage, name, Nc4OpenOptions::default()).unwrap();
    let mut lab = Lab { memory, file };
    let var = |lab: &Lab, name: &str| {
        lab.file.model().unwrap().group(GroupId::ROOT).unwrap().find_var(name.as_bytes()).unwrap()
    };
    for name in ["single", "fixed", "extensible", "both", "plain", "run"] {
        let id = var(&lab, name);
        let before = lab.get_ints(id, &[0, 0], &[5, 4]);
        lab.put_ints(id, &[1, 2], &[2, 2], &[100, 101, 102, 103]).unwrap();
        let mut after = before;
        for (place, value) in [(6, 100), (7, 101), (10, 102), (11, 103)] {
            after[place] = value;
        }
        assert_eq!(lab.get_ints(id, &[0, 0], &[5, 4]), after, "{name}");
        if ["extensible", "both", "plain"].contains(&name) {
            lab.put_ints(id, &[8, 1], &[1, 1], &[1000]).unwrap();
            assert_eq!(lab.get_ints(id, &[7, 1], &[2, 1]), [0, 1000]);
        }
        if name == "fixed" {
            lab.file.sync().unwrap();
        }
    }
    let texts = var(&lab, "texts");
    let caller = Caller::default();
    let src = caller.texts(&[Some(b"four"), None]);
    put(&mut lab, &caller, texts, &[1], &[2], &src);
    let refused = lab.put(texts, &[1], &[1], None, MemType::I32, &[0; 4]);
    assert!(refused.is_err());
    lab.file.close().unwrap();
    std::fs::write(&path, lab.memory.to_vec().unwrap()).unwrap();
    script("changed", &path);
    std::fs::remove_file(path).unwrap();
}

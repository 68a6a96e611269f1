//! Damaged folders: errors say where the damage is, and nothing panics.

use std::fs;
use std::path::Path;

use zonda_format::{
    Access, AttPut, Destination, Dispatch, DispatchWrite, GroupId, Reserve, Transfer, Values,
};
use zonda_model::{Answer, DimId, NcError, VarId};
use zonda_slab::Hyperslab;
use zonda_testkit::{Rng, TempFolder};

const WHOLE: Hyperslab<'_> = Hyperslab { start: &[0, 0], count: &[2, 3], stride: None };

/// Two records of three numbers, and a fixed variable of text.
fn make(path: &Path) {
    let mut file = zonda_npy::create(path, true).unwrap();
    let file: &mut dyn DispatchWrite = file.writer().unwrap();
    for (name, len) in [(b"time", 0), (b"axis", 3)] {
        file.def_dim(GroupId::ROOT, name, len).unwrap();
    }
    file.def_var(GroupId::ROOT, b"t", 4, &[0, 1]).unwrap();
    file.def_var(GroupId::ROOT, b"name", 2, &[1]).unwrap();
    let (owner, name) = (VarId(0).into(), &b"scale"[..]);
    let att = AttPut { owner, name, nc_type: 6, n_values: 2, mem: None };
    let values = [0.5f64.to_ne_bytes(), f64::NAN.to_ne_bytes()].concat();
    let _all = file.put_att(&att, Values::plain(&values)).unwrap();
    file.enddef(Reserve::Default).unwrap();
    let put = Access { var: VarId(0).into(), slab: WHOLE, mem: None };
    let mut put = Transfer::new(put);
    file.check_put(&mut put).unwrap();
    let values: Vec<u8> = (0..6i32).flat_map(i32::to_ne_bytes).collect();
    let _all = file.put(&put, Values::plain(&values)).unwrap();
    file.close().unwrap();
}

fn read(file: &dyn Dispatch, var: i32, slab: Hyperslab<'_>) -> zonda_format::Result<Vec<u8>> {
    let get = Access { var: VarId(var).into(), slab, mem: None };
    let mut get = Transfer::new(get);
    file.check_get(&mut get)?;
    let mut out = vec![0; get.n_bytes];
    let _all = file.get(&get, Destination::plain(&mut out))?;
    Ok(out)
}

/// Opens a folder and reads all of it.
fn all(path: &Path) -> zonda_format::Result<()> {
    let file = zonda_npy::open(path, false)?;
    read(&*file, 0, WHOLE)?;
    read(&*file, 1, Hyperslab { start: &[0], count: &[3], stride: None }).map(drop)
}

#[test]
fn each_file_may_be_cut_or_changed_anywhere() {
    let folder = TempFolder::new("npy-damage");
    let path = folder.file("a");
    make(&path);
    all(&path).unwrap();
    let mut rng = Rng::new(7);
    for name in ["zonda-npy.json", "0.npy", "1.npy"] {
        let file = path.join(name);
        let whole = fs::read(&file).unwrap();
        let mut n_refused = 0;
        for len in 0..whole.len() {
            fs::write(&file, &whole[..len]).unwrap();
            let error = all(&path).expect_err("cut off");
            assert_eq!(error.answer(), Answer::Damaged, "{name} of {len} bytes: {error}");
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(" at byte "), "{error}");
        }
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            for _ in 0..=rng.length(3) {
                let at = rng.length(bytes.len());
                let random = rng.bits().to_le_bytes()[0];
                let likely = b"0129-[]{}\",:"[rng.length(12)];
                bytes[at] = if rng.below(2) == 0 { random } else { likely };
            }
            fs::write(&file, &bytes).unwrap();
            // The change may also give another valid dataset.
            n_refused += usize::from(all(&path).is_err());
        }
        assert!(n_refused > 100, "{name}: {n_refused}");
        fs::write(&file, &whole).unwrap();
    }
    all(&path).unwrap();
}

#[test]
fn lengths_are_believed_only_as_far_as_there_are_bytes() {
    let folder = TempFolder::new("npy-lengths");
    let path = folder.file("a");
    make(&path);
    let json = path.join("zonda-npy.json");
    let text = fs::read_to_string(&json).unwrap();
    for (from, to, code) in [
        ("\"length\": 3", "\"length\": 4611686018427387904", NcError::NotNc),
        ("\"length\": 3", "\"length\": 18446744073709551615", NcError::NotNc),
        ("\"length\": 3", "\"length\": 18446744073709551616", NcError::NotNc),
        ("\"length\": 3", "\"length\": 268435456", NcError::VarMeta),
        ("\"length\": 3", "\"length\": 0", NcError::NotNc),
        ("\"records\": 2", "\"records\": 3", NcError::VarMeta),
        ("\"records\": 2", "\"records\": 9223372036854775807", NcError::NotNc),
        ("\"version\": 1", "\"version\": 2", NcError::NotNc),
        ("\"int\"", "\"string\"", NcError::NotNc),
        ("\"int\"", "\"double\"", NcError::VarMeta),
        ("\"name\": \"axis\"", "\"name\": \"time\"", NcError::NotNc),
        ("\"name\": \"axis\"", "\"name\": \"a/b\"", NcError::NotNc),
        ("0.5", "\"half\"", NcError::NotNc),
        ("\"version\"", "\"verse\"", NcError::NotNc),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        fs::write(&json, changed).unwrap();
        let error = all(&path).expect_err(to);
        assert_eq!((error.code(), error.answer()), (code, Answer::Damaged), "{to}: {error}");
    }
    // The header is right, but the values are missing.
    fs::write(&json, text.replacen("\"records\": 2", "\"records\": 999999", 1)).unwrap();
    let array = path.join("0.npy");
    let bytes = fs::read(&array).unwrap();
    let header = String::from_utf8_lossy(&bytes[10..128]);
    let header = header.replacen("(2, 3), }     ", "(999999, 3), }", 1);
    fs::write(&array, [&bytes[..10], header.as_bytes(), &bytes[128..]].concat()).unwrap();
    let error = all(&path).unwrap_err();
    assert_eq!(error.code(), NcError::Trunc, "{error}");
    fs::write(&json, "[".repeat(1 << 20)).unwrap();
    assert_eq!(all(&path).unwrap_err().code(), NcError::NotNc);
}

#[test]
fn what_is_no_file_of_the_folder_is_not_followed() {
    let folder = TempFolder::new("npy-links");
    let path = folder.file("a");
    make(&path);
    let array = path.join("0.npy");
    fs::rename(&array, folder.file("elsewhere")).unwrap();
    std::os::unix::fs::symlink(folder.file("elsewhere"), &array).unwrap();
    let error = all(&path).unwrap_err();
    assert!(error.to_string().contains("0.npy: it is no regular file"), "{error}");
    // It is neither written nor removed when the dataset is created again.
    drop(zonda_npy::create(&path, false).unwrap());
    assert!(fs::read(folder.file("elsewhere")).unwrap().len() > 100);
}

#[test]
fn only_datasets_and_empty_folders_are_written_over() {
    let folder = TempFolder::new("npy-create");
    let code = |name: &str, exclusive| {
        zonda_npy::create(&folder.file(name), exclusive).map(drop).map_err(|error| error.code())
    };
    fs::write(folder.file("file"), "mine").unwrap();
    fs::create_dir(folder.file("empty")).unwrap();
    fs::create_dir(folder.file("full")).unwrap();
    fs::write(folder.file("full/0.npy"), "mine").unwrap();
    make(&folder.file("a"));
    fs::write(folder.file("a/notes.txt"), "mine").unwrap();
    for (name, exclusive, wanted) in [
        ("file", false, Err(NcError::Exist)),
        ("full", false, Err(NcError::Exist)),
        ("a", true, Err(NcError::Exist)),
        ("empty", true, Err(NcError::Exist)),
        ("none/a", false, Err(NcError::System(2))),
        ("empty", false, Ok(())),
        ("a", false, Ok(())),
    ] {
        assert_eq!(code(name, exclusive), wanted, "{name}");
    }
    assert!(folder.file("full/0.npy").exists() && folder.file("a/notes.txt").exists());
    assert!(!folder.file("a/0.npy").exists());
    // A dataset that was given up before its definitions ended is removed.
    let mut file = zonda_npy::create(&folder.file("new"), true).unwrap();
    file.writer().unwrap().def_dim(GroupId::ROOT, b"x", 3).unwrap();
    assert_eq!(file.definitions().find_dim(GroupId::ROOT, b"x").unwrap(), DimId(0));
    file.writer().unwrap().abort().unwrap();
    assert!(!folder.file("new").exists());
}

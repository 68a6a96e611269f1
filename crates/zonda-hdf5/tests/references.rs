//! References made by HDF5, against what HDF5 says they refer to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zonda_hdf5::links::ResolvedLink;
use zonda_hdf5::message::{Class, DataLayout};
use zonda_hdf5::{File, FileAddr, Object, Reference, Selection};
use zonda_storage::backend::Memory;

fn open(path: &Path) -> File {
    File::open(Arc::new(Memory::from_slice(&std::fs::read(path).unwrap()))).unwrap()
}

/// All elements of a contiguous dataset of references.
fn read(file: &File, object: &Object) -> Vec<Option<Reference>> {
    let datatype = object.datatype(file).unwrap();
    let Class::Reference(kind) = datatype.class else { panic!("no references: {datatype:?}") };
    let DataLayout::Contiguous { addr: Some(addr), .. } = object.layout(file).unwrap() else {
        panic!("not contiguous")
    };
    let n: u64 = object.dataspace(file).unwrap().dims.iter().product();
    let size = u64::from(datatype.size);
    let bytes = file.read("references", addr, n * size).unwrap();
    let elements = bytes.chunks_exact(usize::try_from(size).unwrap());
    elements.map(|element| Reference::read(file, kind, element).unwrap()).collect()
}

/// Row-major numbers of selected elements.
fn elements(selection: &Selection, dims: &[u64]) -> Vec<u64> {
    let mut out = Vec::new();
    let told = selection.for_each_run(dims, &mut |at, len| {
        let first = at.iter().zip(dims).fold(0, |n, (at, dim)| n * dim + at);
        out.extend(first..first + len);
        true
    });
    told.unwrap();
    assert_eq!(selection.n_elems(dims), out.len() as u64);
    out
}

fn dims(file: &File, object: FileAddr) -> Vec<u64> {
    file.object(object).unwrap().dataspace(file).unwrap().dims
}

#[test]
fn objects_and_regions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let file = open(&folder.join("references.h5"));
    let list = std::fs::read_to_string(folder.join("references.tsv")).unwrap();
    let mut found = Vec::new().into_iter();
    let mut n = 0;
    for line in list.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        if fields[0] == "D" {
            assert_eq!(found.next(), None);
            let object = file.object(FileAddr(fields[2].parse().unwrap())).unwrap();
            found = read(&file, &object).into_iter();
            continue;
        }
        n += 1;
        let reference = found.next().unwrap();
        if fields[1] == "-" {
            assert_eq!(reference, None);
            continue;
        }
        let reference = reference.unwrap();
        assert_eq!(reference.object.0.to_string(), fields[1]);
        assert_eq!((&reference.file, &reference.attribute), (&None, &None));
        let region = reference.region.as_ref().map_or("-".to_owned(), |region| {
            let elements = elements(region, &dims(&file, reference.object));
            let numbers: Vec<String> = elements.iter().map(u64::to_string).collect();
            numbers.join(",")
        });
        assert_eq!(region, fields[2]);
    }
    assert_eq!((found.next(), n), (None, 10));
}

/// Revised references, which only the C library makes: of files of HDF5's own tests.
#[test]
fn revised_references() {
    let Some(corpus) = std::env::var_os("ZONDA_CORPUS").map(PathBuf::from) else {
        eprintln!("skipped: ZONDA_CORPUS is not set");
        return;
    };
    let folder = corpus.join("files/github-scigolib-hdf5/testdata/hdf5_official");
    if !folder.exists() {
        eprintln!("skipped: {} is not there", folder.display());
        return;
    }
    let dataset = |name: &str, path: &str| {
        let file = open(&folder.join(name));
        let ResolvedLink::Object(addr) = file.resolve(file.root(), path.as_bytes()).unwrap() else {
            panic!("{name} has no {path}")
        };
        let object = file.object(addr).unwrap();
        let all: Vec<Reference> = read(&file, &object).into_iter().map(Option::unwrap).collect();
        (file, all)
    };
    let attributes = |all: &[Reference]| -> Vec<String> {
        let names = all.iter().map(|one| one.attribute.clone().unwrap().into_vec());
        names.map(|name| String::from_utf8(name).unwrap()).collect()
    };
    let (_, all) = dataset("trefer_attr.h5", "Dataset3");
    assert_eq!(attributes(&all), ["Attr1", "Attr1", "Attr2", "Attr3"]);
    assert_eq!(all[0].object, FileAddr(0x790));
    let (_, all) = dataset("trefer_ext2.h5", "Dataset3");
    assert_eq!(attributes(&all), ["Attr1", "Attr1", "Attr2", "Attr3"]);
    assert!(all.iter().all(|one| one.file.as_deref() == Some(&b"trefer_ext1.h5"[..])));
    let (file, all) = dataset("trefer_obj.h5", "Dataset3");
    assert_eq!(file.object(all[0].object).unwrap().addr(), FileAddr(0x728));
    let (_, all) = dataset("trefer_obj.h5", "Dataset5");
    assert_eq!(all[0].region, Some(Selection::All));
    let (file, all) = dataset("trefer_reg.h5", "Dataset1");
    let region = |i: usize| {
        let one = &all[i];
        elements(one.region.as_ref().unwrap(), &dims(&file, one.object))
    };
    // A box of 6 x 6 in 10 x 10 elements, ten points, a hyperslab without end.
    let want: Vec<u64> = (2..8).flat_map(|row| (2..8).map(move |at| row * 10 + at)).collect();
    assert_eq!(region(0), want);
    assert_eq!(region(1), [69, 22, 84, 16, 28, 32, 4, 90, 71, 33]);
    assert_eq!(all[2].region.as_ref().unwrap().unlimited_dim(), Some(0));
}

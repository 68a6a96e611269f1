//! The engine on the client of remote objects: how many requests it makes, and that they overlap.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use zonda::storage::Storage;
use zonda::storage::backend::Memory;
use zonda::{Dataset, GroupId, Hyperslab, OpenOptions, VarId, VarRef};
use zonda_remote::Objects;
use zonda_remote::file::RemoteFile;
use zonda_remote::objects::MemoryObjects;

/// What each request takes.
const LATENCY: Duration = Duration::from_millis(20);

fn packed(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let packed = std::fs::File::open(folder.join(name).with_added_extension("h5.gz")).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn here(bytes: &[u8]) -> Dataset {
    let storage = Memory::new();
    storage.write_at(0, bytes).unwrap();
    let options = OpenOptions::default();
    Dataset::open_in(Arc::new(storage), Path::new("near.nc"), &options).unwrap()
}

fn far(objects: &Arc<MemoryObjects>) -> Dataset {
    let file = RemoteFile::open_key(Arc::clone(objects) as Arc<dyn Objects>, "/x.nc").unwrap();
    let options = OpenOptions::default();
    Dataset::open_in(Arc::new(file), Path::new("far.nc"), &options).unwrap()
}

/// The variables of the root group: name and shape.
fn variables(file: &Dataset) -> Vec<(String, VarRef, Vec<usize>)> {
    file.meta(|meta| {
        let vars = (0..meta.n_vars() as i32).map(VarId);
        let of_var = |var| {
            let name = String::from_utf8(meta.var(var).unwrap().name.to_vec()).unwrap();
            let mut shape = [0; 8];
            let rank = meta.var_shape(var, &mut shape).unwrap();
            (name, VarRef { group: GroupId::ROOT, var }, shape[..rank].to_vec())
        };
        vars.map(of_var).collect()
    })
}

fn get(file: &Dataset, name: &str) -> Vec<u8> {
    let all = variables(file);
    let (_, var, shape) = all.iter().find(|(one, ..)| one == name).unwrap();
    let start = vec![0; shape.len()];
    let slab = Hyperslab { start: &start, count: shape, stride: None };
    let mut bytes = Vec::new();
    assert_eq!(file.get_list(*var, &slab, None, (&mut bytes, None)).unwrap().out_of_range, 0);
    bytes
}

#[test]
fn definitions_and_chunks_come_in_few_requests_at_a_time() {
    let mut lines = Vec::new();
    for (name, var, most) in [
        ("objects-old-200", "v100", 60),
        ("objects-new-200", "v100", 60),
        ("objects-new-2000", "v1000", 1000),
        ("index-btree-v1", "v10000", 20),
        ("index-fixed-array", "v10000", 20),
        ("index-extensible-array", "v10000", 20),
        ("index-btree-v2", "v10000", 20),
        ("index-filtered", "v10000", 20),
    ] {
        let bytes = packed(name);
        let near = here(&bytes);
        let objects = Arc::new(MemoryObjects::new(LATENCY));
        objects.put("/x.nc", &bytes).unwrap();
        let begin = Instant::now();
        let far = far(&objects);
        let all = variables(&far);
        let opened = begin.elapsed();
        assert!(all == variables(&near), "{name}");
        assert!(get(&far, var) == get(&near, var), "{name}");
        let took = begin.elapsed();
        let asked = objects.take_asked();
        let came: u64 = asked.iter().map(|&(_, len)| len).sum();
        lines.push(format!(
            "{name}: {} requests, {came} of {} bytes, opened after {opened:?}, got after {took:?}",
            asked.len(),
            bytes.len()
        ));
        assert!(asked.len() <= most, "{}", lines.join("\n"));
    }
}

//! Virtual datasets made by HDF5, against what HDF5 reads from them. `tests/data/make_virtual.py`
//! makes them; the values of their sources follow from their names.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use zonda_hdf5::message::DataLayout;
use zonda_hdf5::virtual_dataset::{MappingRequest, Piece, Slab};
use zonda_hdf5::{File, FileAddr, VirtualMapping, VirtualSource};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

fn numbers<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> Vec<T> {
    text.split(',').map(|number| number.parse().unwrap()).collect()
}

fn open(path: &Path) -> Arc<File> {
    let bytes = std::fs::read(path).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Memory::from_slice(&bytes));
    Arc::new(File::open(storage).unwrap())
}

fn mapping(file: &File, addr: u64) -> (VirtualMapping, Vec<u64>) {
    let object = file.object(FileAddr(addr)).unwrap();
    let DataLayout::Virtual { heap: Some(heap), index } = object.layout(file).unwrap() else {
        panic!("not a virtual dataset")
    };
    let collection = file.global_heap_collection(heap).unwrap();
    let bytes = collection.get(index).unwrap();
    let mapping = VirtualMapping::decode(file.reader("mapping", heap, bytes)).unwrap();
    (mapping, object.dataspace(file).unwrap().dims)
}

/// Row-major positions of a slab in an array of these dimensions.
fn positions(slab: &Slab, dims: &[u64]) -> Vec<usize> {
    let mut out = vec![0u64];
    for (dim, &len) in dims.iter().enumerate() {
        let coords = (0..slab.count[dim]).map(|i| slab.start[dim] + i * slab.step[dim]);
        let coords: Vec<u64> = coords.collect();
        assert!(coords.iter().all(|&at| at < len), "{slab:?} in {dims:?}");
        out = out.iter().flat_map(|&n| coords.iter().map(move |at| n * len + at)).collect();
    }
    out.into_iter().map(|n| usize::try_from(n).unwrap()).collect()
}

struct Sources(BTreeMap<String, (i32, Vec<u64>)>);

impl Sources {
    fn of(&self, source: &VirtualSource) -> Option<&(i32, Vec<u64>)> {
        assert_eq!(source.file, None);
        self.0.get(std::str::from_utf8(&source.dataset).unwrap())
    }

    fn read(
        &self,
        mapping: &VirtualMapping,
        dims: &[u64],
        request: &MappingRequest<'_>,
    ) -> Vec<i32> {
        let len: u64 = request.count.iter().product();
        let mut out = vec![-1; usize::try_from(len).unwrap()];
        let mut pieces = |source: &VirtualSource| {
            let Some((number, source_dims)) = self.of(source) else { return };
            source
                .pieces(dims, source_dims, request, &mut |piece: &Piece| {
                    let from = positions(&piece.source, source_dims);
                    let to = positions(&piece.target, request.count);
                    assert_eq!(from.len(), to.len(), "{piece:?}");
                    for (from, to) in from.into_iter().zip(to) {
                        out[to] = 1000 * number + i32::try_from(from).unwrap();
                    }
                    Ok(())
                })
                .unwrap();
        };
        for source in &mapping.sources {
            if source.is_numbered() {
                let (first, last) = source.blocks(request);
                (first..last).for_each(|number| pieces(&source.block(number)));
            } else {
                pieces(source);
            }
        }
        out
    }
}

#[test]
fn what_hdf5_reads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let list = std::fs::read_to_string(folder.join("virtual.tsv")).unwrap();
    let mut sources = Sources(BTreeMap::new());
    let mut n = 0;
    for line in list.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        if fields[0] == "S" {
            let (number, dims) = (fields[2].parse().unwrap(), numbers(fields[3]));
            sources.0.insert(fields[1].to_owned(), (number, dims));
            continue;
        }
        n += 1;
        let name = fields[2];
        let file = open(&folder.join(fields[1]));
        let (mapping, stored) = mapping(&file, fields[3].parse().unwrap());
        let dims: Vec<u64> = numbers(fields[4]);
        let values: Vec<i32> = numbers(fields[5]);
        let extent =
            mapping.extent(&stored, &mut |source| sources.of(source).map(|(_, dims)| dims.clone()));
        assert_eq!(extent, dims, "{name}");
        // Every hyperslab with strides up to 4 that begins near the corner, and the whole.
        let ones = vec![1; dims.len()];
        for stride in 1..=4u64 {
            for shift in 0..3u64 {
                for cut in 0..3u64 {
                    let start: Vec<u64> = dims.iter().map(|&dim| shift.min(dim - 1)).collect();
                    let strides: Vec<u64> = ones.iter().map(|_| stride).collect();
                    let count: Vec<u64> = dims
                        .iter()
                        .zip(&start)
                        .map(|(dim, start)| ((dim - start).div_ceil(stride)).saturating_sub(cut))
                        .collect();
                    let request = MappingRequest { start: &start, count: &count, stride: &strides };
                    let slab = Slab {
                        start: start.as_slice().into(),
                        step: strides.as_slice().into(),
                        count: count.as_slice().into(),
                    };
                    let want: Vec<i32> =
                        positions(&slab, &dims).into_iter().map(|at| values[at]).collect();
                    assert_eq!(sources.read(&mapping, &dims, &request), want, "{name} {request:?}");
                }
            }
        }
    }
    assert_eq!(n, 18);
}

#[test]
fn any_flipped_byte_of_a_mapping_is_noticed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let file = open(&folder.join("virtual-latest.h5"));
    let list = std::fs::read_to_string(folder.join("virtual.tsv")).unwrap();
    for line in list.lines().filter(|line| line.contains("virtual-latest")) {
        let addr = line.split('\t').nth(3).unwrap().parse().unwrap();
        let object = file.object(FileAddr(addr)).unwrap();
        let DataLayout::Virtual { heap: Some(heap), index } = object.layout(&file).unwrap() else {
            panic!("not a virtual dataset")
        };
        let collection = file.global_heap_collection(heap).unwrap();
        let bytes = collection.get(index).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 4;
            let reader = file.reader("mapping", heap, &damaged);
            assert!(VirtualMapping::decode(reader).is_err(), "byte {at}");
        }
    }
}

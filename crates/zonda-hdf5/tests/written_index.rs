//! Trees of chunks and collections of the global heap as they are written, read and changed by the
//! HDF5 library: by h5py and netCDF4 of the Python that `ZONDA_PYTHON` names, and by `h5dump`. What
//! that left is then changed by Zonda again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use zonda_hdf5::message::{
    AllocTime, ByteOrder, Charset, ChunkIndexKind, ChunkedLayout, Class, DataLayout, Dataspace,
    Datatype, FillTime, FillValue, FilterDescription, FixedPoint, GroupInfo, Link, LinkInfo,
    LinkTarget, Padding, SpaceKind, encode_filter_pipeline, kind,
};
use zonda_hdf5::object_header::{HeaderSpace, HeaderStyle, NewMessage, encode_header};
use zonda_hdf5::space::SECTOR;
use zonda_hdf5::{
    ChunkIndex, ChunkLocation, ChunkTree, File, FileAddr, HeapCursor, HeapId, HeapWriter,
    NewBlocks, Result, Sizes, Space, Writer,
};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

/// Where a dataset's header is; all of it fits.
const HEADER_LEN: u64 = SECTOR;
const STYLE: HeaderStyle =
    HeaderStyle { version: 2, reference_count: 1, flags: 0x0c, phase_change: None, times: None };

fn message(kind: u16, flags: u8, encode: impl FnOnce(&mut Writer) -> Result<()>) -> NewMessage {
    let mut writer = Writer::new("test", Sizes::EIGHT);
    encode(&mut writer).unwrap();
    NewMessage { kind, flags, creation_order: None, body: writer.finish().into() }
}

fn int() -> Datatype {
    let bits = FixedPoint {
        order: ByteOrder::Little,
        signed: true,
        padding: [false; 2],
        bit_offset: 0,
        precision: 32,
    };
    Datatype { size: 4, class: Class::FixedPoint(bits) }
}

fn string() -> Datatype {
    let (padding, charset) = (Padding::NullTerminated, Charset::Utf8);
    Datatype { size: 16, class: Class::VarLenString { padding, charset } }
}

fn sequence() -> Datatype {
    Datatype { size: 16, class: Class::VarLenSequence { base: Box::new(int()) } }
}

/// A file in the making.
struct Lab {
    storage: Arc<Memory>,
    file: Arc<File>,
    space: Space,
    links: Vec<(String, FileAddr)>,
}

impl Lab {
    fn new() -> Lab {
        let storage = Arc::new(Memory::new());
        let file = Arc::new(File::create(Arc::clone(&storage) as Arc<dyn Storage>, 0).unwrap());
        Lab { storage, file, space: Space::new(SECTOR), links: Vec::new() }
    }

    fn load(path: &Path) -> Lab {
        let storage = Arc::new(Memory::from_slice(&std::fs::read(path).unwrap()));
        let file = Arc::new(File::open(Arc::clone(&storage) as Arc<dyn Storage>).unwrap());
        let space = Space::new(file.superblock().eof);
        Lab { storage, file, space, links: Vec::new() }
    }

    /// Data at a fresh place.
    fn put(&mut self, bytes: &[u8]) -> FileAddr {
        let addr = self.space.alloc(bytes.len() as u64).unwrap();
        self.storage.write_at(self.file.position(addr), bytes).unwrap();
        addr
    }

    fn write_header(&mut self, addr: FileAddr, messages: &[NewMessage]) {
        let at = HeaderSpace { addr, len: HEADER_LEN - addr.0 % SECTOR };
        let mut more = |_| panic!("all of it fits");
        let header = encode_header(&STYLE, messages, &at, Sizes::EIGHT, &mut more).unwrap();
        self.storage.write_at(self.file.position(addr), &header.first).unwrap();
        self.file.forget();
    }

    fn write_dataset(
        &mut self,
        addr: FileAddr,
        datatype: &Datatype,
        dims: &[u64],
        layout: &DataLayout,
        filters: &[FilterDescription],
    ) {
        let chunked = matches!(layout, DataLayout::Chunked(_));
        let max_dims = if chunked { vec![u64::MAX; dims.len()] } else { Vec::new() };
        let space = Dataspace { kind: SpaceKind::Simple, dims: dims.into(), max_dims };
        let alloc_time = if chunked { AllocTime::Incremental } else { AllocTime::Late };
        let fill = FillValue {
            alloc_time: Some(alloc_time),
            fill_time: Some(FillTime::IfSet),
            undefined: false,
            value: chunked.then(|| (-1i32).to_le_bytes().into()),
        };
        let mut messages = vec![
            message(kind::DATASPACE, 0, |writer| space.encode(writer)),
            message(kind::DATATYPE, 1, |writer| datatype.encode(writer)),
            message(kind::FILL_VALUE, 1, |writer| fill.encode(writer)),
            message(kind::DATA_LAYOUT, 0, |writer| layout.encode(writer)),
        ];
        if !filters.is_empty() {
            let pipeline = |writer: &mut Writer| encode_filter_pipeline(filters, writer);
            messages.push(message(kind::FILTER_PIPELINE, 1, pipeline));
        }
        self.write_header(addr, &messages);
    }

    fn link(&mut self, name: &str) -> FileAddr {
        let addr = self.space.alloc_in_sector(HEADER_LEN).unwrap();
        self.links.push((name.to_owned(), addr));
        addr
    }

    /// An array of elements in the heap.
    fn array(&mut self, name: &str, datatype: &Datatype, elements: &[u8]) {
        let at = self.put(elements);
        let len = elements.len() as u64;
        let layout = DataLayout::Contiguous { addr: Some(at), len: Some(len) };
        let addr = self.link(name);
        self.write_dataset(addr, datatype, &[len / 16], &layout, &[]);
    }

    /// Writes root group and superblock, and the file to disk.
    fn finish(&mut self, path: &Path) {
        if !self.links.is_empty() {
            let links = std::mem::take(&mut self.links);
            let info = LinkInfo {
                tracked: true,
                indexed: true,
                max_creation_index: Some(i64::try_from(links.len()).unwrap()),
                heap: None,
                name_index: None,
                order_index: None,
            };
            let groups = GroupInfo { phase_change: Some((64, 60)), estimates: None };
            let mut messages = vec![
                message(kind::LINK_INFO, 0, |writer| info.encode(writer)),
                message(kind::GROUP_INFO, 1, |writer| groups.encode(writer)),
            ];
            for (order, (name, addr)) in links.iter().enumerate() {
                let link = Link {
                    name: name.as_bytes().into(),
                    charset: Charset::Ascii,
                    creation_order: Some(i64::try_from(order).unwrap()),
                    target: LinkTarget::Hard(*addr),
                };
                messages.push(message(kind::LINK, 0, |writer| link.encode(writer)));
            }
            self.write_header(self.file.root(), &messages);
        }
        self.storage.set_len(self.space.end()).unwrap();
        self.file.write_superblock(self.space.end()).unwrap();
        std::fs::write(path, self.storage.to_vec().unwrap()).unwrap();
    }
}

/// A chunked dataset, and what it holds.
struct Dataset {
    name: &'static str,
    header: FileAddr,
    chunk: Vec<u64>,
    /// Chunks along each dimension.
    counts: Vec<u64>,
    filters: Vec<FilterDescription>,
    tree: ChunkTree,
    /// The one value of each chunk.
    values: BTreeMap<Vec<u64>, i32>,
}

impl Dataset {
    fn new(
        lab: &mut Lab,
        name: &'static str,
        chunk: &[u64],
        counts: &[u64],
        deflated: bool,
    ) -> Dataset {
        let params = vec![1];
        let deflate = FilterDescription { id: 1, name: Box::default(), flags: 1, params };
        Dataset {
            name,
            header: lab.link(name),
            chunk: chunk.into(),
            counts: counts.into(),
            filters: if deflated { vec![deflate] } else { Vec::new() },
            tree: ChunkTree::new(&lab.file, chunk, 4).unwrap(),
            values: BTreeMap::new(),
        }
    }

    fn key(&self, number: u64) -> Vec<u64> {
        let mut rest = number;
        let mut key: Vec<u64> = Vec::new();
        for count in self.counts.iter().rev() {
            key.insert(0, rest % count);
            rest /= count;
        }
        key
    }

    fn total(&self) -> u64 {
        self.counts.iter().product()
    }

    fn dims(&self) -> Vec<u64> {
        self.counts.iter().zip(&self.chunk).map(|(count, chunk)| count * chunk).collect()
    }

    fn layout(&self, root: Option<FileAddr>) -> ChunkedLayout {
        ChunkedLayout {
            chunk_dims: self.chunk.clone(),
            elem_size: 4,
            index: ChunkIndexKind::BtreeV1,
            addr: root,
            partial_edge_unfiltered: false,
            wide_filtered_sizes: false,
        }
    }

    fn set(&mut self, lab: &mut Lab, number: u64, value: i32) {
        let key = self.key(number);
        let elements = usize::try_from(self.chunk.iter().product::<u64>()).unwrap();
        let mut bytes = value.to_le_bytes().repeat(elements);
        // Some chunks are stored as they are though the dataset has a filter.
        let mask = u32::from(!self.filters.is_empty() && number.is_multiple_of(3));
        if !self.filters.is_empty() && mask == 0 {
            let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
            deflate.write_all(&bytes).unwrap();
            bytes = deflate.finish().unwrap();
        }
        let at = lab.put(&bytes);
        let at = lab.file.position(at);
        let location = ChunkLocation { at, len: bytes.len() as u64, mask };
        let before = self.tree.insert(&key, location).unwrap();
        assert_eq!(before.is_some(), self.values.insert(key, value).is_some());
    }

    fn commit(&mut self, lab: &mut Lab) {
        let mut fresh = NewBlocks::new(&mut lab.space);
        let commit = self.tree.commit(&mut fresh, false).unwrap();
        fresh.write(&lab.file).unwrap();
        for (at, word) in &commit.patches {
            lab.storage.write_at(lab.file.position(*at), word).unwrap();
        }
        let layout = DataLayout::Chunked(self.layout(commit.root));
        lab.write_dataset(self.header, &int(), &self.dims(), &layout, &self.filters);
        lab.space.committed();
    }

    /// Looks at each chunk through the decoder.
    fn check(&self, lab: &Lab) {
        let object = lab.file.object(self.header).unwrap();
        let DataLayout::Chunked(layout) = object.layout(&lab.file).unwrap() else { panic!() };
        let space = object.dataspace(&lab.file).unwrap();
        assert_eq!(space.dims, self.dims());
        let filtered = !self.filters.is_empty();
        let file = Arc::clone(&lab.file);
        let index = ChunkIndex::new(file, &layout, &space.dims, &space.max_dims, filtered).unwrap();
        let mut found = BTreeMap::new();
        index
            .for_each(&mut |key, location| {
                let mut bytes = vec![0; usize::try_from(location.len).unwrap()];
                assert_eq!(lab.storage.read_at(location.at, &mut bytes).unwrap(), bytes.len());
                if filtered && location.mask == 0 {
                    let deflated = std::mem::take(&mut bytes);
                    flate2::read::ZlibDecoder::new(&deflated[..]).read_to_end(&mut bytes).unwrap();
                }
                assert_eq!(bytes.len() as u64, 4 * self.chunk.iter().product::<u64>());
                let value = i32::from_le_bytes(bytes[..4].try_into().unwrap());
                found.insert(key.to_vec(), value);
            })
            .unwrap();
        assert!(found == self.values, "{}", self.name);
    }

    /// Goes on with the tree in the file.
    fn reload(&mut self, lab: &Lab) {
        let object = lab.file.object(self.header).unwrap();
        let DataLayout::Chunked(layout) = object.layout(&lab.file).unwrap() else { panic!() };
        self.tree = ChunkTree::load(&lab.file, &layout, !self.filters.is_empty()).unwrap();
    }

    /// What the library shall find.
    fn describe(&self, out: &mut String) {
        writeln!(out, "dataset\t{}\t{:?}\t{:?}", self.name, self.dims(), self.chunk).unwrap();
        for (key, value) in &self.values {
            writeln!(out, "{key:?}\t{value}").unwrap();
        }
    }
}

/// Numbers below `n` in no order.
fn shuffled(n: u64, seed: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..n).collect();
    all.sort_by_key(|i| (i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    all
}

/// What a command says, if it is installed.
fn run(command: impl AsRef<OsStr>, arguments: &[&OsStr]) -> Option<String> {
    let output = match Command::new(command.as_ref()).args(arguments).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: {} is not installed", command.as_ref().display());
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text}{errors}");
    Some(text)
}

fn python(arguments: &[&str]) -> Option<String> {
    let Some(python) = std::env::var_os("ZONDA_PYTHON") else {
        eprintln!("skipped: ZONDA_PYTHON names no Python with h5py");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/written_index.py");
    let arguments = arguments.iter().map(OsStr::new);
    run(python, &[script.as_os_str()].into_iter().chain(arguments).collect::<Vec<_>>())
}

/// Files on disk, which stay there where a test fails.
fn on_disk(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("zonda-index-{}-{name}", std::process::id()));
    eprintln!("{}", path.display());
    path
}

#[test]
fn trees_of_chunks() {
    let mut lab = Lab::new();
    let mut all = vec![
        Dataset::new(&mut lab, "one", &[3], &[20_000], false),
        Dataset::new(&mut lab, "two", &[1, 4], &[100, 60], false),
        Dataset::new(&mut lab, "three", &[1, 2, 3], &[30, 20, 10], false),
        Dataset::new(&mut lab, "four", &[1, 1, 2, 2], &[8, 7, 6, 5], false),
        Dataset::new(&mut lab, "five", &[1, 2, 1, 2, 1], &[3, 4, 5, 6, 7], false),
        Dataset::new(&mut lab, "deflated", &[2, 50], &[12, 30], true),
        Dataset::new(&mut lab, "single", &[2, 2], &[1, 1], false),
        Dataset::new(&mut lab, "none", &[2, 2], &[3, 3], false),
    ];
    for (i, dataset) in all.iter_mut().enumerate() {
        let total = dataset.total();
        let order: Vec<u64> = match i {
            0 => (0..total).collect(),
            1 => (0..total).rev().collect(),
            3 => (0..7).flat_map(|from| (from..total).step_by(7)).collect(),
            7 => Vec::new(),
            _ => shuffled(total, 0),
        };
        // Not all of them, so that something is left for others to put between.
        let order: Vec<u64> = order.into_iter().filter(|n| i < 2 || n % 10 < 7).collect();
        for part in order.chunks(order.len().div_ceil(4).max(1)) {
            for &number in part {
                dataset.set(&mut lab, number, i32::try_from(number).unwrap());
            }
            dataset.commit(&mut lab);
        }
        dataset.commit(&mut lab);
        dataset.check(&lab);
    }
    let path = on_disk("trees.h5");
    let expected = on_disk("trees.tsv");
    let describe = |all: &[Dataset]| {
        let mut text = String::new();
        all.iter().for_each(|dataset| dataset.describe(&mut text));
        std::fs::write(&expected, text).unwrap();
    };
    let paths = [path.to_str().unwrap(), expected.to_str().unwrap()];
    lab.finish(&path);
    describe(&all);
    if let Some(text) = run("h5dump", &["-H".as_ref(), "-p".as_ref(), path.as_os_str()]) {
        assert!(text.contains("CHUNKED ( 1, 2, 1, 2, 1 )"), "{text}");
    }
    let rounds = if python(&["check", paths[0], paths[1]]).is_some() { 2 } else { 0 };
    for round in 1..=rounds {
        // The library puts chunks between, over and behind those that are there.
        for dataset in &mut all {
            dataset.counts.iter_mut().for_each(|count| *count += 1);
            let n = dataset.total();
            for number in shuffled(n, round).into_iter().take(usize::try_from(n / 6 + 1).unwrap()) {
                let value = 1_000_000 * i32::try_from(round).unwrap() + number as i32;
                dataset.values.insert(dataset.key(number), value);
            }
        }
        describe(&all);
        python(&["change", paths[0], paths[1]]).unwrap();
        python(&["check", paths[0], paths[1]]).unwrap();
        // And then Zonda, in the same trees.
        lab = Lab::load(&path);
        for dataset in &mut all {
            dataset.check(&lab);
            dataset.reload(&lab);
            *dataset.counts.first_mut().unwrap() += 2;
            let n = dataset.total();
            for number in shuffled(n, 77 * round).into_iter().take(usize::try_from(n / 4).unwrap())
            {
                let value = 1_500_000 * i32::try_from(round).unwrap() + number as i32;
                dataset.set(&mut lab, number, value);
            }
            // A tree from which chunks are gone.
            for number in (0..n).filter(|number| number % 50 < 12) {
                let key = dataset.key(number);
                let removed = dataset.tree.remove(&key).unwrap();
                assert_eq!(removed.is_some(), dataset.values.remove(&key).is_some());
            }
            dataset.commit(&mut lab);
            dataset.check(&lab);
        }
        lab.finish(&path);
        describe(&all);
        python(&["check", paths[0], paths[1]]).unwrap();
    }
    for path in [path, expected] {
        std::fs::remove_file(path).unwrap();
    }
}

/// String `i` of the test.
fn text(i: usize) -> Vec<u8> {
    match i {
        5 => b"x".repeat(5_000_000),
        6 => b"y".repeat(70_000),
        7 => "h\u{f6}he".as_bytes().to_vec(),
        _ => format!("{i},").repeat(i * i % 11).into_bytes(),
    }
}

#[test]
fn collections_of_the_heap() {
    for n in [100usize, 1_000_000] {
        let mut lab = Lab::new();
        let mut heap = HeapWriter::new(lab.file.sizes());
        let (mut texts, mut lists) = (Vec::new(), Vec::new());
        for i in 0..n {
            let text = text(i);
            let id = heap.put(&text, &mut lab.space).unwrap();
            let id = (i % 1000 != 3).then_some(id);
            let len = if id.is_some() { u32::try_from(text.len()).unwrap() } else { 0 };
            HeapId::encode(id, len, Sizes::EIGHT, &mut texts).unwrap();
            if i % 100 == 0 {
                let list: Vec<u8> = (0..i as i32 % 700).flat_map(i32::to_le_bytes).collect();
                let id = heap.put(&list, &mut lab.space).unwrap();
                let len = u32::try_from(list.len() / 4).unwrap();
                HeapId::encode(Some(id), len, Sizes::EIGHT, &mut lists).unwrap();
            }
            if heap.pending() > 1 << 20 {
                heap.flush(&lab.file).unwrap();
            }
            if i % 250_000 == 30 {
                heap.commit(&lab.file, &mut lab.space).unwrap();
                heap.show(&lab.file).unwrap();
            }
        }
        heap.commit(&lab.file, &mut lab.space).unwrap();
        heap.show(&lab.file).unwrap();
        lab.array("texts", &string(), &texts);
        lab.array("lists", &sequence(), &lists);
        let path = on_disk(&format!("heap{n}.h5"));
        lab.finish(&path);
        if n < 1000
            && let Some(dumped) =
                run("h5dump", &["-d".as_ref(), "lists".as_ref(), path.as_os_str()])
        {
            assert!(dumped.contains("(0): ()"), "{dumped}");
        }
        let (name, n) = (path.to_str().unwrap(), n.to_string());
        if python(&["texts", name, &n]).is_some() {
            python(&["change_texts", name, &n]).unwrap();
            // What the library put into the same collections, beside what was there.
            let lab = Lab::load(&path);
            let root = lab.file.object(lab.file.root()).unwrap();
            let links = root.links(&lab.file).unwrap();
            let link = links.iter().find(|link| &*link.name == b"texts").unwrap();
            let LinkTarget::Hard(addr) = link.target else { panic!() };
            let object = lab.file.object(addr).unwrap();
            let DataLayout::Contiguous { addr: Some(addr), .. } = object.layout(&lab.file).unwrap()
            else {
                panic!()
            };
            let elements = lab.file.read("elements", addr, texts.len() as u64).unwrap();
            let mut cursor = HeapCursor::default();
            for (i, element) in elements.chunks(16).enumerate() {
                let len = u32::from_le_bytes(element[..4].try_into().unwrap());
                let at = FileAddr(u64::from_le_bytes(element[4..12].try_into().unwrap()));
                let index = u32::from_le_bytes(element[12..].try_into().unwrap());
                let want = match i {
                    _ if i % 7 == 1 && i < 20_000 => format!("new {i}").into_bytes(),
                    _ if i % 1000 == 3 => Vec::new(),
                    _ => text(i),
                };
                assert_eq!(len as usize, want.len(), "{i}");
                if len > 0 {
                    let got = cursor.get(&lab.file, at, index).unwrap();
                    assert!(got.is_some_and(|got| got.starts_with(&want)), "{i}");
                }
            }
        }
        std::fs::remove_file(path).unwrap();
    }
}

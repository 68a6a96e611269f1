//! No message that a reader does not need may refuse a file: with such messages damaged, each in
//! several ways and with the checksum of its block made right, files give what they gave before, and
//! the walk over the structures, which `zonda check` is made of, tells of the damage.

#[allow(dead_code, reason = "each test uses a part")]
mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_format::Definitions as _;

use sha2::{Digest, Sha256};
use zonda_hdf5::checksum::lookup3;
use zonda_hdf5::message::kind;
use zonda_hdf5::{File, FileAddr, Message, ObjectHeader};
use zonda_model::VarId;
use zonda_nc4::{FileUsage, GroupId, Nc4Error, Nc4File, Nc4OpenOptions, VarRef};
use zonda_storage::backend::Memory;

/// What nobody needs who reads elements and definitions. The table of shared messages is one where no
/// message is shared.
const UNNEEDED: [u16; 9] = [
    kind::GROUP_INFO,
    kind::COMMENT,
    kind::OLD_MODIFICATION_TIME,
    kind::MODIFICATION_TIME,
    kind::REFERENCE_COUNT,
    kind::K_VALUES,
    kind::DRIVER_INFO,
    kind::FILE_SPACE_INFO,
    kind::SHARED_MESSAGE_TABLE,
];

/// Bytes of a file of which all damages are tried.
const LONGEST: u64 = 100_000;

fn open(bytes: &[u8], folder: &Path) -> Result<Nc4File, Nc4Error> {
    let how = Nc4OpenOptions { path: Some(folder.join("file")), ..Nc4OpenOptions::default() };
    Nc4File::open(Arc::new(Memory::from_slice(bytes)), Path::new("/"), how)
}

/// All that can be asked of a file, as one number; what fails as its error.
fn digest(bytes: &[u8], folder: &Path) -> Result<String, String> {
    let file = open(bytes, folder).map_err(|error| error.to_string())?;
    let model = file.model().map_err(|error| error.to_string())?;
    let mut digest = Sha256::new();
    let mut add = |what: &str, bytes: Result<Vec<u8>, zonda_format::Error>| {
        digest.update(what);
        digest.update(bytes.unwrap_or_else(|error| error.to_string().into_bytes()));
    };
    for (group, id) in model.groups.iter().zip(0u16..) {
        let id = GroupId(id);
        add(&format!("{:?} {:?} {:?}", group.name, group.dims, group.types), Ok(Vec::new()));
        let owners = (0..=group.vars.len() as i32).map(|var| VarId(var - 1));
        for var in owners {
            let owner = VarRef { group: id, var };
            for i in 0..file.n_atts(owner).unwrap_or(0) {
                let info = file.att(owner, i).unwrap();
                add(
                    &format!("{:?} {} {}", info.name, info.nc_type, info.len),
                    support::read_att(&file, owner, &info.name, info.nc_type),
                );
            }
            let Some(known) = model.var(id, var) else { continue };
            let info = file.var_info(id, var).map(|info| format!("{info:?}").into_bytes());
            let info = info.map_err(zonda_format::Error::from);
            add(&format!("{:?} {} {:?}", known.name, known.nc_type, known.dims), info);
            let Ok(extent) = file.extent(id, var) else { continue };
            let count: Vec<usize> = extent.iter().map(|&n| n as usize).collect();
            let n = count.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim));
            if known.nc_type != 0 && n.is_some_and(|n| n < 1 << 18) {
                let values = support::read(&file, id, var.0, &vec![0; count.len()], &count);
                add("values", values);
            }
        }
    }
    Ok(format!("{:x}", digest.finalize()))
}

/// What is done to the body of a message.
type Change = &'static dyn Fn(&mut [u8]);

/// A message, and the blocks of its header.
struct VlenSink {
    kind: u16,
    at: usize,
    len: usize,
    /// First byte and bytes of blocks with a checksum.
    blocks: Vec<(usize, usize)>,
}

/// Where messages are that nobody needs: of all headers that can be reached, and of the extension.
fn places(bytes: &[u8]) -> Vec<VlenSink> {
    let file = Arc::new(File::open(Arc::new(Memory::from_slice(bytes))).unwrap());
    let usage = FileUsage::of(&file);
    let mut headers: Vec<FileAddr> = usage.objects.keys().copied().collect();
    headers.extend(file.superblock().extension);
    headers.sort_unstable();
    headers.dedup();
    let mut places = Vec::new();
    let (mut shares, at) = (false, |addr| file.position(addr) as usize);
    for addr in headers {
        let Ok(header) = ObjectHeader::read(&file, addr) else { continue };
        let mut blocks = vec![(at(addr), header.first_len as usize)];
        blocks.extend(header.continuations(file.sizes()).map(|(addr, n)| (at(addr), n as usize)));
        if header.version == 1 {
            blocks.clear();
        }
        shares |= header.messages.iter().any(Message::is_shared);
        for message in header.messages.iter().filter(|message| UNNEEDED.contains(&message.kind)) {
            let (at, len) = (message.at as usize, message.len as usize);
            places.push(VlenSink { kind: message.kind, at, len, blocks: blocks.clone() });
        }
    }
    places.retain(|place| !shares || place.kind != kind::SHARED_MESSAGE_TABLE);
    places
}

/// The file with a message changed.
fn changed(bytes: &[u8], place: &VlenSink, change: &dyn Fn(&mut [u8])) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    change(&mut bytes[place.at..place.at + place.len]);
    for &(at, len) in &place.blocks {
        let end = at + len - 4;
        let checksum = lookup3(&bytes[at..end], 0).to_le_bytes();
        bytes[end..end + 4].copy_from_slice(&checksum);
    }
    bytes
}

/// Files of this crate, of the one below, the corpus of the project and, where there is one, a larger.
fn files() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["tests/data", "../zonda-hdf5/tests/data", "../../tests/corpus/files"];
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| here.join(folder)).collect();
    if let (Some(corpus), Some(_)) =
        (std::env::var_os("ZONDA_CORPUS"), std::env::var_os("ZONDA_LONG"))
    {
        folders.push(PathBuf::from(corpus).join("files"));
    }
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ if entry.metadata().is_ok_and(|data| data.len() < LONGEST) => {
                    files.push(entry.path());
                }
                _ => {}
            }
        }
    }
    files.sort();
    files
}

#[test]
fn what_nobody_needs_may_be_damaged() {
    const CHANGES: [(&str, Change); 5] = [
        ("the next version", &|body| body[0] = body[0].wrapping_add(1)),
        ("version 255", &|body| body[0] = 255),
        ("ones", &|body| body.fill(0xff)),
        ("zeros", &|body| body.fill(0)),
        ("all but the version", &|body| body[1..].iter_mut().for_each(|byte| *byte ^= 0x5a)),
    ];
    let (mut n_files, mut n_tried, mut n_told, mut kinds) = (0, 0, 0, Vec::new());
    for path in files() {
        let bytes = std::fs::read(&path).unwrap();
        let folder = path.parent().unwrap();
        let Ok(before) = digest(&bytes, folder) else { continue };
        n_files += 1;
        let faults = |bytes: &[u8]| {
            let file = Arc::new(File::open(Arc::new(Memory::from_slice(bytes))).unwrap());
            FileUsage::of(&file).faults.len()
        };
        let n_before = faults(&bytes);
        // Files have many messages that are alike: some of each kind.
        let mut places = places(&bytes);
        for kind in UNNEEDED {
            let mut seen = 0;
            places.retain(|place| {
                seen += usize::from(place.kind == kind);
                place.kind != kind || seen <= 3
            });
        }
        for place in places.iter().filter(|place| place.len > 0) {
            for (what, change) in CHANGES {
                let damaged = changed(&bytes, place, change);
                let name = format!("{}: {} {what}", path.display(), kind::name(place.kind));
                match digest(&damaged, folder) {
                    // A driver that says that there are several files is believed.
                    Err(error) if error.contains("split into several") => {}
                    after => assert_eq!(after.as_ref(), Ok(&before), "{name}"),
                }
                n_tried += 1;
                n_told += usize::from(faults(&damaged) > n_before);
                kinds.push(place.kind);
            }
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    assert!(n_files > 10 && n_tried > 100 && kinds.len() > 3, "{n_tried} of {n_files}: {kinds:?}");
    // Of most kinds not every value is wrong, but a version that is not known is.
    assert!(n_told * 3 > n_tried, "{n_told} of {n_tried}");
}

/// A message that a library did not know when it changed the file: what it says is passed over, as
/// libhdf5 does.
#[test]
fn file_space_of_files_that_an_older_library_changed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/files");
    for name in ["fsm_aggr_persist.h5", "paged_nopersist.h5"] {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let file = open(&bytes, &folder).unwrap();
        let model = file.model().unwrap();
        let var = model.group(GroupId::ROOT).unwrap().find_var(b"dset").unwrap();
        let values = support::read(&file, GroupId::ROOT, var.0, &[0], &[100]).unwrap();
        // The file was made without a put.
        assert_eq!(values, [0; 400], "{name}");
        assert!(FileUsage::of(file.hdf5()).faults.is_empty(), "{name}");
    }
}

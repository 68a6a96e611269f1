//! How often small files are read and written: what they cost is calls of the system.

use std::sync::Arc;

use zonda_classic::{ClassicFile, FillMode, Reserve, Version};
use zonda_format::{AttPut, DispatchWrite, GroupId, Values, VarRef};
use zonda_model::VarId;
use zonda_storage::Storage;
use zonda_storage::backend::Memory;
use zonda_storage::layer::{Count, Counts};

const ROOT: GroupId = GroupId::ROOT;

/// Makes a file of so many variables with five attributes each.
fn make(n_vars: usize, fill: FillMode) -> (Arc<dyn Storage>, Counts) {
    let memory: Arc<dyn Storage> = Arc::new(Memory::new());
    let count = Count::new(Arc::clone(&memory));
    let counts = count.handle();
    let mut file = ClassicFile::create(Arc::new(count), None, Version::Cdf1, false);
    file.set_fill(fill).unwrap();
    let x = file.def_dim(ROOT, b"x", 2).unwrap();
    for n in 0..n_vars {
        let var = file.def_var(ROOT, format!("variable_{n}").as_bytes(), 5, &[x.0]).unwrap();
        for name in ["a", "b", "c", "d", "e"] {
            let (owner, n_values) = (VarRef { group: ROOT, var }, 12);
            let att = AttPut { owner, name: name.as_bytes(), nc_type: 2, mem: None, n_values };
            file.put_att(&att, Values::plain(b"some text ok")).map(drop).unwrap();
        }
    }
    file.enddef(Reserve::Default).unwrap();
    file.close().unwrap();
    (memory, counts.counts())
}

#[test]
fn a_small_file_that_is_not_filled_is_one_write() {
    let (memory, counts) = make(8, FillMode::NoFill);
    assert_eq!((counts.write.calls, counts.set_len.calls, counts.read.calls), (1, 0, 0));
    let file = ClassicFile::open(Arc::clone(&memory), None, false, false).unwrap();
    let header = file.header();
    let last = header.vars.last().unwrap();
    assert_eq!(memory.len().unwrap(), last.begin + 8, "it has its full length");
    assert!(memory.len().unwrap() <= 4096, "in one page");
}

#[test]
fn longer_files_get_their_length_at_the_close() {
    let (memory, counts) = make(100, FillMode::NoFill);
    // All pages but the first, and that.
    assert_eq!((counts.write.calls, counts.set_len.calls), (2, 1));
    let file = ClassicFile::open(Arc::clone(&memory), None, false, false).unwrap();
    assert_eq!(memory.len().unwrap(), file.header().vars.last().unwrap().begin + 8);
}

/// The first read tells how long the header may be, and the second has all of it (up to 512 KiB), whatever was open before in this thread.
#[test]
fn a_header_is_two_reads_whatever_was_open_before() {
    for n_vars in [8, 1000, 8, 1000, 100, 2000, 1000, 8] {
        let (memory, _) = make(n_vars, FillMode::Fill);
        let count = Count::new(memory);
        let counts = count.handle();
        let file = ClassicFile::open(Arc::new(count), None, false, false).unwrap();
        let vars = &file.header().vars;
        assert_eq!(vars.len(), n_vars);
        for (n, var) in vars.iter().enumerate() {
            assert_eq!(*var.name, *format!("variable_{n}").as_bytes());
            let (at, att) = file.header().att(VarId(n as i32), b"d").unwrap();
            assert_eq!((at, att.bytes, att.len), (3, &b"some text ok"[..], 12));
        }
        let read = counts.counts().read;
        let most = 8192 + 2 * file.header().layout.header_len;
        assert!(read.calls <= 2 && read.bytes <= most, "{n_vars}: {read:?}");
    }
}

//! Strings and user-defined types.

use std::cell::RefCell;
use std::rc::Rc;
use zonda_format::{DispatchWrite as _, TypeDefinitions as _};

use zonda_format::{AttPut, Destination, Values, VlenSink, VlenSource};
use zonda_model::{MemType, NcError, VarId};

use super::lab::{Kind, Lab, Made};
use super::reference::{digest, digests};
use crate::write::ObjectKey;
use crate::write::store::ElementStorage;
use crate::write::testing::{access, of};
use crate::{GroupId, StorageRequest};

/// The caller's memory: addresses are numbers from 1 on.
#[derive(Clone, Default)]
pub(super) struct Caller(Rc<RefCell<Vec<Box<[u8]>>>>);

impl Caller {
    fn keep(&self, bytes: &[u8]) -> u64 {
        self.0.borrow_mut().push(bytes.into());
        self.0.borrow().len() as u64
    }

    fn at(&self, address: u64) -> Vec<u8> {
        self.0.borrow()[address as usize - 1].to_vec()
    }

    /// Strings as elements; `None` is a null pointer.
    pub(super) fn texts(&self, texts: &[Option<&[u8]>]) -> Vec<u8> {
        texts.iter().flat_map(|text| text.map_or(0, |text| self.keep(text)).to_ne_bytes()).collect()
    }

    /// A sequence of items.
    fn items(&self, n: u64, items: &[u8]) -> Vec<u8> {
        [n.to_ne_bytes(), self.keep(items).to_ne_bytes()].concat()
    }
}

impl VlenSink for Caller {
    fn place(&mut self, bytes: &[u8], _: bool) -> Option<u64> {
        Some(self.keep(bytes))
    }
}

pub(super) struct Fetched {
    pub(super) caller: Caller,
    pub(super) last: Vec<u8>,
}

impl VlenSource for Fetched {
    fn text(&mut self, address: u64) -> Option<&[u8]> {
        self.last = self.caller.at(address);
        Some(&self.last)
    }

    fn items(&mut self, address: u64, len: usize) -> &[u8] {
        self.last = self.caller.at(address);
        assert_eq!(self.last.len(), len);
        &self.last
    }
}

pub(super) fn put(
    lab: &mut Lab,
    caller: &Caller,
    var: VarId,
    start: &[usize],
    count: &[usize],
    src: &[u8],
) {
    let mut fetch = Fetched { caller: caller.clone(), last: Vec::new() };
    let values = Values { bytes: src, fetch: Some(&mut fetch) };
    let found = lab.put_values(&access(var, start, count, None), values).unwrap();
    assert_eq!(found, 0);
}

fn get(lab: &Lab, caller: &mut Caller, var: VarId, count: &[usize], len: usize) -> Vec<u8> {
    let mut out = vec![7; len];
    let start = vec![0; count.len()];
    let room = Destination { bytes: &mut out, place: Some(caller) };
    let found = lab.get_values(&access(var, &start, count, None), room).unwrap();
    assert_eq!(found, 0);
    out
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

pub(super) fn texts(lab: &Lab, var: VarId, n: usize) -> Vec<Option<Vec<u8>>> {
    let mut caller = Caller::default();
    let got = words(&get(lab, &mut caller, var, &[n], 8 * n));
    got.iter().map(|&address| (address != 0).then(|| caller.at(address))).collect()
}

#[test]
fn strings_null_empty_and_never_written() {
    let mut lab = Lab::new();
    let x = lab.dim("x", 6);
    let kinds = [Kind::Contiguous, Kind::Compact, Kind::Chunked(&[4])];
    let vars = kinds.map(|kind| lab.var(Made::new(&format!("{kind:?}"), 12, &[x]).kind(kind)));
    let idle = lab.var(Made::new("idle", 12, &[x]));
    let caller = Caller::default();
    let src = caller.texts(&[Some(b"one"), None, Some(b""), Some(&[b'x'; 5000])]);
    for var in vars {
        assert_eq!(texts(&lab, var, 6), vec![Some(Vec::new()); 6]);
        put(&mut lab, &caller, var, &[1], &[4], &src);
    }
    let some = |text: &[u8]| Some(text.to_vec());
    let all = vec![some(b""), some(b"one"), None, some(b""), some(&[b'x'; 5000]), some(b"")];
    for round in 0..3 {
        for var in vars {
            assert_eq!(texts(&lab, var, 6), all, "round {round}, {var:?}");
        }
        assert_eq!(texts(&lab, idle, 6), vec![some(b""); 6]);
        match round {
            0 => lab.file.sync().unwrap(),
            _ => lab.reopen(),
        }
    }
    let src = caller.texts(&[Some(b"again")]);
    put(&mut lab, &caller, vars[2], &[5], &[1], &src);
    assert_eq!(texts(&lab, vars[2], 6)[5], some(b"again"));
}

/// HDF5 cannot make strings of a chunk that is not there in a file it only reads.
#[test]
fn a_commit_stores_all_chunks_of_strings() {
    let mut lab = Lab::new();
    let x = lab.dim("x", 6);
    let s = lab.var(Made::new("s", 12, &[x]).kind(Kind::Chunked(&[2])));
    let caller = Caller::default();
    let src = caller.texts(&[Some(b"one")]);
    put(&mut lab, &caller, s, &[2], &[1], &src);
    lab.file.sync().unwrap();
    let writing = lab.file.writing.as_deref().unwrap();
    let store = writing.stores.of(ObjectKey::Var(GroupId(0), s)).unwrap();
    let ElementStorage::Chunked { tree, .. } = &store.keep else { panic!("not in chunks") };
    assert_eq!(tree.0.read().len().unwrap(), 3);
    let some = |text: &[u8]| Some(text.to_vec());
    let all = vec![some(b""), some(b""), some(b"one"), some(b""), some(b""), some(b"")];
    assert_eq!(texts(&lab, s, 6), all);
}

#[test]
fn numbers_are_not_put_into_strings() {
    let mut lab = Lab::new();
    let x = lab.dim("x", 2);
    let s = lab.var(Made::new("s", 12, &[x]));
    let code = |lab: &mut Lab, mem, start: &[usize]| {
        lab.put(s, start, &[1], None, mem, &[]).unwrap_err().code()
    };
    assert_eq!(code(&mut lab, MemType::I32, &[0]), NcError::BadType);
    assert_eq!(code(&mut lab, MemType::I32, &[9]), NcError::InvalidCoords);
    assert_eq!(code(&mut lab, MemType::Text, &[0]), NcError::Char);
}

#[test]
fn compounds_keep_their_layout() {
    let mut lab = Lab::new();
    let root = GroupId::ROOT;
    let x = lab.dim("x", 3);
    let file = &mut lab.file;
    let inner = file.def_compound(root, 16, b"inner").unwrap();
    file.insert_field((root, inner), b"a", 0, 3, &[]).unwrap();
    file.insert_field((root, inner), b"b", 8, 6, &[]).unwrap();
    let outer = file.def_compound(root, 40, b"outer").unwrap();
    file.insert_field((root, outer), b"i", 0, inner, &[]).unwrap();
    file.insert_field((root, outer), b"n", 16, 4, &[2, 2]).unwrap();
    file.insert_field((root, outer), b"c", 32, 1, &[]).unwrap();
    let v = lab.var(Made::new("v", outer, &[x]));
    let w = lab.var(Made::new("w", outer, &[x]).kind(Kind::Chunked(&[2])));
    let src: Vec<u8> = (0..80).collect();
    let caller = Caller::default();
    for var in [v, w] {
        put(&mut lab, &caller, var, &[0], &[2], &src);
    }
    // What the members have; what is between them is nobody's.
    let members = |bytes: &[u8]| -> Vec<Vec<u8>> {
        let parts = [0..2, 8..16, 16..32, 32..33];
        let each = |element: &[u8]| parts.clone().map(|part| element[part].to_vec()).concat();
        bytes.chunks(40).map(each).collect()
    };
    let expected = [&src[..], &[0; 40]].concat();
    for _ in 0..2 {
        for var in [v, w] {
            let got = get(&lab, &mut Caller::default(), var, &[3], 120);
            assert_eq!(members(&got), members(&expected));
        }
        lab.reopen();
    }
}

#[test]
fn enumerations_and_opaque_bytes() {
    let mut lab = Lab::new();
    let root = GroupId::ROOT;
    let x = lab.dim("x", 3);
    let file = &mut lab.file;
    let colour = file.def_enum(root, 3, b"colour").unwrap();
    for (name, value) in [(&b"red"[..], 1i16), (b"blue", 500)] {
        file.insert_member((root, colour), name, &value.to_ne_bytes()).unwrap();
    }
    let key = file.def_opaque(root, 5, b"key").unwrap();
    let e = lab.var(Made::new("e", colour, &[x]));
    let o = lab.var(Made::new("o", key, &[x]).kind(Kind::Chunked(&[2])).deflate());
    let caller = Caller::default();
    let colours = [1i16, 500].map(i16::to_ne_bytes).concat();
    put(&mut lab, &caller, e, &[1], &[2], &colours);
    put(&mut lab, &caller, o, &[0], &[2], b"abcdefghij");
    for _ in 0..2 {
        let got = get(&lab, &mut Caller::default(), e, &[3], 6);
        assert_eq!(got[2..], colours);
        assert_eq!(get(&lab, &mut Caller::default(), o, &[3], 15), *b"abcdefghij\0\0\0\0\0");
        lab.reopen();
    }
}

#[test]
fn sequences_in_compounds_in_sequences() {
    let mut lab = Lab::new();
    let root = GroupId::ROOT;
    let x = lab.dim("x", 3);
    let file = &mut lab.file;
    let ints = file.def_vlen(root, b"ints", 4).unwrap();
    let pair = file.def_compound(root, 24, b"pair").unwrap();
    file.insert_field((root, pair), b"n", 0, 4, &[]).unwrap();
    file.insert_field((root, pair), b"v", 8, ints, &[]).unwrap();
    let pairs = file.def_vlen(root, b"pairs", pair).unwrap();
    let v = lab.var(Made::new("v", pairs, &[x]).kind(Kind::Chunked(&[1])));
    let caller = Caller::default();
    let one = |n: i32, values: &[i32]| {
        let values: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let items = caller.items(values.len() as u64 / 4, &values);
        [&n.to_ne_bytes()[..], &[0; 4], &items].concat()
    };
    let two = [one(1, &[1, 2, 3]), one(2, &[9])].concat();
    let src = [caller.items(2, &two), vec![0; 16]].concat();
    put(&mut lab, &caller, v, &[0], &[2], &src);
    for _ in 0..2 {
        let mut out = Caller::default();
        let got = words(&get(&lab, &mut out, v, &[3], 48));
        assert_eq!(got[0], 2);
        assert_eq!(got[2..], [0; 4]);
        let items = out.at(got[1]);
        assert_eq!(items.len(), 48);
        let items = words(&items);
        assert_eq!((items[0] as u32, items[1], items[3] as u32, items[4]), (1, 3, 2, 1));
        let ints = |address| -> Vec<i32> {
            let bytes = out.at(address);
            bytes.as_chunks::<4>().0.iter().map(|int| i32::from_ne_bytes(*int)).collect()
        };
        assert_eq!((ints(items[2]), ints(items[5])), (vec![1, 2, 3], vec![9]));
        lab.reopen();
    }
}

#[test]
fn fill_values_of_strings() {
    let mut lab = Lab::new();
    let x = lab.dim("x", 4);
    let v = lab.var(Made::new("v", 12, &[x]).kind(Kind::Chunked(&[2])));
    let caller = Caller::default();
    let fill = caller.texts(&[Some(b"none")]);
    let mut fetch = Fetched { caller: caller.clone(), last: Vec::new() };
    let fill = Values { bytes: &fill, fetch: Some(&mut fetch) };
    lab.file.def_var_fill(v.into(), false, Some(fill)).unwrap();
    let some = |text: &[u8]| Some(text.to_vec());
    assert_eq!(texts(&lab, v, 4), vec![some(b"none"); 4]);
    // Until something is put it may be another one, also after a commit that nobody asked for.
    lab.file.leave_define_mode().unwrap();
    lab.file.commit().unwrap();
    let mut fetch = Fetched { caller: caller.clone(), last: Vec::new() };
    let other = caller.texts(&[Some(b"nothing")]);
    let att = AttPut { owner: of(v), name: b"_FillValue", nc_type: 12, n_values: 1, mem: None };
    assert_eq!(lab.file.check_put_att(&att).unwrap(), other.len());
    let set = lab.file.put_att(&att, Values { bytes: &other, fetch: Some(&mut fetch) });
    assert_eq!(set.unwrap().out_of_range, 0);
    assert_eq!(texts(&lab, v, 4), vec![some(b"nothing"); 4]);
    put(&mut lab, &caller, v, &[1], &[1], &caller.texts(&[Some(b"one")]));
    for _ in 0..2 {
        let all = [some(b"nothing"), some(b"one"), some(b"nothing"), some(b"nothing")];
        assert_eq!(texts(&lab, v, 4), all);
        lab.reopen();
    }
    if let Some(lines) = digests(&lab, "strings.nc") {
        assert_eq!(lines, [format!("v str {}", digest(b"nothing\0one\0nothing\0nothing"))]);
    }
}

#[test]
fn strings_are_put_one_by_one() {
    let mut lab = Lab::new();
    let t = lab.dim("t", 0);
    let v = lab.var(Made::new("v", 12, &[t]));
    let request = StorageRequest::Chunked;
    lab.file.def_var_chunking(v.into(), request, Some(&[1000])).unwrap();
    let caller = Caller::default();
    let src = caller.texts(&[Some(b"word")]);
    for i in 0..3000 {
        put(&mut lab, &caller, v, &[i], &[1], &src);
    }
    assert_eq!(texts(&lab, v, 3000), vec![Some(b"word".to_vec()); 3000]);
    lab.reopen();
    assert_eq!(texts(&lab, v, 3000), vec![Some(b"word".to_vec()); 3000]);
}

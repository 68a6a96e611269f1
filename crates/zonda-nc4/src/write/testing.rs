//! What tests of writing share.

use std::path::Path;
use std::sync::Arc;
use zonda_format::{Definitions as _, Dispatch as _, DispatchWrite as _};

use zonda_format::{
    Access, AttAccess, AttPut, Destination, Transfer, Values, VlenSink, VlenSource,
};
use zonda_model::{Hyperslab, MemType, VarId};
use zonda_storage::Storage;
use zonda_storage::backend::Memory;

use super::Nc4CreateOptions;
use crate::{GroupId, Nc4File, Nc4OpenOptions, VarRef};

/// Addresses are places in a list, from 1 on, on the way out as on the way in.
#[derive(Clone, Default)]
pub(crate) struct List(pub(crate) Vec<Vec<u8>>);

impl List {
    pub(crate) fn add(&mut self, bytes: &[u8]) -> u64 {
        self.0.push(bytes.to_vec());
        self.0.len() as u64
    }

    /// A sequence in memory.
    pub(crate) fn sequence(&mut self, n: u64, items: &[u8]) -> Vec<u8> {
        let address = self.add(items);
        [n.to_ne_bytes(), address.to_ne_bytes()].concat()
    }

    pub(crate) fn at(&self, address: u64) -> Option<&[u8]> {
        self.0.get(usize::try_from(address).unwrap().checked_sub(1)?).map(|bytes| &**bytes)
    }
}

impl VlenSource for List {
    fn text(&mut self, address: u64) -> Option<&[u8]> {
        self.at(address)
    }

    fn items(&mut self, address: u64, len: usize) -> &[u8] {
        &self.at(address).unwrap()[..len]
    }
}

impl VlenSink for List {
    fn place(&mut self, bytes: &[u8], _text: bool) -> Option<u64> {
        Some(self.add(bytes))
    }
}

pub(crate) const ROOT: GroupId = GroupId::ROOT;
pub(crate) const GLOBAL: VarRef = VarRef { group: ROOT, var: VarId::GLOBAL };

pub(crate) fn of(var: VarId) -> VarRef {
    VarRef { group: ROOT, var }
}

/// Elements side by side of a variable of the root group.
pub(crate) fn access<'a>(
    var: VarId,
    start: &'a [usize],
    count: &'a [usize],
    mem: Option<MemType>,
) -> Access<'a> {
    Access { var: of(var), slab: Hyperslab { start, count, stride: None }, mem }
}

/// Puts such elements, all of which fit.
pub(crate) fn put_data(
    file: &mut Nc4File,
    var: VarId,
    (start, count): (&[usize], &[usize]),
    mem: MemType,
    bytes: &[u8],
) {
    let put = file
        .put_now(&mut Transfer::new(access(var, start, count, Some(mem))), Values::plain(bytes));
    assert_eq!(put.unwrap().out_of_range, 0);
}

/// Reads such elements, all of which fit.
pub(crate) fn get_data(
    file: &Nc4File,
    var: VarId,
    (start, count): (&[usize], &[usize]),
    mem: MemType,
) -> Vec<u8> {
    let get = access(var, start, count, Some(mem));
    let mut get = Transfer::new(get);
    file.check_get(&mut get).unwrap();
    let mut out = vec![0; get.n_bytes];
    let got = file.get(&get, Destination::plain(&mut out));
    assert_eq!(got.unwrap().out_of_range, 0);
    out
}

fn how(classic: bool) -> Nc4CreateOptions {
    let properties = b"version=2,zonda=0".to_vec();
    Nc4CreateOptions { classic, attribute_order: true, attach_scales: true, properties }
}

/// A new file in define mode, and where it is.
pub(crate) fn created(classic: bool) -> (Nc4File, Arc<Memory>) {
    let memory = Arc::new(Memory::new());
    let storage: Arc<dyn Storage> = memory.clone();
    let name = Path::new("test.nc");
    (Nc4File::create(storage, name, Nc4OpenOptions::default(), how(classic)).unwrap(), memory)
}

pub(crate) fn create() -> Nc4File {
    created(false).0
}

/// Ends writing, and opens what is there for reading.
pub(crate) fn reopened(mut file: Nc4File, memory: Arc<Memory>) -> Nc4File {
    file.close().unwrap();
    Nc4File::open(memory, Path::new("test.nc"), Nc4OpenOptions::default()).unwrap()
}

/// The code that C sees.
pub(crate) fn code<T, E: Into<zonda_format::Error>>(result: std::result::Result<T, E>) -> i32 {
    result.map_or_else(|error| error.into().code().code(), |_| 0)
}

/// Puts numbers; gives how many did not fit.
pub(crate) fn put(
    file: &mut Nc4File,
    owner: VarRef,
    name: &str,
    nc_type: i32,
    mem: MemType,
    bytes: &[u8],
) -> zonda_format::Result<u64> {
    let n_values = bytes.len() / mem.size();
    let att = AttPut { owner, name: name.as_bytes(), nc_type, n_values, mem: Some(mem) };
    assert_eq!(file.check_put_att(&att)?, bytes.len());
    Ok(file.put_att(&att, Values::plain(bytes))?.out_of_range)
}

pub(crate) fn put_ints(
    file: &mut Nc4File,
    owner: VarRef,
    name: &str,
    nc_type: i32,
    values: &[i32],
) -> zonda_format::Result<u64> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    put(file, owner, name, nc_type, MemType::I32, &bytes)
}

pub(crate) fn put_text(
    file: &mut Nc4File,
    owner: VarRef,
    name: &str,
    text: &str,
) -> zonda_format::Result<u64> {
    put(file, owner, name, 2, MemType::Text, text.as_bytes())
}

/// Puts elements in natural form.
pub(crate) fn put_natural(
    file: &mut Nc4File,
    owner: VarRef,
    name: &str,
    nc_type: i32,
    list: &mut List,
    bytes: &[u8],
    n: usize,
) -> zonda_format::Result<u64> {
    let att = AttPut { owner, name: name.as_bytes(), nc_type, n_values: n, mem: None };
    file.check_put_att(&att)?;
    Ok(file.put_att(&att, Values { bytes, fetch: Some(list) })?.out_of_range)
}

pub(crate) fn put_strings(
    file: &mut Nc4File,
    owner: VarRef,
    name: &str,
    texts: &[Option<&str>],
) -> zonda_format::Result<u64> {
    let mut list = List::default();
    let address = |text: &Option<&str>| text.map_or(0, |text| list.add(text.as_bytes()));
    let bytes: Vec<u8> = texts.iter().map(address).flat_map(u64::to_ne_bytes).collect();
    put_natural(file, owner, name, 12, &mut list, &bytes, texts.len())
}

/// The values of an attribute in natural form.
pub(crate) fn get(
    file: &Nc4File,
    owner: VarRef,
    name: &str,
) -> zonda_format::Result<(Vec<u8>, List)> {
    let att = AttAccess { owner, name: name.as_bytes(), mem: None };
    let mut get = Transfer::new(att);
    file.check_get_att(&mut get)?;
    let (mut out, mut list) = (vec![0; get.n_bytes], List::default());
    let _all_fit = file.get_att(&get, Destination { bytes: &mut out, place: Some(&mut list) })?;
    Ok((out, list))
}

pub(crate) fn get_ints(file: &Nc4File, owner: VarRef, name: &str) -> Vec<i32> {
    let att = AttAccess { owner, name: name.as_bytes(), mem: Some(MemType::I32) };
    let mut get = Transfer::new(att);
    file.check_get_att(&mut get).unwrap();
    let mut out = vec![0; get.n_bytes];
    let read = file.get_att(&get, Destination::plain(&mut out));
    assert_eq!(read.unwrap().out_of_range, 0);
    out.as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect()
}

pub(crate) fn get_strings(file: &Nc4File, owner: VarRef, name: &str) -> Vec<Option<String>> {
    let (bytes, list) = get(file, owner, name).unwrap();
    let addresses = bytes.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes));
    let text = |address| list.at(address).map(|text| String::from_utf8(text.to_vec()).unwrap());
    addresses.map(text).collect()
}

/// Names, types and lengths of attributes in order.
pub(crate) fn listed(file: &Nc4File, owner: VarRef) -> Vec<(String, i32, u64)> {
    let atts = (0..file.n_atts(owner).unwrap()).map(|number| file.att(owner, number).unwrap());
    atts.map(|att| (String::from_utf8(att.name.to_vec()).unwrap(), att.nc_type, att.len)).collect()
}

pub(crate) fn names(file: &Nc4File, owner: VarRef) -> Vec<String> {
    listed(file, owner).into_iter().map(|(name, ..)| name).collect()
}

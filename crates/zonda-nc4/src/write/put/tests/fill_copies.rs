//! What elements that nobody put point to: HDF5 removes it when it writes over one of them.

use std::collections::BTreeSet;
use zonda_format::DispatchWrite as _;

use zonda_chunk::StoredChunks;
use zonda_format::Values;
use zonda_hdf5::message::DataLayout;
use zonda_model::VarId;

use super::lab::{Kind, Lab, Made};
use super::user_types::{Caller, Fetched, put, texts};
use crate::GroupId;
use crate::details::user_fill;

/// Bytes of a string in the file: its length, its collection, its number there.
const ELEMENT: usize = 16;

/// The fill value and the elements as they are stored.
fn stored(lab: &Lab, var: VarId, n: usize) -> (Vec<u8>, Vec<u8>) {
    let (_, known) = lab.file.var(GroupId::ROOT, var).unwrap();
    let details = lab.file.details_arc(known).unwrap();
    let (file, object) = (&details.file, details.object().unwrap());
    let fill = user_fill(file, &object).unwrap().unwrap().to_vec();
    let elements = match object.layout(file).unwrap() {
        DataLayout::Contiguous { addr, .. } => {
            let at = usize::try_from(file.position(addr.unwrap())).unwrap();
            lab.memory.to_vec().unwrap()[at..][..n * ELEMENT].to_vec()
        }
        DataLayout::Compact { data } => data.to_vec(),
        DataLayout::Chunked(layout) => {
            let n_chunks = (n as u64).div_ceil(layout.chunk_dims[0]);
            let keys: Vec<[u64; 1]> = (0..n_chunks).map(|key| [key]).collect();
            let mut stored = StoredChunks::default();
            lab.file.stored_chunks(GroupId::ROOT, var, &keys, &mut stored).unwrap();
            assert_eq!(stored.iter().count(), keys.len());
            stored.iter().flat_map(|(_, _, bytes)| bytes.to_vec()).collect()
        }
        DataLayout::Virtual { .. } => unreachable!("nothing virtual is written"),
    };
    (fill, elements)
}

#[test]
fn no_two_elements_point_to_one_string() {
    let some = |text: &[u8]| Some(text.to_vec());
    for len in [6, 0] {
        for kind in [Kind::Contiguous, Kind::Compact, Kind::Chunked(&[4])] {
            for fill in [None, Some(&b"none"[..])] {
                if len == 0 && !matches!(kind, Kind::Chunked(_)) {
                    continue;
                }
                let what = format!("{len} {kind:?} {fill:?}");
                let mut lab = Lab::new();
                let x = lab.dim("x", len);
                let v = lab.var(Made::new("v", 12, &[x]).kind(kind));
                let caller = Caller::default();
                if fill.is_some() {
                    let fill = caller.texts(&[fill]);
                    let mut fetch = Fetched { caller: caller.clone(), last: Vec::new() };
                    let set = Some(Values { bytes: &fill, fetch: Some(&mut fetch) });
                    lab.file.def_var_fill(v.into(), false, set).unwrap();
                }
                put(&mut lab, &caller, v, &[1], &[1], &caller.texts(&[Some(b"one")]));
                lab.file.sync().unwrap();
                put(&mut lab, &caller, v, &[4], &[1], &caller.texts(&[Some(b"four")]));
                lab.reopen();
                put(&mut lab, &caller, v, &[5], &[1], &caller.texts(&[Some(b"five")]));
                lab.reopen_to_read();
                let none = some(fill.unwrap_or_default());
                let all = [&none, &some(b"one"), &none, &none, &some(b"four"), &some(b"five")];
                assert_eq!(texts(&lab, v, 6).iter().collect::<Vec<_>>(), all, "{what}");
                let (fill, elements) = stored(&lab, v, 6);
                assert_eq!(fill.len(), ELEMENT);
                let elements: Vec<&[u8]> = elements.chunks(ELEMENT).collect();
                assert!(elements.len() >= 6, "{what}");
                let mut known: BTreeSet<&[u8]> = BTreeSet::from([&fill[4..]]);
                for (i, element) in elements.iter().enumerate() {
                    assert_ne!(element[4..12], [0; 8], "{what}: element {i} is not there");
                    assert!(known.insert(&element[4..]), "{what}: element {i}");
                }
            }
        }
    }
}

//! Puts and gets beside a plain model, and what is read after the file was closed.

mod fill_copies;
mod lab;
mod one;
mod random;
mod reference;
mod user_types;

use zonda_chunk::{FilterSpec, StoredChunks};
use zonda_format::FormatError as _;
use zonda_format::{DispatchWrite as _, Reserve};
use zonda_format::{Transfer, Values};
use zonda_model::{ExtType, MemType, NcError};

use self::lab::{Kind, Lab, Made};
use crate::UnwrittenElements;
use crate::write::testing::access;

fn bytes<const N: usize, T>(values: &[T], to: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(to).collect()
}

fn ints(values: &[i32]) -> Vec<u8> {
    bytes(values, |value| value.to_ne_bytes())
}

const FILL: i32 = -2_147_483_647;

#[test]
fn a_contiguous_variable_is_filled_by_its_first_put() {
    let mut lab = Lab::new();
    let x = lab.dim("x", 6);
    let v = lab.var(Made::new("v", 4, &[x]));
    let w = lab.var(Made::new("w", 4, &[x]));
    lab.put_ints(v, &[2], &[3], &[1, 2, 3]).unwrap();
    let all = [FILL, FILL, 1, 2, 3, FILL];
    for n in 0..3 {
        assert_eq!(lab.get_ints(v, &[0], &[6]), all);
        assert_eq!(lab.get_ints(w, &[0], &[6]), [FILL; 6]);
        match n {
            0 => lab.file.sync().unwrap(),
            _ => lab.reopen(),
        }
    }
}

#[test]
fn dimensions_grow_with_what_is_put() {
    let mut lab = Lab::new();
    let (t, x) = (lab.dim("t", 0), lab.dim("x", 2));
    let v = lab.var(Made::new("v", 4, &[t, x]).kind(Kind::Chunked(&[3, 2])));
    let w = lab.var(Made::new("w", 4, &[t]).kind(Kind::Chunked(&[4])));
    lab.put_ints(v, &[4, 0], &[1, 2], &[7, 8]).unwrap();
    let model = lab.file.model().unwrap();
    assert_eq!(model.dim(t).unwrap().len, 5);
    // Beyond its own extent a variable has fill values.
    assert_eq!(lab.get_ints(w, &[0], &[5]), [FILL; 5]);
    lab.put_ints(w, &[0], &[1], &[3]).unwrap();
    for _ in 0..2 {
        assert_eq!(lab.get_ints(w, &[0], &[5]), [3, FILL, FILL, FILL, FILL]);
        assert_eq!(lab.get_ints(v, &[3, 0], &[2, 2]), [FILL, FILL, 7, 8]);
        lab.reopen();
    }
    assert_eq!(lab.file.model().unwrap().dim(t).unwrap().len, 5);
}

#[test]
fn several_dimensions_grow_at_once() {
    let mut lab = Lab::new();
    let (t, u) = (lab.dim("t", 0), lab.dim("u", 0));
    let v = lab.var(Made::new("v", 4, &[t, u]).kind(Kind::Chunked(&[2, 2])));
    lab.put_ints(v, &[1, 3], &[1, 1], &[5]).unwrap();
    lab.put_ints(v, &[3, 0], &[1, 1], &[6]).unwrap();
    let mut all = [FILL; 16];
    (all[7], all[12]) = (5, 6);
    for _ in 0..2 {
        assert_eq!(lab.get_ints(v, &[0, 0], &[4, 4]), all);
        lab.reopen();
    }
}

#[test]
fn puts_go_on_after_a_commit() {
    let mut lab = Lab::new();
    let (t, x) = (lab.dim("t", 0), lab.dim("x", 3));
    let v = lab.var(Made::new("v", 4, &[t, x]).kind(Kind::Chunked(&[2, 2])).deflate());
    let mut all = Vec::new();
    for record in 0..40 {
        let values = [record, 2 * record, 3 * record];
        lab.put_ints(v, &[record as usize, 0], &[1, 3], &values).unwrap();
        all.extend(values);
        if record % 7 == 6 {
            lab.file.sync().unwrap();
        }
        if record % 13 == 12 {
            assert_eq!(lab.get_ints(v, &[0, 0], &[record as usize + 1, 3]), all);
        }
    }
    lab.reopen();
    assert_eq!(lab.get_ints(v, &[0, 0], &[40, 3]), all);
}

#[test]
fn what_does_not_fit_is_counted_after_all_is_stored() {
    let mut lab = Lab::new();
    let x = lab.dim("x", 3);
    for kind in [Kind::Contiguous, Kind::Compact, Kind::Chunked(&[2])] {
        let v = lab.var(Made::new(&format!("{kind:?}"), 3, &[x]).kind(kind));
        let values = ints(&[1, 70_000, 3]);
        let found = lab.put(v, &[0], &[3], None, MemType::I32, &values).unwrap();
        assert_eq!(found, 1);
        assert_eq!(lab.get_ints(v, &[0], &[3]), [1, i32::from(70_000_i32 as i16), 3]);
    }
}

#[test]
fn refusals_come_in_order() {
    let mut lab = Lab::new();
    let (t, x) = (lab.dim("t", 0), lab.dim("x", 3));
    let v = lab.var(Made::new("v", 4, &[t, x]).kind(Kind::Chunked(&[1, 3])));
    let text = lab.var(Made::new("text", 2, &[x]));
    let code = |lab: &mut Lab, var, start: &[usize], count: &[usize], stride, mem| {
        let put = lab.put(var, start, count, stride, mem, &[]);
        put.err().map(|error| error.code())
    };
    let int = MemType::I32;
    let absent = zonda_model::VarId(9);
    assert_eq!(code(&mut lab, absent, &[], &[], None, int), Some(NcError::NotVar));
    assert_eq!(code(&mut lab, text, &[9], &[9], None, int), Some(NcError::Char));
    assert_eq!(code(&mut lab, v, &[9], &[9], None, MemType::Text), Some(NcError::Char));
    assert_eq!(code(&mut lab, v, &[0, 9], &[1, 9], Some(&[0, 1]), int), Some(NcError::Stride));
    assert_eq!(code(&mut lab, v, &[0, 4], &[1, 0], None, int), Some(NcError::InvalidCoords));
    assert_eq!(code(&mut lab, v, &[0, 1], &[1, 3], None, int), Some(NcError::Edge));
    assert_eq!(code(&mut lab, v, &[5, 1], &[0, 1], None, int), None);
    assert_eq!(lab.file.model().unwrap().dim(t).unwrap().len, 0);
    lab.reopen_to_read();
    assert_eq!(code(&mut lab, v, &[0, 0], &[1, 1], None, int), Some(NcError::HdfErr));
    assert_eq!(code(&mut lab, v, &[0, 4], &[1, 1], None, int), Some(NcError::InvalidCoords));
}

#[test]
fn a_classic_model_is_not_put_to_in_define_mode() {
    let mut lab = Lab::classic();
    let x = lab.dim("x", 2);
    let v = lab.var(Made::new("v", 1, &[x]));
    let error = lab.put_ints(v, &[0], &[1], &[5]).unwrap_err();
    assert_eq!(error.code(), NcError::InDefine);
    lab.file.enddef(Reserve::Default).unwrap();
    // Bytes that change their sign are tolerated.
    let found = lab.put(v, &[0], &[2], None, MemType::U8, &[200, 5]).unwrap();
    assert_eq!(found, 0);
    let found = lab.put(v, &[0], &[1], None, MemType::I32, &ints(&[200])).unwrap();
    assert_eq!(found, 1);
}

#[test]
fn memory_of_another_length_puts_nothing() {
    let mut lab = Lab::new();
    let t = lab.dim("t", 0);
    let v = lab.var(Made::new("v", 4, &[t]).kind(Kind::Chunked(&[2])));
    let put = access(v, &[3], &[1], Some(MemType::I32));
    let mut put = Transfer::new(put);
    lab.file.check_put(&mut put).unwrap();
    assert_eq!((put.n_bytes, put.n_elems), (4, 1));
    for len in [0, 3, 5] {
        let refused = lab.file.put(&put, Values::plain(&[1; 5][..len])).unwrap_err();
        assert_eq!(refused.code(), NcError::Inval, "{len}");
    }
    // A caller may also end after the check.
    assert_eq!(lab.file.model().unwrap().dim(t).unwrap().len, 0);
}

#[test]
fn scalars_and_text() {
    let mut lab = Lab::new();
    let x = lab.dim("x", 5);
    let s = lab.var(Made::new("s", 6, &[]));
    let c = lab.var(Made::new("c", 2, &[x]));
    lab.put(s, &[], &[], None, MemType::F64, &2.5f64.to_ne_bytes()).unwrap();
    lab.put(c, &[1], &[3], None, MemType::Text, b"abc").unwrap();
    for _ in 0..2 {
        let mut out = [0; 8];
        lab.get(s, &[], &[], MemType::F64, &mut out).unwrap();
        assert_eq!(f64::from_ne_bytes(out), 2.5);
        let mut out = [9; 5];
        lab.get(c, &[0], &[5], MemType::Text, &mut out).unwrap();
        assert_eq!(out, *b"\0abc\0");
        lab.reopen();
    }
}

#[test]
fn chunks_are_copied_as_they_are_stored() {
    let mut from = Lab::new();
    let (t, x) = (from.dim("t", 0), from.dim("x", 5));
    let v = from.var(Made::new("v", 4, &[t, x]).kind(Kind::Chunked(&[2, 3])).deflate());
    let values: Vec<i32> = (0..25).collect();
    from.put_ints(v, &[0, 0], &[5, 5], &values).unwrap();
    let root = crate::GroupId::ROOT;
    let mut to = Lab::new();
    let (t, x) = (to.dim("t", 0), to.dim("x", 5));
    let w = to.var(Made::new("w", 4, &[t, x]).kind(Kind::Chunked(&[2, 3])).deflate());
    let mut stored = StoredChunks::default();
    for _ in 0..2 {
        from.file.sync().unwrap();
        to.file.extend(root, w, &[5, 5]).unwrap();
        assert_eq!(from.file.pipeline(root, v).unwrap(), to.file.pipeline(root, w).unwrap());
        let mut keys = Vec::new();
        from.file.for_each_chunk(root, v, &mut |key, _| keys.push(key.to_vec())).unwrap();
        assert_eq!(keys.len(), 6);
        from.file.stored_chunks(root, v, &keys, &mut stored).unwrap();
        assert_eq!(stored.iter().count(), 6);
        to.file.put_stored_chunks(root, w, &stored).unwrap();
        assert_eq!(to.get_ints(w, &[0, 0], &[5, 5]), values);
        let usage = to.file.stored(root, w).unwrap();
        assert_eq!((usage.chunks, usage.data_bytes), (Some((6, 6)), 100));
        assert_eq!(from.file.stored(root, v).unwrap(), usage);
        from.reopen_to_read();
        let mut lab = Lab::new();
        let (t, x) = (lab.dim("t", 0), lab.dim("x", 5));
        lab.var(Made::new("w", 4, &[t, x]).kind(Kind::Chunked(&[2, 3])).deflate());
        to = lab;
        from.file = crate::Nc4File::open(
            from.memory.clone(),
            std::path::Path::new("test.nc"),
            crate::Nc4OpenOptions::default(),
        )
        .unwrap();
    }
    stored.push(&[9, 0], 0, b"");
    let outside = to.file.put_stored_chunks(root, w, &stored);
    assert_eq!(outside.unwrap_err().nc_error(), NcError::InvalidCoords);
}

#[test]
fn chunks_pass_through_filters_that_are_not_there() {
    let root = crate::GroupId::ROOT;
    let filters = vec![
        FilterSpec { id: 2, optional: true, name: String::new(), params: vec![4] },
        FilterSpec { id: 40_000, optional: false, name: String::from("own"), params: vec![7, 8] },
        FilterSpec { id: 3, optional: false, name: String::new(), params: Vec::new() },
    ];
    let mut lab = Lab::new();
    let x = lab.dim("x", 4);
    let v = lab.var(Made::new("v", 4, &[x]).kind(Kind::Chunked(&[3])));
    lab.file.def_var_pipeline(root, v, filters.clone()).unwrap();
    let mut stored = StoredChunks::default();
    stored.push(&[1], 0, b"whatever it is");
    lab.file.put_stored_chunks(root, v, &stored).unwrap();
    let code = lab.put_ints(v, &[0], &[3], &[1, 2, 3]).unwrap_err().code();
    assert_eq!(code, NcError::NoFilter);
    for _ in 0..2 {
        assert_eq!(lab.file.pipeline(root, v).unwrap(), filters);
        let mut n = 0;
        lab.file.for_each_chunk(root, v, &mut |_, _| n += 1).unwrap();
        assert_eq!(n, 1);
        lab.file.stored_chunks(root, v, &[[0], [1]], &mut stored).unwrap();
        let chunks: Vec<_> = stored.iter().collect();
        assert_eq!(chunks, [(&[1][..], 0, &b"whatever it is"[..])]);
        assert_eq!(lab.file.never_written(root, v).unwrap(), UnwrittenElements::Value);
        assert_eq!(lab.file.extent(root, v).unwrap(), [4]);
        let int = crate::write::datatypes::atomic(ExtType::Int, crate::Endianness::Native);
        assert_eq!(lab.file.stored_type(root, v).unwrap(), int);
        lab.reopen_to_read();
    }
    let mut lab = Lab::new();
    let s = lab.var(Made::new("s", 4, &[]));
    lab.file.def_var_fill(s.into(), true, None).unwrap();
    assert_eq!(lab.file.never_written(root, s).unwrap(), UnwrittenElements::Undefined);
    let refused = lab.file.def_var_pipeline(root, s, filters).unwrap_err();
    assert_eq!(refused.nc_error(), NcError::Inval);
}

#[test]
fn fewer_bits_are_stored() {
    let mut lab = Lab::new();
    let x = lab.dim("x", 3);
    let how = crate::Quantize { mode: crate::QuantizeMode::BitRound, kept: 3 };
    let v = lab.var(Made::new("v", 5, &[x]).kind(Kind::Chunked(&[3])).quantize(how));
    let mem = MemType::F64;
    let get = |lab: &Lab| {
        let mut out = [0; 24];
        lab.get(v, &[0], &[3], mem, &mut out).unwrap();
        out.as_chunks::<8>().0.iter().map(|value| f64::from_ne_bytes(*value)).collect::<Vec<_>>()
    };
    let values = bytes(&[1.1, 1.2, 3.3], |value: &f64| value.to_ne_bytes());
    lab.put(v, &[0], &[3], None, mem, &values).unwrap();
    assert_eq!(get(&lab), [1.125, 1.25, 3.25]);
    lab.reopen();
    // The attribute says so.
    let values = bytes(&[7.7], |value: &f64| value.to_ne_bytes());
    lab.put(v, &[0], &[1], None, mem, &values).unwrap();
    assert_eq!(get(&lab), [7.5, 1.25, 3.25]);
}

#[test]
fn nothing_is_filled_where_nobody_wants_it() {
    let mut lab = Lab::new();
    let x = lab.dim("x", 1000);
    let v = lab.var(Made::new("v", 4, &[x]).no_fill());
    lab.put_ints(v, &[3], &[1], &[9]).unwrap();
    assert!(lab.memory.to_vec().unwrap().len() < 1000);
    assert_eq!(lab.get_ints(v, &[3], &[1]), [9]);
    lab.reopen();
    assert_eq!(lab.get_ints(v, &[3], &[1]), [9]);
}

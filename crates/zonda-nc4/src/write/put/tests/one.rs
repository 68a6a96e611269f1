//! Single numbers by the short ways, beside the two steps of any put or get.

use zonda_format::{Access, Destination, Dispatch as _, DispatchWrite as _, Transfer, Values};
use zonda_model::{ExtType, MemType, VarId};

use super::lab::{Kind, Lab, Made};
use crate::write::testing::access;
use crate::{Quantize, QuantizeMode};

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

const LENS: [usize; 3] = [0, 9, 14];
const TYPES: [ExtType; 5] =
    [ExtType::Double, ExtType::Float, ExtType::Byte, ExtType::Short, ExtType::Char];

fn variables(lab: &mut Lab) -> Vec<(VarId, ExtType)> {
    let dims: Vec<_> = (0..).zip(LENS).map(|(i, len)| lab.dim(&format!("d{i}"), len)).collect();
    let all = TYPES.into_iter().cycle().take(10).enumerate();
    let made = |(i, ext): (usize, ExtType)| {
        let chunk = [3, 4, 1 + i];
        let mut made = Made::new(&format!("v{i}"), ext.nc_type(), &dims);
        made = made.kind(Kind::Chunked(&chunk));
        made = if i % 4 == 1 && ext != ExtType::Char { made.big_endian() } else { made };
        made = if i % 3 == 2 { made.deflate() } else { made };
        if i == 5 {
            made = made.quantize(Quantize { mode: QuantizeMode::BitRound, kept: 5 });
        }
        (lab.var(made), ext)
    };
    all.map(made).collect()
}

/// A number, or a character, that may not fit.
fn value(random: &mut Random, ext: ExtType) -> (MemType, Vec<u8>) {
    let number = random.below(70_000) as i32 - 300;
    match (ext, random.below(5)) {
        (ExtType::Char, _) => (MemType::Text, vec![b'a' + random.below(26) as u8]),
        (ExtType::Byte, 0..3) => (MemType::U8, vec![random.below(256) as u8]),
        (_, 0) => (MemType::F32, (number as f32 / 4.0).to_ne_bytes().into()),
        _ => (MemType::I32, number.to_ne_bytes().into()),
    }
}

/// Gets a number, by the short way if that knows it.
fn got(lab: &Lab, get: &Access<'_>, is_short: bool, n_short: &mut usize) -> (u64, Vec<u8>) {
    let mut out = vec![0; get.mem.map_or(0, MemType::size)];
    let short = if is_short { lab.file.get_one(get, &mut out) } else { None };
    *n_short += usize::from(short.is_some());
    let out_of_range = match short {
        Some(converted) => converted.out_of_range,
        None => lab.get_values(get, Destination::plain(&mut out)).unwrap(),
    };
    (out_of_range, out)
}

/// What a file is after random puts of single numbers, and what each put and get said.
fn life(seed: u64, classic: bool, is_short: bool) -> (Vec<u8>, Vec<(u64, Vec<u8>)>) {
    let mut random = Random(seed);
    let mut lab = if classic { Lab::classic() } else { Lab::new() };
    let vars = variables(&mut lab);
    lab.file.enddef(zonda_format::Reserve::Default).unwrap();
    let (mut said, mut len) = (Vec::new(), 1);
    let (mut n_puts, mut n_short, mut n_gets) = (0, 0, 0);
    for step in 0..1500 {
        // Most puts go to the same variable as the last one, and some begin a record.
        let (var, ext) = vars[(step / 50 + random.below(5) / 4) % vars.len()];
        let start = [random.below(len + 1), random.below(9), random.below(14)];
        len = len.max((start[0] + 1).min(7));
        let start = [start[0].min(6), start[1], start[2]];
        let (mem, bytes) = value(&mut random, ext);
        let put = access(var, &start, &[1; 3], Some(mem));
        n_puts += 1;
        let done = if is_short {
            n_short += usize::from(lab.file.put_one(&put, &bytes).is_some());
            // Twice is as once.
            lab.file.put_now(&mut Transfer::new(put), Values::plain(&bytes)).unwrap().out_of_range
        } else {
            lab.put_values(&put, Values::plain(&bytes)).unwrap()
        };
        said.push((done, Vec::new()));
        if step % 3 == 2 {
            said.push(got(&lab, &access(var, &start, &[1; 3], Some(mem)), is_short, &mut n_gets));
        }
        if step % 400 == 399 {
            lab.file.sync().unwrap();
        }
    }
    if is_short {
        assert!(n_short > n_puts / 2, "{n_short} of {n_puts}");
    }
    lab.reopen_to_read();
    for step in 0..3000 {
        let (var, ext) = vars[step / 300];
        let start = [random.below(len), random.below(9), random.below(14)];
        let mem = if ext == ExtType::Char { MemType::Text } else { MemType::F64 };
        said.push(got(&lab, &access(var, &start, &[1; 3], Some(mem)), is_short, &mut n_gets));
    }
    if is_short {
        assert!(n_gets > 2200, "{n_gets}");
    }
    (lab.memory.to_vec().unwrap(), said)
}

#[test]
fn files_and_answers_are_the_same_by_either_way() {
    for (seed, classic) in [(1, false), (2, true), (3, false)] {
        let [by_steps, short] = [false, true].map(|is_short| life(seed, classic, is_short));
        assert!(by_steps.1 == short.1, "answers, seed {seed}");
        assert!(by_steps.0 == short.0, "bytes, seed {seed}");
    }
}

/// What a put or get has to refuse, or to do first, it does by its steps.
#[test]
fn what_has_to_be_refused_goes_the_ordinary_way() {
    let mut lab = Lab::new();
    let dims = [lab.dim("x", 0), lab.dim("y", 6)];
    let chunk = [4, 4];
    let var = lab.var(Made::new("v", ExtType::Int.nc_type(), &dims).kind(Kind::Chunked(&chunk)));
    let at = |start: &'static [usize], mem| access(var, start, &[1, 1], Some(mem));
    let value = 7i32.to_ne_bytes();
    assert_eq!(lab.file.put_one(&at(&[0, 0], MemType::I32), &value), None, "define mode");
    lab.put_ints(var, &[0, 0], &[2, 4], &[1; 8]).unwrap();
    let put = &mut |lab: &mut Lab, start, mem| lab.file.put_one(&at(start, mem), &value).is_some();
    assert!(put(&mut lab, &[1, 3], MemType::I32));
    assert!(!put(&mut lab, &[1, 3], MemType::F32), "no put of this type was checked");
    assert!(!put(&mut lab, &[1, 3], MemType::Text));
    assert!(!put(&mut lab, &[1], MemType::I32), "too few numbers");
    assert!(!put(&mut lab, &[2, 0], MemType::I32), "begins a record");
    assert!(!put(&mut lab, &[1, 6], MemType::I32), "outside");
    assert!(!put(&mut lab, &[1, 4], MemType::I32), "another chunk");
    let many = access(var, &[0, 0], &[1, 2], Some(MemType::I32));
    assert_eq!(lab.file.put_one(&many, &value), None);
    let mut none = access(var, &[0, 0], &[1, 1], None);
    assert_eq!(lab.file.put_one(&none, &value), None);
    none.slab.stride = Some(&[0, 0]);
    none.mem = Some(MemType::I32);
    assert_eq!(lab.file.put_one(&none, &value), None, "a stride is refused");

    lab.reopen_to_read();
    assert_eq!(lab.file.put_one(&at(&[0, 0], MemType::I32), &value), None, "for reading");
    let mut out = [0; 4];
    let get = at(&[1, 3], MemType::I32);
    assert_eq!(lab.file.get_one(&get, &mut out), None, "no get was checked");
    assert_eq!(lab.get_ints(var, &[0, 0], &[2, 4]), [1, 1, 1, 1, 1, 1, 1, 7]);
    let get = &mut |start, mem| lab.file.get_one(&at(start, mem), &mut out).map(|_| out);
    assert_eq!(get(&[1, 3], MemType::I32), Some(value));
    assert_eq!(get(&[1, 3], MemType::F32), None);
    assert_eq!(get(&[1, 3], MemType::Text), None);
    assert_eq!(get(&[1], MemType::I32), None);
    assert_eq!(get(&[2, 0], MemType::I32), None);
    assert_eq!(get(&[1, 6], MemType::I32), None);
}

//! Random puts and gets beside arrays in memory.

use zonda_convert::{ByteOrder, Decoder, Encoder, RangeRule};
use zonda_format::DispatchWrite as _;
use zonda_model::{DimId, ExtType, MemType, VarId, default_fill};

use super::lab::{Kind, Lab, Made};
use super::reference::{digest, digests};
use crate::GroupId;

/// What a variable should hold: bytes of its type in memory, by coordinates.
struct Plain {
    id: VarId,
    ext: ExtType,
    extent: Vec<usize>,
    unlimited: Vec<bool>,
    values: std::collections::BTreeMap<Vec<usize>, Vec<u8>>,
    fill: Vec<u8>,
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

/// Coordinates of a hyperslab in order.
fn places(start: &[usize], count: &[usize], stride: &[isize]) -> Vec<Vec<usize>> {
    let mut out = vec![Vec::new()];
    for axis in 0..start.len() {
        out = out
            .into_iter()
            .flat_map(|at: Vec<usize>| {
                (0..count[axis]).map(move |i| {
                    let mut at = at.clone();
                    at.push(start[axis] + i * stride[axis] as usize);
                    at
                })
            })
            .collect();
    }
    out
}

fn check(lab: &Lab, plain: &Plain, lens: &[usize]) {
    let (start, mem) = (vec![0; lens.len()], plain.ext.natural_mem());
    let n: usize = lens.iter().product();
    let mut out = vec![0; n * mem.size()];
    if n > 0 {
        lab.get(plain.id, &start, lens, mem, &mut out).unwrap();
    }
    let all = places(&start, lens, &vec![1; lens.len()]);
    for (at, got) in all.iter().zip(out.chunks(mem.size())) {
        let expected = plain.values.get(at).unwrap_or(&plain.fill);
        assert_eq!(got, &expected[..], "{:?} {:?} at {at:?}", plain.id, plain.ext);
    }
}

fn variables(lab: &mut Lab, random: &mut Random, dims: &[(DimId, usize)]) -> Vec<Plain> {
    let mut all = Vec::new();
    for (i, ext) in ExtType::ALL.into_iter().cycle().take(33).enumerate() {
        let rank = random.below(4);
        let axes: Vec<_> = (0..rank).map(|_| dims[random.below(dims.len())]).collect();
        let ids: Vec<_> = axes.iter().map(|(id, _)| *id).collect();
        let grows = axes.iter().any(|(_, len)| *len == 0);
        let chunk: Vec<usize> = axes
            .iter()
            .map(|(_, len)| 1 + random.below(if *len == 0 { 4 } else { *len }))
            .collect();
        let chunked = grows || (rank > 0 && i % 3 == 0);
        let kind = match (chunked, i % 2) {
            (true, _) => Kind::Chunked(&chunk),
            (false, 1) if rank > 0 => Kind::Compact,
            (false, _) => Kind::Contiguous,
        };
        let mut made = Made::new(&format!("v{i}"), ext.nc_type(), &ids).kind(kind);
        if i % 4 == 1 && ext != ExtType::Char {
            made = made.big_endian();
        }
        if chunked && i % 2 == 0 {
            made = made.deflate();
        }
        let mut fill = default_fill(ext)[..ext.size()].to_vec();
        if i % 5 == 2 {
            fill.fill(3);
            made = made.fill(&fill);
        }
        all.push(Plain {
            id: lab.var(made),
            ext,
            extent: axes.iter().map(|(_, len)| *len).collect(),
            unlimited: axes.iter().map(|(_, len)| *len == 0).collect(),
            values: Default::default(),
            fill,
        });
    }
    all
}

#[test]
fn all_types_and_layouts_beside_arrays() {
    for seed in 0..6 {
        let mut random = Random(seed);
        let mut lab = Lab::new();
        let lens = [0, 3, 7, 0, 5];
        let dims: Vec<_> =
            (0..).zip(lens).map(|(i, len)| (lab.dim(&format!("d{i}"), len), len)).collect();
        let mut all = variables(&mut lab, &mut random, &dims);
        for step in 0..400 {
            let number = random.below(all.len());
            put(&mut lab, &mut random, &mut all[number]);
            if step % 90 == 89 {
                lab.file.sync().unwrap();
            }
            if step % 10 == 0 {
                let plain = &all[random.below(number + 1)];
                check(&lab, plain, &plain.extent);
            }
        }
        lab.reopen();
        for plain in &all {
            check(&lab, plain, &plain.extent);
        }
        if let Some(lines) = digests(&lab, &format!("random-{seed}.nc")) {
            let expected: Vec<String> = all.iter().map(|plain| line(&lab, plain)).collect();
            assert_eq!(lines, expected, "seed {seed}");
        }
    }
}

/// What the reference should find: all that the dimensions have.
fn line(lab: &Lab, plain: &Plain) -> String {
    let model = lab.file.model().unwrap();
    let var = model.var(GroupId::ROOT, plain.id).unwrap();
    let lens: Vec<usize> =
        var.dims.iter().map(|dim| model.dim(*dim).unwrap().len as usize).collect();
    let start = vec![0; lens.len()];
    let values: Vec<u8> = places(&start, &lens, &vec![1; lens.len()])
        .iter()
        .flat_map(|at| plain.values.get(at).unwrap_or(&plain.fill).clone())
        .collect();
    let name = String::from_utf8_lossy(&var.name);
    let kind = match plain.ext {
        ExtType::Byte | ExtType::Short | ExtType::Int | ExtType::Int64 => "i",
        ExtType::Float | ExtType::Double => "f",
        ExtType::Char => "S",
        _ => "u",
    };
    let lens: Vec<String> = lens.iter().map(usize::to_string).collect();
    let shape = if lens.is_empty() { String::from("scalar") } else { lens.join("x") };
    format!("{name} {kind}{} {shape} {}", plain.ext.size(), digest(&values))
}

/// A value that fits every type.
fn random_value(mem: MemType, random: &mut Random) -> Vec<u8> {
    let value = random.below(100) as u8;
    match mem {
        MemType::I32 => i32::from(value).to_ne_bytes().to_vec(),
        MemType::F64 => f64::from(value).to_ne_bytes().to_vec(),
        _ => {
            let ext = mem.natural_ext();
            let encoder = Encoder::new(ext, ByteOrder::NATIVE, MemType::U8, RangeRule::Strict);
            let mut out = vec![value; mem.size()];
            if let Ok(encoder) = encoder {
                let _all_fit = encoder.encode(&[value], &mut out);
            }
            out
        }
    }
}

/// One random put.
fn put(lab: &mut Lab, random: &mut Random, plain: &mut Plain) {
    let rank = plain.extent.len();
    let (mut start, mut count, mut stride) = (Vec::new(), Vec::new(), Vec::new());
    for axis in 0..rank {
        let len = if plain.unlimited[axis] { 9 } else { plain.extent[axis] };
        start.push(random.below(len));
        stride.push(if random.below(3) == 0 { 1 + random.below(3) } else { 1 });
        let most = (len - start[axis]).div_ceil(stride[axis]);
        count.push(if random.below(2) == 0 { most } else { 1 + random.below(most) });
    }
    let stride: Vec<isize> = stride.iter().map(|&stride| stride as isize).collect();
    let places = places(&start, &count, &stride);
    for (axis, len) in
        plain.extent.iter_mut().enumerate().filter(|(axis, _)| plain.unlimited[*axis])
    {
        let end = places.iter().map(|at| at[axis] + 1).max().unwrap_or(0);
        *len = (*len).max(end);
    }
    let is_text = plain.ext == ExtType::Char;
    let mem = match random.below(3) {
        _ if is_text => MemType::Text,
        0 => MemType::I32,
        1 => MemType::F64,
        _ => plain.ext.natural_mem(),
    };
    let values: Vec<u8> = places.iter().flat_map(|_| random_value(mem, random)).collect();
    let found = lab.put(plain.id, &start, &count, Some(&stride), mem, &values);
    assert_eq!(found.unwrap(), 0);
    let natural = plain.ext.natural_mem();
    for (at, value) in places.into_iter().zip(values.chunks(mem.size())) {
        let mut out = vec![0; natural.size()];
        if is_text {
            out.copy_from_slice(value);
        } else {
            let decoder =
                Decoder::new(mem.natural_ext(), ByteOrder::NATIVE, natural, RangeRule::Strict);
            let _all_fit = decoder.unwrap().decode(value, &mut out);
        }
        plain.values.insert(at, out);
    }
}

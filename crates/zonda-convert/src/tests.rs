//! Compares every kernel of every level with the scalar definition of conversions.

use proptest::prelude::*;
use zonda_model::{ExtType, MemType};

use crate::dispatch::{self, CpuLevel};
use crate::{ByteOrder, Converted, Decoder, Encoder, RangeRule, generic, swap_in_place};

/// Three of the widest vectors (64 bytes) of one-byte elements, plus one.
const VECTORS_ELEMS: usize = 3 * 64 + 1;

/// Around the kernels' block of 1024 elements.
const BLOCK_LENGTHS: [usize; 4] = [1023, 1024, 1025, 2049];

/// Elements of each test array.
const N_ELEMS: usize = 2600;

const POISON: u8 = 0xa5;

fn levels() -> impl Iterator<Item = CpuLevel> {
    let best = CpuLevel::detect();
    [CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512]
        .into_iter()
        .filter(move |level| *level <= best)
}

/// All pairs that convert, with both byte orders, by the rules of CDF-5 and netCDF-4, and by the
/// CDF-1 rule where it matters.
fn pairs() -> Vec<(ExtType, ByteOrder, MemType, RangeRule)> {
    let mut pairs = Vec::new();
    for ext in ExtType::ALL {
        for mem in MemType::ALL {
            if (ext == ExtType::Char) != (mem == MemType::Text) {
                continue;
            }
            for order in [ByteOrder::Little, ByteOrder::Big] {
                pairs.push((ext, order, mem, RangeRule::Strict));
                pairs.push((ext, order, mem, RangeRule::Cast));
                if ext == ExtType::Byte {
                    pairs.push((ext, order, mem, RangeRule::ByteIsUnsigned));
                }
            }
        }
    }
    pairs
}

/// `N_ELEMS` elements of `ty` in native order: the neighbours of every bound, NaN with payloads,
/// infinities, subnormals, random bits, and long runs that fit every type.
fn elements(ty: MemType) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(5);
    let powers = [7, 8, 15, 16, 31, 32, 63, 64];
    let mut out = Vec::with_capacity(N_ELEMS * ty.size());
    for i in 0..N_ELEMS {
        let bits = random.u64(..);
        let near = Near {
            bits,
            is_tame: i % 512 > 200,
            power: 2_f64.powi(powers[(bits >> 8) as usize % powers.len()]),
            sign: if bits & 1 == 0 { 1.0 } else { -1.0 },
            small: bits % 100,
        };
        match ty {
            MemType::F32 => out.extend_from_slice(&near.float().to_ne_bytes()),
            MemType::F64 => out.extend_from_slice(&near.double(&mut random).to_ne_bytes()),
            _ => {
                let value = near.integer(&mut random);
                out.extend_from_slice(&value.to_le_bytes()[..ty.size()]);
                if cfg!(target_endian = "big") {
                    let at = out.len() - ty.size();
                    out[at..].reverse();
                }
            }
        }
    }
    out
}

/// What a test element is made of.
struct Near {
    bits: u64,
    /// The element fits every type.
    is_tame: bool,
    /// The bound of a type that the element may be near to.
    power: f64,
    sign: f64,
    small: u64,
}

impl Near {
    fn float(&self) -> f32 {
        let Near { bits, is_tame, power, sign, small } = *self;
        match (bits >> 16) % 6 {
            _ if is_tame => small as f32 + 0.5,
            0 => f32::from_bits(bits as u32),
            1 => f32::from_bits(0x7f80_0000 | (bits >> 32) as u32), // NaN, mostly
            2 => (sign * small as f64 * 1e7) as f32,
            3 => {
                let near = ((sign * power) as f32).to_bits() + (bits >> 20) as u32 % 5;
                f32::from_bits(near - 2)
            }
            4 => (sign * (power + (small as f64 - 50.0) / 4.0)) as f32,
            _ => [f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 1e-40, -0.0]
                [small as usize % 6],
        }
    }

    fn double(&self, random: &mut fastrand::Rng) -> f64 {
        let Near { bits, is_tame, power, sign, small } = *self;
        match (bits >> 16) % 6 {
            _ if is_tame => small as f64 + 0.5,
            0 => f64::from_bits(random.u64(..)),
            1 => f64::from_bits(0x7ff0_0000_0000_0000 | random.u64(..)),
            2 => f64::from(f32::from_bits(random.u64(..) as u32)) * 1.000_000_1,
            3 => f64::from_bits((sign * power).to_bits() + ((bits >> 20) % 5) - 2),
            4 => sign * (power + (small as f64 - 50.0) / 4.0),
            _ => [
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::from(f32::MAX),
                f64::from_bits(f64::from(f32::MIN).to_bits() + 1),
                1e300,
                -0.0,
            ][small as usize % 6],
        }
    }

    fn integer(&self, random: &mut fastrand::Rng) -> i128 {
        let Near { bits, is_tame, power, sign, small } = *self;
        match (bits >> 16) % 3 {
            _ if is_tame => small.into(),
            0 => random.u64(..).into(),
            1 => sign as i128 * (power as i128 + i128::from((bits >> 20) % 5) - 2),
            _ => sign as i128 * i128::from(small),
        }
    }
}

/// One direction of one pair: source bytes, what the truth makes of them over poison, which fit.
struct Expected {
    src: Vec<u8>,
    src_size: usize,
    dst: Vec<u8>,
    dst_size: usize,
    fits: Vec<bool>,
}

fn expected_decode(
    (ext, order, mem, rule): (ExtType, ByteOrder, MemType, RangeRule),
    mut src: Vec<u8>,
) -> Expected {
    if order != ByteOrder::NATIVE {
        src.chunks_exact_mut(ext.size()).for_each(<[u8]>::reverse);
    }
    let mut dst = vec![POISON; src.len() / ext.size() * mem.size()];
    let cells = src.chunks_exact(ext.size()).zip(dst.chunks_exact_mut(mem.size()));
    let fits = cells
        .map(|(s, d)| match ext {
            ExtType::Char => {
                d.copy_from_slice(s);
                true
            }
            _ => generic::decode_one((ext, order), (mem, rule), s, d).expect("numbers"),
        })
        .collect();
    Expected { src, src_size: ext.size(), dst, dst_size: mem.size(), fits }
}

fn expected_encode(
    (ext, order, mem, rule): (ExtType, ByteOrder, MemType, RangeRule),
    src: Vec<u8>,
) -> Expected {
    let mut dst = vec![POISON; src.len() / mem.size() * ext.size()];
    let cells = src.chunks_exact(mem.size()).zip(dst.chunks_exact_mut(ext.size()));
    let fits = cells
        .map(|(s, d)| match ext {
            ExtType::Char => {
                d.copy_from_slice(s);
                true
            }
            _ => generic::encode_one((ext, order), (mem, rule), s, d).expect("numbers"),
        })
        .collect();
    Expected { src, src_size: mem.size(), dst, dst_size: ext.size(), fits }
}

impl Expected {
    /// Runs `convert` on `len` elements from `first` on, both sides misaligned as asked, and
    /// compares. A margin of poison behind the destination must survive.
    fn check(
        &self,
        what: &str,
        (first, len): (usize, usize),
        (src_shift, dst_shift): (usize, usize),
        convert: impl Fn(&[u8], &mut [u8]) -> Converted,
    ) {
        let mut src = vec![0_u8; src_shift];
        src.extend_from_slice(&self.src[first * self.src_size..][..len * self.src_size]);
        let mut dst = vec![POISON; dst_shift + len * self.dst_size + 9];
        let end = dst_shift + len * self.dst_size;
        let converted = convert(&src[src_shift..], &mut dst[dst_shift..end]);
        let place = format!("{what}: elements {first}+{len}, shifts {src_shift} {dst_shift}");
        let want = &self.dst[first * self.dst_size..][..len * self.dst_size];
        if let Some(i) = (0..len).find(|i| {
            let cell = i * self.dst_size..(i + 1) * self.dst_size;
            dst[dst_shift..end][cell.clone()] != want[cell]
        }) {
            panic!(
                "{place}: element {i}: {:02x?} gave {:02x?}, not {:02x?}",
                &src[src_shift + i * self.src_size..][..self.src_size],
                &dst[dst_shift + i * self.dst_size..][..self.dst_size],
                &want[i * self.dst_size..][..self.dst_size],
            );
        }
        let unfit = self.fits[first..first + len].iter().filter(|fits| !**fits).count();
        assert_eq!(converted.out_of_range, unfit as u64, "{place}");
        assert!(dst[..dst_shift].iter().chain(&dst[end..]).all(|b| *b == POISON), "{place}");
    }

    fn check_lengths_and_shifts(
        &self,
        what: &str,
        convert: impl Fn(&[u8], &mut [u8]) -> Converted,
    ) {
        for len in (0..=VECTORS_ELEMS).chain(BLOCK_LENGTHS) {
            let first = (len * 37) % (N_ELEMS - len);
            self.check(what, (first, len), (len % 8, (len / 8) % 8), &convert);
        }
        for shift in 0..64 {
            self.check(what, (shift, VECTORS_ELEMS), (shift % 8, shift / 8), &convert);
        }
    }
}

#[test]
fn decoding_is_the_scalar_truth_at_every_level_length_and_alignment() {
    for (ext, order, mem, rule) in pairs() {
        let expected = expected_decode((ext, order, mem, rule), elements(ext.natural_mem()));
        for level in levels() {
            let decoder = Decoder::at_level(level, ext, order, mem, rule).expect("converts");
            let what = format!("{level:?} {ext:?} {order:?} -> {mem:?} {rule:?}");
            expected.check_lengths_and_shifts(&what, |src, dst| decoder.decode(src, dst));
        }
    }
}

#[test]
fn encoding_is_the_scalar_truth_at_every_level_length_and_alignment() {
    for (ext, order, mem, rule) in pairs() {
        let expected = expected_encode((ext, order, mem, rule), elements(mem));
        for level in levels() {
            let encoder = Encoder::at_level(level, ext, order, mem, rule).expect("converts");
            let what = format!("{level:?} {mem:?} -> {ext:?} {order:?} {rule:?}");
            expected.check_lengths_and_shifts(&what, |src, dst| encoder.encode(src, dst));
        }
    }
}

#[test]
fn text_and_numbers_do_not_mix() {
    for ext in ExtType::ALL {
        for mem in MemType::ALL {
            let mixed = (ext == ExtType::Char) != (mem == MemType::Text);
            let decoder = Decoder::new(ext, ByteOrder::Big, mem, RangeRule::Strict);
            let encoder = Encoder::new(ext, ByteOrder::Big, mem, RangeRule::Strict);
            assert_eq!(decoder.is_err(), mixed, "{ext:?} {mem:?}");
            assert_eq!(encoder.is_err(), mixed, "{ext:?} {mem:?}");
        }
    }
}

#[test]
fn copies_are_named_as_copies() {
    let is_copy = |ext, order, mem, rule| {
        let decoder = Decoder::new(ext, order, mem, rule).expect("converts").is_copy();
        let encoder = Encoder::new(ext, order, mem, rule).expect("converts").is_copy();
        assert_eq!(decoder, encoder);
        decoder
    };
    use RangeRule::{ByteIsUnsigned, Strict};
    assert!(is_copy(ExtType::Char, ByteOrder::Big, MemType::Text, Strict));
    assert!(is_copy(ExtType::Byte, ByteOrder::Big, MemType::I8, Strict));
    assert!(is_copy(ExtType::Double, ByteOrder::NATIVE, MemType::F64, Strict));
    assert!(is_copy(ExtType::Byte, ByteOrder::Big, MemType::U8, ByteIsUnsigned));
    assert!(!is_copy(ExtType::Byte, ByteOrder::Big, MemType::U8, Strict));
    assert!(!is_copy(ExtType::UByte, ByteOrder::Big, MemType::I8, ByteIsUnsigned));
    let foreign = match ByteOrder::NATIVE {
        ByteOrder::Little => ByteOrder::Big,
        ByteOrder::Big => ByteOrder::Little,
    };
    assert!(!is_copy(ExtType::Double, foreign, MemType::F64, Strict));
}

/// `keeps_unfit` is what the truth does: poison survives in exactly those pairs.
#[test]
fn kept_elements_are_announced() {
    for (ext, order, mem, rule) in pairs() {
        if ext == ExtType::Char {
            continue;
        }
        let keeps = |expected: &Expected| {
            let cells = expected.dst.chunks_exact(expected.dst_size).zip(&expected.fits);
            let mut unfit = cells.filter(|(_, fits)| !**fits).map(|(cell, _)| cell).peekable();
            unfit.peek().is_some() && unfit.all(|cell| cell.iter().all(|b| *b == POISON))
        };
        let decoder = Decoder::new(ext, order, mem, rule).expect("converts");
        let expected = expected_decode((ext, order, mem, rule), elements(ext.natural_mem()));
        assert_eq!(decoder.keeps_unfit(), keeps(&expected), "{ext:?} -> {mem:?}");
        let encoder = Encoder::new(ext, order, mem, rule).expect("converts");
        let expected = expected_encode((ext, order, mem, rule), elements(mem));
        assert_eq!(encoder.keeps_unfit(), keeps(&expected), "{mem:?} -> {ext:?}");
    }
}

#[test]
fn nan_payloads_survive_swapping() {
    let singles: [u32; 4] = [0x7f81_2345, 0xff81_2345, 0x7fc1_2345, 0xffff_ffff];
    let doubles: [u64; 3] = [0x7ff0_0000_dead_beef, 0xfff0_1234_5678_9abc, u64::MAX];
    let memory: Vec<u8> = singles.iter().flat_map(|x| x.to_ne_bytes()).collect();
    let file: Vec<u8> = singles.iter().flat_map(|x| x.to_be_bytes()).collect();
    round_trip(ExtType::Float, MemType::F32, &memory, &file);
    let memory: Vec<u8> = doubles.iter().flat_map(|x| x.to_ne_bytes()).collect();
    let file: Vec<u8> = doubles.iter().flat_map(|x| x.to_be_bytes()).collect();
    round_trip(ExtType::Double, MemType::F64, &memory, &file);
}

fn round_trip(ext: ExtType, mem: MemType, memory: &[u8], file: &[u8]) {
    let encoder = Encoder::new(ext, ByteOrder::Big, mem, RangeRule::Strict).expect("same type");
    let decoder = Decoder::new(ext, ByteOrder::Big, mem, RangeRule::Strict).expect("same type");
    let mut encoded = vec![0; file.len()];
    assert_eq!(encoder.encode(memory, &mut encoded), Converted::default());
    assert_eq!(encoded, file);
    let mut decoded = vec![0; memory.len()];
    assert_eq!(decoder.decode(file, &mut decoded), Converted::default());
    assert_eq!(decoded, memory);
}

#[test]
fn swapping_in_place_reverses_each_element_at_every_level() {
    let source: Vec<u8> = (0..3 * 64 * 8 + 13).map(|i| (i * 7 % 251) as u8).collect();
    for level in levels() {
        for size in [1, 2, 3, 4, 8] {
            for shift in 0..8 {
                for len in (0..200).chain([source.len() - shift]) {
                    let mut bytes = source.clone();
                    dispatch::swap_in_place(level, &mut bytes[shift..shift + len], size);
                    let mut want = source.clone();
                    if size != 3 {
                        let cells = want[shift..shift + len].chunks_exact_mut(size);
                        cells.for_each(<[u8]>::reverse);
                    }
                    assert_eq!(bytes, want, "{level:?} size {size} shift {shift} length {len}");
                }
            }
        }
    }
    let mut bytes = [1, 2, 3, 4, 5];
    swap_in_place(&mut bytes, 4);
    assert_eq!(bytes, [4, 3, 2, 1, 5]);
}

#[test]
fn unequal_strided_lengths_stop_at_the_shorter_side() {
    let decoder = Decoder::new(ExtType::Short, ByteOrder::Big, MemType::I16, RangeRule::Strict)
        .expect("same type");
    let mut memory = [POISON; 8];
    let _ = decoder.decode_strided(&[0, 1, 9, 9, 0, 2, 9], 4, &mut memory);
    let want: Vec<u8> =
        [1_i16, 2].iter().flat_map(|x| x.to_ne_bytes()).chain([POISON; 4]).collect();
    assert_eq!(memory.as_slice(), want);
    let _ = decoder.decode_strided(&[0], 4, &mut memory);
    assert_eq!(memory.as_slice(), want, "less than one element: nothing is decoded");
}

proptest! {
    /// Random bits, lengths and shifts: what the fixed arrays may have missed.
    #[test]
    fn random_bits_convert_as_the_scalar_truth(
        pair in prop::sample::select(pairs()),
        bytes in prop::collection::vec(any::<u8>(), 0..1200),
        shifts in (0_usize..8, 0_usize..8),
    ) {
        let (ext, order, mem, rule) = pair;
        let whole = |size: usize| bytes[..bytes.len() / size * size].to_vec();
        for level in levels() {
            let what = format!("{level:?} {pair:?}");
            let expected = expected_decode(pair, whole(ext.size()));
            let decoder = Decoder::at_level(level, ext, order, mem, rule).expect("converts");
            let range = (0, expected.fits.len());
            expected.check(&what, range, shifts, |src, dst| decoder.decode(src, dst));
            let expected = expected_encode(pair, whole(mem.size()));
            let encoder = Encoder::at_level(level, ext, order, mem, rule).expect("converts");
            let range = (0, expected.fits.len());
            expected.check(&what, range, shifts, |src, dst| encoder.encode(src, dst));
        }
    }

    /// Strided transfers are packed ones with the gaps taken out or left alone.
    #[test]
    fn strided_is_packed_with_gaps(
        pair in prop::sample::select(pairs()),
        gap in 0_usize..20,
        first in 0_usize..300,
        len in 0_usize..400,
    ) {
        let (ext, order, mem, rule) = pair;
        let stride = ext.size() + gap;
        let expected = expected_decode(pair, elements(ext.natural_mem()));
        let mut file = vec![0x3c_u8; (len * stride).saturating_sub(gap)];
        for i in 0..len {
            let cell = &expected.src[(first + i) * ext.size()..][..ext.size()];
            file[i * stride..][..ext.size()].copy_from_slice(cell);
        }
        let decoder = Decoder::new(ext, order, mem, rule).expect("converts");
        expected.check("strided", (first, len), (0, 0), |_, dst| {
            decoder.decode_strided(&file, stride, dst)
        });

        let expected = expected_encode(pair, elements(mem));
        let encoder = Encoder::new(ext, order, mem, rule).expect("converts");
        let mut file = vec![POISON; (len * stride).saturating_sub(gap)];
        let converted = encoder.encode_strided(
            &expected.src[first * mem.size()..][..len * mem.size()],
            &mut file,
            stride,
        );
        let unfit = expected.fits[first..][..len].iter().filter(|fits| !**fits).count();
        prop_assert_eq!(converted.out_of_range, unfit as u64);
        let mut want = vec![POISON; file.len()];
        for i in 0..len {
            let cell = &expected.dst[(first + i) * ext.size()..][..ext.size()];
            want[i * stride..][..ext.size()].copy_from_slice(cell);
        }
        prop_assert_eq!(file, want);
    }
}

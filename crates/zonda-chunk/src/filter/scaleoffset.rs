//! Filter 6, scaleoffset: numbers as their distance from the chunk's least, in as few bits as that
//! takes; floating-point numbers rounded to a number of decimal digits first.
//!
//! Parameters: scale type (0 decimal digits, 1 binary exponent, 2 integers), factor (digits, or
//! bits; 0 bits: as few as it takes), elements in the chunk, class (0 integer, 1 floating-point),
//! size, sign, byte order (0 LE), whether there is a fill value, its words, the lowest first.
//! Stream: bits of a code u32 LE, bytes of the least value (8), the least value LE (the bits of a
//! floating-point number), 8 bytes reserved, then the codes, highest bit first. Codes as wide as
//! the elements: the elements themselves, little-endian. The highest code is the fill value.

use super::bits::{BitReader, BitWriter};
use super::{ChunkShape, Filter, FilterError, FilterSpec, memory};

const NAME: &str = "scaleoffset";

/// Bytes before the codes.
const HEADER: usize = 21;

/// What the elements are.
#[derive(Clone, Copy, Debug)]
enum ElementKind {
    Unsigned,
    Signed,
    /// With the number of decimal digits kept, and ten to the power of that.
    Float {
        digits: i32,
        power: f64,
    },
}

/// Filter 6.
#[derive(Debug)]
pub(crate) struct ScaleOffset {
    kind: ElementKind,
    /// Bytes of an element: 1, 2, 4 or 8.
    size: usize,
    big_endian: bool,
    n_elems: usize,
    /// The bits of the fill value.
    fill: Option<u64>,
    /// Bits of a code that the writer asked for, 0 if it left that to the filter.
    min_bits: u32,
}

/// Makes the filter; the registry's line.
pub(crate) fn new(spec: &FilterSpec, _shape: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    let params = &spec.params;
    let few = |need| FilterError::FewParameters { filter: NAME, have: params.len(), need };
    let param = |index: usize| params.get(index).copied().ok_or(few(20));
    let bad = |index: usize| FilterError::BadParameter {
        filter: NAME,
        index,
        value: params.get(index).copied().unwrap_or_default(),
    };
    let size = match (param(3)?, param(4)?) {
        (0, size @ (1 | 2 | 4 | 8)) | (1, size @ (4 | 8)) => size as usize,
        (0 | 1, _) => return Err(bad(4)),
        _ => return Err(bad(3)),
    };
    let factor = param(1)?;
    let kind = match (param(0)?, param(3)?, param(5)?) {
        (0, 1, _) => {
            let digits = factor as i32;
            ElementKind::Float { digits, power: 10f64.powf(f64::from(digits)) }
        }
        (1, 1, _) => {
            return Err(FilterError::Unsupported {
                filter: NAME,
                what: "scaling by exponents (E-scaling)",
            });
        }
        (2, 0, 0) => ElementKind::Unsigned,
        (2, 0, 1) => ElementKind::Signed,
        (2, 0, _) => return Err(bad(5)),
        _ => return Err(bad(0)),
    };
    let min_bits = if matches!(kind, ElementKind::Float { .. }) { 0 } else { factor };
    if u64::from(min_bits) > size as u64 * 8 {
        return Err(bad(1));
    }
    let big_endian = match param(6)? {
        0 => false,
        1 => true,
        _ => return Err(bad(6)),
    };
    let fill = match param(7)? {
        0 => None,
        1 => {
            let low = u64::from(param(8)?);
            let high = if size == 8 { u64::from(param(9)?) } else { 0 };
            Some((low | high << 32) & ones(size as u32 * 8))
        }
        _ => return Err(bad(7)),
    };
    let n_elems = param(2)? as usize;
    Ok(Box::new(ScaleOffset { kind, size, big_endian, n_elems, fill, min_bits }))
}

/// The lowest `width` bits set; `width` is at most 64.
fn ones(width: u32) -> u64 {
    if width == 0 { 0 } else { u64::MAX >> (64 - width.min(64)) }
}

/// The bits that `value` has as an element of `size` bytes, widened with its sign.
fn widened(value: u64, size: usize) -> i64 {
    let unused = 64 - size as u32 * 8;
    ((value << unused) as i64) >> unused
}

impl ScaleOffset {
    fn width(&self) -> u32 {
        self.size as u32 * 8
    }

    /// The filter leaves the chunk as it is: the codes would be the elements.
    fn is_off(&self) -> bool {
        self.min_bits == self.width()
    }

    fn len(&self) -> Option<usize> {
        self.n_elems.checked_mul(self.size)
    }

    fn load(&self, from: &[u8]) -> u64 {
        let mut value = 0;
        if self.big_endian {
            from.iter().for_each(|&byte| value = value << 8 | u64::from(byte));
        } else {
            from.iter().rev().for_each(|&byte| value = value << 8 | u64::from(byte));
        }
        value
    }

    fn store(&self, value: u64, to: &mut [u8]) {
        let bytes = value.to_le_bytes();
        if self.big_endian {
            to.iter_mut().rev().zip(bytes).for_each(|(to, byte)| *to = byte);
        } else {
            to.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        }
    }

    /// What a code stands for.
    fn value(&self, code: u64, least: u64) -> u64 {
        match self.kind {
            ElementKind::Unsigned | ElementKind::Signed => least.wrapping_add(code),
            // The code is taken as a signed number of the element's size.
            ElementKind::Float { power, .. } if self.size == 4 => {
                let least = f32::from_bits(least as u32);
                u64::from(((code as u32 as i32) as f32 / power as f32 + least).to_bits())
            }
            ElementKind::Float { power, .. } => {
                (code as i64 as f64 / power + f64::from_bits(least)).to_bits()
            }
        }
    }
}

impl Filter for ScaleOffset {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        if self.is_off() {
            return memory::copy(NAME, stored, most, out);
        }
        let damaged = |at, what| FilterError::Damaged { filter: NAME, at, what };
        let (Some(head), Some(codes)) = (stored.first_chunk::<13>(), stored.get(HEADER..)) else {
            return Err(damaged(stored.len(), "ends early"));
        };
        let [b0, b1, b2, b3, n_least, least @ ..] = *head;
        let bits = u32::from_le_bytes([b0, b1, b2, b3]);
        if bits > self.width() {
            return Err(damaged(0, "codes wider than the elements"));
        }
        // Written by a machine with another "unsigned long long", fewer bytes may count.
        let least = u64::from_le_bytes(least) & ones(u32::from(n_least).min(8) * 8);
        let len = self.len().filter(|len| *len <= most).ok_or(FilterError::WrongLength {
            filter: NAME,
            got: self.n_elems.saturating_mul(self.size),
            expected: most,
        })?;
        let need = (bits as usize).checked_mul(self.n_elems).map(|bits| bits.div_ceil(8));
        if need.is_none_or(|need| need > codes.len()) {
            return Err(damaged(stored.len(), "ends early"));
        }
        memory::zeroed(NAME, out, len)?;
        if bits == self.width() {
            for (to, from) in out.chunks_exact_mut(self.size).zip(codes.chunks_exact(self.size)) {
                to.copy_from_slice(from);
                if self.big_endian {
                    to.reverse();
                }
            }
            return Ok(());
        }
        let mut from = BitReader::new(codes);
        let fill_code = ones(bits);
        for to in out.chunks_exact_mut(self.size) {
            let code = from.take(bits);
            let value = match self.fill {
                Some(fill) if code == fill_code => fill,
                _ => self.value(code, least),
            };
            self.store(value, to);
        }
        Ok(())
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        if self.is_off() {
            out.extend_from_slice(raw);
            return Ok(true);
        }
        if self.len() != Some(raw.len()) {
            let expected = self.n_elems.saturating_mul(self.size);
            return Err(FilterError::WrongLength { filter: NAME, got: raw.len(), expected });
        }
        let values: Vec<u64> = raw.chunks_exact(self.size).map(|from| self.load(from)).collect();
        let plan = match self.kind {
            ElementKind::Unsigned | ElementKind::Signed => self.plan_integers(&values),
            // The reference computes single-precision data in single precision.
            ElementKind::Float { digits, power } if self.size == 4 => self.plan_floats(
                &values,
                digits,
                |bits| f64::from(f32::from_bits(bits as u32)),
                |value| f64::from(value as f32 * power as f32),
                |a, b| f64::from(a as f32 - b as f32),
            ),
            ElementKind::Float { digits, power } => self.plan_floats(
                &values,
                digits,
                f64::from_bits,
                |value| value * power,
                |a, b| a - b,
            ),
        };
        out.extend_from_slice(&plan.bits.to_le_bytes());
        out.push(8);
        out.extend_from_slice(&plan.least.to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        let Some(codes) = plan.codes else {
            values.iter().for_each(|value| {
                out.extend(value.to_le_bytes().into_iter().take(self.size));
            });
            return Ok(true);
        };
        let len = HEADER + plan.bits as usize * codes.len() / 8 + 1;
        let mut to = BitWriter::new(out);
        codes.iter().for_each(|&code| to.put(code, plan.bits));
        to.finish();
        out.resize(len, 0);
        Ok(true)
    }
}

/// How a chunk is to be written.
struct ChunkCodes {
    bits: u32,
    least: u64,
    /// None: the elements as they are.
    codes: Option<Vec<u64>>,
}

impl ScaleOffset {
    fn raw_plan(&self) -> ChunkCodes {
        ChunkCodes { bits: self.width(), least: 0, codes: None }
    }

    fn plan_integers(&self, values: &[u64]) -> ChunkCodes {
        // Signed numbers are compared with their sign bit turned round, as if unsigned.
        let turn =
            if matches!(self.kind, ElementKind::Signed) { 1 << (self.width() - 1) } else { 0 };
        let real = || values.iter().filter(|value| Some(**value) != self.fill);
        let least = real().map(|value| value ^ turn).min().map_or(0, |least| least ^ turn);
        let greatest = real().map(|value| value ^ turn).max().map_or(0, |most| most ^ turn);
        let mask = ones(self.width());
        let range = greatest.wrapping_sub(least) & mask;
        let bits = if self.min_bits != 0 {
            self.min_bits
        } else if range > mask - 2 {
            return self.raw_plan();
        } else {
            // Codes 0 to `range`, and one for the fill value.
            let n_codes = range + 1 + u64::from(self.fill.is_some());
            n_codes.checked_next_power_of_two().map_or(64, u64::trailing_zeros)
        };
        if bits >= self.width() {
            return self.raw_plan();
        }
        let code = |value: &u64| {
            if Some(*value) == self.fill { ones(bits) } else { value.wrapping_sub(least) & mask }
        };
        let stored_least = if turn == 0 { least } else { widened(least, self.size) as u64 };
        ChunkCodes { bits, least: stored_least, codes: Some(values.iter().map(code).collect()) }
    }

    fn plan_floats(
        &self,
        values: &[u64],
        digits: i32,
        number: impl Fn(u64) -> f64,
        scaled: impl Fn(f64) -> f64,
        minus: impl Fn(f64, f64) -> f64,
    ) -> ChunkCodes {
        let near = 10f64.powf(-f64::from(digits));
        let fill = self.fill.map(&number);
        let is_fill = |value: f64| fill.is_some_and(|fill| (value - fill).abs() < near);
        let real = || values.iter().map(|&bits| number(bits)).filter(|value| !is_fill(*value));
        if values.iter().any(|&bits| !number(bits).is_finite()) {
            // No distance from the least would bring these back.
            return self.raw_plan();
        }
        let least = real().fold(f64::INFINITY, f64::min);
        let greatest = real().fold(f64::NEG_INFINITY, f64::max);
        let (least, greatest) = if least <= greatest { (least, greatest) } else { (0.0, 0.0) };
        let span = minus(scaled(greatest), scaled(least)).round();
        if !span.is_finite() || span > f64::from(self.width() - 1).exp2() {
            return self.raw_plan();
        }
        let n_codes = span as u64 + 1 + u64::from(self.fill.is_some());
        let bits = n_codes.checked_next_power_of_two().map_or(64, u64::trailing_zeros);
        if bits >= self.width() {
            return self.raw_plan();
        }
        let base = scaled(least);
        let code = |&value: &u64| {
            let value = number(value);
            if is_fill(value) { ones(bits) } else { minus(scaled(value), base).round() as u64 }
        };
        let stored_least =
            if self.size == 4 { u64::from((least as f32).to_bits()) } else { least.to_bits() };
        ChunkCodes { bits, least: stored_least, codes: Some(values.iter().map(code).collect()) }
    }
}

#[cfg(test)]
mod tests {
    use super::new;
    use crate::filter::{ChunkShape, FilterSpec};
    use proptest::prelude::*;

    /// Encodes and decodes elements of `size` bytes; class 0 is integers, 1 floating-point numbers.
    fn there_and_back(params: &[u32], raw: &[u8]) -> Vec<u8> {
        let mut params = params.to_vec();
        params.resize(20, 0);
        let elem_size = params[4] as usize;
        params[2] = (raw.len() / elem_size) as u32;
        let shape = ChunkShape { dims: vec![params[2].into()], elem_size };
        let spec = FilterSpec { id: 6, optional: true, name: String::new(), params };
        let filter = new(&spec, &shape).unwrap();
        let (mut stored, mut out) = (Vec::new(), Vec::new());
        assert_eq!(filter.encode(raw, &mut stored), Ok(true));
        filter.decode(&stored, raw.len(), &mut out).unwrap();
        out
    }

    proptest! {
        #[test]
        fn integers_come_back(
            (size, sign, order) in (prop_oneof![Just(1u32), Just(2), Just(4), Just(8)], 0u32..2, 0u32..2),
            has_fill in 0u32..2,
            base in any::<u64>(),
            steps in proptest::collection::vec((any::<u64>(), 0u32..64), 1..40),
        ) {
            let raw: Vec<u8> = steps
                .iter()
                .map(|(step, unused)| base.wrapping_add(step >> unused))
                .flat_map(|value| value.to_le_bytes().into_iter().take(size as usize))
                .collect();
            let (low, high) = (base as u32, (base >> 32) as u32);
            let params = [2, 0, 0, 0, size, sign, order, has_fill, low, high];
            prop_assert_eq!(there_and_back(&params, &raw), raw);
        }

        #[test]
        fn numbers_keep_their_digits(
            digits in 0u32..6,
            order in 0u32..2,
            fill in proptest::option::of(-10.0f64..10.0),
            values in proptest::collection::vec(-10.0f64..10.0, 1..40),
        ) {
            let bits = fill.map_or(0, f64::to_bits);
            let has_fill = fill.is_some().into();
            let params = [0, digits, 0, 1, 8, 0, order, has_fill, bits as u32, (bits >> 32) as u32];
            let bytes = |value: &f64| if order == 0 { value.to_le_bytes() } else { value.to_be_bytes() };
            let raw: Vec<u8> = values.iter().flat_map(bytes).collect();
            let out = there_and_back(&params, &raw);
            let unit = 0.1f64.powi(digits as i32);
            for (value, bytes) in values.iter().zip(out.chunks_exact(8)) {
                let bytes: [u8; 8] = bytes.try_into().unwrap();
                let back = if order == 0 { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) };
                // What is nearer to the fill value than a digit becomes it, as in HDF5.
                let allowed = if Some(back) == fill { unit } else { unit / 2.0 };
                prop_assert!((value - back).abs() <= allowed * 1.000_001, "{value} {back}");
            }
        }
    }

    #[test]
    fn what_no_digits_can_say_is_kept_as_it_is() {
        let values = [1.0f32, f32::NAN, f32::INFINITY, -3.25e30];
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).collect();
        assert_eq!(there_and_back(&[0, 2, 0, 1, 4, 0, 1, 0], &raw), raw);
    }
}

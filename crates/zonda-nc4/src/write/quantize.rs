//! Reducing the precision of values, so that they compress better (`nc_def_var_quantize`).
//!
//! Values are converted to the type of the variable first; then bits of their mantissa are changed.
//! Spec: netCDF-C "Lossy Compression with Quantize"; Zender 2016 (BitGroom), Delaunay et al. 2019
//! (digit rounding, of which the granular kind is made), Kouznetsov 2021 (rounding of bits).
//! Fill values, zeros and what is not a number stay as they are, and infinities, too, where the
//! reference makes zeros of them (granular bit rounding). BitGroom takes bits from every other value and sets them
//! in the others, counted in each put from its first value.

use zonda_convert::{ByteOrder, Converted, Encoder, RangeRule};
use zonda_model::{ExtType, MemType, NcError, default_fill};

use super::store::VarStore;
use super::{Quantize, QuantizeMode};
use crate::fault::{Fault, Outcome};
use crate::tuning::QUANTIZE_BY_STEPS_VALUES;

/// Converts values to the type of the variable, in native bytes, and reduces their precision.
pub(super) fn quantized(
    store: &VarStore,
    how: Quantize,
    mem: MemType,
    src: &[u8],
) -> Outcome<(Vec<u8>, Converted)> {
    let refused = Fault::Refused;
    let (ext, order) = store.number().ok_or(refused(NcError::BadType))?;
    let encoder = Encoder::new(ext, ByteOrder::NATIVE, mem, RangeRule::Cast);
    let encoder = encoder.map_err(|_| refused(NcError::Char))?;
    let n = src.len().checked_div(mem.size()).unwrap_or(0);
    let len = n.checked_mul(ext.size()).ok_or(refused(NcError::NoMem))?;
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| refused(NcError::NoMem))?;
    values.resize(len, 0);
    let converted = encoder.encode(src, &mut values);
    let mut fill = default_fill(ext);
    if let Some(stored) = store.fill() {
        for (to, from) in fill.iter_mut().zip(stored) {
            *to = *from;
        }
        if order != ByteOrder::NATIVE
            && let Some(fill) = fill.get_mut(..ext.size())
        {
            fill.reverse();
        }
    }
    match ext {
        ExtType::Float => {
            let [a, b, c, d, ..] = fill;
            groom::<4, u32>(how, &mut values, f64::from(f32::from_ne_bytes([a, b, c, d])));
        }
        ExtType::Double => groom::<8, u64>(how, &mut values, f64::from_ne_bytes(fill)),
        _ => {}
    }
    Ok((values, converted))
}

/// Decimal digits in a bit, and bits in a decimal digit.
const DIGITS_PER_BIT: f64 = std::f64::consts::LN_2 / std::f64::consts::LN_10;
const BITS_PER_DIGIT: f64 = std::f64::consts::LN_10 / std::f64::consts::LN_2;

/// Bits of a floating-point number.
trait Bits<const N: usize>: Copy {
    /// Bits of the mantissa.
    const MANTISSA: u32;
    fn load(bytes: [u8; N]) -> Self;
    fn store(self) -> [u8; N];
    fn value(self) -> f64;
    /// The lowest `n` bits as zeros.
    fn cleared(self, n: u32) -> Self;
    /// The lowest `n` bits as ones.
    fn set(self, n: u32) -> Self;
    /// Rounded up by half of the bit above the lowest `n`.
    fn half_up(self, n: u32) -> Self;
}

macro_rules! bits {
    ($bits:ty, $float:ty, $n:literal, $mantissa:literal) => {
        impl Bits<$n> for $bits {
            const MANTISSA: u32 = $mantissa;
            fn load(bytes: [u8; $n]) -> $bits {
                <$bits>::from_ne_bytes(bytes)
            }
            fn store(self) -> [u8; $n] {
                self.to_ne_bytes()
            }
            fn value(self) -> f64 {
                <$float>::from_bits(self).into()
            }
            fn cleared(self, n: u32) -> $bits {
                self & <$bits>::MAX.checked_shl(n).unwrap_or(0)
            }
            fn set(self, n: u32) -> $bits {
                self | !<$bits>::MAX.checked_shl(n).unwrap_or(0)
            }
            fn half_up(self, n: u32) -> $bits {
                let half = n.checked_sub(1).and_then(|n| (1 as $bits).checked_shl(n));
                self.wrapping_add(half.unwrap_or(0))
            }
        }
    };
}

bits!(u32, f32, 4, 23);
bits!(u64, f64, 8, 52);

fn groom<const N: usize, B: Bits<N>>(how: Quantize, values: &mut [u8], fill: f64) {
    let (values, _) = values.as_chunks_mut::<N>();
    let kept = f64::from(how.kept);
    match how.mode {
        QuantizeMode::BitGroom => {
            // One bit more than so many digits need.
            let needed = whole((kept * BITS_PER_DIGIT).ceil()).saturating_add(1);
            let lost = B::MANTISSA.saturating_sub(needed);
            for (index, value) in values.iter_mut().enumerate() {
                let bits = B::load(*value);
                if bits.value() == fill || bits.value().is_nan() {
                    continue;
                }
                if index % 2 == 0 {
                    *value = bits.cleared(lost).store();
                } else if bits.value() != 0.0 {
                    *value = bits.set(lost).store();
                }
            }
        }
        QuantizeMode::BitRound => {
            let lost = B::MANTISSA.saturating_sub(how.kept);
            for value in values {
                let bits = B::load(*value);
                if bits.value() != fill && !bits.value().is_nan() {
                    *value = bits.half_up(lost).cleared(lost).store();
                }
            }
        }
        QuantizeMode::GranularBitRound => {
            let mut needed = Needed::new(kept, values.len());
            for value in values {
                let bits = B::load(*value);
                let number = bits.value();
                if number != fill && number != 0.0 && number.is_finite() {
                    // One bit less than so many digits need turned out to be enough.
                    let lost = B::MANTISSA.saturating_add(1);
                    let lost = lost.saturating_sub(needed.bits(number));
                    *value = bits.half_up(lost).cleared(lost).store();
                }
            }
        }
    }
}

/// Bits of the mantissa of a double.
const FRACTION: u64 = (1 << 52) - 1;
/// So near to a step, counted in the last bit of the mantissa, rounding has a say in where it is.
const NEAR: u64 = 64;

/// [`needed_bits`] of many values. Between one power of two and the next it only ever falls, in a few
/// steps, which are looked for once: a logarithm of each value takes ten times as long.
struct Needed {
    digits: f64,
    /// By exponent, where the steps are known: the first mantissa of each, and its bits.
    steps: Vec<Vec<(u64, u32)>>,
}

impl Needed {
    fn new(digits: f64, n_values: usize) -> Needed {
        let n = if n_values < QUANTIZE_BY_STEPS_VALUES { 0 } else { 0x7ff };
        Needed { digits, steps: vec![Vec::new(); n] }
    }

    fn bits(&mut self, value: f64) -> u32 {
        let exponent = (value.to_bits() >> 52) & 0x7ff;
        let mantissa = value.to_bits() & FRACTION;
        let place = usize::try_from(exponent).ok().filter(|&place| place > 0);
        let Some(steps) = place.and_then(|place| self.steps.get_mut(place)) else {
            return needed_bits(value, self.digits);
        };
        if steps.is_empty() {
            *steps = steps_of(exponent, self.digits);
        }
        for (first, bits) in steps.iter().rev() {
            if mantissa.abs_diff(*first) < NEAR {
                break;
            }
            if mantissa > *first {
                return *bits;
            }
        }
        needed_bits(value, self.digits)
    }
}

/// The steps among the values with an exponent.
fn steps_of(exponent: u64, digits: f64) -> Vec<(u64, u32)> {
    let at = |mantissa| needed_bits(f64::from_bits(exponent << 52 | mantissa), digits);
    let mut steps = vec![(0, at(0))];
    let last = at(FRACTION);
    while let Some(&(first, bits)) = steps.last()
        && bits != last
    {
        let (mut same, mut other) = (first, FRACTION);
        while other.saturating_sub(same) > 1 {
            let middle = same.midpoint(other);
            if at(middle) == bits {
                same = middle;
            } else {
                other = middle;
            }
        }
        steps.push((other, at(other)));
    }
    steps
}

/// Bits of the mantissa that so many decimal digits of a value need.
fn needed_bits(value: f64, digits: f64) -> u32 {
    let (mantissa, exponent) = parts(value);
    let log = mantissa.log10();
    let before_point = (f64::from(exponent) * DIGITS_PER_BIT + log).floor() + 1.0;
    let power = (BITS_PER_DIGIT * (before_point - digits)).floor();
    let above = (f64::from(exponent) - BITS_PER_DIGIT * log).floor();
    whole((above - power).abs())
}

/// A number of bits that is none or more.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of bits")]
fn whole(bits: f64) -> u32 {
    bits as u32
}

/// The mantissa from 0.5 up to 1 without its sign, and the exponent of two.
fn parts(value: f64) -> (f64, i32) {
    let bits = value.to_bits();
    let exponent = i32::try_from((bits >> 52) & 0x7ff).unwrap_or(0);
    let mantissa = bits & ((1 << 52) - 1);
    match exponent {
        0 if mantissa == 0 => (0.0, 0),
        0 => {
            // So small that it has no implied bit: made larger, which is exact.
            let (mantissa, exponent) = parts(value * 2f64.powi(64));
            (mantissa, exponent.saturating_sub(64))
        }
        0x7ff => (value.abs(), 0),
        _ => (f64::from_bits(mantissa | (1022 << 52)), exponent.saturating_sub(1022)),
    }
}

#[cfg(test)]
mod tests;

//! Numbers whose bits no kernel knows: odd precisions, offsets and sizes, half precision, VAX, x87.
//!
//! Integers keep their value, floating-point numbers are rounded to the nearest `float` or `double`.

use zonda_convert::{Decoder, RangeRule};
use zonda_hdf5::message::{ByteOrder, FixedPoint, FloatingPoint, Normalisation};

use crate::element_form::{ElementForm, ElementShape};

/// Makes one number in memory of one in the file; `None` where `src` or `dst` has another length
/// than `form` says, or where it is no number.
pub(crate) fn convert(form: &ElementForm, src: &[u8], dst: &mut [u8]) -> Option<()> {
    if src.len() != form.file_size || dst.len() != form.size {
        return None;
    }
    match &form.shape {
        ElementShape::Number(ext, order) => {
            let decoder = Decoder::new(*ext, *order, ext.natural_mem(), RangeRule::Strict).ok()?;
            let _all_fit = decoder.decode(src, dst);
        }
        ElementShape::Integer(bits) | ElementShape::Bits(bits) => {
            let signed = bits.signed && matches!(form.shape, ElementShape::Integer(_));
            store_integer(integer(*bits, signed, src), dst);
        }
        ElementShape::Float(bits) => {
            let value = float(*bits, src);
            match dst.len() {
                #[expect(clippy::cast_possible_truncation, reason = "rounded, as asked for")]
                4 => dst.copy_from_slice(&(value as f32).to_ne_bytes()),
                _ => dst.copy_from_slice(&value.to_ne_bytes()),
            }
        }
        _ => return None,
    }
    Some(())
}

fn store_integer(value: i128, dst: &mut [u8]) {
    let bytes = value.to_le_bytes();
    for (to, from) in dst.iter_mut().zip(bytes) {
        *to = from;
    }
    if cfg!(target_endian = "big") {
        dst.reverse();
    }
}

/// The low 128 bits of an element, its bytes put into ascending order, from bit `from` on.
fn raw(order: ByteOrder, src: &[u8], from: u16) -> u128 {
    let n = src.len();
    let byte = |i: usize| -> u8 {
        let at = match order {
            ByteOrder::Little => Some(i),
            ByteOrder::Big => n.checked_sub(i.saturating_add(1)),
            // Words from the last to the first, each with its low byte first.
            ByteOrder::Vax => n.checked_sub((i | 1).saturating_add(1)).map(|at| at | (i & 1)),
        };
        at.and_then(|at| src.get(at)).copied().unwrap_or(0)
    };
    let first = usize::from(from) / 8;
    let shift = u32::from(from) % 8;
    let mut value = 0u128;
    for i in 0..16usize {
        let byte = u128::from(byte(first.saturating_add(i)));
        value |= byte.checked_shl(u32::try_from(i).unwrap_or(16).saturating_mul(8)).unwrap_or(0);
    }
    let above = u128::from(byte(first.saturating_add(16)));
    match shift {
        0 => value,
        _ => (value >> shift) | above.checked_shl(128u32.saturating_sub(shift)).unwrap_or(0),
    }
}

/// `n` bits of `value` from bit `from` on.
fn field(value: u128, from: u32, n: u32) -> u128 {
    let shifted = value.checked_shr(from).unwrap_or(0);
    match 1u128.checked_shl(n) {
        Some(limit) => shifted & limit.wrapping_sub(1),
        None => shifted,
    }
}

/// An integer of at most 64 bits in memory: longer ones are brought to the nearest that fits.
fn integer(bits: FixedPoint, signed: bool, src: &[u8]) -> i128 {
    let precision = u32::from(bits.precision).clamp(1, 128);
    let value = field(raw(bits.order, src, bits.bit_offset), 0, precision);
    if signed {
        let above = 128u32.saturating_sub(precision);
        let top = value.checked_shl(above).unwrap_or(0).cast_signed();
        let value = top.checked_shr(above).unwrap_or(0);
        value.clamp(i128::from(i64::MIN), i128::from(i64::MAX))
    } else {
        i128::try_from(value.min(u128::from(u64::MAX))).unwrap_or(0)
    }
}

/// 2 to the power of `exponent` times `x`, exact where the result is.
fn scale(mut x: f64, mut exponent: i64) -> f64 {
    // Steps that cannot overflow or underflow by themselves; past a few the result is 0 or infinite.
    for _ in 0..6 {
        let step = exponent.clamp(-1000, 1000);
        if step == 0 {
            break;
        }
        x *= f64::from(2u8).powi(i32::try_from(step).unwrap_or(0));
        exponent = exponent.saturating_sub(step);
    }
    x
}

fn float(bits: FloatingPoint, src: &[u8]) -> f64 {
    let value = raw(bits.order, src, bits.bit_offset);
    // Positions are counted from the element's first bit, the offset's included.
    let at = |position: u8| u32::from(position).saturating_sub(u32::from(bits.bit_offset));
    let negative = field(value, at(bits.sign), 1) == 1;
    let exponent_bits = u32::from(bits.exponent_bits).min(32);
    let exponent = i64::try_from(field(value, at(bits.exponent_at), exponent_bits)).unwrap_or(0);
    let mantissa_bits = u32::from(bits.mantissa_bits).min(126);
    let mantissa = field(value, at(bits.mantissa_at), mantissa_bits);
    let ones = 1i64.checked_shl(exponent_bits).unwrap_or(0).wrapping_sub(1);
    let is_vax = bits.order == ByteOrder::Vax;

    let magnitude = if exponent == ones && !is_vax {
        let fraction = match bits.normalisation {
            Normalisation::Stored => field(mantissa, 0, mantissa_bits.saturating_sub(1)),
            Normalisation::Implied | Normalisation::None => mantissa,
        };
        if fraction == 0 { f64::INFINITY } else { f64::NAN }
    } else {
        let bias = i64::from(bits.bias);
        let n = i64::from(mantissa_bits);
        let (digits, power) = match bits.normalisation {
            Normalisation::Implied if exponent == 0 && is_vax => (0, 0),
            Normalisation::Implied if exponent == 0 => {
                (mantissa, 1i64.saturating_sub(bias).saturating_sub(n))
            }
            Normalisation::Implied => {
                let one = 1u128.checked_shl(mantissa_bits).unwrap_or(0);
                (mantissa | one, exponent.saturating_sub(bias).saturating_sub(n))
            }
            // The first digit is before the point.
            Normalisation::Stored => {
                let power = exponent.max(1).saturating_sub(bias).saturating_sub(n);
                (mantissa, power.saturating_add(1))
            }
            Normalisation::None => (mantissa, exponent.saturating_sub(bias).saturating_sub(n)),
        };
        // To 53 digits first, with a sticky last one, so that what follows rounds once.
        let length = 128u32.saturating_sub(digits.leading_zeros());
        let excess = length.saturating_sub(62);
        let kept = digits.checked_shr(excess).unwrap_or(0);
        let sticky = u128::from(field(digits, 0, excess) != 0);
        scale((kept | sticky) as f64, power.saturating_add(i64::from(excess)))
    };
    if negative { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(order: ByteOrder) -> FloatingPoint {
        FloatingPoint {
            order,
            bit_offset: 0,
            precision: 16,
            normalisation: Normalisation::Implied,
            sign: 15,
            exponent_at: 10,
            exponent_bits: 5,
            mantissa_at: 0,
            mantissa_bits: 10,
            bias: 15,
        }
    }

    #[test]
    fn half_precision() {
        let little = |bits: u16| float(half(ByteOrder::Little), &bits.to_le_bytes());
        assert_eq!(little(0x3c00), 1.0);
        assert_eq!(little(0xc000), -2.0);
        assert_eq!(little(0x0001), 2f64.powi(-24));
        assert_eq!(little(0x7bff), 65504.0);
        assert_eq!(little(0xfc00), f64::NEG_INFINITY);
        assert!(little(0x7e00).is_nan());
        assert!(little(0x8000).is_sign_negative());
        assert_eq!(float(half(ByteOrder::Big), &0x3555u16.to_be_bytes()), 0.333_251_953_125);
    }

    #[test]
    fn vax_words() {
        // F_floating: 1.0 is 0x4080 in the first word.
        let f = FloatingPoint {
            order: ByteOrder::Vax,
            bit_offset: 0,
            precision: 32,
            normalisation: Normalisation::Implied,
            sign: 31,
            exponent_at: 23,
            exponent_bits: 8,
            mantissa_at: 0,
            mantissa_bits: 23,
            bias: 129,
        };
        assert_eq!(float(f, &[0x80, 0x40, 0, 0]), 1.0);
        assert_eq!(float(f, &[0x49, 0x41, 0xd0, 0x0f]), 3.141_590_118_408_203);
        assert_eq!(float(f, &[0; 4]), 0.0);
    }

    #[test]
    fn x87_extended() {
        let f = FloatingPoint {
            order: ByteOrder::Little,
            bit_offset: 0,
            precision: 80,
            normalisation: Normalisation::Stored,
            sign: 79,
            exponent_at: 64,
            exponent_bits: 15,
            mantissa_at: 0,
            mantissa_bits: 64,
            bias: 16383,
        };
        let one = [0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f, 9, 9, 9, 9, 9, 9];
        assert_eq!(float(f, &one), 1.0);
        let third = [0xab, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xfd, 0xbf, 0, 0, 0, 0, 0, 0];
        assert_eq!(float(f, &third), -1.0 / 3.0);
        let infinite = [0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x7f, 0, 0, 0, 0, 0, 0];
        assert_eq!(float(f, &infinite), f64::INFINITY);
    }

    #[test]
    fn integers_in_odd_places() {
        let bits = |order, signed, bit_offset, precision| FixedPoint {
            order,
            signed,
            padding: [false; 2],
            bit_offset,
            precision,
        };
        let three = bits(ByteOrder::Little, true, 0, 24);
        assert_eq!(integer(three, true, &[0xff, 0xff, 0xff]), -1);
        assert_eq!(integer(three, true, &[1, 0, 0x80]), -8_388_607);
        let middle = bits(ByteOrder::Big, false, 4, 8);
        assert_eq!(integer(middle, false, &[0xfa, 0xbf]), 0xab);
        let long = bits(ByteOrder::Little, true, 0, 128);
        let mut bytes = [0xff; 16];
        assert_eq!(integer(long, true, &bytes), -1);
        bytes[15] = 0x80;
        assert_eq!(integer(long, true, &bytes), i128::from(i64::MIN));
        bytes[15] = 0x7f;
        assert_eq!(integer(long, true, &bytes), i128::from(i64::MAX));
    }
}

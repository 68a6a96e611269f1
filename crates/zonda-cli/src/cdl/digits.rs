//! Decimal digits of floating-point numbers, rounded as C's `printf` rounds them: the exact value to
//! the nearest decimal, halves to the even one.
//!
//! A significand of 64 bits times a power of ten of 128 bits gives more bits than a decision needs.
//! The power is cut off, so that the product is too small by less than one in its last 64 bits: in
//! the few cases in which that could matter, there is no answer, and the caller computes with numbers
//! of any length.

use std::sync::LazyLock;

/// The most digits that are found this way. They fit in 64 bits.
pub(super) const MOST: usize = 17;

/// The powers of ten that digits of a double need.
const LEAST_POWER: i32 = -310;
const MOST_POWER: i32 = 345;

/// `10^k`: 128 bits, the first of which is 1, times a power of two. Further bits are cut off.
#[derive(Clone, Copy)]
struct Power {
    high: u64,
    low: u64,
    exponent: i32,
    /// Whether nothing was cut off.
    exact: bool,
}

/// All powers, from the lowest.
pub(super) struct Powers(Vec<Power>);

static POWERS: LazyLock<Powers> = LazyLock::new(Powers::compute);

/// Words of the integers that the powers are taken from: `5^345` has 802 bits, and `2^1024` is what
/// the negative ones are fractions of.
const WORDS: usize = 17;

impl Powers {
    fn compute() -> Powers {
        let count = (MOST_POWER - LEAST_POWER + 1).unsigned_abs() as usize;
        let mut powers = vec![Power { high: 0, low: 0, exponent: 0, exact: false }; count];
        let mut set = |k: i32, words: &[u64; WORDS], scale: i32, exact: bool| {
            let (high, low, exponent, cut) = first_bits(words);
            powers[(k - LEAST_POWER).unsigned_abs() as usize] =
                Power { high, low, exponent: exponent + scale, exact: exact && !cut };
        };
        // 10^k = 5^k * 2^k
        let mut words = [0; WORDS];
        words[0] = 1;
        for k in 0..=MOST_POWER {
            set(k, &words, k, true);
            let mut carry = 0u128;
            for word in &mut words {
                let product = u128::from(*word) * 5 + carry;
                (*word, carry) = (product as u64, product >> 64);
            }
        }
        // 10^-k = (2^1024 / 5^k) * 2^(-k - 1024); cut off again and again, that is cut off once.
        let mut words = [0; WORDS];
        words[WORDS - 1] = 1;
        for k in 1..=-LEAST_POWER {
            let mut rest = 0u128;
            for word in words.iter_mut().rev() {
                let divided = rest << 64 | u128::from(*word);
                (*word, rest) = ((divided / 5) as u64, divided % 5);
            }
            set(-k, &words, -k - 1024, false);
        }
        Powers(powers)
    }

    fn get(&self, k: i32) -> Option<&Power> {
        self.0.get(usize::try_from(k - LEAST_POWER).ok()?)
    }
}

/// The first 128 bits of an integer that is not 0, the power of two to multiply them by, and
/// whether one of the further bits is 1.
fn first_bits(words: &[u64; WORDS]) -> (u64, u64, i32, bool) {
    let top = words.iter().rposition(|&word| word != 0).unwrap_or(0);
    let word = |below: usize| top.checked_sub(below).map_or(0, |at| words[at]);
    let shift = words[top].leading_zeros();
    let join = |a: u64, b: u64| if shift == 0 { a } else { a << shift | b >> (64 - shift) };
    let (high, low) = (join(word(0), word(1)), join(word(1), word(2)));
    let behind = if shift == 0 { word(2) } else { word(2) << shift };
    let cut = behind != 0 || words[..top.saturating_sub(2)].iter().any(|&word| word != 0);
    // The bits end at the lowest of three words, less what was shifted in.
    let exponent = 64 * (top as i32 - 1) - shift as i32;
    (high, low, exponent, cut)
}

/// The digits of a positive finite number: an integer of exactly `digits` digits, 1 to [`MOST`], and
/// the power of ten that its first digit stands for. `None` where that is not certain.
#[inline]
pub(super) fn of(value: f64, digits: usize) -> Option<(u64, i32)> {
    if !(value > 0.0 && value.is_finite() && (1..=MOST).contains(&digits)) {
        return None;
    }
    let bits = value.to_bits();
    let (fraction, biased) = (bits & ((1 << 52) - 1), (bits >> 52) as i32);
    let (significand, exponent) =
        if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    let zeros = significand.leading_zeros();
    let significand = significand << zeros;
    let exponent = exponent - zeros as i32;
    // The logarithm of the power of two below; that of the number is the same or one more.
    let mut first = ((exponent + 63) * 1_262_611) >> 22;
    let power = POWERS.get(digits as i32 - 1 - first)?;

    let low = u128::from(significand) * u128::from(power.low);
    let high = u128::from(significand) * u128::from(power.high) + (low >> 64);
    let (top, middle, bottom) = ((high >> 64) as u64, high as u64, low as u64);
    let shift = u32::try_from(-(exponent + power.exponent) - 128).ok()?;
    if !(1..64).contains(&shift) {
        return None;
    }
    let whole = top >> shift;
    let part = top & ((1 << shift) - 1);
    // Whether the bits that the power lost could carry into `part`.
    let doubtful = !power.exact && middle == u64::MAX;
    // A product that is not exact is below the true one.
    let more = middle != 0 || bottom != 0 || !power.exact;

    let limit = TENS[digits];
    let mut rounded = if whole < limit {
        let half = 1 << (shift - 1);
        if doubtful && part == half - 1 {
            return None;
        }
        // Without a branch, which would be mispredicted half of the time.
        let up = (part > half) | ((part == half) & (more | (whole & 1 == 1)));
        whole + u64::from(up)
    } else {
        // There is one digit too many, by which the others are rounded.
        first += 1;
        let (whole, last) = (whole / 10, whole % 10);
        if doubtful && last == 4 && part == (1 << shift) - 1 {
            return None;
        }
        let up = last > 5 || last == 5 && (part != 0 || more || whole & 1 == 1);
        whole + u64::from(up)
    };
    if rounded == limit {
        rounded /= 10;
        first += 1;
    }
    Some((rounded, first))
}

/// Powers of ten.
const TENS: [u64; MOST + 1] = {
    let mut tens = [1; MOST + 1];
    let mut at = 1;
    while at <= MOST {
        tens[at] = tens[at - 1] * 10;
        at += 1;
    }
    tens
};

/// Two digits each of 0 to 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut at = 0;
    while at < 100 {
        pairs[at] = [b'0' + (at / 10) as u8, b'0' + (at % 10) as u8];
        at += 1;
    }
    pairs
};

/// The digits of a number below 10^8, the first in the lowest byte, with zeros in front. All at once: in
/// each step, halves of a word are divided side by side by a multiplication that is exact for them.
#[inline]
fn eight(value: u64) -> u64 {
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let upper = ((fours * 10_486) >> 20) & 0x7F_0000_007F;
    let twos = upper | ((fours - 100 * upper) << 16);
    let upper = ((twos * 103) >> 10) & 0x000F_000F_000F_000F;
    let ones = upper | ((twos - 10 * upper) << 8);
    ones | ZEROS as u64
}

/// The last 24 digits of a number, of which 20 are all that there can be, with zeros in front.
pub(super) fn text(value: u64) -> [u8; 24] {
    const STEP: u64 = 100_000_000;
    let mut out = [b'0'; 24];
    let (upper, lower) = (value / STEP, value % STEP);
    let mut put = |at: usize, value: u64| {
        if let Some(to) = out[at..].first_chunk_mut() {
            *to = eight(value).to_le_bytes();
        }
    };
    put(16, lower);
    if upper > 0 {
        put(8, upper % STEP);
        put(0, upper / STEP);
    }
    out
}

/// Bytes for the text of a number.
pub(super) const ROOM: usize = 40;
/// Digits that are written at once.
const AT_ONCE: usize = 16;

/// Writes a number as `%.{digits}g` and returns how many bytes of `text` count. `None` for more than
/// [`MOST`] digits, for what is not finite, and where the digits are not certain.
#[inline]
pub(super) fn general(text: &mut [u8; ROOM], value: f64, digits: usize) -> Option<usize> {
    // For speed all digits are in a register, and copies have lengths that do not depend on the
    // number. Bytes that are written too far do not count.
    let size = value.abs();
    if !(1..=MOST).contains(&digits) || !size.is_finite() {
        return None;
    }
    let (all, exponent) = if size == 0.0 { (0, 0) } else { of(size, digits)? };
    // The 17th is on its own.
    let (all, last) = if digits > AT_ONCE { (all / 10, all % 10) } else { (all, 0) };
    let last = b'0' + last as u8;
    let all = match digits {
        ..=8 => u128::from(eight(all * TENS[8 - digits])) | ZEROS << 64,
        _ => sixteen(all * TENS[AT_ONCE.saturating_sub(digits)]),
    };
    let zeros = (all ^ ZEROS).leading_zeros() as usize / 8;
    let kept = if last == b'0' { AT_ONCE - zeros } else { MOST };
    // Numbers from 1 on.
    let from = |digit: usize| {
        let mut rest = all.checked_shr(8 * digit as u32).unwrap_or(0);
        if digits > AT_ONCE {
            let place = 8 * AT_ONCE.saturating_sub(digit) as u32;
            rest |= u128::from(last).checked_shl(place).unwrap_or(0);
        }
        rest.to_le_bytes()
    };

    text[0] = b'-';
    let at = usize::from(value.is_sign_negative());
    if exponent >= digits as i32 || exponent < -4 {
        text[at] = all as u8;
        text[at + 1] = b'.';
        *text[at + 2..].first_chunk_mut()? = from(1);
        let end = at + if kept > 1 { kept + 1 } else { 1 };
        let size = exponent.unsigned_abs() as usize;
        let [tens, ones] = PAIRS[size % 100];
        text[end] = b'e';
        text[end + 1] = if exponent < 0 { b'-' } else { b'+' };
        text[end + 2] = b'0' + (size / 100) as u8;
        let end = end + if size < 100 { 2 } else { 3 };
        (text[end], text[end + 1]) = (tens, ones);
        return Some(end + 2);
    }
    if exponent < 0 {
        // A point, and zeros up to the first digit.
        let zeros = exponent.unsigned_abs() as usize;
        *text[at..].first_chunk_mut()? = *b"0.000000";
        *text[at + 1 + zeros..].first_chunk_mut()? = from(0);
        text[at + 1 + zeros + AT_ONCE] = last;
        return Some(at + 1 + zeros + kept);
    }
    let whole = exponent.unsigned_abs() as usize + 1;
    *text[at..].first_chunk_mut()? = from(0);
    text[at + AT_ONCE] = last;
    text[at + whole] = b'.';
    *text[at + whole + 1..].first_chunk_mut()? = from(whole);
    Some(at + if kept > whole { kept + 1 } else { whole })
}

/// The digits of a number below 10^16, as [`eight`] has them.
#[inline]
fn sixteen(value: u64) -> u128 {
    u128::from(eight(value / TENS[8])) | u128::from(eight(value % TENS[8])) << 64
}

/// Writes an integer and returns how many bytes of `text` count. `None` for more than 16 digits.
#[inline]
pub(super) fn integer(text: &mut [u8; ROOM], magnitude: u64, negative: bool) -> Option<usize> {
    if magnitude >= TENS[AT_ONCE] {
        return None;
    }
    let all = sixteen(magnitude);
    // All digits but the last may be leading zeros.
    let zeros = ((all ^ ZEROS).trailing_zeros() as usize / 8).min(AT_ONCE - 1);
    text[0] = b'-';
    let at = usize::from(negative);
    *text[at..].first_chunk_mut()? = (all >> (8 * zeros)).to_le_bytes();
    Some(at + AT_ONCE - zeros)
}

/// Sixteen times the digit 0.
const ZEROS: u128 = u128::from_le_bytes([b'0'; 16]);

/// Appends an integer.
pub(super) fn push_integer(out: &mut Vec<u8>, magnitude: u64, negative: bool) {
    if negative {
        out.push(b'-');
    }
    if magnitude < 10 {
        // The text fits.
        out.push(b'0' + magnitude as u8);
        return;
    }
    let all = text(magnitude);
    let start = all.iter().position(|&digit| digit != b'0').unwrap_or(all.len() - 1);
    out.extend_from_slice(&all[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digits by the formatting of Rust, which is exact and rounds halves to even.
    fn slowly(value: f64, digits: usize) -> (u64, i32) {
        let text = format!("{value:.*e}", digits - 1);
        let (mantissa, exponent) = text.split_once('e').unwrap();
        (mantissa.replace('.', "").parse().unwrap(), exponent.parse().unwrap())
    }

    /// Whether all were certain.
    fn check(value: f64) -> bool {
        let mut all = true;
        if value == 0.0 || !value.is_finite() {
            return all;
        }
        for digits in 1..=MOST {
            match of(value, digits) {
                Some(got) => assert_eq!(got, slowly(value, digits), "{value:e} in {digits} digits"),
                None => all = false,
            }
        }
        all
    }

    #[test]
    fn halves_and_edges() {
        for value in [
            0.5,
            1.5,
            2.5,
            0.125,
            0.375,
            12_345_678.5,
            12_345_677.5,
            9.5,
            99.5,
            0.999_999_95,
            1e15,
            1e16,
            1e17,
            1e22,
            1e23,
            9_007_199_254_740_993.0,
            5e-324,
            1e-323,
            f64::MIN_POSITIVE,
            f64::MAX,
            1.0,
            10.0,
            0.1,
            0.3,
            1e-5,
            999_999.95,
            9_999_999.5,
            4_503_599_627_370_497.5,
            f64::from(f32::MAX),
            f64::from(f32::MIN_POSITIVE),
            9.969_209_968_386_869e36,
        ] {
            check(value);
            check(f64::from_bits(value.to_bits() + 1));
            check(f64::from_bits(value.to_bits() - 1));
        }
        for exponent in -1074..1024 {
            check(2f64.powi(exponent));
        }
        for exponent in -323..309 {
            check(format!("1e{exponent}").parse().unwrap());
            check(format!("9.9999995e{}", exponent.min(307)).parse().unwrap());
        }
    }

    #[test]
    fn any_numbers() {
        // A step that is coprime to the range goes everywhere.
        let mut bits = 0x9E37_79B9_7F4A_7C15u64;
        let (mut certain, mut all) = (0, 0);
        for _ in 0..20_000 {
            bits = bits
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let double = f64::from_bits(bits & i64::MAX as u64);
            let float = f64::from(f32::from_bits((bits >> 33) as u32));
            for value in [double, float, (bits >> 40) as f64 / 8.0, (bits >> 30) as f64 * 0.001] {
                all += 1;
                certain += usize::from(check(value));
            }
        }
        // Not certain are halves of powers of ten that cannot be had exactly, such as 45 / 10.
        assert!(certain * 10 > all * 9, "{certain} of {all}");
    }

    #[test]
    fn text_of_numbers() {
        for (value, digits, expected) in [
            (0.0, 7, "0"),
            (-0.0, 7, "-0"),
            (-1.5, 7, "-1.5"),
            (1e6, 7, "1000000"),
            (1e7, 7, "1e+07"),
            (1234567.5, 7, "1234568"),
            (0.0001234, 7, "0.0001234"),
            (-0.00001234, 7, "-1.234e-05"),
            (0.05, 1, "0.05"),
            (1e100, 15, "1e+100"),
            (-1.7976931348623157e308, 16, "-1.797693134862316e+308"),
            (123456789012345.0, 15, "123456789012345"),
            (1234567890123456.0, 16, "1234567890123456"),
            (12345678901234568.0, 17, "12345678901234568"),
            (0.1, 17, "0.10000000000000001"),
            (-0.00012345678901234567, 17, "-0.00012345678901234567"),
            (1e300, 17, "1.0000000000000001e+300"),
            (0.5, 17, "0.5"),
            (99.5, 2, "1e+02"),
            (100.0, 3, "100"),
        ] {
            let mut text = [0; ROOM];
            let len = general(&mut text, value, digits).unwrap();
            assert_eq!(std::str::from_utf8(&text[..len]).unwrap(), expected);
        }
        let mut text = [0; ROOM];
        assert_eq!(general(&mut text, f64::NAN, 7), None);
        assert_eq!(general(&mut text, 1.0, 18), None);
    }

    #[test]
    fn integers() {
        for value in [0, 1, 9, 10, 99, 100, 12_345_678, 123_456_789, 10u64.pow(16), u64::MAX] {
            for negative in [false, true] {
                let mut out = Vec::new();
                push_integer(&mut out, value, negative);
                let sign = if negative { "-" } else { "" };
                let expected = format!("{sign}{value}");
                assert_eq!(String::from_utf8(out).unwrap(), expected);
                let mut text = [0; ROOM];
                match integer(&mut text, value, negative) {
                    Some(len) => assert_eq!(&text[..len], expected.as_bytes()),
                    None => assert!(value >= 10u64.pow(16)),
                }
            }
        }
    }
}

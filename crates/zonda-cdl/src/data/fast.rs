//! The fast reader of plain numbers: large blocks that are cut at line ends and parsed on all
//! cores.
//!
//! It reads numbers, `_`, `NaN` and the like, commas, blanks and comments of `//`. At anything
//! else, and at errors, it stops, and the general grammar goes on from that place and reports
//! errors. So this reader never reports one itself.

use std::thread;

use zonda_model::ExtType;
use zonda_runtime::worker::{self, Purpose};

use crate::element::{convert, int_of, int64_of, uint64_of};
use crate::fault::CdlFault;
use crate::lexer::number::{self, Lexeme};
use crate::lexer::special_number;
use crate::source::CdlText;
use crate::tuning::{FAST_NUMBER_BYTES, MOST_PARSER_THREADS, PARSED_PART_BYTES};

/// Where the fast reader stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FastEnd {
    /// Byte of the text.
    pub(super) at: u64,
    /// Whether a value is before it, after which a comma or the end has to follow.
    pub(super) behind_value: bool,
}

/// Takes values in native bytes, and their place in the text.
type PutNumbers<'a> = dyn FnMut(&[u8], u64) -> Result<(), CdlFault> + 'a;

/// A parsed part of the text.
#[derive(Debug, Default)]
struct ParsedPart {
    /// Values in native bytes.
    values: Vec<u8>,
    /// Whether it begins with a value (or else with a comma); `None` if it has neither.
    begins_with_value: Option<bool>,
    /// Whether its last token is a value.
    ends_with_value: bool,
    /// The place of something that this reader does not take.
    stop: Option<usize>,
}

/// Reads numbers of a type from a part of the text, and gives them to `put` with their place.
/// `fill` are the bytes for `_`.
///
/// # Errors
/// Errors of reading the text and of `put`.
pub(super) fn numbers(
    source: &CdlText,
    (begin, end): (u64, u64),
    ext: ExtType,
    fill: &[u8],
    put: &mut PutNumbers<'_>,
) -> Result<FastEnd, CdlFault> {
    let n_threads = zonda_runtime::threads().min(MOST_PARSER_THREADS);
    let mut block = Vec::new();
    let mut stop = FastEnd { at: begin, behind_value: false };
    while stop.at < end {
        let left = usize::try_from(end - stop.at).unwrap_or(usize::MAX);
        let want = left.min(PARSED_PART_BYTES * n_threads);
        block.resize(want, 0);
        let got = source.read_at(stop.at, &mut block)?;
        let text = &block[..got];
        let cut = if got == left { got } else { cut_before(text, got) };
        if cut == 0 {
            return Ok(stop);
        }
        let text = &text[..cut];
        let mut from = 0;
        for (text, part) in parts(text, n_threads, ext, fill) {
            let fits = part.begins_with_value.is_none_or(|value| value != stop.behind_value);
            if !fits {
                return Ok(stop);
            }
            put(&part.values, stop.at)?;
            if part.begins_with_value.is_some() {
                stop.behind_value = part.ends_with_value;
            }
            if let Some(at) = part.stop {
                stop.at += at as u64;
                return Ok(stop);
            }
            from += text;
            stop.at += text as u64;
        }
        if from != cut {
            // The parts are not the whole text: the general grammar reads the remainder.
            return Ok(stop);
        }
    }
    Ok(stop)
}

/// The last place up to `end` where a text can be cut: after a line end, or without one after a
/// comma, if there is no comment. 0 if there is no such place.
fn cut_before(text: &[u8], end: usize) -> usize {
    if let Some(line) = text[..end].iter().rposition(|byte| *byte == b'\n') {
        return line + 1;
    }
    if text.contains(&b'/') {
        return 0;
    }
    text[..end].iter().rposition(|byte| *byte == b',').map_or(0, |comma| comma + 1)
}

/// Parses a text in parts, and returns these with their lengths.
fn parts(text: &[u8], n_threads: usize, ext: ExtType, fill: &[u8]) -> Vec<(usize, ParsedPart)> {
    let share = text.len().div_ceil(n_threads).max(PARSED_PART_BYTES / 8);
    let mut pieces = Vec::with_capacity(n_threads);
    let mut rest = text;
    while rest.len() > share {
        match cut_before(rest, share) {
            0 => break,
            cut => {
                let (piece, behind) = rest.split_at(cut);
                pieces.push(piece);
                rest = behind;
            }
        }
    }
    pieces.push(rest);
    let parse = |piece: &[u8]| (piece.len(), parse(piece, ext, fill));
    let Some((first, others)) = pieces.split_first() else { return Vec::new() };
    thread::scope(|scope| {
        let others: Vec<_> = others
            .iter()
            .map(|piece| {
                let name = String::from("zonda-share");
                worker::spawn_scoped(scope, name, Purpose::Share, || parse(piece))
                    .map_err(|_| *piece)
            })
            .collect();
        let mut done = vec![parse(first)];
        for thread in others {
            done.push(match thread {
                Ok(thread) => match thread.join() {
                    Ok(part) => part,
                    Err(panic) => std::panic::resume_unwind(panic),
                },
                // The system gave no thread.
                Err(piece) => parse(piece),
            });
        }
        done
    })
}

/// A type of numbers.
trait NumberType: Copy {
    type Bytes: AsRef<[u8]>;
    fn of_int(value: i64) -> Self;
    fn of_double(value: f64) -> Self;
    fn bytes(self) -> Self::Bytes;
}

macro_rules! cells {
    ($($cell:ty: $of_double:expr;)*) => {$(
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
        impl NumberType for $cell {
            type Bytes = [u8; size_of::<$cell>()];

            fn of_int(value: i64) -> $cell {
                value as $cell
            }

            fn of_double(value: f64) -> $cell {
                let of_double: fn(f64) -> $cell = $of_double;
                of_double(value)
            }

            fn bytes(self) -> Self::Bytes {
                self.to_ne_bytes()
            }
        }
    )*};
}

cells! {
    i8: |value| int_of(value) as i8;
    u8: |value| int_of(value) as u8;
    i16: |value| int_of(value) as i16;
    u16: |value| int_of(value) as u16;
    i32: |value| int_of(value) as i32;
    u32: |value| int64_of(value) as u32;
    i64: int64_of;
    u64: uint64_of;
    f32: |value| value as f32;
    f64: |value| value;
}

fn parse(text: &[u8], ext: ExtType, fill: &[u8]) -> ParsedPart {
    match ext {
        ExtType::Byte => parse_cells::<i8>(text, ext, fill),
        ExtType::Char | ExtType::UByte => parse_cells::<u8>(text, ext, fill),
        ExtType::Short => parse_cells::<i16>(text, ext, fill),
        ExtType::UShort => parse_cells::<u16>(text, ext, fill),
        ExtType::Int => parse_cells::<i32>(text, ext, fill),
        ExtType::UInt => parse_cells::<u32>(text, ext, fill),
        ExtType::Int64 => parse_cells::<i64>(text, ext, fill),
        ExtType::UInt64 => parse_cells::<u64>(text, ext, fill),
        ExtType::Float => parse_cells::<f32>(text, ext, fill),
        ExtType::Double => parse_cells::<f64>(text, ext, fill),
    }
}

fn parse_cells<C: NumberType>(text: &[u8], ext: ExtType, fill: &[u8]) -> ParsedPart {
    let mut part = ParsedPart::default();
    part.values.reserve(text.len() / 4);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b' ' | b'\n' | b'\t' | b'\r' | 0x0c => at += 1,
            b',' => {
                if part.begins_with_value.is_some() && !part.ends_with_value {
                    part.stop = Some(at);
                    break;
                }
                part.begins_with_value.get_or_insert(false);
                part.ends_with_value = false;
                at += 1;
            }
            b'/' if text.get(at + 1) == Some(&b'/') => {
                let line = text[at..].iter().position(|byte| *byte == b'\n');
                at = line.map_or(text.len(), |line| at + line);
            }
            _ => {
                let len = match part.ends_with_value {
                    true => None,
                    false => value::<C>(&text[at..], ext, fill, &mut part.values),
                };
                let Some(len) = len else {
                    part.stop = Some(at);
                    break;
                };
                part.begins_with_value.get_or_insert(true);
                part.ends_with_value = true;
                at += len;
            }
        }
    }
    part
}

/// Whether a number ends before the byte.
fn ends_number(byte: Option<&u8>) -> bool {
    matches!(byte, None | Some(b',' | b' ' | b'\n' | b'\t' | b'\r' | b'/'))
}

/// Appends the value at the beginning of a text, and returns its length in the text; `None` if this
/// reader does not take it.
fn value<C: NumberType>(
    text: &[u8],
    ext: ExtType,
    fill: &[u8],
    out: &mut Vec<u8>,
) -> Option<usize> {
    if let Some((cell, len)) = quick::<C>(text) {
        out.extend_from_slice(cell.bytes().as_ref());
        return Some(len);
    }
    let first = *text.first()?;
    if first.is_ascii_digit() || (matches!(first, b'+' | b'-' | b'.') && !begins_word(text.get(1)))
    {
        let text = &text[..text.len().min(FAST_NUMBER_BYTES)];
        return match number::lex(text) {
            (Lexeme::Number(number), len)
                if ends_number(text.get(len)) && len < FAST_NUMBER_BYTES =>
            {
                out.extend_from_slice(&convert(number, ext)[..ext.size()]);
                Some(len)
            }
            _ => None,
        };
    }
    let len = text.iter().take_while(|byte| !ends_number(Some(byte))).count();
    match &text[..len] {
        b"_" => out.extend_from_slice(fill),
        [b'-', word @ ..] => {
            let crate::constant::NumberConstant::Double(value) = special_number(word)? else {
                return None;
            };
            out.extend_from_slice(C::of_double(-value).bytes().as_ref());
        }
        word => out.extend_from_slice(&convert(special_number(word)?, ext)[..ext.size()]),
    }
    Some(len)
}

fn begins_word(byte: Option<&u8>) -> bool {
    byte.is_some_and(u8::is_ascii_alphabetic)
}

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Parses the most common numbers, which have few digits and no suffix. Digits of at most 53 bits
/// and an exact power of ten give the correctly rounded result, because their product or quotient
/// is rounded once.
#[inline]
fn quick<C: NumberType>(text: &[u8]) -> Option<(C, usize)> {
    let negative = text.first() == Some(&b'-');
    let begin = usize::from(negative);
    let mut at = begin;
    let mut digits = 0u64;
    while let Some(digit) = digit(text, at) {
        digits = digits.wrapping_mul(10).wrapping_add(digit);
        at += 1;
    }
    let whole = at - begin;
    if ends_number(text.get(at)) {
        // A leading 0 is octal.
        if whole == 0 || whole > 18 || (whole > 1 && text[begin] == b'0') {
            return None;
        }
        let value = digits.cast_signed();
        return Some((C::of_int(if negative { -value } else { value }), at));
    }
    let mut exponent = 0i32;
    let mut n_digits = whole;
    if text.get(at) == Some(&b'.') {
        let point = at;
        at += 1;
        while let Some(digit) = digit(text, at) {
            digits = digits.wrapping_mul(10).wrapping_add(digit);
            at += 1;
        }
        let places = at - point - 1;
        n_digits += places;
        if places > 18 {
            return None;
        }
        exponent = -(places as i32);
    }
    // Up to 18 digits do not wrap.
    if n_digits == 0 || n_digits > 18 || digits >= 1 << 53 {
        return None;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let (written, end) = quick_exponent(text, at + 1)?;
        (exponent, at) = (exponent + written, end);
    }
    if !ends_number(text.get(at)) {
        return None;
    }
    let power = *POWERS.get(exponent.unsigned_abs() as usize)?;
    #[allow(clippy::cast_precision_loss)]
    let value = digits as f64;
    let value = if exponent < 0 { value / power } else { value * power };
    Some((C::of_double(if negative { -value } else { value }), at))
}

/// The exponent behind an `e`, of at most four digits, and where it ends.
#[inline]
fn quick_exponent(text: &[u8], from: usize) -> Option<(i32, usize)> {
    let sign = text.get(from).filter(|byte| matches!(byte, b'-' | b'+'));
    let begin = from + usize::from(sign.is_some());
    let (mut value, mut at) = (0i32, begin);
    while let Some(digit) = digit(text, at).filter(|_| at < begin + 4) {
        value = value * 10 + digit as i32;
        at += 1;
    }
    let value = if sign == Some(&b'-') { -value } else { value };
    (at > begin).then_some((value, at))
}

#[inline]
fn digit(text: &[u8], at: usize) -> Option<u64> {
    let digit = text.get(at)?.wrapping_sub(b'0');
    (digit < 10).then_some(digit.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn doubles(text: &str) -> (Vec<f64>, Option<usize>) {
        let part = parse(text.as_bytes(), ExtType::Double, &(-9.0f64).to_ne_bytes());
        let values = part.values.as_chunks::<8>().0.iter().map(|bytes| f64::from_ne_bytes(*bytes));
        (values.collect(), part.stop)
    }

    fn ints(text: &str) -> (Vec<i16>, Option<usize>) {
        let part = parse(text.as_bytes(), ExtType::Short, &(-9i16).to_ne_bytes());
        let values = part.values.as_chunks::<2>().0.iter().map(|bytes| i16::from_ne_bytes(*bytes));
        (values.collect(), part.stop)
    }

    #[test]
    fn numbers_and_what_is_none() {
        assert_eq!(
            doubles("1, -2.5 ,1e3,\n .5,5., 1E-2"),
            (vec![1., -2.5, 1e3, 0.5, 5., 0.01], None)
        );
        assert_eq!(
            doubles("_, Infinity, -Infinity"),
            (vec![-9., f64::INFINITY, f64::NEG_INFINITY], None)
        );
        assert!(doubles("NaN,NaNf").0.iter().all(|value| value.is_nan()));
        assert_eq!(doubles("1, // a, comment\n2"), (vec![1., 2.], None));
        assert_eq!(doubles("010, 1.5f, 0x10"), (vec![8., 1.5], Some(11)));
        assert_eq!(doubles("1 2"), (vec![1.], Some(2)));
        assert_eq!(doubles("1,,2"), (vec![1.], Some(2)));
        assert_eq!(doubles("1,\"a\""), (vec![1.], Some(2)));
        assert_eq!(doubles("1,x"), (vec![1.], Some(2)));
        assert_eq!(doubles("1,-"), (vec![1.], Some(2)));
        assert_eq!(doubles("1.5.5"), (vec![], Some(0)));
        assert_eq!(
            ints("1,-1,70000,255b,2.9,-2.9,_,3e9"),
            (vec![1, -1, 4464, -1, 2, -2, -9, 0], None)
        );
        let large = f64::from_bits(0x4340_0000_0000_0001);
        assert_eq!(doubles("9007199254740994").0, [large]);
        assert_eq!(
            doubles("123456789012345678901234567890.").0,
            [123_456_789_012_345_678_901_234_567_890.]
        );
    }

    #[test]
    fn parts_join() {
        let mut text = String::new();
        for n in 0..400_000 {
            text += &format!("{n}{}", if n % 7 == 0 { "\n,\n" } else { ", " });
        }
        text += "400000";
        let source = CdlText::from_bytes(text.clone().into_bytes()).unwrap();
        let mut values = Vec::new();
        let mut put = |bytes: &[u8], _: u64| {
            values.extend_from_slice(bytes);
            Ok(())
        };
        let all = (0, source.len());
        let stop = numbers(&source, all, ExtType::Int, &[0; 4], &mut put).unwrap();
        assert_eq!(stop, FastEnd { at: source.len(), behind_value: true });
        let expected: Vec<u8> = (0..=400_000i32).flat_map(i32::to_ne_bytes).collect();
        assert!(values == expected);

        // Two commas on two lines, far behind.
        let bad = text.replace("399001,", "399001,\n,");
        let source = CdlText::from_bytes(bad.clone().into_bytes()).unwrap();
        let all = (0, source.len());
        let stop = numbers(&source, all, ExtType::Int, &[0; 4], &mut |_, _| Ok(())).unwrap();
        let at = usize::try_from(stop.at).unwrap();
        assert!(!stop.behind_value && bad[at..].trim_start().starts_with(','), "{stop:?}");
    }

    #[test]
    fn one_long_line() {
        let text = "1.5,".repeat(3_000_000) + "2";
        let source = CdlText::from_bytes(text.into_bytes()).unwrap();
        let mut n = 0;
        let mut put = |bytes: &[u8], _: u64| {
            n += bytes.len() / 4;
            Ok(())
        };
        let all = (0, source.len());
        let stop = numbers(&source, all, ExtType::Float, &[0; 4], &mut put).unwrap();
        assert_eq!((stop.at, n), (source.len(), 3_000_001));
    }

    proptest! {
        #[test]
        fn exact_as_the_standard_library(value in any::<f64>(), digits in 0usize..17) {
            for text in [format!("{value:?}"), format!("{value:.digits$e}"), format!("{:.digits$}", value % 1e6)] {
                let expected: f64 = text.parse().unwrap();
                let text = text.replace("inf", "Infinity");
                let (values, stop) = doubles(&text);
                prop_assert_eq!(stop, None);
                let same = values[0].to_bits() == expected.to_bits() || (values[0].is_nan() && expected.is_nan());
                // An integer has no negative zero.
                prop_assert!(same || (expected == 0.0 && !text.contains(['.', 'e'])), "{}", text);
            }
        }

        #[test]
        fn any_text(text in "[-+0-9.eEfbsl_,/ \\n\\tNaInfity\"x]{0,40}") {
            for ext in ExtType::ALL {
                let part = parse(text.as_bytes(), ext, &[0; 8][..ext.size()]);
                prop_assert_eq!(part.values.len() % ext.size(), 0);
                prop_assert!(part.stop.is_none_or(|stop| stop < text.len()));
            }
        }
    }
}

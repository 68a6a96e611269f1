//! Values as netCDF-C 4.10.1 wrote them: `vectors.txt` has, for each type, values (mode 0), and what
//! each mode made of them with so many digits or bits.

use super::*;

fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    text.as_bytes().as_chunks::<2>().0.iter().map(|[a, b]| digit(*a) * 16 + digit(*b)).collect()
}

#[test]
fn the_same_bits_as_the_reference() {
    if ByteOrder::NATIVE == ByteOrder::Big {
        return;
    }
    let mut values = Vec::new();
    let mut n_checked = 0;
    for line in include_str!("vectors.txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [ty, mode, kept, bytes] = words[..] else { panic!("{line}") };
        let number = mode.parse::<i32>().unwrap();
        if number == 0 {
            values = unhex(bytes);
            continue;
        }
        let mode = QuantizeMode::ALL.into_iter().find(|mode| mode.number() == number).unwrap();
        // BitGroom was tried without a fill value of its own.
        let own = mode != QuantizeMode::BitGroom;
        let fill = if own { -999.0 } else { f64::from_bits(0x479E_0000_0000_0000) };
        let how = Quantize { mode, kept: kept.parse().unwrap() };
        let (mut got, expected) = (values.clone(), unhex(bytes));
        let size = if ty == "f4" { 4 } else { 8 };
        match size {
            4 => groom::<4, u32>(how, &mut got, fill),
            _ => groom::<8, u64>(how, &mut got, fill),
        }
        for (i, (got, expected)) in got.chunks(size).zip(expected.chunks(size)).enumerate() {
            let before = &values[i * size..][..size];
            let is_infinite = match size {
                4 => f32::from_ne_bytes(before.try_into().unwrap()).is_infinite(),
                _ => f64::from_ne_bytes(before.try_into().unwrap()).is_infinite(),
            };
            // Of infinities the reference makes zeros there.
            let lost = is_infinite && mode == QuantizeMode::GranularBitRound;
            let expected = if lost { before } else { expected };
            assert_eq!(got, expected, "{ty} {how:?}, value {i}: {before:?}");
            n_checked += 1;
        }
    }
    assert!(n_checked > 2000, "{n_checked}");
}

#[test]
fn mantissa_and_exponent() {
    for (value, expected) in [
        (1.0, (0.5, 1)),
        (-0.75, (0.75, 0)),
        (8.0, (0.5, 4)),
        (f64::from_bits(1), (0.5, -1073)),
        (f64::MAX, (1.0 - f64::EPSILON / 2.0, 1024)),
    ] {
        assert_eq!(parts(value), expected, "{value}");
    }
}

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

#[test]
fn steps_are_where_each_value_says() {
    let mut state = 9u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.rotate_right(11)
    };
    for digits in 1..=15u8 {
        let digits = f64::from(digits);
        let mut needed = Needed::new(digits, QUANTIZE_BY_STEPS_VALUES);
        for i in 0..40_000 {
            // Near 1, where data are, and anywhere; ends of binades, and decimal powers.
            let exponent = if i % 2 == 0 { 1000 + random() % 50 } else { random() % 0x7ff };
            let mantissa = match i % 5 {
                0 => random() % 200,
                1 => FRACTION - random() % 200,
                _ => random() & FRACTION,
            };
            let value = f64::from_bits(exponent << 52 | mantissa);
            assert_eq!(needed.bits(value), needed_bits(value, digits), "{value:e} {digits}");
        }
        for power in -300..300 {
            let ten = 10f64.powi(power).to_bits();
            for bits in ten - 100..ten + 100 {
                let value = f64::from_bits(bits);
                assert_eq!(needed.bits(-value), needed_bits(value, digits), "{value:e} {digits}");
            }
        }
    }
}

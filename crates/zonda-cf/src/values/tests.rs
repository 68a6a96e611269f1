use std::convert::Infallible;

use super::*;

pub(super) fn ints(ty: ExtType, numbers: &[i128]) -> AttributeValue {
    AttributeValue::Numbers(ty, numbers.iter().copied().map(CfNumber::Int).collect())
}

pub(super) fn reals(ty: ExtType, numbers: &[f64]) -> AttributeValue {
    AttributeValue::Numbers(ty, numbers.iter().copied().map(CfNumber::Real).collect())
}

pub(super) fn text(text: &str) -> AttributeValue {
    AttributeValue::Text(text.into())
}

fn decoder(ty: ExtType, given: &[(&str, AttributeValue)]) -> Decoder {
    let attribute = |name: &'static str| {
        let found = given.iter().find(|(known, _)| *known == name);
        Ok::<_, Infallible>(found.map_or(AttributeValue::Absent, |(_, value)| value.clone()))
    };
    let Ok(decoder) = Decoder::of(ty, attribute);
    decoder
}

/// Values of stored numbers; what is missing is `None`.
fn values(decoder: &Decoder, stored: &[i128]) -> Vec<Option<f64>> {
    let values = stored.iter().map(|number| decoder.value(CfNumber::Int(*number)));
    values.map(|value| Some(value).filter(|value| !value.is_nan())).collect()
}

fn real(decoder: &Decoder, stored: f64) -> Option<f64> {
    Some(decoder.value(CfNumber::Real(stored))).filter(|value| !value.is_nan())
}

#[test]
fn unsigned_shorts() {
    let plain = decoder(ExtType::Short, &[("_Unsigned", text("true"))]);
    let stored = [0, 1000, 30000, -20000];
    assert_eq!(values(&plain, &stored), [0.0, 1000.0, 30000.0, 45536.0].map(Some));
    for off in [text("false"), text("yes"), AttributeValue::Absent] {
        let signed = decoder(ExtType::Short, &[("_Unsigned", off)]);
        assert_eq!(values(&signed, &stored), [0.0, 1000.0, 30000.0, -20000.0].map(Some));
    }
    let signed = decoder(ExtType::UByte, &[("_Unsigned", text("false"))]);
    assert_eq!(values(&signed, &[0, 127, 128, 255]), [0.0, 127.0, -128.0, -1.0].map(Some));
}

#[test]
fn every_width_of_every_sign() {
    let signed = [ExtType::Byte, ExtType::Short, ExtType::Int, ExtType::Int64];
    let unsigned = [ExtType::UByte, ExtType::UShort, ExtType::UInt, ExtType::UInt64];
    for (signed, unsigned) in signed.into_iter().zip(unsigned) {
        let bits = 8 * signed.size();
        let (highest, half) = ((1i128 << bits) - 1, 1i128 << (bits - 1));
        // The fill value by its bits or by the number they stand for, in any type that holds it.
        for (fill, ty) in
            [(-1, signed), (highest, unsigned), (-1, ExtType::Int64), (highest, ExtType::UInt64)]
        {
            let given = [("_Unsigned", text("true")), ("_FillValue", ints(ty, &[fill]))];
            let decoder = decoder(signed, &given);
            let expected = [None, Some(half as f64), Some(0.0)];
            assert_eq!(values(&decoder, &[-1, -half, 0]), expected, "{signed:?} {fill} {ty:?}");
        }
        let given = [("_Unsigned", text("false")), ("_FillValue", ints(unsigned, &[highest]))];
        let decoder = decoder(unsigned, &given);
        let expected = [None, Some(-(half as f64)), Some(0.0)];
        assert_eq!(values(&decoder, &[highest, half, 0]), expected, "{unsigned:?}");
    }
}

#[test]
fn fill_values_by_default() {
    let short = decoder(ExtType::Short, &[]);
    assert_eq!(values(&short, &[-32767, -32768]), [None, Some(-32768.0)]);
    // What was never written has the same bits where numbers are meant unsigned.
    let unsigned = decoder(ExtType::Short, &[("_Unsigned", text("true"))]);
    assert_eq!(values(&unsigned, &[-32767, -32766]), [None, Some(32770.0)]);
    let byte = decoder(ExtType::Byte, &[]);
    assert_eq!(values(&byte, &[-127, -128]), [Some(-127.0), Some(-128.0)]);
    let long = decoder(ExtType::UInt64, &[]);
    assert_eq!(values(&long, &[18_446_744_073_709_551_614, 18_446_744_073_709_551_613])[0], None);
    assert!(values(&long, &[18_446_744_073_709_551_613])[0].is_some(), "one beside it is a value");
    let given = decoder(ExtType::Short, &[("_FillValue", ints(ExtType::Short, &[0]))]);
    assert_eq!(values(&given, &[0, -32767]), [None, Some(-32767.0)]);
    let float = decoder(ExtType::Float, &[]);
    assert_eq!(real(&float, f64::from(9.969_21e36f32)), None);
}

#[test]
fn missing_values_of_other_types() {
    let list = [("missing_value", reals(ExtType::Double, &[-9.0, 7.0, f64::NAN, 1e300]))];
    assert_eq!(values(&decoder(ExtType::Short, &list), &[-9, 7, 8]), [None, None, Some(8.0)]);
    let huge = decoder(ExtType::Float, &[("missing_value", reals(ExtType::Double, &[1e20]))]);
    assert_eq!(real(&huge, f64::from(1e20f32)), None);
    let nan = decoder(ExtType::Double, &[("_FillValue", reals(ExtType::Double, &[f64::NAN]))]);
    assert_eq!((real(&nan, f64::NAN), real(&nan, 1.0)), (None, Some(1.0)));
    let near =
        decoder(ExtType::Int64, &[("missing_value", ints(ExtType::Int64, &[(1 << 53) + 1]))]);
    assert_eq!(values(&near, &[1 << 53, (1 << 53) + 1]), [Some(9_007_199_254_740_992.0), None]);
}

#[test]
fn ranges() {
    let packed = [
        ("scale_factor", reals(ExtType::Float, &[0.5])),
        ("valid_range", ints(ExtType::Short, &[-10, 10])),
    ];
    let decoder_of = |ty, given: &[(&str, AttributeValue)]| decoder(ty, given);
    assert_eq!(
        values(&decoder_of(ExtType::Short, &packed), &[-11, -10, 10, 11]),
        [None, Some(-5.0), Some(5.0), None]
    );
    // Of the type of the scale: a range of values.
    let values_range = [packed[0].clone(), ("valid_range", reals(ExtType::Float, &[-5.0, 5.0]))];
    assert_eq!(
        values(&decoder_of(ExtType::Short, &values_range), &[-11, -10, 10, 11]),
        [None, Some(-5.0), Some(5.0), None]
    );
    // Wider than needed, but not of that type: of stored numbers.
    let wide = [packed[0].clone(), ("valid_max", reals(ExtType::Double, &[5.0]))];
    assert_eq!(values(&decoder_of(ExtType::Short, &wide), &[5, 6]), [Some(2.5), None]);
    // By bits and by the number they stand for.
    for most in [ints(ExtType::Byte, &[-6]), ints(ExtType::Short, &[250])] {
        let given = [("_Unsigned", text("true")), ("valid_max", most)];
        assert_eq!(values(&decoder_of(ExtType::Byte, &given), &[-6, -5]), [Some(250.0), None]);
    }
    let float = decoder(ExtType::Float, &[("valid_max", reals(ExtType::Double, &[0.1]))]);
    assert_eq!(real(&float, f64::from(0.1f32)), Some(f64::from(0.1f32)));
    let nan = decoder(ExtType::Double, &[("valid_min", reals(ExtType::Double, &[f64::NAN]))]);
    assert_eq!(real(&nan, -1e300), Some(-1e300));
}

#[test]
fn scale_and_offset() {
    let both = |ty, scale, offset| {
        [("scale_factor", reals(ty, &[scale])), ("add_offset", reals(ty, &[offset]))]
    };
    assert_eq!(
        values(&decoder(ExtType::Short, &both(ExtType::Double, 0.5, 10.0)), &[4]),
        [Some(12.0)]
    );
    assert_eq!(
        values(&decoder(ExtType::Short, &both(ExtType::Double, 0.0, 10.0)), &[4]),
        [Some(10.0)]
    );
    assert_eq!(
        values(&decoder(ExtType::Short, &both(ExtType::Double, f64::INFINITY, 0.0)), &[4]),
        [Some(f64::INFINITY)]
    );
    // Single precision where that is what packing says.
    let single = decoder(ExtType::Short, &both(ExtType::Float, f64::from(0.1f32), 0.0));
    assert_eq!(values(&single, &[3]), [Some(f64::from(0.3f32))]);
    let wide = decoder(ExtType::Int, &both(ExtType::Float, 1.0, 0.0));
    assert_eq!(values(&wide, &[16_777_217]), [Some(16_777_217.0)]);
}

#[test]
fn what_has_no_meaning_is_said() {
    let given = [
        ("scale_factor", text("a half")),
        ("add_offset", reals(ExtType::Double, &[1.0, 2.0])),
        ("valid_range", ints(ExtType::Short, &[1])),
        ("missing_value", text("none")),
        ("_Unsigned", ints(ExtType::Int, &[1])),
        ("_FillValue", AttributeValue::Other),
    ];
    let decoder = decoder(ExtType::Short, &given);
    let mut said: Vec<&str> = decoder.unused().iter().map(|unused| unused.attribute).collect();
    said.sort_unstable();
    let mut all = given.map(|(name, _)| name);
    all.sort_unstable();
    assert_eq!(said, all);
    assert_eq!(values(&decoder, &[-99, -32767]), [Some(-99.0), None]);
    let text = decoder.unused().iter().map(Unused::to_string).next().unwrap();
    assert_eq!(text, "attribute _Unsigned is not used: it is not \"true\" or \"false\"");
}

/// As in fnoc1.nc, which the tests of netCDF and of OPeNDAP have had since 1990.
#[test]
fn numbers_written_as_text_count() {
    let given = [("scale_factor", text("0.005")), ("missing_value", text("-32767"))];
    let wind = decoder(ExtType::Short, &given);
    assert_eq!(values(&wind, &[-1728, 2000, -32767]), [Some(-8.64), Some(10.0), None]);
    assert!(wind.unused().is_empty());
    let given = [
        ("scale_factor", text("2")),
        ("add_offset", text(" 1e1\0")),
        ("valid_range", text("0, 9")),
    ];
    let bounded = decoder(ExtType::Short, &given);
    assert_eq!(values(&bounded, &[-1, 0, 9, 10]), [None, Some(10.0), Some(28.0), None]);
    for odd in ["", " ", "0.5 m", "half", "nan", "inf", "1,2", "0x10"] {
        let odd = decoder(ExtType::Short, &[("scale_factor", text(odd))]);
        assert_eq!(values(&odd, &[3]), [Some(3.0)]);
        assert_eq!(odd.unused().len(), 1);
    }
}

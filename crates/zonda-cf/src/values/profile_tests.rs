//! The profiles beside each other. `python/tests/decoding` compares them with netCDF4-python and xarray themselves.

use std::convert::Infallible;

use super::tests::{ints, reals, text};
use super::*;

fn rules(profile: Profile, ty: ExtType, given: &[(&str, AttributeValue)]) -> ValueRules {
    let attribute = |name: &'static str| {
        let found = given.iter().find(|(known, _)| *known == name);
        Ok::<_, Infallible>(found.map_or(AttributeValue::Absent, |(_, value)| value.clone()))
    };
    let Ok(rules) = ValueRules::of(profile, ty, attribute);
    rules
}

const NEW: NetCdf4 = NetCdf4 { scales: true, is_filled: true, promotion: Promotion::ByType };
const OLD: NetCdf4 = NetCdf4 { promotion: Promotion::ByValue, ..NEW };

fn netcdf4(ty: ExtType, given: &[(&str, AttributeValue)]) -> ValueRules {
    rules(Profile::NetCdf4Python(NEW), ty, given)
}

fn xarray(ty: ExtType, given: &[(&str, AttributeValue)]) -> ValueRules {
    rules(Profile::Xarray, ty, given)
}

fn unused(rules: &ValueRules) -> Vec<&str> {
    rules.unused.iter().map(|unused| unused.attribute).collect()
}

#[test]
fn valid_ranges_count_for_all_but_xarray() {
    let given = [("valid_range", ints(ExtType::Short, &[-5, 5]))];
    let range = Range { least: vec![CfNumber::Int(-5)], most: vec![CfNumber::Int(5)] };
    assert_eq!(netcdf4(ExtType::Short, &given).stored_range, range);
    assert_eq!(rules(Profile::View, ExtType::Short, &given).stored_range, range);
    assert_eq!(xarray(ExtType::Short, &given), ValueRules::none(ExtType::Short));
    // netCDF4-python never takes a range for one of scaled values.
    let scaled = [
        ("valid_max", reals(ExtType::Double, &[5.0])),
        ("scale_factor", reals(ExtType::Double, &[0.5])),
    ];
    assert_eq!(netcdf4(ExtType::Short, &scaled).stored_range.most, [CfNumber::Int(5)]);
    let view = rules(Profile::View, ExtType::Short, &scaled);
    assert_eq!((view.stored_range.most.len(), view.value_range.most.len()), (0, 1));
    // Two numbers are a range; they win over the single bounds.
    let both = [
        ("valid_min", ints(ExtType::Short, &[0])),
        ("valid_range", ints(ExtType::Short, &[-5, 5])),
    ];
    assert_eq!(netcdf4(ExtType::Short, &both).stored_range, range);
    assert_eq!(netcdf4(ExtType::Char, &both).stored_range, Range::default());
}

#[test]
fn netcdf4_counts_what_keeps_its_value() {
    let fits = |ty, value: AttributeValue| {
        let found = netcdf4(ty, &[("missing_value", value)]);
        let is_used = !found.missing.is_empty();
        assert_eq!(unused(&found), if is_used { vec![] } else { vec!["missing_value"] });
        is_used
    };
    assert!(fits(ExtType::Short, ints(ExtType::Int, &[-32768])));
    assert!(!fits(ExtType::Short, ints(ExtType::Int, &[32768])));
    assert!(
        !fits(ExtType::Short, ints(ExtType::Int, &[1, 32768])),
        "one that does not fit spoils all"
    );
    assert!(fits(ExtType::Short, reals(ExtType::Double, &[-0.0])));
    assert!(!fits(ExtType::Short, reals(ExtType::Double, &[0.5])));
    assert!(!fits(ExtType::Short, reals(ExtType::Double, &[f64::NAN])));
    assert!(fits(ExtType::UInt64, reals(ExtType::Double, &[9_223_372_036_854_775_808.0])));
    assert!(!fits(ExtType::Int64, reals(ExtType::Double, &[9_223_372_036_854_775_808.0])));
    assert!(!fits(ExtType::Float, reals(ExtType::Double, &[0.1])));
    assert!(!fits(ExtType::Float, reals(ExtType::Double, &[1e300])));
    assert!(fits(ExtType::Float, reals(ExtType::Double, &[f64::NAN])));
    assert!(!fits(ExtType::Float, ints(ExtType::Int, &[(1 << 24) + 1])));
    // The two are compared as doubles, which hold neither.
    assert!(fits(ExtType::Float, ints(ExtType::Int64, &[(1 << 53) + 1])));
    assert!(fits(ExtType::Double, ints(ExtType::Int64, &[(1 << 53) + 1])));
    assert!(!fits(ExtType::Short, text("5")));
    assert_eq!(netcdf4(ExtType::Short, &[("missing_value", text("5"))]).left, ["missing_value"]);
    // Characters: bytes of one alone.
    let fill = |value| netcdf4(ExtType::Char, &[("_FillValue", value)]).fill.unwrap();
    assert_eq!(
        (fill(text("x\0")).numbers, fill(text("x")).is_default),
        (vec![CfNumber::Int(120)], false)
    );
    assert!(fill(text("xy")).is_default && fill(ints(ExtType::Short, &[1])).is_default);
    assert!(!fits(ExtType::Char, text("x")));
}

#[test]
fn netcdf4_default_fill_values() {
    let default = |ty, given: &[_]| netcdf4(ty, given).fill.unwrap();
    for ty in ExtType::ALL {
        let fill = default(ty, &[]);
        assert!(fill.is_default && fill.counts && fill.ty == ty, "{ty:?}");
    }
    let unfilled = Profile::NetCdf4Python(NetCdf4 { is_filled: false, ..NEW });
    assert!(!rules(unfilled, ExtType::Byte, &[]).fill.unwrap().counts);
    assert!(rules(unfilled, ExtType::Short, &[]).fill.unwrap().counts);
    // As it is, it equals no unsigned number.
    let unsigned = [("_Unsigned", text("true"))];
    let fill = default(ExtType::Short, &unsigned);
    assert_eq!(
        (fill.counts, fill.ty, fill.numbers),
        (false, ExtType::Short, vec![CfNumber::Int(-32767)])
    );
}

#[test]
fn netcdf4_unsigned() {
    let given =
        |word: &str| [("_Unsigned", text(word)), ("_FillValue", ints(ExtType::Byte, &[-1]))];
    for (word, taken_as) in [
        ("true", ExtType::UByte),
        ("True\0", ExtType::UByte),
        ("TRUE", ExtType::Byte),
        (" true", ExtType::Byte),
        ("false", ExtType::Byte),
    ] {
        let found = netcdf4(ExtType::Byte, &given(word));
        assert_eq!(found.taken_as, taken_as, "{word:?}");
        let number = if taken_as == ExtType::UByte { 255 } else { -1 };
        assert_eq!(found.fill.unwrap().numbers, [CfNumber::Int(number)]);
    }
    let raw = Profile::NetCdf4Python(NetCdf4 { scales: false, ..NEW });
    assert_eq!(rules(raw, ExtType::Byte, &given("true")).taken_as, ExtType::Byte);
    assert_eq!(netcdf4(ExtType::UByte, &[("_Unsigned", text("false"))]).taken_as, ExtType::UByte);
    assert_eq!(xarray(ExtType::Byte, &given("true")).left, ["_Unsigned"]);
}

/// The types of product and result.
fn types(
    session: NetCdf4,
    ty: ExtType,
    factor: Option<AttributeValue>,
    offset: Option<AttributeValue>,
) -> (ExtType, ExtType) {
    let attribute =
        |name, value: Option<AttributeValue>| (name, value.unwrap_or(AttributeValue::Absent));
    let given = [attribute("scale_factor", factor), attribute("add_offset", offset)];
    let scaling = rules(Profile::NetCdf4Python(session), ty, &given).scaling;
    (scaling.product, scaling.result)
}

#[test]
fn netcdf4_types_of_results() {
    use ExtType::{Byte, Double, Float, Int, Int64, Short, UByte, UInt, UInt64, UShort};
    let one = |ty, number| Some(reals(ty, &[number]));
    let whole = |ty, number| Some(ints(ty, &[number]));
    for session in [NEW, OLD] {
        assert_eq!(types(session, Short, one(Float, 0.5), None), (Float, Float));
        assert_eq!(types(session, Int, one(Float, 0.5), None), (Double, Double));
        assert_eq!(types(session, Short, one(Double, 0.5), None), (Double, Double));
        assert_eq!(
            types(session, Short, one(Double, 1.0), None),
            (Short, Short),
            "nothing to multiply"
        );
        assert_eq!(types(session, Short, one(Float, 1.0), one(Double, 0.0)), (Float, Float));
        assert_eq!(types(session, Short, None, one(Double, 0.0)), (Short, Short));
    }
    // A float stays one beside a double that it could hold: NumPy 1.
    assert_eq!(types(NEW, Float, one(Double, 0.5), None), (Double, Double));
    assert_eq!(types(OLD, Float, one(Double, 0.5), None), (Float, Float));
    assert_eq!(types(OLD, Float, one(Double, 1e300), None), (Double, Double));
    assert_eq!(types(NEW, Short, one(Float, 0.5), one(Double, 273.15)), (Float, Double));
    assert_eq!(types(OLD, Short, one(Float, 0.5), one(Double, 273.15)), (Float, Float));
    assert_eq!(types(NEW, Byte, whole(Short, 2), None), (Short, Short));
    assert_eq!(types(OLD, Byte, whole(Short, 2), None), (Byte, Byte));
    assert_eq!(types(OLD, Byte, whole(Short, 200), None), (Short, Short));
    assert_eq!(types(OLD, UByte, whole(Short, -2), None), (Short, Short));
    for (a, b, wider) in [
        (UByte, Byte, Short),
        (UShort, Short, Int),
        (UInt, Int, Int64),
        (UInt64, Int64, Double),
        (UByte, Int, Int),
        (UShort, UInt, UInt),
    ] {
        assert_eq!(types(NEW, a, whole(b, 2), None), (wider, wider), "{a:?} {b:?}");
        assert_eq!(types(NEW, b, whole(a, 2), None), (wider, wider), "{b:?} {a:?}");
    }
    // What is no number leaves everything as it is.
    let given = [("scale_factor", text("0.5")), ("add_offset", reals(Double, &[1.0]))];
    let found = netcdf4(Short, &given);
    assert_eq!(
        (found.left, found.scaling),
        (vec!["scale_factor"], ValueRules::none(Short).scaling)
    );
    let given = [("scale_factor", reals(Double, &[1.0, 2.0]))];
    let found = netcdf4(Short, &given);
    assert_eq!(
        (unused(&found), found.scaling),
        (vec!["scale_factor"], ValueRules::none(Short).scaling)
    );
}

#[test]
fn xarray_types_of_results() {
    use ExtType::{Double, Float, Int, Int64, Short, UByte};
    let fill = |ty| ("_FillValue", ints(ty, &[1]));
    let scale = |ty| ("scale_factor", reals(ty, &[0.5]));
    let offset = |ty| ("add_offset", reals(ty, &[0.5]));
    for (ty, given, result) in [
        (UByte, vec![fill(UByte)], Float),
        (Short, vec![fill(Short)], Float),
        (Int, vec![fill(Int)], Double),
        (Float, vec![("_FillValue", reals(Float, &[1.0]))], Float),
        (Short, vec![scale(Double)], Double),
        (Short, vec![scale(Float)], Float),
        (Short, vec![scale(Float), offset(Float), fill(Short)], Float),
        (Short, vec![scale(Float), offset(Double)], Double),
        (Short, vec![offset(Float)], Double),
        (Int, vec![scale(Float), offset(Float)], Double),
        (Int, vec![scale(Float)], Float),
        (Int64, vec![scale(Float), offset(Float)], Float),
        (Float, vec![scale(Double), offset(Double)], Double),
        // NaN is missing already: nothing makes the type wider.
        (Float, vec![("_FillValue", reals(Float, &[f64::NAN])), scale(Double)], Float),
    ] {
        let found = xarray(ty, &given);
        assert_eq!((found.scaling.result, found.left), (result, vec![]), "{ty:?} {given:?}");
    }
}

#[test]
fn what_xarray_decodes_itself() {
    use ExtType::{Double, Float, Int64, Short};
    let left = |ty, given: &[_]| xarray(ty, given).left;
    let fills = |missing, fill| [("missing_value", missing), ("_FillValue", fill)];
    assert_eq!(left(Short, &fills(ints(Short, &[1]), ints(Short, &[2]))), ["_FillValue"]);
    assert!(left(Short, &fills(reals(Double, &[1.0]), ints(Short, &[1]))).is_empty());
    let near = fills(ints(Int64, &[(1 << 53) + 1]), reals(Double, &[9_007_199_254_740_992.0]));
    assert_eq!(left(Int64, &near), ["_FillValue"], "one number more is another");
    assert!(left(Float, &fills(reals(Float, &[f64::NAN]), reals(Float, &[1.0]))).is_empty());
    assert_eq!(left(Short, &[("_FillValue", reals(Double, &[f64::NAN]))]), ["_FillValue"]);
    assert_eq!(left(Short, &[("missing_value", text("-1"))]), ["missing_value"]);
    assert_eq!(left(Short, &[("missing_value", ints(Short, &[1, 2]))]), ["missing_value"]);
    assert_eq!(left(Short, &[("scale_factor", ints(Short, &[2]))]), ["scale_factor"]);
    assert_eq!(left(Short, &[("add_offset", AttributeValue::Other)]), ["add_offset"]);
}

#[test]
fn numbers_go_into_bytes_and_come_back() {
    for (ty, number) in [
        (ExtType::Byte, CfNumber::Int(-127)),
        (ExtType::UByte, CfNumber::Int(255)),
        (ExtType::Short, CfNumber::Int(-2)),
        (ExtType::UShort, CfNumber::Int(65535)),
        (ExtType::Int, CfNumber::Int(i32::MIN.into())),
        (ExtType::UInt, CfNumber::Int(u32::MAX.into())),
        (ExtType::Int64, CfNumber::Int(i64::MIN.into())),
        (ExtType::UInt64, CfNumber::Int(u64::MAX.into())),
        (ExtType::Float, CfNumber::Real(f64::from(0.1f32))),
        (ExtType::Double, CfNumber::Real(-0.1)),
    ] {
        let mut bytes = Vec::new();
        number.append_to(ty, &mut bytes);
        assert_eq!(CfNumber::all(ty, &bytes).collect::<Vec<_>>(), [number], "{ty:?}");
    }
}

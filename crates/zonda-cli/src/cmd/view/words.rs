//! Numbers and places in words.

use zonda_plot::AxisKind;

/// A number with six digits, in its shortest form.
pub(super) fn short(number: f64) -> String {
    let rounded: f64 = format!("{number:.5e}").parse().unwrap_or(number);
    if rounded != 0.0 && !(1e-4..1e9).contains(&rounded.abs()) {
        return format!("{rounded:e}");
    }
    rounded.to_string()
}

/// `983.3 hPa`, `45°S`, `1990-02-01 12:30`
pub(super) fn with_units(value: f64, kind: AxisKind, units: &str) -> String {
    let degrees = |value: f64, positive, negative| {
        let side = match value {
            0.0 => "",
            _ if value < 0.0 => negative,
            _ => positive,
        };
        format!("{}°{side}", short(value.abs()))
    };
    let plain = || match units.is_empty() {
        true => short(value),
        false => format!("{} {units}", short(value)),
    };
    match kind {
        AxisKind::Dates(dates) => dates.text(value).unwrap_or_else(plain),
        // Where longitudes go on behind a whole turn.
        AxisKind::Longitude if value > 360.0 => degrees(value.rem_euclid(360.0), "E", "W"),
        AxisKind::Longitude => degrees(value, "E", "W"),
        AxisKind::Latitude => degrees(value, "N", "S"),
        _ => plain(),
    }
}

/// `pressure (hPa)`
pub(super) fn titled(name: &str, units: Option<&str>) -> String {
    units.map_or(name.to_owned(), |units| format!("{name} ({units})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0.0, "0"),
            (273.15, "273.15"),
            (983.333_333_333, "983.333"),
            (-1234567.0, "-1234570"),
            (1e-9, "1e-9"),
            (9.969_209_968e36, "9.96921e36"),
        ] {
            assert_eq!(short(number), text);
        }
    }

    #[test]
    fn places_in_words() {
        for (value, kind, units, text) in [
            (850.0, AxisKind::Number, "hPa", "850 hPa"),
            (3.0, AxisKind::Number, "", "3"),
            (-45.0, AxisKind::Latitude, "degrees_north", "45°S"),
            (359.5, AxisKind::Longitude, "degrees_east", "359.5°E"),
            (370.0, AxisKind::Longitude, "degrees_east", "10°E"),
            (0.0, AxisKind::Longitude, "degrees_east", "0°"),
        ] {
            assert_eq!(with_units(value, kind, units), text);
        }
    }
}

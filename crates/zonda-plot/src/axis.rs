//! Axes: what their numbers mean, where their ticks are, and the labels of these.

use zonda_cf::times::Dates;

use crate::dates;

/// What the numbers along an axis are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum AxisKind {
    /// Numbers in the unit that the title names.
    #[default]
    Number,
    /// Whole numbers that count.
    Index,
    /// Degrees to the east; beyond 180 they count as west.
    Longitude,
    /// Degrees to the north.
    Latitude,
    /// Bytes, shown in powers of 1000.
    Bytes,
    /// Bytes, shown in powers of 1024, as sizes of blocks are.
    BinaryBytes,
    /// Seconds, shown as s, ms or µs.
    Seconds,
    /// Times, shown as dates.
    Dates(Dates),
}

/// How numbers are spread along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// Equal differences at equal distances.
    #[default]
    Linear,
    /// Equal ratios at equal distances. Zero and negative numbers cannot be shown.
    Log,
}

/// An axis of a chart.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// The title beside it. The unit of sizes and times is added.
    pub title: String,
    /// What its numbers are.
    pub kind: AxisKind,
    /// How they are spread.
    pub spacing: Spacing,
    /// Whether they grow to the left or downwards, as pressure does.
    pub reversed: bool,
}

impl Axis {
    /// A linear axis that grows to the right or upwards.
    #[must_use]
    pub fn new(title: impl Into<String>, kind: AxisKind) -> Axis {
        Axis { title: title.into(), kind, ..Axis::default() }
    }

    /// The same with equal ratios at equal distances.
    #[must_use]
    pub fn log(self) -> Axis {
        Axis { spacing: Spacing::Log, ..self }
    }

    /// Whether a number has a place on the axis.
    pub(crate) fn shows(&self, number: f64) -> bool {
        number.is_finite() && (self.spacing == Spacing::Linear || number > 0.0)
    }

    /// A range that is not empty, with some space at the ends, so that points do not touch them.
    pub(crate) fn roomy(&self, (low, high): (f64, f64)) -> (f64, f64) {
        match self.spacing {
            Spacing::Linear => {
                let room = if high > low { (high - low) * 0.04 } else { self.half_unit(low) };
                (low - room, high + room)
            }
            Spacing::Log => {
                let room = if high > low { (high / low).powf(0.04) } else { 2.0 };
                (low / room, high * room)
            }
        }
    }
}

impl Axis {
    /// Half of a range around a single number.
    pub(crate) fn half_unit(&self, number: f64) -> f64 {
        match self.kind {
            // Dates get half a day, in any unit.
            AxisKind::Dates(dates) => 0.5 / dates.unit_days(),
            _ => half_unit(number),
        }
    }
}

/// Half of a range around a single number.
pub(crate) fn half_unit(number: f64) -> f64 {
    if number == 0.0 { 0.5 } else { (number.abs() * 0.05).max(f64::MIN_POSITIVE) }
}

/// Ticks, and the text that applies to all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ticks {
    /// Number and label, in rising order.
    pub(crate) at: Vec<(f64, String)>,
    /// What is added to the title: `MB`, `×10⁵`.
    pub(crate) unit: String,
}

impl Axis {
    /// The title with the unit of the ticks.
    pub(crate) fn full_title(&self, ticks: &Ticks) -> String {
        match (ticks.unit.as_str(), self.title.as_str()) {
            ("", title) => title.to_owned(),
            (unit, "") => unit.to_owned(),
            (unit, title) => match self.kind {
                AxisKind::Number => format!("{title}  {unit}"),
                _ => format!("{title}, {unit}"),
            },
        }
    }

    /// At most about `most` ticks between `low` and `high`, at round numbers.
    pub(crate) fn ticks(&self, low: f64, high: f64, most: usize) -> Ticks {
        let most = most.max(2);
        if self.spacing == Spacing::Log {
            return self.log_ticks(low, high, most);
        }
        if !(high - low).is_normal() {
            // The range is empty, or too large or too small for arithmetic.
            return Ticks::default();
        }
        let size = low.abs().max(high.abs());
        match self.kind {
            AxisKind::Longitude | AxisKind::Latitude if size <= 720.0 => {
                self.degrees(low, high, most)
            }
            AxisKind::Bytes | AxisKind::BinaryBytes => {
                let base = if self.kind == AxisKind::Bytes { 1000.0 } else { 1024.0 };
                let (unit, name) = byte_unit(size, base);
                scaled(low, high, most, unit, name)
            }
            AxisKind::Seconds => {
                let (unit, name) = match size {
                    _ if size >= 1.0 => (1.0, "s"),
                    _ if size >= 1e-3 => (1e-3, "ms"),
                    _ => (1e-6, "µs"),
                };
                scaled(low, high, most, unit, name)
            }
            AxisKind::Index => {
                let step = nice_step(low, high, most).max(1.0);
                let at = multiples(low, high, step);
                let at = at.into_iter().map(|number| (number, plain(number, 0)));
                Ticks { at: at.collect(), unit: String::new() }
            }
            AxisKind::Dates(dates) => dates::ticks(&dates, low, high, most)
                .unwrap_or_else(|| Axis::new("", AxisKind::Number).ticks(low, high, most)),
            // So many degrees are not on the globe, so they are shown as numbers.
            AxisKind::Number | AxisKind::Longitude | AxisKind::Latitude => {
                let exponent = if size == 0.0 { 0.0 } else { size.log10().floor() };
                if (-3.0..5.0).contains(&exponent) {
                    return scaled(low, high, most, 1.0, "");
                }
                let name = format!("×10{}", superscript(exponent as i32));
                scaled(low, high, most, 10f64.powf(exponent), &name)
            }
        }
    }

    fn degrees(&self, low: f64, high: f64, most: usize) -> Ticks {
        const STEPS: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 45.0, 60.0];
        let fits = |step: f64| (high - low) / step <= most as f64;
        let step = if fits(0.5) {
            nice_step(low, high, most)
        } else {
            STEPS.into_iter().find(|step| fits(*step)).unwrap_or(90.0)
        };
        let kind = self.kind;
        let digits = decimals(step);
        let at = multiples(low, high, step);
        let label = |number: f64| match kind {
            AxisKind::Longitude => {
                let east = (number + 180.0).rem_euclid(360.0) - 180.0;
                match east {
                    _ if east == 0.0 => "0°".to_owned(),
                    _ if east == -180.0 => "180°".to_owned(),
                    _ if east < 0.0 => format!("{:.digits$}°W", -east),
                    _ => format!("{east:.digits$}°E"),
                }
            }
            _ if number == 0.0 => "0°".to_owned(),
            _ if number < 0.0 => format!("{:.digits$}°S", -number),
            _ => format!("{number:.digits$}°N"),
        };
        Ticks {
            at: at.into_iter().map(|number| (number, label(number))).collect(),
            unit: String::new(),
        }
    }

    fn log_ticks(&self, low: f64, high: f64, most: usize) -> Ticks {
        let within = |number: f64| number >= low * (1.0 - 1e-9) && number <= high * (1.0 + 1e-9);
        let binary = self.kind == AxisKind::BinaryBytes;
        let base: f64 = if binary { 2.0 } else { 10.0 };
        let first = (low.ln() / base.ln()).floor() as i32;
        let last = (high.ln() / base.ln()).ceil() as i32;
        let powers = usize::try_from(last - first).unwrap_or(0) + 1;
        // There is either space for more ticks between powers of ten, or not enough for all powers.
        let decades = (high / low).log10();
        let between: &[f64] = match most as f64 {
            _ if binary => &[1.0],
            most if decades * 3.0 <= most => &[1.0, 2.0, 5.0],
            most if decades * 2.0 <= most => &[1.0, 3.0],
            _ => &[1.0],
        };
        let skip = powers.div_ceil(most).max(1);
        let mut at = Vec::new();
        for power in (first..=last).filter(|power| power.rem_euclid(skip as i32) == 0) {
            for factor in between {
                let number = factor * base.powi(power);
                if within(number) {
                    at.push((number, self.log_label(number)));
                }
            }
        }
        Ticks { at, unit: String::new() }
    }

    fn log_label(&self, number: f64) -> String {
        let short = |number: f64| {
            let exponent = number.log10().floor();
            if (-3.0..5.0).contains(&exponent) {
                format!("{:.*}", (-exponent).max(0.0) as usize, number)
            } else {
                let factor = (number / 10f64.powf(exponent)).round();
                let times = if factor == 1.0 { String::new() } else { format!("{factor}×") };
                format!("{times}10{}", superscript(exponent as i32))
            }
        };
        match self.kind {
            AxisKind::Bytes => {
                let (unit, name) = byte_unit(number, 1000.0);
                format!("{} {name}", short(number / unit))
            }
            AxisKind::BinaryBytes => {
                let (unit, name) = byte_unit(number, 1024.0);
                format!("{} {name}", short(number / unit))
            }
            AxisKind::Seconds => match number {
                _ if number >= 1.0 => format!("{} s", short(number)),
                _ if number >= 1e-3 => format!("{} ms", short(number * 1e3)),
                _ => format!("{} µs", short(number * 1e6)),
            },
            _ => short(number),
        }
    }
}

/// The unit in which a number of bytes is short.
fn byte_unit(bytes: f64, base: f64) -> (f64, &'static str) {
    let names = if base == 1000.0 {
        ["B", "kB", "MB", "GB", "TB", "PB"]
    } else {
        ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    };
    let mut unit = 1.0;
    for name in names {
        if bytes < unit * base {
            return (unit, name);
        }
        unit *= base;
    }
    (unit / base, "PB")
}

/// Ticks at round multiples of a unit.
fn scaled(low: f64, high: f64, most: usize, unit: f64, name: &str) -> Ticks {
    let (low, high) = (low / unit, high / unit);
    let step = nice_step(low, high, most);
    let digits = decimals(step);
    let at = multiples(low, high, step);
    Ticks {
        at: at.into_iter().map(|number| (number * unit, plain(number, digits))).collect(),
        unit: name.to_owned(),
    }
}

/// A number with so many decimals, and a minus sign that is as wide as a digit.
fn plain(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().any(|c| c.is_ascii_digit() && c != '0') => format!("−{rest}"),
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// 1, 2 or 5 times a power of ten, such that at most `most` of them lie between.
fn nice_step(low: f64, high: f64, most: usize) -> f64 {
    let least = (high - low) / most as f64;
    if !(least.is_normal() && least > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|f| f * power)
        .find(|s| *s >= least * 0.999_999)
        .unwrap_or(power * 10.0)
}

/// Digits behind the point that tell multiples of a step apart.
fn decimals(step: f64) -> usize {
    // Steps are 1, 2 or 5 times a power of ten.
    (-(step.log10() + 1e-9).floor()).clamp(0.0, 17.0) as usize
}

/// Multiples of a step within a range, ends included.
fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = (low / step - 1e-9).ceil();
    let last = (high / step + 1e-9).floor();
    // If both ends round to the same multiple, there is one tick or none.
    let n = if last >= first { (last - first) as usize } else { return Vec::new() };
    // `+ 0.0` makes a zero of a negative one.
    (0..=n.min(100)).map(|i| (first + i as f64) * step + 0.0).collect()
}

/// A whole number in small raised digits.
fn superscript(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    number
        .to_string()
        .chars()
        .map(|c| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, low: f64, high: f64, most: usize) -> String {
        let ticks = axis.ticks(low, high, most);
        let labels: Vec<String> = ticks.at.into_iter().map(|tick| tick.1).collect();
        format!("{} | {}", labels.join(" "), ticks.unit)
    }

    #[test]
    fn ticks_are_round_and_named() {
        use AxisKind::*;
        for (kind, low, high, most, want) in [
            (Number, 0.0, 10.0, 5, "0 2 4 6 8 10 | "),
            (Number, -0.31, 0.28, 6, "−0.3 −0.2 −0.1 0.0 0.1 0.2 | "),
            (Index, -0.5, 4.5, 10, "0 1 2 3 4 | "),
            (Number, 0.0, 2.5e6, 5, "0.0 0.5 1.0 1.5 2.0 2.5 | ×10⁶"),
            (Number, 1e-6, 4e-6, 4, "1 2 3 4 | ×10⁻⁶"),
            (Number, 280.02, 280.09, 4, "280.02 280.04 280.06 280.08 | "),
            (Latitude, -90.0, 90.0, 7, "90°S 60°S 30°S 0° 30°N 60°N 90°N | "),
            (Longitude, 0.0, 357.5, 6, "0° 60°E 120°E 180° 120°W 60°W | "),
            (Longitude, -10.0, 10.0, 5, "10°W 5°W 0° 5°E 10°E | "),
            (Latitude, 47.1, 47.6, 6, "47.1°N 47.2°N 47.3°N 47.4°N 47.5°N 47.6°N | "),
            (Bytes, 0.0, 21e6, 5, "0 5 10 15 20 | MB"),
            (Seconds, 0.0, 0.012, 4, "0 5 10 | ms"),
            (BinaryBytes, 0.0, 4096.0, 4, "0 1 2 3 4 | KiB"),
        ] {
            assert_eq!(
                labels(&Axis::new("", kind), low, high, most),
                want,
                "{kind:?} {low} {high}"
            );
        }
    }

    #[test]
    fn logarithmic_ticks() {
        let blocks = Axis::new("", AxisKind::BinaryBytes).log();
        assert_eq!(
            labels(&blocks, 64.0, 64.0 * 1024.0 * 1024.0, 11),
            "64 B 256 B 1 KiB 4 KiB 16 KiB 64 KiB 256 KiB 1 MiB 4 MiB 16 MiB 64 MiB | "
        );
        let number = Axis::new("", AxisKind::Number).log();
        assert_eq!(labels(&number, 0.2, 30.0, 12), "0.2 0.5 1 2 5 10 20 | ");
        assert_eq!(labels(&number, 7.0, 190.0, 10), "10 20 50 100 | ");
        assert_eq!(labels(&number, 1e-9, 1e9, 7), "10⁻⁹ 10⁻⁶ 0.001 1 1000 10⁶ 10⁹ | ");
    }

    /// Whatever the range, ticks lie in it and are few, and labels differ.
    #[test]
    fn ticks_of_odd_ranges() {
        for (low, high) in [
            (0.0, f64::MIN_POSITIVE),
            (-1e300, 1e300),
            (1e15, 1e15 + 1.0),
            (-5e-324, 5e-324),
            (3.0, 3.0),
            (99_999.0, 100_001.0),
        ] {
            for kind in [AxisKind::Number, AxisKind::Bytes, AxisKind::Seconds, AxisKind::Latitude] {
                let ticks = Axis::new("", kind).ticks(low, high, 6).at;
                assert!(ticks.len() <= 8, "{kind:?} {low} {high}: {ticks:?}");
            }
        }
    }
}
